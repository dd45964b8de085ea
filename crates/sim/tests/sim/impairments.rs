//! Links that lose, double, delay and reorder packets at random.

use crate::common::{
    capture, datagrams, link, ms, network, ns2_flow, rows, run, us, ACK, ARRIVES, DATA, DEPARTS, RECEIVED,
};
use lfn_path::{GilbertElliottConfig, JitterConfig, Reorder};
use lfn_sim::config::{Impair, LinkConfig, Loss};
use lfn_sim::Outcome;
use lfn_units::Time;

/// 100,000 datagrams over a link with these impairments.
fn datagrams_through(impair: Impair, seed: u64) -> Outcome {
    let links = vec![LinkConfig { impair, ..link("only", "100Mbit/s", ms(1)) }];
    let mut config = network(links, vec![vec![0]], Vec::new(), Time::from_s(11));
    config.seed = seed;
    config.udp = vec![datagrams(0, 1000, Time::ZERO, us(100), 100_000)];
    run(&config)
}

/// A Reno flow over a link with these impairments; the ACKs are recorded.
fn flow_through(impair: Impair, seed: u64) -> Outcome {
    let links =
        vec![LinkConfig { impair, ..link("there", "20Mbit/s", ms(20)) }, link("back", "20Mbit/s", ms(20))];
    let mut flow = ns2_flow("reno:rfc", ms(40));
    flow.sender.receive_window_segments = 50;
    let mut config = network(links, vec![vec![0], vec![1]], vec![flow], Time::from_s(10));
    config.seed = seed;
    config.capture = capture([1]);
    run(&config)
}

fn sacks(outcome: &Outcome) -> usize {
    rows(&outcome.tables, 1, ARRIVES, ACK).iter().filter(|row| row.has_sack).count()
}

/// That many of `n`, to 5 standard deviations; `spread` is the variance over that of independent draws.
fn assert_share(count: u64, n: u64, p: f64, spread: f64) {
    let (n, count) = (n as f64, count as f64);
    let sigma = (n * p * (1.0 - p) * spread).sqrt();
    assert!((count - n * p).abs() < 5.0 * sigma, "{count} of {n}, expected {} +- {sigma}", n * p);
}

#[test]
fn independent_losses_are_counted() {
    for (seed, p) in [(1, 0.001), (2, 0.01), (3, 0.2)] {
        let summary =
            datagrams_through(Impair { loss: Loss::Bernoulli(p), ..Impair::default() }, seed).summary;
        let udp = &summary.udp[0];
        assert_share(udp.lost, udp.sent, p, 1.0);
        assert_eq!((udp.sent, udp.delivered), (100_000, 100_000 - udp.lost));
        assert_eq!(summary.links[0].random_losses, udp.lost);
        assert_eq!(summary.conservation.lost, udp.lost);
    }
}

#[test]
fn losses_in_bursts_are_counted() {
    // A two-state chain that keeps its state with correlation 1 - p - r from packet to packet.
    let (p, r) = (0.002, 0.1);
    let model = GilbertElliottConfig::simple(p, r);
    let keeps = 1.0 - p - r;
    for seed in 1..=3 {
        let impair = Impair { loss: model.into(), ..Impair::default() };
        let summary = datagrams_through(impair, seed).summary;
        let (share, spread) = (p / (p + r), (1.0 + keeps) / (1.0 - keeps));
        assert_share(summary.links[0].random_losses, 100_000, share, spread);
    }
}

#[test]
fn duplicates_arrive_twice() {
    let impair = Impair { duplicate: 0.1, ..Impair::default() };
    let udp = datagrams_through(impair, 1).summary.udp[0].clone();
    assert_share(udp.delivered - udp.sent, udp.sent, 0.1, 1.0);

    let outcome = flow_through(impair, 1);
    let (flow, all) = (&outcome.summary.flows[0], outcome.summary.conservation);
    let copies = all.sent - flow.sent;
    assert_share(copies, flow.sent, 0.1, 1.0);
    assert_eq!((all.lost, all.dropped, flow.retransmits), (0, 0, 0));
    // The receiver answers a packet that it has already.
    let acks = rows(&outcome.tables, 1, ARRIVES, ACK);
    let repeated = acks.windows(2).filter(|pair| pair[0].seq == pair[1].seq).count() as u64;
    assert!(repeated.abs_diff(copies) <= 10, "{repeated} repeated ACKs, {copies} copies");
}

