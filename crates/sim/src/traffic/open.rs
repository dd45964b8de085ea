//! Flows that come whatever the network does: a renewal process (Poisson where the gaps are
//! exponential) with independent sizes, as in the short flows of the RCP study (Dukkipati et al. 2005).

use lfn_keys::{keys, Span};
use lfn_units::{Bytes, Rate, Time};

use super::keys::Keys;
use super::size::{pareto, LEAST_MEAN};
use super::{BadTraffic, Direction, PathConfig, Paths, Transfer};
use super::{RATE_MAX, SIZE_MAX};
use crate::rng::{Distribution, Mixture, Stream, Streams};

keys! {
    /// Flows that come whatever the network does.
    #[derive(Copy)]
    pub struct ShortFlows {
        /// Payload offered per second.
        load: Rate, in Rate(1)..=RATE_MAX, like "load = \"100Mbit/s\"";
        /// Mean size of a flow; the default is 25 packets.
        mean: Bytes = Bytes(36_500), in LEAST_MEAN..=SIZE_MAX;
        /// Tail index of the sizes; the largest is 10^4 times the least.
        shape: f64 = 1.2, in Span::above(1.0);
    }
}

impl Keys for ShortFlows {
    type Config = Config;

    fn config(&self, direction: Direction, path: PathConfig) -> Config {
        Config::poisson(direction, self.load, pareto(self.mean, self.shape), path)
    }
}

/// Flows of one kind in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Which way their data travel.
    pub direction: Direction,
    /// Time between two flows, in seconds.
    pub gap_s: Distribution,
    /// Size in bytes.
    pub bytes: Mixture,
    /// Round-trip time and segment size.
    pub path: PathConfig,
}

impl Config {
    /// Poisson arrivals that offer `load` bits of payload per second.
    pub fn poisson(direction: Direction, load: Rate, bytes: impl Into<Mixture>, path: PathConfig) -> Config {
        let bytes = bytes.into();
        let gap_s = Distribution::Exponential(8.0 * bytes.mean() / load.as_bps());
        Config { direction, gap_s, bytes, path }
    }

    /// Expected payload in bits per second.
    pub fn offered_bps(&self) -> f64 {
        8.0 * self.bytes.mean() / self.gap_s.mean()
    }
}

/// Sizes of short flows: bounded Pareto of shape 1.2 and a mean of 25 packets of 1460 bytes (Dukkipati
/// et al. 2005), the largest 10^4 times the smallest: 8.4 kB to 84 MB.
pub fn short_flow_bytes() -> Distribution {
    Distribution::pareto_of_mean(25.0 * 1460.0, 1e4, 1.2)
}

/// A flow of [`Open`], and which part of the mixture its size comes from.
pub(crate) type Drawn = (Transfer, usize);

/// Draws flows in order of time, without end.
#[derive(Clone, Debug)]
pub struct Open {
    direction: Direction,
    gap_s: Distribution,
    bytes: Mixture,
    next: Time,
    arrivals: Stream,
    sizes: Stream,
    paths: Paths,
}

impl Open {
    /// The flows that `config` describes. The first comes one gap after time 0.
    ///
    /// # Errors
    /// [`BadTraffic`] where gap or size has no finite positive mean, or the path is none.
    pub fn new(config: &Config, streams: &Streams) -> Result<Open, BadTraffic> {
        BadTraffic::positive("gap", config.gap_s.mean())?;
        BadTraffic::mixture("bytes", &config.bytes, BadTraffic::positive)?;
        config.path.check()?;
        Ok(Open::of_valid(config, streams))
    }

    /// The arrivals of parameters that were checked before.
    pub(crate) fn of_valid(config: &Config, streams: &Streams) -> Open {
        let mut open = Open {
            direction: config.direction,
            gap_s: config.gap_s,
            bytes: config.bytes.clone(),
            next: Time::ZERO,
            arrivals: streams.stream("arrival"),
            sizes: streams.stream("size"),
            paths: Paths::new(config.path, streams),
        };
        open.advance();
        open
    }

    fn advance(&mut self) {
        self.next = self.next.after(Time::from_s_f64(self.gap_s.draw(&mut self.arrivals)));
    }

    /// When the next flow comes.
    pub fn next_at(&self) -> Time {
        self.next
    }

    pub(crate) fn draw(&mut self) -> Drawn {
        let at = self.next;
        self.advance();
        let (part, bytes) = self.bytes.draw_bytes(&mut self.sizes);
        let (mss_bytes, rtt) = self.paths.draw();
        let direction = self.direction;
        (Transfer { at, direction, bytes, mss_bytes, rtt, session: 0, first: true, last: true }, part)
    }
}

impl Iterator for Open {
    type Item = Transfer;

    fn next(&mut self) -> Option<Transfer> {
        Some(self.draw().0)
    }
}

#[cfg(test)]
mod tests;
