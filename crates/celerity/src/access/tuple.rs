//! Tuples of accesses: everything that a kernel touches, in one value.
#![allow(unsafe_code)]

use std::ops::Range;

use celerity_executor::BoundMemory;
use celerity_kernel::{Item, Row};

use super::kernel::KernelAccess;
use super::kernel::sealed::Sealed;
use super::{Lowering, ReadAccess, ReduceAccess, UpdateAccess, WriteAccess};
use crate::error::Result;
use crate::item_context;
use crate::tuples::for_tuples;

/// The accesses of a kernel over `K` dimensions: one access, or a tuple of up
/// to twenty; sealed. The kernel gets the views in the same order.
#[diagnostic::on_unimplemented(
    message = "a {K}-dimensional kernel cannot have the accesses `{Self}`",
    label = "not accesses that this kernel can have",
    note = "accesses are what `buffer.read(mapper)`, `.write(mapper)`, `.read_write(mapper)`, \
            `.update(mapper)` and `.reduce(operator)` return, or a tuple of up to twenty of them; side \
            effects on host objects are for host tasks",
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

    #[doc(hidden)]
    fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan>;

    /// # Safety
    /// As [`KernelAccess::bind`], for one memory per access, in order.
    #[doc(hidden)]
    unsafe fn bind<'m>(plan: &'m Self::Plan, memory: &[BoundMemory<'m>]) -> Self::Bound<'m>;

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

    /// Calls an item kernel for all items of a row.
    ///
    /// # Safety
    /// As [`KernelAccess::row`].
    #[doc(hidden)]
    unsafe fn run_items<F>(
        bound: &Self::Bound<'_>,
        row: Row<K>,
        interior: &Range<usize>,
        kernel: &F,
    ) where
        F: for<'a> Fn(Item<K>, Self::ItemViews<'a>);

    /// Calls a row kernel for the segments of a row, one after the other: `cut` gives the one that
    /// begins at an item.
    ///
    /// # Safety
    /// As [`KernelAccess::row`].
    #[doc(hidden)]
    unsafe fn run_row<C, F>(bound: &Self::Bound<'_>, row: Row<K>, cut: &C, kernel: &F)
    where
        C: Fn(&Row<K>, usize) -> Row<K>,
        F: for<'a> Fn(Row<K>, Self::RowViews<'a>);
}

/// The longest run of items from `start` on that can be handled together: along
/// the fastest dimension, items outside of `interior` come alone.
#[inline]
pub(crate) fn segment<const K: usize>(
    row: &Row<K>,
    start: usize,
    interior: &Range<usize>,
) -> Row<K> {
    let at = row.id(start).last().copied().unwrap_or(0);
    let together = if interior.contains(&at) { interior.end - at } else { 1 };
    row.segment(start, together.min(row.len() - start))
}

