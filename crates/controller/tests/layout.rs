//! `src/interface.rs` has the layout of `controller.h` and `stack.h`, which this test compiles.

#[allow(dead_code, reason = "the layout alone is compared")]
#[path = "../src/interface.rs"]
mod interface;

use std::mem::{offset_of, size_of};
use std::process::Command;

use interface::{Ack, Config, Control, Event, Packet, StackDatagram, StackTable, Table};
use lfn_law::{Progress, StackSetup};

/// Sizes and offsets in Rust, and the expressions of C that give them.
macro_rules! layout {
    ($($rust:ident = $c:literal { $($field:ident = $named:literal),* })*) => {
        vec![$(
            (format!("sizeof(struct {})", $c), size_of::<$rust>()),
            $((format!("offsetof(struct {}, {})", $c, $named), offset_of!($rust, $field)),)*
        )*]
    };
}

#[test]
fn structs_have_the_layout_of_the_header() {
    let rust = layout! {
        Config = "lfn_config" { now_ns = "now_ns", srtt_ns = "srtt_ns", initial_window_bytes = "initial_window_bytes",
            packet_bytes = "packet_bytes", seed = "seed" }
        Packet = "lfn_packet" { number = "number", sent_ns = "sent_ns", bytes = "bytes", flags = "flags" }
        Ack = "lfn_ack" { now_ns = "now_ns", rtt_ns = "rtt_ns", srtt_ns = "srtt_ns", min_rtt_ns = "min_rtt_ns",
            in_flight_bytes = "in_flight_bytes", delivered_bytes = "delivered_bytes", rate_bytes = "rate_bytes",
            rate_interval_ns = "rate_interval_ns", acked_bytes = "acked_bytes", lost_bytes = "lost_bytes",
            ce_packets = "ce_packets", flags = "flags" }
        Control = "lfn_control" { window_bytes = "window_bytes", pacing_bytes_per_s = "pacing_Bps",
            next_tick_ns = "next_tick_ns" }
        Table = "lfn_controller" { version = "version", value_count = "value_count", name = "name",
            values = "values", create = "create", destroy = "destroy", sent = "sent", acked = "acked", lost = "lost",
            ack = "ack", event = "event", tick = "tick", probe = "probe" }
        StackSetup = "lfn_stack_setup" { now_ns = "now_ns", seed = "seed", size_bytes = "size_bytes",
            packet_bytes = "packet_bytes" }
        StackDatagram = "lfn_stack_datagram" { id = "id", bytes = "bytes", ecn = "ecn" }
        Progress = "lfn_stack_progress" { read_bytes = "read_bytes", window_bytes = "window_bytes",
            ssthresh_bytes = "ssthresh_bytes", in_flight_bytes = "in_flight_bytes", pacing_bytes_per_s = "pacing_Bps",
            srtt_ns = "srtt_ns", rtt_ns = "rtt_ns", min_rtt_ns = "min_rtt_ns", lost_packets = "lost_packets",
            reductions = "reductions", timeouts = "timeouts", segment_bytes = "segment_bytes" }
        StackTable = "lfn_stack" { version = "version", name = "name", create = "create", destroy = "destroy",
            transmit = "transmit", receive = "receive", timeout = "timeout", timer = "timer", stop = "stop",
            forget = "forget", progress = "progress" }
    };
    let constants = [
        ("LFN_CONTROLLER_VERSION", interface::VERSION),
        ("LFN_STACK_VERSION", interface::STACK_VERSION),
        ("LFN_CONTROLLER_VALUES", lfn_law::PROBES as u32),
        ("LFN_PACKET_APP_LIMITED", interface::PACKET_APP_LIMITED),
        ("LFN_ACK_WINDOW_LIMITED", interface::ACK_WINDOW_LIMITED),
        ("LFN_ACK_ROUND_START", interface::ACK_ROUND_START),
        ("LFN_ACK_RECOVERY", interface::ACK_RECOVERY),
        ("LFN_ACK_DUPLICATE", interface::ACK_DUPLICATE),
        ("LFN_ACK_RATE_APP_LIMITED", interface::ACK_RATE_APP_LIMITED),
        ("LFN_EVENT_LOSS", Event::Loss as u32),
        ("LFN_EVENT_TIMEOUT", Event::Timeout as u32),
        ("LFN_EVENT_CE", Event::Ce as u32),
        ("LFN_EVENT_SPURIOUS", Event::Spurious as u32),
        ("LFN_EVENT_RECOVERED", Event::Recovered as u32),
        ("LFN_EVENT_RESTART", Event::Restart as u32),
        ("LFN_EVENT_TIMEOUT_AGAIN", Event::TimeoutAgain as u32),
    ];
    let rust = rust.into_iter().chain(constants.map(|(name, value)| (name.into(), value as usize)));
    let asserts: Vec<String> =
        rust.map(|(c, rust)| format!("_Static_assert({c} == {rust}, \"{}\");", c.replace('"', ""))).collect();
    let text = format!(
        "#include <stddef.h>\n#include \"controller.h\"\n#include \"stack.h\"\n{}\n",
        asserts.join("\n")
    );
    let folder = std::env::temp_dir().join(format!("lfn-controller-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("layout.c");
    std::fs::write(&file, text).unwrap();
    let done = Command::new("cc")
        .args(["-std=c11", "-fsyntax-only", "-I", env!("CARGO_MANIFEST_DIR")])
        .arg(&file)
        .output()
        .expect("a C compiler");
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
