//! XCP's router: an efficiency controller that says how much all flows together should change, and a
//! fairness controller that shares it out (Katabi, Handley, Rohrs, SIGCOMM 2002; as rates, with the
//! bookkeeping of draft-falk-xcp-spec-03 and the constants of ns-2.35).

use lfn_header::xcp::Xcp;
use lfn_header::Header;
use lfn_keys::{keys, Span};
use lfn_units::{Rate, Time};

use super::{Protocol, Site};

/// Interval, and RTT of an interval without any header.
const INITIAL_S: f64 = 0.05;
/// No timer begins earlier.
const FIRST_S: f64 = 0.004;
/// Shortest control interval.
const MIN_INTERVAL_S: f64 = 0.001;
/// Shortest interval in which the queue's minimum is sought.
const MIN_QUEUE_INTERVAL_S: f64 = 0.002;

keys! {
    /// The explicit control protocol.
    #[derive(Copy)]
    pub struct XcpConfig {
        /// Gain of the spare rate.
        alpha: f64 = 0.4, in Span::at_least(0.0);
        /// Gain of the persistent queue; the paper's value is alpha^2 sqrt(2).
        beta: f64 = 0.226, in Span::at_least(0.0);
        /// Shuffled traffic: the share of XCP's traffic that is moved from fast to slow flows in each interval,
        /// also on a link in balance.
        gamma: f64 = 0.1, in Span::at_least(0.0).at_most(1.0);
    }
}

/// The remaining increase and decrease of an interval, bytes/s, and the price of each.
#[derive(Clone, Copy, Debug, Default)]
struct Shares {
    give: f64,
    take: f64,
    /// For each second between two packets of a flow.
    give_factor: f64,
    /// For each byte.
    take_factor: f64,
}

/// The router of one link. Rates in bytes/s.
#[derive(Clone, Debug)]
pub(super) struct XcpRouter {
    config: XcpConfig,
    capacity: f64,
    interval_began: Time,
    interval_end: Time,
    arrived_bytes: u64,
    /// Of packets that may be told of a change.
    own_bytes: u64,
    gaps_s: f64,
    /// Sum of RTTs weighted with gaps.
    gap_rtts: f64,
    mean_rtt_s: f64,
    shares: Shares,
    queue_end: Time,
    queue_min_bytes: u64,
    /// The least queue of the last interval of its own: what persists.
    queue_bytes: u64,
}

impl Protocol for XcpRouter {
    type Config = XcpConfig;

    /// A router on a link of this rate. `draw` gives numbers uniform on \[0, 1): timers begin at random,
    /// normal around the interval with a fifth of it as deviation.
    fn new(config: XcpConfig, Site { rate, .. }: Site, mut draw: impl FnMut() -> f64) -> XcpRouter {
        let mut begin = || {
            let radius = (-2.0 * libm::log(1.0 - draw())).sqrt();
            let normal = radius * libm::cos(2.0 * std::f64::consts::PI * draw());
            Time::from_s_f64((INITIAL_S * (1.0 + 0.2 * normal)).max(FIRST_S))
        };
        XcpRouter {
            config,
            capacity: rate.as_bps() / 8.0,
            interval_began: Time::ZERO,
            interval_end: begin(),
            arrived_bytes: 0,
            own_bytes: 0,
            gaps_s: 0.0,
            gap_rtts: 0.0,
            mean_rtt_s: INITIAL_S,
            shares: Shares::default(),
            queue_end: begin(),
            queue_min_bytes: 0,
            queue_bytes: 0,
        }
    }

    /// The rate of the link changes.
    fn set_rate(&mut self, rate: Rate) {
        self.capacity = rate.as_bps() / 8.0;
    }

    /// Timers up to `now`, since which `queue_bytes` have waited.
    fn advance(&mut self, now: Time, queue_bytes: u64) {
        while self.interval_end.min(self.queue_end) <= now {
            if self.queue_end <= self.interval_end {
                self.queue_bytes = std::mem::replace(&mut self.queue_min_bytes, queue_bytes);
                let drains_s = queue_bytes as f64 / self.capacity.max(1.0);
                // Not the mean RTT itself, in which the queue is: that feeds back (draft section 4.3).
                let interval_s = ((self.mean_rtt_s - drains_s) / 2.0).max(MIN_QUEUE_INTERVAL_S);
                self.queue_end = self.queue_end + Time::from_s_f64(interval_s);
            } else {
                let interval_s = (self.interval_end - self.interval_began).as_s();
                self.on_interval(interval_s);
                self.interval_began = self.interval_end;
                self.interval_end = self.interval_end + Time::from_s_f64(self.mean_rtt_s.max(MIN_INTERVAL_S));
            }
        }
    }

