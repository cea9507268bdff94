//! The way of an instruction through a node: admitted, assigned, retired. Joins the engine, which
//! says what may start, with the table of what is open, which says what it is. Knows neither
//! memory nor networks, and performs nothing.

use celerity_idag::{DeviceId, Instruction, InstructionId, InstructionKind};
use celerity_tdag::TaskId;
use smallvec::SmallVec;

use super::open::{Open, OpenInstructions};
use super::tasks::HostLanes;
use crate::engine::{Assignment, Engine, LaneGroup, LaneId, LaneJob, Step};
use crate::lanes::LaneLayout;
use crate::time::Time;

/// The instructions of one node that have not completed.
pub(super) struct Flow {
    engine: Engine,
    lanes: LaneLayout,
    open: OpenInstructions,
}

/// An instruction that may start.
#[derive(Debug)]
#[must_use = "it will not be assigned again"]
pub(super) struct Start {
    pub(super) instruction: InstructionId,
    pub(super) kind: InstructionKind,
    /// Who runs it; the node itself, if not given.
    pub(super) lane: Option<LaneId>,
    /// What the lane has to wait for.
    pub(super) after: SmallVec<[LaneJob; 2]>,
}

impl Flow {
    /// For a node with these lanes, of which `joins` can wait for each other.
    pub(super) fn new(lanes: LaneLayout, joins: Option<LaneGroup>) -> Self {
        let engine = Engine::new(lanes.count()).with_joins(joins);
        Self { engine, lanes, open: OpenInstructions::default() }
    }

    /// The lanes that there are.
    pub(super) fn lanes(&self) -> LaneLayout {
        self.lanes
    }

    /// Adds an instruction whose dependencies have been added before, and so has what it must not
    /// run at the same time as, for these lanes. Returns the device whose lanes may run it.
    pub(super) fn admit(
        &mut self,
        Instruction { id, kind, dependencies }: Instruction,
        lanes: HostLanes,
        now: Time,
    ) -> Option<DeviceId> {
        let target = match lanes {
            HostLanes::Prompt => self.lanes.fences(),
            HostLanes::Collective(group) => self.lanes.collective(group),
            HostLanes::OfKind => self.lanes.target(kind.effects().lane),
        };
        let _: Step = self.engine.submit(id, &dependencies, target);
        let conflicts = kind.effects().conflicts;
        if !conflicts.is_empty() {
            let _: Step = self.engine.exclude(id, conflicts);
        }
        self.open.admit(id, kind, now);
        self.lanes.device_of(target)
    }

    /// Takes what may start next, if anything may.
    pub(super) fn next(&mut self, now: Time) -> Option<Start> {
        let Assignment { instruction, lane, after } = self.engine.next_assignment()?;
        let kind = self.open.issue(instruction, lane, now);
        Some(Start { instruction, kind, lane, after })
    }

    /// A started instruction has completed. Returns the device on whose lane it was.
    pub(super) fn retire(&mut self, instruction: InstructionId) -> Option<DeviceId> {
        let lane = self.open.retire(instruction);
        let _: Step = self.engine.complete(instruction);
        lane.and_then(|lane| self.lanes.device(lane))
    }

    /// The task whose payload a started instruction runs, and the device, if there is one.
    pub(super) fn run_by(&self, instruction: InstructionId) -> Option<(TaskId, Option<DeviceId>)> {
        self.open.task_of(instruction)
    }

    /// How many instructions have not completed.
    pub(super) fn incomplete(&self) -> usize {
        self.engine.incomplete()
    }

    /// The oldest instruction that has not completed; if there is none, the next that is admitted.
    pub(super) fn oldest(&self) -> InstructionId {
        self.engine.oldest()
    }

    /// The next instruction that is admitted.
    pub(super) fn next_admitted(&self) -> InstructionId {
        self.engine.following()
    }

    /// What has not completed, in ascending order.
    pub(super) fn open(&self) -> impl Iterator<Item = (InstructionId, &Open)> {
        self.open.iter()
    }

    /// Pairs of an instruction and one that it waits for.
    pub(super) fn edges(&self) -> impl Iterator<Item = (InstructionId, InstructionId)> {
        self.engine.open_edges()
    }

    /// Drops the descriptions of what will not run any more.
    pub(super) fn forget(&mut self) {
        self.open = OpenInstructions::default();
    }
}

#[cfg(test)]
mod tests {
    use celerity_idag::{AllocationId, MemoryId};
    use celerity_regions::Box3;
    use celerity_tdag::{BufferId, Conflicts};

    use super::*;

    const DEVICE: DeviceId = DeviceId::from_index(0);

