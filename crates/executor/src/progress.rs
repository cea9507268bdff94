//! What user code can learn of its node's execution, and wait for: the horizons
//! and epochs reached, and the run's first error.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, OnceLock};

use celerity_tdag::TaskId;

use crate::error::RunError;
use crate::sync::{lock, wait_while};

/// How far a node has come, as its user code sees it. Written by the
/// [`NodeMachine`](crate::NodeMachine); read by whoever shares it, from any
/// thread.
#[derive(Debug, Default)]
pub struct Progress {
    /// Copies of what `state` holds, so that submission takes no lock.
    horizons: AtomicU64,
    /// Those of them that peers allow to be counted: the others wait for peers that are
    /// behind.
    credited: AtomicU64,
    /// Horizons whose instructions are held back by the lookahead.
    held_horizons: AtomicU64,
    /// Tasks submitted.
    tasks: AtomicU64,
    failed: AtomicBool,
    /// Whether somebody waits for horizons.
    is_awaited: AtomicBool,
    state: Mutex<State>,
    epoch_reached: Condvar,
    horizons_reached: Condvar,
    /// Whether the program of this node has ended, whatever became of what it has submitted.
    program_ended: AtomicBool,
    /// Somebody who wants to know at once that the run is to end.
    alarm: Alarm,
}

#[derive(Default)]
struct Alarm(OnceLock<Box<dyn Fn() + Send + Sync>>);

impl std::fmt::Debug for Alarm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.get().is_some() { "Alarm(..)" } else { "Alarm" })
    }
}

#[derive(Default)]
struct Kept(Vec<Box<dyn Any + Send>>);

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Kept({})", self.0.len())
    }
}

#[derive(Debug, Default)]
struct State {
    epoch: Option<TaskId>,
    error: Option<RunError>,
    /// What must not go before the error is known.
    kept: Kept,
    /// The least number of horizons that somebody waits for: until then, waking
    /// them would be two context switches per horizon for nothing.
    awaited_horizons: Option<u64>,
}

impl Progress {
    /// So many more horizons have been reached; peers allow `limit` in all to be counted.
    pub(crate) fn horizons_reached(&self, more: u64, limit: u64) {
        let reached = self.horizons() + more;
        let credited = reached.min(limit);
        if more == 0 && credited == self.credited.load(Ordering::Relaxed) {
            return;
        }
        let mut state = lock(&self.state);
        self.horizons.store(reached, Ordering::Release);
        self.credited.store(credited, Ordering::Release);
        self.wake_run_ahead(&mut state);
    }

    /// So many horizons are held back now.
    pub(crate) fn hold_horizons(&self, held: u64) {
        if held == self.held_horizons() {
            return;
        }
        let mut state = lock(&self.state);
        self.held_horizons.store(held, Ordering::Release);
        self.wake_run_ahead(&mut state);
    }

    /// One more task has been submitted.
    pub(crate) fn task_submitted(&self) {
        self.tasks.fetch_add(1, Ordering::Relaxed);
    }

    /// Tasks that user threads have submitted, as far as they say so.
    pub(crate) fn tasks(&self) -> u64 {
        self.tasks.load(Ordering::Relaxed)
    }

    fn wake_run_ahead(&self, state: &mut State) {
        let passed = self.passed_horizons();
        if state.awaited_horizons.take_if(|awaited| *awaited <= passed).is_some() {
            self.is_awaited.store(false, Ordering::Relaxed);
            self.horizons_reached.notify_all();
        }
    }

    /// The epoch has been reached.
    pub(crate) fn epoch_reached(&self, task: TaskId) {
        lock(&self.state).epoch = Some(task);
        self.epoch_reached.notify_all();
    }

    /// The run has failed; later errors change nothing.
    pub(crate) fn fail(&self, error: RunError) {
        let mut state = lock(&self.state);
        state.error.get_or_insert(error);
        self.failed.store(true, Ordering::Release);
        let kept = std::mem::take(&mut state.kept);
        drop(state);
        drop(kept);
        self.alarm();
        self.epoch_reached.notify_all();
        self.horizons_reached.notify_all();
    }

    /// Keeps something until the run has failed, which it will: whoever is told by the end of it
    /// then finds the error.
    pub(crate) fn keep_until_failure(&self, kept: Box<dyn Any + Send>) {
        let mut state = lock(&self.state);
        if state.error.is_none() {
            return state.kept.0.push(kept);
        }
        drop(state);
        drop(kept);
    }

    /// Calls `alarm` when the run fails, or is asked to, on whichever thread that is. The first
    /// one to be set counts.
    pub(crate) fn on_failure(&self, alarm: impl Fn() + Send + Sync + 'static) {
        drop(self.alarm.0.set(Box::new(alarm)));
        if self.has_failed() {
            self.alarm();
        }
    }

    /// The run is to end.
    pub(crate) fn alarm(&self) {
        self.alarm.0.get().into_iter().for_each(|alarm| alarm());
    }

    /// The program of this node has ended.
    pub(crate) fn program_ended(&self) {
        self.program_ended.store(true, Ordering::Relaxed);
    }

    /// Whether the program of this node has ended.
    pub(crate) fn has_program_ended(&self) -> bool {
        self.program_ended.load(Ordering::Relaxed)
    }

