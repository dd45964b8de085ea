//! Sender: window, recovery, timers. It has the states of Linux, the default: Open, Disorder, CWR, Recovery,
//! Loss, with one reduction per window of data.

mod buffer;
mod output;
mod recovery;
mod report;
mod undo;

use std::mem::offset_of;

use lfn_header::Header;
use lfn_law::{
    Ack, Config as LawConfig, Control, LawSpec, Loss, LossKind, PlacedLaw, SlowStart, ACK_CWND_LIMITED,
    ACK_DUP, ACK_LOSS, ACK_OPEN, ACK_RECOVERY, ACK_ROUND_START, CONTROL_APP_LIMITED, ONE, PROBES,
};
use lfn_units::Time;

use crate::prefetch::prefetch_bytes;
use crate::prr::Prr;
use crate::rate::RateSampler;
use crate::receiver::Acknowledgement;
use crate::reordering::Reordering;
use crate::rtt::RttEstimator;
use crate::scoreboard::Scoreboard;
use crate::{Reduction, SendBuffer, SenderConfig};
use buffer::SocketBuffer;
pub use report::{EventKind, Segment, SenderEvent, SenderStats, State};
use undo::{Frto, Undo};

/// Q32.32 segments × ps in segments × s.
const Q32_PS: f64 = 1e-12 / ONE as f64;
/// Margin beyond 2 srtt before Linux sends a tail loss probe.
const TLP_SLACK_NS: u64 = 2_000_000;
/// Allowance for the receiver's delayed ACK when a single segment is outstanding (RFC 8985 §7.2).
const TLP_DELAYED_ACK_NS: u64 = 200_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Timer {
    Rto,
    TailLossProbe,
}

/// Sender of one connection. Fields are in order of use: those of an ordinary ACK come before `slow_start`.
#[repr(C)]
pub struct Sender {
    board: Scoreboard,
    control: Control,
    timer: Time,
    /// RACK's reordering timer.
    reorder_timer: Time,
    /// Pacing: no segment before this.
    next_send: Time,
    /// One past the last segment that the application has written.
    end: u64,
    /// Most segments outstanding, from the send buffer.
    room: u64,
    round_end: u64,
    delivered: u64,
    usage_end: u64,
    usage_max: u64,
    dup_acks: u64,
    /// Next segment to send when the last recovery began; 0 before the first.
    repair_end: u64,
    observed: Time,
    rtt: RttEstimator,
    law: PlacedLaw,
    state: State,
    timer_kind: Timer,
    /// The law is called at every ACK: it has on_sample or on_control.
    law_samples: bool,
    /// Every segment sent is timed: for pacing that the law does not ask for, or for `rate`.
    times_sending: bool,
    cwnd_limited: bool,
    /// One retransmission, or one new segment, may be sent beyond the window.
    force_retransmit: bool,
    force_new: bool,
    /// A segment was ready and had to wait for `next_send`.
    held_by_pacing: bool,
    /// There is a `socket_buffer`.
    buffered: bool,
    send_cwr: bool,
    backoff: u32,
    probe_end: Option<u64>,
    stats: SenderStats,
    events: Vec<SenderEvent>,
    config: SenderConfig,
    slow_start: SlowStart,
    /// Block pacing: no new block before this, and what this one may still send.
    block_end: Time,
    block_left: u32,
    wire_bits: u64,
    high_seq: u64,
    prr: Prr,
    undo: Undo,
    reordering: Reordering,
    frto: Frto,
    /// Timeouts since the cumulative ACK moved.
    timeouts_in_row: u32,
    /// Spurious retransmissions: DSACKs received.
    dsacks: u64,
    /// Delivery-rate sampler of a law with [`lfn_law::Law::on_control`].
    rate: Option<Box<RateSampler>>,
    /// Send buffer of an untuned host.
    socket_buffer: Option<Box<SocketBuffer>>,
}

/// Time to send an amount at a rate in the same unit per second.
fn gap(size: u128, rate: u128) -> Time {
    Time(u64::try_from(size * 1_000_000_000_000 / rate.max(1)).unwrap_or(u64::MAX))
}

