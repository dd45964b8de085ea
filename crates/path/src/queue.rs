//! The waiting room of a link and the discipline that rules it.

use lfn_units::{Rate, Time};

use crate::aqm::Aqm;
use crate::classes::Classes;
use crate::counters::Ledger;
use crate::fifo::{Fifo, Waiting};
use crate::limit::{DropReason, Limit};
use crate::packet::Packet;
use crate::rule::{Arrival, Rule};

#[derive(Debug)]
pub(crate) struct Queue {
    aqm: Aqm,
    limit: Limit,
    /// Empty under a discipline that keeps the packets itself.
    fifo: Fifo,
}

impl Queue {
    pub(crate) fn new(aqm: Aqm, limit: Limit) -> Queue {
        Queue { aqm, limit, fifo: Fifo::default() }
    }

    pub(crate) fn packets(&self) -> u64 {
        self.aqm.keeps().map_or_else(|| self.fifo.packets(), |(packets, _)| packets)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.aqm.keeps().map_or_else(|| self.fifo.bytes(), |(_, bytes)| bytes)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.fifo.memory_bytes() + self.aqm.kept_bytes()
    }

    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.aqm.set_rate(rate);
    }

    pub(crate) fn classes(&self, now: Time) -> Option<Classes<'_>> {
        self.aqm.classes(now)
    }

    pub(crate) fn reset_counters(&mut self) {
        self.aqm.reset_counters();
    }

    /// A packet arrives: it joins, or is dropped, or others are in its place. An idle link, since
    /// `idle_since`, takes any.
    pub(crate) fn push(
        &mut self,
        now: Time,
        mut packet: Packet,
        idle_since: Option<Time>,
        draw: impl FnOnce() -> f64,
        ledger: &mut Ledger,
    ) {
        let arrival = Arrival { now, packet, idle_since, limit: self.limit };
        match self.aqm.admit(&arrival, &mut self.fifo, draw, ledger) {
            Ok(marked) => {
                if marked {
                    ledger.mark(&mut packet);
                }
                if self.aqm.keeps().is_none() {
                    self.fifo.push(Waiting { packet, since: now });
                }
            }
            Err(DropReason::Full) => ledger.drop_full(packet),
            Err(DropReason::Early) => ledger.drop_early(packet),
        }
    }

    /// The server is free: the packet to send, if there is one.
    pub(crate) fn take(&mut self, now: Time, ledger: &mut Ledger) -> Option<Waiting> {
        self.aqm.take(now, &mut self.fifo, ledger)
    }
}
