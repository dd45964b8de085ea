//! Requests and responses: clients connect in time, ask, wait for the answer, think, and ask again.
//!
//! Connections come whatever the network does, so the load is nominal; within a connection every
//! message waits for the one before it.

use lfn_keys::{keys, Span, DELAY_MAX};
use lfn_units::{Bytes, Rate, Time};

use super::connection::{Connection, Message};
use super::keys::Keys;
use super::size::{ParetoSize, Size};
use super::{BadTraffic, Direction, PathConfig, Paths};
use super::{COUNT_MAX, RATE_MAX};
use crate::rng::{Distribution, Mixture, Stream, Streams};

keys! {
    /// Clients that come at random times, ask, wait for the answer, think, and ask again.
    #[derive(Copy)]
    pub struct Clients {
        /// Payload of the answers offered per second. Requests go the opposite way.
        load: Rate, in Rate(1)..=RATE_MAX, like "load = \"100Mbit/s\"";
        /// Size of a request.
        request: Size = Size::Constant(Bytes(500));
        /// Size of an answer.
        response: Size = Size::Pareto(ParetoSize { mean: Bytes(36_500), shape: 1.2 });
        /// How often a client asks on average; beyond the first time exponentially distributed.
        exchanges: f64 = 1.0, in Span::at_least(1.0).at_most(COUNT_MAX as f64);
        /// Time of a server before it answers.
        server_delay: Time = Time::ZERO, in Time::ZERO..=DELAY_MAX;
        /// Mean time from an answer to the client's next request, exponentially distributed.
        think: Time = Time::from_s(1), in Time::ZERO..=DELAY_MAX;
        /// Whether all exchanges of a client go over one connection; if not, each message opens a connection of its
        /// own.
        persistent: bool = true;
    }
}

impl Keys for Clients {
    type Config = Config;

    fn config(&self, direction: Direction, path: PathConfig) -> Config {
        let config = Config {
            direction,
            gap_s: Distribution::Constant(1.0),
            more_exchanges: Distribution::Exponential(self.exchanges - 1.0).into(),
            request_bytes: self.request.distribution().into(),
            server_delay_s: Distribution::Constant(self.server_delay.as_s()),
            response_bytes: self.response.distribution().into(),
            think_s: Distribution::Exponential(self.think.as_s()),
            persistent: self.persistent,
            path,
        };
        config.poisson(self.load)
    }
}

/// Clients at one end, servers at the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Which way the answers travel.
    pub direction: Direction,
    /// Time between two clients, in seconds.
    pub gap_s: Distribution,
    /// Exchanges of a client after its first.
    pub more_exchanges: Mixture,
    /// Size of a request in bytes.
    pub request_bytes: Mixture,
    /// Time a server takes, in seconds.
    pub server_delay_s: Distribution,
    /// Size of an answer in bytes.
    pub response_bytes: Mixture,
    /// Time from an answer to the next request, in seconds.
    pub think_s: Distribution,
    /// Whether all exchanges of a client go over one connection.
    pub persistent: bool,
    /// Round-trip time and segment size of a client's connections.
    pub path: PathConfig,
}

impl Config {
    /// Expected payload of a client in bytes in `direction`.
    pub fn client_bytes(&self, direction: Direction) -> f64 {
        let bytes = if direction == self.direction { &self.response_bytes } else { &self.request_bytes };
        (1.0 + self.more_exchanges.mean()) * bytes.mean()
    }

    /// These clients, in a Poisson process whose answers offer `load` bits of payload per second.
    #[must_use]
    pub fn poisson(self, load: Rate) -> Config {
        let gap_s = 8.0 * self.client_bytes(self.direction) / load.as_bps();
        Config { gap_s: Distribution::Exponential(gap_s), ..self }
    }

    /// Expected payload in bits per second in `direction`.
    pub fn offered_bps(&self, direction: Direction) -> f64 {
        8.0 * self.client_bytes(direction) / self.gap_s.mean()
    }
}

/// Draws the connections of clients in order of time, without end.
#[derive(Clone, Debug)]
pub struct Requests {
    config: Config,
    next: Time,
    arrivals: Stream,
    exchanges: Stream,
    requests: Stream,
    server_delays: Stream,
    responses: Stream,
    thinks: Stream,
    paths: Paths,
}

impl Requests {
    /// The clients that `config` describes. The first comes one gap after time 0.
    ///
    /// # Errors
    /// [`BadTraffic`] where a gap or a size has no finite positive mean, or a delay or a count none of at
    /// least 0.
    pub fn new(config: &Config, streams: &Streams) -> Result<Requests, BadTraffic> {
        BadTraffic::positive("gap", config.gap_s.mean())?;
        BadTraffic::mixture("request", &config.request_bytes, BadTraffic::positive)?;
        BadTraffic::mixture("response", &config.response_bytes, BadTraffic::positive)?;
        BadTraffic::mixture("more_exchanges", &config.more_exchanges, BadTraffic::not_negative)?;
        BadTraffic::not_negative("server_delay", config.server_delay_s.mean())?;
        BadTraffic::not_negative("think", config.think_s.mean())?;
        config.path.check()?;
        let mut requests = Requests {
            config: config.clone(),
            next: Time::ZERO,
            arrivals: streams.stream("arrival"),
            exchanges: streams.stream("exchanges"),
            requests: streams.stream("request"),
            server_delays: streams.stream("server"),
            responses: streams.stream("response"),
            thinks: streams.stream("think"),
            paths: Paths::new(config.path, streams),
        };
        requests.advance();
        Ok(requests)
    }

    /// When the next client connects.
    pub fn next_at(&self) -> Time {
        self.next
    }

    fn advance(&mut self) {
        self.next = self.next.after(Time::from_s_f64(self.config.gap_s.draw(&mut self.arrivals)));
    }
}

impl Iterator for Requests {
    type Item = Connection;

    fn next(&mut self) -> Option<Connection> {
        let start = self.next;
        self.advance();
        let config = &self.config;
        let (mss_bytes, rtt) = self.paths.draw();
        let exchanges = 1 + config.more_exchanges.draw_count(&mut self.exchanges);
        let mut messages = Vec::new();
        for _ in 0..exchanges {
            messages.push(Message {
                after: Time::from_s_f64(config.think_s.draw(&mut self.thinks)),
                direction: config.direction.opposite(),
                bytes: config.request_bytes.draw_bytes(&mut self.requests).1,
            });
            messages.push(Message {
                after: Time::from_s_f64(config.server_delay_s.draw(&mut self.server_delays)),
                direction: config.direction,
                bytes: config.response_bytes.draw_bytes(&mut self.responses).1,
            });
        }
        Some(Connection { start, mss_bytes, rtt, persistent: config.persistent, messages })
    }
}

#[cfg(test)]
mod tests;
