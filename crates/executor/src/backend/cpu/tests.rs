//! The backend contract, on threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use celerity_regions::Box3;

use super::*;
use crate::backend::{Arguments, JobFailure};
use crate::bound::BoundMemory;
use crate::copy::ElementArray;
use crate::engine::{LaneGroup, Target};
use crate::error::TaskError;
use crate::polling::BRIEF_KERNEL;
use crate::sync::lock;
use crate::work::{DeviceKernel, HostFunction};

fn backend(threads: usize, limit: Option<u64>) -> CpuBackend {
    let pool = CpuPool::new(threads).unwrap();
    CpuBackend::new(2, limit, &pool, Arc::new(|| {}))
}

fn host(function: impl FnOnce() + Send + 'static) -> Job {
    let function = HostFunction::new(move |_| {
        function();
        Ok(())
    });
    Job::Host { function, arguments: Arguments::new(Box::default(), |_| None) }
}

fn count(counter: &Arc<AtomicUsize>) -> Job {
    let counter = counter.clone();
    host(move || {
        counter.fetch_add(1, Ordering::SeqCst);
    })
}

fn enqueue(backend: &mut CpuBackend, lane: u16, instruction: u64, job: Job) {
    let instruction = InstructionId::from_index(instruction);
    // SAFETY: host functions of these tests are given no memory.
    unsafe { backend.enqueue(LaneId::from_slot(lane), instruction, job, &[]) };
}

fn completions(backend: &mut CpuBackend, count: usize) -> Vec<Completion> {
    let (start, mut all) = (Instant::now(), Vec::new());
    while all.len() < count {
        backend.poll(&mut all);
        assert!(start.elapsed() < Duration::from_secs(60), "only {} of {count}", all.len());
        std::thread::yield_now();
    }
    all
}

fn text_of(failed: &Completion) -> String {
    failed.failure.as_ref().expect("it has failed").to_string()
}

fn wait_until_quiet(backend: &CpuBackend) {
    let start = Instant::now();
    while !backend.is_quiet() {
        assert!(start.elapsed() < Duration::from_secs(60), "lanes stay busy");
        std::thread::yield_now();
    }
}

#[test]
fn every_lane_runs_its_jobs_in_order() {
    let mut backend = backend(3, None);
    let order: Arc<[Mutex<Vec<u64>>; 3]> = Arc::default();
    for index in 0..300 {
        let order = order.clone();
        let lane = index % 3;
        let job = host(move || lock(&order[usize::try_from(lane).unwrap()]).push(index));
        enqueue(&mut backend, u16::try_from(lane).unwrap(), index, job);
    }
    let done = completions(&mut backend, 300);
    assert!(done.iter().all(|completion| completion.failure.is_none()));
    for lane in order.iter() {
        let lane = lock(lane);
        assert!(lane.len() == 100 && lane.is_sorted());
    }
}

#[test]
fn lanes_run_concurrently() {
    let mut backend = backend(2, None);
    let meeting = Arc::new(Barrier::new(2));
    for lane in 0..2 {
        let meeting = meeting.clone();
        // Neither returns before the other has started.
        let meet = host(move || {
            meeting.wait();
        });
        enqueue(&mut backend, lane, u64::from(lane), meet);
    }
    assert_eq!(completions(&mut backend, 2).len(), 2);
}

/// The lanes of host tasks, on a node with two devices.
fn blocking_lanes() -> Vec<u16> {
    let lanes = (0..).zip(LaneLayout::new(2).lanes());
    lanes.filter(|(_, lane)| LaneLayout::new(2).may_block(*lane)).map(|(slot, _)| slot).collect()
}

#[test]
fn lanes_that_block_leave_the_pool_to_others() {
    let mut backend = backend(1, None);
    let lanes = blocking_lanes();
    // Four for host tasks, and one for each collective group.
    assert_eq!(lanes.len(), 4 + celerity_tdag::CollectiveGroup::MOST);
    let released = Arc::new(Barrier::new(lanes.len() + 1));
    for (index, lane) in (0..).zip([&lanes[..], &[0]].concat()) {
        let released = released.clone();
        // None returns before all have started, the one on the pool last.
        let meet = host(move || {
            released.wait();
        });
        enqueue(&mut backend, lane, index, meet);
    }
    let all = lanes.len() + 1;
    assert_eq!(completions(&mut backend, all).len(), all);
}

