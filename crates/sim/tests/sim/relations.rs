//! The same experiment said in another way gives the same numbers.

use crate::common::{
    capture, drop_tail, dumbbell, linux_flow, ms, on_dumbbell, rate, rows, run, udt, ARRIVES, UDT_DATA,
};
use lfn_header::Protocol;
use lfn_law::SlowStartKind;
use lfn_path::{
    AckImpair, GilbertElliottConfig, JetMaxConfig, RcpConfig, RouterConfig, VcpConfig, XcpConfig,
};
use lfn_sim::config::{
    BurstLoss, Change, Changed, Config, FlowConfig, Impair, LinkConfig, LinkId, Loss, UdtConfig,
};
use lfn_sim::misbehaving::Misbehaviour;
use lfn_sim::{FlowSummary, Outcome, Summary};
use lfn_udt::ControlSpec;
use lfn_units::{Rate, Time};

/// The same, with a change of the rate of `reverse` to the rate that it has: a queue with a server in place of a delay.
fn opened(config: &Config) -> Config {
    let what = Changed::Rate(LinkId(1), config.links[1].service.mean_rate());
    let mut changes = config.changes.clone();
    changes.push(Change { at: config.duration, what });
    Config { changes, ..config.clone() }
}

/// The flows of two runs have the same fate. ACKs of several flows that meet at a queue wait for one another, some µs each.
fn assert_same_fates(one: &Outcome, other: &Outcome, what: &str) {
    for (a, b) in one.summary.flows.iter().zip(&other.summary.flows) {
        let counts = |flow: &FlowSummary| (flow.delivered_bytes, flow.retransmits, flow.timeouts);
        assert_eq!(counts(a), counts(b), "{what}, flow {}", a.id);
        match (a.completion_s, b.completion_s) {
            (Some(a_s), Some(b_s)) => assert!((a_s - b_s).abs() < 50e-6, "{what}: {a_s} and {b_s}"),
            (a_s, b_s) => assert_eq!(a_s, b_s, "{what}"),
        }
    }
}

/// Ten flows of 30 kB, a second apart.
fn short_flows(link: LinkConfig) -> Config {
    let flow = |i: u64| FlowConfig {
        start: Time::from_ms(1000 * i),
        size_segments: 21,
        ..linux_flow("cubic:linux", ms(60))
    };
    dumbbell(link, (0..10).map(flow).collect(), Time::from_s(40))
}

#[test]
fn a_return_link_loses_handshakes_whichever_way_it_is_computed() {
    let bursts = BurstLoss::GilbertElliott(GilbertElliottConfig::simple(0.05, 0.4));
    let (mut lost, mut late) = (0, 0);
    for seed in 0..40 {
        for loss in [Loss::Bernoulli(0.2), Loss::Bursts(bursts)] {
            let link = LinkConfig {
                impair: Impair { loss, ..Impair::default() },
                ..drop_tail(rate("100Mbit/s"), 2000)
            };
            let config = Config { seed, ..short_flows(link) };
            let (plain, queued) = (run(&config), run(&opened(&config)));
            assert_same_fates(&plain, &queued, &format!("seed {seed}, {loss:?}"));
            let [of_plain, of_queued] = [&plain, &queued].map(|run| run.summary.links[1].random_losses);
            assert_eq!(of_plain, of_queued, "seed {seed}, {loss:?}");
            lost += of_plain;
            late +=
                plain.summary.flows.iter().filter(|flow| flow.completion_s.is_some_and(|s| s > 1.0)).count();
        }
    }
    assert!(lost > 100 && late > 100, "{lost} SYN-ACKs lost, {late} flows above 1 s");
}

/// `acks` of a return link acts on SYN-ACKs as on ACKs.
#[test]
fn what_acts_on_acks_acts_on_handshakes() {
    let with = |acks: AckImpair, seed| {
        let mut config = Config { seed, ..short_flows(drop_tail(rate("100Mbit/s"), 2000)) };
        config.links[1].acks = Some(acks);
        let flows = run(&config).summary.flows;
        flows.iter().map(|flow| flow.completion_s.unwrap()).collect::<Vec<_>>()
    };
    let lossy = |p| AckImpair { loss: Loss::Bernoulli(p), ..AckImpair::default() };
    let late = |p| (0..40).flat_map(|seed| with(lossy(p), seed)).filter(|&s| s > 1.0).count();
    // A SYN is sent again after 1 s. Five standard deviations of a binomial of 400 trials.
    assert_eq!(late(0.0), 0);
    assert!(late(0.2).abs_diff(80) < 40, "{} flows above 1 s", late(0.2));
    // The SYN-ACK, ten ACKs and eleven ACKs wait for a full second each.
    let gathered = AckImpair { aggregate: Some(Time::from_s(1)), ..AckImpair::default() };
    assert!(with(gathered, 1).iter().all(|s| (2.9..3.2).contains(s)), "{:?}", with(gathered, 1));
}

