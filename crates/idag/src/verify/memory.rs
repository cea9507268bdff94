//! Allocations: what instructions say of them, from the first to the last.

use std::collections::BTreeMap;
use std::ops::Range;

use celerity_regions::{Box3, Region};
use celerity_tdag::BufferId;

use super::Broken;
use crate::instruction::{
    AllocationId, BoundAccess, DeviceMemory, Inbound, Instruction, InstructionKind, MemoryId,
    Placement,
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

/// One use of memory.
struct Use<'a> {
    buffer: BufferId,
    placement: &'a Placement,
    /// The bounds of what is touched.
    bounds: Box3,
    /// Bytes per element, where the instruction says so.
    elem_size: Option<u64>,
    writes: bool,
}

impl Allocations {
    pub(super) fn new(native: DeviceMemory, initial: &[(AllocationId, BufferId)]) -> Self {
        let given = initial.iter().map(|&(id, buffer)| {
            let (memory, bytes, extent) = (native.of_initial_contents(), None, None);
            (id, Allocation { memory, buffer, bytes, extent, provided: None, alive: true })
        });
        Self { all: given.collect(), native }
    }

    pub(super) fn check(&mut self, instruction: &Instruction, broken: &mut Vec<Broken>) {
        let mut note = |(memory, allocation), why: Option<&'static str>| {
            let instruction = instruction.id;
            broken.extend(why.map(|why| Broken::Memory { instruction, memory, allocation, why }));
        };
        match &instruction.kind {
            InstructionKind::Alloc { allocation, memory, buffer, bytes, .. } => {
                let why = self.make(*allocation, *memory, *buffer, *bytes, None);
                note((*memory, *allocation), why);
            }
            InstructionKind::Reserve { allocation, memory, buffer, bytes, .. } => {
                let nothing = Some(Region::empty());
                let why = self.make(*allocation, *memory, *buffer, *bytes, nothing);
                note((*memory, *allocation), why);
            }
            InstructionKind::Grow { allocation, memory, buffer, elements, bytes } => {
                let why = self.grow((*memory, *allocation), *buffer, elements, bytes);
                note((*memory, *allocation), why);
            }
            InstructionKind::Free { allocation, memory } => {
                note((*memory, *allocation), self.free(*allocation, *memory));
            }
            kind => {
                for (used, expected) in uses(kind, self.native) {
                    let place = (used.placement.memory, used.placement.allocation);
                    let elsewhere = expected.is_some_and(|memory| memory != place.0);
                    note(place, elsewhere.then_some("lies in a memory that is out of reach"));
                    note(place, self.touch(&used));
                }
                if let InstructionKind::Copy { source, target, .. } = kind {
                    let same = source.allocation == target.allocation;
                    let place = (source.memory, source.allocation);
                    note(place, same.then_some("is copied to itself"));
                }
            }
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

    fn touch(&mut self, used: &Use<'_>) -> Option<&'static str> {
        let Placement { allocation: id, memory, extent } = *used.placement;
        let Some(known) = self.all.get_mut(&id) else { return Some("was never allocated") };
        let told = *known.extent.get_or_insert(extent);
        let fits = known.bytes.is_none_or(|bytes| has_size(bytes, &extent, used.elem_size));
        match () {
            () if !known.alive => Some("is used after it was freed"),
            () if known.memory != memory => Some("lies in another memory"),
            () if known.buffer != used.buffer => Some("belongs to another buffer"),
            () if told != extent => Some("has another extent"),
            () if !fits => Some("has not the size of its elements"),
            () if !extent.contains(&used.bounds) => Some("does not hold all that is touched"),
            () if known
                .provided
                .as_ref()
                .is_some_and(|there| !there.contains_box(&used.bounds)) =>
            {
                Some("has no memory yet for all that is touched")
            }
            () if memory == MemoryId::USER && used.writes => Some("is the user's and written to"),
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

/// What an instruction touches, and the memory that it can reach, if only one.
fn uses(kind: &InstructionKind, native: DeviceMemory) -> Vec<(Use<'_>, Option<MemoryId>)> {
    match kind {
        InstructionKind::Copy { buffer, source, target, elements, elem_size } => {
            let one = |placement, writes| {
                let elem_size = Some(*elem_size);
                Use { buffer: *buffer, placement, bounds: *elements, elem_size, writes }
            };
            vec![(one(source, false), None), (one(target, true), None)]
        }
        InstructionKind::Send { transfer, source: placement, elements, elem_size, .. } => {
            let (buffer, bounds, elem_size) = (transfer.buffer, *elements, Some(*elem_size));
            vec![(
                Use { buffer, placement, bounds, elem_size, writes: false },
                Some(MemoryId::HOST),
            )]
        }
        InstructionKind::Receive(inbound) | InstructionKind::SplitReceive(inbound) => {
            vec![(arrival(inbound), Some(MemoryId::HOST))]
        }
        InstructionKind::Kernel { device, accesses, .. } => bound(accesses, native.of(*device)),
        InstructionKind::HostTask { accesses, .. } => bound(accesses, MemoryId::HOST),
        _ => Vec::new(),
    }
}

fn arrival(inbound: &Inbound) -> Use<'_> {
    Use {
        buffer: inbound.transfer.buffer,
        placement: &inbound.target,
        bounds: inbound.region.bounding_box(),
        elem_size: Some(inbound.elem_size),
        writes: true,
    }
}

fn bound(accesses: &[BoundAccess], memory: MemoryId) -> Vec<(Use<'_>, Option<MemoryId>)> {
    let placed = accesses.iter().filter_map(|access| {
        let placement = access.placement.as_ref()?;
        let (buffer, bounds) = (access.buffer, access.region.bounding_box());
        let used = Use { buffer, placement, bounds, elem_size: None, writes: false };
        Some((used, Some(memory)))
    });
    placed.collect()
}
