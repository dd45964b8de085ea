//! RFC 5681: w += 1/w a segment, w/2 at a loss.

use crate::{assert_close, cases, window, Rig, Sawtooth};
use proptest::prelude::*;

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn growth_strays_by_less_than_2e_5_over_w_of_itself(w in window(1.0), n in 1u32..100) {
        let mut rig = Rig::new("reno", w);
        let before = rig.cwnd();
        rig.ack(n);
        let wanted = f64::from(n) * (1.0 / before).min(1.0);
        // And the resolutions of Q32 for each segment and of the float for a window of 2^24.
        let bound = wanted * 1.6e-5 / before + f64::from(n) * 3e-10 + 4e-9;
        prop_assert!((rig.cwnd() - before - wanted).abs() < bound);
    }

    #[test]
    fn a_loss_halves(w in window(4.0)) {
        prop_assert!((Rig::new("reno", w).lose() - 0.5).abs() < 1e-9);
        let whole = w.floor();
        let kept = Rig::new("reno:linux", w).lose() * w;
        prop_assert!((kept - (whole / 2.0).floor()).abs() < 1e-6);
    }
}

#[test]
fn a_hundred_round_trips_follow_the_model() {
    for start in [2.0, 10.0, 1000.0, 20_000.0] {
        let (mut rig, mut w) = (Rig::new("reno", start), start);
        for _ in 0..100 {
            for _ in 0..rig.round() {
                w += 1.0 / w;
            }
        }
        assert_close(rig.cwnd(), w, 1e-6);
    }
}

#[test]
fn sawtooth_has_period_w_2_and_mean_3_4_w() {
    for spec in ["reno", "reno:linux"] {
        let saw = Sawtooth::measure(spec, 1000.0);
        assert_close(saw.rtts, 500.0, 0.005);
        assert_close(saw.mean, 750.0, 0.005);
        assert_close(saw.segments, 3.0 * 1e6 / 8.0, 0.005);
    }
}
