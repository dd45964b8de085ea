//! Receiver: cumulative and selective acknowledgement, delayed ACKs, SACK compression.
//!
//! The caller may pass a segment before its arrival time, in order of arrival: a simulator that knows the
//! arrival time when the packet is sent need not wait. Therefore a delayed ACK whose timer expired before the
//! segment's arrival is emitted first, with its own time.

use std::mem::offset_of;

use lfn_units::Time;

use crate::config::QUICK_ACKS;
use crate::prefetch::prefetch_bytes;
use crate::{Range, RangeSet, ReceiverConfig};

/// SACK blocks in one ACK: as many as fit beside timestamps (RFC 2018 §3).
pub const SACK_BLOCKS: usize = 3;
/// Duplicate ACKs sent at once before compression begins (Linux: the fast-retransmit threshold).
const DUP_ACKS_UNCOMPRESSED: u32 = 3;
/// ACKs that compression may hold back (Linux tcp_comp_sack_nr).
const COMPRESSED_MAX: u32 = 44;
/// Segments acknowledged at once after a mark that begins an echo, and after a retransmission, which is not
/// ECN-capable (measured).
const QUICK_ACKS_ECN: u32 = 2;

/// A data segment as the receiver sees it.
#[derive(Clone, Copy, Debug)]
pub struct SegmentIn {
    /// Segment number.
    pub seq: u64,
    /// Whether it is a retransmission.
    pub retransmission: bool,
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
    /// The timestamp echoed is that of an original transmission (Eifel, RFC 3522).
    pub echoes_original: bool,
    /// It answers a duplicate segment, which the first block names (DSACK, RFC 2883).
    pub duplicate: bool,
    /// Congestion is echoed (RFC 3168 ECE).
    pub ece: bool,
    /// SACK blocks, most recent first, after that of a duplicate; the first `blocks` of them.
    pub sack: [Range; SACK_BLOCKS],
    /// Number of valid blocks in `sack`.
    pub blocks: u8,
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
    /// Segments that are still acknowledged at once.
    quick: u32,
    /// Segments that still make the window grow: each is acknowledged at once as well.
    growing: u32,
    /// When the last segment in order arrived; after `pause` without one ACKs do not wait.
    last: Time,
    pause: Time,
    /// How many of `recent`, from the first, changed since the last ACK.
    unreported: u8,
    delayed_ack: bool,
    sack: bool,
    dsack: bool,
    ecn: bool,
    echo_each_mark: bool,
    /// ECE of the next ACK.
    ece: bool,
    echoes_original: bool,
    out_of_order: RangeSet,
    dup_acks: u32,
    /// Cumulative ACK to which `dup_acks` refers.
    dup_acks_at: u64,
    /// Starts of the ranges that changed most recently.
    recent: [u64; SACK_BLOCKS],
    compression: Option<Time>,
    duplicates: u64,
}

