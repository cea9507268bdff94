//! `cargo xtask bundle`: programs for a machine that has GPUs and no Rust.
//!
//! Owns what goes into the folder and how small it must be. What is run there, and how it is judged,
//! is in `bundle/run.sh`; what is measured beside programs in CUDA C++, in `bundle/compare.sh`, and beside
//! what a GPU can do, in `bundle/roofline.sh`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::files::remove;
use crate::messages::{self, LinkedProgram};
use crate::runner::describe;
use crate::workspace::{Workspace, cargo};

/// What login nodes like to copy.
const MOST_BYTES: u64 = 60 << 20;

/// What is run on the other machine: everything that has a right answer.
const RUN: &str = include_str!("bundle/run.sh");

/// What is measured there, and how: of both scripts that follow.
const MEASURED: &str = include_str!("bundle/programs.sh");

/// What is run there to measure the examples beside the baselines.
const COMPARE: &str = include_str!("bundle/compare.sh");

/// What is run there to count what kernels do.
const ROOFLINE: &str = include_str!("bundle/roofline.sh");

/// What all do first.
const UNPACK: &str = include_str!("bundle/unpack.sh");

/// The scripts of a bundle, by their names.
const SCRIPTS: [(&str, &str); 5] = [
    ("run.sh", RUN),
    ("compare.sh", COMPARE),
    ("roofline.sh", ROOFLINE),
    ("programs.sh", MEASURED),
    ("unpack.sh", UNPACK),
];

/// The baselines, in the workspace, and where they go; they are compiled on the other machine.
const BASELINES: &str = "benches/baselines/cuda";

/// The programs, packed. Each is some 9 MB of which all share most, the runtime and the kernels: the
/// dictionary holds several of them.
const PROGRAMS: &str = "programs.tar.xz";

/// How they are packed: the window counts, not the effort.
const FILTER: &str = "--lzma2=preset=1,dict=64MiB";

/// What is built by one run of Cargo, optimised.
#[derive(Debug, PartialEq)]
struct Build {
    package: &'static str,
    arguments: &'static [&'static str],
    features: &'static str,
    /// Whether it can have nodes as processes: the backend alone has no part of MPI.
    knows_mpi: bool,
    /// `--example` or `--test`.
    kind: &'static str,
    programs: Vec<String>,
}

/// Everything that there is to build.
fn builds(workspace: &Workspace) -> [Build; 3] {
    let package = workspace.packages.iter().find(|package| package.name == "celerity");
    let targets = package.into_iter().flat_map(|package| &package.targets);
    let examples = targets.filter(|target| target.kind == "example");
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    [
        Build {
            package: "celerity",
            arguments: &["build"],
            features: "cublas",
            knows_mpi: true,
            kind: "--example",
            programs: examples.map(|target| target.name.clone()).collect(),
        },
        Build {
            package: "celerity-cuda",
            arguments: &["build"],
            features: "cuda",
            knows_mpi: false,
            kind: "--example",
            programs: names(&["gpu_suite", "random_programs"]),
        },
        Build {
            package: "celerity",
            arguments: &["test", "--no-run"],
            features: "cublas",
            knows_mpi: true,
            kind: "--test",
            programs: names(&["single_source", "kernel_reductions", "device_calls", "stencils"]),
        },
    ]
}

/// What is to be built of that: all, if no names are given.
fn select(mut builds: [Build; 3], names: &[String]) -> Result<[Build; 3], Error> {
    let known: Vec<_> = builds.iter().flat_map(|build| build.programs.clone()).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(name)) {
        return Err(Error::UnknownProgram { name: name.clone(), known });
    }
    if !names.is_empty() {
        builds.iter_mut().for_each(|build| build.programs.retain(|it| names.contains(it)));
    }
    Ok(builds)
}

/// Builds programs, those of these names or all, and puts them into the folder `bundle` of the target
/// directory, with scripts that run them. Returns whether all was built and is small enough.
///
/// # Errors
/// If there is no program of a name, a tool cannot be started, or a file cannot be written.
pub(crate) fn run(workspace: &Workspace, mpi: bool, names: &[String]) -> Result<bool, Error> {
    let builds = select(builds(workspace), names)?;
    let folder = workspace.target_dir.join("bundle");
    remove(&folder)?;
    let bin = folder.join("bin");
    create(&bin)?;
    for build in builds.iter().filter(|build| !build.programs.is_empty()) {
        let Some(programs) = programs(build, mpi)? else { return Ok(false) };
        for LinkedProgram { name, path, .. } in programs {
            strip(&path, &bin.join(name))?;
        }
    }
    list(&bin)?;
    if !pack(&folder)? {
        return Ok(false);
    }
    remove(&bin)?;
    copy_files(&workspace.root.join(BASELINES), &folder.join("baselines"))?;
    for (name, text) in SCRIPTS {
        write_script(&folder.join(name), text)?;
    }
    report(&folder)
}

