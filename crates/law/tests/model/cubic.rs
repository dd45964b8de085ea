//! RFC 9438 section 4 in floats, and the paper of 2008, which differs in two constants.

use crate::{assert_close, cases, Rig};
use lfn_law::Window;
use proptest::prelude::*;

const C: f64 = 0.4;
/// The law's windows may differ from the model's by this fraction, so where two windows are as close to each other,
/// either may be the larger one in the law.
const BOUND: f64 = 1e-5;

/// A probe in segments.
fn q32(probe: u64) -> f64 {
    probe as f64 / Window::ONE.q32() as f64
}

/// The one of two outcomes that is nearer to the law's.
fn nearer(found: f64, one: f64, other: f64) -> f64 {
    if (found - one).abs() < (found - other).abs() {
        one
    } else {
        other
    }
}

struct Cubic {
    keep: f64,
    /// Growth of the AIMD flow, segments a round trip: at first, and once it is at `prior`.
    alpha: [f64; 2],
    w: f64,
    w_max: f64,
    prior: f64,
    epoch: Option<Epoch>,
}

struct Epoch {
    start_s: f64,
    k_s: f64,
    w_est: f64,
}

impl Cubic {
    fn new(spec: &str, w: f64) -> Self {
        let (keep, alpha) = match spec {
            "cubic" => (0.7, [9.0 / 17.0, 1.0]),
            "cubic:2005" => (0.8, [1.0 / 3.0; 2]),
            _ => unreachable!(),
        };
        Self { keep, alpha, w, w_max: 0.0, prior: 0.0, epoch: None }
    }

    /// The law decides ties.
    fn lose(&mut self, law: &Rig) {
        let (w, converged) = (self.w, self.w * (1.0 + self.keep) / 2.0);
        self.w_max = match w - self.w_max {
            above if above.abs() < BOUND * w => nearer(q32(law.probes()[0]), converged, w),
            above if above < 0.0 => converged,
            _ => w,
        };
        self.prior = self.w;
        self.w *= self.keep;
        self.epoch = None;
    }

    /// The law decides ties.
    fn ack(&mut self, n: f64, law: &Rig) {
        let (now_s, rtt_s) = (law.ack.now_ns as f64 * 1e-9, law.ack.srtt_ns as f64 * 1e-9);
        let (w, alpha) = (self.w, self.alpha);
        self.w_max = if self.epoch.is_none() { self.w_max.max(w) } else { self.w_max };
        let (w_max, prior) = (self.w_max, self.prior);
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            start_s: now_s,
            k_s: ((w_max - w) / C).cbrt(),
            w_est: w,
        });
        let t_s = now_s - epoch.start_s;
        let curve = |t_s: f64| C * (t_s - epoch.k_s).powi(3) + w_max;
        let [below, above] = alpha.map(|alpha| epoch.w_est + alpha * n / w);
        let w_est = match epoch.w_est - prior {
            ahead if ahead.abs() < BOUND * w => nearer(q32(law.probes()[3]), below, above),
            ahead if ahead < 0.0 => below,
            _ => above,
        };
        let aimd = w_est.clamp(w, w + n);
        let cubic = (w + n * (curve(t_s + rtt_s).clamp(w, 1.5 * w) - w) / w).min(w + n);
        self.w = match curve(t_s) - w_est {
            above if above.abs() < BOUND * w => nearer(law.cwnd(), aimd, cubic),
            above if above < 0.0 => aimd,
            _ => cubic,
        };
        epoch.w_est = w_est;
    }
}

/// A round trip of `acks` ACKs, or of as many as the window has segments.
fn round(rig: &mut Rig, acks: u32, mut each: impl FnMut(f64, &Rig)) {
    let acks = acks.min(rig.cwnd() as u32);
    let n = rig.cwnd() as u32 / acks;
    for _ in 0..acks {
        rig.ack.now_ns += rig.ack.rtt_ns / u64::from(acks);
        rig.ack(n);
        each(f64::from(n), rig);
    }
}

fn set_rtt(rig: &mut Rig, rtt_ns: u64) {
    rig.ack.rtt_ns = rtt_ns;
    rig.ack.srtt_ns = rtt_ns;
    rig.ack.min_rtt_ns = rtt_ns;
}

/// Four epochs of these numbers of round trips: the law's window and the model's after each.
fn epochs(spec: &str, peak: f64, rtt_ms: u64, rounds: &[u32]) -> Vec<(f64, f64)> {
    let (mut rig, mut model) = (Rig::new(spec, peak), Cubic::new(spec, peak));
    set_rtt(&mut rig, rtt_ms * 1_000_000);
    let epoch = |&rounds: &u32| {
        rig.lose();
        model.lose(&rig);
        for _ in 0..rounds {
            round(&mut rig, 32, |n, law| model.ack(n, law));
        }
        (rig.cwnd(), model.w)
    };
    rounds.iter().map(epoch).collect()
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn the_window_strays_by_less_than_1e_5_of_itself(
        spec in prop::sample::select(vec!["cubic", "cubic:2005"]),
        peak in (10f64.log2()..22.0).prop_map(f64::exp2),
        rtt_ms in 5u64..300,
        rounds in prop::collection::vec(1u32..200, 4),
    ) {
        for (found, wanted) in epochs(spec, peak, rtt_ms, &rounds) {
            prop_assert!((found / wanted - 1.0).abs() < BOUND, "{found} {wanted}");
        }
    }
}

