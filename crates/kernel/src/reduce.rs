//! Reductions: what kernels combine values into, and how. Knows neither tiles nor who adds up what
//! kernels leave.

#[cfg(target_arch = "nvptx64")]
mod elements;
#[cfg(any(feature = "half", feature = "num-complex"))]
mod foreign;
mod operators;
mod tile;

use core::cell::Cell;
use core::fmt;

use crate::fail::{stop, three};
use crate::index::ViewIndex;

#[cfg(any(test, target_arch = "nvptx64"))]
pub(crate) use tile::WARP;
pub use tile::{Accumulators, InTile, Reduction, Team};

pub use operators::{And, ArgMax, ArgMin, Located, Max, Min, Number, Or, Product, Sum, Xor};

/// How two values become one: an associative operation with an identity.
///
/// The runtime combines values in an order that follows from the index space alone, so that even a
/// sum of floats has the same bits on any number of nodes, devices and threads. An operation that
/// is only associative gets its values in the row-major order of items; one that
/// [is commutative](Self::IS_COMMUTATIVE) gets them interleaved, which is several times faster.
///
/// ```
/// use celerity_kernel::Operator;
///
/// /// Affine maps, one after the other.
/// #[derive(Clone, Copy)]
/// struct Then;
///
/// impl Operator<[f32; 2]> for Then {
///     fn identity(&self) -> [f32; 2] {
///         [1.0, 0.0]
///     }
///
///     fn combine(&self, [a, b]: [f32; 2], [c, d]: [f32; 2]) -> [f32; 2] {
///         [a * c, b * c + d]
///     }
/// }
/// assert_eq!(Then.combine(Then.identity(), [2.0, 1.0]), [2.0, 1.0]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not combine values of type `{T}`",
    label = "no operator for `{T}`",
    note = "`Sum`, `Product`, `Min` and `Max` combine numbers, `And`, `Or` and `Xor` integers, \
            `ArgMin` and `ArgMax` a `Located` number; implement `Operator<{T}>` for others"
)]
pub trait Operator<T>: Copy + Send + Sync + 'static {
    /// Whether `combine(a, b)` and `combine(b, a)` are the same, but for rounding.
    const IS_COMMUTATIVE: bool = false;

    /// Whether the order of values never changes a bit of the result, as with sums of integers, but
    /// not of floats. Then GPUs can combine into the elements of an array, too, several items at a
    /// time: see [`ArrayReducer`].
    const IS_EXACT: bool = false;

    /// Whether values are integers, and this is their sum, which GPUs have an instruction for.
    #[doc(hidden)]
    const IS_WRAPPING_SUM: bool = false;

    /// What changes no value that it is combined with.
    fn identity(&self) -> T;

    /// The two values as one.
    fn combine(&self, earlier: T, later: T) -> T;
}

/// What the items of a kernel combine values into that become one value, in a buffer of 0
/// dimensions.
pub struct Reducer<'a, T, O> {
    accumulator: &'a Cell<T>,
    operator: O,
}

impl<'a, T: Copy, O: Operator<T>> Reducer<'a, T, O> {
    /// A reducer that combines into `accumulator`.
    #[must_use]
    #[inline]
    pub const fn new(accumulator: &'a Cell<T>, operator: O) -> Self {
        Self { accumulator, operator }
    }

    /// Adds `value` to what is combined. Any number of times per item.
    #[inline]
    pub fn combine(&self, value: T) {
        self.accumulator.set(self.operator.combine(self.accumulator.get(), value));
    }
}

/// What the items of a kernel combine values into that become the elements of a buffer, by index
/// into it.
///
/// A GPU combines values of 32 and 64 bits, by operators that are [exact](Operator::IS_EXACT), or in
/// reductions that are unordered: its items come in any order. Other reductions into arrays in a
/// compiled kernel are refused when it is submitted to GPUs; CPUs keep the order of items.
pub struct ArrayReducer<'a, T, O, const D: usize> {
    #[cfg(not(target_arch = "nvptx64"))]
    accumulators: &'a [Cell<T>],
    #[cfg(target_arch = "nvptx64")]
    accumulators: elements::TileAccumulators<'a, T>,
    range: [usize; D],
    operator: O,
}

