//! Draws from a seed: tquic's BBRs choose phases at random.

use std::cell::Cell;
use std::ops::Range;

thread_local! {
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// The draws of this thread start from here.
pub fn seed(seed: u64) {
    STATE.set(seed);
}

pub struct ThreadRng;

pub fn thread_rng() -> ThreadRng {
    ThreadRng
}

pub trait Rng {
    fn gen_range<T: Between>(&mut self, range: Range<T>) -> T {
        // Knuth's linear congruential generator for MMIX.
        let next =
            STATE.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        STATE.set(next);
        T::between(range, (next >> 11) as f64 / (1u64 << 53) as f64)
    }
}

impl Rng for ThreadRng {}

pub trait Between: Sized {
    /// The place `share` of the way through a range, rounded down.
    fn between(range: Range<Self>, share: f64) -> Self;
}

macro_rules! between {
    ($($number:ty)+) => {
        $(impl Between for $number {
            fn between(range: Range<$number>, share: f64) -> $number {
                range.start + (share * (range.end - range.start) as f64) as $number
            }
        })+
    };
}

between!(u32 u64 usize);
