//! CoDel, controlled delay (Nichols, Jacobson; RFC 8289): drops at departure while packets have stood
//! in the queue for more than a target during a whole interval, ever more often as long as they do.
//!
//! With the rules of Linux, which differ from the RFC in the mark (below), in the clock, which counts units of 1024 ns,
//! and in the square root: each drop improves the last one's root by one step of Newton's iteration, so the second drop
//! comes after 0.5 of an interval, not 0.71.

use lfn_keys::{keys, Wrong, DELAY_MAX};
use lfn_units::Time;

use crate::counters::Ledger;
use crate::fifo::{Fifo, Waiting};
use crate::rule::{Parameters, Rule, Site};
use lfn_header::Ecn;

/// Unit of Linux's clock for CoDel (measured).
const UNIT: Time = Time::from_ns(1024);
/// 1/sqrt(count) as Linux keeps it, in 2^-16.
const ROOT_ONE: u64 = 0xffff;
/// After a pause shorter than this many intervals, dropping resumes near the rate that it had.
const RESUME_INTERVALS: u64 = 16;

keys! {
    /// A queue that keeps its delay near a target by drops at departure. Drops by default, as Linux does by itself.
    #[derive(Copy)]
    pub struct CodelConfig {
        /// Standing delay that is acceptable. RFC 8289 wants 5 to 10 % of the interval.
        target: Time = Time::from_ms(5), in Time::from_us(1)..=DELAY_MAX;
        /// The delay may be above the target for this time: about the longest usual RTT.
        interval: Time = Time::from_ms(100), in Time::from_us(1)..=DELAY_MAX;
        /// Mark packets of flows with `ecn` instead of dropping them.
        ecn: bool = false;
        /// A packet that waited longer is marked if it is ECN-capable, whatever `ecn` says. Default: none.
        ce_threshold: Option<Time> = None, in Time::from_us(1)..=DELAY_MAX;
        /// With `ce_threshold`: only packets whose ECN field is this in the bits of `ce_threshold_mask`; 1 with a mask
        /// of 3 is ECT(1).
        ce_threshold_selector: u32 = 0, in 0..=3;
        /// The bits of the ECN field that `ce_threshold_selector` names.
        ce_threshold_mask: u32 = 0, in 0..=3;
    }
    set {
        /// No drop while at most this waits behind a packet, in bytes: the largest packet.
        mtu_bytes: u32 = 1500;
    }
    settle CodelConfig::check;
}

impl CodelConfig {
    fn check(&mut self, _: &dyn Fn(&str) -> bool) -> Result<(), Wrong> {
        check_selector(self.ce_threshold, self.ce_threshold_selector, self.ce_threshold_mask)
    }
}

/// Refuses a selector without a threshold, or one that no packet can meet.
pub(crate) fn check_selector(threshold: Option<Time>, selector: u32, mask: u32) -> Result<(), Wrong> {
    if threshold.is_none() && (selector | mask) != 0 {
        let key = if selector != 0 { "ce_threshold_selector" } else { "ce_threshold_mask" };
        return Err(Wrong::new("found without ce_threshold", "allowed: with ce_threshold").of(key));
    }
    if selector & !mask != 0 {
        let found = format!("{selector}, which no packet has in the bits of the mask {mask}");
        return Err(Wrong::new(found, "allowed: bits of ce_threshold_mask").of("ce_threshold_selector"));
    }
    Ok(())
}

/// Why a configuration cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("CoDel needs a selector within the bits of its mask, got {selector} and {mask}")]
pub struct CodelError {
    /// `ce_threshold_selector`.
    pub selector: u32,
    /// `ce_threshold_mask`.
    pub mask: u32,
}

impl Parameters for CodelConfig {
    type Rule = Codel;
    type Error = CodelError;

    fn fit(&mut self, packet_bytes: u32) {
        self.mtu_bytes = packet_bytes;
    }

    fn build(self, _: Site) -> Result<Codel, CodelError> {
        let CodelConfig { ce_threshold_selector: selector, ce_threshold_mask: mask, .. } = self;
        if selector & !mask != 0 {
            return Err(CodelError { selector, mask });
        }
        Ok(Codel::new(self))
    }
}

/// The state of one CoDel queue.
#[derive(Clone, Debug)]
pub struct Codel {
    config: CodelConfig,
    /// When the delay will have been above the target for an interval; `None` while it is not above.
    first_above: Option<Time>,
    dropping: bool,
    drop_next: Time,
    /// Drops since dropping began.
    count: u64,
    /// `count` at the first drop of this dropping state; 0 before any.
    last_count: u64,
    /// About 1/sqrt(count), in 2^-16.
    root: u64,
}

impl Codel {
    /// A queue that has seen no packet.
    pub fn new(mut config: CodelConfig) -> Codel {
        (config.target, config.interval) = (whole_units(config.target), whole_units(config.interval));
        config.ce_threshold = config.ce_threshold.map(whole_units);
        Codel {
            config,
            first_above: None,
            dropping: false,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
            root: ROOT_ONE,
        }
    }

