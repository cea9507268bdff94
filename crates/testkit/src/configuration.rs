//! What a program is run or scheduled on: the size of the cluster, and how graphs are generated for
//! it. Plain data, below everything that checks.

use std::ops::Range;

use celerity_cdag::NodeId;
use celerity_cpd::Collectives;
use celerity_executor::CollectiveTerms;
use celerity_idag::{
    DeviceId, DeviceMemory, InstructionGraph, InstructionGraphConfig, Lookahead, LookaheadQueue,
};
use celerity_tdag::TaskGraphConfig;
use serde::{Deserialize, Serialize};

/// Bytes of the largest buffer that addresses are reserved for: programs also have
/// buffers that no memory could hold.
const LARGEST_RESERVATION: u64 = 1 << 20;

/// What a program is run or scheduled on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// Nodes of the cluster, at least 1.
    pub nodes: usize,
    /// Devices per node, at least 1.
    pub devices: usize,
    /// See [`TaskGraphConfig::horizon_step`].
    pub horizon_step: u64,
    /// See [`TaskGraphConfig::horizon_max_parallelism`].
    pub horizon_max_parallelism: u64,
    /// How long commands that will allocate are held back.
    pub lookahead: Lookahead,
    /// Which memory devices work in.
    pub device_memory: DeviceMemory,
    /// Which pairs of devices can copy directly: bit `5 · from + to`, modulo 64.
    /// With all bits set, all can.
    pub links: u64,
    /// Rows of less bytes are not copied one by one between devices and the host;
    /// 0: all are. See [`InstructionGraph::with_linearized_copies`].
    pub linearize_below: u64,
    /// Bytes from which on linked devices share what they get from elsewhere; 0: never. See
    /// [`InstructionGraph::with_shared_arrivals`].
    pub share_from: u64,
    /// Bytes of the pieces in which data goes to other nodes through host memory; 0: it goes as a
    /// whole. See [`InstructionGraph::with_transfers_in_pieces`].
    pub piece: u64,
    /// Bytes of the smallest buffers whose allocations on devices grow where they
    /// are; 0: none do. See [`InstructionGraph::with_reservations`].
    pub grow_from: u64,
    /// Bytes of the smallest payloads that leave from devices' memories and arrive there, where the
    /// network reaches them; 0: it reaches host memory alone. See
    /// [`InstructionGraph::with_device_wires`].
    pub wires_from: u64,
    /// Between which pairs of nodes the network reaches devices' memories: bit `from + to`, modulo 64.
    /// With all bits set, between all.
    pub wired: u64,
    /// Bytes of the smallest collectives between devices' memories, in rows of up to 31 bytes; 0: all go
    /// through host memory. See [`InstructionGraph::with_device_collectives`].
    pub collectives_from: u64,
    /// Which forward tasks there are.
    pub forwards: Forwards,
    /// Chooses the order in which the models execute what may run in any order.
    pub seed: u64,
}

/// Which forward tasks come before the tasks of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Forwards {
    /// None.
    #[default]
    None,
    /// Any, drawn by the seed of the configuration.
    Random,
    /// Those of IJPP 2024, Algorithm 1.
    Paper,
    /// All that is found past the paper, whatever operations cost.
    Always,
    /// Of these, the ones that programs get if they ask for nothing else: those that are worth it.
    Auto,
}

impl Forwards {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::None, Self::Random, Self::Paper, Self::Always, Self::Auto];

    /// What a real run looks for, which finds its own: as much as may be instead of random ones.
    #[must_use]
    pub fn in_runs(self) -> Collectives {
        match self {
            Self::None => Collectives::Off,
            Self::Paper => Collectives::Paper,
            Self::Random | Self::Always => Collectives::Always,
            Self::Auto => Collectives::Auto,
        }
    }
}

impl Configuration {
    /// The runtime's defaults on so many nodes and devices.
    #[must_use]
    pub fn new(nodes: usize, devices: usize) -> Self {
        let TaskGraphConfig { horizon_step, horizon_max_parallelism, .. } =
            TaskGraphConfig::default();
        Self {
            nodes,
            devices,
            horizon_step,
            horizon_max_parallelism,
            lookahead: Lookahead::None,
            device_memory: DeviceMemory::Own,
            links: u64::MAX,
            linearize_below: 0,
            share_from: 0,
            piece: 0,
            grow_from: 0,
            wires_from: 0,
            wired: u64::MAX,
            collectives_from: 0,
            forwards: Forwards::None,
            seed: 0,
        }
    }

    /// Whether the memories of two devices can be copied directly.
    #[must_use]
    pub fn are_linked(&self, from: DeviceId, to: DeviceId) -> bool {
        self.links >> ((from.index() * 5 + to.index()) % 64) & 1 == 1
    }

    /// What makes the instructions of a node.
    #[must_use]
    pub fn instruction_graph(&self, node: NodeId) -> LookaheadQueue {
        let config = InstructionGraphConfig { devices: self.devices };
        let graph = InstructionGraph::new(config)
            .on_node(node)
            .with_device_memory(self.device_memory)
            .with_direct_copies(|from, to| self.are_linked(from, to))
            .with_linearized_copies(self.linearize_below)
            .with_shared_arrivals(self.share_from)
            .with_transfers_in_pieces(self.piece)
            .with_reservations(self.growing());
        let graph = self.wire(graph, node);
        LookaheadQueue::new(graph, self.lookahead)
    }

    /// Tells a node's graph which devices' memories the network reaches.
    #[must_use]
    pub fn wire(&self, graph: InstructionGraph, node: NodeId) -> InstructionGraph {
        let graph = match self.wires_from {
            0 => graph,
            least => graph.with_device_wires(self.wired_to(node), self.nodes, least),
        };
        match self.collective_terms() {
            None => graph,
            Some(CollectiveTerms { least, least_row }) => {
                graph.with_device_collectives(least, least_row)
            }
        }
    }

    /// Which collectives take place between devices, if any.
    #[must_use]
    pub fn collective_terms(&self) -> Option<CollectiveTerms> {
        let least = self.collectives_from;
        (least > 0).then_some(CollectiveTerms { least, least_row: least % 32 })
    }

    /// The nodes with whose devices' memories the network connects those of `node`.
    fn wired_to(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        let (wired, all) = (self.wired, (0..self.nodes as u64).map(NodeId::from_index));
        all.filter(move |&peer| {
            peer != node && wired >> ((peer.index() + node.index()) % 64) & 1 == 1
        })
    }

    /// Sizes in bytes of buffers whose allocations on devices grow where they are.
    #[must_use]
    pub fn growing(&self) -> Range<u64> {
        match self.grow_from {
            0 => 0..0,
            least => least..LARGEST_RESERVATION,
        }
    }

    /// What the task graph is told.
    #[must_use]
    pub fn task_graph(&self) -> TaskGraphConfig {
        TaskGraphConfig {
            horizon_step: self.horizon_step,
            horizon_max_parallelism: self.horizon_max_parallelism,
            ..TaskGraphConfig::default()
        }
    }
}
