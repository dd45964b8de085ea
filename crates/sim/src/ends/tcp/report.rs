//! Flows over TCP in numbers.

use std::ops::Range;

use lfn_units::Time;

use super::{Reported, TcpFlows};
use crate::clock::ids::{FlowId, RouteId};
use crate::ends::context::Context;
use crate::ends::flow::{Flow, Role, Task};
use crate::engine::Seen;
use crate::misbehaving::Misbehaviour;
use crate::summary::{size_bytes, some_s, Active, FlowSummary, Marks};

/// Sums over flows.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub sent: u64,
    pub received: u64,
    pub unique: u64,
    pub duplicates: u64,
    pub retransmits: u64,
    pub timeouts: u64,
    /// By direction.
    pub delivered_bytes: [u64; 2],
}

impl Counts {
    pub(super) fn add(&mut self, flow: &mut Flow, now: Time) {
        let stats = flow.sender.stats(now.max(flow.started));
        self.sent += stats.sent;
        self.retransmits += stats.retransmits;
        self.timeouts += stats.timeouts;
        self.received += flow.receiver.received();
        self.unique += flow.receiver.unique();
        self.duplicates += flow.receiver.duplicates();
        let delivered_bytes = flow.sender.una() * u64::from(flow.payload_bytes);
        self.delivered_bytes[flow.path.direction as usize] += delivered_bytes;
    }
}

impl TcpFlows {
    /// Packets of all flows, those of handshakes beside: sent, received, and of those the new ones and the others.
    pub fn counts(&mut self, now: Time) -> Counts {
        let mut total = Counts::default();
        for retired in &self.retired {
            total.sent += retired.sent;
            total.received += retired.received;
            total.unique += retired.unique;
            total.duplicates += retired.duplicates;
        }
        for flow in self.flows.iter_mut().filter(|flow| flow.role != Role::Free) {
            total.add(flow, now);
        }
        total
    }

    /// Packets of handshakes: sent, and received.
    pub fn handshake_packets(&self) -> (u64, u64) {
        (self.handshakes.sent, self.handshakes.received)
    }

    /// ACKs: sent, and taken by senders.
    pub fn acks(&self) -> (u64, u64) {
        (self.acks_sent, self.acks_taken)
    }

    /// The flows of a traffic source.
    pub fn counts_of_source(&mut self, source: usize, end: Time) -> Counts {
        let mut counts = self.retired[source];
        for flow in &mut self.flows[self.reported.len()..] {
            if flow.role != Role::Free && flow.origin().source == source {
                counts.add(flow, end);
            }
        }
        counts
    }

    /// Segments of all these flows that are delivered.
    pub fn delivered(&self, streams: Range<usize>) -> u64 {
        self.flows[streams].iter().map(Flow::delivered).sum()
    }

    /// Estimates and counters of a flow's sender.
    pub fn seen(&self, id: FlowId) -> Seen {
        let sender = &self.flows[id.index()].sender;
        let stats = sender.counters();
        let rtt = sender.rtt();
        Seen {
            rtt_ns: rtt.latest_ns(),
            srtt_ns: rtt.srtt_ns(),
            min_rtt_ns: rtt.min_ns(),
            delivered: sender.delivered(),
            sent: stats.sent,
            retransmits: stats.retransmits,
            timeouts: stats.timeouts,
            loss_events: stats.loss_events,
            marks: sender.marks_counted().unwrap_or(0),
            in_flight: sender.in_flight(),
            mss_bytes: sender.mss_bytes(),
        }
    }

    /// Whether the first of these flows began by `since` and any has not ended.
    pub fn are_under_way(&self, streams: Range<usize>, since: Time) -> bool {
        let flows = &self.flows[streams];
        flows[0].started <= since && !flows.iter().all(Flow::is_finished)
    }

