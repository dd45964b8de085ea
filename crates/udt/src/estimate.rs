//! Measurements of a connection: round-trip time, arrival rate, capacity by packet pairs.

use lfn_units::Time;

/// The constant period of UDT's timers and of its rate control.
pub const SYN: Time = Time::from_ms(10);

/// Smoothed RTT and its deviation; 100 ms and 50 ms at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtt {
    /// The RTT.
    pub smoothed: Time,
    /// Its mean deviation.
    pub deviation: Time,
    /// The last sample; 0 before the first.
    pub latest: Time,
    /// The smallest sample; 0 before the first.
    pub least: Time,
}

impl Default for Rtt {
    fn default() -> Rtt {
        let (smoothed, deviation) = (Time::from_ms(100), Time::from_ms(50));
        Rtt { smoothed, deviation, latest: Time::ZERO, least: Time::ZERO }
    }
}

impl Rtt {
    /// No sample is longer: a peer may claim anything.
    const MAX: Time = Time::from_s(60);

    /// Takes a sample: the deviation by a quarter, the RTT by an eighth.
    pub fn sample(&mut self, sample: Time) {
        let sample = sample.min(Self::MAX);
        self.least = if self.latest == Time::ZERO { sample } else { self.least.min(sample) };
        self.latest = sample;
        let error = sample.0.abs_diff(self.smoothed.0);
        self.deviation = Time((3 * self.deviation.0 + error) / 4);
        self.smoothed = Time((7 * self.smoothed.0 + sample.0) / 8);
    }

    /// RTT + 4 deviations.
    pub fn upper(&self) -> Time {
        self.smoothed + Time(4 * self.deviation.0)
    }
}

/// The last `N` intervals, in the order of a ring.
#[derive(Clone, Debug)]
pub(crate) struct Ring<const N: usize> {
    values: [u64; N],
    len: usize,
    next: usize,
}

impl<const N: usize> Ring<N> {
    pub(crate) fn empty() -> Self {
        Ring { values: [0; N], len: 0, next: 0 }
    }

    fn full_of(value: u64) -> Self {
        Ring { values: [value; N], len: N, next: 0 }
    }

    pub(crate) fn push(&mut self, value: u64) {
        self.values[self.next] = value;
        self.next = (self.next + 1) % N;
        self.len = N.min(self.len + 1);
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn values(&self) -> &[u64] {
        &self.values[..self.len]
    }

    /// The median: of an even number the mean of the two in the middle.
    pub(crate) fn median(&self) -> u64 {
        let mut sorted = self.values;
        let sorted = &mut sorted[..self.len];
        sorted.sort_unstable();
        let middle = self.len / 2;
        if self.len.is_multiple_of(2) {
            (sorted[middle - 1] + sorted[middle]) / 2
        } else {
            sorted[middle]
        }
    }

    /// The median as libudt computes it, without the last slot.
    fn median_compat(&self) -> u64 {
        let mut sorted = self.values;
        let sorted = &mut sorted[..N - 1];
        sorted.sort_unstable();
        sorted[N / 2]
    }

    /// Sum and number of those between an eighth of `median` and 8 times it.
    pub(crate) fn near(&self, median: u64) -> (u64, u64) {
        let near = |&&value: &&u64| value > median / 8 && value < median.saturating_mul(8);
        self.values().iter().filter(near).fold((0, 0), |(sum, count), value| (sum + value, count + 1))
    }
}

pub(crate) const ARRIVALS: usize = 16;
pub(crate) const PAIRS: usize = 64;
/// Pairs that an estimate needs; fewer are not representative of the path.
const MIN_PAIRS: usize = 8;
const NS_PER_S: u64 = 1_000_000_000;
/// An interval that no path has, so that sums of them fit.
const MAX_INTERVAL: u64 = 1 << 40;

/// Median filters over the arrivals of data packets.
///
/// Intervals count nanoseconds. With `compat` they count microseconds, means and rates are rounded
/// as in libudt 4.11, medians leave one slot out, and the rings begin full: 1 packet/s, and 1000.
#[derive(Clone, Debug)]
pub struct ArrivalFilters {
    compat: bool,
    last: Option<Time>,
    arrivals: Ring<ARRIVALS>,
    first_of_pair: Option<Time>,
    pairs: Ring<PAIRS>,
}

impl ArrivalFilters {
    /// Nothing has come.
    pub fn new(compat: bool) -> ArrivalFilters {
        let (arrivals, pairs) = if compat {
            (Ring::full_of(1_000_000), Ring::full_of(1_000))
        } else {
            (Ring::empty(), Ring::empty())
        };
        ArrivalFilters { compat, last: None, arrivals, first_of_pair: None, pairs }
    }

    fn interval(&self, from: Time, to: Time) -> u64 {
        let ns = (to - from).as_ns().min(MAX_INTERVAL);
        if self.compat {
            (ns / 1000).max(1)
        } else {
            ns
        }
    }

    /// A data packet with this wire number comes, wanted or not.
    #[inline]
    pub fn on_arrival(&mut self, now: Time, seq: u32) {
        if let Some(last) = self.last {
            self.arrivals.push(self.interval(last, now));
        }
        self.last = Some(now);
        // libudt does not check that the second follows the first; a lost one stretches the gap.
        match seq % 16 {
            0 => self.first_of_pair = Some(now),
            1 => {
                let first = if self.compat { self.first_of_pair } else { self.first_of_pair.take() };
                if let Some(first) = first {
                    self.pairs.push(self.interval(first, now));
                }
            }
            _ if !self.compat => self.first_of_pair = None,
            _ => {}
        }
    }

