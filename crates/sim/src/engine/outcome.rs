//! The end of a run: every packet accounted for, and the run in numbers.

use lfn_law::ONE;
use lfn_units::Time;

use super::links::Server;
use super::{mix, Outcome, Sim, SimError};
use crate::config::{Change, Changed, Connection};
use crate::events::Kind;
use crate::flow::{Flow, Role};
use crate::summary::{
    BackgroundSummary, Conservation, FlowSummary, LinkSummary, Memory, RateSummary, RouteSummary, Summary,
    UdpSummary,
};

/// Counts of flows whose place was taken by another.
#[derive(Default)]
pub(super) struct Retired {
    sent: u64,
    received: u64,
    unique: u64,
    duplicates: u64,
}

impl Retired {
    pub(super) fn add(&mut self, flow: &mut Flow, now: Time) {
        self.sent += flow.sender.stats(now).sent;
        self.received += flow.receiver.received();
        self.unique += flow.receiver.next_expected() + flow.receiver.out_of_order();
        self.duplicates += flow.receiver.duplicates();
    }
}

/// The streams of each transfer as one flow.
fn in_sum(streams: &[FlowSummary]) -> Vec<FlowSummary> {
    let mut flows: Vec<FlowSummary> = Vec::new();
    for stream in streams {
        match flows.last_mut().filter(|flow| flow.id == stream.id) {
            Some(flow) => flow.add(stream),
            None => flows.push(stream.clone()),
        }
    }
    flows
}

impl Sim {
    /// Ends the run at the time reached.
    ///
    /// # Errors
    /// [`SimError::NotConserved`] if a packet was lost or made by the engine itself.
    pub fn finish(mut self) -> Result<Outcome, SimError> {
        let end = self.now;
        for link in &mut self.links {
            link.advance(end);
        }
        let conservation = self.check_conservation()?;
        let streams: Vec<FlowSummary> = (0..self.connections.len())
            .map(|number| match self.connections[number] {
                Connection::Tcp(index) => self.flow_summary(index, end),
                Connection::Udt(index) => self.udt_summary(index, end),
            })
            .collect();
        let flows = in_sum(&streams);
        let links: Vec<LinkSummary> = (0..self.links.len()).map(|at| self.link_summary(at, end)).collect();
        let goodputs: Vec<f64> = flows.iter().map(|flow| flow.goodput_bps).collect();
        let sum: f64 = goodputs.iter().sum();
        let squares: f64 = goodputs.iter().map(|x| x * x).sum();
        let covs: Vec<f64> = flows.iter().filter_map(|flow| flow.cov).collect();
        let mut hash = self.hash;
        for flow in &streams {
            for word in [flow.sent, flow.retransmits, flow.timeouts, flow.delivered_bytes] {
                hash = mix(hash, word);
            }
        }
        for link in &links {
            for word in
                [link.arrivals, link.drops, link.marks, link.random_losses, link.mean_queue_s.to_bits()]
            {
                hash = mix(hash, word);
            }
        }
        let memory =
            Memory { bytes_per_flow: std::mem::size_of::<Flow>(), packet_bytes: self.packet_bytes() };
        let mut crowds: Vec<BackgroundSummary> =
            (0..self.crowds.len()).map(|number| self.crowd_summary(number, end)).collect();
        // The background comes first, and is the one without a name.
        let has_background = crowds.first().is_some_and(|crowd| crowd.name.is_none());
        let background = has_background.then(|| crowds.remove(0));
        let mut changes_s: Vec<f64> = self.changes_until(end).map(|change| change.at.as_s()).collect();
        changes_s.dedup();
        let summary = Summary {
            hash: format!("{hash:016x}"),
            seed: self.config_seed,
            sim_s: end.as_s(),
            warmup_s: self.warmup.as_s(),
            data_packets_delivered: self.links.iter().map(|link| link.data_totals().sent).sum(),
            events: self.processed,
            jain: (squares > 0.0).then(|| sum * sum / (goodputs.len() as f64 * squares)),
            cov: (!covs.is_empty()).then(|| covs.iter().sum::<f64>() / covs.len() as f64),
            flows,
            links,
            changes_s,
            udp: self.udp_summaries(end),
            captured_rows: self.capture.as_ref().map(|capture| capture.rows),
            background,
            traffic: crowds,
            conservation,
            memory,
        };
        if let Some(capture) = self.capture.take() {
            self.tables.packets = capture.into_table();
        }
        Ok(Outcome { summary, tables: self.tables })
    }

