//! Round-trip time and retransmission timeout (RFC 6298).

use lfn_units::Time;

use crate::RtoForm;

/// Smoothed RTT, its variation, and the timeout that follows from them. Times in ns.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    srtt_ns: u64,
    rttvar_ns: u64,
    min_ns: u64,
    latest_ns: u64,
    /// The timeout is srtt + max(`least_margin_ns`, 4 rttvar), at least `least_ns` and at most `max_rto_ns`.
    least_margin_ns: u64,
    least_ns: u64,
    max_rto_ns: u64,
}

/// The timeout before the first sample (RFC 6298 §2.1).
const INITIAL_RTO_NS: u64 = 1_000_000_000;
/// The clock granularity G of RFC 6298 §2 in ns-2: its clock ticks every 10 ms, and its variation, kept in
/// quarters of a tick, stops falling at three of them.
const NS2_GRANULARITY_NS: u64 = 30_000_000;

impl RttEstimator {
    /// No sample yet.
    pub fn new(form: RtoForm, min_rto: Time, max_rto: Time) -> RttEstimator {
        let (least_margin_ns, least_ns) = match form {
            RtoForm::Linux => (min_rto.as_ns(), 0),
            RtoForm::Ns2 => (NS2_GRANULARITY_NS, min_rto.as_ns()),
        };
        RttEstimator {
            srtt_ns: 0,
            rttvar_ns: 0,
            min_ns: 0,
            latest_ns: 0,
            least_margin_ns,
            least_ns,
            max_rto_ns: max_rto.as_ns(),
        }
    }

    /// Valid samples of one ACK, not of retransmitted segments (Karn): `rtt_ns` of the oldest segment
    /// that it delivered, for the timeout; `latest_ns` of the newest, for the laws and the minimum.
    #[inline]
    pub fn sample(&mut self, rtt_ns: u64, latest_ns: u64) {
        let (rtt_ns, latest_ns) = (rtt_ns.max(1), latest_ns.max(1));
        self.latest_ns = latest_ns;
        if self.srtt_ns == 0 {
            self.srtt_ns = rtt_ns;
            self.rttvar_ns = rtt_ns / 2;
            self.min_ns = latest_ns;
            return;
        }
        self.min_ns = self.min_ns.min(latest_ns);
        // §2.3: the variation first, against the old mean.
        let error = self.srtt_ns.abs_diff(rtt_ns);
        self.rttvar_ns = self.rttvar_ns - self.rttvar_ns / 4 + error / 4;
        self.srtt_ns = self.srtt_ns - self.srtt_ns / 8 + rtt_ns / 8;
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
        if self.srtt_ns == 0 {
            return INITIAL_RTO_NS;
        }
        let rto = self.srtt_ns + (4 * self.rttvar_ns).max(self.least_margin_ns);
        rto.max(self.least_ns).min(self.max_rto_ns)
    }

    /// Retransmission timeout after `backoff` doublings.
    pub fn backed_off_rto_ns(&self, backoff: u32) -> u64 {
        (self.rto_ns() << backoff.min(16)).min(self.max_rto_ns)
    }
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
