//! Flows over TCP.

mod connect;
mod report;
mod reported;
mod watched;

use std::sync::Arc;

use lfn_header::Header;
use lfn_law::Window;
use lfn_path::Ecn;
use lfn_tcp::{Acknowledgement, Sender, SenderConfig};
use lfn_units::Time;

use super::context::Context;
use super::flow::{Flow, Origin, Role, CONTROL};
use super::handshake::Handshakes;
use crate::clock::events::{Kind, LineId};
use crate::clock::ids::{FlowId, LinkId, RouteId};
use crate::clock::packet::{AtQueue, Class, Extras, Hop, Packet, PacketView, Routed};
use crate::clock::scheduler::{Burst, Scheduler};
use crate::config::{Config, FlowConfig};
use crate::tables::EventRow;
use crate::traffic::Direction;
use report::Counts;
pub(crate) use reported::{AtWarmup, Reported};

/// Flows whose state the cache of a core holds; with more, the state of the next ones is prefetched.
const CACHED_FLOWS: usize = 500;

/// All TCP flows: first the flows reported one by one, then the flows of traffic sources.
pub(crate) struct TcpFlows {
    flows: Vec<Flow>,
    reported: Vec<Reported>,
    /// Flows over UDT, whose numbers precede those of the flows of traffic sources.
    udt_flows: usize,
    handshakes: Handshakes,
    /// Places of flows that are done, by when they became free.
    free: Vec<(Time, FlowId)>,
    /// Of flows that are done, by traffic source.
    retired: Vec<Counts>,
    acks_sent: u64,
    acks_taken: u64,
}

impl TcpFlows {
    /// No flows yet, but room for those that are reported, and counters of `sources` traffic sources.
    pub fn new(config: &Config, sources: usize) -> TcpFlows {
        let reported = config.flows.len();
        TcpFlows {
            flows: Vec::with_capacity(reported),
            reported: Vec::with_capacity(reported),
            udt_flows: config.udt.len(),
            handshakes: Handshakes::default(),
            free: Vec::new(),
            retired: vec![Counts::default(); sources],
            acks_sent: 0,
            acks_taken: 0,
        }
    }

    /// A flow that is reported one by one. All of them come before all others.
    /// With `by_event`, each arrival is an event.
    pub fn add_reported(
        &mut self,
        cx: &mut Context,
        sender: &Arc<SenderConfig>,
        by_event: bool,
        reported: Reported,
    ) {
        let config = &reported.config;
        if config.stop < cx.duration {
            cx.scheduler.schedule(config.stop, Kind::Stop, self.flows.len());
        }
        let mut flow = Flow::new(config, sender, &cx.network, Role::Reported, config.start);
        flow.path.by_event |= by_event;
        if config.application.is_some() {
            flow.task().writes_left = config.size_segments;
        }
        self.reported.push(reported);
        self.add(cx, flow);
    }

    /// A flow of a traffic source, without end.
    pub fn add_long(
        &mut self,
        cx: &mut Context,
        config: &FlowConfig,
        sender: &Arc<SenderConfig>,
        start: Time,
        origin: Origin,
    ) {
        let mut flow = Flow::new(config, sender, &cx.network, Role::Long, start);
        flow.task().origin = origin;
        self.add(cx, flow);
    }

    fn add(&mut self, cx: &mut Context, flow: Flow) {
        let id = FlowId::new(self.flows.len());
        cx.scheduler.schedule(flow.started, Kind::Begin, id.index());
        self.flows.push(flow);
        self.connect(cx, id);
    }

    /// A flow of a traffic source takes a place, if possible of a finished flow.
    pub fn begin(
        &mut self,
        cx: &mut Context,
        config: &FlowConfig,
        sender: &Arc<SenderConfig>,
        origin: Origin,
    ) -> FlowId {
        let now = cx.scheduler.now;
        let id = match self.free.pop() {
            Some((_, id)) => {
                self.flows[id.index()].reuse(config, sender, &cx.network, Role::Short, now);
                id
            }
            None => {
                self.flows.push(Flow::new(config, sender, &cx.network, Role::Short, now));
                FlowId::new(self.flows.len() - 1)
            }
        };
        let flow = &mut self.flows[id.index()];
        flow.task().origin = origin;
        if config.size_segments > 0 {
            flow.end_with(origin.bytes);
        }
        self.connect(cx, id);
        id
    }

