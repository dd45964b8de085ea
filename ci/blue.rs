//! BLUE (Feng, Kandlur, Saha, Shin, IEEE/ACM Trans. Networking 10(4), 2002): the probability of a drop rises with each
//! overflow and falls while the link is idle.

use std::convert::Infallible;

use lfn_keys::{keys, Span, DELAY_MAX};
use lfn_units::Time;

use crate::counters::Ledger;
use crate::fifo::Fifo;
use crate::limit::DropReason;
use crate::rule::{Arrival, Parameters, Rule, Site};

keys! {
    /// A queue that learns its drop probability from overflows and idle times.
    #[derive(Copy)]
    pub struct BlueConfig {
        /// Increase of the probability at an overflow.
        increase: f64 = 0.02, in Span::above(0.0).at_most(1.0);
        /// Decrease of the probability while the link is idle.
        decrease: f64 = 0.002, in Span::above(0.0).at_most(1.0);
        /// Least time between two changes of the probability.
        freeze: Time = Time::from_ms(100), in Time::from_us(1)..=DELAY_MAX;
        /// Mark packets of flows with `ecn` instead of dropping them.
        ecn: bool = false;
    }
}

impl Parameters for BlueConfig {
    type Rule = Blue;
    type Error = Infallible;
    const DRAWS: bool = true;

    fn build(self, _: Site) -> Result<Blue, Infallible> {
        Ok(Blue { config: self, probability: 0.0, changed: Time::ZERO })
    }
}

/// The state of a BLUE queue.
#[derive(Debug)]
pub struct Blue {
    config: BlueConfig,
    probability: f64,
    changed: Time,
}

impl Blue {
    fn change(&mut self, now: Time, by: f64) {
        if now.since(self.changed) >= self.config.freeze {
            self.probability = (self.probability + by).clamp(0.0, 1.0);
            self.changed = now;
        }
    }
}

impl Rule for Blue {
    fn admit(
        &mut self,
        arrival: &Arrival,
        fifo: &mut Fifo,
        draw: impl FnOnce() -> f64,
        _: &mut Ledger,
    ) -> Result<bool, DropReason> {
        if arrival.idle_since.is_some() {
            self.change(arrival.now, -self.config.decrease);
        }
        if let Err(full) = arrival.fits(fifo) {
            self.change(arrival.now, self.config.increase);
            return Err(full);
        }
        match draw() < self.probability {
            true if self.config.ecn && arrival.packet.ecn.is_capable() => Ok(true),
            true => Err(DropReason::Early),
            false => Ok(false),
        }
    }
}
