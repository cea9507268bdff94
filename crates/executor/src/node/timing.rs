//! What a node tells a table of its kernels' times, if it has one; without one, each of
//! these is a branch. Changes nothing but the table.

use std::sync::Arc;

use celerity_idag::{BoundAccess, DeviceId, InstructionId};
use celerity_tdag::{BufferId, BufferInfo, TaskId};

use super::Executor;
use crate::kernel_times::KernelTimes;
use crate::time::{Clock, Span};
use crate::window::IdMap;

/// A table, and what is known of launches that have not completed.
pub(super) struct KernelTimer {
    table: KernelTimes,
    /// Bytes per element of every buffer: launches may come after the end of theirs.
    elem_sizes: IdMap<BufferId, u64>,
    /// Bytes that launches touch.
    launched: IdMap<InstructionId, u64>,
}

impl Executor {
    /// Tells `table` of each kernel that completes, by times on `clock`.
    pub(crate) fn time_kernels(&mut self, table: KernelTimes, clock: Clock) {
        self.time_jobs(clock);
        let (elem_sizes, launched) = (IdMap::default(), IdMap::default());
        self.kernel_timer = Some(Box::new(KernelTimer { table, elem_sizes, launched }));
    }

    /// Has the backend time jobs, which may be asked of it once.
    pub(super) fn time_jobs(&mut self, clock: Clock) {
        if !std::mem::replace(&mut self.times_jobs, true) {
            self.backend.time_jobs(clock);
        }
    }

    pub(super) fn time_buffer(&mut self, info: &Arc<BufferInfo>) {
        if let Some(timer) = &mut self.kernel_timer {
            timer.elem_sizes.insert(info.id, info.elem_size);
        }
    }

    pub(super) fn time_launch(&mut self, instruction: InstructionId, accesses: &[BoundAccess]) {
        if let Some(timer) = &mut self.kernel_timer {
            let size = |buffer| timer.elem_sizes.get(&buffer).copied().unwrap_or(0);
            let bytes =
                |access: &BoundAccess| access.region.volume().saturating_mul(size(access.buffer));
            let bytes = accesses.iter().map(bytes).fold(0, u64::saturating_add);
            timer.launched.insert(instruction, bytes);
        }
    }

    /// A job has completed: a kernel, if there is a device.
    pub(super) fn time_job(
        &mut self,
        instruction: InstructionId,
        job: Option<(TaskId, Option<DeviceId>)>,
        span: Option<Span>,
    ) {
        if let (Some(timer), Some((task, Some(_)))) = (&mut self.kernel_timer, job) {
            let running = self.tasks.get(task.index()).expect("tasks outlive their instructions");
            let bytes = timer.launched.remove(&instruction).unwrap_or(0);
            let took = span.map(|span| span.end.since(span.start));
            timer.table.add(&running.task.name, took, bytes);
        }
    }
}
