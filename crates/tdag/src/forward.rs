//! What a forward task says: which data one task wrote and another one reads, by which geometry,
//! so that nodes may exchange it at once (IJPP 2024, §3.1). Knows nothing of nodes, and not whether
//! anybody does.

use celerity_regions::Region;

use crate::access::{Access, AccessMode, BufferAccess};
use crate::id::{BufferId, TaskId};
use crate::mapper::Mapper;
use crate::task::{SourceLocation, Task, Work};

/// The data that a forward task may move early. Which elements: those of the one access of the
/// task, which reads and writes them. They keep their contents.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Forward {
    /// Who wrote them.
    pub producer: ForwardEnd,
    /// Who is the first to read them elsewhere.
    pub consumer: ForwardEnd,
}

/// One end of a forward.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ForwardEnd {
    /// The task. A consumer is the next one after its forwards.
    pub task: TaskId,
    /// What it does, and so how it is assigned to nodes.
    pub work: Work,
    /// Its accesses to the buffer that write (the producer) or read (the consumer) any of the
    /// elements.
    pub accesses: Box<[BufferAccess]>,
}

/// A forward to insert in front of its consumer, by
/// [`TaskGraph::forward`](crate::TaskGraph::forward).
#[derive(Clone, Debug)]
pub struct NewForward {
    /// The buffer.
    pub buffer: BufferId,
    /// The elements; not empty.
    pub region: Region,
    /// Both ends. Which task the consumer is the graph knows.
    pub forward: Forward,
    /// Where the consumer was submitted.
    pub location: Option<SourceLocation>,
}

/// What is wrong with what a task says of a forward, as far as the task itself tells.
pub(crate) fn flaw(task: &Task) -> Option<&'static str> {
    let forward = match (&task.work, &task.forward) {
        (Work::Forward, Some(forward)) => forward,
        (Work::Forward, None) => return Some("does not say between whom"),
        (_, Some(_)) => return Some("does something else"),
        (_, None) => return None,
    };
    let [Access::Buffer(BufferAccess { buffer, mode: AccessMode::ReadWrite, mapper })] =
        &*task.accesses
    else {
        return Some("does not read and write one buffer");
    };
    match mapper {
        Mapper::Fixed(region) if !region.is_empty() => {}
        _ => return Some("does not name its elements"),
    }
    let Forward { producer, consumer } = &**forward;
    if producer.task >= task.id || consumer.task <= task.id {
        return Some("does not lie between its producer and its consumer");
    }
    let fits = |end: &ForwardEnd, does: fn(AccessMode) -> bool| {
        let mut accesses = end.accesses.iter();
        !end.accesses.is_empty() && accesses.all(|one| one.buffer == *buffer && does(one.mode))
    };
    if !fits(producer, AccessMode::writes) || !fits(consumer, AccessMode::reads) {
        return Some("has an end that does not access its buffer in this way");
    }
    let is_empty = |end: &ForwardEnd| end.work.space().is_some_and(|space| space.extent.is_empty());
    (is_empty(producer) || is_empty(consumer)).then_some("has an end without items")
}
