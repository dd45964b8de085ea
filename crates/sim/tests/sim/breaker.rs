//! Circuit breakers: which flows they end, when, and that they change nothing else.

use crate::common::{self, background, datagrams, drop_tail, dumbbell, linux_flow, ns2_flow, rate, run, udt};
use lfn_path::{AqmConfig, CodelConfig, Impair, JitterConfig, Loss, Policer};
use lfn_sim::breaker::Breaker;
use lfn_sim::config::{BreakerConfig, Change, Changed, Config, FlowConfig, LinkId, UdtConfig, Watched};
use lfn_sim::traffic::udp::{Burst, Pattern};
use lfn_sim::{FlowSummary, Sim, SimError};
use lfn_units::{Rate, Time};

fn s(seconds: u64) -> Time {
    Time::from_s(seconds)
}

/// More than a tenth lost in each of three seconds.
const TENTH: Breaker = Breaker { loss: 0.1, interval: Time::from_s(1), intervals: 3 };

fn watch(breaker: Breaker, watched: Watched) -> BreakerConfig {
    BreakerConfig { breaker, watched }
}

/// These flows on 20 Mbit/s × 40 ms for 20 s, each behind a breaker.
fn watched(flows: Vec<FlowConfig>) -> Config {
    let breakers = (0..flows.len() as u32).map(|flow| watch(TENTH, Watched::Flow(flow))).collect();
    Config { breakers, ..dumbbell(drop_tail(rate("20Mbit/s"), 60), flows, s(20)) }
}

fn one(law: &str) -> Config {
    watched(vec![linux_flow(law, Time::from_ms(40))])
}

fn lossy(mut config: Config, loss: f64) -> Config {
    config.links[0].impair.loss = Loss::Bernoulli(loss);
    config
}

fn first(config: &Config) -> FlowSummary {
    run(config).summary.flows.swap_remove(0)
}

/// A source of 5 Mbit/s from `start` on.
fn media(start: Time) -> Config {
    let udp = vec![datagrams(0, 500, start, Time::from_us(800), 1_000_000)];
    let breakers = vec![watch(TENTH, Watched::Udp(0))];
    Config { udp, breakers, ..dumbbell(drop_tail(rate("20Mbit/s"), 60), Vec::new(), s(20)) }
}

#[test]
fn one_that_does_not_trip_changes_nothing() {
    let rtt = Time::from_ms(40);
    let flows = || vec![linux_flow("cubic", rtt), linux_flow("bbr", rtt), ns2_flow("reno", rtt)];
    let base = watched(flows());
    let mut variants = vec![base.clone(), lossy(base.clone(), 0.02)];
    variants.push(Config { background: Some(background(2, rate("20Mbit/s"))), ..base.clone() });
    let mut red = base.clone();
    red.links[0].queue = AqmConfig::Codel(CodelConfig::default());
    variants.push(red);
    let mut moving = base.clone();
    let jitter = Some(JitterConfig::uniform(Time::ZERO, Time::from_ms(5), false));
    moving.links[0].impair = Impair { jitter, ..Impair::default() };
    variants.push(moving);
    let mut limited = base;
    limited.links[0].policer = Some(Policer { rate: rate("10Mbit/s"), burst: lfn_units::Bytes(50_000) });
    variants.push(limited);
    for config in variants {
        // Longer than the run: behind the policer a flow that has only timeouts may lose all of its packets for seconds.
        let never = Breaker { intervals: 1000, ..TENTH };
        let breakers = config.breakers.iter().map(|one| BreakerConfig { breaker: never, ..*one }).collect();
        let with = run(&Config { breakers, ..config.clone() }).summary;
        let without = run(&Config { breakers: Vec::new(), ..config }).summary;
        assert!(with.flows.iter().all(|flow| flow.tripped_s.is_none()));
        assert_eq!(with.hash, without.hash);
    }
}

#[test]
fn it_ends_what_loses_too_much_at_the_end_of_the_last_interval() {
    let source = |start| run(&lossy(media(start), 0.3)).summary.udp.swap_remove(0);
    let udp = source(Time::ZERO);
    assert_eq!((udp.tripped_s, udp.sent), (Some(3.0), 3_751));
    let late = source(Time::from_ms(5_500));
    assert_eq!((late.tripped_s, late.sent), (Some(8.5), 3_751));
    let flow = first(&lossy(one("bbr"), 0.3));
    assert_eq!(flow.tripped_s, Some(3.0));
    let mut late = lossy(one("bbr"), 0.3);
    late.flows[0].start = s(4);
    assert_eq!(first(&late).tripped_s, Some(7.0));
    // At its bound it does not end a flow, and without loss it never does.
    assert_eq!(first(&lossy(one("bbr"), 0.05)).tripped_s, None);
    assert_eq!(run(&media(Time::ZERO)).summary.udp[0].tripped_s, None);
}

