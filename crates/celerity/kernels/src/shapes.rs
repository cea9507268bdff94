//! Kernels of many shapes, each a few lines as one writes them at first: many fields, coefficients for each cell, grids of
//! two sizes, parts that go by one index, loops over a table, a sparse matrix, columns, random numbers. The CUDA C++ baseline
//! `shapes` computes the same.

use celerity_kernel::{Item, NeighborhoodItem, PartView, PartViewMut, WholeView, kernel};

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

/// How warmth spreads in a column of air within a step, however long that is: a system of equations for all layers, each of which knows
/// its neighbours, solved from above to below and back. An item for each column, of one layer; `factors` is room to compute in.
#[kernel]
pub fn spread_in_column(
    item: Item<3>,
    (mut warmth, mut factors, spread): (
        PartViewMut<'_, f32, 3>,
        PartViewMut<'_, f32, 3>,
        PartView<'_, f32, 3>,
    ),
) {
    let mut warmth = warmth.along_mut(0, item.id());
    let layers = warmth.indices();
    let mut factors = factors.along_mut(0, item.id()).narrowed(layers.clone());
    let spread = spread.along(0, item.id()).narrowed(layers.clone());
    let (mut factor, mut above) = (0.0, 0.0);
    for layer in layers.clone() {
        let to = spread[layer];
        let part = 1.0 / (1.0 + 2.0 * to - to * factor);
        above = (warmth[layer] + to * above) * part;
        factor = to * part;
        warmth[layer] = above;
        factors[layer] = factor;
    }
    let mut below = 0.0;
    for layer in layers.rev() {
        below = warmth[layer] + factors[layer] * below;
        warmth[layer] = below;
    }
}

/// Four numbers that look random, others for each counter and key: Salmon, Moraes, Dror and Shaw, "Parallel random
/// numbers: as easy as 1, 2, 3" (2011), Philox 4 × 32 with ten rounds.
#[must_use]
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let [a, b, c, d] = counter;
        let (first, second) = (u64::from(a) * 0xd251_1f53, u64::from(c) * 0xcd9e_8d57);
        let high = |product: u64| (product >> 32) as u32;
        counter =
            [high(second) ^ b ^ key[0], second as u32, high(first) ^ d ^ key[1], first as u32];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}

/// How many of `2 * rounds` darts that are thrown at a square hit the quarter of a disc in it.
#[kernel]
pub fn throw_darts(item: Item<1>, hits: &mut u32, rounds: u32) {
    let is_hit = |x: u32, y: u32| {
        let [x, y] = [x, y].map(|word| (word >> 8) as f32 / (1 << 24) as f32);
        u32::from(x * x + y * y < 1.0)
    };
    let mut count = 0;
    for round in 0..rounds {
        let [a, b, c, d] = philox([item[0] as u32, round, 0, 0], [42, 7]);
        count += is_hit(a, b) + is_hit(c, d);
    }
    *hits = count;
}

#[cfg(test)]
mod tests {
    use super::philox;

    /// The numbers that the authors' own code tells (`kat_vectors` of Random123).
    #[test]
    fn random_numbers_are_those_of_the_authors() {
        let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        for (counter, key, expected) in [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([u32::MAX; 4], [u32::MAX; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (pi, [0xa409_3822, 0x299f_31d0], [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]),
        ] {
            assert_eq!(philox(counter, key), expected);
        }
    }
}
