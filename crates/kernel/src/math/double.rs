//! Functions of `f64` for fast kernels on devices: polynomials, by fused products and sums, of which strict kernels have none. Hosts
//! compute them in tests alone.
//!
//! The polynomials are the best of their degrees, by Remez' exchange of 200 bits, rounded. What is said of errors is that of the
//! polynomial, before its own arithmetic; of functions, [`math`](super). Constants cost as much as operations: a GPU brings each in
//! two instructions, but none of which the lower half is 0. So there are as many of these as the errors allow, and the others are
//! the best beside them.

use core::f64::consts::FRAC_2_PI;

use super::exact::fma;
use super::polynomial;

/// 1.5 · 2⁵²: behind it come 51 bits for a signed integer.
const SHIFTER: f64 = 6_755_399_441_055_744.0;

/// 1 divided by a number that is neither tiny nor huge.
#[inline(always)]
fn inverse(x: f64) -> f64 {
    #[cfg(target_arch = "nvptx64")]
    let first = crate::machine::approximate::inverse_of_double(x);
    // As few bits as a device's approximation has.
    #[cfg(not(target_arch = "nvptx64"))]
    let first = f64::from_bits((1.0 / x).to_bits() & !0 << 32);
    let error = fma(-x, first, 1.0);
    fma(fma(error, error, error), first, first)
}

/// The number without its sign, and its sign.
#[inline(always)]
fn sized(x: f64) -> (f64, u64) {
    let sign = x.to_bits() & 1 << 63;
    (f64::from_bits(x.to_bits() ^ sign), sign)
}

/// The upper half of a number without its sign, by which integers compare sizes.
#[inline(always)]
fn size(x: f64) -> u32 {
    (x.to_bits() >> 32) as u32 & 0x7fff_ffff
}

/// `x` as a multiple of ln 2 and a rest: e to the power of the rest, and a number whose lowest bits are the multiple.
#[inline(always)]
fn parts_of_power(x: f64) -> (f64, f64) {
    /// The inverse of ln 2, as far as the nearest multiple needs it.
    const LOG2_E: f64 = 1.442_694_664_001_464_8;
    const LN_2: [f64; 2] = [0.693_147_182_464_599_6, -1.904_654_299_957_768e-9];
    // Off by 1.8e-17.
    const POWER: [f64; 12] = [
        1.0,
        1.0,
        0.5,
        0.166_666_666_666_664_33,
        0.041_666_666_666_602_32,
        0.008_333_333_333_497_566,
        0.001_388_888_892_746_631_2,
        0.000_198_412_694_742_602_15,
        2.480_150_789_618_098_6e-5,
        2.755_763_489_403_762e-6,
        2.762_544_681_900_181e-7,
        2.497_814_932_667_097_3e-8,
    ];
    let shifted = fma(x, LOG2_E, SHIFTER);
    let multiple = shifted - SHIFTER;
    let rest = fma(-multiple, LN_2[1], fma(-multiple, LN_2[0], x));
    (polynomial(rest, POWER), shifted)
}

/// A number times a power of two, which is in the lowest bits of another: both are normal, and so is the product.
#[inline(always)]
fn scaled(x: f64, shifted: f64) -> f64 {
    f64::from_bits(x.to_bits().wrapping_add(shifted.to_bits() << 52))
}

#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    let (power, shifted) = parts_of_power(x);
    // Less than 708.
    if size(x) < 0x4086_2000 { scaled(power, shifted) } else { far_power(x, power, shifted) }
}

/// The same where it is tiny, huge, or no number.
#[inline(always)]
fn far_power(x: f64, power: f64, shifted: f64) -> f64 {
    const LARGEST: f64 = 709.782_712_893_384;
    const SMALLEST: f64 = -745.133_219_101_941_2;
    /// 2⁻⁶⁴.
    const TINY: f64 = 1.0 / (1_u128 << 64) as f64;
    match () {
        () if x.is_nan() => x,
        () if x > LARGEST => f64::INFINITY,
        () if x < SMALLEST => 0.0,
        // In two steps, of which each is normal.
        () => {
            let (towards_one, back) = if x < 0.0 { (64.0, TINY) } else { (-64.0, 1.0 / TINY) };
            scaled(power, shifted + towards_one) * back
        }
    }
}

/// Angles from here on are `libm`'s: what is left of them behind so many quarters of a turn takes more bits of π.
const MANY_TURNS: u32 = 0x40f8_6a00; // 100,000

