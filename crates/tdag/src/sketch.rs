//! What a task touches, found out without the graph: for runtimes whose threads share one, and
//! must not keep it from each other while a user's mapper thinks. Changes nothing.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::declare::{describe, trace};
use crate::error::DeclareError;
use crate::footprint::Footprint;
use crate::id::TaskId;
use crate::mapper::verify_mapper;
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

/// Chunks at random on which a mapper is tried.
const FEW: u32 = 8;

impl Sketch {
    /// Checks a task against everything that does not depend on earlier tasks, and evaluates
    /// each of its mappers once, on the whole index space. `spec` is the task that this is the
    /// sketch of. O(accesses · mapper evaluation).
    ///
    /// # Errors
    /// As [`TaskGraph::declare`](crate::TaskGraph::declare), but for reads of what nothing has
    /// written; and [`DeclareError::UnlawfulMapper`], if a user's mapper panics.
    pub fn trace(&self, spec: &TaskSpec) -> Result<Traced, DeclareError> {
        let mut footprint = Footprint::new();
        let buffer_of = |id| self.buffers.iter().find(|info| info.id == id).map(|info| &**info);
        let _ = trace::<true>(spec, self.next, buffer_of, &mut footprint)?;
        Ok(Traced(Box::new(footprint)))
    }

    /// Holds the users' mappers of a task that has been [traced](Self::trace) to their laws, on
    /// a few chunks: the halves of the index space, its ends, and some at random. O(accesses ·
    /// mapper evaluation), about a hundred evaluations each.
    ///
    /// # Errors
    /// [`DeclareError::UnlawfulMapper`].
    pub fn check_laws(&self, spec: &TaskSpec) -> Result<(), DeclareError> {
        let space = (spec.work.dims(), spec.work.extent());
        for access in spec.buffer_accesses().filter(|access| access.is_on_trust()) {
            let info = self.buffers.iter().find(|info| info.id == access.buffer);
            let Some(info) = info else { continue };
            let buffer = (info.dims, info.extent);
            verify_mapper(&access.mapper, space, buffer, FEW).map_err(|violation| {
                let (task, buffer) = (describe(spec, self.next), info.name.clone());
                DeclareError::UnlawfulMapper { task, buffer, violation }
            })?;
        }
        Ok(())
    }

    /// The id that the task will get if no other is submitted before it.
    #[must_use]
    pub const fn next(&self) -> TaskId {
        self.next
    }
}
