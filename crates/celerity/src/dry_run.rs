//! What a dry run says when it ends: how much was scheduled. Performs nothing and decides nothing.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use celerity_cdag::{Command, CommandKind};
use celerity_executor::Observer;
use celerity_idag::{AllocationId, Instruction, Pilot};
use celerity_tdag::{BufferId, BufferInfo, Count, Task};

use crate::log::LogLevel;

/// Counts what the node would do. Logged when dropped, if there has been anything: also if the program
/// fails or panics.
pub(crate) struct DryRunTally {
    nodes: usize,
    node: usize,
    since: Instant,
    level: LogLevel,
    counts: Arc<Mutex<Counts>>,
}

/// What a node's graphs consist of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    tasks: u64,
    commands: u64,
    pushes: u64,
    await_pushes: u64,
    collectives: u64,
    instructions: u64,
    pilots: u64,
}

impl DryRunTally {
    /// Of a run as one of so many nodes.
    pub(crate) fn new(nodes: usize, node: usize, level: LogLevel) -> Self {
        Self { nodes, node, since: Instant::now(), level, counts: Arc::default() }
    }

    /// Who counts.
    pub(crate) fn observer(&self) -> Box<dyn Observer> {
        Box::new(Counting(self.counts.clone()))
    }
}

impl Drop for DryRunTally {
    fn drop(&mut self) {
        let elapsed = self.since.elapsed().as_secs_f64();
        let counts = *lock(&self.counts);
        if counts == Counts::default() {
            return;
        }
        self.level.print(LogLevel::Info, || {
            format!(
                "dry run as N{} of {}: {counts}, in {elapsed:.3} s; nothing was computed, and fences \
                 delivered zeroes",
                self.node,
                Count(self.nodes, "node")
            )
        });
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tasks, commands, pushes, await_pushes, collectives, instructions, pilots } =
            *self;
        let (tasks, commands) = (Count(tasks, "task"), Count(commands, "command"));
        let (instructions, pilots) = (Count(instructions, "instruction"), Count(pilots, "pilot"));
        write!(
            f,
            "{tasks}, {commands} (push: {pushes}, await-push: {await_pushes}, collective: \
             {collectives}), {instructions} and {pilots}"
        )
    }
}

struct Counting(Arc<Mutex<Counts>>);

impl Observer for Counting {
    fn buffer(&mut self, _: &Arc<BufferInfo>, _: Option<AllocationId>) {}

    fn task(
        &mut self,
        _: &Arc<Task>,
        commands: &[Command],
        instructions: &[Instruction],
        pilots: &[Pilot],
    ) -> Result<(), String> {
        let mut counts = lock(&self.0);
        counts.tasks += 1;
        counts.commands += commands.len() as u64;
        for command in commands {
            match command.kind {
                CommandKind::Push { .. } => counts.pushes += 1,
                CommandKind::AwaitPush { .. } => counts.await_pushes += 1,
                CommandKind::Collective { .. } => counts.collectives += 1,
                CommandKind::Execute { .. } | CommandKind::Horizon | CommandKind::Epoch(_) => {}
            }
        }
        counts.instructions += instructions.len() as u64;
        counts.pilots += pilots.len() as u64;
        Ok(())
    }

    fn buffer_end(&mut self, _: BufferId, frees: &[Instruction]) -> Result<(), String> {
        lock(&self.0).instructions += frees.len() as u64;
        Ok(())
    }
}

/// The counts, which are whole even if somebody has panicked.
fn lock(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}
