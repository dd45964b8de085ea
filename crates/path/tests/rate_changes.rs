//! A rate that changes: in the middle of a packet, several times at one instant, to 0 and back.

mod common;

use common::{data, no_draw, Driver};
use lfn_path::{Aqm, Limit, QueuedLink, Red, RedConfig};
use lfn_units::{Rate, Time};
use proptest::prelude::*;

const GBIT: u64 = 1_000_000_000;

fn link(rate: u64) -> QueuedLink {
    QueuedLink::new(Rate(rate), Aqm::DropTail(Box::default()), Limit::packets(u64::MAX >> 8), 1500)
}

/// A link of 1 Gbit/s with `packets` of 1500 bytes (12 us each) that came at 0.
fn burst(packets: u64) -> Driver {
    let mut driver = Driver::new(link(GBIT));
    for word in 0..packets {
        driver.arrive(Time::ZERO, data(word, 1500));
    }
    driver
}

#[test]
fn the_remaining_bits_leave_at_the_new_rate() {
    let mut driver = burst(2);
    // 4 us at 1 Gbit/s and 8000 bits at 2 Gbit/s.
    assert_eq!(driver.link.set_rate(Time::from_us(4), Rate(2 * GBIT)), Some(Time::from_us(8)));
    assert_eq!(driver.link.free_at(), Time::from_us(8));
    driver.run_to(Time::from_s(1));
    assert_eq!(driver.departures(), [Time::from_us(8), Time::from_us(14)]);
}

#[test]
fn an_event_of_before_the_change_is_stale() {
    let mut driver = burst(1);
    driver.link.set_rate(Time::from_us(4), Rate(GBIT / 2));
    let mut dropped = Vec::new();
    assert_eq!(driver.link.depart(Time::from_us(12), &mut dropped), (None, None));
    assert_eq!(driver.link.packets(), 1);
    assert_eq!(driver.link.depart(Time::from_us(20), &mut dropped).0, Some(data(0, 1500)));
    assert_eq!(driver.link.depart(Time::from_us(20), &mut dropped), (None, None));
}

#[test]
fn the_last_of_several_changes_at_one_instant_counts() {
    let mut driver = burst(1);
    for rate in [1, 77 * GBIT, 0, 3] {
        driver.link.set_rate(Time::from_us(4), Rate(rate));
    }
    assert_eq!(driver.link.set_rate(Time::from_us(4), Rate(2 * GBIT)), Some(Time::from_us(8)));
    assert_eq!(driver.link.rate(), Rate(2 * GBIT));
    driver.link.set_rate(Time::from_us(4), Rate(5));
    // Back to what it was: the event pushed then is the one that counts.
    assert_eq!(driver.link.set_rate(Time::from_us(4), Rate(2 * GBIT)), Some(Time::from_us(8)));
    assert_eq!(driver.link.set_rate(Time::from_us(4), Rate(2 * GBIT)), None);
}

#[test]
fn what_leaves_at_the_instant_of_a_stop_has_left() {
    let mut driver = burst(2);
    assert_eq!(driver.link.set_rate(Time::from_us(12), Rate(0)), None);
    driver.run_to(Time::from_s(1));
    assert_eq!(driver.departures(), [Time::from_us(12)]);
    assert_eq!(driver.link.free_at(), Time::NEVER);
    assert_eq!(driver.link.packets(), 1);
}

#[test]
fn a_link_stopped_in_a_packet_sends_the_rest_of_it() {
    let mut driver = burst(2);
    assert_eq!(driver.link.set_rate(Time::from_us(9), Rate(0)), None);
    assert_eq!(driver.link.free_at(), Time::NEVER);
    driver.run_to(Time::from_s(5));
    assert_eq!(driver.departures(), []);
    assert_eq!(driver.link.set_rate(Time::from_s(6), Rate(0)), None);
    // 3000 bits remain.
    let due = Time::from_s(7) + Time::from_us(30);
    assert_eq!(driver.link.set_rate(Time::from_s(7), Rate(GBIT / 10)), Some(due));
    driver.run_to(Time::from_s(9));
    assert_eq!(driver.departures(), [due, due + Time::from_us(120)]);
    // The second waited for the first, the pause included.
    assert_eq!(driver.link.counters().wait_ps, u128::from(due.0));
}

#[test]
fn a_link_that_stands_still_takes_packets_in_and_drops_what_does_not_fit() {
    let mut driver =
        Driver::new(QueuedLink::new(Rate(0), Aqm::DropTail(Box::default()), Limit::packets(2), 1500));
    for word in 0..4 {
        driver.arrive(Time::from_ms(1), data(word, 1500));
    }
    assert_eq!(driver.dropped_words(), [3]);
    assert_eq!(driver.link.set_rate(Time::from_ms(5), Rate(GBIT)), Some(Time::from_us(5012)));
    driver.run_to(Time::from_s(1));
    assert_eq!(driver.words(), [0, 1, 2]);
}

