//! One lane: a queue whose jobs run one after another, in turns on the shared
//! pool or on a thread of the lane's own. Knows nothing of other lanes.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use super::pace::{Length, Pace};
use super::reports::{HOST_THREAD, Outbox};
use crate::backend::{Arguments, Job, JobFailure};
use crate::contain::Kept;
use crate::copy::copy_region;
use crate::error::TaskError;
use crate::pool::CpuPool;
use crate::sync::{lock, wait_while};
use crate::threads;

/// After so many jobs a lane on the pool takes another turn, so that one with
/// many short jobs does not keep a thread from the others.
const BURST: usize = 16;

/// Copies of at most so many bytes are made by whoever puts them on an idle lane, as short
/// kernels are run: to wake another thread for them takes longer.
const SHORT: u64 = 16 << 10;

/// Where a lane's jobs run.
pub(super) enum Runner {
    /// On the pool that all lanes share, while there are jobs.
    Pool(Arc<CpuPool>),
    /// On a thread that starts with the first job and sleeps between jobs: for
    /// jobs that may block, which would starve the others on a shared thread.
    OwnThread,
}

/// A job on a lane.
pub(super) struct Queued {
    pub(super) job: Kept<Job>,
    /// Of a kernel, or a host function that never blocks, that runs on one thread.
    pub(super) pace: Option<Arc<Pace>>,
}

pub(super) struct Lane {
    place: Runner,
    state: Mutex<LaneState>,
    /// A lane with a thread of its own has become busy; a lane has been halted, or has
    /// become quiet after that.
    changed: Condvar,
    outbox: Arc<Outbox>,
}

/// What has become of a job.
#[must_use = "the lane waits for whoever was given a job back"]
pub(super) enum Pushed {
    /// The lane has it.
    Taken,
    /// It has run. What is left of it is to be given back when nobody waits for what it has
    /// done.
    Ran(Option<Arguments>),
    /// Who has pushed it shall [run](Lane::run_kept) it, when there is time.
    Kept(Queued),
}

#[derive(Default)]
struct LaneState {
    queue: VecDeque<Queued>,
    /// Whether somebody is at the queue, or will be as soon as there is a turn.
    running: bool,
    /// Whether nothing may start any more.
    halted: bool,
    /// Of a lane with a thread of its own, once it has started.
    thread: Option<JoinHandle<()>>,
}

impl Lane {
    pub(super) fn new(place: Runner, outbox: Arc<Outbox>) -> Self {
        Self { place, state: Mutex::default(), changed: Condvar::new(), outbox }
    }

    /// Appends a job. One caller at a time. If that one `computes`, it may have to
    /// [run](Self::run_kept) the job itself.
    pub(super) fn push(self: &Arc<Self>, job: Queued, computes: bool) -> Pushed {
        let mut state = lock(&self.state);
        if state.running || state.halted {
            state.queue.push_back(job);
            return Pushed::Taken;
        }
        state.running = true;
        // Not beside a thread of the lane's own, here and below: one that has just gone quiet would see the mark,
        // find no job, and take the mark away.
        let is_shared = matches!(self.place, Runner::Pool(_));
        if is_shared && job.is_short() {
            drop(state);
            return Pushed::Ran(self.run_here(job));
        }
        if is_shared && computes && job.is_brief() {
            return Pushed::Kept(job);
        }
        state.queue.push_front(job);
        drop(state);
        self.start();
        Pushed::Taken
    }

    /// Runs a job that was given back, and returns the next one for the same thread.
    #[must_use = "the lane waits for whoever got a job back"]
    pub(super) fn run_kept(self: &Arc<Self>, job: Queued) -> Option<Queued> {
        self.outbox.report_quietly(self.halting(|| self.while_marked(|| job.run())));
        let next = self.take_next()?;
        if next.is_brief() {
            return Some(next);
        }
        lock(&self.state).queue.push_front(next);
        self.start();
        None
    }

    /// Drops a job that was given back, of a lane that has been halted.
    pub(super) fn drop_kept(&self, job: Queued) {
        drop(job);
        let next = self.take_next();
        debug_assert!(next.is_none(), "it is halted");
    }

