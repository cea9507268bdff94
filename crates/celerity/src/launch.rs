//! Kernels as the executor runs them: all items of a chunk, spread over the
//! process's thread pool.
//!
//! A chunk is halved along its slowest dimension, and once single rows are left,
//! along the row, until the pieces are small or there are several for each
//! thread; each piece then runs row by row. Knows nothing of queues and buffers.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;

use celerity_executor::{BoundMemory, DeviceKernel};
use celerity_kernel::{Bounds, Item, Row};
use celerity_regions::{Box3, Subrange};
use celerity_tdag::{Mapper, MapperInput, Tiling};

use crate::access::{KernelAccesses, rows_of, segment};
use crate::item_context;
use crate::range::{bounds, to_box};
use tiles::TileTraversal;

mod bulk;
mod call;
mod compiled;
mod fibers;
mod groups;
mod overflow;
mod tiles;

pub(crate) use bulk::{Bulk, BulkKernel};
pub(crate) use call::CallKernel;
pub(crate) use compiled::CompiledKernel;
pub(crate) use groups::GroupKernel;

/// Pieces per thread: enough to balance uneven items and busy threads.
const PIECES_PER_THREAD: usize = 8;

/// Items below which a piece is not halved: few, because items may be expensive;
/// what cutting up cheap ones costs is bounded by the number of pieces.
const MIN_PIECE: usize = 64;

/// What both forms of kernel share: accesses and the index space.
pub(crate) struct KernelSpec<A: KernelAccesses<K>, const K: usize> {
    pub(crate) plan: A::Plan,
    /// Where the index space begins.
    pub(crate) offset: [usize; K],
    /// The size of the whole index space.
    pub(crate) global: [usize; K],
    /// Each access's mapper and buffer, to check what the executor binds; of a reduction, the
    /// buffer that is reduced into.
    pub(crate) mappers: Vec<(Mapper, Box3)>,
    /// How the index space is computed, if the kernel reduces.
    pub(crate) tiling: Option<Tiling>,
    /// The accesses that are reductions in any order.
    pub(crate) unordered: Vec<usize>,
    pub(crate) accesses: PhantomData<fn() -> A>,
}

/// What a kernel was launched over.
pub(crate) struct Space<'l> {
    /// The whole index space.
    pub(crate) global: Box3,
    /// Each access's mapper and buffer.
    pub(crate) mappers: &'l [(Mapper, Box3)],
    /// Items of a group; all 1 without.
    pub(crate) group: [usize; 3],
    /// How it is computed, if the kernel reduces.
    pub(crate) tiling: Option<&'l Tiling>,
    /// The accesses that are reductions in any order.
    pub(crate) unordered: &'l [usize],
}

/// A kernel for CPUs that knows what it was launched over.
pub(crate) trait Launched: DeviceKernel {
    fn space(&self) -> Space<'_>;
}

/// A kernel that is called with single items.
pub(crate) struct ItemKernel<A: KernelAccesses<K>, F, const K: usize> {
    pub(crate) launch: KernelSpec<A, K>,
    pub(crate) kernel: F,
}

/// A kernel that is called with rows of items: if it is also compiled for devices and reduces, of
/// one item each, as there. Longer ones would have sums of their own, which depend on where they are
/// cut.
pub(crate) struct RowKernel<A: KernelAccesses<K>, F, const COMPILED: bool, const K: usize> {
    pub(crate) launch: KernelSpec<A, K>,
    pub(crate) kernel: F,
}

impl<A, F, const K: usize> DeviceKernel for ItemKernel<A, F, K>
where
    A: KernelAccesses<K> + 'static,
    F: for<'a> Fn(Item<K>, A::ItemViews<'a>) + Send + Sync + 'static,
{
    unsafe fn run(&self, chunk: &Box3, memory: &[BoundMemory<'_>]) {
        // SAFETY: rows come from `KernelSpec::run`, which keeps them apart.
        let call = |bound: &A::Bound<'_>, row, interior: &_| unsafe {
            A::run_items(bound, row, interior, &self.kernel);
        };
        // SAFETY: passed on.
        unsafe { self.launch.run(TileTraversal::Items, chunk, memory, call) }
    }

    fn is_serial(&self, chunk: &Box3) -> bool {
        is_one_piece(chunk.volume())
    }
}