/// A handshake of UDT is lost as data are, in both directions, whichever way the link is computed.
#[test]
fn a_link_loses_handshakes_of_udt() {
    let alone = |duration| Config {
        udt: vec![udt(0, ms(60))],
        ..dumbbell(drop_tail(rate("100Mbit/s"), 2000), Vec::new(), duration)
    };
    // UDT sends a handshake again after 250 ms.
    let mut connected = 0;
    for seed in 0..200 {
        let mut config = Config { seed, ..alone(ms(240)) };
        for link in &mut config.links {
            link.impair.loss = Loss::Bernoulli(0.2);
        }
        let (plain, queued) = (run(&config), run(&opened(&config)));
        assert_same_fates(&plain, &queued, &format!("seed {seed}"));
        assert_eq!(plain.summary.conservation, queued.summary.conservation, "seed {seed}");
        connected += u32::from(plain.summary.flows[0].delivered_bytes > 0);
    }
    // Two packets pass in each direction. Five standard deviations of a binomial of 200 trials.
    assert!(connected.abs_diff(82) < 35, "{connected} of 200");
    for lost in [0, 1] {
        let mut config = alone(Time::from_s(3));
        config.links[lost].impair.loss = Loss::Bernoulli(1.0);
        config.changes.push(Change { at: Time::from_s(1), what: Changed::Loss(LinkId(lost as u16), 0.0) });
        config.capture = capture([0]);
        let data = rows(&run(&config).tables, 0, ARRIVES, UDT_DATA);
        assert!(data[0].at > Time::from_s(1), "link {lost}: data at {}", data[0].at);
    }
}

/// A burst of SYNs, or of ACKs in parts, asks for more than a slow return link carries at once.
#[test]
fn a_slow_return_link_queues_whichever_way_it_is_computed() {
    let mut slow = short_flows(drop_tail(rate("100Mbit/s"), 2000));
    slow.links[1] = LinkConfig { name: "reverse".into(), ..drop_tail(rate("6Mbit/s"), 2000) };
    for flow in &mut slow.flows {
        flow.start = Time::ZERO;
    }
    let (plain, queued) = (run(&slow), run(&opened(&slow)));
    assert_same_fates(&plain, &queued, "SYNs");
    let completion = |of: &Outcome, flow: usize| of.summary.flows[flow].completion_s.expect("it finishes");
    // Nine SYN-ACKs of 74 bytes before the last: 0.89 ms.
    assert!(completion(&plain, 9) > completion(&plain, 0) + 0.0008);

    let flow = FlowConfig {
        misbehaves: Some(Misbehaviour::SplitsAcks),
        size_segments: 2000,
        ..linux_flow("reno", ms(20))
    };
    let mut config = dumbbell(drop_tail(rate("100Mbit/s"), 200), vec![flow], Time::from_s(10));
    config.links[1] = LinkConfig { name: "reverse".into(), ..drop_tail(rate("8Mbit/s"), 2000) };
    assert_same_fates(&run(&config), &run(&opened(&config)), "ACKs in parts");
}

/// One flow of each law, over TCP and over UDT where the law runs there.
fn every_law() -> Vec<(String, Config)> {
    let link = |router| LinkConfig { router, ..drop_tail(rate("10Mbit/s"), 60) };
    let mut all = Vec::new();
    for law in lfn_law::registry() {
        let router = law.header.map(|header| match header {
            Protocol::Vcp => RouterConfig::Vcp(VcpConfig::default()),
            Protocol::Xcp => RouterConfig::Xcp(XcpConfig::default()),
            Protocol::Rcp => RouterConfig::Rcp(RcpConfig::default()),
            Protocol::JetMax => RouterConfig::JetMax(JetMaxConfig::default()),
        });
        for variant in law.variants {
            let name = format!("{}:{variant}", law.name);
            if !law.is_udt() {
                let flow = FlowConfig { start: ms(7), ..linux_flow(&name, ms(100)) };
                all.push((name.clone(), dumbbell(link(router), vec![flow], Time::from_s(8))));
            }
            if let Ok(control) = name.parse::<ControlSpec>() {
                let udt = UdtConfig { control, seed: 5, ..udt(0, ms(100)) };
                let config = dumbbell(link(None), Vec::new(), Time::from_s(8));
                all.push((format!("{name} over UDT"), Config { udt: vec![udt], ..config }));
            }
        }
    }
    all
}

/// All of it but how many events there were.
fn but_events(summary: &Summary) -> String {
    format!("{:?}", Summary { events: 0, memory: Default::default(), ..summary.clone() })
}

#[test]
fn no_sampling_moves_a_summary() {
    for (name, config) in every_law() {
        let config = Config { warmup: ms(1234), ..config };
        let of = |sample| but_events(&run(&Config { sample, ..config.clone() }).summary);
        let none = of(None);
        for sample in [ms(1), ms(13), ms(1000)] {
            assert_eq!(of(Some(sample)), none, "{name}, a sample each {sample}");
        }
    }
}

#[test]
fn a_window_is_one_of_the_path_or_none() {
    for (name, config) in every_law() {
        let flow = &run(&config).summary.flows[0];
        let keeps = !name.starts_with("rcp") && !name.starts_with("jetmax");
        let windows = [flow.mean_cwnd_segments, flow.min_cwnd_segments, flow.max_cwnd_segments];
        assert!(windows.iter().all(|window| window.is_some() == keeps), "{name}: {windows:?}");
        if let [Some(mean), Some(least), Some(largest)] = windows {
            assert!(least <= mean && mean <= largest, "{name}: {windows:?}");
        }
    }
}

