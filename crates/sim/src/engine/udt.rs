//! Flows over UDT. Both ends are connections of `lfn_udt`, as on real sockets, with the handshake's two round
//! trips; only time is virtual, and the payload of data packets is zeros, which are not stored.
//!
//! Data packets travel as numbers, as those of TCP do. Control packets travel as bytes; queues and paths treat
//! them as ACKs.

use std::net::SocketAddr;

use lfn_tcp::EventKind;
use lfn_udt::{
    refusal, Answer, Body, Boundary, Config, Connection, ControlSpec, Event, Handshake, Kind as UdtKind,
    Listener, Outgoing, Packet, Seq, State, Transmit, IP_UDP_BYTES, MIN_MSS_BYTES,
};
use lfn_units::Time;

use super::{Sim, SimError, Traveller};
use crate::config::UdtConfig;
use crate::events::Kind;
use crate::flow::NO_WIRE;
use crate::summary::FlowSummary;
use crate::tables::{EventRow, EventTable};
use crate::transit::{Cargo, Extras, Parcel, Place, Transit};

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
pub(super) struct ControlPackets {
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

    pub fn take(&mut self, slot: usize) -> Vec<u8> {
        self.free.push(slot);
        std::mem::take(&mut self.packets[slot])
    }

    fn bytes(&self, slot: usize) -> &[u8] {
        &self.packets[slot]
    }

    pub fn memory_bytes(&self) -> usize {
        self.packets.iter().map(|bytes| bytes.capacity() + size_of::<Vec<u8>>()).sum()
    }
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

    /// Sees to it that the timer is an event, or one before it is. `number` is that of the end.
    fn set_timer(&mut self, now: Time, number: usize, transit: &mut Transit) {
        let deadline = self.deadline();
        if deadline < self.timer_at {
            self.later_timer_at = std::mem::replace(&mut self.timer_at, deadline);
            transit.events.push(deadline.max(now), Kind::UdtTimer, number);
        }
    }
}

/// Counts of data packets by their end, for the check of conservation.
pub(super) struct Counts {
    pub sent: u64,
    pub received: u64,
    pub unique: u64,
    /// Duplicates, and packets that were refused or came to a closed connection.
    pub others: u64,
}

/// The window, over time.
#[derive(Clone, Copy)]
struct Window {
    integral: f64,
    least: u64,
    most: u64,
    observed: Time,
}

/// A flow over UDT, and all between its ends that is its own.
pub(super) struct UdtFlow {
    pub config: UdtConfig,
    /// Number of the transfer that it is a stream of.
    pub transfer: u32,
    ends: [End; 2],
    listener: Listener,
    route: u16,
    ack_route: u16,
    /// Its own links at the receiver's end, and at the sender's.
    forward_access: Time,
    return_access: Time,
    /// From the last link to the receiver, for data and for control packets; to the sender.
    data_wire: u32,
    control_wire: u32,
    return_wire: u32,
    /// Acknowledged packets at the end of the warm-up.
    pub base: u64,
    pub finished: Option<Time>,
    window: Window,
    loss_events: u64,
    /// Data packets that came to the receiver, and those of them that met no open connection.
    arrived: u64,
    unheard: u64,
}

impl UdtFlow {
    pub(super) fn sender(&self) -> Option<&Connection> {
        self.ends[SENDER].connection.as_ref()
    }

    /// The latest RTT that the receiver measured.
    pub(super) fn latest_rtt(&self) -> Option<Time> {
        self.ends[RECEIVER].connection.as_ref().map(|receiver| receiver.rtt().latest)
    }

    /// Bytes that both ends hold beside the flow's own size.
    pub fn memory_bytes(&self) -> usize {
        self.ends.iter().filter_map(|end| end.connection.as_ref()).map(Connection::memory_bytes).sum()
    }

    /// Packets that the receiver has in order, as far as the sender knows.
    pub fn acknowledged(&self) -> u64 {
        self.sender().map_or(0, Connection::acknowledged)
    }

