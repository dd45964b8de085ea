//! The way of packets over links, hop by hop.
//!
//! A packet is offered to a link; where it leaves, and when, is known at once or comes as an event; from
//! there it goes on to the next link of its route, or to the end.

use lfn_header::Header;
use lfn_path::{Offer, Packet};
use lfn_tcp::Segment;
use lfn_units::Time;

use super::links::{LinkState, Server};
use super::{Sim, Traveller};
use crate::config::{Changed, Connection};
use crate::events::Kind;
use crate::flow::{Role, NO_WIRE};
use crate::summary::UdpSummary;
use crate::traffic::udp::Udp;
use crate::transit::{Cargo, Extras, Parcel, Place};

/// Links in the order in which a packet meets them, and the wires between them.
pub(super) struct Route {
    pub links: Vec<u16>,
    /// From each link to the next, for each cargo; made when first used.
    wires: Vec<[u32; Cargo::COUNT]>,
}

impl Route {
    pub fn new(links: &[u16]) -> Route {
        Route { links: links.to_vec(), wires: vec![[NO_WIRE; Cargo::COUNT]; links.len()] }
    }

    pub fn last(&self) -> usize {
        self.links.last().map_or(0, |&link| usize::from(link))
    }
}

/// Keeps flows over UDT apart from others.
const UDT_KEY: u32 = 1 << 31;

/// A UDP source.
pub(super) struct UdpState {
    pub traffic: Udp,
    pub route: u16,
    pub packet_bytes: u32,
    /// To its receiver.
    pub wire: u32,
    pub report: UdpSummary,
}

/// A packet in a queue whose departures are events.
pub(super) struct Waiting {
    pub place: Place,
    parcel: Parcel,
    extras: Extras,
    /// Will be lost behind the queue. Nothing waits for it, so that a flow is done at the same time
    /// whatever the server.
    pub lost: bool,
}

impl Sim {
    /// A data packet of a flow sets out.
    pub(super) fn send_data(&mut self, index: usize, segment: Segment) {
        let flow = &mut self.flows[index];
        flow.under_way += 1;
        let place = Place { cargo: Cargo::Data, route: flow.route, hop: 0 };
        let mut extras = Extras::default();
        if flow.protocol.is_some() {
            extras.header = flow.sender.header();
        }
        self.offer(place, Parcel::of_segment(index, segment), &extras);
    }

    /// A packet arrives at the link of its place.
    pub(super) fn offer(&mut self, place: Place, parcel: Parcel, extras: &Extras) {
        let now = self.now;
        let at = usize::from(self.routes[usize::from(place.route)].links[usize::from(place.hop)]);
        let who = self.traveller(place, parcel);
        if let Some(capture) = &mut self.capture {
            capture.arrives(now, at, &who, parcel, &extras.blocks);
        }
        let link = &mut self.links[at];
        if !link.modelled {
            let departs = now + link.serialisation(who.bytes);
            return self.depart(at, departs, place, parcel, extras);
        }
        let draws = &mut link.draws;
        let kind = place.cargo.packet_kind();
        match &mut link.server {
            Server::Closed(server) => match server.offer(now, kind, who.bytes, who.ect, || draws.f64()) {
                Offer::Dropped(_) => self.drop_parcel(at, place, parcel, extras),
                Offer::Departs { at: departs, marked } => {
                    if link.chooses(place.cargo) {
                        link.loss.lose(now, departs);
                        self.lose(place, parcel);
                    } else {
                        self.depart(at, departs, place, parcel.marked(marked), extras);
                    }
                }
            },
            Server::Queued(server) => {
                if let Some(router) = &mut link.router {
                    router.advance(now, server.waiting_bytes());
                    let asks = if place.cargo.asks_routers() { &extras.header } else { &Header::None };
                    router.arrive(who.bytes, asks);
                }
                let slot = match self.free_slots.pop() {
                    Some(slot) => slot,
                    None => {
                        self.waiting.push(None);
                        self.waiting.len() as u64 - 1
                    }
                };
                self.waiting[slot as usize] = Some(Waiting { place, parcel, extras: *extras, lost: false });
                let flow = fair_queueing_key(place.cargo, parcel);
                let (bytes, ect) = (who.bytes, who.ect);
                let packet = Packet { word: slot, flow, bytes, kind, ect, ce: parcel.ce() && ect };
                let due = server.enqueue(now, packet, || draws.f64(), &mut self.dropped);
                let joined = self.dropped.iter().all(|dropped| dropped.word != slot);
                if joined && link.chooses(place.cargo) {
                    if let Some(waiting) = &mut self.waiting[slot as usize] {
                        waiting.lost = true;
                    }
                    self.lose(place, parcel);
                }
                if let Some(due) = due {
                    self.transit.events.push(due, Kind::Depart, at);
                }
                self.take_dropped(at);
            }
        }
    }

