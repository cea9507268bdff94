//! The five programs of IJPP 2024, table 3, step by step: how long a node needs to schedule a step
//! (its fig. 3), and what all nodes together send for one. Graphs are generated, nothing runs.

use std::time::{Duration, Instant};

use celerity_cdag::{Command, CommandGraph, CommandGraphConfig, CommandKind, NodeId};
use celerity_cpd::{Collectives, Discovery};
use celerity_regions::Box3;
use celerity_tdag::{
    Access, AccessMode, BufferId, IndexSpace, Mapper, NewBuffer, Side, TaskGraph, TaskGraphConfig,
    TaskSpec, Work,
};

/// Bytes of an element.
const ELEM_SIZE: u64 = 4;

/// Elements along the first dimension, per node: problems grow with the cluster, so that a part
/// keeps its size. Those of two dimensions are as wide as they are high.
const PER_NODE: usize = 16;

/// Steps after which everything repeats itself: buffers are swapped, horizons have been applied.
const WARM_UP: usize = 12;

/// A program of table 3. After each step, the two buffers change places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Every node reads what all have written.
    AllGather,
    /// One node reads what all have written, and each its part of what that has written.
    GatherScatter,
    /// One node reads what all have written, and each all of what that has written.
    GatherBroadcast,
    /// Each node reads columns of what all have written in rows.
    AllToAll,
    /// Each node reads the border of what its neighbours have written: no collective.
    Stencil,
}

impl Pattern {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 5] = [
        Self::AllGather,
        Self::GatherScatter,
        Self::GatherBroadcast,
        Self::AllToAll,
        Self::Stencil,
    ];

    /// Its name in the paper.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AllGather => "all-gather",
            Self::GatherScatter => "gather-scatter",
            Self::GatherBroadcast => "gather-bcast",
            Self::AllToAll => "all-to-all",
            Self::Stencil => "stencil",
        }
    }

    fn dims(self) -> u8 {
        match self {
            Self::AllGather | Self::GatherScatter | Self::GatherBroadcast => 1,
            Self::AllToAll | Self::Stencil => 2,
        }
    }

    fn extent(self, nodes: usize) -> Box3 {
        let side = PER_NODE * nodes;
        if self.dims() == 1 { Box3::from_range([side]) } else { Box3::from_range([side, side]) }
    }

    /// How a task reads, in which work, and how it writes.
    fn kernels(self, nodes: usize) -> Vec<(Work, Mapper, Mapper)> {
        let everywhere = Work::Device(IndexSpace::new(self.dims(), self.extent(nodes)));
        let once = Work::HostOnce { node: 0 };
        let gather = (once, Mapper::All, Mapper::All);
        match self {
            Self::AllGather => vec![(everywhere, Mapper::All, Mapper::OneToOne)],
            Self::GatherScatter => vec![gather, (everywhere, Mapper::OneToOne, Mapper::OneToOne)],
            Self::GatherBroadcast => vec![gather, (everywhere, Mapper::All, Mapper::OneToOne)],
            Self::AllToAll => {
                let transposed = Mapper::per_dimension(&[Side::along(1), Side::along(0)]);
                vec![(everywhere, transposed, Mapper::OneToOne)]
            }
            Self::Stencil => vec![(everywhere, Mapper::neighborhood([1, 1]), Mapper::OneToOne)],
        }
    }
}

/// What all nodes together do for one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages from one node to another; of a collective, one for each node that takes part.
    pub messages: u64,
    /// Bytes that come to nodes.
    pub bytes: u64,
}

/// A program on so many nodes, of which the graphs of some are generated.
#[derive(Debug)]
pub struct Running {
    kernels: Vec<(Work, Mapper, Mapper)>,
    tasks: TaskGraph,
    discovery: Discovery,
    nodes: Vec<(NodeId, CommandGraph)>,
    buffers: [BufferId; 2],
}

impl Running {
    /// Generates the command graphs of the nodes at these positions.
    ///
    /// # Panics
    /// If a position is none of the cluster's.
    #[must_use]
    pub fn new(
        pattern: Pattern,
        collectives: Collectives,
        nodes: usize,
        positions: impl IntoIterator<Item = usize>,
    ) -> Self {
        let mut tasks = TaskGraph::new(TaskGraphConfig::default());
        let start = tasks.start();
        let mut discovery = Discovery::new(collectives, nodes);
        let graph = |position: usize| {
            let local = NodeId::from_index(position as u64);
            (local, CommandGraph::new(CommandGraphConfig { nodes, local }))
        };
        let mut graphs: Vec<_> = positions.into_iter().map(graph).collect();
        let new = || NewBuffer {
            name: None,
            dims: pattern.dims(),
            extent: pattern.extent(nodes),
            elem_size: ELEM_SIZE,
            elem_align: ELEM_SIZE,
            host_initialized: true,
        };
        let buffers = [new(), new()].map(|new| tasks.create_buffer(new));
        for info in &buffers {
            discovery.create_buffer(info);
            graphs.iter_mut().for_each(|(_, graph)| graph.register_buffer(info));
        }
        for (_, graph) in &mut graphs {
            graph.schedule(&start, &mut Vec::new(), &mut Vec::new());
        }
        let buffers = buffers.map(|info| info.id);
        let kernels = pattern.kernels(nodes);
        let mut running = Self { kernels, tasks, discovery, nodes: graphs, buffers };
        running.steps(WARM_UP, &mut |_, _| {});
        running
    }

