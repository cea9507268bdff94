//! One node as a poll-driven state machine: takes submissions, generates
//! commands and instructions, and drives them through engine, arbiter,
//! communicator and backend. No thread, no clock, no lock: somebody else polls.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use celerity_cdag::{CommandGraphConfig, NodeId};
use celerity_idag::{DeviceId, Instruction, InstructionId, InstructionKind, Lookahead, MessageId};
use celerity_tdag::{BufferInfo, EpochAction, Task, TaskId, Work};

use crate::arbiter::{Arbiter, ArbiterError};
use crate::backend::{Backend, Completion};
use crate::communicator::{CommEvent, Communicator};
use crate::engine::{Engine, Step};
use crate::error::{RunError, panic_message};
use crate::lanes::LaneLayout;
use crate::observe::Observer;
use crate::progress::Progress;
use crate::submission::Submission;
use crate::time::Time;
use crate::window::{IdMap, Window};
use crate::work::Payload;

mod generator;
mod issue;
mod open;
mod store;
mod waiting;

use generator::{Batch, Generator};
use open::OpenInstructions;
use store::Store;

pub use waiting::{Waiting, WaitsFor};

/// So many tasks are taken between two looks at completions: at some
/// microseconds per task, a lane that falls idle waits no longer than a short
/// kernel runs.
const SCHEDULE_BATCH: usize = 8;

/// What a round of polling did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a node that is busy wants another round"]
pub enum Activity {
    /// Something happened, or more is queued: poll again.
    Busy,
    /// Nothing will happen before a submission or a wake-up.
    Idle,
}

/// How far a node has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It takes submissions and runs them.
    Running,
    /// An abort is on its way; nothing is issued any more.
    Failing,
    /// The run's first error is known and published.
    Stopped,
    /// The shutdown epoch has been reached.
    Finished,
}

/// One node of a cluster, as a state machine that somebody else drives.
///
/// A driver, whatever its clock and its threads are,
/// * [submits](Self::submit) the same tasks in the same order to the machines of
///   all nodes, the first being the task graph's start, and ends with a shutdown
///   epoch and [`Submission::Closed`]; after a failure `Closed` alone will do;
/// * [polls](Self::poll) after each submission, after each call of the
///   [waker](crate::Waker) that communicator and backend were made with, and
///   again while the machine is busy. Further polls do no harm;
/// * passes the time, which never goes back and decides nothing: it is what
///   [`waiting`](Self::waiting) reports;
/// * drops the machine when it [is done](Self::is_done). Dropping it earlier
///   waits for what runs.
///
/// What the node has reached is told to its [`Progress`]. Memory is bounded by
/// what has been submitted and not completed.
//
// Field order is drop order: the communicator gives up this node's memory, and
// the backend waits for its jobs, before memory and user data go.
pub struct NodeMachine {
    phase: Phase,
    now: Time,
    inbox: VecDeque<Submission>,
    closed: bool,
    generator: Generator,
    engine: Engine,
    lanes: LaneLayout,
    arbiter: Arbiter,
    communicator: Box<dyn Communicator>,
    backend: Box<dyn Backend>,
    store: Store,
    open: OpenInstructions,
    tasks: Window<RunningTask>,
    sends: IdMap<MessageId, InstructionId>,
    /// The epoch whose barrier this node has entered.
    in_barrier: Option<(InstructionId, TaskId, EpochAction)>,
    progress: Arc<Progress>,
    completions: Vec<Completion>,
}

/// A task with instructions that have not completed.
struct RunningTask {
    task: Arc<Task>,
    payload: Option<Payload>,
    incomplete: u32,
}

impl NodeMachine {
    /// The node at one end of a network, with so many devices, which are those
    /// of `backend`. `progress` is told what user threads may wait for.
    #[must_use]
    pub fn new(
        devices: usize,
        communicator: Box<dyn Communicator>,
        backend: Box<dyn Backend>,
        progress: Arc<Progress>,
    ) -> Self {
        let (nodes, local) = (communicator.nodes(), communicator.node());
        let lanes = backend.layout();
        Self {
            phase: Phase::Running,
            now: Time::START,
            inbox: VecDeque::new(),
            closed: false,
            generator: Generator::new(CommandGraphConfig { nodes, local }, devices),
            engine: Engine::new(lanes.count()),
            lanes,
            arbiter: Arbiter::new(local),
            communicator,
            backend,
            store: Store::default(),
            open: OpenInstructions::default(),
            tasks: Window::default(),
            sends: IdMap::default(),
            in_barrier: None,
            progress,
            completions: Vec::new(),
        }
    }

    /// Holds commands back that will allocate; without this call, none are.
    #[must_use]
    pub fn with_lookahead(mut self, lookahead: Lookahead) -> Self {
        self.generator.set_lookahead(lookahead);
        self
    }

    /// Shows `observer` everything that is generated, before it runs.
    #[must_use]
    pub fn with_observer(mut self, observer: Box<dyn Observer>) -> Self {
        self.generator.observe(observer);
        self
    }

