//! Laws as they are, on a path that is a fluid: no packets, no recovery, no slow start.
//!
//! A flow sends `cwnd / RTT`, or at its pacing rate if that is less. The queue is what windows keep in
//! flight beyond the path, and where a pacing rate holds, it grows by what exceeds the link's rate. All
//! flows lose when it is full (Chiu and Jain 1989: losses are synchronised). ACKs come as the path
//! delivers, each for a sixteenth of a window, and show the RTT and the counters of what was sent one RTT
//! before. A loss is known at once and repaired at once; but a law with [`Law::on_control`] is in recovery
//! for a round trip, as it steers there. No router answers.

use std::collections::VecDeque;

use crate::{
    Ack, Config, Control, Law, LawSpec, Loss, LossKind, Rate, ACK_CWND_LIMITED, ACK_OPEN, ACK_RECOVERY,
    ACK_ROUND_START, CONTROL_APP_LIMITED, ONE, RATE_APP_LIMITED,
};

/// ACKs in a round trip, for windows of so many segments or more.
const ACKS: f64 = 16.0;
const MSS_BYTES: u32 = 1448;
const START_S: f64 = 1.0;
/// A window that no path here holds: nothing ends its growth.
const MOST_SEGMENTS: f64 = (1u32 << 25) as f64;
/// What has not come to an end after so many ACKs takes minutes.
const MOST_ACKS: u64 = 1 << 29;
/// Epochs without a loss, once there are none.
const QUIET_EPOCHS: usize = 8;
/// Without losses the largest load of a stretch is that of the stretch before but for this: no growth.
const SAME_LOAD: f64 = 1.001;

/// A path, and when its flows lose. Infinite: not at all.
#[derive(Clone, Debug)]
pub struct Path {
    /// What the link delivers; infinite: RTTs are constant.
    pub rate_per_s: f64,
    /// Segments that its queue holds; when it is full, all flows lose.
    pub buffer: f64,
    /// Round trips without a queue, one a flow.
    pub base_rtts_s: Vec<f64>,
    /// The first sample, before the windows below, as a part of the base RTT.
    pub least_rtt: f64,
    /// A loss after so many segments delivered.
    pub segments_to_loss: f64,
    /// A loss when the first flow's window comes to so many segments.
    pub window_at_loss: f64,
}

/// From a loss of all flows to the next; vectors have an entry a flow, in segments.
#[derive(Clone, Debug, Default)]
pub struct Epoch {
    /// When it began.
    pub start_s: f64,
    /// When the loss came that ends it.
    pub end_s: f64,
    /// Whether a loss ended it; without losses a course ends in epochs of equal length.
    pub lost: bool,
    /// Windows before that loss.
    pub before: Vec<f64>,
    /// Windows after it.
    pub after: Vec<f64>,
    /// Delivered.
    pub packets: Vec<f64>,
    /// The window's integral over time.
    pub window_s: Vec<f64>,
    /// Growth in the last whole round trip.
    pub growth: Vec<f64>,
}

/// Windows of all flows over time: what is in flight, where a pacing rate allows less than cwnd.
#[derive(Clone, Debug, Default)]
pub struct Course {
    /// Moments in which a window has changed by a hundredth, or a loss came; twice where it jumped.
    pub t_s: Vec<f64>,
    /// Windows in segments, moment by moment.
    pub windows: Vec<f64>,
    /// Epoch by epoch.
    pub epochs: Vec<Epoch>,
}

/// Why there is no course.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FluidError {
    /// No loss ends the growth of this flow.
    #[error("the window of flow {0} grows past {MOST_SEGMENTS} segments")]
    Unbounded(usize),
    /// Too many ACKs.
    #[error("more than {MOST_ACKS} ACKs")]
    TooLong,
    /// The caller said so.
    #[error("stopped")]
    Stopped,
}

/// What was sent one RTT before it is delivered.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at_s: f64,
    rtt_s: f64,
    delivered: u64,
    lost: u64,
    in_flight: u32,
    app_limited: bool,
}

