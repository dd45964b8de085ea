//! The scenario as a value: what the TOML says, with every default filled in.
//!
//! The comments on the fields are the reference of the format; `docs/reference/scenario.schema.json`
//! is made from them.

use std::sync::Arc;

use lfn_keys::{keys, Keys, Said};
use lfn_law::{LawSpec, SlowStartKind};
use lfn_sim::traffic::vectors::Trace;
use lfn_udt::ControlSpec;
use lfn_units::{Bytes, Rate, Time};
#[cfg(test)]
use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::file::File;
use crate::quantity::{Name, Packets, Sample, SendBuffer, Start, Text, Window};

mod link;
mod queue;
mod router;

pub use link::{
    BurstLoss, GilbertElliott, Jitter, Link, Loss, Mode, NamedLink, NormalJitter, OneWay, ParkingLot,
    Reorder, Topology, UniformJitter,
};
pub use queue::Queue;
pub use router::Router;

/// Links, the traffic over them, and what changes on the way.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = ["schema", "duration"])))]
pub struct Scenario {
    /// Version of this format: 1.
    #[cfg_attr(test, schemars(range(min = 1, max = 1)))]
    pub schema: u32,
    /// Free text that names the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Seed of every random stream, at least 0. Default 1.
    pub seed: u64,
    /// Simulated time, 1us to 30 days.
    pub duration: Text<Time>,
    /// Summary statistics begin here, before the end of the run. Default "0s".
    pub warmup: Text<Time>,
    /// Grid of the tables `flows` and `queues`, or "off". Default "10ms".
    pub sample: Text<Sample>,
    /// Which TCP. Default "linux".
    pub compat: Compat,
    /// The links: a table `link`, `parking-lot`, or tables `links`.
    #[serde(flatten)]
    pub topology: Topology,
    /// Groups of equal flows that are reported one by one, 16 million at most. Without any, there must be
    /// other traffic.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flow: Vec<Flow>,
    /// UDP sources, each reported in sum.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub udp: Vec<Udp>,
    /// Short flows and capped long ones, reported in sum. Default none.
    pub background: Background,
    /// Models of TCP traffic, each reported in sum.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<Traffic>,
    /// What changes on the way, in order of time. Of changes at one instant all are made, in this order,
    /// before anything else happens.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub schedule: Vec<Change>,
    /// Which packets to record. Default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture: Option<Capture>,
}

/// What a sender and a receiver do where a flow does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(JsonSchema))]
pub enum Compat {
    /// Today's Linux: 14 bytes of framing and 52 of headers in a packet.
    Linux,
    /// The papers' ns-2: initial window 2, no delayed ACK, losses by three duplicate ACKs, the window
    /// halved at once, no tail loss probe, classic slow start, RTO of RFC 6298; 40 bytes of headers
    /// and no framing; a queue of n packets holds n-1.
    Ns2,
}

/// Flows that differ in nothing but their random start.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = [])))]
pub struct Flow {
    /// How a schedule calls the group: letters, digits, `_` and `-`. Default: its index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// Congestion-control law, NAME or NAME:VARIANT; of those with parameters also NAME:PARAMETER=VALUE.
    /// Or FILE.py:CLASS for one in Python. Over UDT also its own, "udt" or "udt:VARIANT", which is the default
    /// there.
    pub law: Text<ControlSpec>,
    /// Default "tcp"; under UDT's own law "udt".
    #[serde(skip_serializing_if = "Transport::is_tcp")]
    pub transport: Transport,
    /// How many such flows. Default 1.
    #[cfg_attr(test, schemars(range(min = 1, max = 16000000)))]
    pub count: u32,
    /// Streams of each flow: parallel connections with the law each, which start together, share `size`
    /// equally, and are reported in sum as one flow. Default 1.
    #[cfg_attr(test, schemars(range(min = 1, max = 1000)))]
    pub parallel: u32,
    /// Round-trip time without queueing and serialisation, 1ns to 1000s, and at least the delays of the
    /// links of both routes: links of its own make up the rest. Default: those delays, if they are not 0.
    pub rtt: Text<Time>,
    /// When it begins: a time, or "uniform(LOW, HIGH)", drawn for each flow. Default "0s".
    pub start: Text<Start>,
    /// When it stops to send. Default: at the end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Text<Time>>,
    /// Payload to deliver, after which the flow ends. Default: no end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Text<Bytes>>,
    /// Which way its data go: in a dumbbell on which link, in a parking lot towards higher or lower numbers;
    /// elsewhere only a word in results. Default "forward", in a parking lot as `from` and `to` say.
    pub direction: Direction,
    /// Where its data go.
    #[serde(flatten)]
    pub path: Path,
    /// Links of its ACKs, in their order. Default: those of the data in the opposite direction; where one of
    /// them has none, the path of fewest hops.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ack_route: Vec<String>,
    /// The links of `ack_route`.
    #[serde(skip)]
    pub(crate) ack_links: Vec<u16>,
    /// IP packet (MTU), 64B to 64kB, over UDT at least 76B. Default "1500B".
    pub packet: Text<Bytes>,
    /// Most data outstanding, in packets or bytes; over UDT its flow window, 32 packets to 2^29. Default: no
    /// limit; over UDT 4 times what the path holds, as for `send_buffer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_window: Option<Text<Window>>,
    /// What only TCP has.
    #[serde(flatten)]
    pub tcp: Option<Tcp>,
}

