//! How a lane tells which of its jobs have run. A lane is in order, so a count says
//! it all: no queue between threads, no lock and no allocation, but for jobs that
//! fail or are timed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use celerity_idag::InstructionId;

use crate::backend::{Begun, Completion, JobFailure};
use crate::polling::Waker;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Handover, lock};
use crate::time::{Clock, Span, Time};

/// What threads of lanes are called.
pub(super) const HOST_THREAD: &str = "celerity-host";

/// Which lanes of a node have news, and how to wake the node.
pub(super) struct Bell {
    /// A bit per lane.
    news: Box<[AtomicU64]>,
    waker: Waker,
    /// Set if jobs are timed.
    clock: OnceLock<Clock>,
    /// Set if somebody may ask when jobs have begun.
    begins: OnceLock<Clock>,
}

/// The lane's end: written by whoever runs the lane's jobs, one at a time.
pub(super) struct Outbox {
    lane: usize,
    bell: Arc<Bell>,
    completed: AtomicU64,
    /// The job that failed, counted from 0, and how. It is the last.
    failure: OnceLock<(u64, JobFailure)>,
    /// Of jobs that have not been reported, if jobs are timed.
    spans: Mutex<VecDeque<Span>>,
    /// When the job has begun that is run now, in nanoseconds from the start of the run, and 2
    /// more; 1 if that is not known, and 0 if none is run. Those that are run by who pushes them
    /// do not count: nobody else looks.
    begun: AtomicU64,
    /// Which thread of the pool runs it, and 1 more; 0 for the lane's own.
    thread: AtomicUsize,
}

/// The node's end.
pub(super) struct Inbox {
    outbox: Arc<Outbox>,
    reported: u64,
    /// What is on the lane.
    queued: VecDeque<InstructionId>,
}

impl Bell {
    pub(super) fn new(lanes: usize, waker: Waker) -> Arc<Self> {
        let news = (0..lanes.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Self { news, waker, clock: OnceLock::new(), begins: OnceLock::new() })
    }

    /// Times jobs from now on.
    pub(super) fn time_by(&self, clock: Clock) {
        // The first clock holds.
        drop(self.clock.set(clock));
    }

    /// Notes from now on when jobs begin.
    pub(super) fn note_begins(&self, clock: Clock) {
        // The first clock holds.
        drop(self.begins.set(clock));
    }

    pub(super) fn wake(&self) {
        (self.waker)();
    }

    /// Calls `look` with each lane that has news, and takes notice of them.
    pub(super) fn answer(&self, mut look: impl FnMut(usize)) {
        for (index, word) in self.news.iter().enumerate() {
            // Polls are frequent, and mostly there is nothing.
            if word.load(Ordering::Relaxed) == 0 {
                continue;
            }
            // Acquires what the lanes have done before they rang. What they do
            // from here on makes them ring again.
            let mut news = word.swap(0, Handover::NewsTaken.ordering(Ordering::Acquire));
            while news != 0 {
                look(index * 64 + news.trailing_zeros() as usize);
                news &= news - 1;
            }
        }
    }

    fn ring(&self, lane: usize) {
        let order = Handover::LaneRings.ordering(Ordering::Release);
        self.news[lane / 64].fetch_or(1 << (lane % 64), order);
    }
}

impl Outbox {
    pub(super) fn new(lane: usize, bell: Arc<Bell>) -> Arc<Self> {
        Arc::new(Self {
            lane,
            bell,
            completed: AtomicU64::new(0),
            failure: OnceLock::new(),
            spans: Mutex::default(),
            begun: AtomicU64::new(0),
            thread: AtomicUsize::new(0),
        })
    }

    pub(super) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// Runs the lane's next job, which returns how it failed, if it did, and tells the
    /// node.
    pub(super) fn report(&self, job: impl FnOnce() -> Option<JobFailure>) {
        self.begins();
        self.report_quietly(|| {
            let failure = job();
            self.begun.store(0, Ordering::Relaxed);
            failure
        });
        self.bell.wake();
    }

    /// A job begins on this thread.
    fn begins(&self) {
        let now = self.bell.begins.get().map(|clock| clock().since(Time::START).as_nanos());
        let now = now.map_or(1, |nanos| u64::try_from(nanos).unwrap_or(u64::MAX).saturating_add(2));
        let thread = rayon::current_thread_index().map_or(0, |index| index + 1);
        self.thread.store(thread, Ordering::Relaxed);
        self.begun.store(now, Ordering::Relaxed);
    }

