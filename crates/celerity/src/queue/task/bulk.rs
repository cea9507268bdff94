//! What buffers can be told without a kernel: to take a value, or the elements of another buffer.
#![allow(unsafe_code)]

use std::panic::Location;
use std::sync::Arc;

use celerity_executor::{DeviceKernel, Payload};
use celerity_regions::Subrange;
use celerity_tdag::TaskId;

use crate::buffer::{Buffer, Element};
use crate::error::{Error, Result};
use crate::launch::{Bulk, BulkKernel};
use crate::mapper::{Side, one_to_one, per_dimension};
use crate::queue::{LoweredTask, TaskBuilder};

impl<T: Element, const D: usize> Buffer<T, D> {
    /// Submits a task that sets all elements to `value`, on all devices of all nodes.
    ///
    /// It is a task like one of the program's own: every node must submit it, and what was there
    /// before is forgotten. A buffer without elements needs no task. On GPUs, elements have 1,024
    /// bytes at most.
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// let contents = Config::default().nodes(2).run(|queue| {
    ///     let u = queue.buffer::<f32, 2>([2, 3]);
    ///     u.fill(1.5)?;
    ///     Ok(queue.fence(&u)?.wait()?.into_vec())
    /// })?;
    /// assert_eq!(contents, [1.5; 6]);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::RunOver`] if the run has ended that the buffer is of;
    /// [`RunError::Misplaced`](crate::RunError::Misplaced) in a task; otherwise as
    /// [`TaskBuilder::launch`].
    #[track_caller]
    pub fn fill(&self, value: T) -> Result<TaskId> {
        self.fill_at(Subrange::whole(self.range()), value, Location::caller())
    }

    /// Submits a task that sets all elements of `part` to `value`. The others stay as they are. A
    /// part without elements needs no task. Otherwise as [`fill`](Self::fill).
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// let contents = celerity::run(|queue| {
    ///     let u = queue.buffer_from(5, vec![1; 5])?;
    ///     u.fill_part(Subrange::new([1], [3]), 7)?;
    ///     Ok(queue.fence(&u)?.wait()?.into_vec())
    /// })?;
    /// assert_eq!(contents, [1, 7, 7, 7, 1]);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`fill`](Self::fill); [`DeclareError::OutOfBounds`](crate::DeclareError::OutOfBounds) if the
    /// part leaves the buffer.
    #[track_caller]
    pub fn fill_part(&self, part: Subrange<D>, value: T) -> Result<TaskId> {
        self.fill_at(part, value, Location::caller())
    }

    /// Submits a task that copies all elements of `from`, a buffer of the same size, on all devices
    /// of all nodes: each copies its share, and what it does not have is sent.
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// let contents = celerity::run(|queue| {
    ///     let u = queue.buffer_from([2, 2], vec![1, 2, 3, 4])?;
    ///     let before = queue.buffer::<i32, 2>(u.range()).named("before");
    ///     before.copy_from(&u)?;
    ///     u.fill(0)?;
    ///     Ok(queue.fence(&before)?.wait()?.into_vec())
    /// })?;
    /// assert_eq!(contents, [1, 2, 3, 4]);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`fill`](Self::fill); [`Error::CopyRange`] if the sizes differ;
    /// [`DeclareError::UninitializedRead`](crate::DeclareError::UninitializedRead) if nothing has
    /// written some of what is copied;
    /// [`DeclareError::ConflictingAccesses`](crate::DeclareError::ConflictingAccesses) if it is this
    /// buffer.
    #[track_caller]
    pub fn copy_from(&self, from: &Self) -> Result<TaskId> {
        let location = Location::caller();
        if self.range() != from.range() {
            let frontend = self.frontend()?;
            let task = self.origin(&frontend, copy_name(self, from), location).describe();
            let (to, from) = (self.sized(), from.sized());
            return Err(Error::CopyRange { task, from, to });
        }
        self.copy_at([0; D], from, Subrange::whole(from.range()), location)
    }