    /// The number of a flow over TCP, those of crowds behind all that are reported.
    pub(super) fn number_of(&self, index: usize) -> u32 {
        self.numbers.get(index).copied().unwrap_or((index + self.udt.len()) as u32)
    }

    /// A packet as links see it.
    fn traveller(&self, place: Place, parcel: Parcel) -> Traveller {
        match place.cargo {
            Cargo::Udp => Traveller {
                bytes: self.udp[parcel.flow()].packet_bytes,
                ect: false,
                cargo: Cargo::Udp,
                seq: 0,
                payload_bytes: self.udp[parcel.flow()].packet_bytes,
                number: parcel.flow() as u32,
                reverse: false,
            },
            Cargo::UdtData | Cargo::UdtControl => self.udt_traveller(place.cargo, parcel),
            Cargo::Syn | Cargo::SynAck => self.handshake_traveller(place.cargo, parcel),
            cargo => {
                let flow = &self.flows[parcel.flow()];
                let seq = parcel.seq(flow.sender.una());
                let data = cargo == Cargo::Data;
                let bytes = if data { flow.wire_bytes_of(seq) } else { flow.ack_bytes };
                Traveller {
                    bytes,
                    ect: data && flow.ect[usize::from(parcel.is_retransmission())],
                    cargo,
                    seq,
                    payload_bytes: if data { flow.payload_bytes - (flow.wire_bytes - bytes) } else { 0 },
                    number: self.number_of(parcel.flow()),
                    reverse: (flow.direction as usize == 1) == data,
                }
            }
        }
    }

    fn take_waiting(&mut self, slot: u64) -> Option<Waiting> {
        self.free_slots.push(slot);
        self.waiting[slot as usize].take()
    }

    /// Counts the packets that a queue dropped in the last call.
    fn take_dropped(&mut self, at: usize) {
        while let Some(packet) = self.dropped.pop() {
            if let Some(waiting) = self.take_waiting(packet.word) {
                // Already counted as a random loss; do not count the drop again.
                if !waiting.lost {
                    self.drop_parcel(at, waiting.place, waiting.parcel, &waiting.extras);
                }
            }
        }
    }

    fn drop_parcel(&mut self, at: usize, place: Place, parcel: Parcel, extras: &Extras) {
        if self.capture.is_some() {
            let who = self.traveller(place, parcel);
            if let Some(capture) = &mut self.capture {
                capture.dropped(self.now, at, &who, parcel, &extras.blocks);
            }
        }
        match place.cargo {
            Cargo::Udp => self.udp[parcel.flow()].report.dropped += 1,
            Cargo::Ack | Cargo::UdtControl => self.acks_dropped += 1,
            Cargo::Data | Cargo::UdtData | Cargo::Syn | Cargo::SynAck => {}
        }
        self.forget(place, parcel);
    }

    /// A packet will be lost behind the queue that it just joined.
    fn lose(&mut self, place: Place, parcel: Parcel) {
        if place.cargo == Cargo::Udp {
            self.udp[parcel.flow()].report.lost += 1;
        }
        self.forget(place, parcel);
    }

    /// A packet is in the network no more.
    fn forget(&mut self, place: Place, parcel: Parcel) {
        match place.cargo {
            Cargo::Data | Cargo::Ack | Cargo::Syn | Cargo::SynAck => {
                self.flows[parcel.flow()].under_way -= 1;
                self.retire_if_silent(parcel.flow());
            }
            Cargo::UdtControl => drop(self.control.take(parcel.slot())),
            Cargo::Udp | Cargo::UdtData => {}
        }
    }

    /// A packet's last bit leaves link `at` at `departs`, now or later.
    fn depart(&mut self, at: usize, departs: Time, place: Place, parcel: Parcel, extras: &Extras) {
        if self.capture.is_some() {
            let who = self.traveller(place, parcel);
            if let Some(capture) = &mut self.capture {
                capture.departs(departs, at, &who, parcel, &extras.blocks);
            }
        }
        let link = &mut self.links[at];
        let mut arrives = departs.after(link.delay);
        let mut twice = false;
        if let (Some(motion), true) = (&mut link.motion, place.cargo.has_payload()) {
            (arrives, twice) = motion.apply(arrives);
        }
        if twice {
            self.copies += 1;
            if place.cargo == Cargo::Data {
                self.flows[parcel.flow()].under_way += 1;
            }
            self.arrive(arrives, place, parcel, extras);
        }
        self.arrive(arrives, place, parcel, extras);
    }