    fn flow_summary(&mut self, index: usize, end: Time) -> FlowSummary {
        let config = &self.reported[index];
        let routes = self.routes_of(self.number_of(index), config.route, end);
        let flow = &mut self.flows[index];
        let segments = |q32: u64| q32 as f64 / ONE as f64;
        let (una, base) = (flow.sender.una(), flow.base);
        let srtt_s = flow.sender.rtt().srtt_ns() as f64 * 1e-9;
        let min_rtt_s = flow.sender.rtt().min_ns() as f64 * 1e-9;
        let from = flow.started.max(self.warmup);
        let to = flow.finished.unwrap_or(end).min(end);
        let active_s = to.since(from).as_s();
        let per_s = |x: f64| if active_s > 0.0 { x / active_s } else { 0.0 };
        let payload = u64::from(flow.payload_bytes);
        let started = self.started[index];
        let observed = if started { end } else { flow.started };
        let stats = *flow.sender.stats(observed);
        let window_s = observed.since(from).as_s();
        FlowSummary {
            id: self.transfer[index],
            streams: 1,
            law: config.law.label(),
            transport: None,
            direction: config.direction.name(),
            routes,
            segment_bytes: config.payload_bytes,
            wire_bytes: config.wire_bytes,
            rtt_s: config.rtt.as_s(),
            start_s: config.start.as_s(),
            active_s,
            goodput_bps: per_s(((una - base) * payload) as f64 * 8.0),
            delivered_bytes: (una - base) * payload,
            sent: stats.sent,
            retransmits: stats.retransmits,
            timeouts: stats.timeouts,
            loss_events: stats.loss_events,
            undos: stats.undos,
            mean_cwnd_segments: if window_s > 0.0 { stats.cwnd_integral / window_s } else { 0.0 },
            min_cwnd_segments: segments(stats.min_cwnd),
            max_cwnd_segments: segments(stats.max_cwnd),
            srtt_s,
            min_rtt_s,
            cov: self.transfers[self.transfer[index] as usize].bins.cov(),
            completion_s: flow
                .finished
                .filter(|_| flow.is_done() && config.size_segments != u64::MAX)
                .map(|at| at.since(flow.started).as_s()),
        }
    }

    fn changes_until(&self, end: Time) -> impl Iterator<Item = &Change> {
        self.changes.iter().take_while(move |change| change.at <= end)
    }

    /// The links of the data of connection `number`, `first` in the beginning, and when they became those.
    pub(super) fn routes_of(&self, number: u32, first: u16, end: Time) -> Vec<RouteSummary> {
        let summary = |from: Time, route: u16| {
            let links = self.routes[usize::from(route)].links.iter();
            let name = |&link: &u16| self.links[usize::from(link)].name.clone();
            RouteSummary { from_s: from.as_s(), links: links.map(name).collect() }
        };
        let mut routes = vec![summary(Time::ZERO, first)];
        for change in self.changes_until(end) {
            match change.what {
                Changed::Route { flow, route, .. } if flow == number => {
                    routes.push(summary(change.at, route));
                }
                _ => {}
            }
        }
        routes
    }

    fn link_summary(&self, at: usize, end: Time) -> LinkSummary {
        let link = &self.links[at];
        let rates = |change: &Change| match change.what {
            Changed::Rate(changed, rate) if usize::from(changed) == at => {
                Some(RateSummary { from_s: change.at.as_s(), rate_bps: rate.0 })
            }
            _ => None,
        };
        let first = RateSummary { from_s: 0.0, rate_bps: link.first_rate.0 };
        let counters = link.counters();
        let capacity = link.capacity_bits(end);
        LinkSummary {
            id: link.name.clone(),
            rate_bps: link.rate().0,
            rates: [first].into_iter().chain(self.changes_until(end).filter_map(rates)).collect(),
            utilization: if capacity > 0.0 { link.sent_bytes(end) * 8.0 / capacity } else { 0.0 },
            arrivals: counters.arrivals,
            drops: counters.drops_full + counters.drops_early,
            early_drops: counters.drops_early,
            marks: counters.marks,
            random_losses: link.loss.lost,
            mean_queue_s: counters.mean_wait().as_s(),
            p99_queue_s: counters.wait_quantile(0.99).as_s(),
            max_queue_packets: counters.max_waiting,
        }
    }

