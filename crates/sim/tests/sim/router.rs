//! Routers that speak, and the ends of their protocols, on paths of all kinds.

use crate::common::{drop_tail, dumbbell, ms, network, ns2_flow, rate, run};
use lfn_path::{
    AqmConfig, CodelConfig, DropHead, JetMaxConfig, RcpConfig, RouterConfig, VcpConfig, XcpConfig,
};
use lfn_sim::background::Direction;
use lfn_sim::config::{Config, FlowConfig, LinkConfig, LinkId, Loss, RouteId};
use lfn_sim::{Outcome, Sim, SimError};
use lfn_tcp::{ReceiverConfig, SenderConfig};
use lfn_units::Time;

const NO_LIMIT: u64 = 1_000_000;

/// A link of this rate, with a router.
fn link(rate_text: &str, router: RouterConfig) -> LinkConfig {
    LinkConfig { router: Some(router), ..drop_tail(rate(rate_text), NO_LIMIT) }
}

/// A paced flow.
fn flow(law: &str, rtt: Time) -> FlowConfig {
    let flow = ns2_flow(law, rtt);
    FlowConfig { sender: SenderConfig { pacing: true, ..flow.sender }, ..flow }
}

/// A dumbbell whose windows are sampled every 10 ms.
fn sampled(link: LinkConfig, flows: Vec<FlowConfig>, duration: Time) -> Config {
    Config { sample: Some(ms(10)), ..dumbbell(link, flows, duration) }
}

/// Times and windows of a flow.
fn windows(outcome: &Outcome, flow: u32) -> Vec<(f64, f64)> {
    let table = &outcome.tables.flows;
    (0..table.t_s.len())
        .filter(|&i| table.flow[i] == flow)
        .map(|i| (table.t_s[i], table.cwnd_seg[i]))
        .collect()
}

/// When a window fell to what `beta` leaves of it.
fn decreases(windows: &[(f64, f64)], beta: f64) -> Vec<f64> {
    let fell = windows.windows(2).filter(|pair| (pair[1].1 / pair[0].1 - beta).abs() < 0.005);
    fell.map(|pair| pair[1].0).collect()
}

mod vcp {
    use super::*;

    fn speaks() -> RouterConfig {
        RouterConfig::Vcp(VcpConfig::default())
    }

    #[test]
    fn one_flow_starts_up_and_cycles_as_computed() {
        let config = sampled(link("100Mbit/s", speaks()), vec![flow("vcp", ms(100))], Time::from_s(80));
        let outcome = run(&config);
        let windows = windows(&outcome, 0);
        // To 80 % of the capacity from two segments: t_rho ln(327)/ln(1.0625) = 19.1 s, were windows not
        // whole; a window below 10 sends up to a third less than it should.
        let capacity = 0.98 * 100e6 * 0.1 / (8.0 * 1500.0);
        let full = windows.iter().find(|&&(_, cwnd)| cwnd > 0.8 * capacity).unwrap().0;
        assert!((19.1..22.0).contains(&full), "{full}");
        // An eighth of the capacity at a segment a round trip, and what happens until it is heard of.
        let cycles = decreases(&windows, 0.875);
        assert!(cycles.len() >= 4, "{cycles:?}");
        for pair in cycles.windows(2) {
            let cycle = pair[1] - pair[0];
            assert!((cycle - 0.125 * capacity * 0.1).abs() < 1.0, "{cycle}");
        }
        let summary = &outcome.summary.links[0];
        assert_eq!(summary.drops, 0);
        assert!(summary.max_queue_packets < 20, "{}", summary.max_queue_packets);
    }

    #[test]
    fn utilization_without_queue_or_drops() {
        let flows =
            (0..5).map(|n| FlowConfig { start: ms(700 * n), ..flow("vcp", ms(40 + 20 * n)) }).collect();
        let mut config = dumbbell(link("100Mbit/s", speaks()), flows, Time::from_s(90));
        config.warmup = Time::from_s(30);
        let link = &run(&config).summary.links[0];
        assert_eq!(link.drops, 0);
        assert!(link.utilization > 0.9, "{}", link.utilization);
        // 5 % of 100 ms.
        assert!(link.mean_queue_s < 0.005, "{}", link.mean_queue_s);
    }

