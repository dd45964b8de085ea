//! Memory of a run in progress.

use std::mem::size_of;

use lfn_path::Packet;

use super::links::LinkState;
use super::network::Waiting;
use super::udt::UdtFlow;
use super::{Sim, Transfer};
use crate::config::{Connection, FlowConfig};
use crate::flow::Flow;

impl Sim {
    /// Bytes for packets: what senders, receivers, lines, queues and events hold. Its cost grows with the flows and
    /// links.
    pub(super) fn packet_bytes(&self) -> usize {
        let flows = self.flows.iter().map(|flow| flow.sender.memory_bytes() + flow.receiver.memory_bytes());
        flows.sum::<usize>()
            + self.udt.iter().map(UdtFlow::memory_bytes).sum::<usize>()
            + self.transit.memory_bytes()
            + self.control.memory_bytes()
            + self.links.iter().map(LinkState::memory_bytes).sum::<usize>()
            + self.waiting.capacity() * size_of::<Option<Waiting>>()
            + self.free_slots.capacity() * size_of::<u64>()
            + self.dropped.capacity() * size_of::<Packet>()
    }

    /// Bytes that the run holds now: packets, flows, and the columns of its tables.
    pub fn memory_bytes(&self) -> usize {
        let recorded = self.capture.as_ref().map_or(0, |capture| capture.memory_bytes());
        self.packet_bytes()
            + self.flows.capacity() * size_of::<Flow>()
            + self.udt.capacity() * size_of::<UdtFlow>()
            + self.reported.capacity() * size_of::<FlowConfig>()
            + self.connections.capacity() * size_of::<Connection>()
            + self.transfers.capacity() * size_of::<Transfer>()
            + self.tables.memory_bytes()
            + recorded
    }
}
