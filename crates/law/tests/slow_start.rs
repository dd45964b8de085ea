//! Slow start against its definition. Vectors of each kind are in laws/cards/slow-start.md.

use lfn_law::{Ack, Control, SlowStart, SlowStartKind, INFINITE, MAX_CWND, ONE};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..Default::default() })]

    /// In C and in Rust, on either side of ssthresh.
    #[test]
    fn classic_grows_by_n_up_to_ssthresh(cwnd in ONE..MAX_CWND, room in 0u64..70_000 * ONE, n in 0u32..65_536) {
        for kind in [SlowStartKind::Classic, SlowStartKind::HyStart] {
            let ssthresh = (cwnd + room).min(MAX_CWND);
            let mut control = Control { cwnd, ssthresh, ..Control::new(1) };
            let rest = SlowStart::new(kind).on_ack(n, &Ack::default(), &mut control);
            prop_assert_eq!(control.cwnd, (cwnd + u64::from(n) * ONE).min(ssthresh));
            let used = (control.cwnd - cwnd).div_ceil(ONE);
            prop_assert_eq!(u64::from(rest), if control.cwnd < ssthresh { 0 } else { u64::from(n) - used });
        }
    }
}

#[test]
fn no_kind_grows_beyond_the_largest_window() {
    for kind in SlowStartKind::ALL {
        let mut control = Control { cwnd: MAX_CWND - ONE, ..Control::new(1) };
        let rest = SlowStart::new(kind).on_ack(65_535, &Ack::default(), &mut control);
        assert!(control.cwnd <= MAX_CWND);
        assert_eq!(rest, 0, "{kind}: nothing is left for congestion avoidance below ssthresh");
    }
}

#[test]
fn limited_slow_start_takes_1665_round_trips() {
    let mut control = Control { ssthresh: INFINITE, ..Control::new(1) };
    let mut slow_start = SlowStart::new(SlowStartKind::Limited);
    let mut rtts = 0;
    while control.cwnd < 83_000 * ONE {
        for _ in 0..control.cwnd / ONE {
            slow_start.on_ack(1, &Ack::default(), &mut control);
        }
        rtts += 1;
    }
    // log2(100) + (83000 - 100)/50 = 1664.6.
    assert!((1650..=1666).contains(&rtts), "{rtts}");
}

#[test]
fn a_paced_sender_waits_for_a_train_of_the_whole_rtt() {
    for (pacing_bytes_per_s, train_us) in [(0, 50_500), (1, 101_000)] {
        let mut control = Control { pacing_bytes_per_s, ..Control::new(100) };
        let mut slow_start = SlowStart::new(SlowStartKind::HyStart);
        let mut ack = Ack { rtt_ns: 100_000_000, srtt_ns: 100_000_000, mss_bytes: 1448, ..Ack::default() };
        ack.inflight = 5000; // one round lasts throughout
        let mut elapsed_us = 0;
        while control.ssthresh == INFINITE {
            elapsed_us += 100;
            ack.now_ns = elapsed_us * 1000;
            ack.delivered = elapsed_us / 100;
            slow_start.on_sample(&ack, &mut control);
        }
        // The first ACK began the round.
        assert_eq!(elapsed_us - 100, train_us + 100);
    }
}

#[test]
fn hystart_plus_plus_without_limit_when_paced() {
    let mut control = Control { pacing_bytes_per_s: 1, ..Control::new(10) };
    SlowStart::new(SlowStartKind::HyStartPlusPlus).on_ack(20, &Ack::default(), &mut control);
    assert_eq!(control.cwnd, 30 * ONE);
}

#[test]
fn every_kind_prints_and_parses() {
    for kind in SlowStartKind::ALL.into_iter().chain([SlowStartKind::None]) {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    assert_eq!(
        "hystart+".parse::<SlowStartKind>().unwrap_err().to_string(),
        "no slow start \"hystart+\"; did you mean \"hystart\"? slow starts: classic, limited, hystart, hystart++, none"
    );
}