#[test]
fn jitter_reorders_unless_it_keeps_order() {
    let uniform = |keep_order| Some(JitterConfig::uniform(Time::ZERO, ms(5), keep_order));
    let jitter = |keep_order| Impair { jitter: uniform(keep_order), ..Impair::default() };
    for (keeps_order, seed) in [(false, 1), (false, 2), (true, 1), (true, 2)] {
        let outcome = flow_through(jitter(keeps_order), seed);
        let all = outcome.summary.conservation;
        assert_eq!((all.lost, all.dropped), (0, 0));
        assert_eq!(sacks(&outcome) == 0, keeps_order, "{} ACKs with SACK", sacks(&outcome));
    }
}

/// A recording has each packet when it reaches its host: with the delays, the jitter and the copies of its way, and not
/// what is lost on it.
#[test]
fn recorded_packets_reach_their_hosts() {
    let impair = Impair {
        loss: Loss::Bernoulli(0.01),
        duplicate: 0.05,
        jitter: Some(JitterConfig::uniform(Time::ZERO, ms(5), true)),
        ..Impair::default()
    };
    let links =
        vec![LinkConfig { impair, ..link("there", "20Mbit/s", ms(20)) }, link("back", "20Mbit/s", ms(20))];
    // Its own links are 10 ms of the way there and 10 ms of the way back.
    let mut config =
        network(links, vec![vec![0], vec![1]], vec![ns2_flow("reno:rfc", ms(60))], Time::from_s(5));
    config.capture = capture([0, 1]);
    let outcome = run(&config);
    let (all, flow) = (outcome.summary.conservation, &outcome.summary.flows[0]);

    let [sent, left, came] = [ARRIVES, DEPARTS, RECEIVED].map(|point| rows(&outcome.tables, 0, point, DATA));
    let copies = came.len() - left.len();
    assert_eq!((sent.len() as u64, came.len() as u64), (flow.sent, all.delivered));
    assert_eq!(copies as u64, all.sent - flow.sent);
    assert!(copies > 0 && all.lost > 0);
    // In the order in which they left; a copy comes with its packet.
    let mut once = came.clone();
    once.dedup_by_key(|row| (row.at, row.seq));
    assert_eq!(once.len(), left.len());
    for (left, came) in left.iter().zip(&once) {
        assert_eq!(came.seq, left.seq);
        assert!(came.at - left.at >= ms(30));
    }

    let [left, came] = [DEPARTS, RECEIVED].map(|point| rows(&outcome.tables, 1, point, ACK));
    for (left, came) in left.iter().zip(&came) {
        assert_eq!((came.at - left.at, came.seq), (ms(30), left.seq));
    }
    assert!(left.len() > 500);
}

#[test]
fn held_up_packets_are_overtaken_at_their_rate() {
    // 1 of 1000 is late by less than two packets' serialisation: overtaken, but no loss is suspected.
    let impair = Impair { reorder: Some(Reorder { p: 0.001, delay: us(1000) }), ..Impair::default() };
    let outcome = flow_through(impair, 1);
    let flow = &outcome.summary.flows[0];
    let acks = rows(&outcome.tables, 1, ARRIVES, ACK);
    let begins = acks.windows(2).filter(|pair| !pair[0].has_sack && pair[1].has_sack).count() as u64;
    assert_share(begins, flow.sent, 0.001, 1.0);
    assert_eq!(flow.retransmits, 0);
}

#[test]
fn the_seed_decides_everything() {
    let impair = Impair {
        loss: Loss::Bernoulli(0.001),
        duplicate: 0.01,
        reorder: Some(Reorder { p: 0.01, delay: ms(3) }),
        jitter: Some(JitterConfig::normal(ms(2), ms(1), false)),
    };
    let hash = |seed| flow_through(impair, seed).summary.hash;
    assert_eq!(hash(7), hash(7));
    assert_ne!(hash(7), hash(8));
}
