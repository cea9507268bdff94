//! What kernels take by value, on a driver without GPUs: structs that change in each step arrive as
//! they are, and code is loaded once, however often they change.
#![allow(unsafe_code)]

use std::error::Error;
use std::sync::Arc;
use std::sync::mpsc::channel;

use celerity_cuda::{CudaConfig, CudaDevices, FakeDriver, FakeLaunch, Gpu, Gpus};
use celerity_example_kernels::values::{Body, Field, Step, move_body};
use celerity_executor::{
    BoundMemory, ClusterConfig, CodeModule, CodeSource, DeviceCode, DeviceKernel, HostFunction,
    InProcess, Launch, NoDeviceCode, NodeFrontend, Parameters, Payload, Run, SubmitError,
};
use celerity_kernel::abi::{AccessMemory, Chunk, Geometry, Mapping};
use celerity_kernel::half::{bf16, f16};
use celerity_kernel::num_complex::Complex;
use celerity_kernel::{Bounds, Item, ItemKernel, Kernel};
use celerity_regions::Box3;
use celerity_tdag::{Access, AccessMode, BufferId, IndexSpace, Mapper, NewBuffer, TaskSpec, Work};

const BODIES: usize = 1000;
const STEPS: u64 = 60;

/// A compiled kernel with one access, one to one, as the facade launches it.
struct Compiled {
    module: Arc<CodeModule>,
    kernel: move_body,
}

impl DeviceKernel for Compiled {
    unsafe fn run(&self, _chunk: &Box3, _memory: &[BoundMemory<'_>]) {
        unreachable!("there are no CPU devices here");
    }

    fn device_code(&self) -> Result<&dyn DeviceCode, NoDeviceCode> {
        Ok(self)
    }
}

fn bounds(part: &Box3) -> Bounds<3> {
    Bounds::new(part.min().map(|index| index as usize), part.max().map(|index| index as usize))
}

// SAFETY: the fake driver runs `on_gpu` for it, which touches the bodies of the chunk.
unsafe impl DeviceCode for Compiled {
    fn module(&self) -> &Arc<CodeModule> {
        &self.module
    }

    fn entry(&self) -> &str {
        move_body::DESCRIPTION.entry
    }

