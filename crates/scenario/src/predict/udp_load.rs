//! Packets of UDP sources that are under way.

use lfn_path::AqmConfig;
use lfn_sim::config::LinkId;
use lfn_sim::traffic::udp;

use super::loads::{Load, Paths};
use crate::model::{Scenario, Udp};
use crate::peaks::most_late;

impl<'a> Paths<'a> {
    /// Of a UDP source beside flows with these windows together.
    pub(crate) fn udp_load(&self, udp: &'a Udp, windows: f64) -> Load<'a> {
        let traffic = self.scenario.udp_traffic(udp);
        let bytes = traffic.offered_bps(self.scenario.duration) / 8.0 * self.scenario.duration.as_s();
        let packet_bytes = f64::from(traffic.packet_bytes);
        let demand = match traffic.pattern {
            udp::Pattern::Bursts(_) => (bytes / packet_bytes).ceil(),
            udp::Pattern::OnOff(_) => f64::INFINITY,
        };
        let most_bps = self.scenario.most_bps(udp);
        let held_bytes = udp.path.links.iter().map(|&link| {
            let way = self.network.hop(link).way;
            let delay = way.delay.after(self.peaks.longer).after(most_late(&way.impair));
            let rate_bps = self.peaks.rates[link.index()].as_bps().min(most_bps);
            let under_way = rate_bps / 8.0 * delay.as_s();
            let queued = windows * f64::from(self.sizing.wire_bytes) * self.queued_beside(link);
            under_way + self.room_bytes(link).min(queued)
        });
        Load {
            links: &udp.path.links,
            ack_links: &[],
            acks: 0.0,
            wire_bytes: traffic.packet_bytes,
            // No more is under way than is ever sent, or than the links hold, whose queues grow to twice that.
            window: demand.min(2.0 * held_bytes.sum::<f64>() / packet_bytes),
            initial: 0.0,
            demand,
            keeps: false,
            has_scoreboard: false,
            boundless: false,
            samples: false,
            unshared: 0.0,
            places: 0.0,
            per_s: most_bps / 8.0 / packet_bytes,
            shortest_s: 0.0,
            bears_losses: false,
            left: 0.0,
            more: 0.0,
            stalls_s: 0.0,
            streams: 0.0,
        }
    }

    /// Bytes of UDP in the queue of a link for each byte of others: in a queue in order of arrival they are as their
    /// rates. Infinite where that is not so, or where UDP alone may fill the queue.
    fn queued_beside(&self, link: LinkId) -> f64 {
        let (scenario, hop) = (self.scenario, self.network.hop(link));
        let is_steady = self.peaks.rates[link.index()] == self.peaks.least_rates[link.index()]
            && hop.way.delivery.is_none()
            && !matches!(hop.way.queue.discipline, AqmConfig::FqCodel(_));
        let has_cross_traffic = !scenario.background.is_silent() || !scenario.traffic.is_empty();
        let share = self.most_udp_bps(link) / hop.way.mean_rate().as_bps();
        if is_steady && !has_cross_traffic && share < 1.0 {
            share / (1.0 - share)
        } else {
            f64::INFINITY
        }
    }

    /// The most that UDP sources send over a link at a time.
    fn most_udp_bps(&self, link: LinkId) -> f64 {
        let passing = self.scenario.udp.iter().filter(|udp| udp.path.links.contains(&link));
        passing.map(|udp| self.scenario.most_bps(udp)).sum()
    }
}

impl Scenario {
    /// The most that a UDP source sends at a time.
    fn most_bps(&self, udp: &Udp) -> f64 {
        match self.udp_traffic(udp).pattern {
            udp::Pattern::Bursts(bursts) => bursts.iter().map(|burst| burst.rate.as_bps()).sum(),
            udp::Pattern::OnOff(on_off) => f64::from(on_off.sources) * on_off.rate.as_bps(),
        }
    }
}
