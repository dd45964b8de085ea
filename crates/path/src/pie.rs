//! PIE (Pan and others; RFC 8033): drops arrivals with a probability that a proportional-integral
//! controller moves every 15 ms towards a queueing delay wanted.
//!
//! The delay is the time that the last packet to leave the queue had waited in it. It stands still between departures, so the
//! updates missed since the last packet can be made up exactly when the next one comes: PIE needs no timer.

use lfn_units::Time;

use crate::packet::Packet;
use crate::red::{QueueState, Verdict};

/// Below this probability no drop while the delay is under half of the target.
const SAFE_PROBABILITY: f64 = 0.2;
/// Decay of the probability at each update while the queue is empty.
const IDLE_DECAY: f64 = 0.98;
/// Largest step up once the probability is high.
const LARGEST_STEP: f64 = 0.02;
/// From this probability on the step is limited and a mark becomes a drop.
const HIGH_PROBABILITY: f64 = 0.1;
/// Divisor of the step while the probability is below a bound: a small probability moves in small
/// steps.
const STEP_DIVISORS: [(f64, f64); 6] =
    [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];

/// The parameters of PIE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieConfig {
    /// Queueing delay wanted.
    pub target: Time,
    /// From one update of the probability to the next.
    pub update: Time,
    /// Weight of the deviation from the target, 1/s.
    pub alpha: f64,
    /// Weight of the change since the last update, 1/s.
    pub beta: f64,
    /// After an idle time, how long a burst may last before anything is dropped.
    pub burst: Time,
    /// Size of an average packet in bytes: less than two of them waiting are never dropped.
    pub mean_packet_bytes: u32,
    /// Drop in proportion to a packet's size.
    pub byte_mode: bool,
    /// Mark packets that can carry a mark instead of dropping them, while the probability is below 0.1.
    pub ecn: bool,
}

impl Default for PieConfig {
    /// RFC 8033, for packets of 1500 bytes; drops, as Linux does by itself.
    fn default() -> PieConfig {
        PieConfig {
            target: Time::from_ms(15),
            update: Time::from_ms(15),
            alpha: 0.125,
            beta: 1.25,
            burst: Time::from_ms(150),
            mean_packet_bytes: 1500,
            byte_mode: false,
            ecn: false,
        }
    }
}

/// Why a configuration cannot work.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum PieError {
    /// A time or size of 0.
    #[error("PIE needs {name} above 0")]
    Zero {
        /// The parameter.
        name: &'static str,
    },
    /// A weight that is negative or no number.
    #[error("PIE needs {name} of at least 0 and finite, got {got}")]
    Weight {
        /// The parameter.
        name: &'static str,
        /// Its value in 1/s.
        got: f64,
    },
}

/// The state of one PIE queue.
#[derive(Clone, Debug)]
pub struct Pie {
    config: PieConfig,
    state: Control,
    /// Queueing delay of the last packet that left the queue; 0 when it left it empty.
    delay: Time,
    next_update: Time,
}

/// What an update changes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Control {
    probability: f64,
    /// The delay at the last update.
    old_delay: Time,
    burst_left: Time,
}

impl Pie {
    /// A queue that has seen no packet.
    ///
    /// # Errors
    /// [`PieError`] when a parameter lies outside its range.
    pub fn new(config: PieConfig) -> Result<Pie, PieError> {
        if config.update == Time::ZERO {
            return Err(PieError::Zero { name: "update" });
        }
        if config.mean_packet_bytes == 0 {
            return Err(PieError::Zero { name: "mean_packet_bytes" });
        }
        for (name, got) in [("alpha", config.alpha), ("beta", config.beta)] {
            if !(got >= 0.0 && got.is_finite()) {
                return Err(PieError::Weight { name, got });
            }
        }
        Ok(Pie {
            config,
            state: Control { probability: 0.0, old_delay: Time::ZERO, burst_left: config.burst },
            delay: Time::ZERO,
            next_update: config.update,
        })
    }

    /// Decides on a packet that arrives at `now` and finds `queue`.
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        queue: QueueState,
        packet: &Packet,
        draw: impl FnOnce() -> f64,
    ) -> Verdict {
        self.catch_up(now);
        let Control { probability, old_delay, burst_left } = self.state;
        let mean_bytes = u64::from(self.config.mean_packet_bytes);
        if burst_left > Time::ZERO
            || (self.below_half_target(old_delay) && probability < SAFE_PROBABILITY)
            || queue.bytes <= 2 * mean_bytes
        {
            return Verdict::Accept;
        }
        let size = if self.config.byte_mode { f64::from(packet.bytes) / mean_bytes as f64 } else { 1.0 };
        if draw() >= probability * size {
            Verdict::Accept
        } else if self.config.ecn && packet.ect && probability < HIGH_PROBABILITY {
            Verdict::Mark
        } else {
            Verdict::Drop
        }
    }

    /// A packet leaves the queue after it `waited`; `empty` says that it was the last.
    pub(crate) fn leave(&mut self, now: Time, waited: Time, empty: bool) {
        self.catch_up(now);
        self.delay = if empty { Time::ZERO } else { waited };
    }

    fn below_half_target(&self, delay: Time) -> bool {
        delay.0 < self.config.target.0 / 2
    }

    /// Makes up the updates due by `now`.
    fn catch_up(&mut self, now: Time) {
        let interval = self.config.update.0;
        while self.next_update <= now {
            let before = self.state;
            self.update();
            self.next_update = self.next_update.after(self.config.update);
            if self.state == before {
                // The updates left to make up change nothing either.
                self.next_update = Time((now.0 / interval).saturating_add(1).saturating_mul(interval));
            }
        }
    }

    fn update(&mut self) {
        let PieConfig { target, update, alpha, beta, burst, .. } = self.config;
        let Control { probability: p, old_delay, .. } = self.state;
        let delay = self.delay;
        let step = alpha * (delay.as_s() - target.as_s()) + beta * (delay.as_s() - old_delay.as_s());
        let divisor = STEP_DIVISORS.iter().find(|(below, _)| p < *below).map_or(1.0, |&(_, divisor)| divisor);
        let most = if p >= HIGH_PROBABILITY { LARGEST_STEP } else { 1.0 };
        let mut p = (p + (step / divisor).min(most)).clamp(0.0, 1.0);
        if delay == Time::ZERO && old_delay == Time::ZERO {
            p *= IDLE_DECAY;
        }
        let calm = p == 0.0 && self.below_half_target(delay) && self.below_half_target(old_delay);
        let burst_left = if calm { burst } else { self.state.burst_left };
        self.state = Control { probability: p, old_delay: delay, burst_left: burst_left.since(update) };
    }
}
