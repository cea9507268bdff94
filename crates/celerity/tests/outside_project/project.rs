//! Projects outside of the workspace: copied to a place of their own, built and run by Cargo.
//! Knows nothing of what is in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A project in the system's folder for temporary files: below the workspace, Cargo would find
/// our settings on its way up. Removed when dropped.
pub(crate) struct Project {
    /// What is removed: the project's folder, or the one that it was made in.
    place: PathBuf,
    /// Where the project's manifest is.
    dir: PathBuf,
}

impl Project {
    /// Writes a project with these files. In manifests, paths to our crates are replaced by
    /// absolute ones.
    pub(crate) fn new<'a>(name: &str, files: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        let dir = place(name);
        for (file, text) in files {
            let path = dir.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, where_celerity_is(&text)).unwrap();
        }
        Self::at(dir.clone(), dir)
    }

    /// A project that `make` makes in a folder and returns the folder of.
    pub(crate) fn made(name: &str, make: impl FnOnce(&Path) -> PathBuf) -> Self {
        let place = place(name);
        fs::create_dir_all(&place).unwrap();
        let dir = make(&place);
        Self::at(place, dir)
    }

    fn at(place: PathBuf, dir: PathBuf) -> Self {
        // The same versions as in the workspace: they are known to work, and already downloaded.
        fs::copy(root().join("Cargo.lock"), dir.join("Cargo.lock")).unwrap();
        Self { place, dir }
    }

    /// Lets Cargo do something to the project, without the network where everything is already
    /// downloaded. The process sees no variable of ours but these.
    pub(crate) fn cargo(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        let offline = self.cargo_with(&["--offline"], arguments, variables);
        let refused = String::from_utf8_lossy(&offline.stderr).contains("--offline");
        if refused { self.cargo_with(&[], arguments, variables) } else { offline }
    }

    fn cargo_with(
        &self,
        options: &[&str],
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Output {
        // Build results are kept between runs of these tests, beside those of the workspace.
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside-project");
        let mut command = Command::new(env!("CARGO"));
        command.args(arguments).args(options).args(["--quiet", "--target-dir"]).arg(target);
        command.current_dir(&self.dir).env_remove("RUSTFLAGS").env_remove("RUST_BACKTRACE");
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("CELERITY_") && !name.starts_with("CELERITY_DEVICE_RUST") {
                command.env_remove(name.as_ref());
            }
        }
        // Without debug information it builds faster.
        command.env("CARGO_PROFILE_DEV_DEBUG", "false").envs(variables.iter().copied());
        command.output().expect("the Cargo that built this test can be started")
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.place);
    }
}

fn place(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("celerity-{name}-{}", std::process::id()))
}

/// The workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A manifest for another place; anything else as it is.
fn where_celerity_is(text: &str) -> String {
    let crates = format!("{}/crates/", root().display());
    text.replace("\"../../crates/", &format!("\"{crates}"))
        .replace("\"../crates/", &format!("\"{crates}"))
}
