//! How a connection opens, beside Linux 6.12's own TCP in virtual time: SYN and SYN-ACK wait in queues, are
//! lost, and are sent again.

use crate::common::{self, capture, drop_tail, dumbbell, linux_flow, ns2_flow, rate, run, ARRIVES};
use lfn_path::{AqmConfig, CodelConfig, DualPi2Config};
use lfn_sim::config::{Change, Changed, Config, FlowConfig, Impair, LinkId, Loss};
use lfn_sim::Outcome;
use lfn_units::{Rate, Time};

/// A link that loses every packet between these times, in ms, and none otherwise.
fn silent(config: &mut Config, link: u16, from_ms: u64, to_ms: u64) {
    for (at, p) in [(from_ms, 1.0), (to_ms, 0.0)] {
        config.changes.push(Change { at: Time::from_ms(at), what: Changed::Loss(LinkId(link), p) });
    }
    config.changes.sort_by_key(|change| change.at);
}

/// Of flow `flow`: the window and the first smoothed RTT in ms, once it has one, and when that was; sampled
/// every millisecond.
fn opened(outcome: &Outcome, flow: u32) -> (f64, f64, f64) {
    let table = &outcome.tables.flows;
    let at = (0..table.t_s.len())
        .find(|&i| table.flow[i] == flow && table.srtt_s[i] > 0.0)
        .expect("the connection opens");
    (table.cwnd_seg[at], table.srtt_s[at] * 1e3, table.t_s[at])
}

fn one_flow(rtt: Time, seconds: u64) -> Config {
    let mut config = dumbbell(
        drop_tail(rate("60Mbit/s"), 249),
        vec![linux_flow("reno:linux", rtt)],
        Time::from_s(seconds),
    );
    config.sample = Some(Time::from_ms(1));
    config
}

/// On 60 Mbit/s one flow of 40 ms has filled the queue for 5 s when BBR of 130 ms begins. In Linux (`limit` of
/// netem in packets, the one in service included): its first RTT in ms, and its window a second after its SYN.
#[test]
fn a_late_flow_finds_the_queue_in_its_first_rtt_as_in_linux() {
    for (first, limit, rtt_ms, window) in [
        ("cubic:linux", 250, 154.861, 159.0),
        ("cubic:linux", 500, 222.688, 53.0),
        ("reno:linux", 400, 162.129, 139.0),
    ] {
        let late = FlowConfig { start: Time::from_s(5), ..linux_flow("bbr", Time::from_ms(130)) };
        let flows = vec![linux_flow(first, Time::from_ms(40)), late];
        let mut config = dumbbell(drop_tail(rate("60Mbit/s"), limit - 1), flows, Time::from_s(6));
        // The kernel's ACKs meet no queue.
        config.links[1] = common::drop_tail(Rate(1_000_000_000_000), 100_000);
        config.links[0].name = "forward".into();
        config.links[1].name = "reverse".into();
        config.sample = Some(Time::from_ms(1));
        let outcome = run(&config);
        let (_, ours_ms, _) = opened(&outcome, 1);
        assert!((ours_ms / rtt_ms - 1.0).abs() < 0.01, "{first} {limit}: {ours_ms} ms, Linux {rtt_ms} ms");
        let ours = outcome.tables.flows.cwnd_seg.last().copied().expect("a sample");
        assert!((ours - window).abs() <= 1.0, "{first} {limit}: {ours}, Linux {window}");
    }
}

/// Linux with the first SYNs lost, RTT 40 ms: with one repetition it begins with ten segments, with more with
/// one; the RTT comes from timestamps in whole ms; five repetitions come a second apart, later ones after 2,
/// 4, ... s, all of them at the next tick of Linux's timers, 64 ms apart.
#[test]
fn a_lost_syn_is_sent_again_as_linux_does() {
    for (lost, at_s, window) in
        [(0, 0.04, 10.0), (1, 1.048, 10.0), (2, 2.072, 1.0), (3, 3.096, 1.0), (4, 4.12, 1.0), (6, 7.192, 1.0)]
    {
        let mut config = one_flow(Time::from_ms(40), 8);
        let last_ms = [0, 500, 1500, 2500, 3500, 4500, 6500][lost];
        if lost > 0 {
            silent(&mut config, 0, 0, last_ms);
        }
        let (ours, rtt_ms, t_s) = opened(&run(&config), 0);
        assert_eq!(ours, window, "{lost} lost");
        assert!((t_s - at_s).abs() < 0.0021, "{lost} lost: {t_s} s");
        assert!((rtt_ms - 40.0).abs() < 0.1, "{lost} lost: {rtt_ms} ms");
    }
}

