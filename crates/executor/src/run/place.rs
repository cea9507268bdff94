//! Where a run takes place: how nodes reach each other, and what devices they
//! have. The seams at which networks and devices of other crates come in.

use std::ops::Range;
use std::sync::Arc;

use celerity_cdag::NodeId;
use celerity_idag::{DeviceMemory, InstructionGraph, InstructionGraphConfig};

use crate::backend::{Backend, CpuBackend};
use crate::communicator::{Communicator, local_cluster};
use crate::error::RunError;
use crate::frontend::KernelCheck;
use crate::polling::Waker;
use crate::pool::CpuPool;

/// How the nodes of this process reach each other, and those of others.
pub trait Network: Sync {
    /// Nodes in the cluster.
    fn nodes(&self) -> usize;

    /// The nodes of this process, by index; at least one.
    fn local(&self) -> Range<usize>;

    /// How many processes, this one among them, may run on the cores that this one may run on.
    fn sharers_of_cores(&self) -> usize {
        1
    }

    /// The nodes of other processes that run on the host of this one, ascending: their devices' memories
    /// may be [reached](crate::Wires). All of them name each other.
    fn neighbours(&self, node: NodeId) -> Vec<NodeId> {
        let _ = node;
        Vec::new()
    }

    /// Whether some nodes are on another host than this process.
    fn spans_hosts(&self) -> bool {
        let local = self.local();
        let neighbours = self.neighbours(NodeId::from_index(local.start as u64));
        local.len() + neighbours.len() < self.nodes()
    }

    /// Their ends, in order. Each wakes its node by the waker at its position. From then on
    /// the nodes of all processes are in the run, and whoever cannot go on has to
    /// [abort](Communicator::abort) it.
    ///
    /// # Errors
    /// If the network cannot be reached, or if another process [refuses](Self::refuse).
    fn connect(
        &self,
        wakers: Vec<Waker>,
        pool: &Arc<CpuPool>,
    ) -> Result<Vec<Box<dyn Communicator>>, RunError>;

    /// Gives all nodes the words that node 0 has, right after [`connect`](Self::connect). All
    /// processes call it with as many words.
    ///
    /// # Errors
    /// If not all processes come, or one is lost meanwhile.
    fn share(&self, _words: &mut [u64]) -> Result<(), RunError> {
        Ok(())
    }

    /// In how many different sets of nodes, all together not counted, a run may exchange data in collective
    /// operations, if the network keeps something for each. What node 0's process says, goes for all.
    fn member_sets(&self) -> usize {
        usize::MAX
    }

    /// Says, instead of [connecting](Self::connect), that this process cannot take part in
    /// the run, for this reason: so that those of other processes fail and do not wait for
    /// it. Returns the error with which all of them fail.
    fn refuse(&self, error: RunError) -> RunError {
        error
    }
}

/// The devices of a node.
pub trait Devices: Sync {
    /// Devices of each node; at least one.
    fn per_node(&self) -> usize;

    /// Which memory their kernels work in.
    fn memory(&self) -> DeviceMemory {
        DeviceMemory::Own
    }

    /// Whether kernels may be so short that a node's thread should do nothing but
    /// feed the devices.
    fn are_fast(&self) -> bool {
        false
    }

    /// Whether they are of a kind whose memory other processes [can reach](Backend::windows).
    fn have_windows(&self) -> bool {
        false
    }

    /// Opens those of one node of this process.
    ///
    /// # Errors
    /// If they cannot be used.
    fn open(
        &self,
        node: NodeId,
        pool: &Arc<CpuPool>,
        waker: Waker,
    ) -> Result<Box<dyn Backend>, RunError>;

    /// Whether a kernel can run on them, asked when a task is submitted; `None`
    /// if all can, as on CPUs. Answers from any thread, and quickly but for the
    /// first time of a kernel. Its second argument is the number of accesses.
    fn kernel_check(&self) -> Option<Arc<KernelCheck>> {
        None
    }

    /// What instructions for them look like: which pairs copy directly, and
    /// which copies are slow.
    fn instruction_graph(&self) -> InstructionGraph {
        InstructionGraph::new(InstructionGraphConfig { devices: self.per_node() })
            .with_device_memory(self.memory())
    }
}

/// All nodes are in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InProcess {
    /// How many there are.
    pub nodes: usize,
}

impl Network for InProcess {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn local(&self) -> Range<usize> {
        0..self.nodes
    }

    fn connect(
        &self,
        wakers: Vec<Waker>,
        pool: &Arc<CpuPool>,
    ) -> Result<Vec<Box<dyn Communicator>>, RunError> {
        let ends = local_cluster(wakers, pool).into_iter();
        Ok(ends.map(|end| Box::new(end) as Box<dyn Communicator>).collect())
    }
}

/// One node of a cluster without the others. Nothing can be sent there.
#[derive(Clone, Copy, Debug)]
pub(super) struct OneNode {
    /// How many there would be.
    pub(super) nodes: usize,
    /// Which of them it is.
    pub(super) node: usize,
}

impl Network for OneNode {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn local(&self) -> Range<usize> {
        self.node..self.node + 1
    }

    fn connect(
        &self,
        wakers: Vec<Waker>,
        pool: &Arc<CpuPool>,
    ) -> Result<Vec<Box<dyn Communicator>>, RunError> {
        InProcess { nodes: 1 }.connect(wakers, pool)
    }
}

/// Devices made of CPU threads, which all nodes of the process share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuDevices {
    /// Devices of each node.
    pub per_node: usize,
    /// Which memory their kernels work in.
    pub memory: DeviceMemory,
    /// Bytes that may be resident in each device's own memory, if limited.
    pub memory_limit: Option<u64>,
}

impl Devices for CpuDevices {
    fn per_node(&self) -> usize {
        self.per_node
    }

    fn memory(&self) -> DeviceMemory {
        self.memory
    }

    fn open(
        &self,
        _: NodeId,
        pool: &Arc<CpuPool>,
        waker: Waker,
    ) -> Result<Box<dyn Backend>, RunError> {
        Ok(Box::new(CpuBackend::new(self.per_node, self.memory_limit, pool, waker)))
    }
}
