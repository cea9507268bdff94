//! One lane of a GPU: what is on its stream, in batches that end with an event;
//! and the lanes of all GPUs of a node, whose threads wait for each other's jobs.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use celerity_executor::{Span, Time};
use celerity_idag::InstructionId;
use smallvec::SmallVec;

use super::lanes_per_device;
use crate::driver::{Driver, DriverError, Event, Gpu, Stream};
use crate::panics::GpuPanics;

/// A job on a stream.
pub(super) struct Job {
    pub(super) instruction: InstructionId,
    /// Where it records that it panicked, if it can.
    pub(super) panics: Option<Arc<GpuPanics>>,
}

/// Jobs that are seen to end together.
pub(super) type Jobs = SmallVec<[Job; 16]>;

pub(super) struct Lane {
    pub(super) stream: Stream,
    /// Whether nothing may start any more, since something has failed.
    pub(super) halted: bool,
    /// Jobs with no event behind them yet.
    open: Jobs,
    batches: VecDeque<Batch>,
    /// When jobs were seen to end last, or the first of those that are there came.
    since: Instant,
    /// What one of those that ended then had taken.
    pace: Duration,
    /// Jobs that have been seen to end: the number of the oldest that has not.
    ended: u64,
}

/// The lanes of all devices of a node, by slot. Each belongs to the thread of its
/// GPU; others look for events behind its jobs.
pub(super) struct Lanes(Vec<Mutex<Lane>>);

impl Lanes {
    pub(super) fn new(driver: &dyn Driver, devices: &[Gpu]) -> Result<Self, DriverError> {
        let gpus = devices.iter().flat_map(|&gpu| std::iter::repeat_n(gpu, lanes_per_device()));
        gpus.map(|gpu| Lane::new(driver, gpu).map(Mutex::new)).collect::<Result<_, _>>().map(Self)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn lock(&self, lane: usize) -> MutexGuard<'_, Lane> {
        // What panics in here has not begun to change the lane.
        self.0[lane].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a stream can wait for, to be behind a job.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Behind {
    /// The job has ended.
    Nothing,
    /// This.
    Event(Event),
    /// The job has not got an event yet.
    Later,
    /// It never will: something on its lane has failed.
    Never,
}

struct Batch {
    event: Event,
    jobs: Jobs,
    timing: Option<JobTiming>,
}

/// How to tell when a job has run that is timed, and in a batch of its own.
pub(super) struct JobTiming {
    /// Recorded before the job.
    pub(super) start: Event,
    /// What the events are compared with.
    pub(super) epoch: Epoch,
}

/// An event of which it is known when it happened.
#[derive(Clone, Copy)]
pub(super) struct Epoch {
    pub(super) event: Event,
    pub(super) time: Time,
}

impl JobTiming {
    fn span(&self, driver: &dyn Driver, end: Event) -> Option<Span> {
        let at = |event| Some(self.epoch.time + driver.elapsed(self.epoch.event, event).ok()?);
        let start = at(self.start)?;
        Some(Span { start, end: at(end)?.max(start) })
    }
}

/// A batch that has ended.
pub(super) struct Ended {
    pub(super) jobs: Jobs,
    /// Of its only job, if that was timed.
    pub(super) span: Option<Span>,
    /// Nobody uses them any more.
    pub(super) events: SmallVec<[Event; 2]>,
}

impl Lane {
    pub(super) fn new(driver: &dyn Driver, gpu: Gpu) -> Result<Self, DriverError> {
        Ok(Self {
            stream: driver.create_stream(gpu)?,
            halted: false,
            open: Jobs::new(),
            batches: VecDeque::new(),
            since: Instant::now(),
            pace: Duration::ZERO,
            ended: 0,
        })
    }

    /// What there is to wait for behind the job of that number. An event is good
    /// for as long as the lane is locked.
    pub(super) fn behind(&self, number: u64) -> Behind {
        if number < self.ended {
            return Behind::Nothing;
        }
        if self.halted {
            return Behind::Never;
        }
        let mut end = self.ended;
        for batch in &self.batches {
            end += batch.jobs.len() as u64;
            if number < end {
                return Behind::Event(batch.event);
            }
        }
        Behind::Later
    }

    /// Notes a job that has been put on the stream; returns whether there is to be an event
    /// behind it: there are `most` without one or, of jobs that take `long`, as many as are to be seen to end before them.
    ///
    /// Otherwise a few jobs that are all there is, since others wait for an end of theirs, might have a single event, and the
    /// GPU would have nothing to do when it comes.
    pub(super) fn started(&mut self, job: Job, most: usize, long: Duration) -> bool {
        if self.is_empty() {
            self.since = Instant::now();
        }
        self.open.push(job);
        let before = || self.batches.iter().map(|batch| batch.jobs.len()).sum();
        let most = if self.pace < long { most } else { most.min(before()) };
        self.open.len() >= most
    }

    /// Notes that so many jobs have been seen to end.
    pub(super) fn progressed(&mut self, jobs: usize) {
        let now = Instant::now();
        let jobs = u32::try_from(jobs).unwrap_or(u32::MAX).max(1);
        self.pace = now.duration_since(std::mem::replace(&mut self.since, now)) / jobs;
    }

    /// How many jobs have no event behind them.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// Ends the batch with an event, which has been recorded on the stream.
    pub(super) fn seal(&mut self, event: Event, timing: Option<JobTiming>) {
        let jobs = std::mem::take(&mut self.open);
        self.batches.push_back(Batch { event, jobs, timing });
    }

    /// Whether no event is left to be seen.
    pub(super) fn is_all_open(&self) -> bool {
        self.batches.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.batches.is_empty()
    }

    /// The oldest batch, if it has ended.
    ///
    /// # Errors
    /// What has failed on the GPU.
    pub(super) fn poll(&mut self, driver: &dyn Driver) -> Result<Option<Ended>, DriverError> {
        match self.batches.front() {
            Some(batch) if driver.query(batch.event)? => {}
            _ => return Ok(None),
        }
        Ok(self.batches.pop_front().map(|Batch { event, jobs, timing }| {
            self.ended += jobs.len() as u64;
            let span = timing.as_ref().and_then(|timing| timing.span(driver, event));
            let start = timing.map(|timing| timing.start);
            Ended { jobs, span, events: [event].into_iter().chain(start).collect() }
        }))
    }

    /// Forgets everything on the lane, and returns it, oldest first.
    pub(super) fn give_up(&mut self) -> Jobs {
        self.halted = true;
        let sealed = self.batches.drain(..).flat_map(|batch| batch.jobs);
        let mut jobs: Jobs = sealed.collect();
        jobs.append(&mut self.open);
        jobs
    }
}
