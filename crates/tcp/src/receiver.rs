//! Receiver: cumulative and selective acknowledgement, delayed ACKs, SACK compression.
//!
//! The caller may pass a segment before its arrival time, in order of arrival: a simulator that knows the
//! arrival time when the packet is sent need not wait. Therefore a delayed ACK whose timer expired before the
//! segment's arrival is emitted first, with its own time.

mod optimistic;
mod quick;

use std::mem::offset_of;

use lfn_units::Time;

use crate::config::QUICK_ACKS;
use crate::prefetch::prefetch_bytes;
use crate::{Range, RangeSet, ReceiverConfig};
use quick::QuickAcks;

/// SACK blocks in one ACK: as many as fit beside timestamps (RFC 2018 §3).
pub const SACK_BLOCKS: usize = 3;
/// Duplicate ACKs sent at once before compression begins (Linux: the fast-retransmit threshold).
const DUP_ACKS_UNCOMPRESSED: u32 = 3;
/// SACK blocks that Linux counts on in an ACK: if more ranges changed, the ACK that compression holds back leaves before
/// another one does (measured on Linux 6.12: where every second pair is lost, each pair has its ACK).
const RANGES_CERTAIN: usize = 2;
/// How late the timer of SACK compression is on a host without another timer of its kind (Linux tcp_comp_sack_slack_ns;
/// measured on 6.12: the whole slack).
const COMPRESSION_SLACK: Time = Time::from_us(100);
/// ACKs that compression may hold back (Linux tcp_comp_sack_nr).
const COMPRESSED_MAX: u32 = 44;
/// Segments acknowledged at once after a mark that begins an echo and, where marks are echoed until the sender
/// reduces, after a retransmission, which is not ECN-capable there (measured).
const QUICK_ACKS_ECN: u32 = 2;

/// A data segment as the receiver sees it.
#[derive(Clone, Copy, Debug)]
pub struct SegmentIn {
    /// Segment number.
    pub seq: u64,
    /// Whether it is a retransmission.
    pub retransmission: bool,
    /// Which retransmission it is, from 0, modulo 4.
    pub copy: u8,
    /// It carries a CE mark.
    pub ce: bool,
    /// The sender reduced its window: congestion echo ends (RFC 3168 CWR).
    pub cwr: bool,
}

/// An ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledgement {
    /// When it leaves the receiver.
    pub at: Time,
    /// Everything below is received.
    pub cumulative: u64,
    /// Marks, and the number of SACK blocks.
    pub flags: AckFlags,
    /// SACK blocks, most recent first, after that of a duplicate; as many as the flags count.
    pub sack: [Range; SACK_BLOCKS],
}

/// Flags of an ACK and the number of its SACK blocks, in one byte that a simulator can carry as it is. The bit
/// [`AckFlags::FREE`] is always 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckFlags(u8);

impl AckFlags {
    /// The timestamp echoed is that of an original transmission (Eifel, RFC 3522).
    pub const ECHOES_ORIGINAL: AckFlags = AckFlags(1);
    /// It answers a duplicate segment, which the first block names (DSACK, RFC 2883).
    pub const DUPLICATE: AckFlags = AckFlags(2);
    /// Congestion is echoed (RFC 3168 ECE); of AccECN: the ACK has counters, for
    /// [`Sender::on_header`](crate::Sender::on_header).
    pub const ECE: AckFlags = AckFlags(4);
    /// Not used here.
    pub const FREE: u8 = 8;
    const BLOCKS_SHIFT: u32 = 4;
    const COPY_SHIFT: u32 = 6;

    /// The byte.
    #[inline(always)]
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Those of a byte of [`AckFlags::bits`]; the free bit is dropped.
    #[inline(always)]
    pub fn from_bits(bits: u8) -> AckFlags {
        AckFlags(bits & !AckFlags::FREE)
    }

    /// Whether `flag` is set.
    #[inline(always)]
    pub fn has(self, flag: AckFlags) -> bool {
        self.0 & flag.0 != 0
    }

    /// These flags, with `flag` set or cleared.
    #[inline(always)]
    #[must_use]
    pub fn with(self, flag: AckFlags, set: bool) -> AckFlags {
        AckFlags((self.0 & !flag.0) | (flag.0 * u8::from(set)))
    }

    /// Number of SACK blocks, at most [`SACK_BLOCKS`].
    #[inline(always)]
    pub fn blocks(self) -> usize {
        usize::from(self.0 >> AckFlags::BLOCKS_SHIFT & 3)
    }

    /// Which retransmission's timestamp is echoed, from 0, modulo 4; it means nothing if an original's is.
    pub fn copy(self) -> u8 {
        self.0 >> AckFlags::COPY_SHIFT
    }

