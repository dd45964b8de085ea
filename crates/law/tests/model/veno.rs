//! Fu & Liew: N = w (1 - base/RTT); below 3 as Reno, and a loss keeps 4/5; else half as fast, and 1/2.

use crate::{assert_close, cases, window, Rig};
use lfn_law::ACK_ROUND_START;
use proptest::prelude::*;

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn growth_and_loss_follow_the_queue(w in window(4.0), base_us in 100u64..1_000_000, queued in 0f64..6.0) {
        for spec in ["veno", "veno:linux"] {
            let rtt_us = (base_us as f64 * (1.0 + queued / w)) as u64;
            let mut rig = Rig::new(spec, w);
            rig.ack.rtt_ns = base_us * 1000;
            rig.ack.flags |= ACK_ROUND_START;
            rig.ack(1);
            rig.ack.rtt_ns = rtt_us * 1000;
            rig.ack.flags &= !ACK_ROUND_START;
            for _ in 0..3 {
                rig.ack(1);
            }
            rig.ack.flags |= ACK_ROUND_START;
            let before = rig.cwnd();
            rig.ack(1);
            let n = before * (1.0 - base_us as f64 / rtt_us as f64);
            // Linux rounds the queue up to half a segment.
            let least = if spec == "veno" { 3.0 } else { 2.5 };
            if (n - least).abs() < 4e-5 {
                continue;
            }
            let (gain, keep) = if n < least { (1.0, 0.8) } else { (0.5, 0.5) };
            if spec == "veno" {
                let wanted = gain / before;
                let bound = wanted * 1.6e-5 / before + 3e-10 + 4e-9;
                prop_assert!((rig.cwnd() - before - wanted).abs() < bound);
            }
            let w = rig.cwnd();
            // Tenths, so that a whole number stays whole.
            let wanted = if spec == "veno" { w * keep } else { (w.floor() * (keep * 10.0) / 10.0).floor() };
            let kept = rig.lose() * w;
            prop_assert!((kept - wanted.max(2.0)).abs() < 1e-5, "{spec}: {kept}, not {wanted}");
        }
    }
}

/// A sawtooth between W/2 and W takes W/2 round trips without a queue and W with one.
#[test]
fn recovery_takes_twice_as_long_with_a_queue() {
    for spec in ["veno", "veno:linux"] {
        let mut rounds = Vec::new();
        for rtt_ms in [100, 110] {
            let mut rig = Rig::new(spec, 500.0);
            rig.ack(1);
            rig.ack.rtt_ns = rtt_ms * 1_000_000;
            rig.round();
            rig.round();
            let mut count = 0;
            while rig.cwnd() < 1000.0 {
                rig.round();
                count += 1;
            }
            rounds.push(f64::from(count));
        }
        assert_close(rounds[0], 500.0, 0.01);
        assert_close(rounds[1], 1000.0, 0.01);
    }
}