    /// A flow takes these routes from now on.
    pub fn reroute(&mut self, cx: &mut Context, id: FlowId, route: RouteId, ack_route: RouteId) {
        (self.flows[id.index()].path.route, self.flows[id.index()].path.ack_route) = (route, ack_route);
        self.connect(cx, id);
    }

    /// A flow begins, with a handshake if it has one.
    pub fn on_begin(&mut self, cx: &mut Context, id: FlowId) {
        if let Some(reported) = self.reported.get_mut(id.index()) {
            reported.started = true;
        }
        let flow = &mut self.flows[id.index()];
        if flow.sender.has_handshake() {
            self.handshakes.open(&mut cx.scheduler, id, flow);
        } else {
            self.transmit(cx, id);
        }
        self.on_application(cx, id);
    }

    /// The slow application of a flow that is reported writes a segment.
    pub fn on_application(&mut self, cx: &mut Context, id: FlowId) {
        let now = cx.scheduler.now;
        let Some(reported) = self.reported.get_mut(id.index()) else { return };
        let Some(application) = reported.config.application else { return };
        let flow = &mut self.flows[id.index()];
        if flow.is_finished() || flow.writes_left() == 0 {
            return;
        }
        flow.task().writes_left -= 1;
        flow.sender.write_now(now, 1);
        if let Some(within) = application.deadline {
            let due = flow.due(&application, within, reported.written);
            reported.frames.due += u64::from(reported.counted.contains(&due));
            flow.expect_segment(reported.in_order);
        }
        reported.written += 1;
        let next = flow.started.after(application.writes_at(reported.written, flow.payload_bytes));
        if next < cx.duration {
            cx.scheduler.schedule(next, Kind::Write, id.index());
        }
        if !self.handshakes.is_opening(id) {
            self.transmit(cx, id);
        }
    }

    /// Whether a flow is reported one by one.
    pub fn is_reported(&self, id: FlowId) -> bool {
        id.index() < self.reported.len()
    }

    /// A flow sends no new data any more. It ends when all its data are acknowledged.
    pub fn on_stop(&mut self, now: Time, id: FlowId) {
        let flow = &mut self.flows[id.index()];
        flow.stop();
        if flow.is_done() {
            self.end(now, id);
        }
    }

    /// Prefetches the state that the next ACKs on `line` will need, if there are many flows. The address of a flow is
    /// known beforehand, the address of its buffers only when the flow is in the cache, and the addresses of repair only
    /// when those buffers are.
    #[inline(always)]
    pub fn prefetch(&self, scheduler: &Scheduler, line: LineId) {
        if self.flows.len() > CACHED_FLOWS {
            self.prefetch_behind(scheduler, line);
        }
    }

    /// Prefetches the state that the next packets need which are events of their own.
    #[inline(always)]
    pub fn prefetch_packets(&self, scheduler: &Scheduler) {
        if let Some((kind, index)) = scheduler.packet_ahead(6) {
            if let Some(flow) = self.flows.get(index) {
                if kind == Kind::AckAtSender {
                    flow.prefetch();
                } else {
                    lfn_tcp::prefetch(&flow.path);
                }
            }
        }
        if let Some((Kind::AckAtSender, index)) = scheduler.packet_ahead(3) {
            if let Some(flow) = self.flows.get(index) {
                flow.prefetch_buffers();
            }
        }
    }

