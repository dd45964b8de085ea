//! Flows over UDT. Both ends are connections of `lfn_udt`, as on real sockets, with the handshake's two round
//! trips; only time is virtual, and the payload of data packets is zeros, which are not stored.
//!
//! Data packets travel as numbers, as those of TCP do. Control packets travel as bytes; queues and paths treat
//! them as ACKs.

mod report;

use std::net::SocketAddr;
use std::ops::Range;

use lfn_header::Header;
use lfn_path::Ecn;
use lfn_tcp::EventKind;
use lfn_udt::{
    refusal, Answer, Body, Boundary, Config, Connection, ControlSpec, Event, Handshake, Kind as UdtKind,
    Listener, Seq, State, Transmit, IP_UDP_BYTES, MIN_MSS_BYTES,
};
use lfn_units::Time;

use super::context::Context;
use super::window::Window;
use crate::clock::events::{Kind, LineId};
use crate::clock::ids::{FlowId, LinkId, RouteId};
use crate::clock::packet::{AtQueue, Class, Extras, Hop, Packet, PacketView, Routed};
use crate::clock::scheduler::{timer_fires, Burst, Departing, Scheduler};
use crate::config::UdtConfig;
use crate::error::SimError;
use crate::tables::{EventRow, EventTable};

/// The end that sends data, and asked for the connection; the other.
const SENDER: usize = 0;
const RECEIVER: usize = 1;
/// Socket number of each end.
const SOCKETS: [u32; 2] = [1, 2];
/// Payload of every data packet.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
/// More packets than any run sends.
const WITHOUT_END: u64 = 1 << 60;
fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, end as u8], 9000))
}

/// Bytes of control packets, by slots that are used again.
#[derive(Default)]
struct ControlPackets {
    packets: Vec<Vec<u8>>,
    free: Vec<usize>,
}

impl ControlPackets {
    fn keep(&mut self, bytes: Vec<u8>) -> usize {
        let Some(slot) = self.free.pop() else {
            self.packets.push(bytes);
            return self.packets.len() - 1;
        };
        self.packets[slot] = bytes;
        slot
    }

    fn take(&mut self, slot: usize) -> Vec<u8> {
        self.free.push(slot);
        std::mem::take(&mut self.packets[slot])
    }

    fn bytes(&self, slot: usize) -> &[u8] {
        &self.packets[slot]
    }

    fn memory_bytes(&self) -> usize {
        self.packets.iter().map(|bytes| bytes.capacity() + size_of::<Vec<u8>>()).sum()
    }
}

/// All flows over UDT.
#[derive(Default)]
pub(crate) struct UdtFlows {
    flows: Vec<UdtFlow>,
    /// Control packets that are under way.
    control: ControlPackets,
    controls_sent: u64,
    controls_taken: u64,
}

/// One end.
struct End {
    /// `None` before the handshake comes to it.
    connection: Option<Connection>,
    /// The earliest pending event of its timers.
    timer_at: Time,
    /// The earliest pending event after that.
    later_timer_at: Time,
}

impl End {
    fn deadline(&self) -> Time {
        self.connection.as_ref().map_or(Time::NEVER, Connection::deadline)
    }

    /// Ensures that an event is pending at or before the deadline of end `number`.
    fn set_timer(&mut self, number: usize, scheduler: &mut Scheduler) {
        let deadline = self.deadline();
        let pending = [&mut self.timer_at, &mut self.later_timer_at];
        scheduler.set_timer(pending, deadline, Kind::UdtTimer, number);
    }

    /// An event of its timers happens: whether it is one that is still known.
    fn timer_fires(&mut self, now: Time) -> bool {
        timer_fires([&mut self.timer_at, &mut self.later_timer_at], now)
    }
}

/// A flow over UDT, and all between its ends that is its own.
pub(crate) struct UdtFlow {
    pub config: UdtConfig,
    /// Number of the transfer that it is a stream of.
    transfer: u32,
    ends: [End; 2],
    listener: Listener,
    route: RouteId,
    ack_route: RouteId,
    /// Its own links at the receiver's end, and at the sender's.
    forward_access: Time,
    return_access: Time,
    /// From the last link to the receiver, for data and for control packets; to the sender.
    data_line: LineId,
    control_line: LineId,
    return_line: LineId,
    /// Acknowledged packets at the end of the warm-up, and those sent and not acknowledged then.
    base: u64,
    outstanding: u64,
    pub finished: Option<Time>,
    /// When a circuit breaker ended it.
    tripped: Option<Time>,
    window: Window,
    loss_events: u64,
    /// Data packets that came to the receiver, and those of them that met no open connection.
    arrived: u64,
    unheard: u64,
}

