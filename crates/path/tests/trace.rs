//! Links that follow a trace of delivery opportunities.

mod common;

use common::{data, no_draw, Driver};
use lfn_path::{Aqm, DeliveryTrace, Limit, QueuedLink, TraceError};
use lfn_units::{Rate, Time};
use proptest::prelude::*;

fn trace(text: &str) -> DeliveryTrace {
    text.parse().expect("valid")
}

fn driver(text: &str) -> Driver {
    Driver::new(QueuedLink::new(
        trace(text),
        Aqm::DropTail(Box::default()),
        Limit::packets(u64::MAX >> 8),
        1500,
    ))
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
fn small_packets_share_an_opportunity() {
    let mut driver = driver("5");
    (0..8).for_each(|word| driver.arrive(Time::from_ms(1), data(word, 500)));
    driver.run_to(Time::from_s(1));
    assert_eq!(driver.departures(), ms(&[5, 5, 5, 10, 10, 10, 15, 15]));
}

#[test]
fn a_packet_that_comes_at_the_instant_of_an_opportunity_may_use_what_is_left_of_it() {
    let mut driver = driver("5");
    for (at_ms, bytes) in [(5, 500), (5, 1000), (5, 1), (15, 1500)] {
        driver.arrive(Time::from_ms(at_ms), data(bytes.into(), bytes));
    }
    driver.run_to(Time::from_s(1));
    assert_eq!(driver.departures(), ms(&[5, 5, 10, 15]));
}

#[test]
fn a_packet_larger_than_what_is_left_waits_for_more() {
    let mut driver = driver("5");
    for bytes in [700, 9000, 100, 701, 100] {
        driver.arrive(Time::ZERO, data(bytes.into(), bytes));
    }
    driver.run_to(Time::from_s(1));
    // 700 and 800 of 9000; 1500 in each of five more; 700 of a seventh, 100 and 700 of 701; 1 and 100.
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
    let link = QueuedLink::new(trace("5"), Aqm::DropTail(Box::default()), Limit::packets(2), 1500);
    let mut driver = Driver::new(link);
    (0..4).for_each(|word| driver.arrive(Time::ZERO, data(word, 1500)));
    assert_eq!(driver.dropped_words(), [2, 3]);
    driver.run_to(Time::from_s(1));
    assert_eq!(driver.words(), [0, 1]);
}

#[test]
fn a_trace_has_no_rate_to_change() {
    let mut link = QueuedLink::new(trace("5"), Aqm::DropTail(Box::default()), Limit::packets(2), 1500);
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
    fn departures_are_those_of_a_walk_over_the_trace(
        gaps in prop::collection::vec(0..4u64, 1..20),
        last in 1..4u64,
        arrivals in prop::collection::vec((0..6_000u64, 1..4000u32), 1..60),
    ) {
        let mut times: Vec<u64> =
            gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
        times.push(times[times.len() - 1] + last);
        let text: Vec<String> = times.iter().map(u64::to_string).collect();
        let mut driver = driver(&text.join("\n"));
        let mut now = 0;
        let mut waiting = std::collections::VecDeque::new();
        for (word, &(gap_us, bytes)) in (0..).zip(&arrivals) {
            // Half of them at whole milliseconds.
            now += if gap_us % 2 == 0 { gap_us / 1000 * 1000 } else { gap_us };
            driver.arrive(Time::from_us(now), data(word, bytes));
            waiting.push_back((Time::from_us(now), bytes));
        }
        driver.run_to(Time::from_s(100));

        let period = times[times.len() - 1];
        let mut expected = Vec::new();
        for opportunity in (0..).flat_map(|round| times.iter().map(move |at| round * period + at)) {
            let now = Time::from_ms(opportunity);
            let mut left = 1500;
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
            if waiting.is_empty() {
                break;
            }
        }
        prop_assert_eq!(driver.departures(), expected);
    }
}
