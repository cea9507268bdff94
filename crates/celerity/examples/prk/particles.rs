//! Where particles are at the start: how many of them are in which cell, drawn as the suite draws them.
//! Knows nothing of how they move.

use std::f64::consts::PI;

use celerity_example_kernels::prk::pic::Particle;

/// How particles are spread over cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Spread {
    /// Each column has so many times the particles of the one before.
    Geometric { ratio: f64 },
    /// Columns along half a wave.
    Sinusoidal,
    /// Ever fewer from column to column: -`slope` · x + `offset` for x from 0 to 1.
    Linear { slope: f64, offset: f64 },
    /// In some columns and rows only, the last of which are included.
    Patch { columns: [u64; 2], rows: [u64; 2] },
}

impl Spread {
    /// Particles in a cell, on average, of so many in a grid of `size`².
    fn mean(self, [x, y]: [u64; 2], size: u64, particles: u64) -> f64 {
        let (size, particles) = (size as f64, particles as f64);
        match self {
            Self::Geometric { ratio } => {
                let first = particles * ((1.0 - ratio) / (1.0 - ratio.powf(size))) / size;
                first * ratio.powf(x as f64)
            }
            Self::Sinusoidal => {
                let cosine = (x as f64 * PI / size).cos();
                2.0 * cosine * cosine * particles / (size * size)
            }
            Self::Linear { slope, offset } => {
                let step = 1.0 / (size - 1.0);
                let all = offset * size - slope * 0.5 * step * size * (size - 1.0);
                particles * ((offset - slope * step * x as f64) / all) / size
            }
            Self::Patch { columns: [left, right], rows: [bottom, top] } => {
                let is_inside = (left..=right).contains(&x) && (bottom..=top).contains(&y);
                let cells = (right - left + 1) * (top - bottom + 1);
                if is_inside { particles / cells as f64 } else { 0.0 }
            }
        }
    }

    /// The particles of a grid of `size`², of which there are about as many as asked for.
    pub(crate) fn place(self, size: u64, particles: u64, k: f64, m: f64) -> Vec<Particle> {
        let mut dice = Dice::new();
        let mut placed = Vec::new();
        for x in 0..size {
            for y in 0..size {
                for _ in 0..dice.draw(self.mean([x, y], size, particles)) {
                    placed.push(Particle::at_cell([x, y], k, m, placed.len() as f64 + 1.0));
                }
            }
        }
        placed
    }
}

/// The suite's linear congruential generator.
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        Self(27_182_818_285)
    }

    fn next(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 % bound
    }

    /// A whole number around `mean`: normally distributed, or 0 or 1 where the mean is below 1.
    fn draw(&mut self, mean: f64) -> u64 {
        if mean >= 1.0 {
            let [u, v] = [0; 2].map(|_| self.next(u64::MAX) as f64 / u64::MAX as f64);
            let normal = (-2.0 * u.ln()).sqrt() * (2.0 * PI * v).cos();
            (normal * 0.15 * mean + mean + 0.5) as u64
        } else {
            let most = (mean * f64::from(u32::MAX)) as u64;
            let [_, drawn] = [0; 2].map(|_| self.next(u64::from(u32::MAX)));
            u64::from(drawn <= most)
        }
    }
}
