//! The end of a run: every packet accounted for, and the run in numbers.

use super::sim::Sim;
use crate::ends::context::Context;
use crate::ends::flow::Flow;
use crate::ends::record::mix;
use crate::ends::Ends;
use crate::error::SimError;
use crate::network::Found;
use crate::summary::{Conservation, FlowSummary, LinkSummary, Memory, Summary};
use crate::tables::Tables;

/// A finished run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// In numbers.
    pub summary: Summary,
    /// Columns.
    pub tables: Tables,
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
    /// [`SimError::NotConserved`] if a packet was lost or made by the engine itself, [`SimError::BeyondBounds`] if a result is
    /// beyond what the path allows.
    pub fn finish(mut self) -> Result<Outcome, SimError> {
        let end = self.now();
        self.settle(end);
        self.context.network.advance(end);
        let conservation = self.check_conservation()?;
        let streams: Vec<FlowSummary> =
            self.connections.iter().map(|&it| self.ends.summary(it, end, &self.context)).collect();
        let mut flows = in_sum(&streams);
        for flow in &mut flows {
            flow.cov = self.transfers[flow.id as usize].cov();
        }
        let links = self.context.network.summaries(end);
        self.check_bounds(&flows, &links, end)?;
        let goodputs: Vec<f64> = flows.iter().filter_map(|flow| flow.goodput_bps).collect();
        let sum: f64 = goodputs.iter().sum();
        let squares: f64 = goodputs.iter().map(|x| x * x).sum();
        let covs: Vec<f64> = flows.iter().filter_map(|flow| flow.cov).collect();
        let Ends { tcp, sources, udp, .. } = &mut self.ends;
        let mut sources = sources.summaries(tcp, end);
        // The background comes first, and is the one without a name.
        let has_background = sources.first().is_some_and(|source| source.name.is_none());
        let background = has_background.then(|| sources.remove(0));
        let mut changes_s: Vec<f64> =
            self.context.network.changes_until(end).map(|change| change.at.in_s()).collect();
        changes_s.dedup();
        let summary = Summary {
            hash: format!("{:016x}", hash_of(self.context.record.hash, &streams, &links)),
            seed: self.seed,
            sim_s: end.in_s(),
            warmup_s: self.context.record.warmup.in_s(),
            data_packets_delivered: self.context.network.data_packets_sent(),
            events: self.context.record.events,
            jain: (goodputs.len() > 1 && squares > 0.0)
                .then(|| sum * sum / (goodputs.len() as f64 * squares)),
            cov: (!covs.is_empty()).then(|| covs.iter().sum::<f64>() / covs.len() as f64),
            flows,
            links,
            changes_s,
            udp: udp.summaries(end),
            captured_rows: self.context.network.recorded_rows(),
            background,
            traffic: sources,
            conservation,
            memory: Memory { bytes_per_flow: size_of::<Flow>(), packet_bytes: self.packet_bytes() },
        };
        let mut tables = self.context.record.tables;
        if let Some(packets) = self.context.network.into_recorded() {
            tables.packets = packets;
        }
        Ok(Outcome { summary, tables })
    }

    /// Follows every data packet and every ACK.
    fn check_conservation(&mut self) -> Result<Conservation, SimError> {
        let now = self.now();
        let Ends { tcp, udt, udp, stacks, .. } = &mut self.ends;
        let Context { network, scheduler, .. } = &self.context;
        let (of_tcp, of_udt) = (tcp.counts(now), udt.counts());
        let ((handshakes_sent, handshakes_received), (udp_sent, udp_received)) =
            (tcp.handshake_packets(), udp.packets());
        let (stacks_sent, stacks_received) = stacks.packets();
        let found = network.found(scheduler);
        let sent = of_tcp.sent + found.copies + handshakes_sent + udp_sent + of_udt.sent + stacks_sent;
        let (flows_received, flows_unique, flows_others) = (
            of_tcp.received + of_udt.received,
            of_tcp.unique + of_udt.unique,
            of_tcp.duplicates + of_udt.others,
        );
        let received = flows_received + handshakes_received + udp_received + stacks_received;
        let ((acks_sent, acks_taken), (controls_sent, controls_taken)) = (tcp.acks(), udt.controls());
        let checks = [
            (
                "packets sent and found",
                sent,
                found.dropped + found.lost + found.doomed + found.data_under_way + received,
            ),
            ("received packets and unique plus duplicate ones", flows_received, flows_unique + flows_others),
            (
                "ACKs sent and found",
                acks_sent + controls_sent,
                acks_taken + controls_taken + found.acks_dropped + found.acks_under_way,
            ),
        ];
        for (what, left, right) in checks {
            if left != right {
                return Err(SimError::NotConserved(format!("{what}: {left} and {right}")));
            }
        }
        let Found { dropped, lost, in_flight, .. } = found;
        Ok(Conservation { sent, dropped, lost, in_flight, delivered: sent - dropped - lost - in_flight })
    }
}

/// The hash of a run, with its numbers.
fn hash_of(mut hash: u64, streams: &[FlowSummary], links: &[LinkSummary]) -> u64 {
    for flow in streams {
        for word in [flow.sent, flow.retransmits, flow.timeouts, flow.delivered_bytes] {
            hash = mix(hash, word);
        }
    }
    for link in links {
        for word in [
            link.arrivals - link.held_before,
            link.drops,
            link.marks,
            link.random_losses,
            link.mean_queue_s.to_bits(),
        ] {
            hash = mix(hash, word);
        }
    }
    hash
}
