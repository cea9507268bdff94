//! How far the functions of fast kernels are off: their values, and the largest errors among them.

use celerity_kernel::math::{self, Float, normal};
use celerity_kernel::{Item, Max, Reducer, Sum, kernel};

/// The functions that are looked at, by number.
pub const FUNCTIONS: [&str; 16] = [
    "sqrt", "rsqrt", "1 / x", "exp", "exp2", "ln", "log2", "log10", "pow", "sin", "cos", "tan",
    "tanh", "erf", "erfc", "x / y",
];

/// Function number `which` of `x`, and of `y` if it takes two.
#[inline]
fn value<F: Float>(which: u32, x: F, y: F) -> F {
    match which {
        0 => math::sqrt(x),
        1 => math::rsqrt(x),
        2 => F::from(1.0) / x,
        3 => math::exp(x),
        4 => math::exp2(x),
        5 => math::ln(x),
        6 => math::log2(x),
        7 => math::log10(x),
        8 => math::pow(x, y),
        9 => math::sin(x),
        10 => math::cos(x),
        11 => math::tan(x),
        12 => math::tanh(x),
        13 => math::erf(x),
        14 => math::erfc(x),
        _ => x / y,
    }
}

/// The arguments of item `at`: all `f32` come for `x`, each with some `y`.
#[inline]
#[must_use]
pub fn arguments(at: u32) -> (f32, f32) {
    (f32::from_bits(at), f32::from_bits(at.wrapping_mul(0x9e37_79b9).rotate_left(13)))
}

/// What a fast kernel gets for arguments `first` and every `stride`-th behind it.
#[kernel(fast)]
pub fn approximate(item: Item<1>, value_of_f32: &mut f32, which: u32, first: u32, stride: u32) {
    let (x, y) = arguments((item[0] as u32).wrapping_mul(stride).wrapping_add(first));
    *value_of_f32 = value(which, x, y);
}

/// The functions of `f64` that have an implementation of their own in fast kernels, by number.
pub const OF_DOUBLE: [u32; 5] = [3, 9, 10, 12, 13];

/// One of [`OF_DOUBLE`]: of the others, some keep tables in memory of a thread.
#[inline]
fn value_of_double(which: u32, x: f64) -> f64 {
    match which {
        3 => math::exp(x),
        9 => math::sin(x),
        10 => math::cos(x),
        12 => math::tanh(x),
        _ => math::erf(x),
    }
}

/// A number of a size between 2⁻²⁴ and 2¹⁰, with either sign.
#[inline]
fn any_double(at: u64) -> f64 {
    let bits = crate::hash::mix(at);
    f64::from_bits(bits & 0x800f_ffff_ffff_ffff | (1023 - 24 + (bits >> 52 & 0x7ff) % 34) << 52)
}

/// What a fast kernel gets of [`OF_DOUBLE`].
#[kernel(fast)]
pub fn approximate_of_double(
    item: Item<1>,
    (x, found): (&mut f64, &mut f64),
    which: u32,
    first: u64,
) {
    *x = any_double(first + item[0] as u64);
    *found = value_of_double(which, *x);
}

