//! A prediction as a trace, in the format and with the words of a real run's (docs/profiling.md). Owns
//! which span goes on which track; files are written by `celerity-trace`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use celerity_trace::{Message, Recorder, Text, TimeSlice, TraceError, TraceFile, TrackId, Value};

use crate::cluster::Nanos;
use crate::prediction::Prediction;
use crate::schedule::{Action, NodeSchedule};
use crate::span::{Lane, Limit, SimulatedSpan, Subject};

/// Writes what the first `shown` nodes do to a file.
///
/// # Errors
/// If the file cannot be written.
pub fn write_timeline(
    path: &Path,
    prediction: &Prediction,
    schedules: &[NodeSchedule],
    shown: usize,
) -> Result<(), TraceError> {
    let file = TraceFile::create(path, UNIX_EPOCH)?;
    let mut nodes: Vec<_> = schedules
        .iter()
        .take(shown)
        .enumerate()
        .map(|(node, _)| NodeTracks::new(node, file.recorder(u32::try_from(node).unwrap_or(0))))
        .collect();
    for (number, span) in (1..).zip(prediction.spans.all()) {
        let receives = matches!(span.lane, Lane::Payload).then_some(Message::Received(number));
        if let Some(tracks) = nodes.get_mut(span.node) {
            tracks.show(span, Row::of(span.lane), schedules, receives);
        }
        if let Subject::Message { from, .. } = span.subject
            && receives.is_some()
            && let Some(tracks) = nodes.get_mut(from)
        {
            tracks.show(span, Row::Send, schedules, Some(Message::Sent(number)));
        }
    }
    file.finish()
}

/// The tracks of a node.
struct NodeTracks {
    recorder: Arc<Recorder>,
    /// By row: until when each of its tracks is taken.
    taken: HashMap<Row, Vec<Nanos>>,
}

/// A row of tracks of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Row {
    Lane(Lane),
    /// What leaves; what comes has a lane.
    Send,
}

impl Row {
    fn of(lane: Lane) -> Self {
        Self::Lane(lane)
    }
}

impl NodeTracks {
    fn new(node: usize, recorder: Arc<Recorder>) -> Self {
        recorder.name_process(Text::shown(format!("N{node} (predicted)")));
        Self { recorder, taken: HashMap::new() }
    }

    fn show(
        &mut self,
        span: &SimulatedSpan,
        row: Row,
        schedules: &[NodeSchedule],
        message: Option<Message>,
    ) {
        let (name, details) = words(span, &schedules[span.node], schedules);
        let track = self.track(row, span);
        self.recorder.slice(TimeSlice {
            track,
            start: Duration::from_nanos(span.start),
            end: Duration::from_nanos(span.end),
            name: Text::shown(name),
            category: if row == Row::Send { "send" } else { category(span) },
            details,
            id: None,
            after: Vec::new(),
            message,
        });
    }

    /// A track of the lane that is free when the span begins.
    fn track(&mut self, row: Row, span: &SimulatedSpan) -> TrackId {
        let taken = self.taken.entry(row).or_default();
        let free = taken.iter().position(|until| *until <= span.start);
        let slot = free.unwrap_or(taken.len());
        let (first, name) = place(row);
        let track = TrackId::from_index(first + u32::try_from(slot).unwrap_or(0));
        match free {
            Some(slot) => taken[slot] = span.end,
            None => {
                taken.push(span.end);
                let name = if is_numbered(row) { format!("{name} {}", slot + 1) } else { name };
                self.recorder.name_track(track, Text::shown(name));
            }
        }
        track
    }
}

