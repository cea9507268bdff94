//! Items in groups: where an item stands in its group, and the barrier at which
//! all items of a group meet. Knows no memory.

use core::fmt;
#[cfg(target_arch = "nvptx64")]
use core::marker::PhantomData;
#[cfg(not(target_arch = "nvptx64"))]
use core::panic::Location;

#[cfg(not(target_arch = "nvptx64"))]
use crate::barrier::{GroupBarrier, Meeting};
use crate::item::Item;
use crate::warp::Warp;

/// An item of an index space that is cut into groups of equal size. The items of a
/// group run side by side, on one device, and can wait for each other.
#[derive(Clone, Copy, Debug)]
pub struct NdItem<'g, const K: usize> {
    item: Item<K>,
    local_id: [usize; K],
    group: Group<'g, K>,
}

/// The items that run side by side with an item, itself among them.
#[derive(Clone, Copy)]
pub struct Group<'g, const K: usize> {
    id: [usize; K],
    range: [usize; K],
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
        Self { item, local_id, group: Group { id, range: group, meeting } }
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
        Self { item, local_id, group: Group { id, range, meeting: PhantomData } }
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

    /// The item's index in its group.
    #[must_use]
    #[inline]
    pub const fn local_id(&self) -> [usize; K] {
        self.local_id
    }

    /// The item's row-major position in its group. O(K).
    #[must_use]
    #[inline]
    pub fn local_linear_id(&self) -> usize {
        Item::new(self.local_id, self.group.range).linear_id()
    }

    /// The item with those that it can exchange values with.
    #[must_use]
    #[inline]
    pub fn warp(&self) -> Warp<'g> {
        let (position, items) = (self.local_linear_id(), self.group.len());
        #[cfg(not(target_arch = "nvptx64"))]
        return Warp::new(position, items, self.group.meeting);
        #[cfg(target_arch = "nvptx64")]
        return Warp::new(position, items);
    }

    /// The group that the item belongs to.
    #[must_use]
    #[inline]
    pub const fn group(&self) -> Group<'g, K> {
        self.group
    }
}

impl<const K: usize> Group<'_, K> {
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
}

/// What `#[kernel]` writes in the place of methods that wait, where an item is a future.
#[cfg(not(target_arch = "nvptx64"))]
impl<const K: usize> Group<'_, K> {
    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn __barrier(self) -> impl Future<Output = ()> {
        Meeting::new(self.meeting, || ())
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
