//! The event loop.
//!
//! Per data packet there is one event, the ACK at the sender. Where a packet's departure is known at
//! its arrival (see `lfn_path::Link`), so is its arrival at the receiver, and the receiver's answer:
//! all of it happens when the packet is sent. Only where ACKs meet data on the reverse link is there
//! a second event, their arrival there.

mod background_flows;
mod outcome;

use std::collections::{BTreeMap, VecDeque};

use lfn_law::ONE;
use lfn_path::{Discipline, Link, Offer, PacketKind, Red, RedError};
use lfn_tcp::{Acknowledgement, Segment};
use lfn_units::Time;

use crate::background::{self, Arrival};
use crate::config::{Config, Direction, FlowConfig, LinkConfig, QueueConfig};
use crate::events::Kind;
use crate::flow::{Flow, FlowSetup, Role, NO_WIRE};
use crate::rng::Stream;
use crate::summary::{BackgroundSummary, Summary};
use crate::tables::Tables;
use crate::transit::Transit;
use outcome::Retired;

/// Why a run could not be.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// RED's parameters make no sense together.
    #[error("link {link}: {source}")]
    Red {
        /// forward or reverse.
        link: &'static str,
        /// What is wrong.
        source: RedError,
    },
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

/// A packet in the queue of a link in event mode.
enum Queued {
    Data {
        flow: usize,
        segment: Segment,
        marked: bool,
    },
    /// Will be lost behind the queue. Nothing waits for it, so that a flow is done at the same time in
    /// both modes.
    Lost,
    Ack {
        flow: usize,
        ack: Acknowledgement,
    },
}

/// Bernoulli loss: the packets until the next loss are drawn at once, so that a packet costs a count.
struct RandomLoss {
    probability: f64,
    stream: Stream,
    until: u64,
    lost: u64,
    /// When packets leave the queue that are chosen, but have not left it yet.
    chosen: VecDeque<Time>,
}

impl RandomLoss {
    fn new(probability: f64, mut stream: Stream) -> RandomLoss {
        let until = if probability > 0.0 { stream.geometric(probability) } else { u64::MAX };
        RandomLoss { probability, stream, until, lost: 0, chosen: VecDeque::new() }
    }

    /// Whether a packet that joins the queue will be lost behind it.
    #[inline]
    fn chooses(&mut self) -> bool {
        if self.until > 0 {
            self.until -= 1;
            return false;
        }
        self.until = self.stream.geometric(self.probability);
        true
    }

    /// Counts what was lost by `now`.
    fn settle(&mut self, now: Time) {
        while self.chosen.front().is_some_and(|&departs| departs <= now) {
            self.chosen.pop_front();
            self.lost += 1;
        }
    }
}

