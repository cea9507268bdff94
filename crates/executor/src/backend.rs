//! What a node needs from its devices: memory, and lanes that run jobs in
//! order. Backends are thin: they decide nothing about order or coherence.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use celerity_idag::{BoundAccess, InstructionId, MemoryId};
use celerity_regions::{Box3, Region};
use smallvec::SmallVec;

use crate::bound::BoundMemory;
use crate::contain::caught;
use crate::copy::ElementArray;
use crate::engine::{LaneGroup, LaneId, LaneJob};
use crate::error::{TaskError, bytes_are};
use crate::lanes::LaneLayout;
use crate::memory::BasePtr;
use crate::time::{Clock, Span, Time};
use crate::wires::{DeviceCollectives, DeviceWindows, WindowError};
use crate::work::{DeviceKernel, HostFunction};

mod cpu;

pub use cpu::CpuBackend;

/// The devices and host threads of one node.
///
/// Contract, for the implementation:
/// * jobs of one lane run one after another, in the order of `enqueue`; lanes
///   are independent of each other, and every lane gets its turn, also while
///   jobs block on lanes where they [may](LaneLayout::may_block);
/// * each job that has run is reported once by `poll`, and the waker is called
///   after it can be polled, unless it has run inside of `enqueue` or `compute`: who calls
///   these polls afterwards;
/// * a job that fails is reported with how, and its lane runs nothing more:
///   what was queued behind it may depend on it; nor does what waits for it on
///   other lanes, and what is queued behind that;
/// * dropping the backend waits for running jobs before memory is given back.
///
/// A failed check inside a backend is a defect of the node that drives it, and
/// panics.
///
/// # Safety
/// The node reads and writes memory as this trait's implementation tells it. So
/// * what [`alloc`](Self::alloc) and [`reserve`](Self::reserve) return begins as many bytes as
///   were asked for, which overlap nothing else until they are freed; in the host's memory they
///   are zeroed, aligned, and valid to read and write, from when they were
///   [provided](Self::provide) on;
/// * [`layout`](Self::layout) and [`joins`](Self::joins) tell the truth of what runs behind what;
/// * a job touches what it names, from when it was enqueued, not before those that it waits for
///   have ended, until it is reported by [`poll`](Self::poll), and not after;
/// * kernels and host functions get [what they are bound to](Arguments::bind) and nothing else;
/// * a backend that [is quiet](Self::is_quiet) after [`cancel`](Self::cancel) touches no memory.
pub unsafe trait Backend: Send {
    /// The lanes that exist.
    fn layout(&self) -> LaneLayout;

    /// Lanes that can wait for jobs of each other, if there are any. The same at
    /// every call.
    fn joins(&self) -> Option<LaneGroup> {
        None
    }

    /// Zeroed memory of `bytes` bytes at the given alignment.
    ///
    /// # Errors
    /// [`AllocError`] if the memory has no room.
    fn alloc(
        &mut self,
        memory: MemoryId,
        bytes: u64,
        alignment: u64,
    ) -> Result<BasePtr, AllocError>;

    /// Addresses for `bytes` bytes at the given alignment, behind which
    /// [`provide`](Self::provide) puts memory. Asked for only where the node's
    /// [instruction graph](celerity_idag::InstructionGraph::with_reservations) makes
    /// reservations; without this method, all of the memory is allocated at once.
    ///
    /// # Errors
    /// [`AllocError`] if there is no room.
    fn reserve(
        &mut self,
        memory: MemoryId,
        bytes: u64,
        alignment: u64,
    ) -> Result<BasePtr, AllocError> {
        self.alloc(memory, bytes, alignment)
    }

    /// Puts zeroed memory behind a part of reserved addresses, where there is none.
    /// What is there already may be in use, and stays as it is.
    ///
    /// # Safety
    /// `base` came from [`reserve`](Self::reserve) in `memory` for at least
    /// `bytes.end` bytes, and has not been freed.
    ///
    /// # Errors
    /// [`AllocError`] if the memory has no room.
    unsafe fn provide(
        &mut self,
        memory: MemoryId,
        base: BasePtr,
        bytes: Range<u64>,
    ) -> Result<(), AllocError> {
        let _ = (memory, base, bytes);
        Ok(())
    }