    #[test]
    fn the_queue_at_full_gamma_is_what_grows_until_a_decrease() {
        let full = RouterConfig::Vcp(VcpConfig { gamma: 1.0, ..VcpConfig::default() });
        let flows = (0..4).map(|n| FlowConfig { start: ms(400 * n), ..flow("vcp", ms(100)) }).collect();
        let mut config = sampled(link("50Mbit/s", full), flows, Time::from_s(200));
        config.warmup = Time::from_s(60);
        let link = &run(&config).summary.links[0];
        // Four segments a round trip for an interval, up to another one, and a round trip; packets are
        // paced, but of four flows some come together.
        let bound = 4.0 * (2.0 * 0.2 + 0.1) / 0.1;
        assert!(link.max_queue_packets as f64 <= bound + 8.0, "{}", link.max_queue_packets);
        assert!(link.utilization > 0.9);
    }

    /// Goodput of flows between 300 s and 700 s.
    fn shares(flows: Vec<FlowConfig>) -> Vec<f64> {
        let mut config = dumbbell(link("20Mbit/s", speaks()), flows, Time::from_s(700));
        config.warmup = Time::from_s(300);
        run(&config).summary.flows.iter().map(|flow| flow.goodput_bps.unwrap()).collect()
    }

    #[test]
    fn rates_do_not_depend_on_the_rtt_and_follow_weights() {
        let rates = shares(vec![flow("vcp", ms(40)), flow("vcp", ms(80))]);
        assert!((rates[0] / rates[1] - 1.0).abs() < 0.1, "{rates:?}");
        let rates = shares(vec![flow("vcp", ms(100)), flow("vcp:weight=2", ms(100))]);
        assert!((rates[1] / rates[0] - 2.0).abs() < 0.3, "{rates:?}");
    }

    #[test]
    fn the_slowest_link_of_a_path_counts_wherever_it_is() {
        let rates = ["40Mbit/s", "10Mbit/s", "20Mbit/s"];
        for order in [[0, 1, 2], [1, 0, 2], [0, 2, 1]] {
            let mut links: Vec<LinkConfig> =
                order.iter().map(|&n| LinkConfig { delay: ms(10), ..link(rates[n], speaks()) }).collect();
            links.push(drop_tail(rate("100Mbit/s"), NO_LIMIT));
            // A link without a router in between.
            links.push(LinkConfig { delay: ms(5), ..drop_tail(rate("50Mbit/s"), NO_LIMIT) });
            let flows = vec![flow("vcp", ms(100))];
            let mut config = network(links, vec![vec![0, 4, 1, 2], vec![3]], flows, Time::from_s(60));
            config.warmup = Time::from_s(25);
            let slowest = order.iter().position(|&n| n == 1).unwrap();
            let links = run(&config).summary.links;
            assert!(links[slowest].utilization > 0.85, "{order:?}: {}", links[slowest].utilization);
            assert!(links.iter().all(|link| link.drops == 0));
        }
    }

    #[test]
    fn acks_bring_codes_back_over_a_queue_and_by_delay() {
        // The ACKs of one flow queue with the data of the other; some are delayed.
        let reverse = FlowConfig { direction: Direction::Reverse, ..flow("vcp", ms(60)) };
        let delayed = |flow: FlowConfig| {
            let receiver = ReceiverConfig { delayed_ack: true, ..flow.receiver };
            FlowConfig { receiver, ..flow }
        };
        let flows = vec![flow("vcp", ms(100)), delayed(reverse)];
        let mut config = dumbbell(link("20Mbit/s", speaks()), flows, Time::from_s(60));
        config.warmup = Time::from_s(20);
        for link in &run(&config).summary.links {
            assert!(link.utilization > 0.85 && link.drops == 0, "{}: {}", link.id, link.utilization);
        }
    }

    #[test]
    fn without_a_router_losses_decide() {
        let mut config =
            dumbbell(drop_tail(rate("10Mbit/s"), 80), vec![flow("vcp", ms(100))], Time::from_s(60));
        config.warmup = Time::from_s(20);
        let summary = run(&config).summary;
        assert!(summary.flows[0].loss_events > 5, "{}", summary.flows[0].loss_events);
        assert!(summary.links[0].utilization > 0.8, "{}", summary.links[0].utilization);
    }

