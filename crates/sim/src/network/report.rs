//! Links in numbers, and all packets that the network holds.

use lfn_units::Time;

use super::{LinkState, Network, Server};
use crate::clock::events::Kind;
use crate::clock::ids::{LinkId, RouteId};
use crate::clock::scheduler::Scheduler;
use crate::config::{Change, Changed};
use crate::summary::{ClassesSummary, LinkSummary, RateSummary, RouteSummary};
use crate::tables::PacketTable;

/// Packets that are not at their ends.
#[derive(Default)]
pub(crate) struct Found {
    /// Duplicates that links made.
    pub copies: u64,
    /// Data packets that queues dropped.
    pub dropped: u64,
    /// Data packets lost at random.
    pub lost: u64,
    /// Data packets that will be lost where they are in service or wait.
    pub doomed: u64,
    /// Data packets that wait or are on delay lines.
    pub data_under_way: u64,
    /// Data packets in a queue or between two links.
    pub in_flight: u64,
    pub acks_dropped: u64,
    pub acks_under_way: u64,
}

impl Network {
    /// Brings the counters of all links up to date.
    pub fn advance(&mut self, now: Time) {
        for link in &mut self.links {
            link.advance(now);
        }
    }

    /// All packets in queues and on delay lines, and those that are no more; up to date after [`Network::advance`].
    pub fn found(&self, scheduler: &Scheduler) -> Found {
        let mut found = Found { copies: self.copies, acks_dropped: self.acks_dropped, ..Found::default() };
        // Where a server knows departures, packets are already under way behind it, received or doomed.
        for link in &self.links {
            let data = link.data_totals();
            found.dropped += data.dropped;
            found.lost += link.loss.lost;
            found.doomed += link.loss.doomed();
            found.in_flight += data.arrived - data.dropped - data.sent;
        }
        found.data_under_way += self.waiting.data;
        found.acks_under_way += self.waiting.acks;
        for (at, kind, hop) in scheduler.packets() {
            if !hop.class().is_data() {
                found.acks_under_way += 1;
                continue;
            }
            found.data_under_way += 1;
            if kind == Kind::AtLink {
                let links = &self.route(hop.route()).links;
                let before = self.link(links[usize::from(hop.number()) - 1]);
                let queued = matches!(before.server, Server::Queued(_));
                found.in_flight += u64::from(queued || at.since(before.delay) <= scheduler.now);
            }
        }
        found
    }

    /// Data packets that left the links.
    pub fn data_packets_sent(&self) -> u64 {
        self.links.iter().map(|link| link.data_totals().sent).sum()
    }

    /// Rows of recorded packets that there would be without a limit; `None` if no link is recorded.
    pub fn recorded_rows(&self) -> Option<u64> {
        self.capture.as_ref().map(|capture| capture.rows)
    }

    /// The recorded packets.
    pub fn into_recorded(self) -> Option<PacketTable> {
        self.capture.map(|capture| capture.into_table())
    }

    /// The changes that have come about by `end`.
    pub fn changes_until(&self, end: Time) -> impl Iterator<Item = &Change> {
        self.changes.iter().take_while(move |change| change.at <= end)
    }

    /// The links of the data of connection `number`, `first` in the beginning, and when they became those.
    pub fn routes_of(&self, number: u32, first: RouteId, end: Time) -> Vec<RouteSummary> {
        let summary = |(from, [route, _]): (Time, [RouteId; 2])| {
            let name = |&link: &LinkId| self.link(link).name.clone();
            RouteSummary { from_s: from.in_s(), links: self.route(route).links.iter().map(name).collect() }
        };
        self.routes_until(number, [first; 2], end).map(summary).collect()
    }

    /// The routes of connection `number`, of its data and of its ACKs, `first` in the beginning, and when they became those.
    pub fn routes_until(
        &self,
        number: u32,
        first: [RouteId; 2],
        end: Time,
    ) -> impl Iterator<Item = (Time, [RouteId; 2])> + '_ {
        let later = self.changes_until(end).filter_map(move |change| match change.what {
            Changed::Route { flow, route, ack_route } if flow == number => {
                Some((change.at, [route, ack_route]))
            }
            _ => None,
        });
        std::iter::once((Time::ZERO, first)).chain(later)
    }

    /// Each link in numbers.
    pub fn summaries(&self, end: Time) -> Vec<LinkSummary> {
        self.links.iter().enumerate().map(|(at, link)| self.summary(at, link, end)).collect()
    }

    fn summary(&self, at: usize, link: &LinkState, end: Time) -> LinkSummary {
        let rates = |change: &Change| match change.what {
            Changed::Rate(changed, rate) if changed.index() == at => {
                Some(RateSummary { from_s: change.at.in_s(), rate_bps: rate.0 })
            }
            _ => None,
        };
        let first = RateSummary { from_s: 0.0, rate_bps: link.service.mean_rate().0 };
        let counters = link.counters();
        let most_bytes = link.most_bytes(end);
        LinkSummary {
            id: link.name.clone(),
            rate_bps: link.rate().0,
            rates: [first].into_iter().chain(self.changes_until(end).filter_map(rates)).collect(),
            opportunities: link.opportunities(end),
            utilization: if most_bytes > 0.0 { link.sent_bytes(end) / most_bytes } else { 0.0 },
            held_before: counters.held_before,
            arrivals: counters.held_before + counters.arrivals,
            drops: counters.drops_full + counters.drops_early,
            early_drops: counters.drops_early,
            marks: counters.marks,
            random_losses: link.loss.lost,
            mean_queue_s: counters.mean_wait().as_s(),
            p99_queue_s: counters.wait_quantile(0.99).in_s(),
            max_queue_packets: counters.max_waiting,
            classes: link.classes(end).as_ref().map(ClassesSummary::of),
        }
    }
}
