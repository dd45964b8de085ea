//! One output link: a queue, a server of constant rate, and what is counted there.
//!
//! Where nothing can overtake, a packet's departure is known when it arrives: it begins service
//! when its predecessor ends. So departures are computed at arrival and forgotten lazily. Where a queue
//! decides at departure, or the rate changes, there is [`crate::QueuedLink`], which does the same to
//! the picosecond with an event for each packet.

use std::collections::VecDeque;

use lfn_units::{Rate, Time};

use crate::counters::{Counters, DataTotals, Snapshot, Usage};
use crate::limit::{DropReason, Limit, QueueState};
use crate::packet::PacketKind;
use crate::red::Red;
use crate::server::{rest_bytes, Serialiser};

/// The queueing discipline, which decides about an arriving packet besides the limit.
#[derive(Debug)]
pub enum Discipline {
    /// Nothing: drop what does not fit.
    DropTail,
    /// Random early detection.
    Red(Box<Red>),
}

/// The fate of an offered packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Dropped.
    Dropped(DropReason),
    /// Its last bit leaves at `at`.
    Departs {
        /// When.
        at: Time,
        /// CE was set on it.
        marked: bool,
    },
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    /// When it departs.
    at: Time,
    /// Time in the queue before service.
    wait: Time,
    bytes: u32,
    kind: PacketKind,
}

/// A link and its queue.
#[derive(Debug)]
pub struct Link {
    server: Serialiser,
    discipline: Discipline,
    limit: Limit,
    /// In service first, then waiting.
    pending: VecDeque<Pending>,
    pending_bytes: u64,
    /// When the last accepted packet leaves.
    free_at: Time,
    counters: Counters,
    data: DataTotals,
    usage: Usage,
    /// Arrivals until the queue is purged again.
    unseen: u32,
}

/// With many flows the number of departures between two arrivals is unpredictable for the processor. So
/// departed packets are purged only once in so many arrivals, when that cannot change a decision. A larger
/// number would exceed the cache.
const MOST_UNSEEN: u64 = 32;

impl Link {
    /// An idle link. `largest_packet_bytes` only sizes the histogram of waiting times.
    pub fn new(rate: Rate, discipline: Discipline, limit: Limit, largest_packet_bytes: u32) -> Link {
        Link {
            server: Serialiser::new(rate),
            discipline,
            limit,
            pending: VecDeque::new(),
            pending_bytes: 0,
            free_at: Time::ZERO,
            counters: Counters::new(rate, limit, largest_packet_bytes),
            data: DataTotals::default(),
            usage: Usage::default(),
            unseen: 0,
        }
    }

    /// Rate of the server.
    pub fn rate(&self) -> Rate {
        self.server.rate()
    }

    /// Counters, up to date after [`Link::advance`].
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Data packets over the whole run.
    pub fn data_totals(&self) -> DataTotals {
        self.data
    }

    /// Restarts the counters, after [`Link::advance`]; packets in the queue count when they leave.
    pub fn reset_counters(&mut self, now: Time) {
        self.counters = self.counters.restarted(self.packets(), self.packets().saturating_sub(1));
        self.usage = Usage::from(now, self.gone_bytes(now));
        self.unseen = 0;
    }

    /// Packets that wait or are in service; up to date after [`Link::advance`].
    pub fn packets(&self) -> u64 {
        self.pending.len() as u64
    }

    /// Bytes of those.
    pub fn bytes(&self) -> u64 {
        self.pending_bytes
    }

    /// Bytes sent since the counters began, those of the packet in service included that have left; up to date
    /// after [`Link::advance`].
    pub fn sent_bytes(&self, now: Time) -> f64 {
        self.usage.sent_bytes(self.gone_bytes(now))
    }

    /// Bytes that could have been sent since the counters began.
    pub fn capacity_bytes(&self, now: Time) -> f64 {
        self.usage.capacity_bytes(now, self.rate())
    }

