//! A simulation before its first event: all that its configuration names must exist and fit together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lfn_law::{Build, LawSpec};
use lfn_path::{Bernoulli, RouterConfig, Service};
use lfn_tcp::SenderConfig;
use lfn_units::{Rate, Time};

use super::sim::Sim;
use crate::clock::events::Kind;
use crate::clock::ids::{LinkId, RouteId};
use crate::clock::scheduler::Scheduler;
use crate::config::{Changed, Config, Connection, FlowConfig, StackConfig, UdpConfig, UdtConfig, Watched};
use crate::ends::breakers::Breakers;
use crate::ends::context::Context;
use crate::ends::record::Record;
use crate::ends::sources::Sources;
use crate::ends::stack::Stacks;
use crate::ends::streams::Streams;
use crate::ends::tcp::{AtWarmup, Reported, TcpFlows};
use crate::ends::transfers::transfers;
use crate::ends::udp::UdpSources;
use crate::ends::udt::UdtFlows;
use crate::ends::Ends;
use crate::error::SimError;
use crate::misbehaving::Misbehaviour;
use crate::network::links::{LinkState, Use};
use crate::network::Network;
use crate::rng;
use crate::summary::Frames;

impl Sim {
    /// A simulation at time 0.
    ///
    /// # Errors
    /// [`SimError`] if something is named that is not there, or parameters make no sense together.
    pub fn new(config: &Config) -> Result<Sim, SimError> {
        let connections = check_names(config)?;
        let random = rng::Streams::of_run(config.seed);
        let links = links_of(config, &connections, &random)?;
        let network = Network::new(config, links);
        let transfers = transfers(config, &connections);
        check_breakers(config, transfers.len())?;
        let sources = usize::from(config.background.is_some()) + config.traffic.len();
        let mut sim = Sim {
            context: Context {
                duration: config.duration,
                network,
                scheduler: Scheduler::default(),
                record: Record::new(config.warmup),
            },
            ends: Ends {
                tcp: TcpFlows::new(config, sources),
                udt: UdtFlows::new(config.udt.len()),
                udp: UdpSources::default(),
                stacks: Stacks::default(),
                sources: Sources::default(),
                breakers: Breakers::new(config, |number| transfers[number as usize].streams.clone()),
            },
            transfers,
            connections,
            seed: config.seed,
            draws: false,
            sample: config.sample,
            is_sampled: true,
        };
        for (number, change) in config.changes.iter().enumerate() {
            sim.context.scheduler.schedule(change.at, Kind::Change, number);
        }
        sim.add_flows(config)?;
        let cx = &mut sim.context;
        for source in &config.udp {
            sim.ends.udp.add(cx, &random, source)?;
        }
        sim.ends.breakers.begin(cx, &sim.ends);
        if config.warmup > Time::ZERO {
            cx.scheduler.schedule(config.warmup, Kind::Warmup, 0);
        }
        cx.scheduler.schedule(config.warmup + Time::from_s(1), Kind::Second, 0);
        if config.sample.is_some() {
            cx.scheduler.schedule(Time::ZERO, Kind::Sample, 0);
        }
        let Ends { tcp, sources, .. } = &mut sim.ends;
        if let Some(background) = &config.background {
            sources.add_background(cx, tcp, &random, background);
        }
        for traffic in &config.traffic {
            sources.add_model(cx, &random, traffic)?;
        }
        sim.draws = random.are_taken();
        Ok(sim)
    }

    /// The flows that are reported: first all over TCP, then those over UDT.
    fn add_flows(&mut self, config: &Config) -> Result<(), SimError> {
        let mut rerouted = vec![false; self.connections.len()];
        for change in &config.changes {
            if let Changed::Route { flow, .. } = change.what {
                rerouted[flow as usize] = true;
            }
        }
        let mut numbers = vec![0; config.flows.len()];
        for (number, &connection) in (0..).zip(&self.connections) {
            if let Connection::Tcp(index) = connection {
                numbers[index] = number;
            }
        }
        let (mut tcp, mut udt) = (vec![0; config.flows.len()], vec![0; config.udt.len()]);
        let mut stacks = vec![0; config.stacks.len()];
        for (number, transfer) in (0..).zip(&self.transfers) {
            match &transfer.streams {
                Streams::Tcp(streams) => tcp[streams.clone()].fill(number),
                Streams::Udt(streams) => udt[streams.clone()].fill(number),
                Streams::Stack(streams) => stacks[streams.clone()].fill(number),
            }
        }
        let mut watched = vec![false; self.transfers.len()];
        for breaker in &config.breakers {
            if let Watched::Flow(transfer) = breaker.watched {
                watched[transfer as usize] = true;
            }
        }
        let cx = &mut self.context;
        let mut sender = None;
        for ((flow, number), transfer) in config.flows.iter().zip(numbers).zip(tcp) {
            // When segments come in order is told by events.
            let has_deadline = flow.application.is_some_and(|application| application.deadline.is_some());
            let by_event = rerouted[number as usize] || watched[transfer as usize] || has_deadline;
            let reported = Reported {
                config: flow.clone(),
                number,
                transfer,
                started: false,
                written: 0,
                in_order: 0,
                frames: Frames::default(),
                counted: cx.record.warmup..=cx.duration,
                at_warmup: AtWarmup::default(),
                at_end: None,
                tripped: None,
            };
            self.ends.tcp.add_reported(cx, &sender_of(&mut sender, flow), by_event, reported);
        }
        for (flow, transfer) in config.udt.iter().zip(udt) {
            self.ends.udt.add(cx, flow, transfer)?;
        }
        for (stack, transfer) in config.stacks.iter().zip(stacks) {
            self.ends.stacks.add(cx, stack, transfer);
        }
        Ok(())
    }
}

