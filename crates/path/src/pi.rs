//! The proportional-integral controller of PI2 and DualPI2 (RFC 9332 appendix A), and how its probability becomes
//! signals.

use lfn_keys::Wrong;
use lfn_units::Time;

/// The parameters of the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gains {
    /// Queueing delay wanted.
    pub(crate) target: Time,
    /// From one update to the next.
    pub(crate) tupdate: Time,
    /// Weight of the deviation from the target, in Hz.
    pub(crate) alpha: f64,
    /// Weight of the change since the last update, in Hz.
    pub(crate) beta: f64,
}

impl Gains {
    /// Refuses keys that cannot be meant: without a gain nothing is ever dropped or marked.
    pub(crate) fn refuse(self) -> Result<(), Wrong> {
        if self.alpha == 0.0 && self.beta == 0.0 {
            return refuse("alpha", "0 beside a beta of 0".into(), "allowed: one of them above 0");
        }
        Ok(())
    }

    /// Why they cannot work.
    pub(crate) fn check(self) -> Result<(), PiError> {
        for (name, value) in [("target", self.target), ("tupdate", self.tupdate)] {
            if value == Time::ZERO {
                return Err(PiError::Zero { name });
            }
        }
        for (name, got) in [("alpha", self.alpha), ("beta", self.beta)] {
            if !(got >= 0.0 && got.is_finite()) {
                return Err(PiError::Gain { name, got });
            }
        }
        Ok(())
    }
}

/// Why a configuration of PI2 or DualPI2 cannot work.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum PiError {
    /// A time of 0.
    #[error("PI2 needs {name} above 0")]
    Zero {
        /// The parameter.
        name: &'static str,
    },
    /// A gain that is negative or no number.
    #[error("PI2 needs {name} of at least 0 and finite, got {got}")]
    Gain {
        /// The parameter.
        name: &'static str,
        /// Its value in Hz.
        got: f64,
    },
    /// L packets would be marked later than C packets.
    #[error("DualPI2 needs step_thresh below target, got {step} and {target}")]
    Step {
        /// `step_thresh`.
        step: Time,
        /// `target`.
        target: Time,
    },
    /// A number outside its range.
    #[error("DualPI2 needs {name} from {low} to {high}, got {got}")]
    Range {
        /// The parameter.
        name: &'static str,
        /// The value.
        got: u32,
        /// The least value allowed.
        low: u32,
        /// The largest.
        high: u32,
    },
}

/// The base probability p', moved every `tupdate` by the delay of the packet that has waited longest.
#[derive(Clone, Debug)]
pub(crate) struct Controller {
    gains: Gains,
    /// p' is at most this.
    most: f64,
    p: f64,
    last_s: f64,
    next: Time,
}

impl Controller {
    pub(crate) fn new(gains: Gains, most: f64) -> Controller {
        Controller { gains, most, p: 0.0, last_s: 0.0, next: gains.tupdate }
    }

    /// A p' that nothing moves.
    #[cfg(test)]
    pub(crate) fn fixed(p: f64) -> Controller {
        let gains = Gains { target: Time::ZERO, tupdate: Time::NEVER, alpha: 0.0, beta: 0.0 };
        Controller { p, ..Controller::new(gains, 1.0) }
    }

    /// p'.
    #[inline]
    pub(crate) fn p(&self) -> f64 {
        self.p
    }

    /// Whether an update is due by `now`.
    #[inline]
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.next <= now
    }

    /// Makes up the updates due by `now`, since the last of which the head of the queue has been there since
    /// `head`; `None` where the queue has been empty. So no timer is needed.
    #[inline]
    pub(crate) fn catch_up(&mut self, now: Time, head: Option<Time>) {
        if self.is_due(now) {
            self.make_up(now, head);
        }
    }

    #[inline(never)]
    fn make_up(&mut self, now: Time, head: Option<Time>) {
        let every = self.gains.tupdate.0;
        while self.next <= now {
            let before = (self.p, self.last_s);
            self.update(head.map_or(0.0, |head| self.next.since(head).as_s()));
            self.next = self.next.after(self.gains.tupdate);
            let stays = match head {
                None => (self.p, self.last_s) == before,
                // A delay that only grows moves it no more.
                Some(_) => self.p == self.most && before.0 == self.most && self.last_s > before.1,
            };
            if stays && self.next <= now {
                // The updates left to make up change nothing except the delay seen last.
                self.next = Time((now.0 / every).saturating_add(1).saturating_mul(every));
                let last = Time(self.next.0 - every);
                self.last_s = head.map_or(0.0, |head| last.since(head).as_s());
            }
        }
    }

    /// One update, which finds this delay.
    fn update(&mut self, delay_s: f64) {
        let Gains { target, alpha, beta, .. } = self.gains;
        let step = alpha * (delay_s - target.as_s()) + beta * (delay_s - self.last_s);
        self.p = (self.p + step).clamp(0.0, self.most);
        self.last_s = delay_s;
    }
}

