//! Scenarios for the tests of the simulator. Packets and headers are those of `compat = "linux"` and
//! `compat = "ns2"`.

use lfn_law::LawSpec;
use lfn_sim::background::{self, Direction};
use lfn_sim::config::{
    Background, Capture, Carrier, Config, FlowConfig, LinkConfig, LinkId, RouteId, UdpConfig, UdtConfig,
};
use lfn_sim::traffic::udp;
use lfn_sim::{Outcome, Sim, Tables};
use lfn_tcp::{ReceiverConfig, SenderConfig};
use lfn_units::{Rate, Time};

/// Bytes of a full packet at the queue, and of its payload: 1500-byte MTU, Ethernet header, timestamps.
pub const LINUX_WIRE_BYTES: u32 = 1514;
pub const LINUX_PAYLOAD_BYTES: u32 = 1448;
/// Packets that fill 100 Mbit/s x 100 ms.
pub const BDP_PACKETS: f64 = 100e6 * 0.1 / (8.0 * LINUX_WIRE_BYTES as f64);

/// The law and variant that `text` names.
pub fn law(text: &str) -> LawSpec {
    text.parse().expect("a law of the registry")
}

/// A quantity with a unit.
pub fn rate(text: &str) -> Rate {
    text.parse().expect("a rate")
}

/// A drop-tail link.
pub fn drop_tail(rate: Rate, limit_packets: u64) -> LinkConfig {
    LinkConfig::drop_tail("", rate, limit_packets)
}

/// An endless flow as today's Linux sends it, in 1500-byte packets.
pub fn linux_flow(name: &str, rtt: Time) -> FlowConfig {
    FlowConfig::linux(law(name), rtt)
}

/// An endless flow as ns-2's Sack1 sends it.
pub fn ns2_flow(name: &str, rtt: Time) -> FlowConfig {
    FlowConfig {
        payload_bytes: 1460,
        wire_bytes: 1500,
        ack_bytes: 40,
        sender: SenderConfig::ns2(1460),
        receiver: ReceiverConfig::ns2(rtt),
        ..linux_flow(name, rtt)
    }
}

/// The flow, on the routes of a dumbbell for its direction.
pub fn on_dumbbell(flow: FlowConfig) -> FlowConfig {
    let route = flow.direction as u16;
    FlowConfig { route: RouteId(route), ack_route: RouteId(1 - route), ..flow }
}

/// `flows` over a link that is the same in both directions.
pub fn dumbbell(link: LinkConfig, flows: Vec<FlowConfig>, duration: Time) -> Config {
    Config::dumbbell(link, flows, duration)
}

/// `flows` on the routes that they name, over `links`.
pub fn network(
    links: Vec<LinkConfig>,
    routes: Vec<Vec<u16>>,
    flows: Vec<FlowConfig>,
    duration: Time,
) -> Config {
    let routes = routes.into_iter().map(|links| links.into_iter().map(LinkId).collect()).collect();
    Config { links, routes, flows, ..dumbbell(drop_tail(Rate(1), 0), Vec::new(), duration) }
}

/// `count` UDP packets of `bytes` along `route`, the first at `start`, one every `gap`.
pub fn datagrams(route: u16, bytes: u32, start: Time, gap: Time, count: u64) -> UdpConfig {
    let rate = Rate((u128::from(bytes) * 8_000_000_000_000 / u128::from(gap.0)) as u64);
    let stop = start + Time(gap.0 * (count - 1) + 1);
    let traffic = udp::Config {
        packet_bytes: bytes,
        pattern: udp::Pattern::Bursts(vec![udp::Burst { start, stop, rate }]),
    };
    UdpConfig { name: format!("udp on {route}"), traffic, deadline: None, route: RouteId(route) }
}

/// Every packet on `links` is recorded.
pub fn capture(links: impl IntoIterator<Item = u16>) -> Option<Capture> {
    let links = links.into_iter().map(LinkId).collect();
    Some(Capture { links, from: Time::ZERO, to: Time::NEVER, max_rows: u64::MAX })
}

/// A packet as recorded.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub at: Time,
    pub link: u16,
    pub point: u8,
    pub kind: u8,
    pub seq: u64,
    pub retransmission: bool,
    pub has_sack: bool,
}

