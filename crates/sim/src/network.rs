//! The way of packets over links, hop by hop.
//!
//! A packet is offered to a link. The time of its departure is known at once or comes as an event; the packet then goes
//! on to the next link of its route, or to the end.

pub mod ack_path;
mod capture;
pub mod impair;
pub(crate) mod links;
mod report;
mod waiting;

use lfn_path::Ecn;
use lfn_units::Time;

use crate::clock::events::{Kind, LineId};
use crate::clock::ids::{LinkId, RouteId};
use crate::clock::packet::{AtQueue, Class, Extras, Hop, Packet, PacketView, Routed};
use crate::clock::scheduler::Scheduler;
use crate::config::{Change, Changed, Config};
use capture::Capture;
use links::{Admission, Arrival, LinkState, Look, Queued, Server};
pub(crate) use report::Found;
use waiting::{Waited, Waiting};

/// Links in the order in which a packet meets them, and the delay lines between them.
pub(crate) struct Route {
    pub links: Vec<LinkId>,
    /// From each link to the next, for each class; made when first used.
    lines: Vec<[LineId; Class::COUNT]>,
    /// The last link where packets can be marked: behind it ECN is erased.
    last_marking: u16,
}

impl Route {
    fn new(links: &[LinkId], states: &[LinkState]) -> Route {
        let bleaches = links.iter().position(|&link| states[link.index()].bleaches);
        Route {
            links: links.into(),
            lines: vec![[LineId::NONE; Class::COUNT]; links.len()],
            last_marking: bleaches.map_or(u16::MAX, |number| number as u16),
        }
    }

    pub fn last(&self) -> LinkId {
        // A route without links is refused.
        self.links.last().copied().unwrap_or(LinkId(0))
    }
}

/// A packet at a link of its route.
#[derive(Clone, Copy)]
struct Visit<'a> {
    link: LinkId,
    routed: Routed,
    extras: &'a Extras,
}

/// The ends of routes, as the network asks and tells them.
pub(crate) trait Endpoints {
    /// A packet as queues see it.
    fn at_queue(&self, class: Class, packet: Packet) -> AtQueue;
    /// A packet as recordings see it.
    fn view(&self, class: Class, packet: Packet) -> PacketView;
    /// A queue dropped it.
    fn on_dropped(&mut self, now: Time, class: Class, packet: Packet);
    /// It will be lost behind the queue that it just joined.
    fn on_lost(&mut self, now: Time, class: Class, packet: Packet);
    /// A link made a second one of it.
    fn on_duplicated(&mut self, class: Class, packet: Packet);
    /// It comes to the end of its route at `at`, now or later.
    fn take(&mut self, scheduler: &mut Scheduler, at: Time, class: Class, packet: Packet, extras: &Extras);
}

/// Links, and the routes over them.
pub(crate) struct Network {
    links: Vec<LinkState>,
    routes: Vec<Route>,
    /// Packets in queues whose departures are events.
    waiting: Waiting,
    /// Links whose queues may drop a packet at its departure, which may free the place of a flow.
    droppers: Vec<LinkId>,
    /// In order of time.
    changes: Vec<Change>,
    capture: Option<Box<Capture>>,
    /// Duplicates that links made.
    copies: u64,
    acks_dropped: u64,
}

impl Network {
    pub fn new(config: &Config, links: Vec<LinkState>) -> Network {
        Network {
            routes: config.routes.iter().map(|route| Route::new(route, &links)).collect(),
            waiting: Waiting::default(),
            droppers: (0..)
                .zip(&config.links)
                .filter(|(_, link)| !link.queue.decides_at_arrival())
                .map(|(at, _)| LinkId(at))
                .collect(),
            changes: config.changes.clone(),
            capture: config.capture.as_ref().map(|wanted| Box::new(Capture::new(wanted, links.len()))),
            copies: 0,
            acks_dropped: 0,
            links,
        }
    }

    /// Delay of a flow's own links: its RTT minus the delays of the links of its routes.
    pub fn access(&self, rtt: Time, routes: [RouteId; 2]) -> Time {
        let links = routes.map(|route| &self.route(route).links);
        let delays = links.into_iter().flatten().map(|&link| self.link(link).delay);
        delays.fold(rtt, Time::since)
    }

