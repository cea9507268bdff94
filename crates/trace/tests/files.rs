//! Traces on disk: valid JSON, also when merged of parts that were cut off.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use celerity_trace::{
    Counter, Merged, TimeSlice, TraceError, TraceFile, TraceTarget, TrackId, Value, is_complete,
    merge, part_of,
};

/// How long anything that must come may take on a machine that others use as well.
const LONG: Duration = Duration::from_secs(100);

/// A folder of the test's own, gone at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn kernel(nanos: [u64; 2], id: u64) -> TimeSlice {
    let [start, end] = nanos.map(Duration::from_nanos);
    TimeSlice {
        track: TrackId::from_index(1),
        start,
        end,
        name: "step \"one\"".into(),
        category: "kernel",
        details: vec![("instruction", Value::Number(id))],
        id: Some(id),
        after: id.checked_sub(1).into_iter().collect(),
        message: None,
    }
}

/// Writes a trace of `slices` kernels of a process, one each microsecond.
fn write(path: &Path, process: u32, started: SystemTime, slices: u64) {
    let file = TraceFile::create(path, started).unwrap();
    let recorder = file.recorder(process);
    recorder.name_process("N0");
    recorder.name_track(TrackId::from_index(1), "D0");
    for id in 0..slices {
        recorder.slice(kernel([id * 1000, id * 1000 + 500], id));
    }
    let values = vec![("bytes", 7)];
    recorder.counter(Counter { at: Duration::ZERO, name: "memory".into(), values });
    file.finish().unwrap();
}

/// What follows a JSON value, or `None` if there is none.
fn after_value(text: &str) -> Option<&str> {
    let text = text.trim_start();
    match text.chars().next()? {
        '[' => after_list(&text[1..], ']', after_value),
        '{' => after_list(&text[1..], '}', |entry| {
            after_value(after_string(entry.trim_start())?.trim_start().strip_prefix(':')?)
        }),
        '"' => after_string(text),
        _ => {
            let end = text.find([',', ']', '}', '\n']).unwrap_or(text.len());
            text[..end].trim().parse::<f64>().ok().map(|_| &text[end..])
        }
    }
}

fn after_list(text: &str, end: char, entry: impl Fn(&str) -> Option<&str>) -> Option<&str> {
    let mut rest = text.trim_start();
    if let Some(rest) = rest.strip_prefix(end) {
        return Some(rest);
    }
    loop {
        rest = entry(rest)?.trim_start();
        match rest.strip_prefix(end) {
            Some(rest) => return Some(rest),
            None => rest = rest.strip_prefix(',')?,
        }
    }
}

fn after_string(text: &str) -> Option<&str> {
    let mut rest = text.strip_prefix('"')?.char_indices();
    while let Some((index, c)) = rest.next() {
        match c {
            '\\' => drop(rest.next()),
            '"' => return Some(&text[index + 2..]),
            _ => {}
        }
    }
    None
}

#[track_caller]
fn assert_all(merged: &Merged) {
    assert!(merged.missing.is_empty() && merged.left_out.is_empty(), "{merged:?}");
}

fn valid(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    assert_eq!(after_value(&text).map(str::trim), Some(""), "no JSON:\n{text}");
    text
}

