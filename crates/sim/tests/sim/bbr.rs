//! BBR, versions 1 and 3: what they do to a link, to its queue, and to CUBIC.

use crate::common::{drop_tail, dumbbell, linux_flow, rate, run, LINUX_WIRE_BYTES};
use lfn_sim::{Outcome, Tables};
use lfn_units::Time;

/// The fraction of a BDP that a buffer holds, in packets.
fn buffer_packets(rate_bps: f64, rtt: Time, bdp: f64) -> u64 {
    (bdp * rate_bps * rtt.as_s() / 8.0 / f64::from(LINUX_WIRE_BYTES)) as u64
}

/// One flow alone, sampled every 10 ms.
fn alone(name: &str, rate_text: &str, rtt: Time, buffer_bdp: f64, warmup_s: u64, seconds: u64) -> Outcome {
    let link = drop_tail(rate(rate_text), buffer_packets(rate(rate_text).as_bps(), rtt, buffer_bdp));
    let mut config = dumbbell(link, vec![linux_flow(name, rtt)], Time::from_s(seconds));
    config.warmup = Time::from_s(warmup_s);
    config.sample = Some(Time::from_ms(10));
    run(&config)
}

/// The values of the first flow's probe `number`, with their times.
fn probe(tables: &Tables, number: u8) -> Vec<(f64, f64)> {
    let table = &tables.probes;
    (0..table.t_s.len())
        .filter(|&i| (table.flow[i], table.probe[i]) == (0, number))
        .map(|i| (table.t_s[i], table.value[i]))
        .collect()
}

/// bbr3 has 0.89 to 0.91 at RTTs of 98 to 102 ms.
#[test]
fn a_buffer_of_a_twentieth_of_a_bdp_is_enough_for_nine_tenths_of_the_link() {
    for (name, least) in [("bbr", 0.9), ("bbr3", 0.885)] {
        let summary = alone(name, "1Gbit/s", Time::from_ms(100), 0.05, 30, 120).summary;
        let utilization = summary.links[0].utilization;
        assert!(utilization > least, "{name}: {utilization}");
    }
}

/// Start-up takes 15 round trips and the drain; then the rate is that of the link, to the packet.
#[test]
fn the_rate_of_the_link_is_found_and_the_queue_drained() {
    for (name, least) in [("bbr", 0.95), ("bbr3", 0.93)] {
        let outcome = alone(name, "100Mbit/s", Time::from_ms(40), 2.0, 1, 30);
        let link = &outcome.summary.links[0];
        assert!(link.utilization > least, "{name}: {}", link.utilization);
        assert_eq!(link.drops, 0, "{name}: 2 BDP of flight fit into 3");
        let segments_per_us = 100.0 / 8.0 / f64::from(LINUX_WIRE_BYTES);
        for (t_s, bw) in probe(&outcome.tables, 2).into_iter().filter(|(t_s, _)| *t_s > 1.0) {
            assert!((bw / segments_per_us - 1.0).abs() < 0.02, "{name}: {bw} at {t_s} s");
        }
        assert!(link.mean_queue_s < 0.008, "{name}: {} s", link.mean_queue_s);
    }
}

/// 10 s after the last smaller RTT with four segments, and 5 s after it with half a BDP.
#[test]
fn the_rtt_is_probed_as_each_version_says() {
    let bdp = 100e6 * 0.04 / 8.0 / f64::from(LINUX_WIRE_BYTES);
    for (name, mode, every_s, flight) in [("bbr", 3.0, 10.0, 4.0), ("bbr3", 6.0, 5.0, 0.5 * bdp)] {
        let outcome = alone(name, "100Mbit/s", Time::from_ms(40), 2.0, 1, 60);
        let states = probe(&outcome.tables, 0);
        let starts: Vec<f64> = states
            .windows(2)
            .filter(|pair| pair[0].1 != mode && pair[1].1 == mode)
            .map(|pair| pair[1].0)
            .collect();
        assert!(starts.len() >= (50.0 / every_s) as usize - 1, "{name}: {starts:?}");
        for pair in starts.windows(2) {
            let apart_s = pair[1] - pair[0];
            assert!((every_s..=every_s * 1.2 + 0.5).contains(&apart_s), "{name}: {apart_s} s");
        }
        let flows = &outcome.tables.flows;
        let least = (0..flows.t_s.len())
            .filter(|&i| flows.t_s[i] > 2.0)
            .map(|i| f64::from(flows.inflight_seg[i]))
            .fold(f64::INFINITY, f64::min);
        assert!((least - flight).abs() <= 4.0, "{name}: {least} in flight");
    }
}

