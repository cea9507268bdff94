//! Kernels through the whole runtime, each of which updates the same buffer.

use std::sync::Arc;
use std::time::Instant;

use celerity_cuda::{CudaConfig, CudaDevices, Gpu, Gpus};
use celerity_executor::{ClusterConfig, NodeFrontend, Payload, Run, SubmitError};
use celerity_regions::Box3;
use celerity_tdag::{Access, AccessMode, BufferId, IndexSpace, Mapper, NewBuffer, TaskSpec, Work};

use crate::empty::Empty;
use crate::median;
use crate::threads::{Snapshot, Usage};

/// What a chain of kernels runs on, and how.
pub(crate) struct Setting<'a> {
    pub(crate) gpus: &'a Arc<Gpus>,
    pub(crate) gpu: Gpu,
    pub(crate) cluster: ClusterConfig,
    pub(crate) cuda: CudaConfig,
}

/// What it took, per kernel.
pub(crate) struct Cost {
    /// µs, in steady state.
    pub(crate) kernel: f64,
    /// µs until the program had submitted all of them.
    pub(crate) submission: f64,
    /// What threads did in all samples.
    pub(crate) threads: Vec<Usage>,
}

/// Runs a chain.
pub(crate) fn chain(setting: &Setting<'_>, launches: u32, samples: usize) -> Result<Cost, String> {
    let Setting { gpus, gpu, cluster, cuda } = setting;
    let devices = CudaDevices::deal(gpus, &[*gpu], 0..1, false, cuda);
    let devices = devices.map_err(|error| error.to_string())?;
    let body = |node: &Arc<NodeFrontend>| measure(node, launches, samples);
    let run = Run::new(cluster).with_devices(devices);
    run.execute(body).map_err(|error: SubmitError| error.to_string())
}

fn measure(node: &Arc<NodeFrontend>, launches: u32, samples: usize) -> Result<Cost, SubmitError> {
    let one = Box3::from_range([1]);
    let (elem_size, elem_align, host_initialized) = (4, 4, false);
    let new =
        NewBuffer { name: None, dims: 1, extent: one, elem_size, elem_align, host_initialized };
    let (data, kernel) = (node.create_buffer(new, None), Empty::new());
    let submit = |mode| submit(node, data, mode, &kernel);
    submit(AccessMode::Write)?;
    node.barrier()?;
    let before = Snapshot::take();
    let (mut kernels, mut submissions) = (Vec::new(), Vec::new());
    for _ in 0..samples {
        let start = Instant::now();
        let micros = || start.elapsed().as_secs_f64() * 1e6 / f64::from(launches);
        for _ in 0..launches {
            submit(AccessMode::ReadWrite)?;
        }
        submissions.push(micros());
        node.barrier()?;
        kernels.push(micros());
    }
    let all = launches * u32::try_from(samples).expect("few samples");
    let threads = Snapshot::take().since(&before, all);
    Ok(Cost { kernel: median(kernels), submission: median(submissions), threads })
}

fn submit(
    node: &NodeFrontend,
    buffer: BufferId,
    mode: AccessMode,
    kernel: &Arc<Empty>,
) -> Result<(), SubmitError> {
    let accesses = vec![Access::buffer(buffer, mode, Mapper::OneToOne)];
    let work = Work::Device(IndexSpace::new(1, Box3::from_range([1])));
    let spec = TaskSpec { name: "empty".into(), work, accesses, location: None };
    node.submit(spec, Payload::Kernel(kernel.clone())).map(drop)
}
