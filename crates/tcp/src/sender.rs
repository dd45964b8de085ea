//! Sender: window, recovery, timers. It has the states of Linux, the default: Open, Disorder, CWR, Recovery,
//! Loss, with one reduction per window of data.

mod buffer;
mod bursts;
mod marks;
mod output;
mod pacer;
mod prediction;
mod recovery;
mod report;
mod timers;
mod undo;
mod validation;

use std::mem::offset_of;
use std::sync::Arc;

use lfn_header::Header;
use lfn_law::{
    Ack, Config as LawConfig, Control, LawSpec, Loss, LossKind, PlacedLaw, SlowStart, Window,
    ACK_CWND_LIMITED, ACK_DUP, ACK_FLIGHT, ACK_OPEN, ACK_PACED, ACK_RECOVERY, ACK_ROUND_START,
    CONFIG_NO_SACK, CONTROL_APP_LIMITED, PROBES,
};
use lfn_units::Time;

use crate::prefetch::prefetch_bytes;
use crate::rate::{Delivery, RateSampler};
use crate::receiver::{AckFlags, Acknowledgement};
use crate::rtt::{timestamp_ms, RttEstimator};
use crate::scoreboard::{Outcome, Scoreboard};
use crate::wheel;
use crate::{LossDetection, Reduction, SenderConfig};
use buffer::Supply;
use marks::Marks;
use output::{Forced, Usage};
use pacer::Pacer;
use prediction::HeaderPrediction;
use recovery::Recovery;
use report::Report;
pub use report::{EventKind, Segment, SenderEvent, SenderStats, State};
use timers::Timers;
use validation::Validation;

/// Sender of one connection. Fields are in order of use: those of an ordinary ACK and of repair come before `slow_start`.
#[repr(C)]
pub struct Sender {
    board: Scoreboard,
    control: Control,
    timers: Timers,
    supply: Supply,
    /// The cumulative ACK with which a round begins or a flight ends, whichever is first.
    turn: u64,
    delivered: u64,
    usage: Usage,
    dup_acks: u64,
    rtt: RttEstimator,
    law: PlacedLaw,
    state: State,
    forced: Forced,
    send_cwr: bool,
    /// For random decisions of the law.
    law_seed: u32,
    pacer: Pacer,
    report: Report,
    config: Arc<SenderConfig>,
    recovery: Recovery,
    slow_start: SlowStart,
    spec: LawSpec,
    /// Delivery-rate sampler of a law that is a [`lfn_law::Controller`].
    rate: Option<Box<RateSampler>>,
    rare: Option<Box<Rare>>,
}

/// State that few senders have.
struct Rare {
    /// Of a sender whose application is slow.
    validation: Option<Validation>,
    /// Of a sender that is told of marks by AccECN.
    marks: Option<Marks>,
}

impl Rare {
    fn of(config: &SenderConfig, now: Time) -> Option<Box<Rare>> {
        let validation = config.validation.then(|| Validation::new(now, config.initial_window_segments));
        let marks = config.accurate_ecn.then(Marks::default);
        (validation.is_some() || marks.is_some()).then(|| Box::new(Rare { validation, marks }))
    }
}

/// A law and the window that it begins with; `srtt_ns` of the handshake, 0 without one.
fn begin(law: &LawSpec, config: &SenderConfig, seed: u32, now: Time, srtt_ns: u64) -> (PlacedLaw, Control) {
    let mut control = Control::new(config.initial_window_segments);
    if let Some(segments) = config.initial_ssthresh_segments {
        control.ssthresh = Window::whole(segments.into());
    }
    let law_config = LawConfig {
        now_ns: now.as_ns(),
        srtt_ns,
        mss_B: config.mss_bytes,
        seed,
        flags: if config.sack { 0 } else { CONFIG_NO_SACK },
        ..LawConfig::default()
    };
    let mut built = law.build(&law_config, &mut control);
    if law.asks_for_prediction() {
        built = HeaderPrediction::shown_to(built);
    }
    (built, control)
}

