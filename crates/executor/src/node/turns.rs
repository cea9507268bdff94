//! Whose turn it is among collectives: all nodes begin them in the same order, though each has the
//! data for them in an order of its own. Knows numbers, and nothing of what is exchanged.

use std::collections::BTreeMap;

/// What is ready to begin and waits for its turn, by number.
#[derive(Debug)]
pub(super) struct Turns<T> {
    next: u64,
    ready: BTreeMap<u64, T>,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self { next: 0, ready: BTreeMap::new() }
    }
}

impl<T> Turns<T> {
    /// The one with this number is ready: each is once.
    pub(super) fn ready(&mut self, number: u64, item: T) {
        debug_assert!(number >= self.next, "number {number} has had its turn");
        self.ready.insert(number, item);
    }

    /// The one whose turn it is, if it is ready.
    pub(super) fn next(&mut self) -> Option<T> {
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::CollectivesAsReady.is_active() {
            return self.ready.pop_first().map(|(_, item)| item);
        }
        let item = self.ready.remove(&self.next)?;
        self.next += 1;
        Some(item)
    }

    /// What is ready and waits for its turn.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &T> {
        self.ready.values()
    }

    /// Forgets what has not had its turn.
    pub(super) fn clear(&mut self) {
        self.ready.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_taken_in_order_of_numbers() {
        let mut turns = Turns::default();
        assert_eq!(turns.next(), None);
        turns.ready(2, "c");
        turns.ready(1, "b");
        assert_eq!((turns.next(), turns.waiting().count()), (None, 2));
        turns.ready(0, "a");
        let taken: Vec<_> = std::iter::from_fn(|| turns.next()).collect();
        assert_eq!(taken, ["a", "b", "c"]);
        turns.ready(4, "e");
        turns.clear();
        turns.ready(3, "d");
        assert_eq!((turns.next(), turns.next()), (Some("d"), None));
    }
}
