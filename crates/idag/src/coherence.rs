//! Pass: before something in a memory is read, it is made current there
//! (002 §3.3). One copy per pair of original producer and consumer, so that no
//! copy waits for more than its own data; nothing current is copied again.

use celerity_regions::{Box3, Region};
use celerity_tdag::BufferId;
use smallvec::SmallVec;

use crate::backing::Backing;
use crate::buffer::BufferState;
use crate::emit::{Schedule, Stream};
use crate::instruction::{InstructionId, InstructionKind, MemoryId};
#[cfg(feature = "mutants")]
use crate::mistakes;
use crate::staging::Links;

/// Makes `region` current in `memory`, where it has been allocated.
pub(crate) fn make_coherent(
    stream: &mut Stream,
    out: &mut Schedule,
    buffer: &mut BufferState,
    links: &Links,
    memory: MemoryId,
    region: &Region,
) {
    for (part, source) in &missing(buffer, links, memory, region) {
        copy_between(stream, out, buffer, (*source, memory), *part);
        buffer.note_copy(part, memory);
    }
}

/// What `memory` lacks of `region`: boxes with one producer each, and the
/// memory to copy them from.
fn missing(
    buffer: &BufferState,
    links: &Links,
    memory: MemoryId,
    region: &Region,
) -> SmallVec<[(Box3, MemoryId); 4]> {
    let mut missing = SmallVec::new();
    buffer.versions.for_each_in_region(region, |part, version| {
        #[cfg(feature = "mutants")]
        let version = &mistakes::misplaced(buffer, version);
        if !version.holders.contains(memory) {
            missing.push((part, links.source(version, memory)));
        }
    });
    missing
}

/// Copies `part` from one memory to another, allocation by allocation.
fn copy_between(
    stream: &mut Stream,
    out: &mut Schedule,
    buffer: &mut BufferState,
    (from, to): (MemoryId, MemoryId),
    part: Box3,
) {
    let identity = (buffer.id, buffer.elem_size);
    let (sources, targets) = buffer.two_memories(from, to);
    for source in sources {
        let elements = source.placement.extent.intersection(&part);
        if elements.is_empty() {
            continue;
        }
        let holds = |target: &&mut Backing| target.placement.extent.contains(&elements);
        let Some(target) = targets.iter_mut().find(holds) else {
            unreachable!("{elements} of {} is not allocated in {to}", identity.0)
        };
        copy(stream, out, identity, (source, target), elements);
    }
}

/// Emits a copy of `elements` between two allocations of a buffer.
pub(crate) fn copy(
    stream: &mut Stream,
    out: &mut Schedule,
    (buffer, elem_size): (BufferId, u64),
    (source, target): (&mut Backing, &mut Backing),
    elements: Box3,
) -> InstructionId {
    let region = Region::from(elements);
    let mut waits = stream.waits();
    source.before_read(&region, &mut waits);
    #[cfg(feature = "mutants")]
    let mut waits = celerity_mutants::Mutant::CopyNotAfterProducer.alter(waits, |_| stream.waits());
    target.before_write(&region, &mut waits);
    let (from, to) = (source.placement, target.placement);
    let kind = InstructionKind::Copy { buffer, source: from, target: to, elements, elem_size };
    let id = stream.emit(out, kind, waits);
    #[cfg(feature = "mutants")]
    if celerity_mutants::Mutant::CopyIsNoReader.is_active() {
        target.note_write(id, &region);
        return id;
    }
    source.note_read(id, &region);
    target.note_write(id, &region);
    id
}
