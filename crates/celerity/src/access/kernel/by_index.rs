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

/// Where an item's own element is, for mappers with one for each.
trait Own<P> {
    fn place(&self) -> P;
}

impl Own<AtIndex> for OneToOne {
    fn place(&self) -> AtIndex {
        AtIndex
    }
}

impl<const N: usize> Own<Beside<N>> for Shifted<N> {
    fn place(&self) -> Beside<N> {
        Beside(self.by())
    }
}

/// At its index.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct AtIndex;

impl AtIndex {
    #[inline]
    const fn of<const N: usize>(self, index: [usize; N]) -> [usize; N] {
        index
    }
}

/// So far from there. Where that leaves the buffer, at the front as at the end, the task graph refuses the task
/// ([`MapperFlaw::BeforeBuffer`](crate::MapperFlaw), [`DeclareError::OutOfBounds`](crate::DeclareError)).
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Beside<const N: usize>([isize; N]);

impl<const N: usize> Beside<N> {
    #[inline]
    fn of(self, index: [usize; N]) -> [usize; N] {
        std::array::from_fn(|dim| index[dim].wrapping_add_signed(self.0[dim]))
    }
}

#[doc(hidden)]
pub struct OwnElements<'m, T, P, const N: usize> {
    elements: AccessedElements<'m, T, N>,
    place: P,
}

/// One element for each item, in an order that is that of items.
macro_rules! own_element {
    ($mapper:ty, $place:ty) => {
        impl<T: Element, const N: usize> KernelAccess<N> for ReadAccess<T, N, $mapper> {
            type ItemView<'a> = &'a T;
            type RowView<'a> = &'a [T];
            type Plan = $place;
            type Bound<'m> = OwnElements<'m, T, $place, N>;
            type Rows<'r> = &'r [T];
            type Cursor<'r> = &'r [T];

            fn lower(self, lowering: &mut Lowering<'_>) -> Result<$place> {
                let place = Own::place(&self.mapper);
                self.lower_to::<N>(lowering)?;
                Ok(place)
            }

            unsafe fn bind<'m>(
                place: &'m $place,
                memory: &mut Memories<'_, 'm>,
            ) -> Self::Bound<'m> {
                // SAFETY: passed on.
                let elements = unsafe { AccessedElements::new(next(memory)) };
                OwnElements { elements, place: *place }
            }

            #[inline]
            fn joins(bound: &Self::Bound<'_>, rows: &Rows<N>) -> bool {
                bound.elements.are_side_by_side(rows)
            }

            #[inline]
            unsafe fn rows<'r>(bound: &'r Self::Bound<'_>, rows: &Rows<N>) -> &'r [T] {
                // SAFETY: each item has an element, or its task would have been refused, and so `bind`'s memory holds those of
                // the chunk's items, those of several rows side by side; nobody
                // writes what is bound to a read, not through another access of the task either: see `BoundMemory`.
                unsafe {
                    bound.elements.run(
                        bound.place.of(rows.first().start()),
                        rows.count() * rows.first().len(),
                    )
                }
            }

            #[inline]
            unsafe fn row<'a>(
                rows: &'a mut Self::Rows<'_>,
                n: usize,
                row: &Row<N>,
            ) -> Self::Cursor<'a> {
                &rows[n * row.len()..][..row.len()]
            }

            #[inline]
            fn segment<'a>(
                cursor: &'a mut Self::Cursor<'_>,
                start: usize,
                segment: &Row<N>,
            ) -> Self::Cursor<'a> {
                &cursor[start..][..segment.len()]
            }

            #[inline]
            fn row_view(cursor: Self::Cursor<'_>) -> Self::RowView<'_> {
                cursor
            }

            #[inline]
            fn item_view<'a>(cursor: &'a mut Self::Cursor<'_>, _: &Row<N>, i: usize) -> &'a T {
                &cursor[i]
            }
        }

        impl<T: Element, const N: usize> KernelAccess<N> for WriteAccess<T, N, $mapper> {
            type ItemView<'a> = &'a mut T;
            type RowView<'a> = &'a mut [T];
            type Plan = $place;
            type Bound<'m> = OwnElements<'m, T, $place, N>;
            type Rows<'r> = &'r mut [T];
            type Cursor<'r> = &'r mut [T];

            fn lower(self, lowering: &mut Lowering<'_>) -> Result<$place> {
                let place = Own::place(&self.mapper);
                self.lower_to::<N>(lowering)?;
                Ok(place)
            }

            unsafe fn bind<'m>(
                place: &'m $place,
                memory: &mut Memories<'_, 'm>,
            ) -> Self::Bound<'m> {
                // SAFETY: passed on.
                let elements = unsafe { AccessedElements::new(next(memory)) };
                OwnElements { elements, place: *place }
            }

            #[inline]
            fn joins(bound: &Self::Bound<'_>, rows: &Rows<N>) -> bool {
                bound.elements.are_side_by_side(rows)
            }

            #[inline]
            unsafe fn rows<'r>(bound: &'r Self::Bound<'_>, rows: &Rows<N>) -> &'r mut [T] {
                // SAFETY: each item has an element of its own, or its task would have been refused, and so `bind`'s memory
                // holds those of the chunk's items, those of several rows side by side; live rows
                // share no items, and nobody else touches what is bound to a write: see `BoundMemory`.
                unsafe {
                    bound.elements.run_mut(
                        bound.place.of(rows.first().start()),
                        rows.count() * rows.first().len(),
                    )
                }
            }

            #[inline]
            unsafe fn row<'a>(
                rows: &'a mut Self::Rows<'_>,
                n: usize,
                row: &Row<N>,
            ) -> Self::Cursor<'a> {
                &mut rows[n * row.len()..][..row.len()]
            }

            #[inline]
            fn segment<'a>(
                cursor: &'a mut Self::Cursor<'_>,
                start: usize,
                segment: &Row<N>,
            ) -> Self::Cursor<'a> {
                &mut cursor[start..][..segment.len()]
            }

            #[inline]
            fn row_view(cursor: Self::Cursor<'_>) -> Self::RowView<'_> {
                cursor
            }

            #[inline]
            fn item_view<'a>(cursor: &'a mut Self::Cursor<'_>, _: &Row<N>, i: usize) -> &'a mut T {
                &mut cursor[i]
            }
        }
    };
}

own_element!(OneToOne, AtIndex);
own_element!(Shifted<N>, Beside<N>);

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
