//! The links of a path without I/O: packets and times in, deliveries out.
//!
//! All times are exact and do not depend on the time of the caller's calls: a late caller delivers late,
//! without an effect on later packets. The links are those of the simulator, with the same streams of random
//! numbers; departures are computed one by one, for rates may change.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use lfn_header::Header;
use lfn_path::{Ecn, Limit, Packet, PacketKind, QueuedLink, Router, Service};
use lfn_sim::ack_path::AckPath;
use lfn_sim::config::{Change, Changed, LinkConfig, LinkId};
use lfn_sim::impair::{Motion, RandomLoss};
use lfn_sim::rng::Stream;
use lfn_units::Time;

use crate::EmulatorError;

/// Links in the order in which a packet meets them, and the delay beyond the last.
#[derive(Clone, Debug)]
pub struct Route {
    /// Numbers of links.
    pub links: Vec<LinkId>,
    /// From the far end of the last link to the host.
    pub access: Time,
}

/// The configuration of a network.
#[derive(Clone, Debug)]
pub struct NetworkConfig {
    /// Seed of every named random stream.
    pub seed: u64,
    /// Directed links.
    pub links: Vec<LinkConfig>,
    /// Routes over them.
    pub routes: Vec<Route>,
    /// Changes of links, in order of time; routes do not change.
    pub changes: Vec<Change>,
    /// Largest packet on the wire, in bytes.
    pub largest_packet_bytes: u32,
    /// Packets with successive tokens that arrive within this time are delivered together, with the last of
    /// them. Nothing waits for a packet that is not on its way.
    pub together: Time,
}

impl NetworkConfig {
    /// The schedule and the traces of the links begin only at `start`.
    pub fn begin_at(&mut self, start: Time) {
        for change in &mut self.changes {
            change.at = change.at.after(start);
        }
        for link in &mut self.links {
            if let Service::Trace(trace, _) = &mut link.service {
                *trace = trace.clone().beginning_at(start);
            }
        }
    }
}

/// Kind of a packet, by its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Payload, or what is not TCP.
    Data,
    /// An acknowledgement alone.
    Ack,
    /// Begins or ends a connection, without payload.
    Handshake,
}

impl Kind {
    /// As queues count it: packets of handshakes as data.
    fn in_queue(self) -> PacketKind {
        match self {
            Kind::Ack => PacketKind::Ack,
            Kind::Data | Kind::Handshake => PacketKind::Data,
        }
    }
}

/// A packet that enters the network.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// The owner's own. Successive ones mark packets that may be delivered together.
    pub token: u64,
    /// Number of its route.
    pub route: u16,
    /// Number of its flow, for fair queueing.
    pub flow: u32,
    /// Size on the wire in bytes; above 0.
    pub bytes: u32,
    /// Packets without payload have losses and delays of their own.
    pub kind: Kind,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its header for routers.
    pub header: Header,
}

/// A packet at its destination.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delivery {
    /// When.
    pub at: Time,
    /// As it set out.
    pub token: u64,
    /// As it set out.
    pub route: u16,
    /// Its ECN field, marked on its way or before.
    pub ecn: Ecn,
    /// Its header, as routers changed it.
    pub header: Header,
}

/// Packets that were delivered or lost.
#[derive(Debug, Default)]
pub struct Events {
    /// Arrived, those of each route in order.
    pub delivered: Vec<Delivery>,
    /// Tokens of packets dropped or lost.
    pub gone: Vec<u64>,
    /// Tokens of packets that will arrive once more.
    pub doubled: Vec<u64>,
}

struct LinkState {
    name: String,
    server: QueuedLink,
    delay: Time,
    /// Smallest delay after a link until the packet is delivered, or arrives at the next link.
    beyond: Time,
    loss: RandomLoss,
    /// Loss of handshakes' packets, with other draws.
    handshake_loss: RandomLoss,
    motion: Option<Box<Motion>>,
    acks: Option<AckPath>,
    router: Option<Box<Router>>,
    draws: Stream,
}

/// A packet between links of its route.
#[derive(Clone, Copy)]
struct InTransit {
    departure: Departure,
    hop: usize,
    lost: bool,
}

/// Packets under way behind a link, in order of time.
#[derive(Default)]
struct Line {
    packets: VecDeque<(Time, usize)>,
    /// Last token and first and last arrival of each group that is delivered together; on the last link
    /// of a route alone.
    groups: VecDeque<Group>,
}

struct Group {
    token: u64,
    first: Time,
    last: Time,
    packets: usize,
}

