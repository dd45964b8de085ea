//! Validation of the window of a sender whose application is slow, as Linux does it: after a pause a window says nothing
//! about the path (RFC 5681 section 4.1). While ACKs come, a window that is not full keeps its size (measured on Linux 6.12
//! and 6.18), which RFC 2861 and RFC 7661 would lower.

use lfn_law::Window;
use lfn_units::Time;

use super::{Sender, State};

/// The state from which a sender validates its window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Validation {
    /// The next new segment at the last look, and when it changed last.
    nxt: u64,
    last_sent: Time,
    /// Window of a connection that begins.
    initial: u64,
}

impl Validation {
    pub fn new(now: Time, initial_window_segments: u32) -> Validation {
        let initial = u64::from(initial_window_segments);
        Validation { nxt: 0, last_sent: now, initial }
    }
}

impl Sender {
    /// The application writes `segments` now. After a pause longer than a timeout the window was halved for each
    /// timeout, down to the initial one (RFC 5681 section 4.1).
    pub fn write_now(&mut self, now: Time, segments: u64) {
        let validation = self.rare.as_ref().and_then(|rare| rare.validation);
        if let Some(validation) = validation.filter(|_| self.validates() && self.board.outstanding() == 0) {
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

    /// All that the application has written is sent: a pause may begin.
    #[cold]
    pub(super) fn note_last_sent(&mut self, now: Time) {
        let nxt = self.board.nxt();
        let validation = self.rare.as_mut().and_then(|rare| rare.validation.as_mut());
        if let Some(validation) = validation.filter(|validation| validation.nxt != nxt) {
            (validation.nxt, validation.last_sent) = (nxt, now);
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
    }
}
