//! From a [`Scenario`] to the simulation's configuration.

use std::collections::BTreeMap;

use lfn_keys::{PerFlow, Spread};
use lfn_law::{LawSpec, Saved, SlowStartKind};
use lfn_path::{AckImpair, Loss, Service};
use lfn_sim::accurate::AccEcn;
use lfn_sim::application::Application as SimApplication;
use lfn_sim::background::{Config as BackgroundConfig, INITIAL_WINDOW_SEGMENTS, RECEIVE_WINDOW_BYTES};
use lfn_sim::config::{
    Background as SimBackground, BreakerConfig, Capture as SimCapture, Carrier, Change as SimChange, Changed,
    Config, FlowConfig, LinkConfig, LinkId, RouteId, StackConfig, TrafficConfig, UdpConfig, UdtConfig,
    Watched,
};
use lfn_sim::rng::{Distribution, Streams};
use lfn_sim::traffic::{udp, Direction, Model, PathConfig};
use lfn_tcp::accecn::Mode as EcnMode;
use lfn_tcp::{ReceiverConfig, SendBuffer, SenderConfig};
use lfn_units::{Bytes, Rate, Time};

use crate::model::{
    Change, Compat, Flow, Mode, OneWay, Pattern, Scenario, Series, Tcp, Topology, Traffic, Transport, Udp,
};
use crate::network::{Hop, Network};
use crate::quantity::{BufferSize, Sample, SendBuffer as BufferText, Window};

/// Largest flow window: packet numbers of UDT are found again over 2^30.
pub(crate) const UDT_WINDOW_MAX: u64 = 1 << 29;
/// IP packet of a full background segment.
const BACKGROUND_PACKET: Bytes = Bytes(1500);
/// RTT that background receivers assume: the middle of the range of background RTTs.
const BACKGROUND_RTT: Time = Time::from_ms(100);

impl Compat {
    /// Bytes of headers in an IP packet: 20 of IPv4 and 32 of TCP with timestamps, or 40 as in ns-2.
    pub(crate) fn header_bytes(self) -> u32 {
        match self {
            Compat::Linux => 52,
            Compat::Ns2 => 40,
        }
    }

    /// Bytes on the wire beyond the IP packet: an Ethernet header, or nothing as in ns-2.
    pub(crate) fn framing_bytes(self) -> u32 {
        match self {
            Compat::Linux => 14,
            Compat::Ns2 => 0,
        }
    }

    /// Payload of an IP packet.
    pub(crate) fn payload_bytes(self, packet: Bytes) -> u32 {
        u32::try_from(packet.0).unwrap_or(u32::MAX).saturating_sub(self.header_bytes()).max(1)
    }

    /// An IP packet on the wire.
    pub(crate) fn wire_bytes(self, packet: Bytes) -> u32 {
        u32::try_from(packet.0).unwrap_or(u32::MAX).saturating_add(self.framing_bytes())
    }

    fn sender(self, mss_bytes: u32, slow_start: SlowStartKind) -> SenderConfig {
        match self {
            Compat::Linux => SenderConfig::linux(mss_bytes, slow_start),
            Compat::Ns2 => SenderConfig { slow_start, ..SenderConfig::ns2(mss_bytes) },
        }
    }

    fn receiver(self, rtt: Time, mss_bytes: u32) -> ReceiverConfig {
        match self {
            Compat::Linux => ReceiverConfig::linux(rtt, mss_bytes),
            Compat::Ns2 => ReceiverConfig::ns2(rtt),
        }
    }
}

/// RTTs and packet sizes from which buffers are sized.
pub(crate) struct Sizing {
    /// Largest base RTT that the flows may have whose data or ACKs pass each link, and of all flows.
    rtts: Vec<Option<Time>>,
    largest_rtt: Option<Time>,
    /// Largest packet on the wire.
    pub(crate) wire_bytes: u32,
    compat: Compat,
}