    /// Lets the jobs of a lane, which has been marked as running, run elsewhere.
    fn start(self: &Arc<Self>) {
        match &self.place {
            Runner::Pool(pool) => self.take_turn(pool),
            Runner::OwnThread => self.wake_thread(),
        }
    }

    /// Runs a job on an idle lane that has been marked as running, and returns what is left of it.
    /// Whoever pushes looks for what has completed, and need not be woken.
    fn run_here(&self, job: Queued) -> Option<Arguments> {
        if let Job::Host { .. } = *job.job {
            self.report_here(|| job.run());
            return None;
        }
        self.report_here(|| job.run_short());
        job.spent()
    }

    /// Does `work`, which is a job of the lane, on a thread that otherwise runs none.
    fn while_marked<R>(&self, work: impl FnOnce() -> R) -> R {
        match self.place {
            Runner::Pool(_) => threads::while_in_kernel(work),
            Runner::OwnThread => threads::while_in_host_task(work),
        }
    }

    fn report_here(&self, job: impl FnOnce() -> Option<JobFailure>) {
        self.outbox.report_quietly(self.halting(|| self.while_marked(job)));
        let next = self.take_next();
        debug_assert!(next.is_none(), "who pushes is here");
    }

    /// Stops after the running job; returns what has not started, to be
    /// dropped without the lane's lock.
    pub(super) fn halt(&self) -> VecDeque<Queued> {
        let mut state = lock(&self.state);
        state.halted = true;
        self.changed.notify_all();
        std::mem::take(&mut state.queue)
    }

    pub(super) fn is_quiet(&self) -> bool {
        !lock(&self.state).running
    }

    /// Waits for the running job of a halted lane, and for its thread to end.
    pub(super) fn wait_until_quiet(&self) {
        let mut state = wait_while(&self.changed, lock(&self.state), |state| state.running);
        let thread = state.thread.take();
        drop(state);
        if let Some(thread) = thread {
            // It catches what jobs panic with, and has nothing else to say.
            drop(thread.join());
        }
    }

    fn take_turn(self: &Arc<Self>, pool: &Arc<CpuPool>) {
        let (lane, again) = (self.clone(), pool.clone());
        pool.take_turn(move || {
            if (0..BURST).all(|_| lane.run_next()) {
                lane.take_turn(&again);
            }
        });
    }

    fn wake_thread(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        if state.thread.is_some() {
            return self.changed.notify_all();
        }
        let lane = self.clone();
        match threads::start(HOST_THREAD.to_owned(), move || lane.run_until_halted()) {
            Ok(thread) => state.thread = Some(thread),
            Err(error) => {
                drop(state);
                self.fail_next(error.to_string());
            }
        }
    }

    /// What a thread of the lane's own does.
    fn run_until_halted(&self) {
        let mut halted = false;
        while !halted {
            while self.run_next() {}
            let idle = |state: &mut LaneState| !state.running && !state.halted;
            let state = wait_while(&self.changed, lock(&self.state), idle);
            halted = !state.running;
        }
    }

    /// Runs the next job, if there is one.
    fn run_next(&self) -> bool {
        let Some(job) = self.take_next() else { return false };
        self.report(|| job.run());
        true
    }

    /// Lets the next job fail without running it.
    fn fail_next(&self, reason: String) {
        if let Some(job) = self.take_next() {
            drop(job);
            self.report(|| Some(JobFailure::Panicked(reason)));
            let _: Option<Queued> = self.take_next();
        }
    }

    fn report(&self, job: impl FnOnce() -> Option<JobFailure>) {
        self.outbox.report(self.halting(job));
    }

    /// The job, which halts the lane if it fails.
    fn halting(
        &self,
        job: impl FnOnce() -> Option<JobFailure>,
    ) -> impl FnOnce() -> Option<JobFailure> {
        || {
            let failure = job();
            if failure.is_some() {
                lock(&self.state).halted = true;
            }
            failure
        }
    }

