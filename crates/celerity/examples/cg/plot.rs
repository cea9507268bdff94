//! Residuals as a picture: the step to the right, the logarithm of the residual upwards.

use image::{Rgb, RgbImage};

const SIZE: [u32; 2] = [640, 400];
const MARGIN: u32 = 20;
const PAPER: Rgb<u8> = Rgb([250, 250, 248]);
const LINES: Rgb<u8> = Rgb([215, 215, 215]);
const FRAME: Rgb<u8> = Rgb([90, 90, 90]);
const CURVE: Rgb<u8> = Rgb([190, 40, 30]);

/// Draws residuals, relative to the first, at the steps where they were looked at. There is a line
/// for each power of ten.
pub(crate) fn convergence(residuals: &[(u32, f64)]) -> RgbImage {
    let mut picture = RgbImage::from_pixel(SIZE[0], SIZE[1], PAPER);
    let logarithms = || residuals.iter().map(|&(_, residual)| residual.max(1e-300).log10());
    let lowest = logarithms().fold(-1.0, f64::min).floor();
    let highest = logarithms().fold(0.0, f64::max).ceil();
    let last_step = residuals.iter().map(|&(step, _)| step).max().unwrap_or(0).max(1);
    let [width, height] = SIZE.map(|size| f64::from(size - 1 - 2 * MARGIN));
    let right = |step: u32| f64::from(MARGIN) + width * f64::from(step) / f64::from(last_step);
    let down = |log: f64| f64::from(MARGIN) + height * (highest - log) / (highest - lowest);
    let [left_edge, right_edge] = [0, last_step].map(right);
    for decade in lowest as i64..=highest as i64 {
        let y = down(decade as f64);
        line(&mut picture, [left_edge, y], [right_edge, y], LINES);
    }
    let [top, bottom] = [highest, lowest].map(down);
    line(&mut picture, [left_edge, top], [left_edge, bottom], FRAME);
    line(&mut picture, [left_edge, bottom], [right_edge, bottom], FRAME);
    let points: Vec<_> = residuals
        .iter()
        .zip(logarithms())
        .map(|(&(step, _), log)| [right(step), down(log)])
        .collect();
    points.windows(2).for_each(|pair| line(&mut picture, pair[0], pair[1], CURVE));
    points.iter().for_each(|&at| dot(&mut picture, at));
    picture
}

fn line(picture: &mut RgbImage, from: [f64; 2], to: [f64; 2], color: Rgb<u8>) {
    let length = (to[0] - from[0]).abs().max((to[1] - from[1]).abs());
    let steps = length.ceil().max(1.0) as u32;
    for step in 0..=steps {
        let share = f64::from(step) / f64::from(steps);
        let at = [0, 1].map(|axis| from[axis] + share * (to[axis] - from[axis]));
        put(picture, at, color);
    }
}

fn dot(picture: &mut RgbImage, [x, y]: [f64; 2]) {
    for offset in [[-1.0, 0.0], [0.0, -1.0], [0.0, 0.0], [0.0, 1.0], [1.0, 0.0]] {
        put(picture, [x + offset[0], y + offset[1]], CURVE);
    }
}

/// Colours a pixel; points lie between the margins.
fn put(picture: &mut RgbImage, at: [f64; 2], color: Rgb<u8>) {
    let [x, y] = at.map(|place| place.round() as u32);
    picture.put_pixel(x, y, color);
}
