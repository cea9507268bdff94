//! Somebody who looks at the engine's threads, and at the program's where they ask range mappers,
//! from a thread of its own: code of the user's that does not return there keeps a node from
//! saying anything itself, and Ctrl-C from ending the run. Sleeps for as long as nobody can have
//! been anywhere for too long. Decides nothing but when to speak.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use celerity_cdag::NodeId;

use crate::error::RunError;
use crate::frontend::NodeFrontend;
use crate::node::{GRACE, Watchdog};
use crate::pulse::{Call, Calls, Pulse};
use crate::sync::lock;
use crate::threads::no_threads;
use crate::time::Time;
use crate::warning::{Blocked, Warning, WarningSink};

/// A thread of the engine, and what it runs for which nodes.
pub(super) struct Sight {
    pub(super) pulse: Arc<Pulse>,
    /// What does not happen while the thread is elsewhere.
    pub(super) duty: Duty,
    pub(super) calls: Vec<(NodeId, Arc<Calls>)>,
}

/// What a thread of the engine does for its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duty {
    /// Everything.
    Both,
    Scheduling,
    Execution,
}

/// Watches until it is dropped.
pub(super) struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Tells the watch that the run is to end: from now on nothing should take long.
#[derive(Clone)]
pub(super) struct Hurry(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    over: bool,
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
        let shared = Arc::<Shared>::default();
        for node in nodes {
            let hurry = Hurry(shared.clone());
            node.on_failure(move || hurry.up(None));
        }
        let (watched, nodes) = (shared.clone(), nodes.to_vec());
        let watch = move || {
            let lookout = Lookout::new(period, sights, nodes);
            watched.watch(lookout, start, &warnings);
        };
        let thread = thread::Builder::new().name("celerity-watch".to_owned()).spawn(watch);
        let thread = thread.map_err(|error| no_threads(&error.to_string()))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    pub(super) fn hurry(&self) -> Hurry {
        Hurry(self.shared.clone())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        lock(&self.shared.state).over = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Hurry {
    /// The run is to end, because of a signal or otherwise.
    pub(super) fn up(&self, signal: Option<&str>) {
        let mut state = lock(&self.0.state);
        state.ending = true;
        if let Some(signal) = signal {
            state.signal.get_or_insert_with(|| signal.to_owned());
        }
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn watch(&self, mut lookout: Lookout, start: Instant, warnings: &WarningSink) {
        let mut state = lock(&self.state);
        while !state.over {
            let (ending, signal) = (state.ending, state.signal.clone());
            drop(state);
            let now = Time::elapsed(start);
            let (found, next) = lookout.look(now, ending);
            for blocked in found {
                let interrupted = signal.clone();
                warnings.warn(&Warning::Blocked(Blocked { interrupted, ..blocked }));
            }
            state = lock(&self.state);
            let has_changed =
                |state: &mut State| !state.over && state.ending == ending && state.signal == signal;
            let patience = next.since(Time::elapsed(start));
            let waited = self.changed.wait_timeout_while(state, patience, has_changed);
            state = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
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
                whereabouts: format!("a range mapper of task {task}, which its program submits"),
                lasting,
                consequence: String::new(),
                interrupted: None,
            }));
        }
        // One that has just been complained of comes later than the next look.
        (found, next.max(now + LEAST))
    }
}

/// Time between two looks, at least.
const LEAST: Duration = Duration::from_millis(1);

impl Sight {
    fn describe(&self, lasting: Duration, nodes: &[(Arc<NodeFrontend>, Seen)]) -> Blocked {
        let call = self.calls.iter().find_map(|(node, calls)| Some((*node, calls.now()?)));
        let (first, _) = self.calls[0];
        let node = call.map_or(first, |(node, _)| node);
        let name = |task| {
            let frontend = nodes.iter().find(|(frontend, _)| frontend.node() == node);
            frontend.map_or_else(String::new, |(frontend, _)| frontend.describe(task))
        };
        let whereabouts = match call {
            Some((_, Call::Mapper(task))) => format!("a range mapper of {}", name(task)),
            Some((_, Call::Kernel(task))) => {
                format!("the kernel of {}, which it runs itself", name(task))
            }
            Some((_, Call::End(task))) => format!("the end of what {} owned", name(task)),
            None => "one round of its work".to_owned(),
        };
        let consequence = format!("; meanwhile {}", Meanwhile(self));
        Blocked { node, whereabouts, lasting, consequence, interrupted: None }
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
