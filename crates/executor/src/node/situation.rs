//! How things are on a node, in words: what each instruction waits for, what still runs after a
//! failure, who wanted the memory that there is no room for. Looks at the node's parts when there
//! is something to report, so that nobody pays for it before; changes nothing.

use std::sync::Arc;
use std::time::Duration;

use celerity_cdag::TransferId;
use celerity_idag::{
    AllocationId, DeviceId, Effects, InstructionId, InstructionKind, MemoryId, Participation,
    Placement,
};
use celerity_regions::Box3;
use celerity_tdag::{EpochAction, TaskId};

use super::flow::Flow;
use super::hardware::{Hardware, Wanted};
use super::open::{Open, Stage, Summary};
use super::peers::Peers;
use super::tasks::Tasks;
use super::turns::Turns;
use crate::backend::{AllocError, JobFailure};
use crate::engine::LaneId;
use crate::error::{NoRoom, RunError};
use crate::stall::{OnLane, Running, Stall, Waiting, WaitsFor};
use crate::time::Time;

/// The parts of a node that reports are made of, at one time.
#[derive(Clone, Copy)]
pub(super) struct Situation<'n> {
    pub(super) now: Time,
    pub(super) flow: &'n Flow,
    pub(super) turns: &'n Turns<(InstructionId, Participation)>,
    pub(super) tasks: &'n Tasks,
    pub(super) hardware: &'n Hardware,
    pub(super) peers: &'n Peers,
}

