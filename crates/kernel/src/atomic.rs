//! Elements that any number of items update, one step at a time. Knows boxes and
//! addresses; which items meet where is nobody's business.
#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;

use crate::bounds::{Bounds, Layout, distance};
use crate::index::ViewIndex;
use crate::outside::{RowOf, Scope};
use crate::plain::Scalar;

#[cfg(target_arch = "nvptx64")]
mod device;
#[cfg(not(target_arch = "nvptx64"))]
mod host;
mod integer;
pub(crate) mod steps;

pub use integer::Integer;

/// Numbers that are updated in one step, of 32 and 64 bits; sealed.
#[diagnostic::on_unimplemented(
    message = "a `{Self}` cannot be updated in one step",
    label = "no number of 32 or 64 bits",
    note = "use `u32`, `i32`, `u64`, `i64`, `usize`, `isize`, `f32` or `f64`"
)]
pub trait Atomic: Scalar + Default + steps::Steps {}

macro_rules! atomic {
    ($($number:ty)*) => {$(impl Atomic for $number {})*};
}

atomic!(u32 i32 u64 i64 usize isize f32 f64);

/// Numbers that are compared and replaced in one step: integers of 32 and 64 bits; sealed.
#[diagnostic::on_unimplemented(
    message = "a `{Self}` cannot be compared and replaced in one step",
    label = "no integer of 32 or 64 bits",
    note = "of floats that are not negative, take minima and maxima as integers, which are in the \
            same order: update a buffer of `u32` with `x.to_bits()`, or of `u64` for `f64`, and \
            read it with `from_bits`",
    note = "or let each item write a value of its own, and look for the extreme in another task"
)]
pub trait AtomicInteger: Integer {}

macro_rules! atomic_integer {
    ($($number:ty)*) => {$(impl AtomicInteger for $number {})*};
}

atomic_integer!(u32 i32 u64 i64 usize isize);

/// Access to one declared box of a buffer that all items of a chunk share, by index
/// into the buffer on every split, for updates in one step. Anything else in the buffer is out of
/// bounds.
///
/// ```
/// use celerity_kernel::{AtomicView, Item, kernel};
/// # use celerity_kernel::Module;
///
/// /// Counts how often each kind of value occurs.
/// #[kernel]
/// fn count(_item: Item<1>, (counts, kind): (AtomicView<'_, u32, 1>, &u32)) {
///     counts.at(*kind as usize).fetch_add(1);
/// }
/// # static MODULE: Module = Module::without_code("doc", "");
/// # fn main() {}
/// ```
#[derive(Clone, Copy)]
pub struct AtomicView<'a, T, const D: usize> {
    /// The box's first element.
    start: *mut T,
    strides: [usize; D],
    part: Bounds<D>,
    elements: PhantomData<&'a [AtomicRef<'a, T>]>,
}

/// One element of an [`AtomicView`].
///
/// Every method is one step: no other item comes in between. Nothing is said of the
/// order in which items come, nor of what one item sees of another's other elements:
/// the order is C++'s `relaxed`. What depends on the order, such as a sum of floats, is
/// another each time.
#[derive(Clone, Copy)]
pub struct AtomicRef<'a, T> {
    element: *mut T,
    elements: PhantomData<&'a T>,
}

// SAFETY: elements are only touched in single steps, which any thread may make.
unsafe impl<T: Atomic, const D: usize> Send for AtomicView<'_, T, D> {}
// SAFETY: as above.
unsafe impl<T: Atomic, const D: usize> Sync for AtomicView<'_, T, D> {}
// SAFETY: as above.
unsafe impl<T: Atomic> Send for AtomicRef<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Atomic> Sync for AtomicRef<'_, T> {}

impl<'a, T: Atomic, const D: usize> AtomicView<'a, T, D> {
    /// The view of the elements in `part`, in memory that lies at `base` as `layout`
    /// says.
    ///
    /// # Safety
    /// Every element of `part` is in the layout, aligned, and valid to read and write
    /// during `'a`, in which it is touched through views like this one alone.
    #[must_use]
    #[inline]
    pub unsafe fn new(base: *mut T, layout: Layout<D>, part: Bounds<D>) -> Self {
        // SAFETY: the box's first element, if there is one, is in the layout.
        let start = unsafe { base.add(layout.beginning(&part)) };
        Self { start, strides: layout.strides(), part, elements: PhantomData }
    }

    /// The box that may be updated.
    #[must_use]
    #[inline]
    pub const fn bounds(&self) -> Bounds<D> {
        self.part
    }

    /// The element at `index`, or `None` outside of the box.
    #[must_use]
    #[inline]
    pub fn get(&self, index: impl ViewIndex<D, Output<T> = T>) -> Option<AtomicRef<'a, T>> {
        // SAFETY: it is in the box.
        index.is_in(&self.part).then(|| unsafe { self.element(index.first()) })
    }

    /// The element at `index`.
    ///
    /// # Panics
    /// If `index` is outside of the box.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn at(&self, index: impl ViewIndex<D, Output<T> = T>) -> AtomicRef<'a, T> {
        index.check((Scope::Updated, RowOf::Nothing), &self.part);
        // SAFETY: it is in the box.
        unsafe { self.element(index.first()) }
    }

    /// The element at `index`.
    ///
    /// # Safety
    /// It is in the box.
    #[inline]
    unsafe fn element(&self, index: [usize; D]) -> AtomicRef<'a, T> {
        let distance = distance(self.strides, self.part.min(), index);
        // SAFETY: `new`'s contract covers the elements of the box, and `start` leads to its first.
        AtomicRef { element: unsafe { self.start.offset(distance) }, elements: PhantomData }
    }
}

