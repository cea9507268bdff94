//! User mistakes that can be seen only after work has been assigned to devices.

use std::sync::Arc;

use celerity_regions::Region;

/// A mistake in the user's program. The graph stays well-formed, but results
/// are not defined any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Diagnostic {
    /// Two devices of this node write the same elements (002 §4.4).
    #[error(
        "{task} writes {region} of buffer \"{buffer}\" on two devices of one node; its range \
         mapper promises disjoint images of disjoint chunks, but does not keep the promise"
    )]
    OverlappingWrites {
        /// The task, with its source line.
        task: String,
        /// The buffer's name.
        buffer: Arc<str>,
        /// What both write.
        region: Region,
    },
}
