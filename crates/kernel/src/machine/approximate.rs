//! The hardware's approximations: one instruction each.

use core::arch::asm;

/// `1 / x` to some 20 bits.
#[cfg(celerity_fast)]
#[inline(always)]
pub(crate) fn inverse_of_double(x: f64) -> f64 {
    let result: f64;
    // SAFETY: only computes.
    unsafe {
        asm!(
            "rcp.approx.ftz.f64 {result}, {x};",
            result = out(reg64) result,
            x = in(reg64) x,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    result
}

/// `x * factor + term`, and 0 or 1 if that is less or more; 0 if it is no number.
#[cfg(celerity_fast)]
#[inline(always)]
pub(crate) fn saturated(x: f32, factor: f32, term: f32) -> f32 {
    let result: f32;
    // SAFETY: only computes.
    unsafe {
        asm!(
            "fma.rn.sat.f32 {result}, {x}, {factor}, {term};",
            result = out(reg32) result,
            x = in(reg32) x,
            factor = in(reg32) factor,
            term = in(reg32) term,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    result
}

macro_rules! instructions {
    ($($(#[$docs:meta])* $name:ident = $instruction:literal;)*) => {$(
        $(#[$docs])*
        #[inline(always)]
        pub(crate) fn $name(x: f32) -> f32 {
            let result: f32;
            // SAFETY: only computes.
            unsafe {
                asm!(
                    concat!($instruction, " {result}, {x};"),
                    result = out(reg32) result,
                    x = in(reg32) x,
                    options(pure, nomem, nostack, preserves_flags),
                );
            }
            result
        }
    )*};
}

instructions! {
    /// `1 / √x`.
    inverse_root = "rsqrt.approx.ftz.f32";
    /// `1 / x`.
    inverse = "rcp.approx.ftz.f32";
}

#[cfg(celerity_fast)]
instructions! {
    power_of_two = "ex2.approx.f32";
    power_of_two_flushed = "ex2.approx.ftz.f32";
    logarithm = "lg2.approx.f32";
    sine = "sin.approx.ftz.f32";
    cosine = "cos.approx.ftz.f32";
    hyperbolic_tangent = "tanh.approx.f32";
}