    /// A packet arrives behind a link at `at`, now or later.
    fn arrive(&mut self, at: Time, place: Place, parcel: Parcel, extras: &Extras) {
        let index = parcel.flow();
        let route = &mut self.routes[usize::from(place.route)];
        let hop = usize::from(place.hop);
        if hop + 1 < route.links.len() {
            let wire = &mut route.wires[hop][place.cargo as usize];
            if *wire == NO_WIRE {
                *wire = self.transit.wire(Kind::AtLink, Place { hop: place.hop + 1, ..place });
            }
            return self.transit.send_parcel(*wire, at, parcel, extras);
        }
        match place.cargo {
            Cargo::Udp => self.transit.send_parcel(self.udp[index].wire, at, parcel, extras),
            Cargo::UdtData | Cargo::UdtControl => {
                let (wire, access) = self.udt[index].last_leg(place.cargo, parcel);
                self.transit.send_parcel(wire, at + access, parcel, extras);
            }
            Cargo::Syn | Cargo::SynAck => self.end_of_handshake(at, place.cargo, parcel, extras),
            Cargo::Ack => {
                let flow = &self.flows[index];
                self.transit.send_parcel(flow.return_wire, at + flow.return_access, parcel, extras);
            }
            Cargo::Data => {
                let flow = &mut self.flows[index];
                let at = at + flow.forward_access;
                if flow.by_event {
                    return self.transit.send_parcel(flow.receiver_wire, at, parcel, extras);
                }
                self.receive(index, at, parcel, extras);
            }
        }
    }

    /// The receiver of a flow takes a data packet, now or later.
    fn receive(&mut self, index: usize, at: Time, parcel: Parcel, extras: &Extras) {
        let (flow, transit) = (&mut self.flows[index], &mut self.transit);
        flow.under_way -= 1;
        let (segment, ce) = (parcel.segment(flow.sender.una()), parcel.ce());
        if flow.by_event && flow.is_stale(segment) {
            self.acks_sent += flow.refuse(at, index, transit);
            return;
        }
        self.acks_sent += match flow.protocol {
            None => flow.receive(at, segment, ce, index, transit),
            Some(_) => flow.receive_headed(at, segment, ce, extras.header, index, transit),
        };
    }

    /// A packet or an ACK reaches the next link of its route.
    pub(super) fn on_at_link(&mut self, wire: u32) {
        if let Some((place, parcel, extras)) = self.transit.take_parcel(wire) {
            self.offer(place, parcel, &extras);
        }
    }

    /// A data packet reaches the receiver.
    pub(super) fn on_at_receiver(&mut self, index: usize, wire: u32) {
        if let Some((place, parcel, extras)) = self.transit.take_parcel(wire) {
            match place.cargo {
                Cargo::Udp => return self.udp[index].report.delivered += 1,
                Cargo::UdtData => return self.on_udt_data(index, parcel),
                Cargo::UdtControl => return self.on_udt_control(index, parcel),
                Cargo::Syn => return self.on_syn(index, parcel, extras.header),
                Cargo::SynAck => return self.on_syn_ack(index, parcel, extras.header),
                Cargo::Data | Cargo::Ack => {}
            }
            self.receive(index, self.now, parcel, &extras);
            if self.flows[index].takes_message() {
                self.on_message(index);
            }
        }
    }

    /// The server of a link may be free.
    pub(super) fn on_depart(&mut self, at: usize) {
        let link = &mut self.links[at];
        let Server::Queued(server) = &mut link.server else { return };
        if let Some(router) = &mut link.router {
            router.advance(self.now, server.waiting_bytes());
        }
        let (gone, due) = server.depart(self.now, &mut self.dropped);
        if let Some(due) = due {
            self.transit.events.push(due, Kind::Depart, at);
        }
        self.take_dropped(at);
        let Some(packet) = gone else { return };
        match self.take_waiting(packet.word) {
            Some(Waiting { lost: true, .. }) => self.links[at].loss.lost += 1,
            Some(Waiting { place, parcel, mut extras, .. }) => {
                let parcel = parcel.marked(packet.ce && place.cargo == Cargo::Data);
                if let LinkState { router: Some(router), server: Server::Queued(server), .. } =
                    &mut self.links[at]
                {
                    let mut none = Header::None;
                    let header = if place.cargo.asks_routers() { &mut extras.header } else { &mut none };
                    router.depart(packet.bytes, server.waiting_bytes(), header);
                }
                self.depart(at, self.now, place, parcel, &extras);
            }
            None => {}
        }
    }

    pub(super) fn on_udp(&mut self, index: usize) {
        let source = &mut self.udp[index];
        if source.traffic.next().is_none() {
            return;
        }
        source.report.sent += 1;
        let place = Place { cargo: Cargo::Udp, route: source.route, hop: 0 };
        let next = source.traffic.next_at();
        if next < self.duration {
            self.transit.events.push(next, Kind::Udp, index);
        }
        self.offer(place, Parcel::of_udp(index), &Extras::default());
    }

