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
        let Self { nodes, node, level, .. } = *self;
        Box::new(Counting { counts: self.counts.clone(), nodes, node, level })
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

/// After so many tasks, and each time that there are ten times as many, a dry run says that it goes on.
const MANY_TASKS: u64 = 100_000;

struct Counting {
    counts: Arc<Mutex<Counts>>,
    nodes: usize,
    node: usize,
    level: LogLevel,
}

impl Counting {
    /// A loop that waits for a value which fences never deliver does not end, and looks like one that is long.
    fn tell(&self, tasks: u64) {
        if !is_told(tasks) {
            return;
        }
        let Self { nodes, node, .. } = self;
        self.level.print(LogLevel::Info, || {
            format!(
                "dry run as N{node} of {nodes}: {tasks} tasks so far; fences deliver zeroes, so that a loop which waits for another \
                 value goes on until it is stopped"
            )
        });
    }
}

fn is_told(tasks: u64) -> bool {
    let many = tasks / MANY_TASKS;
    many > 0 && tasks.is_multiple_of(MANY_TASKS) && many == 10_u64.pow(many.ilog10())
}

impl Observer for Counting {
    fn buffer(&mut self, _: &Arc<BufferInfo>, _: Option<AllocationId>) {}

    fn task(
        &mut self,
        _: &Arc<Task>,
        commands: &[Command],
        instructions: &[Instruction],
        pilots: &[Pilot],
    ) -> Result<(), String> {
        let mut counts = lock(&self.counts);
        counts.tasks += 1;
        self.tell(counts.tasks);
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
        lock(&self.counts).instructions += frees.len() as u64;
        Ok(())
    }
}

/// The counts, which are whole even if somebody has panicked.
fn lock(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_dry_run_is_told_of_ever_more_seldom() {
        let told: Vec<u64> =
            (0..=1_000).map(|nth| nth * 50_000).filter(|tasks| is_told(*tasks)).collect();
        assert_eq!(told, [100_000, 1_000_000, 10_000_000]);
        assert!(!is_told(100_001));
    }
}
