//! Networks of any shape: what travels where, when, and what a schedule or an impairment does to it.

use crate::common::{
    self, capture, datagrams, drop_tail, dumbbell, link, linux_flow, ms, network, ns2_flow, rate, rows, run,
    us, ACK, ARRIVES, DATA, DEPARTS, UDP,
};
use lfn_path::JitterConfig;
use lfn_sim::config::{Change, Changed, Config, FlowConfig, Impair, LinkConfig, LinkId, Loss, RouteId};
use lfn_sim::{Outcome, Sim, SimError};
use lfn_units::{Rate, Time};

fn change(at: Time, what: Changed) -> Change {
    Change { at, what }
}

/// One datagram of 1000 bytes at 1 ms on a link of 8 Mbit/s, which takes 1 ms: when it leaves.
fn lone_datagram_leaves(changes: Vec<Change>) -> Vec<Time> {
    let links = vec![link("only", "8Mbit/s", ms(1))];
    let mut config = network(links, vec![vec![0]], Vec::new(), Time::from_s(1));
    config.udp = vec![datagrams(0, 1000, ms(1), ms(1), 1)];
    config.capture = capture([0]);
    config.changes = changes;
    rows(&run(&config).tables, 0, DEPARTS, UDP).iter().map(|row| row.at).collect()
}

#[test]
fn a_recording_alters_nothing() {
    // ACKs of two flows return over links 1 and 2, where no data pass; in the second network those of a
    // third flow share link 1, and its data link 2.
    let way = |third: bool| {
        let links = vec![
            link("there", "50Mbit/s", ms(10)),
            link("a", "40Mbit/s", ms(3)),
            link("b", "30Mbit/s", ms(7)),
        ];
        let mut flows = vec![linux_flow("cubic", ms(40)), linux_flow("reno", ms(20))];
        flows[1].ack_bytes = 1000;
        let mut routes = vec![vec![0], vec![1, 2]];
        if third {
            routes.extend([vec![2], vec![1]]);
            flows.push(FlowConfig { route: RouteId(2), ack_route: RouteId(3), ..linux_flow("htcp", ms(30)) });
        }
        let mut config = network(links, routes, flows, Time::from_s(3));
        config.links[0].limit_packets = 100;
        config.links[0].impair.loss = Loss::Bernoulli(1e-3);
        config
    };
    for third in [false, true] {
        let said = |links: Option<std::ops::Range<u16>>| {
            let mut config = way(third);
            config.capture = links.and_then(capture);
            let outcome = run(&config);
            let times = &outcome.tables.packets.t_ps;
            assert!(times.is_sorted());
            let summary = outcome.summary;
            (summary.hash, format!("{:?} {:?}", summary.links, summary.flows), times.is_empty())
        };
        let (hash, summary, _) = said(None);
        for links in [0..1, 1..2, 2..3, 0..3] {
            assert_eq!(said(Some(links.clone())), (hash.clone(), summary.clone(), false), "{links:?}");
        }
    }
}

mod chain {
    use super::*;

    /// Ten links of these rates in Mbit/s, with delays of odd picoseconds.
    const RATES: [u64; 10] = [10, 7, 33, 100, 13, 1000, 3, 55, 21, 8];

    fn ten_links() -> Vec<LinkConfig> {
        let delay = |n: u64| Time(1_000_000_007 * (n + 1));
        (0..).zip(RATES).map(|(n, mbps)| link(&format!("{n}"), &format!("{mbps}Mbit/s"), delay(n))).collect()
    }

    fn lone_datagram(duration: Time) -> Config {
        let mut config = network(ten_links(), vec![(0..10).collect()], Vec::new(), duration);
        config.udp = vec![datagrams(0, 1000, Time::from_s(1), ms(1), 1)];
        config
    }

    /// When the datagram leaves each link: delays and serialisations add up, cut to a picosecond.
    fn departures() -> Vec<Time> {
        let mut at = Time::from_s(1);
        let mut departs = Vec::new();
        for (link, mbps) in ten_links().iter().zip(RATES) {
            at = at + Time(8000 * 1_000_000 / mbps);
            departs.push(at);
            at = at + link.delay;
        }
        departs
    }

