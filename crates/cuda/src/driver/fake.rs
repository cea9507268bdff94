//! A driver without GPUs, for tests. Imitates what may go wrong, and not how
//! long things take.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ptr::without_provenance_mut;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use celerity_executor::DeviceStream;

use super::{
    AddressSpace, Driver, DriverError, Event, Failure, Function, Gpu, GpuInfo, Handle, Image,
    LaunchSize, MemoryHandle, ModuleHandle, Pages, Stream, Transfer,
};

mod hosted;
mod memory;
mod nccl;
mod state;

pub use hosted::HostedKernels;
pub use nccl::FakeNccl;
pub use state::FakeCounts;
use state::{Kernel, Operation, State};

/// A driver without GPUs, for tests: copies are made, kernels are functions of
/// the test, and streams take turns in a random order, one operation at a time.
///
/// It objects to what a GPU would not survive: addresses that are not allocated
/// where they are said to be fail the GPU for good. New memory is full of
/// rubbish.
pub struct FakeDriver {
    shared: Arc<Shared>,
    worker: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a kernel of a [`FakeDriver`] is called with.
#[derive(Clone, Debug)]
pub struct FakeLaunch {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// The block of parameters.
    pub parameters: Vec<u8>,
    /// Where the variables of its module are.
    pub variables: BTreeMap<String, u64>,
}

impl FakeLaunch {
    /// The parameter at an offset.
    ///
    /// # Panics
    /// If there are too few bytes.
    #[must_use]
    pub fn parameter<T: bytemuck::AnyBitPattern>(&self, offset: usize) -> T {
        bytemuck::pod_read_unaligned(&self.parameters[offset..offset + size_of::<T>()])
    }
}

impl FakeDriver {
    /// GPUs with so many bytes of memory each, all of which reach each other.
    #[must_use]
    pub fn new(gpus: usize, memory: u64) -> Self {
        let state = Mutex::new(State::new(gpus, memory));
        let shared = Arc::new(Shared { state, changed: Condvar::new() });
        let for_worker = shared.clone();
        let worker = std::thread::spawn(move || work(&for_worker));
        Self { shared, worker: Some(worker) }
    }

    /// Without paths between GPUs.
    #[must_use]
    pub fn without_links(self) -> Self {
        self.shared.lock().linked = false;
        self
    }

    /// Without memory that processes share.
    #[must_use]
    pub fn without_sharing(self) -> Self {
        self.shared.lock().shares = false;
        self
    }

    /// With another order of streams.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        self.shared.lock().random = seed | 1;
        self
    }

    /// Adds an entry point to all modules whose text has its name as a word. An
    /// error that it returns is one of the GPU.
    #[must_use]
    pub fn with_kernel(
        self,
        name: &str,
        run: impl Fn(&FakeLaunch) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        let kernel = Kernel { bytes: None, most_threads: 1024, run: Arc::new(run) };
        self.shared.lock().kernels.insert(name.to_owned(), kernel);
        self
    }

    /// Tells how many bytes of parameters a kernel takes that has been added.
    ///
    /// # Panics
    /// If there is no such kernel.
    #[must_use]
    pub fn with_parameter_bytes(self, kernel: &str, bytes: u64) -> Self {
        self.shared.lock().kernels.get_mut(kernel).expect("a kernel added before").bytes =
            Some(bytes);
        self
    }

    /// Lets blocks of a kernel that has been added have so many threads at most; 1024 otherwise.
    ///
    /// # Panics
    /// If there is no such kernel.
    #[must_use]
    pub fn with_most_threads(self, kernel: &str, threads: u32) -> Self {
        self.shared.lock().kernels.get_mut(kernel).expect("a kernel added before").most_threads =
            threads;
        self
    }

    /// Adds a variable of 64-bit words, with which it starts, to all modules
    /// whose text has its name as a word.
    #[must_use]
    pub fn with_variable(self, name: &str, words: &[u64]) -> Self {
        self.shared.lock().variables.insert(name.to_owned(), words.to_owned());
        self
    }

