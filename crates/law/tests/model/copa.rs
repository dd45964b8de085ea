//! Arun & Balakrishnan: towards RTT_standing/(delta dq) by v/(delta w) a segment; v doubles in one direction.

use crate::{cases, Rig};
use lfn_law::ACK_ROUND_START;
use proptest::prelude::*;

const MS_NS: u64 = 1_000_000;

/// A flow that knows an RTT of `base_us`, and whose standing RTT is `rtt_us`.
fn with_queue(w: f64, base_us: u64, rtt_us: u64) -> Rig {
    let mut rig = Rig::new("copa", w);
    rig.ack.rtt_ns = base_us * 1000;
    rig.law.window().unwrap().on_sample(&rig.ack, &mut rig.control);
    rig.ack.rtt_ns = rtt_us * 1000;
    rig.ack.srtt_ns = rig.ack.rtt_ns;
    for _ in 0..4 {
        rig.ack.now_ns += rig.ack.srtt_ns / 2;
        rig.law.window().unwrap().on_sample(&rig.ack, &mut rig.control);
    }
    rig
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn a_step_goes_towards_the_target(
        w in (4f64.log2()..22.0).prop_map(f64::exp2),
        base_us in 1000u64..200_000,
        dq_us in 0u64..100_000,
        n in 1u32..10,
    ) {
        let mut rig = with_queue(w, base_us, base_us + dq_us);
        prop_assert_eq!(rig.probes()[0], dq_us);
        let before = rig.cwnd();
        rig.ack(n);
        let target = 2.0 * (base_us + dq_us) as f64 / dq_us as f64;
        if (before / target - 1.0).abs() < 1e-4 {
            return Ok(());
        }
        let step = f64::from(n) * (2.0 / before).min(1.0);
        let wanted = if before < target { before + step } else { (before - step).max(2.0) };
        prop_assert!((rig.cwnd() - wanted).abs() < step * 2e-5 + f64::from(n) * 3e-10 + 4e-9);
        let pace = 2.0 * rig.cwnd() / ((base_us + dq_us) as f64 / 1e6) * 1448.0;
        // Set before the window moved, in whole segments a second.
        let moved = 2.0 * step / ((base_us + dq_us) as f64 / 1e6) * 1448.0;
        prop_assert!((rig.control.pacing_Bps as f64 - pace).abs() < moved + 2.0 * 1448.0);
    }
}

/// 1, 1, 1, 2, 4, ... in one direction, 1 at a turn, and at most delta w.
#[test]
fn the_velocity_doubles_after_three_round_trips() {
    let mut rig = with_queue(100.0, 100_000, 100_000);
    let mut velocities = Vec::new();
    for _ in 0..7 {
        rig.ack.flags |= ACK_ROUND_START;
        rig.ack(1);
        velocities.push(rig.probes()[1]);
    }
    assert_eq!(velocities, [1, 1, 1, 2, 4, 8, 16]);
    rig.ack.rtt_ns = 200 * MS_NS;
    rig.ack.srtt_ns = rig.ack.rtt_ns;
    rig.ack.flags &= !ACK_ROUND_START;
    for _ in 0..4 {
        rig.ack.now_ns += rig.ack.srtt_ns / 2;
        rig.ack(100);
    }
    rig.ack.flags |= ACK_ROUND_START;
    rig.ack(1);
    assert_eq!(rig.probes()[1], 1);
}

/// Segment by segment over a bottleneck of `bdp` segments each 100 ms, for a minute: the mean number of segments
/// queued and the utilization after the first ten seconds. Copa lives from the delay of its own feedback, so a
/// fluid does not do.
fn over_a_bottleneck(spec: &str, bdp: f64) -> (f64, f64) {
    let base_s = 0.1;
    let gap_s = base_s / bdp;
    let mut rig = Rig::new(spec, bdp);
    // Segments under way: (acknowledged, sent), in seconds.
    let mut flight = std::collections::VecDeque::new();
    let (mut now_s, mut link_free_s, mut round_sent_s) = (0f64, 0f64, 0.0);
    let (mut queued, mut acked) = (0.0, 0.0);
    while now_s < 60.0 {
        while flight.len() < rig.cwnd() as usize {
            link_free_s = link_free_s.max(now_s) + gap_s;
            flight.push_back((link_free_s + base_s - gap_s, now_s));
        }
        let (arrives_s, sent_s) = flight.pop_front().unwrap();
        now_s = arrives_s;
        rig.ack.now_ns = 1_000_000_000 + (now_s * 1e9) as u64;
        rig.ack.rtt_ns = ((now_s - sent_s) * 1e9) as u64;
        rig.ack.srtt_ns = rig.ack.srtt_ns / 8 * 7 + rig.ack.rtt_ns / 8;
        rig.ack.flags &= !ACK_ROUND_START;
        if sent_s >= round_sent_s {
            round_sent_s = now_s;
            rig.ack.flags |= ACK_ROUND_START;
        }
        rig.ack(1);
        if now_s > 10.0 {
            queued += (now_s - sent_s - base_s) / gap_s;
            acked += 1.0;
        }
    }
    (queued / acked, acked * gap_s / 50.0)
}

#[test]
fn a_flow_keeps_a_few_segments_in_the_queue() {
    for bdp in [100.0, 1000.0] {
        let (queued, utilization) = over_a_bottleneck("copa", bdp);
        assert!((1.0..8.0).contains(&queued), "{bdp}: {queued} queued");
        assert!(utilization > 0.97, "{bdp}: {utilization}");
    }
}

/// Where someone else keeps the queue full, 1/delta grows by one a round trip; a loss halves it.
#[test]
fn beside_a_full_queue_it_competes() {
    let mut rig = with_queue(1000.0, 50_000, 100_000);
    for _ in 0..24 {
        rig.round();
    }
    let claimed = rig.probes()[2];
    assert!((20..=22).contains(&claimed), "1/delta = {claimed}");
    assert_eq!(rig.lose(), 1.0);
    assert_eq!(rig.probes()[2], claimed / 2);
}
