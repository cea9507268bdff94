//! Pass: a push command becomes sends from host memory, one per target, box
//! and original producer, each announced by a pilot (002 §3.4). Data that goes
//! to several nodes is copied to the host once: to the buffer's allocation
//! there, or to a stage where that would be mostly empty.

use celerity_cdag::{NodeId, TransferId};
use celerity_regions::{Box3, Region};

use crate::allocate::{Needs, allocate};
use crate::backing::Backing;
use crate::buffer::{BufferState, Version};
use crate::coherence::make_coherent;
use crate::emit::{Schedule, Stream};
use crate::growth::Reservations;
use crate::instruction::{InstructionId, InstructionKind, MemoryId, Pilot};
use crate::pieces::{Parts, departure_boxes, join};
use crate::staging::Links;
#[cfg(feature = "mutants")]
use crate::{instruction::Placement, mistakes};

pub(crate) fn push(
    stream: &mut Stream,
    out: &mut Schedule,
    buffer: &mut BufferState,
    links: &Links,
    (transfer, targets): (TransferId, &[(NodeId, Region)]),
) {
    let boxes = departure_boxes(targets.iter().map(|(_, region)| region));
    let needs = Needs { boxes, discarded: Region::empty() };
    allocate(stream, out, buffer, MemoryId::HOST, &needs, &Reservations::default());
    let elem_size = buffer.elem_size;
    // What an all-gather sends is the same for all targets.
    for same in targets.chunk_by(|(_, a), (_, b)| a == b) {
        for (elements, (_, origin)) in by_producer(buffer, &same[0].1) {
            let backing = provide(stream, out, buffer, links, (elements, origin));
            for &(to, _) in same {
                send(stream, out, backing, Parcel { to, transfer, elements, elem_size });
            }
        }
    }
}

/// Brings `part`, which was written to `origin`, to the host in one piece: to
/// the allocation for it, or else to a stage.
fn provide<'a>(
    stream: &mut Stream,
    out: &mut Schedule,
    buffer: &'a mut BufferState,
    links: &Links,
    (part, origin): (Box3, MemoryId),
) -> &'a mut Backing {
    if buffer.backing_of(MemoryId::HOST, &part).is_some() {
        make_coherent(stream, out, buffer, links, MemoryId::HOST, &part.into());
        return buffer.backing(MemoryId::HOST, &part);
    }
    let identity = buffer.identity();
    let (sources, stages) = buffer.memory_and_stages(origin);
    stages.pack(stream, out, identity, links, sources, part)
}

/// What one message is about.
struct Parcel {
    to: NodeId,
    transfer: TransferId,
    elements: Box3,
    elem_size: u64,
}

/// Boxes of a region with one producer each, and the memory that it wrote to.
fn by_producer(buffer: &BufferState, region: &Region) -> Parts<(InstructionId, MemoryId)> {
    let mut parts = Parts::new();
    let mut add = |part, version: &Version| parts.push((part, (version.producer, version.origin)));
    buffer.versions.for_each_in_region(region, &mut add);
    join(&mut parts);
    parts
}

fn send(stream: &mut Stream, out: &mut Schedule, backing: &mut Backing, parcel: Parcel) {
    let Parcel { to, transfer, elements, elem_size } = parcel;
    let region = Region::from(elements);
    let mut waits = stream.waits();
    backing.before_read(&region, &mut waits);
    #[cfg(feature = "mutants")]
    let waits = celerity_mutants::Mutant::SendNotAfterProducer.alter(waits, |_| stream.waits());
    let message = stream.new_message();
    out.pilots.push(Pilot { to, message, transfer, elements });
    #[cfg(feature = "mutants")]
    mistakes::announce(out.pilots.last_mut());
    let source = backing.placement;
    #[cfg(feature = "mutants")]
    let source = celerity_mutants::Mutant::SendFromShiftedSource
        .alter(source, |source| Placement { extent: elements, ..source });
    let kind = InstructionKind::Send { to, message, transfer, source, elements, elem_size };
    let id = stream.emit(out, kind, waits);
    backing.note_read(id, &region);
}
