//! An ACK as the scoreboard takes it, and its results.

use lfn_units::Time;

use crate::Range;

/// The transmission whose timestamp an ACK echoes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Echo {
    /// The connection has no timestamps.
    None,
    /// The original.
    Original,
    /// A retransmission, counted from 0, modulo 4.
    Copy(u8),
}

/// An ACK as the scoreboard reads it.
pub(crate) struct Arrival<'a> {
    pub now: Time,
    /// Segments below this have arrived; from `una` to `nxt`.
    pub cumulative: u64,
    /// SACK blocks without a DSACK, most recent first.
    pub blocks: &'a [Range],
    pub echo: Echo,
    /// Smallest RTT so far: a retransmission acknowledged sooner gives no RACK sample.
    pub min_rtt: Time,
}

/// Result of one ACK: samples for RTT and RACK, evidence for loss recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    /// Segments delivered, each counted once.
    pub delivered: u32,
    /// Transmission time of the newest never-retransmitted one, for the RTT.
    pub newest_sent: Option<Time>,
    /// Transmission time of the oldest never-retransmitted one.
    pub oldest_sent: Option<Time>,
    /// The segment sent last, retransmissions included, with its time; `None` if no segment was SACKed, lost
    /// or retransmitted: then it is the last of `delivered`.
    pub newest: Option<(Time, u64)>,
    /// Departure of the transmission whose timestamp the ACK echoes, one of the first segment that the cumulative ACK
    /// covers; `None` if that is not known.
    pub echoed: Option<Time>,
    /// The lowest delivered segment that was never retransmitted.
    pub lowest_original: Option<u64>,
    /// SACK blocks delivered segments.
    pub beyond_gap: bool,
    /// The cumulative ACK covers a segment that was retransmitted.
    pub repeated: bool,
}

impl Outcome {
    /// Whether it is of an ACK that only moved the cumulative one over segments that were sent once.
    pub fn is_plain(&self) -> bool {
        self.newest.is_none() && self.oldest_sent.is_some()
    }
}

/// Segments that one look for losses found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Losses {
    pub segments: u32,
    /// Whether retransmissions are among them.
    pub copies: bool,
    /// When RACK looks again, if segments may yet prove to be lost by time.
    pub look_again: Option<Time>,
}
