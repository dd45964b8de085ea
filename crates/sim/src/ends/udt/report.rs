//! Flows over UDT in numbers.

use std::ops::Range;

use lfn_udt::{Connection, Rtt};
use lfn_units::Time;

use super::{UdtFlow, UdtFlows, RECEIVER, SENDER};
use crate::clock::ids::{FlowId, RouteId};
use crate::ends::context::Context;
use crate::summary::{size_bytes, some_s, Active, FlowSummary};

/// Data packets by their end.
#[derive(Default)]
pub(crate) struct Counts {
    pub sent: u64,
    pub received: u64,
    pub unique: u64,
    /// Duplicates, and packets that were refused or came to a closed connection.
    pub others: u64,
}

impl UdtFlows {
    /// Data packets of all flows.
    pub fn counts(&self) -> Counts {
        let mut total = Counts::default();
        for flow in &self.flows {
            let receiver = flow.ends[RECEIVER].connection.as_ref();
            let stats = receiver.map(Connection::receiver_stats).unwrap_or_default();
            total.sent += flow.sender().map_or(0, |sender| sender.sender_stats().sent);
            total.received += flow.arrived;
            total.unique += stats.received;
            total.others += stats.duplicates + stats.refused + flow.unheard;
        }
        total
    }

    /// Control packets: sent, and taken by ends.
    pub fn controls(&self) -> (u64, u64) {
        (self.controls_sent, self.controls_taken)
    }

    /// Packets of all these flows that are acknowledged, and so delivered.
    pub fn delivered(&self, streams: Range<usize>) -> u64 {
        self.flows[streams].iter().map(UdtFlow::acknowledged).sum()
    }

    /// Whether the first of these flows began by `since` and any has not ended.
    pub fn are_under_way(&self, streams: Range<usize>, since: Time) -> bool {
        let flows = &self.flows[streams];
        flows[0].config.start <= since && flows.iter().any(|flow| flow.finished.is_none())
    }

    /// One flow.
    pub fn summary(&self, id: FlowId, end: Time, cx: &Context) -> FlowSummary {
        let flow = &self.flows[id.index()];
        let config = &flow.config;
        let stats = flow.sender().map(Connection::sender_stats).unwrap_or_default();
        let rtt = |end: usize| flow.ends[end].connection.as_ref().map(Connection::rtt).unwrap_or_default();
        let from = config.start.max(cx.record.warmup);
        let to = flow.finished.unwrap_or(end).min(end);
        let active = Active { from, to: if config.start < end { to } else { from } };
        let delivered_bytes = (flow.acknowledged() - flow.base) * u64::from(config.payload_bytes());
        let mut window = flow.window;
        if let Some(sender) = flow.sender().filter(|_| flow.finished.is_none()) {
            window.observe(to, sender.window_packets(), sender.window_packets());
        }
        let window_s = active.to.since(from).as_s();
        let was_active = window_s > 0.0;
        let is_done = flow.acknowledged() == config.size_packets;
        FlowSummary {
            id: flow.transfer,
            streams: 1,
            law: config.control.label(),
            transport: Some("udt"),
            direction: config.direction.name(),
            routes: cx.network.routes_of(config.number, config.route, end),
            segment_bytes: config.payload_bytes(),
            wire_bytes: config.wire_bytes(),
            rtt_s: config.rtt.in_s(),
            start_s: config.start.in_s(),
            stop_s: some_s(config.stop),
            size_bytes: size_bytes(config.size_packets, config.payload_bytes()),
            application_bps: None,
            active,
            outstanding_bytes: flow.outstanding * u64::from(config.payload_bytes()),
            goodput_bps: active.per_s(delivered_bytes as f64 * 8.0),
            delivered_bytes,
            claimed_bytes: None,
            sent: stats.sent,
            retransmits: stats.retransmits,
            timeouts: stats.timeouts,
            loss_events: flow.loss_events,
            undos: 0,
            mean_cwnd_segments: was_active.then(|| window.integral / window_s),
            min_cwnd_segments: was_active.then_some(window.least as f64),
            max_cwnd_segments: was_active.then_some(window.most as f64),
            srtt_s: (rtt(SENDER) != Rtt::default()).then(|| rtt(SENDER).smoothed.in_s()),
            // The sender is told only smoothed values.
            min_rtt_s: Some(rtt(RECEIVER).least).filter(|&least| least > Time::ZERO).map(Time::in_s),
            cov: None,
            ended_s: flow.finished.filter(|&at| at <= end).map(Time::in_s),
            completion_s: flow.finished.filter(|_| is_done).map(|at| at.since(config.start).in_s()),
            frames: None,
            ecn: None,
            marks: None,
            tripped_s: flow.tripped.map(Time::as_s),
        }
    }

    /// The number of a flow among all that are reported, the delay of its own links, and its routes at the beginning: of
    /// data, and of ACKs.
    pub fn path_of(&self, id: FlowId) -> (u32, Time, [RouteId; 2]) {
        let flow = &self.flows[id.index()];
        let access = flow.forward_access + flow.return_access;
        (flow.config.number, access, [flow.config.route, flow.config.ack_route])
    }

    /// These streams of one transfer.
    pub fn streams(&self, streams: Range<usize>) -> &[UdtFlow] {
        &self.flows[streams]
    }

    /// Bytes that both ends hold for packets, and those of control packets under way.
    pub fn packet_bytes(&self) -> usize {
        self.flows.iter().map(UdtFlow::memory_bytes).sum::<usize>() + self.control.memory_bytes()
    }

    /// Bytes of the flows themselves.
    pub fn flow_bytes(&self) -> usize {
        self.flows.capacity() * size_of::<UdtFlow>()
    }
}
