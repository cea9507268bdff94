//! The threads that run what users have written: what is common to those of the pool and those
//! of host lanes, and what a thread may do while it runs a job or evaluates a range mapper.
//! Knows neither pools nor lanes.

use std::cell::Cell;
use std::thread::{Builder, JoinHandle};

use crate::error::RunError;
use crate::pinning;

/// A pool thread that waits inside a kernel for other threads takes turns
/// meanwhile, so kernels of several lanes can be on one stack. Host tasks get as
/// much, as they may recurse. Only what is used counts.
pub(crate) const STACK: usize = 16 << 20;

/// What of a user's a thread is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UserCode {
    /// The program.
    Program,
    /// What a lane of a device runs: a kernel, on all threads that it has been spread over.
    Kernel,
    /// What a lane of a host runs: a host task, or a fence's copy.
    HostTask,
    /// A range mapper, which is asked while tasks are submitted and scheduled.
    Mapper,
    /// None, on a thread of the engine, which drops what tasks and mappers own that have ended.
    Engine,
}

thread_local! {
    static USER_CODE: Cell<UserCode> = const { Cell::new(UserCode::Program) };
}

/// Marks the calling thread, for good, as one that runs kernels. All of a kernel
/// counts, also the part that `rayon` has spread over the pool.
pub(crate) fn mark_for_kernels() {
    USER_CODE.set(UserCode::Kernel);
}

/// Marks the calling thread, for good, as one of the engine.
pub(crate) fn mark_for_engine() {
    USER_CODE.set(UserCode::Engine);
}

/// Does `work`, which is a kernel, on a thread that otherwise runs none.
pub(crate) fn while_in_kernel<R>(work: impl FnOnce() -> R) -> R {
    within(UserCode::Kernel, work)
}

/// The same for a host task.
pub(crate) fn while_in_host_task<R>(work: impl FnOnce() -> R) -> R {
    within(UserCode::HostTask, work)
}

/// Does `work`, which asks range mappers.
pub(crate) fn while_mapping<R>(work: impl FnOnce() -> R) -> R {
    within(UserCode::Mapper, work)
}

fn within<R>(place: UserCode, work: impl FnOnce() -> R) -> R {
    /// Goes back, also if `work` panics.
    struct Back(UserCode);
    impl Drop for Back {
        fn drop(&mut self) {
            USER_CODE.set(self.0);
        }
    }
    let _back = Back(USER_CODE.replace(place));
    work()
}

/// Refuses to start a run from inside a job or a range mapper.
///
/// All runs of a process share one pool: if as many kernels as it has threads
/// waited for runs of their own, none of these would get a thread.
pub(crate) fn refuse_runs() -> Result<(), RunError> {
    let what = match USER_CODE.get() {
        UserCode::Program => return Ok(()),
        UserCode::Kernel | UserCode::HostTask => {
            "a kernel or host task started it, which would wait on threads that it occupies \
             itself; start runs one after another, or from threads of the program"
        }
        UserCode::Mapper => {
            "a range mapper started it; a mapper only computes which part of a buffer a part of \
             an index space touches"
        }
        UserCode::Engine => {
            "something started it that the runtime calls, such as the destructor of what a task or \
             a range mapper owned; start runs from the program"
        }
    };
    Err(RunError::Start { what: what.to_owned() })
}

/// Refuses to `act`, as in "submit a task", from inside a range mapper, or a destructor that the runtime runs: the thread that
/// waits for it may be the one that it needs, and each node asks as often as it likes.
pub(crate) fn refuse_in_engine(act: &str) -> Result<(), RunError> {
    let what = match USER_CODE.get() {
        UserCode::Program | UserCode::Kernel | UserCode::HostTask => return Ok(()),
        UserCode::Mapper => format!(
            "a range mapper cannot {act}: it is asked while tasks are submitted and scheduled, on \
             each node and as often as the runtime likes; let it compute from its arguments, and what \
             it has captured, which part of a buffer a chunk touches"
        ),
        UserCode::Engine => format!(
            "what the runtime calls on a thread of its own, such as the destructor of what a task or a range mapper \
             owned, cannot {act}: it is called at another time on each node, and what it waits for may need that \
             thread; let the program do it"
        ),
    };
    Err(RunError::Misplaced { what })
}

