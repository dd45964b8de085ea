//! Memory of a run in progress.

use super::sim::Sim;
use crate::config::Connection;
use crate::ends::transfers::Transfer;

/// Bytes that a run holds, by what they are for.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// Flows and connections.
    pub flows: usize,
    /// Packets in flight, in queues and on scoreboards.
    pub packets: usize,
    /// Columns of tables.
    pub tables: usize,
    /// Recorded packets.
    pub recorded: usize,
}

impl Sim {
    /// Bytes for packets: what senders, receivers, delay lines, queues and events hold. Its cost grows with the
    /// flows and links.
    pub(super) fn packet_bytes(&self) -> usize {
        self.ends.tcp.packet_bytes()
            + self.ends.udt.packet_bytes()
            + self.context.scheduler.memory_bytes()
            + self.context.network.memory_bytes()
    }

    /// Bytes that the run holds now.
    pub fn memory_bytes(&self) -> usize {
        let Held { flows, packets, tables, recorded } = self.held();
        flows + packets + tables + recorded
    }

    /// The same by what they are for. Its cost grows with the flows and links.
    pub fn held(&self) -> Held {
        Held {
            flows: self.ends.tcp.flow_bytes()
                + self.ends.udt.flow_bytes()
                + self.ends.breakers.memory_bytes()
                + self.ends.stacks.memory_bytes()
                + self.ends.sources.memory_bytes()
                + self.connections.capacity() * size_of::<Connection>()
                + self.transfers.capacity() * size_of::<Transfer>(),
            packets: self.packet_bytes(),
            tables: self.context.record.tables.memory_bytes(),
            recorded: self.context.network.recorded_bytes(),
        }
    }
}
