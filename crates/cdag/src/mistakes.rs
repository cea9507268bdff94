//! What deliberate bugs make of the values that they spoil. Compiled only to test the tests.

use celerity_cpd::{Chunks, Collective, Ends, Members, NodeId};
use celerity_mutants::Mutant;
use celerity_regions::{Box3, Region};
use celerity_tdag::Task;

use crate::command::{Targets, TransferId};

pub(crate) fn own_chunk(chunk: Box3, chunks: &Chunks, local: NodeId) -> Box3 {
    let from_the_end = || chunks.len().checked_sub(local.slot() + 1);
    Mutant::OwnChunkFromTheEnd
        .alter(chunk, |_| from_the_end().map_or(Box3::EMPTY, |position| chunks.get(position)))
}

pub(crate) fn pushed(
    task: &Task,
    mut transfer: TransferId,
    mut targets: Targets,
) -> (TransferId, Targets) {
    let first = task.buffer_accesses().next();
    if let Some(first) = first.filter(|_| Mutant::TransferNamesFirstBuffer.is_active()) {
        transfer.buffer = first.buffer;
    }
    if Mutant::LastTargetOmitted.is_active() && targets.len() > 1 {
        targets.pop();
    }
    (transfer, targets)
}

/// Only where something is awaited at all, or every read would be.
pub(crate) fn awaited(missing: Region, reads: &Region) -> Region {
    let all = |missing: Region| if missing.is_empty() { missing } else { reads.clone() };
    Mutant::AwaitsWhatIsCurrent.alter(missing, all)
}

/// What one node of several makes of a collective, if it takes part at all.
pub(crate) fn collective(
    mut collective: Collective,
    local: NodeId,
    nodes: usize,
) -> Option<Collective> {
    if Mutant::CollectiveLeftOut.is_active() && local.slot() + 1 == nodes {
        return None;
    }
    if Mutant::MemberLeftOut.is_active() && !collective.members.are_all() {
        let last = collective.members.iter(nodes).last();
        if last == Some(local) {
            return None;
        }
    }
    if Mutant::MembersInReverse.is_active()
        && !collective.members.are_all()
        && let Ends::Each(parts) = &collective.from
    {
        collective.from = Ends::Each(parts.iter().rev().cloned().collect());
    }
    if Mutant::PartsShifted.is_active() {
        collective.from = match collective.from {
            Ends::All => Ends::All,
            Ends::One(root) => Ends::One(NodeId::from_index((root.index() + 1) % nodes as u64)),
            Ends::Each(parts) => {
                let mut shifted = parts.to_vec();
                shifted.rotate_right(1);
                Ends::Each(shifted.into())
            }
        };
    }
    Some(collective)
}

/// Who gets all of what is provided, as each node understands it.
pub(crate) fn receivers<'a>(
    members: &'a Members,
    to: &'a Ends,
    nobody: &'a Ends,
) -> (&'a Members, &'a Ends) {
    const EVERYBODY: &Members = &Members::all();
    match to {
        Ends::One(_) if Mutant::GatheredForgotten.is_active() => (members, nobody),
        Ends::Each(_) if Mutant::SpreadIsEverywhere.is_active() => (EVERYBODY, &Ends::All),
        Ends::All if Mutant::MembersAreEverybody.is_active() => (EVERYBODY, to),
        to => (members, to),
    }
}
