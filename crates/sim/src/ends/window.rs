//! The window of a flow whose transport has no segments of TCP, over time.

use lfn_units::Time;

/// The window, over time.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub integral: f64,
    pub least: u64,
    pub most: u64,
    pub observed: Time,
}

impl Window {
    /// A window of so many packets or bytes, before any time has passed.
    pub fn at(packets: u64) -> Window {
        Window { integral: 0.0, least: packets, most: packets, observed: Time::ZERO }
    }

    /// It was `before` until now, and is `after`.
    pub fn observe(&mut self, now: Time, before: u64, after: u64) {
        self.integral += before as f64 * (now - self.observed).as_s();
        self.observed = now;
        self.least = self.least.min(after);
        self.most = self.most.max(after);
    }
}
