//! Flows, UDP, background traffic and traffic models.

use lfn_keys::{keys, one_of, words, Each, Name, Packets, PerFlow, Spread, Wrong, DELAY_MAX, PACKET_MAX};
use lfn_law::{LawSpec, SlowStartKind};
use lfn_sim::accurate::{AccEcn, ReceiverEcn};
use lfn_sim::breaker::Breaker;
use lfn_sim::config::LinkId;
use lfn_sim::misbehaving::Misbehaviour;
use lfn_sim::traffic::udp::{Burst, OnOff, Steps};
use lfn_sim::traffic::{Direction, Parameters, RATE_MAX};
use lfn_tcp::accecn::Mode;
use lfn_udt::ControlSpec;
use lfn_units::{Bytes, Rate, Time};

use super::Compat;
use crate::quantity::{LawName, SendBuffer, Text, Window};

/// Smallest packet.
const PACKET_MIN: Bytes = Bytes(64);
/// Most flows of a scenario.
pub(crate) const FLOWS_MAX: u32 = 16_000_000;
/// Most streams of a flow.
const PARALLEL_MAX: u32 = 1000;
/// Largest window that a law can reach.
const WINDOW_MAX: Packets = Packets(lfn_law::Window::MAX.floor());
/// Any number of links.
const LINKS: Each<&str> = Each { what: None, range: "write the name of a link" };

/// Transport protocol of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP, as `compat` says.
    Tcp,
    /// UDT 4: 44 bytes of headers in a data packet.
    Udt,
    /// That of a whole stack, which stands where the law does.
    Stack,
}

words! { Transport { Tcp = "tcp", Udt = "udt", Stack = "stack", } }

keys! {
    /// Flows that differ in nothing but their drawn and listed values. `rtt`, `start`, `stop`, `size` and the rate of
    /// `application` may be "uniform(LOW, HIGH)" or "log-uniform(LOW, HIGH)", which draws for each flow by its number, or
    /// a list, repeated in order.
    pub struct Flow {
        /// How a schedule calls the group: letters, digits, `_` and `-`. Default: its index.
        name: Option<Name> = None;
        /// Congestion-control law, NAME or NAME:VARIANT; of those with parameters also NAME:PARAMETER=VALUE. Or
        /// FILE.py:CLASS for one in Python. Over UDT also its own, "udt" or "udt:VARIANT", which is the default there.
        /// Or a whole stack, such as "quinn-whole:cubic".
        law: LawName = LawName::default();
        /// Transport protocol: TCP as `compat` says, UDT 4, or that of a whole stack. Default "tcp"; under UDT's own law
        /// "udt", with a stack as `law` "stack".
        transport: Option<Transport> = None;
        /// How many such flows.
        count: u32 = 1, in 1..=FLOWS_MAX;
        /// Streams of each flow: parallel connections with the law each, which start together, share `size` equally,
        /// and are reported in sum as one flow.
        parallel: u32 = 1, in 1..=PARALLEL_MAX;
        /// Round-trip time without queueing and serialisation. The flow's access links add the part above the delays of
        /// the links of both routes. Default: the links' delays; required if these are 0.
        rtt: PerFlow<Time> = PerFlow::One(Spread::At(Time::ZERO)), in Time::from_ns(1)..=DELAY_MAX;
        /// When it begins.
        start: PerFlow<Time> = PerFlow::One(Spread::At(Time::ZERO));
        /// When its application stops: nothing new is sent, and what was lost still is. Default: at the end of the run.
        stop: Option<PerFlow<Time>> = None;
        /// Payload to deliver, after which the flow ends. Default: no end.
        size: Option<PerFlow<Bytes>> = None, in Bytes(1)..=Bytes(1_000_000_000_000_000_000);
        /// Direction of its data. In a dumbbell it selects the link, in a parking lot "forward" leads to higher
        /// numbers of routers. In other networks it is only a word in results. Default "forward", in a parking lot
        /// the direction from `from` to `to`.
        direction: Direction = Direction::Forward;
        /// Where its data go.
        path: Path = Path::default();
        /// Links of its ACKs, in their order. Default: the opposite directions of the data's links. If one of these
        /// does not exist: the path with the fewest hops.
        ack_route: Vec<String> = Vec::new(), in LINKS;
        /// IP packet (MTU), over UDT at least 76B.
        packet: Bytes = Bytes(1500), in PACKET_MIN..=PACKET_MAX;
        /// Largest amount of unacknowledged data, in packets or bytes. Over UDT it is the flow window, 32 packets
        /// to 2^29. Default: no limit; over UDT that of `send_buffer`, 4 × (BDP + buffers).
        receive_window: Option<Window> = None;
        /// Circuit breakers on its path; the first that trips ends it, with all its streams. Default: none.
        breakers: Vec<Breaker> = Vec::new();
        /// Keys that only TCP has.
        tcp: Option<Tcp> = Some(Tcp::default());
    }
    set {
        /// The congestion control.
        control: ControlSpec = ControlSpec::default();
        /// The links of `ack_route`.
        ack_links: Vec<LinkId> = Vec::new();
    }
}