impl Sizing {
    pub(crate) fn new(network: &Network, flows: &[Flow], udp: &[Udp], compat: Compat) -> Sizing {
        let mut rtts = vec![None; network.hops.len()];
        for flow in flows {
            for &link in flow.path.links.iter().chain(&flow.ack_links) {
                let rtt: &mut Option<Time> = &mut rtts[link.index()];
                *rtt = (*rtt).max(Some(flow.rtt.most(flow.count)));
            }
        }
        let packets = flows.iter().map(|flow| flow.packet).chain(udp.iter().map(|udp| udp.packet));
        Sizing {
            rtts,
            largest_rtt: flows.iter().map(|flow| flow.rtt.most(flow.count)).max(),
            wire_bytes: compat.wire_bytes(packets.max().unwrap_or(BACKGROUND_PACKET)),
            compat,
        }
    }

    /// The RTT of a link's bandwidth-delay product; `None` without flows.
    pub(crate) fn rtt(&self, link: LinkId) -> Option<Time> {
        self.rtts[link.index()].or(self.largest_rtt)
    }

    /// Packets and bytes that a buffer holds.
    pub(crate) fn limits(&self, link: LinkId, size: BufferSize, rate: Rate) -> (u64, u64) {
        let packets = match size {
            BufferSize::Bytes(bytes) => return (u64::MAX, bytes.0),
            BufferSize::Packets(n) => n,
            BufferSize::MicroBdp(factor) => {
                let rtt = self.rtt(link).unwrap_or(Time::ZERO);
                let bytes = u128::from(rate.bdp(rtt).0) * u128::from(factor) / 1_000_000;
                u64::try_from(bytes / u128::from(self.wire_bytes)).unwrap_or(u64::MAX)
            }
        };
        (packets, u64::MAX)
    }

    /// Bytes of a full buffer.
    pub(crate) fn room_bytes(&self, link: LinkId, size: BufferSize, rate: Rate) -> f64 {
        let (packets, bytes) = self.limits(link, size, rate);
        (packets as f64 * f64::from(self.wire_bytes)).min(bytes as f64)
    }

    fn link(&self, number: LinkId, hop: &Hop) -> LinkConfig {
        let way = hop.way;
        let (packets, limit_bytes) = self.limits(number, way.queue.size, way.mean_rate());
        LinkConfig {
            name: hop.name.clone(),
            service: match (&way.delivery, way.shaper) {
                (Some(trace), _) => Service::Trace(trace.clone(), self.compat.framing_bytes()),
                (None, Some(shaper)) => Service::Shaped(way.rate.unwrap_or(shaper.rate), shaper),
                (None, None) => Service::Rate(way.mean_rate()),
            },
            bleach: way.bleaches(),
            policer: way.policer,
            queue: way.queue.discipline.for_packets(self.wire_bytes),
            // A queue of n packets in ns-2 counts the one in service.
            limit_packets: match self.compat {
                Compat::Ns2 if packets < u64::MAX => packets.saturating_sub(1),
                _ => packets,
            },
            limit_bytes,
            delay: way.delay,
            impair: way.impair,
            acks: way.acks.filter(AckImpair::acts),
            router: way.router.and_then(|router| router.0),
            event_mode: hop.mode == Mode::Event,
        }
    }
}

/// Most different routes: their numbers are `u16`.
pub(crate) const ROUTES_MAX: usize = 1 << 16;

/// The different routes of a scenario, each once, and their numbers.
pub(crate) struct Routes<'a> {
    numbers: BTreeMap<&'a [LinkId], usize>,
    list: Vec<&'a [LinkId]>,
}

