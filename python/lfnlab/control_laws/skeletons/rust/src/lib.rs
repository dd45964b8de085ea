//! Reno (RFC 5681), counted in whole packets, as a controller that lfnlab loads. Change `Mine` into yours.
//!
//!     cargo build --release
//!     lfn compare --law target/release/libmine.so,reno:linux --rate 100Mbit/s --rtt 40ms

mod lfn;

use lfn::{Ack, Config, Control, Event, ACK_DUPLICATE, ACK_RECOVERY, ACK_WINDOW_LIMITED};

struct Mine {
    packet_bytes: u64,
    /// Packets.
    window: u64,
    /// Packets.
    ssthresh: u64,
    /// Packets delivered since the window last grew.
    counted: u64,
    /// Window and threshold before the last reduction.
    before: (u64, u64),
}

impl lfn::Controller for Mine {
    const NAME: &'static std::ffi::CStr = c"mine";

    fn new(config: &Config, _control: &mut Control) -> Mine {
        let packet_bytes = config.packet_bytes.into();
        Mine {
            packet_bytes,
            window: config.initial_window_bytes / packet_bytes,
            ssthresh: u64::MAX,
            counted: 0,
            before: (0, 0),
        }
    }

    fn ack(&mut self, ack: &Ack, control: &mut Control) {
        if ack.flags & (ACK_RECOVERY | ACK_DUPLICATE) != 0 || ack.flags & ACK_WINDOW_LIMITED == 0 {
            return;
        }
        let mut delivered = u64::from(ack.acked_bytes) / self.packet_bytes;
        if self.window < self.ssthresh {
            // Slow start.
            let grown = delivered.min(self.ssthresh - self.window);
            self.window += grown;
            delivered -= grown;
        }
        if delivered > 0 {
            // Congestion avoidance: a packet for each window of them.
            if self.counted >= self.window {
                self.counted = 0;
                self.window += 1;
            }
            self.counted += delivered;
            let grown = self.counted / self.window;
            self.counted -= grown * self.window;
            self.window += grown;
        }
        control.window_bytes = self.window * self.packet_bytes;
    }

    fn event(&mut self, _now_ns: u64, event: Event, _in_flight_bytes: u64, control: &mut Control) {
        match event {
            Event::Loss | Event::Ce | Event::Timeout => {
                self.before = (self.window, self.ssthresh);
                self.ssthresh = (self.window / 2).max(2);
                self.window = if event == Event::Timeout { 1 } else { self.ssthresh };
                self.counted = 0;
            }
            Event::TimeoutAgain => self.window = 1,
            Event::Spurious if self.before.0 > self.window => (self.window, self.ssthresh) = self.before,
            Event::Spurious | Event::Recovered | Event::Restart => {}
        }
        control.window_bytes = self.window * self.packet_bytes;
    }
}

/// The simulator asks for this table.
#[no_mangle]
pub extern "C" fn lfn_controller() -> *const lfn::Table {
    lfn::table::<Mine>()
}
