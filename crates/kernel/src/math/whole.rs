//! Integers near a number, for hosts: what `libm` finds in the bits of a float, by three branches, and these by a sum
//! that leaves no room for a fraction, so that loops are vectorised. The same bits. Devices have instructions.

macro_rules! nearby {
    ($float:ident: $all:literal, $trunc:ident, $floor:ident, $ceil:ident, $round:ident) => {
        /// The integer from `x` towards 0.
        #[inline]
        pub(in crate::math) fn $trunc(x: $float) -> $float {
            let size = x.abs();
            let nearest = (size + $all) - $all;
            within(x, if nearest > size { nearest - 1.0 } else { nearest })
        }

        /// The largest integer that is not above `x`.
        #[inline]
        pub(in crate::math) fn $floor(x: $float) -> $float {
            let nearest = ((x.abs() + $all) - $all).copysign(x);
            within(x, if nearest > x { nearest - 1.0 } else { nearest })
        }

        /// The smallest integer that is not below `x`.
        #[inline]
        pub(in crate::math) fn $ceil(x: $float) -> $float {
            let nearest = ((x.abs() + $all) - $all).copysign(x);
            within(x, if nearest < x { nearest + 1.0 } else { nearest })
        }

        /// The nearest integer, halves away from 0.
        #[inline]
        pub(in crate::math) fn $round(x: $float) -> $float {
            let (size, whole) = (x.abs(), $trunc(x).abs());
            within(x, if size - whole >= 0.5 { whole + 1.0 } else { whole })
        }

        /// What was found, with the sign of `x`; `x` itself if it is so large that it is an integer, or none.
        #[inline]
        fn within(x: $float, found: $float) -> $float {
            if x.abs() < $all { found.copysign(x) } else { x }
        }
    };
}

mod single {
    // From 2²³ on all numbers are integers.
    nearby!(f32: 8_388_608.0, truncf, floorf, ceilf, roundf);
}

mod double {
    // From 2⁵² on.
    nearby!(f64: 4_503_599_627_370_496.0, trunc, floor, ceil, round);
}

pub(super) use double::{ceil, floor, round, trunc};
pub(super) use single::{ceilf, floorf, roundf, truncf};

#[cfg(test)]
mod tests {
    use super::*;

    /// How far apart the bit patterns of numbers are, and how many halves are tried. Under Miri a number takes
    /// a thousand times as long.
    const APART: usize = if cfg!(miri) { 33_554_393 } else { 4_093 };
    const HALVES: u16 = if cfg!(miri) { 16 } else { 4_096 };

    /// Numbers with a bit pattern every so far, and those around halves and around where fractions end.
    fn singles() -> impl Iterator<Item = f32> {
        let halves = (0..HALVES).map(|half| f32::from(half) * 0.5);
        let edges = halves.chain([8_388_608.0, 4_194_304.0, f32::MAX]);
        let near = edges.flat_map(|edge| [edge.next_down(), edge, edge.next_up()]);
        let signed = near.flat_map(|size| [size, -size]);
        (0..=u32::MAX).step_by(APART).map(f32::from_bits).chain(signed)
    }

    macro_rules! assert_bits_of_libm {
        ($x:expr, $($function:ident)*) => {$(
            let (x, ours, libms) = ($x, $function($x), libm::$function($x));
            let same = ours.to_bits() == libms.to_bits() || x.is_nan() && ours.is_nan();
            assert!(same, "{} of {x:e}: {ours:e}, {libms:e}", stringify!($function));
        )*};
    }

    #[test]
    fn single_precision_has_the_bits_of_libm() {
        for x in singles() {
            assert_bits_of_libm!(x, truncf floorf ceilf roundf);
        }
    }

    #[test]
    fn double_precision_has_the_bits_of_libm() {
        let sizes = (0..64).map(|power| f64::from_bits((1000 + power) << 52));
        let large =
            sizes.flat_map(|size| [size - 0.5, size, size + 0.5, size.next_down(), size.next_up()]);
        let special = [0.0, f64::MAX, f64::MIN_POSITIVE, f64::INFINITY, f64::NAN];
        let all = singles().step_by(7).map(f64::from).chain(large).chain(special);
        for x in all.flat_map(|x| [x, -x]) {
            assert_bits_of_libm!(x, trunc floor ceil round);
        }
    }
}
