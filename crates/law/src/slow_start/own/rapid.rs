//! Rapid Start (draft-kazuho-ccwg-rapid-start).

use super::Flight;
use crate::{Ack, Control, Loss, LossKind, Window};

/// Parts of the last round trip whose smallest RTTs are kept.
const PARTS: usize = 4;
/// Rise of the RTT above its minimum at which the queue is taken to build up, at most a tenth of the minimum.
const RISE_NS: u64 = 4_000_000;
const ONE: u64 = 1 << 16;

#[derive(Clone, Debug, Default)]
enum Phase {
    #[default]
    Start,
    Recovery {
        flight: Flight,
        least: Window,
        /// ack_factor and loss_factor, Q16.
        factors: (u64, u64),
    },
    Over,
}

#[derive(Clone, Debug)]
pub(crate) struct Rapid {
    phase: Phase,
    /// Smallest RTT of each part of the last min_rtt; `MAX`: no sample.
    floors_ns: [u64; PARTS],
    part: usize,
    part_end_ns: u64,
    /// The last round trip shows no queue.
    triples: bool,
}

impl Default for Rapid {
    fn default() -> Self {
        Self { phase: Phase::Start, floors_ns: [u64::MAX; PARTS], part: 0, part_end_ns: 0, triples: true }
    }
}

impl Rapid {
    pub(super) fn on_sample(&mut self, ack: &Ack) {
        if !matches!(self.phase, Phase::Start) || ack.rtt_ns == 0 {
            return;
        }
        let min_ns = if ack.min_rtt_ns == 0 { ack.rtt_ns } else { ack.min_rtt_ns };
        let part_ns = (min_ns / PARTS as u64).max(1);
        if ack.now_ns >= self.part_end_ns {
            let passed = (ack.now_ns - self.part_end_ns) / part_ns + 1;
            for _ in 0..passed.min(PARTS as u64) {
                self.part = (self.part + 1) % PARTS;
                self.floors_ns[self.part] = u64::MAX;
            }
            self.part_end_ns = ack.now_ns + part_ns;
        }
        let floor_ns = &mut self.floors_ns[self.part];
        *floor_ns = ack.rtt_ns.min(*floor_ns);
        let floor_ns = self.floors_ns.into_iter().min().unwrap_or(u64::MAX);
        self.triples = floor_ns <= min_ns + (min_ns / 10).min(RISE_NS);
    }

    /// Segments for each acknowledged.
    pub(super) fn growth(&self) -> u64 {
        if self.triples && matches!(self.phase, Phase::Start) {
            2
        } else {
            1
        }
    }

    /// The law has set ssthresh, which gives its beta.
    pub(super) fn on_loss(&mut self, loss: &Loss, ssthresh_before: Window, control: &mut Control) {
        let (cwnd, reduced) = (control.cwnd, control.ssthresh);
        let first = matches!(self.phase, Phase::Start) && cwnd < ssthresh_before;
        self.phase = Phase::Over;
        if !first || loss.kind == LossKind::Rto {
            return;
        }
        let beta = ((u128::from(reduced.q32()) << 16) / u128::from(cwnd.q32().max(1))).min(ONE.into()) as u64;
        let ack_factor = (ONE - beta) * 11 / 18;
        let silence = beta + ack_factor;
        control.ssthresh = times(cwnd, silence).max(Window::MIN_SSTHRESH);
        // cwnd (silence - ack_factor / 3 - 2 / 3 loss_factor) = cwnd beta / 3
        let least = (times(cwnd, beta) / 3).max(Window::MIN_SSTHRESH);
        self.phase = Phase::Recovery { flight: Flight::new(loss), least, factors: (ack_factor, silence) };
    }

    pub(super) fn on_recovery(&mut self, ack: &Ack, control: &mut Control) -> bool {
        let Phase::Recovery { flight, least, factors } = &mut self.phase else { return false };
        let (delivered, lost) = flight.take(ack);
        let less = u64::from(delivered) * factors.0 + u64::from(lost) * factors.1;
        let window = Window::from_q32(control.ssthresh.q32().saturating_sub(less << 16)).max(*least);
        control.ssthresh = window.min(control.ssthresh);
        control.cwnd = control.ssthresh;
        true
    }

    pub(super) fn on_open(&mut self) {
        if matches!(self.phase, Phase::Recovery { .. }) {
            self.phase = Phase::Over;
        }
    }
}

fn times(window: Window, q16: u64) -> Window {
    Window::from_q32(((u128::from(window.q32()) * u128::from(q16)) >> 16) as u64)
}
