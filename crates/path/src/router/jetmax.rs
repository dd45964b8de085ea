//! JetMax's router: a link counts the flows for which it is the bottleneck and divides what it has among
//! them (Zhang, Leonard, Loguinov, INFOCOM 2006). Only the paper's abstract was available; equations, names
//! of fields and constants are from memory or ours (laws/cards/jetmax.md).

use lfn_header::jetmax::JetMax;
use lfn_header::Header;
use lfn_keys::{keys, Span, DELAY_MAX};
use lfn_units::{Rate, Time};

use super::{Protocol, Site};

/// How much smaller another link's rate must be to take over from the bottleneck.
const HYSTERESIS: f64 = 1.05;

keys! {
    /// JetMax, recovered from memory.
    #[derive(Copy)]
    pub struct JetMaxConfig {
        /// Share of the rate to use.
        gamma: f64 = 0.95, in Span::above(0.0).at_most(1.0);
        /// From one fair rate to the next.
        interval: Time = Time::from_ms(100), in Time::from_ms(1)..=DELAY_MAX;
    }
}

/// The router of one link. Rates in bytes/s.
#[derive(Clone, Debug)]
pub(super) struct JetMaxRouter {
    config: JetMaxConfig,
    /// The link's name in headers.
    link: u16,
    capacity: f64,
    rate: f64,
    interval: u32,
    interval_end: Time,
    /// The three additions for each packet: bytes, those of flows that name this link as their
    /// bottleneck, and the time between two packets of these.
    bytes: u64,
    own_bytes: u64,
    own_gaps_s: f64,
}

impl Protocol for JetMaxRouter {
    type Config = JetMaxConfig;

    /// A router on this link, whose number is not 0. A number uniform on \[0, 1) is the phase of its timer.
    fn new(config: JetMaxConfig, Site { link, rate }: Site, mut draw: impl FnMut() -> f64) -> JetMaxRouter {
        let capacity = rate.as_bps() / 8.0;
        JetMaxRouter {
            config,
            link,
            capacity,
            rate: config.gamma * capacity,
            interval: 0,
            interval_end: Time((config.interval.0 as f64 * (1.0 - draw())) as u64),
            bytes: 0,
            own_bytes: 0,
            own_gaps_s: 0.0,
        }
    }

    /// The rate of the link changes.
    fn set_rate(&mut self, rate: Rate) {
        self.capacity = rate.as_bps() / 8.0;
    }

    /// Timers up to `now`.
    fn advance(&mut self, now: Time, _: u64) {
        while self.interval_end <= now {
            // The first interval is shorter, by the phase of the timer: its sums are not of a whole one.
            if self.interval > 0 {
                self.rate = self.fair_rate();
            }
            self.interval += 1;
            self.interval_end = self.interval_end + self.config.interval;
            (self.bytes, self.own_bytes, self.own_gaps_s) = (0, 0, 0.0);
        }
    }

    /// A packet of any kind arrives, also if it is dropped then.
    #[inline]
    fn arrive(&mut self, bytes: u32, header: &Header) {
        self.bytes += u64::from(bytes);
        if let Header::JetMax(JetMax { bottleneck, gap_s, .. }) = *header {
            if bottleneck == self.link {
                self.own_bytes += u64::from(bytes);
                self.own_gaps_s += gap_s;
            }
        }
    }

    /// A data packet leaves, or the first of a handshake: the link of the least rate names itself, with
    /// an advantage for the one that is the bottleneck already.
    #[inline]
    fn depart(&mut self, _: u32, _: u64, header: &mut Header) {
        if let Header::JetMax(it) = header {
            let bid = |link, rate: f64| if link == it.bottleneck { rate / HYSTERESIS } else { rate };
            if bid(self.link, self.rate) < bid(it.link, it.rate_bytes_per_s) {
                it.rate_bytes_per_s = self.rate;
                it.link = self.link;
                it.interval = self.interval;
            }
        }
    }
}

