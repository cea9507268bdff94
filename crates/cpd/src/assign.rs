//! First pass: which node runs which part of a task. The same on all nodes.

use celerity_regions::{Box3, Grid};
use celerity_tdag::Work;

use crate::node::NodeId;

/// The chunks of a task: node `n` runs chunk `n`, nodes beyond the last chunk
/// run nothing (CCGrid 2023, §IV-C: assignment is deterministic).
///
/// No chunk is stored. A task costs the same whether its index space has been seen
/// before or not, on any number of nodes.
#[derive(Clone, Copy, Debug)]
pub enum Chunks {
    /// A kernel's, or a fold's after it, cut along planes.
    Split(Grid),
    /// So many nodes run the one item there is.
    Units(usize),
    /// This node runs the one item there is.
    Single(usize),
}

impl Chunks {
    /// The chunks of a task that executes something, on so many nodes.
    ///
    /// # Panics
    /// If it executes nothing: a forward, a horizon or an epoch.
    #[must_use]
    #[inline]
    pub fn of(work: &Work, nodes: usize) -> Self {
        match work {
            Work::Device(space) | Work::HostSplit { space, .. } => {
                Self::Split(space.split(&space.extent, nodes))
            }
            #[cfg(feature = "mutants")]
            Work::HostOnce { .. } if celerity_mutants::Mutant::HostTaskEverywhere.is_active() => {
                Self::Units(nodes)
            }
            Work::HostOnce { node } => {
                let node =
                    usize::try_from(node % nodes as u64).expect("nodes are counted in usize");
                #[cfg(feature = "mutants")]
                let node = celerity_mutants::Mutant::HostTaskOnFirstNode.alter(node, |_| 0);
                Self::Single(node)
            }
            Work::Fence | Work::Combine { .. } => Self::Units(nodes),
            Work::Forward | Work::Horizon | Work::Epoch(_) => {
                panic!("forwards and synchronisation tasks execute nothing")
            }
        }
    }

    /// How many there are.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::Split(grid) => grid.len(),
            Self::Units(nodes) => *nodes,
            Self::Single(_) => 1,
        }
    }

    /// Whether there are none: no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The chunk of the node at `position`; empty if it runs nothing.
    #[must_use]
    #[inline]
    pub fn get(&self, position: usize) -> Box3 {
        match self {
            Self::Split(grid) => grid.get(position).unwrap_or(Box3::EMPTY),
            Self::Units(nodes) if position < *nodes => Box3::UNIT,
            Self::Single(node) if position == *node => Box3::UNIT,
            Self::Units(_) | Self::Single(_) => Box3::EMPTY,
        }
    }

    /// Visits all chunks that share an item with `part`, with the nodes that run them,
    /// ascending. O(1 + found).
    #[inline]
    pub fn for_each_near(&self, part: &Box3, mut visit: impl FnMut(NodeId, Box3)) {
        let node = |position: usize| NodeId::from_index(position as u64);
        match self {
            Self::Split(grid) => grid.for_each_touching(part, |at, chunk| visit(node(at), chunk)),
            Self::Units(nodes) if part.intersects(&Box3::UNIT) => {
                (0..*nodes).for_each(|at| visit(node(at), Box3::UNIT));
            }
            Self::Single(at) if part.intersects(&Box3::UNIT) => {
                visit(node(*at), Box3::UNIT);
            }
            Self::Units(_) | Self::Single(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use celerity_tdag::IndexSpace;

    fn near(chunks: Chunks, part: &Box3) -> Vec<usize> {
        let mut near = Vec::new();
        chunks.for_each_near(part, |node, chunk| {
            assert_eq!(chunk, chunks.get(node.slot()));
            near.push(node.slot());
        });
        near
    }

    #[test]
    fn a_kernel_is_split_and_nodes_without_a_chunk_run_nothing() {
        let space = IndexSpace::new(1, Box3::from_range([3]));
        let chunks = Chunks::of(&Work::Device(space), 5);
        assert_eq!((chunks.len(), chunks.get(1)), (3, Box3::from_offset_range([1], [1])));
        assert_eq!((chunks.get(3), chunks.get(9)), (Box3::EMPTY, Box3::EMPTY));
        assert_eq!(near(chunks, &Box3::from_offset_range([1], [7])), [1, 2]);
    }

    #[test]
    fn a_fence_is_everywhere_and_a_host_task_on_the_node_that_it_names() {
        let of_host = |node| Chunks::of(&Work::HostOnce { node }, 4);
        let (fence, host) = (Chunks::of(&Work::Fence, 4), of_host(0));
        assert_eq!((fence.len(), fence.get(3)), (4, Box3::UNIT));
        assert_eq!((host.len(), host.get(0), host.get(1)), (1, Box3::UNIT, Box3::EMPTY));
        assert_eq!(near(fence, &Box3::UNIT), [0, 1, 2, 3]);
        assert_eq!((near(host, &Box3::UNIT), near(host, &Box3::EMPTY)), (vec![0], vec![]));
        for (named, node) in [(2, 2), (3, 3), (6, 2)] {
            let chunks = of_host(named);
            assert_eq!((chunks.len(), chunks.get(node)), (1, Box3::UNIT));
            assert_eq!((chunks.get(0), chunks.get(4)), (Box3::EMPTY, Box3::EMPTY));
            assert_eq!(near(chunks, &Box3::UNIT), [node]);
        }
    }

    #[test]
    fn a_host_task_is_split_as_a_kernel_is() {
        let space = IndexSpace::new(1, Box3::from_range([4]));
        let chunks = Chunks::of(&Work::HostSplit { space, group: None }, 4);
        for node in 0..4 {
            assert_eq!(chunks.get(node), Box3::from_offset_range([node], [1]));
        }
    }
}
