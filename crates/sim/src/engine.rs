//! The event loop.
//!
//! On a dumbbell there is one event per data packet, the ACK at the sender. Where a packet's departure is
//! known at its arrival (see `lfn_path::Link`), so is its arrival at the receiver, and the receiver's
//! answer: all of it happens when the packet is sent. Where packets meet another queue on their way, or
//! may overtake one another, each meeting is an event more ([`network`]).

mod capture;
mod crowd;
mod links;
mod network;
mod outcome;
mod udt;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use lfn_law::ONE;
use lfn_path::{AqmError, Bernoulli, ImpairError, Offer, Packet, PacketKind, RouterConfig, Service};
use lfn_tcp::Acknowledgement;
use lfn_units::{Rate, Time};

use crate::config::{Change, Changed, Config, Connection, FlowConfig, UdtConfig};
use crate::events::Kind;
use crate::flow::{Flow, FlowSetup, Role};
use crate::rng::Streams;
use crate::summary::{Summary, UdpSummary};
use crate::tables::Tables;
use crate::traffic::udp::Udp;
use crate::traffic::BadTraffic;
use crate::transit::{Cargo, Place, Transit};
use capture::Capture;
use crowd::Crowd;
pub(crate) use crowd::Errand;
use links::{LinkState, Server, Use};
use network::{Route, UdpState, Waiting};
use outcome::Retired;
use udt::{ControlPackets, UdtFlow};

/// Why a run could not be.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// Parameters of a queue that make no sense together.
    #[error("link {link}: {source}")]
    Queue {
        /// Its name.
        link: String,
        /// What is wrong.
        source: AqmError,
    },
    /// Parameters of an impairment that make no sense.
    #[error("link {link}: {source}")]
    Impair {
        /// Its name.
        link: String,
        /// What is wrong.
        source: ImpairError,
    },
    /// Parameters of a traffic model that make no sense.
    #[error("traffic {name}: {source}")]
    Traffic {
        /// Its name.
        name: String,
        /// What is wrong.
        source: BadTraffic,
    },
    /// A flow with ECN on a link whose router uses the same two bits of the IP header.
    #[error("flow {flow} has ECN, and link {link} speaks VCP: both need the same bits of the IP header")]
    EcnBesideVcp {
        /// Number of the flow.
        flow: usize,
        /// Name of the link.
        link: String,
    },
    /// A route, link or flow that does not exist, or a change that goes back in time.
    #[error("{0}")]
    Unknown(String),
    /// A packet was lost or made by the engine itself: a bug, and the results are worthless.
    #[error("packets are not conserved: {0}")]
    NotConserved(String),
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// In numbers.
    pub summary: Summary,
    /// Columns.
    pub tables: Tables,
}

/// What a link, and a recording, must know of a packet.
struct Traveller {
    bytes: u32,
    ect: bool,
    cargo: Cargo,
    seq: u64,
    payload_bytes: u32,
    /// Number of its connection, or of its UDP source.
    number: u32,
    /// It travels in the reverse direction.
    reverse: bool,
}

/// Sums over bins of one second, for the coefficient of variation.
#[derive(Clone, Copy, Default)]
struct Bins {
    last: u64,
    count: u64,
    sum: f64,
    squares: f64,
}

impl Bins {
    fn add(&mut self, total: u64) {
        let bin = (total - self.last) as f64;
        self.last = total;
        self.count += 1;
        self.sum += bin;
        self.squares += bin * bin;
    }

    /// Population standard deviation over mean.
    fn cov(&self) -> Option<f64> {
        let n = self.count as f64;
        let mean = self.sum / n;
        (self.count >= 2 && mean > 0.0).then(|| (self.squares / n - mean * mean).max(0.0).sqrt() / mean)
    }
}

