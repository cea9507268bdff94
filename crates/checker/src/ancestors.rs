//! Who waits for whom, transitively: a set of ancestors for every node of a
//! window, one bit each. Knows ids only; its window begins where its owner
//! says that older nodes do not matter any more.

/// The ancestors of each node since `first`.
///
/// Row `n` holds a bit for each node from (about) `first` to `n` itself. Rows
/// begin at a multiple of 64, so that forgetting old nodes drops whole words.
/// A new node costs one pass over the rows of its predecessors, O(edges ·
/// window / 64); a question O(1); the window takes O(window² / 64) words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ancestors {
    first: u64,
    /// Words left out at the front of each row.
    skipped: usize,
    words: Vec<u64>,
    /// Where each row begins in `words`.
    starts: Vec<usize>,
}

impl Ancestors {
    /// Appends the next node; `edges` must lie in the window.
    pub(crate) fn push(&mut self, edges: &[u64]) {
        let node = self.first + self.starts.len() as u64;
        let start = self.words.len();
        self.starts.push(start);
        self.words.resize(start + word(node) - self.skipped + 1, 0);
        let (older, row) = self.words.split_at_mut(start);
        for &edge in edges {
            let slot = (edge - self.first) as usize;
            let begin = self.starts[slot];
            let length = word(edge) - self.skipped + 1;
            let theirs = &older[begin..begin + length];
            row.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine |= theirs);
        }
        row[word(node) - self.skipped] |= bit(node);
    }

    /// Whether `later` is, or waits for, `earlier`. What is older than the
    /// window is taken to be the window's first node, which stands in for it.
    pub(crate) fn waits_for(&self, later: u64, earlier: u64) -> bool {
        let earlier = earlier.max(self.first);
        if later <= earlier {
            return later == earlier;
        }
        let row = self.starts[(later - self.first) as usize];
        self.words[row + word(earlier) - self.skipped] & bit(earlier) != 0
    }

    /// Forgets all nodes before `first`.
    pub(crate) fn forget_before(&mut self, first: u64) {
        let dropped = (first - self.first) as usize;
        let skipped = word(first);
        let shorter = skipped - self.skipped;
        let mut words = Vec::with_capacity(self.words.len() / 2);
        let mut starts = Vec::with_capacity(self.starts.len());
        for slot in dropped..self.starts.len() {
            let end = self.starts.get(slot + 1).copied().unwrap_or(self.words.len());
            starts.push(words.len());
            words.extend_from_slice(&self.words[self.starts[slot] + shorter..end]);
        }
        *self = Self { first, skipped, words, starts };
    }
}

fn word(node: u64) -> usize {
    (node / 64) as usize
}

fn bit(node: u64) -> u64 {
    1 << (node % 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// By depth-first search, from the beginning of time.
    fn naive(edges: &[Vec<u64>], later: u64, earlier: u64) -> bool {
        later == earlier
            || edges[later as usize].iter().any(|&on| on >= earlier && naive(edges, on, earlier))
    }

    proptest! {
        #[test]
        fn rows_equal_naive_reachability(
            shape in prop::collection::vec(prop::collection::vec(1..90u64, 0..3), 1..180),
            forget_every in 20..90usize,
        ) {
            let mut ancestors = Ancestors::default();
            let mut edges: Vec<Vec<u64>> = Vec::new();
            let mut first = 0;
            for (node, backwards) in shape.iter().enumerate() {
                if node % forget_every == forget_every - 1 {
                    first = (node - forget_every / 2) as u64;
                    ancestors.forget_before(first);
                }
                let node = node as u64;
                let within = |back: &u64| node.checked_sub(*back).filter(|&on| on >= first);
                edges.push(backwards.iter().filter_map(within).collect());
                ancestors.push(edges.last().expect("just added"));
                for earlier in first..=node {
                    let expected = naive(&edges, node, earlier);
                    prop_assert_eq!(ancestors.waits_for(node, earlier), expected);
                }
            }
        }
    }

    #[test]
    fn the_first_node_stands_in_for_older_ones() {
        let mut ancestors = Ancestors::default();
        ancestors.push(&[]);
        ancestors.push(&[0]);
        ancestors.push(&[1]);
        ancestors.forget_before(2);
        ancestors.push(&[2]);
        ancestors.push(&[]);
        assert!(ancestors.waits_for(3, 0));
        assert!(!ancestors.waits_for(4, 0));
        assert!(!ancestors.waits_for(3, 4), "nobody waits for a later node");
    }
}
