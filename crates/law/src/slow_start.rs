//! Slow start: laws/slow_start.h behind a Rust face.

use crate::{Ack, Control, LawError, Loss, Window};
use lfn_keys::nearest;
use std::fmt;
use std::str::FromStr;

/// `struct slow_start` in bytes and in words.
pub(crate) const STATE_BYTES: usize = 24;
const STATE_WORDS: usize = STATE_BYTES / 4;

/// The kinds of slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum SlowStartKind {
    /// One segment for each acknowledged (RFC 5681, counted in segments).
    Classic = 0,
    /// RFC 3742 with max_ssthresh = 100 segments.
    Limited = 1,
    /// HyStart as in Linux.
    HyStart = 2,
    /// HyStart++ (RFC 9406).
    HyStartPlusPlus = 3,
    /// The law has a start-up of its own (a [`crate::Controller`]).
    None = 4,
}

impl SlowStartKind {
    /// Those that a law can have before it.
    pub const ALL: [Self; 4] = [Self::Classic, Self::Limited, Self::HyStart, Self::HyStartPlusPlus];

    /// The name in scenarios and in the registry.
    pub fn name(self) -> &'static str {
        ["classic", "limited", "hystart", "hystart++", "none"][self as usize]
    }
}

impl fmt::Display for SlowStartKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SlowStartKind {
    type Err = LawError;

    fn from_str(text: &str) -> Result<Self, LawError> {
        let kinds = || Self::ALL.into_iter().chain([Self::None]);
        let names = || kinds().map(Self::name);
        kinds().find(|kind| kind.name() == text).ok_or_else(|| LawError::UnknownSlowStart {
            got: text.into(),
            nearest: nearest(text, names()),
            allowed: names().collect::<Vec<_>>().join(", "),
        })
    }
}

extern "C" {
    fn lfn_slow_start_init(state: *mut u32, kind: u32);
    fn lfn_slow_start_on_sample(state: *mut u32, ack: *const Ack, control: *mut Control);
    fn lfn_slow_start_on_ack(state: *mut u32, n: u32, ack: *const Ack, control: *mut Control) -> u32;
    fn lfn_slow_start_on_loss(state: *mut u32, loss: *const Loss);
}

/// The slow start of one connection. The sender asks it only while `cwnd < ssthresh`.
#[derive(Clone, Debug)]
pub struct SlowStart {
    kind: SlowStartKind,
    state: [u32; STATE_WORDS],
}

impl SlowStart {
    /// A new connection.
    pub fn new(kind: SlowStartKind) -> Self {
        let mut state = [0; STATE_WORDS];
        // SAFETY: as for every call below. `state` has the size of struct slow_start (tested) and
        // its alignment; the arguments live through the call and have the layout of law.h.
        unsafe { lfn_slow_start_init(state.as_mut_ptr(), kind as u32) };
        Self { kind, state }
    }

    /// Watches delay and spacing of every ACK, before [`SlowStart::on_ack`]; may set
    /// `ssthresh = cwnd`, and then this ACK is already the law's.
    #[inline]
    pub fn on_sample(&mut self, ack: &Ack, control: &mut Control) {
        if matches!(self.kind, SlowStartKind::HyStart | SlowStartKind::HyStartPlusPlus) {
            // SAFETY: see `new`.
            unsafe { lfn_slow_start_on_sample(self.state.as_mut_ptr(), ack, control) }
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
        // SAFETY: see `new`.
        unsafe { lfn_slow_start_on_ack(self.state.as_mut_ptr(), n, ack, control) }
    }

    /// A congestion event.
    pub fn on_loss(&mut self, loss: &Loss) {
        // SAFETY: see `new`.
        unsafe { lfn_slow_start_on_loss(self.state.as_mut_ptr(), loss) }
    }
}