impl<'a> Routes<'a> {
    pub(crate) fn of(scenario: &'a Scenario) -> Routes<'a> {
        let mut routes = Routes { numbers: BTreeMap::new(), list: Vec::new() };
        if let Topology::Dumbbell(_) = scenario.topology {
            for link in [&[LinkId(0)], &[LinkId(1)]] {
                routes.add(link);
            }
        }
        for flow in &scenario.flow {
            routes.add(&flow.path.links);
            routes.add(&flow.ack_links);
        }
        for udp in &scenario.udp {
            routes.add(&udp.path.links);
        }
        if !scenario.background.is_silent() {
            routes.add(&scenario.background.path.links);
            routes.add(&scenario.background.ack_links);
        }
        for traffic in &scenario.traffic {
            routes.add(&traffic.path.links);
            routes.add(&traffic.ack_links);
        }
        for change in &scenario.schedule {
            if let Change::Route(change) = change {
                change.links.iter().for_each(|links| routes.add(links));
            }
        }
        routes
    }

    fn add(&mut self, links: &'a [LinkId]) {
        if !self.numbers.contains_key(links) {
            self.numbers.insert(links, self.list.len());
            self.list.push(links);
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.list.len()
    }

    /// The number of a route that was added.
    fn number(&self, links: &[LinkId]) -> RouteId {
        RouteId(self.numbers[links] as u16)
    }
}

impl Traffic {
    /// The model as the simulator knows it.
    pub(crate) fn sim_model(&self) -> Model {
        let path = PathConfig::of_rtt(distribution(self.rtt, Time::as_s));
        self.model.model(self.direction, path)
    }
}

/// The distribution of a quantity in the unit of a number.
fn distribution<T: Copy>(spread: Spread<T>, number: fn(T) -> f64) -> Distribution {
    match spread {
        Spread::At(value) => Distribution::Constant(number(value)),
        Spread::Uniform(low, high) => Distribution::Uniform(number(low), number(high)),
        Spread::LogUniform(low, high) => Distribution::LogUniform(number(low), number(high)),
    }
}

/// A flow among those of its group, and the streams from which it draws.
struct Member<'a> {
    flow: &'a Flow,
    /// Its place in its group.
    place: usize,
    random: Streams,
}

impl Member<'_> {
    /// Its own value of a quantity; a distribution draws from the stream `flow[NUMBER].KEY`.
    fn own<T: Copy + PartialOrd>(
        &self,
        key: &str,
        all: &PerFlow<T>,
        number: fn(T) -> f64,
        value: fn(f64) -> T,
    ) -> T {
        match all.at(self.place) {
            Spread::At(value) => value,
            spread => {
                let drawn = value(distribution(spread, number).draw(&mut self.random.stream(key)));
                // Rounding leaves the bounds at most by the last digit.
                if drawn < spread.least() {
                    spread.least()
                } else {
                    drawn
                }
            }
        }
    }

    fn time(&self, key: &str, all: &PerFlow<Time>) -> Time {
        self.own(key, all, Time::as_s, Time::from_s_f64)
    }

    fn start(&self) -> Time {
        self.time("start", &self.flow.start)
    }

    fn stop(&self) -> Time {
        self.flow.stop.as_ref().map_or(Time::NEVER, |stop| self.time("stop", stop))
    }

    fn rtt(&self) -> Time {
        self.time("rtt", &self.flow.rtt)
    }

    /// Payload that it delivers; `None` for no end.
    fn size_bytes(&self) -> Option<u64> {
        let bytes = |size| self.own("size", size, |size: Bytes| size.0 as f64, |bytes| Bytes(bytes as u64)).0;
        self.flow.size.as_ref().map(bytes)
    }

    fn application(&self, tcp: &Tcp) -> Option<SimApplication> {
        tcp.application.as_ref().map(|it| SimApplication {
            rate: self.own("application.rate", &it.rate, Rate::as_bps, |bps| Rate(bps as u64)),
            on: it.on,
            off: it.off,
            deadline: it.deadline,
        })
    }

    /// Packets that a stream delivers.
    fn size_packets(&self, stream: u32, payload_bytes: u32) -> u64 {
        let streams = u64::from(self.flow.parallel);
        self.size_bytes().map_or(u64::MAX, |size| {
            let (share, rest) = (size / streams, size % streams);
            (share + u64::from(u64::from(stream) < rest)).div_ceil(payload_bytes.into())
        })
    }
}

impl Flow {
    /// Packets that a stream may have outstanding.
    pub(crate) fn window_packets(&self, compat: Compat) -> u64 {
        self.receive_window.map_or(u64::MAX, |window| window.packets(self.payload_bytes(compat)))
    }
}

impl Scenario {
    /// Bytes of every packet on the wire beyond IP.
    pub fn framing_bytes(&self) -> u32 {
        self.compat.framing_bytes()
    }

