//! What kernels get for their accesses, per item and per row.
#![allow(unsafe_code)]

use std::ops::Range;

use celerity_kernel::Row;

use super::memories::Memories;
use super::{Lowering, Rows};
use crate::error::Result;

/// The rest of a [`KernelAccess`] all items of which share one view, to which the cursor leads: by
/// address, since to hand it from row to row costs more than what is done with it in a short one.
macro_rules! shared_view {
    ($k:ident) => {
        #[inline]
        unsafe fn row<'a>(
            rows: &'a mut Self::Rows<'_>,
            _n: usize,
            _row: &Row<$k>,
        ) -> Self::Cursor<'a> {
            rows
        }

        #[inline]
        fn segment<'a>(
            cursor: &'a mut Self::Cursor<'_>,
            _start: usize,
            _segment: &Row<$k>,
        ) -> Self::Cursor<'a> {
            cursor
        }

        #[inline]
        fn row_view(cursor: Self::Cursor<'_>) -> Self::RowView<'_> {
            *cursor
        }

        #[inline]
        fn item_view<'a>(
            cursor: &'a mut Self::Cursor<'_>,
            _row: &Row<$k>,
            _i: usize,
        ) -> Self::ItemView<'a> {
            **cursor
        }
    };
}

/// The same where the cursor is that view.
macro_rules! copied_view {
    ($k:ident) => {
        #[inline]
        unsafe fn row<'a>(
            rows: &'a mut Self::Rows<'_>,
            _n: usize,
            _row: &Row<$k>,
        ) -> Self::Cursor<'a> {
            *rows
        }

        #[inline]
        fn segment<'a>(
            cursor: &'a mut Self::Cursor<'_>,
            _start: usize,
            _segment: &Row<$k>,
        ) -> Self::Cursor<'a> {
            *cursor
        }

        #[inline]
        fn row_view(cursor: Self::Cursor<'_>) -> Self::RowView<'_> {
            cursor
        }

        #[inline]
        fn item_view<'a>(
            cursor: &'a mut Self::Cursor<'_>,
            _row: &Row<$k>,
            _i: usize,
        ) -> Self::ItemView<'a> {
            *cursor
        }
    };
}
pub(super) use copied_view;

/// The rest of a [`KernelAccess`] whose cursor is a view of all items of a row, from which those of
/// some are cut; what several rows share is the view of the first.
macro_rules! cut_view {
    ($k:ident) => {
        #[inline]
        unsafe fn row<'a>(
            rows: &'a mut Self::Rows<'_>,
            n: usize,
            _row: &Row<$k>,
        ) -> Self::Cursor<'a> {
            // SAFETY: there are so many, and `rows` was promised of each what it was of the first.
            unsafe { rows.rows_further(n) }
        }

        #[inline]
        fn segment<'a>(
            cursor: &'a mut Self::Cursor<'_>,
            start: usize,
            segment: &Row<$k>,
        ) -> Self::Cursor<'a> {
            cursor.segment(start, segment.len())
        }

        #[inline]
        fn row_view(cursor: Self::Cursor<'_>) -> Self::RowView<'_> {
            cursor
        }

        #[inline]
        fn item_view<'a>(
            cursor: &'a mut Self::Cursor<'_>,
            _row: &Row<$k>,
            i: usize,
        ) -> Self::ItemView<'a> {
            cursor.item(i)
        }
    };
}

mod by_index;
mod parts;
mod reducers;
mod steps;
mod updates;

/// An access that a kernel over `K` dimensions can have; sealed.
///
/// The hidden part is between this crate's launcher and the accesses. Laws:
/// rows that share no item may be cut and used concurrently; a view cut from a
/// row touches nothing but what belongs to that row's items.
#[diagnostic::on_unimplemented(
    message = "a {K}-dimensional kernel cannot have the access `{Self}`",
    label = "not an access that this kernel can have",
    note = "`one_to_one`, `slice` and `neighborhood` need an index space and a buffer of equal \
            dimensionality",
    note = "kernels write through `one_to_one`, `slice`, `blocks`, `per_dimension` or \
            `disjoint_mapper`; through another range mapper they can `update` numbers of 32 and \
            64 bits, or use a host task"
)]
pub trait KernelAccess<const K: usize>: sealed::Sealed {
    /// What an item kernel gets.
    type ItemView<'a>;
    /// What a row kernel gets.
    type RowView<'a>;
    /// What a submitted kernel keeps of the access.
    #[doc(hidden)]
    type Plan: Send + Sync + 'static;
    /// The plan with the memory of one chunk.
    #[doc(hidden)]
    type Bound<'m>: Sync;
    /// The plan with the memory of several rows of items.
    #[doc(hidden)]
    type Rows<'r>;
    /// The same of one of them.
    #[doc(hidden)]
    type Cursor<'r>;

