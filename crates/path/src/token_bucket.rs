//! Token buckets: a policer, which drops, and a shaper, which lets wait.

use std::ops::RangeInclusive;

use lfn_keys::keys;
use lfn_units::{Bytes, Rate, Time};

use crate::server::{RateServer, BYTE};

/// Of a policer and a shaper.
const RATES: RangeInclusive<Rate> = Rate(1_000)..=Rate(10_000_000_000_000);
const BURSTS: RangeInclusive<Bytes> = Bytes(64)..=Bytes(1_000_000_000_000);

keys! {
    /// A token bucket ahead of a queue. It drops the packets for which it has no tokens.
    #[derive(Copy)]
    pub struct Policer {
        /// How fast tokens come, in bits on the wire.
        rate: Rate, in RATES, like "rate = \"10Mbit/s\"";
        /// Tokens that the bucket holds: what may pass at once after a pause. At least a packet.
        burst: Bytes, in BURSTS, like "burst = \"100kB\"";
    }
}

keys! {
    /// A token bucket behind a queue. A packet waits while its predecessors have used more tokens than there were.
    #[derive(Copy)]
    pub struct Shaper {
        /// How fast tokens come, in bits on the wire: the rate of the link in the mean.
        rate: Rate, in RATES, like "rate = \"10Mbit/s\"";
        /// Tokens that the bucket holds: what leaves at the link's own rate after a pause. At least a packet.
        burst: Bytes, in BURSTS, like "burst = \"100kB\"";
    }
}

/// Tokens in units of 10^-12 bit: a bucket of R bit/s gets R of them in a picosecond, so that rates are exact.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    rate: Rate,
    most: i128,
    tokens: i128,
    filled: Time,
}

impl TokenBucket {
    /// A full bucket.
    pub(crate) fn new(rate: Rate, burst: Bytes) -> TokenBucket {
        let most = i128::from(burst.0) * i128::from(BYTE);
        TokenBucket { rate, most, tokens: most, filled: Time::ZERO }
    }

    fn fill(&mut self, now: Time) {
        let came = i128::from(now.since(self.filled).0) * i128::from(self.rate.0);
        self.tokens = (self.tokens + came).min(self.most);
        self.filled = self.filled.max(now);
    }

    /// Takes the tokens of a packet, if all are there.
    pub(crate) fn admits(&mut self, now: Time, bytes: u32) -> bool {
        self.fill(now);
        let wanted = i128::from(bytes) * i128::from(BYTE);
        let admits = self.tokens >= wanted;
        self.tokens -= if admits { wanted } else { 0 };
        admits
    }

    /// Tokens in bits; below 0 where they are owed.
    fn bits(&self, now: Time) -> f64 {
        let came = i128::from(now.since(self.filled).0) * i128::from(self.rate.0);
        (self.tokens + came).min(self.most) as f64 * 1e-12
    }

    /// When nothing is owed.
    fn ready_at(&mut self, now: Time) -> Time {
        self.fill(now);
        let owed = u128::try_from(-self.tokens).unwrap_or(0);
        let wait = owed.div_ceil(u128::from(self.rate.0.max(1)));
        now.after(Time(u64::try_from(wait).unwrap_or(u64::MAX)))
    }

    /// Takes the tokens of a packet; those that are not there are owed.
    fn spend(&mut self, bytes: u32) {
        self.tokens -= i128::from(bytes) * i128::from(BYTE);
    }
}

/// The server of a link with a shaper.
#[derive(Clone, Debug)]
pub(crate) struct ShapedServer {
    bucket: TokenBucket,
    line: RateServer,
}

impl ShapedServer {
    /// `line` is the rate at which the bits of a packet leave.
    pub(crate) fn new(line: Rate, shaper: Shaper) -> ShapedServer {
        ShapedServer { bucket: TokenBucket::new(shaper.rate, shaper.burst), line: RateServer::new(line) }
    }

    /// The shaper's rate.
    pub(crate) fn mean_rate(&self) -> Rate {
        self.bucket.rate
    }

    /// When the next packet may begin.
    pub(crate) fn ready_at(&mut self, now: Time) -> Time {
        self.bucket.ready_at(now)
    }

    /// A packet begins. Returns when its last bit leaves.
    pub(crate) fn begin(&mut self, now: Time, bytes: u32) -> Time {
        self.bucket.spend(bytes);
        self.line.begin(now, bytes)
    }

    /// How long so many bits take: all at the line's rate, and as tokens come those that wait for them.
    pub(crate) fn drain_s(&self, now: Time, bits: f64, waiting_bits: f64) -> f64 {
        let owed = waiting_bits - self.bucket.bits(now);
        (bits / self.line.rate().as_bps()).max(owed / self.bucket.rate.as_bps())
    }

    /// Bytes that have left of a packet of so many, which ends at `leaves`.
    pub(crate) fn partly_sent_bytes(&self, bytes: u32, leaves: Time, now: Time) -> f64 {
        self.line.partly_sent_bytes(bytes, leaves, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policer_passes_its_burst_and_then_its_rate() {
        // 12 Mbit/s: a packet of 1500 bytes each ms.
        let mut bucket = TokenBucket::new(Rate(12_000_000), Bytes(4500));
        let now = Time::from_ms(10);
        let passed: Vec<bool> = (0..5).map(|_| bucket.admits(now, 1500)).collect();
        assert_eq!(passed, [true, true, true, false, false]);
        assert!(!bucket.admits(now + Time(999_999_999), 1500));
        assert!(bucket.admits(now + Time::from_ms(1), 1500));
        // It holds no more than its burst.
        let later = Time::from_s(1000);
        assert_eq!((0..9).filter(|_| bucket.admits(later, 1500)).count(), 3);
        // A packet above the burst never passes.
        assert!(!bucket.admits(Time::from_s(9000), 4501));
    }

    #[test]
    fn a_shaper_owes_at_most_a_packet() {
        let mut bucket = TokenBucket::new(Rate(12_000_000), Bytes(3000));
        let now = Time::from_ms(7);
        for owed_ms in [0, 0, 1, 2] {
            assert_eq!(bucket.ready_at(now), now + Time::from_ms(owed_ms.max(1) - 1), "{owed_ms}");
            bucket.spend(1500);
        }
        assert_eq!(bucket.ready_at(now), now + Time::from_ms(2));
    }

    #[test]
    fn rates_are_exact() {
        let mut bucket = TokenBucket::new(Rate(3), Bytes(64));
        bucket.spend(64);
        bucket.spend(1);
        // 8 bits at 3 bit/s.
        assert_eq!(bucket.ready_at(Time::ZERO), Time(2_666_666_666_667));
        assert_eq!(bucket.ready_at(Time::NEVER), Time::NEVER);
    }
}