/// Linux 6.12's own BBR on four paths for 40 s, by 10 ms samples after the first 4 s: goodput in Mbit/s, mean
/// window, largest window, mean smoothed RTT in ms.
#[test]
fn one_flow_does_what_linux_was_seen_to_do() {
    let seen = [
        ("50Mbit/s", 40, 83, [46.773, 338.8, 499.0, 42.718]),
        ("50Mbit/s", 100, 103, [46.129, 765.0, 1032.0, 104.231]),
        ("20Mbit/s", 40, 66, [18.754, 141.6, 204.0, 44.882]),
        ("100Mbit/s", 100, 832, [92.657, 1633.4, 2454.0, 104.276]),
    ];
    for (rate_text, rtt_ms, limit, linux) in seen {
        // netem counts the packet in service.
        let link = drop_tail(rate(rate_text), limit - 1);
        let flow = linux_flow("bbr", Time::from_ms(rtt_ms));
        let mut config = dumbbell(link, vec![flow], Time::from_s(40));
        config.sample = Some(Time::from_ms(10));
        let tables = run(&config).tables;
        let flows = &tables.flows;
        let settled = flows.t_s.iter().position(|&t_s| t_s > 4.0).expect("40 s");
        let last = flows.t_s.len() - 1;
        let bytes = (flows.delivered_bytes[last] - flows.delivered_bytes[settled]) as f64;
        let mean = |values: &[f64]| values[settled..].iter().sum::<f64>() / (last + 1 - settled) as f64;
        let ours = [
            bytes * 8e-6 / (flows.t_s[last] - flows.t_s[settled]),
            mean(&flows.cwnd_seg),
            flows.cwnd_seg.iter().copied().fold(0.0, f64::max),
            mean(&flows.srtt_s) * 1e3,
        ];
        for (ours, linux) in ours.into_iter().zip(linux) {
            assert!((ours / linux - 1.0).abs() < 0.02, "{rate_text} x {rtt_ms} ms: {ours}, Linux {linux}");
        }
    }
}

/// Linux 6.12's own BBR on seven paths, by 10 ms samples from 4 to 20 s: packets dropped, and mean queue in
/// packets. A phase of 5/4 ends when what is in the network, with the burst that leaves next, is 5/4 BDP;
/// without the burst the queue is up to half as long again and the drops are more by a quarter to a half.
#[test]
fn probes_for_more_drop_and_queue_what_linux_was_seen_to() {
    let seen = [
        ("50Mbit/s", 40, 83, 0, 9.98),
        ("50Mbit/s", 100, 103, 220, 14.72),
        ("20Mbit/s", 40, 66, 0, 6.82),
        ("100Mbit/s", 100, 207, 380, 28.98),
        ("60Mbit/s", 130, 160, 166, 20.26),
        ("10Mbit/s", 80, 17, 138, 3.33),
        ("200Mbit/s", 30, 100, 4059, 16.58),
    ];
    for (rate_text, rtt_ms, limit, drops, queue) in seen {
        let link = drop_tail(rate(rate_text), limit - 1);
        let mut config = dumbbell(link, vec![linux_flow("bbr", Time::from_ms(rtt_ms))], Time::from_s(20));
        config.links[1].service = rate("1Tbit/s").into();
        config.sample = Some(Time::from_ms(10));
        let queues = run(&config).tables.queues;
        let settled: Vec<usize> =
            (0..queues.t_s.len()).filter(|&i| queues.link[i] == 0 && queues.t_s[i] > 4.0).collect();
        let (first, last) = (settled[0], settled[settled.len() - 1]);
        let ours = (queues.drops[last] - queues.drops[first]) as f64;
        let mean = settled.iter().map(|&i| f64::from(queues.packets[i])).sum::<f64>() / settled.len() as f64;
        let path = format!("{rate_text} x {rtt_ms} ms, {limit}: {ours} drops, {mean} packets");
        assert!((ours - f64::from(drops)).abs() <= 0.1 * f64::from(drops), "{path}; Linux {drops}");
        assert!((mean / queue - 1.0).abs() < 0.1, "{path}; Linux {queue}");
    }
}

/// The share of `name` beside CUBIC, both of 40 ms on 100 Mbit/s.
fn share(name: &str, buffer_bdp: f64) -> f64 {
    let rtt = Time::from_ms(40);
    let mut cubic = linux_flow("cubic:linux", rtt);
    cubic.start = Time::from_ms(1);
    let link = drop_tail(rate("100Mbit/s"), buffer_packets(100e6, rtt, buffer_bdp));
    let mut config = dumbbell(link, vec![linux_flow(name, rtt), cubic], Time::from_s(120));
    config.warmup = Time::from_s(20);
    let flows = run(&config).summary.flows;
    flows[0].goodput_bps.unwrap() / (flows[0].goodput_bps.unwrap() + flows[1].goodput_bps.unwrap())
}

/// The unfairness that is known of version 1: it takes what it finds where the buffer is small, and CUBIC's
/// queue makes it small where the buffer is deep. Version 3 was made to be milder where it takes.
#[test]
fn beside_cubic_the_buffer_decides() {
    let v1 = [0.25, 8.0].map(|buffer| share("bbr", buffer));
    assert!(v1[0] > 0.75 && v1[1] < 0.5, "{v1:?}");
    let v3 = [0.25, 8.0].map(|buffer| share("bbr3", buffer));
    assert!(v3[0] < v1[0] && v3[1] < v3[0], "{v3:?}");
}
