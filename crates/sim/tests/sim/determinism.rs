//! The same scenario gives the same bytes: twice, in threads, in debug and release. And random streams
//! are named, so that one part of a scenario does not disturb another.
//!
//! The golden hashes hold in every build:
//! `cargo test -p lfn-sim determinism` and `cargo test --release -p lfn-sim determinism`.
//! They change when behaviour changes; then say in the commit why it did.

use crate::common::{background, drop_tail, dumbbell, events, law, linux_flow, ns2_flow, rate, run};
use lfn_path::{AqmConfig, RedConfig};
use lfn_sim::background::Direction;
use lfn_sim::config::{Config, FlowConfig, Loss};
use lfn_sim::{FlowSummary, Summary};
use lfn_units::Time;

fn cubic_alone() -> Config {
    dumbbell(
        drop_tail(rate("100Mbit/s"), 832),
        vec![linux_flow("cubic:linux", Time::from_ms(100))],
        Time::from_s(30),
    )
}

fn eight_laws() -> Config {
    let names = ["reno", "hstcp", "scalable", "bic", "cubic", "htcp", "westwood", "htcp-be"];
    let flows: Vec<FlowConfig> = (0..8)
        .map(|i| FlowConfig {
            start: Time::from_ms(137 * i),
            ..ns2_flow(names[i as usize], Time::from_ms(20 + 10 * i))
        })
        .collect();
    dumbbell(drop_tail(rate("200Mbit/s"), 500), flows, Time::from_s(10))
}

fn marks_losses_and_reverse_flows() -> Config {
    let mut link = drop_tail(rate("50Mbit/s"), 400);
    link.queue = AqmConfig::Red(RedConfig::adaptive(1500));
    link.impair.loss = Loss::Bernoulli(0.001);
    let flows = (0..6)
        .map(|i| {
            let mut flow = linux_flow(["cubic", "htcp", "reno"][i % 3], Time::from_ms(30 + 7 * i as u64));
            flow.sender.ecn = i % 2 == 0;
            flow.receiver.ecn = i % 2 == 0;
            flow.sender.pacing = i == 5;
            flow.direction = if i < 4 { Direction::Forward } else { Direction::Reverse };
            flow
        })
        .collect();
    dumbbell(link, flows, Time::from_s(10))
}

fn with_background() -> Config {
    let rate = rate("100Mbit/s");
    let mut config = cubic_alone();
    config.duration = Time::from_s(10);
    config.background = Some(background(2, rate));
    config
}

fn hash(config: &Config) -> String {
    run(config).summary.hash
}

/// Figures of a summary that tell what moved when a hash did.
const FIGURES: [&str; 6] =
    ["data_packets_delivered", "sent", "retransmits", "loss_events", "timeouts", "delivered_bytes"];

fn figures(summary: &Summary) -> [u64; FIGURES.len()] {
    let sum = |of: fn(&FlowSummary) -> u64| summary.flows.iter().map(of).sum();
    [
        summary.data_packets_delivered,
        sum(|flow| flow.sent),
        sum(|flow| flow.retransmits),
        sum(|flow| flow.loss_events),
        sum(|flow| flow.timeouts),
        sum(|flow| flow.delivered_bytes),
    ]
}

/// A scenario, the hash of its run, and [`FIGURES`] of it.
type Golden = (&'static str, fn() -> Config, &'static str, [u64; FIGURES.len()]);

const GOLDEN: [Golden; 4] = [
    ("cubic_alone", cubic_alone, "3b9d4141c475ff46", [242_347, 243_164, 110, 3, 0, 349_719_512]),
    ("eight_laws", eight_laws, "3559c87b9234f29a", [160_814, 162_371, 1_266, 50, 5, 233_670_080]),
    (
        "marks_losses_and_reverse_flows",
        marks_losses_and_reverse_flows,
        "fda8baea6a4471a0",
        [48_845, 49_229, 444, 74, 0, 70_293_160],
    ),
    ("with_background", with_background, "6262fc30db0dac74", [103_775, 50_807, 121, 3, 0, 72_473_848]),
];

