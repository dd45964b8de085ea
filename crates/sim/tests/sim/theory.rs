//! Known values of TCP over a dumbbell: compares theory and RFCs with results.

use crate::common::{
    drop_tail, dumbbell, events, law, linux_flow, ns2_flow, rate, run, BDP_PACKETS, ECN, FAST_RETRANSMIT,
    RECOVERY_END,
};
use lfn_law::SlowStartKind;
use lfn_path::{AqmConfig, RedConfig, Thresholds, Weight};
use lfn_sim::config::{Config, FlowConfig, Loss};
use lfn_sim::Outcome;
use lfn_tcp::ReceiverConfig;
use lfn_units::Time;

const RTT: Time = Time::from_ms(100);

/// One flow on 100 Mbit/s x 100 ms, sampled every millisecond.
fn sampled(flow: FlowConfig, buffer_packets: u64, seconds: u64) -> Config {
    let mut config =
        dumbbell(drop_tail(rate("100Mbit/s"), buffer_packets), vec![flow], Time::from_s(seconds));
    config.sample = Some(Time::from_ms(1));
    config
}

#[test]
fn reno_needs_a_buffer_of_one_bdp() {
    // 20 Mbit/s x 50 ms: 83 packets. The sawtooth fills the link with one BDP of buffer, and three
    // quarters of it with none: the window swings between half the pipe and the pipe.
    let utilization = |buffer_packets: u64| {
        let mut flow = ns2_flow("reno:rfc", Time::from_ms(50));
        flow.sender.initial_ssthresh_segments = Some(40);
        // Bursts of a single packet: without a buffer a burst of two does not fit.
        flow.sender.pacing = buffer_packets < 10;
        let mut config = dumbbell(drop_tail(rate("20Mbit/s"), buffer_packets), vec![flow], Time::from_s(120));
        config.warmup = Time::from_s(20);
        run(&config).summary.links[0].utilization
    };
    let (full, none) = (utilization(84), utilization(1));
    println!("{full} {none}");
    assert!(full >= 0.99, "{full}");
    assert!((none - 0.75).abs() < 0.02, "{none}");
}

#[test]
fn renos_mean_window_under_random_loss_follows_the_square_root() {
    // 1.2247 / sqrt(p) for evenly spaced losses; Bernoulli losses have a smaller mean, 1.31 for the
    // rate: bounds of both.
    let p = 1e-4;
    let mut config = sampled(ns2_flow("reno:rfc", RTT), 1_000_000, 400);
    config.links[0] = drop_tail(rate("10Gbit/s"), 1_000_000);
    config.links[0].impair.loss = Loss::Bernoulli(p);
    config.sample = None;
    config.warmup = Time::from_s(50);
    let flow = &run(&config).summary.flows[0];
    let ratio = flow.mean_cwnd_segments.unwrap() * p.sqrt();
    println!("{ratio}");
    assert!((1.1..1.4).contains(&ratio), "{ratio}");
}

#[test]
fn the_first_flight_has_ten_segments() {
    let config = sampled(linux_flow("reno:linux", RTT), 1000, 1);
    let flows = run(&config).tables.flows;
    // The handshake takes the first round trip.
    assert_eq!((flows.inflight_seg[50], flows.inflight_seg[150]), (0, 10));
    let config = sampled(ns2_flow("reno:rfc", RTT), 1000, 1);
    assert_eq!(run(&config).tables.flows.inflight_seg[50], 2);
}

#[test]
fn one_reduction_for_many_losses_in_a_window() {
    // A burst overflows the queue by hundreds of packets.
    for sack in [true, false] {
        let mut flow = ns2_flow("reno:rfc", RTT);
        flow.sender.sack = sack;
        flow.receiver.sack = sack;
        let outcome = run(&sampled(flow, 400, 3));
        let seen = events(&outcome.tables, 0);
        assert!(outcome.summary.links[0].drops > 20, "{}", outcome.summary.links[0].drops);
        let kinds: Vec<u8> = seen.iter().map(|event| event.kind).take(2).collect();
        let expected: &[u8] = if sack { &[FAST_RETRANSMIT, RECOVERY_END] } else { &[FAST_RETRANSMIT] };
        assert!(kinds.starts_with(expected), "{seen:?}");
        assert!((seen[0].ssthresh - seen[0].cwnd_before / 2.0).abs() <= 0.5);
    }
}

