//! A project outside of this workspace can depend on the facade: it builds, runs and computes.
//!
//! Guards what no test inside the workspace can see: that the prelude alone is enough to write a
//! program, and that nothing is borrowed from the workspace (features, profiles, Cargo settings).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAM: &str = r#"
use celerity::prelude::*;

fn main() -> celerity::Result<()> {
    celerity::run(|queue| {
        let n = 64;
        let u = queue.buffer::<f32, 2>([n, n]).named("u");
        queue.task("fill").parallel_for([n, n], u.write(one_to_one()), move |item, u| {
            let [y, x] = item.id();
            *u = (100 * y + x) as f32;
        })?;
        let field = queue.fence(&u)?.wait()?;
        println!("u[3, 4] = {}", field[[3, 4]]);
        Ok(())
    })
}
"#;

#[test]
fn a_project_outside_of_the_workspace_builds_and_runs() {
    let project = Project::new();
    let output = project.run();
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the outside project failed:\n{errors}");
    assert_eq!(printed.trim_end(), "u[3, 4] = 304", "stderr:\n{errors}");
}

/// A temporary Cargo project, removed when dropped.
struct Project {
    dir: PathBuf,
}

impl Project {
    /// Writes the project into the system's folder for temporary files: below the workspace, Cargo
    /// would find our settings on its way up.
    fn new() -> Self {
        let facade = Path::new(env!("CARGO_MANIFEST_DIR"));
        let dir = std::env::temp_dir().join(format!("celerity-outside-{}", std::process::id()));
        fs::create_dir_all(dir.join("src")).unwrap();
        fs::write(dir.join("Cargo.toml"), manifest(facade)).unwrap();
        fs::write(dir.join("src/main.rs"), PROGRAM).unwrap();
        // The same versions as in the workspace: they are known to work, and already downloaded.
        fs::copy(facade.join("../../Cargo.lock"), dir.join("Cargo.lock")).unwrap();
        Self { dir }
    }

    /// Builds and runs the project; without the network where everything is already downloaded.
    fn run(&self) -> Output {
        let offline = self.cargo_run(&["--offline"]);
        let refused = String::from_utf8_lossy(&offline.stderr).contains("--offline");
        if refused { self.cargo_run(&[]) } else { offline }
    }

    fn cargo_run(&self, options: &[&str]) -> Output {
        // Build results are kept between runs of this test, beside those of the workspace.
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside-project");
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(&self.dir).args(["run", "--quiet", "--target-dir"]).arg(target);
        command.args(options);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CELERITY_") {
                command.env_remove(name);
            }
        }
        command.output().expect("the Cargo that built this test can be started")
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// The manifest of a project that knows nothing but the facade. Its own `[workspace]` keeps it
/// outside of any workspace; without debug information it builds faster.
fn manifest(facade: &Path) -> String {
    format!(
        r#"[package]
name = "outside"
version = "0.1.0"
edition = "2024"

[dependencies]
celerity = {{ path = {:?} }}

[profile.dev]
debug = false

[workspace]
"#,
        facade.display().to_string()
    )
}
