//! Impairments of packets without payload behind a queue, apart from those of data.

use lfn_keys::{keys, DELAY_MAX};
use lfn_units::Time;

use crate::impair::{Impair, JitterConfig, Loss, Reorder};

keys! {
    /// Losses and delays of packets without payload behind the queue. These are ACKs, packets of handshakes and UDT's
    /// control packets; the keys beside it are those of data.
    #[derive(Copy)]
    pub struct AckImpair {
        /// Packets lost behind the queue: a probability, or a table for losses in bursts.
        loss: Loss = Loss::default();
        /// Packets that are held up, so that others overtake them. Default none.
        reorder: Option<Reorder> = None;
        /// An additional delay, drawn for each packet. Default none.
        jitter: Option<JitterConfig> = None;
        /// Packets wait for the next multiple of this time and go on together, as behind a radio link that gathers
        /// packets. Default none.
        aggregate: Option<Time> = None, in Time::from_ns(1)..=DELAY_MAX;
    }
}

impl AckImpair {
    /// Reordering and jitter, as of data.
    pub fn motion(&self) -> Impair {
        Impair { reorder: self.reorder, jitter: self.jitter, ..Impair::default() }
    }

    /// Whether it changes what arrives, or when.
    pub fn acts(&self) -> bool {
        self.loss.mean() > 0.0 || self.motion().moves() || self.aggregate.is_some()
    }

    /// When a packet goes on that leaves the link at `at`.
    #[must_use]
    pub fn gathered(&self, at: Time) -> Time {
        match self.aggregate {
            Some(every) if every > Time::ZERO => Time(at.0.div_ceil(every.0).saturating_mul(every.0)),
            _ => at,
        }
    }

    /// How late a packet goes on, at most, beyond [`AckImpair::motion`].
    pub fn longest_wait(&self) -> Time {
        self.aggregate.unwrap_or(Time::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acks_go_on_at_multiples_of_the_interval() {
        let every = |ms| AckImpair { aggregate: Some(Time::from_ms(ms)), ..AckImpair::default() };
        let at = Time::from_us(10_001);
        assert_eq!(every(5).gathered(at), Time::from_ms(15));
        assert_eq!(every(5).gathered(Time::from_ms(15)), Time::from_ms(15));
        assert_eq!(AckImpair::default().gathered(at), at);
        assert_eq!(every(5).gathered(Time::NEVER), Time::NEVER);
    }
}
