//! Small programs against the frontend, without the facade: buffers of `u64`,
//! kernels as closures over items.
#![allow(dead_code, unsafe_code, unreachable_pub, reason = "every test file uses its own part")]

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};

use celerity_cdag::Command;
use celerity_executor::{
    BoundMemory, ClusterConfig, DeviceKernel, HostData, HostFunction, NodeFrontend, Observer,
    Payload, RunError, SubmitError, run_cluster,
};
use celerity_idag::{AllocationId, Instruction, Pilot};
use celerity_regions::{Box3, Coord3};
use celerity_tdag::{
    Access, AccessMode, BufferId, BufferInfo, IndexSpace, Mapper, NewBuffer, Task, TaskId,
    TaskSpec, Work,
};

/// Nodes and devices to try everything on.
pub fn configurations() -> impl Iterator<Item = ClusterConfig> {
    let counts = (1..=4).flat_map(|nodes| (1..=3).map(move |devices| (nodes, devices)));
    counts.map(|(nodes, devices)| cluster(nodes, devices))
}

pub fn cluster(nodes: usize, devices: usize) -> ClusterConfig {
    ClusterConfig { nodes, devices, ..ClusterConfig::default() }
}

/// An error of the user's program; everything converts into it.
#[derive(Clone, Debug, PartialEq)]
pub enum ProgramError {
    Run(RunError),
    Submit(SubmitError),
    Own(String),
}

impl From<RunError> for ProgramError {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

impl From<SubmitError> for ProgramError {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Run(error) => Self::Run(error),
            other => Self::Submit(other),
        }
    }
}

impl std::fmt::Display for ProgramError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Run(error) => error.fmt(f),
            Self::Submit(error) => error.fmt(f),
            Self::Own(message) => f.write_str(message),
        }
    }
}

pub type Outcome<R> = Result<R, ProgramError>;

/// Runs a program; fails the test if it hangs.
pub fn run<R: Send + 'static>(
    config: &ClusterConfig,
    body: impl Fn(&Arc<NodeFrontend>) -> Outcome<R> + Send + Sync + 'static,
) -> Outcome<R> {
    let (config, (done, outcome)) = (config.clone(), channel());
    let thread = std::thread::spawn(move || drop(done.send(run_cluster(&config, body))));
    match outcome.recv_timeout(std::time::Duration::from_secs(120)) {
        Ok(outcome) => outcome,
        Err(RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(thread.join().unwrap_err())
        }
        Err(RecvTimeoutError::Timeout) => panic!("the run hangs"),
    }
}

pub fn new_buffer(extent: Box3, host_initialized: bool) -> NewBuffer {
    let dims = u8::try_from(extent.effective_dims()).unwrap();
    NewBuffer { name: None, dims, extent, elem_size: 8, elem_align: 8, host_initialized }
}

pub fn buffer(node: &NodeFrontend, extent: Box3) -> BufferId {
    node.create_buffer(new_buffer(extent, false), None)
}

pub fn buffer_from(node: &NodeFrontend, extent: Box3, contents: Vec<u64>) -> BufferId {
    node.create_buffer(new_buffer(extent, true), Some(HostData::new(contents)))
}

pub fn reads(buffer: BufferId, mapper: Mapper) -> Access {
    Access::buffer(buffer, AccessMode::Read, mapper)
}

pub fn writes(buffer: BufferId, mapper: Mapper) -> Access {
    Access::buffer(buffer, AccessMode::Write, mapper)
}

pub fn updates(buffer: BufferId, mapper: Mapper) -> Access {
    Access::buffer(buffer, AccessMode::ReadWrite, mapper)
}

/// An access's memory with every index checked against what was declared.
#[derive(Clone, Copy)]
pub struct View<'a>(BoundMemory<'a>);

impl View<'_> {
    fn slot(&self, point: Coord3) -> *mut u64 {
        assert!(self.0.region().contains_point(point), "{point:?} is not in {}", self.0.region());
        let (min, range) = (self.0.extent().min(), self.0.extent().range());
        let line = (point[0] - min[0]) * range[1] + point[1] - min[1];
        let index = usize::try_from(line * range[2] + point[2] - min[2]).unwrap();
        // SAFETY: the region is inside the extent, which the memory holds.
        unsafe { self.0.base().cast::<u64>().add(index) }
    }

    pub fn get(&self, point: Coord3) -> u64 {
        // SAFETY: the engine guarantees that the region is live and not
        // written meanwhile.
        unsafe { self.slot(point).read() }
    }

    pub fn set(&self, point: Coord3, value: u64) {
        // SAFETY: as above, and nobody else touches what a writing access names.
        unsafe { self.slot(point).write(value) }
    }
}

