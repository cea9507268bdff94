//! Pictures of a run: their names, and what went wrong in writing them. Knows nothing of what they
//! show.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use image::{ImageFormat, RgbImage};

use crate::support::{OutputError, check_writable};

/// The pictures of one run, written by host tasks while the simulation goes on.
#[derive(Debug)]
pub(crate) struct Film {
    paths: Vec<PathBuf>,
    failure: Mutex<Option<OutputError>>,
}

impl Film {
    /// A film of `frames` pictures: `out` itself if it is one,
    /// `out` with `_000`, `_001`, … before the extension if they are more.
    pub(crate) fn new(out: &Path, frames: usize) -> Self {
        let paths = match frames {
            1 => vec![out.to_owned()],
            _ => (0..frames).map(|frame| numbered(out, frame)).collect(),
        };
        Self { paths, failure: Mutex::new(None) }
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

    /// Whether picture number `frame` shows what there is after so many of `steps` steps: pictures
    /// are spread evenly, the last one after the last step.
    pub(crate) fn is_due(&self, frame: usize, steps_done: u64, steps: u64) -> bool {
        let frames = self.paths.len() as u128;
        u128::from(steps_done) * frames >= (frame as u128 + 1) * u128::from(steps)
    }

    /// Writes a frame. A failure is kept for [`finish`](Self::finish): the simulation need not stop
    /// for it.
    pub(crate) fn shoot(&self, frame: usize, picture: &RgbImage) {
        let path = &self.paths[frame];
        if let Err(error) = picture.save_with_format(path, ImageFormat::Png) {
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
