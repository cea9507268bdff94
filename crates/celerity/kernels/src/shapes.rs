//! Kernels of many shapes, each a few lines as one writes them at first: many fields, coefficients for each cell, grids of
//! two sizes, parts that go by one index, loops over a table, a sparse matrix. The CUDA C++ baseline `shapes` computes the same.

use celerity_kernel::{Item, NeighborhoodItem, PartView, WholeView, kernel};

use crate::hash::unit;

/// Numbers in a box that look random.
#[kernel]
pub fn noise_in_space(item: Item<3>, cell: &mut f32, salt: u64) {
    *cell = unit(item.linear_id() as u64 ^ (salt << 40));
}

/// Numbers on a plane that look random.
#[kernel]
pub fn noise_on_plane(item: Item<2>, cell: &mut f32, salt: u64) {
    *cell = unit(item.linear_id() as u64 ^ (salt << 40));
}

/// Numbers that look random.
#[kernel]
pub fn noise_on_line(item: Item<1>, cell: &mut f32, salt: u64) {
    *cell = unit(item[0] as u64 ^ (salt << 40));
}

/// Points in four dimensions that look random.
#[kernel]
pub fn noisy_points(item: Item<1>, point: &mut [f32; 4], salt: u64) {
    *point = [0, 1, 2, 3].map(|dim| unit((4 * item[0] as u64 + dim) ^ (salt << 40)));
}

/// Half a step on Yee's grid: how the magnetic field changes by the electric one beside it.
#[kernel]
pub fn magnetic_step(
    _item: Item<3>,
    (hx, hy, hz, ex, ey, ez): (
        &mut f32,
        &mut f32,
        &mut f32,
        NeighborhoodItem<'_, f32, 3>,
        NeighborhoodItem<'_, f32, 3>,
        NeighborhoodItem<'_, f32, 3>,
    ),
    c: f32,
) {
    let [x, y, z] = [ex, ey, ez].map(|field| field.clamped([0, 0, 0]));
    *hx += c * ((ey.clamped([1, 0, 0]) - y) - (ez.clamped([0, 1, 0]) - z));
    *hy += c * ((ez.clamped([0, 0, 1]) - z) - (ex.clamped([1, 0, 0]) - x));
    *hz += c * ((ex.clamped([0, 1, 0]) - x) - (ey.clamped([0, 0, 1]) - y));
}

/// The other half: how the electric field changes by the magnetic one.
#[kernel]
pub fn electric_step(
    _item: Item<3>,
    (ex, ey, ez, hx, hy, hz): (
        &mut f32,
        &mut f32,
        &mut f32,
        NeighborhoodItem<'_, f32, 3>,
        NeighborhoodItem<'_, f32, 3>,
        NeighborhoodItem<'_, f32, 3>,
    ),
    c: f32,
) {
    let [x, y, z] = [hx, hy, hz].map(|field| field.clamped([0, 0, 0]));
    *ex += c * ((z - hz.clamped([0, -1, 0])) - (y - hy.clamped([-1, 0, 0])));
    *ey += c * ((x - hx.clamped([-1, 0, 0])) - (z - hz.clamped([0, 0, -1])));
    *ez += c * ((y - hy.clamped([0, 0, -1])) - (x - hx.clamped([0, -1, 0])));
}

/// Seven coefficients for each cell times what is in it and at its six sides. Of 80 registers, an H100 has six blocks of threads at a
/// time instead of five.
#[kernel(registers(wide = 80))]
pub fn coefficients_step(
    _item: Item<3>,
    (out, u, here, below, above, north, south, west, east): (
        &mut f32,
        NeighborhoodItem<'_, f32, 3>,
        &f32,
        &f32,
        &f32,
        &f32,
        &f32,
        &f32,
        &f32,
    ),
) {
    *out = *here * u.clamped([0, 0, 0])
        + *below * u.clamped([-1, 0, 0])
        + *above * u.clamped([1, 0, 0])
        + *north * u.clamped([0, -1, 0])
        + *south * u.clamped([0, 1, 0])
        + *west * u.clamped([0, 0, -1])
        + *east * u.clamped([0, 0, 1]);
}

/// A coarse grid from one that is twice as fine along each dimension: the mean of eight.
#[kernel]
pub fn coarsen(item: Item<3>, (coarse, fine): (&mut f32, PartView<'_, f32, 3>)) {
    let [z, y, x] = item.id().map(|at| 2 * at);
    let mut sum = 0.0;
    for dz in 0..2 {
        for dy in 0..2 {
            for dx in 0..2 {
                sum += fine[[z + dz, y + dy, x + dx]];
            }
        }
    }
    *coarse = 0.125 * sum;
}

/// A fine grid gets what the coarse one has there.
#[kernel]
pub fn refine(item: Item<3>, (fine, coarse): (&mut f32, PartView<'_, f32, 3>)) {
    *fine += coarse[item.id().map(|at| at / 2)];
}

/// Ways from everywhere to everywhere, if one may go by way of a node, to which and from which ways are so long.
#[kernel]
pub fn shorten(
    item: Item<2>,
    (way, from, to): (&mut f32, PartView<'_, f32, 1>, PartView<'_, f32, 1>),
) {
    let [start, end] = item.id();
    *way = f32::min(*way, to[start] + from[end]);
}

/// The nearest of some centres.
#[kernel]
pub fn nearest_centre(
    _item: Item<1>,
    (nearest, point, centres): (&mut u32, &[f32; 4], WholeView<'_, [f32; 4], 1>),
) {
    let mut best = (f32::MAX, 0);
    for at in 0..centres.range()[0] {
        let mut distance = 0.0;
        for dim in 0..4 {
            let along = point[dim] - centres[at][dim];
            distance += along * along;
        }
        if distance < best.0 {
            best = (distance, at as u32);
        }
    }
    *nearest = best.1;
}

/// Entries of each row of a sparse matrix.
pub const ENTRIES: usize = 27;

/// Columns of a matrix for a cube of cells, whose rows see those around them: three by three by three, `side` cells and a plane of them
/// apart.
#[kernel]
pub fn cube_columns(item: Item<1>, column: &mut u32, cells: u32, side: u32) {
    let (row, nth) = ((item[0] / ENTRIES) as u32, (item[0] % ENTRIES) as u32);
    let ahead = (nth / 9 * side + nth / 3 % 3) * side + nth % 3;
    *column = (row + ahead) % cells;
}

/// A row of the matrix times a vector.
#[kernel]
pub fn multiply_rows(
    item: Item<1>,
    (y, columns, values, x): (
        &mut f32,
        PartView<'_, u32, 1>,
        PartView<'_, f32, 1>,
        WholeView<'_, f32, 1>,
    ),
) {
    let (columns, values, x) = (columns.deferred(), values.deferred(), x.deferred());
    let start = ENTRIES * item[0];
    let mut sum = 0.0;
    for at in start..start + ENTRIES {
        sum += values[at] * x[columns[at] as usize];
    }
    *y = sum;
}
