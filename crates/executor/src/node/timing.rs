//! What a table of kernels' times is told: names, times, and how many bytes they touch. Changes
//! nothing but the table.

use celerity_idag::{BoundAccess, InstructionId};
use celerity_tdag::{BufferId, BufferInfo};

use crate::kernel_times::KernelTimes;
use crate::time::Span;
use crate::window::IdMap;

/// A table, and what is known of launches that have not completed.
pub(super) struct KernelTimer {
    table: KernelTimes,
    /// Bytes per element of buffers.
    elem_sizes: IdMap<BufferId, u64>,
    /// Bytes that launches touch.
    launched: IdMap<InstructionId, u64>,
}

impl KernelTimer {
    pub(super) fn new(table: KernelTimes) -> Self {
        Self { table, elem_sizes: IdMap::default(), launched: IdMap::default() }
    }

    /// A buffer has become known.
    pub(super) fn buffer(&mut self, info: &BufferInfo) {
        self.elem_sizes.insert(info.id, info.elem_size);
    }

    /// Nothing touches a buffer any more.
    pub(super) fn forget_buffer(&mut self, buffer: BufferId) {
        self.elem_sizes.remove(&buffer);
    }

    /// A kernel has been launched on these accesses.
    pub(super) fn launched(&mut self, instruction: InstructionId, accesses: &[BoundAccess]) {
        let size = |buffer| self.elem_sizes.get(&buffer).copied().unwrap_or(0);
        let bytes =
            |access: &BoundAccess| access.region.volume().saturating_mul(size(access.buffer));
        let bytes = accesses.iter().map(bytes).fold(0, u64::saturating_add);
        self.launched.insert(instruction, bytes);
    }

    /// The kernel has completed, and is called this.
    pub(super) fn completed(
        &mut self,
        instruction: InstructionId,
        name: &std::sync::Arc<str>,
        span: Option<Span>,
    ) {
        let bytes = self.launched.remove(&instruction).unwrap_or(0);
        let took = span.map(|span| span.end.since(span.start));
        self.table.add(name, took, bytes);
    }
}
