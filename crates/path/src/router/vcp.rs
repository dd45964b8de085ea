//! VCP's load meter: arrivals in 200 ms and the queue, in proportion to the capacity of the link
//! (Xia, Subramanian, Stoica, Kalyanaraman, SIGCOMM 2005; constants of its first author's ns-2 code).

use lfn_header::vcp::Load;
use lfn_header::Header;
use lfn_keys::{keys, words, Span, Wrong};
use lfn_units::{Rate, Time};

use super::{Protocol, Site};

/// From one load factor to the next, t_rho; senders know it.
const INTERVAL: Time = Time::from_ms(200);
/// From one sample of the queue to the next, t_q.
const SAMPLE: Time = Time::from_ms(10);
/// Weight of the queue in the load, kappa_q.
const QUEUE_WEIGHT: f64 = 0.5;
/// Weight of the last interval's mean queue in the average.
const NEWEST: f64 = 0.25;

/// Whose details of VCP's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VcpCompat {
    /// As the paper means it.
    Paper,
    /// The rules of the author's code where it differs from the paper: the average of the queue keeps only a
    /// 16th of the last mean, `gamma` is adjusted towards a utilization that depends on the rate, and the
    /// load counts in whole per cent, rounded up.
    Author,
}

words! { VcpCompat { Paper = "paper", Author = "author", } }

keys! {
    /// The variable-structure congestion control protocol: load measured over 200ms.
    #[derive(Copy)]
    pub struct VcpConfig {
        /// Share of the rate that counts as capacity.
        gamma: f64 = 0.98, in Span::above(0.0).at_most(1.0);
        /// Whether the load is measured as in the paper or as in its author's code.
        compat: VcpCompat = VcpCompat::Paper;
    }
    settle VcpConfig::check;
}

impl VcpConfig {
    fn check(&mut self, is_said: &dyn Fn(&str) -> bool) -> Result<(), Wrong> {
        if self.compat == VcpCompat::Author && is_said("gamma") {
            let hint = "write one of both: the author's code steers gamma itself";
            return Err(Wrong::new("found beside compat = \"author\"", hint).of("gamma"));
        }
        Ok(())
    }
}

/// The author's rates in bit/s, with the utilization aimed at and the step of gamma for each: a rate
/// belongs to the first that it is not less than two thirds of.
const CLASSES: [(f64, f64, f64); 10] = [
    (1e12, 0.993, 0.001),
    (1e11, 0.992, 0.001),
    (1e10, 0.990, 0.001),
    (1e9, 0.985, 0.002),
    (1e8, 0.975, 0.003),
    (1e7, 0.960, 0.004),
    (1e6, 0.940, 0.005),
    (1e5, 0.920, 0.006),
    (1e4, 0.890, 0.008),
    (1e3, 0.850, 0.010),
];
const SLOWEST: (f64, f64) = (0.800, 0.020);
/// Intervals from one step of gamma to the next.
const STEP_INTERVALS: u32 = 10;

/// The author's outer loop.
#[derive(Clone, Copy, Debug)]
struct Steering {
    gamma: f64,
    utilization_sum: f64,
    intervals: u32,
}

/// The meter of one link, and the code that it writes into packets.
#[derive(Clone, Debug)]
pub(super) struct VcpMeter {
    gamma: f64,
    steering: Option<Steering>,
    rate_bps: f64,
    load: Load,
    /// Of this interval.
    arrived_bytes: u64,
    queue_sum_bytes: u64,
    samples: u64,
    /// Averaged over intervals.
    queue_bytes: f64,
    next_sample: Time,
    interval_end: Time,
    /// The first interval begins at the phase of its timer.
    measuring: bool,
}

impl Protocol for VcpMeter {
    type Config = VcpConfig;

    /// A meter on a link of this rate. `draw` gives numbers uniform on \[0, 1), the phases of the timers.
    fn new(config: VcpConfig, Site { rate, .. }: Site, mut draw: impl FnMut() -> f64) -> VcpMeter {
        let mut phase = |period: Time| Time((period.0 as f64 * draw()) as u64);
        VcpMeter {
            gamma: config.gamma,
            steering: (config.compat == VcpCompat::Author).then_some(Steering {
                gamma: 0.95,
                utilization_sum: 0.0,
                intervals: 0,
            }),
            rate_bps: rate.as_bps(),
            load: Load::Low,
            arrived_bytes: 0,
            queue_sum_bytes: 0,
            samples: 0,
            queue_bytes: 0.0,
            next_sample: phase(SAMPLE),
            interval_end: phase(INTERVAL),
            measuring: false,
        }
    }

