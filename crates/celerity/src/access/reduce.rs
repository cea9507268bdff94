//! The access of a reduction, as a task spells it.

use celerity_kernel::Operator;

use crate::buffer::{Buffer, Element};

/// A reduction; what [`Buffer::reduce`] returns.
///
/// A kernel gets a [`Reducer`] for a buffer of 0 dimensions, and an [`ArrayReducer`] for others.
///
/// [`ArrayReducer`]: celerity_kernel::ArrayReducer
/// [`Reducer`]: celerity_kernel::Reducer
#[derive(Debug)]
#[must_use = "an access does nothing until a task is submitted with it"]
pub struct ReduceAccess<T, const D: usize, O> {
    pub(super) buffer: Buffer<T, D>,
    pub(super) operator: O,
    pub(super) includes_current: bool,
    /// Whether the result has the same bits on any cluster.
    pub(super) is_ordered: bool,
}

impl<T: Element, const D: usize> Buffer<T, D> {
    /// Combines what the items of a kernel contribute into the elements of this buffer: into its one
    /// value, if it has 0 dimensions, or into each of its elements.
    ///
    /// What the buffer held before is forgotten, unless the reduction
    /// [includes](ReduceAccess::including_current) it. The result is there for every later task and
    /// fence, on every node; it is combined when the first of them needs it, and not at all if none
    /// does.
    ///
    /// ```
    /// use celerity::prelude::*;
    /// use celerity::{Max, Sum};
    ///
    /// let (sum, greatest) = celerity::run(|queue| {
    ///     let values = queue.buffer_from(1000, (0..1000).map(f64::from).collect::<Vec<_>>())?;
    ///     let sum = queue.buffer::<f64, 0>([]);
    ///     let greatest = queue.buffer::<f64, 0>([]);
    ///     let accesses = (values.read(one_to_one()), sum.reduce(Sum), greatest.reduce(Max));
    ///     queue.task("look").parallel_for(1000, accesses, |_, (value, sum, greatest)| {
    ///         sum.combine(*value);
    ///         greatest.combine(*value);
    ///     })?;
    ///     Ok((queue.fence(&sum)?.wait()?[[]], queue.fence(&greatest)?.wait()?[[]]))
    /// })?;
    /// assert_eq!((sum, greatest), (499_500.0, 999.0));
    /// # Ok::<(), celerity::Error>(())
    /// ```
    ///
    /// A histogram reduces into many elements:
    ///
    /// ```
    /// use celerity::prelude::*;
    /// use celerity::Sum;
    ///
    /// let counts = celerity::run(|queue| {
    ///     let kinds = queue.buffer_from(6, vec![2_u8, 0, 2, 1, 2, 0])?;
    ///     let counts = queue.buffer::<u32, 1>(3);
    ///     let accesses = (kinds.read(one_to_one()), counts.reduce(Sum));
    ///     queue.task("count").parallel_for(6, accesses, |_, (kind, counts)| {
    ///         counts.combine_at(usize::from(*kind), 1);
    ///     })?;
    ///     Ok(queue.fence(&counts)?.wait()?.into_vec())
    /// })?;
    /// assert_eq!(counts, [2, 1, 3]);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    ///
    /// # The same bits everywhere
    ///
    /// Values are combined in an order that follows from the task's index space, its granularity
    /// and its split, and from nothing else: so that even a sum of floats is the same, bit by bit,
    /// on any number of nodes, devices and threads. The index space is computed in *tiles*, boxes of
    /// 32 to 1,024 items (more only in spaces of more than 2²⁴), and a binary tree over them says in which order their partial results
    /// are combined. A tile is computed by one device: with fewer tiles than devices, some have
    /// nothing to do. There are at least 64 tiles in an index space of 2,048 items and more, but for
    /// [what arrays take](#what-arrays-take), and at most 16,384.
    ///
    /// # In compiled kernels
    ///
    /// A `#[kernel]` over items, rows or groups reduces, too, on CPUs and GPUs, and to the same bits:
    ///
    /// ```
    /// use celerity::prelude::*;
    /// use celerity::Sum;
    /// use celerity_example_kernels::reductions::dot; // from a crate of kernels
    ///
    /// let product = celerity::run(|queue| {
    ///     let x = queue.buffer_from(3, vec![1.0_f32, 2.0, 3.0])?;
    ///     let y = queue.buffer_from(3, vec![4.0_f32, 5.0, 6.0])?;
    ///     let sum = queue.buffer::<f32, 0>([]);
    ///     let accesses = (x.read(one_to_one()), y.read(one_to_one()), sum.reduce(Sum));
    ///     queue.task("dot").launch(3, accesses, dot)?;
    ///     Ok(queue.fence(&sum)?.wait()?[[]])
    /// })?;
    /// assert_eq!(product, 32.0);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    ///
    /// Its operator has no fields and implements `Default`. GPUs refuse, with
    /// [`Error::Kernel`](crate::Error::Kernel) when the task is submitted, operators that are not
    /// [commutative](Operator::IS_COMMUTATIVE), and reductions into arrays of elements that have
    /// neither 32 nor 64 bits, or by operators that are not [exact](Operator::IS_EXACT), as sums of
    /// floats are not, unless they are [unordered](ReduceAccess::unordered).
    ///
    /// # What arrays take
    ///
    /// A reduction into many elements takes a copy of all of them for each tile. There are fewer tiles
    /// then: the copies take 16 MiB, or what 64 of them take if that is more, but no more than 4 bytes for
    /// each item, and are 16 at least.
    pub fn reduce<O: Operator<T>>(&self, operator: O) -> ReduceAccess<T, D, O> {
        ReduceAccess { buffer: self.clone(), operator, includes_current: false, is_ordered: true }
    }
}

