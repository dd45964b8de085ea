//! The tables of a run as curves: on a common time axis, thinned to what a picture shows.

use std::collections::BTreeMap;

use lfn_sim::{Summary, Tables};
use serde::Serialize;

/// Intervals of a longer curve. Each gives its smallest and its largest value, in their order.
const INTERVALS: usize = 500;
/// Flows that are drawn.
const FLOWS: usize = 12;
/// Flows of which the variables of the law are drawn.
const FLOWS_WITH_PROBES: usize = 4;
/// Rows of the list of congestion events.
const EVENTS: usize = 1000;
/// A run from which on goodput has bins of 1 s; a shorter one has bins of 100 ms.
const LONG_S: f64 = 15.0;

/// The curves of a run.
#[derive(Serialize)]
pub(crate) struct Curves {
    /// Times of the samples, in s.
    t: Vec<f64>,
    /// Of each drawn flow.
    flows: Vec<FlowCurves>,
    /// Packets that wait at each link.
    queues: Vec<Vec<Option<f64>>>,
    /// Ends of the bins of goodput, in s.
    goodput_t: Vec<f64>,
    goodput_bin_s: f64,
    /// Congestion events of the drawn flows, in order of time.
    events: Vec<Event>,
}

#[derive(Serialize)]
struct FlowCurves {
    id: u32,
    cwnd_seg: Vec<Option<f64>>,
    inflight_seg: Vec<Option<f64>>,
    /// Mean in each bin, in bit/s.
    goodput_bps: Vec<Option<f64>>,
    /// Variables of the law, in its order.
    probes: Vec<Vec<Option<f64>>>,
}

#[derive(Serialize)]
struct Event {
    t_s: f64,
    flow: u32,
    kind: u8,
    cwnd_before_seg: f64,
    ssthresh_seg: f64,
}

/// A curve: the number of the sample, and the value.
type Samples = Vec<(usize, f64)>;

/// Where the samples are on the axis.
struct Axis {
    samples: usize,
    /// Samples in an interval; 1: every sample is drawn.
    each: usize,
}

impl Axis {
    fn new(samples: usize) -> Axis {
        let each = if samples <= 2 * INTERVALS { 1 } else { samples.div_ceil(INTERVALS) };
        Axis { samples, each }
    }

    /// The times of the points.
    fn times(&self, grid: &[f64]) -> Vec<f64> {
        if self.each == 1 {
            return grid.iter().copied().map(short).collect();
        }
        let points = grid.chunks(self.each).flat_map(|part| [part[0], part[part.len() / 2]]);
        points.map(short).collect()
    }

    /// The values at the points.
    fn thinned(&self, samples: &Samples) -> Vec<Option<f64>> {
        if self.each == 1 {
            let mut values = vec![None; self.samples];
            for &(place, value) in samples {
                values[place] = finite(value);
            }
            return values;
        }
        let mut values = vec![None; 2 * self.samples.div_ceil(self.each)];
        for part in samples.chunk_by(|a, b| a.0 / self.each == b.0 / self.each) {
            let by_value = |a: &&(usize, f64), b: &&(usize, f64)| a.1.total_cmp(&b.1);
            let (Some(least), Some(most)) = (part.iter().min_by(by_value), part.iter().max_by(by_value))
            else {
                continue;
            };
            let (first, second) = if least.0 <= most.0 { (least, most) } else { (most, least) };
            let place = 2 * (part[0].0 / self.each);
            (values[place], values[place + 1]) = (finite(first.1), finite(second.1));
        }
        values
    }
}

