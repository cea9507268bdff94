//! What deliberate bugs make of the values that they spoil. Compiled only to test the tests.

use celerity_mutants::Mutant;

use crate::access::{AccessMode, BufferAccess};
use crate::dependency::DependencyKind;
use crate::footprint::Touched;
use crate::id::TaskId;

/// `wait_for`, except that dependencies of some kind are forgotten.
pub(crate) fn forgetting(
    mut wait_for: impl FnMut(TaskId, DependencyKind),
) -> impl FnMut(TaskId, DependencyKind) {
    move |earlier, kind| {
        if !forgets(kind) {
            wait_for(earlier, kind);
        }
    }
}

fn forgets(kind: DependencyKind) -> bool {
    match kind {
        DependencyKind::Anti => Mutant::AntiDependencyDropped.is_active(),
        DependencyKind::Output => Mutant::OutputDependencyDropped.is_active(),
        _ => false,
    }
}

/// Whether a read is left out beside a write.
pub(crate) fn forgets_read(footprint: &[Touched], access: &BufferAccess) -> bool {
    let is_write = |entry: &Touched| entry.buffer == access.buffer && entry.mode.writes();
    Mutant::ReadBesideWriteForgotten.is_active()
        && !access.mode.writes()
        && footprint.iter().any(is_write)
}

/// What is noted of what a task has touched.
pub(crate) fn noted(touched: &Touched) -> Touched {
    let mut noted = touched.clone();
    if Mutant::WriterOfBoundingBox.is_active() && noted.mode.writes() {
        noted.region = noted.region.bounding_box().into();
    }
    if Mutant::ReadWriteKeepsWriter.is_active() && noted.mode == AccessMode::ReadWrite {
        noted.mode = AccessMode::Read;
    }
    noted
}

pub(crate) fn replaces_read() -> bool {
    Mutant::SecondReadReplacesFirst.is_active()
}
