//! How fast everything is in one run, and what goes wrong in it: drawn once from
//! the seed, so that runs differ in character and not only in order.

use celerity_executor::LaneLayout;

use super::threads::Threads;
use crate::check::Configuration;
use crate::random::{DelayRange, Random};

/// The circumstances of one run.
#[derive(Clone, Debug)]
pub(super) struct Conditions {
    /// By node: from a wake-up to the poll.
    pub(super) poll: Vec<DelayRange>,
    /// By node: between two statements of the program.
    pub(super) user: Vec<DelayRange>,
    /// By node and lane: how long jobs take.
    pub(super) lanes: Vec<Vec<DelayRange>>,
    /// From a lane's turn to the start of its next job.
    pub(super) start: DelayRange,
    /// From `send_pilot` to its arrival.
    pub(super) pilot: DelayRange,
    /// From one step of a payload's journey to the next.
    pub(super) payload: DelayRange,
    /// From something that happens in the network to the end that learns of it.
    pub(super) notice: DelayRange,
    /// The most parts that a payload travels in.
    pub(super) parts: usize,
    /// One in so many polls finds less than there is.
    pub(super) stutter: usize,
    /// Whether lanes of devices wait for each other by themselves.
    pub(super) joins: bool,
    /// Horizons that may be outstanding before a program waits.
    pub(super) run_ahead: u64,
    /// Payloads of up to so many bytes leave when they are offered, and wait at their
    /// receiver; 0: all wait for both sides.
    pub(super) eager: u64,
    /// Horizons that a node may be ahead of those that it sends to, if payloads do.
    pub(super) lead: u64,
    /// Who runs what, and who has to look: all apart, unless it is drawn.
    pub(super) threads: Threads,
    /// What goes wrong, if it comes to it.
    pub(super) faults: Vec<Fault>,
}

/// One node of a cluster whose kernels take a thousand times as long as those of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowNode {
    /// Its number.
    pub node: usize,
    /// Horizons that others may be ahead of it when they send to it.
    pub lead: u64,
    /// Horizons that may be outstanding before a program waits.
    pub run_ahead: u64,
}

/// Something that a run must survive: by ending with an error, on all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The job that is started as this one of a node fails.
    Job { node: usize, job: usize },
    /// This allocation of a node finds no room.
    OutOfMemory { node: usize, allocation: usize },
    /// A node's program gives up at this statement.
    Stop { node: usize, op: usize },
}

/// One in so many runs has faults.
const FAULTY: usize = 6;

/// The slowest that anything is, as a power of two of nanoseconds: 1 ms.
const SLOWEST: usize = 20;

impl Conditions {
    pub(super) fn draw(random: &mut Random, configuration: &Configuration, ops: usize) -> Self {
        let Configuration { nodes, devices, .. } = *configuration;
        let lanes = LaneLayout::new(devices).count();
        let mut span = || DelayRange::up_to(random.between(4, SLOWEST));
        Self {
            poll: (0..nodes).map(|_| span()).collect(),
            user: (0..nodes).map(|_| span()).collect(),
            lanes: (0..nodes).map(|_| (0..lanes).map(|_| span()).collect()).collect(),
            start: span(),
            pilot: span(),
            payload: span(),
            notice: span(),
            parts: random.between(1, 4),
            stutter: random.between(2, 8),
            joins: random.once_in(2),
            run_ahead: random.between(1, 8) as u64,
            eager: if random.once_in(2) { 8 << random.below(10) } else { 0 },
            lead: random.between(0, 5) as u64,
            threads: Threads::apart(nodes),
            faults: Fault::draw(random, nodes, ops),
        }
    }

    /// Makes one node as slow as any can be and the others as fast, and lets all payloads
    /// leave when they are offered; nothing goes wrong.
    pub(super) fn slow_down(&mut self, slow: SlowNode) {
        let (slowest, fastest) = (DelayRange::up_to(SLOWEST), DelayRange::up_to(4));
        for (node, lanes) in self.lanes.iter_mut().enumerate() {
            lanes.fill(if node == slow.node { slowest } else { fastest });
        }
        for span in self.poll.iter_mut().chain(&mut self.user) {
            *span = fastest;
        }
        (self.start, self.pilot, self.payload, self.notice) = (fastest, fastest, fastest, fastest);
        (self.eager, self.lead, self.run_ahead) = (u64::MAX, slow.lead, slow.run_ahead);
        self.faults.clear();
    }

    /// After a failure everything has come to rest by then: what runs has ended,
    /// everybody has been told, and every program has looked.
    pub(super) fn longest_end(&self) -> std::time::Duration {
        let slowest = |spans: &[DelayRange]| spans.iter().map(|span| span.longest()).max();
        let lanes = self.lanes.iter().filter_map(|lanes| slowest(lanes)).max();
        let journey = (self.payload.longest() + self.notice.longest()) * 2;
        let programs = (slowest(&self.poll).unwrap_or_default()
            + slowest(&self.user).unwrap_or_default())
            * POLLS_TO_END;
        // A node that computes hears of it when that is over; then its lanes end.
        let away = if self.threads.share_core.contains(&true) { 2 } else { 1 };
        lanes.unwrap_or_default() * away
            + self.start.longest()
            + self.pilot.longest()
            + journey
            + programs
    }
}

/// A node whose mailbox and inbox are full needs some polls to empty them.
const POLLS_TO_END: u32 = 64;

impl Fault {
    fn draw(random: &mut Random, nodes: usize, ops: usize) -> Vec<Self> {
        if !random.once_in(FAULTY) {
            return Vec::new();
        }
        let count = random.between(1, 2);
        let mut draw = || {
            let node = random.below(nodes);
            match random.below(3) {
                0 => Self::Job { node, job: random.below(24) },
                1 => Self::OutOfMemory { node, allocation: random.below(12) },
                _ => Self::Stop { node, op: random.below(ops.max(1)) },
            }
        };
        (0..count).map(|_| draw()).collect()
    }
}