    pub(super) fn on_change(&mut self, number: usize) {
        let now = self.now;
        match self.changes[number].what {
            Changed::Rate(at, rate) => {
                let link = &mut self.links[usize::from(at)];
                link.settle_capacity(now);
                if let (Some(router), Server::Queued(server)) = (&mut link.router, &link.server) {
                    router.advance(now, server.waiting_bytes());
                    router.set_rate(rate);
                }
                if let Server::Queued(server) = &mut link.server {
                    if let Some(due) = server.set_rate(now, rate) {
                        self.transit.events.push(due, Kind::Depart, usize::from(at));
                    }
                }
            }
            Changed::Delay(at, delay) => self.links[usize::from(at)].delay = delay,
            Changed::Loss(at, p) => self.links[usize::from(at)].change_loss(p),
            Changed::Route { flow, route, ack_route } => match self.connections[flow as usize] {
                Connection::Tcp(flow) => {
                    self.flows[flow].route = route;
                    self.flows[flow].ack_route = ack_route;
                    self.connect(flow);
                }
                Connection::Udt(flow) => self.connect_udt(flow, route, ack_route),
            },
        }
    }

    /// Finds the wires of a flow for its routes. Flows that are reported share those of equal delay; a
    /// place of the background has its own, since its flows come with ever other delays.
    pub(super) fn connect(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let (data, acks) = (&self.routes[usize::from(flow.route)], &self.routes[usize::from(flow.ack_route)]);
        let (data_end, ack_end) = (data.last(), acks.last());
        let recorded = |link: usize| self.capture.as_ref().is_some_and(|capture| capture.records(link));
        let seen = |&link: &u16| self.links[usize::from(link)].modelled || recorded(usize::from(link));
        let hop_by_hop = acks.links.iter().any(seen);
        flow.forward_delay = self.links[data_end].delay + flow.forward_access;
        flow.ack_shift = Time::ZERO;
        if !hop_by_hop {
            let pass = |&link: &u16| {
                let link = &self.links[usize::from(link)];
                link.delay + link.serialisation(flow.ack_bytes)
            };
            flow.ack_shift = acks.links.iter().map(pass).fold(flow.return_access, |sum, delay| sum + delay);
        }
        let closed = matches!(self.links[data_end].server, Server::Closed(_));
        let plain =
            self.links[data_end].motion.is_none() && self.capture.is_none() && flow.protocol.is_none();
        flow.direct = (data.links.len() == 1 && closed && plain && !flow.by_event).then_some(data_end as u16);

        let to_acks = Place { cargo: Cargo::Ack, route: flow.ack_route, hop: 0 };
        let to_receiver = Place { cargo: Cargo::Data, route: flow.route, hop: 0 };
        if flow.role == Role::Reported {
            let mut wire = |kind: Kind, from: usize, place: Place, delay: Time| {
                *self
                    .wires
                    .entry((kind, from, place, delay))
                    .or_insert_with(|| self.transit.wire(kind, place))
            };
            flow.return_wire = wire(Kind::AckAtSender, ack_end, to_acks, flow.return_access);
            flow.receiver_wire = wire(Kind::AtReceiver, data_end, to_receiver, flow.forward_access);
            let kind = if hop_by_hop { Kind::AtLink } else { Kind::AckAtSender };
            flow.wire = wire(kind, data_end, to_acks, flow.forward_access + flow.ack_shift);
            return;
        }
        if flow.to_link_wire == NO_WIRE {
            flow.to_link_wire = self.transit.wire(Kind::AtLink, to_acks);
            flow.return_wire = self.transit.wire(Kind::AckAtSender, to_acks);
            flow.receiver_wire = self.transit.wire(Kind::AtReceiver, to_receiver);
        }
        self.transit.aim(flow.to_link_wire, to_acks);
        flow.wire = if hop_by_hop { flow.to_link_wire } else { flow.return_wire };
    }
}

/// By what fair queueing tells packets apart: the flow, and whether it is its data or its ACKs; over UDT,
/// which way they go.
fn fair_queueing_key(cargo: Cargo, parcel: Parcel) -> u32 {
    let flow = (parcel.flow() as u32) << 2;
    match cargo {
        Cargo::Data | Cargo::Ack | Cargo::Udp => flow | cargo as u32,
        Cargo::Syn => flow | Cargo::Data as u32,
        Cargo::SynAck => flow | Cargo::Ack as u32,
        Cargo::UdtData => UDT_KEY | flow,
        Cargo::UdtControl => UDT_KEY | flow | u32::from(parcel.is_to_sender()),
    }
}
