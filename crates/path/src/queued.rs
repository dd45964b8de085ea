//! A link that holds its packets, for queues that decide when a packet departs and for servers that
//! change: its owner tells it when the packet in service has left.
//!
//! [`QueuedLink::enqueue`], [`QueuedLink::depart`] and [`QueuedLink::set_rate`] each say when `depart`
//! is due next. With drop-tail and RED it does what [`crate::Link`] computes at arrival, to the
//! picosecond.

use lfn_units::{Rate, Time};

use crate::aqm::Aqm;
use crate::counters::{Counters, DataTotals, Ledger};
use crate::limit::Limit;
use crate::packet::{Packet, PacketKind};
use crate::queue::Queue;
use crate::server::RateServer;
use crate::token_bucket::{Policer, ShapedServer, Shaper, TokenBucket};
use crate::trace::{DeliveryTrace, TraceServer};

/// How fast packets leave.
#[derive(Clone, Debug)]
pub enum Service {
    /// Bit by bit at a rate, which may change; 0 stands still.
    Rate(Rate),
    /// At the opportunities of a trace.
    Trace(DeliveryTrace),
    /// Bit by bit at this rate, while a shaper has tokens.
    Shaped(Rate, Shaper),
}

impl Service {
    /// The rate; of a trace, in the mean; of a shaper, that of its tokens.
    pub fn mean_rate(&self) -> Rate {
        match self {
            Service::Rate(rate) => *rate,
            Service::Trace(trace) => trace.mean_rate(),
            Service::Shaped(_, shaper) => shaper.rate,
        }
    }
}

impl From<Rate> for Service {
    fn from(rate: Rate) -> Service {
        Service::Rate(rate)
    }
}

impl From<DeliveryTrace> for Service {
    fn from(trace: DeliveryTrace) -> Service {
        Service::Trace(trace)
    }
}

#[derive(Debug)]
enum Server {
    Rate(RateServer),
    Trace(TraceServer),
    Shaped(ShapedServer),
}

/// The packet in service.
#[derive(Clone, Copy, Debug)]
struct InService {
    packet: Packet,
    waited: Time,
}

/// A link and its queue.
#[derive(Debug)]
pub struct QueuedLink {
    server: Server,
    /// Ahead of the queue.
    policer: Option<TokenBucket>,
    queue: Queue,
    in_service: Option<InService>,
    due: Time,
    idle_since: Time,
    counters: Counters,
    data: DataTotals,
}

impl QueuedLink {
    /// An idle link. `largest_packet_bytes` only sizes the histogram of waiting times.
    pub fn new(service: impl Into<Service>, aqm: Aqm, limit: Limit, largest_packet_bytes: u32) -> QueuedLink {
        let service = service.into();
        let rate = service.mean_rate();
        let server = match service {
            Service::Rate(rate) => Server::Rate(RateServer::new(rate)),
            Service::Trace(trace) => Server::Trace(TraceServer::new(trace)),
            Service::Shaped(line, shaper) => Server::Shaped(ShapedServer::new(line, shaper)),
        };
        QueuedLink {
            server,
            policer: None,
            queue: Queue::new(aqm, limit),
            in_service: None,
            due: Time::NEVER,
            idle_since: Time::ZERO,
            counters: Counters::new(rate, limit, largest_packet_bytes),
            data: DataTotals::default(),
        }
    }

    /// The same link with a policer ahead of its queue.
    #[must_use]
    pub fn policed(self, policer: Option<Policer>) -> QueuedLink {
        let policer = policer.map(|policer| TokenBucket::new(policer.rate, policer.burst));
        QueuedLink { policer, ..self }
    }

    /// Rate of the server now; the mean rate of a trace; a shaper's.
    pub fn rate(&self) -> Rate {
        match &self.server {
            Server::Rate(server) => server.rate(),
            Server::Trace(server) => server.mean_rate(),
            Server::Shaped(server) => server.mean_rate(),
        }
    }

    /// When [`QueuedLink::depart`] is due; [`Time::NEVER`] while the link is idle or stands still. An
    /// event for another time is stale.
    pub fn free_at(&self) -> Time {
        self.due
    }

    /// Counters. A packet's wait ends when its service begins; on a link that follows a
    /// trace, at the opportunity that sends its first byte.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Data packets over the whole run.
    pub fn data_totals(&self) -> DataTotals {
        self.data
    }

    /// Restarts the counters; packets in the queue count when they leave.
    pub fn reset_counters(&mut self) {
        self.counters = self.counters.restarted();
    }

    /// Packets that wait or are in service.
    pub fn packets(&self) -> u64 {
        self.queue.packets() + u64::from(self.in_service.is_some())
    }

    /// Bytes of those.
    pub fn bytes(&self) -> u64 {
        self.queue.bytes() + self.in_service.map_or(0, |serving| u64::from(serving.packet.bytes))
    }