    /// The same for a node that looks anyway.
    pub(super) fn report_quietly(&self, job: impl FnOnce() -> Option<JobFailure>) {
        let clock = self.bell.clock.get();
        let start = clock.map(|clock| clock());
        let failure = job();
        if let Some((clock, start)) = clock.zip(start) {
            lock(&self.spans).push_back(Span { start, end: clock() });
        }
        if let Some(failure) = failure {
            let job = self.completed.load(Ordering::Relaxed);
            // Nothing runs after the first failure.
            drop(self.failure.set((job, failure)));
        }
        self.completed.fetch_add(1, Handover::JobCounted.ordering(Ordering::Release));
        self.bell.ring(self.lane);
    }
}

impl Inbox {
    pub(super) fn new(outbox: Arc<Outbox>) -> Self {
        Self { outbox, reported: 0, queued: VecDeque::new() }
    }

    /// Takes notice of a job that goes on the lane, behind all others.
    pub(super) fn expect(&mut self, instruction: InstructionId) {
        self.queued.push_back(instruction);
    }

    /// The job that the lane is at, unless it is run by who has pushed it.
    pub(super) fn begun(&self) -> Option<Begun> {
        let nanos = self.outbox.begun.load(Ordering::Relaxed).checked_sub(1)?;
        let since = nanos.checked_sub(1).map(|nanos| Time::START + Duration::from_nanos(nanos));
        let thread = match self.outbox.thread.load(Ordering::Relaxed) {
            0 => HOST_THREAD.to_owned(),
            index => format!("celerity-{}", index - 1),
        };
        Some(Begun { instruction: self.next()?, since, thread: Some(thread) })
    }

    /// The first job that has not completed.
    pub(super) fn next(&self) -> Option<InstructionId> {
        let completed = self.outbox.completed.load(Ordering::Acquire);
        let ahead = usize::try_from(completed - self.reported).ok()?;
        self.queued.get(ahead).copied()
    }

    /// Appends what has completed since the last call.
    pub(super) fn collect(&mut self, out: &mut Vec<Completion>) {
        let completed = self.outbox.completed.load(Ordering::Acquire);
        for job in self.reported..completed {
            let instruction = self.queued.pop_front().expect("a lane runs what was put on it");
            let failure = self.outbox.failure.get().filter(|(failed, _)| *failed == job);
            let failure = failure.map(|(_, how)| how.clone());
            let timed = self.outbox.bell.clock.get().is_some();
            let span = timed.then(|| lock(&self.outbox.spans).pop_front()).flatten();
            out.push(Completion { instruction, failure, span });
        }
        self.reported = completed;
    }
}

#[cfg(all(loom, test))]
#[allow(unsafe_code)]
mod interleavings {
    use loom::cell::UnsafeCell;

    use super::*;
    use crate::sync::weakened;

    /// What a job has written, which nobody may look at before it is reported.
    struct Written(UnsafeCell<u64>);

    // SAFETY: that nobody looks while the job writes is what the tests are about, and `loom` sees.
    unsafe impl Sync for Written {}

    impl Written {
        fn shared() -> Arc<Self> {
            Arc::new(Self(UnsafeCell::new(0)))
        }

        fn write(&self) {
            // SAFETY: as above.
            self.0.with_mut(|value| unsafe { *value = 7 });
        }

        fn read(&self) -> u64 {
            // SAFETY: as above.
            self.0.with(|value| unsafe { *value })
        }
    }

    #[test]
    fn what_a_reported_job_has_written_is_seen_and_nothing_is_lost() {
        loom::model(|| {
            let bell = Bell::new(1, Arc::new(|| {}));
            let outbox = Outbox::new(0, bell.clone());
            let mut inbox = Inbox::new(outbox.clone());
            let written = [Written::shared(), Written::shared()];
            let jobs = [4, 7].map(InstructionId::from_index);
            jobs.into_iter().for_each(|job| inbox.expect(job));
            let [first, second] = written.clone();
            let lane = loom::thread::spawn(move || {
                outbox.report(|| {
                    first.write();
                    None
                });
                outbox.report(|| {
                    second.write();
                    Some(JobFailure::Panicked("boom".to_owned()))
                });
            });
            let mut done = Vec::new();
            let mut look = |done: &mut Vec<Completion>| {
                bell.answer(|_| inbox.collect(done));
                written.iter().take(done.len()).for_each(|job| assert_eq!(job.read(), 7));
            };
            look(&mut done);
            look(&mut done);
            lane.join().unwrap();
            look(&mut done);
            let told: Vec<_> =
                done.iter().map(|one| (one.instruction, one.failure.is_some())).collect();
            assert_eq!(told, [(jobs[0], false), (jobs[1], true)]);
        });
    }

    #[test]
    fn a_job_that_is_counted_without_publishing_it_is_noticed() {
        let test = what_a_reported_job_has_written_is_seen_and_nothing_is_lost;
        let said = weakened::run(Handover::JobCounted, test).expect("loom must see it");
        assert!(said.contains("Causality violation"), "{said}");
    }