#[test]
fn nothing_leaves_a_flow_that_was_ended() {
    for info in lfn_law::registry().iter().filter(|law| law.header.is_none() && !law.is_udt()) {
        for (loss, sack, delayed_ack) in [(0.2, true, true), (0.4, true, false), (0.2, false, true)] {
            let mut config = lossy(one(info.name), loss);
            config.flows[0].sender.sack = sack;
            (config.flows[0].receiver.sack, config.flows[0].receiver.delayed_ack) = (sack, delayed_ack);
            config.breakers[0].breaker = Breaker { intervals: 2, ..TENTH };
            let mut sim = Sim::new(&config).unwrap();
            sim.run_until(s(20));
            let flow = sim.finish().expect("packets are conserved").summary.flows.swap_remove(0);
            let Some(at) = flow.tripped_s else { continue };
            // The same run up to that time has sent as much.
            let until = Config { duration: Time::from_s_f64(at), breakers: Vec::new(), ..config };
            let before = first(&until);
            let sums = |flow: &FlowSummary| (flow.sent, flow.retransmits, flow.timeouts, flow.loss_events);
            assert_eq!(sums(&flow), sums(&before), "{} {loss} {sack}", info.name);
            assert_eq!(flow.delivered_bytes, before.delivered_bytes, "{}", info.name);
            assert_eq!(flow.completion_s, None);
        }
    }
}

#[test]
fn a_flow_that_is_complete_is_not_ended() {
    let mut config = lossy(one("reno"), 0.3);
    config.flows[0].size_segments = 20;
    let flow = first(&config);
    assert!(flow.completion_s.is_some() && flow.tripped_s.is_none(), "{flow:?}");
    // One that is not complete never will be.
    config.flows[0].size_segments = 100_000;
    config.flows[0].law = common::law("bbr");
    let flow = first(&config);
    assert_eq!((flow.completion_s, flow.tripped_s), (None, Some(3.0)));
}

#[test]
fn a_flow_that_falls_silent_has_reacted() {
    let down = |mut config: Config| {
        config.changes = vec![Change { at: s(5), what: Changed::Rate(LinkId(0), Rate(0)) }];
        config
    };
    // Queues of a link that is down drop what comes after the last place.
    let flow = first(&down(one("cubic")));
    assert_eq!(flow.tripped_s, None, "{flow:?}");
    let udp = run(&down(media(Time::ZERO))).summary.udp.swap_remove(0);
    assert_eq!(udp.tripped_s, Some(8.0));
    // A second with losses, one with the last packets that were on their way, one without packets.
    let mut pauses = lossy(media(Time::ZERO), 0.3);
    let rates = (0..20).map(|second| if second % 3 == 0 { Rate(5_000_000) } else { Rate(0) });
    pauses.udp[0].traffic.pattern = Pattern::Bursts(Burst::steps(Time::ZERO, s(1), rates));
    let tripped_s = |config: &Config| run(config).summary.udp[0].tripped_s;
    assert_eq!(tripped_s(&pauses), None);
    pauses.breakers[0].breaker.intervals = 1;
    assert_eq!(tripped_s(&pauses), Some(1.0));
}

#[test]
fn beside_a_policer_the_law_decides() {
    let policed = |law: &str| {
        let mut config = one(law);
        config.links[0].policer = Some(Policer { rate: rate("4Mbit/s"), burst: lfn_units::Bytes(30_000) });
        first(&config).tripped_s
    };
    assert_eq!(policed("reno"), None);
    assert!(policed("copa").is_some());
}

#[test]
fn of_two_the_first_that_trips_ends_the_flow() {
    let fast = Breaker { loss: 0.2, intervals: 1, ..TENTH };
    let flow = Watched::Flow(0);
    for breakers in [[TENTH, fast], [fast, TENTH]] {
        let breakers = breakers.map(|one| watch(one, flow)).into();
        let config = Config { breakers, ..lossy(one("bbr"), 0.3) };
        assert_eq!(first(&config).tripped_s, Some(1.0));
    }
    // Each of two flows has its own.
    let mut config = lossy(watched(vec![linux_flow("bbr", Time::from_ms(40)); 2]), 0.3);
    config.breakers[1].breaker.loss = 0.9;
    let flows = run(&config).summary.flows;
    assert_eq!((flows[0].tripped_s, flows[1].tripped_s), (Some(3.0), None));
}

#[test]
fn all_streams_of_a_flow_end_with_it_also_over_udt() {
    let mut streams = vec![linux_flow("bbr", Time::from_ms(40)); 4];
    (0..).zip(&mut streams).for_each(|(i, flow)| flow.stream = i);
    let base = dumbbell(drop_tail(rate("20Mbit/s"), 60), streams, s(20));
    let breakers = vec![watch(TENTH, Watched::Flow(0))];
    let flows = run(&lossy(Config { breakers: breakers.clone(), ..base.clone() }, 0.3)).summary.flows;
    assert_eq!((flows.len(), flows[0].streams, flows[0].tripped_s), (1, 4, Some(3.0)));
    let streams = (0..2).map(|stream| UdtConfig { stream, ..udt(stream, Time::from_ms(40)) });
    let config = lossy(Config { flows: Vec::new(), udt: streams.collect(), breakers, ..base }, 0.3);
    let flow = first(&config);
    assert_eq!(flow.tripped_s, Some(3.0));
    let before = first(&Config { duration: s(3), breakers: Vec::new(), ..config });
    assert_eq!(flow.sent, before.sent);
}

#[test]
fn what_is_not_there_cannot_be_watched() {
    for watched in [Watched::Flow(1), Watched::Udp(0)] {
        let config = Config { breakers: vec![watch(TENTH, watched)], ..one("reno") };
        assert!(matches!(Sim::new(&config), Err(SimError::Unknown(_))));
    }
}
