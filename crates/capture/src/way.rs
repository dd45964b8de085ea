//! One direction of a connection: the data that one end sends, and what the other acknowledges.

use std::collections::VecDeque;

use crate::packet::Segment;
use crate::ranges::Ranges;
use crate::{At, Row};

/// Smallest time after which a segment in a gap is sent again, without timestamps and without an RTT.
const LATE_NS: u64 = 3_000_000;
/// Bytes, in segments, that are acknowledged above a lost segment (RFC 6675, DupThresh).
const ABOVE: i64 = 3;
/// A jump in sequence numbers beyond this is of another connection, or hostile.
const MOST_JUMP: i64 = 1 << 30;
const MOST_GAPS: usize = 1024;
/// Segments that one packet sends again, at most.
const MOST_PARTS: usize = 1024;
/// Payload of a usual full segment, at most.
const USUAL: u32 = 1460;

/// A segment when it was sent for the first time.
#[derive(Clone, Copy, Debug)]
struct Sent {
    start: i64,
    end: i64,
    t_ns: u64,
    stamp: Option<u32>,
    id: u16,
    /// Sent again, or acknowledged by SACK: of no use for an RTT.
    is_done: bool,
}

/// Bytes that a later segment overtook.
#[derive(Clone, Copy, Debug)]
struct Gap {
    start: i64,
    end: i64,
    t_ns: u64,
    stamp: Option<u32>,
}

/// The ACKs with one timestamp.
#[derive(Clone, Copy, Debug)]
struct Echo {
    stamp: u32,
    t_ns: u64,
    /// Bytes that were not in flight any more.
    past: i64,
    /// Others were in flight still.
    is_under_way: bool,
    is_used: bool,
}

/// A receiver's host acknowledges within this time.
const HOST_NS: u64 = 1_000_000;

/// Samples of a round trip, or a part of it, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rtt {
    /// The latest.
    pub last: Option<u64>,
    /// Smoothed as by RFC 6298.
    pub smoothed: Option<u64>,
    /// The smallest.
    pub least: Option<u64>,
}

impl Rtt {
    fn add(&mut self, sample_ns: u64) {
        self.last = Some(sample_ns);
        self.smoothed = Some(match self.smoothed {
            None => sample_ns,
            Some(old) => old - old / 8 + sample_ns / 8,
        });
        self.least = Some(self.least.map_or(sample_ns, |least| least.min(sample_ns)));
    }
}

/// The data of one end.
#[derive(Debug, Default)]
pub struct Way {
    /// Sequence number of the first byte of payload, where it is known.
    base: Option<u32>,
    /// Its SYN was seen.
    is_begun: bool,
    /// End of the highest byte seen, and the highest number acknowledged.
    top: i64,
    una: i64,
    first_ack: Option<i64>,
    /// No RTT from cumulative ACKs below: something was sent again or came late.
    recover: i64,
    fin: Option<i64>,
    sent: VecDeque<Sent>,
    gaps: Vec<Gap>,
    sacked: Ranges,
    again: Ranges,
    echoes: VecDeque<Echo>,
    echo_past: Option<i64>,
    echo_flight: Option<i64>,
    /// From here to the receiver and back, and from here to the sender and back.
    pub ahead: Rtt,
    pub behind: Rtt,
    /// Least part behind of the ACKs after which data were under way still.
    behind_under_way: Option<u64>,
    /// Scale of the receiver's windows.
    pub scale: Option<u8>,
    window: Option<u64>,
    /// Largest segments that the ends of the connection allow, less timestamps.
    pub mss: Option<u32>,
    /// Largest payload, and the largest of a usual size.
    largest: u32,
    usual: u32,
    pub retransmits: u64,
    pub reordered: u64,
    acks: u64,
    ack_stamp: Option<(u64, u32)>,
    data_stamp: Option<(u64, u32)>,
    /// Packets that are in the file twice.
    pub copies: u64,
    /// Bytes that were acknowledged and are not in the file.
    pub unseen: u64,
    /// Payload seen.
    pub payload: u64,
    pub first_ns: Option<u64>,
    pub last_ns: u64,
    place: Option<u64>,
    pub rows: Vec<Row>,
}

impl Way {
    /// A SYN with this number begins it.
    pub fn begin(&mut self, seq: u32) {
        if self.base.is_none() {
            self.base = Some(seq.wrapping_add(1));
            self.first_ack = Some(0);
            self.is_begun = true;
        }
    }

    /// Whether a SYN with another number has begun it.
    pub fn is_other(&self, seq: u32) -> bool {
        self.base.is_some_and(|base| base != seq.wrapping_add(1)) && self.top > 0
    }