fn views<'a>(memory: &[BoundMemory<'a>]) -> Vec<View<'a>> {
    memory.iter().copied().map(View).collect()
}

pub fn points(elements: &Box3) -> impl Iterator<Item = Coord3> + use<> {
    let (min, max) = (elements.min(), elements.max());
    let plane =
        move |z| (min[1]..max[1]).flat_map(move |y| (min[2]..max[2]).map(move |x| [z, y, x]));
    (min[0]..max[0]).flat_map(plane)
}

struct ItemKernel<F>(F);

impl<F: Fn(Coord3, &[View<'_>]) + Send + Sync + 'static> DeviceKernel for ItemKernel<F> {
    unsafe fn run(&self, chunk: &Box3, memory: &[BoundMemory<'_>]) {
        let views = views(memory);
        points(chunk).for_each(|point| (self.0)(point, &views));
    }
}

pub fn spec(name: &str, work: Work, accesses: Vec<Access>) -> TaskSpec {
    TaskSpec { name: name.into(), work, accesses, location: None }
}

/// Submits a kernel that is called once per item.
pub fn kernel(
    node: &NodeFrontend,
    name: &str,
    space: Box3,
    accesses: Vec<Access>,
    item: impl Fn(Coord3, &[View<'_>]) + Send + Sync + 'static,
) -> Result<TaskId, SubmitError> {
    let dims = u8::try_from(space.effective_dims().max(1)).unwrap();
    let work = Work::Device(IndexSpace::new(dims, space));
    node.submit(spec(name, work, accesses), Payload::Kernel(Arc::new(ItemKernel(item))))
}

pub fn host_task(
    node: &NodeFrontend,
    name: &str,
    accesses: Vec<Access>,
    function: impl FnOnce(&[View<'_>]) + Send + 'static,
) -> Result<TaskId, SubmitError> {
    let payload = Payload::Host(HostFunction::new(move |memory| {
        function(&views(memory));
        Ok(())
    }));
    node.submit(spec(name, Work::HostOnce { node: 0 }, accesses), payload)
}

/// A snapshot of a whole buffer, to come.
pub struct Fence(Receiver<Vec<u64>>);

pub fn fence(node: &NodeFrontend, buffer: BufferId, extent: Box3) -> Result<Fence, SubmitError> {
    let (promise, snapshot) = channel();
    let copy_out = move |memory: &[BoundMemory<'_>]| {
        let view = View(memory[0]);
        drop(promise.send(points(&extent).map(|point| view.get(point)).collect()));
        Ok(())
    };
    let accesses = vec![reads(buffer, Mapper::All)];
    node.submit(spec("fence", Work::Fence, accesses), Payload::Host(HostFunction::new(copy_out)))?;
    Ok(Fence(snapshot))
}

impl Fence {
    /// The snapshot, or the error that kept it from being taken.
    pub fn wait(self, node: &NodeFrontend) -> Result<Vec<u64>, RunError> {
        self.0.recv().map_err(|_| node.error().expect("a dropped payload means a failed run"))
    }
}

/// What all nodes have left here, in order of nodes.
#[derive(Clone)]
pub struct PerNode<T>(Arc<Mutex<Vec<(u64, T)>>>);

impl<T> Default for PerNode<T> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Vec::new())))
    }
}

impl<T> PerNode<T> {
    pub fn push(&self, node: &NodeFrontend, value: T) {
        self.0.lock().unwrap().push((node.node().index(), value));
    }

    pub fn take(&self) -> Vec<T> {
        let mut all = std::mem::take(&mut *self.0.lock().unwrap());
        all.sort_by_key(|(node, _)| *node);
        all.into_iter().map(|(_, value)| value).collect()
    }
}

/// Somebody who does something whenever a task has been scheduled, where it has been.
pub struct OnTask<F>(pub F);

impl<F: FnMut() + Send> Observer for OnTask<F> {
    fn buffer(&mut self, _: &Arc<BufferInfo>, _: Option<AllocationId>) {}

    fn task(
        &mut self,
        _: &Arc<Task>,
        _: &[Command],
        _: &[Instruction],
        _: &[Pilot],
    ) -> Result<(), String> {
        (self.0)();
        Ok(())
    }

    fn buffer_end(&mut self, _: BufferId, _: &[Instruction]) -> Result<(), String> {
        Ok(())
    }
}
