//! Why a program cannot be scheduled. Owns no diagnostics: carries those of the graphs as they are.

use thiserror::Error;

/// What the generators of a node, or who watches them, hold against the program.
///
/// Diagnostics of the graphs are values with fields, also on nodes that have been told of them, so
/// that a program can tell mistakes apart without reading texts.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum ScheduleError {
    /// A mistake that shows when work is assigned to nodes.
    #[error(transparent)]
    Commands(#[from] celerity_cdag::Diagnostic),
    /// A mistake that shows when a node's work is assigned to its devices.
    #[error(transparent)]
    Instructions(#[from] celerity_idag::Diagnostic),
    /// What an [`Observer`](crate::Observer) has said.
    #[error("{0}")]
    Observed(String),
    /// User code that the generators call panicked.
    #[error("a range mapper{} panicked: {said}", of_task(task.as_deref()))]
    MapperPanicked {
        /// Id, name and source line of the task in hand, if there is one.
        task: Option<String>,
        /// What the panic said.
        said: String,
    },
}

fn of_task(task: Option<&str>) -> String {
    task.map_or_else(String::new, |task| format!(" of task {task}"))
}