    /// Puts work on a stream that a [call](celerity_executor::EnqueuedCall) was given, as a library
    /// does. An error that the work returns, or a panic, is one of the GPU.
    ///
    /// # Panics
    /// If there is no such stream, or if the thread's current context is not that of its GPU.
    pub fn put(
        &self,
        stream: &DeviceStream,
        work: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) {
        let raw = stream.stream.addr().checked_sub(STREAMS_FROM).expect("a stream of this driver");
        let mut state = self.shared.lock();
        let current = state.adopted.get(&thread::current().id());
        assert_eq!(current.map(|gpu| gpu.slot()), Some(stream.ordinal), "the current context");
        assert_eq!(stream.context, context_of(stream.ordinal), "the stream's own context");
        state.streams[raw].push_back(Operation::Foreign(Box::new(work)));
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Lets the calling thread have no current context, as libraries may leave it.
    pub fn lose_context(&self) {
        self.shared.lock().adopted.remove(&thread::current().id());
    }

    /// Stops all streams until [`resume`](Self::resume).
    pub fn pause(&self) {
        self.shared.lock().paused = true;
    }

    /// Lets streams go on.
    pub fn resume(&self) {
        self.shared.lock().paused = false;
        self.shared.changed.notify_all();
    }

    /// What has been asked for so far.
    #[must_use]
    pub fn counts(&self) -> FakeCounts {
        self.shared.lock().counts
    }

    fn push(&self, stream: Stream, operation: Operation) -> Result<(), DriverError> {
        let mut state = self.shared.lock();
        state.healthy(stream.gpu)?;
        state.streams[stream.raw].push_back(operation);
        drop(state);
        self.shared.changed.notify_all();
        Ok(())
    }
}

impl Drop for FakeDriver {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
        if let Some(worker) = self.worker.take() {
            worker.join().expect("the worker of a fake driver has caught what kernels panic with");
        }
    }
}