    /// Submits a task that copies `part` of `from`, so that its first element comes to `offset` in
    /// this buffer. The other elements of this buffer stay as they are. Otherwise as
    /// [`copy_from`](Self::copy_from), but that `from` may be this buffer, if source and
    /// destination share nothing.
    ///
    /// ```
    /// use celerity::prelude::*;
    ///
    /// // The last two rows, behind each other.
    /// let contents = celerity::run(|queue| {
    ///     let u = queue.buffer_from([3, 2], vec![1, 2, 3, 4, 5, 6])?;
    ///     let history = queue.buffer_from([4, 2], vec![0; 8])?;
    ///     history.copy_part(&u, Subrange::new([1, 0], [2, 2]), [2, 0])?;
    ///     history.copy_part(&history, Subrange::new([2, 0], [1, 2]), [0, 0])?;
    ///     Ok(queue.fence(&history)?.wait()?.into_vec())
    /// })?;
    /// assert_eq!(contents, [3, 4, 0, 0, 3, 4, 5, 6]);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`copy_from`](Self::copy_from), but that sizes may differ; [`Error::CopyPart`] if the part
    /// leaves `from`; [`DeclareError::OutOfBounds`](crate::DeclareError::OutOfBounds) if it leaves
    /// this buffer.
    #[track_caller]
    pub fn copy_part(&self, from: &Self, part: Subrange<D>, offset: [usize; D]) -> Result<TaskId> {
        self.copy_at(offset, from, part, Location::caller())
    }

    fn fill_at(
        &self,
        part: Subrange<D>,
        value: T,
        location: &'static Location<'static>,
    ) -> Result<TaskId> {
        let frontend = self.frontend()?;
        let name = format!("fill {}", self.name());
        let task = TaskBuilder::new(self.origin(&frontend, name, location));
        let access = self.write(one_to_one());
        let set = move |_, elements: &mut [T]| elements.fill(value);
        let (task, host) = task.offset(part.offset).lower_rows(part.range, access, set)?;
        let value = bytemuck::bytes_of(&value).into();
        submit(task, host, Bulk::Fill { value }, D)
    }

    fn copy_at(
        &self,
        offset: [usize; D],
        from: &Self,
        part: Subrange<D>,
        location: &'static Location<'static>,
    ) -> Result<TaskId> {
        let frontend = self.frontend()?;
        let task = self.origin(&frontend, copy_name(self, from), location);
        let last = |dim: usize| part.offset[dim].checked_add(part.range[dim]);
        if (0..D).any(|dim| last(dim).is_none_or(|last| last > from.range()[dim])) {
            let (task, part) = (task.describe(), part.to_string());
            return Err(Error::CopyPart { task, from: from.sized(), part });
        }
        let task = TaskBuilder::new(task).offset(offset);
        let distance: [usize; D] =
            std::array::from_fn(|dim| part.offset[dim].wrapping_sub(offset[dim]));
        let sides = std::array::from_fn(|dim| Side::along(dim).offset(distance[dim] as isize));
        let accesses = (self.write(one_to_one()), from.read(per_dimension(sides)));
        let (task, host) = task.lower_rows(part.range, accesses, move |row, (to, from)| {
            let start = row.start();
            let start = std::array::from_fn(|dim| start[dim].wrapping_add(distance[dim]));
            to.copy_from_slice(from.run(start, row.len()));
        })?;
        let mut wide = [0; 3];
        wide.iter_mut().zip(distance).for_each(|(wide, distance)| *wide = distance as u64);
        submit(task, host, Bulk::Copy { bytes: size_of::<T>(), distance: wide }, D)
    }

    /// Name and size, for errors.
    fn sized(&self) -> String {
        format!("\"{}\" of {:?}", self.name(), self.range())
    }
}

fn copy_name<T: Element, const D: usize>(to: &Buffer<T, D>, from: &Buffer<T, D>) -> String {
    format!("copy {} to {}", from.name(), to.name())
}

fn submit(
    task: LoweredTask<'_>,
    host: Arc<dyn DeviceKernel>,
    bulk: Bulk,
    dims: usize,
) -> Result<TaskId> {
    // SAFETY: `fill_at` and `copy_at` have made `host` of the same value, or distance, and submit
    // it with a write one to one and, to copy, a read at the distance: of one box per chunk each.
    let kernel = unsafe { BulkKernel::new(host, bulk, dims) };
    task.submit(Payload::Kernel(Arc::new(kernel)))
}
