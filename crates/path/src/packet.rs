//! A packet as the path sees it.

use lfn_header::Ecn;

/// Data and ACKs share queues and are counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// Carries payload.
    Data,
    /// Carries an acknowledgement.
    Ack,
}

/// A packet in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The owner's own; opaque to the path.
    pub word: u64,
    /// A second word of the owner's.
    pub more: u64,
    /// Number of the flow, by which fair queueing tells packets apart.
    pub flow: u32,
    /// Size on the wire in bytes; above 0.
    pub bytes: u32,
    /// Its kind.
    pub kind: PacketKind,
    /// Its ECN field.
    pub ecn: Ecn,
}

// Millions of them stand in a queue of a fast link.
const _: () = assert!(size_of::<Packet>() <= 32);
