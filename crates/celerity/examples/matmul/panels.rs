//! A product by panels, for the example and for the benchmark beside MPI used by hand.

use celerity::TaskBuilder;
use celerity::prelude::*;
use celerity_example_kernels::panels::{COLUMNS, ROWS, STACK, matmul_panels};

/// What the size of the matrices must be a multiple of.
pub(crate) const MULTIPLE: usize = ROWS * STACK;

/// A task for a product: nodes and devices share rows, which are its second dimension.
pub(crate) fn task(queue: &Queue) -> TaskBuilder<'_> {
    queue.task("product").hint(Hint::SplitAlong(1))
}

/// `next = a x`, with an item for each block of `next`, counted by columns, by a [`task`] of this kind.
///
/// # Errors
/// If the task cannot be submitted: the size of the matrices is not a multiple of [`MULTIPLE`], for one.
pub(crate) fn product(
    task: TaskBuilder<'_>,
    next: &Buffer<f32, 2>,
    a: &Buffer<f32, 2>,
    x: &Buffer<f32, 2>,
) -> celerity::Result<()> {
    let [size, _] = next.range();
    let [down, across] = [Side::along(1).stride(ROWS), Side::along(0).stride(COLUMNS)];
    let block = per_dimension([down, across]);
    let rows = per_dimension([down, Side::all()]);
    let columns = per_dimension([Side::all(), across]);
    let accesses = (next.write(block), a.read(rows), x.read(columns));
    let (range, group) = ([size / COLUMNS, size / ROWS], [1, STACK]);
    task.launch(nd_range(range, group), accesses, matmul_panels { shared: size })?;
    Ok(())
}
