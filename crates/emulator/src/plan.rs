//! What of a scenario runs on real stacks: its path, and who sends when.

use lfn_sim::background::Direction;
use lfn_sim::config::{Changed, Config};
use lfn_units::Time;
use serde::Serialize;

/// A scenario for a test bed: flows of one path, which starts a while after everything is set up.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// How long it runs.
    pub duration_s: f64,
    /// Where averages begin.
    pub warmup_s: f64,
    /// How often flows and links are looked at.
    pub sample_s: f64,
    /// The flows, in their order.
    pub flows: Vec<PlannedFlow>,
    /// The links, in their order.
    pub links: Vec<PlannedLink>,
    /// When links change.
    pub changes_s: Vec<f64>,
}

/// A link's rates.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedLink {
    /// Its name.
    pub id: String,
    /// Each until the next; of a trace the mean.
    pub rates: Vec<PlannedRate>,
}

/// A rate from some time on.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PlannedRate {
    /// When it begins.
    pub from_s: f64,
    /// In bit/s.
    pub rate_bps: f64,
}

/// Who sends, and when.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedFlow {
    /// NAME or NAME:VARIANT.
    pub law: String,
    /// When it begins.
    pub start_s: f64,
    /// When it ends, if before the end of the run.
    pub stop_s: Option<f64>,
    /// Payload to deliver; none for no end.
    pub size_bytes: Option<u64>,
    /// Base round-trip time.
    pub rtt_s: f64,
    /// Payload of a full segment.
    pub segment_bytes: u32,
    /// A full packet on the wire.
    pub wire_bytes: u32,
}

impl Plan {
    /// What of a simulation a test bed can do.
    ///
    /// # Errors
    /// What of it a test bed cannot do, and what it can.
    pub fn of(config: &Config) -> Result<Plan, String> {
        if !config.udt.is_empty() {
            return Err("a flow is driven over UDT; a test bed has TCP alone".into());
        }
        let Some(first) = config.flows.first() else { return Err("no flow; write a [[flow]]".into()) };
        let path =
            |flow: &lfn_sim::config::FlowConfig| (flow.route, flow.ack_route, flow.rtt, flow.wire_bytes);
        if let Some(number) = config.flows.iter().position(|flow| path(flow) != path(first)) {
            return Err(format!(
                "flow {number} has another path, RTT or packet than flow 0; a test bed has one of each"
            ));
        }
        if first.direction == Direction::Reverse {
            return Err("flows send in reverse; a test bed sends forward".into());
        }
        if config.flows.iter().any(|flow| flow.stream > 0) {
            return Err("a flow has parallel streams; write count in place of parallel".into());
        }
        if config.background.is_some() || !config.traffic.is_empty() || !config.udp.is_empty() {
            return Err("there is other traffic than [[flow]]; a test bed has none".into());
        }
        if config.changes.iter().any(|change| matches!(change.what, Changed::Route { .. })) {
            return Err("a route changes; a test bed has one path".into());
        }
        let Some(sample) = config.sample else { return Err("sample is off; a test bed samples".into()) };
        let flows = config.flows.iter().map(|flow| PlannedFlow {
            law: flow.law.to_string(),
            start_s: flow.start.as_s(),
            stop_s: (flow.stop < Time::NEVER).then(|| flow.stop.as_s()),
            size_bytes: (flow.size_segments < u64::MAX)
                .then(|| flow.size_segments.saturating_mul(flow.payload_bytes.into())),
            rtt_s: flow.rtt.as_s(),
            segment_bytes: flow.payload_bytes,
            wire_bytes: flow.wire_bytes,
        });
        let links = config.links.iter().enumerate().map(|(number, link)| {
            let begin = PlannedRate { from_s: 0.0, rate_bps: link.service.mean_rate().as_bps() };
            let changes = config.changes.iter().filter_map(|change| match change.what {
                Changed::Rate(at, rate) if usize::from(at) == number => {
                    Some(PlannedRate { from_s: change.at.as_s(), rate_bps: rate.as_bps() })
                }
                _ => None,
            });
            PlannedLink { id: link.name.clone(), rates: std::iter::once(begin).chain(changes).collect() }
        });
        Ok(Plan {
            links: links.collect(),
            changes_s: config.changes.iter().map(|change| change.at.as_s()).collect(),
            duration_s: config.duration.as_s(),
            warmup_s: config.warmup.as_s(),
            sample_s: sample.as_s(),
            flows: flows.collect(),
        })
    }
}