    /// Bytes of a full segment.
    pub fn segment(&self) -> Option<u32> {
        let seen = if self.usual >= 536 { self.usual } else { self.largest };
        self.mss.or((seen > 0).then_some(seen))
    }

    /// Things that are kept for each packet in flight.
    pub fn kept(&self) -> usize {
        self.sent.len() + self.echoes.len() + self.gaps.len() + self.sacked.len() + self.again.len()
    }

    /// Forgets the older half of what is kept.
    pub fn trim(&mut self) {
        self.sent.drain(..self.sent.len() / 2);
        self.echoes.drain(..self.echoes.len() / 2);
        self.sent.shrink_to_fit();
        self.echoes.shrink_to_fit();
    }

    /// Bytes acknowledged since the first ACK that was seen; None without an ACK.
    pub fn delivered(&self) -> Option<u64> {
        let begin = self.first_ack?;
        let end = self.fin.map_or(self.una, |fin| self.una.min(fin));
        Some((end - begin).max(0) as u64)
    }

    /// Rows up to a time, before what happens then. A time without packets has no rows but at its ends.
    pub fn sample(&mut self, t_ns: u64, step_ns: u64) -> usize {
        let now = t_ns / step_ns;
        let Some(place) = self.place.replace(now) else { return 0 };
        let before = self.rows.len();
        if now > place {
            self.row((place + 1) * step_ns);
        }
        if now > place + 1 {
            self.row(now * step_ns);
        }
        self.rows.len() - before
    }

    /// A row with what is known now.
    pub fn row(&mut self, t_ns: u64) {
        let segment = i64::from(self.segment().unwrap_or(0));
        self.rows.push(Row {
            t_ns,
            delivered: self.delivered(),
            arrived: self.delivered().map(|bytes| bytes + self.sacked.total() as u64),
            flight: self.first_ack.map(|_| self.flight(segment)),
            echo_flight: self.echo_flight.map(|bytes| bytes.max(0) as u64),
            window: self.window,
            ahead: self.ahead,
            behind: self.behind,
            retransmits: self.retransmits,
            reordered: self.reordered,
            acks: self.acks,
            ack_stamp: self.ack_stamp,
            data_stamp: self.data_stamp,
        });
    }

    /// The last row.
    pub fn end(&mut self) {
        // A packet of the other end may have come later, and with it a row.
        let end_ns = self.rows.last().map_or(0, |row| row.t_ns).max(self.last_ns);
        if self.rows.last().is_some_and(|row| row.t_ns == end_ns) {
            self.rows.pop();
        }
        self.row(end_ns);
    }

    /// Doubles the step of the rows.
    pub fn thin(&mut self, step_ns: u64) {
        self.rows.retain(|row| row.t_ns.is_multiple_of(2 * step_ns));
        self.place = self.place.map(|place| place / 2);
    }

    /// Bytes in flight as RFC 6675 counts them: less those that SACK tells, and lost ones until they are sent again.
    fn flight(&self, segment: i64) -> u64 {
        let out = self.top.max(self.una) - self.una - self.sacked.total();
        let lost_below = self.sacked.end().map_or(self.una, |end| (end - ABOVE * segment).max(self.una));
        let told_below = self.sacked.total() - self.sacked.above(lost_below);
        let lost = (lost_below - self.una - told_below).max(0);
        (out - lost + self.again.total().min(lost)).max(0) as u64
    }

    fn unwrapped(&mut self, seq: u32) -> i64 {
        let base = *self.base.get_or_insert(seq);
        let near = self.top.max(self.una);
        let at = base.wrapping_add(near as u32);
        near + i64::from(seq.wrapping_sub(at) as i32)
    }

    /// Takes data; `rtt_ns` is the smallest round trip that is known.
    pub fn send(&mut self, segment: &Segment, rtt_ns: Option<u64>) {
        let start = self.unwrapped(segment.seq) + i64::from(segment.syn);
        let end = start + i64::from(segment.payload);
        if (start - self.top.max(self.una)).abs() > MOST_JUMP {
            return;
        }
        if segment.fin {
            let end = end.max(self.una);
            self.fin = Some(self.fin.map_or(end, |fin| fin.max(end)));
        }
        if let Some((_, echo)) = segment.stamps {
            self.echoed(segment, echo, end);
        }
        if segment.payload == 0 {
            return;
        }
        self.first_ns.get_or_insert(segment.t_ns);
        self.last_ns = segment.t_ns;
        self.data_stamp = segment.stamps.map(|(value, _)| (segment.t_ns, value)).or(self.data_stamp);
        self.largest = self.largest.max(segment.payload);
        if segment.payload <= USUAL {
            self.usual = self.usual.max(segment.payload);
        }
        // Data of before is in flight when a capture begins within a connection.
        let is_first = self.payload == 0 && !self.is_begun;
        if is_first {
            self.top = start;
            self.una = if self.first_ack.is_some() { self.una } else { start };
        }
        if start < self.top && !self.late(segment, start, end.min(self.top), rtt_ns) {
            return;
        }
        self.payload += u64::from(segment.payload);
        let fresh = start.max(self.top);
        if end > fresh {
            let stamp = segment.stamps.map(|(value, _)| value);
            let below = self.top.max(self.una);
            if fresh > below && !is_first && self.gaps.len() < MOST_GAPS {
                self.gaps.push(Gap { start: below, end: fresh, t_ns: segment.t_ns, stamp });
            }
            let is_done = start < fresh;
            let (t_ns, id) = (segment.t_ns, segment.id);
            self.sent.push_back(Sent { start: fresh, end, t_ns, stamp, id, is_done });
            self.top = end;
        }
    }

