//! Entries in an R*-tree, for maps of many boxes.

use rstar::RTree;
use smallvec::SmallVec;

use crate::box3::{Box3, Coord3};
use crate::entry::Entry;
use crate::search::{Sharing, Touching, load};

#[derive(Clone)]
pub(super) struct Tree<V> {
    tree: RTree<Entry<V>>,
}

/// What an update has to do to the entries around it.
struct Survey<V> {
    /// The parts of entries that are only partly covered.
    kept: SmallVec<[Entry<V>; 8]>,
    /// The update changes nothing: one entry of the same value covers it.
    is_void: bool,
    /// A neighbour has to be merged with the new entry.
    has_partner: bool,
}

impl<V: Clone + PartialEq> Tree<V> {
    pub(super) fn new(entries: Vec<Entry<V>>) -> Self {
        Tree { tree: load(entries) }
    }

    pub(super) fn len(&self) -> usize {
        self.tree.size()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry<V>> {
        self.tree.iter()
    }

    pub(super) fn take_entries(&mut self) -> Vec<Entry<V>> {
        std::mem::take(&mut self.tree).drain().collect()
    }

    pub(super) fn get(&self, at: Coord3) -> &V {
        // The element as a box; its end cannot overflow, as it is within the extent.
        let single = Box3::new(at, at.map(|c| c + 1));
        let mut found = self.tree.locate_with_selection_function(Sharing::with(&single));
        &found.next().expect("entries cover the extent").value
    }

    pub(super) fn for_each_in(&self, within: &Box3, visit: &mut impl FnMut(Box3, &V)) {
        for entry in self.tree.locate_with_selection_function(Sharing::with(within)) {
            visit(entry.extent.overlap(within), &entry.value);
        }
    }

    pub(super) fn update(&mut self, at: &Box3, value: V) {
        let new = Entry { extent: *at, value };
        let Survey { kept, is_void, has_partner } = self.survey(&new);
        #[cfg(feature = "mutants")]
        let is_void = celerity_mutants::Mutant::TreeIgnoresUpdate
            .alter(is_void, |is_void| is_void || (kept.is_empty() && !has_partner));
        if is_void || (kept.is_empty() && !has_partner && self.replace_exactly(&new)) {
            return;
        }
        self.tree.drain_with_selection_function(Sharing::with(at)).for_each(drop);
        for entry in kept {
            self.insert_merging(entry);
        }
        self.insert_merging(new);
    }

    /// As [`Flat::modify_all`](super::flat::Flat::modify_all).
    pub(super) fn modify_all(
        &mut self,
        mut change: impl FnMut(&V) -> V,
        merge: impl Fn(&mut Vec<Entry<V>>),
    ) {
        let mut changed = false;
        for entry in self.tree.iter_mut() {
            let new = change(&entry.value);
            changed |= new != entry.value;
            entry.value = new;
        }
        if changed {
            let mut entries = self.take_entries();
            merge(&mut entries);
            self.tree = load(entries);
        }
    }

    fn survey(&self, new: &Entry<V>) -> Survey<V> {
        let mut survey = Survey { kept: SmallVec::new(), is_void: false, has_partner: false };
        for entry in self.tree.locate_with_selection_function(Touching::with(&new.extent)) {
            let hole = entry.extent.intersection(&new.extent);
            if hole.is_empty() {
                survey.has_partner |= entry.joined(new).is_some();
                continue;
            }
            survey.is_void |= hole == new.extent && entry.value == new.value;
            entry.extent.for_each_outside(&hole, |extent| {
                survey.kept.push(Entry { extent, value: entry.value.clone() });
            });
        }
        survey
    }

    /// Changes the value of the entry with exactly the box of `new`, if there is one.
    fn replace_exactly(&mut self, new: &Entry<V>) -> bool {
        let mut found = self.tree.locate_with_selection_function_mut(Sharing::with(&new.extent));
        match found.next() {
            Some(entry) if entry.extent == new.extent => {
                entry.value = new.value.clone();
                true
            }
            _ => false,
        }
    }

    /// Inserts an entry, merged with others for as long as there is one that fits.
    fn insert_merging(&mut self, mut new: Entry<V>) {
        while let Some((partner, extent)) = self.partner(&new) {
            self.tree.remove_with_selection_function(Sharing::with(&partner));
            new.extent = extent;
        }
        self.tree.insert(new);
    }

    /// The box of an entry that together with `new` is a box of one value, and that box.
    fn partner(&self, new: &Entry<V>) -> Option<(Box3, Box3)> {
        let mut near = self.tree.locate_with_selection_function(Touching::with(&new.extent));
        near.find_map(|entry| Some((entry.extent, entry.joined(new)?)))
    }
}
