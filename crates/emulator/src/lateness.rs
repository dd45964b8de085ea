//! Lateness of the emulator: a histogram of durations.

use serde::{Deserialize, Serialize};

/// Bins between a power of two and the next: an edge is at most 1/32 off.
const BINS: u32 = 32;

/// Durations in nanoseconds, counted in bins of about 3 %.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    max_ns: u64,
}

/// Quantiles of a histogram, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Number of durations.
    pub count: u64,
    /// Median.
    pub p50_us: f64,
    /// 99 of 100 are below.
    pub p99_us: f64,
    /// 999 of 1000 are below.
    pub p999_us: f64,
    /// Longest.
    pub max_us: f64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; bin(u64::MAX) + 1], count: 0, max_ns: 0 }
    }
}

/// Durations below `BINS` have a bin each; above, every octave has `BINS` bins.
fn bin(ns: u64) -> usize {
    let octave = (ns | u64::from(BINS)).ilog2() - BINS.ilog2();
    ((u64::from(octave) * u64::from(BINS)) + (ns >> octave)) as usize
}

/// The least duration beyond a bin.
fn edge(bin: usize) -> u64 {
    let (bin, bins) = (bin as u64 + 1, u64::from(BINS));
    let octave = (bin / bins).saturating_sub(1);
    (bin - octave * bins) << octave
}

impl Histogram {
    /// Counts a duration.
    pub fn add(&mut self, ns: u64) {
        self.counts[bin(ns)] += 1;
        self.count += 1;
        self.max_ns = self.max_ns.max(ns);
    }

    /// An upper bound, at most 1/32 too high, of the share `q` of the durations; 0 if there are none.
    pub fn quantile_ns(&self, q: f64) -> u64 {
        let wanted = (self.count as f64 * q).ceil() as u64;
        let mut seen = 0;
        for (bin, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted && seen > 0 {
                return edge(bin).min(self.max_ns);
            }
        }
        0
    }

    /// In short.
    pub fn quantiles(&self) -> Quantiles {
        let us = |q| self.quantile_ns(q) as f64 / 1e3;
        Quantiles {
            count: self.count,
            p50_us: us(0.5),
            p99_us: us(0.99),
            p999_us: us(0.999),
            max_us: self.max_ns as f64 / 1e3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_follow_each_other_and_their_edges_bound_them() {
        let around_powers = (5..63).flat_map(|shift| [(1 << shift) - 1, 1 << shift, (1 << shift) + 1]);
        for ns in (0..5000).chain(around_powers) {
            let (bin, next) = (bin(ns), bin(ns + 1));
            assert!(edge(bin) > ns, "{ns}");
            assert!(edge(bin) - 1 <= ns + ns / 32, "{ns}: {}", edge(bin));
            assert!(next == bin || next == bin + 1, "{ns}");
        }
        assert!(bin(u64::MAX) < Histogram::default().counts.len());
    }

    #[test]
    fn quantiles_of_a_known_sample() {
        let mut histogram = Histogram::default();
        (1..=1000).for_each(|us| histogram.add(us * 1000));
        let found = histogram.quantiles();
        assert_eq!((found.count, found.max_us), (1000, 1000.0));
        for (found, exact) in [(found.p50_us, 500.0), (found.p99_us, 990.0), (found.p999_us, 999.0)] {
            assert!(exact <= found && found <= exact * (1.0 + 1.0 / 32.0) + 1e-3, "{found} {exact}");
        }
    }
}
