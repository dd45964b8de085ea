//! How a connection over TCP opens: a SYN on the way of its data, the SYN-ACK on the way of its ACKs, and the
//! ACK that ends the handshake, just ahead of the first data. All three meet queues, losses and delays.

use std::collections::BTreeMap;

use lfn_header::Header;
use lfn_units::Time;

use super::{Sim, Traveller};
use crate::events::Kind;
use crate::transit::{Cargo, Extras, Parcel, Place};

/// Before the first sample of the RTT (RFC 6298 section 2.1).
const INITIAL_RTO: Time = Time::from_s(1);
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
    syns: u32,
    /// When the receiver sends its SYN-ACK again.
    syn_ack_again: Time,
    syn_acks: u32,
    /// The SYN that the receiver saw first.
    stamp_ms: Option<u32>,
}

/// Connections that open, and what they cost.
#[derive(Default)]
pub(super) struct Handshakes {
    /// By place of the flow.
    opening: BTreeMap<usize, Opening>,
    /// From the last link to the receiver and to the sender; made when first used.
    wires: Option<[u32; 2]>,
    /// Packets of handshakes, without duplicates made on the way.
    pub sent: u64,
    /// Those that arrived.
    pub received: u64,
}

impl Sim {
    /// A connection opens, if that takes a handshake, and otherwise sends at once.
    pub(super) fn open(&mut self, index: usize) {
        if !self.flows[index].sender.has_handshake() {
            return self.transmit(index);
        }
        let opening = Opening {
            syn_again: self.now,
            first_syn: self.now,
            syns: 0,
            syn_ack_again: Time::NEVER,
            syn_acks: 0,
            stamp_ms: None,
        };
        self.handshakes.opening.insert(index, opening);
        self.on_syn_timer(index);
    }

    /// Whether the sender of a flow waits for its SYN-ACK.
    pub(super) fn is_opening(&self, index: usize) -> bool {
        self.handshakes.opening.get(&index).is_some_and(|opening| opening.syn_again < Time::NEVER)
    }

    /// The sender's SYN leaves, for the first time or once more.
    pub(super) fn on_syn_timer(&mut self, index: usize) {
        let (now, flow) = (self.now, &mut self.flows[index]);
        let Some(opening) = self.handshakes.opening.get_mut(&index) else { return };
        if opening.syn_again != now {
            return;
        }
        if flow.finished.is_some() {
            // Stopped before it was open.
            self.handshakes.opening.remove(&index);
            return;
        }
        let doublings = opening.syns.saturating_sub(LINEAR_TIMEOUTS).min(MOST_DOUBLINGS);
        opening.syns += 1;
        opening.syn_again = now + Time(INITIAL_RTO.0 << doublings);
        self.transit.events.push(opening.syn_again, Kind::Syn, index);
        let header = if flow.protocol.is_some() { flow.sender.header() } else { Header::None };
        self.send_handshake(Cargo::Syn, Parcel::of_syn(index, as_ms(now)), header);
    }

    /// The receiver's SYN-ACK leaves once more if nothing was heard of the sender.
    pub(super) fn on_syn_ack_timer(&mut self, index: usize) {
        let Some(opening) = self.handshakes.opening.get_mut(&index) else { return };
        if opening.syn_ack_again != self.now {
            return;
        }
        opening.syn_ack_again = Time::NEVER;
        if self.flows[index].sender.una() > 0 {
            // The ACK was lost, data were not.
            self.handshakes.opening.remove(&index);
        } else if opening.syn_acks <= SYN_ACK_RETRIES {
            self.send_syn_ack(index);
        }
    }

    fn send_syn_ack(&mut self, index: usize) {
        let Some(opening) = self.handshakes.opening.get_mut(&index) else { return };
        opening.syn_ack_again = self.now + Time(INITIAL_RTO.0 << opening.syn_acks.min(MOST_DOUBLINGS));
        opening.syn_acks += 1;
        self.transit.events.push(opening.syn_ack_again, Kind::SynAck, index);
        let parcel = Parcel::of_syn(index, u64::from(opening.stamp_ms.unwrap_or_default()));
        let header = std::mem::take(&mut self.flows[index].echo);
        self.send_handshake(Cargo::SynAck, parcel, header);
    }

