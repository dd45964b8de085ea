//! Stacks as ends: each datagram is told once or lost, with its mark, and runs are equal.

use std::sync::{Arc, Mutex};

use lfn_sim::config::{Config, FlowConfig, LinkConfig, RouteId};
use lfn_sim::{Datagram, Ecn, Sim, Stack, StackConfig, StackCounts};
use lfn_units::{Rate, Time};

/// Datagrams by their numbers: how often each one arrived, and whether it is forgotten.
#[derive(Clone, Default, PartialEq, Debug)]
struct Seen {
    arrived: Vec<u32>,
    forgotten: Vec<bool>,
    marked: u32,
    at: Vec<Time>,
}

/// End 0 sends a window of datagrams of several sizes; end 1 answers each.
struct Windowed {
    window: u64,
    in_flight: u64,
    answers: u64,
    retry: Time,
    ecn: Ecn,
    seen: Arc<Mutex<Seen>>,
}

impl Windowed {
    fn made(&self, bytes: u32, ecn: Ecn) -> Option<Datagram> {
        let mut seen = self.seen.lock().unwrap();
        seen.arrived.push(0);
        seen.forgotten.push(false);
        let id = seen.arrived.len() as u64 - 1;
        Some(Datagram { id, bytes, ecn })
    }
}

impl Stack for Windowed {
    fn poll_transmit(&mut self, end: usize, now: Time) -> Option<Datagram> {
        if end == 1 {
            self.answers = self.answers.checked_sub(1)?;
            return self.made(60, Ecn::NotEct);
        }
        if self.in_flight >= self.window {
            return None;
        }
        self.in_flight += 1;
        self.retry = now + Time::from_s(1);
        self.made(500 + 100 * (self.in_flight as u32 % 10), self.ecn)
    }

    fn handle_datagram(&mut self, end: usize, now: Time, id: u64, ce: bool) {
        let mut seen = self.seen.lock().unwrap();
        assert!(!seen.forgotten[id as usize]);
        seen.arrived[id as usize] += 1;
        seen.marked += u32::from(ce);
        seen.at.push(now);
        match end {
            0 => self.in_flight = self.in_flight.saturating_sub(1),
            _ => self.answers += 1,
        }
    }

    fn timeout(&mut self, end: usize) -> Time {
        if end == 0 {
            self.retry
        } else {
            Time::NEVER
        }
    }

    fn handle_timeout(&mut self, _end: usize, now: Time) {
        (self.in_flight, self.retry) = (0, now + Time::from_s(1));
    }

    fn forget(&mut self, id: u64) {
        let mut seen = self.seen.lock().unwrap();
        assert!(!std::mem::replace(&mut seen.forgotten[id as usize], true));
    }
}

fn run(link: LinkConfig, window: u64, ecn: Ecn) -> (Seen, [StackCounts; 2], String) {
    let flow = FlowConfig::linux("cubic".parse().unwrap(), Time::from_ms(20));
    let config = Config::dumbbell(link, vec![flow], Time::from_s(5));
    let seen = Arc::new(Mutex::new(Seen::default()));
    let stack =
        Windowed { window, in_flight: 0, answers: 0, retry: Time::NEVER, ecn, seen: Arc::clone(&seen) };
    let stack = StackConfig {
        routes: [RouteId(0), RouteId(1)],
        delays: [Time::from_ms(10); 2],
        start: Time::from_ms(100),
        largest_bytes: 1400,
        stack: Box::new(stack),
    };
    let mut sim = Sim::with_stacks(&config, vec![stack]).unwrap();
    sim.run_until(config.duration);
    let counts = sim.stack_counts(0).unwrap();
    assert_eq!(sim.stack_counts(1), None);
    // It ends with an error if a packet is missing or too many.
    let hash = sim.finish().unwrap().summary.hash;
    let seen = seen.lock().unwrap().clone();
    (seen, counts, hash)
}

#[test]
fn each_datagram_arrives_once_or_is_lost() {
    let link = || LinkConfig::drop_tail("", Rate(10_000_000), 20);
    let (seen, [client, server], hash) = run(link(), 30, Ecn::NotEct);
    assert!(client.sent > 800 && client.lost > 10, "{client:?}");
    assert!(seen.arrived.iter().all(|&times| times <= 1));
    assert_eq!(
        seen.arrived.iter().map(|&times| u64::from(times)).sum::<u64>(),
        client.delivered + server.delivered
    );
    assert_eq!(server.sent, client.delivered);
    assert!(client.sent - client.delivered - client.lost <= 30, "{client:?}");
    let gone = seen.forgotten.iter().filter(|&&gone| gone).count() as u64;
    assert_eq!(gone, client.delivered + client.lost + server.delivered + server.lost);
    assert_eq!(seen.marked, 0);
    // No sooner than the delays and its own bits allow, and never at one instant.
    assert!(seen.at[0] > Time::from_ms(110) && seen.at.is_sorted());
    assert_eq!(run(link(), 30, Ecn::NotEct), (seen, [client, server], hash));
}

#[test]
fn a_lone_datagram_takes_the_delays_and_its_bits() {
    // 600 bytes at 100 Mbit/s are 48 us; the flow of TCP begins at 0 and leaves the link before 100 ms.
    let (seen, ..) = run(LinkConfig::drop_tail("", Rate(1_000_000_000_000), 2000), 1, Ecn::NotEct);
    let bits = Time(600 * 8);
    assert!(seen.at[0].since(Time::from_ms(110)) <= Time(bits.0 + Time::from_us(20).0));
    assert!(seen.at[1].since(seen.at[0]) >= Time::from_ms(10));
}

#[test]
fn a_route_that_is_not_there_is_refused() {
    let config = Config::dumbbell(LinkConfig::drop_tail("", Rate(1_000_000), 20), vec![], Time::from_s(1));
    let seen = Arc::new(Mutex::new(Seen::default()));
    let stack = Windowed { window: 1, in_flight: 0, answers: 0, retry: Time::NEVER, ecn: Ecn::NotEct, seen };
    let stack = StackConfig {
        routes: [RouteId(0), RouteId(7)],
        delays: [Time::ZERO; 2],
        start: Time::ZERO,
        largest_bytes: 1400,
        stack: Box::new(stack),
    };
    assert_eq!(Sim::with_stacks(&config, vec![stack]).err().unwrap().to_string(), "there is no route 7");
}
