//! One lane: a queue whose jobs run one after another, in turns on the shared
//! pool or on a thread of the lane's own. Knows nothing of other lanes.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use super::reports::Outbox;
use crate::backend::Job;
use crate::copy::copy_elements_spread;
use crate::error::panic_message;
use crate::pool::CpuPool;
use crate::sync::{lock, wait_while};
use crate::threads;

/// After so many jobs a lane on the pool takes another turn, so that one with
/// many short jobs does not keep a thread from the others.
const BURST: usize = 16;

/// Copies of at most so many bytes are made by whoever puts them on an idle lane: to wake
/// another thread for them takes longer.
const SHORT: u64 = 16 << 10;

/// Where a lane's jobs run.
pub(super) enum Place {
    /// On the pool that all lanes share, while there are jobs.
    Pool(Arc<CpuPool>),
    /// On a thread that starts with the first job and sleeps between jobs: for
    /// jobs that may block, which would starve the others on a shared thread.
    OwnThread,
}

pub(super) struct Lane {
    place: Place,
    state: Mutex<LaneState>,
    /// The lane has become busy or quiet, or has been halted.
    changed: Condvar,
    outbox: Arc<Outbox>,
}

#[derive(Default)]
struct LaneState {
    queue: VecDeque<Job>,
    /// Whether somebody is at the queue, or will be as soon as there is a turn.
    running: bool,
    /// Whether nothing may start any more.
    halted: bool,
    /// Of a lane with a thread of its own, once it has started.
    thread: Option<JoinHandle<()>>,
}

impl Lane {
    pub(super) fn new(place: Place, outbox: Arc<Outbox>) -> Self {
        Self { place, state: Mutex::default(), changed: Condvar::new(), outbox }
    }

    /// Appends a job. One caller at a time.
    pub(super) fn push(self: &Arc<Self>, job: Job) {
        let mut state = lock(&self.state);
        if is_short(&job) && !state.running && !state.halted {
            state.running = true;
            drop(state);
            return self.run_here(job);
        }
        state.queue.push_back(job);
        if state.running || state.halted {
            return;
        }
        state.running = true;
        drop(state);
        match &self.place {
            Place::Pool(pool) => self.take_turn(pool),
            Place::OwnThread => self.wake_thread(),
        }
    }

    /// Runs a job on an idle lane that has been marked as running.
    fn run_here(&self, job: Job) {
        self.report(|| run(job));
        let next = self.take_next();
        debug_assert!(next.is_none(), "who pushes is here");
    }

    /// Stops after the running job; returns what has not started, to be
    /// dropped without the lane's lock.
    pub(super) fn halt(&self) -> VecDeque<Job> {
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
        match threads::start("celerity-host".to_owned(), move || lane.run_until_halted()) {
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
        self.report(|| run(job));
        true
    }

    /// Lets the next job fail without running it.
    fn fail_next(&self, reason: String) {
        if let Some(job) = self.take_next() {
            drop(job);
            self.report(|| Some(reason));
            let _: Option<Job> = self.take_next();
        }
    }

    fn report(&self, job: impl FnOnce() -> Option<String>) {
        let halting = || {
            let panic = job();
            if panic.is_some() {
                lock(&self.state).halted = true;
            }
            panic
        };
        self.outbox.report(halting);
    }

    /// The next job; without one the lane goes quiet.
    fn take_next(&self) -> Option<Job> {
        let mut state = lock(&self.state);
        if !state.halted
            && let Some(next) = state.queue.pop_front()
        {
            return Some(next);
        }
        state.running = false;
        let halted = state.halted;
        drop(state);
        self.changed.notify_all();
        if halted {
            self.outbox.bell().wake();
        }
        None
    }
}

fn is_short(job: &Job) -> bool {
    match job {
        Job::Copy { elements, elem_size, .. } => {
            elements.volume().saturating_mul(*elem_size) <= SHORT
        }
        Job::Kernel { .. } | Job::Host { .. } => false,
    }
}

/// Runs a job, drops it, and returns what it said if any of that panicked.
fn run(job: Job) -> Option<String> {
    // A job that panicked is never run again and the run stops, so nobody sees
    // what it left behind.
    let outcome = catch_unwind(AssertUnwindSafe(|| match job {
        Job::Kernel { kernel, chunk, arguments } => kernel.run(&chunk, &arguments.bind()),
        Job::Host { function, arguments } => function(&arguments.bind()),
        Job::Copy { source, target, elements, elem_size } => {
            // SAFETY: `Backend::enqueue` promises live memory without races for
            // as long as the job has not been reported.
            unsafe { copy_elements_spread(source, target, &elements, elem_size) }
        }
    }));
    outcome.err().map(|payload| panic_message(&*payload))
}

#[cfg(test)]
mod tests {
    use celerity_idag::InstructionId;

    use super::super::reports::{Bell, Inbox};
    use super::*;
    use crate::backend::{Arguments, Completion};
    use crate::work::HostFunction;

    #[test]
    fn a_lane_without_a_thread_fails_its_next_job() {
        let outbox = Outbox::new(0, Bell::new(1, Arc::new(|| {})));
        let (mut inbox, lane) = (Inbox::new(outbox.clone()), Lane::new(Place::OwnThread, outbox));
        let arguments = Arguments::new(Box::default(), |_| None);
        let function: HostFunction = Box::new(|_| panic!("must not run"));
        let instruction = InstructionId::from_index(3);
        inbox.expect(instruction);
        // As `push` leaves it when it goes for a thread.
        let mut state = lock(&lane.state);
        state.queue.push_back(Job::Host { function, arguments });
        state.running = true;
        drop(state);
        lane.fail_next("no threads".to_owned());
        let mut reported = Vec::new();
        inbox.collect(&mut reported);
        let panic = Some("no threads".to_owned());
        assert_eq!(reported, [Completion { instruction, panic, span: None }]);
        assert!(lane.is_quiet());
    }
}
