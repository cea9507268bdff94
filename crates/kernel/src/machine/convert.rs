//! Conversions that are one instruction, of which the compiler makes several: it does not know
//! that the instruction ends at the limits of the type, and makes 0 of what is not a number.

use core::arch::asm;

/// `x as u32`.
#[inline(always)]
pub(crate) fn to_u32(x: f32) -> u32 {
    let number: u32;
    // SAFETY: only computes.
    unsafe {
        asm!(
            "cvt.rzi.u32.f32 {number}, {x};",
            number = out(reg32) number,
            x = in(reg32) x,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    number
}
