//! The trace of a run, as far as costs follow from it: how long kernels and host tasks ran for how many
//! items, what submitting and scheduling took, and when the run ended. Owns the reading of such files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cluster::Nanos;
use crate::error::PredictError;

/// What a trace tells of costs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedRun {
    /// Each launch of a kernel, and each run of a host task's function.
    pub launches: Vec<MeasuredLaunch>,
    /// What the program's threads did, in order of time.
    pub program: Vec<Stretch>,
    /// Each step of the schedulers.
    pub scheduling: Vec<Stretch>,
    /// When the last node had reached the program's end, since the run began; `None` if the run
    /// did not get there.
    pub end: Option<Nanos>,
}

/// A kernel's items on a device, or a host task's function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredLaunch {
    /// What the program calls the task.
    pub name: String,
    /// The task.
    pub task: u64,
    /// Whether a device ran it, rather than the host.
    pub on_device: bool,
    /// How many items.
    pub items: u64,
    /// How long it ran. Of a time in which several kernels of a device ran, each has its share.
    pub took: Nanos,
}

/// A stretch of time of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The name of the task, or what was waited for.
    pub name: String,
    /// The task that was submitted or scheduled, or the epoch that was waited for.
    pub task: Option<u64>,
    /// When it began, since the run did.
    pub start: Nanos,
    /// How long it was.
    pub took: Nanos,
}

impl RecordedRun {
    /// Reads what `CELERITY_TRACE` has written.
    ///
    /// # Errors
    /// [`PredictError::Read`], or as [`parse`](Self::parse).
    pub fn read(path: &Path) -> Result<Self, PredictError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| PredictError::Read { path: path.to_owned(), source })?;
        Self::parse(&text, path)
    }

    /// What the text of a trace tells; `path` is for errors.
    ///
    /// # Errors
    /// [`PredictError::Malformed`] with the line that is none of a trace.
    pub fn parse(text: &str, path: &Path) -> Result<Self, PredictError> {
        let mut run = Self::default();
        let mut devices = BTreeMap::<_, Vec<Busy>>::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim().trim_end_matches(',');
            if text.is_empty() || text == "[" || text == "]" {
                continue;
            }
            let path = || -> PathBuf { path.to_owned() };
            let malformed = |what| PredictError::Malformed { path: path(), line, what };
            let event: Value = serde_json::from_str(text)
                .map_err(|error| malformed(format!("this is no line of a trace: {error}")))?;
            run.take(&event).map_err(malformed)?;
            if let Some(device) = device(&event) {
                let (start, launch) =
                    (nanos(&event, "ts").map_err(malformed)?, run.launches.len() - 1);
                let end = start + run.launches[launch].took;
                devices.entry(device).or_default().push(Busy { start, end, launch });
            }
        }
        for (launch, took) in devices.into_values().flat_map(shares) {
            run.launches[launch].took = took;
        }
        run.program.sort_by_key(|stretch| stretch.start);
        Ok(run)
    }

    /// Takes notice of a slice; everything else is passed over.
    fn take(&mut self, event: &Value) -> Result<(), String> {
        let (Some("X"), Some(category)) = (event["ph"].as_str(), event["cat"].as_str()) else {
            return Ok(());
        };
        match category {
            "kernel" | "host" => self.launches.push(launch(event)?),
            "program" => self.program.push(stretch(event)?),
            "scheduler" => self.scheduling.push(stretch(event)?),
            "synchronization" if event["name"] == "end of the program" => {
                let Stretch { start, took, .. } = stretch(event)?;
                self.end = self.end.max(Some(start + took));
            }
            _ => {}
        }
        Ok(())
    }
}

/// When a launch ran on its device.
struct Busy {
    start: Nanos,
    end: Nanos,
    launch: usize,
}

/// The node and the device that a kernel ran on; `None` if a slice is no kernel's.
fn device(event: &Value) -> Option<(u64, String)> {
    let is_kernel = event["ph"] == "X" && event["cat"] == "kernel";
    let place = || Some((event["pid"].as_u64()?, event["args"]["device"].as_str()?.to_owned()));
    is_kernel.then(place).flatten()
}

/// What each launch on a device takes of its time: of a time in which several run, each has an equal part. A device of a
/// prediction does one job after the other, so it takes as long for all of them. O(n log n), times how many run at once.
fn shares(mut launches: Vec<Busy>) -> Vec<(usize, Nanos)> {
    launches.sort_by_key(|busy| busy.start);
    let mut shares = vec![0.0; launches.len()];
    let (mut running, mut now) = (Vec::<usize>::new(), 0);
    let mut run_until = |running: &mut Vec<usize>, until: Nanos| {
        while let Some(end) = running.iter().map(|&nth| launches[nth].end).min() {
            let (stop, count) = (end.min(until), running.len() as f64);
            running.iter().for_each(|&nth| shares[nth] += (stop - now.min(stop)) as f64 / count);
            now = stop;
            running.retain(|&nth| launches[nth].end > stop);
            if stop == until {
                break;
            }
        }
        now = until;
    };
    for (nth, busy) in launches.iter().enumerate() {
        run_until(&mut running, busy.start);
        running.push(nth);
    }
    run_until(&mut running, Nanos::MAX);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let rounded = shares.into_iter().map(|share: f64| share.round() as Nanos);
    launches.iter().map(|busy| busy.launch).zip(rounded).collect()
}