    /// One flow that is reported.
    pub fn summary(&mut self, id: FlowId, end: Time, cx: &Context) -> FlowSummary {
        let Reported { config, number, transfer, started, tripped, at_warmup, at_end, frames, .. } =
            &self.reported[id.index()];
        let flow = &mut self.flows[id.index()];
        let payload_bytes = u64::from(flow.payload_bytes);
        let rtt = flow.sender.rtt();
        let measured = |ns: u64| (ns > 0).then(|| Time::from_ns(ns).in_s());
        let (srtt_s, min_rtt_s) = (measured(rtt.srtt_ns()), measured(rtt.min_ns()));
        let from = flow.started.max(cx.record.warmup);
        // A claim ends a flow early: what arrives later was sent before.
        let ended = if flow.is_finished() { flow.new_at().unwrap_or(flow.finished) } else { Time::NEVER };
        let active = Active { from, to: if *started { ended.min(end) } else { from } };
        let completed = flow.is_finished() && flow.delivered() >= config.size_segments;
        let delivered_bytes = (flow.delivered() - at_warmup.delivered) * payload_bytes;
        let claims = config.misbehaves == Some(Misbehaviour::Optimistic);
        let claimed = flow.sender.una() - at_warmup.acknowledged;
        let stats = *flow.sender.stats(end.max(flow.started));
        let window = at_end.as_ref().unwrap_or(&stats);
        let window_s = if *started { flow.finished.min(end).since(from).as_s() } else { 0.0 };
        let keeps = config.law.keeps_window() && window_s > 0.0;
        FlowSummary {
            id: *transfer,
            streams: 1,
            law: config.law.label(),
            transport: None,
            direction: config.direction.name(),
            routes: cx.network.routes_of(*number, config.route, end),
            segment_bytes: config.payload_bytes,
            wire_bytes: config.wire_bytes,
            rtt_s: config.rtt.in_s(),
            start_s: config.start.in_s(),
            stop_s: some_s(config.stop),
            size_bytes: size_bytes(config.size_segments, config.payload_bytes),
            application_bps: config.application.map(|application| application.rate.as_bps()),
            active,
            outstanding_bytes: at_warmup.outstanding * payload_bytes,
            goodput_bps: active.per_s(delivered_bytes as f64 * 8.0),
            delivered_bytes,
            claimed_bytes: claims.then_some(claimed * payload_bytes),
            sent: stats.sent,
            retransmits: stats.retransmits,
            timeouts: stats.timeouts,
            loss_events: stats.loss_events,
            undos: stats.undos,
            mean_cwnd_segments: keeps.then(|| window.cwnd_integral / window_s),
            min_cwnd_segments: keeps.then(|| window.min_cwnd.segments()),
            max_cwnd_segments: keeps.then(|| window.max_cwnd.segments()),
            srtt_s,
            min_rtt_s,
            cov: None,
            ended_s: flow.is_finished().then(|| ended.in_s()),
            completion_s: completed.then(|| ended.since(flow.started).in_s()),
            frames: config.application.and_then(|application| application.deadline).map(|_| *frames),
            ecn: flow.feedback_of_marks(config),
            marks: flow
                .counting()
                .zip(flow.sender.marks_counted())
                .map(|(counting, told)| Marks { arrived: counting.arrived(end), told }),
            tripped_s: tripped.map(Time::as_s),
        }
    }

    /// How the receiver of a flow that is reported breaks the rules.
    pub fn misbehaviour(&self, index: usize) -> Option<Misbehaviour> {
        self.reported[index].config.misbehaves
    }

    /// The number of a flow among all that are reported, the delay of its own links, and its routes at the beginning: of
    /// data, and of ACKs.
    pub fn path_of(&self, id: FlowId) -> (u32, Time, [RouteId; 2]) {
        let path = &self.flows[id.index()].path;
        let Reported { config, number, .. } = &self.reported[id.index()];
        (*number, path.forward_access + path.return_access, [config.route, config.ack_route])
    }

    /// These streams of one transfer, and the report of the first, which stands for all.
    pub fn streams(&mut self, streams: Range<usize>) -> (&Reported, &mut [Flow]) {
        (&self.reported[streams.start], &mut self.flows[streams])
    }

    /// Bytes that senders and receivers hold for packets.
    pub fn packet_bytes(&self) -> usize {
        let of_flow = |flow: &Flow| flow.sender.memory_bytes() + flow.receiver.memory_bytes();
        self.flows.iter().map(of_flow).sum()
    }

    /// Bytes of the flows themselves.
    pub fn flow_bytes(&self) -> usize {
        let tasks = self.flows.len() - self.reported.len();
        self.flows.capacity() * size_of::<Flow>()
            + tasks * size_of::<Task>()
            + self.reported.capacity() * size_of::<Reported>()
            + self.handshakes.memory_bytes()
    }
}
