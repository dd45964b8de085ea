//! Whole stacks without I/O as flows. A datagram travels as a number; its payload stays with the stack.

mod report;

use lfn_header::Header;
use lfn_law::{Datagram, Progress, Stack, StackSetup};
use lfn_units::Time;

use super::context::Context;
use super::record::mix;
use super::window::Window;
use crate::clock::events::{Kind, LineId};
use crate::clock::ids::{FlowId, RouteId};
use crate::clock::packet::{AtQueue, Class, Extras, Hop, Packet, PacketView, Routed};
use crate::clock::scheduler::{Departing, Scheduler};
use crate::config::StackConfig;

/// An end sends at most so many datagrams at one instant; the others leave at its next event.
const MOST_AT_ONCE: usize = 1 << 16;
/// A timer that is due again at once is due after this time, so that time goes on.
const LEAST_WAIT: Time = Time::from_us(1);
/// The end that sends data.
const SENDER: usize = 0;

/// Datagrams of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackCounts {
    /// Handed over by the end.
    pub sent: u64,
    /// Bytes of their IP packets.
    pub sent_bytes: u64,
    /// That reached the other end, copies included.
    pub delivered: u64,
    /// Dropped by a queue, or lost.
    pub lost: u64,
}

/// A datagram under way.
struct UnderWay {
    datagram: Datagram,
    /// Itself and the copies that a link made.
    copies: u32,
}

/// All stacks, and their datagrams.
#[derive(Default)]
pub(crate) struct Stacks {
    flows: Vec<StackFlow>,
    under_way: Vec<UnderWay>,
    free: Vec<usize>,
}

struct End {
    route: RouteId,
    /// From the last link of its route to the other end.
    line: LineId,
    delay: Time,
    /// The earliest pending event of its timer.
    timer_at: Time,
    counts: StackCounts,
}

/// A connection of a whole stack.
pub(crate) struct StackFlow {
    config: StackConfig,
    /// Number of the transfer that it is a stream of.
    transfer: u32,
    stack: Box<dyn Stack>,
    ends: [End; 2],
    /// As the stack last told it; at the flow's end it stays.
    progress: Progress,
    /// Of bytes.
    window: Window,
    /// Data read at the end of the warm-up, and the most that was on its way or waited then.
    base_bytes: u64,
    outstanding_bytes: u64,
    finished: Option<Time>,
    /// When a circuit breaker ended it.
    tripped: Option<Time>,
}

impl StackFlow {
    /// After a call: the connection as it is now, unless it has ended.
    fn observe(&mut self, now: Time) {
        if self.finished.is_some() {
            return;
        }
        let progress = self.stack.progress();
        self.window.observe(now, self.progress.window_bytes, progress.window_bytes);
        self.progress = progress;
        if progress.read_bytes >= self.config.size_bytes {
            self.finished = Some(now);
        }
    }
}

/// Nanoseconds of a time, which stacks count.
fn ns(time: Time) -> u64 {
    time.0 / 1000
}

impl Stacks {
    /// Adds a connection, which is a stream of this transfer.
    pub fn add(&mut self, cx: &mut Context, config: &StackConfig, transfer: u32) {
        let first = 2 * self.flows.len();
        let setup = StackSetup {
            now_ns: ns(config.start),
            seed: config.seed,
            size_bytes: config.size_bytes,
            packet_bytes: config.packet_bytes.into(),
        };
        let stack = config.law.stack(&setup);
        let end = |route| End {
            route,
            line: LineId::NONE,
            delay: Time::ZERO,
            timer_at: config.start,
            counts: StackCounts::default(),
        };
        let progress = stack.progress();
        for index in [first, first + 1] {
            cx.scheduler.schedule(config.start, Kind::StackTimer, index);
        }
        if config.stop < cx.duration {
            cx.scheduler.schedule(config.stop, Kind::StackStop, first / 2);
        }
        self.flows.push(StackFlow {
            transfer,
            stack,
            ends: [end(config.route), end(config.ack_route)],
            progress,
            window: Window { observed: config.start, ..Window::at(progress.window_bytes) },
            base_bytes: 0,
            outstanding_bytes: 0,
            finished: None,
            tripped: None,
            config: config.clone(),
        });
        self.reroute(cx, first / 2, config.route, config.ack_route);
    }

    /// A flow takes these routes from now on.
    pub fn reroute(&mut self, cx: &mut Context, number: usize, route: RouteId, ack_route: RouteId) {
        let flow = &mut self.flows[number];
        let access = cx.network.access(flow.config.rtt, [route, ack_route]);
        let there = Time(access.0 / 2);
        let ways = [(route, there), (ack_route, access - there)];
        for (end, (route, delay)) in flow.ends.iter_mut().zip(ways) {
            let last = cx.network.route(route).last();
            let hop = Hop::new(Class::Datagram, route, 0);
            (end.route, end.delay) = (route, delay);
            end.line = cx.scheduler.shared_line(Kind::AtReceiver, last, hop, delay);
        }
    }

    /// The timer of an end is due, or was.
    pub fn on_timer(&mut self, scheduler: &mut Scheduler, index: usize) {
        let (now, side) = (scheduler.now, index % 2);
        let flow = &mut self.flows[index / 2];
        let end = &mut flow.ends[side];
        if end.timer_at <= now {
            end.timer_at = Time::NEVER;
        }
        if flow.stack.timeout_ns(side) <= ns(now) {
            flow.stack.timer(side, ns(now));
        }
        self.transmit(scheduler, index, now + LEAST_WAIT);
    }

    /// A flow's application writes nothing more, and the flow ends.
    pub fn on_stop(&mut self, scheduler: &mut Scheduler, number: usize) {
        let (now, flow) = (scheduler.now, &mut self.flows[number]);
        flow.observe(now);
        flow.finished.get_or_insert(now);
        flow.stack.stop(ns(now));
        self.transmit(scheduler, 2 * number, now);
    }

