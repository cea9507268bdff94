//! What the backend asks of a GPU driver, and nothing more: the one place where
//! a binding can be replaced. Knows no lanes, buffers or instructions.
#![allow(unsafe_code)]

use std::fmt;
use std::time::Duration;

use celerity_executor::DeviceStream;

mod error;
mod fake;
#[cfg(feature = "cuda")]
mod nvidia;

pub use error::{DriverError, Failure};
pub use fake::{FakeCounts, FakeDriver, FakeLaunch, FakeNccl, HostedKernels};
#[cfg(feature = "cuda")]
pub use nvidia::NvidiaDriver;

/// A GPU of this host, in the order in which the driver shows them. Which
/// device of which node it is, is decided elsewhere. Prints as `GPU 2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gpu(u16);

impl Gpu {
    /// The GPU at a position in the driver's list.
    #[must_use]
    pub const fn from_slot(slot: u16) -> Self {
        Self(slot)
    }

    /// Its position in the driver's list.
    #[must_use]
    pub const fn slot(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GPU {}", self.0)
    }
}

/// What a GPU is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuInfo {
    /// The vendor's name for it.
    pub name: String,
    /// Compute capability: major and minor.
    pub capability: (u32, u32),
    /// Bytes of memory that the GPU has.
    pub memory: u64,
    /// Bytes of shared memory that a block can have, if each kernel asks for what exceeds 48 KiB.
    pub shared_memory: u64,
    /// The longest row stride, in bytes, of a strided copy.
    pub max_pitch: u64,
}

/// The name of something that the driver made on a GPU: opaque, and good until
/// it is destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle<Kind> {
    /// The GPU that the driver made it on.
    pub gpu: Gpu,
    raw: usize,
    kind: std::marker::PhantomData<fn() -> Kind>,
}

impl<Kind> Handle<Kind> {
    fn new(gpu: Gpu, raw: usize) -> Self {
        Self { gpu, raw, kind: std::marker::PhantomData }
    }
}

/// Tells handles of streams from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamKind;
/// Tells handles of events from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventKind;
/// Tells handles of pages from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PagesKind;
/// Tells handles of modules from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModuleKind;
/// Tells handles of functions from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FunctionKind;

/// An in-order queue of a GPU; streams are independent of each other.
pub type Stream = Handle<StreamKind>;
/// A point in a stream that can be asked about and waited for.
pub type Event = Handle<EventKind>;
/// Memory that has no address until it is put behind some.
pub type Pages = Handle<PagesKind>;
/// A module of code that the driver has loaded on a GPU.
pub type ModuleHandle = Handle<ModuleKind>;
/// An entry point of a module, which lives as long as that.
pub type Function = Handle<FunctionKind>;

/// Whose memory an address is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressSpace {
    /// The host's, pinned or not.
    Host,
    /// A GPU's.
    Gpu(Gpu),
}

/// One side of a [`Transfer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferEnd {
    /// The memory that the address is in.
    pub place: AddressSpace,
    /// The first byte to copy.
    pub address: u64,
    /// Bytes from one row to the next.
    pub pitch: u64,
    /// Rows from one plane to the next.
    pub rows_per_plane: u64,
}

impl TransferEnd {
    /// The address of a row's first byte.
    pub(crate) fn row(&self, plane: u64, row: u64) -> u64 {
        self.address + (plane * self.rows_per_plane + row) * self.pitch
    }
}

/// Planes of rows of bytes, to be copied from one array to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The array that is read.
    pub source: TransferEnd,
    /// The array that is written.
    pub target: TransferEnd,
    /// Bytes of one row that are copied.
    pub row: u64,
    /// Rows of one plane that are copied.
    pub rows: u64,
    /// Planes that are copied.
    pub planes: u64,
}

impl Transfer {
    /// So many bytes in a row, from one address to another.
    #[must_use]
    pub fn flat(source: (AddressSpace, u64), target: (AddressSpace, u64), bytes: u64) -> Self {
        let side =
            |(place, address)| TransferEnd { place, address, pitch: bytes, rows_per_plane: 1 };
        Self { source: side(source), target: side(target), row: bytes, rows: 1, planes: 1 }
    }
}

