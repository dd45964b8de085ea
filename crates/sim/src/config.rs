//! Configuration of a simulation: plain values, already validated and resolved.
//!
//! `lfn_scenario` makes these from TOML; nothing here parses, and nothing here has a default that
//! depends on another field.

use lfn_law::LawSpec;
use lfn_path::{AckImpair, AqmConfig, DropTail, Ecn, Policer, RouterConfig, Service};
pub use lfn_path::{BurstLoss, Impair, Loss};
use lfn_tcp::accecn::Mode;
use lfn_tcp::{ReceiverConfig, SenderConfig};
use lfn_udt::{ControlSpec, HEADER_BYTES, IP_UDP_BYTES, SYN};
use lfn_units::{Rate, Time};

use crate::accurate::{AccEcn, ReceiverEcn};
use crate::application::Application;
use crate::background::Config as Traffic;
pub use crate::background::Direction;
use crate::breaker::Breaker;
pub use crate::clock::ids::{LinkId, RouteId};
use crate::misbehaving::Misbehaviour;
use crate::traffic::udp;
use crate::traffic::Model;

/// Links, the routes over them, and what travels there.
#[derive(Clone, Debug)]
pub struct Config {
    /// Seed of every named random stream.
    pub seed: u64,
    /// Simulated time.
    pub duration: Time,
    /// Start of the summary statistics.
    pub warmup: Time,
    /// Grid of the sampled tables; `None` for no samples.
    pub sample: Option<Time>,
    /// Directed links; flows name them by their place here.
    pub links: Vec<LinkConfig>,
    /// Links in the order in which a packet meets them, at least one; flows name routes by their place
    /// here.
    pub routes: Vec<Vec<LinkId>>,
    /// Long-lived or sized flows over TCP that are reported one by one.
    pub flows: Vec<FlowConfig>,
    /// Flows over UDT, reported among them.
    pub udt: Vec<UdtConfig>,
    /// Connections of whole stacks, reported among them.
    pub stacks: Vec<StackConfig>,
    /// UDP, reported in sum for each source.
    pub udp: Vec<UdpConfig>,
    /// Background traffic, reported in sum.
    pub background: Option<Background>,
    /// Models of TCP traffic, each reported in sum.
    pub traffic: Vec<TrafficConfig>,
    /// Circuit breakers.
    pub breakers: Vec<BreakerConfig>,
    /// Changes during the run, in order of time. All changes of one instant are made in this order, before any other
    /// event of that instant.
    pub changes: Vec<Change>,
    /// Which packets to record; `None` for none.
    pub capture: Option<Capture>,
}

impl Config {
    /// `flows` over a link that is the same in both directions, with seed 1, without warm-up and samples.
    pub fn dumbbell(link: LinkConfig, flows: Vec<FlowConfig>, duration: Time) -> Config {
        let on_dumbbell = |flow: FlowConfig| {
            let route = flow.direction as u16;
            FlowConfig { route: RouteId(route), ack_route: RouteId(1 - route), ..flow }
        };
        Config {
            seed: 1,
            duration,
            warmup: Time::ZERO,
            sample: None,
            links: vec![
                LinkConfig { name: "forward".into(), ..link.clone() },
                LinkConfig { name: "reverse".into(), ..link },
            ],
            routes: Config::dumbbell_routes(),
            flows: flows.into_iter().map(on_dumbbell).collect(),
            udt: Vec::new(),
            stacks: Vec::new(),
            udp: Vec::new(),
            background: None,
            traffic: Vec::new(),
            breakers: Vec::new(),
            changes: Vec::new(),
            capture: None,
        }
    }

    /// The routes of a dumbbell, whose links are forward (0) and reverse (1).
    pub fn dumbbell_routes() -> Vec<Vec<LinkId>> {
        vec![vec![LinkId(0)], vec![LinkId(1)]]
    }
}

/// UDP from one end of a route to the other.
#[derive(Clone, Debug)]
pub struct UdpConfig {
    /// Its name in random streams and reports.
    pub name: String,
    /// When it sends what.
    pub traffic: udp::Config,
    /// How long after it is sent a packet is of use; always, if there is none.
    pub deadline: Option<Time>,
    /// Route of its packets.
    pub route: RouteId,
}

/// A circuit breaker and its place.
#[derive(Clone, Copy, Debug)]
pub struct BreakerConfig {
    /// When it ends that.
    pub breaker: Breaker,
    /// The flow or source that it watches.
    pub watched: Watched,
}