    /// Prefetches the state that a sample reads of a reported flow.
    #[inline]
    pub fn prefetch_sample(&self, place: usize) {
        if let (Some(flow), Some(reported)) = (self.flows.get(place), self.reported.get(place)) {
            flow.sender.prefetch();
            lfn_tcp::prefetch(&flow.finished);
            lfn_tcp::prefetch(&reported.config.law);
            lfn_tcp::prefetch(&reported.config.payload_bytes);
            lfn_tcp::prefetch(&reported.started);
        }
    }

    #[inline(never)]
    fn prefetch_behind(&self, scheduler: &Scheduler, line: LineId) {
        if line.is_late() {
            return;
        }
        let packets = scheduler.prefetch(line);
        let flow = |places: usize| {
            let index = packets.get(places)?.1.flow().index();
            Some((self.flows.get(index)?, index))
        };
        if let Some((flow, _)) = flow(6) {
            flow.prefetch();
        }
        if let Some((flow, _)) = flow(4) {
            flow.prefetch_buffers();
        }
        if let Some((flow, index)) = flow(2) {
            if flow.sender.prefetch_repair() {
                if let Some(reported) = self.reported.get(index) {
                    lfn_tcp::prefetch(&reported.transfer);
                }
            }
        }
    }

    /// An ACK reaches its sender. Returns whether all that a flow of a traffic source had to send is
    /// acknowledged with it.
    #[inline]
    pub fn on_ack(&mut self, cx: &mut Context, id: FlowId, line: LineId) -> bool {
        let now = cx.scheduler.now;
        let mut ack = Acknowledgement::default();
        let flow = &mut self.flows[id.index()];
        let near = flow.sender.una();
        cx.scheduler.pop_ack(line, near, &mut ack, |header| flow.on_header(now, header));
        flow.under_way -= 1;
        self.acks_taken += 1;
        cx.record.acknowledged(now, id, ack.cumulative);
        flow.sender.on_ack(now, &ack);
        if flow.sender.has_events() {
            take_burst_events(flow, self.reported.get(id.index()), cx);
        }
        self.acks_sent += flow.transmit(cx, id);
        flow.is_done() && self.on_done(now, id)
    }

    /// Sends the segments that the sender may send now.
    pub fn transmit(&mut self, cx: &mut Context, id: FlowId) {
        self.acks_sent += self.flows[id.index()].transmit(cx, id);
    }

    /// The next packet of a flow that sends hop by hop.
    #[inline]
    pub fn next_packet(
        &mut self,
        scheduler: &mut Scheduler,
        id: FlowId,
        header: &mut Header,
    ) -> Option<Routed> {
        let now = scheduler.now;
        let flow = &mut self.flows[id.index()];
        let Some(segment) = flow.sender.next_segment(now) else {
            flow.set_timer(id, scheduler);
            return None;
        };
        flow.under_way += 1;
        if flow.path.protocol.is_some() {
            *header = flow.sender.header();
        }
        let hop = Hop::new(Class::Data, flow.path.route, 0);
        Some(Routed { hop, packet: Packet::of_segment(id, segment) })
    }

    /// Window and pacing rate of a flow, in the place of its law. It sends what it then may.
    pub fn steer(&mut self, cx: &mut Context, id: FlowId, cwnd: Window, pacing_bytes_per_s: u64) {
        let (now, flow) = (cx.scheduler.now, &mut self.flows[id.index()]);
        flow.sender.steer_to(now, cwnd, pacing_bytes_per_s);
        let started = self.reported.get(id.index()).is_none_or(|reported| reported.started);
        if started && !self.handshakes.is_opening(id) {
            self.transmit(cx, id);
        }
    }

    /// The sender of a flow.
    pub fn sender(&self, id: FlowId) -> &Sender {
        &self.flows[id.index()].sender
    }

