//! What is in hand while one task is checked: the task, and what its commands
//! have called for that its instructions have not done yet.

use std::sync::Arc;

use celerity_cdag::{Command, CommandKind, TransferId};
use celerity_cpd::Collective;
use celerity_idag::{AllocationId, Pilot};
use celerity_regions::Box3;
use celerity_tdag::{BufferId, Task, TaskId, Work};

use crate::allocation::Allocation;
use crate::geometry::Boxes;
use crate::image::image;
use crate::outline::TaskOutline;
use crate::violation::{Check, Vertex, Violation};

/// Elements that one side has promised and the other has not taken yet.
#[derive(Clone, Debug)]
pub(crate) struct Owed {
    pub(crate) by: Vertex,
    pub(crate) transfer: TransferId,
    pub(crate) rest: Boxes,
    /// For split receives: where the data arrives.
    pub(crate) target: Option<AllocationId>,
}

/// The collective that the commands of a task call for.
#[derive(Clone, Debug)]
pub(crate) struct CalledFor {
    pub(crate) transfer: TransferId,
    pub(crate) collective: Arc<Collective>,
}

impl CalledFor {
    /// By the commands of one task.
    pub(crate) fn by(commands: &[Command]) -> Option<Self> {
        commands.iter().find_map(|command| match &command.kind {
            CommandKind::Collective { transfer, collective } => {
                Some(Self { transfer: *transfer, collective: collective.clone() })
            }
            _ => None,
        })
    }
}

/// The state of one task's check.
#[derive(Debug)]
pub(crate) struct TaskCheck<'a> {
    pub(crate) task: &'a Arc<Task>,
    /// The part of the index space that this node's command runs.
    pub(crate) chunk: Option<Box3>,
    /// Whether the execute command has been seen.
    pub(crate) executed: bool,
    /// Whether the horizon or epoch has been seen among the commands, and among
    /// the instructions.
    pub(crate) synchronized: [bool; 2],
    /// Items of the chunk for which no kernel, or host task, has been seen.
    pub(crate) unlaunched: Boxes,
    pub(crate) host_task: Option<Vertex>,
    /// What a command calls for, and no instruction has carried out.
    pub(crate) collective: Option<CalledFor>,
    /// What await-pushes promise, and receives have not taken.
    pub(crate) awaited: Vec<Owed>,
    /// What split receives promise, and await receives have not taken.
    pub(crate) arriving: Vec<Owed>,
    /// Those without a send, by message.
    pub(crate) pilots: Vec<Pilot>,
    /// The first instruction.
    pub(crate) first: u64,
    pub(crate) last_send: Option<u64>,
    pub(crate) first_receive: Option<Vertex>,
    /// Allocations made for this task.
    pub(crate) made: Vec<AllocationId>,
    /// Allocations made and freed for this task.
    pub(crate) outgrown: Vec<(AllocationId, Allocation)>,
    pub(crate) outline: TaskOutline,
}

impl<'a> TaskCheck<'a> {
    pub(crate) fn new(
        task: &'a Arc<Task>,
        commands: &[Command],
        pilots: &[Pilot],
        first: u64,
    ) -> Self {
        let chunk = commands.iter().find_map(|command| match command.kind {
            CommandKind::Execute { chunk } => Some(chunk),
            _ => None,
        });
        let is_split = matches!(task.work, Work::Device(_) | Work::HostSplit { .. });
        let mut pilots = pilots.to_vec();
        pilots.sort_by_key(|pilot| pilot.message);
        Self {
            task,
            chunk,
            executed: false,
            synchronized: [false; 2],
            unlaunched: chunk.filter(|_| is_split).into_iter().collect(),
            host_task: None,
            collective: CalledFor::by(commands),
            awaited: Vec::new(),
            arriving: Vec::new(),
            pilots,
            first,
            last_send: None,
            first_receive: None,
            made: Vec::new(),
            outgrown: Vec::new(),
            outline: TaskOutline::new(task),
        }
    }

    /// Whether the task synchronises instead of doing something.
    pub(crate) fn is_synchronization(&self) -> bool {
        matches!(self.task.work, Work::Horizon | Work::Epoch(_))
    }

    /// Whoever is called for a task serves that task.
    pub(crate) fn check_task(&self, vertex: Vertex, found: TaskId) -> Check {
        let task = self.task.id;
        match found == task {
            true => Ok(()),
            false => Err(Violation::WrongTask { vertex, found, task }.into()),
        }
    }

    /// What this node's chunk reads of a buffer; the boxes may overlap.
    pub(crate) fn reads(&self, buffer: BufferId, extent: Box3) -> Boxes {
        let global = self.task.work.extent();
        let chunk = self.chunk.unwrap_or(Box3::EMPTY);
        let accesses = self.task.buffer_accesses();
        let reading = accesses.filter(|access| access.buffer == buffer && access.mode.reads());
        reading.flat_map(|access| image(&access.mapper, chunk, global, extent)).collect()
    }

    /// Whether any chunk of the task may read a buffer.
    pub(crate) fn is_reader(&self, buffer: BufferId) -> bool {
        self.task.buffer_accesses().any(|access| access.buffer == buffer && access.mode.reads())
    }
}
