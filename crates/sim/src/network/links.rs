//! A link inside the engine: its server, and the impairments behind it.

use lfn_header::Header;
use lfn_path::{
    AckImpair, Aqm, Classes, Counters, DataTotals, Discipline, Ecn, Limit, Link, Offer, PacketKind,
    QueuedLink, Router, Service, Snapshot,
};
use lfn_units::{Rate, Time};

use super::ack_path::AckPath;
use super::impair::{Motion, RandomLoss};
use super::waiting::{Waited, Waiting};
use crate::clock::packet::{AtQueue, Class, Extras, Packet, Routed};
use crate::config::LinkConfig;
use crate::error::SimError;
use crate::rng::{Draws, Stream, Streams};

/// Server of the packets of a link.
pub(crate) enum Server {
    /// A packet's departure is known at its arrival.
    Closed(Link),
    /// Departures are events.
    Queued(QueuedLink),
}

/// Properties of a link that decide how the engine builds it.
pub(crate) struct Use {
    /// Departures are to be events: its rate, delay or loss changes on the way, or it is recorded.
    pub by_event: bool,
    /// Packets meet a queue here. A link that carries nothing but ACKs with room to spare is a delay.
    pub modelled: bool,
    /// Largest packet, in bytes.
    pub largest_packet_bytes: u32,
    /// One way of the longest path, for RED's automatic weight.
    pub one_way: Time,
    /// Its name in headers, not 0.
    pub header_name: u16,
    /// Some packets carry the header that its router fills in. Else no flow depends on when its timers are due.
    pub is_asked: bool,
    /// Losses begin during the run.
    pub loss_changes: bool,
}

/// A link.
pub(crate) struct LinkState {
    pub name: String,
    pub server: Server,
    pub delay: Time,
    pub loss: RandomLoss,
    /// Loss of handshakes' packets: other draws, which alter no other packet's fate.
    handshake_loss: RandomLoss,
    pub motion: Option<Box<Motion>>,
    /// Losses and delays of packets without payload behind the queue.
    pub acks: Option<Box<AckPath>>,
    /// Packets leave it without ECN.
    pub bleaches: bool,
    /// Tells its load to the senders.
    pub router: Option<Box<Router>>,
    pub draws: Draws,
    pub modelled: bool,
    /// Nothing that a departure brings about happens earlier after it, beside the delay.
    pub last_leg: Time,
    /// When departures are computed at the latest: the link's pending event.
    pub look_at: Time,
    /// How fast packets leave, and the delay behind it, at the beginning.
    pub service: Service,
    pub first_delay: Time,
}

/// A packet that arrives at a link whose departures are events.
pub(crate) struct Arrival<'a> {
    pub now: Time,
    pub routed: Routed,
    pub seen: AtQueue,
    pub extras: &'a Extras,
}

/// Fate of a packet that arrives at a link.
pub(crate) enum Admission {
    /// The queue drops it.
    Dropped,
    /// It leaves at this time, now or later, and is lost behind the link by chance.
    Lost(Time),
    /// It leaves at `at`, now or later.
    Departs { at: Time, marked: bool },
    /// It comes to a queue whose departures are events: [`LinkState::enqueue`].
    Queues,
}

/// Fate of a packet at a queue whose departures are events. The queue takes it, or drops it or others:
/// [`Waiting::dropped`].
pub(crate) struct Queued {
    /// It waits, and will be lost behind the link by chance.
    pub lost: bool,
    pub look: Look,
}

/// How an arrival changes when the departures of a queue are to be computed next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    AsBefore,
    /// Before they have an effect.
    InTime,
    /// When the next one happens.
    Exactly,
}

/// A link whose departures are known at arrivals.
pub(crate) struct ClosedForm<'a> {
    server: &'a mut Link,
    loss: &'a mut RandomLoss,
    draws: &'a mut Draws,
}

