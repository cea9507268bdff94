//! Lists of accesses of one type: of host tasks and calls on devices, whose length a program need not know, and of kernels.
#![allow(unsafe_code)]

use std::ops::Range;

use celerity_executor::BoundMemory;
use celerity_kernel::Row;

use super::device::CallAccess;
use super::host::{HostAccess, HostAccesses, single_host_access};
use super::kernel::KernelAccess;
use super::kernel::sealed::Sealed;
use super::memories::Memories;
use super::{Lowering, Rows};
use crate::error::Result;

impl<A: Sealed> Sealed for Vec<A> {}
impl<A: Sealed, const N: usize> Sealed for [A; N] {}

impl<A: HostAccess<K>, const K: usize> HostAccess<K> for Vec<A> {
    type View<'a> = Vec<A::View<'a>>;
    type Plan = Vec<A::Plan>;
    type Bound<'m> = Vec<A::Bound<'m>>;

    fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan> {
        self.into_iter().map(|access| access.lower(lowering)).collect()
    }

    unsafe fn bind<'m>(plans: Self::Plan, memory: &mut Memories<'_, 'm>) -> Self::Bound<'m> {
        // SAFETY: passed on; each access takes as much of the memory as is its own, in order.
        plans.into_iter().map(|plan| unsafe { A::bind(plan, memory) }).collect()
    }

    fn view<'a>(bound: &'a mut Self::Bound<'_>) -> Self::View<'a> {
        bound.iter_mut().map(A::view).collect()
    }
}

impl<A: HostAccess<K>, const K: usize, const N: usize> HostAccess<K> for [A; N] {
    type View<'a> = [A::View<'a>; N];
    type Plan = [A::Plan; N];
    type Bound<'m> = [A::Bound<'m>; N];

    fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan> {
        each(self, lowering, A::lower)
    }

    unsafe fn bind<'m>(plans: Self::Plan, memory: &mut Memories<'_, 'm>) -> Self::Bound<'m> {
        // SAFETY: passed on; each access takes as much of the memory as is its own, in order.
        plans.map(|plan| unsafe { A::bind(plan, memory) })
    }

    fn view<'a>(bound: &'a mut Self::Bound<'_>) -> Self::View<'a> {
        bound.each_mut().map(A::view)
    }
}

single_host_access!([A] Vec<A>);
single_host_access!([A, const N: usize] [A; N]);

impl<A: CallAccess<K>, const K: usize, const N: usize> CallAccess<K> for [A; N] {
    type View<'a> = [A::View<'a>; N];

    fn lower(self, lowering: &mut Lowering<'_>) -> Result<()> {
        lowering.reserve(N);
        self.into_iter().try_for_each(|access| access.lower(lowering))
    }

    unsafe fn view<'a>(memory: &mut Memories<'_, 'a>, on_host: bool) -> Self::View<'a> {
        // SAFETY: passed on; each access takes its own of the memory, in order.
        std::array::from_fn(|_| unsafe { A::view(memory, on_host) })
    }
}

