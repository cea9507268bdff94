//! What kernels combine values into: accumulators per tile, which a launch computes on one thread.
#![allow(unsafe_code)]

use std::cell::{Cell, OnceCell};

use celerity_kernel::{ArrayReducer, Operator, Reducer, Row};

use super::KernelAccess;
use crate::access::memories::{Memories, next};
use crate::access::{Lowering, ReduceAccess, Rows};
use crate::buffer::Element;
use crate::error::Result;
use crate::partials::PartialResults;

/// So many accumulators are combined at a time: vectors take as many at least.
const SIDE_BY_SIDE: usize = 8;

/// The accumulators of a reduction into one value.
pub struct BoundReducer<'m, T, O> {
    partials: PartialResults<'m, T>,
    /// Value `p` of a tile goes to accumulator `p` modulo their number, so that neighbours do not
    /// wait for each other. Made for the first tile.
    lanes: OnceCell<Vec<Cell<T>>>,
    /// Those that the current tile uses: a power of two, but in groups, which have one for each of their items.
    used: Cell<usize>,
    /// The first that the next row uses.
    next: Cell<usize>,
    target: Cell<*mut T>,
    operator: O,
}

// SAFETY: a launch with reductions uses what it has bound on one thread (`KernelSpec::run_tiles`);
// values and operators can be shared and sent, and the partial results of its tiles are this
// thread's alone.
unsafe impl<T: Element, O: Operator<T>> Sync for BoundReducer<'_, T, O> {}

impl<T: Element, O: Operator<T>> BoundReducer<'_, T, O> {
    fn begin(&self, tile: u64, lanes: usize) {
        let used = if O::IS_COMMUTATIVE { lanes } else { 1 };
        self.used.set(used);
        let identity = self.operator.identity();
        let lanes = self.lanes.get_or_init(|| vec![Cell::new(identity); used]);
        lanes[..used].iter().for_each(|lane| lane.set(identity));
        self.target.set(self.partials.of(tile));
    }

    /// The accumulators of the current tile.
    #[inline]
    fn lanes(&self) -> &[Cell<T>] {
        self.lanes.get().map_or(&[], |lanes| &lanes[..self.used.get()])
    }

    /// Halves the accumulators until one is left: as the threads of a GPU's block would.
    fn end(&self) {
        let mut lanes = self.lanes();
        while lanes.len() > 1 {
            let (earlier, later) = lanes.split_at(lanes.len().next_power_of_two() / 2);
            self.combine_each(earlier, later);
            lanes = earlier;
        }
        // SAFETY: a partial result of this chunk, which nobody else touches: see `BoundMemory`, and
        // no other thread has its tile.
        unsafe { self.target.get().write(lanes[0].get()) };
    }

    /// Combines each of `later` into the one at its place in `earlier`, which may be more.
    fn combine_each(&self, earlier: &[Cell<T>], later: &[Cell<T>]) {
        let (some, rest) = later.as_chunks::<SIDE_BY_SIDE>();
        let (into, rest_into) = earlier.split_at(later.len() - rest.len());
        for (into, some) in into.as_chunks::<SIDE_BY_SIDE>().0.iter().zip(some) {
            // All are read before any is written, for all that a compiler knows of cells.
            let combined: [T; SIDE_BY_SIDE] =
                std::array::from_fn(|i| self.operator.combine(into[i].get(), some[i].get()));
            into.iter().zip(combined).for_each(|(into, value)| into.set(value));
        }
        for (into, later) in rest_into.iter().zip(rest) {
            into.set(self.operator.combine(into.get(), later.get()));
        }
    }
}

/// The accumulators of the items from one on.
#[derive(Clone, Copy)]
pub struct RemainingAccumulators<'r, T, O> {
    lanes: &'r [Cell<T>],
    operator: O,
}

impl<T: Element, O: Operator<T>, const K: usize> KernelAccess<K> for ReduceAccess<T, 0, O> {
    type ItemView<'a> = Reducer<'a, T, O>;
    type RowView<'a> = Reducer<'a, T, O>;
    type Plan = O;
    type Bound<'m> = BoundReducer<'m, T, O>;
    type Rows<'r> = RemainingAccumulators<'r, T, O>;
    type Cursor<'r> = RemainingAccumulators<'r, T, O>;

    fn lower(self, lowering: &mut Lowering<'_>) -> Result<O> {
        lowering.push_reduction(&self)?;
        Ok(self.operator)
    }

