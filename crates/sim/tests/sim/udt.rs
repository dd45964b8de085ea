//! Flows over UDT: the values of its specification with packets, queues and round trips in between, and
//! beside TCP.

use crate::common::{
    self, capture, drop_tail, dumbbell, events, linux_flow, ms, network, rate, rows, run, udt, TIMEOUT,
    UDT_DATA,
};
use lfn_path::{JitterConfig, Reorder};
use lfn_sim::background::Direction;
use lfn_sim::config::{Change, Changed, Config, Impair, LinkConfig, LinkId, Loss, RouteId, UdtConfig};
use lfn_sim::Sim;
use lfn_units::{Rate, Time};

/// UDT's control packets as recorded.
const UDT_CONTROL: u8 = 4;

fn alone(link: LinkConfig, flow: UdtConfig, duration: Time) -> Config {
    Config { udt: vec![flow], ..dumbbell(link, Vec::new(), duration) }
}

/// Seconds that the sender's rate takes from 10 % to 90 % of `capacity_bps`, headers of IP and UDP included.
fn ramp_s(capacity_bps: u64, duration: Time) -> f64 {
    let link = drop_tail(Rate(capacity_bps * 1514 / 1500), 10_000);
    let mut config = Config { sample: Some(ms(10)), ..alone(link, udt(0, ms(100)), duration) };
    // The second flight is lost, which ends slow start at next to nothing.
    config.changes = vec![
        Change { at: ms(250), what: Changed::Loss(LinkId(0), 1.0) },
        Change { at: ms(400), what: Changed::Loss(LinkId(0), 0.0) },
    ];
    let outcome = run(&config);
    assert_eq!(outcome.summary.links[0].drops, 0);
    let table = &outcome.tables.flows;
    let after = table.t_s.partition_point(|&t_s| t_s < 1.0);
    let reaches = |part: f64| {
        let at = (after..table.t_s.len()).find(|&i| table.pacing_bps[i] >= part * capacity_bps as f64);
        table.t_s[at.expect("the rate comes so far")]
    };
    reaches(0.9) - reaches(0.1)
}

#[test]
fn rates_rise_to_90_percent_as_specified() {
    // 7.50 s from nothing, of which the last 8/9 are 6.67 s, where the capacity is a power of ten.
    for capacity_bps in [100_000_000, 1_000_000_000] {
        let s = ramp_s(capacity_bps, Time::from_s(14));
        assert!((s - 6.67).abs() < 0.05, "{s} s at {capacity_bps} bit/s");
    }
    // At 80 Mbit/s a ninth of it lies in a lower decade: 59.9 s, and 8/9 of that.
    let s = ramp_s(80_000_000, Time::from_s(70));
    assert!((s - 53.3).abs() < 0.3, "{s} s");
}

/// Goodput of two flows, the second of which joins 10 s later, over the last 100 of 120 s.
fn two(rtts_ms: [u64; 2]) -> Vec<f64> {
    let second = UdtConfig { start: Time::from_s(10), ..udt(1, ms(rtts_ms[1])) };
    let base = dumbbell(drop_tail(rate("100Mbit/s"), 400), Vec::new(), Time::from_s(120));
    let flows = vec![udt(0, ms(rtts_ms[0])), second];
    let outcome = run(&Config { udt: flows, warmup: Time::from_s(20), ..base });
    outcome.summary.flows.iter().map(|flow| flow.goodput_bps.unwrap()).collect()
}

#[test]
fn two_flows_share_evenly_whatever_their_round_trips() {
    for rtts_ms in [[40, 40], [20, 80]] {
        let bps = two(rtts_ms);
        let (sum, ratio) = (bps[0] + bps[1], bps[0] / bps[1]);
        assert!(sum > 0.9 * 1456.0 / 1514.0 * 100e6, "{rtts_ms:?}: {bps:?}");
        assert!((0.8..1.25).contains(&ratio), "{rtts_ms:?}: {bps:?}");
    }
}