    #[test]
    fn with_random_loss_it_goes_on() {
        let mut lossy = link("20Mbit/s", speaks());
        lossy.impair.loss = Loss::Bernoulli(1e-3);
        let mut config = dumbbell(lossy, vec![flow("vcp", ms(100)), flow("evcp", ms(100))], Time::from_s(60));
        config.warmup = Time::from_s(20);
        let summary = run(&config).summary;
        assert!(summary.flows.iter().all(|flow| flow.loss_events > 3));
        assert!(summary.links[0].utilization > 0.5, "{}", summary.links[0].utilization);
    }

    #[test]
    fn flows_of_other_laws_count_as_load_and_see_nothing() {
        let reno = FlowConfig {
            sender: SenderConfig { receive_window_segments: 40, ..flow("reno", ms(100)).sender },
            ..ns2_flow("reno", ms(100))
        };
        let mut config =
            dumbbell(link("20Mbit/s", speaks()), vec![reno, flow("vcp", ms(100))], Time::from_s(60));
        config.warmup = Time::from_s(20);
        let summary = run(&config).summary;
        // 40 packets a round trip are 4.7 Mbit/s; VCP takes the rest of the 98 %.
        assert!(
            (summary.flows[0].goodput_bps.unwrap() / 4.67e6 - 1.0).abs() < 0.02,
            "{}",
            summary.flows[0].goodput_bps.unwrap()
        );
        assert!(summary.links[0].utilization > 0.88 && summary.links[0].drops == 0);
    }

    #[test]
    fn a_router_stands_beside_any_queue() {
        let codel = CodelConfig { mtu_bytes: 1500, ..CodelConfig::default() };
        for queue in [AqmConfig::DropHead(DropHead {}), AqmConfig::Codel(codel)] {
            let with = LinkConfig { queue, ..link("20Mbit/s", speaks()) };
            let mut config = dumbbell(with, vec![flow("evcp", ms(100))], Time::from_s(60));
            config.warmup = Time::from_s(20);
            let link = &run(&config).summary.links[0];
            assert!(link.utilization > 0.88 && link.drops == 0, "{}", link.utilization);
        }
    }

    #[test]
    fn ecn_on_such_a_link_is_refused() {
        let reno = flow("reno", ms(100));
        let reno = FlowConfig { sender: SenderConfig { ecn: true, ..reno.sender }, ..reno };
        let config = dumbbell(link("20Mbit/s", speaks()), vec![flow("vcp", ms(100)), reno], Time::from_s(1));
        let error = Sim::new(&config).err().unwrap();
        assert!(matches!(error, SimError::EcnBesideVcp { flow: 1, .. }));
        assert_eq!(
            error.to_string(),
            "flow 1 has ECN, and link forward speaks VCP: both need the same bits of the IP header"
        );
    }

    #[test]
    fn a_change_of_rate_is_followed() {
        use lfn_sim::config::{Change, Changed};
        let mut config = sampled(link("40Mbit/s", speaks()), vec![flow("vcp", ms(100))], Time::from_s(80));
        let to =
            |at, rate_text| Change { at: Time::from_s(at), what: Changed::Rate(LinkId(0), rate(rate_text)) };
        config.changes = vec![to(30, "10Mbit/s"), to(55, "40Mbit/s")];
        let outcome = run(&config);
        let at = |t_s: f64| windows(&outcome, 0).iter().find(|sample| sample.0 >= t_s).unwrap().1;
        let room = |mbps: f64| 0.98 * mbps * 1e6 * 0.1 / 12_000.0;
        // Eleven decreases by an eighth, 200 ms and a round trip apart, which the queue makes longer.
        assert!(at(40.0) < room(10.0) * 1.05, "{}", at(40.0));
        assert!(at(54.0) > room(10.0) * 0.85, "{}", at(54.0));
        assert!(at(79.0) > room(40.0) * 0.85, "{}", at(79.0));
    }
}

mod rates {
    use super::*;

