//! Large scenarios run, in memory that grows with packets in flight and with flows.

use crate::common::{drop_tail, dumbbell, linux_flow, rate, run};
use lfn_sim::config::FlowConfig;
use lfn_units::Time;

#[test]
fn two_and_a_half_million_packets_in_flight() {
    // 100 Gbit/s x 300 ms. An initial window of a quarter million doubles every round trip.
    let rtt = Time::from_ms(300);
    let mut flow = linux_flow("htcp:linux", rtt);
    // Behind a handshake the window of the SYN-ACK would limit the first flight to 65,535 bytes.
    flow.sender.handshake = false;
    flow.sender.initial_window_segments = 320_000;
    flow.sender.initial_ssthresh_segments = Some(2_500_000);
    let mut config = dumbbell(drop_tail(rate("100Gbit/s"), 2_500_000), vec![flow], Time::from_ms(1450));
    config.sample = Some(Time::from_ms(50));
    let outcome = run(&config);
    let most = outcome.tables.flows.inflight_seg.iter().copied().max().expect("sampled");
    let bytes = outcome.summary.memory.packet_bytes as f64 / f64::from(most);
    println!("{most} packets in flight, {bytes:.1} bytes each");
    assert!(most >= 2_490_000, "{most}");
    assert!(bytes < 64.0, "{bytes} bytes per packet");
}

#[test]
fn ten_thousand_flows() {
    let flows: Vec<FlowConfig> = (0..10_000)
        .map(|i| FlowConfig {
            start: Time::from_us(100 * i),
            ..linux_flow("cubic", Time::from_ms(50 + i % 100))
        })
        .collect();
    let config = dumbbell(drop_tail(rate("10Gbit/s"), 50_000), flows, Time::from_s(3));
    let summary = run(&config).summary;
    let idle = summary.flows.iter().filter(|flow| flow.delivered_bytes == 0).count();
    println!(
        "{} bytes per flow, {} bytes of packets, utilization {:.3}",
        summary.memory.bytes_per_flow, summary.memory.packet_bytes, summary.links[0].utilization
    );
    // About one in a hundred loses its SYN or the whole first flight, and the second after the initial timeout of 1 s.
    assert!(idle < 200, "{idle}");
    assert!(summary.links[0].utilization > 0.8, "{}", summary.links[0].utilization);
    assert!(summary.memory.bytes_per_flow < 2048, "{}", summary.memory.bytes_per_flow);
    assert!(summary.memory.packet_bytes < 10_000 * 20_000, "{}", summary.memory.packet_bytes);
}
