//! Rows of items that follow each other: what kernels are called with at a time, so that what all of them
//! share is found out once.

use celerity_kernel::{Bounds, Row};

/// Rows of one length that begin at the same index along the fastest dimension and follow each other along
/// the next: one at least, and one alone in spaces that have no such dimension.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows<const K: usize> {
    first: Row<K>,
    count: usize,
}

impl<const K: usize> Rows<K> {
    /// A row.
    #[inline]
    pub(crate) fn single(row: Row<K>) -> Self {
        Self { first: row, count: 1 }
    }

    #[inline]
    pub(crate) fn first(&self) -> &Row<K> {
        &self.first
    }

    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The `n`-th row.
    #[inline]
    pub(crate) fn row(&self, n: usize) -> Row<K> {
        let mut start = self.first.start();
        if let Some(dim) = K.checked_sub(2) {
            start[dim] += n;
        }
        Row::new(start, self.first.len(), self.first.range())
    }

    /// So many of them, from the `n`-th on.
    #[inline]
    pub(crate) fn some(&self, n: usize, count: usize) -> Self {
        debug_assert!(count > 0 && n + count <= self.count, "{count} of {} rows", self.count);
        Self { first: self.row(n), count }
    }

    /// Each by itself.
    #[inline]
    pub(crate) fn singles(&self) -> impl Iterator<Item = Self> {
        (0..self.count).map(|n| Self::single(self.row(n)))
    }

    /// All of their items.
    #[inline]
    pub(crate) fn bounds(&self) -> Bounds<K> {
        let start = self.first.start();
        let mut end = start.map(|index| index + 1);
        if let Some(dim) = K.checked_sub(2) {
            end[dim] += self.count - 1;
        }
        if let Some(fastest) = end.last_mut() {
            *fastest += self.first.len() - 1;
        }
        Bounds::new(start, end)
    }

    /// Makes sure that the last of them is inside of a buffer of this size, as a view of the first does of
    /// that one.
    #[inline]
    pub(crate) fn check_inside(&self, range: [usize; K]) {
        let inside = K.checked_sub(2).is_none_or(|dim| {
            self.first.start()[dim].checked_add(self.count).is_some_and(|end| end <= range[dim])
        });
        assert!(inside, "rows outside of the buffer");
    }

    /// All rows of `part` of the index space `global`, in order, and at a time as many as follow each other. A
    /// box without dimensions is one row of length 1.
    #[inline]
    pub(crate) fn of(part: &Bounds<K>, global: [usize; K], mut visit: impl FnMut(Self)) {
        let (min, mut max) = (part.min(), part.max());
        // Along the dimension that rows follow each other along, all of them are one.
        let count = K.checked_sub(2).map_or(1, |dim| {
            let count = max[dim] - min[dim];
            max[dim] = max[dim].min(min[dim] + 1);
            count
        });
        rows_of(&Bounds::new(min, max), |start, len| {
            visit(Self { first: Row::new(start, len, global), count });
        });
    }
}

/// Calls `visit` with the first index and the length of every row of `part`, in
/// order. A box without dimensions is one row of length 1.
#[inline]
pub(crate) fn rows_of<const K: usize>(part: &Bounds<K>, mut visit: impl FnMut([usize; K], usize)) {
    if part.is_empty() {
        return;
    }
    let len = part.range().last().copied().unwrap_or(1);
    let (min, max) = (part.min(), part.max());
    let mut start = min;
    loop {
        visit(start, len);
        // An odometer over all dimensions but the fastest.
        let mut dim = K.saturating_sub(1);
        loop {
            if dim == 0 {
                return;
            }
            dim -= 1;
            start[dim] += 1;
            if start[dim] < max[dim] {
                break;
            }
            start[dim] = min[dim];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all<const K: usize>(part: Bounds<K>) -> Vec<([usize; K], usize, usize)> {
        let mut all = Vec::new();
        Rows::of(&part, [9; K], |rows| {
            all.push((rows.first().start(), rows.first().len(), rows.count()));
        });
        all
    }

    #[test]
    fn a_plane_is_one_block_of_rows() {
        assert_eq!(all(Bounds::<0>::EMPTY), [([], 1, 1)]);
        assert_eq!(all(Bounds::new([3], [7])), [([3], 4, 1)]);
        assert_eq!(all(Bounds::new([1, 2], [3, 4])), [([1, 2], 2, 2)]);
        assert_eq!(all(Bounds::new([0, 1, 2], [2, 4, 3])), [([0, 1, 2], 1, 3), ([1, 1, 2], 1, 3)]);
        assert_eq!(all(Bounds::new([0, 5], [2, 5])), []);
        assert_eq!(all(Bounds::new([4, 5], [4, 6])), []);
    }

    #[test]
    fn rows_of_a_block_are_those_of_its_box() {
        let (part, mut rows, mut single) =
            (Bounds::new([1, 2, 3], [3, 5, 7]), Vec::new(), Vec::new());
        Rows::of(&part, [9; 3], |block| rows.extend((0..block.count()).map(|n| block.row(n))));
        rows_of(&part, |start, len| single.push(Row::new(start, len, [9; 3])));
        assert_eq!(rows, single);
        let mut planes = Vec::new();
        Rows::of(&part, [9; 3], |block| planes.push(block.bounds()));
        let plane = |z| Bounds::new([z, 2, 3], [z + 1, 5, 7]);
        assert_eq!(planes, [plane(1), plane(2)]);
        assert_eq!(Rows::single(Row::new([], 1, [])).bounds(), Bounds::new([], []));
    }

    fn rows<const K: usize>(part: Bounds<K>) -> Vec<([usize; K], usize)> {
        let mut rows = Vec::new();
        rows_of(&part, |start, len| rows.push((start, len)));
        rows
    }

    #[test]
    fn rows_come_in_order_in_every_dimensionality() {
        assert_eq!(rows(Bounds::<0>::EMPTY), [([], 1)]);
        assert_eq!(rows(Bounds::new([3], [7])), [([3], 4)]);
        assert_eq!(rows(Bounds::new([1, 2], [3, 4])), [([1, 2], 2), ([2, 2], 2)]);
        let cube = Bounds::new([0, 1, 2], [2, 3, 3]);
        assert_eq!(rows(cube), [([0, 1, 2], 1), ([0, 2, 2], 1), ([1, 1, 2], 1), ([1, 2, 2], 1)]);
        assert_eq!(rows(Bounds::new([0, 5], [2, 5])), []);
    }
}