    /// An echo of an ACK's timestamp tells when the sender had it, and what was in flight then.
    fn echoed(&mut self, segment: &Segment, echo: u32, end: i64) {
        while let Some(first) = self.echoes.front_mut() {
            let later = first.stamp.wrapping_sub(echo) as i32;
            if later > 0 {
                break;
            }
            self.echo_past = Some(self.echo_past.map_or(first.past, |past| past.max(first.past)));
            if later == 0 {
                if !first.is_used && segment.payload > 0 {
                    first.is_used = true;
                    let sample_ns = segment.t_ns.saturating_sub(first.t_ns);
                    self.behind.add(sample_ns);
                    if first.is_under_way {
                        let least = self.behind_under_way.map_or(sample_ns, |least| least.min(sample_ns));
                        self.behind_under_way = Some(least);
                    }
                }
                break;
            }
            self.echoes.pop_front();
        }
        if let Some(past) = self.echo_past.filter(|_| segment.payload > 0 && end > self.top) {
            self.echo_flight = Some(end - past);
        }
    }

    /// A segment below the highest byte seen: a copy, sent again, or late. False for a copy.
    fn late(&mut self, segment: &Segment, start: i64, end: i64, rtt_ns: Option<u64>) -> bool {
        let value = segment.stamps.map(|(value, _)| value);
        let size = i64::from(self.segment().unwrap_or(segment.payload)).max(1);
        let count = ((end - start) as u64).div_ceil(size as u64);
        let first = self.gaps.partition_point(|gap| gap.end <= start);
        let filled = self.gaps.get(first).filter(|gap| gap.start < end).copied();
        if let Some(gap) = filled {
            let waited_ns = segment.t_ns.saturating_sub(gap.t_ns);
            let is_again = match (value, gap.stamp) {
                (Some(value), Some(stamp)) => (value.wrapping_sub(stamp) as i32) > 0,
                _ => waited_ns > rtt_ns.map_or(LATE_NS, |rtt| rtt / 2),
            };
            if is_again {
                self.retransmits += count;
            } else {
                self.reordered += count;
            }
            self.fill(start, end);
            self.recover = self.top;
            return true;
        }
        // A probe that keeps a connection alive has a byte of before.
        if end <= self.una && segment.payload <= 1 {
            return false;
        }
        let place = self.sent.partition_point(|sent| sent.end <= start);
        if let Some(sent) = self.sent.get(place) {
            let is_alike =
                sent.start == start && sent.end == end && sent.stamp == value && sent.id == segment.id;
            let is_soon = segment.t_ns.saturating_sub(sent.t_ns) < rtt_ns.map_or(LATE_NS, |rtt| rtt / 2);
            if is_alike && (segment.id != 0 || (value.is_some() && is_soon)) {
                self.copies += 1;
                return false;
            }
        }
        self.retransmits += count;
        self.recover = self.top;
        self.again.insert(start.max(self.una), end);
        let after = self.sent.partition_point(|sent| sent.start < end);
        for sent in self.sent.range_mut(place..after.max(place)).take(MOST_PARTS) {
            sent.is_done = true;
            sent.stamp = value;
            sent.id = segment.id;
        }
        true
    }

    /// Takes a range out of the gaps.
    fn fill(&mut self, start: i64, end: i64) {
        let apart = |gap: &Gap| gap.end <= start || gap.start >= end;
        let kept = |gap: Gap| {
            let parts = if apart(&gap) {
                [Some(gap), None]
            } else {
                [Some(Gap { end: gap.end.min(start), ..gap }), Some(Gap { start: gap.start.max(end), ..gap })]
            };
            parts.into_iter().flatten().filter(|part| part.start < part.end)
        };
        self.gaps = std::mem::take(&mut self.gaps).into_iter().flat_map(kept).collect();
    }

