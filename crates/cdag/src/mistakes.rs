//! What deliberate bugs make of the values that they spoil. Compiled only to test the tests.

use celerity_mutants::Mutant;
use celerity_regions::{Box3, Region};
use celerity_tdag::Task;

use crate::assign::Chunks;
use crate::command::{CommandId, NodeId, TransferId};
use crate::graph::Targets;
use crate::holding::{BufferState, Holding, State};
use crate::node_set::NodeSet;

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

/// [`BufferState::write`], except that it never forgets who has copies.
pub(crate) fn write(
    buffer: &mut BufferState,
    of_all: &Region,
    here: &Region,
    writer: Option<CommandId>,
) {
    let replicas = |holding: &Holding| match holding.state {
        State::Owned => holding.replicas.clone(),
        State::Replica | State::Stale => NodeSet::default(),
    };
    buffer.holdings.modify(&of_all.difference(here), |holding| Holding {
        state: State::Stale,
        ..holding.clone()
    });
    if let Some(writer) = writer {
        buffer.holdings.modify(here, |holding| Holding {
            writer,
            state: State::Owned,
            replicas: replicas(holding),
        });
    }
}