#[test]
fn beside_cubic_both_live_and_are_numbered_as_said() {
    let tcp = ["cubic:linux", "reno"].map(|law| linux_flow(law, ms(50)));
    let base = dumbbell(drop_tail(rate("100Mbit/s"), 400), tcp.into(), Time::from_s(60));
    let outcome = run(&Config { udt: vec![udt(1, ms(50))], sample: Some(ms(100)), ..base });
    let flows = &outcome.summary.flows;
    let laws: Vec<_> = flows.iter().map(|flow| (flow.id, flow.law.as_str(), flow.transport)).collect();
    assert_eq!(laws, [(0, "cubic:linux", None), (1, "udt", Some("udt")), (2, "reno", None)]);
    assert!(flows.iter().all(|flow| flow.goodput_bps.unwrap() > 1e6), "{flows:#?}");
    let table = &outcome.tables.flows;
    for flow in flows {
        let last = (0..table.t_s.len()).rfind(|&i| table.flow[i] == flow.id).unwrap();
        assert_eq!(table.delivered_bytes[last], flow.delivered_bytes, "flow {}", flow.id);
    }
}

#[test]
fn a_transfer_is_whole_over_a_path_that_loses_copies_and_reorders() {
    for law in ["udt", "udt:compat", "udt:4.10", "udt:3.0", "udt:2", "cubic", "hstcp"] {
        let impair = Impair {
            loss: Loss::Bernoulli(0.01),
            duplicate: 0.01,
            reorder: Some(Reorder { p: 0.02, delay: ms(5) }),
            jitter: Some(JitterConfig::uniform(Time::ZERO, ms(2), false)),
        };
        let link = LinkConfig { impair, ..drop_tail(rate("50Mbit/s"), 100) };
        let flow = UdtConfig { size_packets: 5_000, control: law.parse().unwrap(), ..udt(0, ms(30)) };
        let config = alone(link, flow, Time::from_s(60));
        let outcome = run(&config);
        let flow = &outcome.summary.flows[0];
        let named = if law.starts_with("udt") { law.into() } else { format!("udt/{law}") };
        assert_eq!((&flow.law, flow.delivered_bytes), (&named, 5_000 * 1456));
        assert!(flow.completion_s.is_some_and(|s| s > 0.06 && s < 60.0), "{flow:#?}");
        assert!(flow.retransmits >= outcome.summary.links[0].random_losses, "{flow:#?}");
        assert_eq!(flow.sent, 5_000 + flow.retransmits);
    }
}

/// Slow start overshoots, Westwood+ falls to a small window, and thousands of packets wait at the receiver
/// for those that are sent again: none of that is a round trip.
#[test]
fn a_law_paces_by_round_trips_not_by_how_long_repair_takes() {
    let flow = UdtConfig { control: "westwood".parse().unwrap(), ..udt(0, ms(30)) };
    let config = alone(drop_tail(rate("100Mbit/s"), 250), flow, Time::from_s(10));
    let outcome = run(&Config { sample: Some(ms(10)), ..config });
    assert!(outcome.summary.flows[0].retransmits > 250);
    let table = &outcome.tables.flows;
    // 30 ms of path and 250 packets of 1514 bytes in the queue.
    let longest_s = 0.030 + 251.0 * 1514.0 * 8.0 / 100e6;
    for i in 0..table.t_s.len() {
        let a_window_each_rtt_bps = table.cwnd_seg[i] * 1500.0 * 8.0 / longest_s;
        // Before the first ACK it knows no round trip.
        if table.delivered_bytes[i] > 0 {
            assert!(table.pacing_bps[i] >= a_window_each_rtt_bps, "at {} s", table.t_s[i]);
        }
        assert!(table.pacing_bps[i].is_finite(), "at {} s", table.t_s[i]);
    }
}

/// Requests, cookies and confirmations are lost too where the queue before the link is full.
#[test]
fn a_connection_begins_in_a_full_queue() {
    let base =
        dumbbell(drop_tail(rate("5Mbit/s"), 10), vec![linux_flow("reno", ms(10)); 20], Time::from_s(30));
    let late = UdtConfig { start: Time::from_s(5), size_packets: 20, ..udt(20, ms(10)) };
    let outcome = run(&Config { udt: vec![late], ..base });
    assert_eq!(outcome.summary.flows[20].delivered_bytes, 20 * 1456);
}