impl<T, const D: usize, O> ReduceAccess<T, D, O> {
    /// Lets what the buffer holds before the task be combined with what the task contributes, as
    /// the earlier of the two. A buffer that has elements which nothing has written is refused when
    /// the task is submitted, as any read of them is.
    ///
    /// ```
    /// use celerity::prelude::*;
    /// use celerity::Sum;
    ///
    /// let total = celerity::run(|queue| {
    ///     let total = queue.buffer_from([], vec![1000_u64])?;
    ///     for _ in 0..2 {
    ///         let access = total.reduce(Sum).including_current();
    ///         queue.task("add").parallel_for(10, access, |item, total| {
    ///             total.combine(item[0] as u64);
    ///         })?;
    ///     }
    ///     Ok(queue.fence(&total)?.wait()?[[]])
    /// })?;
    /// assert_eq!(total, 1090);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    pub fn including_current(mut self) -> Self {
        self.includes_current = true;
        self
    }

    /// Gives up [the same bits everywhere](Buffer::reduce) for speed: the
    /// result of an operator whose order shows, as of sums of floats, may differ between numbers of
    /// nodes, and on GPUs between two runs. All nodes have the same, and a reduction by an operator
    /// that is [exact](Operator::IS_EXACT) is as it always is.
    ///
    /// There are fewer and larger tiles then, if *all* reductions of the task are unordered, and GPUs
    /// combine floats into arrays. `docs/reductions.md` in the repository tells what that brings: for
    /// a large array, much; for one value, little. An operator that is not commutative still gets
    /// values in the order of items; which of them are combined first may differ.
    ///
    /// ```
    /// use celerity::prelude::*;
    /// use celerity::Sum;
    ///
    /// let weights = celerity::run(|queue| {
    ///     let weights = queue.buffer::<f32, 1>(4);
    ///     let access = weights.reduce(Sum).unordered();
    ///     queue.task("weigh").parallel_for(1000, access, |item, weights| {
    ///         weights.combine_at(item[0] % 4, 0.5);
    ///     })?;
    ///     Ok(queue.fence(&weights)?.wait()?.into_vec())
    /// })?;
    /// assert_eq!(weights, [125.0; 4]);
    /// # Ok::<(), celerity::Error>(())
    /// ```
    pub fn unordered(mut self) -> Self {
        self.is_ordered = false;
        self
    }
}
