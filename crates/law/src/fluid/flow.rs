//! One flow: a law, and what its path brings it.

use std::collections::VecDeque;

use super::{Path, START_S};
use crate::{
    Ack, Config, Control, LawSpec, Loss, LossKind, PlacedLaw, Rate, Window, ACK_CWND_LIMITED, ACK_FLIGHT,
    ACK_OPEN, ACK_RECOVERY, ACK_ROUND_START, CONTROL_APP_LIMITED, RATE_APP_LIMITED,
};

const MSS_BYTES: u32 = 1448;

/// ACKs of a flow.
struct Acks {
    /// In a round trip.
    per_round: f64,
    since_loss: u64,
    /// So many without a loss before they become fewer.
    fine: u64,
}

/// Segments sent one RTT before their delivery.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at_s: f64,
    rtt_s: f64,
    delivered: u64,
    lost: u64,
    in_flight: u32,
    app_limited: bool,
}

pub(super) struct Flow {
    law: PlacedLaw,
    /// The law owns window and rate.
    pub(super) steers: bool,
    control: Control,
    /// Its window in segments.
    cwnd: f64,
    ack: Ack,
    pub(super) base_s: f64,
    /// 1 over the same.
    pub(super) per_base_s: f64,
    acks: Acks,
    sent: VecDeque<Sent>,
    /// Segments a second that it sends, and that arrive.
    pub(super) sending: f64,
    pub(super) arriving: f64,
    /// Segments in the queue, for a law that steers.
    pub(super) queued: f64,
    /// Segments of the ACK to come, and what of them has arrived.
    pub(super) next_ack: f64,
    pub(super) arrived: f64,
    lost: u64,
    /// Segments that the full queue dropped, not yet reported to the law.
    pub(super) dropped: f64,
    app_limited_until: u64,
    recovery_end_s: f64,
    round_end_s: f64,
    /// Window when the round trip began, and what the one before added.
    round_window: f64,
    pub(super) growth: f64,
    pub(super) packets: f64,
    pub(super) window_s: f64,
}

impl Flow {
    /// A flow at its `window`, with an RTT of `base_s` in an empty network.
    pub(super) fn new(spec: &LawSpec, path: &Path, window: f64, base_s: f64) -> Flow {
        let now_ns = (START_S * 1e9) as u64;
        let mut control = Control::new(1);
        control.cwnd = Window::of(window);
        control.ssthresh = control.cwnd;
        let config = Config { now_ns, mss_B: MSS_BYTES, ..Config::default() };
        let mut law = spec.build(&config, &mut control);
        let first_ns = (path.least_rtt * base_s * 1e9).round() as u64;
        let mut ack = Ack {
            now_ns,
            rtt_ns: first_ns,
            srtt_ns: first_ns,
            min_rtt_ns: first_ns,
            mss_B: MSS_BYTES,
            flags: ACK_OPEN,
            ..Ack::default()
        };
        if let Some(mut law) = law.window() {
            law.on_sample(&ack, &mut control);
        } else if let Some(law) = law.controller() {
            law.on_control(&ack, &Rate::default(), &mut control);
        }
        ack.flags = 0;
        Flow {
            steers: law.is_controller(),
            law,
            control,
            cwnd: control.cwnd.segments(),
            ack,
            base_s,
            per_base_s: 1.0 / base_s,
            acks: Acks { per_round: path.detail.acks_per_round, fine: path.detail.fine_acks, since_loss: 0 },
            sent: VecDeque::new(),
            sending: 0.0,
            arriving: 0.0,
            queued: 0.0,
            next_ack: whole((window / path.detail.acks_per_round).max(1.0)),
            arrived: 0.0,
            lost: 0,
            dropped: 0.0,
            app_limited_until: 0,
            recovery_end_s: 0.0,
            round_end_s: START_S,
            round_window: window,
            growth: 0.0,
            packets: 0.0,
            window_s: 0.0,
        }
    }

    pub(super) fn cwnd(&self) -> f64 {
        self.cwnd
    }

