//! UDP sources, which send whatever the network does: constant rate by a list of bursts, and the sum of
//! on/off sources whose bursts and pauses are Pareto distributed.
//!
//! Both are a rate that steps in time. A source sends a packet whenever that rate, summed over time, has
//! filled one: no rounding of an interval or of a burst to whole packets, so the mean rate is exact
//! over any length of time, to one packet.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use lfn_keys::{keys, Each, Span, DELAY_MAX};
use lfn_units::{Rate, Time};

use super::{BadTraffic, COUNT_MAX, RATE_MAX};
use crate::rng::{Distribution, Stream, Streams};

/// A packet of so many bytes, as it stands in a queue, is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When.
    pub at: Time,
    /// Its size at the queue.
    pub bytes: u32,
}

keys! {
    /// A constant rate from `start` until just before `stop`.
    #[derive(Copy, Eq)]
    pub struct Burst {
        /// When it begins. Default: when the one before ends, for the first "0s".
        start: Time = Time::ZERO;
        /// When it ends. Default: at the end of the run.
        stop: Time = Time::NEVER;
        /// Bits per second at the queue, headers included; 0 for none.
        rate: Rate, in Rate(0)..=RATE_MAX, like "rate = \"5Gbit/s\"";
    }
}

keys! {
    /// Constant rates one after the other.
    pub struct Steps {
        /// When the first begins.
        start: Time = Time::ZERO;
        /// How long each of them lasts.
        each: Time, in Time(1)..=DELAY_MAX, like "each = \"1s\"";
        /// How fast they are; at least one.
        rates: Vec<Rate>, in RATES, like "rates = [\"0bit/s\", \"75Mbit/s\"]";
    }
}

const RATES: Each<std::ops::RangeInclusive<Rate>> = Each { what: Some("rate"), range: Rate(0)..=RATE_MAX };

impl Burst {
    /// These rates, one after the other without a gap, `each` of them this long. The transients of the
    /// common TCP evaluation suite (draft-irtf-iccrg-tcpeval-01) are steps from 75 to 0 Mbit/s, from 0
    /// to 75 Mbit/s, and 30 steps of 2.5 Mbit/s, 1 s each.
    pub fn steps(start: Time, each: Time, rates: impl IntoIterator<Item = Rate>) -> Vec<Burst> {
        let mut start = start;
        let step = |rate| {
            let burst = Burst { start, stop: start.after(each), rate };
            start = burst.stop;
            burst
        };
        rates.into_iter().map(step).collect()
    }
}

keys! {
    /// On/off sources with Pareto bursts and pauses, whose sum is long-range dependent. As `Application/Traffic/Pareto` of
    /// ns-2, with H = (3 - shape) / 2 (Taqqu, Willinger, Sherman 1997). Other than there, a burst is not rounded to whole
    /// packets (the rest of a packet waits for the next burst), durations are bounded, and the sources begin in
    /// equilibrium, so that the load is nominal from the first second and no two sources march in step.
    #[derive(Copy)]
    pub struct OnOff {
        /// How many sources.
        sources: u32, in 1..=COUNT_MAX as u32, like "sources = 100";
        /// Rate of one source in a burst.
        rate: Rate = Rate(10_000_000), in Rate(1)..=RATE_MAX;
        /// Mean length of a burst.
        burst: Time = Time::from_ms(500), in Time::from_us(1)..=DELAY_MAX;
        /// Mean length of a pause.
        idle: Time = Time::from_ms(500), in Time::from_us(1)..=DELAY_MAX;
        /// Tail index of both.
        shape: f64 = 1.5, in Span::above(1.0);
        /// The longest over the shortest burst, and pause; infinite in ns-2. The mean stays as given.
        tail_ratio: f64 = 1e4, in Span::above(1.0);
    }
}

impl OnOff {
    /// ns-2's defaults (burst and pause 500 ms, shape 1.5) at gigabit scale: 10 Mbit/s in a burst, so
    /// that 100 sources offer 500 Mbit/s. The longest burst, 10^4 times the shortest, is 28 minutes.
    pub const fn gigabit(sources: u32) -> OnOff {
        let half_second = Time::from_ms(500);
        OnOff {
            sources,
            rate: Rate(10_000_000),
            burst: half_second,
            idle: half_second,
            shape: 1.5,
            tail_ratio: 1e4,
        }
    }
}

