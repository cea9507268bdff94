//! A discrete divergence on a plane, as a star along both axes or over the square around a point.

use core::array;

use celerity_kernel::{Item, NeighborhoodRow, Reducer, Row, Sum, kernel};

/// The grid at the start: the sum of both indices.
#[kernel]
pub fn stencil_fill(item: Item<2>, cell: &mut f64) {
    *cell = (item[0] + item[1]) as f64;
}

/// The weight of the point at this distance along an axis in a star of this radius.
#[inline]
fn star_weight(distance: usize, radius: usize) -> f64 {
    1.0 / (2 * distance * radius) as f64
}

/// The weight of the point `down` and `right` of the centre in a square of this radius.
#[inline]
const fn square_weight([down, right]: [isize; 2], radius: usize) -> f64 {
    let (rows, columns) = (down.unsigned_abs(), right.unsigned_abs());
    let ring = if rows > columns { rows } else { columns } as isize;
    let size = 4 * ring * radius as isize;
    match (rows == columns, down == ring || right == ring) {
        (true, _) if ring == 0 => 0.0,
        // Of corners, those on the diagonal that both indices grow along; the others have no weight.
        (true, _) if down != right => 0.0,
        (true, true) => 1.0 / size as f64,
        (true, false) => -1.0 / size as f64,
        (false, true) => 1.0 / (size * (2 * ring - 1)) as f64,
        (false, false) => -1.0 / (size * (2 * ring - 1)) as f64,
    }
}

/// Adds the star of a radius that the compiler knows, a run of points at once.
#[inline(always)]
fn add_star<const R: usize>(out: &mut [f64], u: &NeighborhoodRow<'_, f64, 2>) {
    let len = out.len();
    let at = |offset| &u.clamped(offset)[..len];
    let sides: [[&[f64]; R]; 4] = [
        array::from_fn(|k| at([-(k as isize + 1), 0])),
        array::from_fn(|k| at([k as isize + 1, 0])),
        array::from_fn(|k| at([0, -(k as isize + 1)])),
        array::from_fn(|k| at([0, k as isize + 1])),
    ];
    let weights: [f64; R] = array::from_fn(|k| star_weight(k + 1, R));
    let [north, south, west, east] = sides;
    for (i, out) in out.iter_mut().enumerate() {
        let mut sum = *out;
        for k in 0..R {
            sum += weights[k] * (south[k][i] - north[k][i]);
            sum += weights[k] * (east[k][i] - west[k][i]);
        }
        *out = sum;
    }
}

