//! Which items a thread of a launch takes. Pure arithmetic on the thread's
//! position, so that hosts can run it, too: tests do.
//!
//! # The rule
//!
//! The fastest dimension lies along x, the next along y and z. Where rows are aligned for it, a
//! thread takes a *run* of [`RUN`] items along x, which begins at a multiple of [`RUN`]; of a
//! stencil over elements of 8 bytes, of two; otherwise one item. Runs are whole, and all lanes of a warp do
//! the same: a run in one call never looks over the edge along x, and of one in a call for each of its items,
//! what the outermost ones look at is chosen without a branch. So stencils that look at the next items take whole rows
//! in runs where these are narrow, and edges are a good part of them: by an entry point of their own, since both
//! in one have the registers of the larger. What is otherwise left of rows, the *edges*, are the items
//! at both ends that are in no such run. They come one by one, in blocks of their own behind those of runs along x: these blocks number
//! the edges of the rows that the blocks beside them begin with, row by row, and each thread takes
//! one of them. So lanes are full whatever the size of a row, and edges are read while the rows around
//! them are in the cache.
//!
//! Along the slowest dimension a thread takes several runs or items, `steps` of the launch, as far
//! apart as its block has threads along it: what does not change on the way is computed once, and
//! neighbours along that dimension are in the nearest cache.
//!
//! Where what is around items are boxes, several steps are one: a thread takes a *stack* of [`STACK`] runs that lie one
//! behind the other, with nothing in between. What its levels look at is named from its lowest one, so that compilers see
//! that it is the same, and load it once.
#![allow(
    clippy::inline_always,
    reason = "however large a kernel is: in functions of their own, runs get all views through memory"
)]

use super::blocks::{LaunchBlock, first};
use super::{RUN, STACK};

/// Where a thread stands in its launch: x, y, z, as the hardware counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Thread {
    /// The block in the grid.
    pub block: [u32; 3],
    /// The thread in the block.
    pub thread: [u32; 3],
    /// Threads in a block.
    pub threads: [u32; 3],
}

/// How threads go through the items of a kernel: what its views say, and constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traversal {
    /// Items of a run: 16 bytes of the largest element, where that is what it sees of items. 1 if threads take
    /// items one by one all the same.
    pub run: usize,
    /// Whether items of a run come in a call for each, or in one.
    pub by_item: bool,
    /// What becomes of items that look over an end of their row.
    pub edges: Edges,
    /// Runs that are taken at once along the slowest dimension, if a launch says so: 1 or [`STACK`].
    pub stack: usize,
    /// Whether a device has all of it in one piece of code, however large the kernel is.
    pub is_joined: bool,
}

/// A kernel, as far as it is said how threads go through its items. A type, so that what a kernel does not do
/// is gone before a compiler weighs how large it is.
pub trait Traverse {
    /// How they do.
    const TRAVERSAL: Traversal;

    /// Whether threads take several steps along the slowest dimension, if a launch says so
    /// ([`takes_steps`](super::takes_steps)).
    const TAKES_STEPS: bool = !matches!(Self::TRAVERSAL.edges, Edges::Unseen);
}

/// What becomes of items that look over an end of their row, where others come in runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edges {
    /// None does: kernels without neighbourhoods.
    Unseen,
    /// They come one by one, and no run looks over an edge.
    Apart,
    /// They are in runs, which come in a call for each item: what such items see are elements, not slices of rows.
    InRuns,
}

/// A run of items that a thread handles at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<const K: usize> {
    /// The index of the first item in each dimension.
    pub start: [usize; K],
    /// The same, counted from the chunk's first item.
    pub at: [usize; K],
    /// Which item of an aligned run it is.
    pub within: usize,
    /// How many, along the fastest dimension; a constant once inlined.
    pub len: usize,
    /// The size of the whole index space.
    pub global: [usize; K],
    /// Which edges of buffers no neighbourhood of any of them looks over.
    pub inside: Inside,
    /// Items of the run that it is, or is in: what rows are aligned and strided for.
    pub run: usize,
    /// Where in a stack it is.
    pub level: StackLevel,
    /// Whether it is an item of a group.
    pub in_group: bool,
}

