//! Random Early Detection (Floyd and Jacobson 1993), with the gentle slope (Floyd 2000) and the
//! adaptive maximum probability (Floyd, Gummadi, Shenker 2001), in the rules of ns-2.
//!
//! Everything is decided when a packet arrives, so a RED queue keeps closed-form departures. The
//! queue itself and its physical limit are the caller's.

mod linux_idle;

use std::ops::RangeInclusive;

use lfn_keys::{keys, words, Given, Kind, Packets, Said, Span, Value, Wrong, DELAY_MAX};
use lfn_units::{Rate, Time};

use crate::counters::Ledger;
use crate::fifo::Fifo;
use crate::limit::{DropReason, Limit, QueueState, Verdict};
use crate::rule::{Arrival, Parameters, Rule, Site};

use linux_idle::LinuxIdle;

/// Interval between the steps of adaptive RED.
const ADAPTIVE_INTERVAL: Time = Time::from_ms(500);
/// Adaptive RED raises max_p only below this.
const ADAPTIVE_TOP: f64 = 0.5;

/// The two averages between which packets are dropped at random.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Thresholds {
    /// In packets.
    Fixed {
        /// No early drop below it.
        min_th: f64,
        /// Above it every packet is dropped, or the gentle slope begins.
        max_th: f64,
    },
    /// min_th is half of what the link sends in `target_delay` but 5 packets at least, and max_th is
    /// three times that: the average then settles near the delay wanted.
    Automatic {
        /// The queueing delay aimed at.
        target_delay: Time,
    },
}

/// The weight q_w of a sample in the average queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Weight {
    /// Given.
    Fixed(f64),
    /// A time constant of ten round trips, an RTT being taken as three times the link's delay and one
    /// packet time, and as 100 ms at least.
    Automatic,
}

/// A set of RED parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedPreset {
    /// As Floyd and Jacobson published it in 1993: 5 and 15 packets, weight 0.002, drops up to 10 %.
    /// Meant for megabits per second: at 1 Gbit/s the average forgets within 6 ms.
    Classic,
    /// The defaults of ns-2.35, counted in packets: gentle slope, spaced drops, thresholds for 5 ms
    /// of queueing delay and a weight derived from rate and delay of the link.
    Gentle,
    /// Gentle, with marks and a `max_p` that adapts: for paths of large bandwidth-delay product. Give it a
    /// physical limit of 1 BDP.
    Adaptive,
}

words! { RedPreset { Classic = "classic", Gentle = "gentle", Adaptive = "adaptive", } }

/// Whose rules RED follows where papers leave them open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedRules {
    /// While at most one packet waits, nothing is dropped early.
    Ns2,
    /// The average alone decides, and one draw holds until count times probability reaches it (the efficient
    /// algorithm of Floyd and Jacobson 1993). In idle time the average falls by the kernel's table.
    Linux,
}

words! { RedRules { Ns2 = "ns2", Linux = "linux", } }

/// A threshold of the average queue, in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold(pub f64);

impl Value for Threshold {
    type Range = RangeInclusive<Packets>;
    const ANY: RangeInclusive<Packets> = Packets(1)..=Packets(1_000_000_000);

    fn read(given: &Given, range: &Self::Range) -> Result<Threshold, Wrong> {
        Packets::read(given, range).map(|packets| Threshold(packets.0 as f64))
    }

    fn said(&self) -> Said {
        Packets(self.0 as u64).said()
    }

    fn kind(range: &Self::Range) -> Kind {
        Packets::kind(range)
    }
}

impl Value for Weight {
    type Range = Span;
    const ANY: Span = Span::above(0.0).at_most(1.0);

    fn read(given: &Given, range: &Span) -> Result<Weight, Wrong> {
        if *given == Given::Text("auto") {
            return Ok(Weight::Automatic);
        }
        f64::read(given, range)
            .map(Weight::Fixed)
            .map_err(|wrong| Wrong { hint: format!("{}, or \"auto\"", wrong.hint), ..wrong })
    }

    fn said(&self) -> Said {
        match self {
            Weight::Fixed(weight) => Said::Number(*weight),
            Weight::Automatic => Said::Text("auto".into()),
        }
    }

    fn kind(range: &Span) -> Kind {
        Kind::WordOr("auto", *range)
    }
}

