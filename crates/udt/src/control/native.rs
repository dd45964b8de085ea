//! UDT's own control: additive increase by decades of the spare capacity, multiplicative decrease that is
//! randomised within an epoch (DAIMD).
//!
//! The default is libudt 4.11 with a floating-point period. Symbols: A is the speed of arrival, B the
//! capacity, C the sending rate, all in packets a second.

use lfn_units::Time;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;

use super::{CongestionControl, Path};
use crate::estimate::SYN;

const SYN_US: f64 = 10_000.0;
/// 1/8 more between packets: 1/9 less rate.
const DECREASE: f64 = 1.125;
/// Cuts in an epoch after the first.
const MAX_CUTS: u32 = 5;
/// Above this loss rate UDT 2 did not increase.
const LOSS_RATE_2: f64 = 0.001;

/// The reaction to the first NAK of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstNak {
    /// A cut (UDT 4).
    Cut,
    /// A cut, and silence for 10 ms (UDT 1 and 2).
    CutAndFreeze,
    /// Silence for 10 ms in place of the cut (UDT 3.0).
    Freeze,
}

/// Which UDT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeConfig {
    /// The reaction to the first NAK of an epoch.
    pub first_nak: FirstNak,
    /// The least increase is 1/MSS packets in 10 ms (up to 4.10), else 1/100.
    pub floor_of_mss: bool,
    /// UDT 2: no increase above 0.1 % loss, a smoothed window, and no period below half the measured one.
    pub udt2: bool,
    /// Whole microseconds rounded up at a cut, and the period at the end of slow start upside down, as
    /// 4.11 has them. Rounding costs 40 % in one cut at 10 Gbit/s.
    pub compat: bool,
}

/// The variants of the law `udt`, in the order of laws/REGISTRY: 4.11, compat, 4.10, 3.0, 2.
const VARIANTS: [NativeConfig; 5] = {
    let v4 = NativeConfig { first_nak: FirstNak::Cut, floor_of_mss: false, udt2: false, compat: false };
    let v4_10 = NativeConfig { floor_of_mss: true, ..v4 };
    [
        v4,
        NativeConfig { compat: true, ..v4 },
        v4_10,
        NativeConfig { first_nak: FirstNak::Freeze, ..v4_10 },
        NativeConfig { first_nak: FirstNak::CutAndFreeze, udt2: true, ..v4_10 },
    ]
};

impl NativeConfig {
    /// The variant with this index in the registry.
    pub(super) fn of(variant: usize) -> NativeConfig {
        VARIANTS[variant]
    }
}

impl Default for NativeConfig {
    /// libudt 4.11.
    fn default() -> NativeConfig {
        VARIANTS[0]
    }
}

/// State of one sender.
#[derive(Clone, Debug)]
pub struct Native {
    config: NativeConfig,
    random: SplitMix64,
    slow_start: bool,
    window: f64,
    period_us: f64,
    last_decrease_period_us: f64,
    /// One past the largest packet sent when the epoch began.
    epoch_end: u64,
    avg_naks: u32,
    naks: u32,
    cuts: u32,
    /// Number of NAKs between two decreases.
    spread: u32,
    loss_seen: bool,
    last_update: Time,
    last_acked: u64,
    silent_until: Time,
    /// Since the last update (UDT 2).
    sent: u32,
    lost: u64,
}

impl Native {
    /// A sender that begins at `now`; `seed` is that of the draws within an epoch.
    pub fn new(config: NativeConfig, seed: u64, now: Time) -> Native {
        Native {
            config,
            random: SplitMix64::seed_from_u64(seed),
            slow_start: true,
            window: 16.0,
            period_us: 1.0,
            last_decrease_period_us: 1.0,
            epoch_end: 0,
            avg_naks: 0,
            naks: 0,
            cuts: 0,
            spread: 1,
            loss_seen: false,
            last_update: now,
            last_acked: 0,
            silent_until: Time::ZERO,
            sent: 0,
            lost: 0,
        }
    }

    /// Packets in 10 ms to add: 1 at 10^9 bit/s of spare capacity (rounded up to a power of 10), for
    /// packets of 1500 bytes.
    pub fn increase(&self, spare_pps: i64, mss_bytes: u32) -> f64 {
        let mss = f64::from(mss_bytes);
        let floor = if self.config.floor_of_mss { 1.0 / mss } else { 0.01 };
        let Some(bits_per_s) =
            u64::try_from(spare_pps).ok().and_then(|b| b.checked_mul(8 * u64::from(mss_bytes)))
        else {
            return floor;
        };
        if bits_per_s == 0 {
            return floor;
        }
        // The integer's digits give ⌈log10⌉ exactly.
        let decade = (bits_per_s - 1).checked_ilog10().map_or(0, |digits| digits + 1);
        (10u64.pow(decade) as f64 * 1.5e-6 / mss).max(floor)
    }

