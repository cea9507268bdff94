//! The lanes of the simulated nodes: queues whose jobs start and end at times
//! that chance decides, in the order that the contract of
//! [`Backend`](celerity_executor::Backend) demands.

use std::collections::VecDeque;

use celerity_executor::{AllocError, BasePtr, Completion, Job, LaneId, LaneJob};
use celerity_idag::{InstructionId, MemoryId};

use super::execution::{Execution, Style};
use super::{Event, World};
use crate::sim::conditions::Fault;
use crate::sim::log::What;

/// One node's lanes, and what they have completed.
pub(in crate::sim) struct Devices {
    lanes: Vec<Lane>,
    reports: Vec<(LaneId, Completion)>,
    /// Whether whoever polls the node computes, too.
    shares_core: bool,
    /// Lanes whose next job is left to whoever polls the node, in order.
    kept: VecDeque<LaneId>,
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
pub(in crate::sim) struct Queued {
    pub(in crate::sim) instruction: InstructionId,
    pub(in crate::sim) job: Job,
    /// Jobs of other lanes that have to end before.
    pub(in crate::sim) after: Vec<LaneJob>,
}

/// What a lane's next event is.
#[derive(Default)]
enum Turn {
    /// There is none.
    #[default]
    Idle,
    /// The next job starts.
    Starting,
    /// There is none: the next job is left to whoever polls the node.
    Kept,
    /// This job ends.
    Running(Running),
}

/// A job that has started.
struct Running {
    instruction: InstructionId,
    execution: Execution,
    /// Whether the node's thread runs it, and looks for what has completed by itself.
    by_node: bool,
}

impl Devices {
    pub(in crate::sim) fn new(lanes: usize) -> Self {
        Self {
            lanes: std::iter::repeat_with(Lane::default).take(lanes).collect(),
            reports: Vec::new(),
            shares_core: false,
            kept: VecDeque::new(),
            started: 0,
            allocations: 0,
        }
    }

