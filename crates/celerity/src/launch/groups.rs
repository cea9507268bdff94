//! Kernels whose items run in groups, on CPUs: groups are spread over the thread
//! pool, and the items of one group run side by side on one thread: as [futures](super::turns), or, where these cannot let go of
//! it, as [fibers](super::fibers). Knows nothing of queues.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::fmt;
use std::ops::Range;
use std::pin::pin;
use std::task::{Context, Waker};

use celerity_executor::{BoundMemory, DeviceKernel};
use celerity_kernel::{Bounds, GroupBarrier, Item, LocalMemory, NdItem, Row};
use celerity_regions::Box3;

use super::fibers::{FiberRounds, STACK, side_by_side};
use super::grain::Grain;
use super::meeting::Divergence;
use super::turns::{self, Table};
use super::{KernelSpec, Launched, Space};
use crate::access::{Closure, KernelAccesses, Rows};
use crate::item_context;
use crate::range::bounds;

/// Items of groups that are under way at the same time, at most, if groups are not
/// larger: each may have a stack, and a process has room for some 30,000.
const MOST_ITEMS: usize = 8192;

/// A kernel that is called with items in groups.
pub(crate) struct GroupKernel<A: KernelAccesses<K>, W, const K: usize> {
    launch: KernelSpec<A, K>,
    /// Items of a group; divides the index space.
    group: [usize; K],
    kernel: W,
    grain: &'static Grain,
}

impl<A: KernelAccesses<K>, W: 'static, const K: usize> GroupKernel<A, W, K> {
    pub(crate) fn new(launch: KernelSpec<A, K>, group: [usize; K], kernel: W) -> Self {
        Self { launch, group, kernel, grain: Grain::of::<W>() }
    }
}

impl<A, W, const K: usize> DeviceKernel for GroupKernel<A, W, K>
where
    A: KernelAccesses<K> + 'static,
    W: for<'a> celerity_kernel::GroupKernel<K, A::ItemViews<'a>>,
{
    unsafe fn run(&self, chunk: &Box3, memory: &[BoundMemory<'_>]) {
        if let Some(tiling) = &self.launch.tiling {
            let run = |bound: &A::Bound<'_>, interior: &_, tile: &_| {
                self.run_groups(self.groups_of(tile), bound, interior);
            };
            let lanes = self.group.iter().product();
            let how = (tiling, self.grain);
            // SAFETY: passed on.
            return unsafe { self.launch.spread_tiles(how, lanes, chunk, memory, run) };
        }
        // SAFETY: passed on.
        let (bound, interior) = unsafe { self.launch.bind(chunk, memory) };
        let groups = self.groups_of(&bounds(chunk));
        let items = self.group.iter().product::<usize>();
        let least = groups.volume().div_ceil((MOST_ITEMS / items).max(1));
        self.grain.spread((groups, least), items, &|piece| {
            item_context::named(|| self.run_groups(piece, &bound, &interior));
        });
    }

    fn is_serial(&self, chunk: &Box3) -> bool {
        self.grain.is_one_piece(chunk.volume())
    }
}

impl<A, W, const K: usize> Launched for GroupKernel<A, W, K>
where
    A: KernelAccesses<K> + 'static,
    Self: DeviceKernel,
{
    fn space(&self) -> Space<'_> {
        let mut group = [1; 3];
        group[..K].copy_from_slice(&self.group);
        Space { group, ..self.launch.space() }
    }
}

