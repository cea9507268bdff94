//! Pass: a collective command becomes one instruction (IJPP 2024, §3.2), from and to one memory: the
//! host's, or, where the network [reaches it](CollectiveReach) on all nodes, that of the node's first device.
//! What the node provides is made current there; what arrives is a new version there, which other
//! memories get by coherence copies like any other. Owns what of it lies in one allocation. Refuses to know
//! which operation of a network it will be.

use std::sync::Arc;

use celerity_cdag::{NodeId, TransferId};
use celerity_cpd::{Collective, Ends};
use celerity_regions::{Box3, Region};

use crate::allocate::{Needs, allocate};
use crate::buffer::BufferState;
use crate::coherence::make_coherent;
use crate::emitter::Emitter;
use crate::growth::Reservations;
use crate::instruction::{DeviceId, DeviceMemory, MemoryId};
use crate::layout::elements_per_row;
use crate::links::Links;
use crate::pieces::{Boxes, compact_boxes};

/// Which collectives the network carries out between the memories of devices: the same on all nodes, since
/// all members of one must come to the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CollectiveReach {
    /// Those that move at least so many bytes, each element counted once.
    pub(crate) least: u64,
    /// And whose rows have at least so many bytes.
    pub(crate) least_row: u64,
}

/// Where collectives take place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Venue {
    /// The node.
    pub(crate) local: NodeId,
    /// The memory that its devices work in.
    pub(crate) native: DeviceMemory,
    /// What the network carries out between devices, if anything.
    pub(crate) reach: Option<CollectiveReach>,
}

impl Default for Venue {
    fn default() -> Self {
        Self { local: NodeId::from_index(0), native: DeviceMemory::Own, reach: None }
    }
}

impl Venue {
    /// The memory in which a collective of a buffer with such elements takes place: of the same kind on all
    /// members. What devices of a node do not copy to each other directly stays with the host.
    pub(crate) fn of(
        &self,
        collective: &Collective,
        (extent, elem_size): (&Box3, u64),
        links: &Links,
    ) -> MemoryId {
        let device = self.native.of(DeviceId::from_index(0));
        let is_worth_it = |reach: CollectiveReach| {
            let elements = collective.region.volume();
            #[cfg(feature = "mutants")]
            let elements = celerity_mutants::Mutant::VenueOfOwnPart
                .alter(elements, |_| collective.provided_by(self.local).volume());
            let bytes = elements.saturating_mul(elem_size);
            let row = || shortest_row(collective, extent).saturating_mul(elem_size);
            bytes >= reach.least && links.are_complete() && row() >= reach.least_row
        };
        let on_device = self.reach.is_some_and(is_worth_it);
        if on_device { device } else { MemoryId::HOST }
    }
}

/// Elements that lie side by side in what moves, by the parts of one node before and of one afterwards:
/// others have as many, or a few more or less.
fn shortest_row(collective: &Collective, extent: &Box3) -> u64 {
    let rows = |region: &Region| {
        region.boxes().iter().map(|part| elements_per_row(part, extent)).min().unwrap_or(u64::MAX)
    };
    let of_ends = |ends: &Ends| match ends {
        Ends::Each(parts) => parts.iter().find(|part| !part.is_empty()).map_or(u64::MAX, rows),
        Ends::All | Ends::One(_) => rows(&collective.region),
    };
    of_ends(&collective.from).min(of_ends(&collective.to))
}

/// Takes part in `collective`.
pub(crate) fn participate(
    emitter: &mut Emitter<'_>,
    buffer: &mut BufferState,
    reservations: &Reservations,
    (venue, links): (&Venue, &Links),
    (transfer, collective): (TransferId, &Arc<Collective>),
) {
    let local = venue.local;
    let provided = collective.provided_by(local);
    let arriving = collective.arriving_at(local);
    #[cfg(feature = "mutants")]
    let arriving = celerity_mutants::Mutant::OwnPartOverwritten.alter(arriving, |mut arriving| {
        arriving.union_with(&provided);
        arriving
    });
    let elem_size = buffer.elem_size;
    let memory = venue.of(collective, (&buffer.extent, elem_size), links);
    let needs = Needs { boxes: exchange_boxes(collective, local), discarded: arriving.clone() };
    allocate(emitter, buffer, memory, &needs, reservations);
    let current = provided.clone();
    #[cfg(feature = "mutants")]
    let current =
        celerity_mutants::Mutant::StaleOnDevice.alter(current, |all| match memory.device() {
            Some(_) => std::borrow::Cow::Owned(Region::empty()),
            None => all,
        });
    make_coherent(emitter, buffer, links, memory, &current);
    let backings = (memory, buffer.backings_mut(memory).as_mut_slice());
    let id =
        emitter.collective(backings, (transfer, collective), (&provided, &arriving), elem_size);
    buffer.note_production(&arriving, id, memory);
}

/// The boxes that a node needs in one memory: what it provides lies beside what arrives, in one piece
/// where that is not mostly empty. So all that is gathered from all nodes is one allocation, which a
/// network can fill in place, and rows that are traded for columns are not the whole matrix.
pub(crate) fn exchange_boxes(collective: &Collective, local: NodeId) -> Boxes {
    let mut all = collective.provided_by(local).into_owned();
    all.union_with(&collective.arriving_at(local));
    compact_boxes(&all)
}