    /// Nothing starts any more. Returns what has not, to be dropped without the
    /// world's lock.
    pub(in crate::sim) fn halt(&mut self) -> Vec<VecDeque<Queued>> {
        for lane in self.kept.drain(..) {
            self.lanes[lane.slot()].turn = Turn::Idle;
        }
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
    pub(in crate::sim) fn running(&self, lane: LaneId) -> Option<InstructionId> {
        match &self.lanes[lane.slot()].turn {
            Turn::Running(running) => Some(running.instruction),
            Turn::Idle | Turn::Starting | Turn::Kept => None,
        }
    }

    /// From now on kernels may be left to whoever polls the node.
    pub(in crate::sim) fn share_core(&mut self) {
        self.shares_core = true;
    }

    /// Whether jobs are left to whoever polls the node.
    pub(in crate::sim) fn waits_to_compute(&self) -> bool {
        !self.kept.is_empty()
    }

    /// The first of these jobs.
    pub(in crate::sim) fn next_to_compute(&self) -> Option<InstructionId> {
        let lane = self.kept.front()?;
        self.lanes[lane.slot()].queue.front().map(|next| next.instruction)
    }

    fn next_job(&self, lane: LaneId) -> Option<&Queued> {
        self.lanes[lane.slot()].queue.front()
    }

    /// Whether no job is running.
    pub(in crate::sim) fn is_quiet(&self) -> bool {
        self.lanes.iter().all(|lane| !matches!(lane.turn, Turn::Running(_)))
    }
}

impl World {
    pub(in crate::sim) fn allocate(
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

    pub(in crate::sim) fn free(&mut self, node: usize, memory: MemoryId, base: BasePtr) {
        self.note(node, What::Frees { memory });
        if !self.memory.give_back(base) {
            self.object(node, format!("memory of {memory} is freed that is not there"));
        }
    }

    pub(in crate::sim) fn enqueue(&mut self, node: usize, lane: LaneId, job: Queued) {
        self.note(node, What::Enqueued { instruction: job.instruction, lane });
        self.devices[node].lanes[lane.slot()].queue.push_back(job);
        if self.runs_at_once(node, lane) {
            self.start_job(node, lane, true);
            return self.end_running(node, lane);
        }
        self.take_turn(node, lane);
    }

    /// Whether the next job of a lane runs while it is put there.
    fn runs_at_once(&mut self, node: usize, lane: LaneId) -> bool {
        let devices = &self.devices[node];
        let may = devices.is_due(lane)
            && devices.next_job(lane).is_some_and(|next| !matches!(next.job, Job::Host { .. }));
        let at_once = self.conditions.threads.at_once;
        may && at_once > 0 && self.random.once_in(at_once)
    }

    /// Lets the node's thread run a job that was left to it; the node is not polled meanwhile.
    pub(in crate::sim) fn compute(&mut self, node: usize) -> bool {
        let Some(lane) = self.devices[node].kept.pop_front() else { return false };
        self.devices[node].lanes[lane.slot()].turn = Turn::Idle;
        if let Some(instruction) = self.devices[node].next_job(lane).map(|job| job.instruction) {
            self.note(node, What::Computes { instruction });
        }
        self.computed += 1;
        if self.start_job(node, lane, true) {
            let delay = self.random.delay(self.conditions.lanes[node][lane.slot()]);
            self.after(delay, Event::Lane(node, lane));
            self.stay_away(node, delay);
        }
        true
    }

    /// Hands out what has completed, that of each lane in order; by chance not all
    /// of it, and wakes the node again.
    pub(in crate::sim) fn report(&mut self, node: usize, out: &mut Vec<Completion>) {
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
    pub(in crate::sim) fn lane_event(&mut self, node: usize, lane: LaneId) {
        match self.devices[node].lanes[lane.slot()].turn {
            Turn::Idle | Turn::Kept => unreachable!("idle lanes have no events"),
            Turn::Starting => {
                self.devices[node].lanes[lane.slot()].turn = Turn::Idle;
                if self.start_job(node, lane, false) {
                    let delay = self.random.delay(self.conditions.lanes[node][lane.slot()]);
                    self.after(delay, Event::Lane(node, lane));
                }
            }
            Turn::Running(_) => self.end_running(node, lane),
        }
    }

    /// Ends the job that a lane runs, if it runs one, and lets others go on.
    fn end_running(&mut self, node: usize, lane: LaneId) {
        let turn = std::mem::take(&mut self.devices[node].lanes[lane.slot()].turn);
        let Turn::Running(running) = turn else { return };
        self.end_job(node, lane, running);
        // Others may have waited for the job.
        let lanes = 0..u16::try_from(self.devices[node].lanes.len()).expect("few lanes");
        lanes.for_each(|lane| self.take_turn(node, LaneId::from_slot(lane)));
    }

    fn take_turn(&mut self, node: usize, lane: LaneId) {
        if !self.devices[node].is_due(lane) {
            return;
        }
        let next = self.devices[node].next_job(lane);
        let kernel = next.filter(|next| matches!(next.job, Job::Kernel { .. }));
        let kernel = kernel.map(|next| next.instruction).filter(|_| self.devices[node].shares_core);
        if let Some(instruction) = kernel
            && self.random.once_in(2)
        {
            self.note(node, What::LeftToNode { instruction, lane });
            self.devices[node].lanes[lane.slot()].turn = Turn::Kept;
            self.devices[node].kept.push_back(lane);
        } else {
            self.devices[node].lanes[lane.slot()].turn = Turn::Starting;
            let delay = self.random.delay(self.conditions.start);
            self.after(delay, Event::Lane(node, lane));
        }
    }

    /// Starts the next job of a lane, unless there is none any more or it must not be there.
    fn start_job(&mut self, node: usize, lane: LaneId, by_node: bool) -> bool {
        let next = self.devices[node].lanes[lane.slot()].queue.pop_front();
        // The lane may have been halted meanwhile.
        let Some(Queued { instruction, job, .. }) = next else { return false };
        self.note(node, What::Started { instruction, lane });
        if let Some(what) = self.objects.start(node, instruction) {
            self.object(node, what);
        }
        let style = self.style(node);
        match Execution::start(job, style, &self.memory) {
            Ok(execution) => {
                let turn = Turn::Running(Running { instruction, execution, by_node });
                self.devices[node].lanes[lane.slot()].turn = turn;
                true
            }
            Err(what) => {
                self.object(node, format!("{instruction} {what}"));
                false
            }
        }
    }

    fn end_job(&mut self, node: usize, lane: LaneId, running: Running) {
        let Running { instruction, execution, by_node } = running;
        let failure = match execution.end(&mut self.memory) {
            Ok(failure) => failure,
            Err(what) => return self.object(node, format!("{instruction} {what}")),
        };
        self.note(node, What::Ended { instruction, failed: failure.is_some() });
        self.objects.end(node, instruction);
        let devices = &mut self.devices[node];
        devices.lanes[lane.slot()].halted |= failure.is_some();
        devices.lanes[lane.slot()].ended += u64::from(failure.is_none());
        devices.reports.push((lane, Completion { instruction, failure, span: None }));
        if !by_node {
            self.wake(node);
        }
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