    /// Whether packets may overtake one another on the last link of a route.
    pub fn may_reorder(&self, route: RouteId) -> bool {
        let last = self.route(route).last();
        let changes =
            self.changes.iter().any(|change| matches!(change.what, Changed::Delay(link, _) if link == last));
        changes || self.link(last).motion.as_ref().is_some_and(|motion| motion.moves())
    }

    #[inline]
    pub fn link(&self, at: LinkId) -> &LinkState {
        &self.links[at.index()]
    }

    #[inline]
    pub fn link_mut(&mut self, at: LinkId) -> &mut LinkState {
        &mut self.links[at.index()]
    }

    pub fn links_mut(&mut self) -> &mut [LinkState] {
        &mut self.links
    }

    pub fn route(&self, route: RouteId) -> &Route {
        &self.routes[route.index()]
    }

    /// Whether packets meet more at this link than a delay: a queue, or a recording.
    pub fn meets(&self, at: LinkId) -> bool {
        self.links[at.index()].modelled || self.capture.as_ref().is_some_and(|capture| capture.records(at))
    }

    /// Whether any link is recorded.
    pub fn is_recorded(&self) -> bool {
        self.capture.is_some()
    }

    /// Bytes of the recorded packets.
    pub fn recorded_bytes(&self) -> usize {
        self.capture.as_ref().map_or(0, |capture| capture.memory_bytes())
    }

    /// Statistics begin.
    pub fn restart(&mut self, now: Time) {
        for link in &mut self.links {
            link.restart(now);
        }
    }

    /// The change of this number.
    pub fn change(&self, number: usize) -> Changed {
        self.changes[number].what
    }

    /// Bytes that queues hold for packets.
    pub fn memory_bytes(&self) -> usize {
        self.links.iter().map(LinkState::memory_bytes).sum::<usize>() + self.waiting.memory_bytes()
    }

    /// The link at a hop.
    fn link_at(&self, hop: Hop) -> LinkId {
        self.routes[hop.route().index()].links[usize::from(hop.number())]
    }

    fn is_last(&self, hop: Hop) -> bool {
        usize::from(hop.number()) + 1 == self.routes[hop.route().index()].links.len()
    }

    /// A packet arrives at the link of its hop.
    pub fn offer(
        &mut self,
        scheduler: &mut Scheduler,
        ends: &mut impl Endpoints,
        routed: Routed,
        extras: &Extras,
    ) {
        let now = scheduler.now;
        let Routed { hop, packet } = routed;
        let link = self.link_at(hop);
        let visit = Visit { link, routed, extras };
        if self.capture.is_some() {
            self.record_arrival(now, ends, &visit);
        }
        let mut seen = ends.at_queue(hop.class(), packet);
        if hop.number() > self.routes[hop.route().index()].last_marking {
            seen.ecn = Ecn::NotEct;
        }
        match self.links[link.index()].admit(now, routed, &seen) {
            Admission::Dropped => self.drop_packet(now, ends, &visit),
            Admission::Lost(departs) => self.lose(now, ends, &visit, departs),
            Admission::Departs { at, marked } => {
                self.depart(scheduler, ends, &Visit { routed: routed.marked(marked), ..visit }, at);
            }
            Admission::Queues => self.enqueue(scheduler, ends, &visit, seen),
        }
    }

    /// A packet arrives at a link whose departures are events.
    fn enqueue(
        &mut self,
        scheduler: &mut Scheduler,
        ends: &mut impl Endpoints,
        visit: &Visit,
        mut seen: AtQueue,
    ) {
        let now = scheduler.now;
        let &Visit { link, routed, extras } = visit;
        if !self.is_last(routed.hop) {
            seen.last_leg = Time::ZERO;
        }
        // An opportunity of a trace that is used at once comes after all that arrives with it.
        let state = self.link(link);
        if state.look_at > now && state.free_at() <= now {
            self.settle_link(scheduler, ends, link, now);
        }
        let arrival = Arrival { now, routed, seen, extras };
        let Queued { lost, look } = self.links[link.index()].enqueue(arrival, &mut self.waiting);
        if lost {
            ends.on_lost(now, routed.hop.class(), routed.packet);
        }
        if look != Look::AsBefore {
            self.look(scheduler, link, look == Look::Exactly);
        }
        self.take_dropped(now, ends, link);
    }

