//! A box with its value, and merging of lists of them.

use smallvec::SmallVec;

use crate::box3::Box3;
use crate::region::Region;

/// A box all of whose elements have the same value.
#[derive(Clone, Debug)]
pub(crate) struct Entry<V> {
    pub(crate) extent: Box3,
    pub(crate) value: V,
}

impl<V: PartialEq> Entry<V> {
    /// The box that both entries fill if their values are equal. The boxes are disjoint.
    #[inline]
    pub(crate) fn joined(&self, other: &Entry<V>) -> Option<Box3> {
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
pub(crate) fn coalesce<V: PartialEq>(entries: &mut Vec<Entry<V>>) {
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

/// As [`coalesce`]; and what many entries of one value hold is cut into boxes anew, where that
/// takes fewer.
///
/// Of two rows, one of which begins an element later, no pair is a box, and so it is with all that
/// tasks leave behind whose index spaces shrink, as in a factorisation: k of them leave 2k entries,
/// and two boxes hold the same elements. That of [`Region::from_boxes`] for each value that is looked at.
pub(crate) fn coalesce_anew<V: Clone + PartialEq>(entries: &mut Vec<Entry<V>>) {
    coalesce(entries);
    let mut rest = entries.len();
    for value in likely_frequent(entries) {
        let others = others_first(&mut entries[..rest], &value);
        if rest - others >= CUT_ANEW_MIN {
            let extents = entries[others..rest].iter().map(|entry| entry.extent);
            let region = Region::from_boxes(extents);
            if region.boxes().len() < rest - others {
                let entry = |&extent: &Box3| Entry { extent, value: value.clone() };
                entries.splice(others..rest, region.boxes().iter().map(entry));
            }
        }
        rest = others;
    }
}

/// Of fewer entries of one value it is not worth while to find out how else they can be cut.
const CUT_ANEW_MIN: usize = 8;

/// How many values are looked for.
const FREQUENT: usize = 15;

/// All values that more than every sixteenth entry has, and perhaps others (Misra and Gries, *Finding repeated
/// elements*, 1982). Values are compared, no more: there is neither an order nor a hash of them.
fn likely_frequent<V: Clone + PartialEq>(entries: &[Entry<V>]) -> SmallVec<[V; FREQUENT]> {
    let mut counted = SmallVec::<[(&V, usize); FREQUENT]>::new();
    for Entry { value, .. } in entries {
        if let Some((_, count)) = counted.iter_mut().find(|(it, _)| *it == value) {
            *count += 1;
        } else if counted.len() < FREQUENT {
            counted.push((value, 1));
        } else {
            counted.iter_mut().for_each(|(_, count)| *count -= 1);
            counted.retain(|(_, count)| *count > 0);
        }
    }
    counted.into_iter().map(|(value, _)| value.clone()).collect()
}

/// Moves the entries of a value behind the others, and says how many these are.
fn others_first<V: PartialEq>(entries: &mut [Entry<V>], value: &V) -> usize {
    let mut others = 0;
    for i in 0..entries.len() {
        if entries[i].value != *value {
            entries.swap(others, i);
            others += 1;
        }
    }
    others
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