#[derive(Clone, Copy)]
enum Next {
    Change,
    Depart(usize),
    Line(usize),
    Straggler,
}

/// The state of all links and of the packets on them.
pub struct Network {
    links: Vec<LinkState>,
    routes: Vec<Route>,
    changes: VecDeque<Change>,
    together: Time,
    packets: Vec<InTransit>,
    free: Vec<usize>,
    /// One for each hop of each route; those of a route begin at `first_line`.
    lines: Vec<Line>,
    first_line: Vec<usize>,
    /// Packets that overtake or are overtaken: time, running number, slot.
    stragglers: BinaryHeap<Reverse<(Time, u64, usize)>>,
    numbered: u64,
    now: Time,
    dropped: Vec<Packet>,
}

impl Network {
    /// An empty network at time 0.
    ///
    /// # Errors
    /// [`EmulatorError::Scenario`] when a link's parameters are out of range, or when its router speaks a
    /// protocol that real packets do not carry.
    pub fn new(config: &NetworkConfig) -> Result<Network, EmulatorError> {
        let mut links = config
            .links
            .iter()
            .map(|link| LinkState::new(link, config))
            .collect::<Result<Vec<_>, EmulatorError>>()?;
        for (number, link) in links.iter_mut().enumerate() {
            let beyond = config.routes.iter().filter_map(|route| match route.links.split_last() {
                Some((_, before)) if before.contains(&LinkId(number as u16)) => Some(Time::ZERO),
                Some((&last, _)) if last.index() == number => Some(route.access),
                _ => None,
            });
            link.beyond = beyond.min().unwrap_or(Time::ZERO);
        }
        let mut first_line = Vec::new();
        let mut lines = Vec::new();
        for route in &config.routes {
            first_line.push(lines.len());
            lines.extend(route.links.iter().map(|_| Line::default()));
        }
        Ok(Network {
            links,
            routes: config.routes.clone(),
            changes: config.changes.iter().copied().collect(),
            together: config.together,
            packets: Vec::new(),
            free: Vec::new(),
            lines,
            first_line,
            stragglers: BinaryHeap::new(),
            numbered: 0,
            now: Time::ZERO,
            dropped: Vec::new(),
        })
    }

    /// Links in their order: name, queue and server, packets lost behind the queue so far.
    pub fn links(&self) -> impl Iterator<Item = (&str, &QueuedLink, u64)> {
        self.links.iter().map(|link| (&*link.name, &link.server, link.loss.lost))
    }

    /// Restarts the counters of all links.
    pub fn restart_counters(&mut self) {
        for link in &mut self.links {
            link.server.reset_counters(self.now);
        }
    }

    /// Whether a router measures load for VCP.
    pub fn meters_load(&self) -> bool {
        self.links.iter().any(|link| link.router.is_some())
    }

    /// When the owner must ask again: nothing is delivered before. [`Time::NEVER`] when nothing is under
    /// way and nothing will change.
    pub fn next_at(&self) -> Time {
        let changes = self.changes.front().map(|change| change.at);
        let stragglers = self.stragglers.peek().map(|Reverse(straggler)| straggler.0);
        let lines = self.lines.iter().filter_map(Line::due);
        let links = self.links.iter().map(|link| link.server.free_at().after(link.delay).after(link.beyond));
        changes.into_iter().chain(stragglers).chain(lines).chain(links).min().unwrap_or(Time::NEVER)
    }

