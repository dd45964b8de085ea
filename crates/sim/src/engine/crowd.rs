//! Crowds of TCP flows that come, take a place, and give it back: the background, and the models of
//! traffic.

use std::collections::BTreeMap;

use lfn_units::Time;

use super::{Sim, SimError};
use crate::background::{self, Arrival};
use crate::config::{Background, Direction, TrafficConfig};
use crate::events::Kind;
use crate::flow::{Errand, Flow, FlowSetup, Role};
use crate::rng::{Stream, Streams};
use crate::summary::BackgroundSummary;
use crate::tables::TransferRow;
use crate::traffic::{Flows, Transfer};

enum Source {
    Background {
        traffic: background::Background,
        next: Option<Arrival>,
        /// Gaps between the writes of interactive sessions.
        gaps: Stream,
    },
    Model(Box<Flows>),
}

/// Flows of one origin.
pub(super) struct Crowd {
    /// `None` for the background.
    pub name: Option<String>,
    source: Source,
    setup: FlowSetup,
    routes: [u16; 2],
    header_bytes: u32,
    framing_bytes: u32,
    receive_window_bytes: u64,
    /// The earliest pending event of an arrival.
    due: Time,
    /// Connections that wait for the next message of their session.
    open: BTreeMap<(u64, Direction), usize>,
    active: u64,
    pub offered_bytes: [u64; 2],
    pub delivered_bytes: [u64; 2],
    pub report: BackgroundSummary,
}

impl Crowd {
    /// A crowd with no active flows. `sizes` are the bytes of headers, of framing, and of the receive window.
    fn new(
        name: Option<String>,
        source: Source,
        mut setup: FlowSetup,
        routes: [u16; 2],
        (header_bytes, framing_bytes, receive_window_bytes): (u32, u32, u64),
    ) -> Crowd {
        setup.ack_bytes = header_bytes + framing_bytes;
        Crowd {
            name,
            source,
            setup,
            routes,
            header_bytes,
            framing_bytes,
            receive_window_bytes,
            due: Time::NEVER,
            open: BTreeMap::new(),
            active: 0,
            offered_bytes: [0; 2],
            delivered_bytes: [0; 2],
            report: BackgroundSummary::default(),
        }
    }

    fn count_end(&mut self) {
        self.report.flows_completed += 1;
        self.active -= 1;
    }
}

impl Sim {
    /// A flow of a crowd that is done and has nothing in the network gives its place back.
    pub(super) fn retire_if_silent(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.flows[index];
        let done = flow.role == Role::Short && flow.finished.is_some() && !flow.errand.stays;
        if !done || !flow.is_silent() {
            return;
        }
        flow.role = Role::Free;
        flow.forget_timers();
        self.retired.add(flow, now);
        let crowd = &mut self.crowds[flow.errand.crowd];
        crowd.delivered_bytes[flow.direction as usize] += flow.sender.una() * u64::from(flow.payload_bytes);
        let stats = flow.sender.stats(now);
        crowd.report.retransmits += stats.retransmits;
        crowd.report.timeouts += stats.timeouts;
        self.free.push(index);
    }

    pub(super) fn set_up_background(&mut self, seed: u64, config: &Background) {
        let mut traffic = background::Background::new(config.traffic, seed, 0);
        let long_flows = traffic.long_flows().to_vec();
        let next = traffic.next_arrival();
        let gaps = Stream::new(seed, 0, "background.write.gap");
        let crowd = self.crowds.len();
        let setup = template(config.law.clone(), config.sender, config.receiver);
        let source = Source::Background { traffic, next, gaps };
        let sizes = (config.header_bytes, config.framing_bytes, background::RECEIVE_WINDOW_BYTES);
        self.crowds.push(Crowd::new(None, source, setup, config.routes, sizes));
        for long in long_flows {
            let mut setup = self.crowd_setup(crowd, long.direction, long.rtt, long.mss_bytes, None);
            setup.sender.receive_window_segments = u64::from(background::LONG_FLOW_WINDOW_PACKETS);
            let index = self.flows.len();
            let mut flow = Flow::new(&setup, Role::Long, long.start);
            flow.errand.crowd = crowd;
            self.flows.push(flow);
            self.connect(index);
            self.transit.events.push(long.start, Kind::Begin, index);
        }
        self.schedule_arrival(crowd);
    }

