//! Stencils that `#[kernel]` has made, by item and by row, on whatever devices there are, beside
//! plain loops: the same bits, whatever the size of rows and wherever chunks begin. On a machine
//! with GPUs and a facade that has them, the same tests run there (`CELERITY_PLATFORM=cuda` makes
//! sure of it).

use std::array::from_fn;

use celerity::prelude::*;
use celerity::{Element, Platform, Result};
use celerity_example_kernels::gray_scott::{self, Rates, react, react_fill, react_row};
use celerity_example_kernels::heat::{self, heat_fill, heat_step, heat_step_row};
use celerity_example_kernels::lattice::{IN_SPACE, arrive};
use celerity_example_kernels::means::{
    CUBE, SQUARE, mean, mean_of_9, mean_of_9_row, mean_of_27, mean_of_27_in_loops, mean_of_27_row,
    plane_fill,
};
use celerity_example_kernels::shallow_water::{
    self, OfThree, water_fill, water_step, water_step_row,
};
use celerity_example_kernels::wave::{self, Star, wave_step, wave_step_row};
use celerity_kernel::math::Float;
use celerity_kernel::{ItemKernel, NeighborhoodItem, NeighborhoodRow, RowKernel};

/// Narrow and wide, with rows that are runs of four and others, a single cell, and fewer rows than
/// devices.
const PLANES: [[usize; 2]; 6] = [[1, 1], [3, 4], [37, 64], [5, 1030], [2, 18], [9, 131]];
const SPACES: [[usize; 3]; 6] =
    [[1, 1, 1], [5, 6, 4], [17, 9, 64], [4, 3, 260], [2, 33, 18], [7, 5, 13]];

/// Runs the program on CPUs and on what there is, on one node and on several, which share a GPU if
/// need be.
fn everywhere<R: Send>(program: impl Fn(&Queue) -> Result<R> + Sync, check: impl Fn(R)) {
    let cpu = || Config::default().platform(Platform::Cpu);
    let there = || Config::from_env().unwrap();
    let cpus = [[1, 1], [1, 3], [2, 2], [3, 1]].map(|cluster| (cpu(), cluster));
    for (config, [nodes, devices]) in cpus.into_iter().chain([1, 2].map(|n| (there(), [n, 1]))) {
        let run = config.nodes(nodes).devices(devices).share_gpus(true).run(&program);
        check(run.unwrap_or_else(|error| panic!("on {nodes} × {devices}: {error}")));
    }
}

/// All indices of a box, row-major.
fn indices<const D: usize>(range: [usize; D]) -> impl Iterator<Item = [usize; D]> {
    (0..range.iter().product()).map(move |position: usize| {
        let mut rest = position;
        let mut index = [0; D];
        for dim in (0..D).rev() {
            (index[dim], rest) = (rest % range[dim], rest / range[dim]);
        }
        index
    })
}

/// The cell at an offset from another, or the nearest one inside.
fn clamped<T: Copy, const D: usize>(
    u: &[T],
    range: [usize; D],
    at: [usize; D],
    offset: [isize; D],
) -> T {
    let position = (0..D).fold(0, |position, dim| {
        let to = (at[dim] as isize + offset[dim]).clamp(0, range[dim] as isize - 1);
        position * range[dim] + to as usize
    });
    u[position]
}

fn contents<T: Element, const D: usize>(queue: &Queue, field: &Buffer<T, D>) -> Result<Vec<T>> {
    Ok(queue.fence(field)?.wait()?.as_slice().to_vec())
}

