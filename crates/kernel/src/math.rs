//! Mathematical functions with the same bits on host and device, but for
//! [fast kernels](#in-fast-kernels). No tables of the platform, no approximate instructions.
//!
//! | functions | accuracy |
//! | --- | --- |
//! | [`sqrt`], [`mul_add`], [`floor`], [`ceil`], [`trunc`], [`round`] | exact: rounded once, as IEEE 754 says |
//! | all others | those of musl, which `libm` is a port of: as a rule below 1 unit in the last place |
//!
//! `sqrt` is an instruction everywhere, `mul_add` one on devices; the others are `libm`'s
//! code on host and device alike, some of them with fewer branches and the same bits. They
//! are functions, not methods: where a program links `std`, methods of these names are
//! `std`'s, with bits of their own.
//!
//! ```
//! use celerity_kernel::math;
//! assert_eq!(math::sqrt(2.25_f32), 1.5);
//! assert_eq!(math::mul_add(2.0_f64, 3.0, 1.0), 7.0);
//! ```
//!
//! Roots and quotients of numbers that are neither tiny nor huge cost GPUs half, as [`normal`]'s functions.
//!
//! # In fast kernels
//!
//! In a kernel that is marked `#[kernel(fast)]`, and in all that it calls, devices compute by the hardware's
//! approximations. The largest errors, for `f32` over all arguments, by the example `accuracy` on an H100 (driver 580):
//!
//! | function of `f32` | units in the last place | otherwise |
//! | --- | --- | --- |
//! | [`sqrt`], `1 / x` | 0.94, 0.98 | |
//! | `x / y` | 2.2 (4 · 10⁹ pairs) | |
//! | [`rsqrt`] | 1.6 | a subnormal argument is taken for 0 |
//! | [`exp`], [`exp2`] | 2.1, 2.4 | |
//! | [`ln`], [`log2`], [`log10`] below 1/2 and from 2 on | 3.4, 2.4, 2.7 | between: off by at most 1.7 · 10⁻⁷, 2.2 · 10⁻⁷, 6.5 · 10⁻⁸, which near 1 is all of the result |
//! | [`pow`] | unbounded | the error of `log2` times the exponent is an error in parts of the result |
//! | [`sin`], [`cos`] | unbounded | off by at most 6.1 · 10⁻⁷, 4.9 · 10⁻⁷, also near their zeros; from 65,536 on they are the strict ones |
//! | [`tan`] | unbounded | the quotient of both |
//! | [`tanh`] | 134 | off by at most 8.0 · 10⁻⁶ |
//! | [`erf`], [`erfc`] | 2.8, 7.5 | |
//! | [`mul_add`], [`floor`], [`ceil`], [`trunc`], [`round`] | exact | |
//! | others | those of strict kernels, with fused products and sums | |
//!
//! Of `f64`, [`rsqrt`] is approximate, off by 1.6 units in the last place at most (2.7 · 10⁸ random
//! numbers). [`exp`], [`sin`] and [`cos`] are polynomials of fused products and sums, at most 1 unit in the last place from the
//! strict ones, [`tanh`] and [`erf`] at most 2 (of each 2.7 · 10⁸ random numbers of sizes from 2⁻²⁴ to 2¹⁰, on an H200); angles
//! from 100,000 on are strict. All others are the strict ones, with fused products and sums. On hosts everything stays strict.

use core::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

use crate::plain::Scalar;

#[cfg(any(all(target_arch = "nvptx64", celerity_fast), all(test, not(target_arch = "nvptx64"))))]
mod double;
#[cfg(all(target_arch = "nvptx64", celerity_fast))]
mod fast;
pub mod normal;
mod straight;
#[cfg(not(target_arch = "nvptx64"))]
mod whole;

/// `f32` and `f64`, with their arithmetic; sealed. `default()` is 0.
pub trait Float:
    Scalar
    + Default
    + PartialOrd
    + From<f32>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + sealed::Sealed
{
}

impl Float for f32 {}
impl Float for f64 {}

/// Instructions of the device, which `libm` would spell out in integers.
#[cfg(target_arch = "nvptx64")]
mod exact {
    pub(super) use core::f32::math::{
        ceil as ceilf, floor as floorf, mul_add as fmaf, round as roundf, sqrt as sqrtf,
        trunc as truncf,
    };
    pub(super) use core::f64::math::{ceil, floor, mul_add as fma, round, sqrt, trunc};
}

/// The compiler's own square root: `libm` has inline assembly for it, around which
/// no loop is vectorised. And integers by sums: `libm` looks at bits, in branches.
#[cfg(not(target_arch = "nvptx64"))]
mod exact {
    pub(super) use super::whole::{ceil, ceilf, floor, floorf, round, roundf, trunc, truncf};
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

/// What strict kernels and hosts call, but for what is exact.
#[cfg(not(all(target_arch = "nvptx64", celerity_fast)))]
mod chosen {
    pub(super) use super::straight::{erfc, erfcf, exp, expf};
    pub(super) use libm::{
        cos, cosf, erf, erff, exp2, exp2f, log, log2, log2f, log10, log10f, logf, pow, powf, sin,
        sinf, tan, tanf, tanh, tanhf,
    };

