//! Host objects: values of any type that live on a node, beside its buffers, and that host tasks
//! get at in an order that the runtime keeps (IJPP 2022, §4.2). Owns the value and the handle;
//! what orders tasks is the business of the graphs.

mod cell;

use std::fmt;
use std::sync::{Arc, Weak};

use celerity_executor::NodeFrontend;
use celerity_tdag::{ObjectId, SideEffectOrder};

use crate::error::Error;

pub(crate) use cell::{Borrowed, BorrowedMut, ObjectCell};

/// A value that lives on the host, one on each node, for host tasks to use: a file, a connection,
/// a log, a generator of random numbers.
///
/// Tasks name it in the tuple of their accesses, with an order, and there is no other way to reach
/// it. So the runtime knows who uses it, and keeps them apart without a barrier (IJPP 2022, §4.2):
///
/// | access | the task gets | against other tasks with the object, on the same node |
/// | --- | --- | --- |
/// | [`sequential`](Self::sequential) | `&mut T` | in the order of submission |
/// | [`exclusive`](Self::exclusive) | `&mut T` | in any order, never at the same time |
/// | [`relaxed`](Self::relaxed) | `&T`, where `T: Sync` | in any order, also at the same time |
///
/// Of two tasks the stricter order decides: a relaxed one waits for the sequential ones before it,
/// and never meets an exclusive one. Parts of one task on a node take turns, in ascending order,
/// unless they are relaxed. In a [collective](crate::HostTaskBuilder::collective) task exclusive means
/// sequential, so that all nodes choose the same order. What is an order only, and holds no value, is
/// `queue.host_object(())`.
///
/// ```
/// use celerity::prelude::*;
///
/// let log = celerity::run(|queue| {
///     let log = queue.host_object(Vec::new());
///     for step in 0..3 {
///         queue.host_task("note").once(log.sequential(), move |log| log.push(step))?;
///     }
///     // On node 0, where the tasks have run; empty on others.
///     log.take(queue)
/// })?;
/// assert_eq!(log, [0, 1, 2]);
/// # Ok::<(), celerity::Error>(())
/// ```
///
/// **Each node has a value of its own**, from its own call of
/// [`host_object`](crate::Queue::host_object), and orders the tasks that run on it. Every node must make
/// the same objects in the same order, with values as it likes. Tasks on different nodes are not
/// ordered by an object, as nothing of it is shared: let them write and read a buffer where they
/// must be, or put a [`barrier`](crate::Queue::barrier) between them. What IJPP 2022 (§7) leaves to
/// later, side effects on what all nodes share, such as one file, is declined for that reason.
///
/// **A handle**: clones name the same object. With the last handle the object ends, and the value
/// is dropped when the last task with it has run. [`take`](Self::take) gives the value back,
/// [`capture`](Self::capture) and [`Queue::fence_object`](crate::Queue::fence_object) a clone of it. What
/// the paper spells `host_object<T&>`, an object that the program also reaches by itself, is an
/// `Arc` in the object: it says what may be shared and how.
///
/// ```compile_fail
/// # use celerity::prelude::*;
/// // What is not `Send` cannot go to the threads that run host tasks.
/// celerity::run(|queue| Ok(drop(queue.host_object(std::rc::Rc::new(0)))));
/// ```
///
/// ```compile_fail
/// # use celerity::prelude::*;
/// // Several threads may see what is relaxed, and a `Cell` is no place for that.
/// celerity::run(|queue| {
///     let cell = queue.host_object(std::cell::Cell::new(0));
///     queue.host_task("look").once(cell.relaxed(), |cell| drop(cell.get()))?;
///     Ok(())
/// });
/// ```
///
/// ```compile_fail
/// # use celerity::prelude::*;
/// // Kernels run on devices, where no host object is.
/// celerity::run(|queue| {
///     let log = queue.host_object(Vec::<usize>::new());
///     queue.task("step").parallel_for(10, log.sequential(), |item, log| log.push(item[0]))?;
///     Ok(())
/// });
/// ```
pub struct HostObject<T> {
    handle: Arc<ObjectHandle>,
    name: Option<Arc<str>>,
    cell: Arc<ObjectCell<T>>,
}

/// Ends the object in the runtime with the last clone.
struct ObjectHandle {
    /// Weak, so that a handle that leaves the run does not keep it alive.
    frontend: Weak<NodeFrontend>,
    id: ObjectId,
}