/// A flow or source that a circuit breaker watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// A flow that is reported, with all its streams: its place among the transfers.
    Flow(u32),
    /// A source of UDP: its place in [`Config::udp`].
    Udp(usize),
}

/// Something changes at a given time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// When.
    pub at: Time,
    /// What.
    pub what: Changed,
}

/// A changed quantity. A link that changes computes its departures one by one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Changed {
    /// Rate of a link, 0 for none at all: the packet in service goes on with what remains of it.
    Rate(LinkId, Rate),
    /// Propagation delay of a link, for the packets that leave it from now on; where it becomes shorter,
    /// they overtake those under way.
    Delay(LinkId, Time),
    /// Bernoulli loss behind a link, in place of whatever loss it had.
    Loss(LinkId, f64),
    /// Routes of a flow's data and of its ACKs; what is under way stays on the old ones.
    Route {
        /// Number of the connection, over any transport.
        flow: u32,
        /// Its new route.
        route: RouteId,
        /// The new route of its ACKs.
        ack_route: RouteId,
    },
}

/// Recording of packets.
#[derive(Clone, Debug)]
pub struct Capture {
    /// On these links.
    pub links: Vec<LinkId>,
    /// From this time.
    pub from: Time,
    /// Until just before this time.
    pub to: Time,
    /// At most so many rows; the summary says how many there would have been.
    pub max_rows: u64,
}

/// Background traffic and the TCP that carries it.
#[derive(Clone, Debug)]
pub struct Background {
    /// The traffic model.
    pub traffic: Traffic,
    /// The TCP of every flow.
    pub carrier: Carrier,
}

/// A model of TCP traffic, and the TCP that carries it.
#[derive(Clone, Debug)]
pub struct TrafficConfig {
    /// Its name in random streams and reports.
    pub name: String,
    /// The model, with its parameters.
    pub model: Model,
    /// The TCP of every connection.
    pub carrier: Carrier,
}

/// The TCP that carries the connections of a traffic source.
#[derive(Clone, Debug)]
pub struct Carrier {
    /// Law of every connection.
    pub law: LawSpec,
    /// Sender of every connection; window cap and packet size are set per connection.
    pub sender: SenderConfig,
    /// Receiver of every connection.
    pub receiver: ReceiverConfig,
    /// Most payload outstanding of a connection, in bytes.
    pub receive_window_bytes: u64,
    /// Bytes of an ACK at the queue. A data packet has as many besides its payload.
    pub ack_bytes: u32,
    /// Routes of data: forward, reverse. The ACKs of one travel on the other.
    pub routes: [RouteId; 2],
}

/// A directed link: a queue, a server, and what happens behind it.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// Its name in random streams and reports.
    pub name: String,
    /// How fast packets are serialised.
    pub service: Service,
    /// Packets leave it without ECN: neither capable nor marked.
    pub bleach: bool,
    /// A token bucket ahead of the queue.
    pub policer: Option<Policer>,
    /// The queue discipline.
    pub queue: AqmConfig,
    /// Most packets that may wait, besides the one in service.
    pub limit_packets: u64,
    /// Most bytes that may wait, besides the packet in service.
    pub limit_bytes: u64,
    /// From the last bit at this end to the last bit at the other.
    pub delay: Time,
    /// Loss, duplication, reordering and jitter of data packets behind the queue.
    pub impair: Impair,
    /// Loss, reordering, jitter and aggregation of packets without payload behind the queue.
    pub acks: Option<AckImpair>,
    /// How it tells its load to the senders of data; not at all by default.
    pub router: Option<RouterConfig>,
    /// Departures are computed one by one also where a closed form would do; the results are the same.
    pub event_mode: bool,
}

impl LinkConfig {
    /// Drop-tail, without delay, loss or a limit in bytes.
    pub fn drop_tail(name: impl Into<String>, rate: Rate, limit_packets: u64) -> LinkConfig {
        LinkConfig {
            name: name.into(),
            service: Service::Rate(rate),
            bleach: false,
            policer: None,
            queue: AqmConfig::DropTail(DropTail {}),
            limit_packets,
            limit_bytes: u64::MAX,
            delay: Time::ZERO,
            impair: Impair::default(),
            acks: None,
            router: None,
            event_mode: false,
        }
    }
}