impl UdtFlow {
    pub fn sender(&self) -> Option<&Connection> {
        self.ends[SENDER].connection.as_ref()
    }

    /// The latest RTT that the receiver measured.
    pub fn latest_rtt(&self) -> Option<Time> {
        self.ends[RECEIVER].connection.as_ref().map(|receiver| receiver.rtt().latest)
    }

    /// Bytes that both ends hold beside the flow's own size.
    fn memory_bytes(&self) -> usize {
        self.ends.iter().filter_map(|end| end.connection.as_ref()).map(Connection::memory_bytes).sum()
    }

    /// Packets that the receiver has in order, as far as the sender knows.
    pub fn acknowledged(&self) -> u64 {
        self.sender().map_or(0, Connection::acknowledged)
    }

    /// Packets that the receiver has, in order or not, each once.
    pub fn received(&self) -> u64 {
        let receiver = self.ends[RECEIVER].connection.as_ref();
        receiver.map_or(0, |receiver| receiver.receiver_stats().received).max(self.acknowledged())
    }

    fn udt_config(&self) -> Config {
        let config = &self.config;
        let compat = config.control.native().is_some_and(|native| native.compat);
        Config {
            mss_bytes: config.mss_bytes,
            window_packets: config.window_packets,
            compat,
            ..Config::default()
        }
    }

    /// The sender asks for a connection.
    fn connect(&mut self, now: Time) {
        let control = self.config.control.build(self.config.mss_bytes, now, self.config.seed);
        let (config, peer, initial) = (self.udt_config(), address(RECEIVER), self.config.seed as u32);
        let mut sender = Connection::connect(config, now, peer, SOCKETS[SENDER], Seq::new(initial), control);
        sender.offer(self.config.size_packets.min(WITHOUT_END), true, Time::NEVER);
        self.window = Window { observed: now, ..Window::at(sender.window_packets()) };
        self.ends[SENDER].connection = Some(sender);
    }

    /// A handshake comes to the listening socket. Returns its answer, if that is not the connection's.
    fn on_handshake(&mut self, now: Time, packet: &lfn_udt::Packet<'_>) -> Option<Handshake> {
        let Body::Handshake(handshake) = packet.body else { return None };
        let from = address(SENDER);
        match self.listener.on_handshake(now, from, &handshake)? {
            Answer::Reply(answer) => return Some(answer),
            Answer::Full => return Some(refusal(&handshake)),
            Answer::Existing(_) => {
                if let Some(receiver) = &mut self.ends[RECEIVER].connection {
                    receiver.on_packet(now, packet);
                }
            }
            Answer::Accept => {
                let (config, socket) = (self.udt_config(), SOCKETS[RECEIVER]);
                // It sends no data, so nothing asks this control.
                let control = ControlSpec::default().build(config.mss_bytes, now, 0);
                self.listener.accepted(from, &handshake, socket);
                let receiver = Connection::accept(config, now, from, socket, &handshake, control);
                self.ends[RECEIVER].connection = Some(receiver);
            }
        }
        None
    }

    /// The number of a data packet, all of it.
    fn index_of(&self, packet: Packet) -> u64 {
        packet.seq(self.acknowledged())
    }

    /// A data packet comes to the receiver.
    fn on_data(&mut self, now: Time, index: u64) {
        self.arrived += 1;
        let open = |receiver: &&mut Connection| matches!(receiver.state(), State::Connected);
        let Some(receiver) = self.ends[RECEIVER].connection.as_mut().filter(open) else {
            self.unheard += 1;
            return;
        };
        let seq = receiver.numbering().wire(index);
        let (boundary, payload) = (Boundary::new(false, false), &ZEROS[..receiver.payload_bytes()]);
        let body = Body::Data { seq, boundary, in_order: true, message: 1, payload };
        let packet = lfn_udt::Packet { timestamp_us: 0, destination: SOCKETS[RECEIVER], body };
        if let Event::Data { .. } = receiver.on_packet(now, &packet) {
            // The application takes what comes at once.
            receiver.on_read(receiver.in_order());
        }
    }

