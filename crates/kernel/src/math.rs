//! Mathematical functions with the same bits on host and device. No tables of
//! the platform, no approximate instructions.
//!
//! | functions | accuracy |
//! | --- | --- |
//! | [`sqrt`], [`mul_add`], [`floor`], [`ceil`], [`trunc`], [`round`] | exact: rounded once, as IEEE 754 says |
//! | all others | those of musl, which `libm` is a port of: as a rule below 1 unit in the last place |
//!
//! `sqrt` is an instruction everywhere, `mul_add` one on devices; the others are
//! `libm`'s code on host and device alike. They are functions, not methods: where a program
//! links `std`, methods of these names are `std`'s, with bits of their own.
//!
//! ```
//! use celerity_kernel::math;
//! assert_eq!(math::sqrt(2.25_f32), 1.5);
//! assert_eq!(math::mul_add(2.0_f64, 3.0, 1.0), 7.0);
//! ```

/// `f32` and `f64`; sealed.
pub trait Float: Copy + sealed::Sealed {}

impl Float for f32 {}
impl Float for f64 {}

/// Instructions of the device, which `libm` would spell out in integers.
#[cfg(target_arch = "nvptx64")]
mod exact {
    pub(super) use core::intrinsics::{fmaf32 as fmaf, fmaf64 as fma};
    pub(super) use core::intrinsics::{sqrtf32 as sqrtf, sqrtf64 as sqrt};
}

/// The compiler's own square root: `libm` has inline assembly for it, around which
/// no loop is vectorised.
#[cfg(not(target_arch = "nvptx64"))]
mod exact {
    pub(super) use libm::{fma, fmaf};

    #[inline]
    pub(super) fn sqrtf(x: f32) -> f32 {
        std::primitive::f32::sqrt(x)
    }

    #[inline]
    pub(super) fn sqrt(x: f64) -> f64 {
        std::primitive::f64::sqrt(x)
    }
}

macro_rules! functions {
    ($(
        $(#[$docs:meta])*
        $name:ident($($argument:ident),*) = $module:ident::{$single:ident, $double:ident};
    )*) => {
        $(
            $(#[$docs])*
            #[must_use]
            #[inline]
            pub fn $name<F: Float>($($argument: F),*) -> F {
                F::$name($($argument),*)
            }
        )*

        mod sealed {
            use super::{exact, reflected};

            pub trait Sealed: Sized {
                $(fn $name($($argument: Self),*) -> Self;)*
            }

            impl Sealed for f32 {
                $(
                    #[inline]
                    fn $name($($argument: Self),*) -> Self {
                        $module::$single($($argument),*)
                    }
                )*
            }

            impl Sealed for f64 {
                $(
                    #[inline]
                    fn $name($($argument: Self),*) -> Self {
                        $module::$double($($argument),*)
                    }
                )*
            }
        }
    };
}

functions! {
    /// The square root; NaN below 0.
    sqrt(x) = exact::{sqrtf, sqrt};
    /// `x * factor + term`, rounded once.
    mul_add(x, factor, term) = exact::{fmaf, fma};
    /// The largest integer that is not above `x`.
    floor(x) = libm::{floorf, floor};
    /// The smallest integer that is not below `x`.
    ceil(x) = libm::{ceilf, ceil};
    /// The integer from `x` towards 0.
    trunc(x) = libm::{truncf, trunc};
    /// The nearest integer, halves away from 0.
    round(x) = libm::{roundf, round};
    /// e to the power of `x`.
    exp(x) = libm::{expf, exp};
    /// 2 to the power of `x`.
    exp2(x) = libm::{exp2f, exp2};
    /// The natural logarithm.
    ln(x) = libm::{logf, log};
    /// The logarithm to base 2.
    log2(x) = libm::{log2f, log2};
    /// The logarithm to base 10.
    log10(x) = libm::{log10f, log10};
    /// `x` to the power of `exponent`.
    pow(x, exponent) = libm::{powf, pow};
    /// The sine of an angle in radians.
    sin(x) = libm::{sinf, sin};
    /// The cosine of an angle in radians.
    cos(x) = libm::{cosf, cos};
    /// The tangent of an angle in radians.
    tan(x) = libm::{tanf, tan};
    /// The angle of the point (`x`, `y`), in radians.
    atan2(y, x) = libm::{atan2f, atan2};
    /// The hyperbolic tangent.
    tanh(x) = libm::{tanhf, tanh};
    /// The cubic root.
    cbrt(x) = libm::{cbrtf, cbrt};
    /// The distance of the point (`x`, `y`) from the origin.
    hypot(x, y) = libm::{hypotf, hypot};
    /// The error function.
    erf(x) = libm::{erff, erf};
    /// 1 less the error function, accurate also where that is close to 1.
    erfc(x) = reflected::{erfcf, erfc};
}

/// `libm`'s function, bit for bit, by way of positive arguments: it has the same long
/// computation twice, for either sign, and the threads of a warp would go through both.
mod reflected {
    #[inline]
    pub(super) fn erfcf(x: f32) -> f32 {
        let magnitude = x.to_bits() & 0x7fff_ffff;
        // Below 27/32 the sign matters earlier.
        if magnitude < 0x3f58_0000 {
            return libm::erfcf(x);
        }
        let positive = libm::erfcf(f32::from_bits(magnitude));
        if x < 0.0 { 2.0 - positive } else { positive }
    }

    #[inline]
    pub(super) fn erfc(x: f64) -> f64 {
        let magnitude = x.to_bits() & (u64::MAX >> 1);
        if (magnitude >> 32) < 0x3feb_0000 {
            return libm::erfc(x);
        }
        let positive = libm::erfc(f64::from_bits(magnitude));
        if x < 0.0 { 2.0 - positive } else { positive }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_functions_round_once() {
        assert_eq!(sqrt(2_f32).to_bits(), 0x3fb5_04f3);
        // The product alone would be rounded to 1.
        let tiny = 1.0 / f64::from(1 << 30);
        assert_eq!(mul_add(1.0 + tiny, 1.0 - tiny, -1.0), -(tiny * tiny));
        assert_eq!(round(-2.5_f32), -3.0);
        assert_eq!(trunc(-2.5_f64), -2.0);
    }

    #[test]
    fn the_reflected_error_function_has_the_bits_of_libm() {
        let same = |a: u64, b: u64, at: f64| assert_eq!(a, b, "at {at:e}");
        let near = [0x3f58_0000_u32, 0x3fa0_0000, 0x4036_db6d, 0x41e0_0000, 0x7f80_0000];
        let near = near.into_iter().flat_map(|bits| bits - 2..=bits.min(0x7f7f_fffe) + 1);
        for bits in (0..0x7f80_0001).step_by(9973).chain(near) {
            for x in [f32::from_bits(bits), -f32::from_bits(bits)] {
                same(erfc(x).to_bits().into(), libm::erfcf(x).to_bits().into(), x.into());
                let x = f64::from(x) * 1.000_000_1;
                same(erfc(x).to_bits(), libm::erfc(x).to_bits(), x);
            }
        }
        assert!(erfc(f32::NAN).is_nan() && erfc(-f64::NAN).is_nan());
    }

    #[test]
    fn arguments_are_in_order() {
        assert_eq!(pow(2_f32, 10.0), 1024.0);
        assert_eq!(atan2(0_f64, -1.0), core::f64::consts::PI);
    }
}
