//! Times as packets carry them.

use lfn_units::Time;

/// A time as packets carry it: modulo 2^32 us.
pub(crate) fn stamp(at: Time) -> u32 {
    (at.as_ns() / 1000) as u32
}

/// From a stamp to `now`, in us, if that is less than 2^32 us.
pub(crate) fn since_stamp(stamp_us: u32, now: Time) -> u64 {
    u64::from(stamp(now).wrapping_sub(stamp_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_may_wrap() {
        let sent = Time::from_s(5000);
        assert!(stamp(sent) < 1_000_000_000);
        assert_eq!(since_stamp(stamp(Time::from_s(4294)), sent), 706_000_000);
    }
}
