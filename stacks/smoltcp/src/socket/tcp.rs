//! The place of smoltcp's TCP socket, to whose module its controllers are private.

use std::ffi::CStr;

use lfn_stack_adapter::lfn::{self, Ack, Config, Control, Event, Packet};

use crate::time::Instant;

include!(concat!(env!("OUT_DIR"), "/control.rs"));

/// The part of the socket's estimator that controllers read.
#[derive(Debug, Default)]
pub struct RttEstimator {
    smoothed_ms: u32,
}

impl RttEstimator {
    /// In ms.
    pub fn smoothed_rtt(&self) -> u32 {
        self.smoothed_ms
    }
}

/// A connection's controller.
pub struct Smoltcp<const CUBIC: bool> {
    controller: congestion::AnyController,
    rtt: RttEstimator,
    packet_bytes: usize,
    /// Acknowledged above a hole since the last ACK of new data.
    above_bytes: usize,
    lost_bytes: usize,
}

fn at(ns: u64) -> Instant {
    Instant::from_micros((ns / 1000) as i64)
}

impl<const CUBIC: bool> Smoltcp<CUBIC> {
    fn decide(&self, control: &mut Control) {
        control.window_bytes = self.controller.inner().window().max(self.packet_bytes) as u64;
    }
}

impl<const CUBIC: bool> lfn::Controller for Smoltcp<CUBIC> {
    const NAME: &'static CStr = if CUBIC { c"smoltcp:cubic" } else { c"smoltcp:reno" };
    const WATCHES_PACKETS: bool = true;

    fn new(config: &Config, control: &mut Control) -> Self {
        let mut controller = if CUBIC {
            congestion::AnyController::Cubic(congestion::cubic::Cubic::new())
        } else {
            congestion::AnyController::Reno(congestion::reno::Reno::new())
        };
        let packet_bytes = config.packet_bytes as usize;
        controller.inner_mut().set_mss(packet_bytes);
        // The largest window that TCP can announce (RFC 7323): the receiver sets no limit.
        controller.inner_mut().set_remote_window(65_535 << 14);
        let rtt = RttEstimator { smoothed_ms: (config.srtt_ns / 1_000_000) as u32 };
        let made = Smoltcp { controller, rtt, packet_bytes, above_bytes: 0, lost_bytes: 0 };
        made.decide(control);
        made
    }

    fn sent(&mut self, now_ns: u64, packet: &Packet, _in_flight_bytes: u64, control: &mut Control) {
        let controller = self.controller.inner_mut();
        controller.pre_transmit(at(now_ns));
        controller.post_transmit(at(now_ns), packet.bytes as usize);
        self.decide(control);
    }

    fn lost(&mut self, _now_ns: u64, packet: &Packet, _control: &mut Control) {
        self.lost_bytes += packet.bytes as usize;
    }

    fn ack(&mut self, ack: &Ack, control: &mut Control) {
        let now = at(ack.now_ns);
        self.rtt.smoothed_ms = (ack.srtt_ns / 1_000_000) as u32;
        let (bytes, in_flight) = (ack.acked_bytes as usize, ack.in_flight_bytes as usize);
        if ack.flags & lfn::ACK_DUPLICATE != 0 {
            self.above_bytes += bytes;
            self.controller.inner_mut().on_dup_ack(now, self.packet_bytes, in_flight + self.above_bytes);
        } else {
            self.above_bytes = 0;
            self.lost_bytes = 0;
            self.controller.inner_mut().on_ack(now, bytes, in_flight, &self.rtt);
        }
        self.decide(control);
    }

    fn event(&mut self, now_ns: u64, event: Event, in_flight_bytes: u64, control: &mut Control) {
        // The socket's flight has all that no cumulative ACK covers.
        let flight = in_flight_bytes as usize + self.above_bytes + self.lost_bytes;
        match event {
            Event::Loss => self.controller.inner_mut().on_loss(at(now_ns), flight),
            Event::Timeout | Event::TimeoutAgain => self.controller.inner_mut().on_rto(at(now_ns), flight),
            Event::Ce | Event::Spurious | Event::Recovered | Event::Restart => {}
        }
        self.lost_bytes = 0;
        self.decide(control);
    }
}

/// The simulator asks for this table.
#[unsafe(no_mangle)]
pub extern "C" fn lfn_controller() -> *const lfn::Table {
    lfn::table::<Smoltcp<{ cfg!(feature = "cubic") }>>()
}
