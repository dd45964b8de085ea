//! The way of a flow's packets: delays, delay lines, and the fast path of a flow over one link.

use lfn_units::Time;

use super::TcpFlows;
use crate::clock::events::Kind;
use crate::clock::ids::{FlowId, LinkId};
use crate::clock::packet::{Class, Hop};
use crate::clock::scheduler::Scheduler;
use crate::ends::context::Context;
use crate::ends::flow::{Flow, Role};
use crate::network::links::Server;
use crate::network::Network;

impl TcpFlows {
    /// Connects a flow to the links of its routes: the delays, the fast path where there is one, the delay lines.
    pub(super) fn connect(&mut self, cx: &mut Context, id: FlowId) {
        let flow = &mut self.flows[id.index()];
        let Context { network, scheduler, .. } = cx;
        let [data_end, ack_end] =
            [flow.path.route, flow.path.ack_route].map(|route| network.route(route).last());
        let shift = ack_shift(flow, network);
        flow.legs.forward_delay = network.link(data_end).delay + flow.path.forward_access;
        flow.legs.ack_shift = shift.unwrap_or(Time::ZERO);
        flow.path.bleached =
            network.route(flow.path.route).links.iter().any(|&link| network.link(link).bleaches);
        flow.legs.direct = sends_direct(flow, network).then_some(data_end);
        if flow.role == Role::Reported {
            share_lines(flow, scheduler, [data_end, ack_end], shift.is_none());
        } else {
            loose_lines(flow, scheduler, shift.is_none());
        }
    }
}

/// Delay of a flow's ACKs from the receiver to the sender, if they meet nothing but delays; else they go hop by hop.
fn ack_shift(flow: &Flow, network: &Network) -> Option<Time> {
    let links = &network.route(flow.path.ack_route).links;
    let pass = |&link: &LinkId| {
        let link = network.link(link);
        link.delay + link.serialisation(flow.ack_bytes)
    };
    let met = links.iter().any(|&link| network.meets(link));
    (!met).then(|| links.iter().map(pass).fold(flow.path.return_access, |sum, delay| sum + delay))
}

/// Whether a flow's data meet one link, whose departures are known at arrival, and nothing else that needs an event.
fn sends_direct(flow: &Flow, network: &Network) -> bool {
    let route = network.route(flow.path.route);
    let link = network.link(route.last());
    route.links.len() == 1
        && matches!(link.server, Server::Closed(_))
        && link.motion.is_none()
        && !link.bleaches
        && !network.is_recorded()
        && !flow.path.is_special
        && !flow.path.by_event
        && !flow.sender.sends_bursts()
}

/// Delay lines of a reported flow, shared with flows of equal delay.
fn share_lines(
    flow: &mut Flow,
    scheduler: &mut Scheduler,
    [data_end, ack_end]: [LinkId; 2],
    hop_by_hop: bool,
) {
    let [to_receiver, to_acks] = hops(flow);
    let path = &mut flow.path;
    let mut line =
        |kind: Kind, from: LinkId, hop: Hop, delay: Time| scheduler.shared_line(kind, from, hop, delay);
    path.lines.to_sender = line(Kind::AckAtSender, ack_end, to_acks, path.return_access);
    path.lines.to_receiver = line(Kind::AtReceiver, data_end, to_receiver, path.forward_access);
    let kind = if hop_by_hop { Kind::AtLink } else { Kind::AckAtSender };
    flow.legs.ack_line = line(kind, data_end, to_acks, path.forward_access + flow.legs.ack_shift);
}

/// Lines of a flow of a traffic source, whose delay no other flow has.
fn loose_lines(flow: &mut Flow, scheduler: &mut Scheduler, hop_by_hop: bool) {
    let [to_receiver, to_acks] = hops(flow);
    let lines = &mut flow.path.lines;
    lines.to_sender = scheduler.loose_line(Kind::AckAtSender, to_acks);
    lines.to_receiver = scheduler.loose_line(Kind::AtReceiver, to_receiver);
    flow.legs.ack_line =
        if hop_by_hop { scheduler.loose_line(Kind::AtLink, to_acks) } else { lines.to_sender };
}

/// First hops of a flow's data and of its ACKs.
fn hops(flow: &Flow) -> [Hop; 2] {
    [Hop::new(Class::Data, flow.path.route, 0), Hop::new(Class::Ack, flow.path.ack_route, 0)]
}