/// A simulation under way.
pub struct Sim {
    now: Time,
    transit: Transit,
    /// Wires by what is at their end, the link at their beginning, and their delay.
    wires: BTreeMap<(Kind, usize, Place, Time), u32>,
    links: Vec<LinkState>,
    routes: Vec<Route>,
    /// Packets in queues whose departures are events, by the word of their `lfn_path::Packet`.
    waiting: Vec<Option<Waiting>>,
    free_slots: Vec<u64>,
    /// What a queue dropped in the course of one call.
    dropped: Vec<Packet>,
    udp: Vec<UdpState>,
    changes: Vec<Change>,
    capture: Option<Box<Capture>>,
    /// Duplicates that links made.
    copies: u64,
    flows: Vec<Flow>,
    reported: Vec<FlowConfig>,
    /// Of each reported flow, its number among all connections that are reported, and that of the transfer
    /// that it is a stream of.
    numbers: Vec<u32>,
    transfer: Vec<u32>,
    started: Vec<bool>,
    udt: Vec<UdtFlow>,
    /// Control packets of UDT that are under way.
    control: ControlPackets,
    /// By number.
    connections: Vec<Connection>,
    transfers: Vec<Transfer>,
    free: Vec<usize>,
    crowds: Vec<Crowd>,
    retired: Retired,
    config_seed: u64,
    duration: Time,
    warmup: Time,
    sample: Option<Time>,
    tables: Tables,
    hash: u64,
    processed: u64,
    acks_sent: u64,
    acks_taken: u64,
    acks_dropped: u64,
}

/// Flows whose state the cache of a core holds; with more, what comes next is fetched ahead.
const CACHED_FLOWS: usize = 500;

/// What is reported as one flow: the places of its streams, over one transport.
struct Transfer {
    streams: Streamed,
    bins: Bins,
}

#[derive(Clone)]
enum Streamed {
    Tcp(Range<usize>),
    Udt(Range<usize>),
}

/// The transfers, by number. The first stream of each has number 0 in it.
fn transfers(config: &Config, connections: &[Connection]) -> Vec<Transfer> {
    let mut transfers: Vec<Transfer> = Vec::new();
    for &connection in connections {
        let (stream, streams) = match connection {
            Connection::Tcp(at) => (config.flows[at].stream, Streamed::Tcp(at..at + 1)),
            Connection::Udt(at) => (config.udt[at].stream, Streamed::Udt(at..at + 1)),
        };
        match transfers.last_mut().filter(|_| stream > 0) {
            Some(Transfer { streams: Streamed::Tcp(range) | Streamed::Udt(range), .. }) => range.end += 1,
            None => transfers.push(Transfer { streams, bins: Bins::default() }),
        }
    }
    transfers
}

/// Segments of a Q32.32 window; infinite where it is.
fn segments(q32: u64) -> f64 {
    if q32 == u64::MAX {
        f64::INFINITY
    } else {
        q32 as f64 / ONE as f64
    }
}

/// One round of the result hash.
#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
}

/// Checks that what names something names something that is there.
fn check_names(config: &Config) -> Result<Vec<Connection>, SimError> {
    let unknown = |text: String| Err(SimError::Unknown(text));
    for (number, route) in config.routes.iter().enumerate() {
        if route.is_empty() || route.iter().any(|&link| usize::from(link) >= config.links.len()) {
            return unknown(format!("route {number} names a link that is not there, or none"));
        }
    }
    let routes = |route: u16| usize::from(route) < config.routes.len();
    let Some(connections) = config.connections() else {
        return unknown("the numbers of flows over UDT are not places among all flows, each once".into());
    };
    let flows = connections.iter().flat_map(|&connection| <[u16; 2]>::from(config.routes_of(connection)));
    let udp = config.udp.iter().map(|source| source.route);
    let background = config.background.iter().map(|background| background.routes);
    let background = background.chain(config.traffic.iter().map(|traffic| traffic.routes)).flatten();
    if let Some(route) = flows.chain(udp).chain(background).find(|&route| !routes(route)) {
        return unknown(format!("there is no route {route}"));
    }
    let recorded = config.capture.iter().flat_map(|capture| &capture.links);
    if let Some(link) = recorded.into_iter().find(|&&link| usize::from(link) >= config.links.len()) {
        return unknown(format!("there is no link {link} to record"));
    }
    let mut before = Time::ZERO;
    for (number, change) in config.changes.iter().enumerate() {
        let known = match change.what {
            Changed::Rate(link, _) | Changed::Delay(link, _) | Changed::Loss(link, _) => {
                usize::from(link) < config.links.len()
            }
            Changed::Route { flow, route, ack_route } => {
                (flow as usize) < connections.len() && routes(route) && routes(ack_route)
            }
        };
        if !known {
            return unknown(format!("change {number} names something that is not there"));
        }
        if change.at < before {
            return unknown(format!("change {number} goes back in time, from {before} to {}", change.at));
        }
        before = change.at;
        if let Changed::Loss(link, p) = change.what {
            let link = config.links[usize::from(link)].name.clone();
            Bernoulli::new(p, || 0.5).map_err(|source| SimError::Impair { link, source })?;
        }
    }
    check_ecn(config, &connections)?;
    Ok(connections)
}

