//! How a run goes and ends on one node: which errors count, and when it is over. Knows neither
//! who finds errors nor what they mean.

use crate::error::RunError;

/// How far a node has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// It takes submissions and runs them.
    #[default]
    Running,
    /// An abort is on its way; nothing is issued any more.
    Failing,
    /// The run's first error is known and published.
    Stopped,
    /// The shutdown epoch has been reached.
    Finished,
}

/// The course of one run on one node: `Running` → `Finished`, or `Running` → (`Failing` →)
/// `Stopped`.
#[derive(Debug, Default)]
pub(super) struct Course {
    phase: Phase,
    /// What this node has ended the run with, until it is known whether that was the first error.
    own_failure: Option<RunError>,
    /// Whether nothing will be ordered any more.
    closed: bool,
}

impl Course {
    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    pub(super) fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }

    /// The node has failed. Returns what to tell all nodes, if it is the first to fail here: the
    /// network decides which of several nodes' errors is the first.
    #[must_use = "other nodes wait for it"]
    pub(super) fn fail(&mut self, error: RunError) -> Option<&RunError> {
        if !self.is_running() {
            return None;
        }
        self.phase = Phase::Failing;
        Some(self.own_failure.insert(error))
    }

    /// The run's first error is known. Returns it as this node has found it, if it has: what has
    /// been on its way through a network may have come back as mere text.
    #[must_use = "user code is to be told"]
    pub(super) fn stop(&mut self, first: RunError) -> RunError {
        self.phase = Phase::Stopped;
        self.own_failure.take().filter(|own| *own == first).unwrap_or(first)
    }

    /// The shutdown epoch has been reached.
    pub(super) fn finish(&mut self) {
        debug_assert!(self.is_running(), "a run ends once");
        self.phase = Phase::Finished;
    }

    /// Nothing will be ordered any more.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether nothing is left to do: after a failure only if all `is_quiet`.
    pub(super) fn is_over(&self, is_quiet: impl FnOnce() -> bool) -> bool {
        let ended = match self.phase {
            Phase::Finished => true,
            Phase::Stopped => is_quiet(),
            Phase::Running | Phase::Failing => false,
        };
        ended && self.closed
    }
}

#[cfg(test)]
mod tests {
    use celerity_cdag::NodeId;

    use super::*;
    use crate::error::TaskError;

    fn internal(message: &str) -> RunError {
        RunError::Internal { message: message.to_owned() }
    }

    #[test]
    fn the_first_failure_of_a_node_is_told_and_later_ones_are_not() {
        let mut course = Course::default();
        assert_eq!(course.fail(internal("first")), Some(&internal("first")));
        assert_eq!(course.phase(), Phase::Failing);
        assert_eq!(course.fail(internal("second")), None);
        assert_eq!(course.stop(internal("of another node")), internal("of another node"));
        assert_eq!((course.phase(), course.fail(internal("third"))), (Phase::Stopped, None));
    }

    #[test]
    fn an_error_that_comes_back_from_the_network_keeps_its_cause() {
        let failed = |error| {
            let (task, node) = ("T3".to_owned(), NodeId::from_index(0));
            RunError::TaskFailed { task, node, device: None, error }
        };
        let mut course = Course::default();
        let own = failed(TaskError::new(std::io::Error::other("the disk is full")));
        assert!(course.fail(own).is_some());
        let stopped = course.stop(failed(TaskError::new("the disk is full")));
        let cause = std::error::Error::source(&stopped).expect("it has a cause");
        assert!(cause.downcast_ref::<std::io::Error>().is_some());
    }

    #[test]
    fn a_run_is_over_when_its_program_has_ended_and_nothing_is_under_way() {
        let mut finished = Course::default();
        assert!(!finished.is_over(|| true));
        finished.finish();
        assert!(!finished.is_over(|| true), "its program goes on");
        finished.close();
        assert!(finished.is_over(|| unreachable!("all has completed")));
        let mut stopped = Course::default();
        stopped.close();
        assert!(stopped.fail(internal("no")).is_some() && !stopped.is_over(|| true));
        let _ = stopped.stop(internal("no"));
        assert!(!stopped.is_over(|| false) && stopped.is_over(|| true));
    }
}