impl<A, W, const K: usize> GroupKernel<A, W, K>
where
    A: KernelAccesses<K> + 'static,
    W: for<'a> celerity_kernel::GroupKernel<K, A::ItemViews<'a>>,
{
    /// The indices of the groups whose items are in `chunk`.
    fn groups_of(&self, chunk: &Bounds<K>) -> Bounds<K> {
        let index = |at: [usize; K]| {
            std::array::from_fn(|dim| {
                assert!(at[dim].is_multiple_of(self.group[dim]), "{chunk:?} cuts groups");
                at[dim] / self.group[dim]
            })
        };
        Bounds::new(index(chunk.min()), index(chunk.max()))
    }

    /// Runs groups, one after the other.
    fn run_groups(&self, groups: Bounds<K>, bound: &A::Bound<'_>, interior: &Range<usize>) {
        let size = self.group;
        let mut local = self.local_memory();
        let local = Cell::from_mut(&mut local[..]).as_slice_of_cells();
        let inside: Vec<_> =
            (0..size.iter().product()).map(|number| delinearize(number, size)).collect();
        let (group, first, inside) = (Cell::new([0; K]), Cell::new([0; K]), &inside[..]);
        let rounds =
            GroupRounds { kernel: self, groups, bound, interior, local, inside, first, group };
        let outcome = match needs_stack::<A, W, K>() {
            true => side_by_side(inside.len(), groups.volume(), &rounds),
            false => rounds.take_turns(),
        };
        if let Err(divergence) = outcome {
            self.refuse(rounds.group.get(), divergence);
        }
    }

    /// Memory for one group: aligned for every array, and not a number wherever nothing is written.
    fn local_memory(&self) -> Vec<u128> {
        let bytes = W::DESCRIPTION.local_bytes().saturating_add(self.kernel.slice_bytes());
        let (mut memory, words) = (Vec::new(), bytes.div_ceil(size_of::<u128>()));
        if memory.try_reserve_exact(words).is_err() {
            panic!(
                "kernel `{}`: there are no {bytes} bytes for the local memory of a group; let its \
                 slices be shorter",
                W::DESCRIPTION.name
            );
        }
        memory.resize(words, u128::MAX);
        memory
    }

    /// Ends the task: the kernel is wrong.
    fn refuse(&self, group: [usize; K], divergence: Divergence) -> ! {
        // Those who waited have been unwound, which is not their fault.
        item_context::forget();
        panic!(
            "kernel `{}`, over {:?} items in groups of {:?}: not all items of group {group:?} come \
             to the same barriers: {divergence}; keep barriers out of branches that only some take",
            W::DESCRIPTION.name,
            self.launch.global,
            self.group,
        )
    }
}

/// Whether each item needs a stack of its own.
const fn needs_stack<A, W, const K: usize>() -> bool
where
    A: KernelAccesses<K> + 'static,
    W: for<'a> celerity_kernel::GroupKernel<K, A::ItemViews<'a>>,
{
    <W as celerity_kernel::GroupKernel<K, A::ItemViews<'static>>>::NEEDS_STACK
}

/// Groups in rounds, one after the other: of futures or of fibers, one for each item.
struct GroupRounds<'r, 'b, A: KernelAccesses<K>, W, const K: usize> {
    kernel: &'r GroupKernel<A, W, K>,
    groups: Bounds<K>,
    bound: &'r A::Bound<'b>,
    interior: &'r Range<usize>,
    /// The memory of the group that is under way.
    local: &'r [Cell<u128>],
    /// Where each item is in its group.
    inside: &'r [[usize; K]],
    /// The index of the group's first item.
    first: Cell<[usize; K]>,
    /// Its index.
    group: Cell<[usize; K]>,
}

impl<A, W, const K: usize> GroupRounds<'_, '_, A, W, K>
where
    A: KernelAccesses<K>,
{
    /// The index of an item.
    fn item(&self, number: usize) -> [usize; K] {
        let (first, inside) = (self.first.get(), self.inside[number]);
        std::array::from_fn(|dim| first[dim] + inside[dim])
    }

    /// A row of the item alone.
    fn row(&self, number: usize) -> Row<K> {
        Row::new(self.item(number), 1, self.kernel.launch.global)
    }

    /// The memory of the group.
    ///
    /// # Safety
    /// It is used for the items of one group alone, on this thread, and no longer when the next one begins.
    unsafe fn local_memory(&self) -> LocalMemory<'_> {
        const { assert!(align_of::<u128>() >= 16) };
        // SAFETY: aligned and initialised, and the rest was promised.
        unsafe { LocalMemory::new(self.local.as_ptr().cast_mut().cast(), size_of_val(self.local)) }
    }

    /// Begins with a group.
    fn go_to(&self, round: usize) {
        let (groups, inside) = (self.groups.min(), delinearize(round, self.groups.range()));
        let (group, size): ([usize; K], _) =
            (std::array::from_fn(|dim| groups[dim] + inside[dim]), self.kernel.group);
        self.group.set(group);
        self.first.set(std::array::from_fn(|dim| group[dim] * size[dim]));
        self.local.iter().for_each(|word| word.set(u128::MAX));
    }
}

