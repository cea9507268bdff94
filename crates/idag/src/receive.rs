//! Pass: what an await-push command announced is received (instruction-graph preprint, §3.4), into
//! host memory or where the network [puts it](crate::wires) for the device that reads it: as one *receive* if all consumers need all of it, and
//! otherwise as a *split receive* with one *await receive* per part. What is large and goes on from
//! the host to devices has parts, too: while one is copied there, the next one arrives.

use celerity_regions::Region;

use crate::buffer::{AnnouncedData, BufferState};
use crate::emitter::Emitter;
use crate::instruction::{Inbound, InstructionId, MemoryId};
use crate::links::Links;
use crate::pieces::{Pieces, consumer_split, contiguous_pieces};

/// Receives all that is awaited; `consumers` are the regions that launches read, `arrival` is the
/// memory that a piece goes to, in which its bounds have been allocated, and `onwards` is the way
/// from the host to the devices that read, if what arrives goes there in pieces.
pub(crate) fn receive<'a>(
    emitter: &mut Emitter<'_>,
    buffer: &mut BufferState,
    consumers: impl Iterator<Item = &'a Region> + Clone,
    arrival: impl Fn(&BufferState, &Region) -> MemoryId,
    onwards: Option<&Links>,
) {
    for AnnouncedData { transfer, region } in std::mem::take(&mut buffer.awaited) {
        for piece in contiguous_pieces(&region) {
            #[cfg(feature = "mutants")]
            let piece = celerity_mutants::Mutant::FirstBoxReceived
                .alter(piece, |piece| piece.boxes()[0].into());
            let (elem_size, memory) = (buffer.elem_size, arrival(buffer, &piece));
            let backing = buffer.backing(memory, &piece.bounding_box());
            let target = backing.placement;
            let parts = consumer_split(&piece, consumers.clone());
            let parts = match onwards.filter(|_| memory == MemoryId::HOST) {
                Some(links) => parts.iter().flat_map(|part| cut(buffer, links, part)).collect(),
                None => parts,
            };
            let inbound = Inbound { transfer, target, region: piece, elem_size };
            receive_piece(emitter, buffer, inbound, &parts);
        }
    }
}

/// The parts of a region that are copied to devices as soon as they have arrived.
fn cut(buffer: &BufferState, links: &Links, region: &Region) -> Pieces {
    let slabs = links.pieces(&region.bounding_box(), &buffer.extent, buffer.elem_size);
    let parts = slabs.iter().map(|slab| region.intersection_box(slab));
    parts.filter(|part| !part.is_empty()).collect()
}

fn receive_piece(
    emitter: &mut Emitter<'_>,
    buffer: &mut BufferState,
    inbound: Inbound,
    parts: &Pieces,
) {
    let (transfer, memory) = (inbound.transfer, inbound.target.memory);
    let backing = buffer.backing(memory, &inbound.region.bounding_box());
    if let [all] = parts.as_slice() {
        let id = emitter.receive(backing, inbound);
        produced(buffer, (id, memory), all);
        return;
    }
    let begin = emitter.split_receive(backing, inbound);
    for part in parts {
        let id = emitter.await_receive(begin, transfer, part.clone());
        #[cfg(feature = "mutants")]
        let id = celerity_mutants::Mutant::SecondConsumerDoesNotAwait
            .alter(id, |id| if *part == parts[0] { id } else { begin });
        produced(buffer, (id, memory), part);
    }
}

fn produced(buffer: &mut BufferState, (id, memory): (InstructionId, MemoryId), region: &Region) {
    buffer.backing(memory, &region.bounding_box()).note_write(id, region);
    buffer.note_production(region, id, memory);
}
