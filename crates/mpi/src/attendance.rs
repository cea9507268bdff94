//! A process in a run: its part of the side channel from the run's beginning to its end.

use std::sync::Arc;

use celerity_executor::RunError;

use crate::failure;
use crate::liveness::SideNews;
use crate::session::Session;

/// The process is in a run as long as this lives.
pub(crate) struct Attendance {
    session: Arc<Session>,
    run: u64,
}

impl Attendance {
    /// The run has begun.
    pub(crate) fn new(session: Arc<Session>, run: u64) -> Self {
        Self { session, run }
    }

    /// Asks for the run to be stopped on all nodes.
    pub(crate) fn abort(&self, error: &RunError) {
        self.session.side().abort(self.run, failure::write(error));
    }

    /// What has come, if anything has.
    pub(crate) fn poll(&self) -> Option<SideNews> {
        self.session.side().poll()
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        self.session.side().end();
    }
}
