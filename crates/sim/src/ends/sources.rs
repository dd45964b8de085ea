//! Sources of TCP flows that come, take a place, and give it back: the background, and the models of
//! traffic.

use std::collections::BTreeMap;
use std::sync::Arc;

use lfn_tcp::SenderConfig;
use lfn_units::Time;

use super::context::Context;
use super::flow::Origin;
use super::tcp::TcpFlows;
use crate::background::{self, Arrival};
use crate::clock::events::Kind;
use crate::clock::ids::{FlowId, RouteId};
use crate::config::{Background, Carrier, Direction, FlowConfig, TrafficConfig};
use crate::error::SimError;
use crate::memory::tree_bytes;
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
    /// The flow that began last.
    flow: FlowConfig,
    /// Settings of senders, one for each size of segments in bytes.
    senders: BTreeMap<u32, Arc<SenderConfig>>,
    routes: [RouteId; 2],
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
    /// A source with no active flows.
    fn new(name: Option<String>, generator: Generator, carrier: &Carrier) -> Source {
        let &Carrier { ref law, sender, receiver, receive_window_bytes, ack_bytes, routes } = carrier;
        Source {
            name,
            generator,
            flow: FlowConfig { sender, receiver, ack_bytes, ..FlowConfig::linux(law.clone(), Time::ZERO) },
            senders: BTreeMap::new(),
            routes,
            receive_window_bytes,
            due: Time::NEVER,
            open: BTreeMap::new(),
            active: 0,
            offered_bytes: [0; 2],
            report: BackgroundSummary::default(),
        }
    }

    /// Sets `flow` for one of `bytes`, or without end. Returns the settings of its sender.
    fn set_flow(
        &mut self,
        direction: Direction,
        rtt: Time,
        mss_bytes: u32,
        bytes: Option<u64>,
    ) -> Arc<SenderConfig> {
        let flow = &mut self.flow;
        flow.direction = direction;
        flow.route = self.routes[direction as usize];
        flow.ack_route = self.routes[1 - direction as usize];
        flow.rtt = rtt;
        flow.receiver.rtt_hint = rtt;
        flow.payload_bytes = mss_bytes;
        flow.wire_bytes = mss_bytes + flow.ack_bytes;
        flow.size_segments = bytes.map_or(u64::MAX, |bytes| bytes.div_ceil(u64::from(mss_bytes)));
        let sender = self.senders.entry(mss_bytes).or_insert_with(|| {
            let receive_window_segments = (self.receive_window_bytes / u64::from(mss_bytes)).max(2);
            Arc::new(SenderConfig { mss_bytes, receive_window_segments, ..flow.sender })
        });
        Arc::clone(sender)
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
        let generator = Generator::Background { traffic, next, gaps };
        self.sources.push(Source::new(None, generator, &config.carrier));
        for long in long_flows {
            let of = &mut self.sources[source];
            let mut sender = of.set_flow(long.direction, long.rtt, long.mss_bytes, None);
            Arc::make_mut(&mut sender).receive_window_segments =
                u64::from(background::LONG_FLOW_WINDOW_PACKETS);
            tcp.add_long(cx, &of.flow, &sender, long.start, Origin { source, ..Origin::default() });
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
        let generator = Generator::Model(Box::new(flows));
        self.sources.push(Source::new(Some(config.name.clone()), generator, &config.carrier));
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
        let sender = source.set_flow(arrival.direction, arrival.rtt, mss_bytes, Some(arrival.bytes));
        let segments = source.flow.size_segments;
        if arrival.writes.is_some() {
            source.flow.size_segments = 0;
        }
        let begun = cx.scheduler.now;
        let origin = Origin { source: number, session: 0, bytes: arrival.bytes, begun, stays: false };
        source.count_begin(arrival.direction, arrival.bytes);
        let id = tcp.begin(cx, &source.flow, &sender, origin);
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
                tcp.extend(id, origin);
                id
            }
            None => {
                let sender = source.set_flow(direction, transfer.rtt, mss_bytes, Some(bytes));
                tcp.begin(cx, &source.flow, &sender, origin)
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