impl Situation<'_> {
    /// All instructions that have not completed, in ascending order: see
    /// [`Executor::waiting`](super::Executor::waiting).
    pub(super) fn waiting(&self) -> Vec<Waiting> {
        let mut edges: Vec<_> = self.flow.edges().collect();
        edges.sort_unstable();
        let blockers = |instruction| {
            let start = edges.partition_point(|(waiting, _)| *waiting < instruction);
            let mine = edges[start..].iter().take_while(|(waiting, _)| *waiting == instruction);
            mine.map(|(_, blocker)| *blocker).collect()
        };
        let open = self.flow.open();
        open.map(|(instruction, Open { since, stage })| {
            let (summary, reason) = match stage {
                Stage::Waiting(kind) => {
                    (Summary::of(&kind.effects()), WaitsFor::Instructions(blockers(instruction)))
                }
                Stage::Issued(summary, lane) => {
                    (*summary, self.reason(instruction, summary, *lane, *since))
                }
            };
            Waiting { instruction, what: self.describe(&summary), reason, since: *since }
        })
        .collect()
    }

    /// What there is to say of a node on which nothing has happened for so long.
    pub(super) fn stall(&self, lasting: Duration) -> Stall {
        let (node, at, waiting) = (self.peers.local(), self.now, self.waiting());
        Stall { node, lasting, at, waiting, held_back: self.tasks.unscheduled() }
    }

    fn reason(
        &self,
        issued: InstructionId,
        what: &Summary,
        lane: Option<LaneId>,
        since: Time,
    ) -> WaitsFor {
        match (*what, lane) {
            (_, Some(lane)) => WaitsFor::Lane(self.on_lane(issued, lane, since)),
            (Summary::Send { to, .. }, None) => WaitsFor::Receiver(to),
            (Summary::Receive { .. }, None) => {
                let (missing, announced_by) = self.peers.missing(issued);
                WaitsFor::Elements { missing, announced_by }
            }
            (Summary::Collective { transfer, .. }, None) => {
                match self.turns.waiting().any(|(instruction, _)| *instruction == issued) {
                    true => WaitsFor::Turn,
                    false => WaitsFor::Collective { absent: self.peers.absent(transfer) },
                }
            }
            (Summary::Epoch { .. }, None) => WaitsFor::Barrier,
            // The rest completes while it is issued.
            _ => WaitsFor::Instructions(Vec::new()),
        }
    }

    /// What the lane does with an instruction that was issued then.
    fn on_lane(&self, issued: InstructionId, lane: LaneId, since: Time) -> OnLane {
        let begun = self.hardware.begun(lane).filter(|begun| begun.instruction == issued);
        let running = begun.map(|begun| Running {
            lasting: self.now.since(begun.since.unwrap_or(since)),
            thread: begun.thread,
        });
        OnLane { lane, name: self.flow.lanes().name(lane), running }
    }

    /// What has been put on lanes and not completed, in ascending order, in words.
    pub(super) fn jobs(&self) -> Vec<(InstructionId, String)> {
        let job = |(instruction, open): (InstructionId, &Open)| match &open.stage {
            Stage::Issued(what, Some(_)) => Some((instruction, self.describe(what))),
            _ => None,
        };
        self.flow.open().filter_map(job).collect()
    }

    /// What has to end before the node can, in words, after a failure when these `jobs` were on
    /// lanes.
    pub(super) fn lingers_for(&self, jobs: &[(InstructionId, String)]) -> Vec<String> {
        let mut all = Vec::new();
        let lanes = self.flow.lanes();
        for lane in lanes.lanes() {
            let Some(begun) = self.hardware.begun(lane) else { continue };
            let known = jobs.binary_search_by_key(&begun.instruction, |(job, _)| *job);
            let what =
                known.map_or_else(|_| begun.instruction.to_string(), |at| jobs[at].1.clone());
            let lasting = begun.since.map_or(Duration::ZERO, |since| self.now.since(since));
            let running = Some(Running { lasting, thread: begun.thread });
            let lane = OnLane { lane, name: lanes.name(lane), running };
            all.push(format!("{what}, which {lane}"));
        }
        if all.is_empty() && !self.hardware.is_quiet() {
            all.push("what runs on its devices".to_owned());
        }
        if !self.peers.are_quiet() {
            all.push("other nodes, which may still use its memory".to_owned());
        }
        all
    }

    /// The error for an allocation that the backend has refused.
    pub(super) fn out_of_memory(&self, wanted: &Wanted, error: AllocError) -> RunError {
        let Wanted { allocation, memory, buffer, bytes, part } = *wanted;
        let AllocError { resident, free } = error;
        let mut users = self.unissued().filter(|kind| placed_in(kind, allocation).is_some());
        let task = users.find_map(|kind| kind.effects().task());
        let needed = task.and_then(|task| self.needed_of(allocation, task));
        let residents = self.hardware.residents(memory);
        // Whose memory the program has handed over, the backend has not given.
        let resident = resident.max(residents.iter().map(|resident| resident.bytes).sum());
        let placement = || self.unissued().find_map(|kind| placed_in(kind, allocation));
        let error = Box::new(NoRoom {
            memory: describe(memory),
            task: task.map(|task| self.tasks.describe(task)),
            buffer: self.hardware.buffer_name(buffer),
            needed,
            extent: part.or_else(|| placement().map(|placement| placement.extent)),
            bytes,
            resident,
            free,
            residents,
        });
        RunError::OutOfMemory { node: self.peers.local(), error }
    }

    /// A box around what is left to do of a task needs of an allocation.
    fn needed_of(&self, allocation: AllocationId, task: TaskId) -> Option<Box3> {
        let of_task = |kind: &&InstructionKind| kind.effects().task() == Some(task);
        let touches = self.unissued().filter(of_task).flat_map(|kind| kind.effects().touches());
        let here = touches.filter(|touch| touch.placement.allocation == allocation);
        here.map(|touch| touch.elements.bounding_box()).reduce(|all, part| all.bounding(&part))
    }

    /// What has not been issued, in ascending order: users of an allocation are among
    /// it for as long as that has not been made.
    fn unissued(&self) -> impl Iterator<Item = &InstructionKind> {
        self.flow.open().filter_map(|(_, open)| match &open.stage {
            Stage::Waiting(kind) => Some(kind),
            Stage::Issued(..) => None,
        })
    }

    /// What the failure of a job means: of a user's, if it is one of a task.
    pub(super) fn failed(
        &self,
        job: Option<(TaskId, Option<DeviceId>)>,
        instruction: InstructionId,
        failure: JobFailure,
    ) -> RunError {
        let node = self.peers.local();
        let named = job.map(|(task, device)| (self.tasks.describe(task), device));
        match (named, failure) {
            (Some((task, device)), JobFailure::Panicked(message)) => {
                RunError::TaskPanicked { task, node, device, message }
            }
            (Some((task, device)), JobFailure::Returned(error)) => {
                RunError::TaskFailed { task, node, device, error }
            }
            (None, JobFailure::Panicked(message)) => {
                RunError::Internal { message: format!("{instruction} panicked: {message}") }
            }
            (None, JobFailure::Returned(error)) => {
                RunError::Internal { message: format!("{instruction} failed: {error}") }
            }
        }
    }

    /// What an instruction works on: the name of a task, or of a buffer.
    pub(super) fn subject(&self, effects: &Effects<'_>) -> Arc<str> {
        match (effects.runs, effects.buffer()) {
            (Some(run), _) => self.tasks.name(run.task),
            (None, Some(buffer)) => self.hardware.user_name(buffer),
            (None, None) => Arc::default(),
        }
    }

    fn describe(&self, summary: &Summary) -> String {
        match *summary {
            Summary::Alloc { allocation, memory, buffer } => {
                let buffer = self.hardware.buffer_name(buffer);
                format!("alloc of {allocation} in {memory} for {buffer}")
            }
            Summary::Free { allocation, memory } => format!("free of {allocation} in {memory}"),
            Summary::Copy { buffer, from, to } => {
                format!("copy of {} from {from} to {to}", self.hardware.buffer_name(buffer))
            }
            Summary::Send { to, message, transfer } => {
                format!("send of {message} to {to} with {}", self.describe_transfer(transfer))
            }
            Summary::Receive { transfer } => {
                format!("receive of {}", self.describe_transfer(transfer))
            }
            Summary::Collective { verb, transfer } => {
                format!("{verb} {transfer} of {}", self.hardware.buffer_name(transfer.buffer))
            }
            Summary::Run { task, device: Some(device) } => {
                format!("kernel of {} on {device}", self.tasks.describe(task))
            }
            Summary::Run { task, device: None } => {
                format!("host function of {}", self.tasks.describe(task))
            }
            Summary::Horizon { task } => format!("horizon {task}"),
            Summary::Epoch { task, action } => match action {
                EpochAction::Init => format!("start {task}"),
                EpochAction::Barrier => format!("barrier {task}"),
                EpochAction::Shutdown => format!("end of the program {task}"),
            },
            Summary::Other(verb) => verb.to_owned(),
        }
    }

    fn describe_transfer(&self, transfer: TransferId) -> String {
        let TransferId { consumer, buffer } = transfer;
        let buffer = self.hardware.buffer_name(buffer);
        format!("{buffer} for {}", self.tasks.describe(consumer))
    }
}

/// How an instruction uses an allocation, if it does.
fn placed_in(kind: &InstructionKind, allocation: AllocationId) -> Option<&Placement> {
    let mut placements = kind.effects().touches().map(|touch| touch.placement);
    placements.find(|placement| placement.allocation == allocation)
}

fn describe(memory: MemoryId) -> String {
    let device = |device: DeviceId| format!("{memory}, the memory of {device}");
    memory.device().map_or_else(|| format!("{memory}, host memory"), device)
}
