//! What a buffer's contents still have to be made of. Knows neither buffers nor what is made.

use std::fmt;
use std::sync::Arc;

use celerity_executor::NodeFrontend;

use crate::error::Result;

/// Tasks that are submitted when somebody needs what they make.
pub(crate) struct Pending(Box<Steps>);

type Steps = dyn FnOnce(&Arc<NodeFrontend>) -> Result<()> + Send;

impl Pending {
    /// What `steps` submits.
    pub(crate) fn new(
        steps: impl FnOnce(&Arc<NodeFrontend>) -> Result<()> + Send + 'static,
    ) -> Self {
        Self(Box::new(steps))
    }

    /// Submits the tasks.
    ///
    /// # Errors
    /// As submitting a task.
    pub(crate) fn submit(self, frontend: &Arc<NodeFrontend>) -> Result<()> {
        self.0(frontend)
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pending")
    }
}
