//! The thread around the nodes of an in-process cluster: one loop that feeds
//! and polls all of them. Decides when to look, never what to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, Sender, unbounded};

use celerity_cdag::NodeId;

use crate::backend::Waker;
use crate::node::{Activity, NodeMachine};
use crate::submission::Submission;
use crate::time::Time;

/// How long an idle reactor keeps looking before it sleeps. Waking a sleeping
/// thread takes some ten microseconds, so a wait shorter than that is better
/// spent awake, and a longer one is not.
const SPIN: Duration = Duration::from_micros(20);

/// What wakes the reactor: all of it through one channel.
enum Message {
    Submission(NodeId, Submission),
    /// Something can be polled.
    Wake,
}

/// Sends submissions to the reactor. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Submitter {
    channel: Sender<Message>,
}

impl Submitter {
    /// Queues a submission. If the run has ended, it is dropped.
    pub(crate) fn send(&self, node: NodeId, submission: Submission) {
        // A closed channel means that the run has ended; whoever cares for the
        // outcome learns it from the node's progress.
        drop(self.channel.send(Message::Submission(node, submission)));
    }
}

/// The receiving side, before it has nodes.
pub(crate) struct Reactor {
    channel: Receiver<Message>,
    sender: Sender<Message>,
    /// Whether a wake-up is in the channel.
    woken: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
    /// Nodes that will get no more submissions.
    closed: AtomicUsize,
}

impl Reactor {
    pub(crate) fn new() -> Self {
        let (sender, channel) = unbounded();
        Self {
            channel,
            sender,
            woken: Arc::default(),
            rounds: Arc::default(),
            closed: AtomicUsize::new(0),
        }
    }

    pub(crate) fn submitter(&self) -> Submitter {
        Submitter { channel: self.sender.clone() }
    }

    /// Wakes the reactor from any thread. A burst of calls costs one message.
    pub(crate) fn waker(&self) -> Waker {
        let (woken, sender) = (self.woken.clone(), self.sender.clone());
        Arc::new(move || {
            if !woken.swap(true, Ordering::AcqRel) {
                drop(sender.send(Message::Wake));
            }
        })
    }

    /// Rounds that the loop has made.
    pub(crate) fn rounds(&self) -> Arc<AtomicU64> {
        self.rounds.clone()
    }

    /// Polls `nodes`, which are in order of their ids, until all are done.
    pub(crate) fn run(&self, nodes: &mut [NodeMachine]) {
        let start = Instant::now();
        while !nodes.iter().all(NodeMachine::is_done) {
            self.rounds.fetch_add(1, Ordering::Relaxed);
            let activity = self.round(nodes, Time::elapsed(start));
            if activity == Activity::Idle && !nodes.iter().all(NodeMachine::is_done) {
                self.wait(nodes);
            }
        }
    }

    /// Drops submissions until all nodes have been closed: what is left of a
    /// run whose nodes are gone.
    pub(crate) fn discard_until_closed(&self, nodes: usize) {
        while self.closed.load(Ordering::Relaxed) < nodes
            && let Ok(message) = self.channel.recv()
        {
            self.count_closed(&message);
        }
    }

    fn round(&self, nodes: &mut [NodeMachine], now: Time) -> Activity {
        while let Ok(message) = self.channel.try_recv() {
            self.deliver(message, nodes);
        }
        let mut activity = Activity::Idle;
        for node in nodes {
            if node.poll(now) == Activity::Busy {
                activity = Activity::Busy;
            }
        }
        activity
    }

    /// Waits for the next message: awake at first, then asleep.
    fn wait(&self, nodes: &mut [NodeMachine]) {
        let start = Instant::now();
        while self.channel.is_empty() && start.elapsed() < SPIN {
            // On a busy machine the thread that we wait for may need this core.
            std::thread::yield_now();
        }
        // The reactor holds a sender, so the channel is never disconnected.
        if let Ok(message) = self.channel.recv() {
            self.deliver(message, nodes);
        }
    }

    fn deliver(&self, message: Message, nodes: &mut [NodeMachine]) {
        self.count_closed(&message);
        match message {
            Message::Submission(node, submission) => nodes[node.slot()].submit(submission),
            // Taken back before the nodes are polled, so that what comes later
            // wakes again. Acquires what those have published who found a
            // wake-up in the channel and sent none of their own.
            Message::Wake => {
                self.woken.swap(false, Ordering::AcqRel);
            }
        }
    }

    fn count_closed(&self, message: &Message) {
        if let Message::Submission(_, Submission::Closed) = message {
            self.closed.fetch_add(1, Ordering::Relaxed);
        }
    }
}
