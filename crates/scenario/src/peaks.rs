//! The most that the links of a scenario give at any time of it, and what a tuned host's buffer is for that.

use lfn_path::{AckImpair, Impair, JitterConfig};
use lfn_sim::config::LinkId;
use lfn_units::{Rate, Time};

use crate::config::Sizing;
use crate::model::{Change, Flow, Scenario, Series};
use crate::network::Network;

/// A tuned host's buffer holds so many times what the path holds, and so much at least.
const TUNED_PATHS: f64 = 4.0;
const TUNED_LEAST_BYTES: f64 = 64e6;

/// Extremes of the links over the schedule.
pub(crate) struct Peaks {
    /// The highest rate of each link.
    pub(crate) rates: Vec<Rate>,
    /// Largest increase of a round trip over its first value, by changes and by what holds up ACKs.
    pub(crate) longer: Time,
}

impl Peaks {
    pub(crate) fn of(scenario: &Scenario, network: &Network) -> Peaks {
        let mut rates: Vec<Rate> = network.hops.iter().map(|hop| hop.way.mean_rate()).collect();
        let mut delays: Vec<Time> = network.hops.iter().map(|hop| hop.way.delay).collect();
        let mut detour = Time::ZERO;
        let mut rated = |link: LinkId, rate: Rate| rates[link.index()] = rates[link.index()].max(rate);
        let mut delayed = |link: LinkId, delay: Time| delays[link.index()] = delays[link.index()].max(delay);
        for change in &scenario.schedule {
            match change {
                Change::Link(change) => {
                    change.rate.iter().for_each(|rate| rated(change.number, *rate));
                    change.delay.iter().for_each(|delay| delayed(change.number, *delay));
                }
                Change::File(change) => match &change.series {
                    Series::Rate(rows) => rows.iter().for_each(|row| rated(change.number, row.1)),
                    Series::Delay(rows) => rows.iter().for_each(|row| delayed(change.number, row.1)),
                    Series::Loss(_) => {}
                },
                Change::Route(change) => {
                    let delay =
                        change.links.iter().fold(Time::ZERO, |sum, links| sum.after(network.delay(links)));
                    detour = detour.max(delay);
                }
            }
        }
        let longer = delays.iter().zip(&network.hops).map(|(most, hop)| most.since(hop.way.delay));
        let longer = longer.fold(detour, Time::after);
        let acks = network.hops.iter().filter_map(|hop| hop.way.acks.as_ref()).map(most_late_ack);
        Peaks { rates, longer: acks.fold(longer, Time::after) }
    }
}

/// How late impairments make a packet, at most.
pub(crate) fn most_late(impair: &Impair) -> Time {
    let jitter = match impair.jitter {
        Some(JitterConfig::Uniform(jitter)) => jitter.high,
        Some(JitterConfig::Normal(jitter)) => jitter.mean.after(jitter.mean),
        None => Time::ZERO,
    };
    impair.reorder.map_or(jitter, |reorder| reorder.delay.after(jitter))
}

/// How late an ACK is, at most.
fn most_late_ack(acks: &AckImpair) -> Time {
    most_late(&acks.motion()).after(acks.longest_wait())
}

impl Scenario {
    /// The routes that the data of a group of flows ever take.
    pub(crate) fn data_routes<'a>(
        &'a self,
        group: usize,
        flow: &'a Flow,
    ) -> impl Iterator<Item = &'a [LinkId]> + use<'a> {
        let changed = self.schedule.iter().filter_map(move |change| match change {
            Change::Route(change) if change.group == group => Some(&*change.links[0]),
            _ => None,
        });
        [&*flow.path.links].into_iter().chain(changed)
    }

    /// Packets that the host of each group's flows may hold: what the scenario says, or a tuned host's
    /// buffer.
    pub(crate) fn send_limits(&self, network: &Network, sizing: &Sizing) -> Vec<u64> {
        let peaks = Peaks::of(self, network);
        let path_bytes = |flow: &Flow, links: &[LinkId]| {
            let rate = links.iter().map(|&link| peaks.rates[link.index()]).min().unwrap_or(Rate(0));
            let buffers = links.iter().map(|&link| {
                let way = network.hop(link).way;
                sizing.room_bytes(link, way.queue.size, way.mean_rate())
            });
            rate.as_bps() / 8.0 * flow.rtt.most(flow.count).after(peaks.longer).as_s() + buffers.sum::<f64>()
        };
        let limit = |(group, flow): (usize, &Flow)| {
            let payload_bytes = flow.payload_bytes(self.compat);
            if let Some(buffer) = flow.tcp.as_ref().and_then(|tcp| tcp.send_buffer) {
                return buffer.packets(payload_bytes);
            }
            let paths = self.data_routes(group, flow).map(|links| path_bytes(flow, links));
            let bytes = (TUNED_PATHS * paths.fold(0.0, f64::max)).max(TUNED_LEAST_BYTES);
            (bytes / f64::from(payload_bytes)).ceil() as u64
        };
        self.flow.iter().enumerate().map(limit).collect()
    }
}