pub const ARRIVES: u8 = 0;
pub const DEPARTS: u8 = 2;
pub const RECEIVED: u8 = 3;
pub const DATA: u8 = 0;
pub const ACK: u8 = 1;
pub const UDP: u8 = 2;
pub const UDT_DATA: u8 = 3;

/// Recorded packets of `kind` at `point` of `link`.
pub fn rows(tables: &Tables, link: u16, point: u8, kind: u8) -> Vec<Row> {
    let table = &tables.packets;
    (0..table.t_ps.len())
        .map(|i| Row {
            at: Time(table.t_ps[i]),
            link: table.link[i],
            point: table.point[i],
            kind: table.kind[i],
            seq: table.seq[i],
            retransmission: table.flags[i] & 1 != 0,
            has_sack: table.sack1_end[i] > 0,
        })
        .filter(|row| (row.link, row.point, row.kind) == (link, point, kind))
        .collect()
}

/// The background traffic of `level` on a link of `rate`.
pub fn background(level: u8, rate: Rate) -> Background {
    Background {
        traffic: background::Config::level(level, rate).expect("levels 0 to 3"),
        carrier: Carrier {
            law: law("reno"),
            sender: SenderConfig {
                initial_window_segments: background::INITIAL_WINDOW_SEGMENTS,
                ..SenderConfig::linux(LINUX_PAYLOAD_BYTES, lfn_law::SlowStartKind::Classic)
            },
            receiver: ReceiverConfig::linux(Time::from_ms(100), LINUX_PAYLOAD_BYTES),
            receive_window_bytes: background::RECEIVE_WINDOW_BYTES,
            ack_bytes: 66,
            routes: [RouteId(0), RouteId(1)],
        },
    }
}

/// The whole run. Every run checks by itself that packets are conserved.
pub fn run(config: &Config) -> Outcome {
    let mut sim = Sim::new(config).expect("a valid scenario");
    sim.run_until(config.duration);
    sim.finish().expect("packets are conserved")
}

/// An event of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub t_s: f64,
    pub kind: u8,
    pub cwnd_before: f64,
    pub cwnd_after: f64,
    pub ssthresh: f64,
}

pub const FAST_RETRANSMIT: u8 = 0;
pub const TIMEOUT: u8 = 1;
pub const ECN: u8 = 2;
pub const UNDO: u8 = 3;
pub const RECOVERY_END: u8 = 4;

/// The events of `flow`, in order of time.
pub fn events(tables: &Tables, flow: u32) -> Vec<Event> {
    let table = &tables.events;
    (0..table.t_s.len())
        .filter(|&i| table.flow[i] == flow)
        .map(|i| Event {
            t_s: table.t_s[i],
            kind: table.kind[i],
            cwnd_before: table.cwnd_before_seg[i],
            cwnd_after: table.cwnd_after_seg[i],
            ssthresh: table.ssthresh_seg[i],
        })
        .collect()
}

/// An endless flow of UDT 4.11.
pub fn udt(number: u32, rtt: Time) -> UdtConfig {
    UdtConfig {
        number,
        stream: 0,
        control: "udt".parse().unwrap(),
        direction: Direction::Forward,
        route: RouteId(0),
        ack_route: RouteId(1),
        rtt,
        start: Time::ZERO,
        stop: Time::NEVER,
        size_packets: u64::MAX,
        mss_bytes: 1500,
        framing_bytes: 14,
        window_packets: 1 << 20,
        // Numbers wrap within the first packets.
        seed: 0x7fff_fff0 + u64::from(number),
    }
}

/// Packets that a queue which drops nothing holds.
pub const NO_LIMIT: u64 = 1_000_000;

pub fn us(n: u64) -> Time {
    Time::from_us(n)
}

pub fn ms(n: u64) -> Time {
    Time::from_ms(n)
}

/// A link that drops nothing.
pub fn link(name: &str, rate_text: &str, delay: Time) -> LinkConfig {
    LinkConfig { name: name.into(), delay, ..drop_tail(rate(rate_text), NO_LIMIT) }
}
