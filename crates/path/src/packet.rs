//! A packet as the path sees it.

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
    /// Its sender understands ECN: it can be marked instead of dropped (RFC 3168).
    pub ect: bool,
    /// Congestion experienced: a queue on its way has marked it.
    pub ce: bool,
}

// Millions of them stand in a queue of a fast link.
const _: () = assert!(size_of::<Packet>() <= 32);
