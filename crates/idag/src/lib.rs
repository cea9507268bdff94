#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod allocate;
mod anticipation;
mod backing;
mod backings;
mod box_groups;
mod broadcast;
mod buffer;
mod bundles;
mod coherence;
mod collective;
mod diagnostic;
mod effects;
mod emit;
mod emitter;
mod forecast;
mod gather;
mod graph;
mod growth;
mod instruction;
mod launch;
mod layout;
mod linearize;
mod links;
mod lookahead;
#[cfg(feature = "mutants")]
mod mistakes;
mod objects;
mod overwritten;
mod pieces;
mod plan;
mod receive;
mod send;
#[cfg(feature = "serde")]
mod serde_impls;
#[cfg(feature = "serde")]
mod serde_lists;
mod stages;
mod staging;
mod verify;
mod version;
pub mod wire;
mod wires;

pub use diagnostic::Diagnostic;
pub use effects::{
    Effects, Elements, Exchange, ExchangePart, LaneKind, Lifetime, LifetimeChange, Synchronization,
    TaskPart, Touch, TouchMode,
};
pub use emit::Schedule;
pub use graph::{InstructionGraph, InstructionGraphConfig};
pub use instruction::{
    AllocationId, BoundAccess, CollectivePart, DeviceId, DeviceMemory, Inbound, Instruction,
    InstructionDependencies, InstructionId, InstructionKind, MemoryId, MessageId, Participation,
    Pilot, Placement, in_transit,
};
pub use lookahead::{Lookahead, LookaheadQueue, Released};
pub use verify::{Broken, verify};
