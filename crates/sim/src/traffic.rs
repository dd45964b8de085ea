//! Traffic models: who sends how much, and when.
//!
//! Every model is a pure generator in order of time. It owns random streams named after it and knows no
//! law, no engine and no network, so every law meets the same traffic. Where people wait for an answer
//! before they go on ([`Transfer::session`]), the engine reports that a transfer is done, and the model
//! goes on from there; sizes and pauses are drawn in an order that does not depend on it.
//!
//! A model states its nominal load, computed from the means of its distributions. Tails are bounded, so
//! that the mean is exact and is met by a run of finite length; each model says where its bound is.
//!
//! A TCP flow capped at W packets needs no model: it is a plain flow with a receive window of W.

use lfn_keys::words;
use lfn_units::{Bytes, Rate, Time};

use crate::rng::{Distribution, Mixture, Stream, Streams};

pub mod connection;
pub mod evaluation_suite;
mod keys;
mod model;
pub mod open;
pub mod packmime;
mod parameters;
pub mod requests;
mod size;
#[cfg(test)]
pub(crate) mod testing;
pub mod udp;
pub mod vectors;
pub mod web;

pub use model::{Flows, Model};
pub use parameters::Parameters;
pub use size::{LognormalSize, ParetoSize, Size};

/// Which way data travel through the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// With the data of the flows under test.
    Forward,
    /// With their ACKs.
    Reverse,
}

words! { Direction { Forward = "forward", Reverse = "reverse", } }

/// Highest rate of a scenario.
pub const RATE_MAX: Rate = Rate(10_000_000_000_000);
/// Most connections a second, sessions or users.
pub(crate) const COUNT_MAX: u64 = 1_000_000;
/// Largest message.
pub(crate) const SIZE_MAX: Bytes = Bytes(1_000_000_000_000);

impl Direction {
    /// Both directions.
    pub const ALL: [Direction; 2] = [Direction::Forward, Direction::Reverse];

    /// The name used in the names of random streams and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Forward => "forward",
            Direction::Reverse => "reverse",
        }
    }

    /// The other way.
    #[must_use]
    pub const fn opposite(self) -> Direction {
        match self {
            Direction::Forward => Direction::Reverse,
            Direction::Reverse => Direction::Forward,
        }
    }
}

/// An error in a traffic model; prints as `KEY: FOUND; ALLOWED`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {found}; {allowed}")]
pub struct BadTraffic {
    /// The parameter, in the model's own words.
    pub key: String,
    /// The value found.
    pub found: String,
    /// The values allowed.
    pub allowed: &'static str,
}

impl BadTraffic {
    fn unless(
        good: bool,
        key: impl Into<String>,
        found: impl Into<String>,
        allowed: &'static str,
    ) -> Result<(), BadTraffic> {
        if good {
            return Ok(());
        }
        Err(BadTraffic { key: key.into(), found: found.into(), allowed })
    }

    /// A mixture must have probabilities that sum to 1, and a mean that `check` accepts.
    fn mixture(
        key: &str,
        mixture: &Mixture,
        check: fn(&str, f64) -> Result<(), BadTraffic>,
    ) -> Result<(), BadTraffic> {
        let sum: f64 = mixture.0.iter().map(|(probability, _)| probability).sum();
        let found = || format!("probabilities that sum to {sum}");
        BadTraffic::unless((sum - 1.0).abs() < 1e-9, key, found(), "a sum of 1")?;
        check(key, mixture.mean())
    }

    /// A quantity that must be at least 0 and finite.
    fn not_negative(key: &str, value: f64) -> Result<(), BadTraffic> {
        BadTraffic::unless(value >= 0.0 && value.is_finite(), key, value.to_string(), "at least 0 and finite")
    }

    /// A quantity that must be positive and finite.
    fn positive(key: &str, value: f64) -> Result<(), BadTraffic> {
        BadTraffic::unless(value > 0.0 && value.is_finite(), key, value.to_string(), "above 0 and finite")
    }
}

/// Bytes that one end sends to the other over TCP: a whole flow, or one message of a longer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// When its bytes are there to be sent.
    pub at: Time,
    /// Which way they travel.
    pub direction: Direction,
    /// How many.
    pub bytes: u64,
    /// Segment size in bytes of payload.
    pub mss_bytes: u32,
    /// Round-trip time of an empty network, without serialisation.
    pub rtt: Time,
    /// To be handed back when the last byte has reached the application. Transfers of one session may
    /// run at once.
    pub session: u64,
    /// Whether it opens a connection. If not, its bytes go over the connection that the transfer before
    /// it in this session and direction has used, and meet the window as they find it.
    pub first: bool,
    /// Whether no other transfer of this session will use its connection in this direction.
    pub last: bool,
}

/// Payload of a segment where the path's MTU is 576 bytes (RFC 879).
pub const SMALL_MSS_BYTES: u32 = 536;

/// Round-trip time and segment size of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathConfig {
    /// Base round-trip time in seconds.
    pub rtt_s: Distribution,
    /// Segment size in bytes of payload.
    pub mss_bytes: u32,
    /// Share of connections whose segments hold [`SMALL_MSS_BYTES`] instead.
    pub small_mss_share: f64,
}

impl PathConfig {
    /// Segments of 1460 bytes, in 10 % of the connections 536 (draft-irtf-iccrg-tcpeval-01), and this
    /// round-trip time in seconds.
    pub const fn of_rtt(rtt_s: Distribution) -> PathConfig {
        PathConfig { rtt_s, mss_bytes: 1460, small_mss_share: 0.1 }
    }

    fn check(&self) -> Result<(), BadTraffic> {
        BadTraffic::not_negative("rtt", self.rtt_s.mean())?;
        BadTraffic::unless(self.mss_bytes > 0, "mss", "0 bytes", "at least 1 byte")?;
        let share = self.small_mss_share;
        BadTraffic::unless((0.0..=1.0).contains(&share), "small_mss_share", share.to_string(), "from 0 to 1")
    }
}

/// Draws the paths of connections.
#[derive(Clone, Debug)]
struct Paths {
    config: PathConfig,
    segments: Stream,
    rtts: Stream,
}

impl Paths {
    fn new(config: PathConfig, streams: &Streams) -> Paths {
        Paths { config, segments: streams.stream("mss"), rtts: streams.stream("rtt") }
    }

    /// Segment size in bytes, and base round-trip time.
    fn draw(&mut self) -> (u32, Time) {
        let small = self.segments.f64() < self.config.small_mss_share;
        let mss_bytes = if small { SMALL_MSS_BYTES } else { self.config.mss_bytes };
        (mss_bytes, Time::from_s_f64(self.config.rtt_s.draw(&mut self.rtts)))
    }
}
