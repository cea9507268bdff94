//! The lanes of the simulated nodes: queues whose jobs start and end at times
//! that chance decides, in the order that the contract of
//! [`Backend`](celerity_executor::Backend) demands.

use std::collections::VecDeque;

use celerity_executor::{AllocError, BasePtr, Completion, Job, LaneId, LaneJob};
use celerity_idag::{InstructionId, MemoryId};

use super::conditions::Fault;
use super::execution::{Execution, Style};
use super::log::What;
use super::world::{Event, World};

/// One node's lanes, and what they have completed.
pub(super) struct Devices {
    lanes: Vec<Lane>,
    reports: Vec<(LaneId, Completion)>,
    /// Jobs that have been started, and allocations asked for: by these numbers
    /// faults are planned.
    started: usize,
    allocations: usize,
}

#[derive(Default)]
struct Lane {
    queue: VecDeque<Queued>,
    turn: Turn,
    halted: bool,
    /// Jobs that have ended, and did not fail.
    ended: u64,
}

/// A job that has not started.
pub(super) struct Queued {
    pub(super) instruction: InstructionId,
    pub(super) job: Job,
    /// Jobs of other lanes that have to end before.
    pub(super) after: Vec<LaneJob>,
}

/// What a lane's next event is.
#[derive(Default)]
enum Turn {
    /// There is none.
    #[default]
    Idle,
    /// The next job starts.
    Starting,
    /// This job ends.
    Running(InstructionId, Execution),
}

impl Devices {
    pub(super) fn new(lanes: usize) -> Self {
        Self {
            lanes: std::iter::repeat_with(Lane::default).take(lanes).collect(),
            reports: Vec::new(),
            started: 0,
            allocations: 0,
        }
    }

    /// Nothing starts any more. Returns what has not, to be dropped without the
    /// world's lock.
    pub(super) fn halt(&mut self) -> Vec<VecDeque<Queued>> {
        let halt = |lane: &mut Lane| {
            lane.halted = true;
            std::mem::take(&mut lane.queue)
        };
        self.lanes.iter_mut().map(halt).collect()
    }

    /// Whether a lane's next job may start.
    fn is_due(&self, lane: LaneId) -> bool {
        let Lane { queue, turn, halted, .. } = &self.lanes[lane.slot()];
        let has_ended = |job: &LaneJob| job.number < self.lanes[job.lane.slot()].ended;
        let next = queue.front().filter(|_| matches!(turn, Turn::Idle) && !halted);
        next.is_some_and(|next| next.after.iter().all(has_ended))
    }

    /// The job that a lane runs.
    pub(super) fn running(&self, lane: LaneId) -> Option<InstructionId> {
        match self.lanes[lane.slot()].turn {
            Turn::Running(instruction, _) => Some(instruction),
            Turn::Idle | Turn::Starting => None,
        }
    }

    /// Whether no job is running.
    pub(super) fn is_quiet(&self) -> bool {
        self.lanes.iter().all(|lane| !matches!(lane.turn, Turn::Running(..)))
    }
}

impl World {
    pub(super) fn allocate(
        &mut self,
        node: usize,
        memory: MemoryId,
        bytes: u64,
        alignment: u64,
    ) -> Result<BasePtr, AllocError> {
        let allocation = self.devices[node].allocations;
        self.devices[node].allocations += 1;
        if self.conditions.faults.contains(&Fault::OutOfMemory { node, allocation }) {
            self.faults_met += 1;
            self.note(node, What::OutOfMemory { memory });
            return Err(AllocError { resident: 0, free: Some(0) });
        }
        self.note(node, What::Allocates { memory, bytes });
        Ok(self.memory.allocate(bytes, alignment))
    }

    pub(super) fn free(&mut self, node: usize, memory: MemoryId, base: BasePtr) {
        self.note(node, What::Frees { memory });
        if !self.memory.give_back(base) {
            self.object(node, format!("memory of {memory} is freed that is not there"));
        }
    }

    pub(super) fn enqueue(&mut self, node: usize, lane: LaneId, job: Queued) {
        self.note(node, What::Enqueued { instruction: job.instruction, lane });
        self.devices[node].lanes[lane.slot()].queue.push_back(job);
        self.take_turn(node, lane);
    }

    /// Hands out what has completed, that of each lane in order; by chance not all
    /// of it, and wakes the node again.
    pub(super) fn report(&mut self, node: usize, out: &mut Vec<Completion>) {
        let there = self.devices[node].reports.len();
        if there == 0 {
            return;
        }
        let stutters = self.random.once_in(self.conditions.stutter);
        let late = stutters.then(|| self.devices[node].reports[self.random.below(there)].0);
        let now = |(lane, _): &mut (LaneId, Completion)| Some(*lane) != late;
        let reports = self.devices[node].reports.extract_if(.., now);
        out.extend(reports.map(|(_, completion)| completion));
        if late.is_some() {
            self.wake(node);
        }
    }

    /// A lane's next event.
    pub(super) fn lane_event(&mut self, node: usize, lane: LaneId) {
        match std::mem::take(&mut self.devices[node].lanes[lane.slot()].turn) {
            Turn::Idle => unreachable!("idle lanes have no events"),
            Turn::Starting => self.start_job(node, lane),
            Turn::Running(instruction, execution) => {
                self.end_job(node, lane, instruction, execution);
                // Others may have waited for the job.
                let lanes = 0..u16::try_from(self.devices[node].lanes.len()).expect("few lanes");
                lanes.for_each(|lane| self.take_turn(node, LaneId::from_slot(lane)));
            }
        }
    }

    fn take_turn(&mut self, node: usize, lane: LaneId) {
        if self.devices[node].is_due(lane) {
            self.devices[node].lanes[lane.slot()].turn = Turn::Starting;
            let delay = self.random.delay(self.conditions.start);
            self.after(delay, Event::Lane(node, lane));
        }
    }

    fn start_job(&mut self, node: usize, lane: LaneId) {
        let next = self.devices[node].lanes[lane.slot()].queue.pop_front();
        // The lane may have been halted meanwhile.
        let Some(Queued { instruction, job, .. }) = next else { return };
        self.note(node, What::Started { instruction, lane });
        let style = self.style(node);
        match Execution::start(job, style, &self.memory) {
            Ok(execution) => {
                let turn = Turn::Running(instruction, execution);
                self.devices[node].lanes[lane.slot()].turn = turn;
                let delay = self.random.delay(self.conditions.lanes[node][lane.slot()]);
                self.after(delay, Event::Lane(node, lane));
            }
            Err(what) => self.object(node, format!("{instruction} {what}")),
        }
    }

    fn end_job(
        &mut self,
        node: usize,
        lane: LaneId,
        instruction: InstructionId,
        execution: Execution,
    ) {
        let failure = match execution.end(&mut self.memory) {
            Ok(failure) => failure,
            Err(what) => return self.object(node, format!("{instruction} {what}")),
        };
        self.note(node, What::Ended { instruction, failed: failure.is_some() });
        let devices = &mut self.devices[node];
        devices.lanes[lane.slot()].halted |= failure.is_some();
        devices.lanes[lane.slot()].ended += u64::from(failure.is_none());
        devices.reports.push((lane, Completion { instruction, failure, span: None }));
        self.wake(node);
    }

    fn style(&mut self, node: usize) -> Style {
        let job = self.devices[node].started;
        self.devices[node].started += 1;
        if self.conditions.faults.contains(&Fault::Job { node, job }) {
            self.faults_met += 1;
            return Style::Fails;
        }
        [Style::Early, Style::Late, Style::Stretched][self.random.below(3)]
    }
}
