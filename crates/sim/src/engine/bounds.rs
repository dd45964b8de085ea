//! Bounds that a path sets to the results of a run, checked at its end as conservation is. A number beyond them is a fault
//! of the engine.

use lfn_path::Service;
use lfn_units::Time;

use super::sim::Sim;
use crate::clock::ids::{FlowId, LinkId, RouteId};
use crate::config::{Changed, Connection};
use crate::ends::streams::Streams;
use crate::error::SimError;
use crate::misbehaving::Misbehaviour;
use crate::network::Network;
use crate::summary::{FlowSummary, LinkSummary};

/// Sums of floating-point numbers are exact to this.
const RELATIVE: f64 = 1e-9;
/// Timestamps count whole milliseconds, so an RTT that they give may be so much short.
const CLOCK_S: f64 = 1e-3;

impl Sim {
    /// Checks goodputs, delays and utilisations against the links of the run.
    pub(super) fn check_bounds(
        &self,
        flows: &[FlowSummary],
        links: &[LinkSummary],
        end: Time,
    ) -> Result<(), SimError> {
        let network = &self.context.network;
        for flow in flows {
            let (number, access, first) = match self.connection(flow) {
                Connection::Tcp(index) => self.ends.tcp.path_of(FlowId::new(index)),
                Connection::Udt(index) => self.ends.udt.path_of(FlowId::new(index)),
                Connection::Stack(index) => self.ends.stacks.path_of(index),
            };
            let least_s = access.after(network.least_delay(number, first, end)).as_s();
            // Timestamps of repeated segments gave RTTs below the path's in 2 of 8,146 random runs. The cause is not known.
            let lies = self.lies(flow);
            let heard = flow.min_rtt_s.filter(|_| flow.retransmits == 0 && !lies);
            if let Some(rtt_s) = heard.filter(|&rtt_s| rtt_s < least_s - CLOCK_S) {
                return beyond(format!("flow {}: an RTT of {rtt_s} s on a path of {least_s} s", flow.id));
            }
            let most = network.most_bytes(flow, number, first, end);
            let (wire, payload) = match self.connection(flow) {
                // Its packets are not all full, and what a full one holds is the stack's word.
                Connection::Stack(_) => (1.0, 1.0),
                _ => (f64::from(flow.wire_bytes), f64::from(flow.segment_bytes)),
            };
            let before = flow.outstanding_bytes as f64 * wire / payload;
            let delivered = flow.delivered_bytes as f64 * wire / payload;
            if !lies && delivered > (most + before) * (1.0 + RELATIVE) + wire {
                return beyond(format!(
                    "flow {}: {delivered} bytes on the wire delivered, where its links sent at most {most} and {before} \
                     were outstanding after the warm-up",
                    flow.id
                ));
            }
        }
        let above = |link: &&LinkSummary| link.utilization > 1.0 + RELATIVE;
        if let Some(link) = links.iter().find(above) {
            return beyond(format!("link {}: a utilization of {}", link.id, link.utilization));
        }
        let more = |link: &&LinkSummary| link.drops > link.arrivals || link.marks > link.arrivals;
        if let Some(LinkSummary { id, arrivals, drops, marks, .. }) = links.iter().find(more) {
            return beyond(format!("link {id}: {drops} drops and {marks} marks of {arrivals} packets"));
        }
        Ok(())
    }

    /// The first connection of a flow.
    fn connection(&self, flow: &FlowSummary) -> Connection {
        match &self.transfers[flow.id as usize].streams {
            Streams::Tcp(streams) => Connection::Tcp(streams.start),
            Streams::Udt(streams) => Connection::Udt(streams.start),
            Streams::Stack(streams) => Connection::Stack(streams.start),
        }
    }

    /// Whether its receiver acknowledges data that have not arrived, so that RTTs are no delays, and deliveries no bytes of
    /// a link.
    fn lies(&self, flow: &FlowSummary) -> bool {
        match self.connection(flow) {
            Connection::Tcp(index) => self.ends.tcp.misbehaviour(index) == Some(Misbehaviour::Optimistic),
            Connection::Udt(_) | Connection::Stack(_) => false,
        }
    }
}

fn beyond(what: String) -> Result<(), SimError> {
    Err(SimError::BeyondBounds(what))
}

impl Network {
    /// The least delay of the routes that connection `number` ever had, there and back.
    fn least_delay(&self, number: u32, first: [RouteId; 2], end: Time) -> Time {
        let delay = |(_, routes): (Time, [RouteId; 2])| {
            let links = routes.into_iter().flat_map(|route| &self.route(route).links);
            links.fold(Time::ZERO, |sum, &link| sum.after(self.least_delay_of(link)))
        };
        self.routes_until(number, first, end).map(delay).min().unwrap_or(Time::ZERO)
    }

