//! Careful Resume (RFC 9959).

use super::Flight;
use crate::{Ack, Control, Loss, LossKind, Window, ACK_CWND_LIMITED};

/// Measurements of an earlier connection on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
    /// saved_cwnd, in segments.
    pub window_segments: u32,
    /// saved_rtt, in microseconds.
    pub rtt_us: u32,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The initial window is not acknowledged yet. `None`: no ACK yet.
    Reconnaissance {
        initial: Option<u64>,
    },
    /// The window is the jump's. `last`: delivered segments when the flight before the jump has arrived.
    Unvalidated {
        last: u64,
        entered_ns: u64,
    },
    /// `last`: delivered segments when all of the jump has arrived.
    Validating {
        last: u64,
    },
    SafeRetreat(Flight),
    Normal,
}

#[derive(Clone, Debug)]
pub(crate) struct Resume {
    saved: Saved,
    phase: Phase,
    /// PipeSize: flight before the jump, and what was delivered since.
    pipe: u64,
    initial: u64,
}

impl Resume {
    /// Without anything saved it is the classic slow start.
    pub(super) fn new(saved: Option<Saved>) -> Self {
        let phase = if saved.is_some() { Phase::Reconnaissance { initial: None } } else { Phase::Normal };
        Self { saved: saved.unwrap_or(Saved { window_segments: 0, rtt_us: 0 }), phase, pipe: 0, initial: 0 }
    }

    /// Segments for each acknowledged.
    pub(super) fn growth(&self) -> u64 {
        u64::from(!matches!(self.phase, Phase::Unvalidated { .. }))
    }

    pub(super) fn on_sample(&mut self, ack: &Ack, control: &mut Control) {
        match self.phase {
            Phase::Reconnaissance { initial } => {
                let before = ack.delivered - u64::from(ack.newly_delivered).min(ack.delivered);
                let end = initial.unwrap_or(before + control.cwnd.floor());
                if initial.is_none() {
                    self.initial = control.cwnd.floor();
                }
                self.phase = Phase::Reconnaissance { initial: Some(end) };
                if ack.delivered >= end && ack.flags & ACK_CWND_LIMITED != 0 && ack.rtt_ns > 0 {
                    self.jump(ack, control);
                }
            }
            Phase::Unvalidated { last, entered_ns, .. } => {
                self.pipe += u64::from(ack.newly_delivered);
                let flight = u64::from(ack.inflight) + u64::from(ack.newly_delivered);
                let round = ack.now_ns - entered_ns.min(ack.now_ns) > ack.srtt_ns;
                if ack.delivered > last || round || flight >= control.cwnd.floor() {
                    self.check_flight(ack, flight, control);
                }
            }
            Phase::Validating { last } => {
                self.pipe += u64::from(ack.newly_delivered);
                if ack.delivered >= last {
                    self.phase = Phase::Normal;
                }
            }
            Phase::SafeRetreat(_) | Phase::Normal => {}
        }
    }

    /// The initial window has arrived: the window jumps to half of the saved one, if the path is that of then.
    fn jump(&mut self, ack: &Ack, control: &mut Control) {
        let saved_ns = u64::from(self.saved.rtt_us) * 1000;
        let jump = u64::from(self.saved.window_segments / 2).min(Window::MAX.floor());
        self.phase = Phase::Normal;
        if ack.min_rtt_ns <= saved_ns / 2
            || ack.rtt_ns > saved_ns * 10
            || jump <= control.cwnd.floor()
            || Window::whole(jump) >= control.ssthresh
        {
            return;
        }
        self.pipe = u64::from(ack.inflight);
        self.phase =
            Phase::Unvalidated { last: ack.delivered + u64::from(ack.inflight), entered_ns: ack.now_ns };
        control.cwnd = Window::whole(jump);
    }

    /// The jump ends: what is in flight is validated, if it is more than before the jump.
    fn check_flight(&mut self, ack: &Ack, flight: u64, control: &mut Control) {
        if flight < self.initial || flight <= self.pipe {
            control.cwnd = Window::whole(self.pipe.max(self.initial)).min(control.ssthresh).min(Window::MAX);
            self.phase = Phase::Normal;
        } else {
            control.cwnd = Window::whole(flight).min(control.ssthresh).min(Window::MAX);
            self.phase = Phase::Validating { last: ack.delivered + u64::from(ack.inflight) };
        }
    }

    pub(super) fn on_loss(&mut self, loss: &Loss, ssthresh_before: Window, control: &mut Control) {
        // A law may have ended slow start meanwhile, and PipeSize is then out of date.
        let jumped = matches!(self.phase, Phase::Unvalidated { .. } | Phase::Validating { .. })
            && control.cwnd < ssthresh_before;
        self.phase = Phase::Normal;
        if jumped {
            control.ssthresh = control.ssthresh.min(self.half_pipe());
            if loss.kind != LossKind::Rto {
                self.phase = Phase::SafeRetreat(Flight::new(loss));
            }
        }
    }

    pub(super) fn on_recovery(&mut self, ack: &Ack) {
        if let Phase::SafeRetreat(flight) = &mut self.phase {
            self.pipe += u64::from(flight.take(ack).0);
        }
    }

    /// All of the jump has arrived: slow start goes on up to half of what the path carried.
    pub(super) fn on_open(&mut self, control: &mut Control) {
        if matches!(self.phase, Phase::SafeRetreat(_)) {
            self.phase = Phase::Normal;
            control.ssthresh = control.ssthresh.max(self.half_pipe());
        }
    }

    fn half_pipe(&self) -> Window {
        (Window::whole(self.pipe.min(Window::MAX.floor())) / 2).max(Window::MIN_SSTHRESH)
    }
}