/// Payload per second that a link carries in full segments.
fn payload_bps(rate: Rate) -> f64 {
    rate.as_bps() * f64::from(crate::common::LINUX_PAYLOAD_BYTES) / f64::from(crate::common::LINUX_WIRE_BYTES)
}

/// Data that a flow delivers after it was told to stop count, and so does the time that they take.
#[test]
fn a_flow_that_is_stopped_has_no_more_than_the_link() {
    let most_bps = payload_bps(rate("10Mbit/s"));
    for stop_ms in (1..600).step_by(17) {
        for name in ["reno", "cubic:linux", "bbr", "scalable"] {
            let flow = FlowConfig { stop: ms(stop_ms), size_segments: 3000, ..linux_flow(name, ms(80)) };
            let ns2 = FlowConfig { sender: handshakeless(name), ..flow.clone() };
            for flow in [flow, ns2] {
                let config = dumbbell(drop_tail(rate("10Mbit/s"), 300), vec![flow], Time::from_s(5));
                let flow = &run(&config).summary.flows[0];
                assert_eq!(flow.completion_s, None, "{name}, {stop_ms} ms");
                let goodput_bps = flow.goodput_bps.expect("it was active");
                assert!(goodput_bps <= most_bps, "{name}, {stop_ms} ms: {goodput_bps}");
            }
        }
    }
}

fn handshakeless(name: &str) -> lfn_tcp::SenderConfig {
    let slow_start = SlowStartKind::Classic;
    let config = lfn_tcp::SenderConfig::linux(crate::common::LINUX_PAYLOAD_BYTES, slow_start);
    let handshake = name == "bbr";
    lfn_tcp::SenderConfig { handshake, ..config }
}

#[test]
fn a_flow_that_ended_before_the_warmup_has_no_goodput() {
    let done = FlowConfig { size_segments: 700, ..linux_flow("reno", ms(40)) };
    let stays = linux_flow("reno", ms(40));
    let late = FlowConfig { start: Time::from_s(60), ..linux_flow("reno", ms(40)) };
    let mut config =
        dumbbell(drop_tail(rate("10Mbit/s"), 50), vec![done, stays.clone(), late], Time::from_s(20));
    config.warmup = Time::from_s(10);
    let summary = run(&config).summary;
    for absent in [&summary.flows[0], &summary.flows[2]] {
        assert_eq!((absent.goodput_bps, absent.mean_cwnd_segments), (None, None));
        assert_eq!(absent.delivered_bytes, 0);
    }
    assert!(summary.flows[0].completion_s.is_some());
    assert_eq!(summary.flows[2].srtt_s, None);
    assert_eq!(summary.jain, None, "one flow has no fairness");
    config.flows.push(on_dumbbell(stays));
    let jain = run(&config).summary.jain.expect("two flows");
    assert!(jain > 0.8, "{jain}");
}

/// A flow's window is that of its life: one that ends early says the same as a run that ends with it.
#[test]
fn the_mean_window_ends_with_the_flow() {
    let flow = FlowConfig { size_segments: 2000, ..linux_flow("cubic:linux", ms(40)) };
    let mut config = dumbbell(drop_tail(rate("10Mbit/s"), 50), vec![flow], Time::from_s(30));
    let long = run(&config).summary.flows[0].clone();
    config.duration = Time::from_s_f64(long.completion_s.expect("it finishes")).after(Time(1));
    let short = &run(&config).summary.flows[0];
    assert_eq!(long.mean_cwnd_segments, short.mean_cwnd_segments);
    assert_eq!(long.goodput_bps, short.goodput_bps);
}

/// An optimistic receiver gets no more than what arrives, and its claim has a name of its own.
#[test]
fn a_claim_is_no_goodput() {
    let most_bps = payload_bps(rate("10Mbit/s"));
    for name in ["scalable", "cubic:linux", "bbr", "vegas"] {
        let mut lies = FlowConfig { misbehaves: Some(Misbehaviour::Optimistic), ..linux_flow(name, ms(60)) };
        // Nothing else keeps its sender back.
        lies.sender.receive_window_segments = 2000;
        let flows = vec![lies, linux_flow("reno", ms(60))];
        let config = dumbbell(drop_tail(rate("10Mbit/s"), 20), flows, Time::from_s(20));
        let summary = run(&config).summary;
        let goodputs = summary.flows.iter().map(|flow| flow.goodput_bps.expect("active"));
        assert!(goodputs.sum::<f64>() <= most_bps, "{name}: {:?}", summary.flows);
        let claimed = summary.flows[0].claimed_bytes.expect("it claims");
        assert!(claimed > summary.flows[0].delivered_bytes, "{name}");
        assert_eq!(summary.flows[1].claimed_bytes, None);
        let bins = summary.flows[0].cov.expect("20 bins");
        assert!(bins < 3.0, "{name}: {bins}");
    }
}
