//! draft-ietf-ccwg-bbr: bounds from loss, and the cycle of probing.

use crate::{cases, Rig};
use lfn_law::{Config, LawSpec, Rate, ACK_CWND_LIMITED, CONFIG_NO_SACK};
use proptest::prelude::*;

const STATE: usize = 0;
const LONG: usize = 4;
const SHORT: usize = 5;
const BW_SHORT: usize = 6;
const DOWN: u64 = 2;
const CRUISE: u64 = 3;
const REFILL: u64 = 4;
const UP: u64 = 5;
const PROBE_RTT: u64 = 6;

/// A flow in the cycle of probing, that has `bdp` segments in flight each 100 ms.
fn settled(bdp: u64) -> Rig {
    let mut rig = Rig::new("bbr3", 10.0);
    while rig.probes()[STATE] != CRUISE {
        round(&mut rig, bdp, 0);
    }
    rig
}

/// A round trip of a pipe that carries `bdp` segments in it, and loses `lost` of them, which the flow
/// detects at its end.
fn round(rig: &mut Rig, bdp: u64, lost: u32) {
    let inflight = bdp.min(rig.cwnd() as u64);
    let mut rate = Rate {
        delivered: rig.ack.delivered,
        prior_delivered: rig.ack.delivered,
        tx_in_flight: inflight as u32,
        ..Rate::default()
    };
    for _ in 0..lost {
        rate.lost += 1;
        rig.law.controller().unwrap().on_lost(rig.ack.now_ns, &rate, &rig.control);
    }
    rig.steer(bdp, inflight);
}

fn until(rig: &mut Rig, bdp: u64, state: u64) {
    for _ in 0..200 {
        if rig.probes()[STATE] == state {
            return;
        }
        round(rig, bdp, 0);
    }
    panic!("never in state {state}: {:?}", rig.probes());
}

proptest! {
    #![proptest_config(cases(500))]

    /// InflightAtLoss: where the losses passed 2 % of what was in flight, and at least 0.7 of the BDP.
    #[test]
    fn the_long_term_bound_is_where_losses_passed_two_percent(
        bdp in 100u64..100_000,
        flight in 0.2f64..2.0,
        lost_before in 0.0f64..1.0,
    ) {
        let mut rig = settled(bdp);
        until(&mut rig, bdp, UP);
        let in_flight = (flight * bdp as f64).floor();
        let lost_before = (lost_before * 0.02 * in_flight).floor();
        // The loss that is one too many: those before it were within 2 %.
        let lost = (0.02 * in_flight).floor() + 1.0;
        let rate = Rate {
            delivered: rig.ack.delivered,
            lost: lost as u64,
            tx_in_flight: in_flight as u32,
            ..Rate::default()
        };
        let within = Rate { lost: lost_before as u64, ..rate };
        rig.law.controller().unwrap().on_lost(rig.ack.now_ns, &within, &rig.control);
        prop_assert_eq!((rig.probes()[LONG], rig.probes()[STATE]), (0, UP));
        rig.law.controller().unwrap().on_lost(rig.ack.now_ns, &rate, &rig.control);
        let prefix = (0.02 * (in_flight - 1.0) - (lost - 1.0)) / 0.98;
        let wanted = (in_flight - 1.0 + prefix.max(0.0)).max(0.7 * bdp as f64);
        let found = rig.probes()[LONG] as f64;
        prop_assert!((found - wanted).abs() <= 2.0, "{found}, not {wanted}");
        prop_assert_eq!(rig.probes()[STATE], DOWN);
    }

    /// A lossy round trip outside the probes: bounds of 0.7 of the last ones, or what was delivered.
    #[test]
    fn short_term_bounds_follow_a_lossy_round_down(bdp in 100u64..100_000, delivered in 0.1f64..1.0) {
        let mut rig = settled(bdp);
        let less = (delivered * bdp as f64) as u64;
        round(&mut rig, less, 0);
        let cwnd = rig.cwnd();
        round(&mut rig, less, 1);
        prop_assume!(rig.probes()[STATE] == CRUISE);
        let (short, bw) = (rig.probes()[SHORT] as f64, rig.probes()[BW_SHORT] as f64);
        prop_assert!((short - (0.7 * cwnd).max(less as f64)).abs() <= 1.0, "{short} after {cwnd}");
        let per_us = bw / f64::from(1 << 24);
        let wanted = (0.7 * bdp as f64).max(less as f64) / 1e5;
        prop_assert!((per_us / wanted - 1.0).abs() < 0.001, "{per_us}, not {wanted}");
        until(&mut rig, bdp, REFILL);
        prop_assert_eq!((rig.probes()[SHORT], rig.probes()[BW_SHORT]), (0, 0));
    }
}

