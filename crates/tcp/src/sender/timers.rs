//! The sender's timers: retransmission timeout, tail loss probe, RACK's reordering timer.

use std::num::NonZero;

use lfn_law::LossKind;
use lfn_units::Time;

use super::{Sender, State};
use crate::{wheel, Reduction, RtoForm};

/// Margin beyond 2 srtt before Linux sends a tail loss probe.
const TLP_SLACK_NS: u64 = 2_000_000;
/// Allowance for the receiver's delayed ACK when a single segment is outstanding (RFC 8985 §7.2).
const TLP_DELAYED_ACK_NS: u64 = 200_000_000;

/// The task of [`Timers::due`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Timer {
    Rto,
    TailLossProbe,
    /// The time is over; the kernel's next tick for it is to come.
    RtoTick,
    ProbeTick,
}

/// Timers, and the state that decides how they restart.
pub(super) struct Timers {
    /// When the retransmission timeout or the tail loss probe is due.
    pub due: Time,
    /// RACK's reordering timer.
    pub reorder: Time,
    /// One past the last segment when a tail loss probe was sent.
    pub probe_end: Option<NonZero<u64>>,
    /// When the probe's timer began, where the timeout may come first.
    pub probe_began: Time,
    /// Timeouts since the last RTT sample: the timeout is doubled so often.
    pub backoff: u32,
    pub kind: Timer,
    /// The host's clock at time 0, for the ticks of timers.
    pub clock_ms: u16,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers {
            due: Time::NEVER,
            reorder: Time::NEVER,
            probe_end: None,
            probe_began: Time::ZERO,
            backoff: 0,
            kind: Timer::Rto,
            clock_ms: 0,
        }
    }
}

impl Timers {
    /// Whether segment `seq` is the tail loss probe.
    pub fn probes(&self, seq: u64) -> bool {
        self.probe_end.is_some_and(|end| end.get() == seq + 1)
    }
}

/// When Linux's reordering timer of deadline `due` fires: its clock ticks every millisecond, and the timer takes two ticks
/// more and the rest of the current one.
fn in_jiffies(now: Time, due: Time) -> Time {
    Time::from_ms(now.as_ns() / 1_000_000 + due.since(now).as_ns().div_ceil(1_000_000) + 3)
}

impl Sender {
    /// When [`Sender::on_timer`] wants to be called; [`Time::NEVER`] if not at all.
    #[inline]
    pub fn deadline(&self) -> Time {
        let mut deadline = self.timers.due.min(self.timers.reorder);
        if self.control.next_tick_ns != 0 {
            deadline = deadline.min(Time::from_ns(self.control.next_tick_ns));
        }
        if self.pacer.held {
            deadline = deadline.min(self.pacer.next_send);
        }
        deadline
    }

    #[inline]
    pub(super) fn restart_timer(&mut self, now: Time) {
        if self.board.outstanding() == 0 {
            self.timers.due = Time::NEVER;
            return;
        }
        if !self.may_probe() {
            return self.restart_timeout(now);
        }
        // The probe takes the place of the first timeout (§7.2), however long the path.
        self.timers.kind = Timer::TailLossProbe;
        let rto_ns = self.rtt.backed_off_rto_ns(self.timers.backoff);
        let mut delay_ns = self.probe_delay_ns();
        if delay_ns + self.rtt.latest_ns().max(2 * self.rtt.srtt_ns()) > rto_ns {
            // No later than the timeout of the first segment, unless nothing new leaves.
            self.timers.probe_began = now;
            let timeout = self.board.first_sent() + Time::from_ns(rto_ns);
            delay_ns = delay_ns.min(timeout.since(now).as_ns());
        }
        self.timers.due = now + Time::from_ns(delay_ns);
    }

    /// The timeout counts from now.
    #[inline]
    pub(super) fn restart_timeout(&mut self, now: Time) {
        self.timers.kind = Timer::Rto;
        self.timers.due = now + Time::from_ns(self.rtt.backed_off_rto_ns(self.timers.backoff));
    }

    /// RACK looks for losses again when `due`, if anything waits. Linux has one timer for both: until then no timeout
    /// comes, and it is not later than a timeout that begins now.
    #[cold]
    pub(super) fn wait_for_reordering(&mut self, now: Time, due: Option<Time>) {
        let Some(due) = due else {
            if self.timers.reorder != Time::NEVER && self.timers.due == Time::NEVER {
                self.resume_timeout(now);
            }
            self.timers.reorder = Time::NEVER;
            return;
        };
        let timeout = now + Time::from_ns(self.rtt.backed_off_rto_ns(self.timers.backoff));
        self.timers.reorder = in_jiffies(now, due).min(timeout);
        self.timers.due = Time::NEVER;
    }

