//! Sets of bytes of a sequence, as ranges.

/// Ranges beyond this number are forgotten, the lowest first: only hostile files have so many.
const MOST: usize = 4096;

/// Disjoint ranges in ascending order, none next to another.
#[derive(Debug, Default)]
pub struct Ranges {
    parts: Vec<(i64, i64)>,
    total: i64,
}

impl Ranges {
    /// Bytes in the set.
    pub fn total(&self) -> i64 {
        self.total
    }

    /// Number of ranges.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// The end of the highest range.
    pub fn end(&self) -> Option<i64> {
        self.parts.last().map(|part| part.1)
    }

    /// Adds a range; returns the highest part of it that was not there.
    pub fn insert(&mut self, start: i64, end: i64) -> Option<(i64, i64)> {
        if start >= end {
            return None;
        }
        let first = self.parts.partition_point(|part| part.1 < start);
        let after = self.parts.partition_point(|part| part.0 <= end);
        let mut fresh = (start, end);
        for &(low, high) in &self.parts[first..after] {
            if high >= fresh.1 && low <= fresh.0 {
                return None;
            }
            if high >= fresh.1 {
                fresh.1 = fresh.1.min(low);
            } else {
                fresh.0 = fresh.0.max(high);
            }
        }
        let held: i64 = self.parts[first..after].iter().map(|part| part.1 - part.0).sum();
        let low = self.parts[first..after].first().map_or(start, |part| part.0.min(start));
        let high = self.parts[first..after].last().map_or(end, |part| part.1.max(end));
        self.parts.splice(first..after, [(low, high)]);
        self.total += high - low - held;
        if self.parts.len() > MOST {
            let lost = self.parts.remove(0);
            self.total -= lost.1 - lost.0;
        }
        Some(fresh)
    }

    /// Takes a range out; returns how many of its bytes were there.
    pub fn remove(&mut self, start: i64, end: i64) -> i64 {
        if start >= end {
            return 0;
        }
        let first = self.parts.partition_point(|part| part.1 <= start);
        let after = self.parts.partition_point(|part| part.0 < end);
        if first >= after {
            return 0;
        }
        let (low, high) = (self.parts[first].0, self.parts[after - 1].1);
        let held: i64 = self.parts[first..after].iter().map(|part| part.1 - part.0).sum();
        let kept = [(low, start), (end, high)].into_iter().filter(|part| part.0 < part.1);
        let left: i64 = kept.clone().map(|part| part.1 - part.0).sum();
        self.parts.splice(first..after, kept);
        self.total -= held - left;
        held - left
    }

    /// Takes out all below; returns how many bytes that were.
    pub fn remove_below(&mut self, end: i64) -> i64 {
        match self.parts.first() {
            Some(&(low, _)) => self.remove(low, end),
            None => 0,
        }
    }

    /// Bytes at and above a place.
    pub fn above(&self, place: i64) -> i64 {
        self.parts.iter().rev().take_while(|part| part.1 > place).map(|part| part.1 - part.0.max(place)).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::Ranges;

    proptest! {
        #[test]
        fn ranges_are_the_set_of_their_bytes(
            steps in prop::collection::vec((any::<bool>(), 0i64..60, 0i64..20), 0..60)
        ) {
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            for (adds, start, size) in steps {
                let end = start + size;
                let new: Vec<i64> = (start..end).filter(|byte| !set.contains(byte)).collect();
                if adds {
                    let fresh = ranges.insert(start, end);
                    prop_assert_eq!(fresh.is_some(), !new.is_empty());
                    if let Some((low, high)) = fresh {
                        prop_assert_eq!(high - 1, *new.last().unwrap());
                        prop_assert!((low..high).all(|byte| !set.contains(&byte)));
                    }
                    set.extend(start..end);
                } else {
                    prop_assert_eq!(ranges.remove(start, end), size - new.len() as i64);
                    set.retain(|byte| !(start..end).contains(byte));
                }
                prop_assert_eq!(ranges.total(), set.len() as i64);
                prop_assert_eq!(ranges.end(), set.last().map(|byte| byte + 1));
                prop_assert_eq!(ranges.above(start), set.range(start..).count() as i64);
            }
        }
    }
}
