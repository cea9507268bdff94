//! Somebody who looks at the engine's threads, and at the program's where they ask range mappers,
//! from a thread that all runs of the process share: code of the user's that does not return there
//! keeps a node from saying anything itself, and Ctrl-C from ending the run. Sleeps for as long as
//! nobody can have been anywhere for too long. Decides nothing but when to speak.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use celerity_cdag::NodeId;
use celerity_tdag::TaskId;

use crate::error::RunError;
use crate::frontend::NodeFrontend;
use crate::polling::{GRACE, LEAST_BETWEEN_LOOKS};
use crate::pulse::{Pulse, UserCall, UserCalls};
use crate::sync::lock;
use crate::threads::no_threads;
use crate::time::Time;
use crate::warning::{Blocked, Warning, WarningSink};
use crate::watchdog::Watchdog;

/// A thread of the engine, and what it runs for which nodes.
pub(super) struct Sight {
    pub(super) pulse: Arc<Pulse>,
    /// What does not happen while the thread is elsewhere.
    pub(super) duty: Duty,
    pub(super) calls: Vec<(NodeId, Arc<UserCalls>)>,
}

/// What a thread of the engine does for its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duty {
    /// Everything.
    Both,
    Scheduling,
    Execution,
}

/// Watches a run until it is dropped.
pub(super) struct Watch {
    watcher: Arc<Watcher>,
    run: Arc<Watched>,
}

/// Tells that the run is to end: from now on nothing should take long.
#[derive(Clone)]
pub(super) struct Hurry {
    watcher: Arc<Watcher>,
    run: Weak<Watched>,
}

/// The thread that watches all runs of this process, and when it looks at them. It starts with
/// the first one, and sleeps while there are none: a thread for each would take longer to start
/// than a short run.
#[derive(Default)]
struct Watcher {
    agenda: Mutex<Agenda>,
    changed: Condvar,
}

#[derive(Default)]
struct Agenda {
    runs: Vec<Arc<Watched>>,
    /// When the next look is due; never, while nobody is there.
    next: Option<Instant>,
}

/// A run that is watched.
struct Watched {
    start: Instant,
    warnings: WarningSink,
    state: Mutex<State>,
}

struct State {
    /// Gone when the run is over.
    lookout: Option<Lookout>,
    /// Whether the run is to end.
    ending: bool,
    /// By which signal, if by one.
    signal: Option<String>,
}

impl Watch {
    /// Watches the threads of a run that has started at `start`, and complains of what has gone
    /// on for `period`, or for the [grace](GRACE) of a run that is to end.
    ///
    /// # Errors
    /// [`RunError::Start`] if the system gives no thread.
    pub(super) fn start(
        period: Duration,
        start: Instant,
        sights: Vec<Sight>,
        nodes: &[Arc<NodeFrontend>],
        warnings: WarningSink,
    ) -> Result<Self, RunError> {
        let watcher = Watcher::of_process()?;
        let lookout = Some(Lookout::new(period, sights, nodes.to_vec()));
        let state = Mutex::new(State { lookout, ending: false, signal: None });
        let run = Arc::new(Watched { start, warnings, state });
        let watch = Self { watcher, run };
        for node in nodes {
            let hurry = watch.hurry();
            node.on_failure(move || hurry.up(None));
        }
        lock(&watch.watcher.agenda).runs.push(watch.run.clone());
        watch.watcher.look_until(Instant::now().checked_add(period));
        Ok(watch)
    }

    pub(super) fn hurry(&self) -> Hurry {
        Hurry { watcher: self.watcher.clone(), run: Arc::downgrade(&self.run) }
    }
}

impl Drop for Watch {
    /// What it holds of the run is given back at once; the thread may look at nothing once more.
    fn drop(&mut self) {
        lock(&self.watcher.agenda).runs.retain(|run| !Arc::ptr_eq(run, &self.run));
        let lookout = lock(&self.run.state).lookout.take();
        drop(lookout);
    }
}

