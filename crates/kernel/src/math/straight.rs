//! Functions of `libm` with the same bits and fewer ways through them. The threads of a warp go
//! through every branch that one of them takes, so a special case that the general one covers
//! is left out, and what branches have in common is done once, behind them. Knows no device:
//! hosts run the same code. [`expf`] and [`erfcf`] were compared with `libm`'s on every `f32` once;
//! the test compares some.
//!
//! The single-precision functions are those of FreeBSD's `e_expf.c` and `s_erff.c`, by way of musl
//! and `libm`, conversion to float by Ian Lance Taylor, Cygnus Support:
//!
//! Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved. Developed at SunPro, a Sun
//! Microsystems, Inc. business. Permission to use, copy, modify, and distribute this software is
//! freely granted, provided that this notice is preserved.
#![allow(unsafe_code)]

pub(super) use libm::exp;

/// `x` without its sign, as bits.
#[inline]
fn magnitude(x: f32) -> u32 {
    x.to_bits() & 0x7fff_ffff
}

/// 2 to the power of `exponent`, which must be between -126 and 127.
#[inline]
fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits(((127 + exponent) << 23).cast_unsigned())
}

/// e to the power of `x`.
///
/// `libm` knows `x` to be less than half of ln 2, or about ln 2, where it needs not be rounded to a
/// multiple; rounding finds 0 and 1 there as well. It looks a half up in memory, and scales
/// the result by one, two or three factors, depending on how small or large it is; two do for all.
#[inline]
pub(super) fn expf(x: f32) -> f32 {
    const LN2_HIGH: f32 = 6.931_457_5e-1;
    const LN2_LOW: f32 = 1.428_606_8e-6;
    let is_negative = x.is_sign_negative();
    let size = magnitude(x);
    // At least 87.33655, or not a number.
    if size >= 0x42ae_ac50 {
        if size > 0x7f80_0000 {
            return x;
        }
        match is_negative {
            true if size >= 0x42cf_f1b5 => return 0.0,
            false if size >= 0x42b1_7218 => return x * power_of_two(127),
            _ => {}
        }
    }
    let half = if is_negative { -0.5 } else { 0.5 };
    // SAFETY: between -150 and 128, as `x` is between -104 and 89.
    let exponent: i32 = unsafe { (core::f32::consts::LOG2_E * x + half).to_int_unchecked() };
    let multiple = exponent as f32;
    let (high, low) = (x - multiple * LN2_HIGH, multiple * LN2_LOW);
    let rest = high - low;
    let square = rest * rest;
    let c = rest - square * (1.666_662_5e-1 + square * -2.766_733_2e-3);
    let result = 1.0 + (rest * c / (2.0 - c) - low + high);
    // The first product is exact, so that only the second rounds.
    let first = exponent >> 1;
    let result = result * power_of_two(first) * power_of_two(exponent - first);
    // At most 2^-14.
    if size <= 0x3900_0000 { 1.0 + x } else { result }
}

/// 1 less the error function.
///
/// Of positive arguments even where `x` is negative: `libm` has the long computation twice, for
/// either sign. And the quotient of two polynomials that each interval has is divided in one place.
#[inline]
pub(super) fn erfcf(x: f32) -> f32 {
    let size = magnitude(x);
    let is_negative = x.is_sign_negative();
    if size >= 0x41e0_0000 {
        return erfc_of_huge(x);
    }
    let positive = f32::from_bits(size);
    let (is_small, is_medium) = (size < 0x3f58_0000, size < 0x3fa0_0000);
    let (numerator, denominator) = match () {
        () if is_small => small_quotient(x * x),
        () if is_medium => medium_quotient(positive - 1.0),
        () if size < 0x4036_db6d => near_quotient(1.0 / (positive * positive)),
        () => far_quotient(1.0 / (positive * positive)),
    };
    let quotient = numerator / denominator;
    if is_small {
        let product = x * quotient;
        // Positive, and at least a quarter.
        return match !is_negative && size >= 0x3e80_0000 {
            true => 0.5 - (x - 0.5 + product),
            false => 1.0 - (x + product),
        };
    }
    let result = match is_medium {
        true => 1.0 - 8.450_629e-1 - quotient,
        false => tail(positive, quotient),
    };
    if is_negative { 2.0 - result } else { result }
}

/// Where the result is 0 or 2: of at least 28, of infinities, or not a number.
#[inline]
fn erfc_of_huge(x: f32) -> f32 {
    let limit = if x.is_sign_negative() { 2.0 } else { 0.0 };
    if magnitude(x) >= 0x7f80_0000 { limit + 1.0 / x } else { limit }
}

/// From the quotient of polynomials for 5/4 and more.
#[inline]
fn tail(x: f32, quotient: f32) -> f32 {
    let rounded = f32::from_bits(x.to_bits() & 0xffff_e000);
    expf(-rounded * rounded - 0.5625) * expf((rounded - x) * (rounded + x) + quotient) / x
}