/// Where in a stack of runs one of them is. Constants, once inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackLevel {
    /// How many are below it: before it along the slowest dimension.
    pub below: usize,
    /// How many there are in all.
    pub all: usize,
}

impl StackLevel {
    /// That of a run in no stack.
    pub const ONLY: Self = Self { below: 0, all: 1 };
}

/// Along which dimensions neighbourhoods are known to stay in their buffers: constants once
/// inlined, for which the compiler drops what is about edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// It is known of no dimension.
    Unknown,
    /// It is known of the fastest dimension.
    Row,
    /// It is known of whole runs that they lie in the buffer, and of neighbourhoods that they reach one element at most
    /// along the fastest dimension.
    Run,
    /// It is known of all dimensions.
    All,
}

/// The one item that a thread takes of a launch whose blocks are groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat<const K: usize> {
    /// The item, as a run of one.
    pub place: Place<K>,
    /// Its index in its group.
    pub local: [usize; K],
    /// The group's index in the whole index space.
    pub group: [usize; K],
    /// Items of the group in each dimension.
    pub size: [usize; K],
}

impl<const K: usize> Place<K> {
    /// The first item of the run that it is, or is in, counted from the chunk's first.
    #[inline]
    pub(crate) fn run_at(&self) -> [usize; K] {
        let mut at = self.at;
        if let Some(fastest) = at.last_mut() {
            *fastest -= self.within;
        }
        at
    }

    /// The same on the stack's lowest level, from which devices name what is around all of them.
    #[cfg(target_arch = "nvptx64")]
    #[inline]
    pub(crate) fn on_the_ground(mut self) -> Self {
        if let Some(slowest) = self.at.first_mut() {
            *slowest -= self.level.below;
        }
        self
    }

    /// One item, counted from the chunk's first, of which nothing is known.
    #[inline]
    pub(super) fn single(launch: &LaunchBlock, at: [usize; K]) -> Self {
        let offset: [usize; K] = first(launch.offset);
        let start = core::array::from_fn(|dim| offset[dim] + at[dim]);
        let (global, inside) = (first(launch.global), Inside::Unknown);
        Self {
            start,
            at,
            within: 0,
            len: 1,
            global,
            inside,
            run: 1,
            level: StackLevel::ONLY,
            in_group: false,
        }
    }
}

/// The item that `thread` takes of a launch over `K` dimensions whose blocks are groups.
/// No thread is beyond the chunk, and no path depends on the thread: groups can meet.
#[inline]
#[must_use]
pub fn seat<const K: usize>(launch: &LaunchBlock, thread: &Thread) -> Seat<K> {
    let along =
        |axes: [u32; 3]| -> [usize; K] { core::array::from_fn(|dim| axes[K - 1 - dim] as usize) };
    let (block, local, size) = (along(thread.block), along(thread.thread), along(thread.threads));
    let offset: [usize; K] = first(launch.offset);
    let at = core::array::from_fn(|dim| block[dim] * size[dim] + local[dim]);
    let group = core::array::from_fn(|dim| offset[dim] / size[dim] + block[dim]);
    // Neighbourhoods look where their buffer ends, everywhere.
    let place = Place { in_group: true, ..Place::single(launch, at) };
    Seat { place, local, group, size }
}

/// Calls `call` for the items that `thread` takes of a launch over `K` dimensions, by the rule
/// above. All threads of the launch's grid together take each item once. Without neighbourhoods, threads take no steps.
#[inline]
pub fn visit<const K: usize, By: Traverse>(
    launch: &LaunchBlock,
    thread: &Thread,
    call: impl FnMut(Place<K>),
) {
    visit_joined::<K, By>(launch, thread, call);
}

