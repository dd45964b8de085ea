//! Counters of a link of any kind.

use lfn_units::{Rate, Time};

use crate::limit::Limit;
use crate::packet::{Packet, PacketKind};
use lfn_header::Ecn;

/// Data packets since the start of the run, whatever [`Counters`] are reset. Every data packet that
/// arrived was dropped, sent, or is still here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataTotals {
    /// Arrived.
    pub arrived: u64,
    /// Dropped, for whatever reason.
    pub dropped: u64,
    /// Sent to the last bit.
    pub sent: u64,
}

/// A link at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Snapshot {
    /// Packets that wait or are in service.
    pub packets: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Bytes sent since the counters began.
    pub sent_bytes: f64,
    /// Bytes that could have been sent since the counters began.
    pub capacity_bytes: f64,
    /// How long the link needs for the packets that it has; infinite while it stands still.
    pub drain_s: f64,
}

/// The use of a link since its counters began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    began: Time,
    /// Bytes that count as gone by then: those of the packet in service that had left.
    gone_before_bytes: f64,
    /// Bytes that could have been sent until the rate changed last.
    capacity_bytes: f64,
    rated: Time,
}

impl Usage {
    /// Counters begin at `now`, when so many bytes count as gone already.
    pub(crate) fn from(now: Time, gone_before_bytes: f64) -> Usage {
        Usage { began: now, gone_before_bytes, capacity_bytes: 0.0, rated: now }
    }

    pub(crate) fn began(&self) -> Time {
        self.began
    }

    /// Of so many gone in all.
    pub(crate) fn sent_bytes(&self, gone_bytes: f64) -> f64 {
        (gone_bytes - self.gone_before_bytes).max(0.0)
    }

    /// At this rate from the last change on.
    pub(crate) fn capacity_bytes(&self, now: Time, rate: Rate) -> f64 {
        self.capacity_bytes + rate.as_bps() / 8.0 * now.since(self.rated).as_s()
    }

    /// The rate changes, from this one.
    pub(crate) fn settle(&mut self, now: Time, rate: Rate) {
        self.capacity_bytes = self.capacity_bytes(now, rate);
        self.rated = now;
    }
}

/// Counts since the start or the last `reset_counters`.
#[derive(Clone, Debug)]
pub struct Counters {
    /// Packets that the link had when the counters began; they may be dropped or marked later.
    pub held_before: u64,
    /// Packets offered since then.
    pub arrivals: u64,
    /// Packets dropped because they did not fit.
    pub drops_full: u64,
    /// Packets dropped by the AQM.
    pub drops_early: u64,
    /// Packets marked CE.
    pub marks: u64,
    /// Packets sent to the last bit.
    pub sent_packets: u64,
    /// Bytes of those.
    pub sent_bytes: u64,
    /// Sum of their waiting times in ps.
    pub wait_ps: u128,
    /// Most packets that waited at once.
    pub max_waiting: u64,
    histogram: Vec<u64>,
    shift: u32,
}

impl Counters {
    /// For a link of this rate, behind which `limit_packets` and `limit_bytes` may wait.
    pub(crate) fn new(rate: Rate, limit: Limit, largest_packet_bytes: u32) -> Counters {
        let most = limit.packets.saturating_add(1).saturating_mul(u64::from(largest_packet_bytes));
        let most = most.min(limit.bytes.saturating_add(u64::from(largest_packet_bytes)));
        let longest = u128::from(most) * 8_000_000_000_000 / u128::from(rate.0.max(1));
        Counters::for_waits_to(Time(u64::try_from(longest).unwrap_or(u64::MAX >> 1)))
    }

