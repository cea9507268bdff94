//! What a graph layer keeps per buffer, for as long as the buffer lives.

use crate::id::BufferId;

/// Values by [`BufferId`], as many as there are live buffers: a program that
/// creates and drops a buffer per step costs no more in its millionth step than
/// in its first.
///
/// Look-up is O(1) until a buffer has been dropped, and O(log live buffers) at
/// worst; iteration and removal are O(live buffers).
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
    /// In ascending order of ids.
    live: Vec<(BufferId, T)>,
}

impl<T> Default for BufferTable<T> {
    fn default() -> Self {
        Self { live: Vec::new() }
    }
}

impl<T> BufferTable<T> {
    /// Adds the newest buffer.
    ///
    /// # Panics
    /// If a live buffer has this or a larger id.
    pub fn insert(&mut self, buffer: BufferId, value: T) {
        let newest = self.live.last().is_none_or(|(last, _)| *last < buffer);
        assert!(newest, "{buffer} is not newer than all others");
        self.live.push((buffer, value));
    }

    /// The buffer's value, unless it has been dropped.
    #[must_use]
    #[inline]
    pub fn get(&self, buffer: BufferId) -> Option<&T> {
        Some(&self.live[self.position(buffer)?].1)
    }

    /// The buffer's value, unless it has been dropped.
    #[must_use]
    #[inline]
    pub fn get_mut(&mut self, buffer: BufferId) -> Option<&mut T> {
        let position = self.position(buffer)?;
        Some(&mut self.live[position].1)
    }

    /// Takes a dropped buffer's value out.
    pub fn remove(&mut self, buffer: BufferId) -> Option<T> {
        let position = self.position(buffer)?;
        Some(self.live.remove(position).1)
    }

    /// All values, in order of ids.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.live.iter_mut().map(|(_, value)| value)
    }

    #[inline]
    fn position(&self, buffer: BufferId) -> Option<usize> {
        let guess = usize::try_from(buffer.index()).ok()?;
        match self.live.get(guess) {
            Some((id, _)) if *id == buffer => Some(guess),
            _ => self.live.binary_search_by_key(&buffer, |(id, _)| *id).ok(),
        }
    }
}
