//! Boxes in order. Owns along which dimension boxes lie apart, and how those around a place are found there by halving; refuses to
//! change.

use crate::box3::Box3;
use crate::entry::Entry;

/// The dimension along which boxes lie farthest apart, measured by their lengths; 0 of none. O(n).
///
/// ```
/// use celerity_regions::{Box3, separating_dimension};
/// let columns = [0, 10, 20].map(|at| Box3::from_offset_range([0, at], [100, 2]));
/// assert_eq!(separating_dimension(&columns), 1);
/// ```
#[must_use]
pub fn separating_dimension<'a>(boxes: impl IntoIterator<Item = &'a Box3>) -> usize {
    let (mut all, mut lengths) = (Box3::EMPTY, [0_u128; 3]);
    for one in boxes {
        all = all.bounding(one);
        for (length, of_one) in lengths.iter_mut().zip(one.range()) {
            *length += u128::from(of_one);
        }
    }
    // Of so many lengths that lie one behind the other, how many share an element; as fractions are compared.
    let extent = all.range().map(u128::from);
    let denser = |a: usize, b: usize| {
        lengths[a].saturating_mul(extent[b]).cmp(&lengths[b].saturating_mul(extent[a]))
    };
    (0..3).min_by(|&a, &b| denser(a, b)).unwrap_or(0)
}

/// Boxes in the order in which they begin along one dimension, of which few lie side by side there.
#[derive(Clone, Debug)]
pub(crate) struct Sorted<V> {
    dim: usize,
    entries: Vec<Entry<V>>,
    /// Where the farthest of an entry and those before it ends.
    ends: Vec<u64>,
}

/// A look at a place is one at so many boxes at most, on the average: at more, a tree takes less.
const MOST_SIDE_BY_SIDE: usize = 8;

impl<V> Sorted<V> {
    /// These entries, sorted, or the entries again if too many lie side by side. O(n log n); O(n) if they come in order.
    pub(crate) fn of(mut entries: Vec<Entry<V>>) -> Result<Self, Vec<Entry<V>>> {
        let dim = separating_dimension(entries.iter().map(|entry| &entry.extent));
        entries.sort_by_key(|entry| entry.extent.min()[dim]);
        let farthest = |end: &mut u64, entry: &Entry<V>| {
            *end = entry.extent.max()[dim].max(*end);
            Some(*end)
        };
        let ends: Vec<u64> = entries.iter().scan(0, farthest).collect();
        let (mut first, mut looks) = (0, 0);
        for (at, entry) in entries.iter().enumerate() {
            while ends[first] <= entry.extent.min()[dim] && first < at {
                first += 1;
            }
            looks += at - first;
        }
        match looks <= MOST_SIDE_BY_SIDE * entries.len() {
            true => Ok(Self { dim, entries, ends }),
            false => Err(entries),
        }
    }

    pub(crate) fn entries(&self) -> &[Entry<V>] {
        &self.entries
    }

    pub(crate) fn into_entries(self) -> Vec<Entry<V>> {
        self.entries
    }

    /// Entries among which all are that touch `part`. O(log n).
    pub(crate) fn around(&self, part: &Box3) -> &[Entry<V>] {
        let (from, to) = (part.min()[self.dim], part.max()[self.dim]);
        let first = self.ends.partition_point(|&end| end < from);
        let behind = self.entries.partition_point(|entry| entry.extent.min()[self.dim] <= to);
        &self.entries[first.min(behind)..behind]
    }
}