impl ClosedForm<'_> {
    /// A data packet arrives: when its last bit leaves, and whether it is marked. `None` if it is dropped or
    /// lost.
    #[inline(always)]
    pub fn pass(&mut self, now: Time, bytes: u32, ecn: Ecn) -> Option<(Time, bool)> {
        match self.server.offer(now, PacketKind::Data, bytes, ecn.is_capable(), || self.draws.f64()) {
            Offer::Dropped(_) => None,
            Offer::Departs { at, .. } if self.loss.chooses() => {
                self.loss.lose(now, at);
                None
            }
            Offer::Departs { at, marked } => Some((at, marked)),
        }
    }
}

impl LinkState {
    pub fn new(config: &LinkConfig, usage: &Use, streams: &Streams) -> Result<LinkState, SimError> {
        let name = config.name.clone();
        let streams = streams.of(format!("link.{name}"));
        let stream = |purpose: &str| streams.stream(purpose);
        let bad = |source| SimError::Impair { link: name.clone(), source };
        let queued = config.event_mode
            || usage.by_event
            || config.impair.moves()
            || config.acks.is_some()
            || !matches!(config.service, Service::Rate(_))
            || config.policer.is_some()
            || config.router.is_some()
            || !config.queue.decides_at_arrival();
        let at_once = matches!(config.service, Service::Trace(..));
        let rate = config.service.mean_rate();
        let draws = config.queue.draws();
        let salt = if draws { stream("fq-codel").u64() } else { 0 };
        let aqm = config.queue.build(rate, usage.one_way, salt);
        let aqm = aqm.map_err(|source| SimError::Queue { link: name.clone(), source })?;
        let limit = Limit { packets: config.limit_packets, bytes: config.limit_bytes };
        let largest = usage.largest_packet_bytes;
        let server = match aqm {
            Aqm::DropTail(_) if !queued => {
                Server::Closed(Link::new(rate, Discipline::DropTail, limit, largest))
            }
            Aqm::Red(red) if !queued => Server::Closed(Link::new(rate, Discipline::Red(red), limit, largest)),
            aqm => {
                let link = QueuedLink::new(config.service.clone(), aqm, limit, largest);
                Server::Queued(link.policed(config.policer))
            }
        };
        let router = config.router.map(|router| {
            let mut draws = usage.is_asked.then(|| stream("router"));
            let phase = || draws.as_mut().map_or(0.0, Stream::f64);
            Box::new(router.build(usage.header_name, rate, phase))
        });
        let loss = |purpose| RandomLoss::new(config.impair.loss, usage.loss_changes, || stream(purpose));
        Ok(LinkState {
            server,
            delay: config.delay,
            loss: loss("loss").map_err(bad)?,
            handshake_loss: loss("loss.handshake").map_err(bad)?,
            motion: Motion::new(&config.impair, at_once, stream).map_err(bad)?,
            acks: match config.acks.or(at_once.then(AckImpair::default)) {
                Some(acks) => Some(Box::new(AckPath::new(&acks, stream).map_err(bad)?)),
                None => None,
            },
            bleaches: config.bleach,
            router,
            draws: Draws(draws.then(|| stream("red"))),
            modelled: usage.modelled,
            last_leg: Time::NEVER,
            look_at: Time::NEVER,
            service: config.service.clone(),
            first_delay: config.delay,
            name,
        })
    }

    /// Decides the fate of a packet that arrives, unless that takes a queue whose departures are events.
    #[inline]
    pub fn admit(&mut self, now: Time, Routed { hop, packet }: Routed, seen: &AtQueue) -> Admission {
        let &AtQueue { bytes, ecn, .. } = seen;
        if !self.modelled {
            let departs = now + self.serialisation(bytes);
            if self.may_lose(hop.class()) && self.chooses(hop.class(), packet) {
                return Admission::Lost(departs);
            }
            return Admission::Departs { at: departs, marked: false };
        }
        let Server::Closed(server) = &mut self.server else { return Admission::Queues };
        let draws = &mut self.draws;
        match server.offer(now, hop.class().packet_kind(), bytes, ecn.is_capable(), || draws.f64()) {
            Offer::Dropped(_) => Admission::Dropped,
            Offer::Departs { at, .. } if self.chooses(hop.class(), packet) => Admission::Lost(at),
            Offer::Departs { at, marked } => Admission::Departs { at, marked },
        }
    }

