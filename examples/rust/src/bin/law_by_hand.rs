//! A law stepped by hand: CUBIC's and Reno's windows in the first seconds after a loss at 1000 segments, with an RTT of
//! 100 ms. A simulation is not needed for this; the program calls the law as a sender would.

use lfn_law::{Ack, Config, Control, LawError, LawSpec, Loss, Window, ACK_CWND_LIMITED, ACK_OPEN};

const RTT_NS: u64 = 100_000_000;

/// The window every second after the loss.
fn windows(law: &LawSpec) -> Vec<f64> {
    let mut control = Control::new(10);
    let mut law = law.build(&Config { mss_B: 1448, ..Config::default() }, &mut control);
    let mut ack = Ack {
        now_ns: 1_000_000_000,
        rtt_ns: RTT_NS,
        srtt_ns: RTT_NS,
        min_rtt_ns: RTT_NS,
        mss_B: 1448,
        flags: ACK_OPEN | ACK_CWND_LIMITED,
        ..Ack::default()
    };
    control.cwnd = Window::whole(1000);
    let loss = Loss { now_ns: ack.now_ns, rtt_ns: RTT_NS, srtt_ns: RTT_NS, ..Loss::default() };
    law.on_loss(&loss, &mut control);
    control.cwnd = control.ssthresh; // what a sender does in recovery
    law.on_open(&ack, &mut control);
    let mut windows = vec![control.cwnd.segments()];
    for _second in 0..5 {
        for _ in 0..10 {
            // A round trip: all segments of a window are acknowledged, in one ACK.
            ack.now_ns += RTT_NS;
            ack.acked = control.cwnd.floor() as u32;
            ack.newly_delivered = ack.acked;
            ack.delivered += u64::from(ack.acked);
            let mut law = law.window().expect("neither law is a controller");
            law.on_sample(&ack, &mut control);
            law.on_ack(ack.acked, &ack, &mut control);
        }
        windows.push(control.cwnd.segments());
    }
    windows
}

fn main() -> Result<(), LawError> {
    for name in ["cubic", "reno"] {
        let windows: Vec<_> = windows(&name.parse()?).iter().map(|window| format!("{window:6.1}")).collect();
        println!("{name:5} {}", windows.join(" "));
    }
    Ok(())
}