    /// A packet of any kind arrives, also if it is dropped then.
    #[inline]
    fn arrive(&mut self, bytes: u32, header: &Header) {
        self.arrived_bytes += u64::from(bytes);
        if let Header::Xcp(Xcp { gap_s, rtt_s, .. }) = *header {
            if rtt_s > 0.0 {
                self.own_bytes += u64::from(bytes);
                self.gaps_s += gap_s;
                self.gap_rtts += gap_s * rtt_s;
            }
        }
    }

    /// A packet of any kind leaves so many bytes behind.
    #[inline]
    fn depart(&mut self, bytes: u32, queue_bytes: u64, header: &mut Header) {
        self.queue_min_bytes = self.queue_min_bytes.min(queue_bytes);
        if let Header::Xcp(xcp) = header {
            xcp.delta_bytes_per_s = self.shares.grant(f64::from(bytes), xcp);
        }
    }
}

impl XcpRouter {
    fn on_interval(&mut self, interval_s: f64) {
        self.mean_rtt_s = if self.gaps_s > 0.0 { self.gap_rtts / self.gaps_s } else { INITIAL_S };
        self.shares = Shares::default();
        if self.gaps_s > 0.0 {
            let own = self.own_bytes as f64;
            let y = self.arrived_bytes as f64 / interval_s;
            let (give, take) = self.changes(y, own / interval_s, self.queue_bytes as f64, self.mean_rtt_s);
            // The draft divides by all that arrived, and has a queue for XCP alone. Other traffic gives
            // nothing back; if it counted here, the link would grant more than it takes, and build a queue.
            let (give_factor, take_factor) = (give / self.gaps_s, take / own);
            self.shares = Shares { give, take, give_factor, take_factor };
        }
        (self.arrived_bytes, self.own_bytes, self.gaps_s, self.gap_rtts) = (0, 0, 0.0, 0.0);
    }

    /// The increase and decrease of an interval, for traffic `y` in all, `own` of XCP, a queue and a
    /// mean RTT.
    fn changes(&self, y: f64, own: f64, queue_bytes: f64, rtt_s: f64) -> (f64, f64) {
        let XcpConfig { alpha, beta, gamma } = self.config;
        let all = alpha * (self.capacity - y) - beta * queue_bytes / rtt_s;
        let shuffled = (gamma * own - all.abs()).max(0.0);
        (shuffled + all.max(0.0), shuffled + (-all).max(0.0))
    }
}