keys! {
    /// A queue with random early detection.
    #[derive(Copy)]
    pub struct RedConfig {
        /// Where the defaults of the other keys come from.
        preset: RedPreset = RedPreset::Gentle, then RedConfig::of;
        /// Average queue where early drops begin; with `max_th`. Default 5 packets in "classic".
        min_th: Option<Threshold> = None;
        /// Average queue from which every packet is dropped, or, with `gentle`, from which the probability rises
        /// faster; with `min_th`. Default 15 packets in "classic".
        max_th: Option<Threshold> = None;
        /// Queueing delay aimed at, from which both thresholds follow; not with `min_th`. Default 5ms in
        /// "gentle" and "adaptive".
        target_delay: Option<Time> = Some(Time::from_ms(5)), in Time::from_us(1)..=DELAY_MAX;
        /// Weight of a sample in the average queue, or "auto" for a time constant of ten round trips. Default
        /// 0.002 in "classic", else "auto".
        weight: Weight = Weight::Automatic;
        /// Drop probability at `max_th`.
        max_p: f64 = 0.1, in Span::above(0.0).at_most(1.0);
        /// Above `max_th` the probability rises linearly and is 1 at twice `max_th`. Otherwise it is 1 at once.
        /// Default false in "classic".
        gentle: bool = true;
        /// Let `max_p` follow the average every 0.5s. Default true in "adaptive".
        adaptive: bool = false;
        /// Leave 1/p to 2/p packets between two drops, instead of 1 to 1/p. Default false in "classic".
        wait: bool = true;
        /// Implementation whose rules it follows where the papers leave a choice.
        rules: RedRules = RedRules::Ns2;
        /// Measure the queue in bytes, and drop in proportion to a packet's size.
        byte_mode: bool = false;
        /// Mark packets of flows with `ecn` instead of dropping them. Default true in "adaptive".
        ecn: bool = false;
        /// Mark only while the probability is below this, otherwise drop. With 1 a queue also marks where it would
        /// surely drop, as a router for DCTCP does.
        mark_p: f64 = 0.1, in Span::above(0.0).at_most(1.0);
    }
    set {
        /// Size that counts as one packet, in bytes.
        mean_packet_bytes: u32 = 1500;
    }
    settle RedConfig::complete;
}

impl RedConfig {
    /// The parameters of a preset.
    fn of(preset: RedPreset) -> RedConfig {
        match preset {
            RedPreset::Classic => RedConfig {
                preset,
                weight: Weight::Fixed(0.002),
                gentle: false,
                wait: false,
                ..RedConfig::default()
            }
            .between(Thresholds::Fixed { min_th: 5.0, max_th: 15.0 }),
            RedPreset::Gentle => RedConfig::default(),
            RedPreset::Adaptive => RedConfig { preset, adaptive: true, ecn: true, ..RedConfig::default() },
        }
    }

    /// [`RedPreset::Classic`] for packets of this size.
    pub fn classic(mean_packet_bytes: u32) -> RedConfig {
        RedConfig { mean_packet_bytes, ..RedConfig::of(RedPreset::Classic) }
    }

    /// [`RedPreset::Gentle`] for packets of this size.
    pub fn gentle(mean_packet_bytes: u32) -> RedConfig {
        RedConfig { mean_packet_bytes, ..RedConfig::default() }
    }

    /// [`RedPreset::Adaptive`] for packets of this size.
    pub fn adaptive(mean_packet_bytes: u32) -> RedConfig {
        RedConfig { mean_packet_bytes, ..RedConfig::of(RedPreset::Adaptive) }
    }

    /// This configuration with these thresholds.
    pub fn between(self, thresholds: Thresholds) -> RedConfig {
        let (min_th, max_th, target_delay) = match thresholds {
            Thresholds::Fixed { min_th, max_th } => (Some(Threshold(min_th)), Some(Threshold(max_th)), None),
            Thresholds::Automatic { target_delay } => (None, None, Some(target_delay)),
        };
        RedConfig { min_th, max_th, target_delay, ..self }
    }

    /// Where early drops begin and where they become certain.
    pub fn thresholds(&self) -> Thresholds {
        match (self.min_th, self.max_th, self.target_delay) {
            (_, _, Some(target_delay)) => Thresholds::Automatic { target_delay },
            (min_th, max_th, None) => {
                let [min_th, max_th] = [min_th, max_th].map(|threshold| threshold.map_or(0.0, |th| th.0));
                Thresholds::Fixed { min_th, max_th }
            }
        }
    }

