//! Accesses to parts that are no function of one index: whole buffers, fixed
//! parts, slices and what user mappers name.
#![allow(unsafe_code)]

use std::ops::Range;

use celerity_kernel::{Bounds, PartView, PartViewMut, Row, WholeView};
use celerity_regions::Subrange;

use super::KernelAccess;
use super::steps::EvenSteps;
use crate::access::memories::{Memories, next};
use crate::access::{AccessedElements, Lowering, ReadAccess, Rows, WriteAccess};
use crate::buffer::Element;
use crate::error::Result;
use crate::mapper::{
    All, BoxAround, CustomMapper, DisjointMapper, Fixed, Gapped, ItemMapper, PerDimension,
    RegionMapper, Slice,
};

impl<T: Element, const K: usize, const D: usize> KernelAccess<K> for ReadAccess<T, D, All> {
    type ItemView<'a> = WholeView<'a, T, D>;
    type RowView<'a> = WholeView<'a, T, D>;
    type Plan = [usize; D];
    type Bound<'m> = WholeView<'m, T, D>;
    type Rows<'r> = &'r WholeView<'r, T, D>;
    type Cursor<'r> = &'r WholeView<'r, T, D>;

    fn lower(self, lowering: &mut Lowering<'_>) -> Result<[usize; D]> {
        let range = self.buffer.range();
        self.lower_to::<K>(lowering)?;
        Ok(range)
    }

    unsafe fn bind<'m>(range: &'m [usize; D], memory: &mut Memories<'_, 'm>) -> Self::Bound<'m> {
        // SAFETY: passed on; nobody writes what is bound to a read, not through another access
        // of the task either: see `BoundMemory`.
        unsafe { AccessedElements::new(next(memory)).whole(*range) }
    }

    #[inline]
    unsafe fn rows<'r>(bound: &'r Self::Bound<'_>, _rows: &Rows<K>) -> Self::Rows<'r> {
        bound
    }

    shared_view!(K);
}

/// Reads through the remaining mappers all look alike: the declared part.
macro_rules! read_part {
    ([$($generics:tt)*] $mapper:ty, $k:ident, $d:ident) => {
        read_part!([$($generics)*] $mapper, $k, $d, part);
    };
    ([$($generics:tt)*] $mapper:ty, $k:ident, $d:ident, $part:ident) => {
        impl<T: Element, $($generics)*> KernelAccess<$k> for ReadAccess<T, $d, $mapper> {
            type ItemView<'a> = PartView<'a, T, $d>;
            type RowView<'a> = PartView<'a, T, $d>;
            type Plan = ();
            type Bound<'m> = PartView<'m, T, $d>;
            type Rows<'r> = &'r PartView<'r, T, $d>;
            type Cursor<'r> = &'r PartView<'r, T, $d>;

            fn lower(self, lowering: &mut Lowering<'_>) -> Result<()> {
                self.lower_to::<$k>(lowering)
            }

            unsafe fn bind<'m>((): &'m (), memory: &mut Memories<'_, 'm>) -> Self::Bound<'m> {
                // SAFETY: passed on; nobody writes what is bound to a read, not through another
                // access of the task either: see `BoundMemory`.
                unsafe { AccessedElements::new(next(memory)).$part() }
            }

            #[inline]
            unsafe fn rows<'r>(bound: &'r Self::Bound<'_>, _rows: &Rows<$k>) -> Self::Rows<'r> {
                bound
            }

            shared_view!($k);
        }
    };
}

read_part!([const N: usize] Slice, N, N);
read_part!([const K: usize, const D: usize] Fixed<D>, K, D);
read_part!([const K: usize, const D: usize] PerDimension<D>, K, D);
read_part!([const K: usize, const D: usize] CustomMapper<K, D>, K, D);
read_part!([const K: usize, const D: usize] DisjointMapper<K, D>, K, D);
// That nothing but what was declared is read is the promise of who makes one.
read_part!([const K: usize, const D: usize] BoxAround<RegionMapper<K, D>>, K, D, around);
read_part!([const K: usize, const D: usize] BoxAround<Gapped<D>>, K, D, around);

