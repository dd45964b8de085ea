//! Undo of spurious reductions, detected by timestamps (Eifel, RFC 3522), by DSACK
//! (RFC 2883, RFC 3708), by F-RTO (RFC 5682).

use lfn_law::{LossKind, Window};
use lfn_units::Time;

use super::{EventKind, Sender, State};
use crate::receiver::{AckFlags, Acknowledgement};

/// State for undoing a spurious reduction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// Whether the episode under way may end as spurious.
    possible: bool,
    /// Window and threshold before the reduction; `None`: they stay, since a mark came before or since.
    prior: Option<(Window, Window)>,
    /// The cumulative ACK at the reduction.
    marker: u64,
    /// One past the last segment that was sent before the first retransmission; 0 without one.
    originals_end: u64,
    /// Retransmissions that no DSACK reported.
    copies: u32,
}

/// Detection of a spurious timeout by later deliveries (RFC 5682, with SACK).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Frto {
    /// Detection is off.
    #[default]
    Off,
    /// The next delivered segment decides whether the timeout was spurious.
    Watches,
    /// New data are sent instead of retransmissions until the next ACK.
    SendsNew,
}

/// An ACK after a timeout, as F-RTO looks at it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Evidence {
    /// It delivers a segment that left before the timeout and was never retransmitted.
    pub original: bool,
    /// It moves the cumulative ACK.
    pub advanced: bool,
    /// It covers all that left before the timeout.
    pub done: bool,
    /// Segments that left since the timeout arrived, or a duplicate ACK came without SACK: a gap is left.
    pub gap: bool,
    /// New data left since the timeout.
    pub sent_new: bool,
    /// New data are there, and the receiver has room for them.
    pub may_send_new: bool,
}

/// The judgement of F-RTO on the timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Undecided,
    /// Recovery goes on as after any timeout.
    Genuine,
    Spurious,
}

impl Frto {
    /// Takes an ACK after a timeout (RFC 5682 §2.1, with SACK §3.1).
    pub fn step(self, ack: &Evidence) -> (Frto, Verdict) {
        match self {
            Frto::Off => (Frto::Off, Verdict::Genuine),
            // Step 3b: an original arrived.
            _ if ack.original => (Frto::Off, Verdict::Spurious),
            // Step 3a: new data arrived, the segments before them did not.
            _ if ack.sent_new && ack.gap => (Frto::Off, Verdict::Genuine),
            // Step 2b: new data test whether old segments are still in flight.
            _ if !ack.sent_new && ack.advanced && !ack.done => match ack.may_send_new {
                true => (Frto::SendsNew, Verdict::Undecided),
                false => (Frto::Off, Verdict::Genuine),
            },
            _ => (Frto::Watches, Verdict::Undecided),
        }
    }
}

impl Undo {
    /// The cumulative ACK moved, and echoes a timestamp from before the first retransmission.
    pub fn shows_original(&self, ack: &Acknowledgement) -> bool {
        self.possible && ack.flags.has(AckFlags::ECHOES_ORIGINAL) && ack.cumulative <= self.originals_end
    }

    /// Every retransmission is reported as a duplicate.
    pub fn all_in_vain(&self) -> bool {
        self.possible && self.originals_end > 0 && self.copies == 0
    }

    /// A mark arrives during the episode: whatever ends it, the window stays (measured on Linux 6.12: a mark on the ACK
    /// that undoes a timeout begins CWR with a window of one segment).
    pub fn keep_window(&mut self) {
        self.prior = None;
    }

    /// A segment is retransmitted; `nxt`: next new segment.
    pub fn on_copy(&mut self, nxt: u64) {
        self.copies += 1;
        if self.originals_end == 0 {
            self.originals_end = nxt;
        }
    }
}

impl Sender {
    /// A loss begins an episode now, and reduces the window if none was reduced for a mark; for a mark nothing is
    /// undone.
    pub(super) fn remember_for_undo(&mut self, kind: LossKind) {
        // Retransmissions still in flight, and a tail loss probe, may also prove to be spurious.
        let probes = self.timers.probe_end.is_some_and(|end| self.board.is_probe_out(end.get() - 1));
        let copies = self.board.retrans_out() as u32 + u32::from(probes);
        let keeps = copies > 0 || matches!(self.state, State::Recovery | State::Loss);
        let originals_end = if keeps { self.recovery.undo.originals_end } else { 0 };
        let possible = self.config.undo && kind != LossKind::Ecn;
        let prior =
            (possible && self.state != State::Cwr).then_some((self.control.cwnd, self.control.ssthresh));
        self.recovery.undo = Undo { possible, prior, marker: self.board.una(), originals_end, copies };
    }