    /// Either both thresholds or a delay.
    fn complete(&mut self, is_said: &dyn Fn(&str) -> bool) -> Result<(), Wrong> {
        let wrong = |key, found: &str, hint: &str| Err(Wrong::new(found, hint).of(key));
        match (is_said("min_th"), is_said("max_th"), is_said("target_delay")) {
            (false, false, false) => {}
            (false, false, true) => (self.min_th, self.max_th) = (None, None),
            (_, _, true) => {
                return wrong(
                    "target_delay",
                    "found beside thresholds",
                    "write either it or min_th and max_th",
                )
            }
            (true, false, false) => return wrong("max_th", "missing beside min_th", "write both"),
            (false, true, false) => return wrong("min_th", "missing beside max_th", "write both"),
            (true, true, false) => {
                self.target_delay = None;
                let [min_th, max_th] = [self.min_th, self.max_th]
                    .map(|threshold| Packets(threshold.map_or(0.0, |th| th.0) as u64));
                if min_th >= max_th {
                    let hint = format!("allowed: more than min_th, {min_th}");
                    return wrong("max_th", &max_th.to_string(), &hint);
                }
            }
        }
        Ok(())
    }
}

impl Parameters for RedConfig {
    type Rule = Red;
    type Error = RedError;
    const DRAWS: bool = true;
    const AT_ARRIVAL: bool = true;

    fn fit(&mut self, packet_bytes: u32) {
        self.mean_packet_bytes = packet_bytes;
    }

    fn build(self, site: Site) -> Result<Red, RedError> {
        Red::new(self, site.rate, site.delay)
    }
}

/// Why a configuration cannot work.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RedError {
    /// Not 0 < min_th < max_th, both finite.
    #[error("RED needs 0 < min_th < max_th, got {min_th} and {max_th} packets")]
    Thresholds {
        /// As configured, in packets.
        min_th: f64,
        /// As configured, in packets.
        max_th: f64,
    },
    /// A weight or probability that is not above 0 and at most 1.
    #[error("RED needs {name} above 0 and at most 1, got {got}")]
    Fraction {
        /// The parameter.
        name: &'static str,
        /// Its value.
        got: f64,
    },
    /// A packet size or a rate of 0.
    #[error("RED needs {name} above 0")]
    Zero {
        /// The parameter.
        name: &'static str,
    },
}

/// The state of one RED queue.
#[derive(Clone, Debug)]
pub struct Red {
    config: RedConfig,
    packets_per_second: f64,
    min_th: f64,
    max_th: f64,
    weight: f64,
    max_p: f64,
    max_p_bottom: f64,
    next_step: Time,
    average: f64,
    /// Packets (in byte mode mean packets' worth of bytes) since the last drop or mark, or since the
    /// average crossed min_th.
    count: f64,
    /// Linux's draw.
    standing: f64,
    above_min_th: bool,
    /// Begin of the last idle time that the average has seen; under Linux's rules, the end of what it has seen.
    aged: Option<Time>,
    /// Idle time under Linux's rules.
    linux_idle: Option<LinuxIdle>,
}

impl Red {
    /// A queue in front of a link of this rate and one-way delay.
    ///
    /// # Errors
    /// [`RedError`] when a parameter lies outside its range.
    pub fn new(config: RedConfig, rate: Rate, link_delay: Time) -> Result<Red, RedError> {
        if config.mean_packet_bytes == 0 {
            return Err(RedError::Zero { name: "mean_packet_bytes" });
        }
        if rate.0 == 0 {
            return Err(RedError::Zero { name: "rate" });
        }
        let packets_per_second = rate.as_bps() / (8.0 * f64::from(config.mean_packet_bytes));
        let (min_th, max_th) = match config.thresholds() {
            Thresholds::Fixed { min_th, max_th } => (min_th, max_th),
            Thresholds::Automatic { target_delay } => {
                let min_th = (target_delay.as_s() * packets_per_second / 2.0).max(5.0);
                (min_th, 3.0 * min_th)
            }
        };
        if !(0.0 < min_th && min_th < max_th && max_th.is_finite()) {
            return Err(RedError::Thresholds { min_th, max_th });
        }
        let weight = match config.weight {
            Weight::Fixed(weight) => weight,
            Weight::Automatic => {
                let rtt_s = (3.0 * (link_delay.as_s() + 1.0 / packets_per_second)).max(0.1);
                -libm::expm1(-1.0 / (10.0 * rtt_s * packets_per_second))
            }
        };
        for (name, got) in [("weight", weight), ("max_p", config.max_p), ("mark_p", config.mark_p)] {
            if !(0.0 < got && got <= 1.0) {
                return Err(RedError::Fraction { name, got });
            }
        }
        Ok(Red {
            config,
            packets_per_second,
            min_th,
            max_th,
            weight,
            max_p: config.max_p,
            max_p_bottom: (80_000.0 / rate.as_bps()).min(0.01),
            next_step: ADAPTIVE_INTERVAL,
            average: 0.0,
            count: 0.0,
            standing: 0.0,
            above_min_th: false,
            aged: None,
            linux_idle: (config.rules == RedRules::Linux).then(|| LinuxIdle::new(weight, packets_per_second)),
        })
    }

