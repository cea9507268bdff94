//! What is known of one node's instruction graph: the window of instructions, and what lives in its
//! memories. Which rules hold for which of them, [`dispatch`](crate::dispatch) knows.

use std::collections::{BTreeMap, BTreeSet};

use celerity_cdag::NodeId;
use celerity_idag::{AllocationId, DeviceMemory, Instruction, InstructionKind};
use celerity_tdag::BufferId;
use smallvec::SmallVec;

use crate::allocation::Allocation;
use crate::groups::Groups;
use crate::label::InstructionSketch;
use crate::objects::ObjectHistory;
use crate::violation::{Check, Waste};
use crate::window::{NodeShape, RecentNodes};

/// One node's instructions and memories.
#[derive(Clone, Debug)]
pub(crate) struct Instructions {
    pub(crate) node: NodeId,
    pub(crate) nodes: usize,
    pub(crate) devices: usize,
    /// What kernels are bound to.
    pub(crate) device_memory: DeviceMemory,
    /// Whether the network reaches devices' memories.
    pub(crate) device_wires: bool,
    pub(crate) device_collectives: bool,
    /// Whether allocations may be made before they are needed.
    pub(crate) eager: bool,
    pub(crate) window: RecentNodes<InstructionSketch>,
    pub(crate) groups: Groups,
    pub(crate) objects: ObjectHistory,
    /// Those that live.
    pub(crate) allocations: BTreeMap<AllocationId, Allocation>,
    /// The same by buffer.
    pub(crate) owned: BTreeSet<(BufferId, AllocationId)>,
    /// Ids below have been used; so memory is bounded by what lives.
    pub(crate) next_allocation: u64,
    pub(crate) next_message: u64,
    pub(crate) next_collective: u64,
    pub(crate) waste: Waste,
}

impl Instructions {
    /// Appends an instruction to the window.
    pub(crate) fn enter(&mut self, instruction: &Instruction) -> Check {
        let role = match instruction.kind {
            InstructionKind::Horizon { .. } => NodeShape::Horizon,
            InstructionKind::Epoch { .. } => NodeShape::Epoch,
            _ => NodeShape::Work,
        };
        let edges: SmallVec<[u64; 4]> =
            instruction.dependencies.iter().map(|dep| dep.index()).collect();
        let label = InstructionSketch::of(&instruction.kind);
        self.window.push(instruction.id.index(), edges, role, label)
    }
}
