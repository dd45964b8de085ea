//! Output: retransmissions first, then new data, paced or in blocks.

use lfn_units::Time;

use super::undo::Frto;
use super::{Segment, Sender, State};
use crate::rate::Outstanding;

/// Linux paces a connection only after its first ten segments. Hosts of ns-2, which open without a handshake,
/// and laws that Linux does not have pace from the first segment.
const UNPACED_SEGMENTS: u64 = 10;

/// Whether the window was in use, as Linux decides it (RFC 7661): at most once per window of data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// `limited` holds until this is acknowledged.
    pub end: u64,
    /// Most segments outstanding in that time.
    pub most: u32,
    /// The window limited what was sent.
    pub limited: bool,
    /// New data below this had been sent when pacing last held the next segment back.
    pub paced: u64,
}

/// A segment that may be sent beyond the window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Forced {
    pub retransmit: bool,
    pub new: bool,
}

impl Sender {
    /// The next segment that may be sent now; it then counts as sent.
    #[inline(always)]
    pub fn next_segment(&mut self, now: Time) -> Option<Segment> {
        let in_flight = self.board.in_flight();
        let window = self.window();
        if self.board.dirty() || self.forced.retransmit {
            if let Some(seq) = self.segment_to_repeat(in_flight < window) {
                if self.control.block == 0 && self.is_paced(now) {
                    return None;
                }
                let copy = self.retransmit(now, seq);
                return Some(Segment { seq, retransmission: true, copy, cwr: false });
            }
        }
        if in_flight >= window && !self.forced.new {
            if self.supply.buffer.is_some() {
                self.write();
            }
            self.usage.limited = true;
            self.usage.end = self.board.nxt();
            self.usage.most = self.board.outstanding() as u32;
            return None;
        }
        if !self.may_send_new() && !self.writes_more() {
            if self.board.una() >= self.usage.end {
                self.usage = Usage { limited: false, end: self.board.nxt(), most: 0, ..self.usage };
            }
            self.usage.most = self.usage.most.max(self.board.outstanding() as u32);
            if self.rare.is_some() {
                self.note_last_sent(now);
            }
            // A full send buffer makes samples app-limited, a full receive window does not (as in Linux).
            let waits =
                self.next_round() == 1 || self.board.outstanding() >= self.config.receive_window_segments;
            if let Some(rate) = self.rate.as_mut().filter(|_| !waits || self.board.nxt() >= self.supply.end) {
                rate.mark_app_limited(in_flight);
            }
            return None;
        }
        if self.is_paced(now) {
            self.end_new_data();
            self.note_paced();
            return None;
        }
        let seq = self.board.on_sent(now);
        if self.board.outstanding() <= 2 {
            self.on_first_sent(now);
        }
        self.forced.new = false;
        Some(self.sent(now, seq, false))
    }

    /// The application had written no more, and now has.
    fn writes_more(&mut self) -> bool {
        if self.supply.buffer.is_some() && self.board.nxt() >= self.supply.end {
            self.write();
        }
        self.may_send_new()
    }

    fn segment_to_repeat(&mut self, window_open: bool) -> Option<u64> {
        if !window_open && !self.forced.retransmit || self.sends_new_only() {
            return None;
        }
        let lost = self.board.next_lost();
        if lost.is_none() && self.forced.retransmit && self.timers.probe_end.is_some() {
            return Some(self.board.nxt() - 1);
        }
        lost
    }

    /// RFC 5682 §2.1 step 2b: new segments leave and no retransmission, even if the receive window has room for one.
    fn sends_new_only(&self) -> bool {
        self.recovery.frto == Frto::SendsNew
            && (self.may_send_new() || self.board.nxt() > self.recovery.high_seq)
    }

    /// Repeats a segment. Returns which copy of it that is.
    fn retransmit(&mut self, now: Time, seq: u64) -> u8 {
        let probes = std::mem::take(&mut self.forced.retransmit) && self.timers.probes(seq);
        self.recovery.undo.on_copy(self.board.nxt());
        self.recovery.restarts |= self.board.in_flight() == 0;
        if probes {
            self.board.on_probed(now);
        } else {
            self.board.on_retransmitted(seq, now);
        }
        self.report.stats.retransmits += 1;
        if seq == self.board.una() {
            self.restart_timer(now);
        }
        self.sent(now, seq, true);
        self.board.last_copy(seq).unwrap_or(0)
    }

