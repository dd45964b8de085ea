//! Impairments of a path: loss, reordering, duplication, jitter.
//!
//! Each has a stream of random numbers of its own, whose draws are arguments: `draw` gives numbers
//! uniform on \[0, 1).

use lfn_keys::{keys, kinds, Given, Kind, Kinds, Said, Span, Value, Wrong, DELAY_MAX, PROBABILITY};
use lfn_units::Time;

/// Why an impairment cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ImpairError {
    /// A probability that is not between 0 and 1.
    #[error("{name} must be a probability from 0 to 1, got {got}")]
    Probability {
        /// The parameter.
        name: &'static str,
        /// Its value.
        got: f64,
    },
    /// Neither state of the Gilbert-Elliott model is ever left.
    #[error("p and r must not both be 0: the path would stay for ever in the state that it began in")]
    NoTransition,
    /// A range of delays whose end lies before its beginning.
    #[error("jitter needs low <= high, got {low} and {high}")]
    Range {
        /// As configured.
        low: Time,
        /// As configured.
        high: Time,
    },
    /// A normal jitter that the cut at 0 would shape more than its deviation.
    #[error("normal jitter needs deviation <= mean, got {deviation} and {mean}: it is cut at 0 and at twice the mean")]
    Deviation {
        /// As configured.
        mean: Time,
        /// As configured.
        deviation: Time,
    },
}

fn probability(name: &'static str, got: f64) -> Result<f64, ImpairError> {
    // Not so for NaN.
    if (0.0..=1.0).contains(&got) {
        return Ok(got);
    }
    Err(ImpairError::Probability { name, got })
}

/// How many packets pass before the next that a Bernoulli trial of probability `p` chooses:
/// P(N >= n) = (1-p)^n. One draw for each packet chosen instead of one for each packet.
fn gap(p: f64, draw: impl FnOnce() -> f64) -> u64 {
    if p >= 1.0 {
        return 0;
    }
    if p <= 0.0 {
        return u64::MAX;
    }
    // 1 - draw is above 0.
    (libm::log(1.0 - draw()) / libm::log1p(-p)) as u64
}

/// Chooses every packet on its own with one probability: for loss, duplication, reordering.
#[derive(Clone, Debug)]
pub struct Bernoulli {
    p: f64,
    /// Packets to pass before the next one chosen.
    until: u64,
}

impl Bernoulli {
    /// Chooses with probability `p`.
    ///
    /// # Errors
    /// [`ImpairError::Probability`] when `p` is none.
    pub fn new(p: f64, draw: impl FnOnce() -> f64) -> Result<Bernoulli, ImpairError> {
        let p = probability("p", p)?;
        Ok(Bernoulli { p, until: gap(p, draw) })
    }

    /// Whether it chooses the next packet.
    #[inline]
    pub fn chooses(&mut self, draw: impl FnOnce() -> f64) -> bool {
        if self.until > 0 {
            // At p = 0 the count lasts for 2^64 packets.
            self.until -= 1;
            return false;
        }
        self.until = gap(self.p, draw);
        true
    }
}

/// Probability of loss, below 1.
pub const LOSS: Span = Span::at_least(0.0).below(1.0);

keys! {
    /// Losses in bursts (Gilbert 1960, Elliott 1963): before each packet the path may change between a good and a bad
    /// state. The mean loss is (r good + p bad) / (p + r).
    #[derive(Copy)]
    pub struct GilbertElliottConfig {
        /// Probability to turn from good to bad.
        p: f64, in PROBABILITY, like "p = 0.0001";
        /// Probability to turn from bad to good: a bad time lasts 1/r packets in the mean.
        r: f64, in Span::above(0.0).at_most(1.0), like "r = 0.1";
        /// Loss in the good state (1-k in Elliott's letters).
        good: f64 = 0.0, in PROBABILITY;
        /// Loss in the bad state (1-h).
        bad: f64 = 1.0, in PROBABILITY;
    }
}

impl GilbertElliottConfig {
    /// Gilbert's simplest case: no loss while good, nothing but loss while bad.
    pub const fn simple(p: f64, r: f64) -> GilbertElliottConfig {
        GilbertElliottConfig { p, r, good: 0.0, bad: 1.0 }
    }