/// As [`visit`], as a part of the caller, whatever a compiler thinks of its size: what there is of a kernel in stacks is in it
/// up to twenty times. (Others are laid out better if it decides: a step of a mesh got ten registers more.)
#[inline(always)]
pub(crate) fn visit_joined<const K: usize, By: Traverse>(
    launch: &LaunchBlock,
    thread: &Thread,
    mut call: impl FnMut(Place<K>),
) {
    const { assert!(K <= 3, "index spaces have at most three dimensions") };
    let steps = if By::TAKES_STEPS && K > 1 { u32::from(launch.steps) } else { 1 };
    let run = const { By::TRAVERSAL.run };
    let takes_runs = run > 1 && K > 0 && launch.run > 1;
    if takes_runs && thread.block[0] < launch.blocks {
        let x = thread.along::<K>(0, 1).wrapping_mul(run as u32);
        if (launch.inner_min[K - 1] as u32..launch.inner_max[K - 1] as u32).contains(&x) {
            let first = Chosen::of_thread::<K>(launch, thread, u64::from(x), steps);
            if const { K > 1 && By::TRAVERSAL.stack > 1 } {
                first.each_stack::<K, By>(thread, steps, &mut call);
            } else if const { By::TRAVERSAL.is_joined } {
                first.each_step_joined::<K>(
                    steps,
                    #[inline(always)]
                    |chosen| chosen.run::<K, By>(StackLevel::ONLY, &mut call),
                );
            } else {
                first.each_step::<K>(steps, |chosen| {
                    chosen.run::<K, By>(StackLevel::ONLY, &mut call)
                });
            }
        }
        return;
    }
    let first = match takes_runs {
        true => Chosen::of_edge::<K>(launch, thread, steps),
        false => {
            let x = u64::from(thread.block[0]) * u64::from(thread.threads[0]);
            Chosen::of_thread::<K>(launch, thread, x + u64::from(thread.thread[0]), steps)
        }
    };
    if K == 0 || first.x < launch.range[K - 1] {
        if const { By::TRAVERSAL.is_joined } {
            first.each_step_joined::<K>(
                steps,
                #[inline(always)]
                |chosen| call(Place::single(launch, chosen.at())),
            );
        } else {
            first.each_step::<K>(steps, |chosen| call(Place::single(launch, chosen.at())));
        }
    }
}

impl Thread {
    /// The thread's position along one axis of a launch over `K` dimensions. Grids have less than
    /// 2³² threads along y and z, and along x where threads take runs.
    #[inline]
    fn along<const K: usize>(&self, axis: usize, steps: u32) -> u32 {
        let steps = if axis + 1 == K { steps } else { 1 };
        let before = self.block[axis].wrapping_mul(self.threads[axis].wrapping_mul(steps));
        before.wrapping_add(self.thread[axis])
    }
}

/// An item, counted from the chunk's first, and how far apart steps are along the slowest
/// dimension.
#[derive(Clone, Copy)]
pub(super) struct Chosen<'a> {
    launch: &'a LaunchBlock,
    x: u64,
    y: u32,
    z: u32,
    stride: u32,
}

impl<'a> Chosen<'a> {
    /// An item of a tile.
    #[inline(always)]
    pub(super) fn at_item<const K: usize>(launch: &'a LaunchBlock, at: [usize; K]) -> Self {
        let axis = |axis: usize| if axis < K { at[K - 1 - axis] } else { 0 };
        Self { launch, x: axis(0) as u64, y: axis(1) as u32, z: axis(2) as u32, stride: 1 }
    }

    /// The thread's first item.
    #[inline]
    fn of_thread<const K: usize>(
        launch: &'a LaunchBlock,
        thread: &Thread,
        x: u64,
        steps: u32,
    ) -> Self {
        let stride = if K > 1 { thread.threads[K - 1] } else { 1 };
        let [y, z] = [1, 2].map(|axis| thread.along::<K>(axis, steps));
        Self { launch, x, y, z, stride }
    }

