//! The rules of the task graph, and the truth: which version sequential
//! execution has in every element.

use std::sync::Arc;

use celerity_tdag::{BufferAccess, BufferId, Task, Work};
use smallvec::SmallVec;

use crate::buffers::Buffers;
use crate::geometry::{Boxes, holds, overlap};
use crate::groups::Groups;
use crate::image::{image, unclamped};
use crate::ledger::Clash;
use crate::objects::ObjectHistory;
use crate::violation::{AbstractValue, Check, Violation};
use crate::window::{GraphOfNode, NodeShape, RecentNodes};

/// The tasks that are remembered.
#[derive(Clone, Debug)]
pub(crate) struct Tasks {
    pub(crate) window: RecentNodes<Arc<Task>>,
    groups: Groups,
    pub(crate) objects: ObjectHistory,
}

/// What a task will have written once all its commands have been checked.
pub(crate) type Writes = SmallVec<[(BufferId, Boxes); 2]>;

/// What a kind of work is to the shape of a graph.
fn role(work: &Work) -> NodeShape {
    match work {
        Work::Horizon => NodeShape::Horizon,
        Work::Epoch(_) => NodeShape::Epoch,
        Work::Device(_)
        | Work::HostOnce { .. }
        | Work::HostSplit { .. }
        | Work::Fence
        | Work::Combine { .. }
        | Work::Forward => NodeShape::Work,
    }
}

impl Tasks {
    pub(crate) fn new(tracks_order: bool) -> Self {
        let (groups, objects) = (Groups::default(), ObjectHistory::default());
        Self { window: RecentNodes::new(GraphOfNode::Tasks, tracks_order), groups, objects }
    }

    /// Checks a task's edges and accesses. The truth stays as it was before the
    /// task, since that is what its commands and instructions must see.
    pub(crate) fn enter(
        &mut self,
        buffers: &mut Buffers,
        task: &Arc<Task>,
    ) -> Result<Writes, Box<Violation>> {
        let edges = task.dependencies.iter().map(|dep| dep.on.index()).collect();
        self.window.push(task.id.index(), edges, role(&task.work), task.clone())?;
        self.groups.check(&self.window, task.work.group(), task.id.index())?;
        let conflicts: SmallVec<[u64; 4]> =
            task.conflicts.as_slice().iter().map(|with| with.index()).collect();
        self.objects.check(&self.window, task.id.index(), task, &conflicts)?;
        let mut writes = Writes::new();
        for (position, access) in task.buffer_accesses().enumerate() {
            self.check_access(buffers, task, (position, access))?;
            let parts = self.order_access(buffers, task, access)?;
            if access.mode.writes() {
                writes.push((access.buffer, parts));
            }
        }
        Ok(writes)
    }

    /// Makes a task's writes true. What a forward writes is what was there.
    pub(crate) fn leave(&mut self, buffers: &mut Buffers, task: &Task, writes: Writes) -> Check {
        let me = task.id.index();
        let vertex = self.window.vertex(me);
        for (buffer, parts) in writes {
            let truth = &mut buffers.get_mut(vertex, buffer)?.truth;
            for part in parts {
                let versions = match task.work {
                    Work::Forward => truth.versions(&part),
                    _ => [(part, AbstractValue::Task(task.id))].into_iter().collect(),
                };
                versions.iter().for_each(|(part, version)| truth.write(me, part, *version));
            }
        }
        Ok(())
    }

    /// An access stays inside its buffer and shares nothing with another if one of them writes.
    fn check_access(
        &self,
        buffers: &Buffers,
        task: &Task,
        (position, access): (usize, &BufferAccess),
    ) -> Check {
        let vertex = self.window.vertex(task.id.index());
        let buffer = buffers.get(vertex, access.buffer)?;
        let (space, extent) = (task.work.extent(), buffer.info.extent);
        let conflicts = |other: &&BufferAccess| {
            other.buffer == access.buffer && (other.mode.writes() || access.mode.writes())
        };
        for other in task.buffer_accesses().take(position).filter(conflicts) {
            let [ours, theirs] =
                [access, other].map(|access| image(&access.mapper, space, space, extent));
            let shared = |part| theirs.iter().find_map(|other| overlap(part, other));
            if let Some(part) = ours.iter().find_map(shared) {
                let place = buffer.place(part);
                return Err(Violation::ConflictingAccesses { task: vertex, place }.into());
            }
        }
        let reached = unclamped(&access.mapper, space, space, extent);
        match reached.iter().find(|part| !holds(&extent, part)) {
            Some(part) => {
                let place = buffer.place(*part);
                Err(Violation::OutOfBounds { vertex, place, extent }.into())
            }
            None => Ok(()),
        }
    }

    /// Reads wait for the last writers; writes for them and their readers.
    /// Returns what is accessed.
    fn order_access(
        &self,
        buffers: &mut Buffers,
        task: &Task,
        access: &BufferAccess,
    ) -> Result<Boxes, Box<Violation>> {
        let (me, space) = (task.id.index(), task.work.extent());
        let Some(order) = self.window.order() else { return Ok(Boxes::new()) };
        let buffer = buffers.get_mut(self.window.vertex(me), access.buffer)?;
        let parts = image(&access.mapper, space, space, buffer.info.extent);
        for part in &parts {
            let mut checked = Ok(());
            if access.mode.reads() {
                checked = buffer.truth.read(order, me, part);
            }
            if access.mode.writes() {
                checked = checked.and_then(|()| buffer.truth.check_write(order, me, part));
            }
            checked.map_err(|Clash { earlier, hazard, part }| Violation::Unordered {
                later: self.window.vertex(me),
                earlier: self.window.vertex(earlier),
                hazard,
                place: buffer.place(part),
            })?;
        }
        Ok(parts)
    }
}
