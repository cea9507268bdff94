//! Programs whose traces are a figure: how much of scheduling runs beside kernels, and what a part of the run looks like.
//!
//! Owns how programs are run, and which part is shown. How traces are read and drawn is the business of
//! [`timeline`].

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::predicted::unpack;
use super::table::Table;
use crate::error::Error;
use crate::files::write;
use crate::mpi::program;
use crate::runner::output;
use crate::timeline::{self, TimeSlice, Trace};
use crate::workspace::Workspace;

/// As many as a node of the paper has.
const DEVICES: &str = "4";
/// Of so many runs the trace counts that has the median of what runs beside kernels: on a busy machine none is like another.
const RUNS: usize = 5;

/// A program that leaves a trace.
#[derive(Debug)]
pub(super) struct Traced {
    /// An example.
    pub(super) program: &'static str,
    pub(super) arguments: &'static [&'static str],
    /// How much is shown, in µs: where the program submits tasks and most of scheduling runs beside kernels, or most of it
    /// at all. If nothing is said, all from the first submission to the end of the last kernel.
    pub(super) shown: Option<f64>,
}

/// Where traces of runs here are left.
pub(super) fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target_dir.join("figures").join("traces")
}

/// Runs programs, and leaves their traces in `folder`. `false` if one does not build, or fails.
///
/// # Errors
/// A program that cannot be started, or a file that cannot be read or written.
pub(super) fn take(workspace: &Workspace, all: &[Traced]) -> Result<bool, Error> {
    let folder = folder(workspace);
    fs::create_dir_all(&folder).map_err(|source| Error::Write { path: folder.clone(), source })?;
    for traced in all {
        let Some(path) = program(workspace, None, "celerity", ["--example", traced.program])?
        else {
            return Ok(false);
        };
        let mut runs = Vec::new();
        for run in 0..RUNS {
            let trace = folder.join(format!("{}.{run}.json", traced.program));
            let mut command = Command::new(&path);
            command.args(traced.arguments).current_dir(&folder);
            command.env("CELERITY_DEVICES", DEVICES).env("CELERITY_TRACE", &trace);
            if output(&mut command)?.is_none() {
                return Ok(false);
            }
            runs.push((Overlap::of(&timeline::load(&trace)?).share(), trace));
        }
        runs.sort_by(|one, other| one.0.total_cmp(&other.0));
        let shares: Vec<_> = runs.iter().map(|(share, _)| format!("{share:.0} %")).collect();
        println!("{}: {} of scheduling beside kernels", traced.program, shares.join(", "));
        let (_, median) = &runs[RUNS / 2];
        let to = folder.join(traced.program).with_extension("json");
        fs::rename(median, &to).map_err(|source| Error::Write { path: to, source })?;
    }
    Ok(true)
}

/// A row per program.
///
/// # Errors
/// A trace that is not there, or is none.
pub(super) fn table(folder: &Path, all: &[Traced]) -> Result<Table, Error> {
    let columns = [
        "scheduling [µs]",
        "of it beside kernels [%]",
        "steps of scheduling",
        "some kernel runs [µs]",
        "kernels",
        "submitting [µs]",
    ];
    let mut table = Table::new("program", columns);
    for traced in all {
        let overlap = Overlap::of(&load(folder, traced)?);
        table.rows.push((traced.program.into(), overlap.row()));
    }
    Ok(table)
}

/// A picture per program, `PREFIX-PROGRAM.svg`.
///
/// # Errors
/// As [`table`], or a picture that cannot be written.
pub(super) fn draw(folder: &Path, all: &[Traced], data: &Path) -> Result<(), Error> {
    all.iter().try_for_each(|traced| {
        let trace = load(folder, traced)?;
        let window = window(&trace, traced.shown);
        println!("{}: {:.0} to {:.0} µs", traced.program, window.start, window.end);
        write(&picture_of(data, traced), &timeline::picture_of(&trace, &window))
    })
}

/// Where a program's picture is, beside the data.
pub(super) fn picture_of(data: &Path, traced: &Traced) -> PathBuf {
    let stem = data.file_stem().unwrap_or_default().to_string_lossy();
    data.with_file_name(format!("{stem}-{}.svg", traced.program))
}

/// `PROGRAM.json` in a folder, or the same compressed.
fn load(folder: &Path, traced: &Traced) -> Result<Trace, Error> {
    let plain = folder.join(traced.program).with_extension("json");
    let packed = plain.with_extension("json.gz");
    if plain.is_file() || !packed.is_file() {
        return timeline::load(&plain);
    }
    let unpacked = std::env::temp_dir().join(format!("{}-{}", std::process::id(), traced.program));
    let trace = match unpack(&packed, &unpacked)? {
        true => timeline::load(&unpacked),
        false => Err(Error::Malformed { path: packed, what: "it cannot be unpacked".into() }),
    };
    // Nobody looks for it there.
    let _ = fs::remove_file(unpacked);
    trace
}

/// What ran beside what, in µs.
#[derive(Debug, PartialEq)]
struct Overlap {
    /// The sum of what the scheduler did, and how often it did something.
    scheduling: f64,
    steps: usize,
    /// While a kernel was running.
    beside: f64,
    /// While at least one kernel was running, and how many there were.
    kernels: f64,
    launches: usize,
    submitting: f64,
}

impl Overlap {
    fn of(trace: &Trace) -> Self {
        let (scheduling, kernels) = (times(trace, is_scheduling), times(trace, is_kernel));
        let count = |is: fn(&TimeSlice) -> bool| slices(trace).filter(|slice| is(slice)).count();
        Self {
            scheduling: total(&scheduling),
            steps: count(is_scheduling),
            beside: total(&both(&scheduling, &kernels)),
            kernels: total(&kernels),
            launches: count(is_kernel),
            submitting: total(&times(trace, is_submission)),
        }
    }

