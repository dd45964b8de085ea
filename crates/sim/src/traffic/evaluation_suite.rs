//! The sources of the common TCP evaluation suite (draft-irtf-iccrg-tcpeval-01): nine pairs of nodes
//! across the bottleneck, clients at both ends of each, more traffic one way than the other.
//!
//! The suite replays traces that cannot be passed on. Here connections are drawn instead: Poisson clients
//! with the requests, answers and server delays of PackMime-HTTP, whose answers have a tail of index 1.23
//! up to 25 MB. As in the suite's traces, 10 % of the connections have segments of 536
//! bytes, and one factor scales the starts to the load. Rates follow from the means of what is drawn, so
//! that the expected payload is exactly the load asked for. Traces can be replayed by
//! [`super::vectors`].

use lfn_keys::{keys, Each, DELAY_MAX};
use lfn_units::{Rate, Time};

use super::connection::Connection;
use super::keys::Keys;
use super::requests::{self, Requests};
use super::RATE_MAX;
use super::{packmime, BadTraffic, Direction, PathConfig};
use crate::rng::{Distribution, Streams};

/// One-way delays of the three edges at the left end and at the right, in milliseconds.
pub const EDGE_DELAYS_MS: [[u64; 3]; 2] = [[0, 12, 25], [2, 37, 75]];

/// Loads of the suite in percent of the bottleneck's rate, in the heavy direction.
pub const LOADS_PERCENT: [u64; 3] = [60, 85, 110];

/// Round-trip times of the nine pairs: twice both edges and the central link's delay.
pub fn pair_rtts(edges: [[Time; 3]; 2], central_delay: Time) -> Vec<Time> {
    let [left, right] = edges;
    let rtt = |left: Time, right: Time| Time(2 * (left.0 + right.0 + central_delay.0));
    left.into_iter().flat_map(|left| right.map(|right| rtt(left, right))).collect()
}

keys! {
    /// Nine pairs of hosts, whose round-trip times take the place of `rtt`.
    pub struct Pairs {
        /// Payload offered per second in `direction`.
        load: Rate, in Rate(1)..=RATE_MAX, like "load = \"100Mbit/s\"";
        /// And in the opposite one.
        reverse_load: Rate, in Rate(1)..=RATE_MAX, like "reverse_load = \"100Mbit/s\"";
        /// Round-trip times of the pairs, which share the load equally; at least one.
        rtts: Vec<Time>, in PAIRS, like "rtts = [\"4ms\", \"74ms\"]";
    }
}

const PAIRS: Each<std::ops::RangeInclusive<Time>> =
    Each { what: Some("RTT"), range: Time::from_ns(1)..=DELAY_MAX };

impl Keys for Pairs {
    type Config = Config;

    fn config(&self, direction: Direction, _: PathConfig) -> Config {
        let mut load = [self.load, self.reverse_load];
        if direction == Direction::Reverse {
            load.reverse();
        }
        Config { load, rtts: self.rtts.clone() }
    }
}

/// The traffic of the suite.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Payload in bits per second, forward and in reverse, over all pairs. In the suite the traffic from
    /// the right end to the left is the heavier.
    pub load: [Rate; 2],
    /// Round-trip times of the pairs, which share the load equally: see [`pair_rtts`].
    pub rtts: Vec<Time>,
}

impl Config {
    /// The clients of every pair, those answered forward before those answered in reverse.
    pub fn clients(&self) -> Vec<requests::Config> {
        let both = |rtt: &Time| Direction::ALL.map(|direction| self.clients_of(direction, *rtt));
        self.rtts.iter().flat_map(both).collect()
    }

    /// The clients of one pair whose answers travel in `direction`.
    fn clients_of(&self, direction: Direction, rtt: Time) -> requests::Config {
        let path = PathConfig::of_rtt(Distribution::Constant(rtt.as_s()));
        let clients = packmime::requests(direction, 1.0, path);
        let per_second = self.clients_per_second(&clients) / self.rtts.len() as f64;
        requests::Config { gap_s: Distribution::Exponential(1.0 / per_second), ..clients }
    }

    /// How many of `clients` connect per second, over all pairs: with answers a and requests b bytes
    /// long, clients x answered this way and y the other way, the load is a x + b y this way and
    /// b x + a y the other way.
    fn clients_per_second(&self, clients: &requests::Config) -> f64 {
        let here = clients.direction;
        let (a, b) = (clients.client_bytes(here), clients.client_bytes(here.opposite()));
        let load = |direction| self.load[direction as usize].as_bps() / 8.0;
        (a * load(here) - b * load(here.opposite())) / (a * a - b * b)
    }
}

/// The connections of all pairs, in order of time. Connections that begin at the same picosecond come in
/// the order of the pairs, forward answers before reverse.
#[derive(Clone, Debug)]
pub struct Suite {
    sources: Vec<Requests>,
}

impl Suite {
    /// The traffic that `config` describes.
    ///
    /// # Errors
    /// [`BadTraffic`] where there is no pair, or where one direction has less load than the requests for
    /// the answers of the other.
    pub fn new(config: &Config, streams: &Streams) -> Result<Suite, BadTraffic> {
        BadTraffic::unless(!config.rtts.is_empty(), "rtts", "none", "at least one")?;
        let mut sources = Vec::new();
        for (i, clients) in config.clients().iter().enumerate() {
            let found = format!("{} and {}", config.load[0], config.load[1]);
            let some = clients.gap_s.mean() > 0.0;
            BadTraffic::unless(some, "load", found, "each above 7.2 % of the other, its requests")?;
            sources.push(Requests::new(clients, &streams.part(clients.direction.name(), i / 2))?);
        }
        Ok(Suite { sources })
    }
}

impl Iterator for Suite {
    type Item = Connection;

    fn next(&mut self) -> Option<Connection> {
        self.sources.iter_mut().min_by_key(|source| source.next_at())?.next()
    }
}

#[cfg(test)]
mod tests;