    /// The next job; without one the lane goes quiet.
    fn take_next(&self) -> Option<Queued> {
        let mut state = lock(&self.state);
        if !state.halted
            && let Some(next) = state.queue.pop_front()
        {
            return Some(next);
        }
        state.running = false;
        let halted = state.halted;
        drop(state);
        // Nobody waits for a lane to go quiet that has not been halted; to notify is a call
        // of the system all the same.
        if halted {
            self.changed.notify_all();
            self.outbox.bell().wake();
        }
        None
    }
}

impl Queued {
    fn is_short(&self) -> bool {
        match &*self.job {
            Job::Copy { region, elem_size, .. } => {
                region.volume().saturating_mul(*elem_size) <= SHORT
            }
            Job::Kernel { .. } | Job::Host { .. } => self.length() == Length::Short,
        }
    }

    fn is_brief(&self) -> bool {
        self.length() != Length::Any
    }

    fn length(&self) -> Length {
        self.pace.as_ref().map_or(Length::Any, |pace| pace.length())
    }

    /// Runs the job, drops it, and returns how any of that failed, if it did.
    fn run(self) -> Option<JobFailure> {
        let Self { job, pace } = self;
        JobFailure::of(|| match job.into_inner() {
            Job::Host { function, arguments } => {
                // SAFETY: `Backend::enqueue` promises live memory without races for as long as the
                // job has not been reported, and the task's own function for its accesses.
                let call = || unsafe { function.call(&arguments.bind()) };
                match pace {
                    Some(pace) => pace.timed(call),
                    None => call(),
                }
            }
            other => run_in_place(&other, pace.as_deref()),
        })
    }

    /// The same for a kernel or copy that [is short](Self::is_short), which stays.
    fn run_short(&self) -> Option<JobFailure> {
        JobFailure::of(|| run_in_place(&self.job, self.pace.as_deref()))
    }

    /// Drops a job that has run, but for what takes time. Its kernel is its task's as well, and
    /// ends with that.
    fn spent(self) -> Option<Arguments> {
        match self.job.into_inner() {
            Job::Kernel { arguments, .. } | Job::Host { arguments, .. } => Some(arguments),
            Job::Copy { .. } => None,
        }
    }
}

fn run_in_place(job: &Job, pace: Option<&Pace>) -> Result<(), TaskError> {
    match job {
        Job::Kernel { kernel, chunk, arguments } => {
            // SAFETY: `Backend::enqueue` promises live memory without races for as long as the
            // job has not been reported, and the task's own kernel for its accesses.
            let run = || unsafe { kernel.try_run(chunk, &arguments.bind()) };
            pace.map_or_else(run, |pace| pace.timed(run))
        }
        Job::Copy { source, target, region, elem_size } => {
            // SAFETY: `Backend::enqueue` promises live memory without races for
            // as long as the job has not been reported.
            unsafe { copy_region(*source, *target, region, *elem_size) }
            Ok(())
        }
        Job::Host { .. } => unreachable!("a function that runs once is not run in place"),
    }
}

#[cfg(test)]
mod tests {
    use celerity_idag::InstructionId;

    use std::sync::mpsc::{Sender, channel};
    use std::thread::ThreadId;

    use celerity_regions::Box3;

    use super::super::pace::{Paces, TRIALS};
    use super::super::reports::{Bell, Inbox};
    use super::*;
    use crate::backend::{Arguments, Completion};
    use crate::bound::BoundMemory;
    use crate::polling::SHORT_KERNEL;
    use crate::work::{DeviceKernel, HostFunction};

    /// Tells which thread runs it, and whether that may start a run.
    struct Tell(Sender<(ThreadId, bool)>);
    impl DeviceKernel for Tell {
        unsafe fn run(&self, _: &Box3, _: &[BoundMemory<'_>]) {
            let may_run = threads::refuse_runs().is_ok();
            self.0.send((std::thread::current().id(), may_run)).unwrap();
        }
    }