fn stretch(event: &Value) -> Result<Stretch, String> {
    let task = event["args"]["task"].as_str().map(id).transpose()?;
    let (start, took) = (nanos(event, "ts")?, nanos(event, "dur")?);
    Ok(Stretch { name: name(event)?, task, start, took })
}

fn launch(event: &Value) -> Result<MeasuredLaunch, String> {
    let task = event["args"]["task"].as_str().ok_or("a kernel or host task has no `task`")?;
    let (name, task, took) = (name(event)?, id(task)?, nanos(event, "dur")?);
    let items = event["args"]["chunk"].as_str().map_or(Ok(1), items)?;
    Ok(MeasuredLaunch { name, task, on_device: event["cat"] == "kernel", items, took })
}

fn name(event: &Value) -> Result<String, String> {
    event["name"].as_str().map(str::to_owned).ok_or_else(|| "a slice has no `name`".to_owned())
}

/// A time, which traces have in microseconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn nanos(event: &Value, key: &str) -> Result<Nanos, String> {
    let micros = event[key].as_f64().ok_or_else(|| format!("a slice has no number `{key}`"))?;
    Ok((micros * 1000.0).round() as Nanos)
}

/// The digits of `T3`.
fn id(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix('T').and_then(|digits| digits.parse().ok());
    digits.ok_or_else(|| format!("`{text}` is no task's id"))
}

/// How many items a box has that is written as `[0..4, 0..8]`.
fn items(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no chunk");
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).ok_or_else(wrong)?;
    let sides = inner.split(", ").filter(|side| !side.is_empty());
    let lengths = sides.map(|side| {
        let (from, until) = side.split_once("..")?;
        until.parse::<u64>().ok()?.checked_sub(from.parse().ok()?)
    });
    lengths.product::<Option<u64>>().ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_have_items() {
        assert_eq!(items("[0..4, 2..8]"), Ok(24));
        assert_eq!(items("[]"), Ok(1));
        assert!(items("4 x 8").is_err() && items("[3..2]").is_err());
    }

    #[test]
    fn kernels_side_by_side_share_their_device() {
        let kernel = |device: &str, start: u32, took: u32| {
            format!(
                r#"{{"ts":{start},"ph":"X","dur":{took},"pid":0,"tid":1,"name":"k","cat":"kernel","args":{{"task":"T1","chunk":"[0..5]","device":"{device}"}}}},"#
            )
        };
        let lines = [
            kernel("D0", 10, 60),
            kernel("D1", 10, 60),
            kernel("D0", 20, 10),
            kernel("D0", 20, 30),
            kernel("D0", 70, 5),
            kernel("D0", 90, 0),
        ];
        let run = RecordedRun::parse(&lines.join("\n"), "t.json".as_ref()).unwrap();
        let took: Vec<_> = run.launches.iter().map(|launch| launch.took).collect();
        // 10 alone, 10 of three, 20 of two, 20 alone.
        assert_eq!(took, [43_333, 60_000, 3_333, 13_333, 5_000, 0]);
        assert_eq!(took[0] + took[2] + took[3], 59_999, "of 60 µs");
    }

    #[test]
    fn slices_of_interest_are_taken_and_others_passed_over() {
        let text = r#"[
{"name":"celerity_clock","ph":"M","pid":0,"tid":0,"args":{"unix_ns":"1"}},
{"ts":2.000,"ph":"X","dur":1.500,"pid":0,"tid":1,"name":"step","cat":"program","args":{"task":"T3"}},
{"ts":1.000,"ph":"X","dur":0.500,"pid":0,"tid":1,"name":"wait for epoch","cat":"program","args":{}},
{"ts":4.000,"ph":"X","dur":8.000,"pid":0,"tid":100,"name":"step","cat":"kernel","args":{"task":"T3","chunk":"[0..5]"}},
{"ts":4.000,"ph":"C","pid":0,"name":"M1","args":{"bytes":8}},
{"ts":90.000,"ph":"X","dur":0.001,"pid":0,"tid":12,"name":"end of the program","cat":"synchronization","args":{}}
]
"#;
        let run = RecordedRun::parse(text, "t.json".as_ref()).unwrap();
        let launch = MeasuredLaunch {
            name: "step".to_owned(),
            task: 3,
            on_device: true,
            items: 5,
            took: 8000,
        };
        assert_eq!(run.launches, [launch]);
        let order = run.program.iter().map(|stretch| (stretch.start, stretch.task));
        assert_eq!(order.collect::<Vec<_>>(), [(1000, None), (2000, Some(3))]);
        assert_eq!(run.end, Some(90_001));
        let error = RecordedRun::parse("[\n{\"ts\":", "t.json".as_ref()).unwrap_err();
        assert!(error.to_string().starts_with("t.json:2: this is no line of a trace"), "{error}");
    }
}