    /// These flags, with the echo of a retransmission's timestamp.
    #[must_use]
    pub fn echoing(self, copy: u8) -> AckFlags {
        let others = self.0 & ((1 << AckFlags::COPY_SHIFT) - 1) & !AckFlags::ECHOES_ORIGINAL.0;
        AckFlags(others | copy << AckFlags::COPY_SHIFT)
    }

    /// These flags, with as many SACK blocks, at most [`SACK_BLOCKS`].
    #[must_use]
    pub fn with_blocks(self, blocks: usize) -> AckFlags {
        debug_assert!(blocks <= SACK_BLOCKS);
        AckFlags((self.0 & !(3 << AckFlags::BLOCKS_SHIFT)) | ((blocks as u8) << AckFlags::BLOCKS_SHIFT))
    }
}

/// How congestion marks are echoed.
#[derive(Clone, Debug)]
struct Echo {
    ecn: bool,
    /// Segment by segment (RFC 8257), instead of until the sender reduced its window (RFC 3168).
    each_mark: bool,
}

/// Receiver of one connection. Fields are in order of use: those of an ordinary segment come before
/// `dup_acks`.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Receiver {
    next: u64,
    /// When the held-back ACK goes out; NEVER if none is held back.
    deadline: Time,
    received: u64,
    delayed_ack_timeout: Time,
    /// Segments in order that no ACK covers yet.
    unacknowledged: u32,
    compressed: u32,
    quick: QuickAcks,
    delayed_ack: bool,
    sack: bool,
    dsack: bool,
    echo: Echo,
    /// Of the next ACK, without SACK blocks.
    flags: AckFlags,
    out_of_order: RangeSet,
    dup_acks: u32,
    /// Cumulative ACK to which `dup_acks` refers.
    dup_acks_at: u64,
    /// Starts of the ranges that changed most recently.
    recent: [u64; SACK_BLOCKS],
    /// Longest wait of SACK compression; [`Time::NEVER`] without it.
    compression: Time,
    duplicates: u64,
    /// Segments that are missing below `next`, of an optimistic receiver.
    skipped: u64,
}

impl Receiver {
    /// Before the first segment.
    pub fn new(config: &ReceiverConfig) -> Receiver {
        Receiver {
            next: 0,
            unacknowledged: 0,
            quick: QuickAcks::new(config),
            dup_acks: 0,
            dup_acks_at: 0,
            compressed: 0,
            deadline: Time::NEVER,
            flags: AckFlags::ECHOES_ORIGINAL,
            recent: [0; SACK_BLOCKS],
            out_of_order: RangeSet::default(),
            delayed_ack: config.delayed_ack,
            sack: config.sack,
            dsack: config.sack && config.dsack,
            echo: Echo { ecn: config.ecn, each_mark: config.echo_each_mark },
            delayed_ack_timeout: config.delayed_ack_timeout,
            compression: config
                .sack_compression
                .map_or(Time::NEVER, |most| most.min(Time(config.rtt_hint.0 / 20)).after(COMPRESSION_SLACK)),
            received: 0,
            duplicates: 0,
            skipped: 0,
        }
    }

    /// Starts a new connection; memory stays.
    pub fn reset(&mut self, config: &ReceiverConfig) {
        let mut out_of_order = std::mem::take(&mut self.out_of_order);
        out_of_order.clear();
        *self = Receiver { out_of_order, ..Receiver::new(config) };
    }

    /// Prefetches the data that the next segment needs.
    #[inline(always)]
    pub fn prefetch(&self) {
        prefetch_bytes(self, offset_of!(Receiver, dup_acks));
    }

    /// Prefetches the data of segments beyond a gap.
    #[inline(always)]
    pub fn prefetch_buffers(&self) {
        if !self.out_of_order.is_empty() {
            self.out_of_order.prefetch(self.next);
        }
    }

    /// Everything below this has arrived.
    pub fn next_expected(&self) -> u64 {
        self.next
    }

    /// Segments that arrived, copies included.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Segments that had arrived before, or were refused.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Segments that are here.
    pub fn unique(&self) -> u64 {
        self.next - self.skipped + self.out_of_order.len()
    }

    /// When a held-back ACK goes out; [`Time::NEVER`] if none is held back.
    pub fn deadline(&self) -> Time {
        self.deadline
    }

    /// Bytes of memory beyond the struct itself.
    pub fn memory_bytes(&self) -> usize {
        self.out_of_order.memory_bytes()
    }

    /// Emits the held-back ACK if its time has come by `now`.
    #[inline]
    pub fn on_deadline(&mut self, now: Time, emit: &mut impl FnMut(&Acknowledgement)) {
        if self.deadline <= now {
            self.acknowledge(self.deadline, emit);
        }
    }

