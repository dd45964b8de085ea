//! Leith & Shorten: alpha = 2(1 - beta) abar(D), beta = RTT_min/RTT_max; and Linux's integers.

use crate::{assert_close, cases, Rig};
use lfn_law::{ACK_CWND_LIMITED, ACK_DISORDER, ACK_OPEN};
use proptest::prelude::*;

const MS_NS: u64 = 1_000_000;

/// The increase in segments a round trip, `d_s` seconds after an event.
pub fn abar(d_s: f64) -> f64 {
    let x = (d_s - 1.0).max(0.0);
    1.0 + 10.0 * x + (x / 2.0).powi(2)
}

/// Its integral.
fn gained(d_s: f64) -> f64 {
    let x = (d_s - 1.0).max(0.0);
    d_s + 5.0 * x * x + x.powi(3) / 12.0
}

/// The window after `epoch_s` seconds in which each of `acks` ACKs a round trip brings as many
/// segments, for the law and for w += n share abar(D)/w. The law has just had its event.
pub fn follow(rig: &mut Rig, share: f64, epoch_s: f64, acks: u64) -> (f64, f64) {
    let (start_ns, step_ns, mut w) = (rig.ack.now_ns, rig.ack.rtt_ns / acks, rig.cwnd());
    while rig.ack.now_ns < start_ns + (epoch_s * 1e9) as u64 {
        rig.ack.now_ns += step_ns;
        let n = (w / acks as f64).ceil();
        rig.ack(n as u32);
        w += n * (share * abar((rig.ack.now_ns - start_ns) as f64 / 1e9) / w).min(1.0);
    }
    (rig.cwnd(), w)
}

/// A flow that has seen RTTs from `rtt_ms` to that divided by `ratio`, just after an event; and
/// the beta that its law should have taken.
fn after_event(spec: &str, cwnd: f64, rtt_ms: u64, ratio: f64) -> (Rig, f64) {
    let mut rig = Rig::new(spec, cwnd);
    rig.ack.rtt_ns = (rtt_ms as f64 / ratio * 1e6) as u64;
    rig.ack(1);
    let ratio = rtt_ms as f64 * 1e6 / rig.ack.rtt_ns as f64;
    rig.ack.rtt_ns = rtt_ms * MS_NS;
    rig.ack.srtt_ns = rig.ack.rtt_ns;
    rig.ack(1);
    rig.lose();
    (rig, ratio.clamp(0.5, 0.8))
}

fn alpha(rig: &Rig) -> f64 {
    rig.probes()[0] as f64 / 65536.0
}

