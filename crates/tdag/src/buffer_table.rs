//! What a graph layer keeps per buffer, for as long as the buffer lives.

use crate::id::BufferId;

/// Values by [`BufferId`], as many as there are live buffers: a program that
/// creates and drops a buffer per step costs no more in its millionth step than
/// in its first, and one that keeps many buffers no more per step than one that
/// keeps few.
///
/// Look-up is O(1) until a buffer has been dropped, and O(log live buffers) at
/// worst; removal is O(1), amortised, beside that. A [sweep](Self::sweep) costs what has been
/// looked up to be changed since, and not what is alive.
///
/// ```
/// use celerity_tdag::{BufferId, BufferTable};
/// let [a, b, c] = [0, 1, 2].map(BufferId::from_index);
/// let mut table = BufferTable::default();
/// table.insert(a, "a");
/// table.insert(b, "b");
/// assert_eq!(table.remove(a), Some("a"));
/// table.insert(c, "c");
/// assert_eq!((table.get(a), table.get(c)), (None, Some(&"c")));
/// ```
#[derive(Clone, Debug)]
pub struct BufferTable<T> {
    /// In ascending order of ids, and in between those that have been dropped.
    entries: Vec<(BufferId, Option<Entry<T>>)>,
    dropped: usize,
    /// Those that the next sweep visits, and some that have been dropped.
    unsettled: Vec<BufferId>,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    value: T,
    /// How many sweeps must still visit it.
    visits: u8,
}

/// What a value says that has been [visited](BufferTable::sweep).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a value that is not settled wants another visit"]
pub enum Sweep {
    /// Nothing changes from now on with time alone.
    Settled,
    /// The next sweep must visit it again.
    Again,
}

/// What is noted while a horizon is the newest is older than the synchronisation
/// point of the next but one.
const VISITS: u8 = 2;

impl<T> Default for BufferTable<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), dropped: 0, unsettled: Vec::new() }
    }
}

impl<T> BufferTable<T> {
    /// Adds the newest buffer.
    ///
    /// # Panics
    /// If a live buffer has this or a larger id.
    pub fn insert(&mut self, buffer: BufferId, value: T) {
        let newest = self.entries.last().is_none_or(|(last, _)| *last < buffer);
        assert!(newest, "{buffer} is not newer than all others");
        self.entries.push((buffer, Some(Entry { value, visits: 0 })));
    }

    /// The buffer's value, unless it has been dropped.
    #[must_use]
    #[inline]
    pub fn get(&self, buffer: BufferId) -> Option<&T> {
        let entry = self.entries[self.position(buffer)?].1.as_ref()?;
        Some(&entry.value)
    }

    /// The buffer's value, unless it has been dropped. The next two
    /// [sweeps](Self::sweep) visit it.
    #[must_use]
    #[inline]
    pub fn get_mut(&mut self, buffer: BufferId) -> Option<&mut T> {
        let position = self.position(buffer)?;
        let (_, entry) = &mut self.entries[position];
        let entry = entry.as_mut()?;
        if entry.visits < VISITS {
            unsettle(&mut self.unsettled, buffer, &mut entry.visits);
        }
        Some(&mut entry.value)
    }

    /// Takes a dropped buffer's value out.
    pub fn remove(&mut self, buffer: BufferId) -> Option<T> {
        let position = self.position(buffer)?;
        let entry = self.entries[position].1.take()?;
        self.dropped += 1;
        if self.dropped * 2 > self.entries.len() {
            self.entries.retain(|(_, entry)| entry.is_some());
            self.dropped = 0;
        }
        Some(entry.value)
    }

    /// Calls `visit` with the values that a synchronisation point may concern, each once:
    /// those that have been looked up [to be changed](Self::get_mut) since the last sweep
    /// or the one before, and those that have wanted it. O(values visited).
    ///
    /// A layer sweeps whenever it applies a horizon, which is when it makes the next one.
    /// So a value is visited until all that has been noted in it is older than the
    /// synchronisation point.
    ///
    /// ```
    /// use celerity_tdag::{BufferId, BufferTable, Sweep};
    /// let [a, b] = [0, 1].map(BufferId::from_index);
    /// let mut table = BufferTable::default();
    /// table.insert(a, 0);
    /// table.insert(b, 0);
    /// *table.get_mut(b).unwrap() = 7;
    /// let mut visited = Vec::new();
    /// for _ in 0..3 {
    ///     table.sweep(|value| {
    ///         visited.push(*value);
    ///         Sweep::Settled
    ///     });
    /// }
    /// assert_eq!(visited, [7, 7]);
    /// ```
    pub fn sweep(&mut self, mut visit: impl FnMut(&mut T) -> Sweep) {
        let mut unsettled = std::mem::take(&mut self.unsettled);
        unsettled.retain(|buffer| {
            let entry = self.position(*buffer).and_then(|at| self.entries[at].1.as_mut());
            let Some(entry) = entry else { return false };
            entry.visits -= 1;
            if visit(&mut entry.value) == Sweep::Again {
                entry.visits = entry.visits.max(1);
            }
            entry.visits > 0
        });
        self.unsettled = unsettled;
    }

