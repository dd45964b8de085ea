//! quinn-proto's congestion controllers, unmodified, behind `lfn_harness::Controller`.

pub mod plain;
pub mod whole;

use std::mem::{size_of, transmute};
use std::time::{Duration, Instant};

use lfn_harness::{Ack, Config, Control, Event, Packet};
use quinn_proto::congestion::{Controller, ControllerFactory};
use quinn_proto::RttEstimator;

/// A connection's controller, called as quinn-proto's `Connection` calls it: ACKed packets, then losses of an ACK together.
pub struct Quinn {
    controller: Box<dyn Controller>,
    /// An `Instant` cannot be written: simulated times are counted from this one.
    begin: Instant,
    rtt: [Duration; 4],
    lost: Option<(Instant, u64)>,
    app_limited: bool,
}

impl Quinn {
    /// The controller of a factory such as `CubicConfig`.
    pub fn new(factory: impl ControllerFactory + 'static, config: &Config, control: &mut Control) -> Quinn {
        let begin = Instant::now();
        let mtu = u16::try_from(config.packet_bytes).unwrap_or(u16::MAX);
        let controller = std::sync::Arc::new(factory).build(begin, mtu);
        control.window_bytes = controller.window();
        let rtt = [Duration::from_nanos(config.srtt_ns); 4];
        Quinn { controller, begin, rtt, lost: None, app_limited: false }
    }

    fn at(&self, ns: u64) -> Instant {
        self.begin + Duration::from_nanos(ns)
    }

    fn tell_losses(&mut self, now_ns: u64, persistent: bool) {
        if let Some((sent, bytes)) = self.lost.take() {
            self.controller.on_congestion_event(self.at(now_ns), sent, persistent, bytes);
        }
    }

    /// quinn's pacer sends 1.25 windows in a smoothed RTT, whatever the controller is.
    fn decide(&self, control: &mut Control) {
        control.window_bytes = self.controller.window();
        let srtt_s = self.rtt[1].as_secs_f64();
        if srtt_s > 0.0 {
            control.pacing_bytes_per_s = (1.25 * control.window_bytes as f64 / srtt_s) as u64;
        }
    }
}

/// An estimator with the times latest, smoothed, deviation and least. It has no public constructor; outside of quinn's own tree its
/// four fields, all durations, are found by its public functions.
fn estimator(times: [Duration; 4]) -> RttEstimator {
    const { assert!(size_of::<RttEstimator>() == size_of::<[Duration; 4]>()) };
    // SAFETY: three durations and an Option of one, which has a duration's size and, as Some, its bits.
    let of = |four: [Duration; 4]| unsafe { transmute::<[Duration; 4], RttEstimator>(four) };
    let probe = of([1, 2, 3, 4].map(Duration::from_secs));
    let mut four = [times[0]; 4];
    four[probe.get().as_secs() as usize - 1] = times[1];
    four[probe.min().as_secs() as usize - 1] = times[3];
    of(four)
}

impl lfn_harness::Controller for Quinn {
    fn sent(&mut self, now_ns: u64, packet: &Packet, _in_flight_bytes: u64, control: &mut Control) {
        self.app_limited = packet.flags & lfn_harness::PACKET_APP_LIMITED != 0;
        self.controller.on_sent(self.at(now_ns), packet.bytes.into(), packet.number);
        self.decide(control);
    }

    fn acked(&mut self, now_ns: u64, packet: &Packet, _control: &mut Control) {
        let (now, sent) = (self.at(now_ns), self.at(packet.sent_ns));
        let rtt = estimator(self.rtt);
        self.controller.on_ack(now, sent, packet.bytes.into(), self.app_limited, &rtt);
    }

    fn lost(&mut self, _now_ns: u64, packet: &Packet, _control: &mut Control) {
        let sent = self.at(packet.sent_ns);
        let (last, bytes) = self.lost.unwrap_or((sent, 0));
        self.lost = Some((last.max(sent), bytes + u64::from(packet.bytes)));
    }

    fn ack(&mut self, ack: &Ack, control: &mut Control) {
        let last = self.rtt[0].as_nanos() as u64;
        let latest = if ack.rtt_ns == 0 { last } else { ack.rtt_ns };
        self.rtt = [latest, ack.srtt_ns, 0, ack.min_rtt_ns].map(Duration::from_nanos);
        self.controller.on_end_acks(self.at(ack.now_ns), ack.in_flight_bytes, self.app_limited, None);
        self.tell_losses(ack.now_ns, false);
        self.decide(control);
    }

    fn event(&mut self, now_ns: u64, event: Event, _in_flight_bytes: u64, control: &mut Control) {
        match event {
            Event::TimeoutAgain => self.tell_losses(now_ns, true),
            Event::Timeout => self.tell_losses(now_ns, false),
            Event::Ce => self.controller.on_congestion_event(self.at(now_ns), self.at(now_ns), false, 0),
            _ => {}
        }
        self.decide(control);
    }
}
