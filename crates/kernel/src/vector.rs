//! Some elements of a row in one step: loads and stores of up to 16 bytes on devices, wherever
//! memory happens to be aligned for them. Knows addresses and boxes, and no view.
#![allow(unsafe_code)]
#![allow(clippy::inline_always, reason = "an array that goes to a function lives in memory")]

use crate::bounds::Bounds;
use crate::outside::{Scope, no_vector};

/// The `L` elements from `at` on. Devices load them by 16 or 8 bytes if their size is a multiple of
/// that and `at` is, and one by one otherwise; hosts have loads that need no alignment.
///
/// # Safety
/// They lie side by side in the memory of a buffer, and are valid to read.
#[inline(always)]
pub(crate) unsafe fn load<T: Copy, const L: usize>(at: *const T) -> [T; L] {
    #[cfg(target_arch = "nvptx64")]
    {
        let piece = const { crate::machine::wide::piece(size_of::<[T; L]>()) };
        if piece > align_of::<T>() && at.addr().is_multiple_of(piece) {
            // SAFETY: this function's contract, and the alignment that has just been found.
            return unsafe { crate::machine::wide::load(at.cast()) };
        }
        crate::machine::wide::stay_apart();
    }
    // SAFETY: this function's contract.
    unsafe { *at.cast() }
}

/// Replaces the `L` elements from `at` on, as [`load`] gets them.
///
/// # Safety
/// They lie side by side in the memory of a buffer, are valid to write, and nobody else touches them
/// meanwhile.
#[inline(always)]
pub(crate) unsafe fn store<T: Copy, const L: usize>(at: *mut T, values: [T; L]) {
    #[cfg(target_arch = "nvptx64")]
    {
        let piece = const { crate::machine::wide::piece(size_of::<[T; L]>()) };
        if piece > align_of::<T>() && at.addr().is_multiple_of(piece) {
            // SAFETY: this function's contract, and the alignment that has just been found.
            return unsafe { crate::machine::wide::store(at.cast(), values) };
        }
        crate::machine::wide::stay_apart();
    }
    // One by one, and by index: copied together, or by an iterator, an array would live in memory.
    #[expect(
        clippy::needless_range_loop,
        reason = "what iterates over an array keeps it in memory"
    )]
    for i in 0..L {
        // SAFETY: this function's contract.
        unsafe { at.add(i).write(values[i]) };
    }
}

/// Panics unless the `L` elements from `start` on along the fastest dimension are in `part`. One
/// comparison a dimension, as in [`Bounds::contains`].
#[inline(always)]
#[track_caller]
pub(crate) fn check<const L: usize, const D: usize>(
    scope: Scope,
    start: [usize; D],
    part: &Bounds<D>,
) {
    const { assert!(L > 0 && (D > 0 || L == 1), "a vector has an element, and not more than a row") };
    let (min, range) = (part.min(), part.range());
    let is_inside = (0..D).all(|dim| {
        // Where a vector may begin.
        let begins = if dim + 1 == D { range[dim].saturating_sub(L - 1) } else { range[dim] };
        start[dim].wrapping_sub(min[dim]) < begins
    });
    if !is_inside {
        no_vector(scope, (L, start), part);
    }
}
