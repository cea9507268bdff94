//! Tuples of accesses: everything that a kernel touches, in one value.
#![allow(unsafe_code)]

use std::ops::Range;

use celerity_kernel::Row;

use super::body::{Bare, ItemBody, RowBody};
use super::kernel::KernelAccess;
use super::kernel::sealed::Sealed;
use super::memories::Memories;
use super::{Lowering, ReadAccess, ReduceAccess, Rows, UpdateAccess, WriteAccess};
use crate::error::Result;
use crate::item_context;
use crate::tuples::for_tuples;

/// The accesses of a kernel over `K` dimensions: one access, an array of up to 32 accesses of one type, or a tuple of up
/// to twenty of these; sealed. The kernel gets the views in the same order, those of a list in a list.
///
/// ```
/// use celerity::prelude::*;
///
/// let sums = celerity::run(|queue| {
///     // The components of a vector at each point, each in a buffer of its own.
///     let velocity = [1.0, 2.0, 3.0].map(|value| queue.buffer_from(4, vec![value; 4]));
///     let [x, y, z] = velocity;
///     let (velocity, squares) = ([x?, y?, z?], queue.buffer::<f64, 1>(4));
///     let reads = velocity.each_ref().map(|component| component.read(one_to_one()));
///     let accesses = (squares.write(one_to_one()), reads);
///     queue.task("square").parallel_for(4, accesses, |_, (square, velocity)| {
///         *square = velocity.iter().map(|component| *component * *component).sum();
///     })?;
///     Ok(queue.fence(&squares)?.wait()?.into_vec())
/// })?;
/// assert_eq!(sums, [14.0; 4]);
/// # Ok::<(), celerity::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "a {K}-dimensional kernel cannot have the accesses `{Self}`",
    label = "not accesses that this kernel can have",
    note = "accesses are what `buffer.read(mapper)`, `.write(mapper)`, `.read_write(mapper)`, \
            `.update(mapper)` and `.reduce(operator)` return, an array of them (`[access; 3]`), or a \
            tuple of up to twenty of these; side effects on host objects, and lists whose length \
            the program alone knows (`Vec`), are for host tasks",
    note = "`one_to_one`, `slice` and `neighborhood` need an index space and a buffer of equal \
            dimensionality; kernels write through `one_to_one`, `slice`, `per_dimension` or \
            `disjoint_mapper`"
)]
pub trait KernelAccesses<const K: usize>: Sealed {
    /// What an item kernel gets.
    type ItemViews<'a>;
    /// What a row kernel gets.
    type RowViews<'a>;
    #[doc(hidden)]
    type Plan: Send + Sync + 'static;
    #[doc(hidden)]
    type Bound<'m>: Sync;
    /// The memory of one item, from which its views are made.
    #[doc(hidden)]
    type ItemRows<'r>;
    #[doc(hidden)]
    type ItemCursors<'a>;

    #[doc(hidden)]
    fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan>;

