//! RCP's router: one rate for all flows of a link (Dukkipati, Kobayashi, Zhang-Shen, McKeown, IWQoS 2005;
//! as its authors' ns-2 code has it).

use lfn_header::rcp::Rcp;
use lfn_header::Header;
use lfn_keys::{keys, Span};
use lfn_units::{Rate, Time};

use super::{Protocol, Site};

/// Longest time from one rate to the next.
const SLOT_S: f64 = 0.010;
/// Shortest, for RTTs that are shorter still.
const SLOT_MIN_S: f64 = 0.000_1;
const INITIAL_RTT_S: f64 = 0.2;
/// First rate, of the capacity.
const INITIAL_SHARE: f64 = 0.05;
/// Least rate: so many packets of 1000 bytes a round trip.
const MIN_PACKETS: f64 = 0.01;

keys! {
    /// The rate control protocol.
    #[derive(Copy)]
    pub struct RcpConfig {
        /// Gain of the spare rate.
        alpha: f64 = 0.4, in Span::at_least(0.0);
        /// Gain of the queue.
        beta: f64 = 0.4, in Span::at_least(0.0);
        /// Share of the rate to use.
        gamma: f64 = 1.0, in Span::above(0.0).at_most(1.0);
    }
}

/// The router of one link. Rates in bytes/s.
#[derive(Clone, Debug)]
pub(super) struct RcpRouter {
    config: RcpConfig,
    capacity: f64,
    rate: f64,
    mean_rtt_s: f64,
    slot_began: Time,
    slot_end: Time,
    arrived_bytes: u64,
    /// Sum of RTTs in headers, weighted with bytes, and those bytes.
    rtts: f64,
    rtt_bytes: f64,
}

impl Protocol for RcpRouter {
    type Config = RcpConfig;

    /// A router on a link of this rate; a number uniform on \[0, 1) is the phase of its timer.
    fn new(config: RcpConfig, Site { rate, .. }: Site, mut draw: impl FnMut() -> f64) -> RcpRouter {
        let capacity = rate.as_bps() / 8.0;
        RcpRouter {
            config,
            capacity,
            rate: INITIAL_SHARE * capacity,
            mean_rtt_s: INITIAL_RTT_S,
            slot_began: Time::ZERO,
            slot_end: Time::from_s_f64(SLOT_S * (1.0 - draw())),
            arrived_bytes: 0,
            rtts: 0.0,
            rtt_bytes: 0.0,
        }
    }

    /// The rate of the link changes.
    fn set_rate(&mut self, rate: Rate) {
        self.capacity = rate.as_bps() / 8.0;
    }

    /// Timers up to `now`, since which `queue_bytes` have waited.
    fn advance(&mut self, now: Time, queue_bytes: u64) {
        while self.slot_end <= now {
            let slot_s = (self.slot_end - self.slot_began).as_s();
            self.on_slot(slot_s, queue_bytes as f64);
            self.slot_began = self.slot_end;
            self.slot_end = self.slot_end + Time::from_s_f64(self.mean_rtt_s.clamp(SLOT_MIN_S, SLOT_S));
        }
    }

    /// A packet of any kind arrives, also if it is dropped then.
    #[inline]
    fn arrive(&mut self, bytes: u32, header: &Header) {
        self.arrived_bytes += u64::from(bytes);
        if let Header::Rcp(Rcp { rtt_s, .. }) = *header {
            if rtt_s > 0.0 {
                self.rtts += rtt_s * f64::from(bytes);
                self.rtt_bytes += f64::from(bytes);
            }
        }
    }

    /// A data packet leaves, or the first of a handshake.
    #[inline]
    fn depart(&mut self, _: u32, _: u64, header: &mut Header) {
        if let Header::Rcp(rcp) = header {
            rcp.rate_bytes_per_s = rcp.rate_bytes_per_s.min(self.rate);
        }
    }
}

impl RcpRouter {
    fn on_slot(&mut self, slot_s: f64, queue_bytes: f64) {
        let rtt_s = self.mean_rtt_s;
        self.rate = self.next_rate(slot_s, self.arrived_bytes as f64 / slot_s, queue_bytes);
        if self.rtt_bytes > 0.0 {
            let newest = self.rtts / self.rtt_bytes;
            let gain = if newest >= rtt_s {
                slot_s / rtt_s
            } else {
                self.rate / self.capacity.max(1.0) * (newest / rtt_s) * (slot_s / rtt_s)
            };
            self.mean_rtt_s += gain.min(1.0) * (newest - rtt_s);
        }
        (self.arrived_bytes, self.rtts, self.rtt_bytes) = (0, 0.0, 0.0);
    }

