//! A link that holds its packets, for queues that decide when a packet departs and for servers that
//! change: its owner tells it when the packet in service has left.
//!
//! [`QueuedLink::enqueue`], [`QueuedLink::depart`] and [`QueuedLink::set_rate`] each say when `depart`
//! is due next. With drop-tail and RED it does what
//! [`crate::Link`] computes at arrival, to the picosecond.

use lfn_units::{Rate, Time};

use crate::counters::{Counters, DataTotals, Ledger};
use crate::fifo::{Fifo, Waiting};
use crate::limit::{DropReason, Limit};
use crate::packet::{Packet, PacketKind};
use crate::red::{QueueState, Red};
use crate::server::RateServer;

/// How a queue drops, marks and orders packets.
#[derive(Debug)]
pub enum Aqm {
    /// Drops the packet that does not fit.
    DropTail,
    /// Drops the packets that have waited longest until the new one fits: the senders hear of it a
    /// queueing delay earlier (Lakshman, Neidhardt, Ott 1996).
    DropHead,
    /// Random early detection.
    Red(Box<Red>),
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
    server: RateServer,
    aqm: Aqm,
    limit: Limit,
    fifo: Fifo,
    in_service: Option<InService>,
    due: Time,
    idle_since: Time,
    counters: Counters,
    data: DataTotals,
}

impl QueuedLink {
    /// An idle link. `limit_packets` and `limit_bytes` bound what waits, besides the packet in
    /// service; `largest_packet_bytes` only sizes the histogram of waiting times.
    pub fn new(
        rate: Rate,
        aqm: Aqm,
        limit_packets: u64,
        limit_bytes: u64,
        largest_packet_bytes: u32,
    ) -> QueuedLink {
        QueuedLink {
            server: RateServer::new(rate),
            aqm,
            limit: Limit { packets: limit_packets, bytes: limit_bytes },
            fifo: Fifo::default(),
            in_service: None,
            due: Time::NEVER,
            idle_since: Time::ZERO,
            counters: Counters::new(rate, limit_packets, limit_bytes, largest_packet_bytes),
            data: DataTotals::default(),
        }
    }

    /// Rate of the server now.
    pub fn rate(&self) -> Rate {
        self.server.rate()
    }

    /// When [`QueuedLink::depart`] is due; [`Time::NEVER`] while the link is idle or stopped. An
    /// event for another time is stale.
    pub fn free_at(&self) -> Time {
        self.due
    }

    /// What was counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Data packets over the whole run.
    pub fn data_totals(&self) -> DataTotals {
        self.data
    }

    /// Starts counting anew; packets in the queue count when they leave.
    pub fn reset_counters(&mut self) {
        self.counters = self.counters.restarted();
    }

    /// Packets that wait or are in service.
    pub fn packets(&self) -> u64 {
        self.fifo.packets() + u64::from(self.in_service.is_some())
    }

    /// Bytes of those.
    pub fn bytes(&self) -> u64 {
        self.fifo.bytes() + self.in_service.map_or(0, |serving| u64::from(serving.packet.bytes))
    }

    /// Bytes of memory that grow with the queue.
    pub fn memory_bytes(&self) -> usize {
        self.fifo.memory_bytes()
    }

    /// A packet arrives. `draw` gives a number uniform on \[0, 1); it is called only where chance
    /// decides. This packet, or others that were pushed out for it, may go to the end of `dropped`.
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
        let idle = self.in_service.is_none() && self.fifo.is_empty();
        let mut ledger = Ledger { counters: &mut self.counters, data: &mut self.data, dropped };
        let state = |fifo: &Fifo| QueueState {
            packets: fifo.packets(),
            bytes: fifo.bytes(),
            idle_since: idle.then_some(self.idle_since),
        };
        let queue = state(&self.fifo);
        let verdict = match &mut self.aqm {
            Aqm::Red(red) => red.admit(now, queue, self.limit, packet.bytes, packet.ect, draw),
            Aqm::DropTail if self.limit.admits(queue, packet.bytes) => Ok(false),
            Aqm::DropTail => Err(DropReason::Full),
            Aqm::DropHead => {
                while !self.limit.admits(state(&self.fifo), packet.bytes) {
                    let Some(head) = self.fifo.pop() else { break };
                    ledger.drop_full(head.packet);
                }
                if self.limit.admits(state(&self.fifo), packet.bytes) {
                    Ok(false)
                } else {
                    Err(DropReason::Full)
                }
            }
        };
        let mut arrived = Waiting { packet, since: now };
        match verdict {
            Ok(false) => {}
            Ok(true) => ledger.mark(&mut arrived.packet),
            Err(DropReason::Full) => {
                ledger.drop_full(packet);
                return None;
            }
            Err(DropReason::Early) => {
                ledger.drop_early(packet);
                return None;
            }
        }
        self.fifo.push(arrived);
        if !idle {
            self.counters.max_waiting = self.counters.max_waiting.max(self.fifo.packets());
            return None;
        }
        self.begin(now)
    }

    /// The event due at [`QueuedLink::free_at`]: the packet whose last bit left now, and when `depart`
    /// is due next. At any other time, as after a change of rate, the event is stale and nothing happens.
    pub fn depart(&mut self, now: Time, dropped: &mut Vec<Packet>) -> (Option<Packet>, Option<Time>) {
        let _ = dropped;
        if now != self.due {
            return (None, None);
        }
        let gone = self.in_service.take().map(|InService { packet, waited }| {
            self.counters.depart(packet.bytes, waited);
            self.data.sent += u64::from(packet.kind == PacketKind::Data);
            packet
        });
        (gone, self.begin(now))
    }

    /// The rate changes, also in the middle of a packet: what remains of it leaves at the new rate.
    /// At rate 0 the link stands still until the next change. Of several changes at one instant the
    /// last one counts. A packet that leaves at this instant has left, whether
    /// [`QueuedLink::depart`] was called yet or not. Returns when `depart` is due if that has changed.
    pub fn set_rate(&mut self, now: Time, rate: Rate) -> Option<Time> {
        if let Aqm::Red(red) = &mut self.aqm {
            red.set_rate(rate);
        }
        let leaves = self.in_service.is_some().then_some(self.due);
        let due = self.server.change(now, rate, leaves)?;
        self.due = due;
        (due < Time::NEVER).then_some(due)
    }

    /// The server is free: takes the next packet, if there is one.
    fn begin(&mut self, now: Time) -> Option<Time> {
        let Some(Waiting { packet, since }) = self.fifo.pop() else {
            self.due = Time::NEVER;
            self.idle_since = now;
            return None;
        };
        self.in_service = Some(InService { packet, waited: now - since });
        self.due = self.server.begin(now, packet.bytes);
        (self.due < Time::NEVER).then_some(self.due)
    }
}