/// Packs the programs of a bundle. Returns whether that went well; the tools have said why not.
fn pack(folder: &Path) -> Result<bool, Error> {
    let mut tar = Command::new("tar");
    tar.arg("--create").arg("--directory").arg(folder).arg("bin").stdout(Stdio::piped());
    let start = |command: &Command, source| Error::Start { program: describe(command), source };
    let mut packing = tar.spawn().map_err(|source| start(&tar, source))?;
    let archive = folder.join(PROGRAMS);
    let file = fs::File::create(&archive).map_err(|source| write_error(&archive, source))?;
    let mut xz = Command::new("xz");
    xz.args(["--stdout", FILTER]).stdout(file);
    if let Some(output) = packing.stdout.take() {
        xz.stdin(output);
    }
    let packed = xz.status().map_err(|source| start(&xz, source));
    // With the command goes its end of the pipe: without a reader `tar` ends, too.
    drop(xz);
    let listed = packing.wait().map_err(|source| start(&tar, source))?;
    Ok(packed?.success() && listed.success())
}

fn create(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(|source| write_error(folder, source))
}

/// What a build makes; `None` if it fails.
fn programs(build: &Build, mpi: bool) -> Result<Option<Vec<LinkedProgram>>, Error> {
    let mut command = cargo();
    command.args(build.arguments).args(["--package", build.package, "--release"]);
    command.args(["--features", build.features]);
    command.args(build.programs.iter().flat_map(|program| [build.kind, program]));
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

/// Prints what programs there are before they are packed.
fn list(bin: &Path) -> Result<(), Error> {
    for entry in entries(bin)? {
        println!("{:>12} bytes  {}", len(&entry)?, entry.file_name().to_string_lossy());
    }
    Ok(())
}

/// Prints what the folder takes and what to do with it; returns whether it is small enough.
fn report(folder: &Path) -> Result<bool, Error> {
    let packed = fs::metadata(folder.join(PROGRAMS));
    let packed =
        packed.map_err(|source| Error::Read { path: folder.join(PROGRAMS), source })?.len();
    let mut total = 0;
    for folder in [folder, &folder.join("baselines")] {
        for entry in entries(folder)?.iter().filter(|entry| entry.path().is_file()) {
            total += len(entry)?;
        }
    }
    println!("{packed:>12} bytes  all programs, in {PROGRAMS}");
    println!("{total:>12} bytes  in {}", folder.display());
    println!("copy the folder to a machine with GPUs, and there: ./run.sh, ./run.sh timings, or");
    println!(
        "./compare.sh, which needs an nvcc there or programs compiled by baselines/compile.sh"
    );
    if total > MOST_BYTES {
        println!("FAILED: more than {MOST_BYTES} bytes; name the programs that you need");
    }
    Ok(total <= MOST_BYTES)
}

fn len(entry: &fs::DirEntry) -> Result<u64, Error> {
    let unreadable = |source| Error::Read { path: entry.path(), source };
    Ok(entry.metadata().map_err(unreadable)?.len())
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
        let names = words(MEASURED, "programs=(", ")").into_iter();
        let compared: Vec<_> = names.filter(|name| !name.ends_with("_single")).collect();
        // Those beside kernels alone, which `kernel_cost --stencils`, `--shapes` and `--functions` measure.
        let is_program = |name: &&str| {
            !["heat", "gray_scott", "shallow_water", "means", "shapes", "functions"].contains(name)
        };
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
        let builds = builds(&Workspace::load().unwrap());
        let known =
            |name: &str| builds.iter().any(|build| build.programs.iter().any(|it| it == name));
        assert!(names.iter().all(|name| known(name)), "{names:?}");
    }

    #[test]
    fn every_program_is_run() {
        let runs = |name: &String| RUN.contains(&format!("\"$bin/{name}\""));
        for build in builds(&Workspace::load().unwrap()) {
            let left_out: Vec<_> = build.programs.iter().filter(|name| !runs(name)).collect();
            assert!(left_out.is_empty(), "run.sh leaves {left_out:?} out");
        }
    }

    #[test]
    fn names_select_programs_and_unknown_ones_are_named() {
        let workspace = Workspace::load().unwrap();
        assert_eq!(select(builds(&workspace), &[]).unwrap(), builds(&workspace));
        let names = ["wave_sim", "device_calls"].map(str::to_owned);
        let selected = select(builds(&workspace), &names).unwrap();
        let programs: Vec<_> = selected.iter().flat_map(|build| &build.programs).collect();
        assert_eq!(programs, [&names[0], &names[1]]);
        let error = select(builds(&workspace), &["wave".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("no program `wave`") && error.contains("wave_sim"), "{error}");
    }

    #[test]
    fn what_is_packed_is_unpacked_by_the_script() {
        let folder = std::env::temp_dir().join(format!("packed-{}", std::process::id()));
        create(&folder.join("bin")).unwrap();
        fs::write(folder.join("bin/one"), "a program").unwrap();
        assert!(pack(&folder).unwrap());
        fs::remove_dir_all(folder.join("bin")).unwrap();
        write_script(&folder.join("unpack.sh"), UNPACK).unwrap();
        let unpack = || Command::new(folder.join("unpack.sh")).status().unwrap().success();
        assert!(unpack());
        assert_eq!(fs::read_to_string(folder.join("bin/one")).unwrap(), "a program");
        // Again, though there is nothing to do; and where the archive is broken.
        assert!(unpack());
        fs::remove_dir_all(folder.join("bin")).unwrap();
        fs::write(folder.join(PROGRAMS), "no archive").unwrap();
        assert!(!unpack());
        fs::remove_dir_all(folder).unwrap();
    }
}