    fn udp_summaries(&self, end: Time) -> Vec<UdpSummary> {
        let summary = |source: &super::UdpState| {
            let mut report = source.report.clone();
            let per_s =
                |packets: u64| packets as f64 * f64::from(source.packet_bytes) * 8.0 / end.as_s().max(1e-12);
            (report.offered_bps, report.received_bps) = (per_s(report.sent), per_s(report.delivered));
            report
        };
        self.udp.iter().map(summary).collect()
    }

    /// Summary of a crowd of flows.
    fn crowd_summary(&mut self, number: usize, end: Time) -> BackgroundSummary {
        let mut report = std::mem::take(&mut self.crowds[number].report);
        let mut delivered = self.crowds[number].delivered_bytes;
        for flow in &mut self.flows[self.reported.len()..] {
            if flow.role == Role::Free || flow.errand.crowd != number {
                continue;
            }
            delivered[flow.direction as usize] += flow.sender.una() * u64::from(flow.payload_bytes);
            let stats = flow.sender.stats(end.max(flow.started));
            report.retransmits += stats.retransmits;
            report.timeouts += stats.timeouts;
        }
        let per_s = |bytes: u64| bytes as f64 * 8.0 / end.as_s().max(1e-12);
        report.name = self.crowds[number].name.take();
        report.offered_bps = self.crowds[number].offered_bytes.map(per_s);
        report.goodput_bps = delivered.map(per_s);
        report
    }

    /// Follows every data packet and every ACK.
    fn check_conservation(&mut self) -> Result<Conservation, SimError> {
        let now = self.now;
        let mut total = std::mem::take(&mut self.retired);
        for flow in &mut self.flows {
            if flow.role != Role::Free {
                total.add(flow, now.max(flow.started));
            }
        }
        let handshakes = &self.handshakes;
        let mut sent = total.sent
            + self.copies
            + handshakes.sent
            + self.udp.iter().map(|source| source.report.sent).sum::<u64>();
        for flow in &self.udt {
            let counts = flow.counts();
            sent += counts.sent;
            total.received += counts.received;
            total.unique += counts.unique;
            total.duplicates += counts.others;
        }
        let received = total.received
            + handshakes.received
            + self.udp.iter().map(|source| source.report.delivered).sum::<u64>();

        // Where a server knows departures, packets are already under way behind it, received or doomed.
        let (mut dropped, mut lost, mut doomed, mut in_queues) = (0, 0, 0, 0);
        for link in &self.links {
            let data = link.data_totals();
            dropped += data.dropped;
            lost += link.loss.lost;
            doomed += link.loss.doomed();
            in_queues += data.arrived - data.dropped - data.sent;
        }
        let (mut data_waiting, mut acks_under_way) = (0, 0);
        for waiting in self.waiting.iter().flatten() {
            if waiting.place.cargo.is_data() {
                data_waiting += 1;
            } else {
                acks_under_way += 1;
            }
        }
        let (mut data_on_wires, mut between_links) = (0, 0);
        for (at, kind, place) in self.transit.parcels() {
            if !place.cargo.is_data() {
                acks_under_way += 1;
                continue;
            }
            data_on_wires += 1;
            if kind == Kind::AtLink {
                let links = &self.routes[usize::from(place.route)].links;
                let before = &self.links[usize::from(links[usize::from(place.hop) - 1])];
                let queued = matches!(before.server, Server::Queued(_));
                between_links += u64::from(queued || at.since(before.delay) <= now);
            }
        }
        let checks = [
            (
                "packets sent and found",
                sent,
                dropped + lost + doomed + data_waiting + data_on_wires + received,
            ),
            (
                "received packets and unique plus duplicate ones",
                total.received,
                total.unique + total.duplicates,
            ),
            ("ACKs sent and found", self.acks_sent, self.acks_taken + self.acks_dropped + acks_under_way),
        ];
        for (what, left, right) in checks {
            if left != right {
                return Err(SimError::NotConserved(format!("{what}: {left} and {right}")));
            }
        }
        let in_flight = in_queues + between_links;
        Ok(Conservation { sent, dropped, lost, in_flight, delivered: sent - dropped - lost - in_flight })
    }
}
