//! A whole node on one thread: scheduler and executor as one state machine.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use celerity_cdag::CommandGraphConfig;
use celerity_idag::{InstructionGraph, InstructionGraphConfig, Lookahead};

use crate::backend::Backend;
use crate::communicator::Communicator;
use crate::node::{Executor, Phase};
use crate::observe::Observer;
use crate::polling::{Activity, Attention};
use crate::progress::Progress;
use crate::scheduler::{Scheduler, SchedulerMessage};
use crate::stall::Waiting;
use crate::starvation::Starvation;
use crate::submission::Submission;
use crate::time::Time;
use crate::warning::WarningSink;

/// So many tasks are taken between two looks at completions: at some
/// microseconds per task, a lane that falls idle waits no longer than a short
/// kernel runs.
const SCHEDULE_BATCH: usize = 8;

/// One node of a cluster, as a state machine that somebody else drives.
///
/// A driver, whatever its clock and its threads are,
/// * [submits](Self::submit) the same tasks in the same order to the machines of
///   all nodes, the first being the task graph's start, and ends with a shutdown
///   epoch and [`Submission::Closed`]; after a failure `Closed` alone will do;
/// * [polls](Self::poll) after each submission, after each call of the
///   [waker](crate::Waker) that communicator and backend were made with, and
///   again while the machine is busy. Further polls do no harm;
/// * passes the time, which never goes back: it is what [`waiting`](Self::waiting) and warnings
///   report, part of how closely the machine [asks](Self::attention) to be looked at, and a bound
///   on how long a node that shares its core puts computing off;
/// * looks as closely at the machine as it asks to be, also if nothing wakes: to let what is sent
///   leave before it computes, the machine counts its rounds;
/// * drops the machine when it [is done](Self::is_done). Dropping it earlier
///   waits for what runs.
///
/// What the node has reached is told to its [`Progress`]. Memory is bounded by
/// what has been submitted and not completed.
pub struct NodeMachine {
    inbox: VecDeque<Submission>,
    scheduler: Scheduler,
    /// On their way from the one half to the other.
    orders: Vec<SchedulerMessage>,
    executor: Executor,
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
        let commands =
            CommandGraphConfig { nodes: communicator.nodes(), local: communicator.node() };
        let instructions = InstructionGraph::new(InstructionGraphConfig { devices });
        let scheduler = Scheduler::new(commands, instructions);
        Self::of(scheduler, Executor::new(communicator, backend, progress))
    }

    /// Both halves of a node.
    #[must_use]
    pub fn of(scheduler: Scheduler, executor: Executor) -> Self {
        Self { inbox: VecDeque::new(), scheduler, orders: Vec::new(), executor }
    }

    /// Holds commands back that will allocate; without this call, none are.
    #[must_use]
    pub fn with_lookahead(mut self, lookahead: Lookahead) -> Self {
        self.scheduler.set_lookahead(lookahead);
        self
    }

    /// Shows `observer` everything that is generated, before it runs.
    #[must_use]
    pub fn with_observer(mut self, observer: Box<dyn Observer>) -> Self {
        self.scheduler.observe(observer);
        self
    }

    /// Tells `warnings` what there is to be warned of, instead of standard error.
    #[must_use]
    pub fn with_warnings(mut self, warnings: WarningSink) -> Self {
        self.executor = self.executor.with_warnings(warnings);
        self
    }

    /// Warns when nothing has happened for `period`; see
    /// [`Executor::with_watchdog`].
    #[must_use]
    pub fn with_watchdog(mut self, period: Duration) -> Self {
        self.executor = self.executor.with_watchdog(period);
        self
    }

    /// Queues a submission; it is looked at by [`poll`](Self::poll).
    pub fn submit(&mut self, submission: Submission) {
        self.inbox.push_back(submission);
    }

    /// One round at the time `now`: a bounded number of submissions, what has
    /// completed, what has arrived, and everything that this allows to start.
    /// Never blocks.
    ///
    /// # Panics
    /// If communicator or backend break their contracts in a way that cannot be
    /// reported as an error of the run.
    pub fn poll(&mut self, now: Time) -> Activity {
        // To schedule a task takes microseconds. While something is due from peers, it waits
        // until there is nothing to do for them.
        let is_due = matches!(self.attention(), Attention::Close(_));
        if is_due && self.executor.poll(now) == Activity::Busy {
            return Activity::Busy;
        }
        let taken = self.take_submissions(if is_due { 1 } else { SCHEDULE_BATCH });
        let polls = taken || !is_due;
        let busy = polls && self.executor.poll(now) == Activity::Busy;
        let computed = !taken && !busy && self.executor.compute();
        #[cfg(feature = "mutants")]
        let computed = celerity_mutants::Mutant::ComputingIsIdle.alter(computed, |_| false);
        if taken || busy || computed { Activity::Busy } else { Activity::Idle }
    }

    /// Whether the node has nothing left to do, ever: its user code has ended,
    /// and it has shut down, or has stopped and nothing runs any more.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.inbox.is_empty() && self.executor.is_done()
    }

    /// How closely the node must be looked at while nothing wakes its driver.
    #[must_use]
    pub fn attention(&self) -> Attention {
        self.executor.attention()
    }

    /// How long the node's devices have starved so far.
    #[must_use]
    pub fn starvation(&self) -> Starvation {
        self.executor.starvation()
    }

    /// When the node wants to be polled even if nothing happens, if ever.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.executor.deadline()
    }

    /// Its driver could not look at it from then until then.
    pub(crate) fn excuse(&mut self, from: Time, until: Time) {
        self.executor.excuse(from, until);
    }

    /// How far the node has come.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.executor.phase()
    }

    /// What the node waits for; see [`Executor::waiting`].
    #[must_use]
    pub fn waiting(&self) -> Vec<Waiting> {
        self.executor.waiting()
    }

    /// Schedules so many tasks at most, and returns whether there was a submission.
    fn take_submissions(&mut self, most: usize) -> bool {
        if self.executor.phase() != Phase::Running {
            self.scheduler.stop();
        }
        let any = !self.inbox.is_empty();
        let mut tasks = 0;
        while tasks < most
            && let Some(submission) = self.inbox.pop_front()
        {
            tasks += usize::from(matches!(submission, Submission::Task { .. }));
            while let Some(batch) = self.executor.spent_batch() {
                self.scheduler.recycle(batch);
            }
            self.scheduler.submit(submission, &mut self.orders);
            self.orders.drain(..).for_each(|order| self.executor.order(order));
        }
        any
    }
}
