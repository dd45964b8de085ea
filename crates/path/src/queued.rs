//! A link that holds its packets, for queues that decide when a packet departs and for servers that
//! change: its owner tells it when the packet in service has left.
//!
//! [`QueuedLink::enqueue`], [`QueuedLink::depart`] and [`QueuedLink::set_rate`] each say when `depart`
//! is due next. With drop-tail and RED it does what [`crate::Link`] computes at arrival, to the
//! picosecond.

use lfn_units::{Rate, Time};

use crate::aqm::Aqm;
use crate::classes::Classes;
use crate::counters::{Counters, DataTotals, Ledger, Snapshot, Usage};
use crate::limit::Limit;
use crate::packet::{Packet, PacketKind};
use crate::queue::Queue;
use crate::server::{rest_bytes, RateServer};
use crate::token_bucket::{Policer, ShapedServer, Shaper, TokenBucket};
use crate::trace::{DeliveryTrace, TraceServer};

/// How fast packets leave.
#[derive(Clone, Debug)]
pub enum Service {
    /// Bit by bit at a rate, which may change; 0 stands still.
    Rate(Rate),
    /// At the opportunities of a trace. A packet has so many bytes on the wire beyond its IP packet.
    Trace(DeliveryTrace, u32),
    /// Bit by bit at this rate, while a shaper has tokens.
    Shaped(Rate, Shaper),
}

impl Service {
    /// The rate; of a trace, in the mean; of a shaper, that of its tokens.
    pub fn mean_rate(&self) -> Rate {
        match self {
            Service::Rate(rate) => *rate,
            Service::Trace(trace, _) => trace.mean_rate(),
            Service::Shaped(_, shaper) => shaper.rate,
        }
    }

    /// Bytes on the wire that may leave between two times, in packets of one size. A shaper's bucket may be full, and a
    /// packet that begins may owe it its tokens.
    pub fn most_bytes(&self, from: Time, to: Time, wire_bytes: u32) -> f64 {
        match self {
            Service::Rate(rate) => rest_bytes(*rate, to.since(from)),
            Service::Trace(trace, framing_bytes) => trace.most_bytes(from, to, wire_bytes, *framing_bytes),
            Service::Shaped(_, shaper) => {
                shaper.burst.0 as f64 + f64::from(wire_bytes) + rest_bytes(shaper.rate, to.since(from))
            }
        }
    }
}

impl From<Rate> for Service {
    fn from(rate: Rate) -> Service {
        Service::Rate(rate)
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
    usage: Usage,
}

impl QueuedLink {
    /// An idle link. `largest_packet_bytes` only sizes the histogram of waiting times.
    pub fn new(service: impl Into<Service>, aqm: Aqm, limit: Limit, largest_packet_bytes: u32) -> QueuedLink {
        let service = service.into();
        let rate = service.mean_rate();
        let server = match service {
            Service::Rate(rate) => Server::Rate(RateServer::new(rate)),
            Service::Trace(trace, framing_bytes) => Server::Trace(TraceServer::new(trace, framing_bytes)),
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
            usage: Usage::default(),
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
    pub fn reset_counters(&mut self, now: Time) {
        self.counters = self.counters.restarted(self.packets(), self.queue.packets());
        self.usage = Usage::from(now, self.gone_bytes(now));
        self.queue.reset_counters();
    }

    /// L4S and Classic packets in the queue; `None` if it does not tell them apart.
    pub fn classes(&self, now: Time) -> Option<Classes<'_>> {
        self.queue.classes(now)
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

    /// Bytes sent since the counters began, those of the packet in service included that have left. On a link
    /// that follows a trace, bytes of its opportunities before now.
    pub fn sent_bytes(&self, now: Time) -> f64 {
        self.usage.sent_bytes(self.gone_bytes(now))
    }

    /// Bytes that could have been sent since the counters began: by the rates that there were, at a trace's
    /// opportunities before now, by the tokens of a shaper that came.
    pub fn capacity_bytes(&self, now: Time) -> f64 {
        match &self.server {
            Server::Trace(server) => server.offered_bytes(now) - server.offered_bytes(self.usage.began()),
            _ => self.usage.capacity_bytes(now, self.rate()),
        }
    }

    /// Of those, a shaper sends more while it has tokens from before.
    pub fn most_bytes(&self, now: Time) -> f64 {
        let capacity_bytes = self.capacity_bytes(now);
        match self.server {
            Server::Shaped(_) => capacity_bytes.max(self.sent_bytes(now)),
            _ => capacity_bytes,
        }
    }

    /// Opportunities of the link's trace since the counters began; `None` without one.
    pub fn opportunities(&self, now: Time) -> Option<u64> {
        let Server::Trace(server) = &self.server else { return None };
        Some(server.opportunities(now) - server.opportunities(self.usage.began()))
    }

    /// The link now.
    pub fn snapshot(&self, now: Time) -> Snapshot {
        Snapshot {
            packets: self.packets(),
            bytes: self.bytes(),
            sent_bytes: self.sent_bytes(now),
            capacity_bytes: self.capacity_bytes(now),
            drain_s: self.drain_s(now),
        }
    }

    /// How long the link needs for all packets that it has, at a constant rate the one in service in full.
    fn drain_s(&self, now: Time) -> f64 {
        let bits = self.bytes() as f64 * 8.0;
        if bits == 0.0 {
            return 0.0;
        }
        match &self.server {
            Server::Rate(server) => bits / server.rate().as_bps(),
            Server::Trace(server) => {
                server.drained_at(self.queue.packets(), self.queue.bytes()).since(now).as_s()
            }
            Server::Shaped(server) => server.drain_s(now, bits, self.queue.bytes() as f64 * 8.0),
        }
    }

    /// Since the start on a link that follows a trace, elsewhere since the counters began and with what had left
    /// then of the packet in service.
    fn gone_bytes(&self, now: Time) -> f64 {
        let serving = self.in_service.map(|serving| serving.packet.bytes);
        let partly = match (&self.server, serving) {
            (Server::Trace(server), _) => return server.sent_bytes(now),
            (Server::Rate(server), Some(bytes)) => server.partly_sent_bytes(bytes, self.due, now),
            (Server::Shaped(server), Some(bytes)) => server.partly_sent_bytes(bytes, self.due, now),
            (_, None) => 0.0,
        };
        self.counters.sent_bytes as f64 + partly
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
        self.usage.settle(now, server.rate());
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