/// Heat after three steps, the second of which is by row and the others by item.
fn heat_of<T>(range: [usize; 3], rate: T)
where
    T: Float + Element + PartialEq,
    heat_fill<T>: for<'a> ItemKernel<3, &'a mut T>,
    heat_step<T>: for<'a> ItemKernel<3, (&'a mut T, NeighborhoodItem<'a, T, 3>)>,
    heat_step_row<T>: for<'a> RowKernel<3, (&'a mut [T], NeighborhoodRow<'a, T, 3>)>,
{
    let mut expected: Vec<T> = indices(range).map(|at| heat::initial(at, range)).collect();
    for _ in 0..3 {
        let cell = |at| clamped(&expected, range, at, [0; 3]);
        let side = |at, offset| clamped(&expected, range, at, offset);
        let next = |at| heat::next(cell(at), heat::SIDES.map(|offset| side(at, offset)), rate);
        expected = indices(range).map(next).collect();
    }
    let program = |queue: &Queue| {
        let [u, v] = from_fn(|_| queue.buffer::<T, 3>(range));
        queue.task("fill").launch(range, u.write(one_to_one()), heat_fill::new(range))?;
        for (step, (from, to)) in [(&u, &v), (&v, &u), (&u, &v)].into_iter().enumerate() {
            let accesses = (to.write(one_to_one()), from.read(neighborhood([1, 1, 1])));
            match step {
                1 => queue.task("row").launch(range, accesses, heat_step_row::new(rate))?,
                _ => queue.task("item").launch(range, accesses, heat_step::new(rate))?,
            };
        }
        contents(queue, &v)
    };
    everywhere(program, |found| assert!(found == expected, "heat over {range:?}"));
}

#[test]
fn heat_in_space_by_item_and_by_row() {
    for range in SPACES {
        heat_of::<f32>(range, 0.125);
        heat_of::<f64>(range, 0.1);
    }
}

/// Means of so many cells after a step, by row and by item.
fn means_of<T, R, I, F, const D: usize, const N: usize>(
    range: [usize; D],
    offsets: [[isize; D]; N],
    kernels: impl Fn() -> (F, R, I) + Sync,
) where
    T: Float + Element + PartialEq,
    F: celerity_kernel::Kernel + for<'a> ItemKernel<D, &'a mut T>,
    R: celerity_kernel::Kernel + for<'a> RowKernel<D, (&'a mut [T], NeighborhoodRow<'a, T, D>)>,
    I: celerity_kernel::Kernel + for<'a> ItemKernel<D, (&'a mut T, NeighborhoodItem<'a, T, D>)>,
{
    let program = |queue: &Queue| {
        let (fill, by_row, by_item) = kernels();
        let [u, rows, items] = from_fn(|_| queue.buffer::<T, D>(range));
        queue.task("fill").launch(range, u.write(one_to_one()), fill)?;
        let around = || u.read(neighborhood([1; D]));
        queue.task("row").launch(range, (rows.write(one_to_one()), around()), by_row)?;
        queue.task("item").launch(range, (items.write(one_to_one()), around()), by_item)?;
        Ok([contents(queue, &u)?, contents(queue, &rows)?, contents(queue, &items)?])
    };
    let check = |[u, rows, items]: [Vec<T>; 3]| {
        let next = |at| mean(offsets.map(|offset| clamped(&u, range, at, offset)));
        let expected: Vec<T> = indices(range).map(next).collect();
        assert!(rows == expected && items == expected, "means of {N} over {range:?}");
    };
    match range.iter().product() {
        0..100_000 => everywhere(program, check),
        // Where threads of a GPU take stacks of runs, the last of which are not whole: there is nothing else to see.
        _ => {
            let config = Config::from_env().unwrap().nodes(1).devices(1).share_gpus(true);
            check(config.run(program).unwrap());
        }
    }
}

#[test]
fn means_of_what_touches_a_cell_by_item_and_by_row() {
    for range in [[1, 1], [9, 131], [518, 4096]] {
        let kernels = || (plane_fill::new(), mean_of_9_row::new(), mean_of_9::new());
        means_of::<f64, _, _, _, 2, 9>(range, SQUARE, kernels);
    }
    for range in [[5, 6, 4], [2, 33, 18], [19, 112, 1024]] {
        let kernels = || (heat_fill::new(range), mean_of_27_row::new(), mean_of_27::new());
        means_of::<f64, _, _, _, 3, 27>(range, CUBE, kernels);
        let kernels = || (heat_fill::new(range), mean_of_27_row::new(), mean_of_27_in_loops::new());
        means_of::<f32, _, _, _, 3, 27>(range, CUBE, kernels);
    }
}

