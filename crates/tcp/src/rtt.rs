//! Round-trip time and retransmission timeout (RFC 6298).

use lfn_units::Time;

use crate::RtoForm;

/// Smoothed RTT, its variation, and the timeout that follows from them. Times in ns.
///
/// Linux's form is that of P. Sarolahti, A. Kuznetsov, Congestion Control in Linux TCP (USENIX 2002): the margin
/// over srtt rises at once with the mean deviation, and falls by a quarter of the distance once a round trip.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    srtt_ns: u64,
    rttvar_ns: u64,
    min_ns: u64,
    latest_ns: u64,
    /// The timeout is srtt + margin, at most `max_rto_ns`. Before the first sample it is the initial timeout.
    margin_ns: u64,
    /// Linux: the largest margin that samples of this round trip ask for, `least_ns` at least. ns-2: 0.
    largest_ns: u64,
    /// Linux: least margin; ns-2: least timeout.
    least_ns: u64,
    max_rto_ns: u64,
    form: RtoForm,
}

/// The timeout before the first sample (RFC 6298 §2.1).
const INITIAL_RTO_NS: u64 = 1_000_000_000;
/// The clock granularity G of RFC 6298 §2 in ns-2: its clock ticks every 10 ms, and its variation, kept in
/// quarters of a tick, stops falling at three of them.
const NS2_GRANULARITY_NS: u64 = 30_000_000;

impl RttEstimator {
    /// No sample yet.
    pub fn new(form: RtoForm, min_rto: Time, max_rto: Time) -> RttEstimator {
        let least_ns = min_rto.as_ns();
        let largest_ns = if form == RtoForm::Linux { least_ns } else { 0 };
        RttEstimator {
            srtt_ns: 0,
            rttvar_ns: 0,
            min_ns: 0,
            latest_ns: 0,
            largest_ns,
            margin_ns: INITIAL_RTO_NS,
            least_ns,
            max_rto_ns: max_rto.as_ns(),
            form,
        }
    }

    /// Valid samples of one ACK, not of retransmitted segments (Karn): `rtt_ns` of the oldest segment
    /// that it delivered, for the timeout; `latest_ns` of the newest, for the laws and the minimum. Neither is 0.
    #[inline]
    pub fn sample(&mut self, rtt_ns: u64, latest_ns: u64) {
        self.latest_ns = latest_ns;
        if self.srtt_ns == 0 {
            self.srtt_ns = rtt_ns;
            self.rttvar_ns = rtt_ns / 2;
            self.min_ns = latest_ns;
            self.margin_ns = self.largest_ns;
        } else {
            self.min_ns = self.min_ns.min(latest_ns);
            // §2.3: the variation first, against the old mean.
            let error = self.srtt_ns.abs_diff(rtt_ns);
            if rtt_ns < self.srtt_ns && error > self.rttvar_ns && self.form == RtoForm::Linux {
                // A falling RTT raises the variation an eighth as much as a rising one.
                self.rttvar_ns += (error - self.rttvar_ns) / 32;
            } else {
                self.rttvar_ns = self.rttvar_ns - self.rttvar_ns / 4 + error / 4;
            }
            self.srtt_ns = self.srtt_ns - self.srtt_ns / 8 + rtt_ns / 8;
        }
        let margin_ns = 4 * self.rttvar_ns;
        if margin_ns >= self.largest_ns {
            self.ask(margin_ns);
        }
    }

    /// A sample asks for a margin: Linux's only rises here.
    #[cold]
    fn ask(&mut self, margin_ns: u64) {
        if self.form == RtoForm::Linux {
            self.largest_ns = margin_ns;
            self.margin_ns = self.margin_ns.max(margin_ns);
        } else {
            self.margin_ns =
                margin_ns.max(NS2_GRANULARITY_NS).max(self.least_ns.saturating_sub(self.srtt_ns));
        }
    }

    /// A round trip is over: Linux's margin falls by a quarter of its excess over the largest margin of the round.
    #[inline]
    pub fn end_round(&mut self) {
        if self.form == RtoForm::Linux {
            self.margin_ns -= (self.margin_ns - self.largest_ns) / 4;
            self.largest_ns = self.least_ns;
        }
    }

    /// Smoothed RTT; 0 before the first sample.
    pub fn srtt_ns(&self) -> u64 {
        self.srtt_ns
    }

    /// RTT variation; 0 before the first sample.
    pub fn rttvar_ns(&self) -> u64 {
        self.rttvar_ns
    }

    /// Smallest sample; 0 before the first.
    pub fn min_ns(&self) -> u64 {
        self.min_ns
    }

