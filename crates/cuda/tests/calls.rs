//! Calls on devices, on nodes with GPUs of a driver without GPUs: functions that put work on the
//! streams of chunks, between kernels of a program.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use celerity_cuda::{CudaConfig, CudaDevices, FakeDriver, Gpu, Gpus, HostedKernels};
use celerity_executor::{
    BoundMemory, ClusterConfig, DeviceKernel, DeviceStream, EnqueuedCall, HostFunction, InProcess,
    NodeFrontend, Payload, Run, RunError, SubmitError, TaskError,
};
use celerity_regions::Box3;
use celerity_tdag::{Access, AccessMode, BufferId, IndexSpace, Mapper, NewBuffer, TaskSpec, Work};

/// Items, and elements of each buffer.
const ITEMS: usize = 60;

/// Where the elements of a chunk begin, and how many there are: accesses are one to one.
#[derive(Clone, Copy)]
struct Part {
    address: usize,
    count: usize,
}

impl Part {
    fn of(memory: &BoundMemory<'_>) -> Self {
        let (part, extent) = (memory.region().bounding_box(), memory.extent());
        let ahead = usize::try_from(part.min()[0] - extent.min()[0]).unwrap();
        let address = memory.base().cast::<u64>().wrapping_add(ahead).expose_provenance();
        Self { address, count: usize::try_from(part.volume()).unwrap() }
    }

    /// # Safety
    /// The memory is live, and nobody else's.
    unsafe fn elements<'a>(self) -> &'a mut [u64] {
        let first = std::ptr::with_exposed_provenance_mut(self.address);
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(first, self.count) }
    }
}

/// A kernel of a test: `x → step(x)`.
struct Kernel(fn(u64) -> u64);

impl DeviceKernel for Kernel {
    unsafe fn run(&self, _: &Box3, memory: &[BoundMemory<'_>]) {
        // SAFETY: the executor's promise for an access that reads and writes.
        let elements = unsafe { Part::of(&memory[0]).elements() };
        elements.iter_mut().for_each(|x| *x = (self.0)(*x));
    }
}

/// What a call does beside putting `x → step(x)` on its stream, before and after that.
type Beside = dyn Fn(&Box3, DeviceStream) -> Result<(), TaskError> + Send + Sync;

/// The same as a call on a device.
struct Call {
    fake: Arc<FakeDriver>,
    step: fn(u64) -> u64,
    after: Arc<Beside>,
    /// What its work has left to do, on all devices.
    pending: Arc<AtomicUsize>,
    /// Whether the GPU objects to the work.
    faults: bool,
}

// SAFETY: it puts work on the stream that is called for the elements that it may write.
unsafe impl EnqueuedCall for Call {
    unsafe fn enqueue(
        &self,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
        stream: DeviceStream,
    ) -> Result<(), TaskError> {
        let (part, step, pending) = (Part::of(&memory[0]), self.step, self.pending.clone());
        let faults = self.faults;
        pending.fetch_add(1, Ordering::SeqCst);
        self.fake.put(&stream, move || {
            // SAFETY: it runs in the order of the stream, while the memory is the call's.
            let elements = unsafe { part.elements() };
            elements.iter_mut().for_each(|x| *x = step(*x));
            pending.fetch_sub(1, Ordering::SeqCst);
            if faults { Err("an illegal address".to_owned()) } else { Ok(()) }
        });
        (self.after)(chunk, stream)
    }
}

impl DeviceKernel for Call {
    unsafe fn run(&self, _: &Box3, _: &[BoundMemory<'_>]) {
        unreachable!("there are no CPU devices here");
    }

    fn device_call(&self) -> Option<&dyn EnqueuedCall> {
        Some(self)
    }
}

/// What a program needs on one node.
struct Program<'a> {
    node: &'a NodeFrontend,
    kernels: &'a HostedKernels,
    fake: &'a Arc<FakeDriver>,
    pending: &'a Arc<AtomicUsize>,
}

impl Program<'_> {
    fn buffer(&self) -> BufferId {
        self.node.create_buffer(
            NewBuffer {
                name: None,
                dims: 1,
                extent: Box3::from_range([ITEMS]),
                elem_size: 8,
                elem_align: 8,
                host_initialized: false,
            },
            None,
        )
    }