impl JetMaxRouter {
    /// g = (gamma C - u)/N: u is the traffic of flows with another bottleneck, N the number of the own
    /// ones, at least 1.
    fn fair_rate(&self) -> f64 {
        let interval_s = self.config.interval.as_s();
        let others = (self.bytes - self.own_bytes) as f64 / interval_s;
        let flows = self.own_gaps_s / interval_s;
        let room = (self.config.gamma * self.capacity - others).max(0.0);
        // Less than one is a flow that came, or was held up, in the middle of the interval: were it
        // believed, its rate would grow without bound.
        room / flows.max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn router(link: u16) -> JetMaxRouter {
        let mut router =
            JetMaxRouter::new(JetMaxConfig::default(), Site { link, rate: Rate(1_000_000_000) }, || 0.0);
        router.advance(Time::from_ms(100), 0);
        router
    }

    fn header(bottleneck: u16, gap_s: f64) -> Header {
        let rate_bytes_per_s = f64::INFINITY;
        Header::JetMax(JetMax { gap_s, rate_bytes_per_s, interval: 0, link: 0, bottleneck })
    }

    #[test]
    fn what_others_leave_is_divided_among_the_own_flows() {
        let mut it = router(1);
        assert_eq!(it.rate, 118.75e6);
        // Two own flows of 10 and 40 MB/s, and 18.75 MB/s of others.
        (0..1000).for_each(|_| it.arrive(1000, &header(1, 1e-4)));
        (0..4000).for_each(|_| it.arrive(1000, &header(1, 0.25e-4)));
        (0..1000).for_each(|_| it.arrive(1000, &header(2, 1e-4)));
        (0..875).for_each(|_| it.arrive(1000, &Header::None));
        it.advance(Time::from_ms(200), 0);
        assert!((it.rate / 50e6 - 1.0).abs() < 1e-9, "{}", it.rate);
        // A flow sent a hundredth of what it says.
        (0..10).for_each(|_| it.arrive(1000, &header(1, 1e-4)));
        it.advance(Time::from_ms(300), 0);
        assert_eq!(it.rate, 118.75e6);
        // No flow is left.
        it.advance(Time::from_ms(400), 0);
        assert_eq!(it.rate, 118.75e6);
    }

    #[test]
    fn two_flows_come_to_their_share_by_three_fifths_a_step() {
        let mut it = router(1);
        let (mut x, goal) = ([0.0_f64; 2], 59.375e6);
        for step in 1..=6 {
            // As rates say, however small; a flow that sends nothing yet cannot be counted.
            let flows = |it: &mut JetMaxRouter| {
                for _ in 0..2 {
                    (0..100).for_each(|_| it.arrive(1000, &header(1, 1e-3)));
                }
            };
            flows(&mut it);
            it.advance(Time::from_ms(100 * (step + 1)), 0);
            x = x.map(|x| x - 0.6 * (x - it.rate));
            let wanted = (1.0 - 0.4_f64.powi(step as i32)) * goal;
            assert!(x.iter().all(|x| (x / wanted - 1.0).abs() < 1e-9), "{x:?}");
        }
        assert!(x.iter().all(|x| (x / goal - 1.0).abs() < 0.01));
    }

    #[test]
    fn the_least_rate_of_a_path_counts_if_it_is_clearly_less_than_the_bottlenecks() {
        let told = |bottleneck, rates: [f64; 2]| {
            let mut header = header(bottleneck, 1e-4);
            for (link, rate) in (1..).zip(rates) {
                JetMaxRouter { rate, ..router(link) }.depart(1000, 0, &mut header);
            }
            let Header::JetMax(it) = header else { unreachable!() };
            (it.link, it.rate_bytes_per_s)
        };
        assert_eq!(told(0, [2e6, 1e6]), (2, 1e6));
        assert_eq!(told(1, [2e6, 1e6]), (2, 1e6));
        assert_eq!(told(1, [1.04e6, 1e6]), (1, 1.04e6));
        assert_eq!(told(1, [1.06e6, 1e6]), (2, 1e6));
        assert_eq!(told(2, [1e6, 1.04e6]), (2, 1.04e6));
    }
}
