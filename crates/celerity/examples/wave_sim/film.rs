//! Pictures of the field: their names, their colours, and what went wrong in
//! writing them. Knows nothing of how the field was computed.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use image::{ImageFormat, Rgb, RgbImage};

use crate::support::{OutputError, check_writable};

/// The pictures of one run, written by host tasks while the simulation goes on.
#[derive(Debug)]
pub(crate) struct Film {
    paths: Vec<PathBuf>,
    size: usize,
    failure: Mutex<Option<OutputError>>,
}

impl Film {
    /// A film of `frames` pictures of `size`² cells: `out` itself if it is one,
    /// `out` with `_000`, `_001`, … before the extension if they are more.
    pub(crate) fn new(out: &Path, frames: usize, size: usize) -> Self {
        let paths = match frames {
            1 => vec![out.to_owned()],
            _ => (0..frames).map(|frame| numbered(out, frame)).collect(),
        };
        Self { paths, size, failure: Mutex::new(None) }
    }

    /// The pictures' paths, in order.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Tries all paths.
    ///
    /// # Errors
    /// The first path that cannot be written.
    pub(crate) fn check_writable(&self) -> Result<(), OutputError> {
        self.paths.iter().try_for_each(|path| check_writable(path))
    }

    /// Writes a frame of `size`² heights, row by row. A failure is kept for
    /// [`finish`](Self::finish): the simulation need not stop for it.
    pub(crate) fn shoot(&self, frame: usize, field: &[f32]) {
        let path = &self.paths[frame];
        if let Err(error) = paint(field, self.size).save_with_format(path, ImageFormat::Png) {
            let error = OutputError::new(path, std::io::Error::other(error));
            self.failure.lock().expect("no painter panics").get_or_insert(error);
        }
    }

    /// Says how the writing went.
    ///
    /// # Errors
    /// The first picture that could not be written.
    pub(crate) fn finish(&self) -> Result<(), OutputError> {
        match self.failure.lock().expect("no painter panics").take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

fn numbered(out: &Path, frame: usize) -> PathBuf {
    let stem = out.file_stem().unwrap_or_default().to_string_lossy();
    let extension = out.extension().map_or("png".into(), |extension| extension.to_string_lossy());
    out.with_file_name(format!("{stem}_{frame:03}.{extension}"))
}

/// Troughs blue, rest white, crests red. Every frame uses its own scale, since
/// waves get flatter as they spread.
fn paint(field: &[f32], size: usize) -> RgbImage {
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