    /// The values that the next [sweep](Self::sweep) visits.
    pub fn unsettled_mut(&mut self, mut each: impl FnMut(&mut T)) {
        for buffer in &self.unsettled {
            let entry = self.position(*buffer).and_then(|at| self.entries[at].1.as_mut());
            entry.into_iter().for_each(|entry| each(&mut entry.value));
        }
    }

    #[inline]
    fn position(&self, buffer: BufferId) -> Option<usize> {
        let guess = usize::try_from(buffer.index()).ok()?;
        match self.entries.get(guess) {
            Some((id, _)) if *id == buffer => Some(guess),
            _ => self.entries.binary_search_by_key(&buffer, |(id, _)| *id).ok(),
        }
    }
}

/// Sees to it that a buffer is visited; once between two sweeps.
#[cold]
fn unsettle(unsettled: &mut Vec<BufferId>, buffer: BufferId, visits: &mut u8) {
    if std::mem::replace(visits, VISITS) == 0 {
        unsettled.push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn id(index: u64) -> BufferId {
        BufferId::from_index(index)
    }

    fn visited(table: &mut BufferTable<u64>) -> Vec<u64> {
        let mut visited = Vec::new();
        table.sweep(|value| {
            visited.push(*value);
            Sweep::Settled
        });
        visited.sort_unstable();
        visited
    }

    #[test]
    fn a_table_behaves_like_a_map_while_buffers_come_and_go() {
        let (mut table, mut twin) = (BufferTable::default(), BTreeMap::new());
        let mut random = 7_u64;
        const BUFFERS: u64 = if cfg!(miri) { 300 } else { 2000 };
        for index in 0..BUFFERS {
            table.insert(id(index), index);
            twin.insert(index, index);
            for _ in 0..2 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let buffer = (random >> 33) % (index + 1);
                assert_eq!(table.get(id(buffer)), twin.get(&buffer));
                if random >> 62 > 0 {
                    assert_eq!(table.remove(id(buffer)), twin.remove(&buffer));
                } else if let Some(value) = table.get_mut(id(buffer)) {
                    *value += 1;
                    *twin.get_mut(&buffer).unwrap() += 1;
                }
            }
        }
        (0..BUFFERS).for_each(|index| assert_eq!(table.get(id(index)), twin.get(&index)));
        assert!(twin.len() as u64 > BUFFERS / 20 && table.entries.len() <= 2 * twin.len() + 1);
    }

    #[test]
    fn a_sweep_visits_what_has_changed_however_much_is_alive() {
        let mut table = BufferTable::default();
        const LAST: u64 = if cfg!(miri) { 499 } else { 9_999 };
        (0..=LAST).for_each(|index| table.insert(id(index), index));
        assert_eq!(visited(&mut table), []);
        for buffer in [5, LAST, 5] {
            assert!(table.get_mut(id(buffer)).is_some());
        }
        assert_eq!(visited(&mut table), [5, LAST]);
        assert!(table.get_mut(id(5)).is_some());
        assert_eq!(visited(&mut table), [5, LAST]);
        assert_eq!(table.remove(id(LAST)), Some(LAST));
        assert_eq!((visited(&mut table), visited(&mut table)), (vec![5], vec![]));
    }

    #[test]
    fn who_wants_another_visit_gets_it() {
        let mut table = BufferTable::default();
        table.insert(id(0), 0_u64);
        assert!(table.get_mut(id(0)).is_some());
        let mut visits = 0;
        for _ in 0..20 {
            table.sweep(|value| {
                (visits, *value) = (visits + 1, *value + 1);
                if *value < 9 { Sweep::Again } else { Sweep::Settled }
            });
        }
        assert_eq!(visits, 9);
    }
}