impl Curves {
    pub(crate) fn new(summary: &Summary, tables: &Tables) -> Curves {
        let flows = some(summary.flows.iter().map(|flow| flow.id).collect());
        let mut grid: Vec<f64> = tables.queues.t_s.clone();
        grid.extend_from_slice(&tables.flows.t_s);
        grid.sort_by(f64::total_cmp);
        grid.dedup();
        let axis = Axis::new(grid.len());
        let place = |t_s: f64| grid.partition_point(|&t| t < t_s);

        let mut queues = vec![Samples::new(); summary.links.len()];
        let rows = tables.queues.t_s.iter().zip(&tables.queues.link).zip(&tables.queues.packets);
        for ((&t_s, &link), &packets) in rows {
            queues[usize::from(link)].push((place(t_s), f64::from(packets)));
        }
        let step_s = grid.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
        let bin_s = if summary.sim_s >= LONG_S { 1.0 } else { 0.1 };
        let bin_s = if step_s.is_finite() { f64::max(bin_s, step_s) } else { bin_s };
        let bins = if grid.is_empty() { 0 } else { (summary.sim_s / bin_s + 1e-9) as usize };
        let goodput_t: Vec<f64> = (1..=bins).map(|bin| bin as f64 * bin_s).collect();
        let probes = probes(tables, &flows, place);
        let drawn = flows.iter().enumerate().map(|(number, &id)| {
            let columns = &tables.flows;
            let rows: Vec<usize> = (0..columns.t_s.len()).filter(|&row| columns.flow[row] == id).collect();
            let curve = |value: &dyn Fn(usize) -> f64| {
                let samples = rows.iter().map(|&row| (place(columns.t_s[row]), value(row))).collect();
                axis.thinned(&samples)
            };
            FlowCurves {
                id,
                cwnd_seg: curve(&|row| columns.cwnd_seg[row]),
                inflight_seg: curve(&|row| f64::from(columns.inflight_seg[row])),
                goodput_bps: goodput(tables, &rows, &goodput_t, bin_s),
                probes: probes
                    .get(number)
                    .into_iter()
                    .flatten()
                    .map(|samples| axis.thinned(samples))
                    .collect(),
            }
        });
        let drawn = drawn.collect();
        Curves {
            t: axis.times(&grid),
            flows: drawn,
            queues: queues.iter().map(|samples| axis.thinned(samples)).collect(),
            goodput_t: goodput_t.into_iter().map(short).collect(),
            goodput_bin_s: bin_s,
            events: events(tables, &flows),
        }
    }
}

/// At most [`FLOWS`] of the flows, evenly spaced.
fn some(flows: Vec<u32>) -> Vec<u32> {
    let count = flows.len();
    if count <= FLOWS {
        return flows;
    }
    (0..FLOWS).map(|i| flows[i * (count - 1) / (FLOWS - 1)]).collect()
}

/// The variables of the laws of the first flows.
fn probes(tables: &Tables, flows: &[u32], place: impl Fn(f64) -> usize) -> Vec<Vec<Samples>> {
    let drawn = &flows[..flows.len().min(FLOWS_WITH_PROBES)];
    let mut found: Vec<BTreeMap<u8, Samples>> = drawn.iter().map(|_| BTreeMap::new()).collect();
    let rows = tables.probes.t_s.iter().zip(&tables.probes.flow);
    for (row, (&t_s, flow)) in rows.enumerate() {
        if let Some(number) = drawn.iter().position(|id| id == flow) {
            let of_flow = found[number].entry(tables.probes.probe[row]).or_default();
            of_flow.push((place(t_s), tables.probes.value[row]));
        }
    }
    found.into_iter().map(|of_flow| of_flow.into_values().collect()).collect()
}

/// Payload that arrived in each bin, per second; none before the flow begins.
fn goodput(tables: &Tables, rows: &[usize], ends_s: &[f64], bin_s: f64) -> Vec<Option<f64>> {
    let flows = &tables.flows;
    let (mut next, mut before, mut has_begun) = (0, 0, false);
    let bin = |&end_s: &f64| {
        let mut now = before;
        while next < rows.len() && flows.t_s[rows[next]] <= end_s + 1e-9 {
            now = flows.arrived_bytes[rows[next]];
            has_begun = true;
            next += 1;
        }
        let bits = (now - before) as f64 * 8.0;
        before = now;
        has_begun.then(|| short(bits / bin_s))
    };
    ends_s.iter().map(bin).collect()
}

fn events(tables: &Tables, flows: &[u32]) -> Vec<Event> {
    let events = &tables.events;
    let rows = (0..events.t_s.len()).filter(|&row| flows.contains(&events.flow[row]));
    rows.take(EVENTS)
        .map(|row| Event {
            t_s: events.t_s[row],
            flow: events.flow[row],
            kind: events.kind[row],
            cwnd_before_seg: short(events.cwnd_before_seg[row]),
            ssthresh_seg: short(events.ssthresh_seg[row]),
        })
        .collect()
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then(|| short(value))
}

/// A number of six digits, which is short as text.
fn short(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}
