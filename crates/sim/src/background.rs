//! Background traffic: short flows of five applications in both directions, and a few long flows
//! whose window is capped.
//!
//! A pure generator in time order, in bounded memory: nothing here knows a law or the
//! network, so every law meets the same flows of the same sizes at the same instants.
//!
//! The mix follows the shares and sizes that a campus trace of HTTP, FTP, SMTP, POP3 and SSH
//! suggests (the trace of Luo and Marin 2005, which the e-VLBI study used, is not published):
//!
//! | class | share of bytes | flow size in bytes | mean |
//! |---|---|---|---|
//! | HTTP | 72 % | 27.5 % uniform(22, 272), 72.5 % quantiles of PackMime-HTTP | 7,867 |
//! | FTP | 13 % | bounded Pareto(50 kB, 100 MB, 1.1) | 292,875 |
//! | SMTP | 7 % | 90 % lognormal(4 kB, 1.0), 10 % bounded Pareto(50 kB, 10 MB, 1.2) | 25,572 |
//! | POP3 | 4 % | 90 % lognormal(3 kB, 1.2), 10 % bounded Pareto(50 kB, 10 MB, 1.2) | 25,184 |
//! | SSH | 4 % | 95 % interactive, lognormal(30 kB, 1.0); 5 % copies, bounded Pareto(100 kB, 100 MB, 1.1) | 74,437 |
//!
//! Load counts payload bytes of the short flows. Headers come on top (2.7 % at 1460 bytes per segment,
//! 31 % on interactive SSH), and so do ACKs and long flows: ten of 20 packets and 100 ms are 24 Mbit/s each way,
//! which on a link of 45 Mbit/s turns the 10 % of level 1 into up to 62 %. Requests are not generated: 422 bytes
//! against an HTTP answer of 7.9 kB. Rates follow from the means above, so the expected load is
//! exactly the nominal one, except where the cap on SSH sessions turns some away.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use lfn_units::{Rate, Time};

use crate::rng::{Distribution, Mixture, Streams};
use crate::traffic::open::{self, Open};
pub use crate::traffic::Direction;
use crate::traffic::{packmime, PathConfig, Transfer};

/// Receive window of a short background flow, in bytes.
pub const RECEIVE_WINDOW_BYTES: u64 = 65_536;
/// Initial window of a background flow, in segments.
pub const INITIAL_WINDOW_SEGMENTS: u32 = 2;
/// Window cap of a long background flow, in packets (the default window of ns-2's TCP).
pub const LONG_FLOW_WINDOW_PACKETS: u32 = 20;

/// The application that a background flow stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A web answer.
    Http,
    /// A file.
    Ftp,
    /// A mail on its way to a server.
    Smtp,
    /// A mail fetched.
    Pop3,
    /// An interactive session or a secure copy.
    Ssh,
}

const MAIL_ATTACHMENT: Distribution = Distribution::BoundedPareto(50e3, 10e6, 1.2);

impl Class {
    /// All classes.
    pub const ALL: [Class; 5] = [Class::Http, Class::Ftp, Class::Smtp, Class::Pop3, Class::Ssh];

    /// The name used in the names of random streams and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Http => "http",
            Class::Ftp => "ftp",
            Class::Smtp => "smtp",
            Class::Pop3 => "pop3",
            Class::Ssh => "ssh",
        }
    }

    /// Share of the offered bytes.
    pub const fn share(self) -> f64 {
        match self {
            Class::Http => 0.72,
            Class::Ftp => 0.13,
            Class::Smtp => 0.07,
            Class::Pop3 => 0.04,
            Class::Ssh => 0.04,
        }
    }

    /// Flow sizes in bytes.
    fn sizes(self) -> Mixture {
        let mail = |median, sigma| {
            Mixture(vec![(0.9, Distribution::Lognormal(median, sigma)), (0.1, MAIL_ATTACHMENT)])
        };
        match self {
            Class::Http => packmime::response_bytes(),
            Class::Ftp => Distribution::BoundedPareto(50e3, 100e6, 1.1).into(),
            Class::Smtp => mail(4e3, 1.0),
            Class::Pop3 => mail(3e3, 1.2),
            Class::Ssh => Mixture(vec![
                (0.95, Distribution::Lognormal(30e3, 1.0)),
                (0.05, Distribution::BoundedPareto(100e3, 100e6, 1.1)),
            ]),
        }
    }

    /// Mean flow size in bytes, in closed form.
    pub fn mean_bytes(self) -> f64 {
        self.sizes().mean()
    }
}

