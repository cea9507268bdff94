//! The contract of the instruction graph, and a check of it. Owns what one
//! node's stream of instructions promises by itself: whether it computes what
//! the program means is known only to who has seen the program, too.

mod memory;
mod transfers;

use celerity_cdag::TransferId;
use celerity_tdag::{BrokenEdge, BufferId, Conflicts, Lineage, Point};

use crate::effects::{Effects, LaneKind, Synchronization};
use crate::instruction::{
    AllocationId, DeviceMemory, Instruction, InstructionId, MemoryId, MessageId, Pilot,
};

use memory::Allocations;
use transfers::Transfers;

/// A promise that is not kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Broken {
    /// Of ids and edges.
    #[error(transparent)]
    Edge(#[from] BrokenEdge<InstructionId>),
    /// A conflict that the instruction cannot have.
    #[error("{later} conflicts with {with}, {why}")]
    Conflict {
        /// The id of the younger of the two instructions.
        later: InstructionId,
        /// The id of the older one.
        with: InstructionId,
        /// What is wrong with it: the rest of the message's sentence.
        why: &'static str,
    },
    /// An allocation is not what an instruction takes it for.
    #[error("{instruction}: {memory}.{allocation} {why}")]
    Memory {
        /// The id of the instruction.
        instruction: InstructionId,
        /// The memory that it names.
        memory: MemoryId,
        /// The allocation that it names.
        allocation: AllocationId,
        /// What is wrong with it: the rest of the message's sentence.
        why: &'static str,
    },
    /// A message that the receiver would misunderstand.
    #[error("{instruction}: {message} {why}")]
    Message {
        /// The send, or the last instruction if there is none.
        instruction: InstructionId,
        /// The sender's number of the message.
        message: MessageId,
        /// What is wrong with it: the rest of the message's sentence.
        why: &'static str,
    },
    /// Data that arrives unnoticed, or is awaited and does not arrive; a collective that other nodes
    /// would take for another one.
    #[error("{instruction}: {transfer} {why}")]
    Arrival {
        /// The receive, split receive, await receive or collective.
        instruction: InstructionId,
        /// The transfer.
        transfer: TransferId,
        /// What is wrong with it: the rest of the message's sentence.
        why: &'static str,
    },
}

/// Checks the contract of one node's instructions and pilots, all that its
/// graph has made since the program's start, in that order. `memory` is what the
/// graph was [told](crate::InstructionGraph::with_device_memory), `initial` what it has said of
/// buffers' initial contents: the allocations that stand for them, and the buffers.
///
/// **Edges.** As [`Lineage`] says.
///
/// **Conflicts.** Between host tasks, with older ones since the synchronisation point, ascending,
/// and with none that the host task waits for.
///
/// **Memory.** Ids of allocations are used once, and nothing is allocated in
/// `M0`. What has initial contents is there from the beginning. Who touches memory says of an
/// allocation that lives what all others
/// say: its memory, its buffer, its extent, and a size that is that of its
/// elements. What is touched lies inside. Kernels are bound to the memory that
/// their device works in, host tasks to `M1`, collectives to `M1` or the memory of the first device, sends and
/// receives to `M1` or the memory of a device, and nothing writes to `M0`. A copy has two allocations. A free is the last to name its allocation.
///
/// **Transfers.** Messages are numbered in the order of their sends, from 0, and
/// the pilots say the same of them, one by one, also whether they leave from a device; then they bring one box, otherwise up to
/// [`Pilot::MOST_BOXES`]. An await receive lies in an
/// earlier split receive of its transfer, and of every split receive each
/// element is awaited. Collectives are numbered from 0, and no element is in two of the places that
/// one reads and writes.
///
/// That instructions which share memory wait for each other, that what they read
/// is current, and that all nodes agree is not looked at.
///
/// O(instructions · (edges + accesses · log allocations)).
///
/// # Errors
/// All promises that are broken, in the order of the instructions.
pub fn verify(
    instructions: &[Instruction],
    pilots: &[Pilot],
    memory: DeviceMemory,
    initial: &[(AllocationId, BufferId)],
) -> Result<(), Vec<Broken>> {
    let mut broken = Vec::new();
    let (mut lineage, mut allocations) = (Lineage::default(), Allocations::new(memory, initial));
    let mut transfers = Transfers::new(pilots);
    for instruction in instructions {
        let (id, effects) = (instruction.id, instruction.effects());
        let on = instruction.dependencies.iter().copied();
        let edges = lineage.check(id, on, point_of(&effects));
        broken.extend(edges.into_iter().map(Broken::Edge));
        check_conflicts(instruction, &effects, instructions, lineage.point(), &mut broken);
        allocations.check(id, &effects, &mut broken);
        transfers.check(id, &effects, &mut broken);
    }
    transfers.finish(instructions, &mut broken);
    if broken.is_empty() { Ok(()) } else { Err(broken) }
}

fn check_conflicts(
    instruction: &Instruction,
    effects: &Effects<'_>,
    all: &[Instruction],
    point: InstructionId,
    broken: &mut Vec<Broken>,
) {
    let later = instruction.id;
    let conflicts = Conflicts::of(effects.conflicts.iter().copied());
    let depends = |on| instruction.dependencies.contains(&on);
    let shape = match conflicts.as_slice() == effects.conflicts {
        true => conflicts.broken_by(later, point, depends),
        false => effects.conflicts.first().map(|&with| (with, "out of order")),
    };
    let is_other = |id: InstructionId| {
        let slot = usize::try_from(id.index()).ok();
        let other = slot.and_then(|slot| all.get(slot));
        other.is_some_and(|other| other.effects().lane != LaneKind::HostTask)
    };
    let foreign = effects.conflicts.iter().find(|with| is_other(**with));
    let foreign = foreign.map(|&with| (with, "which is no host task"));
    let found = shape.or(foreign);
    broken.extend(found.map(|(with, why)| Broken::Conflict { later, with, why }));
}

/// Whether later instructions may rely on it instead of what is older.
fn point_of(effects: &Effects<'_>) -> Point {
    match effects.synchronizes {
        None => Point::None,
        Some(Synchronization::Horizon { .. }) => Point::Horizon,
        Some(Synchronization::Epoch { .. }) => Point::Epoch,
    }
}
