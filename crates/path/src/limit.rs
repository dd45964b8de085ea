//! The physical limit of a queue, and the fate of a packet that arrives.

use lfn_units::Time;

/// The queue as an arriving packet finds it, itself not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueState {
    /// Packets waiting.
    pub(crate) packets: u64,
    /// Bytes waiting.
    pub(crate) bytes: u64,
    /// Since when queue and link have been idle, `None` when they are not.
    pub(crate) idle_since: Option<Time>,
}

/// The fate of an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It joins the queue.
    Accept,
    /// It joins the queue with a congestion mark.
    Mark,
    /// It is dropped early.
    Drop,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// It did not fit.
    Full,
    /// The AQM chose it.
    Early,
}

/// The limit of a queue, without the packet in service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Most packets that may wait.
    pub packets: u64,
    /// Most bytes that may wait.
    pub bytes: u64,
}

impl Limit {
    /// A limit in packets alone.
    pub const fn packets(packets: u64) -> Limit {
        Limit { packets, bytes: u64::MAX }
    }

    /// Whether one more packet fits behind `queue`. An idle link takes any.
    #[inline]
    pub(crate) fn admits(self, queue: QueueState, packet_bytes: u32) -> bool {
        queue.idle_since.is_some()
            || (queue.packets < self.packets && queue.bytes + u64::from(packet_bytes) <= self.bytes)
    }
}
