//! What the accesses of a task are bound to, one after the other.

use celerity_executor::BoundMemory;

/// What the accesses of a task to buffers are bound to, in order: each takes its own.
pub(crate) type Memories<'b, 'm> = std::slice::Iter<'b, BoundMemory<'m>>;

/// The memory of an access to a buffer.
pub(super) fn next<'b, 'm>(memory: &mut Memories<'b, 'm>) -> &'b BoundMemory<'m> {
    memory.next().expect("each access to a buffer is bound to memory")
}
