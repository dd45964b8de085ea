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
    if config.rules == RedRules::Ns2 {
        assert_eq!(red.arrive(Time::ZERO, busy(packets), PACKET_BYTES, false, no_draw), Verdict::Accept);
    }
    red.count = 0.0;
    red
}

/// p_b = 0.1 at the queue of 100 packets that the tests below use.
fn tenth() -> RedConfig {
    let thresholds = Thresholds::Fixed { min_th: 50.0, max_th: 150.0 };
    RedConfig { max_p: 0.2, ..RedConfig::classic(PACKET_BYTES) }.between(thresholds)
}

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
        let mut red = red(RedConfig { gentle, ..tenth() }, GBIT);
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
    for (i, got) in spacing(tenth()).into_iter().enumerate() {
        assert!((got - expect(1, 9)(i as i32 + 1)).abs() < 1e-12, "{} {got}", i + 1);
    }
    for (i, got) in spacing(RedConfig { wait: true, ..tenth() }).into_iter().enumerate() {
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
        let counts = sampled_spacing(RedConfig { wait, ..tenth() });
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
    let mut red = settled(tenth(), 100);
    red.count = 1e9;
    assert_eq!(red.arrive(Time::ZERO, busy(1), PACKET_BYTES, false, no_draw), Verdict::Accept);
    red.average = 49.9;
    assert_eq!(red.arrive(Time::ZERO, busy(49), PACKET_BYTES, false, no_draw), Verdict::Accept);
}

#[test]
fn crossing_min_th_lets_one_packet_pass_and_restarts_the_count() {
    let mut red = red(tenth(), GBIT);
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
    let mut red = settled(RedConfig { wait: true, ..tenth() }, 100);
    red.count = 14.0;
    let none = Limit { packets: 0, bytes: 0 };
    let forced = red.admit(Time::ZERO, busy(100), none, PACKET_BYTES, false, || 0.99);
    assert_eq!(forced, Err(DropReason::Full));
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
    let ecn = RedConfig { ecn: true, mark_p: 0.15, gentle: true, ..tenth() };
    assert_eq!(verdict(ecn, 100, true), Verdict::Mark);
    assert_eq!(verdict(ecn, 100, false), Verdict::Drop);
    assert_eq!(verdict(tenth(), 100, true), Verdict::Drop);
    // p_b is 0.16 at 130 packets.
    assert_eq!(verdict(ecn, 130, true), Verdict::Drop);
    let always = RedConfig { mark_p: 1.0, ..ecn };
    assert_eq!(verdict(always, 299, true), Verdict::Mark);
    assert_eq!(verdict(RedConfig { mark_p: 0.99, ..ecn }, 300, true), Verdict::Drop);
    // Where a drop is certain 1 marks too, which makes close thresholds the step that DCTCP wants.
    assert_eq!(verdict(always, 300, true), Verdict::Mark);
    assert_eq!(verdict(always, 300, false), Verdict::Drop);
}

#[test]
fn byte_mode_counts_bytes_and_drops_in_proportion_to_size() {
    let config = RedConfig { byte_mode: true, ..tenth() };
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
    let mut red = settled(RedConfig { adaptive: true, ..tenth() }, 60);
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
        let mut red = settled(RedConfig { adaptive: true, max_p: start, ..tenth() }, packets);
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
    let fixed = |min_th, max_th| new(tenth().between(Thresholds::Fixed { min_th, max_th }));
    for (min_th, max_th) in [(0.0, 1.0), (5.0, 5.0), (f64::NAN, 1.0), (1.0, f64::INFINITY), (-1.0, 1.0)] {
        assert!(matches!(fixed(min_th, max_th), Err(RedError::Thresholds { .. })), "{min_th} {max_th}");
    }
    let fraction = |name, got| Err(RedError::Fraction { name, got });
    assert_eq!(new(RedConfig { max_p: 0.0, ..tenth() }), fraction("max_p", 0.0));
    assert_eq!(new(RedConfig { mark_p: 1.1, ..tenth() }), fraction("mark_p", 1.1));
    assert_eq!(new(RedConfig { weight: Weight::Fixed(-0.1), ..tenth() }), fraction("weight", -0.1));
    assert_eq!(new(RedConfig::classic(0)), Err(RedError::Zero { name: "mean_packet_bytes" }));
    assert!(matches!(Red::new(tenth(), Rate(0), Time::ZERO), Err(RedError::Zero { name: "rate" })));
}