    fn id(index: u64) -> InstructionId {
        InstructionId::from_index(index)
    }

    fn flow() -> Flow {
        Flow::new(LaneLayout::new(1), None)
    }

    fn instruction(index: u64, kind: InstructionKind, after: &[u64]) -> Instruction {
        let dependencies = after.iter().map(|&index| id(index)).collect();
        Instruction { id: id(index), kind, dependencies }
    }

    fn alloc() -> InstructionKind {
        let (allocation, buffer) = (AllocationId::from_index(1), BufferId::from_index(0));
        let memory = MemoryId::of_device(DEVICE);
        InstructionKind::Alloc { allocation, memory, buffer, bytes: 8, alignment: 8 }
    }

    fn kernel() -> InstructionKind {
        let (task, chunk) = (TaskId::from_index(3), Box3::UNIT);
        InstructionKind::Kernel { device: DEVICE, task, chunk, accesses: Box::default() }
    }

    /// Conflicts with the given ones.
    fn host_task(others: &[u64]) -> InstructionKind {
        let (task, chunk, accesses) = (TaskId::from_index(4), Box3::UNIT, Box::default());
        let conflicts = Conflicts::of(others.iter().map(|&index| id(index)));
        InstructionKind::HostTask { task, chunk, accesses, conflicts }
    }

    fn started(flow: &mut Flow) -> Vec<(InstructionId, Option<LaneId>)> {
        let starts = std::iter::from_fn(|| flow.next(Time::START));
        starts.map(|start| (start.instruction, start.lane)).collect()
    }

    #[test]
    fn an_instruction_starts_when_all_before_it_has_completed_and_counts_until_then() {
        let mut flow = flow();
        assert_eq!(flow.admit(instruction(0, alloc(), &[]), HostLanes::OfKind, Time::START), None);
        let device = flow.admit(instruction(1, kernel(), &[0]), HostLanes::OfKind, Time::START);
        assert_eq!(device, Some(DEVICE));
        assert_eq!(started(&mut flow), [(id(0), None)]);
        assert_eq!((flow.run_by(id(0)), flow.run_by(id(1))), (None, None));
        assert_eq!(flow.retire(id(0)), None, "the node itself has done it");
        let [(kernel, Some(_))] = started(&mut flow)[..] else { panic!("its memory is there") };
        assert_eq!(flow.run_by(kernel), Some((TaskId::from_index(3), Some(DEVICE))));
        assert_eq!((flow.retire(kernel), flow.incomplete()), (Some(DEVICE), 0));
        assert_eq!(flow.open().count(), 0);
    }

    #[test]
    fn copies_for_fences_have_lanes_apart_from_host_tasks() {
        let mut flow = flow();
        for (index, lanes) in [(0, HostLanes::Prompt), (1, HostLanes::OfKind)] {
            let task = instruction(index, host_task(&[]), &[]);
            let known = flow.admit(task, lanes, Time::START);
            assert_eq!(known, None, "the host is no device");
        }
        let lanes: Vec<_> = started(&mut flow).iter().map(|start| start.1).collect();
        let layout = flow.lanes();
        let may_block = lanes.iter().map(|lane| layout.may_block(lane.expect("jobs have lanes")));
        assert_eq!(may_block.collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn of_two_that_conflict_one_starts_when_the_other_is_over() {
        let mut flow = flow();
        for (index, others) in [(0, &[][..]), (1, &[0]), (2, &[])] {
            flow.admit(instruction(index, host_task(others), &[]), HostLanes::OfKind, Time::START);
        }
        let all: Vec<_> =
            started(&mut flow).into_iter().map(|(instruction, _)| instruction).collect();
        assert!(all.contains(&id(2)) && all.len() == 2, "{all:?}");
        let first = all[usize::from(all[0] == id(2))];
        flow.retire(first);
        let rest: Vec<_> =
            started(&mut flow).into_iter().map(|(instruction, _)| instruction).collect();
        assert_eq!(rest, [id(1 - first.index())]);
    }

    #[test]
    fn what_waits_is_known_with_what_it_waits_for_until_it_is_forgotten() {
        let mut flow = flow();
        for (index, kind, after) in [(0, alloc(), &[][..]), (1, kernel(), &[0])] {
            flow.admit(instruction(index, kind, after), HostLanes::OfKind, Time::START);
        }
        assert_eq!(flow.edges().collect::<Vec<_>>(), [(id(1), id(0))]);
        assert_eq!(flow.open().map(|(open, _)| open).collect::<Vec<_>>(), [id(0), id(1)]);
        flow.forget();
        assert_eq!(flow.open().count(), 0);
    }
}
