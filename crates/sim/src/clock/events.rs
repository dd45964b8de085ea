//! Pending events and their total order.
//!
//! The contract: events happen in order of (time, rank), where the rank is a fixed property of what
//! happens (its kind, then the flow or link), not of when it was scheduled. So the order does not
//! depend on the mode of a link or on the structure that holds the events. A delay line ([`super::scheduler`])
//! has one entry here however many packets it carries; its number comes last in the order.

use lfn_units::Time;

use super::calendar::{Calendar, Entry};
use super::packet::Packet;

/// Declares the kinds of events, each with its sentence.
macro_rules! kinds {
    ($($(#[doc = $meaning:literal])+ $kind:ident,)+) => {
        /// Kinds of events. The order of variants is the order of events at one instant, and so part of every
        /// result hash.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub(crate) enum Kind {
            $($(#[doc = $meaning])+ $kind,)+
        }

        /// All of them, in order, and the last one up to a power of 2: its index is a mask.
        const KINDS: [Kind; 32] = {
            const NAMED: &[Kind] = &[$(Kind::$kind),+];
            let mut kinds = [NAMED[NAMED.len() - 1]; 32];
            let mut at = 0;
            while at < NAMED.len() {
                kinds[at] = NAMED[at];
                at += 1;
            }
            kinds
        };
    };
}

kinds! {
    /// A link, a delay or a route changes.
    Change,
    /// A link's server is free.
    Depart,
    /// Statistics begin.
    Warmup,
    /// A flow begins: with a handshake, or at once with data.
    Begin,
    /// A sender without a SYN-ACK sends its SYN again.
    Syn,
    /// A receiver without an answer to its SYN-ACK sends it again.
    SynAck,
    /// A TCP flow stops sending.
    Stop,
    /// A UDT flow stops sending.
    UdtStop,
    /// A packet reaches the next link of its route.
    AtLink,
    /// A data packet reaches the receiver, or a packet of UDT or of a handshake its destination.
    AtReceiver,
    /// A message that an application waits for is complete at the receiver.
    Message,
    /// An ACK reaches the sender.
    AckAtSender,
    /// A receiver's delayed or compressed ACK.
    ReceiverTimer,
    /// A sender's timer.
    SenderTimer,
    /// A timer of one end of a flow over UDT.
    UdtTimer,
    /// An interactive session writes.
    Write,
    /// A background flow arrives.
    Arrival,
    /// A UDP source sends.
    Udp,
    /// An interval of a circuit breaker is over.
    Breaker,
    /// One second is over: bins of the coefficient of variation.
    Second,
    /// Tables are sampled.
    Sample,
    /// A timer of one end of a stack.
    StackTimer,
    /// The application of a whole stack stops.
    StackStop,
}

/// A delay line by its number, or a packet that is an event of its own by its number modulo 2^23.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineId(u32);

/// Tells packets that are events of their own from delay lines, in the bits that an event has for both.
const LATE: u32 = 1 << 23;

impl LineId {
    /// Not connected yet.
    pub const NONE: LineId = LineId(u32::MAX);

    #[inline(always)]
    pub fn new(number: u32) -> LineId {
        LineId(number)
    }

    /// Whether it is a packet that is an event of its own.
    #[inline(always)]
    pub fn is_late(self) -> bool {
        self.0 & LATE != 0
    }

    /// Its place among the delay lines.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Events by (time, kind, index). One u128 compares in two instructions. Delay lines, which act often, stand
/// apart from all else, mostly timers that are as many as flows, and so do packets that are events of their own.
#[derive(Debug)]
pub(crate) struct Events {
    /// The first packet of each delay line.
    lines: Calendar<u128>,
    packets: Calendar<Flight>,
    others: Calendar<u128>,
    /// The first of `packets` and `others`.
    next_other: u128,
    /// Packets that were events of their own so far.
    flights: u32,
}

/// A packet that is an event of its own. Two numbers stay in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flight {
    key: u128,
    /// The packet, its line and the place of its extras.
    rest: u128,
}

impl Flight {
    #[inline(always)]
    fn new(key: u128, packet: Packet, line: LineId, extras: u32) -> Flight {
        let rest = u128::from(packet.word()) | (u128::from(line.0) << 64) | (u128::from(extras) << 96);
        Flight { key, rest }
    }

    /// When it arrives.
    #[inline(always)]
    pub fn at(&self) -> Time {
        Time((self.key >> 64) as u64)
    }

    #[inline(always)]
    pub fn packet(&self) -> Packet {
        Packet::of_word(self.rest as u64)
    }

    /// Whose end it comes to.
    #[inline(always)]
    pub fn line(&self) -> LineId {
        LineId((self.rest >> 64) as u32)
    }

    /// Where its SACK blocks and its header are, if it has such.
    #[inline(always)]
    pub fn extras(&self) -> u32 {
        (self.rest >> 96) as u32
    }
}

impl Entry for Flight {
    const NONE: Flight = Flight { key: u128::MAX, rest: 0 };

    #[inline(always)]
    fn key(&self) -> u128 {
        self.key
    }
}

const INDEX_BITS: u32 = 24;
const INDEX: u64 = (1 << INDEX_BITS) - 1;

#[inline]
fn key(at: Time, kind: Kind, index: usize, line: LineId) -> u128 {
    let rank = ((kind as u64) << (2 * INDEX_BITS)) | ((index as u64) << INDEX_BITS) | u64::from(line.0);
    (u128::from(at.0) << 64) | u128::from(rank)
}

impl Default for Events {
    fn default() -> Events {
        let (lines, packets, others) = (Calendar::new(), Calendar::new(), Calendar::new());
        Events { lines, packets, others, next_other: Entry::NONE, flights: 0 }
    }
}

impl Events {
    /// Bytes that it holds.
    pub fn memory_bytes(&self) -> usize {
        self.lines.memory_bytes() + self.packets.memory_bytes() + self.others.memory_bytes()
    }

    pub fn push(&mut self, at: Time, kind: Kind, index: usize) {
        self.others.push(key(at, kind, index, LineId(0)));
        self.note_next();
    }

    /// A packet comes to the end of `line` as an event of its own: one of flow `index`.
    #[inline(never)]
    pub fn push_packet(
        &mut self,
        at: Time,
        kind: Kind,
        index: usize,
        packet: Packet,
        (line, extras): (LineId, u32),
    ) {
        let key = key(at, kind, index, LineId(LATE | (self.flights % LATE)));
        self.flights = self.flights.wrapping_add(1);
        self.packets.push(Flight::new(key, packet, line, extras));
        self.note_next();
    }

    #[inline]
    fn note_next(&mut self) {
        self.next_other = self.packets.first_key().min(self.others.first());
    }

    /// The event of a packet of flow `index` at the end of `line`.
    #[inline(never)]
    pub fn push_line(&mut self, at: Time, kind: Kind, index: usize, line: LineId) {
        self.lines.push(key(at, kind, index, line));
    }

    /// The next event: its time, kind, flow (or link) and line.
    #[inline]
    pub fn peek(&self) -> Option<(Time, Kind, usize, LineId)> {
        let key = self.lines.first().min(self.next_other);
        let at = Time((key >> 64) as u64);
        if at == Time::NEVER {
            return None;
        }
        let (kind, index, line) = parts(key);
        Some((at, kind, index, line))
    }

    /// Kind and flow of a packet that is an event of its own, some places behind the next, if it is known.
    #[inline(always)]
    pub fn packet_ahead(&self, places: usize) -> Option<(Kind, usize)> {
        let (kind, index, _) = parts(self.packets.ahead(places)?.key);
        Some((kind, index))
    }

    /// Index of an event that is not of a packet, some places behind the next, if it is known.
    #[inline]
    pub fn other_ahead(&self, places: usize) -> Option<usize> {
        Some(parts(*self.others.ahead(places)?).1)
    }

    /// Removes the next event, which is not of a packet.
    pub fn pop(&mut self) {
        self.others.pop();
        self.note_next();
    }

    /// Removes the next event, which is of a packet of its own.
    #[inline]
    pub fn pop_packet(&mut self) -> Flight {
        let first = self.packets.first();
        self.packets.pop();
        self.note_next();
        first
    }

    /// All packets that are events of their own.
    pub fn packets(&self) -> impl Iterator<Item = &Flight> {
        self.packets.iter()
    }

    /// Removes the next event, which is of a line.
    pub fn pop_line(&mut self) {
        self.lines.pop();
    }

    /// The line of the next event goes on with a packet of flow `index` at `at`: one sift instead of a
    /// pop and a push.
    #[inline]
    pub fn reschedule_next(&mut self, at: Time, index: usize) {
        let rank = (self.lines.first() as u64 & !(INDEX << INDEX_BITS)) | ((index as u64) << INDEX_BITS);
        self.lines.replace_first((u128::from(at.0) << 64) | u128::from(rank));
    }
}

/// Kind, flow (or link) and line of a key.
#[inline(always)]
fn parts(key: u128) -> (Kind, usize, LineId) {
    let rank = key as u64;
    let kind = KINDS[(rank >> (2 * INDEX_BITS)) as usize % KINDS.len()];
    (kind, ((rank >> INDEX_BITS) & INDEX) as usize, LineId((rank & INDEX) as u32))
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use proptest::prelude::*;

    use super::*;
    use crate::clock::ids::FlowId;

    proptest! {
        /// Delay lines come and go, and most often go on.
        #[test]
        fn heads_are_a_heap(ops in prop::collection::vec((0..4u8, 0..1u64 << 20), 1..400)) {
            let (mut events, mut heap) = (Events::default(), BinaryHeap::new());
            let mut now = 0;
            for (line, (op, delay_ps)) in (0..).zip(ops) {
                let at = Time(now + delay_ps);
                match (op, heap.pop()) {
                    (0, first) => {
                        heap.extend(first);
                        events.push_line(at, Kind::AckAtSender, 0, LineId(line));
                        heap.push(Reverse((at, line)));
                    }
                    (1, _) => events.pop_line(),
                    (_, Some(Reverse((_, first)))) => {
                        events.reschedule_next(at, 0);
                        heap.push(Reverse((at, first)));
                    }
                    (_, None) => {}
                }
                let expected = heap.peek().map(|first| first.0);
                prop_assert_eq!(events.peek().map(|(at, _, _, line)| (at, line.0)), expected);
                now = expected.map_or(now, |first| first.0.0);
            }
        }

        /// Times of one page, of many, of crowds at one instant, and beyond all pages come out in order, whatever is
        /// pushed while others are taken; so do packets with what is theirs.
        #[test]
        fn a_calendar_is_a_heap(
            pushes in prop::collection::vec(
                (prop_oneof![0..1u64 << 30, 0..1u64 << 36, 0..1u64 << 45, Just(1u64 << 33)], 0..3u8, 1..200usize, any::<bool>()),
                1..100,
            )
        ) {
            let (mut events, mut heap) = (Events::default(), BinaryHeap::new());
            let (mut now, mut number) = (0, 0);
            let take = |events: &mut Events, expected: Option<(Time, Kind, usize)>| {
                prop_assert_eq!(events.peek().map(|(at, kind, index, _)| (at, kind, index)), expected);
                match expected {
                    Some((at, Kind::AtLink, index)) => {
                        let flight = events.pop_packet();
                        prop_assert_eq!(flight.packet().flow().index(), index);
                        prop_assert_eq!((flight.at(), flight.line(), flight.extras()), (at, LineId::new(7), 9));
                    }
                    _ => events.pop(),
                }
                Ok(())
            };
            for (delay_ps, taken, count, packets) in pushes {
                let at = Time(now + delay_ps);
                for index in (number..number + count).rev() {
                    let kind = if packets { Kind::AtLink } else { Kind::SenderTimer };
                    if packets {
                        let packet = Packet::of_syn(FlowId::new(index), 0);
                        events.push_packet(at, kind, index, packet, (LineId::new(7), 9));
                    } else {
                        events.push(at, kind, index);
                    }
                    heap.push(Reverse((at, kind, index)));
                }
                number += count;
                for _ in 0..usize::from(taken) * count {
                    let expected = heap.pop().map(|first| first.0);
                    take(&mut events, expected)?;
                    let Some((at, ..)) = expected else { break };
                    now = at.0;
                }
                prop_assert_eq!(events.packets().count(), heap.iter().filter(|it| it.0.1 == Kind::AtLink).count());
            }
            while let Some(Reverse(expected)) = heap.pop() {
                take(&mut events, Some(expected))?;
            }
            prop_assert_eq!(events.peek(), None);
        }
    }
}
