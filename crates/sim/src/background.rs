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
//! Load counts payload bytes of the flows. Headers come on top (2.7 % at 1460 bytes per segment,
//! 31 % on interactive SSH), and so do ACKs and long flows. Requests are not generated: 422 bytes
//! against an HTTP answer of 7.9 kB. Rates follow from the means above, so the expected load is
//! exactly the nominal one, except where the cap on SSH sessions turns some away.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use lfn_units::{Rate, Time};

use crate::rng::{Distribution, Stream};

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

/// Which way a flow's data travel through the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// With the data of the flows under test.
    Forward,
    /// With their ACKs.
    Reverse,
}

/// Sizes of HTTP answers that carry a file, PackMime-HTTP (Cao et al. 2004): (p, bytes).
const HTTP_DOWNLOAD: &[(f64, f64)] = &[
    (0.0, 276.0),
    (0.01, 284.0),
    (0.05, 324.0),
    (0.1, 386.0),
    (0.25, 691.0),
    (0.5, 2_258.0),
    (0.75, 8_895.0),
    (0.9, 20_311.0),
    (0.95, 35_871.0),
    (0.99, 93_108.0),
    (0.999, 604_295.0),
    (0.9999, 3_922_187.0),
    (0.99999, 25_456_296.0),
];

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

    /// Flow sizes in bytes: a mixture, each part with its probability.
    const fn sizes(self) -> &'static [(f64, Distribution)] {
        match self {
            Class::Http => {
                &[(0.275, Distribution::Uniform(22.0, 272.0)), (0.725, Distribution::Table(HTTP_DOWNLOAD))]
            }
            Class::Ftp => &[(1.0, Distribution::BoundedPareto(50e3, 100e6, 1.1))],
            Class::Smtp => &[(0.9, Distribution::Lognormal(4e3, 1.0)), (0.1, MAIL_ATTACHMENT)],
            Class::Pop3 => &[(0.9, Distribution::Lognormal(3e3, 1.2)), (0.1, MAIL_ATTACHMENT)],
            Class::Ssh => &[
                (0.95, Distribution::Lognormal(30e3, 1.0)),
                (0.05, Distribution::BoundedPareto(100e3, 100e6, 1.1)),
            ],
        }
    }

    /// Mean flow size in bytes, in closed form.
    pub fn mean_bytes(self) -> f64 {
        self.sizes().iter().map(|(probability, size)| probability * size.mean()).sum()
    }
}

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
    /// proportion on another. `None` for any other level. Long flows do not scale.
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
    /// What it stands for.
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

/// The flows of one class in one direction: a Poisson process with independent marks.
#[derive(Clone, Debug)]
struct Source {
    direction: Direction,
    class: Class,
    mean_gap_s: f64,
    next: Time,
    /// Ends of the interactive sessions that run now, were the network infinitely fast.
    session_ends: BinaryHeap<Reverse<Time>>,
    arrivals: Stream,
    sizes: Stream,
    segments: Stream,
    rtts: Stream,
}

impl Source {
    fn new(direction: Direction, class: Class, flows_per_second: f64, seed: u64, run: u64) -> Source {
        let stream = |what: &str| {
            Stream::new(seed, run, &format!("background.{}.{}.{what}", direction.name(), class.name()))
        };
        let mut source = Source {
            direction,
            class,
            mean_gap_s: 1.0 / flows_per_second,
            next: Time::ZERO,
            session_ends: BinaryHeap::new(),
            arrivals: stream("arrival"),
            sizes: stream("size"),
            segments: stream("mss"),
            rtts: stream("rtt"),
        };
        source.advance();
        source
    }

    fn advance(&mut self) {
        self.next = self.next.after(Time::from_s_f64(self.arrivals.exp(self.mean_gap_s)));
    }

