//! Links that follow a trace of delivery opportunities.

mod common;

use common::{data, no_draw, Driver};
use lfn_path::{Aqm, DeliveryTrace, Limit, QueuedLink, Service, TraceError};
use lfn_units::{Rate, Time};
use proptest::prelude::*;

fn trace(text: &str) -> DeliveryTrace {
    text.parse().expect("valid")
}

/// Of IP packets with so many bytes of framing.
fn framed(text: &str, framing_bytes: u32, packets: u64) -> QueuedLink {
    let service = Service::Trace(trace(text), framing_bytes);
    QueuedLink::new(service, Aqm::DropTail(Box::default()), Limit::packets(packets), 1500)
}

fn driver(text: &str) -> Driver {
    Driver::new(framed(text, 0, u64::MAX >> 8))
}

fn ms(times: &[u64]) -> Vec<Time> {
    times.iter().map(|&ms| Time::from_ms(ms)).collect()
}

#[test]
fn one_line_is_a_constant_rate() {
    assert_eq!(trace("1").mean_rate(), Rate(12_000_000));
    let mut driver = driver("1");
    (0..4).for_each(|word| driver.arrive(Time::ZERO, data(word, 1500)));
    driver.run_to(Time::from_s(1));
    assert_eq!(driver.departures(), ms(&[1, 2, 3, 4]));
    // Until their opportunity comes.
    assert_eq!(driver.link.counters().wait_ps, u128::from(Time::from_ms(10).0));
}

#[test]
fn a_trace_repeats_after_its_last_time() {
    let text = "0\n3\n3\n 10 \r\n\n";
    assert_eq!(trace(text).period(), Time::from_ms(10));
    assert_eq!(trace(text).mean_rate(), Rate(4 * 12_000 * 100));
    let mut driver = driver(text);
    (0..11).for_each(|word| driver.arrive(Time::ZERO, data(word, 1500)));
    driver.run_to(Time::from_s(1));
    assert_eq!(driver.departures(), ms(&[0, 3, 3, 10, 10, 13, 13, 20, 20, 23, 23]));
}

#[test]
fn a_trace_that_begins_later_repeated_before() {
    let departures = |start: Time| {
        let service = Service::Trace(trace("0\n3\n3\n10").beginning_at(start), 0);
        let limit = Limit::packets(u64::MAX >> 8);
        let mut driver = Driver::new(QueuedLink::new(service, Aqm::DropTail(Box::default()), limit, 1500));
        (0..9).for_each(|word| driver.arrive(start, data(word, 1500)));
        driver.run_to(Time::from_s(10_000));
        driver.departures().iter().map(|at| at.since(start)).collect::<Vec<_>>()
    };
    for start_ms in [0, 10, 12, 19, 5000, 4_999_999] {
        // At the beginning ends a round of before, if there was one.
        let all = ms(&[0, 0, 3, 3, 10, 10, 13, 13, 20, 20]);
        let first = usize::from(start_ms == 0);
        assert_eq!(departures(Time::from_ms(start_ms)), all[first..first + 9], "{start_ms} ms");
    }
}

#[test]
fn small_packets_share_an_opportunity() {
    let mut driver = driver("5");
    // 4 of 372 bytes, each with 4 of the device.
    (0..9).for_each(|word| driver.arrive(Time::from_ms(1), data(word, 372)));
    driver.run_to(Time::from_s(1));
    assert_eq!(driver.departures(), ms(&[5, 5, 5, 5, 10, 10, 10, 10, 15]));
}

#[test]
fn an_opportunity_is_a_full_ip_packet_or_26_acks_whatever_their_frame() {
    for framing_bytes in [0, 14] {
        let left_at = |packet_bytes: u32, at: Time| {
            let mut driver = Driver::new(framed("5", framing_bytes, u64::MAX >> 8));
            (0..100).for_each(|word| driver.arrive(Time::ZERO, data(word, packet_bytes + framing_bytes)));
            driver.run_to(at);
            driver.departures().len()
        };
        assert_eq!(left_at(1500, Time::from_ms(5)), 1);
        assert_eq!(left_at(1500, Time::from_ms(500)), 100);
        // 1504 bytes are 26.9 of 52 and 4.
        assert_eq!([5, 10, 15, 20].map(|at| left_at(52, Time::from_ms(at))), [26, 53, 80, 100]);
    }
}

#[test]
fn a_packet_that_comes_at_the_instant_of_an_opportunity_may_use_what_is_left_of_it() {
    let mut driver = driver("5");
    for (at_ms, bytes) in [(5, 500), (5, 996), (5, 1), (15, 1500)] {
        driver.arrive(Time::from_ms(at_ms), data(bytes.into(), bytes));
    }
    driver.run_to(Time::from_s(1));
    assert_eq!(driver.departures(), ms(&[5, 5, 10, 15]));
}

#[test]
fn a_packet_larger_than_what_is_left_waits_for_more() {
    let mut driver = driver("5");
    for bytes in [700, 9000, 100, 720, 100] {
        driver.arrive(Time::ZERO, data(bytes.into(), bytes));
    }
    driver.run_to(Time::from_s(1));
    // Each and 4: 704 and 800 of 9004; 1504 in each of five more; 684 of a seventh, 104 and 716 of 724; 8 and 104.
    assert_eq!(driver.departures(), ms(&[5, 35, 35, 40, 40]));
}

