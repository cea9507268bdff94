//! One trace of several: each process of a run writes a part, and when all have
//! ended, one of them joins the parts. Reads lines and their times, nothing else.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::encode::{CLOCK_NAME, END, Micros, TIME_KEY};
use crate::error::TraceError;
use crate::target::{TraceTarget, create};

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

/// What [`merge`] has made of the parts.
#[derive(Debug, Default)]
#[must_use = "a trace may be without some of its parts"]
pub struct Merged {
    /// The parts that are not there, as of a process that has died before it began one.
    pub missing: Vec<PathBuf>,
    /// Why other parts are not in the trace, or not up to their ends. They stay.
    pub left_out: Vec<TraceError>,
}

/// Joins parts into the trace at `path`, and removes them. A file there is replaced in one
/// step, symbolic links are followed, and anything else is opened and written. Time 0
/// of the whole is that of the part that began first, by the clocks of the
/// machines: as well as those agree.
///
/// A part whose end is missing counts up to the last record that is there as a whole. One
/// that cannot be used keeps none of the others from being joined. Memory does not grow
/// with the parts.
///
/// # Errors
/// If the trace cannot be written; then all parts stay.
pub fn merge(path: &Path, parts: &[PathBuf]) -> Result<Merged, TraceError> {
    let mut merged = Merged::default();
    let mut joined = Vec::new();
    for part in parts {
        match start_of(part) {
            Ok(start) => joined.push((part.as_path(), start)),
            Err(TraceError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                merged.missing.push(part.clone());
            }
            Err(error) => merged.left_out.push(error),
        }
    }
    let target = TraceTarget::of(path);
    let whole = match &target {
        TraceTarget::File(file) => whole_path(file),
        TraceTarget::Other => path.to_owned(),
    };
    let used = join(&whole, joined, &mut merged.left_out).inspect_err(|_| {
        if let TraceTarget::File(_) = target {
            // It is of no use, and takes what space there is.
            drop(fs::remove_file(&whole));
        }
    })?;
    if let TraceTarget::File(file) = target {
        let moved = fs::rename(&whole, &file);
        moved.map_err(|source| TraceError::Write { path: file, source })?;
    }
    for part in used {
        // One that stays is no harm.
        drop(fs::remove_file(part));
    }
    Ok(merged)
}

/// Writes parts with their starts to the file `whole`. Returns those that are in it to
/// their ends, and adds the others to `left_out`.
fn join<'p>(
    whole: &Path,
    parts: Vec<(&'p Path, u128)>,
    left_out: &mut Vec<TraceError>,
) -> Result<Vec<&'p Path>, TraceError> {
    let file = create(whole);
    let file = file.map_err(|source| TraceError::Create { path: whole.to_owned(), source })?;
    let mut out = Joined { file: BufWriter::new(file), path: whole, lines: 0 };
    let earliest = parts.iter().map(|(_, start)| *start).min().unwrap_or_default();
    let mut used = Vec::new();
    for (part, start) in parts {
        // All but the first say nothing of the clock that still holds.
        let keeps_clock = start == earliest;
        match out.append(part, start - earliest, keeps_clock) {
            Ok(()) => used.push(part),
            Err(error @ TraceError::Read { .. }) => left_out.push(error),
            Err(error) => return Err(error),
        }
    }
    out.end()?;
    Ok(used)
}

fn whole_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".merging");
    name.into()
}

/// When a part begins, in nanoseconds since 1970.
fn start_of(part: &Path) -> Result<u128, TraceError> {
    let read = |source| TraceError::Read { path: part.to_owned(), source };
    let lines = BufReader::new(File::open(part).map_err(read)?).split(b'\n').take(2);
    let lines = lines.collect::<io::Result<Vec<_>>>().map_err(read)?;
    let mut lines = lines.iter().filter_map(|line| str::from_utf8(line).ok());
    let clock = lines.find(|line| line.contains(CLOCK_NAME));
    let digits = clock.and_then(|line| line.split('"').rev().nth(1));
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
        let mut lines = BufReader::new(File::open(part).map_err(read)?);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).map_err(read)? > 0 {
            if let Some(record) = record_of(&line)
                && (keeps_clock || !record.contains(CLOCK_NAME))
            {
                let written = match shifted(record, later) {
                    Some(record) => self.write(&record),
                    None => self.write(record),
                };
                written.map_err(|source| self.failed(source))?;
            }
            line.clear();
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

/// What a line of a part records; `None` if it is a bracket of the array, or was cut off.
fn record_of(line: &[u8]) -> Option<&str> {
    let line = str::from_utf8(line).ok()?;
    let record = line.trim_end().trim_end_matches(',');
    // What follows a line is written after it, so that only the last one may be cut.
    let is_whole = if line.ends_with('\n') { record.ends_with('}') } else { is_object(record) };
    (record.starts_with('{') && is_whole).then_some(record)
}

/// Whether what begins as a JSON object is one up to its end.
fn is_object(text: &str) -> bool {
    let (mut depth, mut in_string, mut is_escaped) = (0_u32, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            b'{' if !in_string => depth += 1,
            b'}' if !in_string => match depth {
                0 => return false,
                1 => return at + 1 == text.len(),
                _ => depth -= 1,
            },
            _ => {}
        }
    }
    false
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

    /// Of a line, nothing that is shorter passes for it.
    #[test]
    fn a_last_line_is_whole_or_none() {
        let line = r#"{"ts":1.000,"ph":"X","name":"a } \" \\","args":{"box":"{[0..é]}"}}"#;
        let bytes = line.as_bytes();
        for end in 0..bytes.len() {
            assert_eq!(record_of(&bytes[..end]), None, "{end} bytes");
        }
        for end in ["", ",", ",\n", "\n"] {
            assert_eq!(record_of(format!("{line}{end}").as_bytes()), Some(line), "{end:?}");
        }
        for bracket in ["[\n", "]\n", "\n", ","] {
            assert_eq!(record_of(bracket.as_bytes()), None, "{bracket:?}");
        }
    }

    #[test]
    fn parts_lie_beside_the_whole() {
        assert_eq!(part_of(Path::new("a/t.json"), 3), Path::new("a/t.json.N3"));
    }
}
