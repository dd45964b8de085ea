//! DualPI2 (RFC 9332, appendix A): a queue for L4S packets beside one for Classic packets. A controller keeps the
//! delay of the Classic queue near a target with a probability p'; Classic packets are dropped or marked with its
//! square, L4S packets marked with k times p', so that flows of either kind get about equal windows. L4S packets are
//! also marked beyond a short delay of their own, and go first.
//!
//! With the names of Linux (6.17 and newer), and its scheduler. As in the RFC signals are evenly spaced, where Linux draws random
//! numbers, and the step has a floor in packets: on a slow link one packet takes longer than the step.

use std::array;

use lfn_keys::{keys, words, Span, Wrong, DELAY_MAX};
use lfn_units::{Rate, Time};

use crate::classes::{ClassCounts, ClassView, Classes};
use crate::counters::Ledger;
use crate::fifo::{Fifo, Waiting};
use crate::limit::{DropReason, QueueState};
use crate::pi::{refuse, Controller, Gains, PiError, Spread};
use crate::rule::{Arrival, Parameters, Rule, Site};
use lfn_header::Ecn;

/// The behaviour from a probability of 1 for L4S packets on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overload {
    /// Packets of both queues are dropped with the Classic probability.
    Drop,
    /// The probability stays there, and the queues grow to their limit.
    Overflow,
}

words! { Overload { Drop = "drop", Overflow = "overflow", } }

keys! {
    /// Two queues for L4S and Classic flows. Packets that are ECT(1) or CE go to the first and are marked at a short
    /// delay, the others to the second, which marks those that are ECN-capable and drops the rest.
    #[derive(Copy)]
    pub struct DualPi2Config {
        /// Delay of the Classic queue that is wanted.
        target: Time = Time::from_ms(15), in Time::from_us(1)..=DELAY_MAX;
        /// From one update of the probability to the next.
        tupdate: Time = Time::from_ms(16), in Time::from_us(100)..=DELAY_MAX;
        /// Weight of the deviation from the target, in Hz.
        alpha: f64 = 0.16, in Span::at_least(0.0);
        /// Weight of the change since the last update, in Hz.
        beta: f64 = 3.2, in Span::at_least(0.0);
        /// L4S packets are marked with so many times the root of the Classic probability.
        coupling_factor: u32 = 2, in 1..=255;
        /// Delay of an L4S packet beyond which it is marked; below `target`.
        step_thresh: Time = Time::from_ms(1), in Time::from_us(1)..=DELAY_MAX;
        /// Above `step_thresh` the probability of a mark rises to 1 over this delay, instead of at once.
        ramp: Time = Time::ZERO, in Time::ZERO..=DELAY_MAX;
        /// The step, or the beginning of the ramp, is at least the time that the link needs for so many of the largest packets.
        floor: u32 = 2, in 0..=1000;
        /// Whether packets of both queues are dropped when all L4S packets are marked ("drop"), or the queues grow
        /// ("overflow").
        overload: Overload = Overload::Drop;
        /// The share of the link in percent that the Classic queue has at least.
        c_protection: u32 = 10, in 1..=99;
        /// Whether ECT(0) packets join the L4S queue too, for scalable flows that cannot send ECT(1), such as Linux's DCTCP.
        any_ect: bool = false;
    }
    set {
        /// The largest packet, in bytes: no signal of the controller while less than two of them wait.
        mtu_bytes: u32 = 1514;
    }
    settle DualPi2Config::settle_rules;
}

impl DualPi2Config {
    fn gains(&self) -> Gains {
        let DualPi2Config { target, tupdate, alpha, beta, .. } = *self;
        Gains { target, tupdate, alpha, beta }
    }

    fn settle_rules(&mut self, _: &dyn Fn(&str) -> bool) -> Result<(), Wrong> {
        self.gains().refuse()?;
        if self.step_thresh >= self.target {
            let found = format!("{}, of a target of {}", self.step_thresh, self.target);
            return refuse("step_thresh", found, "allowed: below target, the delay of the Classic queue");
        }
        Ok(())
    }

