//! Roots, inverses and quotients of numbers that are neither tiny nor huge: the bits of [`sqrt`](super::sqrt) and
//! `/`, in half of the instructions on GPUs, which otherwise ask of each number whether it needs another way.
//!
//! | | `f32` from | to | `f64` from | to |
//! | --- | --- | --- | --- | --- |
//! | the argument of [`sqrt`] and [`recip`], both of [`div`] and its result, without their sign | 2⁻¹⁰⁰ | 2¹⁰⁰ | 2⁻⁹⁰⁰ | 2⁹⁰⁰ |
//!
//! A numerator may be 0; the quotient is then 0 without a sign. What comes of other numbers is unspecified, and may differ
//! from device to device; hosts with debug assertions panic. Where numbers come from outside, limit them first:
//! `square.min(1e20)` is one instruction.
//!
//! ```
//! use celerity_kernel::math::{self, normal};
//! let square = 0.37_f32;
//! assert_eq!(normal::sqrt(square), math::sqrt(square));
//! assert_eq!(normal::div(2.0, square), 2.0 / square);
//! ```
//!
//! Of `f64`, devices compute as elsewhere.

use super::Float;

/// The square root of a number that is neither tiny nor huge.
///
/// # Panics
/// With debug assertions, on hosts, if it is.
#[must_use]
#[inline]
#[track_caller]
pub fn sqrt<F: Float>(x: F) -> F {
    F::normal_sqrt(x)
}

/// `1 / x`, of a number that is neither tiny nor huge.
///
/// # Panics
/// With debug assertions, on hosts, if it is.
#[must_use]
#[inline]
#[track_caller]
pub fn recip<F: Float>(x: F) -> F {
    F::normal_recip(x)
}

/// `x / y`, where neither those nor the quotient are tiny or huge; `x` may be 0.
///
/// # Panics
/// With debug assertions, on hosts, if one is.
#[must_use]
#[inline]
#[track_caller]
pub fn div<F: Float>(x: F, y: F) -> F {
    F::normal_div(x, y)
}

pub(super) mod sealed {
    pub trait Normal: Sized + crate::tellable::Told {
        #[track_caller]
        fn normal_sqrt(x: Self) -> Self;
        #[track_caller]
        fn normal_recip(x: Self) -> Self;
        #[track_caller]
        fn normal_div(x: Self, y: Self) -> Self;
    }
}

/// As elsewhere. Hosts look whether numbers are as promised.
macro_rules! ordinary {
    ($number:ident, $sqrt:ident, $least:expr, $most:expr) => {
        impl sealed::Normal for $number {
            #[inline]
            fn normal_sqrt(x: Self) -> Self {
                #[cfg(not(target_arch = "nvptx64"))]
                debug_assert!(
                    ($least..=$most).contains(&x),
                    "normal::sqrt({x:e}) of a number that is not: limit it, or use math::sqrt"
                );
                super::exact::$sqrt(x)
            }

            #[inline]
            fn normal_recip(x: Self) -> Self {
                #[cfg(not(target_arch = "nvptx64"))]
                debug_assert!(
                    ($least..=$most).contains(&x.abs()),
                    "normal::recip({x:e}) of a number that is not: limit it, or use /"
                );
                1.0 / x
            }

            #[inline]
            fn normal_div(x: Self, y: Self) -> Self {
                #[cfg(not(target_arch = "nvptx64"))]
                {
                    let is_normal = |x: Self| ($least..=$most).contains(&x.abs());
                    debug_assert!(
                        is_normal(y) && (x == 0.0 || is_normal(x) && is_normal(x / y)),
                        "normal::div({x:e}, {y:e}) of numbers that are not, or the quotient is not: limit them, or use /"
                    );
                }
                x / y
            }
        }
    };
}

ordinary!(f64, sqrt, f64::from_bits((1023 - 900) << 52), f64::from_bits((1023 + 900) << 52));
#[cfg(any(not(target_arch = "nvptx64"), celerity_fast))]
ordinary!(f32, sqrtf, f32::from_bits((127 - 100) << 23), f32::from_bits((127 + 100) << 23));

/// What the device's compiler makes of a root and a quotient that are rounded to nearest, less its questions:
/// an approximation, and steps that end with one that rounds once.
#[cfg(all(target_arch = "nvptx64", not(celerity_fast)))]
impl sealed::Normal for f32 {
    #[inline]
    fn normal_sqrt(x: Self) -> Self {
        let inverse = crate::machine::approximate::inverse_root(x);
        let root = x * inverse;
        fma(fma(-root, root, x), 0.5 * inverse, root)
    }

    #[inline]
    fn normal_recip(x: Self) -> Self {
        let inverse = crate::machine::approximate::inverse(x);
        fma(inverse, -fma(x, inverse, -1.0), inverse)
    }

    #[inline]
    fn normal_div(x: Self, y: Self) -> Self {
        let first = crate::machine::approximate::inverse(y);
        let inverse = fma(first, fma(-y, first, 1.0), first);
        let quotient = x * inverse;
        fma(inverse, fma(-y, quotient, x), quotient)
    }
}

#[cfg(all(target_arch = "nvptx64", not(celerity_fast)))]
#[inline]
fn fma(x: f32, factor: f32, term: f32) -> f32 {
    core::f32::math::mul_add(x, factor, term)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math;

    #[test]
    fn hosts_round_once() {
        for x in [1e-29_f32, 0.1, 0.37, 3.0, 7e28] {
            assert_eq!(sqrt(x), math::sqrt(x));
            assert_eq!([recip(-x), div(-0.2, x), div(0.0, x)], [-1.0 / x, -0.2 / x, 0.0]);
            let x = f64::from(x);
            assert_eq!([sqrt(x), recip(x), div(3.0, x)], [math::sqrt(x), 1.0 / x, 3.0 / x]);
        }
    }

    #[test]
    #[cfg(debug_assertions)]
    fn hosts_refuse_what_devices_do_not_look_at() {
        let refuses = |call: fn() -> f32| std::panic::catch_unwind(call).is_err();
        assert!(refuses(|| sqrt(0.0)) && refuses(|| sqrt(-1.0)) && refuses(|| sqrt(f32::NAN)));
        assert!(refuses(|| recip(1e-38)) && refuses(|| recip(f32::INFINITY)));
        assert!(refuses(|| div(1e20, 1e-20)) && refuses(|| div(1e-40, 1.0)));
        assert!(refuses(|| div(0.0, 0.0)) && refuses(|| div(1.0, 1e38)));
    }
}