    /// Last sample; 0 before the first.
    pub fn latest_ns(&self) -> u64 {
        self.latest_ns
    }

    /// Retransmission timeout without back-off.
    #[inline]
    pub fn rto_ns(&self) -> u64 {
        (self.srtt_ns + self.margin_ns).min(self.max_rto_ns)
    }

    /// Retransmission timeout after `backoff` doublings.
    pub fn backed_off_rto_ns(&self, backoff: u32) -> u64 {
        ((self.srtt_ns + self.margin_ns) << backoff.min(16)).min(self.max_rto_ns)
    }

    /// The timeout in whole ticks of Linux's clock, a millisecond each, doubled `backoff` times.
    pub fn rto_ms(&self, backoff: u32) -> u64 {
        let ms = (self.srtt_ns + self.margin_ns).div_ceil(1_000_000);
        (ms << backoff.min(16)).min(self.max_rto_ns / 1_000_000)
    }
}

/// The timestamp of a segment that is sent then, as Linux counts them.
pub(crate) fn timestamp_ms(sent: Time) -> u64 {
    sent.as_ns() / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rto_ms(samples: &[u64], form: RtoForm) -> (f64, f64, f64) {
        let mut rtt = RttEstimator::new(form, Time::from_ms(200), Time::from_s(60));
        for ms in samples {
            rtt.sample(ms * 1_000_000, ms * 1_000_000);
        }
        (rtt.srtt_ns() as f64 / 1e6, rtt.rttvar_ns() as f64 / 1e6, rtt.rto_ns() as f64 / 1e6)
    }

    #[test]
    fn known_values() {
        let close = |got: (f64, f64, f64), want: (f64, f64, f64)| {
            assert!(
                (got.0 - want.0).abs() < 1e-3
                    && (got.1 - want.1).abs() < 1e-3
                    && (got.2 - want.2).abs() < 0.1
            )
        };
        close(rto_ms(&[100], RtoForm::Ns2), (100.0, 50.0, 300.0));
        close(rto_ms(&[100, 100, 100, 100], RtoForm::Ns2), (100.0, 21.09375, 200.0));
        close(rto_ms(&[100, 100, 100, 180], RtoForm::Ns2), (110.0, 41.09375, 274.4));
        close(rto_ms(&[100, 100, 100, 100], RtoForm::Linux), (100.0, 21.09375, 300.0));
    }

    /// 240 ms: the margin of 480 ms falls towards 200 ms. (Linux 6.12 with two to twelve samples a round trip: timeouts
    /// of 721, 724, 675, 620, 588 ms.)
    #[test]
    fn linuxs_margin_falls_by_a_quarter_a_round_trip() {
        let mut rtt = RttEstimator::new(RtoForm::Linux, Time::from_ms(200), Time::from_s(120));
        let mut timeouts = Vec::new();
        for _ in 0..6 {
            for _ in 0..10 {
                rtt.sample(240_000_000, 240_000_000);
            }
            timeouts.push(rtt.rto_ns() / 1_000_000);
            rtt.end_round();
        }
        assert_eq!(timeouts, [720, 720, 650, 597, 558, 528]);
    }

    #[test]
    fn an_rtt_that_falls_hardly_raises_linuxs_timeout() {
        let (rising, falling) =
            (rto_ms(&[100, 100, 100, 300], RtoForm::Linux), rto_ms(&[300, 300, 300, 100], RtoForm::Linux));
        // By RFC 6298 an error of 200 ms adds a quarter of it to three quarters of the variation: 71 and 113 ms.
        assert!((rising.1 - 71.09).abs() < 0.01, "{rising:?}");
        assert!((falling.1 - 87.99).abs() < 0.01, "{falling:?}");
    }

    #[test]
    fn steady_samples_leave_ns2_the_granularity_of_its_clock() {
        let (srtt, rttvar, rto) = rto_ms(&[250; 40], RtoForm::Ns2);
        assert!((srtt - 250.0).abs() < 0.1 && rttvar < 1.0);
        assert!((rto - 280.0).abs() < 0.1);
    }

    #[test]
    fn back_off_doubles_to_the_limit() {
        let mut rtt = RttEstimator::new(RtoForm::Ns2, Time::from_ms(200), Time::from_s(60));
        assert_eq!(rtt.backed_off_rto_ns(0), 1_000_000_000);
        rtt.sample(100_000_000, 100_000_000);
        assert_eq!(rtt.backed_off_rto_ns(3), 2_400_000_000);
        assert_eq!(rtt.backed_off_rto_ns(40), 60_000_000_000);
    }
}
