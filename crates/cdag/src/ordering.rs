//! What a new command waits for because of the data that it touches, and how it enters the graph:
//! what all passes share.

use celerity_regions::Region;
use celerity_tdag::{Conflicts, Dependencies, DependencyKind, Frontier, Task};

use crate::command::{Command, CommandId, CommandKind};
use crate::holding::BufferState;

/// Adds who has written what a command reads.
pub(crate) fn after_writers(
    state: &BufferState,
    frontier: &Frontier<CommandId>,
    region: &Region,
    dependencies: &mut Dependencies<CommandId>,
) {
    state.holdings.for_each_in_region(region, |_, holding| {
        dependencies.add(frontier.representative(holding.writer), DependencyKind::True);
    });
}

/// Adds what a command must wait for before it overwrites `region`: who has read it, and who
/// has written what nobody has read.
pub(crate) fn before_overwriting(
    state: &mut BufferState,
    frontier: &Frontier<CommandId>,
    region: &Region,
    dependencies: &mut Dependencies<CommandId>,
) {
    if region.is_empty() {
        return;
    }
    let point = frontier.synchronization_point();
    let stand_ins = state.readers.stand_ins();
    state.holdings.for_each_in_region(region, |part, holding| {
        if !stand_ins.include(holding.writer, &part, point) {
            dependencies.add(frontier.representative(holding.writer), DependencyKind::Output);
        }
    });
    after_readers(state, frontier, region, dependencies);
}

/// Adds the readers of a region that a command overwrites. They are forgotten: whoever
/// writes next waits for this command.
pub(crate) fn after_readers(
    state: &mut BufferState,
    frontier: &Frontier<CommandId>,
    region: &Region,
    dependencies: &mut Dependencies<CommandId>,
) {
    state.readers.overwrite(region, |reader| {
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::CommandSkipsReaders.is_active() {
            return;
        }
        dependencies.add(frontier.representative(reader), DependencyKind::Anti);
    });
}

/// A command that waits for nothing else waits for the synchronisation point.
pub(crate) fn or_synchronized(
    dependencies: &mut Dependencies<CommandId>,
    frontier: &Frontier<CommandId>,
) {
    if dependencies.is_empty() {
        dependencies.push_new(frontier.synchronization_point(), DependencyKind::Order);
    }
}

pub(crate) fn emit(
    frontier: &mut Frontier<CommandId>,
    task: &Task,
    kind: CommandKind,
    dependencies: Dependencies<CommandId>,
    out: &mut Vec<Command>,
) -> CommandId {
    let id = frontier.push(&dependencies);
    let conflicts = Conflicts::default();
    out.push(Command { id, task: task.id, kind, dependencies, conflicts });
    id
}