/// One flow.
#[derive(Clone, Debug)]
pub struct FlowConfig {
    /// Its number among the parallel streams of a transfer; 0 begins one. They start together, and are
    /// reported in sum as one flow, numbered by its place among the transfers.
    pub stream: u32,
    /// Congestion-control law.
    pub law: LawSpec,
    /// Direction of its data, for reports.
    pub direction: Direction,
    /// Route of its data.
    pub route: RouteId,
    /// Route of its ACKs.
    pub ack_route: RouteId,
    /// Round-trip time of an empty network, without serialisation: the delays of the links of both
    /// routes, and for the rest links of its own at both ends.
    pub rtt: Time,
    /// When it starts to send.
    pub start: Time,
    /// When it stops sending; [`Time::NEVER`] for the end of the run.
    pub stop: Time,
    /// Segments to deliver; `u64::MAX` for no end.
    pub size_segments: u64,
    /// Payload bytes of a segment.
    pub payload_bytes: u32,
    /// Bytes of a data packet at the queue.
    pub wire_bytes: u32,
    /// Bytes of an ACK at the queue.
    pub ack_bytes: u32,
    /// Seed of the connection for laws with random decisions; the start time is mixed with it.
    pub law_seed: u32,
    /// Sender.
    pub sender: SenderConfig,
    /// Data packets are ECT(1), for L4S treatment (RFC 9331 §4.1), where [`SenderConfig::ecn`] makes them ECN-capable.
    pub l4s: bool,
    /// Whether the sender asks for AccECN; [`SenderConfig::accurate_ecn`] says whether the receiver has it, too.
    pub accecn: AccEcn,
    /// The most that the receiver does about ECN, where the sender need not ask for just that. Sender and receiver are set up
    /// for what both can do.
    pub receiver_ecn: Option<ReceiverEcn>,
    /// Receiver.
    pub receiver: ReceiverConfig,
    /// When the application writes; it always has more by default.
    pub application: Option<Application>,
    /// How the receiver breaks the rules.
    pub misbehaves: Option<Misbehaviour>,
}

impl FlowConfig {
    /// The ECN field of its data, sent for the first time or again.
    pub fn ecn_field(&self, again: bool) -> Ecn {
        match self.sender.ecn && (!again || self.sender.ecn_repairs) {
            false => Ecn::NotEct,
            true if self.l4s => Ecn::Ect1,
            true => Ecn::Ect0,
        }
    }

    /// The ECN field of its SYN, SYN-ACK and ACKs.
    pub fn ecn_of_control(&self) -> Ecn {
        if self.sender.ecn_control {
            self.ecn_field(false)
        } else {
            Ecn::NotEct
        }
    }

    /// Both ends of the handshake: the ECN that the sender asks for, and the most that the receiver does. `None` where packets
    /// need not tell it in the simulator: no ECN, or Classic ECN at both ends.
    pub fn negotiates(&self) -> Option<[Mode; 2]> {
        let asks = if self.accecn.is_on() { Mode::Accurate } else { Mode::Classic };
        let told = self.accecn.is_on() || self.receiver_ecn.is_some();
        told.then(|| [asks, self.receiver_ecn.map_or(asks, ReceiverEcn::mode)])
    }

    /// An endless flow as today's Linux sends it over Ethernet, in packets of 1500 bytes, forward on a dumbbell.
    pub fn linux(law: LawSpec, rtt: Time) -> FlowConfig {
        let payload_bytes = 1448;
        FlowConfig {
            stream: 0,
            direction: Direction::Forward,
            route: RouteId(0),
            ack_route: RouteId(1),
            rtt,
            start: Time::ZERO,
            stop: Time::NEVER,
            size_segments: u64::MAX,
            payload_bytes,
            wire_bytes: 1514,
            ack_bytes: 66,
            law_seed: 0,
            sender: SenderConfig::linux(payload_bytes, law.slow_start()),
            receiver: ReceiverConfig::linux(rtt, payload_bytes),
            l4s: false,
            accecn: AccEcn::Off,
            receiver_ecn: None,
            application: None,
            misbehaves: None,
            law,
        }
    }
}

