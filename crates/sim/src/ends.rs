//! The ends of all routes, which send packets and take them.

pub(crate) mod breakers;
pub(crate) mod context;
mod delays;
pub(crate) mod flow;
mod frames;
mod handshake;
pub(crate) mod record;
pub(crate) mod sources;
pub(crate) mod stack;
pub(crate) mod streams;
pub(crate) mod tcp;
pub(crate) mod transfers;
pub(crate) mod udp;
pub(crate) mod udt;
mod window;

use lfn_header::Header;
use lfn_units::Time;

use super::network::Endpoints;
use crate::clock::events::{Kind, LineId};
use crate::clock::ids::FlowId;
use crate::clock::packet::{AtQueue, Class, Extras, Packet, PacketView, Routed};
use crate::clock::scheduler::{Burst, Scheduler};
use crate::config::Connection;
use crate::summary::FlowSummary;
use breakers::Breakers;
use context::Context;
use sources::Sources;
use stack::Stacks;
use tcp::TcpFlows;
use udp::UdpSources;
use udt::UdtFlows;

/// Flows and sources, each kind with its own state.
pub(crate) struct Ends {
    pub tcp: TcpFlows,
    pub udt: UdtFlows,
    pub udp: UdpSources,
    pub stacks: Stacks,
    /// Sources of flows over TCP.
    pub sources: Sources,
    pub breakers: Breakers,
}

impl Ends {
    /// An ACK reaches a sender.
    #[inline]
    pub fn on_ack(&mut self, cx: &mut Context, id: FlowId, line: LineId) {
        self.tcp.prefetch(&cx.scheduler, line);
        if self.tcp.on_ack(cx, id, line) {
            self.sources.on_all_acknowledged(&self.tcp.origin(id).0);
        }
    }

    /// Any other packet reaches the end that it is for.
    pub fn on_packet(&mut self, cx: &mut Context, line: LineId) {
        let mut extras = Extras::default();
        let Some(Routed { hop, packet }) = cx.scheduler.pop_packet(line, &mut extras) else { return };
        match hop.class() {
            Class::Udp => self.udp.on_delivered(cx.scheduler.now, packet),
            Class::Datagram => self.stacks.on_delivered(cx, packet),
            Class::UdtData => self.udt.on_data(&mut cx.scheduler, packet),
            Class::UdtControl => self.udt.on_control(cx, packet),
            Class::Syn => self.tcp.on_syn(&mut cx.scheduler, packet, extras.header),
            Class::SynAck => self.tcp.on_syn_ack(&mut cx.scheduler, packet, extras.header),
            Class::Data | Class::Ack => {
                if self.tcp.on_data(&mut cx.scheduler, packet, &extras) {
                    let (origin, direction) = self.tcp.origin(packet.flow());
                    self.sources.on_message(cx, &origin, direction);
                }
            }
        }
    }

    /// The next packet of a burst. Its header is written if the flow has such.
    #[inline]
    pub fn next_packet(
        &mut self,
        scheduler: &mut Scheduler,
        burst: Burst,
        header: &mut Header,
    ) -> Option<Routed> {
        match burst {
            Burst::None => None,
            Burst::Tcp(index) => self.tcp.next_packet(scheduler, index, header),
            Burst::Udt(number) => self.udt.next_packet(scheduler, number),
        }
    }