    /// Speed of arrival in packets a second; 0 while the intervals differ too much.
    pub fn arrival_pps(&self) -> u32 {
        if self.compat {
            let (sum, count) = self.arrivals.near(self.arrivals.median_compat());
            return if count > 8 { ceil_rate(sum / count, 1) } else { 0 };
        }
        if self.arrivals.len < ARRIVALS {
            return 0;
        }
        let (sum, count) = self.arrivals.near(self.arrivals.median());
        if count > 8 {
            rate(sum, count)
        } else {
            0
        }
    }

    /// Capacity of the path in packets a second; 0 before there are pairs enough.
    pub fn capacity_pps(&self) -> u32 {
        if self.compat {
            let median = self.pairs.median_compat();
            let (sum, count) = self.pairs.near(median);
            return ceil_rate(sum + median, count + 1);
        }
        if self.pairs.len < MIN_PAIRS {
            return 0;
        }
        let (sum, count) = self.pairs.near(self.pairs.median());
        rate(sum, count)
    }
}

/// `count` intervals of `sum` nanoseconds, as packets a second.
fn rate(sum: u64, count: u64) -> u32 {
    if sum == 0 {
        return 0;
    }
    ((u128::from(count) * u128::from(NS_PER_S) + u128::from(sum / 2)) / u128::from(sum)) as u32
}

/// The same of microseconds, rounded up.
fn ceil_rate(sum: u64, count: u64) -> u32 {
    (count * 1_000_000).div_ceil(sum.max(1)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn train(compat: bool, packets: u64, gap: impl Fn(u64) -> Time) -> ArrivalFilters {
        let (mut filters, mut now) = (ArrivalFilters::new(compat), Time::from_s(1));
        for seq in 0..packets {
            filters.on_arrival(now, seq as u32);
            now = now + gap(seq);
        }
        filters
    }

    /// 100 µs apart, pairs 12 µs apart.
    fn paced(seq: u64) -> Time {
        Time::from_us(if seq.is_multiple_of(16) { 12 } else { 100 })
    }

    #[test]
    fn steady_arrivals_give_their_speed_and_pairs_the_capacity() {
        let filters = train(false, 2000, |seq| {
            if seq.is_multiple_of(16) {
                Time::from_ns(1_200)
            } else {
                Time::from_ns(9_600)
            }
        });
        assert_eq!(filters.arrival_pps(), 104_167);
        assert_eq!(filters.capacity_pps(), 833_333);
        let filters = train(true, 2000, paced);
        // 15 gaps of 100 µs, one of 12, within 8 times of each other only where 12.5 < 12 fails.
        assert_eq!(filters.arrival_pps(), 10_000);
        assert_eq!(filters.capacity_pps(), 83_334);
    }

    #[test]
    fn libudt_reports_a_thousand_packets_a_second_until_half_the_ring_is_measured() {
        assert_eq!(train(true, 16 * 20, paced).capacity_pps(), 1_000);
        assert_eq!(train(true, 16 * 40, paced).capacity_pps(), 83_334);
        assert_eq!(train(false, 16 * 7, paced).capacity_pps(), 0);
        assert_eq!(train(false, 16 * 8, paced).capacity_pps(), 83_333);
    }

    #[test]
    fn scattered_arrivals_have_no_speed() {
        let filters = train(false, 100, |seq| Time::from_us(if seq % 2 == 0 { 1 } else { 1000 }));
        assert_eq!(filters.arrival_pps(), 0);
    }

    #[test]
    fn a_pair_whose_packets_are_not_neighbours_measures_nothing() {
        let mut filters = ArrivalFilters::new(false);
        for round in 0..100u32 {
            for (at_us, seq) in [(0, 0), (5, 2), (10, 1)] {
                filters.on_arrival(Time::from_ms(u64::from(round)) + Time::from_us(at_us), 16 * round + seq);
            }
        }
        assert_eq!(filters.capacity_pps(), 0);
    }

    #[test]
    fn packets_of_one_instant_measure_nothing() {
        let filters = train(false, 200, |_| Time::ZERO);
        assert_eq!((filters.arrival_pps(), filters.capacity_pps()), (0, 0));
        let filters = train(true, 1100, |_| Time::ZERO);
        assert_eq!((filters.arrival_pps(), filters.capacity_pps()), (1_000_000, 1_000_000));
    }

    #[test]
    fn rtt_filters_by_an_eighth_and_a_quarter() {
        let mut rtt = Rtt::default();
        rtt.sample(Time::from_ms(20));
        let ms = Time::from_ms;
        let (smoothed, deviation) = (ms(90), Time::from_us(57_500));
        assert_eq!(rtt, Rtt { smoothed, deviation, latest: ms(20), least: ms(20) });
        assert_eq!(rtt.upper(), Time::from_ms(320));
        rtt.sample(Time::NEVER);
        assert!(rtt.smoothed < Rtt::MAX);
        assert_eq!((rtt.latest, rtt.least), (Rtt::MAX, ms(20)));
    }
}
