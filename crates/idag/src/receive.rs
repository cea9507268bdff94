//! Pass: what an await-push command announced is received (instruction-graph preprint, §3.4), into
//! host memory or where the network [puts it](crate::wires) for the device that reads it: as one *receive* if all consumers need all of it, and
//! otherwise as a *split receive* with one *await receive* per part. What is large and goes on from
//! the host to devices has parts, too: while one is copied there, the next one arrives.

use celerity_regions::Region;
use smallvec::SmallVec;

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
        for (memory, at, piece) in landings(buffer, &region, &arrival) {
            #[cfg(feature = "mutants")]
            let piece = celerity_mutants::Mutant::FirstBoxReceived
                .alter(piece, |piece| piece.boxes()[0].into());
            let (elem_size, target) = (buffer.elem_size, buffer.backings(memory)[at].placement);
            let parts = consumer_split(&piece, consumers.clone());
            let parts = match onwards.filter(|_| memory == MemoryId::HOST) {
                Some(links) => parts.iter().flat_map(|part| cut(buffer, links, part)).collect(),
                None => parts,
            };
            let inbound = Inbound { transfer, target, region: piece, elem_size };
            receive_piece(emitter, buffer, at, inbound, &parts);
        }
    }
}

/// So many pieces of a region are received each by itself: who needs one does not wait for the others.
const MOST_APART: usize = if cfg!(feature = "mutants") { 4 } else { 16 };

/// What is received at once: memories, positions of allocations there, and what arrives in them. Of more than [`MOST_APART`] pieces, as where
/// tables say what is read, all that lies in the same allocation.
fn landings(
    buffer: &BufferState,
    region: &Region,
    arrival: &impl Fn(&BufferState, &Region) -> MemoryId,
) -> SmallVec<[(MemoryId, usize, Region); 2]> {
    let place = |piece: Region| {
        let (memory, bounds) = (arrival(buffer, &piece), piece.bounding_box());
        let at = buffer.backing_of(memory, &bounds);
        (memory, at.unwrap_or_else(|| unreachable!("{bounds} has been allocated")), piece)
    };
    let mut pieces: SmallVec<_> = contiguous_pieces(region).into_iter().map(place).collect();
    if pieces.len() <= MOST_APART {
        return pieces;
    }
    pieces.sort_by_key(|(memory, at, _)| (*memory, *at));
    let same =
        |a: &(MemoryId, usize, Region), b: &(MemoryId, usize, Region)| (a.0, a.1) == (b.0, b.1);
    let joined = pieces.chunk_by(same).map(|pieces| {
        let boxes = pieces.iter().flat_map(|(.., piece)| piece.boxes());
        (pieces[0].0, pieces[0].1, Region::from_boxes(boxes.copied()))
    });
    joined.collect()
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
    at: usize,
    inbound: Inbound,
    parts: &Pieces,
) {
    let (transfer, memory) = (inbound.transfer, inbound.target.memory);
    let backing = &mut buffer.backings_mut(memory)[at];
    if let [all] = parts.as_slice() {
        let id = emitter.receive(backing, inbound);
        produced(buffer, (id, memory, at), all);
        return;
    }
    let begin = emitter.split_receive(backing, inbound);
    for part in parts {
        let id = emitter.await_receive(begin, transfer, part.clone());
        #[cfg(feature = "mutants")]
        let id = celerity_mutants::Mutant::SecondConsumerDoesNotAwait
            .alter(id, |id| if *part == parts[0] { id } else { begin });
        produced(buffer, (id, memory, at), part);
    }
}

fn produced(
    buffer: &mut BufferState,
    (id, memory, at): (InstructionId, MemoryId, usize),
    region: &Region,
) {
    buffer.backings_mut(memory)[at].note_write(id, region);
    buffer.note_production(region, id, memory);
}
