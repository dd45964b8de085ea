use proptest::prelude::*;

use super::super::testing::hurst;
use super::*;

fn bursts(packet_bytes: u32, bursts: Vec<Burst>) -> Config {
    Config { packet_bytes, pattern: Pattern::Bursts(bursts) }
}

fn on_off(packet_bytes: u32, on_off: OnOff) -> Config {
    Config { packet_bytes, pattern: Pattern::OnOff(on_off) }
}

fn packets(config: &Config, seed: u64) -> Udp {
    Udp::new(config, &Streams::new(seed, "udp")).expect("valid")
}

fn rate(text: &str) -> Rate {
    text.parse().expect("a rate")
}

fn bits_until(udp: &mut Udp, until: Time) -> f64 {
    let mut bytes = 0;
    while udp.next_at() < until {
        bytes += u64::from(udp.next().expect("there is one").bytes);
    }
    bytes as f64 * 8.0
}

#[test]
fn a_burst_of_5_gbit_per_s() {
    // A packet of 1500 bytes every 2.4 us, for 2 s from 10 s on.
    let burst = Burst { start: Time::from_s(10), stop: Time::from_s(12), rate: rate("5Gbit/s") };
    let config = bursts(1500, vec![burst]);
    let sent: Vec<Packet> = packets(&config, 1).collect();
    assert_eq!(sent.len(), 833_334);
    let due = |k: u64| Packet { at: Time::from_s(10) + Time::from_ns(2_400 * k), bytes: 1500 };
    assert!(sent.iter().zip(0..).all(|(packet, k)| *packet == due(k)));
    assert!((config.offered_bps(Time::from_s(20)) / 0.5e9 - 1.0).abs() < 1e-12);
}

#[test]
fn an_interval_that_is_no_whole_picosecond_does_not_drift() {
    // 1000 bytes at 3 Gbit/s: 2,666,666.67 ps, three of them 8 us.
    let burst = Burst { start: Time::ZERO, stop: Time::from_s(1), rate: rate("3Gbit/s") };
    let sent: Vec<Time> = packets(&bursts(1000, vec![burst]), 1).map(|packet| packet.at).collect();
    assert_eq!(sent[..4], [0, 2_666_667, 5_333_334, 8_000_000].map(Time));
    assert_eq!(sent.len(), 375_000);
    assert!(sent.iter().step_by(3).zip(0..).all(|(at, k)| *at == Time::from_us(8 * k)));
}

#[test]
fn steps_of_the_evaluation_suite() {
    let (stop, start) = ([75_000_000, 0], [0, 75_000_000]);
    let second = Time::from_s(1);
    let sent = |rates: [u64; 2]| {
        let steps = Burst::steps(Time::from_s(5), second, rates.map(Rate));
        packets(&bursts(1500, steps), 1).map(|packet| packet.at).collect::<Vec<Time>>()
    };
    assert!(sent(stop).iter().all(|at| (Time::from_s(5)..Time::from_s(6)).contains(at)));
    assert!(sent(start).iter().all(|at| (Time::from_s(6)..Time::from_s(7)).contains(at)));
    assert_eq!((sent(stop).len(), sent(start).len()), (6250, 6250));
    // 2.5, 5, ... 75 Mbit/s: 208 1/3 packets more every second, and none lost between steps.
    let ramp = Burst::steps(Time::ZERO, second, (1..=30).map(|step| Rate(2_500_000 * step)));
    let sent: Vec<Time> = packets(&bursts(1500, ramp), 1).map(|packet| packet.at).collect();
    for step in 1..=30u64 {
        let packets = sent.iter().filter(|at| **at < Time::from_s(step)).count() as u64;
        assert_eq!(packets, (step * (step + 1) / 2 * 2_500_000).div_ceil(12_000));
    }
}

#[test]
fn nothing_to_send_is_nothing() {
    assert_eq!(packets(&bursts(1500, vec![]), 1).next(), None);
    let silence = Burst { start: Time::ZERO, stop: Time::from_s(1), rate: Rate(0) };
    let mut udp = packets(&bursts(1500, vec![silence]), 1);
    assert_eq!((udp.next_at(), udp.next()), (Time::NEVER, None));
}