    #[inline]
    pub(super) fn rsqrtf(x: f32) -> f32 {
        1.0 / super::exact::sqrtf(x)
    }

    #[inline]
    pub(super) fn rsqrt(x: f64) -> f64 {
        1.0 / super::exact::sqrt(x)
    }
}

#[cfg(all(target_arch = "nvptx64", celerity_fast))]
use fast as chosen;

/// `c[0] + x (c[1] + x (c[2] + ...))`, each product and sum fused.
#[cfg(any(all(target_arch = "nvptx64", celerity_fast), all(test, not(target_arch = "nvptx64"))))]
#[inline(always)]
fn polynomial<F: Float, const N: usize>(x: F, coefficients: [F; N]) -> F {
    let mut sum = coefficients[N - 1];
    for at in (0..N - 1).rev() {
        sum = mul_add(x, sum, coefficients[at]);
    }
    sum
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
                sealed::$name::Call::call($($argument),*)
            }
        )*

        /// A trait for each function. If they were functions of one trait, the compiler would
        /// propose to import that trait to whoever writes `f32::sin` in a kernel.
        mod sealed {
            use super::{chosen, exact};

            pub trait Sealed: $($name::Call +)* super::normal::sealed::Normal {}
            impl Sealed for f32 {}
            impl Sealed for f64 {}

            $(
                pub(super) mod $name {
                    pub trait Call: Sized {
                        fn call($($argument: Self),*) -> Self;
                    }
                }

                impl $name::Call for f32 {
                    #[inline]
                    fn call($($argument: Self),*) -> Self {
                        $module::$single($($argument),*)
                    }
                }

                impl $name::Call for f64 {
                    #[inline]
                    fn call($($argument: Self),*) -> Self {
                        $module::$double($($argument),*)
                    }
                }
            )*
        }
    };
}

functions! {
    /// The square root; NaN below 0.
    sqrt(x) = exact::{sqrtf, sqrt};
    /// 1 divided by the square root: rounded twice, infinite at 0, NaN below.
    rsqrt(x) = chosen::{rsqrtf, rsqrt};
    /// `x * factor + term`, rounded once.
    mul_add(x, factor, term) = exact::{fmaf, fma};
    /// The largest integer that is not above `x`.
    floor(x) = exact::{floorf, floor};
    /// The smallest integer that is not below `x`.
    ceil(x) = exact::{ceilf, ceil};
    /// The integer from `x` towards 0.
    trunc(x) = exact::{truncf, trunc};
    /// The nearest integer, halves away from 0.
    round(x) = exact::{roundf, round};
    /// e to the power of `x`.
    exp(x) = chosen::{expf, exp};
    /// 2 to the power of `x`.
    exp2(x) = chosen::{exp2f, exp2};
    /// The natural logarithm.
    ln(x) = chosen::{logf, log};
    /// The logarithm to base 2.
    log2(x) = chosen::{log2f, log2};
    /// The logarithm to base 10.
    log10(x) = chosen::{log10f, log10};
    /// `x` to the power of `exponent`.
    pow(x, exponent) = chosen::{powf, pow};
    /// The sine of an angle in radians.
    sin(x) = chosen::{sinf, sin};
    /// The cosine of an angle in radians.
    cos(x) = chosen::{cosf, cos};
    /// The tangent of an angle in radians.
    tan(x) = chosen::{tanf, tan};
    /// The angle of the point (`x`, `y`), in radians.
    atan2(y, x) = libm::{atan2f, atan2};
    /// The hyperbolic tangent.
    tanh(x) = chosen::{tanhf, tanh};
    /// The cubic root.
    cbrt(x) = libm::{cbrtf, cbrt};
    /// The distance of the point (`x`, `y`) from the origin.
    hypot(x, y) = libm::{hypotf, hypot};
    /// The error function.
    erf(x) = chosen::{erff, erf};
    /// 1 less the error function, accurate also where that is close to 1.
    erfc(x) = chosen::{erfcf, erfc};
}

/// `x as u32`, as one instruction on devices: towards 0, to the nearest `u32` if it is none, and
/// 0 if it is not a number.
///
/// ```
/// use celerity_kernel::math;
/// assert_eq!([2.9, -1.0, 1e10, f32::NAN].map(math::to_u32), [2, 0, u32::MAX, 0]);
/// ```
#[must_use]
#[inline]
pub fn to_u32(x: f32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    return crate::machine::convert::to_u32(x);
    #[cfg(not(target_arch = "nvptx64"))]
    return x as u32;
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
    fn arguments_are_in_order() {
        assert_eq!(pow(2_f32, 10.0), 1024.0);
        assert_eq!(atan2(0_f64, -1.0), core::f64::consts::PI);
    }
}
