//! Float models of the laws, as their sources write them, and bounds of the integers' differences.
//!
//! A model is a module here; it owes nothing to the header but the paper. Property tests bound
//! |integer - float| over the range of the card, which prints the bound; known values of the
//! literature are checked on the law itself.

mod abba;
mod bbr;
mod bbr3;
mod bic;
mod compound;
mod const_rate;
mod copa;
mod cuback;
mod cubic;
mod cw_hstcp;
mod dctcp;
mod drop_tail;
mod fast;
mod hstcp;
mod htcp;
mod htcp_be;
mod hybla;
mod illinois;
mod ltcp;
mod reno;
mod response;
mod scalable;
mod vegas;
mod veno;
mod westwood;
mod westwood_s;
mod yeah;

use lfn_law::{
    Ack, Config, Control, Loss, LossKind, PlacedLaw, Rate, Window, ACK_CWND_LIMITED, ACK_OPEN,
    ACK_ROUND_START, PROBES,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// The same cases in every run.
pub fn cases(count: u32) -> ProptestConfig {
    ProptestConfig {
        cases: count,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..Default::default()
    }
}

/// Windows from `low` to 2^24 segments, as many in each octave.
pub fn window(low: f64) -> impl Strategy<Value = f64> {
    (low.log2()..24.0).prop_map(f64::exp2)
}

/// A law in congestion avoidance.
pub struct Rig {
    law: PlacedLaw,
    control: Control,
    ack: Ack,
}

impl Rig {
    /// `cwnd` in segments; slow start is over, RTT 100 ms.
    pub fn new(spec: &str, cwnd: f64) -> Self {
        let mut control = Control::new(1);
        control.cwnd = Window::of(cwnd);
        control.ssthresh = control.cwnd;
        let ack = Ack {
            now_ns: 1_000_000_000,
            rtt_ns: 100_000_000,
            srtt_ns: 100_000_000,
            min_rtt_ns: 100_000_000,
            mss_B: 1448,
            flags: ACK_OPEN | ACK_CWND_LIMITED,
            ..Ack::default()
        };
        let config = Config { now_ns: ack.now_ns, mss_B: ack.mss_B, ..Config::default() };
        let law = spec.parse::<lfn_law::LawSpec>().unwrap().build(&config, &mut control);
        Self { law, control, ack }
    }

    /// The window in segments.
    pub fn cwnd(&self) -> f64 {
        self.control.cwnd.segments()
    }

    /// An ACK of `n` segments.
    pub fn ack(&mut self, n: u32) {
        self.ack.delivered += u64::from(n);
        self.ack.acked = n;
        self.ack.newly_delivered = n;
        self.ack.inflight = self.cwnd() as u32;
        let mut law = self.law.window().expect("a law with on_ack");
        law.on_sample(&self.ack, &mut self.control);
        law.on_ack(n, &self.ack, &mut self.control);
    }

    /// A round trip for a law with delivery rates: one ACK for all that it `delivered`, the newest of
    /// which was sent one RTT ago; of `inflight` segments then and now.
    pub fn steer(&mut self, delivered: u64, inflight: u64) {
        self.ack.now_ns += self.ack.rtt_ns;
        self.ack.delivered += delivered;
        self.ack.newly_delivered = delivered as u32;
        self.ack.inflight = inflight as u32;
        let rate = Rate {
            delivered: self.ack.delivered,
            prior_delivered: self.ack.delivered - delivered,
            interval_ns: self.ack.rtt_ns,
            tx_in_flight: self.ack.inflight,
            prior_inflight: self.ack.inflight,
            ..Rate::default()
        };
        let law = self.law.controller().expect("a law with on_control");
        law.on_control(&self.ack, &rate, &mut self.control);
    }

    /// A round trip: an ACK for each whole segment of the window.
    pub fn round(&mut self) -> u32 {
        let count = self.cwnd() as u32;
        let start_ns = self.ack.now_ns;
        for i in 1..=count {
            self.ack.now_ns = start_ns + self.ack.rtt_ns * u64::from(i) / u64::from(count);
            self.ack.flags = ACK_OPEN | ACK_CWND_LIMITED | if i == 1 { ACK_ROUND_START } else { 0 };
            self.ack(1);
        }
        count
    }

    /// A loss and the end of its episode; returns the fraction kept.
    pub fn lose(&mut self) -> f64 {
        self.lose_by(LossKind::Fast)
    }

    /// The same, however the loss shows.
    pub fn lose_by(&mut self, kind: LossKind) -> f64 {
        let before = self.control.cwnd;
        let loss = self.loss(kind);
        self.law.on_loss(&loss, &mut self.control);
        self.control.cwnd = self.control.ssthresh;
        self.law.on_open(&self.ack, &mut self.control);
        self.control.cwnd.segments() / before.segments()
    }

    /// An event at the present time.
    fn loss(&self, kind: LossKind) -> Loss {
        Loss {
            now_ns: self.ack.now_ns,
            rtt_ns: self.ack.rtt_ns,
            srtt_ns: self.ack.srtt_ns,
            min_rtt_ns: self.ack.min_rtt_ns,
            kind,
            inflight: self.cwnd() as u32,
            mss_B: self.ack.mss_B,
            pad: 0,
        }
    }

    /// The law's probes, as written.
    pub fn probes(&self) -> [u64; PROBES] {
        let mut out = [0; PROBES];
        self.law.probe(&self.control, &mut out);
        out
    }
}

/// One sawtooth between losses at a window of `peak` segments.
pub struct Sawtooth {
    /// Round trips from the reduction to the peak.
    pub rtts: f64,
    /// Segments acknowledged in them.
    pub segments: f64,
    /// Mean window.
    pub mean: f64,
}

impl Sawtooth {
    /// Measures the cycle after a loss, ACK by ACK.
    pub fn measure(spec: &str, peak: f64) -> Self {
        let mut rig = Rig::new(spec, peak);
        rig.ack(1);
        rig.lose();
        let (mut rtts, mut segments) = (0.0, 0.0);
        while rig.cwnd() < peak {
            rtts += 1.0 / rig.cwnd();
            segments += 1.0;
            rig.ack(1);
        }
        Self { rtts, segments, mean: segments / rtts }
    }
}

/// `found` is within the fraction `relative` of `wanted`.
#[track_caller]
pub fn assert_close(found: f64, wanted: f64, relative: f64) {
    assert!((found - wanted).abs() <= relative * wanted.abs(), "{found}, not {wanted} +- {relative}");
}
