//! Laws as they are, on a path that is a fluid: no packets, no recovery, no slow start.
//!
//! A flow sends `cwnd / RTT`, or at its pacing rate if that is less. The queue is what windows keep in
//! flight beyond the path, and where a pacing rate holds, it grows by what exceeds the link's rate. All
//! flows lose when it is full (Chiu and Jain 1989: losses are synchronised). ACKs come as the path
//! delivers, each for a sixteenth of a window, and show the RTT and the counters of what was sent one RTT
//! before. A loss is known at once and repaired at once; but a [`Controller`](crate::Controller) is in recovery
//! for a round trip, as it steers there. No router answers.

mod flow;
mod sawtooth;

use crate::{LawSpec, Window};
use flow::Flow;
pub use sawtooth::{sawtooth, Sawtooth};

const START_S: f64 = 1.0;
/// A window that no path here holds: nothing ends its growth.
const MOST_SEGMENTS: f64 = (1u32 << 25) as f64;
/// Limit of the ACKs of a computation; more would take minutes. Of a brief one, where it is some 30 ms.
const MOST_ACKS: u64 = 1 << 29;
const MOST_ACKS_OF_BRIEF: u64 = 3 << 17;
/// Epochs without a loss, once there are none.
const QUIET_EPOCHS: usize = 8;
/// Without losses, the load is steady if the largest load of a stretch exceeds that of the last one by less.
const SAME_LOAD: f64 = 1.001;

/// A path, and when its flows lose. Infinite: not at all.
#[derive(Clone, Debug)]
pub struct Path {
    /// Rate of the link; infinite: RTTs are constant.
    pub rate_per_s: f64,
    /// Segments that its queue holds; when it is full, all flows lose.
    pub buffer: f64,
    /// Round trips without a queue, one a flow.
    pub base_rtts_s: Vec<f64>,
    /// The first sample, before the windows below, as a part of the base RTT.
    pub least_rtt: f64,
    /// A loss after this many segments delivered.
    pub segments_to_loss: f64,
    /// A loss when the first flow's window reaches this many segments.
    pub window_at_loss: f64,
    /// How finely it is computed.
    pub detail: Detail,
}

/// How finely a course is computed.
#[derive(Clone, Copy, Debug)]
pub struct Detail {
    /// ACKs in a round trip, for windows of at least as many segments.
    pub acks_per_round: f64,
    /// ACKs without a loss after which there are at most two a round trip: a long epoch changes slowly.
    pub fine_acks: u64,
    /// Without losses, the load is compared after so many round trips; infinite: after as many as Reno takes from loss
    /// to loss.
    pub quiet_rounds: f64,
    /// The course ends once its epochs [repeat](repeat), and has no moments.
    pub is_brief: bool,
}

impl Detail {
    /// A course to draw.
    pub const FINE: Detail =
        Detail { acks_per_round: 16.0, fine_acks: u64::MAX, quiet_rounds: f64::INFINITY, is_brief: false };
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
    #[error("the window of flow {0} grows past {MOST_SEGMENTS} segments without a loss; allowed: a path that fills")]
    Unbounded(usize),
    /// Too many ACKs.
    #[error("more than {0} ACKs; allowed: a smaller rate, RTT or buffer, or fewer losses")]
    TooLong(u64),
    /// The caller said so.
    #[error("stopped")]
    Stopped,
}

struct Fluid<'a> {
    path: &'a Path,
    flows: Vec<Flow>,
    now_s: f64,
    /// Segments in the queue, and how long it takes to send them. A quotient costs as much as ten products, so that
    /// it stands beside them.
    queue: f64,
    delay_s: f64,
    /// The queue has dropped something since the last ACK.
    full: bool,
    epoch_start_s: f64,
    /// The last moment, and the windows then.
    seen_s: f64,
    seen: Vec<f64>,
    course: Course,
}