    /// The packet to send now: the first of `fifo` that CoDel does not drop. `beside_bytes` wait in other queues of
    /// the same link.
    #[inline(always)]
    pub(crate) fn first(
        &mut self,
        now: Time,
        fifo: &mut Fifo,
        beside_bytes: u64,
        ledger: &mut Ledger,
    ) -> Option<Waiting> {
        let now = whole_units(now);
        let (mut head, may_drop) = self.next(now, fifo, beside_bytes)?;
        if self.dropping || may_drop {
            head = self.first_kept((head, may_drop), now, fifo, beside_bytes, ledger)?;
        }
        if let Some(threshold) = self.config.ce_threshold {
            self.mark_late(now, threshold, &mut head, ledger);
        }
        Some(head)
    }

    /// Marks a packet that waited longer than the threshold, if the selector is for it (Linux: `ce_threshold`).
    #[inline(never)]
    fn mark_late(&self, now: Time, threshold: Time, head: &mut Waiting, ledger: &mut Ledger) {
        let CodelConfig { ce_threshold_selector: selector, ce_threshold_mask: mask, .. } = self.config;
        let field = head.packet.ecn;
        let selected = mask == 0 || field as u32 & mask == selector;
        let late = now.since(whole_units(head.since)) > threshold;
        if late && selected && field.is_capable() && field != Ecn::Ce {
            ledger.mark(&mut head.packet);
        }
    }

    /// The same where the head of the queue may be dropped, or one before it was.
    #[inline(never)]
    fn first_kept(
        &mut self,
        (mut head, mut may_drop): (Waiting, bool),
        now: Time,
        fifo: &mut Fifo,
        beside_bytes: u64,
        ledger: &mut Ledger,
    ) -> Option<Waiting> {
        if self.dropping {
            self.dropping = may_drop;
            while self.dropping && now >= self.drop_next {
                self.count_one();
                if self.marks(&mut head, ledger) {
                    self.drop_next = self.after(self.drop_next);
                    break;
                }
                ledger.drop_early(head.packet);
                (head, may_drop) = self.next(now, fifo, beside_bytes)?;
                self.dropping = may_drop;
                if may_drop {
                    self.drop_next = self.after(self.drop_next);
                }
            }
        } else {
            if !self.marks(&mut head, ledger) {
                ledger.drop_early(head.packet);
                (head, _) = self.next(now, fifo, beside_bytes)?;
            }
            self.dropping = true;
            let recent = self.count - self.last_count;
            let paused = now.since(self.drop_next);
            let soon = paused.0 < RESUME_INTERVALS.saturating_mul(self.config.interval.0);
            if self.last_count > 0 && recent > 1 && soon {
                self.count = recent;
                self.root = improved(self.root, recent);
            } else {
                (self.count, self.root) = (1, ROOT_ONE);
            }
            self.last_count = self.count;
            self.drop_next = self.after(now);
        }
        Some(head)
    }

    /// The head of the queue, and whether it may be dropped. After an empty queue the first one never
    /// may, and that ends dropping.
    #[inline(always)]
    fn next(&mut self, now: Time, fifo: &mut Fifo, beside_bytes: u64) -> Option<(Waiting, bool)> {
        let Some(head) = fifo.pop() else {
            self.first_above = None;
            return None;
        };
        let waiting_bytes = fifo.bytes() + beside_bytes;
        if now.since(whole_units(head.since)) < self.config.target
            || waiting_bytes <= u64::from(self.config.mtu_bytes)
        {
            self.first_above = None;
            return Some((head, false));
        }
        let first_above = *self.first_above.get_or_insert(now.after(self.config.interval));
        Some((head, now > first_above))
    }

    fn marks(&self, head: &mut Waiting, ledger: &mut Ledger) -> bool {
        let marks = self.config.ecn && head.packet.ecn.is_capable();
        if marks {
            ledger.mark(&mut head.packet);
        }
        marks
    }

    /// One more drop.
    fn count_one(&mut self) {
        self.count += 1;
        self.root = improved(self.root, self.count);
    }

    /// Packets were dropped for want of room: the next drops come as if CoDel had dropped them.
    pub fn on_overflow(&mut self, packets: u64) {
        self.count += packets;
    }

    /// The control law: the next drop comes interval / sqrt(count) later.
    fn after(&self, last: Time) -> Time {
        let spacing = (u128::from(self.config.interval.0) * u128::from(self.root)) >> 16;
        last.after(whole_units(Time(spacing as u64)))
    }
}

/// A time on Linux's clock: rounded down to its unit.
fn whole_units(time: Time) -> Time {
    Time(time.0 - time.0 % UNIT.0)
}

/// One step of Newton's iteration towards 1/sqrt(count), `root` (3 - count root^2) / 2, in Linux's arithmetic of 64
/// bits: where `count` rises by more than the step can follow, as when a full FQ-CoDel drops many packets, the
/// result is what is left of a negative number (measured).
fn improved(root: u64, count: u64) -> u64 {
    let root_2_32 = root << 16;
    let square_2_32 = (root_2_32 * root_2_32) >> 32;
    let rest = (3_u64 << 32).wrapping_sub(count.wrapping_mul(square_2_32));
    ((rest >> 2).wrapping_mul(root_2_32) >> 47) & ROOT_ONE
}

impl Rule for Codel {
    fn take(&mut self, now: Time, fifo: &mut Fifo, ledger: &mut Ledger) -> Option<Waiting> {
        self.first(now, fifo, 0, ledger)
    }
}