/// Linux on 1.1 and 2.2 s: SYNs are retransmitted spuriously, the timestamp shows it, and the window is the initial
/// one.
#[test]
fn a_syn_that_is_only_late_costs_nothing() {
    for (rtt_ms, repeats) in [(1100, 1), (2200, 2)] {
        let mut config = one_flow(Time::from_ms(rtt_ms), 4);
        config.capture = capture([0]);
        let outcome = run(&config);
        let (window, first_ms, _) = opened(&outcome, 0);
        assert_eq!((window, first_ms.round()), (10.0, rtt_ms as f64));
        let syns = common::rows(&outcome.tables, 0, ARRIVES, 5).len();
        assert_eq!(syns, repeats + 1, "{rtt_ms} ms");
    }
}

/// The receiver's SYN-ACK is lost: the repeated SYN asks for another. If the last ACK is lost, data take its
/// place.
#[test]
fn every_part_of_a_handshake_may_be_lost() {
    let mut config = one_flow(Time::from_ms(40), 3);
    silent(&mut config, 1, 0, 500);
    let (window, _, t_s) = opened(&run(&config), 0);
    assert_eq!(window, 10.0);
    assert!((t_s - 1.048).abs() < 0.0021, "{t_s} s");

    let mut config = one_flow(Time::from_ms(40), 3);
    config.capture = capture([0, 1]);
    // The SYN leaves at once, what is left of the handshake after one RTT.
    silent(&mut config, 0, 10, 41);
    let outcome = run(&config);
    let count = |link, kind| common::rows(&outcome.tables, link, ARRIVES, kind).len();
    assert_eq!((count(0, 5), count(1, 6), count(0, 7)), (1, 1, 1));
    assert!(outcome.summary.flows[0].delivered_bytes > 1_000_000);
}

/// RFC 3168 section 6.1.1.1, as Linux does: a SYN that comes again asks for no marks, so the queue drops. If the SYN-ACK was
/// lost, the receiver answers the SYN that it saw first.
#[test]
fn a_connection_whose_syn_was_lost_has_no_marks() {
    for (lost_on, is_marked) in [(None, true), (Some(0), false), (Some(1), true)] {
        let mut config = one_flow(Time::from_ms(40), 20);
        config.links[0].limit_packets = 5000;
        config.links[0].queue = AqmConfig::Codel(CodelConfig { ecn: true, ..CodelConfig::default() });
        config.flows[0].sender.ecn = true;
        config.flows[0].receiver.ecn = true;
        if let Some(link) = lost_on {
            silent(&mut config, link, 0, 500);
        }
        let outcome = run(&config);
        let [marks, retransmits] = [outcome.summary.links[0].marks, outcome.summary.flows[0].retransmits];
        assert_eq!((marks > 0, retransmits > 0), (is_marked, !is_marked), "{lost_on:?}");
    }
}

/// Linux 6.12 sends DCTCP's SYN, SYN-ACK and ACKs as ECT(0) (RFC 8257 section 3.6), and other connections' as Not-ECT: a
/// DualPI2 queue takes the former for its L queue.
#[test]
fn packets_without_payload_are_ecn_capable_as_the_sender_says() {
    for (ecn_control, classic_packets) in [(true, 0), (false, 2)] {
        let mut config = one_flow(Time::from_ms(40), 1);
        config.links[0].queue =
            AqmConfig::DualPi2(DualPi2Config { any_ect: true, ..DualPi2Config::default() });
        config.flows[0].sender.ecn = true;
        config.flows[0].sender.ecn_control = ecn_control;
        config.flows[0].receiver.ecn = true;
        let summary = run(&config).summary;
        let classes = summary.links[0].classes.as_ref().expect("two classes");
        // SYN and the last ACK of the handshake.
        assert_eq!(classes.classic.packets, classic_packets, "{ecn_control}");
    }
}