    /// A packet comes to a queue whose departures are events. Those up to now have been computed.
    pub fn enqueue(&mut self, arrival: Arrival, waiting: &mut Waiting) -> Queued {
        let Arrival { now, routed, seen, extras } = arrival;
        let Routed { hop, packet } = routed;
        let may_be_lost = self.may_lose(hop.class());
        let Server::Queued(server) = &mut self.server else {
            return Queued { lost: false, look: Look::AsBefore };
        };
        if let Some(router) = &mut self.router {
            router.advance(now, server.waiting_bytes());
            let asks = if hop.class().asks_routers() { &extras.header } else { &Header::None };
            router.arrive(seen.bytes, asks);
        }
        let words @ [word, more] = waiting.put(routed, extras, may_be_lost);
        let queued = lfn_path::Packet {
            word,
            more,
            flow: fair_queueing_key(hop.class(), packet),
            bytes: seen.bytes,
            kind: hop.class().packet_kind(),
            ecn: seen.ecn.marked(packet.ce()),
        };
        let draws = &mut self.draws;
        let due = server.enqueue(now, queued, || draws.f64(), &mut waiting.dropped);
        let joined = || waiting.dropped.iter().all(|dropped| dropped.more != more);
        let lost = may_be_lost && joined() && self.chooses(hop.class(), packet);
        if lost {
            waiting.lose(words);
        }
        let nearer = seen.last_leg < self.last_leg;
        self.last_leg = self.last_leg.min(seen.last_leg);
        let look = match due {
            Some(due) if due == now => Look::Exactly,
            Some(_) => Look::InTime,
            None if nearer => Look::InTime,
            None => Look::AsBefore,
        };
        Queued { lost, look }
    }

    /// The next packet that leaves a queue whose departures are events, and its time: now or before. `None` if the queue
    /// drops all that it has, for [`Waiting::dropped`]. `extras` as in [`Waiting::take`].
    #[inline]
    pub fn release(&mut self, waiting: &mut Waiting, extras: &mut Extras) -> (Time, Option<Waited>) {
        let Server::Queued(server) = &mut self.server else { return (Time::NEVER, None) };
        let now = server.free_at();
        if let Some(router) = &mut self.router {
            router.advance(now, server.waiting_bytes());
        }
        let Some(queued) = server.depart(now, &mut waiting.dropped).0 else { return (now, None) };
        let mut waited = waiting.take([queued.word, queued.more], extras);
        let class = waited.routed.hop.class();
        waited.routed = waited.routed.marked(queued.ecn == Ecn::Ce && class.tells_marks());
        if let Some(router) = self.router.as_mut().filter(|_| !waited.lost) {
            let mut none = Header::None;
            let header = if class.asks_routers() { &mut extras.header } else { &mut none };
            router.depart(queued.bytes, server.waiting_bytes(), header);
        }
        (now, Some(waited))
    }

    /// When the server is free, where it is asked for departures.
    #[inline]
    pub fn free_at(&self) -> Time {
        match &self.server {
            Server::Closed(_) => Time::NEVER,
            Server::Queued(server) => server.free_at(),
        }
    }

    /// When the departure that is next must have been computed: nothing happens before that it brings about.
    pub fn look_by(&self) -> Time {
        self.free_at().after(self.delay.after(self.last_leg))
    }

    pub fn rate(&self) -> Rate {
        match &self.server {
            Server::Closed(link) => link.rate(),
            Server::Queued(link) => link.rate(),
        }
    }

    /// How long a packet is in service, at the rate of now.
    pub fn serialisation(&self, bytes: u32) -> Time {
        let bits = u128::from(bytes) * 8;
        Time((bits * 1_000_000_000_000 / u128::from(self.rate().0)) as u64)
    }

