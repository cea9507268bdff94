//! The colours of an alloy. Knows nothing of how it was computed, nor where pictures go.

use image::{Rgb, RgbImage};

/// How large a picture is at least, in pixels.
const LEAST: usize = 480;

/// A plane of `size`² cells: one metal dark, the other bright, and what is mixed in between.
pub(crate) fn paint(plane: &[f64], size: usize) -> RgbImage {
    let scale = LEAST.div_ceil(size).min(64);
    let side = u32::try_from(size * scale).expect("the option's type bounds the size");
    RgbImage::from_fn(side, side, |x, y| {
        colour(plane[y as usize / scale * size + x as usize / scale])
    })
}

fn colour(mixture: f64) -> Rgb<u8> {
    const METALS: [[f64; 3]; 2] = [[20.0, 45.0, 95.0], [250.0, 205.0, 120.0]];
    let share = (0.5 + 0.5 * mixture).clamp(0.0, 1.0);
    let [dark, bright] = METALS;
    Rgb(std::array::from_fn(|channel| {
        (dark[channel] + (bright[channel] - dark[channel]) * share).round() as u8
    }))
}
