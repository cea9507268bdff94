//! Which nodes take part in an operation: a set that follows from who has and who gets something, so
//! that all nodes come to the same. Canonical: equal sets are equal values.

use std::fmt;
use std::sync::Arc;

use crate::node::NodeId;

/// The nodes that take part in a [`Collective`](crate::Collective). Consecutive nodes are a range, and
/// others a list that is shared: a clone is O(1) on any number of nodes.
///
/// ```
/// use celerity_cpd::{Members, NodeId};
/// let node = NodeId::from_index;
/// // Of a cluster of eight nodes.
/// let some = Members::of([node(1), node(2), node(6)], 8);
/// assert_eq!((some.count(8), some.rank(node(6)), some.rank(node(3))), (3, Some(2), None));
/// assert_eq!(some.to_string(), "N1, N2 and N6");
/// assert_eq!(Members::of((0..8).map(node), 8), Members::all());
/// assert_eq!(Members::of([node(3), node(2)], 8).to_string(), "N2 and N3");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Members(Kind);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Kind {
    /// All nodes of the cluster, however many.
    All,
    /// From the first one to before the second one; not all.
    Range(NodeId, NodeId),
    /// In ascending order; not consecutive.
    Listed(Arc<[NodeId]>),
}

impl Members {
    /// All nodes of a cluster.
    #[must_use]
    pub const fn all() -> Self {
        Self(Kind::All)
    }

    /// The nodes from `begin` on and before `end`, in a cluster of so many.
    #[must_use]
    pub fn range(begin: usize, end: usize, cluster: usize) -> Self {
        match (begin, end) {
            (0, end) if end >= cluster => Self::all(),
            _ => Self(Kind::Range(node(begin), node(end))),
        }
    }

    /// Some nodes of a cluster of so many; each may be named more than once, in any order.
    #[must_use]
    pub fn of(nodes: impl IntoIterator<Item = NodeId>, cluster: usize) -> Self {
        let mut nodes: Vec<NodeId> = nodes.into_iter().collect();
        nodes.sort_unstable();
        nodes.dedup();
        match (nodes.first(), nodes.last()) {
            (Some(first), Some(last)) if last.slot() - first.slot() + 1 == nodes.len() => {
                Self::range(first.slot(), last.slot() + 1, cluster)
            }
            (None, _) | (_, None) => Self::range(0, 0, cluster),
            _ => Self(Kind::Listed(nodes.into())),
        }
    }

    /// These and others, of a cluster of so many. O(1) for ranges that touch, or else O(members).
    #[must_use]
    pub fn union(&self, other: &Self, cluster: usize) -> Self {
        match (&self.0, &other.0) {
            (Kind::All, _) | (_, Kind::All) => Self::all(),
            (Kind::Range(from, to), Kind::Range(other_from, other_to))
                if from <= other_to && other_from <= to =>
            {
                let (begin, end) = (*from.min(other_from), *to.max(other_to));
                Self::range(begin.slot(), end.slot(), cluster)
            }
            _ => Self::of(self.iter(cluster).chain(other.iter(cluster)), cluster),
        }
    }

    /// Whether all nodes of the cluster take part.
    #[must_use]
    pub fn are_all(&self) -> bool {
        self.0 == Kind::All
    }

    /// Whether a node takes part.
    #[must_use]
    pub fn contains(&self, node: NodeId) -> bool {
        self.rank(node).is_some()
    }

    /// The position of a node among them; nothing if it takes no part. O(log members).
    #[must_use]
    pub fn rank(&self, node: NodeId) -> Option<usize> {
        match &self.0 {
            Kind::All => Some(node.slot()),
            Kind::Range(begin, end) => {
                (*begin <= node && node < *end).then(|| node.slot() - begin.slot())
            }
            Kind::Listed(nodes) => nodes.binary_search(&node).ok(),
        }
    }

    /// How many of a cluster of so many nodes they are.
    #[must_use]
    pub fn count(&self, cluster: usize) -> usize {
        match &self.0 {
            Kind::All => cluster,
            Kind::Range(begin, end) => end.slot().saturating_sub(begin.slot()),
            Kind::Listed(nodes) => nodes.len(),
        }
    }