impl<A, W, const K: usize> GroupRounds<'_, '_, A, W, K>
where
    A: KernelAccesses<K>,
    W: for<'a> celerity_kernel::GroupKernel<K, A::ItemViews<'a>>,
{
    /// Runs the groups with a future for each item.
    fn take_turns(&self) -> Result<(), Divergence> {
        let table = Table::for_items(self.inside.len());
        (0..self.groups.volume()).try_for_each(|round| {
            self.go_to(round);
            self.group_takes_turns(&table)
        })
    }

    /// The group that is under way. Its items are made before the first of them runs, from memory that stays until the last has
    /// ended.
    fn group_takes_turns(&self, table: &Table) -> Result<(), Divergence> {
        let (numbers, size) = (0..self.inside.len(), self.kernel.group);
        let memory = |number| {
            A::begin_row(self.bound, number);
            // SAFETY: a row of one item that no other row of the chunk holds.
            unsafe { A::item_rows(self.bound, self.row(number)) }
        };
        let mut memory: Vec<_> = numbers.clone().map(memory).collect();
        let cursors = numbers.clone().zip(&mut memory);
        let mut cursors: Vec<_> =
            cursors.map(|(number, memory)| A::item_cursors(memory, &self.row(number))).collect();
        // SAFETY: the futures are gone when this returns.
        let local = unsafe { self.local_memory() };
        let items = numbers.zip(&mut cursors).map(|(number, cursors)| {
            let row = self.row(number);
            let (item, views) = (row.item(0), A::item_views(cursors, &row));
            self.kernel.kernel.item(NdItem::new(item, size, table), views, local)
        });
        let items: Vec<_> = items.collect();
        turns::take(items, table, |number, item| {
            let context = &mut Context::from_waker(Waker::noop());
            item_context::at_last(|| self.row(number), || item.poll(context))
        })
    }
}

impl<A, W, const K: usize> FiberRounds for GroupRounds<'_, '_, A, W, K>
where
    A: KernelAccesses<K> + 'static,
    W: for<'a> celerity_kernel::GroupKernel<K, A::ItemViews<'a>>,
{
    fn begin(&self, round: usize) {
        self.go_to(round);
    }

    fn run(&self, number: usize, meeting: &dyn GroupBarrier) {
        let (bound, size) = (self.bound, self.kernel.group);
        // SAFETY: this group's alone until it has ended, on this thread.
        let local = unsafe { self.local_memory() };
        let rows = Rows::single(self.row(number));
        A::begin_row(bound, number);
        let call = closure::<A, _, K>(|item, views| {
            let item = NdItem::new(item, size, meeting);
            let mut item = pin!(self.kernel.kernel.item(item, views, local));
            // Wherever it waits, it does so on this stack, and goes on when that is returned to.
            while item.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {}
        });
        // SAFETY: a row of one item that no other row of the chunk holds.
        unsafe {
            A::run_items(bound, &rows, self.interior, &call);
        }
    }

    fn name(&self, number: usize, out: &mut dyn fmt::Write) -> fmt::Result {
        let (at, size) = (self.item(number), self.kernel.group);
        write!(
            out,
            "the stack of item {at:?} of kernel `{}`, over {:?} items in groups of {size:?}, \
             has overflowed: an item of a group has {} KiB; let it recurse less, and put what \
             is large on the heap or into local memory",
            W::DESCRIPTION.name,
            self.kernel.launch.global,
            STACK >> 10,
        )
    }
}

/// A closure that gets the views of accesses `A`.
fn closure<A, F, const K: usize>(call: F) -> Closure<F>
where
    A: KernelAccesses<K>,
    F: for<'a> Fn(Item<K>, A::ItemViews<'a>),
{
    Closure(call)
}

/// The index at a row-major position of a box of the given size.
fn delinearize<const K: usize>(mut position: usize, size: [usize; K]) -> [usize; K] {
    let mut index = [0; K];
    for dim in (0..K).rev() {
        index[dim] = position % size[dim];
        position /= size[dim];
    }
    index
}

#[cfg(test)]
mod tests {
    use celerity_kernel::Item;

    use super::*;

    #[test]
    fn positions_and_indices_belong_together() {
        for position in 0..24 {
            let index = delinearize(position, [2, 3, 4]);
            assert_eq!(Item::new(index, [2, 3, 4]).linear_id(), position);
        }
        assert_eq!(delinearize::<0>(0, []), []);
    }
}
