//! Parallel streams: the packets of as many flows, reported as one.

use crate::common::{drop_tail, dumbbell, linux_flow, ns2_flow, rate, run};
use lfn_sim::config::{Config, FlowConfig, Loss};
use lfn_units::Time;

/// Two transfers of three streams each, of 2 MB a stream; `grouped` or as flows of their own.
fn transfers(grouped: bool) -> Config {
    let flows = (0..6)
        .map(|i| FlowConfig {
            stream: if grouped { i % 3 } else { 0 },
            size_segments: 1400 + 100 * u64::from(i),
            ..linux_flow(if i < 3 { "reno" } else { "cubic" }, Time::from_ms(40))
        })
        .collect();
    let mut config = dumbbell(drop_tail(rate("50Mbit/s"), 100), flows, Time::from_s(20));
    config.sample = Some(Time::from_ms(100));
    config
}

#[test]
fn a_transfer_is_the_sum_of_its_streams() {
    let (sum, single) = (run(&transfers(true)), run(&transfers(false)));
    assert_eq!(sum.summary.hash, single.summary.hash, "the packets are the same");
    assert_eq!((sum.summary.flows.len(), single.summary.flows.len()), (2, 6));
    for (id, (flow, streams)) in (0..).zip(sum.summary.flows.iter().zip(single.summary.flows.chunks(3))) {
        assert_eq!((flow.id, flow.streams, &flow.law), (id, 3, &streams[0].law));
        let bytes: u64 = streams.iter().map(|stream| stream.delivered_bytes).sum();
        assert_eq!(flow.delivered_bytes, bytes);
        assert_eq!(flow.retransmits, streams.iter().map(|stream| stream.retransmits).sum::<u64>());
        let last_s = streams.iter().filter_map(|stream| stream.completion_s).fold(0.0, f64::max);
        assert_eq!(flow.completion_s, Some(last_s));
        assert!((flow.goodput_bps.unwrap() - bytes as f64 * 8.0 / last_s).abs() < 1.0);
        // The sampled sums keep what a stream delivered that is done before the others.
        let table = &sum.tables.flows;
        let delivered: Vec<u64> =
            (0..table.t_s.len()).filter(|&i| table.flow[i] == id).map(|i| table.delivered_bytes[i]).collect();
        assert!(delivered.is_sorted() && *delivered.last().unwrap() > bytes * 9 / 10);
    }
    let [a, b] = [0, 1].map(|i| sum.summary.flows[i].goodput_bps.unwrap());
    let jain = sum.summary.jain.expect("two flows");
    assert!((jain - (a + b) * (a + b) / (2.0 * (a * a + b * b))).abs() < 1e-12);
}

#[test]
fn sampled_windows_are_sums() {
    let (sum, single) = (run(&transfers(true)).tables.flows, run(&transfers(false)).tables.flows);
    let at_1_s = |table: &lfn_sim::tables::FlowTable, flows: std::ops::Range<u32>| -> f64 {
        let rows = (0..table.t_s.len()).filter(|&i| table.t_s[i] == 1.0 && flows.contains(&table.flow[i]));
        rows.map(|i| table.cwnd_seg[i]).sum()
    };
    assert!(at_1_s(&sum, 0..1) > 10.0);
    assert_eq!(at_1_s(&sum, 0..1), at_1_s(&single, 0..3));
    assert_eq!(at_1_s(&sum, 1..2), at_1_s(&single, 3..6));
}

#[test]
fn eight_reno_streams_have_eight_times_the_window() {
    // As many times 1.2247/sqrt(p) for evenly spaced losses; 1.31 for Bernoulli losses.
    let p = 1e-3;
    let flows =
        (0..8).map(|i| FlowConfig { stream: i, ..ns2_flow("reno:rfc", Time::from_ms(100)) }).collect();
    let mut config = dumbbell(drop_tail(rate("10Gbit/s"), 1_000_000), flows, Time::from_s(150));
    config.links[0].impair.loss = Loss::Bernoulli(p);
    config.warmup = Time::from_s(30);
    let ratio = run(&config).summary.flows[0].mean_cwnd_segments.unwrap() * p.sqrt() / 8.0;
    println!("{ratio}");
    assert!((1.1..1.4).contains(&ratio), "{ratio}");
}