    /// Whether the duplicate of segment `seq` may be a retransmission of this episode: one that is acknowledged, or was
    /// retransmitted. Other duplicates are the path's.
    pub(super) fn may_be_copy(&self, seq: u64) -> bool {
        seq >= self.recovery.undo.marker && (seq < self.board.una() || self.board.was_retransmitted(seq))
    }

    /// Segment `seq` arrived twice; `in_vain`: [`Sender::may_be_copy`] before the ACK. Returns whether that may be for
    /// a retransmission: duplicates made by the path are not evidence.
    pub(super) fn on_dsack(&mut self, seq: u64, in_vain: bool) -> bool {
        self.recovery.dsacks += 1;
        if self.recovery.dsacks > self.report.stats.retransmits {
            return false;
        }
        if in_vain {
            self.recovery.undo.copies = self.recovery.undo.copies.saturating_sub(1);
        }
        if !self.timers.probes(seq) {
            self.recovery.reordering.on_dsack(self.board.una(), self.board.nxt());
        }
        true
    }

    /// Undoes the reduction; `unmark`: removes the marks of loss, too, and segments are examined for loss
    /// again.
    pub(super) fn undo(&mut self, now: Time, unmark: bool) {
        let cwnd_before = self.control.cwnd;
        if let Some((cwnd, ssthresh)) = self.recovery.undo.prior.take() {
            self.control.cwnd = self.control.cwnd.max(cwnd);
            self.control.ssthresh = self.control.ssthresh.max(ssthresh);
            self.law.on_undo(&mut self.control);
        }
        self.recovery.undo.possible = false;
        if unmark {
            self.board.unmark_lost();
        }
        if self.state != State::Disorder {
            self.state = State::Open;
        }
        // Duplicate ACKs count again at once, as in Linux.
        self.recovery.repair_end = 0;
        self.recovery.frto = Frto::Off;
        self.forced.retransmit = false;
        self.report.stats.undos += 1;
        self.restart_timer(now);
        self.record(now, EventKind::Undo, cwnd_before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One row a step of RFC 5682: the ACK, the state behind it, the verdict.
    #[test]
    fn frto_takes_the_steps_of_rfc_5682() {
        use Frto::{Off, SendsNew, Watches};
        use Verdict::{Genuine, Spurious, Undecided};
        let none = Evidence::default();
        let first = Evidence { advanced: true, may_send_new: true, ..none };
        let later = Evidence { sent_new: true, ..none };
        let steps = [
            ("2a: the first ACK is a duplicate", Watches, none, Watches, Undecided),
            ("2a: the first ACK covers all", Watches, Evidence { done: true, ..first }, Watches, Undecided),
            ("2b: the first ACK advances", Watches, first, SendsNew, Undecided),
            ("2b without new data", Watches, Evidence { may_send_new: false, ..first }, Off, Genuine),
            ("2b: none has left yet", SendsNew, first, SendsNew, Undecided),
            ("3a: the second ACK leaves a gap", SendsNew, Evidence { gap: true, ..later }, Off, Genuine),
            ("3a behind an advance", Watches, Evidence { gap: true, advanced: true, ..later }, Off, Genuine),
            ("3b: an original arrives", SendsNew, Evidence { original: true, ..later }, Off, Spurious),
            ("3b before 3a", SendsNew, Evidence { original: true, gap: true, ..later }, Off, Spurious),
            ("3b at the first ACK", Watches, Evidence { original: true, ..first }, Off, Spurious),
            ("3: copies alone arrive", SendsNew, Evidence { advanced: true, ..later }, Watches, Undecided),
            ("off", Off, Evidence { original: true, ..first }, Off, Genuine),
        ];
        for (step, before, ack, after, verdict) in steps {
            assert_eq!(before.step(&ack), (after, verdict), "{step}");
        }
    }
}
