//! Linux's timers: a clock that ticks every millisecond, and a wheel whose levels are the coarser the longer a
//! timer is.

use lfn_units::Time;

/// The clock at time 0, in ms, of the host of a connection that begins then: that of Linux in our validation.
const CLOCK_MS: u16 = 912;
/// The coarsest tick, in ms.
const COARSEST_MS: u16 = 4096;
/// Delays from which ticks are 8, 64, 512 and 4,096 ms apart. Measured on 6.12: a delay of 504 ms ends at a multiple
/// of 8 ms, one of 512 ms at a multiple of 64.
const LEVELS_MS: [u64; 4] = [63, 504, 4032, 32256];

/// The clock at time 0 of the host of a connection that begins at `start`, in ms. Hosts differ: on one clock thousands
/// of connections would repeat their segments together.
pub fn clock_ms(start: Time) -> u16 {
    // Fibonacci hashing; 0 at 0.
    let hashed = start.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    CLOCK_MS + (hashed % u64::from(COARSEST_MS)) as u16
}

/// When a timer of `delay_ms` fires that was set at `now` on a host with that clock: at the first tick of its level
/// after the delay.
pub fn fires(clock_ms: u16, now: Time, delay_ms: u64) -> Time {
    let shift = 3 * LEVELS_MS.iter().filter(|&&least| delay_ms >= least).count();
    let clock_ms = u64::from(clock_ms);
    let over_ms = now.as_ns() / 1_000_000 + delay_ms + clock_ms;
    Time::from_ms((((over_ms >> shift) + 1) << shift) - clock_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux 6.12: when the timer was set, in tenths of a millisecond, the timeout, and when it fired.
    #[test]
    fn timers_fire_when_linuxs_did() {
        for (set, delay_ms, fired_ms) in [
            (15_137, 225, 1744),
            (15_227, 235, 1760),
            (15_911, 305, 1904), // over at 1896, a multiple of 8: the next one
            (17_440, 450, 2200),
            (17_760, 504, 2288),
            (17_920, 512, 2352),
            (22_880, 1008, 3312),
            (33_760, 1922, 5360),
            (34_400, 2380, 5872),
            (46_560, 2056, 6768),
        ] {
            assert_eq!(
                fires(CLOCK_MS, Time::from_us(set * 100), delay_ms),
                Time::from_ms(fired_ms),
                "{delay_ms}"
            );
        }
        // The tail loss probe of an RTT of 24 ms: a tick of 1 ms.
        assert_eq!(fires(clock_ms(Time::ZERO), Time::from_us(1_514_100), 50), Time::from_ms(1565));
    }
}
