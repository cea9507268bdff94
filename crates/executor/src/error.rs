//! Everything that can end a run, in words that a user knows: task and buffer
//! names, nodes, devices. Knows nothing of how errors travel.

use std::fmt;

use celerity_cdag::NodeId;
use celerity_idag::DeviceId;
use celerity_tdag::{Count, DeclareError, SourceLocation};
use thiserror::Error;

use crate::arbiter::ArbiterError;

mod causes;
mod communication;
mod no_room;
mod schedule;
mod task_error;

pub(crate) use no_room::bytes_are;

pub(crate) use causes::text_of_error;
pub use causes::write_with_causes;
pub use communication::CommunicationError;
pub use no_room::{NoRoom, Resident};
pub use schedule::ScheduleError;
pub use task_error::TaskError;

/// What stopped a run.
///
/// A run has one first error. Every node of the cluster stops on it, and every
/// node's user code gets the same value. Its `Debug` is what people read: the text, and a
/// line for each cause that it does not tell.
#[derive(Clone, PartialEq, Eq, Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum RunError {
    /// A kernel, a host task or a fence's copy panicked.
    #[error("task {task} panicked on {node}{}: {message}", on_device(*.device))]
    TaskPanicked {
        /// Id, name and source line.
        task: String,
        /// The node that the task ran on.
        node: NodeId,
        /// Where it ran, if it was a kernel.
        device: Option<DeviceId>,
        /// What the panic said.
        message: String,
    },
    /// A host task, or a call on a device, has returned an error.
    #[error("task {task} failed on {node}{}: {error}", on_device(*.device))]
    TaskFailed {
        /// Id, name and source line.
        task: String,
        /// The node that the task ran on.
        node: NodeId,
        /// Where it ran, if it was a call on a device.
        device: Option<DeviceId>,
        /// What it has returned; the [source](std::error::Error::source) of this error.
        #[source]
        error: TaskError,
    },
    /// A memory has no room for a buffer's next allocation.
    #[error("out of memory on {node}: {error}")]
    OutOfMemory {
        /// The node that it happened on.
        node: NodeId,
        /// Who wants what, and who has it.
        error: Box<NoRoom>,
    },
    /// A mistake in the program that only shows when work is assigned.
    #[error("cannot schedule the program on {node}: {error}")]
    Schedule {
        /// The node that found it out first.
        node: NodeId,
        /// What is wrong: names task, buffer and box.
        error: Box<ScheduleError>,
    },
    /// The initial data of a buffer is not as long as the buffer.
    #[error(
        "buffer {buffer} holds {}, but its initial data has {actual}; provide one value per \
         element",
        Count(*expected, "byte")
    )]
    HostDataLength {
        /// The buffer's name, as messages print it.
        buffer: String,
        /// Bytes of the whole buffer.
        expected: u64,
        /// Bytes of the initial data.
        actual: u64,
    },
    /// User code outside of tasks returned an error or panicked.
    #[error("the program stopped on {node}: {message}")]
    Stopped {
        /// The node that it happened on.
        node: NodeId,
        /// The error or panic.
        message: String,
    },
    /// What a peer announced does not fit what is expected from it.
    #[error(
        "{node} got a message{} that it cannot place: {error}; do all nodes run the same program?",
        for_task(task.as_deref())
    )]
    Arbitration {
        /// The node that received the message.
        node: NodeId,
        /// The task that it is for, if the node knows it: id, name and source line.
        task: Option<String>,
        /// What is wrong with it.
        error: Box<ArbiterError>,
    },
    /// The nodes run different programs.
    #[error(
        "the nodes run different programs: {}; all nodes must create the same buffers and submit \
         the same tasks in the same order",
        difference(*node, task, *other, other_task)
    )]
    Diverged {
        /// One of the nodes.
        node: NodeId,
        /// Its first task that differs: id, name and source line.
        task: String,
        /// A node that differs from it.
        other: NodeId,
        /// What that one has submitted in the same place.
        other_task: String,
    },
    /// Processes run with different settings, so that the runtime adds other tasks to their programs, or finds other operations in
    /// them.
    #[error(
        "`{setting}` is {value} on {node}, but {other_value} on {other}; it must be the same on all nodes: let the \
         launcher pass each variable on to all processes, as `mpirun -x` does"
    )]
    SettingsDiffer {
        /// Its name.
        setting: String,
        /// One of the nodes.
        node: NodeId,
        /// What it has there.
        value: String,
        /// A node that differs from it.
        other: NodeId,
        /// What it has there.
        other_value: String,
    },
    /// A range mapper tells nodes different things, by which they would wait for each other
    /// without end.
    #[error(
        "a range mapper of task {task} says something else on {node} than on {other}; a mapper \
         must tell all nodes the same of the same part of an index space, whenever it is asked"
    )]
    MapperDiffers {
        /// The first task about which nodes differ: id, name and source line.
        task: String,
        /// One of the nodes.
        node: NodeId,
        /// The node that has something else.
        other: NodeId,
    },
    /// Nodes have created a buffer from different contents, of which each would use its own.
    #[error(
        "buffer {buffer} starts with other contents on {node} than on {other}; each node uses \
         those that it is given, so give all the same: nothing of a clock, of random numbers \
         without a seed, or of a file that nodes have of their own"
    )]
    ContentsDiffer {
        /// The buffer's name, as messages print it.
        buffer: String,
        /// One of the nodes.
        node: NodeId,
        /// The node that has something else.
        other: NodeId,
    },
    /// The communicator cannot do its work any more.
    #[error("communication failed on {node}: {error}")]
    Communication {
        /// The node that found it out first.
        node: NodeId,
        /// What the communicator says.
        error: Box<CommunicationError>,
    },
    /// The user has interrupted the process.
    #[error("interrupted by {signal}")]
    Interrupted {
        /// The signal, as in `SIGINT`.
        signal: String,
    },
    /// A call that would wait for itself where it was made: in a range mapper, in a task, or in what the runtime calls on threads of
    /// its own, as the destructor of what a task owned.
    #[error("{what}")]
    Misplaced {
        /// Who made it, why it cannot be there, and what to do.
        what: String,
    },
    /// The cluster cannot be started as configured.
    #[error("cannot start the cluster: {what}")]
    Start {
        /// What is wrong and what to change.
        what: String,
    },
    /// One of the cluster's processes cannot take part in the run, so that nobody can.
    #[error("{node} could not start: {what}")]
    NotStarted {
        /// The process's first node.
        node: NodeId,
        /// What is wrong there, and what to change.
        what: String,
    },
    /// The frontend was used after its run had ended, or the program had finished it.
    #[error(
        "the run has ended on {node}; submit work inside of the run's closure, and before the \
         program finishes the run"
    )]
    Ended {
        /// The node that the frontend submits to.
        node: NodeId,
    },
    /// The runtime itself failed.
    #[error("the runtime failed, which is a defect of the runtime: {message}")]
    Internal {
        /// What the runtime knows of its defect, for a report.
        message: String,
    },
}