fn beta(rig: &Rig) -> f64 {
    rig.probes()[1] as f64 / 1024.0
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn beta_strays_by_less_than_2_in_1024(rtt_ms in 1u64..500, ratio in 0.2f64..1.0, w in 10f64..1e6) {
        let (rig, wanted) = after_event("htcp", w, rtt_ms, ratio);
        let bound = 1.1 / 1024.0 + 0.001 / rtt_ms as f64;
        prop_assert!(beta(&rig) <= wanted + 0.001 / rtt_ms as f64 && beta(&rig) > wanted - bound);
        prop_assert!((rig.cwnd() / w - wanted).abs() < bound + 1.0 / w);
    }

    #[test]
    fn alpha_strays_by_less_than_its_card_says(
        ratio in 0.3f64..1.0,
        d_us in prop_oneof![0u64..5_000_000, 0u64..480_000_000],
    ) {
        let (mut rig, beta) = after_event("htcp", 1e6, 100, ratio);
        rig.ack.now_ns += d_us * 1000;
        rig.ack(1);
        let d_s = d_us as f64 / 1e6;
        let wanted = 2.0 * (1.0 - beta) * abar(d_s);
        let low = wanted - 0.013 - 0.0011 * (d_s - 1.0).max(0.0);
        prop_assert!(alpha(&rig) >= low && alpha(&rig) <= wanted * 1.0055, "{} {wanted}", alpha(&rig));
    }

    #[test]
    fn the_rule_of_the_fifth(before in 5u32..500, after in 5u32..500) {
        let mut rig = Rig::new("htcp", 1e6);
        let mut epoch = |n: u32| {
            for _ in 0..20 {
                rig.ack.now_ns += 100 * MS_NS;
                rig.ack(n);
            }
            rig.lose();
            beta(&rig)
        };
        epoch(before);
        let steady = 4 * before <= 5 * after && 5 * after <= 6 * before;
        prop_assert_eq!(epoch(after), if steady { 819.0 / 1024.0 } else { 0.5 });
    }

    /// Spec of the module: alpha = 2 max(1, 8 factor/scale) (128 - beta), all in integers.
    #[test]
    fn linux_integers_are_exact(d_ms in 0u64..60_000, rtt_ms in 1u64..500) {
        let mut rig = Rig::new("htcp:linux", 1000.0);
        rig.ack.rtt_ns = rtt_ms * MS_NS;
        rig.ack(100_000);
        rig.ack.now_ns += d_ms * MS_NS;
        rig.ack(1);
        let x = d_ms.saturating_sub(1000);
        let factor = if x > 0 { 1 + (10 * x + (x / 2).pow(2) / 1000) / 1000 } else { 1 };
        let scale = (8 * 1000 / (10 * rtt_ms)).clamp(4, 80);
        prop_assert_eq!(alpha(&rig), (8 * factor / scale).max(1) as f64);
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn a_window_strays_by_less_than_1_3_percent(
        w in (100f64.log2()..17.0).prop_map(f64::exp2),
        rtt_ms in 10u64..300,
        ratio in 0.3f64..1.0,
        epoch_s in 0f64..30.0,
    ) {
        let (mut rig, beta) = after_event("htcp", w, rtt_ms, ratio);
        let (found, wanted) = follow(&mut rig, 2.0 * (1.0 - beta), epoch_s, 50);
        prop_assert!((found / wanted - 1.0).abs() < 0.013, "{found}, not {wanted}");
    }
}

/// ACKs of one segment until a window of four grows. A duplicate in state Open comes first, then ACKs with these flags.
fn acks_until_growth(flags: u32) -> u32 {
    let mut rig = Rig::new("htcp:linux", 4.0);
    rig.ack.rtt_ns = 6 * MS_NS;
    rig.ack.acked = 0;
    rig.ack.newly_delivered = 1;
    rig.law.window().expect("a law of the window").on_sample(&rig.ack, &mut rig.control);
    rig.ack.flags = flags;
    for n in 1..20 {
        rig.ack(1);
        if rig.cwnd() > 4.0 {
            return n;
        }
    }
    panic!("the window does not grow");
}

/// Linux 6.12 on 9.78 Mbit/s x 5.96 ms: after a recovery five ACKs bring a window of four its fifth segment, and the
/// one that ends the recovery is not one of them. In Disorder the first ACK does not count, and later ones count 1.
#[test]
fn an_ack_outside_open_counts_what_the_last_one_in_open_did() {
    assert_eq!(acks_until_growth(ACK_OPEN | ACK_CWND_LIMITED), 5);
    assert_eq!(acks_until_growth(ACK_CWND_LIMITED), 6);
    assert_eq!(acks_until_growth(ACK_OPEN | ACK_DISORDER | ACK_CWND_LIMITED), 6);
}

/// One loss every 1/p segments, beta = 0.5, RTT 100 ms: epoch, peak and mean window.
#[test]
fn deterministic_losses_give_the_cycles_of_the_integral() {
    for (epoch_s, peak, mean, p, n) in [
        (2.0, 141.7, 89.3, 5.60e-4, 1),
        (5.0, 1806.7, 1152.3, 1.736e-5, 1),
        (10.0, 9515.0, 6159.0, 1.624e-6, 4),
        (20.0, 47932.0, 31139.0, 1.606e-7, 32),
    ] {
        let mut rig = Rig::new("htcp", peak / 3.0);
        let mut event_ns = 0;
        for last in [false, false, false, false, false, false, false, true] {
            // The queue before the event, which makes beta one half.
            rig.ack.rtt_ns = 200 * MS_NS;
            rig.ack(1);
            rig.ack.rtt_ns = 100 * MS_NS;
            rig.ack(1);
            let before = rig.cwnd();
            if last {
                assert_close((rig.ack.now_ns - event_ns) as f64 / 1e9, epoch_s, 0.02);
                assert_close(before, peak, 0.02);
                assert_close(1.0 / p * 0.1e9 / (rig.ack.now_ns - event_ns) as f64, mean, 0.02);
            }
            event_ns = rig.ack.now_ns;
            assert!((rig.lose() - 0.5).abs() < 1e-6);
            for _ in 0..(1.0 / p) as u64 / u64::from(n) {
                rig.ack.now_ns += (f64::from(n) * 1e8 / rig.cwnd()) as u64;
                rig.ack(n);
            }
        }
    }
}

#[test]
fn the_integral_has_its_known_values() {
    for (t_s, f) in
        [(1.5, 2.7604), (2.0, 7.0833), (3.0, 23.667), (5.0, 90.333), (10.0, 475.75), (20.0, 2396.58)]
    {
        assert_close(gained(t_s), f, 2e-5);
        let mut rig = Rig::new("htcp", 1e5);
        let (found, _) = follow(&mut rig, 1.0, t_s, 500);
        assert_close(found - 1e5, f / 0.1, 0.02);
    }
}

/// Flows of RTT 50 and 100 ms with events at the same times: windows as 2 : 1, so that rates go
/// with RTT^-2; with RTT scaling windows are equal, and rates go with RTT^-1.
#[test]
fn rtt_fairness_under_synchronised_losses() {
    for (spec, ratio) in [("htcp", 2.0), ("htcp:linux", 1.0), ("htcp:rtt", 1.0)] {
        let windows = [50, 100].map(|rtt_ms| {
            let mut rig = Rig::new(spec, 1000.0);
            rig.ack.rtt_ns = rtt_ms * MS_NS;
            rig.ack.srtt_ns = rig.ack.rtt_ns;
            for _ in 0..15 {
                let end_ns = rig.ack.now_ns + 5_000 * MS_NS;
                while rig.ack.now_ns < end_ns {
                    rig.round();
                }
                rig.lose();
            }
            rig.cwnd()
        });
        assert_close(windows[0] / windows[1], ratio, 0.03);
    }
}
