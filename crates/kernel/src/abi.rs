//! How the entry points of compiled kernels are called: the one description that
//! hosts write by and devices read by. Knows layouts and numbers, no driver, no
//! buffer and no task. The README's "Calling convention" says it in words.

mod blocks;
mod describe;
#[cfg(test)]
mod emulation;
#[cfg(not(target_arch = "nvptx64"))]
mod excerpt;
mod geometry;
mod halves;
mod launch_error;
pub(crate) mod local;
mod mapping;
pub(crate) mod message;
mod parameters;
mod place;
mod pointer;
mod ptx;
pub(crate) mod record;
mod sides;
mod tiles;
mod values;

pub use crate::plain::Scalar;
pub(crate) use blocks::first;
#[cfg(target_arch = "nvptx64")]
pub(crate) use blocks::whole_runs;
pub use blocks::{AccessBlock, LaunchBlock};
pub use describe::{
    Description, EntryKind, Form, Parameter, ScalarParameter, Unsuitable, ViewKind, ViewParameter,
    plain_traversal, slices_begin, takes_steps, traversal,
};
#[cfg(not(target_arch = "nvptx64"))]
pub use excerpt::ModuleOutline;
pub use geometry::{Geometry, GroupError, MOST_THREADS, block_within, check_groups, is_block};
pub use halves::halves;
pub use launch_error::LaunchError;
pub use local::{LocalParameter, local_offset, slices_bytes};
pub use mapping::Mapping;
pub use message::PanicMessage;
pub use parameters::{AccessKind, AccessMemory, Chunk, write_parameters};
#[cfg(target_arch = "nvptx64")]
pub(crate) use place::visit_joined;
pub use place::{Edges, Inside, Place, Seat, StackLevel, Thread, Traversal, Traverse, seat, visit};
pub use pointer::{DevicePointer, ExclusivePointer, SharedPointer};
pub use ptx::{EntryPoint, SignatureError, check_signature, entries, gains_by_stacks};
pub use record::{DevicePanic, PanicRecord};
pub use sides::{PartSide, PartSides};
pub use tiles::{LANES, TileBlock, TileSeat, Tiles, lanes_per_thread, visit_groups, visit_tile};
#[cfg(target_arch = "nvptx64")]
pub(crate) use values::{ARE_VALUES, NUMBERS};
#[doc(hidden)]
pub use values::{Teller, ValueKind};

/// How many items of a row kernel a thread takes at once where memory is aligned
/// for it: 16 bytes of `f32`, which is what a thread can load in one instruction.
pub const RUN: usize = 4;

/// How many runs, one behind the other along the slowest dimension, a thread takes at once where what is around
/// their items overlaps most. Of four rows of a square of nine, what is around them is six rows, not twelve.
pub const STACK: usize = 4;

/// What every base address must be a multiple of, in bytes. Device allocators
/// give 256.
pub const ALIGNMENT: u64 = 16;
