//! Buffer handles. A buffer is a name for elements; where they are, and whether
//! they are anywhere yet, is the runtime's business.

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use celerity_executor::{HostData, NodeFrontend};
use celerity_regions::Box3;
use celerity_tdag::{BufferId, NewBuffer};

use crate::error::{Error, Result};
use crate::log::LogLevel;
use crate::origin::Origin;
use crate::pending::Pending;
use crate::range::volume;
use crate::spares::SpareBuffers;

/// What a buffer can be made of: plain old data, any bit pattern of which is a
/// value, of at least one byte: numbers, arrays of them, and whatever is
/// [`Pod`](bytemuck::Pod).
///
/// [`PlainData`](trait@crate::PlainData) is the same. A struct of your own derives it:
///
/// ```
/// use celerity::PlainData;
///
/// #[derive(Clone, Copy, PlainData)]
/// #[repr(C)]
/// struct Body {
///     place: [f32; 3],
///     mass: f32,
/// }
///
/// let lightest = celerity::run(|queue| {
///     let bodies = vec![Body { place: [0.0; 3], mass: 2.0 }; 10];
///     let bodies = queue.buffer_from(10, bodies)?;
///     Ok(queue.fence(&bodies)?.wait()?[0].mass)
/// })?;
/// assert_eq!(lightest, 2.0);
/// # Ok::<(), celerity::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "buffers cannot have elements of type `{Self}`",
    label = "not plain old data",
    note = "elements are numbers, arrays of them, and structs with `#[repr(C)]` and \
            `#[derive(Clone, Copy, celerity::PlainData)]`; use `u8` for `bool`"
)]
pub trait Element: bytemuck::Pod + Send + Sync {}

impl<T: bytemuck::Pod + Send + Sync> Element for T {}

/// A virtual buffer of `D` (0 to 3) dimensions, row-major: the last dimension is
/// the fastest.
///
/// A handle: clones name the same buffer, and when the last one is dropped, the
/// runtime frees the memory as soon as the submitted tasks are through with it.
/// Only the parts of a buffer that tasks access ever take memory.
pub struct Buffer<T, const D: usize> {
    handle: Arc<BufferHandle>,
    name: Option<Arc<str>>,
    range: [usize; D],
    /// For tasks that are submitted by the buffer.
    log_level: LogLevel,
    elements: PhantomData<fn() -> T>,
}

/// Drops the buffer in the runtime with the last clone.
pub(crate) struct BufferHandle {
    /// Weak, so that a handle that leaves the run does not keep it alive.
    frontend: Weak<NodeFrontend>,
    id: BufferId,
    /// What the contents still have to be made of, if a task has reduced into the buffer.
    pending: Mutex<Option<Pending>>,
    /// What reductions into the buffer use again.
    spares: OnceLock<Arc<SpareBuffers<BufferHandle>>>,
}

impl<T: Element, const D: usize> Buffer<T, D> {
    pub(crate) fn new(
        (frontend, log_level): (&Arc<NodeFrontend>, LogLevel),
        range: [usize; D],
    ) -> Self {
        let new = description::<T, D>(range, false);
        let id = frontend.create_typed_buffer(new, type_name::<T>(), None);
        Self::from_id((frontend, log_level), id, range)
    }

    pub(crate) fn from_data(
        (frontend, log_level): (&Arc<NodeFrontend>, LogLevel),
        range: [usize; D],
        data: Vec<T>,
    ) -> Result<Self> {
        let expected = volume(range).unwrap_or(usize::MAX);
        if data.len() != expected {
            let actual = data.len();
            return Err(Error::HostDataLength { range: range.to_vec(), expected, actual });
        }
        let (new, data) = (description::<T, D>(range, true), HostData::new(data));
        let id = frontend.create_typed_buffer(new, type_name::<T>(), Some(data));
        Ok(Self::from_id((frontend, log_level), id, range))
    }

    fn from_id(
        (frontend, log_level): (&Arc<NodeFrontend>, LogLevel),
        id: BufferId,
        range: [usize; D],
    ) -> Self {
        let handle = Arc::new(BufferHandle::new(frontend, id));
        Self { handle, name: None, range, log_level, elements: PhantomData }
    }

    /// Names the buffer, for errors and graphs.
    #[must_use = "the returned handle carries the name"]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        if let Some(frontend) = self.handle.frontend.upgrade() {
            frontend.rename_buffer(self.handle.id, &name);
        }
        self.name = Some(name);
        self
    }
}