#[test]
fn who_finds_nobody_gives_up_after_3_s() {
    let mut config = alone(drop_tail(rate("10Mbit/s"), 100), udt(0, ms(10)), Time::from_s(20));
    config.changes = vec![
        Change { at: Time::ZERO, what: Changed::Rate(LinkId(0), Rate(0)) },
        Change { at: Time::from_s(4), what: Changed::Rate(LinkId(0), rate("10Mbit/s")) },
    ];
    config.capture = capture([0]);
    let outcome = run(&config);
    // One request each 250 ms.
    assert_eq!(rows(&outcome.tables, 0, common::ARRIVES, UDT_CONTROL).len(), 12);
    assert_eq!(outcome.summary.flows[0].sent, 0);
}

#[test]
fn a_flow_begins_after_two_round_trips_and_stops_when_told() {
    let flow = UdtConfig { start: Time::from_s(1), stop: Time::from_s(5), ..udt(0, ms(100)) };
    let mut config = alone(drop_tail(rate("10Mbit/s"), 100), flow, Time::from_s(10));
    config.capture = capture([0, 1]);
    config.sample = Some(ms(10));
    let outcome = run(&config);
    let (data, control) = (
        rows(&outcome.tables, 0, common::ARRIVES, UDT_DATA),
        rows(&outcome.tables, 0, common::ARRIVES, UDT_CONTROL),
    );
    let first = data[0].at;
    // Two packets of the handshake each way are in service for 86 µs.
    assert!(first > Time::from_ms(1_200) && first < Time::from_us(1_200_400), "{first}");
    assert_eq!(control[0].at, Time::from_s(1));
    let new = data.iter().rfind(|row| !row.retransmission).unwrap();
    assert!(new.at < Time::from_s(5) && new.at > ms(4_900), "{}", new.at);
    // All is acknowledged, and the other end told so.
    let flow = &outcome.summary.flows[0];
    assert_eq!(flow.delivered_bytes, (new.seq + 1) * 1456);
    // The last ACK comes back after its round trip and a wait in the queue.
    let lasted_s = flow.active.to.since(flow.active.from).as_s();
    assert!((4.1..4.4).contains(&lasted_s), "{lasted_s}");
    let shutdown = control.last().unwrap();
    assert_eq!(shutdown.seq >> 32, 0x0005_0000);
    assert!(shutdown.at < Time::from_s(6));
    assert!(outcome.tables.flows.t_s.iter().all(|&t_s| (1.0..=5.4).contains(&t_s)));
}

#[test]
fn parallel_streams_are_one_flow() {
    let streams = (0..3).map(|stream| UdtConfig {
        stream,
        size_packets: 1_000 + u64::from(stream),
        ..udt(1 + stream, ms(20))
    });
    let base =
        dumbbell(drop_tail(rate("100Mbit/s"), 100), vec![linux_flow("reno", ms(20))], Time::from_s(20));
    let summary = run(&Config { udt: streams.collect(), ..base }).summary;
    assert_eq!(summary.flows.len(), 2);
    assert_eq!((summary.flows[1].id, summary.flows[1].streams), (1, 3));
    assert_eq!(summary.flows[1].delivered_bytes, 3_003 * 1456);
}

#[test]
fn the_flow_window_holds() {
    let flow = UdtConfig { window_packets: 64, ..udt(0, ms(100)) };
    let config = alone(drop_tail(rate("100Mbit/s"), 1_000), flow, Time::from_s(10));
    let outcome = run(&Config { sample: Some(ms(1)), ..config });
    assert_eq!(outcome.tables.flows.inflight_seg.iter().max(), Some(&64));
}

