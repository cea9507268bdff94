//! First pass: which node runs which part of a task. The same on all nodes.

use celerity_regions::{Box3, Grid};
use celerity_tdag::Work;

use crate::command::NodeId;

/// The chunks of a task: node `n` runs chunk `n`, nodes beyond the last chunk
/// run nothing (CCGrid 2023, §IV-C: assignment is deterministic).
///
/// No chunk is stored. A task costs the same whether its index space has been seen
/// before or not, on any number of nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Chunks {
    /// A kernel's, cut along planes.
    Split(Grid),
    /// So many nodes run the one item there is.
    Units(usize),
}

impl Chunks {
    /// The chunks of a task that executes something, on so many nodes.
    #[inline]
    pub(crate) fn of(work: &Work, nodes: usize) -> Self {
        match work {
            Work::Device(space) => Self::Split(space.split(&space.extent, nodes)),
            #[cfg(feature = "mutants")]
            Work::HostOnce if celerity_mutants::Mutant::HostTaskEverywhere.is_active() => {
                Self::Units(nodes)
            }
            Work::HostOnce => Self::Units(1),
            Work::Fence => Self::Units(nodes),
            Work::Horizon | Work::Epoch(_) => {
                unreachable!("synchronisation tasks execute nothing")
            }
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Split(grid) => grid.len(),
            Self::Units(nodes) => *nodes,
        }
    }

    /// The chunk of the node at `position`; empty if it runs nothing.
    #[inline]
    pub(crate) fn get(&self, position: usize) -> Box3 {
        match self {
            Self::Split(grid) => grid.get(position).unwrap_or(Box3::EMPTY),
            Self::Units(nodes) if position < *nodes => Box3::UNIT,
            Self::Units(_) => Box3::EMPTY,
        }
    }

    /// Visits all chunks that share an item with `part`, with the nodes that run them,
    /// ascending. O(1 + found).
    #[inline]
    pub(crate) fn for_each_near(&self, part: &Box3, mut visit: impl FnMut(NodeId, Box3)) {
        let node = |position: usize| NodeId::from_index(position as u64);
        match self {
            Self::Split(grid) => grid.for_each_touching(part, |at, chunk| visit(node(at), chunk)),
            Self::Units(nodes) if part.intersects(&Box3::UNIT) => {
                (0..*nodes).for_each(|at| visit(node(at), Box3::UNIT));
            }
            Self::Units(_) => {}
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
    fn a_fence_is_everywhere_and_a_host_task_on_the_first_node() {
        let (fence, host) = (Chunks::of(&Work::Fence, 4), Chunks::of(&Work::HostOnce, 4));
        assert_eq!((fence.len(), fence.get(3)), (4, Box3::UNIT));
        assert_eq!((host.len(), host.get(0), host.get(1)), (1, Box3::UNIT, Box3::EMPTY));
        assert_eq!(near(fence, &Box3::UNIT), [0, 1, 2, 3]);
        assert_eq!((near(host, &Box3::UNIT), near(host, &Box3::EMPTY)), (vec![0], vec![]));
    }
}
