//! The side channel: a TCP star that finds dead nodes, and tells everybody why a
//! run stops, when MPI may not be able to. `N0` is the hub. Knows neither MPI nor
//! what an error is: errors are bytes here.
//!
//! A node is dead if its connection closes without a goodbye, as the system sees
//! to when a process is killed, or if it has been silent for a configurable time,
//! as when its machine has lost power. Of several errors, the one that reaches
//! the hub first is the run's. When the hub itself is dead, each node's own is:
//! there is nobody left to ask.
//!
//! One thread per node owns the sockets. It looks every few milliseconds, since
//! the standard library cannot wait for several sockets at once.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use celerity_cdag::NodeId;
use celerity_executor::Waker;

mod connect;
mod frame;
mod link;
#[cfg(test)]
mod tests;

pub(crate) use connect::Door;
use frame::Frame;
use link::Link;

/// Between two looks at the sockets.
const BEAT: Duration = Duration::from_millis(5);
/// The same while leaving, when others wait for us.
const LAST_BEAT: Duration = Duration::from_micros(200);
/// How long a node that leaves waits for others to notice.
const FAREWELL: Duration = Duration::from_secs(1);
const HUB: NodeId = NodeId::from_index(0);

/// What comes out of the side channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The run has been stopped, for this reason.
    Aborted(Vec<u8>),
    /// A node is gone.
    Died {
        /// Which.
        node: NodeId,
        /// How that was noticed.
        sign: String,
    },
}

enum Command {
    Abort(Vec<u8>),
}

/// A node's end of the side channel.
pub(crate) struct SideChannel {
    /// `None` once the node leaves.
    commands: Option<Sender<Command>>,
    reports: Receiver<Report>,
    thread: Option<JoinHandle<()>>,
}

impl SideChannel {
    /// The end of a cluster's only node.
    ///
    /// # Errors
    /// If there is no thread.
    pub(crate) fn alone(wake: Waker) -> Result<Self, String> {
        Self::start(HUB, Vec::new(), FAREWELL, wake)
    }

    /// The hub's end, once all other nodes are connected. Peers count as dead
    /// after `timeout` of silence. `wake` is called when there is a report.
    ///
    /// # Errors
    /// Who did not come within `timeout`, or that there is no thread.
    pub(crate) fn hub(
        door: &Door,
        nodes: usize,
        timeout: Duration,
        wake: Waker,
    ) -> Result<Self, String> {
        Self::start(HUB, door.admit(nodes, timeout)?, timeout, wake)
    }

    /// Another node's end. The hub is at one of `hosts`.
    ///
    /// # Errors
    /// If the hub does not answer within `timeout`, or there is no thread.
    pub(crate) fn member(
        node: NodeId,
        (hosts, port, token): (&[String], u16, u64),
        timeout: Duration,
        wake: Waker,
    ) -> Result<Self, String> {
        let hub = connect::call(hosts, port, &Frame::Hello { token, node }, timeout)?;
        Self::start(node, vec![(HUB, hub)], timeout, wake)
    }

    fn start(
        node: NodeId,
        links: Vec<(NodeId, Link)>,
        timeout: Duration,
        wake: Waker,
    ) -> Result<Self, String> {
        let (commands, orders) = channel();
        let (outbox, reports) = channel();
        let watch = Watch { node, links, timeout, orders, outbox, wake, asked: None, over: false };
        let thread = thread::Builder::new().name("celerity-liveness".to_owned());
        let thread = thread.spawn(|| watch.run()).map_err(|error| error.to_string())?;
        Ok(Self { commands: Some(commands), reports, thread: Some(thread) })
    }

    /// Asks for the run to be stopped. All nodes get one [`Report::Aborted`].
    pub(crate) fn abort(&self, error: Vec<u8>) {
        // A thread that is gone has reported why.
        drop(self.commands.as_ref().map(|commands| commands.send(Command::Abort(error))));
    }

    /// What has come, if anything has.
    pub(crate) fn poll(&self) -> Option<Report> {
        self.reports.try_recv().ok()
    }
}

impl Drop for SideChannel {
    /// Says goodbye to the others. Bounded in time.
    fn drop(&mut self) {
        self.commands = None;
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// What the thread owns.
struct Watch {
    node: NodeId,
    /// All other nodes at the hub, the hub elsewhere; as far as they live.
    links: Vec<(NodeId, Link)>,
    timeout: Duration,
    orders: Receiver<Command>,
    outbox: Sender<Report>,
    wake: Waker,
    /// What this node wants to stop the run for.
    asked: Option<Vec<u8>>,
    /// The run has been stopped.
    over: bool,
}

impl Watch {
    fn run(mut self) {
        loop {
            // Alone there is nothing to look at.
            let order = match self.links.is_empty() {
                true => self.orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => self.orders.recv_timeout(BEAT),
            };
            match order {
                Ok(Command::Abort(error)) => self.ask(error),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.leave(),
            }
            self.look(Instant::now());
        }
    }

    /// One look at all links.
    fn look(&mut self, now: Instant) {
        let mut frames = Vec::new();
        let mut at = 0;
        while at < self.links.len() {
            let (node, link) = &mut self.links[at];
            let node = *node;
            link.beat(now, self.timeout / 4);
            let outcome = link.receive(now, self.timeout, &mut frames);
            if outcome.is_err() {
                drop(self.links.remove(at));
            } else {
                at += 1;
            }
            frames.drain(..).for_each(|frame| self.hear(frame));
            if let Err(sign) = outcome {
                self.lost(node, sign);
            }
        }
    }

    fn hear(&mut self, frame: Frame) {
        match frame {
            Frame::Abort(error) => self.ask(error),
            Frame::Aborted(error) => self.stop(error),
            Frame::Died { node, sign } if node != self.node => {
                self.report(Report::Died { node, sign });
            }
            Frame::Hello { .. } | Frame::Beat | Frame::Died { .. } | Frame::Goodbye => {}
        }
    }

    fn lost(&mut self, node: NodeId, sign: String) {
        if self.node == HUB {
            self.tell_all(&Frame::Died { node, sign: sign.clone() });
        }
        self.report(Report::Died { node, sign });
        if self.node != HUB
            && let Some(error) = self.asked.take()
        {
            self.stop(error);
        }
    }

    /// Somebody wants to stop the run: the hub decides.
    fn ask(&mut self, error: Vec<u8>) {
        let hub_is_gone = self.node != HUB && self.links.is_empty();
        if self.node == HUB || hub_is_gone {
            return self.stop(error);
        }
        self.tell_all(&Frame::Abort(error.clone()));
        self.asked = Some(error);
    }

    fn stop(&mut self, error: Vec<u8>) {
        if !std::mem::replace(&mut self.over, true) {
            if self.node == HUB {
                self.tell_all(&Frame::Aborted(error.clone()));
            }
            self.report(Report::Aborted(error));
        }
    }

    fn tell_all(&mut self, frame: &Frame) {
        let now = Instant::now();
        self.links.iter_mut().for_each(|(_, link)| link.send(frame, now));
    }

    fn report(&self, report: Report) {
        // Nobody listens any more once the node leaves.
        drop(self.outbox.send(report));
        (self.wake)();
    }

    /// Leaves so that nobody mistakes it for a death: closes a connection only
    /// when the other side has, or takes too long.
    fn leave(mut self) {
        let start = Instant::now();
        self.links.iter_mut().for_each(|(_, link)| link.close(start));
        while !self.links.is_empty() && start.elapsed() < FAREWELL {
            self.links.retain_mut(|(_, link)| !link.is_over(Instant::now()));
            thread::sleep(LAST_BEAT);
        }
    }
}
