//! Items in groups: where an item stands in its group, the barrier at which all items of a group meet, and what they
//! exchange there. Knows no memory that kernels ask for.

use core::fmt;
#[cfg(target_arch = "nvptx64")]
use core::marker::PhantomData;
use core::ops::Index;
#[cfg(not(target_arch = "nvptx64"))]
use core::panic::Location;

#[cfg(target_arch = "nvptx64")]
mod device;
#[cfg(not(target_arch = "nvptx64"))]
mod host;

#[cfg(not(target_arch = "nvptx64"))]
use crate::barrier::GroupBarrier;
use crate::item::Item;
use crate::reduce::Operator;
use crate::warp::Warp;
use crate::word::Word;

/// An item of an index space that is cut into groups of equal size. The items of a
/// group run side by side, on one device, and can wait for each other.
#[derive(Clone, Copy, Debug)]
pub struct NdItem<'g, const K: usize> {
    item: Item<K>,
    group: Group<'g, K>,
}

/// The items that run side by side with an item, itself among them.
///
/// They exchange values at a [barrier](Self::barrier): with [`broadcast`](Self::broadcast), [`reduce`](Self::reduce),
/// [`inclusive_scan`](Self::inclusive_scan), [`exclusive_scan`](Self::exclusive_scan), [`any`](Self::any),
/// [`all`](Self::all) and [`count`](Self::count). All items of a group must come to the same exchanges, equally often, with
/// the same operators. On GPUs a kernel that exchanges values in groups has 256 bytes of group memory less for its own.
#[derive(Clone, Copy)]
pub struct Group<'g, const K: usize> {
    id: [usize; K],
    range: [usize; K],
    /// Where in the group the item is that asks.
    local_id: [usize; K],
    #[cfg(not(target_arch = "nvptx64"))]
    meeting: &'g dyn GroupBarrier,
    #[cfg(target_arch = "nvptx64")]
    meeting: PhantomData<&'g ()>,
}

impl<'g, const K: usize> NdItem<'g, K> {
    /// The item in a group of the given size, which all groups have.
    #[cfg(not(target_arch = "nvptx64"))]
    #[must_use]
    pub fn new(item: Item<K>, group: [usize; K], meeting: &'g dyn GroupBarrier) -> Self {
        let at = item.id();
        let local_id = core::array::from_fn(|dim| at[dim] % group[dim]);
        let id = core::array::from_fn(|dim| at[dim] / group[dim]);
        Self { item, group: Group { id, range: group, local_id, meeting } }
    }

    /// The item as a device knows it.
    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    pub(crate) fn from_parts(
        item: Item<K>,
        local_id: [usize; K],
        id: [usize; K],
        range: [usize; K],
    ) -> Self {
        Self { item, group: Group { id, range, local_id, meeting: PhantomData } }
    }

    /// The item's index in the whole index space; dimension 0 is the slowest.
    #[must_use]
    #[inline]
    pub const fn id(&self) -> [usize; K] {
        self.item.id()
    }

    /// The size of the whole index space.
    #[must_use]
    #[inline]
    pub const fn range(&self) -> [usize; K] {
        self.item.range()
    }

    /// The item's row-major position in the whole index space, as [`Item::linear_id`]. O(K).
    #[must_use]
    #[inline]
    pub fn linear_id(&self) -> usize {
        self.item.linear_id()
    }

    /// The item's index in its group.
    #[must_use]
    #[inline]
    pub const fn local_id(&self) -> [usize; K] {
        self.group.local_id
    }

    /// The item's row-major position in its group. O(K).
    #[must_use]
    #[inline]
    pub fn local_linear_id(&self) -> usize {
        self.group.position()
    }

    /// How many groups the index space has in each dimension. O(K).
    #[must_use]
    #[inline]
    pub fn groups(&self) -> [usize; K] {
        let (range, group) = (self.range(), self.group.range);
        core::array::from_fn(|dim| range[dim] / group[dim])
    }

    /// The item with those that it can exchange values with.
    #[must_use]
    #[inline]
    pub fn warp(&self) -> Warp<'g> {
        self.group.warp()
    }

    /// The group that the item belongs to.
    #[must_use]
    #[inline]
    pub const fn group(&self) -> Group<'g, K> {
        self.group
    }
}

impl<const K: usize> Index<usize> for NdItem<'_, K> {
    type Output = usize;

    /// The item's index in one dimension, in the whole index space.
    ///
    /// # Panics
    /// If there is no such dimension.
    #[inline]
    fn index(&self, dim: usize) -> &usize {
        &self.item[dim]
    }
}

impl<'g, const K: usize> Group<'g, K> {
    /// The group's index among groups that are counted from index 0: where the index space has an
    /// offset, its first group is not 0.
    #[must_use]
    #[inline]
    pub const fn id(&self) -> [usize; K] {
        self.id
    }

    /// How many items the group has in each dimension.
    #[must_use]
    #[inline]
    pub const fn range(&self) -> [usize; K] {
        self.range
    }

    /// How many items the group has. O(K).
    #[must_use]
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a group is never empty")]
    pub fn len(&self) -> usize {
        self.range.iter().product()
    }

    /// Waits until every item of the group is here. What any of them has written to
    /// [`Local`](crate::Local) memory before, all of them read after.
    ///
    /// All items of a group must come to the same barriers, equally often. A barrier in
    /// a branch or loop that only some items take is an error on CPUs; GPUs cannot
    /// tell, and go on too early or never. An item that has panicked is not waited for.
    #[inline]
    #[track_caller]
    pub fn barrier(&self) {
        #[cfg(not(target_arch = "nvptx64"))]
        self.meeting.wait(Location::caller());
        #[cfg(target_arch = "nvptx64")]
        crate::machine::barrier();
    }

