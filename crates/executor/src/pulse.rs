//! What the engine's threads are at, for somebody who watches them from outside: a thread that is
//! in code of the user's which does not return cannot say so itself. Telling costs two stores
//! without order; who watches, and when to complain, is not known here.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use celerity_tdag::TaskId;

use crate::time::Time;

/// When a thread of the engine has begun the round that it is in.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// Nanoseconds since the start of the run, and 1 more; 0 while the thread waits.
    since: AtomicU64,
}

impl Pulse {
    /// A round begins.
    pub(crate) fn beat(&self, now: Time) {
        let nanos = now.since(Time::START).as_nanos();
        // After 500 years, one round looks like the next.
        self.since.store(u64::try_from(nanos).unwrap_or(u64::MAX - 1) + 1, Ordering::Relaxed);
    }

    /// The thread waits, or is gone.
    pub(crate) fn rest(&self) {
        self.since.store(0, Ordering::Relaxed);
    }

    /// When the round has begun that goes on, if one does.
    pub(crate) fn since(&self) -> Option<Time> {
        let nanos = self.since.load(Ordering::Relaxed).checked_sub(1)?;
        Some(Time::START + Duration::from_nanos(nanos))
    }
}

/// Code of the user's that the engine's own threads run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UserCall {
    /// Range mappers of a task, or of earlier ones that were held back.
    Mapper(TaskId),
    /// A kernel, or what combines partial results, that has been short so far, or that nobody else
    /// has a core for.
    Kernel(TaskId),
    /// The end of what a task owned.
    End(TaskId),
}

/// The call that one half of a node is in.
#[derive(Debug, Default)]
pub(crate) struct UserCalls(AtomicU64);

impl UserCalls {
    /// Does `work`, which is the call.
    pub(crate) fn during<R>(&self, call: UserCall, work: impl FnOnce() -> R) -> R {
        let (task, kind) = match call {
            UserCall::Mapper(task) => (task, 1),
            UserCall::Kernel(task) => (task, 2),
            UserCall::End(task) => (task, 3),
        };
        self.0.store(task.index() << 2 | kind, Ordering::Relaxed);
        let result = work();
        self.0.store(0, Ordering::Relaxed);
        result
    }

    /// The call that goes on, if one does.
    pub(crate) fn now(&self) -> Option<UserCall> {
        let word = self.0.load(Ordering::Relaxed);
        let task = TaskId::from_index(word >> 2);
        match word & 3 {
            1 => Some(UserCall::Mapper(task)),
            2 => Some(UserCall::Kernel(task)),
            3 => Some(UserCall::End(task)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_known_while_it_goes_on() {
        let pulse = Pulse::default();
        assert_eq!(pulse.since(), None);
        for now in [Time::START, Time::START + Duration::from_nanos(7)] {
            pulse.beat(now);
            assert_eq!(pulse.since(), Some(now));
        }
        pulse.rest();
        assert_eq!(pulse.since(), None);
    }

    #[test]
    fn a_call_is_known_while_it_goes_on() {
        let calls = UserCalls::default();
        let task = TaskId::from_index(257);
        for call in
            [UserCall::Mapper(task), UserCall::Kernel(task), UserCall::End(TaskId::from_index(0))]
        {
            assert_eq!(calls.during(call, || calls.now()), Some(call));
            assert_eq!(calls.now(), None);
        }
    }
}
