//! Dependencies between the nodes of a graph, for every layer's graphs.

use std::fmt;

use smallvec::SmallVec;

/// Why one node must wait for another.
///
/// The order is that of strength: when two reasons join the same pair of
/// nodes, the larger one is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum DependencyKind {
    /// Order alone: an epoch, a horizon, or the one before in a collective group.
    Order,
    /// The successor overwrites what the predecessor wrote.
    Output,
    /// The successor overwrites what the predecessor reads.
    Anti,
    /// The successor reads what the predecessor wrote, or meets a host object as the predecessor
    /// left it.
    True,
}

/// An edge to an earlier node of the same graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Dependency<I> {
    /// The node to wait for.
    pub on: I,
    /// Why it waits: what of the earlier node it needs, or must not disturb.
    pub kind: DependencyKind,
}

/// The dependencies of one node: at most one per predecessor, in order of
/// discovery. Up to four are stored without a heap allocation.
///
/// ```
/// use celerity_tdag::{Dependencies, DependencyKind, TaskId};
/// let (a, b) = (TaskId::from_index(1), TaskId::from_index(2));
/// let mut deps = Dependencies::default();
/// deps.add(a, DependencyKind::Anti);
/// deps.add(b, DependencyKind::Output);
/// deps.add(a, DependencyKind::True); // strengthens the first
/// assert_eq!(deps.kind_of(a), Some(DependencyKind::True));
/// assert_eq!(deps.len(), 2);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Dependencies<I>(SmallVec<[Dependency<I>; 4]>);

impl<I: Copy + PartialEq> Dependencies<I> {
    /// Adds an edge, or strengthens the one that exists. O(edges of this node).
    pub fn add(&mut self, on: I, kind: DependencyKind) {
        match self.0.iter_mut().find(|dep| dep.on == on) {
            Some(dep) => dep.kind = dep.kind.max(kind),
            None => self.0.push(Dependency { on, kind }),
        }
    }

    /// The given edges, no two of which lead to the same node.
    #[cfg(feature = "serde")]
    pub(crate) fn from_distinct(edges: Vec<Dependency<I>>) -> Self {
        Self(SmallVec::from_vec(edges))
    }

    /// Adds an edge to a node that is known not to be there yet. O(1).
    pub fn push_new(&mut self, on: I, kind: DependencyKind) {
        debug_assert!(self.kind_of(on).is_none(), "the edge exists already");
        self.0.push(Dependency { on, kind });
    }

    /// The kind of the edge to `on`, if there is one.
    #[must_use]
    pub fn kind_of(&self, on: I) -> Option<DependencyKind> {
        self.0.iter().find(|dep| dep.on == on).map(|dep| dep.kind)
    }

    /// The edges, each once, with the reason for each.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Dependency<I>> + '_ {
        self.0.iter().copied()
    }

    /// How many edges there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the node waits for nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<I> Default for Dependencies<I> {
    fn default() -> Self {
        Self(SmallVec::new())
    }
}

impl<I: fmt::Debug> fmt::Debug for Dependencies<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|dep| (&dep.on, &dep.kind))).finish()
    }
}