/// A write through a mapper that gives each item a part of its own.
#[doc(hidden)]
#[derive(Debug)]
pub struct OwnPartPlan<M, const D: usize> {
    mapper: M,
    /// The buffer's size.
    range: [usize; D],
    /// Where the index space begins.
    offset: [usize; 3],
}

#[doc(hidden)]
pub struct OwnParts<'m, T, M, const D: usize> {
    plan: &'m OwnPartPlan<M, D>,
    elements: AccessedElements<'m, T, D>,
}

/// A row, whose items each have a part of their own.
#[doc(hidden)]
pub struct OwnRow<'r, T, M, const K: usize, const D: usize> {
    plan: &'r OwnPartPlan<M, D>,
    elements: &'r AccessedElements<'r, T, D>,
    row: Row<K>,
    /// What belongs to each, if that is known to move on evenly from item to item.
    steps: Option<EvenSteps<D>>,
    /// Whether it is known that what belongs to its items was declared.
    is_declared: bool,
}

impl<'r, T: Element, M: ItemMapper<K, D>, const K: usize, const D: usize> OwnRow<'r, T, M, K, D> {
    /// What belongs to the `i`-th.
    #[inline(always)]
    #[allow(clippy::inline_always)] // Of kernels that do little for each item, a call is most.
    fn item(&self, i: usize) -> Bounds<D> {
        match &self.steps {
            Some(steps) => steps.part(i),
            None => self.plan.row(&self.row.segment(i, 1)),
        }
    }

    /// The elements of `part`, which belongs to items of the row.
    ///
    /// # Safety
    /// No other part of these items is there while the result is.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    unsafe fn part_mut(&self, part: Bounds<D>) -> PartViewMut<'r, T, D> {
        if !self.is_declared {
            self.elements.check_declared(&part);
        }
        debug_assert!(self.elements.is_declared(&part), "{part:?} belongs to items of the chunk");
        // SAFETY: it was declared; live rows share no items, nor do parts of this one, the mapper promises that
        // then their parts share no elements, and nobody else touches what is bound to a write:
        // see `BoundMemory`.
        unsafe { self.elements.part_mut(part) }
    }
}

impl<M, const D: usize> OwnPartPlan<M, D> {
    #[inline]
    fn part<const K: usize>(&self, items: Bounds<K>, global: [usize; K]) -> Bounds<D>
    where
        M: ItemMapper<K, D>,
    {
        let offset = std::array::from_fn(|dim| self.offset[dim]);
        let global = Subrange { offset, range: global };
        self.mapper.part(items, global, self.range)
    }

    /// What belongs to all items of a row.
    #[inline]
    fn row<const K: usize>(&self, row: &Row<K>) -> Bounds<D>
    where
        M: ItemMapper<K, D>,
    {
        self.part(Rows::single(*row).bounds(), row.range())
    }
}

impl<'m, T: Element, M, const D: usize> OwnParts<'m, T, M, D> {
    /// All of `rows`, whose chunk [`bind`](KernelAccess::bind) was promised that the memory is for. Where what belongs to
    /// them together has in it what belongs to each item, that is looked up once; where windows have gaps between them,
    /// it would have to be looked up for each item, among all windows.
    #[inline]
    fn rows<const K: usize>(&self, rows: &Rows<K>) -> OwnRow<'_, T, M, K, D>
    where
        M: ItemMapper<K, D>,
    {
        let (Self { plan, elements }, row) = (self, *rows.first());
        let is_declared = plan.mapper.is_additive()
            || plan.mapper.is_monotone()
                && elements.is_declared(&plan.part(rows.bounds(), row.range()));
        OwnRow { plan, elements, row, steps: None, is_declared }
    }
}

