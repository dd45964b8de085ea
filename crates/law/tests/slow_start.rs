//! Slow start against its definition. Vectors of each kind are in laws/cards/slow-start.md.

use lfn_law::card::Block;
use lfn_law::{registry, Ack, Control, Loss, LossKind, SlowStart, SlowStartKind, Window, ACK_PACED};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const ONE: u64 = Window::ONE.q32();
const MAX: u64 = Window::MAX.q32();

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..Default::default() })]

    /// In C and in Rust, on either side of ssthresh.
    #[test]
    fn classic_grows_by_n_up_to_ssthresh(cwnd in ONE..MAX, room in 0u64..70_000 * ONE, n in 0u32..65_536) {
        for kind in [SlowStartKind::Classic, SlowStartKind::HyStart] {
            let ssthresh = (cwnd + room).min(MAX);
            let [start, end] = [cwnd, ssthresh].map(Window::from_q32);
            let mut control = Control { cwnd: start, ssthresh: end, ..Control::new(1) };
            let rest = SlowStart::new(kind).on_ack(n, &Ack::default(), &mut control);
            let grown = control.cwnd.q32();
            prop_assert_eq!(grown, (cwnd + u64::from(n) * ONE).min(ssthresh));
            let used = (grown - cwnd).div_ceil(ONE);
            prop_assert_eq!(u64::from(rest), if grown < ssthresh { 0 } else { u64::from(n) - used });
        }
    }
}

#[test]
fn no_kind_grows_beyond_the_largest_window() {
    for kind in SlowStartKind::ALL {
        let mut control = Control { cwnd: Window::from_q32(MAX - ONE), ..Control::new(1) };
        let rest = SlowStart::new(kind).on_ack(65_535, &Ack::default(), &mut control);
        assert!(control.cwnd <= Window::MAX);
        assert_eq!(rest, 0, "{kind}: nothing is left for congestion avoidance below ssthresh");
    }
}

#[test]
fn limited_slow_start_takes_1665_round_trips() {
    let mut control = Control { ssthresh: Window::INFINITE, ..Control::new(1) };
    let mut slow_start = SlowStart::new(SlowStartKind::Limited);
    let mut rtts = 0;
    while control.cwnd < Window::whole(83_000) {
        for _ in 0..control.cwnd.floor() {
            slow_start.on_ack(1, &Ack::default(), &mut control);
        }
        rtts += 1;
    }
    // log2(100) + (83000 - 100)/50 = 1664.6.
    assert!((1650..=1666).contains(&rtts), "{rtts}");
}

#[test]
fn a_paced_sender_waits_for_a_train_of_the_whole_rtt() {
    for (pacing, flags, train_us) in [(0, 0, 50_500), (1, 0, 101_000), (0, ACK_PACED, 101_000)] {
        let mut control = Control { pacing_Bps: pacing, ..Control::new(100) };
        let mut slow_start = SlowStart::new(SlowStartKind::HyStart);
        let mut ack = Ack { rtt_ns: 100_000_000, srtt_ns: 100_000_000, mss_B: 1448, ..Ack::default() };
        (ack.flags, ack.inflight) = (flags, 5000); // one round lasts throughout
        let mut elapsed_us = 0;
        while control.ssthresh == Window::INFINITE {
            elapsed_us += 100;
            ack.now_ns = elapsed_us * 1000;
            ack.delivered = elapsed_us / 100;
            slow_start.on_sample(&ack, &mut control);
        }
        // The first ACK began the round.
        assert_eq!(elapsed_us - 100, train_us + 100);
    }
}

/// As in Linux a round ends by the cumulative ACK: in recovery the RTTs of later segments are no rise.
#[test]
fn sacks_do_not_end_a_round_of_hystart() {
    let mut control = Control::new(100);
    let mut slow_start = SlowStart::new(SlowStartKind::HyStart);
    let mut ack =
        Ack { rtt_ns: 40_000_000, srtt_ns: 40_000_000, mss_B: 1448, inflight: 100, ..Ack::default() };
    let mut arrive = |rtt_ms: u64, acked: u32| {
        ack.now_ns += 3_000_000;
        (ack.rtt_ns, ack.acked, ack.newly_delivered) = (rtt_ms * 1_000_000, acked, 1);
        ack.delivered += 1;
        slow_start.on_sample(&ack, &mut control);
        control.ssthresh
    };
    arrive(40, 1);
    for _ in 0..200 {
        assert_eq!(arrive(50, 0), Window::INFINITE);
    }
    arrive(50, 101); // and this ACK does
    let left = (0..9).map(|_| arrive(50, 1)).position(|ssthresh| ssthresh != Window::INFINITE);
    assert_eq!(left, Some(7), "the ninth sample of the new round");
}

/// Linux begins a round at the timeout, which the ACK of all that was outstanding ends: before it no train is seen.
#[test]
fn acks_of_a_recovery_after_a_timeout_are_no_train() {
    let mut slow_start = SlowStart::new(SlowStartKind::HyStart);
    let mut control = Control { ssthresh: Window::whole(500), ..Control::new(20) };
    let loss = Loss { kind: LossKind::Rto, inflight: 680, now_ns: 1_540_000_000, ..Loss::default() };
    slow_start.on_loss(&loss, control.ssthresh, &mut control);
    let mut ack =
        Ack { rtt_ns: 20_000_000, srtt_ns: 20_000_000, mss_B: 1448, inflight: 20, ..Ack::default() };
    let mut now_us = 1_612_000;
    let mut arrive = |acked: u32| {
        now_us += 1900;
        (ack.now_ns, ack.acked) = (now_us * 1000, acked);
        slow_start.on_sample(&ack, &mut control);
        control.ssthresh
    };
    for _ in 0..680 {
        assert_eq!(arrive(1), Window::whole(500));
    }
    // The round of the timeout is over; half an RTT is six ACKs, and a millisecond is added for bursts.
    let seen = (0..20).map(|_| arrive(1)).position(|ssthresh| ssthresh != Window::whole(500));
    assert_eq!(seen, Some(6));
}