/// Refuses to `act`, as in "wait for a fence", from there and from inside a kernel.
pub(crate) fn refuse_waits(act: &str) -> Result<(), RunError> {
    refuse_in_engine(act)?;
    if USER_CODE.get() != UserCode::Kernel {
        return Ok(());
    }
    let what = format!(
        "a kernel cannot {act}: it occupies threads that what it waits for may need; let the program wait, and the \
         kernel capture the value, or read the buffer that it comes from"
    );
    Err(RunError::Misplaced { what })
}

/// Refuses to submit a task from inside of another, or from inside of a range mapper: what a node
/// runs does so at a time of its own, and nodes must have their tasks in one order. Where the
/// program is far ahead, it would wait for itself besides.
pub(crate) fn refuse_submissions() -> Result<(), RunError> {
    refuse_in_engine("submit a task")?;
    refuse_in_jobs(
        "a kernel or host task cannot submit a task: it runs on each node at another time, and \
         all nodes must have their tasks in one order; let the program submit it",
    )
}

/// Refuses to wait for everything from inside of something that is waited for.
pub(crate) fn refuse_barriers() -> Result<(), RunError> {
    refuse_in_engine("wait for a barrier")?;
    refuse_in_jobs(
        "a kernel or host task cannot wait for a barrier, which would wait for it; let \
         the program wait",
    )
}

fn refuse_in_jobs(what: &str) -> Result<(), RunError> {
    match USER_CODE.get() {
        UserCode::Kernel | UserCode::HostTask => Err(RunError::Misplaced { what: what.to_owned() }),
        UserCode::Program | UserCode::Mapper | UserCode::Engine => Ok(()),
    }
}

/// Starts a thread for host tasks.
///
/// # Errors
/// [`RunError::Start`] if the system gives none.
pub(crate) fn start(
    name: String,
    jobs: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, RunError> {
    let cores = pinning::for_new_thread();
    let marked = move || {
        USER_CODE.set(UserCode::HostTask);
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
        assert_eq!(refuse_runs(), Ok(()));
        let job = || assert!(matches!(refuse_runs(), Err(RunError::Start { .. })));
        start("job".to_owned(), job).unwrap().join().unwrap();
        assert_eq!(refuse_runs(), Ok(()), "the mark is the thread's own");
        while_in_kernel(job);
        while_in_host_task(job);
        assert_eq!(refuse_runs(), Ok(()), "the mark is gone with the job");
        while_mapping(|| while_in_kernel(job));
    }

    #[test]
    fn what_waits_is_refused_where_it_would_wait_for_itself() {
        let refused = |outcome: Result<(), RunError>| {
            assert!(matches!(outcome, Err(RunError::Misplaced { .. })), "{outcome:?}");
        };
        let in_mapper = move || {
            refused(refuse_in_engine("wait for a fence"));
            refused(refuse_waits("wait for a fence"));
            refused(refuse_submissions());
            refused(refuse_barriers());
            assert!(matches!(refuse_runs(), Err(RunError::Start { .. })));
        };
        while_mapping(in_mapper);
        let panicking = || while_mapping(|| -> () { panic!("a mapper's own") });
        assert!(crate::contain::caught(panicking).is_err());
        let all = [refuse_waits("wait"), refuse_submissions(), refuse_barriers()];
        assert_eq!(all, [const { Ok(()) }; 3], "it is over");
        let in_task = || {
            assert_eq!(refuse_in_engine("take an object back"), Ok(()));
            refused(refuse_submissions());
            refused(refuse_barriers());
        };
        while_in_host_task(|| {
            in_task();
            assert_eq!(refuse_waits("wait for a fence"), Ok(()));
        });
        while_in_kernel(|| {
            in_task();
            refused(refuse_waits("wait for a fence"));
        });
        let in_destructor = move || {
            mark_for_engine();
            in_mapper();
        };
        std::thread::spawn(in_destructor).join().unwrap();
    }
}
