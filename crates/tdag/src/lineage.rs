//! What every graph layer promises about ids and edges, and a check of it.
//! Knows nothing of what the nodes do.

use std::collections::BTreeSet;

use crate::id::GraphId;

/// A promise about ids or edges that is not kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BrokenEdge<I: GraphId> {
    /// Ids are not dense.
    #[error("{found} comes where {expected} is due")]
    Id {
        /// The id that was due.
        expected: I,
        /// The id that came.
        found: I,
    },
    /// An edge that must not be.
    #[error("{later} waits for {on}, {why}")]
    Edge {
        /// The node that waits.
        later: I,
        /// For what.
        on: I,
        /// What is wrong with that.
        why: &'static str,
    },
    /// A node that could start before the program does.
    #[error("{node} waits for nothing")]
    Orphan {
        /// The node.
        node: I,
    },
    /// A horizon or epoch that does not wait for all that is older.
    #[error("{point} does not wait for {missed}, neither directly nor through others")]
    NotReached {
        /// The horizon or epoch.
        point: I,
        /// What it does not wait for.
        missed: I,
    },
}

/// Whether a node stands in for all that is older.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// It does not.
    None,
    /// It does from the next horizon on.
    Horizon,
    /// It does at once.
    Epoch,
}

/// The nodes of a graph as far as the contract of their edges is concerned, fed
/// one by one.
///
/// Ids are dense and start at 0. Nodes wait for older ones, for none twice, and
/// for none that is older than the *synchronisation point*: the last epoch or
/// the last horizon but one, whichever is newer. All but the first wait for
/// something, so they wait for the last epoch. A horizon or epoch waits for
/// everything that is older, directly or not.
///
/// ```
/// use celerity_tdag::{BrokenEdge, Lineage, Point, TaskId};
/// let [a, b, c] = [0, 1, 2].map(TaskId::from_index);
/// let mut lineage = Lineage::default();
/// assert_eq!(lineage.check(a, [], Point::Epoch), []);
/// assert_eq!(lineage.check(b, [a], Point::None), []);
/// let missed = BrokenEdge::NotReached { point: c, missed: b };
/// assert_eq!(lineage.check(c, [a], Point::Horizon), [missed]);
/// ```
#[derive(Clone, Debug)]
pub struct Lineage<I> {
    next: I,
    /// Those that nobody waits for.
    leaves: BTreeSet<I>,
    point: I,
    /// The newest horizon: the next one makes it the point.
    pending: Option<I>,
}

impl<I: GraphId> Default for Lineage<I> {
    fn default() -> Self {
        let first = I::from_index(0);
        Self { next: first, leaves: BTreeSet::new(), point: first, pending: None }
    }
}

impl<I: GraphId> Lineage<I> {
    /// Adds the next node, and says which promises it breaks.
    /// O(edges² + log nodes).
    pub fn check(
        &mut self,
        node: I,
        edges: impl IntoIterator<Item = I>,
        kind: Point,
    ) -> Vec<BrokenEdge<I>> {
        let edges: Vec<I> = edges.into_iter().collect();
        let mut broken = Vec::new();
        if node != self.next {
            broken.push(BrokenEdge::Id { expected: self.next, found: node });
        }
        self.check_edges(node, &edges, &mut broken);
        for on in &edges {
            self.leaves.remove(on);
        }
        if kind != Point::None {
            let missed = std::mem::take(&mut self.leaves).into_iter();
            broken.extend(missed.map(|missed| BrokenEdge::NotReached { point: node, missed }));
        }
        match kind {
            Point::None => {}
            Point::Horizon => self.point = self.pending.replace(node).unwrap_or(self.point),
            Point::Epoch => (self.point, self.pending) = (node, None),
        }
        self.leaves.insert(node);
        self.next = I::from_index(node.index() + 1);
        broken
    }

    /// The synchronisation point: the node that stands in for all that are older.
    #[must_use]
    pub fn point(&self) -> I {
        self.point
    }

    /// How many nodes nobody waits for.
    #[must_use]
    pub fn leaves(&self) -> usize {
        self.leaves.len()
    }

    fn check_edges(&self, node: I, edges: &[I], broken: &mut Vec<BrokenEdge<I>>) {
        if edges.is_empty() && node.index() > 0 {
            broken.push(BrokenEdge::Orphan { node });
        }
        for (position, &on) in edges.iter().enumerate() {
            let why = if on >= node {
                "which is not older"
            } else if on < self.point {
                "which is older than the synchronisation point"
            } else if edges[..position].contains(&on) {
                "a second time"
            } else {
                continue;
            };
            broken.push(BrokenEdge::Edge { later: node, on, why });
        }
    }
}