#[test]
fn a_mark_reduces_the_window_and_repeats_nothing() {
    let mut flow = ns2_flow("reno:rfc", RTT);
    flow.sender.ecn = true;
    flow.receiver.ecn = true;
    flow.sender.initial_ssthresh_segments = Some(400);
    let mut config = sampled(flow, 5000, 120);
    for link in &mut config.links {
        link.queue = AqmConfig::Red(RedConfig { ecn: true, mark_p: 1.0, ..RedConfig::gentle(1500) });
    }
    let outcome = run(&config);
    let (flow, link) = (&outcome.summary.flows[0], &outcome.summary.links[0]);
    assert!(link.marks > 3 && link.drops == 0, "{} marks, {} drops", link.marks, link.drops);
    assert_eq!(flow.retransmits, 0);
    let marks: Vec<_> = events(&outcome.tables, 0).into_iter().filter(|e| e.kind == ECN).collect();
    assert_eq!(marks.len() as u64, flow.loss_events);
    // Many marks in a window, one reduction: never two within a round trip.
    assert!(marks.windows(2).all(|pair| pair[1].t_s - pair[0].t_s > RTT.as_s()));
    for mark in marks {
        assert!((mark.ssthresh - mark.cwnd_before / 2.0).abs() <= 0.5);
    }
}

/// One DCTCP flow on 100 Mbit/s x 10 ms, 83 packets, before a router that marks: mean of alpha, and the run.
fn dctcp(marking: RedConfig, echo_each_mark: bool, delayed_ack: bool) -> (f64, Outcome) {
    let mut flow = linux_flow("dctcp", Time::from_ms(10));
    flow.sender.ecn = true;
    flow.sender.initial_ssthresh_segments = Some(80);
    flow.receiver =
        ReceiverConfig { ecn: true, echo_each_mark, delayed_ack, buffer_bytes: None, ..flow.receiver };
    let mut config = sampled(flow, 1000, 20);
    config.warmup = Time::from_s(5);
    for link in &mut config.links {
        link.queue =
            AqmConfig::Red(RedConfig { weight: Weight::Fixed(1.0), ecn: true, mark_p: 1.0, ..marking });
    }
    let outcome = run(&config);
    assert_eq!((outcome.summary.links[0].drops, outcome.summary.flows[0].retransmits), (0, 0));
    let alphas = &outcome.tables.probes.value[5000..];
    (alphas.iter().sum::<f64>() / alphas.len() as f64, outcome)
}

#[test]
fn dctcp_keeps_the_queue_near_the_threshold() {
    // Marked is what finds more than 40 packets.
    let thresholds = Thresholds::Fixed { min_th: 40.0, max_th: 40.5 };
    let step = RedConfig { max_p: 0.99, gentle: true, ..RedConfig::classic(1514).between(thresholds) };
    for delayed_ack in [false, true] {
        let link = &dctcp(step, true, delayed_ack).1.summary.links[0];
        assert!(link.utilization > 0.999, "{}", link.utilization);
        let packets = link.mean_queue_s * 100e6 / (8.0 * 1514.0);
        assert!((35.0..42.0).contains(&packets), "{packets}");
    }
}

#[test]
fn dctcps_alpha_is_the_fraction_of_marks_if_each_is_echoed() {
    // Marks at random, more of them the longer the queue.
    let thresholds = Thresholds::Fixed { min_th: 5.0, max_th: 900.0 };
    let slope = RedConfig { max_p: 0.99, ..RedConfig::classic(1514).between(thresholds) };
    let fraction = |outcome: &Outcome| {
        let link = &outcome.summary.links[0];
        link.marks as f64 / link.arrivals as f64
    };
    for delayed_ack in [false, true] {
        let (alpha, outcome) = dctcp(slope, true, delayed_ack);
        println!("alpha {alpha}, {} of the fraction marked", alpha / fraction(&outcome));
        assert!((alpha / fraction(&outcome) - 1.0).abs() < 0.05);
    }
    // An echo until the window was reduced stands for a round trip of marks.
    let (alpha, outcome) = dctcp(slope, false, false);
    assert!(alpha > 3.0 * fraction(&outcome), "{alpha}");
}

