//! Output: retransmissions first, then new data, paced or in blocks.

use lfn_units::Time;

use super::{gap, Frto, Segment, Sender, State};

/// Linux paces a connection only after its first ten segments. Hosts of ns-2, which open without a handshake,
/// and laws that Linux does not have pace from the first segment.
const UNPACED_SEGMENTS: u64 = 10;

impl Sender {
    /// The next segment that may be sent now; it then counts as sent.
    #[inline(always)]
    pub fn next_segment(&mut self, now: Time) -> Option<Segment> {
        let in_flight = self.board.in_flight();
        let window = self.window();
        if self.board.dirty() || self.force_retransmit {
            if let Some(seq) = self.segment_to_repeat(in_flight < window) {
                if self.control.block == 0 && self.is_paced(now) {
                    return None;
                }
                return Some(self.retransmit(now, seq));
            }
        }
        if in_flight >= window && !self.force_new {
            if self.buffered {
                self.write();
            }
            self.cwnd_limited = true;
            self.usage_end = self.board.nxt();
            self.usage_max = self.board.outstanding();
            return None;
        }
        if !self.may_send_new() && !self.writes_more() {
            if self.board.una() >= self.usage_end {
                self.cwnd_limited = false;
                self.usage_end = self.board.nxt();
                self.usage_max = self.board.outstanding();
            }
            self.usage_max = self.usage_max.max(self.board.outstanding());
            // A full send buffer makes samples app-limited, a full receive window does not (as in Linux).
            let waits =
                self.round_end == 0 || self.board.outstanding() >= self.config.receive_window_segments;
            if let Some(rate) = self.rate.as_mut().filter(|_| !waits || self.board.nxt() >= self.end) {
                rate.mark_app_limited(in_flight);
            }
            return None;
        }
        if self.is_paced(now) {
            return None;
        }
        let first = self.board.outstanding() == 0;
        let seq = self.board.on_sent(now);
        if first {
            self.restart_timer(now);
        }
        self.force_new = false;
        Some(self.sent(now, seq, false))
    }

    /// The application had written no more, and now has.
    fn writes_more(&mut self) -> bool {
        if self.buffered && self.board.nxt() >= self.end {
            self.write();
        }
        self.may_send_new()
    }

    fn segment_to_repeat(&mut self, window_open: bool) -> Option<u64> {
        if !window_open && !self.force_retransmit || self.frto == Frto::SendsNew && self.may_send_new() {
            return None;
        }
        let lost = self.board.next_lost();
        if lost.is_none() && self.force_retransmit && self.probe_end.is_some() {
            return Some(self.board.nxt() - 1);
        }
        lost
    }

    fn retransmit(&mut self, now: Time, seq: u64) -> Segment {
        self.force_retransmit = false;
        self.undo.on_copy(self.board.nxt());
        self.board.on_retransmitted(seq, now);
        self.stats.retransmits += 1;
        if seq == self.board.una() {
            self.restart_timer(now);
        }
        self.sent(now, seq, true)
    }

    #[inline]
    fn sent(&mut self, now: Time, seq: u64, retransmission: bool) -> Segment {
        self.stats.sent += 1;
        if matches!(self.state, State::Cwr | State::Recovery) {
            self.prr.on_sent(1);
        }
        let asked = self.control.pacing_bytes_per_s | u64::from(self.control.block);
        if asked | u64::from(self.times_sending) != 0 {
            self.time_sending(now, seq, retransmission);
        }
        let cwr = self.send_cwr && !retransmission;
        self.send_cwr &= !cwr;
        Segment { seq, retransmission, cwr }
    }

    fn is_paced(&mut self, now: Time) -> bool {
        self.held_by_pacing = now < self.next_send;
        self.held_by_pacing
    }

    /// Records a sent segment for the rate sampler, and sets `next_send`.
    #[cold]
    fn time_sending(&mut self, now: Time, seq: u64, retransmission: bool) {
        if let Some(sampler) = &mut self.rate {
            let (una, nxt) = (self.board.una(), self.board.nxt());
            if sampler.on_sent(seq, una, nxt, self.board.in_flight(), now) {
                self.law.on_restart(now.as_ns(), &mut self.control);
            }
        }
        if self.control.block > 0 {
            if !retransmission {
                self.count_in_block(now);
            }
            return;
        }
        let own = self.rate.is_none() && self.control.pacing_bytes_per_s != 0;
        if self.stats.sent < UNPACED_SEGMENTS && self.config.handshake && !own {
            return;
        }
        let (bits, bits_per_s) = if self.control.pacing_bytes_per_s != 0 {
            // A law's rate counts payload, like its window, and as in Linux.
            (u128::from(self.config.mss_bytes) * 8, u128::from(self.control.pacing_bytes_per_s) * 8)
        } else {
            let srtt_ns = u128::from(self.rtt.srtt_ns());
            if srtt_ns == 0 {
                return;
            }
            // Linux: twice the window a round trip in slow start, 1.2 times after.
            let gain = if self.control.cwnd < self.control.ssthresh / 2 { 200 } else { 120 };
            let bits = u128::from(self.wire_bits);
            (bits, u128::from(self.window()) * bits * 1_000_000_000 * gain / (100 * srtt_ns))
        };
        self.next_send = self.next_send.max(now).after(gap(bits, bits_per_s));
    }

    /// Counts a new segment in its block. A block begins with its first segment and lasts at least
    /// srtt/blocks: if all of it is sent earlier, the sender pauses. Unused segments of a block expire at its
    /// end.
    fn count_in_block(&mut self, now: Time) {
        if self.block_left == 0 || now >= self.block_end {
            let blocks = u64::from(self.control.blocks.max(1));
            self.block_end = now + Time::from_ns(self.rtt.srtt_ns() / blocks);
            self.block_left = self.control.block;
        }
        self.block_left -= 1;
        if self.block_left == 0 {
            self.next_send = self.block_end;
        }
    }

    /// An episode begins: nothing waits for a block's end.
    pub(super) fn end_block(&mut self, now: Time) {
        if self.control.block > 0 {
            self.block_left = 0;
            self.next_send = now;
        }
    }
}
