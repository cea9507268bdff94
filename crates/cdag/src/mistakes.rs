//! What deliberate bugs make of the values that they spoil. Compiled only to test the tests.

use celerity_mutants::Mutant;
use celerity_regions::{Box3, Region};
use celerity_tdag::Task;

use crate::assign::Chunks;
use crate::command::{NodeId, Targets, TransferId};

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