impl Receiver {
    /// Before the first segment.
    pub fn new(config: &ReceiverConfig) -> Receiver {
        Receiver {
            next: 0,
            unacknowledged: 0,
            quick: config.quick_acks(),
            growing: config.growing_segments(),
            last: Time::NEVER,
            pause: config.pause(),
            dup_acks: 0,
            dup_acks_at: 0,
            compressed: 0,
            deadline: Time::NEVER,
            ece: false,
            echoes_original: true,
            recent: [0; SACK_BLOCKS],
            unreported: 0,
            out_of_order: RangeSet::default(),
            delayed_ack: config.delayed_ack,
            sack: config.sack,
            dsack: config.sack && config.dsack,
            ecn: config.ecn,
            echo_each_mark: config.echo_each_mark,
            delayed_ack_timeout: config.delayed_ack_timeout,
            compression: config.sack_compression.map(|most| most.min(Time(config.rtt_hint.0 / 20))),
            received: 0,
            duplicates: 0,
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

    /// Segments beyond the first gap.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order.len()
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
    #[inline]
    pub fn on_segment(&mut self, now: Time, segment: SegmentIn, emit: &mut impl FnMut(&Acknowledgement)) {
        self.on_deadline(now, emit);
        self.received += 1;
        let unusual = segment.ce | segment.cwr | segment.retransmission | self.ece;
        let echo_at_once = unusual && self.ecn && self.on_codepoint(now, segment, emit);
        if segment.seq != self.next {
            self.on_other_segment(now, segment, echo_at_once, emit);
            return;
        }
        // The ACK echoes the timestamp of the first segment since the last ACK (RFC 7323 §4.3).
        if self.unacknowledged == 0 {
            self.echoes_original = !segment.retransmission;
        }
        self.next += 1;
        self.unacknowledged += 1;
        let mut at_once = echo_at_once || !self.delayed_ack || self.unacknowledged >= 2;
        if !self.out_of_order.is_empty() {
            self.fill_gap();
            at_once = true;
        }
        // An infinite pause: the receiver has no quick ACKs.
        if self.pause != Time::NEVER {
            let paused = now > self.last.after(self.pause);
            self.last = now;
            at_once |= (paused || (self.quick | self.growing) != 0) && self.is_quick(paused);
        }
        if at_once {
            self.acknowledge(now, emit);
        } else if self.deadline == Time::NEVER {
            self.deadline = now + self.delayed_ack_timeout;
        }
    }

    /// A gap is filled in part or completely: acknowledge at once (RFC 5681 §4.2).
    #[cold]
    fn fill_gap(&mut self) {
        if let Some(end) = self.out_of_order.end_of(self.next) {
            self.next = end;
        }
        self.out_of_order.advance(self.next);
    }

    /// Whether the receiver acknowledges the segment as a quick ACK.
    #[cold]
    fn is_quick(&mut self, paused: bool) -> bool {
        if self.growing > 0 {
            self.growing -= 1;
            self.quick |= 1;
        }
        if paused {
            self.quicken(QUICK_ACKS);
        }
        self.quick > 0
    }

    /// The next `acks` segments are acknowledged at once.
    fn quicken(&mut self, acks: u32) {
        if self.pause != Time::NEVER {
            self.quick = self.quick.max(acks);
        }
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
        if !self.echo_each_mark {
            let begins = segment.ce && !self.ece;
            self.ece = segment.ce || (self.ece && !segment.cwr);
            if self.pause == Time::NEVER {
                return segment.ce;
            }
            if begins || segment.retransmission {
                self.quicken(QUICK_ACKS_ECN);
            }
            return segment.cwr;
        }
        let changes = segment.ce != self.ece;
        if changes && self.deadline != Time::NEVER {
            // Earlier segments get their own ACK, so that no ACK covers both marked and unmarked segments:
            // the two ACKs that §3.2 allows, and that Linux sends.
            self.acknowledge(now, emit);
        }
        self.ece = segment.ce;
        if changes && segment.ce {
            self.quicken(QUICK_ACKS_ECN);
        }
        changes
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
                self.echoes_original &= !segment.retransmission;
                self.quicken(QUICK_ACKS);
            }
            self.acknowledge_duplicate(now, segment.seq, emit);
            return;
        };
        let fresh = !self.recent[..usize::from(self.unreported)].iter().any(|start| range.contains(*start));
        if fresh && usize::from(self.unreported) == SACK_BLOCKS {
            // No ACK has room for a fourth change: what was held back goes first (as in Linux).
            self.acknowledge(now, emit);
        }
        self.remember(range);
        let at_once = at_once || (self.sack && self.is_quick(false)) || self.quick > 0;
        match self.compression {
            Some(most) if self.sack && !at_once => {
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
                    self.deadline = self.deadline.min(now + most);
                }
            }
            _ => self.acknowledge(now, emit),
        }
    }

    /// `range` changed last; ranges that it now contains are removed.
    fn remember(&mut self, range: Range) {
        let mut kept = [range.start, 0, 0];
        let (mut count, mut unreported) = (1, 1);
        for (index, start) in self.recent.into_iter().enumerate() {
            if count < SACK_BLOCKS && start != 0 && !range.contains(start) {
                kept[count] = start;
                count += 1;
                unreported += u8::from(index < usize::from(self.unreported));
            }
        }
        self.unreported = unreported;
        self.recent = kept;
    }

    #[inline(always)]
    fn acknowledge(&mut self, at: Time, emit: &mut impl FnMut(&Acknowledgement)) {
        self.unacknowledged = 0;
        self.quick = self.quick.saturating_sub(1);
        self.compressed = 0;
        self.unreported = 0;
        self.deadline = Time::NEVER;
        let mut ack = Acknowledgement {
            at,
            cumulative: self.next,
            echoes_original: self.echoes_original,
            duplicate: false,
            ece: self.ece,
            ..Acknowledgement::default()
        };
        if self.sack && !self.out_of_order.is_empty() {
            for start in self.recent {
                if start <= self.next {
                    continue;
                }
                if let Some(end) = self.out_of_order.end_of(start) {
                    ack.sack[usize::from(ack.blocks)] = Range { start, end };
                    ack.blocks += 1;
                }
            }
        }
        emit(&ack);
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
                ack.blocks = (ack.blocks + 1).min(SACK_BLOCKS as u8);
                ack.duplicate = true;
            }
            emit(&ack);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acks(config: &ReceiverConfig, segments: &[(u64, u64)]) -> Vec<Acknowledgement> {
        let mut receiver = Receiver::new(config);
        let mut out = Vec::new();
        for &(at_us, seq) in segments {
            let segment = SegmentIn { seq, retransmission: false, ce: false, cwr: false };
            receiver.on_segment(Time::from_us(at_us), segment, &mut |ack| out.push(*ack));
        }
        receiver.on_deadline(Time::from_s(1), &mut |ack| out.push(*ack));
        out
    }

    fn quiet() -> ReceiverConfig {
        ReceiverConfig { buffer_bytes: None, ..ReceiverConfig::linux(Time::from_ms(100), 1448) }
    }

    #[test]
    fn every_second_segment_and_the_timer() {
        let out = acks(&quiet(), &[(0, 0), (10, 1), (20, 2), (30, 3), (40, 4)]);
        let seen: Vec<(u64, u64)> = out.iter().map(|a| (a.at.as_ns() / 1000, a.cumulative)).collect();
        assert_eq!(seen, [(10, 2), (30, 4), (40_040, 5)]);
    }

    #[test]
    fn timer_that_ran_out_before_the_next_segment_comes_first() {
        let out = acks(&quiet(), &[(0, 0), (50_000, 1), (50_010, 2)]);
        let seen: Vec<(u64, u64)> = out.iter().map(|a| (a.at.as_ns() / 1000, a.cumulative)).collect();
        assert_eq!(seen, [(40_000, 1), (50_010, 3)]);
    }

    /// Segments covered by each ACK; segments arrive in order from `from` on at these times in ms.
    fn steps(config: &ReceiverConfig, segments: &[(u64, u64)]) -> Vec<u64> {
        let at_us: Vec<(u64, u64)> = segments.iter().map(|&(ms, seq)| (ms * 1000, seq)).collect();
        let cumulative: Vec<u64> = acks(config, &at_us).iter().map(|ack| ack.cumulative).collect();
        cumulative.iter().scan(0, |last, &c| Some(c - std::mem::replace(last, c))).collect()
    }

    #[test]
    fn segments_are_acknowledged_one_by_one_while_the_window_grows() {
        // Linux 6.12 with receive buffers of 8 MiB, by payload: 401 at once with 1448 bytes, then pairs.
        let config = |mss, bytes| ReceiverConfig {
            buffer_bytes: Some(bytes),
            ..ReceiverConfig::linux(Time::from_ms(100), mss)
        };
        let segments: Vec<(u64, u64)> = (0..500).map(|seq| (seq, seq)).collect();
        let seen = steps(&config(1448, 8 << 20), &segments);
        assert_eq!(seen.iter().position(|&step| step == 2), Some(401));
        assert!(seen[401..450].iter().all(|&step| step == 2));
        // With 64 MiB the window stood still at these segments, to the sample; one of 524 bytes does not grow.
        for (mss, measured) in [(948, 1131), (1448, 3118), (3948, 2816), (8948, 1611)] {
            let growing = config(mss, 64 << 20).growing_segments();
            assert!((measured - 80..=measured).contains(&growing), "{mss}: {growing}");
        }
        assert_eq!(config(524, 64 << 20).growing_segments(), 0);
    }

    #[test]
    fn sixteen_acks_do_not_wait_after_a_pause_or_what_was_here_already() {
        // Linux 6.12: the link was down for a second; the path doubled a packet.
        let config =
            ReceiverConfig { buffer_bytes: Some(0), ..ReceiverConfig::linux(Time::from_ms(100), 1448) };
        let quick = |seen: &[u64]| seen.iter().filter(|&&step| step == 1).count();
        let all: Vec<(u64, u64)> =
            (0..200).map(|seq| (seq + if seq < 100 { 0 } else { 1000 }, seq)).collect();
        let seen = steps(&config, &all);
        assert_eq!((quick(&seen[..58]), quick(&seen[58..74])), (16, 16));
        assert!(seen[16..58].iter().chain(&seen[74..]).all(|&step| step == 2));
        // 250 ms are no pause.
        let all: Vec<(u64, u64)> = (0..200).map(|seq| (seq + if seq < 100 { 0 } else { 250 }, seq)).collect();
        assert_eq!(quick(&steps(&config, &all)), 16);
        let all: Vec<(u64, u64)> =
            (0..101).chain([99]).chain(101..160).enumerate().map(|(at, seq)| (at as u64, seq)).collect();
        assert_eq!(quick(&steps(&config, &all)), 16 + 16);
    }

    #[test]
    fn sacks_are_not_compressed_while_acks_do_not_wait() {
        let config =
            ReceiverConfig { buffer_bytes: Some(0), ..ReceiverConfig::linux(Time::from_ms(100), 1448) };
        let segments: Vec<(u64, u64)> = (0..60).map(|k| (k * 10, k + 1)).collect();
        // 16 at once, then three duplicates, and what compression leaves.
        assert_eq!(acks(&config, &segments).len(), 16 + 3 + 1);
    }

    #[test]
    fn blocks_are_maximal_and_most_recent_first() {
        let config = ReceiverConfig::ns2(Time::from_ms(100));
        let out = acks(&config, &[(0, 0), (1, 2), (2, 4), (3, 6), (4, 8), (5, 3), (6, 1)]);
        let blocks = |ack: &Acknowledgement| {
            ack.sack[..usize::from(ack.blocks)].iter().map(|r| (r.start, r.end)).collect::<Vec<_>>()
        };
        assert_eq!(blocks(&out[4]), [(8, 9), (6, 7), (4, 5)]);
        assert_eq!(blocks(&out[5]), [(2, 5), (8, 9), (6, 7)]);
        assert_eq!(out[6].cumulative, 5);
        assert_eq!(blocks(&out[6]), [(8, 9), (6, 7)]);
    }

    #[test]
    fn compression_begins_with_the_fourth_duplicate() {
        let segments: Vec<(u64, u64)> = (0..60).map(|k| (k * 10, k + 1)).collect();
        let out = acks(&quiet(), &segments);
        // Three at once, then the forty-fifth held back, then the timer: 1 ms (5 % of 100 ms is more).
        assert_eq!(out.len(), 5);
        assert_eq!((out[3].at, out[3].sack[0]), (Time::from_us(470), Range { start: 1, end: 49 }));
        assert_eq!((out[4].at, out[4].sack[0]), (Time::from_us(480 + 1000), Range { start: 1, end: 61 }));
        // A short RTT compresses for 5 % of it: 50 us.
        let short = ReceiverConfig { rtt_hint: Time::from_ms(1), ..quiet() };
        assert!(acks(&short, &segments).len() > 10);
    }

    #[test]
    fn compression_loses_no_block() {
        // Every second segment is missing: each arrival is a range of its own.
        let segments: Vec<(u64, u64)> = (0..60).map(|k| (k * 10, 2 * k + 1)).collect();
        let mut reported: Vec<u64> = acks(&quiet(), &segments)
            .iter()
            .flat_map(|ack| ack.sack[..usize::from(ack.blocks)].to_vec())
            .map(|r| r.start)
            .collect();
        reported.sort_unstable();
        reported.dedup();
        assert_eq!(reported, segments.iter().map(|s| s.1).collect::<Vec<_>>());
    }

    #[test]
    fn congestion_is_echoed_until_the_window_was_reduced() {
        let config = ReceiverConfig { ecn: true, ..ReceiverConfig::ns2(Time::from_ms(100)) };
        let mut receiver = Receiver::new(&config);
        let mut ece = Vec::new();
        for seq in 0..6 {
            let segment = SegmentIn { seq, retransmission: false, ce: seq == 1, cwr: seq == 4 };
            receiver.on_segment(Time::from_us(seq), segment, &mut |ack| ece.push(ack.ece));
        }
        assert_eq!(ece, [false, true, true, true, false, false]);
    }

    /// The receiver of RFC 8257, with these segments and marks: (cumulative, ECE) of its ACKs.
    fn echoes(delayed_ack: bool, segments: &[(u64, bool)]) -> Vec<(u64, bool)> {
        let config = ReceiverConfig { ecn: true, echo_each_mark: true, delayed_ack, ..quiet() };
        let mut receiver = Receiver::new(&config);
        let mut out = Vec::new();
        for (at_us, &(seq, ce)) in (0..).zip(segments) {
            // CWR does not end the echo.
            let segment = SegmentIn { seq, retransmission: false, ce, cwr: seq == 3 };
            receiver
                .on_segment(Time::from_us(at_us), segment, &mut |ack| out.push((ack.cumulative, ack.ece)));
        }
        receiver.on_deadline(Time::from_s(1), &mut |ack| out.push((ack.cumulative, ack.ece)));
        out
    }

    #[test]
    fn each_mark_is_echoed_by_the_ack_of_its_segment() {
        let marks = [false, true, true, true, false, false, true, false];
        let segments: Vec<(u64, bool)> = (0..).zip(marks).collect();
        let wanted: Vec<(u64, bool)> = segments.iter().map(|&(seq, ce)| (seq + 1, ce)).collect();
        assert_eq!(echoes(false, &segments), wanted);
    }

    #[test]
    fn a_change_of_marks_divides_delayed_acks() {
        // RFC 8257, figure 1, with an ACK for every second segment. States: 0 0 0 | 1 1 1 1 | 0 | 1.
        let marks = [false, false, false, true, true, true, true, false, true];
        let segments: Vec<(u64, bool)> = (0..).zip(marks).collect();
        let wanted = [
            (2, false),
            // Segment 2 waits; 3 is marked: one ACK for what came before, one at once.
            (3, false),
            (4, true),
            (6, true),
            // Segment 6 waits; 7 is not marked.
            (7, true),
            (8, false),
            (9, true),
        ];
        assert_eq!(echoes(true, &segments), wanted);
        // Without a change of marking, delayed ACKs as usual.
        let all: Vec<(u64, bool)> = (0..8).map(|seq| (seq, true)).collect();
        assert_eq!(echoes(true, &all), [(1, true), (3, true), (5, true), (7, true), (8, true)]);
    }

    #[test]
    fn marks_beyond_a_gap_are_echoed_at_once() {
        // Segment 0 is missing; from the fourth duplicate on ACKs wait, but not for a change.
        let marks = [false, false, false, false, false, true, true, false];
        let segments: Vec<(u64, bool)> = (1..).zip(marks).collect();
        let echoes: Vec<bool> = echoes(true, &segments).iter().map(|&(_, ece)| ece).collect();
        // Three at once; the fourth and fifth held back until the mark; the sixth; the seventh held back until
        // the next change; the eighth.
        assert_eq!(echoes, [false, false, false, false, true, true, false]);
    }

    #[test]
    fn an_ack_that_was_due_before_the_window_was_reduced_still_echoes() {
        let config = ReceiverConfig { ecn: true, ..quiet() };
        let mut receiver = Receiver::new(&config);
        let mut seen = Vec::new();
        for (at_ms, seq, ce, cwr) in [(0, 0, true, false), (1, 1, false, false), (90, 2, false, true)] {
            let segment = SegmentIn { seq, retransmission: false, ce, cwr };
            receiver.on_segment(Time::from_ms(at_ms), segment, &mut |ack| seen.push((ack.at, ack.ece)));
        }
        assert_eq!(seen, [(Time::ZERO, true), (Time::from_ms(41), true)]);
    }

    #[test]
    fn what_is_here_already_is_named_by_the_first_block() {
        let segments = [(0, 0), (1, 1), (2, 0), (3, 3), (4, 3), (5, 5), (6, 7), (7, 3)];
        let seen = |config| -> Vec<(bool, Vec<(u64, u64)>)> {
            let blocks = |a: &Acknowledgement| a.sack[..usize::from(a.blocks)].to_vec();
            let pairs = |a: &Acknowledgement| blocks(a).iter().map(|r| (r.start, r.end)).collect();
            acks(&config, &segments).iter().map(|a| (a.duplicate, pairs(a))).collect()
        };
        let ns2 = ReceiverConfig::ns2(Time::from_ms(100));
        let out = seen(ReceiverConfig { dsack: true, ..ns2 });
        assert_eq!(out[2], (true, vec![(0, 1)]));
        assert_eq!(out[4], (true, vec![(3, 4), (3, 4)]));
        // Three blocks at most: the duplicate, and the two ranges that changed last.
        assert_eq!(out[7], (true, vec![(3, 4), (7, 8), (5, 6)]));
        assert!(seen(ns2).iter().all(|(duplicate, _)| !duplicate));
        assert!(seen(ReceiverConfig { dsack: true, sack: false, ..ns2 }).iter().all(|ack| ack.1.is_empty()));
    }

    #[test]
    fn the_timestamp_of_the_first_segment_since_the_last_ack_is_echoed() {
        let mut receiver = Receiver::new(&quiet());
        let mut echoes = Vec::new();
        for (seq, retransmission) in [(0, true), (1, false), (2, false), (3, true), (4, false), (4, true)] {
            let segment = SegmentIn { seq, retransmission, ce: false, cwr: false };
            receiver.on_segment(Time::from_us(seq), segment, &mut |ack| echoes.push(ack.echoes_original));
        }
        assert_eq!(echoes, [false, true, false]);
    }
}
