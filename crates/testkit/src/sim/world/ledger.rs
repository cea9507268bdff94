//! What each node has announced to each other one and that has not been consumed, known
//! exactly: the naive twin of the credit that nodes give each other by what they tell.

use std::collections::BTreeSet;

use celerity_tdag::TaskId;

/// The books of a whole cluster.
#[derive(Debug)]
pub(in crate::sim) struct Ledger {
    /// The horizons that any node has submitted, in order; they are the same on all.
    horizons: Vec<TaskId>,
    /// By node: horizons reached, and the most that its lookahead has ever held back when
    /// its program went on.
    reached: Vec<u64>,
    most_held: Vec<u64>,
    /// By sender and receiver: tasks for which something has been announced.
    announced: Vec<Vec<BTreeSet<TaskId>>>,
}

impl Ledger {
    pub(in crate::sim) fn new(nodes: usize) -> Self {
        Self {
            horizons: Vec::new(),
            reached: vec![0; nodes],
            most_held: vec![0; nodes],
            announced: vec![vec![BTreeSet::new(); nodes]; nodes],
        }
    }

    /// A node has submitted a horizon.
    pub(in crate::sim) fn submitted(&mut self, horizon: TaskId) {
        if self.horizons.last() < Some(&horizon) {
            self.horizons.push(horizon);
        }
    }

    /// A node's program goes on while so many horizons are held back.
    pub(in crate::sim) fn goes_on(&mut self, node: usize, held: u64) {
        self.most_held[node] = self.most_held[node].max(held);
    }

    /// A node has reached so many horizons.
    pub(in crate::sim) fn reached(&mut self, node: usize, horizons: u64) {
        self.reached[node] = horizons;
        if let Some(last) = horizons.checked_sub(1).map(|last| self.horizons[slot(last)]) {
            for tasks in self.announced.iter_mut().map(|from| &mut from[node]) {
                tasks.retain(|task| *task >= last);
            }
        }
    }

    /// A node announces something for a task to another one. Returns how many horizons lie
    /// between that task and the first for which the receiver has not consumed what it was
    /// sent, if that is more than is allowed.
    pub(in crate::sim) fn announce(
        &mut self,
        (from, to): (usize, usize),
        consumer: TaskId,
        allowed: u64,
    ) -> Option<u64> {
        let tasks = &mut self.announced[from][to];
        tasks.insert(consumer);
        let first = *tasks.first().expect("just added");
        let ahead = self.interval(consumer) - self.interval(first);
        (ahead >= allowed + self.most_held[from]).then_some(ahead)
    }

    fn interval(&self, task: TaskId) -> u64 {
        self.horizons.partition_point(|horizon| *horizon < task) as u64
    }
}

fn slot(index: u64) -> usize {
    usize::try_from(index).expect("programs here are small")
}