/// A side effect on a host object: what [`HostObject::sequential`] and its siblings return, for
/// the tuple of a host task. `O` is the order, which says what the task gets.
#[must_use = "an access does nothing until a task is submitted with it"]
pub struct SideEffect<T, O> {
    pub(crate) object: HostObject<T>,
    order: O,
}

/// In the order of submission; the task gets `&mut T`.
#[derive(Clone, Copy, Debug)]
pub struct Sequential;

/// In any order, but never at the same time as another; the task gets `&mut T`.
#[derive(Clone, Copy, Debug)]
pub struct Exclusive;

/// In any order, at the same time as other relaxed ones; the task gets `&T`.
#[derive(Clone, Copy, Debug)]
pub struct Relaxed;

/// The order of a [`SideEffect`]; sealed.
pub trait Order: sealed::Sealed {
    #[doc(hidden)]
    const ORDER: SideEffectOrder;
}

impl Order for Sequential {
    const ORDER: SideEffectOrder = SideEffectOrder::Sequential;
}

impl Order for Exclusive {
    const ORDER: SideEffectOrder = SideEffectOrder::Exclusive;
}

impl Order for Relaxed {
    const ORDER: SideEffectOrder = SideEffectOrder::Relaxed;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Sequential {}
    impl Sealed for super::Exclusive {}
    impl Sealed for super::Relaxed {}
}

impl<T: Send + 'static> HostObject<T> {
    pub(crate) fn new(frontend: &Arc<NodeFrontend>, value: T) -> Self {
        let id = frontend.create_object(None);
        let handle = Arc::new(ObjectHandle { frontend: Arc::downgrade(frontend), id });
        Self { handle, name: None, cell: Arc::new(ObjectCell::new(value)) }
    }

    /// Names the object, for errors.
    #[must_use = "the returned handle carries the name"]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        if let Some(frontend) = self.handle.frontend.upgrade() {
            frontend.rename_object(self.handle.id, &name);
        }
        self.name = Some(name);
        self
    }

    /// A side effect in the order of submission: the task sees what all earlier tasks with the
    /// object have done to it on its node, and later ones wait for it. The order to use unless a
    /// measurement asks for another.
    pub fn sequential(&self) -> SideEffect<T, Sequential> {
        SideEffect { object: self.clone(), order: Sequential }
    }

    /// A side effect that may change places with others between two sequential ones, but never runs
    /// at the same time as one. Of the tasks that wait for nothing else, a node starts as many at
    /// once as do not share an object (IJPP 2022, §4.4).
    pub fn exclusive(&self) -> SideEffect<T, Exclusive> {
        SideEffect { object: self.clone(), order: Exclusive }
    }

    /// A side effect that may change places with others between two sequential ones, and runs at
    /// the same time as other relaxed ones: for what does its own locking, or is only looked at.
    pub fn relaxed(&self) -> SideEffect<T, Relaxed>
    where
        T: Sync,
    {
        SideEffect { object: self.clone(), order: Relaxed }
    }
}

impl<T> HostObject<T> {
    /// The object's name, or its id if it has none.
    #[must_use]
    pub fn name(&self) -> String {
        self.name.as_deref().map_or_else(|| self.handle.id.to_string(), str::to_owned)
    }

    pub(crate) fn id(&self) -> ObjectId {
        self.handle.id
    }

    pub(crate) fn cell(&self) -> &Arc<ObjectCell<T>> {
        &self.cell
    }

    /// Whether the object was made for this node of this run.
    pub(crate) fn belongs_to(&self, frontend: &Arc<NodeFrontend>) -> bool {
        std::ptr::eq(self.handle.frontend.as_ptr(), Arc::as_ptr(frontend))
    }

    /// What is wrong with a task of another run that has a side effect on it.
    pub(crate) fn foreign(&self, task: String, order: SideEffectOrder) -> Error {
        let (object, order) = (self.name(), order.to_string());
        Error::ForeignObject { task, object, order }
    }
}

impl<T> Clone for HostObject<T> {
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone(), name: self.name.clone(), cell: self.cell.clone() }
    }
}

impl<T> fmt::Debug for HostObject<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.handle.id)?;
        self.name.iter().try_for_each(|name| write!(f, " {name:?}"))
    }
}

impl<T, O: fmt::Debug> fmt::Debug for SideEffect<T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} side effect on {:?}", self.order, self.object)
    }
}

impl Drop for ObjectHandle {
    fn drop(&mut self) {
        if let Some(frontend) = self.frontend.upgrade() {
            frontend.end_object(self.id);
        }
    }
}
