//! `cargo xtask bundle`: programs for a machine that has GPUs and no Rust.
//!
//! Owns what goes into the folder and how small it must be. What is run there, and how it is judged,
//! is in `bundle/run.sh`.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::error::Error;
use crate::messages::{self, Program};
use crate::runner::describe;
use crate::workspace::{Workspace, cargo};

/// What login nodes like to copy.
const MOST_BYTES: u64 = 60 << 20;

/// What is run on the other machine.
const SCRIPT: &str = include_str!("bundle/run.sh");

/// What is built, each for GPUs and optimised.
const BUILDS: [&[&str]; 4] = [
    &["build", "--package", "celerity", "--examples"],
    &["build", "--package", "celerity-cuda", "--example", "gpu_suite"],
    &["build", "--package", "celerity-cuda", "--example", "random_programs"],
    &["test", "--no-run", "--package", "celerity", "--test", "single_source"],
];

/// Builds everything, and puts it into the folder `bundle` of the target directory, with a script
/// that runs it. Returns whether all was built and is small enough.
///
/// # Errors
/// If a tool cannot be started, or a file cannot be written.
pub(crate) fn run(workspace: &Workspace, mpi: bool) -> Result<bool, Error> {
    let features = if mpi { "cuda,mpi" } else { "cuda" };
    let folder = workspace.target_dir.join("bundle");
    empty(&folder)?;
    for build in BUILDS {
        // The backend alone has no part of MPI.
        let features = if build.contains(&"celerity-cuda") { "cuda" } else { features };
        let Some(programs) = programs(build, features)? else { return Ok(false) };
        for Program { name, path, .. } in programs {
            strip(&path, &folder.join("bin").join(name))?;
        }
    }
    write_script(&folder.join("run.sh"))?;
    report(&folder)
}

fn empty(folder: &Path) -> Result<(), Error> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|source| write_error(folder, source))?;
    }
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).map_err(|source| write_error(&bin, source))
}

/// What a build makes; `None` if it fails.
fn programs(build: &[&str], features: &str) -> Result<Option<Vec<Program>>, Error> {
    let mut command = cargo();
    command.args(build).args(["--release", "--features", features]);
    Ok(messages::of_build(&mut command)?.map(|text| messages::programs(&text)))
}

/// Copies a program without what debuggers need, which is most of it.
fn strip(program: &Path, to: &Path) -> Result<(), Error> {
    let mut command = Command::new("strip");
    command.arg("-o").arg(to).arg(program);
    let status = command.status();
    let status = status.map_err(|source| Error::Start { program: describe(&command), source })?;
    if status.success() {
        return Ok(());
    }
    // It may not know the format; then the program is copied as it is.
    fs::copy(program, to).map(drop).map_err(|source| write_error(to, source))
}

fn write_script(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;

    let written = fs::write(path, SCRIPT)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o755)));
    written.map_err(|source| write_error(path, source))
}

/// Prints what there is; returns whether it is small enough.
fn report(folder: &Path) -> Result<bool, Error> {
    let bin = folder.join("bin");
    let unreadable = |source| Error::Read { path: bin.clone(), source };
    let mut total = 0;
    for entry in fs::read_dir(&bin).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let bytes = entry.metadata().map_err(unreadable)?.len();
        total += bytes;
        println!("{:>12} bytes  {}", bytes, entry.file_name().to_string_lossy());
    }
    println!("{total:>12} bytes  in {}", folder.display());
    println!("copy the folder to a machine with GPUs, and there: ./run.sh, or ./run.sh timings");
    if total > MOST_BYTES {
        println!("FAILED: more than {MOST_BYTES} bytes; leave something out");
    }
    Ok(total <= MOST_BYTES)
}

fn write_error(path: &Path, source: std::io::Error) -> Error {
    Error::Write { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_runs_only_what_is_built() {
        let run = SCRIPT.lines().filter_map(|line| line.split("\"$bin/").nth(1));
        let names: Vec<_> = run.filter_map(|rest| rest.split('"').next()).collect();
        assert!(names.len() > 4, "{names:?}");
        let workspace = Workspace::load().unwrap();
        let known = |name: &str| {
            let targets = workspace.packages.iter().flat_map(|package| &package.targets);
            targets.filter(|target| target.kind != "lib").any(|target| target.name == name)
        };
        assert!(names.iter().all(|name| known(name)), "{names:?}");
    }
}
