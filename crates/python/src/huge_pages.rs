//! Large lists on huge pages: the state of 100,000 flows is more than the processor's cache of small pages reaches.

use std::alloc::{GlobalAlloc, Layout, System};

/// A list of so many bytes has at least one huge page.
const LARGE_BYTES: usize = 4 << 20;
const PAGE_BYTES: usize = 4096;

/// The system's allocator, whose large lists ask for huge pages.
struct HugePages;

/// A hint: where there are none, nothing changes.
fn hint(start: *mut u8, bytes: usize) {
    if bytes >= LARGE_BYTES && !start.is_null() {
        // From the page on which it begins: a mapping of which only a part was advised could not be moved as it grows.
        let before = start.addr() % PAGE_BYTES;
        // SAFETY: the hint does not alter what memory holds.
        unsafe { libc::madvise(start.wrapping_sub(before).cast(), before + bytes, libc::MADV_HUGEPAGE) };
    }
}

// SAFETY: all is done by the system's allocator.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let start = unsafe { System.alloc(layout) };
        hint(start, layout.size());
        start
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let start = unsafe { System.alloc_zeroed(layout) };
        hint(start, layout.size());
        start
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(start, layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        let start = unsafe { System.realloc(start, layout, bytes) };
        hint(start, bytes);
        start
    }
}

#[global_allocator]
static ALLOCATOR: HugePages = HugePages;
