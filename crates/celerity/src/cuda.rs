//! NVIDIA GPUs: which of a host's a process uses, kernels in CUDA C++ or PTX for those who write
//! them by hand, and [calls on devices](crate::TaskBuilder::device_call) in the types of other
//! crates.

use std::ops::Range;
use std::sync::Arc;

use celerity_cuda::{
    Compiler, CudaConfig, CudaDevices, DealError, Gpu, Gpus, LazyNvrtc, NvidiaDriver, Nvrtc,
    NvrtcConfig, load_nccl,
};
use celerity_executor::RunError;
use celerity_tdag::Count;

mod cudarc_views;
#[cfg(feature = "cust")]
mod cust_views;

pub use celerity_cuda::CudaKernel;
pub use celerity_executor::{CodeModule, CodeSource};
/// The binding whose types [`DeviceCall::cudarc`](crate::DeviceCall::cudarc) and the views have; its
/// libraries by features of its own, cuBLAS by `cublas` of this crate.
pub use cudarc;
pub use cudarc_views::{CudarcView, CudarcViewMut};

/// The nodes that share a host's GPUs.
pub(crate) struct Nodes {
    /// Those of this process, by index.
    pub(crate) here: Range<usize>,
    /// How many other processes have before them.
    pub(crate) before: usize,
    /// All of the host.
    pub(crate) all: usize,
    /// All of the cluster.
    pub(crate) cluster: usize,
}

/// What a program says about the GPUs that it wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    /// GPUs of each node; all there are, if nothing is said.
    pub(crate) per_node: Option<usize>,
    /// Whether nodes may share a GPU.
    pub(crate) shared: bool,
    /// Bytes that may be resident in the memory of each.
    pub(crate) memory_limit: Option<u64>,
}

/// The GPUs of this host. Kernels in CUDA C++ are kept compiled in the user's
/// cache; without a compiler only they are errors.
pub(crate) fn gpus() -> Result<Arc<Gpus>, RunError> {
    let start = |error: String| RunError::Start { what: error };
    let driver = NvidiaDriver::new().map_err(|error| start(error.to_string()))?;
    let config = NvrtcConfig { cache: Nvrtc::user_cache(), ..NvrtcConfig::default() };
    let compiler: Arc<dyn Compiler> = Arc::new(LazyNvrtc::new(config));
    let gpus = Gpus::with_nccl(Arc::new(driver), Some(compiler), Arc::new(load_nccl));
    gpus.map_err(|error| start(error.to_string()))
}

/// Deals the GPUs of the host to its nodes, evenly and in order, and takes those
/// of the nodes of this process.
pub(crate) fn deal(gpus: &Arc<Gpus>, nodes: &Nodes, wish: Wish) -> Result<CudaDevices, RunError> {
    let selected = hand(gpus.infos().len(), nodes, wish)?;
    let selected: Vec<_> = selected.into_iter().map(Gpu::from_slot).collect();
    let mut config = CudaConfig { device_memory_limit: wish.memory_limit, ..CudaConfig::default() };
    if (nodes.cluster, selected.len()) == (1, 1) {
        // Nothing comes from another GPU that the only one could compute beside.
        config.least_chunk = u64::MAX;
    }
    CudaDevices::deal(gpus, &selected, nodes.here.clone(), wish.shared, &config).map_err(too_few)
}

fn too_few(error: DealError) -> RunError {
    let what = format!("{error} (`Config::share_gpus`, `CELERITY_SHARE_GPUS=on`)");
    RunError::Start { what }
}

/// The slots of the GPUs of this process's nodes, as many for each.
fn hand(gpus: usize, nodes: &Nodes, wish: Wish) -> Result<Vec<u16>, RunError> {
    let even = gpus / nodes.all;
    let each = match wish.per_node {
        Some(each) if each <= even || wish.shared => each,
        None if even > 0 || wish.shared => even.max(1),
        wanted => {
            let nodes = nodes.all;
            return Err(match wanted {
                None => too_few(DealError::TooFew { nodes, gpus }),
                Some(each) => {
                    let (nodes, each) = (Count(nodes, "node"), Count(each, "GPU"));
                    let what =
                        format!("there are {nodes} with {each} each, but their host has {gpus}");
                    RunError::Start { what }
                }
            });
        }
    };
    let first = nodes.before * each;
    let slots = first..first + nodes.here.len() * each;
    Ok(slots.map(|slot| u16::try_from(slot % gpus).expect("a host has few GPUs")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(before: usize, here: usize, all: usize) -> Nodes {
        Nodes { here: before..before + here, before, all, cluster: all }
    }

    const ALL: Wish = Wish { per_node: None, shared: false, memory_limit: None };

    #[test]
    fn processes_of_a_host_take_their_part() {
        assert_eq!(hand(4, &nodes(0, 1, 1), ALL).unwrap(), [0, 1, 2, 3]);
        assert_eq!(hand(4, &nodes(1, 1, 2), ALL).unwrap(), [2, 3]);
        assert_eq!(hand(4, &nodes(0, 2, 2), ALL).unwrap(), [0, 1, 2, 3]);
        assert_eq!(hand(5, &nodes(1, 1, 2), ALL).unwrap(), [2, 3]);
        let one = Wish { per_node: Some(1), ..ALL };
        assert_eq!(hand(4, &nodes(1, 1, 2), one).unwrap(), [1]);
    }

    #[test]
    fn more_nodes_than_gpus_share_if_they_may() {
        let error = hand(2, &nodes(0, 3, 3), ALL).unwrap_err().to_string();
        assert!(error.contains("3 nodes") && error.contains("CELERITY_SHARE_GPUS"), "{error}");
        let shared = Wish { shared: true, ..ALL };
        assert_eq!(hand(2, &nodes(0, 3, 3), shared).unwrap(), [0, 1, 0]);
        let two = Wish { per_node: Some(2), ..ALL };
        let error = hand(2, &nodes(0, 1, 2), two).unwrap_err().to_string();
        assert!(error.contains("2 GPUs each"), "{error}");
    }
}