#[test]
fn a_lane_with_a_thread_keeps_order_and_thread_between_jobs() {
    let mut backend = backend(1, None);
    let (lane, seen) = (blocking_lanes()[0], Arc::new(Mutex::new(Vec::new())));
    for round in 0..3 {
        for index in 0..50 {
            let seen = seen.clone();
            let job = host(move || lock(&seen).push((std::thread::current().id(), index)));
            enqueue(&mut backend, lane, round * 50 + index, job);
        }
        completions(&mut backend, 50);
        wait_until_quiet(&backend);
    }
    let seen = lock(&seen);
    assert!(seen.iter().all(|(thread, _)| *thread == seen[0].0), "one thread for all rounds");
    assert!(seen.chunks(50).all(|round| round.len() == 50 && round.is_sorted_by_key(|job| job.1)));
}

#[test]
fn a_panic_on_a_lane_with_a_thread_halts_it() {
    let mut backend = backend(1, None);
    let (lane, ran) = (blocking_lanes()[3], Arc::new(AtomicUsize::new(0)));
    enqueue(&mut backend, lane, 1, host(|| panic!("boom")));
    enqueue(&mut backend, lane, 2, count(&ran));
    let done = completions(&mut backend, 1);
    assert_eq!(text_of(&done[0]), "boom");
    wait_until_quiet(&backend);
    enqueue(&mut backend, lane, 3, count(&ran));
    backend.cancel();
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    assert_eq!(Arc::strong_count(&ran), 1, "what did not run is dropped");
}

