//! Loss recovery: episodes, undo, tail loss probes, timeouts.

use std::num::NonZero;

use lfn_law::{Ack, Loss, LossKind, Window, ACK_DISORDER, ACK_LOSS, ACK_RESTART, ACK_SACK};
use lfn_units::Time;

use super::timers::Timer;
use super::undo::{Evidence, Frto, Undo, Verdict};
use super::{EventKind, Sender, State};
use crate::prr::Prr;
use crate::receiver::{AckFlags, Acknowledgement};
use crate::reordering::Reordering;
use crate::scoreboard::{Arrival, Echo, Losses, Outcome};
use crate::{LossDetection, Reduction};

/// Behind the end or the undo of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Segments are examined for loss.
    Detect,
    /// The ACK tells nothing of losses.
    Skip,
}

/// State of loss recovery.
#[derive(Default)]
pub(super) struct Recovery {
    /// Next new segment when the last reduction began.
    pub high_seq: u64,
    /// Next new segment when the last recovery began; 0 before the first.
    pub repair_end: u64,
    pub prr: Prr,
    pub undo: Undo,
    pub reordering: Reordering,
    pub frto: Frto,
    /// Timeouts since the cumulative ACK moved.
    pub timeouts_in_row: u16,
    /// Spurious retransmissions: DSACKs received.
    pub dsacks: u64,
    /// Those that count as delivered, but not in the rounds that laws count.
    pub copies_delivered: u64,
    /// A retransmission left with nothing in flight since the last ACK.
    pub restarts: bool,
    /// Segments from where the next round begins to where the flight ends ([`lfn_law::ACK_FLIGHT`]).
    pub flight_later: i32,
}

impl Sender {
    /// Segments delivered by an ACK that carries SACK blocks, is a duplicate, or follows such an ACK.
    #[cold]
    pub(super) fn digest(&mut self, now: Time, ack: &Acknowledgement, advanced: bool) -> Outcome {
        let opens = self.open_window();
        let highest = self.board.highest_sacked();
        let duplicate = ack.flags.has(AckFlags::DUPLICATE);
        let blocks = &ack.sack[usize::from(duplicate)..ack.flags.blocks()];
        let in_vain = duplicate && self.may_be_copy(ack.sack[0].start);
        let twice = duplicate && self.board.was_delivered_after_retransmission(ack.sack[0].start);
        let echo = match self.config.timestamps {
            false => Echo::None,
            true if ack.flags.has(AckFlags::ECHOES_ORIGINAL) => Echo::Original,
            true => Echo::Copy(ack.flags.copy()),
        };
        let (cumulative, min_rtt) = (ack.cumulative, Time::from_ns(self.rtt.min_ns()));
        let mut outcome = self.board.acknowledge(&Arrival { now, cumulative, blocks, echo, min_rtt });
        if advanced {
            self.recovery.timeouts_in_row = 0;
        }
        if duplicate {
            self.board.touch();
            // A copy that arrived for nothing counts as delivered, as in Linux.
            let copies = u32::from(self.on_dsack(ack.sack[0].start, in_vain));
            if copies > 0 && twice && ack.sack[0].start < highest {
                self.recovery.reordering.note(highest + 1 - ack.sack[0].start);
            }
            outcome.delivered += copies;
            self.recovery.copies_delivered += u64::from(copies);
            // `on_ack` adds the count.
            self.delivered = self.delivered.wrapping_sub(u64::from(copies));
        }
        if self.config.sack {
            if let Some(late) = outcome.lowest_original.filter(|&seq| seq < highest) {
                self.recovery.reordering.note(highest + 1 - late);
            }
        } else if !opens {
            // An ACK that opens the window is no duplicate (RFC 5681 §2).
            outcome.delivered = self.count_duplicates(advanced, outcome.delivered);
        }
        outcome
    }