    /// They, in ascending order, of a cluster of so many nodes.
    pub fn iter(&self, cluster: usize) -> impl Iterator<Item = NodeId> + '_ {
        let (range, listed) = match &self.0 {
            Kind::All => (0..cluster, &[][..]),
            Kind::Range(begin, end) => (begin.slot()..end.slot(), &[][..]),
            Kind::Listed(nodes) => (0..0, &**nodes),
        };
        range.map(node).chain(listed.iter().copied())
    }

    /// Whether they are at least two nodes of a cluster of so many, and stand for a set in the one way
    /// there is: what a recording says may be anything.
    #[must_use]
    pub fn are_canonical(&self, cluster: usize) -> bool {
        let is_one_of_them = |node: &NodeId| node.slot() < cluster;
        match &self.0 {
            Kind::All => true,
            Kind::Range(begin, end) => {
                *begin < *end && end.slot() <= cluster && end.slot() - begin.slot() < cluster
            }
            Kind::Listed(nodes) => {
                let ascends = nodes.windows(2).all(|pair| pair[0] < pair[1]);
                ascends && nodes.iter().all(is_one_of_them) && {
                    let [first, .., last] = &**nodes else { return false };
                    last.slot() - first.slot() >= nodes.len()
                }
            }
        }
    }
}

fn node(slot: usize) -> NodeId {
    NodeId::from_index(slot as u64)
}

impl fmt::Display for Members {
    /// `all nodes`, `N0 to N5`, or `N1, N2 and N6`; of many, the first ones and how many more.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// More are counted.
        const NAMED: usize = 8;
        let nodes = match &self.0 {
            Kind::All => return f.write_str("all nodes"),
            Kind::Range(begin, end) if end.slot() > begin.slot() + 2 => {
                return write!(f, "{begin} to {}", node(end.slot() - 1));
            }
            Kind::Range(begin, end) => &(begin.slot()..end.slot()).map(node).collect::<Vec<_>>(),
            Kind::Listed(nodes) => &**nodes,
        };
        let named = if nodes.len() > NAMED { NAMED } else { nodes.len().saturating_sub(1) };
        for (at, node) in nodes[..named].iter().enumerate() {
            write!(f, "{}{node}", if at == 0 { "" } else { ", " })?;
        }
        match &nodes[named..] {
            [] => f.write_str("no node"),
            [last] if named == 0 => write!(f, "{last}"),
            [last] => write!(f, " and {last}"),
            more => write!(f, " and {} more", more.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(nodes: &[usize]) -> Members {
        Members::of(nodes.iter().copied().map(node), 8)
    }

    #[test]
    fn equal_sets_are_equal_values() {
        assert_eq!(of(&[5, 4, 6, 4]), Members::range(4, 7, 8));
        assert_eq!(of(&[0, 1, 2, 3, 4, 5, 6, 7]), Members::all());
        assert_eq!(of(&[0, 3]).union(&of(&[1, 2]), 8), Members::range(0, 4, 8));
        assert_eq!(of(&[0, 1]).union(&of(&[2]), 8), Members::range(0, 3, 8));
        assert_eq!(of(&[0, 1]).union(&of(&[5]), 8), of(&[5, 1, 0]));
        assert_eq!(of(&[0, 1]).union(&Members::all(), 8), Members::all());
        assert_eq!(Members::range(0, 4, 8).union(&Members::range(3, 8, 8), 8), Members::all());
    }

    #[test]
    fn ranks_are_positions() {
        for set in [of(&[0, 2, 7]), of(&[2, 3, 4]), of(&[6]), Members::all(), of(&[])] {
            let members: Vec<_> = set.iter(8).collect();
            assert_eq!(members.len(), set.count(8), "{set}");
            for at in (0..8).map(node) {
                let position = members.iter().position(|one| *one == at);
                assert_eq!((set.rank(at), set.contains(at)), (position, position.is_some()));
            }
        }
    }

    #[test]
    fn what_stands_for_a_set_in_another_way_is_no_canonical_one() {
        for set in [of(&[0, 2, 7]), of(&[2, 3, 4]), Members::all(), of(&[0, 7])] {
            assert!(set.are_canonical(8), "{set}");
        }
        let listed = |nodes: &[usize]| {
            Members(Kind::Listed(nodes.iter().copied().map(node).collect::<Vec<_>>().into()))
        };
        for nodes in [&[0, 1][..], &[3, 1], &[1, 1, 3], &[1, 8], &[4], &[]] {
            assert!(!listed(nodes).are_canonical(8), "{nodes:?}");
        }
        for (begin, end) in [(0, 8), (3, 3), (5, 2), (5, 9)] {
            let range = Members(Kind::Range(node(begin), node(end)));
            assert!(!range.are_canonical(8), "{begin}..{end}");
        }
    }

    #[test]
    fn they_are_named_briefly() {
        let said = |nodes: &[usize]| of(nodes).to_string();
        assert_eq!(said(&[]), "no node");
        assert_eq!(said(&[3]), "N3");
        assert_eq!(said(&[3, 4]), "N3 and N4");
        assert_eq!(said(&[3, 4, 5]), "N3 to N5");
        assert_eq!(said(&[0, 4, 7]), "N0, N4 and N7");
        let odd = Members::of((0..20).map(|at| node(2 * at)), 40);
        assert_eq!(odd.to_string(), "N0, N2, N4, N6, N8, N10, N12, N14 and 12 more");
    }
}
