//! The event loop.
//!
//! On a dumbbell there is one event per data packet, the ACK at the sender. Where a packet's departure is
//! known at its arrival (see `lfn_path::Link`), so is its arrival at the receiver, and the receiver's
//! answer: all of it happens when the packet is sent. Where packets meet another queue on their way, or
//! may overtake one another, each meeting is an event more ([`network`]).

mod capture;
mod crowd;
mod handshake;
mod links;
mod memory;
mod network;
mod outcome;
mod sampling;
mod setup;
mod udt;

use std::collections::BTreeMap;
use std::ops::Range;

use lfn_law::ONE;
use lfn_path::{AqmError, ImpairError, Offer, Packet, PacketKind};
use lfn_tcp::Acknowledgement;
use lfn_units::Time;

use crate::config::{Change, Connection, FlowConfig};
use crate::events::Kind;
use crate::flow::{Flow, Role};
use crate::summary::Summary;
use crate::tables::{EventRow, Tables};
use crate::traffic::BadTraffic;
use crate::transit::{Cargo, Place, Transit};
use capture::Capture;
use crowd::Crowd;
use handshake::Handshakes;
use links::{LinkState, Server};
use network::{Route, UdpState, Waiting};
use outcome::Retired;
use udt::{ControlPackets, UdtFlow};

/// Why a run could not be.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// Parameters of a queue that make no sense together.
    #[error("link {link}: {source}")]
    Queue {
        /// Its name.
        link: String,
        /// The error.
        source: AqmError,
    },
    /// Parameters of an impairment that make no sense.
    #[error("link {link}: {source}")]
    Impair {
        /// Its name.
        link: String,
        /// The error.
        source: ImpairError,
    },
    /// Parameters of a traffic model that make no sense.
    #[error("traffic {name}: {source}")]
    Traffic {
        /// Its name.
        name: String,
        /// The error.
        source: BadTraffic,
    },
    /// A flow with ECN on a link whose router uses the same two bits of the IP header.
    #[error("flow {flow} has ECN, and link {link} speaks VCP: both need the same bits of the IP header")]
    EcnBesideVcp {
        /// Number of the flow.
        flow: usize,
        /// Name of the link.
        link: String,
    },
    /// A route, link or flow that does not exist, or a change that goes back in time.
    #[error("{0}")]
    Unknown(String),
    /// A packet was lost or made by the engine itself: a bug, and the results are worthless.
    #[error("packets are not conserved: {0}")]
    NotConserved(String),
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// In numbers.
    pub summary: Summary,
    /// Columns.
    pub tables: Tables,
}

/// A packet as links and recordings see it.
struct Traveller {
    bytes: u32,
    ect: bool,
    cargo: Cargo,
    seq: u64,
    payload_bytes: u32,
    /// Number of its connection, or of its UDP source.
    number: u32,
    /// It travels in the reverse direction.
    reverse: bool,
}

/// Sums over bins of one second, for the coefficient of variation.
#[derive(Clone, Copy, Default)]
struct Bins {
    last: u64,
    count: u64,
    sum: f64,
    squares: f64,
}

impl Bins {
    fn add(&mut self, total: u64) {
        let bin = (total - self.last) as f64;
        self.last = total;
        self.count += 1;
        self.sum += bin;
        self.squares += bin * bin;
    }

    /// Population standard deviation over mean.
    fn cov(&self) -> Option<f64> {
        let n = self.count as f64;
        let mean = self.sum / n;
        (self.count >= 2 && mean > 0.0).then(|| (self.squares / n - mean * mean).max(0.0).sqrt() / mean)
    }
}

/// A simulation under way.
pub struct Sim {
    now: Time,
    transit: Transit,
    /// Wires by what is at their end, the link at their beginning, and their delay.
    wires: BTreeMap<(Kind, usize, Place, Time), u32>,
    links: Vec<LinkState>,
    routes: Vec<Route>,
    /// Packets in queues whose departures are events, by the word of their `lfn_path::Packet`.
    waiting: Vec<Option<Waiting>>,
    free_slots: Vec<u64>,
    /// Packets that a queue dropped during one call.
    dropped: Vec<Packet>,
    udp: Vec<UdpState>,
    changes: Vec<Change>,
    capture: Option<Box<Capture>>,
    /// Duplicates that links made.
    copies: u64,
    flows: Vec<Flow>,
    reported: Vec<FlowConfig>,
    /// Of each reported flow, its number among all connections that are reported, and that of the transfer
    /// that it is a stream of.
    numbers: Vec<u32>,
    transfer: Vec<u32>,
    started: Vec<bool>,
    handshakes: Handshakes,
    udt: Vec<UdtFlow>,
    /// Control packets of UDT that are under way.
    control: ControlPackets,
    /// By number.
    connections: Vec<Connection>,
    transfers: Vec<Transfer>,
    free: Vec<usize>,
    crowds: Vec<Crowd>,
    retired: Retired,
    config_seed: u64,
    duration: Time,
    warmup: Time,
    sample: Option<Time>,
    tables: Tables,
    hash: u64,
    processed: u64,
    acks_sent: u64,
    acks_taken: u64,
    acks_dropped: u64,
}

