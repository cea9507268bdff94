//! The side channel: a TCP star beside MPI, with `N0` as the hub. It exists from before the
//! first collective call of MPI to after the last one, and sees to it that no node waits for
//! another one that does not come: it says when all processes have come to a run, why one
//! does not begin or is stopped, which processes end, and who is dead. Knows neither MPI nor
//! what an error is: errors are bytes here.
//!
//! A node is dead if its connection closes without a goodbye, as the system sees
//! to when a process is killed, or if it has been silent for a configurable time,
//! as when its machine has lost power. Of several reasons to stop a run, the one that reaches
//! the hub first is the run's. When the hub itself is dead, each node's own is:
//! there is nobody left to ask.
//!
//! | file | owns |
//! | --- | --- |
//! | `connect.rs` | how the star comes up |
//! | `frame.rs`, `link.rs`, `wait.rs` | bytes, sockets, waiting for several |
//! | `hub.rs` | what the hub decides |
//! | `record.rs` | what a node knows of that |
//! | `watch.rs` | the thread that owns the sockets |
//! | `shared.rs` | what it shares with the rest of the process |

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use celerity_cdag::NodeId;
use celerity_executor::Waker;

use crate::polling::FAREWELL;

mod connect;
mod frame;
mod hub;
mod link;
mod record;
mod shared;
#[cfg(test)]
mod tests;
mod wait;
mod watch;

pub(crate) use connect::Door;
use frame::Frame;
use link::Link;
pub(crate) use record::{Loss, Obstacle};
use shared::{Listener, Order, Shared, State};
use wait::Bell;
use watch::Watch;

const HUB: NodeId = NodeId::from_index(0);

/// What comes out of the side channel during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SideNews {
    /// The run has been stopped, for this reason.
    Aborted(Vec<u8>),
    /// A node is lost.
    Lost(Loss),
}

/// A process's end of the side channel. Runs are counted from 1.
pub(crate) struct SideChannel {
    nodes: usize,
    shared: Arc<Shared>,
}

impl SideChannel {
    /// The end of a cluster's only node.
    ///
    /// # Errors
    /// If there is no thread.
    pub(crate) fn alone() -> Result<Self, String> {
        Self::start((HUB, 1), Vec::new(), FAREWELL)
    }

    /// The hub's end, once all other nodes are connected. Peers count as dead
    /// after `timeout` of silence.
    ///
    /// # Errors
    /// Who did not come within `timeout`, or that there is no thread.
    pub(crate) fn hub(door: &Door, nodes: usize, timeout: Duration) -> Result<Self, String> {
        Self::start((HUB, nodes), door.admit(nodes, timeout)?, timeout)
    }

    /// The end of another one of so many nodes. The hub is at one of `hosts`.
    ///
    /// # Errors
    /// If the hub does not answer within `timeout`, or there is no thread.
    pub(crate) fn member(
        (node, nodes): (NodeId, usize),
        (hosts, port, token): (&[String], u16, u64),
        timeout: Duration,
    ) -> Result<Self, String> {
        let hub = connect::call(hosts, port, &Frame::Hello { token, node }, timeout)?;
        Self::start((node, nodes), vec![(HUB, hub)], timeout)
    }

    fn start(
        (node, nodes): (NodeId, usize),
        links: Vec<(NodeId, Link)>,
        timeout: Duration,
    ) -> Result<Self, String> {
        let bell = Bell::new().map_err(|error| format!("no sockets: {error}"))?;
        let shared = Arc::new(Shared::new(bell));
        let watch = Watch::new(node, links, timeout, shared.clone());
        let thread = thread::Builder::new().name("celerity-liveness".to_owned());
        let thread = thread.spawn(|| watch.run());
        thread.map_err(|error| format!("no threads: {error}; allow this process more"))?;
        Ok(Self { nodes, shared })
    }

    /// Comes to a run, and waits until all nodes have. From then on peers count as dead after
    /// `timeout` of silence; `wake` is called when there is a report.
    ///
    /// # Errors
    /// Why the run does not begin.
    pub(crate) fn begin(
        &self,
        run: u64,
        timeout: Duration,
        wake: Waker,
        impatience: Impatience<'_>,
    ) -> Result<(), Obstacle> {
        let (reports, missing) = (Default::default(), Vec::new());
        self.shared.lock().listener = Some(Listener { run, wake, reports, missing });
        self.shared.order(Order::Timeout(timeout));
        if self.shared.lock().record.verdict(run).is_none() {
            self.shared.order(Order::Say(Frame::Begin { run }));
        }
        let verdict = self.verdict(run, impatience);
        if verdict.is_err() {
            self.end();
        }
        verdict
    }

