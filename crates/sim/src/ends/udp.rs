//! Sources of UDP.

use lfn_header::Header;
use lfn_path::{Delays, Ecn};
use lfn_units::Time;

use super::context::Context;
use super::delays::{since_stamp, stamp};
use super::frames::InTime;
use crate::breaker::Tally;
use crate::clock::events::{Kind, LineId};
use crate::clock::ids::{FlowId, RouteId};
use crate::clock::packet::{AtQueue, Class, Extras, Hop, Packet, PacketView, Routed};
use crate::clock::scheduler::{Departing, Scheduler};
use crate::config::UdpConfig;
use crate::error::SimError;
use crate::rng::Streams;
use crate::summary::UdpSummary;
use crate::traffic::udp::Udp;

/// All sources of UDP, and the fates of their packets.
#[derive(Default)]
pub(crate) struct UdpSources {
    sources: Vec<UdpSource>,
}

/// A source.
struct UdpSource {
    traffic: Udp,
    route: RouteId,
    packet_bytes: u32,
    /// To its receiver.
    line: LineId,
    report: UdpSummary,
    /// Of packets that arrive from then on.
    delays: Delays,
    delays_from: Time,
    in_time: Option<InTime>,
}

impl UdpSources {
    /// A source.
    pub fn add(&mut self, cx: &mut Context, streams: &Streams, config: &UdpConfig) -> Result<(), SimError> {
        let streams = streams.of(format!("udp.{}", config.name));
        let traffic = Udp::new(&config.traffic, &streams)
            .map_err(|source| SimError::Traffic { name: config.name.clone(), source })?;
        let index = self.sources.len();
        let route = config.route;
        let hop = Hop::new(Class::Udp, route, 0);
        let first = traffic.next_at();
        if first < cx.duration {
            cx.scheduler.schedule(first, Kind::Udp, index);
        }
        self.sources.push(UdpSource {
            traffic,
            route,
            packet_bytes: config.traffic.packet_bytes,
            line: cx.scheduler.add_line(Kind::AtReceiver, hop),
            report: UdpSummary { name: config.name.clone(), ..UdpSummary::default() },
            delays: Delays::default(),
            delays_from: cx.record.warmup,
            in_time: config.deadline.map(|within| InTime::new(within, cx.record.warmup, cx.duration)),
        });
        Ok(())
    }

    /// A source sends.
    pub fn on_send(&mut self, cx: &mut Context, id: FlowId) {
        let source = &mut self.sources[id.index()];
        if source.traffic.next().is_none() {
            return;
        }
        source.report.sent += 1;
        if let Some(in_time) = &mut source.in_time {
            in_time.on_send(cx.scheduler.now);
        }
        let next = source.traffic.next_at();
        if next < cx.duration {
            cx.scheduler.schedule(next, Kind::Udp, id.index());
        }
        let hop = Hop::new(Class::Udp, source.route, 0);
        let routed = Routed { hop, packet: Packet::of_udp(id, stamp(cx.scheduler.now)) };
        cx.scheduler.hand_over(Departing { routed, header: Header::None });
    }

    /// A packet as queues see it.
    pub fn at_queue(&self, packet: Packet) -> AtQueue {
        let bytes = self.sources[packet.flow().index()].packet_bytes;
        AtQueue { bytes, ecn: Ecn::NotEct, last_leg: Time::ZERO }
    }

    /// A packet as recordings see it.
    pub fn view(&self, packet: Packet) -> PacketView {
        let bytes = self.sources[packet.flow().index()].packet_bytes;
        PacketView {
            bytes,
            class: Class::Udp,
            seq: 0,
            payload_bytes: bytes,
            number: packet.flow().index() as u32,
            reverse: false,
            l4s: false,
        }
    }

    /// A packet comes to the end of its route at `at`, now or later.
    pub fn take(&self, scheduler: &mut Scheduler, at: Time, packet: Packet, extras: &Extras) {
        scheduler.push(self.sources[packet.flow().index()].line, at, packet, Some(extras));
    }

    /// A queue dropped a packet.
    pub fn on_dropped(&mut self, packet: Packet) {
        self.sources[packet.flow().index()].report.dropped += 1;
    }

    /// A packet is lost behind a queue.
    pub fn on_lost(&mut self, packet: Packet) {
        self.sources[packet.flow().index()].report.lost += 1;
    }

    /// A packet reaches its receiver.
    pub fn on_delivered(&mut self, now: Time, packet: Packet) {
        let source = &mut self.sources[packet.flow().index()];
        source.report.delivered += 1;
        if now >= source.delays_from {
            source.delays.add(since_stamp(packet.stamp(), now));
        }
        if let Some(in_time) = &mut source.in_time {
            in_time.on_arrival(now, packet.stamp());
        }
    }

    /// A circuit breaker ends a source.
    pub fn on_tripped(&mut self, now: Time, id: FlowId) {
        let source = &mut self.sources[id.index()];
        source.traffic.end();
        source.report.tripped_s.get_or_insert(now.in_s());
    }

    /// When a source sends next; [`Time::NEVER`] if it does not.
    pub fn next_at(&self, id: FlowId) -> Time {
        self.sources[id.index()].traffic.next_at()
    }

    /// Its packets that arrived, and the others.
    pub fn tally(&self, id: FlowId) -> Tally {
        let report = &self.sources[id.index()].report;
        Tally { arrived: report.delivered, gone: report.dropped + report.lost }
    }

    /// Packets: sent, and delivered.
    pub fn packets(&self) -> (u64, u64) {
        let reports = || self.sources.iter().map(|source| &source.report);
        (reports().map(|report| report.sent).sum(), reports().map(|report| report.delivered).sum())
    }

    /// Each source in numbers.
    pub fn summaries(&self, end: Time) -> Vec<UdpSummary> {
        let summary = |source: &UdpSource| {
            let mut report = source.report.clone();
            let per_s =
                |packets: u64| packets as f64 * f64::from(source.packet_bytes) * 8.0 / end.as_s().max(1e-12);
            (report.offered_bps, report.received_bps) = (per_s(report.sent), per_s(report.delivered));
            (report.mean_delay_s, report.p99_delay_s) =
                (source.delays.mean_s(), source.delays.quantile_s(0.99));
            report.frames = source.in_time.as_ref().map(InTime::frames);
            report
        };
        self.sources.iter().map(summary).collect()
    }
}