/// Checks that no flow with ECN passes a link that speaks VCP.
fn check_ecn(config: &Config, connections: &[Connection]) -> Result<(), SimError> {
    let ways = connections.iter().enumerate().map(|(number, &it)| (number, config.routes_of(it).0));
    let changed = config.changes.iter().filter_map(|change| match change.what {
        Changed::Route { flow, route, .. } => Some((flow as usize, route)),
        _ => None,
    });
    let has_ecn = |number: usize| match connections[number] {
        Connection::Tcp(flow) => config.flows[flow].sender.ecn,
        Connection::Udt(_) => false,
    };
    for (number, route) in ways.chain(changed).filter(|&(number, _)| has_ecn(number)) {
        let mut links =
            config.routes[usize::from(route)].iter().map(|&link| &config.links[usize::from(link)]);
        if let Some(link) = links.find(|link| matches!(link.router, Some(RouterConfig::Vcp(_)))) {
            return Err(SimError::EcnBesideVcp { flow: number, link: link.name.clone() });
        }
    }
    Ok(())
}

/// Links on which ACKs may have to wait although no data travel there, since together the bottlenecks,
/// at the highest rates that they will have, can send more of them than the link carries.
fn slow_for_acks(config: &Config, connections: &[Connection]) -> BTreeSet<u16> {
    let mut rates: Vec<Rate> = config
        .links
        .iter()
        .map(|link| match &link.service {
            Service::Rate(rate) => *rate,
            Service::Trace(trace) => trace.mean_rate(),
        })
        .collect();
    let mut ways: Vec<(Connection, (u16, u16))> =
        connections.iter().map(|&connection| (connection, config.routes_of(connection))).collect();
    for change in &config.changes {
        match change.what {
            Changed::Rate(link, rate) => {
                let highest = &mut rates[usize::from(link)];
                *highest = rate.max(*highest);
            }
            Changed::Route { flow, route, ack_route } => {
                ways.push((connections[flow as usize], (route, ack_route)));
            }
            Changed::Delay(..) | Changed::Loss(..) => {}
        }
    }
    let rate = |link: u16| rates[usize::from(link)];
    let mut bottlenecks: BTreeMap<u16, BTreeMap<u16, f64>> = BTreeMap::new();
    for (connection, (route, ack_route)) in ways {
        let slowest = config.routes[usize::from(route)].iter().min_by_key(|&&link| (rate(link), link));
        let Some(&slowest) = slowest else { continue };
        let data_bps = rate(slowest).as_bps();
        let acks_bps = match connection {
            Connection::Tcp(flow) => {
                let flow = &config.flows[flow];
                data_bps * f64::from(flow.ack_bytes) / f64::from(flow.wire_bytes)
            }
            Connection::Udt(flow) => config.udt[flow].acks_bps(data_bps),
        };
        for &link in &config.routes[usize::from(ack_route)] {
            let most = bottlenecks.entry(link).or_default().entry(slowest).or_default();
            *most = most.max(acks_bps);
        }
    }
    let slow = bottlenecks.iter().filter(|(&link, acks)| acks.values().sum::<f64>() > rate(link).as_bps());
    slow.map(|(&link, _)| link).collect()
}