proptest! {
    #[test]
    fn every_packet_goes_as_soon_as_the_rate_has_filled_it(
        packet_bytes in 1_u32..20_000,
        parts in prop::collection::vec((0_u64..1_000_000_007, 1_u64..1_000_000_007, 1_u64..20_000_000), 1..8),
    ) {
        let mut end = Time::ZERO;
        let list: Vec<Burst> = parts
            .into_iter()
            .map(|(pause, length, rate)| {
                let start = end + Time(pause * 100);
                end = start + Time(length * 100);
                Burst { start, stop: end, rate: Rate(rate) }
            })
            .collect();
        // The rate summed over time, in bits times ps per s.
        let filled = |at: Time| -> u128 {
            let sum = |burst: &Burst| {
                u128::from(at.min(burst.stop).since(burst.start).0) * u128::from(burst.rate.0)
            };
            list.iter().map(sum).sum()
        };
        let packet = u128::from(packet_bytes) * 8_000_000_000_000;
        let sent: Vec<Time> = packets(&bursts(packet_bytes, list.clone()), 1).map(|p| p.at).collect();
        for (at, k) in sent.iter().zip(0..) {
            prop_assert!(filled(*at) >= k * packet);
            let first_of_burst = list.iter().any(|burst| burst.start == *at);
            prop_assert!(first_of_burst || filled(Time(at.0 - 1)) < k * packet);
        }
        let last = filled(end) - u128::from(list[list.len() - 1].rate.0);
        prop_assert_eq!(sent.len() as u128, last / packet + 1);
    }
}

#[test]
fn on_off_load_is_the_nominal_one() {
    // Packets of 100 kB keep the test short; the load is decided by bursts and pauses.
    let config = on_off(100_000, OnOff::gigabit(100));
    let (seeds, until) = (10, Time::from_s(1000));
    let nominal = config.offered_bps(until);
    assert_eq!(nominal, 500e6);
    let bits: f64 = (0..seeds).map(|seed| bits_until(&mut packets(&config, seed), until)).sum();
    let load = bits / (seeds * 1000) as f64;
    assert!((load / nominal - 1.0).abs() < 0.02, "{load}");
}

#[test]
fn on_off_load_is_the_nominal_one_from_the_first_second() {
    // Half of 2000 sources send at any instant: three standard errors are 3.4 %.
    let config = on_off(10_000, OnOff { sources: 2000, ..OnOff::gigabit(100) });
    let mut udp = packets(&config, 1);
    for tenth in 1..=10 {
        let bits = bits_until(&mut udp, Time::from_ms(100 * tenth));
        let nominal = config.offered_bps(Time::from_s(1)) / 10.0;
        assert!((bits / nominal - 1.0).abs() < 0.04, "{bits} of {nominal} in tenth {tenth}");
    }
}

#[test]
fn sources_begin_somewhere_in_a_burst_or_a_pause() {
    // The rest of a duration at a random instant exceeds the least duration with a probability of
    // 1 - least/mean; here the least is 0.168 s and the mean 0.5 s.
    let config = OnOff::gigabit(1);
    let streams = Streams::new(1, "udp");
    let first: Vec<Time> = (0..10_000)
        .filter_map(|i| Source::on_off(1000, &config, &streams.part("source", i)).next())
        .collect();
    let least = Time::from_s_f64(0.5 / Distribution::BoundedPareto(1.0, 1e4, 1.5).mean());
    // Within 0.8 ms, a packet's time, if it sends now; else when its pause ends.
    let pauses = first.iter().filter(|at| **at > Time::from_us(800)).count() as f64;
    let long = first.iter().filter(|at| **at > least).count() as f64;
    assert!((pauses / 10_000.0 - 0.5).abs() < 0.015, "{pauses}");
    let want = 1.0 - least.as_s() / 0.5;
    assert!((long / pauses - want).abs() < 0.02, "{long} of {pauses}, want {want}");
}