    #[test]
    fn a_lone_packet_passes_every_link_on_time() {
        let mut config = lone_datagram(Time::from_s(2));
        config.capture = capture(0..10);
        let tables = run(&config).tables;
        let recorded: Vec<Time> =
            (0..10).flat_map(|link| rows(&tables, link, DEPARTS, UDP)).map(|row| row.at).collect();
        assert_eq!(recorded, departures());
        for (link, &departed) in (1..10).zip(&departures()) {
            let arrived = rows(&tables, link, ARRIVES, UDP)[0].at;
            assert_eq!(arrived, departed + ten_links()[usize::from(link) - 1].delay);
        }
    }

    #[test]
    fn it_is_received_at_the_picosecond() {
        // No recording: departures are computed at arrival, or events, as the links say.
        for event_mode in [false, true] {
            let received = |duration: Time| {
                let mut config = lone_datagram(duration);
                config.links.iter_mut().for_each(|link| link.event_mode = event_mode);
                run(&config).summary.udp[0].delivered
            };
            let arrives = departures()[9] + ten_links()[9].delay;
            assert_eq!((received(arrives - Time(1)), received(arrives)), (0, 1));
        }
    }

    #[test]
    fn the_smallest_rtt_is_the_sum_of_delays_and_serialisations() {
        // 12,000 bits at these rates, and 320 at 1 Gbit/s, are whole nanoseconds.
        let mbps = [10, 12, 24, 30, 40, 48, 60, 80, 100, 120];
        let mut links: Vec<LinkConfig> =
            mbps.iter().map(|mbps| link(&format!("{mbps}"), &format!("{mbps}Mbit/s"), us(*mbps))).collect();
        links.push(link("back", "1Gbit/s", ms(3)));
        let delays = links.iter().fold(Time::ZERO, |sum, link| sum + link.delay);
        let base = delays + ms(5);
        let routes = vec![(0..10).collect(), vec![10]];
        let flow = FlowConfig { size_segments: 1, ..ns2_flow("reno:rfc", base) };
        let config = network(links.clone(), routes.clone(), vec![flow], Time::from_s(1));
        let serialised_ns: u64 = mbps.iter().map(|mbps| 12_000_000 / mbps).sum();
        let expected_ns = base.as_ns() + serialised_ns + 320;
        let flow = &run(&config).summary.flows[0];
        assert_eq!((flow.min_rtt_s.unwrap() * 1e9).round() as u64, expected_ns);
        assert_eq!((flow.completion_s.expect("done") * 1e9).round() as u64, expected_ns);

        // A handshake is two packets of 592 bits.
        let config = network(links, routes, vec![linux_flow("reno:linux", base)], ms(20));
        let serialised_ns = mbps.iter().map(|&mbps| 592e3 / mbps as f64).sum::<f64>() + 592.0;
        let min_rtt_ns = run(&config).summary.flows[0].min_rtt_s.unwrap() * 1e9;
        assert!((min_rtt_ns - base.as_ns() as f64 - serialised_ns).abs() < 1.0, "{min_rtt_ns}");
    }
}

