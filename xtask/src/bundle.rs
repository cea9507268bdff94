//! `cargo xtask bundle`: programs for a machine that has GPUs and no Rust.
//!
//! Owns what goes into the folder and how small it must be. What is run there, and how it is judged,
//! is in `bundle/run.sh`; what is measured beside programs in CUDA C++, in `bundle/compare.sh`.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::error::Error;
use crate::messages::{self, LinkedProgram};
use crate::runner::describe;
use crate::workspace::{Workspace, cargo};

/// What login nodes like to copy.
const MOST_BYTES: u64 = 60 << 20;

/// What is run on the other machine: everything that has a right answer.
const RUN: &str = include_str!("bundle/run.sh");

/// What is run there to measure the examples beside the baselines.
const COMPARE: &str = include_str!("bundle/compare.sh");

/// The baselines, in the workspace, and where they go; they are compiled on the other machine.
const BASELINES: &str = "benches/baselines/cuda";

/// What is built, each optimised, and the folder that its programs go to.
struct Build {
    arguments: &'static [&'static str],
    features: &'static str,
    /// Whether it can have nodes as processes: the backend alone has no part of MPI.
    knows_mpi: bool,
    folder: &'static str,
}

const BUILDS: [Build; 4] = [
    Build {
        arguments: &["build", "--package", "celerity", "--examples"],
        features: "cublas",
        knows_mpi: true,
        folder: "bin",
    },
    Build {
        arguments: &["build", "--package", "celerity-cuda", "--example", "gpu_suite"],
        features: "cuda",
        knows_mpi: false,
        folder: "bin",
    },
    Build {
        arguments: &["build", "--package", "celerity-cuda", "--example", "random_programs"],
        features: "cuda",
        knows_mpi: false,
        folder: "bin",
    },
    Build {
        arguments: &[
            "test",
            "--no-run",
            "--package",
            "celerity",
            "--test",
            "single_source",
            "--test",
            "kernel_reductions",
            "--test",
            "device_calls",
        ],
        features: "cublas",
        knows_mpi: true,
        folder: "bin",
    },
];

/// Builds everything, and puts it into the folder `bundle` of the target directory, with scripts
/// that run it. Returns whether all was built and is small enough.
///
/// # Errors
/// If a tool cannot be started, or a file cannot be written.
pub(crate) fn run(workspace: &Workspace, mpi: bool) -> Result<bool, Error> {
    let folder = workspace.target_dir.join("bundle");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|source| write_error(&folder, source))?;
    }
    for build in &BUILDS {
        let to = folder.join(build.folder);
        create(&to)?;
        let Some(programs) = programs(build, mpi)? else { return Ok(false) };
        for LinkedProgram { name, path, .. } in programs {
            strip(&path, &to.join(name))?;
        }
    }
    copy_files(&workspace.root.join(BASELINES), &folder.join("baselines"))?;
    write_script(&folder.join("run.sh"), RUN)?;
    write_script(&folder.join("compare.sh"), COMPARE)?;
    report(&folder)
}

fn create(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(|source| write_error(folder, source))
}

/// What a build makes; `None` if it fails.
fn programs(build: &Build, mpi: bool) -> Result<Option<Vec<LinkedProgram>>, Error> {
    let mut command = cargo();
    command.args(build.arguments).args(["--release", "--features", build.features]);
    if mpi && build.knows_mpi {
        command.args(["--features", "mpi"]);
    }
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

/// Copies the files of a folder, not those of folders in it.
fn copy_files(from: &Path, to: &Path) -> Result<(), Error> {
    create(to)?;
    for entry in entries(from)? {
        let target = to.join(entry.file_name());
        if entry.path().is_file() {
            fs::copy(entry.path(), &target).map_err(|source| write_error(&target, source))?;
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<fs::DirEntry>, Error> {
    let unreadable = |source| Error::Read { path: folder.to_owned(), source };
    let entries = fs::read_dir(folder).map_err(unreadable)?;
    entries.collect::<Result<_, _>>().map_err(unreadable)
}

fn write_script(path: &Path, text: &str) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;

    let written = fs::write(path, text)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o755)));
    written.map_err(|source| write_error(path, source))
}

/// Prints what there is; returns whether it is small enough.
fn report(folder: &Path) -> Result<bool, Error> {
    let mut total = 0;
    for name in ["bin", "baselines"] {
        for entry in entries(&folder.join(name))? {
            let unreadable = |source| Error::Read { path: entry.path(), source };
            let bytes = entry.metadata().map_err(unreadable)?.len();
            total += bytes;
            println!("{bytes:>12} bytes  {name}/{}", entry.file_name().to_string_lossy());
        }
    }
    println!("{total:>12} bytes  in {}", folder.display());
    println!("copy the folder to a machine with GPUs, and there: ./run.sh, ./run.sh timings, or");
    println!(
        "./compare.sh, which needs an nvcc there or programs compiled by baselines/compile.sh"
    );
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

    /// The words of a list in a script, behind `start` and up to `end`.
    fn words(script: &'static str, start: &str, end: &str) -> Vec<&'static str> {
        let list = script.split(start).nth(1).and_then(|rest| rest.split(end).next());
        list.into_iter().flat_map(str::split_whitespace).collect()
    }

    #[test]
    fn every_program_that_is_compared_has_a_baseline_and_an_example() {
        let workspace = Workspace::load().unwrap();
        let folder = std::env::temp_dir().join(format!("bundle-{}", std::process::id()));
        copy_files(&workspace.root.join(BASELINES), &folder).unwrap();
        let script = fs::read_to_string(folder.join("compile.sh")).unwrap();
        let compiled = script.split("for program in ").nth(1).unwrap().split(';').next().unwrap();
        // One of them in two precisions, under two names.
        let names = words(COMPARE, "programs=(", ")").into_iter();
        let compared: Vec<_> = names.filter(|name| !name.ends_with("_single")).collect();
        // Those beside kernels alone, which `kernel_cost --stencils` measures.
        let is_program = |name: &&str| !["heat", "gray_scott"].contains(name);
        let compiled: Vec<_> = compiled.split_whitespace().filter(is_program).collect();
        assert_eq!(compared, compiled);
        for name in compared {
            assert!(folder.join(format!("{name}.cu")).exists(), "{name}");
            let targets = workspace.packages.iter().flat_map(|package| &package.targets);
            assert!(targets.filter(|target| target.kind == "example").any(|t| t.name == name));
        }
        for source in entries(&folder).unwrap() {
            let text = fs::read_to_string(source.path()).unwrap();
            for header in text.lines().filter_map(|line| line.strip_prefix("#include \"")) {
                let header = header.trim_end_matches('"');
                assert!(folder.join(header).exists(), "{header} of {:?}", source.path());
            }
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_script_runs_only_what_is_built() {
        let run = RUN.lines().filter_map(|line| line.split("\"$bin/").nth(1));
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
