//! Sources of TCP flows that come, take a place, and give it back: the background, and the models of
//! traffic.

use std::collections::BTreeMap;
use std::sync::Arc;

use lfn_tcp::{ReceiverConfig, SenderConfig};
use lfn_units::Time;

use super::context::Context;
use super::flow::{last_payload_bytes, FlowSetup, Origin};
use super::tcp::TcpFlows;
use crate::background::{self, Arrival};
use crate::clock::events::Kind;
use crate::clock::ids::{FlowId, RouteId};
use crate::config::{Background, Direction, TrafficConfig};
use crate::error::SimError;
use crate::memory::tree_bytes;
use crate::network::Network;
use crate::rng::{Stream, Streams};
use crate::summary::BackgroundSummary;
use crate::tables::TransferRow;
use crate::traffic::{Flows, Transfer};

enum Generator {
    Background {
        traffic: background::Background,
        next: Option<Arrival>,
        /// Gaps between the writes of interactive sessions.
        gaps: Stream,
    },
    Model(Box<Flows>),
}

/// Flows of one origin.
struct Source {
    /// `None` for the background.
    name: Option<String>,
    generator: Generator,
    setup: FlowSetup,
    /// Settings of senders, one for each size of segments in bytes.
    senders: BTreeMap<u32, Arc<SenderConfig>>,
    routes: [RouteId; 2],
    header_bytes: u32,
    framing_bytes: u32,
    receive_window_bytes: u64,
    /// The earliest pending event of an arrival.
    due: Time,
    /// Connections that wait for the next message of their session.
    open: BTreeMap<(u64, Direction), FlowId>,
    active: u64,
    offered_bytes: [u64; 2],
    report: BackgroundSummary,
}

impl Source {
    /// A source with no active flows. `sizes` are the bytes of headers, of framing, and of the receive window.
    fn new(
        name: Option<String>,
        generator: Generator,
        mut setup: FlowSetup,
        routes: [RouteId; 2],
        (header_bytes, framing_bytes, receive_window_bytes): (u32, u32, u64),
    ) -> Source {
        setup.ack_bytes = header_bytes + framing_bytes;
        Source {
            name,
            generator,
            setup,
            senders: BTreeMap::new(),
            routes,
            header_bytes,
            framing_bytes,
            receive_window_bytes,
            due: Time::NEVER,
            open: BTreeMap::new(),
            active: 0,
            offered_bytes: [0; 2],
            report: BackgroundSummary::default(),
        }
    }

    /// Settings of a flow of `bytes`, or of one without end.
    fn setup_of(
        &mut self,
        network: &Network,
        direction: Direction,
        rtt: Time,
        mss_bytes: u32,
        bytes: Option<u64>,
    ) -> FlowSetup {
        let mut setup = self.setup.clone();
        let overhead = self.header_bytes + self.framing_bytes;
        setup.direction = direction;
        setup.route = self.routes[direction as usize];
        setup.ack_route = self.routes[1 - direction as usize];
        setup.by_event = network.may_reorder(setup.route);
        // The flow's own links make up what the links of its routes do not take.
        setup.access = network.access(rtt, self.routes);
        setup.receiver.rtt_hint = rtt;
        setup.payload_bytes = mss_bytes;
        setup.wire_bytes = mss_bytes + overhead;
        setup.last_wire_bytes = setup.wire_bytes;
        let sender = self.senders.entry(mss_bytes).or_insert_with(|| {
            let receive_window_segments = (self.receive_window_bytes / u64::from(mss_bytes)).max(2);
            Arc::new(SenderConfig { mss_bytes, receive_window_segments, ..*self.setup.sender })
        });
        setup.sender = Arc::clone(sender);
        if let Some(bytes) = bytes {
            setup.size_segments = bytes.div_ceil(u64::from(mss_bytes));
            setup.last_wire_bytes = overhead + last_payload_bytes(bytes, mss_bytes);
        }
        setup
    }

    fn count_begin(&mut self, direction: Direction, bytes: u64) {
        self.report.flows_started += 1;
        self.active += 1;
        self.report.max_active = self.report.max_active.max(self.active);
        self.offered_bytes[direction as usize] += bytes;
    }

    fn count_end(&mut self) {
        self.report.flows_completed += 1;
        self.active -= 1;
    }
}

/// All sources, the background first.
#[derive(Default)]
pub(crate) struct Sources {
    sources: Vec<Source>,
}

