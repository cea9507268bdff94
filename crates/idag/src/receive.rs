//! Pass: what an await-push command announced is received (instruction-graph preprint, §3.4), into
//! host memory or where the network [puts it](crate::wires) for the device that reads it: as one *receive* if all consumers need all of it, and
//! otherwise as a *split receive* with one *await receive* per part. What is large and goes on from
//! the host to devices has parts, too: while one is copied there, the next one arrives.

use celerity_regions::Region;

use crate::buffer::{AnnouncedData, BufferState};
use crate::emitter::Emitter;
use crate::instruction::{Inbound, InstructionId, MemoryId};
use crate::links::Links;
use crate::pieces::{MOST_APART, Pieces, consumer_split, contiguous_pieces};

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
    let place = |buffer: &BufferState, piece: &Region| {
        let (memory, bounds) = (arrival(buffer, piece), piece.bounding_box());
        let at = buffer.backing_of(memory, &bounds);
        (memory, at.unwrap_or_else(|| unreachable!("{bounds} has been allocated")))
    };
    for AnnouncedData { transfer, region } in std::mem::take(&mut buffer.awaited) {
        let mut receive_at = |buffer: &mut BufferState, (memory, at), piece: Region, is_cut| {
            #[cfg(feature = "mutants")]
            let piece = celerity_mutants::Mutant::FirstBoxReceived
                .alter(piece, |piece| piece.boxes()[0].into());
            let (elem_size, target) = (buffer.elem_size, buffer.backings(memory)[at].placement);
            let parts = match is_cut {
                true => consumer_split(&piece, consumers.clone()),
                false => Pieces::from_iter([piece.clone()]),
            };
            let parts = match onwards.filter(|_| memory == MemoryId::HOST) {
                Some(links) => parts.iter().flat_map(|part| cut(buffer, links, part)).collect(),
                None => parts,
            };
            let inbound = Inbound { transfer, target, region: piece, elem_size };
            receive_piece(emitter, buffer, at, inbound, &parts);
        };
        let pieces = contiguous_pieces(&region);
        if pieces.len() <= MOST_APART {
            for piece in pieces {
                receive_at(buffer, place(buffer, &piece), piece, true);
            }
            continue;
        }
        let joined = by_allocation(pieces, |piece| place(buffer, piece));
        // Of thousands that lie apart, none is worth a look at what each consumer reads.
        let are_cut = joined.len() <= MOST_APART;
        for (at, piece) in joined {
            receive_at(buffer, at, piece, are_cut);
        }
    }
}

/// A memory, and the position of an allocation there.
type Place = (MemoryId, usize);

/// What of some pieces arrives in each allocation.
fn by_allocation(pieces: Pieces, place: impl Fn(&Region) -> Place) -> Vec<(Place, Region)> {
    let mut placed: Vec<_> = pieces.into_iter().map(|piece| (place(&piece), piece)).collect();
    placed.sort_by_key(|(at, _)| *at);
    let together = placed.chunk_by(|(a, _), (b, _)| a == b).map(|pieces| {
        let boxes = pieces.iter().flat_map(|(_, piece)| piece.boxes());
        (pieces[0].0, Region::from_boxes(boxes.copied()))
    });
    together.collect()
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