    /// A flow or source acts of its own accord: it begins, ends, or a timer is due.
    pub fn on_timer(&mut self, cx: &mut Context, kind: Kind, index: usize) {
        let id = FlowId::new(index);
        match kind {
            Kind::Begin => self.tcp.on_begin(cx, id),
            Kind::Syn => self.tcp.on_syn_timer(&mut cx.scheduler, id),
            Kind::SynAck => self.tcp.on_syn_ack_timer(&mut cx.scheduler, id),
            Kind::Stop => self.tcp.on_stop(cx.scheduler.now, id),
            Kind::ReceiverTimer => self.tcp.on_receiver_timer(&mut cx.scheduler, id),
            Kind::SenderTimer => self.tcp.on_sender_timer(cx, id),
            Kind::UdtTimer => self.udt.on_timer(cx, index),
            Kind::UdtStop => self.udt.on_stop(&mut cx.scheduler, id),
            Kind::Udp => self.udp.on_send(cx, id),
            Kind::StackTimer => self.stacks.on_timer(&mut cx.scheduler, index),
            Kind::StackStop => self.stacks.on_stop(&mut cx.scheduler, index),
            Kind::Write if self.tcp.is_reported(id) => self.tcp.on_application(cx, id),
            Kind::Write => self.sources.on_write(cx, &mut self.tcp, id),
            Kind::Message => {
                let (origin, direction) = self.tcp.origin(id);
                self.sources.on_message(cx, &origin, direction);
            }
            Kind::Arrival => self.sources.on_arrival(cx, &mut self.tcp, index),
            Kind::Breaker
            | Kind::Change
            | Kind::Depart
            | Kind::Warmup
            | Kind::AtLink
            | Kind::AtReceiver
            | Kind::AckAtSender
            | Kind::Second
            | Kind::Sample => {}
        }
    }

    /// A flow that is reported, in numbers.
    pub fn summary(&mut self, connection: Connection, end: Time, cx: &Context) -> FlowSummary {
        match connection {
            Connection::Tcp(index) => self.tcp.summary(FlowId::new(index), end, cx),
            Connection::Udt(index) => self.udt.summary(FlowId::new(index), end, cx),
            Connection::Stack(index) => self.stacks.summary(index, end, cx),
        }
    }

    /// Statistics begin.
    pub fn restart(&mut self, now: Time) {
        self.tcp.restart(now);
        self.udt.restart(now);
        self.stacks.restart(now);
    }
}

impl Endpoints for Ends {
    #[inline(always)]
    fn at_queue(&self, class: Class, packet: Packet) -> AtQueue {
        match class {
            Class::Data | Class::Ack | Class::Syn | Class::SynAck => self.tcp.at_queue(class, packet),
            Class::Udp => self.udp.at_queue(packet),
            Class::Datagram => self.stacks.at_queue(packet),
            Class::UdtData | Class::UdtControl => self.udt.at_queue(class, packet),
        }
    }

    fn view(&self, class: Class, packet: Packet) -> PacketView {
        match class {
            Class::Udp => self.udp.view(packet),
            Class::Datagram => self.stacks.view(packet),
            Class::UdtData | Class::UdtControl => self.udt.view(class, packet),
            Class::Data | Class::Ack | Class::Syn | Class::SynAck => self.tcp.view(class, packet),
        }
    }

    fn on_dropped(&mut self, now: Time, class: Class, packet: Packet) {
        self.breakers.on_gone(class, packet.flow());
        match class {
            Class::Udp => self.udp.on_dropped(packet),
            Class::Datagram => self.stacks.on_lost(packet),
            Class::UdtData => {}
            Class::UdtControl => self.udt.forget_control(packet),
            Class::Data | Class::Ack | Class::Syn | Class::SynAck => self.tcp.forget(now, packet),
        }
    }

    fn on_lost(&mut self, now: Time, class: Class, packet: Packet) {
        match class {
            Class::Udp => self.udp.on_lost(packet),
            class => self.on_dropped(now, class, packet),
        }
    }

    fn on_duplicated(&mut self, class: Class, packet: Packet) {
        match class {
            Class::Data => self.tcp.on_duplicated(packet),
            Class::Datagram => self.stacks.on_duplicated(packet),
            _ => {}
        }
    }

    fn take(&mut self, scheduler: &mut Scheduler, at: Time, class: Class, packet: Packet, extras: &Extras) {
        match class {
            Class::Udp => self.udp.take(scheduler, at, packet, extras),
            Class::Datagram => self.stacks.take(scheduler, at, packet, extras),
            Class::UdtData | Class::UdtControl => self.udt.take(scheduler, at, class, packet, extras),
            Class::Data | Class::Ack | Class::Syn | Class::SynAck => {
                self.tcp.take(scheduler, at, class, packet, extras);
            }
        }
    }
}