    /// Bytes of what waits, without the packet in service.
    pub fn waiting_bytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// Bytes of the packet in service that have left. On a link that follows a trace a packet leaves as a
    /// whole.
    pub fn partly_sent_bytes(&self, now: Time) -> f64 {
        match (&self.server, &self.in_service) {
            (Server::Rate(server), Some(serving)) => {
                server.partly_sent_bytes(serving.packet.bytes, self.due, now)
            }
            (Server::Shaped(server), Some(serving)) => {
                server.partly_sent_bytes(serving.packet.bytes, self.due, now)
            }
            _ => 0.0,
        }
    }

    /// Bytes of memory that grow with the queue.
    pub fn memory_bytes(&self) -> usize {
        self.queue.memory_bytes()
    }

    /// A packet arrives. `draw` gives a number uniform on \[0, 1); it is called only where chance
    /// decides. This packet, or others that were pushed out for it, may be added to `dropped`.
    /// Returns when [`QueuedLink::depart`] is due, if this packet made it due.
    pub fn enqueue(
        &mut self,
        now: Time,
        packet: Packet,
        draw: impl FnOnce() -> f64,
        dropped: &mut Vec<Packet>,
    ) -> Option<Time> {
        self.counters.arrivals += 1;
        self.data.arrived += u64::from(packet.kind == PacketKind::Data);
        let before = self.queue.packets();
        let idle = self.in_service.is_none() && before == 0;
        let mut ledger = Ledger { counters: &mut self.counters, data: &mut self.data, dropped };
        if self.policer.as_mut().is_some_and(|policer| !policer.admits(now, packet.bytes)) {
            ledger.drop_early(packet);
            return None;
        }
        self.queue.push(now, packet, idle.then_some(self.idle_since), draw, &mut ledger);
        if idle {
            return self.begin(now, dropped);
        }
        let waiting = self.queue.packets();
        if waiting > before {
            self.counters.max_waiting = self.counters.max_waiting.max(waiting);
        }
        None
    }

    /// The event due at [`QueuedLink::free_at`]: the packet whose last bit left now, and when `depart`
    /// is due next. None has left where a trace's opportunity only begins one; `depart` may then be
    /// due again at once. At any other time the event is stale (the rate has changed since) and
    /// nothing happens. Packets that the AQM drops on the way are added to `dropped`.
    pub fn depart(&mut self, now: Time, dropped: &mut Vec<Packet>) -> (Option<Packet>, Option<Time>) {
        if now != self.due {
            return (None, None);
        }
        let gone = self.in_service.take().map(|InService { packet, waited }| {
            self.counters.depart(packet.bytes, waited);
            self.data.sent += u64::from(packet.kind == PacketKind::Data);
            packet
        });
        (gone, self.begin(now, dropped))
    }

    /// The rate changes, also in the middle of a packet: what remains of it leaves at the new rate.
    /// At rate 0 the link stands still until the next change. Of several changes at one instant the
    /// last one counts. A packet that leaves at this instant has left, whether
    /// [`QueuedLink::depart`] was called yet or not. Returns when `depart` is due, if that has
    /// changed; an event pushed before is then stale. A link that follows a trace or a shaper has no rate to
    /// change, and goes on.
    pub fn set_rate(&mut self, now: Time, rate: Rate) -> Option<Time> {
        let Server::Rate(server) = &mut self.server else { return None };
        self.queue.set_rate(rate);
        let before = self.due;
        let leaves = self.in_service.is_some().then_some(before);
        self.due = server.change(now, rate, leaves)?;
        (self.due != before && self.due < Time::NEVER).then_some(self.due)
    }

    /// The server is free: begins the next packet, or waits for an opportunity.
    fn begin(&mut self, now: Time, dropped: &mut Vec<Packet>) -> Option<Time> {
        let ready = match &mut self.server {
            Server::Rate(_) => now,
            Server::Trace(server) => server.ready_at(now),
            Server::Shaped(server) => server.ready_at(now),
        };
        if ready > now && self.queue.packets() > 0 {
            self.due = ready;
            return Some(ready);
        }
        let mut ledger = Ledger { counters: &mut self.counters, data: &mut self.data, dropped };
        let Some(head) = self.queue.take(now, &mut ledger) else {
            self.due = Time::NEVER;
            self.idle_since = now;
            return None;
        };
        let packet = head.packet;
        self.in_service = Some(InService { packet, waited: now - head.since });
        self.due = match &mut self.server {
            Server::Rate(server) => server.begin(now, packet.bytes),
            Server::Trace(server) => server.begin(packet.bytes),
            Server::Shaped(server) => server.begin(now, packet.bytes),
        };
        (self.due < Time::NEVER).then_some(self.due)
    }
}
