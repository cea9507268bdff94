//! Pass: a collective command becomes one instruction (IJPP 2024, §3.2), from and to host memory.
//! What the node provides is made current there; what arrives is a new version there, which devices
//! get by coherence copies like any other. Owns what of it lies in one allocation. Refuses to know
//! which operation of a network it will be.

use std::sync::Arc;

use celerity_cdag::{NodeId, TransferId};
use celerity_cpd::Collective;

use crate::allocate::{Needs, allocate};
use crate::buffer::BufferState;
use crate::coherence::make_coherent;
use crate::emitter::Emitter;
use crate::growth::Reservations;
use crate::instruction::MemoryId;
use crate::links::Links;
use crate::pieces::{Boxes, compact_boxes};

/// Takes part in `collective` as the node `local`.
pub(crate) fn participate(
    emitter: &mut Emitter<'_>,
    buffer: &mut BufferState,
    links: &Links,
    local: NodeId,
    (transfer, collective): (TransferId, &Arc<Collective>),
) {
    let provided = collective.provided_by(local);
    let arriving = collective.arriving_at(local);
    #[cfg(feature = "mutants")]
    let arriving = celerity_mutants::Mutant::OwnPartOverwritten.alter(arriving, |mut arriving| {
        arriving.union_with(&provided);
        arriving
    });
    let needs = Needs { boxes: exchange_boxes(collective, local), discarded: arriving.clone() };
    allocate(emitter, buffer, MemoryId::HOST, &needs, &Reservations::default());
    make_coherent(emitter, buffer, links, MemoryId::HOST, &provided);
    let elem_size = buffer.elem_size;
    let backings = buffer.backings_mut(MemoryId::HOST);
    let id =
        emitter.collective(backings, (transfer, collective), (&provided, &arriving), elem_size);
    buffer.note_production(&arriving, id, MemoryId::HOST);
}

/// The boxes that a node needs on the host: what it provides lies beside what arrives, in one piece
/// where that is not mostly empty. So all that is gathered from all nodes is one allocation, which a
/// network can fill in place, and rows that are traded for columns are not the whole matrix.
pub(crate) fn exchange_boxes(collective: &Collective, local: NodeId) -> Boxes {
    let mut all = collective.provided_by(local).into_owned();
    all.union_with(&collective.arriving_at(local));
    compact_boxes(&all)
}