/// Settings of a flow's sender, shared with the flow before it if they are equal.
fn sender_of(last: &mut Option<Arc<SenderConfig>>, flow: &FlowConfig) -> Arc<SenderConfig> {
    if last.as_deref() != Some(&flow.sender) {
        *last = None;
    }
    Arc::clone(last.get_or_insert_with(|| Arc::new(flow.sender)))
}

fn links_of(
    config: &Config,
    connections: &[Connection],
    random: &rng::Streams,
) -> Result<Vec<LinkState>, SimError> {
    let mut modelled = slow_for_acks(config, connections);
    // Links whose departures are events.
    let mut changing: BTreeSet<LinkId> = BTreeSet::new();
    let mut data_routes: BTreeSet<RouteId> =
        connections.iter().map(|&connection| config.routes_of(connection).0).collect();
    let sends = |source: &&UdpConfig| source.traffic.offered_bps(config.duration) > 0.0;
    data_routes.extend(config.udp.iter().filter(sends).map(|source| source.route));
    // Both ends of a stack send datagrams.
    data_routes.extend(config.stacks.iter().map(|stack| stack.ack_route));
    if let Some(background) = &config.background {
        let traffic = &background.traffic;
        // The ACKs of one direction travel with the data of the other.
        if traffic.forward.0 > 0 || traffic.reverse.0 > 0 || traffic.long_flows > 0 {
            data_routes.extend(background.carrier.routes);
        }
    }
    data_routes.extend(config.traffic.iter().flat_map(|traffic| traffic.carrier.routes));
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
    modelled.extend(data_routes.iter().flat_map(|&route| &config.routes[route.index()]));
    // On a link that is down nothing leaves at a known time.
    let down =
        config.links.iter().zip(0..).filter(|(link, _)| matches!(link.service, Service::Rate(Rate(0))));
    changing.extend(down.map(|(_, number)| LinkId(number)));
    modelled.extend(&changing);
    // Recorded, departures are events, so that rows come in order of time.
    if let Some(capture) = &config.capture {
        changing.extend(&capture.links);
    }
    let packets = config.flows.iter().map(|flow| flow.wire_bytes);
    let packets = packets.chain(config.udt.iter().map(UdtConfig::wire_bytes));
    let packets = packets.chain(config.stacks.iter().map(StackConfig::wire_bytes));
    let datagrams = config.udp.iter().map(|source| source.traffic.packet_bytes);
    let largest_packet_bytes = packets.chain(datagrams).max().unwrap_or(1500).max(1500);
    let rtts = config.flows.iter().map(|flow| flow.rtt).chain(config.udt.iter().map(|flow| flow.rtt));
    let rtts = rtts.chain(config.stacks.iter().map(|stack| stack.rtt));
    let longest = rtts.max().unwrap_or(Time::ZERO);
    let laws =
        config.flows.iter().map(|flow| &flow.law).chain(config.traffic.iter().map(|it| &it.carrier.law));
    let headers: BTreeSet<_> = laws.filter_map(LawSpec::header).collect();
    let losing = config.changes.iter().filter_map(|change| match change.what {
        Changed::Loss(link, p) => (p > 0.0).then_some(link),
        _ => None,
    });
    let losing: BTreeSet<LinkId> = losing.collect();
    let states = config.links.iter().zip(0..).map(|(link, number)| {
        let usage = Use {
            by_event: changing.contains(&LinkId(number)),
            modelled: modelled.contains(&LinkId(number))
                || !matches!(link.service, Service::Rate(_))
                || link.policer.is_some()
                || link.acks.is_some(),
            largest_packet_bytes,
            one_way: Time(longest.0 / 2),
            header_name: number + 1,
            is_asked: link.router.is_some_and(|router| headers.contains(&router.header())),
            loss_changes: losing.contains(&LinkId(number)),
        };
        LinkState::new(link, &usage, random)
    });
    states.collect()
}