    /// How long a step takes, on average of so many.
    pub fn time(&mut self, steps: usize) -> Duration {
        let start = Instant::now();
        self.steps(steps, &mut |_, commands| {
            std::hint::black_box(commands);
        });
        start.elapsed() / u32::try_from(steps.max(1)).unwrap_or(u32::MAX)
    }

    /// What the nodes whose graphs are generated do for one step.
    pub fn traffic(&mut self) -> Traffic {
        let mut traffic = Traffic::default();
        self.steps(1, &mut |node, commands| {
            commands.iter().for_each(|command| traffic.add(node, &command.kind));
        });
        traffic
    }

    fn steps(&mut self, count: usize, see: &mut impl FnMut(NodeId, &[Command])) {
        let (mut tasks, mut commands) = (Vec::new(), Vec::new());
        for _ in 0..count {
            for (work, reads, writes) in self.kernels.clone() {
                let [from, to] = self.buffers;
                let accesses = vec![
                    Access::buffer(from, AccessMode::Read, reads),
                    Access::buffer(to, AccessMode::Write, writes),
                ];
                let spec = TaskSpec { name: "step".into(), work, accesses, location: None };
                let discover = |spec: &_, touched: &_| self.discovery.discover(spec, touched);
                let submitted = self.tasks.submit_behind(spec, discover, &mut tasks);
                let (id, _) = submitted.expect("the program is valid");
                for task in tasks.drain(..) {
                    if task.id == id {
                        self.discovery.committed(&task);
                    }
                    for (node, graph) in &mut self.nodes {
                        graph.schedule(&task, &mut commands, &mut Vec::new());
                        see(*node, &commands);
                        commands.clear();
                    }
                }
                self.buffers.swap(0, 1);
            }
        }
    }
}

impl Traffic {
    fn add(&mut self, node: NodeId, kind: &CommandKind) {
        let (messages, elements) = match kind {
            CommandKind::Push { targets, .. } => (targets.len() as u64, 0),
            CommandKind::AwaitPush { region, .. } => (0, region.volume()),
            CommandKind::Collective { collective, .. } => {
                (1, collective.arriving_at(node).volume())
            }
            CommandKind::Execute { .. } | CommandKind::Horizon | CommandKind::Epoch(_) => (0, 0),
        };
        self.messages += messages;
        self.bytes += elements * ELEM_SIZE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(pattern: Pattern, collectives: Collectives, nodes: usize) -> Traffic {
        Running::new(pattern, collectives, nodes, 0..nodes).traffic()
    }

    #[test]
    fn what_is_not_worth_it_is_scheduled_as_if_nothing_had_been_looked_for() {
        for pattern in Pattern::ALL {
            let of = |collectives| traffic(pattern, collectives, 2);
            assert_eq!(of(Collectives::Auto), of(Collectives::Off), "{pattern:?}");
            // By the committed table, all operations are worth it from 18 nodes on.
            let of = |collectives| traffic(pattern, collectives, 32);
            assert_eq!(of(Collectives::Auto), of(Collectives::Always), "{pattern:?}");
        }
    }

    #[test]
    fn collectives_are_one_command_per_node_and_bring_no_more_than_pushes() {
        for pattern in Pattern::ALL {
            for nodes in [2, 5, 16] {
                let off = traffic(pattern, Collectives::Off, nodes);
                for collectives in [Collectives::Paper, Collectives::Always] {
                    let on = traffic(pattern, collectives, nodes);
                    assert_eq!(on.bytes, off.bytes, "{pattern:?} on {nodes} nodes");
                    let commands = (pattern.kernels(nodes).len() * nodes) as u64;
                    match pattern {
                        Pattern::Stencil => assert_eq!(on, off, "on {nodes} nodes"),
                        _ => assert_eq!(on.messages, commands, "{pattern:?} on {nodes} nodes"),
                    }
                }
            }
        }
    }
}
