//! The life of allocations: made once, placed consistently, used while they
//! live, freed once by somebody who waits for all users, no larger than needed.

use std::convert::Infallible;
use std::ops::Range;

use celerity_idag::{AllocationId, MemoryId, Placement};
use celerity_regions::Box3;
use celerity_tdag::BufferId;

use crate::allocation::{Allocation, Contents};
use crate::batch::TaskCheck;
use crate::buffers::{Buffers, TrackedBuffer};
use crate::geometry::{bytes as size_of, contiguous_bytes, holds};
use crate::instructions::Instructions;
use crate::ledger::{AbstractValues, Clash, Ledger};
use crate::tiles::BoxMap;
use crate::violation::{AbstractValue, Check, Hazard, Vertex, Violation};

/// What an instruction asks for.
pub(crate) struct Asked {
    pub(crate) bytes: u64,
    pub(crate) alignment: u64,
    /// Whether there are only addresses at first.
    pub(crate) grows: bool,
}

impl Instructions {
    /// Adds the allocation that stands for a user's data.
    pub(crate) fn provide(&mut self, id: AllocationId, buffer: BufferId, extent: Box3) {
        let ledger = Ledger::new(extent, AbstractValue::Initial, None);
        let allocation = Allocation {
            memory: self.device_memory.of_initial_contents(),
            buffer,
            made_by: None,
            bytes: 0,
            moves: 0,
            provided: None,
            contents: Some(Contents { extent, ledger }),
        };
        self.next_allocation = self.next_allocation.max(id.index() + 1);
        self.owned.insert((allocation.buffer, id));
        self.allocations.insert(id, allocation);
    }

    pub(crate) fn alloc(
        &mut self,
        buffers: &Buffers,
        batch: &mut TaskCheck<'_>,
        me: u64,
        (id, memory): (AllocationId, MemoryId),
        buffer: BufferId,
        Asked { bytes, alignment, grows }: Asked,
    ) -> Check {
        let vertex = self.window.vertex(me);
        let described = buffers.get(vertex, buffer)?;
        let bad = |why| {
            let place = described.place_in(described.info.extent, memory, id);
            Err(Violation::BadPlacement { vertex, place, why }.into())
        };
        if id.index() < self.next_allocation {
            return Err(Violation::AllocatedTwice { vertex, allocation: id }.into());
        }
        if memory == MemoryId::USER {
            return bad("M0 is the user's");
        }
        if memory.slot() >= self.device_memory.count(self.devices) {
            return bad("there is no such memory");
        }
        if alignment != described.info.elem_align {
            return bad("it is aligned for other elements");
        }
        self.next_allocation = id.index() + 1;
        let extent = described.info.extent;
        if grows && bytes != size_of(&extent, described.info.elem_size) {
            return bad("not all of the buffer's addresses are reserved");
        }
        let contents =
            || Contents { extent, ledger: Ledger::new(extent, AbstractValue::Undefined, Some(me)) };
        let allocation = Allocation {
            memory,
            buffer,
            made_by: Some(me),
            bytes,
            moves: 0,
            provided: grows.then(|| BoxMap::new(extent, false)),
            contents: grows.then(contents),
        };
        self.owned.insert((allocation.buffer, id));
        self.allocations.insert(id, allocation);
        batch.made.push(id);
        Ok(())
    }

    /// Provides memory for a part of a reserved allocation.
    pub(crate) fn grow(
        &mut self,
        buffer: &mut TrackedBuffer,
        me: u64,
        (id, memory): (AllocationId, MemoryId),
        elements: &Box3,
        bytes: &Range<u64>,
    ) -> Check {
        let vertex = self.window.vertex(me);
        let extent = buffer.info.extent;
        let expected = contiguous_bytes(elements, &extent, buffer.info.elem_size);
        self.place(buffer, vertex, &Placement { allocation: id, memory, extent }, &[])?;
        let Some(allocation) = self.allocations.get_mut(&id) else { return Ok(()) };
        let Some(provided) = &mut allocation.provided else {
            let (place, why) = (buffer.place_in(*elements, memory, id), "it has all its memory");
            return Err(Violation::BadPlacement { vertex, place, why }.into());
        };
        if expected.as_ref() != Some(bytes) {
            let (place, why) = (buffer.place_in(*elements, memory, id), "they lie elsewhere");
            return Err(Violation::BadPlacement { vertex, place, why }.into());
        }
        let mut new = AbstractValues::new();
        let Ok(()) = provided.visit(elements, |part, there| {
            new.extend((!there).then_some((part, AbstractValue::Undefined)));
            Ok::<(), Infallible>(())
        });
        provided.set(elements, true);
        // Whoever uses new memory waits for this, and this for the addresses.
        let Some(order) = self.window.order() else { return Ok(()) };
        let Some(ledger) = allocation.ledger_mut() else { return Ok(()) };
        let checked = new.iter().try_for_each(|(part, _)| ledger.check_write(order, me, part));
        new.iter().for_each(|(part, version)| ledger.write(me, part, *version));
        checked.map_err(|clash| self.unordered(buffer, me, (memory, id), clash))
    }

