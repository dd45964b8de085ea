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
    /// Mark only while the probability is below this, else drop; 1 marks up to certain drop.
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
pub struct QueueState {
    /// Packets waiting.
    pub packets: u64,
    /// Bytes waiting.
    pub bytes: u64,
    /// Since when queue and link have been idle, `None` when they are not.
    pub idle_since: Option<Time>,
}

/// What becomes of an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
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

    /// Decides on a packet as [`Red::arrive`] does, and drops what does not fit. Returns whether it
    /// joins the queue with a mark.
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
            self.forced_drop();
            return Err(DropReason::Full);
        }
        Ok(verdict == Verdict::Mark)
    }

    /// The rate of the link changes. Idle time counts at the rate at its end; thresholds, weight and
    /// the range of max_p stay as they were set up.
    pub fn set_rate(&mut self, rate: Rate) {
        self.packets_per_second = rate.as_bps() / (8.0 * f64::from(self.config.mean_packet_bytes));
    }

    /// Decides on a packet that arrives at `now` and finds `queue`. `ect` says that it can carry a
    /// mark. `draw` gives a number uniform on \[0, 1); it is called only where chance decides.
    /// When the packet then does not fit, the caller drops it and says so with [`Red::forced_drop`].
    pub fn arrive(
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
        if self.config.ecn && ect && base < self.config.mark_p {
            Verdict::Mark
        } else {
            Verdict::Drop
        }
    }

    /// The physical limit made the caller drop the packet.
    pub fn forced_drop(&mut self) {
        self.count = 0.0;
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GBIT: Rate = Rate(1_000_000_000);
    const PACKET_BYTES: u32 = 1500;

    fn red(config: RedConfig, rate: Rate) -> Red {
        Red::new(config, rate, Time::from_ms(50)).expect("valid")
    }

    fn busy(packets: u64) -> QueueState {
        QueueState { packets, bytes: packets * u64::from(PACKET_BYTES), idle_since: None }
    }

    fn no_draw() -> f64 {
        panic!("chance has no say here")
    }

    /// A queue whose average stands at `packets` and stays there while the queue does.
    fn settled(config: RedConfig, packets: u64) -> Red {
        let mut red = red(config, GBIT);
        red.average = packets as f64;
        assert_eq!(red.arrive(Time::ZERO, busy(packets), PACKET_BYTES, false, no_draw), Verdict::Accept);
        red.count = 0.0;
        red
    }

    /// p_b = 0.1 at the queue of 100 packets that the tests below use.
    const TENTH: RedConfig = RedConfig {
        thresholds: Thresholds::Fixed { min_th: 50.0, max_th: 150.0 },
        max_p: 0.2,
        ..RedConfig::classic(PACKET_BYTES)
    };

    fn close(got: f64, want: f64, relative: f64) {
        assert!((got - want).abs() <= relative * want.abs(), "got {got}, want {want}");
    }

    #[test]
    fn average_follows_its_closed_form() {
        let mut red = red(RedConfig::classic(PACKET_BYTES), GBIT);
        for n in 1..=5000 {
            red.arrive(Time::ZERO, busy(4), PACKET_BYTES, false, no_draw);
            close(red.average_packets(), 4.0 * (1.0 - libm::pow(1.0 - 0.002, f64::from(n))), 1e-12);
        }
    }

    #[test]
    fn idle_time_ages_the_average_as_missed_packets_would() {
        for config in [RedConfig::classic(PACKET_BYTES), RedConfig::adaptive(PACKET_BYTES)] {
            let mut red = red(config, GBIT);
            red.average = 4.0;
            // 1 ms at 1 Gbit/s is 83.3 packets of 1500 bytes.
            let queue = QueueState { idle_since: Some(Time::from_ms(7)), ..QueueState::default() };
            red.arrive(Time::from_ms(8), queue, PACKET_BYTES, false, no_draw);
            close(red.average_packets(), 4.0 * libm::pow(1.0 - red.weight(), 84.0), 1e-12);
        }
    }

    #[test]
    fn automatic_parameters_at_1_and_10_gbit() {
        let table = [(GBIT, 7.998e-6, 208.33, 625.0, 8e-5), (Rate(10 * GBIT.0), 8e-7, 2083.3, 6250.0, 8e-6)];
        for (rate, weight, min_th, max_th, bottom) in table {
            let red = red(RedConfig::adaptive(PACKET_BYTES), rate);
            close(red.weight(), weight, 1e-4);
            close(red.thresholds_packets().0, min_th, 1e-4);
            close(red.thresholds_packets().1, max_th, 1e-4);
            close(red.max_p_bottom, bottom, 1e-12);
        }
        let slow = red(RedConfig::adaptive(PACKET_BYTES), Rate(1_000_000));
        assert_eq!(slow.thresholds_packets(), (5.0, 15.0));
        assert_eq!(slow.max_p_bottom, 0.01);
    }

    #[test]
    fn an_automatic_weight_takes_the_round_trip_as_100_ms_at_least() {
        let red = Red::new(RedConfig::gentle(PACKET_BYTES), GBIT, Time::from_ms(1)).expect("valid");
        close(red.weight(), 1.0 / (10.0 * 0.1 * 83_333.333), 1e-5);
    }

    #[test]
    fn probability_rises_along_the_two_slopes() {
        let at = |gentle, average| {
            let mut red = red(RedConfig { gentle, ..TENTH }, GBIT);
            red.average = average;
            red.base_probability()
        };
        close(at(false, 100.0), 0.1, 1e-15);
        close(at(false, 149.999_999), 0.2, 1e-7);
        assert_eq!(at(false, 150.0), 1.0);
        close(at(true, 150.0), 0.2, 1e-15);
        close(at(true, 225.0), 0.2 + 0.8 / 2.0, 1e-15);
        assert_eq!(at(true, 300.0), 1.0);
    }

    /// P(n) that the n-th packet after a drop is the next one dropped.
    fn spacing(config: RedConfig) -> Vec<f64> {
        let mut red = settled(config, 100);
        let mut none_yet = 1.0;
        (1..=30)
            .map(|n| {
                red.count = f64::from(n);
                let probability = none_yet * red.spread(red.base_probability());
                none_yet -= probability;
                probability
            })
            .collect()
    }

    #[test]
    fn drops_are_spaced_uniformly() {
        // The count includes the packet being decided on, so without waiting the spacing is
        // uniform on 1 to 1/p - 1, with it on 1/p to 2/p - 1.
        let expect =
            |from, to| move |n| if (from..=to).contains(&n) { 1.0 / f64::from(to - from + 1) } else { 0.0 };
        for (i, got) in spacing(TENTH).into_iter().enumerate() {
            assert!((got - expect(1, 9)(i as i32 + 1)).abs() < 1e-12, "{} {got}", i + 1);
        }
        for (i, got) in spacing(RedConfig { wait: true, ..TENTH }).into_iter().enumerate() {
            assert!((got - expect(10, 19)(i as i32 + 1)).abs() < 1e-12, "{} {got}", i + 1);
        }
    }

    /// Counts of packets from one drop to the next over 10,000 drops.
    fn sampled_spacing(config: RedConfig) -> Vec<u32> {
        let mut red = settled(config, 100);
        let mut state = 1u64;
        let mut counts = vec![0; 32];
        let (mut drops, mut since) = (0, 0);
        while drops < 10_000 {
            since += 1;
            let verdict = red.arrive(Time::ZERO, busy(100), PACKET_BYTES, false, || {
                // Knuth's MMIX generator.
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 11) as f64 / 9_007_199_254_740_992.0
            });
            if verdict == Verdict::Drop {
                counts[since] += 1;
                (drops, since) = (drops + 1, 0);
            }
        }
        counts
    }

    #[test]
    fn sampled_drops_have_that_spacing() {
        for (wait, range) in [(false, 1..=9), (true, 10..=19)] {
            let counts = sampled_spacing(RedConfig { wait, ..TENTH });
            let expected = 10_000.0 / range.clone().count() as f64;
            assert_eq!(counts[range.clone()].iter().sum::<u32>(), 10_000, "none outside {range:?}");
            let chi_square: f64 =
                counts[range].iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
            // 99.9 % quantile at 9 degrees of freedom.
            assert!(chi_square < 27.9, "{chi_square}");
        }
    }

    #[test]
    fn nothing_is_dropped_below_min_th_nor_behind_one_packet() {
        let mut red = settled(TENTH, 100);
        red.count = 1e9;
        assert_eq!(red.arrive(Time::ZERO, busy(1), PACKET_BYTES, false, no_draw), Verdict::Accept);
        red.average = 49.9;
        assert_eq!(red.arrive(Time::ZERO, busy(49), PACKET_BYTES, false, no_draw), Verdict::Accept);
    }

    #[test]
    fn crossing_min_th_lets_one_packet_pass_and_restarts_the_count() {
        let mut red = red(TENTH, GBIT);
        red.average = 100.0;
        red.count = 1e9;
        assert_eq!(red.arrive(Time::ZERO, busy(100), PACKET_BYTES, false, no_draw), Verdict::Accept);
        // p = 0.1 / (1 - 2 * 0.1)
        let mut next = red.clone();
        assert_eq!(next.arrive(Time::ZERO, busy(100), PACKET_BYTES, false, || 0.1249), Verdict::Drop);
        assert_eq!(red.arrive(Time::ZERO, busy(100), PACKET_BYTES, false, || 0.1251), Verdict::Accept);
    }

    #[test]
    fn a_forced_drop_restarts_the_count() {
        let mut red = settled(RedConfig { wait: true, ..TENTH }, 100);
        red.count = 18.0;
        red.forced_drop();
        for _ in 1..10 {
            assert_eq!(red.arrive(Time::ZERO, busy(100), PACKET_BYTES, false, no_draw), Verdict::Accept);
        }
        assert_eq!(red.arrive(Time::ZERO, busy(100), PACKET_BYTES, false, || 0.0), Verdict::Drop);
    }

    #[test]
    fn marks_replace_drops_below_mark_p_only_where_the_packet_can_carry_one() {
        let verdict = |config, packets, ect| {
            settled(config, packets).arrive(Time::ZERO, busy(packets), PACKET_BYTES, ect, || 0.0)
        };
        let ecn = RedConfig { ecn: true, mark_p: 0.15, gentle: true, ..TENTH };
        assert_eq!(verdict(ecn, 100, true), Verdict::Mark);
        assert_eq!(verdict(ecn, 100, false), Verdict::Drop);
        assert_eq!(verdict(TENTH, 100, true), Verdict::Drop);
        // p_b is 0.16 at 130 packets.
        assert_eq!(verdict(ecn, 130, true), Verdict::Drop);
        let always = RedConfig { mark_p: 1.0, ..ecn };
        assert_eq!(verdict(always, 299, true), Verdict::Mark);
        assert_eq!(verdict(always, 300, true), Verdict::Drop);
    }

    #[test]
    fn byte_mode_counts_bytes_and_drops_in_proportion_to_size() {
        let config = RedConfig { byte_mode: true, ..TENTH };
        let mut red = settled(config, 100);
        // 300 bytes are a fifth of a packet: p = 0.2 * 0.1 / (1 - 0.2 * 0.1).
        let p = 0.2 * 0.1 / (1.0 - 0.2 * 0.1);
        assert_eq!(red.arrive(Time::ZERO, busy(100), 300, false, || p * 1.001), Verdict::Accept);
        close(red.count, 0.2, 1e-12);
        red.count = 0.0;
        assert_eq!(red.arrive(Time::ZERO, busy(100), 300, false, || p * 0.999), Verdict::Drop);
        // Bytes, not packets, make the average.
        let small = QueueState { packets: 1000, bytes: 100 * u64::from(PACKET_BYTES), idle_since: None };
        red.arrive(Time::ZERO, small, 300, false, || 1.0 - f64::EPSILON);
        assert_eq!(red.average_packets(), 100.0);
        // Where a drop is certain, it is so for small packets too.
        assert_eq!(settled(config, 150).arrive(Time::ZERO, busy(150), 40, false, no_draw), Verdict::Drop);
    }

    #[test]
    fn adaptive_red_steps_once_per_half_second() {
        let mut red = settled(RedConfig { adaptive: true, ..TENTH }, 60);
        let mut arrive = |at_ms| {
            red.arrive(Time::from_ms(at_ms), busy(60), PACKET_BYTES, false, || 1.0 - f64::EPSILON);
            red.max_p()
        };
        assert_eq!(arrive(499), 0.2);
        close(arrive(500), 0.2 * 0.9, 1e-15);
        close(arrive(999), 0.2 * 0.9, 1e-15);
        // Dense traffic steps twice a second, on the grid, whatever the arrivals' phase.
        for at_ms in (1001..6000).step_by(7) {
            arrive(at_ms);
        }
        close(arrive(5999), 0.2 * libm::pow(0.9, 11.0), 1e-12);
        // Ten silent seconds are one step, and the grid goes on.
        close(arrive(16_200), 0.2 * libm::pow(0.9, 12.0), 1e-12);
        close(arrive(16_499), 0.2 * libm::pow(0.9, 12.0), 1e-12);
        close(arrive(16_500), 0.2 * libm::pow(0.9, 13.0), 1e-12);
    }

    #[test]
    fn adaptive_red_holds_the_average_in_the_middle_fifth_and_max_p_in_its_range() {
        let run = |packets, start, steps: u64| {
            let mut red = settled(RedConfig { adaptive: true, max_p: start, ..TENTH }, packets);
            for i in 1..=steps {
                let queue = busy(packets);
                red.arrive(Time::from_ms(500 * i), queue, PACKET_BYTES, false, || 1.0 - f64::EPSILON);
            }
            red.max_p()
        };
        close(run(89, 0.2, 1), 0.18, 1e-15);
        assert_eq!(run(90, 0.2, 1), 0.2);
        assert_eq!(run(110, 0.2, 1), 0.2);
        close(run(111, 0.2, 1), 0.21, 1e-15);
        close(run(111, 0.02, 1), 0.025, 1e-15);
        // It stops at the first value past a bound.
        assert!((0.5..0.51).contains(&run(120, 0.2, 100)));
        assert!((0.9 * 8e-5..8e-5).contains(&run(60, 0.2, 100)));
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let new = |config| Red::new(config, GBIT, Time::ZERO).map(|_| ());
        let fixed =
            |min_th, max_th| new(RedConfig { thresholds: Thresholds::Fixed { min_th, max_th }, ..TENTH });
        for (min_th, max_th) in [(0.0, 1.0), (5.0, 5.0), (f64::NAN, 1.0), (1.0, f64::INFINITY), (-1.0, 1.0)] {
            assert!(matches!(fixed(min_th, max_th), Err(RedError::Thresholds { .. })), "{min_th} {max_th}");
        }
        let fraction = |name, got| Err(RedError::Fraction { name, got });
        assert_eq!(new(RedConfig { max_p: 0.0, ..TENTH }), fraction("max_p", 0.0));
        assert_eq!(new(RedConfig { mark_p: 1.1, ..TENTH }), fraction("mark_p", 1.1));
        assert_eq!(new(RedConfig { weight: Weight::Fixed(-0.1), ..TENTH }), fraction("weight", -0.1));
        assert_eq!(new(RedConfig::classic(0)), Err(RedError::Zero { name: "mean_packet_bytes" }));
        assert!(matches!(Red::new(TENTH, Rate(0), Time::ZERO), Err(RedError::Zero { name: "rate" })));
    }

    proptest! {
        #[test]
        fn no_traffic_breaks_it(
            (gentle, adaptive, wait, byte_mode, ecn, ect) in any::<(bool, bool, bool, bool, bool, bool)>(),
            (min_th, width) in (0.1..1e6, 0.1..1e6),
            (weight, max_p, mark_p) in (1e-9..=1.0, 1e-9..=1.0, 1e-9..=1.0),
            traffic in prop::collection::vec(
                (0..10_000_000_000_000u64, 0..2_000_000u64, 1..65_536u32, any::<bool>(), 0.0..1.0), 1..100),
        ) {
            let thresholds = Thresholds::Fixed { min_th, max_th: min_th + width };
            let config = RedConfig {
                thresholds, weight: Weight::Fixed(weight), max_p, gentle, adaptive, wait, byte_mode,
                mean_packet_bytes: PACKET_BYTES, ecn, mark_p,
            };
            let mut red = red(config, GBIT);
            let (mut now, mut longest) = (0, 0);
            for (gap, packets, packet_bytes, idle, draw) in traffic {
                let before = Time(now);
                now += gap;
                let queue = if idle {
                    QueueState { idle_since: Some(before), ..QueueState::default() }
                } else {
                    busy(packets)
                };
                longest = longest.max(queue.packets);
                let verdict = red.arrive(Time(now), queue, packet_bytes, ect, || draw);
                let average = red.average_packets();
                // Rounding may lift the average by one part in 2^53.
                prop_assert!((0.0..=longest as f64 + 1e-9).contains(&average), "average {average} of {longest}");
                prop_assert!(0.0 < red.max_p() && red.max_p() <= max_p.max(ADAPTIVE_TOP + 0.01));
                prop_assert!(verdict == Verdict::Accept || (average >= min_th && queue.packets > 1));
                prop_assert!(verdict != Verdict::Mark || (ecn && ect && red.base_probability() < mark_p));
            }
        }
    }
}
