//! Steps of other stencils, by row and by item: a reaction of two substances on a square; and, of both precisions, heat in a box, waves
//! on shallow water, which are three fields on a square, and means over all that touches a cell, of 9 on a square and of 27 in a box.
//! The same as the baselines `heat`, `gray_scott`, `shallow_water` and `means` by hand.

use celerity::prelude::*;
use celerity::{Element, Neighborhood, Result, TaskId};
use celerity_example_kernels::gray_scott::{Rates, react, react_fill, react_row};
use celerity_example_kernels::heat::{heat_fill, heat_step, heat_step_row};
use celerity_example_kernels::means::{
    mean_of_9, mean_of_9_row, mean_of_27, mean_of_27_row, plane_fill,
};
use celerity_example_kernels::shallow_water::{OfThree, water_fill, water_step, water_step_row};
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
    let (space, plane) = ((sizes.space, sizes.rounds), (sizes.plane, sizes.rounds));
    let sides = neighborhood_along_axes([1; 3]);
    let kernels =
        (heat_fill::<f32>::new(space.0), heat_step_row::new(0.125), heat_step::new(0.125));
    one_field(queue, space, ("heat f32", sides), tell, kernels)?;
    let kernels =
        (heat_fill::<f64>::new(space.0), heat_step_row::new(0.125), heat_step::new(0.125));
    one_field(queue, space, ("heat f64", sides), tell, kernels)?;
    reaction(queue, sizes, tell)?;
    let kernels = (
        water_fill::<f32>::new(),
        water_step_row::new(0.125, 0.125),
        water_step::new(0.125, 0.125),
    );
    water(queue, plane, "water f32", tell, kernels)?;
    let kernels = (
        water_fill::<f64>::new(),
        water_step_row::new(0.125, 0.125),
        water_step::new(0.125, 0.125),
    );
    water(queue, plane, "water f64", tell, kernels)?;
    let kernels = (plane_fill::<f32>::new(), mean_of_9_row::new(), mean_of_9::new());
    one_field(queue, plane, ("means of 9 f32", neighborhood([1; 2])), tell, kernels)?;
    let kernels = (plane_fill::<f64>::new(), mean_of_9_row::new(), mean_of_9::new());
    one_field(queue, plane, ("means of 9 f64", neighborhood([1; 2])), tell, kernels)?;
    let kernels = (heat_fill::<f32>::new(space.0), mean_of_27_row::new(), mean_of_27::new());
    one_field(queue, space, ("means of 27 f32", neighborhood([1; 3])), tell, kernels)?;
    let kernels = (heat_fill::<f64>::new(space.0), mean_of_27_row::new(), mean_of_27::new());
    one_field(queue, space, ("means of 27 f64", neighborhood([1; 3])), tell, kernels)
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

/// Measures steps from one field to another, in so many rounds, by the kernel that fills the former, and those by row and by item,
/// which look at what `around` says.
fn one_field<T: Element, const D: usize>(
    queue: &Queue,
    (range, rounds): ([usize; D], (u32, u32)),
    (name, around): (&str, Neighborhood<D>),
    tell: &Tell<'_>,
    (fill, row, item): (
        impl for<'a> ItemKernel<D, &'a mut T>,
        impl for<'a> RowKernel<D, (&'a mut [T], NeighborhoodRow<'a, T, D>)> + Copy,
        impl for<'a> ItemKernel<D, (&'a mut T, NeighborhoodItem<'a, T, D>)> + Copy,
    ),
) -> Result<()> {
    let [from, to] = std::array::from_fn(|_| queue.buffer::<T, D>(range));
    queue.task("fill").launch(range, from.write(one_to_one()), fill)?;
    let accesses = || (to.write(one_to_one()), from.read(around));
    let bytes = 2 * size_of::<T>() * range.iter().product::<usize>();
    let by_row = || queue.task("row").launch(range, accesses(), row);
    let by_item = || queue.task("item").launch(range, accesses(), item);
    both_forms(queue, rounds, (name, bytes), tell, by_row, by_item)
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

/// Measures steps from three fields to three others, as [`one_field`] does.
fn water<T: Element>(
    queue: &Queue,
    (range, rounds): ([usize; 2], (u32, u32)),
    name: &str,
    tell: &Tell<'_>,
    (fill, row, item): (
        impl for<'a> ItemKernel<2, (&'a mut T, &'a mut T, &'a mut T)>,
        impl for<'a> RowKernel<2, OfThree<&'a mut [T], NeighborhoodRow<'a, T, 2>>> + Copy,
        impl for<'a> ItemKernel<2, OfThree<&'a mut T, NeighborhoodItem<'a, T, 2>>> + Copy,
    ),
) -> Result<()> {
    let [h, u, v, next_h, next_u, next_v] = std::array::from_fn(|_| queue.buffer::<T, 2>(range));
    let start = (h.write(one_to_one()), u.write(one_to_one()), v.write(one_to_one()));
    queue.task("fill").launch(range, start, fill)?;
    let accesses = || {
        let (to_h, to_u) = (next_h.write(one_to_one()), next_u.write(one_to_one()));
        let [h, u, v] = [&h, &u, &v].map(|field| field.read(neighborhood([1, 1])));
        (to_h, to_u, next_v.write(one_to_one()), h, u, v)
    };
    let bytes = 6 * size_of::<T>() * range.iter().product::<usize>();
    let by_row = || queue.task("row").launch(range, accesses(), row);
    let by_item = || queue.task("item").launch(range, accesses(), item);
    both_forms(queue, rounds, (name, bytes), tell, by_row, by_item)
}
