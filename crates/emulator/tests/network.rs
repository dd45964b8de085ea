//! The path against arithmetic: what arrives, and when, to the picosecond.

use lfn_emulator::{Delivery, Departure, Events, Kind, Network, NetworkConfig, Route};
use lfn_header::vcp::Load;
use lfn_header::Header;
use lfn_path::{AckImpair, Ecn, JitterConfig, RouterConfig, Service, VcpConfig};
use lfn_sim::config::{Change, Changed, LinkConfig, LinkId, Loss};
use lfn_units::{Rate, Time};
use proptest::prelude::*;

const BYTES: u32 = 1514;

fn link(name: &str, rate: Rate, packets: u64, delay: Time) -> LinkConfig {
    LinkConfig { delay, ..LinkConfig::drop_tail(name, rate, packets) }
}

fn config(links: Vec<LinkConfig>, access: Time) -> NetworkConfig {
    let all = (0..links.len() as u16).map(LinkId).collect();
    NetworkConfig {
        seed: 1,
        links,
        routes: vec![Route { links: all, access }],
        changes: Vec::new(),
        largest_packet_bytes: BYTES,
        together: Time::ZERO,
    }
}

fn packet(token: u64) -> Departure {
    Departure {
        token,
        route: 0,
        flow: 0,
        bytes: BYTES,
        kind: Kind::Data,
        ecn: Ecn::NotEct,
        header: Header::None,
    }
}

/// Sends packets at their times, and looks only `every` so long what has arrived.
fn send(config: NetworkConfig, times: impl IntoIterator<Item = Time>, every: Time) -> (Events, Network) {
    let mut network = Network::new(&config).unwrap();
    let mut events = Events::default();
    let mut look = every;
    for (token, at) in times.into_iter().enumerate() {
        while look < at {
            network.advance(look, &mut events);
            look = look + every;
        }
        // A token of its own: nothing is delivered together.
        network.offer(at, packet(2 * token as u64), &mut events);
    }
    while network.next_at() < Time::NEVER {
        network.advance(look.max(network.next_at()), &mut events);
        look = look + every;
    }
    (events, network)
}

fn lost(network: &Network) -> u64 {
    network.links().map(|(_, _, lost)| lost).sum()
}

/// Time to serialise packets, rounded down.
fn serialised(packets: u64, rate: Rate) -> Time {
    Time((u128::from(packets * u64::from(BYTES)) * 8_000_000_000_000 / u128::from(rate.0)) as u64)
}

#[test]
fn ten_elements_add_up_to_their_sum() {
    let rate = Rate(7_000_000_000);
    let delays: Vec<Time> = (1..=10).map(|i| Time(i * 1_234_567_891)).collect();
    let links = delays.iter().enumerate().map(|(i, &delay)| link(&format!("l{i}"), rate, 10, delay));
    let access = Time(987_654_321);
    let (events, _) = send(config(links.collect(), access), [Time::from_ms(3)], Time::from_ms(50));
    let sum = delays.iter().fold(Time::from_ms(3) + access, |sum, &delay| sum + delay);
    // Each of ten servers cuts off less than a picosecond of 1514 bytes.
    let serialised = Time(10 * serialised(1, rate).0);
    assert_eq!(events.delivered.len(), 1);
    assert_eq!(events.delivered[0].at, sum + serialised);
}

#[test]
fn the_rate_is_exact_and_the_buffer_as_deep_as_it_says() {
    let (rate, room) = (Rate(3_000_000_000), 2500);
    let burst = std::iter::repeat_n(Time::ZERO, 4000);
    let config = config(vec![link("l", rate, room, Time::from_ms(90))], Time::ZERO);
    let (events, network) = send(config, burst, Time::from_us(1700));
    // The queue, and the packet in service.
    assert_eq!(events.delivered.len() as u64, room + 1);
    assert_eq!(events.gone.len() as u64, 4000 - room - 1);
    assert_eq!(network.links().next().unwrap().1.counters().max_waiting, room);
    for (number, delivery) in (1..).zip(&events.delivered) {
        assert_eq!(delivery.token, 2 * (number - 1), "in order");
        assert_eq!(delivery.at, Time::from_ms(90) + serialised(number, rate));
    }
}

