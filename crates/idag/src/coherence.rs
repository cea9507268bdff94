//! Pass: before something in a memory is read, it is made current there
//! (instruction-graph preprint, §3.3). One copy per pair of original producer and consumer, so that
//! no copy waits for more than its own data; nothing current is copied again.

use celerity_regions::{Box3, Region};

use crate::backing::Backing;
use crate::buffer::{BufferState, Identity, Version};
use crate::emit::{Schedule, Stream};
use crate::instruction::{InstructionId, InstructionKind, MemoryId};
#[cfg(feature = "mutants")]
use crate::mistakes;
use crate::pieces::{Parts, join};
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
    // The rule, where data stays where it is worked on.
    if is_current(buffer, memory, region) {
        return;
    }
    let missing = missing(buffer, links, memory, region);
    for (part, (source, _)) in &missing {
        copy_between(stream, out, buffer, links, (*source, memory), *part);
    }
    buffer.note_current(region, memory);
}

/// Whether `memory` has all of `region` as it is now.
pub(crate) fn is_current(buffer: &BufferState, memory: MemoryId, region: &Region) -> bool {
    let mut current = true;
    let mut look = |_, version: &Version| current &= version.holders.contains(memory);
    buffer.versions.for_each_in_region(region, &mut look);
    current
}

/// What `memory` lacks of `region`: boxes with the memory to copy them from, and
/// one producer each.
fn missing(
    buffer: &BufferState,
    links: &Links,
    memory: MemoryId,
    region: &Region,
) -> Parts<(MemoryId, InstructionId)> {
    let mut missing = Parts::new();
    buffer.versions.for_each_in_region(region, |part, version| {
        #[cfg(feature = "mutants")]
        let version = &mistakes::misplaced(buffer, version);
        if !version.holders.contains(memory) {
            missing.push((part, (links.source(version, memory), version.producer)));
        }
    });
    join(&mut missing);
    missing
}

/// Copies `part` from one memory to another, allocation by allocation.
fn copy_between(
    stream: &mut Stream,
    out: &mut Schedule,
    buffer: &mut BufferState,
    links: &Links,
    (from, to): (MemoryId, MemoryId),
    part: Box3,
) {
    let identity = buffer.identity();
    let (sources, targets, stages) = buffer.two_memories(from, to);
    let mut copied = 0;
    for source in sources.iter_mut().filter(|source| source.holds_some_of(&part)) {
        for there in source.held_in(&part) {
            for target in targets.iter_mut().filter(|target| target.holds_some_of(&there)) {
                for elements in target.held_in(&there) {
                    copied += elements.volume();
                    let ends = (source.side(), target.side());
                    let stops = links.stops(ends, &elements, identity.elem_size);
                    let ends = (&mut *source, &mut *target);
                    stages.copy_through(stream, out, identity, &stops, ends, elements);
                }
            }
        }
    }
    debug_assert_eq!(copied, part.volume(), "{part} of {} is allocated in {to}", identity.buffer);
}

/// Emits a copy of `elements` between two allocations of a buffer.
pub(crate) fn copy(
    stream: &mut Stream,
    out: &mut Schedule,
    Identity { buffer, elem_size, .. }: Identity,
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