    /// The timeout counts from the first segment again.
    pub(super) fn resume_timeout(&mut self, now: Time) {
        if self.board.outstanding() == 0 {
            return;
        }
        let due = self.board.first_sent() + Time::from_ns(self.rtt.backed_off_rto_ns(self.timers.backoff));
        (self.timers.kind, self.timers.due) = (Timer::Rto, due.max(now + Time::from_us(1)));
        if self.config.rto == RtoForm::Linux {
            // The rest of the timeout decides which tick is the next for it.
            let rest_ms = (self.timers.due - now).as_ns().div_ceil(1_000_000);
            self.timers.kind = Timer::RtoTick;
            self.timers.due = wheel::fires(self.timers.clock_ms, now, rest_ms);
        }
    }

    /// From the last new data to their probe, in ns.
    fn probe_delay_ns(&self) -> u64 {
        let slack = if self.board.outstanding() == 1 { TLP_DELAYED_ACK_NS } else { TLP_SLACK_NS };
        2 * self.rtt.srtt_ns() + slack
    }

    /// When the probe is due: data may have left since its timer began. No later than the timeout (§7.2), which
    /// Linux counts from the first segment, or from an ACK after which nothing new has left (measured).
    pub(super) fn probe_due(&self) -> Time {
        let delay = Time::from_ns(self.probe_delay_ns());
        let timeout = Time::from_ns(self.rtt.backed_off_rto_ns(self.timers.backoff));
        let (began, last) = (self.timers.probe_began, self.board.last_sent());
        if last < began {
            return began + delay.min(timeout);
        }
        (last + delay).min(self.board.first_sent() + timeout)
    }

    /// Whether the timer of the segments outstanding may be a tail loss probe's (RFC 8985 §7.2). Linux starts it also
    /// while a probe is under way, and then sends none (measured).
    fn may_probe(&self) -> bool {
        self.config.tail_loss_probe
            && self.config.sack
            && matches!(self.state, State::Open | State::Cwr)
            && self.board.sacked_out() == 0
            && self.rtt.srtt_ns() != 0
    }

    /// New data leave while at most one segment is outstanding, so the timer begins, or no longer allows for the
    /// delayed ACK of a single segment.
    #[cold]
    pub(super) fn on_first_sent(&mut self, now: Time) {
        if self.board.outstanding() == 1 || self.may_probe() {
            self.restart_timer(now);
        }
    }

    /// Timer expiry at [`Sender::deadline`].
    pub fn on_timer(&mut self, now: Time) {
        self.report.observe(now, self.control.cwnd);
        self.pacer.release(now);
        if self.control.next_tick_ns != 0 && Time::from_ns(self.control.next_tick_ns) <= now {
            self.control.next_tick_ns = 0;
            self.law.on_tick(now.as_ns(), &mut self.control);
        }
        if self.timers.reorder <= now {
            let losses = self.detect_losses(now);
            self.show_lost(now);
            if losses.segments > 0 && self.state != State::Recovery {
                self.enter_recovery(now, State::Recovery, LossKind::Fast);
                if self.config.reduction == Reduction::Prr && self.rate.is_none() || self.reduces_gradually()
                {
                    // Linux counts the timer as a delivery.
                    self.reduce(1, false);
                }
            }
        }
        if self.timers.due <= now && !self.waits_for_tick() {
            match self.timers.kind {
                Timer::Rto | Timer::RtoTick => self.on_timeout(now),
                Timer::TailLossProbe | Timer::ProbeTick => self.on_probe_timeout(now),
            }
        }
    }

    /// Linux's timer fires at a tick, never earlier than it is due: moves the timer there, once.
    fn waits_for_tick(&mut self) -> bool {
        if self.config.rto != RtoForm::Linux {
            return false;
        }
        let (began, delay_ms) = match self.timers.kind {
            Timer::Rto => {
                let rto_ns = self.rtt.backed_off_rto_ns(self.timers.backoff);
                self.timers.kind = Timer::RtoTick;
                (self.timers.due.since(Time::from_ns(rto_ns)), self.rtt.rto_ms(self.timers.backoff))
            }
            Timer::TailLossProbe => {
                let due = self.timers.due.max(self.probe_due());
                let last = self.board.last_sent().max(self.timers.probe_began);
                let began = last.max(due.since(Time::from_ns(self.probe_delay_ns())));
                self.timers.kind = Timer::ProbeTick;
                (began, (due - began).as_ns().div_ceil(1_000_000))
            }
            Timer::RtoTick | Timer::ProbeTick => return false,
        };
        self.timers.due = wheel::fires(self.timers.clock_ms, began, delay_ms);
        true
    }
}
