//! Where in the index space a kernel call stands. Knows nothing of buffers.

use core::ops::Index;

/// One point of an index space with `K` dimensions.
///
/// ```
/// use celerity_kernel::Item;
/// let item = Item::new([2, 3], [4, 8]);
/// assert_eq!((item.id(), item[1], item.linear_id()), ([2, 3], 3, 19));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<const K: usize> {
    id: [usize; K],
    range: [usize; K],
}

impl<const K: usize> Item<K> {
    /// The point `id` of the index space `range`.
    #[must_use]
    #[inline]
    pub const fn new(id: [usize; K], range: [usize; K]) -> Self {
        Self { id, range }
    }

    /// The point's global index; dimension 0 is the slowest.
    #[must_use]
    #[inline]
    pub const fn id(&self) -> [usize; K] {
        self.id
    }

    /// The size of the whole index space, however it was split.
    #[must_use]
    #[inline]
    pub const fn range(&self) -> [usize; K] {
        self.range
    }

    /// The point's row-major position in the whole index space, if that begins at the
    /// origin. If it has an offset, this counts from where the origin would be, and goes beyond the number of items. O(K).
    #[must_use]
    #[inline]
    pub fn linear_id(&self) -> usize {
        let mut linear = 0;
        for dim in 0..K {
            linear = linear * self.range[dim] + self.id[dim];
        }
        linear
    }
}

impl<const K: usize> Index<usize> for Item<K> {
    type Output = usize;

    /// The index in one dimension.
    ///
    /// # Panics
    /// If there is no such dimension.
    #[inline]
    fn index(&self, dim: usize) -> &usize {
        &self.id[dim]
    }
}

/// A run of consecutive items along the fastest dimension, never empty.
///
/// In an index space of 0 dimensions it is the one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<const K: usize> {
    start: [usize; K],
    len: usize,
    range: [usize; K],
}

impl<const K: usize> Row<K> {
    /// The run of `len` items from `start` in the index space `range`.
    #[must_use]
    #[inline]
    pub const fn new(start: [usize; K], len: usize, range: [usize; K]) -> Self {
        Self { start, len, range }
    }

    /// The global index of the first item.
    #[must_use]
    #[inline]
    pub const fn start(&self) -> [usize; K] {
        self.start
    }

    /// How many items the run has: the length of every slice that goes with it.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a run is never empty")]
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// The size of the whole index space.
    #[must_use]
    #[inline]
    pub const fn range(&self) -> [usize; K] {
        self.range
    }

    /// The global index of the `i`-th item of the run.
    #[must_use]
    #[inline]
    pub fn id(&self, i: usize) -> [usize; K] {
        let mut id = self.start;
        if let Some(fastest) = id.last_mut() {
            *fastest += i;
        }
        id
    }

    /// The `i`-th item of the run.
    #[must_use]
    #[inline]
    pub fn item(&self, i: usize) -> Item<K> {
        Item::new(self.id(i), self.range)
    }

    /// The `len` items from the `start`-th on, which must be part of the run.
    #[must_use]
    #[inline]
    pub fn segment(&self, start: usize, len: usize) -> Self {
        debug_assert!(start + len <= self.len, "{self:?} has no {len} items from {start} on");
        Self { start: self.id(start), len, range: self.range }
    }

    /// All items of the run, in order.
    #[inline]
    pub fn items(self) -> impl ExactSizeIterator<Item = Item<K>> {
        (0..self.len).map(move |i| self.item(i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_counts_along_the_fastest_dimension() {
        let row = Row::new([4, 5], 3, [8, 9]);
        assert!(row.items().map(|item| item.id()).eq([[4, 5], [4, 6], [4, 7]]));
        assert_eq!(row.item(2).range(), [8, 9]);
        assert_eq!(row.segment(1, 2), Row::new([4, 6], 2, [8, 9]));
    }

    #[test]
    fn a_row_without_dimensions_is_one_item() {
        let row = Row::new([], 1, []);
        assert!(row.items().map(|item| item.id()).eq([[0_usize; 0]]));
        assert_eq!(row.item(0).linear_id(), 0);
    }
}
