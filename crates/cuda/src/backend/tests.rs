//! The backend contract, and what is this backend's own, on a driver without
//! GPUs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use celerity_executor::{
    Arguments, BoundMemory, CodeModule, CodeSource, DeviceCode, DeviceKernel, HostFunction, Launch,
    NoDeviceCode,
};
use celerity_idag::{AllocationId, BoundAccess, Placement};
use celerity_regions::{Box3, Region};
use celerity_tdag::BufferId;

use super::*;
use crate::coded::Coded;
use crate::driver::{FakeCounts, FakeDriver};
use crate::panics::tests::{PANICKING, panicking};

mod joins;

/// A kernel for CPUs only.
struct Uncoded;

impl DeviceKernel for Uncoded {
    unsafe fn run(&self, _chunk: &Box3, _memory: &[BoundMemory<'_>]) {}
}

/// `data[i] += 1`, for as many 64-bit numbers as the chunk has items.
fn increment(launch: &crate::FakeLaunch) -> Result<(), String> {
    let (count, base): (u64, u64) = (launch.parameter(0), launch.parameter(8));
    for index in 0..count {
        let element = pointer(base + 8 * index).cast::<u64>();
        // SAFETY: the tests pass memory of `count` numbers.
        unsafe { *element += 1 };
    }
    Ok(())
}

struct Node {
    fake: Arc<FakeDriver>,
    backend: CudaBackend,
    module: Arc<CodeModule>,
    issued: u64,
    done: Vec<Completion>,
}

impl Node {
    fn new(fake: FakeDriver, devices: u16, config: &CudaConfig) -> Self {
        let fake = fake
            .with_kernel("increment", increment)
            .with_most_threads("increment", 640)
            .with_kernel("fault", |_| Err("an illegal address".to_owned()));
        let fake = Arc::new(fake);
        let gpus = Gpus::new(fake.clone(), None).unwrap();
        let devices: Vec<_> = (0..devices).map(Gpu::from_slot).collect();
        let pool = CpuPool::new(1).unwrap();
        let backend = CudaBackend::new(&gpus, &devices, config, &pool, Arc::new(|| {})).unwrap();
        let source = CodeSource::Ptx("increment fault".into());
        let module = CodeModule::new("test", source);
        Self { fake, backend, module, issued: 0, done: Vec::new() }
    }

    fn with_seed(seed: u64, devices: u16) -> Self {
        let fake = FakeDriver::new(usize::from(devices), 1 << 30).with_seed(seed);
        Self::new(fake, devices, &CudaConfig::default())
    }

    fn kernel(&self, entry: &'static str) -> Arc<Coded> {
        Arc::new(Coded { module: self.module.clone(), entry })
    }

    fn job(&self, entry: &'static str, count: usize, base: BasePtr) -> Job {
        let extent = Box3::from_range([count]);
        let allocation = AllocationId::from_index(0);
        let placement = Some(Placement { allocation, memory: device_memory(0), extent });
        let access = BoundAccess {
            buffer: BufferId::from_index(0),
            placement,
            region: Region::from(extent),
        };
        let arguments = Arguments::new(Box::new([access]), |_| Some(base));
        Job::Kernel { kernel: self.kernel(entry), chunk: extent, arguments }
    }

    fn issue(&mut self, lane: u16, job: Job) -> InstructionId {
        self.issue_after(lane, job, &[])
    }

    fn issue_after(&mut self, lane: u16, job: Job, after: &[LaneJob]) -> InstructionId {
        let instruction = InstructionId::from_index(self.issued);
        self.issued += 1;
        // SAFETY: the tests order what touches the same memory by lanes and by
        // waiting, and free nothing before that.
        unsafe { self.backend.enqueue(LaneId::from_slot(lane), instruction, job, after) };
        instruction
    }

    /// Waits for everything that has been issued.
    fn finish(&mut self) {
        let start = Instant::now();
        while (self.done.len() as u64) < self.issued {
            self.backend.poll(&mut self.done);
            assert!(start.elapsed() < Duration::from_secs(60), "only {} done", self.done.len());
            std::thread::yield_now();
        }
    }

    fn wait_until_quiet(&self) {
        let start = Instant::now();
        while !self.backend.is_quiet() {
            assert!(start.elapsed() < Duration::from_secs(60), "lanes stay busy");
            std::thread::yield_now();
        }
    }

    /// The failure among what has been reported.
    fn failure(&self) -> &Completion {
        self.done.iter().find(|it| it.failure.is_some()).expect("something has failed")
    }
}

const COPIES: u16 = 2;

fn device_memory(device: u64) -> MemoryId {
    MemoryId::of_device(DeviceId::from_index(device))
}

/// The host lane for copies comes last.
fn host_task_lane(node: &Node) -> u16 {
    u16::try_from(node.backend.seen.len()).unwrap()
}

fn copy(source: BasePtr, target: BasePtr, count: usize) -> Job {
    let extent = Box3::from_range([count]);
    let [source, target] = [source, target].map(|base| ElementArray { base, extent });
    Job::Copy { source, target, region: extent.into(), elem_size: 8 }
}

fn numbers(base: BasePtr, count: usize) -> Vec<u64> {
    // SAFETY: the tests hold host memory of so many numbers, and wait first.
    unsafe { std::slice::from_raw_parts(base.as_ptr().cast::<u64>(), count) }.to_vec()
}

#[test]
fn new_memory_is_zeroed_before_kernels_and_copies_use_it() {
    for seed in 1..40 {
        let mut node = Node::with_seed(seed, 1);
        let on_device = node.backend.alloc(device_memory(0), 800, 8).unwrap();
        let on_host = node.backend.alloc(MemoryId::HOST, 800, 8).unwrap();
        for _ in 0..5 {
            let job = node.job("increment", 100, on_device);
            node.issue(0, job);
        }
        node.finish();
        node.issue(COPIES, copy(on_device, on_host, 100));
        node.finish();
        assert_eq!(numbers(on_host, 100), [5; 100], "seed {seed}");
    }
}

#[test]
fn copies_go_between_devices_and_wait_for_the_targets_memory() {
    for seed in 1..40 {
        let mut node = Node::with_seed(seed, 2);
        let [first, second] =
            [0, 1].map(|device| node.backend.alloc(device_memory(device), 80, 8).unwrap());
        let on_host = node.backend.alloc(MemoryId::HOST, 80, 8).unwrap();
        let job = node.job("increment", 10, first);
        node.issue(1, job);
        node.finish();
        // On the lane of the first; the second's memory is zeroed on a stream of
        // another GPU.
        node.issue(COPIES, copy(first, second, 10));
        node.finish();
        node.issue(3 + COPIES, copy(second, on_host, 10));
        node.finish();
        assert_eq!(numbers(on_host, 10), [1; 10], "seed {seed}");
    }
}

#[test]
fn jobs_of_a_lane_share_events() {
    let mut node = Node::with_seed(1, 1);
    let base = node.backend.alloc(device_memory(0), 8, 8).unwrap();
    let job = node.job("increment", 1, base);
    node.issue(0, job);
    node.finish();
    node.fake.pause();
    let before = node.fake.counts();
    for _ in 0..160 {
        let job = node.job("increment", 1, base);
        node.issue(0, job);
    }
    node.fake.resume();
    node.finish();
    let after = node.fake.counts();
    assert_eq!(after.launches - before.launches, 160);
    assert_eq!(after.loads, 1, "a module is loaded once");
    assert!(after.records - before.records >= 10, "batches have a bound");
    let order: Vec<_> = node.done.iter().map(|completion| completion.instruction).collect();
    assert!(order.is_sorted(), "one lane keeps its order");
}

#[test]
fn jobs_that_trickle_in_share_events_while_another_runs() {
    // Events behind each, and in the end. Of long jobs one, one, two, four, and what is left.
    const SHORT: [usize; 10] = [1; 10];
    const LONG: [usize; 10] = [1, 2, 2, 3, 3, 3, 3, 4, 4, 4];
    const EACH: [usize; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
    let (never, always) = (Duration::MAX, Duration::ZERO);
    for (devices, long, recorded, records) in
        [(1, never, SHORT, 2), (1, always, LONG, 5), (2, never, EACH, 10), (2, always, EACH, 10)]
    {
        let config = CudaConfig { lull: Duration::MAX, long, ..CudaConfig::default() };
        let fake = FakeDriver::new(usize::from(devices), 1 << 20);
        let mut node = Node::new(fake, devices, &config);
        let base = node.backend.alloc(device_memory(0), 8, 8).unwrap();
        let job = node.job("increment", 1, base);
        node.issue(0, job);
        node.finish();
        node.fake.pause();
        let before = node.fake.counts();
        for launches in 1..=10 {
            let job = node.job("increment", 1, base);
            node.issue(0, job);
            // Each is on the GPU, and its event, if it gets one, before the next comes.
            let wanted = (before.launches + launches, before.records + recorded[launches - 1]);
            let counted = |counts: FakeCounts| (counts.launches, counts.records);
            while counted(node.fake.counts()) != wanted {
                std::thread::yield_now();
            }
        }
        node.fake.resume();
        node.finish();
        let after = node.fake.counts();
        assert_eq!(after.records - before.records, records, "{devices} devices");
    }
}

#[test]
fn a_thread_that_never_looks_twice_sees_jobs_end() {
    let fake = FakeDriver::new(1, 1 << 20);
    let config = CudaConfig { spin: Duration::ZERO, ..CudaConfig::default() };
    let mut node = Node::new(fake, 1, &config);
    let base = node.backend.alloc(device_memory(0), 8, 8).unwrap();
    for _ in 0..50 {
        let job = node.job("increment", 1, base);
        node.issue(0, job);
        node.finish();
    }
    let on_host = node.backend.alloc(MemoryId::HOST, 8, 8).unwrap();
    node.issue(COPIES, copy(base, on_host, 1));
    node.finish();
    assert_eq!(numbers(on_host, 1), [50]);
}

#[test]
fn host_jobs_run_beside_devices() {
    let mut node = Node::with_seed(1, 2);
    let ran = Arc::new(AtomicUsize::new(0));
    for lane in 0..7 {
        let ran = ran.clone();
        let function = HostFunction::new(move |_| {
            ran.fetch_add(1, Ordering::SeqCst);
            Ok(())
        });
        let arguments = Arguments::new(Box::default(), |_| None);
        let lane = host_task_lane(&node) + lane;
        node.issue(lane, Job::Host { function, arguments });
    }
    node.finish();
    assert_eq!(ran.load(Ordering::SeqCst), 7);
}

#[test]
fn a_fault_is_reported_once_and_stops_the_device() {
    let config = CudaConfig { batch: 1, ..CudaConfig::default() };
    let mut node = Node::new(FakeDriver::new(1, 1 << 20), 1, &config);
    let base = node.backend.alloc(device_memory(0), 8, 8).unwrap();
    node.fake.pause();
    let job = node.job("fault", 1, base);
    let faulty = node.issue(0, job);
    let job = node.job("increment", 1, base);
    node.issue(0, job);
    node.fake.resume();
    node.wait_until_quiet();
    node.backend.poll(&mut node.done);
    let Completion { instruction, failure, .. } = node.failure();
    let text = failure.as_ref().unwrap().to_string();
    assert!(*instruction == faulty && text.contains("an illegal address"), "{text}");
    assert_eq!(node.done.len(), 1, "what came after it is not reported");
}

#[test]
fn a_fault_is_not_blamed_on_what_was_started_later() {
    let mut node = Node::with_seed(1, 1);
    let base = node.backend.alloc(device_memory(0), 8, 8).unwrap();
    let job = node.job("fault", 1, base);
    let faulty = node.issue(1, job);
    let start = Instant::now();
    // Until the failure is seen, everything that is issued fails with it.
    while node.done.is_empty() {
        let job = node.job("increment", 1, base);
        node.issue(0, job);
        node.backend.poll(&mut node.done);
        assert!(start.elapsed() < Duration::from_secs(60), "the fault is not seen");
    }
    node.wait_until_quiet();
    node.backend.poll(&mut node.done);
    let text = node.failure().failure.as_ref().unwrap().to_string();
    let named = node.failure().instruction == faulty || text.contains(&faulty.to_string());
    assert!(named && text.contains("an illegal address"), "{text}");
}

/// A kernel for devices alone.
struct Device<C>(C);

impl<C: DeviceCode + 'static> DeviceKernel for Device<C> {
    unsafe fn run(&self, _chunk: &Box3, _memory: &[BoundMemory<'_>]) {}

    fn device_code(&self) -> Result<&dyn DeviceCode, NoDeviceCode> {
        Ok(&self.0)
    }
}

/// Does not know how it is launched.
struct Clueless(Arc<CodeModule>);

// SAFETY: it is never launched.
unsafe impl DeviceCode for Clueless {
    fn module(&self) -> &Arc<CodeModule> {
        &self.0
    }

    fn entry(&self) -> &'static str {
        "increment"
    }

    fn launch(
        &self,
        _chunk: &Box3,
        _memory: &[BoundMemory<'_>],
    ) -> Result<Launch, Box<dyn std::error::Error + Send + Sync>> {
        panic!("no idea")
    }
}

#[test]
fn a_panic_in_what_users_write_is_a_failure_of_the_job() {
    let mut node = Node::with_seed(1, 1);
    let kernel: Arc<dyn DeviceKernel> = Arc::new(Device(Clueless(node.module.clone())));
    let arguments = Arguments::new(Box::default(), |_| None);
    node.issue(0, Job::Kernel { kernel, chunk: Box3::UNIT, arguments });
    node.finish();
    let text = node.failure().failure.as_ref().unwrap().to_string();
    assert_eq!(text, "how to launch it cannot be told: no idea");
}

/// Has room for three items in a launch, and cannot be launched for some.
struct Narrow {
    module: Arc<CodeModule>,
    refused: u64,
}

// SAFETY: as of `Coded`, for a part of the chunk.
unsafe impl DeviceCode for Narrow {
    fn module(&self) -> &Arc<CodeModule> {
        &self.module
    }

    fn entry(&self) -> &'static str {
        "increment"
    }

    fn launch(
        &self,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
    ) -> Result<Launch, Box<dyn std::error::Error + Send + Sync>> {
        let ([first, ..], [end, ..]) = (chunk.min(), chunk.max());
        if (first..end).contains(&self.refused) || end - first > 3 {
            return Err(format!("no room for {first} to {end}").into());
        }
        let mut parameters = celerity_executor::Parameters::default();
        parameters.push(end - first);
        parameters.push(memory[0].base() as u64 + 8 * first);
        Ok(Launch { grid: [1; 3], block: [1; 3], shared_bytes: 0, parameters })
    }

    fn halves(&self, chunk: &Box3) -> Option<[Box3; 2]> {
        let ([first, y, z], [end, ..]) = (chunk.min(), chunk.max());
        let middle = first + (end - first) / 2;
        let halves =
            [Box3::new([first, y, z], [middle, 1, 1]), Box3::new([middle, y, z], [end, 1, 1])];
        (end - first > 3).then_some(halves)
    }
}

#[test]
fn a_chunk_that_no_launch_has_room_for_takes_several() {
    for refused in [None, Some(1), Some(9)] {
        let mut node = Node::with_seed(1, 1);
        let [device, host] = [device_memory(0), MemoryId::HOST]
            .map(|memory| node.backend.alloc(memory, 80, 8).unwrap());
        let narrow = Narrow { module: node.module.clone(), refused: refused.unwrap_or(u64::MAX) };
        let Job::Kernel { chunk, arguments, .. } = node.job("increment", 10, device) else {
            unreachable!("it is a job of a kernel")
        };
        let launches = node.fake.counts().launches;
        node.issue(0, Job::Kernel { kernel: Arc::new(Device(narrow)), chunk, arguments });
        node.finish();
        let launched = node.fake.counts().launches - launches;
        match refused {
            None => {
                node.issue(COPIES, copy(device, host, 10));
                node.finish();
                assert_eq!((launched, numbers(host, 10)), (4, vec![1; 10]));
            }
            // Not launched twice, and nothing of it goes on.
            Some(item) => {
                let text = node.failure().failure.as_ref().unwrap().to_string();
                assert!(text.contains("`increment` cannot be launched: no room for"), "{text}");
                assert_eq!(launched, [0, 3][usize::from(item == 9)]);
            }
        }
    }
}

/// Has blocks of so many threads, or of as many as there is room for, if it can have others.
struct Wide {
    module: Arc<CodeModule>,
    threads: u32,
    is_rigid: bool,
}

impl Wide {
    fn launch_of(&self, threads: u32, chunk: &Box3, memory: &[BoundMemory<'_>]) -> Launch {
        let mut parameters = celerity_executor::Parameters::default();
        parameters.push(chunk.volume());
        parameters.push_address(memory[0].base());
        Launch { grid: [1; 3], block: [threads, 1, 1], shared_bytes: 0, parameters }
    }
}

// SAFETY: as of `Coded`.
unsafe impl DeviceCode for Wide {
    fn module(&self) -> &Arc<CodeModule> {
        &self.module
    }

    fn entry(&self) -> &'static str {
        "increment"
    }

    fn launch(
        &self,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
    ) -> Result<Launch, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.launch_of(self.threads, chunk, memory))
    }

    fn launch_within(
        &self,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
        threads: u32,
    ) -> Result<Launch, Box<dyn std::error::Error + Send + Sync>> {
        assert!(threads < self.threads, "asked for what is not needed");
        let threads = if self.is_rigid { self.threads } else { threads };
        Ok(self.launch_of(threads, chunk, memory))
    }
}

#[test]
fn blocks_are_smaller_where_a_gpu_has_few_registers_for_a_kernel() {
    for (threads, is_rigid) in [(640, true), (641, false), (1024, false), (641, true)] {
        let mut node = Node::with_seed(1, 1);
        let [device, host] = [device_memory(0), MemoryId::HOST]
            .map(|memory| node.backend.alloc(memory, 80, 8).unwrap());
        let wide = Wide { module: node.module.clone(), threads, is_rigid };
        let Job::Kernel { chunk, arguments, .. } = node.job("increment", 10, device) else {
            unreachable!("it is a job of a kernel")
        };
        node.issue(0, Job::Kernel { kernel: Arc::new(Device(wide)), chunk, arguments });
        node.finish();
        if threads > 640 && is_rigid {
            let text = node.failure().failure.as_ref().unwrap().to_string();
            let words = ["`increment` cannot be launched", "641 threads", "have 640 at most"];
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
        } else {
            node.issue(COPIES, copy(device, host, 10));
            node.finish();
            assert_eq!(numbers(host, 10), vec![1; 10]);
        }
    }
}

#[test]
fn jobs_are_timed_when_that_is_asked_for() {
    let mut node = Node::with_seed(1, 1);
    let since = Instant::now();
    node.backend.time_jobs(Arc::new(move || celerity_executor::Time::elapsed(since)));
    let base = node.backend.alloc(device_memory(0), 8, 8).unwrap();
    for _ in 0..20 {
        let job = node.job("increment", 1, base);
        node.issue(0, job);
    }
    node.finish();
    let spans: Vec<_> = node.done.iter().map(|it| it.span.expect("every job is timed")).collect();
    assert!(spans.iter().all(|span| span.start <= span.end));
    assert!(spans.is_sorted_by_key(|span| span.start), "one lane, one after another");
}

#[test]
fn kernels_that_cannot_run_say_why() {
    let mut node = Node::with_seed(1, 1);
    let arguments = || Arguments::new(Box::default(), |_| None);
    let chunk = Box3::from_range([1]);
    let kernel: Arc<dyn DeviceKernel> = Arc::new(Uncoded);
    node.issue(0, Job::Kernel { kernel, chunk, arguments: arguments() });
    let kernel = node.kernel("absent");
    node.issue(1, Job::Kernel { kernel, chunk, arguments: arguments() });
    node.finish();
    let text = |index: usize| {
        let failed = node.done.iter().find(|it| it.instruction.index() == index as u64);
        failed.unwrap().failure.as_ref().unwrap().to_string()
    };
    assert!(text(0).contains("no code for this device"), "{}", text(0));
    assert!(text(1).contains("no kernel `absent`"), "{}", text(1));
}

#[test]
fn an_access_outside_of_what_was_declared_is_reported() {
    // Access 1 went to elements 3 to 9 of one dimension, 7 times; minima are
    // kept as distances from the top.
    let mut record = [0_u64; 14];
    record[7..].copy_from_slice(&[7, !3, !0, !0, 9, 0, 0]);
    let fake = FakeDriver::new(1, 1 << 20).with_variable("celerity_out_of_bounds", &record);
    let mut node = Node::new(fake, 1, &CudaConfig::default());
    let source = CodeSource::Ptx("increment celerity_out_of_bounds".into());
    node.module = CodeModule::new("checked", source);
    let base = node.backend.alloc(device_memory(0), 8, 8).unwrap();
    let job = node.job("increment", 1, base);
    node.issue(0, job);
    node.finish();
    let text = node.failure().failure.as_ref().unwrap().to_string();
    let expected = "kernel `increment` touched elements that its task does not declare: 7 times \
                    through access 1, in [3,0,0]..[10,1,1]";
    assert_eq!(text, expected);
}

#[test]
fn a_panic_in_a_kernel_ends_its_job_with_what_it_said() {
    let mut node = Node::new(panicking(), 1, &CudaConfig::default());
    node.module = CodeModule::new("steps", CodeSource::Ptx(PANICKING.into()));
    let base = node.backend.alloc(device_memory(0), 8 * 64, 8).unwrap();
    for items in [1, 2, 3] {
        let job = node.job("step", items, base);
        node.issue(0, job);
    }
    node.finish();
    assert!(node.done.iter().all(|it| it.failure.is_none()));
    let job = node.job("step", 13, base);
    let culprit = node.issue(0, job);
    let job = node.job("step", 1, base);
    node.issue(0, job);
    node.wait_until_quiet();
    node.backend.poll(&mut node.done);
    let failure = node.failure();
    let text = failure.failure.as_ref().unwrap().to_string();
    let expected =
        "panicked on GPU 0: kernel `step`, item [5], at lib.rs:7:9: no fuel for 13 in [4]";
    assert!(text.starts_with(expected), "{text}");
    let named = text.contains(&culprit.to_string());
    assert!(failure.instruction == culprit || named, "{culprit}: {text}");
}

#[test]
fn nothing_starts_after_a_cancellation() {
    let mut node = Node::with_seed(1, 1);
    let base = node.backend.alloc(device_memory(0), 8, 8).unwrap();
    node.backend.cancel();
    for _ in 0..10 {
        let job = node.job("increment", 1, base);
        node.issue(0, job);
    }
    node.wait_until_quiet();
    assert_eq!(node.fake.counts().launches, 0);
}

#[test]
fn waking_follows_every_report() {
    let fake = FakeDriver::new(1, 1 << 20).with_kernel("nothing", |_| Ok(()));
    let gpus = Gpus::new(Arc::new(fake), None).unwrap();
    let (sender, woken) = std::sync::mpsc::channel();
    let sender = Mutex::new(sender);
    let waker: Waker = Arc::new(move || sender.lock().unwrap().send(()).unwrap());
    let pool = CpuPool::new(1).unwrap();
    let devices = [Gpu::from_slot(0)];
    let mut backend =
        CudaBackend::new(&gpus, &devices, &CudaConfig::default(), &pool, waker).unwrap();
    let module = CodeModule::new("test", CodeSource::Ptx("nothing".into()));
    let kernel = Arc::new(Coded { module, entry: "nothing" });
    let arguments = Arguments::new(Box::default(), |_| None);
    let job = Job::Kernel { kernel, chunk: Box3::UNIT, arguments };
    // SAFETY: the kernel touches no memory.
    unsafe { backend.enqueue(LaneId::from_slot(0), InstructionId::from_index(0), job, &[]) };
    let mut done = Vec::new();
    while done.is_empty() {
        woken.recv_timeout(Duration::from_secs(60)).expect("somebody wakes");
        backend.poll(&mut done);
    }
    drop(backend);
    drop(woken);
}

#[test]
fn memory_has_a_limit_and_comes_back() {
    let mut node = Node::new(FakeDriver::new(1, 1 << 20), 1, &CudaConfig::default());
    let first = node.backend.alloc(device_memory(0), 1 << 19, 8).unwrap();
    let error = node.backend.alloc(device_memory(0), 3 << 18, 8).unwrap_err();
    assert_eq!(error, AllocError { resident: 1 << 19, free: Some(1 << 19) });
    // In the words of the run's error, which names who has the memory, and of `gpu_suite`.
    assert_eq!(error.to_string(), "no room: 524288 bytes are resident");
    // SAFETY: it was allocated there, and nobody uses it.
    unsafe { node.backend.free(device_memory(0), first) };
    node.backend.alloc(device_memory(0), 3 << 18, 8).expect("what was freed is there again");
}

#[test]
fn a_configured_limit_counts_before_the_gpus() {
    let config = CudaConfig { device_memory_limit: Some(1000), ..CudaConfig::default() };
    let mut node = Node::new(FakeDriver::new(1, 1 << 20), 1, &config);
    node.backend.alloc(device_memory(0), 600, 8).unwrap();
    let error = node.backend.alloc(device_memory(0), 600, 8).unwrap_err();
    assert_eq!(error, AllocError { resident: 600, free: Some(400) });
}

#[test]
fn links_are_what_the_driver_and_the_configuration_allow() {
    let [first, second] = [0, 1].map(DeviceId::from_index);
    let linked = Node::with_seed(1, 2);
    assert!(linked.backend.has_link(first, second));
    let fake = FakeDriver::new(2, 1 << 20).without_links();
    let apart = Node::new(fake, 2, &CudaConfig::default());
    assert!(!apart.backend.has_link(first, second) && apart.backend.has_link(first, first));
    let config = CudaConfig { peer_copies: false, ..CudaConfig::default() };
    let forbidden = Node::new(FakeDriver::new(2, 1 << 20), 2, &config);
    assert!(!forbidden.backend.has_link(second, first));
}
