//! Pass: a push command becomes sends, one per target, box and original producer, each announced by
//! a pilot (instruction-graph preprint, §3.4); many small boxes leave in [bundles](crate::bundles). What the network [takes](crate::wires) from a
//! device's memory leaves from where it was written. The rest leaves from host memory, piece by
//! piece, so that copies and messages overlap. Data that
//! goes to several nodes is copied to the host once: to the buffer's allocation there, or to a
//! stage where that would be mostly empty, or would cut the data into rows too short for a device
//! to copy.

use celerity_cdag::{NodeId, TransferId};
use celerity_regions::{Box3, BoxIndex, Region};

use crate::allocate::{Needs, allocate, plan};
use crate::backing::Backing;
use crate::buffer::BufferState;
use crate::bundles::{Bundle, Bundles, messages};
use crate::coherence::{bring, is_current, make_coherent};
use crate::emitter::{Emitter, Parcel};
use crate::gather::pack;
use crate::growth::Reservations;
use crate::instruction::{InstructionId, MemoryId};
use crate::links::Links;
use crate::pieces::{Boxes, MANY, Parts, departure_boxes, join};
use crate::version::{MemorySet, Version};
use crate::wires::DeviceWires;

pub(crate) fn push(
    emitter: &mut Emitter<'_>,
    buffer: &mut BufferState,
    (links, wires): (&Links, Option<&DeviceWires>),
    (transfer, targets): (TransferId, &[(NodeId, Region)]),
) {
    match wires {
        None => push_from_host(emitter, buffer, links, (transfer, targets)),
        Some(wires) => {
            let left = push_from_devices(emitter, buffer, (links, wires), (transfer, targets));
            if !left.is_empty() {
                push_from_host(emitter, buffer, links, (transfer, &left));
            }
        }
    }
}

/// Sends what leaves from devices' memories; returns the rest.
fn push_from_devices(
    emitter: &mut Emitter<'_>,
    buffer: &mut BufferState,
    (links, wires): (&Links, &DeviceWires),
    (transfer, targets): (TransferId, &[(NodeId, Region)]),
) -> Vec<(NodeId, Region)> {
    let elem_size = buffer.elem_size;
    let mut left = targets.to_vec();
    for (to, region) in left.iter_mut().filter(|(to, _)| wires.reach(*to)) {
        for (elements, (_, origin)) in by_producer(buffer, region) {
            if let Some(position) = wires.departure(buffer, links, origin, &elements) {
                let backing = &mut buffer.backings_mut(origin)[position];
                let elements = Region::from(elements);
                region.subtract(&elements);
                emitter.send(backing, Parcel { to: *to, transfer, region: elements, elem_size });
            }
        }
    }
    left.retain(|(_, region)| !region.is_empty());
    left
}

fn push_from_host(
    emitter: &mut Emitter<'_>,
    buffer: &mut BufferState,
    links: &Links,
    (transfer, targets): (TransferId, &[(NodeId, Region)]),
) {
    let boxes = departures(buffer, links, targets);
    let needs = Needs { boxes, discarded: Region::empty() };
    allocate(emitter, buffer, MemoryId::HOST, &needs, &Reservations::default());
    // What an all-gather sends is the same for all targets.
    for same in targets.chunk_by(|(_, a), (_, b)| a == b) {
        push_alike(emitter, buffer, links, (transfer, same), Bundles::of(&same[0].1));
    }
}

/// Sends the same elements to all of `targets`: what there are `bundles` for, together.
fn push_alike(
    emitter: &mut Emitter<'_>,
    buffer: &mut BufferState,
    links: &Links,
    (transfer, targets): (TransferId, &[(NodeId, Region)]),
    mut bundles: Option<Bundles>,
) {
    let elem_size = buffer.elem_size;
    let (&(last, ref region), others) = targets.split_last().expect("somebody gets them");
    let send = |emitter: &mut Emitter<'_>, backing: &mut Backing, region: Region| {
        for &(to, _) in others {
            let region = region.clone();
            emitter.send(backing, Parcel { to, transfer, region, elem_size });
        }
        emitter.send(backing, Parcel { to: last, transfer, region, elem_size });
    };
    let send_together =
        |emitter: &mut Emitter<'_>, buffer: &mut BufferState, (position, region): Bundle| {
            let backing = &mut buffer.backings_mut(MemoryId::HOST)[position];
            messages(&region).for_each(|region| send(emitter, backing, region));
        };
    let parts = by_producer(buffer, region);
    let is_elsewhere = |(_, (_, origin)): &(_, (_, MemoryId))| *origin != MemoryId::HOST;
    if bundles.is_some() && parts.iter().any(is_elsewhere) {
        bring_together(emitter, buffer, links, &parts);
    }
    // Noted together, since there may be thousands.
    let mut brought = Boxes::new();
    for (elements, (_, origin)) in parts {
        for elements in pieces(buffer, links, &elements) {
            match provide(emitter, buffer, links, (elements, origin), &mut brought) {
                Provided::Staged(backing) => send(emitter, backing, elements.into()),
                Provided::Allocated(position) => match &mut bundles {
                    None => {
                        let backing = &mut buffer.backings_mut(MemoryId::HOST)[position];
                        send(emitter, backing, elements.into());
                    }
                    Some(bundles) => {
                        let bundle = bundles.add(position, elements, elem_size);
                        bundle.into_iter().for_each(|one| send_together(emitter, buffer, one));
                    }
                },
            }
        }
    }
    let rest = bundles.into_iter().flat_map(Bundles::into_rest);
    rest.for_each(|bundle| send_together(emitter, buffer, bundle));
    if !brought.is_empty() {
        buffer.note_current(&Region::from_boxes(brought), MemorySet::only(MemoryId::HOST));
    }
}