    /// Of scheduling, in percent.
    fn share(&self) -> f64 {
        100.0 * self.beside / self.scheduling.max(f64::MIN_POSITIVE)
    }

    fn row(&self) -> Vec<f64> {
        let Self { scheduling, steps, kernels, launches, submitting, .. } = *self;
        let numbers =
            [scheduling, self.share(), steps as f64, kernels, launches as f64, submitting];
        numbers.map(f64::round).to_vec()
    }
}

fn is_scheduling(slice: &TimeSlice) -> bool {
    slice.category == "scheduler"
}

fn is_kernel(slice: &TimeSlice) -> bool {
    slice.category == "kernel"
}

fn is_submission(slice: &TimeSlice) -> bool {
    slice.category == "program" && !slice.name.starts_with("wait for")
}

fn slices(trace: &Trace) -> impl Iterator<Item = &TimeSlice> {
    trace.tracks.iter().flat_map(|track| &track.slices)
}

/// When there was something of a kind, in order and apart.
fn times(trace: &Trace, is: fn(&TimeSlice) -> bool) -> Vec<Range<f64>> {
    let mut all: Vec<_> = slices(trace).filter(|slice| is(slice)).map(|s| s.time.clone()).collect();
    all.sort_by(|one, other| one.start.total_cmp(&other.start));
    all.into_iter().fold(Vec::new(), |mut apart: Vec<Range<f64>>, time| {
        match apart.last_mut() {
            Some(last) if time.start <= last.end => last.end = last.end.max(time.end),
            _ => apart.push(time),
        }
        apart
    })
}

/// When there was both.
fn both(one: &[Range<f64>], other: &[Range<f64>]) -> Vec<Range<f64>> {
    let mut from = 0;
    let mut found = Vec::new();
    for time in one {
        while other.get(from).is_some_and(|next| next.end <= time.start) {
            from += 1;
        }
        let near = other[from..].iter().take_while(|next| next.start < time.end);
        found.extend(near.map(|next| next.start.max(time.start)..next.end.min(time.end)));
    }
    found
}

fn total(times: &[Range<f64>]) -> f64 {
    times.iter().fold(0.0, |sum, time| sum + (time.end - time.start))
}

/// What of a trace is shown, as [`Traced::shown`] says.
fn window(trace: &Trace, shown: Option<f64>) -> Range<f64> {
    let (submissions, kernels) = (times(trace, is_submission), times(trace, is_kernel));
    let begin = submissions.first().map_or(0.0, |time| time.start);
    let all = begin..kernels.last().map_or(begin, |time| time.end);
    let Some(length) = shown.filter(|length| *length < all.end - all.start) else { return all };
    let scheduling = times(trace, is_scheduling);
    let beside = both(&scheduling, &kernels);
    let mut best = ([0.0; 2], all);
    for time in &scheduling {
        // A little of what was before.
        let start = (time.start - 0.2 * length).max(begin);
        let window = [start..start + length];
        let found = [&beside, &scheduling].map(|times| total(&both(times, &window)));
        if found > best.0 && !both(&submissions, &window).is_empty() {
            let [window] = window;
            best = (found, window);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slice per category, from and to.
    fn trace(all: &[(&str, f64, f64)]) -> Trace {
        let slice = |(number, &(category, from, to)): (usize, &(&str, f64, f64))| {
            let dur = to - from;
            format!(
                r#"{{"ts":{from},"ph":"X","dur":{dur},"pid":0,"tid":{number},"name":"s","cat":"{category}"}}"#
            )
        };
        let lines: Vec<_> = all.iter().enumerate().map(slice).collect();
        Trace::parse(&lines.join("\n")).unwrap()
    }

    #[test]
    fn scheduling_beside_kernels_is_found() {
        let trace = trace(&[
            ("program", 0.0, 1.0),
            ("scheduler", 1.0, 3.0),
            ("scheduler", 10.0, 14.0),
            ("kernel", 2.0, 6.0),
            ("kernel", 5.0, 11.0),
            ("kernel", 13.0, 20.0),
        ]);
        let overlap = Overlap::of(&trace);
        let expected = Overlap {
            scheduling: 6.0,
            steps: 2,
            beside: 3.0,
            kernels: 16.0,
            launches: 3,
            submitting: 1.0,
        };
        assert_eq!(overlap, expected);
        assert_eq!(overlap.row(), [6.0, 50.0, 2.0, 16.0, 3.0, 1.0]);
        assert_eq!(window(&trace, None), 0.0..20.0);
    }

    #[test]
    fn what_is_shown_has_submissions_and_both() {
        let all = [
            ("program", 0.0, 1.0),
            ("program", 100.0, 103.0),
            ("scheduler", 50.0, 60.0),
            ("scheduler", 102.0, 104.0),
            ("kernel", 50.0, 110.0),
        ];
        assert_eq!(window(&trace(&all), Some(20.0)), 98.0..118.0);
        assert_eq!(window(&trace(&all), Some(200.0)), 0.0..110.0);
        assert_eq!(window(&trace(&all[..4]), None), 0.0..0.0);
        // Without anything beside kernels, where most is scheduled.
        let later = [all[0], all[1], all[2], all[3], ("kernel", 200.0, 210.0)];
        assert_eq!(window(&trace(&later), Some(60.0)), 90.0..150.0);
    }
}
