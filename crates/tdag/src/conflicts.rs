//! Conflicts between the nodes of a graph, for every layer's graphs: undirected edges beside the
//! [dependencies](crate::Dependencies) (IJPP 2022, §4.3). Knows ids, not what the nodes do.

use std::fmt;

use crate::dependency::Dependencies;
use crate::id::GraphId;

/// The earlier nodes that a node must not run at the same time as, in either order: ascending,
/// none twice. The edges are undirected; the later node keeps them.
///
/// ```
/// use celerity_tdag::{Conflicts, TaskId};
/// let [a, b] = [3, 5].map(TaskId::from_index);
/// let conflicts = Conflicts::of([b, a, b]);
/// assert_eq!(conflicts.as_slice(), [a, b]);
/// ```
#[derive(Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Conflicts<I>(Box<[I]>);

impl<I> Default for Conflicts<I> {
    fn default() -> Self {
        Self(Box::default())
    }
}

impl<I: GraphId> Conflicts<I> {
    /// Conflicts with the given nodes, which may come in any order and more than once.
    /// O(nodes · log nodes); nothing is allocated if there are none.
    pub fn of(nodes: impl IntoIterator<Item = I>) -> Self {
        let mut nodes: Vec<I> = nodes.into_iter().collect();
        nodes.sort_unstable();
        nodes.dedup();
        Self(nodes.into())
    }

    /// The ids, in ascending order.
    #[must_use]
    pub fn as_slice(&self) -> &[I] {
        &self.0
    }

    /// Whether the node may run at the same time as any other.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first conflict of `node` that breaks the contract, and how: it is with an older node
    /// since the synchronisation point `point`, comes once and in order, and is none of its
    /// `dependencies`. O(conflicts · dependencies).
    #[must_use]
    pub fn broken(
        &self,
        node: I,
        point: I,
        dependencies: &Dependencies<I>,
    ) -> Option<(I, &'static str)> {
        let depends = |on: I| dependencies.kind_of(on).is_some();
        self.broken_by(node, point, depends)
    }

    /// The same for a node whose dependencies are known to `depends`.
    #[must_use]
    pub fn broken_by(
        &self,
        node: I,
        point: I,
        depends: impl Fn(I) -> bool,
    ) -> Option<(I, &'static str)> {
        self.0.iter().enumerate().find_map(|(position, &with)| {
            let why = if with >= node {
                "which is not older"
            } else if with < point {
                "which is older than the synchronisation point"
            } else if position > 0 && self.0[position - 1] >= with {
                "out of order"
            } else if depends(with) {
                "which it depends on"
            } else {
                return None;
            };
            Some((with, why))
        })
    }
}

impl<I: fmt::Debug> fmt::Debug for Conflicts<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}
