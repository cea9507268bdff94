//! A global allocator that counts. Knows nothing of what is allocated.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    /// Allocations of this thread.
    static HERE: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, with a count of its allocations and of their bytes.
#[derive(Debug, Default)]
pub struct CountingAllocator {
    allocations: AtomicU64,
    allocated: AtomicU64,
    freed: AtomicU64,
}

impl CountingAllocator {
    /// An allocator that has not allocated.
    #[must_use]
    pub const fn new() -> Self {
        let [allocations, allocated, freed] = [const { AtomicU64::new(0) }; 3];
        Self { allocations, allocated, freed }
    }

    /// Allocations and reallocations of the whole process so far.
    #[must_use]
    pub fn allocations(&self) -> u64 {
        self.allocations.load(Ordering::Relaxed)
    }

    /// Bytes that the whole process has allocated and not freed. Exact while no
    /// other thread allocates.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        let freed = self.freed.load(Ordering::Relaxed);
        self.allocated.load(Ordering::Relaxed) - freed
    }

    /// Runs `work`; returns its result and how often the process allocated
    /// meanwhile.
    pub fn count<T>(&self, work: impl FnOnce() -> T) -> (T, u64) {
        let before = self.allocations();
        let result = work();
        (result, self.allocations() - before)
    }

    /// As [`count`](Self::count), but counts this thread alone: threads that start
    /// or end meanwhile do not disturb it.
    pub fn count_here<T>(&self, work: impl FnOnce() -> T) -> (T, u64) {
        let before = HERE.get();
        let result = work();
        (result, HERE.get() - before)
    }

    fn note(&self, allocated: usize, freed: usize) {
        self.allocations.fetch_add(1, Ordering::Relaxed);
        // A thread that ends may allocate when its counter is gone.
        let _ = HERE.try_with(|count| count.set(count.get() + 1));
        self.allocated.fetch_add(allocated as u64, Ordering::Relaxed);
        self.freed.fetch_add(freed as u64, Ordering::Relaxed);
    }
}

// SAFETY: every method forwards to `System` with the caller's own arguments, so
// what the caller promised holds there, and what `System` promises holds here.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.note(layout.size(), 0);
        // SAFETY: forwarded; see above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.freed.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: forwarded; see above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        self.note(new_size, layout.size());
        // SAFETY: forwarded; see above.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}