/// Difference from the record, in a line; `None` if there is none.
fn moved((name, config, hash, recorded): &Golden) -> Option<String> {
    let summary = run(&config()).summary;
    let (seen, found) = (&summary.hash, figures(&summary));
    let changes = FIGURES.iter().zip(recorded.iter().zip(&found)).filter(|(_, (old, new))| old != new);
    let mut parts: Vec<String> = changes.map(|(key, (old, new))| format!("{key} {old} -> {new}")).collect();
    if seen != hash {
        parts.insert(0, format!("hash {hash} -> {seen}"));
    }
    (!parts.is_empty()).then(|| format!("{name}: {}", parts.join(", ")))
}

#[test]
fn golden_hashes() {
    let moved: Vec<String> = GOLDEN.iter().filter_map(moved).collect();
    assert!(moved.is_empty(), "results moved:\n{}", moved.join("\n"));
}

#[test]
fn threads_do_not_matter() {
    let config = with_background();
    let alone = run(&config);
    let text = |outcome: &lfn_sim::Outcome| {
        (serde_json::to_string(&outcome.summary).expect("plain data"), format!("{:?}", outcome.tables))
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| run(&config))).collect();
        for thread in threads {
            assert_eq!(text(&thread.join().expect("no panic")), text(&alone));
        }
    });
}

#[test]
fn the_seed_matters_where_something_is_random() {
    let (one, two) = (with_background(), Config { seed: 2, ..with_background() });
    assert_ne!(hash(&one), hash(&two));
    let (one, two) = (cubic_alone(), Config { seed: 2, ..cubic_alone() });
    assert_eq!(hash(&one), hash(&two));
}

#[test]
fn steps_do_not_matter() {
    let config = with_background();
    let mut sim = lfn_sim::Sim::new(&config).expect("valid");
    for step in 1..=1000 {
        sim.run_until(Time(config.duration.0 / 1000 * step));
    }
    assert_eq!(sim.finish().expect("conserved").summary.hash, hash(&config));
}

#[test]
fn a_flow_that_never_sends_shifts_nobody() {
    for mut config in [marks_losses_and_reverse_flows(), with_background()] {
        let before = run(&config);
        let mut silent = linux_flow("htcp", Time::from_ms(10));
        silent.start = config.duration + Time::from_s(1);
        config.flows.push(silent);
        let after = run(&config);
        assert_eq!(after.summary.flows.last().map(|flow| flow.sent), Some(0));
        for (flow, with) in before.summary.flows.iter().zip(&after.summary.flows) {
            assert_eq!(
                (flow.sent, flow.delivered_bytes, flow.retransmits, flow.loss_events),
                (with.sent, with.delivered_bytes, with.retransmits, with.loss_events)
            );
        }
        assert_eq!(
            serde_json::to_value(&before.summary.links).expect("plain data"),
            serde_json::to_value(&after.summary.links).expect("plain data")
        );
        assert_eq!(before.tables.events.t_s, after.tables.events.t_s);
    }
}

#[test]
fn every_law_meets_the_same_background() {
    let mut offered = Vec::new();
    for name in ["reno", "cubic", "htcp-be"] {
        let mut config = with_background();
        config.flows[0].law = law(name);
        let summary = run(&config).summary.background.expect("there is one");
        offered.push((summary.flows_started, summary.offered_bps.map(f64::to_bits)));
    }
    assert!(offered[0].0 > 100);
    assert!(offered.iter().all(|seen| *seen == offered[0]));
}

#[test]
fn random_loss_on_a_link_that_carries_no_data_changes_nothing() {
    let before = cubic_alone();
    let mut after = cubic_alone();
    after.links[1].impair.loss = Loss::Bernoulli(0.5);
    let (before, after) = (run(&before), run(&after));
    assert_eq!(before.summary.hash, after.summary.hash);
    assert_eq!(events(&before.tables, 0).len(), events(&after.tables, 0).len());
}
