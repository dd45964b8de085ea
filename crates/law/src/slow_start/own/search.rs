//! SEARCH 3.0 (text of draft-chung-ccwg-search of June 2024).

use crate::{Ack, Control, Window};

/// Bins of a window, W.
const WINDOW: u64 = 10;
/// Bins to look back by a round trip.
const EXTRA: u64 = 15;
/// One more than the text: the window one round trip ago may begin `WINDOW + EXTRA` bins back.
const BINS: usize = 26;
/// WINDOW_SIZE = 3.5 times the first RTT, so a bin is 0.35 of it.
const BIN_PERCENT: u64 = 35;
/// THRESH, in percent.
const THRESH: u128 = 35;
/// Bins in two of the first RTTs, 2 / 0.35, by which the congestion point was passed.
const OVERSHOOT: u64 = 5;

#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    /// Segments delivered in each bin.
    bins: [u64; BINS],
    /// Bins that have ended.
    ended: u64,
    bin_ns: u64,
    bin_end_ns: u64,
    /// ack.delivered when the last bin ended.
    delivered: u64,
    over: bool,
}

impl Search {
    pub(super) fn end(&mut self) {
        self.over = true;
    }

    pub(super) fn on_sample(&mut self, ack: &Ack, control: &mut Control) {
        if self.over {
            return;
        }
        if self.bin_ns == 0 {
            if ack.rtt_ns > 0 {
                self.bin_ns = (u128::from(ack.rtt_ns) * u128::from(BIN_PERCENT) / 100).max(1) as u64;
                self.bin_end_ns = ack.now_ns.saturating_add(self.bin_ns);
            }
            return;
        }
        if ack.now_ns <= self.bin_end_ns {
            return;
        }
        self.end_bins(ack);
        if ack.rtt_ns > 0 && self.is_past(ack.rtt_ns) {
            self.over = true;
            let over = self.sum(self.ended.saturating_sub(OVERSHOOT + 1), self.ended - 1, 0)
                / u128::from(self.bin_ns);
            let over = Window::whole(u64::try_from(over).unwrap_or(u64::MAX).min(Window::MAX.floor()));
            let left = Window::from_q32(control.cwnd.q32().saturating_sub(over.q32()));
            control.ssthresh = left.max(Window::MIN_SSTHRESH);
            control.cwnd = control.cwnd.min(control.ssthresh);
        }
    }

    /// Every bin that ended since the last ACK got nothing but the last of them.
    fn end_bins(&mut self, ack: &Ack) {
        let passed = (ack.now_ns - self.bin_end_ns) / self.bin_ns + 1;
        self.bin_end_ns = self.bin_end_ns.saturating_add(passed.saturating_mul(self.bin_ns));
        for bin in 0..passed.min(BINS as u64) {
            self.bins[((self.ended + passed - 1 - bin) % BINS as u64) as usize] = 0;
        }
        self.ended += passed;
        *self.bin(self.ended - 1) = ack.delivered.saturating_sub(self.delivered);
        self.delivered = ack.delivered;
    }

    fn bin(&mut self, index: u64) -> &mut u64 {
        &mut self.bins[(index % BINS as u64) as usize]
    }

    /// The last window delivered less than twice of what the one before a round trip did, by THRESH.
    fn is_past(&self, rtt_ns: u64) -> bool {
        let current = self.ended - 1;
        let back = rtt_ns / self.bin_ns;
        let Some(previous) = current.checked_sub(back).filter(|&index| index >= WINDOW && back <= EXTRA)
        else {
            return false;
        };
        let now = self.sum(current - WINDOW, current, 0);
        let expected = 2 * self.sum(previous - WINDOW, previous, rtt_ns % self.bin_ns);
        expected > 0 && expected.saturating_sub(now) * 100 >= THRESH * expected
    }

    /// Segments in the bins from `first` (its last `part_ns`) to `last` (without its last `part_ns`), times bin_ns.
    fn sum(&self, first: u64, last: u64, part_ns: u64) -> u128 {
        let bin = |index: u64| u128::from(self.bins[(index % BINS as u64) as usize]);
        let whole: u128 = (first + 1..last).map(bin).sum();
        whole * u128::from(self.bin_ns)
            + bin(first) * u128::from(part_ns)
            + bin(last) * u128::from(self.bin_ns - part_ns)
    }
}
