//! Watching what a node's generators make, before anything of it runs: for
//! checkers, recorders and pictures. Decides nothing but whether the run may go
//! on.

use std::sync::Arc;

use celerity_cdag::Command;
use celerity_cpd::Weighed;
use celerity_idag::{AllocationId, Instruction, Pilot, Released, Schedule};
use celerity_tdag::{BufferId, BufferInfo, Task};

/// Somebody who is shown one node's graphs as they are generated. Tasks and ends
/// of buffers come in order; a new buffer or name is shown at once, while tasks
/// that were submitted before it may be held back.
///
/// An error of any method stops the run with
/// [`RunError::Schedule`](crate::RunError::Schedule) before what was shown is
/// executed.
pub trait Observer: Send {
    /// A buffer has been created, or renamed. `user_data` is the allocation that stands for a new
    /// buffer's initial contents.
    fn buffer(&mut self, info: &Arc<BufferInfo>, user_data: Option<AllocationId>);

    /// What moving elements costs in one operation and between pairs of nodes, by which that has been
    /// decided. Shown at once, and before the task that reads them; only if the run
    /// [tells](crate::ClusterConfig::tells_weighed).
    fn weighed(&mut self, _weighed: &Weighed) {}

    /// A task, with all of this node's commands, instructions and pilots for it.
    ///
    /// # Errors
    /// Why the run must not go on.
    fn task(
        &mut self,
        task: &Arc<Task>,
        commands: &[Command],
        instructions: &[Instruction],
        pilots: &[Pilot],
    ) -> Result<(), String>;

    /// A buffer has ended: the instructions that give its memory back.
    ///
    /// # Errors
    /// Why the run must not go on.
    fn buffer_end(&mut self, buffer: BufferId, frees: &[Instruction]) -> Result<(), String>;
}

/// A node's observers, and the commands of a task that they have not been shown
/// yet. Instructions and pilots need no such memory: the lookahead lets whole
/// tasks go, so those of a task lie side by side in one schedule.
#[derive(Default)]
pub(crate) struct Observers {
    all: Vec<Box<dyn Observer>>,
    commands: Vec<Command>,
}

/// How much of a schedule observers have been shown.
#[derive(Clone, Copy, Default)]
pub(crate) struct Shown {
    instructions: usize,
    pilots: usize,
}

impl Observers {
    pub(crate) fn add(&mut self, observer: Box<dyn Observer>) {
        self.all.push(observer);
    }

    pub(crate) fn buffer(&mut self, info: &Arc<BufferInfo>, user_data: Option<AllocationId>) {
        self.all.iter_mut().for_each(|observer| observer.buffer(info, user_data));
    }

    pub(crate) fn weighed(&mut self, weighed: &Weighed) {
        self.all.iter_mut().for_each(|observer| observer.weighed(weighed));
    }

    /// Takes notice of what has been released last. At the end of a task or a
    /// buffer, shows what `schedule` holds for it: all that is not in `shown`
    /// yet. Costs nothing if nobody looks.
    pub(crate) fn released(
        &mut self,
        released: Released<'_>,
        schedule: &Schedule,
        shown: &mut Shown,
    ) -> Result<(), String> {
        if self.all.is_empty() {
            return Ok(());
        }
        let instructions = &schedule.instructions[shown.instructions..];
        let pilots = &schedule.pilots[shown.pilots..];
        match released {
            Released::Command(command) => {
                self.commands.push(command.clone());
                return Ok(());
            }
            Released::TaskEnd(task) => self
                .all
                .iter_mut()
                .try_for_each(|one| one.task(task, &self.commands, instructions, pilots))?,
            Released::BufferEnd(buffer) => {
                self.all.iter_mut().try_for_each(|one| one.buffer_end(buffer, instructions))?;
            }
        }
        self.commands.clear();
        shown.instructions = schedule.instructions.len();
        shown.pilots = schedule.pilots.len();
        Ok(())
    }
}