    /// The item in no run that the thread takes, if it is one of those behind runs; otherwise one
    /// that is not there.
    #[inline]
    fn of_edge<const K: usize>(launch: &'a LaunchBlock, thread: &Thread, steps: u32) -> Self {
        let Thread { block, thread: [x, y, z], threads: [width, height, depth] } = *thread;
        let fastest = K.saturating_sub(1);
        let (left, behind) = (launch.inner_min[fastest], launch.inner_max[fastest]);
        let per_row = ((left + launch.range[fastest] - behind) as u32).max(1);
        let number = (block[0] - launch.blocks) * (width * height * depth);
        let number = number + (z * height + y) * width + x;
        let (row, nth) = (number / per_row, u64::from(number % per_row));
        let (y, z) = (row % height.max(1), row / height.max(1));
        let x = match (z < depth, nth < left) {
            (true, true) => nth,
            (true, false) => nth - left + behind,
            (false, _) => u64::MAX,
        };
        // The thread beside which it goes on.
        let beside = Thread { thread: [0, y, z], ..*thread };
        Self::of_thread::<K>(launch, &beside, x, steps)
    }

    /// Where it is along the slowest dimension of several.
    #[inline]
    fn slowest<const K: usize>(&mut self) -> &mut u32 {
        if K == 3 { &mut self.z } else { &mut self.y }
    }

    /// Calls `call` here and at the next steps, as far as there are items.
    #[inline]
    fn each_step<const K: usize>(self, steps: u32, call: impl FnMut(&Self)) {
        self.each_step_joined::<K>(steps, call);
    }

    /// The same, as a part of the caller.
    #[inline(always)]
    fn each_step_joined<const K: usize>(mut self, steps: u32, mut call: impl FnMut(&Self)) {
        let range = |axis: usize| self.launch.range[K - 1 - axis] as u32;
        if K == 3 && self.y >= range(1) {
            return;
        }
        let mut left = steps;
        loop {
            if K > 1 && *self.slowest::<K>() >= range(K - 1) {
                return;
            }
            call(&self);
            left -= 1;
            if left == 0 || K < 2 {
                return;
            }
            *self.slowest::<K>() += self.stride;
        }
    }

    /// Runs from here on, in stacks if the launch says so. Of one that is not whole, at the chunk's end, each run is
    /// taken by itself.
    #[inline(always)]
    fn each_stack<const K: usize, By: Traverse>(
        mut self,
        thread: &Thread,
        steps: u32,
        call: &mut impl FnMut(Place<K>),
    ) {
        let height = u32::from(self.launch.stack);
        let [range, rows] = [0, 1].map(|dim| self.launch.range[dim] as u32);
        if K == 3 && self.y >= rows {
            return;
        }
        *self.slowest::<K>() += thread.thread[K - 1] * (height - 1);
        let mut stacks = if height == 1 { steps } else { steps / STACK as u32 };
        while stacks > 0 {
            let slowest = *self.slowest::<K>();
            if slowest >= range {
                return;
            }
            self.stack::<K, By>(height.min(range - slowest), call);
            *self.slowest::<K>() += self.stride * height;
            stacks -= 1;
        }
    }

    /// The stack from here on, if it has so many runs; if not, they come one after the other.
    #[inline(always)]
    fn stack<const K: usize, By: Traverse>(&self, height: u32, call: &mut impl FnMut(Place<K>)) {
        if height < STACK as u32 {
            let mut one = *self;
            for _ in 0..height {
                one.run::<K, By>(StackLevel::ONLY, call);
                *one.slowest::<K>() += 1;
            }
            return;
        }
        // Not a loop, as in a run.
        const { assert!(STACK == 4) };
        let level = |below| StackLevel { below, all: STACK };
        self.run::<K, By>(level(0), call);
        self.run::<K, By>(level(1), call);
        self.run::<K, By>(level(2), call);
        self.run::<K, By>(level(3), call);
    }

