//! What fast kernels call on devices: the hardware's approximations, and as few instructions around them
//! as make them right for all arguments. Exists in fast code alone; the bounds stand in [`math`](super).
//!
//! Of `f64` the hardware approximates inverses and inverse square roots, and nothing else that is worth the steps
//! from its 20 bits to 53; [`double`](super::double) has functions of fused products and sums.

use crate::machine::approximate::{
    cosine, hyperbolic_tangent, inverse, inverse_root, inverse_root_of_double, logarithm,
    power_of_two, power_of_two_flushed, saturated, sine, whole,
};

pub(super) use super::double::{cos, erf, exp, sin, tanh};
use super::exact::{fma as fma_of_double, fmaf as fma};
use super::polynomial;
pub(super) use libm::{erfc, exp2, log, log2, log10, pow, tan};

#[inline(always)]
pub(super) fn rsqrtf(x: f32) -> f32 {
    inverse_root(x)
}

/// From an approximation of some 20 bits by one step of third order. Where that is none, of 0,
/// infinity and what is not a number or below 0, the approximation is the result.
#[inline(always)]
pub(super) fn rsqrt(x: f64) -> f64 {
    let fma = fma_of_double;
    let first = inverse_root_of_double(x);
    let error = fma(-(x * first), first, 1.0);
    let result = fma(fma(error, 0.375, 0.5), error * first, first);
    // In integers, which other units of the device compute with: normal and above 0.
    let upper = (x.to_bits() >> 32) as u32;
    if upper.wrapping_sub(0x0010_0000) < 0x7fe0_0000 { result } else { first }
}

/// A power of two, of a multiple of 1 near `x / ln 2`, times one of what is left. The multiple is found by adding
/// a number so large that only integers have a place behind it, and limited, as a part of what a
/// float can have as exponent; what is left may then be large, and the product 0, infinite or subnormal.
#[inline(always)]
pub(super) fn expf(x: f32) -> f32 {
    /// 1.5 · 2²³, behind which come 23 bits for a signed integer, and the bias of exponents.
    const SHIFTER: f32 = 12_582_912.0 + 127.0;
    /// Multiples are from -126 to 126.
    const MULTIPLES: f32 = 252.0;
    const LOG2_E_LOW: f32 = 1.925_963e-8;
    let log2_e = core::f32::consts::LOG2_E;
    let part = saturated(x, log2_e / MULTIPLES, 0.5);
    let shifted = fma(part, MULTIPLES, SHIFTER - 0.5 * MULTIPLES);
    let multiple = shifted - SHIFTER;
    let rest = fma(x, LOG2_E_LOW, fma(x, log2_e, -multiple));
    // The lowest bits, where an exponent is.
    power_of_two_flushed(rest) * f32::from_bits(shifted.to_bits() << 23)
}

#[inline(always)]
pub(super) fn exp2f(x: f32) -> f32 {
    power_of_two(x)
}

#[inline(always)]
pub(super) fn logf(x: f32) -> f32 {
    logarithm(x) * core::f32::consts::LN_2
}

#[inline(always)]
pub(super) fn log2f(x: f32) -> f32 {
    logarithm(x)
}

#[inline(always)]
pub(super) fn log10f(x: f32) -> f32 {
    logarithm(x) * core::f32::consts::LOG10_2
}

/// 2 to the power of exponent times logarithm, of the number without its sign; an odd exponent
/// gives the sign back, and one that is no integer makes it no number.
#[inline(always)]
pub(super) fn powf(x: f32, exponent: f32) -> f32 {
    if x == 1.0 || exponent == 0.0 {
        return 1.0;
    }
    let size = f32::from_bits(x.to_bits() & 0x7fff_ffff);
    let power = if size == 1.0 { 1.0 } else { power_of_two(exponent * logarithm(size)) };
    if x.is_sign_positive() {
        return power;
    }
    let half = exponent * 0.5;
    let (is_integer, is_even) = (whole(exponent) == exponent, whole(half) == half);
    match () {
        () if is_even => power,
        () if is_integer => -power,
        // 0 and -infinity have powers that are no integers.
        () if size == 0.0 || size.is_infinite() => power,
        () => f32::NAN,
    }
}