impl Fluid<'_> {
    fn set_queue(&mut self, segments: f64) {
        if segments != self.queue {
            self.queue = segments;
            self.delay_s = segments / self.path.rate_per_s;
        }
    }

    /// Windows fill the queue at once, as each ACK sends what the window allows: sum of w / RTT is the rate.
    fn settle(&mut self) {
        let rate = self.path.rate_per_s;
        if let [flow] = &mut self.flows[..] {
            let path = rate * flow.base_s;
            let queue = (flow.cwnd() - path).clamp(0.0, self.path.buffer);
            if flow.steers {
                flow.queued = flow.cwnd() * queue / (path + queue);
            }
            return self.set_queue(queue);
        }
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
        self.set_queue((delay_s * rate).min(self.path.buffer));
        let delay_s = self.delay_s;
        for flow in &mut self.flows {
            flow.queued = flow.cwnd() * delay_s / (flow.base_s + delay_s);
        }
    }

    /// On to the next ACK, and its flow; to where the queue is empty, if that comes before.
    fn advance(&mut self) -> Option<usize> {
        let rate = self.path.rate_per_s;
        if rate.is_finite() && self.flows.iter().all(|flow| flow.window(self.delay_s) == flow.cwnd()) {
            self.settle();
        }
        let delay_s = self.delay_s;
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
        self.set_queue(if next.is_some() { queue.clamp(0.0, self.path.buffer) } else { 0.0 });
        let dropped = (queue - self.path.buffer).max(0.0);
        let drops = crowded && dropped > 0.0;
        self.full |= drops;
        for flow in &mut self.flows {
            flow.pass(step_s, delay_s);
            if drops {
                let share = dropped * flow.sending / load;
                flow.dropped += share;
                flow.queued -= share;
            }
        }
        self.now_s += step_s;
        next
    }

    fn windows(&self) -> Vec<f64> {
        self.flows.iter().map(|flow| flow.window(self.delay_s)).collect()
    }

    fn record(&mut self) {
        if self.path.detail.is_brief {
            return;
        }
        self.course.t_s.push(self.now_s - START_S);
        self.course.windows.extend(self.windows());
    }

    /// Records the moment if a window has changed by a hundredth since the last; where it jumped, the
    /// moment before, too.
    fn record_change(&mut self) {
        if self.path.detail.is_brief {
            return;
        }
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
        if lost {
            for flow in &mut self.flows {
                flow.lose(self.now_s, self.delay_s);
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
        self.path.base_rtts_s.iter().fold(0.0, |a: f64, &b| a.max(b)) + self.delay_s
    }
}

/// Whether the last two epochs are alike in their lengths and in the windows of the first flow, to a part in 200; or the
/// last two pairs, since epochs alternate where a law has fast convergence.
fn repeat(epochs: &[Epoch]) -> bool {
    let alike = |a: f64, b: f64| (a - b).abs() <= 0.005 * b;
    let are_alike = |a: &Epoch, b: &Epoch| {
        a.lost && b.lost && alike(a.before[0], b.before[0]) && alike(a.end_s - a.start_s, b.end_s - b.start_s)
    };
    match epochs {
        [.., a, b] if are_alike(a, b) => true,
        [.., a, b, c, d] => are_alike(a, c) && are_alike(b, d),
        _ => false,
    }
}

/// The course of `laws`, one a flow, from these windows in segments until the given number of losses; without
/// losses for long, until their loads are steady and eight epochs of that have passed. `alive` is called at
/// intervals; false ends the computation.
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
        .map(|((law, &window), &base_s)| Flow::new(law, path, window, base_s));
    let mut fluid = Fluid {
        path,
        flows: flows.collect(),
        now_s: START_S,
        queue: 0.0,
        delay_s: 0.0,
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
    let rounds = (path.rate_per_s * longest_s).max(100.0).min(path.detail.quiet_rounds);
    let stretch_s = rounds * longest_s;
    let (mut stretch_end_s, mut peak, mut last_peak) = (START_S + stretch_s, 0.0_f64, 0.0);
    let (mut quiet, mut calm_until_s, mut lost) = (0, 0.0, 0);
    let most_acks = if path.detail.is_brief { MOST_ACKS_OF_BRIEF } else { MOST_ACKS };
    for acks in 0..most_acks {
        if acks % (1 << 16) == 0 && !alive() {
            return Err(FluidError::Stopped);
        }
        let Some(next) = fluid.advance() else { continue };
        let (now_s, delay_s) = (fluid.now_s, fluid.delay_s);
        fluid.flows[next].on_ack(now_s, delay_s);
        if fluid.flows[next].cwnd() > MOST_SEGMENTS {
            return Err(FluidError::Unbounded(next));
        }
        fluid.record_change();
        let full = std::mem::take(&mut fluid.full) && now_s >= calm_until_s;
        let delivered: f64 = fluid.flows.iter().map(|flow| flow.packets).sum();
        let first = &mut fluid.flows[0];
        let is_at_window = first.cwnd() >= path.window_at_loss;
        if is_at_window {
            // Equal peaks, which do not make a law give way.
            first.set_cwnd(Window::of(path.window_at_loss));
        }
        if full || delivered >= path.segments_to_loss || is_at_window {
            fluid.end_epoch(true);
            lost += 1;
            if lost == losses || path.detail.is_brief && repeat(&fluid.course.epochs) {
                return Ok(fluid.course);
            }
            // One loss a window of data.
            calm_until_s = now_s + fluid.longest_rtt_s();
            (stretch_end_s, peak, last_peak, quiet) = (now_s + stretch_s, 0.0, 0.0, 0);
        }
        peak = peak.max(fluid.flows.iter().map(|flow| flow.cwnd() * flow.per_base_s).sum());
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
    Err(FluidError::TooLong(most_acks))
}
