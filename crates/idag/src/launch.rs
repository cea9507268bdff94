//! Last pass: kernels and host tasks, bound to the memory that earlier passes
//! have allocated and made current.

use celerity_regions::Box3;
use celerity_tdag::{GroupOrder, Task};

use crate::buffer::{BufferState, Buffers};
use crate::emit::Waits;
use crate::emitter::Emitter;
use crate::instruction::{BoundAccess, InstructionId, InstructionKind, MemoryId};
use crate::objects::LaunchOrder;
use crate::plan::{LaunchSite, PlannedAccess, PlannedLaunch};

pub(crate) fn launch(
    emitter: &mut Emitter<'_>,
    buffers: &mut Buffers,
    task: &Task,
    launch: PlannedLaunch<'_>,
    on_host: &mut HostOrder<'_>,
) {
    let PlannedLaunch { site: LaunchSite { device, memory, chunk }, accesses: planned } = launch;
    emitter.launch(|id, waits| {
        // Noted as the reader or writer at once: accesses of a task do not wait for each other.
        let bind = |access: &PlannedAccess| {
            bind(buffers.get_mut(access.buffer), memory, access, id, waits)
        };
        let accesses: Box<[BoundAccess]> = planned.iter().map(bind).collect();
        match device {
            Some(device) => InstructionKind::Kernel { device, task: task.id, chunk, accesses },
            None => on_host.host_task(id, task, (chunk, accesses), waits),
        }
    });
}

/// What orders the host tasks of one command beside memory: their group, and host objects. Kernels
/// have neither.
pub(crate) struct HostOrder<'a> {
    pub(crate) groups: &'a mut GroupOrder<InstructionId>,
    pub(crate) objects: LaunchOrder,
}

impl HostOrder<'_> {
    /// The next host task, with what else it has to wait for and must not meet.
    #[inline(never)]
    fn host_task(
        &mut self,
        id: InstructionId,
        task: &Task,
        (chunk, accesses): (Box3, Box<[BoundAccess]>),
        waits: &mut Waits,
    ) -> InstructionKind {
        if let Some(group) = task.work.group() {
            let before = self.groups.follow(group, id);
            #[cfg(feature = "mutants")]
            let before = celerity_mutants::Mutant::GroupForgottenByLaunches.alter(before, |_| None);
            before.into_iter().for_each(|before| waits.add(before));
        }
        self.objects.wait(waits);
        let conflicts = self.objects.conflicts(waits);
        self.objects.launched(id);
        InstructionKind::HostTask { task: task.id, chunk, accesses, conflicts }
    }
}

fn bind(
    buffer: &mut BufferState,
    memory: MemoryId,
    access: &PlannedAccess,
    id: InstructionId,
    waits: &mut Waits,
) -> BoundAccess {
    let region = access.region.clone();
    if region.is_empty() {
        return BoundAccess { buffer: access.buffer, placement: None, region };
    }
    let backing = buffer.backing(memory, &access.bounds);
    let placement = Some(backing.placement);
    if access.mode.writes() {
        backing.before_write(&region, waits);
        backing.note_write(id, &region);
        buffer.note_production(&region, id, memory);
    } else {
        backing.before_read(&region, waits);
        backing.note_read(id, &region);
    }
    BoundAccess { buffer: access.buffer, placement, region }
}
