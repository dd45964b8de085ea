//! Lost packets as disjoint ranges, and their compressed form in a NAK.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::Seq;

/// Bytes of a B-tree by its number of entries: its nodes have room for eleven and may be half full.
pub(crate) fn tree_bytes(entries: usize, entry_bytes: usize) -> usize {
    if entries == 0 {
        0
    } else {
        (2 * entries).max(11) * entry_bytes
    }
}

/// An ordered set of packets, kept as maximal ranges.
#[derive(Clone, Debug, Default)]
pub struct LossList {
    /// First packet of a range, and one past its last.
    ranges: BTreeMap<u64, u64>,
    count: u64,
}

impl LossList {
    /// Packets in the list.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Bytes that it holds.
    pub fn memory_bytes(&self) -> usize {
        tree_bytes(self.ranges.len(), size_of::<(u64, u64)>())
    }

    /// Whether nothing is lost.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The smallest packet.
    pub fn first(&self) -> Option<u64> {
        self.ranges.first_key_value().map(|(&start, _)| start)
    }

    /// The ranges, in order.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ranges.iter().map(|(&start, &end)| start..end)
    }

    /// Whether `index` is in the list.
    pub fn contains(&self, index: u64) -> bool {
        self.ranges.range(..=index).next_back().is_some_and(|(_, &end)| index < end)
    }

    /// Adds every packet of `range`; returns how many were not there.
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let (mut start, mut end, mut known) = (range.start, range.end, 0);
        // From the last range that begins at or before the end, backwards while they touch.
        while let Some((&other, &other_end)) = self.ranges.range(..=end).next_back() {
            if other_end < start {
                break;
            }
            known += other_end - other;
            start = start.min(other);
            end = end.max(other_end);
            self.ranges.remove(&other);
        }
        self.ranges.insert(start, end);
        let new = end - start - known;
        self.count += new;
        new
    }

    /// Takes the smallest packet out.
    pub fn pop_first(&mut self) -> Option<u64> {
        let (start, end) = self.ranges.pop_first()?;
        if start + 1 < end {
            self.ranges.insert(start + 1, end);
        }
        self.count -= 1;
        Some(start)
    }

    /// Takes `range` out; returns how many of its packets were there.
    pub fn remove(&mut self, range: Range<u64>) -> u64 {
        let before = self.count;
        if range.is_empty() {
            return 0;
        }
        while let Some((&start, &end)) = self.ranges.range(..range.end).next_back() {
            if end <= range.start {
                break;
            }
            self.ranges.remove(&start);
            self.count -= end - start;
            for rest in [start..end.min(range.start), start.max(range.end)..end] {
                if !rest.is_empty() {
                    self.count += rest.end - rest.start;
                    self.ranges.insert(rest.start, rest.end);
                }
            }
            if start < range.start {
                break;
            }
        }
        before - self.count
    }

    /// The parts of `range` that are in the list, in order.
    pub fn within(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let before = self.ranges.range(..range.start).next_back();
        let first = before.map_or(range.start, |(&start, _)| start);
        self.ranges
            .range(first..range.end.max(first))
            .map(move |(&start, &end)| start.max(range.start)..end.min(range.end))
            .filter(|part| !part.is_empty())
    }
}

/// The body of a NAK: words, of which one with its top bit set begins a range that the next one ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossReport<'a>(&'a [u8]);

/// Says that the next word is the last packet of the range.
const RANGE: u32 = 1 << 31;

impl<'a> LossReport<'a> {
    /// The words of a NAK, if they are whole words and every range has both its ends.
    pub(crate) fn parse(words: &'a [u8]) -> Option<LossReport<'a>> {
        let mut open = false;
        for word in words.chunks(4) {
            let word = u32::from_be_bytes(word.try_into().ok()?);
            if open && word & RANGE != 0 {
                return None;
            }
            open = word & RANGE != 0;
        }
        (!words.is_empty() && !open).then_some(LossReport(words))
    }

    /// Appends the words of `first..=last` to `words`, and returns what `words` then says.
    pub fn push(words: &'a mut Vec<u8>, first: Seq, last: Seq) -> LossReport<'a> {
        if first == last {
            words.extend(first.get().to_be_bytes());
        } else {
            words.extend((first.get() | RANGE).to_be_bytes());
            words.extend(last.get().to_be_bytes());
        }
        LossReport(words)
    }

    /// First and last packet of each range.
    pub fn ranges(self) -> impl Iterator<Item = (Seq, Seq)> + 'a {
        let mut words =
            self.0.chunks_exact(4).map(|word| u32::from_be_bytes(word.try_into().unwrap_or_default()));
        std::iter::from_fn(move || {
            let first = words.next()?;
            let last = if first & RANGE != 0 { words.next()? } else { first };
            Some((Seq::new(first), Seq::new(last)))
        })
    }

    /// As on the wire.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Against a plain set.
        #[test]
        fn agrees_with_a_plain_set(ops in proptest::collection::vec((0u8..4, 0u64..200, 0u64..30), 1..200)) {
            let (mut list, mut model) = (LossList::default(), BTreeSet::new());
            for (op, start, length) in ops {
                let range = start..start + length;
                match op {
                    0 | 1 => {
                        let new = range.clone().filter(|&index| model.insert(index)).count();
                        prop_assert_eq!(list.insert(range), new as u64);
                    }
                    2 => {
                        let gone = range.clone().filter(|index| model.remove(index)).count();
                        prop_assert_eq!(list.remove(range), gone as u64);
                    }
                    _ => {
                        let within: Vec<u64> = list.within(range.clone()).flatten().collect();
                        prop_assert_eq!(within, model.range(range).copied().collect::<Vec<_>>());
                        prop_assert_eq!(list.pop_first(), model.pop_first());
                    }
                }
                prop_assert_eq!(list.len(), model.len() as u64);
                prop_assert_eq!(list.ranges().flatten().collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
                let apart: Vec<_> = list.ranges().collect();
                prop_assert!(apart.windows(2).all(|pair| pair[0].end < pair[1].start), "{apart:?} is not maximal");
                prop_assert_eq!(list.contains(start), model.contains(&start));
            }
        }

        #[test]
        fn reports_say_what_was_put_in(ranges in proptest::collection::vec((0u32..1 << 31, 0u32..1 << 31), 1..50)) {
            let mut words = Vec::new();
            for &(first, last) in &ranges {
                LossReport::push(&mut words, Seq::new(first), Seq::new(last));
            }
            let report = LossReport::parse(&words).unwrap();
            prop_assert_eq!(report.ranges().map(|(first, last)| (first.get(), last.get())).collect::<Vec<_>>(), ranges);
        }
    }

    #[test]
    fn a_range_without_its_end_is_no_report() {
        for words in [&[0x80, 0, 0, 1][..], &[0, 0, 0], &[], &[0x80, 0, 0, 1, 0x80, 0, 0, 2, 0, 0, 0, 3]] {
            assert_eq!(LossReport::parse(words), None, "{words:x?}");
        }
    }

    /// Captured from libudt 4.11: two packets are a range too.
    #[test]
    fn a_captured_report() {
        let mut words = Vec::new();
        LossReport::push(&mut words, Seq::new(0x14f4_ddd5), Seq::new(0x14f4_ddd6));
        assert_eq!(words, [0x94, 0xf4, 0xdd, 0xd5, 0x14, 0xf4, 0xdd, 0xd6]);
    }
}
