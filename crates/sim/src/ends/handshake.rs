//! How a connection over TCP opens: a SYN on the way of its data, the SYN-ACK on the way of its ACKs, and the
//! ACK that ends the handshake, just ahead of the first data. All three meet queues, losses and delays.

use std::collections::BTreeMap;

use lfn_header::Header;
use lfn_path::Ecn;
use lfn_tcp::accecn::{Ace, Client, Server};
use lfn_tcp::wheel;
use lfn_units::Time;

use super::flow::accurate::feedback;
use super::flow::{Flow, CONTROL};
use crate::clock::events::{Kind, LineId};
use crate::clock::ids::{FlowId, RouteId};
use crate::clock::packet::{AtQueue, Class, Extras, Hop, Packet, PacketView, Routed};
use crate::clock::scheduler::{Departing, Scheduler};
use crate::memory::tree_bytes;

/// Before the first sample of the RTT (RFC 6298 section 2.1).
const INITIAL_RTO_MS: u64 = 1000;
/// So many repetitions of a SYN come one initial RTO apart before that doubles: Linux since 6.5
/// (`tcp_syn_linear_timeouts`).
const LINEAR_TIMEOUTS: u32 = 4;
/// No timeout is longer: 64 s, as Linux waits after its last SYN. A sender here goes on asking.
const MOST_DOUBLINGS: u32 = 6;
/// Retransmissions of a SYN-ACK without an answer (Linux: `tcp_synack_retries`).
const SYN_ACK_RETRIES: u32 = 5;
/// Options of a SYN beyond the timestamps of an ACK: largest segment, window scale, SACK permitted. Ethernet
/// frames of 74 bytes.
const SYN_OPTIONS_BYTES: u32 = 8;

/// A connection that is not open at both ends yet.
struct Opening {
    /// When the sender sends its SYN again; [`Time::NEVER`] once it has the SYN-ACK.
    syn_again: Time,
    first_syn: Time,
    /// Of both hosts.
    clock_ms: u16,
    syns: u32,
    /// When the receiver sends its SYN-ACK again.
    syn_ack_again: Time,
    syn_acks: u32,
    /// The SYN that the receiver saw first.
    stamp_ms: Option<u32>,
    /// Both ends as they negotiate ECN, of a flow whose packets tell of it.
    ends: Option<(Client, Server)>,
}

impl Opening {
    /// When a timer fires that is set now.
    fn after(&self, now: Time, doublings: u32) -> Time {
        wheel::fires(self.clock_ms, now, INITIAL_RTO_MS << doublings)
    }
}

/// Connections that open, and their packets.
#[derive(Default)]
pub(crate) struct Handshakes {
    /// By place of the flow.
    opening: BTreeMap<FlowId, Opening>,
    /// From the last link to the receiver and to the sender; made when first used.
    lines: Option<[LineId; 2]>,
    /// Packets of handshakes, without duplicates made on the way.
    pub sent: u64,
    /// Those that arrived.
    pub received: u64,
}

impl Handshakes {
    /// A connection begins to open.
    pub fn open(&mut self, scheduler: &mut Scheduler, id: FlowId, flow: &mut Flow) {
        let opening = Opening {
            syn_again: scheduler.now,
            first_syn: scheduler.now,
            clock_ms: wheel::clock_ms(scheduler.now),
            syns: 0,
            syn_ack_again: Time::NEVER,
            syn_acks: 0,
            stamp_ms: None,
            // All packets of a handshake are Not-ECT.
            ends: flow
                .negotiates()
                .map(|[asks, able]| (Client::new(asks, Ecn::NotEct), Server::new(able, Ecn::NotEct))),
        };
        self.opening.insert(id, opening);
        self.on_syn_timer(scheduler, id, flow);
    }

    /// Bytes of memory of the connections that open.
    pub fn memory_bytes(&self) -> usize {
        tree_bytes::<(FlowId, Opening)>(self.opening.len())
    }

    /// Whether the sender of a flow waits for its SYN-ACK.
    pub fn is_opening(&self, id: FlowId) -> bool {
        self.opening.get(&id).is_some_and(|opening| opening.syn_again < Time::NEVER)
    }

