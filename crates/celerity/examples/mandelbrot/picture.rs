//! The colours of points around the set. Knows nothing of how they were computed.

use std::path::Path;

use celerity_example_kernels::mandelbrot::{Complex, advance, square};
use image::{ImageFormat, Rgb, RgbImage};

use crate::support::OutputError;
use crate::{Number, Square};

/// Pixels of a side, at the most.
const SIDE: usize = 1024;

/// Points of a pixel that are looked at along a side, at the most.
const SAMPLES: usize = 3;

/// Squares of distances from 0 from which on the number of steps can be told in parts.
const FAR: f64 = 1e6;

/// Steps from the circle of radius 2 to there, about.
const FARTHER: f64 = 3.0;

/// Draws points by after how many steps they escape, those of the set in black.
pub(crate) fn save<T: Number>(
    path: &Path,
    points: &Square<T>,
    escapes: &[u32],
) -> Result<(), OutputError> {
    let side = points.size.min(SIDE);
    let first = escapes.iter().copied().min().unwrap_or(0);
    let picture = RgbImage::from_fn(side as u32, side as u32, |x, y| {
        mean(&samples(y, side, points.size), &samples(x, side, points.size), |index| {
            let steps = escapes[index[0] * points.size + index[1]];
            match steps == points.limit {
                true => [0.0; 3],
                false => colour(shade(smooth(points.place(index), steps), first)),
            }
        })
    });
    picture
        .save_with_format(path, ImageFormat::Png)
        .map_err(|error| OutputError::new(path, std::io::Error::other(error)))
}

/// Which points are looked at for a pixel, of a row or column.
fn samples(pixel: u32, side: usize, size: usize) -> Vec<usize> {
    let [begin, end] = [0, 1].map(|next| (pixel as usize + next) * size / side);
    let count = (end - begin).min(SAMPLES);
    (0..count).map(|at| begin + at * (end - begin) / count).collect()
}

/// The mean of colours, as light: about the square of what is stored.
fn mean(rows: &[usize], columns: &[usize], colour: impl Fn([usize; 2]) -> [f64; 3]) -> Rgb<u8> {
    let mut light = [0.0; 3];
    for (&row, &column) in
        rows.iter().flat_map(|row| columns.iter().map(move |column| (row, column)))
    {
        let colour = colour([row, column]);
        light = std::array::from_fn(|channel| light[channel] + colour[channel].powi(2));
    }
    let count = (rows.len() * columns.len()) as f64;
    Rgb(light.map(|light| (255.0 * (light / count).sqrt()).round() as u8))
}

/// After how many steps c escapes, in parts of steps: how far out it is then says how much too late
/// it was seen.
fn smooth<T: Number>(c: Complex<T>, steps: u32) -> f64 {
    let (mut z, mut taken) = ([T::default(); 2], 0);
    // A few steps farther out; some more, should it have escaped earlier than here.
    while taken < steps + 32 && square(z).into() < FAR {
        z = advance(z, c);
        taken += 1;
    }
    f64::from(taken) + 1.0 - (square(z).into().ln() / FAR.ln()).log2().clamp(0.0, 1.0)
}

/// Where on the wheel of colours a number of steps is: each time around takes more of them, from the
/// first on that there are.
fn shade(steps: f64, first: u32) -> f64 {
    let first = f64::from(first) + FARTHER;
    0.45 * ((steps + 4.0) / (first + 4.0)).ln()
}

/// Colours around the wheel, from 0 to 1: blue, white, orange, and nearly black.
const WHEEL: [(f64, [f64; 3]); 6] = [
    (0.0, [0.0, 0.027, 0.392]),
    (0.16, [0.125, 0.42, 0.796]),
    (0.42, [0.929, 1.0, 1.0]),
    (0.6425, [1.0, 0.667, 0.0]),
    (0.8575, [0.05, 0.01, 0.08]),
    (1.0, [0.0, 0.027, 0.392]),
];

/// The colour of a place on the wheel.
fn colour(at: f64) -> [f64; 3] {
    let at = at.rem_euclid(1.0);
    let next = WHEEL.iter().position(|&(end, _)| at < end).unwrap_or(WHEEL.len() - 1);
    let ((begin, from), (end, to)) = (WHEEL[next - 1], WHEEL[next]);
    let part = (at - begin) / (end - begin);
    // Without corners at the colours above.
    let part = part * part * (3.0 - 2.0 * part);
    std::array::from_fn(|channel| from[channel] + (to[channel] - from[channel]) * part)
}