/// What carries a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(JsonSchema))]
pub enum Transport {
    /// TCP, as `compat` says.
    Tcp,
    /// UDT 4: 44 bytes of headers in a data packet.
    Udt,
}

impl Transport {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_tcp(&self) -> bool {
        *self == Transport::Tcp
    }
}

keys! {
    /// How the ends of a TCP connection work; not over UDT.
    pub struct Tcp {
        /// What the sending host may hold that is not acknowledged: packets or bytes of payload, or "linux" for the
        /// buffer of an untuned host, which grows with the window up to 4 MiB in true sizes. Default: that of a
        /// tuned host, 4 times BDP and buffers of the route, at least 64MB.
        send_buffer: Option<Text<SendBuffer>> = None;
        /// Initial window. Default 10 packets; 2 packets with `compat = "ns2"`, and under laws for routers.
        initial_window: Packets = Packets(10), in Packets(1)..=WINDOW_MAX;
        /// Initial ssthresh. Default: infinite.
        initial_ssthresh: Option<Packets> = None, in Packets(2)..=WINDOW_MAX;
        /// Slow start. Default: what the law's registry line says, with `compat = "ns2"` classic; "none" for a law
        /// with a start-up of its own.
        slow_start: Text<SlowStartKind> = Text(SlowStartKind::Classic);
        /// An ACK for every second segment instead of every one. Default true; false with `compat = "ns2"`, and
        /// under laws for routers.
        delayed_ack: bool = true;
        /// Selective acknowledgement.
        sack: bool = true;
        /// Explicit congestion notification. Not with VCP, which needs the same bits: neither as law nor on a
        /// link of its route. Default false, true with a law of family ecn, whose marks are echoed segment by
        /// segment (RFC 8257) instead of until the window was reduced (RFC 3168).
        ecn: bool = false;
        /// Pace at 2 cwnd/srtt in slow start and 1.2 cwnd/srtt after, even if the law does not ask for it.
        /// Default false, under laws for routers true.
        pacing: bool = false;
    }
}

/// Largest window that a law can reach.
const WINDOW_MAX: Packets = Packets(lfn_law::MAX_CWND >> 32);

impl Serialize for Tcp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        serialize_keys(&mut map, self)?;
        map.end()
    }
}

/// The keys of a table, each with its value.
pub(crate) fn serialize_keys<M: SerializeMap>(map: &mut M, keys: &dyn Keys) -> Result<(), M::Error> {
    for key in keys.keys() {
        match keys.get(key.name) {
            Said::Nothing => {}
            Said::Text(text) => map.serialize_entry(key.name, &text)?,
            Said::Integer(value) => map.serialize_entry(key.name, &value)?,
            Said::Number(value) => map.serialize_entry(key.name, &value)?,
            Said::Boolean(value) => map.serialize_entry(key.name, &value)?,
        }
    }
    Ok(())
}

impl Flow {
    /// Connections of the group, parallel ones counted each; at most `FLOWS_MAX`.
    pub(crate) fn streams(&self) -> u32 {
        self.count * self.parallel
    }

    /// Payload of a full packet.
    pub(crate) fn payload_bytes(&self, compat: Compat) -> u32 {
        match self.transport {
            Transport::Tcp => compat.payload_bytes(self.packet.0),
            Transport::Udt => self.packet.0 .0 as u32 - UDT_HEADER_BYTES,
        }
    }
}

/// Headers of IP, UDP and UDT in a data packet.
pub(crate) const UDT_HEADER_BYTES: u32 = lfn_udt::IP_UDP_BYTES + lfn_udt::HEADER_BYTES as u32;