    fn for_waits_to(longest_wait: Time) -> Counters {
        // Bins of a power of two, at least 512 of them over the longest wait.
        let shift = longest_wait.0.max(1024).ilog2() - 9;
        let bins = (longest_wait.0 >> shift) + 2;
        Counters {
            held_before: 0,
            arrivals: 0,
            drops_full: 0,
            drops_early: 0,
            marks: 0,
            sent_packets: 0,
            sent_bytes: 0,
            wait_ps: 0,
            max_waiting: 0,
            histogram: vec![0; bins as usize],
            shift,
        }
    }

    /// Empty bins of this width for a link that holds `held_before` packets now, `max_waiting` of them in its queue.
    pub(crate) fn restarted(&self, held_before: u64, max_waiting: u64) -> Counters {
        let histogram = vec![0; self.histogram.len()];
        let empty = Counters::for_waits_to(Time::ZERO);
        Counters { held_before, max_waiting, histogram, shift: self.shift, ..empty }
    }

    #[inline]
    pub(crate) fn depart(&mut self, bytes: u32, wait: Time) {
        self.add_sent(1, bytes.into(), wait.0.into());
        self.count_wait(wait);
    }

    /// Packets are sent that waited so long together; each wait [counts](Counters::count_wait) by itself.
    #[inline]
    pub(crate) fn add_sent(&mut self, packets: u64, bytes: u64, wait_ps: u128) {
        self.sent_packets += packets;
        self.sent_bytes += bytes;
        self.wait_ps += wait_ps;
    }

    #[inline]
    pub(crate) fn count_wait(&mut self, wait: Time) {
        let bin = (wait.0 >> self.shift) as usize;
        match self.histogram.get_mut(bin) {
            Some(count) => *count += 1,
            None => self.widen(wait),
        }
    }

    /// Counts a wait beyond the last bin, as after a rate fell: doubles the bins' width until it fits.
    #[cold]
    fn widen(&mut self, wait: Time) {
        let bins = self.histogram.len();
        while (wait.0 >> self.shift) as usize >= bins {
            self.shift += 1;
            for bin in 0..bins {
                let pair = self.histogram.iter().skip(2 * bin).take(2);
                self.histogram[bin] = pair.sum();
            }
        }
        self.histogram[(wait.0 >> self.shift) as usize] += 1;
    }

    /// Mean waiting time of the packets sent.
    pub fn mean_wait(&self) -> Time {
        Time((self.wait_ps / u128::from(self.sent_packets.max(1))) as u64)
    }

    /// Quantile `q` of the waiting time, to the upper edge of a bin of at most 0.2 % of the longest wait
    /// that the limits and the first rate allow, or 0.4 % of the longest one seen if that is longer.
    pub fn wait_quantile(&self, q: f64) -> Time {
        let wanted = (self.sent_packets as f64 * q).ceil() as u64;
        let mut seen = 0;
        for (bin, count) in self.histogram.iter().enumerate() {
            seen += count;
            if seen >= wanted && seen > 0 {
                return Time((bin as u64 + u64::from(bin > 0)) << self.shift);
            }
        }
        Time::ZERO
    }
}

/// The books of a link, and where the packets go that it drops.
pub(crate) struct Ledger<'a> {
    pub(crate) counters: &'a mut Counters,
    pub(crate) data: &'a mut DataTotals,
    pub(crate) dropped: &'a mut Vec<Packet>,
}

impl Ledger<'_> {
    /// Dropped because it, or what came after it, did not fit.
    pub(crate) fn drop_full(&mut self, packet: Packet) {
        self.counters.drops_full += 1;
        self.drop(packet);
    }

    /// Dropped by the AQM.
    pub(crate) fn drop_early(&mut self, packet: Packet) {
        self.counters.drops_early += 1;
        self.drop(packet);
    }

    /// Marks a packet that can carry a mark.
    pub(crate) fn mark(&mut self, packet: &mut Packet) {
        packet.ecn = Ecn::Ce;
        self.counters.marks += 1;
    }

    fn drop(&mut self, packet: Packet) {
        self.data.dropped += u64::from(packet.kind == PacketKind::Data);
        self.dropped.push(packet);
    }
}