impl Hurry {
    /// The run is to end, because of a signal or otherwise.
    pub(super) fn up(&self, signal: Option<&str>) {
        let Some(run) = self.run.upgrade() else { return };
        let mut state = lock(&run.state);
        state.ending = true;
        if let Some(signal) = signal {
            state.signal.get_or_insert_with(|| signal.to_owned());
        }
        drop(state);
        self.watcher.look_until(Some(Instant::now()));
    }
}

impl Watcher {
    fn of_process() -> Result<Arc<Self>, RunError> {
        static WATCHER: Mutex<Option<Arc<Watcher>>> = Mutex::new(None);
        let mut watcher = lock(&WATCHER);
        if let Some(watcher) = &*watcher {
            return Ok(watcher.clone());
        }
        let new = Arc::<Self>::default();
        let watching = new.clone();
        let thread = thread::Builder::new().name("celerity-watch".to_owned());
        let started = thread.spawn(move || watching.watch());
        drop(started.map_err(|error| no_threads(&error.to_string()))?);
        Ok(watcher.insert(new).clone())
    }

    /// Makes sure that there is a look then at the latest, if that can be told.
    fn look_until(&self, at: Option<Instant>) {
        let mut agenda = lock(&self.agenda);
        if let Some(at) = at
            && agenda.next.is_none_or(|next| at < next)
        {
            agenda.next = Some(at);
            self.changed.notify_one();
        }
    }

    fn watch(&self) {
        let mut agenda = lock(&self.agenda);
        loop {
            let now = Instant::now();
            match agenda.next {
                Some(next) if next <= now => {}
                Some(next) => {
                    let waited = self.changed.wait_timeout(agenda, next - now);
                    agenda = waited.unwrap_or_else(PoisonError::into_inner).0;
                    continue;
                }
                None => {
                    agenda = self.changed.wait(agenda).unwrap_or_else(PoisonError::into_inner);
                    continue;
                }
            }
            let runs = agenda.runs.clone();
            agenda.next = None;
            drop(agenda);
            let next = runs.iter().filter_map(|run| run.look()).min();
            drop(runs);
            self.look_until(next);
            agenda = lock(&self.agenda);
        }
    }
}

impl Watched {
    /// Looks at the run, if it is not over, and says what there is to say. Returns when to look
    /// again, if that can be told.
    fn look(&self) -> Option<Instant> {
        let mut guard = lock(&self.state);
        let State { lookout, ending, signal } = &mut *guard;
        let (found, next) = lookout.as_mut()?.look(Time::elapsed(self.start), *ending);
        let interrupted = signal.clone();
        // Who listens may take time, and the run may be over meanwhile.
        drop(guard);
        for blocked in found {
            let blocked = Blocked { interrupted: interrupted.clone(), ..blocked };
            self.warnings.warn(&Warning::Blocked(blocked));
        }
        self.start.checked_add(next.since(Time::START))
    }
}

/// Who has been where for how long, as far as somebody has to be told. A state machine: time is
/// an argument.
struct Lookout {
    period: Duration,
    sights: Vec<(Sight, Seen)>,
    nodes: Vec<(Arc<NodeFrontend>, Seen)>,
}

/// What was seen at the last look.
struct Seen {
    since: Option<Time>,
    dog: Watchdog,
}

impl Seen {
    fn new(period: Duration) -> Self {
        Self { since: None, dog: Watchdog::new(period) }
    }

    /// Something has gone on since then, if anything does: for how long, if it is time to say
    /// so; and when to look again.
    fn look(&mut self, since: Option<Time>, now: Time) -> (Option<Duration>, Time) {
        if since != self.since || since.is_none() {
            self.dog.calm(since.unwrap_or(now), since.is_some());
            self.since = since;
        }
        let lasting = self.since.and_then(|_| self.dog.complain(now));
        (lasting, self.dog.deadline())
    }
}

impl Lookout {
    fn new(period: Duration, sights: Vec<Sight>, nodes: Vec<Arc<NodeFrontend>>) -> Self {
        let seen = || Seen::new(period);
        let sights = sights.into_iter().map(|sight| (sight, seen())).collect();
        let nodes = nodes.into_iter().map(|node| (node, seen())).collect();
        Self { period, sights, nodes }
    }