/// Flows whose state the cache of a core holds; with more, what comes next is fetched ahead.
const CACHED_FLOWS: usize = 500;

/// A flow of the report: the places of its streams, over one transport.
struct Transfer {
    streams: Streamed,
    bins: Bins,
}

#[derive(Clone)]
enum Streamed {
    Tcp(Range<usize>),
    Udt(Range<usize>),
}

/// Segments of a Q32.32 window; infinite where it is.
fn segments(q32: u64) -> f64 {
    if q32 == u64::MAX {
        f64::INFINITY
    } else {
        q32 as f64 / ONE as f64
    }
}

/// One round of the result hash.
#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
}

impl Sim {
    /// Simulated time reached.
    pub fn now(&self) -> Time {
        self.now
    }

    /// When the run ends.
    pub fn duration(&self) -> Time {
        self.duration
    }

    /// Processes every event up to and including `until` (at most the duration).
    pub fn run_until(&mut self, until: Time) {
        let until = until.min(self.duration);
        while let Some((at, kind, index, wire)) = self.transit.events.peek() {
            if at > until {
                break;
            }
            self.now = at;
            self.processed += 1;
            match kind {
                Kind::AckAtSender => {
                    if self.flows.len() > CACHED_FLOWS {
                        self.prefetch(wire);
                    }
                    self.on_ack_at_sender(index, wire);
                }
                Kind::AtLink => self.on_at_link(wire),
                Kind::AtReceiver => self.on_at_receiver(index, wire),
                _ => {
                    self.transit.events.pop();
                    self.on_rare(kind, index);
                }
            }
        }
        self.now = until;
    }

    /// Fetches what the next ACKs on `wire` will need. A flow's place is known beforehand, that of its
    /// buffers only when the flow is there, and that of repair's only when what leads to them is.
    #[inline(never)]
    fn prefetch(&self, wire: u32) {
        let parcels = self.transit.prefetch(wire);
        let flow = |places: usize| parcels.get(places).and_then(|parcel| self.flows.get(parcel.1.flow()));
        if let Some(flow) = flow(3) {
            flow.prefetch();
        }
        if let Some(flow) = flow(2) {
            flow.sender.prefetch_buffers();
            flow.receiver.prefetch_buffers();
        }
        if let Some(flow) = flow(1) {
            flow.sender.prefetch_repair();
        }
    }

    #[inline]
    fn on_ack_at_sender(&mut self, index: usize, wire: u32) {
        let now = self.now;
        let mut ack = Acknowledgement::default();
        let flow = &mut self.flows[index];
        let near = flow.sender.una();
        self.transit.take(wire, near, &mut ack, |header| flow.sender.on_header(header));
        flow.under_way -= 1;
        self.acks_taken += 1;
        self.hash = mix(mix(self.hash, now.0 ^ index as u64), ack.cumulative);
        flow.sender.on_ack(now, &ack);
        if flow.sender.has_events() {
            self.take_sender_events(index);
        }
        self.transmit(index);
        if self.flows[index].is_done() {
            self.on_done(index);
        }
    }

    fn on_rare(&mut self, kind: Kind, index: usize) {
        match kind {
            Kind::Change => self.on_change(index),
            Kind::Depart => self.on_depart(index),
            Kind::UdtTimer => self.on_udt_timer(index),
            Kind::UdtStop => self.on_udt_stop(index),
            Kind::Udp => self.on_udp(index),
            Kind::Warmup => self.on_warmup(),
            Kind::Begin => self.on_begin(index),
            Kind::Syn => self.on_syn_timer(index),
            Kind::SynAck => self.on_syn_ack_timer(index),
            Kind::Stop => {
                self.flows[index].sender.stop();
                self.flows[index].finished.get_or_insert(self.now);
            }
            Kind::ReceiverTimer => self.on_receiver_timer(index),
            Kind::SenderTimer => {
                if self.flows.len() > CACHED_FLOWS {
                    // Mostly another flow's timer.
                    if let Some(flow) = self.flows.get(self.transit.events.next_other()) {
                        flow.prefetch();
                    }
                }
                self.on_sender_timer(index);
            }
            Kind::Write => self.on_write(index),
            Kind::Arrival => self.on_arrival(index),
            Kind::Second => {
                for transfer in &mut self.transfers {
                    let (counts, acknowledged) = match &transfer.streams {
                        Streamed::Tcp(streams) => {
                            let flows = &self.flows[streams.clone()];
                            let under_way = flows.iter().any(|flow| flow.finished.is_none());
                            let una = flows.iter().map(|flow| flow.sender.una());
                            (flows[0].started < self.now && under_way, una.sum())
                        }
                        Streamed::Udt(streams) => {
                            let flows = &self.udt[streams.clone()];
                            let under_way = flows.iter().any(|flow| flow.finished.is_none());
                            let acknowledged = flows.iter().map(UdtFlow::acknowledged);
                            (flows[0].config.start < self.now && under_way, acknowledged.sum())
                        }
                    };
                    if counts {
                        transfer.bins.add(acknowledged);
                    }
                }
                self.transit.events.push(self.now + Time::from_s(1), Kind::Second, 0);
            }
            Kind::Sample => self.on_sample(),
            Kind::AtLink | Kind::AtReceiver | Kind::AckAtSender => {}
        }
    }

