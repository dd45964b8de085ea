//! The figures that scenarios assert.

use std::fmt;
use std::ops::RangeInclusive;

use lfn_sim::tables::FlowTable;
use lfn_sim::Outcome;

/// A rate holds for so long before it counts.
const HOLDS_S: f64 = 0.5;
/// The rate that a recovered flow has, of the link's.
const RECOVERED: f64 = 0.8;

/// A figure of a scenario; flows are those of the controller under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Goodput of all flows over the whole run, in parts of the link's rate.
    Goodput,
    /// Packets sent again, in parts of those sent.
    Loss,
    /// Mean time that packets wait before the link, in seconds.
    Queue,
    /// Goodput, of each flow while it is active, in parts of that of all flows, other laws' included.
    Share,
    /// Jain's index of the flows' goodput, at most 1 (RFC 5166, section 2.3).
    Fairness,
    /// Time from the change of the path until the first flow has 0.8 of the link's rate for half a second, in seconds; infinite
    /// if it never has.
    Recovery,
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Measure::Goodput => "goodput",
            Measure::Loss => "loss",
            Measure::Queue => "queue",
            Measure::Share => "share",
            Measure::Fairness => "fairness",
            Measure::Recovery => "recovery",
        })
    }
}

impl Measure {
    /// A value with its unit.
    fn value(self, value: f64) -> String {
        match self {
            Measure::Fairness => format!("{value:.3}"),
            Measure::Queue => format!("{:.1} ms", value * 1e3),
            Measure::Recovery if value.is_infinite() => "never".into(),
            Measure::Recovery => format!("{value:.2} s"),
            Measure::Loss => format!("{:.2} %", value * 100.0),
            Measure::Goodput | Measure::Share => format!("{:.1} %", value * 100.0),
        }
    }

    pub(crate) fn words(self, found: f64) -> String {
        format!("{self} {}", self.value(found))
    }

    pub(crate) fn failure(self, found: f64, allowed: &RangeInclusive<f64>) -> String {
        let (least, most) = (*allowed.start(), *allowed.end());
        let allowed = if most == f64::INFINITY || least > 0.0 && most >= 1.0 {
            format!("at least {}", self.value(least))
        } else if least <= 0.0 {
            format!("at most {}", self.value(most))
        } else {
            format!("{} to {}", self.value(least), self.value(most))
        };
        format!("{}; allowed: {allowed}", self.words(found))
    }

    /// Of the first `own` flows; a rate of the link is `rate_bps`, from `changes_s` on.
    pub(crate) fn of(self, own: usize, rate_bps: f64, changes_s: f64, outcome: &Outcome) -> f64 {
        let summary = &outcome.summary;
        let own = &summary.flows[..own];
        let goodput = |flows: &[lfn_sim::FlowSummary]| -> Vec<f64> {
            flows.iter().map(|flow| flow.goodput_bps.unwrap_or(0.0)).collect()
        };
        let rates = goodput(own);
        let sum: f64 = rates.iter().sum();
        match self {
            Measure::Goodput => {
                let delivered: u64 = own.iter().map(|flow| flow.delivered_bytes).sum();
                delivered as f64 * 8.0 / summary.sim_s / rate_bps
            }
            Measure::Loss => {
                let sent: u64 = own.iter().map(|flow| flow.sent).sum();
                own.iter().map(|flow| flow.retransmits).sum::<u64>() as f64 / sent.max(1) as f64
            }
            Measure::Queue => summary.links[0].mean_queue_s,
            Measure::Share => sum / goodput(&summary.flows).iter().sum::<f64>().max(1.0),
            Measure::Fairness => {
                let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
                sum * sum / (rates.len() as f64 * squares).max(1.0)
            }
            Measure::Recovery => recovery(rate_bps, changes_s, &outcome.tables.flows),
        }
    }
}

fn recovery(rate_bps: f64, changes_s: f64, flows: &FlowTable) -> f64 {
    let rows = (0..flows.t_s.len()).filter(|&row| flows.flow[row] == 0);
    let rows: Vec<(f64, u64)> = rows.map(|row| (flows.t_s[row], flows.delivered_bytes[row])).collect();
    let mut end = 0;
    for &(t_s, delivered) in rows.iter().filter(|row| row.0 >= changes_s) {
        while end < rows.len() && rows[end].0 < t_s + HOLDS_S {
            end += 1;
        }
        let Some(&(then_s, by_then)) = rows.get(end) else { break };
        if (by_then - delivered) as f64 * 8.0 >= RECOVERED * rate_bps * (then_s - t_s) {
            return t_s - changes_s;
        }
    }
    f64::INFINITY
}