    /// What there is to complain of, and when to look again. From the first look on at a run
    /// that is `ending`, patience is short.
    fn look(&mut self, now: Time, ending: bool) -> (Vec<Blocked>, Time) {
        if ending && self.period > GRACE {
            self.period = GRACE;
            let all = self.sights.iter_mut().map(|(_, seen)| seen);
            let all = all.chain(self.nodes.iter_mut().map(|(_, seen)| seen));
            all.for_each(|seen| *seen = Seen::new(GRACE));
        }
        let (mut found, mut next) = (Vec::new(), now + self.period);
        for (sight, seen) in &mut self.sights {
            let (lasting, deadline) = seen.look(sight.pulse.since(), now);
            next = next.min(deadline);
            found.extend(lasting.map(|lasting| sight.describe(lasting, &self.nodes)));
        }
        for (node, seen) in &mut self.nodes {
            let mapping = node.mapping();
            let (lasting, deadline) = seen.look(mapping.as_ref().map(|(_, since)| *since), now);
            next = next.min(deadline);
            found.extend(lasting.zip(mapping).map(|(lasting, (task, _))| Blocked {
                node: node.node(),
                inside: format!("a range mapper of task {task}, which its program submits"),
                lasting,
                consequence: String::new(),
                interrupted: None,
            }));
        }
        // One that has just been complained of comes later than the next look.
        (found, next.max(now + LEAST_BETWEEN_LOOKS))
    }
}

impl Sight {
    fn describe(&self, lasting: Duration, nodes: &[(Arc<NodeFrontend>, Seen)]) -> Blocked {
        let call = self.calls.iter().find_map(|(node, calls)| Some((*node, calls.now()?)));
        let (first, _) = self.calls[0];
        let node = call.map_or(first, |(node, _)| node);
        let name = |task: TaskId| {
            let frontend = nodes.iter().find(|(frontend, _)| frontend.node() == node);
            frontend.map_or_else(|| task.to_string(), |(frontend, _)| frontend.describe(task))
        };
        let inside = match call {
            Some((_, UserCall::Mapper(task))) => {
                format!("a range mapper of {}, or with the boxes that one names,", name(task))
            }
            Some((_, UserCall::Kernel(task))) => {
                format!("the kernel of {}, which it runs itself", name(task))
            }
            Some((_, UserCall::End(task))) => format!("the end of what {} owned", name(task)),
            None => "one round of its work".to_owned(),
        };
        let consequence = format!("; meanwhile {}", Meanwhile(self));
        Blocked { node, inside, lasting, consequence, interrupted: None }
    }
}

/// What does not happen.
struct Meanwhile<'s>(&'s Sight);