/// How far that is from what strict kernels get, in units in the last place.
#[kernel]
pub fn apart_from_strict(
    _item: Item<1>,
    (x, found, units): (&f64, &f64, Reducer<'_, f64, Max>),
    which: u32,
) {
    let strict = value_of_double(which, *x);
    if found.to_bits() == strict.to_bits() {
        return;
    }
    let size = f64::from_bits(strict.to_bits() & 0x7fff_ffff_ffff_ffff);
    let unit = f64::from_bits(size.to_bits() + 1) - size;
    let apart = (*found - strict) / unit;
    // Of which none is a number if one is not, or both are infinite.
    units.combine(if apart.is_nan() {
        f64::INFINITY
    } else if apart < 0.0 {
        -apart
    } else {
        apart
    });
}

/// The same for `f64`: `rsqrt`, whose argument has all bits of an `f32` and as many others.
#[kernel(fast)]
pub fn approximate_inverse_root(item: Item<1>, (x, root): (&mut f64, &mut f64), first: u64) {
    let at = crate::hash::mix(first + item[0] as u64);
    // Of all sizes that are normal.
    *x = f64::from_bits((at >> 1).clamp(1 << 52, 0x7fef_ffff_ffff_ffff));
    *root = math::rsqrt(*x);
}

/// The largest errors of what [`approximate`] found, in units in the last place and as they are, and for how
/// many arguments one side is infinite or no number, and the other is not the same. Of arguments of at least `low` and less than `high`, without the
/// sign.
#[kernel]
pub fn errors(
    item: Item<1>,
    (found, units, absolute, odd): (
        &f32,
        Reducer<'_, f64, Max>,
        Reducer<'_, f64, Max>,
        Reducer<'_, u64, Sum>,
    ),
    which: u32,
    first: u32,
    stride: u32,
    sizes: [f32; 2],
) {
    let (x, y) = arguments((item[0] as u32).wrapping_mul(stride).wrapping_add(first));
    let size = f32::from_bits(x.to_bits() & 0x7fff_ffff);
    if !(sizes[0] <= size && size < sizes[1]) {
        return;
    }
    let exact = value(which, f64::from(x), f64::from(y));
    let rounded = exact as f32;
    if rounded.is_finite() && found.is_finite() {
        let error = f64::from(*found) - exact;
        let error = if error < 0.0 { -error } else { error };
        units.combine(error / unit(rounded));
        absolute.combine(error);
    } else {
        let same = match rounded.is_nan() {
            true => found.is_nan(),
            false => rounded == *found,
        };
        odd.combine(u64::from(!same));
    }
}

/// The functions of [`normal`], by number.
pub const NORMAL: [&str; 3] = ["normal::sqrt", "normal::recip", "normal::div"];

/// Function number `which` of [`NORMAL`] and the ordinary one, if it is for these arguments.
#[inline]
#[must_use]
pub fn both(which: u32, x: f32, y: f32) -> Option<[f32; 2]> {
    let is_normal = |x: f32| {
        let exponent = x.to_bits() >> 23 & 0xff;
        (127 - 100..127 + 100).contains(&exponent)
    };
    match which {
        0 => (is_normal(x) && x > 0.0).then(|| [normal::sqrt(x), math::sqrt(x)]),
        1 => is_normal(x).then(|| [normal::recip(x), 1.0 / x]),
        _ => (is_normal(x) && is_normal(y) && is_normal(x / y)).then(|| [normal::div(x, y), x / y]),
    }
}

/// For how many arguments a function of [`NORMAL`] is not the ordinary one, bit for bit, and how many were looked at.
#[kernel]
pub fn differences(
    item: Item<1>,
    (differing, looked_at): (Reducer<'_, u64, Sum>, Reducer<'_, u64, Sum>),
    which: u32,
    first: u32,
    stride: u32,
) {
    let (x, y) = arguments((item[0] as u32).wrapping_mul(stride).wrapping_add(first));
    if let Some([found, expected]) = both(which, x, y) {
        looked_at.combine(1);
        differing.combine(u64::from(found.to_bits() != expected.to_bits()));
    }
}

/// All functions of [`NORMAL`], of which the last one takes both numbers.
#[kernel]
pub fn normal_values(
    _item: Item<1>,
    (root, inverse, quotient, x, y): (&mut f32, &mut f32, &mut f32, &f32, &f32),
) {
    (*root, *inverse, *quotient) = (normal::sqrt(*x), normal::recip(*x), normal::div(*x, *y));
}

/// How far an inverse root is off, in units in the last place: by its square, times the argument.
#[kernel]
pub fn errors_of_inverse_roots(
    _item: Item<1>,
    (x, found, units): (&f64, &f64, Reducer<'_, f64, Max>),
) {
    // x r² = 1 + 2 e, in which products of high and low halves are exact.
    let square = found * found;
    let rest = math::mul_add(*found, *found, -square);
    let error = math::mul_add(*x, square, -1.0) + x * rest;
    let relative = 0.5 * if error < 0.0 { -error } else { error };
    let unit = f64::from_bits((found.to_bits() & 0x7ff0_0000_0000_0000) - (52 << 52));
    units.combine(relative * found / unit);
}

/// The distance of floats near `x`.
#[inline]
fn unit(x: f32) -> f64 {
    let exponent = (x.to_bits() >> 23 & 0xff).max(1);
    f64::from_bits(u64::from(exponent + 1023 - 127 - 23) << 52)
}
