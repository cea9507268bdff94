//! Everything that can go wrong between `run` and its result.

mod config;
#[cfg(feature = "npy")]
mod npy;

use std::fmt;

use celerity_executor::{RunError, SubmitError, write_with_causes};
use celerity_kernel::abi::GroupError;
use celerity_tdag::{Count, DeclareError};

pub use config::ConfigError;
#[cfg(feature = "npy")]
pub use npy::{NpyAction, NpyError};

/// The result of everything that can fail here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a run, or a step of it, failed.
///
/// `Debug` writes what people read, so that `fn main() -> celerity::Result<()>` prints it:
/// the text of the error, and a line for each cause that the text does not tell.
///
/// Errors at submission ([`Declare`](Self::Declare) and the argument errors)
/// leave the run intact: the task was not submitted. [`Run`](Self::Run) is the
/// run's first error; every later call on any node returns it again.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The run has failed: a kernel panicked, memory is exhausted, …
    #[error(transparent)]
    Run(Box<RunError>),
    /// The task does not fit the program: it reads what nothing has written,
    /// leaves a buffer, …
    #[error(transparent)]
    Declare(Box<DeclareError>),
    /// The devices cannot run a task's kernel: it has no code for them, its
    /// parameters do not fit the accesses, … The text names the task and what to do.
    #[error("{0}")]
    Kernel(String),
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A buffer's initial contents do not fit its size.
    #[error(
        "a buffer of range {range:?} has {}, but its initial data has {actual}; provide one value \
         per element, row-major",
        Count(*expected, "element")
    )]
    HostDataLength {
        /// Elements of the buffer in each dimension.
        range: Vec<usize>,
        /// Elements of the buffer.
        expected: usize,
        /// How many elements the initial data has.
        actual: usize,
    },
    /// A buffer that another run, or another node's queue, created.
    #[error(
        "task {task} accesses buffer \"{buffer}\", which another run or node created; \
         create buffers through the queue that uses them"
    )]
    ForeignBuffer {
        /// The task: name and source line.
        task: String,
        /// The buffer's name: the one that the program gave it, or its id, `B0`.
        buffer: String,
    },
    /// A task on a buffer whose run has ended.
    #[error(
        "the run that buffer \"{buffer}\" is of has ended; let buffers be used inside of the run \
         that made them"
    )]
    RunOver {
        /// The buffer's name: the one that the program gave it, or its id, `B0`.
        buffer: String,
    },
    /// A copy between whole buffers of different sizes.
    #[error(
        "task {task} cannot copy buffer {from} to {to}: their sizes differ; name the part to copy \
         and its place with `copy_part`"
    )]
    CopyRange {
        /// The task: name and source line.
        task: String,
        /// Name and size of the buffer to copy.
        from: String,
        /// Name and size of the buffer to copy to.
        to: String,
    },
    /// A copy of a part that the buffer does not have.
    #[error("task {task} copies {part} of buffer {from}, which does not have all of it")]
    CopyPart {
        /// The task: name and source line.
        task: String,
        /// Name and size of the buffer to copy from.
        from: String,
        /// What is to be copied.
        part: String,
    },
    /// Partial results that nodes cannot send each other.
    #[error(
        "task {task} reduces into buffer \"{buffer}\", of which each node would send partial results of {bytes} \
         bytes in one piece, and 2147483647 are the most; reduce into parts of it, or add to its elements by \
         `update`"
    )]
    PartialResults {
        /// The task: name and source line.
        task: String,
        /// The buffer's name.
        buffer: String,
        /// Bytes of all of its elements.
        bytes: u64,
    },
    /// A buffer that a task reduces into, and accesses in another way as well.
    #[error(
        "task {task} reduces into buffer \"{buffer}\" and accesses it once more; reduce into each \
         buffer once, and read the result in a later task"
    )]
    SharedReduction {
        /// The task: name and source line.
        task: String,
        /// The buffer's name: the one that the program gave it, or its id, `B0`.
        buffer: String,
    },
    /// A host object that another run, or another node's queue, created.
    #[error(
        "task {task} has a side effect ({order}) on host object \"{object}\", which another run \
         or node created; create objects through the queue that uses them"
    )]
    ForeignObject {
        /// The task: name and source line.
        task: String,
        /// The host object's name: the one that the program gave it, or its id, `H0`.
        object: String,
        /// The order of the side effect: `sequential`, `exclusive` or `relaxed`.
        order: String,
    },
    /// A host object whose run ended before its value was given back, or copied at a fence.
    #[error("the run ended before the value of host object \"{object}\" was there")]
    ObjectAbandoned {
        /// The host object's name: the one that the program gave it, or its id, `H0`.
        object: String,
    },
    /// `slice` along a dimension that the buffer does not have.
    #[error(
        "task {task} accesses buffer \"{buffer}\" through slice({dim}), but the buffer has {}, \
         counted from 0",
        Count(*dims, "dimension")
    )]
    SliceDimension {
        /// The task: name and source line.
        task: String,
        /// The buffer's name: the one that the program gave it, or its id, `B0`.
        buffer: String,
        /// The dimension asked for.
        dim: usize,
        /// The dimensions there are.
        dims: usize,
    },
    /// A neighbourhood that is periodic along a dimension that the buffer does not have.
    #[error(
        "task {task} accesses buffer \"{buffer}\" through a neighborhood that is periodic along \
         dimension {dim}, but the buffer has {}, counted from 0",
        Count(*dims, "dimension")
    )]
    PeriodicDimension {
        /// The task: name and source line.
        task: String,
        /// The buffer's name: the one that the program gave it, or its id, `B0`.
        buffer: String,
        /// The dimension asked for.
        dim: usize,
        /// The dimensions there are.
        dims: usize,
    },
    /// A strided side of which windows leave elements out.
    #[error(
        "task {task} accesses buffer \"{buffer}\" through windows of {window} at a stride of \
         {stride}, which leave elements between them out; say `.with_gaps()` if they are to, or make \
         the window as wide as the stride"
    )]
    Gaps {
        /// The task: name and source line.
        task: String,
        /// The buffer's name: the one that the program gave it, or its id, `B0`.
        buffer: String,
        /// Elements between the beginnings of neighbours.
        stride: usize,
        /// Elements of an item.
        window: usize,
    },
    /// A granularity that does not fit the index space.
    #[error(
        "task {task} has granularity {granularity:?} for an index space of {}: give one size of at \
         least 1 per dimension",
        Count(*dims, "dimension")
    )]
    Granularity {
        /// The task: name and source line.
        task: String,
        /// What was asked for.
        granularity: Vec<usize>,
        /// The index space's dimensions.
        dims: usize,
    },
    /// A shape of blocks that does not fit the index space, or that no GPU has.
    #[error(
        "task {task} is to have blocks of {block:?} threads for an index space of {}: give one number of at \
         least 1 per dimension, of which the product is at most 1024",
        Count(*dims, "dimension")
    )]
    Block {
        /// The task: name and source line.
        task: String,
        /// What was asked for.
        block: Vec<usize>,
        /// The index space's dimensions.
        dims: usize,
    },
    /// An index space that cannot begin where it should.
    #[error(
        "task {task} cannot begin its index space of {range:?} items at {offset:?}: give one \
         index for each dimension, such that the last item's fit 64 bits"
    )]
    Offset {
        /// The task: name and source line.
        task: String,
        /// Where it should begin.
        offset: Vec<usize>,
        /// The index space's size.
        range: Vec<usize>,
    },
    /// Groups that the index space does not consist of, or that no device can run.
    #[error(
        "task {task} cannot run kernel `{kernel}` over {range:?} items in groups of {group:?}: \
         {error}"
    )]
    Groups {
        /// The task: name and source line.
        task: String,
        /// The name of the kernel's function.
        kernel: &'static str,
        /// The index space's size.
        range: Vec<usize>,
        /// Items of a group in each dimension, as they were asked for.
        group: Vec<usize>,
        /// What is wrong with it.
        error: GroupError,
    },
    /// A host task on a node that the run does not have.
    #[error("task {task} is to run on node {node}, but the run has {}, counted from 0", Count(*nodes, "node"))]
    NoSuchNode {
        /// The task: name and source line.
        task: String,
        /// The node asked for.
        node: usize,
        /// Nodes of the run.
        nodes: usize,
    },
    /// More collective groups than a run may have.
    #[error(
        "task {task} is in collective group \"{group}\", but the run has {most} other groups, the \
         most there can be; let tasks share groups, as those do that need not run concurrently"
    )]
    TooManyGroups {
        /// The task: name and source line.
        task: String,
        /// The name of the collective group, as the program gave it.
        group: String,
        /// Groups that a run may have.
        most: usize,
    },
    /// A split along a dimension that the index space does not have.
    #[error(
        "task {task} is to be split along dimension {dim}, but its index space has {}, counted \
         from 0",
        Count(*dims, "dimension")
    )]
    SplitDimension {
        /// The task: name and source line.
        task: String,
        /// The dimension asked for.
        dim: usize,
        /// The dimensions there are.
        dims: usize,
    },
    /// Too many chunks per device, or none.
    #[error(
        "task {task} asks for {} per device; 1 to 1024 are possible",
        Count(*chunks, "chunk")
    )]
    Oversubscription {
        /// The task: name and source line.
        task: String,
        /// What was asked for.
        chunks: usize,
    },
    /// An index space with more items than can be counted.
    #[error(
        "task {task} has index space {range:?}, whose number of items does not fit 64 bits; \
         split the work over several tasks"
    )]
    IndexSpaceVolume {
        /// The task: name and source line.
        task: String,
        /// The index space's size.
        range: Vec<usize>,
    },
    /// A fence for whose copy this process has no memory. The run goes on.
    #[error(
        "there is no memory for the copy of {part} of buffer \"{buffer}\" that a fence makes, \
         {bytes} bytes; take it part by part with `fence_part`, drop what the program does not \
         need, or run fewer nodes on each host"
    )]
    FenceMemory {
        /// The buffer's name: the one that the program gave it, or its id, `B0`.
        buffer: String,
        /// The part of the buffer that was asked for.
        part: String,
        /// What a copy of it takes.
        bytes: usize,
    },
    /// A fence whose run ended before it was reached.
    #[error("the run ended before the fence on buffer \"{buffer}\" was reached")]
    FenceAbandoned {
        /// The buffer's name: the one that the program gave it, or its id, `B0`.
        buffer: String,
    },
    /// Something that needs results, in a run that has none.
    #[error(
        "{what} needs results, and this is a dry run, which computes nothing: unset \
         CELERITY_DRY_RUN_NODES, or leave `Config::dry_run` out"
    )]
    DryRun {
        /// What needs them.
        what: String,
    },
    /// A file of NumPy cannot be read. Feature `npy`.
    #[cfg(feature = "npy")]
    #[error(transparent)]
    Npy(Box<NpyError>),
    /// An error of the program itself.
    #[error(transparent)]
    User(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Wraps an error of the program's own, or a message.
    ///
    /// ```
    /// let error = celerity::Error::user("no such file: bodies.csv");
    /// assert_eq!(error.to_string(), "no such file: bodies.csv");
    /// ```
    pub fn user(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::User(error.into())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_with_causes(self, f)
    }
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        Self::Run(Box::new(error))
    }
}

impl From<DeclareError> for Error {
    fn from(error: DeclareError) -> Self {
        Self::Declare(Box::new(error))
    }
}

#[cfg(feature = "npy")]
impl From<NpyError> for Error {
    fn from(error: NpyError) -> Self {
        Self::Npy(Box::new(error))
    }
}

impl From<SubmitError> for Error {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Declare(error) => error.into(),
            SubmitError::Run(error) => error.into(),
            // Of the task's kernel, which is all else that there is.
            error => Self::Kernel(error.to_string()),
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::user(error)
    }
}

impl From<Box<dyn std::error::Error + Send + Sync>> for Error {
    fn from(error: Box<dyn std::error::Error + Send + Sync>) -> Self {
        Self::User(error)
    }
}