    /// A control packet comes to the sender. Returns the losses found, if the control gave way.
    fn on_control(&mut self, now: Time, packet: &lfn_udt::Packet<'_>) -> Option<Lost> {
        let sender = self.ends[SENDER].connection.as_mut()?;
        let before = (sender.period(), sender.window_packets(), sender.sender_stats());
        sender.on_packet(now, packet);
        let (period, window, stats) = (sender.period(), sender.window_packets(), sender.sender_stats());
        let is_done = sender.released() == sender.offered() && sender.offered() > 0;
        if is_done {
            sender.close(now);
        }
        self.observe(now, before.1, window);
        if is_done {
            self.finished.get_or_insert(now);
        }
        if stats.naks == before.2.naks || (period <= before.0 && window >= before.1) {
            return None;
        }
        self.loss_events += 1;
        Some(Lost {
            kind: EventKind::FastRetransmit,
            before: before.1,
            after: window,
            packets: stats.lost - before.2.lost,
        })
    }

    /// An end's timers are due. Returns the losses found.
    fn on_timer(&mut self, end: usize, now: Time) -> Option<Lost> {
        let connection = self.ends[end].connection.as_mut()?;
        let (window, timeouts) = (connection.window_packets(), connection.sender_stats().timeouts);
        let waiting = connection.repairing();
        connection.on_deadline(now);
        if end == RECEIVER || connection.sender_stats().timeouts == timeouts {
            return None;
        }
        let (after, packets) = (connection.window_packets(), connection.repairing() - waiting);
        self.observe(now, window, after);
        Some(Lost { kind: EventKind::Timeout, before: window, after, packets })
    }

    /// The window was `before` until now, and is `after`. It counts until the flow ends.
    fn observe(&mut self, now: Time, before: u64, after: u64) {
        if self.finished.is_none() {
            self.window.observe(now, before, after);
        }
    }

    /// The flow ends, unless it has before.
    fn finish(&mut self, now: Time) {
        if let Some(window) = self.sender().map(Connection::window_packets) {
            self.observe(now, window, window);
        }
        self.finished.get_or_insert(now);
    }

    /// Statistics begin.
    fn restart(&mut self, now: Time) {
        self.base = self.acknowledged();
        self.outstanding = self.sender().map_or(0, Connection::in_flight);
        if let Some(sender) = self.sender() {
            self.window = Window { observed: now, ..Window::at(sender.window_packets()) };
        }
    }

    /// Delay line and delay from the last link of a packet's route to the end that it is for.
    fn last_leg(&self, class: Class, packet: Packet) -> (LineId, Time) {
        match class {
            Class::UdtControl if packet.is_to_sender() => (self.return_line, self.return_access),
            Class::UdtControl => (self.control_line, self.forward_access),
            _ => (self.data_line, self.forward_access),
        }
    }
}

/// Packets found lost, and the window around that.
struct Lost {
    kind: EventKind,
    before: u64,
    after: u64,
    packets: u64,
}

impl Lost {
    fn record(&self, now: Time, transfer: u32, table: &mut EventTable) {
        table.push(EventRow {
            t_s: now.in_s(),
            flow: transfer,
            kind: self.kind,
            cwnd_before_seg: self.before as f64,
            cwnd_after_seg: self.after as f64,
            ssthresh_seg: f64::INFINITY,
            lost: self.packets as u32,
        });
    }
}

/// The bytes of a control packet, and whether it belongs to a handshake.
fn encoded(message: &lfn_udt::Packet) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    (bytes, matches!(message.body, Body::Handshake(_)))
}

impl UdtFlows {
    /// No flows yet, but room for this many.
    pub fn new(flows: usize) -> UdtFlows {
        UdtFlows { flows: Vec::with_capacity(flows), ..UdtFlows::default() }
    }

    /// A flow, which is a stream of this transfer.
    pub fn add(&mut self, cx: &mut Context, config: &UdtConfig, transfer: u32) -> Result<(), SimError> {
        let largest = ZEROS.len() as u32;
        if !(MIN_MSS_BYTES..=largest).contains(&config.mss_bytes) {
            let found = format!("an MSS of {} bytes; from {MIN_MSS_BYTES} to {largest}", config.mss_bytes);
            return Err(SimError::Unknown(format!("flow {}: {found}", config.number)));
        }
        let id = FlowId::new(self.flows.len());
        let (route, ack_route) = (config.route, config.ack_route);
        let access = cx.network.access(config.rtt, [route, ack_route]);
        let forward_access = Time(access.0 / 2);
        let end = || End { connection: None, timer_at: Time::NEVER, later_timer_at: Time::NEVER };
        cx.scheduler.schedule(config.start, Kind::UdtTimer, 2 * id.index() + SENDER);
        if config.stop < cx.duration {
            cx.scheduler.schedule(config.stop, Kind::UdtStop, id.index());
        }
        self.flows.push(UdtFlow {
            transfer,
            ends: [end(), end()],
            listener: Listener::new([config.seed, 0], UdtKind::Stream, 1),
            route,
            ack_route,
            forward_access,
            return_access: access - forward_access,
            data_line: LineId::NONE,
            control_line: LineId::NONE,
            return_line: LineId::NONE,
            base: 0,
            outstanding: 0,
            finished: None,
            tripped: None,
            window: Window::at(0),
            loss_events: 0,
            arrived: 0,
            unheard: 0,
            config: config.clone(),
        });
        self.reroute(cx, id, route, ack_route);
        Ok(())
    }

