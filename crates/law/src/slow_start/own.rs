//! Slow starts that only the simulator runs: Linux owns the window in recovery, has 24 bytes for a slow start, and
//! loads it without values.

mod rapid;
mod resume;
mod search;

use crate::{Ack, Control, Loss, Window};
pub use resume::Saved;

/// One of them. All calls are those of [`super::SlowStart`].
#[derive(Clone, Debug)]
pub(super) enum Own {
    Rapid(rapid::Rapid),
    Search(Box<search::Search>),
    Resume(resume::Resume),
}

impl Own {
    pub(super) fn rapid() -> Self {
        Self::Rapid(rapid::Rapid::default())
    }

    pub(super) fn search() -> Self {
        Self::Search(Box::default())
    }

    pub(super) fn resume(saved: Option<Saved>) -> Self {
        Self::Resume(resume::Resume::new(saved))
    }

    pub(super) fn on_sample(&mut self, ack: &Ack, control: &mut Control) {
        match self {
            Self::Rapid(start) => start.on_sample(ack),
            Self::Search(start) => start.on_sample(ack, control),
            Self::Resume(start) => start.on_sample(ack, control),
        }
    }

    pub(super) fn on_ack(&mut self, n: u32, control: &mut Control) -> u32 {
        let each = match self {
            Self::Rapid(start) => start.growth(),
            Self::Search(_) => 1,
            Self::Resume(start) => start.growth(),
        };
        grow(control, each, n)
    }

    pub(super) fn on_loss(&mut self, loss: &Loss, ssthresh_before: Window, control: &mut Control) {
        match self {
            Self::Rapid(start) => start.on_loss(loss, ssthresh_before, control),
            Self::Search(start) => start.end(),
            Self::Resume(start) => start.on_loss(loss, ssthresh_before, control),
        }
    }

    pub(super) fn on_recovery(&mut self, ack: &Ack, control: &mut Control) -> bool {
        match self {
            Self::Rapid(start) => start.on_recovery(ack, control),
            Self::Search(_) => false,
            Self::Resume(start) => {
                start.on_recovery(ack);
                false
            }
        }
    }

    pub(super) fn on_open(&mut self, control: &mut Control) {
        match self {
            Self::Rapid(start) => start.on_open(),
            Self::Search(_) => {}
            Self::Resume(start) => start.on_open(control),
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let inner = if let Self::Search(search) = self { size_of_val(&**search) } else { 0 };
        size_of::<Self>() + inner
    }
}

/// Adds `each` segments for each of `n`, up to ssthresh; returns the segments that are left for congestion avoidance.
fn grow(control: &mut Control, each: u64, n: u32) -> u32 {
    let limit = control.ssthresh.min(Window::MAX);
    let room = limit.q32() - control.cwnd.min(limit).q32();
    let (step, wanted) = (each * Window::ONE.q32(), u64::from(n) * each * Window::ONE.q32());
    if wanted <= room {
        control.cwnd = Window::from_q32(control.cwnd.q32() + wanted);
        return 0;
    }
    let used = room.div_ceil(step) as u32;
    control.cwnd = control.cwnd.max(limit);
    if control.cwnd < control.ssthresh {
        0
    } else {
        n - used
    }
}

/// The flight of a congestion event, as far as it is neither delivered nor lost yet. Repairs come a round trip later,
/// when nothing is left, and so are not counted twice.
#[derive(Clone, Copy, Debug, Default)]
struct Flight {
    left: u32,
    /// The ACK that found the event has taken its share already.
    begun: bool,
}

impl Flight {
    fn new(loss: &Loss) -> Self {
        Self { left: loss.inflight, begun: false }
    }

    /// Segments of the flight that this ACK delivers, and that it finds lost.
    fn take(&mut self, ack: &Ack) -> (u32, u32) {
        if !self.begun {
            self.begun = true;
            return (ack.newly_delivered, ack.newly_lost);
        }
        let lost = ack.newly_lost.min(self.left);
        self.left -= lost;
        let delivered = ack.newly_delivered.min(self.left);
        self.left -= delivered;
        (delivered, lost)
    }
}