    /// Emits the held-back ACK now, if there is one.
    pub fn flush(&mut self, now: Time, emit: &mut impl FnMut(&Acknowledgement)) {
        if self.deadline != Time::NEVER {
            self.acknowledge(now, emit);
        }
    }

    /// A segment arrives at `now`; ACKs go to `emit`, in order of time.
    #[inline(always)]
    pub fn on_segment(&mut self, now: Time, segment: SegmentIn, emit: &mut impl FnMut(&Acknowledgement)) {
        match self.on_plain_segment(now, segment) {
            Some(true) => emit(&self.next_ack(now)),
            Some(false) => {}
            None => self.on_unusual_segment(now, segment, emit),
        }
    }

    /// Takes a segment that arrives at `now` if it is the next in order and nothing else is special about it. Returns
    /// whether the next ACK leaves now. `None`: it is one for [`Receiver::on_unusual_segment`]. A caller that knows
    /// what to do with an ACK without SACK blocks spares itself a function for all ACKs.
    #[inline(always)]
    pub fn on_plain_segment(&mut self, now: Time, segment: SegmentIn) -> Option<bool> {
        let plain = !self.is_marked(segment) && segment.seq == self.next && self.out_of_order.is_empty();
        if !plain || now >= self.deadline {
            return None;
        }
        self.received += 1;
        Some(self.on_next_segment(now, segment, false))
    }

    /// Whether the segment may change the echo of marks.
    #[inline(always)]
    fn is_marked(&self, segment: SegmentIn) -> bool {
        segment.ce | segment.cwr | segment.retransmission | self.flags.has(AckFlags::ECE)
    }

    /// The segment comes after a held-back ACK, is out of order, ends a gap, or may change the echo of marks.
    #[inline(never)]
    pub fn on_unusual_segment(
        &mut self,
        now: Time,
        segment: SegmentIn,
        mut emit: &mut dyn FnMut(&Acknowledgement),
    ) {
        let marked = self.is_marked(segment);
        self.on_deadline(now, &mut emit);
        self.received += 1;
        let at_once = marked && self.echo.ecn && self.on_codepoint(now, segment, &mut emit);
        if segment.seq != self.next {
            self.on_other_segment(now, segment, at_once, &mut emit);
        } else if self.on_next_segment(now, segment, at_once) {
            self.acknowledge(now, &mut emit);
        }
    }

    /// The next segment in order. Returns whether it is acknowledged at once; otherwise its ACK is held back.
    #[inline(always)]
    fn on_next_segment(&mut self, now: Time, segment: SegmentIn, at_once: bool) -> bool {
        // The ACK echoes the timestamp of the first segment since the last ACK (RFC 7323 §4.3).
        if self.unacknowledged == 0 {
            self.flags = if segment.retransmission {
                self.flags.echoing(segment.copy)
            } else {
                self.flags.with(AckFlags::ECHOES_ORIGINAL, true)
            };
        }
        self.next += 1;
        self.unacknowledged += 1;
        let mut at_once = at_once || !self.delayed_ack || self.unacknowledged >= 2;
        if !self.out_of_order.is_empty() {
            self.fill_gap();
            at_once = true;
        }
        at_once |= self.quick.on_segment(now);
        if !at_once && self.deadline == Time::NEVER {
            self.deadline = now + self.delayed_ack_timeout;
        }
        at_once
    }

    /// A gap is filled in part or completely: acknowledge at once (RFC 5681 §4.2).
    #[cold]
    fn fill_gap(&mut self) {
        if let Some(end) = self.out_of_order.end_of(self.next) {
            self.next = end;
        }
        self.out_of_order.advance(self.next);
    }

    /// A refused segment arrives; the receiver sends an ACK (RFC 7323 §5.3).
    pub fn refuse(&mut self, now: Time, emit: &mut impl FnMut(&Acknowledgement)) {
        self.on_deadline(now, emit);
        self.received += 1;
        self.duplicates += 1;
        self.acknowledge(now, emit);
    }

    /// Sets the echo. Returns whether the segment's own ACK must not wait.
    #[cold]
    fn on_codepoint(
        &mut self,
        now: Time,
        segment: SegmentIn,
        emit: &mut impl FnMut(&Acknowledgement),
    ) -> bool {
        let echoed = self.flags.has(AckFlags::ECE);
        if !self.echo.each_mark {
            let begins = segment.ce && !echoed;
            self.flags = self.flags.with(AckFlags::ECE, segment.ce || (echoed && !segment.cwr));
            if !self.quick.exist() {
                return segment.ce;
            }
            if begins || segment.retransmission {
                self.quick.add(QUICK_ACKS_ECN);
            }
            return segment.cwr;
        }
        let changes = segment.ce != echoed;
        if changes && self.deadline != Time::NEVER {
            // Earlier segments get their own ACK, so that no ACK covers both marked and unmarked segments:
            // the two ACKs that §3.2 allows, and that Linux sends.
            self.acknowledge(now, emit);
        }
        self.flags = self.flags.with(AckFlags::ECE, segment.ce);
        if changes && segment.ce {
            self.quick.add(QUICK_ACKS_ECN);
        }
        changes || (segment.cwr && self.quick.exist())
    }

