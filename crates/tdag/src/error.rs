//! What can be wrong with a task at submission.

use std::fmt;
use std::sync::Arc;

use celerity_regions::Region;

use crate::count::Count;
use crate::mapper::{MapperFlaw, MapperViolation};
use crate::space::SpaceFlaw;

/// What happens when a task reads elements that nothing has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UninitializedRead {
    /// The task is refused.
    #[default]
    Error,
    /// The task is accepted with a [warning](crate::Declared::warnings); it sees zeroes.
    Warn,
}

/// A task that cannot enter the graph. The graph is unchanged. `Debug` writes the text, as
/// `main` prints it.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeclareError {
    /// A read of elements that nothing has written.
    #[error(
        "{task} reads {} of buffer \"{buffer}\", which nothing has written yet; {}",
        in_dims(region, *dims),
        way_to_written(*policy)
    )]
    UninitializedRead {
        /// The task, with its source line.
        task: String,
        /// The buffer's name: the one that the program gave it, or its id, `B0`.
        buffer: Arc<str>,
        /// What has not been written.
        region: Box<Region>,
        /// Dimensions of the buffer.
        dims: u8,
        /// Whether the task was refused for it.
        policy: UninitializedRead,
    },
    /// A mapper's image is not inside the buffer.
    #[error(
        "{task} accesses {} of buffer \"{buffer}\" through {mapper}, but the buffer is \
         {}; {}",
        in_dims(image, *dims),
        in_dims(extent, *dims),
        way_back(image, mapper)
    )]
    OutOfBounds {
        /// The task, with its source line.
        task: String,
        /// The buffer's name: the one that the program gave it, or its id, `B0`.
        buffer: Arc<str>,
        /// The range mapper as text: `slice(1)`, say.
        mapper: String,
        /// What the whole index space maps to.
        image: Box<Region>,
        /// All of the buffer.
        extent: Box<Region>,
        /// Dimensions of the buffer.
        dims: u8,
    },
    /// Two accesses that share elements of a buffer, one of which writes.
    #[error(
        "{task} {} and {} the same elements of buffer \"{buffer}\", {}; what one access \
         writes no other of the task may touch: give them separate parts of the buffer, use one \
         read_write access, or split the task in two",
        accesses[0],
        accesses[1],
        in_dims(region, *dims)
    )]
    ConflictingAccesses {
        /// The task, with its source line.
        task: String,
        /// The buffer's name: the one that the program gave it, or its id, `B0`.
        buffer: Arc<str>,
        /// What both touch, over the whole index space.
        region: Box<Region>,
        /// Dimensions of the buffer.
        dims: u8,
        /// What they do: `reads through all`.
        accesses: Box<[String; 2]>,
    },
    /// A split task writes through a mapper whose images may overlap.
    #[error(
        "{task} writes buffer \"{buffer}\" through {mapper}, which gives different chunks the \
         same elements; write through one_to_one or another mapper with disjoint images, let items \
         that share an element update it or reduce into it, or use a host task that runs once"
    )]
    OverlappingWrites {
        /// The task, with its source line.
        task: String,
        /// The buffer's name: the one that the program gave it, or its id, `B0`.
        buffer: Arc<str>,
        /// The range mapper as text: `slice(1)`, say.
        mapper: String,
    },
    /// A split task updates elements through a mapper that gives several chunks the same ones.
    #[error(
        "{task} updates buffer \"{buffer}\" through {mapper}, which gives different chunks the same \
         elements, and chunks are computed in different memories; give each chunk elements of its \
         own, or let the task be one chunk by a granularity of its whole index space"
    )]
    UpdatesMeet {
        /// The task, with its source line.
        task: String,
        /// The buffer's name: the one that the program gave it, or its id, `B0`.
        buffer: Arc<str>,
        /// The range mapper as text: `slice(1)`, say.
        mapper: String,
    },
    /// A built-in mapper between spaces of different dimensionality.
    #[error(
        "{task} has {}, but accesses buffer \"{buffer}\" of {buffer_dims} through {mapper}, which \
         needs equally many; use all, fixed or a mapper of your own",
        Count(*task_dims, "dimension")
    )]
    DimensionMismatch {
        /// The task, with its source line.
        task: String,
        /// The buffer's name: the one that the program gave it, or its id, `B0`.
        buffer: Arc<str>,
        /// The range mapper as text: `slice(1)`, say.
        mapper: String,
        /// Dimensions of the index space.
        task_dims: u8,
        /// Dimensions of the buffer.
        buffer_dims: u8,
    },
    /// A built-in mapper does not fit the index space or the buffer.
    #[error("{task} accesses buffer \"{buffer}\" through {mapper}, {flaw}")]
    Mapper {
        /// The task, with its source line.
        task: String,
        /// The buffer's name: the one that the program gave it, or its id, `B0`.
        buffer: Arc<str>,
        /// The range mapper as text: `slice(1)`, say.
        mapper: String,
        /// What is wrong with it.
        flaw: MapperFlaw,
    },
    /// A user's mapper breaks a law, or panics.
    #[error("{task} accesses buffer \"{buffer}\" through a range mapper of yours: {violation}")]
    UnlawfulMapper {
        /// The task, with its source line.
        task: String,
        /// The buffer's name: the one that the program gave it, or its id, `B0`.
        buffer: Arc<str>,
        /// Which law, and where.
        violation: Box<MapperViolation>,
    },
    /// The index space of a split task is none.
    #[error("{task} has an index space that {flaw}")]
    Space {
        /// The task, with its source line.
        task: String,
        /// What is wrong with it.
        flaw: SpaceFlaw,
    },
    /// A task of a kind that only the graph makes.
    #[error(
        "{task} is {kind}, which nobody declares: the graph adds horizons where they are due, epochs by \
         `epoch`, and forwards by `forward`"
    )]
    MadeByGraph {
        /// The task, with its source line.
        task: String,
        /// What it would be: `a horizon`, say.
        kind: &'static str,
    },
    /// A fence writes.
    #[error(
        "{task} is a fence, which every node takes for itself, and {access} of {buffer}; a \
         fence only reads: write in a host task that runs once, or in `Work::Combine`"
    )]
    FenceWrites {
        /// The task, with its source line.
        task: String,
        /// The id of the buffer.
        buffer: crate::BufferId,
        /// What it does: `writes through all`.
        access: String,
    },
    /// The buffer belongs to another run, or has been dropped.
    #[error("{task} accesses {buffer}, which does not exist in this run (any more)")]
    UnknownBuffer {
        /// The task, with its source line.
        task: String,
        /// The id of the buffer, `B3`: of one that is not there, no name is known.
        buffer: crate::BufferId,
    },
    /// The host object belongs to another run, or has ended.
    #[error(
        "{task} has {access} on host object \"{object}\", which does not exist in this run (any more): \
         submit what uses an object before the object is taken back or dropped"
    )]
    UnknownObject {
        /// The task, with its source line.
        task: String,
        /// The object's name; its id if many others have ended since.
        object: Arc<str>,
        /// The access: `a sequential side effect`.
        access: String,
    },
    /// Two side effects of one task on one host object.
    #[error(
        "{task} has {} and {} on host object \"{object}\"; a task has one side effect on an \
         object: keep the stricter one, or split the task in two",
        accesses[0],
        accesses[1]
    )]
    RepeatedObject {
        /// The task, with its source line.
        task: String,
        /// The host object's name: the one that the program gave it, or its id, `H0`.
        object: Arc<str>,
        /// The two accesses: `a relaxed side effect`.
        accesses: [String; 2],
    },
    /// A side effect of what runs on devices.
    #[error(
        "{task} runs on devices and has {access} on host object \"{object}\", which lives on the \
         host; use the object in a host task"
    )]
    ObjectOnDevice {
        /// The task, with its source line.
        task: String,
        /// The host object's name: the one that the program gave it, or its id, `H0`.
        object: Arc<str>,
        /// The access: `a sequential side effect`.
        access: String,
    },
}

/// A part of a buffer that has so many dimensions.
fn in_dims(region: &Region, dims: u8) -> String {
    format!("{region:.*}", usize::from(dims))
}

/// What to do about elements that nothing has written.
fn way_to_written(policy: UninitializedRead) -> &'static str {
    match policy {
        UninitializedRead::Error => {
            "write it in an earlier task, create the buffer from host data, or set \
             CELERITY_UNINITIALIZED_READ=warn to read zeroes"
        }
        UninitializedRead::Warn => {
            "it reads zeroes: write it in an earlier task, or create the buffer from host data"
        }
    }
}

/// What to do about an image that leaves a buffer. An index beyond all buffers comes of a subtraction, in a release build.
fn way_back(image: &Region, mapper: &str) -> &'static str {
    const FAR: u64 = i64::MAX as u64;
    if mapper.starts_with("fixed(") {
        return "name a part that the buffer has";
    }
    if mapper.starts_with("one_to_one.offset") {
        return "leave out the items that have no such element";
    }
    if image.bounding_box().max().iter().any(|&end| end > FAR) {
        return "the range mapper has subtracted more than there was: use `saturating_sub`, or let the index \
                space begin later";
    }
    "shrink the index space or correct the range mapper"
}

impl fmt::Debug for DeclareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
