//! Jin, Wei & Low: w = min{2w, (1 - gamma) w + gamma (base/RTT w_old + alpha)}.

use crate::{assert_close, cases, Rig};
use lfn_law::ACK_ROUND_START;
use proptest::prelude::*;

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn an_update_follows_the_equation(
        w in (10f64.log2()..22.0).prop_map(f64::exp2),
        base_us in 1000u64..500_000,
        delay_us in 0u64..500_000,
    ) {
        let specs = [
            ("fast", 0.5, 2.0),
            ("fast:every", 0.5, 2.0),
            ("fast:jgn", 1.0, f64::MAX),
            ("fast:eq3", 1.0, f64::MAX),
        ];
        for (spec, gamma, most) in specs {
            let mut rig = Rig::new(spec, w);
            rig.ack.rtt_ns = base_us * 1000;
            rig.ack.acked = 1;
            rig.law.window().unwrap().on_sample(&rig.ack, &mut rig.control);
            // After a loss the average restarts with the next sample.
            rig.lose();
            rig.control.cwnd = lfn_law::Window::of(w);
            rig.control.ssthresh = rig.control.cwnd;
            rig.ack.rtt_ns = (base_us + delay_us) * 1000;
            rig.ack.flags |= ACK_ROUND_START;
            rig.ack(1);
            rig.ack.flags &= !ACK_ROUND_START;
            for _ in 0..64 {
                rig.ack((w / 40.0).ceil() as u32);
            }
            let (base, rtt) = (base_us as f64, (base_us + delay_us) as f64);
            let goal = ((1.0 - gamma) * w + gamma * (base / rtt * w + 200.0)).min(most * w).max(2.0);
            // Growth stops at a segment a segment: here at 1.6 windows more.
            let wanted = goal.min(w + 1.0 + 64.0 * (w / 40.0).ceil());
            prop_assert!((rig.cwnd() - wanted).abs() < 1e-4 + w * 1e-6, "{spec}: {}, not {wanted}", rig.cwnd());
        }
    }
}

/// A fluid path of `bdp` segments at the shortest RTT; the windows of flows, some with a longer RTT, meet in
/// one queue. Returns windows and queue in segments, in the end.
fn settle(spec: &str, rate_pps: f64, base_s: &[f64], start: f64, seconds: f64) -> (Vec<f64>, f64) {
    let mut rigs: Vec<_> = base_s.iter().map(|_| Rig::new(spec, start)).collect();
    let mut next_s = vec![0f64; rigs.len()];
    let queue_s = |rigs: &[Rig]| {
        // The delay at which the windows are carried: sum of w/(base + q) = rate.
        let (mut low, mut high) = (0.0, 10.0);
        for _ in 0..50 {
            let q = (low + high) / 2.0;
            let rate: f64 = rigs.iter().zip(base_s).map(|(rig, base)| rig.cwnd() / (base + q)).sum();
            (low, high) = if rate > rate_pps { (q, high) } else { (low, q) };
        }
        low
    };
    // Everyone knows the empty path.
    for (rig, base) in rigs.iter_mut().zip(base_s) {
        rig.ack.rtt_ns = (base * 1e9) as u64;
        rig.ack.acked = 1;
        rig.law.window().unwrap().on_sample(&rig.ack, &mut rig.control);
    }
    loop {
        let i = (0..rigs.len()).min_by(|&a, &b| next_s[a].total_cmp(&next_s[b])).unwrap();
        if next_s[i] > seconds {
            let queue = queue_s(&rigs);
            return (rigs.iter().map(Rig::cwnd).collect(), queue * rate_pps);
        }
        let rtt_s = base_s[i] + queue_s(&rigs);
        rigs[i].ack.rtt_ns = (rtt_s * 1e9) as u64;
        rigs[i].round();
        next_s[i] += rtt_s;
    }
}

#[test]
fn a_flow_settles_with_alpha_segments_in_the_queue() {
    for spec in ["fast", "fast:every", "fast:jgn"] {
        let (windows, queue) = settle(spec, 83_333.0, &[0.1], 5000.0, 40.0);
        assert_close(queue, 200.0, 0.05);
        assert_close(windows[0], 8533.0, 0.005);
    }
}

#[test]
fn rates_are_equal_whatever_the_rtt() {
    let base_s = [0.05, 0.2];
    let (windows, queue) = settle("fast", 83_333.0, &base_s, 4000.0, 120.0);
    assert_close(queue, 400.0, 0.05);
    let rates: Vec<f64> = windows.iter().zip(base_s).map(|(w, base)| w / (base + queue / 83_333.0)).collect();
    assert_close(rates[0] / rates[1], 1.0, 0.1);
}

#[test]
fn eq3_adds_alpha_each_round_trip_and_jgn_every_other() {
    for (spec, rounds) in [("fast:eq3", 4), ("fast:jgn", 8)] {
        let mut rig = Rig::new(spec, 1000.0);
        rig.ack.rtt_ns = 100_000_000;
        for _ in 0..rounds {
            rig.round();
        }
        assert_close(rig.cwnd(), 1800.0, 0.001);
    }
}

/// The simulator calls on_loss before the sample of the ACK that brings the loss, Linux after it.
#[test]
fn the_ack_that_brings_a_loss_or_a_mark_does_not_begin_the_average() {
    for mark in [false, true] {
        let mut rig = Rig::new("fast", 1000.0);
        let sample = |rig: &mut Rig, rtt_ms: u64, brings: bool| {
            rig.ack.rtt_ns = rtt_ms * 1_000_000;
            rig.ack.newly_lost = u32::from(brings && !mark);
            rig.ack.ce = u32::from(brings && mark);
            rig.law.window().unwrap().on_sample(&rig.ack, &mut rig.control);
        };
        sample(&mut rig, 100, false);
        rig.lose();
        sample(&mut rig, 160, true);
        sample(&mut rig, 100, false);
        assert_eq!(rig.probes()[2], 100_000);
    }
}
