//! PIE (Pan and others; RFC 8033): drops arrivals with a probability that a proportional-integral
//! controller moves every 15 ms towards a queueing delay wanted.
//!
//! The delay is the time that the last packet to leave the queue had waited in it. It stands still between departures, so the
//! updates missed since the last packet can be made up exactly when the next one comes: PIE needs no timer.

use lfn_keys::{keys, Span, DELAY_MAX};
use lfn_units::Time;

use crate::counters::Ledger;
use crate::fifo::{Fifo, Waiting};
use crate::limit::{DropReason, QueueState, Verdict};
use crate::packet::Packet;
use crate::rule::{Arrival, Parameters, Rule, Site};

/// Below this probability no drop while the delay is under half of the target.
const SAFE_PROBABILITY: f64 = 0.2;
/// Decay of the probability at each update while the queue is empty: 63/64 in Linux, measured on 6.12, for 0.98 in RFC 8033.
const IDLE_DECAY: f64 = 63.0 / 64.0;
/// Largest step up once the probability is high.
const LARGEST_STEP: f64 = 0.02;
/// Above this delay the probability rises by [`LARGEST_STEP`] more at each update: in Linux, measured on 6.12.
const LONG_DELAY: Time = Time::from_ms(250);
/// From this probability on the step is limited and a mark becomes a drop.
const HIGH_PROBABILITY: f64 = 0.1;
/// Linux does not end the probability at 1, as RFC 8033 does: measured on 6.12. The queue then drops every packet for as long as
/// the probability needs to fall. Its 64 bits end here.
const HIGHEST_PROBABILITY: f64 = 256.0;
/// Sums of the probabilities of packets since the last drop: below the first there is none, from the second on the next
/// packet is dropped (RFC 8033 §5.4, also in Linux).
const NO_DROP_BELOW: f64 = 0.85;
const DROP_FROM: f64 = 8.5;
/// Divisor of the step while the probability is below a bound: a small probability moves in small
/// steps.
const STEP_DIVISORS: [(f64, f64); 6] =
    [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];

keys! {
    /// A queue that keeps its delay near a target by drops at arrival. Drops by default, as Linux does by itself.
    #[derive(Copy)]
    pub struct PieConfig {
        /// Queueing delay wanted.
        target: Time = Time::from_ms(15), in Time::from_us(1)..=DELAY_MAX;
        /// From one update of the drop probability to the next.
        update: Time = Time::from_ms(15), in Time::from_us(1)..=DELAY_MAX;
        /// Weight of the deviation from the target, 1/s.
        alpha: f64 = 0.125, in Span::at_least(0.0);
        /// Weight of the change since the last update, 1/s.
        beta: f64 = 1.25, in Span::at_least(0.0);
        /// After an idle time, how long a burst may last before anything is dropped.
        burst: Time = Time::from_ms(150), in Time::ZERO..=DELAY_MAX;
        /// Drop in proportion to a packet's size.
        byte_mode: bool = false;
        /// Mark packets of flows with `ecn` instead of dropping them, while the probability is below 0.1.
        ecn: bool = false;
    }
    set {
        /// Size of an average packet in bytes: less than two of them waiting are never dropped.
        mean_packet_bytes: u32 = 1500;
    }
}

impl Parameters for PieConfig {
    type Rule = Pie;
    type Error = PieError;
    const DRAWS: bool = true;

    fn fit(&mut self, packet_bytes: u32) {
        self.mean_packet_bytes = packet_bytes;
    }

    fn build(self, _: Site) -> Result<Pie, PieError> {
        Pie::new(self)
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
    /// Sum of the probabilities of the packets since the last drop.
    due: f64,
}

/// State that an update changes.
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
            due: 0.0,
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
        let Control { probability, burst_left, .. } = self.state;
        let mean_bytes = u64::from(self.config.mean_packet_bytes);
        // The delay of now, as in Linux (measured on 6.12), for RFC 8033's at the last update: a queue that fills is seen up to
        // an interval sooner.
        if burst_left > Time::ZERO
            || (self.below_half_target(self.delay) && probability < SAFE_PROBABILITY)
            || queue.bytes < 2 * mean_bytes
        {
            return Verdict::Accept;
        }
        let size = if self.config.byte_mode { f64::from(packet.bytes) / mean_bytes as f64 } else { 1.0 };
        let probability_here = probability * size;
        self.due = if probability_here == 0.0 { 0.0 } else { self.due + probability_here };
        if self.due < NO_DROP_BELOW || (self.due < DROP_FROM && draw() >= probability_here) {
            return Verdict::Accept;
        }
        self.due = 0.0;
        if self.config.ecn && packet.ecn.is_capable() && probability < HIGH_PROBABILITY {
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
        let more = if delay > LONG_DELAY { LARGEST_STEP } else { 0.0 };
        let mut p = (p + (step / divisor).min(most) + more).clamp(0.0, HIGHEST_PROBABILITY);
        if delay == Time::ZERO && old_delay == Time::ZERO {
            p *= IDLE_DECAY;
        }
        let calm = p == 0.0 && self.below_half_target(delay) && self.below_half_target(old_delay);
        let burst_left = if calm { burst } else { self.state.burst_left.since(update) };
        self.state = Control { probability: p, old_delay: delay, burst_left };
    }
}

