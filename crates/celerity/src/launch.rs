//! Kernels as the executor runs them: all items of a chunk, spread over the
//! process's thread pool.
//!
//! A chunk is halved along its slowest dimension, and once single rows are left,
//! along the row, until the pieces [are not worth it](grain) or there are several for each
//! thread; each piece then runs row by row. Knows nothing of queues and buffers.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;

use celerity_executor::{BoundMemory, DeviceKernel};
use celerity_regions::{Box3, Subrange};
use celerity_tdag::{Mapper, MapperInput, Tiling};

use crate::access::{ItemBody, KernelAccesses, Mapped, RowBody, Rows};
use crate::item_context;
use crate::range::{bounds, to_box};
use tiles::TileTraversal;

mod bulk;
mod call;
mod compiled;
mod fibers;
mod grain;
mod groups;
mod meeting;
mod overflow;
mod sides;
mod tiles;
mod turns;

pub(crate) use bulk::{Bulk, BulkKernel};
pub(crate) use call::CallKernel;
pub(crate) use compiled::CompiledKernel;
pub(crate) use grain::Grain;
pub(crate) use groups::GroupKernel;

/// What both forms of kernel share: accesses and the index space.
pub(crate) struct KernelSpec<A: KernelAccesses<K>, const K: usize> {
    pub(crate) plan: A::Plan,
    /// Where the index space begins.
    pub(crate) offset: [usize; K],
    /// The size of the whole index space.
    pub(crate) global: [usize; K],
    /// Each access's mapper and buffer, to check what the executor binds; of a reduction, the
    /// buffer that is reduced into.
    pub(crate) mappers: Vec<Mapped>,
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
    pub(crate) mappers: &'l [Mapped],
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
    launch: KernelSpec<A, K>,
    kernel: F,
    grain: &'static Grain,
}

/// A kernel that is called with rows of items: if it is also compiled for devices and reduces, of
/// one item each, as there. Longer ones would have sums of their own, which depend on where they are
/// cut.
pub(crate) struct RowKernel<A: KernelAccesses<K>, F, const COMPILED: bool, const K: usize> {
    launch: KernelSpec<A, K>,
    kernel: F,
    grain: &'static Grain,
}

impl<A: KernelAccesses<K>, F: 'static, const K: usize> ItemKernel<A, F, K> {
    pub(crate) fn new(launch: KernelSpec<A, K>, kernel: F) -> Self {
        Self { launch, kernel, grain: Grain::of::<F>() }
    }
}

impl<A: KernelAccesses<K>, F: 'static, const COMPILED: bool, const K: usize>
    RowKernel<A, F, COMPILED, K>
{
    pub(crate) fn new(launch: KernelSpec<A, K>, kernel: F) -> Self {
        Self { launch, kernel, grain: Grain::of::<F>() }
    }
}

impl<A, F, const K: usize> DeviceKernel for ItemKernel<A, F, K>
where
    A: KernelAccesses<K> + 'static,
    F: for<'a> ItemBody<A::ItemViews<'a>, K> + Send + Sync + 'static,
{
    unsafe fn run(&self, chunk: &Box3, memory: &[BoundMemory<'_>]) {
        // SAFETY: rows come from `KernelSpec::run`, which keeps them apart.
        let call = |bound: &A::Bound<'_>, rows: &_, interior: &_| unsafe {
            A::run_items(bound, rows, interior, &self.kernel);
        };
        // SAFETY: passed on.
        unsafe { self.launch.run((TileTraversal::Items, self.grain), chunk, memory, call) }
    }

    fn is_serial(&self, chunk: &Box3) -> bool {
        self.grain.is_one_piece(chunk.volume())
    }
}

impl<A, F, const COMPILED: bool, const K: usize> DeviceKernel for RowKernel<A, F, COMPILED, K>
where
    A: KernelAccesses<K> + 'static,
    F: for<'a> RowBody<A::RowViews<'a>, K> + Send + Sync + 'static,
{
    unsafe fn run(&self, chunk: &Box3, memory: &[BoundMemory<'_>]) {
        let single = COMPILED && self.launch.tiling.is_some();
        let traversal = if single { TileTraversal::Items } else { TileTraversal::Rows };
        // SAFETY: rows come from `KernelSpec::run`, which keeps them apart.
        let call = |bound: &A::Bound<'_>, rows: &_, interior: &Range<usize>| unsafe {
            let together = if single { &(0..0) } else { interior };
            A::run_rows(bound, rows, together, &self.kernel);
        };
        // SAFETY: passed on.
        unsafe { self.launch.run((traversal, self.grain), chunk, memory, call) }
    }

    fn is_serial(&self, chunk: &Box3) -> bool {
        self.grain.is_one_piece(chunk.volume())
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

    /// Calls `call` with the rows that `chunk` is cut into: disjoint ones, each in
    /// `chunk`, and several at a time if all accesses [join](KernelAccesses::joins) them.
    ///
    /// # Safety
    /// As [`DeviceKernel::run`].
    unsafe fn run(
        &self,
        (run, grain): (TileTraversal, &Grain),
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
        call: impl Fn(&A::Bound<'_>, &Rows<K>, &Range<usize>) + Sync,
    ) {
        if let Some(tiling) = &self.tiling {
            // SAFETY: passed on.
            return unsafe { self.run_tiles((tiling, run, grain), chunk, memory, call) };
        }
        // SAFETY: passed on.
        let (bound, interior) = unsafe { self.bind(chunk, memory) };
        grain.spread((bounds(chunk), 1), 1, &|piece| {
            item_context::named(|| {
                Rows::of(&piece, self.global, |rows| {
                    if A::joins(&bound, &rows) {
                        return call(&bound, &rows, &interior);
                    }
                    rows.singles().for_each(|row| call(&bound, &row, &interior));
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
        let bound = unsafe { A::bind(&self.plan, &mut memory.iter()) };
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
        for (Mapped { mapper, buffer, .. }, bound) in mappers.iter().zip(memory) {
            let input = MapperInput { chunk: *chunk, global, buffer: *buffer };
            let complete = matches!(mapper, Mapper::User(_))
                || bound.region().contains(&mapper.map_unclamped(&input));
            assert!(complete, "the executor bound less than {mapper} of chunk {chunk}");
        }
    }
}

#[cfg(test)]
mod tests {
    use celerity_regions::Region;
    use celerity_tdag::AccessMode;

    use super::*;
    use crate::access::UpdateAccess;
    use crate::mapper::{All, Slice};

    fn mapped(mapper: Mapper, buffer: Box3) -> Mapped {
        Mapped { mapper, buffer, mode: AccessMode::Update }
    }

    /// What `check` makes of an update of rows, of which the executor has bound `bound`.
    fn check_update(bound: Box3) {
        let buffer = Box3::from_range([4, 6]);
        let launch = KernelSpec::<UpdateAccess<u32, 2, Slice>, 2> {
            plan: ((),),
            offset: [0; 2],
            global: [4, 6],
            mappers: vec![mapped(Mapper::Slice { dim: 1 }, buffer)],
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
            mappers: vec![mapped(Mapper::All, Box3::from_range([4]))],
            tiling: None,
            unordered: Vec::new(),
            accesses: PhantomData,
        };
        launch.check(&Box3::from_range([4]), &[]);
    }
}
