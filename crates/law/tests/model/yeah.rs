//! Baiocchi, Castellani & Vacirca: Scalable without a queue, Reno with one, and precaution above 80 segments.

use crate::{assert_close, cases, Rig};
use lfn_law::ACK_ROUND_START;
use proptest::prelude::*;

/// A window that has met `base_us`, then a round trip of `rtt_us`, at the first ACK after it.
fn after_a_round(spec: &str, w: f64, base_us: u64, rtt_us: u64) -> Rig {
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
    rig.ack(1);
    rig.ack.flags &= !ACK_ROUND_START;
    rig
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn mode_precaution_and_loss_follow_the_queue(
        w in (200f64.log2()..22.0).prop_map(f64::exp2),
        base_us in 1000u64..1_000_000,
        queued in 0f64..200.0,
    ) {
        let rtt_us = (base_us as f64 * (1.0 + queued / w)) as u64;
        let q = |w: f64| w * (1.0 - base_us as f64 / rtt_us as f64);
        let mut rig = after_a_round("yeah", w, base_us, rtt_us);
        // The window at the end of the round: five ACKs of Scalable's hundredth.
        let before = w + 5.0 * (1.0 / w).max(0.01);
        let slow = q(before) > 80.0 || rtt_us - base_us > base_us / 8;
        if (q(before) - 80.0).abs() < 1e-3 {
            return Ok(());
        }
        let wanted = if q(before) > 80.0 { before - q(before).min(before / 2.0) } else { before };
        prop_assert!((rig.cwnd() - wanted).abs() < 1e-4 + 1e-9 * w, "{}, not {wanted}", rig.cwnd());
        prop_assert_eq!(rig.probes()[2], u64::from(slow));

        let w = rig.cwnd();
        let gain = if slow { 1.0 } else { (w / 100.0).max(1.0) };
        rig.ack(1);
        let wanted = (gain.min(65535.0) / w).min(1.0);
        prop_assert!((rig.cwnd() - w - wanted).abs() < wanted * 2e-5 + 4e-9);

        let w = rig.cwnd();
        let cut = q(before).min(w / 2.0).max(w / 8.0);
        prop_assert!((rig.lose() * w - (w - cut)).abs() < 1e-4 + 1e-8 * w);
    }
}

/// Over a queue that never overflows the window climbs to 80 queued segments and empties the queue.
#[test]
fn a_flow_empties_the_queue_at_80_segments() {
    for spec in ["yeah", "yeah:linux"] {
        let bdp = 2000.0;
        let mut rig = Rig::new(spec, bdp);
        let (mut most, mut least) = (0f64, f64::MAX);
        for i in 0..300 {
            rig.ack.rtt_ns = (1e8 * (rig.cwnd() / bdp).max(1.0)) as u64;
            rig.round();
            if i > 100 {
                most = most.max(rig.cwnd() - bdp);
                least = least.min(rig.cwnd() - bdp);
            }
        }
        // A hundredth of the window a round trip, noticed one round trip late.
        assert!((80.0..145.0).contains(&most), "{spec}: {most} queued at most");
        assert!((-5.0..25.0).contains(&least), "{spec}: {least} queued at least");
    }
}

/// Slow for 16 round trips, and a loss halves; the estimate of a Reno flow grows meanwhile.
#[test]
fn a_loss_halves_beside_reno() {
    let mut rig = after_a_round("yeah", 1000.0, 100_000, 150_000);
    let first = rig.probes()[1];
    for _ in 0..16 {
        rig.round();
    }
    // The first of the 16 had too few samples.
    assert_eq!(rig.probes()[1], first + 15);
    assert_close(rig.lose(), 0.5, 1e-6);
}