/// Angles from here on are `libm`'s: what is left of them behind so many turns takes more bits of π.
const MANY_TURNS: f32 = 65_536.0;

/// An angle less its whole turns, for one that is less than [`MANY_TURNS`]. The number of turns has at
/// most 14 bits, and the first two parts of a turn few enough that their products are exact.
#[inline(always)]
fn within_turn(x: f32) -> f32 {
    const TURN: [f32; 3] = [6.281_25, 1.935_958_9e-3, -6.516_827_4e-7];
    let turns = whole(x * (0.5 * core::f32::consts::FRAC_1_PI));
    fma(-turns, TURN[2], fma(-turns, TURN[1], fma(-turns, TURN[0], x)))
}

/// Whether the angle is one for `libm`.
#[inline(always)]
fn is_many_turns(x: f32) -> bool {
    f32::from_bits(x.to_bits() & 0x7fff_ffff) >= MANY_TURNS
}

#[inline(always)]
pub(super) fn sinf(x: f32) -> f32 {
    if is_many_turns(x) { libm::sinf(x) } else { sine(within_turn(x)) }
}

#[inline(always)]
pub(super) fn cosf(x: f32) -> f32 {
    if is_many_turns(x) { libm::cosf(x) } else { cosine(within_turn(x)) }
}

#[inline(always)]
pub(super) fn tanf(x: f32) -> f32 {
    if is_many_turns(x) {
        return libm::tanf(x);
    }
    let angle = within_turn(x);
    sine(angle) * inverse(cosine(angle))
}

#[inline(always)]
pub(super) fn tanhf(x: f32) -> f32 {
    hyperbolic_tangent(x)
}

/// An odd polynomial below 1, and beyond 1 less a power of two whose exponent is a polynomial; both were
/// fitted for this.
#[inline(always)]
pub(super) fn erff(x: f32) -> f32 {
    const BELOW: [f32; 7] = [
        1.128_379_2,
        -0.376_126_27,
        0.112_835_95,
        -0.026_854_212,
        5.189_087_4e-3,
        -8.016_864_3e-4,
        7.875_875e-5,
    ];
    const BEYOND: [f32; 7] = [
        -1.628_276_3,
        -0.916_269_1,
        -0.153_562_18,
        0.034_671_71,
        -5.489_675_3e-3,
        5.325_887_4e-4,
        -2.352_933_3e-5,
    ];
    let size = f32::from_bits(x.to_bits() & 0x7fff_ffff);
    if size < 1.0 {
        return x * polynomial(x * x, BELOW);
    }
    // From 4 on, the result is 1.
    let clamped = if size > 4.0 { 4.0 } else { size };
    let result = 1.0 - power_of_two_flushed(clamped * polynomial(clamped, BEYOND));
    let result = if size.is_nan() { size } else { result };
    f32::from_bits(result.to_bits() | (x.to_bits() & 0x8000_0000))
}

/// For `a = |x|`, `(1 + 2 a) exp(a²) erfc(a)` as a polynomial of `(a - 4) / (a + 4)`, as M. M. Shepherd and
/// J. G. Laframboise do it (Mathematics of Computation 36, 1981); fitted for less than 10.1, from where
/// on the result is 0.
#[inline(always)]
pub(super) fn erfcf(x: f32) -> f32 {
    const SCALED: [f32; 11] = [
        1.232_995_1,
        -0.139_621_06,
        0.015_377_524,
        0.068_093_22,
        -0.100_993_96,
        0.093_820_31,
        -0.066_613_88,
        0.036_435_048,
        -0.015_944_368,
        6.949_39e-3,
        8.564_458e-4,
    ];
    let size = f32::from_bits(x.to_bits() & 0x7fff_ffff);
    let size = if size > 10.1 { 10.1 } else { size };
    let quotient = (size - 4.0) * inverse(size + 4.0);
    let scaled = polynomial(quotient, SCALED) * inverse(fma(2.0, size, 1.0));
    // The square and what rounding has taken from it.
    let square = size * size;
    let rest = fma(size, size, -square);
    let power = expf(-square);
    let product = scaled * fma(-power, rest, power);
    if x.is_sign_negative() { 2.0 - product } else { product }
}