    /// The share of packets lost: a share p/(p+r) of them meets the bad state.
    pub fn mean_loss(&self) -> f64 {
        (self.r * self.good + self.p * self.bad) / (self.p + self.r)
    }
}

/// Loss in bursts.
#[derive(Clone, Debug)]
pub struct GilbertElliott {
    /// To leave the good and the bad state.
    leave: [f64; 2],
    losses: [Bernoulli; 2],
    bad: bool,
    /// Packets that the state still holds for.
    holds: u64,
}

impl GilbertElliott {
    /// A path whose first packet meets the bad state with probability p/(p+r), as every later one does.
    ///
    /// # Errors
    /// [`ImpairError`] when a parameter is no probability, or both p and r are 0.
    pub fn new(
        config: GilbertElliottConfig,
        mut draw: impl FnMut() -> f64,
    ) -> Result<GilbertElliott, ImpairError> {
        let leave = [probability("p", config.p)?, probability("r", config.r)?];
        let loss = [probability("good", config.good)?, probability("bad", config.bad)?];
        if leave == [0.0, 0.0] {
            return Err(ImpairError::NoTransition);
        }
        let bad = draw() < config.p / (config.p + config.r);
        let holds = gap(leave[usize::from(bad)], &mut draw).saturating_add(1);
        let mut losses = |p: f64| Bernoulli::new(p, &mut draw);
        Ok(GilbertElliott { leave, losses: [losses(loss[0])?, losses(loss[1])?], bad, holds })
    }

    /// Whether the next packet is lost.
    #[inline]
    pub fn chooses(&mut self, mut draw: impl FnMut() -> f64) -> bool {
        if self.holds == 0 {
            self.bad = !self.bad;
            self.holds = gap(self.leave[usize::from(self.bad)], &mut draw).saturating_add(1);
        }
        self.holds -= 1;
        self.losses[usize::from(self.bad)].chooses(draw)
    }
}

/// Delays a share of the packets by a fixed time, so that those sent within it overtake them.
#[derive(Clone, Debug)]
pub struct Reordering {
    choice: Bernoulli,
    delay: Time,
}

impl Reordering {
    /// Delays a packet by `delay` with probability `p`.
    ///
    /// # Errors
    /// [`ImpairError::Probability`] when `p` is none.
    pub fn new(p: f64, delay: Time, draw: impl FnOnce() -> f64) -> Result<Reordering, ImpairError> {
        Ok(Reordering { choice: Bernoulli::new(p, draw)?, delay })
    }

    /// The extra delay of the next packet.
    #[inline]
    pub fn delay(&mut self, draw: impl FnOnce() -> f64) -> Time {
        if self.choice.chooses(draw) {
            return self.delay;
        }
        Time::ZERO
    }
}

keys! {
    /// Packets that are held up, so that others overtake them.
    #[derive(Copy)]
    pub struct Reorder {
        /// Probability that a packet is held up.
        p: f64, in PROBABILITY, like "p = 0.01";
        /// For how long.
        delay: Time, in Time::ZERO..=DELAY_MAX, like "delay = \"1ms\"";
    }
}

keys! {
    /// Uniform jitter.
    #[derive(Copy)]
    pub struct UniformJitter {
        /// The least delay.
        low: Time = Time::ZERO, in Time::ZERO..=DELAY_MAX;
        /// The longest.
        high: Time, in Time::ZERO..=DELAY_MAX, like "high = \"1ms\"";
        /// A packet that would overtake an earlier one leaves right after it.
        keep_order: bool = true;
    }
    settle UniformJitter::check;
}

impl UniformJitter {
    fn check(&mut self, _: &dyn Fn(&str) -> bool) -> Result<(), Wrong> {
        if self.low > self.high {
            let hint = format!("allowed: at least low, {}", self.low);
            return Err(Wrong::new(self.high.to_string(), hint).of("high"));
        }
        Ok(())
    }
}