    fn take(&mut self) -> Arrival {
        let at = self.next;
        self.advance();
        let parts = self.class.sizes();
        let mut choice = self.sizes.f64();
        let part = parts
            .iter()
            .position(|(probability, _)| {
                choice -= probability;
                choice < 0.0
            })
            .unwrap_or(parts.len() - 1);
        let bytes = libm::round(parts[part].1.draw(&mut self.sizes)).max(1.0) as u64;
        Arrival {
            at,
            class: self.class,
            direction: self.direction,
            bytes,
            mss_bytes: if self.segments.f64() < 0.1 { 536 } else { 1460 },
            rtt: Time::from_s_f64(self.rtts.uniform(0.010, 0.200)),
            writes: (self.class == Class::Ssh && part == 0).then_some(SSH_WRITES),
        }
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
    /// The traffic of run `run` of a study seeded with `seed`.
    pub fn new(config: Config, seed: u64, run: u64) -> Background {
        let mut sources = Vec::new();
        let mut long_flows = Vec::new();
        for direction in Direction::ALL {
            for class in Class::ALL {
                let flows_per_second = config.flows_per_second(direction, class);
                if flows_per_second > 0.0 {
                    sources.push(Source::new(direction, class, flows_per_second, seed, run));
                }
            }
            for i in 0..config.long_flows {
                let name = format!("background.{}.long[{i}]", direction.name());
                let mut stream = Stream::new(seed, run, &name);
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
            let source = self.sources.iter_mut().min_by_key(|source| source.next)?;
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
mod tests {
    use super::*;

    const GBIT: Rate = Rate(1_000_000_000);

    fn level(level: u8) -> Config {
        Config::level(level, GBIT).expect("a level")
    }

    fn forward_only(config: Config) -> Config {
        Config { reverse: Rate(0), ..config }
    }

    /// Arrivals up to `until_s`.
    fn arrivals(config: Config, seed: u64, until_s: u64) -> impl Iterator<Item = Arrival> {
        Background::new(config, seed, 0).take_while(move |arrival| arrival.at <= Time::from_s(until_s))
    }

    fn close(got: f64, want: f64, relative: f64) {
        assert!((got / want - 1.0).abs() <= relative, "got {got}, want {want}");
    }

    #[test]
    fn rates_are_those_of_the_level_table() {
        // New flows per second at 1 Gbit/s, tabled for these mean sizes in bytes; ours differ by 2.5 %
        // for HTTP, whose table of quantiles is cut at 25 MB.
        let means = [8060.0, 293e3, 25.6e3, 25.2e3, 74.4e3];
        let table = [
            (1, 100e6, [1116.0, 5.55, 34.2, 19.9, 6.72]),
            (2, 250e6, [2791.0, 13.9, 85.5, 49.6, 16.8]),
            (3, 400e6, [4466.0, 22.2, 136.9, 79.4, 26.9]),
        ];
        for (class, mean) in Class::ALL.into_iter().zip(means) {
            close(class.mean_bytes(), mean, if class == Class::Http { 0.025 } else { 0.002 });
        }
        for (number, load_bps, rates) in table {
            let config = level(number);
            assert_eq!(config.forward.as_bps(), load_bps);
            for ((class, rate), mean) in Class::ALL.into_iter().zip(rates).zip(means) {
                let ours = config.flows_per_second(Direction::Forward, class);
                close(ours * class.mean_bytes() / mean, rate, 0.005);
                close(config.flows_per_second(Direction::Reverse, class), ours / 2.0, 1e-12);
            }
        }
    }

    #[test]
    fn expected_load_is_exactly_the_nominal_one() {
        let config = Config::load(Rate(123_456_789));
        let sum: f64 =
            Class::ALL.iter().map(|&c| config.flows_per_second(Direction::Forward, c) * c.mean_bytes()).sum();
        close(8.0 * sum, 123_456_789.0, 1e-12);
    }

    #[test]
    fn levels_scale_with_the_bottleneck() {
        assert_eq!(Config::level(3, Rate(10 * GBIT.0)).map(|c| c.forward), Some(Rate(4_000_000_000)));
        assert_eq!(Config::level(2, Rate(u64::MAX)).map(|c| c.forward), Some(Rate(u64::MAX / 4)));
        assert_eq!(Config::level(4, GBIT), None);
        let mut nothing = Background::new(level(0), 1, 0);
        assert_eq!(nothing.next_arrival(), None);
        assert!(nothing.long_flows().is_empty());
    }

    #[test]
    fn sampled_load_is_the_nominal_one_in_both_directions() {
        let (seeds, seconds) = (10, 300);
        let mut bytes = [0.0; 2];
        for seed in 0..seeds {
            for arrival in arrivals(level(1), seed, seconds) {
                bytes[arrival.direction as usize] += arrival.bytes as f64;
            }
        }
        // One run of 300 s has a standard error of 3 % forward and 4 % in reverse: the tails are heavy.
        close(bytes[0] * 8.0 / (seeds * seconds) as f64, 100e6, 0.02);
        close(bytes[1] * 8.0 / (seeds * seconds) as f64, 50e6, 0.03);
    }

    #[test]
    fn a_higher_level_is_the_same_flows_closer_together() {
        let uncapped = |number| Config { ssh_sessions_max: usize::MAX, ..forward_only(level(number)) };
        let low = Background::new(uncapped(1), 1, 0);
        let high = Background::new(uncapped(3), 1, 0);
        for (low, high) in low.zip(high).take(20_000) {
            assert!(low.at.0.abs_diff(4 * high.at.0) < 40_000, "{low:?} {high:?}");
            assert_eq!(Arrival { at: low.at, ..high }, low);
        }
    }

    #[test]
    fn arrivals_come_in_order() {
        let times: Vec<Time> = arrivals(level(1), 1, 10).map(|arrival| arrival.at).collect();
        assert!(times.is_sorted());
    }

    #[test]
    fn arrivals_of_a_class_are_poisson() {
        let (seeds, seconds) = (20, 10);
        let rate = level(1).flows_per_second(Direction::Forward, Class::Http);
        let (mut count, mut rejected) = (0, 0);
        for seed in 0..seeds {
            let mut last = Time::ZERO;
            let mut gaps = Vec::new();
            for arrival in arrivals(forward_only(level(1)), seed, seconds).filter(|a| a.class == Class::Http)
            {
                gaps.push((arrival.at - last).as_s());
                last = arrival.at;
            }
            gaps.sort_by(f64::total_cmp);
            let n = gaps.len() as f64;
            let distance = gaps
                .iter()
                .enumerate()
                .map(|(i, gap)| ((i as f64 + 0.5) / n - (1.0 - libm::exp(-gap * rate))).abs())
                .fold(0.0, f64::max);
            count += gaps.len();
            // Kolmogorov-Smirnov at 1 %.
            rejected += usize::from(distance > 1.63 / n.sqrt());
        }
        // Three or more of 20 have a chance of one in a thousand.
        assert!(rejected < 3, "{rejected} of {seeds} runs are not exponential");
        let expected = rate * (seeds * seconds) as f64;
        assert!(
            (count as f64 - expected).abs() < 3.0 * expected.sqrt(),
            "{count} flows, expected {expected}"
        );
    }

    #[test]
    fn flows_have_the_marks_of_the_mix() {
        let flows: Vec<Arrival> = arrivals(level(1), 1, 60).collect();
        let share = |chosen: &dyn Fn(&Arrival) -> bool| {
            flows.iter().filter(|a| chosen(a)).count() as f64 / flows.len() as f64
        };
        assert!(flows.iter().all(|a| a.mss_bytes == 536 || a.mss_bytes == 1460));
        close(share(&|a| a.mss_bytes == 536), 0.1, 0.02);
        assert!(flows.iter().all(|a| (Time::from_ms(10)..Time::from_ms(200)).contains(&a.rtt)));
        close(flows.iter().map(|a| a.rtt.as_s()).sum::<f64>() / flows.len() as f64, 0.105, 0.01);
        close(share(&|a| a.rtt < Time::from_ms(48)), 0.2, 0.02);
        close(share(&|a| a.direction == Direction::Reverse), 1.0 / 3.0, 0.02);
        assert!(flows.iter().all(|a| a.writes.is_none() || a.class == Class::Ssh));
        let interactive = share(&|a| a.writes.is_some()) / share(&|a| a.class == Class::Ssh);
        assert!((interactive - 0.95).abs() < 0.03, "{interactive}");
        let http: Vec<&Arrival> = flows.iter().filter(|a| a.class == Class::Http).collect();
        let small = http.iter().filter(|a| a.bytes <= 272).count() as f64 / http.len() as f64;
        close(small, 0.275, 0.02);
    }

    #[test]
    fn interactive_sessions_are_capped_and_others_unaffected() {
        let capped = Config { ssh_sessions_max: 200, ..forward_only(level(1)) };
        let uncapped = Config { ssh_sessions_max: usize::MAX, ..capped };
        let mut ends: Vec<Time> = Vec::new();
        let mut most = 0;
        for arrival in arrivals(capped, 1, 120).filter(|a| a.writes.is_some()) {
            ends.retain(|&end| end > arrival.at);
            ends.push(arrival.at + Time::from_ms(500 * arrival.bytes.div_ceil(128)));
            most = most.max(ends.len());
        }
        assert_eq!(most, 200);
        let rest = |config| arrivals(config, 1, 120).filter(|a| a.writes.is_none());
        assert!(rest(capped).eq(rest(uncapped)));
        assert!(arrivals(capped, 1, 120).count() < arrivals(uncapped, 1, 120).count());
    }

    #[test]
    fn the_cap_costs_level_3_one_percent_of_its_load() {
        let bytes = |config| arrivals(config, 1, 300).map(|a| a.bytes).sum::<u64>() as f64;
        let capped = forward_only(level(3));
        let lost = 1.0 - bytes(capped) / bytes(Config { ssh_sessions_max: usize::MAX, ..capped });
        assert!((0.005..0.015).contains(&lost), "{lost}");
    }

    #[test]
    fn every_law_meets_the_same_traffic() {
        let both: Vec<Arrival> = arrivals(level(1), 7, 10).collect();
        assert!(arrivals(level(1), 7, 10).eq(both.iter().copied()));
        // Neither the other direction nor the long flows shift a draw.
        let alone = arrivals(Config { long_flows: 3, ..forward_only(level(1)) }, 7, 10);
        assert!(alone.eq(both.iter().copied().filter(|a| a.direction == Direction::Forward)));
        let first = |seed, run| Background::new(level(1), seed, run).next_arrival();
        assert_ne!(first(7, 0), first(7, 1));
        assert_ne!(first(7, 0), first(8, 0));
    }

    #[test]
    fn golden_arrivals() {
        let first = Background::new(level(2), 1, 0).take(4).map(|a| (a.at.0, a.bytes));
        let golden =
            [(380_627_286, 139), (1_244_861_999, 266), (1_316_413_853, 31_494), (1_337_362_117, 870)];
        assert!(first.eq(golden));
    }

    #[test]
    fn long_flows_start_apart() {
        let background = Background::new(level(1), 1, 0);
        let flows = background.long_flows();
        for direction in Direction::ALL {
            assert_eq!(flows.iter().filter(|flow| flow.direction == direction).count(), 10);
        }
        assert!(flows.iter().all(|flow| flow.start < Time::from_s(10)));
        assert!(flows.iter().all(|flow| (Time::from_ms(100)..Time::from_ms(101)).contains(&flow.rtt)));
        let mut starts: Vec<Time> = flows.iter().map(|flow| flow.start).collect();
        starts.sort();
        starts.dedup();
        assert_eq!(starts.len(), 20);
    }

    /// H from the variance of the mean of m bins, which falls as m^(2H-2), m from 1 s to 50 s.
    fn hurst(bytes_per_100_ms: &[f64]) -> f64 {
        let points: Vec<(f64, f64)> = [10, 20, 40, 80, 160, 320, 500]
            .map(|m| {
                let means: Vec<f64> = bytes_per_100_ms
                    .chunks_exact(m)
                    .map(|bins| bins.iter().sum::<f64>() / m as f64)
                    .collect();
                let n = means.len() as f64;
                let mean = means.iter().sum::<f64>() / n;
                let variance = means.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
                ((m as f64).ln(), variance.ln())
            })
            .to_vec();
        let n = points.len() as f64;
        let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / n, y + point.1 / n));
        let covariance: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
        let variance: f64 = points.iter().map(|point| (point.0 - x) * (point.0 - x)).sum();
        1.0 + covariance / variance / 2.0
    }

    /// Adds a flow that sends `bytes` from `start_s` on at `rate` bytes per second.
    fn spread(bins: &mut [f64], start_s: f64, bytes: f64, rate: f64) {
        let (from, to) = (start_s * 10.0, (start_s + bytes / rate) * 10.0);
        for (i, bin) in bins.iter_mut().enumerate().take(to.ceil() as usize).skip(from as usize) {
            *bin += rate / 10.0 * (to.min((i + 1) as f64) - from.max(i as f64));
        }
    }

    #[test]
    fn heavy_tails_make_the_traffic_long_range_dependent() {
        // A network is not simulated here: a flow sends half its receive window per RTT. The first
        // 100 of 500 s are left out. With every flow of its class's mean size, the same arrivals
        // have no long memory: it comes from the tails.
        let seeds = 4;
        let (mut drawn, mut mean_sized) = (0.0, 0.0);
        for seed in 0..seeds {
            let mut bins = [vec![0.0; 5000], vec![0.0; 5000]];
            for arrival in arrivals(forward_only(level(1)), seed, 500) {
                let rate = match arrival.writes {
                    Some(writes) => f64::from(writes.write_bytes) / writes.mean_gap.as_s(),
                    None => RECEIVE_WINDOW_BYTES as f64 / 2.0 / arrival.rtt.as_s(),
                };
                spread(&mut bins[0], arrival.at.as_s(), arrival.bytes as f64, rate);
                spread(&mut bins[1], arrival.at.as_s(), arrival.class.mean_bytes(), rate);
            }
            drawn += hurst(&bins[0][1000..]) / seeds as f64;
            mean_sized += hurst(&bins[1][1000..]) / seeds as f64;
        }
        assert!(drawn > 0.6, "H = {drawn}");
        assert!(mean_sized < 0.6, "H = {mean_sized} without tails");
    }
}
