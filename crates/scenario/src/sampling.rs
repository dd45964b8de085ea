//! The sampled tables: their size, and how often a run samples where its scenario does not say so.

use lfn_sim::tables::{FlowTable, ProbeTable, QueueTable};
use lfn_units::Time;

use crate::model::{Flow, Scenario, Transport};
use crate::quantity::{Sample, Start};

/// The intervals of which a run takes the first whose rows need at most [`ROWS_BYTES`]. Figures and metrics that
/// count by the second need the last one.
const STEPS_MS: [u64; 7] = [10, 20, 50, 100, 200, 500, 1000];
/// Bytes of the sampled rows in memory. Figures need far fewer; a run and its report hold a few copies.
const ROWS_BYTES: f64 = 256e6;

impl Scenario {
    /// Bytes of the rows that samples at this interval add to the tables `flows`, `probes` and `queues`, at most.
    pub(crate) fn sampled_bytes(&self, interval: Sample, links: usize) -> f64 {
        let Sample::Every(step) = interval else { return 0.0 };
        let duration_s = self.duration.as_s();
        let rows = |time_s: f64| time_s / step.as_s() + 1.0;
        let flows = self.flow.iter().map(|flow| {
            f64::from(flow.count) * rows((duration_s - begun_s(flow)).max(0.0)) * row_bytes(flow)
        });
        flows.sum::<f64>() + links as f64 * rows(duration_s) * QueueTable::ROW_BYTES as f64
    }

    /// How often it samples where it does not say so.
    pub(crate) fn default_interval(&self, links: usize) -> Sample {
        let steps = STEPS_MS.map(|ms| Sample::Every(self.duration.min(Time::from_ms(ms))));
        let fits = |step: &Sample| self.sampled_bytes(*step, links) <= ROWS_BYTES;
        steps.into_iter().find(fits).unwrap_or(steps[STEPS_MS.len() - 1])
    }
}

/// Bytes of a sample of a flow.
fn row_bytes(flow: &Flow) -> f64 {
    let law = flow.control.law().filter(|_| flow.transport() == Transport::Tcp);
    let probes = law.map_or(0, |law| law.probes().len());
    (FlowTable::ROW_BYTES + probes * ProbeTable::ROW_BYTES) as f64
}

/// When the flows of a group begin in the mean, at least, in seconds; of drawn times all but 1 in 30,000 draws.
fn begun_s(flow: &Flow) -> f64 {
    match flow.start {
        Start::At(time) => time.as_s(),
        Start::Uniform(low, high) => {
            let span_s = high.since(low).as_s();
            // Four standard deviations of the mean.
            let less_s = 4.0 * span_s / (12.0 * f64::from(flow.count)).sqrt();
            low.as_s() + (0.5 * span_s - less_s).max(0.0)
        }
    }
}
