//! The tasks of a reduction, as the facade lowers one, scheduled on every node of a cluster before the
//! eyes of the schedule checker. Random programs have none: the items of a tile write one element
//! together, which models that look at items do not know.

use std::sync::Arc;

use celerity_cdag::{CommandGraph, CommandGraphConfig, NodeId};
use celerity_checker::{Finding, NodeChecker, NodeCheckerConfig};
use celerity_idag::{InstructionGraph, InstructionGraphConfig, Schedule};
use celerity_regions::{Box3, Region};
use celerity_tdag::{
    Access, AccessMode, BufferInfo, IndexSpace, Mapper, NewBuffer, Task, TaskGraph,
    TaskGraphConfig, TaskSpec, Tiling, Work,
};

/// A reduction over an index space into one number, on a cluster.
#[derive(Clone, Copy, Debug)]
pub struct ReductionCase {
    /// The items.
    pub space: IndexSpace,
    /// Nodes of the cluster, at least one.
    pub nodes: usize,
    /// Devices of each node, at least one.
    pub devices: usize,
}

impl ReductionCase {
    /// Schedules it, and lets the checker look at every node. `read` may change what the last task
    /// reads of the partial results.
    ///
    /// # Errors
    /// What the checker finds first.
    ///
    /// # Panics
    /// If the tasks are refused.
    pub fn check(&self, read: impl FnOnce(Region) -> Region) -> Result<(), Box<Finding>> {
        let (tasks, buffers) = self.tasks(read);
        (0..self.nodes).try_for_each(|node| self.check_on(node as u64, &tasks, &buffers))
    }

    /// How many tiles there are, with a partial result each.
    #[must_use]
    pub fn tiles(&self) -> usize {
        usize::try_from(Tiling::of(&self.space, 8).tiles()).expect("tiles are few")
    }

    /// The task graph, with the partial results and the number.
    fn tasks(&self, read: impl FnOnce(Region) -> Region) -> (Vec<Arc<Task>>, [Arc<BufferInfo>; 2]) {
        let tiling = Tiling::of(&self.space, 8);
        let space = tiling.of_whole_tiles(self.space);
        let mut graph = TaskGraph::new(TaskGraphConfig::default());
        let mut buffer = |name: &str, dims, extent| {
            let (elem_size, elem_align, host_initialized) = (8, 8, false);
            let name = Some(name.into());
            let new = NewBuffer { name, dims, extent, elem_size, elem_align, host_initialized };
            graph.create_buffer(new)
        };
        let partials = buffer("partial results", 1, tiling.partials());
        let result = buffer("result", 0, Box3::UNIT);
        let mut left = Region::empty();
        for chunk in space.split(&space.extent, self.nodes).iter() {
            left.union_with(&tiling.folded(&chunk));
        }
        let tiles = |mode| Access::buffer(partials.id, mode, Mapper::Tiles(Arc::new(tiling)));
        let folding = IndexSpace { oversubscription: 1, ..space };
        let combination = vec![
            Access::buffer(result.id, AccessMode::Write, Mapper::All),
            Access::buffer(partials.id, AccessMode::Read, Mapper::fixed(read(left))),
        ];
        let steps = [
            ("reduce", Work::Device(space), vec![tiles(AccessMode::Write)]),
            (
                "fold",
                Work::HostSplit { space: folding, group: None },
                vec![tiles(AccessMode::ReadWrite)],
            ),
            ("combine", Work::Combine { operator: 0 }, combination),
        ];
        let mut tasks = vec![graph.start()];
        for (name, work, accesses) in steps {
            let spec = TaskSpec { name: name.into(), work, accesses, location: None };
            let declared = graph.declare(spec).expect("the facade submits the same");
            graph.commit(declared, &mut tasks);
        }
        (tasks, [partials, result])
    }

    fn check_on(
        &self,
        node: u64,
        tasks: &[Arc<Task>],
        buffers: &[Arc<BufferInfo>],
    ) -> Result<(), Box<Finding>> {
        let (local, nodes, devices) = (NodeId::from_index(node), self.nodes, self.devices);
        let mut checker = NodeChecker::new(NodeCheckerConfig::new(nodes, local, devices));
        let mut commands = CommandGraph::new(CommandGraphConfig { nodes, local });
        let mut instructions = InstructionGraph::new(InstructionGraphConfig { devices });
        for buffer in buffers {
            commands.register_buffer(buffer);
            let placed = instructions.register_buffer(buffer);
            checker.create_buffer(buffer, placed.map(|placed| placed.allocation));
        }
        for task in tasks {
            let (mut of_task, mut schedule) = (Vec::new(), Schedule::default());
            commands.schedule(task, &mut of_task, &mut Vec::new());
            for command in &of_task {
                instructions.schedule(command, task, &mut schedule, &mut Vec::new());
            }
            checker.task(task, &of_task, &schedule.instructions, &schedule.pilots)?;
        }
        Ok(())
    }
}
