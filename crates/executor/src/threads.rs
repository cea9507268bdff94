//! The threads that run jobs: what is common to those of the pool and those of
//! host lanes. Knows neither pools nor lanes.

use std::cell::Cell;
use std::thread::{Builder, JoinHandle};

use crate::error::RunError;
use crate::pinning;

/// A pool thread that waits inside a kernel for other threads takes turns
/// meanwhile, so kernels of several lanes can be on one stack. Host tasks get as
/// much, as they may recurse. Only what is used counts.
pub(crate) const STACK: usize = 16 << 20;

thread_local! {
    static RUNS_JOBS: Cell<bool> = const { Cell::new(false) };
}

/// Marks the calling thread, for good, as one that runs jobs. All of a job
/// counts, also the part that `rayon` has spread over the pool.
pub(crate) fn mark() {
    RUNS_JOBS.set(true);
}

/// Does `work`, which is a job, on a thread that otherwise runs none.
pub(crate) fn while_marked<R>(work: impl FnOnce() -> R) -> R {
    let before = RUNS_JOBS.replace(true);
    let result = work();
    RUNS_JOBS.set(before);
    result
}

/// Refuses to start a run from inside a job.
///
/// All runs of a process share one pool: if as many kernels as it has threads
/// waited for runs of their own, none of these would get a thread.
pub(crate) fn refuse_inside_jobs() -> Result<(), RunError> {
    if !RUNS_JOBS.get() {
        return Ok(());
    }
    let what = "a kernel or host task started it, which would wait on threads that it occupies \
                itself; start runs one after another, or from threads of the program";
    Err(RunError::Start { what: what.to_owned() })
}

/// Starts a thread for jobs.
///
/// # Errors
/// [`RunError::Start`] if the system gives none.
pub(crate) fn start(
    name: String,
    jobs: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, RunError> {
    let cores = pinning::for_new_thread();
    let marked = move || {
        mark();
        if let Some(cores) = cores {
            pinning::release(&cores);
        }
        jobs();
    };
    let thread = Builder::new().name(name).stack_size(STACK);
    thread.spawn(marked).map_err(|error| no_threads(&error.to_string()))
}

/// The error for a system that gives no threads.
pub(crate) fn no_threads(reason: &str) -> RunError {
    RunError::Start { what: format!("no threads: {reason}; allow this process more") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_threads_that_run_jobs_are_refused() {
        assert_eq!(refuse_inside_jobs(), Ok(()));
        let job = || assert!(matches!(refuse_inside_jobs(), Err(RunError::Start { .. })));
        start("job".to_owned(), job).unwrap().join().unwrap();
        assert_eq!(refuse_inside_jobs(), Ok(()), "the mark is the thread's own");
        while_marked(job);
        assert_eq!(refuse_inside_jobs(), Ok(()), "the mark is gone with the job");
    }
}
