//! PI2 (De Schepper and others, CoNEXT 2016; RFC 9332 §2.4): drops or marks at departure with the square of a
//! probability that a proportional-integral controller moves towards a queueing delay wanted. The square does what PIE
//! does with a table of gains and with burst allowances.

use lfn_keys::{keys, Span, Wrong, DELAY_MAX};
use lfn_units::Time;

use crate::counters::Ledger;
use crate::fifo::{Fifo, Waiting};
use crate::limit::DropReason;
use crate::pi::{Controller, Gains, PiError, Spread};
use crate::rule::{Arrival, Parameters, Rule, Site};

keys! {
    /// A queue that keeps its delay near a target by drops at departure. With the gains of DualPI2.
    #[derive(Copy)]
    pub struct Pi2Config {
        /// Queueing delay wanted.
        target: Time = Time::from_ms(15), in Time::from_us(1)..=DELAY_MAX;
        /// From one update of the probability to the next.
        tupdate: Time = Time::from_ms(16), in Time::from_us(100)..=DELAY_MAX;
        /// Weight of the deviation from the target, in Hz.
        alpha: f64 = 0.16, in Span::at_least(0.0);
        /// Weight of the change since the last update, in Hz.
        beta: f64 = 3.2, in Span::at_least(0.0);
        /// Mark packets of flows with `ecn` instead of dropping them, while the probability is below 0.25.
        ecn: bool = false;
    }
    set {
        /// No signal while less than two of the largest packets wait, in bytes each.
        mtu_bytes: u32 = 1514;
    }
    settle Pi2Config::check;
}

/// From this probability on a mark becomes a drop (RFC 9332 appendix A.1: p_Cmax with k = 2).
const MOST_MARKED: f64 = 0.25;

impl Pi2Config {
    fn gains(&self) -> Gains {
        let Pi2Config { target, tupdate, alpha, beta, .. } = *self;
        Gains { target, tupdate, alpha, beta }
    }

    fn check(&mut self, _: &dyn Fn(&str) -> bool) -> Result<(), Wrong> {
        self.gains().refuse()
    }
}

impl Parameters for Pi2Config {
    type Rule = Pi2;
    type Error = PiError;

    fn fit(&mut self, packet_bytes: u32) {
        self.mtu_bytes = packet_bytes;
    }

    fn build(self, _: Site) -> Result<Pi2, PiError> {
        self.gains().check()?;
        Ok(Pi2 { config: self, pi: Controller::new(self.gains(), 1.0), spread: Spread::default() })
    }
}

/// The state of one PI2 queue.
#[derive(Debug)]
pub struct Pi2 {
    config: Pi2Config,
    pi: Controller,
    spread: Spread,
}

impl Rule for Pi2 {
    fn admit(
        &mut self,
        arrival: &Arrival,
        fifo: &mut Fifo,
        _: impl FnOnce() -> f64,
        _: &mut Ledger,
    ) -> Result<bool, DropReason> {
        self.pi.catch_up(arrival.now, fifo.head_since());
        arrival.fits(fifo).map(|()| false)
    }

    fn take(&mut self, now: Time, fifo: &mut Fifo, ledger: &mut Ledger) -> Option<Waiting> {
        self.pi.catch_up(now, fifo.head_since());
        loop {
            let mut head = fifo.pop()?;
            let p = self.pi.p() * self.pi.p();
            if fifo.bytes() < 2 * u64::from(self.config.mtu_bytes) || !self.spread.hits(p) {
                return Some(head);
            }
            if self.config.ecn && head.packet.ecn.is_capable() && p < MOST_MARKED {
                ledger.mark(&mut head.packet);
                return Some(head);
            }
            ledger.drop_early(head.packet);
        }
    }
}