keys! {
    /// How the ends of a TCP connection work; of these a stack has `ecn` alone, UDT none.
    pub struct Tcp, part of another table {
        /// Largest amount of unacknowledged data that the sending host keeps, in packets or bytes of payload.
        /// "linux" is the buffer of an untuned host, which grows with the window up to 4 MiB of the kernel's
        /// memory, and whose application waits until a third of it is free; "linux 64MB" has that maximum, the third
        /// number of `tcp_wmem`, and "linux 1MB 64MB" the second number, too. Default: 4 × (BDP + buffers) of the
        /// route, at least 64MB, as on a tuned host.
        send_buffer: Option<SendBuffer> = None;
        /// Initial window. Default 10 packets; 2 packets with `compat = "ns2"`, and under laws for routers. With
        /// `compat = "linux"` the first flight is at most 65,535 bytes, the window of a SYN-ACK.
        initial_window: Packets = Packets(10), in Packets(1)..=WINDOW_MAX;
        /// Initial ssthresh. Default: infinite.
        initial_ssthresh: Option<Packets> = None, in Packets(2)..=WINDOW_MAX;
        /// Slow start. Default: what the law's registry line says, with `compat = "ns2"` classic; "none" for a law
        /// with a start-up of its own.
        slow_start: Text<SlowStartKind> = Text(SlowStartKind::Classic);
        /// Window that an earlier connection on this path had (saved_cwnd of RFC 9959); with `slow_start =
        /// "careful-resume"`, which needs it.
        saved_window: Option<Packets> = None, in Packets(2)..=WINDOW_MAX;
        /// Smallest RTT that it measured (saved_rtt); with `slow_start = "careful-resume"`, which needs it.
        saved_rtt: Option<Time> = None, in Time::from_us(1)..=DELAY_MAX;
        /// An ACK for every second segment instead of every one. Default true; false with `compat = "ns2"`, and
        /// under laws for routers.
        delayed_ack: bool = true;
        /// Selective acknowledgement.
        sack: bool = true;
        /// Explicit congestion notification. A flow with ECN cannot use the law VCP or a link with a VCP router,
        /// because both need the same two bits. The receiver repeats a mark until the sender has reduced its window
        /// (RFC 3168); with a law of family ecn it marks the ACK of each marked segment (RFC 8257). Default false,
        /// with a law of family ecn true.
        ecn: bool = false;
        /// AccECN (RFC 9768): the receiver counts marks in place of the echo. "counter" tells the count modulo 8 in each
        /// ACK, "option" also payload by ECN field, in 8 bytes of each ACK, through which the sender finds a path that
        /// erases marks. Both ends ask for it in the handshake. Needs `ecn`; not with `misbehaves`, nor under laws for
        /// routers. Default "off", with the law prague "option".
        accecn: AccEcn = AccEcn::Off;
        /// The most that the receiver's host does about ECN: "off" nothing, "classic" RFC 3168, "accecn" AccECN beside that. Both
        /// ends agree on the lesser of this and what the sender asks for by `ecn` and `accecn` (RFC 9768, table 2), and the
        /// receiver repeats a mark until the sender has reduced its window. With "classic" a flow with `l4s`, and any under the law
        /// prague, sends without ECN. Needs `ecn`; not under laws for routers. Default: what the sender asks for.
        receiver_ecn: Option<ReceiverEcn> = None;
        /// Data packets are ECT(1), not ECT(0): queues give them L4S treatment (RFC 9331). Needs `ecn`, and a law that
        /// answers the extent of marks; others would take more than their share. Default: false,
        /// with the law prague true.
        l4s: bool = false;
        /// Payload that leaves at once, as from a host with segmentation offload: a window that opens by less waits,
        /// but never for more than a third of it. Not with pacing. Default: each segment leaves when it may.
        burst: Option<Bytes> = None, in Bytes(1)..=Bytes(1_000_000);
        /// An application that writes slowly, or with pauses; with `compat = "linux"` its sender validates the window as
        /// Linux does. Default: there is always more to send.
        application: Option<Application> = None;
        /// How its receiver breaks the rules: "splits-acks" sends each ACK of new data in eight parts, "optimistic"
        /// acknowledges eight segments that have not arrived and hides those that are lost, "hides-marks" does not echo
        /// marks. Default: it keeps them.
        misbehaves: Option<Misbehaviour> = None;
        /// Pace at 2 cwnd/srtt in slow start and 1.2 cwnd/srtt after, even if the law does not ask for it.
        /// Default false, under laws for routers and with Careful Resume true.
        pacing: bool = false;
    }
}