impl Sim {
    /// A simulation at time 0.
    ///
    /// # Errors
    /// [`SimError`] if something is named that is not there, or parameters make no sense together.
    pub fn new(config: &Config) -> Result<Sim, SimError> {
        let connections = check_names(config)?;
        let links = Self::links_of(config, &connections)?;
        let udp = |source: &crate::config::UdpConfig| {
            let streams = Streams::new(config.seed, 0, format!("udp.{}", source.name));
            let traffic = Udp::new(&source.traffic, &streams)
                .map_err(|error| SimError::Traffic { name: source.name.clone(), source: error })?;
            Ok(UdpState {
                traffic,
                route: source.route,
                packet_bytes: source.traffic.packet_bytes,
                wire: 0,
                report: UdpSummary { name: source.name.clone(), ..UdpSummary::default() },
            })
        };
        let mut sim = Sim {
            now: Time::ZERO,
            transit: Transit::default(),
            wires: BTreeMap::new(),
            routes: config.routes.iter().map(|route| Route::new(route)).collect(),
            waiting: Vec::new(),
            free_slots: Vec::new(),
            dropped: Vec::new(),
            udp: config.udp.iter().map(udp).collect::<Result<_, SimError>>()?,
            changes: config.changes.clone(),
            capture: config.capture.as_ref().map(|wanted| Box::new(Capture::new(wanted, links.len()))),
            copies: 0,
            links,
            flows: Vec::with_capacity(config.flows.len()),
            reported: config.flows.clone(),
            numbers: Vec::with_capacity(config.flows.len()),
            transfer: Vec::with_capacity(config.flows.len()),
            started: vec![false; config.flows.len()],
            udt: Vec::with_capacity(config.udt.len()),
            control: ControlPackets::default(),
            transfers: transfers(config, &connections),
            connections,
            free: Vec::new(),
            crowds: Vec::new(),
            retired: Retired::default(),
            config_seed: config.seed,
            duration: config.duration,
            warmup: config.warmup,
            sample: config.sample,
            tables: Tables::default(),
            hash: 0,
            processed: 0,
            acks_sent: 0,
            acks_taken: 0,
            acks_dropped: 0,
        };
        for (number, &connection) in (0..).zip(&sim.connections) {
            if let Connection::Tcp(_) = connection {
                sim.numbers.push(number);
            }
        }
        for (number, transfer) in (0..).zip(&sim.transfers) {
            if let Streamed::Tcp(streams) = &transfer.streams {
                sim.transfer.extend(streams.clone().map(|_| number));
            }
        }
        let mut rerouted = vec![false; sim.connections.len()];
        for (number, change) in config.changes.iter().enumerate() {
            if let Changed::Route { flow, .. } = change.what {
                rerouted[flow as usize] = true;
            }
            sim.transit.events.push(change.at, Kind::Change, number);
        }
        for (index, flow) in config.flows.iter().enumerate() {
            let mut setup = sim.setup_of(flow);
            setup.by_event |= rerouted[sim.numbers[index] as usize];
            sim.flows.push(Flow::new(&setup, Role::Reported, flow.start));
            sim.connect(index);
            sim.transit.events.push(flow.start, Kind::Begin, index);
            if flow.stop < config.duration {
                sim.transit.events.push(flow.stop, Kind::Stop, index);
            }
        }
        for flow in &config.udt {
            sim.set_up_udt(flow)?;
        }
        for index in 0..sim.udp.len() {
            let place = Place { cargo: Cargo::Udp, route: sim.udp[index].route, hop: 0 };
            sim.udp[index].wire = sim.transit.wire(Kind::AtReceiver, place);
            let first = sim.udp[index].traffic.next_at();
            if first < config.duration {
                sim.transit.events.push(first, Kind::Udp, index);
            }
        }
        if config.warmup > Time::ZERO {
            sim.transit.events.push(config.warmup, Kind::Warmup, 0);
        }
        sim.transit.events.push(config.warmup + Time::from_s(1), Kind::Second, 0);
        if config.sample.is_some() {
            sim.transit.events.push(Time::ZERO, Kind::Sample, 0);
        }
        if let Some(background) = &config.background {
            sim.set_up_background(config.seed, background);
        }
        for traffic in &config.traffic {
            sim.set_up_traffic(config.seed, traffic)?;
        }
        Ok(sim)
    }