/// A frame of 74 bytes takes a place in a drop-tail queue, and finds none in one that is full.
#[test]
fn a_syn_takes_a_place_in_the_queue() {
    let mut config = one_flow(Time::from_ms(40), 2);
    config.links[0].limit_packets = 0;
    config.flows = (0..2).map(|_| common::on_dumbbell(linux_flow("reno:linux", Time::from_ms(40)))).collect();
    config.capture = capture([0]);
    let outcome = run(&config);
    let table = &outcome.tables.packets;
    let syns: Vec<usize> = (0..table.t_ps.len()).filter(|&i| table.kind[i] == 5).collect();
    let seen: Vec<(u8, u32, u32)> =
        syns.iter().take(3).map(|&i| (table.point[i], table.flow[i], table.bytes[i])).collect();
    // The first is in service when the second comes, and the queue has no room to wait.
    assert_eq!(seen, [(0, 0, 74), (0, 1, 74), (1, 1, 74)]);
    assert_eq!(syns.iter().filter(|&&i| table.point[i] == 0 && table.flow[i] == 1).count(), 2);
}

#[test]
fn closed_form_and_events_open_connections_alike_and_lose_no_packet() {
    for seed in 0..20 {
        let flows: Vec<FlowConfig> = (0..12)
            .map(|i| {
                let name = ["reno:linux", "bbr", "cubic:linux"][i % 3];
                let start = Time::from_ms(97 * i as u64);
                FlowConfig { start, ..linux_flow(name, Time::from_ms(10 + 37 * i as u64)) }
            })
            .collect();
        let mut link = drop_tail(rate("10Mbit/s"), seed % 7);
        link.impair = Impair { loss: Loss::Bernoulli(0.05 * (seed % 5) as f64), ..Impair::default() };
        let mut config = dumbbell(link, flows, Time::from_s(6));
        config.seed = seed;
        let closed = run(&config);
        for link in &mut config.links {
            link.event_mode = true;
        }
        assert_eq!(run(&config).summary.hash, closed.summary.hash, "seed {seed}");
        config.links[0].impair.duplicate = 0.2;
        run(&config);
    }
}

#[test]
fn a_flow_that_stops_before_it_is_open_sends_nothing() {
    let mut config = one_flow(Time::from_ms(40), 3);
    config.flows[0].stop = Time::from_ms(20);
    config.capture = capture([0]);
    let outcome = run(&config);
    assert_eq!(outcome.summary.flows[0].sent, 0);
    assert_eq!(common::rows(&outcome.tables, 0, ARRIVES, 5).len(), 1);
}

#[test]
fn one_way_tcp_of_ns2_has_no_handshake() {
    let mut config = one_flow(Time::from_ms(40), 1);
    config.flows = vec![common::on_dumbbell(ns2_flow("reno", Time::from_ms(40)))];
    config.capture = capture([0, 1]);
    let tables = run(&config).tables;
    assert!(tables.packets.kind.iter().all(|&kind| kind < 2));
    assert_eq!(tables.packets.t_ps[0], 0);
}

/// Bytes of an IP packet, the initial window, and the segments that Linux sends before the first ACK.
#[test]
fn the_first_flight_fits_the_window_of_the_syn_ack_as_in_linux() {
    for (packet_bytes, initial_window, first) in
        [(9000, 10, 7), (9000, 20, 7), (4000, 40, 16), (1500, 100, 45), (576, 200, 125)]
    {
        let mut flow = linux_flow("reno:linux", Time::from_ms(40));
        flow.sender.mss_bytes = packet_bytes - 52;
        flow.receiver.mss_bytes = packet_bytes - 52;
        flow.sender.initial_window_segments = initial_window;
        let mut config = dumbbell(drop_tail(rate("100Mbit/s"), 400), vec![flow], Time::from_ms(84));
        // The kernel's ACKs meet no queue.
        config.links[1] = common::drop_tail(Rate(1_000_000_000_000), 100_000);
        config.links[0].name = "forward".into();
        config.links[1].name = "reverse".into();
        config.sample = Some(Time::from_ms(1));
        let in_flight = run(&config).tables.flows.inflight_seg;
        assert_eq!(in_flight[60], first, "{packet_bytes} B");
        assert!(in_flight.last() > Some(&first), "{packet_bytes} B");
    }
}