#[test]
fn bursts_and_pauses_have_the_tail_of_the_shape() {
    // One packet a millisecond in a burst; a longer gap is a pause.
    let packet = Time::from_ms(1);
    let source = OnOff { sources: 1, rate: Rate(8_000_000), ..OnOff::gigabit(1) };
    let (mut bursts_s, mut pauses_s) = (Vec::new(), Vec::new());
    let (mut start, mut last) = (Time::ZERO, Time::ZERO);
    for Packet { at, .. } in packets(&on_off(1000, source), 3) {
        if at - last > Time(2 * packet.0) {
            bursts_s.push((last - start + packet).as_s());
            pauses_s.push((at - last - packet).as_s());
            start = at;
        }
        last = at;
        if pauses_s.len() == 20_000 {
            break;
        }
    }
    for mut lengths_s in [bursts_s, pauses_s] {
        // The first began before time 0.
        lengths_s.remove(0);
        // Hill's estimator over the 2000 longest of 20,000: its standard error is 1.5 / sqrt(2000).
        lengths_s.sort_by(|a, b| b.total_cmp(a));
        let log_excess: f64 = lengths_s[..2000].iter().map(|x| (x / lengths_s[2000]).ln()).sum();
        let shape = 2000.0 / log_excess;
        assert!((shape - 1.5).abs() < 3.0 * 1.5 / 2000_f64.sqrt(), "{shape}");
        let shortest = lengths_s[lengths_s.len() - 1];
        assert!((shortest - 0.1667).abs() < 0.003, "{shortest}");
    }
}

#[test]
fn the_sum_of_on_off_sources_is_long_range_dependent() {
    let of_shape = |shape: f64| {
        let config = on_off(20_000, OnOff { shape, ..OnOff::gigabit(50) });
        let of_seed = |seed| {
            let mut bins = vec![0.0; 10_000];
            for Packet { at, bytes } in packets(&config, seed) {
                let Some(bin) = bins.get_mut((at.0 / Time::from_ms(100).0) as usize) else { break };
                *bin += f64::from(bytes);
            }
            hurst(&bins)
        };
        (0..4).map(of_seed).sum::<f64>() / 4.0
    };
    // H = (3 - shape) / 2, and 1/2 where the variance is finite. From the variances of some means over
    // at most 50 s a tenth is within the error.
    let (heavy, light) = (of_shape(1.5), of_shape(3.5));
    assert!((heavy - 0.75).abs() < 0.1, "H = {heavy} at shape 1.5");
    assert!((light - 0.5).abs() < 0.1, "H = {light} at shape 3.5");
}

#[test]
fn a_source_more_shifts_no_draw() {
    let of = |sources| packets(&on_off(1000, OnOff { rate: Rate(1_000_000), ..OnOff::gigabit(sources) }), 5);
    let until = |packet: &Packet| packet.at < Time::from_s(20);
    let two: Vec<Packet> = of(2).take_while(until).collect();
    let three: Vec<Packet> = of(3).take_while(until).collect();
    assert!(two.is_sorted_by_key(|packet| packet.at) && three.is_sorted_by_key(|packet| packet.at));
    let mut rest = three.iter();
    assert!(two.iter().all(|packet| rest.any(|other| other == packet)));
    assert!(of(3).take_while(until).eq(three.iter().copied()));
    assert_ne!(two[..], packets(&on_off(1000, OnOff::gigabit(2)), 6).take(two.len()).collect::<Vec<_>>()[..]);
}

#[test]
fn what_cannot_be_is_named() {
    let message = |config: Config| Udp::new(&config, &Streams::new(1, "udp")).expect_err("bad").to_string();
    let burst = |start, stop| Burst { start: Time::from_s(start), stop: Time::from_s(stop), rate: Rate(1) };
    assert_eq!(
        message(bursts(1500, vec![burst(1, 3), burst(2, 4)])),
        "bursts[1]: 2s to 4s; a burst ends after its start, and before the next one starts"
    );
    assert!(message(bursts(1500, vec![burst(1, 1)])).starts_with("bursts[0]: 1s to 1s; "));
    assert_eq!(message(bursts(0, vec![])), "packet: 0 bytes; at least 1 byte");
    let bad = |change: fn(&mut OnOff)| {
        let mut sources = OnOff::gigabit(1);
        change(&mut sources);
        message(on_off(1500, sources))
    };
    assert_eq!(bad(|s| s.shape = 1.0), "shape: 1; above 1");
    assert_eq!(bad(|s| s.tail_ratio = f64::NAN), "tail_ratio: NaN; above 1");
    assert_eq!(bad(|s| s.idle = Time::ZERO), "idle: 0; above 0 and finite");
}
