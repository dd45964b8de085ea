//! The end of a run: every packet accounted for, and the run in numbers.

use lfn_law::ONE;
use lfn_units::Time;

use super::{mix, Hop, Outcome, Queued, Sim, SimError};
use crate::flow::{Flow, Role};
use crate::summary::{BackgroundSummary, Conservation, FlowSummary, LinkSummary, Memory, Summary};

/// Counts of flows whose place was taken by another.
#[derive(Default)]
pub(super) struct Retired {
    sent: [u64; 2],
    received: [u64; 2],
    unique: [u64; 2],
    duplicates: [u64; 2],
}

impl Retired {
    pub(super) fn add(&mut self, flow: &mut Flow, now: Time) {
        let at = flow.direction as usize;
        self.sent[at] += flow.sender.stats(now).sent;
        self.received[at] += flow.receiver.received();
        self.unique[at] += flow.receiver.next_expected() + flow.receiver.out_of_order();
        self.duplicates[at] += flow.receiver.duplicates();
    }
}

impl Sim {
    /// Ends the run at the time reached.
    ///
    /// # Errors
    /// [`SimError::NotConserved`] if a packet was lost or made by the engine itself.
    pub fn finish(mut self) -> Result<Outcome, SimError> {
        let end = self.now;
        for hop in &mut self.hops {
            hop.link.advance(end);
            hop.loss.settle(end);
        }
        let conservation = self.check_conservation()?;
        let flows: Vec<FlowSummary> =
            (0..self.reported.len()).map(|index| self.flow_summary(index, end)).collect();
        let links: Vec<LinkSummary> = self
            .hops
            .iter()
            .zip(["forward", "reverse"])
            .map(|(hop, id)| self.link_summary(hop, id, end))
            .collect();
        let goodputs: Vec<f64> = flows.iter().map(|flow| flow.goodput_bps).collect();
        let sum: f64 = goodputs.iter().sum();
        let squares: f64 = goodputs.iter().map(|x| x * x).sum();
        let covs: Vec<f64> = flows.iter().filter_map(|flow| flow.cov).collect();
        let mut hash = self.hash;
        for flow in &flows {
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
        let memory = Memory {
            bytes_per_flow: std::mem::size_of::<Flow>(),
            packet_bytes: self
                .flows
                .iter()
                .map(|flow| flow.sender.memory_bytes() + flow.receiver.memory_bytes())
                .sum::<usize>()
                + self.transit.memory_bytes()
                + self.hops.iter().map(|hop| hop.link.memory_bytes()).sum::<usize>(),
        };
        let summary = Summary {
            hash: format!("{hash:016x}"),
            seed: self.config_seed,
            sim_s: end.as_s(),
            warmup_s: self.warmup.as_s(),
            data_packets_delivered: self.hops.iter().map(|hop| hop.link.data_totals().sent).sum(),
            events: self.processed,
            jain: (squares > 0.0).then(|| sum * sum / (goodputs.len() as f64 * squares)),
            cov: (!covs.is_empty()).then(|| covs.iter().sum::<f64>() / covs.len() as f64),
            flows,
            links,
            background: self.background_summary(end),
            conservation,
            memory,
        };
        Ok(Outcome { summary, tables: self.tables })
    }

    fn flow_summary(&mut self, index: usize, end: Time) -> FlowSummary {
        let config = &self.reported[index];
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
            id: index as u32,
            law: config.law.to_string(),
            direction: config.direction.name(),
            rtt_s: config.rtt.as_s(),
            start_s: config.start.as_s(),
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
            cov: self.bins[index].cov(),
            completion_s: flow
                .finished
                .filter(|_| flow.is_done() && config.size_segments != u64::MAX)
                .map(|at| at.since(flow.started).as_s()),
        }
    }

    fn link_summary(&self, hop: &Hop, id: &'static str, end: Time) -> LinkSummary {
        let counters = hop.link.counters();
        let seconds = end.since(self.warmup).as_s();
        let capacity = hop.link.rate().as_bps() * seconds;
        LinkSummary {
            id,
            rate_bps: hop.link.rate().0,
            utilization: if capacity > 0.0 { counters.sent_bytes as f64 * 8.0 / capacity } else { 0.0 },
            arrivals: counters.arrivals,
            drops: counters.drops_full + counters.drops_early,
            early_drops: counters.drops_early,
            marks: counters.marks,
            random_losses: hop.loss.lost,
            mean_queue_s: counters.mean_wait().as_s(),
            p99_queue_s: counters.wait_quantile(0.99).as_s(),
            max_queue_packets: counters.max_waiting,
        }
    }

    fn background_summary(&mut self, end: Time) -> Option<BackgroundSummary> {
        self.background.setup.as_ref()?;
        let mut report = std::mem::take(&mut self.background.report);
        let mut delivered = self.background.delivered_bytes;
        for flow in &mut self.flows[self.reported.len()..] {
            if flow.role == Role::Free {
                continue;
            }
            delivered[flow.direction as usize] += flow.sender.una() * u64::from(flow.payload_bytes);
            let stats = flow.sender.stats(end.max(flow.started));
            report.retransmits += stats.retransmits;
            report.timeouts += stats.timeouts;
        }
        let per_s = |bytes: u64| bytes as f64 * 8.0 / end.as_s().max(1e-12);
        report.offered_bps = self.background.offered_bytes.map(per_s);
        report.goodput_bps = delivered.map(per_s);
        Some(report)
    }

    /// Follows every data packet and every ACK.
    fn check_conservation(&mut self) -> Result<Conservation, SimError> {
        let now = self.now;
        let mut total = std::mem::take(&mut self.retired);
        let mut acks_under_way = self.transit.len() as u64;
        for flow in &mut self.flows {
            if flow.role != Role::Free {
                total.add(flow, now.max(flow.started));
            }
        }
        let mut sum = Conservation::default();
        for (at, hop) in self.hops.iter().enumerate() {
            let data = hop.link.data_totals();
            let queued_acks =
                hop.queued.iter().filter(|packet| matches!(packet, Queued::Ack { .. })).count() as u64;
            acks_under_way += queued_acks;
            let in_queue = data.arrived - data.dropped - data.sent;
            // In closed form a receiver has what has not yet left the queue, or it is chosen to be lost.
            let reached = if hop.event_mode { data.sent } else { data.sent + in_queue };
            let lost = hop.loss.lost + hop.loss.chosen.len() as u64;
            let checks = [
                ("senders' packets and the link's arrivals", total.sent[at], data.arrived),
                ("packets behind the queue and the receivers'", reached, total.received[at] + lost),
                (
                    "received packets and unique plus duplicate ones",
                    total.received[at],
                    total.unique[at] + total.duplicates[at],
                ),
            ];
            for (what, left, right) in checks {
                if left != right {
                    return Err(SimError::NotConserved(format!("link {at}: {what}: {left} and {right}")));
                }
            }
            sum.sent += total.sent[at];
            sum.dropped += data.dropped;
            sum.lost += hop.loss.lost;
            sum.in_flight += in_queue;
        }
        sum.delivered = sum.sent - sum.dropped - sum.lost - sum.in_flight;
        let acks = self.acks_taken + self.acks_dropped + acks_under_way;
        if self.acks_sent != acks {
            return Err(SimError::NotConserved(format!("ACKs: {} sent, {acks} found", self.acks_sent)));
        }
        Ok(sum)
    }
}
