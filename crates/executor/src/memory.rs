//! Zeroed, aligned host memory and the addresses in it. Knows nothing of who
//! uses it.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The start of an allocation: an address that may travel between threads.
///
/// Having one grants nothing. Whoever reads or writes through it states why
/// the memory is live and not raced for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BasePtr(NonNull<u8>);

// SAFETY: a `BasePtr` is a number; every access through it is an unsafe
// operation whose own contract rules out races.
unsafe impl Send for BasePtr {}
// SAFETY: as above; no method reads or writes the memory.
unsafe impl Sync for BasePtr {}

impl BasePtr {
    /// An address for memory without elements: not null, aligned for everything
    /// and never accessed.
    #[must_use]
    pub fn dangling() -> Self {
        Self(NonNull::new(std::ptr::without_provenance_mut(PAGE)).expect("a page size is not 0"))
    }

    /// An address from elsewhere; `None` if it is null.
    #[must_use]
    pub fn of_raw(address: *mut u8) -> Option<Self> {
        NonNull::new(address).map(Self)
    }

    /// The start of memory that somebody else owns.
    #[must_use]
    pub fn of_slice(bytes: &[u8]) -> Self {
        Self(NonNull::from(bytes).cast())
    }

    /// The start of memory that somebody else owns and lets others write.
    #[must_use]
    pub fn of_mut_slice(bytes: &mut [u8]) -> Self {
        Self(NonNull::from(bytes).cast())
    }

    /// The address, for calls that take a raw pointer.
    #[must_use]
    pub fn as_ptr(self) -> *mut u8 {
        self.0.as_ptr()
    }
}

/// Memory starts on a cache line.
const CACHE_LINE: usize = 64;
const PAGE: usize = 4096;

/// Large memory starts in one of so many places of a page, in turns. What lies in equal places
/// of two arrays, as in a stencil's, would otherwise end in equal bits of its address, and
/// processors take a load for one of what has just been stored if the last 12 bits are equal.
const PLACES: usize = 16;
/// From one place to the next: not so near that a loop has both in flight.
const BETWEEN_PLACES: usize = 17 * CACHE_LINE;
const LARGE: usize = 64 * 1024;

/// Up to this alignment the system allocator hands out zeroed pages as they
/// are; for more, the standard library writes the zeroes itself, which would
/// touch every page of a large buffer on the thread that allocates it.
const NATURAL: usize = 16;

/// Zeroed memory, given back when dropped.
#[derive(Debug)]
pub(crate) struct ZeroedMemory {
    block: NonNull<u8>,
    layout: Layout,
    base: BasePtr,
}

// SAFETY: it owns its block and gives out nothing but an address.
unsafe impl Send for ZeroedMemory {}

impl ZeroedMemory {
    /// Memory of at least `bytes` bytes, aligned to at least `alignment` and a cache
    /// line. `None` if there is none.
    pub(crate) fn new(bytes: u64, alignment: u64) -> Option<Self> {
        let bytes = usize::try_from(bytes).ok()?.max(1);
        let alignment = usize::try_from(alignment).ok()?.max(CACHE_LINE);
        let (alignment, place) = match alignment {
            CACHE_LINE if bytes >= LARGE => (PAGE, next_place()),
            _ => (alignment, 0),
        };
        let padded = bytes.checked_add(place + alignment - NATURAL)?;
        let layout = Layout::from_size_align(padded, NATURAL).ok()?;
        // SAFETY: the layout's size is at least 1.
        let block = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let skip = block.as_ptr().align_offset(alignment) + place;
        assert!(skip <= padded - bytes, "natural alignment leaves room for the padding");
        // SAFETY: `skip + bytes` is inside the block, as just asserted.
        let base = BasePtr(unsafe { block.add(skip) });
        Some(Self { block, layout, base })
    }

    pub(crate) fn base(&self) -> BasePtr {
        self.base
    }
}

impl Drop for ZeroedMemory {
    fn drop(&mut self) {
        // SAFETY: `block` came from `alloc_zeroed` with this layout and is
        // given back once.
        unsafe { dealloc(self.block.as_ptr(), self.layout) };
    }
}

/// Where the next large memory starts, from a page on.
fn next_place() -> usize {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    place(COUNT.fetch_add(1, Ordering::Relaxed))
}

fn place(count: usize) -> usize {
    count % PLACES * BETWEEN_PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_zeroed() {
        let large = LARGE as u64;
        for (bytes, alignment) in [(0, 1), (1, 1), (100, 256), (large, 8), (large, 8192)] {
            let memory = ZeroedMemory::new(bytes, alignment).unwrap();
            let address = memory.base().as_ptr() as usize;
            assert_eq!(address % CACHE_LINE.max(usize::try_from(alignment).unwrap()), 0);
            let length = usize::try_from(bytes).unwrap();
            // SAFETY: the memory holds `bytes` bytes and nobody else uses it.
            let contents = unsafe { std::slice::from_raw_parts(memory.base().as_ptr(), length) };
            assert!(contents.iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    fn places_are_different_parts_of_a_page() {
        let places: Vec<_> = (0..PLACES).map(|count| place(count) % PAGE).collect();
        for (i, place) in places.iter().enumerate() {
            assert!(place % CACHE_LINE == 0 && !places[..i].contains(place), "{places:?}");
        }
    }

    #[test]
    fn what_cannot_exist_is_refused() {
        assert!(ZeroedMemory::new(u64::MAX, 8).is_none());
        assert!(ZeroedMemory::new(1 << 62, 8).is_none());
    }
}