/// UP raises the bound by 1, 2, 4, ... segments a round trip.
#[test]
fn the_long_term_bound_grows_in_powers_of_two() {
    let mut rig = settled(1000);
    until(&mut rig, 1000, UP);
    let rate = Rate { lost: 100, tx_in_flight: 900, ..Rate::default() };
    rig.law.controller().unwrap().on_lost(rig.ack.now_ns, &rate, &rig.control);
    let bound = rig.probes()[LONG];
    assert_eq!(bound, 899);
    // The probe after a loss is a careful one; it ends as it reaches the bound, and a full one follows.
    rig.ack.flags &= !ACK_CWND_LIMITED;
    until(&mut rig, 890, UP);
    round(&mut rig, 899, 0);
    assert_eq!(rig.probes()[STATE], DOWN);
    until(&mut rig, 890, UP);
    rig.ack.flags |= ACK_CWND_LIMITED;
    // A new minimum: no probe of the RTT for a while.
    rig.ack.rtt_ns -= 1000;
    let mut bounds = Vec::new();
    // Later the one ACK a round trip of this path, which the window follows late, looks like a plateau.
    for _ in 0..4 {
        round(&mut rig, 890, 0);
        bounds.push(rig.probes()[LONG]);
    }
    let steps: Vec<u64> = bounds.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for pair in steps.windows(2) {
        assert!(pair[1] >= 2 * pair[0] - 2 && pair[1] <= 2 * pair[0] + 2, "{bounds:?}");
    }
}

/// Two to three seconds, and 62 or 63 round trips where those are shorter.
#[test]
fn probes_come_every_two_or_three_seconds_or_63_rounds() {
    for (rtt_ms, least_s, most_s) in [(100, 2.0, 3.2), (10, 0.61, 0.68)] {
        let mut rig = Rig::new("bbr3", 10.0);
        rig.ack.rtt_ns = rtt_ms * 1_000_000;
        rig.ack.srtt_ns = rig.ack.rtt_ns;
        let mut went_down_ns = None;
        let mut waits = Vec::new();
        for i in 0..1000 {
            let before = rig.probes()[STATE];
            round(&mut rig, 5000, 0);
            let after = rig.probes()[STATE];
            if before == UP && after == DOWN {
                went_down_ns = Some(rig.ack.now_ns);
            } else if after == PROBE_RTT {
                went_down_ns = None;
            } else if let (true, Some(from_ns)) = (before != REFILL && after == REFILL, went_down_ns) {
                waits.push((rig.ack.now_ns - from_ns) as f64 / 1e9);
            }
            // A new minimum at intervals: no probe of the RTT.
            rig.ack.rtt_ns -= if i % 10 == 0 { 1000 } else { 0 };
        }
        assert!(waits.len() >= 10);
        for wait in waits {
            assert!((least_s..=most_s).contains(&wait), "{rtt_ms} ms: {wait} s");
        }
    }
}

/// Half a BDP for 200 ms, every five seconds.
#[test]
fn the_rtt_is_probed_every_five_seconds_at_half_a_bdp() {
    let mut rig = settled(1000);
    rig.ack.rtt_ns += 1;
    until(&mut rig, 1000, PROBE_RTT);
    let first_ns = rig.ack.now_ns;
    assert!((rig.cwnd() - 500.0).abs() <= 1.0, "{}", rig.cwnd());
    while rig.probes()[STATE] == PROBE_RTT {
        round(&mut rig, 500, 0);
    }
    assert!((200..=500).contains(&((rig.ack.now_ns - first_ns) / 1_000_000)));
    until(&mut rig, 1000, PROBE_RTT);
    let apart_ms = (rig.ack.now_ns - first_ns) / 1_000_000;
    assert!((5000..=5800).contains(&apart_ms), "{apart_ms} ms");
}

/// Without SACK a probe ends at the first loss, with it at more than 2 %.
#[test]
fn without_sack_one_loss_is_too_many() {
    for (flags, wanted) in [(CONFIG_NO_SACK, DOWN), (0, UP)] {
        let mut rig = Rig::new("bbr3", 10.0);
        let config = Config { now_ns: rig.ack.now_ns, mss_B: rig.ack.mss_B, flags, ..Config::default() };
        rig.law = "bbr3".parse::<LawSpec>().unwrap().build(&config, &mut rig.control);
        until(&mut rig, 1000, UP);
        let lost = Rate { lost: 1, tx_in_flight: 1000, ..Rate::default() };
        rig.law.controller().unwrap().on_lost(rig.ack.now_ns, &lost, &rig.control);
        assert_eq!(rig.probes()[STATE], wanted);
    }
}

/// The first rate is 2.77 initial windows in the first RTT, and the window grows until an initial window is delivered.
#[test]
fn the_initial_window_is_the_connections() {
    for initial in [4.0, 10.0, 64.0] {
        let mut rig = Rig::new("bbr3", initial);
        rig.law.controller().unwrap().on_control(&rig.ack, &Rate::default(), &mut rig.control);
        let wanted = 2.77 * initial * f64::from(rig.ack.mss_B) / 0.1;
        let found = rig.control.pacing_Bps as f64;
        assert!((found / wanted - 1.0).abs() < 0.001, "{found}, not {wanted}");
        rig.steer(initial as u64, 0);
        assert_eq!(rig.cwnd(), 2.0 * initial);
    }
}
