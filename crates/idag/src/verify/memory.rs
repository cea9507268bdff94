//! Allocations: what instructions say of them, from the first to the last.

use std::collections::BTreeMap;
use std::ops::Range;

use celerity_regions::{Box3, Region};
use celerity_tdag::BufferId;

use super::Broken;
use crate::effects::{Effects, Elements, LaneKind, Lifetime, LifetimeChange, Touch, TouchMode};
use crate::instruction::{
    AllocationId, DeviceId, DeviceMemory, InstructionId, MemoryId, Placement,
};

/// Everything that has been allocated.
#[derive(Debug)]
pub(super) struct Allocations {
    all: BTreeMap<AllocationId, Allocation>,
    /// What kernels are bound to.
    native: DeviceMemory,
}

/// What is known of one allocation.
#[derive(Clone, Debug)]
struct Allocation {
    memory: MemoryId,
    buffer: BufferId,
    /// `None` for initial contents.
    bytes: Option<u64>,
    /// Told by the first instruction that touches it.
    extent: Option<Box3>,
    /// Where there is memory, if there are only addresses at first.
    provided: Option<Region>,
    alive: bool,
}

impl Allocations {
    pub(super) fn new(native: DeviceMemory, initial: &[(AllocationId, BufferId)]) -> Self {
        let given = initial.iter().map(|&(id, buffer)| {
            let (memory, bytes, extent) = (native.of_initial_contents(), None, None);
            (id, Allocation { memory, buffer, bytes, extent, provided: None, alive: true })
        });
        Self { all: given.collect(), native }
    }

    pub(super) fn check(
        &mut self,
        instruction: InstructionId,
        effects: &Effects<'_>,
        broken: &mut Vec<Broken>,
    ) {
        let mut note = |(memory, allocation), why: Option<&'static str>| {
            broken.extend(why.map(|why| Broken::Memory { instruction, memory, allocation, why }));
        };
        if let Some(lifetime) = &effects.lifetime {
            let place = (lifetime.memory, lifetime.allocation);
            note(place, self.change(lifetime));
        }
        let reached = reached(effects, self.native);
        let is_wired = effects.exchange.is_some() && effects.participates.is_none();
        for used in effects.touches() {
            let place = (used.placement.memory, used.placement.allocation);
            let by_wire = is_wired && place.0.device().is_some();
            let elsewhere = !by_wire && reached.is_some_and(|memory| memory != place.0);
            note(place, elsewhere.then_some("lies in a memory that is out of reach"));
            note(place, self.touch(&used, effects));
        }
        if let (Some(source), Some(target)) = (&effects.source, &effects.target) {
            let same = source.placement.allocation == target.placement.allocation;
            let place = (source.placement.memory, source.placement.allocation);
            note(place, same.then_some("is copied to itself"));
        }
    }

    fn change(&mut self, lifetime: &Lifetime<'_>) -> Option<&'static str> {
        let place @ (memory, allocation) = (lifetime.memory, lifetime.allocation);
        match lifetime.change {
            LifetimeChange::Made { buffer, bytes, provided, .. } => {
                let nothing = (!provided).then(Region::empty);
                self.make(allocation, memory, buffer, bytes, nothing)
            }
            LifetimeChange::Grown { buffer, elements, bytes } => {
                self.grow(place, buffer, &elements, bytes)
            }
            LifetimeChange::Ended => self.free(allocation, memory),
        }
    }

    fn make(
        &mut self,
        id: AllocationId,
        memory: MemoryId,
        buffer: BufferId,
        bytes: u64,
        provided: Option<Region>,
    ) -> Option<&'static str> {
        let bytes = Some(bytes);
        let made = Allocation { memory, buffer, bytes, extent: None, provided, alive: true };
        let known = self.all.insert(id, made).is_some();
        match memory {
            _ if known => Some("is allocated a second time"),
            _ if bytes == Some(0) => Some("has no bytes"),
            MemoryId::USER => Some("is allocated in memory that is the user's"),
            _ => None,
        }
    }

    fn grow(
        &mut self,
        (memory, id): (MemoryId, AllocationId),
        buffer: BufferId,
        elements: &Box3,
        bytes: &Range<u64>,
    ) -> Option<&'static str> {
        let Some(known) = self.all.get_mut(&id) else { return Some("was never allocated") };
        let fits = known.bytes.is_some_and(|reserved| bytes.end <= reserved);
        let whole = (bytes.end.saturating_sub(bytes.start)).is_multiple_of(elements.volume());
        match &mut known.provided {
            _ if !known.alive => Some("grows after it was freed"),
            _ if (known.memory, known.buffer) != (memory, buffer) => Some("is another's and grows"),
            None => Some("grows and has all of its memory"),
            Some(_) if elements.is_empty() || !fits || !whole => {
                Some("grows by what are not its elements")
            }
            Some(provided) => {
                provided.union_box(elements);
                None
            }
        }
    }

    fn free(&mut self, id: AllocationId, memory: MemoryId) -> Option<&'static str> {
        let Some(allocation) = self.all.get_mut(&id) else {
            return Some("is freed and was never allocated");
        };
        match std::mem::replace(&mut allocation.alive, false) {
            false => Some("is freed a second time"),
            true if allocation.memory != memory => Some("is freed in another memory"),
            true => None,
        }
    }

    fn touch(&mut self, used: &Touch<'_>, effects: &Effects<'_>) -> Option<&'static str> {
        let Placement { allocation: id, memory, extent } = *used.placement;
        let Some(known) = self.all.get_mut(&id) else { return Some("was never allocated") };
        let told = *known.extent.get_or_insert(extent);
        let fits = known.bytes.is_none_or(|bytes| has_size(bytes, &extent, effects.elem_size));
        let bounds = used.elements.bounding_box();
        // Of what is between boxes, a collective touches nothing.
        let touched = match &used.elements {
            Elements::Region(region) if effects.participates.is_some() => region.boxes(),
            _ => &[bounds],
        };
        match () {
            () if !known.alive => Some("is used after it was freed"),
            () if known.memory != memory => Some("lies in another memory"),
            () if known.buffer != used.buffer => Some("belongs to another buffer"),
            () if told != extent => Some("has another extent"),
            () if !fits => Some("has not the size of its elements"),
            () if !extent.contains(&bounds) => Some("does not hold all that is touched"),
            () if known
                .provided
                .as_ref()
                .is_some_and(|there| !touched.iter().all(|part| there.contains_box(part))) =>
            {
                Some("has no memory yet for all that is touched")
            }
            () if memory == MemoryId::USER && used.mode == TouchMode::Write => {
                Some("is the user's and written to")
            }
            () => None,
        }
    }
}

fn has_size(bytes: u64, extent: &Box3, elem_size: Option<u64>) -> bool {
    let volume = extent.volume();
    match elem_size {
        Some(elem_size) => volume.checked_mul(elem_size) == Some(bytes),
        None => volume > 0 && bytes.is_multiple_of(volume),
    }
}

/// The memory that an instruction can reach, if only one.
fn reached(effects: &Effects<'_>, native: DeviceMemory) -> Option<MemoryId> {
    if let Some(participation) = effects.participates {
        let of_first = native.of(DeviceId::from_index(0));
        let on_device = participation.memory == of_first;
        return Some(if on_device { of_first } else { MemoryId::HOST });
    }
    match effects.lane {
        LaneKind::Node | LaneKind::HostTask => Some(MemoryId::HOST),
        LaneKind::Kernel(device) => Some(native.of(device)),
        LaneKind::Copy { .. } => None,
    }
}