    /// Records a packet that arrives at a link.
    #[cold]
    #[inline(never)]
    fn record_arrival(&mut self, now: Time, ends: &impl Endpoints, visit: &Visit) {
        if let Some(capture) = &mut self.capture {
            let &Visit { link, routed: Routed { hop, packet }, extras } = visit;
            let view = ends.view(hop.class(), packet);
            capture.arrives(now, link, hop.number() == 0, &view, packet, extras);
        }
    }

    /// Ensures that an event computes the departures of a link in time: before they have an effect, or when they
    /// happen, if `exactly` or if the link is recorded, whose rows are in order of time.
    fn look(&mut self, scheduler: &mut Scheduler, at: LinkId, exactly: bool) {
        let exactly = exactly || self.capture.as_ref().is_some_and(|capture| capture.records(at));
        let link = &mut self.links[at.index()];
        let by = if exactly { link.free_at() } else { link.look_by() };
        if by < link.look_at {
            link.look_at = by;
            scheduler.schedule(by.max(scheduler.now), Kind::Depart, at.index());
        }
    }

    /// Counts the packets that a queue dropped in the last call.
    #[inline(always)]
    fn take_dropped(&mut self, now: Time, ends: &mut impl Endpoints, at: LinkId) {
        if !self.waiting.dropped.is_empty() {
            self.count_dropped(now, ends, at);
        }
    }

    fn count_dropped(&mut self, now: Time, ends: &mut impl Endpoints, at: LinkId) {
        while let Some(queued) = self.waiting.dropped.pop() {
            let mut extras = Extras::default();
            let Waited { routed, lost } = self.waiting.take([queued.word, queued.more], &mut extras);
            // Already counted as a random loss; do not count the drop again.
            if !lost {
                self.drop_packet(now, ends, &Visit { link: at, routed, extras: &extras });
            } else if !routed.hop.class().is_data() {
                self.acks_dropped += 1;
            }
        }
    }

    /// A packet that leaves its link at `departs`, now or later, is lost behind it.
    fn lose(&mut self, now: Time, ends: &mut impl Endpoints, visit: &Visit, departs: Time) {
        let Routed { hop, packet } = visit.routed;
        if hop.class().is_data() {
            self.link_mut(visit.link).loss.lose(now, departs);
        } else {
            self.acks_dropped += 1;
        }
        ends.on_lost(now, hop.class(), packet);
    }

    fn drop_packet(&mut self, now: Time, ends: &mut impl Endpoints, visit: &Visit) {
        let &Visit { link, routed: Routed { hop, packet }, extras } = visit;
        if let Some(capture) = &mut self.capture {
            capture.dropped(now, link, &ends.view(hop.class(), packet), packet, extras);
        }
        if !hop.class().is_data() {
            self.acks_dropped += 1;
        }
        ends.on_dropped(now, hop.class(), packet);
    }

    /// The last bit of a packet leaves its link at `departs`, now or later.
    #[inline(always)]
    fn depart(&mut self, scheduler: &mut Scheduler, ends: &mut impl Endpoints, visit: &Visit, departs: Time) {
        let &Visit { link: at, routed: Routed { hop, mut packet }, extras } = visit;
        let link = &mut self.links[at.index()];
        if link.bleaches && hop.class().tells_marks() {
            packet = packet.bleached(hop.class());
        }
        let routed = Routed { hop, packet };
        let mut arrives = departs.after(link.delay);
        let mut twice = false;
        if let (Some(motion), true) = (&mut link.motion, hop.class().has_payload()) {
            (arrives, twice) = motion.apply(arrives);
        } else if let (Some(acks), false) = (&mut link.acks, hop.class().has_payload()) {
            arrives = acks.arrival(departs, link.delay);
        }
        if self.capture.is_some() {
            self.record_departure(ends, &Visit { routed, ..*visit }, [departs, arrives], twice);
        }
        if twice {
            self.copies += 1;
            ends.on_duplicated(hop.class(), packet);
            self.arrive(scheduler, ends, arrives, routed, extras);
        }
        self.arrive(scheduler, ends, arrives, routed, extras);
    }

