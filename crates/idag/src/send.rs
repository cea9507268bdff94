//! Pass: a push command becomes sends from host memory, one per target, box
//! and original producer, each announced by a pilot (002 §3.4). Data that goes
//! to several nodes is copied to the host once.

use celerity_cdag::{NodeId, TransferId};
use celerity_regions::{Box3, Region};
use smallvec::SmallVec;

use crate::allocate::{Needs, allocate};
use crate::buffer::BufferState;
use crate::coherence::make_coherent;
use crate::emit::{Schedule, Stream};
use crate::instruction::{InstructionKind, MemoryId, Pilot};
use crate::pieces::contiguous_pieces;
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
    let needs = Needs { boxes: departure_boxes(targets), discarded: Region::empty() };
    allocate(stream, out, buffer, MemoryId::HOST, &needs);
    for (to, region) in targets {
        make_coherent(stream, out, buffer, links, MemoryId::HOST, region);
        for part in by_producer(buffer, region) {
            send(stream, out, buffer, transfer, *to, part);
        }
    }
}

/// The boxes that what is sent needs in host memory.
pub(crate) fn departure_boxes(targets: &[(NodeId, Region)]) -> SmallVec<[Box3; 3]> {
    let regions = targets.iter().map(|(_, region)| region);
    regions.flat_map(contiguous_pieces).map(|piece| piece.bounding_box()).collect()
}

fn by_producer(buffer: &BufferState, region: &Region) -> SmallVec<[Box3; 4]> {
    let mut parts = SmallVec::new();
    buffer.versions.for_each_in_region(region, |part, _| parts.push(part));
    parts
}

fn send(
    stream: &mut Stream,
    out: &mut Schedule,
    buffer: &mut BufferState,
    transfer: TransferId,
    to: NodeId,
    elements: Box3,
) {
    let elem_size = buffer.elem_size;
    let backing = buffer.backing(MemoryId::HOST, &elements);
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
