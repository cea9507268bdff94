//! A box with its value, and merging of lists of them.

use crate::box3::Box3;

/// A box all of whose elements have the same value.
#[derive(Clone, Debug)]
pub(super) struct Entry<V> {
    pub(super) extent: Box3,
    pub(super) value: V,
}

impl<V: PartialEq> Entry<V> {
    /// The box that both entries fill if their values are equal. The boxes are disjoint.
    #[inline]
    pub(super) fn joined(&self, other: &Entry<V>) -> Option<Box3> {
        if self.value != other.value {
            return None;
        }
        let mut joined = self.extent;
        joined.join(&other.extent).then_some(joined)
    }
}

/// Merges disjoint entries of equal values until no two of them together are a box.
///
/// O(n log n) per round; every round but the last merges something, and one or two are the
/// rule. A few entries are compared with each other, which takes less than sorting them.
pub(super) fn coalesce<V: PartialEq>(entries: &mut Vec<Entry<V>>) {
    if entries.len() <= COMPARED_MAX {
        return coalesce_pairs(entries);
    }
    loop {
        let before = entries.len();
        for dim in [2, 1, 0] {
            coalesce_along(entries, dim);
        }
        if entries.len() == before {
            return;
        }
    }
}

/// Up to how many entries are compared in pairs.
const COMPARED_MAX: usize = 16;

/// Merges a pair that fits, for as long as there is one.
fn coalesce_pairs<V: PartialEq>(entries: &mut Vec<Entry<V>>) {
    let mut i = 0;
    while let Some((entry, later)) = entries.get(i..).and_then(<[_]>::split_first) {
        let mut others = later.iter().enumerate();
        match others.find_map(|(j, other)| Some((i + 1 + j, entry.joined(other)?))) {
            Some((j, extent)) => {
                entries[i].extent = extent;
                entries.swap_remove(j);
                i = 0;
            }
            None => i += 1,
        }
    }
}

/// Merges entries that are neighbours along `dim`. Sorted by the other dimensions first,
/// such neighbours are next to each other: whatever came between would lie inside the first.
fn coalesce_along<V: PartialEq>(entries: &mut Vec<Entry<V>>, dim: usize) {
    entries.sort_unstable_by_key(|entry| {
        let mut key = entry.extent.min();
        key[dim..].rotate_left(1);
        key
    });
    entries.dedup_by(|next, kept| match kept.joined(next) {
        Some(extent) => {
            kept.extent = extent;
            true
        }
        None => false,
    });
}