#[test]
fn nothing_is_lost_below_the_rate_though_the_buffer_holds_one_packet() {
    let rate = Rate(1_000_000_000);
    let gap = Time((serialised(1, rate).0 as f64 / 0.999) as u64);
    let times = (0..200_000).map(|i| Time(i * gap.0));
    let config = config(vec![link("l", rate, 1, Time::from_ms(20))], Time::ZERO);
    let (events, _) = send(config, times, Time::from_ms(7));
    assert_eq!((events.delivered.len(), events.gone.len()), (200_000, 0));
    let last = events.delivered[199_999].at;
    assert_eq!(last, Time(199_999 * gap.0) + serialised(1, rate) + Time::from_ms(20));
}

#[test]
fn changes_take_effect_when_they_say() {
    let mut config = config(vec![link("l", Rate(1_000_000_000), 100, Time::from_ms(10))], Time::ZERO);
    let change = |ms, what| Change { at: Time::from_ms(ms), what };
    config.changes = vec![
        change(10, Changed::Rate(LinkId(0), Rate(0))),
        change(20, Changed::Rate(LinkId(0), Rate(2_000_000_000))),
        change(30, Changed::Delay(LinkId(0), Time::from_ms(1))),
        change(40, Changed::Loss(LinkId(0), 0.999_999_999)),
    ];
    let times = [5, 12, 29, 31, 45].map(Time::from_ms);
    let (events, network) = send(config, times, Time::from_ms(1));
    let (slow, fast) = (serialised(1, Rate(1_000_000_000)), serialised(1, Rate(2_000_000_000)));
    let at: Vec<(u64, Time)> = events.delivered.iter().map(|d| (d.token / 2, d.at)).collect();
    assert_eq!(
        at,
        [
            (0, Time::from_ms(15) + slow),
            (1, Time::from_ms(30) + fast),
            // Left 2 ms later, on a path that was 9 ms shorter.
            (3, Time::from_ms(32) + fast),
            (2, Time::from_ms(39) + fast),
        ]
    );
    assert_eq!((events.gone, lost(&network)), (vec![8], 1));
}

#[test]
fn acks_are_spared_by_loss_and_data_is_not() {
    let mut lossy = link("l", Rate(1_000_000_000), 10, Time::ZERO);
    lossy.impair.loss = Loss::Bernoulli(0.5);
    let mut network = Network::new(&config(vec![lossy], Time::ZERO)).unwrap();
    let mut events = Events::default();
    for i in 0..2000 {
        let kind = if i % 2 == 0 { Kind::Data } else { Kind::Ack };
        network.offer(Time::from_us(20 * i), Departure { kind, ..packet(i) }, &mut events);
    }
    network.advance(Time::from_s(1), &mut events);
    assert!(events.gone.iter().all(|token| token % 2 == 0));
    // Five standard deviations of a binomial of 1000 trials.
    assert!((events.gone.len() as i64 - 500).abs() < 80, "{}", events.gone.len());
    assert_eq!(lost(&network), events.gone.len() as u64);
}

#[test]
fn nobody_need_look_before_a_packet_can_arrive() {
    let (rate, delay, access) = (Rate(1_000_000_000), Time::from_ms(1), Time::from_ms(40));
    let first_look = |links: Vec<LinkConfig>| {
        let mut network = Network::new(&config(links, access)).unwrap();
        let mut events = Events::default();
        for token in 0..5 {
            network.offer(Time::ZERO, packet(2 * token), &mut events);
        }
        network.next_at()
    };
    assert_eq!(first_look(vec![link("l", rate, 10, delay)]), serialised(1, rate) + delay + access);
    // A packet is handled again when it reaches the second link, since others may come between.
    let two = vec![link("l", rate, 10, delay), link("m", rate, 10, delay)];
    assert_eq!(first_look(two), serialised(1, rate) + delay);
}

