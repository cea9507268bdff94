//! The Mandelbrot set: after how many steps z² + c, from 0 on, leaves the circle of radius 2 around 0,
//! for each c of a square. Kernels and sequential programs share [`place`] and [`advance`], so that
//! their results can be compared bit for bit.

use celerity_kernel::math::{self, Float};
use celerity_kernel::{Item, kernel};

/// A complex number: its real part, its imaginary part.
pub type Complex<T> = [T; 2];

/// Steps that [`escape_in_strides`] takes before it looks where it is. A step is six instructions of a
/// GPU then, and twelve with a look and a turn of a loop; those that escape take half a stride twice.
pub const STRIDE: u32 = 16;

/// The c of an item. `corner` is that of the first one, from which real parts grow to the right and
/// imaginary ones upwards, by `pitch` per item.
#[inline]
#[must_use]
pub fn place<T: Float>([y, x]: [usize; 2], [left, top]: Complex<T>, pitch: T) -> Complex<T> {
    let along = |at: usize| T::from(at as f32) * pitch;
    [left + along(x), top - along(y)]
}

/// z² + c.
#[inline]
#[must_use]
pub fn advance<T: Float>([x, y]: Complex<T>, [re, im]: Complex<T>) -> Complex<T> {
    [x * x + (re - y * y), add_twice(x * y, im)]
}

/// The square of the distance from 0.
#[inline]
#[must_use]
pub fn square<T: Float>([x, y]: Complex<T>) -> T {
    x * x + y * y
}

/// `2 · product + term`. A product with 2 is exact, so what is fused has the same bits. It takes one
/// instruction on a device, and on a host a function.
#[inline]
fn add_twice<T: Float>(product: T, term: T) -> T {
    if cfg!(target_arch = "nvptx64") {
        math::mul_add(T::from(2.0), product, term)
    } else {
        product + product + term
    }
}

/// How many steps it takes until z is farther than 2 from 0, or `limit`, if it still is not.
#[inline]
#[must_use]
pub fn escape<T: Float>(c: Complex<T>, limit: u32) -> u32 {
    escape_from([T::default(); 2], 0, c, limit)
}

/// As [`escape`] and with the same result, by [`STRIDE`] steps at a time: what has left does not come
/// back, so that all of a stride are within if its last one is. The stride that leaves is taken again,
/// step by step.
#[inline]
#[must_use]
pub fn escape_in_strides<T: Float>(c: Complex<T>, limit: u32) -> u32 {
    let (mut z, mut steps) = ([T::default(); 2], 0);
    while limit - steps >= STRIDE {
        let mut ahead = z;
        for _ in 0..STRIDE {
            ahead = advance(ahead, c);
        }
        // What has overflown is no number, and not within either.
        if square(ahead) <= T::from(4.0) {
            (z, steps) = (ahead, steps + STRIDE);
        } else {
            break;
        }
    }
    escape_from(z, steps, c, limit)
}

/// Goes on from where z is after so many steps.
#[inline]
fn escape_from<T: Float>(mut z: Complex<T>, mut steps: u32, c: Complex<T>, limit: u32) -> u32 {
    while steps < limit && square(z) <= T::from(4.0) {
        z = advance(z, c);
        steps += 1;
    }
    steps
}

/// After how many steps each c escapes.
#[kernel(instances(f32, f64))]
pub fn mandelbrot<T: Float>(
    item: Item<2>,
    steps: &mut u32,
    corner: Complex<T>,
    pitch: T,
    limit: u32,
) {
    *steps = escape_in_strides(place(item.id(), corner, pitch), limit);
}

/// As [`mandelbrot`], in the fast form: where the device fuses, c close to the border of the set escape
/// some steps earlier or later.
#[kernel(fast, instances(f32, f64))]
pub fn mandelbrot_fast<T: Float>(
    item: Item<2>,
    steps: &mut u32,
    corner: Complex<T>,
    pitch: T,
    limit: u32,
) {
    *steps = escape_in_strides(place(item.id(), corner, pitch), limit);
}

#[cfg(test)]
mod tests {
    use celerity_kernel::math::Float;

    use super::{Complex, escape, escape_in_strides, place};

    #[test]
    fn what_is_in_the_set_stays_and_what_is_far_away_leaves_at_once() {
        for within in [[0.0, 0.0], [-1.0, 0.0], [0.25, 0.0], [-2.0, 0.0], [-0.12, 0.74]] {
            assert_eq!(escape(within, 1000), 1000, "{within:?}");
        }
        assert_eq!(escape([3.0, 0.0], 1000), 1);
        // 0, 1, 2, 5.
        assert_eq!(escape([1.0, 0.0], 1000), 3);
        assert_eq!(escape([1.0, 0.0], 2), 2);
    }

    fn assert_same<T: Float + core::fmt::Debug>(c: Complex<T>, limit: u32) {
        assert_eq!(escape_in_strides(c, limit), escape(c, limit), "{c:?}, {limit}");
    }

    #[test]
    fn strides_find_the_same_number() {
        for at in 0..60 * 60 {
            for limit in [1, 15, 16, 17, 32, 100] {
                assert_same(place([at / 60, at % 60], [-2.5, 1.75], 0.06_f32), limit);
                assert_same(place([at / 60, at % 60], [-2.5, 1.75], 0.06_f64), limit);
            }
        }
    }

    #[test]
    fn nothing_comes_back_where_orbits_graze_the_circle() {
        // Around -2, whose orbit stays on the circle, by single units in the last place.
        for [ulps, part] in (0..80 * 80).map(|at| [at / 80, at % 80]) {
            let re = f32::from_bits((-2.0_f32).to_bits() + 40 - ulps);
            for im in [1e-8, 1e-6, 1e-5, 1e-4].map(|unit: f32| unit * part as f32) {
                assert_same([re, im], 64);
            }
        }
    }

    #[test]
    fn places_go_right_and_down() {
        assert_eq!(place([0, 0], [-2.0, 1.0], 0.5), [-2.0, 1.0]);
        assert_eq!(place([4, 3], [-2.0, 1.0], 0.5), [-0.5, -1.0]);
    }
}