    pub(super) fn set_cwnd(&mut self, cwnd: Window) {
        self.control.cwnd = cwnd;
        self.cwnd = cwnd.segments();
    }

    /// Segments that it keeps in flight: cwnd, or less where the pacing rate allows no more.
    pub(super) fn window(&self, delay_s: f64) -> f64 {
        match self.control.pacing_Bps {
            0 => self.cwnd,
            rate => self.cwnd.min(rate as f64 / f64::from(MSS_BYTES) * (self.base_s + delay_s)),
        }
    }

    pub(super) fn send(&mut self, delay_s: f64) {
        let window = self.window(delay_s);
        self.sending = window / (self.base_s + delay_s);
        self.ack.flags = if window < self.cwnd() { 0 } else { ACK_CWND_LIMITED };
    }

    pub(super) fn pass(&mut self, seconds: f64, delay_s: f64) {
        self.arrived += self.arriving * seconds;
        self.packets += self.arriving * seconds;
        if self.steers {
            self.queued = (self.queued + (self.sending - self.arriving) * seconds).max(0.0);
        }
        self.window_s += self.sending * (self.base_s + delay_s) * seconds;
    }

    /// The ACK that is due; its segments wait `delay_s` in the queue if they are sent now.
    pub(super) fn on_ack(&mut self, now_s: f64, delay_s: f64) {
        let now_ns = nanoseconds(now_s);
        while (1..=now_ns).contains(&self.control.next_tick_ns) {
            let at_ns = std::mem::take(&mut self.control.next_tick_ns);
            self.law.on_tick(at_ns, &mut self.control);
            self.cwnd = self.control.cwnd.segments();
        }
        let count = self.next_ack as u32;
        self.arrived -= self.next_ack;
        let is_due = |sent: &Sent| sent.at_s + sent.rtt_s <= now_s;
        while self.sent.get(1).is_some_and(is_due) {
            self.sent.pop_front();
        }
        let newest = self.sent.front().filter(|sent| is_due(sent));
        let rtt_s = newest.map_or(self.base_s + delay_s, |sent| sent.rtt_s);
        let window = self.window(delay_s);
        let in_flight = if self.steers {
            self.queued + self.arriving * self.base_s // a new rate has not filled the path yet
        } else {
            window
        };
        let ack = &mut self.ack;
        ack.now_ns = now_ns;
        ack.rtt_ns = nearest(rtt_s * 1e9);
        ack.min_rtt_ns = ack.min_rtt_ns.min(ack.rtt_ns);
        ack.srtt_ns = ack.srtt_ns - ack.srtt_ns / 8 + ack.rtt_ns / 8;
        ack.delivered += u64::from(count);
        (ack.acked, ack.newly_delivered) = (count, count);
        (ack.newly_lost, ack.inflight) = (0, in_flight as u32);
        if now_s >= self.round_end_s {
            self.round_end_s = (self.round_end_s + rtt_s).max(now_s);
            ack.flags |= ACK_ROUND_START | ACK_FLIGHT;
            self.growth = window - self.round_window;
            self.round_window = window;
        }
        if let Some(law) = self.law.router() {
            // A path without a router of its protocol brings back what the sender wrote.
            let header = law.header(&self.control, MSS_BYTES);
            law.on_header(header, &mut self.control);
        }
        if let Some(mut law) = self.law.window() {
            self.ack.flags |= ACK_OPEN;
            law.on_sample(&self.ack, &mut self.control);
            law.on_ack(count, &self.ack, &mut self.control);
        } else {
            self.steer(newest.copied());
        }
        self.cwnd = self.control.cwnd.segments();
        self.sent.push_back(Sent {
            at_s: now_s,
            rtt_s: self.base_s + delay_s,
            delivered: self.ack.delivered,
            lost: self.lost,
            in_flight: in_flight as u32,
            app_limited: self.ack.delivered < self.app_limited_until,
        });
        self.plan_ack(delay_s);
    }