impl<T: Atomic> AtomicRef<'_, T> {
    /// Reads the value, in one step.
    #[must_use]
    #[inline]
    pub fn load(self) -> T {
        // SAFETY: here and below, as `AtomicView::new` says.
        unsafe { T::load(self.element) }
    }

    /// Replaces the value, in one step.
    #[inline]
    pub fn store(self, value: T) {
        // SAFETY: as above.
        unsafe { T::store(self.element, value) }
    }

    /// Replaces the value, and returns what it was.
    #[inline]
    pub fn swap(self, value: T) -> T {
        // SAFETY: as above.
        unsafe { T::swap(self.element, value) }
    }

    /// Adds to the value, and returns what it was. Integers wrap around where `T` ends;
    /// GPUs take subnormal `f32` for 0.
    #[inline]
    pub fn fetch_add(self, value: T) -> T {
        // SAFETY: as above.
        unsafe { T::add(self.element, value) }
    }

    /// Lowers the value to `value`, if that is less, and returns what it was.
    #[inline]
    pub fn fetch_min(self, value: T) -> T
    where
        T: AtomicInteger,
    {
        // SAFETY: as above.
        unsafe { T::min(self.element, value) }
    }

    /// Raises the value to `value`, if that is more, and returns what it was.
    #[inline]
    pub fn fetch_max(self, value: T) -> T
    where
        T: AtomicInteger,
    {
        // SAFETY: as above.
        unsafe { T::max(self.element, value) }
    }

    /// Replaces the value by `new` if it is `current`, and returns what it was.
    ///
    /// # Errors
    /// With what it is, if that is something else.
    #[inline]
    pub fn compare_exchange(self, current: T, new: T) -> Result<T, T>
    where
        T: AtomicInteger,
    {
        // SAFETY: as above.
        let before = unsafe { T::compare_exchange(self.element, current, new) };
        if before == current { Ok(before) } else { Err(before) }
    }
}

impl<T, const D: usize> fmt::Debug for AtomicView<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtomicView").field("part", &self.part).finish_non_exhaustive()
    }
}

impl<T: Atomic + fmt::Debug> fmt::Debug for AtomicRef<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AtomicRef").field(&self.load()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn view<T: Atomic>(elements: &mut [T; 12]) -> AtomicView<'_, T, 2> {
        let layout = Layout::row_major(&Bounds::from_range([3, 4]));
        // SAFETY: the layout covers the whole array, all of it borrowed.
        unsafe { AtomicView::new(elements.as_mut_ptr(), layout, Bounds::new([1, 0], [3, 3])) }
    }

    #[test]
    fn only_the_box_can_be_reached() {
        let mut elements = [0_u32; 12];
        let view = view(&mut elements);
        assert!(view.get([0, 1]).is_none() && view.get([1, 3]).is_none());
        view.at([2, 2]).store(7);
        assert_eq!(view.get([2, 2]).map(AtomicRef::load), Some(7));
        assert_eq!(elements.iter().position(|&element| element == 7), Some(10));
    }

    #[test]
    #[should_panic(expected = "index [1, 3] is outside of what this chunk may update")]
    fn an_index_outside_is_named() {
        let _ = view(&mut [0_i64; 12]).at([1, 3]);
    }

    #[test]
    fn steps_return_what_was_there() {
        let mut elements = [-5_i64; 12];
        let element = view(&mut elements).at([1, 1]);
        assert_eq!((element.fetch_add(7), element.swap(1), element.load()), (-5, 2, 1));
        assert_eq!((element.fetch_min(-3), element.fetch_max(-9), element.load()), (1, -3, -3));
        assert_eq!(element.compare_exchange(0, 4), Err(-3));
        assert_eq!((element.compare_exchange(-3, 4), element.load()), (Ok(-3), 4));
        assert_eq!(element.fetch_max(9), 4);
        let mut elements = [u32::MAX; 12];
        let element = view(&mut elements).at([1, 1]);
        assert_eq!((element.fetch_add(2), element.load()), (u32::MAX, 1));
        assert_eq!((element.fetch_min(u32::MAX), element.fetch_max(u32::MAX)), (1, 1));
    }

    /// How often each of four threads adds: Miri looks at every step.
    const TIMES: i32 = if cfg!(miri) { 40 } else { 1000 };

    /// Whether nothing is lost where threads meet.
    fn counts<T: Atomic + PartialEq + fmt::Debug>(one: T, all: T) {
        let mut elements = [T::default(); 12];
        let element = view(&mut elements).at([2, 0]);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(move || (0..TIMES).for_each(|_| _ = element.fetch_add(one)));
            }
        });
        assert_eq!(elements[8], all);
    }

    #[test]
    fn nothing_is_lost_where_threads_meet() {
        counts(1_u32, 4 * TIMES.unsigned_abs());
        counts(-1_i32, -4 * TIMES);
        counts(1_u64, 4 * u64::from(TIMES.unsigned_abs()));
        counts(-1_i64, -4 * i64::from(TIMES));
        counts(0.5_f32, 2.0 * TIMES as f32);
        counts(0.5_f64, 2.0 * f64::from(TIMES));
    }
}