    /// Takes an ACK of the other end.
    pub fn acknowledge(&mut self, segment: &Segment) {
        let Some(number) = segment.ack else { return };
        let ack = self.unwrapped(number);
        if (ack - self.top.max(self.una)).abs() > MOST_JUMP {
            return;
        }
        if self.first_ack.is_none() {
            self.first_ack = Some(ack);
            self.una = ack;
        }
        self.last_ns = self.last_ns.max(segment.t_ns);
        let scale = if segment.syn { 0 } else { self.scale.unwrap_or(0) };
        self.window = Some(u64::from(segment.window) << scale);
        if ack > self.una {
            self.advance(ack, segment.t_ns);
        }
        for (low, high) in segment.sacks.iter().flatten() {
            let (low, high) = (self.unwrapped(*low), self.unwrapped(*high));
            if low >= self.una && high <= self.top {
                self.told(low, high, segment.t_ns);
            }
        }
        self.acks += 1;
        if let Some((stamp, _)) = segment.stamps {
            if !segment.syn {
                self.ack_stamp = Some((segment.t_ns, stamp));
            }
            let segment_bytes = i64::from(self.segment().unwrap_or(0));
            let flight = self.flight(segment_bytes) as i64;
            let (past, is_under_way) = (self.top.max(self.una) - flight, flight > 0);
            match self.echoes.back_mut() {
                Some(last) if last.stamp == stamp => {
                    (last.past, last.is_under_way) = (last.past.max(past), is_under_way);
                }
                Some(last) if (stamp.wrapping_sub(last.stamp) as i32) < 0 => {}
                _ => {
                    let (t_ns, is_used) = (segment.t_ns, false);
                    self.echoes.push_back(Echo { stamp, t_ns, past, is_under_way, is_used });
                }
            }
        }
    }

    /// The cumulative ACK rises.
    fn advance(&mut self, ack: i64, t_ns: u64) {
        if self.payload > 0 {
            let missing: i64 =
                self.gaps.iter().map(|gap| (gap.end.min(ack) - gap.start.min(ack)).max(0)).sum();
            let end = self.fin.map_or(ack, |fin| ack.min(fin));
            self.unseen += (missing + (end - self.top).max(0)) as u64;
        }
        self.gaps.retain_mut(|gap| {
            gap.start = gap.start.max(ack);
            gap.start < gap.end
        });
        let mut newest = None;
        while let Some(first) = self.sent.front().copied().filter(|sent| sent.end <= ack) {
            if !first.is_done {
                newest = Some(first.t_ns);
            }
            self.sent.pop_front();
        }
        if let Some(sent_ns) = newest.filter(|_| self.una >= self.recover) {
            self.ahead.add(t_ns.saturating_sub(sent_ns));
        }
        self.una = ack;
        self.sacked.remove_below(ack);
        self.again.remove_below(ack);
    }

    /// A SACK block.
    fn told(&mut self, low: i64, high: i64, t_ns: u64) {
        let Some((fresh, end)) = self.sacked.insert(low, high) else { return };
        self.again.remove(low, high);
        let first = self.sent.partition_point(|sent| sent.start < fresh);
        let after = self.sent.partition_point(|sent| sent.end <= end);
        let mut newest = None;
        for sent in self.sent.range_mut(first..after.max(first)) {
            if !std::mem::replace(&mut sent.is_done, true) {
                newest = Some(sent.t_ns);
            }
        }
        if let Some(sent_ns) = newest {
            self.ahead.add(t_ns.saturating_sub(sent_ns));
        }
    }

    /// Where the capture seems to be: by how much of the round trip is behind it. None if that is not seen.
    pub fn seems(&self) -> Option<At> {
        let (ahead, behind) = (self.ahead.least?, self.behind.least?);
        let share = behind as f64 / (ahead + behind).max(1) as f64;
        Some(match share {
            share if share < 0.1 => At::Sender,
            share if share > 0.9 && ahead < HOST_NS => At::Receiver,
            // A sender without data under way pauses, and its pause is no round trip.
            _ if self.behind_under_way? * 10 < ahead => At::Sender,
            share if share > 0.9 => At::Receiver,
            _ => At::Between,
        })
    }

    /// A handshake's two parts of the round trip.
    pub fn shaken(&mut self, ahead_ns: Option<u64>, behind_ns: Option<u64>) {
        if let Some(sample_ns) = ahead_ns {
            self.ahead.least.get_or_insert(sample_ns);
        }
        if let Some(sample_ns) = behind_ns {
            self.behind.least.get_or_insert(sample_ns);
        }
    }
}