struct Flow {
    law: Box<dyn Law>,
    control: Control,
    ack: Ack,
    base_s: f64,
    sent: VecDeque<Sent>,
    /// Segments a second that it sends, and that arrive.
    sending: f64,
    arriving: f64,
    /// Segments in the queue.
    queued: f64,
    /// Segments of the ACK to come, and what of them has arrived.
    next_ack: f64,
    arrived: f64,
    lost: u64,
    /// What the full queue dropped and the law has not been shown.
    dropped: f64,
    app_limited_until: u64,
    recovery_end_s: f64,
    round_end_s: f64,
    /// Window when the round trip began, and what the one before added.
    round_window: f64,
    growth: f64,
    packets: f64,
    window_s: f64,
}

impl Flow {
    fn new(spec: &LawSpec, window: f64, base_s: f64, least_rtt: f64) -> Flow {
        let now_ns = (START_S * 1e9) as u64;
        let mut control = Control::new(1);
        control.cwnd = (window * ONE as f64) as u64;
        control.ssthresh = control.cwnd;
        let config = Config { now_ns, mss_bytes: MSS_BYTES, ..Config::default() };
        let mut law = spec.build(&config, &mut control);
        let first_ns = (least_rtt * base_s * 1e9).round() as u64;
        let mut ack = Ack {
            now_ns,
            rtt_ns: first_ns,
            srtt_ns: first_ns,
            min_rtt_ns: first_ns,
            mss_bytes: MSS_BYTES,
            flags: ACK_OPEN,
            ..Ack::default()
        };
        if law.has_control() {
            law.on_control(&ack, &Rate::default(), &mut control);
        } else {
            law.on_sample(&ack, &mut control);
        }
        ack.flags = 0;
        Flow {
            law,
            control,
            ack,
            base_s,
            sent: VecDeque::new(),
            sending: 0.0,
            arriving: 0.0,
            queued: 0.0,
            next_ack: (window / ACKS).max(1.0).floor(),
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

    fn cwnd(&self) -> f64 {
        self.control.cwnd as f64 / ONE as f64
    }

    /// Segments that it keeps in flight: cwnd, or less where the pacing rate allows no more.
    fn window(&self, delay_s: f64) -> f64 {
        let pacing = match self.control.pacing_bytes_per_s {
            0 => f64::INFINITY,
            rate => rate as f64 / f64::from(MSS_BYTES),
        };
        self.cwnd().min(pacing * (self.base_s + delay_s))
    }

    fn send(&mut self, delay_s: f64) {
        let window = self.window(delay_s);
        self.sending = window / (self.base_s + delay_s);
        self.ack.flags = if window < self.cwnd() { 0 } else { ACK_CWND_LIMITED };
    }

    fn pass(&mut self, seconds: f64, delay_s: f64) {
        self.arrived += self.arriving * seconds;
        self.packets += self.arriving * seconds;
        self.queued = (self.queued + (self.sending - self.arriving) * seconds).max(0.0);
        self.window_s += self.sending * (self.base_s + delay_s) * seconds;
    }

    /// The ACK that is due; its segments wait `delay_s` in the queue if they are sent now.
    fn on_ack(&mut self, now_s: f64, delay_s: f64) {
        let now_ns = (now_s * 1e9) as u64;
        while (1..=now_ns).contains(&self.control.next_tick_ns) {
            let at_ns = std::mem::take(&mut self.control.next_tick_ns);
            self.law.on_tick(at_ns, &mut self.control);
        }
        let count = self.next_ack as u32;
        self.arrived -= self.next_ack;
        let is_due = |sent: &Sent| sent.at_s + sent.rtt_s <= now_s;
        while self.sent.get(1).is_some_and(is_due) {
            self.sent.pop_front();
        }
        let newest = self.sent.front().copied().filter(is_due);
        let rtt_s = newest.map_or(self.base_s + delay_s, |sent| sent.rtt_s);
        let window = self.window(delay_s);
        let in_flight = if self.law.has_control() {
            self.queued + self.arriving * self.base_s // a new rate has not filled the path yet
        } else {
            window
        };
        let ack = &mut self.ack;
        ack.now_ns = now_ns;
        ack.rtt_ns = (rtt_s * 1e9).round() as u64;
        ack.min_rtt_ns = ack.min_rtt_ns.min(ack.rtt_ns);
        ack.srtt_ns = ack.srtt_ns - ack.srtt_ns / 8 + ack.rtt_ns / 8;
        ack.delivered += u64::from(count);
        (ack.acked, ack.newly_delivered) = (count, count);
        (ack.newly_lost, ack.inflight) = (0, in_flight as u32);
        if now_s >= self.round_end_s {
            self.round_end_s = (self.round_end_s + rtt_s).max(now_s);
            ack.flags |= ACK_ROUND_START;
            self.growth = window - self.round_window;
            self.round_window = window;
        }
        if self.law.has_control() {
            self.steer(newest);
        } else {
            self.ack.flags |= ACK_OPEN;
            // A path without a router of its protocol brings back what the sender wrote.
            let header = self.law.header(&self.control, MSS_BYTES);
            if !header.is_none() {
                self.law.on_header(header, &mut self.control);
            }
            self.law.on_sample(&self.ack, &mut self.control);
            self.law.on_ack(count, &self.ack, &mut self.control);
        }
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
        self.next_ack = (self.window(delay_s) / ACKS).max(1.0).floor();
    }

    /// The same for a law that steers by rates; `newest` is what was sent one RTT ago.
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
        if self.law.on_control(&self.ack, &rate, &mut self.control) & CONTROL_APP_LIMITED != 0 {
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
            self.law.on_lost(self.ack.now_ns, &self.rate_of(sent), &self.control);
        }
        count
    }

    fn lose(&mut self, now_s: f64, delay_s: f64) {
        let loss = Loss {
            now_ns: (now_s * 1e9) as u64,
            rtt_ns: self.ack.rtt_ns,
            srtt_ns: self.ack.srtt_ns,
            min_rtt_ns: self.ack.min_rtt_ns,
            kind: LossKind::Fast,
            inflight: self.window(delay_s) as u32,
            mss_bytes: MSS_BYTES,
            pad: 0,
        };
        if self.law.has_control() {
            self.dropped = self.dropped.max(1.0);
            self.show_lost();
            self.law.on_loss(&loss, &mut self.control);
            self.recovery_end_s = now_s + self.base_s + delay_s;
        } else {
            self.law.on_loss(&loss, &mut self.control);
            self.control.cwnd = self.control.ssthresh;
            self.law.on_open(&self.ack, &mut self.control);
        }
        self.plan_ack(delay_s);
    }
}

struct Fluid<'a> {
    path: &'a Path,
    flows: Vec<Flow>,
    now_s: f64,
    queue: f64,
    /// The queue has dropped something since the last ACK.
    full: bool,
    epoch_start_s: f64,
    /// The last moment, and the windows then.
    seen_s: f64,
    seen: Vec<f64>,
    course: Course,
}