impl Rule for Pie {
    fn admit(
        &mut self,
        arrival: &Arrival,
        fifo: &mut Fifo,
        draw: impl FnOnce() -> f64,
        _: &mut Ledger,
    ) -> Result<bool, DropReason> {
        if let Err(full) = arrival.fits(fifo) {
            // A full queue drops too, so the sum begins again: under an overload Linux marks nothing (measured on 6.12).
            self.catch_up(arrival.now);
            self.due = 0.0;
            return Err(full);
        }
        match self.arrive(arrival.now, arrival.queue(fifo), &arrival.packet, draw) {
            Verdict::Drop => Err(DropReason::Early),
            verdict => Ok(verdict == Verdict::Mark),
        }
    }

    fn take(&mut self, now: Time, fifo: &mut Fifo, _: &mut Ledger) -> Option<Waiting> {
        let head = fifo.pop()?;
        self.leave(now, now - head.since, fifo.is_empty());
        Some(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::PacketKind;
    use lfn_header::Ecn;
    use proptest::prelude::*;

    fn pie(config: PieConfig) -> Pie {
        Pie::new(config).expect("valid")
    }

    /// After one update from this state.
    fn updated(probability: f64, delay: Time, old_delay: Time) -> f64 {
        let mut pie = pie(PieConfig::default());
        pie.state = Control { probability, old_delay, burst_left: Time::ZERO };
        pie.delay = delay;
        pie.update();
        pie.state.probability
    }

    fn close(got: f64, want: f64) {
        assert!((got - want).abs() <= 1e-12 * want.abs(), "got {got}, want {want}");
    }

    const PACKET: Packet =
        Packet { word: 0, more: 0, flow: 0, bytes: 1500, kind: PacketKind::Data, ecn: Ecn::Ect0 };
    const LONG: QueueState = QueueState { packets: 100, bytes: 150_000, idle_since: None };

    #[test]
    fn a_small_probability_moves_in_small_steps() {
        let ms = Time::from_ms;
        // 0.125 (0.030 - 0.015) + 1.25 (0.030 - 0.020)
        let step = 0.014_375;
        let table = [
            (0.0, 2048.0),
            (0.9e-6, 2048.0),
            (1e-6, 512.0),
            (1e-5, 128.0),
            (1e-4, 32.0),
            (1e-3, 8.0),
            (1e-2, 2.0),
            (1e-1, 1.0),
            (0.5, 1.0),
        ];
        for (p, divisor) in table {
            close(updated(p, ms(30), ms(20)), p + step / divisor);
        }
        // 0.125 (0.010 - 0.015) + 1.25 (0.010 - 0.020)
        close(updated(0.05, ms(10), ms(20)), 0.05 - 0.013_125 / 2.0);
    }

    #[test]
    fn steps_up_are_limited_once_the_probability_is_high_and_steps_down_are_not() {
        let (none, second) = (Time::ZERO, Time::from_s(1));
        // And 2 % more above 250 ms.
        close(updated(0.1, second, none), 0.14);
        close(updated(0.1, Time::from_ms(250), none), 0.12);
        close(updated(0.09, second, none), 0.09 + (0.125 * 0.985 + 1.25) / 2.0 + 0.02);
        close(updated(0.999, second, none), 1.039);
        assert_eq!(updated(255.99, second, none), 256.0);
        close(updated(0.9, none, Time::from_ms(500)), 0.9 - 0.125 * 0.015 - 1.25 * 0.5);
        assert_eq!(updated(1e-9, none, Time::from_ms(500)), 0.0);
    }

    #[test]
    fn the_probability_decays_while_the_queue_is_empty() {
        close(updated(0.5, Time::ZERO, Time::ZERO), (0.5 - 0.125 * 0.015) * 63.0 / 64.0);
    }

    #[test]
    fn a_burst_is_spared_again_after_calm() {
        let mut pie = pie(PieConfig::default());
        let mut verdict = |at_ms, probability: Option<f64>, waited| {
            let now = Time::from_ms(at_ms);
            pie.catch_up(now);
            pie.state.probability = probability.unwrap_or(pie.state.probability);
            pie.leave(now, waited, false);
            pie.due = 1.0;
            pie.arrive(now, LONG, &PACKET, || 0.0)
        };
        let slow = Time::from_ms(50);
        // 10 updates of 15 ms use the first allowance up.
        assert_eq!(verdict(1, Some(0.5), slow), Verdict::Accept);
        assert_eq!(verdict(149, Some(0.5), slow), Verdict::Accept);
        assert_eq!(verdict(151, Some(0.5), slow), Verdict::Drop);
        // Two updates in calm.
        verdict(152, Some(0.0), Time::ZERO);
        verdict(182, Some(0.0), Time::ZERO);
        assert_eq!(verdict(183, Some(0.5), slow), Verdict::Accept);
        // The allowance restarts at the update of 180 ms, in full.
        assert_eq!(verdict(329, Some(0.5), slow), Verdict::Accept);
        assert_eq!(verdict(331, Some(0.5), slow), Verdict::Drop);
    }

    /// The burst used up, the delay long.
    fn at_probability(config: PieConfig, probability: f64) -> Pie {
        let mut pie = pie(config);
        pie.state = Control { probability, old_delay: Time::ZERO, burst_left: Time::ZERO };
        pie.delay = Time::from_ms(100);
        pie.due = 1.0;
        pie
    }

    #[test]
    fn nothing_is_dropped_behind_less_than_two_packets_or_at_a_short_delay() {
        let verdict = |probability, delay_ms, bytes| {
            let mut pie = at_probability(PieConfig::default(), probability);
            pie.delay = Time::from_ms(delay_ms);
            pie.arrive(Time::ZERO, QueueState { bytes, ..LONG }, &PACKET, || 0.0)
        };
        assert_eq!(verdict(1.0, 100, 2999), Verdict::Accept);
        assert_eq!(verdict(1.0, 100, 3000), Verdict::Drop);
        assert_eq!(verdict(0.19, 7, 150_000), Verdict::Accept);
        assert_eq!(verdict(0.19, 8, 150_000), Verdict::Drop);
        assert_eq!(verdict(0.2, 7, 150_000), Verdict::Drop);
    }

    #[test]
    fn the_probability_decides_and_a_small_one_marks() {
        let verdict = |marks, ecn, probability, draw| {
            let mut pie = at_probability(PieConfig { ecn: marks, ..PieConfig::default() }, probability);
            pie.arrive(Time::ZERO, LONG, &Packet { ecn, ..PACKET }, || draw)
        };
        assert_eq!(verdict(false, Ecn::Ect0, 0.09, 0.0899), Verdict::Drop);
        assert_eq!(verdict(false, Ecn::Ect0, 0.09, 0.0901), Verdict::Accept);
        assert_eq!(verdict(true, Ecn::Ect0, 0.09, 0.0899), Verdict::Mark);
        assert_eq!(verdict(true, Ecn::NotEct, 0.09, 0.0899), Verdict::Drop);
        assert_eq!(verdict(true, Ecn::Ect0, 0.1, 0.0), Verdict::Drop);
    }

    #[test]
    fn drops_are_neither_close_together_nor_far_apart() {
        let mut pie = at_probability(PieConfig::default(), 0.125);
        pie.due = 0.0;
        let mut until_drop = |draw: f64| {
            1 + (0..)
                .take_while(|_| pie.arrive(Time::ZERO, LONG, &PACKET, || draw) == Verdict::Accept)
                .count()
        };
        assert_eq!((until_drop(0.0), until_drop(0.5), until_drop(0.0)), (7, 68, 7));
    }

    #[test]
    fn byte_mode_drops_in_proportion_to_size() {
        let config = PieConfig { byte_mode: true, mean_packet_bytes: 1000, ..PieConfig::default() };
        let verdict = |draw| at_probability(config, 0.5).arrive(Time::ZERO, LONG, &PACKET, || draw);
        assert_eq!(verdict(0.7499), Verdict::Drop);
        assert_eq!(verdict(0.7501), Verdict::Accept);
    }

    #[test]
    fn a_year_without_packets_is_made_up_at_once() {
        let mut pie = at_probability(PieConfig::default(), 1.0);
        pie.delay = Time::ZERO;
        let year = Time::from_s(180 * 86_400);
        pie.catch_up(year);
        assert_eq!(pie.state.probability, 0.0);
        assert_eq!(pie.next_update.0 % Time::from_ms(15).0, 0);
        assert!(year < pie.next_update && pie.next_update <= year + Time::from_ms(15));
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let error = |config| Pie::new(config).map(|_| ());
        let default = PieConfig::default();
        assert_eq!(
            error(PieConfig { update: Time::ZERO, ..default }),
            Err(PieError::Zero { name: "update" })
        );
        assert_eq!(
            error(PieConfig { mean_packet_bytes: 0, ..default }),
            Err(PieError::Zero { name: "mean_packet_bytes" })
        );
        assert_eq!(
            error(PieConfig { beta: -1.0, ..default }),
            Err(PieError::Weight { name: "beta", got: -1.0 })
        );
        assert!(error(PieConfig { alpha: f64::NAN, ..default }).is_err());
    }

    proptest! {
        #[test]
        fn made_up_updates_are_those_of_a_timer(
            departures in prop::collection::vec((0..400_000_000_000u64, 0..200_000_000_000u64), 1..50),
        ) {
            let mut lazy = pie(PieConfig::default());
            let mut timed = pie(PieConfig::default());
            let (mut now, mut tick) = (0, Time::from_ms(15).0);
            for (gap, waited) in departures {
                now += gap;
                while tick <= now {
                    timed.update();
                    tick += Time::from_ms(15).0;
                }
                let empty = waited % 2 == 0;
                timed.delay = if empty { Time::ZERO } else { Time(waited) };
                lazy.leave(Time(now), Time(waited), empty);
                prop_assert_eq!(lazy.state, timed.state);
                prop_assert_eq!(lazy.next_update, Time(tick));
            }
        }
    }
}
