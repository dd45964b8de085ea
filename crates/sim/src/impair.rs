//! Impairments of packets behind a queue, each with its own stream of random numbers.

use std::collections::VecDeque;

use lfn_path::{Bernoulli, BurstLoss, GilbertElliott, Impair, ImpairError, Jitter, Loss, Reordering};
use lfn_units::Time;

use crate::rng::Stream;

enum LossModel {
    Bernoulli(Bernoulli),
    GilbertElliott(GilbertElliott),
}

/// Loss behind a queue. It chooses packets when they join the queue, so that both kinds of server lose
/// the same ones.
pub struct RandomLoss {
    /// Nothing is ever lost.
    never: bool,
    model: LossModel,
    stream: Stream,
    /// Data packets lost so far.
    pub lost: u64,
    /// When packets leave the queue that are chosen, but have not left it yet.
    chosen: VecDeque<Time>,
}

impl RandomLoss {
    /// Loss that draws from `stream`.
    ///
    /// # Errors
    /// [`ImpairError`] when a parameter is out of range.
    pub fn new(loss: Loss, mut stream: Stream) -> Result<RandomLoss, ImpairError> {
        let model = match loss {
            Loss::Bernoulli(p) => LossModel::Bernoulli(Bernoulli::new(p, || stream.f64())?),
            Loss::Bursts(BurstLoss::GilbertElliott(config)) => {
                LossModel::GilbertElliott(GilbertElliott::new(config, || stream.f64())?)
            }
        };
        let never = loss == Loss::Bernoulli(0.0);
        Ok(RandomLoss { never, model, stream, lost: 0, chosen: VecDeque::new() })
    }

    /// Whether a packet that joins the queue will be lost behind it.
    #[inline(always)]
    pub fn chooses(&mut self) -> bool {
        !self.never && self.draws()
    }

    /// Whether nothing is ever lost, as far as is known.
    pub fn is_never(&self) -> bool {
        self.never
    }

    fn draws(&mut self) -> bool {
        let stream = &mut self.stream;
        match &mut self.model {
            LossModel::Bernoulli(model) => model.chooses(|| stream.f64()),
            LossModel::GilbertElliott(model) => model.chooses(|| stream.f64()),
        }
    }

    /// A packet that leaves at `departs` will be lost then.
    pub fn lose(&mut self, now: Time, departs: Time) {
        self.settle(now);
        self.chosen.push_back(departs);
    }

    /// Counts what was lost by `now`.
    pub fn settle(&mut self, now: Time) {
        while self.chosen.front().is_some_and(|&departs| departs <= now) {
            self.chosen.pop_front();
            self.lost += 1;
        }
    }

    /// Packets that will be lost when they leave the queue, where the server knows departures.
    pub fn doomed(&self) -> u64 {
        self.chosen.len() as u64
    }

    /// From now on packets are lost each on its own with probability `p`, which was checked.
    pub fn change(&mut self, p: f64) {
        let stream = &mut self.stream;
        if let Ok(model) = Bernoulli::new(p, || stream.f64()) {
            self.model = LossModel::Bernoulli(model);
            self.never = p == 0.0;
        }
    }
}

/// Reordering, jitter and duplication, each with a stream of its own.
pub struct Motion {
    reorder: Option<(Reordering, Stream)>,
    jitter: Option<(Jitter, Stream)>,
    duplicate: (Bernoulli, Stream),
}

impl Motion {
    /// The impairments that delay packets, or `None`; `stream` gives the stream of a purpose.
    ///
    /// # Errors
    /// [`ImpairError`] when a parameter is out of range.
    pub fn new(impair: &Impair, stream: impl Fn(&str) -> Stream) -> Result<Option<Box<Motion>>, ImpairError> {
        if !impair.moves() {
            return Ok(None);
        }
        let reorder = match impair.reorder {
            Some(reorder) => {
                let mut draws = stream("reorder");
                Some((Reordering::new(reorder.p, reorder.delay, || draws.f64())?, draws))
            }
            None => None,
        };
        let jitter = match impair.jitter {
            Some(jitter) => Some((Jitter::new(jitter)?, stream("jitter"))),
            None => None,
        };
        let mut draws = stream("duplicate");
        let duplicate = (Bernoulli::new(impair.duplicate, || draws.f64())?, draws);
        Ok(Some(Box::new(Motion { reorder, jitter, duplicate })))
    }

    /// When a packet arrives that would arrive at `at`, and whether it arrives twice.
    pub fn apply(&mut self, mut at: Time) -> (Time, bool) {
        if let Some((reorder, draws)) = &mut self.reorder {
            at = at.after(reorder.delay(|| draws.f64()));
        }
        if let Some((jitter, draws)) = &mut self.jitter {
            at = jitter.arrival(at, || draws.f64());
        }
        let (duplicate, draws) = &mut self.duplicate;
        (at, duplicate.chooses(|| draws.f64()))
    }
}
