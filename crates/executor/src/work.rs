//! What users give the executor to run: kernels and host functions, with the
//! memory that one chunk of them may touch. The graphs know none of this.
#![allow(unsafe_code)]

use std::any::Any;
use std::borrow::Cow;
use std::fmt;

use celerity_regions::{Box3, Region};
use celerity_tdag::StreamHash;

use crate::code::DeviceCode;
use crate::error::TaskError;
use crate::memory::BasePtr;

/// Live memory for one access of a chunk.
///
/// Whoever [makes](Self::new) one promises, for as long as `'a` lasts:
/// * [`base`](Self::base) points to `extent.volume()` initialised elements of the access's
///   buffer, row-major over [`extent`](Self::extent), aligned for the buffer's element type, in
///   memory of the device that runs the chunk;
/// * [`region`](Self::region) is inside `extent`, and its elements are current where the access
///   reads;
/// * nobody else writes `region`, and nobody else reads it either if the access writes, not
///   through another access of the same task either.
///
/// Elements outside of `region` must not be touched.
///
/// Safe code cannot make one, so a safe function that gets one can rely on it:
///
/// ```compile_fail,E0133
/// # use celerity_executor::BoundMemory;
/// # use celerity_regions::{Box3, Region};
/// let (extent, region) = (Box3::from_range([8]), Region::from(Box3::from_range([8])));
/// let anywhere = BoundMemory::new(std::ptr::without_provenance_mut(8), extent, &region);
/// ```
///
/// nor call a kernel with what it has got for another one:
///
/// ```compile_fail,E0133
/// # use celerity_executor::{BoundMemory, DeviceKernel};
/// # use celerity_regions::Box3;
/// fn misuse(other: &dyn DeviceKernel, chunk: &Box3, memory: &[BoundMemory<'_>]) {
///     other.run(chunk, memory);
/// }
/// ```
///
/// That accesses of a task share nothing that one of them writes is seen at submission
/// ([`ConflictingAccesses`](celerity_tdag::DeclareError::ConflictingAccesses)), and where a
/// user's mapper says something else of a chunk than of the whole index space, before the chunk
/// is launched ([`SharedElements`](celerity_idag::Diagnostic::SharedElements)).
#[derive(Clone, Copy, Debug)]
pub struct BoundMemory<'a> {
    base: *mut u8,
    extent: Box3,
    region: &'a Region,
}

impl<'a> BoundMemory<'a> {
    /// The memory of an allocation of `extent` that begins at `base`, of which `region` may be
    /// touched.
    ///
    /// # Safety
    /// For as long as `'a` lasts it is as [the type](Self) says.
    #[must_use]
    pub const unsafe fn new(base: *mut u8, extent: Box3, region: &'a Region) -> Self {
        Self { base, extent, region }
    }

    /// What an access is bound to that touches nothing.
    #[must_use]
    pub fn of_nothing(region: &'a Region) -> Self {
        assert!(region.is_empty(), "{region} is not nothing");
        Self { base: BasePtr::dangling().as_ptr(), extent: Box3::EMPTY, region }
    }

    /// The first element of the extent; dangling if the extent is empty.
    #[inline]
    #[must_use]
    pub const fn base(&self) -> *mut u8 {
        self.base
    }

    /// The elements that the allocation holds, in buffer coordinates.
    #[inline]
    #[must_use]
    pub const fn extent(&self) -> &Box3 {
        &self.extent
    }

    /// The elements that the chunk may touch: inside of the extent.
    #[inline]
    #[must_use]
    pub const fn region(&self) -> &'a Region {
        self.region
    }
}

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
}

/// A host task's function, or what copies a fence's snapshot out.
///
/// A host task may block: on input and output, on other threads, on a fence
/// that was submitted before. It runs outside of the pool, so `rayon` calls
/// inside spread over `rayon`'s global one. At most four of a node run at a
/// time, so none may wait for a later one. A fence's copy shares the pool with
/// kernels and must not block. An error ends the run, as a panic does.
///
/// Like a [kernel](DeviceKernel), it may rely on the accesses of its task if its author makes sure
/// that it is submitted with those alone.
pub struct HostFunction(Box<Called>);

type Called = dyn FnOnce(&[BoundMemory<'_>]) -> Result<(), TaskError> + Send;

impl HostFunction {
    /// A closure that is called once, with what each access of its task is bound to, in order.
    #[must_use]
    pub fn new(
        function: impl FnOnce(&[BoundMemory<'_>]) -> Result<(), TaskError> + Send + 'static,
    ) -> Self {
        Self(Box::new(function))
    }

    /// Calls it.
    ///
    /// # Safety
    /// `memory` is what each access of the task that it is submitted with is bound to, in order.
    ///
    /// # Errors
    /// What it returns.
    pub unsafe fn call(self, memory: &[BoundMemory<'_>]) -> Result<(), TaskError> {
        (self.0)(memory)
    }
}

impl fmt::Debug for HostFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostFunction")
    }
}

/// What a task carries besides its record in the graphs.
pub enum Payload {
    /// For `Work::Device`.
    Kernel(std::sync::Arc<dyn DeviceKernel>),
    /// For `Work::HostOnce` and `Work::Fence`.
    Host(HostFunction),
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
