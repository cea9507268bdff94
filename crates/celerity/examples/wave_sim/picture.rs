//! The colours of the field. Knows nothing of how it was computed, nor where pictures go.

use image::{Rgb, RgbImage};

/// Troughs blue, rest white, crests red. Every frame uses its own scale, since
/// waves get flatter as they spread.
pub(crate) fn paint(field: &[f32], size: usize) -> RgbImage {
    let highest = field.iter().fold(f32::MIN_POSITIVE, |highest, cell| highest.max(cell.abs()));
    let side = u32::try_from(size).expect("the option's type bounds the size");
    RgbImage::from_fn(side, side, |x, y| colour(field[y as usize * size + x as usize] / highest))
}

/// The colour of a height between -1 and 1. The square root brings out faint
/// waves beside strong ones.
fn colour(height: f32) -> Rgb<u8> {
    const WHITE: [f32; 3] = [247.0, 247.0, 247.0];
    const RED: [f32; 3] = [165.0, 10.0, 35.0];
    const BLUE: [f32; 3] = [15.0, 60.0, 140.0];
    let strength = height.abs().sqrt().min(1.0);
    let full = if height < 0.0 { BLUE } else { RED };
    Rgb(std::array::from_fn(|channel| {
        (WHITE[channel] + (full[channel] - WHITE[channel]) * strength).round() as u8
    }))
}
