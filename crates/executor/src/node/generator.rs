//! From tasks to instructions: the two graph generators of one node. Knows
//! nothing of execution.

use celerity_cdag::{Command, CommandGraph, CommandGraphConfig};
use celerity_idag::{AllocationId, InstructionGraph, InstructionGraphConfig, Schedule};
use celerity_tdag::{BufferId, BufferInfo, Task};

/// The two graph generators and their scratch memory.
pub(super) struct Generator {
    commands: CommandGraph,
    instructions: InstructionGraph,
    command_batch: Vec<Command>,
    schedule: Schedule,
}

impl Generator {
    pub(super) fn new(commands: CommandGraphConfig, devices: usize) -> Self {
        Self {
            commands: CommandGraph::new(commands),
            instructions: InstructionGraph::new(InstructionGraphConfig { devices }),
            command_batch: Vec::new(),
            schedule: Schedule::default(),
        }
    }

    /// Adds a buffer, or renames a known one. Returns the allocation that
    /// stands for its initial contents, if it has any.
    pub(super) fn register_buffer(&mut self, info: &BufferInfo) -> Option<AllocationId> {
        self.commands.register_buffer(info);
        self.instructions.register_buffer(info)
    }

    /// The instructions that give a buffer's memory back.
    pub(super) fn drop_buffer(&mut self, buffer: BufferId) -> Schedule {
        let mut schedule = std::mem::take(&mut self.schedule);
        self.commands.drop_buffer(buffer);
        self.instructions.drop_buffer(buffer, &mut schedule);
        schedule
    }

    /// The instructions of a task, or what is wrong with it.
    pub(super) fn generate(&mut self, task: &Task) -> Result<Schedule, String> {
        let mut schedule = std::mem::take(&mut self.schedule);
        let (mut on_commands, mut on_instructions) = (Vec::new(), Vec::new());
        self.command_batch.clear();
        self.commands.schedule(task, &mut self.command_batch, &mut on_commands);
        for command in &self.command_batch {
            self.instructions.schedule(command, task, &mut schedule, &mut on_instructions);
        }
        let on_commands = on_commands.iter().map(ToString::to_string);
        match on_commands.chain(on_instructions.iter().map(ToString::to_string)).next() {
            Some(first) => Err(first),
            None => Ok(schedule),
        }
    }

    /// Takes a schedule's memory back, so that the next one allocates nothing.
    pub(super) fn recycle(&mut self, mut schedule: Schedule) {
        schedule.clear();
        self.schedule = schedule;
    }
}