#[test]
fn renos_long_flow_in_a_parking_lot_gets_less_than_max_min() {
    // One flow over all of K links, one over each, of equal base RTT. Goodput goes as 1/sqrt(loss), and the
    // losses of the links add up: that minimises potential delay, C / (1 + sqrt(K)) for the long flow.
    // Its queues add up as well, so it gets somewhat less, but more than under proportional fairness,
    // C / (1 + K); max-min would give it C / 2 (Massoulie and Roberts 1999, on linear networks; Kelly 2001).
    const HOPS: u16 = 3;
    let (proportional, potential_delay) = (1.0 / 4.0, 1.0 / (1.0 + 3_f64.sqrt()));
    for seed in 1..=5 {
        let hop = |n: u16| LinkConfig {
            name: format!("hop {n}"),
            delay: ms(5),
            // A random service time, up to a packet's: against phase effects, by which two drop-tail
            // flows lose in no proportion to their rates (Floyd and Jacobson 1992). Without it the
            // long flow gets 0.45 to 0.57.
            impair: Impair {
                jitter: Some(JitterConfig::uniform(Time::ZERO, us(1200), true)),
                ..Impair::default()
            },
            ..drop_tail(rate("10Mbit/s"), 20)
        };
        let links = (0..HOPS).map(hop).chain([link("back", "1Gbit/s", Time::ZERO)]);
        let mut routes: Vec<Vec<u16>> = (0..HOPS).map(|n| vec![n]).collect();
        routes.extend([(0..HOPS).collect(), vec![HOPS]]);
        let flows = (0..=HOPS).map(|n| FlowConfig {
            route: RouteId(n),
            ack_route: RouteId(HOPS + 1),
            start: ms(u64::from(n) * seed * 170),
            ..ns2_flow("reno:rfc", ms(80))
        });
        let mut config = network(links.collect(), routes, flows.collect(), Time::from_s(300));
        config.warmup = Time::from_s(30);
        config.seed = seed;
        let summary = run(&config).summary;
        let goodput: Vec<f64> = summary.flows.iter().map(|flow| flow.goodput_bps.unwrap()).collect();
        let long = goodput[usize::from(HOPS)];
        for (short, link) in goodput.iter().zip(&summary.links[..usize::from(HOPS)]) {
            let share = long / (long + short);
            assert!((proportional..potential_delay).contains(&share), "seed {seed}: {share}");
            // 20 packets are less than a third of a BDP: three quarters of the link and more.
            assert!((0.75..0.99).contains(&link.utilization), "seed {seed}: {}", link.utilization);
        }
    }
}

mod schedule {
    use super::*;

    #[test]
    fn a_rate_changes_in_the_middle_of_a_packet() {
        // A quarter leaves at 8 Mbit/s; the other 6000 bits take 3 ms.
        let changes = vec![change(us(1250), Changed::Rate(LinkId(0), rate("2Mbit/s")))];
        assert_eq!(lone_datagram_leaves(changes), [us(4250)]);
    }

    #[test]
    fn of_changes_at_one_instant_the_last_counts() {
        let rates = ["100Mbit/s", "1kbit/s", "2Mbit/s"];
        let mut changes: Vec<Change> =
            rates.iter().map(|text| change(us(1250), Changed::Rate(LinkId(0), rate(text)))).collect();
        changes.insert(1, change(us(1250), Changed::Rate(LinkId(0), Rate(0))));
        assert_eq!(lone_datagram_leaves(changes), [us(4250)]);
    }

    #[test]
    fn a_packet_that_leaves_at_the_instant_of_a_change_has_left() {
        assert_eq!(lone_datagram_leaves(vec![change(ms(2), Changed::Rate(LinkId(0), Rate(0)))]), [ms(2)]);
        assert_eq!(
            lone_datagram_leaves(vec![change(ms(2) - Time(1), Changed::Rate(LinkId(0), Rate(0)))]),
            []
        );
    }

    #[test]
    fn a_link_that_is_down_loses_nothing() {
        // 100 datagrams, one a millisecond, each in service for 1 ms; down for 40 ms in mid-packet.
        let links = vec![link("only", "8Mbit/s", ms(1))];
        let mut config = network(links, vec![vec![0]], Vec::new(), Time::from_s(1));
        config.udp = vec![datagrams(0, 1000, ms(1), ms(1), 100)];
        config.capture = capture([0]);
        config.changes = vec![
            change(us(4750), Changed::Rate(LinkId(0), Rate(0))),
            change(us(44_750), Changed::Rate(LinkId(0), rate("8Mbit/s"))),
        ];
        let outcome = run(&config);
        let departs: Vec<Time> = rows(&outcome.tables, 0, DEPARTS, UDP).iter().map(|row| row.at).collect();
        let expected: Vec<Time> = (2..102).map(|n| ms(if n <= 4 { n } else { n + 40 })).collect();
        assert_eq!(departs, expected);
        assert_eq!(outcome.summary.udp[0].delivered, 100);
    }

