//! Whole programs on nodes with GPUs, on a driver without GPUs: everything from
//! the task graph to streams, but the kernels, which are functions of this test.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::mpsc::channel;

use celerity_cuda::{CudaConfig, CudaDevices, FakeDriver, Gpu, Gpus, HostedKernels};
use celerity_executor::{
    BoundMemory, ClusterConfig, DeviceKernel, HostFunction, InProcess, KernelTimes, NoRoom,
    NodeFrontend, Payload, Resident, Run, RunError, SubmitError,
};
use celerity_regions::{Box3, Coord3};
use celerity_tdag::{Access, AccessMode, BufferId, IndexSpace, Mapper, NewBuffer, TaskSpec, Work};

/// An access's memory, with every index checked against what was declared.
struct View<'a>(BoundMemory<'a>);

impl View<'_> {
    fn slot(&self, at: Coord3) -> *mut u64 {
        assert!(self.0.region().contains_point(at), "{at:?} is not in {}", self.0.region());
        let (min, range) = (self.0.extent().min(), self.0.extent().range());
        let index = (at[0] - min[0]) * range[1] + at[1] - min[1];
        // SAFETY: the region is inside the extent, which the memory holds.
        unsafe { self.0.base().cast::<u64>().add(usize::try_from(index).unwrap()) }
    }

    fn get(&self, at: Coord3) -> u64 {
        // SAFETY: the memory is live and not written meanwhile.
        unsafe { self.slot(at).read() }
    }

    fn set(&self, at: Coord3, value: u64) {
        // SAFETY: as above, and nobody else touches what a writing access names.
        unsafe { self.slot(at).write(value) }
    }
}

fn points(of: &Box3) -> impl Iterator<Item = Coord3> + use<> {
    let (min, max) = of.corners();
    (min[0]..max[0]).flat_map(move |y| (min[1]..max[1]).map(move |x| [y, x, 0]))
}

struct PerItem<F>(F);

