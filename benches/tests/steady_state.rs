//! Executing costs no heap allocation: neither in the engine, nor in selecting,
//! issuing and retiring instructions, once windows are as wide as they get.
#![allow(unsafe_code)]

use std::sync::Arc;

use celerity_benches::counting::CountingAllocator;
use celerity_cdag::{CommandGraphConfig, NodeId};
use celerity_executor::{
    Activity, AllocError, Backend, BasePtr, BoundMemory, Completion, CpuPool, DeviceKernel, Engine,
    Executor, Job, LaneGroup, LaneId, LaneJob, LaneLayout, Payload, Scheduler, SchedulerMessage,
    Submission, Target, Time, Waker, local_cluster,
};
use celerity_idag::{InstructionGraph, InstructionGraphConfig, InstructionId, MemoryId};
use celerity_regions::Box3;
use celerity_tdag::{
    Access, AccessMode, IndexSpace, Mapper, NewBuffer, TaskGraph, TaskGraphConfig, TaskSpec, Work,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

#[test]
fn the_steady_state_allocates_nothing() {
    assert_eq!(of_the_engine(), 0, "in the engine");
    assert_eq!(of_a_chain_of_kernels(), 0, "in an executor");
}

/// Allocations of the engine alone.
fn of_the_engine() -> u64 {
    let mut engine = Engine::new(4);
    let mut running = std::collections::VecDeque::with_capacity(64);
    let mut steps = |range: std::ops::Range<u64>| {
        for index in range {
            let dependencies = [1, 3, 4].map(|distance| index.saturating_sub(distance));
            let dependencies = dependencies.map(InstructionId::from_index);
            let dependencies = if index < 4 { &[][..] } else { &dependencies };
            let lanes = LaneGroup::new(LaneId::from_slot((index % 2) as u16 * 2), 2);
            let target = if index % 7 == 0 { Target::Node } else { Target::Lanes(lanes) };
            let _ = engine.submit(InstructionId::from_index(index), dependencies, target);
            while engine.incomplete() > 32 {
                while let Some(assignment) = engine.next_assignment() {
                    running.push_back(assignment.instruction);
                }
                let _ = engine.complete(running.pop_front().expect("something runs"));
            }
        }
    };
    steps(0..1_000);
    ALLOCATOR.count_here(|| steps(1_000..100_000)).1
}

struct Nothing;

impl DeviceKernel for Nothing {
    unsafe fn run(&self, _: &Box3, _: &[BoundMemory<'_>]) {}
}

/// A device on which all jobs are done at once, and nothing is done.
struct Instant {
    layout: LaneLayout,
    done: Vec<Completion>,
    memory: Vec<Vec<u8>>,
}

// SAFETY: memory is kept until it is freed, and jobs touch nothing.
unsafe impl Backend for Instant {
    fn layout(&self) -> LaneLayout {
        self.layout
    }

    fn alloc(&mut self, _: MemoryId, bytes: u64, _: u64) -> Result<BasePtr, AllocError> {
        self.memory.push(vec![0; usize::try_from(bytes).expect("buffers are small")]);
        Ok(BasePtr::of_mut_slice(self.memory.last_mut().expect("just added")))
    }

    unsafe fn free(&mut self, _: MemoryId, _: BasePtr) {}

    unsafe fn enqueue(&mut self, _: LaneId, instruction: InstructionId, job: Job, _: &[LaneJob]) {
        drop(job);
        self.done.push(Completion { instruction, failure: None, span: None });
    }

    fn poll(&mut self, out: &mut Vec<Completion>) {
        out.append(&mut self.done);
    }

    fn cancel(&mut self) {}

    fn is_quiet(&self) -> bool {
        true
    }
}

/// What a node is told to do `tasks` kernels that depend on each other.
fn chain(tasks: usize) -> Vec<Vec<SchedulerMessage>> {
    let commands = CommandGraphConfig { nodes: 1, local: NodeId::from_index(0) };
    let graph = InstructionGraph::new(InstructionGraphConfig { devices: 1 });
    let mut scheduler = Scheduler::new(commands, graph);
    let mut graph = TaskGraph::new(TaskGraphConfig::default());
    let mut batch = vec![graph.start()];
    let extent = Box3::from_range([64]);
    let info = graph.create_buffer(NewBuffer {
        name: None,
        dims: 1,
        extent,
        elem_size: 8,
        elem_align: 8,
        host_initialized: false,
    });
    let buffer = info.id;
    let mut first = Vec::new();
    scheduler.submit(Submission::Buffer { info, element_type: "", data: None }, &mut first);
    let mut orders = vec![first];
    for index in 0..tasks {
        let mode = if index == 0 { AccessMode::Write } else { AccessMode::ReadWrite };
        let accesses = vec![Access::buffer(buffer, mode, Mapper::OneToOne)];
        let work = Work::Device(IndexSpace::new(1, extent));
        let spec = TaskSpec { name: "step".into(), work, accesses, location: None };
        let declared = graph.declare(spec).expect("the task is right");
        graph.commit(declared, &mut batch);
        let mut step = Vec::new();
        for task in batch.drain(..) {
            let kernel = matches!(task.work, Work::Device(_));
            let payload = kernel.then(|| Payload::Kernel(Arc::new(Nothing)));
            scheduler.submit(Submission::Task { task, payload }, &mut step);
        }
        orders.push(step);
    }
    orders
}

/// Allocations of a node that is told what to do, and does it.
fn of_a_chain_of_kernels() -> u64 {
    const WARM_UP: usize = 1_000;
    let orders = chain(20_000);
    let pool = CpuPool::new(1).expect("there are threads");
    let wakers: Vec<Waker> = vec![Arc::new(|| {})];
    let end = local_cluster(wakers, &pool).remove(0);
    let layout = LaneLayout::new(1);
    let backend = Instant { layout, done: Vec::new(), memory: Vec::new() };
    let mut executor = Executor::new(Box::new(end), Box::new(backend), Arc::default());
    let mut execute = |orders: &mut dyn Iterator<Item = Vec<SchedulerMessage>>| {
        for step in orders {
            step.into_iter().for_each(|order| executor.order(order));
            while executor.poll(Time::START) == Activity::Busy {}
            while executor.spent_batch().is_some() {}
        }
    };
    let mut orders = orders.into_iter();
    execute(&mut orders.by_ref().take(WARM_UP));
    let ((), allocations) = ALLOCATOR.count_here(|| execute(&mut orders));
    assert!(executor.waiting().is_empty());
    allocations
}