    fn submit(
        &self,
        name: &str,
        buffer: BufferId,
        mode: AccessMode,
        kernel: Arc<dyn DeviceKernel>,
    ) -> Result<(), SubmitError> {
        let work = Work::Device(IndexSpace::new(1, Box3::from_range([ITEMS])));
        let accesses = vec![Access::buffer(buffer, mode, Mapper::OneToOne)];
        let spec = TaskSpec { name: name.into(), work, accesses, location: None };
        self.node.submit(spec, Payload::Kernel(kernel)).map(drop)
    }

    fn kernel(&self, buffer: BufferId, step: fn(u64) -> u64) -> Result<(), SubmitError> {
        let kernel = self.kernels.wrap(Arc::new(Kernel(step)));
        self.submit("kernel", buffer, AccessMode::ReadWrite, kernel)
    }

    fn call_of(&self, step: fn(u64) -> u64) -> Call {
        let (fake, pending) = (self.fake.clone(), self.pending.clone());
        Call { fake, step, after: Arc::new(|_, _| Ok(())), pending, faults: false }
    }

    fn call(&self, buffer: BufferId, call: Call) -> Result<(), SubmitError> {
        self.submit("call", buffer, AccessMode::ReadWrite, Arc::new(call))
    }

    fn contents(&self, buffer: BufferId) -> Result<Vec<u64>, SubmitError> {
        let (promise, snapshot) = channel();
        let copy_out = move |memory: &[BoundMemory<'_>]| {
            // SAFETY: the executor's promise for an access that reads; nobody writes meanwhile.
            drop(promise.send(unsafe { Part::of(&memory[0]).elements() }.to_vec()));
            Ok(())
        };
        let accesses = vec![Access::buffer(buffer, AccessMode::Read, Mapper::All)];
        let name = "contents".into();
        let spec = TaskSpec { name, work: Work::Fence, accesses, location: None };
        self.node.submit(spec, Payload::Host(HostFunction::new(copy_out)))?;
        snapshot.recv().map_err(|_| self.node.error().expect("the run has failed").into())
    }
}

