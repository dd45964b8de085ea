//! Linux's BBR: the rate of the last RTT, its largest value, and what pacing and window follow from it.

use crate::{cases, Rig};
use lfn_law::{Control, CONTROL_APP_LIMITED};
use proptest::prelude::*;

const MSS_BYTES: f64 = 1448.0;
const MODE: usize = 0;
const GAIN: usize = 1;
const STARTUP: u64 = 0;
const PROBE_BW: u64 = 2;
const PROBE_RTT: u64 = 3;

/// Segments a second to bytes a second, with the margin of 1 %.
fn pacing(gain: f64, segments_per_s: f64) -> f64 {
    0.99 * gain * segments_per_s * MSS_BYTES
}

/// A flow whose ACKs have shown `sampled` segments an RTT until the pipe was full and drained.
fn settled(sampled: u64, rtt_us: u64) -> Rig {
    let mut rig = Rig::new("bbr", 10.0);
    rig.ack.rtt_ns = rtt_us * 1000;
    rig.ack.srtt_ns = rig.ack.rtt_ns;
    for _ in 0..12 {
        rig.steer(sampled, sampled);
    }
    rig
}

/// The law's largest rate after each round, the largest of the last three rounds, and that of the last eleven.
fn largest(rates: &[u64]) -> Vec<(f64, f64, f64)> {
    let mut rig = Rig::new("bbr", 10.0);
    let after = |(i, &sampled): (usize, &u64)| {
        rig.steer(sampled, sampled);
        let found = rig.probes()[2] as f64 / f64::from(1 << 24) * 1e5;
        let max = |rounds: usize| *rates[(i + 1).saturating_sub(rounds)..=i].iter().max().unwrap() as f64;
        (found, max(3), max(11))
    };
    rates.iter().enumerate().map(after).collect()
}

/// The pacing rate after the first sample, what it should be, and how far from that it may be.
fn paced(sampled: u64, rtt_us: u64) -> (f64, f64, f64) {
    let mut rig = Rig::new("bbr", 10.0);
    rig.ack.rtt_ns = rtt_us * 1000;
    rig.ack.srtt_ns = rig.ack.rtt_ns;
    rig.steer(sampled, sampled);
    let per_s = sampled as f64 / (rtt_us as f64 / 1e6);
    let first = pacing(2.88671875, 10.0 / (rtt_us as f64 / 1e6));
    let wanted = pacing(2.88671875, per_s).max(first);
    // One part in 2^24 segments/us; slow paths have few.
    (rig.control.pacing_Bps as f64, wanted, 1e-6 + 0.1 / per_s)
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn rate_and_window_follow_the_sample(sampled in 10u64..1_000_000, rtt_us in 100u64..1_000_000) {
        prop_assume!(sampled * 1_000_000 / rtt_us < 200_000_000);
        let (found, wanted, relative) = paced(sampled, rtt_us);
        prop_assert!((found / wanted - 1.0).abs() < relative, "{found}, not {wanted}");
    }

    #[test]
    fn the_window_is_two_bdp_and_three_bursts(sampled in 100u64..100_000, rtt_us in 1000u64..300_000) {
        let mut rig = settled(sampled, rtt_us);
        prop_assume!(rig.probes()[MODE] == PROBE_BW);
        rig.steer(sampled, sampled);
        let per_s = sampled as f64 / (rtt_us as f64 / 1e6);
        let burst = (rig.control.pacing_Bps as f64 / 1024.0).min(65215.0) / MSS_BYTES;
        let extra = rig.probes()[5] as f64;
        let wanted = 2.0 * sampled as f64 + 3.0 * burst.floor().clamp(2.0, 127.0) + extra;
        // Rounded up to the next even number, and two more in the probing phase.
        prop_assert!((rig.cwnd() - wanted).abs() < 5.0 + 2.0 * sampled as f64 / per_s, "{} {wanted}", rig.cwnd());
    }

    #[test]
    fn the_largest_rate_is_of_the_last_ten_rounds(rates in prop::collection::vec(10u64..1000, 30..60)) {
        for (found, least, most) in largest(&rates) {
            prop_assert!(found <= most * 1.01 && found >= least * 0.99, "{found}, not {least} to {most}");
        }
    }
}

/// The filter may forget at once what three rounds in a row have shown, and then knows only the rounds since the first
/// of them was ten rounds old: drawn with seed 8919998.
#[test]
fn the_filter_may_know_three_rounds_only() {
    let mut rates = [10; 29];
    rates[6] = 961;
    rates[15..18].copy_from_slice(&[952, 899, 591]);
    rates[25] = 287;
    let all = largest(&rates);
    assert!(all.iter().all(|&(found, least, most)| found <= most * 1.01 && found >= least * 0.99));
    assert!(all[28].0 < 10.1, "287, three rounds ago, is not known: {}", all[28].0);
}

/// Drawn with seed 4022762762, and rates on both sides of where 64 bits no longer hold rate and margin.
#[test]
fn rates_of_terabits_are_as_exact_as_others() {
    for (sampled, rtt_us) in
        [(820_813, 6038), (249_000, 2000), (250_000, 2000), (251_500, 2000), (507_000, 2000)]
    {
        let (found, wanted, relative) = paced(sampled, rtt_us);
        assert!((found / wanted - 1.0).abs() < relative, "{sampled} in {rtt_us} us: {found}, not {wanted}");
    }
}