    /// A sender's timer may be due.
    pub fn on_sender_timer(&mut self, cx: &mut Context, id: FlowId) {
        if self.flows.len() > CACHED_FLOWS {
            // Mostly another flow's timer.
            if let Some(flow) = cx.scheduler.timer_ahead(4).and_then(|index| self.flows.get(index)) {
                flow.prefetch_timer();
            }
        }
        let now = cx.scheduler.now;
        let flow = &mut self.flows[id.index()];
        if !flow.timer_fires(now) || flow.role == Role::Free {
            return;
        }
        if flow.sender.deadline() > now {
            // ACKs have moved it.
            return flow.set_timer(id, &mut cx.scheduler);
        }
        flow.sender.on_timer(now);
        if flow.sender.has_events() {
            take_burst_events(flow, self.reported.get(id.index()), cx);
        }
        self.transmit(cx, id);
    }

    /// A receiver's timer may be due.
    pub fn on_receiver_timer(&mut self, scheduler: &mut Scheduler, id: FlowId) {
        let now = scheduler.now;
        let flow = &mut self.flows[id.index()];
        if flow.timers.receiver_at != now {
            return;
        }
        flow.timers.receiver_at = Time::NEVER;
        self.acks_sent += flow.on_receiver_timer(now, id, scheduler);
    }

    /// The sender sends its SYN again.
    pub fn on_syn_timer(&mut self, scheduler: &mut Scheduler, id: FlowId) {
        self.handshakes.on_syn_timer(scheduler, id, &mut self.flows[id.index()]);
    }

    /// The receiver sends its SYN-ACK again.
    pub fn on_syn_ack_timer(&mut self, scheduler: &mut Scheduler, id: FlowId) {
        self.handshakes.on_syn_ack_timer(scheduler, id, &mut self.flows[id.index()]);
    }

    /// All that a flow had to send so far is acknowledged. Returns whether it was that just now, of a flow of
    /// a traffic source.
    fn on_done(&mut self, now: Time, id: FlowId) -> bool {
        let flow = &mut self.flows[id.index()];
        match flow.role {
            Role::Reported => {
                self.end(now, id);
                false
            }
            Role::Short => {
                let first = !flow.is_finished();
                flow.finish(now);
                self.retire_if_silent(now, id);
                first
            }
            Role::Long | Role::Free => false,
        }
    }

    /// A flow of a traffic source that is done and has nothing in the network gives its place back.
    fn retire_if_silent(&mut self, now: Time, id: FlowId) {
        let flow = &mut self.flows[id.index()];
        let done = flow.role == Role::Short && flow.is_finished() && !flow.origin().stays;
        if !done || !flow.is_silent() {
            return;
        }
        flow.role = Role::Free;
        flow.forget_timers();
        self.retired[flow.origin().source].add(flow, now);
        // A departure may be computed after what happened later elsewhere.
        let later = self.free.iter().rev().take_while(|place| place.0 > now).count();
        self.free.insert(self.free.len() - later, (now, id));
    }

    /// Another message goes over a connection.
    pub fn extend(&mut self, id: FlowId, origin: Origin) {
        let flow = &mut self.flows[id.index()];
        flow.extend(origin.bytes);
        flow.task().origin = origin;
    }

    /// The task of a flow of a traffic source, and its direction.
    pub fn origin(&self, id: FlowId) -> (Origin, Direction) {
        (self.flows[id.index()].origin(), self.flows[id.index()].path.direction)
    }

    /// The application waits for the message that is sent now.
    pub fn expect_message(&mut self, id: FlowId) {
        self.flows[id.index()].expect_message();
    }

    /// An interactive session is to write `writes` segments.
    pub fn expect_writes(&mut self, id: FlowId, writes: u64, mean_gap: Time) {
        let task = self.flows[id.index()].task();
        task.writes_left = writes;
        task.write_gap = mean_gap;
    }

    /// An interactive session writes one segment. Returns the mean gap to the next, if there is one.
    pub fn write(&mut self, id: FlowId) -> Option<Time> {
        let flow = &mut self.flows[id.index()];
        flow.sender.offer(1);
        let task = flow.task();
        task.writes_left -= 1;
        (task.writes_left > 0).then_some(task.write_gap)
    }

    /// The number of a flow among all connections.
    fn number_of(&self, id: FlowId) -> u32 {
        match self.reported.get(id.index()) {
            Some(reported) => reported.number,
            None => (id.index() + self.udt_flows) as u32,
        }
    }