    /// Records a packet that leaves its link and arrives behind it at these times, and where it then reaches its host.
    #[cold]
    #[inline(never)]
    fn record_departure(
        &mut self,
        ends: &impl Endpoints,
        visit: &Visit,
        [departs, arrives]: [Time; 2],
        twice: bool,
    ) {
        let &Visit { link, routed: Routed { hop, packet }, extras } = visit;
        let is_last = self.is_last(hop);
        let Some(capture) = &mut self.capture else { return };
        let view = ends.view(hop.class(), packet);
        capture.departs(departs, link, &view, packet, extras);
        if is_last {
            let reaches = arrives + ends.at_queue(hop.class(), packet).last_leg;
            for _ in 0..=u8::from(twice) {
                capture.received(reaches, link, &view, packet, extras);
            }
        }
    }

    /// A packet arrives behind the link of its hop at `at`, now or later.
    #[inline(always)]
    fn arrive(
        &mut self,
        scheduler: &mut Scheduler,
        ends: &mut impl Endpoints,
        at: Time,
        routed: Routed,
        extras: &Extras,
    ) {
        let Routed { hop, packet } = routed;
        let route = &mut self.routes[hop.route().index()];
        let number = usize::from(hop.number());
        if number + 1 == route.links.len() {
            return ends.take(scheduler, at, hop.class(), packet, extras);
        }
        let line = &mut route.lines[number][hop.class() as usize];
        if *line == LineId::NONE {
            *line = scheduler.add_line(Kind::AtLink, hop.next());
        }
        scheduler.push(*line, at, packet, Some(extras));
    }

    /// The departures of link `at` are to be computed, unless that was put off.
    pub fn on_depart(&mut self, scheduler: &mut Scheduler, ends: &mut impl Endpoints, at: LinkId) {
        let now = scheduler.now;
        if self.link(at).look_at == now {
            self.link_mut(at).look_at = Time::NEVER;
            self.settle_link(scheduler, ends, at, now);
            self.look(scheduler, at, false);
        }
    }

    /// Computes the departures of all links up to `until`.
    pub fn settle(&mut self, scheduler: &mut Scheduler, ends: &mut impl Endpoints, until: Time) {
        for at in 0..self.links.len() {
            self.settle_link(scheduler, ends, LinkId(at as u16), until);
        }
    }

    /// Before a flow may begin: all places that are free by now are known.
    #[inline]
    pub fn settle_places(&mut self, scheduler: &mut Scheduler, ends: &mut impl Endpoints) {
        for place in 0..self.droppers.len() {
            self.settle_link(scheduler, ends, self.droppers[place], scheduler.now);
        }
    }

    /// Computes the departures of a link up to `until`.
    #[inline]
    fn settle_link(&mut self, scheduler: &mut Scheduler, ends: &mut impl Endpoints, at: LinkId, until: Time) {
        while self.link(at).free_at() <= until {
            self.depart_next(scheduler, ends, at);
        }
    }

    /// The server of link `at` is free, now or before.
    fn depart_next(&mut self, scheduler: &mut Scheduler, ends: &mut impl Endpoints, at: LinkId) {
        let mut extras = Extras::default();
        let (now, gone) = self.links[at.index()].release(&mut self.waiting, &mut extras);
        self.take_dropped(now, ends, at);
        let Some(Waited { routed, lost }) = gone else { return };
        if !lost {
            self.depart(scheduler, ends, &Visit { link: at, routed, extras: &extras }, now);
        } else if routed.hop.class().is_data() {
            self.link_mut(at).loss.lost += 1;
        } else {
            self.acks_dropped += 1;
        }
    }

    /// A link or a route changes. Departures before now have been computed.
    pub fn on_change(&mut self, scheduler: &mut Scheduler, what: &Changed) {
        let now = scheduler.now;
        match *what {
            Changed::Rate(at, rate) => {
                let link = &mut self.links[at.index()];
                if let (Some(router), Server::Queued(server)) = (&mut link.router, &link.server) {
                    router.advance(now, server.waiting_bytes());
                    router.set_rate(rate);
                }
                if let Server::Queued(server) = &mut link.server {
                    server.set_rate(now, rate);
                }
                self.look(scheduler, at, false);
            }
            Changed::Delay(at, delay) => {
                self.link_mut(at).delay = delay;
                self.look(scheduler, at, false);
            }
            Changed::Loss(at, p) => self.link_mut(at).change_loss(p),
            Changed::Route { .. } => {
                // Packets in queues may now have a shorter way from there.
                for at in 0..self.links.len() {
                    self.links[at].last_leg = Time::ZERO;
                    self.look(scheduler, LinkId(at as u16), false);
                }
            }
        }
    }
}