    fn links_of(config: &Config, connections: &[Connection]) -> Result<Vec<LinkState>, SimError> {
        let mut modelled = slow_for_acks(config, connections);
        // Links whose departures are events.
        let mut changing: BTreeSet<u16> = BTreeSet::new();
        let mut data_routes: BTreeSet<u16> =
            connections.iter().map(|&connection| config.routes_of(connection).0).collect();
        data_routes.extend(config.udp.iter().map(|source| source.route));
        if let Some(background) = &config.background {
            let traffic = &background.traffic;
            // The ACKs of one direction travel with the data of the other.
            if traffic.forward.0 > 0 || traffic.reverse.0 > 0 || traffic.long_flows > 0 {
                data_routes.extend(background.routes);
            }
        }
        data_routes.extend(config.traffic.iter().flat_map(|traffic| traffic.routes));
        for change in &config.changes {
            match change.what {
                Changed::Rate(link, _) | Changed::Delay(link, _) | Changed::Loss(link, _) => {
                    changing.insert(link);
                }
                Changed::Route { route, .. } => {
                    data_routes.insert(route);
                }
            }
        }
        modelled.extend(data_routes.iter().flat_map(|&route| &config.routes[usize::from(route)]));
        // On a link that is down nothing leaves at a known time.
        let down =
            config.links.iter().zip(0..).filter(|(link, _)| matches!(link.service, Service::Rate(Rate(0))));
        changing.extend(down.map(|(_, number)| number));
        modelled.extend(&changing);
        // Recorded, departures are events, so that rows come in order of time.
        if let Some(capture) = &config.capture {
            changing.extend(&capture.links);
        }
        let packets = config.flows.iter().map(|flow| flow.wire_bytes);
        let packets = packets.chain(config.udt.iter().map(UdtConfig::wire_bytes));
        let datagrams = config.udp.iter().map(|source| source.traffic.packet_bytes);
        let largest_packet_bytes = packets.chain(datagrams).max().unwrap_or(1500).max(1500);
        let rtts = config.flows.iter().map(|flow| flow.rtt).chain(config.udt.iter().map(|flow| flow.rtt));
        let longest = rtts.max().unwrap_or(Time::ZERO);
        let states = config.links.iter().zip(0..).map(|(link, number)| {
            let usage = Use {
                by_event: changing.contains(&number),
                modelled: modelled.contains(&number) || matches!(link.service, Service::Trace(_)),
                largest_packet_bytes,
                one_way: Time(longest.0 / 2),
                header_name: number + 1,
            };
            LinkState::new(link, &usage, config.seed)
        });
        states.collect()
    }

    /// What delays of its own a flow of this RTT has on these routes.
    fn access(&self, rtt: Time, routes: [u16; 2]) -> Time {
        let links = routes.map(|route| &self.routes[usize::from(route)].links);
        let delays = links.into_iter().flatten().map(|&link| self.links[usize::from(link)].delay);
        delays.fold(rtt, Time::since)
    }

    fn setup_of(&self, flow: &FlowConfig) -> FlowSetup {
        FlowSetup {
            law: flow.law.clone(),
            sender: flow.sender,
            receiver: flow.receiver,
            direction: flow.direction,
            route: flow.route,
            ack_route: flow.ack_route,
            access: self.access(flow.rtt, [flow.route, flow.ack_route]),
            by_event: self.may_reorder(flow.route),
            size_segments: flow.size_segments,
            payload_bytes: flow.payload_bytes,
            wire_bytes: flow.wire_bytes,
            ack_bytes: flow.ack_bytes,
            last_wire_bytes: flow.wire_bytes,
        }
    }

