//! The project to begin with, in a place of its own: it builds with kernels for devices, runs and
//! computes.
//!
//! Guards what no test inside the workspace can see: that the prelude alone is enough to write a
//! program, that nothing is borrowed from the workspace (features, profiles, Cargo settings), and
//! that feature `cuda` needs neither a toolkit nor a driver.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const FILES: [&str; 5] =
    ["Cargo.toml", "src/main.rs", "kernels/Cargo.toml", "kernels/build.rs", "kernels/src/lib.rs"];

#[test]
fn the_project_to_begin_with_builds_and_runs_anywhere() {
    let project = Project::new();
    let on_what_there_is = printed(&project.run(&[]));
    assert!(on_what_there_is.starts_with("in the middle: "), "{on_what_there_is}");

    let four_devices =
        [("CELERITY_PLATFORM", "cpu"), ("CELERITY_NODES", "2"), ("CELERITY_DEVICES", "2")];
    assert_eq!(printed(&project.run(&four_devices)), on_what_there_is);
}

fn printed(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the project failed:\n{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A copy of `template`, removed when dropped.
struct Project {
    dir: PathBuf,
}

impl Project {
    /// Copies the project into the system's folder for temporary files: below the workspace, Cargo
    /// would find our settings on its way up.
    fn new() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
        let dir = std::env::temp_dir().join(format!("celerity-outside-{}", std::process::id()));
        for file in FILES {
            let text = fs::read_to_string(root.join("template").join(file)).unwrap();
            let copy = dir.join(file);
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            fs::write(copy, where_celerity_is(&text, &root)).unwrap();
        }
        // The same versions as in the workspace: they are known to work, and already downloaded.
        fs::copy(root.join("Cargo.lock"), dir.join("Cargo.lock")).unwrap();
        Self { dir }
    }

    /// Builds and runs the project; without the network where everything is already downloaded.
    fn run(&self, variables: &[(&str, &str)]) -> Output {
        let offline = self.cargo_run(&["--offline"], variables);
        let refused = String::from_utf8_lossy(&offline.stderr).contains("--offline");
        if refused { self.cargo_run(&[], variables) } else { offline }
    }

    fn cargo_run(&self, options: &[&str], variables: &[(&str, &str)]) -> Output {
        // Build results are kept between runs of this test, beside those of the workspace.
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside-project");
        let mut command = Command::new(env!("CARGO"));
        command.args(["run", "--quiet", "--features", "cuda", "--target-dir"]).arg(target);
        command.args(options).current_dir(&self.dir).env_remove("RUSTFLAGS");
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
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// A manifest of the template for another place; anything else as it is.
fn where_celerity_is(text: &str, root: &Path) -> String {
    let crates = format!("{}/crates/", root.display());
    text.replace("\"../../crates/", &format!("\"{crates}"))
        .replace("\"../crates/", &format!("\"{crates}"))
}