    /// A packet enters at `now`, which is not before any earlier time given to the network.
    pub fn offer(&mut self, now: Time, departure: Departure, events: &mut Events) {
        self.advance(now, events);
        let transit = InTransit { departure, hop: 0, lost: false };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.packets[slot] = transit;
                slot
            }
            None => {
                self.packets.push(transit);
                self.packets.len() - 1
            }
        };
        self.enter(slot, events);
    }

    /// Processes all events up to `now`.
    pub fn advance(&mut self, now: Time, events: &mut Events) {
        while let Some((at, next)) = self.next().filter(|&(at, _)| at <= now) {
            self.now = at;
            match next {
                Next::Change => self.change(),
                Next::Depart(link) => self.depart(link, events),
                Next::Line(line) => self.leave_line(line, events),
                Next::Straggler => {
                    if let Some(Reverse((at, _, slot))) = self.stragglers.pop() {
                        self.arrive(at, slot, events);
                    }
                }
            }
        }
        self.now = self.now.max(now);
    }

    /// The next event and its time. At one instant changes come first, then departures.
    fn next(&self) -> Option<(Time, Next)> {
        let mut next = self.changes.front().map(|change| (change.at, Next::Change));
        let mut consider = |at: Time, what: Next| {
            if at < next.map_or(Time::NEVER, |(first, _)| first) {
                next = Some((at, what));
            }
        };
        for (number, link) in self.links.iter().enumerate() {
            consider(link.server.free_at(), Next::Depart(number));
        }
        for (number, line) in self.lines.iter().enumerate() {
            consider(line.due().unwrap_or(Time::NEVER), Next::Line(number));
        }
        if let Some(Reverse((at, ..))) = self.stragglers.peek() {
            consider(*at, Next::Straggler);
        }
        next
    }

    /// A packet reaches the link of its hop.
    fn enter(&mut self, slot: usize, events: &mut Events) {
        let now = self.now;
        let InTransit { departure, hop, .. } = self.packets[slot];
        let number = self.routes[usize::from(departure.route)].links[hop].index();
        let link = &mut self.links[number];
        if let Some(router) = &mut link.router {
            router.advance(now, link.server.waiting_bytes());
            router.arrive(departure.bytes, &departure.header);
        }
        let Departure { flow, bytes, kind, ecn, .. } = departure;
        let kind_in_queue = kind.in_queue();
        let packet = Packet { word: slot as u64, more: 0, flow, bytes, kind: kind_in_queue, ecn };
        let draws = &mut link.draws;
        link.server.enqueue(now, packet, || draws.f64(), &mut self.dropped);
        let joined = self.dropped.iter().all(|dropped| dropped.word != packet.word);
        self.packets[slot].lost = joined && link.chooses(kind);
        self.forget_dropped(events);
    }

    /// The server of a link may be free.
    fn depart(&mut self, number: usize, events: &mut Events) {
        let link = &mut self.links[number];
        if let Some(router) = &mut link.router {
            router.advance(self.now, link.server.waiting_bytes());
        }
        let (gone, _) = link.server.depart(self.now, &mut self.dropped);
        if let Some(packet) = gone {
            let slot = packet.word as usize;
            let transit = &mut self.packets[slot];
            transit.departure.ecn = packet.ecn;
            if transit.lost {
                link.loss.lost += u64::from(packet.kind == PacketKind::Data);
                self.forget(slot, events);
            } else {
                if let Some(router) = &mut link.router {
                    let waiting = link.server.waiting_bytes();
                    router.depart(packet.bytes, waiting, &mut transit.departure.header);
                }
                self.travel(number, slot, events);
            }
        }
        self.forget_dropped(events);
    }

    /// A packet has left a link and is on its way to the next, or to the host.
    fn travel(&mut self, number: usize, slot: usize, events: &mut Events) {
        let link = &mut self.links[number];
        let InTransit { departure, hop, .. } = self.packets[slot];
        let mut at = self.now.after(link.delay);
        let mut twice = false;
        if let (Some(motion), Kind::Data) = (&mut link.motion, departure.kind) {
            (at, twice) = motion.apply(at);
        } else if let (Some(acks), Kind::Ack | Kind::Handshake) = (&mut link.acks, departure.kind) {
            at = acks.arrival(self.now, link.delay);
        }
        let route = usize::from(departure.route);
        let is_last = hop + 1 == self.routes[route].links.len();
        if is_last {
            at = at.after(self.routes[route].access);
        }
        if twice {
            events.doubled.push(departure.token);
            self.packets.push(self.packets[slot]);
            let copy = self.packets.len() - 1;
            self.straggle(at, copy);
        }
        let line = &mut self.lines[self.first_line[route] + hop];
        if line.packets.back().is_some_and(|&(before, _)| before > at) {
            return self.straggle(at, slot);
        }
        line.packets.push_back((at, slot));
        if is_last {
            line.join_group(at, departure.token, self.together);
        }
    }

    fn straggle(&mut self, at: Time, slot: usize) {
        self.stragglers.push(Reverse((at, self.numbered, slot)));
        self.numbered += 1;
    }

    fn leave_line(&mut self, number: usize, events: &mut Events) {
        let count = self.lines[number].groups.pop_front().map_or(1, |group| group.packets);
        for _ in 0..count {
            if let Some((at, slot)) = self.lines[number].packets.pop_front() {
                self.arrive(at, slot, events);
            }
        }
    }

    /// A packet arrives behind a link.
    fn arrive(&mut self, at: Time, slot: usize, events: &mut Events) {
        let transit = &mut self.packets[slot];
        let Departure { token, route, ecn, header, .. } = transit.departure;
        if transit.hop + 1 < self.routes[usize::from(route)].links.len() {
            transit.hop += 1;
            return self.enter(slot, events);
        }
        events.delivered.push(Delivery { at, token, route, ecn, header });
        self.free.push(slot);
    }

    fn forget(&mut self, slot: usize, events: &mut Events) {
        events.gone.push(self.packets[slot].departure.token);
        self.free.push(slot);
    }

    fn forget_dropped(&mut self, events: &mut Events) {
        while let Some(packet) = self.dropped.pop() {
            self.forget(packet.word as usize, events);
        }
    }

    fn change(&mut self) {
        let Some(Change { what, .. }) = self.changes.pop_front() else { return };
        let now = self.now;
        match what {
            Changed::Rate(number, rate) => {
                let link = &mut self.links[number.index()];
                if let Some(router) = &mut link.router {
                    router.advance(now, link.server.waiting_bytes());
                    router.set_rate(rate);
                }
                link.server.set_rate(now, rate);
            }
            Changed::Delay(number, delay) => self.links[number.index()].delay = delay,
            Changed::Loss(number, p) => {
                let link = &mut self.links[number.index()];
                link.loss.change(p);
                link.handshake_loss.change(p);
            }
            Changed::Route { .. } => {}
        }
    }
}