    /// The segment is beyond a gap, or a duplicate.
    #[cold]
    fn on_other_segment(
        &mut self,
        now: Time,
        segment: SegmentIn,
        at_once: bool,
        emit: &mut impl FnMut(&Acknowledgement),
    ) {
        let range =
            if segment.seq < self.next { None } else { self.out_of_order.insert(segment.seq, self.next) };
        let Some(range) = range else {
            self.duplicates += 1;
            if segment.seq < self.next {
                // A duplicate that ends before the last ACK is discarded with its timestamp (measured on Linux 6.12).
                let acknowledged = self.next - u64::from(self.unacknowledged);
                if segment.retransmission && segment.seq + 1 >= acknowledged {
                    self.flags = self.flags.echoing(segment.copy);
                }
                self.quick.add(QUICK_ACKS);
            }
            self.acknowledge_duplicate(now, segment.seq, emit);
            return;
        };
        if self.compressed > 0 && self.newer_ranges(range) >= RANGES_CERTAIN {
            self.acknowledge(now, emit);
        }
        self.remember(range);
        let at_once = at_once || (self.sack && self.quick.take(false)) || self.quick.any();
        if self.compression == Time::NEVER || !self.sack || at_once {
            return self.acknowledge(now, emit);
        }
        if self.dup_acks_at != self.next {
            (self.dup_acks_at, self.dup_acks) = (self.next, 0);
        }
        self.dup_acks += 1;
        if self.dup_acks <= DUP_ACKS_UNCOMPRESSED {
            return self.acknowledge(now, emit);
        }
        self.compressed += 1;
        if self.compressed > COMPRESSED_MAX {
            self.acknowledge(now, emit);
        } else {
            self.deadline = self.deadline.min(now + self.compression);
        }
    }

    /// How many ranges changed after `range`, of those that are remembered; all, if it is new.
    fn newer_ranges(&self, range: Range) -> usize {
        let ranges = self.recent.iter().filter(|&&start| start > self.next);
        ranges.take_while(|&&start| !range.contains(start)).count()
    }

    /// `range` changed last; ranges that it now contains are removed.
    fn remember(&mut self, range: Range) {
        let mut kept = [range.start, 0, 0];
        let others = self.recent.iter().filter(|&&start| !range.contains(start));
        for (place, &start) in kept[1..].iter_mut().zip(others) {
            *place = start;
        }
        self.recent = kept;
    }

    fn acknowledge(&mut self, at: Time, emit: &mut impl FnMut(&Acknowledgement)) {
        let mut ack = self.next_ack(at);
        if self.sack && !self.out_of_order.is_empty() {
            let mut blocks = 0;
            for start in self.recent {
                if start <= self.next {
                    continue;
                }
                if let Some(end) = self.out_of_order.end_of(start) {
                    ack.sack[blocks] = Range { start, end };
                    blocks += 1;
                }
            }
            ack.flags = ack.flags.with_blocks(blocks);
        }
        emit(&ack);
    }

    /// The ACK that leaves at `at`, without SACK blocks; nothing is held back any more.
    #[inline(always)]
    pub fn next_ack(&mut self, at: Time) -> Acknowledgement {
        self.unacknowledged = 0;
        self.quick.on_ack();
        self.compressed = 0;
        self.deadline = Time::NEVER;
        let sack = [Range::default(); SACK_BLOCKS];
        Acknowledgement { at, cumulative: self.next, flags: self.flags, sack }
    }

    /// Segment `seq` is a duplicate: its block is the first, and the oldest block may be dropped.
    #[cold]
    fn acknowledge_duplicate(&mut self, at: Time, seq: u64, emit: &mut impl FnMut(&Acknowledgement)) {
        let dsack = self.dsack;
        self.acknowledge(at, &mut |ack: &Acknowledgement| {
            let mut ack = *ack;
            if dsack {
                ack.sack.rotate_right(1);
                ack.sack[0] = Range { start: seq, end: seq + 1 };
                let blocks = (ack.flags.blocks() + 1).min(SACK_BLOCKS);
                ack.flags = ack.flags.with(AckFlags::DUPLICATE, true).with_blocks(blocks);
            }
            emit(&ack);
        });
    }
}

#[cfg(test)]
mod tests;
