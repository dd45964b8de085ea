//! Delays of packets: their mean and quantiles.

/// Bins of each power of two, in us: a quantile is at most 2 % too large.
const BINS: u64 = 64;

/// Delays in bins that widen with them.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    counts: Vec<u32>,
    packets: u64,
    sum_us: u64,
}

impl Delays {
    /// Counts one.
    #[inline]
    pub fn add(&mut self, delay_us: u64) {
        let bin = Self::bin_of(delay_us);
        if self.counts.len() <= bin {
            self.counts.resize(bin + 1, 0);
        }
        self.counts[bin] += 1;
        self.packets += 1;
        self.sum_us += delay_us;
    }

    fn bin_of(delay_us: u64) -> usize {
        if delay_us < BINS {
            return delay_us as usize;
        }
        // From BINS to 2 * BINS - 1 after the shift.
        let shift = u64::from(delay_us.ilog2() - BINS.ilog2());
        (BINS * shift + (delay_us >> shift)) as usize
    }

    /// The first delay beyond a bin, in us.
    fn end_of(bin: usize) -> u64 {
        let bin = bin as u64;
        if bin < 2 * BINS {
            return bin + 1;
        }
        let shift = bin / BINS - 1;
        (bin - BINS * shift + 1) << shift
    }

    /// How many were counted.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// The mean in s; `None` without packets.
    pub fn mean_s(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.sum_us as f64 * 1e-6 / self.packets as f64)
    }

    /// Quantile `q` in s, to the upper edge of a bin; `None` without packets.
    pub fn quantile_s(&self, q: f64) -> Option<f64> {
        let wanted = (self.packets as f64 * q).ceil().max(1.0) as u64;
        let mut seen = 0;
        let bin = self.counts.iter().position(|&count| {
            seen += u64::from(count);
            seen >= wanted
        });
        bin.map(|bin| Self::end_of(bin) as f64 * 1e-6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_follow_each_other_and_are_narrow() {
        let mut last = 0;
        for delay_us in 0..2_000_000 {
            let bin = Delays::bin_of(delay_us);
            assert!(bin == last || bin == last + 1, "{delay_us}");
            last = bin;
            let end = Delays::end_of(bin);
            assert!(end > delay_us && end as f64 <= delay_us as f64 * 1.0161 + 1.0, "{delay_us}: {end}");
        }
    }

    #[test]
    fn means_and_quantiles() {
        let mut delays = Delays::default();
        assert_eq!((delays.mean_s(), delays.quantile_s(0.5)), (None, None));
        for ms in 1..=1000 {
            delays.add(1000 * ms);
        }
        assert_eq!((delays.packets(), delays.mean_s()), (1000, Some(0.5005)));
        for (q, wanted) in [(0.5, 0.5), (0.99, 0.99), (1.0, 1.0), (0.0, 0.001)] {
            let found = delays.quantile_s(q).unwrap();
            assert!(found >= wanted && found <= wanted * 1.02, "{q}: {found}");
        }
    }
}
