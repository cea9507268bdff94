//! The threads that kernels, copies and large transfers share: a `rayon` pool
//! that takes turns strictly in order. Knows nothing of what runs, but that it
//! computes: what blocks belongs elsewhere.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::RunError;
use crate::pinning::{Cores, PinnedJobs, ThreadId, this_thread};
use crate::sync::lock;
use crate::threads::{STACK, mark_for_kernels, no_threads};

/// A pool whose turns start in the order in which they were asked for, also
/// those asked for by its own threads.
///
/// `rayon` alone prefers what a thread has spawned itself, so that one busy lane
/// which queues up again and again would keep a thread to itself. Here each
/// job of the pool takes the oldest turn, whoever spawned the job.
pub struct CpuPool {
    threads: ThreadPool,
    /// The same, as the system knows them: those that have started.
    started: Arc<Mutex<Vec<ThreadId>>>,
    turns: Mutex<VecDeque<Turn>>,
}

type Turn = Box<dyn FnOnce() + Send>;

impl CpuPool {
    /// A pool of so many threads; 0 stands for one per processor, or what
    /// `RAYON_NUM_THREADS` says.
    ///
    /// # Errors
    /// [`RunError::Start`] if the system gives no threads.
    pub fn new(threads: usize) -> Result<Arc<Self>, RunError> {
        let started = Arc::<Mutex<Vec<_>>>::default();
        let starting = started.clone();
        let builder = ThreadPoolBuilder::new().num_threads(threads);
        let threads = builder
            .thread_name(|index| format!("celerity-{index}"))
            .stack_size(STACK)
            .start_handler(move |_| {
                mark_for_kernels();
                lock(&starting).push(this_thread());
            })
            .build()
            .map_err(|error| no_threads(&error.to_string()))?;
        Ok(Arc::new(Self { threads, started, turns: Mutex::default() }))
    }

    /// How many threads it has.
    pub(crate) fn threads(&self) -> usize {
        self.threads.current_num_threads()
    }

    /// Another pool, of one thread: what `rayon` is asked for in jobs that this thread runs
    /// is done by itself.
    ///
    /// The thread is the pool's own. To make one of an existing thread, `rayon` keeps 8 kB
    /// for ever, and a process may make thousands of runs.
    ///
    /// # Errors
    /// [`RunError::Start`] if the system gives no thread.
    pub(crate) fn of_one_thread(name: &'static str) -> Result<ThreadPool, RunError> {
        let builder = ThreadPoolBuilder::new().num_threads(1).stack_size(STACK);
        let pool = builder.thread_name(move |_| name.to_owned()).build();
        pool.map_err(|error| no_threads(&error.to_string()))
    }

    /// Lets all threads stay on the cores for jobs until the result is dropped, or
    /// another run decides.
    ///
    /// # Errors
    /// [`RunError::Start`] if the system refuses.
    pub(crate) fn pin(&self, cores: &Cores) -> Result<PinnedJobs, RunError> {
        // Each thread answers when it has started.
        self.threads.broadcast(|_| ());
        cores.pin_jobs(&lock(&self.started))
    }

    /// The pool that all runs of this process share. It is not `rayon`'s global
    /// one, so that user code which blocks there cannot starve a run.
    ///
    /// # Errors
    /// If there can be no such threads; if they are another process's, which was forked into this one: it has no copies of them.
    pub(crate) fn of_process() -> Result<Arc<Self>, RunError> {
        static POOL: OnceLock<(u32, Result<Arc<CpuPool>, RunError>)> = OnceLock::new();
        let (process, pool) = POOL.get_or_init(|| (std::process::id(), Self::new(0)));
        match *process == std::process::id() {
            true => pool.clone(),
            false => Err(RunError::Start {
                what: format!(
                    "this process was forked from process {process} after a run, whose threads it does not \
                     have: fork before the first run, or start a program (exec)"
                ),
            }),
        }
    }

    /// Runs `turn` on a thread of the pool, after all turns asked for before
    /// have started. `rayon` calls inside spread over the pool.
    ///
    /// `turn` must not panic: the process would abort.
    pub fn take_turn(self: &Arc<Self>, turn: impl FnOnce() + Send + 'static) {
        lock(&self.turns).push_back(Box::new(turn));
        let pool = self.clone();
        self.threads.spawn(move || {
            let oldest = lock(&pool.turns).pop_front();
            oldest.expect("there is a turn for every job")();
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn turns_asked_for_inside_come_after_older_ones() {
        let pool = CpuPool::new(1).unwrap();
        let (started, all_asked) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
        let (sender, order) = channel();
        let (start, asked, inside, outer) =
            (started.clone(), all_asked.clone(), pool.clone(), sender.clone());
        pool.take_turn(move || {
            start.wait();
            asked.wait();
            inside.take_turn(move || outer.send("younger").unwrap());
        });
        started.wait();
        pool.take_turn(move || sender.send("older").unwrap());
        all_asked.wait();
        assert_eq!(order.iter().collect::<Vec<_>>(), ["older", "younger"]);
    }
}
