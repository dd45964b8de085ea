//! Slow start: laws/slow_start.h behind a Rust face, and the slow starts of the simulator alone.

mod kind;
mod own;

use crate::interface::{PRIVATE_BYTES, STATE_BYTES as LAW_STATE_BYTES};
use crate::{Ack, Control, LawError, Loss, Window};
pub use kind::SlowStartKind;
use lfn_keys::nearest;
use own::Own;
pub use own::Saved;
use std::fmt;
use std::str::FromStr;

/// `struct slow_start` in bytes and in words: what a law leaves of a socket's private area.
pub(crate) const STATE_BYTES: usize = PRIVATE_BYTES - LAW_STATE_BYTES;
const STATE_WORDS: usize = STATE_BYTES / 4;

impl fmt::Display for SlowStartKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SlowStartKind {
    type Err = LawError;

    fn from_str(text: &str) -> Result<Self, LawError> {
        Self::named(text).ok_or_else(|| LawError::UnknownSlowStart {
            got: text.into(),
            nearest: nearest(text, Self::NAMES.iter().copied()),
            allowed: Self::NAMES.join(", "),
        })
    }
}

extern "C" {
    fn lfn_slow_start_init(state: *mut u32, kind: u32);
    fn lfn_slow_start_on_sample(state: *mut u32, ack: *const Ack, control: *mut Control);
    fn lfn_slow_start_on_ack(state: *mut u32, n: u32, ack: *const Ack, control: *mut Control) -> u32;
    fn lfn_slow_start_on_loss(state: *mut u32, loss: *const Loss);
}

/// The slow start of one connection. The sender asks it only while `cwnd < ssthresh`, and in recovery.
#[derive(Clone, Debug)]
pub struct SlowStart {
    kind: SlowStartKind,
    state: [u32; STATE_WORDS],
    own: Option<Box<Own>>,
}

impl SlowStart {
    /// A new connection, without anything saved of an earlier one.
    pub fn new(kind: SlowStartKind) -> Self {
        Self::with(kind, None)
    }

    /// A new connection; `saved` is for [`SlowStartKind::CarefulResume`].
    pub fn with(kind: SlowStartKind, saved: Option<Saved>) -> Self {
        let own = match kind {
            SlowStartKind::Rapid => Some(Own::rapid()),
            SlowStartKind::Search => Some(Own::search()),
            SlowStartKind::CarefulResume => Some(Own::resume(saved)),
            _ => None,
        };
        let mut state = [0; STATE_WORDS];
        // SAFETY: as for every call below. `state` has the size of struct slow_start (tested) and
        // its alignment; the arguments live through the call and have the layout of law.h.
        unsafe { lfn_slow_start_init(state.as_mut_ptr(), kind as u32) };
        Self { kind, state, own: own.map(Box::new) }
    }

    /// Watches delay and spacing of every ACK, before [`SlowStart::on_ack`]; may set
    /// `ssthresh = cwnd`, and then this ACK is already the law's.
    #[inline]
    pub fn on_sample(&mut self, ack: &Ack, control: &mut Control) {
        if matches!(self.kind, SlowStartKind::HyStart | SlowStartKind::HyStartPlusPlus) {
            // SAFETY: see `new`.
            unsafe { lfn_slow_start_on_sample(self.state.as_mut_ptr(), ack, control) }
        } else if let Some(own) = &mut self.own {
            own.on_sample(ack, control);
        }
    }

    /// Grows `cwnd` by `n` newly acknowledged segments, up to `ssthresh`; returns the segments
    /// left for congestion avoidance.
    #[inline]
    pub fn on_ack(&mut self, n: u32, ack: &Ack, control: &mut Control) -> u32 {
        let grown = control.cwnd + Window::whole(n.into());
        // Nearly every ACK of the two common kinds; the rest is the header's.
        if matches!(self.kind, SlowStartKind::Classic | SlowStartKind::HyStart)
            && grown <= control.ssthresh.min(Window::MAX)
        {
            control.cwnd = grown;
            return 0;
        }
        if let Some(own) = &mut self.own {
            return own.on_ack(n, control);
        }
        // SAFETY: see `new`.
        unsafe { lfn_slow_start_on_ack(self.state.as_mut_ptr(), n, ack, control) }
    }

    /// A congestion event, after the law has set ssthresh; it was `ssthresh_before`.
    pub fn on_loss(&mut self, loss: &Loss, ssthresh_before: Window, control: &mut Control) {
        if let Some(own) = &mut self.own {
            return own.on_loss(loss, ssthresh_before, control);
        }
        // SAFETY: see `new`.
        unsafe { lfn_slow_start_on_loss(self.state.as_mut_ptr(), loss) }
    }

    /// Every ACK of a recovery or a reduction by marks, the one that begins it included. Whether it has set the window,
    /// so that the sender does not reduce it.
    #[inline]
    pub fn on_recovery(&mut self, ack: &Ack, control: &mut Control) -> bool {
        self.own.as_mut().is_some_and(|own| own.on_recovery(ack, control))
    }

    /// The episode ended, and the sender has set `cwnd = ssthresh`.
    pub fn on_open(&mut self, control: &mut Control) {
        if let Some(own) = &mut self.own {
            own.on_open(control);
        }
    }

    /// Memory on the heap.
    pub fn memory_bytes(&self) -> usize {
        self.own.as_ref().map_or(0, |own| own.memory_bytes())
    }
}