proptest! {
    #[test]
    fn no_traffic_breaks_it(
        (gentle, adaptive, wait, byte_mode, ecn, ect) in any::<(bool, bool, bool, bool, bool, bool)>(),
        linux in any::<bool>(),
        (min_th, width) in (0.1..1e6, 0.1..1e6),
        (weight, max_p, mark_p) in (1e-9..=1.0, 1e-9..=1.0, 1e-9..=1.0),
        traffic in prop::collection::vec(
            (0..10_000_000_000_000u64, 0..2_000_000u64, 1..65_536u32, any::<bool>(), 0.0..1.0), 1..100),
    ) {
        let thresholds = Thresholds::Fixed { min_th, max_th: min_th + width };
        let config = RedConfig {
            rules: if linux { RedRules::Linux } else { RedRules::Ns2 },
            weight: Weight::Fixed(weight), max_p, gentle, adaptive, wait, byte_mode, ecn, mark_p,
            ..RedConfig::classic(PACKET_BYTES).between(thresholds)
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
            prop_assert!(verdict == Verdict::Accept || (average >= min_th && (linux || queue.packets > 1)));
            prop_assert!(verdict != Verdict::Mark || (ecn && ect && (red.base_probability() < mark_p || mark_p >= 1.0)));
        }
    }
}

#[test]
fn by_linuxs_rules_the_average_alone_decides() {
    let mut red = settled(RedConfig { rules: RedRules::Linux, ..tenth() }, 0);
    red.average = 1000.0;
    for _ in 0..3 {
        assert_eq!(red.arrive(Time::ZERO, busy(0), PACKET_BYTES, false, no_draw), Verdict::Drop);
    }
    // It crosses max_th and min_th again with a new count and a new draw.
    red.average = 100.0;
    assert_eq!(red.arrive(Time::ZERO, busy(100), PACKET_BYTES, false, || 0.25), Verdict::Accept);
    for verdict in [Verdict::Accept, Verdict::Accept, Verdict::Drop] {
        red.average = 100.0;
        assert_eq!(red.arrive(Time::ZERO, busy(100), PACKET_BYTES, false, || 0.25), verdict);
    }
}

#[test]
fn drops_of_linux_are_spaced_uniformly() {
    let counts = sampled_spacing(RedConfig { rules: RedRules::Linux, ..tenth() });
    let chi_square: f64 = counts[1..=10].iter().map(|&n| (f64::from(n) - 1000.0).powi(2) / 1000.0).sum();
    assert_eq!(counts[1..=10].iter().sum::<u32>(), 10_000);
    // 99.9 % quantile at 9 degrees of freedom.
    assert!(chi_square < 27.9, "{chi_square}");
}

#[test]
fn idle_time_counts_once_though_its_packets_are_dropped() {
    let mut red = red(RedConfig { rules: RedRules::Linux, ..tenth() }, GBIT);
    red.average = 1000.0;
    let idle = QueueState { idle_since: Some(Time::from_ms(7)), ..QueueState::default() };
    for _ in 0..3 {
        assert_eq!(red.arrive(Time::from_ms(8), idle, PACKET_BYTES, false, no_draw), Verdict::Drop);
    }
    assert_eq!(red.arrive(Time::from_ms(9), idle, PACKET_BYTES, false, no_draw), Verdict::Drop);
    // A cell is 8,192 us; after a drop another idle time begins, which the second and the third packet end at once.
    let left = 1.0 - 1000.0 / 8192.0;
    close(red.average_packets(), 1000.0 * left * left, 1e-12);
}

/// tc of iproute2 6.1: with 10 Mbit/s, packets of 1514 bytes and a weight of 1/512, `Scell_log` is 20.
#[test]
fn in_idle_time_linuxs_average_falls_by_its_table() {
    let idle = LinuxIdle::new(1.0 / 512.0, 1e7 / (8.0 * 1514.0));
    assert_eq!(idle.cell_us, 1 << 20);
    let kept = |us: u64| idle.kept(Time::from_us(us));
    assert_eq!(kept(0), 1.0);
    close(kept(1 << 18), 0.75, 1e-12);
    // Half of a cell takes one half, and no more goes until a power of 2 is rounded up: 0.108 in a cell.
    assert_eq!((kept(1 << 19), kept(4 << 20), kept(5 << 20)), (0.5, 0.5, 0.5));
    assert_eq!((kept(14 << 20), kept(254 << 20)), (0.25, libm::exp2(-28.0)));
    assert_eq!((kept(255 << 20), kept(u64::MAX / 2_000_000)), (libm::exp2(-31.0), libm::exp2(-31.0)));
}
