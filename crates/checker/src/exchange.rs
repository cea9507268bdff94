//! Instructions that take part in collectives: each carries out the one command of its task, with memory
//! for exactly what this node provides and gets. That all nodes have the same commands in the same
//! order is for others to say; instructions are numbered in the order of theirs.

use celerity_idag::{AllocationId, CollectivePart, MemoryId, Participation, Placement};
use celerity_regions::{Box3, Region};
use celerity_tdag::BufferId;

use crate::allocation::Allocation;
use crate::batch::{CalledFor, TaskCheck};
use crate::buffers::{Buffers, TrackedBuffer};
use crate::commands::{check_inside, check_transfer};
use crate::geometry::{Boxes, first_difference, overlap};
use crate::instructions::Instructions;
use crate::transfers::{check_elem_size, check_host};
use crate::violation::{Check, Vertex, Violation};

impl Instructions {
    /// A node takes part in a collective: it reads what it provides, which must be current, and gets
    /// the sequential version of what arrives.
    pub(crate) fn participate(
        &mut self,
        buffers: &mut Buffers,
        batch: &mut TaskCheck<'_>,
        me: u64,
        participation: &Participation,
    ) -> Check {
        let Participation { transfer, number, collective, memory, sources, targets, .. } =
            participation;
        let vertex = self.window.vertex(me);
        check_transfer(batch, vertex, *transfer)?;
        let is_this =
            |called: &CalledFor| called.transfer == *transfer && called.collective == *collective;
        if batch.collective.take().is_none_or(|called| !is_this(&called)) {
            let why = "no command of the task is this collective, or it has been carried out";
            return Err(Violation::Uncalled { vertex, why }.into());
        }
        let due = std::mem::replace(&mut self.next_collective, number + 1);
        if *number != due {
            let why = "collectives are numbered in the order of their commands";
            return Err(Violation::Uncalled { vertex, why }.into());
        }
        batch.outline.venue = Some(memory.device().is_some());
        let buffer = buffers.get_mut(vertex, transfer.buffer)?;
        check_covered(buffer, vertex, sources, &collective.provided_by(self.node))?;
        check_covered(buffer, vertex, targets, &collective.arriving_at(self.node))?;
        for CollectivePart { placement, region } in sources.iter().chain(targets) {
            check_elem_size(buffer, vertex, placement, participation.elem_size)?;
            self.check_venue(buffer, vertex, *memory, placement)?;
            check_inside(buffer, vertex, region.boxes())?;
            self.place(buffer, vertex, placement, region.boxes())?;
        }
        for CollectivePart { placement, region } in sources {
            for part in region.boxes() {
                self.check_current(buffer, me, placement, part)?;
                self.read(buffer, me, placement, part)?;
            }
        }
        for CollectivePart { placement, region } in targets {
            for part in region.boxes() {
                self.outdate(transfer.buffer, part);
                let versions = buffer.truth.versions(part);
                self.write(buffer, batch, me, placement, part, &versions)?;
            }
        }
        Ok(())
    }

    /// What the network reads and writes lies in the memory that the node says: `M1`, or that of its first
    /// device where the network reaches that. That all members say the same kind is for the cluster's checker
    /// to see.
    fn check_venue(
        &self,
        buffer: &TrackedBuffer,
        vertex: Vertex,
        memory: MemoryId,
        placement: &Placement,
    ) -> Check {
        let of_first = memory.device().is_some_and(|device| device.index() == 0);
        match placement.memory == memory && of_first && self.device_collectives {
            true => Ok(()),
            false => check_host(buffer, vertex, placement),
        }
    }

    /// Nobody on the node relies on copies of what a collective brings anew: the node does not know
    /// whether they are as new.
    fn outdate(&mut self, buffer: BufferId, part: &Box3) {
        let owned = self.owned.range((buffer, AllocationId::from_index(0))..);
        for (_, id) in owned.take_while(|(owner, _)| *owner == buffer) {
            let ledger = self.allocations.get_mut(id).and_then(Allocation::ledger_mut);
            if let Some(ledger) = ledger {
                ledger.outdate(part);
            }
        }
    }
}

/// The parts are disjoint, and together `expected`.
fn check_covered(
    buffer: &TrackedBuffer,
    vertex: Vertex,
    parts: &[CollectivePart],
    expected: &Region,
) -> Check {
    let all: Boxes = parts.iter().flat_map(|part| part.region.boxes()).copied().collect();
    let bad = |part: Box3, why| {
        Err(Violation::Unneeded { vertex, place: buffer.place(part), why }.into())
    };
    let mut pairs = (1..all.len()).flat_map(|later| (0..later).map(move |one| (one, later)));
    if let Some(common) = pairs.find_map(|(one, later)| overlap(&all[one], &all[later])) {
        return bad(common, "lies in two places");
    }
    match first_difference(&all, expected.boxes()) {
        None => Ok(()),
        Some((part, true)) => bad(part, "the node does not provide, or get, in the collective"),
        Some((part, false)) => bad(part, "has no memory in the collective"),
    }
}
