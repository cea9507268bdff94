//! Lists of successors and predecessors of all instructions in one arena with a free list, so that
//! edges cost no heap allocation in steady state.

/// An edge of the pool, or the end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EdgeRef(u32);

const END: EdgeRef = EdgeRef(u32::MAX);

/// A list of edges in order of insertion; owned by one instruction.
#[derive(Debug)]
pub(super) struct EdgeList {
    first: EdgeRef,
    last: EdgeRef,
}

impl EdgeList {
    pub(super) fn is_empty(&self) -> bool {
        self.first == END
    }

    pub(super) fn first(&self) -> EdgeRef {
        self.first
    }
}

impl Default for EdgeList {
    fn default() -> Self {
        Self { first: END, last: END }
    }
}

#[derive(Debug)]
struct Edge {
    other: u64,
    next: EdgeRef,
}

#[derive(Debug)]
pub(super) struct EdgePool {
    edges: Vec<Edge>,
    free: EdgeRef,
}

impl Default for EdgePool {
    fn default() -> Self {
        Self { edges: Vec::new(), free: END }
    }
}

impl EdgePool {
    pub(super) fn append(&mut self, list: &mut EdgeList, other: u64) {
        let edge = self.allocate(other);
        match list.last {
            END => list.first = edge,
            EdgeRef(last) => self.edges[last as usize].next = edge,
        }
        list.last = edge;
    }

    /// The instruction that `edge` leads to, and the next edge.
    pub(super) fn get(&self, edge: EdgeRef) -> Option<(u64, EdgeRef)> {
        if edge == END {
            return None;
        }
        let Edge { other, next } = self.edges[edge.0 as usize];
        Some((other, next))
    }

    /// Like [`get`](Self::get), and gives the edge back.
    pub(super) fn pop(&mut self, edge: EdgeRef) -> Option<(u64, EdgeRef)> {
        let found = self.get(edge)?;
        self.edges[edge.0 as usize].next = self.free;
        self.free = edge;
        Some(found)
    }

    /// How many are in some list.
    #[cfg(test)]
    pub(super) fn live(&self) -> usize {
        let free = |edge: &EdgeRef| match *edge {
            END => None,
            EdgeRef(index) => Some(self.edges[index as usize].next),
        };
        self.edges.len() + 1 - std::iter::successors(Some(self.free), free).count()
    }

    fn allocate(&mut self, other: u64) -> EdgeRef {
        let fresh = Edge { other, next: END };
        match self.free {
            END => {
                let index = u32::try_from(self.edges.len()).expect("fewer than 2^32 live edges");
                self.edges.push(fresh);
                EdgeRef(index)
            }
            EdgeRef(index) => {
                self.free = self.edges[index as usize].next;
                self.edges[index as usize] = fresh;
                EdgeRef(index)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_their_order_and_edges_are_reused() {
        let mut pool = EdgePool::default();
        for round in 0..10 {
            let mut list = EdgeList::default();
            (0..5).for_each(|other| pool.append(&mut list, other + round));
            let mut edge = list.first();
            let mut seen = Vec::new();
            while let Some((other, next)) = pool.pop(edge) {
                seen.push(other);
                edge = next;
            }
            assert_eq!(seen, (round..round + 5).collect::<Vec<_>>());
        }
        assert_eq!(pool.edges.len(), 5);
    }
}