    /// Decides on a packet that arrives at `now` and finds `queue`. `ect` says that it can carry a
    /// mark. `draw` gives a number uniform on \[0, 1); it is called only where chance decides. Returns
    /// whether it joins the queue with a mark.
    ///
    /// # Errors
    /// Why it is dropped.
    // Not a part of the loop over a drop-tail queue's packets, which needs its registers.
    #[inline(never)]
    pub(crate) fn admit(
        &mut self,
        now: Time,
        queue: QueueState,
        limit: Limit,
        packet_bytes: u32,
        ect: bool,
        draw: impl FnOnce() -> f64,
    ) -> Result<bool, DropReason> {
        let verdict = self.arrive(now, queue, packet_bytes, ect, draw);
        if verdict == Verdict::Drop {
            return Err(DropReason::Early);
        }
        if !limit.admits(queue, packet_bytes) {
            if self.config.rules == RedRules::Ns2 {
                self.count = 0.0;
            }
            return Err(DropReason::Full);
        }
        Ok(verdict == Verdict::Mark)
    }

    /// The rate of the link changes. Idle time counts at the rate at its end, under Linux's rules at the first rate;
    /// thresholds, weight and the range of max_p stay as they were set up.
    pub fn set_rate(&mut self, rate: Rate) {
        self.packets_per_second = rate.as_bps() / (8.0 * f64::from(self.config.mean_packet_bytes));
    }

    /// The random decision, independent of free room.
    fn arrive(
        &mut self,
        now: Time,
        queue: QueueState,
        packet_bytes: u32,
        ect: bool,
        draw: impl FnOnce() -> f64,
    ) -> Verdict {
        self.update_average(now, queue);
        if self.config.adaptive && now >= self.next_step {
            self.adapt();
            // A fixed grid, and one step however long ago the last packet came: silence says
            // nothing about congestion.
            self.next_step =
                Time((now.0 / ADAPTIVE_INTERVAL.0).saturating_add(1).saturating_mul(ADAPTIVE_INTERVAL.0));
        }
        let size = if self.config.byte_mode {
            f64::from(packet_bytes) / f64::from(self.config.mean_packet_bytes)
        } else {
            1.0
        };
        self.count += size;
        let spared = self.config.rules == RedRules::Ns2 && queue.packets <= 1;
        if spared || self.average < self.min_th {
            self.above_min_th = false;
            return Verdict::Accept;
        }
        let base = self.base_probability();
        if self.config.rules == RedRules::Linux {
            return self.by_standing_draw(base, ect, draw);
        }
        if !self.above_min_th {
            self.above_min_th = true;
            self.count = size;
            return Verdict::Accept;
        }
        let spread = self.spread(base);
        // A drop that is certain is so for small packets too.
        let probability = if spread < 1.0 { spread * size } else { 1.0 };
        if probability <= 0.0 || (probability < 1.0 && draw() >= probability) {
            return Verdict::Accept;
        }
        self.count = 0.0;
        self.early(base, ect)
    }