    fn send_handshake(&mut self, cargo: Cargo, parcel: Parcel, header: Header) {
        let flow = &mut self.flows[parcel.flow()];
        flow.under_way += 1;
        let route = if cargo == Cargo::Syn { flow.route } else { flow.ack_route };
        self.handshakes.sent += 1;
        self.offer(Place { cargo, route, hop: 0 }, parcel, &Extras { header, ..Extras::default() });
    }

    /// A packet of a handshake reaches the end of its route at `at`; the delay of the flow's own links follows.
    pub(super) fn end_of_handshake(&mut self, at: Time, cargo: Cargo, parcel: Parcel, extras: &Extras) {
        let transit = &mut self.transit;
        let mut wire = |cargo| transit.wire(Kind::AtReceiver, Place { cargo, route: 0, hop: 0 });
        let [to_receiver, to_sender] =
            *self.handshakes.wires.get_or_insert_with(|| [wire(Cargo::Syn), wire(Cargo::SynAck)]);
        let flow = &self.flows[parcel.flow()];
        match cargo {
            Cargo::Syn => self.transit.send_parcel(to_receiver, at + flow.forward_access, parcel, extras),
            _ => self.transit.send_parcel(to_sender, at + flow.return_access, parcel, extras),
        }
    }

    /// A SYN, or the ACK that ends the handshake, reaches the receiver.
    pub(super) fn on_syn(&mut self, index: usize, parcel: Parcel, header: Header) {
        self.handshakes.received += 1;
        self.flows[index].under_way -= 1;
        if parcel.is_third() {
            if !self.is_opening(index) {
                self.handshakes.opening.remove(&index);
            }
            return self.retire_if_silent(index);
        }
        let Some(opening) = self.handshakes.opening.get_mut(&index) else {
            return self.retire_if_silent(index);
        };
        opening.stamp_ms.get_or_insert(parcel.stamp_ms());
        self.flows[index].echo = header;
        self.send_syn_ack(index);
    }

    /// A SYN-ACK reaches the sender.
    pub(super) fn on_syn_ack(&mut self, index: usize, parcel: Parcel, header: Header) {
        let now = self.now;
        self.handshakes.received += 1;
        self.flows[index].under_way -= 1;
        if self.flows[index].finished.is_some() {
            self.handshakes.opening.remove(&index);
            return self.retire_if_silent(index);
        }
        self.send_handshake(Cargo::Syn, Parcel::of_third(index), Header::None);
        if !self.is_opening(index) {
            return;
        }
        let Some(opening) = self.handshakes.opening.get_mut(&index) else { return };
        opening.syn_again = Time::NEVER;
        let (first_syn, repeats) = (opening.first_syn, opening.syns - 1);
        let sender = &mut self.flows[index].sender;
        // A SYN that was late only costs nothing; the timestamp tells which was answered.
        if repeats > 1 && parcel.stamp_ms() != as_ms(first_syn) as u32 {
            sender.on_syns_lost(now);
        }
        let echoed_ms = (as_ms(now) as u32).wrapping_sub(parcel.stamp_ms()).max(1);
        let rtt = if repeats == 0 { now - first_syn } else { Time::from_ms(u64::from(echoed_ms)) };
        sender.on_established(now, rtt);
        let flow = &mut self.flows[index];
        if flow.protocol.is_some() {
            flow.sender.on_header(header);
        }
        self.transmit(index);
    }

    /// A packet of a handshake as links see it.
    pub(super) fn handshake_traveller(&self, cargo: Cargo, parcel: Parcel) -> Traveller {
        let flow = &self.flows[parcel.flow()];
        let options = if parcel.is_third() { 0 } else { SYN_OPTIONS_BYTES };
        Traveller {
            bytes: flow.ack_bytes + options,
            ect: false,
            cargo,
            seq: 0,
            payload_bytes: 0,
            number: self.number_of(parcel.flow()),
            reverse: (flow.direction as usize == 1) == (cargo == Cargo::Syn),
        }
    }
}

fn as_ms(at: Time) -> u64 {
    at.as_ns() / 1_000_000
}
