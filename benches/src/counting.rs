//! A global allocator that counts. Knows nothing of what is allocated.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

/// The system's allocator, with a count of its allocations.
#[derive(Debug, Default)]
pub struct CountingAllocator {
    allocations: AtomicU64,
}

impl CountingAllocator {
    /// An allocator that has not allocated.
    #[must_use]
    pub const fn new() -> Self {
        Self { allocations: AtomicU64::new(0) }
    }

    /// Allocations and reallocations of the whole process so far.
    #[must_use]
    pub fn allocations(&self) -> u64 {
        self.allocations.load(Ordering::Relaxed)
    }
}

// SAFETY: every method forwards to `System` with the caller's own arguments, so
// what the caller promised holds there, and what `System` promises holds here.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.allocations.fetch_add(1, Ordering::Relaxed);
        // SAFETY: forwarded; see above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: forwarded; see above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        self.allocations.fetch_add(1, Ordering::Relaxed);
        // SAFETY: forwarded; see above.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}
