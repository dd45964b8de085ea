use super::*;
use crate::traffic::testing::hurst;

const GBIT: Rate = Rate(1_000_000_000);

fn level(level: u8) -> Config {
    Config::level(level, GBIT).expect("a level")
}

fn forward_only(config: Config) -> Config {
    Config { reverse: Rate(0), ..config }
}

/// Arrivals up to `until_s`.
fn arrivals(config: Config, seed: u64, until_s: u64) -> impl Iterator<Item = Arrival> {
    Background::new(config, &Streams::of_run(seed))
        .take_while(move |arrival| arrival.at <= Time::from_s(until_s))
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
    let mut nothing = Background::new(level(0), &Streams::of_run(1));
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
    let low = Background::new(uncapped(1), &Streams::of_run(1));
    let high = Background::new(uncapped(3), &Streams::of_run(1));
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
        for arrival in arrivals(forward_only(level(1)), seed, seconds).filter(|a| a.class == Class::Http) {
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
    assert!((count as f64 - expected).abs() < 3.0 * expected.sqrt(), "{count} flows, expected {expected}");
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
    let first = |seed| Background::new(level(1), &Streams::of_run(seed)).next_arrival();
    assert_ne!(first(7), first(8));
}

#[test]
fn golden_arrivals() {
    let first = Background::new(level(2), &Streams::of_run(1)).take(4).map(|a| (a.at.0, a.bytes));
    let golden = [(380_627_286, 139), (1_244_861_999, 266), (1_316_413_853, 31_494), (1_337_362_117, 870)];
    assert!(first.eq(golden));
}

#[test]
fn long_flows_start_apart() {
    let background = Background::new(level(1), &Streams::of_run(1));
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