/// The number of a row's first track, and its name, as in real traces.
fn place(row: Row) -> (u32, String) {
    let of_device = |device: usize| 100 + 40 * u32::try_from(device).unwrap_or(0);
    let Row::Lane(lane) = row else { return (100_000, "send".to_owned()) };
    match lane {
        Lane::Program => (1, "program".to_owned()),
        Lane::Scheduler => (10, "scheduler".to_owned()),
        Lane::Engine => (11, "executor".to_owned()),
        Lane::Barrier => (12, "barriers".to_owned()),
        Lane::Kernels(device) => (of_device(device), format!("D{device} kernels")),
        Lane::Copies(Some(device)) => (of_device(device) + 20, format!("D{device} copies")),
        Lane::Copies(None) => (90_000, "host copies".to_owned()),
        Lane::HostTasks => (90_100, "host tasks".to_owned()),
        Lane::Fences => (90_200, "fences".to_owned()),
        Lane::Payload => (300_000, "payload".to_owned()),
        Lane::Collective => (400_000, "collective".to_owned()),
    }
}

/// Whether a row's tracks are told apart by numbers.
fn is_numbered(row: Row) -> bool {
    use Lane::{Barrier, Engine, Program, Scheduler};
    !matches!(row, Row::Lane(Program | Scheduler | Engine | Barrier))
}

/// What kind of thing a span is, in the words of real traces.
fn category(span: &SimulatedSpan) -> &'static str {
    match span.lane {
        Lane::Program => "program",
        Lane::Scheduler => "scheduler",
        Lane::Engine => "memory",
        Lane::Payload => "payload",
        Lane::Barrier => "synchronization",
        Lane::Collective => "collective",
        _ => match span.lane.limit() {
            Limit::Kernel => "kernel",
            Limit::Copy => "copy",
            _ => "host",
        },
    }
}

type Details = Vec<(&'static str, Value)>;

fn words(
    span: &SimulatedSpan,
    schedule: &NodeSchedule,
    schedules: &[NodeSchedule],
) -> (String, Details) {
    let text = |text: String| Value::Text(Text::shown(text));
    match span.subject {
        Subject::Program => ("program".to_owned(), Vec::new()),
        Subject::Task(task) => {
            let task = &schedule.tasks[task];
            (task.name.clone(), vec![("task", text(format!("T{}", task.id)))])
        }
        Subject::Message { from, step } => {
            let Action::Send { transfer, bytes, .. } = schedules[from].steps[step as usize].action
            else {
                unreachable!("messages are sent")
            };
            let details = vec![
                ("from", text(format!("N{from}"))),
                ("bytes", Value::Number(bytes)),
                ("for", text(format!("T{}", transfer.task))),
            ];
            (format!("payload of B{}", transfer.buffer), details)
        }
        Subject::Step(step) => {
            let step = &schedule.steps[step as usize];
            let (name, mut details) = of_action(&step.action, schedule);
            details.push(("instruction", text(format!("I{}", step.id))));
            (name, details)
        }
    }
}

fn of_action(action: &Action, schedule: &NodeSchedule) -> (String, Details) {
    let bytes = |bytes: &u64| vec![("bytes", Value::Number(*bytes))];
    match action {
        Action::Memory { bytes: some } => ("memory".to_owned(), bytes(some)),
        Action::Copy { from, to, bytes: some } => (format!("copy M{from} to M{to}"), bytes(some)),
        Action::Send { to, bytes: some, .. } => (format!("send to N{to}"), bytes(some)),
        Action::Receive { transfer, .. } => (format!("receive B{}", transfer.buffer), Vec::new()),
        Action::Collective { pattern, bytes: some, .. } => (pattern.clone(), bytes(some)),
        Action::Run { task, items, .. } => {
            let position = schedule.tasks.binary_search_by_key(task, |task| task.id);
            let name = position.map(|position| schedule.tasks[position].name.clone());
            let details = vec![
                ("task", Value::Text(Text::shown(format!("T{task}")))),
                ("items", Value::Number(*items)),
            ];
            (name.unwrap_or_default(), details)
        }
        Action::Horizon => ("horizon".to_owned(), Vec::new()),
        Action::Epoch { meets: true } => ("barrier".to_owned(), Vec::new()),
        Action::Epoch { meets: false } => ("start".to_owned(), Vec::new()),
    }
}
