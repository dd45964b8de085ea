//! A queue of events in the order of their keys, for few events and for many.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event of a calendar, in the order of its key.
pub(crate) trait Entry: Copy + Ord {
    /// No event: after all others.
    const NONE: Self;

    fn key(&self) -> u128;

    /// This entry and another, the first in order first.
    #[inline(always)]
    fn sorted(self, other: Self) -> (Self, Self) {
        if self.key() <= other.key() {
            (self, other)
        } else {
            (other, self)
        }
    }
}

impl Entry for u128 {
    const NONE: u128 = u128::MAX;

    #[inline(always)]
    fn key(&self) -> u128 {
        *self
    }

    #[inline(always)]
    fn sorted(self, other: u128) -> (u128, u128) {
        (self.min(other), self.max(other))
    }
}

/// A heap. A new first entry sinks to the bottom through swaps without a branch: the processor cannot predict
/// its place among ten lines, and a misprediction costs more than the swaps.
#[derive(Debug)]
struct Heap<T> {
    /// Entry 0.
    first: T,
    /// Below entry `at`, and not less: entries `2 * at + 1` and `2 * at + 2`. Beyond `len` all are [`Entry::NONE`].
    pairs: Vec<[T; 2]>,
    len: usize,
}

impl<T: Entry> Heap<T> {
    fn new() -> Heap<T> {
        Heap { first: T::NONE, pairs: Vec::new(), len: 0 }
    }

    fn entry(&mut self, at: usize) -> &mut T {
        match at.checked_sub(1) {
            None => &mut self.first,
            Some(below) => &mut self.pairs[below / 2][below % 2],
        }
    }

    fn push(&mut self, new: T) {
        let mut at = self.len;
        self.len += 1;
        if at == 2 * self.pairs.len() + 1 {
            self.pairs.resize(at, [T::NONE; 2]);
        }
        while at > 0 {
            let above = *self.entry((at - 1) / 2);
            if above.key() < new.key() {
                break;
            }
            *self.entry(at) = above;
            at = (at - 1) / 2;
        }
        *self.entry(at) = new;
    }

    fn pop(&mut self) {
        if self.len > 0 {
            self.len -= 1;
            let at = self.len;
            let last = std::mem::replace(self.entry(at), T::NONE);
            if at > 0 {
                self.replace_first(last);
            }
        }
    }

    #[inline]
    fn replace_first(&mut self, mut new: T) {
        let levels = usize::BITS - self.len.leading_zeros();
        let (mut hole, mut below) = (&mut self.first, &mut self.pairs[..]);
        let (mut at, mut skipped) = (0, 0);
        for _ in 1..levels {
            // `below` begins with the pair of the entry after the last one.
            let Some((pair, rest)) = below.get_mut(skipped..).and_then(<[_]>::split_first_mut) else { break };
            let side = usize::from(pair[1].key() < pair[0].key());
            (*hole, new) = new.sorted(pair[side]);
            hole = &mut pair[side];
            below = rest;
            skipped = at + side;
            at += 1 + skipped;
        }
        *hole = new;
    }
}

/// Events on pages of about a millisecond. Those of the current page are sorted when it is turned to, and those that
/// come to it later are in a heap, which has the first of the others too. So an event among ten thousand timers or a
/// hundred thousand packets costs no walk through a heap of all, and what happens next is known beforehand.
#[derive(Debug)]
pub(crate) struct Calendar<T> {
    /// Before the end of page `page`: the first of `sorted` and what came later; empty only if all is.
    soon: Heap<T>,
    /// The key of the first event that was on the current page when it was turned to and has not happened, or that of
    /// none.
    head: u128,
    /// One past the page, if no such event is left: then the heap has all before it.
    heap_end: u64,
    /// Those after the first of them, the last first.
    sorted: Vec<T>,
    /// Room for a page that is being sorted.
    unsorted: Vec<T>,
    /// Ends of its parts.
    ends: [u32; 1 << PARTS_BITS],
    /// The next `PAGES` pages, by number modulo `PAGES`, each in no order.
    pages: Vec<Vec<T>>,
    /// Memory of pages that are past.
    spare: Vec<Vec<T>>,
    /// A bit for each of them that has events.
    filled: [u64; PAGES as usize / 64],
    /// Events in `pages`.
    on_pages: usize,
    /// Events that are later than those when they are pushed.
    far: BinaryHeap<Reverse<T>>,
    page: u64,
}

/// A page is 2^30 ps long.
const PAGE_BITS: u32 = 64 + 30;
const PAGES: u64 = 1024;
/// A page is sorted by at most two to this many parts.
const PARTS_BITS: u32 = 10;
/// Events of a part that are too many for a sort by insertion.
const CROWD: u32 = 32;
/// Events that a page first has room for.
const PAGE_ROOM: usize = 16;

fn page_of(key: u128) -> u64 {
    (key >> PAGE_BITS) as u64
}

impl<T: Entry> Calendar<T> {
    pub fn new() -> Calendar<T> {
        Calendar {
            soon: Heap::new(),
            head: T::NONE.key(),
            heap_end: 1,
            sorted: Vec::new(),
            unsorted: Vec::new(),
            ends: [0; 1 << PARTS_BITS],
            pages: (0..PAGES).map(|_| Vec::new()).collect(),
            spare: Vec::new(),
            filled: [0; PAGES as usize / 64],
            on_pages: 0,
            far: BinaryHeap::new(),
            page: 0,
        }
    }

    /// The first event.
    #[inline(always)]
    pub fn first(&self) -> T {
        self.soon.first
    }

