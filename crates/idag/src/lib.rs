#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod allocate;
mod backing;
mod buffer;
mod coherence;
mod diagnostic;
mod emit;
mod graph;
mod instruction;
mod launch;
mod pieces;
mod plan;
mod receive;
mod send;

pub use diagnostic::Diagnostic;
pub use emit::Schedule;
pub use graph::{InstructionGraph, InstructionGraphConfig};
pub use instruction::{
    AllocationId, BoundAccess, DeviceId, Inbound, Instruction, InstructionDependencies,
    InstructionId, InstructionKind, MemoryId, MessageId, Pilot, Placement,
};