keys! {
    /// Normal jitter.
    #[derive(Copy)]
    pub struct NormalJitter {
        /// The mean.
        mean: Time, in Time::ZERO..=DELAY_MAX, like "mean = \"1ms\"";
        /// The standard deviation before the cut, at most the mean.
        deviation: Time, in Time::ZERO..=DELAY_MAX, like "deviation = \"0.2ms\"";
        /// A packet that would overtake an earlier one leaves right after it.
        keep_order: bool = true;
    }
    settle NormalJitter::check;
}

impl NormalJitter {
    fn check(&mut self, _: &dyn Fn(&str) -> bool) -> Result<(), Wrong> {
        if self.deviation > self.mean {
            let hint = format!("allowed: at most the mean, {}", self.mean);
            return Err(Wrong::new(self.deviation.to_string(), hint).of("deviation"));
        }
        Ok(())
    }
}

/// How an additional delay is distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum JitterConfig {
    /// Uniform from `low` to `high`.
    Uniform(UniformJitter),
    /// Normal, cut at 0 and at twice the mean so that the mean is exact; the cut lowers the standard deviation, to 0.54
    /// of the mean where `deviation` is the mean.
    Normal(NormalJitter),
}

impl JitterConfig {
    /// Uniform from `low` to `high`; with `keep_order` no packet overtakes.
    pub const fn uniform(low: Time, high: Time, keep_order: bool) -> JitterConfig {
        JitterConfig::Uniform(UniformJitter { low, high, keep_order })
    }

    /// Whether a packet may come later for it: none comes late without a delay, unless it may not overtake.
    fn moves(&self) -> bool {
        match *self {
            JitterConfig::Uniform(it) => it.keep_order || it.low.max(it.high) > Time::ZERO,
            JitterConfig::Normal(it) => it.keep_order || it.mean.max(it.deviation) > Time::ZERO,
        }
    }

    /// Normal, with this standard deviation before the cut; with `keep_order` no packet overtakes.
    pub const fn normal(mean: Time, deviation: Time, keep_order: bool) -> JitterConfig {
        JitterConfig::Normal(NormalJitter { mean, deviation, keep_order })
    }
}

kinds! {
    JitterConfig, "Jitter", "An additional delay and its distribution." {
        Uniform = "uniform", "Uniform between two delays.";
        Normal = "normal", "Normal, cut at 0 and at twice the mean.";
    }
}

/// Loss of packets behind a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Each with this probability.
    Bernoulli(f64),
    /// In bursts.
    Bursts(BurstLoss),
}

impl Default for Loss {
    fn default() -> Loss {
        Loss::NONE
    }
}

impl Loss {
    /// No loss.
    pub const NONE: Loss = Loss::Bernoulli(0.0);

    /// The share of packets lost, in the mean.
    pub fn mean(&self) -> f64 {
        match self {
            Loss::Bernoulli(p) => *p,
            Loss::Bursts(BurstLoss::GilbertElliott(config)) => config.mean_loss(),
        }
    }
}

impl From<GilbertElliottConfig> for Loss {
    fn from(config: GilbertElliottConfig) -> Loss {
        Loss::Bursts(BurstLoss::GilbertElliott(config))
    }
}

impl Value for Loss {
    type Range = ();
    const ANY: () = ();

    fn read(given: &Given, (): &()) -> Result<Loss, Wrong> {
        match given {
            Given::Table(_) => BurstLoss::of(given).map(Loss::Bursts),
            other => f64::read(other, &LOSS).map(Loss::Bernoulli),
        }
    }

    fn said(&self) -> Said {
        match self {
            Loss::Bernoulli(p) => p.said(),
            Loss::Bursts(bursts) => bursts.said(),
        }
    }

    fn kind((): &()) -> Kind {
        let kinds = vec![
            ("Each with this probability.", f64::kind(&LOSS)),
            ("In bursts.", <BurstLoss as Value>::kind(&())),
        ];
        Kind::Either("Loss", "Loss of packets behind a queue.", kinds)
    }
}

/// Loss in bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BurstLoss {
    /// A good and a bad state.
    GilbertElliott(GilbertElliottConfig),
}