impl<T, const D: usize> Buffer<T, D> {
    /// The buffer's size in each dimension.
    #[must_use]
    pub fn range(&self) -> [usize; D] {
        self.range
    }

    /// The buffer's name, or its id if it has none.
    #[must_use]
    pub fn name(&self) -> String {
        self.name.as_deref().map_or_else(|| self.handle.id.to_string(), str::to_owned)
    }

    pub(crate) fn id(&self) -> BufferId {
        self.handle.id
    }

    pub(crate) fn handle(&self) -> &Arc<BufferHandle> {
        &self.handle
    }

    /// The node that the buffer is of.
    ///
    /// # Errors
    /// If its run has ended.
    pub(crate) fn frontend(&self) -> Result<Arc<NodeFrontend>> {
        let frontend = self.handle.frontend.upgrade();
        frontend.ok_or_else(|| Error::RunOver { buffer: self.name() })
    }

    /// Where a task comes from that the buffer submits.
    pub(crate) fn origin<'f>(
        &self,
        frontend: &'f Arc<NodeFrontend>,
        name: String,
        location: &'static Location<'static>,
    ) -> Origin<'f> {
        let (name, location) = (name.into(), location.into());
        Origin { frontend, log_level: self.log_level, name, location }
    }

    pub(crate) fn extent(&self) -> Box3 {
        Box3::from_range(self.range)
    }

    /// Whether the buffer was made for this node of this run.
    pub(crate) fn belongs_to(&self, frontend: &Arc<NodeFrontend>) -> bool {
        std::ptr::eq(self.handle.frontend.as_ptr(), Arc::as_ptr(frontend))
    }
}

impl<T, const D: usize> Clone for Buffer<T, D> {
    fn clone(&self) -> Self {
        Self {
            handle: self.handle.clone(),
            name: self.name.clone(),
            range: self.range,
            log_level: self.log_level,
            elements: PhantomData,
        }
    }
}

impl<T, const D: usize> fmt::Debug for Buffer<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.handle.id)?;
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        write!(f, " {:?}", self.range)
    }
}

impl BufferHandle {
    pub(crate) fn new(frontend: &Arc<NodeFrontend>, id: BufferId) -> Self {
        let frontend = Arc::downgrade(frontend);
        Self { frontend, id, pending: Mutex::default(), spares: OnceLock::new() }
    }

    pub(crate) fn id(&self) -> BufferId {
        self.id
    }

    /// What reductions into the buffer use again.
    pub(crate) fn spares(&self) -> &Arc<SpareBuffers<Self>> {
        self.spares.get_or_init(Arc::default)
    }

    /// Whether the contents still have to be made.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending().is_some()
    }

    /// Lets the contents be made: whoever submits a task after this finds them.
    ///
    /// # Errors
    /// As submitting a task.
    pub(crate) fn settle(&self, frontend: &Arc<NodeFrontend>) -> Result<()> {
        // Kept until that has been submitted, or another thread would find nothing to do and go
        // ahead.
        let mut pending = self.pending();
        if pending.is_some() {
            // Who may not submit leaves them for whoever may: without them, contents would be those of before.
            frontend.check_caller()?;
        }
        pending.take().map_or(Ok(()), |pending| pending.submit(frontend))
    }

    /// Says what the contents have to be made of; forgets what was said before.
    pub(crate) fn set_pending(&self, pending: Option<Pending>) {
        let before = std::mem::replace(&mut *self.pending(), pending);
        // Ends a buffer of partial results, which must not wait for this one.
        drop(before);
    }

    fn pending(&self) -> MutexGuard<'_, Option<Pending>> {
        // Whoever panicked in there has taken what was pending.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for BufferHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id)
    }
}

impl Drop for BufferHandle {
    fn drop(&mut self) {
        if let Some(frontend) = self.frontend.upgrade() {
            frontend.drop_buffer(self.id);
        }
    }
}

/// Does not compile for elements without bytes.
pub(crate) const fn check_element<T>() {
    assert!(size_of::<T>() > 0, "a buffer's elements have at least one byte");
}

fn description<T: Element, const D: usize>(range: [usize; D], host_initialized: bool) -> NewBuffer {
    NewBuffer {
        name: None,
        dims: D as u8,
        extent: Box3::from_range(range),
        elem_size: size_of::<T>() as u64,
        elem_align: align_of::<T>() as u64,
        host_initialized,
    }
}
