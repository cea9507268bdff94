//! Accesses that go by the item's own index: the element itself, and what is
//! around it.
#![allow(unsafe_code)]

use std::ops::Range;

use celerity_kernel::{NeighborhoodItem, NeighborhoodRow, PeriodicItem, PeriodicRow, Reach, Row};

use super::KernelAccess;
use crate::access::memories::{Memories, next};
use crate::access::{AccessedElements, Lowering, ReadAccess, Rows, WriteAccess};
use crate::buffer::Element;
use crate::error::Result;
use crate::mapper::{Neighborhood, OneToOne, Periodic, Shifted};

#[doc(hidden)]
pub struct OwnElements<'m, T, M, const N: usize> {
    elements: AccessedElements<'m, T, N>,
    mapper: M,
}

/// One element for each item, in an order that is that of items: to read, or, as `mut` says, to write.
macro_rules! own_element {
    ($access:ident, $run:ident $(, $mut:tt)?; $mapper:ty) => {
        impl<T: Element, const N: usize> KernelAccess<N> for $access<T, N, $mapper> {
            type ItemView<'a> = &'a $($mut)? T;
            type RowView<'a> = &'a $($mut)? [T];
            type Plan = $mapper;
            type Bound<'m> = OwnElements<'m, T, $mapper, N>;
            type Rows<'r> = &'r $($mut)? [T];
            type Cursor<'r> = &'r $($mut)? [T];

            fn lower(self, lowering: &mut Lowering<'_>) -> Result<$mapper> {
                let mapper = self.mapper;
                self.lower_to::<N>(lowering)?;
                Ok(mapper)
            }

            unsafe fn bind<'m>(
                mapper: &'m $mapper,
                memory: &mut Memories<'_, 'm>,
            ) -> Self::Bound<'m> {
                // SAFETY: passed on.
                let elements = unsafe { AccessedElements::new(next(memory)) };
                OwnElements { elements, mapper: *mapper }
            }

            #[inline]
            fn joins(bound: &Self::Bound<'_>, rows: &Rows<N>) -> bool {
                bound.elements.are_side_by_side(rows)
            }

            #[inline]
            unsafe fn rows<'r>(bound: &'r Self::Bound<'_>, rows: &Rows<N>) -> Self::Rows<'r> {
                let (first, len) = (rows.first().start(), rows.count() * rows.first().len());
                // SAFETY: each item has an element of its own, or its task would have been refused, and so `bind`'s memory
                // holds those of the chunk's items, those of several rows side by side. Nobody writes what is bound to a
                // read, and nobody else touches what is bound to a write, not through another access of the task either: see
                // `BoundMemory`. Live rows share no items.
                unsafe { bound.elements.$run(bound.mapper.element_of(first), len) }
            }

            #[inline]
            unsafe fn row<'a>(
                rows: &'a mut Self::Rows<'_>,
                n: usize,
                row: &Row<N>,
            ) -> Self::Cursor<'a> {
                &$($mut)? rows[n * row.len()..][..row.len()]
            }

            #[inline]
            fn segment<'a>(
                cursor: &'a mut Self::Cursor<'_>,
                start: usize,
                segment: &Row<N>,
            ) -> Self::Cursor<'a> {
                &$($mut)? cursor[start..][..segment.len()]
            }

            #[inline]
            fn row_view(cursor: Self::Cursor<'_>) -> Self::RowView<'_> {
                cursor
            }

            #[inline]
            fn item_view<'a>(
                cursor: &'a mut Self::Cursor<'_>,
                _: &Row<N>,
                i: usize,
            ) -> Self::ItemView<'a> {
                &$($mut)? cursor[i]
            }
        }
    };
}

own_element!(ReadAccess, run; OneToOne);
own_element!(ReadAccess, run; Shifted<N>);
own_element!(WriteAccess, run_mut, mut; OneToOne);
own_element!(WriteAccess, run_mut, mut; Shifted<N>);

/// A neighbourhood access without its buffer handle.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct NeighborhoodPlan<const N: usize> {
    reach: Reach<N>,
    /// The buffer's size.
    range: [usize; N],
}

#[doc(hidden)]
pub struct BoundNeighborhood<'m, T, const N: usize> {
    plan: NeighborhoodPlan<N>,
    elements: AccessedElements<'m, T, N>,
}

