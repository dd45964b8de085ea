//! Packets that wait, first in, first out.

use std::collections::VecDeque;

use lfn_units::Time;

use crate::packet::Packet;

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

    /// When the head joined; `None` without one.
    #[inline]
    pub(crate) fn head_since(&self) -> Option<Time> {
        self.packets.front().map(|head| head.since)
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
