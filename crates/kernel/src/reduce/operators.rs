//! The operators that come with the runtime.
#![allow(unsafe_code)]

use core::fmt;

use super::Operator;
use crate::abi::Teller;
use crate::tellable::Told;

/// Adds up. Integers wrap around, so that the order never matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sum;

/// Multiplies. Integers wrap around.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Product;

/// The least. Of floats that are no number as long as there is a number; of equal ones, such as 0
/// and -0, the first in the runtime's order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Min;

/// The greatest, as [`Min`] is the least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Max;

/// The bits that are set in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct And;

/// The bits that are set in any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Or;

/// The bits that are set in an odd number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Xor;

/// The least number with the place where it was found; of equal ones, that with the least place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ArgMin;

/// The greatest number, as [`ArgMin`] is the least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ArgMax;

/// A number and where it was found: what [`ArgMin`] and [`ArgMax`] combine. Plain old data for
/// numbers of 4 and 8 bytes.
///
/// ```
/// use celerity_kernel::{ArgMin, Located, Operator};
/// let least = ArgMin.combine(Located::new(2.5_f32, 7), Located::new(0.5, 3));
/// assert_eq!((least.value, least.place()), (0.5, 3));
/// assert_eq!(format!("{least:?}"), "Located { value: 0.5, place: 3 }");
/// ```
// The place in two words: nothing of this is padding, for `f32` and for `f64`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Located<T> {
    /// The number that is compared.
    pub value: T,
    place: [u32; 2],
}

macro_rules! plain {
    ($($number:ty)*) => {$(
        // SAFETY: a number and two words, of which none is padding, since they are as large
        // together as they are each.
        #[cfg(not(target_arch = "nvptx64"))]
        unsafe impl bytemuck::Zeroable for Located<$number> {}

        // SAFETY: as above; any bits are a number.
        #[cfg(not(target_arch = "nvptx64"))]
        unsafe impl bytemuck::Pod for Located<$number> {}

        const _: () = assert!(size_of::<Located<$number>>() == size_of::<$number>() + 8);
    )*};
}

plain!(u32 i32 f32 u64 i64 f64);

impl<T> Located<T> {
    /// `value`, found at `place`: an item's linear id, say.
    #[must_use]
    #[inline]
    pub const fn new(value: T, place: usize) -> Self {
        let place = place as u64;
        Self { value, place: [place as u32, (place >> 32) as u32] }
    }

    /// Where it was found; `usize::MAX` if there was nothing to look at.
    #[must_use]
    #[inline]
    pub const fn place(&self) -> usize {
        (self.place[0] as u64 | (self.place[1] as u64) << 32) as usize
    }
}

impl<T: fmt::Debug> fmt::Debug for Located<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Located");
        fields.field("value", &self.value).field("place", &self.place()).finish()
    }
}

/// What the operators need of a number. Implement it for a type of your own to combine its values
/// with [`Sum`], [`Product`], [`Min`] and [`Max`].
pub trait Number: Copy + PartialOrd {
    /// What changes no sum.
    const ZERO: Self;
    /// What changes no product.
    const ONE: Self;
    /// No value is less.
    const LEAST: Self;
    /// No value is greater.
    const GREATEST: Self;
    /// Whether all of these operations have the same bits in every order, as with integers. Types
    /// of your own need not say so.
    const IS_EXACT: bool = false;
    /// Whether sums are those of integers of so many bits.
    #[doc(hidden)]
    const IS_INTEGER: bool = false;

    /// Tells it in a message.
    #[doc(hidden)]
    #[inline(always)]
    fn tell_to(&self, teller: &mut Teller<'_>) {
        teller.untold();
    }

    /// The sum; of integers modulo their range, so that the order never matters.
    #[must_use]
    fn plus(self, other: Self) -> Self;

    /// The product; of integers modulo their range, so that the order never matters.
    #[must_use]
    fn times(self, other: Self) -> Self;

    /// Whether it is not even equal to itself, as floats can be.
    #[must_use]
    #[inline]
    fn is_none(self) -> bool {
        self.partial_cmp(&self).is_none()
    }
}

macro_rules! integers {
    ($($number:ty)*) => {$(
        impl Number for $number {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const LEAST: Self = Self::MIN;
            const GREATEST: Self = Self::MAX;
            const IS_EXACT: bool = true;
            const IS_INTEGER: bool = true;

            #[inline(always)]
            fn tell_to(&self, teller: &mut Teller<'_>) {
                Told::tell_to(self, teller);
            }

            #[inline]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            #[inline]
            fn is_none(self) -> bool {
                false
            }
        }

        bits!($number: And !0, &; Or 0, |; Xor 0, ^;);
    )*};
}

macro_rules! bits {
    ($number:ty: $($operator:ident $identity:expr, $combine:tt;)*) => {$(
        impl Operator<$number> for $operator {
            const IS_COMMUTATIVE: bool = true;
            const IS_EXACT: bool = true;

            #[inline]
            fn identity(&self) -> $number {
                $identity
            }

            #[inline]
            fn combine(&self, earlier: $number, later: $number) -> $number {
                earlier $combine later
            }
        }
    )*};
}

macro_rules! floats {
    ($($number:ty)*) => {$(
        impl Number for $number {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LEAST: Self = Self::NEG_INFINITY;
            const GREATEST: Self = Self::INFINITY;

            #[inline(always)]
            fn tell_to(&self, teller: &mut Teller<'_>) {
                Told::tell_to(self, teller);
            }

            #[inline]
            fn plus(self, other: Self) -> Self {
                self + other
            }

            #[inline]
            fn times(self, other: Self) -> Self {
                self * other
            }
        }
    )*};
}