/// As [`read_part`], for the mappers that items may write through.
macro_rules! write_part {
    ([$($generics:tt)*] $mapper:ty, $k:ident, $d:ident) => {
        impl<T: Element, $($generics)*> KernelAccess<$k> for WriteAccess<T, $d, $mapper> {
            type ItemView<'a> = PartViewMut<'a, T, $d>;
            type RowView<'a> = PartViewMut<'a, T, $d>;
            type Plan = OwnPartPlan<$mapper, $d>;
            type Bound<'m> = OwnParts<'m, T, $mapper, $d>;
            type Rows<'r> = OwnRow<'r, T, $mapper, $k, $d>;
            type Cursor<'r> = OwnRow<'r, T, $mapper, $k, $d>;

            fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan> {
                let (mapper, range) = (self.mapper.clone(), self.buffer.range());
                let plan = OwnPartPlan { mapper, range, offset: lowering.offset() };
                self.lower_to::<$k>(lowering)?;
                Ok(plan)
            }

            unsafe fn bind<'m>(plan: &'m Self::Plan, memory: &mut Memories<'_, 'm>) -> Self::Bound<'m> {
                // SAFETY: passed on.
                let elements = unsafe { AccessedElements::new(next(memory)) };
                OwnParts { plan, elements }
            }

            fn interior(bound: &Self::Bound<'_>) -> Range<usize> {
                let joins = ItemMapper::<$k, $d>::joins_items_along;
                match joins(&bound.plan.mapper, $k.saturating_sub(1)) {
                    true => 0..usize::MAX,
                    false => 0..0,
                }
            }

            #[inline]
            unsafe fn rows<'r>(bound: &'r Self::Bound<'_>, rows: &Rows<$k>) -> Self::Rows<'r> {
                bound.rows(rows)
            }

            #[inline]
            unsafe fn row<'a>(rows: &'a mut Self::Rows<'_>, _n: usize, row: &Row<$k>) -> Self::Cursor<'a> {
                OwnRow { row: *row, ..*rows }
            }

            #[inline]
            fn segment<'a>(
                cursor: &'a mut Self::Cursor<'_>,
                _start: usize,
                segment: &Row<$k>,
            ) -> Self::Cursor<'a> {
                OwnRow { row: *segment, ..*cursor }
            }

            #[inline(always)]
            #[allow(clippy::inline_always)]
            fn one_by_one(cursor: Self::Cursor<'_>) -> Self::Cursor<'_> {
                let OwnRow { plan, elements, row, is_declared, .. } = cursor;
                let linear = ItemMapper::<$k, $d>::is_linear(&plan.mapper);
                let part = |i: usize| plan.row(&row.segment(i, 1));
                let steps = linear.then(|| EvenSteps::of(row.len(), part)).flatten();
                OwnRow { plan, elements, row, steps, is_declared }
            }

            #[inline]
            fn row_view(cursor: Self::Cursor<'_>) -> Self::RowView<'_> {
                // SAFETY: the cursor, which alone has these items, ends here.
                unsafe { cursor.part_mut(cursor.plan.row(&cursor.row)) }
            }

            #[inline(always)]
            #[allow(clippy::inline_always)]
            fn item_view<'a>(
                cursor: &'a mut Self::Cursor<'_>,
                _row: &Row<$k>,
                i: usize,
            ) -> Self::ItemView<'a> {
                // SAFETY: the cursor, which alone has the item, is borrowed as long.
                unsafe { cursor.part_mut(cursor.item(i)) }
            }
        }
    };
}

write_part!([const N: usize] Slice, N, N);
write_part!([const K: usize, const D: usize] PerDimension<D>, K, D);
write_part!([const K: usize, const D: usize] Gapped<D>, K, D);
write_part!([const K: usize, const D: usize] DisjointMapper<K, D>, K, D);