    /// # Safety
    /// As [`KernelAccess::bind`], for all of its accesses, in order.
    #[doc(hidden)]
    unsafe fn bind<'m>(plan: &'m Self::Plan, memory: &mut Memories<'_, 'm>) -> Self::Bound<'m>;

    /// As [`KernelAccess::interior`], for all accesses at once.
    #[doc(hidden)]
    fn interior(bound: &Self::Bound<'_>) -> Range<usize>;

    /// As [`KernelAccess::begin_tile`], for all accesses.
    #[doc(hidden)]
    fn begin_tile(bound: &Self::Bound<'_>, tile: u64, lanes: usize);

    /// As [`KernelAccess::begin_row`], for all accesses.
    #[doc(hidden)]
    fn begin_row(bound: &Self::Bound<'_>, position: usize);

    /// As [`KernelAccess::end_tile`], for all accesses.
    #[doc(hidden)]
    fn end_tile(bound: &Self::Bound<'_>);

    /// As [`KernelAccess::joins`], for all accesses.
    #[doc(hidden)]
    fn joins(bound: &Self::Bound<'_>, rows: &Rows<K>) -> bool;

    /// The memory of the item that `row` consists of: what is needed where many items are under way, each with its views.
    ///
    /// # Safety
    /// As [`KernelAccess::rows`].
    #[doc(hidden)]
    unsafe fn item_rows<'r>(bound: &'r Self::Bound<'_>, row: Row<K>) -> Self::ItemRows<'r>;

    #[doc(hidden)]
    fn item_cursors<'a>(rows: &'a mut Self::ItemRows<'_>, row: &Row<K>) -> Self::ItemCursors<'a>;

    #[doc(hidden)]
    fn item_views<'a>(cursors: &'a mut Self::ItemCursors<'_>, row: &Row<K>) -> Self::ItemViews<'a>;

    /// Calls an item kernel for all items of some rows.
    ///
    /// # Safety
    /// As [`KernelAccess::rows`]; what is in `interior` is in [that](Self::interior) of `bound`.
    #[doc(hidden)]
    unsafe fn run_items<B>(
        bound: &Self::Bound<'_>,
        rows: &Rows<K>,
        interior: &Range<usize>,
        kernel: &B,
    ) where
        B: for<'a> ItemBody<Self::ItemViews<'a>, K>;

    /// Calls a row kernel for all items of some rows, one after the other those that [can be handled
    /// together](together).
    ///
    /// # Safety
    /// As [`run_items`](Self::run_items).
    #[doc(hidden)]
    unsafe fn run_rows<B>(
        bound: &Self::Bound<'_>,
        rows: &Rows<K>,
        interior: &Range<usize>,
        kernel: &B,
    ) where
        B: for<'a> RowBody<Self::RowViews<'a>, K>;
}

/// Which items of a row can be handled together, since they are in `interior` along the fastest dimension:
/// `None` if none are. Those that are not come alone.
#[inline]
fn together<const K: usize>(row: &Row<K>, interior: &Range<usize>) -> Option<Range<usize>> {
    let first = row.start().last().copied().unwrap_or(0);
    let within = |at: usize| at.saturating_sub(first).min(row.len());
    let together = within(interior.start)..within(interior.end);
    (!together.is_empty()).then_some(together)
}

/// How many items come next: all that can be handled [`together`] where these begin, else one.
#[inline]
fn next(start: usize, together: Option<&Range<usize>>) -> usize {
    together.filter(|run| run.start == start).map_or(1, Range::len)
}

/// The optimiser knows that `&mut [T]` aliases nothing only while it is a
/// function's own parameter. So rows go through a function that takes what they share
/// of every access as a parameter and is never inlined, and the kernel is inlined
/// into that: without it, loops over several slices do not vectorise, or check
/// for overlap at run time. Several rows, since what is found out once for all of them costs as much as
/// tens of cells.
///
/// Its name is what the standard library looks for in the backtrace of a panic: callers of a
/// function that is called so are left out, 60 frames of the runtime here.
macro_rules! tuple_accesses {
    ($($access:ident $cursor:ident $index:tt),*) => {
        impl<const K: usize, $($access: KernelAccess<K>),*> KernelAccesses<K> for ($($access,)*) {
            type ItemViews<'a> = ($($access::ItemView<'a>,)*);
            type RowViews<'a> = ($($access::RowView<'a>,)*);
            type Plan = ($($access::Plan,)*);
            type Bound<'m> = ($($access::Bound<'m>,)*);
            type ItemRows<'r> = ($($access::Rows<'r>,)*);
            type ItemCursors<'a> = ($($access::Cursor<'a>,)*);

            #[allow(unused_variables, clippy::unused_unit)]
            fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan> {
                lowering.reserve(<[usize]>::len(&[$($index),*]));
                Ok(($(self.$index.lower(lowering)?,)*))
            }

            #[allow(unused_variables, clippy::unused_unit)]
            unsafe fn bind<'m>(
                plan: &'m Self::Plan,
                memory: &mut Memories<'_, 'm>,
            ) -> Self::Bound<'m> {
                ($({
                    // SAFETY: passed on.
                    unsafe { $access::bind(&plan.$index, memory) }
                },)*)
            }

            #[allow(unused_variables, unused_mut)]
            fn interior(bound: &Self::Bound<'_>) -> Range<usize> {
                let mut common = 0..usize::MAX;
                $(
                    let interior = $access::interior(&bound.$index);
                    common.start = common.start.max(interior.start);
                    common.end = common.end.min(interior.end);
                )*
                common
            }

            #[allow(unused_variables)]
            fn joins(bound: &Self::Bound<'_>, rows: &Rows<K>) -> bool {
                true $(&& $access::joins(&bound.$index, rows))*
            }

            #[allow(unused_variables)]
            fn begin_tile(bound: &Self::Bound<'_>, tile: u64, lanes: usize) {
                $($access::begin_tile(&bound.$index, tile, lanes);)*
            }

            #[allow(unused_variables)]
            fn begin_row(bound: &Self::Bound<'_>, position: usize) {
                $($access::begin_row(&bound.$index, position);)*
            }

            #[allow(unused_variables)]
            fn end_tile(bound: &Self::Bound<'_>) {
                $($access::end_tile(&bound.$index);)*
            }

            #[allow(unused_variables, clippy::unused_unit)]
            unsafe fn item_rows<'r>(bound: &'r Self::Bound<'_>, row: Row<K>) -> Self::ItemRows<'r> {
                let rows = Rows::single(row);
                ($({
                    // SAFETY: passed on.
                    unsafe { $access::rows(&bound.$index, &rows) }
                },)*)
            }

            #[allow(unused_variables, clippy::unused_unit)]
            fn item_cursors<'a>(
                rows: &'a mut Self::ItemRows<'_>,
                row: &Row<K>,
            ) -> Self::ItemCursors<'a> {
                ($({
                    // SAFETY: there is one.
                    $access::one_by_one(unsafe { $access::row(&mut rows.$index, 0, row) })
                },)*)
            }

            #[allow(unused_variables, clippy::unused_unit)]
            fn item_views<'a>(
                cursors: &'a mut Self::ItemCursors<'_>,
                row: &Row<K>,
            ) -> Self::ItemViews<'a> {
                ($($access::item_view(&mut cursors.$index, row, 0),)*)
            }

            #[allow(unused_variables, unused_mut)]
            unsafe fn run_items<Kernel>(
                bound: &Self::Bound<'_>,
                rows: &Rows<K>,
                interior: &Range<usize>,
                kernel: &Kernel,
            ) where
                Kernel: for<'a> ItemBody<Self::ItemViews<'a>, K>,
            {
                #[inline(never)]
                #[allow(clippy::extra_unused_lifetimes, clippy::too_many_arguments)]
                fn __rust_begin_short_backtrace<'r, const K: usize, $($access: KernelAccess<K>,)* Kernel>(
                    rows: &Rows<K>,
                    interior: &Range<usize>,
                    kernel: &Kernel,
                    $(mut $cursor: $access::Rows<'r>),*
                ) where
                    Kernel: for<'a> ItemBody<($($access::ItemView<'a>,)*), K>,
                {
                    let together = together(rows.first(), interior);
                    // Known to the compiler. What a kernel calls is seen once where nothing is at an edge: functions that
                    // are called from two places may stay functions.
                    let is_twice = Kernel::ALWAYS_INLINED && (false $(|| $access::HAS_EDGES)*);
                    for n in 0..rows.count() {
                        let row = rows.row(n);
                        $(let mut $cursor = {
                            // SAFETY: there are more than `n`.
                            unsafe { $access::row(&mut $cursor, n, &row) }
                        };)*
                        let mut start = 0;
                        while start < row.len() {
                            start += match &together {
                                // Where they begin and end is the same in all rows.
                                &Some(Range { start: begin, end }) if is_twice && begin == start => {
                                    let (start, len) = (begin, end - begin);
                                    let segment = row.segment(start, len);
                                    $(let mut $cursor = {
                                        let cursor = $access::segment(&mut $cursor, start, &segment);
                                        // SAFETY: `run_items` was promised that they are in all interiors.
                                        $access::one_by_one(unsafe { $access::inner(cursor) })
                                    };)*
                                    for i in 0..len {
                                        let views = ($($access::item_view(&mut $cursor, &segment, i),)*);
                                        let item = segment.segment(i, 1);
                                        item_context::at(&item, || kernel.item(segment.item(i), views));
                                    }
                                    len
                                }
                                _ => {
                                    // A constant, where there is a loop for those that have company.
                                    let len = if is_twice { 1 } else { next(start, together.as_ref()) };
                                    let segment = row.segment(start, len);
                                    $(let mut $cursor = {
                                        let cursor = $access::segment(&mut $cursor, start, &segment);
                                        $access::one_by_one(cursor)
                                    };)*
                                    for i in 0..len {
                                        let views = ($($access::item_view(&mut $cursor, &segment, i),)*);
                                        let item = segment.segment(i, 1);
                                        item_context::at(&item, || kernel.item(segment.item(i), views));
                                    }
                                    len
                                }
                            };
                        }
                    }
                }
                __rust_begin_short_backtrace::<K, $($access,)* Kernel>(
                    rows,
                    interior,
                    kernel,
                    $({
                        // SAFETY: passed on.
                        unsafe { $access::rows(&bound.$index, rows) }
                    }),*
                );
            }

            #[allow(unused_variables)]
            unsafe fn run_rows<Kernel>(
                bound: &Self::Bound<'_>,
                rows: &Rows<K>,
                interior: &Range<usize>,
                kernel: &Kernel,
            ) where
                Kernel: for<'a> RowBody<Self::RowViews<'a>, K>,
            {
                #[inline(never)]
                #[allow(clippy::extra_unused_lifetimes, clippy::too_many_arguments)]
                fn __rust_begin_short_backtrace<'r, const K: usize, $($access: KernelAccess<K>,)* Kernel>(
                    rows: &Rows<K>,
                    interior: &Range<usize>,
                    kernel: &Kernel,
                    $(mut $cursor: $access::Rows<'r>),*
                ) where
                    Kernel: for<'a> RowBody<($($access::RowView<'a>,)*), K>,
                {
                    let together = together(rows.first(), interior);
                    // Known to the compiler. What a kernel calls is seen once where nothing is at an edge: functions that
                    // are called from two places may stay functions.
                    let is_twice = Kernel::ALWAYS_INLINED && (false $(|| $access::HAS_EDGES)*);
                    for n in 0..rows.count() {
                        let row = rows.row(n);
                        $(let mut $cursor = {
                            // SAFETY: there are more than `n`.
                            unsafe { $access::row(&mut $cursor, n, &row) }
                        };)*
                        let mut start = 0;
                        while start < row.len() {
                            start += match &together {
                                // Where they begin and end is the same in all rows.
                                &Some(Range { start: begin, end }) if is_twice && begin == start => {
                                    let (start, len) = (begin, end - begin);
                                    let segment = row.segment(start, len);
                                    let views = ($({
                                        let cursor = $access::segment(&mut $cursor, start, &segment);
                                        // SAFETY: `run_rows` was promised that they are in all interiors.
                                        $access::row_view(unsafe { $access::inner(cursor) })
                                    },)*);
                                    item_context::at(&segment, || kernel.row(segment, views));
                                    len
                                }
                                _ => {
                                    // As for items.
                                    let len = if is_twice { 1 } else { next(start, together.as_ref()) };
                                    let segment = row.segment(start, len);
                                    $(let $cursor = $access::segment(&mut $cursor, start, &segment);)*
                                    let views = ($($access::row_view($cursor),)*);
                                    item_context::at(&segment, || kernel.row(segment, views));
                                    len
                                }
                            };
                        }
                    }
                }
                __rust_begin_short_backtrace::<K, $($access,)* Kernel>(
                    rows,
                    interior,
                    kernel,
                    $({
                        // SAFETY: passed on.
                        unsafe { $access::rows(&bound.$index, rows) }
                    }),*
                );
            }
        }
    };
}

