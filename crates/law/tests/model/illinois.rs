//! Liu, Basar & Srikant: alpha and b of the mean queueing delay da of a round and the largest, dm.

use crate::{assert_close, cases, Rig};
use lfn_law::ACK_ROUND_START;
use proptest::prelude::*;

const BASE_US: u64 = 50_000;

/// The smallest alpha.
fn least(spec: &str) -> f64 {
    if spec == "illinois:linux" {
        38.0 / 128.0
    } else {
        0.3
    }
}

fn alpha(da: f64, dm: f64, least: f64) -> f64 {
    let d1 = dm / 100.0;
    if da <= d1 {
        return 10.0;
    }
    (dm - d1) * 10.0 / ((dm - d1) + (da - d1) * (10.0 - least) / least)
}

fn b(da: f64, dm: f64) -> f64 {
    (0.125 + 0.375 * (da - 0.1 * dm) / (0.7 * dm)).clamp(0.125, 0.5)
}

/// An ACK that covers all that was sent before the round under way began; `linux` counts deliveries.
fn start_round(rig: &mut Rig) {
    rig.ack.flags |= ACK_ROUND_START;
    rig.ack.delivered += 2000;
    rig.ack(1);
    rig.ack.flags &= !ACK_ROUND_START;
}

/// A window of 1000 that has met queueing delays of 0 and `dm`, then a whole round of `da`.
fn after_a_round(spec: &str, da_us: u64, dm_us: u64) -> Rig {
    let mut rig = Rig::new(spec, 1000.0);
    for delay_us in [0, dm_us] {
        rig.ack.rtt_ns = (BASE_US + delay_us) * 1000;
        rig.ack(1);
    }
    start_round(&mut rig);
    rig.ack.rtt_ns = (BASE_US + da_us) * 1000;
    for _ in 0..10 {
        rig.ack(1);
    }
    start_round(&mut rig);
    rig
}

/// To which alpha and b are rounded down.
fn step(spec: &str) -> (f64, f64) {
    if spec == "illinois:linux" {
        (1.0 / 128.0, 1.0 / 64.0)
    } else {
        (0.0, 0.0)
    }
}

fn found(rig: &Rig) -> (f64, f64) {
    let probes = rig.probes();
    (probes[0] as f64 / 65536.0, probes[1] as f64 / 65536.0)
}

#[test]
fn known_values() {
    // Queueing delays in percent of the largest.
    for (da, alpha, b) in [
        (2, 7.538, 0.125),
        (5, 4.336, 0.125),
        (10, 2.5385, 0.125),
        (20, 1.388, 0.1786),
        (50, 0.588, 0.3393),
        (80, 0.373, 0.5),
        (100, 0.3, 0.5),
    ] {
        let found = found(&after_a_round("illinois", da * 1000, 100_000));
        assert!((found.0 - alpha).abs() < 1e-3 && (found.1 - b).abs() < 1e-4, "{found:?}");
    }
    assert_eq!(found(&after_a_round("illinois:linux", 100_000, 100_000)), (38.0 / 128.0, 0.5));
}

/// Linux's rounds do not follow the sender's: a round begins with the ACK that ended the last one.
#[test]
fn a_round_of_linux_ends_when_what_was_in_flight_at_its_beginning_is_delivered() {
    let mut rig = Rig::new("illinois:linux", 1000.0);
    rig.ack.rtt_ns = BASE_US * 1000;
    start_round(&mut rig);
    let mut b_after = |delivered: u64| {
        rig.ack.rtt_ns = 2 * BASE_US * 1000;
        rig.ack.delivered += delivered;
        rig.ack.flags |= ACK_ROUND_START;
        rig.ack(1);
        found(&rig).1
    };
    // A window of 1000 is in flight; the ACK itself brings one more.
    assert_eq!((b_after(999), b_after(0)), (0.125, 0.5));
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn alpha_and_b_stray_by_less_than_their_card_says(
        dm_us in (1000f64.log2()..20.0).prop_map(f64::exp2),
        share in 0.0101f64..1.0,
    ) {
        let (dm, da) = (dm_us.floor(), (dm_us * share).floor());
        for spec in ["illinois", "illinois:linux"] {
            let found = found(&after_a_round(spec, da as u64, dm as u64));
            if (da - dm / 100.0).abs() <= 1.0 {
                continue;
            }
            // d1 in whole microseconds.
            let (alpha, b) = (alpha(da, dm, least(spec)), b(da, dm));
            let (alpha_bound, (alpha_step, b_step)) = (alpha * (34.0 / dm + 1e-4), step(spec));
            prop_assert!(found.0 > alpha - alpha_bound - alpha_step && found.0 < alpha + alpha_bound, "{spec}: {found:?}");
            prop_assert!(found.1 > b - 2e-5 - b_step && found.1 < b + 2e-5, "{spec}: {found:?}");
        }
    }

    #[test]
    fn growth_and_loss_follow_alpha_and_b(w in (15f64.log2()..24.0).prop_map(f64::exp2), da_us in 0u64..100_000) {
        let mut rig = after_a_round("illinois", da_us, 100_000);
        rig.control.cwnd = lfn_law::Window::of(w);
        let (alpha, b) = found(&rig);
        let before = rig.cwnd();
        rig.ack(1);
        let wanted = (alpha / before).min(1.0);
        prop_assert!((rig.cwnd() - before - wanted).abs() < wanted * 1.6e-5 / before + 4e-9);
        prop_assert!((rig.lose() - (1.0 - b)).abs() < 8e-6 / before + 1e-9);
    }
}

/// After a queue, alpha returns to its maximum with the fifth round in a row without one.
#[test]
fn alpha_waits_for_five_rounds_without_a_queue() {
    let mut rig = after_a_round("illinois", 50_000, 100_000);
    rig.ack.rtt_ns = BASE_US * 1000;
    let mut alphas = Vec::new();
    for _ in 0..5 {
        rig.round();
        alphas.push(found(&rig).0);
    }
    assert!(alphas[..4].iter().all(|&alpha| alpha < 0.6), "{alphas:?}");
    assert_close(alphas[4], 10.0, 1e-9);
}
