//! The second half of a node as a poll-driven state machine: takes instructions
//! and drives them through engine, arbiter, communicator and backend. No thread,
//! no clock, no lock: somebody else polls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use celerity_cdag::NodeId;
use celerity_idag::{DeviceId, Effects, Instruction, InstructionId, MessageId, Run};
use celerity_tdag::{EpochAction, Task, TaskId, Work};

use crate::arbiter::{Arbiter, ArbiterError};
use crate::backend::{Backend, Completion, JobFailure};
use crate::communicator::{CommEvent, CommunicationError, Communicator};
use crate::contain::{Kept, end};
use crate::engine::{Engine, Step};
use crate::error::RunError;
use crate::lanes::LaneLayout;
use crate::profile::NodeProfile;
use crate::progress::Progress;
use crate::pulse::{Call, Calls};
use crate::reactor::Attention;
use crate::scheduler::{Batch, Order};
use crate::time::{Clock, Time};
use crate::warning::WarningSink;
use crate::window::{IdMap, Window};
use crate::work::Payload;

mod contents;
mod credit;
mod issue;
mod lingering;
mod open;
mod out_of_memory;
mod recording;
mod starvation;
mod store;
mod stream;
mod timing;
mod waiting;
mod watchdog;
mod watching;

use credit::Credit;
use open::OpenInstructions;
use starvation::StarvationMeter;
use store::Store;
use stream::{Objection, Outgoing, TaskStream};
use timing::KernelTimer;
pub(crate) use watchdog::{GRACE, Watchdog};

pub use starvation::Starvation;
pub use waiting::{OnLane, Running, Stall, Waiting, WaitsFor};

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

/// Runs the instructions of one node.
///
/// A driver [tells](Self::order) it what a [`Scheduler`](crate::Scheduler) puts
/// out, in order, and polls it as it would poll a
/// [`NodeMachine`](crate::NodeMachine), which is the two of them on one thread.
///
/// What the node has reached is told to its [`Progress`]. Memory is bounded by
/// what has been ordered and not completed.
//
// Field order is drop order: the communicator gives up this node's memory, and
// the backend waits for its jobs, before memory and user data go.
pub struct Executor {
    phase: Phase,
    now: Time,
    inbox: VecDeque<Order>,
    closed: bool,
    engine: Engine,
    lanes: LaneLayout,
    arbiter: Arbiter,
    communicator: Box<dyn Communicator>,
    backend: Box<dyn Backend>,
    store: Store,
    open: OpenInstructions,
    tasks: Window<RunningTask>,
    /// Those that have ended in this round: what they own is given back at its end, when
    /// messages are on their way.
    over: Vec<RunningTask>,
    /// Horizons that this round has reached. They are told at its end, too: to wake who
    /// submits may take longer than all else, and may cost this thread its core.
    horizons: u64,
    credit: Credit,
    sends: IdMap<MessageId, InstructionId>,
    /// When something has happened last.
    last_busy: Time,
    /// Since when this thread computes, if the last round has ended with that.
    computing_since: Option<Time>,
    /// How long it did the last time.
    computed_for: Duration,
    stream: TaskStream,
    /// On their way to the communicator.
    notes: Vec<Outgoing>,
    /// The epoch whose barrier this node has entered.
    in_barrier: Option<(InstructionId, TaskId, EpochAction)>,
    /// What this node has ended the run with, until it is known whether that was the first error.
    own_failure: Option<RunError>,
    progress: Arc<Progress>,
    completions: Vec<Completion>,
    /// Batches whose memory can be used again.
    spent: Vec<Batch>,
    scheduling: Scheduling,
    starvation: StarvationMeter,
    watchdog: Option<Watchdog>,
    /// Of a run that has failed.
    end: Option<Box<lingering::End>>,
    /// What of the user's this half of the node is in.
    calls: Arc<Calls>,
    warnings: WarningSink,
    profile: Option<Box<NodeProfile>>,
    kernel_timer: Option<Box<KernelTimer>>,
    /// Whether the backend has been asked for the times of jobs.
    times_jobs: bool,
}

/// How many tasks there have been so far.
#[derive(Default)]
struct Scheduling {
    /// Those that the scheduler has begun with.
    begun: u64,
    /// Those that it is done with, but for instructions that it holds back.
    done: u64,
    /// Those of which no instructions are held back.
    released: u64,
}