    /// A packet as queues see it.
    #[inline]
    pub fn at_queue(&self, class: Class, packet: Packet) -> AtQueue {
        let flow = &self.flows[packet.flow().index()];
        match class {
            Class::Ack => {
                AtQueue { bytes: flow.ack_bytes, ecn: flow.ecn[CONTROL], last_leg: flow.path.return_access }
            }
            Class::Syn | Class::SynAck => super::handshake::at_queue(flow, class, packet),
            _ => AtQueue {
                bytes: flow.wire_bytes_of(packet.seq(flow.sender.una())),
                ecn: flow.ecn[usize::from(packet.is_retransmission())],
                last_leg: flow.path.forward_access,
            },
        }
    }

    /// A packet as recordings see it.
    pub fn view(&self, class: Class, packet: Packet) -> PacketView {
        let flow = &self.flows[packet.flow().index()];
        let number = self.number_of(packet.flow());
        if let Class::Syn | Class::SynAck = class {
            return super::handshake::view(flow, number, class, packet);
        }
        let seq = packet.seq(flow.sender.una());
        let data = class == Class::Data;
        let bytes = if data { flow.wire_bytes_of(seq) } else { flow.ack_bytes };
        PacketView {
            bytes,
            class,
            seq,
            payload_bytes: if data { flow.payload_bytes_of(bytes) } else { 0 },
            number,
            reverse: (flow.path.direction as usize == 1) == data,
            l4s: flow.ecn[usize::from(packet.is_retransmission())] == Ecn::Ect1 && data,
        }
    }

    /// A packet is in the network no more.
    pub fn forget(&mut self, now: Time, packet: Packet) {
        self.flows[packet.flow().index()].under_way -= 1;
        self.retire_if_silent(now, packet.flow());
    }

    /// A link made a second one of a data packet.
    pub fn on_duplicated(&mut self, packet: Packet) {
        self.flows[packet.flow().index()].under_way += 1;
    }

    /// A packet comes to the end of its route at `at`, now or later.
    pub fn take(
        &mut self,
        scheduler: &mut Scheduler,
        at: Time,
        class: Class,
        packet: Packet,
        extras: &Extras,
    ) {
        let flow = &self.flows[packet.flow().index()];
        match class {
            Class::Syn | Class::SynAck => self.handshakes.take(scheduler, at, flow, class, packet, extras),
            Class::Ack => {
                scheduler.push(flow.path.lines.to_sender, at + flow.path.return_access, packet, Some(extras))
            }
            _ => {
                let at = at + flow.path.forward_access;
                if flow.path.by_event {
                    return scheduler.push(flow.path.lines.to_receiver, at, packet, Some(extras));
                }
                self.receive(scheduler, at, packet, extras);
                self.flows[packet.flow().index()].tell_message(at, packet.flow(), scheduler);
            }
        }
    }

    /// The receiver of a flow takes a data packet, now or later.
    fn receive(&mut self, scheduler: &mut Scheduler, at: Time, packet: Packet, extras: &Extras) {
        let id = packet.flow();
        let flow = &mut self.flows[id.index()];
        flow.under_way -= 1;
        let (segment, ce) = (packet.segment(flow.sender.una()), packet.ce());
        self.acks_sent += if flow.path.by_event && flow.is_stale(segment) {
            flow.refuse(at, id, scheduler)
        } else if flow.path.is_special {
            match flow.path.misbehaves {
                Some(how) => flow.receive_misbehaving(at, segment, ce, how, id, scheduler),
                None if flow.path.protocol.is_none() => flow.receive_counting(at, segment, ce, id, scheduler),
                None => flow.receive_headed(at, segment, ce, extras.header, id, scheduler),
            }
        } else {
            flow.receive(at, segment, ce, id, scheduler)
        };
    }

