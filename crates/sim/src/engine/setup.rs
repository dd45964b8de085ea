//! A simulation before its first event: what its configuration names must be there, and fit together.

use std::collections::{BTreeMap, BTreeSet};

use lfn_path::{Bernoulli, RouterConfig, Service};
use lfn_units::{Rate, Time};

use super::capture::Capture;
use super::handshake::Handshakes;
use super::links::{LinkState, Use};
use super::network::{Route, UdpState};
use super::outcome::Retired;
use super::udt::ControlPackets;
use super::{Bins, Sim, SimError, Streamed, Transfer};
use crate::config::{Changed, Config, Connection, FlowConfig, UdtConfig};
use crate::events::Kind;
use crate::flow::{Flow, FlowSetup, Role};
use crate::rng::Streams;
use crate::summary::UdpSummary;
use crate::tables::Tables;
use crate::traffic::udp::Udp;
use crate::transit::{Cargo, Place, Transit};

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
            handshakes: Handshakes::default(),
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

    /// Delay of a flow's own links: its RTT minus the delays of the links of its routes.
    pub(super) fn access(&self, rtt: Time, routes: [u16; 2]) -> Time {
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
    pub(super) fn may_reorder(&self, route: u16) -> bool {
        let last = self.routes[usize::from(route)].last();
        let changes = self
            .changes
            .iter()
            .any(|change| matches!(change.what, Changed::Delay(link, _) if usize::from(link) == last));
        changes || self.links[last].motion.is_some()
    }
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

/// Checks that no flow with ECN passes a link with the router protocol VCP.
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
