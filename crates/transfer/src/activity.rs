//! Progress of connections, from which the listener finds idle slots.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use lfn_units::Time;

/// Payload that counts as progress, in bytes.
const STEP_BYTES: u64 = 4096;
/// Idle time after which another peer may take a slot; longer than an outage of 40 s.
const KNOWN: Time = Time::from_s(45);
/// The same before the peer's first request.
const UNKNOWN: Time = Time::from_s(3);
/// A connection ends after this time without payload, even if no peer waits for its slot.
const MOST_IDLE: Time = Time::from_s(600);

/// Activity of a connection, as the listener sees it.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// Nanoseconds of the connection's age at its last step.
    last: AtomicU64,
    known: AtomicBool,
    taken: AtomicBool,
}

impl Activity {
    /// The slot was given to another peer.
    pub fn take(&self) {
        self.taken.store(true, Relaxed);
    }

    pub fn is_taken(&self) -> bool {
        self.taken.load(Relaxed)
    }

    /// The peer sent a valid request.
    pub fn known(&self) {
        self.known.store(true, Relaxed);
    }

    /// Since the last step, at this age.
    pub fn idle(&self, age: Time) -> Time {
        Time(age.0.saturating_sub(Time::from_ns(self.last.load(Relaxed)).0))
    }

    /// An idle slot is not taken before.
    pub fn allowance(&self) -> Time {
        if self.known.load(Relaxed) {
            KNOWN
        } else {
            UNKNOWN
        }
    }
}

/// The connection's own part of the state.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    bytes: u64,
    counted: u64,
    /// Age at the last payload.
    last: Time,
}

impl Steps {
    /// Updates the total of payload taken or delivered. Returns whether the connection has been idle too
    /// long.
    pub fn on_bytes(&mut self, now: Time, bytes: u64, activity: &Activity) -> bool {
        if bytes > self.bytes {
            (self.bytes, self.last) = (bytes, now);
        }
        if bytes >= self.counted + STEP_BYTES {
            self.counted = bytes;
            activity.last.store(now.as_ns(), Relaxed);
        }
        now.0.saturating_sub(self.last.0) > MOST_IDLE.0
    }

    /// The connection is busy for its peer, so it is not idle.
    pub fn on_work(&mut self, now: Time, activity: &Activity) {
        self.last = now;
        activity.last.store(now.as_ns(), Relaxed);
    }
}
