//! Which instructions must not run at the same time (IJPP 2022, §4.4): who conflicts with whom,
//! and who is ready but for that. Made for the first conflict and gone with the last, so that
//! programs without host objects pay for one look at a pointer.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use smallvec::SmallVec;

use super::independent::{CANDIDATES, independent_set};

/// Conflicts among the incomplete instructions of the window.
#[derive(Debug, Default)]
pub(super) struct Exclusions {
    /// By instruction, those that it conflicts with: both sides name each other.
    conflicts: BTreeMap<u64, SmallVec<[u64; 4]>>,
    /// Ready, but for conflicts.
    contenders: BTreeSet<u64>,
    /// Contenders that may start, all of them at once.
    chosen: VecDeque<u64>,
    /// Whether something has changed that may let a contender start.
    is_stale: bool,
}

impl Exclusions {
    /// Notes that two instructions must not run at the same time. Once for each pair.
    pub(super) fn add(&mut self, one: u64, other: u64) {
        self.conflicts.entry(one).or_default().push(other);
        self.conflicts.entry(other).or_default().push(one);
    }

    /// Whether an instruction conflicts with one that is incomplete.
    pub(super) fn concern(&self, instruction: u64) -> bool {
        self.conflicts.contains_key(&instruction)
    }

    /// Whether nothing is left that an engine would have to ask about.
    pub(super) fn are_over(&self) -> bool {
        self.conflicts.is_empty() && self.contenders.is_empty() && !self.may_choose()
    }

    /// Whether [`choose`](Self::choose) may find somebody.
    #[inline]
    pub(super) fn may_choose(&self) -> bool {
        !self.chosen.is_empty() || self.is_stale
    }

    /// How many instructions conflict with another.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.conflicts.len().max(self.contenders.len())
    }

    /// Adds an instruction that is ready.
    pub(super) fn contend(&mut self, instruction: u64) {
        self.contenders.insert(instruction);
        self.is_stale = true;
    }

    /// Ends an instruction, which may have had no conflicts. Calls `each` with those that conflict with nobody any more.
    pub(super) fn complete(&mut self, instruction: u64, mut each: impl FnMut(u64)) {
        let Some(others) = self.conflicts.remove(&instruction) else { return };
        for other in others {
            let conflicts = self.conflicts.get_mut(&other).expect("both sides name each other");
            conflicts.retain(|one| *one != instruction);
            if conflicts.is_empty() {
                self.conflicts.remove(&other);
                each(other);
            }
        }
        self.is_stale |= !self.contenders.is_empty();
    }

    /// The next contender that may start now, of the largest set that may start together; none
    /// conflicts with what `runs`.
    pub(super) fn choose(&mut self, runs: impl Fn(u64) -> bool) -> Option<u64> {
        if self.chosen.is_empty() && std::mem::take(&mut self.is_stale) {
            self.choose_set(runs);
        }
        let chosen = self.chosen.pop_front()?;
        self.contenders.remove(&chosen);
        Some(chosen)
    }

    fn choose_set(&mut self, runs: impl Fn(u64) -> bool) {
        let conflicts = |instruction| self.conflicts.get(&instruction).into_iter().flatten();
        let is_held = |instruction: &u64| conflicts(*instruction).any(|&other| runs(other));
        #[cfg(feature = "mutants")]
        let is_held = |instruction: &u64| {
            is_held(instruction) && !celerity_mutants::Mutant::ConflictIgnored.is_active()
        };
        let free: Vec<u64> =
            self.contenders.iter().copied().filter(|instruction| !is_held(instruction)).collect();
        let position = |other: &u64| free.binary_search(other).ok();
        let neighbors: Vec<Vec<usize>> =
            free.iter().map(|&one| conflicts(one).filter_map(position).collect()).collect();
        let set = independent_set(&neighbors, CANDIDATES);
        #[cfg(feature = "mutants")]
        let set = celerity_mutants::Mutant::ConflictingSetChosen
            .alter(set, |_| (0..free.len()).collect());
        self.chosen.extend(set.into_iter().map(|slot| free[slot]));
    }
}
