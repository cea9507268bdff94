//! Whole kernels that look at neighbours: a wave, a reaction and heat, as the examples have them,
//! and boxes of 9 and 27 points. By hand, rows are slices of one length, so that loops over them
//! take several cells at once, and edges are computed apart.

use celerity::prelude::*;
use celerity::{Neighborhood, OneToOne, ReadAccess, WriteAccess};
use celerity_example_kernels::gray_scott::{self, Rates, react, react_row};
use celerity_example_kernels::heat::{self, heat_step, heat_step_row};
use celerity_example_kernels::means::{
    CUBE, in_threes, mean, mean_at, mean_of_9, mean_of_9_row, mean_of_27, mean_of_27_in_loops,
    mean_of_27_row,
};
use celerity_example_kernels::wave::{self, Star, wave_step, wave_step_row};
use celerity_kernel::math::Float;
use celerity_kernel::{ItemKernel, NeighborhoodItem, NeighborhoodRow, RowKernel};
use rayon::prelude::*;

use crate::fields::{Cells, PLANE, around, beside, rows_of_plane, rows_of_space, space};
use crate::turns::Case;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(waves());
    cases.extend(reactions());
    for width in [64, 256, 1024] {
        cases.extend(heats::<f32>("f32", width));
        cases.extend(heats::<f64>("f64", width));
    }
    cases.extend(nines());
    cases.extend(twenty_sevens());
    cases
}

const RATE: f32 = 0.125;

fn waves() -> [Case; 2] {
    let by_hand = |[up]: [&mut [f32]; 1], [u]: [&[f32]; 1]| {
        let [height, width] = PLANE;
        rows_of_plane(up, PLANE, |up, y| {
            wave_row(up, around(y, height).map(|y| &u[y * width..][..width]));
        });
    };
    [
        beside("wave, 5 points, by rows".into(), PLANE, by_hand, |queue, [up], [u]| {
            let accesses = (up.read_write(one_to_one()), u.read(neighborhood([1, 1])));
            queue.task("wave").launch(PLANE, accesses, wave_step_row { c: RATE })
        }),
        beside("wave, 5 points, by items".into(), PLANE, by_hand, |queue, [up], [u]| {
            let accesses = (up.read_write(one_to_one()), u.read(neighborhood([1, 1])));
            queue.task("wave").launch(PLANE, accesses, wave_step { c: RATE })
        }),
    ]
}

#[inline(never)]
fn wave_row(up: &mut [f32], rows: [&[f32]; 3]) {
    let last = up.len() - 1;
    let [north, centre, south] = rows.map(|row| &row[..=last]);
    let star = |i: usize, west: usize, east: usize| Star {
        centre: centre[i],
        north: north[i],
        south: south[i],
        west: centre[west],
        east: centre[east],
    };
    up[0] = wave::next(up[0], star(0, 0, 1), RATE);
    up[last] = wave::next(up[last], star(last, last - 1, last), RATE);
    let [west, here, east] = side_by_side(centre);
    let (north, south) = (&north[1..last], &south[1..last]);
    for (i, up) in up[1..last].iter_mut().enumerate() {
        let (centre, north, south) = (here[i], north[i], south[i]);
        let star = Star { centre, north, south, west: west[i], east: east[i] };
        *up = wave::next(*up, star, RATE);
    }
}

/// What is to the left of the inner cells of a row, what is in them, and what is to the right.
#[inline]
fn side_by_side<T>(row: &[T]) -> [&[T]; 3] {
    let inner = row.len() - 2;
    [&row[..inner], &row[1..][..inner], &row[2..][..inner]]
}

fn reactions() -> [Case; 2] {
    let by_hand = |[next_u, next_v]: [&mut [f32]; 2], [u, v]: [&[f32]; 2]| {
        let [height, width] = PLANE;
        let rows = next_u.par_chunks_mut(width).zip(next_v.par_chunks_mut(width));
        rows.enumerate().for_each(|(y, (next_u, next_v))| {
            let rows = around(y, height).map(|y| y * width..(y + 1) * width);
            let [u, v] = [u, v].map(|field| rows.clone().map(|row| &field[row]));
            reaction_row(next_u, next_v, u, v);
        });
    };
    [
        beside("Gray-Scott, 5 points, by rows".into(), PLANE, by_hand, |queue, to, from| {
            let [to_u, to_v] = to.each_ref().map(|field| field.write(one_to_one()));
            let [u, v] = from.each_ref().map(|field| field.read(neighborhood([1, 1])));
            let kernel = react_row { rates: Rates::SPOTS };
            queue.task("react").launch(PLANE, (to_u, to_v, u, v), kernel)
        }),
        beside("Gray-Scott, 5 points, by items".into(), PLANE, by_hand, |queue, to, from| {
            let [to_u, to_v] = to.each_ref().map(|field| field.write(one_to_one()));
            let [u, v] = from.each_ref().map(|field| field.read(neighborhood([1, 1])));
            let kernel = react { rates: Rates::SPOTS };
            queue.task("react").launch(PLANE, (to_u, to_v, u, v), kernel)
        }),
    ]
}