    #[test]
    fn a_link_that_is_down_from_the_start() {
        for (there, back) in [(0, 10_000_000), (10_000_000, 0), (0, 0)] {
            let mut config =
                dumbbell(drop_tail(Rate(there), 10), vec![ns2_flow("reno:rfc", ms(10))], Time::from_s(1));
            config.links[1].service = Rate(back).into();
            assert_eq!(run(&config).summary.flows[0].delivered_bytes, 0);
        }
        // It comes up at 5 ms, and the datagram takes 1 ms.
        let links = vec![link("only", "0bit/s", ms(1))];
        let mut config = network(links, vec![vec![0]], Vec::new(), Time::from_s(1));
        config.udp = vec![datagrams(0, 1000, ms(1), ms(1), 1)];
        config.changes = vec![change(ms(5), Changed::Rate(LinkId(0), rate("8Mbit/s")))];
        config.capture = capture([0]);
        let departs = rows(&run(&config).tables, 0, DEPARTS, UDP);
        assert_eq!(departs.iter().map(|row| row.at).collect::<Vec<_>>(), [ms(6)]);
    }

    #[test]
    fn tcp_outlives_a_link_that_is_down() {
        let links = vec![link("there", "10Mbit/s", ms(20)), link("back", "10Mbit/s", ms(20))];
        let routes = vec![vec![0], vec![1]];
        let mut config = network(links, routes, vec![linux_flow("reno:linux", ms(40))], Time::from_s(10));
        config.flows[0].size_segments = 5000;
        let (down, up) = (Time::from_s(2), Time::from_s(5));
        config.changes = vec![
            change(down, Changed::Rate(LinkId(0), Rate(0))),
            change(up, Changed::Rate(LinkId(0), rate("10Mbit/s"))),
        ];
        config.capture = capture([0]);
        let outcome = run(&config);
        let departs = rows(&outcome.tables, 0, DEPARTS, DATA);
        assert!(departs.iter().all(|row| row.at <= down || row.at >= up));
        let flow = &outcome.summary.flows[0];
        assert!(flow.timeouts > 0, "nothing comes back for 3 s");
        assert_eq!(outcome.summary.links[0].drops, 0);
        // 5000 packets take 6.06 s, and the link is down for 3.
        let done_s = flow.completion_s.expect("done");
        assert!((9.06..9.6).contains(&done_s), "{done_s}");
        let rates: Vec<_> =
            outcome.summary.links[0].rates.iter().map(|rate| (rate.from_s, rate.rate_bps)).collect();
        assert_eq!(rates, [(0.0, 10_000_000), (2.0, 0), (5.0, 10_000_000)]);
        // Capacity is what the link could have sent: 7 s of it.
        let utilization = outcome.summary.links[0].utilization;
        let sent_bits = departs.len() as f64 * 1514.0 * 8.0;
        // The SYN, and the ACK that ends the handshake.
        let sent_bits = sent_bits + (74.0 + 66.0) * 8.0;
        assert!((utilization - sent_bits / 70e6).abs() < 1e-9, "{utilization}");
    }

    /// Packets that arrive behind a later one, and ACKs with SACK blocks.
    fn reordered(outcome: &Outcome, data_link: u16, ack_link: u16) -> (usize, usize) {
        let mut highest = 0;
        let mut behind = 0;
        for row in rows(&outcome.tables, data_link, ARRIVES, DATA) {
            behind += usize::from(!row.retransmission && row.seq < highest);
            highest = highest.max(row.seq);
        }
        let acks = rows(&outcome.tables, ack_link, ARRIVES, ACK);
        (behind, acks.iter().filter(|row| row.has_sack).count())
    }

    /// Links 0 and 1 lead to one queue (2), link 3 back; the flow changes from link 0 as `what` says,
    /// after 1 s of a window that fills no queue.
    fn flow_over(delay: Time, other: Time, what: Changed) -> Outcome {
        let links = vec![
            link("old", "100Mbit/s", delay),
            link("other", "100Mbit/s", other),
            link("shared", "1Gbit/s", Time::ZERO),
            link("back", "100Mbit/s", ms(5)),
        ];
        let routes = vec![vec![0, 2], vec![3], vec![1, 2]];
        let mut flow = ns2_flow("reno:rfc", delay + ms(5));
        flow.sender.receive_window_segments = 200;
        let mut config = network(links, routes, vec![flow], Time::from_s(2));
        config.changes = vec![change(Time::from_s(1), what)];
        config.capture = capture([2, 3]);
        let outcome = run(&config);
        let conservation = outcome.summary.conservation;
        assert_eq!((conservation.dropped, conservation.lost), (0, 0));
        assert!(conservation.delivered > 2000, "{conservation:?}");
        outcome
    }