    /// Whether items have an [interior](Self::interior), in which less has to be asked.
    #[doc(hidden)]
    const HAS_EDGES: bool = false;

    #[doc(hidden)]
    fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan>;

    /// Takes its memory.
    ///
    /// # Safety
    /// The next of `memory` keeps the executor's promise for this access of a chunk, and its
    /// region holds the range mapper's image of the chunk.
    #[doc(hidden)]
    unsafe fn bind<'m>(plan: &'m Self::Plan, memory: &mut Memories<'_, 'm>) -> Self::Bound<'m>;

    /// The items, along the fastest dimension, that may share a row with
    /// others. The rest come alone: they stand too close to a buffer's edge.
    #[doc(hidden)]
    fn interior(_bound: &Self::Bound<'_>) -> Range<usize> {
        0..usize::MAX
    }

    /// Begins a tile of a launch with reductions, with so many accumulators: rows that follow are
    /// in it, one after the other, on the thread that has bound the access.
    #[doc(hidden)]
    fn begin_tile(_bound: &Self::Bound<'_>, _tile: u64, _lanes: usize) {}

    /// Says how many items of the tile are before the row that follows.
    #[doc(hidden)]
    fn begin_row(_bound: &Self::Bound<'_>, _position: usize) {}

    #[doc(hidden)]
    fn end_tile(_bound: &Self::Bound<'_>) {}

    /// Whether rows that follow each other can be had together. Not where one slice is to hold what lies
    /// between their elements, too: others may be at work there.
    #[doc(hidden)]
    #[inline]
    fn joins(_bound: &Self::Bound<'_>, _rows: &Rows<K>) -> bool {
        true
    }

    /// # Safety
    /// The rows are in the chunk that `bound` was bound for, no others that live
    /// share an item with them, and [`joins`](Self::joins) says so if there are several.
    #[doc(hidden)]
    unsafe fn rows<'r>(bound: &'r Self::Bound<'_>, rows: &Rows<K>) -> Self::Rows<'r>;

    /// The `n`-th of them.
    ///
    /// # Safety
    /// There are more than `n`.
    #[doc(hidden)]
    unsafe fn row<'a>(rows: &'a mut Self::Rows<'_>, n: usize, row: &Row<K>) -> Self::Cursor<'a>;

    /// The items of `segment`, which begins at the cursor's item `start`. Its
    /// length is visible to the optimiser as that of every slice.
    #[doc(hidden)]
    fn segment<'a>(
        cursor: &'a mut Self::Cursor<'_>,
        start: usize,
        segment: &Row<K>,
    ) -> Self::Cursor<'a>;

    /// The same items, of which is known that no edge is near along the fastest dimension.
    ///
    /// # Safety
    /// All of them are in the [interior](Self::interior).
    #[doc(hidden)]
    #[inline]
    unsafe fn inner(cursor: Self::Cursor<'_>) -> Self::Cursor<'_> {
        cursor
    }

    /// The same items, for those who ask for one after the other: with whatever is worth finding out for all
    /// of them beforehand.
    #[doc(hidden)]
    #[inline]
    fn one_by_one(cursor: Self::Cursor<'_>) -> Self::Cursor<'_> {
        cursor
    }

    #[doc(hidden)]
    fn row_view(cursor: Self::Cursor<'_>) -> Self::RowView<'_>;

    #[doc(hidden)]
    fn item_view<'a>(
        cursor: &'a mut Self::Cursor<'_>,
        row: &Row<K>,
        i: usize,
    ) -> Self::ItemView<'a>;
}

pub(super) mod sealed {
    use crate::access::{ReadAccess, ReduceAccess, UpdateAccess, WriteAccess};
    use crate::tuples::for_tuples;

    pub trait Sealed {}
    impl<T, const D: usize, M> Sealed for ReadAccess<T, D, M> {}
    impl<T, const D: usize, M> Sealed for WriteAccess<T, D, M> {}
    impl<T, const D: usize, M> Sealed for UpdateAccess<T, D, M> {}
    impl<T, const D: usize, O> Sealed for ReduceAccess<T, D, O> {}

    macro_rules! seal_tuples {
        ($($member:ident $name:ident $index:tt),*) => {
            impl<$($member: Sealed),*> Sealed for ($($member,)*) {}
        };
    }

    for_tuples!(seal_tuples);
}