    /// Goodputs of the flows in the second half, and the bottleneck.
    fn second_half(mut config: Config) -> (Vec<f64>, lfn_sim::LinkSummary) {
        config.warmup = Time(config.duration.0 / 2);
        let summary = run(&config).summary;
        (summary.flows.iter().map(|flow| flow.goodput_bps.unwrap()).collect(), summary.links[0].clone())
    }

    const PROTOCOLS: [(&str, RouterConfig); 3] = [
        ("xcp", RouterConfig::Xcp(XcpConfig { alpha: 0.4, beta: 0.226, gamma: 0.1 })),
        ("rcp", RouterConfig::Rcp(RcpConfig { alpha: 0.4, beta: 0.4, gamma: 1.0 })),
        ("jetmax", RouterConfig::JetMax(JetMaxConfig { gamma: 0.95, interval: Time::from_ms(100) })),
    ];

    #[test]
    fn flows_of_any_rtt_share_a_full_link_without_queue_or_drops() {
        for (law, router) in PROTOCOLS {
            let flows =
                [40, 80, 100, 160].map(|rtt| FlowConfig { start: ms(20 * rtt), ..flow(law, ms(rtt)) });
            let config = dumbbell(link("50Mbit/s", router), flows.to_vec(), Time::from_s(60));
            let (rates, link) = second_half(config);
            assert_eq!(link.drops, 0, "{law}");
            assert!(link.utilization > 0.93, "{law}: {}", link.utilization);
            assert!(link.mean_queue_s < 0.005, "{law}: {}", link.mean_queue_s);
            let (least, most) =
                rates.iter().fold((f64::MAX, 0.0_f64), |(low, high), &x| (low.min(x), high.max(x)));
            assert!(least / most > 0.9, "{law}: {rates:?}");
        }
    }

    #[test]
    fn one_flow_does_not_overshoot() {
        for (law, router) in &PROTOCOLS[1..] {
            let full = LinkConfig { limit_packets: 100, ..link("100Mbit/s", *router) };
            let (rates, link) = second_half(dumbbell(full, vec![ns2_flow(law, ms(100))], Time::from_s(10)));
            assert_eq!(link.drops, 0, "{law}");
            assert!(rates[0] > 0.93 * 100e6 * 1460.0 / 1500.0, "{law}: {rates:?}");
        }
    }

    #[test]
    fn a_flow_of_rcp_after_a_handshake_has_its_rate_at_once() {
        let (law, router) = PROTOCOLS[1];
        let flow = flow(law, ms(100));
        let sender = SenderConfig { handshake: true, ..flow.sender };
        let config = sampled(link("50Mbit/s", router), vec![FlowConfig { sender, ..flow }], ms(300));
        let pacing = run(&config).tables.flows.pacing_bps;
        let first = *pacing.iter().find(|&&bps| bps > 0.0).unwrap();
        // A twentieth.
        let wanted = 0.05 * 50e6 * 1460.0 / 1500.0;
        assert!(first / wanted > 0.99 && first / wanted < 1.4, "{first}");
    }

    #[test]
    fn a_newcomer_under_jetmax_fills_no_buffer() {
        let (law, router) = PROTOCOLS[2];
        let full = LinkConfig { limit_packets: 100, ..link("100Mbit/s", router) };
        let newcomer = FlowConfig { start: Time::from_s(12), ..flow(law, ms(100)) };
        let config = dumbbell(full, vec![flow(law, ms(100)), newcomer], Time::from_s(24));
        let (rates, link) = second_half(config);
        assert_eq!(link.drops, 0);
        assert!(rates[1] / rates[0] > 0.9, "{rates:?}");
        assert!(link.utilization > 0.93, "{}", link.utilization);
    }

