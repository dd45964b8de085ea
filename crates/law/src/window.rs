//! Windows as laws and senders count them.

use std::fmt;
use std::ops::{Add, Div};

/// A congestion window or slow-start threshold: segments with a fraction, Q32.32, as in laws/law.h.
#[repr(transparent)]
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Window(u64);

impl Window {
    /// One segment.
    pub const ONE: Window = Window::whole(1);
    /// The initial `ssthresh`.
    pub const INFINITE: Window = Window(u64::MAX);
    /// No `ssthresh` is below two segments (RFC 5681 eq. 4), but of laws without slow start.
    pub const MIN_SSTHRESH: Window = Window::whole(2);
    /// No law grows past 2^26 segments.
    pub const MAX: Window = Window::whole(1 << 26);

    /// Whole segments.
    pub const fn whole(segments: u64) -> Window {
        Window(segments * (1 << 32))
    }

    /// A count of segments, rounded down to a 2^32nd of one; none below 0.
    pub fn of(segments: f64) -> Window {
        Window((segments * Window::ONE.0 as f64) as u64)
    }

    /// A count of segments, rounded to the nearest 2^32nd of one.
    pub fn nearest(segments: f64) -> Window {
        Window((segments * Window::ONE.0 as f64).round() as u64)
    }

    /// The number of laws/law.h.
    pub const fn from_q32(q32: u64) -> Window {
        Window(q32)
    }

    /// The number of laws/law.h.
    pub const fn q32(self) -> u64 {
        self.0
    }

    /// Segments, rounded down.
    #[inline]
    pub const fn floor(self) -> u64 {
        self.0 >> 32
    }

    /// Segments; infinite where it is.
    pub fn segments(self) -> f64 {
        match i64::try_from(self.0) {
            // Its conversion is one instruction.
            Ok(q32) => q32 as f64 / Window::ONE.0 as f64,
            Err(_) if self == Window::INFINITE => f64::INFINITY,
            Err(_) => self.0 as f64 / Window::ONE.0 as f64,
        }
    }
}

impl Add for Window {
    type Output = Window;

    fn add(self, other: Window) -> Window {
        Window(self.0 + other.0)
    }
}

impl Div<u64> for Window {
    type Output = Window;

    fn div(self, divisor: u64) -> Window {
        Window(self.0 / divisor)
    }
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} segments", self.segments())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_and_their_fractions() {
        assert_eq!(Window::of(2.5).q32(), 5 << 31);
        assert_eq!((Window::of(2.5).floor(), Window::of(2.5).segments()), (2, 2.5));
        assert_eq!(Window::whole(7) / 2 + Window::ONE, Window::of(4.5));
        // Other numbers become the nearest window.
        for (segments, window) in
            [(-1.0, Window::default()), (f64::NAN, Window::default()), (1e30, Window::INFINITE)]
        {
            assert_eq!(Window::of(segments), window);
        }
        assert_eq!(format!("{:?}, {:?}", Window::of(0.75), Window::INFINITE), "0.75 segments, inf segments");
        assert!(Window::MAX < Window::INFINITE && Window::MIN_SSTHRESH > Window::ONE);
    }
}