/// `out += ` the star of `u`, of a radius `R` that the compiler knows: points farther along an axis count with weight,
/// those before with its negative.
#[kernel(instances(1, 2, 3, 4))]
pub fn stencil_star<const R: usize>(
    _row: Row<2>,
    (out, u): (&mut [f64], NeighborhoodRow<'_, f64, 2>),
) {
    add_star::<R>(out, &u);
}

/// The same of any radius.
#[kernel]
pub fn stencil_star_of(
    _row: Row<2>,
    (out, u): (&mut [f64], NeighborhoodRow<'_, f64, 2>),
    radius: usize,
) {
    for distance in 1..=radius as isize {
        let weight = star_weight(distance as usize, radius);
        for after in [[distance, 0], [0, distance]] {
            let before = after.map(|step| -step);
            let (after, before) = (u.clamped(after), u.clamped(before));
            for (out, (after, before)) in out.iter_mut().zip(after.iter().zip(before)) {
                *out += weight * (after - before);
            }
        }
    }
}

/// The weights of all points of a square, `W` points wide.
const fn square_weights<const R: usize, const W: usize>() -> [[f64; W]; W] {
    let mut weights = [[0.0; W]; W];
    let mut at = 0;
    while at < W * W {
        let (y, x) = (at / W, at % W);
        weights[y][x] = square_weight([y as isize - R as isize, x as isize - R as isize], R);
        at += 1;
    }
    weights
}

/// Adds the square of a radius `R` that the compiler knows, `W` points wide.
#[inline(always)]
fn add_square<const R: usize, const W: usize>(out: &mut [f64], u: &NeighborhoodRow<'_, f64, 2>) {
    // Runs of GPUs. Their sums stay in registers: stored line by line, they would be in the way of loads.
    if let Ok(out) = <&mut [f64; 2]>::try_from(&mut *out) {
        *out = with_square::<R, W, 2>(*out, u);
    } else if let Ok(out) = <&mut [f64; 1]>::try_from(&mut *out) {
        *out = with_square::<R, W, 1>(*out, u);
    } else {
        add_lines::<R, W>(out, u);
    }
}

/// The same for long rows, line by line of the square: what the points of a line see is loaded together.
fn add_lines<const R: usize, const W: usize>(out: &mut [f64], u: &NeighborhoodRow<'_, f64, 2>) {
    let (len, weights) = (out.len(), const { square_weights::<R, W>() });
    for (y, weights) in weights.iter().enumerate() {
        let line = line_of_square::<R, W>(y, u).map(|at| &at[..len]);
        for (i, out) in out.iter_mut().enumerate() {
            let mut sum = *out;
            for x in 0..W {
                sum += weights[x] * line[x][i];
            }
            *out = sum;
        }
    }
}

/// `sums`, of as many points as the compiler knows, with the square added to each.
#[inline(always)]
fn with_square<const R: usize, const W: usize, const N: usize>(
    sums: [f64; N],
    u: &NeighborhoodRow<'_, f64, 2>,
) -> [f64; N] {
    const { assert!(W <= 9) };
    // One by one: lines that a loop goes through are no constants if the compiler keeps the loop.
    let sums = with_line::<R, W, N>(0, sums, u);
    let sums = with_line::<R, W, N>(1, sums, u);
    let sums = with_line::<R, W, N>(2, sums, u);
    let sums = with_line::<R, W, N>(3, sums, u);
    let sums = with_line::<R, W, N>(4, sums, u);
    let sums = with_line::<R, W, N>(5, sums, u);
    let sums = with_line::<R, W, N>(6, sums, u);
    let sums = with_line::<R, W, N>(7, sums, u);
    with_line::<R, W, N>(8, sums, u)
}

/// The same for line `y` of the square, if there is one.
#[inline(always)]
fn with_line<const R: usize, const W: usize, const N: usize>(
    y: usize,
    mut sums: [f64; N],
    u: &NeighborhoodRow<'_, f64, 2>,
) -> [f64; N] {
    if y < W {
        let (weights, line) = (const { square_weights::<R, W>() }, line_of_square::<R, W>(y, u));
        for x in 0..W {
            let at = &line[x][..N];
            for i in 0..N {
                sums[i] += weights[y][x] * at[i];
            }
        }
    }
    sums
}

/// What the points of line `y` of the square see.
#[inline(always)]
fn line_of_square<'a, const R: usize, const W: usize>(
    y: usize,
    u: &NeighborhoodRow<'a, f64, 2>,
) -> [&'a [f64]; W] {
    const { assert!(W == 2 * R + 1) };
    let from_centre = |at: usize| at as isize - R as isize;
    u.clamped_each(array::from_fn(|x| [from_centre(y), from_centre(x)]))
}

/// `out += ` the square of `u`, of a radius `R` that the compiler knows, `W` points wide. A kernel for
/// each radius: one for all is too large to stay in one piece on devices, and what is a function of its own sees views in memory.
#[kernel(instances((1, 3), (2, 5), (3, 7), (4, 9)))]
pub fn stencil_square<const R: usize, const W: usize>(
    _row: Row<2>,
    (out, u): (&mut [f64], NeighborhoodRow<'_, f64, 2>),
) {
    add_square::<R, W>(out, &u);
}

/// The same of any radius.
#[kernel]
pub fn stencil_square_of(
    _row: Row<2>,
    (out, u): (&mut [f64], NeighborhoodRow<'_, f64, 2>),
    radius: usize,
) {
    let reach = radius as isize;
    for down in -reach..=reach {
        for right in -reach..=reach {
            let weight = square_weight([down, right], radius);
            for (out, cell) in out.iter_mut().zip(u.clamped([down, right])) {
                *out += weight * cell;
            }
        }
    }
}

/// Adds 1, so that the next step needs its neighbours' cells again.
#[kernel]
pub fn increment(_row: Row<2>, cells: &mut [f64]) {
    for cell in cells {
        *cell += 1.0;
    }
}

/// The sum of what cells are apart from 0.
#[kernel]
pub fn sum_of_sizes(_item: Item<2>, (cell, sum): (&f64, Reducer<'_, f64, Sum>)) {
    sum.combine(cell.abs());
}

#[cfg(test)]
mod tests {
    use super::{square_weight, star_weight};

    #[test]
    fn weights_give_a_slope_of_one_along_each_axis() {
        for radius in 1..=5 {
            let star: f64 = (1..=radius).map(|k| 2.0 * k as f64 * star_weight(k, radius)).sum();
            assert!((star - 1.0).abs() < 1e-12, "{star}");
            let reach = radius as isize;
            let slope = |axis: usize| {
                let points = (-reach..=reach).flat_map(|y| (-reach..=reach).map(move |x| [y, x]));
                points.map(|p| p[axis] as f64 * square_weight(p, radius)).sum::<f64>()
            };
            assert!((slope(0) - 1.0).abs() < 1e-12 && (slope(1) - 1.0).abs() < 1e-12, "{radius}");
        }
    }
}