    /// Its key, or that of none.
    #[inline(always)]
    pub fn first_key(&self) -> u128 {
        self.soon.first.key()
    }

    pub fn push(&mut self, new: T) {
        if page_of(new.key()) <= self.page {
            self.soon.push(new);
        } else {
            self.push_later(new);
            self.refill();
        }
    }

    /// For an event beyond the current page.
    fn push_later(&mut self, new: T) {
        let page = page_of(new.key());
        if page - self.page < PAGES {
            let at = (page % PAGES) as usize;
            let room = &mut self.pages[at];
            if room.capacity() == 0 {
                *room = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(PAGE_ROOM));
            }
            room.push(new);
            self.filled[at / 64] |= 1 << (at % 64);
            self.on_pages += 1;
        } else {
            self.far.push(Reverse(new));
        }
    }

    /// An event some places behind the first of the current page, of those that were there at its beginning.
    #[inline(always)]
    pub fn ahead(&self, places: usize) -> Option<&T> {
        self.sorted.len().checked_sub(places).and_then(|at| self.sorted.get(at))
    }

    /// Removes the first event.
    #[inline]
    pub fn pop(&mut self) {
        if self.first_key() == self.head {
            if let Some(next) = self.sorted.pop() {
                self.head = next.key();
                return self.soon.replace_first(next);
            }
            self.end_sorted();
        }
        self.soon.pop();
        self.refill();
    }

    /// No event is left that was on the page when it was turned to.
    fn end_sorted(&mut self) {
        self.head = T::NONE.key();
        self.heap_end = self.page + 1;
    }

    /// In place of the first event.
    #[inline(always)]
    pub fn replace_first(&mut self, new: T) {
        if page_of(new.key()) < self.heap_end {
            self.soon.replace_first(new);
        } else {
            self.replace_sorted(new);
        }
    }

    #[inline(never)]
    fn replace_sorted(&mut self, new: T) {
        if page_of(new.key()) <= self.page {
            if self.first_key() == self.head {
                match self.sorted.pop() {
                    Some(next) => {
                        self.head = next.key();
                        self.soon.push(next);
                    }
                    None => self.end_sorted(),
                }
            }
            self.soon.replace_first(new);
        } else if self.soon.len + self.sorted.len() + self.on_pages + self.far.len() == 1 {
            // A flow alone turns no pages.
            self.page = page_of(new.key());
            self.soon.first = new;
            self.end_sorted();
        } else {
            self.push_later(new);
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
            let far = self.far.peek().map_or(u64::MAX, |first| page_of(first.0.key()));
            self.page = if self.on_pages > 0 { self.next_page().min(far) } else { far };
            let at = (self.page % PAGES) as usize;
            let events = std::mem::take(&mut self.pages[at]);
            self.filled[at / 64] &= !(1 << (at % 64));
            self.on_pages -= events.len();
            let room = std::mem::replace(&mut self.unsorted, events);
            // Pages that each keep the room of the busiest one are megabytes.
            if room.capacity() > 0 && room.capacity() <= 4 * self.unsorted.len().max(PAGE_ROOM) {
                self.spare.push(room);
            }
            while let Some(first) = self.far.peek().filter(|first| page_of(first.0.key()) <= self.page) {
                self.unsorted.push(first.0);
                self.far.pop();
            }
            self.sort();
            if let Some(first) = self.sorted.pop() {
                self.head = first.key();
                self.heap_end = 0;
                self.soon.push(first);
            }
        }
    }

    /// Sorts the page: into about as many parts as it has events, then within these.
    fn sort(&mut self) {
        let count = self.unsorted.len();
        if count == 1 {
            return self.sorted.append(&mut self.unsorted);
        }
        let bits = (usize::BITS - count.leading_zeros()).min(PARTS_BITS);
        let ends = &mut self.ends[..1 << bits];
        ends.fill(0);
        // Of the time, which stands above bit 64.
        let shift = PAGE_BITS - 64 - bits;
        let part = |event: &T| !((event.key() >> 64) as u64 >> shift) as usize & ((1 << bits) - 1);
        for event in &self.unsorted {
            ends[part(event)] += 1;
        }
        let (mut end, mut most) = (0, 0);
        for part in &mut *ends {
            most = most.max(*part);
            end += *part;
            *part = end;
        }
        self.sorted.extend_from_slice(&self.unsorted);
        for event in self.unsorted.drain(..) {
            let end = &mut ends[part(&event)];
            *end -= 1;
            self.sorted[*end as usize] = event;
        }
        if most > CROWD {
            self.sorted.sort_unstable_by_key(|event| Reverse(event.key()));
            return;
        }
        for at in 1..count {
            let event = self.sorted[at];
            let mut hole = at;
            while hole > 0 && self.sorted[hole - 1].key() < event.key() {
                self.sorted[hole] = self.sorted[hole - 1];
                hole -= 1;
            }
            self.sorted[hole] = event;
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

    /// All events, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let soon = std::iter::once(&self.soon.first).chain(self.soon.pairs.as_flattened());
        let far = self.far.iter().map(|far| &far.0);
        soon.take(self.soon.len).chain(&self.sorted).chain(self.pages.iter().flatten()).chain(far)
    }

    /// Of events; empty pages are memory that every run has.
    pub fn memory_bytes(&self) -> usize {
        let pages = self.pages.iter().chain(&self.spare).map(Vec::capacity).sum::<usize>();
        let soon = 2 * self.soon.pairs.capacity() + self.sorted.capacity() + self.unsorted.capacity();
        (soon + self.far.capacity() + pages) * size_of::<T>()
    }
}