impl Fluid<'_> {
    fn delay_s(&self) -> f64 {
        self.queue / self.path.rate_per_s
    }

    /// Windows fill the queue at once, as each ACK sends what the window allows: sum of w / RTT is the rate.
    fn settle(&mut self) {
        let rate = self.path.rate_per_s;
        let mut delay_s = 0.0;
        for _ in 0..50 {
            // Newton from below: the load falls with the delay, and is convex.
            let (mut excess, mut slope) = (-rate, 0.0);
            for flow in &self.flows {
                let rtt_s = flow.base_s + delay_s;
                excess += flow.cwnd() / rtt_s;
                slope += flow.cwnd() / (rtt_s * rtt_s);
            }
            if excess <= 1e-12 * rate {
                break;
            }
            delay_s += excess / slope;
        }
        self.queue = (delay_s * rate).min(self.path.buffer);
        let delay_s = self.delay_s();
        for flow in &mut self.flows {
            flow.queued = flow.cwnd() * delay_s / (flow.base_s + delay_s);
        }
    }

    /// On to the next ACK, and its flow; to where the queue is empty, if that comes before.
    fn advance(&mut self) -> Option<usize> {
        let rate = self.path.rate_per_s;
        if rate.is_finite() && self.flows.iter().all(|flow| flow.window(self.delay_s()) == flow.cwnd()) {
            self.settle();
        }
        let delay_s = self.delay_s();
        let mut load = 0.0;
        for flow in &mut self.flows {
            flow.send(delay_s);
            load += flow.sending;
        }
        let crowded = self.queue > 0.0 || load > rate;
        let (mut step_s, mut next) = (f64::INFINITY, None);
        if self.queue > 0.0 && load < rate {
            step_s = self.queue / (rate - load);
        }
        for (i, flow) in self.flows.iter_mut().enumerate() {
            flow.arriving = if crowded { flow.sending * rate / load } else { flow.sending };
            let due_s = ((flow.next_ack - flow.arrived) / flow.arriving).max(0.0);
            if due_s < step_s {
                (step_s, next) = (due_s, Some(i));
            }
        }
        let queue = self.queue + if crowded { (load - rate) * step_s } else { 0.0 };
        self.queue = if next.is_some() { queue.clamp(0.0, self.path.buffer) } else { 0.0 };
        let dropped = (queue - self.path.buffer).max(0.0);
        self.full |= crowded && dropped > 0.0;
        for flow in &mut self.flows {
            flow.pass(step_s, delay_s);
            if crowded {
                let share = dropped * flow.sending / load;
                flow.dropped += share;
                flow.queued -= share;
            }
        }
        self.now_s += step_s;
        next
    }

    fn windows(&self) -> Vec<f64> {
        let delay_s = self.delay_s();
        self.flows.iter().map(|flow| flow.window(delay_s)).collect()
    }

    fn record(&mut self) {
        self.course.t_s.push(self.now_s - START_S);
        self.course.windows.extend(self.windows());
    }

    /// Records the moment if a window has changed by a hundredth since the last; where it jumped, the
    /// moment before, too.
    fn record_change(&mut self) {
        let differ = |a: &[f64], b: &[f64]| a.iter().zip(b).any(|(a, b)| (a - b).abs() > 0.01 * b);
        let now = self.windows();
        let recorded = &self.course.windows[self.course.windows.len() - now.len()..];
        if differ(&now, recorded) {
            if differ(&now, &self.seen) {
                self.course.t_s.push(self.seen_s - START_S);
                self.course.windows.append(&mut self.seen);
            }
            self.record();
        }
        (self.seen_s, self.seen) = (self.now_s, now);
    }

    fn end_epoch(&mut self, lost: bool) {
        self.record();
        let before = self.windows();
        let delay_s = self.delay_s();
        if lost {
            for flow in &mut self.flows {
                flow.lose(self.now_s, delay_s);
            }
            self.record();
        }
        let take = |of: fn(&mut Flow) -> &mut f64, flows: &mut Vec<Flow>| {
            flows.iter_mut().map(|flow| std::mem::take(of(flow))).collect()
        };
        self.course.epochs.push(Epoch {
            start_s: self.epoch_start_s - START_S,
            end_s: self.now_s - START_S,
            lost,
            before,
            after: self.windows(),
            packets: take(|flow| &mut flow.packets, &mut self.flows),
            window_s: take(|flow| &mut flow.window_s, &mut self.flows),
            growth: self.flows.iter().map(|flow| flow.growth).collect(),
        });
        self.epoch_start_s = self.now_s;
    }

    fn longest_rtt_s(&self) -> f64 {
        self.path.base_rtts_s.iter().fold(0.0, |a: f64, &b| a.max(b)) + self.delay_s()
    }
}

