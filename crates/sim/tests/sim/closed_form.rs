//! A link's departures computed at arrival, or one event per departure: the same run, whatever the
//! scenario.

use crate::common::{self, background, drop_tail, law, ns2_flow, run};
use lfn_law::{registry, LawInfo, SlowStartKind};
use lfn_path::{AqmConfig, DropTail, RedConfig, Service};
use lfn_sim::background::Direction;
use lfn_sim::config::{Config, FlowConfig, Impair, LinkConfig, LinkId, Loss, RouteId, UdpConfig};
use lfn_sim::traffic::udp;
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
            (SenderConfig::linux(payload_bytes, slow_start), ReceiverConfig::linux(rtt, payload_bytes))
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
            application: None,
            misbehaves: None,
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
        delay_us in prop_oneof![2 => Just(0), 1 => 1..20_000_u64],
    ) -> LinkConfig {
        let queue = match queue {
            Queue::DropTail => AqmConfig::DropTail(DropTail {}),
            Queue::Classic { ecn } => AqmConfig::Red(RedConfig { ecn, ..RedConfig::classic(1500) }),
            Queue::Gentle => AqmConfig::Red(RedConfig::gentle(1500)),
            Queue::Adaptive => AqmConfig::Red(RedConfig::adaptive(1500)),
        };
        LinkConfig {
            queue,
            limit_packets: if limit_bytes.is_some() { u64::MAX } else { limit_packets },
            limit_bytes: limit_bytes.unwrap_or(u64::MAX),
            delay: Time::from_us(delay_us),
            impair: Impair { loss: Loss::Bernoulli(loss), ..Impair::default() },
            ..drop_tail(Rate(10_f64.powf(exponent) as u64), 0)
        }
    }
}

prop_compose! {
    fn any_udp()(
        route in any::<prop::sample::Index>(),
        packet_bytes in prop::sample::select(vec![100, 1000, 1500]),
        start_us in 0..3_000_000_u64,
        for_us in 1_000..2_000_000_u64,
        rate in 100_000..50_000_000_u64,
    ) -> (prop::sample::Index, udp::Config) {
        let start = Time::from_us(start_us);
        let burst = udp::Burst { start, stop: start + Time::from_us(for_us), rate: Rate(rate) };
        (route, udp::Config { packet_bytes, pattern: udp::Pattern::Bursts(vec![burst]) })
    }
}

prop_compose! {
    /// A chain of one link or more in each direction; flows enter and leave anywhere.
    fn any_chain()(
        seed: u64,
        links in prop_oneof![3 => Just(1), 1 => 2..=4_usize]
            .prop_flat_map(|hops| prop::collection::vec((any_link(), any_link()), hops)),
        flows in prop::collection::vec((any_flow(), any::<prop::sample::Index>()), 1..=20),
        udp in prop::collection::vec(any_udp(), 0..3),
        warmup in prop::bool::ANY,
        with_background in prop::bool::weighted(0.3),
    ) -> Config {
        let hops = links.len() as u16;
        let rates = links.iter().flat_map(|(forward, reverse)| [&forward.service, &reverse.service]);
        let rates: Vec<u64> = rates.map(|service| match service {
            Service::Rate(rate) => rate.0,
            Service::Trace(trace, _) => trace.mean_rate().0,
            Service::Shaped(_, shaper) => shaper.rate.0,
        }).collect();
        let (slowest, fastest) = (rates.iter().min().expect("links"), rates.iter().max().expect("links"));
        // At most some 60,000 packets through the faster link.
        let duration_us = (60_000 * 1500 * 8_000_000 / fastest).clamp(500_000, 8_000_000);
        // Links 0 to hops-1 lead forward, the others back. Route 2k is a part of the chain, 2k+1 its
        // way back; the whole chain is the first.
        let parts: Vec<(u16, u16)> = (0..hops).flat_map(|from| (from + 1..=hops).rev().map(move |to| (from, to))).collect();
        let routes = parts.iter().flat_map(|&(from, to)| {
            [(from..to).collect::<Vec<u16>>(), (from..to).rev().map(|link| hops + link).collect()]
        });
        let named = |link: &LinkConfig, name: String| LinkConfig { name, ..link.clone() };
        let forward = links.iter().enumerate().map(|(n, link)| named(&link.0, format!("forward {n}")));
        let reverse = links.iter().enumerate().map(|(n, link)| named(&link.1, format!("reverse {n}")));
        Config {
            seed,
            duration: Time::from_us(duration_us),
            warmup: if warmup { Time::from_us(duration_us / 3) } else { Time::ZERO },
            sample: Some(Time::from_ms(37)),
            links: forward.chain(reverse).collect(),
            routes: routes.map(|links: Vec<u16>| links.into_iter().map(LinkId).collect()).collect(),
            flows: flows.into_iter().map(|(flow, part)| {
                let route = 2 * part.index(parts.len()) as u16 + flow.direction as u16;
                FlowConfig { route: RouteId(route), ack_route: RouteId(route ^ 1), ..flow }
            }).collect(),
            udt: Vec::new(),
            stacks: Vec::new(),
            udp: udp.into_iter().enumerate().map(|(n, (part, traffic))| UdpConfig {
                name: format!("udp {n}"),
                traffic,
                deadline: None,
                route: RouteId(part.index(2 * parts.len()) as u16),
            }).collect(),
            background: with_background.then(|| background(1, Rate(*slowest))),
            changes: Vec::new(),
            breakers: vec![],
            capture: None,
            traffic: Vec::new(),
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
    fn both_modes_give_the_same_run(config in any_chain()) {
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