#[test]
fn gains_cycle_by_five_quarters_and_three_quarters() {
    let mut rig = settled(1000, 100_000);
    assert_eq!(rig.probes()[MODE], PROBE_BW);
    let mut gains = Vec::new();
    for _ in 0..24 {
        // Every phase takes a round trip: the flight is more than 5/4 of a BDP.
        rig.ack.now_ns += 1000;
        rig.steer(1000, 1400);
        gains.push(rig.probes()[GAIN]);
    }
    let up = gains.iter().position(|&gain| gain == 320).unwrap();
    assert_eq!(gains[up..up + 9], [320, 192, 256, 256, 256, 256, 256, 256, 320]);
}

#[test]
fn cycles_of_different_seeds_begin_in_any_phase_but_the_draining_one() {
    let mut seen = [false; 8];
    for flow in 0..200u32 {
        let seed = flow.wrapping_mul(0x9e37_79b9);
        let mut control = Control::new(10);
        let config = lfn_law::Config { mss_B: 1448, seed, ..lfn_law::Config::default() };
        let law = "bbr".parse::<lfn_law::LawSpec>().unwrap().build(&config, &mut control);
        let mut rig = Rig { law, control, ack: Rig::new("bbr", 10.0).ack };
        rig.ack.now_ns = 0;
        let mut phases = 0;
        while rig.probes()[MODE] != PROBE_BW {
            rig.steer(1000, 1000);
        }
        let first = rig.probes()[GAIN];
        assert_ne!(first, 192);
        while rig.probes()[GAIN] == 256 {
            rig.ack.now_ns += 1000;
            rig.steer(1000, 1400);
            phases += 1;
        }
        seen[phases] = true;
    }
    assert_eq!(seen, [true, true, true, true, true, true, true, false]);
}

#[test]
fn the_smallest_rtt_is_probed_every_ten_seconds_with_four_segments() {
    let mut rig = settled(1000, 100_000);
    rig.ack.rtt_ns += 1;
    let start_ns = rig.ack.now_ns - 11 * rig.ack.rtt_ns;
    while rig.probes()[MODE] != PROBE_RTT {
        rig.steer(1000, 1000);
        assert!(rig.ack.now_ns < start_ns + 10_400_000_000);
    }
    assert!(rig.ack.now_ns > start_ns + 10_000_000_000);
    assert_eq!(rig.cwnd(), 4.0);
    let entered_ns = rig.ack.now_ns;
    while rig.probes()[MODE] == PROBE_RTT {
        let law = rig.law.controller().unwrap();
        let asked = law.on_control(&rig.ack, &lfn_law::Rate::default(), &mut rig.control);
        assert_eq!(asked, CONTROL_APP_LIMITED);
        rig.steer(4, 4);
    }
    let lasted_ms = (rig.ack.now_ns - entered_ns) / 1_000_000;
    assert!((200..=500).contains(&lasted_ms), "{lasted_ms} ms");
    assert!(rig.cwnd() > 2000.0, "the window is back: {}", rig.cwnd());
}

/// A quarter more each round is growth; less in three is a full pipe.
#[test]
fn start_up_ends_after_three_rounds_without_a_quarter_more() {
    let mut rig = Rig::new("bbr", 10.0);
    let mut modes = Vec::new();
    for sampled in [100, 200, 260, 320, 320, 320] {
        rig.steer(sampled, sampled);
        modes.push(rig.probes()[MODE]);
    }
    // 320 is less than a quarter more than 260, which is the last that counts as growth.
    assert_eq!(modes[..5], [STARTUP; 5]);
    assert_ne!(modes[5], STARTUP);
}

/// Two intervals that lose a fifth at one rate: a policer, whose rate holds for 48 round trips.
#[test]
fn a_policer_is_found_and_kept_to() {
    let mut rig = settled(1000, 100_000);
    let mut lost = 0;
    let mut policed = Vec::new();
    for _ in 0..80 {
        rig.ack.now_ns += rig.ack.rtt_ns;
        rig.ack.delivered += 700;
        rig.ack.newly_delivered = 700;
        rig.ack.newly_lost = if policed.last() == Some(&1) { 0 } else { 300 };
        lost += u64::from(rig.ack.newly_lost);
        let rate = lfn_law::Rate {
            delivered: rig.ack.delivered,
            prior_delivered: rig.ack.delivered - 700,
            lost,
            interval_ns: rig.ack.rtt_ns,
            prior_inflight: 1000,
            ..lfn_law::Rate::default()
        };
        rig.law.controller().unwrap().on_control(&rig.ack, &rate, &mut rig.control);
        policed.push(rig.probes()[6]);
        if policed.last() == Some(&1) {
            let wanted = pacing(1.0, 7000.0);
            assert!((rig.control.pacing_Bps as f64 / wanted - 1.0).abs() < 0.01);
        }
    }
    let from = policed.iter().position(|&on| on == 1).expect("found");
    // Two intervals of four.
    assert_eq!(from, 7);
    assert_eq!(policed[from..].iter().take_while(|&&on| on == 1).count(), 48);
}
