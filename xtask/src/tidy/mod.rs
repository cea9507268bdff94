//! `cargo xtask tidy`: rules of this repository that no compiler checks.
//!
//! Each rule is a pure function from the workspace, or the text of its files, to violations; it has
//! a test that this workspace keeps it and a test that it notices a planted fault. Owns no opinion
//! on formatting or lints: `cargo fmt` and clippy have those.

mod arrows;
mod circles;
pub(crate) mod links;
mod manifests;
mod modules;
mod names;
mod sources;
mod test_modules;
mod tokens;

use std::fmt;

use crate::error::Error;
use crate::workspace::Workspace;

/// Checks every rule and prints what breaks one. Returns whether all are kept.
///
/// # Errors
/// If a file of the workspace cannot be read.
pub(crate) fn run(workspace: &Workspace) -> Result<bool, Error> {
    let files = sources::load(&workspace.root)?;
    let violations = [
        arrows::check(&workspace.packages),
        circles::check(workspace, &files),
        links::arrive(&files, |path| workspace.root.join(path).exists()),
        manifests::lints_inherited(&files),
        manifests::readmes_present(&files),
        manifests::tests_of_programs_run(workspace, &files),
        manifests::published_with_dependencies(&workspace.packages),
        names::mean_one_thing(&files),
        sources::modules_documented(&files),
        sources::no_private_names(&files),
        sources::short_enough(&files),
        sources::nothing_unfinished(&files),
        test_modules::declared(&files),
    ]
    .concat();
    for violation in &violations {
        println!("{violation}");
    }
    println!("{} files, {} violations", files.len(), violations.len());
    Ok(violations.is_empty())
}

/// Something that breaks a rule: where, and what to do about it.
#[derive(Clone, Debug, PartialEq)]
struct Violation {
    /// A path from the root of the workspace, perhaps with a line, or a package.
    place: String,
    advice: String,
}

impl Violation {
    fn new(place: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { place: place.into(), advice: advice.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.advice)
    }
}

/// The text of every file of the repository.
#[cfg(test)]
pub(crate) fn texts(root: &std::path::Path) -> Result<Vec<String>, Error> {
    Ok(sources::load(root)?.into_iter().map(|file| file.text).collect())
}

/// Fails a test with one line for each violation.
#[cfg(test)]
#[track_caller]
fn assert_kept(violations: &[Violation]) {
    let lines: Vec<String> = violations.iter().map(Violation::to_string).collect();
    assert!(lines.is_empty(), "rules broken:\n{}", lines.join("\n"));
}
