//! Where a task comes from: what is known of it before anything is known of what it does.

use std::sync::Arc;

use celerity_executor::NodeFrontend;
use celerity_tdag::SourceLocation;

use crate::log::LogLevel;

/// What every task has: a node that it is submitted to, a name and a place in the user's source.
#[derive(Debug)]
pub(crate) struct Origin<'q> {
    pub(crate) frontend: &'q Arc<NodeFrontend>,
    pub(crate) log_level: LogLevel,
    pub(crate) name: Arc<str>,
    pub(crate) location: SourceLocation,
}

impl Origin<'_> {
    /// The task, for errors: `"step" at src/main.rs:40`.
    pub(crate) fn describe(&self) -> String {
        format!("\"{}\" at {}", self.name, self.location)
    }
}
