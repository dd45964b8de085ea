//! Receivers that break the rules, and what becomes of a sender that has one.

use crate::common::{self, drop_tail, dumbbell, law, linux_flow, rate, run};
use lfn_path::{AqmConfig, CodelConfig};
use lfn_sim::config::{Config, FlowConfig};
use lfn_sim::misbehaving::Misbehaviour;
use lfn_sim::Outcome;
use lfn_units::Time;

/// One flow of `name` on 20 Mbit/s × 40 ms for 20 s, whose receiver misbehaves.
fn flow(name: &str, how: Option<Misbehaviour>) -> FlowConfig {
    let mut flow = FlowConfig { misbehaves: how, ..linux_flow(name, Time::from_ms(40)) };
    // An honest receiver's window.
    flow.sender.receive_window_segments = 2000;
    flow
}

fn alone(name: &str, how: Option<Misbehaviour>) -> Config {
    dumbbell(drop_tail(rate("20Mbit/s"), 60), vec![flow(name, how)], Time::from_s(20))
}

fn drop_rate(outcome: &Outcome) -> f64 {
    let link = &outcome.summary.links[0];
    link.drops as f64 / link.arrivals as f64
}

#[test]
fn acks_in_parts_make_no_window_grow_faster() {
    for name in ["reno", "cubic", "htcp", "westwood", "vegas"] {
        let window = |how| {
            let mut config = alone(name, how);
            config.duration = Time::from_s(10);
            config.flows[0].receiver.delayed_ack = false;
            run(&config).summary.flows[0].clone()
        };
        let (honest, split) = (window(None), window(Some(Misbehaviour::SplitsAcks)));
        assert_eq!(split.loss_events, honest.loss_events, "{name}");
        let ratio = split.mean_cwnd_segments.unwrap() / honest.mean_cwnd_segments.unwrap();
        assert!((ratio - 1.0).abs() < 0.01, "{name}: {ratio}");
    }
}

#[test]
fn acks_in_parts_are_eight() {
    let mut config = alone("reno", Some(Misbehaviour::SplitsAcks));
    config.capture = common::capture([1]);
    // ACKs that meet a queue are recorded.
    let outcome = run(&config);
    let acks = common::rows(&outcome.tables, 1, common::ARRIVES, common::ACK).len() as f64;
    let each = acks / outcome.summary.flows[0].sent as f64;
    assert!((3.5..8.1).contains(&each), "{each}");
}

#[test]
fn hidden_losses_leave_a_sender_without_a_reason_to_stop() {
    for name in ["reno", "cubic", "vegas"] {
        let (honest, bad) = (run(&alone(name, None)), run(&alone(name, Some(Misbehaviour::Optimistic))));
        let flow = &bad.summary.flows[0];
        assert_eq!((flow.retransmits, flow.loss_events, flow.timeouts), (0, 0, 0), "{name}");
        if name != "vegas" {
            // The receive window is all that limits it.
            assert!(
                (flow.max_cwnd_segments.unwrap() as u64) > 500,
                "{name}: {}",
                flow.max_cwnd_segments.unwrap()
            );
            assert!(drop_rate(&bad) > 0.5 && drop_rate(&honest) < 0.05, "{name}: {}", drop_rate(&bad));
        }
    }
}

#[test]
fn an_ack_beyond_what_was_sent_is_ignored() {
    // Ten segments: the eleventh and later ones do not exist.
    for size in [1, 3, 10, 200] {
        let mut config = alone("reno", Some(Misbehaviour::Optimistic));
        config.flows[0].size_segments = size;
        let flow = &run(&config).summary.flows[0];
        assert!(flow.completion_s.is_some_and(|at| at < 2.0), "{size}: {flow:?}");
        assert_eq!(flow.delivered_bytes, size * 1448);
    }
}

#[test]
fn hidden_marks_end_no_growth() {
    let marks = |how| {
        let mut config = alone("reno", how);
        (config.flows[0].sender.ecn, config.flows[0].receiver.ecn) = (true, true);
        config.links[0].queue = AqmConfig::Codel(CodelConfig { ecn: true, ..CodelConfig::default() });
        config.links[0].limit_packets = 500;
        let summary = run(&config).summary;
        (summary.links[0].marks, summary.links[0].mean_queue_s)
    };
    let (honest, hidden) = (marks(None), marks(Some(Misbehaviour::HidesMarks)));
    assert!(honest.0 > 3 && hidden.0 > 20 * honest.0, "{honest:?} {hidden:?}");
    assert!(hidden.1 > 5.0 * honest.1, "{honest:?} {hidden:?}");
}

#[test]
fn every_law_lives_with_each() {
    for info in lfn_law::registry().iter().filter(|law| law.header.is_none() && !law.is_udt()) {
        for how in [Misbehaviour::SplitsAcks, Misbehaviour::Optimistic, Misbehaviour::HidesMarks] {
            let mut config = alone(info.name, Some(how));
            config.duration = Time::from_s(3);
            config.links[0].impair.loss = lfn_sim::config::Loss::Bernoulli(0.01);
            config.flows[0].law = law(info.name);
            let flow = &run(&config).summary.flows[0];
            assert!(flow.goodput_bps.unwrap() > 0.0, "{}: {how:?}", info.name);
        }
    }
}