/// How much background traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Offered forward load of short flows, payload bits per second.
    pub forward: Rate,
    /// Offered reverse load of short flows, payload bits per second.
    pub reverse: Rate,
    /// Long flows in each direction, on top of the load; each takes at most 20 packets per RTT.
    pub long_flows: u32,
    /// Most interactive SSH sessions at once in each direction; an arrival beyond it is turned away.
    /// At 1 Gbit/s the usual 2000 cost level 3 about 1 % of its load over 300 s and level 1 nothing;
    /// the loss never exceeds 2.5 %, the share of these sessions in the bytes.
    pub ssh_sessions_max: usize,
}

impl Config {
    /// This forward load, half of it in reverse, ten long flows each way, 2000 SSH sessions at most.
    pub const fn load(forward: Rate) -> Config {
        Config { forward, reverse: Rate(forward.0 / 2), long_flows: 10, ssh_sessions_max: 2000 }
    }

    /// Level 0, 1, 2 or 3: nothing, or 100, 250, 400 Mbit/s forward on a bottleneck of 1 Gbit/s, and in
    /// proportion on another. `None` for any other level. The long flows do not scale, and come on top.
    pub fn level(level: u8, bottleneck: Rate) -> Option<Config> {
        let permille: u64 = match level {
            0 => return Some(Config { long_flows: 0, ..Config::load(Rate(0)) }),
            1 => 100,
            2 => 250,
            3 => 400,
            _ => return None,
        };
        let forward = u128::from(bottleneck.0) * u128::from(permille) / 1000;
        Some(Config::load(Rate(forward as u64)))
    }

    /// New flows of `class` per second in `direction`, before the cap on SSH sessions.
    pub fn flows_per_second(&self, direction: Direction, class: Class) -> f64 {
        let load = match direction {
            Direction::Forward => self.forward,
            Direction::Reverse => self.reverse,
        };
        load.as_bps() * class.share() / (8.0 * class.mean_bytes())
    }
}

/// How an interactive session hands its bytes to the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writes {
    /// Bytes per write.
    pub write_bytes: u32,
    /// Mean of the exponential gap between writes.
    pub mean_gap: Time,
}

const SSH_WRITES: Writes = Writes { write_bytes: 128, mean_gap: Time::from_ms(500) };

/// A short flow begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Time,
    /// Kind of application that it models.
    pub class: Class,
    /// Which way its data travel.
    pub direction: Direction,
    /// Bytes to send.
    pub bytes: u64,
    /// Segment size in bytes of payload: 1460, in 10 % of the flows 536.
    pub mss_bytes: u32,
    /// Base RTT, uniform on 10 to 200 ms.
    pub rtt: Time,
    /// Present when the bytes come a little at a time, absent when all are there at once.
    pub writes: Option<Writes>,
}

/// A flow of unlimited length whose window never exceeds [`LONG_FLOW_WINDOW_PACKETS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongFlow {
    /// Which way its data travel.
    pub direction: Direction,
    /// When it begins: uniform on 0 to 10 s, so that the flows do not march in step.
    pub start: Time,
    /// Base RTT: 100 ms and up to 1 % more, against phase effects (Floyd and Jacobson 1992).
    pub rtt: Time,
    /// Segment size in bytes of payload.
    pub mss_bytes: u32,
}

