//! What makes a forward task: a look at whether one is lawful. Knows nothing of nodes.

use crate::access::{Access, AccessMode, BufferAccess};
use crate::mapper::Mapper;
use crate::task::{Forward, ForwardEnd, Task, Work};

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
