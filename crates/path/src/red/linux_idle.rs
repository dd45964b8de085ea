//! Idle time of RED under Linux's rules.

use lfn_units::Time;

/// The fall of the average in idle time by Linux's integers, as tc sets them up for a rate: linear to one half in the
/// first half of a cell, then powers of 2 by whole cells. A cell is a power of 2 in microseconds (tc's `Scell_log`).
#[derive(Clone, Debug)]
pub(super) struct LinuxIdle {
    pub(super) cell_us: u64,
    /// Of the exponential fall, in a cell.
    exponent: f64,
}

/// tc counts time in ticks.
const TICK_S: f64 = 64e-9;
/// tc's table of powers has cells up to this one, and powers up to 31.
const LAST_CELL: u64 = 255;
const LAST_POWER: f64 = 31.0;

impl LinuxIdle {
    pub(super) fn new(weight: f64, packets_per_second: f64) -> LinuxIdle {
        let per_tick = -libm::log1p(-weight) * packets_per_second * TICK_S;
        let mut cell = 1u64;
        while LAST_POWER / per_tick / cell as f64 >= 512.0 && cell < 1 << 31 {
            cell *= 2;
        }
        // tc's cell is of ticks; the kernel takes it as of microseconds.
        LinuxIdle { cell_us: cell, exponent: cell as f64 * per_tick }
    }

    /// The share of the average that is left after an idle time.
    pub(super) fn kept(&self, idle: Time) -> f64 {
        let idle_us = (idle.0 / 1_000_000).min(LAST_CELL * self.cell_us);
        let cells = idle_us / self.cell_us;
        let power = if cells == LAST_CELL { LAST_POWER } else { libm::rint(cells as f64 * self.exponent) };
        if power > 0.0 {
            libm::exp2(-power.min(LAST_POWER))
        } else {
            (1.0 - idle_us as f64 / self.cell_us as f64).max(0.5)
        }
    }
}