/// The optimiser knows that `&mut [T]` aliases nothing only while it is a
/// function's own parameter. So each row goes through a function that takes
/// every cursor as a parameter and is never inlined, and the kernel is inlined
/// into that: without it, loops over several slices do not vectorise, or check
/// for overlap at run time.
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

            #[allow(unused_variables, clippy::unused_unit)]
            fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan> {
                lowering.reserve(<[usize]>::len(&[$($index),*]));
                Ok(($(self.$index.lower(lowering)?,)*))
            }

            #[allow(unused_variables, clippy::unused_unit)]
            unsafe fn bind<'m>(
                plan: &'m Self::Plan,
                memory: &[BoundMemory<'m>],
            ) -> Self::Bound<'m> {
                ($({
                    // SAFETY: passed on.
                    unsafe { $access::bind(&plan.$index, &memory[$index]) }
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

            #[allow(unused_variables, unused_mut)]
            unsafe fn run_items<Kernel>(
                bound: &Self::Bound<'_>,
                row: Row<K>,
                interior: &Range<usize>,
                kernel: &Kernel,
            ) where
                Kernel: for<'a> Fn(Item<K>, Self::ItemViews<'a>),
            {
                #[inline(never)]
                #[allow(clippy::extra_unused_lifetimes, clippy::too_many_arguments)]
                fn __rust_begin_short_backtrace<'r, const K: usize, $($access: KernelAccess<K>,)* Kernel>(
                    row: Row<K>,
                    interior: &Range<usize>,
                    kernel: &Kernel,
                    $(mut $cursor: $access::Cursor<'r>),*
                ) where
                    Kernel: for<'a> Fn(Item<K>, ($($access::ItemView<'a>,)*)),
                {
                    let mut start = 0;
                    while start < row.len() {
                        let segment = segment(&row, start, interior);
                        $(let mut $cursor = $access::segment(&mut $cursor, start, &segment);)*
                        for i in 0..segment.len() {
                            let views = ($($access::item_view(&mut $cursor, &segment, i),)*);
                            let item = segment.segment(i, 1);
                            item_context::at(&item, || kernel(segment.item(i), views));
                        }
                        start += segment.len();
                    }
                }
                __rust_begin_short_backtrace::<K, $($access,)* Kernel>(
                    row,
                    interior,
                    kernel,
                    $({
                        // SAFETY: passed on.
                        unsafe { $access::row(&bound.$index, &row) }
                    }),*
                );
            }

            #[allow(unused_variables)]
            unsafe fn run_row<Cut, Kernel>(
                bound: &Self::Bound<'_>,
                row: Row<K>,
                cut: &Cut,
                kernel: &Kernel,
            ) where
                Cut: Fn(&Row<K>, usize) -> Row<K>,
                Kernel: for<'a> Fn(Row<K>, Self::RowViews<'a>),
            {
                #[inline(never)]
                #[allow(clippy::extra_unused_lifetimes, clippy::too_many_arguments)]
                fn __rust_begin_short_backtrace<'r, const K: usize, $($access: KernelAccess<K>,)* Cut, Kernel>(
                    row: Row<K>,
                    cut: &Cut,
                    kernel: &Kernel,
                    $(mut $cursor: $access::Cursor<'r>),*
                ) where
                    Cut: Fn(&Row<K>, usize) -> Row<K>,
                    Kernel: for<'a> Fn(Row<K>, ($($access::RowView<'a>,)*)),
                {
                    let mut start = 0;
                    while start < row.len() {
                        let segment = cut(&row, start);
                        $(let $cursor = $access::segment(&mut $cursor, start, &segment);)*
                        let views = ($($access::row_view($cursor),)*);
                        item_context::at(&segment, || kernel(segment, views));
                        start += segment.len();
                    }
                }
                __rust_begin_short_backtrace::<K, $($access,)* Cut, Kernel>(
                    row,
                    cut,
                    kernel,
                    $({
                        // SAFETY: passed on.
                        unsafe { $access::row(&bound.$index, &row) }
                    }),*
                );
            }
        }
    };
}

for_tuples!(tuple_accesses);

/// A single access is a tuple of one whose kernel gets the view bare.
macro_rules! single_access {
    ($access:ident) => {
        impl<T, M, const D: usize, const K: usize> KernelAccesses<K> for $access<T, D, M>
        where
            Self: KernelAccess<K>,
        {
            type ItemViews<'a> = <Self as KernelAccess<K>>::ItemView<'a>;
            type RowViews<'a> = <Self as KernelAccess<K>>::RowView<'a>;
            type Plan = <(Self,) as KernelAccesses<K>>::Plan;
            type Bound<'m> = <(Self,) as KernelAccesses<K>>::Bound<'m>;

            fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan> {
                (self,).lower(lowering)
            }

            unsafe fn bind<'m>(
                plan: &'m Self::Plan,
                memory: &[BoundMemory<'m>],
            ) -> Self::Bound<'m> {
                // SAFETY: passed on.
                unsafe { <(Self,)>::bind(plan, memory) }
            }

            fn interior(bound: &Self::Bound<'_>) -> Range<usize> {
                <(Self,)>::interior(bound)
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

            #[inline]
            unsafe fn run_items<F>(
                bound: &Self::Bound<'_>,
                row: Row<K>,
                interior: &Range<usize>,
                kernel: &F,
            ) where
                F: for<'a> Fn(Item<K>, Self::ItemViews<'a>),
            {
                // SAFETY: passed on.
                unsafe {
                    <(Self,)>::run_items(bound, row, interior, &|item, (view,)| kernel(item, view))
                }
            }

            #[inline]
            unsafe fn run_row<C, F>(bound: &Self::Bound<'_>, row: Row<K>, cut: &C, kernel: &F)
            where
                C: Fn(&Row<K>, usize) -> Row<K>,
                F: for<'a> Fn(Row<K>, Self::RowViews<'a>),
            {
                // SAFETY: passed on.
                unsafe { <(Self,)>::run_row(bound, row, cut, &|row, (view,)| kernel(row, view)) }
            }
        }
    };
}

single_access!(ReadAccess);
single_access!(WriteAccess);
single_access!(UpdateAccess);
single_access!(ReduceAccess);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn border_items_come_alone() {
        let segments = |first: usize, len: usize, interior: Range<usize>| {
            let row = Row::new([7, first], len, [9, 9]);
            let (mut segments, mut start) = (Vec::new(), 0);
            while start < len {
                let segment = segment(&row, start, &interior);
                segments.push((segment.start()[1], segment.len()));
                start += segment.len();
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