#[test]
fn slow_starts_differ_as_they_should() {
    // Until the first loss, or 3 s, with a buffer of four BDP.
    let leave = |kind: SlowStartKind| {
        let mut flow = linux_flow("reno:linux", RTT);
        flow.sender.slow_start = kind;
        let outcome = run(&sampled(flow, 3300, 3));
        let flows = &outcome.tables.flows;
        let most = flows.cwnd_seg.iter().copied().fold(0.0, f64::max);
        (most, outcome.summary.links[0].drops, flows.cwnd_seg[1100])
    };
    let (classic, limited) = (leave(SlowStartKind::Classic), leave(SlowStartKind::Limited));
    let (hystart, plus) = (leave(SlowStartKind::HyStart), leave(SlowStartKind::HyStartPlusPlus));
    println!("{classic:?} {limited:?} {hystart:?} {plus:?}");
    assert!(classic.0 > 4.0 * BDP_PACKETS && classic.1 > 1000, "{classic:?}");
    // RFC 3742: 10, 20, 40, 80, 100, and then 50 a round trip; ten round trips in the second after the handshake.
    assert!((350.0..450.0).contains(&limited.2), "{limited:?}");
    assert!(hystart.0 < 1.4 * BDP_PACKETS && hystart.1 == 0, "{hystart:?}");
    // HyStart++ sees the delay of a full pipe one round trip later, and grows for five more.
    assert!(plus.0 < 0.7 * classic.0 && 3 * plus.1 < classic.1, "{plus:?}");
}

#[test]
fn the_window_does_not_grow_beyond_what_is_used() {
    let mut flow = linux_flow("cubic:linux", RTT);
    flow.sender.receive_window_segments = 50;
    let outcome = run(&sampled(flow, 1000, 20));
    let flow = &outcome.summary.flows[0];
    assert!(flow.max_cwnd_segments.unwrap() <= 100.0, "{}", flow.max_cwnd_segments.unwrap());
    let per_rtt = flow.goodput_bps.unwrap() * RTT.as_s() / (8.0 * 1448.0);
    assert!((per_rtt - 50.0).abs() < 1.0, "{per_rtt}");
}

#[test]
fn slow_start_ends_at_the_initial_threshold() {
    let mut flow = linux_flow("reno:linux", RTT);
    flow.sender.initial_ssthresh_segments = Some(100);
    let flows = run(&sampled(flow, 1000, 3)).tables.flows;
    let at = |t_s: f64| flows.cwnd_seg[(t_s * 1000.0) as usize];
    assert!((100.0..=102.0).contains(&at(0.56)), "{}", at(0.56));
    assert!((at(2.56) - at(0.56) - 20.0).abs() <= 2.0, "{} {}", at(0.56), at(2.56));
}

#[test]
fn pacing_spreads_the_window_over_the_round_trip() {
    let most_queued = |pacing: bool| {
        let mut flow = ns2_flow("reno:rfc", RTT);
        flow.sender.pacing = pacing;
        flow.sender.initial_ssthresh_segments = Some(400);
        let mut config = sampled(flow, 1000, 10);
        config.duration = Time::from_s(5);
        run(&config).summary.links[0].max_queue_packets
    };
    let (bursts, paced) = (most_queued(false), most_queued(true));
    println!("{bursts} {paced}");
    assert!(paced * 10 < bursts, "{paced} and {bursts} packets");
}

#[test]
fn equal_flows_share_equally() {
    let flows: Vec<FlowConfig> = (0..10)
        .map(|i| FlowConfig { start: Time::from_ms(311 * i), ..linux_flow("cubic", Time::from_ms(40 + i)) })
        .collect();
    let mut config = dumbbell(drop_tail(rate("100Mbit/s"), 400), flows, Time::from_s(120));
    config.warmup = Time::from_s(20);
    let summary = run(&config).summary;
    assert!(summary.jain > Some(0.9), "{:?}", summary.jain);
    assert!(summary.links[0].utilization > 0.99);
}

#[test]
fn a_transfer_takes_its_round_trips_and_its_bytes() {
    // 100 segments of an initial window of 10: 10, 20, 40 and the rest in the fourth round trip.
    let mut flow = ns2_flow("reno:rfc", RTT);
    flow.sender.initial_window_segments = 10;
    flow.size_segments = 100;
    flow.law = law("reno:rfc");
    let config = dumbbell(drop_tail(rate("10Gbit/s"), 1000), vec![flow], Time::from_s(2));
    let summary = run(&config).summary;
    let took = summary.flows[0].completion_s.expect("it ends");
    assert!((took - 0.4).abs() < 0.001, "{took}");
    assert_eq!(summary.flows[0].delivered_bytes, 100 * 1460);
}
