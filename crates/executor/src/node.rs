//! The second half of a node as a poll-driven state machine: takes instructions
//! and drives them through engine, arbiter, communicator and backend. No thread,
//! no clock, no lock: somebody else polls.
//!
//! ```text
//!              orders                           what user threads wait for
//!                │                                           ▲
//!        ┌───────▼───────────────────────────────────────────┴───┐
//!        │ Executor: what a round does, and in which order       │
//!        └─┬────────┬────────┬─────────┬────────┬────────┬───────┘
//!       Course    Flow     Tasks   Hardware   Peers   Computing        Monitor
//!       errors,   what     what    devices,   the     when on this     watches
//!       the end   may      they    memory     network thread
//!                 start    own
//! ```
//!
//! The parts know nothing of each other. Each owns its state and its decisions; what one of them
//! has to do with another goes through [`Executor`]. [`Situation`] looks at all of them, to report.

use std::collections::VecDeque;
use std::sync::Arc;

use celerity_idag::{InstructionId, Participation};
use celerity_tdag::{BufferId, EpochAction};

use crate::backend::{Backend, Completion};
use crate::communicator::{CommEvent, Communicator};
use crate::contain::{Kept, end};
use crate::error::RunError;
use crate::polling::{Activity, Attention};
use crate::progress::Progress;
use crate::pulse::{UserCall, UserCalls};
use crate::scheduler::{Batch, SchedulerMessage};
use crate::stall::Waiting;
use crate::starvation::Starvation;
use crate::time::Time;

mod computing;
mod configuration;
mod contents;
mod course;
mod credit;
mod dry;
mod flow;
mod hardware;
mod issue;
mod monitor;
mod open;
mod orders;
mod peers;
mod situation;
mod stream;
mod tasks;
mod timing;
mod turns;

pub use course::Phase;

