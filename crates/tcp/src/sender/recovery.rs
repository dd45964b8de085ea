//! How losses are found and repaired: episodes, undo, tail loss probes, timeouts.

use lfn_law::{Ack, LossKind, INFINITE, ONE};
use lfn_units::Time;

use super::{EventKind, Sender, State, DUP_THRESH};
use crate::prr::Prr;
use crate::receiver::Acknowledgement;
use crate::scoreboard::Delivered;
use crate::{LossDetection, Reduction};

impl Sender {
    /// What an ACK delivers that carries SACK blocks, is a duplicate, or follows such.
    #[cold]
    pub(super) fn digest(&mut self, now: Time, ack: &Acknowledgement, advanced: bool) -> Delivered {
        let min_rtt = Time::from_ns(self.rtt.min_ns());
        let mut delivered = self.board.on_sack(&ack.sack[..usize::from(ack.blocks)], now, min_rtt);
        if advanced {
            let more = self.board.on_cumulative(ack.cumulative, now, min_rtt);
            delivered.count += more.count;
            delivered.copy_sent = more.copy_sent;
            delivered.newest = delivered.newest.max(more.newest);
            delivered.newest_sent = delivered.newest_sent.max(more.newest_sent);
            delivered.oldest_sent = match (delivered.oldest_sent, more.oldest_sent) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        if !self.config.sack {
            delivered.count = self.count_duplicates(advanced, delivered.count);
        }
        delivered
    }

    /// NewReno: a duplicate ACK stands for one segment delivered somewhere (RFC 6582); what it stood for
    /// is not counted again when the cumulative ACK covers it.
    fn count_duplicates(&mut self, advanced: bool, delivered: u32) -> u32 {
        if !advanced {
            if self.board.outstanding() == 0 {
                return delivered;
            }
            self.dup_acks += 1;
            self.board.set_duplicate_acks(self.dup_acks);
            return delivered + 1;
        }
        let counted = self.dup_acks.min(u64::from(delivered).saturating_sub(1));
        self.dup_acks -= counted;
        if self.board.una() >= self.high_seq || self.board.outstanding() == 0 {
            self.dup_acks = 0;
        }
        self.board.set_duplicate_acks(self.dup_acks);
        delivered - counted as u32
    }

    /// Anything but the plain ACK of state Open: ends of episodes, undo, losses.
    #[cold]
    pub(super) fn on_dubious(&mut self, now: Time, ack: &Acknowledgement, advanced: bool, seen: &mut Ack) {
        let una = self.board.una();
        self.check_probe(now, ack);
        let spurious = advanced
            && self.undoable
            && self.retransmitted_in_episode
            && ack.echoes_original
            && una <= self.high_seq
            && matches!(self.state, State::Recovery | State::Loss);
        // The ACK of `high_seq` itself still echoes the mark that began CWR: the segment with the CWR flag is next.
        let ends = match self.state {
            State::Cwr => una > self.high_seq,
            State::Recovery | State::Loss => una >= self.high_seq,
            State::Open | State::Disorder => false,
        };
        if spurious {
            self.undo(now);
        } else if ends {
            self.end_episode(now, seen);
        }
        self.detect_losses(now);
        if !self.config.sack {
            self.detect_newreno(advanced);
        }
        seen.newly_lost = self.board.take_newly_lost();
        self.show_lost(now);
        if self.board.lost_out() > 0 && !matches!(self.state, State::Recovery | State::Loss) {
            self.enter_recovery(now, State::Recovery, LossKind::Fast);
        } else if ack.ece && self.config.ecn && matches!(self.state, State::Open | State::Disorder) {
            self.enter_recovery(now, State::Cwr, LossKind::Ecn);
        }
        self.state = match (self.state, self.board.sacked_out() > 0) {
            (State::Open, true) => State::Disorder,
            (State::Disorder, false) => State::Open,
            (state, _) => state,
        };
    }

    pub(super) fn detect_losses(&mut self, now: Time) {
        if !self.config.sack || !self.board.dirty() {
            self.reorder_timer = Time::NEVER;
            return;
        }
        match self.config.loss_detection {
            LossDetection::Rack => {
                // No reordering was ever seen: no window once three are SACKed or repair has begun.
                let repairing = matches!(self.state, State::Recovery | State::Loss);
                let window_ns = if repairing || self.board.sacked_out() >= DUP_THRESH {
                    0
                } else {
                    (self.rtt.min_ns() / 4).min(self.rtt.srtt_ns() / 8)
                };
                let again = self.board.detect_by_time(now, Time::from_ns(window_ns));
                self.reorder_timer = again.map_or(Time::NEVER, |at| at.max(now + Time::from_us(1)));
            }
            LossDetection::DupThresh => self.board.detect_by_count(),
        }
    }

    fn detect_newreno(&mut self, advanced: bool) {
        let partial = advanced && self.state == State::Recovery && self.board.una() < self.high_seq;
        let third =
            self.dup_acks >= DUP_THRESH && matches!(self.state, State::Open | State::Disorder | State::Cwr);
        if partial || third {
            self.board.mark_head_lost();
            self.board.set_duplicate_acks(self.dup_acks);
        }
    }

    fn remember_for_undo(&mut self) {
        self.prior = self.control;
        self.undoable = true;
        self.retransmitted_in_episode = false;
    }

    pub(super) fn enter_recovery(&mut self, now: Time, state: State, kind: LossKind) {
        let cwnd_before = self.control.cwnd;
        // A reduction under way in this window of data is not repeated.
        if self.state != State::Cwr {
            self.end_block(now);
            self.remember_for_undo();
            let loss = self.loss(now, kind);
            self.law.on_loss(&loss, &mut self.control);
            self.slow_start.on_loss(&loss);
            self.stats.loss_events += 1;
            self.prr = Prr::new(cwnd_before >> 32);
            self.send_cwr = self.config.ecn;
            if self.config.reduction == Reduction::Immediate {
                self.control.cwnd = self.control.cwnd.min(self.control.ssthresh);
            }
        }
        self.state = state;
        self.high_seq = self.board.nxt();
        if kind == LossKind::Fast {
            self.force_retransmit = self.config.reduction == Reduction::Immediate;
        }
        self.reorder_timer = Time::NEVER;
        self.restart_timer(now);
        let event = if kind == LossKind::Ecn { EventKind::Ecn } else { EventKind::FastRetransmit };
        self.record(now, event, cwnd_before);
    }

    pub(super) fn reduce(&mut self, delivered: u64, safe: bool) {
        let pipe = self.board.in_flight();
        let ssthresh = self.control.ssthresh >> 32;
        let may_send = self.prr.on_ack(pipe, ssthresh, delivered, safe);
        self.control.cwnd = (pipe + may_send).max(1) * ONE;
    }

    fn end_episode(&mut self, now: Time, seen: &Ack) {
        let cwnd_before = self.control.cwnd;
        if self.state != State::Loss && self.control.ssthresh != INFINITE && self.rate.is_none() {
            self.control.cwnd = self.control.ssthresh;
        }
        self.state = State::Open;
        self.undoable = false;
        self.force_retransmit = false;
        self.law.on_open(seen, &mut self.control);
        self.restart_timer(now);
        self.record(now, EventKind::RecoveryEnd, cwnd_before);
    }

    fn undo(&mut self, now: Time) {
        let cwnd_before = self.control.cwnd;
        self.control.cwnd = self.control.cwnd.max(self.prior.cwnd);
        self.control.ssthresh = self.control.ssthresh.max(self.prior.ssthresh);
        self.law.on_undo(&mut self.control);
        self.board.unmark_lost();
        self.state = State::Open;
        self.undoable = false;
        self.stats.undos += 1;
        self.restart_timer(now);
        self.record(now, EventKind::Undo, cwnd_before);
    }

    /// RFC 8985 §7.4: the probe repaired a loss unless the original arrives as well.
    fn check_probe(&mut self, now: Time, ack: &Acknowledgement) {
        let Some(end) = self.probe_end else { return };
        if ack.duplicate || ack.cumulative > end {
            self.probe_end = None;
        } else if ack.cumulative == end && !ack.echoes_original {
            self.probe_end = None;
            if matches!(self.state, State::Open | State::Disorder) {
                self.enter_recovery(now, State::Cwr, LossKind::Fast);
            }
        }
    }

    pub(super) fn on_probe_timeout(&mut self, now: Time) {
        if self.may_send_new() {
            // New data probes as well, and tells nothing wrong (§7.3).
            self.probe_end = Some(self.board.nxt() + 1);
            self.force_new = true;
        } else {
            self.probe_end = Some(self.board.nxt());
            self.force_retransmit = true;
        }
        self.restart_timer(now);
    }

    pub(super) fn on_timeout(&mut self, now: Time) {
        let cwnd_before = self.control.cwnd;
        self.stats.timeouts += 1;
        let new_window =
            matches!(self.state, State::Open | State::Disorder) || self.board.una() >= self.high_seq;
        self.end_block(now);
        if new_window {
            self.remember_for_undo();
            let loss = self.loss(now, LossKind::Rto);
            self.law.on_loss(&loss, &mut self.control);
            self.slow_start.on_loss(&loss);
            self.stats.loss_events += 1;
        }
        self.board.mark_all_lost();
        self.board.take_newly_lost();
        self.show_lost(now);
        self.dup_acks = 0;
        self.board.set_duplicate_acks(if self.config.sack { self.board.sacked_out() } else { 0 });
        self.control.cwnd = ONE;
        self.state = State::Loss;
        self.high_seq = self.board.nxt();
        self.probe_end = None;
        self.force_retransmit = false;
        self.reorder_timer = Time::NEVER;
        self.backoff += 1;
        self.restart_timer(now);
        self.record(now, EventKind::Timeout, cwnd_before);
    }
}
