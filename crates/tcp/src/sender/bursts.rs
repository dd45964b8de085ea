//! Bursts of a host with segmentation offload: it waits until a piece of many segments may leave.

use super::Sender;

/// Linux lets no more than this part of the window wait (`tcp_tso_win_divisor`).
const WINDOW_PARTS: u64 = 3;

impl Sender {
    /// Whether segments leave in bursts.
    pub fn sends_bursts(&self) -> bool {
        self.config.burst_segments > 1
    }

    /// Whether the window has opened by less than a burst, so that new data wait for further ACKs. Retransmissions do not
    /// wait, nor do new data while nothing is in flight.
    pub fn waits_for_burst(&self) -> bool {
        self.sends_bursts() && self.is_below_burst()
    }

    #[cold]
    fn is_below_burst(&self) -> bool {
        let (window, in_flight) = (self.window(), self.board.in_flight());
        let rest = self.supply.end.saturating_sub(self.board.nxt());
        let burst = self.config.burst_segments.min(window / WINDOW_PARTS).min(rest);
        in_flight > 0
            && !self.board.dirty()
            && !self.forced.new
            && !self.forced.retransmit
            && window.saturating_sub(in_flight) < burst
    }
}
