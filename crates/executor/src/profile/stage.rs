//! What threads around a node record: the scheduler, and the threads of the program.
//! Slices from start to end, and nothing between them.

use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use celerity_tdag::TaskId;
use celerity_trace::{Recorder, Text, TimeSlice, TrackId, Value};

use super::tracks::{LAST_PROGRAM, PROGRAM, SCHEDULER};
use crate::sync::lock;
use crate::time::{Clock, Time};

/// One stage of a node: its scheduler, or its program with all of its threads.
pub(crate) struct StageProfile {
    clock: Clock,
    recorder: Arc<Recorder>,
    category: &'static str,
    first: u32,
    /// The threads seen so far: each has a track.
    threads: Mutex<Vec<ThreadId>>,
}

impl StageProfile {
    pub(super) fn scheduler(clock: Clock, recorder: Arc<Recorder>) -> Self {
        let first = SCHEDULER.index();
        Self { clock, recorder, category: "scheduler", first, threads: Mutex::default() }
    }

    pub(super) fn program(clock: Clock, recorder: Arc<Recorder>) -> Self {
        let (category, first) = ("program", PROGRAM);
        Self { clock, recorder, category, first, threads: Mutex::default() }
    }

    /// Does something, and records it if there is a trace: under a name, and with the task that it
    /// was for, which may follow from the outcome.
    pub(crate) fn timed<T>(
        this: Option<&Self>,
        label: impl FnOnce(&T) -> (Text, Option<TaskId>),
        work: impl FnOnce() -> T,
    ) -> T {
        let Some(profile) = this else { return work() };
        let start = profile.now();
        let outcome = work();
        let (name, task) = label(&outcome);
        let task = task.map(|task| ("task", Value::Text(Text::shown(task))));
        profile.ended(start, name, task.into_iter().collect());
        outcome
    }

    /// What time it is, to be given to [`ended`](Self::ended).
    pub(crate) fn now(&self) -> Time {
        (self.clock)()
    }

    /// The calling thread has done something since `start`.
    pub(crate) fn ended(&self, start: Time, name: Text, details: Vec<(&'static str, Value)>) {
        self.recorder.slice(TimeSlice {
            track: self.track(),
            start: start.since(Time::START),
            end: self.now().since(Time::START),
            name,
            category: self.category,
            details,
            id: None,
            after: Vec::new(),
            message: None,
        });
    }

    fn track(&self) -> TrackId {
        let thread = std::thread::current();
        let mut threads = lock(&self.threads);
        let known = threads.iter().position(|known| *known == thread.id());
        let number = known.unwrap_or(threads.len());
        let last = if self.first == PROGRAM { LAST_PROGRAM } else { self.first };
        let number = u32::try_from(number).expect("a process has fewer threads");
        let track = TrackId::from_index((self.first + number).min(last));
        if known.is_none() {
            threads.push(thread.id());
            let name = thread.name().unwrap_or("a thread").to_owned();
            self.recorder.name_track(track, Text::shown(format!("{} ({name})", self.category)));
        }
        track
    }
}
