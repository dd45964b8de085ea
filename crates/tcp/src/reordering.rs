//! Reordering of the path as the sender measures it, and RACK's reordering window (RFC 8985 §6.2).

use lfn_units::Time;

use crate::rtt::RttEstimator;

/// Duplicate ACKs or SACKed segments that prove a loss (RFC 5681), and the reordering that any path is taken
/// to have.
const DUP_THRESH: u16 = 3;
/// The most segments of reordering that count (Linux tcp_max_reordering).
const DEGREE_MAX: u16 = 300;
/// Recoveries after which the window is small again, unless a DSACK comes (RFC 8985 §6.2 step 4).
const RECOVERIES: u8 = 16;

/// Reordering of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reordering {
    /// An original was delivered after one that was sent later.
    seen: bool,
    /// The window, in quarters of the least RTT.
    steps: u8,
    /// Recoveries until the window is one step again.
    persist: u8,
    /// The most segments by which one was overtaken.
    degree: u16,
    /// No further step until this is acknowledged: one a round trip.
    round_end: u64,
}

/// A degree of reordering as far as it counts.
fn capped(degree: u64) -> u16 {
    degree.min(DEGREE_MAX.into()) as u16
}

impl Default for Reordering {
    fn default() -> Reordering {
        Reordering { seen: false, steps: 1, persist: 0, degree: DUP_THRESH, round_end: 0 }
    }
}

impl Reordering {
    /// An original was delivered although others of the `distance` segments from it on had been before.
    pub fn note(&mut self, distance: u64) {
        self.seen = true;
        self.degree = self.degree.max(capped(distance));
    }

    /// So many segments were overtaken, as far as duplicate ACKs tell.
    pub fn set_degree(&mut self, degree: u64) {
        self.degree = capped(degree);
    }

    /// More reordering was seen than any path is taken to have.
    pub fn is_strong(&self) -> bool {
        self.degree > DUP_THRESH
    }

    /// The most segments by which one was overtaken. Without SACK, so many duplicate ACKs show a loss.
    pub fn degree(&self) -> u64 {
        self.degree.into()
    }

    /// A DSACK reported a spurious retransmission. `una`: first unacknowledged segment; `nxt`: next to send.
    pub fn on_dsack(&mut self, una: u64, nxt: u64) {
        if self.seen && una >= self.round_end {
            self.round_end = nxt;
            self.steps = self.steps.saturating_add(1);
            self.persist = RECOVERIES;
        }
    }

    /// A recovery was undone since all its retransmissions were spurious.
    pub fn keep(&mut self) {
        self.persist = (self.persist + 1).min(RECOVERIES);
    }

    /// A recovery ended.
    pub fn on_recovery_end(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// How long a segment may be late. None without reordering, once repair has begun or as many segments
    /// are SACKed as prove a loss.
    pub fn window(&self, repairing: bool, sacked: u64, rtt: &RttEstimator) -> Time {
        if !self.seen && (repairing || sacked >= DUP_THRESH.into()) {
            return Time::ZERO;
        }
        Time::from_ns((rtt.min_ns() / 4 * u64::from(self.steps)).min(rtt.srtt_ns()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RtoForm;

    #[test]
    fn the_window_grows_by_dsacks_a_round_trip_and_falls_back_after_16_recoveries() {
        let mut rtt = RttEstimator::new(RtoForm::Linux, Time::from_ms(200), Time::from_s(120));
        rtt.sample(100_000_000, 100_000_000);
        let mut reordering = Reordering::default();
        let ms = |r: &Reordering| r.window(true, 9, &rtt).as_ns() / 1_000_000;
        assert_eq!((ms(&reordering), reordering.window(false, 2, &rtt).as_ns()), (0, 25_000_000));
        reordering.note(2);
        assert_eq!((ms(&reordering), reordering.is_strong()), (25, false));
        reordering.note(1000);
        assert_eq!((reordering.degree, reordering.is_strong()), (300, true));
        // Three in one round trip are one step; the next is beyond what was sent then.
        for una in [10, 12, 49] {
            reordering.on_dsack(una, 50);
        }
        assert_eq!(ms(&reordering), 50);
        reordering.on_dsack(50, 90);
        assert_eq!(ms(&reordering), 75);
        for una in 90..100 {
            reordering.on_dsack(una, una);
        }
        assert_eq!(ms(&reordering), 100, "no more than the smoothed RTT");
        for _ in 0..15 {
            reordering.on_recovery_end();
        }
        assert_eq!(ms(&reordering), 100);
        reordering.on_recovery_end();
        assert_eq!(ms(&reordering), 25);
    }
}
