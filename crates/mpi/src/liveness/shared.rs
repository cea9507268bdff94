//! What the thread of the side channel and the rest of the process share. Owns the one lock,
//! and who is woken; decides nothing.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use celerity_cdag::NodeId;
use celerity_executor::Waker;

use super::SideNews;
use super::frame::Frame;
use super::record::{Decisions, Loss, News};
use super::wait::Bell;

/// What the process wants of the thread.
#[derive(Debug)]
pub(super) enum Order {
    /// To say something to the hub.
    Say(Frame),
    /// From now on, nodes are dead after so much silence.
    Timeout(Duration),
    /// To say goodbye, and to end.
    Part,
}

pub(super) struct Shared {
    bell: Bell,
    state: Mutex<State>,
    /// Something in the state is another than before.
    changed: Condvar,
    /// Whether there are reports: nodes ask in every round.
    has_news: AtomicBool,
}

#[derive(Default)]
pub(super) struct State {
    orders: Vec<Order>,
    pub(super) record: Decisions,
    /// Who is in a run, or waits for it to begin.
    pub(super) listener: Option<Listener>,
    /// The thread has ended.
    pub(super) is_over: bool,
}

/// A node in a run.
pub(super) struct Listener {
    pub(super) run: u64,
    pub(super) wake: Waker,
    pub(super) reports: VecDeque<SideNews>,
    /// Those that have not come to the run, as far as this node knows.
    pub(super) missing: Vec<NodeId>,
}

impl Shared {
    pub(super) fn new(bell: Bell) -> Self {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Self { bell, state, changed, has_news: AtomicBool::new(false) }
    }

    pub(super) fn bell(&self) -> &Bell {
        &self.bell
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // Nobody who panics leaves anything half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change, for so long at most. May return without one.
    pub(super) fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        longest: Option<Duration>,
    ) -> MutexGuard<'a, State> {
        match longest {
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(longest) => {
                let waited = self.changed.wait_timeout(state, longest);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    /// Gives the thread an order.
    pub(super) fn order(&self, order: Order) {
        self.lock().orders.push(order);
        self.bell.ring();
    }

    pub(super) fn take_orders(&self) -> Vec<Order> {
        std::mem::take(&mut self.lock().orders)
    }

    /// The next report to whoever is in a run.
    pub(super) fn next_report(&self) -> Option<SideNews> {
        if !self.has_news.load(Ordering::Acquire) {
            return None;
        }
        let mut state = self.lock();
        let report = state.listener.as_mut().and_then(|listener| listener.reports.pop_front());
        self.has_news.store(report.is_some(), Ordering::Release);
        report
    }

    /// Something has been decided.
    pub(super) fn apply(&self, node: NodeId, decision: Frame) {
        let mut state = self.lock();
        let news = state.record.apply(node, decision);
        self.tell(state, news);
    }

    /// This node or another one is lost.
    pub(super) fn lose(&self, loss: Loss) {
        let mut state = self.lock();
        let news = state.record.lose(loss);
        self.tell(state, news);
    }

    /// Notes for whom a node of this process waits, if it does.
    pub(super) fn note_missing(&self, missing: impl Fn(u64) -> Vec<NodeId>) {
        if let Some(listener) = &mut self.lock().listener {
            listener.missing = missing(listener.run);
        }
    }

    /// The thread ends.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    fn tell(&self, mut state: MutexGuard<'_, State>, news: Option<News>) {
        let mut wake = None;
        if let Some(news) = news
            && let Some(listener) = &mut state.listener
        {
            let run = listener.run;
            let report = match news {
                News::Aborted { run: stopped, error } => {
                    (stopped == run).then_some(SideNews::Aborted(error))
                }
                News::Lost(loss) => Some(SideNews::Lost(loss)),
            };
            if let Some(report) = report {
                listener.reports.push_back(report);
                self.has_news.store(true, Ordering::Release);
                wake = Some(listener.wake.clone());
            }
        }
        drop(state);
        self.changed.notify_all();
        if let Some(wake) = wake {
            wake();
        }
    }
}