    /// NewReno: whether a duplicate ACK counts as a delivery. Not if it may answer a spurious retransmission:
    /// after a timeout, and until more than all segments sent before recovery began are acknowledged (RFC 6582 §3.2
    /// step 1).
    fn duplicates_count(&self) -> bool {
        match self.state {
            State::Recovery => !self.holds(),
            State::Loss => self.board.nxt() > self.recovery.high_seq && !self.holds(),
            State::Open | State::Disorder | State::Cwr => {
                self.recovery.repair_end == 0 || self.board.una() > self.recovery.repair_end
            }
        }
    }

    /// NewReno: a duplicate ACK counts as one delivered segment (RFC 6582), which is not counted again when
    /// the cumulative ACK covers it.
    fn count_duplicates(&mut self, advanced: bool, delivered: u32) -> u32 {
        if !advanced {
            if self.board.outstanding() == 0 || !self.duplicates_count() {
                return delivered;
            }
            let before = self.dup_acks;
            self.dup_acks += 1;
            self.limit_duplicates(0);
            self.board.set_duplicate_acks(self.dup_acks);
            return delivered + (self.dup_acks - before) as u32;
        }
        let counted = self.dup_acks.min(u64::from(delivered).saturating_sub(1));
        self.dup_acks -= counted;
        self.limit_duplicates(u64::from(delivered));
        // After a timeout Linux forgets them, too (measured).
        let repairing = matches!(self.state, State::Cwr | State::Recovery)
            || (self.state == State::Loss && !self.is_newreno_of_linux());
        if !repairing || self.board.una() >= self.recovery.high_seq || self.board.outstanding() == 0 {
            self.dup_acks = 0;
        }
        self.board.set_duplicate_acks(self.dup_acks);
        delivered - counted as u32
    }

    /// There cannot be more duplicate ACKs than segments outstanding that are not lost: Linux takes an excess for
    /// reordering, and all of the window, with the `acked` segments, may be reordered from then on (measured).
    fn limit_duplicates(&mut self, acked: u64) {
        let outstanding = self.board.outstanding();
        let most = outstanding.saturating_sub(self.board.lost_out().max(1));
        if self.is_newreno_of_linux() && self.dup_acks > most {
            self.dup_acks = most;
            self.recovery.reordering.set_degree(outstanding + acked);
        }
    }

    /// All other ACKs than plain ones in state Open: ends of episodes, undo, losses.
    #[cold]
    pub(super) fn on_dubious(&mut self, now: Time, ack: &Acknowledgement, outcome: &Outcome, seen: &mut Ack) {
        if self.state == State::Disorder {
            seen.flags |= ACK_DISORDER;
        }
        if ack.flags.blocks() > 0 {
            seen.flags |= ACK_SACK;
        }
        if std::mem::take(&mut self.recovery.restarts) {
            seen.flags |= ACK_RESTART;
        }
        if seen.ce > 0 && self.config.ecn {
            self.recovery.undo.keep_window();
        }
        self.check_probe(now, ack);
        let advanced = seen.acked > 0;
        let mut losses = Losses::default();
        if self.settle(now, ack, advanced, outcome, seen) == Next::Detect {
            losses = self.detect_losses(now);
            if !self.config.sack {
                losses = self.detect_newreno(advanced);
            }
        }
        seen.newly_lost = losses.segments;
        self.show_lost(now);
        // After a timeout a lost retransmission is a loss of its own, as in Linux.
        let begins = match (self.state, losses.copies) {
            (State::Recovery, _) | (State::Loss, false) => false,
            _ => self.board.lost_out() > 0,
        };
        if begins {
            self.enter_recovery(now, State::Recovery, LossKind::Fast);
        } else if seen.ce > 0 && self.config.ecn && matches!(self.state, State::Open | State::Disorder) {
            self.enter_recovery(now, State::Cwr, LossKind::Ecn);
        }
        self.state = match (self.state, self.board.sacked_out() > 0) {
            (State::Open, true) => State::Disorder,
            (State::Disorder, false) => State::Open,
            (state, _) => state,
        };
        if self.state == State::Loss {
            seen.flags |= ACK_LOSS;
        }
    }

