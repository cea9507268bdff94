//! The GPUs of a host as the devices of the nodes that run on it: who gets
//! which. Runs nothing.

use std::ops::Range;
use std::sync::Arc;

use celerity_cdag::NodeId;
use celerity_executor::{Backend, CpuPool, Devices, KernelCheck, RunError, Waker};
use celerity_idag::{InstructionGraph, InstructionGraphConfig};
use celerity_tdag::Count;
use thiserror::Error;

use crate::backend::{CudaBackend, CudaConfig};
use crate::driver::{DriverError, Gpu};
use crate::gpus::{Gpus, PeerAccess};

/// Copies between GPU and host reach 55 GB/s with rows of 256 bytes, 44 with 64,
/// 12 with 16 and 2 to 3 with 4, on an H200. To gather such rows first, within
/// the GPU, takes a fifth of that time or less.
const SLOW_ROWS: u64 = 64;

/// Linked GPUs share what they all get from the host from so many bytes each: that the other shares
/// come from other GPUs, by some copies of about 10 µs each that wait for each other, is worth it
/// when to get all of it from the host would take longer (1 MiB takes 19 µs at 55 GB/s). Reasoned,
/// not measured.
const SHARED_FROM: u64 = 1 << 20;

/// Data that goes to other nodes through host memory does so in pieces of so many bytes. A piece takes
/// about 150 µs from GPU to host at 55 GB/s, and over 1 ms by MPI between two processes at 5 GB/s: long
/// beside what each costs to schedule and announce, some 20 µs, and short beside what is in many.
const PIECE: u64 = 8 << 20;

/// Why GPUs cannot be dealt to nodes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DealError {
    /// There are too few.
    #[error(
        "there are too few GPUs: {gpus} for {}; use at most one node per GPU, or allow nodes to \
         share them",
        Count(*nodes, "node")
    )]
    TooFew {
        /// Nodes of this process.
        nodes: usize,
        /// GPUs that they can have.
        gpus: usize,
    },
    /// A GPU cannot be used.
    #[error("a GPU cannot be used: {0}")]
    Driver(#[from] DriverError),
}

/// The devices of all nodes of this process.
pub struct CudaDevices {
    gpus: Arc<Gpus>,
    config: CudaConfig,
    /// The nodes of this process, by index.
    nodes: Range<usize>,
    /// Their GPUs; as many for each.
    dealt: Vec<Vec<Gpu>>,
    /// By node, as before.
    links: Vec<PeerAccess>,
}

impl CudaDevices {
    /// Deals `selected` GPUs to the nodes of this process, evenly and in order;
    /// what is left over stays unused. If there are fewer GPUs than nodes,
    /// `shared` lets nodes share them. Opens all that are dealt.
    ///
    /// # Errors
    /// [`DealError`] if there are too few, or one cannot be used.
    ///
    /// # Panics
    /// If `nodes` is empty, or if there is no such GPU.
    pub fn deal(
        gpus: &Arc<Gpus>,
        selected: &[Gpu],
        nodes: Range<usize>,
        shared: bool,
        config: &CudaConfig,
    ) -> Result<Self, DealError> {
        assert!(!nodes.is_empty(), "a process has a node");
        let dealt = hands(selected, nodes.len(), shared)?;
        let links = dealt.iter().map(|hand| gpus.connect(hand, config.peer_copies));
        let links = links.collect::<Result<_, _>>()?;
        let mut config = config.clone();
        if !gpus.can_reserve(&dealt.concat()) {
            config.growing = 0..0;
        }
        Ok(Self { gpus: gpus.clone(), config, nodes, dealt, links })
    }

    /// The GPUs of a node of this process, in the order of its devices.
    ///
    /// # Panics
    /// If it is a node of another process.
    #[must_use]
    pub fn of(&self, node: NodeId) -> &[Gpu] {
        let index = usize::try_from(node.index()).expect("node counts fit in memory");
        assert!(self.nodes.contains(&index), "{node} is not in this process");
        &self.dealt[index - self.nodes.start]
    }
}

impl Devices for CudaDevices {
    fn per_node(&self) -> usize {
        self.dealt[0].len()
    }

    fn are_fast(&self) -> bool {
        true
    }

    fn have_windows(&self) -> bool {
        true
    }

    fn open(
        &self,
        node: NodeId,
        pool: &Arc<CpuPool>,
        waker: Waker,
    ) -> Result<Box<dyn Backend>, RunError> {
        let backend = CudaBackend::new(&self.gpus, self.of(node), &self.config, pool, waker);
        let backend = backend.map_err(|error| RunError::Start { what: error.to_string() })?;
        Ok(Box::new(backend))
    }

    fn kernel_check(&self) -> Option<Arc<KernelCheck>> {
        let (gpus, dealt) = (self.gpus.clone(), self.dealt.concat());
        Some(Arc::new(move |kernel, accesses| {
            if kernel.device_call().is_some() {
                return Ok(());
            }
            let code = kernel.device_code().map_err(|error| error.to_string())?;
            gpus.check(&dealt, code, accesses).map_err(|error| error.to_string())
        }))
    }

    /// Copies are direct where they are on all nodes, and have rows of 64 bytes or
    /// more. Allocations grow where all GPUs can reserve addresses.
    fn instruction_graph(&self) -> InstructionGraph {
        InstructionGraph::new(InstructionGraphConfig { devices: self.per_node() })
            .with_direct_copies(|from, to| self.links.iter().all(|links| links.has(from, to)))
            .with_linearized_copies(SLOW_ROWS)
            .with_shared_arrivals(SHARED_FROM)
            .with_transfers_in_pieces(PIECE)
            .with_reservations(self.config.growing.clone())
            .with_least_chunk(self.config.least_chunk)
    }
}

/// What each of so many nodes gets.
fn hands(selected: &[Gpu], nodes: usize, shared: bool) -> Result<Vec<Vec<Gpu>>, DealError> {
    let gpus = selected.len();
    if gpus == 0 || gpus < nodes && !shared {
        return Err(DealError::TooFew { nodes, gpus });
    }
    let each = (gpus / nodes).max(1);
    let hand = |node: usize| (0..each).map(|slot| selected[(node * each + slot) % gpus]).collect();
    Ok((0..nodes).map(hand).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpus(count: u16) -> Vec<Gpu> {
        (0..count).map(Gpu::from_slot).collect()
    }

    fn slots(hands: Vec<Vec<Gpu>>) -> Vec<Vec<usize>> {
        hands.into_iter().map(|hand| hand.into_iter().map(Gpu::slot).collect()).collect()
    }

    #[test]
    fn gpus_are_dealt_evenly_and_in_order() {
        let deal = |count, nodes| slots(hands(&gpus(count), nodes, false).unwrap());
        assert_eq!(deal(4, 2), [[0, 1], [2, 3]]);
        assert_eq!(deal(5, 2), [[0, 1], [2, 3]], "one is left over");
        assert_eq!(deal(2, 1), [[0, 1]]);
    }

    #[test]
    fn gpus_are_shared_if_that_is_asked_for() {
        let error = hands(&gpus(2), 3, false).unwrap_err();
        assert_eq!(error, DealError::TooFew { nodes: 3, gpus: 2 });
        assert_eq!(slots(hands(&gpus(2), 3, true).unwrap()), [[0], [1], [0]]);
        assert!(hands(&[], 1, true).is_err());
    }
}
