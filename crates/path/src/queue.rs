//! The waiting room of a link and the discipline that rules it.

use lfn_units::{Rate, Time};

use crate::aqm::Aqm;
use crate::counters::Ledger;
use crate::fifo::{Fifo, Waiting};
use crate::limit::{DropReason, Limit};
use crate::packet::Packet;
use crate::red::{QueueState, Verdict};

#[derive(Debug)]
pub(crate) struct Queue {
    aqm: Aqm,
    limit: Limit,
    /// Empty under FQ-CoDel, which has queues of its own.
    fifo: Fifo,
}

impl Queue {
    pub(crate) fn new(aqm: Aqm, limit: Limit) -> Queue {
        Queue { aqm, limit, fifo: Fifo::default() }
    }

    pub(crate) fn packets(&self) -> u64 {
        match &self.aqm {
            Aqm::FqCodel(fair) => fair.packets(),
            _ => self.fifo.packets(),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        match &self.aqm {
            Aqm::FqCodel(fair) => fair.bytes(),
            _ => self.fifo.bytes(),
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        match &self.aqm {
            Aqm::FqCodel(fair) => fair.memory_bytes(),
            _ => self.fifo.memory_bytes(),
        }
    }

    pub(crate) fn set_rate(&mut self, rate: Rate) {
        if let Aqm::Red(red) = &mut self.aqm {
            red.set_rate(rate);
        }
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
        let limit = self.limit;
        let state = |fifo: &Fifo| QueueState { packets: fifo.packets(), bytes: fifo.bytes(), idle_since };
        let queue = state(&self.fifo);
        let fits = |fits| if fits { Ok(false) } else { Err(DropReason::Full) };
        let verdict = match &mut self.aqm {
            Aqm::DropTail | Aqm::Codel(_) => fits(limit.admits(queue, packet.bytes)),
            Aqm::DropHead => {
                while !limit.admits(state(&self.fifo), packet.bytes) {
                    let Some(head) = self.fifo.pop() else { break };
                    ledger.drop_full(head.packet);
                }
                fits(limit.admits(state(&self.fifo), packet.bytes))
            }
            Aqm::Red(red) => red.admit(now, queue, limit, packet.bytes, packet.ect, draw),
            Aqm::Pie(pie) => match pie.arrive(now, queue, &packet, draw) {
                Verdict::Drop => Err(DropReason::Early),
                _ if !limit.admits(queue, packet.bytes) => Err(DropReason::Full),
                verdict => Ok(verdict == Verdict::Mark),
            },
            Aqm::FqCodel(fair) => {
                let limit = if idle_since.is_some() { Limit { packets: 1, bytes: u64::MAX } } else { limit };
                return fair.push(Waiting { packet, since: now }, limit, ledger);
            }
        };
        match verdict {
            Ok(marked) => {
                if marked {
                    ledger.mark(&mut packet);
                }
                self.fifo.push(Waiting { packet, since: now });
            }
            Err(DropReason::Full) => ledger.drop_full(packet),
            Err(DropReason::Early) => ledger.drop_early(packet),
        }
    }

    /// The server is free: the packet to send, if there is one.
    pub(crate) fn take(&mut self, now: Time, ledger: &mut Ledger) -> Option<Waiting> {
        match &mut self.aqm {
            Aqm::DropTail | Aqm::DropHead | Aqm::Red(_) => self.fifo.pop(),
            Aqm::Codel(codel) => codel.take(now, &mut self.fifo, ledger),
            Aqm::FqCodel(fair) => fair.take(now, ledger),
            Aqm::Pie(pie) => {
                let head = self.fifo.pop()?;
                pie.leave(now, now - head.since, self.fifo.is_empty());
                Some(head)
            }
        }
    }
}