    /// Ends or undoes the episode if the ACK says so. The first rule that fits decides.
    fn settle(
        &mut self,
        now: Time,
        ack: &Acknowledgement,
        advanced: bool,
        outcome: &Outcome,
        seen: &Ack,
    ) -> Next {
        let una = self.board.una();
        let original = self.config.timestamps && self.recovery.undo.shows_original(ack);
        let late = advanced && original;
        match self.state {
            State::Loss => self.settle_loss(now, advanced, late, outcome, seen),
            // The ACK of `high_seq` itself still echoes the mark that began CWR: the segment with the CWR flag
            // is the next one.
            State::Cwr if una > self.recovery.high_seq => self.end_episode(now, seen),
            State::Recovery if una >= self.recovery.high_seq => {
                if original || self.recovery.undo.all_in_vain() {
                    self.undo(now, false);
                } else if self.holds() {
                    return Next::Skip;
                } else {
                    self.end_episode(now, seen);
                }
            }
            State::Recovery if late => {
                // The original filled a hole: the path reorders more than the estimate.
                self.recovery.reordering.note(u64::from(seen.acked).max(1));
                if self.board.retrans_out() == 0 {
                    self.undo(now, true);
                    // Duplicate ACKs that were counted begin another episode at once, as in Linux.
                    return if self.is_newreno_of_linux() { Next::Detect } else { Next::Skip };
                }
                return Next::Skip;
            }
            State::Cwr => {}
            State::Open | State::Disorder | State::Recovery => {
                if self.recovery.undo.all_in_vain() {
                    self.recovery.reordering.keep();
                    self.undo(now, false);
                }
            }
        }
        Next::Detect
    }

    /// After a timeout: decides whether it was spurious (RFC 3522, RFC 5682) and whether recovery is
    /// complete.
    fn settle_loss(&mut self, now: Time, advanced: bool, late: bool, outcome: &Outcome, seen: &Ack) {
        let frto = self.recovery.frto;
        if advanced && (late || self.recovery.undo.all_in_vain()) {
            self.undo(now, true);
            if self.is_newreno_of_linux() {
                // Linux stays in this state and finds no loss but by a timeout (measured).
                self.state = State::Loss;
                self.recovery.frto = frto;
            }
            return;
        }
        let (high_seq, sack) = (self.recovery.high_seq, self.config.sack);
        let done = self.board.una() >= high_seq;
        let (next, verdict) = frto.step(&Evidence {
            // Without SACK the segment may have waited for the retransmission of one below it.
            original: outcome.lowest_original.is_some_and(|seq| seq < high_seq)
                && (sack || !outcome.repeated),
            advanced,
            done,
            gap: outcome.beyond_gap || !(sack || advanced),
            sent_new: self.board.nxt() > high_seq,
            may_send_new: self.may_send_new(),
        });
        self.recovery.frto = next;
        if verdict == Verdict::Spurious {
            return self.undo(now, true);
        }
        if next == Frto::SendsNew {
            self.recovery.high_seq = self.board.nxt();
        }
        if done && !self.holds() {
            self.end_episode(now, seen);
        }
    }

    /// Without SACK, Linux keeps its state until it has an ACK beyond the segments outstanding when it began: the
    /// duplicate ACKs of spurious retransmissions would begin another episode (RFC 6582 §3.2 step 1).
    fn holds(&self) -> bool {
        self.is_newreno_of_linux() && self.board.una() == self.recovery.high_seq
    }

    fn is_newreno_of_linux(&self) -> bool {
        self.config.loss_detection == LossDetection::Rack && !self.config.sack
    }

