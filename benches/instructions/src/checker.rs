//! The schedule checker alone: the graphs are there before anything is counted.

use std::sync::Arc;

use celerity_benches::topologies::{Sink, Topology};
use celerity_cdag::{Command, CommandGraph, CommandGraphConfig, NodeId};
use celerity_checker::{CheckerCall, Depth, NodeCheckerConfig, check_schedule};
use celerity_idag::{DeviceMemory, InstructionGraph, InstructionGraphConfig, Placement, Schedule};
use celerity_regions::Box3;
use celerity_tdag::{
    Access, BufferId, BufferInfo, EpochAction, IndexSpace, NewBuffer, Task, TaskGraph,
    TaskGraphConfig, TaskSpec, Work,
};

use crate::case::Case;

const NODES: usize = 4;
const DEVICES: usize = 2;

pub(crate) fn cases() -> Vec<Case> {
    let case = |topology: Topology, depth, name| {
        Case::new(format!("checker, {name}/{}", topology.name()), move || {
            let cluster: Vec<Recorded> = (0..NODES).map(|node| record(topology, node)).collect();
            move || check(&cluster, depth)
        })
    };
    let topologies = [Topology::WaveSim, Topology::Jacobi, Topology::ContractingTree];
    let both =
        |topology| [case(topology, Depth::Full, "full"), case(topology, Depth::Cheap, "cheap")];
    topologies.into_iter().flat_map(both).collect()
}

/// # Panics
/// If the checker finds something: the benchmarks' programs are valid.
fn check(cluster: &[Recorded], depth: Depth) {
    let config = NodeCheckerConfig {
        nodes: NODES,
        local: NodeId::from_index(0),
        devices: DEVICES,
        device_memory: DeviceMemory::Own,
        device_wires: false,
        device_collectives: false,
        depth,
        eager_allocation: false,
    };
    let verdict = check_schedule(config, cluster.iter().map(Recorded::events));
    if let Err(finding) = verdict {
        panic!("{finding}");
    }
}

/// One node's graphs.
struct Recorded {
    tasks: TaskGraph,
    commands: CommandGraph,
    instructions: InstructionGraph,
    made: Vec<Made>,
}

enum Made {
    Buffer(Arc<BufferInfo>, Option<Placement>),
    Task(Arc<Task>, Vec<Command>, Schedule),
}

fn record(topology: Topology, node: usize) -> Recorded {
    let local = NodeId::from_index(node as u64);
    let config = InstructionGraphConfig { devices: DEVICES };
    let mut recorded = Recorded {
        tasks: TaskGraph::new(TaskGraphConfig::default()),
        commands: CommandGraph::new(CommandGraphConfig { nodes: NODES, local }),
        instructions: InstructionGraph::new(config),
        made: Vec::new(),
    };
    let first = recorded.tasks.start();
    recorded.schedule(first);
    topology.submit(&mut recorded);
    let mut last = Vec::new();
    recorded.tasks.epoch(EpochAction::Shutdown, &mut last);
    last.into_iter().for_each(|task| recorded.schedule(task));
    recorded
}

impl Recorded {
    fn schedule(&mut self, task: Arc<Task>) {
        let (mut commands, mut schedule) = (Vec::new(), Schedule::default());
        self.commands.schedule(&task, &mut commands, &mut Vec::new());
        for command in &commands {
            self.instructions.schedule(command, &task, &mut schedule, &mut Vec::new());
        }
        self.made.push(Made::Task(task, commands, schedule));
    }

    fn events(&self) -> impl Iterator<Item = CheckerCall<'_>> {
        self.made.iter().map(|made| match made {
            Made::Buffer(info, user_data) => {
                CheckerCall::Create(info, user_data.map(|it| it.allocation))
            }
            Made::Task(task, commands, schedule) => {
                CheckerCall::Task(task, commands, &schedule.instructions, &schedule.pilots)
            }
        })
    }
}

impl Sink for Recorded {
    fn nodes(&self) -> usize {
        NODES
    }

    fn buffer(&mut self, dims: u8, extent: Box3, host_initialized: bool) -> BufferId {
        let new =
            NewBuffer { name: None, dims, extent, elem_size: 4, elem_align: 4, host_initialized };
        let info = self.tasks.create_buffer(new);
        self.commands.register_buffer(&info);
        let user_data = self.instructions.register_buffer(&info);
        self.made.push(Made::Buffer(info.clone(), user_data));
        info.id
    }

    fn task(&mut self, dims: u8, extent: Box3, accesses: Vec<Access>) {
        let work = Work::Device(IndexSpace::new(dims, extent));
        let spec = TaskSpec { name: "benchmark".into(), work, accesses, location: None };
        let mut tasks = Vec::new();
        self.tasks.submit(spec, &mut tasks).expect("the benchmarks' programs are valid");
        tasks.into_iter().for_each(|task| self.schedule(task));
    }
}
