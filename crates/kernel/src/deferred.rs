//! Views of which a kernel reads element by element, and is told at the end that one was not there.
#![allow(unsafe_code)]
#![allow(clippy::inline_always, reason = "what has been missed stays in registers")]

#[cfg(target_arch = "nvptx64")]
use core::cell::Cell;
use core::ops::Index;
#[cfg(target_arch = "nvptx64")]
use core::panic::Location;

use crate::bounds::Layout;
use crate::outside::Scope;
#[cfg(not(target_arch = "nvptx64"))]
use crate::outside::check_element;
use crate::part::PartView;
use crate::plain::PlainData;
use crate::whole::WholeView;

/// A view that is read element by element, which a GPU checks when the view goes out of scope.
///
/// An index that is checked before the element is read is a branch, and what stands behind a branch is not read before
/// the branch is taken: a loop whose every turn reads what an index says has one element under way at a time. Here the branch comes
/// at the end. Until then, what is read in place of an element that is not there is the first one that is, so
/// a loop whose end depends on what it reads may go on for longer than it should, or for ever. At the end the kernel panics as it would have at the
/// index, and names the line of `deferred()`. On CPUs, it panics at the index.
///
/// That is for loops of which nobody knows the length. A few elements, as of the corners of a cell, are read together
/// where they are checked, too: in three dimensions, eight of them by checked indices were 1.6 times as fast on an H200.
///
/// ```
/// use celerity_kernel::{Item, PartView, WholeView, kernel};
/// # use celerity_kernel::Module;
///
/// /// A row of a sparse matrix times a vector.
/// #[kernel]
/// fn multiply(
///     item: Item<1>,
///     (y, ends, columns, values, x): (
///         &mut f32,
///         PartView<'_, u32, 1>,
///         PartView<'_, u32, 1>,
///         PartView<'_, f32, 1>,
///         WholeView<'_, f32, 1>,
///     ),
/// ) {
///     let (columns, values, x) = (columns.deferred(), values.deferred(), x.deferred());
///     let mut sum = 0.0;
///     for at in ends[item[0]] as usize..ends[item[0] + 1] as usize {
///         sum += values[at] * x[columns[at] as usize];
///     }
///     *y = sum;
/// }
/// # static MODULE: Module = Module::without_code("doc", "");
/// # fn main() {}
/// ```
///
/// # Panics
/// If an index was outside of the view: on devices when it is dropped, elsewhere at the index.
#[derive(Debug)]
pub struct Deferred<'a, T, const D: usize> {
    view: PartView<'a, T, D>,
    scope: Scope,
    #[cfg(target_arch = "nvptx64")]
    missed: Missed<D>,
}

/// What was not there.
#[cfg(target_arch = "nvptx64")]
#[derive(Debug)]
struct Missed<const D: usize> {
    is_any: Cell<bool>,
    /// The last one.
    index: Cell<[usize; D]>,
    view_made_at: &'static Location<'static>,
}

/// What is read of a view without elements. A constant: of a static variable of another crate LLVM does not know that
/// it never changes, and loads from what may be that would not go through the read-only cache.
#[cfg(target_arch = "nvptx64")]
#[repr(align(16))]
struct Zeroes([u8; 256]);

#[cfg(target_arch = "nvptx64")]
const ZEROES: &Zeroes = &Zeroes([0; 256]);

