//! Loads and stores of 16 and of 8 bytes in global memory, for elements that need not lie at multiples
//! of that. By inline assembly: beside a branch that takes elements one by one, the compiler finds
//! that both do the same, and takes them one by one in either.

use core::arch::asm;
use core::mem::MaybeUninit;

/// Bytes that are moved at once, for values of `size` bytes: 16 or 8, and 1 where neither makes up
/// the values.
pub(crate) const fn piece(size: usize) -> usize {
    match size {
        0 => 1,
        _ if size.is_multiple_of(16) => 16,
        _ if size.is_multiple_of(8) => 8,
        _ => 1,
    }
}

/// The value at `at`.
///
/// # Safety
/// It lies in global memory, at a multiple of its [`piece`], which is not 1.
#[inline(always)]
pub(crate) unsafe fn load<T: Copy>(at: *const T) -> T {
    let mut value = MaybeUninit::<T>::uninit();
    let piece = const { piece(size_of::<T>()) };
    for offset in (0..size_of::<T>()).step_by(piece) {
        // SAFETY: the pieces make up the value, which lies at a multiple of them.
        unsafe {
            let (from, to) =
                (at.cast::<u8>().add(offset), value.as_mut_ptr().cast::<u8>().add(offset));
            let (a, b, c, d): (u32, u32, u32, u32);
            if piece == 16 {
                asm!(
                    "ld.global.v4.b32 {{{a}, {b}, {c}, {d}}}, [{from}];",
                    a = out(reg32) a,
                    b = out(reg32) b,
                    c = out(reg32) c,
                    d = out(reg32) d,
                    from = in(reg64) from,
                    options(pure, readonly, nostack, preserves_flags),
                );
                to.cast::<[u32; 4]>().write_unaligned([a, b, c, d]);
            } else {
                asm!(
                    "ld.global.v2.b32 {{{a}, {b}}}, [{from}];",
                    a = out(reg32) a,
                    b = out(reg32) b,
                    from = in(reg64) from,
                    options(pure, readonly, nostack, preserves_flags),
                );
                to.cast::<[u32; 2]>().write_unaligned([a, b]);
            }
        }
    }
    // SAFETY: all of its bytes have been written.
    unsafe { value.assume_init() }
}

/// Replaces the value at `at`.
///
/// # Safety
/// As [`load`], and nobody else touches it.
#[inline(always)]
pub(crate) unsafe fn store<T: Copy>(at: *mut T, value: T) {
    let piece = const { piece(size_of::<T>()) };
    for offset in (0..size_of::<T>()).step_by(piece) {
        // SAFETY: the pieces make up the value, which goes to a multiple of them.
        unsafe {
            let (from, to) =
                ((&raw const value).cast::<u8>().add(offset), at.cast::<u8>().add(offset));
            if piece == 16 {
                let [a, b, c, d] = from.cast::<[u32; 4]>().read_unaligned();
                asm!(
                    "st.global.v4.b32 [{to}], {{{a}, {b}, {c}, {d}}};",
                    a = in(reg32) a,
                    b = in(reg32) b,
                    c = in(reg32) c,
                    d = in(reg32) d,
                    to = in(reg64) to,
                    options(nostack, preserves_flags),
                );
            } else {
                let [a, b] = from.cast::<[u32; 2]>().read_unaligned();
                asm!(
                    "st.global.v2.b32 [{to}], {{{a}, {b}}};",
                    a = in(reg32) a,
                    b = in(reg32) b,
                    to = in(reg64) to,
                    options(nostack, preserves_flags),
                );
            }
        }
    }
}

/// Keeps a branch a branch: the driver's compiler makes instructions with a condition of short ones, and
/// then those of one branch wait for what those of the other would have loaded.
#[inline(always)]
pub(crate) fn stay_apart() {
    // SAFETY: threads that are here together wait for each other.
    unsafe {
        asm!(
            "activemask.b32 {here};",
            "bar.warp.sync {here};",
            here = out(reg32) _,
            options(nomem, nostack, preserves_flags),
        );
    }
}
