//! The threads of a run. Nodes that share a process share one thread; a node
//! that has a process of its own has two, so that scheduling holds up neither
//! its devices nor its network, unless they would share a core.

use std::sync::{Arc, Mutex};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Instant;

use celerity_cdag::NodeId;
use crossbeam_channel::{Receiver, Sender, bounded};

use crate::contain::{caught, end};
use crate::error::RunError;
use crate::machine::NodeMachine;
use crate::node::Executor;
use crate::pinning::Cores;
use crate::polling::{Activity, Attention};
use crate::pool::CpuPool;
use crate::progress::Progress;
use crate::reactor::{Feeder, Machine, Reactor};
use crate::scheduler::{Batch, Scheduler, SchedulerMessage};
use crate::submission::Submission;
use crate::sync::lock;
use crate::threads::{STACK, mark_for_engine, no_threads};
use crate::time::Time;

/// Batches that may be on their way back at a time; more are dropped.
const SPENT_BATCHES: usize = 64;

/// What threads of the engine have in common.
pub(super) struct Setting<'scope, 'env> {
    pub(super) scope: &'scope Scope<'scope, 'env>,
    /// What each of them is dealt.
    pub(super) cores: Cores,
    /// Whether the first of them runs jobs, too, and more than the shortest.
    pub(super) computes: bool,
    /// When the run has started.
    pub(super) since: Instant,
    /// Who is to blame if there are no threads, where there are other processes.
    pub(super) blamed: Option<NodeId>,
}

/// Names who could not start, if that is what the error is about.
fn blame(error: RunError, node: Option<NodeId>) -> RunError {
    match (&error, node) {
        (RunError::Start { .. }, Some(node)) => error.of_start_on(node),
        _ => error,
    }
}

/// Starts a thread, the `nth` of the engine, that polls `machines`. If it panics, or if there
/// is none, all nodes fail.
pub(super) fn start<'scope, M>(
    setting: &Setting<'scope, '_>,
    (nth, name): (usize, &'static str),
    reactor: Reactor<M::Input>,
    machines: Vec<M>,
    progress: Vec<Arc<Progress>>,
) -> Result<ScopedJoinHandle<'scope, ()>, RunError>
where
    M: Machine + Send + 'scope,
    M::Input: 'static,
{
    let (cores, since, blamed) = (setting.cores.clone(), setting.since, setting.blamed);
    let computes = setting.computes && nth == 0;
    // They stay here until there is a thread, so that they can be told if there is none.
    let machines = Arc::new(Mutex::new(Some(machines)));
    let (kept, told) = (machines.clone(), progress.clone());
    let react = move || {
        mark_for_engine();
        let mut machines = lock(&machines).take().expect("handed over to one thread");
        let count = machines.len();
        let outcome = caught(|| -> Result<(), RunError> {
            let mut run = || {
                cores.pin_engine(nth)?;
                // The thread may be another one by now, of a pool.
                mark_for_engine();
                reactor.run(&mut machines, since);
                Ok(())
            };
            if computes { CpuPool::of_one_thread(name)?.install(run) } else { run() }
        });
        reactor.pulse().rest();
        let outcome = outcome.unwrap_or_else(|message| Err(RunError::Internal { message }));
        let failed = outcome.is_err();
        if let Err(error) = outcome {
            fail(&progress, &blame(error, blamed));
        }
        // Only now, as whoever waits for a payload looks for the error, and so do the
        // machines themselves, which tell other processes.
        drop(end(machines));
        if failed {
            reactor.discard_until_closed::<M>(count);
        }
    };
    // Short kernels run here, too.
    let thread = thread::Builder::new().name(name.to_owned()).stack_size(STACK);
    thread.spawn_scoped(setting.scope, react).map_err(|error| {
        let error = blame(no_threads(&error.to_string()), blamed);
        fail(&told, &error);
        drop(kept);
        error
    })
}