/// When a UDP source sends how fast.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// Bursts in order of time, which do not overlap.
    Bursts(Vec<Burst>),
    /// Random bursts.
    OnOff(OnOff),
}

/// UDP traffic from one place to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Size of every packet at the queue, headers included.
    pub packet_bytes: u32,
    /// When how fast.
    pub pattern: Pattern,
}

impl Config {
    /// Expected load in bits per second, averaged over `until` from the start.
    pub fn offered_bps(&self, until: Time) -> f64 {
        match &self.pattern {
            Pattern::Bursts(bursts) => {
                let bits =
                    |burst: &Burst| burst.rate.as_bps() * burst.stop.min(until).since(burst.start).as_s();
                bursts.iter().map(bits).sum::<f64>() / until.as_s()
            }
            Pattern::OnOff(sources) => {
                let on = sources.burst.as_s() / (sources.burst.as_s() + sources.idle.as_s());
                f64::from(sources.sources) * sources.rate.as_bps() * on
            }
        }
    }

    fn check(&self) -> Result<(), BadTraffic> {
        BadTraffic::unless(self.packet_bytes > 0, "packet", "0 bytes", "at least 1 byte")?;
        match &self.pattern {
            Pattern::Bursts(bursts) => {
                let mut end = Time::ZERO;
                for (i, burst) in bursts.iter().enumerate() {
                    let found = format!("{} to {}", burst.start, burst.stop);
                    let ordered = burst.start >= end && burst.stop > burst.start;
                    BadTraffic::unless(
                        ordered,
                        format!("bursts[{i}]"),
                        found,
                        "a burst ends after its start, and before the next one starts",
                    )?;
                    end = burst.stop;
                }
                Ok(())
            }
            Pattern::OnOff(on_off) => {
                BadTraffic::positive("burst", on_off.burst.as_s())?;
                BadTraffic::positive("idle", on_off.idle.as_s())?;
                let found = |x: f64| x.to_string();
                BadTraffic::unless(on_off.shape > 1.0, "shape", found(on_off.shape), "above 1")?;
                BadTraffic::unless(on_off.tail_ratio > 1.0, "tail_ratio", found(on_off.tail_ratio), "above 1")
            }
        }
    }
}

/// Random durations: a bounded Pareto distribution and its stream.
#[derive(Clone, Debug)]
struct Durations {
    least_s: f64,
    most_s: f64,
    shape: f64,
    stream: Stream,
}

impl Durations {
    fn new(mean: Time, config: &OnOff, stream: Stream) -> Durations {
        let least_s = mean.as_s() / Distribution::BoundedPareto(1.0, config.tail_ratio, config.shape).mean();
        Durations { least_s, most_s: least_s * config.tail_ratio, shape: config.shape, stream }
    }

    fn draw(&mut self) -> Time {
        Time::from_s_f64(self.stream.bounded_pareto(self.least_s, self.most_s, self.shape))
    }

    /// The rest, at an instant chosen at random, of the duration that contains it: a uniform share of a
    /// duration drawn in proportion to its length, which has a Pareto law of index one less.
    fn draw_rest(&mut self) -> Time {
        let whole_s = self.stream.bounded_pareto(self.least_s, self.most_s, self.shape - 1.0);
        Time::from_s_f64(whole_s * self.stream.f64())
    }
}

/// Where the bursts of a source come from.
#[derive(Clone, Debug)]
enum Bursts {
    List(std::vec::IntoIter<Burst>),
    Random { rate: Rate, on: Durations, off: Durations, next: Time },
}

impl Iterator for Bursts {
    type Item = Burst;

    fn next(&mut self) -> Option<Burst> {
        match self {
            Bursts::List(list) => list.next(),
            Bursts::Random { rate, on, off, next } => {
                let burst = Burst { start: *next, stop: next.after(on.draw()), rate: *rate };
                *next = burst.stop.after(off.draw());
                (burst.start < Time::NEVER).then_some(burst)
            }
        }
    }
}

/// Bits times picoseconds per second: a rate in bit/s times a time in ps.
const UNITS_PER_BYTE: i128 = 8 * 1_000_000_000_000;

/// One source: bursts made into packets.
#[derive(Clone, Debug)]
struct Source {
    packet_units: i128,
    bursts: Bursts,
    burst: Burst,
    /// The present burst is sent up to here.
    sent_until: Time,
    /// Missing part of the next packet, in [`UNITS_PER_BYTE`]; the rate fills it before the packet leaves. Below 0
    /// by less than the rate fills in a picosecond.
    owed_units: i128,
}