impl Sources {
    /// The background.
    pub fn add_background(
        &mut self,
        cx: &mut Context,
        tcp: &mut TcpFlows,
        streams: &Streams,
        config: &Background,
    ) {
        let mut traffic = background::Background::new(config.traffic, streams);
        let long_flows = traffic.long_flows().to_vec();
        let next = traffic.next_arrival();
        let gaps = streams.of("background.write").stream("gap");
        let source = self.sources.len();
        let setup = template(config.law.clone(), config.sender, config.receiver);
        let generator = Generator::Background { traffic, next, gaps };
        let sizes = (config.header_bytes, config.framing_bytes, background::RECEIVE_WINDOW_BYTES);
        self.sources.push(Source::new(None, generator, setup, config.routes, sizes));
        for long in long_flows {
            let of = &mut self.sources[source];
            let mut setup = of.setup_of(&cx.network, long.direction, long.rtt, long.mss_bytes, None);
            Arc::make_mut(&mut setup.sender).receive_window_segments =
                u64::from(background::LONG_FLOW_WINDOW_PACKETS);
            tcp.add_long(cx, &setup, long.start, Origin { source, ..Origin::default() });
        }
        self.schedule_arrival(cx, source);
    }

    /// A model of traffic.
    pub fn add_model(
        &mut self,
        cx: &mut Context,
        streams: &Streams,
        config: &TrafficConfig,
    ) -> Result<(), SimError> {
        let flows = Flows::new(&config.model, &streams.of(format!("traffic.{}", config.name)))
            .map_err(|source| SimError::Traffic { name: config.name.clone(), source })?;
        let setup = template(config.law.clone(), config.sender, config.receiver);
        let generator = Generator::Model(Box::new(flows));
        let sizes = (config.header_bytes, config.framing_bytes, config.receive_window_bytes);
        self.sources.push(Source::new(Some(config.name.clone()), generator, setup, config.routes, sizes));
        self.schedule_arrival(cx, self.sources.len() - 1);
        Ok(())
    }

    fn schedule_arrival(&mut self, cx: &mut Context, number: usize) {
        let source = &mut self.sources[number];
        let next = match &source.generator {
            Generator::Background { next, .. } => next.as_ref().map_or(Time::NEVER, |next| next.at),
            Generator::Model(flows) => flows.next_at(),
        };
        if next < source.due && next < cx.duration {
            source.due = next;
            cx.scheduler.schedule(next.max(cx.scheduler.now), Kind::Arrival, number);
        }
    }

    /// The next flow of a source begins, if it is not put off.
    pub fn on_arrival(&mut self, cx: &mut Context, tcp: &mut TcpFlows, number: usize) {
        let now = cx.scheduler.now;
        let source = &mut self.sources[number];
        if now < source.due {
            return;
        }
        source.due = Time::NEVER;
        match &mut source.generator {
            Generator::Background { traffic, next, .. } => {
                let arrival = next.take();
                *next = traffic.next_arrival();
                self.schedule_arrival(cx, number);
                if let Some(arrival) = arrival {
                    self.begin_arrival(cx, tcp, number, &arrival);
                }
            }
            Generator::Model(flows) => {
                let transfer = if flows.next_at() <= now { flows.next_transfer() } else { None };
                self.schedule_arrival(cx, number);
                if let Some(transfer) = transfer {
                    self.begin_transfer(cx, tcp, number, &transfer);
                }
            }
        }
    }

    fn begin_arrival(&mut self, cx: &mut Context, tcp: &mut TcpFlows, number: usize, arrival: &Arrival) {
        let source = &mut self.sources[number];
        let mss_bytes = arrival.writes.map_or(arrival.mss_bytes, |writes| writes.write_bytes);
        let bytes = Some(arrival.bytes);
        let mut setup = source.setup_of(&cx.network, arrival.direction, arrival.rtt, mss_bytes, bytes);
        let segments = setup.size_segments;
        if arrival.writes.is_some() {
            setup.size_segments = 0;
            setup.last_wire_bytes = setup.wire_bytes;
        }
        let begun = cx.scheduler.now;
        let origin = Origin { source: number, session: 0, bytes: arrival.bytes, begun, stays: false };
        source.count_begin(arrival.direction, arrival.bytes);
        let id = tcp.begin(cx, &setup, origin);
        match arrival.writes {
            Some(writes) => {
                tcp.expect_writes(id, segments, writes.mean_gap);
                self.on_write(cx, tcp, id);
            }
            None => tcp.transmit(cx, id),
        }
    }