    #[test]
    fn the_slowest_link_decides_and_others_are_left_to_others() {
        // One flow over both links, one over the second alone: max-min fair is 10 and 30 Mbit/s.
        for (law, router) in PROTOCOLS {
            let links =
                vec![link("10Mbit/s", router), link("40Mbit/s", router), drop_tail(rate("1Gbit/s"), 1000)];
            let flows = [0, 1].map(RouteId).map(|route| FlowConfig {
                route,
                ack_route: RouteId(2),
                ..flow(law, ms(60))
            });
            let routes = vec![vec![0, 1], vec![1], vec![2]];
            let (rates, _) = second_half(network(links, routes, flows.to_vec(), Time::from_s(60)));
            let payload = 1460.0 / 1500.0;
            assert!((rates[0] / (10e6 * payload) - 1.0).abs() < 0.08, "{law}: {rates:?}");
            assert!(rates[1] / (30e6 * payload) > 0.9, "{law}: {rates:?}");
        }
    }

    #[test]
    fn no_round_trip_is_too_long() {
        for (law, router) in PROTOCOLS {
            for rtt_s in [0.5, 5.0, 20.0] {
                let flows = vec![flow(law, Time::from_s_f64(rtt_s)); 2];
                let config = dumbbell(link("2Mbit/s", router), flows, Time::from_s_f64(150.0 * rtt_s));
                let (rates, link) = second_half(config);
                assert!(link.utilization > 0.93 && link.mean_queue_s < 0.1, "{law}, {rtt_s} s: {link:?}");
                assert!((rates[0] / rates[1] - 1.0).abs() < 0.1, "{law}, {rtt_s} s: {rates:?}");
            }
        }
    }

    #[test]
    fn losses_do_not_stop_them_and_without_a_router_losses_decide() {
        for (law, router) in PROTOCOLS {
            let mut lossy = link("20Mbit/s", router);
            lossy.impair.loss = Loss::Bernoulli(1e-3);
            let (_, link) = second_half(dumbbell(lossy, vec![flow(law, ms(50))], Time::from_s(40)));
            assert!(link.utilization > 0.7, "{law}: {}", link.utilization);

            let mute = drop_tail(rate("10Mbit/s"), 50);
            let (_, link) = second_half(dumbbell(mute, vec![flow(law, ms(50))], Time::from_s(60)));
            assert!(link.utilization > 0.8 && link.drops > 0, "{law}: {}", link.utilization);
        }
    }

    #[test]
    fn tcp_beside_xcp_is_load() {
        let reno = FlowConfig {
            sender: SenderConfig { receive_window_segments: 40, ..flow("reno", ms(100)).sender },
            ..ns2_flow("reno", ms(100))
        };
        let config =
            dumbbell(link("20Mbit/s", PROTOCOLS[0].1), vec![reno, flow("xcp", ms(100))], Time::from_s(40));
        let (rates, link) = second_half(config);
        assert!(rates[0] > 4e6 && rates[0] < 4.7e6, "{rates:?}");
        assert!(link.utilization > 0.93 && link.drops == 0, "{}", link.utilization);
        // 5 % of 100 ms.
        assert!(link.mean_queue_s < 0.005, "{}", link.mean_queue_s);
    }
}

/// The EVCP paper's smallest scenario, which is one of the VCP paper's: five flows of unequal RTTs one after
/// the other, as many on the way back, a buffer of one BDP; here they come each 10 s, not each 100 s.
#[test]
fn the_papers_smallest_scenario_fills_the_link_without_drops_or_a_queue() {
    let vcp = RouterConfig::Vcp(VcpConfig::default());
    for (law, router) in [("vcp", vcp), ("evcp", vcp), ("xcp", RouterConfig::Xcp(XcpConfig::default()))] {
        let mut flows = Vec::new();
        for (n, rtt) in [40, 50, 60, 70, 80].into_iter().enumerate() {
            flows.push(FlowConfig { start: Time::from_s(10 * n as u64), ..flow(law, ms(rtt)) });
            flows.push(FlowConfig { direction: Direction::Reverse, ..flow(law, ms(rtt)) });
        }
        let limited = LinkConfig { limit_packets: 225, ..link("45Mbit/s", router) };
        let mut config = dumbbell(limited, flows, Time::from_s(80));
        config.warmup = Time::from_s(30);
        for link in &run(&config).summary.links {
            assert_eq!(link.drops, 0, "{law}");
            assert!(link.utilization > 0.9, "{law}: {}", link.utilization);
            // 5 % of 60 ms.
            assert!(link.mean_queue_s < 0.003, "{law}: {}", link.mean_queue_s);
        }
    }
}