/// Runs a program on every node; the first node's value.
fn run<R: Send>(
    (nodes, devices, seed): (usize, u16, u64),
    pending: &Arc<AtomicUsize>,
    body: impl Fn(Program<'_>) -> Result<R, SubmitError> + Sync,
) -> Result<R, SubmitError> {
    let count = u16::try_from(nodes).unwrap() * devices;
    let fake = FakeDriver::new(usize::from(count), 1 << 20).with_seed(seed);
    let (fake, kernels) = fake.hosting_kernels();
    let fake = Arc::new(fake);
    let gpus = Gpus::new(fake.clone(), None).unwrap();
    let selected: Vec<_> = (0..count).map(Gpu::from_slot).collect();
    let devices =
        CudaDevices::deal(&gpus, &selected, 0..nodes, false, &CudaConfig::default()).unwrap();
    let config = ClusterConfig { nodes, ..ClusterConfig::default() };
    let run = Run::new(&config).on(InProcess { nodes }).with_devices(devices);
    run.execute(|node| body(Program { node, kernels: &kernels, fake: &fake, pending }))
}

#[test]
fn calls_take_their_turn_among_kernels_on_every_device() {
    let mut expected = vec![7; ITEMS];
    for _ in 0..6 {
        expected.iter_mut().for_each(|x| *x = (3 * *x + 1) * 5);
    }
    for (nodes, devices) in [(1, 1), (1, 3), (2, 1), (2, 2), (3, 2)] {
        for seed in [3, 1 << 20, 0x1234_5678] {
            let seen = Mutex::new(Vec::new());
            let pending = Arc::default();
            let found = run((nodes, devices, seed), &pending, |program| {
                let buffer = program.buffer();
                let fill = program.kernels.wrap(Arc::new(Kernel(|_| 7)));
                program.submit("fill", buffer, AccessMode::Write, fill)?;
                let (promise, places) = channel();
                for _ in 0..6 {
                    program.kernel(buffer, |x| 3 * x + 1)?;
                    let promise = Mutex::new(promise.clone());
                    let after = move |chunk: &Box3, stream: DeviceStream| {
                        let place = (chunk.min()[0], stream.ordinal);
                        promise.lock().unwrap().send(place).expect("the program listens");
                        Ok(())
                    };
                    let call = program.call_of(|x| 5 * x);
                    program.call(buffer, Call { after: Arc::new(after), ..call })?;
                }
                let contents = program.contents(buffer)?;
                program.node.barrier()?;
                seen.lock().unwrap().extend(places.try_iter());
                Ok(contents)
            });
            let cluster = (nodes, devices, seed);
            assert_eq!(found.as_ref(), Ok(&expected), "{cluster:?}");
            assert_eq!(pending.load(Ordering::SeqCst), 0, "all has ended, {cluster:?}");
            // Six calls of each chunk, each on the GPU that owns it.
            let mut seen = seen.into_inner().unwrap();
            assert_eq!(seen.len(), 6 * nodes * usize::from(devices), "{cluster:?}");
            seen.sort_unstable();
            seen.dedup();
            let ordinals: Vec<_> = seen.iter().map(|&(_, ordinal)| ordinal).collect();
            let gpus: Vec<_> = (0..nodes * usize::from(devices)).collect();
            assert_eq!(ordinals, gpus, "{cluster:?}");
        }
    }
}

#[test]
fn a_call_that_leaves_another_context_hurts_nobody() {
    let pending = Arc::default();
    let found = run((1, 2, 5), &pending, |program| {
        let buffer = program.buffer();
        let fill = program.kernels.wrap(Arc::new(Kernel(|_| 1)));
        program.submit("fill", buffer, AccessMode::Write, fill)?;
        for _ in 0..4 {
            let fake = program.fake.clone();
            let lose = move |_: &Box3, _: DeviceStream| {
                fake.lose_context();
                Ok(())
            };
            // The driver objects to what is put on a stream without the context.
            program.call(buffer, Call { after: Arc::new(lose), ..program.call_of(|x| 2 * x) })?;
        }
        program.contents(buffer)
    });
    assert_eq!(found, Ok(vec![16; ITEMS]));
}

/// The error of a run of two nodes with a GPU each, in which the second call fails on the second
/// node.
fn failure(after: impl Fn() -> Result<(), TaskError> + Copy + Send + Sync + 'static) -> RunError {
    let pending = Arc::default();
    let error = run((2, 1, 9), &pending, |program| {
        let buffer = program.buffer();
        let fill = program.kernels.wrap(Arc::new(Kernel(|_| 1)));
        program.submit("fill", buffer, AccessMode::Write, fill)?;
        program.call(buffer, program.call_of(|x| 2 * x))?;
        let after = move |chunk: &Box3, _: DeviceStream| {
            if chunk.min()[0] == 0 { Ok(()) } else { after() }
        };
        let call = program.call_of(|x| 2 * x);
        program.call(buffer, Call { after: Arc::new(after), ..call })?;
        program.contents(buffer)
    });
    assert_eq!(pending.load(Ordering::SeqCst), 0, "what was put on a stream has ended");
    match error {
        Err(SubmitError::Run(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_call_returns_ends_the_run_when_its_work_has_ended() {
    let error = failure(|| Err(TaskError::new("no workspace")));
    let text = error.to_string();
    assert!(matches!(error, RunError::TaskFailed { device: Some(_), .. }), "{text}");
    assert!(text.contains("\"call\" failed on N1, D0: no workspace"), "{text}");
}

#[test]
fn a_panic_in_a_call_ends_the_run_with_what_it_said() {
    let text = failure(|| panic!("no plan")).to_string();
    assert!(text.contains("\"call\" panicked on N1, D0: no plan"), "{text}");
}

#[test]
fn work_of_a_call_that_fails_on_the_gpu_is_named() {
    let pending = Arc::default();
    let error = run((2, 1, 9), &pending, |program| {
        // With nothing before it that could have failed as well.
        let buffer = program.buffer();
        let call = Arc::new(Call { faults: true, ..program.call_of(|_| 1) });
        program.submit("call", buffer, AccessMode::Write, call)?;
        program.contents(buffer)
    });
    let text = error.unwrap_err().to_string();
    let expected = text.contains("\"call\" panicked on N") && text.contains("an illegal address");
    assert!(expected, "{text}");
}
