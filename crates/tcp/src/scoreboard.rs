//! Scoreboard: the sender's state of each segment in flight, and loss detection.
//!
//! The cost of an ACK does not grow with the window: SACK blocks are skipped range by range, original
//! transmissions are examined for loss once and in order, and retransmissions have their own queue. Only a
//! retransmission timeout visits the whole window.

mod detection;
mod outcome;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use lfn_units::Time;

use crate::prefetch::prefetch;
use crate::rtt::timestamp_ms;
use crate::{Range, RangeSet};
pub(crate) use outcome::{Arrival, Echo, Losses, Outcome};

const LOST: u8 = 1;
/// Retransmitted, and the retransmission is in flight.
const RETRANS: u8 = 2;
/// Retransmitted at any time: no RTT sample (Karn).
const EVER: u8 = 4;
/// RACK found it lost, and it was not retransmitted since. Linux's RACK does not look at it again, even if an undo
/// removes the mark of loss: then only a timeout repairs it (measured).
const FOUND: u8 = 8;
/// Which retransmission was the last, from 0, modulo 4.
const COPY_SHIFT: u32 = 4;
/// An undo removed its mark of loss, and its retransmission is in flight. If RACK finds that lost, Linux marks the segment
/// lost and takes the retransmission as still in flight: only a timeout repairs it (measured).
const SPARED: u8 = 64;
/// The retransmission in flight is a tail loss probe, which Linux does not count in flight: the same window lets one more
/// segment leave (measured).
const PROBE: u8 = 128;
/// Flags that a segment keeps as long as it is outstanding.
const HISTORY: u8 = EVER | 3 << COPY_SHIFT;
/// So many earlier transmissions are remembered: an echo of one decides after the first retransmissions of a timeout.
const REMEMBERED: usize = 1000;

/// The smaller value; `None` if both are missing.
fn least<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// RACK's clock has microseconds, as Linux's. Of two segments of one microsecond the one with the higher number counts as
/// sent later: above 12 Gbit/s with 1500 bytes a retransmission may be found lost by the new segment before it.
fn whole_us(time: Time) -> Time {
    Time(time.0 - time.0 % Time::from_us(1).0)
}

/// RACK's most recently sent segment that was delivered (RFC 8985 §6.2 step 2), and the RTT of the last one that the
/// ACK shows, cumulative after SACKed: so in Linux, measured.
#[derive(Clone, Copy, Debug, Default)]
struct Rack {
    sent: Time,
    seq: u64,
    rtt: Time,
}

impl Rack {
    /// Its time and number: segments are compared with it.
    fn newest(&self) -> (Time, u64) {
        (whole_us(self.sent), self.seq)
    }
}

/// State that only losses, SACKs and retransmissions use; its vectors stay empty without loss, which saves
/// memory with many flows.
#[derive(Clone, Debug, Default)]
struct Repair {
    flags: Vec<u8>,
    sacked: RangeSet,
    /// Original transmissions below this have been examined for loss.
    examined: u64,
    /// Highest SACKed segments, highest first (RFC 6675 IsLost).
    highest_sacked: [u64; 3],
    /// Lost originals, ascending; stale entries are skipped.
    lost: VecDeque<u64>,
    /// Lost retransmissions, and segments that a timeout marked out of order.
    lost_again: BinaryHeap<Reverse<u64>>,
    /// Retransmissions in flight by time; stale entries are skipped.
    retransmitted: VecDeque<(Time, u64)>,
    /// One past the highest segment ever retransmitted.
    retransmitted_end: u64,
    /// Transmissions of outstanding segments before their last: the segment, which retransmission (`None`: the
    /// original), when it left. Stale entries are at the front.
    earlier: VecDeque<(u64, Option<u8>, Time)>,
    /// For a law that looks at each lost segment: those found since it last looked.
    lost_log: Option<Vec<u64>>,
    /// For a law that looks at each packet: segments that ACKs delivered beside [`Scoreboard::acknowledge_plain`].
    delivered_log: Option<Vec<u64>>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    /// Transmission time of each segment in flight, by segment number modulo capacity.
    sent: Vec<Time>,
    una: u64,
    nxt: u64,
    sacked_out: u64,
    lost_out: u64,
    retrans_out: u64,
    rack: Rack,
    /// Whether `repair` holds anything.
    dirty: bool,
    /// Whether it ever did since the connection began.
    touched: bool,
    repair: Box<Repair>,
}

impl Scoreboard {
    pub fn una(&self) -> u64 {
        self.una
    }