/// A task with instructions that have not completed.
struct RunningTask {
    task: Arc<Task>,
    payload: Option<Kept<Payload>>,
    incomplete: u32,
    /// Whether all of its instructions are known.
    scheduled: bool,
}

impl Executor {
    /// The node at one end of a network, with the devices of `backend`.
    /// `progress` is told what user threads may wait for.
    #[must_use]
    pub fn new(
        communicator: Box<dyn Communicator>,
        backend: Box<dyn Backend>,
        progress: Arc<Progress>,
    ) -> Self {
        let (local, lanes) = (communicator.node(), backend.layout());
        let stream = TaskStream::new(local, communicator.nodes());
        let credit = Credit::new(communicator.nodes(), communicator.sends_ahead().then_some(LEAD));
        Self {
            phase: Phase::Running,
            now: Time::START,
            inbox: VecDeque::new(),
            closed: false,
            engine: Engine::new(lanes.count()).with_joins(backend.joins()),
            lanes,
            arbiter: Arbiter::new(local),
            communicator,
            backend,
            store: Store::default(),
            open: OpenInstructions::default(),
            tasks: Window::default(),
            over: Vec::new(),
            horizons: 0,
            credit,
            sends: IdMap::default(),
            last_busy: Time::START,
            computing_since: None,
            computed_for: Duration::ZERO,
            stream,
            notes: Vec::new(),
            in_barrier: None,
            own_failure: None,
            progress,
            completions: Vec::new(),
            spent: Vec::new(),
            scheduling: Scheduling::default(),
            starvation: StarvationMeter::new(lanes.devices()),
            watchdog: None,
            end: None,
            calls: Arc::default(),
            warnings: WarningSink::default(),
            profile: None,
            kernel_timer: None,
            times_jobs: false,
        }
    }

    /// The same node, which may be so many horizons ahead of those that it sends to, if the
    /// network [sends ahead](Communicator::sends_ahead): 16 without this call. The same on
    /// all nodes.
    #[must_use]
    pub fn with_lead(mut self, horizons: u64) -> Self {
        let lead = self.communicator.sends_ahead().then_some(horizons);
        self.credit = Credit::new(self.communicator.nodes(), lead);
        self
    }

    /// The same node in a process whose threads have one core between them: kernels that
    /// are over soon wait for [`compute`](Self::compute), whose thread is alone in a `rayon`
    /// pool.
    #[must_use]
    pub(crate) fn sharing_core(mut self) -> Self {
        self.backend.share_core();
        self
    }

    /// Tells `calls` what of the user's it is in.
    #[must_use]
    pub(crate) fn with_calls(mut self, calls: &Arc<Calls>) -> Self {
        self.calls = calls.clone();
        self
    }

    /// Tells when jobs have begun, by times on `clock`, where it says what runs.
    #[must_use]
    pub(crate) fn noting_begins(mut self, clock: Clock) -> Self {
        self.backend.note_begins(clock);
        self
    }

    /// Queues an order; it is looked at by [`poll`](Self::poll).
    pub fn order(&mut self, order: Order) {
        self.inbox.push_back(order);
    }

    /// A batch that has been taken over; its scheduler can use its memory again.
    pub fn spent_batch(&mut self) -> Option<Batch> {
        self.spent.pop()
    }

    /// One round at the time `now`: what has completed, what has arrived, what
    /// was ordered, and everything that this allows to start. Never blocks.
    ///
    /// # Panics
    /// If communicator or backend break their contracts in a way that cannot be
    /// reported as an error of the run.
    pub fn poll(&mut self, now: Time) -> Activity {
        debug_assert!(self.now <= now, "time goes back from {} to {now}", self.now);
        self.now = now;
        if let Some(begin) = self.computing_since.take() {
            self.computed_for = now.since(begin);
        }
        let completed = self.collect_completions();
        let heard = self.collect_network();
        self.starvation.look(now, self.lag());
        // What others may be waiting for goes first: an order is a microsecond's work.
        let mut followed = self.issue_and_follow_up();
        let taken = self.take_orders();
        followed |= taken && self.issue_and_follow_up();
        let busy = completed || heard || taken || followed;
        self.give_back();
        self.tell_horizons();
        self.watch(busy, completed || heard);
        self.record_poll();
        if busy {
            self.last_busy = now;
        }
        if busy { Activity::Busy } else { Activity::Idle }
    }

