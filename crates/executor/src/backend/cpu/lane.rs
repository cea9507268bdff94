//! One lane: a queue whose jobs run one after another on a shared pool. A lane
//! has no thread; while it has jobs, it takes turns on the pool.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex};

use celerity_idag::InstructionId;

use super::Reports;
use crate::backend::{Completion, Job};
use crate::copy::copy_elements_spread;
use crate::error::panic_message;
use crate::pool::CpuPool;
use crate::sync::{lock, wait_while};

/// After so many jobs a lane takes another turn, so that one with many short
/// jobs does not keep a thread from the others.
const BURST: usize = 16;

pub(super) struct Lane {
    state: Mutex<LaneState>,
    became_quiet: Condvar,
    pool: Arc<CpuPool>,
    reports: Arc<Reports>,
}

#[derive(Default)]
struct LaneState {
    queue: VecDeque<(InstructionId, Job)>,
    /// Whether the lane has a turn, or has asked for one.
    running: bool,
    /// Whether nothing may start any more.
    halted: bool,
}

impl Lane {
    pub(super) fn new(pool: Arc<CpuPool>, reports: Arc<Reports>) -> Self {
        Self { state: Mutex::default(), became_quiet: Condvar::new(), pool, reports }
    }

    pub(super) fn push(self: &Arc<Self>, instruction: InstructionId, job: Job) {
        let mut state = lock(&self.state);
        state.queue.push_back((instruction, job));
        if !state.running && !state.halted {
            state.running = true;
            drop(state);
            self.spawn();
        }
    }

    /// Stops after the running job; returns what has not started, to be
    /// dropped without the lane's lock.
    pub(super) fn halt(&self) -> VecDeque<(InstructionId, Job)> {
        let mut state = lock(&self.state);
        state.halted = true;
        std::mem::take(&mut state.queue)
    }

    pub(super) fn is_quiet(&self) -> bool {
        !lock(&self.state).running
    }

    pub(super) fn wait_until_quiet(&self) {
        drop(wait_while(&self.became_quiet, lock(&self.state), |state| state.running));
    }

    fn spawn(self: &Arc<Self>) {
        let lane = self.clone();
        self.pool.take_turn(move || lane.run_burst());
    }

    fn run_burst(self: Arc<Self>) {
        for _ in 0..BURST {
            let Some((instruction, job)) = self.take_next() else { return };
            let panic = run(job);
            if panic.is_some() {
                lock(&self.state).halted = true;
            }
            self.reports.push(Completion { instruction, panic });
        }
        self.spawn();
    }

    /// The next job; without one the lane goes quiet.
    fn take_next(&self) -> Option<(InstructionId, Job)> {
        let mut state = lock(&self.state);
        if !state.halted
            && let Some(next) = state.queue.pop_front()
        {
            return Some(next);
        }
        state.running = false;
        let halted = state.halted;
        drop(state);
        self.became_quiet.notify_all();
        if halted {
            self.reports.wake();
        }
        None
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