/// From node to node; not in a dumbbell, which has a direction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields))]
pub struct Path {
    /// Node where it begins: a name, in a parking lot the number of a router. Default: where `route` begins;
    /// in a parking lot the first router, or, in direction "reverse", the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Name>,
    /// Node where it ends. Default: where `route` ends; in a parking lot the other end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Name>,
    /// Nodes that it passes in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<Name>,
    /// Its links in their order; not with `via`. Default: of the paths of fewest hops the one of least delay,
    /// and of those the one whose links were named first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub route: Vec<String>,
    /// Its links by number; none where there is no traffic.
    #[serde(skip)]
    pub(crate) links: Vec<u16>,
}

/// Which way a flow's data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(JsonSchema))]
pub enum Direction {
    /// Forward.
    Forward,
    /// In the opposite direction.
    Reverse,
}

/// UDP from one place to another.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = [])))]
pub struct Udp {
    /// Its name in random streams and results: letters, digits, `_` and `-`. Default "udp" and its index.
    pub name: Name,
    /// Which way it goes, as for a flow. Default "forward".
    pub direction: Direction,
    /// Where it goes.
    #[serde(flatten)]
    pub path: Path,
    /// IP packet, 64B to 64kB. Default "1500B".
    pub packet: Text<Bytes>,
    /// When it sends how fast.
    #[serde(flatten)]
    pub pattern: Pattern,
}

/// When a UDP source sends how fast, in bits on the wire per second: `bursts`, `steps` or `on_off`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(JsonSchema))]
pub enum Pattern {
    /// Constant rates in order of time, which do not overlap.
    Bursts(Vec<Burst>),
    /// Rates that follow each other without a gap.
    Steps(Steps),
    /// The sum of sources whose bursts and pauses are Pareto distributed.
    OnOff(OnOff),
}

/// A constant rate for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = ["rate"])))]
pub struct Burst {
    /// When it begins. Default: when the one before ends, for the first "0s".
    pub start: Text<Time>,
    /// When it ends. Default: at the end of the run.
    pub stop: Text<Time>,
    /// How fast it is, at most 10Tbit/s.
    pub rate: Text<Rate>,
}

/// Constant rates one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = ["each", "rates"])))]
pub struct Steps {
    /// When the first begins. Default "0s".
    pub start: Text<Time>,
    /// How long each of them lasts.
    pub each: Text<Time>,
    /// How fast they are, at most 10Tbit/s; at least one.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub rates: Vec<Text<Rate>>,
}

/// On/off sources with Pareto bursts and pauses, whose sum is long-range dependent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = ["sources"])))]
pub struct OnOff {
    /// How many, 1 to 1000000.
    #[cfg_attr(test, schemars(range(min = 1, max = 1000000)))]
    pub sources: u32,
    /// How fast one of them is in a burst, 1bit/s to 10Tbit/s. Default "10Mbit/s".
    pub rate: Text<Rate>,
    /// Mean length of a burst. Default "500ms".
    pub burst: Text<Time>,
    /// Mean length of a pause. Default "500ms".
    pub idle: Text<Time>,
    /// Tail index of both, above 1. Default 1.5.
    #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 1)))]
    pub shape: f64,
    /// The longest burst over the shortest, and so the pauses, above 1. Default 10000.
    #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 1)))]
    pub tail_ratio: f64,
}

/// Traffic of others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = [])))]
pub struct Background {
    /// Offered load of short flows: 0, 1, 2 or 3 for nothing, 10 %, 25 % or 40 % of the rate of the slowest
    /// link of its route, and half of that in reverse. Default 0.
    #[cfg_attr(test, schemars(range(max = 3)))]
    pub level: u8,
    /// Long flows in each direction, of at most 20 packets each. Default 10, at level 0 none.
    #[cfg_attr(test, schemars(range(max = 100000)))]
    pub long_flows: u32,
    /// Where the data of its forward direction go; in a dumbbell forward.
    #[serde(flatten)]
    pub path: Path,
    /// Links of the reverse direction, as for a flow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ack_route: Vec<String>,
    /// The links of `ack_route`.
    #[serde(skip)]
    pub(crate) ack_links: Vec<u16>,
}

impl Background {
    /// Whether there is none.
    pub(crate) fn is_silent(&self) -> bool {
        self.level == 0 && self.long_flows == 0
    }
}

