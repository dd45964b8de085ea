//! A link's departures computed at arrival, or one event per departure: the same run, whatever the
//! scenario.

mod common;

use common::{background, drop_tail, law, ns2_flow, run};
use lfn_law::{registry, LawInfo, SlowStartKind};
use lfn_path::RedConfig;
use lfn_sim::background::Direction;
use lfn_sim::config::{Config, FlowConfig, LinkConfig, QueueConfig};
use lfn_sim::Outcome;
use lfn_tcp::{ReceiverConfig, SenderConfig};
use lfn_units::{Rate, Time};
use proptest::prelude::*;

/// Names of all laws in all variants.
fn laws() -> Vec<String> {
    registry().iter().flat_map(LawInfo::specs).map(|spec| spec.to_string()).collect()
}

prop_compose! {
    fn any_flow()(
        name in prop::sample::select(laws()),
        (ns2, reverse, delayed_ack, sack, ecn) in any::<(bool, bool, bool, bool, bool)>(),
        rtt_us in 1_000..300_000_u64,
        packet_bytes in prop::sample::select(vec![576, 1500, 1500, 9000]),
        start_us in 0..2_000_000_u64,
        stop_us in prop::option::of(2_000_000..10_000_000_u64),
        size_segments in prop_oneof![3 => Just(u64::MAX), 1 => 1..2000_u64],
        receive_window in prop_oneof![3 => Just(u64::MAX), 1 => 2..500_u64],
        slow_start in prop::sample::select(SlowStartKind::ALL.to_vec()),
        pacing in prop::bool::weighted(0.2),
    ) -> FlowConfig {
        let rtt = Time::from_us(rtt_us);
        let header_bytes = if ns2 { 40 } else { 52 };
        let framing_bytes = if ns2 { 0 } else { 14 };
        let payload_bytes = packet_bytes - header_bytes;
        let (sender, receiver) = if ns2 {
            (SenderConfig::ns2(payload_bytes), ReceiverConfig::ns2(rtt))
        } else {
            (SenderConfig::linux(payload_bytes, slow_start), ReceiverConfig::linux(rtt))
        };
        FlowConfig {
            direction: if reverse { Direction::Reverse } else { Direction::Forward },
            start: Time::from_us(start_us),
            stop: stop_us.map_or(Time::NEVER, Time::from_us),
            size_segments,
            payload_bytes,
            wire_bytes: packet_bytes + framing_bytes,
            ack_bytes: header_bytes + framing_bytes,
            sender: SenderConfig { sack, ecn, pacing, receive_window_segments: receive_window, ..sender },
            receiver: ReceiverConfig {
                delayed_ack,
                sack,
                ecn,
                sack_compression: receiver.sack_compression.filter(|_| sack),
                ..receiver
            },
            ..ns2_flow(&name, rtt)
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Queue {
    DropTail,
    Classic { ecn: bool },
    Gentle,
    Adaptive,
}

prop_compose! {
    fn any_link()(
        // From 1 Mbit/s to 1 Gbit/s, the same number in each decade.
        exponent in 6.0..9.0_f64,
        queue in prop_oneof![
            4 => Just(Queue::DropTail),
            1 => any::<bool>().prop_map(|ecn| Queue::Classic { ecn }),
            1 => Just(Queue::Gentle),
            1 => Just(Queue::Adaptive),
        ],
        limit_packets in 1..2000_u64,
        limit_bytes in prop::option::of(20_000..2_000_000_u64),
        loss in prop_oneof![2 => Just(0.0), 1 => 0.0..0.02_f64],
    ) -> LinkConfig {
        let queue = match queue {
            Queue::DropTail => QueueConfig::DropTail,
            Queue::Classic { ecn } => QueueConfig::Red(RedConfig { ecn, ..RedConfig::classic(1500) }),
            Queue::Gentle => QueueConfig::Red(RedConfig::gentle(1500)),
            Queue::Adaptive => QueueConfig::Red(RedConfig::adaptive(1500)),
        };
        LinkConfig {
            queue,
            limit_packets: if limit_bytes.is_some() { u64::MAX } else { limit_packets },
            limit_bytes: limit_bytes.unwrap_or(u64::MAX),
            loss,
            ..drop_tail(Rate(10_f64.powf(exponent) as u64), 0)
        }
    }
}

prop_compose! {
    fn any_dumbbell()(
        seed: u64,
        forward in any_link(),
        reverse in any_link(),
        flows in prop::collection::vec(any_flow(), 1..=20),
        warmup in prop::bool::ANY,
        with_background in prop::bool::weighted(0.3),
    ) -> Config {
        // At most some 60,000 packets through the faster link.
        let fastest = forward.rate.0.max(reverse.rate.0);
        let duration_us = (60_000 * 1500 * 8_000_000 / fastest).clamp(500_000, 8_000_000);
        let slowest = Rate(forward.rate.0.min(reverse.rate.0));
        Config {
            seed,
            duration: Time::from_us(duration_us),
            warmup: if warmup { Time::from_us(duration_us / 3) } else { Time::ZERO },
            sample: Some(Time::from_ms(37)),
            links: [forward, reverse],
            flows,
            background: with_background.then(|| background(1, slowest)),
        }
    }
}

/// Everything that a run says, except for what describes the engine's own work.
fn results(outcome: &Outcome) -> serde_json::Value {
    let mut summary = serde_json::to_value(&outcome.summary).expect("a summary is plain data");
    for own in ["events", "memory"] {
        assert!(summary.as_object_mut().and_then(|fields| fields.remove(own)).is_some());
    }
    summary
}

/// Whether both modes say the same of the first `duration` of the run.
fn modes_agree(config: &Config, duration: Time) -> bool {
    let config = Config { duration, warmup: config.warmup.min(duration), ..config.clone() };
    let (closed, events) = (run(&config), run(&in_event_mode(&config)));
    results(&closed) == results(&events) && format!("{:?}", closed.tables) == format!("{:?}", events.tables)
}

/// When the modes part, to the picosecond.
fn modes_part_at(config: &Config) -> Time {
    let (mut agree, mut differ) = (Time::ZERO, config.duration);
    while agree + Time(1) < differ {
        let middle = Time(agree.0 + (differ.0 - agree.0) / 2);
        if modes_agree(config, middle) {
            agree = middle;
        } else {
            differ = middle;
        }
    }
    differ
}

fn in_event_mode(config: &Config) -> Config {
    let mut config = config.clone();
    for link in &mut config.links {
        link.event_mode = true;
    }
    config
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 384, max_shrink_iters: 400, ..ProptestConfig::default() })]

    #[test]
    fn both_modes_give_the_same_run(config in any_dumbbell()) {
        let agree = modes_agree(&config, config.duration);
        prop_assert!(agree, "the modes part at {}", modes_part_at(&config));
    }
}

#[test]
fn packets_that_meet_at_one_instant() {
    // Equal flows on a link whose service times divide the RTT: departures, arrivals, ACKs and samples
    // coincide to the picosecond.
    let rtt = Time::from_ms(12);
    let link = drop_tail(Rate(1_000_000_000), 50);
    let mut flows: Vec<FlowConfig> = (0..8).map(|_| ns2_flow("reno", rtt)).collect();
    for (index, flow) in flows.iter_mut().enumerate() {
        flow.law = law(["reno", "cubic", "htcp", "scalable"][index % 4]);
        flow.direction = if index < 5 { Direction::Forward } else { Direction::Reverse };
        flow.ack_bytes = 1500;
    }
    let mut config = common::dumbbell(link, flows, Time::from_s(2));
    config.sample = Some(rtt);
    let (closed, events) = (run(&config), run(&in_event_mode(&config)));
    assert!(closed.summary.links[0].drops > 100, "the queue overflows");
    assert_eq!(results(&closed), results(&events));
    assert_eq!(format!("{:?}", closed.tables), format!("{:?}", events.tables));
}
