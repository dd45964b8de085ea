//! What Linux 6.12 was seen to do when something goes wrong: marks, outages, reordering, no SACK. Its own TCP
//! in virtual time, behind a bottleneck of 20 Mbit/s and a round trip of 50 ms unless said, 1514 bytes a packet.
//! Data meet the trouble behind the bottleneck; ACKs meet nothing but a delay.

mod common;

use common::{drop_tail, events, linux_flow, network, rate, run, Event, ECN};
use lfn_path::{AqmConfig, CodelConfig};
use lfn_sim::config::{Config, FlowConfig, LinkConfig};
use lfn_units::Time;

const RTT: Time = Time::from_ms(50);

/// 20 Mbit/s, where `packets` find room, the one in service included.
fn bottleneck(packets: u64) -> LinkConfig {
    drop_tail(rate("20Mbit/s"), packets - 1)
}

/// The flow through the bottleneck (link 0) and a path behind it (link 2) that takes no time of its own.
fn path(bottleneck: LinkConfig, flow: FlowConfig, seconds: u64) -> Config {
    let back = drop_tail(rate("1Tbit/s"), 1_000_000);
    let behind = LinkConfig { name: "behind".into(), ..back.clone() };
    let links = vec![
        LinkConfig { name: "bottleneck".into(), ..bottleneck },
        LinkConfig { name: "back".into(), ..back },
        behind,
    ];
    network(links, vec![vec![0, 2], vec![1]], vec![flow], Time::from_s(seconds))
}

fn of_kind(seen: &[Event], kind: u8) -> Vec<Event> {
    seen.iter().filter(|event| event.kind == kind).copied().collect()
}

#[test]
fn one_mark_is_one_reduction() {
    // Linux: Reno, tcp_ecn=1, fq_codel with one queue and marks, 20 s. From 5 s on it reduced six times, at 6.18,
    // 8.76, 11.35, 13.93, 16.52 and 19.10 s, each time once, to 47 segments.
    let mut flow = linux_flow("reno:linux", RTT);
    flow.sender.ecn = true;
    flow.receiver.ecn = true;
    // Its token bucket takes the next packet out of the queue before it has tokens for it, so that a packet's
    // last 0.6 ms of waiting does not count.
    let target = Time::from_us(5606);
    let queue = AqmConfig::Codel(CodelConfig { target, ecn: true, ..CodelConfig::default() });
    let outcome = run(&path(LinkConfig { queue, ..bottleneck(1000) }, flow, 20));
    let marks: Vec<Event> =
        of_kind(&events(&outcome.tables, 0), ECN).into_iter().filter(|e| e.t_s > 5.0).collect();
    assert_eq!(marks.len(), 6, "{marks:?}");
    for mark in &marks {
        assert_eq!(mark.ssthresh, 47.0, "{mark:?}");
    }
    for pair in marks.windows(2) {
        assert!((pair[1].t_s - pair[0].t_s - 2.585).abs() < 0.015, "{pair:?}");
    }
}
