//! Sets of nodes: which nodes hold a copy of something this node owns.

use smallvec::SmallVec;

use celerity_cpd::NodeId;

/// A set of nodes; up to 64 nodes are stored without a heap allocation.
///
/// Canonical: equal sets are equal values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeSet {
    /// Bit `n % 64` of word `n / 64`; the last word is not 0.
    words: SmallVec<[u64; 1]>,
}

impl NodeSet {
    #[inline]
    pub(crate) fn contains(&self, node: NodeId) -> bool {
        let (word, bit) = position(node);
        self.words.get(word).is_some_and(|bits| bits & bit != 0)
    }

    pub(crate) fn insert(&mut self, node: NodeId) {
        #[cfg(feature = "mutants")]
        let node = celerity_mutants::Mutant::ReplicaOfNeighbour
            .alter(node, |node| NodeId::from_index(node.index() + 1));
        let (word, bit) = position(node);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= bit;
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        let (long, short) =
            if self.words.len() >= other.words.len() { (self, other) } else { (other, self) };
        let mut union = long.clone();
        for (bits, more) in union.words.iter_mut().zip(&short.words) {
            *bits |= more;
        }
        union
    }
}

fn position(node: NodeId) -> (usize, u64) {
    (node.slot() / 64, 1 << (node.slot() % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_what_was_inserted_beyond_one_word() {
        let mut set = NodeSet::default();
        for node in [0, 63, 64, 200] {
            set.insert(NodeId::from_index(node));
        }
        let members: Vec<u64> =
            (0..300).filter(|&node| set.contains(NodeId::from_index(node))).collect();
        assert_eq!(members, [0, 63, 64, 200]);
    }

    #[test]
    fn union_does_not_depend_on_the_order() {
        let (mut a, mut b) = (NodeSet::default(), NodeSet::default());
        a.insert(NodeId::from_index(3));
        b.insert(NodeId::from_index(130));
        assert_eq!(a.union(&b), b.union(&a));
        assert!(a.union(&b).contains(NodeId::from_index(3)));
        assert_ne!(a.union(&b), a);
    }
}