    /// The link now, after [`Link::advance`].
    pub fn snapshot(&self, now: Time) -> Snapshot {
        Snapshot {
            packets: self.packets(),
            bytes: self.bytes(),
            sent_bytes: self.sent_bytes(now),
            capacity_bytes: self.capacity_bytes(now),
            drain_s: self.bytes() as f64 * 8.0 / self.rate().as_bps(),
        }
    }

    /// Since the counters began, and what had left then of the packet in service.
    fn gone_bytes(&self, now: Time) -> f64 {
        let head = self.pending.front();
        let sent =
            |head: &Pending| f64::from(head.bytes) - rest_bytes(self.server.rate(), head.at.since(now));
        self.counters.sent_bytes as f64 + head.map_or(0.0, |head| sent(head).max(0.0))
    }

    /// Bytes of memory that grow with the queue.
    pub fn memory_bytes(&self) -> usize {
        self.pending.capacity() * std::mem::size_of::<Pending>()
    }

    /// Forgets what has left by `now`.
    pub fn advance(&mut self, now: Time) {
        // Sums first: to take each packet out of the ring costs as much as to count it.
        let (mut gone, mut bytes, mut data, mut wait_ps) = (0, 0, 0, 0);
        let (first, second) = self.pending.as_slices();
        'queue: for slice in [first, second] {
            for packet in slice {
                if packet.at > now {
                    break 'queue;
                }
                gone += 1;
                bytes += u64::from(packet.bytes);
                data += u64::from(packet.kind == PacketKind::Data);
                wait_ps += u128::from(packet.wait.0);
                self.counters.count_wait(packet.wait);
            }
        }
        self.pending_bytes -= bytes;
        self.data.sent += data;
        self.counters.add_sent(gone as u64, bytes, wait_ps);
        match gone {
            0 => {}
            1 => drop(self.pending.pop_front()),
            _ => drop(self.pending.drain(..gone)),
        }
    }

    /// A packet arrives. `ect`: it can be marked. `draw` gives uniform numbers in [0, 1).
    #[inline]
    pub fn offer(
        &mut self,
        now: Time,
        kind: PacketKind,
        bytes: u32,
        ect: bool,
        draw: impl FnOnce() -> f64,
    ) -> Offer {
        let offer = self.decide(now, kind, bytes, ect, draw);
        if kind == PacketKind::Data {
            self.data.arrived += 1;
            self.data.dropped += u64::from(matches!(offer, Offer::Dropped(_)));
        }
        offer
    }

    #[inline(always)]
    fn decide(
        &mut self,
        now: Time,
        kind: PacketKind,
        bytes: u32,
        ect: bool,
        draw: impl FnOnce() -> f64,
    ) -> Offer {
        self.counters.arrivals += 1;
        let mut marked = false;
        if self.unseen > 0 {
            self.unseen -= 1;
        } else {
            marked = match self.look(now, bytes, ect, draw) {
                Ok(marked) => marked,
                Err(reason) => {
                    match reason {
                        DropReason::Full => self.counters.drops_full += 1,
                        DropReason::Early => self.counters.drops_early += 1,
                    }
                    return Offer::Dropped(reason);
                }
            };
            self.counters.marks += u64::from(marked);
        }
        self.pending_bytes += u64::from(bytes);
        let begins = if self.free_at > now { self.free_at } else { now };
        self.free_at = begins + self.server.serialise(bytes);
        self.pending.push_back(Pending { at: self.free_at, wait: begins - now, bytes, kind });
        Offer::Departs { at: self.free_at, marked }
    }

    /// Asks the queue as it is now whether it takes a packet, and marks it.
    fn look(
        &mut self,
        now: Time,
        bytes: u32,
        ect: bool,
        draw: impl FnOnce() -> f64,
    ) -> Result<bool, DropReason> {
        self.advance(now);
        let in_service = self.pending.front().map_or(0, |head| u64::from(head.bytes));
        let waiting = (self.pending.len() as u64).saturating_sub(1);
        let queue = QueueState {
            packets: waiting,
            bytes: self.pending_bytes - in_service,
            idle_since: self.pending.is_empty().then_some(self.free_at),
        };
        let marked = match &mut self.discipline {
            Discipline::DropTail if self.limit.admits(queue, bytes) => {
                if self.limit.bytes == u64::MAX {
                    // So many fit even if none leaves, and no more wait then than ever.
                    let room = self.counters.max_waiting.saturating_sub(self.pending.len() as u64);
                    self.unseen = room.min(MOST_UNSEEN) as u32;
                }
                false
            }
            Discipline::DropTail => return Err(DropReason::Full),
            Discipline::Red(red) => red.admit(now, queue, self.limit, bytes, ect, draw)?,
        };
        if in_service != 0 {
            self.counters.max_waiting = self.counters.max_waiting.max(waiting + 1);
        }
        Ok(marked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(limit: u64) -> Link {
        Link::new(Rate(1_000_000_000), Discipline::DropTail, Limit::packets(limit), 1500)
    }

    fn no_draw() -> f64 {
        unreachable!("drop-tail draws nothing")
    }

    #[test]
    fn burst_at_an_idle_link_keeps_the_limit_and_the_one_in_service() {
        let mut link = link(10);
        let kept = (0..20).filter(|_| {
            matches!(link.offer(Time::ZERO, PacketKind::Data, 1500, false, no_draw), Offer::Departs { .. })
        });
        assert_eq!(kept.count(), 11);
        assert_eq!(link.counters().drops_full, 9);
        assert_eq!(link.counters().max_waiting, 10);
    }

    #[test]
    fn byte_limit_counts_what_waits() {
        let mut link = Link::new(
            Rate(1_000_000_000),
            Discipline::DropTail,
            Limit { packets: u64::MAX, bytes: 4000 },
            1500,
        );
        let sizes = [1500, 1500, 1500, 1500, 1000, 40];
        let kept: Vec<bool> = sizes
            .iter()
            .map(|&size| {
                matches!(
                    link.offer(Time::ZERO, PacketKind::Data, size, false, no_draw),
                    Offer::Departs { .. }
                )
            })
            .collect();
        assert_eq!(kept, [true, true, true, false, true, false]);
    }

    #[test]
    fn rate_is_exact_over_many_packets() {
        // 3 Gbit/s: 1500 bytes take 4000 ps; 7 bytes take 18666 and 2/3 ps.
        let mut link = Link::new(Rate(3_000_000_000), Discipline::DropTail, Limit::packets(u64::MAX), 1500);
        for _ in 0..3_000_000 {
            link.offer(Time::ZERO, PacketKind::Data, 7, false, no_draw);
        }
        assert_eq!(link.free_at, Time(56_000_000_000));
    }

    #[test]
    fn waiting_times_of_a_burst() {
        let mut link = link(u64::MAX >> 20);
        for _ in 0..1000 {
            link.offer(Time::ZERO, PacketKind::Data, 1500, false, no_draw);
        }
        link.advance(Time::from_s(1));
        // The k-th waits k * 12 us.
        assert_eq!(link.counters().mean_wait(), Time::from_ns(5_994_000));
        assert_eq!(link.packets(), 0);
        assert_eq!(link.counters().sent_bytes, 1_500_000);
    }

    #[test]
    fn quantiles_are_within_a_bin() {
        let mut link = link(1000);
        for _ in 0..1001 {
            link.offer(Time::ZERO, PacketKind::Data, 1500, false, no_draw);
        }
        link.advance(Time::from_s(1));
        let p99 = link.counters().wait_quantile(0.99).as_s();
        assert!((p99 - 0.01188).abs() < 0.01188 * 0.004, "{p99}");
    }
}