/// The flows of one class in one direction.
#[derive(Clone, Debug)]
struct Source {
    class: Class,
    flows: Open,
    /// Ends of the interactive sessions that run now, were the network infinitely fast.
    session_ends: BinaryHeap<Reverse<Time>>,
}

impl Source {
    fn new(direction: Direction, class: Class, flows_per_second: f64, streams: &Streams) -> Source {
        let config = open::Config {
            direction,
            gap_s: Distribution::Exponential(1.0 / flows_per_second),
            bytes: class.sizes(),
            path: PathConfig::of_rtt(Distribution::Uniform(0.010, 0.200)),
        };
        let flows = Open::of_valid(&config, streams);
        Source { class, flows, session_ends: BinaryHeap::new() }
    }

    fn take(&mut self) -> Arrival {
        let (Transfer { at, direction, bytes, mss_bytes, rtt, .. }, part) = self.flows.draw();
        let writes = (self.class == Class::Ssh && part == 0).then_some(SSH_WRITES);
        Arrival { at, class: self.class, direction, bytes, mss_bytes, rtt, writes }
    }

    /// Whether an interactive session may begin. Sessions are held to last their number of writes
    /// times the mean gap: were it their true end, the cap would let each law meet other traffic.
    fn admit(&mut self, arrival: &Arrival, writes: Writes, sessions_max: usize) -> bool {
        while self.session_ends.peek().is_some_and(|end| end.0 <= arrival.at) {
            self.session_ends.pop();
        }
        if self.session_ends.len() >= sessions_max {
            return false;
        }
        let duration = Time(arrival.bytes.div_ceil(writes.write_bytes.into()) * writes.mean_gap.0);
        self.session_ends.push(Reverse(arrival.at.after(duration)));
        true
    }
}

/// The background traffic of one run: draws short flows in order of time, without end.
#[derive(Clone, Debug)]
pub struct Background {
    sources: Vec<Source>,
    long_flows: Vec<LongFlow>,
    ssh_sessions_max: usize,
}

impl Background {
    /// The traffic of a run with these streams.
    pub fn new(config: Config, streams: &Streams) -> Background {
        let mut sources = Vec::new();
        let mut long_flows = Vec::new();
        for direction in Direction::ALL {
            for class in Class::ALL {
                let flows_per_second = config.flows_per_second(direction, class);
                if flows_per_second > 0.0 {
                    let owner = format!("background.{}.{}", direction.name(), class.name());
                    sources.push(Source::new(direction, class, flows_per_second, &streams.of(owner)));
                }
            }
            for i in 0..config.long_flows {
                let owner = streams.of(format!("background.{}", direction.name()));
                let mut stream = owner.stream(&format!("long[{i}]"));
                long_flows.push(LongFlow {
                    direction,
                    start: Time::from_s_f64(stream.uniform(0.0, 10.0)),
                    rtt: Time::from_s_f64(stream.uniform(0.100, 0.101)),
                    mss_bytes: 1460,
                });
            }
        }
        Background { sources, long_flows, ssh_sessions_max: config.ssh_sessions_max }
    }

    /// The next short flow; `None` when no load is offered. Flows that begin at the same picosecond
    /// come in the order forward before reverse, then in the order of [`Class::ALL`].
    pub fn next_arrival(&mut self) -> Option<Arrival> {
        loop {
            let source = self.sources.iter_mut().min_by_key(|source| source.flows.next_at())?;
            let arrival = source.take();
            match arrival.writes {
                Some(writes) if !source.admit(&arrival, writes, self.ssh_sessions_max) => continue,
                _ => return Some(arrival),
            }
        }
    }

    /// The long flows, forward first.
    pub fn long_flows(&self) -> &[LongFlow] {
        &self.long_flows
    }
}

impl Iterator for Background {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        self.next_arrival()
    }
}

#[cfg(test)]
mod tests;