    /// Queues a submission; it is looked at by [`poll`](Self::poll).
    pub fn submit(&mut self, submission: Submission) {
        self.inbox.push_back(submission);
    }

    /// One round at the time `now`: what has completed, what has arrived, a
    /// bounded number of submissions, and everything that this allows to start.
    /// Never blocks.
    ///
    /// # Panics
    /// If communicator or backend break their contracts in a way that cannot be
    /// reported as an error of the run.
    pub fn poll(&mut self, now: Time) -> Activity {
        debug_assert!(self.now <= now, "time goes back from {} to {now}", self.now);
        self.now = now;
        let completed = self.collect_completions();
        let heard = self.collect_network();
        let taken = self.take_submissions();
        self.issue_all();
        if completed || heard || taken { Activity::Busy } else { Activity::Idle }
    }

    /// Whether the node has nothing left to do, ever: its user code has ended,
    /// and it has shut down, or has stopped and nothing runs any more.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let over = match self.phase {
            Phase::Finished => true,
            Phase::Stopped => self.backend.is_quiet() && self.communicator.is_quiet(),
            Phase::Running | Phase::Failing => false,
        };
        over && self.closed && self.inbox.is_empty()
    }

    /// How far the node has come.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    fn id(&self) -> NodeId {
        self.communicator.node()
    }

    fn collect_completions(&mut self) -> bool {
        let mut completions = std::mem::take(&mut self.completions);
        self.backend.poll(&mut completions);
        let any = !completions.is_empty();
        completions.drain(..).for_each(|completion| self.job_completed(completion));
        self.completions = completions;
        any
    }

    fn job_completed(&mut self, completion: Completion) {
        if self.phase != Phase::Running {
            return;
        }
        let instruction = completion.instruction;
        let job = self.open.task_of(instruction);
        if let Some(message) = completion.panic {
            return self.fail(self.panicked(job, instruction, message));
        }
        if let Some((task, _)) = job {
            self.task_advanced(task);
        }
        self.retire(instruction);
    }

    fn collect_network(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.communicator.poll() {
            any = true;
            match (self.phase, event) {
                (Phase::Running | Phase::Failing, CommEvent::Aborted(error)) => self.stop(error),
                (Phase::Running, event) => self.network_event(event),
                _ => {}
            }
        }
        any
    }

    fn network_event(&mut self, event: CommEvent) {
        match event {
            CommEvent::Pilot { from, pilot } => {
                let outcome = self.arbiter.pilot(from, pilot);
                self.arbitrated(outcome);
            }
            CommEvent::Received { from, message } => {
                let outcome = self.arbiter.arrived(from, message);
                self.arbitrated(outcome);
            }
            CommEvent::Sent { message } => {
                let send = self.sends.remove(&message).expect("payloads are sent once");
                #[cfg(feature = "mutants")]
                if celerity_mutants::Mutant::SendNeverEnds.is_active() {
                    return;
                }
                self.retire(send);
            }
            CommEvent::BarrierReached => {
                let barrier = self.in_barrier.take();
                let (instruction, task, action) = barrier.expect("the node is in the barrier");
                self.epoch_reached(instruction, task, action);
            }
            CommEvent::Failed(error) => {
                let node = self.id();
                self.fail(RunError::Communication { node, error: Box::new(error) });
            }
            CommEvent::Aborted(_) => unreachable!("aborts are handled in every state"),
        }
    }

    /// Passes on what the arbiter has decided, or fails with what it objects to.
    fn arbitrated(&mut self, outcome: Result<(), ArbiterError>) {
        if let Err(error) = outcome {
            let node = self.id();
            return self.fail(RunError::Arbitration { node, error: Box::new(error) });
        }
        while let Some(post) = self.arbiter.next_post() {
            self.post_receive(post);
        }
        while let Some(instruction) = self.arbiter.next_completed() {
            self.retire(instruction);
            #[cfg(feature = "mutants")]
            if celerity_mutants::Mutant::OneReceivePerArrival.is_active() {
                break;
            }
        }
    }

    fn take_submissions(&mut self) -> bool {
        let mut tasks = 0;
        let any = !self.inbox.is_empty();
        while tasks < SCHEDULE_BATCH
            && let Some(submission) = self.inbox.pop_front()
        {
            tasks += usize::from(matches!(submission, Submission::Task { .. }));
            match (self.phase, submission) {
                (_, Submission::Closed) => self.closed = true,
                (Phase::Running, submission) => self.accept(submission),
                // Payloads must outlive the publication of the error: whoever
                // waits for one looks for it.
                (Phase::Failing, submission) => {
                    self.inbox.push_front(submission);
                    return false;
                }
                (Phase::Stopped | Phase::Finished, submission) => drop(submission),
            }
        }
        any
    }

    fn accept(&mut self, submission: Submission) {
        match submission {
            Submission::Buffer { info, data } => {
                let initial = self.generator.register_buffer(&info);
                if let Err(error) = self.store.add_buffer(info, initial.zip(data)) {
                    self.fail(error);
                }
            }
            Submission::Renamed(info) => self.rename(info),
            Submission::Dropped(buffer) => {
                self.store.forget_buffer(buffer);
                self.generate(None, |generator| generator.drop_buffer(buffer));
            }
            Submission::Task { task, payload } => {
                let running = RunningTask { task: task.clone(), payload, incomplete: 1 };
                self.tasks.insert(task.id.index(), running);
                self.generate(Some(&task), |generator| generator.generate(&task));
            }
            Submission::Lookahead(lookahead) => self.generator.set_lookahead(lookahead),
            Submission::Flush => self.generate(None, Generator::flush),
            Submission::Abort(error) => self.fail(error),
            Submission::Closed => unreachable!("handled in every state"),
        }
    }

    fn rename(&mut self, info: Arc<BufferInfo>) {
        let _ = self.generator.register_buffer(&info);
        self.store.rename_buffer(info);
    }

    /// Takes a step of the generators, for `task` if for any, and over what it
    /// lets go of.
    fn generate(
        &mut self,
        task: Option<&Task>,
        step: impl FnOnce(&mut Generator) -> Result<Batch, String>,
    ) {
        // Generators evaluate users' range mappers, which may panic.
        let generator = &mut self.generator;
        let outcome = catch_unwind(AssertUnwindSafe(|| step(generator)));
        let message = match outcome {
            Ok(Ok(batch)) => return self.admit(batch),
            Ok(Err(complaint)) => complaint,
            Err(panic) => {
                let whose = task.map_or_else(String::new, |task| format!(" of task {task}"));
                format!("a range mapper{whose} panicked: {}", panic_message(&*panic))
            }
        };
        let node = self.id();
        self.fail(RunError::Schedule { node, message });
    }

    /// Sends pilots and hands instructions to the engine.
    fn admit(&mut self, mut batch: Batch) {
        for pilot in &batch.schedule.pilots {
            self.communicator.send_pilot(pilot);
        }
        for Instruction { id, kind, dependencies } in batch.schedule.instructions.drain(..) {
            let mut target = self.lanes.target(&kind);
            if let Some(task) = task_of(&kind) {
                let running = self.tasks.get_mut(task.index());
                let running = running.expect("tasks outlive their instructions");
                running.incomplete += 1;
                if running.task.work == Work::Fence {
                    target = self.lanes.fences();
                }
            }
            let _: Step = self.engine.submit(id, &dependencies, target);
            self.open.admit(id, kind, self.now);
        }
        // The counts that were held while instructions could still be added.
        batch.ended.drain(..).for_each(|task| self.task_advanced(task));
        self.generator.recycle(batch);
        self.progress.hold_horizons(self.generator.held_horizons() as u64);
    }

    /// One instruction of a task has completed; with the last one its payload goes.
    fn task_advanced(&mut self, task: TaskId) {
        let running = self.tasks.get_mut(task.index()).expect("tasks outlive their instructions");
        running.incomplete -= 1;
        if running.incomplete == 0 {
            self.tasks.remove(task.index());
        }
    }

    fn retire(&mut self, instruction: InstructionId) {
        self.open.retire(instruction);
        let _: Step = self.engine.complete(instruction);
    }

    fn epoch_reached(&mut self, instruction: InstructionId, task: TaskId, action: EpochAction) {
        let closed = self.arbiter.close_before(task);
        self.arbitrated(closed);
        if self.phase != Phase::Running {
            return;
        }
        self.retire(instruction);
        if action == EpochAction::Shutdown {
            debug_assert_eq!(self.engine.incomplete(), 0, "the last epoch waits for everything");
            self.phase = Phase::Finished;
        }
        self.progress.epoch_reached(task);
    }

    fn panicked(
        &self,
        job: Option<(TaskId, Option<DeviceId>)>,
        instruction: InstructionId,
        message: String,
    ) -> RunError {
        let Some((task, device)) = job else {
            return RunError::Internal { message: format!("{instruction} panicked: {message}") };
        };
        let running = self.tasks.get(task.index()).expect("tasks outlive their instructions");
        RunError::TaskPanicked { task: running.task.to_string(), node: self.id(), device, message }
    }

    /// Stops issuing, here at once and everywhere soon. The network decides
    /// which of several errors is the first.
    fn fail(&mut self, error: RunError) {
        if self.phase == Phase::Running {
            self.phase = Phase::Failing;
            self.communicator.abort(&error);
        }
    }

    /// The run's first error is known: publishes it, then drops what will not
    /// run. What does run keeps its memory until the node is dropped.
    fn stop(&mut self, error: RunError) {
        self.phase = Phase::Stopped;
        self.progress.fail(error);
        self.backend.cancel();
        self.open = OpenInstructions::default();
        self.tasks = Window::default();
        self.sends.clear();
        self.in_barrier = None;
    }
}

/// The task whose payload an instruction runs.
fn task_of(kind: &InstructionKind) -> Option<TaskId> {
    match kind {
        InstructionKind::Kernel { task, .. } | InstructionKind::HostTask { task, .. } => {
            Some(*task)
        }
        _ => None,
    }
}
