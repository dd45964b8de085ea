//! Westwood+ that grows by 0.04 a segment from 100 segments on.

use crate::{cases, window, Rig};
use proptest::prelude::*;

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn growth_strays_by_less_than_3e_10_a_segment(w in window(100.001), n in 1u32..100) {
        for spec in ["westwood-s", "westwood-s:paper"] {
            let mut rig = Rig::new(spec, w);
            let before = rig.cwnd();
            rig.ack(n);
            prop_assert!((rig.cwnd() - before - 0.04 * f64::from(n)).abs() < 3e-10 * f64::from(n) + 4e-9);
        }
    }

    #[test]
    fn below_100_segments_and_at_losses_it_is_westwood(w in 2f64..99.0, n in 1u32..10, step_us in 1u64..20_000) {
        for (spec, base) in [("westwood-s", "westwood"), ("westwood-s:linux", "westwood:linux")] {
            let (mut ours, mut theirs) = (Rig::new(spec, w), Rig::new(base, w));
            for rig in [&mut ours, &mut theirs] {
                for _ in 0..20 {
                    rig.ack.now_ns += step_us * 1000;
                    rig.ack(n.min(((100.0 - rig.cwnd()).max(0.0)) as u32));
                }
            }
            prop_assert_eq!(ours.cwnd(), theirs.cwnd());
            ours.lose();
            theirs.lose();
            prop_assert_eq!(ours.cwnd(), theirs.cwnd());
        }
    }
}

#[test]
fn doubling_takes_17_67_round_trips() {
    for spec in ["westwood-s", "westwood-s:linux"] {
        let mut rig = Rig::new(spec, 1e4);
        let mut rtts = 0;
        while rig.cwnd() < 2e4 {
            rig.round();
            rtts += 1;
        }
        assert_eq!(rtts, 18, "{spec}");
    }
}