    /// Says that this node does not come to a run, and waits for what becomes of it.
    pub(crate) fn refuse(&self, run: u64, reason: Vec<u8>) -> Obstacle {
        let stopped = Obstacle::Stopped(reason.clone());
        self.abort(run, reason);
        self.verdict(run, Impatience::new(Duration::ZERO, &mut |_, _| {})).err().unwrap_or(stopped)
    }

    /// Asks for a run to be stopped. All nodes in it get one [`SideNews::Aborted`].
    pub(crate) fn abort(&self, run: u64, error: Vec<u8>) {
        self.shared.order(Order::Say(Frame::Abort { run, error }));
    }

    /// What has come during a run, if anything has.
    pub(crate) fn poll(&self) -> Option<SideNews> {
        self.shared.next_report()
    }

    /// This node is in no run any more.
    pub(crate) fn end(&self) {
        self.shared.lock().listener = None;
    }

    /// Who is lost, if anybody is.
    pub(crate) fn lost(&self) -> Option<Loss> {
        self.shared.lock().record.lost().cloned()
    }

    /// Says that this process ends after so many runs; if it `finalises` MPI, waits until all
    /// processes want to. Returns whether it can.
    pub(crate) fn leave(&self, runs: u64, finalises: bool, impatience: Impatience<'_>) -> bool {
        self.shared.order(Order::Say(Frame::Leave { runs, finalises }));
        if !finalises {
            return false;
        }
        let remaining = |state: &State| state.record.remaining(self.nodes);
        self.wait(impatience, remaining, |state| {
            state.record.finishes().or(state.is_over.then_some(false))
        })
    }

    /// Says goodbye to the others. Bounded in time.
    pub(crate) fn part(&self) {
        self.shared.order(Order::Part);
        let deadline = Instant::now() + 2 * FAREWELL;
        let mut state = self.shared.lock();
        while !state.is_over && Instant::now() < deadline {
            state = self.shared.wait(state, Some(FAREWELL));
        }
    }

    fn verdict(&self, run: u64, impatience: Impatience<'_>) -> Result<(), Obstacle> {
        let missing = |state: &State| {
            state.listener.as_ref().map_or(Vec::new(), |listener| listener.missing.clone())
        };
        self.wait(impatience, missing, |state| {
            let stopped = || Loss::Died { node: HUB, sign: "the side channel has stopped".into() };
            let over = state.is_over.then(|| Err(Obstacle::Lost(stopped())));
            state.record.verdict(run).or(over)
        })
    }

    /// Waits for something to be there; meanwhile tells who is impatient for whom it waits.
    fn wait<T>(
        &self,
        mut impatience: Impatience<'_>,
        missing: impl Fn(&State) -> Vec<NodeId>,
        there: impl Fn(&State) -> Option<T>,
    ) -> T {
        let start = Instant::now();
        let mut state = self.shared.lock();
        loop {
            if let Some(there) = there(&state) {
                return there;
            }
            let waited = start.elapsed();
            if impatience.is_due(waited) {
                let missing = missing(&state);
                drop(state);
                impatience.complain(waited, &missing);
                state = self.shared.lock();
                continue;
            }
            state = self.shared.wait(state, impatience.left(waited));
        }
    }
}

/// Who is told how long a node has waited, and for whom if it knows: after a while, and then
/// at doubling intervals. For a run, only the hub knows.
pub(crate) struct Impatience<'a> {
    next: Option<Duration>,
    tell: &'a mut dyn FnMut(Duration, &[NodeId]),
}

impl<'a> Impatience<'a> {
    /// Tells it after `first`; never if that is 0.
    pub(crate) fn new(first: Duration, tell: &'a mut dyn FnMut(Duration, &[NodeId])) -> Self {
        Self { next: (!first.is_zero()).then_some(first), tell }
    }

    fn is_due(&self, waited: Duration) -> bool {
        self.next.is_some_and(|next| waited >= next)
    }

    fn left(&self, waited: Duration) -> Option<Duration> {
        self.next.map(|next| next.saturating_sub(waited))
    }

    fn complain(&mut self, waited: Duration, missing: &[NodeId]) {
        (self.tell)(waited, missing);
        self.next = self.next.map(|next| next.saturating_mul(2));
    }
}

impl Drop for SideChannel {
    /// As [`part`](Self::part).
    fn drop(&mut self) {
        self.part();
    }
}
