//! Impairments of packets behind a queue, each with its own stream of random numbers.

use std::collections::VecDeque;

use lfn_path::{Bernoulli, BurstLoss, GilbertElliott, Impair, ImpairError, Jitter, Loss, Reordering, Turn};
use lfn_units::Time;

use crate::rng::{Draws, Stream};

enum LossModel {
    Bernoulli(Bernoulli),
    GilbertElliott(GilbertElliott),
}

/// Whether chance decides about something of this probability.
fn is_open(p: f64) -> bool {
    p != 0.0 && p != 1.0
}

/// Loss behind a queue. It chooses packets when they join the queue, so both kinds of server lose the same packets.
pub struct RandomLoss {
    /// Nothing is ever lost.
    never: bool,
    loss: Loss,
    model: LossModel,
    stream: Draws,
    /// Data packets lost so far.
    pub lost: u64,
    /// When packets leave the queue that are chosen, but have not left it yet.
    chosen: VecDeque<Time>,
}

impl RandomLoss {
    /// Loss that draws from `stream`, which is taken where there is loss, or where it `changes`.
    ///
    /// # Errors
    /// [`ImpairError`] when a parameter is out of range.
    pub fn new(
        loss: Loss,
        changes: bool,
        stream: impl FnOnce() -> Stream,
    ) -> Result<RandomLoss, ImpairError> {
        let never = loss.mean() == 0.0;
        let mut stream = Draws((!never || changes).then(stream));
        let model = match loss {
            _ if never => LossModel::Bernoulli(Bernoulli::new(0.0, || 0.0)?),
            Loss::Bernoulli(p) => LossModel::Bernoulli(Bernoulli::new(p, || stream.f64())?),
            Loss::Bursts(BurstLoss::GilbertElliott(config)) => {
                LossModel::GilbertElliott(GilbertElliott::new(config, || stream.f64())?)
            }
        };
        Ok(RandomLoss { never, loss, model, stream, lost: 0, chosen: VecDeque::new() })
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

    /// Counts the packets lost by `now`.
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

    /// From now on packets are lost each on its own with probability `p`, which was checked. Where they were already,
    /// no new draw is made.
    pub fn change(&mut self, p: f64) {
        if std::mem::replace(&mut self.loss, Loss::Bernoulli(p)) == Loss::Bernoulli(p) {
            return;
        }
        let stream = &mut self.stream;
        if let Ok(model) = Bernoulli::new(p, || stream.f64()) {
            self.model = LossModel::Bernoulli(model);
            self.never = p == 0.0;
        }
    }
}

/// Reordering, jitter and duplication, each with a stream of its own.
pub struct Motion {
    moves: bool,
    /// Of a link from which several packets leave at one instant.
    turn: Option<Turn>,
    reorder: Option<(Reordering, Draws)>,
    jitter: Option<(Jitter, Option<Stream>)>,
    duplicate: (Bernoulli, Draws),
}

impl Motion {
    /// The impairments that delay packets, or `None`; `stream` gives the stream of a purpose. `at_once`: several packets
    /// may leave the link at one instant.
    ///
    /// # Errors
    /// [`ImpairError`] when a parameter is out of range.
    pub fn new(
        impair: &Impair,
        at_once: bool,
        stream: impl Fn(&str) -> Stream,
    ) -> Result<Option<Box<Motion>>, ImpairError> {
        if !impair.moves() && !at_once {
            return Ok(None);
        }
        let draws_at = |p: f64, purpose: &str| Draws(is_open(p).then(|| stream(purpose)));
        let reorder = match impair.reorder {
            Some(reorder) => {
                let mut draws = draws_at(reorder.p, "reorder");
                Some((Reordering::new(reorder.p, reorder.delay, || draws.f64())?, draws))
            }
            None => None,
        };
        let jitter = match impair.jitter {
            Some(jitter) => Some((Jitter::new(jitter)?, jitter.varies().then(|| stream("jitter")))),
            None => None,
        };
        let mut draws = draws_at(impair.duplicate, "duplicate");
        let duplicate = (Bernoulli::new(impair.duplicate, || draws.f64())?, draws);
        let turn = at_once.then(Turn::default);
        Ok(Some(Box::new(Motion { moves: impair.moves(), turn, reorder, jitter, duplicate })))
    }

    /// Whether packets may arrive later than just behind one another, or twice.
    pub fn moves(&self) -> bool {
        self.moves
    }

    /// When a packet arrives that would arrive at `at`, and whether it arrives twice.
    pub fn apply(&mut self, mut at: Time) -> (Time, bool) {
        if let Some(turn) = &mut self.turn {
            at = turn.next(at);
        }
        if let Some((reorder, draws)) = &mut self.reorder {
            at = at.after(reorder.delay(|| draws.f64()));
        }
        if let Some((jitter, draws)) = &mut self.jitter {
            // Delays that do not vary are the same for every draw.
            at = jitter.arrival(at, || draws.as_mut().map_or(0.5, Stream::f64));
        }
        let (duplicate, draws) = &mut self.duplicate;
        (at, duplicate.chooses(|| draws.f64()))
    }
}