impl<A, F, const COMPILED: bool, const K: usize> DeviceKernel for RowKernel<A, F, COMPILED, K>
where
    A: KernelAccesses<K> + 'static,
    F: for<'a> Fn(Row<K>, A::RowViews<'a>) + Send + Sync + 'static,
{
    unsafe fn run(&self, chunk: &Box3, memory: &[BoundMemory<'_>]) {
        if COMPILED && self.launch.tiling.is_some() {
            let alone = |row: &Row<K>, start| row.segment(start, 1);
            // SAFETY: rows come from `KernelSpec::run`, which keeps them apart.
            let call = |bound: &A::Bound<'_>, row, _: &_| unsafe {
                A::run_row(bound, row, &alone, &self.kernel);
            };
            // SAFETY: passed on.
            return unsafe { self.launch.run(TileTraversal::Items, chunk, memory, call) };
        }
        // SAFETY: as above.
        let call = |bound: &A::Bound<'_>, row, interior: &_| unsafe {
            A::run_row(bound, row, &|row, start| segment(row, start, interior), &self.kernel);
        };
        // SAFETY: passed on.
        unsafe { self.launch.run(TileTraversal::Rows, chunk, memory, call) }
    }

    fn is_serial(&self, chunk: &Box3) -> bool {
        is_one_piece(chunk.volume())
    }
}

impl<A, F, const K: usize> Launched for ItemKernel<A, F, K>
where
    A: KernelAccesses<K> + 'static,
    Self: DeviceKernel,
{
    fn space(&self) -> Space<'_> {
        self.launch.space()
    }
}

impl<A, F, const COMPILED: bool, const K: usize> Launched for RowKernel<A, F, COMPILED, K>
where
    A: KernelAccesses<K> + 'static,
    Self: DeviceKernel,
{
    fn space(&self) -> Space<'_> {
        self.launch.space()
    }
}