/// TCP traffic as a model makes it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = [])))]
pub struct Traffic {
    /// Its name in random streams and results: letters, digits, `_` and `-`. Default "traffic" and its index.
    pub name: Name,
    /// Law of every connection. Default "reno".
    pub law: Text<LawSpec>,
    /// Which way the larger part goes: files, answers, what initiators send. As for a flow.
    pub direction: Direction,
    /// Where that goes.
    #[serde(flatten)]
    pub path: Path,
    /// Links of the opposite way, as for a flow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ack_route: Vec<String>,
    /// The links of `ack_route`.
    #[serde(skip)]
    pub(crate) ack_links: Vec<u16>,
    /// Round-trip time of a connection, or "uniform(LOW, HIGH)", drawn for each; at least the delays of the
    /// links of both routes. Default: those and "uniform(10ms, 200ms)".
    pub rtt: Text<Start>,
    /// Most data outstanding. Default "64KiB".
    pub receive_window: Text<Window>,
    /// Who sends how much, and when.
    #[serde(flatten)]
    pub model: Model,
}

/// A traffic model. Segments hold 1460 bytes, in 10 % of the connections 536.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(JsonSchema))]
pub enum Model {
    /// Poisson arrivals of flows with Pareto sizes (Dukkipati and others 2005).
    ShortFlows(ShortFlows),
    /// Clients that ask servers and wait for their answers.
    Requests(Requests),
    /// Web traffic as a link sees it (Cao and others 2004).
    Packmime(Packmime),
    /// Web sessions as in ns-2.
    Webtraf(Webtraf),
    /// Web users (Barford and Crovella 1998).
    Surge(Surge),
    /// Connections as a file lists them, as tmix replays them (Weigle and others 2006).
    Vectors(Vectors),
    /// The nine pairs of the common TCP evaluation suite.
    Suite(Suite),
}

/// Flows that come whatever the network does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = ["load"])))]
pub struct ShortFlows {
    /// Payload offered per second, 1bit/s to 10Tbit/s.
    pub load: Text<Rate>,
    /// Mean size of a flow, 100B to 1TB. Default "36.5kB", 25 packets.
    pub mean: Text<Bytes>,
    /// Tail index of the sizes, above 1; the largest is 10^4 times the least. Default 1.2.
    #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 1)))]
    pub shape: f64,
}

/// Clients that come at random times, ask, wait for the answer, think, and ask again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = ["load"])))]
pub struct Requests {
    /// Payload of the answers offered per second, 1bit/s to 10Tbit/s. Requests go the opposite way.
    pub load: Text<Rate>,
    /// Size of a request. Default "500B".
    pub request: Size,
    /// Size of an answer. Default { mean = "36.5kB", shape = 1.2 }.
    pub response: Size,
    /// How often a client asks on average, 1 to 10^6; beyond the first time exponentially distributed.
    /// Default 1.
    #[cfg_attr(test, schemars(range(min = 1, max = 1e6)))]
    pub exchanges: f64,
    /// What a server needs before it answers. Default "0s".
    pub server_delay: Text<Time>,
    /// Mean time from an answer to the client's next request, exponentially distributed. Default "1s".
    pub think: Text<Time>,
    /// Whether all exchanges of a client go over one connection. Default true; if not, each message opens
    /// a connection of its own.
    pub persistent: bool,
}

/// Sizes of messages, independent of each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[cfg_attr(test, derive(JsonSchema))]
pub enum Size {
    /// All alike, 1B to 1TB.
    Constant(Text<Bytes>),
    /// Pareto.
    Pareto(ParetoSize),
    /// Lognormal.
    Lognormal(LognormalSize),
}

/// Pareto sizes, of which the largest is 10^4 times the least.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = ["mean"])))]
pub struct ParetoSize {
    /// Their mean, 100B to 1TB.
    pub mean: Text<Bytes>,
    /// Their tail index, above 1. Default 1.2.
    #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 1)))]
    pub shape: f64,
}

/// Lognormal sizes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields))]
pub struct LognormalSize {
    /// Their median, 100B to 1TB.
    pub median: Text<Bytes>,
    /// Standard deviation of their logarithm, above 0, at most 4.
    #[cfg_attr(test, schemars(range(max = 4), extend("exclusiveMinimum" = 0)))]
    pub sigma: f64,
}

/// PackMime-HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = ["connections"])))]
pub struct Packmime {
    /// New connections per second, above 0, at most 10^6.
    #[cfg_attr(test, schemars(range(max = 1e6), extend("exclusiveMinimum" = 0)))]
    pub connections: f64,
    /// Whether requests are sent, and answers wait for them. Default true.
    pub requests: bool,
}