#[test]
fn a_trace_is_an_array_of_lines() {
    let folder = Folder::new("array");
    let path = folder.0.join("trace.json");
    write(&path, 0, SystemTime::now(), 3000);
    let text = valid(&path);
    assert_eq!(text.matches(r#""ph":"X""#).count(), 3000);
    assert_eq!(text.matches(r#""ph":"s""#).count(), 2999, "each but the first waits for another");
}

#[test]
fn parts_are_brought_into_line_and_joined() {
    let folder = Folder::new("parts");
    let path = folder.0.join("trace.json");
    let parts = [0, 1, 2].map(|node| part_of(&path, node));
    let started = SystemTime::now();
    write(&parts[0], 0, started + Duration::from_micros(5), 2);
    write(&parts[1], 1, started, 2);
    let merged = merge(&path, &parts).unwrap();
    assert!(merged.missing == [parts[2].clone()] && merged.left_out.is_empty(), "{merged:?}");
    let text = valid(&path);
    let starts = |process: u32| -> Vec<&str> {
        let of_process = format!(r#""pid":{process},"#);
        let slices = text.lines().filter(|line| line.contains(r#""ph":"X""#));
        let slices = slices.filter(|line| line.contains(&of_process));
        slices.map(|line| line[6..].split(',').next().unwrap()).collect()
    };
    assert_eq!((starts(0), starts(1)), (vec!["5.000", "6.000"], vec!["0.000", "1.000"]));
    assert_eq!(text.matches("celerity_clock").count(), 1);
    assert!(parts.iter().all(|part| !part.exists()));
}

#[test]
fn a_part_that_was_cut_off_counts_as_far_as_it_goes() {
    let folder = Folder::new("cut");
    let (path, part) = (folder.0.join("trace.json"), folder.0.join("trace.json.N0"));
    write(&part, 0, SystemTime::now(), 10);
    let text = std::fs::read_to_string(&part).unwrap();
    assert!(is_complete(&part));
    std::fs::write(&part, &text[..text.len() * 2 / 3]).unwrap();
    assert!(!is_complete(&part) && !is_complete(&path));
    assert_all(&merge(&path, &[part]).unwrap());
    let slices = valid(&path).matches(r#""ph":"X""#).count();
    assert!((4..10).contains(&slices), "{slices}");
}

/// A process can die between any two bytes.
#[test]
fn a_part_is_joined_wherever_it_was_cut_off() {
    let folder = Folder::new("anywhere");
    let (path, whole) = (folder.0.join("trace.json"), folder.0.join("whole.json"));
    let parts = [0, 1].map(|node| part_of(&path, node));
    write(&whole, 1, SystemTime::now(), 2);
    let cut = std::fs::read(&whole).unwrap();
    let clock = cut.iter().position(|byte| *byte == b'}').unwrap();
    for end in 0..cut.len() {
        write(&parts[0], 0, SystemTime::now(), 1);
        std::fs::write(&parts[1], &cut[..end]).unwrap();
        let Merged { missing, left_out } = merge(&path, &parts).unwrap();
        assert!(missing.is_empty());
        assert!(left_out.is_empty() || end <= clock, "{end} bytes: {left_out:?}");
        assert_eq!(parts[1].exists(), !left_out.is_empty(), "what is not joined stays");
        let slices = valid(&path).matches(r#""ph":"X""#).count();
        assert!((1..=3).contains(&slices), "{end} bytes: {slices} slices");
    }
}

#[test]
fn parts_that_cannot_be_used_do_not_keep_others_from_being_joined() {
    let folder = Folder::new("unusable");
    let path = folder.0.join("trace.json");
    let parts = [0, 1, 2].map(|node| part_of(&path, node));
    std::fs::write(&parts[0], "").unwrap();
    write(&parts[1], 1, SystemTime::now(), 5);
    // What is a folder cannot be read.
    std::fs::create_dir(&parts[2]).unwrap();
    let Merged { missing, left_out } = merge(&path, &parts).unwrap();
    assert!(missing.is_empty());
    let said = left_out.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert!(matches!(&left_out[..], [TraceError::NoPart { .. }, TraceError::Read { .. }]));
    assert!(said[0].contains("trace.json.N0") && said[1].contains("trace.json.N2"), "{said:?}");
    assert_eq!(valid(&path).matches(r#""ph":"X""#).count(), 5);
    assert!(parts[0].exists() && !parts[1].exists() && parts[2].exists());
}

/// What a process has recorded is found when it has died, though it has neither recorded
/// many things nor ended its trace.
#[test]
fn what_was_recorded_is_written_before_there_is_more() {
    let folder = Folder::new("early");
    let path = folder.0.join("trace.json");
    let file = TraceFile::create(&path, SystemTime::now()).unwrap();
    let now = || std::fs::read_to_string(&path).unwrap();
    let wait_for = |text: &str| {
        let start = Instant::now();
        while !now().contains(text) {
            assert!(start.elapsed() < LONG, "no {text} in:\n{}", now());
            std::thread::yield_now();
        }
    };
    wait_for("celerity_clock\"");
    let recorders = [0, 1].map(|process| file.recorder(process));
    for (id, recorder) in (7..).zip(&recorders) {
        recorder.slice(kernel([0, 1], id));
        wait_for(&format!("\"instruction\":{id}}}}}"));
    }
    // The process dies, so to speak.
    std::mem::forget(file);
    let (parts, whole) = ([part_of(&path, 0)], folder.0.join("whole.json"));
    std::fs::copy(&path, &parts[0]).unwrap();
    assert_all(&merge(&whole, &parts).unwrap());
    assert_eq!(valid(&whole).matches(r#""ph":"X""#).count(), 2);
}

#[test]
fn what_cannot_be_written_or_merged_is_named() {
    let folder = Folder::new("errors");
    let nowhere = folder.0.join("no/such/folder/trace.json");
    let error = TraceFile::create(&nowhere, SystemTime::now()).unwrap_err();
    assert!(error.to_string().contains("no/such/folder/trace.json"), "{error}");
    let other = folder.0.join("other.json");
    std::fs::write(&other, "[\n{\"a\":1}\n]\n").unwrap();
    let path = folder.0.join("trace.json");
    let Merged { left_out, .. } = merge(&path, std::slice::from_ref(&other)).unwrap();
    assert!(matches!(&left_out[..], [TraceError::NoPart { path }] if *path == other));
    assert!(other.exists());
    let parts = two_parts(&path);
    let error = merge(&nowhere, &parts).unwrap_err();
    assert!(matches!(error, TraceError::Create { .. }), "{error}");
    assert!(parts.iter().all(|part| part.exists()));
}

#[test]
fn what_comes_after_the_end_is_dropped() {
    let folder = Folder::new("late");
    let path = folder.0.join("trace.json");
    let file = TraceFile::create(&path, SystemTime::now()).unwrap();
    let recorder = file.recorder(0);
    file.finish().unwrap();
    (0..5000).for_each(|id| recorder.slice(kernel([0, 1], id)));
    assert_eq!(valid(&path).lines().count(), 3);
}

/// The parts of two processes, which have written ten slices each.
fn two_parts(path: &Path) -> [PathBuf; 2] {
    let TraceTarget::File(file) = TraceTarget::of(path) else { panic!("{path:?} is a file") };
    let parts = [0, 1].map(|node| part_of(&file, node));
    for (process, part) in (0..).zip(&parts) {
        write(part, process, SystemTime::now(), 10);
    }
    parts
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_stay() {
    use std::os::unix::fs::symlink;

    let folder = Folder::new("links");
    std::fs::create_dir(folder.0.join("there")).unwrap();
    let file = folder.0.join("there/trace.json");
    let (near, far) = (folder.0.join("near.json"), folder.0.join("there/far.json"));
    symlink("there/far.json", &near).unwrap();
    symlink(&file, &far).unwrap();
    // At first the links lead to nothing, then to a file.
    for link in [&near, &far, &near] {
        let parts = two_parts(link);
        assert_eq!(parts[0], folder.0.join("there/trace.json.N0"));
        assert_all(&merge(link, &parts).unwrap());
        assert_eq!(valid(&file).matches(r#""ph":"X""#).count(), 20);
        assert!(link.is_symlink() && far.is_symlink() && !file.is_symlink());
    }
    let names = std::fs::read_dir(folder.0.join("there")).unwrap();
    assert_eq!(names.count(), 2, "something is left");
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_written_and_not_replaced() {
    use std::os::unix::fs::FileTypeExt;

    let folder = Folder::new("pipe");
    let (pipe, parts) = (folder.0.join("pipe"), two_parts(&folder.0.join("trace.json")));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|made| made.success()), "there is no `mkfifo`");
    assert_eq!(TraceTarget::of(&pipe), TraceTarget::Other);
    // To wait for somebody who reads could be to hang.
    for error in [
        merge(&pipe, &parts).unwrap_err(),
        TraceFile::create(&pipe, SystemTime::now()).unwrap_err(),
    ] {
        assert!(error.to_string().contains("a pipe that nobody reads"), "{error}");
    }
    std::thread::scope(|scope| {
        // A pipe that is open for both does not wait for either.
        let both = File::options().read(true).write(true).open(&pipe).unwrap();
        let reader = File::open(&pipe).unwrap();
        let read = scope.spawn(|| std::io::read_to_string(reader).unwrap());
        assert_all(&merge(&pipe, &parts).unwrap());
        drop(both);
        let text = read.join().unwrap();
        assert_eq!(after_value(&text).map(str::trim), Some(""), "no JSON:\n{text}");
        assert_eq!(text.matches(r#""ph":"X""#).count(), 20);
    });
    assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
    assert_eq!(TraceTarget::of(Path::new("/dev/null")), TraceTarget::Other);
    assert_eq!(TraceTarget::of(&folder.0), TraceTarget::Other, "it cannot be written, either");
}
