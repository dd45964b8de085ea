//! Pending events and their total order.
//!
//! The contract: events happen in order of (time, rank), where the rank is a fixed property of what
//! happens (its kind, then the flow or link), not of when it was scheduled. So the order does not
//! depend on the mode of a link or on the structure that holds the events. A delay line ([`super::scheduler`])
//! has one entry here however many packets it carries; its number comes last in the order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use lfn_units::Time;

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
}

/// A delay line by its number, or a packet out of line by its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineId(u32);

/// Tells packets out of line from delay lines, in the bits that an event has for both.
const LATE: u32 = 1 << 23;

impl LineId {
    /// Not connected yet.
    pub const NONE: LineId = LineId(u32::MAX);

    #[inline(always)]
    pub fn new(number: u32) -> LineId {
        LineId(number)
    }

    /// A packet out of line, by its number modulo 2^23.
    pub fn late(number: u32) -> LineId {
        LineId(LATE | (number % LATE))
    }

    /// Whether it is a packet out of line.
    #[inline(always)]
    pub fn is_late(self) -> bool {
        self.0 & LATE != 0
    }

    /// How many packets out of line lie between `first`, by its number, and this one.
    pub fn late_since(self, first: u32) -> usize {
        (self.0.wrapping_sub(first) % LATE) as usize
    }

    /// Its place among the delay lines.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Events by (time, kind, index). One u128 compares in two instructions. Delay lines, which act often, stand
/// apart from all else, mostly timers that are as many as flows.
#[derive(Debug)]
pub(crate) struct Events {
    /// The first packet of each delay line.
    lines: Calendar,
    others: Calendar,
    /// The first of `others`.
    next_other: u128,
}

/// A heap. A new first entry sinks to the bottom through swaps without a branch: the processor cannot predict
/// its place among ten lines, and a misprediction costs more than the swaps.
#[derive(Debug)]
struct Heap {
    /// Entry 0.
    first: u128,
    /// Below entry `at`, and not less: entries `2 * at + 1` and `2 * at + 2`. Beyond `len` all are [`NONE`].
    pairs: Vec<[u128; 2]>,
    len: usize,
}

/// No event.
const NONE: u128 = u128::MAX;

impl Heap {
    fn new() -> Heap {
        Heap { first: NONE, pairs: Vec::new(), len: 0 }
    }

    fn entry(&mut self, at: usize) -> &mut u128 {
        match at.checked_sub(1) {
            None => &mut self.first,
            Some(below) => &mut self.pairs[below / 2][below % 2],
        }
    }

    fn push(&mut self, key: u128) {
        let mut at = self.len;
        self.len += 1;
        if at == 2 * self.pairs.len() + 1 {
            self.pairs.resize(at, [NONE; 2]);
        }
        while at > 0 {
            let above = *self.entry((at - 1) / 2);
            if above < key {
                break;
            }
            *self.entry(at) = above;
            at = (at - 1) / 2;
        }
        *self.entry(at) = key;
    }

    fn pop(&mut self) {
        if self.len > 0 {
            self.len -= 1;
            let at = self.len;
            let last = std::mem::replace(self.entry(at), NONE);
            if at > 0 {
                self.replace_first(last);
            }
        }
    }

    #[inline]
    fn replace_first(&mut self, mut key: u128) {
        let levels = usize::BITS - self.len.leading_zeros();
        let (mut hole, mut below) = (&mut self.first, &mut self.pairs[..]);
        let (mut at, mut skipped) = (0, 0);
        for _ in 1..levels {
            // `below` begins with the pair of the entry after the last one.
            let Some((pair, rest)) = below.get_mut(skipped..).and_then(<[_]>::split_first_mut) else { break };
            let side = usize::from(pair[1] < pair[0]);
            let least = pair[side];
            *hole = key.min(least);
            key = key.max(least);
            hole = &mut pair[side];
            below = rest;
            skipped = at + side;
            at += 1 + skipped;
        }
        *hole = key;
    }
}

/// Events on pages of about a millisecond; the current page is a heap. So an event among ten thousand timers or a
/// thousand delay lines costs no walk through a heap of all.
#[derive(Debug)]
struct Calendar {
    /// All before the end of page `page`; empty only if all is.
    soon: Heap,
    /// The next `PAGES` pages, by number modulo `PAGES`, each in no order.
    pages: Vec<Vec<u128>>,
    /// A bit for each of them that has events.
    filled: [u64; PAGES as usize / 64],
    /// Events in `pages`.
    on_pages: usize,
    /// Events that are later than those when they are pushed.
    far: BinaryHeap<Reverse<u128>>,
    page: u64,
}

/// A page is 2^30 ps long.
const PAGE_BITS: u32 = 64 + 30;
const PAGES: u64 = 1024;
/// Events that an empty page keeps room for.
const PAGE_ROOM: usize = 16;

fn page_of(key: u128) -> u64 {
    (key >> PAGE_BITS) as u64
}

impl Calendar {
    fn new() -> Calendar {
        let pages = (0..PAGES).map(|_| Vec::new()).collect();
        let filled = [0; PAGES as usize / 64];
        Calendar { soon: Heap::new(), pages, filled, on_pages: 0, far: BinaryHeap::new(), page: 0 }
    }