    /// Gives memory back.
    ///
    /// # Safety
    /// `base` came from [`alloc`](Self::alloc) or [`reserve`](Self::reserve) in
    /// `memory`, has not been freed, and no job that has not been reported uses it.
    unsafe fn free(&mut self, memory: MemoryId, base: BasePtr);

    /// Appends a job to a lane. It starts when those of `after` have ended, which
    /// were enqueued before, and whose lanes the lane [can wait for](Self::joins).
    /// Jobs of a lane are numbered as they are enqueued, from 0.
    ///
    /// # Safety
    /// Until the job has been reported by [`poll`](Self::poll), or dropped by
    /// [`cancel`](Self::cancel): all memory that it names stays allocated, what
    /// it writes is not touched by anybody but jobs before and after it, on its
    /// lane or by waiting, and what it reads is not written by anybody but those.
    /// A kernel or host function is the one that a task was submitted with, and its arguments
    /// are what the accesses of that task are bound to for the chunk.
    unsafe fn enqueue(
        &mut self,
        lane: LaneId,
        instruction: InstructionId,
        job: Job,
        after: &[LaneJob],
    );

    /// Appends what has completed since the last call.
    fn poll(&mut self, out: &mut Vec<Completion>);

    /// Says that all threads of the process have one core between them. Jobs that are over
    /// soon may then wait for the thread that polls to [run](Self::compute) them, which saves
    /// the ways to another thread and back. Called at most once, before all jobs.
    fn share_core(&mut self) {}

    /// Runs a job that waits for the calling thread, if there is one; that should not take
    /// longer than peers may wait for this node. Called when it has nothing else to do.
    fn compute(&mut self) -> bool {
        false
    }

    /// Drops jobs that have not started; nothing starts any more. What runs,
    /// finishes, and wakes.
    fn cancel(&mut self);

    /// Whether no job is running. Meaningful after [`cancel`](Self::cancel).
    fn is_quiet(&self) -> bool;

    /// The job that a lane is at, if it is at one and the backend can tell. For reports: it may
    /// be over by the time that this returns.
    fn begun(&self, lane: LaneId) -> Option<Begun> {
        let _ = lane;
        None
    }

    /// Asks for [when](Begun::since) jobs have begun, as far as the backend can tell. Called at
    /// most once, before all jobs.
    fn note_begins(&mut self, clock: Clock) {
        drop(clock);
    }

    /// The next job that [`compute`](Self::compute) would run.
    fn next_to_compute(&self) -> Option<InstructionId> {
        None
    }

    /// Asks for the [span](Completion::span) of each job that is enqueued from now
    /// on, as far as the backend can tell. Called at most once, before all jobs.
    ///
    /// A device with a clock of its own reports its jobs' times on `clock`, which
    /// it may compare with its own now and then.
    fn time_jobs(&mut self, clock: Clock) {
        drop(clock);
    }

    /// Windows of the devices, for [wires](crate::Wires) between processes; `None` if devices of this
    /// kind have none. They may outlive the backend, but for copies.
    ///
    /// # Errors
    /// [`WindowError`] if they cannot be had here.
    fn windows(&mut self) -> Option<Result<Box<dyn DeviceWindows>, WindowError>> {
        None
    }

    /// Collective operations between the devices of nodes; `None` if devices of this kind have none. They
    /// may outlive the backend, but for operations that are under way.
    ///
    /// # Errors
    /// [`WindowError`] if they cannot be had here.
    fn collectives(&mut self) -> Option<Result<Box<dyn DeviceCollectives>, WindowError>> {
        None
    }
}

