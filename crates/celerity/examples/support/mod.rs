//! What example programs need around their computation: output paths that
//! are tried before any work is done, and a progress bar. Knows nothing of
//! what is computed.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// An output file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write \"{}\": {source}; choose another path or make it writable", .path.display())]
pub(crate) struct OutputError {
    path: PathBuf,
    source: io::Error,
}

impl OutputError {
    /// What went wrong with `path`.
    pub(crate) fn new(path: &Path, source: impl Into<io::Error>) -> Self {
        Self { path: path.to_owned(), source: source.into() }
    }
}

/// Opens `path` for writing and leaves everything as it was, so that a bad path
/// is found before the work and not after it.
///
/// # Errors
/// Whatever the operating system says against opening the file.
pub(crate) fn check_writable(path: &Path) -> Result<(), OutputError> {
    let existed = path.exists();
    let attempt = OpenOptions::new().append(true).create(true).open(path);
    let outcome = match attempt {
        Ok(_) if existed => Ok(()),
        Ok(_) => fs::remove_file(path).or_else(|error| match error.kind() {
            // Another node tries the same path, and was faster.
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        }),
        Err(error) => Err(error),
    };
    outcome.map_err(|source| OutputError::new(path, source))
}

/// A bar over `steps` on standard error; invisible on all nodes but the root.
///
/// It counts submitted steps. Submission blocks while the runtime has a bounded
/// number of horizons outstanding, so the bar is never far ahead of the work.
pub(crate) fn progress_bar(steps: u64, is_root: bool) -> ProgressBar {
    let target = if is_root { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template("{bar:40} step {pos}/{len}, {per_sec}, {eta} left")
        .expect("the template is constant and valid");
    ProgressBar::with_draw_target(Some(steps), target).with_style(style)
}
