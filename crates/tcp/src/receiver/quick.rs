//! Quick ACKs, as Linux sends them: segments that are acknowledged at once.

use lfn_units::Time;

use crate::config::QUICK_ACKS;
use crate::ReceiverConfig;

/// Which segments in order are acknowledged at once.
#[derive(Clone, Debug)]
pub(super) struct QuickAcks {
    /// Segments that are still acknowledged at once.
    left: u32,
    /// Segments that still make the window grow: each is acknowledged at once as well.
    growing: u32,
    /// When the last segment in order arrived; after `pause` without one ACKs do not wait.
    last: Time,
    /// Infinite for a receiver without quick ACKs.
    pause: Time,
}

impl QuickAcks {
    pub fn new(config: &ReceiverConfig) -> QuickAcks {
        QuickAcks {
            left: config.quick_acks(),
            growing: config.growing_segments(),
            last: Time::NEVER,
            pause: config.pause(),
        }
    }

    /// Whether the receiver has quick ACKs at all.
    #[inline]
    pub fn exist(&self) -> bool {
        self.pause != Time::NEVER
    }

    /// A segment in order arrives at `now`: whether it is acknowledged at once.
    #[inline]
    pub fn on_segment(&mut self, now: Time) -> bool {
        if !self.exist() {
            return false;
        }
        let paused = now > self.last.after(self.pause);
        self.last = now;
        (paused || (self.left | self.growing) != 0) && self.take(paused)
    }

    /// Whether a segment, perhaps the first after a pause, is acknowledged at once.
    #[cold]
    pub fn take(&mut self, paused: bool) -> bool {
        if self.growing > 0 {
            self.growing -= 1;
            self.left |= 1;
        }
        if paused {
            self.add(QUICK_ACKS);
        }
        self.left > 0
    }

    /// At least the next `acks` segments are acknowledged at once.
    pub fn add(&mut self, acks: u32) {
        if self.exist() {
            self.left = self.left.max(acks);
        }
    }

    /// Whether the next segment is acknowledged at once.
    pub fn any(&self) -> bool {
        self.left > 0
    }

    /// An ACK leaves.
    #[inline(always)]
    pub fn on_ack(&mut self) {
        self.left = self.left.saturating_sub(1);
    }
}