#[test]
fn threads_of_lanes_end_with_the_backend() {
    struct CountEnd(Arc<AtomicUsize>);
    impl Drop for CountEnd {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    thread_local! {
        static AT_END: std::cell::RefCell<Option<CountEnd>> = const { std::cell::RefCell::new(None) };
    }
    let (mut backend, ended) = (backend(1, None), Arc::new(AtomicUsize::new(0)));
    let lanes = blocking_lanes();
    let threads = lanes.len();
    for (index, lane) in (0..).zip(lanes) {
        let at_end = CountEnd(ended.clone());
        enqueue(&mut backend, lane, index, host(move || AT_END.set(Some(at_end))));
    }
    completions(&mut backend, threads);
    wait_until_quiet(&backend);
    assert_eq!(ended.load(Ordering::SeqCst), 0, "idle threads stay");
    drop(backend);
    assert_eq!(ended.load(Ordering::SeqCst), threads);
}

#[test]
fn a_busy_lane_leaves_others_their_turn() {
    let mut backend = backend(1, None);
    let ran = Arc::new(AtomicUsize::new(0));
    for index in 0..200 {
        enqueue(&mut backend, 0, index, count(&ran));
    }
    let (ran_before, seen) = (ran.clone(), Arc::new(AtomicUsize::new(usize::MAX)));
    let here = seen.clone();
    let other = host(move || here.store(ran_before.load(Ordering::SeqCst), Ordering::SeqCst));
    enqueue(&mut backend, 1, 200, other);
    completions(&mut backend, 201);
    assert!(seen.load(Ordering::SeqCst) < 200, "the other lane had to wait for all of the first");
}

#[test]
fn an_error_of_a_host_function_is_reported_and_nothing_behind_it_runs() {
    let mut backend = backend(2, None);
    let ran = Arc::new(AtomicUsize::new(0));
    let lane = backend.layout().lanes().find(|&lane| backend.layout().may_block(lane)).unwrap();
    let lane = u16::try_from(lane.slot()).unwrap();
    let function = HostFunction::new(|_| Err(TaskError::new("the disk is full")));
    let job = Job::Host { function, arguments: Arguments::new(Box::default(), |_| None) };
    enqueue(&mut backend, lane, 1, job);
    enqueue(&mut backend, lane, 2, count(&ran));
    let done = completions(&mut backend, 1);
    assert_eq!(done[0].failure, Some(JobFailure::Returned(TaskError::new("the disk is full"))));
    wait_until_quiet(&backend);
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

#[test]
fn a_panic_is_reported_and_nothing_behind_it_runs() {
    let mut backend = backend(1, None);
    let ran = Arc::new(AtomicUsize::new(0));
    enqueue(&mut backend, 0, 1, host(|| panic!("boom {}", 7)));
    enqueue(&mut backend, 0, 2, count(&ran));
    let done = completions(&mut backend, 1);
    assert_eq!(text_of(&done[0]), "boom 7");
    wait_until_quiet(&backend);
    backend.cancel();
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    assert_eq!(Arc::strong_count(&ran), 1, "what did not run is dropped");
}

#[test]
fn dropping_waits_for_running_jobs() {
    let mut backend = backend(1, None);
    let (started, finished) = (Arc::new(Barrier::new(2)), Arc::new(AtomicUsize::new(0)));
    let (start, finish) = (started.clone(), finished.clone());
    let job = host(move || {
        start.wait();
        std::thread::sleep(Duration::from_millis(20));
        finish.store(1, Ordering::SeqCst);
    });
    enqueue(&mut backend, 0, 1, job);
    started.wait();
    drop(backend);
    assert_eq!(finished.load(Ordering::SeqCst), 1);
}

#[test]
fn device_limits_are_kept_and_freed_memory_counts_again() {
    let mut backend = backend(1, Some(1000));
    let device = MemoryId::of_device(DeviceId::from_index(1));
    let first = backend.alloc(device, 600, 8).unwrap();
    let refused = backend.alloc(device, 600, 8).unwrap_err();
    assert_eq!(refused, AllocError { resident: 600, free: Some(400) });
    assert!(backend.alloc(MemoryId::HOST, 10_000, 8).is_ok(), "the host has no limit");
    // SAFETY: allocated above in this memory, and used by nobody.
    unsafe { backend.free(device, first) };
    assert!(backend.alloc(device, 1000, 8).is_ok());
}

#[test]
fn what_no_machine_has_is_an_error() {
    let mut backend = backend(1, None);
    let refused = backend.alloc(MemoryId::HOST, 1 << 62, 8).unwrap_err();
    assert_eq!(refused, AllocError { resident: 0, free: None });
}

#[test]
fn kernels_get_the_memory_that_they_are_bound_to() {
    use celerity_idag::{AllocationId, BoundAccess, LaneKind, Placement};
    use celerity_regions::Box3;
    use celerity_tdag::BufferId;

    struct Fill;
    impl DeviceKernel for Fill {
        unsafe fn run(&self, chunk: &Box3, memory: &[BoundMemory<'_>]) {
            assert_eq!(memory[0].region().as_box(), Some(*chunk));
            assert!(memory[1].extent().is_empty() && !memory[1].base().is_null());
            for index in chunk.min()[0]..chunk.max()[0] {
                // SAFETY: the chunk is inside the extent, which starts at 0.
                unsafe { memory[0].base().add(usize::try_from(index).unwrap()).write(1) };
            }
        }
    }

    let mut backend = backend(2, None);
    let memory = MemoryId::of_device(DeviceId::from_index(0));
    let base = backend.alloc(memory, 8, 1).unwrap();
    let extent = Box3::from_range([8]);
    let chunk = Box3::from_offset_range([2], [3]);
    let placement = Placement { allocation: AllocationId::from_index(0), memory, extent };
    let buffer = BufferId::from_index(0);
    let touched = BoundAccess { buffer, placement: Some(placement), region: chunk.into() };
    let nothing = BoundAccess { buffer, placement: None, region: Box3::EMPTY.into() };
    let arguments =
        Arguments::new(Box::new([touched, nothing]), |access| access.placement.map(|_| base));
    let lane = LaneKind::Kernel(DeviceId::from_index(0));
    let Target::Lanes(group) = LaneLayout::new(2).target(lane) else {
        panic!("kernels run on lanes")
    };
    assert_eq!(group, LaneGroup::new(LaneId::from_slot(0), 2));
    let job = Job::Kernel { kernel: Arc::new(Fill), chunk, arguments };
    // SAFETY: the memory lives until the end of the test.
    unsafe { backend.enqueue(LaneId::from_slot(0), InstructionId::from_index(0), job, &[]) };
    assert_eq!(completions(&mut backend, 1)[0].failure, None);
    // SAFETY: eight bytes, and the kernel has completed.
    let contents = unsafe { std::slice::from_raw_parts(base.as_ptr(), 8) };
    assert_eq!(contents, [0, 0, 1, 1, 1, 0, 0, 0]);
}

/// The first items of chunks, and which threads have run them.
type Runs = Arc<Mutex<Vec<(u64, ThreadId)>>>;

/// Notes that it has run; panics from item 1000 on.
struct Noted(Runs);

impl DeviceKernel for Noted {
    unsafe fn run(&self, chunk: &Box3, _: &[BoundMemory<'_>]) {
        lock(&self.0).push((chunk.min()[0], std::thread::current().id()));
        assert!(chunk.min()[0] < 1000, "boom");
    }
}

/// A backend whose poller computes, with a kernel that is known to be brief, but not short.
fn backend_of_one_core() -> (CpuBackend, impl Fn(u64) -> Job, Runs) {
    let (mut backend, runs) = (backend(1, None), Runs::default());
    backend.share_core();
    let kernel = Arc::new(Noted(runs.clone()));
    let job = move |number: u64| {
        let arguments = Arguments::new(Box::default(), |_| None);
        let chunk = Box3::from_offset_range([usize::try_from(number).unwrap()], [100]);
        Job::Kernel { kernel: kernel.clone(), chunk, arguments }
    };
    let pace = backend.paces.of(&job(0)).expect("kernels have one thread, though many items");
    pace.took(BRIEF_KERNEL);
    (backend, job, runs)
}

#[test]
fn whoever_polls_a_shared_core_runs_brief_kernels_when_asked() {
    let (mut backend, job, runs) = backend_of_one_core();
    assert!(!backend.compute(), "there is nothing yet");
    for (lane, number) in [(0, 0), (1, 1), (3, 2)] {
        enqueue(&mut backend, lane, number, job(number));
    }
    let mut done = Vec::new();
    backend.poll(&mut done);
    assert!(done.is_empty() && lock(&runs).is_empty(), "they wait");
    assert!(!backend.is_quiet());
    for _ in 0..3 {
        assert!(backend.compute());
    }
    assert!(!backend.compute() && backend.is_quiet());
    let here = std::thread::current().id();
    assert_eq!(*lock(&runs), [0, 1, 2].map(|number| (number, here)));
    assert_eq!(completions(&mut backend, 3).len(), 3);
}

#[test]
fn what_is_not_brief_leaves_the_poller_of_a_shared_core() {
    let (mut backend, job, runs) = backend_of_one_core();
    let (ran, here) = (Arc::new(AtomicUsize::new(0)), std::thread::current().id());
    // Behind a kernel that is kept for the poller, on its lane.
    for (number, job) in (0..).zip([job(0), count(&ran), job(2)]) {
        enqueue(&mut backend, 0, number, job);
    }
    assert!(backend.compute());
    completions(&mut backend, 3);
    wait_until_quiet(&backend);
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    let runs = lock(&runs);
    assert!(runs[0] == (0, here) && runs[1].0 == 2 && runs[1].1 != here, "{runs:?}");
}

#[test]
fn kept_kernels_are_dropped_when_nothing_may_start() {
    let (mut backend, job, runs) = backend_of_one_core();
    for (lane, number) in [(0, 0), (1, 1), (1, 2)] {
        enqueue(&mut backend, lane, number, job(number));
    }
    assert!(backend.compute());
    backend.cancel();
    assert!(backend.is_quiet() && !backend.compute());
    assert_eq!(lock(&runs).len(), 1);
    drop((backend, job));
    assert_eq!(Arc::strong_count(&runs), 1, "what did not run is dropped");
}

#[test]
fn a_kept_kernel_that_panics_halts_its_lane() {
    let (mut backend, job, runs) = backend_of_one_core();
    for number in [1000, 1] {
        enqueue(&mut backend, 0, number, job(number));
    }
    assert!(backend.compute() && !backend.compute());
    assert_eq!(text_of(&completions(&mut backend, 1)[0]), "boom");
    assert!(backend.is_quiet());
    assert_eq!(lock(&runs).len(), 1);
}

/// Copies the first `len` bytes.
fn copy(from: &mut [u8], to: &mut [u8], len: usize) -> Job {
    let array = |bytes: &mut [u8]| {
        let extent = Box3::from_range([bytes.len()]);
        ElementArray { base: BasePtr::of_mut_slice(bytes), extent }
    };
    let (source, target) = (array(from), array(to));
    Job::Copy { source, target, region: Box3::from_range([len]).into(), elem_size: 1 }
}

#[test]
fn short_copies_on_idle_lanes_are_made_at_once() {
    // A pool whose only thread is busy.
    let mut backend = backend(1, None);
    let (gate, opened) = std::sync::mpsc::channel::<()>();
    enqueue(&mut backend, 0, 0, host(move || assert!(opened.recv().is_err())));
    let (mut from, mut to) = (vec![7; 1 << 20], vec![0; 1 << 20]);
    for (lane, instruction, len) in [(1, 1, 100), (1, 2, 1 << 20), (0, 3, 100)] {
        let job = copy(&mut from, &mut to, len);
        // SAFETY: the memory outlives the reports, awaited below. The pool's only thread
        // makes one copy after the other, behind the one that is made here.
        unsafe {
            backend.enqueue(
                LaneId::from_slot(lane),
                InstructionId::from_index(instruction),
                job,
                &[],
            )
        };
    }
    let mut done = Vec::new();
    backend.poll(&mut done);
    let told: Vec<_> = done.iter().map(|completion| completion.instruction.index()).collect();
    assert_eq!(told, [1], "one is long, one is behind another job");
    drop(gate);
    completions(&mut backend, 3);
    assert_eq!(to, from);
}

/// Each job is pushed at about the time at which the lane's thread finds that there are no more.
#[test]
fn a_job_that_comes_as_its_lane_falls_asleep_runs() {
    let mut backend = backend(1, None);
    let layout = backend.layout();
    let lane = layout.lanes().position(|lane| layout.may_block(lane)).unwrap();
    for index in 0..100_000 {
        enqueue(&mut backend, u16::try_from(lane).unwrap(), index, host(|| ()));
        assert_eq!(completions(&mut backend, 1)[0].instruction.index(), index);
    }
}