    pub(super) fn detect_losses(&mut self, now: Time) -> Losses {
        if !self.config.sack || !self.board.dirty() {
            self.wait_for_reordering(now, None);
            return Losses::default();
        }
        match self.config.loss_detection {
            LossDetection::Rack => {
                let losses = self.board.detect_by_time(now, self.reorder_window());
                self.wait_for_reordering(now, losses.look_again);
                losses
            }
            LossDetection::DupThresh => self.board.detect_by_count(),
        }
    }

    fn reorder_window(&self) -> Time {
        let repairing = matches!(self.state, State::Recovery | State::Loss);
        self.recovery.reordering.window(repairing, self.board.sacked_out(), &self.rtt)
    }

    fn detect_newreno(&mut self, advanced: bool) -> Losses {
        let partial = advanced && self.state == State::Recovery && self.board.una() < self.recovery.high_seq;
        let third = self.dup_acks >= self.recovery.reordering.degree()
            && matches!(self.state, State::Open | State::Disorder | State::Cwr);
        if !(partial || third) {
            return Losses::default();
        }
        let lost = self.board.mark_head_lost();
        self.board.set_duplicate_acks(self.dup_acks);
        lost
    }

    pub(super) fn enter_recovery(&mut self, now: Time, state: State, kind: LossKind) {
        let cwnd_before = self.control.cwnd;
        self.remember_for_undo(kind);
        // At most one reduction per window of data.
        let reduced = self.state == State::Cwr;
        if !reduced {
            self.pacer.end_block(now, &self.control);
            let (loss, ssthresh) = (self.loss(now, kind), self.control.ssthresh);
            self.law.on_loss(&loss, &mut self.control);
            self.slow_start.on_loss(&loss, ssthresh, &mut self.control);
            self.report.stats.loss_events += 1;
            self.recovery.prr = Prr::new(cwnd_before.floor());
            self.send_cwr = self.tells_reductions();
            if self.config.reduction == Reduction::Immediate {
                self.control.cwnd = self.control.cwnd.min(self.control.ssthresh);
            }
        }
        self.state = state;
        // With SACK a recovery within a reduction for a mark ends where the reduction does, as in Linux (measured).
        if !reduced || self.config.loss_detection == LossDetection::DupThresh || !self.config.sack {
            self.recovery.high_seq = self.board.nxt();
        }
        // A reduction by marks retransmits nothing; ns-2 treats it as a recovery nevertheless.
        if state == State::Recovery || self.config.loss_detection == LossDetection::DupThresh {
            self.recovery.repair_end = self.board.nxt();
        }
        if kind == LossKind::Fast {
            self.forced.retransmit = !self.reduces_gradually()
                && (self.config.reduction == Reduction::Immediate || self.is_watched());
        }
        self.restart_timer(now);
        let event = if kind == LossKind::Ecn { EventKind::Ecn } else { EventKind::FastRetransmit };
        self.record(now, event, cwnd_before);
    }

    /// Whether the receiver repeats a mark until it is told of a reduction (RFC 3168): not with AccECN.
    fn tells_reductions(&self) -> bool {
        self.config.ecn && !self.config.accurate_ecn
    }

    pub(super) fn reduce(&mut self, delivered: u64, safe: bool) {
        let pipe = self.board.in_flight();
        let ssthresh = self.control.ssthresh.floor();
        let may_send = self.recovery.prr.on_ack(pipe, ssthresh, delivered, safe);
        self.control.cwnd = Window::whole((pipe + may_send).max(1));
    }

    fn end_episode(&mut self, now: Time, seen: &Ack) {
        let cwnd_before = self.control.cwnd;
        if self.state != State::Loss && self.control.ssthresh != Window::INFINITE && self.rate.is_none() {
            self.control.cwnd = self.control.ssthresh;
        }
        if self.state == State::Recovery {
            self.recovery.reordering.on_recovery_end();
        }
        self.state = State::Open;
        self.board.shrink();
        self.forced.retransmit = false;
        self.law.on_open(seen, &mut self.control);
        self.slow_start.on_open(&mut self.control);
        self.restart_timer(now);
        self.record(now, EventKind::RecoveryEnd, cwnd_before);
    }

