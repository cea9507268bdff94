//! A picture of the light: steps downwards, patches to the right. Knows nothing of
//! how it got there.

use std::path::Path;

use image::{GrayImage, ImageFormat, Luma};

use crate::support::OutputError;

/// Draws rows of `width` numbers, each row as bright as its brightest number allows:
/// what the flash leaves would be dark beside it.
///
/// # Errors
/// The picture cannot be written.
pub(crate) fn save(path: &Path, history: &[f32], width: usize) -> Result<(), OutputError> {
    let rows = history.len() / width;
    let mut picture = GrayImage::new(width as u32, rows as u32);
    for (y, row) in history.chunks_exact(width).enumerate() {
        let most = row.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
        for (x, light) in row.iter().enumerate() {
            let shade = (255.0 * (light / most).sqrt()) as u8;
            picture.put_pixel(x as u32, y as u32, Luma([shade]));
        }
    }
    picture
        .save_with_format(path, ImageFormat::Png)
        .map_err(|error| OutputError::new(path, std::io::Error::other(error)))
}
