//! What users give the executor to run: kernels and host functions, with the
//! memory that one chunk of them may touch. The graphs know none of this.
#![allow(unsafe_code)]

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use celerity_cdag::NodeId;
use celerity_regions::Box3;
use celerity_tdag::StreamHash;

use crate::bound::BoundMemory;
use crate::call::EnqueuedCall;
use crate::code::DeviceCode;
use crate::collective::GroupCommunicator;
use crate::error::TaskError;
use crate::memory::BasePtr;

/// A kernel that only CPUs can run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the kernel has no code for this device: {reason}")]
pub struct NoDeviceCode {
    /// Why, and what to do.
    pub reason: Cow<'static, str>,
}

/// A kernel that a CPU device can run: whatever the facade lowers a closure to;
/// other devices run its [`DeviceCode`], if it has some.
///
/// A kernel cannot see for which accesses it is run: neither the types of their elements nor
/// whether they write. If it relies on them, as all do that follow a pointer, its author makes
/// sure that safe code cannot submit it with others: it stays private to what submits it with its
/// own, or its constructor is `unsafe`.
pub trait DeviceKernel: Any + Send + Sync {
    /// Runs all items of `chunk`. Called on a thread of the process-wide pool,
    /// so `rayon` calls inside spread over that pool; if it [is
    /// serial](Self::is_serial), perhaps on the node's own. A panic ends the run.
    ///
    /// # Safety
    /// `chunk` is a chunk of the task that the kernel is submitted with, and `memory` what each
    /// access of that task is bound to for the chunk, in order.
    unsafe fn run(&self, chunk: &Box3, memory: &[BoundMemory<'_>]);

    /// The same, for what may fail otherwise than by a panic: what CPU devices call.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    ///
    /// # Errors
    /// One that ends the run, as a panic does. A kernel has none; a [call](EnqueuedCall) may.
    unsafe fn try_run(&self, chunk: &Box3, memory: &[BoundMemory<'_>]) -> Result<(), TaskError> {
        // SAFETY: passed on.
        unsafe { self.run(chunk, memory) };
        Ok(())
    }

    /// Whether [`run`](Self::run) does all of `chunk` on the thread that calls it. Such
    /// a kernel, if all of its type with as many items have been over in some
    /// microseconds lately, is run by the node's own thread, since waking another
    /// takes longer. Answers without `rayon`, and at once.
    fn is_serial(&self, chunk: &Box3) -> bool {
        let _ = chunk;
        false
    }

    /// What devices that are no CPUs run instead.
    ///
    /// # Errors
    /// If there is nothing; says why, and what to do.
    fn device_code(&self) -> Result<&dyn DeviceCode, NoDeviceCode> {
        Err(NoDeviceCode {
            reason:
                "it is a closure, which only CPUs can run; write it as a `#[kernel]` function, \
                     or run on CPU devices"
                    .into(),
        })
    }

    /// What devices that are no CPUs call, if there is no [code](Self::device_code) for them.
    fn device_call(&self) -> Option<&dyn EnqueuedCall> {
        None
    }
}

/// A host task's function, or what copies a fence's snapshot out.
///
/// A host task may block: on input and output, on other threads, on a fence
/// that was submitted before. It runs outside of the pool, so `rayon` calls
/// inside spread over `rayon`'s global one. At most four of a node run at a
/// time, so none may wait for a later one; those of collective groups are not counted, since each
/// group has a thread of its own. A fence's copy shares the pool with
/// kernels and must not block. An error ends the run, as a panic does.
///
/// Like a [kernel](DeviceKernel), it may rely on the accesses of its task if its author makes sure
/// that it is submitted with those alone.
pub struct HostFunction {
    function: Box<Called>,
    delivers: bool,
    computing: Option<Computing>,
}

/// What host functions that never block have in common if they take about equally long: their type,
/// and how many steps they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Computing {
    pub(crate) of: TypeId,
    pub(crate) steps: u64,
}

type Called = dyn FnOnce(&[BoundMemory<'_>]) -> Result<(), TaskError> + Send;

impl HostFunction {
    /// A closure that is called once, with what each access of its task is bound to, in order.
    #[must_use]
    pub fn new(
        function: impl FnOnce(&[BoundMemory<'_>]) -> Result<(), TaskError> + Send + 'static,
    ) -> Self {
        Self { function: Box::new(function), delivers: false, computing: None }
    }

    /// A closure that computes and must not block, in about so many steps: called as
    /// [`new`](Self::new) says, but where kernels are, on the pool; if those of its type with as
    /// many steps have been over in some microseconds lately, on the node's own thread, since waking
    /// another takes longer.
    #[must_use]
    pub fn computing<F>(steps: u64, function: F) -> Self
    where
        F: FnOnce(&[BoundMemory<'_>]) -> Result<(), TaskError> + Send + 'static,
    {
        let computing = Some(Computing { of: TypeId::of::<F>(), steps });
        Self { function: Box::new(function), delivers: false, computing }
    }

    /// A closure that copies something out for the program, which may wait for it, and does nothing
    /// else: called as [`new`](Self::new) says, and in a [dry run](crate::Run::dry) with zeroes.
    #[must_use]
    pub fn delivering(
        function: impl FnOnce(&[BoundMemory<'_>]) -> Result<(), TaskError> + Send + 'static,
    ) -> Self {
        Self { function: Box::new(function), delivers: true, computing: None }
    }

    /// Whether the program may wait for it.
    pub(crate) fn delivers(&self) -> bool {
        self.delivers
    }

    /// What it has in common with others, if it never blocks.
    pub(crate) fn is_computing(&self) -> Option<Computing> {
        self.computing
    }

    /// Calls it.
    ///
    /// # Safety
    /// `memory` is what each access of the task that it is submitted with is bound to, in order.
    ///
    /// # Errors
    /// What it returns.
    pub unsafe fn call(self, memory: &[BoundMemory<'_>]) -> Result<(), TaskError> {
        (self.function)(memory)
    }
}

impl fmt::Debug for HostFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostFunction")
    }
}

/// What the function of a split host task is called for.
#[derive(Debug)]
pub struct HostCall {
    /// The items of the index space that it runs.
    pub chunk: Box3,
    /// The node that it runs on.
    pub node: NodeId,
    /// Nodes of the run.
    pub nodes: usize,
    /// The way to the other nodes, if the task is collective.
    pub collective: Option<GroupCommunicator>,
}

/// The function of a host task that is split: called once per chunk, from several threads at a
/// time if a node has several. Otherwise as a [`HostFunction`].
#[derive(Clone)]
pub struct HostKernel {
    function: Arc<CalledPerChunk>,
    computing: Option<Computing>,
}

type CalledPerChunk = dyn Fn(HostCall, &[BoundMemory<'_>]) -> Result<(), TaskError> + Send + Sync;

impl HostKernel {
    /// A closure that is called with a chunk, and with what each access of its task is bound to
    /// for that, in order.
    #[must_use]
    pub fn new(
        function: impl Fn(HostCall, &[BoundMemory<'_>]) -> Result<(), TaskError> + Send + Sync + 'static,
    ) -> Self {
        Self { function: Arc::new(function), computing: None }
    }

    /// A closure that computes and must not block, in about so many steps per chunk: as
    /// [`HostFunction::computing`].
    #[must_use]
    pub fn computing<F>(steps: u64, function: F) -> Self
    where
        F: Fn(HostCall, &[BoundMemory<'_>]) -> Result<(), TaskError> + Send + Sync + 'static,
    {
        let computing = Some(Computing { of: TypeId::of::<F>(), steps });
        Self { function: Arc::new(function), computing }
    }

    /// Whether it never blocks.
    pub(crate) fn is_computing(&self) -> bool {
        self.computing.is_some()
    }

    /// The call for one chunk.
    #[must_use]
    pub fn on(&self, call: HostCall) -> HostFunction {
        let Self { function, computing } = self.clone();
        let function = HostFunction::new(move |memory| function(call, memory));
        HostFunction { computing, ..function }
    }
}

impl fmt::Debug for HostKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostKernel")
    }
}

/// What a task carries besides its record in the graphs.
pub enum Payload {
    /// The kernel of a task of `Work::Device`.
    Kernel(Arc<dyn DeviceKernel>),
    /// For `Work::HostOnce`, `Work::Fence` and `Work::Combine`; of the last two it must not block.
    Host(HostFunction),
    /// The function of a task of `Work::HostSplit`.
    HostSplit(HostKernel),
}

/// A buffer's initial contents: all elements, row-major, in memory that the
/// user's side has handed over. Where devices work in the host's memory, it becomes the buffer's,
/// and is read and written in place; otherwise it is read. Given back when the buffer has ended.
pub struct HostData {
    base: BasePtr,
    bytes: u64,
    /// A hash of them, if they have been looked at.
    contents: Option<u64>,
    owner: Box<dyn Any + Send>,
}

impl HostData {
    /// The elements of a list, where they are.
    #[must_use]
    pub fn new<T: bytemuck::Pod + Send>(mut elements: Vec<T>) -> Self {
        let contents: &mut [u8] = bytemuck::cast_slice_mut(&mut elements);
        let (base, bytes) = (BasePtr::of_mut_slice(contents), contents.len() as u64);
        // SAFETY: what a list holds stays where it is while the list is kept and not touched.
        unsafe { Self::of_raw(base, bytes, elements) }
    }

    /// The `bytes` bytes from `base` on, which `owner` keeps.
    ///
    /// # Safety
    /// Until `owner` is dropped they are initialised, valid to read and write, and touched by
    /// nobody else.
    #[must_use]
    pub unsafe fn of_raw(base: BasePtr, bytes: u64, owner: impl Any + Send) -> Self {
        Self { base, bytes, contents: None, owner: Box::new(owner) }
    }

    /// Looks at all of the contents, so that nodes can tell each other whether they have the same.
    /// Only what both of two neighbours have looked at is compared. 0.13 ns per byte.
    pub fn look_at_contents(&mut self) {
        let length = usize::try_from(self.bytes).expect("it is in memory");
        // SAFETY: `of_raw` was promised that they are initialised and nobody else's for as long
        // as there is an owner.
        let contents = unsafe { std::slice::from_raw_parts(self.base.as_ptr(), length) };
        let mut hash = StreamHash::default();
        hash.bytes(contents);
        self.contents = Some(hash.value());
    }

    /// Their number of bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A hash of them, if they have been looked at.
    pub(crate) fn contents(&self) -> Option<u64> {
        self.contents
    }

    /// Whether elements of this alignment may lie there.
    pub(crate) fn is_aligned(&self, alignment: u64) -> bool {
        (self.base.as_ptr() as u64).is_multiple_of(alignment.max(1))
    }

    /// Where it starts, its length in bytes, and what keeps it.
    pub(crate) fn into_parts(self) -> (BasePtr, u64, Box<dyn Any + Send>) {
        let Self { base, bytes, owner, .. } = self;
        (base, bytes, owner)
    }
}

impl fmt::Debug for HostData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostData({} bytes)", self.bytes)
    }
}