    #[test]
    fn packets_overtake_where_a_delay_shrinks() {
        let (behind, sacks) = reordered(&flow_over(ms(40), ms(40), Changed::Delay(LinkId(0), ms(10))), 2, 3);
        assert!(behind > 0 && sacks > 0, "{behind} {sacks}");
        let (behind, sacks) = reordered(&flow_over(ms(10), ms(10), Changed::Delay(LinkId(0), ms(40))), 2, 3);
        assert_eq!((behind, sacks), (0, 0));
    }

    #[test]
    fn packets_overtake_on_the_last_link() {
        // Without a queue behind it, what shows is the receiver's answer.
        let sacks = |from: Time, to: Time| {
            let links = vec![link("there", "100Mbit/s", from), link("back", "100Mbit/s", ms(5))];
            let mut flow = ns2_flow("reno:rfc", from + ms(5));
            flow.sender.receive_window_segments = 200;
            let routes = vec![vec![0], vec![1]];
            let mut config = network(links, routes, vec![flow], Time::from_s(2));
            config.changes = vec![change(Time::from_s(1), Changed::Delay(LinkId(0), to))];
            config.capture = capture([1]);
            let outcome = run(&config);
            rows(&outcome.tables, 1, ARRIVES, ACK).iter().filter(|row| row.has_sack).count()
        };
        assert!(sacks(ms(40), ms(10)) > 0);
        assert_eq!(sacks(ms(10), ms(40)), 0);
    }

    #[test]
    fn packets_overtake_where_a_route_becomes_shorter() {
        let to_other = Changed::Route { flow: 0, route: RouteId(2), ack_route: RouteId(1) };
        let (behind, sacks) = reordered(&flow_over(ms(40), ms(10), to_other), 2, 3);
        assert!(behind > 0 && sacks > 0, "{behind} {sacks}");
        let outcome = flow_over(ms(10), ms(40), to_other);
        assert_eq!(reordered(&outcome, 2, 3), (0, 0));
        let routes: Vec<_> = outcome.summary.flows[0]
            .routes
            .iter()
            .map(|route| (route.from_s, route.links.join(" ")))
            .collect();
        assert_eq!(routes, [(0.0, "old shared".into()), (1.0, "other shared".into())]);
        assert_eq!(outcome.summary.changes_s, [1.0]);
        let srtt_s = outcome.summary.flows[0].srtt_s.unwrap();
        assert!((0.045..0.05).contains(&srtt_s), "the flow has the RTT of its new route: {srtt_s}");
    }

    #[test]
    fn loss_changes_for_the_packets_that_come_then() {
        let links = vec![link("only", "80Mbit/s", ms(1))];
        let mut config = network(links, vec![vec![0]], Vec::new(), Time::from_s(1));
        config.udp = vec![datagrams(0, 1000, ms(1), ms(1), 100)];
        config.changes = vec![
            change(us(20_500), Changed::Loss(LinkId(0), 1.0)),
            change(us(50_500), Changed::Loss(LinkId(0), 0.0)),
        ];
        let summary = run(&config).summary;
        assert_eq!((summary.udp[0].lost, summary.udp[0].delivered), (30, 70));
        assert_eq!(summary.links[0].random_losses, 30);
    }

    #[test]
    fn acks_queue_on_the_slow_link_of_a_new_route() {
        // 50 kbit/s carry 156.25 ACKs of 320 bits a second.
        let links = vec![
            link("there", "10Mbit/s", ms(5)),
            link("back", "1Mbit/s", ms(5)),
            link("slow", "50kbit/s", ms(5)),
        ];
        let routes = vec![vec![0], vec![1], vec![2]];
        let mut flow = ns2_flow("reno:rfc", ms(10));
        flow.sender.receive_window_segments = 50;
        let mut config = network(links, routes, vec![flow], Time::from_s(20));
        config.warmup = Time::from_s(10);
        config.changes = vec![change(
            Time::from_s(5),
            Changed::Route { flow: 0, route: RouteId(0), ack_route: RouteId(2) },
        )];
        let segments_per_s = run(&config).summary.flows[0].delivered_bytes as f64 / 1460.0 / 10.0;
        assert!((segments_per_s - 156.25).abs() < 0.2, "{segments_per_s}");
    }

