//! Entries as an unordered list: the fastest form for up to a few hundred boxes.

use smallvec::SmallVec;

use crate::box3::{Box3, Coord3};
use crate::entry::{Entry, coalesce};

#[derive(Clone)]
pub(super) struct Flat<V> {
    entries: Vec<Entry<V>>,
}

/// Entries on their way into the list.
type Fresh<V> = SmallVec<[Entry<V>; 8]>;

/// From how many fresh entries on the whole list is sorted and merged at once.
const MERGE_ALL_MIN: usize = 16;

impl<V: Clone + PartialEq> Flat<V> {
    pub(super) fn new(entries: Vec<Entry<V>>) -> Self {
        Flat { entries }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Entry<V>> {
        self.entries.iter()
    }

    pub(super) fn take_entries(&mut self) -> Vec<Entry<V>> {
        std::mem::take(&mut self.entries)
    }

    /// The value, if there is only one entry left.
    pub(super) fn take_single(&mut self) -> Option<V> {
        if self.entries.len() == 1 { self.entries.pop().map(|entry| entry.value) } else { None }
    }

    pub(super) fn get(&self, at: Coord3) -> &V {
        let found = self.entries.iter().find(|entry| entry.extent.contains_point(at));
        &found.expect("entries cover the extent").value
    }

    #[inline]
    pub(super) fn for_each_in(&self, within: &Box3, mut visit: impl FnMut(Box3, &V)) {
        for entry in &self.entries {
            if entry.extent.intersects(within) {
                let part = entry.extent.overlap(within);
                visit(part, &entry.value);
                if part == *within {
                    return;
                }
            }
        }
    }

    pub(super) fn update(&mut self, at: &Box3, value: V) {
        let mut fresh = Fresh::new();
        let mut i = self.first_in(at);
        while let Some(entry) = self.entries.get_mut(i) {
            if !entry.extent.intersects(at) {
                i += 1;
                continue;
            }
            if entry.extent.contains(at) {
                if entry.value == value {
                    return;
                }
                if entry.extent == *at {
                    entry.value = value;
                    return self.merge_in_place(i);
                }
            }
            let Entry { extent, value } = self.entries.swap_remove(i);
            keep_outside(&mut fresh, &extent, at, &value);
        }
        fresh.push(Entry { extent: *at, value });
        self.add(&mut fresh);
    }

    pub(super) fn modify(&mut self, within: &Box3, mut change: impl FnMut(&V) -> V) {
        let mut i = self.first_in(within);
        let mut fresh = Fresh::new();
        while let Some(entry) = self.entries.get_mut(i) {
            let near = entry.extent.intersects(within);
            let new = if near { Some(change(&entry.value)) } else { None };
            let Some(value) = new.filter(|new| *new != entry.value) else {
                i += 1;
                continue;
            };
            if entry.extent == *within {
                // Nothing else is in the box, and what lies around it stays as it is.
                entry.value = value;
                return self.merge_in_place(i);
            }
            let part = entry.extent.overlap(within);
            let old = self.entries.swap_remove(i);
            keep_outside(&mut fresh, &old.extent, &part, &old.value);
            fresh.push(Entry { extent: part, value });
        }
        self.add(&mut fresh);
    }

    /// Changes all values, and merges entries if one has become another.
    pub(super) fn modify_all(
        &mut self,
        mut change: impl FnMut(&V) -> V,
        merge: impl Fn(&mut Vec<Entry<V>>),
    ) {
        let mut changed = false;
        for entry in &mut self.entries {
            let new = change(&entry.value);
            changed |= new != entry.value;
            entry.value = new;
        }
        if changed {
            merge(&mut self.entries);
        }
    }

    /// The position of the first entry that intersects the box. Searched for apart from
    /// changing entries, since this loop, which sees most of them, is then a tight one.
    #[inline]
    fn first_in(&self, at: &Box3) -> usize {
        let found = self.entries.iter().position(|entry| entry.extent.intersects(at));
        found.unwrap_or(self.entries.len())
    }

    /// Adds entries in the place of those just removed.
    fn add(&mut self, fresh: &mut Fresh<V>) {
        if fresh.len() >= MERGE_ALL_MIN {
            self.entries.extend(fresh.drain(..));
            return coalesce(&mut self.entries);
        }
        for entry in fresh.drain(..) {
            self.entries.push(entry);
            self.merge_in_place(self.entries.len() - 1);
        }
    }

    /// Merges entry `i` with others for as long as there is one that fits.
    fn merge_in_place(&mut self, mut i: usize) {
        while let Some((j, extent)) = self.partner(i) {
            self.entries[i].extent = extent;
            self.entries.swap_remove(j);
            if i == self.entries.len() {
                i = j;
            }
        }
    }

    fn partner(&self, i: usize) -> Option<(usize, Box3)> {
        let (before, rest) = self.entries.split_at(i);
        let (entry, after) = rest.split_first()?;
        let joins = |(j, other)| Some((j, entry.joined(other)?));
        let mut before = before.iter().enumerate();
        before.find_map(joins).or_else(|| (i + 1..).zip(after).find_map(joins))
    }
}

/// Adds the parts of `extent` outside `hole`, which keep their value.
fn keep_outside<V: Clone>(fresh: &mut Fresh<V>, extent: &Box3, hole: &Box3, value: &V) {
    #[cfg(feature = "mutants")]
    if celerity_mutants::Mutant::UpdateForgetsRest.is_active() {
        return;
    }
    let hole = extent.intersection(hole);
    extent.for_each_outside(&hole, |extent| fresh.push(Entry { extent, value: value.clone() }));
}
