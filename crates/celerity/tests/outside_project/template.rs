//! The project to begin with, as `celerity new` makes it, in a place of its own: it builds with kernels for devices, runs and
//! computes.
//!
//! Guards what no test inside the workspace can see: that the prelude alone is enough to write a
//! program, that nothing is borrowed from the workspace (features, profiles, Cargo settings), and
//! that feature `cuda` needs neither a toolkit nor a driver.

use std::process::Output;

use celerity_new::{Celerity, Name, make};

use crate::project::{Project, root};

#[test]
fn the_project_to_begin_with_builds_and_runs_anywhere() {
    let name = Name::new("to-begin-with").unwrap();
    let project = Project::made("template", |parent| {
        make(&name, parent, &Celerity::Repository(root())).unwrap()
    });
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