    #[test]
    fn acks_queue_where_the_bottleneck_becomes_faster() {
        // At 1 Mbit/s the ACKs take 27 kbit/s, at 10 Mbit/s they would take 267.
        let links = vec![link("there", "1Mbit/s", ms(5)), link("back", "50kbit/s", ms(5))];
        let mut flow = ns2_flow("reno:rfc", ms(10));
        flow.sender.receive_window_segments = 50;
        let mut config = network(links, vec![vec![0], vec![1]], vec![flow], Time::from_s(20));
        config.warmup = Time::from_s(10);
        config.changes = vec![change(Time::from_s(5), Changed::Rate(LinkId(0), rate("10Mbit/s")))];
        let segments_per_s = run(&config).summary.flows[0].delivered_bytes as f64 / 1460.0 / 10.0;
        assert!((segments_per_s - 156.25).abs() < 0.2, "{segments_per_s}");
    }
}

mod faults {
    use super::*;

    fn says(edit: impl Fn(&mut Config), words: &str) {
        let flows = vec![ns2_flow("reno:rfc", ms(10))];
        let mut config = dumbbell(drop_tail(rate("10Mbit/s"), 10), flows, Time::from_s(1));
        assert!(Sim::new(&config).is_ok());
        edit(&mut config);
        match Sim::new(&config) {
            Err(SimError::Unknown(text)) => assert!(text.contains(words), "{text}"),
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("{words}: accepted"),
        }
    }

    #[test]
    fn a_route_over_a_missing_link() {
        says(|config| config.routes.push(vec![LinkId(0), LinkId(2)]), "route 2 ");
        says(|config| config.routes.push(Vec::new()), "route 2 ");
    }

    #[test]
    fn a_flow_or_datagrams_on_a_missing_route() {
        says(|config| config.flows[0].ack_route = RouteId(9), "route 9");
        says(|config| config.udp.push(datagrams(7, 100, Time::ZERO, ms(1), 1)), "route 7");
    }

    #[test]
    fn a_change_of_what_is_not_there() {
        let first = change(ms(1), Changed::Delay(LinkId(0), ms(1)));
        for what in [
            Changed::Rate(LinkId(2), Rate(1)),
            Changed::Delay(LinkId(2), ms(1)),
            Changed::Loss(LinkId(2), 0.1),
            Changed::Route { flow: 1, route: RouteId(0), ack_route: RouteId(1) },
            Changed::Route { flow: 0, route: RouteId(2), ack_route: RouteId(1) },
            Changed::Route { flow: 0, route: RouteId(0), ack_route: RouteId(2) },
        ] {
            says(|config| config.changes = vec![first, change(ms(2), what)], "change 1 ");
        }
    }

    #[test]
    fn a_change_that_goes_back_in_time() {
        let delay = |at: Time| change(at, Changed::Delay(LinkId(0), ms(1)));
        says(
            |config| config.changes = vec![delay(ms(1)), delay(ms(3)), delay(ms(2))],
            "change 2 goes back in time",
        );
    }

    #[test]
    fn a_recording_of_a_missing_link() {
        says(|config| config.capture = capture([0, 2]), "link 2");
    }
}

mod sharing {
    use super::*;