#[test]
fn neighbours_come_together_and_others_do_not_wait() {
    let rate = Rate(1_000_000_000);
    let mut config = config(vec![link("l", rate, 100, Time::from_ms(1))], Time::ZERO);
    config.together = Time::from_us(25);
    let mut network = Network::new(&config).unwrap();
    let mut events = Events::default();
    // Two bursts, of five segments and of one; 12 us each on the wire.
    for token in [10, 11, 12, 13, 14, 30] {
        network.offer(Time::ZERO, packet(token), &mut events);
    }
    let due = |n| Time::from_ms(1) + serialised(n, rate);
    network.advance(Time::from_us(900), &mut events);
    let mut found = Vec::new();
    while network.next_at() < Time::NEVER {
        let now = network.next_at();
        network.advance(now, &mut events);
        let at: Vec<Time> = events.delivered.drain(..).map(|delivery| delivery.at).collect();
        found.push((now, at));
    }
    let exact =
        [(due(3), vec![due(1), due(2), due(3)]), (due(5), vec![due(4), due(5)]), (due(6), vec![due(6)])];
    assert_eq!(found, exact);
}

#[test]
fn a_load_meter_marks_and_other_routers_are_refused() {
    let mut metered = link("l", Rate(100_000_000), 1000, Time::ZERO);
    metered.router = Some(RouterConfig::Vcp(VcpConfig::default()));
    let mut network = Network::new(&config(vec![metered.clone()], Time::ZERO)).unwrap();
    let mut events = Events::default();
    // Twice the rate, for a second.
    for i in 0..16_000 {
        let header = Header::Vcp(Load::Low);
        network.offer(Time::from_us(62 * i), Departure { header, ..packet(i) }, &mut events);
    }
    network.advance(Time::from_s(1), &mut events);
    assert_eq!(events.delivered[0].header, Header::Vcp(Load::Low));
    assert_eq!(events.delivered.last().map(|d| d.header), Some(Header::Vcp(Load::Overload)));

    metered.router = Some(RouterConfig::Rcp(lfn_path::RcpConfig::default()));
    let refused = Network::new(&config(vec![metered], Time::ZERO)).err().unwrap().to_string();
    assert!(refused.starts_with("router of link l: its header is one"), "{refused}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every packet arrives, is dropped or lost, once, and once more where it was doubled; each route keeps
    /// its order unless something overtakes; and it does not matter when one looks.
    #[test]
    fn nothing_is_forgotten_whenever_one_looks(
        gaps_us in prop::collection::vec(0u64..40, 1..400),
        rates_mbps in prop::collection::vec(50u64..2000, 1..4),
        loss in 0.0..0.3,
        twice in 0.0..0.3,
        jitter_us in 0u64..500,
        every_us in 1u64..5000,
    ) {
        let path = || {
            let mut links: Vec<LinkConfig> = rates_mbps
                .iter()
                .enumerate()
                .map(|(i, &mbps)| link(&format!("l{i}"), Rate(mbps * 1_000_000), 20, Time::from_us(700)))
                .collect();
            links[0].impair.loss = Loss::Bernoulli(loss);
            links[0].impair.duplicate = twice;
            let high = Time::from_us(jitter_us);
            links[0].impair.jitter = Some(JitterConfig::uniform(Time::ZERO, high, true));
            config(links, Time::from_ms(1))
        };
        let times: Vec<Time> = gaps_us
            .iter()
            .scan(0, |at, gap| { *at += gap; Some(Time::from_us(*at)) })
            .collect();
        let (events, _) = send(path(), times.clone(), Time::from_us(every_us));
        let ends = events.delivered.len() + events.gone.len();
        prop_assert_eq!(ends, times.len() + events.doubled.len());
        let sorted = events.delivered.windows(2).all(|pair| pair[0].at <= pair[1].at);
        prop_assert!(sorted);
        let (often, _) = send(path(), times, Time::from_us(1));
        let key = |delivery: &Delivery| (delivery.at, delivery.token);
        let [mut seen, mut seen_often] = [&events, &often].map(|e| e.delivered.iter().map(key).collect::<Vec<_>>());
        seen.sort();
        seen_often.sort();
        prop_assert_eq!(seen, seen_often);
    }
}

#[test]
fn a_trace_sends_a_frame_at_each_opportunity_from_the_beginning_of_the_scenario_on() {
    let trace = Service::Trace("12\n24\n24\n40".parse().unwrap(), BYTES - 1500);
    for begin_ms in [0, 5000, 5013] {
        let begin = Time::from_ms(begin_ms);
        let links = vec![LinkConfig { service: trace.clone(), ..link("l", Rate(1), 100, Time::ZERO) }];
        let mut config = config(links, Time::ZERO);
        let down = Changed::Delay(LinkId(0), Time::from_ms(1));
        config.changes = vec![Change { at: Time::from_ms(30), what: down }];
        config.begin_at(begin);
        let (events, network) = send(config, [begin + Time::from_ms(1); 7], Time::from_ms(3));
        let arrived: Vec<u64> =
            events.delivered.iter().map(|it| (it.at - begin).as_ns() / 1_000_000).collect();
        assert_eq!(arrived, [12, 24, 24, 41, 53, 65, 65], "{begin_ms} ms");
        let (_, server, _) = network.links().next().unwrap();
        let end = begin + Time::from_ms(81);
        let [before, after] = [begin + Time::from_ms(1), end].map(|at| server.snapshot(at).capacity_bytes);
        assert_eq!(after - before, 8.0 * 1504.0);
        assert_eq!(server.snapshot(end).sent_bytes, 7.0 * 1504.0);
    }
}

/// As in the simulator: `loss` and `acks` act on packets of handshakes, and no jitter of data does.
#[test]
fn handshakes_meet_loss_and_acks_and_no_jitter() {
    let sent = |kind, set: &dyn Fn(&mut LinkConfig)| {
        let mut one = link("l", Rate(1_000_000_000), 10, Time::from_ms(1));
        set(&mut one);
        let mut network = Network::new(&config(vec![one], Time::ZERO)).unwrap();
        let mut events = Events::default();
        for i in 0..2000 {
            network.offer(Time::from_us(20 * i), Departure { kind, ..packet(2 * i) }, &mut events);
        }
        network.advance(Time::from_s(1), &mut events);
        let last = events.delivered.last().map_or(Time::ZERO, |last| last.at);
        (events.gone.len(), last)
    };
    let lossy = |one: &mut LinkConfig| one.impair.loss = Loss::Bernoulli(0.5);
    let acks_lossy = |one: &mut LinkConfig| {
        one.acks = Some(AckImpair { loss: Loss::Bernoulli(0.5), ..AckImpair::default() });
    };
    let both = |one: &mut LinkConfig| {
        lossy(one);
        acks_lossy(one);
    };
    // Five standard deviations of a binomial of 2000 trials.
    for (set, [data, ack, handshake]) in [
        (&lossy as &dyn Fn(&mut LinkConfig), [1000, 0, 1000]),
        (&acks_lossy, [0, 1000, 1000]),
        (&both, [1000, 1000, 1500]),
    ] {
        for (kind, expected) in [(Kind::Data, data), (Kind::Ack, ack), (Kind::Handshake, handshake)] {
            let gone = sent(kind, set).0;
            assert!(
                gone.abs_diff(expected) < 112 && (gone > 0) == (expected > 0),
                "{kind:?}: {gone} of 2000"
            );
        }
    }
    let plain = sent(Kind::Handshake, &|_| ()).1;
    let jitter = |one: &mut LinkConfig| {
        let late = Time::from_ms(50);
        one.impair.jitter = Some(JitterConfig::uniform(late, late, true));
    };
    assert_eq!(sent(Kind::Handshake, &jitter).1, plain);
    let gathered = |one: &mut LinkConfig| {
        one.acks = Some(AckImpair { aggregate: Some(Time::from_ms(100)), ..AckImpair::default() });
    };
    // Of 2000 that go on together the last is behind all others.
    let late = sent(Kind::Handshake, &gathered).1.since(Time::from_ms(101));
    assert!(late < Time::from_ns(2), "{late:?}");
}
