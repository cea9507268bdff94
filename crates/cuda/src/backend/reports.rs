//! Where the threads of GPUs leave what has ended, for the node to find.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use celerity_executor::{Completion, Waker};

pub(super) struct Reports {
    completed: Mutex<Vec<Completion>>,
    /// Jobs that have been taken on and not ended.
    open: AtomicUsize,
    cancelled: AtomicBool,
    waker: Waker,
}

impl Reports {
    pub(super) fn new(waker: Waker) -> Self {
        let (open, cancelled) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self { completed: Mutex::default(), open, cancelled, waker }
    }

    /// Counts a job in.
    pub(super) fn expect_one(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    /// Reports jobs that have ended, and counts them out.
    pub(super) fn completed(&self, completions: impl IntoIterator<Item = Completion>) {
        let mut all = self.completed.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.len();
        all.extend(completions);
        let count = all.len() - before;
        drop(all);
        self.dropped(count);
    }

    /// Counts out jobs that nobody is told of.
    pub(super) fn dropped(&self, count: usize) {
        // Released for whoever finds nothing open and then frees what jobs used.
        self.open.fetch_sub(count, Ordering::Release);
        (self.waker)();
    }

    /// Appends what has been reported since the last call.
    pub(super) fn take(&self, out: &mut Vec<Completion>) {
        out.append(&mut self.completed.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Lets nothing start any more.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0
    }
}
