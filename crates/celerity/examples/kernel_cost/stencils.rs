//! Steps of other stencils, by row and by item: a reaction of two substances on a square; and, of both precisions, heat in a box, and
//! means over all that touches a cell, of 9 on a square and of 27 in a box. The same as the baselines
//! `heat`, `gray_scott` and `means` by hand.

use celerity::prelude::*;
use celerity::{Element, Result, TaskId};
use celerity_example_kernels::gray_scott::{Rates, react, react_fill, react_row};
use celerity_example_kernels::heat::{heat_fill, heat_step, heat_step_row};
use celerity_example_kernels::means::{
    mean_of_9, mean_of_9_row, mean_of_27, mean_of_27_row, plane_fill,
};
use celerity_kernel::math::Float;
use celerity_kernel::{ItemKernel, NeighborhoodItem, NeighborhoodRow, RowKernel};

use crate::rounds::fastest;

/// What is timed.
pub(crate) struct Sizes {
    /// Cells of the box: planes, rows, columns.
    pub(crate) space: [usize; 3],
    /// Cells of the square.
    pub(crate) plane: [usize; 2],
    /// Rounds, and steps of each.
    pub(crate) rounds: (u32, u32),
}

/// Is told the name of each form, the seconds of a step, and the bytes that it moves between memory and device at least.
type Tell<'a> = dyn Fn(&str, f64, f64) + 'a;

/// Measures all stencils.
pub(crate) fn measure(queue: &Queue, sizes: &Sizes, tell: &Tell<'_>) -> Result<()> {
    heat::<f32>(queue, sizes, "heat f32", tell)?;
    heat::<f64>(queue, sizes, "heat f64", tell)?;
    reaction(queue, sizes, tell)?;
    means_of_9::<f32>(queue, sizes, "means of 9 f32", tell)?;
    means_of_9::<f64>(queue, sizes, "means of 9 f64", tell)?;
    means_of_27::<f32>(queue, sizes, "means of 27 f32", tell)?;
    means_of_27::<f64>(queue, sizes, "means of 27 f64", tell)
}

/// Measures a step in both forms, of so many bytes.
fn both_forms(
    queue: &Queue,
    rounds: (u32, u32),
    (name, bytes): (&str, usize),
    tell: &Tell<'_>,
    by_row: impl Fn() -> Result<TaskId>,
    by_item: impl Fn() -> Result<TaskId>,
) -> Result<()> {
    let seconds = fastest(queue, rounds, || by_row().map(drop))?;
    tell(&format!("{name}, by row"), seconds, bytes as f64);
    let seconds = fastest(queue, rounds, || by_item().map(drop))?;
    tell(&format!("{name}, by item"), seconds, bytes as f64);
    Ok(())
}

fn heat<T>(queue: &Queue, sizes: &Sizes, name: &str, tell: &Tell<'_>) -> Result<()>
where
    T: Float + Element,
    heat_fill<T>: for<'a> ItemKernel<3, &'a mut T>,
    heat_step<T>: for<'a> ItemKernel<3, (&'a mut T, NeighborhoodItem<'a, T, 3>)>,
    heat_step_row<T>: for<'a> RowKernel<3, (&'a mut [T], NeighborhoodRow<'a, T, 3>)>,
{
    let (space, rate) = (sizes.space, T::from(0.125));
    let (u, after) = (queue.buffer::<T, 3>(space), queue.buffer::<T, 3>(space));
    queue.task("fill").launch(space, u.write(one_to_one()), heat_fill::new(space))?;
    let accesses = || (after.write(one_to_one()), u.read(neighborhood([1, 1, 1])));
    let bytes = 2 * size_of::<T>() * space.iter().product::<usize>();
    let by_row = || queue.task("row").launch(space, accesses(), heat_step_row::new(rate));
    let by_item = || queue.task("item").launch(space, accesses(), heat_step::new(rate));
    both_forms(queue, sizes.rounds, (name, bytes), tell, by_row, by_item)
}

fn reaction(queue: &Queue, sizes: &Sizes, tell: &Tell<'_>) -> Result<()> {
    let (plane, rates) = (sizes.plane, Rates::SPOTS);
    let [u, v, next_u, next_v] = std::array::from_fn(|_| queue.buffer::<f32, 2>(plane));
    let start = (u.write(one_to_one()), v.write(one_to_one()));
    queue.task("fill").launch(plane, start, react_fill::new())?;
    let accesses = || {
        let (to_u, to_v) = (next_u.write(one_to_one()), next_v.write(one_to_one()));
        (to_u, to_v, u.read(neighborhood([1, 1])), v.read(neighborhood([1, 1])))
    };
    let bytes = 16 * plane.iter().product::<usize>();
    let by_row = || queue.task("row").launch(plane, accesses(), react_row::new(rates));
    let by_item = || queue.task("item").launch(plane, accesses(), react::new(rates));
    both_forms(queue, sizes.rounds, ("reaction", bytes), tell, by_row, by_item)
}

fn means_of_9<T>(queue: &Queue, sizes: &Sizes, name: &str, tell: &Tell<'_>) -> Result<()>
where
    T: Float + Element,
    plane_fill<T>: for<'a> ItemKernel<2, &'a mut T>,
    mean_of_9<T>: for<'a> ItemKernel<2, (&'a mut T, NeighborhoodItem<'a, T, 2>)>,
    mean_of_9_row<T>: for<'a> RowKernel<2, (&'a mut [T], NeighborhoodRow<'a, T, 2>)>,
{
    let plane = sizes.plane;
    let (from, to) = (queue.buffer::<T, 2>(plane), queue.buffer::<T, 2>(plane));
    queue.task("fill").launch(plane, from.write(one_to_one()), plane_fill::new())?;
    let accesses = || (to.write(one_to_one()), from.read(neighborhood([1, 1])));
    let bytes = 2 * size_of::<T>() * plane.iter().product::<usize>();
    let by_row = || queue.task("row").launch(plane, accesses(), mean_of_9_row::new());
    let by_item = || queue.task("item").launch(plane, accesses(), mean_of_9::new());
    both_forms(queue, sizes.rounds, (name, bytes), tell, by_row, by_item)
}

fn means_of_27<T>(queue: &Queue, sizes: &Sizes, name: &str, tell: &Tell<'_>) -> Result<()>
where
    T: Float + Element,
    heat_fill<T>: for<'a> ItemKernel<3, &'a mut T>,
    mean_of_27<T>: for<'a> ItemKernel<3, (&'a mut T, NeighborhoodItem<'a, T, 3>)>,
    mean_of_27_row<T>: for<'a> RowKernel<3, (&'a mut [T], NeighborhoodRow<'a, T, 3>)>,
{
    let space = sizes.space;
    let (from, to) = (queue.buffer::<T, 3>(space), queue.buffer::<T, 3>(space));
    queue.task("fill").launch(space, from.write(one_to_one()), heat_fill::new(space))?;
    let accesses = || (to.write(one_to_one()), from.read(neighborhood([1, 1, 1])));
    let bytes = 2 * size_of::<T>() * space.iter().product::<usize>();
    let by_row = || queue.task("row").launch(space, accesses(), mean_of_27_row::new());
    let by_item = || queue.task("item").launch(space, accesses(), mean_of_27::new());
    both_forms(queue, sizes.rounds, (name, bytes), tell, by_row, by_item)
}
