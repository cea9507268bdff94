//! Folders that tests write to.

use std::fs;
use std::path::{Path, PathBuf};

/// A new folder, removed when dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// `test` is unique among the tests of this program.
    pub(crate) fn new(test: &str) -> Self {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