    fn begin_transfer(&mut self, cx: &mut Context, tcp: &mut TcpFlows, number: usize, transfer: &Transfer) {
        let Transfer { direction, bytes, mss_bytes, session, .. } = *transfer;
        let begun = cx.scheduler.now;
        let origin = Origin { source: number, session, bytes, begun, stays: !transfer.last };
        let source = &mut self.sources[number];
        source.count_begin(direction, bytes);
        let id = match source.open.remove(&(session, direction)) {
            Some(id) => {
                tcp.extend(id, origin, source.header_bytes + source.framing_bytes);
                id
            }
            None => {
                let setup = source.setup_of(&cx.network, direction, transfer.rtt, mss_bytes, Some(bytes));
                tcp.begin(cx, &setup, origin)
            }
        };
        tcp.expect_message(id);
        if origin.stays {
            source.open.insert((session, direction), id);
        }
        tcp.transmit(cx, id);
    }

    /// All that a flow had to send is acknowledged.
    pub fn on_all_acknowledged(&mut self, origin: &Origin) {
        let source = &mut self.sources[origin.source];
        if matches!(source.generator, Generator::Background { .. }) {
            source.count_end();
        }
    }

    /// The last byte of a model's transfer has reached the receiver.
    pub fn on_message(&mut self, cx: &mut Context, origin: &Origin, direction: Direction) {
        let now = cx.scheduler.now;
        let Origin { source: number, session, bytes, begun, .. } = *origin;
        let source = &mut self.sources[number];
        source.count_end();
        if let Generator::Model(flows) = &mut source.generator {
            flows.on_done(session, now);
        }
        if begun >= cx.record.warmup {
            cx.record.tables.transfers.push(TransferRow {
                t_s: now.in_s(),
                traffic: number as u16,
                direction,
                bytes,
                duration_s: now.since(begun).in_s(),
            });
        }
        self.schedule_arrival(cx, number);
    }

    /// An interactive session writes one segment, and then again after a random gap.
    pub fn on_write(&mut self, cx: &mut Context, tcp: &mut TcpFlows, id: FlowId) {
        if let Some(mean_gap) = tcp.write(id) {
            let (origin, _) = tcp.origin(id);
            if let Generator::Background { gaps, .. } = &mut self.sources[origin.source].generator {
                let gap = Time::from_s_f64(gaps.exp(mean_gap.as_s()));
                cx.scheduler.schedule(cx.scheduler.now + gap, Kind::Write, id.index());
            }
        }
        tcp.transmit(cx, id);
    }

    /// Bytes of memory for what has begun and not ended.
    pub fn memory_bytes(&self) -> usize {
        let of_source = |source: &Source| {
            let generator = match &source.generator {
                Generator::Background { .. } => 0,
                Generator::Model(flows) => flows.memory_bytes(),
            };
            generator + tree_bytes::<((u64, Direction), FlowId)>(source.open.len())
        };
        self.sources.iter().map(of_source).sum()
    }

    /// Each source in numbers.
    pub fn summaries(&mut self, tcp: &mut TcpFlows, end: Time) -> Vec<BackgroundSummary> {
        let per_s = |bytes: u64| bytes as f64 * 8.0 / end.as_s().max(1e-12);
        let summary = |(number, source): (usize, &mut Source)| {
            let counts = tcp.counts_of_source(number, end);
            BackgroundSummary {
                name: source.name.take(),
                offered_bps: source.offered_bytes.map(per_s),
                goodput_bps: counts.delivered_bytes.map(per_s),
                retransmits: counts.retransmits,
                timeouts: counts.timeouts,
                ..std::mem::take(&mut source.report)
            }
        };
        self.sources.iter_mut().enumerate().map(summary).collect()
    }
}

/// Settings that all flows of a source share.
fn template(law: lfn_law::LawSpec, sender: SenderConfig, receiver: ReceiverConfig) -> FlowSetup {
    FlowSetup {
        law,
        law_seed: 0,
        sender: Arc::new(sender),
        receiver,
        direction: Direction::Forward,
        route: RouteId(0),
        ack_route: RouteId(0),
        access: Time::ZERO,
        by_event: false,
        size_segments: u64::MAX,
        payload_bytes: 0,
        wire_bytes: 0,
        ack_bytes: 0,
        last_wire_bytes: 0,
        misbehaves: None,
    }
}
