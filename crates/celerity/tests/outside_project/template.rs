//! The project to begin with, in a place of its own: it builds with kernels for devices, runs and
//! computes.
//!
//! Guards what no test inside the workspace can see: that the prelude alone is enough to write a
//! program, that nothing is borrowed from the workspace (features, profiles, Cargo settings), and
//! that feature `cuda` needs neither a toolkit nor a driver.

use std::fs;
use std::process::Output;

use crate::project::{Project, root};

const FILES: [&str; 5] =
    ["Cargo.toml", "src/main.rs", "kernels/Cargo.toml", "kernels/build.rs", "kernels/src/lib.rs"];

#[test]
fn the_project_to_begin_with_builds_and_runs_anywhere() {
    let template = root().join("template");
    let text = |file: &'static str| (file, fs::read_to_string(template.join(file)).unwrap());
    let project = Project::new("template", FILES.map(text));
    let run = |variables: &[_]| printed(&project.cargo(&["run", "--features", "cuda"], variables));

    let on_what_there_is = run(&[]);
    assert!(on_what_there_is.starts_with("in the middle: "), "{on_what_there_is}");
    let four_devices =
        [("CELERITY_PLATFORM", "cpu"), ("CELERITY_NODES", "2"), ("CELERITY_DEVICES", "2")];
    assert_eq!(run(&four_devices), on_what_there_is);
}

fn printed(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the project failed:\n{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