use computing::Computing;
use course::Course;
use flow::Flow;
use hardware::Hardware;
use monitor::{Monitor, Round};
use peers::{Barrier, Heard, Peers};
use situation::Situation;
use tasks::{Over, Tasks};
use turns::Turns;

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
    now: Time,
    course: Course,
    inbox: VecDeque<SchedulerMessage>,
    peers: Peers,
    hardware: Hardware,
    flow: Flow,
    /// Collectives that can begin.
    turns: Turns<(InstructionId, Participation)>,
    /// Those that have ended in a round go at its end, when messages are on their way.
    tasks: Tasks,
    /// Horizons that this round has reached. They are told at its end, too: to wake who
    /// submits may take longer than all else, and may cost this thread its core.
    horizons: u64,
    progress: Arc<Progress>,
    computing: Computing,
    /// Dropped buffers, in order, each with the first instruction that cannot touch it any more. Those before are issued
    /// by what it is called, and how large its elements are.
    leaving: VecDeque<(InstructionId, BufferId)>,
    /// Whether nothing is performed.
    is_dry: bool,
    /// What of the user's this half of the node is in.
    calls: Arc<UserCalls>,
    monitor: Monitor,
    /// Empty between rounds.
    completions: Vec<Completion>,
    /// Batches whose memory can be used again.
    spent: Vec<Batch>,
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
        let (lanes, joins) = (backend.layout(), backend.joins());
        Self {
            now: Time::START,
            course: Course::default(),
            inbox: VecDeque::new(),
            peers: Peers::new(communicator, LEAD),
            hardware: Hardware::new(backend),
            flow: Flow::new(lanes, joins),
            turns: Turns::default(),
            tasks: Tasks::default(),
            horizons: 0,
            progress,
            computing: Computing::default(),
            leaving: VecDeque::new(),
            is_dry: false,
            calls: Arc::default(),
            monitor: Monitor::new(lanes.devices()),
            completions: Vec::new(),
            spent: Vec::new(),
        }
    }

    /// Queues an order; it is looked at by [`poll`](Self::poll).
    pub fn order(&mut self, order: SchedulerMessage) {
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
        self.computing.round_begins(now);
        let completed = self.collect_completions();
        let heard = self.collect_network();
        self.monitor.look(now, self.tasks.lag(self.progress.tasks()));
        // What others may be waiting for goes first: an order is a microsecond's work.
        let mut followed = self.issue_and_follow_up();
        let taken = self.take_orders();
        followed |= taken && self.issue_and_follow_up();
        let spoke = self.course.is_running() && self.peers.send_letters();
        let busy = completed || heard || taken || followed || spoke;
        if !busy && self.course.is_running() {
            self.peers.check_apart(now).unwrap_or_else(|error| self.fail(error));
        }
        self.forget_buffers();
        self.give_back();
        self.tell_horizons();
        self.watch(busy, completed || heard);
        self.monitor.polled(self.flow.incomplete(), self.tasks.held_back());
        self.computing.round_ends(now, busy);
        if busy { Activity::Busy } else { Activity::Idle }
    }

    /// Computes on this thread, if the backend leaves that to the node; called when there is
    /// nothing else to do.
    pub(crate) fn compute(&mut self) -> bool {
        let computes = self.course.is_running()
            && self.computing.may_begin(self.now, self.peers.can_do_without())
            && self.run_kept();
        if computes {
            self.computing.begins(self.now);
        }
        computes
    }

    /// Runs a job that the backend leaves to the node.
    fn run_kept(&mut self) -> bool {
        let next = self.hardware.next_to_compute();
        match next.and_then(|instruction| self.flow.run_by(instruction)) {
            Some((task, _)) => {
                self.calls.during(UserCall::Kernel(task), || self.hardware.compute())
            }
            None => self.hardware.compute(),
        }
    }

    /// Whether the node has nothing left to do, ever: its user code has ended,
    /// and it has shut down, or has stopped and nothing runs any more.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let is_quiet = || self.hardware.is_quiet() && self.peers.are_quiet();
        self.course.is_over(is_quiet) && self.inbox.is_empty()
    }

    /// How closely the node must be looked at while nothing wakes its driver.
    #[must_use]
    pub fn attention(&self) -> Attention {
        self.peers.attention(|| self.progress.waits_for_peers(), self.computing.lag())
    }

    /// When the node wants to be polled even if nothing happens, if ever.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        let lingers = || self.phase() == Phase::Stopped && !self.is_done();
        let apart = self.peers.apart_until().filter(|_| self.course.is_running());
        self.monitor.deadline(self.waits(), lingers).into_iter().chain(apart).min()
    }

    /// Its driver could not look at it from then until then, as another node on the same thread,
    /// or the other half of this one, took so long.
    pub(crate) fn excuse(&mut self, from: Time, until: Time) {
        self.monitor.excuse(from, until);
    }

    /// How far the node has come.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.course.phase()
    }

    /// How long the node's devices have starved so far.
    #[must_use]
    pub fn starvation(&self) -> Starvation {
        self.monitor.starvation()
    }

    /// All instructions that have not completed, in ascending order. An issued
    /// one is where to look first: the others wait for those. Empty once the
    /// node has stopped.
    ///
    /// O(n log n) in the instructions and edges of the window, and allocates:
    /// for reports.
    #[must_use]
    pub fn waiting(&self) -> Vec<Waiting> {
        self.situation().waiting()
    }

    fn situation(&self) -> Situation<'_> {
        let Self { now, flow, turns, tasks, hardware, peers, .. } = self;
        Situation { now: *now, flow, turns, tasks, hardware, peers }
    }

    /// How things are, and who is to take notice of it.
    fn observed(&mut self) -> (Situation<'_>, &mut Monitor) {
        let Self { now, flow, turns, tasks, hardware, peers, monitor, .. } = self;
        (Situation { now: *now, flow, turns, tasks, hardware, peers }, monitor)
    }

    fn collect_completions(&mut self) -> bool {
        let mut completions = std::mem::take(&mut self.completions);
        self.hardware.poll(&mut completions);
        let any = !completions.is_empty();
        if any && self.course.is_running() {
            // What functions have said goes before what follows from their end: a barrier would let
            // others end the run before they have heard that nobody answers.
            self.peers.send_letters();
        }
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
        if !self.course.is_running() {
            return;
        }
        let Completion { instruction, failure, span } = completion;
        let job = self.flow.run_by(instruction);
        self.monitor.ran(instruction, span);
        if let Some(failure) = failure {
            self.monitor.retired(instruction, None);
            return self.fail(self.situation().failed(job, instruction, failure));
        }
        if let Some((task, device)) = job {
            if device.is_some() {
                self.monitor.kernel_ran(instruction, || self.tasks.name(task), span);
            }
            self.tasks.instruction_completed(task);
        }
        self.retire(instruction);
    }

    fn collect_network(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.peers.poll() {
            any = true;
            match (self.phase(), event) {
                (Phase::Running | Phase::Failing, CommEvent::Aborted(error)) => self.stop(error),
                (Phase::Running, event) => self.network_event(event),
                _ => {}
            }
        }
        any
    }

    fn network_event(&mut self, event: CommEvent) {
        if let CommEvent::Received { from, message } = event {
            self.monitor.arrived(from, message);
        }
        match self.peers.hear(event, self.now) {
            Ok(Heard::Nothing) => {}
            Ok(Heard::Sent(over) | Heard::Exchanged(over)) => self.retire(over),
            Ok(Heard::Transfers) => self.go_on_receiving(Ok(())),
            Ok(Heard::Reached(barrier)) => self.epoch_reached(barrier),
            Err(error) => self.fail(error),
        }
    }

    fn retire(&mut self, instruction: InstructionId) {
        let device = self.flow.retire(instruction);
        self.monitor.retired(instruction, device);
    }

    /// All nodes have come to an epoch.
    fn epoch_reached(&mut self, Barrier { instruction, task, action }: Barrier) {
        let closed = self.peers.close_before(task);
        self.go_on_receiving(closed);
        if !self.course.is_running() {
            return;
        }
        self.retire(instruction);
        let node = self.peers.local();
        tracing::debug!(%node, %task, ?action, "epoch reached");
        if action == EpochAction::Shutdown {
            debug_assert_eq!(self.flow.incomplete(), 0, "the last epoch waits for everything");
            self.course.finish();
            self.peers.end();
            // Devices that do nothing cannot starve.
            if !self.is_dry {
                self.monitor.finishes(node, self.now);
            }
        }
        self.progress.epoch_reached(task);
    }

    /// Drops what tasks owned that have ended. It is the user's, and may panic: a mistake of
    /// the task, though all of it has run.
    fn give_back(&mut self) {
        while let Some(Over { task, payload }) = self.tasks.next_over() {
            if self.course.is_running() {
                self.peers.conversation_over(&task).unwrap_or_else(|error| self.fail(error));
            }
            let Some(payload) = payload.map(Kept::into_inner) else { continue };
            if let Some(said) = self.calls.during(UserCall::End(task.id), || end(payload)) {
                let (task, node) = (task.to_string(), self.peers.local());
                let message = format!("dropping what it owned: {said}");
                self.fail(RunError::TaskPanicked { task, node, device: None, message });
            }
        }
    }

    /// Tells the program, and peers that have to know, how far this node is.
    fn tell_horizons(&mut self) {
        let more = std::mem::take(&mut self.horizons);
        let limit = self.peers.reach(more);
        self.progress.horizons_reached(more, limit);
    }

    /// Whether there is something that has to happen.
    fn waits(&self) -> bool {
        self.course.is_running() && !(self.flow.incomplete() == 0 && self.tasks.is_empty())
    }

    /// Takes notice of what a round did: whether anything, and whether it found
    /// something that must have woken the node.
    fn watch(&mut self, busy: bool, found: bool) {
        if self.phase() != Phase::Stopped {
            let round = Round { busy, found, waits: self.waits() };
            let (situation, monitor) = self.observed();
            return monitor.round_ends(round, situation);
        }
        if !self.is_done() {
            let others = match (self.course.is_closed(), self.progress.has_program_ended()) {
                (true, _) => None,
                (false, true) => Some("its scheduler"),
                (false, false) => Some("its program, which has not returned"),
            };
            let (situation, monitor) = self.observed();
            monitor.lingers(situation, others);
        }
    }

    /// Stops issuing, here at once and everywhere soon.
    fn fail(&mut self, error: RunError) {
        if let Some(error) = self.course.fail(error) {
            self.peers.abort(error);
        }
    }

    /// The run's first error is known: publishes it, then drops what will not
    /// run. What does run keeps its memory until the node is dropped.
    fn stop(&mut self, error: RunError) {
        let error = self.course.stop(error);
        tracing::error!(node = %self.peers.local(), %error, "the run fails");
        let (situation, monitor) = self.observed();
        monitor.stops(&error, situation);
        self.progress.fail(error);
        self.hardware.cancel();
        self.flow.forget();
        self.turns.clear();
        self.tasks.forget();
        self.peers.forget();
    }
}

impl Drop for Executor {
    /// Whoever drops a node in the middle of its run, such as a thread that panics, ends the
    /// run: other processes would wait. So would its own threads.
    fn drop(&mut self) {
        if self.course.is_running() {
            let message = format!("{} was dropped in the middle of its run", self.peers.local());
            let dropped = || RunError::Internal { message };
            let error = self.progress.error().unwrap_or_else(dropped);
            self.peers.abort(&error);
        }
    }
}

/// How many horizons a node may be ahead of those that it sends to: as many as may be
/// outstanding in a program, by default.
const LEAD: u64 = 16;