    #[test]
    fn a_slow_link_for_acks_limits_goodput() {
        // Every segment is acknowledged: 50 kbit/s carry 156.25 ACKs of 320 bits a second.
        let links = vec![link("there", "10Mbit/s", ms(5)), link("back", "50kbit/s", ms(5))];
        let mut flow = ns2_flow("reno:rfc", ms(10));
        flow.sender.receive_window_segments = 50;
        let mut config = network(links, vec![vec![0], vec![1]], vec![flow], Time::from_s(20));
        config.warmup = Time::from_s(10);
        let summary = run(&config).summary;
        let segments_per_s = summary.flows[0].delivered_bytes as f64 / 1460.0 / 10.0;
        assert!((segments_per_s - 156.25).abs() < 0.2, "{segments_per_s}");
        assert!(summary.links[1].utilization > 0.999);
        // Little's law: of 50 packets one is served, and 10 ms and 1.2 ms hold some on the way.
        let expected_s = 50.0 / 156.25 - 0.010 - 0.0012 - 0.0064;
        let queue_s = summary.links[1].mean_queue_s;
        assert!((queue_s / expected_s - 1.0).abs() < 0.01, "{queue_s} {expected_s}");
    }

    #[test]
    fn acks_of_one_sided_background_traffic_queue_too() {
        let links = vec![link("there", "100Mbit/s", ms(5)), link("back", "50kbit/s", ms(5))];
        let mut config = network(links, vec![vec![0], vec![1]], Vec::new(), Time::from_s(20));
        let mut background = common::background(2, rate("100Mbit/s"));
        (background.traffic.reverse, background.traffic.long_flows) = (Rate(0), 0);
        config.background = Some(background);
        let summary = run(&config).summary;
        // An ACK has 66 bytes and covers two segments.
        let most_bps = 50e3 * 2.0 * 1448.0 / 66.0;
        let goodput_bps = summary.background.expect("there is some").goodput_bps[0];
        assert!(goodput_bps < most_bps, "{goodput_bps}, at most {most_bps}");
        assert!(summary.links[1].utilization > 0.99);
    }

    #[test]
    fn acks_wait_behind_data_of_the_other_direction() {
        // The segment is received at 1.2 + 5 ms. At 6 ms a datagram begins to occupy the way back, 10 ms.
        let links = vec![link("there", "10Mbit/s", ms(5)), link("back", "1Mbit/s", ms(5))];
        let flow = FlowConfig { size_segments: 1, ..ns2_flow("reno:rfc", ms(10)) };
        let mut config = network(links, vec![vec![0], vec![1]], vec![flow], Time::from_s(1));
        config.udp = vec![datagrams(1, 1250, ms(6), ms(1), 1)];
        config.capture = capture([1]);
        let outcome = run(&config);
        let at = |point, kind| rows(&outcome.tables, 1, point, kind)[0].at;
        assert_eq!((at(ARRIVES, ACK), at(DEPARTS, UDP)), (us(6200), ms(16)));
        assert_eq!(at(DEPARTS, ACK), us(16_320));
        assert_eq!((outcome.summary.flows[0].min_rtt_s.unwrap() * 1e9).round() as u64, us(21_320).as_ns());
    }

    #[test]
    fn datagrams_take_their_rate_from_a_flow() {
        // 10 of 20 s at 8 of 20 Mbit/s.
        let links = vec![
            LinkConfig { name: "there".into(), delay: ms(10), ..drop_tail(rate("20Mbit/s"), 100) },
            link("back", "20Mbit/s", ms(10)),
        ];
        let flow = |udp: bool| {
            let flows = vec![ns2_flow("reno:rfc", ms(20))];
            let mut config = network(links.clone(), vec![vec![0], vec![1]], flows, Time::from_s(30));
            config.warmup = Time::from_s(10);
            if udp {
                config.udp = vec![datagrams(0, 1000, Time::from_s(15), ms(1), 10_000)];
            }
            run(&config).summary
        };
        let (alone, shared) = (flow(false), flow(true));
        let udp = &shared.udp[0];
        assert_eq!((udp.sent, udp.delivered + udp.dropped), (10_000, 10_000));
        assert!(udp.dropped < 500, "{}", udp.dropped);
        let udp_bits = udp.delivered as f64 * 8000.0;
        let taken_bits =
            (alone.flows[0].delivered_bytes - shared.flows[0].delivered_bytes) as f64 * 8.0 * 1500.0 / 1460.0;
        assert!((taken_bits / udp_bits - 1.0).abs() < 0.02, "{taken_bits} {udp_bits}");
        assert!(shared.links[0].utilization > 0.99);
    }
}