    /// What the item at position `from` of the group, row-major, passes for `value`.
    ///
    /// # Panics
    /// If the group has no such item.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn broadcast<T: Word>(&self, value: T, from: usize) -> T {
        self.check(from);
        self.passed_on(value, from).wait()
    }

    /// What the items of the group pass, combined by an [`Operator`], for every item of it: in the order of items, and
    /// so that it is the same on all devices. With [`Sum`](crate::Sum), integers wrap around.
    ///
    /// ```
    /// # use celerity_kernel::{AtomicView, Module, NdItem, Sum, kernel};
    /// /// The sum of each group.
    /// #[kernel]
    /// fn add_up(item: NdItem<'_, 1>, (sums, value): (AtomicView<'_, f32, 1>, &f32)) {
    ///     let group = item.group();
    ///     let sum = group.reduce(*value, Sum);
    ///     if item.local_linear_id() == 0 {
    ///         sums.at(group.id()).store(sum);
    ///     }
    /// }
    /// # static MODULE: Module = Module::without_code("doc", "");
    /// # fn main() {}
    /// ```
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn reduce<T: Word>(&self, value: T, operator: impl Operator<T>) -> T {
        self.combined(value, operator).wait()
    }

    /// What the items of the group up to this one pass, its own among them, combined as in
    /// [`reduce`](Self::reduce): row-major, from the group's first one on.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn inclusive_scan<T: Word>(&self, value: T, operator: impl Operator<T>) -> T {
        self.scanned(value, operator).wait()
    }

    /// What the items of the group before this one pass, combined: what
    /// [`inclusive_scan`](Self::inclusive_scan) gives the one before it, and the operator's identity for the first one.
    ///
    /// ```
    /// # use celerity_kernel::{Local, Module, NdItem, Sum, kernel};
    /// /// Moves the positive values of each group to its beginning, in their order, and leaves 0 behind them.
    /// #[kernel]
    /// fn keep_positive(item: NdItem<'_, 1>, x: &mut f32, kept: Local<'_, f32, 128>) {
    ///     let (at, group, is_kept) = (item.local_linear_id(), item.group(), *x > 0.0);
    ///     kept.set(at, 0.0);
    ///     let place = group.exclusive_scan(u32::from(is_kept), Sum);
    ///     if is_kept {
    ///         kept.set(place as usize, *x);
    ///     }
    ///     group.barrier();
    ///     *x = kept.get(at);
    /// }
    /// # static MODULE: Module = Module::without_code("doc", "");
    /// # fn main() {}
    /// ```
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn exclusive_scan<T: Word>(&self, value: T, operator: impl Operator<T>) -> T {
        self.scanned_before(value, operator).wait()
    }

    /// How many items of the group pass `true`.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn count(&self, vote: bool) -> usize {
        self.voted(vote).wait()
    }

    /// Whether an item of the group passes `true`.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn any(&self, vote: bool) -> bool {
        self.voted(vote).wait() != 0
    }

    /// Whether all items of the group pass `true`.
    #[must_use]
    #[inline]
    #[track_caller]
    pub fn all(&self, vote: bool) -> bool {
        self.voted(!vote).wait() == 0
    }

    /// Makes sure that the group has an item at position `from`.
    #[inline]
    #[track_caller]
    fn check(&self, from: usize) {
        let len = self.len();
        if from >= len {
            fail!(
                "a group has no item at the position asked for",
                "a group of {} items has none at {}",
                len,
                from
            );
        }
    }

    /// The row-major position in the group of the item that asks.
    #[inline]
    fn position(&self) -> usize {
        Item::new(self.local_id, self.range).linear_id()
    }

    #[inline]
    fn warp(&self) -> Warp<'g> {
        let (position, items) = (self.position(), self.len());
        #[cfg(not(target_arch = "nvptx64"))]
        return Warp::new(position, items, self.meeting);
        #[cfg(target_arch = "nvptx64")]
        return Warp::new(position, items);
    }
}

impl<const K: usize> fmt::Debug for Group<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("id", &self.id).field("range", &self.range).finish()
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;

    #[derive(Default)]
    struct Calls(Cell<usize>);

    impl GroupBarrier for Calls {
        fn wait(&self, at: &'static Location<'static>) {
            assert!(at.file().ends_with("group.rs"));
            self.0.set(self.0.get() + 1);
        }

        fn come(&self, at: &'static Location<'static>) {
            self.wait(at);
        }

        fn board(&self) -> &[Cell<u64>] {
            &[]
        }
    }

    #[test]
    fn an_item_knows_its_place_in_its_group() {
        let calls = Calls::default();
        let item = NdItem::new(Item::new([5, 7], [8, 12]), [4, 3], &calls);
        assert_eq!((item.group().id(), item.local_id()), ([1, 2], [1, 1]));
        assert_eq!((item.local_linear_id(), item.group().len()), (4, 12));
        item.group().barrier();
        assert_eq!(calls.0.get(), 1);
        let mut future = core::pin::pin!(item.group().__barrier());
        let context = &mut core::task::Context::from_waker(core::task::Waker::noop());
        assert!(future.as_mut().poll(context).is_pending());
        assert!(calls.0.get() == 2 && future.poll(context).is_ready());
    }
}