    /// The link, if departures are known at arrivals.
    #[inline]
    pub fn closed_form(&mut self) -> Option<ClosedForm<'_>> {
        match &mut self.server {
            Server::Closed(server) => {
                Some(ClosedForm { server, loss: &mut self.loss, draws: &mut self.draws })
            }
            Server::Queued(_) => None,
        }
    }

    /// Brings counters up to date.
    pub fn advance(&mut self, now: Time) {
        if let Server::Closed(link) = &mut self.server {
            link.advance(now);
        }
        self.loss.settle(now);
    }

    /// Whether [`LinkState::chooses`] may choose a packet.
    #[inline]
    pub fn may_lose(&self, class: Class) -> bool {
        (!self.loss.is_never() && class != Class::Ack) || (self.acks.is_some() && !class.has_payload())
    }

    /// Whether a packet that joins the queue will be lost behind it, by chance: by the link's `loss` if it has payload
    /// or belongs to a handshake, by its `acks` if it has no payload.
    #[inline]
    pub fn chooses(&mut self, class: Class, packet: Packet) -> bool {
        if class.has_payload() {
            return self.loss.chooses();
        }
        let as_ack = self.acks.as_mut().is_some_and(|acks| acks.loses());
        as_ack | (packet.opens(class) && self.handshake_loss.chooses())
    }

    /// From now on packets are lost each on its own with probability `p`.
    pub fn change_loss(&mut self, p: f64) {
        self.loss.change(p);
        self.handshake_loss.change(p);
    }

    /// Statistics begin.
    pub fn restart(&mut self, now: Time) {
        self.advance(now);
        match &mut self.server {
            Server::Closed(link) => link.reset_counters(now),
            Server::Queued(link) => link.reset_counters(now),
        }
    }

    /// Bytes that have left since statistics began, those of the packet in service included; up to date after
    /// [`LinkState::advance`].
    pub fn sent_bytes(&self, now: Time) -> f64 {
        match &self.server {
            Server::Closed(link) => link.sent_bytes(now),
            Server::Queued(link) => link.sent_bytes(now),
        }
    }

    /// Bytes that could have been sent by `now`, since statistics began, with those that a shaper sent by tokens
    /// from before.
    pub fn most_bytes(&self, now: Time) -> f64 {
        match &self.server {
            Server::Closed(link) => link.capacity_bytes(now),
            Server::Queued(link) => link.most_bytes(now),
        }
    }

    /// The link at `now`; up to date after [`LinkState::advance`].
    pub fn snapshot(&self, now: Time) -> Snapshot {
        match &self.server {
            Server::Closed(link) => link.snapshot(now),
            Server::Queued(link) => link.snapshot(now),
        }
    }

    /// Opportunities of a trace since statistics began.
    pub fn opportunities(&self, now: Time) -> Option<u64> {
        match &self.server {
            Server::Closed(_) => None,
            Server::Queued(link) => link.opportunities(now),
        }
    }

    /// L4S and Classic packets in its queue, if that tells them apart.
    pub fn classes(&self, now: Time) -> Option<Classes<'_>> {
        match &self.server {
            Server::Closed(_) => None,
            Server::Queued(link) => link.classes(now),
        }
    }

    pub fn counters(&self) -> &Counters {
        match &self.server {
            Server::Closed(link) => link.counters(),
            Server::Queued(link) => link.counters(),
        }
    }

    pub fn data_totals(&self) -> DataTotals {
        match &self.server {
            Server::Closed(link) => link.data_totals(),
            Server::Queued(link) => link.data_totals(),
        }
    }

    pub fn memory_bytes(&self) -> usize {
        match &self.server {
            Server::Closed(link) => link.memory_bytes(),
            Server::Queued(link) => link.memory_bytes(),
        }
    }
}

/// Keeps flows over UDT apart from others.
const UDT_KEY: u32 = 1 << 31;
/// Keeps ends of stacks apart from others.
const STACK_KEY: u32 = 1 << 30;

/// Key of a packet for fair queueing: its flow, and whether it is data or ACK; over UDT, its direction.
fn fair_queueing_key(class: Class, packet: Packet) -> u32 {
    let flow = (packet.flow().index() as u32) << 2;
    match class {
        Class::Data | Class::Ack | Class::Udp => flow | class as u32,
        Class::Syn => flow | Class::Data as u32,
        Class::SynAck => flow | Class::Ack as u32,
        Class::UdtData => UDT_KEY | flow,
        Class::UdtControl => UDT_KEY | flow | u32::from(packet.is_to_sender()),
        Class::Datagram => STACK_KEY | flow,
    }
}