impl<'a, T: PlainData, const D: usize> Deferred<'a, T, D> {
    /// Its elements, of what scope says.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn new(view: PartView<'a, T, D>, scope: Scope) -> Self {
        #[cfg(target_arch = "nvptx64")]
        let view = {
            const {
                assert!(
                    size_of::<T>() <= size_of::<Zeroes>(),
                    "elements of deferred views have up to 256 bytes"
                )
            };
            view.or_of(ZEROES.0.as_ptr().cast())
        };
        Self {
            view,
            scope,
            #[cfg(target_arch = "nvptx64")]
            missed: Missed {
                is_any: Cell::new(false),
                index: Cell::new([0; D]),
                view_made_at: Location::caller(),
            },
        }
    }

    /// The element at an index, or the first one.
    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    fn at(&self, index: [usize; D]) -> &T {
        let (part, missed) = (self.view.bounds(), &self.missed);
        let is_there = part.contains(index);
        missed.is_any.set(missed.is_any.get() | !is_there);
        missed.index.set(if is_there { missed.index.get() } else { index });
        // SAFETY: every index in the part has an element, and the view begins with one, or with zeroes in its place,
        // which plain old data can be.
        unsafe { &*self.view.address(if is_there { index } else { part.min() }) }
    }

    #[cfg(not(target_arch = "nvptx64"))]
    #[inline(always)]
    #[track_caller]
    fn at(&self, index: [usize; D]) -> &T {
        check_element((self.scope, self.view.row_of()), index, &self.view.bounds());
        // SAFETY: it is in the part.
        unsafe { &*self.view.address(index) }
    }
}

impl<T: PlainData, const D: usize> Index<[usize; D]> for Deferred<'_, T, D> {
    type Output = T;

    #[inline(always)]
    #[track_caller]
    fn index(&self, index: [usize; D]) -> &T {
        self.at(index)
    }
}

impl<T: PlainData> Index<usize> for Deferred<'_, T, 1> {
    type Output = T;

    #[inline(always)]
    #[track_caller]
    fn index(&self, index: usize) -> &T {
        self.at([index])
    }
}

#[cfg(target_arch = "nvptx64")]
impl<T, const D: usize> Drop for Deferred<'_, T, D> {
    #[inline(always)]
    fn drop(&mut self) {
        let Missed { is_any, index, view_made_at } = &self.missed;
        if is_any.get() {
            crate::outside::missed(
                view_made_at,
                (self.scope, self.view.row_of()),
                index.get(),
                &self.view.bounds(),
            );
        }
    }
}

impl<'a, T: PlainData, const D: usize> PartView<'a, T, D> {
    /// The same elements, to be read one by one; on GPUs, whether they were declared is checked at the end: see
    /// [`Deferred`].
    #[must_use]
    #[inline(always)]
    #[track_caller]
    pub fn deferred(self) -> Deferred<'a, T, D> {
        Deferred::new(self, Scope::Declared)
    }
}

impl<'a, T: PlainData, const D: usize> WholeView<'a, T, D> {
    /// The same elements, to be read one by one; on GPUs, whether they are in the buffer is checked at the end: see
    /// [`Deferred`].
    #[must_use]
    #[inline(always)]
    #[track_caller]
    pub fn deferred(self) -> Deferred<'a, T, D> {
        let buffer = crate::Bounds::from_range(self.range());
        // SAFETY: the slice holds as many elements as the range says, row-major.
        let view =
            unsafe { PartView::new(self.as_slice().as_ptr(), Layout::row_major(&buffer), buffer) };
        Deferred::new(view, Scope::Buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::string::String;

    use crate::{Bounds, Layout, PartView, WholeView};

    #[test]
    fn elements_are_those_of_the_view() {
        let elements = [1, 2, 3, 4, 5, 6];
        let whole = WholeView::new(&elements, [2, 3]);
        let deferred = whole.deferred();
        assert_eq!([deferred[[0, 0]], deferred[[1, 2]], deferred[[1, 0]]], [1, 6, 4]);
        let part = Bounds::new([10], [16]);
        // SAFETY: the layout is that of the elements, which the view borrows.
        let view = unsafe { PartView::new(elements.as_ptr(), Layout::row_major(&part), part) };
        let deferred = view.deferred();
        assert_eq!([deferred[10], deferred[[15]]], [1, 6]);
    }

    #[test]
    fn cpus_say_at_once_what_is_not_there() {
        let elements = [1, 2, 3];
        let message = std::panic::catch_unwind(|| {
            let _ = WholeView::new(&elements, [3]).deferred()[3];
        });
        let message = message.unwrap_err().downcast::<String>().unwrap();
        assert_eq!(*message, "index [3] is outside of the buffer's range [3]");
    }
}