    /// Computes on this thread, if the backend leaves that to the node; called when there is
    /// nothing else to do. Peers that wait for data get them first: some networks move them
    /// only while both sides look.
    pub(crate) fn compute(&mut self) -> bool {
        let all_sent = self.sends.is_empty();
        let computes = self.phase == Phase::Running
            && (all_sent || self.now.since(self.last_busy) > TIME_TO_LEAVE)
            && self.run_kept();
        self.computing_since = computes.then_some(self.now);
        computes
    }

    /// Runs a job that the backend leaves to the node.
    fn run_kept(&mut self) -> bool {
        let next = self.backend.next_to_compute();
        match next.and_then(|instruction| self.open.task_of(instruction)) {
            Some((task, _)) => self.calls.during(Call::Kernel(task), || self.backend.compute()),
            None => self.backend.compute(),
        }
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

    /// How closely the node must be looked at while nothing wakes its driver.
    #[must_use]
    pub fn attention(&self) -> Attention {
        if self.communicator.wakes() {
            Attention::WhenWoken
        } else if self.communicator.needs_polling()
            || self.arbiter.expects_pilots()
            || self.progress.waits_for_peers()
        {
            let patience = patience(self.communicator.bytes_under_way());
            Attention::Close(patience + self.computed_for.min(LONGEST_LAG))
        } else {
            Attention::NowAndThen
        }
    }

    /// How far the node has come.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    fn id(&self) -> NodeId {
        self.communicator.node()
    }

    /// Tells the program, and peers that have to know, how far this node is.
    fn tell_horizons(&mut self) {
        let more = std::mem::take(&mut self.horizons);
        if more > 0 {
            for peer in self.credit.reach(more) {
                self.communicator.send_note(peer, &credit::note(self.credit.reached()));
            }
        }
        self.progress.horizons_reached(more, self.credit.limit());
    }

    fn collect_completions(&mut self) -> bool {
        let mut completions = std::mem::take(&mut self.completions);
        self.backend.poll(&mut completions);
        let any = !completions.is_empty();
        completions.drain(..).for_each(|completion| self.job_completed(completion));
        self.completions = completions;
        any
    }

    /// Issues what can start, and what follows from jobs that were over as soon as they
    /// were issued: these may let a message go, or the next kernel.
    fn issue_and_follow_up(&mut self) -> bool {
        self.issue_all();
        let any = self.collect_completions();
        if any {
            self.issue_all();
        }
        any
    }

