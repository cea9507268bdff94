//! How many values of a function of [`math`] a device finds in a second: sums of many values for each
//! item, of which none depends on another. The same as the baseline `functions` by hand.

use celerity_kernel::math::{self, Float};
use celerity_kernel::{Item, kernel};

/// The functions, by number.
pub const FUNCTIONS: [&str; 7] = ["exp", "ln", "sin", "cos", "tanh", "pow", "erf"];

/// Function number `FUNCTION` of a positive number.
#[inline]
fn value<T: Float, const FUNCTION: u32>(x: T) -> T {
    match FUNCTION {
        0 => math::exp(x),
        1 => math::ln(x),
        2 => math::sin(x),
        3 => math::cos(x),
        4 => math::tanh(x),
        5 => math::pow(x, T::from(2.0) - x),
        _ => math::erf(x),
    }
}

/// The sum of so many values, a multiple of four, for arguments from between 1/8 and 9/8 on, 1/64 from each other.
#[inline]
fn sum<T: Float, const FUNCTION: u32>(item: usize, values: u32) -> T {
    let mut x = T::from(0.125 + (item % 1024) as f32 / 1024.0);
    let mut sum = T::from(0.0);
    // In fours, as nvcc writes out such a loop by itself.
    for _ in 0..values / 4 {
        for _ in 0..4 {
            sum += value::<T, FUNCTION>(x);
            x += T::from(0.015625);
        }
    }
    sum
}

/// Sums of values of a function.
#[kernel(instances(
    (f32, 0), (f32, 1), (f32, 2), (f32, 3), (f32, 4), (f32, 5), (f32, 6),
    (f64, 0), (f64, 1), (f64, 2), (f64, 3), (f64, 4), (f64, 5), (f64, 6)
))]
pub fn sums_of_values<T: Float, const FUNCTION: u32>(item: Item<1>, out: &mut T, values: u32) {
    *out = sum::<T, FUNCTION>(item[0], values);
}

/// The same, fast.
#[kernel(fast, instances(
    (f32, 0), (f32, 1), (f32, 2), (f32, 3), (f32, 4), (f32, 5), (f32, 6),
    (f64, 0), (f64, 1), (f64, 2), (f64, 3), (f64, 4), (f64, 5), (f64, 6)
))]
pub fn fast_sums_of_values<T: Float, const FUNCTION: u32>(item: Item<1>, out: &mut T, values: u32) {
    *out = sum::<T, FUNCTION>(item[0], values);
}