    fn check(&self) -> Result<(), PiError> {
        self.gains().check()?;
        let ranges =
            [("coupling_factor", self.coupling_factor, 255), ("c_protection", self.c_protection, 99)];
        for (name, got, high) in ranges {
            if !(1..=high).contains(&got) {
                return Err(PiError::Range { name, got, low: 1, high });
            }
        }
        if self.step_thresh >= self.target {
            return Err(PiError::Step { step: self.step_thresh, target: self.target });
        }
        Ok(())
    }
}

impl Parameters for DualPi2Config {
    type Rule = DualPi2;
    type Error = PiError;

    fn fit(&mut self, packet_bytes: u32) {
        self.mtu_bytes = packet_bytes;
    }

    fn build(self, site: Site) -> Result<DualPi2, PiError> {
        self.check()?;
        Ok(DualPi2::new(self, site.rate))
    }
}

/// L4S and Classic, as indices.
const L: usize = 0;
const C: usize = 1;

/// Steps of a probability from 0 to 1, in Linux.
const FINEST: f64 = (1u64 << 30) as f64;

/// The state of one DualPI2 queue.
#[derive(Debug)]
pub struct DualPi2 {
    config: DualPi2Config,
    k: f64,
    /// Where the native AQM of the L queue begins.
    step: Time,
    pi: Controller,
    queues: [Fifo; 2],
    spread: [Spread; 2],
    counts: [ClassCounts; 2],
    /// Above 0 it is the turn of the Classic queue.
    credit: i64,
}

impl DualPi2 {
    /// Queues that have seen no packet.
    fn new(config: DualPi2Config, rate: Rate) -> DualPi2 {
        let k = f64::from(config.coupling_factor);
        let most = match config.overload {
            Overload::Drop => 1.0,
            // 1/k, in 30 bits below the point as in Linux. Rounded up, the Classic queue would signal one packet early where its
            // probability is the square of this: at 1/9 the sum of nine packets must not exceed 1.
            Overload::Overflow => f64::floor(FINEST / k) / FINEST,
        };
        let mut dual = DualPi2 {
            config,
            k,
            step: config.step_thresh,
            pi: Controller::new(config.gains(), most),
            queues: array::from_fn(|_| Fifo::default()),
            spread: [Spread::default(); 2],
            counts: array::from_fn(|_| ClassCounts::default()),
            credit: 0,
        };
        dual.set_rate(rate);
        dual.reset_credit();
        dual
    }

    /// After a pause the L queue is ahead.
    fn reset_credit(&mut self) {
        self.credit = i64::from(self.config.mtu_bytes) * (2 * i64::from(self.config.c_protection) - 100);
    }

    fn bytes(&self) -> u64 {
        self.queues[L].bytes() + self.queues[C].bytes()
    }

    /// The updates due by `now`, on the older of both heads.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        if self.pi.is_due(now) {
            self.make_up(now);
        }
    }

    #[inline(never)]
    fn make_up(&mut self, now: Time) {
        let [l, c] = [L, C].map(|class| self.queues[class].head_since());
        let oldest = match (l, c) {
            (Some(l), Some(c)) => Some(l.min(c)),
            (l, c) => l.or(c),
        };
        self.pi.catch_up(now, oldest);
    }

    /// Whose turn it is; `None` where nothing waits.
    fn turn(&self) -> Option<usize> {
        match (self.queues[L].is_empty(), self.queues[C].is_empty()) {
            (true, true) => None,
            (false, true) => Some(L),
            (true, false) => Some(C),
            (false, false) => Some(if self.credit <= 0 { L } else { C }),
        }
    }

    /// A packet of this size leaves: where the other queue waits, that costs credit.
    fn charge(&mut self, class: usize, bytes: u32) {
        if !self.queues[1 - class].is_empty() {
            let protection = i64::from(self.config.c_protection);
            let weight = if class == L { protection } else { protection - 100 };
            self.credit += weight * i64::from(bytes);
        }
    }

    /// Probability of the L queue's own AQM (RFC 9332 figure 5) for a packet that waited so long.
    fn native(&self, waited: Time) -> f64 {
        let over = waited.since(self.step);
        if over == Time::ZERO {
            0.0
        } else if over >= self.config.ramp {
            1.0
        } else {
            over.0 as f64 / self.config.ramp.0 as f64
        }
    }

    /// Whether a packet that was at the head, and waited so long, is sent, and with which ECN field; `None`: it is
    /// dropped.
    fn decide(&mut self, class: usize, ecn: Ecn, waited: Time) -> Option<Ecn> {
        let calm = self.bytes() < 2 * u64::from(self.config.mtu_bytes);
        let p = if calm { 0.0 } else { self.pi.p() };
        let coupled = self.k * p;
        let saturated = coupled >= 1.0 && self.config.overload == Overload::Drop;
        if class == L {
            let native = self.native(waited);
            if saturated && self.spread[L].hits(p * p) {
                return None;
            }
            // RFC 9332 figure 7 read literally drops too much where the coupled probability exceeds 1.
            let marks = self.spread[L].hits(coupled.max(native).min(1.0));
            return Some(ecn.marked(marks));
        }
        if !self.spread[C].hits(p * p) {
            return Some(ecn);
        }
        (ecn.is_capable() && !saturated).then(|| ecn.marked(true))
    }
}