fn fail(progress: &[Arc<Progress>], error: &RunError) {
    progress.iter().for_each(|progress| progress.fail(error.clone()));
}

/// The first half of a node on a thread of its own.
pub(super) struct SchedulerStage {
    scheduler: Scheduler,
    orders: Vec<SchedulerMessage>,
    executor: Feeder<SchedulerMessage>,
    spent: Receiver<Batch>,
    progress: Arc<Progress>,
    closed: bool,
}

/// The second half.
pub(super) struct ExecutorStage {
    executor: Executor,
    spent: Sender<Batch>,
}

/// Both halves of a node, joined by queues.
pub(super) fn stages(
    scheduler: Scheduler,
    executor: Executor,
    feeder: Feeder<SchedulerMessage>,
    progress: Arc<Progress>,
) -> (SchedulerStage, ExecutorStage) {
    let (give_back, spent) = bounded(SPENT_BATCHES);
    let first = SchedulerStage {
        scheduler,
        orders: Vec::new(),
        executor: feeder,
        spent,
        progress,
        closed: false,
    };
    (first, ExecutorStage { executor, spent: give_back })
}

impl Machine for SchedulerStage {
    type Input = Submission;

    fn is_last(input: &Submission) -> bool {
        matches!(input, Submission::Closed)
    }

    fn feed(&mut self, input: Submission) {
        self.closed |= Self::is_last(&input);
        if self.progress.has_failed() {
            self.scheduler.stop();
        }
        self.spent.try_iter().for_each(|batch| self.scheduler.recycle(batch));
        self.scheduler.submit(input, &mut self.orders);
        self.orders.drain(..).for_each(|order| self.executor.feed(order));
    }

    /// Everything is done as it comes.
    fn poll(&mut self, _: Time) -> Activity {
        Activity::Idle
    }

    fn is_done(&self) -> bool {
        self.closed
    }
}

impl Drop for SchedulerStage {
    /// Also if the scheduler has panicked, which must not leave the executor
    /// waiting.
    fn drop(&mut self) {
        if !self.closed {
            let stopped = || RunError::Internal { message: "the scheduler has stopped".to_owned() };
            let error = self.progress.error().unwrap_or_else(stopped);
            self.executor.feed(SchedulerMessage::Fail(Box::new(error)));
            self.executor.feed(SchedulerMessage::Closed);
        }
    }
}

impl Machine for ExecutorStage {
    type Input = SchedulerMessage;

    fn is_last(input: &SchedulerMessage) -> bool {
        matches!(input, SchedulerMessage::Closed)
    }

    fn feed(&mut self, input: SchedulerMessage) {
        self.executor.order(input);
    }

    fn poll(&mut self, now: Time) -> Activity {
        let activity = self.executor.poll(now);
        while let Some(batch) = self.executor.spent_batch() {
            drop(self.spent.try_send(batch));
        }
        activity
    }

    fn is_done(&self) -> bool {
        self.executor.is_done()
    }

    fn attention(&self) -> Attention {
        self.executor.attention()
    }

    fn deadline(&self) -> Option<Time> {
        self.executor.deadline()
    }

    fn excuse(&mut self, from: Time, until: Time) {
        self.executor.excuse(from, until);
    }
}

impl Machine for NodeMachine {
    type Input = Submission;

    fn is_last(input: &Submission) -> bool {
        matches!(input, Submission::Closed)
    }

    fn feed(&mut self, input: Submission) {
        self.submit(input);
    }

    fn poll(&mut self, now: Time) -> Activity {
        Self::poll(self, now)
    }

    fn is_done(&self) -> bool {
        Self::is_done(self)
    }

    fn attention(&self) -> Attention {
        Self::attention(self)
    }

    fn deadline(&self) -> Option<Time> {
        Self::deadline(self)
    }

    fn excuse(&mut self, from: Time, until: Time) {
        Self::excuse(self, from, until);
    }
}
