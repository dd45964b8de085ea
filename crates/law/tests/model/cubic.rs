//! RFC 9438 section 4 in floats, and the paper of 2008, which differs in two constants.

use crate::{assert_close, cases, Rig};
use lfn_law::ONE;
use proptest::prelude::*;

const C: f64 = 0.4;

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

    fn lose(&mut self) {
        let shrinking = self.w < self.w_max;
        self.w_max = if shrinking { self.w * (1.0 + self.keep) / 2.0 } else { self.w };
        self.prior = self.w;
        self.w *= self.keep;
        self.epoch = None;
    }

    fn ack(&mut self, n: f64, now_s: f64, rtt_s: f64) {
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
        let w_est = epoch.w_est + alpha[usize::from(epoch.w_est >= prior)] * n / w;
        self.w = if curve(t_s) < w_est {
            w_est.clamp(w, w + n)
        } else {
            (w + n * (curve(t_s + rtt_s).clamp(w, 1.5 * w) - w) / w).min(w + n)
        };
        epoch.w_est = w_est;
    }
}

/// A round trip of `acks` ACKs of as many segments each, which are returned.
fn round(rig: &mut Rig, acks: u32, mut each: impl FnMut(f64, f64)) -> u32 {
    let n = (rig.cwnd() as u32 / acks).max(1);
    for _ in 0..acks.min(rig.cwnd() as u32) {
        rig.ack.now_ns += rig.ack.rtt_ns / u64::from(acks.min(rig.cwnd() as u32));
        rig.ack(n);
        each(f64::from(n), rig.ack.now_ns as f64 * 1e-9);
    }
    n
}

fn set_rtt(rig: &mut Rig, rtt_ns: u64) {
    rig.ack.rtt_ns = rtt_ns;
    rig.ack.srtt_ns = rtt_ns;
    rig.ack.min_rtt_ns = rtt_ns;
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
        let (mut rig, mut model) = (Rig::new(spec, peak), Cubic::new(spec, peak));
        set_rtt(&mut rig, rtt_ms * 1_000_000);
        for rounds in rounds {
            rig.lose();
            model.lose();
            for _ in 0..rounds {
                round(&mut rig, 32, |n, now_s| model.ack(n, now_s, rtt_ms as f64 * 1e-3));
            }
            let error = (rig.cwnd() / model.w - 1.0).abs();
            if error > 1e-7 { eprintln!("{spec} {peak} {rtt_ms} {error} {} {}", rig.cwnd(), model.w); }
            prop_assert!(error < 1e-5, "{} {}", rig.cwnd(), model.w);
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

/// Mean window in round trips, losing one segment of every 1/p.
fn mean(spec: &str, p: f64, rtt_ms: u64, guess: f64) -> f64 {
    let (mut rig, mut total, mut rtts) = (Rig::new(spec, guess), 0.0, 0.0);
    set_rtt(&mut rig, rtt_ms * 1_000_000);
    for epoch in 0..60 {
        rig.lose();
        let mut left = 1.0 / p;
        while left > 0.0 {
            let w = rig.cwnd();
            let n = (w as u32 / 32).max(1);
            rig.ack.now_ns += (rig.ack.rtt_ns as f64 * f64::from(n) / w) as u64;
            rig.ack(n);
            left -= f64::from(n);
            if epoch >= 20 {
                total += f64::from(n);
                rtts += f64::from(n) / w;
            }
        }
    }
    total / rtts
}

#[test]
fn a_lossy_path_gives_the_response_function() {
    for spec in ["cubic", "cubic:linux", "cubic:2005", "cubic:ns2"] {
    for (p, rtt_ms, w) in [(5.48e-4,100,52.0),(1e-4, 100, 187.0), (1e-5, 100, 1054.0), (1e-6, 100, 5926.0), (1e-7, 100, 33_325.0)] {
        eprintln!("{spec} {p} {w}: {}", mean(spec, p, rtt_ms, w));
    }}
}