    pub(super) fn set_up_traffic(&mut self, seed: u64, config: &TrafficConfig) -> Result<(), SimError> {
        let flows = Flows::new(&config.model, &Streams::new(seed, 0, format!("traffic.{}", config.name)))
            .map_err(|source| SimError::Traffic { name: config.name.clone(), source })?;
        let setup = template(config.law.clone(), config.sender, config.receiver);
        let source = Source::Model(Box::new(flows));
        let sizes = (config.header_bytes, config.framing_bytes, config.receive_window_bytes);
        self.crowds.push(Crowd::new(Some(config.name.clone()), source, setup, config.routes, sizes));
        self.schedule_arrival(self.crowds.len() - 1);
        Ok(())
    }

    fn crowd_setup(
        &self,
        crowd: usize,
        direction: Direction,
        rtt: Time,
        mss_bytes: u32,
        bytes: Option<u64>,
    ) -> FlowSetup {
        let crowd = &self.crowds[crowd];
        let mut setup = crowd.setup.clone();
        let overhead = crowd.header_bytes + crowd.framing_bytes;
        setup.direction = direction;
        setup.route = crowd.routes[direction as usize];
        setup.ack_route = crowd.routes[1 - direction as usize];
        // A message is complete when it arrives, so that has to be an event.
        let answered = matches!(crowd.source, Source::Model(_));
        setup.by_event = answered || self.may_reorder(setup.route);
        // The flow's own links make up what the links of its routes do not take.
        let links = crowd.routes.map(|route| &self.routes[usize::from(route)].links);
        let delays = links.into_iter().flatten().map(|&link| self.links[usize::from(link)].delay);
        setup.access = delays.fold(rtt, Time::since);
        setup.receiver.rtt_hint = rtt;
        setup.payload_bytes = mss_bytes;
        setup.wire_bytes = mss_bytes + overhead;
        setup.last_wire_bytes = setup.wire_bytes;
        setup.sender.mss_bytes = mss_bytes;
        setup.sender.receive_window_segments = (crowd.receive_window_bytes / u64::from(mss_bytes)).max(2);
        if let Some(bytes) = bytes {
            setup.size_segments = bytes.div_ceil(u64::from(mss_bytes));
            setup.last_wire_bytes = overhead + last_payload(bytes, mss_bytes);
        }
        setup
    }

    fn schedule_arrival(&mut self, crowd: usize) {
        let place = &mut self.crowds[crowd];
        let next = match &place.source {
            Source::Background { next, .. } => next.as_ref().map_or(Time::NEVER, |next| next.at),
            Source::Model(flows) => flows.next_at(),
        };
        if next < place.due && next < self.duration {
            place.due = next;
            self.transit.events.push(next.max(self.now), Kind::Arrival, crowd);
        }
    }

    /// The next flow of a crowd begins, if it is not put off.
    pub(super) fn on_arrival(&mut self, crowd: usize) {
        let place = &mut self.crowds[crowd];
        if self.now < place.due {
            return;
        }
        place.due = Time::NEVER;
        match &mut place.source {
            Source::Background { traffic, next, .. } => {
                let arrival = next.take();
                *next = traffic.next_arrival();
                self.schedule_arrival(crowd);
                if let Some(arrival) = arrival {
                    self.begin_arrival(crowd, &arrival);
                }
            }
            Source::Model(flows) => {
                let transfer = if flows.next_at() <= self.now { flows.next_transfer() } else { None };
                self.schedule_arrival(crowd);
                if let Some(transfer) = transfer {
                    self.begin_transfer(crowd, &transfer);
                }
            }
        }
    }

    fn begin_arrival(&mut self, crowd: usize, arrival: &Arrival) {
        let mss_bytes = arrival.writes.map_or(arrival.mss_bytes, |writes| writes.write_bytes);
        let bytes = Some(arrival.bytes);
        let mut setup = self.crowd_setup(crowd, arrival.direction, arrival.rtt, mss_bytes, bytes);
        let segments = setup.size_segments;
        if arrival.writes.is_some() {
            setup.size_segments = 0;
            setup.last_wire_bytes = setup.wire_bytes;
        }
        let errand = Errand { crowd, session: 0, bytes: arrival.bytes, begun: self.now, stays: false };
        let index = self.begin_flow(&setup, errand);
        match arrival.writes {
            Some(writes) => {
                self.flows[index].writes_left = segments;
                self.flows[index].write_gap = writes.mean_gap;
                self.on_write(index);
            }
            None => self.transmit(index),
        }
    }