    /// Ends an allocation. `batch` is absent when a buffer is dropped.
    pub(crate) fn free(
        &mut self,
        buffers: &Buffers,
        batch: Option<&mut TaskCheck<'_>>,
        me: u64,
        id: AllocationId,
        memory: MemoryId,
    ) -> Check {
        let vertex = self.window.vertex(me);
        let Some(allocation) = self.allocations.get(&id) else {
            let allocation = id;
            return Err(match id.index() < self.next_allocation {
                true => Violation::DoubleFree { vertex, allocation }.into(),
                false => Violation::UnknownAllocation { vertex, allocation }.into(),
            });
        };
        let buffer = buffers.get(vertex, allocation.buffer)?;
        if allocation.memory != memory {
            let (place, why) = (buffer.place_in(Box3::EMPTY, memory, id), "it lies elsewhere");
            return Err(Violation::BadPlacement { vertex, place, why }.into());
        }
        self.check_last_user(buffer, allocation, me, id)?;
        let Some(allocation) = self.allocations.remove(&id) else { return Ok(()) };
        self.owned.remove(&(allocation.buffer, id));
        match batch {
            Some(batch) if batch.made.contains(&id) => batch.outgrown.push((id, allocation)),
            // Outgrown before what it was made for came, if it was made ahead.
            Some(_) => {}
            None if self.eager => self.check_size(buffer, &allocation, id)?,
            None => {}
        }
        Ok(())
    }

    /// A free waits for the alloc and for everybody who used the memory.
    fn check_last_user(
        &self,
        buffer: &TrackedBuffer,
        allocation: &Allocation,
        me: u64,
        id: AllocationId,
    ) -> Check {
        let Some(order) = self.window.order() else { return Ok(()) };
        let checked = match (&allocation.contents, allocation.made_by) {
            (Some(contents), _) => contents.ledger.check_free(order, me),
            (None, Some(earlier)) if !order.waits_for(me, earlier) => {
                Err(Clash { earlier, hazard: Hazard::FreeAfterUse, part: Box3::EMPTY })
            }
            (None, _) => Ok(()),
        };
        checked.map_err(|clash| self.unordered(buffer, me, (allocation.memory, id), clash))
    }

    pub(crate) fn unordered(
        &self,
        buffer: &TrackedBuffer,
        me: u64,
        (memory, id): (MemoryId, AllocationId),
        clash: Clash,
    ) -> Box<Violation> {
        let [later, earlier] = [me, clash.earlier].map(|index| self.window.vertex(index));
        let place = buffer.place_in(clash.part, memory, id);
        Box::new(Violation::Unordered { later, earlier, hazard: clash.hazard, place })
    }

    /// Checks that `elements` lie where `placement` says, and notes the access.
    pub(crate) fn place(
        &mut self,
        buffer: &mut TrackedBuffer,
        vertex: Vertex,
        placement: &Placement,
        elements: &[Box3],
    ) -> Check {
        let Placement { allocation: id, memory, extent } = *placement;
        let next = self.next_allocation;
        let Some(allocation) = self.allocations.get_mut(&id) else {
            return Err(match id.index() < next {
                true => Violation::UseAfterFree { vertex, allocation: id }.into(),
                false => Violation::UnknownAllocation { vertex, allocation: id }.into(),
            });
        };
        if let Some(why) = misplaced(buffer, allocation, placement) {
            let place = buffer.place_in(extent, memory, id);
            return Err(Violation::BadPlacement { vertex, place, why }.into());
        }
        let made_by = allocation.made_by;
        allocation.contents.get_or_insert_with(|| Contents {
            extent,
            ledger: Ledger::new(extent, AbstractValue::Undefined, made_by),
        });
        for part in elements {
            if !allocation.has_memory(part) {
                let (place, why) = (buffer.place_in(*part, memory, id), "there is no memory yet");
                return Err(Violation::BadPlacement { vertex, place, why }.into());
            }
            if !holds(&extent, part) {
                let (place, why) = (buffer.place_in(*part, memory, id), "it does not hold all");
                return Err(Violation::BadPlacement { vertex, place, why }.into());
            }
            buffer.note_access(memory, part);
        }
        Ok(())
    }