impl<F: Fn(Coord3, &[View<'_>]) + Send + Sync + 'static> DeviceKernel for PerItem<F> {
    unsafe fn run(&self, chunk: &Box3, memory: &[BoundMemory<'_>]) {
        let views: Vec<_> = memory.iter().copied().map(View).collect();
        points(chunk).for_each(|point| (self.0)(point, &views));
    }
}

/// What a program needs on one node.
struct Program<'a> {
    node: &'a NodeFrontend,
    kernels: &'a HostedKernels,
    space: Box3,
}

impl Program<'_> {
    fn buffer(&self) -> BufferId {
        let (dims, extent) = (2, self.space);
        let (elem_size, elem_align) = (8, 8);
        let host_initialized = false;
        let buffer =
            NewBuffer { name: None, dims, extent, elem_size, elem_align, host_initialized };
        self.node.create_buffer(buffer, None)
    }

    fn kernel(
        &self,
        name: &str,
        accesses: Vec<Access>,
        item: impl Fn(Coord3, &[View<'_>]) + Send + Sync + 'static,
    ) -> Result<(), SubmitError> {
        let kernel = self.kernels.wrap(Arc::new(PerItem(item)));
        let work = Work::Device(IndexSpace::new(2, self.space));
        let spec = TaskSpec { name: name.into(), work, accesses, location: None };
        self.node.submit(spec, Payload::Kernel(kernel)).map(drop)
    }

    fn contents(&self, buffer: BufferId) -> Result<Vec<u64>, SubmitError> {
        let (promise, snapshot) = channel();
        let space = self.space;
        let copy_out = move |memory: &[BoundMemory<'_>]| {
            let view = View(memory[0]);
            drop(promise.send(points(&space).map(|point| view.get(point)).collect()));
            Ok(())
        };
        let accesses = vec![access(buffer, AccessMode::Read, Mapper::All)];
        let spec =
            TaskSpec { name: "contents".into(), work: Work::Fence, accesses, location: None };
        self.node.submit(spec, Payload::Host(HostFunction::new(copy_out)))?;
        snapshot.recv().map_err(|_| self.node.error().expect("the run has failed").into())
    }
}

fn access(buffer: BufferId, mode: AccessMode, mapper: Mapper) -> Access {
    Access::buffer(buffer, mode, mapper)
}

/// What is wanted of a cluster.
#[derive(Clone, Copy, Debug)]
struct Cluster {
    nodes: usize,
    devices: u16,
    linked: bool,
    seed: u64,
}

/// Runs a program on every node; the first node's value.
fn run<R: Send>(
    cluster: Cluster,
    memory: u64,
    body: impl Fn(Program<'_>) -> Result<R, SubmitError> + Sync,
) -> Result<R, SubmitError> {
    run_timed(cluster, memory, None, body)
}

fn run_timed<R: Send>(
    cluster: Cluster,
    memory: u64,
    times: Option<&KernelTimes>,
    body: impl Fn(Program<'_>) -> Result<R, SubmitError> + Sync,
) -> Result<R, SubmitError> {
    let Cluster { nodes, devices, linked, seed } = cluster;
    let count = u16::try_from(nodes).unwrap() * devices;
    let fake = FakeDriver::new(usize::from(count), memory).with_seed(seed);
    let (fake, kernels) = fake.hosting_kernels();
    let fake = if linked { fake } else { fake.without_links() };
    let gpus = Gpus::new(Arc::new(fake), None).unwrap();
    let selected: Vec<_> = (0..count).map(Gpu::from_slot).collect();
    let config = CudaConfig::default();
    let devices = CudaDevices::deal(&gpus, &selected, 0..nodes, false, &config).unwrap();
    let config = ClusterConfig { nodes, ..ClusterConfig::default() };
    let space = Box3::from_range([12, 7]);
    let run = Run::new(&config).on(InProcess { nodes }).with_devices(devices);
    let run = times.into_iter().fold(run, Run::timing);
    run.execute(|node| body(Program { node, kernels: &kernels, space }))
}

/// Each element becomes a hash of itself and of its neighbours; a stale element
/// changes the result.
fn mix(old: u64, around: impl Iterator<Item = u64>) -> u64 {
    around.fold(old.rotate_left(7), |hash, value| (hash ^ value).wrapping_mul(0x0100_0000_01b3))
}

fn neighbours(space: &Box3, [y, x, _]: Coord3) -> impl Iterator<Item = Coord3> + use<> {
    let [height, width, _] = space.range();
    let rows = y.saturating_sub(1)..(y + 2).min(height);
    rows.flat_map(move |y| (x.saturating_sub(1)..(x + 2).min(width)).map(move |x| [y, x, 0]))
}

const STEPS: usize = 9;

fn sequential(space: &Box3) -> Vec<u64> {
    let width = usize::try_from(space.range()[1]).unwrap();
    let index =
        |[y, x, _]: Coord3| usize::try_from(y).unwrap() * width + usize::try_from(x).unwrap();
    let mut front: Vec<u64> = points(space).map(|[y, x, _]| 100 * y + x).collect();
    let mut back = vec![0; front.len()];
    for _ in 0..STEPS {
        let step =
            |at: Coord3| mix(back[index(at)], neighbours(space, at).map(|near| front[index(near)]));
        back = points(space).map(step).collect();
        std::mem::swap(&mut front, &mut back);
    }
    front
}

fn stencil(program: &Program<'_>) -> Result<Vec<u64>, SubmitError> {
    let (mut front, mut back) = (program.buffer(), program.buffer());
    let all = |buffer| vec![access(buffer, AccessMode::Write, Mapper::OneToOne)];
    program.kernel("start", all(front), |at, views| views[0].set(at, 100 * at[0] + at[1]))?;
    program.kernel("zero", all(back), |at, views| views[0].set(at, 0))?;
    for _ in 0..STEPS {
        let accesses = vec![
            access(front, AccessMode::Read, Mapper::neighborhood([1, 1])),
            access(back, AccessMode::ReadWrite, Mapper::OneToOne),
        ];
        let space = program.space;
        program.kernel("step", accesses, move |at, views| {
            let around = neighbours(&space, at).map(|near| views[0].get(near));
            views[1].set(at, mix(views[1].get(at), around));
        })?;
        std::mem::swap(&mut front, &mut back);
    }
    program.contents(front)
}

#[test]
fn programs_compute_what_they_do_sequentially() {
    let expected = sequential(&Box3::from_range([12, 7]));
    for nodes in [1, 2] {
        for devices in [1, 2, 3] {
            for linked in [true, false] {
                for seed in [3, 1 << 20, 0x1234_5678] {
                    let cluster = Cluster { nodes, devices, linked, seed };
                    let found = run(cluster, 1 << 20, |program| stencil(&program));
                    assert_eq!(found.as_ref(), Ok(&expected), "{cluster:?}");
                }
            }
        }
    }
}

#[test]
fn a_table_of_kernels_counts_and_times_every_launch() {
    let cluster = Cluster { nodes: 2, devices: 2, linked: true, seed: 7 };
    let times = KernelTimes::default();
    run_timed(cluster, 1 << 20, Some(&times), |program| stencil(&program)).unwrap();
    let launches = |name| times.of(name).map(|kernel| (kernel.launches, kernel.timed));
    assert_eq!(launches("start"), Some((4, 4)));
    assert_eq!(launches("step"), Some((4 * STEPS as u64, 4 * STEPS as u64)));
    assert_eq!(times.of("zero").unwrap().bytes, 12 * 7 * 8);
}

const ONE: Cluster = Cluster { nodes: 1, devices: 1, linked: true, seed: 5 };

#[test]
fn a_gpu_without_room_names_task_box_and_residents() {
    let one = 12 * 7 * 8;
    let error = run(ONE, one + 100, |program| stencil(&program)).unwrap_err();
    let SubmitError::Run(RunError::OutOfMemory { error, .. }) = error else { panic!("{error}") };
    let said = error.to_string();
    assert!(
        said.contains(&format!("where {one} bytes are resident and 100 bytes are free")),
        "{said}"
    );
    let NoRoom { memory, task, buffer, extent, bytes, residents, .. } = &*error;
    assert_eq!((memory.as_str(), *bytes), ("M2, the memory of D0", one));
    assert_eq!((buffer.as_str(), *extent), ("\"B1\"", Some(Box3::from_range([12, 7]))));
    let [Resident { buffer, bytes, .. }] = &**residents else { panic!("{residents:?}") };
    assert_eq!((buffer.as_str(), *bytes), ("\"B0\"", one));
    assert!(task.as_deref().is_some_and(|task| task.contains("T2 \"zero\"")), "{task:?}");
}

#[test]
fn a_failing_kernel_is_named() {
    let error = run(ONE, 1 << 20, |program| {
        let buffer = program.buffer();
        let accesses = vec![access(buffer, AccessMode::Write, Mapper::OneToOne)];
        program.kernel("break", accesses, |_, _| panic!("an error of this kernel"))?;
        program.contents(buffer)
    });
    let SubmitError::Run(RunError::TaskPanicked { task, message, .. }) = error.unwrap_err() else {
        panic!("another error")
    };
    assert!(task.contains("\"break\""), "{task}");
    assert!(message.contains("GPU 0 failed"), "{message}");
}

#[test]
fn kernels_for_cpus_only_are_refused_when_they_are_submitted() {
    let error = run(ONE, 1 << 20, |program| {
        let work = Work::Device(IndexSpace::new(2, program.space));
        let spec = TaskSpec { name: "closure".into(), work, accesses: vec![], location: None };
        let kernel = Payload::Kernel(Arc::new(PerItem(|_: Coord3, _: &[View<'_>]| {})));
        program.node.submit(spec, kernel).map(drop)
    });
    let error = error.unwrap_err();
    assert!(matches!(&error, SubmitError::Kernel { name, .. } if name == "closure"), "{error}");
}
