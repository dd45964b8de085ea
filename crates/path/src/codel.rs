//! CoDel, controlled delay (Nichols, Jacobson; RFC 8289): drops at departure while packets have stood
//! in the queue for more than a target during a whole interval, ever more often as long as they do.
//!
//! In the rules of ns-3 and Linux, which agree with the RFC but for the mark (below).

use lfn_units::Time;

use crate::counters::Ledger;
use crate::fifo::{Fifo, Waiting};

/// After a pause shorter than this many intervals, dropping resumes near the rate that it had.
const RESUME_INTERVALS: u64 = 16;

/// The parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelConfig {
    /// Acceptable standing delay. RFC 8289 wants 5 to 10 % of the interval.
    pub target: Time,
    /// How long the delay may stand above the target: about the longest usual RTT. Set it to 200 or
    /// 300 ms on a path of 200 ms.
    pub interval: Time,
    /// No drop while less than this waits behind a packet, in bytes: the largest packet.
    pub mtu_bytes: u32,
    /// Mark packets that can carry a mark instead of dropping them.
    pub ecn: bool,
}

impl Default for CodelConfig {
    /// RFC 8289: 5 ms and 100 ms; for packets of 1500 bytes; drops, as Linux does by itself.
    fn default() -> CodelConfig {
        CodelConfig { target: Time::from_ms(5), interval: Time::from_ms(100), mtu_bytes: 1500, ecn: false }
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
    /// `count` at the first drop of this dropping state.
    last_count: u64,
}

impl Codel {
    /// A queue that has seen no packet.
    pub fn new(config: CodelConfig) -> Codel {
        Codel { config, first_above: None, dropping: false, drop_next: Time::ZERO, count: 0, last_count: 0 }
    }

    /// The packet to send now: the first of `fifo` that CoDel does not drop.
    pub(crate) fn take(&mut self, now: Time, fifo: &mut Fifo, ledger: &mut Ledger) -> Option<Waiting> {
        let (mut head, mut may_drop) = self.next(now, fifo)?;
        if self.dropping {
            self.dropping = may_drop;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if self.marks(&mut head, ledger) {
                    // From now, as ns-3 does; the RFC leaves marks open.
                    self.drop_next = self.after(now);
                    break;
                }
                ledger.drop_early(head.packet);
                (head, may_drop) = self.next(now, fifo)?;
                self.dropping = may_drop;
                if may_drop {
                    self.drop_next = self.after(self.drop_next);
                }
            }
        } else if may_drop {
            if !self.marks(&mut head, ledger) {
                ledger.drop_early(head.packet);
                (head, _) = self.next(now, fifo)?;
            }
            self.dropping = true;
            let recent = self.count - self.last_count;
            let paused = now.since(self.drop_next);
            let resumes = recent > 1 && paused.0 < RESUME_INTERVALS.saturating_mul(self.config.interval.0);
            self.count = if resumes { recent } else { 1 };
            self.last_count = self.count;
            self.drop_next = self.after(now);
        }
        Some(head)
    }

    /// The head of the queue, and whether it may be dropped. After an empty queue the first one never
    /// may, and that ends dropping.
    fn next(&mut self, now: Time, fifo: &mut Fifo) -> Option<(Waiting, bool)> {
        let Some(head) = fifo.pop() else {
            self.first_above = None;
            return None;
        };
        if now.since(head.since) < self.config.target || fifo.bytes() < u64::from(self.config.mtu_bytes) {
            self.first_above = None;
            return Some((head, false));
        }
        let first_above = *self.first_above.get_or_insert(now.after(self.config.interval));
        Some((head, now > first_above))
    }

    fn marks(&self, head: &mut Waiting, ledger: &mut Ledger) -> bool {
        let marks = self.config.ecn && head.packet.ect;
        if marks {
            ledger.mark(&mut head.packet);
        }
        marks
    }

    /// The control law: the next drop comes interval / sqrt(count) later.
    fn after(&self, last: Time) -> Time {
        last.after(Time((self.config.interval.0 as f64 / libm::sqrt(self.count as f64)) as u64))
    }
}
