//! Flows whose application writes slowly, and hosts that send bursts.

use crate::common::{capture, drop_tail, dumbbell, linux_flow, ns2_flow, rate, rows, run, ARRIVES, DATA};
use lfn_sim::application::Application;
use lfn_sim::config::{Config, FlowConfig};
use lfn_units::Time;

/// One flow of `law` on 20 Mbit/s × 40 ms for 20 s whose application writes so.
fn slow(flow: FlowConfig, application: Application) -> Config {
    let mut flow = FlowConfig { application: Some(application), ..flow };
    flow.sender.validation = true;
    let mut config = dumbbell(drop_tail(rate("20Mbit/s"), 60), vec![flow], Time::from_s(20));
    config.warmup = Time::from_s(2);
    config
}

fn steady(text: &str) -> Application {
    Application { rate: rate(text), on: None, off: None, deadline: None }
}

#[test]
fn a_steady_application_has_its_rate_and_the_window_of_its_start() {
    let rtt = Time::from_ms(40);
    for flow in ["reno", "cubic", "htcp", "bbr"]
        .map(|law| linux_flow(law, rtt))
        .into_iter()
        .chain([ns2_flow("reno", rtt)])
    {
        let name = flow.law.label();
        let summary = run(&slow(flow, steady("5Mbit/s"))).summary;
        let flow = &summary.flows[0];
        assert!(
            (flow.goodput_bps.unwrap() / 5e6 - 1.0).abs() < 0.01,
            "{name}: {}",
            flow.goodput_bps.unwrap()
        );
        assert_eq!((flow.retransmits, flow.timeouts, summary.links[0].drops), (0, 0, 0), "{name}");
        // The first writes wait and fill a window of 40, from ns-2's initial window one of 46. Slow start ends at twice as
        // many (Linux 6.12: 80), and no ACK lowers it. BBR sets its window by what it knows of the path.
        let windows = (flow.min_cwnd_segments.unwrap(), flow.max_cwnd_segments.unwrap());
        match name.as_str() {
            "reno" => assert!([(80.0, 80.0), (92.0, 92.0)].contains(&windows), "{windows:?}"),
            "bbr" => {}
            _ => assert!(windows.0 >= 36.0 && windows.1 <= 80.0, "{name}: {windows:?}"),
        }
    }
}

#[test]
fn faster_than_the_path_it_is_as_without() {
    let fast = run(&slow(linux_flow("reno", Time::from_ms(40)), steady("1Gbit/s"))).summary;
    let mut config = slow(linux_flow("reno", Time::from_ms(40)), steady("1Gbit/s"));
    config.flows[0].application = None;
    let bulk = run(&config).summary;
    let ratio = fast.flows[0].goodput_bps.unwrap() / bulk.flows[0].goodput_bps.unwrap();
    assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
}

#[test]
fn after_a_pause_it_begins_again() {
    let second = Some(Time::from_s(1));
    let pauses = Application { on: second, off: Some(Time::from_s(2)), ..steady("15Mbit/s") };
    let windows = |validation| {
        let mut config = slow(linux_flow("reno", Time::from_ms(40)), pauses);
        config.flows[0].sender.validation = validation;
        let flow = run(&config).summary.flows[0].clone();
        // Active for 6 of the 18 s.
        assert!((flow.goodput_bps.unwrap() / 5e6 - 1.0).abs() < 0.05, "{}", flow.goodput_bps.unwrap());
        flow.min_cwnd_segments.unwrap()
    };
    assert_eq!(windows(true), 10.0);
    assert!(windows(false) > 20.0);
}

#[test]
fn a_size_ends_it() {
    let mut config = slow(linux_flow("cubic", Time::from_ms(40)), steady("5Mbit/s"));
    config.flows[0].size_segments = 1000;
    let flow = &run(&config).summary.flows[0];
    // 1000 segments of 1448 bytes at 5 Mbit/s, a handshake, and half a round trip each way.
    let expected_s = 999.0 * 1448.0 * 8.0 / 5e6 + 0.04;
    let took_s = flow.completion_s.unwrap();
    assert!((took_s - expected_s).abs() < 0.1, "{took_s} {expected_s}");
    config.flows[0].stop = Time::from_s(1);
    let stopped = &run(&config).summary.flows[0];
    assert!(stopped.completion_s.is_none() && stopped.sent < 450, "{stopped:?}");
}

#[test]
fn with_offload_segments_leave_together() {
    let mean_burst = |burst_segments| {
        let mut config = slow(linux_flow("reno", Time::from_ms(40)), steady("1Gbit/s"));
        config.flows[0].application = None;
        config.flows[0].sender.burst_segments = burst_segments;
        config.capture = capture([0]);
        let outcome = run(&config);
        let arrivals = rows(&outcome.tables, 0, ARRIVES, DATA);
        let bursts = arrivals.windows(2).filter(|pair| pair[0].at != pair[1].at).count() + 1;
        let flow = &outcome.summary.flows[0];
        assert!(flow.goodput_bps.unwrap() > 15e6, "{burst_segments}: {flow:?}");
        assert_eq!(flow.timeouts, 0);
        arrivals.len() as f64 / bursts as f64
    };
    let (plain, bursts) = (mean_burst(1), mean_burst(44));
    assert!(plain < 3.0 && bursts > 10.0, "{plain} {bursts}");
    // A burst above the window is a third of it.
    assert!(mean_burst(100_000) > 10.0);
}