kinds! {
    BurstLoss, "BurstLoss", "Loss in bursts.", like "kind = \"gilbert-elliott\"" {
        GilbertElliott = "gilbert-elliott", "A good and a bad state.";
    }
}

keys! {
    /// Impairments of data packets behind the queue.
    #[derive(Copy)]
    pub struct Impair, part of another table {
        /// Data packets lost behind the queue: a probability, or a table for losses in bursts.
        loss: Loss = Loss::default();
        /// Probability that a data packet arrives twice.
        duplicate: f64 = 0.0, in LOSS;
        /// Data packets that are held up, so that others overtake them. Default none.
        reorder: Option<Reorder> = None;
        /// An additional delay, drawn for each data packet. Default none.
        jitter: Option<JitterConfig> = None;
    }
}

impl Impair {
    /// Whether it changes when packets arrive, or how often.
    pub fn moves(&self) -> bool {
        let reorders = self.reorder.is_some_and(|it| it.p > 0.0 && it.delay > Time::ZERO);
        self.duplicate > 0.0 || reorders || self.jitter.is_some_and(|it| it.moves())
    }
}

/// Packets that would arrive at one instant arrive in their order, a picosecond apart. At equal times the order would be
/// that of the flows' numbers, and the first flow would always find the emptiest queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turn {
    last: Option<Time>,
}

impl Turn {
    /// When a packet arrives that would arrive at `at`: behind those before it.
    #[must_use]
    pub fn next(&mut self, at: Time) -> Time {
        let arrives = self.last.map_or(at, |last| at.max(last.after(Time(1))));
        self.last = Some(arrives);
        arrives
    }
}

/// An additional delay, drawn for each packet.
#[derive(Clone, Debug)]
pub struct Jitter {
    config: JitterConfig,
    turn: Option<Turn>,
}

impl Jitter {
    /// With `keep_order` no packet overtakes: one that would waits for its predecessor, which makes
    /// the mean delay longer than the distribution's. Without, packets that follow within it are reordered.
    ///
    /// # Errors
    /// [`ImpairError::Range`] or [`ImpairError::Deviation`].
    pub fn new(config: JitterConfig) -> Result<Jitter, ImpairError> {
        let keeps_order = match config {
            JitterConfig::Uniform(UniformJitter { low, high, .. }) if low > high => {
                return Err(ImpairError::Range { low, high });
            }
            JitterConfig::Normal(NormalJitter { mean, deviation, .. }) if deviation > mean => {
                return Err(ImpairError::Deviation { mean, deviation });
            }
            JitterConfig::Uniform(jitter) => jitter.keep_order,
            JitterConfig::Normal(jitter) => jitter.keep_order,
        };
        Ok(Jitter { config, turn: keeps_order.then(Turn::default) })
    }

    /// When a packet arrives that would arrive at `at` without jitter. Packets come in their order.
    pub fn arrival(&mut self, at: Time, draw: impl FnMut() -> f64) -> Time {
        let arrival = at.after(self.config.draw(draw));
        self.turn.as_mut().map_or(arrival, |turn| turn.next(arrival))
    }
}

impl JitterConfig {
    /// Whether delays differ.
    pub fn varies(&self) -> bool {
        match self {
            JitterConfig::Uniform(UniformJitter { low, high, .. }) => low < high,
            JitterConfig::Normal(NormalJitter { deviation, .. }) => *deviation > Time::ZERO,
        }
    }

    fn draw(self, mut draw: impl FnMut() -> f64) -> Time {
        match self {
            JitterConfig::Uniform(UniformJitter { low, high, .. }) => {
                Time((low.0 as f64 + (high - low).0 as f64 * draw() + 0.5) as u64)
            }
            JitterConfig::Normal(NormalJitter { mean, deviation, .. }) => loop {
                // Box and Muller 1958.
                let radius = libm::sqrt(-2.0 * libm::log(1.0 - draw()));
                let normal = radius * libm::cos(2.0 * std::f64::consts::PI * draw());
                let delay = mean.0 as f64 + deviation.0 as f64 * normal;
                if (0.0..=2.0 * mean.0 as f64).contains(&delay) {
                    return Time((delay + 0.5) as u64);
                }
            },
        }
    }
}