impl Rule for DualPi2 {
    fn admit(
        &mut self,
        arrival: &Arrival,
        _: &mut Fifo,
        _: impl FnOnce() -> f64,
        _: &mut Ledger,
    ) -> Result<bool, DropReason> {
        self.catch_up(arrival.now);
        let ecn = arrival.packet.ecn;
        let class = if ecn.is_l4s() || (self.config.any_ect && ecn.is_capable()) { L } else { C };
        let packets = self.queues[L].packets() + self.queues[C].packets();
        let queue = QueueState { packets, bytes: self.bytes(), idle_since: arrival.idle_since };
        if !arrival.limit.admits(queue, arrival.packet.bytes) {
            self.counts[class].drops += 1;
            return Err(DropReason::Full);
        }
        self.queues[class].push(Waiting { packet: arrival.packet, since: arrival.now });
        Ok(false)
    }

    fn keeps(&self) -> Option<(u64, u64)> {
        Some((self.queues[L].packets() + self.queues[C].packets(), self.bytes()))
    }

    fn kept_bytes(&self) -> usize {
        self.queues.iter().map(Fifo::memory_bytes).sum()
    }

    fn take(&mut self, now: Time, _: &mut Fifo, ledger: &mut Ledger) -> Option<Waiting> {
        self.catch_up(now);
        while let Some(class) = self.turn() {
            let Some(mut head) = self.queues[class].pop() else { break };
            let waited = now - head.since;
            let Some(ecn) = self.decide(class, head.packet.ecn, waited) else {
                self.counts[class].drops += 1;
                ledger.drop_early(head.packet);
                continue;
            };
            if ecn != head.packet.ecn {
                self.counts[class].marks += 1;
                ledger.mark(&mut head.packet);
            }
            self.charge(class, head.packet.bytes);
            self.counts[class].send(head.packet.bytes, waited);
            return Some(head);
        }
        self.reset_credit();
        None
    }

    fn set_rate(&mut self, rate: Rate) {
        let bits = u128::from(self.config.floor) * u128::from(self.config.mtu_bytes) * 8;
        let floor = bits * 1_000_000_000_000 / u128::from(rate.0.max(1));
        let floor = Time(u64::try_from(floor).unwrap_or(u64::MAX).min(DELAY_MAX.0));
        self.step = self.config.step_thresh.max(floor);
    }

    fn classes(&self, now: Time) -> Option<Classes<'_>> {
        let view = |class: usize| {
            let queue = &self.queues[class];
            ClassView {
                packets: queue.packets(),
                bytes: queue.bytes(),
                head_waited: queue.head_since().map_or(Time::ZERO, |since| now.since(since)),
                counts: &self.counts[class],
            }
        };
        Some(Classes { probability: self.pi.p(), l4s: view(L), classic: view(C) })
    }

    fn reset_counters(&mut self) {
        self.counts = array::from_fn(|_| ClassCounts::default());
    }
}

#[cfg(test)]
mod tests;
