//! Side tables for dense ids: a window that slides over them, and a map for
//! those that live long. Knows nothing of what is stored.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// A table over indices that appear roughly in order and disappear roughly in
/// order: a ring with a moving base. All operations are O(1), amortised, and
/// allocate only while the window is wider than ever before.
///
/// ```
/// use celerity_executor::Window;
/// let mut window = Window::default();
/// window.insert(7, "a");
/// window.insert(8, "b");
/// assert_eq!(window.remove(7), Some("a"));
/// assert_eq!(window.get(8), Some(&"b"));
/// assert_eq!(window.get(7), None);
/// assert!(window.iter().eq([(8, &"b")]));
/// ```
#[derive(Clone, Debug)]
pub struct Window<T> {
    base: u64,
    slots: VecDeque<Option<T>>,
}

impl<T> Default for Window<T> {
    fn default() -> Self {
        Self { base: 0, slots: VecDeque::new() }
    }
}

impl<T> Window<T> {
    /// Stores `value` under `index`.
    ///
    /// # Panics
    /// If `index` is in use or has left the window.
    pub fn insert(&mut self, index: u64, value: T) {
        if self.slots.is_empty() {
            self.base = self.base.max(index);
        }
        let offset = self.offset(index).expect("an index enters the window once");
        while self.slots.len() <= offset {
            self.slots.push_back(None);
        }
        assert!(self.slots[offset].is_none(), "index {index} is in use");
        self.slots[offset] = Some(value);
    }

    /// The value under `index`, if there is one.
    #[must_use]
    pub fn get(&self, index: u64) -> Option<&T> {
        self.slots.get(self.offset(index)?)?.as_ref()
    }

    /// The value under `index`, if there is one.
    #[must_use]
    pub fn get_mut(&mut self, index: u64) -> Option<&mut T> {
        let offset = self.offset(index)?;
        self.slots.get_mut(offset)?.as_mut()
    }

    /// Takes the value under `index` out; the window may slide.
    pub fn remove(&mut self, index: u64) -> Option<T> {
        let offset = self.offset(index)?;
        let value = self.slots.get_mut(offset)?.take();
        self.slide();
        value
    }

    /// Drops the value under `index`, if there is one, where it lies; the window may slide.
    pub fn discard(&mut self, index: u64) {
        if let Some(slot) = self.offset(index).and_then(|offset| self.slots.get_mut(offset)) {
            *slot = None;
            self.slide();
        }
    }

    fn slide(&mut self) {
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.base += 1;
        }
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::WindowDropsNeighbour.is_active()
            && self.slots.pop_front().is_some()
        {
            self.base += 1;
        }
    }

    /// All values with their indices, in ascending order. O(width).
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        (self.base..).zip(&self.slots).filter_map(|(index, slot)| Some((index, slot.as_ref()?)))
    }

    /// Whether nothing is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Indices from the first to the last in use: what the window costs.
    #[must_use]
    pub fn width(&self) -> usize {
        self.slots.len()
    }

    fn offset(&self, index: u64) -> Option<usize> {
        usize::try_from(index.checked_sub(self.base)?).ok()
    }
}

/// A hash map keyed by an id or by a pair of ids.
pub type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// Multiplicative hashing: ids are dense counters of our own making, so there
/// is no attacker to defend against and one multiplication spreads them.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        self.0 = (self.0.rotate_left(26) ^ value).wrapping_mul(GOLDEN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slides_past_removed_values_in_any_order() {
        let mut window = Window::default();
        for index in 10..20 {
            window.insert(index, index);
        }
        for index in (11..20).rev() {
            assert_eq!(window.remove(index), Some(index));
        }
        assert_eq!(window.width(), 10, "the oldest value holds the window open");
        assert_eq!(window.remove(10), Some(10));
        assert!(window.is_empty());
        assert_eq!(window.remove(10), None);
    }

    #[test]
    fn gaps_are_empty() {
        let mut window = Window::default();
        window.insert(1, 'a');
        window.insert(4, 'b');
        assert_eq!(window.get(2), None);
        *window.get_mut(4).unwrap() = 'c';
        assert_eq!(window.remove(4), Some('c'));
        assert_eq!(window.get(1), Some(&'a'));
    }

    #[test]
    #[should_panic(expected = "enters the window once")]
    fn refuses_what_has_left() {
        let mut window = Window::default();
        window.insert(5, ());
        window.insert(6, ());
        window.remove(5);
        window.insert(5, ());
    }

    #[test]
    fn id_maps_keep_pairs_apart() {
        let mut map = IdMap::default();
        for left in 0..64_u64 {
            for right in 0..64_u64 {
                map.insert((left, right), left * 64 + right);
            }
        }
        assert_eq!(map.len(), 64 * 64);
        assert_eq!(map[&(3, 5)], 3 * 64 + 5);
    }
}
