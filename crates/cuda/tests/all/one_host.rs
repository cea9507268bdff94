//! Nodes of one process that take each other for processes of one host, or of several.

use std::ops::Range;
use std::sync::Arc;

use celerity_cdag::NodeId;
use celerity_executor::{Communicator, CpuPool, InProcess, Network, RunError, Waker};

/// A network within a process whose nodes are neighbours.
#[derive(Clone, Copy)]
pub(crate) struct OneHost {
    pub(crate) nodes: usize,
}

/// A network within a process whose nodes take each other for processes of other hosts.
#[derive(Clone, Copy)]
pub(crate) struct ManyHosts {
    pub(crate) nodes: usize,
}

impl Network for ManyHosts {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn local(&self) -> Range<usize> {
        0..self.nodes
    }

    fn spans_hosts(&self) -> bool {
        true
    }

    fn connect(
        &self,
        wakers: Vec<Waker>,
        pool: &Arc<CpuPool>,
    ) -> Result<Vec<Box<dyn Communicator>>, RunError> {
        InProcess { nodes: self.nodes }.connect(wakers, pool)
    }
}

impl Network for OneHost {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn local(&self) -> Range<usize> {
        0..self.nodes
    }

    fn neighbours(&self, node: NodeId) -> Vec<NodeId> {
        let all = (0..self.nodes as u64).map(NodeId::from_index);
        all.filter(|other| *other != node).collect()
    }

    fn connect(
        &self,
        wakers: Vec<Waker>,
        pool: &Arc<CpuPool>,
    ) -> Result<Vec<Box<dyn Communicator>>, RunError> {
        InProcess { nodes: self.nodes }.connect(wakers, pool)
    }
}