impl Sender {
    /// A connection that may send `end` segments (`u64::MAX`: no end), of `wire_bytes` each for pacing. Others may share
    /// its settings; `law_seed` and the start decide what its law draws.
    pub fn new(
        config: &Arc<SenderConfig>,
        law: &LawSpec,
        law_seed: u32,
        now: Time,
        end: u64,
        wire_bytes: u32,
    ) -> Sender {
        // Flows of one template have the same seed and different start times.
        let draw = (u64::from(law_seed) ^ now.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let law_seed = (draw >> 32) as u32;
        let spec = law.clone();
        let (mut law, control) = begin(&spec, config, law_seed, now, 0);
        let makes_up = law.router().is_none();
        let watched = law.controller().is_some_and(|law| law.packets().is_some());
        let sampled = law.controller().is_some_and(|law| law.samples_rates());
        let rate = sampled.then(|| Box::new(RateSampler::new(watched)));
        let mut board = Scoreboard::default();
        board.log_losses(rate.is_some());
        board.log_deliveries(watched);
        Sender {
            board,
            control,
            timers: Timers { clock_ms: wheel::clock_ms(now), ..Timers::default() },
            supply: Supply::new(config, end, rate.is_some()),
            turn: 0,
            delivered: 0,
            usage: Usage::default(),
            dup_acks: 0,
            rtt: RttEstimator::new(config.rto, config.min_rto, config.max_rto),
            law,
            state: State::Open,
            forced: Forced::default(),
            send_cwr: false,
            law_seed,
            pacer: Pacer::new(config.pacing || rate.is_some(), makes_up, wire_bytes),
            report: Report::new(now, control.cwnd),
            config: Arc::clone(config),
            slow_start: SlowStart::with(config.slow_start, config.saved),
            recovery: Recovery { flight_later: -1, ..Recovery::default() },
            spec,
            rate,
            rare: Rare::of(config, now),
        }
    }

    /// Restarts as a new connection; the scoreboard keeps its memory.
    pub fn reset(
        &mut self,
        config: &Arc<SenderConfig>,
        law: &LawSpec,
        law_seed: u32,
        now: Time,
        end: u64,
        wire_bytes: u32,
    ) {
        let mut new = Sender::new(config, law, law_seed, now, end, wire_bytes);
        std::mem::swap(&mut self.board, &mut new.board);
        new.board.reset();
        new.board.log_losses(new.rate.is_some());
        new.board.log_deliveries(new.rate.as_ref().is_some_and(|rate| rate.watched));
        *self = new;
    }

    /// Prefetches the fields that the next ACK needs.
    #[inline(always)]
    pub fn prefetch(&self) {
        prefetch_bytes(self, offset_of!(Sender, slow_start));
    }

    /// Prefetches the heap data that the next ACK needs.
    #[inline(always)]
    pub fn prefetch_buffers(&self) {
        self.board.prefetch();
    }

    /// Prefetches the data that recovery needs. Returns whether it may be under way.
    #[inline(always)]
    pub fn prefetch_repair(&self) -> bool {
        self.board.prefetch_repair();
        self.board.dirty()
    }

    /// Window, ssthresh and pacing.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Sets window and pacing rate from outside, in the place of the law; a window of at least one segment.
    pub fn steer_to(&mut self, now: Time, cwnd: Window, pacing_bytes_per_s: u64) {
        self.report.observe(now, self.control.cwnd);
        self.control.cwnd = cwnd;
        let before = self.control.pacing_Bps;
        self.control.pacing_Bps = pacing_bytes_per_s;
        if pacing_bytes_per_s == 0 {
            self.pacer.next_send = self.pacer.next_send.min(now);
        } else if before != 0 && before != pacing_bytes_per_s {
            self.pacer.change_rate(self.config.mss_bytes, before, pacing_bytes_per_s);
        }
    }

    /// Payload of a full segment, in bytes.
    pub fn mss_bytes(&self) -> u32 {
        self.config.mss_bytes
    }

    /// Segments delivered so far, each once.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Congestion state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Everything below this is acknowledged.
    pub fn una(&self) -> u64 {
        self.board.una()
    }

    /// Segments above [`una`](Sender::una) that are acknowledged selectively; without SACK, duplicate ACKs.
    pub fn sacked(&self) -> u64 {
        self.board.sacked_out()
    }

    /// The next new segment.
    pub fn nxt(&self) -> u64 {
        self.board.nxt()
    }

    /// Segments in flight (RFC 6675 pipe).
    pub fn in_flight(&self) -> u64 {
        self.board.in_flight()
    }

    /// Whether segments have timestamps.
    pub fn has_timestamps(&self) -> bool {
        self.config.timestamps
    }

    /// When a transmission of an unacknowledged segment left, if that is still known: a retransmission as
    /// [`Segment::copy`] counts them, or (`None`) the original.
    pub fn transmission(&self, seq: u64, copy: Option<u8>) -> Option<Time> {
        self.board.transmission(seq, copy)
    }

    /// RTT estimates.
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Counters, with the integral of the window up to `now`.
    pub fn stats(&mut self, now: Time) -> &SenderStats {
        self.report.observe(now, self.control.cwnd);
        &self.report.stats
    }

    /// Counters, the statistics of the window as they were last brought up to date. A look at them moves none.
    pub fn counters(&self) -> &SenderStats {
        &self.report.stats
    }

    /// Segments sent again so far. A look at it moves no statistic.
    pub fn retransmits(&self) -> u64 {
        self.report.stats.retransmits
    }

    /// Whether data wait for a handshake.
    pub fn has_handshake(&self) -> bool {
        self.config.handshake
    }

    /// After two or more lost SYNs the initial window is one segment, as in Linux (RFC 5681 section 3.1).
    pub fn on_syns_lost(&mut self, now: Time) {
        self.report.observe(now, self.control.cwnd);
        self.control.cwnd = Window::ONE;
        Arc::make_mut(&mut self.config).initial_window_segments = 1;
    }

    /// The ends did not agree on marks: the sender expects none, and does not set CWR.
    pub fn on_ecn_refused(&mut self) {
        Arc::make_mut(&mut self.config).ecn = false;
        if let Some(rare) = &mut self.rare {
            rare.marks = None;
        }
    }

    /// The handshake took `rtt`: the first sample of the round-trip time. Congestion control begins here, as in Linux;
    /// the end host of a router protocol began with its SYN, which carries its header.
    pub fn on_established(&mut self, now: Time, rtt: Time) {
        self.report.observe(now, self.control.cwnd);
        let rtt_ns = rtt.as_ns().max(1);
        self.rtt.sample(rtt_ns, rtt_ns);
        if self.law.router().is_none() {
            (self.law, self.control) =
                begin(&self.spec, &self.config, self.law_seed, now, self.rtt.srtt_ns());
        }
        if self.rate.is_some() {
            let mut seen = Ack {
                now_ns: now.as_ns(),
                rtt_ns: self.rtt.latest_ns(),
                srtt_ns: self.rtt.srtt_ns(),
                min_rtt_ns: self.rtt.min_ns(),
                mss_B: self.config.mss_bytes,
                flags: ACK_OPEN,
                ..Ack::default()
            };
            self.steer(now, &mut seen, None);
        }
    }

    /// The cumulative ACK with which the next round begins; 1 before the first.
    fn next_round(&self) -> u64 {
        self.turn + u64::from(self.recovery.flight_later.min(0).unsigned_abs())
    }

    /// An ACK covers all that was outstanding a round trip ago, or when the last flight ended; `sampled` if it gives an RTT.
    /// Returns its flags.
    #[cold]
    fn on_turn(&mut self, cumulative: u64, sampled: bool) -> u32 {
        let (mut flags, left, later) = (0, self.board.nxt(), self.recovery.flight_later);
        let mut round = self.next_round();
        let mut flight = self.turn + u64::from(later.max(0).unsigned_abs());
        if cumulative >= flight {
            flight = left;
            flags |= ACK_FLIGHT;
        }
        if cumulative >= round {
            self.open_window();
            round = left + 1;
            flags |= ACK_ROUND_START;
            if sampled {
                self.rtt.end_round();
            }
        }
        self.turn = round.min(flight);
        self.recovery.flight_later = (flight as i64 - round as i64) as i32;
        flags
    }

    /// An ACK is here: the receiver's window is no longer that of its SYN-ACK. Returns whether it opens now.
    fn open_window(&mut self) -> bool {
        let room = if self.next_round() == 1 { self.config.room() } else { self.supply.room };
        std::mem::replace(&mut self.supply.room, room) != room
    }

    /// Restarts the statistics of the window at `now`; the counters stay.
    pub fn restart_window_stats(&mut self, now: Time) {
        self.report.restart_window(now, self.control.cwnd);
    }

    /// Whether [`Sender::take_events`] has any.
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.report.events.is_empty()
    }

