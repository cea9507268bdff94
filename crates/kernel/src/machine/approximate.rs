//! The hardware's approximations: one instruction each.

use core::arch::asm;

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
