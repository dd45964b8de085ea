//! Validation of the window of a sender whose application is slow, as Linux does it (RFC 2861, the predecessor of
//! RFC 7661): a window that was not used says nothing about the path.

use lfn_law::Window;
use lfn_units::Time;

use super::{Sender, State};

/// The use that a sender made of its window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Validation {
    /// When the window was last found in use, or lowered.
    since: Time,
    /// Most segments outstanding since then.
    used: u64,
    /// The next new segment at the last look, and when it changed last.
    nxt: u64,
    last_sent: Time,
    /// Window of a connection that begins.
    initial: u64,
}

impl Validation {
    pub fn new(now: Time, initial_window_segments: u32) -> Validation {
        let initial = u64::from(initial_window_segments);
        Validation { since: now, used: 0, nxt: 0, last_sent: now, initial }
    }
}

impl Sender {
    /// The application writes `segments` now. After a pause longer than a timeout the window was halved for each
    /// timeout, down to the initial one (RFC 5681 section 4.1).
    pub fn write_now(&mut self, now: Time, segments: u64) {
        if let Some(validation) =
            self.validation.filter(|_| self.validates() && self.board.outstanding() == 0)
        {
            let rto = self.timeout().0.max(1);
            let paused = now.since(validation.last_sent).0;
            if self.board.nxt() > 0 && paused > rto {
                let (window, timeouts) = (self.window(), (paused - 1) / rto);
                let restart = validation.initial.min(window);
                let halved = window.checked_shr(u32::try_from(timeouts).unwrap_or(u32::MAX)).unwrap_or(0);
                self.lower(now, halved.max(restart));
            }
        }
        self.offer(segments);
    }

    /// All that the application has written is sent. Where the window has not been in use for a timeout, it falls half
    /// the way to what was used.
    #[cold]
    pub(super) fn validate(&mut self, now: Time) {
        let (nxt, outstanding, limited) = (self.board.nxt(), self.board.outstanding(), self.may_grow());
        let rto = self.timeout();
        let Some(validation) = &mut self.validation else { return };
        if nxt == validation.nxt {
            return;
        }
        (validation.nxt, validation.last_sent) = (nxt, now);
        if limited {
            (validation.since, validation.used) = (now, 0);
            return;
        }
        validation.used = validation.used.max(outstanding);
        if now.since(validation.since) < rto || self.state != State::Open || !self.validates() {
            return;
        }
        let Some(validation) = &mut self.validation else { return };
        let used = validation.used.max(validation.initial);
        (validation.since, validation.used) = (now, 0);
        if used < self.window() {
            self.lower(now, (self.window() + used) / 2);
        }
    }

    /// Laws that set the window themselves at each ACK are left alone, as in Linux.
    fn validates(&mut self) -> bool {
        self.law.window().is_some()
    }

    fn timeout(&self) -> Time {
        Time::from_ns(self.rtt.backed_off_rto_ns(self.timers.backoff))
    }

    /// The window falls without a loss: ssthresh remembers three quarters of it.
    fn lower(&mut self, now: Time, window: u64) {
        self.report.observe(now, self.control.cwnd);
        let before = self.window();
        if !matches!(self.state, State::Cwr | State::Recovery) {
            let kept = Window::whole(before / 2 + before / 4);
            self.control.ssthresh = self.control.ssthresh.max(kept);
        }
        self.control.cwnd = Window::whole(window);
        if let Some(validation) = &mut self.validation {
            (validation.since, validation.used) = (now, 0);
        }
    }
}