for_tuples!(tuple_accesses);

/// A single access is a tuple of one whose kernel gets the view bare.
macro_rules! single_access {
    ([$($generics:tt)*] $access:ty) => {
        impl<$($generics)*, const K: usize> KernelAccesses<K> for $access
        where
            Self: KernelAccess<K>,
        {
            type ItemViews<'a> = <Self as KernelAccess<K>>::ItemView<'a>;
            type RowViews<'a> = <Self as KernelAccess<K>>::RowView<'a>;
            type Plan = <(Self,) as KernelAccesses<K>>::Plan;
            type Bound<'m> = <(Self,) as KernelAccesses<K>>::Bound<'m>;
            type ItemRows<'r> = <(Self,) as KernelAccesses<K>>::ItemRows<'r>;
            type ItemCursors<'a> = <(Self,) as KernelAccesses<K>>::ItemCursors<'a>;

            fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan> {
                (self,).lower(lowering)
            }

            unsafe fn bind<'m>(
                plan: &'m Self::Plan,
                memory: &mut Memories<'_, 'm>,
            ) -> Self::Bound<'m> {
                // SAFETY: passed on.
                unsafe { <(Self,)>::bind(plan, memory) }
            }

            fn interior(bound: &Self::Bound<'_>) -> Range<usize> {
                <(Self,)>::interior(bound)
            }

            fn joins(bound: &Self::Bound<'_>, rows: &Rows<K>) -> bool {
                <(Self,)>::joins(bound, rows)
            }

            fn begin_tile(bound: &Self::Bound<'_>, tile: u64, lanes: usize) {
                <(Self,)>::begin_tile(bound, tile, lanes);
            }

            fn begin_row(bound: &Self::Bound<'_>, position: usize) {
                <(Self,)>::begin_row(bound, position);
            }

            fn end_tile(bound: &Self::Bound<'_>) {
                <(Self,)>::end_tile(bound);
            }

            unsafe fn item_rows<'r>(bound: &'r Self::Bound<'_>, row: Row<K>) -> Self::ItemRows<'r> {
                // SAFETY: passed on.
                unsafe { <(Self,)>::item_rows(bound, row) }
            }

            fn item_cursors<'a>(
                rows: &'a mut Self::ItemRows<'_>,
                row: &Row<K>,
            ) -> Self::ItemCursors<'a> {
                <(Self,)>::item_cursors(rows, row)
            }

            fn item_views<'a>(
                cursors: &'a mut Self::ItemCursors<'_>,
                row: &Row<K>,
            ) -> Self::ItemViews<'a> {
                <(Self,)>::item_views(cursors, row).0
            }

            #[inline]
            unsafe fn run_items<B>(
                bound: &Self::Bound<'_>,
                rows: &Rows<K>,
                interior: &Range<usize>,
                kernel: &B,
            ) where
                B: for<'a> ItemBody<Self::ItemViews<'a>, K>,
            {
                // SAFETY: passed on.
                unsafe { <(Self,)>::run_items(bound, rows, interior, &Bare(kernel)) }
            }

            #[inline]
            unsafe fn run_rows<B>(
                bound: &Self::Bound<'_>,
                rows: &Rows<K>,
                interior: &Range<usize>,
                kernel: &B,
            ) where
                B: for<'a> RowBody<Self::RowViews<'a>, K>,
            {
                // SAFETY: passed on.
                unsafe { <(Self,)>::run_rows(bound, rows, interior, &Bare(kernel)) }
            }
        }
    };
}