    pub fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Prefetches the transmission times that the next ACK needs, and for a flow in recovery the pointers to
    /// its buffers.
    #[inline(always)]
    pub fn prefetch(&self) {
        for seq in [self.una, self.nxt] {
            if let Some(sent) = self.sent.get(self.at(seq)) {
                prefetch(sent);
            }
        }
        if self.dirty {
            prefetch(&*self.repair);
        }
    }

    /// Prefetches the buffers of a flow in recovery.
    #[inline(always)]
    pub fn prefetch_repair(&self) {
        if self.dirty {
            if let Some(flags) = self.repair.flags.get(self.at(self.una)) {
                prefetch(flags);
            }
            self.repair.sacked.prefetch(self.una);
            if let Some(copy) = self.repair.retransmitted.front() {
                prefetch(copy);
            }
        }
    }

    /// Whether anything is SACKed, lost, or retransmitted; if not, no ACK without SACK blocks can
    /// reveal a loss.
    #[inline]
    pub fn dirty(&self) -> bool {
        self.dirty
    }

    pub fn outstanding(&self) -> u64 {
        self.nxt - self.una
    }

    /// RFC 6675 pipe, as Linux counts it.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        if !self.dirty {
            return self.outstanding();
        }
        (self.nxt - self.una + self.retrans_out).saturating_sub(self.sacked_out + self.lost_out)
    }

    pub fn sacked_out(&self) -> u64 {
        self.sacked_out
    }

    pub fn lost_out(&self) -> u64 {
        self.lost_out
    }

    /// When the first outstanding segment was last sent.
    pub fn first_sent(&self) -> Time {
        self.sent[self.at(self.una)]
    }

    /// When the newest outstanding segment was last sent.
    pub fn last_sent(&self) -> Time {
        self.sent[self.at(self.nxt - 1)]
    }

    /// Whether a segment not acknowledged cumulatively was ever retransmitted.
    pub fn was_retransmitted(&self, seq: u64) -> bool {
        (self.una..self.nxt).contains(&seq) && self.flags(seq) & EVER != 0
    }

    /// Whether a segment that was retransmitted is SACKed.
    pub fn was_delivered_after_retransmission(&self, seq: u64) -> bool {
        self.was_retransmitted(seq) && self.repair.sacked.contains(seq)
    }

    /// When a transmission of an outstanding segment left: the original, or a retransmission, counted from 0, modulo 4; of
    /// several with this number the last.
    pub fn transmission(&self, seq: u64, copy: Option<u8>) -> Option<Time> {
        if !(self.una..self.nxt).contains(&seq) {
            return None;
        }
        if self.last_copy(seq) == copy {
            return Some(self.sent[self.at(seq)]);
        }
        let mut earlier = self.repair.earlier.iter().rev();
        earlier.find(|one| (one.0, one.1) == (seq, copy)).map(|one| one.2)
    }

    /// Which retransmission of an outstanding segment was its last transmission; `None`: the original.
    pub fn last_copy(&self, seq: u64) -> Option<u8> {
        let flags = self.flags(seq);
        (flags & EVER != 0).then_some(flags >> COPY_SHIFT & 3)
    }

    /// Retransmissions in flight, without a probe.
    pub fn retrans_out(&self) -> u64 {
        self.retrans_out
    }

    /// Whether the last copy of a segment is a probe in flight.
    pub fn is_probe_out(&self, seq: u64) -> bool {
        (self.una..self.nxt).contains(&seq) && self.flags(seq) & PROBE != 0
    }

    /// The highest segment that was ever SACKed.
    pub fn highest_sacked(&self) -> u64 {
        self.repair.highest_sacked[0]
    }

    /// Switches the list of lost segments on or off.
    pub fn log_losses(&mut self, log: bool) {
        self.repair.lost_log = log.then(Vec::new);
    }

    /// Switches the list of delivered segments on or off.
    pub fn log_deliveries(&mut self, log: bool) {
        self.repair.delivered_log = log.then(Vec::new);
    }

    /// Segments delivered since the last call, if listed: those of plain ACKs are not.
    pub fn take_delivered_log(&mut self) -> Vec<u64> {
        self.repair.delivered_log.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Segments lost since the last call, if listed.
    pub fn take_lost_log(&mut self) -> Vec<u64> {
        self.repair.lost_log.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Bytes of memory beyond the struct itself.
    pub fn memory_bytes(&self) -> usize {
        let repair = &self.repair;
        size_of::<Repair>()
            + self.sent.capacity() * 8
            + repair.flags.capacity()
            + repair.sacked.memory_bytes()
            + (repair.lost.capacity() + repair.lost_again.capacity()) * 8
            + repair.retransmitted.capacity() * 16
            + repair.earlier.capacity() * 24
    }

    /// Starts again at segment 0; memory stays.
    pub fn reset(&mut self) {
        let repair = &mut *self.repair;
        if self.touched {
            repair.sacked.clear();
            repair.flags.fill(0);
            repair.lost.clear();
            repair.lost_again.clear();
            repair.retransmitted.clear();
            repair.earlier.clear();
        }
        repair.examined = 0;
        repair.highest_sacked = [0; 3];
        repair.retransmitted_end = 0;
        (self.una, self.nxt) = (0, 0);
        (self.sacked_out, self.lost_out, self.retrans_out) = (0, 0, 0);
        self.rack = Rack::default();
        (self.dirty, self.touched) = (false, false);
    }

    /// Forgets all outstanding segments.
    pub fn abort(&mut self) {
        let una = self.una;
        self.reset();
        (self.una, self.nxt) = (una, una);
        (self.repair.examined, self.repair.retransmitted_end) = (una, una);
    }

    fn at(&self, seq: u64) -> usize {
        (seq & (self.sent.len() as u64).wrapping_sub(1)) as usize
    }

    fn flags(&self, seq: u64) -> u8 {
        if self.repair.flags.is_empty() {
            0
        } else {
            self.repair.flags[self.at(seq)]
        }
    }

    /// Gives back most memory of a window that was much larger than the window after an episode.
    #[cold]
    pub fn shrink(&mut self) {
        let wanted = (2 * self.outstanding()).next_power_of_two().max(16) as usize;
        if self.sent.len() > 4 * wanted {
            self.resize(wanted);
        }
        if !self.dirty {
            self.repair.lost.shrink_to(wanted);
            self.repair.retransmitted.shrink_to(wanted);
            self.repair.earlier.shrink_to(wanted);
        }
    }

    /// Moves the outstanding segments to a ring of `new` places, a power of two.
    #[cold]
    fn resize(&mut self, new: usize) {
        let old = self.sent.len();
        let mut sent = vec![Time::ZERO; new];
        let mut flags = if self.repair.flags.is_empty() { Vec::new() } else { vec![0; new] };
        for seq in self.una..self.nxt {
            let (from, to) = (seq as usize & (old - 1), seq as usize & (new - 1));
            sent[to] = self.sent[from];
            if !flags.is_empty() {
                flags[to] = self.repair.flags[from];
            }
        }
        self.sent = sent;
        self.repair.flags = flags;
    }

    /// Marks the state for losses as used; allocates its flags before the first use.
    pub fn touch(&mut self) {
        (self.dirty, self.touched) = (true, true);
        if self.repair.flags.is_empty() {
            self.repair.flags = vec![0; self.sent.len()];
        }
    }

    /// New data is sent.
    #[inline]
    pub fn on_sent(&mut self, now: Time) -> u64 {
        if self.nxt - self.una == self.sent.len() as u64 {
            self.resize((self.sent.len() * 2).max(16));
        }
        let seq = self.nxt;
        let at = self.at(seq);
        self.sent[at] = now;
        self.nxt += 1;
        seq
    }

    /// The segment from [`Scoreboard::next_lost`] is retransmitted.
    pub fn on_retransmitted(&mut self, seq: u64, now: Time) {
        self.note_copy(seq, now);
        self.retrans_out += 1;
    }

    /// The last segment leaves again as a tail loss probe.
    pub fn on_probed(&mut self, now: Time) {
        let seq = self.nxt - 1;
        self.note_copy(seq, now);
        let at = self.at(seq);
        self.repair.flags[at] |= PROBE;
    }

    /// A copy of a segment leaves.
    fn note_copy(&mut self, seq: u64, now: Time) {
        self.touch();
        let at = self.at(seq);
        self.forget_copy(self.repair.flags[at]);
        let before = self.last_copy(seq);
        if self.repair.earlier.len() < REMEMBERED {
            self.repair.earlier.push_back((seq, before, self.sent[at]));
        }
        let kept = self.repair.flags[at] & LOST | RETRANS | EVER;
        self.repair.flags[at] = kept | before.map_or(0, |copy| ((copy + 1) & 3) << COPY_SHIFT);
        self.sent[at] = now;
        // Only RACK takes them off.
        while let Some(&(sent, seq)) = self.repair.retransmitted.front() {
            if self.is_copy_in_flight(sent, seq) {
                break;
            }
            self.repair.retransmitted.pop_front();
        }
        self.repair.retransmitted.push_back((now, seq));
        self.repair.retransmitted_end = self.repair.retransmitted_end.max(seq + 1);
    }

    /// A segment was delivered: takes RTT and RACK samples from its transmission time. A retransmission whose ACK
    /// comes within `least_rtt` gives none: the original arrived (RFC 8985 §6.2 step 2).
    fn note_delivery(&mut self, seq: u64, now: Time, least_rtt: Time, outcome: &mut Outcome) {
        let (sent, ever) = (self.sent[self.at(seq)], self.flags(seq) & EVER != 0);
        let rtt = now - sent;
        outcome.delivered += 1;
        if let Some(log) = &mut self.repair.delivered_log {
            log.push(seq);
        }
        outcome.newest = outcome.newest.max(Some((sent, seq)));
        if !ever {
            outcome.oldest_sent = least(outcome.oldest_sent, Some(sent));
            outcome.newest_sent = outcome.newest_sent.max(Some(sent));
            outcome.lowest_original = least(outcome.lowest_original, Some(seq));
        } else if rtt < least_rtt {
            return;
        }
        self.rack.rtt = rtt;
        if (whole_us(sent), seq) > self.rack.newest() {
            (self.rack.sent, self.rack.seq) = (sent, seq);
        }
    }

    /// The cumulative ACK moved to `cumulative`, at most `nxt`; no segment is SACKed, lost or retransmitted.
    #[inline]
    pub fn acknowledge_plain(&mut self, cumulative: u64, now: Time) -> Outcome {
        let newest = self.sent[self.at(cumulative - 1)];
        let oldest = self.sent[self.at(self.una)];
        let delivered = (cumulative - self.una) as u32;
        self.rack = Rack { sent: newest, seq: cumulative - 1, rtt: now - newest };
        self.una = cumulative;
        Outcome { delivered, newest_sent: Some(newest), oldest_sent: Some(oldest), ..Outcome::default() }
    }

    /// An ACK arrives, which may bring SACK blocks.
    #[inline(always)]
    pub fn acknowledge(&mut self, ack: &Arrival) -> Outcome {
        let advanced = ack.cumulative > self.una;
        if ack.blocks.is_empty() && advanced && !self.dirty {
            return self.acknowledge_plain(ack.cumulative, ack.now);
        }
        let mut outcome = Outcome::default();
        self.on_sack(ack, &mut outcome);
        if advanced {
            self.on_cumulative(ack, &mut outcome);
        }
        outcome
    }

    #[inline(always)]
    fn on_cumulative(&mut self, ack: &Arrival, outcome: &mut Outcome) {
        let &Arrival { now, cumulative, min_rtt, .. } = ack;
        let sacked_times = (outcome.oldest_sent, outcome.newest_sent);
        outcome.echoed = match ack.echo {
            Echo::None => None,
            Echo::Original => self.transmission(self.una, None),
            Echo::Copy(copy) => self.transmission(self.una, Some(copy)),
        };
        let echoed_ms = outcome.echoed.map(timestamp_ms);
        let echoes = ack.echo != Echo::None;
        let mut repeated = false;
        for seq in self.una..cumulative {
            repeated |= self.flags(seq) & EVER != 0;
            if self.repair.sacked.contains(seq) {
                self.sacked_out -= 1;
            } else {
                // The ACK of an earlier transmission, or of one that is not known.
                let earlier = echoes && echoed_ms < Some(timestamp_ms(self.sent[self.at(seq)]));
                self.note_delivery(seq, now, if earlier { Time::NEVER } else { min_rtt }, outcome);
                self.clear_outstanding(seq);
            }
            let at = self.at(seq);
            self.repair.flags[at] = 0;
        }
        outcome.repeated = repeated;
        if repeated {
            // Originals above a hole that a retransmission filled give no RTT sample (Karn).
            (outcome.oldest_sent, outcome.newest_sent) = sacked_times;
        }
        self.una = cumulative;
        while self.repair.earlier.front().is_some_and(|one| one.0 < cumulative) {
            self.repair.earlier.pop_front();
        }
        self.repair.sacked.advance(cumulative);
        self.repair.examined = self.repair.examined.max(cumulative);
        let empty = self.sacked_out == 0 && self.lost_out == 0 && self.retrans_out == 0;
        // Segments sent before a retransmission that arrived may be lost.
        let settled = cumulative == self.nxt
            || (whole_us(self.sent[self.at(cumulative)]), cumulative) >= self.rack.newest();
        if empty && settled && cumulative >= self.repair.retransmitted_end {
            self.dirty = false;
            self.repair.lost.clear();
            self.repair.lost_again.clear();
            self.repair.retransmitted.clear();
            self.repair.earlier.clear();
        }
    }

    /// A copy in flight with these flags counts no more.
    fn forget_copy(&mut self, flags: u8) {
        self.retrans_out -= u64::from(flags & (RETRANS | PROBE) == RETRANS);
    }

    /// A delivered segment is neither lost nor in flight as a retransmission.
    fn clear_outstanding(&mut self, seq: u64) {
        let flags = self.flags(seq);
        self.lost_out -= u64::from(flags & LOST != 0);
        self.forget_copy(flags);
    }

    #[inline(always)]
    fn on_sack(&mut self, ack: &Arrival, outcome: &mut Outcome) {
        if ack.blocks.is_empty() {
            return;
        }
        self.touch();
        let mut sacked = std::mem::take(&mut self.repair.sacked);
        let &Arrival { now, min_rtt, .. } = ack;
        for block in ack.blocks {
            let block = Range { start: block.start.max(self.una + 1), end: block.end.min(self.nxt) };
            sacked.insert_range(block, self.una, |seq| {
                self.note_delivery(seq, now, min_rtt, outcome);
                self.clear_outstanding(seq);
                let at = self.at(seq);
                self.repair.flags[at] &= HISTORY;
                self.sacked_out += 1;
                outcome.beyond_gap = true;
                if seq > self.repair.highest_sacked[2] {
                    self.repair.highest_sacked[2] = seq;
                    self.repair.highest_sacked.sort_unstable_by(|a, b| b.cmp(a));
                }
            });
        }
        self.repair.sacked = sacked;
    }

    fn mark_lost(&mut self, seq: u64, losses: &mut Losses) {
        let at = self.at(seq);
        self.repair.flags[at] |= LOST;
        self.lost_out += 1;
        self.note_loss(seq, losses);
        self.repair.lost.push_back(seq);
    }

    fn note_loss(&mut self, seq: u64, losses: &mut Losses) {
        losses.segments += 1;
        if let Some(log) = &mut self.repair.lost_log {
            log.push(seq);
        }
    }

    /// NewReno: the first outstanding segment is lost.
    pub fn mark_head_lost(&mut self) -> Losses {
        let mut losses = Losses::default();
        if self.una < self.nxt && self.flags(self.una) & LOST == 0 {
            self.touch();
            self.mark_lost(self.una, &mut losses);
            self.repair.examined = self.repair.examined.max(self.una + 1);
        }
        losses
    }

    /// NewReno: duplicate ACKs count as SACKed segments. Sets their number, at most the outstanding segments
    /// that are not lost.
    pub fn set_duplicate_acks(&mut self, count: u64) {
        if count > 0 {
            self.touch();
        }
        self.sacked_out = count.min((self.nxt - self.una).saturating_sub(self.lost_out.max(1)));
    }

    /// Retransmission timeout: marks as lost the first segment, and each segment not SACKed whose last
    /// transmission was at or before `sent_by`.
    pub fn mark_lost_by_timeout(&mut self, sent_by: Time) -> Losses {
        let mut losses = Losses::default();
        self.touch();
        self.repair.lost.clear();
        self.repair.lost_again.clear();
        self.repair.examined = self.nxt;
        for seq in self.una..self.nxt {
            let (at, flags) = (self.at(seq), self.flags(seq));
            if self.repair.sacked.contains(seq) {
                continue;
            }
            let lost = flags & (LOST | RETRANS) == LOST;
            if seq > self.una && !lost && whole_us(self.sent[at]) > sent_by {
                if flags & EVER == 0 {
                    self.repair.examined = self.repair.examined.min(seq);
                }
                continue;
            }
            if !lost {
                self.note_loss(seq, &mut losses);
            }
            self.clear_outstanding(seq);
            self.repair.flags[at] = (flags & (HISTORY | FOUND)) | LOST;
            self.lost_out += 1;
            self.repair.lost.push_back(seq);
        }
        losses
    }

    /// The lowest lost segment without a retransmission in flight.
    pub fn next_lost(&mut self) -> Option<u64> {
        if self.lost_out == 0 {
            return None;
        }
        let due =
            |board: &Scoreboard, seq: u64| seq >= board.una && board.flags(seq) & (LOST | RETRANS) == LOST;
        while self.repair.lost.front().is_some_and(|&seq| !due(self, seq)) {
            self.repair.lost.pop_front();
        }
        while self.repair.lost_again.peek().is_some_and(|&Reverse(seq)| !due(self, seq)) {
            self.repair.lost_again.pop();
        }
        match (self.repair.lost.front(), self.repair.lost_again.peek()) {
            (Some(&a), Some(&Reverse(b))) => Some(a.min(b)),
            (Some(&a), None) => Some(a),
            (None, Some(&Reverse(b))) => Some(b),
            (None, None) => None,
        }
    }
}