    /// A flow takes these routes from now on.
    pub fn reroute(&mut self, cx: &mut Context, id: FlowId, route: RouteId, ack_route: RouteId) {
        let [data_end, ack_end] = [route, ack_route].map(|route| cx.network.route(route).last());
        let flow = &mut self.flows[id.index()];
        (flow.route, flow.ack_route) = (route, ack_route);
        let mut line = |from: LinkId, class: Class, route: RouteId, delay: Time| {
            let hop = Hop::new(class, route, 0);
            cx.scheduler.shared_line(Kind::AtReceiver, from, hop, delay)
        };
        flow.data_line = line(data_end, Class::UdtData, route, flow.forward_access);
        flow.control_line = line(data_end, Class::UdtControl, route, flow.forward_access);
        flow.return_line = line(ack_end, Class::UdtControl, ack_route, flow.return_access);
    }

    /// A flow begins, or a timer of one of its ends is due.
    pub fn on_timer(&mut self, cx: &mut Context, number: usize) {
        let (now, id, end) = (cx.scheduler.now, FlowId::new(number / 2), number % 2);
        let flow = &mut self.flows[id.index()];
        if end == SENDER && flow.ends[SENDER].connection.is_none() {
            flow.connect(now);
        } else if !flow.ends[end].timer_fires(now) {
            return;
        }
        let of = &mut flow.ends[end];
        if of.deadline() > now {
            // Packets have moved it.
            return of.set_timer(number, &mut cx.scheduler);
        }
        if let Some(lost) = flow.on_timer(end, now) {
            lost.record(now, flow.transfer, &mut cx.record.tables.events);
        }
        self.transmit(&mut cx.scheduler, id, end);
    }

    /// A flow sends nothing new any more.
    pub fn on_stop(&mut self, scheduler: &mut Scheduler, id: FlowId) {
        let (now, flow) = (scheduler.now, &mut self.flows[id.index()]);
        let mut ends = true;
        if let Some(sender) = &mut flow.ends[SENDER].connection {
            if flow.tripped.is_some() {
                sender.abort();
            } else {
                sender.withdraw();
                sender.close(now);
                // Else it ends when what it sent is acknowledged.
                ends = sender.in_flight() == 0;
            }
        }
        if ends {
            flow.finish(now);
        }
        self.transmit(scheduler, id, SENDER);
    }

    /// A circuit breaker ends a flow that has not ended.
    pub fn on_tripped(&mut self, scheduler: &mut Scheduler, id: FlowId) {
        let (now, flow) = (scheduler.now, &mut self.flows[id.index()]);
        if flow.finished.is_none() {
            flow.tripped = Some(now);
            // As an event of its own: each may send a packet that says so.
            scheduler.schedule(now, Kind::UdtStop, id.index());
        }
    }

    /// Whether all these flows have ended.
    pub fn have_ended(&self, streams: Range<usize>) -> bool {
        self.flows[streams].iter().all(|flow| flow.finished.is_some())
    }

    /// When a flow begins.
    pub fn start(&self, id: FlowId) -> Time {
        self.flows[id.index()].config.start
    }

    /// Data packets that reached the receivers of these flows.
    pub fn arrived(&self, streams: Range<usize>) -> u64 {
        self.flows[streams].iter().map(|flow| flow.arrived).sum()
    }

    /// Sends what an end may send now.
    fn transmit(&self, scheduler: &mut Scheduler, id: FlowId, end: usize) {
        scheduler.hand_over_burst(Burst::Udt(2 * id.index() + end));
    }

    /// The next packet of an end.
    pub fn next_packet(&mut self, scheduler: &mut Scheduler, number: usize) -> Option<Routed> {
        let (id, end) = (FlowId::new(number / 2), number % 2);
        let flow = &mut self.flows[id.index()];
        let transmit = flow.ends[end].connection.as_mut().and_then(|it| it.poll_transmit(scheduler.now));
        match transmit {
            None => {
                flow.ends[end].set_timer(number, scheduler);
                None
            }
            Some(Transmit::Data(lfn_udt::Outgoing { index: number, retransmission, .. }, _)) => {
                let hop = Hop::new(Class::UdtData, flow.route, 0);
                let packet = Packet::of_udt_data(id, number, retransmission);
                Some(Routed { hop, packet })
            }
            Some(Transmit::Control(packet)) => {
                let encoded = encoded(&packet);
                Some(self.control_packet(id, end, encoded))
            }
        }
    }