/// Checks that every name refers to an existing part.
fn check_names(config: &Config) -> Result<Vec<Connection>, SimError> {
    let unknown = |text: String| Err(SimError::Unknown(text));
    for (number, route) in config.routes.iter().enumerate() {
        if route.is_empty() || route.iter().any(|&link| link.index() >= config.links.len()) {
            return unknown(format!("route {number} names a link that is not there, or none"));
        }
    }
    let routes = |route: RouteId| route.index() < config.routes.len();
    let Some(connections) = config.connections() else {
        return unknown(
            "the numbers of flows over UDT and of stacks are not places among all flows, each once".into(),
        );
    };
    let flows = connections.iter().flat_map(|&connection| <[RouteId; 2]>::from(config.routes_of(connection)));
    let udp = config.udp.iter().map(|source| source.route);
    let carriers = config.background.iter().map(|background| &background.carrier);
    let carriers = carriers.chain(config.traffic.iter().map(|traffic| &traffic.carrier));
    let carried = carriers.flat_map(|carrier| carrier.routes);
    if let Some(route) = flows.chain(udp).chain(carried).find(|&route| !routes(route)) {
        return unknown(format!("there is no route {}", route.0));
    }
    let recorded = config.capture.iter().flat_map(|capture| &capture.links);
    if let Some(link) = recorded.into_iter().find(|&&link| link.index() >= config.links.len()) {
        return unknown(format!("there is no link {} to record", link.0));
    }
    let mut before = Time::ZERO;
    for (number, change) in config.changes.iter().enumerate() {
        let known = match change.what {
            Changed::Rate(link, _) | Changed::Delay(link, _) | Changed::Loss(link, _) => {
                link.index() < config.links.len()
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
            let link = config.links[link.index()].name.clone();
            Bernoulli::new(p, || 0.5).map_err(|source| SimError::Impair { link, source })?;
        }
    }
    let cannot = |stack: &&StackConfig| {
        !stack.law.prototype().is_some_and(|known| matches!(known.build, Some(Build::Stack(_))))
    };
    if let Some(stack) = config.stacks.iter().find(cannot) {
        return unknown(format!("flow {}: {} is no stack that can be run", stack.number, stack.law));
    }
    check_ecn(config, &connections)?;
    Ok(connections)
}

/// Checks that circuit breakers watch existing flows.
fn check_breakers(config: &Config, transfers: usize) -> Result<(), SimError> {
    for (number, breaker) in config.breakers.iter().enumerate() {
        let known = match breaker.watched {
            Watched::Flow(transfer) => (transfer as usize) < transfers,
            Watched::Udp(index) => index < config.udp.len(),
        };
        if !known {
            return Err(SimError::Unknown(format!("breaker {number} watches something that is not there")));
        }
    }
    Ok(())
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
        // It may have.
        Connection::Stack(_) => true,
    };
    for (number, route) in ways.chain(changed).filter(|&(number, _)| has_ecn(number)) {
        let mut links = config.routes[route.index()].iter().map(|&link| &config.links[link.index()]);
        if let Some(link) = links.find(|link| matches!(link.router, Some(RouterConfig::Vcp(_)))) {
            return Err(SimError::EcnBesideVcp { flow: number, link: link.name.clone() });
        }
    }
    Ok(())
}

/// Links on which ACKs may have to wait although no data travel there, since together the bottlenecks,
/// at the highest rates that they will have, can send more of them than the link carries.
fn slow_for_acks(config: &Config, connections: &[Connection]) -> BTreeSet<LinkId> {
    let mut rates: Vec<Rate> = config.links.iter().map(|link| link.service.mean_rate()).collect();
    let mut ways: Vec<(Connection, (RouteId, RouteId))> =
        connections.iter().map(|&connection| (connection, config.routes_of(connection))).collect();
    for change in &config.changes {
        match change.what {
            Changed::Rate(link, rate) => {
                let highest = &mut rates[link.index()];
                *highest = rate.max(*highest);
            }
            Changed::Route { flow, route, ack_route } => {
                ways.push((connections[flow as usize], (route, ack_route)));
            }
            Changed::Delay(..) | Changed::Loss(..) => {}
        }
    }
    let rate = |link: LinkId| rates[link.index()];
    let handshakes = config.flows.iter().filter(|flow| flow.sender.handshake).count();
    let mut bottlenecks: BTreeMap<LinkId, BTreeMap<LinkId, f64>> = BTreeMap::new();
    for (connection, (route, ack_route)) in ways {
        let slowest = config.routes[route.index()].iter().min_by_key(|&&link| (rate(link), link));
        let Some(&slowest) = slowest else { continue };
        let data_bps = rate(slowest).as_bps();
        let acks_bps = match connection {
            Connection::Tcp(flow) => {
                let flow = &config.flows[flow];
                let acks = flow.misbehaves.map_or(1, Misbehaviour::most_acks) * flow.ack_bytes;
                // The SYNs of several flows may come one after another, and each asks for a SYN-ACK of its size.
                let opens = flow.sender.handshake && handshakes > 1;
                let share = f64::from(acks) / f64::from(flow.wire_bytes);
                data_bps * if opens { share.max(1.0) } else { share }
            }
            Connection::Udt(flow) => config.udt[flow].acks_bps(data_bps),
            // Its links are modelled.
            Connection::Stack(_) => 0.0,
        };
        for &link in &config.routes[ack_route.index()] {
            let most = bottlenecks.entry(link).or_default().entry(slowest).or_default();
            *most = most.max(acks_bps);
        }
    }
    let slow = bottlenecks.iter().filter(|(&link, acks)| acks.values().sum::<f64>() > rate(link).as_bps());
    slow.map(|(&link, _)| link).collect()
}
