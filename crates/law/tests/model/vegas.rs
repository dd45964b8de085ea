//! Brakmo & Peterson: once a round trip, diff = w (1 - base/RTT); + 1 below 2, - 1 above 4.

use crate::{cases, window, Rig};
use proptest::prelude::*;

/// A window that has met `base_us`, then a round trip of `rtt_us`, at the first ACK after it.
fn after_a_round(spec: &str, w: f64, base_us: u64, rtt_us: u64) -> (f64, f64) {
    let mut rig = Rig::new(spec, w);
    rig.ack.rtt_ns = base_us * 1000;
    rig.ack(1);
    rig.ack.rtt_ns = rtt_us * 1000;
    rig.ack.flags |= lfn_law::ACK_ROUND_START;
    rig.ack(1);
    rig.ack.flags &= !lfn_law::ACK_ROUND_START;
    for _ in 0..3 {
        rig.ack(1);
    }
    let before = rig.cwnd();
    rig.ack.flags |= lfn_law::ACK_ROUND_START;
    // Linux's round ends when more is delivered than was in flight as it began.
    rig.ack.delivered += w as u64;
    rig.ack(1);
    (before, rig.cwnd())
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn the_step_follows_the_queue(
        w in window(4.0),
        base_us in 100u64..1_000_000,
        queued in 0f64..8.0,
    ) {
        for (spec, linux) in [("vegas", false), ("vegas:linux", true)] {
            let rtt_us = (base_us as f64 * (1.0 + queued / w)) as u64;
            let (before, after) = after_a_round(spec, w, base_us, rtt_us);
            let (base, rtt) = (base_us as f64, rtt_us as f64);
            let diff = if linux { (before.floor() * (rtt - base) / base).floor() } else { before * (1.0 - base / rtt) };
            let wanted = match diff {
                d if d < 2.0 => 1.0,
                d if d > 4.0 && before >= 3.0 => -1.0,
                _ => 0.0,
            };
            // A queue within 2^-15 of a threshold may fall on either side of it.
            if linux || [2.0, 4.0].iter().all(|edge: &f64| (diff - edge).abs() > 4e-5) {
                prop_assert!((after - before - wanted).abs() < 1e-6, "{spec}: diff {diff}: {}", after - before);
            }
        }
    }
}

/// One flow over a fluid queue settles with alpha to beta segments in it, at any bandwidth-delay product.
#[test]
fn a_flow_keeps_two_to_four_segments_in_the_queue() {
    for spec in ["vegas", "vegas:linux"] {
        for bdp in [50.0, 1000.0] {
            let mut rig = Rig::new(spec, bdp * 0.9);
            for _ in 0..(bdp * 0.2) as u32 + 10 {
                let rtt_s = 0.1 * (rig.cwnd() / bdp).max(1.0);
                rig.ack.rtt_ns = (rtt_s * 1e9) as u64;
                rig.round();
            }
            let queued = rig.cwnd() - bdp;
            assert!((2.0..=4.1).contains(&queued), "{spec}: {queued} segments queued");
        }
    }
}