    /// Nothing was allocated without need for the task in hand.
    pub(crate) fn check_sizes(&self, buffers: &Buffers, batch: &TaskCheck<'_>) -> Check {
        if self.eager {
            return Ok(());
        }
        let alive = batch.made.iter().filter_map(|id| Some((*id, self.allocations.get(id)?)));
        let outgrown = batch.outgrown.iter().map(|(id, allocation)| (*id, allocation));
        for (id, allocation) in alive.chain(outgrown) {
            let vertex = self.window.vertex(allocation.made_by.unwrap_or(0));
            self.check_size(buffers.get(vertex, allocation.buffer)?, allocation, id)?;
        }
        Ok(())
    }

    /// Notes that `target` takes over what `source` holds, if both are of one memory.
    pub(crate) fn note_move(&mut self, source: &Placement, target: &Placement) {
        if source.memory == target.memory
            && let Some(before) = self.allocations.get(&source.allocation).map(|old| old.moves)
            && let Some(new) = self.allocations.get_mut(&target.allocation)
        {
            new.moves = new.moves.max(before + 1);
        }
    }

    /// An allocation is used, and lies inside the bounding box of what has been
    /// accessed in its memory; if it grows step by step, ahead of that by as much at most.
    pub(crate) fn check_size(
        &self,
        buffer: &TrackedBuffer,
        allocation: &Allocation,
        id: AllocationId,
    ) -> Check {
        let Some(made_by) = allocation.made_by else { return Ok(()) };
        let vertex = self.window.vertex(made_by);
        let Some(extent) = allocation.bounds() else {
            return Violation::Unused { vertex, allocation: id }.note(&self.waste);
        };
        let accessed = buffer.accessed(allocation.memory);
        let most = if allocation.moves < MOVES_IN_STEPS { accessed } else { widened(&accessed) };
        match holds(&most, &extent) {
            true => Ok(()),
            false => {
                let place = buffer.place_in(extent, allocation.memory, id);
                Violation::Oversized { vertex, place, accessed }.note(&self.waste)
            }
        }
    }

    /// A dropped buffer leaves nothing behind.
    pub(crate) fn check_leaks(&self, buffer: &TrackedBuffer) -> Check {
        let id = buffer.info.id;
        let mut left = self.owned.range((id, AllocationId::from_index(0))..);
        let left = left.next().filter(|(owner, _)| *owner == id);
        match left.and_then(|(_, left)| self.allocations.get_key_value(left)) {
            None => Ok(()),
            Some((&allocation, left)) => Err(Violation::Leak {
                made_by: left.made_by.map(|index| self.window.vertex(index)),
                memory: left.memory,
                allocation,
                buffer: id,
                name: buffer.info.name.clone(),
            }
            .into()),
        }
    }
}

/// Who has moved its data so often within a memory may allocate ahead of its needs.
const MOVES_IN_STEPS: u32 = 4;

/// A box with as much on each side as it is wide.
fn widened(part: &Box3) -> Box3 {
    let ([min, max], range) = ([part.min(), part.max()], part.range());
    Box3::new(
        std::array::from_fn(|dim| min[dim].saturating_sub(range[dim])),
        std::array::from_fn(|dim| max[dim].saturating_add(range[dim])),
    )
}

/// What is wrong with a placement, judged by what is known of its allocation.
fn misplaced(
    buffer: &TrackedBuffer,
    allocation: &Allocation,
    placement: &Placement,
) -> Option<&'static str> {
    let extent = placement.extent;
    if allocation.memory != placement.memory {
        return Some("the allocation lies in another memory");
    }
    if allocation.buffer != buffer.info.id {
        return Some("the allocation belongs to another buffer");
    }
    match &allocation.contents {
        Some(contents) if contents.extent != extent => Some("the allocation holds another box"),
        Some(_) => None,
        None if extent.is_empty() || !holds(&buffer.info.extent, &extent) => {
            Some("the allocation would reach beyond the buffer")
        }
        None if size_of(&extent, buffer.info.elem_size) != allocation.bytes => {
            Some("the allocation has not that size")
        }
        None => None,
    }
}
