//! A driver on which kernels take no time: what is launched on it has ended. Memory
//! and code are the fake driver's.
#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use celerity_cuda::{
    Driver, DriverError, Event, FakeDriver, Function, Gpu, GpuInfo, Image, LaunchSize,
    MemoryHandle, ModuleHandle, Pages, Stream, Transfer,
};
use celerity_executor::DeviceStream;

use crate::empty::ENTRY;

pub(crate) struct IdleDriver {
    fake: FakeDriver,
    launch: Duration,
}

impl IdleDriver {
    /// On which a launch takes so long, on the caller's thread.
    pub(crate) fn new(nanoseconds: u64) -> Self {
        let fake = FakeDriver::new(1, 1 << 30).with_kernel(ENTRY, |_| Ok(()));
        Self { fake, launch: Duration::from_nanos(nanoseconds) }
    }
}

impl Driver for IdleDriver {
    fn gpus(&self) -> usize {
        self.fake.gpus()
    }

    fn info(&self, gpu: Gpu) -> Result<GpuInfo, DriverError> {
        self.fake.info(gpu)
    }

    fn adopt_thread(&self, gpu: Gpu) -> Result<(), DriverError> {
        self.fake.adopt_thread(gpu)
    }

    fn connect(&self, from: Gpu, to: Gpu) -> Result<bool, DriverError> {
        self.fake.connect(from, to)
    }

    fn create_stream(&self, gpu: Gpu) -> Result<Stream, DriverError> {
        self.fake.create_stream(gpu)
    }

    unsafe fn destroy_stream(&self, stream: Stream) {
        // SAFETY: passed on, here and below.
        unsafe { self.fake.destroy_stream(stream) };
    }

    fn native(&self, stream: Stream) -> Result<DeviceStream, DriverError> {
        self.fake.native(stream)
    }

    fn synchronize(&self, stream: Stream) -> Result<(), DriverError> {
        self.fake.synchronize(stream)
    }

    fn create_event(&self, gpu: Gpu, timed: bool) -> Result<Event, DriverError> {
        self.fake.create_event(gpu, timed)
    }

    fn elapsed(&self, from: Event, to: Event) -> Result<Duration, DriverError> {
        self.fake.elapsed(from, to)
    }

    unsafe fn destroy_event(&self, event: Event) {
        // SAFETY: passed on.
        unsafe { self.fake.destroy_event(event) };
    }

    fn record(&self, _event: Event, _stream: Stream) -> Result<(), DriverError> {
        Ok(())
    }

    fn query(&self, _event: Event) -> Result<bool, DriverError> {
        Ok(true)
    }

    fn wait(&self, _stream: Stream, _event: Event) -> Result<(), DriverError> {
        Ok(())
    }

    fn alloc(&self, stream: Stream, bytes: u64) -> Result<u64, DriverError> {
        self.fake.alloc(stream, bytes)
    }

    unsafe fn free(&self, stream: Stream, address: u64) {
        // SAFETY: passed on.
        unsafe { self.fake.free(stream, address) };
    }

    fn piece(&self, gpu: Gpu) -> Result<u64, DriverError> {
        self.fake.piece(gpu)
    }

    fn reserve(&self, gpu: Gpu, bytes: u64) -> Result<u64, DriverError> {
        self.fake.reserve(gpu, bytes)
    }

    fn create_pages(&self, gpu: Gpu, bytes: u64) -> Result<Pages, DriverError> {
        self.fake.create_pages(gpu, bytes)
    }

    unsafe fn destroy_pages(&self, pages: Pages) {
        // SAFETY: passed on.
        unsafe { self.fake.destroy_pages(pages) };
    }

    unsafe fn map(
        &self,
        gpu: Gpu,
        address: u64,
        pages: &[(Pages, u64)],
        users: &[Gpu],
    ) -> Result<(), DriverError> {
        // SAFETY: passed on.
        unsafe { self.fake.map(gpu, address, pages, users) }
    }

    unsafe fn unmap(&self, gpu: Gpu, address: u64, bytes: u64) {
        // SAFETY: passed on.
        unsafe { self.fake.unmap(gpu, address, bytes) };
    }

    unsafe fn release(&self, gpu: Gpu, address: u64, bytes: u64) {
        // SAFETY: passed on.
        unsafe { self.fake.release(gpu, address, bytes) };
    }

    fn trim(&self, gpu: Gpu) -> Result<u64, DriverError> {
        self.fake.trim(gpu)
    }

    fn alloc_shared(&self, gpu: Gpu, bytes: u64) -> Result<u64, DriverError> {
        self.fake.alloc_shared(gpu, bytes)
    }

    unsafe fn free_shared(&self, gpu: Gpu, address: u64) {
        // SAFETY: passed on.
        unsafe { self.fake.free_shared(gpu, address) };
    }

    fn export(&self, gpu: Gpu, address: u64) -> Result<MemoryHandle, DriverError> {
        self.fake.export(gpu, address)
    }

    fn import(&self, gpu: Gpu, handle: &MemoryHandle) -> Result<u64, DriverError> {
        self.fake.import(gpu, handle)
    }

    unsafe fn forget(&self, gpu: Gpu, address: u64) {
        // SAFETY: passed on.
        unsafe { self.fake.forget(gpu, address) };
    }

    fn alloc_host(&self, bytes: u64) -> Result<u64, DriverError> {
        self.fake.alloc_host(bytes)
    }

    unsafe fn free_host(&self, address: u64) {
        // SAFETY: passed on.
        unsafe { self.fake.free_host(address) };
    }

    unsafe fn zero(&self, stream: Stream, address: u64, bytes: u64) -> Result<(), DriverError> {
        // SAFETY: passed on.
        unsafe { self.fake.zero(stream, address, bytes) }
    }

    unsafe fn copy(&self, stream: Stream, transfer: &Transfer) -> Result<(), DriverError> {
        // SAFETY: passed on.
        unsafe { self.fake.copy(stream, transfer) }
    }

    fn load(&self, gpu: Gpu, image: Image<'_>) -> Result<ModuleHandle, DriverError> {
        self.fake.load(gpu, image)
    }

    fn function(&self, module: ModuleHandle, name: &str) -> Result<Function, DriverError> {
        self.fake.function(module, name)
    }

    fn variable(
        &self,
        module: ModuleHandle,
        name: &str,
    ) -> Result<Option<(u64, u64)>, DriverError> {
        self.fake.variable(module, name)
    }

    fn parameter_bytes(&self, function: Function) -> Result<Option<u64>, DriverError> {
        self.fake.parameter_bytes(function)
    }

    fn most_threads(&self, function: Function) -> Result<u32, DriverError> {
        self.fake.most_threads(function)
    }

    unsafe fn launch(
        &self,
        _stream: Stream,
        _function: Function,
        _size: LaunchSize,
        _parameters: &[u8],
    ) -> Result<(), DriverError> {
        if !self.launch.is_zero() {
            let start = Instant::now();
            while start.elapsed() < self.launch {
                std::hint::spin_loop();
            }
        }
        Ok(())
    }
}
