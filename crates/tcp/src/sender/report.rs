//! Public results of a sender: state, segments, events, counters.

use lfn_law::Window;
use lfn_units::Time;

use crate::SegmentIn;

/// Q32.32 segments × ps in segments × s.
const Q32_PS: f64 = 1e-12 / Window::ONE.q32() as f64;

/// Congestion state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// No loss, mark or reordering.
    #[default]
    Open = 0,
    /// Duplicate ACKs or SACKs arrived; no segment is marked lost yet.
    Disorder = 1,
    /// The window is being reduced after an ECN echo or a tail loss.
    Cwr = 2,
    /// The window is being reduced after a loss, and lost segments are retransmitted.
    Recovery = 3,
    /// After a retransmission timeout.
    Loss = 4,
}

/// A segment to send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its number.
    pub seq: u64,
    /// It is a retransmission.
    pub retransmission: bool,
    /// Which one, from 0, modulo 4.
    pub copy: u8,
    /// It tells the receiver that the window was reduced (RFC 3168).
    pub cwr: bool,
}

impl Segment {
    /// As the receiver sees it, with a mark of congestion if `ce`.
    #[inline(always)]
    pub fn received(self, ce: bool) -> SegmentIn {
        let Segment { seq, retransmission, copy, cwr } = self;
        SegmentIn { seq, retransmission, copy, ce, cwr }
    }
}

/// Kind of an event in the table `events`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EventKind {
    /// Loss found by SACK, duplicate ACKs, RACK or a probe.
    FastRetransmit = 0,
    /// Retransmission timeout.
    Timeout = 1,
    /// ECN echo.
    Ecn = 2,
    /// The last reduction was spurious.
    Undo = 3,
    /// Recovery ended.
    RecoveryEnd = 4,
}

/// An event with the window around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderEvent {
    /// When.
    pub at: Time,
    /// What.
    pub kind: EventKind,
    /// Window before.
    pub cwnd_before: Window,
    /// Window after.
    pub cwnd_after: Window,
    /// Slow-start threshold after.
    pub ssthresh: Window,
    /// Segments marked lost at that moment.
    pub lost: u64,
}

/// Counters of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SenderStats {
    /// Segments sent, retransmissions included.
    pub sent: u64,
    /// Retransmissions.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Reductions of the window, one per window of data.
    pub loss_events: u64,
    /// Reductions undone.
    pub undos: u64,
    /// Integral of cwnd over time, segments × s.
    pub cwnd_integral: f64,
    /// Smallest window.
    pub min_cwnd: Window,
    /// Largest window.
    pub max_cwnd: Window,
}

/// Statistics and events of a sender.
pub(super) struct Report {
    pub stats: SenderStats,
    /// Since they were last taken.
    pub events: Vec<SenderEvent>,
    /// The end of the statistics of the window so far.
    observed: Time,
}

impl Report {
    pub fn new(now: Time, cwnd: Window) -> Report {
        let stats = SenderStats { min_cwnd: cwnd, max_cwnd: cwnd, ..SenderStats::default() };
        Report { stats, events: Vec::new(), observed: now }
    }

    /// The window was `cwnd` until now.
    #[inline]
    pub fn observe(&mut self, now: Time, cwnd: Window) {
        // Through i64, whose conversion to f64 is one instruction; no window exceeds it.
        self.stats.cwnd_integral +=
            (cwnd.q32() as i64 as f64) * ((now - self.observed).0 as i64 as f64) * Q32_PS;
        self.observed = now;
        self.stats.min_cwnd = self.stats.min_cwnd.min(cwnd);
        self.stats.max_cwnd = self.stats.max_cwnd.max(cwnd);
    }

    /// Statistics of the window begin.
    pub fn restart_window(&mut self, now: Time, cwnd: Window) {
        self.stats.cwnd_integral = 0.0;
        (self.stats.min_cwnd, self.stats.max_cwnd) = (cwnd, cwnd);
        self.observed = now;
    }
}