/// The size of a launch, and what its threads are given.
#[derive(Clone, Copy, Debug)]
pub struct LaunchSize {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory per block.
    pub shared_bytes: u32,
}

/// The name of a GPU's memory among the processes of a host.
pub type MemoryHandle = [u8; 64];

/// Code in a form that a driver loads.
#[derive(Clone, Copy, Debug)]
pub enum Image<'a> {
    /// Portable assembly, which the driver compiles.
    Ptx(&'a str),
    /// Code for one architecture, or a container of several.
    Binary(&'a [u8]),
}

/// A GPU driver.
///
/// Contract, for the implementation:
/// * all of it may be called from any thread, at the same time;
/// * what is put on a stream runs in that order, each after the one before has
///   ended; nothing that is put on a stream is waited for by the caller, but
///   copies from or to host memory that is not pinned may be;
/// * an error of something that ran on a GPU comes back from every later call
///   that names that GPU ([`query`](Self::query) above all).
pub trait Driver: Send + Sync + 'static {
    /// How many GPUs there are.
    fn gpus(&self) -> usize;

    /// What a GPU is.
    ///
    /// # Errors
    /// [`DriverError`] as the driver gives it, here and below.
    fn info(&self, gpu: Gpu) -> Result<GpuInfo, DriverError>;

    /// Declares that the calling thread works for one GPU, which makes its calls
    /// cheaper. Not a condition for any.
    ///
    /// # Errors
    /// If the GPU cannot be used.
    fn adopt_thread(&self, gpu: Gpu) -> Result<(), DriverError>;

    /// Lets `to` read and write the memory of `from`, from now on, and returns
    /// whether it can. Copies in both directions need both calls.
    ///
    /// # Errors
    /// If it should be possible and is not.
    fn connect(&self, from: Gpu, to: Gpu) -> Result<bool, DriverError>;

    /// A new stream.
    ///
    /// # Errors
    /// [`DriverError`] if the driver refuses.
    fn create_stream(&self, gpu: Gpu) -> Result<Stream, DriverError>;

    /// Ends a stream when it has run empty.
    ///
    /// # Safety
    /// It is named in no later call.
    unsafe fn destroy_stream(&self, stream: Stream);

    /// The stream as other libraries know it, to put work of theirs on it.
    ///
    /// # Errors
    /// [`DriverError`] if the driver refuses.
    fn native(&self, stream: Stream) -> Result<DeviceStream, DriverError>;

    /// Waits until the stream has run empty.
    ///
    /// # Errors
    /// What ran on it and failed.
    fn synchronize(&self, stream: Stream) -> Result<(), DriverError>;

    /// A new event. It has happened, as long as it has not been recorded. A
    /// `timed` one costs more.
    ///
    /// # Errors
    /// [`DriverError`] if the driver refuses.
    fn create_event(&self, gpu: Gpu, timed: bool) -> Result<Event, DriverError>;

    /// The time from one timed event to another, both of which have happened on
    /// one GPU, to about half a microsecond; 0 if it is negative.
    ///
    /// # Errors
    /// [`DriverError`] if the driver refuses.
    fn elapsed(&self, from: Event, to: Event) -> Result<Duration, DriverError>;

    /// Ends an event.
    ///
    /// # Safety
    /// It is named in no later call.
    unsafe fn destroy_event(&self, event: Event);

    /// Lets the event happen when everything that is on the stream now has
    /// ended. Stream and event belong to the same GPU.
    ///
    /// # Errors
    /// [`DriverError`] if the driver refuses.
    fn record(&self, event: Event, stream: Stream) -> Result<(), DriverError>;

    /// Whether the event, as recorded last, has happened.
    ///
    /// # Errors
    /// What ran before it and failed.
    fn query(&self, event: Event) -> Result<bool, DriverError>;

    /// Lets what is put on the stream from now on wait for the event, as
    /// recorded last. They may belong to different GPUs.
    ///
    /// # Errors
    /// [`DriverError`] if the driver refuses.
    fn wait(&self, stream: Stream, event: Event) -> Result<(), DriverError>;

    /// Memory of the stream's GPU, for what is put on the stream from now on,
    /// and on others that wait for an event recorded behind it. Aligned to at
    /// least 256 bytes; its contents are arbitrary.
    ///
    /// # Errors
    /// [`DriverError::is_out_of_memory`] if there is none.
    fn alloc(&self, stream: Stream, bytes: u64) -> Result<u64, DriverError>;

    /// Gives memory back when the stream has got there.
    ///
    /// # Safety
    /// `address` came from [`alloc`](Self::alloc) on this GPU, and everything
    /// that uses it has ended or is on the stream already.
    unsafe fn free(&self, stream: Stream, address: u64);

    /// Bytes in whose multiples a GPU's memory is put behind reserved addresses.
    ///
    /// # Errors
    /// As all calls; above all if it cannot reserve any.
    fn piece(&self, gpu: Gpu) -> Result<u64, DriverError>;

    /// Addresses for a number of [pieces](Self::piece) of a GPU's memory, with
    /// nothing behind them. They start at a multiple of a piece.
    ///
    /// # Errors
    /// [`DriverError`] if the driver refuses.
    fn reserve(&self, gpu: Gpu, bytes: u64) -> Result<u64, DriverError>;

    /// A number of [pieces](Self::piece) of a GPU's memory. Their contents are
    /// arbitrary.
    ///
    /// # Errors
    /// [`DriverError::is_out_of_memory`] if there is none.
    fn create_pages(&self, gpu: Gpu, bytes: u64) -> Result<Pages, DriverError>;

    /// Gives memory back.
    ///
    /// # Safety
    /// It is behind no addresses, and named in no later call.
    unsafe fn destroy_pages(&self, pages: Pages);

    /// Puts pages of a GPU, with their bytes, behind reserved addresses, one after
    /// the other. The GPU and `users` reach them there.
    ///
    /// # Safety
    /// From `address` on, so many bytes were [reserved](Self::reserve) for this GPU,
    /// and nothing is behind them. The pages have these bytes, and are nowhere else.
    ///
    /// # Errors
    /// As all calls; then nothing is behind the addresses.
    unsafe fn map(
        &self,
        gpu: Gpu,
        address: u64,
        pages: &[(Pages, u64)],
        users: &[Gpu],
    ) -> Result<(), DriverError>;

    /// Takes pages from behind addresses.
    ///
    /// # Safety
    /// The addresses are those of one [`map`](Self::map), and everything that uses
    /// them has ended.
    unsafe fn unmap(&self, gpu: Gpu, address: u64, bytes: u64);

    /// Gives addresses back.
    ///
    /// # Safety
    /// They are those of one [`reserve`](Self::reserve), with nothing behind them.
    unsafe fn release(&self, gpu: Gpu, address: u64, bytes: u64);

    /// Gives what is free in the pool behind [`alloc`](Self::alloc) back to the
    /// system, and returns how many bytes the system has.
    ///
    /// # Errors
    /// [`DriverError`] if the driver refuses.
    fn trim(&self, gpu: Gpu) -> Result<u64, DriverError>;

    /// Memory of a GPU that other processes can [import](Self::import). Takes up to a millisecond; its
    /// contents are arbitrary, and its alignment is as for [`alloc`](Self::alloc).
    ///
    /// # Errors
    /// [`DriverError::is_out_of_memory`] if there is none; as all calls.
    fn alloc_shared(&self, gpu: Gpu, bytes: u64) -> Result<u64, DriverError>;

    /// Gives shared memory back.
    ///
    /// # Safety
    /// `address` came from [`alloc_shared`](Self::alloc_shared) on this GPU, and nobody uses it, in this
    /// process or another.
    unsafe fn free_shared(&self, gpu: Gpu, address: u64);

    /// What another process needs to import memory that came from
    /// [`alloc_shared`](Self::alloc_shared) on this GPU.
    ///
    /// # Errors
    /// If processes cannot share memory here; as all calls.
    fn export(&self, gpu: Gpu, address: u64) -> Result<MemoryHandle, DriverError>;

    /// The address, for this GPU, of memory of any GPU of this host that another process has exported.
    ///
    /// # Errors
    /// If this GPU does not reach it; as all calls.
    fn import(&self, gpu: Gpu, handle: &MemoryHandle) -> Result<u64, DriverError>;

    /// Gives imported memory up.
    ///
    /// # Safety
    /// `address` came from [`import`](Self::import) for this GPU, and this process does not use it.
    unsafe fn forget(&self, gpu: Gpu, address: u64);

    /// Page-locked host memory that all GPUs reach, aligned to a page. Takes
    /// milliseconds. Its contents are arbitrary.
    ///
    /// # Errors
    /// [`DriverError::is_out_of_memory`] if there is none.
    fn alloc_host(&self, bytes: u64) -> Result<u64, DriverError>;

    /// Gives page-locked memory back.
    ///
    /// # Safety
    /// `address` came from [`alloc_host`](Self::alloc_host), and nobody uses it.
    unsafe fn free_host(&self, address: u64);

    /// Sets bytes of the stream's GPU's memory to 0.
    ///
    /// # Safety
    /// They are allocated, and whatever else touches them is ordered with the
    /// stream.
    ///
    /// # Errors
    /// [`DriverError`] if the driver refuses.
    unsafe fn zero(&self, stream: Stream, address: u64, bytes: u64) -> Result<(), DriverError>;

    /// Copies. One of the sides, or both, are the stream's GPU's. If there is
    /// more than one row, both pitches are at least a row and at most
    /// [`GpuInfo::max_pitch`], and both planes have at least as many rows.
    ///
    /// # Safety
    /// Both sides are allocated and do not overlap; whatever else touches them
    /// is ordered with the stream.
    ///
    /// # Errors
    /// [`DriverError`] if the driver refuses.
    unsafe fn copy(&self, stream: Stream, transfer: &Transfer) -> Result<(), DriverError>;

    /// Copies parts of one array to another, in any order.
    ///
    /// # Safety
    /// As for [`copy`](Self::copy), for each of them; no two overlap.
    ///
    /// # Errors
    /// [`DriverError`] if the driver refuses. Some of them may have been copied then.
    unsafe fn copy_all(&self, stream: Stream, transfers: &[Transfer]) -> Result<(), DriverError> {
        // SAFETY: passed on.
        transfers.iter().try_for_each(|transfer| unsafe { self.copy(stream, transfer) })
    }

    /// Loads code.
    ///
    /// # Errors
    /// [`DriverError::Rejected`] with what the driver's compiler says.
    fn load(&self, gpu: Gpu, image: Image<'_>) -> Result<ModuleHandle, DriverError>;

    /// An entry point of a module.
    ///
    /// # Errors
    /// [`DriverError::is_not_found`] if it has none of that name.
    fn function(&self, module: ModuleHandle, name: &str) -> Result<Function, DriverError>;

    /// Address and size in bytes of a module's variable, if it has it.
    ///
    /// # Errors
    /// [`DriverError`] if the driver refuses.
    fn variable(&self, module: ModuleHandle, name: &str)
    -> Result<Option<(u64, u64)>, DriverError>;

    /// Bytes of all parameters of a function, where the driver can tell.
    ///
    /// # Errors
    /// [`DriverError`] if the driver refuses.
    fn parameter_bytes(&self, function: Function) -> Result<Option<u64>, DriverError>;

    /// How many threads a block of a function can have: fewer than the device's blocks have, if each takes many
    /// registers.
    ///
    /// # Errors
    /// [`DriverError`] if the driver refuses.
    fn most_threads(&self, function: Function) -> Result<u32, DriverError>;

    /// Launches a function; `parameters` is copied.
    ///
    /// # Safety
    /// `parameters` is what the function expects, byte for byte; the memory
    /// that it touches is allocated, and whatever else touches that is ordered
    /// with the stream.
    ///
    /// # Errors
    /// [`DriverError`] if the driver refuses.
    unsafe fn launch(
        &self,
        stream: Stream,
        function: Function,
        size: LaunchSize,
        parameters: &[u8],
    ) -> Result<(), DriverError>;
}
