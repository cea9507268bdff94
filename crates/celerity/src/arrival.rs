//! Where a value arrives that a task hands to the program, once: waited for by a thread, or awaited
//! by any executor of futures. Knows neither what arrives nor where it comes from.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use celerity_executor::NodeFrontend;
use celerity_executor::contain::caught;

use crate::error::Result;

/// What a range mapper cannot do.
const WAIT: &str = "wait for a fence";

/// The receiving half.
pub(crate) struct Arrival<V> {
    slot: Arc<Slot<V>>,
    frontend: Arc<NodeFrontend>,
}

/// The sending half: the value, or the news that nothing will arrive.
pub(crate) struct Promise<V>(Arc<Slot<V>>);

/// Where the value is in between.
struct Slot<V> {
    state: Mutex<State<V>>,
    arrived: Condvar,
}

enum State<V> {
    Pending(Option<Waker>),
    Ready(V),
    Abandoned,
}

/// Both halves.
pub(crate) fn promise<V>(frontend: &Arc<NodeFrontend>) -> (Promise<V>, Arrival<V>) {
    let slot = Arc::new(Slot::new(State::Pending(None)));
    (Promise(slot.clone()), Arrival { slot, frontend: frontend.clone() })
}

impl<V> Arrival<V> {
    /// A value that is already there.
    pub(crate) fn ready(frontend: &Arc<NodeFrontend>, value: V) -> Self {
        Self { slot: Arc::new(Slot::new(State::Ready(value))), frontend: frontend.clone() }
    }

    /// Blocks until the value is there. `None` if nothing will come although the run has not
    /// failed. A trace shows for how long, under `name`.
    ///
    /// # Errors
    /// The run's first error if nothing will come;
    /// [`RunError::Misplaced`](crate::RunError::Misplaced) in a kernel, a range mapper, or a destructor that the runtime runs.
    pub(crate) fn wait(&mut self, name: impl FnOnce() -> String) -> Result<Option<V>> {
        self.frontend.refuse_waits(WAIT)?;
        let value = match self.slot.take() {
            Some(outcome) => outcome,
            None => self.frontend.timed_wait(name, || self.slot.wait()),
        };
        self.outcome(value)
    }

    /// The same for a future.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<V>>> {
        if let Err(error) = self.frontend.refuse_waits(WAIT) {
            return Poll::Ready(Err(error.into()));
        }
        // Wakers are the program's: to make one, and to drop the one before, takes no lock.
        let new = context.waker().clone();
        let mut state = self.slot.lock();
        if let State::Pending(waker) = &mut *state {
            let before = waker.replace(new);
            drop(state);
            drop(before);
            return Poll::Pending;
        }
        let value = state.take();
        drop(state);
        Poll::Ready(self.outcome(value))
    }

    fn outcome(&self, value: Option<V>) -> Result<Option<V>> {
        match (value, self.frontend.error()) {
            (None, Some(error)) => Err(error.into()),
            (value, _) => Ok(value),
        }
    }
}

impl<V> Promise<V> {
    /// Hands the value over.
    pub(crate) fn keep(self, value: V) {
        self.0.settle(State::Ready(value));
    }
}

impl<V> Drop for Promise<V> {
    fn drop(&mut self) {
        let pending = matches!(*self.0.lock(), State::Pending(_));
        if pending {
            self.0.settle(State::Abandoned);
        }
    }
}

impl<V> Slot<V> {
    fn new(state: State<V>) -> Self {
        Self { state: Mutex::new(state), arrived: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<V>> {
        // The state is replaced in one step, so it is whole even after a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the slot holds, unless that is pending.
    fn take(&self) -> Option<Option<V>> {
        let mut state = self.lock();
        let pending = matches!(*state, State::Pending(_));
        (!pending).then(|| state.take())
    }

    fn wait(&self) -> Option<V> {
        let pending = |state: &mut State<V>| matches!(state, State::Pending(_));
        let state = self.arrived.wait_while(self.lock(), pending);
        state.unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whom it wakes, and how, is the user's: a waker may panic, which is told by the panic hook
    /// and changes nothing of what the slot holds.
    fn settle(&self, outcome: State<V>) {
        let before = std::mem::replace(&mut *self.lock(), outcome);
        self.arrived.notify_all();
        if let State::Pending(Some(waker)) = before {
            drop(caught(|| waker.wake()));
        }
    }
}

impl<V> State<V> {
    /// What has arrived, if something has.
    fn take(&mut self) -> Option<V> {
        match std::mem::replace(self, Self::Abandoned) {
            Self::Ready(value) => Some(value),
            Self::Pending(_) | Self::Abandoned => None,
        }
    }
}