    #[inline]
    fn first(&self) -> u128 {
        self.soon.first
    }

    fn push(&mut self, key: u128) {
        if page_of(key) <= self.page {
            self.soon.push(key);
        } else {
            self.push_later(key);
            self.refill();
        }
    }

    /// For an event beyond the current page.
    fn push_later(&mut self, key: u128) {
        let page = page_of(key);
        if page - self.page < PAGES {
            let at = (page % PAGES) as usize;
            self.pages[at].push(key);
            self.filled[at / 64] |= 1 << (at % 64);
            self.on_pages += 1;
        } else {
            self.far.push(Reverse(key));
        }
    }

    fn pop(&mut self) {
        self.soon.pop();
        self.refill();
    }

    #[inline]
    fn replace_first(&mut self, key: u128) {
        if page_of(key) <= self.page {
            self.soon.replace_first(key);
        } else if self.soon.len + self.on_pages + self.far.len() == 1 {
            // A flow alone turns no pages.
            self.page = page_of(key);
            self.soon.first = key;
        } else {
            self.push_later(key);
            self.pop();
        }
    }

    /// If nothing is left on this page, turns to the next that has something.
    #[inline]
    fn refill(&mut self) {
        if self.soon.len == 0 && self.on_pages + self.far.len() > 0 {
            self.turn();
        }
    }

    fn turn(&mut self) {
        while self.soon.len == 0 && self.on_pages + self.far.len() > 0 {
            let far = self.far.peek().map_or(u64::MAX, |first| page_of(first.0));
            self.page = if self.on_pages > 0 { self.next_page().min(far) } else { far };
            let at = (self.page % PAGES) as usize;
            let keys = &mut self.pages[at];
            self.filled[at / 64] &= !(1 << (at % 64));
            self.on_pages -= keys.len();
            for key in keys.drain(..) {
                self.soon.push(key);
            }
            // A ring of pages that each keep the room of their busiest time is megabytes.
            keys.shrink_to(PAGE_ROOM);
            while let Some(first) = self.far.peek().filter(|first| page_of(first.0) <= self.page) {
                self.soon.push(first.0);
                self.far.pop();
            }
        }
    }

    /// The first page after this one that has events; one has.
    fn next_page(&self) -> u64 {
        let mut page = self.page + 1;
        loop {
            let at = (page % PAGES) as usize;
            let rest = self.filled[at / 64] >> (at % 64);
            if rest != 0 {
                return page + u64::from(rest.trailing_zeros());
            }
            page += 64 - at as u64 % 64;
        }
    }

    /// Of events; empty pages are memory that every run has.
    fn memory_bytes(&self) -> usize {
        let pages = self.pages.iter().map(Vec::capacity).sum::<usize>();
        (2 * self.soon.pairs.capacity() + self.far.capacity() + pages) * size_of::<u128>()
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
        Events { lines: Calendar::new(), others: Calendar::new(), next_other: NONE }
    }
}

impl Events {
    /// Bytes that it holds.
    pub fn memory_bytes(&self) -> usize {
        self.lines.memory_bytes() + self.others.memory_bytes()
    }

    pub fn push(&mut self, at: Time, kind: Kind, index: usize) {
        self.others.push(key(at, kind, index, LineId(0)));
        self.next_other = self.others.first();
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
        let rank = key as u64;
        let kind = KINDS[(rank >> (2 * INDEX_BITS)) as usize % KINDS.len()];
        let (index, line) = ((rank >> INDEX_BITS) & INDEX, rank & INDEX);
        Some((at, kind, index as usize, LineId(line as u32)))
    }

    /// Index of the next event that is not of a line.
    #[inline]
    pub fn next_other(&self) -> usize {
        ((self.next_other as u64 >> INDEX_BITS) & INDEX) as usize
    }

    /// Removes the next event, which is not of a line.
    pub fn pop(&mut self) {
        self.others.pop();
        self.next_other = self.others.first();
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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

        /// Times of one page, of many, and beyond all pages come out in order, whatever is pushed while
        /// others are taken.
        #[test]
        fn a_calendar_is_a_heap(
            pushes in prop::collection::vec((prop_oneof![0..1u64 << 30, 0..1u64 << 36, 0..1u64 << 45], 0..3u8), 1..400)
        ) {
            let (mut events, mut heap) = (Events::default(), BinaryHeap::new());
            let mut now = 0;
            for (index, (delay_ps, taken)) in pushes.into_iter().enumerate() {
                let at = Time(now + delay_ps);
                events.push(at, Kind::SenderTimer, index);
                heap.push(Reverse((at, index)));
                for _ in 0..taken {
                    let expected = heap.pop().map(|first| first.0);
                    prop_assert_eq!(events.peek().map(|(at, _, index, _)| (at, index)), expected);
                    let Some((at, _)) = expected else { break };
                    events.pop();
                    now = at.0;
                }
            }
            while let Some(Reverse(expected)) = heap.pop() {
                prop_assert_eq!(events.peek().map(|(at, _, index, _)| (at, index)), Some(expected));
                events.pop();
            }
            prop_assert_eq!(events.peek(), None);
        }
    }
}