    fn launch(
        &self,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
    ) -> Result<Launch, Box<dyn Error + Send + Sync>> {
        let access = AccessMemory {
            address: memory[0].base() as u64,
            extent: bounds(memory[0].extent()),
            part: bounds(&memory[0].region().bounding_box()),
            buffer: [BODIES, 1, 1],
            mapping: Mapping::OneToOne,
        };
        let chunk = Chunk::new(bounds(chunk), [BODIES, 1, 1]);
        let mut parameters = Parameters::default();
        let mut append = |bytes: &[u8], alignment| parameters.push_bytes(bytes, alignment);
        let shape = self.kernel.put_launch(&chunk, &[access], &mut append)?;
        let Geometry { grid, block, shared_bytes } = shape;
        Ok(Launch { grid, block, shared_bytes, parameters })
    }
}

/// What the entry point does, with the parameters as its signature has them: the launch's block of
/// 128 bytes, an address, the access's block of 184, a [`Step`] and a byte.
fn on_gpu(launch: &FakeLaunch) -> Result<(), String> {
    let word = |index: usize| launch.parameter::<u64>(8 * index) as usize;
    let (first, count, base, origin) = (word(0), word(3), word(16), word(18));
    let step: Step = launch.parameter(320);
    let sign: i8 = launch.parameter(320 + size_of::<Step>());
    for index in first..first + count {
        let body = std::ptr::with_exposed_provenance_mut::<Body>(base).wrapping_add(index - origin);
        // SAFETY: the allocation holds the bodies of the chunk, which nobody else touches.
        let body = unsafe { &mut *body };
        move_body { step, sign }.item(Item::new([index], [BODIES]), body);
    }
    Ok(())
}

fn kernel(number: u64) -> move_body {
    let field = Field {
        acceleration: [0.5, -9.5, number as f32],
        factors: [1.0, 0.25 * number as f32].map(bf16::from_f32),
    };
    let wind = Complex::new(0.25 * number as f64, 1.0);
    let step = Step { number, wind, field, seconds: 0.125, reserved: 0 };
    move_body { step, sign: if number.is_multiple_of(3) { -1 } else { 1 } }
}

fn bodies() -> Vec<Body> {
    let body = |i: usize| Body {
        place: [i as f32, 0.0, 1.0],
        kind: (i % 5) as u16,
        drag: f16::from_f32(0.25),
        ..Body::default()
    };
    (0..BODIES).map(body).collect()
}

fn program(node: &NodeFrontend, module: &Arc<CodeModule>) -> Result<Vec<Body>, SubmitError> {
    let extent = Box3::from_range([BODIES]);
    let (elem_size, elem_align) = (size_of::<Body>() as u64, align_of::<Body>() as u64);
    let new =
        NewBuffer { name: None, dims: 1, extent, elem_size, elem_align, host_initialized: true };
    let data = celerity_executor::HostData::new(bodies());
    let buffer: BufferId = node.create_buffer(new, Some(data));
    for number in 0..STEPS {
        let kernel = Arc::new(Compiled { module: module.clone(), kernel: kernel(number) });
        let accesses = vec![Access::buffer(buffer, AccessMode::ReadWrite, Mapper::OneToOne)];
        let work = Work::Device(IndexSpace::new(1, extent));
        let spec = TaskSpec { name: "move".into(), work, accesses, location: None };
        node.submit(spec, Payload::Kernel(kernel))?;
    }
    let (promise, snapshot) = channel();
    let copy_out = move |memory: &[BoundMemory<'_>]| {
        // SAFETY: the fence reads all of the buffer.
        let all = unsafe { std::slice::from_raw_parts(memory[0].base().cast::<Body>(), BODIES) };
        drop(promise.send(all.to_vec()));
        Ok(())
    };
    let accesses = vec![Access::buffer(buffer, AccessMode::Read, Mapper::All)];
    let spec = TaskSpec { name: "contents".into(), work: Work::Fence, accesses, location: None };
    node.submit(spec, Payload::Host(HostFunction::new(copy_out)))?;
    snapshot.recv().map_err(|_| node.error().expect("the run has failed").into())
}

#[test]
fn changing_parameters_load_nothing_anew() {
    let mut expected = bodies();
    for number in 0..STEPS {
        let kernel = kernel(number);
        for (index, body) in expected.iter_mut().enumerate() {
            kernel.item(Item::new([index], [BODIES]), body);
        }
    }
    for (nodes, devices) in [(1, 1), (1, 3), (2, 2)] {
        let count = nodes * devices;
        let fake = FakeDriver::new(count, 1 << 22).with_kernel("move_body", on_gpu);
        let fake = Arc::new(fake);
        let gpus = Gpus::new(fake.clone(), None).unwrap();
        let selected: Vec<_> = (0..count as u16).map(Gpu::from_slot).collect();
        let config = CudaConfig::default();
        let devices = CudaDevices::deal(&gpus, &selected, 0..nodes, false, &config).unwrap();
        let config = ClusterConfig { nodes, ..ClusterConfig::default() };
        let run = Run::new(&config).on(InProcess { nodes }).with_devices(devices);
        let module = CodeModule::new("values", CodeSource::Ptx("move_body".into()));
        let found = run.execute(|node| program(node, &module)).unwrap();
        assert!(found == expected, "{nodes} nodes, {count} GPUs");
        let counts = fake.counts();
        assert!(counts.launches >= count * STEPS as usize, "{}", counts.launches);
        assert_eq!(counts.loads, count, "modules are loaded once on each GPU");
    }
}