single_access!([T, M, const D: usize] ReadAccess<T, D, M>);
single_access!([T, M, const D: usize] WriteAccess<T, D, M>);
single_access!([T, M, const D: usize] UpdateAccess<T, D, M>);
single_access!([T, M, const D: usize] ReduceAccess<T, D, M>);
single_access!([A, const N: usize] [A; N]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn border_items_come_alone() {
        let segments = |first: usize, len: usize, interior: Range<usize>| {
            let row = Row::new([7, first], len, [9, 9]);
            let together = together(&row, &interior);
            let (mut segments, mut start) = (Vec::new(), 0);
            while start < len {
                let len = next(start, together.as_ref());
                segments.push((row.id(start)[1], len));
                start += len;
            }
            segments
        };
        assert_eq!(segments(0, 8, 2..6), [(0, 1), (1, 1), (2, 4), (6, 1), (7, 1)]);
        assert_eq!(segments(3, 2, 2..6), [(3, 2)]);
        assert_eq!(segments(5, 3, 2..6), [(5, 1), (6, 1), (7, 1)]);
        // A buffer narrower than both borders: everything is border.
        assert_eq!(segments(0, 3, Range { start: 2, end: 1 }), [(0, 1), (1, 1), (2, 1)]);
        assert_eq!(segments(0, 3, 0..usize::MAX), [(0, 3)]);
    }
}
