//! Who does one thing after another, or a few at once: a thread, a device, a lane. Owns the order of
//! waiting jobs; what they are is the simulation's business.

use std::collections::VecDeque;

use crate::cluster::Nanos;
use crate::span::{Lane, SpanId, Subject};

/// A server's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ServerId(pub(super) usize);

/// Something to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Job {
    /// For which node.
    pub(super) node: usize,
    /// As what it is shown.
    pub(super) lane: Lane,
    pub(super) subject: Subject,
    /// How long it takes.
    pub(super) took: Nanos,
    /// Whose end made it possible.
    pub(super) cause: Option<SpanId>,
}

/// Does jobs in the order in which they come, those of the runtime before kernels.
#[derive(Debug)]
pub(super) struct Server {
    /// How many more it may do at once.
    free: usize,
    urgent: VecDeque<Job>,
    patient: VecDeque<Job>,
}

impl Server {
    /// One that does so many jobs at once.
    pub(super) fn new(capacity: usize) -> Self {
        Self { free: capacity, urgent: VecDeque::new(), patient: VecDeque::new() }
    }

    /// Takes a job. Returns it if it begins now.
    pub(super) fn enter(&mut self, job: Job) -> Option<Job> {
        if self.free > 0 {
            self.free -= 1;
            return Some(job);
        }
        match job.lane {
            Lane::Kernels(_) => self.patient.push_back(job),
            _ => self.urgent.push_back(job),
        }
        None
    }

    /// A job is done, as this span. Returns the one that begins now, because of that.
    pub(super) fn leave(&mut self, span: SpanId) -> Option<Job> {
        let next = self.urgent.pop_front().or_else(|| self.patient.pop_front());
        match next {
            Some(job) => Some(Job { cause: Some(span), ..job }),
            None => {
                self.free += 1;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_goes_before_kernels_and_each_in_order() {
        let job = |lane, took| Job { node: 0, lane, subject: Subject::Program, took, cause: None };
        let span = crate::span::Spans::default().push(crate::span::SimulatedSpan {
            node: 0,
            lane: Lane::Engine,
            subject: Subject::Program,
            start: 0,
            end: 0,
            cause: None,
        });
        let mut server = Server::new(1);
        assert!(server.enter(job(Lane::Kernels(0), 1)).is_some());
        for (lane, took) in [(Lane::Kernels(0), 2), (Lane::Engine, 3), (Lane::Scheduler, 4)] {
            assert_eq!(server.enter(job(lane, took)), None);
        }
        let order = std::iter::from_fn(|| server.leave(span)).map(|job| job.took);
        assert_eq!(order.collect::<Vec<_>>(), [3, 4, 2]);
        assert!(server.enter(job(Lane::Engine, 5)).is_some(), "it is free again");
    }
}