    /// The simulation of this scenario with this seed. Flows are numbered in the order of the groups; what is random of
    /// one is drawn from streams such as `flow[NUMBER].start`. Its parallel streams stand side by side.
    pub fn config(&self, seed: u64) -> Config {
        self.drawn_config(seed, &Streams::of_run(seed))
    }

    /// The same, drawn from these streams.
    pub(crate) fn drawn_config(&self, seed: u64, random: &Streams) -> Config {
        let network = Network::new(&self.topology);
        let sizing = Sizing::new(&network, &self.flow, &self.udp, self.compat);
        let routes = Routes::of(self);
        let limits = self.send_limits(&network, &sizing);
        let groups = self.flow.iter().zip(limits);
        let transfers =
            groups.flat_map(|group| (0..group.0.count as usize).map(move |place| (place, group))).enumerate();
        let streams =
            transfers.flat_map(|(number, one)| (0..one.1 .0.parallel).map(move |i| (number, one, i)));
        let (mut flows, mut udt, mut stacks) = (Vec::new(), Vec::new(), Vec::new());
        for (connection, (number, (place, (flow, limit)), i)) in (0..).zip(streams) {
            let member = Member { flow, place, random: random.of(format!("flow[{number}]")) };
            match &flow.tcp {
                Some(tcp) => {
                    let mut config = self.flow(&member, tcp, i, &routes);
                    config.sender.send_buffer = match tcp.send_buffer {
                        Some(BufferText::Linux(first, most)) => {
                            SendBuffer::Autotuned { first_bytes: first.0, max_bytes: most.0 }
                        }
                        _ => SendBuffer::Segments(limit),
                    };
                    flows.push(config);
                }
                None if flow.transport() == Transport::Stack => {
                    stacks.push(self.stack_flow(&member, connection, i, &routes));
                }
                None => {
                    let mut config = self.udt_flow(&member, connection, i, &routes);
                    if flow.receive_window.is_none() {
                        config.window_packets = config.window_packets.min(segments(limit));
                    }
                    udt.push(config);
                }
            }
        }
        Config {
            seed,
            duration: self.duration,
            warmup: self.warmup,
            sample: match self.sample {
                Sample::Off => None,
                Sample::Every(step) => Some(step),
            },
            links: network.links().map(|link| sizing.link(link, network.hop(link))).collect(),
            routes: routes.list.iter().map(|links| links.to_vec()).collect(),
            flows,
            udt,
            stacks,
            udp: self
                .udp
                .iter()
                .map(|udp| UdpConfig {
                    name: udp.name.0.clone(),
                    traffic: self.udp_traffic(udp),
                    deadline: udp.deadline,
                    route: routes.number(&udp.path.links),
                })
                .collect(),
            background: self.background(&network, &routes),
            traffic: self.traffic.iter().map(|traffic| self.traffic(traffic, &routes)).collect(),
            breakers: self.breakers().collect(),
            changes: self.changes(&network, &routes),
            capture: self.capture.as_ref().map(|capture| SimCapture {
                links: capture.numbers.clone(),
                from: capture.from,
                to: capture.to,
                max_rows: capture.max_rows,
            }),
        }
    }