    /// The sender's SYN leaves, for the first time or once more.
    pub fn on_syn_timer(&mut self, scheduler: &mut Scheduler, id: FlowId, flow: &mut Flow) {
        let now = scheduler.now;
        let Some(opening) = self.opening.get_mut(&id) else { return };
        if opening.syn_again != now {
            return;
        }
        if flow.is_finished() {
            // Stopped before it was open.
            self.opening.remove(&id);
            return;
        }
        let doublings = opening.syns.saturating_sub(LINEAR_TIMEOUTS).min(MOST_DOUBLINGS);
        opening.syns += 1;
        opening.syn_again = opening.after(now, doublings);
        scheduler.schedule(opening.syn_again, Kind::Syn, id.index());
        let header = match &mut opening.ends {
            Some((client, _)) => feedback(client.syn(), None, now),
            None => flow.header(),
        };
        self.send(scheduler, flow, Class::Syn, Packet::of_syn(id, as_ms(now)), header);
    }

    /// The receiver's SYN-ACK leaves once more if nothing was heard of the sender.
    pub fn on_syn_ack_timer(&mut self, scheduler: &mut Scheduler, id: FlowId, flow: &mut Flow) {
        let Some(opening) = self.opening.get_mut(&id) else { return };
        if opening.syn_ack_again != scheduler.now {
            return;
        }
        opening.syn_ack_again = Time::NEVER;
        if flow.sender.una() > 0 {
            // The ACK was lost, data were not.
            self.opening.remove(&id);
        } else if opening.syn_acks <= SYN_ACK_RETRIES {
            self.send_syn_ack(scheduler, id, flow);
        }
    }

    fn send_syn_ack(&mut self, scheduler: &mut Scheduler, id: FlowId, flow: &mut Flow) {
        let Some(opening) = self.opening.get_mut(&id) else { return };
        opening.syn_ack_again = opening.after(scheduler.now, opening.syn_acks.min(MOST_DOUBLINGS));
        opening.syn_acks += 1;
        scheduler.schedule(opening.syn_ack_again, Kind::SynAck, id.index());
        let packet = Packet::of_syn(id, u64::from(opening.stamp_ms.unwrap_or_default()));
        let header = match (&mut opening.ends, flow.counting()) {
            (Some((_, server)), counting) => {
                let counting = counting.filter(|counting| counting.option && server.may_send_option());
                feedback(server.syn_ack(), counting.map(|counting| &counting.received), scheduler.now)
            }
            (None, _) => flow.take_header(),
        };
        self.send(scheduler, flow, Class::SynAck, packet, header);
    }

    fn send(
        &mut self,
        scheduler: &mut Scheduler,
        flow: &mut Flow,
        class: Class,
        packet: Packet,
        header: Header,
    ) {
        flow.under_way += 1;
        self.sent += 1;
        let route = if class == Class::Syn { flow.path.route } else { flow.path.ack_route };
        let routed = Routed { hop: Hop::new(class, route, 0), packet };
        scheduler.hand_over(Departing { routed, header });
    }

    /// A packet comes to the end of its route at `at`; the delay of the flow's own links follows.
    pub fn take(
        &mut self,
        scheduler: &mut Scheduler,
        at: Time,
        flow: &Flow,
        class: Class,
        packet: Packet,
        extras: &Extras,
    ) {
        let mut line = |class| scheduler.add_line(Kind::AtReceiver, Hop::new(class, RouteId(0), 0));
        let [to_receiver, to_sender] =
            *self.lines.get_or_insert_with(|| [line(Class::Syn), line(Class::SynAck)]);
        match class {
            Class::Syn => scheduler.push(to_receiver, at + flow.path.forward_access, packet, Some(extras)),
            _ => scheduler.push(to_sender, at + flow.path.return_access, packet, Some(extras)),
        }
    }

    /// A SYN, or the ACK that ends the handshake, reaches the receiver.
    pub fn on_syn(&mut self, scheduler: &mut Scheduler, packet: Packet, header: Header, flow: &mut Flow) {
        let id = packet.flow();
        self.received += 1;
        flow.under_way -= 1;
        if packet.is_third() {
            if !self.is_opening(id) {
                self.opening.remove(&id);
            }
            return;
        }
        let Some(opening) = self.opening.get_mut(&id) else { return };
        opening.stamp_ms.get_or_insert(packet.stamp_ms());
        match (&mut opening.ends, header) {
            // A mix of requests would need a reset; the client here makes none.
            (Some((_, server)), Header::Accurate(asked)) => {
                let _mode = server.on_syn(Ace::from_bits(asked.ace), Ecn::NotEct);
            }
            _ => flow.keep_header(header),
        }
        self.send_syn_ack(scheduler, id, flow);
    }