impl RunError {
    /// The error of a whole cluster of which one process, with the first node `node`, cannot
    /// start for this reason.
    #[must_use]
    pub fn of_start_on(self, node: NodeId) -> Self {
        let what = match self {
            Self::NotStarted { .. } => return self,
            Self::Start { what } => what,
            other => other.to_string(),
        };
        Self::NotStarted { node, what }
    }
}

impl fmt::Debug for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_with_causes(self, f)
    }
}

fn for_task(task: Option<&str>) -> String {
    task.map_or_else(String::new, |task| format!(" for {task}"))
}

/// Tasks of one name may differ in what cannot be told from it.
fn difference(node: NodeId, task: &str, other: NodeId, other_task: &str) -> String {
    if task == other_task {
        return format!(
            "{node} and {other} have both submitted {task}, but with other accesses or another \
             index space, or after other buffers or host objects were created"
        );
    }
    format!("{node} has submitted {task}, but {other} {other_task}")
}

/// Why a task was not accepted.
#[derive(Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The task itself is wrong; the run goes on.
    #[error(transparent)]
    Declare(#[from] DeclareError),
    /// The devices cannot run the kernel; the run goes on.
    #[error("task \"{name}\"{}: {reason}", at_location(location.as_ref()))]
    Kernel {
        /// The task's name, as the program gave it.
        name: String,
        /// Where it was submitted.
        location: Option<SourceLocation>,
        /// Why not, and what to do.
        reason: String,
    },
    /// The run has failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl fmt::Debug for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_with_causes(self, f)
    }
}

fn at_location(location: Option<&SourceLocation>) -> String {
    location.map_or_else(String::new, |location| format!(" at {location}"))
}

fn on_device(device: Option<DeviceId>) -> String {
    device.map_or_else(String::new, |device| format!(", {device}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_where_and_what() {
        let error = RunError::TaskPanicked {
            task: "T3 \"step\" at main.rs:4".to_owned(),
            node: NodeId::from_index(1),
            device: Some(DeviceId::from_index(2)),
            message: "boom".to_owned(),
        };
        assert_eq!(error.to_string(), "task T3 \"step\" at main.rs:4 panicked on N1, D2: boom");
    }

    #[test]
    fn who_could_not_start_is_named_once() {
        let what = "no threads".to_owned();
        let node = NodeId::from_index(1);
        let error = RunError::Start { what }.of_start_on(node);
        assert_eq!(error.to_string(), "N1 could not start: no threads");
        assert_eq!(error.clone().of_start_on(NodeId::from_index(2)), error);
    }

    #[test]
    fn what_a_host_task_returns_is_the_cause_and_is_told_once() {
        let node = NodeId::from_index(0);
        let failed = |error| RunError::TaskFailed {
            task: "T3 \"save\"".to_owned(),
            node,
            device: None,
            error,
        };
        let error = failed(TaskError::new(std::io::Error::other("the disk is full")));
        assert_eq!(format!("{error:?}"), "task T3 \"save\" failed on N0: the disk is full");
        let cause = std::error::Error::source(&error).expect("there is a cause");
        assert!(cause.downcast_ref::<std::io::Error>().is_some());
        let inner = failed(TaskError::new(SubmitError::Run(error.clone())));
        assert_eq!(inner.to_string(), format!("task T3 \"save\" failed on N0: {error}"));
        assert_ne!(inner, error);
    }
}
