//! A GPU's thread: puts jobs on streams in the order in which they come, and
//! sees them end.
//!
//! An event costs about half of what a kernel does, so there is one for each
//! batch of jobs. A batch ends when it is full, when no more jobs wait and nothing
//! before it is left to be seen, or when no job has come for some microseconds: jobs
//! that trickle in as fast as they can be launched share events, too. With several
//! GPUs it ends as soon as no more jobs wait, since another GPU may wait for its event.
//!
//! Of jobs that take longer than it takes to record an event, a batch is also full if it has as many as are before it
//! on its lane. The jobs of two horizons may be all that can be there until the end of the first one's is seen:
//! with one event behind all of them, a GPU stood still at each second horizon, and started again with the
//! jobs of two.
//!
//! Ends are looked for without a break for a short time, then between naps that
//! grow with the wait, so that seeing an end takes a small part of what the job
//! took. From issuing a kernel to seeing its end takes 11 to 13 µs on an H200,
//! beside the kernel; being woken by the driver instead took 280 to 450 µs. With
//! nothing on the GPU the thread sleeps.
#![allow(unsafe_code)]

use std::error::Error;
use std::ops::Range;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use celerity_executor::JobFailure::Panicked;
use celerity_executor::contain::{caught, end};
use celerity_executor::{
    BoundMemory, Completion, DeviceCode, EnqueuedCall, JobFailure, LaneJob, Launch,
};
use celerity_idag::InstructionId;
use celerity_regions::Box3;
use crossbeam_channel::Receiver;

use super::entries::Entries;
use super::lane::{Behind, Ended, Job, JobTiming, Jobs, Lane, Lanes};
use super::lanes_per_device;
use super::order::{Message, Order, Setup, Work};
use super::reports::Reports;
use super::timer::Timer;
use crate::driver::{Driver, DriverError, Event, Gpu, LaunchSize, Stream, Transfer};
use crate::gpus::Gpus;
use crate::panics::GpuPanics;

/// A nap takes this part of the wait so far.
const NAPS: u32 = 64;
/// But no longer than this.
const LONGEST_NAP: Duration = Duration::from_millis(1);
/// Between two looks at what another GPU's thread has not started yet.
const SHORT_NAP: Duration = Duration::from_micros(20);

/// Whether a stream has been made to wait for what an order comes after.
enum Joined {
    Now,
    /// Not for all of it: some has not been started.
    Later,
    /// Some of it has failed, or will not be started.
    Never,
    Failed(DriverError),
}

pub(super) struct Submitter {
    gpus: Arc<Gpus>,
    gpu: Gpu,
    batch: usize,
    spin: Duration,
    lull: Duration,
    long: Duration,
    /// Of all GPUs of the node.
    lanes: Arc<Lanes>,
    /// Those of this GPU.
    own: Range<usize>,
    /// An order that waits for what another GPU's thread has not started yet. Later
    /// ones wait behind it.
    held: Option<Order>,
    /// Events that nobody uses.
    events: Vec<Event>,
    reports: Arc<Reports>,
    messages: Receiver<Message>,
    stopping: bool,
    /// If jobs are timed.
    timer: Option<Timer>,
    /// When something has happened last.
    stirred: Instant,
    /// When a job has come last.
    fed: Instant,
    /// Jobs that were started since ends were looked for.
    unseen: usize,
    /// Entry points that have been launched here.
    entries: Entries,
}

impl Submitter {
    pub(super) fn new(setup: &Setup<'_>, device: usize, messages: Receiver<Message>) -> Self {
        let Setup { gpus, devices, config, lanes, reports } = setup;
        let first = device * lanes_per_device();
        Self {
            gpus: (*gpus).clone(),
            gpu: devices[device],
            batch: config.batch.max(1),
            spin: config.spin,
            lull: config.lull,
            long: config.long,
            lanes: (*lanes).clone(),
            own: first..first + lanes_per_device(),
            held: None,
            events: Vec::new(),
            reports: (*reports).clone(),
            messages,
            stopping: false,
            timer: None,
            stirred: Instant::now(),
            fed: Instant::now(),
            unseen: 0,
            entries: Entries::default(),
        }
    }

