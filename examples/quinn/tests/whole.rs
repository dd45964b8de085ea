//! A whole quinn-proto connection beside a simulated TCP flow.

use std::marker::PhantomData;

use lfn_example_quinn::Whole;
use lfn_scenario::Scenario;
use lfn_sim::{FlowSummary, Sim, StackCounts};
use lfn_stack_quinn::Cubic;

const PATH: &str = r#"
schema = 1
duration = "20s"
sample = "100ms"
[link]
rate = "20Mbit/s"
queue = { size = "1bdp" }
[[flow]]
law = "whole"
rtt = "40ms"
[[flow]]
law = "cubic"
rtt = "40ms"
"#;

/// quinn's flow and datagrams, and TCP's flow, which begins later.
fn run(start: &str) -> (FlowSummary, [StackCounts; 2], FlowSummary) {
    let text = format!("{PATH}start = \"{start}\"\n");
    let whole = Whole::<Cubic>(PhantomData);
    let scenario = Scenario::parse_with(&text, "whole", Some(1 << 30), &whole).unwrap();
    let mut sim = Sim::new(&scenario.config(1)).unwrap();
    sim.run_until(sim.duration());
    let counts = sim.stack_counts(0).unwrap();
    let mut flows = sim.finish().unwrap().summary.flows;
    let tcp = flows.pop().unwrap();
    (flows.pop().unwrap(), counts, tcp)
}

#[test]
fn a_whole_connection_fills_the_path() {
    let (quinn, [client, server], _) = run("19s");
    println!("{quinn:?} {client:?} {server:?}");
    assert!(quinn.goodput_bps.unwrap() > 0.8 * 20e6, "{quinn:?}");
    assert!(client.lost > 0 && quinn.retransmits >= client.lost, "{quinn:?}, {client:?}");
    assert!(server.sent > client.sent / 20, "ACKs: {server:?}");
    let srtt_s = quinn.srtt_s.unwrap();
    assert!(srtt_s > 0.04 && srtt_s < 0.09, "{quinn:?}");
    assert!(quinn.mean_cwnd_segments.unwrap() > 0.8 * 69.0, "of a BDP of 69 packets: {quinn:?}");
}

#[test]
fn it_shares_the_path_with_a_flow_of_tcp() {
    let (quinn, _, tcp) = run("0s");
    let [quinn_bps, tcp_bps] = [quinn, tcp].map(|flow| flow.goodput_bps.unwrap());
    println!("quinn {quinn_bps:.0}, TCP {tcp_bps:.0} bit/s");
    assert!(quinn_bps + tcp_bps > 0.85 * 20e6 && quinn_bps + tcp_bps < 20e6);
    assert!(quinn_bps > 0.1 * 20e6 && tcp_bps > 0.1 * 20e6);
}

#[test]
fn two_runs_are_equal() {
    let told = || format!("{:?}", run("0s"));
    assert_eq!(told(), told());
}
