//! Fences: the contents of a buffer, or the value of a host object, as the program has them at one
//! point of its order, delivered to the user's thread. Owns what is delivered, not how.

use std::fmt;
use std::future::Future;
use std::ops::Index;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use celerity_executor::{HostFunction, NodeFrontend};
use celerity_kernel::{Bounds, Layout, PartView, WholeView};
use celerity_regions::{Box3, Subrange};

use crate::access::{AccessedElements, rows_of};
use crate::arrival::{Arrival, promise};
use crate::buffer::Element;
use crate::error::{Error, Result};
use crate::range::{bounds, subrange, to_bounds};

mod awaited;
mod object;

pub use awaited::Awaited;
pub use object::ObjectFence;

/// A copy of a part of a buffer, taken at a fence.
///
/// Indexed by buffer coordinates, as are the rows, columns and ranges of [`as_view`](Self::as_view).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot<T, const D: usize> {
    elements: Vec<T>,
    part: Subrange<D>,
}

impl<T, const D: usize> Snapshot<T, D> {
    /// The part of the buffer that this is a copy of.
    #[must_use]
    pub fn part(&self) -> Subrange<D> {
        self.part
    }

    /// All elements, row-major: the first of them is at the offset of [`part`](Self::part).
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        &self.elements
    }

    /// All elements, by the buffer's indices.
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// let last = celerity::run(|queue| {
    ///     let a = queue.buffer_from([3, 4], (0..12).collect::<Vec<u32>>())?;
    ///     let below = Subrange { offset: [1, 0], range: [2, 4] };
    ///     let below = queue.fence_part(&a, below)?.wait()?;
    ///     assert_eq!(below.as_view().along(0, [0, 3])[2], below[[2, 3]]);
    ///     Ok(below.as_view().row([2])[1..4].to_vec())
    /// })?;
    /// assert_eq!(last, [9, 10, 11]);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    #[must_use]
    #[allow(unsafe_code)]
    pub fn as_view(&self) -> PartView<'_, T, D> {
        let part: Bounds<D> = to_bounds(self.part);
        // SAFETY: `elements` holds the part, row-major, and is borrowed as long as the view.
        unsafe { PartView::new(self.elements.as_ptr(), Layout::row_major(&part), part) }
    }

    /// All elements of the snapshot as a vector: row-major, the last index fastest. Copies nothing.
    #[must_use]
    pub fn into_vec(self) -> Vec<T> {
        self.elements
    }

    /// The element at `index`, or `None` outside of the part.
    #[must_use]
    pub fn get(&self, index: [usize; D]) -> Option<&T> {
        self.as_view().get(index)
    }

    /// All rows along the fastest dimension, in order.
    #[must_use]
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[T]> {
        WholeView::new(&self.elements, self.part.range).rows()
    }
}

impl<T, const D: usize> Index<[usize; D]> for Snapshot<T, D> {
    type Output = T;

    /// # Panics
    /// If `index` is outside of the part.
    fn index(&self, index: [usize; D]) -> &T {
        match self.get(index) {
            Some(element) => element,
            None => panic!("index {index:?} is outside of the snapshot of {}", self.part),
        }
    }
}

impl<T> Index<usize> for Snapshot<T, 1> {
    type Output = T;

    /// # Panics
    /// If `index` is outside of the part.
    fn index(&self, index: usize) -> &T {
        &self[[index]]
    }
}

/// A snapshot to come: wait for it, or await it.
///
/// If the run fails before the fence is reached, both return the run's error.
#[must_use = "a fence delivers its snapshot only to who waits"]
pub struct Fence<T, const D: usize> {
    arrival: Arrival<Copied<T>>,
    part: Subrange<D>,
    buffer: String,
}

/// All elements, unless there was no memory for them.
type Copied<T> = Option<Vec<T>>;

impl<T: Element, const D: usize> Fence<T, D> {
    /// A fence that is already there.
    pub(crate) fn ready(
        frontend: &Arc<NodeFrontend>,
        buffer: String,
        part: Subrange<D>,
        elements: Vec<T>,
    ) -> Self {
        Self { arrival: Arrival::ready(frontend, Some(elements)), part, buffer }
    }

    /// A fence, and the function that fulfils it with a copy of `part`, a box of
    /// the buffer's dimensions.
    #[allow(unsafe_code)]
    pub(crate) fn pending(
        frontend: &Arc<NodeFrontend>,
        buffer: String,
        part: &Box3,
    ) -> (Self, HostFunction) {
        let (promise, arrival) = promise(frontend);
        let bounds = bounds(part);
        let copy = HostFunction::delivering(move |memory| {
            let mut elements = Vec::new();
            // A copy may be as large as all that the process has.
            let copied = elements.try_reserve_exact(bounds.volume()).is_ok().then(|| {
                // SAFETY: this is called as `HostFunction::call` asks, and `Queue::ask_part`
                // submits it with one access, which reads a buffer of `T` and `D`.
                unsafe { copy_out(memory, &bounds, &mut elements) };
                elements
            });
            promise.keep(copied);
            Ok(())
        });
        (Self { arrival, part: subrange(&bounds), buffer }, copy)
    }

    /// Blocks until the snapshot is there.
    ///
    /// # Errors
    /// [`Error::FenceMemory`] if there is no memory for the copy; the run goes on.
    /// The run's first error if it fails before the fence is reached;
    /// [`RunError::Misplaced`](crate::RunError::Misplaced) in a kernel, a range mapper, or a destructor that the runtime runs.
    pub fn wait(mut self) -> Result<Snapshot<T, D>> {
        let copied = self.arrival.wait(|| format!("wait for fence on {}", self.buffer))?;
        self.snapshot(copied)
    }

    fn snapshot(&self, copied: Option<Copied<T>>) -> Result<Snapshot<T, D>> {
        match copied {
            Some(Some(elements)) => Ok(Snapshot { elements, part: self.part }),
            Some(None) => Err(self.no_memory()),
            None => Err(Error::FenceAbandoned { buffer: self.buffer.clone() }),
        }
    }

    fn no_memory(&self) -> Error {
        let elements = self.part.range.iter().fold(1, |all: usize, &size| all.saturating_mul(size));
        Error::FenceMemory {
            buffer: self.buffer.clone(),
            part: self.part.to_string(),
            bytes: elements.saturating_mul(size_of::<T>()),
        }
    }
}

impl<T: Element, const D: usize> Future for Fence<T, D> {
    type Output = Result<Snapshot<T, D>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let arrived = self.arrival.poll(context);
        arrived.map(|copied| self.snapshot(copied?))
    }
}

impl<T, const D: usize> fmt::Debug for Fence<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fence").field("buffer", &self.buffer).field("part", &self.part).finish()
    }
}

/// # Safety
/// `memory` is what the one access of a task is bound to that reads a buffer of `D` dimensions,
/// with elements of type `T`.
#[allow(unsafe_code)]
unsafe fn copy_out<T: Element, const D: usize>(
    memory: &[celerity_executor::BoundMemory<'_>],
    part: &Bounds<D>,
    out: &mut Vec<T>,
) {
    let [memory] = memory else { unreachable!("a fence has one access, not {}", memory.len()) };
    // SAFETY: passed on.
    let elements: AccessedElements<'_, T, D> = unsafe { AccessedElements::new(memory) };
    elements.check_declared(part);
    // SAFETY: checked to be declared; the fence only reads.
    rows_of(part, |start, len| out.extend_from_slice(unsafe { elements.run(start, len) }));
}