    /// The run so many levels up from here. All that are in a stack are in one piece of code, however large the kernel is.
    #[inline(always)]
    pub(super) fn run<const K: usize, By: Traverse>(
        &self,
        level: StackLevel,
        call: &mut impl FnMut(Place<K>),
    ) {
        let Traversal { run, by_item, edges, .. } = const { By::TRAVERSAL };
        let inside = match edges {
            Edges::Unseen => Inside::All,
            Edges::Apart => Inside::Row,
            Edges::InRuns => Inside::Run,
        };
        if !by_item {
            return call(self.part_of_run(run, level, 0, run, inside));
        }
        let item = |within: usize| self.part_of_run(run, level, within, 1, inside);
        // Not a loop: the compiler is to see constants, and to load items side by side.
        const { assert!(RUN == 4) };
        call(item(0));
        call(item(1));
        if run == RUN {
            call(item(2));
            call(item(3));
        }
    }

    /// So many items of the run so many levels up.
    #[inline]
    fn part_of_run<const K: usize>(
        &self,
        run: usize,
        level: StackLevel,
        within: usize,
        len: usize,
        inside: Inside,
    ) -> Place<K> {
        let mut at = self.at();
        if let Some(fastest) = at.last_mut() {
            *fastest += within;
        }
        if K > 1 {
            at[0] += level.below;
        }
        Place { within, len, inside, run, level, ..Place::single(self.launch, at) }
    }