/// What is left of an angle behind its quarters of a turn, and a number whose lowest bits count these.
#[inline(always)]
fn within_quarter(x: f64) -> (f64, u64) {
    // The first product is exact, as is what it leaves.
    const QUARTER: [f64; 3] =
        [1.570_796_012_878_418, 3.139_164_786_504_813e-7, 1.056_299_906_698_742_8e-23];
    let shifted = fma(x, FRAC_2_PI, SHIFTER);
    let quarters = shifted - SHIFTER;
    let rest = fma(-quarters, QUARTER[1], fma(-quarters, QUARTER[0], x));
    (fma(-quarters, QUARTER[2], rest), shifted.to_bits())
}

/// The sine of an angle of less than an eighth of a turn and so many quarters: both polynomials, of sine and cosine, so that the
/// threads of a warp stay together. To choose coefficients for one of both takes as long.
#[inline(always)]
fn sine_of(rest: f64, quarters: u64) -> f64 {
    // Off by 3.5e-18, and by 8.4e-20.
    const SINE: [f64; 6] = [
        -0.166_666_666_666_666_32,
        0.008_333_333_333_322_413,
        -0.000_198_412_698_298_078_16,
        2.755_731_369_187_761_3e-6,
        -2.505_075_810_558_988_6e-8,
        1.589_679_499_147_678_1e-10,
    ];
    const COSINE: [f64; 8] = [
        1.0,
        -0.5,
        0.041_666_666_666_666_574,
        -0.001_388_888_888_887_097_2,
        2.480_158_728_800_598_2e-5,
        -2.755_731_403_797_790_6e-7,
        2.087_569_228_592_656e-9,
        -1.135_851_135_369_847_5e-11,
    ];
    let square = rest * rest;
    let sine = fma(rest * square, polynomial(square, SINE), rest);
    let cosine = polynomial(square, COSINE);
    let result = if quarters & 1 == 1 { cosine } else { sine };
    f64::from_bits(result.to_bits() ^ (quarters & 2) << 62)
}

#[inline(always)]
pub(super) fn sin(x: f64) -> f64 {
    if size(x) >= MANY_TURNS {
        return far_sine(x);
    }
    let (rest, quarters) = within_quarter(x);
    sine_of(rest, quarters)
}

#[inline(always)]
pub(super) fn cos(x: f64) -> f64 {
    if size(x) >= MANY_TURNS {
        return far_cosine(x);
    }
    let (rest, quarters) = within_quarter(x);
    sine_of(rest, quarters.wrapping_add(1))
}

// By themselves: they are long, and have arrays in memory of a thread.

#[cold]
#[inline(never)]
fn far_sine(x: f64) -> f64 {
    libm::sin(x)
}

#[cold]
#[inline(never)]
fn far_cosine(x: f64) -> f64 {
    libm::cos(x)
}

/// An odd polynomial below 0.55, and beyond 1 less a quotient with a power of e; from 20 on, 1.
#[inline(always)]
pub(super) fn tanh(x: f64) -> f64 {
    // Off by 2e-17.
    const BELOW: [f64; 10] = [
        -0.333_333_333_333_323_5,
        0.133_333_333_331_732_33,
        -0.053_968_253_878_125_31,
        0.021_869_486_020_139_606,
        -0.008_863_195_072_190_388,
        0.003_591_723_995_761_476,
        -0.001_453_236_786_700_031,
        0.000_579_193_245_695_995_5,
        -0.000_210_389_607_135_112_05,
        5.107_887_254_861_663e-5,
    ];
    // Less than 0.55.
    if size(x) < 0x3fe1_9999 {
        let square = x * x;
        return fma(x * square, polynomial(square, BELOW), x);
    }
    let (size, sign) = sized(x);
    let size = if size > 20.0 { 20.0 } else { size };
    let (power, shifted) = parts_of_power(2.0 * size);
    let result = fma(-2.0, inverse(scaled(power, shifted) + 1.0), 1.0);
    f64::from_bits(result.to_bits() | sign)
}