impl Shares {
    /// The change for a packet: at most what it asks for and what routers before have left of that.
    fn grant(&mut self, bytes: f64, asks: &Xcp) -> f64 {
        if asks.rtt_s <= 0.0 {
            return 0.0;
        }
        let mut give = self.give.min(self.give_factor * asks.gap_s);
        let mut take = self.take.min(self.take_factor * bytes);
        let mut change = give - take;
        if asks.delta_bytes_per_s < change {
            // An increase that the flow does not want is given to others.
            take = self.take.min(take + change - asks.delta_bytes_per_s);
            give = (asks.delta_bytes_per_s + take).max(0.0);
            change = asks.delta_bytes_per_s;
        }
        self.give = (self.give - give).max(0.0);
        self.take = (self.take - take).max(0.0);
        if self.give == 0.0 {
            self.give_factor = 0.0;
        }
        if self.take == 0.0 {
            self.take_factor = 0.0;
        }
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn router() -> XcpRouter {
        XcpRouter::new(XcpConfig::default(), Site { link: 1, rate: Rate(1_000_000_000) }, || 0.5)
    }

    #[test]
    fn controllers() {
        let changes = |y, queue| router().changes(y, y, queue, 0.1);
        let close = |(give, take): (f64, f64), (a, b): (f64, f64)| (give - a).abs() + (take - b).abs() < 1.0;
        assert!(close(changes(62.5e6, 0.0), (25e6, 0.0)));
        assert!(close(changes(125e6, 0.0), (12.5e6, 12.5e6)));
        assert!(close(changes(125e6, 1.25e6), (9.675e6, 12.5e6)));
        assert!(close(changes(137.5e6, 1.25e6), (5.925e6, 13.75e6)));
    }

    #[test]
    fn the_gap_to_the_capacity_shrinks_by_two_fifths_an_interval() {
        let mut y = 10e6;
        for _ in 0..10 {
            let gap = 125e6 - y;
            let (give, take) = router().changes(y, y, 0.0, 0.1);
            y += give - take;
            assert!(((125e6 - y) / gap - 0.6).abs() < 1e-9);
        }
    }

    /// Packets of one interval, of flows with these rates and RTTs: what each flow is granted.
    fn interval(router: &mut XcpRouter, flows: &[(f64, f64)], asks: f64, queue_bytes: u64) -> Vec<f64> {
        let interval = Time::from_ms(100);
        router.interval_began = Time::ZERO;
        (router.interval_end, router.queue_end) = (interval, Time::from_s(1000));
        router.queue_bytes = queue_bytes;
        let header = |gap_s, rtt_s| Header::Xcp(Xcp { gap_s, rtt_s, delta_bytes_per_s: asks });
        let packets = |rate: f64| (rate * 0.1 / 1000.0) as usize;
        for &(rate, rtt_s) in flows {
            (0..packets(rate)).for_each(|_| router.arrive(1000, &header(1000.0 / rate, rtt_s)));
        }
        router.advance(interval, 0);
        let mut granted = vec![0.0; flows.len()];
        for (sum, &(rate, rtt_s)) in granted.iter_mut().zip(flows) {
            for _ in 0..packets(rate) {
                let mut header = header(1000.0 / rate, rtt_s);
                router.depart(1000, 0, &mut header);
                let Header::Xcp(told) = header else { unreachable!() };
                *sum += told.delta_bytes_per_s;
            }
        }
        granted
    }

    #[test]
    fn no_more_is_given_than_there_is_and_all_flows_are_given_alike() {
        let mut router = router();
        let granted = interval(&mut router, &[(10e6, 0.1), (40e6, 0.1)], f64::INFINITY, 0);
        // 0.4 of the 75 MB/s to spare, the same to both.
        assert!((granted[0] / 15e6 - 1.0).abs() < 1e-6, "{granted:?}");
        assert!((granted[1] / 15e6 - 1.0).abs() < 1e-6, "{granted:?}");
        // Nothing is left.
        let mut more = Header::Xcp(Xcp { gap_s: 1.0, rtt_s: 0.1, delta_bytes_per_s: f64::INFINITY });
        router.depart(1000, 0, &mut more);
        assert!(matches!(more, Header::Xcp(xcp) if xcp.delta_bytes_per_s.abs() < 1.0));
    }

    #[test]
    fn at_capacity_a_tenth_goes_from_large_flows_to_small_ones() {
        let granted = interval(&mut router(), &[(100e6, 0.1), (25e6, 0.1)], f64::INFINITY, 0);
        // 12.5 MB/s are given, half to each, and taken in proportion to their rates.
        assert!((granted[0] + 3.75e6).abs() < 1e4, "{granted:?}");
        assert!((granted[1] - 3.75e6).abs() < 1e4, "{granted:?}");
    }

    #[test]
    fn what_is_taken_is_taken_from_those_who_listen() {
        let mut router = router();
        // A fifth of what arrives is not XCP's, and the link is full.
        (0..2500).for_each(|_| router.arrive(1000, &Header::None));
        let granted = interval(&mut router, &[(80e6, 0.1), (20e6, 0.1)], f64::INFINITY, 0);
        assert!((granted[0] + 3e6).abs() < 1e4, "{granted:?}");
        assert!((granted[1] - 3e6).abs() < 1e4, "{granted:?}");
    }

    #[test]
    fn who_asks_for_less_gets_less() {
        let granted = interval(&mut router(), &[(50e6, 0.1)], 100.0, 0);
        assert!((granted[0] - 5000.0 * 100.0).abs() < 1.0, "{granted:?}");
        // Another router has cut it to a decrease.
        let granted = interval(&mut router(), &[(50e6, 0.1)], -100.0, 0);
        assert!((granted[0] + 5000.0 * 100.0).abs() < 1.0, "{granted:?}");
    }

    #[test]
    fn a_sender_without_an_rtt_gets_nothing() {
        let granted = interval(&mut router(), &[(50e6, 0.0)], f64::INFINITY, 0);
        assert_eq!(granted, [0.0]);
    }

    #[test]
    fn the_queue_that_persists_is_the_least_of_half_an_rtt() {
        let mut router = router();
        (router.interval_end, router.queue_end) = (Time::from_s(10), Time::from_ms(50));
        router.mean_rtt_s = 0.1;
        router.queue_min_bytes = 9000;
        router.depart(1000, 3000, &mut Header::None);
        router.depart(1000, 5000, &mut Header::None);
        router.advance(Time::from_ms(50), 6000);
        assert_eq!((router.queue_bytes, router.queue_min_bytes), (3000, 6000));
        // (100 ms - 48 us)/2 later; and never sooner than after 2 ms.
        assert_eq!(router.queue_end, Time::from_us(50_000 + 49_976));
        router.mean_rtt_s = 0.001;
        router.advance(router.queue_end, 0);
        assert_eq!(router.queue_end, Time::from_us(50_000 + 49_976 + 2_000));
    }
}
