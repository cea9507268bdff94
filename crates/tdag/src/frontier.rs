//! What every graph layer keeps of its own recent nodes: which have no
//! successor yet, how long the longest chain is, and which synchronisation
//! point stands in for everything older. Knows ids, not what the nodes do.
//!
//! ```
//! use celerity_tdag::{Dependencies, DependencyKind, Frontier, TaskId};
//!
//! let mut frontier = Frontier::<TaskId>::new();
//! let epoch = frontier.push(&Dependencies::default());
//! let mut deps = Dependencies::default();
//! deps.add(epoch, DependencyKind::Order);
//! let (a, b) = (frontier.push(&deps), frontier.push(&deps));
//! assert_eq!(frontier.leaves().collect::<Vec<_>>(), [a, b]);
//! assert_eq!(frontier.depth(), 1);
//!
//! // A horizon waits for all leaves; once it is applied it replaces them.
//! let horizon = frontier.push(&frontier.after_all_leaves());
//! frontier.synchronize_at(horizon);
//! assert_eq!(frontier.representative(a), horizon);
//! ```

use std::marker::PhantomData;

use smallvec::SmallVec;

use crate::dependency::{Dependencies, DependencyKind};
use crate::id::GraphId;

/// The recent nodes of a graph, oldest first.
///
/// Laws: ids are handed out densely by [`push`](Self::push); a dependency
/// never names a node older than the synchronisation point (callers pass every
/// id through [`representative`](Self::representative) first).
#[derive(Clone, Debug)]
pub struct Frontier<I> {
    /// Looked up far more often than shortened, so a list and not a queue.
    nodes: Vec<Recent>,
    /// Index of `nodes[0]`, which is the synchronisation point.
    base: u64,
    /// All leaves have at least this index.
    oldest_leaf: u64,
    leaves: usize,
    depth: u64,
    id: PhantomData<I>,
}

#[derive(Clone, Copy, Debug)]
struct Recent {
    depth: u64,
    /// The index of its newest successor; 0, which nothing comes before, if it has none.
    successor: u64,
}

impl Recent {
    fn is_leaf(&self) -> bool {
        self.successor == 0
    }
}

/// As many nodes as small programs have between two horizons.
const USUAL_WINDOW: usize = 32;

impl<I: GraphId> Default for Frontier<I> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: GraphId> Frontier<I> {
    /// The frontier of a graph without nodes.
    #[must_use]
    pub fn new() -> Self {
        Self {
            nodes: Vec::with_capacity(USUAL_WINDOW),
            base: 0,
            oldest_leaf: 0,
            leaves: 0,
            depth: 0,
            id: PhantomData,
        }
    }

    /// The id that the next node will get.
    #[must_use]
    #[inline]
    pub fn next_id(&self) -> I {
        I::from_index(self.base + self.nodes.len() as u64)
    }

    /// Adds a node; O(its dependencies).
    pub fn push(&mut self, dependencies: &Dependencies<I>) -> I {
        self.push_after(dependencies.iter().map(|dep| dep.on))
    }

    /// Adds a node that waits for the given nodes.
    pub fn push_after(&mut self, predecessors: impl Iterator<Item = I>) -> I {
        let (id, mut depth) = (self.next_id(), 0);
        for on in predecessors {
            let _ = self.precede(on, id, &mut depth);
        }
        self.append(id, depth)
    }

    /// Adds a node that waits for the given nodes, some of which may be named more than once:
    /// each is left there once. O(predecessors): nobody has to look for doubles.
    #[inline]
    pub fn push_after_each<const N: usize>(&mut self, predecessors: &mut SmallVec<[I; N]>) -> I {
        let (id, mut depth) = (self.next_id(), 0);
        let mut kept = 0;
        let list = predecessors.as_mut_slice();
        for position in 0..list.len() {
            let on = list[position];
            if self.precede(on, id, &mut depth) {
                list[kept] = on;
                kept += 1;
            }
        }
        if kept < predecessors.len() {
            predecessors.truncate(kept);
            predecessors.shrink_to_fit();
        }
        self.append(id, depth)
    }

    /// Lets node `on` come before the next one, `id`, whose depth this may increase. Whether it
    /// did not already.
    #[inline]
    fn precede(&mut self, on: I, id: I, depth: &mut u64) -> bool {
        let node = &mut self.nodes[slot(self.base, on)];
        let is_new = node.successor != id.index();
        self.leaves -= usize::from(node.is_leaf());
        node.successor = id.index();
        *depth = (*depth).max(node.depth + 1);
        is_new
    }