struct Hop {
    link: Link,
    queued: VecDeque<Queued>,
    loss: RandomLoss,
    draws: Stream,
    /// Data travel here, so that ACKs of the other direction queue with them.
    contended: bool,
    event_mode: bool,
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

/// What the background did.
#[derive(Default)]
struct BackgroundState {
    traffic: Option<background::Background>,
    setup: Option<FlowSetup>,
    header_bytes: u32,
    framing_bytes: u32,
    next: Option<Arrival>,
    gaps: Option<Stream>,
    active: u64,
    offered_bytes: [u64; 2],
    delivered_bytes: [u64; 2],
    report: BackgroundSummary,
}

/// Beyond this many flows the memory of the next ones is worth fetching ahead of time.
const FLOWS_IN_CACHE: usize = 32;

/// A simulation under way.
pub struct Sim {
    now: Time,
    transit: Transit,
    /// Wires by what is at their end, the link at their beginning, and their delay.
    wires: BTreeMap<(Kind, usize, Time), u32>,
    hops: [Hop; 2],
    flows: Vec<Flow>,
    reported: Vec<FlowConfig>,
    bins: Vec<Bins>,
    started: Vec<bool>,
    free: Vec<usize>,
    background: BackgroundState,
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

/// One round of the result hash.
#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
}

fn setup_of(flow: &FlowConfig, contended: [bool; 2], links: &[LinkConfig; 2]) -> FlowSetup {
    let back = 1 - flow.direction as usize;
    FlowSetup {
        law: flow.law,
        sender: flow.sender,
        receiver: flow.receiver,
        direction: flow.direction,
        rtt: flow.rtt,
        size_segments: flow.size_segments,
        payload_bytes: flow.payload_bytes,
        wire_bytes: flow.wire_bytes,
        ack_bytes: flow.ack_bytes,
        acks_meet_data: contended[back],
        ack_rate: links[back].rate,
        last_wire_bytes: flow.wire_bytes,
    }
}

impl Sim {
    /// A simulation at time 0.
    ///
    /// # Errors
    /// [`SimError::Red`] if RED's parameters make no sense together.
    pub fn new(config: &Config) -> Result<Sim, SimError> {
        let mut contended = [false; 2];
        for flow in &config.flows {
            contended[flow.direction as usize] = true;
        }
        if let Some(background) = &config.background {
            let traffic = &background.traffic;
            contended[0] |= traffic.forward.0 > 0 || traffic.long_flows > 0;
            contended[1] |= traffic.reverse.0 > 0 || traffic.long_flows > 0;
        }
        let largest = config.flows.iter().map(|flow| flow.wire_bytes).max().unwrap_or(1500).max(1500);
        let delay = config.flows.iter().map(|flow| flow.rtt).max().unwrap_or(Time::ZERO);
        let hop = |direction: Direction| -> Result<Hop, SimError> {
            let at = direction as usize;
            let link: &LinkConfig = &config.links[at];
            let name = direction.name();
            let discipline = match &link.queue {
                QueueConfig::DropTail => Discipline::DropTail,
                QueueConfig::Red(red) => {
                    let one_way = Time(delay.0 / 2);
                    let red = Red::new(*red, link.rate, one_way)
                        .map_err(|source| SimError::Red { link: name, source })?;
                    Discipline::Red(Box::new(red))
                }
            };
            Ok(Hop {
                link: Link::new(
                    link.rate,
                    discipline,
                    link.limit_packets,
                    link.limit_bytes,
                    largest,
                    link.event_mode,
                ),
                queued: VecDeque::new(),
                loss: RandomLoss::new(link.loss, Stream::new(config.seed, 0, &format!("link.{name}.loss"))),
                draws: Stream::new(config.seed, 0, &format!("link.{name}.red")),
                contended: contended[at],
                event_mode: link.event_mode,
            })
        };
        let hops = [hop(Direction::Forward)?, hop(Direction::Reverse)?];
        let mut sim = Sim {
            now: Time::ZERO,
            transit: Transit::default(),
            wires: BTreeMap::new(),
            hops,
            flows: config
                .flows
                .iter()
                .map(|flow| Flow::new(&setup_of(flow, contended, &config.links), Role::Reported, flow.start))
                .collect(),
            reported: config.flows.clone(),
            bins: vec![Bins::default(); config.flows.len()],
            started: vec![false; config.flows.len()],
            free: Vec::new(),
            background: BackgroundState::default(),
            retired: Retired::default(),
            config_seed: config.seed,
            duration: config.duration,
            warmup: config.warmup,
            sample: config.sample,
            tables: Tables::default(),
            hash: 0,
            processed: 0,
            acks_sent: 0,
            acks_taken: 0,
            acks_dropped: 0,
        };
        for (index, flow) in config.flows.iter().enumerate() {
            sim.connect(index);
            sim.transit.events.push(flow.start, Kind::Begin, index);
            if flow.stop < config.duration {
                sim.transit.events.push(flow.stop, Kind::Stop, index);
            }
        }
        if config.warmup > Time::ZERO {
            sim.transit.events.push(config.warmup, Kind::Warmup, 0);
        }
        sim.transit.events.push(config.warmup + Time::from_s(1), Kind::Second, 0);
        if config.sample.is_some() {
            sim.transit.events.push(Time::ZERO, Kind::Sample, 0);
        }
        if let Some(background) = &config.background {
            sim.set_up_background(config.seed, background);
        }
        Ok(sim)
    }

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
                Kind::AckAtSender => self.on_ack_at_sender(index, wire),
                Kind::AckAtLink => self.on_ack_at_link(index, wire),
                _ => {
                    self.transit.events.pop();
                    self.on_rare(kind, index);
                }
            }
        }
        self.now = until;
    }

    #[inline]
    fn on_ack_at_sender(&mut self, index: usize, wire: u32) {
        let now = self.now;
        let mut ack = Acknowledgement::default();
        self.transit.take(wire, self.flows[index].sender.una(), &mut ack);
        if self.flows.len() > FLOWS_IN_CACHE {
            self.prefetch(wire);
        }
        let flow = &mut self.flows[index];
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

    /// Fetches into the cache what the next ACKs on this wire will need: of the nearer flow what its
    /// sender points at, of the farther one the flow itself.
    #[inline]
    fn prefetch(&self, wire: u32) {
        let [near, far] = self.transit.soon(wire);
        if let Some(flow) = near.and_then(|near| self.flows.get(near)) {
            flow.sender.prefetch();
        }
        if let Some(flow) = far.and_then(|far| self.flows.get(far)) {
            let bytes = std::ptr::from_ref(flow).cast::<u8>();
            for at in (0..size_of::<Flow>()).step_by(64) {
                lfn_tcp::prefetch(bytes.wrapping_add(at));
            }
        }
    }

    fn on_ack_at_link(&mut self, index: usize, wire: u32) {
        let now = self.now;
        let mut ack = Acknowledgement::default();
        self.transit.take(wire, self.flows[index].sender.una(), &mut ack);
        let flow = &mut self.flows[index];
        let at = 1 - flow.direction as usize;
        let hop = &mut self.hops[at];
        let draws = &mut hop.draws;
        match hop.link.offer(now, PacketKind::Ack, flow.ack_bytes, false, || draws.f64()) {
            Offer::Dropped(_) => {
                flow.under_way -= 1;
                self.acks_dropped += 1;
            }
            Offer::Departs { at, .. } => self.ack_departs(index, &ack, at),
            Offer::Waits { free_at, .. } => {
                hop.queued.push_back(Queued::Ack { flow: index, ack });
                if let Some(free_at) = free_at {
                    self.transit.events.push(free_at, Kind::Depart, at);
                }
            }
        }
        self.retire_if_silent(index);
    }

    #[inline]
    fn ack_departs(&mut self, index: usize, ack: &Acknowledgement, at: Time) {
        let flow = &self.flows[index];
        self.transit.send(flow.return_wire, at + flow.return_delay, index, ack);
    }

    /// Finds the wires of a flow's ACKs. Flows that are reported share those of equal delay; a place
    /// of the background has its own, since its flows come with ever other delays.
    fn connect(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let (data_link, ack_link) = (flow.direction as usize, 1 - flow.direction as usize);
        let meets_data = self.hops[ack_link].contended;
        if flow.role == Role::Reported {
            let mut wire = |kind: Kind, link: usize, delay: Time| {
                *self.wires.entry((kind, link, delay)).or_insert_with(|| self.transit.wire(kind))
            };
            flow.return_wire = wire(Kind::AckAtSender, ack_link, flow.return_delay);
            let kind = if meets_data { Kind::AckAtLink } else { Kind::AckAtSender };
            flow.wire = wire(kind, data_link, flow.forward_delay + flow.ack_shift);
            return;
        }
        if flow.to_link_wire == NO_WIRE {
            flow.to_link_wire = self.transit.wire(Kind::AckAtLink);
            flow.return_wire = self.transit.wire(Kind::AckAtSender);
        }
        flow.wire = if meets_data { flow.to_link_wire } else { flow.return_wire };
    }

    fn on_rare(&mut self, kind: Kind, index: usize) {
        match kind {
            Kind::Depart => self.on_depart(index),
            Kind::Warmup => self.on_warmup(),
            Kind::Begin => self.on_begin(index),
            Kind::Established => {
                let flow = &mut self.flows[index];
                flow.sender.on_established(flow.forward_delay + flow.return_delay);
                self.transmit(index);
            }
            Kind::Stop => {
                self.flows[index].sender.stop();
                self.flows[index].finished.get_or_insert(self.now);
            }
            Kind::ReceiverTimer => self.on_receiver_timer(index),
            Kind::SenderTimer => self.on_sender_timer(index),
            Kind::Write => self.on_write(index),
            Kind::Arrival => self.on_arrival(),
            Kind::Second => {
                for (bins, flow) in self.bins.iter_mut().zip(&self.flows) {
                    if flow.started < self.now && flow.finished.is_none() {
                        bins.add(flow.sender.una());
                    }
                }
                self.transit.events.push(self.now + Time::from_s(1), Kind::Second, 0);
            }
            Kind::Sample => self.on_sample(),
            Kind::AckAtLink | Kind::AckAtSender => {}
        }
    }

    fn on_begin(&mut self, index: usize) {
        let Some(config) = self.reported.get(index) else { return self.transmit(index) };
        self.started[index] = true;
        if config.sender.handshake {
            // SYN and SYN-ACK are small and meet no queue.
            self.transit.events.push(self.now + config.rtt, Kind::Established, index);
        } else {
            self.transmit(index);
        }
    }

    /// Sends what the sender may send now.
    #[inline]
    fn transmit(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.flows[index];
        let at = flow.direction as usize;
        while let Some(segment) = flow.sender.next_segment(now) {
            let hop = &mut self.hops[at];
            let bytes = flow.wire_bytes_of(segment.seq);
            let draws = &mut hop.draws;
            match hop.link.offer(now, PacketKind::Data, bytes, flow.ect, || draws.f64()) {
                Offer::Dropped(_) => {}
                Offer::Departs { at: departs, marked } => {
                    if hop.loss.chooses() {
                        hop.loss.settle(now);
                        hop.loss.chosen.push_back(departs);
                    } else {
                        self.acks_sent += flow.receive(departs, segment, marked, index, &mut self.transit);
                    }
                }
                Offer::Waits { free_at, marked } => {
                    if hop.loss.chooses() {
                        hop.queued.push_back(Queued::Lost);
                    } else {
                        flow.under_way += 1;
                        hop.queued.push_back(Queued::Data { flow: index, segment, marked });
                    }
                    if let Some(free_at) = free_at {
                        self.transit.events.push(free_at, Kind::Depart, at);
                    }
                }
            }
        }
        let deadline = flow.sender.deadline();
        if deadline < flow.timer_at {
            flow.timer_at = deadline;
            self.transit.events.push(deadline.max(now), Kind::SenderTimer, index);
        }
    }

    fn on_depart(&mut self, at: usize) {
        let now = self.now;
        let hop = &mut self.hops[at];
        if let Some(next) = hop.link.depart(now) {
            self.transit.events.push(next, Kind::Depart, at);
        }
        match hop.queued.pop_front() {
            Some(Queued::Data { flow: index, segment, marked }) => {
                let flow = &mut self.flows[index];
                flow.under_way -= 1;
                self.acks_sent += flow.receive(now, segment, marked, index, &mut self.transit);
            }
            Some(Queued::Lost) => hop.loss.lost += 1,
            Some(Queued::Ack { flow: index, ack }) => {
                self.ack_departs(index, &ack, now);
            }
            None => {}
        }
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
        if flow.timer_at > now || flow.role == Role::Free {
            return;
        }
        flow.timer_at = Time::NEVER;
        if flow.sender.deadline() <= now {
            flow.sender.on_timer(now);
            if flow.sender.has_events() {
                self.take_sender_events(index);
            }
        }
        self.transmit(index);
    }

    fn take_sender_events(&mut self, index: usize) {
        let segments = |q32: u64| if q32 == u64::MAX { f64::INFINITY } else { q32 as f64 / ONE as f64 };
        let flow = &mut self.flows[index];
        let reported = flow.role == Role::Reported;
        for event in flow.sender.take_events() {
            if !reported {
                continue;
            }
            let table = &mut self.tables.events;
            table.t_s.push(event.at.as_s());
            table.flow.push(index as u32);
            table.kind.push(event.kind as u8);
            table.cwnd_before_seg.push(segments(event.cwnd_before));
            table.cwnd_after_seg.push(segments(event.cwnd_after));
            table.ssthresh_seg.push(segments(event.ssthresh));
            table.lost.push(event.lost as u32);
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
                self.background.report.flows_completed += 1;
                self.background.active -= 1;
                self.retire_if_silent(index);
            }
            Role::Short => self.retire_if_silent(index),
            Role::Long | Role::Free => {}
        }
    }

    fn on_warmup(&mut self) {
        let now = self.now;
        for hop in &mut self.hops {
            hop.link.advance(now);
            hop.link.reset_counters();
        }
        for (flow, bins) in self.flows.iter_mut().zip(&mut self.bins) {
            flow.base = flow.sender.una();
            bins.last = flow.base;
            if flow.started <= now {
                flow.sender.restart_window_stats(now);
            }
        }
    }

    fn on_sample(&mut self) {
        let now = self.now;
        let Some(interval) = self.sample else { return };
        self.transit.events.push(now + interval, Kind::Sample, 0);
        let t_s = now.as_s();
        let segments = |q32: u64| if q32 == u64::MAX { f64::INFINITY } else { q32 as f64 / ONE as f64 };
        let table = &mut self.tables.flows;
        for (index, config) in self.reported.iter().enumerate() {
            let flow = &mut self.flows[index];
            if !self.started[index] || flow.finished.is_some_and(|at| at < now) {
                continue;
            }
            let control = *flow.sender.control();
            table.t_s.push(t_s);
            table.flow.push(index as u32);
            table.cwnd_seg.push(segments(control.cwnd));
            table.ssthresh_seg.push(segments(control.ssthresh));
            table.srtt_s.push(flow.sender.rtt().srtt_ns() as f64 * 1e-9);
            table.rtt_s.push(flow.sender.rtt().latest_ns() as f64 * 1e-9);
            table.inflight_seg.push(flow.sender.in_flight() as u32);
            table.delivered_bytes.push(flow.sender.una() * u64::from(config.payload_bytes));
            table.retransmits.push(flow.sender.stats(now).retransmits);
            table.state.push(flow.sender.state() as u8);
            table.pacing_bps.push(control.pacing_bytes_per_s as f64 * 8.0);
            let values = flow.sender.probe();
            for (probe, (info, value)) in config.law.info().probes.iter().zip(values).enumerate() {
                let table = &mut self.tables.probes;
                table.t_s.push(t_s);
                table.flow.push(index as u32);
                table.probe.push(probe as u8);
                table.value.push(value as f64 / (info.scale as f64).exp2());
            }
        }
        let table = &mut self.tables.queues;
        for (at, hop) in self.hops.iter_mut().enumerate() {
            if !hop.contended {
                continue;
            }
            hop.link.advance(now);
            let counters = hop.link.counters();
            table.t_s.push(t_s);
            table.link.push(at as u8);
            table.packets.push(hop.link.packets() as u32);
            table.bytes.push(hop.link.bytes());
            table.arrivals.push(counters.arrivals);
            table.drops.push(counters.drops_full + counters.drops_early);
            table.marks.push(counters.marks);
            table.sent_bytes.push(counters.sent_bytes);
        }
    }
}