    /// A control packet that an end sends.
    fn control_packet(&mut self, id: FlowId, end: usize, (bytes, opens): (Vec<u8>, bool)) -> Routed {
        self.controls_sent += 1;
        let flow = &self.flows[id.index()];
        let route = if end == SENDER { flow.route } else { flow.ack_route };
        let hop = Hop::new(Class::UdtControl, route, 0);
        let packet = Packet::of_udt_control(id, self.control.keep(bytes), end == RECEIVER, opens);
        Routed { hop, packet }
    }

    /// A packet comes to the end of its route at `at`, now or later; the delay of the flow's own links follows.
    pub fn take(&self, scheduler: &mut Scheduler, at: Time, class: Class, packet: Packet, extras: &Extras) {
        let (line, access) = self.flows[packet.flow().index()].last_leg(class, packet);
        scheduler.push(line, at + access, packet, Some(extras));
    }

    /// A control packet is in the network no more.
    pub fn forget_control(&mut self, packet: Packet) {
        drop(self.control.take(packet.slot()));
    }

    /// A data packet reaches the receiver.
    pub fn on_data(&mut self, scheduler: &mut Scheduler, packet: Packet) {
        let id = packet.flow();
        let flow = &mut self.flows[id.index()];
        flow.on_data(scheduler.now, flow.index_of(packet));
        self.transmit(scheduler, id, RECEIVER);
    }

    /// A control packet reaches the end that it is for.
    pub fn on_control(&mut self, cx: &mut Context, packet: Packet) {
        let (now, id) = (cx.scheduler.now, packet.flow());
        self.controls_taken += 1;
        let bytes = self.control.take(packet.slot());
        let Ok(message) = lfn_udt::Packet::decode(&bytes) else { return };
        let flow = &mut self.flows[id.index()];
        if packet.is_to_sender() {
            if let Some(lost) = flow.on_control(now, &message) {
                lost.record(now, flow.transfer, &mut cx.record.tables.events);
            }
            cx.record.acknowledged(now, id, flow.acknowledged());
            return self.transmit(&mut cx.scheduler, id, SENDER);
        }
        if message.destination == 0 {
            if let Some(answer) = flow.on_handshake(now, &message) {
                let body = Body::Handshake(answer);
                let answer = lfn_udt::Packet { timestamp_us: 0, destination: answer.socket, body };
                let routed = self.control_packet(id, RECEIVER, encoded(&answer));
                cx.scheduler.hand_over(Departing { routed, header: Header::None });
            }
        } else if let Some(receiver) = &mut flow.ends[RECEIVER].connection {
            receiver.on_packet(now, &message);
        }
        self.transmit(&mut cx.scheduler, id, RECEIVER);
    }

    /// A packet as queues see it.
    pub fn at_queue(&self, class: Class, packet: Packet) -> AtQueue {
        let flow = &self.flows[packet.flow().index()];
        let last_leg = flow.last_leg(class, packet).1;
        AtQueue { bytes: self.wire_bytes(flow, class, packet), ecn: Ecn::NotEct, last_leg }
    }

    fn wire_bytes(&self, flow: &UdtFlow, class: Class, packet: Packet) -> u32 {
        let config = &flow.config;
        match class {
            Class::UdtData => config.wire_bytes(),
            _ => self.control.bytes(packet.slot()).len() as u32 + IP_UDP_BYTES + config.framing_bytes,
        }
    }

    /// A packet as recordings see it.
    pub fn view(&self, class: Class, packet: Packet) -> PacketView {
        let flow = &self.flows[packet.flow().index()];
        let config = &flow.config;
        let data = class == Class::UdtData;
        let back = !data && packet.is_to_sender();
        let seq = if data {
            flow.index_of(packet)
        } else {
            let bytes = self.control.bytes(packet.slot());
            // Without the bit that all control packets have.
            bytes.first_chunk().map_or(0, |&words| u64::from_be_bytes(words) & !(1 << 63))
        };
        PacketView {
            bytes: self.wire_bytes(flow, class, packet),
            class,
            seq,
            payload_bytes: if data { config.payload_bytes() } else { 0 },
            number: config.number,
            reverse: (config.direction as usize == 1) != back,
            l4s: false,
        }
    }

    /// Statistics begin.
    pub fn restart(&mut self, now: Time) {
        for flow in &mut self.flows {
            flow.restart(now);
        }
    }
}