impl<T: Element, const N: usize> KernelAccess<N> for ReadAccess<T, N, Neighborhood<N>> {
    type ItemView<'a> = NeighborhoodItem<'a, T, N>;
    type RowView<'a> = NeighborhoodRow<'a, T, N>;
    type Plan = NeighborhoodPlan<N>;
    type Bound<'m> = BoundNeighborhood<'m, T, N>;
    type Rows<'r> = NeighborhoodRow<'r, T, N>;
    type Cursor<'r> = NeighborhoodRow<'r, T, N>;

    const HAS_EDGES: bool = true;

    fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan> {
        let plan = NeighborhoodPlan { reach: self.mapper.reach(), range: self.buffer.range() };
        self.lower_to::<N>(lowering)?;
        Ok(plan)
    }

    unsafe fn bind<'m>(plan: &'m Self::Plan, memory: &mut Memories<'_, 'm>) -> Self::Bound<'m> {
        // SAFETY: passed on.
        BoundNeighborhood { plan: *plan, elements: unsafe { AccessedElements::new(next(memory)) } }
    }

    fn interior(bound: &Self::Bound<'_>) -> Range<usize> {
        interior(&bound.plan.reach, &bound.plan.range)
    }

    #[inline]
    unsafe fn rows<'r>(bound: &'r Self::Bound<'_>, rows: &Rows<N>) -> Self::Rows<'r> {
        let NeighborhoodPlan { reach, range } = &bound.plan;
        // SAFETY: `bind`'s memory holds the surroundings of the whole chunk, and
        // nobody writes what is bound to a read: see `BoundMemory`.
        unsafe { bound.elements.neighborhood(reach, *range, rows) }
    }

    #[inline]
    unsafe fn inner(cursor: Self::Cursor<'_>) -> Self::Cursor<'_> {
        // SAFETY: nothing within reach of the interior leaves the buffer along a row.
        unsafe { cursor.inside_rows() }
    }

    cut_view!(N);
}

/// A periodic neighbourhood access without its buffer handle.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct PeriodicPlan<const N: usize> {
    /// And the dimensions along which edges meet.
    reach: (Reach<N>, [bool; N]),
    /// The buffer's size.
    range: [usize; N],
}

#[doc(hidden)]
pub struct BoundPeriodic<'m, T, const N: usize> {
    plan: PeriodicPlan<N>,
    elements: AccessedElements<'m, T, N>,
}

impl<T: Element, const N: usize> KernelAccess<N> for ReadAccess<T, N, Periodic<N>> {
    type ItemView<'a> = PeriodicItem<'a, T, N>;
    type RowView<'a> = PeriodicRow<'a, T, N>;
    type Plan = PeriodicPlan<N>;
    type Bound<'m> = BoundPeriodic<'m, T, N>;
    type Rows<'r> = PeriodicRow<'r, T, N>;
    type Cursor<'r> = PeriodicRow<'r, T, N>;

    const HAS_EDGES: bool = true;

    fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan> {
        let plan = PeriodicPlan { reach: self.mapper.reach(), range: self.buffer.range() };
        self.lower_to::<N>(lowering)?;
        Ok(plan)
    }

    unsafe fn bind<'m>(plan: &'m Self::Plan, memory: &mut Memories<'_, 'm>) -> Self::Bound<'m> {
        // SAFETY: passed on.
        BoundPeriodic { plan: *plan, elements: unsafe { AccessedElements::new(next(memory)) } }
    }

    fn interior(bound: &Self::Bound<'_>) -> Range<usize> {
        interior(&bound.plan.reach.0, &bound.plan.range)
    }

    #[inline]
    unsafe fn rows<'r>(bound: &'r Self::Bound<'_>, rows: &Rows<N>) -> Self::Rows<'r> {
        let PeriodicPlan { reach, range } = &bound.plan;
        // SAFETY: `bind`'s memory holds the surroundings of the whole chunk, those at the opposite
        // edges among them, in one allocation, and nobody writes what is bound to a read: see
        // `BoundMemory`.
        unsafe { bound.elements.periodic(reach, *range, rows) }
    }

    #[inline]
    unsafe fn inner(cursor: Self::Cursor<'_>) -> Self::Cursor<'_> {
        // SAFETY: nothing within reach of the interior leaves the buffer along a row.
        unsafe { cursor.inside_rows() }
    }

    cut_view!(N);
}

/// The items, along the fastest dimension, from which `reach` stays inside of a buffer of `range`.
fn interior<const N: usize>(reach: &Reach<N>, range: &[usize; N]) -> Range<usize> {
    let (Some(border), Some(size)) = (reach.border().last().copied(), range.last().copied()) else {
        return 0..usize::MAX;
    };
    border..size.saturating_sub(border)
}