    /// The rate of the link changes.
    fn set_rate(&mut self, rate: Rate) {
        self.rate_bps = rate.as_bps();
    }

    /// Timers up to `now`, since which `queue_bytes` have waited.
    fn advance(&mut self, now: Time, queue_bytes: u64) {
        while self.next_sample.min(self.interval_end) <= now {
            if self.next_sample <= self.interval_end {
                self.next_sample = self.next_sample + SAMPLE;
                self.queue_sum_bytes += queue_bytes;
                self.samples += 1;
            } else {
                self.interval_end = self.interval_end + INTERVAL;
                if std::mem::replace(&mut self.measuring, true) {
                    self.on_interval();
                }
                (self.arrived_bytes, self.queue_sum_bytes, self.samples) = (0, 0, 0);
            }
        }
    }

    /// A packet of any kind arrives, also if it is dropped then.
    #[inline]
    fn arrive(&mut self, bytes: u32, _: &Header) {
        self.arrived_bytes += u64::from(bytes);
    }

    /// A data packet leaves: no router lowers a code.
    #[inline]
    fn depart(&mut self, _: u32, _: u64, header: &mut Header) {
        if let Header::Vcp(load) = header {
            *load = (*load).max(self.load);
        }
    }
}

impl VcpMeter {
    /// Share of the rate that counts as capacity, now.
    fn gamma(&self) -> f64 {
        self.steering.map_or(self.gamma, |steering| steering.gamma)
    }

    fn on_interval(&mut self) {
        let mean = self.queue_sum_bytes as f64 / self.samples.max(1) as f64;
        let forgets = self.steering.is_some();
        self.queue_bytes =
            if forgets { mean / 16.0 } else { (1.0 - NEWEST) * self.queue_bytes + NEWEST * mean };
        let bits = 8.0 * (self.arrived_bytes as f64 + QUEUE_WEIGHT * self.queue_bytes);
        let utilization = bits / (self.rate_bps * INTERVAL.as_s());
        let factor = utilization / self.gamma();
        self.load = match &mut self.steering {
            None => of_factor(factor),
            Some(steering) => {
                steering.add(utilization, self.rate_bps);
                of_factor((100.0 * factor + 1.0).floor() / 100.0)
            }
        };
    }
}

/// The code of a load factor.
fn of_factor(factor: f64) -> Load {
    match factor {
        x if x < 0.8 => Load::Low,
        x if x < 1.0 => Load::High,
        _ => Load::Overload,
    }
}

