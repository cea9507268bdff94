//! What a task touches, in which way: the entries of its access list. Knows neither the task nor
//! the graph.
//!
//! An access is one of several kinds. Who acts on a kind matches it. Who only cares for buffers
//! asks for [buffer accesses](crate::Task::buffer_accesses), and stays as it is when another kind
//! joins:
//!
//! ```
//! use celerity_tdag::{Access, AccessMode, BufferId, Mapper};
//! let accesses = [
//!     Access::buffer(BufferId::from_index(0), AccessMode::Read, Mapper::neighborhood([1])),
//!     Access::buffer(BufferId::from_index(1), AccessMode::Write, Mapper::OneToOne),
//! ];
//! let mut written = Access::buffers(&accesses).filter(|access| access.mode.writes());
//! assert_eq!(written.next().unwrap().buffer.to_string(), "B1");
//! ```

use std::fmt;

use crate::id::{BufferId, ObjectId};
use crate::mapper::Mapper;
use crate::side_effects::{ObjectAccess, SideEffectOrder};
use crate::space::IndexSpace;

/// What an access does to its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum AccessMode {
    /// Reads only.
    Read,
    /// Overwrites all of them without looking at what was there.
    Write,
    /// Reads and overwrites, each item its own elements.
    ReadWrite,
    /// Reads and overwrites in single steps: items of one chunk may meet at an element, items of
    /// different chunks may not.
    Update,
}

impl AccessMode {
    /// Whether earlier contents matter.
    #[must_use]
    pub const fn reads(self) -> bool {
        match self {
            Self::Read | Self::ReadWrite | Self::Update => true,
            Self::Write => false,
        }
    }

    /// Whether it is a producer of later contents.
    #[must_use]
    pub const fn writes(self) -> bool {
        match self {
            Self::Write | Self::ReadWrite | Self::Update => true,
            Self::Read => false,
        }
    }

    /// Whether a task over this index space may access elements in this mode through a mapper,
    /// whatever it is cut into. A user's mapper is believed, and held to it when the chunks are
    /// known.
    pub(crate) fn allows(self, mapper: &Mapper, space: &IndexSpace) -> bool {
        match self {
            Self::Read => true,
            Self::Write | Self::ReadWrite => match mapper {
                Mapper::Tiles(tiling) => tiling.fits(space),
                mapper => mapper.is_disjoint(&space.extent),
            },
            Self::Update => mapper.keeps_chunks_apart(space),
        }
    }
}

/// One entry of a task's list of accesses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Access {
    /// To elements of a buffer.
    Buffer(BufferAccess),
    /// To a host object.
    Object(ObjectAccess),
}

/// An access to elements of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BufferAccess {
    /// The id of the buffer.
    pub buffer: BufferId,
    /// What is done with it.
    pub mode: AccessMode,
    /// Which part a chunk touches.
    pub mapper: Mapper,
}

impl Access {
    /// An access to the part of a buffer that `mapper` names.
    #[must_use]
    pub const fn buffer(buffer: BufferId, mode: AccessMode, mapper: Mapper) -> Self {
        Self::Buffer(BufferAccess { buffer, mode, mapper })
    }

    /// A side effect on a host object.
    #[must_use]
    pub const fn object(object: ObjectId, order: SideEffectOrder) -> Self {
        Self::Object(ObjectAccess { object, order })
    }

    /// The side effects among these, in order.
    pub fn objects(accesses: &[Self]) -> impl DoubleEndedIterator<Item = &ObjectAccess> + Clone {
        accesses.iter().filter_map(Self::as_object)
    }

    /// The accesses to buffers among these, in order. Later stages bind memory to them, and count
    /// them in this order.
    pub fn buffers(accesses: &[Self]) -> impl DoubleEndedIterator<Item = &BufferAccess> + Clone {
        accesses.iter().filter_map(Self::as_buffer)
    }

    /// The access, if it is one to a buffer.
    #[must_use]
    pub const fn as_buffer(&self) -> Option<&BufferAccess> {
        match self {
            Self::Buffer(access) => Some(access),
            Self::Object(_) => None,
        }
    }

    /// The side effect, if the access is one.
    #[must_use]
    pub const fn as_object(&self) -> Option<&ObjectAccess> {
        match self {
            Self::Object(access) => Some(access),
            Self::Buffer(_) => None,
        }
    }

    /// The access, if it is one to a buffer, to change it.
    #[must_use]
    pub const fn as_buffer_mut(&mut self) -> Option<&mut BufferAccess> {
        match self {
            Self::Buffer(access) => Some(access),
            Self::Object(_) => None,
        }
    }
}

impl From<BufferAccess> for Access {
    fn from(access: BufferAccess) -> Self {
        Self::Buffer(access)
    }
}

impl From<ObjectAccess> for Access {
    fn from(access: ObjectAccess) -> Self {
        Self::Object(access)
    }
}

impl BufferAccess {
    /// Whether this and another access of the same task must not share elements: they are to one
    /// buffer, and one of them writes.
    #[must_use]
    pub fn conflicts_with(&self, other: &Self) -> bool {
        self.buffer == other.buffer && (self.mode.writes() || other.mode.writes())
    }

    /// Whether only a user's word says which elements are touched.
    #[must_use]
    pub const fn is_on_trust(&self) -> bool {
        matches!(self.mapper, Mapper::User(_))
    }
}

impl fmt::Display for BufferAccess {
    /// What a task does, in messages: `reads through one_to_one`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} through {}", self.verb(), self.mapper)
    }
}

impl BufferAccess {
    /// The same of a buffer of so many dimensions, of which a border has as many.
    pub(crate) fn in_words(&self, dims: u8) -> String {
        format!("{} through {}", self.verb(), self.mapper.of_dims(dims))
    }

    fn verb(&self) -> &'static str {
        match self.mode {
            AccessMode::Read => "reads",
            AccessMode::Write => "writes",
            AccessMode::ReadWrite => "reads and writes",
            AccessMode::Update => "updates",
        }
    }
}