impl Line {
    /// When its head, or the group that its head begins, is due.
    fn due(&self) -> Option<Time> {
        self.groups.front().map(|group| group.last).or(self.packets.front().map(|&(at, _)| at))
    }

    fn join_group(&mut self, at: Time, token: u64, together: Time) {
        if let Some(group) = self.groups.back_mut() {
            if group.token + 1 == token && at.since(group.first) <= together {
                (group.token, group.last) = (token, at);
                group.packets += 1;
                return;
            }
        }
        self.groups.push_back(Group { token, first: at, last: at, packets: 1 });
    }
}

impl LinkState {
    /// Whether a packet that joins the queue will be lost behind it, by chance, as in the simulator.
    fn chooses(&mut self, kind: Kind) -> bool {
        let by_acks = |acks: &mut Option<AckPath>| acks.as_mut().is_some_and(AckPath::loses);
        match kind {
            Kind::Data => self.loss.chooses(),
            Kind::Ack => by_acks(&mut self.acks),
            Kind::Handshake => by_acks(&mut self.acks) | self.handshake_loss.chooses(),
        }
    }

    fn new(config: &LinkConfig, network: &NetworkConfig) -> Result<LinkState, EmulatorError> {
        let name = &config.name;
        let bad = |found: String| {
            EmulatorError::scenario(format!("link {name}"), found, "allowed: what the simulator can run")
        };
        let stream = |purpose: &str| Stream::new(network.seed, &format!("link.{name}.{purpose}"));
        if config.bleach {
            return Err(EmulatorError::scenario(
                format!("bleach of link {name}"),
                "no ECN is erased from packets of real stacks",
                "allowed: false",
            ));
        }
        let rate = config.service.mean_rate();
        let salt = stream("fq-codel").u64();
        let aqm = config.queue.build(rate, config.delay, salt).map_err(|why| bad(why.to_string()))?;
        let router = match config.router {
            None => None,
            Some(router @ lfn_path::RouterConfig::Vcp(_)) => {
                let mut draws = stream("router");
                Some(Box::new(router.build(1, rate, || draws.f64())))
            }
            Some(_) => {
                return Err(EmulatorError::scenario(
                    format!("router of link {name}"),
                    "its header is one that packets of real stacks do not carry",
                    "allowed: no router, or \"vcp\", whose two bits are those of ECN",
                ));
            }
        };
        let loss = |purpose| {
            RandomLoss::new(config.impair.loss, true, || stream(purpose)).map_err(|why| bad(why.to_string()))
        };
        Ok(LinkState {
            name: name.clone(),
            server: QueuedLink::new(
                config.service.clone(),
                aqm,
                Limit { packets: config.limit_packets, bytes: config.limit_bytes },
                network.largest_packet_bytes,
            )
            .policed(config.policer),
            delay: config.delay,
            beyond: Time::ZERO,
            loss: loss("loss")?,
            handshake_loss: loss("loss.handshake")?,
            motion: Motion::new(&config.impair, false, stream).map_err(|why| bad(why.to_string()))?,
            acks: match &config.acks {
                Some(acks) => Some(AckPath::new(acks, stream).map_err(|why| bad(why.to_string()))?),
                None => None,
            },
            router,
            draws: stream("red"),
        })
    }
}