    #[test]
    fn kernels_that_have_been_short_run_on_the_thread_that_pushes_them() {
        let pool = CpuPool::new(1).unwrap();
        let outbox = Outbox::new(0, Bell::new(1, Arc::new(|| {})));
        let lane = Arc::new(Lane::new(Runner::Pool(pool), outbox));
        let (sender, runs) = channel();
        let push = |pace: &Arc<Pace>| {
            let arguments = Arguments::new(Box::default(), |_| None);
            let kernel = Arc::new(Tell(sender.clone()));
            let job = Job::Kernel { kernel, chunk: Box3::from_range([1]), arguments };
            let pushed = lane.push(Queued { job: Kept::new(job), pace: Some(pace.clone()) }, false);
            assert!(!matches!(pushed, Pushed::Kept(_)), "who pushes does not compute");
            let seen = runs.recv().unwrap();
            while !lane.is_quiet() {
                std::thread::yield_now();
            }
            seen
        };
        let here = std::thread::current().id();
        let pace = Arc::new(Pace::default());
        let (thread, may_run) = push(&pace);
        assert!(thread != here && !may_run, "nothing is known of it");
        let pace = Arc::new(Pace::default());
        (0..TRIALS).for_each(|_| pace.took(SHORT_KERNEL));
        assert_eq!(push(&pace), (here, false), "a job, though on a thread of no pool");
        assert_eq!(threads::refuse_runs(), Ok(()));
    }

    #[test]
    fn host_functions_that_never_block_run_on_the_thread_that_pushes_them_once_they_are_short() {
        let outbox = Outbox::new(0, Bell::new(1, Arc::new(|| {})));
        let mut inbox = Inbox::new(outbox.clone());
        let lane = Arc::new(Lane::new(Runner::Pool(CpuPool::new(1).unwrap()), outbox));
        let (mut paces, (sender, runs)) = (Paces::default(), channel());
        let mut push = |steps: u64, fails: bool| {
            let sender = sender.clone();
            let function = HostFunction::computing(steps, move |_| {
                sender.send(std::thread::current().id()).unwrap();
                assert!(!fails, "no result");
                Ok(())
            });
            let arguments = Arguments::new(Box::default(), |_| None);
            let job = Job::Host { function, arguments };
            let pace = paces.of(&job);
            inbox.expect(InstructionId::from_index(0));
            // How long they really take is chance.
            let known = pace.clone().expect("it never blocks");
            let pushed = lane.push(Queued { job: Kept::new(job), pace }, false);
            assert!(!matches!(pushed, Pushed::Kept(_)), "who pushes does not compute");
            let thread = runs.recv().unwrap();
            while !lane.is_quiet() {
                std::thread::yield_now();
            }
            (0..TRIALS).for_each(|_| known.took(SHORT_KERNEL));
            thread
        };
        let here = std::thread::current().id();
        assert_ne!(push(100, false), here, "nothing is known of it");
        assert_eq!(push(101, false), here);
        assert_ne!(push(1000, false), here, "more steps");
        assert_eq!(push(100, true), here);
        let mut reported = Vec::new();
        inbox.collect(&mut reported);
        let failures: Vec<_> = reported.iter().map(|one| one.failure.is_some()).collect();
        assert_eq!(failures, [false, false, false, true]);
    }

    #[test]
    fn a_lane_without_a_thread_fails_its_next_job() {
        let outbox = Outbox::new(0, Bell::new(1, Arc::new(|| {})));
        let (mut inbox, lane) = (Inbox::new(outbox.clone()), Lane::new(Runner::OwnThread, outbox));
        let arguments = Arguments::new(Box::default(), |_| None);
        let function = HostFunction::new(|_| panic!("must not run"));
        let instruction = InstructionId::from_index(3);
        inbox.expect(instruction);
        // As `push` leaves it when it goes for a thread.
        let mut state = lock(&lane.state);
        let job = Job::Host { function, arguments };
        state.queue.push_back(Queued { job: Kept::new(job), pace: None });
        state.running = true;
        drop(state);
        lane.fail_next("no threads".to_owned());
        let mut reported = Vec::new();
        inbox.collect(&mut reported);
        let failure = Some(JobFailure::Panicked("no threads".to_owned()));
        assert_eq!(reported, [Completion { instruction, failure, span: None }]);
        assert!(lane.is_quiet());
    }
}