impl<A: KernelAccesses<K>, const K: usize> KernelSpec<A, K> {
    fn space(&self) -> Space<'_> {
        let global = to_box(Subrange { offset: self.offset, range: self.global });
        let Self { mappers, unordered, .. } = self;
        Space { global, mappers, group: [1; 3], tiling: self.tiling.as_ref(), unordered }
    }

    /// Calls `call` once for each of the rows that `chunk` is cut into: disjoint ones, each in
    /// `chunk`.
    ///
    /// # Safety
    /// As [`DeviceKernel::run`].
    unsafe fn run(
        &self,
        run: TileTraversal,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
        call: impl Fn(&A::Bound<'_>, Row<K>, &Range<usize>) + Sync,
    ) {
        if let Some(tiling) = &self.tiling {
            // SAFETY: passed on.
            return unsafe { self.run_tiles((tiling, run), chunk, memory, call) };
        }
        // SAFETY: passed on.
        let (bound, interior) = unsafe { self.bind(chunk, memory) };
        let chunk = bounds(chunk);
        spread(chunk, piece_size(&chunk), &|piece| {
            item_context::named(|| {
                rows_of(&piece, |start, len| {
                    call(&bound, Row::new(start, len, self.global), &interior);
                });
            });
        });
    }

    /// The accesses with the memory of a chunk, and the items along the fastest
    /// dimension that may share a row with others.
    ///
    /// # Safety
    /// As [`DeviceKernel::run`], for as long as the result lives.
    unsafe fn bind<'m>(
        &'m self,
        chunk: &Box3,
        memory: &[BoundMemory<'m>],
    ) -> (A::Bound<'m>, Range<usize>) {
        self.check(chunk, memory);
        // SAFETY: that the memory is live, whose it is, and of which type its elements are, is
        // this function's contract: the plan was made of the accesses that the task was submitted
        // with (`TaskBuilder::lower`), and is in nobody else's hands. That it holds the images of
        // the mappers that views go by, `check` has seen; the views of other mappers are confined
        // to the region that is bound (`Elements::single_box`).
        let bound = unsafe { A::bind(&self.plan, memory) };
        let interior = A::interior(&bound);
        (bound, interior)
    }

    /// Makes sure that the memory holds what the built-in mappers say, on which views rely.
    /// Parts that users' mappers name are checked against the bound region when they are used.
    /// Where the memory lies, whether it is live and of which type its elements are cannot be
    /// seen here: for that [`bind`](Self::bind) has a contract.
    fn check(&self, chunk: &Box3, memory: &[BoundMemory<'_>]) {
        assert_eq!(memory.len(), self.mappers.len(), "the executor binds one memory per access");
        let Space { global, mappers, .. } = self.space();
        for ((mapper, buffer), bound) in mappers.iter().zip(memory) {
            let input = MapperInput { chunk: *chunk, global, buffer: *buffer };
            let complete = matches!(mapper, Mapper::User(_))
                || bound.region().contains(&mapper.map_unclamped(&input));
            assert!(complete, "the executor bound less than {mapper} of chunk {chunk}");
        }
    }
}

/// Whether so many items are never cut up: then they run on the thread that asks.
fn is_one_piece(items: u64) -> bool {
    items <= MIN_PIECE as u64
}

fn piece_size<const K: usize>(chunk: &Bounds<K>) -> usize {
    // A thread outside of the pool must not ask `rayon`, which would start another pool.
    if is_one_piece(chunk.volume() as u64) {
        return MIN_PIECE;
    }
    let pieces = rayon::current_num_threads() * PIECES_PER_THREAD;
    (chunk.volume() / pieces).max(MIN_PIECE)
}

/// Runs `work` on disjoint pieces of `part` that together cover it.
fn spread<const K: usize>(part: Bounds<K>, piece: usize, work: &(impl Fn(Bounds<K>) + Sync)) {
    match halves(&part, piece) {
        None => work(part),
        Some((left, right)) => {
            rayon::join(|| spread(left, piece, work), || spread(right, piece, work));
        }
    }
}

/// Halves a box along the slowest dimension that can be, unless it is small.
fn halves<const K: usize>(part: &Bounds<K>, piece: usize) -> Option<(Bounds<K>, Bounds<K>)> {
    if part.volume() <= piece {
        return None;
    }
    let dim = part.range().iter().position(|&size| size > 1)?;
    let (mut left_max, mut right_min) = (part.max(), part.min());
    let middle = part.min()[dim] + part.range()[dim] / 2;
    (left_max[dim], right_min[dim]) = (middle, middle);
    Some((Bounds::new(part.min(), left_max), Bounds::new(right_min, part.max())))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use celerity_regions::Region;

    use super::*;
    use crate::access::UpdateAccess;
    use crate::mapper::{All, Slice};

    fn pieces<const K: usize>(part: Bounds<K>, piece: usize) -> Vec<Bounds<K>> {
        let pieces = Mutex::new(Vec::new());
        spread(part, piece, &|piece| pieces.lock().unwrap().push(piece));
        pieces.into_inner().unwrap()
    }

    #[test]
    fn pieces_cover_the_chunk_once() {
        let chunk = Bounds::new([3, 10], [8, 27]);
        let mut hits = [[0; 27]; 8];
        for piece in pieces(chunk, 7) {
            rows_of(&piece, |[y, x], len| hits[y][x..x + len].iter_mut().for_each(|n| *n += 1));
        }
        for (y, x) in (0..8).flat_map(|y| (0..27).map(move |x| (y, x))) {
            assert_eq!(hits[y][x], usize::from(chunk.contains([y, x])), "at {y}, {x}");
        }
    }

    /// What `check` makes of an update of rows, of which the executor has bound `bound`.
    fn check_update(bound: Box3) {
        let buffer = Box3::from_range([4, 6]);
        let launch = KernelSpec::<UpdateAccess<u32, 2, Slice>, 2> {
            plan: ((),),
            offset: [0; 2],
            global: [4, 6],
            mappers: vec![(Mapper::Slice { dim: 1 }, buffer)],
            tiling: None,
            unordered: Vec::new(),
            accesses: PhantomData,
        };
        let region = Region::from(bound);
        let mut elements = [0_u32; 24];
        // SAFETY: the elements outlive the binding, are all of the buffer, and nobody else's.
        let memory = unsafe { BoundMemory::new(elements.as_mut_ptr().cast(), buffer, &region) };
        launch.check(&Box3::from_offset_range([1, 2], [2, 3]), &[memory]);
    }

    #[test]
    fn an_update_is_bound_to_all_that_its_items_may_reach() {
        check_update(Box3::from_offset_range([1, 0], [2, 6]));
        check_update(Box3::from_range([4, 6]));
    }

    #[test]
    #[should_panic(expected = "the executor bound less than slice(1) of chunk [1..3, 2..5]")]
    fn an_update_that_leaves_its_part_is_noticed_before_an_item_runs() {
        // The elements of the items' own indices: an item may go along all of its row.
        check_update(Box3::from_offset_range([1, 2], [2, 3]));
    }

    #[test]
    #[should_panic(expected = "the executor binds one memory per access")]
    fn an_access_without_memory_is_noticed() {
        let launch = KernelSpec::<UpdateAccess<u32, 1, All>, 1> {
            plan: ((),),
            offset: [0],
            global: [4],
            mappers: vec![(Mapper::All, Box3::from_range([4]))],
            tiling: None,
            unordered: Vec::new(),
            accesses: PhantomData,
        };
        launch.check(&Box3::from_range([4]), &[]);
    }

    #[test]
    fn a_volume_beyond_64_bits_is_not_nothing() {
        let huge = Bounds::from_range([1 << 32, 1 << 32]);
        let (left, right) = halves(&huge, MIN_PIECE).unwrap();
        assert_eq!(left, Bounds::from_range([1 << 31, 1 << 32]));
        assert_eq!(right, Bounds::new([1 << 31, 0], [1 << 32, 1 << 32]));
        assert!(piece_size(&huge) > MIN_PIECE);
    }

    #[test]
    fn rows_are_cut_only_when_there_are_few() {
        let whole_rows = pieces(Bounds::new([0, 0], [64, 100]), 200);
        assert!(whole_rows.iter().all(|piece| piece.range()[1] == 100));
        assert_eq!(pieces(Bounds::new([0], [1024]), 64).len(), 16);
        assert_eq!(pieces(Bounds::<0>::EMPTY, 64).len(), 1);
    }
}
