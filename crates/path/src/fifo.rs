//! Packets that wait, first in, first out, and the two disciplines that only have a limit.

use std::collections::VecDeque;

use lfn_keys::keys;
use lfn_units::Time;

use crate::aqm::{AqmError, Arrival, Parameters, Rule, Site};
use crate::counters::Ledger;
use crate::limit::DropReason;
use crate::packet::Packet;

keys! {
    /// Drops the packet that does not fit.
    #[derive(Copy)]
    pub struct DropTail {}
}

impl Parameters for DropTail {
    type Rule = DropTail;
    const AT_ARRIVAL: bool = true;

    fn build(self, _: Site) -> Result<DropTail, AqmError> {
        Ok(self)
    }
}

impl Rule for DropTail {}

keys! {
    /// Drops the packets that have waited longest until the new one fits: the senders learn of it a
    /// queueing delay earlier (Lakshman, Neidhardt, Ott 1996).
    #[derive(Copy)]
    pub struct DropHead {}
}

impl Parameters for DropHead {
    type Rule = DropHead;

    fn build(self, _: Site) -> Result<DropHead, AqmError> {
        Ok(self)
    }
}

impl Rule for DropHead {
    fn admit(
        &mut self,
        arrival: &Arrival,
        fifo: &mut Fifo,
        _: impl FnOnce() -> f64,
        ledger: &mut Ledger,
    ) -> Result<bool, DropReason> {
        while arrival.fits(fifo).is_err() {
            let Some(head) = fifo.pop() else { break };
            ledger.drop_full(head.packet);
        }
        arrival.fits(fifo).map(|()| false)
    }
}

/// A packet that waits, and since when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) packet: Packet,
    pub(crate) since: Time,
}

/// A FIFO that knows its bytes.
#[derive(Debug, Default)]
pub(crate) struct Fifo {
    packets: VecDeque<Waiting>,
    bytes: u64,
}

impl Fifo {
    #[inline]
    pub(crate) fn push(&mut self, waiting: Waiting) {
        self.bytes += u64::from(waiting.packet.bytes);
        self.packets.push_back(waiting);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Waiting> {
        let head = self.packets.pop_front()?;
        self.bytes -= u64::from(head.packet.bytes);
        Some(head)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(crate) fn packets(&self) -> u64 {
        self.packets.len() as u64
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.packets.capacity() * size_of::<Waiting>()
    }
}