    #[test]
    fn a_ring_that_overtakes_the_count_is_noticed() {
        let test = what_a_reported_job_has_written_is_seen_and_nothing_is_lost;
        for place in [Handover::LaneRings, Handover::NewsTaken] {
            let said = weakened::run(place, test);
            let said = said.unwrap_or_else(|| panic!("loom must see {place:?}"));
            // A job is lost: the node looked for it too early, and nobody rings once more.
            assert!(said.contains("left == right"), "{place:?}: {said}");
        }
    }

    #[test]
    fn lanes_that_ring_at_once_are_both_heard() {
        loom::model(|| {
            let bell = Bell::new(2, Arc::new(|| {}));
            let lanes = [0, 1].map(|lane| Outbox::new(lane, bell.clone()));
            let mut inboxes = lanes.clone().map(Inbox::new);
            inboxes.iter_mut().for_each(|inbox| inbox.expect(InstructionId::from_index(3)));
            let threads = lanes.map(|lane| loom::thread::spawn(move || lane.report(|| None)));
            let mut done = Vec::new();
            bell.answer(|lane| inboxes[lane].collect(&mut done));
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            bell.answer(|lane| inboxes[lane].collect(&mut done));
            assert_eq!(done.len(), 2);
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn lane(bell: &Arc<Bell>, number: usize) -> (Arc<Outbox>, Inbox) {
        let outbox = Outbox::new(number, bell.clone());
        (outbox.clone(), Inbox::new(outbox))
    }

    fn collect(bell: &Bell, lanes: &mut [(usize, &mut Inbox)]) -> Vec<Completion> {
        let mut all = Vec::new();
        bell.answer(|number| {
            let lane = lanes.iter_mut().find(|(candidate, _)| *candidate == number);
            lane.expect("only these ring").1.collect(&mut all);
        });
        all
    }

    #[test]
    fn jobs_are_reported_once_and_in_order() {
        let bell = Bell::new(130, Arc::new(|| {}));
        let ((first, mut one), (last, mut other)) = (lane(&bell, 0), lane(&bell, 129));
        let [a, b, c] = [4, 7, 9].map(InstructionId::from_index);
        one.expect(a);
        other.expect(b);
        other.expect(c);
        assert_eq!(collect(&bell, &mut [(0, &mut one), (129, &mut other)]), []);
        last.report(|| None);
        last.report(|| Some(JobFailure::Panicked("boom".to_owned())));
        first.report(|| None);
        let done = collect(&bell, &mut [(0, &mut one), (129, &mut other)]);
        let told = |instruction, panic: Option<&str>| Completion {
            instruction,
            failure: panic.map(|text| JobFailure::Panicked(text.to_owned())),
            span: None,
        };
        assert_eq!(done, [told(a, None), told(b, None), told(c, Some("boom"))]);
        assert_eq!(collect(&bell, &mut []), []);
    }

    #[test]
    fn a_job_is_known_while_it_runs() {
        let bell = Bell::new(1, Arc::new(|| {}));
        let (outbox, mut inbox) = lane(&bell, 0);
        let [a, b] = [4, 7].map(InstructionId::from_index);
        [a, b].into_iter().for_each(|job| inbox.expect(job));
        let thread = Some(HOST_THREAD.to_owned());
        outbox.report(|| {
            let begun = Begun { instruction: a, since: None, thread: thread.clone() };
            assert_eq!(inbox.begun(), Some(begun));
            None
        });
        assert_eq!((inbox.begun(), inbox.next()), (None, Some(b)));
        bell.note_begins(Arc::new(|| Time::START + Duration::from_secs(3)));
        outbox.report(|| {
            let since = Some(Time::START + Duration::from_secs(3));
            assert_eq!(
                inbox.begun(),
                Some(Begun { instruction: b, since, thread: thread.clone() })
            );
            None
        });
        inbox.collect(&mut Vec::new());
        assert_eq!((inbox.begun(), inbox.next()), (None, None));
    }

    #[test]
    fn timed_jobs_have_spans() {
        let bell = Bell::new(1, Arc::new(|| {}));
        let (outbox, mut inbox) = lane(&bell, 0);
        let ticks = AtomicU64::new(0);
        let tick =
            move || Time::START + Duration::from_micros(ticks.fetch_add(1, Ordering::Relaxed));
        bell.time_by(Arc::new(tick));
        for index in 0..2 {
            inbox.expect(InstructionId::from_index(index));
            outbox.report(|| None);
        }
        let done = collect(&bell, &mut [(0, &mut inbox)]);
        let at = |micros| Time::START + Duration::from_micros(micros);
        let spans: Vec<_> = done.iter().filter_map(|completion| completion.span).collect();
        assert_eq!(
            spans,
            [(0, 1), (2, 3)].map(|(start, end)| Span { start: at(start), end: at(end) })
        );
    }
}