/// A probability as evenly spaced signals, in place of dice (RFC 9332 figure 7): the sum of the probabilities of packets
/// since the last signal.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spread(f64);

impl Spread {
    /// Whether a packet of this probability gets a signal.
    #[inline]
    pub(crate) fn hits(&mut self, probability: f64) -> bool {
        self.0 += probability;
        let hit = self.0 > 1.0;
        self.0 -= f64::from(u8::from(hit));
        hit
    }
}

/// Refuses the value of a key.
pub(crate) fn refuse(key: &str, found: String, hint: &str) -> Result<(), Wrong> {
    Err(Wrong::new(found, hint).of(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAINS: Gains =
        Gains { target: Time::from_ms(15), tupdate: Time::from_ms(16), alpha: 0.16, beta: 3.2 };

    fn near(got: f64, want: f64) {
        assert!((got - want).abs() < 5e-5, "got {got}, want {want}");
    }

    /// Worked by hand from RFC 9332 figure 6.
    #[test]
    fn it_follows_the_delay() {
        let mut pi = Controller::new(GAINS, 1.0);
        for (delay_ms, p) in [(30.0, 0.0984), (30.0, 0.1008), (15.0, 0.0528), (0.0, 0.0024), (0.0, 0.0)] {
            pi.update(delay_ms / 1000.0);
            near(pi.p(), p);
        }
        pi.update(0.03);
        near(2.0 * pi.p(), 0.1968);
        near(pi.p() * pi.p(), 0.00968);
    }

    #[test]
    fn it_stays_within_its_bounds() {
        for most in [1.0, 0.5] {
            let mut pi = Controller::new(GAINS, most);
            pi.update(100.0);
            assert_eq!(pi.p(), most);
            pi.update(0.0);
            assert_eq!(pi.p(), 0.0);
        }
    }

    /// Between two calls the head stays: updates made up later are those of a timer.
    #[test]
    fn updates_made_up_are_those_of_a_timer() {
        let ms = Time::from_ms;
        for (until, head) in [(ms(5), None), (ms(4000), Some(ms(3))), (ms(90), Some(ms(70)))] {
            for leap in [true, false] {
                let mut pi = Controller::new(GAINS, 1.0);
                let mut timed = pi.clone();
                if leap {
                    pi.catch_up(until, head);
                } else {
                    for now in (0..=until.0).step_by(ms(1).0 as usize) {
                        pi.catch_up(Time(now), head);
                    }
                }
                while timed.next <= until {
                    timed.update(head.map_or(0.0, |head| timed.next.since(head).as_s()));
                    timed.next = timed.next.after(GAINS.tupdate);
                }
                near(pi.p(), timed.p());
                near(pi.last_s, timed.last_s);
                assert_eq!(pi.next, timed.next);
            }
        }
    }

    #[test]
    fn a_year_is_made_up_at_once() {
        let year = Time::from_s(180 * 86_400);
        for (head, p) in [(None, 0.0), (Some(Time::ZERO), 1.0)] {
            let mut pi = Controller::new(GAINS, 1.0);
            pi.catch_up(year, head);
            assert_eq!(pi.p(), p);
            assert!(year < pi.next && pi.next <= year + GAINS.tupdate);
        }
    }

    /// RFC 9332 compares strictly: the first signal at p = 0.25 is that of the fifth packet.
    #[test]
    fn signals_are_evenly_spaced() {
        for (p, hits) in [(0.25, vec![5, 9, 13, 17]), (0.5, vec![3, 5, 7]), (1.0, vec![2, 3, 4])] {
            let mut spread = Spread::default();
            let found: Vec<usize> = (1..100).filter(|_| spread.hits(p)).take(hits.len()).collect();
            assert_eq!(found, hits, "{p}");
        }
    }
}
