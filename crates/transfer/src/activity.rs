//! Whether a connection gets on, for those who wait for its slot.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use lfn_units::Time;

/// So much payload is progress.
const STEP_BYTES: u64 = 4096;
/// A slot may be idle for so long before another peer takes it: outages of 40 s survive.
const KNOWN: Time = Time::from_s(45);
/// And so long if its peer has not said what it wants.
const UNKNOWN: Time = Time::from_s(3);
/// A connection without a byte of payload for so long ends, whether anybody wants its slot or not.
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
    /// Its slot goes to another peer.
    pub fn take(&self) {
        self.taken.store(true, Relaxed);
    }

    pub fn is_taken(&self) -> bool {
        self.taken.load(Relaxed)
    }

    /// The peer said what it wants, as the protocol has it.
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

/// The connection's own account of it.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    bytes: u64,
    counted: u64,
    /// Of the last payload.
    last: Time,
}

impl Steps {
    /// So much payload has been taken or delivered altogether. Says whether the connection is idle for too long.
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

    /// It works for its peer.
    pub fn on_work(&mut self, now: Time, activity: &Activity) {
        self.last = now;
        activity.last.store(now.as_ns(), Relaxed);
    }
}
