//! The wave equation on a square with reflecting edges, cell by cell. The
//! kernels and the sequential reference share these functions, which is why
//! their results can be compared bit for bit. Knows nothing of the runtime.

/// `(c Δt / Δx)²`, the square of the Courant number; at most 0.5 is stable.
const COURANT_SQUARED: f32 = 0.25;

/// Where drops fall into the resting water, in fractions of the side: row,
/// column, height.
const DROPS: [[f32; 3]; 3] = [[0.30, 0.36, 1.0], [0.62, 0.70, -0.8], [0.72, 0.24, 0.6]];

/// A drop's radius as a fraction of the side.
const DROP_RADIUS: f32 = 1.0 / 48.0;

/// A cell and its neighbours along both axes: values, or rows of values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Star<T> {
    pub(crate) centre: T,
    pub(crate) north: T,
    pub(crate) south: T,
    pub(crate) west: T,
    pub(crate) east: T,
}

impl<T> Star<T> {
    /// What `at` finds at each offset (rows down, columns right) from the centre.
    #[inline]
    pub(crate) fn around(at: impl Fn([isize; 2]) -> T) -> Self {
        Self {
            centre: at([0, 0]),
            north: at([-1, 0]),
            south: at([1, 0]),
            west: at([0, -1]),
            east: at([0, 1]),
        }
    }
}

/// The height of the water at a cell of the `size`² field, at the start.
pub(crate) fn initial([y, x]: [usize; 2], size: usize) -> f32 {
    let side = size as f32;
    let height = |[row, column, height]: [f32; 3]| {
        let (dy, dx) = (y as f32 / side - row, x as f32 / side - column);
        height * (-(dy * dy + dx * dx) / (2.0 * DROP_RADIUS * DROP_RADIUS)).exp()
    };
    DROPS.into_iter().map(height).sum()
}

/// A cell's height after the first step: the water starts at rest.
pub(crate) fn first(star: Star<f32>) -> f32 {
    star.centre + 0.5 * acceleration(star)
}

/// A cell's height after a step, from those after the previous two steps.
pub(crate) fn next(before: f32, star: Star<f32>) -> f32 {
    2.0 * star.centre - before + acceleration(star)
}

/// [`next`] for a run of cells; `row` holds the heights of two steps ago.
pub(crate) fn next_row(row: &mut [f32], star: Star<&[f32]>) {
    // Slices of one visible length let the compiler drop the bounds checks and
    // vectorise the loop.
    let len = row.len();
    let Star { centre, north, south, west, east } = star;
    let (centre, north, south) = (&centre[..len], &north[..len], &south[..len]);
    let (west, east) = (&west[..len], &east[..len]);
    for (i, cell) in row.iter_mut().enumerate() {
        let star = Star {
            centre: centre[i],
            north: north[i],
            south: south[i],
            west: west[i],
            east: east[i],
        };
        *cell = next(*cell, star);
    }
}

/// The field of `size`² cells after `steps` steps, by plain loops: the twin
/// that `--verify` compares with. O(size² · steps).
pub(crate) fn reference(size: usize, steps: u64) -> Vec<f32> {
    let cells = || (0..size).flat_map(|y| (0..size).map(move |x| [y, x]));
    let mut current: Vec<f32> = cells().map(|cell| initial(cell, size)).collect();
    let mut other = vec![0.0; size * size];
    for step in 0..steps {
        for [y, x] in cells() {
            let star = star_at(&current, size, [y, x]);
            let cell = &mut other[y * size + x];
            *cell = if step == 0 { first(star) } else { next(*cell, star) };
        }
        std::mem::swap(&mut current, &mut other);
    }
    current
}

fn acceleration(star: Star<f32>) -> f32 {
    let Star { centre, north, south, west, east } = star;
    COURANT_SQUARED * (north + south + west + east - 4.0 * centre)
}

fn star_at(field: &[f32], size: usize, [y, x]: [usize; 2]) -> Star<f32> {
    let at = |y: usize, x: usize| field[y * size + x];
    let last = size - 1;
    Star {
        centre: at(y, x),
        north: at(y.saturating_sub(1), x),
        south: at((y + 1).min(last), x),
        west: at(y, x.saturating_sub(1)),
        east: at(y, (x + 1).min(last)),
    }
}