    fn udt_config(&self) -> Config {
        let config = &self.config;
        let compat = matches!(config.control, ControlSpec::Native(_, native) if native.compat);
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
    fn on_handshake(&mut self, now: Time, packet: &Packet<'_>) -> Option<Handshake> {
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
    fn index_of(&self, parcel: Parcel) -> u64 {
        parcel.seq(self.acknowledged())
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
        let packet = Packet { timestamp_us: 0, destination: SOCKETS[RECEIVER], body };
        if let Event::Data { .. } = receiver.on_packet(now, &packet) {
            // The application takes what comes at once.
            receiver.on_read(receiver.in_order());
        }
    }

    /// A control packet comes to the sender. Returns what was found lost, if the control gave way.
    fn on_control(&mut self, now: Time, packet: &Packet<'_>) -> Option<Lost> {
        let sender = self.ends[SENDER].connection.as_mut()?;
        let before = (sender.period(), sender.window_packets(), sender.sender_stats());
        sender.on_packet(now, packet);
        let (period, window, stats) = (sender.period(), sender.window_packets(), sender.sender_stats());
        if sender.released() == sender.offered() && sender.offered() > 0 {
            self.finished.get_or_insert(now);
            sender.close(now);
        }
        self.window.observe(now, before.1, window);
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

    /// An end's timers are due. Returns what was found lost.
    fn on_timer(&mut self, end: usize, now: Time) -> Option<Lost> {
        let connection = self.ends[end].connection.as_mut().filter(|it| it.deadline() <= now)?;
        let (window, timeouts) = (connection.window_packets(), connection.sender_stats().timeouts);
        let waiting = connection.repairing();
        connection.on_deadline(now);
        if end == RECEIVER || connection.sender_stats().timeouts == timeouts {
            return None;
        }
        let (after, packets) = (connection.window_packets(), connection.repairing() - waiting);
        self.window.observe(now, window, after);
        Some(Lost { kind: EventKind::Timeout, before: window, after, packets })
    }

    /// Statistics begin.
    pub fn restart(&mut self, now: Time) {
        self.base = self.acknowledged();
        if let Some(sender) = self.sender() {
            self.window = Window { observed: now, ..Window::at(sender.window_packets()) };
        }
    }

    pub fn counts(&self) -> Counts {
        let receiver = self.ends[RECEIVER].connection.as_ref();
        let stats = receiver.map(Connection::receiver_stats).unwrap_or_default();
        Counts {
            sent: self.sender().map_or(0, |sender| sender.sender_stats().sent),
            received: self.arrived,
            unique: stats.received,
            others: stats.duplicates + stats.refused + self.unheard,
        }
    }

    /// Wire and delay from the last link of a packet's route to the end that it is for.
    pub fn last_leg(&self, cargo: Cargo, parcel: Parcel) -> (u32, Time) {
        match cargo {
            Cargo::UdtControl if parcel.is_to_sender() => (self.return_wire, self.return_access),
            Cargo::UdtControl => (self.control_wire, self.forward_access),
            _ => (self.data_wire, self.forward_access),
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
            t_s: now.as_s(),
            flow: transfer,
            kind: self.kind,
            cwnd_before_seg: self.before as f64,
            cwnd_after_seg: self.after as f64,
            ssthresh_seg: f64::INFINITY,
            lost: self.packets as u32,
        });
    }
}

impl Window {
    fn at(packets: u64) -> Window {
        Window { integral: 0.0, least: packets, most: packets, observed: Time::ZERO }
    }

    /// It was `before` until now, and is `after`.
    fn observe(&mut self, now: Time, before: u64, after: u64) {
        self.integral += before as f64 * (now - self.observed).as_s();
        self.observed = now;
        self.least = self.least.min(after);
        self.most = self.most.max(after);
    }
}

impl Sim {
    pub(super) fn set_up_udt(&mut self, config: &UdtConfig) -> Result<(), SimError> {
        let largest = ZEROS.len() as u32;
        if !(MIN_MSS_BYTES..=largest).contains(&config.mss_bytes) {
            let found = format!("an MSS of {} bytes; from {MIN_MSS_BYTES} to {largest}", config.mss_bytes);
            return Err(SimError::Unknown(format!("flow {}: {found}", config.number)));
        }
        let index = self.udt.len();
        let is_stream = |transfer: &super::Transfer| matches!(&transfer.streams, super::Streamed::Udt(streams) if streams.contains(&index));
        let transfer = self.transfers.iter().position(is_stream).unwrap_or_default() as u32;
        let access = self.access(config.rtt, [config.route, config.ack_route]);
        let forward_access = Time(access.0 / 2);
        let end = || End { connection: None, timer_at: Time::NEVER, later_timer_at: Time::NEVER };
        let (route, ack_route) = (config.route, config.ack_route);
        self.transit.events.push(config.start, Kind::UdtTimer, 2 * index + SENDER);
        if config.stop < self.duration {
            self.transit.events.push(config.stop, Kind::UdtStop, index);
        }
        self.udt.push(UdtFlow {
            transfer,
            ends: [end(), end()],
            listener: Listener::new([config.seed, 0], UdtKind::Stream, 1),
            route,
            ack_route,
            forward_access,
            return_access: access - forward_access,
            data_wire: NO_WIRE,
            control_wire: NO_WIRE,
            return_wire: NO_WIRE,
            base: 0,
            finished: None,
            window: Window::at(0),
            loss_events: 0,
            arrived: 0,
            unheard: 0,
            config: config.clone(),
        });
        self.connect_udt(index, route, ack_route);
        Ok(())
    }

    /// A flow takes these routes from now on.
    pub(super) fn connect_udt(&mut self, index: usize, route: u16, ack_route: u16) {
        let [data_end, ack_end] = [route, ack_route].map(|route| self.routes[usize::from(route)].last());
        let flow = &mut self.udt[index];
        (flow.route, flow.ack_route) = (route, ack_route);
        let mut wire = |from: usize, cargo: Cargo, route: u16, delay: Time| {
            let place = Place { cargo, route, hop: 0 };
            let key = (Kind::AtReceiver, from, place, delay);
            *self.wires.entry(key).or_insert_with(|| self.transit.wire(Kind::AtReceiver, place))
        };
        flow.data_wire = wire(data_end, Cargo::UdtData, route, flow.forward_access);
        flow.control_wire = wire(data_end, Cargo::UdtControl, route, flow.forward_access);
        flow.return_wire = wire(ack_end, Cargo::UdtControl, ack_route, flow.return_access);
    }

    /// A flow begins, or a timer of one of its ends is due.
    pub(super) fn on_udt_timer(&mut self, number: usize) {
        let (now, index, end) = (self.now, number / 2, number % 2);
        let flow = &mut self.udt[index];
        if end == SENDER && flow.ends[SENDER].connection.is_none() {
            flow.connect(now);
        } else if flow.ends[end].timer_at > now {
            return;
        }
        let timer = &mut flow.ends[end];
        timer.timer_at = std::mem::replace(&mut timer.later_timer_at, Time::NEVER);
        if timer.deadline() > now {
            // Packets have moved it.
            return timer.set_timer(now, number, &mut self.transit);
        }
        if let Some(lost) = flow.on_timer(end, now) {
            lost.record(now, flow.transfer, &mut self.tables.events);
        }
        self.transmit_udt(index, end);
    }

    pub(super) fn on_udt_stop(&mut self, index: usize) {
        let (now, flow) = (self.now, &mut self.udt[index]);
        flow.finished.get_or_insert(now);
        if let Some(sender) = &mut flow.ends[SENDER].connection {
            sender.withdraw();
            sender.close(now);
        }
        self.transmit_udt(index, SENDER);
    }

    /// Sends what an end may send now.
    fn transmit_udt(&mut self, index: usize, end: usize) {
        let now = self.now;
        while let Some(transmit) =
            self.udt[index].ends[end].connection.as_mut().and_then(|it| it.poll_transmit(now))
        {
            match transmit {
                Transmit::Data(Outgoing { index: number, retransmission, .. }, _) => {
                    let place = Place { cargo: Cargo::UdtData, route: self.udt[index].route, hop: 0 };
                    let parcel = Parcel::of_udt_data(index, number, retransmission);
                    self.offer(place, parcel, &Extras::default());
                }
                Transmit::Control(packet) => {
                    let mut bytes = Vec::new();
                    packet.encode(&mut bytes);
                    self.send_udt_control(index, end, bytes);
                }
            }
        }
        self.udt[index].ends[end].set_timer(now, 2 * index + end, &mut self.transit);
    }

    fn send_udt_control(&mut self, index: usize, end: usize, bytes: Vec<u8>) {
        self.acks_sent += 1;
        let flow = &self.udt[index];
        let route = if end == SENDER { flow.route } else { flow.ack_route };
        let place = Place { cargo: Cargo::UdtControl, route, hop: 0 };
        let parcel = Parcel::of_udt_control(index, self.control.keep(bytes), end == RECEIVER);
        self.offer(place, parcel, &Extras::default());
    }

    pub(super) fn on_udt_data(&mut self, index: usize, parcel: Parcel) {
        let flow = &mut self.udt[index];
        flow.on_data(self.now, flow.index_of(parcel));
        self.transmit_udt(index, RECEIVER);
    }

    pub(super) fn on_udt_control(&mut self, index: usize, parcel: Parcel) {
        let now = self.now;
        self.acks_taken += 1;
        let bytes = self.control.take(parcel.slot());
        let Ok(packet) = Packet::decode(&bytes) else { return };
        let flow = &mut self.udt[index];
        if parcel.is_to_sender() {
            if let Some(lost) = flow.on_control(now, &packet) {
                lost.record(now, flow.transfer, &mut self.tables.events);
            }
            self.hash = super::mix(super::mix(self.hash, now.0 ^ index as u64), flow.acknowledged());
            return self.transmit_udt(index, SENDER);
        }
        if packet.destination == 0 {
            if let Some(answer) = flow.on_handshake(now, &packet) {
                let mut bytes = Vec::new();
                let body = Body::Handshake(answer);
                Packet { timestamp_us: 0, destination: answer.socket, body }.encode(&mut bytes);
                self.send_udt_control(index, RECEIVER, bytes);
            }
        } else if let Some(receiver) = &mut flow.ends[RECEIVER].connection {
            receiver.on_packet(now, &packet);
        }
        self.transmit_udt(index, RECEIVER);
    }

    /// A packet of UDT as links see it.
    pub(super) fn udt_traveller(&self, cargo: Cargo, parcel: Parcel) -> Traveller {
        let flow = &self.udt[parcel.flow()];
        let config = &flow.config;
        let data = cargo == Cargo::UdtData;
        let back = !data && parcel.is_to_sender();
        let (bytes, seq) = if data {
            (config.wire_bytes(), flow.index_of(parcel))
        } else {
            let packet = self.control.bytes(parcel.slot());
            // Without the bit that all control packets have.
            let words = packet.first_chunk().map_or(0, |&words| u64::from_be_bytes(words) & !(1 << 63));
            (packet.len() as u32 + IP_UDP_BYTES + config.framing_bytes, words)
        };
        Traveller {
            bytes,
            ect: false,
            cargo,
            seq,
            payload_bytes: if data { config.payload_bytes() } else { 0 },
            number: config.number,
            reverse: (config.direction as usize == 1) != back,
        }
    }

    /// One connection in numbers.
    pub(super) fn udt_summary(&self, index: usize, end: Time) -> FlowSummary {
        let flow = &self.udt[index];
        let config = &flow.config;
        let stats = flow.sender().map(Connection::sender_stats).unwrap_or_default();
        let rtt = |end: usize| flow.ends[end].connection.as_ref().map(Connection::rtt).unwrap_or_default();
        let from = config.start.max(self.warmup);
        let active_s = flow.finished.unwrap_or(end).min(end).since(from).as_s();
        let delivered_bytes = (flow.acknowledged() - flow.base) * u64::from(config.payload_bytes());
        let mut window = flow.window;
        if let Some(sender) = flow.sender() {
            window.observe(end, sender.window_packets(), sender.window_packets());
        }
        let window_s = end.since(from).as_s();
        let is_done = flow.acknowledged() == config.size_packets;
        FlowSummary {
            id: flow.transfer,
            streams: 1,
            law: config.control.label(),
            transport: Some("udt"),
            direction: config.direction.name(),
            routes: self.routes_of(config.number, config.route, end),
            segment_bytes: config.payload_bytes(),
            wire_bytes: config.wire_bytes(),
            rtt_s: config.rtt.as_s(),
            start_s: config.start.as_s(),
            active_s,
            goodput_bps: if active_s > 0.0 { delivered_bytes as f64 * 8.0 / active_s } else { 0.0 },
            delivered_bytes,
            sent: stats.sent,
            retransmits: stats.retransmits,
            timeouts: stats.timeouts,
            loss_events: flow.loss_events,
            undos: 0,
            mean_cwnd_segments: if window_s > 0.0 { window.integral / window_s } else { 0.0 },
            min_cwnd_segments: window.least as f64,
            max_cwnd_segments: window.most as f64,
            srtt_s: rtt(SENDER).smoothed.as_s(),
            // The sender is told only smoothed values.
            min_rtt_s: rtt(RECEIVER).least.as_s(),
            cov: self.transfers[flow.transfer as usize].bins.cov(),
            completion_s: flow.finished.filter(|_| is_done).map(|at| at.since(config.start).as_s()),
        }
    }
}
