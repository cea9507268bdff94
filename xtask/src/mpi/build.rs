//! Builds all programs that are launched, with the bindings of one MPI.

use std::path::PathBuf;
use std::process::Command;

use super::{Expected, Log, Mpi};
use crate::error::Error;
use crate::messages;
use crate::runner::output;
use crate::workspace::{Workspace, cargo};

/// A program that Cargo has built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) name: String,
    /// Whether it is an example of the facade.
    pub(super) is_example: bool,
    pub(super) path: PathBuf,
}

/// Builds one program of a package for what is measured, with the bindings of an MPI if there is one, and
/// returns where it lies; `None` if it does not build. Which one, as Cargo is told: `--bin` or `--example`, and a name.
///
/// # Errors
/// If Cargo cannot be run.
pub(crate) fn program(
    workspace: &Workspace,
    mpi: Option<&Mpi>,
    package: &str,
    [kind, name]: [&str; 2],
) -> Result<Option<PathBuf>, Error> {
    let mut build = cargo();
    build.current_dir(&workspace.root).args(["build", "--release", "--package", package]);
    build.args([kind, name]);
    if let Some(mpi) = mpi {
        // As in `programs`.
        let mut clean = cargo();
        clean.current_dir(&workspace.root).args(["clean", "--release", "--package", "mpi-sys"]);
        if output(&mut clean)?.is_none() {
            return Ok(None);
        }
        build.args(["--features", "mpi"]).env("MPICC", mpi.compiler);
    }
    let Some(text) = messages::of_build(&mut build)? else { return Ok(None) };
    let mut programs = messages::programs(&text).into_iter();
    Ok(programs.find(|program| program.name == name).map(|program| program.path))
}

/// Always the same packages and features, so that nothing is built twice.
const OURS: [&str; 6] = [
    "--package",
    "celerity-mpi",
    "--package",
    "celerity",
    "--features",
    "celerity-mpi/mpi,celerity/mpi",
];

/// All that is launched.
const LAUNCHED: [&str; 5] = ["--examples", "--test", "cluster", "--test", "processes"];

/// The test programs and all examples; none if they do not compile. What depends on no particular
/// MPI is done with the first one only.
pub(super) fn programs(
    mpi: &Mpi,
    workspace: &Workspace,
    first: bool,
    log: &mut Log,
) -> Result<Option<Vec<Program>>, Error> {
    // Bindings are made from the headers of one MPI, and nothing tells Cargo when that changes.
    let clean = ["clean", "--package", "mpi-sys"];
    log.run(mpi, "older bindings", command(mpi, workspace, &[&clean]), &Expected::Success)?;
    if first {
        let lints = ["--all-targets", "--", "-D", "warnings"];
        let clippy = command(mpi, workspace, &[&["clippy"], &OURS, &lints]);
        log.run(mpi, "lints", clippy, &Expected::Success)?;
        let tests = command(mpi, workspace, &[&["test"], &OURS, &["--lib"]]);
        log.run(mpi, "unit tests", tests, &Expected::Checks)?;
    }
    let build = command(mpi, workspace, &[&["build"], &OURS, &LAUNCHED]);
    match log.run(mpi, "build", build, &Expected::Success)? {
        true => built(mpi, workspace),
        false => Ok(None),
    }
}

fn command(mpi: &Mpi, workspace: &Workspace, arguments: &[&[&str]]) -> Command {
    let mut command = cargo();
    command.current_dir(&workspace.root).env("CARGO_TERM_COLOR", "never");
    command.env("MPICC", mpi.compiler).args(arguments.concat());
    command
}

/// Asks Cargo where the programs are.
fn built(mpi: &Mpi, workspace: &Workspace) -> Result<Option<Vec<Program>>, Error> {
    let mut build = command(mpi, workspace, &[&["build"], &OURS, &LAUNCHED, &["--quiet"]]);
    Ok(messages::of_build(&mut build)?.map(|text| of_messages(&text)))
}

fn of_messages(text: &str) -> Vec<Program> {
    let program = |messages::LinkedProgram { name, source, path }| {
        let is_example = source.to_string_lossy().contains("/celerity/examples/");
        Program { name, is_example, path }
    };
    messages::programs(text).into_iter().map(program).collect()
}

#[cfg(test)]
mod tests {
    use super::{Program, of_messages};

    #[test]
    fn messages_of_cargo_tell_where_programs_are() {
        let text = |source: &str, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","executable":{executable},"target":{{"name":"wave","kind":["example"],"src_path":"{source}"}}}}"#
            )
        };
        let parse = |source, executable| of_messages(&text(source, executable)).pop();
        let program = parse("crates/celerity/examples/wave.rs", "\"target/wave\"").unwrap();
        let expected =
            Program { name: "wave".to_owned(), is_example: true, path: "target/wave".into() };
        assert_eq!(program, expected);
        assert!(!parse("crates/mpi/examples/wave.rs", "\"target/wave\"").unwrap().is_example);
        assert_eq!(parse("crates/celerity/src/lib.rs", "null"), None);
        assert_eq!(of_messages("Finished"), []);
    }
}