    /// A SYN-ACK reaches the sender. Returns whether the connection is open with it.
    #[inline(never)]
    pub fn on_syn_ack(
        &mut self,
        scheduler: &mut Scheduler,
        packet: Packet,
        header: Header,
        flow: &mut Flow,
    ) -> bool {
        let (now, id) = (scheduler.now, packet.flow());
        self.received += 1;
        flow.under_way -= 1;
        if flow.is_finished() {
            self.opening.remove(&id);
            return false;
        }
        let is_first = self.is_opening(id);
        if is_first {
            self.agree(id, header, flow);
        }
        let answer = match header {
            Header::Accurate(_) if flow.counting().is_some() => {
                feedback(Ace::of_field(Ecn::NotEct), None, now)
            }
            Header::Accurate(_) => feedback(Ace::NONE, None, now),
            _ => Header::None,
        };
        self.send(scheduler, flow, Class::Syn, Packet::of_third(id), answer);
        let Some(opening) = self.opening.get_mut(&id).filter(|_| is_first) else { return false };
        opening.syn_again = Time::NEVER;
        let (first_syn, repeats) = (opening.first_syn, opening.syns - 1);
        // A SYN that was late only costs nothing; the timestamp tells which was answered.
        if repeats > 1 && packet.stamp_ms() != as_ms(first_syn) as u32 {
            flow.sender.on_syns_lost(now);
        }
        let echoed_ms = (as_ms(now) as u32).wrapping_sub(packet.stamp_ms()).max(1);
        let rtt = if repeats == 0 { now - first_syn } else { Time::from_ms(u64::from(echoed_ms)) };
        flow.sender.on_established(now, rtt);
        if flow.path.protocol.is_some() {
            flow.sender.on_header(now, header);
        }
        true
    }

    /// The first SYN-ACK says whether the ends use the ECN that both can do, or none.
    #[cold]
    fn agree(&mut self, id: FlowId, header: Header, flow: &mut Flow) {
        let Some(opening) = self.opening.get_mut(&id) else { return };
        let refused = match (&mut opening.ends, header) {
            (Some((client, _)), Header::Accurate(told)) => {
                let verdict = client.on_syn_ack(Ace::from_bits(told.ace));
                !verdict.is_ok_and(|verdict| verdict.sends_ect)
            }
            // A repeated SYN does not ask for ECN, since some paths drop SYNs that do (RFC 3168 section 6.1.1.1). The receiver
            // answers the SYN that arrived first.
            _ => opening.stamp_ms != Some(as_ms(opening.first_syn) as u32),
        };
        if refused {
            flow.refuse_ecn();
        }
    }
}

/// A packet of a handshake as queues see it.
pub(crate) fn at_queue(flow: &Flow, class: Class, packet: Packet) -> AtQueue {
    let options = if packet.is_third() { 0 } else { SYN_OPTIONS_BYTES };
    let last_leg = flow.path.last_leg(class == Class::Syn);
    // A SYN has no option of AccECN (RFC 9768 section 3.2.3).
    let counted = if class == Class::Syn && !packet.is_third() { flow.option_bytes() } else { 0 };
    AtQueue { bytes: flow.ack_bytes + options - counted, ecn: flow.ecn[CONTROL], last_leg }
}

/// A packet of a handshake of flow `number` as recordings see it.
pub(crate) fn view(flow: &Flow, number: u32, class: Class, packet: Packet) -> PacketView {
    PacketView {
        bytes: at_queue(flow, class, packet).bytes,
        class,
        seq: 0,
        payload_bytes: 0,
        number,
        reverse: (flow.path.direction as usize == 1) == (class == Class::Syn),
        l4s: false,
    }
}

fn as_ms(at: Time) -> u64 {
    at.as_ns() / 1_000_000
}