/// Whatever loops over offsets become, also in spaces so narrow that several offsets lead to one cell.
#[test]
fn nineteen_neighbours_where_edges_meet_in_a_loop() {
    for range in SPACES {
        let count: usize = range.iter().product();
        let before: Vec<[f32; 19]> =
            (0..count).map(|cell| from_fn(|at| (19 * cell + at) as f32)).collect();
        let arrived = |at: [usize; 3], q: usize| {
            let from = |dim: usize| {
                (at[dim] + range[dim]).wrapping_add_signed(-IN_SPACE[q][dim]) % range[dim]
            };
            before[(from(0) * range[1] + from(1)) * range[2] + from(2)][q]
        };
        let expected: Vec<[f32; 19]> =
            indices(range).map(|at| from_fn(|q| arrived(at, q))).collect();
        let program = |queue: &Queue| {
            let from = queue.buffer_from(range, before.clone())?;
            let to = queue.buffer::<[f32; 19], 3>(range);
            let around = neighborhood([1, 1, 1]).periodic();
            let accesses = (to.write(one_to_one()), from.read(around));
            queue.task("arrive").launch(range, accesses, arrive)?;
            contents(queue, &to)
        };
        everywhere(program, |found| assert!(found == expected, "nineteen over {range:?}"));
    }
}

#[test]
fn two_fields_that_react_by_item_and_by_row() {
    let rates = Rates::SPOTS;
    for range in PLANES {
        let mut expected: Vec<_> = indices(range).map(gray_scott::initial).collect();
        for _ in 0..2 {
            let next = |at| {
                let around: [_; 4] =
                    gray_scott::SIDES.map(|offset| clamped(&expected, range, at, offset));
                let of = |which: usize| around.map(|both| both[which]);
                gray_scott::next(clamped(&expected, range, at, [0; 2]), [of(0), of(1)], rates)
            };
            expected = indices(range).map(next).collect();
        }
        let program = |queue: &Queue| {
            let [u, v, next_u, next_v] = from_fn(|_| queue.buffer::<f32, 2>(range));
            let start = (u.write(one_to_one()), v.write(one_to_one()));
            queue.task("fill").launch(range, start, react_fill::new())?;
            let around = || neighborhood([1, 1]);
            let to = (next_u.write(one_to_one()), next_v.write(one_to_one()));
            let accesses = (to.0, to.1, u.read(around()), v.read(around()));
            queue.task("item").launch(range, accesses, react::new(rates))?;
            let to = (u.write(one_to_one()), v.write(one_to_one()));
            let accesses = (to.0, to.1, next_u.read(around()), next_v.read(around()));
            queue.task("row").launch(range, accesses, react_row::new(rates))?;
            Ok([contents(queue, &u)?, contents(queue, &v)?])
        };
        everywhere(program, |[u, v]| {
            let found: Vec<_> = u.into_iter().zip(v).map(|(u, v)| [u, v]).collect();
            assert!(found == expected, "reaction over {range:?}");
        });
    }
}

