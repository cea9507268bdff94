//! Records as lines of Chrome's trace format: one JSON object a line, those with a
//! time beginning with it. Owns the arrows: which slices they connect, and their
//! numbers. Writes no file.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Display, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::record::{Counter, Message, TimeSlice, TraceRecord, TrackId, Value};

/// How every line with a time begins.
pub(crate) const TIME_KEY: &str = r#"{"ts":"#;

/// The name of the line that says when a part begins; viewers pass over it.
pub(crate) const CLOCK_NAME: &str = "celerity_clock";

/// How a file ends.
pub(crate) const END: &[u8; 3] = b"\n]\n";

/// The process part of an arrow's number is shifted by so much; what is left
/// stays below 2^52, where all readers' numbers are exact.
const PROCESS_SHIFT: u32 = 40;

/// What has to be remembered between records.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    processes: HashMap<u32, Process>,
}

#[derive(Debug, Default)]
struct Process {
    /// Where slices ended that later ones may name.
    ends: BTreeMap<u64, (TrackId, Duration)>,
    arrows: u64,
}

/// A time as the format wants it: microseconds, exact to the nanosecond.
pub(crate) struct Micros(pub(crate) u128);

impl Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// A text as a JSON string.
struct Quoted<T>(T);

impl<T: Display> Display for Quoted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        write!(Escape(f), "{}", self.0)?;
        f.write_char('"')
    }
}

struct Escape<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escape<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|c| match c {
            '"' | '\\' => write!(self.0, "\\{c}"),
            c if c < ' ' => write!(self.0, "\\u{:04x}", u32::from(c)),
            c => self.0.write_char(c),
        })
    }
}

/// The line that says which instant is time 0.
pub(crate) fn clock_line(started: SystemTime) -> String {
    let since_epoch = started.duration_since(UNIX_EPOCH).unwrap_or_default();
    // A text: as a number it would lose its last digits in many readers.
    format!(
        r#"{{"name":"{CLOCK_NAME}","ph":"M","pid":0,"tid":0,"args":{{"unix_ns":"{}"}}}}"#,
        since_epoch.as_nanos()
    )
}

impl Encoder {
    /// Passes the lines of a record on, in order.
    pub(crate) fn encode(
        &mut self,
        process: u32,
        record: &TraceRecord,
        line: &mut impl FnMut(String),
    ) {
        match record {
            TraceRecord::Process { name } => {
                line(metadata(process, 0, "process_name", "name", Quoted(name)));
                line(metadata(process, 0, "process_sort_index", "sort_index", process));
            }
            TraceRecord::Track { track, name } => {
                let track = track.index();
                line(metadata(process, track, "thread_name", "name", Quoted(name)));
                line(metadata(process, track, "thread_sort_index", "sort_index", track));
            }
            TraceRecord::Slice(slice) => self.slice(process, slice, line),
            TraceRecord::Counter(counter) => line(counter_line(process, counter)),
            TraceRecord::Forget { before } => {
                let ends = &mut self.processes.entry(process).or_default().ends;
                *ends = ends.split_off(before);
            }
        }
    }

    fn slice(&mut self, process: u32, slice: &TimeSlice, line: &mut impl FnMut(String)) {
        // Arrows bind to slices of some length only.
        let end = slice.end.max(slice.start + Duration::from_nanos(1));
        line(slice_line(process, slice, end));
        let state = self.processes.entry(process).or_default();
        for before in &slice.after {
            let Some((track, at)) = state.ends.get(before) else { continue };
            state.arrows += 1;
            let number = u64::from(process) << PROCESS_SHIFT | state.arrows;
            let from = Arrow { number, process, track: *track, category: "dependency" };
            line(from.begin(*at));
            line(Arrow { track: slice.track, ..from }.end(slice.start));
        }
        let last = end - Duration::from_nanos(1);
        if let Some(id) = slice.id {
            state.ends.insert(id, (slice.track, last));
        }
        let arrow = |number| Arrow { number, process, track: slice.track, category: "message" };
        match slice.message {
            // A message can be over on the other side before it is on this one.
            Some(Message::Sent(number)) => line(arrow(number).begin(slice.start)),
            Some(Message::Received(number)) => line(arrow(number).end(last)),
            None => {}
        }
    }
}

#[derive(Clone, Copy)]
struct Arrow {
    number: u64,
    process: u32,
    track: TrackId,
    category: &'static str,
}