/// The kernel gets a list of views, in the same order. For each length there is code of its own, in which each element has a name: what is
/// made of a list by a loop, or handed to a function, is in memory: nine directions of a lattice took six times as long.
macro_rules! kernel_list {
    ($len:literal: $($one:ident)*) => {
        impl<A: KernelAccess<K>, const K: usize> KernelAccess<K> for [A; $len] {
            type ItemView<'a> = [A::ItemView<'a>; $len];
            type RowView<'a> = [A::RowView<'a>; $len];
            type Plan = [A::Plan; $len];
            type Bound<'m> = [A::Bound<'m>; $len];
            type Rows<'r> = [A::Rows<'r>; $len];
            type Cursor<'r> = [A::Cursor<'r>; $len];

            const HAS_EDGES: bool = A::HAS_EDGES;

            fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan> {
                each(self, lowering, A::lower)
            }

            unsafe fn bind<'m>(
                plans: &'m Self::Plan,
                memory: &mut Memories<'_, 'm>,
            ) -> Self::Bound<'m> {
                // SAFETY: passed on; each access takes its own of the memory, in order.
                plans.each_ref().map(|plan| unsafe { A::bind(plan, memory) })
            }

            fn interior(bound: &Self::Bound<'_>) -> Range<usize> {
                bound.iter().map(A::interior).fold(0..usize::MAX, |common, interior| {
                    common.start.max(interior.start)..common.end.min(interior.end)
                })
            }

            fn begin_tile(bound: &Self::Bound<'_>, tile: u64, lanes: usize) {
                bound.iter().for_each(|bound| A::begin_tile(bound, tile, lanes));
            }

            fn begin_row(bound: &Self::Bound<'_>, position: usize) {
                bound.iter().for_each(|bound| A::begin_row(bound, position));
            }

            fn end_tile(bound: &Self::Bound<'_>) {
                bound.iter().for_each(A::end_tile);
            }

            #[inline]
            fn joins(bound: &Self::Bound<'_>, rows: &Rows<K>) -> bool {
                bound.iter().all(|bound| A::joins(bound, rows))
            }

            #[inline(always)]
            unsafe fn rows<'r>(bound: &'r Self::Bound<'_>, rows: &Rows<K>) -> Self::Rows<'r> {
                let [$($one),*] = bound;
                // SAFETY: passed on, of each.
                unsafe { [$(A::rows($one, rows)),*] }
            }

            #[inline(always)]
            unsafe fn row<'a>(
                rows: &'a mut Self::Rows<'_>,
                n: usize,
                row: &Row<K>,
            ) -> Self::Cursor<'a> {
                let [$($one),*] = rows;
                // SAFETY: passed on, of each.
                unsafe { [$(A::row($one, n, row)),*] }
            }

            #[inline(always)]
            fn segment<'a>(
                cursor: &'a mut Self::Cursor<'_>,
                start: usize,
                segment: &Row<K>,
            ) -> Self::Cursor<'a> {
                let [$($one),*] = cursor;
                [$(A::segment($one, start, segment)),*]
            }

            #[inline(always)]
            unsafe fn inner(cursor: Self::Cursor<'_>) -> Self::Cursor<'_> {
                let [$($one),*] = cursor;
                // SAFETY: passed on, of each.
                unsafe { [$(A::inner($one)),*] }
            }

            #[inline(always)]
            fn one_by_one(cursor: Self::Cursor<'_>) -> Self::Cursor<'_> {
                let [$($one),*] = cursor;
                [$(A::one_by_one($one)),*]
            }

            #[inline(always)]
            fn row_view(cursor: Self::Cursor<'_>) -> Self::RowView<'_> {
                let [$($one),*] = cursor;
                [$(A::row_view($one)),*]
            }

            #[inline(always)]
            fn item_view<'a>(
                cursor: &'a mut Self::Cursor<'_>,
                row: &Row<K>,
                i: usize,
            ) -> Self::ItemView<'a> {
                let [$($one),*] = cursor;
                [$(A::item_view($one, row, i)),*]
            }
        }
    };
}

/// Calls `kernel_list` for so many names, and for the first ones of them, down to one.
macro_rules! kernel_lists {
    ($($len:literal)* => $($name:ident)*) => {
        kernel_lists!(@ [$($len)*] [] $($name)*);
    };
    (@ [] [$($name:ident)*]) => {};
    (@ [$len:literal $($lens:literal)*] [$($name:ident)*] $next:ident $($rest:ident)*) => {
        kernel_list!($len: $($name)* $next);
        kernel_lists!(@ [$($lens)*] [$($name)* $next] $($rest)*);
    };
}

kernel_lists!(
    1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 =>
    a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16 a17 a18 a19 a20 a21 a22 a23 a24 a25
    a26 a27 a28 a29 a30 a31
);

/// What `lower` makes of each of `accesses`, in order.
fn each<A, P, const N: usize>(
    accesses: [A; N],
    lowering: &mut Lowering<'_>,
    lower: impl Fn(A, &mut Lowering<'_>) -> Result<P>,
) -> Result<[P; N]> {
    lowering.reserve(N);
    let plans: Vec<P> =
        accesses.into_iter().map(|access| lower(access, lowering)).collect::<Result<_>>()?;
    Ok(plans.try_into().unwrap_or_else(|_| unreachable!("there is a plan for each access")))
}
