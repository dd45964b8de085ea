//! Packets without payload behind a queue: losses, delays and bursts of their own.

use lfn_path::{AckImpair, ImpairError, Turn};
use lfn_units::Time;

use super::impair::{Motion, RandomLoss};
use crate::rng::Stream;

/// Losses and delays of packets without payload behind the queue of a link: ACKs and packets of handshakes.
pub struct AckPath {
    config: AckImpair,
    loss: RandomLoss,
    turn: Turn,
    motion: Option<Box<Motion>>,
}

impl AckPath {
    /// `stream` gives the stream of a purpose.
    ///
    /// # Errors
    /// [`ImpairError`] when a parameter is out of range.
    pub fn new(config: &AckImpair, stream: impl Fn(&str) -> Stream) -> Result<AckPath, ImpairError> {
        let of_acks = |purpose: &str| stream(&format!("acks.{purpose}"));
        Ok(AckPath {
            config: *config,
            loss: RandomLoss::new(config.loss, false, || of_acks("loss"))?,
            turn: Turn::default(),
            motion: Motion::new(&config.motion(), false, of_acks)?,
        })
    }

    /// Whether a packet that joins the queue will be lost behind it.
    pub fn loses(&mut self) -> bool {
        self.loss.chooses()
    }

    /// When a packet arrives that leaves the queue at `departs`, after `delay`. Calls are in the order of departures.
    pub fn arrival(&mut self, departs: Time, delay: Time) -> Time {
        let arrives = self.turn.next(self.config.gathered(departs)).after(delay);
        self.motion.as_mut().map_or(arrives, |motion| motion.apply(arrives).0)
    }
}
