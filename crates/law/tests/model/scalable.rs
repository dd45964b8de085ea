//! Kelly 2003: w += 0.01 a segment, 0.875 w at a loss; Reno up to 16 segments.

use crate::{assert_close, cases, window, Rig};
use proptest::prelude::*;

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn growth_strays_by_less_than_1e_9_a_segment(w in window(16.001), n in 1u32..100) {
        let mut rig = Rig::new("scalable", w);
        let before = rig.cwnd();
        rig.ack(n);
        prop_assert!((rig.cwnd() - before - 0.01 * f64::from(n)).abs() < 1e-9 * f64::from(n) + 4e-9);
    }

    #[test]
    fn a_loss_takes_an_eighth(w in window(16.001)) {
        prop_assert!((Rig::new("scalable", w).lose() - 0.875).abs() < 1e-9);
        for spec in ["scalable:linux", "scalable:ns2"] {
            let whole = w.floor();
            let kept = (Rig::new(spec, w).lose() * w).round();
            prop_assert_eq!(kept, whole - (whole / 8.0).floor());
        }
    }
}

/// Round trips from a loss at `w` back to it.
fn recovery(spec: &str, w: f64) -> u32 {
    let mut rig = Rig::new(spec, w);
    rig.lose();
    let mut rtts = 0;
    while rig.cwnd() < w {
        rig.round();
        rtts += 1;
    }
    rtts
}

#[test]
fn recovery_takes_13_42_round_trips_at_any_window() {
    // ln(8/7)/ln(1.01); and 6.74 at a = 0.02.
    for w in [1e3, 1e4, 1e5] {
        assert_eq!(recovery("scalable", w), 14);
        assert_eq!(recovery("scalable:linux", w), 14);
        assert_eq!(recovery("scalable:ns2", w), 7);
    }
}

#[test]
fn doubling_takes_69_7_round_trips() {
    let mut rig = Rig::new("scalable", 1e4);
    for rtts in 0.. {
        if rig.cwnd() >= 2e4 {
            assert_eq!(rtts, 70);
            break;
        }
        rig.round();
    }
}

#[test]
fn gain_steps_from_1_to_0_16_at_the_legacy_window() {
    for (w, gain) in [(16.0, 0.97), (16.01, 0.16)] {
        let mut rig = Rig::new("scalable", w);
        for _ in 0..16 {
            rig.ack(1);
        }
        // Reno's sum of 1/w over 16 segments stops when the window passes 16.
        let wanted = if w > 16.0 { gain } else { 1.0 / 16.0 + 0.15 };
        assert_close(rig.cwnd() - w, wanted, 1e-6);
    }
}