/// The course of `laws`, one a flow, from these windows in segments until so many losses have come; without
/// losses for long, until their loads are steady and eight epochs of that have passed. `alive` is asked
/// now and then whether to go on.
///
/// # Errors
/// [`FluidError`]: a window grows without bound, or there is no end in sight.
///
/// # Panics
/// Unless laws, windows and base RTTs are as many, and above 0.
pub fn course(
    laws: &[LawSpec],
    path: &Path,
    windows: &[f64],
    losses: usize,
    mut alive: impl FnMut() -> bool,
) -> Result<Course, FluidError> {
    assert!(laws.len() == windows.len() && laws.len() == path.base_rtts_s.len() && !laws.is_empty());
    assert!(windows.iter().chain(&path.base_rtts_s).all(|&x| x > 0.0));
    let flows = laws
        .iter()
        .zip(windows)
        .zip(&path.base_rtts_s)
        .map(|((law, &window), &base_s)| Flow::new(law, window, base_s, path.least_rtt));
    let mut fluid = Fluid {
        path,
        flows: flows.collect(),
        now_s: START_S,
        queue: 0.0,
        full: false,
        epoch_start_s: START_S,
        seen_s: START_S,
        seen: Vec::new(),
        course: Course::default(),
    };
    fluid.seen = fluid.windows();
    fluid.record();
    // Reno's epoch is half the window in round trips.
    let longest_s = fluid.longest_rtt_s() + path.buffer / path.rate_per_s;
    let stretch_s = (path.rate_per_s * longest_s).max(100.0) * longest_s;
    let (mut stretch_end_s, mut peak, mut last_peak) = (START_S + stretch_s, 0.0_f64, 0.0);
    let (mut quiet, mut calm_until_s, mut lost) = (0, 0.0, 0);
    for acks in 0..MOST_ACKS {
        if acks % (1 << 16) == 0 && !alive() {
            return Err(FluidError::Stopped);
        }
        let Some(next) = fluid.advance() else { continue };
        let (now_s, delay_s) = (fluid.now_s, fluid.delay_s());
        fluid.flows[next].on_ack(now_s, delay_s);
        if fluid.flows[next].cwnd() > MOST_SEGMENTS {
            return Err(FluidError::Unbounded(next));
        }
        fluid.record_change();
        let full = std::mem::take(&mut fluid.full) && now_s >= calm_until_s;
        let delivered: f64 = fluid.flows.iter().map(|flow| flow.packets).sum();
        let first = &mut fluid.flows[0].control.cwnd;
        let is_at_window = *first as f64 >= path.window_at_loss * ONE as f64;
        if is_at_window {
            // Equal peaks, which do not make a law give way.
            *first = (path.window_at_loss * ONE as f64) as u64;
        }
        if full || delivered >= path.segments_to_loss || is_at_window {
            fluid.end_epoch(true);
            lost += 1;
            if lost == losses {
                return Ok(fluid.course);
            }
            // One loss a window of data.
            calm_until_s = now_s + fluid.longest_rtt_s();
            (stretch_end_s, peak, last_peak, quiet) = (now_s + stretch_s, 0.0, 0.0, 0);
        }
        peak = peak.max(fluid.flows.iter().map(|flow| flow.cwnd() / flow.base_s).sum());
        if now_s < stretch_end_s {
            continue;
        }
        if quiet > 0 || peak <= SAME_LOAD * last_peak {
            fluid.end_epoch(false);
            quiet += 1;
            if quiet > QUIET_EPOCHS {
                return Ok(fluid.course);
            }
        }
        let length_s = if quiet > 0 { stretch_s / QUIET_EPOCHS as f64 } else { stretch_s };
        (stretch_end_s, last_peak, peak) = (now_s + length_s, peak, 0.0);
    }
    Err(FluidError::TooLong)
}