/// Shallow water after two steps, by item and by row.
fn water_of<T>(range: [usize; 2], [rate, smooth]: [T; 2])
where
    T: Float + Element + PartialEq,
    water_fill<T>: for<'a> ItemKernel<2, (&'a mut T, &'a mut T, &'a mut T)>,
    water_step<T>: for<'a> ItemKernel<2, OfThree<&'a mut T, NeighborhoodItem<'a, T, 2>>>,
    water_step_row<T>: for<'a> RowKernel<2, OfThree<&'a mut [T], NeighborhoodRow<'a, T, 2>>>,
{
    let mut expected: Vec<[T; 3]> = indices(range).map(shallow_water::initial).collect();
    for _ in 0..2 {
        let next = |at| {
            let around: [_; 4] =
                shallow_water::SIDES.map(|offset| clamped(&expected, range, at, offset));
            let of = |which: usize| around.map(|all| all[which]);
            let cell = clamped(&expected, range, at, [0; 2]);
            shallow_water::next(cell, [of(0), of(1), of(2)], rate, smooth)
        };
        expected = indices(range).map(next).collect();
    }
    let program = |queue: &Queue| {
        let [h, u, v, next_h, next_u, next_v] = from_fn(|_| queue.buffer::<T, 2>(range));
        let start = (h.write(one_to_one()), u.write(one_to_one()), v.write(one_to_one()));
        queue.task("fill").launch(range, start, water_fill::new())?;
        let steps = [
            ([&h, &u, &v], [&next_h, &next_u, &next_v]),
            ([&next_h, &next_u, &next_v], [&h, &u, &v]),
        ];
        for (by_row, (from, to)) in [false, true].into_iter().zip(steps) {
            let [a, b, c] = to.map(|field| field.write(one_to_one()));
            let [x, y, z] = from.map(|field| field.read(neighborhood([1, 1])));
            let accesses = (a, b, c, x, y, z);
            match by_row {
                true => {
                    queue.task("row").launch(range, accesses, water_step_row::new(rate, smooth))?
                }
                false => {
                    queue.task("item").launch(range, accesses, water_step::new(rate, smooth))?
                }
            };
        }
        Ok([contents(queue, &h)?, contents(queue, &u)?, contents(queue, &v)?])
    };
    everywhere(program, |[h, u, v]| {
        let flows = u.into_iter().zip(v);
        let found: Vec<_> = h.into_iter().zip(flows).map(|(h, (u, v))| [h, u, v]).collect();
        assert!(found == expected, "water over {range:?}");
    });
}

#[test]
fn three_fields_that_flow_by_item_and_by_row() {
    for range in PLANES {
        water_of::<f32>(range, [0.125, 0.125]);
        water_of::<f64>(range, [0.2, 0.1]);
    }
}

/// A step that reads what it overwrites, over a part of the index space that begins anywhere.
#[test]
fn steps_over_a_part_of_a_field_by_item_and_by_row() {
    let c = 0.25;
    for (range, from, size) in [
        ([37, 64], [0, 0], [37, 64]),
        ([37, 64], [3, 8], [20, 40]),
        ([37, 64], [36, 5], [1, 59]),
        ([9, 131], [1, 4], [8, 120]),
    ] {
        let field = |salt: usize| -> Vec<f32> {
            indices(range).map(|[y, x]| ((y * 31 + x * 17 + salt) % 23) as f32 / 8.0).collect()
        };
        let (before, u) = (field(0), field(7));
        let is_inside =
            |at: [usize; 2]| (0..2).all(|d| (from[d]..from[d] + size[d]).contains(&at[d]));
        let next = |at: [usize; 2]| {
            let old = clamped(&before, range, at, [0; 2]);
            let star = Star::around(|offset| clamped(&u, range, at, offset));
            if is_inside(at) { wave::next(old, star, c) } else { old }
        };
        let expected: Vec<_> = indices(range).map(next).collect();
        for by_row in [false, true] {
            let program = |queue: &Queue| {
                let up = queue.buffer_from(range, before.clone())?;
                let u = queue.buffer_from(range, u.clone())?;
                let accesses = (up.read_write(one_to_one()), u.read(neighborhood([1, 1])));
                match by_row {
                    true => queue.task("row").offset(from).launch(
                        size,
                        accesses,
                        wave_step_row::new(c),
                    )?,
                    false => {
                        queue.task("item").offset(from).launch(size, accesses, wave_step::new(c))?
                    }
                };
                contents(queue, &up)
            };
            everywhere(program, |found| {
                assert!(found == expected, "{size:?} from {from:?}, by row: {by_row}")
            });
        }
    }
}