    /// RFC 8985 §7.4: the probe repaired a loss unless the original also arrives.
    fn check_probe(&mut self, now: Time, ack: &Acknowledgement) {
        let Some(end) = self.timers.probe_end.map(NonZero::get) else { return };
        if ack.flags.has(AckFlags::DUPLICATE) || ack.cumulative > end {
            self.timers.probe_end = None;
        } else if ack.cumulative == end && !ack.flags.has(AckFlags::ECHOES_ORIGINAL) {
            self.timers.probe_end = None;
            if matches!(self.state, State::Open | State::Disorder) {
                self.enter_recovery(now, State::Cwr, LossKind::Fast);
            }
        }
    }

    pub(super) fn on_probe_timeout(&mut self, now: Time) {
        if self.board.sacked_out() > 0 || self.timers.probe_end.is_some() {
            // SACKs came since, so RACK looks for losses; or one probe is under way. The timeout counts from the first
            // segment.
            self.resume_timeout(now);
            return;
        }
        let due = self.probe_due();
        if due > now {
            self.timers.kind = Timer::TailLossProbe;
            self.timers.due = due;
            return;
        }
        if self.may_send_new() {
            // New data also serves as a probe, without a retransmission (§7.3).
            self.timers.probe_end = NonZero::new(self.board.nxt() + 1);
            self.forced.new = true;
        } else {
            self.timers.probe_end = NonZero::new(self.board.nxt());
            self.forced.retransmit = true;
        }
        self.restart_timeout(now);
    }

    pub(super) fn on_timeout(&mut self, now: Time) {
        let cwnd_before = self.control.cwnd;
        self.report.stats.timeouts += 1;
        let repairing = matches!(self.state, State::Recovery | State::Loss);
        let new_window = matches!(self.state, State::Open | State::Disorder)
            || self.board.una() >= self.recovery.high_seq
            || (self.state == State::Loss && self.recovery.timeouts_in_row == 0);
        self.pacer.end_block(now, &self.control);
        // Without SACK Linux's RACK has no RTT, which would spare segments sent less than an RTT ago.
        let all = self.config.loss_detection == LossDetection::DupThresh || !self.config.sack;
        let sent_by = if all { now } else { self.board.due_by_time(now, self.reorder_window()) };
        self.board.mark_lost_by_timeout(sent_by);
        if new_window {
            self.remember_for_undo(LossKind::Rto);
            let (loss, ssthresh) = (self.loss(now, LossKind::Rto), self.control.ssthresh);
            self.law.on_loss(&loss, &mut self.control);
            let loss = Loss { inflight: self.board.outstanding() as u32, ..loss };
            self.slow_start.on_loss(&loss, ssthresh, &mut self.control);
            self.report.stats.loss_events += 1;
        } else if let Some(law) = self.law.controller() {
            law.on_timeout_again(now.as_ns(), &mut self.control);
        }
        self.recovery.frto = if self.config.undo && (!repairing || self.recovery.timeouts_in_row > 0) {
            Frto::Watches
        } else {
            Frto::Off
        };
        self.recovery.timeouts_in_row += 1;
        self.show_lost(now);
        self.dup_acks = 0;
        self.board.set_duplicate_acks(if self.config.sack { self.board.sacked_out() } else { 0 });
        self.control.cwnd = Window::whole(self.board.in_flight() + 1);
        // RFC 3168 §6.1.2: a timeout is a reduction too. Otherwise the echo of an older mark would be taken for a new one.
        self.send_cwr = self.tells_reductions();
        self.state = State::Loss;
        self.recovery.high_seq = self.board.nxt();
        self.recovery.repair_end = self.recovery.high_seq;
        self.timers.probe_end = None;
        self.forced.retransmit = false;
        self.timers.reorder = Time::NEVER;
        self.timers.backoff += 1;
        self.restart_timer(now);
        self.record(now, EventKind::Timeout, cwnd_before);
    }
}
