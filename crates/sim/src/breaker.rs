//! A circuit breaker: it ends a flow that goes on losing packets.

use lfn_keys::{keys, DELAY_MAX};
use lfn_path::LOSS;
use lfn_units::Time;

keys! {
    /// A circuit breaker on the path of a flow (RFC 8084). It counts the flow's data packets that reached the receiver,
    /// and those that queues dropped or links lost, in intervals from the start of the flow on.
    #[derive(Copy)]
    pub struct Breaker {
        /// Share of packets dropped or lost that an interval may have, of all whose fate it saw. An interval without
        /// packets is not above it.
        loss: f64, in LOSS, like "loss = 0.1";
        /// Length of an interval; longer than an RTT.
        interval: Time = Time::from_s(1), in Time::from_ms(1)..=DELAY_MAX;
        /// Intervals in a row above `loss` that end the flow.
        intervals: u32 = 3, in 1..=1_000_000;
    }
}

/// Packets of a flow whose fate is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// They reached the receiver.
    pub arrived: u64,
    /// They did not.
    pub gone: u64,
}

/// Count of a breaker: what it has seen, and how long the flow has been above its bound.
#[derive(Clone, Debug)]
pub(crate) struct Count {
    breaker: Breaker,
    seen: Tally,
    in_a_row: u32,
}

impl Count {
    pub fn new(breaker: Breaker) -> Count {
        Count { breaker, seen: Tally::default(), in_a_row: 0 }
    }

    pub fn interval(&self) -> Time {
        self.breaker.interval
    }

    /// An interval is over, at whose end the flow has this tally. Returns whether that ends the flow.
    pub fn on_interval(&mut self, now: Tally) -> bool {
        let (arrived, gone) = (now.arrived - self.seen.arrived, now.gone - self.seen.gone);
        self.seen = now;
        let above = gone as f64 > self.breaker.loss * (arrived + gone) as f64;
        self.in_a_row = if above { self.in_a_row + 1 } else { 0 };
        self.in_a_row >= self.breaker.intervals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The interval that ends the flow, counted from 1.
    fn trips(intervals: u32, fates: &[(u64, u64)]) -> Option<usize> {
        let mut count = Count::new(Breaker { loss: 0.1, interval: Time::from_s(1), intervals });
        let mut now = Tally::default();
        let ended = fates.iter().position(|&(arrived, gone)| {
            (now.arrived, now.gone) = (now.arrived + arrived, now.gone + gone);
            count.on_interval(now)
        });
        ended.map(|at| at + 1)
    }

    #[test]
    fn only_intervals_in_a_row_count() {
        let (high, low, none) = ((80, 20), (95, 5), (0, 0));
        assert_eq!(trips(3, &[high, high, high]), Some(3));
        assert_eq!(trips(3, &[high, high, low, high, high, high]), Some(6));
        // A flow that sends nothing has reacted.
        assert_eq!(trips(3, &[high, high, none, high, high]), None);
        assert_eq!(trips(1, &[none, low, (0, 1)]), Some(3));
        // At the bound it is not above it.
        assert_eq!(trips(1, &[(90, 10), (89, 11)]), Some(2));
    }
}