    /// The least delay that a link ever has.
    fn least_delay_of(&self, at: LinkId) -> Time {
        let later = self.changes_until(Time::NEVER).filter_map(|change| match change.what {
            Changed::Delay(link, delay) if link == at => Some(delay),
            _ => None,
        });
        later.fold(self.link(at).delay, Time::min).min(self.link(at).first_delay)
    }

    /// Bytes on the wire that the links of a flow could send while it was active. Packets under way stay on an old route,
    /// so each route counts from its beginning on.
    fn most_bytes(&self, flow: &FlowSummary, number: u32, first: [RouteId; 2], end: Time) -> f64 {
        let to = flow.active.to.min(end);
        let on = |(since, [route, _]): (Time, [RouteId; 2])| {
            let from = flow.active.from.max(since);
            let could = |&link: &LinkId| self.could_send_bytes(link, from, to, flow.wire_bytes);
            self.route(route).links.iter().map(could).fold(f64::INFINITY, f64::min)
        };
        self.routes_until(number, first, end).map(on).sum()
    }

    /// Bytes on the wire that a link could send from one time to another, in packets of one size.
    fn could_send_bytes(&self, at: LinkId, from: Time, to: Time, wire_bytes: u32) -> f64 {
        let link = self.link(at);
        let Service::Rate(first) = link.service else {
            return link.service.most_bytes(from, to, wire_bytes);
        };
        let (mut sum, mut rate, mut since) = (0.0, first, from);
        for change in self.changes_until(to) {
            match change.what {
                Changed::Rate(link, next) if link == at => {
                    sum += Service::Rate(rate).most_bytes(since, change.at.max(from), wire_bytes);
                    (rate, since) = (next, change.at.max(from));
                }
                _ => {}
            }
        }
        sum + Service::Rate(rate).most_bytes(since, to, wire_bytes)
    }
}

#[cfg(test)]
mod tests {
    use lfn_units::Rate;

    use super::*;
    use crate::background::Direction;
    use crate::config::{Change, Config, LinkConfig, UdtConfig};

    /// A flow over UDT on 10 Mbit/s × 40 ms for 4 s with a warm-up of 1 s; the rate falls to a half at 2 s.
    fn finished() -> (Sim, Vec<FlowSummary>, Vec<LinkSummary>) {
        let link = LinkConfig::drop_tail("", Rate(10_000_000), 50);
        let change = Change { at: Time::from_s(2), what: Changed::Rate(LinkId(0), Rate(5_000_000)) };
        let flow = UdtConfig {
            number: 0,
            stream: 0,
            control: "reno".parse().expect("a law"),
            direction: Direction::Forward,
            route: RouteId(0),
            ack_route: RouteId(1),
            rtt: Time::from_ms(40),
            start: Time::ZERO,
            stop: Time::NEVER,
            size_packets: u64::MAX,
            mss_bytes: 1500,
            framing_bytes: 14,
            window_packets: 1000,
            seed: 1,
        };
        let config = Config {
            warmup: Time::from_s(1),
            udt: vec![flow],
            changes: vec![change],
            ..Config::dumbbell(link, Vec::new(), Time::from_s(4))
        };
        let mut sim = Sim::new(&config).expect("a valid scenario");
        sim.run_until(config.duration);
        let end = sim.now();
        sim.settle(end);
        sim.context.network.advance(end);
        let flows = sim.connections.clone().into_iter().map(|it| sim.ends.summary(it, end, &sim.context));
        let flows = flows.collect();
        let links = sim.context.network.summaries(end);
        (sim, flows, links)
    }

    #[test]
    fn a_result_beyond_what_the_path_allows_is_an_error() {
        let (sim, flows, links) = finished();
        let end = sim.now();
        let said = |flows: &[FlowSummary], links: &[LinkSummary]| {
            sim.check_bounds(flows, links, end).map_err(|error| error.to_string())
        };
        assert_eq!(said(&flows, &links), Ok(()));
        // 1 s at 10 and 2 s at 5 Mbit/s.
        let most = 20e6 / 8.0 * 1456.0 / 1514.0;
        assert!(flows[0].delivered_bytes as f64 > 0.9 * most, "{flows:?}");
        let with = |change: fn(&mut FlowSummary)| {
            let mut changed = flows.clone();
            change(&mut changed[0]);
            said(&changed, &links).expect_err("it is beyond")
        };
        assert!(with(|flow| flow.delivered_bytes += 150_000).contains("flow 0: "));
        let least = with(|flow| (flow.retransmits, flow.min_rtt_s) = (0, Some(0.0389)));
        assert!(least.contains("an RTT of 0.0389 s on a path of 0.04 s"));
        let with = |change: fn(&mut LinkSummary)| {
            let mut changed = links.clone();
            change(&mut changed[0]);
            said(&flows, &changed).expect_err("it is beyond")
        };
        assert!(with(|link| link.utilization = 1.0001).contains("link forward: a utilization of 1.0001"));
        assert!(with(|link| link.drops = link.arrivals + 1).contains("drops"));
        assert!(with(|link| link.marks = link.arrivals + 1).contains("marks"));
    }
}