/// Drawn with seed 4022762762: the AIMD flow's window meets the curve, and the window of the last event, within
/// rounding.
#[test]
fn ties_are_decided_as_the_law_does() {
    for (spec, peak, rtt_ms, rounds) in [
        ("cubic:2005", 58.39669641324896, 84, [76, 64, 1, 1]),
        ("cubic", 151.53258524276768, 37, [99, 1, 1, 1]),
    ] {
        for (found, wanted) in epochs(spec, peak, rtt_ms, &rounds) {
            assert_close(found, wanted, BOUND);
        }
    }
}

#[test]
fn linux_k_is_the_cube_root() {
    // Linux's table and one Newton step give 4316, 9294, 20031, 40657: within 0.11 %.
    for (last_max, exact) in [(100.0, 4316), (1000.0, 9300), (10_000.0, 20_035), (83_333.0, 40_615)] {
        let mut rig = Rig::new("cubic:linux", last_max);
        rig.lose();
        rig.ack(1);
        assert_eq!(rig.probes()[2] >> 10, exact, "K({last_max})");
    }
}

/// Acknowledges 1/p segments after a loss at `peak`; mean window, and the window at the end.
fn epoch(spec: &str, p: f64, rtt_s: f64, peak: f64) -> (f64, f64) {
    let mut rig = Rig::new(spec, peak);
    set_rtt(&mut rig, (rtt_s * 1e9) as u64);
    rig.lose();
    let (mut left, mut rtts) = (1.0 / p, 0.0);
    while left > 0.0 {
        let n = (rig.cwnd() as u32 / 64).max(1);
        let rtt = f64::from(n) / rig.cwnd();
        rig.ack.now_ns += (rtt * rtt_s * 1e9) as u64;
        rig.ack(n);
        left -= f64::from(n);
        rtts += rtt;
    }
    (1.0 / p / rtts, rig.cwnd())
}

#[test]
fn the_sawtooth_has_the_response_function_as_its_mean() {
    // RFC 9438 equation 6: a loss every 1/p segments, at W_max, where the curve arrives at t = K.
    for (spec, keep, c) in [("cubic", 0.7, 1.0538), ("cubic:linux", 0.7, 1.0538), ("cubic:2005", 0.8, 1.1741)]
    {
        for p in [1e-5f64, 1e-6, 1e-7, 1e-8] {
            let mean = c * (0.1 / p).powf(0.75);
            let peak = mean * 4.0 / (3.0 + keep);
            let (found, end) = epoch(spec, p, 0.1, peak);
            assert_close(found, mean, 0.01);
            assert_close(end, peak, 0.01);
        }
    }
}

#[test]
fn a_short_path_gives_renos_mean() {
    // At 10 ms CUBIC and Reno meet at p = 5.5e-7; far above, the AIMD flow rules.
    for spec in ["cubic", "cubic:2005"] {
        for p in [1e-2, 1e-3, 1e-4] {
            let mean = 1.2247 / f64::sqrt(p);
            let mut rig = Rig::new(spec, mean);
            set_rtt(&mut rig, 10_000_000);
            let (mut segments, mut rtts) = (0.0, 0.0);
            for cycle in 0..60 {
                rig.lose();
                let mut left = 1.0 / p;
                while left > 0.0 {
                    let rtt = 1.0 / rig.cwnd();
                    rig.ack.now_ns += (rtt * 1e7) as u64;
                    rig.ack(1);
                    left -= 1.0;
                    if cycle >= 20 {
                        segments += 1.0;
                        rtts += rtt;
                    }
                }
            }
            assert_close(segments / rtts, mean, 0.002);
        }
    }
}

#[test]
fn linux_follows_the_curve_within_one_percent() {
    for (peak, rtt_ms) in [(1000.0, 100), (8333.0, 100), (15_000.0, 180), (83_333.0, 100)] {
        let mut rig = Rig::new("cubic:linux", peak);
        set_rtt(&mut rig, rtt_ms * 1_000_000);
        rig.lose();
        let start_ns = rig.ack.now_ns;
        let k_s = (0.3 * peak / C).cbrt();
        let mut t_s = 0.0;
        while t_s < 1.5 * k_s {
            round(&mut rig, 64, |_, _| ());
            t_s = (rig.ack.now_ns - start_ns) as f64 * 1e-9;
            let wanted = C * (t_s - k_s).powi(3) + peak;
            assert_close(rig.cwnd(), wanted, 0.01);
        }
    }
}
