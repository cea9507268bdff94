//! Collective groups: tasks that run on all nodes at the same time, one after another within a
//! group. Owns what names a group, and who was in it last; knows neither nodes nor communicators.
//!
//! ```
//! use celerity_tdag::{CollectiveGroup, GroupOrder, TaskId};
//! let (files, plots) = (CollectiveGroup::new(0, "files"), CollectiveGroup::new(1, "plots"));
//! let [first, second, third] = [1, 2, 3].map(TaskId::from_index);
//! let mut order = GroupOrder::default();
//! assert_eq!(order.follow(files, first), None);
//! assert_eq!(order.follow(plots, second), None); // groups do not wait for each other
//! assert_eq!(order.follow(files, third), Some(first));
//! ```

use std::fmt;
use std::num::NonZeroU16;

use crate::id::GraphId;

/// A group of collective tasks: a number, dense in order of first use, and what its name comes
/// to. Both are the same on all nodes, if these run the same program.
///
/// `Display` writes `G1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(remote = "Self"))]
pub struct CollectiveGroup {
    /// One more than its number, so that a task without a group, which most are, is told in the
    /// same word: tasks are moved more often than they are asked for their group.
    ordinal: NonZeroU16,
    name: u32,
}

impl CollectiveGroup {
    /// So many groups a run may have: each has a thread of its own on every node.
    pub const MOST: usize = 128;

    /// The group of this name, which is the `number`th of its run, counted from 0.
    ///
    /// # Panics
    /// If `number` is not below [`MOST`](Self::MOST).
    #[must_use]
    pub fn new(number: usize, name: &str) -> Self {
        assert!(number < Self::MOST, "there is no collective group {number}");
        // FNV-1a: the same on every machine, unlike the hashes of the standard library.
        let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        let name = name.bytes().fold(0xcbf2_9ce4_8422_2325, step);
        let ordinal = u16::try_from(number + 1).ok().and_then(NonZeroU16::new);
        let ordinal = ordinal.expect("at least 1, and checked above");
        Self { ordinal, name: (name ^ (name >> 32)) as u32 }
    }

    /// Its number, below [`MOST`](Self::MOST).
    #[must_use]
    pub const fn number(self) -> u16 {
        self.ordinal.get() - 1
    }

    /// A hash of its name.
    #[must_use]
    pub const fn name_hash(self) -> u32 {
        self.name
    }
}

impl fmt::Display for CollectiveGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "G{}", self.number())
    }
}

/// The newest member of each group, in one graph. O(1) per member; as large as there are groups.
#[derive(Clone, Debug)]
pub struct GroupOrder<I> {
    newest: Vec<Option<I>>,
}

impl<I> Default for GroupOrder<I> {
    fn default() -> Self {
        Self { newest: Vec::new() }
    }
}

impl<I: GraphId> GroupOrder<I> {
    /// The newest member of a group, if there is one.
    #[must_use]
    pub fn newest(&self, group: CollectiveGroup) -> Option<I> {
        self.newest.get(usize::from(group.number())).copied().flatten()
    }

    /// Adds `member` to its group. Returns who was the newest before: the new one comes after it.
    pub fn follow(&mut self, group: CollectiveGroup, member: I) -> Option<I> {
        let slot = usize::from(group.number());
        if self.newest.len() <= slot {
            self.newest.resize(slot + 1, None);
        }
        self.newest[slot].replace(member)
    }
}