    /// A data packet reaches the receiver. Returns whether a message that an application waits for is
    /// complete with it.
    pub fn on_data(&mut self, scheduler: &mut Scheduler, packet: Packet, extras: &Extras) -> bool {
        self.receive(scheduler, scheduler.now, packet, extras);
        let complete = self.flows[packet.flow().index()].takes_message();
        if complete && self.is_reported(packet.flow()) {
            self.on_in_order(scheduler.now, packet.flow());
            return false;
        }
        complete
    }

    /// Segments with a deadline are in order at the receiver.
    fn on_in_order(&mut self, now: Time, id: FlowId) {
        let (flow, reported) = (&mut self.flows[id.index()], &mut self.reported[id.index()]);
        let Some(application) = reported.config.application else { return };
        let Some(within) = application.deadline else { return };
        let in_order = flow.receiver.next_expected().min(reported.written);
        for number in reported.in_order..in_order {
            let due = flow.due(&application, within, number);
            reported.frames.in_time += u64::from(due >= now && reported.counted.contains(&due));
        }
        reported.in_order = in_order;
        flow.expect_segment(in_order);
    }

    /// A SYN, or the ACK that ends the handshake, reaches the receiver.
    pub fn on_syn(&mut self, scheduler: &mut Scheduler, packet: Packet, header: Header) {
        let id = packet.flow();
        self.handshakes.on_syn(scheduler, packet, header, &mut self.flows[id.index()]);
        self.retire_if_silent(scheduler.now, id);
    }

    /// A SYN-ACK reaches the sender.
    pub fn on_syn_ack(&mut self, scheduler: &mut Scheduler, packet: Packet, header: Header) {
        let id = packet.flow();
        if self.handshakes.on_syn_ack(scheduler, packet, header, &mut self.flows[id.index()]) {
            // Behind the ACK, which goes hop by hop.
            scheduler.hand_over_burst(Burst::Tcp(id));
        }
        self.retire_if_silent(scheduler.now, id);
    }
}

impl Flow {
    /// Sends the segments that the sender may send now. Returns the ACKs that the receiver sent.
    #[inline(always)]
    fn transmit(&mut self, cx: &mut Context, id: FlowId) -> u64 {
        match self.legs.direct {
            Some(at) => return self.transmit_direct(cx, id, at),
            None if self.sender.waits_for_burst() => self.set_timer(id, &mut cx.scheduler),
            None => cx.scheduler.hand_over_burst(Burst::Tcp(id)),
        }
        0
    }

    /// Sends over one link, `at`, from which nothing but its queue keeps data: their arrivals are known.
    #[inline(never)]
    fn transmit_direct(&mut self, cx: &mut Context, id: FlowId, at: LinkId) -> u64 {
        let (now, mut acks_sent) = (cx.scheduler.now, 0);
        let Some(mut link) = cx.network.link_mut(at).closed_form() else { return 0 };
        while let Some(segment) = self.sender.next_segment(now) {
            let bytes = self.wire_bytes_of(segment.seq);
            let ecn = self.ecn[usize::from(segment.retransmission)];
            if let Some((departs, marked)) = link.pass(now, bytes, ecn) {
                let arrives = departs + self.legs.forward_delay;
                acks_sent += self.receive(arrives, segment, marked, id, &mut cx.scheduler);
                self.tell_message(arrives, id, &mut cx.scheduler);
            }
        }
        self.set_timer(id, &mut cx.scheduler);
        acks_sent
    }
}

/// The sender's events become rows of its transfer's table, if it is reported.
#[cold]
fn take_burst_events(flow: &mut Flow, reported: Option<&Reported>, cx: &mut Context) {
    for event in flow.sender.take_events() {
        let Some(reported) = reported else { continue };
        cx.record.tables.events.push(EventRow {
            t_s: event.at.in_s(),
            flow: reported.transfer,
            kind: event.kind,
            cwnd_before_seg: event.cwnd_before.segments(),
            cwnd_after_seg: event.cwnd_after.segments(),
            ssthresh_seg: event.ssthresh.segments(),
            lost: event.lost as u32,
        });
    }
}