#[inline(never)]
fn reaction_row(next_u: &mut [f32], next_v: &mut [f32], u: [&[f32]; 3], v: [&[f32]; 3]) {
    let last = next_u.len() - 1;
    let (next_v, u, v) =
        (&mut next_v[..=last], u.map(|row| &row[..=last]), v.map(|row| &row[..=last]));
    let sides = |[north, here, south]: [&[f32]; 3], [west, i, east]: [usize; 3]| {
        [north[i], south[i], here[west], here[east]]
    };
    for at in [[0, 0, 1], [last - 1, last, last]] {
        let (i, around) = (at[1], [sides(u, at), sides(v, at)]);
        [next_u[i], next_v[i]] = gray_scott::next([u[1][i], v[1][i]], around, Rates::SPOTS);
    }
    let ([west_u, here_u, east_u], [west_v, here_v, east_v]) =
        (side_by_side(u[1]), side_by_side(v[1]));
    let ([north_u, _, south_u], [north_v, _, south_v]) =
        (u.map(|row| &row[1..last]), v.map(|row| &row[1..last]));
    let (next_u, next_v) = (&mut next_u[1..last], &mut next_v[1..last]);
    for i in 0..next_u.len() {
        let around = [
            [north_u[i], south_u[i], west_u[i], east_u[i]],
            [north_v[i], south_v[i], west_v[i], east_v[i]],
        ];
        [next_u[i], next_v[i]] = gray_scott::next([here_u[i], here_v[i]], around, Rates::SPOTS);
    }
}

fn heats<T>(precision: &str, width: usize) -> [Case; 2]
where
    T: Float + celerity::Element + Cells,
    heat_step<T>: for<'a> ItemKernel<3, (&'a mut T, NeighborhoodItem<'a, T, 3>)>,
    heat_step_row<T>: for<'a> RowKernel<3, (&'a mut [T], NeighborhoodRow<'a, T, 3>)>,
{
    let range = space(width);
    let by_hand = move |[after]: [&mut [T]; 1], [u]: [&[T]; 1]| {
        let [planes, rows, width] = range;
        rows_of_space(after, range, |after, [z, y]| {
            let row = |z: usize, y: usize| &u[(z * rows + y) * width..][..width];
            let ([above, _, below], [north, _, south]) = (around(z, planes), around(y, rows));
            heat_row(
                after,
                row(z, y),
                [row(above, y), row(below, y), row(z, north), row(z, south)],
            );
        });
    };
    let name = |form: &str| format!("heat, 7 points, {precision}, rows of {width}, by {form}");
    [
        beside(name("rows"), range, by_hand, move |queue, [after], [u]| {
            let accesses = (after.write(one_to_one()), u.read(neighborhood([1, 1, 1])));
            queue.task("heat").launch(range, accesses, heat_step_row::new(T::of(RATE)))
        }),
        beside(name("items"), range, by_hand, move |queue, [after], [u]| {
            let accesses = (after.write(one_to_one()), u.read(neighborhood([1, 1, 1])));
            queue.task("heat").launch(range, accesses, heat_step::new(T::of(RATE)))
        }),
    ]
}

#[inline(never)]
fn heat_row<T: Float + Cells>(after: &mut [T], centre: &[T], sides: [&[T]; 4]) {
    let (last, rate) = (after.len() - 1, T::of(RATE));
    let (centre, [above, below, north, south]) =
        (&centre[..=last], sides.map(|side| &side[..=last]));
    for [west, i, east] in [[0, 0, 1], [last - 1, last, last]] {
        let sides = [above[i], below[i], north[i], south[i], centre[west], centre[east]];
        after[i] = heat::next(centre[i], sides, rate);
    }
    let [west, centre, east] = side_by_side(centre);
    let (above, below) = (&above[1..last], &below[1..last]);
    let (north, south) = (&north[1..last], &south[1..last]);
    for (i, after) in after[1..last].iter_mut().enumerate() {
        let sides = [above[i], below[i], north[i], south[i], west[i], east[i]];
        *after = heat::next(centre[i], sides, rate);
    }
}

/// The three columns of a row that are around a cell at an edge.
#[inline]
fn and_edge(sum: f32, row: &[f32], [west, here, east]: [usize; 3]) -> f32 {
    sum + row[west] + row[here] + row[east]
}

/// What means are written to, and all that touches a cell.
fn near<const D: usize>(
    to: &Buffer<f32, D>,
    from: &Buffer<f32, D>,
) -> (WriteAccess<f32, D, OneToOne>, ReadAccess<f32, D, Neighborhood<D>>) {
    (to.write(one_to_one()), from.read(neighborhood([1; D])))
}