/// After 2 s a path of 80 ms in place of 40, and back: what is sent then overtakes what is under way.
#[test]
fn a_path_switch_of_udt() {
    let flow = UdtConfig { control: "udt".parse().unwrap(), ..udt(0, ms(1)) };
    let link = |delay| LinkConfig { delay, ..drop_tail(rate("20Mbit/s"), 200) };
    let links = vec![link(ms(20)), link(ms(40)), link(ms(20)), link(ms(40))];
    let routes = vec![vec![0], vec![1], vec![2], vec![3]];
    let route = |s, route| Change {
        at: Time::from_s(s),
        what: Changed::Route { flow: 0, route: RouteId(route), ack_route: RouteId(route + 2) },
    };
    let config = Config {
        udt: vec![UdtConfig { ack_route: RouteId(2), rtt: ms(40), ..flow }],
        changes: vec![route(10, 1), route(20, 0)],
        sample: Some(ms(10)),
        ..network(links, routes, Vec::new(), Time::from_s(30))
    };
    let outcome = run(&config);
    let sent: Vec<u64> = outcome.summary.links.iter().map(|link| link.arrivals).collect();
    assert!(sent[0] > sent[1] && sent[1] > 10_000, "{sent:?}");
    let routes: Vec<f64> = outcome.summary.flows[0].routes.iter().map(|route| route.from_s).collect();
    assert_eq!(routes, [0.0, 10.0, 20.0]);
    let table = &outcome.tables.flows;
    let least_ms = |from: f64, to: f64| {
        let within = (0..table.t_s.len()).filter(|&i| table.t_s[i] > from && table.t_s[i] < to);
        within.map(|i| table.rtt_s[i] * 1e3).fold(f64::INFINITY, f64::min)
    };
    for (from, to, rtt_ms) in [(1.0, 10.0, 40.0), (11.0, 20.0, 80.0), (21.0, 30.0, 40.0)] {
        let least = least_ms(from, to);
        assert!((least - rtt_ms).abs() < 1.0, "{least} ms from {from} s to {to} s");
    }
}

#[test]
fn silence_times_out_and_is_reported() {
    let mut config = alone(drop_tail(rate("10Mbit/s"), 100), udt(0, ms(20)), Time::from_s(10));
    config.changes = vec![
        Change { at: Time::from_s(5), what: Changed::Loss(LinkId(0), 1.0) },
        Change { at: Time::from_s(6), what: Changed::Loss(LinkId(0), 0.0) },
    ];
    let outcome = run(&config);
    let flow = &outcome.summary.flows[0];
    let timeouts = events(&outcome.tables, 0).into_iter().filter(|event| event.kind == TIMEOUT);
    assert_eq!(timeouts.count() as u64, flow.timeouts);
    assert!(flow.timeouts >= 1);
    assert!(flow.delivered_bytes > 5_000_000, "{flow:#?}");
}

#[test]
fn departures_by_event_and_in_closed_form_give_the_same_hash() {
    let config = |event_mode: bool| {
        let impair = Impair { loss: Loss::Bernoulli(0.001), ..Impair::default() };
        let link = LinkConfig { event_mode, impair, ..drop_tail(rate("30Mbit/s"), 50) };
        let back = UdtConfig {
            direction: Direction::Reverse,
            route: RouteId(1),
            ack_route: RouteId(0),
            ..udt(2, ms(44))
        };
        let tcp = vec![linux_flow("cubic", ms(40))];
        Config { udt: vec![udt(0, ms(30)), back], ..dumbbell(link, tcp, Time::from_s(20)) }
    };
    let hashes = [false, true].map(|event_mode| run(&config(event_mode)).summary.hash);
    assert_eq!(hashes[0], hashes[1]);
}

/// Full ACKs alone take 66 kbit/s.
#[test]
fn control_packets_wait_where_the_way_back_is_slow() {
    let mut config = alone(drop_tail(rate("10Mbit/s"), 100), udt(0, ms(20)), Time::from_s(20));
    config.links[1] = LinkConfig { name: "reverse".into(), ..drop_tail(rate("20kbit/s"), 20) };
    let outcome = run(&config);
    assert!(outcome.summary.links[1].utilization > 0.9, "{:#?}", outcome.summary.links[1]);
    assert!(outcome.summary.links[1].drops > 0);
    assert!(outcome.summary.flows[0].delivered_bytes > 1_000_000);
}

#[test]
fn what_makes_no_sense_is_an_error() {
    let link = || drop_tail(rate("10Mbit/s"), 100);
    let error = |flows: Vec<UdtConfig>| {
        let config = Config { udt: flows, ..dumbbell(link(), Vec::new(), Time::from_s(1)) };
        Sim::new(&config).err().expect("it is refused").to_string()
    };
    assert!(error(vec![udt(1, ms(10))]).contains("numbers of flows over UDT"));
    assert!(error(vec![udt(0, ms(10)), udt(0, ms(10))]).contains("numbers of flows over UDT"));
    let tiny = UdtConfig { mss_bytes: 75, ..udt(0, ms(10)) };
    assert_eq!(error(vec![tiny]), "flow 0: an MSS of 75 bytes; from 76 to 65536");
    assert!(error(vec![UdtConfig { route: RouteId(7), ..udt(0, ms(10)) }]).contains("no route 7"));
}