    fn next_rate(&self, slot_s: f64, y: f64, queue_bytes: f64) -> f64 {
        let RcpConfig { alpha, beta, gamma } = self.config;
        let (target, d) = (gamma * self.capacity.max(1.0), self.mean_rtt_s);
        let change = slot_s / d * (alpha * (target - y) - beta * queue_bytes / d) / target;
        let least = (MIN_PACKETS * 1000.0 / d).min(target);
        (self.rate * (1.0 + change)).clamp(least, target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(rate: f64) -> RcpRouter {
        let router =
            RcpRouter::new(RcpConfig::default(), Site { link: 1, rate: Rate(1_000_000_000) }, || 0.0);
        RcpRouter { rate, mean_rtt_s: 0.1, ..router }
    }

    #[test]
    fn one_step() {
        let step = |rate, y, queue| at(rate).next_rate(0.01, y, queue);
        for ((rate, y, queue), next) in [
            ((62.5e6, 62.5e6, 0.0), 63.75e6),
            ((62.5e6, 125e6, 0.0), 62.5e6),
            ((62.5e6, 125e6, 1.25e6), 62.25e6),
            ((1.25e6, 12.5e6, 0.0), 1.295e6),
        ] {
            assert!((step(rate, y, queue) - next).abs() < 1e-3, "{rate}: {}", step(rate, y, queue));
        }
    }

    #[test]
    fn the_rate_stays_within_its_bounds() {
        assert_eq!(at(124e6).next_rate(0.01, 0.0, 0.0), 125e6);
        assert_eq!(at(200.0).next_rate(0.01, 1000e6, 100e6), 100.0);
    }

    /// So many flows send what the router says, an RTT later; the rate after some time.
    fn settled(flows: f64) -> f64 {
        let mut router = at(6.25e6);
        let mut queue = 0.0;
        let mut under_way = std::collections::VecDeque::from(vec![router.rate; 10]);
        for _ in 0..5000 {
            under_way.push_back(router.rate);
            let y = flows * under_way.pop_front().unwrap();
            queue = (queue + (y - 125e6) * 0.01_f64).max(0.0);
            router.rate = router.next_rate(0.01, y, queue);
        }
        assert!(queue < 1.0, "{queue}");
        router.rate
    }

    #[test]
    fn flows_settle_at_their_share() {
        for flows in [1.0, 2.0, 10.0, 1000.0] {
            assert!((settled(flows) * flows / 125e6 - 1.0).abs() < 1e-3, "{flows}: {}", settled(flows));
        }
    }

    #[test]
    fn the_mean_rtt_follows_headers() {
        let mut router = at(62.5e6);
        let header = |rtt_s| Header::Rcp(Rcp { rate_bytes_per_s: f64::INFINITY, rtt_s });
        (router.slot_began, router.slot_end) = (Time::ZERO, Time::from_ms(10));
        router.arrive(1500, &header(0.2));
        router.arrive(1500, &header(0.0));
        router.advance(Time::from_ms(10), 0);
        // A longer one with a gain of T/d, a shorter one more slowly.
        assert!((router.mean_rtt_s - 0.11).abs() < 1e-9, "{}", router.mean_rtt_s);
        let (mean, rate) = (router.mean_rtt_s, router.rate);
        router.arrive(1500, &header(0.055));
        router.advance(Time::from_ms(20), 0);
        let gain = router.rate / 125e6 * 0.5 * 0.01 / mean;
        assert!((router.mean_rtt_s - (mean - gain * (mean - 0.055))).abs() < 1e-9);
        assert!(router.rate > rate);
    }

    #[test]
    fn the_least_rate_of_a_path_counts() {
        let mut header = Header::Rcp(Rcp { rate_bytes_per_s: f64::INFINITY, rtt_s: 0.1 });
        for rate in [3e6, 1e6, 2e6] {
            at(rate).depart(1000, 0, &mut header);
        }
        assert!(matches!(header, Header::Rcp(rcp) if rcp.rate_bytes_per_s == 1e6));
    }
}
