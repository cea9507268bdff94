//! User mistakes that can be seen only after work has been assigned.

use std::sync::Arc;

use celerity_regions::Region;

use celerity_cpd::NodeId;

/// A mistake in the user's program. The graph of this node stays well-formed, but results
/// are not defined any more, and what two nodes take for theirs, each of them sends: whoever runs the graph should
/// end the run, as messages may come that nobody awaits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Diagnostic {
    /// Two nodes write the same elements (instruction-graph preprint, §4.4).
    #[error(
        "{task} writes {region} of buffer \"{buffer}\" on {first} and on {second}; its range \
         mapper promises disjoint images of disjoint chunks, but does not keep the promise"
    )]
    OverlappingWrites {
        /// The task, with its source line.
        task: String,
        /// The buffer's name: the one that the program gave it, or its id, `B0`.
        buffer: Arc<str>,
        /// The elements that both chunks write.
        region: Region,
        /// One of the nodes.
        first: NodeId,
        /// The other node that writes it.
        second: NodeId,
    },
    /// An access touches on one node what another access writes on another, or the other way
    /// round.
    #[error(
        "{task} shares {region} of buffer \"{buffer}\" between two accesses, one of which writes: it \
         {} on {}, and {} on {}; their range mappers say of the whole index space that they share \
         nothing, but not of its chunks: r(A ∪ B) = r(A) ∪ r(B) must hold",
        accesses[0], nodes[0], accesses[1], nodes[1]
    )]
    SharedElements {
        /// The task, with its source line.
        task: String,
        /// The buffer's name: the one that the program gave it, or its id, `B0`.
        buffer: Arc<str>,
        /// The elements that both chunks touch.
        region: Region,
        /// What they do: `reads through shifted`.
        accesses: [String; 2],
        /// The two nodes: the first has the first access, the second the other one.
        nodes: [NodeId; 2],
    },
    /// The whole index space is said to write elements that no chunk writes,
    /// so that nobody could ever send them to whoever reads them.
    #[error(
        "{task} writes {region} of buffer \"{buffer}\" according to its range mapper's image of \
         the whole index space, but no chunk's image holds it: r(A ∪ B) = r(A) ∪ r(B) must hold"
    )]
    UnwrittenElements {
        /// The task, with its source line.
        task: String,
        /// The buffer's name: the one that the program gave it, or its id, `B0`.
        buffer: Arc<str>,
        /// What no chunk writes.
        region: Region,
    },
    /// A chunk is said to write elements that the whole index space is not said to write, so that other
    /// nodes know nothing of what is there now.
    #[error(
        "{task} writes {region} of buffer \"{buffer}\" on {node} according to its range mapper's image of \
         that node's chunk, but the image of the whole index space does not hold it: \
         r(A ∪ B) = r(A) ∪ r(B) must hold"
    )]
    UndeclaredWrites {
        /// The task, with its source line.
        task: String,
        /// The buffer's name: the one that the program gave it, or its id, `B0`.
        buffer: Arc<str>,
        /// What the chunk writes beyond the whole.
        region: Region,
        /// The node whose chunk it is.
        node: NodeId,
    },
}