    fn begin_transfer(&mut self, crowd: usize, transfer: &Transfer) {
        let Transfer { direction, bytes, mss_bytes, session, .. } = *transfer;
        let errand = Errand { crowd, session, bytes, begun: self.now, stays: !transfer.last };
        let index = match self.crowds[crowd].open.remove(&(session, direction)) {
            Some(index) => {
                let overhead = self.crowds[crowd].header_bytes + self.crowds[crowd].framing_bytes;
                let flow = &mut self.flows[index];
                let segments = bytes.div_ceil(u64::from(flow.payload_bytes));
                flow.extend(segments, overhead + last_payload(bytes, flow.payload_bytes));
                flow.errand = errand;
                self.count_begin(crowd, direction, bytes);
                index
            }
            None => {
                let setup = self.crowd_setup(crowd, direction, transfer.rtt, mss_bytes, Some(bytes));
                self.begin_flow(&setup, errand)
            }
        };
        self.flows[index].expect_message();
        if errand.stays {
            self.crowds[crowd].open.insert((session, direction), index);
        }
        self.transmit(index);
    }

    fn count_begin(&mut self, crowd: usize, direction: Direction, bytes: u64) {
        let crowd = &mut self.crowds[crowd];
        crowd.report.flows_started += 1;
        crowd.active += 1;
        crowd.report.max_active = crowd.report.max_active.max(crowd.active);
        crowd.offered_bytes[direction as usize] += bytes;
    }

    /// A flow takes a place.
    fn begin_flow(&mut self, setup: &FlowSetup, errand: Errand) -> usize {
        self.count_begin(errand.crowd, setup.direction, errand.bytes);
        let index = match self.free.pop() {
            Some(index) => {
                self.flows[index].reuse(setup, Role::Short, self.now);
                index
            }
            None => {
                self.flows.push(Flow::new(setup, Role::Short, self.now));
                self.flows.len() - 1
            }
        };
        self.flows[index].errand = errand;
        self.connect(index);
        index
    }

    /// All that a flow of a crowd had to send is acknowledged.
    pub(super) fn on_all_acknowledged(&mut self, index: usize) {
        let crowd = &mut self.crowds[self.flows[index].errand.crowd];
        if matches!(crowd.source, Source::Background { .. }) {
            crowd.count_end();
        }
        self.retire_if_silent(index);
    }

    /// The last byte of a model's transfer has reached the receiver.
    pub(super) fn on_message(&mut self, index: usize) {
        let now = self.now;
        let Errand { crowd: number, session, bytes, begun, .. } = self.flows[index].errand;
        let crowd = &mut self.crowds[number];
        crowd.count_end();
        if let Source::Model(flows) = &mut crowd.source {
            flows.on_done(session, now);
        }
        if begun >= self.warmup {
            self.tables.transfers.push(TransferRow {
                t_s: now.as_s(),
                traffic: number as u16,
                direction: self.flows[index].direction,
                bytes,
                duration_s: now.since(begun).as_s(),
            });
        }
        self.schedule_arrival(number);
    }

    /// An interactive session writes one segment, and then again after a random gap.
    pub(super) fn on_write(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        flow.sender.offer(1);
        flow.writes_left -= 1;
        if flow.writes_left > 0 {
            if let Source::Background { gaps, .. } = &mut self.crowds[flow.errand.crowd].source {
                let gap = Time::from_s_f64(gaps.exp(flow.write_gap.as_s()));
                self.transit.events.push(self.now + gap, Kind::Write, index);
            }
        }
        self.transmit(index);
    }
}

/// Payload of the last segment of a transfer.
fn last_payload(bytes: u64, mss_bytes: u32) -> u32 {
    match (bytes % u64::from(mss_bytes)) as u32 {
        0 => mss_bytes,
        rest => rest,
    }
}

/// Settings that all flows of a crowd share.
fn template(
    law: lfn_law::LawSpec,
    sender: lfn_tcp::SenderConfig,
    receiver: lfn_tcp::ReceiverConfig,
) -> FlowSetup {
    FlowSetup {
        law,
        sender,
        receiver,
        direction: Direction::Forward,
        route: 0,
        ack_route: 0,
        access: Time::ZERO,
        by_event: false,
        size_segments: u64::MAX,
        payload_bytes: 0,
        wire_bytes: 0,
        ack_bytes: 0,
        last_wire_bytes: 0,
    }
}