    /// The run's first error, if it has failed.
    #[must_use]
    pub fn error(&self) -> Option<RunError> {
        let failed = self.failed.load(Ordering::Acquire);
        failed.then(|| lock(&self.state).error.clone()).flatten()
    }

    /// Whether the run has failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Fails if the run has.
    pub(crate) fn check(&self) -> Result<(), RunError> {
        self.error().map_or(Ok(()), Err)
    }

    /// Horizons reached since the start.
    #[must_use]
    pub fn horizons(&self) -> u64 {
        self.horizons.load(Ordering::Acquire)
    }

    /// Horizons held back by the lookahead: they are not reached before it lets
    /// go of them.
    #[must_use]
    pub fn held_horizons(&self) -> u64 {
        self.held_horizons.load(Ordering::Acquire)
    }

    /// Horizons that submission need not wait for any more: those reached, as far as peers
    /// that this node sends to are not too far behind, and those held back, since what comes
    /// next may be what lets go of them.
    #[must_use]
    pub fn passed_horizons(&self) -> u64 {
        self.credited.load(Ordering::Acquire) + self.held_horizons()
    }

    /// Whether somebody waits for horizons that this node has reached, but its peers have
    /// not followed to yet.
    pub(crate) fn waits_for_peers(&self) -> bool {
        self.is_awaited.load(Ordering::Relaxed)
            && self.credited.load(Ordering::Relaxed) < self.horizons()
    }

    /// The latest epoch reached, if any has been.
    #[must_use]
    pub fn epoch(&self) -> Option<TaskId> {
        lock(&self.state).epoch
    }

    /// Blocks until `count` horizons have been reached or are held back.
    pub(crate) fn wait_for_horizons(&self, count: u64) -> Result<(), RunError> {
        let state = wait_while(&self.horizons_reached, lock(&self.state), |state| {
            let waits = state.error.is_none() && self.passed_horizons() < count;
            if waits {
                let least = state.awaited_horizons.map_or(count, |other| other.min(count));
                state.awaited_horizons = Some(least);
                self.is_awaited.store(true, Ordering::Relaxed);
            }
            waits
        });
        state.error.clone().map_or(Ok(()), Err)
    }

    /// Blocks until the epoch has been reached.
    pub(crate) fn wait_for_epoch(&self, task: TaskId) -> Result<(), RunError> {
        let state = wait_while(&self.epoch_reached, lock(&self.state), |state| {
            state.error.is_none() && state.epoch < Some(task)
        });
        state.error.clone().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(what: &str) -> RunError {
        RunError::Internal { message: what.to_owned() }
    }

    #[test]
    fn waits_end_with_progress() {
        let progress = Progress::default();
        std::thread::scope(|scope| {
            let horizons = scope.spawn(|| progress.wait_for_horizons(2));
            let epoch = scope.spawn(|| progress.wait_for_epoch(TaskId::from_index(5)));
            progress.horizons_reached(1, u64::MAX);
            progress.horizons_reached(1, u64::MAX);
            progress.epoch_reached(TaskId::from_index(5));
            assert_eq!(horizons.join().unwrap(), Ok(()));
            assert_eq!(epoch.join().unwrap(), Ok(()));
        });
        assert_eq!((progress.epoch(), progress.horizons()), (Some(TaskId::from_index(5)), 2));
    }

    #[test]
    fn horizons_count_as_far_as_peers_allow() {
        let progress = Progress::default();
        progress.horizons_reached(5, 3);
        assert_eq!((progress.horizons(), progress.passed_horizons()), (5, 3));
        assert!(!progress.waits_for_peers(), "nobody waits at all");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| progress.wait_for_horizons(5));
            while !progress.waits_for_peers() {
                std::thread::yield_now();
            }
            progress.horizons_reached(0, 4);
            assert!(progress.waits_for_peers());
            progress.horizons_reached(1, u64::MAX);
            assert_eq!(waiting.join().unwrap(), Ok(()));
        });
        assert_eq!(progress.passed_horizons(), 6);
        assert!(!progress.waits_for_peers());
    }

    #[test]
    fn what_is_kept_goes_when_the_error_is_known() {
        struct Looks(std::sync::Arc<Progress>, std::sync::mpsc::Sender<bool>);
        impl Drop for Looks {
            fn drop(&mut self) {
                self.1.send(self.0.error().is_some()).unwrap();
            }
        }
        let progress = std::sync::Arc::new(Progress::default());
        let (sender, seen) = std::sync::mpsc::channel();
        progress.keep_until_failure(Box::new(Looks(progress.clone(), sender.clone())));
        assert!(seen.try_recv().is_err(), "it goes at once");
        progress.fail(error("first"));
        assert_eq!(seen.try_recv(), Ok(true));
        progress.keep_until_failure(Box::new(Looks(progress.clone(), sender)));
        assert_eq!(seen.try_recv(), Ok(true));
    }

    #[test]
    fn the_first_error_ends_all_waits_and_stays() {
        let progress = Progress::default();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| progress.wait_for_horizons(1));
            progress.fail(error("first"));
            progress.fail(error("second"));
            assert_eq!(waiting.join().unwrap(), Err(error("first")));
        });
        assert_eq!(progress.wait_for_epoch(TaskId::from_index(0)), Err(error("first")));
        assert_eq!(progress.error(), Some(error("first")));
        assert_eq!((progress.epoch(), progress.horizons()), (None, 0));
    }
}
