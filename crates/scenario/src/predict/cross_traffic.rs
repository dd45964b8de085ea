//! Short flows and connections that are open at once: of the background and of models of traffic.

use lfn_path::AqmConfig;
use lfn_sim::config::LinkId;
use lfn_units::Time;

use super::demand::{background_load_bps, pile_up};
use super::loads::{Basis, Load, TIMEOUT_S};
use crate::peaks::most_late;

/// Connections that pile up while a link is down need as long again to end.
const PILE_TIMES: f64 = 2.0;
/// Short background flows at once for each Mbit/s of load: 12 begin in a second, and take three round trips of 0.1 s.
/// How many more for each second that they queue.
const FLOWS_PER_MBITPS: f64 = 2.9;
const FLOWS_PER_MBITPS_AND_QUEUEING_S: f64 = 19.0;
/// How many more where others overflow a queue for a second or longer: some of the short flows lose packets, and wait for
/// timeouts.
const DISTURBED_FLOWS_PER_MBITPS: f64 = 2.8;
/// The same where a queue holds few packets, or fewer than there are long flows: a short flow often loses its first
/// packets, and waits for timeouts of a second and longer ones.
const STARVED_FLOWS_PER_MBITPS: f64 = 28.0;
/// Where the long flows give way to losses, a fifth of the short ones that begin waits for timeouts, and so many are added
/// in each second.
const STARVED_FLOWS_PER_MBITPS_AND_S: f64 = 2.6;
/// So few, of the largest.
const STARVED_PACKETS: f64 = 10.0;
/// Connections of a model of traffic at once there, over those elsewhere.
const STARVED_TIMES: f64 = 2.0;
/// Where packets get out of order or flows do not give way, at each such queue this share of the connections that begin
/// piles up: it often overflows, and timeouts let connections end later than others begin.
const PILED_OF_CONNECTIONS: f64 = 0.06;
/// Of the background's short flows, at each such queue behind the link that changes the order.
const PILED_OF_SHORT_FLOWS: f64 = 0.16;
/// Packets of a short flow. One that loses some of them often waits for a timeout.
const SHORT_FLOW_PACKETS: f64 = 10.0;
/// Share of its packets that a queue loses for good where BBR overflows it: it probes with 1.25 times what arrives, and
/// no loss of less than a fifth lowers its rate.
const BORNE_LOSS: f64 = 0.2;
/// Of a sum of timeouts, the first is this part at least.
const LEAST_PART: f64 = 0.25;
/// Interactive sessions that begin in a second for each Mbit/s of load, and the most at once in both directions: they
/// last longer than most runs.
const SESSIONS_PER_MBITPS_AND_S: f64 = 0.07;
const SESSIONS_MOST: f64 = 4000.0;
/// Short flows keep as many packets as their load sends in this time, in seconds.
const PACKETS_S: f64 = 0.25;
const DISTURBED_PACKETS_S: f64 = 0.5;
/// FQ-CoDel keeps short flows apart from so many others at most: of its 1,024 queues few are theirs.
const FLOWS_APART: f64 = 50.0;
/// Short background flows that begin in a second for each Mbit/s of load.
const FLOWS_PER_MBITPS_AND_S: f64 = 13.0;
/// Window of a short flow in packets. A place that once held a large flow keeps room for it; in each second so many
/// of the places get one.
const WINDOW_PACKETS: f64 = 45.0;
const LARGE_PER_S: f64 = 0.08;
/// Packets outstanding of a long background flow.
const LONG_FLOW_PACKETS: f64 = 20.0;
/// A packet of the background on the wire.
const WIRE_BYTES: f64 = 1514.0;
/// The part of the background's load that travels in reverse.
const REVERSE: f64 = 1.0 / 3.0;
/// An ACK on the wire.
const ACK_BYTES: f64 = 66.0;
/// Bytes on the wire over those of the load: headers and retransmissions.
const WIRE_PER_LOAD: f64 = 1.15;

/// Flows that are not listed one by one, and their packets.
#[derive(Default)]
pub(crate) struct CrossTraffic {
    pub(crate) long_flows: f64,
    pub(crate) short_flows: f64,
    /// Short flows that cannot end.
    pub(crate) piled: f64,
    /// Connections of models of traffic.
    pub(crate) connections: f64,
    /// Packets in flight.
    pub(crate) in_flight: f64,
    /// Packets for which their senders keep room.
    pub(crate) kept: f64,
    /// Packets that leave links.
    pub(crate) packets: f64,
}

/// A time in which a link has one rate.
struct Course {
    /// Over its first rate; 0 while it is down.
    rate: f64,
    /// The time, and as long again if the run lasts that long.
    piling_s: f64,
}