/// Brings what leaves from allocations on the host there, many parts at a time. Those that leave in several pieces are not waited
/// for as a whole.
fn bring_together(
    emitter: &mut Emitter<'_>,
    buffer: &mut BufferState,
    links: &Links,
    parts: &Parts<(InstructionId, MemoryId)>,
) {
    let leaves_at_once = |(part, (_, origin)): &&(Box3, (InstructionId, MemoryId))| {
        links.pieces(part, &buffer.extent, buffer.elem_size).len() == 1
            && leaves_from_allocation(buffer, links, *origin, part).is_some()
    };
    let leaving = parts.iter().filter(leaves_at_once).map(|(part, _)| *part);
    let leaving = Region::from_boxes(leaving);
    make_coherent(emitter, buffer, links, MemoryId::HOST, &leaving);
}

/// The pieces in which `part` leaves: while one is sent, the next one is copied to the host.
fn pieces(buffer: &BufferState, links: &Links, part: &Box3) -> Boxes {
    let pieces = links.pieces(part, &buffer.extent, buffer.elem_size);
    #[cfg(feature = "mutants")]
    let pieces = celerity_mutants::Mutant::LastPieceUnsent.alter(pieces, |mut pieces| {
        pieces.truncate((pieces.len() - 1).max(1));
        pieces
    });
    pieces
}

/// The boxes to allocate on the host: those that messages can be sent from, and for what else
/// leaves, those that the lookahead knows will be allocated anyway, since data will arrive there.
fn departures(buffer: &BufferState, links: &Links, targets: &[(NodeId, Region)]) -> Boxes {
    let regions = || targets.iter().map(|(_, region)| region);
    let mut boxes = departure_boxes(regions(), buffer.elem_size);
    // Of many, those around a part are found by place.
    let index = || -> BoxIndex<()> { boxes.iter().map(|known| (*known, ())).collect() };
    let by_place = (boxes.len() >= MANY).then(index);
    for part in regions().flat_map(Region::boxes) {
        let departs = match &by_place {
            None => boxes.iter().any(|known| known.contains(part)),
            Some(by_place) => by_place.sharing(part).any(|(known, ())| known.contains(part)),
        };
        if !departs {
            boxes.extend(buffer.anticipated.around_all_of(MemoryId::HOST, part));
        }
    }
    if links.linearize_some() {
        for extent in plan(buffer, MemoryId::HOST, &boxes) {
            let leaves = regions().any(|region| anything_leaves(buffer, links, region, &extent));
            boxes.retain(|part| leaves || !extent.contains(part));
        }
    }
    boxes
}

/// Whether an allocation of `extent` on the host would be what some of `region` is sent from.
fn anything_leaves(buffer: &BufferState, links: &Links, region: &Region, extent: &Box3) -> bool {
    let leaves = |(part, (_, origin)): &(Box3, (InstructionId, MemoryId))| {
        extent.contains(part) && !is_gathered(buffer, links, *origin, part, extent)
    };
    by_producer(buffer, region).iter().any(leaves)
}

/// Where elements can be sent from.
enum Provided<'a> {
    /// The allocation in this position.
    Allocated(usize),
    /// A stage.
    Staged(&'a mut Backing),
}

/// Brings `part`, which was written to `origin`, to the host in one piece: to
/// the allocation for it, or else to a stage. If it was brought to the allocation, `brought` gets it, which is current
/// there then.
fn provide<'a>(
    emitter: &mut Emitter<'_>,
    buffer: &'a mut BufferState,
    links: &Links,
    (part, origin): (Box3, MemoryId),
    brought: &mut Boxes,
) -> Provided<'a> {
    if let Some(position) = leaves_from_allocation(buffer, links, origin, &part) {
        if bring(emitter, buffer, links, MemoryId::HOST, &part.into()) {
            brought.push(part);
        }
        return Provided::Allocated(position);
    }
    let identity = buffer.identity();
    Provided::Staged(pack(emitter, buffer.memory_and_stages(origin), identity, links, part))
}

/// The position of the allocation that the host has for `part`, with nothing to copy to it, or nothing that
/// would stop in a dense stage on its way. A part that would leaves from that stage, in one piece and
/// a copy sooner.
fn leaves_from_allocation(
    buffer: &BufferState,
    links: &Links,
    origin: MemoryId,
    part: &Box3,
) -> Option<usize> {
    let position = buffer.backing_of(MemoryId::HOST, part)?;
    let extent = &buffer.backings(MemoryId::HOST)[position].placement.extent;
    let leaves = !links.linearize_some()
        || is_current(buffer, MemoryId::HOST, &(*part).into())
        || !is_gathered(buffer, links, origin, part, extent);
    leaves.then_some(position)
}

/// Whether `part` would stop in a dense stage on the host on its way from the memory `origin` to
/// an allocation of `extent` there.
fn is_gathered(
    buffer: &BufferState,
    links: &Links,
    origin: MemoryId,
    part: &Box3,
    extent: &Box3,
) -> bool {
    let backings = buffer.backings(origin);
    backings.holding_some_of(part).into_iter().any(|position| {
        let source = &backings[position];
        let elements = source.placement.extent.intersection(part);
        let ends = (source.side(), (MemoryId::HOST, extent));
        !elements.is_empty()
            && links.stops(ends, &elements, buffer.elem_size).contains(&MemoryId::HOST)
    })
}

/// Boxes of a region with one producer each, and the memory that it wrote to.
fn by_producer(buffer: &BufferState, region: &Region) -> Parts<(InstructionId, MemoryId)> {
    let mut parts = Parts::new();
    let mut add = |part, version: &Version| parts.push((part, (version.producer, version.origin)));
    buffer.versions.for_each_in_region(region, &mut add);
    join(&mut parts);
    parts
}
