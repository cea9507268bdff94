//! What travels from user code to a node: owned, immutable, once.

use std::sync::Arc;

use celerity_cpd::Weighed;
use celerity_idag::Lookahead;
use celerity_tdag::{BufferId, BufferInfo, ObjectId, Task};

use crate::error::RunError;
use crate::work::{HostData, Payload};

/// One message to a [`NodeMachine`](crate::NodeMachine). Order matters: a buffer
/// comes before the tasks that name it, tasks come in order of their ids, and
/// nothing comes after [`Closed`](Self::Closed).
pub enum Submission {
    /// A buffer has been created.
    Buffer {
        /// Its description.
        info: Arc<BufferInfo>,
        /// What the type of its elements is called on all nodes; nothing if their size says enough.
        element_type: &'static str,
        /// Its initial contents; present exactly if the description says so.
        data: Option<HostData>,
    },
    /// A buffer has got a new name.
    Renamed(Arc<BufferInfo>),
    /// No later task names the buffer.
    Dropped(BufferId),
    /// A host object has been created: part of the program, though nothing of it is here.
    Object(ObjectId),
    /// The next task.
    Task {
        /// Its record.
        task: Arc<Task>,
        /// What to run, for tasks that run something.
        payload: Option<Payload>,
    },
    /// How what the next task reads is to move has been weighed. Boxed, as it is rare.
    Weighed(Box<Weighed>),
    /// How long to hold back later commands that will allocate.
    Lookahead(Lookahead),
    /// Nothing is to be held back any more.
    Flush,
    /// User code has failed: the run must stop. Boxed, like a failure among orders, since
    /// queues are made of what is sent for every task.
    Abort(Box<RunError>),
    /// Nothing else will come.
    Closed,
}
