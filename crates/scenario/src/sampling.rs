//! The sampled tables: their size, and how often a run samples where its scenario does not say so.

use lfn_keys::{PerFlow, Spread, Wrong};
use lfn_sim::tables::{FlowTable, ProbeTable, QueueTable};
use lfn_units::Time;

use crate::model::{Flow, Scenario, Transport};
use crate::quantity::Sample;

/// The intervals of which a run takes the first that keeps to its rows. Figures and metrics that count by the second
/// need the last one.
const STEPS_MS: [u64; 7] = [10, 20, 50, 100, 200, 500, 1000];
/// Rows of a run that does not say how many it may have: figures need far fewer. With 10,000 flows, more cost over a
/// fifth of the simulation (`python -m benches --case "10,000 flows"`).
const ROWS: u64 = 4_000_000;

impl Scenario {
    /// Bytes of the rows that samples at this interval add to the tables `flows`, `probes` and `queues`, at most.
    pub(crate) fn sampled_bytes(&self, interval: Sample, links: usize) -> f64 {
        self.sampled(interval, links, row_bytes, QueueTable::ROW_BYTES as f64)
    }

    /// Those rows.
    fn sampled_rows(&self, interval: Sample, links: usize) -> f64 {
        self.sampled(interval, links, |flow| 1.0 + probes(flow) as f64, 1.0)
    }

    /// The sum over all samples: `of_flow` for each flow that has begun, `of_link` for each link.
    fn sampled(&self, interval: Sample, links: usize, of_flow: fn(&Flow) -> f64, of_link: f64) -> f64 {
        let Sample::Every(step) = interval else { return 0.0 };
        let duration_s = self.duration.as_s();
        let samples = |time_s: f64| time_s / step.as_s() + 1.0;
        let flows = self.flow.iter().map(|flow| {
            f64::from(flow.count) * samples((duration_s - begun_s(flow)).max(0.0)) * of_flow(flow)
        });
        flows.sum::<f64>() + links as f64 * samples(duration_s) * of_link
    }

    /// Takes the interval that keeps to `sample_rows`, where the scenario has no `sample`.
    ///
    /// # Errors
    /// With the longest interval there are more rows than it allows.
    pub(crate) fn choose_interval(&mut self, links: usize) -> Result<(), Wrong> {
        let steps = STEPS_MS.map(|ms| Sample::Every(self.duration.min(Time::from_ms(ms))));
        let most = self.sample_rows.take();
        let rows = |step: &Sample| self.sampled_rows(*step, links);
        let longest = steps[STEPS_MS.len() - 1];
        let fitting = steps.into_iter().find(|step| rows(step) <= most.unwrap_or(ROWS) as f64);
        if let (None, Some(most)) = (fitting, most) {
            let hint =
                format!("allowed: at least {:.0}, those of a sample every {longest}", rows(&longest).ceil());
            return Err(Wrong::new(most.to_string(), hint));
        }
        self.sample = fitting.unwrap_or(longest);
        Ok(())
    }
}

/// Variables of its law that a sample of a flow has.
fn probes(flow: &Flow) -> usize {
    let law = flow.control.law().filter(|_| flow.transport() == Transport::Tcp);
    law.map_or(0, |law| law.probes().len())
}

/// Bytes of a sample of a flow.
fn row_bytes(flow: &Flow) -> f64 {
    (FlowTable::ROW_BYTES + probes(flow) * ProbeTable::ROW_BYTES) as f64
}

/// When the flows of a group begin in the mean, at least, in seconds; of drawn times all but 1 in 30,000 draws.
fn begun_s(flow: &Flow) -> f64 {
    match flow.start {
        PerFlow::One(Spread::Uniform(low, high)) => {
            let span_s = high.since(low).as_s();
            // Four standard deviations of the mean.
            let less_s = 4.0 * span_s / (12.0 * f64::from(flow.count)).sqrt();
            low.as_s() + (0.5 * span_s - less_s).max(0.0)
        }
        _ => flow.start.least(flow.count).as_s(),
    }
}
