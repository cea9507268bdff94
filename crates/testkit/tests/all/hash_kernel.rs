//! The kernels compute what the twin computes: run here on one array per
//! buffer, chunk by chunk, without any runtime.
#![allow(unsafe_code)]

use std::sync::{Arc, Mutex};

use celerity_cdag::NodeId;
use celerity_executor::{BoundMemory, DeviceKernel, HostCall};
use celerity_regions::{Box3, Region};
use celerity_tdag::{AccessMode, IndexSpace, MapperInput};
use celerity_testkit::element;
use celerity_testkit::hash::initial_contents;
use celerity_testkit::hash_kernel::HashKernel;
use celerity_testkit::program::{
    MapperSpec, MapperTable, Op, Program, ProgramBuilder, Sizes, TaskKind, TaskOp, any_program,
    buffer_slot,
};
use celerity_testkit::twin::{Observation, ObservedElements, interpret};
use proptest::prelude::*;

/// All buffers, each in one array.
struct Arrays {
    contents: Vec<Vec<u64>>,
    lowering: MapperTable,
    snapshots: Arc<Mutex<Vec<ObservedElements>>>,
}

fn execute(program: &Program) -> Observation {
    let buffers = program.buffers();
    let contents = buffers.iter().enumerate().map(|(id, spec)| {
        let elements = element::volume(&spec.extent);
        match spec.host_initialized {
            true => initial_contents(id as u64, elements, spec.words),
            false => vec![0; elements * spec.words],
        }
    });
    let mut arrays = Arrays {
        contents: contents.collect(),
        lowering: MapperTable::default(),
        snapshots: Arc::default(),
    };
    for (op, statement) in program.ops.iter().enumerate() {
        if let Op::Task(task) = statement {
            arrays.execute(op, task, program);
        }
    }
    let snapshots = arrays.snapshots.lock().unwrap().clone();
    Observation { snapshots }
}

impl Arrays {
    fn execute(&mut self, op: usize, task: &TaskOp, program: &Program) {
        let chunks = match &task.kind {
            TaskKind::Device(space) | TaskKind::HostSplit { space, .. } => {
                space.split(&space.extent, 3).iter().collect()
            }
            TaskKind::HostOnce { .. } | TaskKind::Fence | TaskKind::Combine => vec![Box3::UNIT],
        };
        for chunk in chunks.into_iter().filter(|chunk| !chunk.is_empty()) {
            let kernel = HashKernel::new(op, task, &program.buffers(), &mut self.lowering);
            let regions = self.regions(task, program, &chunk);
            let memory = self.bind(task, program, &regions);
            let function = match task.kind {
                TaskKind::Device(_) => {
                    // SAFETY: `bind` has bound the task's accesses.
                    unsafe { kernel.run(&chunk, &memory) };
                    continue;
                }
                TaskKind::HostOnce { .. } | TaskKind::Combine => kernel.into_host_function(),
                TaskKind::HostSplit { .. } => {
                    let node = NodeId::from_index(0);
                    let call = HostCall { chunk, node, nodes: 1, collective: None };
                    kernel.into_host_kernel().on(call)
                }
                TaskKind::Fence => {
                    let snapshots = self.snapshots.clone();
                    let publish = move |taken| snapshots.lock().unwrap().extend::<Vec<_>>(taken);
                    kernel.into_snapshot_function(publish)
                }
            };
            // SAFETY: as above.
            unsafe { function.call(&memory) }.unwrap();
        }
    }

    fn regions(&mut self, task: &TaskOp, program: &Program, chunk: &Box3) -> Vec<Region> {
        let buffers = program.buffers();
        let accesses = task.accesses.iter().map(|access| {
            let buffer = buffers[buffer_slot(access.buffer)].extent;
            let input = MapperInput { chunk: *chunk, global: task.space(), buffer };
            self.lowering.lower(&access.mapper, access.mode).map(&input)
        });
        accesses.collect()
    }

    fn bind<'a>(
        &mut self,
        task: &TaskOp,
        program: &Program,
        regions: &'a [Region],
    ) -> Vec<BoundMemory<'a>> {
        let buffers = program.buffers();
        let bindings = task.accesses.iter().zip(regions).map(|(access, region)| {
            let slot = buffer_slot(access.buffer);
            let base = self.contents[slot].as_mut_ptr().cast();
            // SAFETY: the contents of all of the buffer, used by one kernel at a time.
            unsafe { BoundMemory::new(base, buffers[slot].extent, region) }
        });
        bindings.collect()
    }
}

proptest! {
    #[test]
    fn kernels_compute_what_the_twin_computes(program in any_program(Sizes::default())) {
        prop_assert_eq!(execute(&program), interpret(&program));
    }
}

#[test]
#[should_panic(expected = "is touched, but only")]
fn touching_what_is_not_bound_panics() {
    let mut program = ProgramBuilder::default();
    let buffer = program.buffer([4]);
    let space = IndexSpace::new(1, Box3::from_range([4]));
    program.kernel("fill", space, &[(buffer, AccessMode::Write, MapperSpec::OneToOne)]);
    let program = program.finish();
    let Op::Task(task) = &program.ops[1] else { unreachable!("a kernel was submitted") };
    let kernel = HashKernel::new(1, task, &program.buffers(), &mut MapperTable::default());
    let (mut words, region) = ([0u64; 4], Region::from(Box3::from_range([3])));
    let extent = Box3::from_range([4]);
    // SAFETY: the words live on, and are used by nobody else.
    let memory = unsafe { BoundMemory::new(words.as_mut_ptr().cast(), extent, &region) };
    // SAFETY: it looks at the region before it touches anything.
    unsafe { kernel.run(&extent, &[memory]) };
}
