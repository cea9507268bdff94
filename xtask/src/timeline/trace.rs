//! Traces, as `CELERITY_TRACE` writes them: one JSON object a line. Keeps what has a
//! length, by track; arrows and counters are passed over.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;

/// All of a trace, or a part.
#[derive(Debug)]
pub(crate) struct Trace {
    /// In the order in which viewers show them.
    pub(crate) tracks: Vec<Track>,
}

/// A lane, a thread, or whatever else does one thing at a time.
#[derive(Debug, Default)]
pub(crate) struct Track {
    /// The node's name.
    pub(crate) process: String,
    pub(crate) name: String,
    /// By their beginnings.
    pub(crate) slices: Vec<TimeSlice>,
}

/// Something that took time.
#[derive(Clone, Debug)]
pub(crate) struct TimeSlice {
    pub(crate) name: String,
    /// What kind of thing it is.
    pub(crate) category: String,
    /// Microseconds since the run began, as far as they are shown.
    pub(crate) time: Range<f64>,
    /// Microseconds in all.
    pub(crate) length: f64,
}

impl Trace {
    /// Reads a trace. The end may be missing, within a line, too, as it is after a run
    /// that was killed.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (mut processes, mut tracks) = (BTreeMap::new(), BTreeMap::<_, Track>::new());
        let last = text.lines().count();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim().trim_end_matches(',');
            if line.is_empty() || line == "[" || line == "]" {
                continue;
            }
            let event: Value = match serde_json::from_str(line) {
                Ok(event) => event,
                Err(_) if number == last => break,
                Err(error) => return Err(format!("line {number} is no event: {error}")),
            };
            let process = event["pid"].as_u64().unwrap_or(0);
            let track = (process, event["tid"].as_u64().unwrap_or(0));
            match (event["ph"].as_str(), event["name"].as_str()) {
                (Some("M"), Some("process_name")) => drop(processes.insert(process, named(&event))),
                (Some("M"), Some("thread_name")) => {
                    tracks.entry(track).or_default().name = named(&event);
                }
                (Some("X"), Some(name)) => {
                    let slice = slice(&event, name);
                    let slice = slice.ok_or_else(|| format!("line {number} has no time"))?;
                    tracks.entry(track).or_default().slices.push(slice);
                }
                _ => {}
            }
        }
        let finish = |((process, _), mut track): ((u64, u64), Track)| {
            track.process = processes.get(&process).cloned().unwrap_or_default();
            track.slices.sort_by(|a, b| a.time.start.total_cmp(&b.time.start));
            track
        };
        Ok(Self { tracks: tracks.into_iter().map(finish).collect() })
    }

    /// From the first beginning to the last end.
    pub(super) fn extent(&self) -> Option<Range<f64>> {
        let times = self.tracks.iter().flat_map(|track| &track.slices).map(|slice| &slice.time);
        times.fold(None, |all: Option<Range<f64>>, time| {
            let all = all.unwrap_or(time.clone());
            Some(all.start.min(time.start)..all.end.max(time.end))
        })
    }

    /// What happens in a window, cut off at its ends; tracks without anything are left out.
    pub(super) fn within(&self, window: &Range<f64>) -> Self {
        let cut = |slice: &TimeSlice| {
            let Range { start, end } = slice.time;
            let time = start.max(window.start)..end.min(window.end);
            (time.start < time.end).then(|| TimeSlice { time, ..slice.clone() })
        };
        let part = |track: &Track| {
            let slices: Vec<_> = track.slices.iter().filter_map(cut).collect();
            let (process, name) = (track.process.clone(), track.name.clone());
            (!slices.is_empty()).then_some(Track { process, name, slices })
        };
        Self { tracks: self.tracks.iter().filter_map(part).collect() }
    }
}

/// The name that an event gives to something.
fn named(event: &Value) -> String {
    event["args"]["name"].as_str().unwrap_or_default().to_owned()
}

fn slice(event: &Value, name: &str) -> Option<TimeSlice> {
    let (start, length) = (event["ts"].as_f64()?, event["dur"].as_f64()?);
    let category = event["cat"].as_str().unwrap_or_default().to_owned();
    Some(TimeSlice { name: name.to_owned(), category, time: start..start + length, length })
}