integers!(u8 i8 u16 i16 u32 i32 u64 i64 usize isize);
floats!(f32 f64);

impl<T: Number> Operator<T> for Sum {
    const IS_COMMUTATIVE: bool = true;
    const IS_EXACT: bool = T::IS_EXACT;
    const IS_WRAPPING_SUM: bool = T::IS_INTEGER;

    #[inline]
    fn identity(&self) -> T {
        T::ZERO
    }

    #[inline]
    fn combine(&self, earlier: T, later: T) -> T {
        earlier.plus(later)
    }
}

impl<T: Number> Operator<T> for Product {
    const IS_COMMUTATIVE: bool = true;
    const IS_EXACT: bool = T::IS_EXACT;

    #[inline]
    fn identity(&self) -> T {
        T::ONE
    }

    #[inline]
    fn combine(&self, earlier: T, later: T) -> T {
        earlier.times(later)
    }
}

impl<T: Number> Operator<T> for Min {
    const IS_COMMUTATIVE: bool = true;
    const IS_EXACT: bool = T::IS_EXACT;

    #[inline]
    fn identity(&self) -> T {
        T::GREATEST
    }

    #[inline]
    fn combine(&self, earlier: T, later: T) -> T {
        if later < earlier || earlier.is_none() { later } else { earlier }
    }
}

impl<T: Number> Operator<T> for Max {
    const IS_COMMUTATIVE: bool = true;
    const IS_EXACT: bool = T::IS_EXACT;

    #[inline]
    fn identity(&self) -> T {
        T::LEAST
    }

    #[inline]
    fn combine(&self, earlier: T, later: T) -> T {
        if later > earlier || earlier.is_none() { later } else { earlier }
    }
}

impl<T: Number> Operator<Located<T>> for ArgMin {
    const IS_COMMUTATIVE: bool = true;
    const IS_EXACT: bool = T::IS_EXACT;

    #[inline]
    fn identity(&self) -> Located<T> {
        Located::new(T::GREATEST, usize::MAX)
    }

    #[inline]
    fn combine(&self, earlier: Located<T>, later: Located<T>) -> Located<T> {
        later.or(earlier, (later.value < earlier.value) | earlier.value.is_none())
    }
}

impl<T: Number> Operator<Located<T>> for ArgMax {
    const IS_COMMUTATIVE: bool = true;
    const IS_EXACT: bool = T::IS_EXACT;

    #[inline]
    fn identity(&self) -> Located<T> {
        Located::new(T::LEAST, usize::MAX)
    }

    #[inline]
    fn combine(&self, earlier: Located<T>, later: Located<T>) -> Located<T> {
        later.or(earlier, (later.value > earlier.value) | earlier.value.is_none())
    }
}

impl<T: Copy + PartialEq> Located<T> {
    /// This if it is better, or the same number found earlier, or else the other. Without a jump: which of two it is
    /// nobody can foretell, and a jump to the wrong place takes longer than all of this.
    #[inline]
    fn or(self, other: Self, is_better: bool) -> Self {
        let is_before = (self.value == other.value) & (self.place() < other.place());
        let it = is_better | is_before;
        let [low, high] = [0, 1].map(|word| if it { self.place[word] } else { other.place[word] });
        Self { value: if it { self.value } else { other.value }, place: [low, high] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all<T: Copy, O: Operator<T>>(operator: O, values: &[T]) -> T {
        values.iter().fold(operator.identity(), |a, &b| operator.combine(a, b))
    }

    #[test]
    fn operators_do_what_they_are_called() {
        let values = [5_i32, -3, 12, 7];
        assert_eq!((all(Sum, &values), all(Product, &values)), (21, -1260));
        assert_eq!((all(Min, &values), all(Max, &values)), (-3, 12));
        let bits = [0b1100_u8, 0b1010];
        assert_eq!((all(And, &bits), all(Or, &bits), all(Xor, &bits)), (0b1000, 0b1110, 0b110));
        assert_eq!(all(Sum, &[u8::MAX, 2]), 1);
    }

    #[test]
    fn identities_change_nothing() {
        for value in [0.0, 1.5, -7.0, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!((all(Sum, &[value]), all(Product, &[value])), (value, value));
            assert_eq!((all(Min, &[value]), all(Max, &[value])), (value, value));
        }
        assert_eq!((all::<u32, _>(And, &[]), all::<u32, _>(Or, &[])), (u32::MAX, 0));
    }

    #[test]
    fn what_is_no_number_loses_on_either_side() {
        for values in [[f32::NAN, 2.0], [2.0, f32::NAN]] {
            assert_eq!((all(Min, &values), all(Max, &values)), (2.0, 2.0));
            let located = values.map(|value| Located::new(value, 9));
            assert_eq!(all(ArgMin, &located).value, 2.0);
            assert_eq!(all(ArgMax, &located).value, 2.0);
        }
    }

    #[test]
    fn of_equal_extremes_the_first_place_counts() {
        let found = [(3.0, 8), (1.0, 6), (3.0, 2), (1.0, 4)];
        let found = found.map(|(value, place)| Located::new(value, place));
        assert_eq!((all(ArgMin, &found).place(), all(ArgMax, &found).place()), (4, 2));
        assert_eq!(all(ArgMin, &[] as &[Located<f32>]).place(), usize::MAX);
        let far = 5 << 32 | 7;
        assert_eq!(Located::new(0.0, far).place(), far);
    }
}
