//! NVIDIA's driver, through `cudarc`'s raw bindings, which look for it when it
//! is first used. The only place that knows them.
//!
//! Primary contexts are used, so that other libraries of the process share them.
//! Calls leave the thread's current context as they found it.
#![allow(unsafe_code)]

use std::ffi::{CString, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::time::Duration;

use celerity_executor::DeviceStream;
use cudarc::driver::sys;

use super::{
    AddressSpace, Driver, DriverError, Event, Function, Gpu, GpuInfo, Handle, Image, LaunchSize,
    MemoryHandle, ModuleHandle, Pages, Stream, Transfer,
};

mod code;
mod copy;
mod gpu;
mod ipc;
mod pieces;
mod result;
mod virtual_memory;

use gpu::{NvidiaGpu, Opened};
use result::check;

/// The driver of this machine's NVIDIA GPUs.
pub struct NvidiaDriver {
    gpus: Vec<NvidiaGpu>,
    /// What the driver supports, as 1000 × major + 10 × minor.
    version: u32,
}

/// Memory that is allocated in the order of a stream, and everything else that
/// is used here without asking, exists from 12.0 on.
const OLDEST: u32 = 12_000;

impl NvidiaDriver {
    /// Finds and starts the driver. Touches no GPU yet.
    ///
    /// # Errors
    /// [`DriverError::Missing`] if there is no driver or no GPU that it can use;
    /// [`DriverError::TooOld`] if it is older than CUDA 12.0.
    pub fn new() -> Result<Self, DriverError> {
        // SAFETY: loading the driver's library runs its initialisers, which is
        // what it is made for.
        if !unsafe { sys::is_culib_present() } {
            let reason = "`libcuda.so.1` cannot be loaded".to_owned();
            return Err(DriverError::Missing { reason });
        }
        let mut version = 0;
        // SAFETY: `version` outlives the call.
        check("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&raw mut version) })?;
        let version = version.unsigned_abs();
        if version < OLDEST {
            return Err(DriverError::TooOld { found: version, needed: OLDEST });
        }
        // SAFETY: 0 is the only value for the flags.
        check("cuInit", unsafe { sys::cuInit(0) })
            .map_err(|error| DriverError::Missing { reason: error.to_string() })?;
        let mut count = 0;
        // SAFETY: `count` outlives the call.
        check("cuDeviceGetCount", unsafe { sys::cuDeviceGetCount(&raw mut count) })?;
        let gpus = (0..count).map(NvidiaGpu::new).collect::<Result<_, _>>()?;
        Ok(Self { gpus, version })
    }

    fn opened(&self, gpu: Gpu) -> Result<&Opened, DriverError> {
        self.gpus[gpu.slot()].opened()
    }

    /// Makes a GPU's context current until the value is dropped.
    fn enter(&self, gpu: Gpu) -> Result<Entered, DriverError> {
        Entered::new(self.opened(gpu)?.context)
    }

    /// Whether a GPU's threads can read and write both sides of a transfer.
    fn touches_both(&self, gpu: Gpu, transfer: &Transfer) -> bool {
        [transfer.source, transfer.target].iter().all(|side| match side.place {
            AddressSpace::Gpu(owner) => owner == gpu || self.gpus[gpu.slot()].reaches(owner),
            AddressSpace::Host => copy::is_pinned(side.address),
        })
    }

    /// A context of any GPU that is in use.
    fn enter_any(&self) -> Result<Entered, DriverError> {
        let opened = self.gpus.iter().find_map(NvidiaGpu::if_opened);
        let context =
            opened.map_or_else(|| Ok(self.gpus[0].opened()?.context), |it| Ok(it.context));
        Entered::new(context?)
    }
}

/// While this lives, a context is the thread's current one.
struct Entered {
    /// To be restored, if it is another one.
    previous: Option<sys::CUcontext>,
}

impl Entered {
    fn new(context: sys::CUcontext) -> Result<Self, DriverError> {
        let mut previous = null_mut();
        // SAFETY: `previous` outlives the call.
        check("cuCtxGetCurrent", unsafe { sys::cuCtxGetCurrent(&raw mut previous) })?;
        if previous == context {
            return Ok(Self { previous: None });
        }
        // SAFETY: the context is retained for as long as the driver lives.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(context) })?;
        Ok(Self { previous: Some(previous) })
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(previous) = self.previous {
            // SAFETY: it was current before, or there was none.
            let _: sys::CUresult = unsafe { sys::cuCtxSetCurrent(previous) };
        }
    }
}

fn stream_of(stream: Stream) -> sys::CUstream {
    without_provenance_mut(stream.raw)
}

fn event_of(event: Event) -> sys::CUevent {
    without_provenance_mut(event.raw)
}

impl Driver for NvidiaDriver {
    fn gpus(&self) -> usize {
        self.gpus.len()
    }

    fn info(&self, gpu: Gpu) -> Result<GpuInfo, DriverError> {
        self.gpus[gpu.slot()].info()
    }

    fn adopt_thread(&self, gpu: Gpu) -> Result<(), DriverError> {
        let context = self.opened(gpu)?.context;
        // SAFETY: the context is retained for as long as the driver lives.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(context) })
    }

    fn connect(&self, from: Gpu, to: Gpu) -> Result<bool, DriverError> {
        let (owner, user) = (&self.gpus[from.slot()], &self.gpus[to.slot()]);
        if !user.can_reach(owner)? {
            return Ok(false);
        }
        let (owner, context) = (owner.opened()?, self.opened(to)?.context);
        let _entered = Entered::new(context)?;
        // SAFETY: both contexts are retained for as long as the driver lives.
        match unsafe { sys::cuCtxEnablePeerAccess(owner.context, 0) } {
            sys::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => {}
            result => check("cuCtxEnablePeerAccess", result)?,
        }
        owner.open_pool_to(user)?;
        user.note_reach(from);
        Ok(true)
    }

    fn create_stream(&self, gpu: Gpu) -> Result<Stream, DriverError> {
        let _entered = self.enter(gpu)?;
        let mut stream = null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: `stream` outlives the call.
        check("cuStreamCreate", unsafe { sys::cuStreamCreate(&raw mut stream, flags) })?;
        Ok(Handle::new(gpu, stream.addr()))
    }

    unsafe fn destroy_stream(&self, stream: Stream) {
        // SAFETY: the stream is alive, and this is its last use. An error would
        // be that of something that ran, and has been reported.
        let _: sys::CUresult = unsafe { sys::cuStreamDestroy_v2(stream_of(stream)) };
    }

    fn native(&self, stream: Stream) -> Result<DeviceStream, DriverError> {
        let context = self.opened(stream.gpu)?.context;
        let (ordinal, stream) = (stream.gpu.slot(), stream_of(stream));
        Ok(DeviceStream { ordinal, stream: stream.cast(), context: context.cast() })
    }

    fn synchronize(&self, stream: Stream) -> Result<(), DriverError> {
        let _entered = self.enter(stream.gpu)?;
        // SAFETY: the stream is alive.
        check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(stream_of(stream)) })
    }

    fn create_event(&self, gpu: Gpu, timed: bool) -> Result<Event, DriverError> {
        let _entered = self.enter(gpu)?;
        let mut event = null_mut();
        let flags = match timed {
            true => sys::CUevent_flags::CU_EVENT_DEFAULT,
            false => sys::CUevent_flags::CU_EVENT_DISABLE_TIMING,
        } as u32;
        // SAFETY: `event` outlives the call.
        check("cuEventCreate", unsafe { sys::cuEventCreate(&raw mut event, flags) })?;
        Ok(Handle::new(gpu, event.addr()))
    }

    fn elapsed(&self, from: Event, to: Event) -> Result<Duration, DriverError> {
        let mut milliseconds = 0.0;
        // SAFETY: both events are alive, and `milliseconds` outlives the call.
        let result =
            unsafe { sys::cuEventElapsedTime(&raw mut milliseconds, event_of(from), event_of(to)) };
        check("cuEventElapsedTime", result)?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3))
    }

    unsafe fn destroy_event(&self, event: Event) {
        // SAFETY: the event is alive, and this is its last use.
        let _: sys::CUresult = unsafe { sys::cuEventDestroy_v2(event_of(event)) };
    }

    fn record(&self, event: Event, stream: Stream) -> Result<(), DriverError> {
        let _entered = self.enter(stream.gpu)?;
        // SAFETY: both are alive and of one context.
        let result = unsafe { sys::cuEventRecord(event_of(event), stream_of(stream)) };
        check("cuEventRecord", result)
    }

    fn query(&self, event: Event) -> Result<bool, DriverError> {
        // SAFETY: the event is alive.
        match unsafe { sys::cuEventQuery(event_of(event)) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            result => check("cuEventQuery", result).map(|()| true),
        }
    }

    fn wait(&self, stream: Stream, event: Event) -> Result<(), DriverError> {
        let _entered = self.enter(stream.gpu)?;
        // SAFETY: both are alive.
        let result = unsafe { sys::cuStreamWaitEvent(stream_of(stream), event_of(event), 0) };
        check("cuStreamWaitEvent", result)
    }

    fn alloc(&self, stream: Stream, bytes: u64) -> Result<u64, DriverError> {
        let opened = self.opened(stream.gpu)?;
        let _entered = Entered::new(opened.context)?;
        let (mut address, bytes) = (0, bytes_of(bytes));
        // SAFETY: `address` outlives the call; pool and stream are alive.
        let result = unsafe {
            sys::cuMemAllocFromPoolAsync(&raw mut address, bytes, opened.pool, stream_of(stream))
        };
        check("cuMemAllocFromPoolAsync", result)?;
        Ok(address)
    }

    unsafe fn free(&self, stream: Stream, address: u64) {
        let Ok(_entered) = self.enter(stream.gpu) else { return };
        // SAFETY: the caller's promise. An error would be that of something that
        // ran, and has been reported.
        let _: sys::CUresult = unsafe { sys::cuMemFreeAsync(address, stream_of(stream)) };
    }

    fn piece(&self, gpu: Gpu) -> Result<u64, DriverError> {
        let _entered = self.enter(gpu)?;
        virtual_memory::piece(self.gpus[gpu.slot()].device)
    }

    fn reserve(&self, gpu: Gpu, bytes: u64) -> Result<u64, DriverError> {
        let _entered = self.enter(gpu)?;
        virtual_memory::reserve(bytes)
    }

    fn create_pages(&self, gpu: Gpu, bytes: u64) -> Result<Pages, DriverError> {
        let _entered = self.enter(gpu)?;
        let pages = virtual_memory::create(self.gpus[gpu.slot()].device, bytes)?;
        Ok(Handle::new(gpu, usize::try_from(pages).expect("64-bit hosts only")))
    }

    unsafe fn destroy_pages(&self, pages: Pages) {
        let Ok(_entered) = self.enter(pages.gpu) else { return };
        // SAFETY: the caller's promise.
        unsafe { virtual_memory::destroy(pages.raw as u64) };
    }

    unsafe fn map(
        &self,
        gpu: Gpu,
        address: u64,
        pages: &[(Pages, u64)],
        users: &[Gpu],
    ) -> Result<(), DriverError> {
        let _entered = self.enter(gpu)?;
        let device = |gpu: Gpu| self.gpus[gpu.slot()].device;
        let users: Vec<_> = std::iter::once(gpu).chain(users.iter().copied()).map(device).collect();
        let pages = pages.iter().map(|&(pages, bytes)| (pages.raw as u64, bytes));
        // SAFETY: the caller's promise.
        unsafe { virtual_memory::map(address, pages, &users) }
    }

    unsafe fn unmap(&self, gpu: Gpu, address: u64, bytes: u64) {
        let Ok(_entered) = self.enter(gpu) else { return };
        // SAFETY: the caller's promise.
        unsafe { virtual_memory::unmap(address, bytes) };
    }

    unsafe fn release(&self, gpu: Gpu, address: u64, bytes: u64) {
        let Ok(_entered) = self.enter(gpu) else { return };
        // SAFETY: the caller's promise.
        unsafe { virtual_memory::release(address, bytes) };
    }

    fn trim(&self, gpu: Gpu) -> Result<u64, DriverError> {
        let opened = self.opened(gpu)?;
        let _entered = Entered::new(opened.context)?;
        // SAFETY: the pool is alive.
        check("cuMemPoolTrimTo", unsafe { sys::cuMemPoolTrimTo(opened.pool, 0) })?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both outlive the call.
        let result = unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut total) };
        check("cuMemGetInfo", result)?;
        Ok(free as u64)
    }

    fn alloc_shared(&self, gpu: Gpu, bytes: u64) -> Result<u64, DriverError> {
        let _entered = self.enter(gpu)?;
        ipc::alloc(bytes)
    }

    unsafe fn free_shared(&self, gpu: Gpu, address: u64) {
        let Ok(_entered) = self.enter(gpu) else { return };
        // SAFETY: passed on.
        unsafe { ipc::free(address) };
    }

    fn export(&self, gpu: Gpu, address: u64) -> Result<MemoryHandle, DriverError> {
        let _entered = self.enter(gpu)?;
        ipc::export(address)
    }

    fn import(&self, gpu: Gpu, handle: &MemoryHandle) -> Result<u64, DriverError> {
        let _entered = self.enter(gpu)?;
        ipc::import(handle)
    }

    unsafe fn forget(&self, gpu: Gpu, address: u64) {
        let Ok(_entered) = self.enter(gpu) else { return };
        // SAFETY: passed on.
        unsafe { ipc::forget(address) };
    }

    fn alloc_host(&self, bytes: u64) -> Result<u64, DriverError> {
        let _entered = self.enter_any()?;
        let (mut address, flags) = (null_mut(), sys::CU_MEMHOSTALLOC_PORTABLE);
        // SAFETY: `address` outlives the call.
        let result = unsafe { sys::cuMemHostAlloc(&raw mut address, bytes_of(bytes), flags) };
        check("cuMemHostAlloc", result)?;
        Ok(address.expose_provenance() as u64)
    }

    unsafe fn free_host(&self, address: u64) {
        let Ok(_entered) = self.enter_any() else { return };
        // SAFETY: the caller's promise.
        let _: sys::CUresult = unsafe { sys::cuMemFreeHost(host_pointer(address)) };
    }

    unsafe fn zero(&self, stream: Stream, address: u64, bytes: u64) -> Result<(), DriverError> {
        let _entered = self.enter(stream.gpu)?;
        // SAFETY: the caller's promise.
        let result =
            unsafe { sys::cuMemsetD8Async(address, 0, bytes_of(bytes), stream_of(stream)) };
        check("cuMemsetD8Async", result)
    }

    unsafe fn copy(&self, stream: Stream, transfer: &Transfer) -> Result<(), DriverError> {
        let _entered = self.enter(stream.gpu)?;
        let context = |place| match place {
            AddressSpace::Host => Ok(null_mut()),
            AddressSpace::Gpu(gpu) => self.opened(gpu).map(|opened| opened.context),
        };
        let contexts = [context(transfer.source.place)?, context(transfer.target.place)?];
        // SAFETY: the caller's promise; the contexts are those of the sides.
        unsafe { copy::copy(stream_of(stream), transfer, contexts) }
    }

    unsafe fn copy_all(&self, stream: Stream, transfers: &[Transfer]) -> Result<(), DriverError> {
        if pieces::are_worth_a_launch(transfers) && self.touches_both(stream.gpu, &transfers[0]) {
            let opened = self.opened(stream.gpu)?;
            let _entered = Entered::new(opened.context)?;
            // SAFETY: the caller's promise; the GPU's threads can touch both sides.
            return unsafe { pieces::move_all(stream_of(stream), opened.mover()?, transfers) };
        }
        // SAFETY: passed on.
        transfers.iter().try_for_each(|transfer| unsafe { self.copy(stream, transfer) })
    }

    fn load(&self, gpu: Gpu, image: Image<'_>) -> Result<ModuleHandle, DriverError> {
        let _entered = self.enter(gpu)?;
        code::load(image).map(|module| Handle::new(gpu, module.addr()))
    }

    fn function(&self, module: ModuleHandle, name: &str) -> Result<Function, DriverError> {
        let _entered = self.enter(module.gpu)?;
        code::function(without_provenance_mut(module.raw), name)
            .map(|function| Handle::new(module.gpu, function.addr()))
    }

    fn variable(
        &self,
        module: ModuleHandle,
        name: &str,
    ) -> Result<Option<(u64, u64)>, DriverError> {
        let _entered = self.enter(module.gpu)?;
        code::variable(without_provenance_mut(module.raw), name)
    }

    fn parameter_bytes(&self, function: Function) -> Result<Option<u64>, DriverError> {
        let _entered = self.enter(function.gpu)?;
        code::parameter_bytes(without_provenance_mut(function.raw), self.version)
    }

    fn most_threads(&self, function: Function) -> Result<u32, DriverError> {
        let _entered = self.enter(function.gpu)?;
        code::most_threads(without_provenance_mut(function.raw))
    }

    unsafe fn launch(
        &self,
        stream: Stream,
        function: Function,
        size: LaunchSize,
        parameters: &[u8],
    ) -> Result<(), DriverError> {
        let _entered = self.enter(stream.gpu)?;
        let function = without_provenance_mut(function.raw);
        // SAFETY: stream and function are alive and of one context; the rest is
        // the caller's promise.
        unsafe { code::launch(stream_of(stream), function, size, parameters) }
    }
}

fn bytes_of(bytes: u64) -> usize {
    usize::try_from(bytes).expect("64-bit hosts only")
}

fn host_pointer(address: u64) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(bytes_of(address))
}

/// A name as the driver takes it. One with a NUL inside is cut there, and will
/// not be found.
fn c_name(name: &str) -> CString {
    let text = name.split('\0').next().unwrap_or_default();
    CString::new(text).expect("there is no NUL left")
}