    #[inline]
    fn append(&mut self, id: I, depth: u64) -> I {
        self.nodes.push(Recent { depth, successor: 0 });
        self.leaves += 1;
        self.depth = self.depth.max(depth);
        id
    }

    /// The nodes without a successor, oldest first. O(nodes since the last
    /// node that had waited for all leaves).
    pub fn leaves(&self) -> impl Iterator<Item = I> + '_ {
        let skipped = usize::try_from(self.oldest_leaf - self.base).expect("a window in memory");
        let recent = self.nodes.iter().enumerate().skip(skipped);
        recent
            .filter(|(_, node)| node.is_leaf())
            .map(|(slot, _)| I::from_index(self.base + slot as u64))
    }

    /// Number of nodes without a successor.
    #[must_use]
    pub fn leaf_count(&self) -> usize {
        self.leaves
    }

    /// Edges on the longest chain so far.
    #[must_use]
    pub fn depth(&self) -> u64 {
        self.depth
    }

    /// Dependencies on all leaves: what a horizon or epoch waits for.
    #[must_use]
    pub fn after_all_leaves(&self) -> Dependencies<I> {
        let mut dependencies = Dependencies::default();
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::HorizonMissesLeaf.is_active() && self.leaves > 1 {
            let newer = self.leaves().skip(1);
            newer.for_each(|leaf| dependencies.push_new(leaf, DependencyKind::Order));
            return dependencies;
        }
        self.leaves().for_each(|leaf| dependencies.push_new(leaf, DependencyKind::Order));
        dependencies
    }

    /// Tells that `node`, the newest one, waits for all others, so that older
    /// nodes need not be looked at when leaves are collected.
    pub fn closed_by(&mut self, node: I) {
        debug_assert_eq!(self.leaves, 1, "{node} does not wait for all leaves");
        self.oldest_leaf = node.index();
    }

    /// Makes `node` the synchronisation point: it stands in for all older ones.
    /// O(nodes since the last synchronisation point).
    pub fn synchronize_at(&mut self, node: I) {
        #[cfg(feature = "mutants")]
        let node = celerity_mutants::Mutant::HorizonOffByOne
            .alter(node, |node| I::from_index(node.index().max(self.base + 1) - 1));
        let older = slot(self.base, node);
        self.nodes.drain(..older);
        self.base = node.index();
        self.oldest_leaf = self.oldest_leaf.max(self.base);
    }

    /// The current synchronisation point.
    #[must_use]
    #[inline]
    pub fn synchronization_point(&self) -> I {
        I::from_index(self.base)
    }

    /// The node to depend on instead of `node`: itself, or the synchronisation
    /// point if `node` is older. O(1), so tracking structures are never
    /// rewritten when a horizon is applied.
    #[must_use]
    #[inline]
    pub fn representative(&self, node: I) -> I {
        node.max(I::from_index(self.base))
    }
}

fn slot<I: GraphId>(base: u64, node: I) -> usize {
    debug_assert!(node.index() >= base, "{node} lies before the synchronisation point");
    usize::try_from(node.index() - base).expect("a window fits in memory")
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::id::TaskId;

    #[test]
    fn who_is_named_twice_is_left_once() {
        let mut frontier = Frontier::<TaskId>::new();
        let epoch = frontier.push_after([].into_iter());
        let [a, b, c] = [0; 3].map(|_| frontier.push_after([epoch].into_iter()));
        let mut named: SmallVec<[TaskId; 2]> = smallvec![b, a, b, b, a, epoch, b];
        let last = frontier.push_after_each(&mut named);
        assert_eq!((named.as_slice(), named.spilled()), (&[b, a, epoch][..], true));
        assert_eq!(frontier.leaves().collect::<Vec<_>>(), [c, last]);
        assert_eq!((frontier.leaf_count(), frontier.depth()), (2, 2));
        // The same nodes again, for another one: it is no double of the last.
        let mut named: SmallVec<[TaskId; 2]> = smallvec![a, a, b];
        frontier.push_after_each(&mut named);
        assert_eq!((named.as_slice(), named.spilled()), (&[a, b][..], false));
    }
}