impl<'a, T: Copy, O: Operator<T>, const D: usize> ArrayReducer<'a, T, O, D> {
    /// A reducer that combines into `accumulators`, row-major over `range`.
    ///
    /// # Panics
    /// Unless there is one for each element.
    #[cfg(not(target_arch = "nvptx64"))]
    #[must_use]
    #[inline]
    pub fn new(accumulators: &'a [Cell<T>], range: [usize; D], operator: O) -> Self {
        let elements = range.iter().try_fold(1_usize, |all, &size| all.checked_mul(size));
        assert!(elements == Some(accumulators.len()), "one accumulator per element");
        Self { accumulators, range, operator }
    }

    /// The size of the buffer.
    #[must_use]
    #[inline]
    pub const fn range(&self) -> [usize; D] {
        self.range
    }

    /// Adds `value` to what is combined for the element at `index`. Any number of times per item.
    ///
    /// # Panics
    /// If `index` is outside of the buffer.
    #[inline]
    #[track_caller]
    pub fn combine_at(&self, index: impl ViewIndex<D, Output<T> = T>, value: T) {
        let (index, range) = (index.first(), self.range);
        let position = (0..D).try_fold(0, |position, dim| {
            (index[dim] < range[dim]).then(|| position * range[dim] + index[dim])
        });
        match position {
            Some(position) => self.combine_in(position, value),
            None => outside(index, range),
        }
    }

    #[cfg(not(target_arch = "nvptx64"))]
    #[allow(unsafe_code)]
    #[inline]
    fn combine_in(&self, position: usize, value: T) {
        // SAFETY: `combine_at` has found it inside of `range`, which has as many elements as there are
        // accumulators, by `new`.
        let accumulator = unsafe { self.accumulators.get_unchecked(position) };
        accumulator.set(self.operator.combine(accumulator.get(), value));
    }

    #[cfg(target_arch = "nvptx64")]
    #[allow(unsafe_code)]
    #[inline(always)]
    fn combine_in(&self, position: usize, value: T) {
        // SAFETY: `combine_at` has found it inside; a launch is refused unless values have 32 or 64
        // bits, and the operator is exact or the reduction unordered.
        unsafe { self.accumulators.combine(position as u32, value, &self.operator) }
    }
}

#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[cfg_attr(not(target_arch = "nvptx64"), cold, inline(never))]
#[track_caller]
fn outside<const D: usize>(index: [usize; D], range: [usize; D]) -> ! {
    let ([z, y, x], [z1, y1, x1]) = (three(index), three(range));
    let text = "index {index} is outside of the buffer of {index} that is reduced into";
    stop(text, D, [z, y, x, z1, y1, x1])
}

impl<T, O: Copy> Copy for Reducer<'_, T, O> {}

impl<T, O: Copy> Clone for Reducer<'_, T, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, O: Copy, const D: usize> Copy for ArrayReducer<'_, T, O, D> {}

impl<T, O: Copy, const D: usize> Clone for ArrayReducer<'_, T, O, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, O> fmt::Debug for Reducer<'_, T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reducer")
    }
}

impl<T, O, const D: usize> fmt::Debug for ArrayReducer<'_, T, O, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ArrayReducer{:?}", self.range)
    }
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::panic::catch_unwind;
    use std::string::String;

    use super::*;

    #[test]
    fn elements_are_found_row_major() {
        let cells: [Cell<u32>; 6] = Default::default();
        let reducer = ArrayReducer::new(&cells, [2, 3], Sum);
        reducer.combine_at([1, 0], 5);
        reducer.combine_at([1, 0], 2);
        reducer.combine_at([0, 2], 1);
        assert_eq!(cells.map(Cell::into_inner), [0, 0, 1, 7, 0, 0]);
    }

    /// A position is not compared with how many there are.
    #[test]
    fn there_is_an_accumulator_for_each_element() {
        for (count, range) in [(6, [2, 4]), (6, [7, 1]), (6, [0, 6]), (0, [1 << 32, 1 << 32])] {
            let made = catch_unwind(|| {
                let cells: [Cell<u32>; 6] = Default::default();
                let _ = ArrayReducer::new(&cells[..count], range, Sum);
            });
            assert!(made.is_err(), "{range:?}");
        }
    }

    #[test]
    fn an_index_outside_is_named() {
        let outside = |index: [usize; 2]| {
            let panic = catch_unwind(|| {
                let cells: [Cell<u32>; 6] = Default::default();
                ArrayReducer::new(&cells, [2, 3], Sum).combine_at(index, 1);
            });
            *panic.unwrap_err().downcast::<String>().unwrap()
        };
        for index in [[2, 0], [0, 3], [1, 3], [usize::MAX, 0], [0, usize::MAX]] {
            assert!(outside(index).starts_with(&format!("index {index:?} is outside")));
        }
    }
}