    fn end_slow_start(&mut self, path: &Path) {
        self.slow_start = false;
        let round_us = as_us(path.rtt + SYN);
        self.period_us = match path.arrival_pps {
            0 if self.config.compat => self.window / round_us,
            0 => round_us / self.window,
            pps => 1e6 / f64::from(pps),
        };
    }

    fn cut(&mut self, path: &Path) {
        self.period_us *= DECREASE;
        if self.config.compat {
            self.period_us = self.period_us.ceil();
        }
        self.epoch_end = path.next;
    }

    fn uniform(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn as_us(time: Time) -> f64 {
    time.0 as f64 * 1e-6
}

impl CongestionControl for Native {
    fn on_ack(&mut self, light: bool, path: &Path) {
        if light || path.now < self.last_update + SYN {
            return;
        }
        let elapsed = path.now - self.last_update;
        self.last_update = path.now;
        let (sent, lost) = (std::mem::take(&mut self.sent), std::mem::take(&mut self.lost));
        let round_us = as_us(path.rtt + SYN);
        let arrived = f64::from(path.arrival_pps) * round_us * 1e-6;
        if self.slow_start {
            // One more than acknowledged, as in libudt.
            self.window += (path.acked - self.last_acked + 1) as f64;
            self.last_acked = path.acked;
            if self.window > path.max_window_packets as f64 {
                self.end_slow_start(path);
            } else {
                return;
            }
        } else if self.config.udt2 {
            self.window = (0.875 * self.window + 0.125 * arrived).ceil().max(1.0);
        } else {
            self.window = arrived + 16.0;
        }
        if std::mem::take(&mut self.loss_seen) {
            return;
        }
        if self.config.udt2 && lost as f64 > LOSS_RATE_2 * f64::from(sent.max(1)) {
            return;
        }
        let b = f64::from(path.capacity_pps);
        let mut spare = (b - 1e6 / self.period_us).floor() as i64;
        let ninth = i64::from(path.capacity_pps / 9);
        if self.period_us > self.last_decrease_period_us {
            spare = spare.min(ninth);
        }
        let increase = self.increase(spare, path.mss_bytes);
        self.period_us = self.period_us * SYN_US / (self.period_us * increase + SYN_US);
        if self.config.udt2 && sent > 0 {
            self.period_us = self.period_us.max(as_us(elapsed) / f64::from(sent) / 2.0);
        }
    }

    fn on_loss(&mut self, first: u64, packets: u64, path: &Path) {
        self.lost += packets;
        if self.slow_start {
            self.end_slow_start(path);
            if path.arrival_pps > 0 {
                return;
            }
        }
        self.loss_seen = true;
        if first >= self.epoch_end {
            self.last_decrease_period_us = self.period_us;
            match self.config.first_nak {
                FirstNak::Freeze => self.epoch_end = path.next,
                FirstNak::Cut | FirstNak::CutAndFreeze => self.cut(path),
            }
            if self.config.first_nak != FirstNak::Cut {
                self.silent_until = path.now + SYN;
            }
            self.avg_naks = (0.875 * f64::from(self.avg_naks) + 0.125 * f64::from(self.naks)).ceil() as u32;
            self.naks = 1;
            self.cuts = 1;
            self.spread = ((f64::from(self.avg_naks) * self.uniform()).ceil() as u32).max(1);
        } else if self.cuts < MAX_CUTS {
            self.cuts += 1;
            self.naks += 1;
            if self.naks.is_multiple_of(self.spread) {
                self.cut(path);
            }
        }
    }

    fn on_timeout(&mut self, path: &Path) {
        if self.slow_start {
            self.end_slow_start(path);
        }
    }

    fn on_warning(&mut self, _path: &Path) {
        self.period_us *= DECREASE;
    }

    fn on_sent(&mut self, _index: u64, _path: &Path) {
        self.sent = self.sent.saturating_add(1);
    }

    fn period(&self) -> Time {
        Time((self.period_us * 1e6) as u64)
    }

    fn window_packets(&self) -> u64 {
        self.window as u64
    }

    fn silent_until(&self) -> Time {
        self.silent_until
    }
}
