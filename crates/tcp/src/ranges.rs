//! A set of segments as maximal ranges, over a sliding window of sequence numbers.
//!
//! Receivers store out-of-order segments in it, senders SACKed segments. Both ends of a range store the other
//! end (boundary tags), so inserting, merging and skipping a range take constant time, whatever the length of
//! the range or the window.

use crate::prefetch::prefetch;

/// Half-open range of segment numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// First segment.
    pub start: u64,
    /// One past the last.
    pub end: u64,
}

impl Range {
    /// Whether the range contains `seq`.
    pub fn contains(&self, seq: u64) -> bool {
        (self.start..self.end).contains(&seq)
    }
}

/// Set of segments in the window `floor .. floor + capacity`; the capacity grows as needed.
#[derive(Clone, Debug, Default)]
pub struct RangeSet {
    count: u64,
    /// Per segment of the window: 0 if absent; at the first segment of a range its end, at the last
    /// segment its start. Interior tags are stale but not 0. No range contains segment 0.
    tags: Vec<u64>,
    floor: u64,
}

impl RangeSet {
    /// Segments in the set.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn mask(&self) -> u64 {
        self.tags.len() as u64 - 1
    }

    fn tag(&self, seq: u64) -> u64 {
        if self.count == 0 || seq < self.floor || seq - self.floor >= self.tags.len() as u64 {
            return 0;
        }
        self.tags[(seq & self.mask()) as usize]
    }

    fn set_tag(&mut self, seq: u64, tag: u64) {
        let mask = self.mask();
        self.tags[(seq & mask) as usize] = tag;
    }

    /// Prefetches the entries of `seq` and the next segments.
    #[inline(always)]
    pub(crate) fn prefetch(&self, seq: u64) {
        if let Some(tag) = self.tags.get((seq & (self.tags.len() as u64).wrapping_sub(1)) as usize) {
            prefetch(tag);
        }
    }

    /// Whether `seq` is in the set.
    pub fn contains(&self, seq: u64) -> bool {
        self.tag(seq) != 0
    }

    fn make_room(&mut self, floor: u64, end: u64) {
        if self.count == 0 {
            self.floor = floor;
        }
        let window = end - self.floor;
        if window <= self.tags.len() as u64 {
            return;
        }
        let mut grown = vec![0; window.next_power_of_two().max(16) as usize];
        let mask = grown.len() as u64 - 1;
        let old_len = self.tags.len() as u64;
        if self.count > 0 {
            for seq in self.floor..self.floor + old_len {
                grown[(seq & mask) as usize] = self.tags[(seq & (old_len - 1)) as usize];
            }
        }
        self.tags = grown;
    }

    /// Adds `seq`; `floor` is the least segment that can still matter. Returns the range that it is
    /// now part of, or `None` if it was there already.
    pub fn insert(&mut self, seq: u64, floor: u64) -> Option<Range> {
        debug_assert!(seq >= floor && seq > 0);
        self.make_room(floor, seq + 1);
        let (mask, ahead) = (self.mask(), seq - self.floor);
        let tag = |seq: u64| self.tags[(seq & mask) as usize];
        if tag(seq) != 0 {
            return None;
        }
        // Neighbours are ends of their ranges, so their tags are fresh; a single segment holds its end. Beyond the
        // window is nothing.
        let left = if ahead > 0 { tag(seq - 1) } else { 0 };
        let right = if ahead < mask { tag(seq + 1) } else { 0 };
        self.count += 1;
        let start = match left {
            0 => seq,
            tag if tag == seq => seq - 1,
            tag => tag,
        };
        let end = if right != 0 { right } else { seq + 1 };
        self.set_tag(seq, start);
        self.set_tag(start, end);
        if end - start > 1 {
            self.set_tag(end - 1, start);
        }
        Some(Range { start, end })
    }

    /// Adds every segment of `range`; calls `new` with each that was not there, in order.
    pub fn insert_range(&mut self, range: Range, floor: u64, mut new: impl FnMut(u64)) {
        let mut seq = range.start.max(floor);
        while seq < range.end {
            let tag = self.tag(seq);
            if tag == 0 {
                self.insert(seq, floor);
                new(seq);
            }
            // A tag above seq, even a stale one, says that all between is present.
            seq = tag.max(seq + 1);
        }
    }

    /// End of the range that begins exactly at `start`, if there is one.
    pub fn end_of(&self, start: u64) -> Option<u64> {
        let end = self.tag(start);
        (end > start).then_some(end)
    }

    /// The highest segment from `floor` to `seq` that is not in the set. A range costs one step where its segments
    /// came in order.
    pub fn gap_at_or_below(&self, mut seq: u64, floor: u64) -> Option<u64> {
        while seq >= floor {
            match self.tag(seq) {
                0 => return Some(seq),
                // A tag, even a stale one, says that all between is present.
                tag => seq = tag.min(seq).checked_sub(1)?,
            }
        }
        None
    }

    /// Removes all segments below `floor`, which no range contains. The cost is linear in the segments
    /// passed.
    pub fn advance(&mut self, floor: u64) {
        debug_assert!(!(self.contains(floor) && self.contains(floor.wrapping_sub(1))));
        if self.count > 0 {
            let last = floor.min(self.floor + self.tags.len() as u64);
            let mask = self.mask();
            for seq in self.floor..last {
                let tag = &mut self.tags[(seq & mask) as usize];
                self.count -= u64::from(*tag != 0);
                *tag = 0;
            }
        }
        self.floor = floor;
    }

    /// Removes everything and starts again at segment 0; memory stays.
    pub fn clear(&mut self) {
        self.advance(self.floor + self.tags.len() as u64);
        self.floor = 0;
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.tags.capacity() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn ranges(model: &BTreeSet<u64>) -> Vec<Range> {
        let mut found: Vec<Range> = Vec::new();
        for &seq in model {
            match found.last_mut() {
                Some(last) if last.end == seq => last.end += 1,
                _ => found.push(Range { start: seq, end: seq + 1 }),
            }
        }
        found
    }

    proptest! {
        /// Against a plain set, through inserts of segments and ranges and a floor that moves as a
        /// cumulative ACK does.
        #[test]
        fn agrees_with_a_plain_set(ops in proptest::collection::vec((0u8..4, 1u64..200, 1u64..30), 1..200)) {
            let (mut set, mut model, mut floor) = (RangeSet::default(), BTreeSet::new(), 0u64);
            for (op, offset, length) in ops {
                let seq = floor + offset;
                match op {
                    0 => {
                        let got = set.insert(seq, floor);
                        prop_assert_eq!(got.is_some(), model.insert(seq));
                        if let Some(range) = got {
                            prop_assert!(ranges(&model).contains(&range));
                        }
                    }
                    1 => {
                        let mut new = Vec::new();
                        set.insert_range(Range { start: seq, end: seq + length }, floor, |s| new.push(s));
                        let expected: Vec<u64> = (seq..seq + length).filter(|s| model.insert(*s)).collect();
                        prop_assert_eq!(new, expected);
                    }
                    _ => {
                        floor = seq;
                        while model.contains(&floor) {
                            floor += 1;
                        }
                        model = model.split_off(&floor);
                        set.advance(floor);
                    }
                }
                prop_assert_eq!(set.len(), model.len() as u64);
                for range in ranges(&model) {
                    prop_assert_eq!(set.end_of(range.start), Some(range.end));
                }
                for s in floor..floor + 300 {
                    prop_assert_eq!(set.contains(s), model.contains(&s));
                }
            }
        }
    }
}
