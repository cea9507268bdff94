//! `cargo xtask bench instructions`: counts the instructions of fixed cases under callgrind and
//! compares them with the counts that are committed.
//!
//! Times depend on who else uses the machine, counts do not: what a change costs is seen in the
//! change itself. Counts do depend on the compiler, the C library and valgrind, so they are
//! committed with the versions of all three ([`toolchain`]) and compared under equal ones alone.
//! The cases are the business of the package `celerity-instructions`, the file that of [`table`].

mod table;
mod toolchain;

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use crate::error::Error;
use crate::runner;
use crate::workspace::{Workspace, cargo};
use table::{CountsComparison, Table};
use toolchain::CountedWith;

const PACKAGE: &str = "celerity-instructions";
const FILE: &str = "benches/instructions/counts.txt";

/// What to do with the counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CountsAction<'a> {
    /// Print them beside those that are committed.
    Show,
    /// Fail where they differ.
    Check,
    /// Commit them, for this reason.
    Bless(&'a str),
}

/// Counts all cases. Returns whether they are what is committed, where that is asked.
///
/// # Errors
/// A program that cannot be started, or a file that cannot be read or written.
pub(crate) fn run(workspace: &Workspace, purpose: CountsAction<'_>) -> Result<bool, Error> {
    let path = workspace.root.join(FILE);
    let toolchain = match CountedWith::here()? {
        Ok(toolchain) => toolchain,
        Err(missing) => {
            println!("SKIPPED instructions: {missing}");
            return Ok(matches!(purpose, CountsAction::Check));
        }
    };
    if let CountsAction::Bless(reason) = purpose {
        let Some(counts) = count(workspace)? else { return Ok(false) };
        return bless(&path, Table { toolchain, reason: reason.to_owned(), counts });
    }
    let committed = Table::load(&path)?;
    if committed.toolchain != toolchain && matches!(purpose, CountsAction::Check) {
        let Table { toolchain: theirs, .. } = committed;
        println!(
            "SKIPPED instructions: the committed counts are of {theirs}; here is {toolchain}; \
             renew them with `cargo xtask bench instructions --bless REASON`"
        );
        return Ok(true);
    }
    let Some(counts) = count(workspace)? else { return Ok(false) };
    let verdict = committed.compare(&counts);
    match purpose {
        CountsAction::Check => print!("{}", verdict.findings()),
        _ => print!("{}", verdict.all(&committed.toolchain, &toolchain)),
    }
    Ok(verdict.is_good() || !matches!(purpose, CountsAction::Check))
}

/// Writes the table, and prints what changes. A reason that is given twice is no reason.
fn bless(path: &Path, table: Table) -> Result<bool, Error> {
    if path.exists() {
        let before = Table::load(path)?;
        if before.reason == table.reason {
            let what = format!("has this reason already: {}", table.reason);
            return Err(Error::Malformed { path: path.to_owned(), what });
        }
        let verdict: CountsComparison = before.compare(&table.counts);
        print!("{}", verdict.all(&before.toolchain, &table.toolchain));
    }
    fs::write(path, table.to_string())
        .map_err(|source| Error::Write { path: path.to_owned(), source })?;
    println!("{} cases written to {}", table.counts.len(), path.display());
    Ok(true)
}

/// The instructions of each case, in order; `None` if the cases cannot be built or fail.
fn count(workspace: &Workspace) -> Result<Option<Vec<(String, u64)>>, Error> {
    let Some(program) = build(workspace)? else { return Ok(None) };
    let names = output(&mut Command::new(&program))?;
    let names: Vec<String> =
        String::from_utf8_lossy(&names.stdout).lines().map(str::to_owned).collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(vec![None; names.len()]));
    let work = || -> Result<(), Error> {
        while let Some(name) = names.get(next.fetch_add(1, Relaxed)) {
            let counted = count_case(&program, name)?;
            let at = names.iter().position(|other| other == name).expect("it is one of them");
            found.lock().expect("nobody panics")[at] = counted;
        }
        Ok(())
    };
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("nobody panics"))
    })?;
    let found = found.into_inner().expect("nobody panics");
    Ok(names.into_iter().zip(found).map(|(name, count)| Some((name, count?))).collect())
}

/// Builds the cases as the benchmarks are built, whatever flags the environment asks for.
fn build(workspace: &Workspace) -> Result<Option<PathBuf>, Error> {
    let mut command = cargo();
    command.current_dir(&workspace.root).env_remove("RUSTFLAGS");
    command.env_remove("CARGO_ENCODED_RUSTFLAGS");
    command.args(["build", "--quiet", "--profile", "bench", "--package", PACKAGE]);
    let status = command
        .status()
        .map_err(|source| Error::Start { program: runner::describe(&command), source })?;
    Ok(status.success().then(|| workspace.target_dir.join("release").join(PACKAGE)))
}

/// What of the C library chooses by what the processor can: the same on all of them.
const SAME_EVERYWHERE: &str = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX2_Usable,-AVX,-ERMS,\
                               -FSRM,-AVX_Fast_Unaligned_Load,-SSE4_2,-SSE4_1,-SSSE3,-BMI2,-RTM";

/// The instructions of a case, without an environment, which would be on its stack.
fn count_case(program: &Path, name: &str) -> Result<Option<u64>, Error> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"]);
    command.arg("--toggle-collect=*counted*").arg(program).arg(name);
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env_clear().env("PATH", path).env("GLIBC_TUNABLES", SAME_EVERYWHERE);
    let output = output(&mut command)?;
    let text = String::from_utf8_lossy(&output.stderr);
    let counted = output.status.success().then(|| collected(&text)).flatten();
    if counted.is_none() {
        eprintln!("{name} cannot be counted:\n{text}");
    }
    Ok(counted)
}

/// The figure in valgrind's line `==123== Collected : 4567`.
fn collected(text: &str) -> Option<u64> {
    let figure = text.lines().find_map(|line| line.split_once("Collected :"))?.1;
    figure.trim().parse().ok().filter(|&count| count > 0)
}

fn output(command: &mut Command) -> Result<Output, Error> {
    command.output().map_err(|source| Error::Start { program: runner::describe(command), source })
}

#[cfg(test)]
mod tests {
    use super::{FILE, Table, collected};
    use crate::workspace::Workspace;

    #[test]
    fn valgrinds_figure_is_found_among_its_lines() {
        let text = "==7== Events    : Ir\n==7== Collected : 90273\n==7== \n";
        assert_eq!(collected(text), Some(90_273));
        assert_eq!(collected("==7== Collected : 0\n"), None, "nothing was counted");
        assert_eq!(collected("valgrind: no such file"), None);
    }

    #[test]
    fn the_committed_counts_can_be_read() {
        let workspace = Workspace::load().unwrap();
        let table = Table::load(&workspace.root.join(FILE)).unwrap();
        assert!(table.counts.len() > 50 && table.reason.len() > 10);
    }
}
