//! The same measurements where packets come in trains that share one arrival time: with segmentation and
//! receive offload an interval between two packets means nothing, one between two trains does.

use lfn_units::Time;

use crate::estimate::{Ring, ARRIVALS, PAIRS};

const PS_PER_S: u128 = 1_000_000_000_000;
/// Pairs of trains that an estimate needs; fewer are not representative of the path.
const MIN_SAMPLES: usize = 8;

/// Speed of arrival by all trains, capacity by pairs of them: the time of a train, shared among its packets.
///
/// A sender ends a train at the first packet of a pair, once in a burst, and begins the next with the second
/// (`lfn_transfer`); so the second train's time is what its packets take at the bottleneck.
#[derive(Clone, Debug)]
pub(crate) struct TrainFilters {
    last_seq: Option<u32>,
    /// When the train before the last came, and the last.
    before: Option<Time>,
    last: Option<Time>,
    /// Packets of the last train so far, and whether it began as the second of a pair.
    packets: u64,
    second: bool,
    /// Time per packet: of all trains, and of those that are the second of a pair.
    arrivals_ps: Ring<ARRIVALS>,
    pairs_ps: Ring<PAIRS>,
}

impl TrainFilters {
    pub fn new() -> TrainFilters {
        TrainFilters {
            last_seq: None,
            before: None,
            last: None,
            packets: 0,
            second: false,
            arrivals_ps: Ring::empty(),
            pairs_ps: Ring::empty(),
        }
    }

    pub fn on_arrival(&mut self, now: Time, seq: u32) {
        if self.last.is_none_or(|last| now > last) {
            self.close();
            self.second = seq % 16 == 1 && self.last_seq == Some(seq - 1);
            (self.before, self.last, self.packets) = (self.last, Some(now), 0);
        }
        self.packets += 1;
        self.last_seq = Some(seq);
    }

    fn close(&mut self) {
        let (Some(before), Some(last)) = (self.before, self.last) else { return };
        let spacing_ps = (last - before).0 / self.packets;
        self.arrivals_ps.push(spacing_ps);
        if self.second {
            self.pairs_ps.push(spacing_ps);
        }
    }

    pub fn arrival_pps(&self) -> u32 {
        speed(&self.arrivals_ps, ARRIVALS / 2 + 1)
    }

    pub fn capacity_pps(&self) -> u32 {
        speed(&self.pairs_ps, MIN_SAMPLES)
    }
}

/// Rate in packets a second, if enough samples are near their median.
fn speed<const N: usize>(spacings_ps: &Ring<N>, least: usize) -> u32 {
    if spacings_ps.len() < least {
        return 0;
    }
    let (sum, count) = spacings_ps.near(spacings_ps.median());
    if sum == 0 || count < least as u64 {
        return 0;
    }
    u32::try_from(u128::from(count) * PS_PER_S / u128::from(sum)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 16 packets every 40 µs, over a link of 1 µs a packet, in two trains: the pair lies between them.
    #[test]
    fn trains_give_the_speed_of_arrival_and_their_pairs_the_capacity() {
        let begin = Time::from_s(1);
        let mut filters = TrainFilters::new();
        for packet in 0..3_200u32 {
            let (burst, second) = (u64::from(packet / 16), u64::from(packet / 8 % 2));
            filters.on_arrival(begin + Time::from_us(40 * burst + 8 * (1 + second)), packet + 9);
        }
        assert_eq!(filters.capacity_pps(), 1_000_000);
        assert_eq!(filters.arrival_pps(), 400_000);
    }

    #[test]
    fn single_packets_in_pairs_measure_as_well() {
        let mut filters = TrainFilters::new();
        for seq in 0..1_600u32 {
            let gap = if seq % 16 == 1 { 12 } else { 0 };
            filters.on_arrival(Time::from_us(100 * u64::from(seq - u32::from(gap > 0)) + gap + 1), seq);
        }
        assert_eq!(filters.capacity_pps(), 83_333);
    }
}