    unsafe fn bind<'m>(operator: &'m O, memory: &mut Memories<'_, 'm>) -> Self::Bound<'m> {
        BoundReducer {
            // SAFETY: passed on; `push_reduction` has made the buffer.
            partials: unsafe { PartialResults::new(next(memory), 1) },
            lanes: OnceCell::new(),
            used: Cell::new(1),
            next: Cell::new(0),
            target: Cell::new(std::ptr::null_mut()),
            operator: *operator,
        }
    }

    fn begin_tile(bound: &Self::Bound<'_>, tile: u64, lanes: usize) {
        bound.begin(tile, lanes);
    }

    fn begin_row(bound: &Self::Bound<'_>, position: usize) {
        // An item of a group is at its own accumulator, however many there are.
        bound.next.set(position & (bound.used.get().next_power_of_two() - 1));
    }

    fn end_tile(bound: &Self::Bound<'_>) {
        bound.end();
    }

    /// From those on that the first row was told of: there are as many as items, or one for all.
    #[inline]
    unsafe fn rows<'r>(bound: &'r Self::Bound<'_>, _rows: &Rows<K>) -> Self::Rows<'r> {
        RemainingAccumulators {
            lanes: &bound.lanes()[bound.next.get()..],
            operator: bound.operator,
        }
    }

    #[inline]
    unsafe fn row<'a>(rows: &'a mut Self::Rows<'_>, n: usize, row: &Row<K>) -> Self::Cursor<'a> {
        let lanes = match rows.lanes.len() {
            1 => rows.lanes,
            _ => &rows.lanes[n * row.len()..],
        };
        RemainingAccumulators { lanes, operator: rows.operator }
    }

    #[inline]
    fn segment<'a>(
        cursor: &'a mut Self::Cursor<'_>,
        start: usize,
        segment: &Row<K>,
    ) -> Self::Cursor<'a> {
        let lanes = match cursor.lanes.len() {
            1 => cursor.lanes,
            _ => &cursor.lanes[start..start + segment.len()],
        };
        RemainingAccumulators { lanes, operator: cursor.operator }
    }

    #[inline]
    fn row_view(cursor: Self::Cursor<'_>) -> Self::RowView<'_> {
        Reducer::new(&cursor.lanes[0], cursor.operator)
    }

    #[inline]
    fn item_view<'a>(
        cursor: &'a mut Self::Cursor<'_>,
        _row: &Row<K>,
        i: usize,
    ) -> Self::ItemView<'a> {
        let lane = if O::IS_COMMUTATIVE { i } else { 0 };
        Reducer::new(&cursor.lanes[lane], cursor.operator)
    }
}

/// The accumulators of a reduction into many elements: the partial result itself, which gets its
/// values in the order of items.
pub struct BoundArrayReducer<'m, T, O, const D: usize> {
    partials: PartialResults<'m, T>,
    range: [usize; D],
    target: Cell<*mut T>,
    operator: O,
}

// SAFETY: as for `BoundReducer`.
unsafe impl<T: Element, O: Operator<T>, const D: usize> Sync for BoundArrayReducer<'_, T, O, D> {}

impl<T: Element, O: Operator<T>, const D: usize> BoundArrayReducer<'_, T, O, D> {
    fn accumulators(&self) -> &[Cell<T>] {
        // SAFETY: a partial result of this chunk, which nobody else touches: see `BoundMemory`, and
        // no other thread has its tile. `Cell<T>` has the layout of `T`.
        unsafe { std::slice::from_raw_parts(self.target.get().cast(), self.partials.elements()) }
    }
}

macro_rules! arrays {
    ($($d:literal)*) => {$(
        impl<T: Element, O: Operator<T>, const K: usize> KernelAccess<K>
            for ReduceAccess<T, $d, O>
        {
            type ItemView<'a> = ArrayReducer<'a, T, O, $d>;
            type RowView<'a> = ArrayReducer<'a, T, O, $d>;
            type Plan = (O, [usize; $d]);
            type Bound<'m> = BoundArrayReducer<'m, T, O, $d>;
            type Rows<'r> = ArrayReducer<'r, T, O, $d>;
            type Cursor<'r> = ArrayReducer<'r, T, O, $d>;

            fn lower(self, lowering: &mut Lowering<'_>) -> Result<Self::Plan> {
                lowering.push_reduction(&self)?;
                Ok((self.operator, self.buffer.range()))
            }

            unsafe fn bind<'m>(
                (operator, range): &'m Self::Plan,
                memory: &mut Memories<'_, 'm>,
            ) -> Self::Bound<'m> {
                BoundArrayReducer {
                    // SAFETY: passed on; `push_reduction` has made the buffer.
                    partials: unsafe { PartialResults::new(next(memory), range.iter().product()) },
                    range: *range,
                    target: Cell::new(std::ptr::null_mut()),
                    operator: *operator,
                }
            }

            fn begin_tile(bound: &Self::Bound<'_>, tile: u64, _lanes: usize) {
                bound.target.set(bound.partials.of(tile));
                let identity = bound.operator.identity();
                bound.accumulators().iter().for_each(|element| element.set(identity));
            }

            #[inline]
            unsafe fn rows<'r>(bound: &'r Self::Bound<'_>, _rows: &Rows<K>) -> Self::Rows<'r> {
                ArrayReducer::new(bound.accumulators(), bound.range, bound.operator)
            }

            copied_view!(K);
        }
    )*};
}

arrays!(1 2 3);