    /// Events since the last call.
    pub fn take_events(&mut self) -> impl Iterator<Item = SenderEvent> + '_ {
        std::mem::take(&mut self.report.events).into_iter()
    }

    /// The law's own variables; see the registry for names and scales.
    pub fn probe(&self) -> [u64; PROBES] {
        let mut out = [0; PROBES];
        self.law.probe(&self.control, &mut out);
        out
    }

    /// Bytes of memory beyond the struct itself, as far as they grow with the window.
    pub fn memory_bytes(&self) -> usize {
        self.board.memory_bytes()
            + self.slow_start.memory_bytes()
            + self.rate.as_ref().map_or(0, |rate| rate.memory_bytes())
    }

    fn window(&self) -> u64 {
        self.control.cwnd.floor()
    }

    /// Whether the window is in use, so that it may grow.
    #[inline(always)]
    fn may_grow(&self) -> bool {
        self.usage.limited
            || (self.control.cwnd < self.control.ssthresh && self.window() < 2 * u64::from(self.usage.most))
    }

    fn may_send_new(&self) -> bool {
        self.board.nxt() < self.supply.end && self.board.outstanding() < self.supply.room
    }

    fn loss(&self, now: Time, kind: LossKind) -> Loss {
        Loss {
            now_ns: now.as_ns(),
            rtt_ns: self.rtt.latest_ns(),
            srtt_ns: self.rtt.srtt_ns(),
            min_rtt_ns: self.rtt.min_ns(),
            kind,
            inflight: self.board.in_flight() as u32,
            mss_B: self.config.mss_bytes,
            pad: 0,
        }
    }

    fn record(&mut self, at: Time, kind: EventKind, cwnd_before: Window) {
        self.report.events.push(SenderEvent {
            at,
            kind,
            cwnd_before,
            cwnd_after: self.control.cwnd,
            ssthresh: self.control.ssthresh,
            lost: self.board.lost_out(),
        });
    }

    /// The handshake, or the ACK that comes to [`Sender::on_ack`] next, brings back a header.
    pub fn on_header(&mut self, now: Time, header: Header) {
        if let Header::Accurate(feedback) = header {
            return self.hear(feedback);
        }
        let Some(law) = self.law.router() else { return };
        self.report.observe(now, self.control.cwnd);
        let before = self.control.pacing_Bps;
        law.on_header(header, &mut self.control);
        let after = self.control.pacing_Bps;
        if before != after && before != 0 && after != 0 {
            self.pacer.change_rate(self.config.mss_bytes, before, after);
        }
    }

    /// Congestion header of a segment that is sent now.
    pub fn header(&mut self) -> Header {
        let law = self.law.router();
        law.map_or(Header::None, |law| law.header(&self.control, self.pacer.wire_bytes))
    }

    /// An ACK arrives. It passes four phases, in the order of Linux:
    ///
    /// | phase | task | why in this place |
    /// |---|---|---|
    /// | `deliver` | the scoreboard takes the ACK | all else depends on what was delivered |
    /// | `describe` | RTT sample, timer, round, the law's [`Ack`] | its flags tell the state that the ACK found: an ACK that ends an episode covers more than went on in state Open, and is no measurement there |
    /// | `update_state` | episodes end and begin, losses are found | the law learns of losses, and of the flight behind them |
    /// | `update_window` | law and slow start set the window | in the state that the ACK leaves |
    #[inline]
    pub fn on_ack(&mut self, now: Time, ack: &Acknowledgement) {
        if ack.cumulative < self.board.una() || ack.cumulative > self.board.nxt() {
            return;
        }
        self.report.observe(now, self.control.cwnd);
        let acked = (ack.cumulative - self.board.una()) as u32;
        let outcome = self.deliver(now, ack, acked > 0);
        let mut seen = self.describe(now, ack, acked, &outcome);
        let starts = self.update_state(now, ack, &outcome, &mut seen);
        self.update_window(now, &outcome, &mut seen, starts);
    }

    /// The scoreboard takes an ACK, by its fast path if nothing is SACKed, lost or retransmitted.
    #[inline(always)]
    fn deliver(&mut self, now: Time, ack: &Acknowledgement, advanced: bool) -> Outcome {
        let plain = advanced && ack.flags.blocks() == 0 && self.dup_acks == 0 && !self.board.dirty();
        let outcome = if plain {
            self.board.acknowledge_plain(ack.cumulative, now)
        } else {
            self.digest(now, ack, advanced)
        };
        self.delivered = self.delivered.wrapping_add(u64::from(outcome.delivered));
        outcome
    }

    /// The ACK as laws see it, in the state in which it found the sender.
    #[inline(always)]
    fn describe(&mut self, now: Time, ack: &Acknowledgement, acked: u32, outcome: &Outcome) -> Ack {
        let rtt_ns = self.sample_rtt(now, outcome);
        let advanced = acked > 0;
        // The retransmission of the first segment may still arrive: Linux gives it the whole timeout.
        let older = || outcome.oldest_sent.is_some_and(|sent| sent < self.board.first_sent());
        if advanced || older() && self.config.loss_detection == LossDetection::Rack {
            self.restart_timer(now);
        }
        let turns = if ack.cumulative >= self.turn { self.on_turn(ack.cumulative, rtt_ns != 0) } else { 0 };
        let flag = |flag, is| if is { flag } else { 0 };
        Ack {
            now_ns: now.as_ns(),
            rtt_ns,
            srtt_ns: self.rtt.srtt_ns(),
            min_rtt_ns: self.rtt.min_ns(),
            delivered: self.delivered,
            acked,
            newly_delivered: outcome.delivered,
            mss_B: self.config.mss_bytes,
            ce: if ack.flags.has(AckFlags::ECE) { self.count_marks(outcome.delivered) } else { 0 },
            flags: flag(ACK_PACED, self.pacer.times_all)
                | turns
                | flag(ACK_DUP, !advanced)
                | flag(ACK_OPEN, matches!(self.state, State::Open | State::Disorder)),
            ..Ack::default()
        }
    }

    /// Episodes end and begin; adds to the ACK what they tell. Returns whether slow start looks at the ACK: it does if
    /// the ACK found the sender in slow start, since an undo comes later (as in Linux).
    #[inline(always)]
    fn update_state(&mut self, now: Time, ack: &Acknowledgement, outcome: &Outcome, seen: &mut Ack) -> bool {
        let mut starts = true;
        let marked = seen.ce > 0;
        if self.state != State::Open || self.board.dirty() || marked || self.timers.probe_end.is_some() {
            starts = self.control.cwnd < self.control.ssthresh;
            if self.is_watched() {
                self.show_delivered(outcome.is_plain(), seen);
            }
            self.on_dubious(now, ack, outcome, seen);
        }
        seen.inflight = self.board.in_flight() as u32;
        if self.may_grow() {
            seen.flags |= ACK_CWND_LIMITED;
        }
        starts
    }

    /// Law and slow start take the ACK; in state Cwr or Recovery PRR sets the window, else they may let it grow.
    #[inline(always)]
    fn update_window(&mut self, now: Time, outcome: &Outcome, seen: &mut Ack, starts: bool) {
        let (delivered, advanced) = (outcome.delivered, seen.acked > 0);
        let Some(mut law) = self.law.window() else {
            if self.is_watched() {
                self.show_delivered(outcome.is_plain(), seen);
            }
            let last = || (advanced && delivered > 0).then(|| self.board.una() - 1);
            let newest = outcome.newest.map(|(_, seq)| seq).or_else(last);
            return self.steer(now, seen, newest);
        };
        law.on_sample(seen, &mut self.control);
        if starts && self.control.cwnd < self.control.ssthresh {
            self.slow_start.on_sample(seen, &mut self.control);
        }
        if matches!(self.state, State::Cwr | State::Recovery) {
            let set = self.slow_start.on_recovery(seen, &mut self.control);
            if !set && self.config.reduction == Reduction::Prr && delivered > 0 {
                self.reduce(u64::from(delivered), advanced && seen.newly_lost == 0);
            }
        } else if seen.flags & ACK_CWND_LIMITED != 0
            && delivered > 0
            && (advanced || outcome.newest.is_some() && self.recovery.reordering.is_strong())
        {
            self.grow(delivered, seen);
        }
    }

    /// The RTT of the newest segment that an ACK delivered, in ns; 0: no valid sample.
    #[inline(always)]
    fn sample_rtt(&mut self, now: Time, outcome: &Outcome) -> u64 {
        let (rtt_ns, oldest_ns) = match (outcome.newest_sent, outcome.oldest_sent) {
            (Some(newest), Some(oldest)) => {
                let rtt_ns = (now - newest).as_ns().max(1);
                // Often it is the same segment.
                (rtt_ns, if oldest == newest { rtt_ns } else { (now - oldest).as_ns().max(rtt_ns) })
            }
            _ => match outcome.echoed {
                // Karn's rule leaves no segment: the timestamp, in whole milliseconds.
                Some(sent) => {
                    let rtt_ns = (timestamp_ms(now) - timestamp_ms(sent)).max(1) * 1_000_000;
                    (rtt_ns, rtt_ns)
                }
                None => return 0,
            },
        };
        self.rtt.sample(oldest_ns, rtt_ns);
        self.timers.backoff = 0;
        rtt_ns
    }

    /// `n` segments were delivered in state Open or Loss: slow start and the law enlarge the window.
    #[inline(always)]
    fn grow(&mut self, mut n: u32, seen: &Ack) {
        if self.control.cwnd < self.control.ssthresh {
            n = self.slow_start.on_ack(n, seen, &mut self.control);
        }
        if n == 0 {
            return;
        }
        if let Some(mut law) = self.law.window() {
            law.on_ack(n, seen, &mut self.control);
        }
    }

    /// The law that owns window and rate in every state takes an ACK; `newest` is the segment it
    /// delivered that was sent last.
    fn steer(&mut self, now: Time, seen: &mut Ack, newest: Option<u64>) {
        let (Some(law), Some(sampler)) = (self.law.controller(), &mut self.rate) else { return };
        let in_flight = self.board.in_flight();
        let total = self.delivered + self.recovery.copies_delivered;
        let min_rtt = Time::from_ns(seen.min_rtt_ns);
        let rate = sampler.on_ack(now, &Delivery { total, newest, in_flight, min_rtt });
        seen.hold_us = u32::try_from(self.pacer.next_send.since(now).as_ns() / 1000).unwrap_or(u32::MAX);
        seen.flags &= !ACK_CWND_LIMITED;
        if self.usage.limited {
            seen.flags |= ACK_CWND_LIMITED;
        }
        if self.state == State::Recovery {
            seen.flags |= ACK_RECOVERY;
        }
        if law.on_control(seen, &rate, &mut self.control) & CONTROL_APP_LIMITED != 0 {
            sampler.mark_app_limited(in_flight);
        }
        if self.reduces_gradually() && seen.newly_delivered > 0 {
            // The window that the controller asks for is the one at the end.
            self.control.ssthresh = self.control.cwnd;
            self.reduce(seen.newly_delivered.into(), seen.acked > 0 && seen.newly_lost == 0);
        }
    }

    /// Whether an episode of a controller is under way in which PRR sets the window: one that is told of packets, and does
    /// not pace. Its window alone would let all that is found lost leave again in one burst.
    fn reduces_gradually(&self) -> bool {
        self.is_watched()
            && matches!(self.state, State::Cwr | State::Recovery)
            && self.config.reduction == Reduction::Prr
            && self.control.pacing_Bps == 0
    }

    /// Whether the law is a controller that is told of packets.
    #[inline(always)]
    fn is_watched(&self) -> bool {
        self.rate.as_ref().is_some_and(|rate| rate.watched)
    }

    /// Shows each packet that an ACK delivered to a law that looks at packets, once: before losses, if there may be some.
    #[cold]
    fn show_delivered(&mut self, plain: bool, seen: &Ack) {
        let Some(sampler) = &mut self.rate else { return };
        let Some(law) = self.law.controller().and_then(|law| law.packets()) else { return };
        let una = self.board.una();
        let first = if plain { (una - u64::from(seen.acked)).max(sampler.shown) } else { una };
        sampler.shown = una;
        for seq in (first..una).chain(self.board.take_delivered_log()) {
            law.on_delivered(seen, &sampler.packet(seq), &mut self.control);
        }
    }

    /// Shows each segment that was found lost to a law that looks at them.
    #[cold]
    fn show_lost(&mut self, now: Time) {
        let (Some(law), Some(sampler)) = (self.law.controller(), &mut self.rate) else { return };
        for seq in self.board.take_lost_log() {
            let lost = sampler.on_lost(seq);
            law.on_lost(now.as_ns(), &lost, &self.control);
            if let Some(law) = law.packets() {
                law.on_packet_lost(now.as_ns(), &sampler.packet(seq), &mut self.control);
            }
        }
    }
}