impl Arrow {
    fn begin(self, at: Duration) -> String {
        self.line(at, r#""ph":"s""#)
    }

    fn end(self, at: Duration) -> String {
        // It ends at the slice around it, not at the next one.
        self.line(at, r#""ph":"f","bp":"e""#)
    }

    fn line(self, at: Duration, phase: &str) -> String {
        let Self { number, process, track, category } = self;
        format!(
            r#"{TIME_KEY}{},{phase},"pid":{process},"tid":{},"id":{number},"name":"{category}","cat":"{category}"}}"#,
            Micros(at.as_nanos()),
            track.index()
        )
    }
}

fn metadata(process: u32, track: u32, what: &str, key: &str, value: impl Display) -> String {
    format!(
        r#"{{"name":"{what}","ph":"M","pid":{process},"tid":{track},"args":{{"{key}":{value}}}}}"#
    )
}

fn slice_line(process: u32, slice: &TimeSlice, end: Duration) -> String {
    let TimeSlice { track, start, name, category, details, .. } = slice;
    format!(
        r#"{TIME_KEY}{},"ph":"X","dur":{},"pid":{process},"tid":{},"name":{},"cat":"{category}","args":{}}}"#,
        Micros(start.as_nanos()),
        Micros((end - *start).as_nanos()),
        track.index(),
        Quoted(name),
        Object(details)
    )
}

fn counter_line(process: u32, counter: &Counter) -> String {
    let Counter { at, name, values } = counter;
    format!(
        r#"{TIME_KEY}{},"ph":"C","pid":{process},"name":{},"args":{}}}"#,
        Micros(at.as_nanos()),
        Quoted(name),
        Object(values)
    )
}

/// Pairs of keys and values as a JSON object.
struct Object<'a, T>(&'a [(&'static str, T)]);

impl<T: JsonValue> Display for Object<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('{')?;
        for (index, (key, value)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, r#"{comma}"{key}":"#)?;
            value.fmt_json(f)?;
        }
        f.write_char('}')
    }
}

trait JsonValue {
    fn fmt_json(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

impl JsonValue for u64 {
    fn fmt_json(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt(f)
    }
}

impl JsonValue for Value {
    fn fmt_json(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => Quoted(text).fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Text;

    fn lines(records: impl IntoIterator<Item = TraceRecord>) -> Vec<String> {
        let (mut encoder, mut lines) = (Encoder::default(), Vec::new());
        for record in records {
            encoder.encode(3, &record, &mut |line| lines.push(line));
        }
        lines
    }

    fn slice(id: u64, track: u32, nanos: [u64; 2], after: &[u64]) -> TimeSlice {
        let [start, end] = nanos.map(Duration::from_nanos);
        let (track, name) = (TrackId::from_index(track), "step".into());
        let (category, details, after) = ("kernel", Vec::new(), after.to_vec());
        TimeSlice { track, start, end, name, category, details, id: Some(id), after, message: None }
    }

    #[test]
    fn slices_have_times_in_microseconds_and_escaped_names() {
        let mut odd = slice(0, 1, [1_234_567, 1_234_567], &[]);
        odd.name = Text::shown("a \"b\\\u{7}");
        odd.details = vec![("bytes", Value::Number(7)), ("on", Value::Text("D0".into()))];
        assert_eq!(
            lines([TraceRecord::Slice(odd)]),
            [
                r#"{"ts":1234.567,"ph":"X","dur":0.001,"pid":3,"tid":1,"name":"a \"b\\\u0007","cat":"kernel","args":{"bytes":7,"on":"D0"}}"#
            ]
        );
    }

    #[test]
    fn arrows_lead_from_the_end_of_what_is_known() {
        let first = TraceRecord::Slice(slice(7, 1, [1000, 2000], &[]));
        let forget = TraceRecord::Forget { before: 8 };
        let second = || TraceRecord::Slice(slice(9, 2, [3000, 4000], &[7, 100]));
        let known = lines([first, second(), forget, second()]);
        assert_eq!(known.len(), 5, "one arrow, and none from what is forgotten: {known:#?}");
        let number = (3_u64 << 40) + 1;
        let rest = format!(r#""id":{number},"name":"dependency","cat":"dependency"}}"#);
        assert_eq!(known[2], format!(r#"{{"ts":1.999,"ph":"s","pid":3,"tid":1,{rest}"#));
        assert_eq!(known[3], format!(r#"{{"ts":3.000,"ph":"f","bp":"e","pid":3,"tid":2,{rest}"#));
    }

    #[test]
    fn messages_begin_at_the_start_and_end_at_the_end() {
        let with = |message| {
            let mut slice = slice(1, 1, [1000, 2000], &[]);
            slice.message = Some(message);
            lines([TraceRecord::Slice(slice)]).pop().unwrap()
        };
        assert!(with(Message::Sent(5)).starts_with(r#"{"ts":1.000,"ph":"s""#));
        assert!(with(Message::Received(5)).starts_with(r#"{"ts":1.999,"ph":"f""#));
    }

    #[test]
    fn counters_and_names() {
        let values = vec![("bytes", 12), ("blocks", 2)];
        let counter = Counter { at: Duration::ZERO, name: "memory M1".into(), values };
        let track = TraceRecord::Track { track: TrackId::from_index(4), name: "D0 copies".into() };
        assert_eq!(
            lines([TraceRecord::Counter(counter), track]),
            [
                r#"{"ts":0.000,"ph":"C","pid":3,"name":"memory M1","args":{"bytes":12,"blocks":2}}"#,
                r#"{"name":"thread_name","ph":"M","pid":3,"tid":4,"args":{"name":"D0 copies"}}"#,
                r#"{"name":"thread_sort_index","ph":"M","pid":3,"tid":4,"args":{"sort_index":4}}"#,
            ]
        );
    }
}
