//! A whole quinn-proto connection beside a simulated TCP flow.

use lfn_example_quinn::whole::{Pair, Progress};
use lfn_scenario::Scenario;
use lfn_sim::config::RouteId;
use lfn_sim::{Sim, StackConfig, StackCounts};
use lfn_units::Time;
use quinn_proto::congestion::CubicConfig;

const PATH: &str = r#"
schema = 1
duration = "20s"
sample = "100ms"
[link]
rate = "20Mbit/s"
queue = { size = "1bdp" }
[[flow]]
law = "cubic"
rtt = "40ms"
"#;

/// quinn's progress and datagrams, and TCP's goodput in bit/s.
fn run(start: &str) -> (Progress, [StackCounts; 2], f64) {
    let text = format!("{PATH}start = \"{start}\"\n");
    let scenario = Scenario::parse(&text, "whole", Some(1 << 30)).unwrap();
    let (pair, progress) = Pair::new(CubicConfig::default(), 1);
    let stack = StackConfig {
        routes: [RouteId(0), RouteId(1)],
        delays: [Time::from_ms(20), Time::from_ms(20)],
        start: Time::ZERO,
        largest_bytes: 1514,
        stack: Box::new(pair),
    };
    let mut sim = Sim::with_stacks(&scenario.config(1), vec![stack]).unwrap();
    sim.run_until(sim.duration());
    let counts = sim.stack_counts(0).unwrap();
    let flow = sim.finish().unwrap().summary.flows[0].delivered_bytes;
    let progress = *progress.lock().unwrap();
    (progress, counts, flow as f64 * 8.0 / 20.0)
}

#[test]
fn a_whole_connection_fills_the_path() {
    let (quinn, [client, server], _) = run("19s");
    println!("{quinn:?} {client:?} {server:?}");
    let goodput_bps = quinn.read_bytes as f64 * 8.0 / 20.0;
    assert!(goodput_bps > 0.8 * 20e6, "{quinn:?}");
    assert!(client.lost > 0 && quinn.lost_packets >= client.lost, "{quinn:?}, {client:?}");
    assert!(server.sent > client.sent / 20, "ACKs: {server:?}");
    assert!(quinn.srtt_s > 0.04 && quinn.srtt_s < 0.09, "{quinn:?}");
}

#[test]
fn it_shares_the_path_with_a_flow_of_tcp() {
    let (quinn, _, tcp_bps) = run("0s");
    let quinn_bps = quinn.read_bytes as f64 * 8.0 / 20.0;
    println!("quinn {quinn_bps:.0}, TCP {tcp_bps:.0} bit/s");
    assert!(quinn_bps + tcp_bps > 0.85 * 20e6 && quinn_bps + tcp_bps < 20e6);
    assert!(quinn_bps > 0.1 * 20e6 && tcp_bps > 0.1 * 20e6);
}

#[test]
fn two_runs_are_equal() {
    assert_eq!(run("0s"), run("0s"));
}
