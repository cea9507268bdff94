//! Whole programs through the runtime: from tasks to streams.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Instant;

use celerity_cuda::{CudaConfig, CudaDevices, Gpu, Gpus};
use celerity_executor::{
    BoundMemory, ClusterConfig, CodeModule, HostFunction, InProcess, NodeFrontend, Payload, Run,
    SubmitError,
};
use celerity_regions::Box3;
use celerity_tdag::{Access, AccessMode, BufferId, IndexSpace, Mapper, NewBuffer, TaskSpec, Work};

use crate::kernels::{kernel, module};
use crate::{Outcome, Suite, expect_equal};

/// Runs a program on nodes in this process that share the machine's GPUs.
fn run<R: Send>(
    gpus: &Arc<Gpus>,
    nodes: usize,
    config: &CudaConfig,
    body: impl Fn(&NodeFrontend) -> Result<R, SubmitError> + Sync,
) -> Result<R, String> {
    let known = u16::try_from(gpus.infos().len()).expect("few GPUs");
    let selected: Vec<_> = (0..known).map(Gpu::from_slot).collect();
    let devices = CudaDevices::deal(gpus, &selected, 0..nodes, true, config);
    let devices = devices.map_err(|error| error.to_string())?;
    let cluster = ClusterConfig { nodes, ..ClusterConfig::default() };
    let run = Run::new(&cluster).on(InProcess { nodes }).with_devices(devices);
    run.execute(|node| body(node)).map_err(|error| error.to_string())
}

fn buffer(node: &NodeFrontend, extent: Box3, elem_size: u64) -> BufferId {
    let dims = u8::try_from(extent.effective_dims().max(1)).expect("at most three");
    let (elem_align, host_initialized) = (elem_size, false);
    let buffer = NewBuffer { name: None, dims, extent, elem_size, elem_align, host_initialized };
    node.create_buffer(buffer, None)
}

fn submit(
    node: &NodeFrontend,
    module: &Arc<CodeModule>,
    entry: &str,
    space: Box3,
    accesses: Vec<Access>,
) -> Result<(), SubmitError> {
    let dims = space.effective_dims().max(1);
    let kernel = kernel(module, entry, dims, space);
    let work = Work::Device(IndexSpace::new(u8::try_from(dims).expect("at most three"), space));
    let spec = TaskSpec { name: entry.into(), work, accesses, location: None };
    node.submit(spec, Payload::Kernel(Arc::new(kernel))).map(drop)
}

fn contents(node: &NodeFrontend, buffer: BufferId, count: usize) -> Result<Vec<u32>, SubmitError> {
    let (promise, snapshot) = channel();
    let copy_out = move |memory: &[BoundMemory<'_>]| {
        // SAFETY: the whole buffer is bound: `count` numbers that are current and
        // not written meanwhile.
        let all = unsafe { std::slice::from_raw_parts(memory[0].base().cast::<u32>(), count) };
        drop(promise.send(all.to_vec()));
        Ok(())
    };
    let accesses = vec![access(buffer, AccessMode::Read, Mapper::All)];
    let spec = TaskSpec { name: "contents".into(), work: Work::Fence, accesses, location: None };
    node.submit(spec, Payload::Host(HostFunction::new(copy_out)))?;
    snapshot.recv().map_err(|_| node.error().expect("the run has failed").into())
}

fn access(buffer: BufferId, mode: AccessMode, mapper: Mapper) -> Access {
    Access::buffer(buffer, mode, mapper)
}

const HEIGHT: usize = 700;
const WIDTH: usize = 333;
const STEPS: usize = 20;

/// What kernel `hash` does, `STEPS` times.
fn sequential() -> Vec<u32> {
    let mut front: Vec<u32> = (0..HEIGHT * WIDTH).map(|index| index as u32).collect();
    for _ in 0..STEPS {
        let step = |index: usize| {
            let (y, x) = (index / WIDTH, index % WIDTH);
            let rows = y.saturating_sub(1)..(y + 2).min(HEIGHT);
            let columns = || x.saturating_sub(1)..(x + 2).min(WIDTH);
            let near = rows.flat_map(|y| columns().map(move |x| y * WIDTH + x));
            near.fold(17, |hash: u32, near| (hash ^ front[near]).wrapping_mul(16_777_619))
        };
        front = (0..front.len()).map(step).collect();
    }
    front
}

fn stencil(node: &NodeFrontend, module: &Arc<CodeModule>) -> Result<Vec<u32>, SubmitError> {
    let space = Box3::from_range([HEIGHT, WIDTH]);
    let (mut front, mut back) = (buffer(node, space, 4), buffer(node, space, 4));
    let write = |buffer| access(buffer, AccessMode::Write, Mapper::OneToOne);
    submit(node, module, "number", space, vec![write(front)])?;
    for _ in 0..STEPS {
        let near = access(front, AccessMode::Read, Mapper::neighborhood([1, 1]));
        submit(node, module, "hash", space, vec![near, write(back)])?;
        std::mem::swap(&mut front, &mut back);
    }
    contents(node, front, HEIGHT * WIDTH)
}

/// Halos between GPUs, directly and through the host, and between nodes; with
/// every index checked, too.
pub(crate) fn halos(suite: &Suite) -> Outcome {
    let expected = sequential();
    for gpus in [&suite.gpus, &suite.checked] {
        for nodes in [1, 2] {
            for [peer_copies, lane_waits] in [[true, true], [true, false], [false, true]] {
                let config = CudaConfig { peer_copies, lane_waits, ..CudaConfig::default() };
                let module = module();
                let found = run(gpus, nodes, &config, |node| stencil(node, &module))?;
                expect_equal(&found, &expected)
                    .map_err(|what| format!("{nodes} nodes, {config:?}: {what}"))?;
            }
        }
    }
    Ok(())
}

/// Dependent empty kernels through the whole runtime, on one GPU.
pub(crate) fn chain(suite: &Suite) -> Outcome {
    let module = module();
    let gpu = [Gpu::from_slot(0)];
    let config = CudaConfig::default();
    let samples = |count: u32| {
        let devices = CudaDevices::deal(&suite.gpus, &gpu, 0..1, false, &config);
        let devices = devices.map_err(|error| error.to_string())?;
        let run = Run::new(&ClusterConfig::default()).with_devices(devices);
        let body = |node: &Arc<NodeFrontend>| -> Result<Vec<f64>, SubmitError> {
            let one = Box3::from_range([1]);
            let data = buffer(node, one, 4);
            let mut samples = Vec::new();
            submit(
                node,
                &module,
                "touch",
                one,
                vec![access(data, AccessMode::Write, Mapper::OneToOne)],
            )?;
            for _ in 0..6 {
                node.barrier()?;
                let start = Instant::now();
                for _ in 0..count {
                    let update = access(data, AccessMode::ReadWrite, Mapper::OneToOne);
                    submit(node, &module, "touch", one, vec![update])?;
                }
                node.barrier()?;
                samples.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(count));
            }
            Ok(samples)
        };
        run.execute(body).map_err(|error: SubmitError| error.to_string())
    };
    println!("  whole runtime, µs per kernel: {:.2?}", samples(20_000)?);
    Ok(())
}
