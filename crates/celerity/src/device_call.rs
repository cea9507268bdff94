//! What a call on a device is told: which part of the work is its own, and the stream to put it on.
//! Knows no views.

use std::fmt;

use celerity_executor::{DeviceStream, TaskError};
use celerity_regions::{Box3, Subrange};

use crate::range::{bounds, subrange};

/// One call of a function that [`TaskBuilder::device_call`](crate::TaskBuilder::device_call) was
/// given: its chunk of the index space, and the stream of the device that owns the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceCall<const K: usize> {
    chunk: Subrange<K>,
    global: Subrange<K>,
    stream: Option<DeviceStream>,
}

impl<const K: usize> DeviceCall<K> {
    pub(crate) fn new(chunk: &Box3, global: &Box3, stream: Option<DeviceStream>) -> Self {
        let subrange = |part: &Box3| subrange(&bounds(part));
        Self { chunk: subrange(chunk), global: subrange(global), stream }
    }

    /// The items of this call, as a box of the index space.
    #[must_use]
    pub fn subrange(&self) -> Subrange<K> {
        self.chunk
    }

    /// All items of the task.
    #[must_use]
    pub fn global(&self) -> Subrange<K> {
        self.global
    }

    /// The GPU's number and the stream to put work on. The stream's context is current while the
    /// function runs.
    ///
    /// # Errors
    /// [`DeviceCallError::NoStream`] on a device that is made of CPU threads: the views are
    /// slices there.
    pub fn stream(&self) -> Result<DeviceStream, DeviceCallError> {
        self.stream.ok_or(DeviceCallError::NoStream)
    }
}

impl<const K: usize> fmt::Display for DeviceCall<K> {
    /// As in `[4] + [2] of [8] on GPU 1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (part, of) = (self.chunk, self.global.range);
        write!(f, "{:?} + {:?} of {of:?} on ", part.offset, part.range)?;
        match self.stream {
            Some(stream) => write!(f, "GPU {}", stream.ordinal),
            None => f.write_str("CPU threads"),
        }
    }
}

/// What a call on a device asked for and cannot have where it runs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceCallError {
    /// The stream of a device that has none.
    #[error(
        "this device is made of CPU threads and has no stream: work on the views' `on_host` here, \
         or run on GPUs (feature `cuda`, `CELERITY_PLATFORM=cuda`)"
    )]
    NoStream,
    /// A view of the host's, of memory that is a GPU's.
    #[error(
        "this memory is a GPU's, which the host cannot look at: put work on the call's `stream` \
         that goes by `as_ptr` and `strides`"
    )]
    OnDevice,
    /// A view of the host's, of elements that are no box.
    #[error(
        "the access is to {boxes} boxes, but a view of the host's is of one: go by `boxes`, \
         `as_ptr` and `strides`, or access their surroundings (`neighborhood` instead of \
         `neighborhood_along_axes`)"
    )]
    SeveralBoxes {
        /// How many there are.
        boxes: usize,
    },
    /// What the driver says.
    #[error("the driver refuses: {0}")]
    Driver(String),
}

/// A call on a device that has returned an error: which, and what.
///
/// It is the error of [`RunError::TaskFailed`](crate::RunError::TaskFailed), which says where the
/// call ran. What the function has returned is the [source](std::error::Error::source).
#[derive(Debug, thiserror::Error)]
#[error("chunk {chunk}: {error}")]
#[non_exhaustive]
pub struct DeviceCallFailed {
    /// The chunk: a box of the index space.
    pub chunk: Box3,
    /// What the function has returned.
    #[source]
    pub error: TaskError,
}