/// Runs one operation after another, of streams in a random order.
fn work(shared: &Shared) {
    let mut state = shared.lock();
    loop {
        if let Some((gpu, operation)) = state.next() {
            drop(state);
            let outcome = operation.run(shared);
            state = shared.lock();
            state.busy = false;
            if let Err(what) = outcome {
                state.failed[gpu.slot()].get_or_insert(failed("a kernel or copy", &what));
            }
            shared.changed.notify_all();
        } else if state.closed {
            return;
        } else {
            state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Streams are numbered from here on, as none is null.
const STREAMS_FROM: usize = 0x100;

fn context_of(ordinal: usize) -> *mut std::ffi::c_void {
    without_provenance_mut(ordinal + 1)
}

fn failed(call: &'static str, meaning: &str) -> DriverError {
    let (code, failure) = ("FAKE_ERROR".to_owned(), Failure::Other);
    DriverError::Failed { call, code, meaning: meaning.to_owned(), failure }
}

impl Driver for FakeDriver {
    fn gpus(&self) -> usize {
        self.shared.lock().failed.len()
    }

    fn info(&self, _gpu: Gpu) -> Result<GpuInfo, DriverError> {
        let memory = self.shared.lock().memory.limit();
        Ok(GpuInfo {
            name: "fake".to_owned(),
            capability: (9, 0),
            memory,
            shared_memory: 227 << 10,
            max_pitch: memory::MAX_PITCH,
        })
    }

    fn adopt_thread(&self, gpu: Gpu) -> Result<(), DriverError> {
        let mut state = self.shared.lock();
        state.adopted.insert(thread::current().id(), gpu);
        state.healthy(gpu)
    }

    fn connect(&self, _from: Gpu, _to: Gpu) -> Result<bool, DriverError> {
        Ok(self.shared.lock().linked)
    }

    fn create_stream(&self, gpu: Gpu) -> Result<Stream, DriverError> {
        let mut state = self.shared.lock();
        state.healthy(gpu)?;
        Ok(Handle::new(gpu, state.new_stream(gpu)))
    }

    unsafe fn destroy_stream(&self, _stream: Stream) {}

    fn native(&self, stream: Stream) -> Result<DeviceStream, DriverError> {
        let ordinal = stream.gpu.slot();
        let (stream, context) =
            (without_provenance_mut(STREAMS_FROM + stream.raw), context_of(ordinal));
        Ok(DeviceStream { ordinal, stream, context })
    }

    fn synchronize(&self, stream: Stream) -> Result<(), DriverError> {
        let pending = |state: &mut State| state.busy || !state.streams[stream.raw].is_empty();
        let state = self.shared.lock();
        let state = self.shared.changed.wait_while(state, pending);
        state.unwrap_or_else(PoisonError::into_inner).healthy(stream.gpu)
    }

    fn create_event(&self, gpu: Gpu, _timed: bool) -> Result<Event, DriverError> {
        let mut state = self.shared.lock();
        state.healthy(gpu)?;
        Ok(Handle::new(gpu, state.new_event(gpu)))
    }

    fn elapsed(&self, from: Event, to: Event) -> Result<Duration, DriverError> {
        let state = self.shared.lock();
        state.healthy(from.gpu)?;
        Ok(state.when(to.raw).saturating_duration_since(state.when(from.raw)))
    }

    unsafe fn destroy_event(&self, _event: Event) {}

    fn record(&self, event: Event, stream: Stream) -> Result<(), DriverError> {
        assert_eq!(event.gpu, stream.gpu, "an event is recorded on its own GPU");
        let ticket = self.shared.lock().new_ticket(event.raw);
        self.push(stream, Operation::Record { event: event.raw, ticket })
    }

    fn query(&self, event: Event) -> Result<bool, DriverError> {
        let state = self.shared.lock();
        state.healthy(event.gpu)?;
        Ok(state.has_happened(event.raw, state.ticket(event.raw)))
    }

    fn wait(&self, stream: Stream, event: Event) -> Result<(), DriverError> {
        let ticket = self.shared.lock().ticket(event.raw);
        self.push(stream, Operation::Wait { event: event.raw, ticket })
    }

    fn alloc(&self, stream: Stream, bytes: u64) -> Result<u64, DriverError> {
        let mut state = self.shared.lock();
        state.healthy(stream.gpu)?;
        state.counts.allocations += 1;
        state.memory.alloc(AddressSpace::Gpu(stream.gpu), bytes)
    }

    unsafe fn free(&self, stream: Stream, address: u64) {
        // Of a GPU that has failed, nothing is given back.
        drop(self.push(stream, Operation::Free(address)));
    }

    fn piece(&self, gpu: Gpu) -> Result<u64, DriverError> {
        self.shared.lock().healthy(gpu).map(|()| memory::PIECE)
    }

    fn reserve(&self, gpu: Gpu, bytes: u64) -> Result<u64, DriverError> {
        let mut state = self.shared.lock();
        state.healthy(gpu)?;
        state.counts.reservations += 1;
        Ok(state.memory.reserve(bytes))
    }

    fn create_pages(&self, gpu: Gpu, bytes: u64) -> Result<Pages, DriverError> {
        let mut state = self.shared.lock();
        state.healthy(gpu)?;
        state.counts.pages += 1;
        let pages = state.memory.create_pages(AddressSpace::Gpu(gpu), bytes)?;
        Ok(Handle::new(gpu, pages))
    }

    unsafe fn destroy_pages(&self, pages: Pages) {
        self.shared.lock().memory.destroy_pages(pages.raw);
    }

    unsafe fn map(
        &self,
        gpu: Gpu,
        address: u64,
        pages: &[(Pages, u64)],
        _users: &[Gpu],
    ) -> Result<(), DriverError> {
        let mut state = self.shared.lock();
        state.healthy(gpu)?;
        let mut at = address;
        for &(pages, bytes) in pages {
            assert_eq!(pages.gpu, gpu, "pages stay on their GPU");
            state.memory.map(AddressSpace::Gpu(gpu), at, (pages.raw, bytes));
            at += bytes;
        }
        Ok(())
    }

    unsafe fn unmap(&self, _gpu: Gpu, address: u64, bytes: u64) {
        self.shared.lock().memory.unmap(address, bytes);
    }

    unsafe fn release(&self, _gpu: Gpu, address: u64, _bytes: u64) {
        self.shared.lock().memory.release(address);
    }

    fn trim(&self, gpu: Gpu) -> Result<u64, DriverError> {
        let state = self.shared.lock();
        state.healthy(gpu)?;
        Ok(state.memory.free_bytes(AddressSpace::Gpu(gpu)))
    }

    fn alloc_shared(&self, gpu: Gpu, bytes: u64) -> Result<u64, DriverError> {
        let mut state = self.shared.lock();
        state.healthy(gpu)?;
        state.memory.alloc(AddressSpace::Gpu(gpu), bytes)
    }

    unsafe fn free_shared(&self, _gpu: Gpu, address: u64) {
        self.shared.lock().memory.free(address);
    }

    fn export(&self, gpu: Gpu, address: u64) -> Result<MemoryHandle, DriverError> {
        let state = self.shared.lock();
        state.healthy(gpu)?;
        match state.shares {
            true => Ok(state.memory.export(address)),
            false => Err(failed("export", "processes do not share memory")),
        }
    }

    fn import(&self, gpu: Gpu, handle: &MemoryHandle) -> Result<u64, DriverError> {
        let mut state = self.shared.lock();
        state.healthy(gpu)?;
        let address = state.memory.import(AddressSpace::Gpu(gpu), handle);
        address.ok_or_else(|| failed("import", "no memory of this host"))
    }

    unsafe fn forget(&self, gpu: Gpu, address: u64) {
        self.shared.lock().memory.forget(AddressSpace::Gpu(gpu), address);
    }

    fn alloc_host(&self, bytes: u64) -> Result<u64, DriverError> {
        let mut state = self.shared.lock();
        state.counts.host_allocations += 1;
        state.memory.alloc(AddressSpace::Host, bytes)
    }

    unsafe fn free_host(&self, address: u64) {
        self.shared.lock().memory.free(address);
    }

    unsafe fn zero(&self, stream: Stream, address: u64, bytes: u64) -> Result<(), DriverError> {
        self.push(stream, Operation::Zero { place: AddressSpace::Gpu(stream.gpu), address, bytes })
    }

    unsafe fn copy(&self, stream: Stream, transfer: &Transfer) -> Result<(), DriverError> {
        let ends = [transfer.source.place, transfer.target.place];
        if !ends.contains(&AddressSpace::Gpu(stream.gpu)) || !memory::is_valid(transfer) {
            return Err(failed("copy", "not a copy that a GPU could do"));
        }
        self.shared.lock().counts.transfers += 1;
        self.push(stream, Operation::Copy(*transfer))
    }

    fn load(&self, gpu: Gpu, image: Image<'_>) -> Result<ModuleHandle, DriverError> {
        let text = match image {
            Image::Ptx(text) => text.to_owned(),
            Image::Binary(code) => String::from_utf8_lossy(code).into_owned(),
        };
        let mut state = self.shared.lock();
        state.counts.loads += 1;
        let loaded = state.load(&text).map_err(|log| DriverError::Rejected { log })?;
        Ok(Handle::new(gpu, loaded))
    }

    fn function(&self, module: ModuleHandle, name: &str) -> Result<Function, DriverError> {
        let function = self.shared.lock().function(module.raw, name);
        function.map(|function| Handle::new(module.gpu, function)).ok_or_else(|| {
            let (code, meaning) = ("FAKE_NOT_FOUND".to_owned(), "no such name".to_owned());
            DriverError::Failed { call: "function", code, meaning, failure: Failure::NotFound }
        })
    }

    fn variable(
        &self,
        module: ModuleHandle,
        name: &str,
    ) -> Result<Option<(u64, u64)>, DriverError> {
        self.shared.lock().variable(module.raw, name, AddressSpace::Gpu(module.gpu))
    }

    fn parameter_bytes(&self, function: Function) -> Result<Option<u64>, DriverError> {
        Ok(self.shared.lock().kernel(function.raw).bytes)
    }

    fn most_threads(&self, function: Function) -> Result<u32, DriverError> {
        Ok(self.shared.lock().kernel(function.raw).most_threads)
    }

    unsafe fn launch(
        &self,
        stream: Stream,
        function: Function,
        size: LaunchSize,
        parameters: &[u8],
    ) -> Result<(), DriverError> {
        let LaunchSize { grid, block, .. } = size;
        let mut state = self.shared.lock();
        if block.iter().product::<u32>() > state.kernel(function.raw).most_threads {
            return Err(failed("launch", "too many resources requested for launch"));
        }
        state.counts.launches += 1;
        let (kernel, variables) = state.launchable(function.raw);
        drop(state);
        let launch = FakeLaunch { grid, block, parameters: parameters.to_owned(), variables };
        self.push(stream, Operation::Launch { kernel, launch })
    }
}