    /// Whether packets may overtake one another on the last link of a route.
    fn may_reorder(&self, route: u16) -> bool {
        let last = self.routes[usize::from(route)].last();
        let changes = self
            .changes
            .iter()
            .any(|change| matches!(change.what, Changed::Delay(link, _) if usize::from(link) == last));
        changes || self.links[last].motion.is_some()
    }

    /// Simulated time reached.
    pub fn now(&self) -> Time {
        self.now
    }

    /// When the run ends.
    pub fn duration(&self) -> Time {
        self.duration
    }

    /// Processes every event up to and including `until` (at most the duration).
    pub fn run_until(&mut self, until: Time) {
        let until = until.min(self.duration);
        while let Some((at, kind, index, wire)) = self.transit.events.peek() {
            if at > until {
                break;
            }
            self.now = at;
            self.processed += 1;
            match kind {
                Kind::AckAtSender => {
                    if self.flows.len() > CACHED_FLOWS {
                        self.prefetch(wire);
                    }
                    self.on_ack_at_sender(index, wire);
                }
                Kind::AtLink => self.on_at_link(wire),
                Kind::AtReceiver => self.on_at_receiver(index, wire),
                _ => {
                    self.transit.events.pop();
                    self.on_rare(kind, index);
                }
            }
        }
        self.now = until;
    }

    /// Fetches what the next ACKs on `wire` will need. A flow's place is known beforehand, that of its
    /// buffers only when the flow is there, and that of repair's only when what leads to them is.
    #[inline(never)]
    fn prefetch(&self, wire: u32) {
        let parcels = self.transit.prefetch(wire);
        let flow = |places: usize| parcels.get(places).and_then(|parcel| self.flows.get(parcel.1.flow()));
        if let Some(flow) = flow(3) {
            flow.prefetch();
        }
        if let Some(flow) = flow(2) {
            flow.sender.prefetch_buffers();
            flow.receiver.prefetch_buffers();
        }
        if let Some(flow) = flow(1) {
            flow.sender.prefetch_repair();
        }
    }

    #[inline]
    fn on_ack_at_sender(&mut self, index: usize, wire: u32) {
        let now = self.now;
        let mut ack = Acknowledgement::default();
        let flow = &mut self.flows[index];
        let near = flow.sender.una();
        self.transit.take(wire, near, &mut ack, |header| flow.sender.on_header(header));
        flow.under_way -= 1;
        self.acks_taken += 1;
        self.hash = mix(mix(self.hash, now.0 ^ index as u64), ack.cumulative);
        flow.sender.on_ack(now, &ack);
        if flow.sender.has_events() {
            self.take_sender_events(index);
        }
        self.transmit(index);
        if self.flows[index].is_done() {
            self.on_done(index);
        }
    }

    fn on_rare(&mut self, kind: Kind, index: usize) {
        match kind {
            Kind::Change => self.on_change(index),
            Kind::Depart => self.on_depart(index),
            Kind::UdtTimer => self.on_udt_timer(index),
            Kind::UdtStop => self.on_udt_stop(index),
            Kind::Udp => self.on_udp(index),
            Kind::Warmup => self.on_warmup(),
            Kind::Begin => self.on_begin(index),
            Kind::Established => {
                let rtt = self.base_rtt(index);
                self.flows[index].sender.on_established(self.now, rtt);
                self.take_syn_ack(index);
                self.transmit(index);
            }
            Kind::Stop => {
                self.flows[index].sender.stop();
                self.flows[index].finished.get_or_insert(self.now);
            }
            Kind::ReceiverTimer => self.on_receiver_timer(index),
            Kind::SenderTimer => {
                if self.flows.len() > CACHED_FLOWS {
                    // Mostly another flow's timer.
                    if let Some(flow) = self.flows.get(self.transit.events.next_other()) {
                        flow.prefetch();
                    }
                }
                self.on_sender_timer(index);
            }
            Kind::Write => self.on_write(index),
            Kind::Arrival => self.on_arrival(index),
            Kind::Second => {
                for transfer in &mut self.transfers {
                    let (counts, acknowledged) = match &transfer.streams {
                        Streamed::Tcp(streams) => {
                            let flows = &self.flows[streams.clone()];
                            let under_way = flows.iter().any(|flow| flow.finished.is_none());
                            let una = flows.iter().map(|flow| flow.sender.una());
                            (flows[0].started < self.now && under_way, una.sum())
                        }
                        Streamed::Udt(streams) => {
                            let flows = &self.udt[streams.clone()];
                            let under_way = flows.iter().any(|flow| flow.finished.is_none());
                            let acknowledged = flows.iter().map(UdtFlow::acknowledged);
                            (flows[0].config.start < self.now && under_way, acknowledged.sum())
                        }
                    };
                    if counts {
                        transfer.bins.add(acknowledged);
                    }
                }
                self.transit.events.push(self.now + Time::from_s(1), Kind::Second, 0);
            }
            Kind::Sample => self.on_sample(),
            Kind::AtLink | Kind::AtReceiver | Kind::AckAtSender => {}
        }
    }