/// Share that piles up at so many queues, each of which keeps this share.
fn piled(share: f64, queues: usize) -> f64 {
    1.0 - (1.0 - share).powf(queues as f64)
}

impl Basis<'_> {
    pub(crate) fn cross_traffic(&self) -> CrossTraffic {
        let mut cross = self.background();
        self.add_models(&mut cross);
        cross
    }

    fn background(&self) -> CrossTraffic {
        let background = &self.paths.scenario.background;
        let load_bps = background_load_bps(self.paths.scenario, &self.paths.network);
        let long_flows = 2.0 * f64::from(background.long_flows);
        let per_s = FLOWS_PER_MBITPS_AND_S * load_bps / 1e6;
        // Hardly more at once than begin in all.
        let begun = 100.0 + per_s * self.duration_s;
        let ways = [(&*background.path.links, 1.0 - REVERSE), (&*background.ack_links, REVERSE)];
        let piling_s = ways.into_iter().map(|(way, part)| self.piling_s(way, part, load_bps));
        let behind = ways.into_iter().flat_map(|(way, _)| {
            way.iter()
                .skip_while(|&&link| !self.changes_order(link))
                .skip(1)
                .filter(|&&link| self.is_starved(link))
        });
        let bursts = self.duration_s * piled(PILED_OF_SHORT_FLOWS, behind.count());
        let piled = per_s * (piling_s.sum::<f64>() + bursts).min(self.duration_s);
        let packets_s = if self.is_disturbed() { DISTURBED_PACKETS_S } else { PACKETS_S };
        let sessions = (SESSIONS_PER_MBITPS_AND_S * load_bps / 1e6 * self.duration_s).min(SESSIONS_MOST);
        // Those that piled up are among those that began.
        let short_flows = (self.flows_per_mbitps() * load_bps / 1e6 + sessions).min(begun - piled).max(0.0);
        let large = short_flows * (LARGE_PER_S * self.duration_s).min(1.0);
        CrossTraffic {
            long_flows,
            short_flows,
            piled,
            in_flight: LONG_FLOW_PACKETS * long_flows + packets_s * load_bps / 8.0 / WIRE_BYTES,
            kept: WINDOW_PACKETS * large,
            packets: load_bps / 8.0 * self.duration_s / WIRE_BYTES,
            ..CrossTraffic::default()
        }
    }

    /// Short background flows at once for each Mbit/s of load, where no link is overloaded.
    fn flows_per_mbitps(&self) -> f64 {
        let background = &self.paths.scenario.background;
        let links = || background.path.links.iter().chain(&*background.ack_links);
        if links().any(|&link| self.is_starved(link)) {
            let is_pressed = links().any(|&link| self.is_pressed(link));
            let since_s = if is_pressed { f64::INFINITY } else { self.duration_s };
            let waiting = STARVED_FLOWS_PER_MBITPS_AND_S * since_s;
            return (FLOWS_PER_MBITPS + DISTURBED_FLOWS_PER_MBITPS + waiting).min(STARVED_FLOWS_PER_MBITPS);
        }
        let ways = [&*background.path.links, &*background.ack_links];
        let queueing_s: f64 = ways.iter().map(|way| self.queueing_behind_s(way)).sum();
        let courses = background.path.links.iter().flat_map(|&link| self.paths.course_of_loss(link));
        let is_pressed = background.path.links.iter().any(|&link| self.is_pressed(link));
        let borne = if is_pressed { BORNE_LOSS } else { 0.0 };
        let waiting_s = courses.map(|(at, loss)| {
            let for_s = self.paths.scenario.duration.since(at).as_s().min(TIMEOUT_S);
            let lost = 1.0 - (1.0 - loss) * (1.0 - borne);
            // A retransmission that is lost waits twice as long.
            for_s / (1.0 - 2.0 * lost).max(LEAST_PART) * (1.0 - (1.0 - lost).powf(SHORT_FLOW_PACKETS))
        });
        let timeouts = FLOWS_PER_MBITPS_AND_S * waiting_s.fold(0.0, f64::max);
        let disturbed = if self.is_disturbed() { self.duration_s.min(1.0) } else { 0.0 };
        FLOWS_PER_MBITPS
            + DISTURBED_FLOWS_PER_MBITPS * disturbed
            + FLOWS_PER_MBITPS_AND_QUEUEING_S * queueing_s
            + timeouts
    }

    /// Whether a queue holds few packets, or fewer than there are long flows that fill it.
    fn is_starved(&self, link: LinkId) -> bool {
        let holds_fewer =
            |packets: f64| self.paths.room_bytes(link) < packets * f64::from(self.paths.sizing.wire_bytes);
        holds_fewer(STARVED_PACKETS) || holds_fewer(self.long_flows(link)) && self.is_filled(link, |_| true)
    }

    /// Whether some of the flows and UDP sources on a link may have more outstanding than it and its queue hold.
    fn is_filled(&self, link: LinkId, is_asked: impl Fn(&Load) -> bool + Copy) -> bool {
        let filling = self.loads.iter().filter(|load| load.links.contains(&link) && is_asked(load));
        let shortest_s = filling.map(|load| load.shortest_s).fold(f64::INFINITY, f64::min);
        let carried = self.paths.peaks.least_rates[link.index()].as_bps() / 8.0 * shortest_s;
        self.outstanding_bytes_of(link, is_asked) > self.paths.room_bytes(link) + carried
    }

    fn changes_order(&self, link: LinkId) -> bool {
        most_late(&self.paths.network.hop(link).way.impair) > Time::ZERO
    }

    /// Flows under test whose data pass a link.
    fn long_flows(&self, link: LinkId) -> f64 {
        let beside = self.paths.scenario.flow.iter().filter(|flow| flow.path.links.contains(&link));
        beside.map(|flow| f64::from(flow.streams())).sum()
    }

    /// Whether short background flows lose more than what their own bursts cost them: where other traffic can overflow
    /// a queue on their way, or a link changes.
    fn is_disturbed(&self) -> bool {
        let scenario = self.paths.scenario;
        let changes = |link: LinkId| !scenario.spells(&self.paths.network, link).is_empty();
        let overflows = |link: LinkId| self.outstanding_bytes(link) > self.paths.room_bytes(link);
        let background = &scenario.background;
        let mut links = background.path.links.iter().chain(&*background.ack_links);
        !scenario.traffic.is_empty()
            || links.any(|&link| changes(link) || !self.keeps_apart(link) && overflows(link))
    }

    /// Whether short flows have queues of their own on a link.
    fn keeps_apart(&self, link: LinkId) -> bool {
        let discipline = self.paths.network.hop(link).way.queue.discipline;
        matches!(discipline, AqmConfig::FqCodel(_)) && self.long_flows(link) <= FLOWS_APART
    }

    /// Whether laws that bear losses overflow a queue that short flows share.
    fn is_pressed(&self, link: LinkId) -> bool {
        !self.keeps_apart(link) && self.is_filled(link, |load| load.bears_losses)
    }

    /// Bytes that the flows and UDP sources which pass a link may have outstanding.
    fn outstanding_bytes(&self, link: LinkId) -> f64 {
        self.outstanding_bytes_of(link, |_| true)
    }

    /// The same of some of them.
    fn outstanding_bytes_of(&self, link: LinkId, is_asked: impl Fn(&Load) -> bool) -> f64 {
        let filling = self.loads.iter().filter(|load| load.links.contains(&link) && is_asked(load));
        filling.map(|load| load.window * f64::from(load.wire_bytes)).sum()
    }

    /// How long the queues of a way are that others fill.
    fn queueing_behind_s(&self, way: &[LinkId]) -> f64 {
        let shared = way.iter().filter(|&&link| !self.keeps_apart(link));
        let queueing_s = shared.map(|&link| {
            let rates =
                self.paths.scenario.spells(&self.paths.network, link).into_iter().map(|(rate, _)| rate);
            let least = rates.filter(|&rate| rate > 0.0).fold(1.0, f64::min);
            let rate_bps = self.paths.network.hop(link).way.mean_rate().as_bps();
            self.outstanding_bytes(link).min(self.paths.room_bytes(link)) * 8.0 / (least * rate_bps)
        });
        queueing_s.sum()
    }

    /// For how long as many flows as begin pile up on a way that carries this part of the load, and the ACKs of the
    /// rest: all while a link is down, else those that are [stuck](Basis::stuck).
    fn piling_s(&self, way: &[LinkId], part: f64, load_bps: f64) -> f64 {
        let piling_s = |&link: &LinkId| {
            let courses = self.courses(link).into_iter();
            let stuck = courses.map(|course| match course.rate {
                0.0 => course.piling_s,
                rate => course.piling_s * self.stuck(link, rate, part * load_bps),
            });
            stuck.sum()
        };
        way.iter().map(piling_s).fold(0.0, f64::max)
    }

    /// The rates of a link in the course of a run, and for how long flows pile up at each of them.
    fn courses(&self, link: LinkId) -> Vec<Course> {
        let spells = self.paths.scenario.spells(&self.paths.network, link);
        let mut left_s = self.duration_s;
        let first_s = left_s - spells.iter().map(|&(_, seconds)| seconds).sum::<f64>();
        let course = |(rate, seconds): (f64, f64)| {
            left_s -= seconds;
            // Those that piled up need as long again to end.
            Course { rate, piling_s: seconds + left_s.min(seconds) }
        };
        [(1.0, first_s)].into_iter().chain(spells).map(course).collect()
    }

    /// Share of short flows that pile up on a link at this share of its rate: where they, the ACKs of long flows and
    /// UDP are more than it carries, all but those that fit beside the others. So it is in an overloaded queue with
    /// processor sharing whose customers are exponential; sizes that vary more than that leave fewer.
    fn stuck(&self, link: LinkId, rate: f64, load_bps: f64) -> f64 {
        let rate_bps = rate * self.paths.network.hop(link).way.mean_rate().as_bps();
        // With a queue of its own UDP leaves the others theirs.
        let udp_bps = if self.keeps_apart(link) { 0.0 } else { self.udp_bps(link) };
        let left_bps = rate_bps - self.ack_bps(link) - udp_bps;
        let wire_bps = WIRE_PER_LOAD * load_bps;
        if wire_bps > left_bps {
            (1.0 - left_bps.max(0.0) / wire_bps).powi(2)
        } else {
            0.0
        }
    }

    /// The ACKs on a link, one for each packet that is sent and that the slowest link of its route carries.
    fn ack_bps(&self, link: LinkId) -> f64 {
        let acked = self.loads.iter().filter(|load| load.ack_links.contains(&link));
        let acks = acked.map(|load| {
            load.demand.min(self.paths.carried(load.links, load.wire_bytes, self.paths.scenario.duration))
        });
        8.0 * ACK_BYTES * acks.fold(0.0, f64::max) / self.duration_s
    }

    /// Rate that UDP sources offer to a link.
    fn udp_bps(&self, link: LinkId) -> f64 {
        let passing = self.paths.scenario.udp.iter().filter(|udp| udp.path.links.contains(&link));
        passing
            .map(|udp| self.paths.scenario.udp_traffic(udp).offered_bps(self.paths.scenario.duration))
            .sum()
    }

    fn add_models(&self, cross: &mut CrossTraffic) {
        for (traffic, demand) in self.paths.scenario.traffic.iter().zip(&self.demands) {
            let ways = [&traffic.path.links, &traffic.ack_links];
            let starved = ways.iter().any(|way| way.iter().any(|&link| self.is_starved(link)));
            let times = if starved { STARVED_TIMES } else { 1.0 };
            cross.connections +=
                times * demand.connections(ways.iter().map(|way| self.queueing_s(way)).sum());
            let is_pressed = |link: LinkId| self.changes_order(link) || self.is_pressed(link);
            let pressed = ways.iter().filter(|way| way.iter().any(|&link| is_pressed(link)));
            let bursts = pressed.flat_map(|way| way.iter()).filter(|&&link| self.is_starved(link)).count();
            cross.connections += demand.begun(self.duration_s) * piled(PILED_OF_CONNECTIONS, bursts);
            let down = ways.iter().map(|way| self.paths.scenario.stopped_s(&self.paths.network, way, 0.0));
            cross.connections += demand.begun((PILE_TIMES * down.sum::<f64>()).min(self.duration_s));
            cross.in_flight += demand.wire_bytes_per_s() / WIRE_BYTES;
            cross.packets += demand.packets_per_s() * self.duration_s;
        }
        let piled = self.paths.network.links().flat_map(|link| {
            let rate_bps = self.paths.network.hop(link).way.mean_rate().as_bps();
            self.courses(link).into_iter().map(move |course| {
                let left_bps = (course.rate * rate_bps - self.udp_bps(link)).max(0.01 * rate_bps);
                pile_up(&self.demands, link, left_bps / 8.0, course.piling_s)
            })
        });
        // No more pile up than begin.
        let begun: f64 = self.demands.iter().map(|demand| demand.begun(self.duration_s)).sum();
        cross.connections += if begun > 0.0 { piled.sum::<f64>().min(begun) } else { 0.0 };
    }

    /// How long the full queue of a way is. It is on the slowest link, where several are, on the one that holds
    /// least.
    fn queueing_s(&self, way: &[LinkId]) -> f64 {
        let queues =
            way.iter().map(|&link| (self.paths.peaks.rates[link.index()], self.paths.room_bytes(link)));
        let bottleneck = queues.min_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        bottleneck.map_or(0.0, |(rate, room_bytes)| room_bytes * 8.0 / rate.as_bps().max(1.0))
    }
}
