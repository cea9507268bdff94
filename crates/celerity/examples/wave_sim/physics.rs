//! The sequential twin of the simulation. It shares the kernels' functions, which
//! is why results can be compared bit for bit. Knows nothing of the runtime.

use celerity_example_kernels::wave::{Star, first, initial, next};

/// `(c Δt / Δx)²`, the square of the Courant number; at most 0.5 is stable.
pub(crate) const COURANT_SQUARED: f32 = 0.25;

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
            *cell = match step {
                0 => first(star, COURANT_SQUARED),
                _ => next(*cell, star, COURANT_SQUARED),
            };
        }
        std::mem::swap(&mut current, &mut other);
    }
    current
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