fn nines() -> [Case; 4] {
    let by_hand = |[to]: [&mut [f32]; 1], [from]: [&[f32]; 1]| {
        let [height, width] = PLANE;
        rows_of_plane(to, PLANE, |to, y| {
            mean_row(to, around(y, height).map(|y| &from[y * width..][..width]));
        });
    };
    [
        beside("means, 9 points, by rows".into(), PLANE, by_hand, |queue, [to], [from]| {
            queue.task("means").launch(PLANE, near(to, from), mean_of_9_row::<f32>::new())
        }),
        beside("means, 9 points, by items".into(), PLANE, by_hand, |queue, [to], [from]| {
            queue.task("means").launch(PLANE, near(to, from), mean_of_9::<f32>::new())
        }),
        beside(
            "means, 9 points, by items of a closure, in loops".into(),
            PLANE,
            by_hand,
            |queue, [to], [from]| {
                queue.task("means").parallel_for(PLANE, near(to, from), |_, (to, from)| {
                    let mut sum = 0.0;
                    for y in -1..2 {
                        for x in -1..2 {
                            sum += from.clamped([y, x]);
                        }
                    }
                    *to = sum * (1.0 / 9.0);
                })
            },
        ),
        beside(
            "means, 9 points, by items of a closure, in loops with `..=`".into(),
            PLANE,
            by_hand,
            |queue, [to], [from]| {
                queue.task("means").parallel_for(PLANE, near(to, from), |_, (to, from)| {
                    let mut sum = 0.0;
                    for y in -1..=1 {
                        for x in -1..=1 {
                            sum += from.clamped([y, x]);
                        }
                    }
                    *to = sum * (1.0 / 9.0);
                })
            },
        ),
    ]
}

/// Means of the cells of a row and those around them, in rows of that many, one of which is the row itself.
#[inline(never)]
fn mean_row<const N: usize>(to: &mut [f32], rows: [&[f32]; N]) {
    let last = to.len() - 1;
    let rows = rows.map(|row| &row[..=last]);
    for columns in [[0, 0, 1], [last - 1, last, last]] {
        let sum = rows.iter().fold(0.0, |sum, row| and_edge(sum, row, columns));
        to[columns[1]] = sum * (1.0 / (3 * N) as f32);
    }
    let rows: [_; N] = std::array::from_fn(|n| side_by_side(rows[n]));
    for (i, to) in to[1..last].iter_mut().enumerate() {
        *to = mean_at(&rows, i);
    }
}

fn twenty_sevens() -> [Case; 6] {
    const RANGE: [usize; 3] = space(256);
    let by_hand = |[to]: [&mut [f32]; 1], [from]: [&[f32]; 1]| {
        let [planes, rows, width] = RANGE;
        rows_of_space(to, RANGE, |to, [z, y]| {
            let row = |z: usize, y: usize| &from[(z * rows + y) * width..][..width];
            let (planes, rows) = (around(z, planes), around(y, rows));
            mean_row::<9>(to, std::array::from_fn(|n| row(planes[n / 3], rows[n % 3])));
        });
    };
    [
        beside("means, 27 points, by rows".into(), RANGE, by_hand, |queue, [to], [from]| {
            queue.task("means").launch(RANGE, near(to, from), mean_of_27_row::<f32>::new())
        }),
        beside("means, 27 points, by items".into(), RANGE, by_hand, |queue, [to], [from]| {
            queue.task("means").launch(RANGE, near(to, from), mean_of_27::<f32>::new())
        }),
        beside(
            "means, 27 points, by rows of a closure".into(),
            RANGE,
            by_hand,
            |queue, [to], [from]| {
                queue.task("means").parallel_for_rows(RANGE, near(to, from), |_, (to, from)| {
                    let rows = in_threes(from.clamped_each(CUBE));
                    for (i, to) in to.iter_mut().enumerate() {
                        *to = mean_at(&rows, i);
                    }
                })
            },
        ),
        beside(
            "means, 27 points, by items of a closure".into(),
            RANGE,
            by_hand,
            |queue, [to], [from]| {
                queue.task("means").parallel_for(RANGE, near(to, from), |_, (to, from)| {
                    *to = mean(from.clamped_each(CUBE));
                })
            },
        ),
        beside(
            "means, 27 points, by items, in loops".into(),
            RANGE,
            by_hand,
            |queue, [to], [from]| {
                queue.task("means").launch(RANGE, near(to, from), mean_of_27_in_loops {})
            },
        ),
        beside(
            "means, 27 points, by items of a closure, in loops".into(),
            RANGE,
            by_hand,
            |queue, [to], [from]| {
                queue.task("means").parallel_for(RANGE, near(to, from), |_, (to, from)| {
                    let mut sum = 0.0;
                    for z in -1..2 {
                        for y in -1..2 {
                            for x in -1..2 {
                                sum += from.clamped([z, y, x]);
                            }
                        }
                    }
                    *to = sum * (1.0 / 27.0);
                })
            },
        ),
    ]
}
