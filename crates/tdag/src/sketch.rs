//! What a task touches, found out without the graph: for runtimes whose threads share one, and
//! must not keep it from each other while a user's mapper thinks. Changes nothing.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::declare::trace;
use crate::error::DeclareError;
use crate::footprint::Footprint;
use crate::id::TaskId;
use crate::task::{BufferInfo, TaskSpec};

/// What evaluating a task's mappers takes of a graph; see
/// [`TaskGraph::sketch`](crate::TaskGraph::sketch).
#[derive(Clone, Debug)]
pub struct Sketch {
    pub(crate) next: TaskId,
    pub(crate) buffers: SmallVec<[Arc<BufferInfo>; 4]>,
}

/// What a task touches, for [`TaskGraph::submit_traced`](crate::TaskGraph::submit_traced).
#[derive(Clone, Debug)]
#[must_use = "a traced task enters the graph when it is submitted"]
pub struct Traced(pub(crate) Box<Footprint>);

impl Sketch {
    /// Checks a task against everything that does not depend on earlier tasks, and evaluates
    /// each of its mappers once, on the whole index space. `spec` is the task that this is the
    /// sketch of. O(accesses · mapper evaluation).
    ///
    /// # Errors
    /// As [`TaskGraph::declare`](crate::TaskGraph::declare), but for reads of what nothing has
    /// written.
    pub fn trace(&self, spec: &TaskSpec) -> Result<Traced, DeclareError> {
        let mut footprint = Footprint::new();
        let buffer_of = |id| self.buffers.iter().find(|info| info.id == id).map(|info| &**info);
        trace(spec, self.next, buffer_of, &mut footprint)?;
        Ok(Traced(Box::new(footprint)))
    }
}