/// ns-2's web sessions of 250 pages, one begun each second on average.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = ["sessions"])))]
pub struct Webtraf {
    /// How many begin, 1 to 10^6.
    #[cfg_attr(test, schemars(range(min = 1, max = 1000000)))]
    pub sessions: u64,
}

/// Users who read pages without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = ["users"])))]
pub struct Surge {
    /// How many, 1 to 10^6.
    #[cfg_attr(test, schemars(range(min = 1, max = 1000000)))]
    pub users: u64,
}

/// A replay of connections.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = ["file"])))]
pub struct Vectors {
    /// A file of connection vectors, or a table of its `path` and `hash`.
    pub file: File<Arc<Trace>>,
    /// Factor on all times of start, above 0: 2 halves the load. Default 1.
    #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
    pub scale: f64,
    /// Connections change places at random within bins of this length. Default: they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shuffle: Option<Text<Time>>,
}

/// Nine pairs of hosts, whose round-trip times take the place of `rtt`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = ["load", "reverse_load", "rtts"])))]
pub struct Suite {
    /// Payload offered per second in `direction`, 1bit/s to 10Tbit/s.
    pub load: Text<Rate>,
    /// And in the opposite one.
    pub reverse_load: Text<Rate>,
    /// Round-trip times of the pairs, which share the load alike; at least one.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub rtts: Vec<Text<Time>>,
}

/// Something changes at a given time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[cfg_attr(test, derive(JsonSchema))]
pub enum Change {
    /// A link, once.
    Link(LinkChange),
    /// A link, as a file says.
    File(FileChange),
    /// The route of flows.
    Route(RouteChange),
}

/// A link changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields))]
pub struct LinkChange {
    /// When, before the end of the run.
    pub at: Text<Time>,
    /// Which link: in a dumbbell "forward" or "reverse".
    pub link: String,
    /// Its new rate: 0bit/s, or 1kbit/s to 10Tbit/s. The packet in service goes on at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Text<Rate>>,
    /// Its new delay, up to 1000s. Packets that leave it from now on overtake others if it is shorter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Text<Time>>,
    /// Its new probability of loss, in place of whatever loss it had.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(range(min = 0), extend("exclusiveMaximum" = 1)))]
    pub loss: Option<f64>,
    /// true: nothing leaves it until it has a rate again; false: it has the last one again. Not with `rate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down: Option<bool>,
    /// Number of the link.
    #[serde(skip)]
    pub(crate) number: u16,
}

/// A link changes as a file says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields))]
pub struct FileChange {
    /// Which link.
    pub link: String,
    /// A file whose first line is `time,rate`, `time,delay` or `time,loss`, and each further line a time and
    /// a value with their units (`1.5s,20Mbit/s`), in order of time; or a table of its `path` and `hash`.
    /// Times after the end of the run do not count.
    pub file: File<Series>,
    /// Number of the link.
    #[serde(skip)]
    pub(crate) number: u16,
}

/// What a file says about a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Series {
    /// Rates.
    Rate(Vec<(Time, Rate)>),
    /// Delays.
    Delay(Vec<(Time, Time)>),
    /// Probabilities of loss.
    Loss(Vec<(Time, f64)>),
}

/// The flows of a group change their route; what is under way stays on the old one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = ["at", "flow"])))]
pub struct RouteChange {
    /// When, before the end of the run.
    pub at: Text<Time>,
    /// Index or name of a group of flows.
    pub flow: FlowId,
    /// The new links of its data. Default: as before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub route: Vec<String>,
    /// The new links of its ACKs. Default: the opposite direction of `route`, as for a flow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ack_route: Vec<String>,
    /// Index of the group.
    #[serde(skip)]
    pub(crate) group: usize,
    /// The links of both routes.
    #[serde(skip)]
    pub(crate) links: [Vec<u16>; 2],
}

/// A group of flows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[cfg_attr(test, derive(JsonSchema))]
pub enum FlowId {
    /// By its index from 0.
    Index(u32),
    /// By its name.
    Name(Name),
}

/// Recording of packets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = [])))]
pub struct Capture {
    /// On these links. Default: on all.
    pub links: Vec<String>,
    /// From this time. Default "0s".
    pub from: Text<Time>,
    /// Until just before this time. Default: the end of the run.
    pub to: Text<Time>,
    /// At most so many packets, 1 to 10^9. Default 1000000.
    #[cfg_attr(test, schemars(range(min = 1, max = 1000000000)))]
    pub max_rows: u64,
    /// Numbers of the links.
    #[serde(skip)]
    pub(crate) numbers: Vec<u16>,
}