/// An odd polynomial below 1, and beyond 1 less a power of e whose exponent is a polynomial; from 5.93 on, 1.
#[inline(always)]
pub(super) fn erf(x: f64) -> f64 {
    // Off by 7.4e-18, and by 6.9e-18.
    const BELOW: [f64; 12] = [
        core::f64::consts::FRAC_2_SQRT_PI,
        -0.376_126_389_031_835_2,
        0.112_837_916_709_441_74,
        -0.026_866_170_643_109_63,
        0.005_223_977_606_102_865,
        -0.000_854_832_592_854_597_4,
        0.000_120_552_935_533_931_51,
        -1.492_471_184_158_459_7e-5,
        1.644_712_579_146_620_9e-6,
        -1.620_626_880_138_567e-7,
        1.371_078_316_208_198_1e-8,
        -7.779_095_475_011_288e-10,
    ];
    const BEYOND: [f64; 18] = [
        -1.849_605_509_933_248_2,
        -2.638_967_514_234_777_5,
        -0.843_107_256_359_325,
        -0.041_561_098_026_764_31,
        0.010_033_825_195_853_85,
        -0.001_977_901_314_631_942,
        0.000_237_316_811_761_381_07,
        2.629_534_782_447_854_4e-5,
        -2.719_718_016_647_242e-5,
        9.669_011_235_227_19e-6,
        -2.129_659_732_980_742_8e-6,
        2.031_998_167_172_269_4e-7,
        5.884_440_370_692_142e-8,
        -3.370_111_455_186_992e-8,
        8.599_415_630_927_998e-9,
        -1.333_004_705_090_082_5e-9,
        1.207_490_271_343_118_9e-10,
        -4.930_398_172_988_012e-12,
    ];
    let (size, sign) = sized(x);
    if size < 1.0 {
        return x * polynomial(x * x, BELOW);
    }
    let clamped = if size > 5.93 { 5.93 } else { size };
    let (power, shifted) = parts_of_power(polynomial(clamped - 1.0, BEYOND));
    let result = 1.0 - scaled(power, shifted);
    f64::from_bits(result.to_bits() | sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: usize = if cfg!(miri) { 20 } else { 200_000 };

    /// How far a function is off the other at most, in units in the last place of what that is, for arguments of all sizes.
    fn most(fast: fn(f64) -> f64, exact: fn(f64) -> f64, largest: f64) -> f64 {
        let mut most: f64 = 0.0;
        let mut state = 1_u64;
        for at in 0..ALL {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let part = (state >> 11) as f64 / (1_u64 << 53) as f64;
            // Half of them of any size, the others spread evenly.
            let x = if at % 2 == 0 { largest * part } else { largest * (-40.0 * part).exp2() };
            for x in [x, -x] {
                let (found, expected) = (fast(x), exact(x));
                let unit = f64::from_bits(expected.abs().to_bits() + 1) - expected.abs();
                most = most.max((found - expected).abs() / unit);
            }
        }
        most
    }

    #[test]
    fn results_are_near_those_of_strict_functions() {
        let found = [
            most(exp, libm::exp, 700.0),
            most(sin, libm::sin, 99_000.0),
            most(cos, libm::cos, 99_000.0),
            most(sin, libm::sin, 7.0),
            most(tanh, libm::tanh, 22.0),
            most(erf, libm::erf, 6.0),
        ];
        assert!(found.iter().all(|off| *off <= 2.0), "{found:?}");
    }

    #[test]
    fn ends_and_what_is_no_number_are_as_for_strict_functions() {
        type Function = fn(f64) -> f64;
        let pairs: [(Function, Function); 5] = [
            (exp, libm::exp),
            (sin, libm::sin),
            (cos, libm::cos),
            (tanh, libm::tanh),
            (erf, libm::erf),
        ];
        let odd = [
            0.0,
            f64::INFINITY,
            1e300,
            709.0,
            709.78,
            710.0,
            740.0,
            745.0,
            746.0,
            1e-310,
            1e6,
            0.55,
            1.0,
            5.93,
            20.0,
        ];
        for (nth, (fast, exact)) in pairs.into_iter().enumerate() {
            for x in odd.into_iter().flat_map(|x| [x, -x]) {
                let (found, expected) = (fast(x), exact(x));
                let close = (found - expected).abs() <= 4e-16 * expected.abs() + f64::from_bits(1);
                let same =
                    found == expected && found.is_sign_negative() == expected.is_sign_negative();
                assert!(
                    close || same || found.is_nan() && expected.is_nan(),
                    "{nth}: {x} {found} {expected}"
                );
            }
            assert!(fast(f64::NAN).is_nan(), "{nth}");
        }
    }
}
