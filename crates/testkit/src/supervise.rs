//! Searches for bugs in a process of their own. A bug may take its process with it: it may write
//! where it must not, overflow a stack, or panic while it panics. So the search notes in a file
//! which seeds it is at, and if it dies, its parent names them, and tries each alone.
//!
//! Owns both processes' ends of that. Refuses to know what a seed stands for.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

/// Where the search shall note its seeds; set for a process that is supervised.
const NOTES: &str = "TESTKIT_NOTES";

/// Set for a process that tries a seed alone: it is to say what it dies of.
const ALONE: &str = "TESTKIT_ALONE";

/// Threads that may note a seed at a time.
const SLOTS: usize = 256;

/// The seeds that a search is at, one for each of its threads.
pub struct Notes {
    /// A word for each thread, twice: whether it is at a seed, and at which.
    file: Option<File>,
}

impl Notes {
    /// Those of a search that nobody supervises.
    #[must_use]
    pub fn nowhere() -> Self {
        Self { file: None }
    }

    /// Does `work`, which the thread of this number does for a seed. Threads beyond 256 are not
    /// noted. O(1), and a call of the system before and after.
    pub fn at<R>(&self, thread: usize, seed: u64, work: impl FnOnce() -> R) -> R {
        self.write(thread, [1, seed]);
        let result = work();
        self.write(thread, [0, 0]);
        result
    }

    fn write(&self, thread: usize, words: [u64; 2]) {
        if let Some(file) = self.file.as_ref().filter(|_| thread < SLOTS) {
            let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
            // Without notes, a death is nameless, but a search is a search.
            drop(file.write_all_at(&bytes, (thread * bytes.len()) as u64));
        }
    }

    fn read(path: &Path) -> io::Result<Vec<u64>> {
        let bytes = std::fs::read(path)?;
        let (slots, _) = bytes.as_chunks::<16>();
        let word = |half: &[u8]| half.try_into().map_or(0, u64::from_le_bytes);
        let noted = slots.iter().filter(|slot| word(&slot[..8]) != 0);
        let mut seeds: Vec<_> = noted.map(|slot| word(&slot[8..])).collect();
        seeds.sort_unstable();
        seeds.dedup();
        Ok(seeds)
    }
}

/// A search that has died.
#[derive(Debug)]
pub struct Death {
    /// How its process ended.
    pub status: ExitStatus,
    /// What its threads were at, in ascending order.
    pub seeds: Vec<u64>,
    /// Those of which the search dies also if it looks at nothing else.
    pub alone: Vec<u64>,
}

impl fmt::Display for Death {
    /// `the search died (signal: 11 (SIGSEGV)) at one of the seeds 7, 8; alone, it dies at 8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, seeds, alone } = self;
        let list =
            |seeds: &[u64]| seeds.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        write!(f, "the search died ({status}) ")?;
        match &seeds[..] {
            [] => f.write_str("between two seeds")?,
            [seed] => write!(f, "at seed {seed}")?,
            _ => write!(f, "at one of the seeds {}", list(seeds))?,
        }
        match &alone[..] {
            [] if seeds.is_empty() => Ok(()),
            [] => f.write_str("; alone, none of them lets it die"),
            alone => write!(f, "; alone, it dies at {}", list(alone)),
        }
    }
}

/// Runs `search` in a child of this process, which is this program with the same arguments, and
/// returns how it ended. If it dies, which is to end with anything but 0 or 1, `report` is told;
/// `single` are the arguments by which the program looks at one seed alone.
///
/// In the child, `search` is called, and told where to note its seeds. It is called here if there
/// cannot be a child.
pub fn supervised(
    search: impl FnOnce(&Notes) -> ExitCode,
    single: impl Fn(u64) -> Vec<String>,
    report: impl FnOnce(&Death),
) -> ExitCode {
    if let Some(path) = std::env::var_os(NOTES) {
        let file = File::options().write(true).open(path).ok();
        return search(&Notes { file });
    }
    let path = notes_path();
    let Ok(program) = File::create(&path).and_then(|_| std::env::current_exe()) else {
        return search(&Notes::nowhere());
    };
    let status =
        Command::new(&program).args(std::env::args_os().skip(1)).env(NOTES, &path).status();
    let seeds = Notes::read(&path).unwrap_or_default();
    let outcome = match status {
        Err(_) => search(&Notes::nowhere()),
        Ok(status) => match status.code() {
            Some(0) => ExitCode::SUCCESS,
            Some(1) => ExitCode::FAILURE,
            _ => {
                let dies = |seed: &u64| dies_alone(&program, &path, &single(*seed));
                let alone = seeds.iter().copied().filter(dies).collect();
                report(&Death { status, seeds, alone });
                ExitCode::FAILURE
            }
        },
    };
    drop(std::fs::remove_file(path));
    outcome
}

/// Whether this process tries a seed alone, and shall say what it dies of.
#[must_use]
pub fn is_alone() -> bool {
    std::env::var_os(ALONE).is_some()
}

fn dies_alone(program: &Path, notes: &Path, arguments: &[String]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).env(NOTES, notes).env(ALONE, "1").stdout(Stdio::null());
    command.status().is_ok_and(|status| !matches!(status.code(), Some(0 | 1)))
}

fn notes_path() -> PathBuf {
    std::env::temp_dir().join(format!("celerity-notes-{}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_are_at_can_be_read_until_they_are_done() {
        let path = std::env::temp_dir().join(format!("celerity-notes-test-{}", std::process::id()));
        let notes = Notes { file: Some(File::create(&path).unwrap()) };
        let read = || Notes::read(&path).unwrap();
        let inner = || notes.at(2, u64::MAX, || notes.at(SLOTS, 5, read));
        assert_eq!(notes.at(0, 7, inner), [7, u64::MAX]);
        assert_eq!(read(), []);
        assert_eq!(Notes::nowhere().at(0, 1, || 2), 2);
        std::fs::remove_file(&path).unwrap();
    }
}