    fn on_begin(&mut self, index: usize) {
        let Some(config) = self.reported.get(index) else { return self.transmit(index) };
        self.started[index] = true;
        if config.sender.handshake {
            // SYN and SYN-ACK are small and meet no queue.
            let established = self.now + self.base_rtt(index);
            self.send_syn(index);
            self.transit.events.push(established, Kind::Established, index);
        } else {
            self.transmit(index);
        }
    }

    /// Sends what the sender may send now.
    #[inline]
    fn transmit(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.flows[index];
        let Some(at) = flow.direct else { return self.transmit_hop_by_hop(index) };
        let link = &mut self.links[usize::from(at)];
        let Server::Closed(server) = &mut link.server else { return };
        while let Some(segment) = flow.sender.next_segment(now) {
            let bytes = flow.wire_bytes_of(segment.seq);
            let draws = &mut link.draws;
            match server.offer(now, PacketKind::Data, bytes, flow.ect, || draws.f64()) {
                Offer::Dropped(_) => {}
                Offer::Departs { at: departs, marked } => {
                    if link.loss.chooses() {
                        link.loss.lose(now, departs);
                    } else {
                        let arrives = departs + flow.forward_delay;
                        self.acks_sent += flow.receive(arrives, segment, marked, index, &mut self.transit);
                    }
                }
            }
        }
        flow.set_timer(now, index, &mut self.transit);
    }

    fn transmit_hop_by_hop(&mut self, index: usize) {
        while let Some(segment) = self.flows[index].sender.next_segment(self.now) {
            self.send_data(index, segment);
        }
        self.flows[index].set_timer(self.now, index, &mut self.transit);
    }

    fn on_receiver_timer(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.flows[index];
        if flow.receiver_timer_at != now {
            return;
        }
        flow.receiver_timer_at = Time::NEVER;
        self.acks_sent += flow.on_receiver_timer(now, index, &mut self.transit);
    }

    fn on_sender_timer(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.flows[index];
        if flow.timer_at > now || flow.role == Role::Free {
            return;
        }
        flow.timer_at = Time::NEVER;
        if flow.sender.deadline() > now {
            // ACKs have moved it.
            return flow.set_timer(now, index, &mut self.transit);
        }
        flow.sender.on_timer(now);
        if flow.sender.has_events() {
            self.take_sender_events(index);
        }
        self.transmit(index);
    }

    fn take_sender_events(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let reported = flow.role == Role::Reported;
        for event in flow.sender.take_events() {
            if !reported {
                continue;
            }
            let table = &mut self.tables.events;
            table.t_s.push(event.at.as_s());
            table.flow.push(self.transfer[index]);
            table.kind.push(event.kind as u8);
            table.cwnd_before_seg.push(segments(event.cwnd_before));
            table.cwnd_after_seg.push(segments(event.cwnd_after));
            table.ssthresh_seg.push(segments(event.ssthresh));
            table.lost.push(event.lost as u32);
        }
    }

