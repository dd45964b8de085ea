//! The physical limit of a queue.

use crate::red::QueueState;

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// It did not fit.
    Full,
    /// The AQM chose it.
    Early,
}

/// The limit of a queue, without the packet in service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

impl Limit {
    /// Whether one more packet fits behind `queue`. An idle link takes any.
    #[inline]
    pub(crate) fn admits(self, queue: QueueState, packet_bytes: u32) -> bool {
        queue.idle_since.is_some()
            || (queue.packets < self.packets && queue.bytes + u64::from(packet_bytes) <= self.bytes)
    }
}