    #[inline]
    fn at<const K: usize>(&self) -> [usize; K] {
        let axes = [self.x as usize, self.y as usize, self.z as usize];
        core::array::from_fn(|dim| axes[K - 1 - dim])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::vec::Vec;

    use super::super::Geometry;
    use super::*;

    /// All threads of a launch, one after another.
    fn threads(shape: &Geometry) -> impl Iterator<Item = Thread> {
        let Geometry { grid, block: threads, .. } = *shape;
        let all = |[x, y, z]: [u32; 3]| {
            (0..z).flat_map(move |z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z])))
        };
        let in_block =
            move |block| all(threads).map(move |thread| Thread { block, thread, threads });
        all(grid).flat_map(in_block)
    }

    fn launch(range: [u64; 3]) -> LaunchBlock {
        LaunchBlock { global: [100; 3], ..LaunchBlock::one_by_one([3, 4, 8], range) }
    }

    /// Each item with the places it was visited at.
    fn visits<const K: usize, By: Traverse>(
        block: &LaunchBlock,
        shape: &Geometry,
    ) -> BTreeMap<[usize; K], Vec<Place<K>>> {
        let mut seen = BTreeMap::<_, Vec<_>>::new();
        for thread in threads(shape) {
            visit::<K, By>(block, &thread, |place| {
                let offset: [usize; K] = first(block.offset);
                assert_eq!(place.start, core::array::from_fn(|dim| offset[dim] + place.at[dim]));
                for i in 0..place.len {
                    let mut item = place.start;
                    item[K - 1] += i;
                    seen.entry(item).or_default().push(place);
                }
            });
        }
        seen
    }

    /// A kernel that takes runs of so many items, and treats edges in one of the ways there are.
    struct Of<const RUN: usize, const BY_ITEM: bool, const EDGES: u8>;

    impl<const RUN: usize, const BY_ITEM: bool, const EDGES: u8> Traverse for Of<RUN, BY_ITEM, EDGES> {
        const TRAVERSAL: Traversal = Traversal {
            run: RUN,
            by_item: BY_ITEM,
            edges: [Edges::Unseen, Edges::Apart, Edges::InRuns][EDGES as usize],
            stack: 1,
            is_joined: false,
        };
    }

    /// A kernel that takes stacks of runs of so many items.
    struct InStacks<const RUN: usize, const BY_ITEM: bool>;

    impl<const RUN: usize, const BY_ITEM: bool> Traverse for InStacks<RUN, BY_ITEM> {
        const TRAVERSAL: Traversal =
            Traversal { stack: STACK, is_joined: true, ..Of::<RUN, BY_ITEM, 1>::TRAVERSAL };
    }

    /// [`check`] of all kernels that take such runs.
    fn check_all<const K: usize, const RUN: usize>(shape: Geometry, block: &LaunchBlock) {
        check::<K, Of<RUN, true, 2>>(shape, block);
        check::<K, Of<RUN, false, 1>>(shape, block);
        check::<K, Of<RUN, true, 1>>(shape, block);
        for stack in [1, STACK as u8] {
            if K > 1 && block.steps.is_multiple_of(stack) {
                check::<K, InStacks<RUN, true>>(shape, &LaunchBlock { stack, ..*block });
                check::<K, InStacks<RUN, false>>(shape, &LaunchBlock { stack, ..*block });
            }
        }
        if block.steps == 1 {
            check::<K, Of<RUN, false, 0>>(shape, block);
        }
    }

    /// Makes sure that each item is visited once, those of whole runs between `left` and `behind`
    /// in runs and all others by themselves.
    fn check<const K: usize, By: Traverse>(shape: Geometry, block: &LaunchBlock) {
        let traversal = By::TRAVERSAL;
        let seen = visits::<K, By>(block, &shape);
        let range: [usize; K] = first(block.range);
        assert_eq!(seen.len(), range.iter().product::<usize>(), "{shape:?} {block:?}");
        let between = block.inner_min[K - 1]..block.inner_max[K - 1];
        for (item, places) in seen {
            let [place] = places[..] else { panic!("{item:?} was visited at {places:?}") };
            let x = (item[K - 1] - block.offset[K - 1] as usize) as u64;
            let in_run = block.run > 1 && traversal.run > 1 && between.contains(&x);
            let is_whole = !traversal.by_item;
            let run = if in_run { traversal.run } else { 1 };
            let len = if is_whole { run } else { 1 };
            assert_eq!((place.run, place.len), (run, len), "{item:?}");
            let inside = match (in_run, traversal.edges) {
                (false, _) => Inside::Unknown,
                (true, Edges::Unseen) => Inside::All,
                (true, Edges::Apart) => Inside::Row,
                (true, Edges::InRuns) => Inside::Run,
            };
            let within = if is_whole { 0 } else { x as usize % run };
            assert_eq!((place.inside, place.within), (inside, within), "{item:?}");
            let row = item[0] - block.offset[0] as usize;
            let is_whole = row / STACK * STACK + STACK <= range[0];
            let level = match in_run && block.stack > 1 && traversal.stack > 1 && is_whole {
                true => StackLevel { below: row % STACK, all: STACK },
                false => StackLevel::ONLY,
            };
            assert_eq!(place.level, level, "{item:?}");
        }
    }

    /// Grids, blocks, ranges and steps. The last steps are beyond the chunk. Miri, which takes long for
    /// each thread, is given few.
    type Launched = ([u32; 3], [u32; 3], [u64; 3], u8);
    const IN_SPACE: &[Launched] = match cfg!(miri) {
        true => &[([2, 2, 1], [2, 1, 2], [1, 2, 3], 1), ([2, 1, 2], [2, 1, 1], [3, 1, 3], 2)],
        false => &[
            ([2, 3, 2], [8, 2, 1], [2, 5, 13], 1),
            ([4, 4, 1], [4, 2, 4], [2, 5, 13], 1),
            ([2, 3, 2], [8, 2, 2], [7, 5, 13], 3),
        ],
    };
    const IN_A_PLANE: &[Launched] = match cfg!(miri) {
        true => &[([2, 1, 1], [2, 2, 1], [3, 3, 1], 2)],
        false => &[([2, 3, 1], [8, 2, 1], [5, 13, 1], 1), ([2, 2, 1], [8, 2, 1], [7, 13, 1], 3)],
    };

    #[test]
    fn every_item_is_visited_once_on_any_grid() {
        let made = |&(grid, block, range, steps): &Launched| {
            let shape = Geometry { grid, block, shared_bytes: 0 };
            (shape, LaunchBlock { steps, ..launch(range) })
        };
        for (shape, launch) in IN_SPACE.iter().map(made) {
            check_all::<3, 1>(shape, &launch);
            check_all::<3, RUN>(shape, &launch);
        }
        for (shape, launch) in IN_A_PLANE.iter().map(made) {
            check_all::<2, 2>(shape, &launch);
        }
        let (shape, launch) = made(&([2, 1, 1], [8, 1, 1], [13, 1, 1], 1));
        check_all::<1, 1>(shape, &launch);
        check_all::<1, RUN>(shape, &launch);
    }

    /// Planes and rows of a launch; rows, with the runs in them; blocks, and their steps. As above for
    /// Miri.
    type Rows = ([u64; 2], &'static [(u64, u64, u64)], &'static [([u32; 3], u32)]);
    const WITH_RUNS: Rows = match cfg!(miri) {
        true => ([3, 2], &[(9, 4, 8)], &[([2, 1, 1], 2)]),
        false => (
            [7, 5],
            &[(13, 4, 8), (16, 0, 16), (31, 4, 28), (18, 0, 16)],
            &[([4, 2, 1], 1), ([3, 4, 2], 3), ([8, 1, 1], 2), ([3, 2, 1], 4), ([3, 1, 1], 8)],
        ),
    };

    /// Launches with runs from `left` to `behind` in rows.
    #[test]
    fn items_in_no_run_are_visited_once_behind_those_in_runs() {
        let ([planes, rows], sizes, blocks) = WITH_RUNS;
        for &(size, left, behind) in sizes {
            for &(mut block, steps) in blocks {
                for run in [2, 4] {
                    for dims in (1..=3).rev() {
                        block[dims..].fill(1);
                        let mut range = [1; 3];
                        range[..dims].copy_from_slice(&[planes, rows, size][3 - dims..]);
                        let mut launch = LaunchBlock { run, ..launch(range) };
                        launch.inner_min[dims - 1] = left;
                        launch.inner_max[dims - 1] = behind;
                        let across = [range[dims.saturating_sub(2)], range[0]];
                        let width = u32::from(run) * block[0];
                        let mut grid = [(size as u32).div_ceil(width), 1, 1];
                        for axis in 1..dims {
                            let steps = if axis + 1 == dims { steps } else { 1 };
                            launch.steps = steps as u8;
                            grid[axis] = (across[axis - 1] as u32).div_ceil(block[axis] * steps);
                        }
                        launch.blocks = grid[0];
                        let edges = (left + size - behind) as u32 * block[1] * block[2];
                        grid[0] += edges.div_ceil(block.iter().product());
                        let shape = Geometry { grid, block, shared_bytes: 0 };
                        match (dims, run) {
                            (1, 2) => check_all::<1, 2>(shape, &launch),
                            (1, _) => check_all::<1, 4>(shape, &launch),
                            (2, 2) => check_all::<2, 2>(shape, &launch),
                            (2, _) => check_all::<2, 4>(shape, &launch),
                            (_, 2) => check_all::<3, 2>(shape, &launch),
                            (_, _) => check_all::<3, 4>(shape, &launch),
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn every_item_has_one_seat_in_its_group() {
        let shape = Geometry::in_blocks([6, 4, 4], [3, 2, 2]).unwrap();
        let block = LaunchBlock { offset: [2, 4, 9], ..launch([4, 4, 6]) };
        let seats: BTreeMap<_, _> = threads(&shape)
            .map(|thread| seat::<3>(&block, &thread))
            .map(|seat| (seat.place.start, seat))
            .collect();
        let all = (2..6).flat_map(|z| (4..8).flat_map(move |y| (9..15).map(move |x| [z, y, x])));
        assert!(seats.keys().copied().eq(all));
        for (item, Seat { local, group, size, .. }) in seats {
            assert_eq!(size, [2, 2, 3]);
            assert_eq!(item, [0, 1, 2].map(|dim| group[dim] * size[dim] + local[dim]));
            assert!((0..3).all(|dim| local[dim] < size[dim]), "{item:?}");
        }
    }

    #[test]
    fn a_space_without_dimensions_has_one_item() {
        let mut calls = 0;
        let thread = Thread { block: [0; 3], thread: [0; 3], threads: [1; 3] };
        visit::<0, Of<RUN, false, 1>>(&launch([1; 3]), &thread, |place| {
            calls += 1;
            assert_eq!((place.start, place.len), ([], 1));
        });
        assert_eq!(calls, 1);
    }
}
