//! Appends instructions to the stream: ids, dependencies, the frontier.

use celerity_tdag::Frontier;

use crate::instruction::{
    AllocationId, Instruction, InstructionDependencies, InstructionId, InstructionKind, MessageId,
    Pilot,
};

/// What one call of the generator appends to.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// Instructions, in a topological order.
    pub instructions: Vec<Instruction>,
    /// Announcements to other nodes, to be sent at once (instruction-graph preprint, §3.4).
    pub pilots: Vec<Pilot>,
}

impl Schedule {
    /// Empties both streams, keeping their memory.
    pub fn clear(&mut self) {
        self.instructions.clear();
        self.pilots.clear();
    }
}

/// The generator's counters and frontier; outlives every call.
#[derive(Debug, Default)]
pub(crate) struct InstructionStream {
    pub(crate) frontier: Frontier<InstructionId>,
    allocations: u64,
    messages: u64,
    collectives: u64,
}

impl InstructionStream {
    pub(crate) fn new_allocation(&mut self) -> AllocationId {
        self.allocations += 1;
        AllocationId::from_index(self.allocations - 1)
    }

    pub(crate) fn new_message(&mut self) -> MessageId {
        self.messages += 1;
        MessageId::from_index(self.messages - 1)
    }

    /// The number of the next collective.
    pub(crate) fn new_collective(&mut self) -> u64 {
        self.collectives += 1;
        self.collectives - 1
    }

    /// The dependencies of the next instruction, to be filled in.
    #[inline]
    pub(crate) fn waits(&self) -> Waits {
        let point = self.frontier.synchronization_point();
        Waits { ids: InstructionDependencies::new(), point }
    }

    /// Appends an instruction; one that waits for nothing else waits for the
    /// synchronisation point. Inlined, so that instructions are put together
    /// where they stay.
    #[inline]
    pub(crate) fn emit(
        &mut self,
        out: &mut Schedule,
        kind: InstructionKind,
        mut waits: Waits,
    ) -> InstructionId {
        if waits.ids.is_empty() && self.frontier.next_id() > waits.point {
            waits.ids.push(waits.point);
        }
        let id = self.frontier.push_after_each(&mut waits.ids);
        out.instructions.push(Instruction { id, kind, dependencies: waits.ids });
        id
    }

    /// Appends an instruction that waits for all earlier ones.
    pub(crate) fn emit_after_all(
        &mut self,
        out: &mut Schedule,
        kind: InstructionKind,
    ) -> InstructionId {
        let mut waits = self.waits();
        waits.ids.extend(self.frontier.leaves());
        let id = self.emit(out, kind, waits);
        self.frontier.closed_by(id);
        id
    }
}

/// Dependencies under construction: none older than the synchronisation point. The stream
/// leaves doubles out when it takes them over, so that adding one is O(1).
#[derive(Debug)]
pub(crate) struct Waits {
    ids: InstructionDependencies,
    point: InstructionId,
}

impl Waits {
    /// The synchronisation point: stands in for all that is older.
    #[inline]
    pub(crate) fn point(&self) -> InstructionId {
        self.point
    }

    /// Whether `id` has been added.
    pub(crate) fn contains(&self, id: InstructionId) -> bool {
        self.ids.contains(&id)
    }

    #[inline]
    pub(crate) fn add(&mut self, id: InstructionId) {
        let id = id.max(self.point);
        // Doubles are few, and most come in a row.
        if self.ids.last() != Some(&id) {
            self.ids.push(id);
        }
    }
}