impl Steering {
    fn add(&mut self, utilization: f64, rate_bps: f64) {
        self.utilization_sum += utilization;
        self.intervals += 1;
        if self.intervals < STEP_INTERVALS {
            return;
        }
        let class = CLASSES.iter().find(|(least_bps, ..)| (rate_bps / least_bps + 0.34).floor() >= 1.0);
        let (target, step) = class.map_or(SLOWEST, |&(_, target, step)| (target, step));
        let mean = self.utilization_sum / f64::from(self.intervals);
        if mean < target {
            self.gamma += step;
        } else if mean > target {
            self.gamma -= step;
        }
        self.gamma = self.gamma.clamp(0.1, 0.999);
        (self.utilization_sum, self.intervals) = (0.0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIGABIT: Rate = Rate(1_000_000_000);

    fn meter(config: VcpConfig) -> VcpMeter {
        let mut meter = VcpMeter::new(config, Site { link: 1, rate: GIGABIT }, || 0.0);
        meter.advance(Time::ZERO, 0);
        meter
    }

    /// The code after intervals in each of which so many bytes arrive, while so many wait.
    fn codes(config: VcpConfig, intervals: &[(u64, u64)]) -> Vec<Load> {
        let mut meter = meter(config);
        let mut now = Time::ZERO;
        let interval = |&(arrives, waits): &(u64, u64)| {
            (0..arrives / 50_000).for_each(|_| meter.arrive(50_000, &Header::None));
            now = now + INTERVAL;
            meter.advance(now, waits);
            meter.load
        };
        intervals.iter().map(interval).collect()
    }

    #[test]
    fn load_factors_of_the_specification() {
        let code = |arrives| codes(VcpConfig::default(), &[(arrives, 0)])[0];
        assert_eq!(code(19_550_000), Load::Low); // 0.798
        assert_eq!(code(19_600_000), Load::High); // 0.8
        assert_eq!(code(20_000_000), Load::High); // 0.8163
        assert_eq!(code(24_450_000), Load::High); // 0.998
        assert_eq!(code(24_500_000), Load::Overload); // 1
        assert_eq!(code(25_000_000), Load::Overload); // 1.0204
    }

    #[test]
    fn half_of_the_averaged_queue_counts() {
        // The average of 4 MB is 1 MB after one interval, and then 1.75 MB.
        let code = |arrives| codes(VcpConfig::default(), &[(arrives, 4_000_000)])[0];
        assert_eq!([code(23_950_000), code(24_000_000)], [Load::High, Load::Overload]);
        let second = |arrives| codes(VcpConfig::default(), &[(0, 4_000_000), (arrives, 4_000_000)])[1];
        assert_eq!([second(23_600_000), second(23_650_000)], [Load::High, Load::Overload]);
    }

    #[test]
    fn the_authors_queue_has_no_memory_and_his_per_cent_are_whole() {
        let author = VcpConfig { compat: VcpCompat::Author, ..VcpConfig::default() };
        // gamma is 0.95 at first: 79 % of 25 MB are 18.7625 MB, 99 % are 23.5125 MB.
        let code = |arrives, waits| codes(author, &[(0, 160_000_000), (arrives, waits)])[1];
        assert_eq!([code(18_750_000, 0), code(18_800_000, 0)], [Load::Low, Load::High]);
        assert_eq!([code(23_500_000, 0), code(23_550_000, 0)], [Load::High, Load::Overload]);
        // 3.2 MB of queue count as 200 kB, and half of that.
        assert_eq!([code(23_400_000, 3_200_000), code(23_450_000, 3_200_000)], [Load::High, Load::Overload]);
    }

    #[test]
    fn the_author_steers_gamma_to_a_utilization_that_depends_on_the_rate() {
        let gamma = |bytes: u64, rate: Rate| {
            let config = VcpConfig { compat: VcpCompat::Author, ..VcpConfig::default() };
            let mut meter = VcpMeter::new(config, Site { link: 1, rate }, || 0.0);
            meter.advance(Time::ZERO, 0);
            for interval in 1..=10 {
                (0..bytes / 1000).for_each(|_| meter.arrive(1000, &Header::None));
                meter.advance(Time(interval * INTERVAL.0), 0);
            }
            meter.gamma()
        };
        // 98.4 and 98.6 % of 1 Gbit/s; 97.4 and 97.6 % of 100 Mbit/s; 660 Mbit/s is of the class of 1 Gbit/s.
        assert_eq!([gamma(24_600_000, GIGABIT), gamma(24_650_000, GIGABIT)], [0.952, 0.948]);
        let tenth = Rate(100_000_000);
        assert_eq!([gamma(2_435_000, tenth), gamma(2_440_000, tenth)], [0.953, 0.947]);
        assert_eq!(gamma(0, Rate(660_000_000)), 0.952);
        assert_eq!(gamma(0, Rate(659_000_000)), 0.953);
    }

    #[test]
    fn a_path_tells_the_highest_load() {
        let at = |load| {
            let mut meter = meter(VcpConfig::default());
            meter.load = load;
            meter
        };
        let told = |loads: [Load; 3]| {
            let mut header = Header::Vcp(Load::Low);
            loads.iter().for_each(|&load| at(load).depart(1000, 0, &mut header));
            header
        };
        assert_eq!(told([Load::Low, Load::Overload, Load::High]), Header::Vcp(Load::Overload));
        assert_eq!(told([Load::High, Load::High, Load::Low]), Header::Vcp(Load::High));
        let mut other = Header::None;
        at(Load::Overload).depart(1000, 0, &mut other);
        assert_eq!(other, Header::None);
    }

    #[test]
    fn timers_begin_at_their_phase() {
        let mut meter = VcpMeter::new(VcpConfig::default(), Site { link: 1, rate: GIGABIT }, || 0.5);
        (0..500).for_each(|_| meter.arrive(50_000, &Header::None));
        // Packets before the first interval, 100 ms from the start, do not count.
        meter.advance(Time::from_ms(300), 0);
        assert_eq!(meter.load, Load::Low);
        (0..500).for_each(|_| meter.arrive(50_000, &Header::None));
        meter.advance(Time::from_ms(499), 0);
        assert_eq!(meter.load, Load::Low);
        meter.advance(Time::from_ms(500), 0);
        assert_eq!(meter.load, Load::Overload);
        // An idle second later the link is free.
        meter.advance(Time::from_ms(1500), 0);
        assert_eq!(meter.load, Load::Low);
    }
}
