//! Impairments have exactly the mean rates that they are given.

mod common;

use common::Draws;
use lfn_path::{
    Bernoulli, GilbertElliott, GilbertElliottConfig, ImpairError, Jitter, JitterConfig, Reordering,
};
use lfn_units::Time;

const N: u32 = 2_000_000;

/// Fails where a mean of N is five standard deviations from what it should be.
fn assert_mean(got: f64, want: f64, deviation_of_one: f64) {
    let bound = 5.0 * deviation_of_one / f64::from(N).sqrt();
    assert!((got - want).abs() <= bound, "got {got}, want {want} within {bound}");
}

fn share(mut chooses: impl FnMut() -> bool) -> f64 {
    f64::from((0..N).map(|_| u32::from(chooses())).sum::<u32>()) / f64::from(N)
}

#[test]
fn bernoulli_chooses_the_share_wanted() {
    for p in [1e-4, 0.01, 0.3, 0.9] {
        let mut draws = Draws(7);
        let mut loss = Bernoulli::new(p, || draws.next()).expect("valid");
        let got = share(|| loss.chooses(|| draws.next()));
        assert_mean(got, p, (p * (1.0 - p)).sqrt());
    }
    for p in [0.0, 1.0] {
        let mut loss = Bernoulli::new(p, common::no_draw).expect("valid");
        assert_eq!(share(|| loss.chooses(common::no_draw)), p);
    }
}

#[test]
fn bernoulli_draws_the_gap_to_the_next_one_chosen() {
    // ln(1 - 0.5) / ln(0.75) = 2.41
    let mut loss = Bernoulli::new(0.25, || 0.5).expect("valid");
    assert!(!loss.chooses(common::no_draw));
    assert!(!loss.chooses(common::no_draw));
    assert!(loss.chooses(|| 0.0));
    assert!(loss.chooses(|| 0.2));
    assert!(loss.chooses(|| 0.3));
    assert!(!loss.chooses(common::no_draw));
}

/// Mean loss, and mean length of a run of losses.
fn bursts(config: GilbertElliottConfig, seed: u64) -> (f64, f64) {
    let mut draws = Draws(seed);
    let mut loss = GilbertElliott::new(config, || draws.next()).expect("valid");
    let (mut lost, mut runs, mut before) = (0.0, 0.0, false);
    for _ in 0..N {
        let now = loss.chooses(|| draws.next());
        lost += f64::from(u8::from(now));
        runs += f64::from(u8::from(now && !before));
        before = now;
    }
    (lost / f64::from(N), lost / runs)
}

/// Standard deviation of one of many dependent trials: losses correlate over (1-p-r)^n packets.
fn deviation(config: &GilbertElliottConfig) -> f64 {
    let GilbertElliottConfig { p, r, good, bad } = *config;
    let mean = config.mean_loss();
    let share = p / (p + r);
    let state_variance = share * (1.0 - share) * (bad - good).powi(2);
    let memory = 1.0 - p - r;
    (mean * (1.0 - mean) + 2.0 * state_variance * memory / (1.0 - memory)).sqrt()
}

#[test]
fn gilbert_elliott_loses_the_mean_of_its_states() {
    let cases = [
        GilbertElliottConfig::simple(0.001, 0.1),
        GilbertElliottConfig::simple(0.2, 0.5),
        GilbertElliottConfig { p: 0.01, r: 0.04, good: 0.001, bad: 0.5 },
        GilbertElliottConfig { p: 1.0, r: 1.0, good: 0.1, bad: 0.9 },
    ];
    for (seed, config) in (1..).zip(cases) {
        assert_mean(bursts(config, seed).0, config.mean_loss(), deviation(&config));
    }
    assert_eq!(GilbertElliottConfig::simple(0.001, 0.1).mean_loss(), 0.001 / 0.101);
}

#[test]
fn gilbert_elliott_loses_in_runs_of_1_over_r() {
    let (mean_loss, run) = bursts(GilbertElliottConfig::simple(0.01, 0.25), 1);
    // A geometric length has the deviation sqrt(1-r)/r; there are N mean_loss r runs.
    let runs = f64::from(N) * mean_loss * 0.25;
    assert!((run - 4.0).abs() < 5.0 * 0.75f64.sqrt() / 0.25 / runs.sqrt(), "{run}");
}