/// One flow over UDT.
#[derive(Clone, Debug)]
pub struct UdtConfig {
    /// Its place among all connections that are reported. Those over TCP have the places that are left, in
    /// their order.
    pub number: u32,
    /// Its number among the parallel streams of a transfer, as for TCP.
    pub stream: u32,
    /// The congestion control.
    pub control: ControlSpec,
    /// Direction of its data, for reports.
    pub direction: Direction,
    /// Route of its data, and of the sender's control packets.
    pub route: RouteId,
    /// Route of the receiver's control packets.
    pub ack_route: RouteId,
    /// Round-trip time of an empty network, without serialisation, as for TCP.
    pub rtt: Time,
    /// When it asks for a connection.
    pub start: Time,
    /// When it stops sending; [`Time::NEVER`] for the end of the run.
    pub stop: Time,
    /// Packets to deliver; `u64::MAX` for no end.
    pub size_packets: u64,
    /// Largest packet, with the headers of IP and UDP.
    pub mss_bytes: u32,
    /// Bytes on the wire beyond the IP packet.
    pub framing_bytes: u32,
    /// Packets that may be in flight: the receiver's buffer and flow window.
    pub window_packets: u32,
    /// Seed of the numbers that both ends draw.
    pub seed: u64,
}

impl UdtConfig {
    /// Payload bytes of a data packet, all of which are full.
    pub fn payload_bytes(&self) -> u32 {
        self.mss_bytes - IP_UDP_BYTES - HEADER_BYTES as u32
    }

    /// Bytes of a data packet at a queue.
    pub fn wire_bytes(&self) -> u32 {
        self.mss_bytes + self.framing_bytes
    }

    /// Most bits a second that the receiver sends when data come at `data_bps`: a full ACK each 10 ms, and a
    /// light one each 64 packets.
    pub(crate) fn acks_bps(&self, data_bps: f64) -> f64 {
        let bits = |body_bytes: usize| {
            f64::from(self.framing_bytes + IP_UDP_BYTES) * 8.0 + (HEADER_BYTES + body_bytes) as f64 * 8.0
        };
        bits(24) / SYN.as_s() + data_bps / (64.0 * 8.0 * f64::from(self.wire_bytes())) * bits(4)
    }
}

/// A connection of a whole stack.
#[derive(Clone, Debug)]
pub struct StackConfig {
    /// Its place among all connections that are reported, as for UDT.
    pub number: u32,
    /// Its number among the parallel streams of a transfer, as for TCP.
    pub stream: u32,
    /// The stack: a prototype that builds one.
    pub law: LawSpec,
    /// Direction of its data, for reports.
    pub direction: Direction,
    /// Route of the datagrams of the end that sends data.
    pub route: RouteId,
    /// Route of those of the other end.
    pub ack_route: RouteId,
    /// Round-trip time of an empty network, without serialisation, as for TCP.
    pub rtt: Time,
    /// When it asks for a connection.
    pub start: Time,
    /// When its application stops; [`Time::NEVER`] for the end of the run.
    pub stop: Time,
    /// Data to deliver; `u64::MAX` for no end.
    pub size_bytes: u64,
    /// Largest IP packet.
    pub packet_bytes: u32,
    /// Bytes on the wire beyond the IP packet.
    pub framing_bytes: u32,
    /// Seed of its random decisions.
    pub seed: u64,
}

impl StackConfig {
    /// Bytes of its largest packet at a queue.
    pub fn wire_bytes(&self) -> u32 {
        self.packet_bytes + self.framing_bytes
    }
}

/// A connection that is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connection {
    /// Its place in [`Config::flows`].
    Tcp(usize),
    /// Its place in [`Config::udt`].
    Udt(usize),
    /// Its place in [`Config::stacks`].
    Stack(usize),
}

impl Config {
    /// All connections that are reported, by number; `None` if the numbers of those over UDT and of stacks are not
    /// their places.
    pub(crate) fn connections(&self) -> Option<Vec<Connection>> {
        let mut connections = vec![None; self.flows.len() + self.udt.len() + self.stacks.len()];
        let udt = self.udt.iter().map(|flow| flow.number).zip((0..).map(Connection::Udt));
        let stacks = self.stacks.iter().map(|flow| flow.number).zip((0..).map(Connection::Stack));
        for (number, connection) in udt.chain(stacks) {
            let slot = connections.get_mut(number as usize)?;
            if slot.replace(connection).is_some() {
                return None;
            }
        }
        let mut tcp = (0..).map(Connection::Tcp);
        connections.into_iter().map(|slot| slot.or_else(|| tcp.next())).collect()
    }

    /// Routes of data and of ACKs of a connection.
    pub(crate) fn routes_of(&self, connection: Connection) -> (RouteId, RouteId) {
        match connection {
            Connection::Tcp(place) => (self.flows[place].route, self.flows[place].ack_route),
            Connection::Udt(place) => (self.udt[place].route, self.udt[place].ack_route),
            Connection::Stack(place) => (self.stacks[place].route, self.stacks[place].ack_route),
        }
    }
}