    fn by_standing_draw(&mut self, base: f64, ect: bool, draw: impl FnOnce() -> f64) -> Verdict {
        if base >= 1.0 {
            // The count restarts, as below min_th.
            self.above_min_th = false;
            return self.early(base, ect);
        }
        let chosen =
            self.above_min_th && self.count * base >= self.standing + f64::from(u8::from(self.config.wait));
        if chosen || !self.above_min_th {
            self.above_min_th = true;
            self.count = 0.0;
            self.standing = draw();
        }
        if chosen {
            self.early(base, ect)
        } else {
            Verdict::Accept
        }
    }

    /// A packet that chance has chosen.
    fn early(&self, base: f64, ect: bool) -> Verdict {
        if self.config.ecn && ect && (base < self.config.mark_p || self.config.mark_p >= 1.0) {
            Verdict::Mark
        } else {
            Verdict::Drop
        }
    }

    /// The average queue in packets, as of the last arrival.
    pub fn average_packets(&self) -> f64 {
        self.average
    }

    /// The drop probability at max_th, which adaptive RED moves.
    pub fn max_p(&self) -> f64 {
        self.max_p
    }

    /// min_th and max_th in packets, as configured or as derived from the link.
    pub fn thresholds_packets(&self) -> (f64, f64) {
        (self.min_th, self.max_th)
    }

    /// The weight q_w, as configured or as derived from the link.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// An idle link counts as the arrival of as many packets as it could have sent, each of which
    /// would have found the queue empty.
    fn update_average(&mut self, now: Time, queue: QueueState) {
        let length = if self.config.byte_mode {
            queue.bytes as f64 / f64::from(self.config.mean_packet_bytes)
        } else {
            queue.packets as f64
        };
        // Idle time counts once, also where the packet that ends it is dropped. For Linux another idle time begins then.
        if let (Some(linux), Some(since)) = (&self.linux_idle, queue.idle_since) {
            let last = self.aged.filter(|&aged| aged >= since);
            let idle = now.since(last.unwrap_or(since));
            self.aged = Some(now);
            // The packet that ends an idle time is no sample of an empty queue, nor is one that comes right after it was
            // dropped. One that arrives as the link ends a packet is: a tie, for the kernel a matter of chance.
            if idle > Time::ZERO || last.is_some() {
                self.average *= linux.kept(idle);
                return;
            }
        } else if let Some(since) = queue.idle_since.filter(|&since| self.aged != Some(since)) {
            self.aged = Some(since);
            let missed = (now.since(since).as_s() * self.packets_per_second).floor();
            self.average *= libm::pow(1.0 - self.weight, missed);
        }
        self.average += self.weight * (length - self.average);
    }

    /// Additive increase and multiplicative decrease of max_p, to hold the average midway.
    fn adapt(&mut self) {
        let margin = 0.4 * (self.max_th - self.min_th);
        if self.average < self.min_th + margin && self.max_p > self.max_p_bottom {
            self.max_p *= 0.9;
        } else if self.average > self.max_th - margin && self.max_p < ADAPTIVE_TOP {
            self.max_p += (self.max_p / 4.0).min(0.01);
        }
    }

    /// p_b: what the average alone asks for.
    fn base_probability(&self) -> f64 {
        if self.average < self.max_th {
            self.max_p * (self.average - self.min_th) / (self.max_th - self.min_th)
        } else if self.config.gentle && self.average < 2.0 * self.max_th {
            self.max_p + (1.0 - self.max_p) * (self.average - self.max_th) / self.max_th
        } else {
            1.0
        }
    }

    /// p_a: p_b made to rise with the count since the last drop, so that drops come evenly spaced.
    fn spread(&self, base: f64) -> f64 {
        let expected = self.count * base;
        if !self.config.wait {
            return if expected < 1.0 { base / (1.0 - expected) } else { 1.0 };
        }
        if expected < 1.0 {
            0.0
        } else if expected < 2.0 {
            base / (2.0 - expected)
        } else {
            1.0
        }
    }
}

impl Rule for Red {
    fn admit(
        &mut self,
        arrival: &Arrival,
        fifo: &mut Fifo,
        draw: impl FnOnce() -> f64,
        _: &mut Ledger,
    ) -> Result<bool, DropReason> {
        let Arrival { now, packet, limit, .. } = *arrival;
        Red::admit(self, now, arrival.queue(fifo), limit, packet.bytes, packet.ecn.is_capable(), draw)
    }

    fn set_rate(&mut self, rate: Rate) {
        Red::set_rate(self, rate);
    }
}

#[cfg(test)]
mod tests;