    /// The breakers of all flows, then those of UDP.
    fn breakers(&self) -> impl Iterator<Item = BreakerConfig> + '_ {
        let flows = self.flow.iter().flat_map(|flow| (0..flow.count).map(move |_| &flow.breakers));
        let flows = (0..).zip(flows).map(|(number, breakers)| (Watched::Flow(number), breakers));
        let udp = self.udp.iter().enumerate().map(|(i, udp)| (Watched::Udp(i), &udp.breakers));
        let all = flows.chain(udp);
        all.flat_map(|(watched, breakers)| {
            breakers.iter().map(move |&breaker| BreakerConfig { breaker, watched })
        })
    }

    /// One of the streams of a transfer.
    fn flow(&self, member: &Member, tcp: &Tcp, stream: u32, routes: &Routes) -> FlowConfig {
        let (flow, random, compat) = (member.flow, &member.random, self.compat);
        let rtt = member.rtt();
        let payload_bytes = flow.payload_bytes(compat);
        let law = flow.control.law().expect("UDT's own law drives UDT alone");
        // A class in Python may draw.
        let draws = LawSpec::info(law).is_none_or(|law| law.draws);
        let agreed = tcp.ecn_of_both();
        let accecn = if agreed == EcnMode::Accurate { tcp.accecn } else { AccEcn::Off };
        // A law of L4S needs the extent of marks: without it, it is Reno and sends no ECT, as in the L4S team's Linux (Prague's
        // draft, section 2.3.1: MUST fall back). Without `receiver_ecn` RFC 8257's echo tells the extent.
        let too_little =
            agreed == EcnMode::Classic && tcp.receiver_ecn.is_some() && (tcp.l4s || law.is_l4s());
        let ecn = agreed != EcnMode::Not && !too_little;
        let sender = compat.sender(payload_bytes, tcp.slow_start.0);
        let receiver = compat.receiver(rtt, payload_bytes);
        FlowConfig {
            stream,
            law: law.clone(),
            direction: flow.direction,
            route: routes.number(&flow.path.links),
            ack_route: routes.number(&flow.ack_links),
            rtt,
            start: member.start(),
            stop: member.stop(),
            size_segments: member.size_packets(stream, payload_bytes),
            payload_bytes,
            wire_bytes: compat.wire_bytes(flow.packet),
            ack_bytes: compat.header_bytes() + compat.framing_bytes() + accecn.ack_bytes(),
            sender: SenderConfig {
                initial_window_segments: segments(tcp.initial_window.0),
                initial_ssthresh_segments: tcp.initial_ssthresh.map(|ssthresh| segments(ssthresh.0)),
                receive_window_segments: flow.window_packets(compat),
                saved: tcp.saved_window.zip(tcp.saved_rtt).map(|(window, rtt)| Saved {
                    window_segments: segments(window.0),
                    rtt_us: u32::try_from(rtt.as_ns() / 1000).unwrap_or(u32::MAX),
                }),
                sack: tcp.sack,
                ecn,
                accurate_ecn: accecn.is_on(),
                ecn_repairs: sender.ecn_repairs || law.family() == Some("ecn"),
                ecn_control: compat == Compat::Linux
                    && law.family() == Some("ecn")
                    && !tcp.l4s
                    && !tcp.accecn.is_on()
                    && tcp.receiver_ecn.is_none(),
                pacing: tcp.pacing,
                burst_segments: tcp.burst.map_or(1, |burst| burst.0 / u64::from(payload_bytes)),
                validation: tcp.application.is_some() && compat == Compat::Linux,
                ..sender
            },
            l4s: tcp.l4s,
            accecn: tcp.accecn,
            receiver_ecn: tcp.receiver_ecn,
            law_seed: if draws { random.stream(&format!("law[{stream}]")).u64() as u32 } else { 0 },
            receiver: ReceiverConfig {
                delayed_ack: tcp.delayed_ack,
                sack: tcp.sack,
                // A receiver that acknowledges every segment holds no ACK back, in a recovery neither (measured on 6.12).
                sack_compression: receiver.sack_compression.filter(|_| tcp.sack && tcp.delayed_ack),
                ecn: ecn && !accecn.is_on(),
                // The receiver of a pair that is set up for RFC 8257; any other one does as RFC 3168 says.
                echo_each_mark: law.family() == Some("ecn") && tcp.receiver_ecn.is_none(),
                ..receiver
            },
            application: member.application(tcp),
            misbehaves: tcp.misbehaves,
        }
    }

    /// The same over UDT; the `connection`th of all.
    fn udt_flow(&self, member: &Member, connection: u32, stream: u32, routes: &Routes) -> UdtConfig {
        let (flow, random) = (member.flow, &member.random);
        UdtConfig {
            number: connection,
            stream,
            control: flow.control.clone(),
            direction: flow.direction,
            route: routes.number(&flow.path.links),
            ack_route: routes.number(&flow.ack_links),
            rtt: member.rtt(),
            start: member.start(),
            stop: member.stop(),
            size_packets: member.size_packets(stream, flow.payload_bytes(self.compat)),
            mss_bytes: segments(flow.packet.0),
            framing_bytes: self.compat.framing_bytes(),
            window_packets: flow.window_packets(self.compat).min(UDT_WINDOW_MAX) as u32,
            seed: random.stream(&format!("udt[{stream}]")).u64(),
        }
    }

    /// The same of a whole stack.
    fn stack_flow(&self, member: &Member, connection: u32, stream: u32, routes: &Routes) -> StackConfig {
        let (flow, random) = (member.flow, &member.random);
        StackConfig {
            number: connection,
            stream,
            law: flow.control.law().expect("a stack is no law of UDT").clone(),
            direction: flow.direction,
            route: routes.number(&flow.path.links),
            ack_route: routes.number(&flow.ack_links),
            rtt: member.rtt(),
            start: member.start(),
            stop: member.stop(),
            size_bytes: member.size_packets(stream, 1),
            packet_bytes: segments(flow.packet.0),
            framing_bytes: self.compat.framing_bytes(),
            seed: random.stream(&format!("stack[{stream}]")).u64(),
        }
    }

    fn traffic(&self, traffic: &Traffic, routes: &Routes) -> TrafficConfig {
        let window_bytes = match traffic.receive_window {
            Window::Packets(n) => n.saturating_mul(1460),
            Window::Bytes(bytes) => bytes.0,
        };
        let mut ways = [&traffic.path.links, &traffic.ack_links].map(|links| routes.number(links));
        if traffic.direction == Direction::Reverse {
            ways.reverse();
        }
        let mut carrier = self.carrier(traffic.spec.clone(), window_bytes, ways);
        carrier.sender.pacing = traffic.spec.header().is_some();
        TrafficConfig { name: traffic.name.0.clone(), model: traffic.sim_model(), carrier }
    }

    /// The TCP of a traffic source, with routes of its data forward and in reverse.
    fn carrier(&self, law: LawSpec, receive_window_bytes: u64, routes: [RouteId; 2]) -> Carrier {
        let payload_bytes = self.compat.payload_bytes(BACKGROUND_PACKET);
        let sender = self.compat.sender(payload_bytes, SlowStartKind::Classic);
        Carrier {
            law,
            sender: SenderConfig { initial_window_segments: INITIAL_WINDOW_SEGMENTS, ..sender },
            receiver: ReceiverConfig {
                delayed_ack: true,
                ..self.compat.receiver(BACKGROUND_RTT, payload_bytes)
            },
            receive_window_bytes,
            ack_bytes: self.compat.header_bytes() + self.compat.framing_bytes(),
            routes,
        }
    }

    /// The simulator's traffic of a UDP source.
    pub(crate) fn udp_traffic(&self, udp: &Udp) -> udp::Config {
        let pattern = match &udp.pattern {
            Pattern::Bursts(bursts) => udp::Pattern::Bursts(bursts.clone()),
            Pattern::Steps(steps) => {
                let mut bursts = udp::Burst::steps(steps.start, steps.each, steps.rates.iter().copied());
                bursts.retain(|burst| burst.start < self.duration);
                udp::Pattern::Bursts(bursts)
            }
            Pattern::OnOff(on_off) => udp::Pattern::OnOff(*on_off),
        };
        udp::Config { packet_bytes: self.compat.wire_bytes(udp.packet), pattern }
    }

    /// Changes of the schedule in order of time; entries of one instant in the order of the scenario.
    fn changes(&self, network: &Network, routes: &Routes) -> Vec<SimChange> {
        /// A change, or a link that comes up with the rate that it had.
        enum Step {
            Make(Changed),
            Raise(LinkId),
        }
        let mut first_of_group = vec![0];
        for flow in &self.flow {
            first_of_group.push(first_of_group[first_of_group.len() - 1] + flow.streams());
        }
        let mut steps: Vec<(Time, Step)> = Vec::new();
        for change in &self.schedule {
            match change {
                Change::Link(change) => {
                    let link = change.number;
                    let mut add = |step| steps.push((change.at, step));
                    if let Some(rate) = change.rate {
                        add(Step::Make(Changed::Rate(link, rate)));
                    }
                    if let Some(delay) = change.delay {
                        add(Step::Make(Changed::Delay(link, delay)));
                    }
                    if let Some(loss) = change.loss {
                        add(Step::Make(Changed::Loss(link, loss)));
                    }
                    match change.down {
                        Some(true) => add(Step::Make(Changed::Rate(link, Rate(0)))),
                        Some(false) => add(Step::Raise(link)),
                        None => {}
                    }
                }
                Change::File(change) => {
                    let link = change.number;
                    let mut add = |at, what| steps.push((at, Step::Make(what)));
                    match &change.series {
                        Series::Rate(rows) => {
                            rows.iter().for_each(|&(at, x)| add(at, Changed::Rate(link, x)))
                        }
                        Series::Delay(rows) => {
                            rows.iter().for_each(|&(at, x)| add(at, Changed::Delay(link, x)))
                        }
                        Series::Loss(rows) => {
                            rows.iter().for_each(|&(at, x)| add(at, Changed::Loss(link, x)))
                        }
                    }
                }
                Change::Route(change) => {
                    let [route, ack_route] = [0, 1].map(|i| routes.number(&change.links[i]));
                    for flow in first_of_group[change.group]..first_of_group[change.group + 1] {
                        steps.push((change.at, Step::Make(Changed::Route { flow, route, ack_route })));
                    }
                }
            }
        }
        steps.retain(|&(at, _)| at < self.duration);
        steps.sort_by_key(|&(at, _)| at);
        let mut now: Vec<LinkNow> = network.hops.iter().map(|hop| LinkNow::new(hop.way)).collect();
        let ways = self.flow.iter().flat_map(|flow| {
            let way = [&flow.path.links, &flow.ack_links].map(|links| routes.number(links));
            (0..flow.streams()).map(move |_| way)
        });
        let mut ways: Vec<[RouteId; 2]> = if steps.is_empty() { Vec::new() } else { ways.collect() };
        let made = steps.into_iter().filter_map(|(at, step)| {
            let what = match step {
                Step::Raise(link) => Changed::Rate(link, now[link.index()].up),
                Step::Make(what) => what,
            };
            let alters = match what {
                Changed::Rate(link, rate) => now[link.index()].set_rate(rate),
                Changed::Delay(link, delay) => now[link.index()].delay.replace(delay) != Some(delay),
                Changed::Loss(link, loss) => now[link.index()].loss.replace(loss) != Some(loss),
                Changed::Route { flow, route, ack_route } => {
                    let way = [route, ack_route];
                    std::mem::replace(&mut ways[flow as usize], way) != way
                }
            };
            alters.then_some(SimChange { at, what })
        });
        made.collect()
    }

    fn background(&self, network: &Network, routes: &Routes) -> Option<SimBackground> {
        let background = &self.background;
        if background.is_silent() {
            return None;
        }
        let traffic =
            BackgroundConfig::level(background.level as u8, network.slowest(&background.path.links))?;
        let traffic = BackgroundConfig { long_flows: background.long_flows, ..traffic };
        let law: LawSpec = "reno".parse().expect("the registry has reno");
        let routes = [routes.number(&background.path.links), routes.number(&background.ack_links)];
        Some(SimBackground { traffic, carrier: self.carrier(law, RECEIVE_WINDOW_BYTES, routes) })
    }
}

/// A link as the schedule has changed it so far.
struct LinkNow {
    /// The rate with which it comes up.
    up: Rate,
    /// `None` for a trace or a shaper, which any rate replaces.
    rate: Option<Rate>,
    delay: Option<Time>,
    /// `None` for losses in bursts, which any loss replaces.
    loss: Option<f64>,
}

impl LinkNow {
    fn new(way: &OneWay) -> LinkNow {
        LinkNow {
            up: way.mean_rate(),
            rate: way.rate.filter(|_| way.shaper.is_none()),
            delay: Some(way.delay),
            loss: match way.impair.loss {
                Loss::Bernoulli(p) => Some(p),
                bursts => (bursts.mean() == 0.0).then_some(0.0),
            },
        }
    }

    /// Whether the rate was another one.
    fn set_rate(&mut self, rate: Rate) -> bool {
        if rate > Rate(0) {
            self.up = rate;
        }
        self.rate.replace(rate) != Some(rate)
    }
}

fn segments(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
