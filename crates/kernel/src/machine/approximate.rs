//! The hardware's approximations: one instruction each.

use core::arch::asm;

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
    ($type:ident in $register:ident; $($(#[$docs:meta])* $name:ident = $instruction:literal;)*) => {$(
        $(#[$docs])*
        #[inline(always)]
        pub(crate) fn $name(x: $type) -> $type {
            let result: $type;
            // SAFETY: only computes.
            unsafe {
                asm!(
                    concat!($instruction, " {result}, {x};"),
                    result = out($register) result,
                    x = in($register) x,
                    options(pure, nomem, nostack, preserves_flags),
                );
            }
            result
        }
    )*};
}

instructions! {
    f32 in reg32;
    /// `1 / √x`.
    inverse_root = "rsqrt.approx.ftz.f32";
    /// `1 / x`.
    inverse = "rcp.approx.ftz.f32";
}

#[cfg(celerity_fast)]
instructions! {
    f32 in reg32;
    /// The nearest integer, or the number itself where floats are integers.
    whole = "cvt.rni.f32.f32";
    power_of_two = "ex2.approx.f32";
    power_of_two_flushed = "ex2.approx.ftz.f32";
    logarithm = "lg2.approx.f32";
    sine = "sin.approx.ftz.f32";
    cosine = "cos.approx.ftz.f32";
    hyperbolic_tangent = "tanh.approx.f32";
}

#[cfg(celerity_fast)]
instructions! {
    f64 in reg64;
    /// `1 / √x` to some 20 bits.
    inverse_root_of_double = "rsqrt.approx.ftz.f64";
    /// `1 / x` to some 20 bits.
    inverse_of_double = "rcp.approx.ftz.f64";
}
