//! Counts and delays of two classes of packets, L4S and Classic.

use lfn_units::Time;

use crate::delays::Delays;

/// Counts of a class since the start or the last `reset_counters`.
#[derive(Clone, Debug, Default)]
pub struct ClassCounts {
    /// Packets that left the queue to be sent.
    pub packets: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Of those, packets that this queue marked.
    pub marks: u64,
    /// Packets dropped, for whatever reason.
    pub drops: u64,
    /// How long the packets that left had waited.
    pub delays: Delays,
}

impl ClassCounts {
    /// A packet leaves the queue.
    #[inline]
    pub(crate) fn send(&mut self, bytes: u32, waited: Time) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
        self.delays.add(waited.0 / 1_000_000);
    }
}

/// A class at one time.
#[derive(Clone, Copy, Debug)]
pub struct ClassView<'a> {
    /// Packets that wait.
    pub packets: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// How long the first of them has waited; 0 where none waits.
    pub head_waited: Time,
    /// Its counts.
    pub counts: &'a ClassCounts,
}

/// Both classes.
#[derive(Clone, Copy, Debug)]
pub struct Classes<'a> {
    /// The base probability p' (RFC 9332).
    pub probability: f64,
    /// L4S.
    pub l4s: ClassView<'a>,
    /// Classic.
    pub classic: ClassView<'a>,
}
