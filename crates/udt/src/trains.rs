//! The same measurements where packets come in trains that share one arrival time: with segmentation and
//! receive offload an interval between two packets means nothing, one between two trains does.

use lfn_units::Time;

use crate::estimate::{Ring, PAIRS};

const PS_PER_S: u128 = 1_000_000_000_000;
/// Fewer pairs of trains than this say nothing of the path.
const MIN_SAMPLES: usize = 8;

/// Speed of arrival as a count over time, capacity by pairs of trains.
///
/// A sender ends a train at the first packet of a pair, once in a burst, and begins the next with the second
/// (`lfn_transfer`); so the second train's time, shared among its packets, is what one packet takes.
#[derive(Clone, Debug)]
pub(crate) struct TrainFilters {
    /// Since the last report.
    packets: u64,
    since: Time,
    last_seq: Option<u32>,
    last: Time,
    /// A train that began as the second of a pair: when the train before it came, and its packets so far.
    open: Option<(Time, u64)>,
    spacings_ps: Ring<PAIRS>,
}

impl TrainFilters {
    pub fn new(now: Time) -> TrainFilters {
        TrainFilters {
            packets: 0,
            since: now,
            last_seq: None,
            last: Time::ZERO,
            open: None,
            spacings_ps: Ring::empty(),
        }
    }

    pub fn on_arrival(&mut self, now: Time, seq: u32) {
        self.packets += 1;
        if now > self.last {
            self.close();
            let second = seq % 16 == 1 && self.last_seq == Some(seq - 1);
            self.open = second.then_some((self.last, 0));
            self.last = now;
        }
        if let Some((_, packets)) = &mut self.open {
            *packets += 1;
        }
        self.last_seq = Some(seq);
    }

    fn close(&mut self) {
        if let Some((before, packets)) = self.open.take() {
            self.spacings_ps.push((self.last - before).0 / packets);
        }
    }

    /// Packets a second since the last call, if that is long enough ago to tell.
    pub fn arrival_pps(&mut self, now: Time) -> u32 {
        let elapsed = now - self.since;
        if elapsed == Time::ZERO {
            return 0;
        }
        let rate = u128::from(self.packets) * PS_PER_S / u128::from(elapsed.0);
        self.packets = 0;
        self.since = now;
        u32::try_from(rate).unwrap_or(u32::MAX)
    }

    pub fn capacity_pps(&self) -> u32 {
        if self.spacings_ps.len() < MIN_SAMPLES {
            return 0;
        }
        let (sum, count) = self.spacings_ps.near(self.spacings_ps.median());
        match u128::from(sum) {
            0 => 0,
            sum => u32::try_from(u128::from(count) * PS_PER_S / sum).unwrap_or(u32::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 16 packets every 40 µs, over a link of 1 µs a packet, in two trains: the pair lies between them.
    #[test]
    fn trains_give_the_speed_by_count_and_the_capacity_by_pairs() {
        let begin = Time::from_s(1);
        let mut filters = TrainFilters::new(begin);
        for packet in 0..3_200u32 {
            let (burst, second) = (u64::from(packet / 16), u64::from(packet / 8 % 2));
            filters.on_arrival(begin + Time::from_us(40 * burst + 8 * (1 + second)), packet + 9);
        }
        assert_eq!(filters.capacity_pps(), 1_000_000);
        assert_eq!(filters.arrival_pps(begin + Time::from_ms(8)), 400_000);
        assert_eq!(filters.arrival_pps(begin + Time::from_ms(16)), 0);
    }

    #[test]
    fn single_packets_in_pairs_measure_as_well() {
        let mut filters = TrainFilters::new(Time::ZERO);
        for seq in 0..1_600u32 {
            let gap = if seq % 16 == 1 { 12 } else { 0 };
            filters.on_arrival(Time::from_us(100 * u64::from(seq - u32::from(gap > 0)) + gap + 1), seq);
        }
        assert_eq!(filters.capacity_pps(), 83_333);
    }
}
