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

/// The kernel gets a list of views, in the same order.
impl<A: KernelAccess<K>, const K: usize, const N: usize> KernelAccess<K> for [A; N] {
    type ItemView<'a> = [A::ItemView<'a>; N];
    type RowView<'a> = [A::RowView<'a>; N];
    type Plan = [A::Plan; N];
    type Bound<'m> = [A::Bound<'m>; N];
    type Rows<'r> = [A::Rows<'r>; N];
    type Cursor<'r> = [A::Cursor<'r>; N];

    const HAS_EDGES: bool = A::HAS_EDGES;

    fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan> {
        each(self, lowering, A::lower)
    }

    unsafe fn bind<'m>(plans: &'m Self::Plan, memory: &mut Memories<'_, 'm>) -> Self::Bound<'m> {
        // SAFETY: passed on; each access takes as much of the memory as is its own, in order.
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

    #[inline]
    unsafe fn rows<'r>(bound: &'r Self::Bound<'_>, rows: &Rows<K>) -> Self::Rows<'r> {
        // SAFETY: passed on, of each.
        bound.each_ref().map(|bound| unsafe { A::rows(bound, rows) })
    }

    #[inline]
    unsafe fn row<'a>(rows: &'a mut Self::Rows<'_>, n: usize, row: &Row<K>) -> Self::Cursor<'a> {
        // SAFETY: passed on, of each.
        rows.each_mut().map(|rows| unsafe { A::row(rows, n, row) })
    }

    #[inline]
    fn segment<'a>(
        cursor: &'a mut Self::Cursor<'_>,
        start: usize,
        segment: &Row<K>,
    ) -> Self::Cursor<'a> {
        cursor.each_mut().map(|cursor| A::segment(cursor, start, segment))
    }

    #[inline]
    unsafe fn inner(cursor: Self::Cursor<'_>) -> Self::Cursor<'_> {
        // SAFETY: passed on, of each.
        cursor.map(|cursor| unsafe { A::inner(cursor) })
    }

    #[inline]
    fn one_by_one(cursor: Self::Cursor<'_>) -> Self::Cursor<'_> {
        cursor.map(A::one_by_one)
    }

    #[inline]
    fn row_view(cursor: Self::Cursor<'_>) -> Self::RowView<'_> {
        cursor.map(A::row_view)
    }

    #[inline]
    fn item_view<'a>(
        cursor: &'a mut Self::Cursor<'_>,
        row: &Row<K>,
        i: usize,
    ) -> Self::ItemView<'a> {
        cursor.each_mut().map(|cursor| A::item_view(cursor, row, i))
    }
}

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
