//! Can any input break a law? Random connections, as a correct sender on an absurd path drives
//! them: ACKs of up to 64k segments, RTTs from nothing to 100 s, jumps in time, every kind of
//! loss, held episodes, undo. The invariants are in `Sender::check` and beside each call.

use lfn_header::{Header, Protocol};
use lfn_law::{
    registry, Ack, Config, Control, LawInfo, LawSpec, Loss, LossKind, Parameter, PlacedLaw, Rate, Saved,
    SlowStart, SlowStartKind, Window, ACK_CWND_LIMITED, ACK_DUP, ACK_LOSS, ACK_OPEN, ACK_RECOVERY,
    ACK_ROUND_START, PROBES, RATE_APP_LIMITED,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::panic::{catch_unwind, AssertUnwindSafe};

#[derive(Clone, Debug)]
enum Op {
    /// New data delivered; in an open episode a mere sample.
    Ack { n: u32, rtt_ns: u64, ce: u32, lost: u32, round: bool },
    /// Time passes.
    Wait { time_ns: u64 },
    /// A congestion event; `hold` leaves the episode open.
    Loss { kind: LossKind, hold: bool },
    /// The episode ends.
    Open,
    /// The last event was spurious.
    Undo,
    /// The connection was idle.
    Restart,
}

/// 0, or anything up to 2^bits, as many in each octave.
fn wide(bits: u32) -> impl Strategy<Value = u64> {
    (0..=bits, any::<u64>()).prop_map(|(bits, x)| x & ((1 << bits) - 1))
}

fn op() -> impl Strategy<Value = Op> {
    let kind = prop_oneof![Just(LossKind::Fast), Just(LossKind::Rto), Just(LossKind::Ecn)];
    let ack = (wide(16), wide(37), wide(4), wide(4), any::<bool>());
    prop_oneof![
        12 => ack.prop_map(|(n, rtt_ns, ce, lost, round)| {
            Op::Ack { n: n as u32, rtt_ns: rtt_ns.min(100_000_000_000), ce: ce as u32, lost: lost as u32, round }
        }),
        4 => wide(40).prop_map(|time_ns| Op::Wait { time_ns }),
        2 => (kind, any::<bool>()).prop_map(|(kind, hold)| Op::Loss { kind, hold }),
        1 => Just(Op::Open),
        1 => Just(Op::Undo),
        1 => Just(Op::Restart),
    ]
}

#[derive(Clone, Debug)]
struct Start {
    cwnd: Window,
    in_slow_start: bool,
    now_ns: u64,
    srtt_ns: u64,
    mss_bytes: u32,
    slow_start: SlowStartKind,
}

fn start() -> impl Strategy<Value = Start> {
    (wide(58), any::<bool>(), wide(60), wide(60), 1u32..65_536, 0..SlowStartKind::ALL.len()).prop_map(
        |(cwnd, in_slow_start, now_ns, srtt_ns, mss_bytes, kind)| Start {
            cwnd: Window::from_q32(cwnd).max(Window::ONE),
            in_slow_start,
            now_ns,
            srtt_ns,
            mss_bytes,
            slow_start: SlowStartKind::ALL[kind],
        },
    )
}

/// A header that an ACK may bring back, made of what else it says, in the words of a law card.
fn told(protocol: Protocol, n: u32, ce: u32, before: Header) -> Header {
    let (name, _, words) = Protocol::ALL.iter().find(|(_, known, _)| *known == protocol).unwrap();
    let rate = [0.0, 1.0, f64::from(n) * 1e3, f64::from(n) * 1e9, f64::INFINITY][ce as usize % 5];
    let value = |word: &str| match word {
        "LINK" => (1 + ce % 2).to_string(),
        "DELTA" => (if n & 1 == 0 { rate } else { -rate }).to_string(),
        "RATE" => rate.to_string(),
        words => words.split('|').cycle().nth(ce as usize % 3).unwrap().to_owned(),
    };
    let values: Vec<String> = words.split(' ').map(value).collect();
    let all: Vec<&str> = std::iter::once(*name).chain(values.iter().map(String::as_str)).collect();
    Header::of_words(&all, before).unwrap()
}

/// Each variant of a law with all its parameters at one bound; none for a law without parameters.
fn extremes(law: &LawInfo) -> Vec<LawSpec> {
    let texts = |bound: fn(&Parameter) -> f64| {
        let values: String = law.parameters.iter().map(|p| format!(":{}={}", p.name, bound(p))).collect();
        law.variants.iter().map(move |variant| format!("{}:{variant}{values}", law.name))
    };
    let all = texts(|parameter| parameter.low).chain(texts(|parameter| parameter.high));
    all.filter(|_| !law.parameters.is_empty()).map(|text| text.parse().unwrap()).collect()
}

struct Sender {
    spec: LawSpec,
    law: PlacedLaw,
    slow_start: SlowStart,
    control: Control,
    before_loss: Option<Control>,
    episode: bool,
    timed_out: bool,
    ack: Ack,
    lost: u64,
    /// That of the last ACK.
    header: Header,
}

impl Sender {
    fn new(spec: LawSpec, start: &Start) -> Self {
        let ssthresh =
            if start.in_slow_start { Window::INFINITE } else { start.cwnd.max(Window::MIN_SSTHRESH) };
        let mut control =
            Control { cwnd: start.cwnd, ssthresh, pacing_Bps: 0, next_tick_ns: 0, block: 0, blocks: 0 };
        let config = Config {
            now_ns: start.now_ns,
            srtt_ns: start.srtt_ns,
            mss_B: start.mss_bytes,
            ..Config::default()
        };
        let law = spec.build(&config, &mut control);
        let ack = Ack { now_ns: start.now_ns, mss_B: start.mss_bytes, ..Ack::default() };
        let slow_start = SlowStart::with(
            start.slow_start,
            Some(Saved { window_segments: start.mss_bytes, rtt_us: 50_000 }),
        );
        Self {
            spec,
            law,
            slow_start,
            control,
            before_loss: None,
            episode: false,
            timed_out: false,
            ack,
            lost: 0,
            header: Header::None,
        }
    }

    fn check(&self) {
        let control = &self.control;
        assert!((Window::ONE..=Window::MAX).contains(&control.cwnd), "cwnd {:?}", control.cwnd);
        // Without slow start nothing needs two segments.
        let least = if self.spec.header().is_some() { Window::ONE } else { Window::MIN_SSTHRESH };
        assert!(control.ssthresh >= least, "ssthresh {:?}", control.ssthresh);
        assert!(!self.law.is_controller() || control.pacing_Bps > 0, "no pacing rate");
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Ack { n, rtt_ns, ce, lost, round } => self.receive(n, rtt_ns, ce, lost, round),
            Op::Wait { time_ns } => self.wait(time_ns),
            Op::Loss { kind, hold } => self.lose(kind, hold),
            Op::Open if self.episode => {
                self.episode = false;
                self.law.on_open(&self.ack, &mut self.control);
                self.slow_start.on_open(&mut self.control);
            }
            Op::Undo => {
                if let Some(before) = self.before_loss.take() {
                    self.episode = false;
                    self.control.cwnd = self.control.cwnd.max(before.cwnd);
                    self.control.ssthresh = before.ssthresh;
                    self.law.on_undo(&mut self.control);
                }
            }
            Op::Restart => {
                if let Some(law) = self.law.controller() {
                    law.on_restart(self.ack.now_ns, &mut self.control);
                }
            }
            Op::Open => {}
        }
        self.check();
    }

    fn receive(&mut self, n: u32, rtt_ns: u64, ce: u32, lost: u32, round: bool) {
        let ack = &mut self.ack;
        ack.rtt_ns = rtt_ns;
        if rtt_ns > 0 {
            ack.min_rtt_ns = if ack.min_rtt_ns == 0 { rtt_ns } else { ack.min_rtt_ns.min(rtt_ns) };
            ack.srtt_ns = if ack.srtt_ns == 0 { rtt_ns } else { ack.srtt_ns / 8 * 7 + rtt_ns / 8 };
        }
        ack.delivered += u64::from(n);
        (ack.acked, ack.newly_delivered, ack.newly_lost, ack.ce) =
            (if self.episode { 0 } else { n }, n, lost, ce);
        ack.inflight = self.control.cwnd.floor() as u32;
        let state = if self.episode { ACK_DUP } else { ACK_OPEN | ACK_CWND_LIMITED };
        ack.flags = state | if round { ACK_ROUND_START } else { 0 };
        if let Some(protocol) = self.spec.header() {
            let law = self.law.router().expect("a law with a header");
            law.header(&self.control, self.ack.mss_B);
            self.header = told(protocol, n, ce, self.header);
            law.on_header(self.header, &mut self.control);
            self.check();
        }
        let Some(mut law) = self.law.window() else { return self.steer(round) };
        law.on_sample(&self.ack, &mut self.control);
        self.check();
        if self.episode {
            self.slow_start.on_recovery(&self.ack, &mut self.control);
            self.check();
            return;
        }
        let mut rest = n;
        if self.control.cwnd < self.control.ssthresh {
            self.slow_start.on_sample(&self.ack, &mut self.control);
            self.check();
        }
        if self.control.cwnd < self.control.ssthresh {
            rest = self.slow_start.on_ack(n, &self.ack, &mut self.control);
            assert!(rest <= n);
            assert!(rest == 0 || self.control.cwnd >= self.control.ssthresh);
            self.check();
        }
        if self.control.cwnd >= self.control.ssthresh {
            self.law.window().expect("as before").on_ack(rest, &self.ack, &mut self.control);
        }
    }

    /// The rest of an ACK for a law that owns window and rate. The sample is over one RTT.
    fn steer(&mut self, app_limited: bool) {
        let ack = &mut self.ack;
        let mut rate = Rate {
            delivered: ack.delivered,
            prior_delivered: ack.delivered.saturating_sub(self.control.cwnd.floor()),
            lost: self.lost,
            prior_lost: self.lost,
            interval_ns: ack.rtt_ns,
            tx_in_flight: ack.inflight,
            prior_inflight: ack.inflight,
            flags: if app_limited { RATE_APP_LIMITED } else { 0 },
            pad: 0,
        };
        let law = self.law.controller().expect("a law without on_ack");
        for _ in 0..ack.newly_lost {
            rate.lost += 1;
            law.on_lost(ack.now_ns, &rate, &self.control);
        }
        self.lost = rate.lost;
        ack.flags |= match (self.episode, self.timed_out) {
            (false, _) => 0,
            (true, false) => ACK_RECOVERY,
            (true, true) => ACK_LOSS,
        };
        assert!(law.on_control(&self.ack, &rate, &mut self.control) <= 1);
        self.check();
    }

    fn wait(&mut self, time_ns: u64) {
        self.ack.now_ns += time_ns;
        if (1..=self.ack.now_ns).contains(&self.control.next_tick_ns) {
            let at_ns = std::mem::take(&mut self.control.next_tick_ns);
            self.law.on_tick(at_ns, &mut self.control);
            let next_ns = self.control.next_tick_ns;
            assert!(next_ns == 0 || next_ns > at_ns, "a tick at {at_ns} asks for one at {next_ns}");
        }
    }

    fn lose(&mut self, kind: LossKind, hold: bool) {
        // One event per window of data; a timeout may follow in the same episode.
        if self.episode && kind != LossKind::Rto {
            return;
        }
        let ack = &self.ack;
        let loss = Loss {
            now_ns: ack.now_ns,
            rtt_ns: ack.rtt_ns,
            srtt_ns: ack.srtt_ns,
            min_rtt_ns: ack.min_rtt_ns,
            kind,
            inflight: self.control.cwnd.floor() as u32,
            mss_B: ack.mss_B,
            pad: 0,
        };
        let before = self.control;
        self.before_loss = Some(before);
        self.law.on_loss(&loss, &mut self.control);
        self.slow_start.on_loss(&loss, before.ssthresh, &mut self.control);
        assert_eq!(self.control.cwnd, before.cwnd, "on_loss changed cwnd");
        self.timed_out = kind == LossKind::Rto;
        if self.law.is_controller() {
            if self.timed_out {
                self.control.cwnd = Window::ONE;
            }
            self.episode = true;
            return;
        }
        if self.spec.info().is_some_and(|law| !law.ssthresh_is_estimate) {
            let most = before.cwnd.max(Window::MIN_SSTHRESH);
            assert!(
                self.control.ssthresh <= most,
                "ssthresh {:?} above cwnd {most:?}",
                self.control.ssthresh
            );
        }
        self.control.cwnd =
            if kind == LossKind::Rto { Window::ONE } else { self.control.ssthresh.min(Window::MAX) };
        self.episode = hold;
        if !hold {
            self.law.on_open(&self.ack, &mut self.control);
        }
    }

    /// All that can be seen of a sender.
    fn trace(&self) -> (Control, [u64; PROBES]) {
        let mut probes = [0; PROBES];
        self.law.probe(&self.control, &mut probes);
        (self.control, probes)
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn no_connection_breaks_a_law(start in start(), ops in prop::collection::vec(op(), 1..300)) {
        for spec in registry().iter().flat_map(|law| law.specs().chain(extremes(law))) {
            let run = || {
                let mut sender = Sender::new(spec.clone(), &start);
                ops.iter().map(|op| { sender.apply(op); sender.trace() }).collect::<Vec<_>>()
            };
            let trace = catch_unwind(AssertUnwindSafe(&run));
            prop_assert!(trace.is_ok(), "{}", spec);
            prop_assert!(trace.unwrap() == run(), "{} is not deterministic", spec);
        }
    }
}
