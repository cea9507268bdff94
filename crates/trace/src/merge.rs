//! One trace of several: each process of a run writes a part, and when all have
//! ended, one of them joins the parts. Reads lines and their times, nothing else.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::encode::{CLOCK_NAME, END, Micros, TIME_KEY};
use crate::error::TraceError;

/// Where the process with this first node leaves its part of the trace at `path`:
/// beside it, as `trace.json.N3`.
#[must_use]
pub fn part_of(path: &Path, node: u64) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".N{node}"));
    name.into()
}

/// Whether a file is there and ends as a trace does.
#[must_use]
pub fn is_complete(part: &Path) -> bool {
    let end = |mut file: File| {
        let mut end = [0; END.len()];
        file.seek(SeekFrom::End(-(END.len() as i64)))?;
        file.read_exact(&mut end)?;
        Ok::<_, io::Error>(end)
    };
    File::open(part).and_then(end).is_ok_and(|end| end == *END)
}

/// Where a trace that several processes write goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceTarget {
    /// To this file, symbolic links followed: parts lie [beside](part_of) it, and are joined.
    File(PathBuf),
    /// To what is there and no file, such as a device or a pipe: it cannot be replaced, and
    /// nothing belongs beside it. Each process opens it for itself.
    Other,
}

impl TraceTarget {
    /// What is at `path`.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        match fs::metadata(path) {
            Ok(found) if !found.is_file() => Self::Other,
            // What is not there yet is going to be a file.
            _ => Self::File(followed(path)),
        }
    }
}

/// Where symbolic links lead, also if nothing is there.
fn followed(path: &Path) -> PathBuf {
    /// As many as Linux follows.
    const MOST_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}

/// Joins parts into the trace at `path`, and removes them. A file there is replaced in one
/// step, symbolic links are followed, and anything else is opened and written. Time 0
/// of the whole is that of the part that began first, by the clocks of the
/// machines: as well as those agree.
///
/// A part whose end is missing counts as far as it goes. Returns the parts that
/// are not there, as of a process that has died early. Memory does not grow with
/// the parts.
///
/// # Errors
/// If a part cannot be read, or is none, or the trace cannot be written; then all
/// parts stay.
pub fn merge(path: &Path, parts: &[PathBuf]) -> Result<Vec<PathBuf>, TraceError> {
    let (there, missing): (Vec<_>, Vec<_>) = parts.iter().partition(|part| part.exists());
    let starts = there.iter().map(|part| start_of(part)).collect::<Result<Vec<_>, _>>()?;
    let target = TraceTarget::of(path);
    let whole = match &target {
        TraceTarget::File(file) => whole_path(file),
        TraceTarget::Other => path.to_owned(),
    };
    let file = File::create(&whole);
    let file = file.map_err(|source| TraceError::Create { path: whole.clone(), source })?;
    let mut out = Joined { file: BufWriter::new(file), path: &whole, lines: 0 };
    let earliest = starts.iter().copied().min().unwrap_or_default();
    for (part, start) in there.iter().zip(&starts) {
        // All but the first say nothing of the clock that still holds.
        let keeps_clock = *start == earliest;
        out.append(part, start - earliest, keeps_clock)?;
    }
    out.end()?;
    if let TraceTarget::File(file) = target {
        let moved = fs::rename(&whole, &file);
        moved.map_err(|source| TraceError::Write { path: file, source })?;
    }
    for part in there {
        // One that stays is no harm.
        drop(fs::remove_file(part));
    }
    Ok(missing.into_iter().cloned().collect())
}

fn whole_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".merging");
    name.into()
}

/// When a part begins, in nanoseconds since 1970.
fn start_of(part: &Path) -> Result<u128, TraceError> {
    let read = |source| TraceError::Read { path: part.to_owned(), source };
    let mut lines = BufReader::new(File::open(part).map_err(read)?).lines().take(2);
    let clock = lines.find_map(|line| line.ok().filter(|line| line.contains(CLOCK_NAME)));
    let digits = clock.as_deref().and_then(|line| line.split('"').rev().nth(1));
    let start = digits.and_then(|digits| digits.parse().ok());
    start.ok_or_else(|| TraceError::NoPart { path: part.to_owned() })
}

struct Joined<'a> {
    file: BufWriter<File>,
    path: &'a Path,
    lines: u64,
}

impl Joined<'_> {
    /// Adds the lines of a part that begins so many nanoseconds after the whole.
    fn append(&mut self, part: &Path, later: u128, keeps_clock: bool) -> Result<(), TraceError> {
        let read = |source| TraceError::Read { path: part.to_owned(), source };
        for line in BufReader::new(File::open(part).map_err(read)?).lines() {
            let line = line.map_err(read)?;
            let line = line.trim_end_matches(',');
            // Brackets of the array; or a line that was being written at the end.
            let is_whole = line.starts_with('{') && line.ends_with('}');
            if is_whole && (keeps_clock || !line.contains(CLOCK_NAME)) {
                let written = self.write(&shifted(line, later).unwrap_or_else(|| line.to_owned()));
                written.map_err(|source| self.failed(source))?;
            }
        }
        Ok(())
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        let before = if self.lines == 0 { "[\n" } else { ",\n" };
        self.lines += 1;
        write!(self.file, "{before}{line}")
    }

    fn end(&mut self) -> Result<(), TraceError> {
        let end: &[u8] = if self.lines == 0 { b"[]\n" } else { END };
        let ended = self.file.write_all(end).and_then(|()| self.file.flush());
        ended.map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> TraceError {
        TraceError::Write { path: self.path.to_owned(), source }
    }
}

/// The line at a later time; `None` if it has no time.
fn shifted(line: &str, later: u128) -> Option<String> {
    let (time, rest) = line.strip_prefix(TIME_KEY)?.split_once(',')?;
    let (micros, nanos) = time.split_once('.')?;
    let time = micros.parse::<u128>().ok()? * 1000 + nanos.parse::<u128>().ok()?;
    Some(format!("{TIME_KEY}{},{rest}", Micros(time + later)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shifted_and_nothing_else() {
        let line = r#"{"ts":12.034,"ph":"X","dur":1.000,"name":"ts\":9.000,"}"#;
        let later = r#"{"ts":1013.033,"ph":"X","dur":1.000,"name":"ts\":9.000,"}"#;
        assert_eq!(shifted(line, 1_000_999).as_deref(), Some(later));
        assert_eq!(shifted(r#"{"name":"thread_name"}"#, 5), None);
    }

    #[test]
    fn parts_lie_beside_the_whole() {
        assert_eq!(part_of(Path::new("a/t.json"), 3), Path::new("a/t.json.N3"));
    }
}