keys! {
    /// Writes of the application of a flow: a segment at a time, evenly.
    pub struct Application {
        /// Payload that it writes, in each of parallel streams, while it is active.
        rate: PerFlow<Rate> = PerFlow::One(Spread::At(Rate(0))), in Rate(1_000)..=RATE_MAX, like "rate = \"5Mbit/s\"";
        /// How long it is active before it pauses; with `off`. Default: always.
        on: Option<Time> = None, in Time::from_us(1)..=DELAY_MAX;
        /// How long it pauses; with `on`.
        off: Option<Time> = None, in Time::from_us(1)..=DELAY_MAX;
        /// How long after it is written a segment is of use, such as two RTTs: results count those that the receiver has
        /// in order by then. Default: always.
        deadline: Option<Time> = None, in Time::from_us(1)..=DELAY_MAX;
    }
    settle Application::check;
}

impl Application {
    fn check(&mut self, _: &dyn Fn(&str) -> bool) -> Result<(), Wrong> {
        match (self.on, self.off) {
            (Some(_), None) => Err(Wrong::missing("off = \"1s\"").of("off")),
            (None, Some(_)) => Err(Wrong::missing("on = \"1s\"").of("on")),
            _ => Ok(()),
        }
    }
}

impl Tcp {
    /// The ECN that both ends can do.
    pub(crate) fn ecn_of_both(&self) -> Mode {
        let asks = match (self.ecn, self.accecn.is_on()) {
            (false, _) => Mode::Not,
            (true, false) => Mode::Classic,
            (true, true) => Mode::Accurate,
        };
        self.receiver_ecn.map_or(asks, |able| asks.min(able.mode()))
    }
}

impl Flow {
    /// Its transport protocol.
    pub fn transport(&self) -> Transport {
        self.transport.unwrap_or(Transport::Tcp)
    }

    /// Connections of the group, parallel ones counted each; at most `FLOWS_MAX`.
    pub(crate) fn streams(&self) -> u32 {
        self.count * self.parallel
    }

    /// Payload of a full packet.
    pub(crate) fn payload_bytes(&self, compat: Compat) -> u32 {
        match self.transport() {
            Transport::Tcp => compat.payload_bytes(self.packet),
            Transport::Udt => self.packet.0 as u32 - UDT_HEADER_BYTES,
            Transport::Stack => self.packet.0 as u32 - lfn_udt::IP_UDP_BYTES,
        }
    }
}

/// Headers of IP, UDP and UDT in a data packet.
const UDT_HEADER_BYTES: u32 = lfn_udt::IP_UDP_BYTES + lfn_udt::HEADER_BYTES as u32;

keys! {
    /// From node to node; not in a dumbbell, which has a direction.
    pub struct Path, part of another table {
        /// Node where it begins: a name, in a parking lot the number of a router. Default: where `route` begins; in a
        /// parking lot the first router, or, in direction "reverse", the last.
        from: Option<Name> = None;
        /// Node where it ends. Default: where `route` ends; in a parking lot the other end.
        to: Option<Name> = None;
        /// Nodes that it passes in this order.
        via: Vec<Name> = Vec::new();
        /// Its links in their order; not with `via`. Default: the path with the fewest hops. If several have as
        /// few: the one with the least delay, then the one whose links stand first in the scenario.
        route: Vec<String> = Vec::new(), in LINKS;
    }
    set {
        /// Its links by number; none where there is no traffic.
        links: Vec<LinkId> = Vec::new();
    }
}