#[test]
fn opportunities_that_nobody_uses_are_lost() {
    let mut driver = driver("1\n2\n3\n4\n100");
    driver.arrive(Time::from_us(2500), data(0, 1500));
    driver.arrive(Time::from_us(3500), data(1, 1500));
    driver.arrive(Time::from_us(3501), data(2, 1500));
    driver.arrive(Time::from_ms(10_000_000), data(3, 1500));
    driver.arrive(Time::from_ms(10_000_000), data(4, 1500));
    driver.run_to(Time::from_s(100_000));
    assert_eq!(driver.departures(), ms(&[3, 4, 100, 10_000_000, 10_000_001]));
}

#[test]
fn the_queue_before_an_opportunity_has_a_limit() {
    let mut driver = Driver::new(framed("5", 0, 2));
    (0..4).for_each(|word| driver.arrive(Time::ZERO, data(word, 1500)));
    assert_eq!(driver.dropped_words(), [2, 3]);
    driver.run_to(Time::from_s(1));
    assert_eq!(driver.words(), [0, 1]);
}

#[test]
fn a_trace_has_no_rate_to_change() {
    let mut link = framed("5", 0, 2);
    link.enqueue(Time::ZERO, data(0, 1500), no_draw, &mut Vec::new());
    assert_eq!(link.set_rate(Time::ZERO, Rate(1)), None);
    assert_eq!((link.free_at(), link.rate()), (Time::from_ms(5), Rate(2_400_000)));
}

#[test]
fn errors_name_the_line() {
    let error = |text: &str| text.parse::<DeliveryTrace>().expect_err("invalid");
    assert_eq!(error(""), TraceError::Empty);
    assert_eq!(error("\n \n"), TraceError::Empty);
    for bad in ["x", "-1", "+1", "1.5", "1 2", "99999999999999999999999"] {
        assert_eq!(error(&format!("1\n\n{bad}\n4")), TraceError::NotANumber { line: 3, got: bad.into() });
    }
    assert_eq!(error("1\n5\n4\n"), TraceError::TimeGoesBack { line: 3, before: 5, got: 4 });
    assert_eq!(error("0\n0\n"), TraceError::NoPeriod { line: 2 });
    let most = u64::MAX / 1_000_000_000;
    assert_eq!(error(&format!("{}", most + 1)), TraceError::TooLate { line: 1, got: most + 1 });
    assert_eq!(error("1\n5\n4\n").to_string(), "line 3: time goes back from 5 ms to 4 ms");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Against a walk over every opportunity.
    #[test]
    fn departures_and_bytes_are_those_of_a_walk_over_the_trace(
        gaps in prop::collection::vec(0..4u64, 1..20),
        last in 1..4u64,
        arrivals in prop::collection::vec((0..6_000u64, 20..4000u32), 1..60),
        framing_bytes in prop::sample::select(vec![0, 14]),
        restart in 0..60usize,
    ) {
        let mut times: Vec<u64> =
            gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
        times.push(times[times.len() - 1] + last);
        let text: Vec<String> = times.iter().map(u64::to_string).collect();
        let mut driver = Driver::new(framed(&text.join("\n"), framing_bytes, u64::MAX >> 8));
        let (mut now, mut began) = (0, Time::ZERO);
        let mut waiting = std::collections::VecDeque::new();
        let mut looks = Vec::new();
        for (word, &(gap_us, bytes)) in (0..).zip(&arrivals) {
            // Half of them at whole milliseconds.
            now += if gap_us % 2 == 0 { gap_us / 1000 * 1000 } else { gap_us };
            let at = Time::from_us(now);
            driver.run_to(at);
            if word == restart as u64 {
                driver.link.reset_counters(at);
                began = at;
            }
            looks.push((began, at, driver.link.snapshot(at)));
            driver.arrive(at, data(word, bytes));
            waiting.push_back((at, bytes + 4 - framing_bytes));
        }
        let end = driver.link.snapshot(Time::from_us(now));
        driver.run_to(Time::from_s(100));

        let period = times[times.len() - 1];
        let (mut expected, mut used) = (Vec::new(), Vec::new());
        for opportunity in (0..).flat_map(|round| times.iter().map(move |at| round * period + at)) {
            let now = Time::from_ms(opportunity);
            let mut left = 1504;
            while let Some((arrived, bytes)) = waiting.front_mut().filter(|(arrived, _)| *arrived <= now) {
                let sent = left.min(*bytes);
                (left, *bytes) = (left - sent, *bytes - sent);
                if *bytes > 0 {
                    // Under way: what is left of it comes first, whenever it is.
                    *arrived = Time::ZERO;
                    break;
                }
                expected.push(now);
                waiting.pop_front();
            }
            used.push((now, 1504 - left));
            if waiting.is_empty() {
                break;
            }
        }
        let departures = driver.departures();
        prop_assert_eq!(&departures, &expected);
        let leaves = departures[departures.len() - 1];
        prop_assert!((end.drain_s - (leaves - Time::from_us(now)).as_s()).abs() < 1e-9, "{:?}", end);
        for (began, at, seen) in looks {
            let within = || used.iter().filter(|(time, _)| (began..at).contains(time));
            let sent: u32 = within().map(|(_, bytes)| bytes).sum();
            prop_assert_eq!(seen.sent_bytes, f64::from(sent), "{:?} to {:?}: {:?}", began, at, used);
            prop_assert_eq!(seen.capacity_bytes, within().count() as f64 * 1504.0);
        }
    }
}
