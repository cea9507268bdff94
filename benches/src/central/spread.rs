//! Where in the cluster a part of a buffer is. Knows nothing of what is done
//! with it.

use celerity_cdag::NodeId;
use smallvec::SmallVec;

/// Who wrote a part of a buffer, and who has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spread {
    /// `None` for initial contents, which are on all nodes.
    owner: Option<NodeId>,
    /// Nodes that have received a copy.
    copies: NodeSet,
}

impl Spread {
    pub(super) fn everywhere() -> Self {
        Self { owner: None, copies: NodeSet::default() }
    }

    pub(super) fn only_on(owner: NodeId) -> Self {
        Self { owner: Some(owner), copies: NodeSet::default() }
    }

    /// The node that has to send this part to `node`; `None` if it is there.
    pub(super) fn sender_to(&self, node: NodeId) -> Option<NodeId> {
        self.owner.filter(|&owner| owner != node && !self.copies.contains(node))
    }

    pub(super) fn with_copies(&self, receivers: &NodeSet) -> Self {
        Self { owner: self.owner, copies: self.copies.union(receivers) }
    }
}

/// A set of nodes, one bit each; up to 64 nodes without a heap allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeSet(SmallVec<[u64; 1]>);

impl NodeSet {
    pub(super) fn insert(&mut self, node: NodeId) {
        let (word, bit) = (node.slot() / 64, 1 << (node.slot() % 64));
        self.0.resize(self.0.len().max(word + 1), 0);
        self.0[word] |= bit;
    }

    fn contains(&self, node: NodeId) -> bool {
        self.0.get(node.slot() / 64).is_some_and(|bits| bits >> (node.slot() % 64) & 1 == 1)
    }

    fn union(&self, other: &Self) -> Self {
        let (long, short) =
            if self.0.len() < other.0.len() { (other, self) } else { (self, other) };
        let mut union = long.clone();
        union.0.iter_mut().zip(&short.0).for_each(|(bits, more)| *bits |= more);
        union
    }
}
