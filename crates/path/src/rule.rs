//! A queueing discipline: its parameters, and the rule that admits, orders and drops packets.

use lfn_keys::Keys;
use lfn_units::{Rate, Time};

use crate::classes::Classes;
use crate::counters::Ledger;
use crate::fifo::{Fifo, Waiting};
use crate::limit::{DropReason, Limit, QueueState};
use crate::packet::Packet;

/// The parameters of a discipline.
pub(crate) trait Parameters: Keys + Copy {
    /// The discipline at work.
    type Rule: Rule;
    /// Why parameters cannot work; [`std::convert::Infallible`] where all can.
    type Error;
    /// Whether it draws random numbers.
    const DRAWS: bool = false;
    /// Whether the fate of a packet is settled when it arrives, and nothing overtakes it, so that
    /// [`crate::Link`] can compute its departure. Else it takes a [`crate::QueuedLink`].
    const AT_ARRIVAL: bool = false;

    /// Takes the size of the largest packet on the wire.
    fn fit(&mut self, packet_bytes: u32) {
        let _ = packet_bytes;
    }

    /// The discipline of an empty queue.
    fn build(self, site: Site) -> Result<Self::Rule, Self::Error>;
}

/// Where a queue stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    /// Rate of the link behind it.
    pub(crate) rate: Rate,
    /// One-way delay of that link.
    pub(crate) delay: Time,
    /// A random number.
    pub(crate) salt: u64,
}

/// A packet at the queue, and what it finds.
pub(crate) struct Arrival {
    pub(crate) now: Time,
    pub(crate) packet: Packet,
    /// Since when queue and link have been idle; an idle link takes any packet.
    pub(crate) idle_since: Option<Time>,
    pub(crate) limit: Limit,
}

impl Arrival {
    /// The queue without the packet.
    pub(crate) fn queue(&self, fifo: &Fifo) -> QueueState {
        QueueState { packets: fifo.packets(), bytes: fifo.bytes(), idle_since: self.idle_since }
    }

    /// Whether the packet fits.
    pub(crate) fn fits(&self, fifo: &Fifo) -> Result<(), DropReason> {
        match self.limit.admits(self.queue(fifo), self.packet.bytes) {
            true => Ok(()),
            false => Err(DropReason::Full),
        }
    }
}

/// A discipline at work. The packets wait in `fifo` unless the discipline keeps them itself.
pub(crate) trait Rule {
    /// Whether a packet joins the queue, with a mark or without.
    fn admit(
        &mut self,
        arrival: &Arrival,
        fifo: &mut Fifo,
        draw: impl FnOnce() -> f64,
        ledger: &mut Ledger,
    ) -> Result<bool, DropReason> {
        let _ = (draw, ledger);
        arrival.fits(fifo).map(|()| false)
    }

    /// Packets and bytes of a discipline that keeps them itself: then [`Rule::admit`] takes each of them.
    fn keeps(&self) -> Option<(u64, u64)> {
        None
    }

    /// Memory of what it keeps itself.
    fn kept_bytes(&self) -> usize {
        0
    }

    /// The packet to send now.
    fn take(&mut self, now: Time, fifo: &mut Fifo, ledger: &mut Ledger) -> Option<Waiting> {
        let _ = (now, ledger);
        fifo.pop()
    }

    /// L4S and Classic packets, if it tells them apart.
    fn classes(&self, now: Time) -> Option<Classes<'_>> {
        let _ = now;
        None
    }

    /// Counts of its own begin again.
    fn reset_counters(&mut self) {}

    /// The rate of the link changes.
    fn set_rate(&mut self, rate: Rate) {
        let _ = rate;
    }
}
