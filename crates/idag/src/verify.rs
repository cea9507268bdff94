//! The contract of the instruction graph, and a check of it. Owns what one
//! node's stream of instructions promises by itself: whether it computes what
//! the program means is known only to who has seen the program, too.

mod memory;
mod shape;
mod transfers;

use celerity_cdag::TransferId;

use crate::instruction::{
    AllocationId, Instruction, InstructionId, InstructionKind, MemoryId, MessageId, Pilot,
};

use memory::Allocations;
use shape::Shape;
use transfers::Transfers;

/// A promise that is not kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Broken {
    /// Ids are not dense.
    #[error("{found} comes where {expected} is due")]
    Id {
        /// The id that was due.
        expected: InstructionId,
        /// The id that came.
        found: InstructionId,
    },
    /// An edge that must not be.
    #[error("{later} waits for {on}, {why}")]
    Edge {
        /// The instruction that waits.
        later: InstructionId,
        /// For what.
        on: InstructionId,
        /// What is wrong with that.
        why: &'static str,
    },
    /// An instruction that could start before the program does.
    #[error("{instruction} waits for nothing")]
    Orphan {
        /// The instruction.
        instruction: InstructionId,
    },
    /// A horizon or epoch that does not wait for all that is older.
    #[error("{point} does not wait for {missed}, neither directly nor through others")]
    NotReached {
        /// The horizon or epoch.
        point: InstructionId,
        /// What it does not wait for.
        missed: InstructionId,
    },
    /// An allocation is not what an instruction takes it for.
    #[error("{instruction}: {memory}.{allocation} {why}")]
    Memory {
        /// The instruction.
        instruction: InstructionId,
        /// The memory that it names.
        memory: MemoryId,
        /// The allocation that it names.
        allocation: AllocationId,
        /// What is wrong.
        why: &'static str,
    },
    /// A message that the receiver would misunderstand.
    #[error("{instruction}: {message} {why}")]
    Message {
        /// The send, or the last instruction if there is none.
        instruction: InstructionId,
        /// The message.
        message: MessageId,
        /// What is wrong.
        why: &'static str,
    },
    /// Data that arrives unnoticed, or is awaited and does not arrive.
    #[error("{instruction}: {transfer} {why}")]
    Arrival {
        /// The receive, split receive or await receive.
        instruction: InstructionId,
        /// The transfer.
        transfer: TransferId,
        /// What is wrong.
        why: &'static str,
    },
}

/// Checks the contract of one node's instructions and pilots, all that its
/// graph has made since the program's start, in that order.
///
/// **Shape.** Ids are dense and start at 0. Instructions wait for older ones, for
/// none twice, and for none that is older than the *synchronisation point*: the
/// last epoch or the last horizon but one, whichever is newer. All but the first wait for
/// something, so they wait for the last epoch. A horizon or epoch waits for everything that is
/// older, directly or not.
///
/// **Memory.** Ids of allocations are used once, and nothing is allocated in
/// `M0`. Who touches memory says of an allocation that lives what all others
/// say: its memory, its buffer, its extent, and a size that is that of its
/// elements. What is touched lies inside. Kernels are bound to the memory of
/// their device, host tasks, sends and receives to `M1`, and nothing writes to
/// `M0`. A copy has two allocations. A free is the last to name its allocation.
///
/// **Transfers.** Messages are numbered in the order of their sends, from 0, and
/// the pilots say the same of them, one by one. An await receive lies in an
/// earlier split receive of its transfer, and of every split receive each
/// element is awaited.
///
/// That instructions which share memory wait for each other, that what they read
/// is current, and that all nodes agree is not looked at.
///
/// O(instructions · (edges + accesses · log allocations)).
///
/// # Errors
/// All promises that are broken, in the order of the instructions.
pub fn verify(instructions: &[Instruction], pilots: &[Pilot]) -> Result<(), Vec<Broken>> {
    let mut broken = Vec::new();
    let (mut shape, mut allocations) = (Shape::default(), Allocations::default());
    let mut transfers = Transfers::new(pilots);
    for instruction in instructions {
        shape.check(instruction, &mut broken);
        allocations.check(instruction, &mut broken);
        transfers.check(instruction, &mut broken);
    }
    transfers.finish(instructions, &mut broken);
    if broken.is_empty() { Ok(()) } else { Err(broken) }
}

/// Whether later instructions may rely on it instead of what is older.
fn synchronizes(kind: &InstructionKind) -> bool {
    matches!(kind, InstructionKind::Horizon { .. } | InstructionKind::Epoch { .. })
}