#[test]
fn hystart_plus_plus_without_limit_when_paced() {
    for (pacing, flags, cwnd) in [(0, 0, 18), (1, 0, 30), (0, ACK_PACED, 30)] {
        let mut control = Control { pacing_Bps: pacing, ..Control::new(10) };
        let ack = Ack { flags, ..Ack::default() };
        SlowStart::new(SlowStartKind::HyStartPlusPlus).on_ack(20, &ack, &mut control);
        assert_eq!(control.cwnd, Window::whole(cwnd));
    }
}

/// For every beta and every share of losses, however they come in: the draft's formula in the card.
#[test]
fn rapid_start_ends_at_beta_times_what_was_delivered() {
    for (beta, lost, acks) in [(0.5, 600, 7), (0.7, 600, 1), (0.7, 0, 10), (0.875, 300, 900), (0.5, 899, 3)] {
        let mut control = Control { ssthresh: Window::INFINITE, ..Control::new(900) };
        let mut slow_start = SlowStart::new(SlowStartKind::Rapid);
        control.ssthresh = Window::of(900.0 * beta);
        let loss = Loss { kind: LossKind::Fast, inflight: 900 - lost, ..Loss::default() };
        slow_start.on_loss(&loss, Window::INFINITE, &mut control);
        // The first ACK finds all losses; the others share the rest, and repairs follow.
        let found = Ack { newly_lost: lost, ..Ack::default() };
        assert!(slow_start.on_recovery(&found, &mut control));
        for ack in 0..acks {
            let share = |k: u32| (900 - lost) * k / acks;
            let ack = Ack { newly_delivered: share(ack + 1) - share(ack), ..Ack::default() };
            assert!(slow_start.on_recovery(&ack, &mut control));
        }
        let repairs = Ack { newly_delivered: lost, newly_lost: 0, ..Ack::default() };
        assert!(slow_start.on_recovery(&repairs, &mut control));
        let (delivered, least) = (f64::from(900 - lost) * beta, 900.0 * beta / 3.0);
        let wanted = delivered.max(least);
        assert!((control.cwnd.segments() - wanted).abs() < 0.1, "{beta} {lost}: {:?}", control.cwnd);
        assert_eq!(control.cwnd, control.ssthresh);
        slow_start.on_open(&mut control);
        assert!(!slow_start.on_recovery(&found, &mut control), "later recoveries are the sender's");
    }
}

/// Window and threshold after statements of cards.
fn after(law: &str, statements: &[&str]) -> (f64, f64) {
    let mut block = Block::default();
    let law = format!("law {law}");
    for statement in std::iter::once(&law.as_str()).chain(statements) {
        let words: Vec<&str> = statement.split_whitespace().collect();
        block.execute(&words).unwrap_or_else(|error| panic!("{law}: {statement}: {error}"));
    }
    (block.field("cwnd").unwrap(), block.field("ssthresh").unwrap())
}

#[test]
fn each_composes_with_every_law_that_uses_one() {
    let laws = registry().iter().filter(|law| law.slow_start != SlowStartKind::None && law.header.is_none());
    let mut pairs = 0;
    for law in laws.map(|law| law.name) {
        for kind in SlowStartKind::ALL {
            // On an empty path no law gets a signal: the growth is that of the slow start alone, except
            // Hybla, which adds 2^rho - 1 for each segment to any of them.
            for (start, rounds) in [("cwnd=10 rtt=100ms", "rounds 3"), ("cwnd=120 rtt=300ms", "rounds 1")] {
                let path = [&*format!("start {start} ssthresh=inf slow_start={kind}"), rounds];
                let (alone, both) = (after(&format!("slow-start:{kind}"), &path), after(law, &path));
                assert!(both == alone || law == "hybla" && both.0 > alone.0, "{law} after {kind}: {both:?}");
                assert_eq!(alone.1, f64::INFINITY, "{kind}");
            }
            // The HyStarts react to a queue before every law.
            let start = format!("start cwnd=32 rtt=25ms ssthresh=inf slow_start={kind}");
            let queue = [&*start, "rounds 1", "ack x=40 every=1ms rtt=40ms", "rounds 7"];
            if [SlowStartKind::HyStart, SlowStartKind::HyStartPlusPlus].contains(&kind) {
                assert!(after(law, &queue).1.is_finite(), "{law} after {kind}");
            } else {
                assert!(after(&format!("slow-start:{kind}"), &queue).1.is_infinite(), "{kind}");
            }
            // At the threshold the law takes over; it does not depend on the slow start.
            let over = |kind| format!("start cwnd=64 ssthresh=64 slow_start={kind}");
            let steady = |kind| after(law, &[&over(kind), "rounds 8", "loss fast", "rounds 8"]);
            assert_eq!(steady(kind), steady(SlowStartKind::Classic), "{law} after {kind}");
            pairs += 1;
        }
    }
    assert!(pairs >= 7 * 20, "{pairs}");
}

#[test]
fn every_kind_prints_and_parses() {
    let all = SlowStartKind::ALL.into_iter().chain([SlowStartKind::None]);
    for (kind, name) in all.zip(SlowStartKind::NAMES) {
        assert_eq!(kind.name(), *name);
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    assert_eq!(
        "hystart+".parse::<SlowStartKind>().unwrap_err().to_string(),
        "no slow start \"hystart+\"; did you mean \"hystart\"? slow starts: \
         classic, limited, hystart, hystart++, rapid, search, careful-resume, none"
    );
}
