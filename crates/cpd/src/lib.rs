#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

use celerity_regions::Region;
use celerity_tdag::{BufferId, TaskId};

/// Data that one task writes and a later one reads, over the whole cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The task that writes it.
    pub producer: TaskId,
    /// The task that reads it.
    pub consumer: TaskId,
    /// The buffer.
    pub buffer: BufferId,
    /// What is both written and read.
    pub region: Region,
}

/// The collective operation that a [`Flow`] amounts to once work is assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Pattern {
    /// Every node writes its part, every node reads all of it.
    AllGather,
    /// Every node writes its part, one node reads all of it.
    Gather,
    /// One node writes, every node reads its own part.
    Scatter,
    /// One node writes, every node reads all of it.
    Broadcast,
    /// Every node reads a part of what every other node writes.
    AllToAll,
    /// Anything else: pushes and await-pushes.
    PointToPoint,
}