    fn job_completed(&mut self, completion: Completion) {
        if self.phase != Phase::Running {
            return;
        }
        let instruction = completion.instruction;
        let job = self.open.task_of(instruction);
        self.record_span(instruction, completion.span);
        if let Some(failure) = completion.failure {
            self.record_retired(instruction);
            return self.fail(self.failed(job, instruction, failure));
        }
        self.time_job(instruction, job, completion.span);
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
            CommEvent::Pilot { from, pilot, reached } => {
                self.credit.announced(from, pilot.transfer.consumer, reached);
                let outcome = self.arbiter.pilot(from, pilot);
                self.arbitrated(outcome);
            }
            CommEvent::Note { from, note } => self.noted(from, &note),
            CommEvent::Received { from, message } => {
                self.record_arrival(from, message);
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

    fn noted(&mut self, from: NodeId, note: &[u8]) {
        if let Some(reached) = credit::read(note) {
            return self.credit.hear(from, reached);
        }
        let outcome = self.stream.noted(from, note, &mut self.notes);
        self.send_notes();
        match outcome {
            Ok(()) => {}
            Err(Objection::Diverged(error)) => self.fail(error),
            Err(Objection::Malformed) => {
                let what = format!("{} bytes are no note", note.len());
                let error = Box::new(CommunicationError::Malformed { from, what });
                self.fail(RunError::Communication { node: self.id(), error });
            }
        }
    }

    fn send_notes(&mut self) {
        let notes = self.notes.drain(..);
        notes.for_each(|Outgoing { to, note }| self.communicator.send_note(to, &note));
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

    fn take_orders(&mut self) -> bool {
        let any = !self.inbox.is_empty();
        while let Some(order) = self.inbox.pop_front() {
            match (self.phase, order) {
                (_, Order::Closed) => self.closed = true,
                (Phase::Running, order) => self.obey(order),
                // Payloads must outlive the publication of the error: whoever
                // waits for one looks for it.
                (Phase::Failing, order) => {
                    self.inbox.push_front(order);
                    return false;
                }
                (Phase::Stopped | Phase::Finished, order) => drop(end(order)),
            }
        }
        any
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Buffer { info, initial } => {
                let contents = initial.as_ref().and_then(|(_, data)| data.contents());
                self.stream.buffer(&info, contents, &mut self.notes);
                self.send_notes();
                self.time_buffer(&info);
                match self.store.add_buffer(info, initial) {
                    Ok(Some((memory, bytes))) => self.record_alloc(memory, bytes),
                    Ok(None) => {}
                    Err(error) => self.fail(error),
                }
            }
            Order::Renamed(info) => {
                self.stream.renamed(&info);
                self.store.rename_buffer(info);
            }
            Order::Dropped(buffer) => self.store.forget_buffer(buffer),
            Order::Task { task, payload, batch } => {
                // One that could not be scheduled is an error, which comes next.
                if let Some(batch) = &batch {
                    self.stream.task(&task, batch.answers, &mut self.notes);
                    self.send_notes();
                    self.stream.compare_contents().unwrap_or_else(|error| self.fail(error));
                }
                if task.work == Work::Horizon {
                    self.credit.know(task.id);
                }
                self.scheduling.begun += 1;
                let payload = payload.map(Kept::new);
                let running = RunningTask { task, payload, incomplete: 1, scheduled: false };
                self.tasks.insert(running.task.id.index(), running);
                if let Some(batch) = batch {
                    self.admit(batch);
                }
            }
            Order::Batch(batch) => self.admit(batch),
            Order::Fail(error) => self.fail(*error),
            Order::Closed => unreachable!("handled in every state"),
        }
    }

    /// Sends pilots and hands instructions to the engine.
    fn admit(&mut self, mut batch: Batch) {
        for pilot in &batch.schedule.pilots {
            let reached = self.credit.announce(pilot);
            self.communicator.send_pilot(pilot, reached);
        }
        for Instruction { id, kind, dependencies } in batch.schedule.instructions.drain(..) {
            let Effects { lane, runs, .. } = kind.effects();
            let mut target = self.lanes.target(lane);
            if let Some(Run { task, .. }) = runs {
                let running = self.tasks.get_mut(task.index());
                let running = running.expect("tasks outlive their instructions");
                running.incomplete += 1;
                if running.task.work == Work::Fence {
                    target = self.lanes.fences();
                }
            }
            let _: Step = self.engine.submit(id, &dependencies, target);
            if let Some(device) = self.lanes.device_of(target) {
                self.starvation.known(device);
            }
            if let Some(profile) = &mut self.profile {
                profile.admitted(id, &dependencies);
            }
            self.open.admit(id, kind, self.now);
        }
        self.scheduling.done = self.scheduling.begun;
        for task in batch.ended.drain(..) {
            self.scheduling.released += 1;
            self.tasks.get_mut(task.index()).expect("it ends once").scheduled = true;
            // The count that was held while instructions could still be added.
            self.task_advanced(task);
        }
        self.progress.hold_horizons(batch.held_horizons);
        self.spent.push(batch);
    }

    /// One instruction of a task has completed; with the last one its payload goes.
    fn task_advanced(&mut self, task: TaskId) {
        let running = self.tasks.get_mut(task.index()).expect("tasks outlive their instructions");
        running.incomplete -= 1;
        if running.incomplete == 0 {
            self.over.extend(self.tasks.remove(task.index()));
        }
    }

    /// Drops what tasks owned that have ended. It is the user's, and may panic: a mistake of
    /// the task, though all of it has run.
    fn give_back(&mut self) {
        let mut over = std::mem::take(&mut self.over);
        for RunningTask { task, payload, .. } in over.drain(..) {
            let Some(payload) = payload else { continue };
            let call = Call::End(task.id);
            if let Some(said) = self.calls.during(call, || end(payload.into_inner())) {
                let (task, node) = (task.to_string(), self.id());
                let message = format!("dropping what it owned: {said}");
                self.fail(RunError::TaskPanicked { task, node, device: None, message });
            }
        }
        self.over = over;
    }

    fn retire(&mut self, instruction: InstructionId) {
        let lane = self.open.retire(instruction);
        if let Some(device) = lane.and_then(|lane| self.lanes.device(lane)) {
            self.starvation.completed(device);
        }
        self.record_retired(instruction);
        let _: Step = self.engine.complete(instruction);
    }

    fn epoch_reached(&mut self, instruction: InstructionId, task: TaskId, action: EpochAction) {
        let closed = self.arbiter.close_before(task);
        self.arbitrated(closed);
        if self.phase != Phase::Running {
            return;
        }
        self.retire(instruction);
        tracing::debug!(node = %self.id(), %task, ?action, "epoch reached");
        if action == EpochAction::Shutdown {
            debug_assert_eq!(self.engine.incomplete(), 0, "the last epoch waits for everything");
            self.phase = Phase::Finished;
            self.warn_of_starvation();
        }
        self.progress.epoch_reached(task);
    }

    /// What the failure of a job means: of a user's, if it is one of a task.
    fn failed(
        &self,
        job: Option<(TaskId, Option<DeviceId>)>,
        instruction: InstructionId,
        failure: JobFailure,
    ) -> RunError {
        let node = self.id();
        let named = job.map(|(task, device)| {
            let running = self.tasks.get(task.index()).expect("tasks outlive their instructions");
            (running.task.to_string(), device)
        });
        match (named, failure) {
            (Some((task, device)), JobFailure::Panicked(message)) => {
                RunError::TaskPanicked { task, node, device, message }
            }
            (Some((task, _)), JobFailure::Returned(error)) => {
                RunError::TaskFailed { task, node, error }
            }
            (None, JobFailure::Panicked(message)) => {
                RunError::Internal { message: format!("{instruction} panicked: {message}") }
            }
            (None, JobFailure::Returned(error)) => {
                RunError::Internal { message: format!("{instruction} failed: {error}") }
            }
        }
    }

    /// Stops issuing, here at once and everywhere soon. The network decides
    /// which of several errors is the first.
    fn fail(&mut self, error: RunError) {
        if self.phase == Phase::Running {
            self.phase = Phase::Failing;
            self.communicator.abort(&error);
            self.own_failure = Some(error);
        }
    }

    /// The run's first error is known: publishes it, then drops what will not
    /// run. What does run keeps its memory until the node is dropped.
    fn stop(&mut self, error: RunError) {
        // What has been on its way through a network may have come back as mere text.
        let own = self.own_failure.take().filter(|own| *own == error);
        let error = own.unwrap_or(error);
        tracing::error!(node = %self.id(), %error, "the run fails");
        self.linger(&error);
        self.phase = Phase::Stopped;
        self.progress.fail(error);
        self.backend.cancel();
        self.open = OpenInstructions::default();
        self.tasks = Window::default();
        self.sends.clear();
        self.in_barrier = None;
    }
}

impl Drop for Executor {
    /// Whoever drops a node in the middle of its run, such as a thread that panics, ends the
    /// run: other processes would wait.
    fn drop(&mut self) {
        if self.phase == Phase::Running {
            let message = format!("{} was dropped in the middle of its run", self.id());
            let dropped = || RunError::Internal { message };
            let error = self.progress.error().unwrap_or_else(dropped);
            self.communicator.abort(&error);
        }
    }
}

/// How many horizons a node may be ahead of those that it sends to: as many as may be
/// outstanding in a program, by default.
const LEAD: u64 = 16;

/// How long looking at the network without rest pays while so many bytes are on their way:
/// what is waited for comes within 200 µs or not soon, later by as much as the bytes take
/// at 4 GB/s. What takes more than a millisecond is not much longer if it ends unnoticed
/// for some ten microseconds.
fn patience(bytes: u64) -> Duration {
    let (least, most) = (Duration::from_micros(200), Duration::from_millis(1));
    (least + Duration::from_nanos(bytes / 4)).min(least + most)
}

/// Peers that have as much to compute as this node are late by as much as that takes, if they
/// are. A node that computes on its own thread, so that nobody else of its process wants the
/// core, looks without rest for so much longer, at most.
const LONGEST_LAG: Duration = Duration::from_millis(10);

/// How long a node waits for what it sends to leave before it computes. A peer that waits
/// for it takes it within some microseconds; one that does not is busy itself.
const TIME_TO_LEAVE: Duration = Duration::from_micros(100);