    fn plan_ack(&mut self, delay_s: f64) {
        self.acks.since_loss += 1;
        if self.acks.since_loss == self.acks.fine {
            self.acks.per_round = self.acks.per_round.min(2.0);
        }
        let window = self.window(delay_s);
        // Most ACKs are of a path with two a round trip, and a product is faster.
        let per_round = self.acks.per_round;
        let segments = if per_round == 2.0 { 0.5 * window } else { window / per_round };
        self.next_ack = whole(segments.max(1.0));
    }

    /// The same for a law with delivery rates; `newest` is what was sent one RTT ago.
    fn steer(&mut self, newest: Option<Sent>) {
        let now_s = self.ack.now_ns as f64 * 1e-9;
        if now_s < self.recovery_end_s {
            self.ack.flags |= ACK_RECOVERY;
        } else {
            self.ack.flags |= ACK_OPEN;
            if std::mem::take(&mut self.recovery_end_s) > 0.0 {
                self.law.on_open(&self.ack, &mut self.control);
            }
        }
        self.ack.newly_lost = self.show_lost();
        let rate = self.rate_of(newest);
        let Some(law) = self.law.controller() else { return };
        if law.on_control(&self.ack, &rate, &mut self.control) & CONTROL_APP_LIMITED != 0 {
            self.app_limited_until = self.ack.delivered + u64::from(self.ack.inflight);
        }
    }

    fn rate_of(&self, newest: Option<Sent>) -> Rate {
        let (delivered, lost) = (self.ack.delivered, self.lost);
        let now = Rate { delivered, lost, prior_inflight: self.ack.inflight, ..Rate::default() };
        let Some(sent) = newest else { return Rate { prior_delivered: delivered, prior_lost: lost, ..now } };
        Rate {
            prior_delivered: sent.delivered,
            prior_lost: sent.lost,
            interval_ns: self.ack.now_ns.saturating_sub((sent.at_s * 1e9) as u64),
            tx_in_flight: sent.in_flight,
            flags: if sent.app_limited { RATE_APP_LIMITED } else { 0 },
            ..now
        }
    }

    /// Shows what was dropped, whole segments of it, and counts them.
    fn show_lost(&mut self) -> u32 {
        let count = self.dropped as u32;
        self.dropped -= f64::from(count);
        let sent = self.sent.front().copied();
        for _ in 0..count {
            self.lost += 1;
            let rate = self.rate_of(sent);
            if let Some(law) = self.law.controller() {
                law.on_lost(self.ack.now_ns, &rate, &self.control);
            }
        }
        count
    }

    pub(super) fn lose(&mut self, now_s: f64, delay_s: f64) {
        self.acks.since_loss = 0;
        let loss = Loss {
            now_ns: (now_s * 1e9) as u64,
            rtt_ns: self.ack.rtt_ns,
            srtt_ns: self.ack.srtt_ns,
            min_rtt_ns: self.ack.min_rtt_ns,
            kind: LossKind::Fast,
            inflight: self.window(delay_s) as u32,
            mss_B: MSS_BYTES,
            pad: 0,
        };
        if self.steers {
            self.dropped = self.dropped.max(1.0);
            self.show_lost();
            self.law.on_loss(&loss, &mut self.control);
            self.recovery_end_s = now_s + self.base_s + delay_s;
        } else {
            self.law.on_loss(&loss, &mut self.control);
            self.control.cwnd = self.control.ssthresh;
            self.law.on_open(&self.ack, &mut self.control);
        }
        self.cwnd = self.control.cwnd.segments();
        self.plan_ack(delay_s);
    }
}

/// The whole part of a number of at least 0; `floor` is a call where the processor may lack the instruction.
fn whole(x: f64) -> f64 {
    x as i64 as f64
}

/// A number of at least 0 to the nearest integer, halves up.
fn nearest(x: f64) -> u64 {
    let below = x as i64;
    below as u64 + u64::from(x - below as f64 >= 0.5)
}

/// A time of at least 0, rounded down.
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as i64 as u64
}