    fn on_done(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.flows[index];
        match flow.role {
            Role::Reported => {
                flow.finished.get_or_insert(now);
            }
            Role::Short if flow.finished.is_none() => {
                flow.finished = Some(now);
                self.on_all_acknowledged(index);
            }
            Role::Short => self.retire_if_silent(index),
            Role::Long | Role::Free => {}
        }
    }

    fn on_warmup(&mut self) {
        let now = self.now;
        for link in &mut self.links {
            link.restart(now);
        }
        for (flow, &transfer) in self.flows.iter_mut().zip(&self.transfer) {
            flow.base = flow.sender.una();
            self.transfers[transfer as usize].bins.last += flow.base;
            if flow.started <= now {
                flow.sender.restart_window_stats(now);
            }
        }
        for flow in &mut self.udt {
            flow.restart(now);
            self.transfers[flow.transfer as usize].bins.last += flow.base;
        }
    }

    fn on_sample(&mut self) {
        let now = self.now;
        let Some(interval) = self.sample else { return };
        self.transit.events.push(now + interval, Kind::Sample, 0);
        let t_s = now.as_s();
        let table = &mut self.tables.flows;
        for (number, transfer) in (0..).zip(&self.transfers) {
            let streams = match &transfer.streams {
                Streamed::Tcp(streams) => streams,
                Streamed::Udt(streams) => {
                    udt::sample(&self.udt[streams.clone()], now, number, table);
                    continue;
                }
            };
            let of_transfer = &mut self.flows[streams.clone()];
            let has_started = self.started[streams.start];
            let under_way = |flow: &Flow| flow.finished.is_none_or(|at| at >= now);
            let Some(first) = of_transfer.iter().find(|flow| under_way(flow)).filter(|_| has_started) else {
                continue;
            };
            let config = &self.reported[streams.start];
            table.t_s.push(t_s);
            table.flow.push(number);
            table.srtt_s.push(first.sender.rtt().srtt_ns() as f64 * 1e-9);
            table.rtt_s.push(first.sender.rtt().latest_ns() as f64 * 1e-9);
            table.state.push(first.sender.state() as u8);
            let values = first.sender.probe();
            for (probe, (info, value)) in config.law.probes().iter().zip(values).enumerate() {
                let table = &mut self.tables.probes;
                table.t_s.push(t_s);
                table.flow.push(number);
                table.probe.push(probe as u8);
                table.value.push(value as f64 / (info.scale as f64).exp2());
            }
            let sum = |of: fn(&Flow) -> f64| of_transfer.iter().filter(|flow| under_way(flow)).map(of).sum();
            table.cwnd_seg.push(sum(|flow| segments(flow.sender.control().cwnd)));
            table.ssthresh_seg.push(sum(|flow| segments(flow.sender.control().ssthresh)));
            table.pacing_bps.push(sum(|flow| flow.sender.control().pacing_bytes_per_s as f64 * 8.0));
            table.inflight_seg.push(sum(|flow| flow.sender.in_flight() as f64) as u32);
            let acknowledged: u64 = of_transfer.iter().map(|flow| flow.sender.una()).sum();
            table.delivered_bytes.push(acknowledged * u64::from(config.payload_bytes));
            table
                .retransmits
                .push(of_transfer.iter_mut().map(|flow| flow.sender.stats(now).retransmits).sum());
        }
        let table = &mut self.tables.queues;
        for (at, link) in self.links.iter_mut().enumerate() {
            if !link.modelled {
                continue;
            }
            link.advance(now);
            let counters = link.counters();
            table.t_s.push(t_s);
            table.link.push(at as u16);
            table.packets.push(link.packets() as u32);
            table.bytes.push(link.bytes());
            table.arrivals.push(counters.arrivals);
            table.drops.push(counters.drops_full + counters.drops_early);
            table.marks.push(counters.marks);
            table.sent_bytes.push(counters.sent_bytes);
        }
    }
}