    pub(super) fn run(mut self) {
        // If it fails, so will every job.
        drop(self.driver().adopt_thread(self.gpu));
        while !(self.stopping && self.held.is_none() && self.is_empty()) {
            let taken = self.take_messages();
            self.seal_ripe(taken);
            // While jobs come, a look costs time in which one could be launched.
            let ended = (!taken || self.unseen >= self.batch) && self.collect();
            if taken || ended {
                self.stirred = Instant::now();
            } else if self.stirred.elapsed() < self.spin {
                // On a busy machine somebody else may need this core.
                std::thread::yield_now();
            } else {
                self.rest();
            }
        }
    }

    fn driver(&self) -> &dyn Driver {
        &**self.gpus.driver()
    }

    fn lane(&self, lane: usize) -> MutexGuard<'_, Lane> {
        self.lanes.lock(lane)
    }

    /// Whether nothing is on this GPU.
    fn is_empty(&self) -> bool {
        self.own.clone().all(|lane| self.lane(lane).is_empty())
    }

    /// Takes what is there, up to a batch.
    fn take_messages(&mut self) -> bool {
        let held = self.held.take();
        let mut any = false;
        if let Some(order) = held {
            self.start(order);
            any = self.held.is_none();
        }
        for _ in 0..self.batch {
            if self.held.is_some() {
                break;
            }
            let Ok(message) = self.messages.try_recv() else { break };
            any = true;
            self.take(message);
        }
        any
    }

    /// Ends the batches that are not worth waiting for more jobs.
    fn seal_ripe(&mut self, taken: bool) {
        if taken {
            self.fed = Instant::now();
        }
        let is_alone = self.own.len() == self.lanes.count();
        let all = !is_alone || !taken && self.fed.elapsed() >= self.lull;
        for lane in self.own.clone() {
            if all || self.lane(lane).is_all_open() {
                self.seal(lane, None);
            }
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Order(order) => self.start(order),
            Message::Time(clock) => self.timer = Some(Timer::new(clock)),
            Message::Hurry => self.lull = Duration::ZERO,
            Message::Stop => self.stopping = true,
        }
    }

    fn start(&mut self, mut order: Order) {
        let (stream, halted) = self.target(order.lane);
        if halted || self.reports.is_cancelled() {
            drop(end(order));
            return self.reports.dropped(1);
        }
        if !order.after.is_empty() {
            // Who waits for what is on the lane already must not wait for this, too.
            self.seal(order.lane, None);
        }
        let ready = match self.join(stream, &mut order) {
            Joined::Now => Ok(()),
            Joined::Later => return self.held = Some(order),
            Joined::Never => {
                self.lane(order.lane).halted = true;
                drop(end(order));
                return self.reports.dropped(1);
            }
            Joined::Failed(error) => Err(error),
        };
        let Order { lane, instruction, work, memory, after: _ } = order;
        let wait = |&event: &Event| self.driver().wait(stream, event);
        let ready = ready.and_then(|()| memory.iter().try_for_each(wait));
        let timing = self.begin_timing(stream);
        let outcome = ready.map_err(|error| Panicked(error.to_string())).and_then(|()| {
            // What says how to launch a kernel may be written by users.
            caught(|| self.perform(stream, work)).unwrap_or_else(|said| {
                Err(Panicked(format!("how to launch it cannot be told: {said}")))
            })
        });
        match outcome {
            Ok(panics) => {
                self.unseen += 1;
                let job = Job { instruction, panics };
                let is_full = self.lane(lane).started(job, self.batch, self.long);
                if timing.is_some() || is_full {
                    self.seal(lane, timing);
                }
            }
            Err(failure) => self.fail(lane, instruction, failure),
        }
    }

    fn target(&self, lane: usize) -> (Stream, bool) {
        let lane = self.lane(lane);
        (lane.stream, lane.halted)
    }

    /// Lets the stream wait for the jobs of other lanes that an order comes after,
    /// as far as they have been started; takes these off its list.
    fn join(&mut self, stream: Stream, order: &mut Order) -> Joined {
        while let Some(&LaneJob { lane, number }) = order.after.last() {
            let lane = lane.slot();
            if self.own.contains(&lane) && self.lane(lane).behind(number) == Behind::Later {
                self.seal(lane, None);
            }
            let other = self.lane(lane);
            match other.behind(number) {
                Behind::Nothing => {}
                // While the lane is locked, the event is not used for anything else.
                Behind::Event(event) => {
                    if let Err(error) = self.driver().wait(stream, event) {
                        return Joined::Failed(error);
                    }
                }
                Behind::Later => return Joined::Later,
                Behind::Never => return Joined::Never,
            }
            drop(other);
            order.after.pop();
        }
        Joined::Now
    }

    /// Puts a job on a stream, and tells where it records its panics.
    fn perform(
        &mut self,
        stream: Stream,
        work: Work,
    ) -> Result<Option<Arc<GpuPanics>>, JobFailure> {
        match work {
            Work::Kernel { kernel, chunk, arguments } => {
                // SAFETY: `Backend::enqueue` promises live memory without races until the job is
                // reported, which is after the launch.
                let memory = unsafe { arguments.bind() };
                let code = match kernel.device_code() {
                    Ok(code) => code,
                    Err(error) => {
                        let call =
                            kernel.device_call().ok_or_else(|| Panicked(error.to_string()))?;
                        return self.call(stream, call, &chunk, &memory).map(|()| None);
                    }
                };
                self.launch(stream, code, &chunk, &memory).map_err(Panicked)
            }
            Work::Copy(transfers) => self.copy(stream, &transfers).map(|()| None).map_err(Panicked),
        }
    }

    fn launch(
        &mut self,
        stream: Stream,
        code: &dyn DeviceCode,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
    ) -> Result<Option<Arc<GpuPanics>>, String> {
        let entry = self.entries.get(&self.gpus, self.gpu, (code, code.entry_for(memory)))?;
        let launch = match launch_of(code, chunk, memory, entry.most_threads) {
            Ok(launch) => launch,
            Err(error) => {
                return match code.halves(chunk) {
                    Some(halves) => self.launch_halves(stream, code, halves, memory),
                    None => Err(format!("kernel `{}` cannot be launched: {error}", code.entry())),
                };
            }
        };
        let Launch { grid, block, shared_bytes, parameters } = launch;
        if entry.record.is_some() {
            self.drain();
        }
        let size = LaunchSize { grid, block, shared_bytes };
        // SAFETY: `Backend::enqueue` promises live memory without races, and
        // events of that memory were waited for above. That the code keeps to
        // its parameters is what `DeviceCode` promises.
        let launched =
            unsafe { self.driver().launch(stream, entry.function, size, parameters.as_bytes()) };
        let in_kernel = |error: DriverError| format!("kernel `{}`: {error}", code.entry());
        launched.map_err(in_kernel)?;
        let Some(record) = entry.record else { return Ok(entry.panics) };
        match record.take(self.driver(), stream).map_err(in_kernel)? {
            Some(astray) => Err(format!("kernel `{}` {astray}", code.entry())),
            None => Ok(entry.panics),
        }
    }

    /// One after the other. If the second fails, the first has ended when this returns.
    fn launch_halves(
        &mut self,
        stream: Stream,
        code: &dyn DeviceCode,
        [first, second]: [Box3; 2],
        memory: &[BoundMemory<'_>],
    ) -> Result<Option<Arc<GpuPanics>>, String> {
        self.launch(stream, code, &first, memory)?;
        let launched = self.launch(stream, code, &second, memory);
        if launched.is_err() {
            // What failed on the GPU is found by the next event.
            drop(self.driver().synchronize(stream));
        }
        launched
    }

    /// Lets a function put its work on a stream. If it fails, what it has put there so far has
    /// ended when this returns, as nobody will look for its end.
    fn call(
        &self,
        stream: Stream,
        call: &dyn EnqueuedCall,
        chunk: &Box3,
        memory: &[BoundMemory<'_>],
    ) -> Result<(), JobFailure> {
        let failed = |error: DriverError| Panicked(error.to_string());
        let native = self.driver().native(stream).map_err(failed)?;
        // An earlier one may have left another context.
        self.driver().adopt_thread(self.gpu).map_err(failed)?;
        // SAFETY: `Backend::enqueue` promises live memory without races until the job is
        // reported, and events of that memory were waited for. The stream lives as long as `self`,
        // and that nothing but the call's own memory is touched is what `EnqueuedCall` promises.
        let failure = JobFailure::of(|| unsafe { call.enqueue(chunk, memory, native) });
        // If it fails, so will every job.
        drop(self.driver().adopt_thread(self.gpu));
        failure.map_or(Ok(()), |failure| {
            // What failed on the GPU is found by the next event.
            drop(self.driver().synchronize(stream));
            Err(failure)
        })
    }

    /// Waits until nothing runs: kernels that record where they went astray run
    /// alone, so that it is known whose record it is.
    fn drain(&self) {
        for lane in self.own.clone() {
            let (stream, _) = self.target(lane);
            // What failed is found by its event.
            drop(self.driver().synchronize(stream));
        }
    }

    fn copy(&self, stream: Stream, transfers: &[Transfer]) -> Result<(), String> {
        // SAFETY: as for kernels.
        let copied = unsafe { self.driver().copy_all(stream, transfers) };
        copied.map_err(|error| error.to_string())
    }

    /// Puts an event behind what has been started on a lane.
    fn seal(&mut self, lane: usize, timing: Option<JobTiming>) {
        if self.lane(lane).open() == 0 {
            return;
        }
        let (stream, _) = self.target(lane);
        match self.event_behind(stream) {
            Ok(event) => self.lane(lane).seal(event, timing),
            Err(error) => self.give_up(&error),
        }
    }

    /// An event behind everything on a stream.
    fn event_behind(&mut self, stream: Stream) -> Result<Event, DriverError> {
        let event = match self.events.pop() {
            Some(event) => event,
            None => self.driver().create_event(self.gpu, self.timer.is_some())?,
        };
        self.driver().record(event, stream)?;
        Ok(event)
    }

    /// Puts an event before a job, if jobs are timed and that can be done.
    fn begin_timing(&mut self, stream: Stream) -> Option<JobTiming> {
        let mut timer = self.timer.take()?;
        let epoch = timer.epoch(self.driver(), stream);
        self.timer = Some(timer);
        Some(JobTiming { start: self.event_behind(stream).ok()?, epoch: epoch? })
    }

    /// Reports what has ended.
    fn collect(&mut self) -> bool {
        let mut any = false;
        self.unseen = 0;
        for lane in self.own.clone() {
            let mut jobs = 0;
            loop {
                let polled = self.lane(lane).poll(self.driver());
                match polled {
                    Ok(Some(ended)) => {
                        jobs += ended.jobs.len();
                        self.ended(ended);
                    }
                    Ok(None) => break,
                    Err(error) => self.give_up(&error),
                }
                any = true;
            }
            if jobs > 0 {
                self.lane(lane).progressed(jobs);
            }
        }
        any
    }

    fn ended(&mut self, ended: Ended) {
        let Ended { jobs, span, events } = ended;
        self.events.extend(events);
        let record = jobs.iter().find_map(|job| job.panics.as_ref().filter(|it| it.is_set()));
        if let Some(record) = record.cloned() {
            return self.panicked(&record, jobs);
        }
        let done = |job: Job| Completion { instruction: job.instruction, failure: None, span };
        self.reports.completed(jobs.into_iter().map(done));
    }

    /// Ends all lanes, since a kernel has panicked: one of those that have just
    /// ended, or of those behind it, and of the module that the record belongs to.
    fn panicked(&mut self, record: &Arc<GpuPanics>, ended: Jobs) {
        self.drain();
        let jobs = ended.into_iter().chain(self.empty_lanes());
        let is_suspect =
            |job: &Job| job.panics.as_ref().is_some_and(|panics| Arc::ptr_eq(panics, record));
        let (suspects, others): (Jobs, Jobs) = jobs.partition(is_suspect);
        let what = record.take().unwrap_or_else(|| "a kernel, which left no message".to_owned());
        self.blame(&suspects, format!("panicked on {}: {what}", self.gpu));
        self.reports.dropped(others.len());
    }

    /// Reports a job that could not be started. Its lane runs nothing more.
    ///
    /// If the reason is that something on the GPU has failed before, that is
    /// what is reported instead.
    fn fail(&mut self, lane: usize, instruction: InstructionId, failure: JobFailure) {
        let (stream, _) = self.target(lane);
        match self.event_behind(stream) {
            Ok(event) => {
                self.events.push(event);
                self.lane(lane).halted = true;
                self.reports.completed([failed(instruction, failure)]);
            }
            Err(error) => {
                self.lane(lane).started(
                    Job { instruction, panics: None },
                    usize::MAX,
                    Duration::MAX,
                );
                self.give_up(&error);
            }
        }
    }

    /// Ends all lanes, since one of the jobs on them has failed on the GPU. The
    /// oldest kernel is reported, or else the oldest copy; the others are named.
    fn give_up(&mut self, error: &DriverError) {
        let jobs = self.empty_lanes();
        self.blame(&jobs, format!("{} failed: {error}", self.gpu));
    }

    /// Ends all lanes of this GPU; returns what was on them.
    fn empty_lanes(&self) -> Jobs {
        self.own.clone().flat_map(|lane| self.lane(lane).give_up()).collect()
    }

    /// Reports that one of several jobs has failed. The first is held to be it.
    fn blame(&self, suspects: &[Job], mut text: String) {
        let Some((first, others)) = suspects.split_first() else { return };
        let instruction = first.instruction;
        if !others.is_empty() {
            let others: Vec<_> = others.iter().map(|job| job.instruction.to_string()).collect();
            text += &format!("; it was in this one or in {}", others.join(", "));
        }
        self.reports.completed([failed(instruction, Panicked(text))]);
        self.reports.dropped(others.len());
    }

    /// Waits for a message and takes it; if there is something to look for, not
    /// for long.
    fn rest(&mut self) {
        if self.held.is_some() {
            return std::thread::sleep(SHORT_NAP);
        }
        let message = if self.is_empty() {
            // There is a sender until it has said that it stops.
            self.messages.recv().ok()
        } else {
            let nap = (self.stirred.elapsed() / NAPS).min(LONGEST_NAP);
            self.messages.recv_timeout(nap).ok()
        };
        if let Some(message) = message {
            self.stirred = Instant::now();
            self.take(message);
        }
    }
}

/// The report of a job that has failed.
fn failed(instruction: InstructionId, failure: JobFailure) -> Completion {
    Completion { instruction, failure: Some(failure), span: None }
}

impl Drop for Submitter {
    fn drop(&mut self) {
        for lane in self.own.clone() {
            let (stream, _) = self.target(lane);
            // What failed has been reported.
            drop(self.driver().synchronize(stream));
            // SAFETY: it is this GPU's, is empty, and this is its last use.
            unsafe { self.driver().destroy_stream(stream) };
        }
        let of_timer = self.timer.iter().flat_map(Timer::events);
        for event in self.events.iter().copied().chain(of_timer) {
            // SAFETY: it was made here, and no batch uses it.
            unsafe { self.driver().destroy_event(event) };
        }
    }
}

/// What is launched for a chunk: in smaller blocks if the GPU has not registers for those that the code would have.
fn launch_of(
    code: &dyn DeviceCode,
    chunk: &Box3,
    memory: &[BoundMemory<'_>],
    most_threads: u32,
) -> Result<Launch, Box<dyn Error + Send + Sync>> {
    let fits = |launch: &Launch| launch.threads() <= u64::from(most_threads);
    let launch = code.launch(chunk, memory)?;
    if fits(&launch) {
        return Ok(launch);
    }
    let launch = code.launch_within(chunk, memory, most_threads)?;
    if fits(&launch) {
        return Ok(launch);
    }
    let message = format!(
        "its blocks have {} threads, each of which takes so many registers that a block can have {most_threads} at \
         most; let groups have fewer items, or a thread fewer registers (`#[kernel(registers = ...)]`)",
        launch.threads()
    );
    Err(message.into())
}
