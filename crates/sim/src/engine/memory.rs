//! Memory of a run in progress.

use super::sim::Sim;
use super::transfers::Transfer;
use crate::config::Connection;

impl Sim {
    /// Bytes for packets: what senders, receivers, delay lines, queues and events hold. Its cost grows with the
    /// flows and links.
    pub(super) fn packet_bytes(&self) -> usize {
        self.ends.tcp.packet_bytes()
            + self.ends.udt.packet_bytes()
            + self.context.scheduler.memory_bytes()
            + self.context.network.memory_bytes()
    }

    /// Bytes that the run holds now: packets, flows, and the columns of its tables.
    pub fn memory_bytes(&self) -> usize {
        self.packet_bytes()
            + self.ends.tcp.flow_bytes()
            + self.ends.udt.flow_bytes()
            + self.ends.breakers.memory_bytes()
            + self.ends.sources.memory_bytes()
            + self.connections.capacity() * size_of::<Connection>()
            + self.transfers.capacity() * size_of::<Transfer>()
            + self.context.record.tables.memory_bytes()
            + self.context.network.recorded_bytes()
    }
}
