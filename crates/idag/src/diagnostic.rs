//! User mistakes that can be seen only after work has been assigned to devices.

use std::sync::Arc;

use celerity_regions::Region;

/// A mistake in the user's program. The graph stays well-formed, but results
/// are not defined any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Diagnostic {
    /// Two devices of this node write the same elements (instruction-graph preprint, §4.4).
    #[error(
        "{task} writes {region} of buffer \"{buffer}\" on two devices of one node; its range \
         mapper promises disjoint images of disjoint chunks, but does not keep the promise"
    )]
    OverlappingWrites {
        /// The task, with its source line.
        task: String,
        /// The buffer's name: the one that the program gave it, or its id, `B0`.
        buffer: Arc<str>,
        /// The elements that both chunks write.
        region: Region,
    },
    /// An access touches what another access writes, for the same launch or for another one of
    /// this node.
    #[error(
        "{task} shares {region} of buffer \"{buffer}\" between two accesses, one of which writes: it \
         {} and {}; their range mappers say of the whole index space that they share nothing, but \
         not of the chunks of this node: r(A ∪ B) = r(A) ∪ r(B) must hold",
        accesses[0], accesses[1]
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
    },
    /// A node's chunk is said to write elements that no device's part of it
    /// writes.
    #[error(
        "{task} writes {region} of buffer \"{buffer}\" according to its range mapper's image of \
         a node's chunk, but the image of no device's part of it holds that: \
         r(A ∪ B) = r(A) ∪ r(B) must hold"
    )]
    UnwrittenElements {
        /// The task, with its source line.
        task: String,
        /// The buffer's name: the one that the program gave it, or its id, `B0`.
        buffer: Arc<str>,
        /// What no device writes.
        region: Region,
    },
    /// A device's part of a node's chunk is said to write elements that the chunk is not said to write.
    #[error(
        "{task} writes {region} of buffer \"{buffer}\" on a device according to its range mapper's image of \
         that device's part of a node's chunk, but the image of the chunk does not hold it: \
         r(A ∪ B) = r(A) ∪ r(B) must hold"
    )]
    UndeclaredWrites {
        /// The task, with its source line.
        task: String,
        /// The buffer's name: the one that the program gave it, or its id, `B0`.
        buffer: Arc<str>,
        /// What devices write beyond the chunk.
        region: Region,
    },
}
