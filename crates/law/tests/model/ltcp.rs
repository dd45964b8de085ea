//! Bhandarkar, Jain & Reddy: K segments a round trip in layer K; a loss takes 0.15 and at most one layer.

use crate::{assert_close, cases, window, Rig, Sawtooth};
use proptest::prelude::*;

/// W_K.
fn threshold(k: u64) -> f64 {
    (50 * (k + 1) * k * (k - 1) / 6) as f64
}

fn layer(w: f64) -> u64 {
    (1..=200).rfind(|&k| threshold(k) <= w.floor()).unwrap()
}

#[test]
fn thresholds_and_layers() {
    let known = [
        0, 50, 200, 500, 1000, 1750, 2800, 4200, 6000, 8250, 11000, 14300, 18200, 22750, 28000, 34000, 40800,
        48450, 57000, 66500, 77000,
    ];
    for (i, w) in known.into_iter().enumerate() {
        let k = i as u64 + 1;
        assert_eq!(threshold(k) as u64, w);
        assert_eq!(Rig::new("ltcp", f64::from(w as u32).max(1.0)).probes()[0], k);
    }
    for (w, k) in [(49.9, 1), (50.0, 2), (200.0, 3), (1000.0, 5), (5000.0, 8), (10_000.0, 10), (83_333.0, 21)]
    {
        assert_eq!(Rig::new("ltcp", w).probes()[0], k);
    }
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn growth_and_loss_follow_the_layer(w in window(2.0), rtt_ms in 4u64..3000) {
        for (spec, power) in [("ltcp", 0.0), ("ltcp:rtt3", 1.0 / 3.0), ("ltcp:rtt", 1.0)] {
            let mut rig = Rig::new(spec, w);
            rig.ack.srtt_ns = rtt_ms * 1_000_000;
            let before = rig.cwnd();
            let k = layer(before);
            rig.ack(1);
            let factor = (rtt_ms as f64 / 100.0).powf(power);
            let wanted = (k as f64 * factor / before).min(1.0);
            // K_R in 1024ths.
            let bound = wanted * (1.0 / 1024.0 / factor + 2e-5) + 4e-9;
            prop_assert!((rig.cwnd() - before - wanted).abs() < bound, "{spec}: {} of {wanted}", rig.cwnd() - before);

            let before = rig.cwnd();
            let k = rig.probes()[0];
            let kept = rig.lose();
            let wanted: f64 = if k == 1 { 0.5 } else { 0.85 };
            prop_assert!((kept - wanted.max(2.0 / before)).abs() < 1e-7);
            prop_assert_eq!(rig.probes()[0], layer(rig.cwnd()).max(k.max(2) - 1));
        }
    }
}

#[test]
fn sawtooth_has_the_known_mean_and_recovery() {
    // Recovery b W/K round trips with the layer of the peak; mean 1.98/p^0.6 where layers are narrow.
    assert_close(Sawtooth::measure("ltcp", 8333.0).rtts, 125.0, 0.12);
    let saw = Sawtooth::measure("ltcp", 83_333.0);
    assert_close(saw.rtts, 595.0, 0.05);
    assert_close(saw.mean, 1.98 * saw.segments.powf(0.6), 0.03);
}