    fn on_begin(&mut self, index: usize) {
        if let Some(started) = self.started.get_mut(index) {
            *started = true;
        }
        self.open(index);
    }

    /// Sends what the sender may send now.
    #[inline]
    fn transmit(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.flows[index];
        let Some(at) = flow.direct else { return self.transmit_hop_by_hop(index) };
        let link = &mut self.links[usize::from(at)];
        let Server::Closed(server) = &mut link.server else { return };
        while let Some(segment) = flow.sender.next_segment(now) {
            let bytes = flow.wire_bytes_of(segment.seq);
            let ect = flow.ect[usize::from(segment.retransmission)];
            let draws = &mut link.draws;
            match server.offer(now, PacketKind::Data, bytes, ect, || draws.f64()) {
                Offer::Dropped(_) => {}
                Offer::Departs { at: departs, marked } => {
                    if link.loss.chooses() {
                        link.loss.lose(now, departs);
                    } else {
                        let arrives = departs + flow.forward_delay;
                        self.acks_sent += flow.receive(arrives, segment, marked, index, &mut self.transit);
                    }
                }
            }
        }
        flow.set_timer(now, index, &mut self.transit);
    }

    fn transmit_hop_by_hop(&mut self, index: usize) {
        while let Some(segment) = self.flows[index].sender.next_segment(self.now) {
            self.send_data(index, segment);
        }
        self.flows[index].set_timer(self.now, index, &mut self.transit);
    }

    fn on_receiver_timer(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.flows[index];
        if flow.receiver_timer_at != now {
            return;
        }
        flow.receiver_timer_at = Time::NEVER;
        self.acks_sent += flow.on_receiver_timer(now, index, &mut self.transit);
    }

    fn on_sender_timer(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.flows[index];
        if !flow.timer_fires(now) || flow.role == Role::Free {
            return;
        }
        if flow.sender.deadline() > now {
            // ACKs have moved it.
            return flow.set_timer(now, index, &mut self.transit);
        }
        flow.sender.on_timer(now);
        if flow.sender.has_events() {
            self.take_sender_events(index);
        }
        self.transmit(index);
    }

    fn take_sender_events(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let reported = flow.role == Role::Reported;
        for event in flow.sender.take_events() {
            if !reported {
                continue;
            }
            self.tables.events.push(EventRow {
                t_s: event.at.as_s(),
                flow: self.transfer[index],
                kind: event.kind,
                cwnd_before_seg: segments(event.cwnd_before),
                cwnd_after_seg: segments(event.cwnd_after),
                ssthresh_seg: segments(event.ssthresh),
                lost: event.lost as u32,
            });
        }
    }

    fn on_done(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.flows[index];
        match flow.role {
            Role::Reported => {
                flow.finished.get_or_insert(now);
            }
            Role::Short if flow.finished.is_none() => {
                flow.finished = Some(now);
                self.on_all_acknowledged(index);
            }
            Role::Short => self.retire_if_silent(index),
            Role::Long | Role::Free => {}
        }
    }

    fn on_warmup(&mut self) {
        let now = self.now;
        for link in &mut self.links {
            link.restart(now);
        }
        for (flow, &transfer) in self.flows.iter_mut().zip(&self.transfer) {
            flow.base = flow.sender.una();
            self.transfers[transfer as usize].bins.last += flow.base;
            if flow.started <= now {
                flow.sender.restart_window_stats(now);
            }
        }
        for flow in &mut self.udt {
            flow.restart(now);
            self.transfers[flow.transfer as usize].bins.last += flow.base;
        }
    }
}