/// Of the square of what is below 27/32.
#[inline]
fn small_quotient(square: f32) -> (f32, f32) {
    const ABOVE: [f32; 5] =
        [0.128_379_17, -0.325_042_1, -2.848_175e-2, -5.770_270_2e-3, -2.376_301_7e-5];
    const BELOW: [f32; 6] =
        [1.0, 0.397_917_2, 6.502_225e-2, 5.081_306e-3, 1.324_947_4e-4, -3.960_228_2e-6];
    (polynomial(square, ABOVE), polynomial(square, BELOW))
}

/// Of what is above 1, for less than 5/4.
#[inline]
fn medium_quotient(excess: f32) -> (f32, f32) {
    const ABOVE: [f32; 7] = [
        -2.362_118_6e-3,
        0.414_856_1,
        -0.372_207_88,
        0.318_346_62,
        -0.110_894_695,
        3.547_830_5e-2,
        -2.166_375_5e-3,
    ];
    const BELOW: [f32; 7] = [
        1.0,
        0.106_420_88,
        0.540_397_94,
        7.182_865_6e-2,
        0.126_171_22,
        1.363_708_4e-2,
        1.198_45e-2,
    ];
    (polynomial(excess, ABOVE), polynomial(excess, BELOW))
}

/// Of the inverse square, for less than 20/7.
#[inline]
fn near_quotient(inverse: f32) -> (f32, f32) {
    const ABOVE: [f32; 8] = [
        -9.864_944e-3,
        -0.693_858_56,
        -10.558_626,
        -62.375_33,
        -162.396_67,
        -184.605_09,
        -81.287_44,
        -9.814_329,
    ];
    const BELOW: [f32; 9] = [
        1.0,
        19.651_272,
        137.657_76,
        434.565_9,
        645.387_27,
        429.008_15,
        108.635,
        6.570_249_6,
        -6.042_441_4e-2,
    ];
    (polynomial(inverse, ABOVE), polynomial(inverse, BELOW))
}

/// Of the inverse square, for 20/7 and more.
#[inline]
fn far_quotient(inverse: f32) -> (f32, f32) {
    const ABOVE: [f32; 7] = [
        -9.864_943e-3,
        -0.799_283_27,
        -17.757_956,
        -160.636_38,
        -637.566_47,
        -1_025.095_1,
        -483.519_2,
    ];
    const BELOW: [f32; 8] =
        [1.0, 30.338_06, 325.792_5, 1_536.729_6, 3_199.858_2, 2_553.050_3, 474.528_53, -22.440_952];
    (polynomial(inverse, ABOVE), polynomial(inverse, BELOW))
}

/// `c[0] + x (c[1] + x (c[2] + ...))`.
#[inline]
fn polynomial<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[N - 1];
    for at in (0..N - 1).rev() {
        sum = coefficients[at] + x * sum;
    }
    sum
}

/// As [`erfcf`], only that long computation once.
#[inline]
pub(super) fn erfc(x: f64) -> f64 {
    let magnitude = x.to_bits() & (u64::MAX >> 1);
    // Below 27/32 the sign matters earlier.
    if (magnitude >> 32) < 0x3feb_0000 {
        return libm::erfc(x);
    }
    let positive = libm::erfc(f64::from_bits(magnitude));
    if x < 0.0 { 2.0 - positive } else { positive }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of all sizes, and those where a function goes another way, of either sign. Miri is given few.
    fn arguments() -> impl Iterator<Item = f32> {
        let borders = [
            0x2380_0000_u32,
            0x3300_0000,
            0x3900_0000,
            0x3e80_0000,
            0x3eb1_7218,
            0x3f58_0000,
            0x3f85_1592,
            0x3fa0_0000,
            0x4036_db6d,
            0x41e0_0000,
            0x42ae_ac50,
            0x42b1_7218,
            0x42cf_f1b5,
            0x7f80_0000,
        ];
        let (step, around) = if cfg!(miri) { (99_999_989, 1) } else { (9973, 40) };
        let near = borders.into_iter().flat_map(move |bits| bits - around..=bits + around);
        let all = (0..0x7f80_0001).step_by(step).chain(near).filter(|&bits| bits <= 0x7f80_0000);
        all.map(f32::from_bits).flat_map(|x| [x, -x])
    }

    #[test]
    fn every_function_has_the_bits_of_libm() {
        for x in arguments() {
            let same = |a: u64, b: u64| assert_eq!(a, b, "at {x:e}");
            same(expf(x).to_bits().into(), libm::expf(x).to_bits().into());
            same(erfcf(x).to_bits().into(), libm::erfcf(x).to_bits().into());
            let x = f64::from(x) * 1.000_000_1;
            same(erfc(x).to_bits(), libm::erfc(x).to_bits());
        }
    }

    #[test]
    fn what_is_not_a_number_stays_so() {
        for x in [f32::NAN, -f32::NAN] {
            assert!(expf(x).is_nan() && erfcf(x).is_nan() && erfc(x.into()).is_nan());
        }
    }
}
