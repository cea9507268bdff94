//! Pass: before something in a memory is read, it is made current there
//! (instruction-graph preprint, §3.3). One copy per pair of original producer and consumer, so that
//! no copy waits for more than its own data; nothing current is copied again.

use celerity_regions::{Box3, Region};

use crate::buffer::BufferState;
use crate::emitter::Emitter;
use crate::gather::copy_through;
use crate::instruction::{InstructionId, MemoryId};
use crate::links::Links;
#[cfg(feature = "mutants")]
use crate::mistakes;
use crate::pieces::{MOST_APART, Parts, join};
use crate::version::{MemorySet, Version};

/// Makes `region` current in `memory`, where it has been allocated.
pub(crate) fn make_coherent(
    emitter: &mut Emitter<'_>,
    buffer: &mut BufferState,
    links: &Links,
    memory: MemoryId,
    region: &Region,
) {
    if bring(emitter, buffer, links, memory, region) {
        buffer.note_current(region, MemorySet::only(memory));
    }
}

/// Copies what `memory` lacks of `region`, and says whether that was anything: [`BufferState::note_current`] is the caller's business,
/// who may have more to note.
pub(crate) fn bring(
    emitter: &mut Emitter<'_>,
    buffer: &mut BufferState,
    links: &Links,
    memory: MemoryId,
    region: &Region,
) -> bool {
    // The rule, where data stays where it is worked on.
    if is_current(buffer, memory, region) {
        return false;
    }
    let missing = missing(buffer, links, memory, region);
    copy_parts(emitter, buffer, links, memory, (&missing, |(source, _)| source));
    true
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
    #[cfg(feature = "mutants")]
    let has_initial_data = !buffer.backings(MemoryId::USER).as_slice().is_empty();
    buffer.versions.for_each_in_region(region, |part, version| {
        #[cfg(feature = "mutants")]
        let version = &mistakes::misplaced(has_initial_data, version);
        if !version.holders.contains(memory) {
            missing.push((part, (links.source(version.origin, memory), version.producer)));
        }
    });
    join(&mut missing);
    missing
}

/// Copies parts to a memory, each from the memory that `source` tells for its place: together, if many have one place.
#[inline]
pub(crate) fn copy_parts<K: Copy + PartialEq>(
    emitter: &mut Emitter<'_>,
    buffer: &mut BufferState,
    links: &Links,
    to: MemoryId,
    (parts, source): (&Parts<K>, impl Fn(K) -> MemoryId),
) {
    let mut parts = parts.as_slice();
    while let [(part, place), rest @ ..] = parts {
        let ends = (source(*place), to);
        let alike = match parts.len() > MOST_APART {
            true => parts.iter().take_while(|(_, other)| other == place).count(),
            false => 1,
        };
        if alike > MOST_APART {
            let together = parts[..alike].iter().map(|(part, _)| part);
            copy_together(emitter, buffer, links, ends, together);
            parts = &parts[alike..];
        } else {
            copy_between(emitter, buffer, links, ends, *part);
            parts = rest;
        }
    }
}

/// Copies `parts` from one memory to another: in one copy what lies in the same allocations on both sides, but for what
/// stops on its way.
#[inline(never)]
fn copy_together<'a>(
    emitter: &mut Emitter<'_>,
    buffer: &mut BufferState,
    links: &Links,
    (from, to): (MemoryId, MemoryId),
    parts: impl Iterator<Item = &'a Box3>,
) {
    let identity = buffer.identity();
    let (sources, targets, stages) = buffer.two_memories(from, to);
    // With the positions of the allocations.
    let mut direct: Vec<((usize, usize), Box3)> = Vec::new();
    for part in parts {
        for source in sources.holding_some_of(part) {
            for there in sources[source].held_in(part) {
                for target in targets.holding_some_of(&there) {
                    for elements in targets[target].held_in(&there) {
                        let ends = (&mut sources[source], &mut targets[target]);
                        let sides = (ends.0.side(), ends.1.side());
                        let stops = links.stops(sides, &elements, identity.elem_size);
                        match stops.is_empty() {
                            true => direct.push(((source, target), elements)),
                            false => {
                                copy_through(emitter, stages, identity, &stops, ends, elements);
                            }
                        }
                    }
                }
            }
        }
    }
    direct.sort_by_key(|(ends, _)| *ends);
    #[cfg(feature = "mutants")]
    if celerity_mutants::Mutant::LastBoxUncopied.is_active() {
        direct.pop();
    }
    for together in direct.chunk_by(|(a, _), (b, _)| a == b) {
        let (source, target) = together[0].0;
        let region = Region::from_boxes(together.iter().map(|(_, elements)| *elements));
        emitter.copy(identity, (&mut sources[source], &mut targets[target]), region);
    }
}

/// Copies `part` from one memory to another, allocation by allocation.
fn copy_between(
    emitter: &mut Emitter<'_>,
    buffer: &mut BufferState,
    links: &Links,
    (from, to): (MemoryId, MemoryId),
    part: Box3,
) {
    let identity = buffer.identity();
    let (sources, targets, stages) = buffer.two_memories(from, to);
    let mut copied = 0;
    sources.each_holding_some_of(&part, |source| {
        for there in source.held_in(&part) {
            targets.each_holding_some_of(&there, |target| {
                for elements in target.held_in(&there) {
                    copied += elements.volume();
                    let ends = (source.side(), target.side());
                    let stops = links.stops(ends, &elements, identity.elem_size);
                    let ends = (&mut *source, &mut *target);
                    copy_through(emitter, stages, identity, &stops, ends, elements);
                }
            });
        }
    });
    debug_assert_eq!(copied, part.volume(), "{part} of {} is allocated in {to}", identity.buffer);
}