keys! {
    /// UDP from one place to another.
    pub struct Udp {
        /// Its name in random streams and results: letters, digits, `_` and `-`. Default "udp" and its index.
        name: Name = Name::default();
        /// Which way it goes, as for a flow. Default "forward".
        direction: Direction = Direction::Forward;
        /// Where it goes.
        path: Path = Path::default();
        /// IP packet.
        packet: Bytes = Bytes(1500), in PACKET_MIN..=PACKET_MAX;
        /// When it sends how fast.
        pattern: Pattern = Pattern::default();
        /// How long after it is sent a packet is of use, as a frame of a stream that no one repairs: results count those
        /// that arrive by then. Default: always.
        deadline: Option<Time> = None, in Time::from_us(1)..=DELAY_MAX;
        /// Circuit breakers on its path; the first that trips ends it. Default: none.
        breakers: Vec<Breaker> = Vec::new();
    }
}

one_of! {
    /// When a UDP source sends how fast, in bits on the wire per second.
    pub enum Pattern, like "bursts = [{start = \"10s\", stop = \"12s\", rate = \"5Gbit/s\"}]" {
        /// Constant rates in order of time, which do not overlap.
        Bursts = "bursts": Vec<Burst>, in Each { what: Some("burst"), range: () };
        /// Rates that follow each other without a gap.
        Steps = "steps": Steps;
        /// The sum of sources whose bursts and pauses are Pareto distributed.
        OnOff = "on_off": OnOff;
    }
}

keys! {
    /// Traffic beside the flows under test. Short flows of five applications, and long flows with a small window.
    pub struct Background {
        /// Offered load of short flows: 0, 1, 2 or 3 for nothing, 10 %, 25 % or 40 % of the rate of the slowest link of
        /// its route, and half of that in reverse. The long flows come on top, ten of them up to 24 Mbit/s each
        /// way: at level 1 on a link below 230 Mbit/s more than the short ones.
        level: u32 = 0, in 0..=3;
        /// Long flows in each direction, of at most 20 packets and an RTT of 100 ms each: up to 2.4 Mbit/s. They do
        /// not scale with the rate. Default 10, at level 0 none.
        long_flows: u32 = 0, in 0..=100_000;
        /// Where the data of its forward direction go; in a dumbbell forward.
        path: Path = Path::default();
        /// Links of the reverse direction, as for a flow.
        ack_route: Vec<String> = Vec::new(), in LINKS;
    }
    set {
        /// The links of `ack_route`.
        ack_links: Vec<LinkId> = Vec::new();
    }
}

impl Background {
    /// Whether there is none.
    pub(crate) fn is_silent(&self) -> bool {
        self.level == 0 && self.long_flows == 0
    }
}

keys! {
    /// TCP traffic as a model makes it.
    pub struct Traffic {
        /// Its name in random streams and results: letters, digits, `_` and `-`. Default "traffic" and its index.
        name: Name = Name::default();
        /// Law of every connection.
        law: LawName = LawName("reno".into());
        /// Direction of the larger part of the data: files, answers, or the data of the host that opens a
        /// connection. Words as for a flow.
        direction: Direction = Direction::Forward;
        /// Where that goes.
        path: Path = Path::default();
        /// Links of the opposite way, as for a flow.
        ack_route: Vec<String> = Vec::new(), in LINKS;
        /// Round-trip time of a connection, or its distribution as for flows, drawn for each; at least the delays of the links
        /// of both routes. Default: those and "uniform(10ms, 200ms)".
        rtt: Spread<Time> = Spread::Uniform(Time::from_ms(10), Time::from_ms(200));
        /// Largest amount of unacknowledged data.
        receive_window: Window = Window::Bytes(Bytes(65_536));
        /// The model, with its keys.
        model: Parameters = Parameters::default();
    }
    set {
        /// The law.
        spec: LawSpec = reno();
        /// The links of `ack_route`.
        ack_links: Vec<LinkId> = Vec::new();
    }
}

fn reno() -> LawSpec {
    "reno".parse().expect("the registry has reno")
}