#[test]
fn an_idle_link_has_nothing_to_reschedule() {
    let mut driver = burst(1);
    driver.run_to(Time::from_ms(1));
    assert_eq!(driver.link.set_rate(Time::from_ms(2), Rate(2 * GBIT)), None);
    driver.arrive(Time::from_ms(3), data(1, 1500));
    assert_eq!(driver.link.free_at(), Time::from_us(3006));
}

#[test]
fn a_change_at_the_instant_of_a_departure_may_come_before_or_after_it() {
    // 3 Gbit/s: 7 bytes take 18666 2/3 ps, so that a remainder is carried over the change.
    let run = |change_first: bool| {
        let mut driver = Driver::new(link(3 * GBIT));
        for word in 0..9 {
            driver.arrive(Time::ZERO, data(word, 7));
        }
        let now = Time(2 * 18_666 + 1);
        driver.run_to(Time(now.0 - 1));
        if !change_first {
            driver.run_to(now);
        }
        driver.link.set_rate(now, Rate(7_000_001));
        driver.run_to(Time::from_s(1));
        driver.departures()
    };
    let departures = run(true);
    assert_eq!(departures[1], Time(37_333));
    assert_eq!(departures, run(false));
}

#[test]
fn red_ages_its_average_at_the_rate_of_today() {
    let run = |change: bool, rate: u64| {
        let red = Red::new(RedConfig::classic(1500), Rate(rate), Time::ZERO).expect("valid");
        let aqm = Aqm::Red(Box::new(red));
        let mut driver = Driver::new(QueuedLink::new(Rate(rate), aqm, Limit::packets(1000), 1500));
        if change {
            driver.link.set_rate(Time::ZERO, Rate(GBIT));
        }
        // An average above min_th of 5 packets; after 10 ms of idleness at 1 Gbit/s (830 packets at
        // a weight of 0.002) it is below, so that nothing is dropped early.
        for round in 0..40 {
            for word in 0..60 {
                driver.arrive(Time::from_ms(round), data(word, 1500));
            }
        }
        driver.link.counters().drops_early
    };
    assert!(run(false, GBIT) > 0);
    assert_eq!(run(true, 10_000_000), run(false, GBIT));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A link that is never idle sends the k-th packet when its work since the beginning is the size
    /// of the first k, whatever its rate was when.
    #[test]
    fn work_is_conserved_to_the_last_bit(
        first in 0..10_000_000_000u64,
        sizes in prop::collection::vec(1..9001u32, 1..100),
        changes in prop::collection::vec(
            (0..200_000_000u64, prop_oneof![Just(0), Just(1_000_003), 1..20_000_000_000u64]), 0..40),
    ) {
        let mut driver = Driver::new(link(first));
        for (word, &bytes) in (0..).zip(&sizes) {
            driver.arrive(Time::ZERO, data(word, bytes));
        }
        let mut segments = vec![(0, first)];
        let mut now = 0;
        for &(gap, rate) in &changes {
            now += gap;
            segments.push((now, rate));
        }
        segments.push((now + 1_000_000, 1_000_000_000));
        for &(at, rate) in &segments[1..] {
            driver.run_to(Time(at));
            driver.link.set_rate(Time(at), Rate(rate));
        }
        driver.run_to(Time::from_s(10));

        let mut expected = Vec::new();
        // In units of 10^-12 bit; a segment's rate counts up to the next one's beginning.
        let mut owed = 0u128;
        let mut segment = 0;
        let mut t = 0;
        for &bytes in &sizes {
            owed += u128::from(bytes) * 8_000_000_000_000;
            loop {
                let rate = u128::from(segments[segment].1);
                let end = segments.get(segment + 1).map_or(u64::MAX, |&(at, _)| at);
                if rate > 0 && owed / rate <= u128::from(end - t) {
                    t += (owed / rate) as u64;
                    owed %= rate;
                    break;
                }
                owed -= rate * u128::from(end - t);
                (t, segment) = (end, segment + 1);
            }
            expected.push(Time(t));
        }
        prop_assert_eq!(driver.departures(), expected);
    }
}

#[test]
fn an_overloaded_link_waits_longer_than_the_histogram_was_made_for() {
    let mut driver =
        Driver::new(QueuedLink::new(Rate(GBIT), Aqm::DropTail(Box::default()), Limit::packets(1000), 1500));
    let mut dropped = Vec::new();
    driver.link.set_rate(Time::ZERO, Rate(GBIT / 1000));
    for word in 0..1001 {
        driver.link.enqueue(Time::ZERO, data(word, 1500), no_draw, &mut dropped);
    }
    driver.run_to(Time::from_s(100));
    // The k-th of 1000 waits k * 12 ms; a bin is at most 0.4 % of the longest.
    for (q, wait_s) in [(0.25, 3.0), (0.5, 6.0), (0.99, 11.88), (1.0, 12.0)] {
        let got = driver.link.counters().wait_quantile(q).as_s();
        assert!((0.0..=0.004 * 12.0 + 0.012).contains(&(got - wait_s)), "{q} {got}");
    }
}
