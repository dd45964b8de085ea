//! Flows of whole stacks in numbers.

use std::ops::Range;

use lfn_units::Time;

use super::{StackCounts, StackFlow, Stacks, SENDER};
use crate::breaker::Tally;
use crate::clock::ids::RouteId;
use crate::ends::context::Context;
use crate::summary::{some_s, Active, FlowSummary};
use crate::tables::FlowRow;

/// A time in ns, in seconds; `None` for 0.
fn told_s(time_ns: u64) -> Option<f64> {
    (time_ns > 0).then_some(time_ns as f64 / 1e9)
}

impl StackFlow {
    /// A full packet as the window counts it.
    fn segment_bytes(&self) -> u32 {
        self.progress.segment_bytes.clamp(1, self.config.packet_bytes.into()) as u32
    }

    fn segments(&self, bytes: f64) -> f64 {
        bytes / f64::from(self.segment_bytes())
    }
}

impl Stacks {
    /// Datagrams: sent, and delivered.
    pub fn packets(&self) -> (u64, u64) {
        let counts = || self.flows.iter().flat_map(|flow| &flow.ends).map(|end| end.counts);
        (counts().map(|one| one.sent).sum(), counts().map(|one| one.delivered).sum())
    }

    /// Datagrams of both ends of a connection.
    pub fn counts(&self, number: usize) -> Option<[StackCounts; 2]> {
        self.flows.get(number).map(|flow| flow.ends.each_ref().map(|end| end.counts))
    }

    /// Data of all these flows that were read.
    pub fn delivered(&self, streams: Range<usize>) -> u64 {
        self.flows[streams].iter().map(|flow| flow.progress.read_bytes).sum()
    }

    /// Whether the first of these flows began by `since` and any has not ended.
    pub fn are_under_way(&self, streams: Range<usize>, since: Time) -> bool {
        let flows = &self.flows[streams];
        flows[0].config.start <= since && flows.iter().any(|flow| flow.finished.is_none())
    }

    /// Whether all these flows have ended.
    pub fn have_ended(&self, streams: Range<usize>) -> bool {
        self.flows[streams].iter().all(|flow| flow.finished.is_some())
    }

    /// When a flow begins.
    pub fn start(&self, number: usize) -> Time {
        self.flows[number].config.start
    }

    /// Datagrams of the sending ends: arrived, and dropped or lost.
    pub fn tally(&self, streams: Range<usize>) -> Tally {
        let counts = || self.flows[streams.clone()].iter().map(|flow| flow.ends[SENDER].counts);
        Tally { arrived: counts().map(|one| one.delivered).sum(), gone: counts().map(|one| one.lost).sum() }
    }

    /// The number of a flow among all that are reported, the delay of its own links, and its routes at the beginning.
    pub fn path_of(&self, number: usize) -> (u32, Time, [RouteId; 2]) {
        let flow = &self.flows[number];
        let access = flow.ends[0].delay + flow.ends[1].delay;
        (flow.config.number, access, [flow.config.route, flow.config.ack_route])
    }

    /// One connection.
    pub fn summary(&self, number: usize, end: Time, cx: &Context) -> FlowSummary {
        let flow = &self.flows[number];
        let (config, progress) = (&flow.config, &flow.progress);
        let from = config.start.max(cx.record.warmup);
        let to = flow.finished.unwrap_or(end).min(end);
        let active = Active { from, to: if config.start < end { to } else { from } };
        let delivered_bytes = progress.read_bytes - flow.base_bytes;
        let mut window = flow.window;
        if flow.finished.is_none() {
            window.observe(to.max(window.observed), progress.window_bytes, progress.window_bytes);
        }
        let window_s = active.to.since(from).as_s();
        // A stack that does not tell its window told 0.
        let has_window = window_s > 0.0 && window.most > 0;
        let is_done = progress.read_bytes >= config.size_bytes;
        FlowSummary {
            id: flow.transfer,
            streams: 1,
            law: config.law.label(),
            transport: Some("stack"),
            direction: config.direction.name(),
            routes: cx.network.routes_of(config.number, config.route, end),
            segment_bytes: flow.segment_bytes(),
            wire_bytes: config.wire_bytes(),
            rtt_s: config.rtt.in_s(),
            start_s: config.start.in_s(),
            stop_s: some_s(config.stop),
            size_bytes: (config.size_bytes < u64::MAX).then_some(config.size_bytes),
            application_bps: None,
            active,
            outstanding_bytes: flow.outstanding_bytes,
            goodput_bps: active.per_s(delivered_bytes as f64 * 8.0),
            delivered_bytes,
            claimed_bytes: None,
            sent: flow.ends[SENDER].counts.sent,
            retransmits: progress.lost_packets,
            timeouts: progress.timeouts,
            loss_events: progress.reductions,
            undos: 0,
            mean_cwnd_segments: has_window.then(|| flow.segments(window.integral / window_s)),
            min_cwnd_segments: has_window.then(|| flow.segments(window.least as f64)),
            max_cwnd_segments: has_window.then(|| flow.segments(window.most as f64)),
            srtt_s: told_s(progress.srtt_ns),
            min_rtt_s: told_s(progress.min_rtt_ns),
            cov: None,
            ended_s: flow.finished.filter(|&at| at <= end).map(Time::in_s),
            completion_s: flow.finished.filter(|_| is_done).map(|at| at.since(config.start).in_s()),
            frames: None,
            ecn: None,
            marks: None,
            tripped_s: flow.tripped.map(Time::as_s),
        }
    }

    /// The row of these streams of transfer `number`; `None` while none is under way.
    pub fn row(&self, streams: Range<usize>, now: Time, number: u32) -> Option<FlowRow> {
        let flows = &self.flows[streams];
        let is_under_way =
            |flow: &&StackFlow| flow.config.start <= now && flow.finished.is_none_or(|at| at >= now);
        let first = flows.iter().find(is_under_way)?;
        let sum = |of: fn(&StackFlow) -> f64| flows.iter().filter(is_under_way).map(of).sum::<f64>();
        let read_bytes: u64 = flows.iter().map(|flow| flow.progress.read_bytes).sum();
        // Not told before the first loss, or at all.
        let has_threshold = |flow: &StackFlow| (1..u64::MAX).contains(&flow.progress.ssthresh_bytes);
        Some(FlowRow {
            t_s: now.in_s(),
            flow: number,
            cwnd_seg: sum(|flow| flow.segments(flow.progress.window_bytes as f64)),
            ssthresh_seg: match flows.iter().filter(is_under_way).all(has_threshold) {
                true => sum(|flow| flow.segments(flow.progress.ssthresh_bytes as f64)),
                false => f64::INFINITY,
            },
            srtt_s: first.progress.srtt_ns as f64 / 1e9,
            rtt_s: first.progress.rtt_ns as f64 / 1e9,
            inflight_seg: sum(|flow| flow.segments(flow.progress.in_flight_bytes as f64)) as u32,
            delivered_bytes: read_bytes,
            arrived_bytes: read_bytes,
            pacing_bps: sum(|flow| flow.progress.pacing_bytes_per_s as f64 * 8.0),
            retransmits: flows.iter().map(|flow| flow.progress.lost_packets).sum(),
            ..FlowRow::default() // what stacks do not tell
        })
    }
}