impl fmt::Display for Meanwhile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sight { duty, calls, .. } = self.0;
        let (first, last) = (calls[0].0, calls[calls.len() - 1].0);
        match last.index() - first.index() {
            0 => write!(f, "{first}")?,
            1 => write!(f, "{first} and {last}")?,
            _ => write!(f, "{first} to {last}")?,
        }
        let s = if first == last { "s" } else { "" };
        match duty {
            Duty::Both => write!(f, " schedule{s} nothing, and get{s} no messages"),
            Duty::Scheduling => write!(f, " schedule{s} nothing"),
            Duty::Execution => write!(f, " start{s} nothing, and get{s} no messages"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::START + Duration::from_secs(seconds)
    }

    /// A thread of so many nodes, each with two halves, as a lookout sees it.
    fn sight(duty: Duty, nodes: usize) -> (Sight, Arc<Pulse>, Vec<Arc<UserCalls>>) {
        let pulse = Arc::<Pulse>::default();
        let calls: Vec<Arc<UserCalls>> = (0..2 * nodes).map(|_| Arc::default()).collect();
        let of_node = |(at, calls): (usize, &Arc<UserCalls>)| {
            (NodeId::from_index(at as u64 / 2), calls.clone())
        };
        let of_nodes = calls.iter().enumerate().map(of_node).collect();
        (Sight { pulse: pulse.clone(), duty, calls: of_nodes }, pulse, calls)
    }

    fn said(lookout: &mut Lookout, now: Time, ending: bool) -> (Vec<String>, Time) {
        let (found, next) = lookout.look(now, ending);
        (found.into_iter().map(|blocked| blocked.to_string()).collect(), next)
    }

    #[test]
    fn a_thread_that_does_not_come_back_is_complained_of_at_doubling_intervals() {
        let (sight, pulse, calls) = sight(Duty::Both, 3);
        let mut lookout = Lookout::new(Duration::from_secs(30), vec![sight], Vec::new());
        assert_eq!(said(&mut lookout, at(0), false), (vec![], at(30)));
        pulse.beat(at(10));
        calls[2].during(UserCall::Mapper(TaskId::from_index(7)), || {
            assert_eq!(said(&mut lookout, at(30), false), (vec![], at(40)));
            let expected = "N1 has been in a range mapper of T7, or with the boxes that one names, for \
                            30.0s; meanwhile N0 to N2 schedule nothing, and get no messages";
            assert_eq!(said(&mut lookout, at(40), false), (vec![expected.to_owned()], at(70)));
            assert_eq!(said(&mut lookout, at(69), false), (vec![], at(70)));
            assert_eq!(said(&mut lookout, at(70), false).0.len(), 1);
        });
        pulse.beat(at(75));
        assert_eq!(said(&mut lookout, at(80), false), (vec![], at(105)));
        pulse.rest();
        assert_eq!(said(&mut lookout, at(200), false), (vec![], at(230)));
    }

    #[test]
    fn a_run_that_is_to_end_has_little_patience() {
        let (sight, pulse, calls) = sight(Duty::Scheduling, 1);
        let mut lookout = Lookout::new(Duration::from_secs(30), vec![sight], Vec::new());
        pulse.beat(at(10));
        assert_eq!(said(&mut lookout, at(12), false), (vec![], at(40)));
        calls[1].during(UserCall::End(TaskId::from_index(2)), || {
            let (all, next) = said(&mut lookout, at(13), true);
            let expected = "N0 has been in the end of what T2 owned for 3.0s; meanwhile N0 \
                            schedules nothing";
            assert_eq!((all, next), (vec![expected.to_owned()], at(14)));
        });
    }

    #[test]
    fn patience_that_is_short_already_stays_so() {
        let (sight, pulse, _) = sight(Duty::Execution, 2);
        let period = Duration::from_millis(10);
        let mut lookout = Lookout::new(period, vec![sight], Vec::new());
        pulse.beat(at(10));
        let (all, _) = said(&mut lookout, at(10) + period, true);
        let expected = "N0 has been in one round of its work for 10.0ms; meanwhile N0 and N1 start \
                        nothing, and get no messages";
        assert_eq!(all, [expected]);
    }

    #[test]
    fn runs_side_by_side_are_watched_by_themselves_until_they_are_over() {
        use std::sync::mpsc::channel;

        let (tell, told) = channel();
        let watch = |name: &'static str, period| {
            let (sight, pulse, _) = sight(Duty::Both, 1);
            pulse.beat(Time::START);
            let tell = Mutex::new(tell.clone());
            let sink = WarningSink::new(move |warning| {
                drop(lock(&tell).send((name, warning.to_string())));
            });
            let watch = Watch::start(period, Instant::now(), vec![sight], &[], sink).unwrap();
            (watch, pulse)
        };
        let (_patient, _) = watch("patient", Duration::MAX);
        let (hurried, pulse) = watch("hurried", Duration::from_secs(1000));
        let (hasty, _) = watch("hasty", Duration::from_millis(1));
        assert_eq!(told.recv().unwrap().0, "hasty");
        drop(hasty);
        while told.try_recv().is_ok() {}
        hurried.hurry().up(Some("SIGINT"));
        let (name, text) = told.recv().unwrap();
        assert!(
            name == "hurried" && text.starts_with("interrupted by SIGINT; N0 has been"),
            "{text}"
        );
        let lookout = Arc::downgrade(&pulse);
        drop((hurried, pulse));
        assert_eq!(lookout.strong_count(), 0, "nothing of the run is kept");
    }
}
