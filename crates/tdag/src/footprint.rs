//! What a task touches over its whole index space, buffer by buffer. Knows neither the task nor
//! what others have touched.

use celerity_regions::Region;
use smallvec::SmallVec;

use crate::access::AccessMode;
use crate::id::BufferId;

/// What a task touches, one entry per buffer and mode.
pub(crate) type Footprint = SmallVec<[Touched; 4]>;

/// What a task does to a part of one buffer, over its whole index space. What it writes lies
/// in one entry alone: no other access of the task touches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// The id of the buffer.
    pub buffer: BufferId,
    /// What is done with it.
    pub mode: AccessMode,
    /// All that is read, or written, or both.
    pub region: Region,
}