impl Sender {
    /// A connection that may send `end` segments (`u64::MAX`: no end), of `wire_bytes` each for pacing.
    pub fn new(config: &SenderConfig, law: &LawSpec, now: Time, end: u64, wire_bytes: u32) -> Sender {
        let mut control = Control::new(config.initial_window_segments);
        if let Some(segments) = config.initial_ssthresh_segments {
            control.ssthresh = u64::from(segments) * ONE;
        }
        let law_config = LawConfig {
            now_ns: now.as_ns(),
            mss_bytes: config.mss_bytes,
            // Flows of one template have the same `law_seed` and different start times.
            seed: ((u64::from(config.law_seed) ^ now.0).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32,
            ..LawConfig::default()
        };
        let law = law.place(&law_config, &mut control);
        let rate = law.has_control().then(Box::<RateSampler>::default);
        let socket_buffer = match config.send_buffer {
            SendBuffer::Segments(_) => None,
            SendBuffer::Autotuned { max_bytes } => {
                let buffer = SocketBuffer::new(max_bytes, config.mss_bytes, end, rate.is_some());
                Some(Box::new(buffer))
            }
        };
        let mut board = Scoreboard::default();
        board.log_losses(rate.is_some());
        Sender {
            board,
            control,
            state: State::Open,
            law_samples: law.has_sample() || rate.is_some(),
            times_sending: config.pacing || rate.is_some(),
            cwnd_limited: false,
            timer_kind: Timer::Rto,
            timer: Time::NEVER,
            reorder_timer: Time::NEVER,
            next_send: Time::ZERO,
            block_end: Time::ZERO,
            block_left: 0,
            held_by_pacing: false,
            buffered: socket_buffer.is_some(),
            end: if socket_buffer.is_some() { 0 } else { end },
            room: config.room().min(config.syn_ack_window()),
            round_end: 0,
            delivered: 0,
            usage_end: 0,
            usage_max: 0,
            observed: now,
            rtt: RttEstimator::new(config.rto, config.min_rto, config.max_rto),
            law,
            slow_start: SlowStart::new(config.slow_start),
            high_seq: 0,
            undo: Undo::default(),
            reordering: Reordering::default(),
            frto: Frto::Off,
            timeouts_in_row: 0,
            dsacks: 0,
            force_retransmit: false,
            force_new: false,
            send_cwr: false,
            prr: Prr::default(),
            dup_acks: 0,
            repair_end: 0,
            backoff: 0,
            probe_end: None,
            rate,
            socket_buffer,
            config: *config,
            wire_bits: u64::from(wire_bytes) * 8,
            stats: SenderStats { min_cwnd: control.cwnd, max_cwnd: control.cwnd, ..SenderStats::default() },
            events: Vec::new(),
        }
    }

    /// Restarts as a new connection; the scoreboard keeps its memory.
    pub fn reset(&mut self, config: &SenderConfig, law: &LawSpec, now: Time, end: u64, wire_bytes: u32) {
        let mut board = std::mem::take(&mut self.board);
        board.reset();
        let new = Sender::new(config, law, now, end, wire_bytes);
        board.log_losses(new.rate.is_some());
        *self = Sender { board, ..new };
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

    /// Prefetches the data that recovery needs.
    #[inline(always)]
    pub fn prefetch_repair(&self) {
        self.board.prefetch_repair();
    }

    /// Window, ssthresh and pacing.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Congestion state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Everything below this is acknowledged.
    pub fn una(&self) -> u64 {
        self.board.una()
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

    /// Time of an unacknowledged segment's retransmission, if it has exactly one.
    pub fn copy_sent(&self, seq: u64) -> Option<Time> {
        self.board.copy_sent(seq)
    }

    /// Time of an unacknowledged segment's first transmission; for a retransmitted segment, an upper bound.
    pub fn original_sent(&self, seq: u64) -> Option<Time> {
        self.board.original_sent(seq)
    }

    /// RTT estimates.
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Counters, with the integral of the window up to `now`.
    pub fn stats(&mut self, now: Time) -> &SenderStats {
        self.observe(now);
        &self.stats
    }

    /// Whether data wait for a handshake.
    pub fn has_handshake(&self) -> bool {
        self.config.handshake
    }

    /// After two or more lost SYNs the initial window is one segment, as in Linux (RFC 5681 section 3.1).
    pub fn on_syns_lost(&mut self, now: Time) {
        self.observe(now);
        self.control.cwnd = ONE;
    }

    /// The handshake took `rtt`: the first sample of the round-trip time.
    pub fn on_established(&mut self, now: Time, rtt: Time) {
        self.rtt.sample(rtt.as_ns(), rtt.as_ns());
        self.law.on_established(self.rtt.srtt_ns(), &mut self.control);
        if self.rate.is_some() {
            let mut seen = Ack {
                now_ns: now.as_ns(),
                rtt_ns: self.rtt.latest_ns(),
                srtt_ns: self.rtt.srtt_ns(),
                min_rtt_ns: self.rtt.min_ns(),
                mss_bytes: self.config.mss_bytes,
                flags: ACK_OPEN,
                ..Ack::default()
            };
            self.steer(now, &mut seen, None);
        }
    }

    /// An ACK covers all that was outstanding a round trip ago; `sampled` if it gives an RTT.
    #[cold]
    fn begin_round(&mut self, sampled: bool) {
        self.open_window();
        self.round_end = self.board.nxt();
        if sampled {
            self.rtt.end_round();
        }
    }

    /// An ACK is here: the receiver's window is no longer that of its SYN-ACK.
    fn open_window(&mut self) {
        if self.round_end == 0 {
            self.room = self.config.room();
        }
    }

    /// Restarts the statistics of the window at `now`; the counters stay.
    pub fn restart_window_stats(&mut self, now: Time) {
        self.observe(now);
        self.stats.cwnd_integral = 0.0;
        self.stats.min_cwnd = self.control.cwnd;
        self.stats.max_cwnd = self.control.cwnd;
    }

    /// Whether [`Sender::take_events`] has any.
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Events since the last call.
    pub fn take_events(&mut self) -> Vec<SenderEvent> {
        std::mem::take(&mut self.events)
    }

    /// The law's own variables; see the registry for names and scales.
    pub fn probe(&self) -> [u64; PROBES] {
        let mut out = [0; PROBES];
        self.law.probe(&self.control, &mut out);
        out
    }

    /// Bytes of memory beyond the struct itself, as far as they grow with the window.
    pub fn memory_bytes(&self) -> usize {
        self.board.memory_bytes() + self.rate.as_ref().map_or(0, |rate| rate.memory_bytes())
    }

    /// When [`Sender::on_timer`] wants to be called; [`Time::NEVER`] if not at all.
    #[inline]
    pub fn deadline(&self) -> Time {
        let mut deadline = self.timer.min(self.reorder_timer);
        if self.control.next_tick_ns != 0 {
            deadline = deadline.min(Time::from_ns(self.control.next_tick_ns));
        }
        if self.held_by_pacing {
            deadline = deadline.min(self.next_send);
        }
        deadline
    }

    fn window(&self) -> u64 {
        self.control.cwnd >> 32
    }

    fn may_send_new(&self) -> bool {
        self.board.nxt() < self.end && self.board.outstanding() < self.room
    }

    #[inline]
    fn observe(&mut self, now: Time) {
        let cwnd = self.control.cwnd;
        // Through i64, whose conversion to f64 is one instruction; no window exceeds it.
        self.stats.cwnd_integral += (cwnd as i64 as f64) * ((now - self.observed).0 as i64 as f64) * Q32_PS;
        self.observed = now;
        self.stats.min_cwnd = self.stats.min_cwnd.min(cwnd);
        self.stats.max_cwnd = self.stats.max_cwnd.max(cwnd);
    }

    #[inline]
    fn restart_timer(&mut self, now: Time) {
        if self.board.outstanding() == 0 {
            self.timer = Time::NEVER;
            return;
        }
        let rto_ns = self.rtt.backed_off_rto_ns(self.backoff);
        self.timer_kind = Timer::Rto;
        let mut delay_ns = rto_ns;
        let probe = self.config.tail_loss_probe
            && self.config.sack
            && self.probe_end.is_none()
            && matches!(self.state, State::Open | State::Cwr)
            && self.board.sacked_out() == 0
            && self.rtt.srtt_ns() != 0;
        if probe {
            let slack = if self.board.outstanding() == 1 { TLP_DELAYED_ACK_NS } else { TLP_SLACK_NS };
            let probe_ns = 2 * self.rtt.srtt_ns() + slack;
            // The probe takes the place of the first timeout (§7.2), however long the path.
            self.timer_kind = Timer::TailLossProbe;
            delay_ns = probe_ns.min(rto_ns);
        }
        self.timer = now + Time::from_ns(delay_ns);
    }

    fn loss(&self, now: Time, kind: LossKind) -> Loss {
        Loss {
            now_ns: now.as_ns(),
            rtt_ns: self.rtt.latest_ns(),
            srtt_ns: self.rtt.srtt_ns(),
            min_rtt_ns: self.rtt.min_ns(),
            kind,
            inflight: self.board.in_flight() as u32,
            mss_bytes: self.config.mss_bytes,
            pad: 0,
        }
    }

    fn record(&mut self, at: Time, kind: EventKind, cwnd_before: u64) {
        self.events.push(SenderEvent {
            at,
            kind,
            cwnd_before,
            cwnd_after: self.control.cwnd,
            ssthresh: self.control.ssthresh,
            lost: self.board.lost_out(),
        });
    }

    /// The handshake, or the ACK that comes to [`Sender::on_ack`] next, brings back a header.
    pub fn on_header(&mut self, header: Header) {
        let before = self.control.pacing_bytes_per_s;
        self.law.on_header(header, &mut self.control);
        let after = self.control.pacing_bytes_per_s;
        if before != after && before != 0 && after != 0 {
            // The next segment leaves one gap of the new rate after the last one.
            let gap = |bytes_per_s| gap(u128::from(self.config.mss_bytes), u128::from(bytes_per_s));
            self.next_send = self.next_send.since(gap(before)).after(gap(after));
        }
    }

    /// Congestion header of a segment that is sent now.
    pub fn header(&mut self) -> Header {
        self.law.header(&self.control, (self.wire_bits / 8) as u32)
    }

    /// An ACK arrives.
    #[inline]
    pub fn on_ack(&mut self, now: Time, ack: &Acknowledgement) {
        let una = self.board.una();
        if ack.cumulative < una || ack.cumulative > self.board.nxt() {
            return;
        }
        self.observe(now);
        let advanced = ack.cumulative > una;
        let plain = advanced && ack.blocks == 0 && self.dup_acks == 0 && !self.board.dirty();
        let delivered = if plain {
            self.board.on_plain_cumulative(ack.cumulative, now)
        } else {
            self.digest(now, ack, advanced)
        };
        self.delivered += u64::from(delivered.count);
        let mut seen = Ack {
            now_ns: now.as_ns(),
            delivered: self.delivered,
            acked: (ack.cumulative - una) as u32,
            newly_delivered: delivered.count,
            mss_bytes: self.config.mss_bytes,
            ce: u32::from(ack.ece),
            ..Ack::default()
        };
        if let (Some(newest), Some(oldest)) = (delivered.newest_sent, delivered.oldest_sent) {
            seen.rtt_ns = (now - newest).as_ns().max(1);
            self.rtt.sample((now - oldest).as_ns(), seen.rtt_ns);
            self.backoff = 0;
        } else if let Some(rtt_ns) = self.rtt_by_timestamp(now, ack) {
            seen.rtt_ns = rtt_ns;
            self.rtt.sample(rtt_ns, rtt_ns);
            self.backoff = 0;
        }
        seen.srtt_ns = self.rtt.srtt_ns();
        seen.min_rtt_ns = self.rtt.min_ns();
        if advanced {
            self.restart_timer(now);
            if ack.cumulative > self.round_end {
                self.begin_round(seen.rtt_ns != 0);
                seen.flags |= ACK_ROUND_START;
            }
        } else {
            seen.flags |= ACK_DUP;
        }
        // The state in which the ACK found the sender: the one that ends an episode covers much more
        // than went on in state Open, and must not count as a measurement there (as in Linux).
        if matches!(self.state, State::Open | State::Disorder) {
            seen.flags |= ACK_OPEN;
        }
        if self.state != State::Open || self.board.dirty() || ack.ece || self.probe_end.is_some() {
            self.on_dubious(now, ack, advanced, &mut seen);
        }
        seen.inflight = self.board.in_flight() as u32;
        let may_grow = self.cwnd_limited
            || (self.control.cwnd < self.control.ssthresh && self.window() < 2 * self.usage_max);
        if may_grow {
            seen.flags |= ACK_CWND_LIMITED;
        }
        if self.law_samples {
            if self.rate.is_some() {
                let newest = delivered.newest.map(|(_, seq)| seq);
                let last = || (advanced && delivered.count > 0).then(|| ack.cumulative - 1);
                return self.steer(now, &mut seen, newest.or_else(last));
            }
            self.law.on_sample(&seen, &mut self.control);
        }
        if self.control.cwnd < self.control.ssthresh {
            self.slow_start.on_sample(&seen, &mut self.control);
        }
        if matches!(self.state, State::Cwr | State::Recovery) {
            if self.config.reduction == Reduction::Prr && delivered.count > 0 {
                self.reduce(u64::from(delivered.count), advanced && seen.newly_lost == 0);
            }
        } else if may_grow
            && delivered.count > 0
            && (advanced || self.config.sack && self.reordering.is_strong())
        {
            let mut n = delivered.count;
            if self.control.cwnd < self.control.ssthresh {
                n = self.slow_start.on_ack(n, &seen, &mut self.control);
            }
            if n > 0 {
                self.law.on_ack(n, &seen, &mut self.control);
            }
        }
    }

    /// The law that owns window and rate in every state takes an ACK; `newest` is the segment it
    /// delivered that was sent last.
    fn steer(&mut self, now: Time, seen: &mut Ack, newest: Option<u64>) {
        let Some(sampler) = &mut self.rate else { return };
        let in_flight = self.board.in_flight();
        let min_rtt = Time::from_ns(seen.min_rtt_ns);
        let rate = sampler.on_ack(self.delivered, newest, in_flight, min_rtt, now);
        seen.hold_us = u32::try_from(self.next_send.since(now).as_ns() / 1000).unwrap_or(u32::MAX);
        seen.flags &= !ACK_CWND_LIMITED;
        if self.cwnd_limited {
            seen.flags |= ACK_CWND_LIMITED;
        }
        seen.flags |= match self.state {
            State::Recovery => ACK_RECOVERY,
            State::Loss => ACK_LOSS,
            _ => 0,
        };
        if self.law.on_control(seen, &rate, &mut self.control) & CONTROL_APP_LIMITED != 0 {
            sampler.mark_app_limited(in_flight);
        }
    }

    /// Shows each segment that was found lost to a law that looks at them.
    #[cold]
    fn show_lost(&mut self, now: Time) {
        let Some(sampler) = &mut self.rate else { return };
        for seq in self.board.take_lost_log() {
            let lost = sampler.on_lost(seq);
            self.law.on_lost(now.as_ns(), &lost, &self.control);
        }
    }

    /// Timer expiry at [`Sender::deadline`].
    pub fn on_timer(&mut self, now: Time) {
        self.observe(now);
        self.held_by_pacing &= now < self.next_send;
        if self.control.next_tick_ns != 0 && Time::from_ns(self.control.next_tick_ns) <= now {
            self.control.next_tick_ns = 0;
            self.law.on_tick(now.as_ns(), &mut self.control);
        }
        if self.reorder_timer <= now {
            self.detect_losses(now);
            self.board.take_newly_lost();
            self.show_lost(now);
            if self.board.lost_out() > 0 && !matches!(self.state, State::Recovery | State::Loss) {
                self.enter_recovery(now, State::Recovery, LossKind::Fast);
                if self.config.reduction == Reduction::Prr && self.rate.is_none() {
                    self.reduce(0, false);
                }
            }
        }
        if self.timer <= now {
            match self.timer_kind {
                Timer::Rto => self.on_timeout(now),
                Timer::TailLossProbe => self.on_probe_timeout(now),
            }
        }
    }
}