impl Source {
    /// A source that sends first when its first burst begins.
    fn scheduled(packet_bytes: u32, bursts: Vec<Burst>) -> Source {
        let nothing = Burst { start: Time::ZERO, stop: Time::ZERO, rate: Rate(0) };
        Source {
            packet_units: i128::from(packet_bytes) * UNITS_PER_BYTE,
            bursts: Bursts::List(bursts.into_iter()),
            burst: nothing,
            sent_until: Time::ZERO,
            owed_units: 0,
        }
    }

    /// A source that has sent for ever.
    fn on_off(packet_bytes: u32, config: &OnOff, streams: &Streams) -> Source {
        let mut on = Durations::new(config.burst, config, streams.stream("burst"));
        let mut off = Durations::new(config.idle, config, streams.stream("idle"));
        let mut phase = streams.stream("phase");
        let cycle_s = config.burst.as_s() + config.idle.as_s();
        let sends = phase.f64() * cycle_s < config.burst.as_s();
        let (stop, next) = if sends {
            let stop = on.draw_rest();
            (stop, stop.after(off.draw()))
        } else {
            (Time::ZERO, off.draw_rest())
        };
        let packet_units = i128::from(packet_bytes) * UNITS_PER_BYTE;
        Source {
            packet_units,
            bursts: Bursts::Random { rate: config.rate, on, off, next },
            burst: Burst { start: Time::ZERO, stop, rate: config.rate },
            sent_until: Time::ZERO,
            owed_units: (packet_units as f64 * phase.f64()) as i128,
        }
    }

    /// When the next packet goes.
    fn next(&mut self) -> Option<Time> {
        loop {
            let rate = i128::from(self.burst.rate.0);
            if rate > 0 {
                let wait_ps = (self.owed_units.max(0) + rate - 1) / rate;
                if wait_ps < i128::from(self.burst.stop.since(self.sent_until).0) {
                    self.owed_units += self.packet_units - wait_ps * rate;
                    self.sent_until = self.sent_until.after(Time(wait_ps as u64));
                    return Some(self.sent_until);
                }
            }
            self.owed_units -= i128::from(self.burst.stop.since(self.sent_until).0) * rate;
            self.burst = self.bursts.next()?;
            self.sent_until = self.burst.start;
        }
    }
}

/// UDP traffic: packets in order of time. At the same picosecond, the source of the lower number is first.
#[derive(Clone, Debug)]
pub struct Udp {
    packet_bytes: u32,
    sources: Vec<Source>,
    /// The next packet of each source.
    next: BinaryHeap<Reverse<(Time, usize)>>,
}

impl Udp {
    /// The traffic that `config` describes.
    ///
    /// # Errors
    /// [`BadTraffic`] where a parameter is out of its range, or the bursts are out of order.
    pub fn new(config: &Config, streams: &Streams) -> Result<Udp, BadTraffic> {
        config.check()?;
        let sources = match &config.pattern {
            Pattern::Bursts(bursts) => vec![Source::scheduled(config.packet_bytes, bursts.clone())],
            Pattern::OnOff(on_off) => (0..on_off.sources as usize)
                .map(|i| Source::on_off(config.packet_bytes, on_off, &streams.part("source", i)))
                .collect(),
        };
        let mut udp = Udp { packet_bytes: config.packet_bytes, sources, next: BinaryHeap::new() };
        for i in 0..udp.sources.len() {
            udp.schedule(i);
        }
        Ok(udp)
    }

    /// When the next packet goes; [`Time::NEVER`] when no more does.
    pub fn next_at(&self) -> Time {
        self.next.peek().map_or(Time::NEVER, |next| next.0 .0)
    }

    /// It sends no more.
    pub fn end(&mut self) {
        self.next.clear();
    }

    fn schedule(&mut self, i: usize) {
        if let Some(at) = self.sources[i].next() {
            self.next.push(Reverse((at, i)));
        }
    }
}

impl Iterator for Udp {
    type Item = Packet;

    fn next(&mut self) -> Option<Packet> {
        let Reverse((at, i)) = self.next.pop()?;
        self.schedule(i);
        Some(Packet { at, bytes: self.packet_bytes })
    }
}

#[cfg(test)]
mod tests;