/// Something to run on a lane.
pub enum Job {
    /// A chunk of a kernel.
    Kernel {
        /// The kernel or function to run.
        kernel: Arc<dyn DeviceKernel>,
        /// The items of the index space that it runs.
        chunk: Box3,
        /// Memory, in the order of the task's accesses.
        arguments: Arguments,
    },
    /// A host task, or a fence's copy.
    Host {
        /// The kernel or function to run.
        function: HostFunction,
        /// Memory, in the order of the task's accesses.
        arguments: Arguments,
    },
    /// A copy within the node.
    Copy {
        /// The array that is read.
        source: ElementArray,
        /// The array that is written; another one.
        target: ElementArray,
        /// Which elements: inside both extents.
        region: Region,
        /// Bytes of one element.
        elem_size: u64,
    },
}

/// The memory that one chunk of a task may touch.
pub struct Arguments {
    accesses: Box<[BoundAccess]>,
    bases: SmallVec<[BasePtr; 4]>,
}

impl Arguments {
    /// Joins accesses with the addresses that their allocations have got;
    /// accesses that touch nothing get a dangling one.
    #[must_use]
    pub fn new(
        accesses: Box<[BoundAccess]>,
        mut base_of: impl FnMut(&BoundAccess) -> Option<BasePtr>,
    ) -> Self {
        let bases = accesses
            .iter()
            .map(|access| base_of(access).unwrap_or_else(BasePtr::dangling))
            .collect();
        Self { accesses, bases }
    }

    /// What a kernel or host function is called with.
    ///
    /// # Safety
    /// For as long as the result is used, the addresses are those of live allocations with the
    /// extents of the accesses, and the accesses' regions are touched as
    /// [`BoundMemory`] says: what [`Backend::enqueue`] promises of a job that runs.
    #[must_use]
    pub unsafe fn bind(&self) -> SmallVec<[BoundMemory<'_>; 4]> {
        let pairs = self.accesses.iter().zip(&self.bases);
        pairs
            .map(|(access, base)| {
                let extent = access.placement.map_or(Box3::EMPTY, |placement| placement.extent);
                // SAFETY: passed on.
                unsafe { BoundMemory::new(base.as_ptr(), extent, &access.region) }
            })
            .collect()
    }

    /// Where those accesses lie that touch something.
    pub fn used_bases(&self) -> impl Iterator<Item = BasePtr> {
        let pairs = self.accesses.iter().zip(&self.bases);
        let extent = |access: &BoundAccess| access.placement.map(|placement| placement.extent);
        pairs
            .filter(move |(access, _)| extent(access).is_some_and(|extent| !extent.is_empty()))
            .map(|(_, base)| *base)
    }
}

/// A job that has run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The instruction that the job performs.
    pub instruction: InstructionId,
    /// How it failed, if it did.
    pub failure: Option<JobFailure>,
    /// When it ran, if that was [asked for](Backend::time_jobs) and is known.
    pub span: Option<Span>,
}

/// A job that has begun, and has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The instruction that the job performs.
    pub instruction: InstructionId,
    /// When, if that was [asked for](Backend::note_begins) and is known.
    pub since: Option<Time>,
    /// The name of the thread that runs it, or has spread it over others.
    pub thread: Option<String>,
}

/// How a job failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobFailure {
    /// It panicked: what the panic said.
    #[error("{0}")]
    Panicked(String),
    /// A host task, or a call on a device, has returned an error.
    #[error("{0}")]
    Returned(TaskError),
}

impl JobFailure {
    /// Runs a job, and returns how it failed, if it did. Nobody may run it again or look at
    /// what it has left behind.
    pub fn of(run: impl FnOnce() -> Result<(), TaskError>) -> Option<Self> {
        match caught(run) {
            Ok(outcome) => outcome.err().map(Self::Returned),
            Err(said) => Some(Self::Panicked(said)),
        }
    }
}

/// A memory without room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no room: {} resident", bytes_are(*.resident))]
pub struct AllocError {
    /// Bytes allocated in that memory.
    pub resident: u64,
    /// Bytes left below the memory's limit, if it has one.
    pub free: Option<u64>,
}
