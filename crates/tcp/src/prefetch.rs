//! Prefetch hints for the processor's cache. They do not change results.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Prefetches all cache lines of `what`, which is used some events later.
#[inline(always)]
pub fn prefetch<T: ?Sized>(what: &T) {
    prefetch_bytes(what, size_of_val(what));
}

/// Prefetches the cache lines of its first `bytes`.
#[inline(always)]
pub(crate) fn prefetch_bytes<T: ?Sized>(what: &T, bytes: usize) {
    let start = std::ptr::from_ref(what).cast::<i8>();
    for offset in (0..bytes).step_by(LINE) {
        hint(start.wrapping_add(offset));
    }
}

/// Prefetches the cache line after that of `last`, the newest element of a ring, where the next ones are
/// written.
#[inline(always)]
pub fn prefetch_behind<T>(last: &T) {
    hint(std::ptr::from_ref(last).cast::<i8>().wrapping_add(LINE));
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn hint(at: *const i8) {
    use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
    // SAFETY: a hint accesses nothing, and every x86-64 has the instruction.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn hint(_at: *const i8) {}