#[test]
fn the_first_packet_meets_the_bad_state_as_often_as_any() {
    let mut draws = Draws(3);
    let config = GilbertElliottConfig::simple(0.01, 0.03);
    let rounds = 100_000;
    let lost = (0..rounds).filter(|_| {
        let mut loss = GilbertElliott::new(config, || draws.next()).expect("valid");
        loss.chooses(|| draws.next())
    });
    let got = lost.count() as f64 / f64::from(rounds);
    assert!((got - 0.25).abs() < 5.0 * (0.25 * 0.75 / f64::from(rounds)).sqrt(), "{got}");
}

#[test]
fn reordering_delays_the_share_wanted() {
    let mut draws = Draws(7);
    let late = Time::from_ms(3);
    let mut reordering = Reordering::new(0.05, late, || draws.next()).expect("valid");
    let got = share(|| match reordering.delay(|| draws.next()) {
        Time::ZERO => false,
        delay => delay == late,
    });
    assert_mean(got, 0.05, (0.05f64 * 0.95).sqrt());
}

/// Mean and standard deviation in ms of the delay, and whether packets 10 us apart overtook.
fn jittered(jitter: JitterConfig) -> (f64, f64, bool) {
    let mut draws = Draws(5);
    let mut jitter = Jitter::new(jitter).expect("valid");
    let (mut sum, mut squares, mut last, mut overtook) = (0.0, 0.0, Time::ZERO, false);
    for n in 0..N {
        let at = Time::from_us(10 * u64::from(n));
        let arrival = jitter.arrival(at, || draws.next());
        let delay = (arrival - at).as_s() * 1e3;
        (sum, squares) = (sum + delay, squares + delay * delay);
        overtook |= arrival < last;
        last = arrival;
    }
    let mean = sum / f64::from(N);
    (mean, (squares / f64::from(N) - mean * mean).sqrt(), overtook)
}

#[test]
fn uniform_jitter_has_its_mean_and_deviation() {
    let uniform = JitterConfig::uniform(Time::from_ms(2), Time::from_ms(8), false);
    let (mean, deviation, overtook) = jittered(uniform);
    let expected = 6.0 / 12f64.sqrt();
    assert_mean(mean, 5.0, expected);
    assert!((deviation / expected - 1.0).abs() < 0.002, "{deviation}");
    assert!(overtook);
}

#[test]
fn normal_jitter_has_its_mean_and_the_deviation_that_the_cut_leaves() {
    let mean_delay = Time::from_ms(5);
    // The variance that is left is 1 - 2 k phi(k) / (2 Phi(k) - 1) for a cut at k deviations.
    for (deviation, left) in [(Time::from_ms(1), 0.999_992_6), (mean_delay, 0.539_560)] {
        let (mean, got, overtook) = jittered(JitterConfig::normal(mean_delay, deviation, false));
        let expected = deviation.as_s() * 1e3 * left;
        assert_mean(mean, 5.0, expected);
        assert!((got / expected - 1.0).abs() < 0.003, "{got} {expected}");
        assert!(overtook);
    }
}

#[test]
fn ordered_jitter_overtakes_nobody() {
    let uniform = JitterConfig::uniform(Time::ZERO, Time::from_ms(1), true);
    let (mean, _, overtook) = jittered(uniform);
    assert!(!overtook);
    // The delay of the slowest of about a hundred.
    assert!((0.8..1.0).contains(&mean), "{mean}");
}

#[test]
fn impossible_impairments_are_refused() {
    for got in [-0.1, 1.1, f64::NAN] {
        let error = Bernoulli::new(got, common::no_draw).map(|_| ()).expect_err("no probability");
        assert!(matches!(error, ImpairError::Probability { name: "p", .. }), "{error}");
    }
    let gilbert_elliott = |config| GilbertElliott::new(config, || 0.5).map(|_| ()).expect_err("invalid");
    assert_eq!(gilbert_elliott(GilbertElliottConfig::simple(0.0, 0.0)), ImpairError::NoTransition);
    let config = GilbertElliottConfig { bad: 2.0, ..GilbertElliottConfig::simple(0.1, 0.1) };
    assert_eq!(gilbert_elliott(config), ImpairError::Probability { name: "bad", got: 2.0 });
    let (short, long) = (Time::from_ms(1), Time::from_ms(2));
    let jitter = |config| Jitter::new(config).map(|_| ()).expect_err("invalid");
    assert_eq!(
        jitter(JitterConfig::uniform(long, short, true)),
        ImpairError::Range { low: long, high: short }
    );
    assert_eq!(
        jitter(JitterConfig::normal(short, long, true)),
        ImpairError::Deviation { mean: short, deviation: long }
    );
}