    /// A circuit breaker ends a flow that has not ended: both ends are silent from now on.
    pub fn on_tripped(&mut self, scheduler: &mut Scheduler, number: usize) {
        let (now, flow) = (scheduler.now, &mut self.flows[number]);
        if flow.finished.is_none() {
            flow.observe(now);
            (flow.finished, flow.tripped) = (flow.finished.or(Some(now)), Some(now));
        }
    }

    /// A datagram reaches the end that it is for.
    pub fn on_delivered(&mut self, cx: &mut Context, packet: Packet) {
        let (from, now) = (packet.flow().index(), cx.scheduler.now);
        let Datagram { id, ecn, .. } = self.under_way[packet.slot()].datagram;
        let flow = &mut self.flows[from / 2];
        flow.ends[from % 2].counts.delivered += 1;
        flow.stack.receive(1 - from % 2, ns(now), id, packet.ecn_of_datagram(ecn));
        let record = &mut cx.record;
        record.hash = mix(mix(record.hash, now.0 ^ from as u64), flow.ends[from % 2].counts.delivered);
        self.release(packet);
        self.transmit(&mut cx.scheduler, from ^ 1, now);
    }

    /// Sends all that an end has, and sets its timer, not before `earliest`.
    fn transmit(&mut self, scheduler: &mut Scheduler, index: usize, earliest: Time) {
        let (now, side) = (scheduler.now, index % 2);
        let flow = &mut self.flows[index / 2];
        if flow.tripped.is_some() {
            return;
        }
        let end = &mut flow.ends[side];
        for _ in 0..MOST_AT_ONCE {
            let Some(datagram) = flow.stack.transmit(side, ns(now)) else { break };
            let kept = UnderWay { datagram, copies: 1 };
            let slot = self.free.pop().unwrap_or(self.under_way.len());
            match self.under_way.get_mut(slot) {
                Some(place) => *place = kept,
                None => self.under_way.push(kept),
            }
            end.counts.sent += 1;
            end.counts.sent_bytes += u64::from(datagram.bytes);
            let hop = Hop::new(Class::Datagram, end.route, 0);
            let packet = Packet::of_datagram(FlowId::new(index), slot);
            scheduler.hand_over(Departing { routed: Routed { hop, packet }, header: Header::None });
        }
        // Rounded up: at that time its nanosecond has come.
        let timeout = Time(flow.stack.timeout_ns(side).saturating_mul(1000));
        if timeout < Time::NEVER {
            let at = timeout.max(earliest);
            if at < end.timer_at {
                end.timer_at = at;
                scheduler.schedule(at, Kind::StackTimer, index);
            }
        }
        flow.observe(now);
    }

    /// One of a datagram's copies is under way no more.
    fn release(&mut self, packet: Packet) {
        let place = &mut self.under_way[packet.slot()];
        place.copies -= 1;
        if place.copies == 0 {
            self.flows[packet.flow().index() / 2].stack.forget(place.datagram.id);
            self.free.push(packet.slot());
        }
    }

    /// A datagram was dropped or lost.
    pub fn on_lost(&mut self, packet: Packet) {
        let from = packet.flow().index();
        self.flows[from / 2].ends[from % 2].counts.lost += 1;
        self.release(packet);
    }

    /// A link made a copy.
    pub fn on_duplicated(&mut self, packet: Packet) {
        self.under_way[packet.slot()].copies += 1;
    }

    /// Bytes of a datagram at a queue.
    fn wire_bytes(&self, packet: Packet) -> u32 {
        let framing_bytes = self.flows[packet.flow().index() / 2].config.framing_bytes;
        self.under_way[packet.slot()].datagram.bytes.max(1).saturating_add(framing_bytes)
    }

    /// A datagram as queues see it.
    pub fn at_queue(&self, packet: Packet) -> AtQueue {
        let ecn = self.under_way[packet.slot()].datagram.ecn;
        AtQueue { bytes: self.wire_bytes(packet), ecn, last_leg: Time::ZERO }
    }

    /// A datagram as recordings see it.
    pub fn view(&self, packet: Packet) -> PacketView {
        let Datagram { bytes, ecn, .. } = self.under_way[packet.slot()].datagram;
        let from = packet.flow().index();
        PacketView {
            bytes: self.wire_bytes(packet),
            class: Class::Datagram,
            seq: 0,
            payload_bytes: bytes,
            number: self.flows[from / 2].config.number,
            reverse: from % 2 == 1,
            l4s: ecn == lfn_path::Ecn::Ect1,
        }
    }

    /// A datagram comes to the end of its route at `at`, now or later.
    pub fn take(&self, scheduler: &mut Scheduler, at: Time, packet: Packet, extras: &Extras) {
        let from = packet.flow().index();
        let end = &self.flows[from / 2].ends[from % 2];
        scheduler.push(end.line, at + end.delay, packet, Some(extras));
    }

    /// Statistics begin.
    pub fn restart(&mut self, now: Time) {
        for flow in &mut self.flows {
            flow.base_bytes = flow.progress.read_bytes;
            let sent_bytes = flow.ends[SENDER].counts.sent_bytes;
            flow.outstanding_bytes = sent_bytes.saturating_sub(flow.base_bytes);
            flow.window =
                Window { observed: flow.config.start.max(now), ..Window::at(flow.progress.window_bytes) };
        }
    }

    /// Bytes held, without those of the stacks, which nothing tells.
    pub fn memory_bytes(&self) -> usize {
        self.under_way.capacity() * size_of::<UnderWay>() + self.flows.capacity() * size_of::<StackFlow>()
    }
}