    #[inline(always)]
    fn sent(&mut self, now: Time, seq: u64, retransmission: bool) -> Segment {
        self.report.stats.sent += 1;
        if matches!(self.state, State::Cwr | State::Recovery) {
            self.recovery.prr.on_sent(1);
        }
        let asked = self.control.pacing_Bps | u64::from(self.control.block);
        if asked | u64::from(self.pacer.times_all) != 0 {
            self.time_sending(now, seq, retransmission);
        }
        let cwr = self.send_cwr && !retransmission;
        self.send_cwr &= !cwr;
        Segment { seq, retransmission, copy: 0, cwr }
    }

    fn is_paced(&mut self, now: Time) -> bool {
        self.pacer.holds(now)
    }

    /// Pacing keeps new data back: retransmissions follow the first new data after a timeout, and without new data F-RTO
    /// ends (measured).
    fn end_new_data(&mut self) {
        if self.recovery.frto == Frto::SendsNew {
            let sent = self.board.nxt() > self.recovery.high_seq;
            self.recovery.frto = if sent { Frto::Watches } else { Frto::Off };
        }
    }

    /// Pacing ends a burst. If new data left in it, how far the window is used is known again (Linux asks after each
    /// burst; measured: of ten segments that need no pacing, the last three raise what slow start may reach).
    fn note_paced(&mut self) {
        let nxt = self.board.nxt();
        if self.usage.paced == nxt {
            return;
        }
        self.usage.paced = nxt;
        let (limited, most) = (self.board.in_flight() >= self.window(), self.board.outstanding() as u32);
        if limited || self.board.una() >= self.usage.end || (!self.usage.limited && most > self.usage.most) {
            self.usage = Usage { limited, end: nxt, most, ..self.usage };
        }
    }

    /// Shows a packet that leaves to a law that looks at packets.
    #[cold]
    fn show_sent(&mut self, now: Time, seq: u64, in_flight: u64) {
        let Some(sampler) = &self.rate else { return };
        let Some(law) = self.law.controller().and_then(|law| law.packets()) else { return };
        self.report.observe(now, self.control.cwnd);
        let reduced = self.control.cwnd;
        law.on_sent(now.as_ns(), &sampler.packet(seq), in_flight, &mut self.control);
        if self.reduces_gradually() {
            self.control.cwnd = reduced;
        }
    }

    /// Records a sent segment for the rate sampler and the pacer.
    #[cold]
    fn time_sending(&mut self, now: Time, seq: u64, retransmission: bool) {
        if let Some(sampler) = &mut self.rate {
            let window = Outstanding {
                una: self.board.una(),
                nxt: self.board.nxt(),
                in_flight: self.board.in_flight(),
            };
            if sampler.on_sent(now, seq, &window) {
                if let Some(law) = self.law.controller() {
                    self.report.observe(now, self.control.cwnd);
                    law.on_restart(now.as_ns(), &mut self.control);
                }
            }
            if sampler.watched {
                self.show_sent(now, seq, window.in_flight);
                if self.control.pacing_Bps == 0 && !self.config.pacing {
                    return;
                }
            }
        }
        if self.control.block > 0 {
            if !retransmission {
                self.pacer.count_in_block(now, self.rtt.srtt_ns(), &self.control);
            }
            return;
        }
        let own = !self.law.is_controller() && self.control.pacing_Bps != 0;
        if self.report.stats.sent < UNPACED_SEGMENTS && self.config.handshake && !own {
            self.pacer.next_send = self.pacer.next_send.max(now);
            return;
        }
        let outstanding = self.board.outstanding();
        self.pacer.on_sent(now, self.rtt.srtt_ns(), self.config.mss_bytes, outstanding, &self.control);
    }
}
