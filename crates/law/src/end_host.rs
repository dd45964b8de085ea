//! The ends of protocols in which routers speak. Their laws run in the simulator only, so they are
//! written in Rust, with floating point (basic operations and `libm`: the same bits on every machine).

mod convergence;
pub(crate) mod evcp;
pub(crate) mod jetmax;
pub(crate) mod rcp;
pub(crate) mod vcp;
pub(crate) mod xcp;

use crate::{Ack, Control, Loss, LossKind, Window, ACK_CWND_LIMITED};

/// Sets a window in segments, within the bounds of every law.
fn set_cwnd(control: &mut Control, segments: f64) {
    control.cwnd = Window::of(segments).clamp(Window::ONE, Window::MAX);
}

/// The window in segments.
fn cwnd(control: &Control) -> f64 {
    control.cwnd.segments()
}

/// No router of the path has answered: one segment a round trip, as under Reno.
fn grow_unanswered(ack: &Ack, control: &mut Control) {
    if ack.flags & ACK_CWND_LIMITED != 0 {
        let window = cwnd(control);
        set_cwnd(control, window + f64::from(ack.acked) / window);
    }
}

/// The reaction of these laws to a loss. They have no slow start: its threshold is one segment, except
/// while the sender reduces the window.
#[derive(Debug, Default)]
struct Episode {
    /// A loss is being repaired: the window is the sender's.
    recovering: bool,
}

impl Episode {
    fn none(control: &mut Control) -> Episode {
        control.ssthresh = Window::ONE;
        Episode::default()
    }

    /// The window will be halved; after a timeout, which leaves one segment, growth goes on at once.
    fn begin(&mut self, loss: &Loss, control: &mut Control) {
        self.recovering = loss.kind != LossKind::Rto;
        control.ssthresh =
            if self.recovering { (control.cwnd / 2).max(Window::MIN_SSTHRESH) } else { Window::ONE };
    }

    fn end(&mut self, control: &mut Control) {
        *self = Episode::none(control);
    }
}
