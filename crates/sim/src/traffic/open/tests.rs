use super::super::packmime;
use super::*;

const PATH: PathConfig = PathConfig::of_rtt(Distribution::Uniform(0.01, 0.2));

fn flows(config: &Config, seed: u64, until: Time) -> impl Iterator<Item = Transfer> {
    Open::new(config, &Streams::new(seed, "open")).expect("valid").take_while(move |flow| flow.at < until)
}

fn close(got: f64, want: f64, relative: f64) {
    assert!((got / want - 1.0).abs() <= relative, "got {got}, want {want}");
}

/// Checks the offered load over 10 seeds of `seconds` each, 2 million flows in all: 2 % is 2 standard errors
/// or a little more.
fn assert_load(config: &Config, seconds: u64) {
    let bytes: u64 =
        (0..10).flat_map(|seed| flows(config, seed, Time::from_s(seconds))).map(|f| f.bytes).sum();
    close(bytes as f64 * 8.0 / (10 * seconds) as f64, config.offered_bps(), 0.02);
}

#[test]
fn poisson_pareto_offers_the_nominal_load() {
    let config = Config::poisson(Direction::Forward, Rate(100_000_000), short_flow_bytes(), PATH);
    close(config.offered_bps(), 100e6, 1e-12);
    close(config.bytes.mean(), 36_500.0, 1e-12);
    assert_load(&config, 600);
}

#[test]
fn packmime_offers_the_nominal_load() {
    for rate in [1.0, 100.0] {
        close(packmime::gap_s(rate).mean(), 1.0 / rate, 1e-12);
    }
    let config = packmime::flows(Direction::Reverse, 1000.0, PATH);
    close(config.offered_bps(), 1000.0 * 8.0 * packmime::response_bytes().mean(), 1e-12);
    assert_load(&config, 200);
}

#[test]
fn packmime_gaps_are_the_burstier_the_fewer_connections() {
    for (rate, shape) in [(1.0, 0.587), (10.0, 0.838), (100.0, 0.949), (1000.0, 0.985)] {
        let Distribution::Weibull(_, ours) = packmime::gap_s(rate) else { panic!("not Weibull") };
        assert!((ours - shape).abs() < 0.0006, "{ours}");
        // P(X > mean) of a Weibull law of this shape.
        let config = packmime::flows(Direction::Forward, rate, PATH);
        let mut last = Time::ZERO;
        let n = 100_000;
        let longer = flows(&config, 1, Time::NEVER)
            .take(n)
            .filter(|flow| {
                let gap = flow.at - std::mem::replace(&mut last, flow.at);
                gap.as_s() > 1.0 / rate
            })
            .count();
        let want = (-libm::tgamma(1.0 + 1.0 / ours).powf(ours)).exp();
        assert!((longer as f64 / n as f64 - want).abs() < 0.005, "{longer} of {n}, want {want}");
    }
}

#[test]
fn short_flows_have_the_tail_of_the_shape() {
    let config = Config::poisson(Direction::Forward, Rate(1_000_000_000), short_flow_bytes(), PATH);
    let sizes: Vec<u64> = flows(&config, 1, Time::NEVER).take(400_000).map(|flow| flow.bytes).collect();
    let Distribution::BoundedPareto(least, most, _) = short_flow_bytes() else { panic!("not Pareto") };
    close(most / least, 1e4, 1e-12);
    assert!(sizes.iter().all(|&size| (least.floor()..=most.ceil()).contains(&(size as f64))));
    // The bound takes less than 1 % off the tail up to 100 times the least.
    for (times, tolerance) in [(10.0, 0.02), (100.0, 0.06)] {
        let above = sizes.iter().filter(|&&size| size as f64 > times * least).count() as f64;
        close(above / sizes.len() as f64, f64::powf(times, -1.2), tolerance);
    }
}

#[test]
fn paths_are_those_of_the_configuration() {
    let path = PathConfig { small_mss_share: 0.25, mss_bytes: 8960, ..PATH };
    let config = Config::poisson(Direction::Reverse, Rate(1_000_000), short_flow_bytes(), path);
    let drawn: Vec<Transfer> = flows(&config, 1, Time::NEVER).take(20_000).collect();
    assert!(drawn.iter().all(|flow| flow.direction == Direction::Reverse));
    assert!(drawn.iter().all(|flow| (Time::from_ms(10)..Time::from_ms(200)).contains(&flow.rtt)));
    let small = drawn.iter().filter(|flow| flow.mss_bytes == 536).count() as f64;
    assert!(drawn.iter().all(|flow| [536, 8960].contains(&flow.mss_bytes)));
    close(small / 20_000.0, 0.25, 0.04);
    close(drawn.iter().map(|flow| flow.rtt.as_s()).sum::<f64>() / 20_000.0, 0.105, 0.015);
}

#[test]
fn what_cannot_be_is_named() {
    let valid = Config::poisson(Direction::Forward, Rate(1), short_flow_bytes(), PATH);
    let message = |config| Open::new(&config, &Streams::new(1, "open")).expect_err("bad").to_string();
    let silent = Config::poisson(Direction::Forward, Rate(0), short_flow_bytes(), PATH);
    assert_eq!(message(silent), "gap: inf; above 0 and finite");
    let endless = Distribution::BoundedPareto(1.0, f64::INFINITY, 0.9).into();
    assert!(message(Config { bytes: endless, ..valid.clone() }).starts_with("bytes: "));
    let half = Mixture(vec![(0.5, short_flow_bytes())]);
    assert_eq!(
        message(Config { bytes: half, ..valid.clone() }),
        "bytes: probabilities that sum to 0.5; a sum of 1"
    );
    let at = |path| message(Config { path, ..valid.clone() });
    assert_eq!(at(PathConfig { mss_bytes: 0, ..PATH }), "mss: 0 bytes; at least 1 byte");
    assert_eq!(at(PathConfig { small_mss_share: 1.5, ..PATH }), "small_mss_share: 1.5; from 0 to 1");
    let negative = Distribution::Constant(-0.1);
    assert_eq!(at(PathConfig { rtt_s: negative, ..PATH }), "rtt: -0.1; at least 0 and finite");
}
