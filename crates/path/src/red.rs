//! Random Early Detection (Floyd and Jacobson 1993), with the gentle slope (Floyd 2000) and the
//! adaptive maximum probability (Floyd, Gummadi, Shenker 2001), in the rules of ns-2.
//!
//! Everything is decided when a packet arrives, so a RED queue keeps closed-form departures. The
//! queue itself and its physical limit are the caller's.

use lfn_units::{Rate, Time};

use crate::limit::{DropReason, Limit};

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

/// The parameters of a RED queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// Where early drops begin and where they become certain.
    pub thresholds: Thresholds,
    /// How fast the average follows the queue.
    pub weight: Weight,
    /// Drop probability at max_th; adaptive RED starts from it.
    pub max_p: f64,
    /// Beyond max_th, let the probability rise to 1 at 2 max_th instead of jumping there.
    pub gentle: bool,
    /// Let max_p follow the average every 0.5 s.
    pub adaptive: bool,
    /// Space drops 1/p to 2/p packets apart instead of 1 to 1/p.
    pub wait: bool,
    /// Measure the queue and the spacing in bytes, and drop in proportion to a packet's size.
    pub byte_mode: bool,
    /// Size that counts as one packet, in bytes.
    pub mean_packet_bytes: u32,
    /// Mark packets that can carry a mark instead of dropping them.
    pub ecn: bool,
    /// Mark only while the probability is below this, else drop; 1 marks also where drops are certain,
    /// as a router for DCTCP does.
    pub mark_p: f64,
}

impl RedConfig {
    /// RED as Floyd and Jacobson published it: 5 and 15 packets, weight 0.002, drops up to 10 %.
    /// Meant for megabits per second: at 1 Gbit/s the average forgets within 6 ms.
    pub const fn classic(mean_packet_bytes: u32) -> RedConfig {
        RedConfig {
            thresholds: Thresholds::Fixed { min_th: 5.0, max_th: 15.0 },
            weight: Weight::Fixed(0.002),
            max_p: 0.1,
            gentle: false,
            adaptive: false,
            wait: false,
            byte_mode: false,
            mean_packet_bytes,
            ecn: false,
            mark_p: 0.1,
        }
    }

    /// The defaults of ns-2.35, counted in packets: gentle slope, spaced drops, thresholds for 5 ms
    /// of queueing delay and a weight derived from rate and delay of the link.
    pub const fn gentle(mean_packet_bytes: u32) -> RedConfig {
        RedConfig {
            thresholds: Thresholds::Automatic { target_delay: Time::from_ms(5) },
            weight: Weight::Automatic,
            gentle: true,
            wait: true,
            ..RedConfig::classic(mean_packet_bytes)
        }
    }

    /// For paths of large bandwidth-delay product: [`RedConfig::gentle`], with marks and a max_p that
    /// adapts. Give it the real packet size and a physical limit of 1 BDP.
    pub const fn adaptive(mean_packet_bytes: u32) -> RedConfig {
        RedConfig { adaptive: true, ecn: true, ..RedConfig::gentle(mean_packet_bytes) }
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

/// The queue as an arriving packet finds it, itself not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueState {
    /// Packets waiting.
    pub(crate) packets: u64,
    /// Bytes waiting.
    pub(crate) bytes: u64,
    /// Since when queue and link have been idle, `None` when they are not.
    pub(crate) idle_since: Option<Time>,
}

/// The fate of an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It joins the queue.
    Accept,
    /// It joins the queue with a congestion mark.
    Mark,
    /// It is dropped early.
    Drop,
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
    above_min_th: bool,
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
        let (min_th, max_th) = match config.thresholds {
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
            above_min_th: false,
        })
    }

    /// Decides on a packet that arrives at `now` and finds `queue`. `ect` says that it can carry a
    /// mark. `draw` gives a number uniform on \[0, 1); it is called only where chance decides. Returns
    /// whether it joins the queue with a mark.
    ///
    /// # Errors
    /// Why it is dropped.
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
            self.count = 0.0;
            return Err(DropReason::Full);
        }
        Ok(verdict == Verdict::Mark)
    }

    /// The rate of the link changes. Idle time counts at the rate at its end; thresholds, weight and
    /// the range of max_p stay as they were set up.
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
        if self.average < self.min_th || queue.packets <= 1 {
            self.above_min_th = false;
            return Verdict::Accept;
        }
        if !self.above_min_th {
            self.above_min_th = true;
            self.count = size;
            return Verdict::Accept;
        }
        let base = self.base_probability();
        let spread = self.spread(base);
        // A drop that is certain is so for small packets too.
        let probability = if spread < 1.0 { spread * size } else { 1.0 };
        if probability <= 0.0 || (probability < 1.0 && draw() >= probability) {
            return Verdict::Accept;
        }
        self.count = 0.0;
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
        if let Some(since) = queue.idle_since {
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

#[cfg(test)]
mod tests;
