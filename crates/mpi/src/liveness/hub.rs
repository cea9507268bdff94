//! What `N0` decides for all nodes from what they say. Pure; knows no sockets.

use std::collections::BTreeSet;

use celerity_cdag::NodeId;

use super::frame::Frame;

/// The hub's books.
#[derive(Debug)]
pub(super) struct Hub {
    /// By node: the latest run that it has come to.
    begun: Vec<u64>,
    /// Runs that have been stopped, as far as they may be named again.
    stopped: BTreeSet<u64>,
    /// By node: whether its process ends.
    leaves: Vec<bool>,
    /// Whether some process never finalises MPI.
    is_broken: bool,
}

impl Hub {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            begun: vec![0; nodes],
            stopped: BTreeSet::new(),
            leaves: vec![false; nodes],
            is_broken: false,
        }
    }

    /// What a node has said. Returns what is decided, to be told to all nodes in order.
    pub(super) fn hear(&mut self, from: NodeId, said: Frame) -> Vec<Frame> {
        match said {
            Frame::Begin { run } => self.begins(from, run),
            Frame::Abort { run, error } => {
                let is_new = self.stopped.insert(run);
                is_new.then_some(Frame::Aborted { run, error }).into_iter().collect()
            }
            Frame::Leave { runs, finalises } => self.leaves(from, runs, finalises),
            _ => Vec::new(),
        }
    }

    /// A node is gone: nobody can finalise MPI any more.
    pub(super) fn lost(&mut self) {
        self.is_broken = true;
    }

    /// The nodes that have not come to a run.
    pub(super) fn missing(&self, run: u64) -> Vec<NodeId> {
        let missing = (0..).zip(&self.begun).filter(|(_, begun)| **begun < run);
        missing.map(|(node, _)| NodeId::from_index(node)).collect()
    }

    /// A run that has been stopped is never gone on with: who has stopped it has not come to
    /// it, and does not come back to it.
    fn begins(&mut self, node: NodeId, run: u64) -> Vec<Frame> {
        self.begun[node.slot()] = run;
        if self.begun.iter().any(|begun| *begun != run) {
            return Vec::new();
        }
        self.stopped = self.stopped.split_off(&run);
        vec![Frame::Go { run }]
    }

    fn leaves(&mut self, node: NodeId, runs: u64, finalises: bool) -> Vec<Frame> {
        self.leaves[node.slot()] = true;
        self.is_broken |= !finalises;
        let finish = !self.is_broken && self.leaves.iter().all(|leaves| *leaves);
        let left = [Frame::Left { node, runs, finalises }];
        left.into_iter().chain(finish.then_some(Frame::Finish)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::liveness::record::{Decisions, Obstacle};

    fn node(index: usize) -> NodeId {
        NodeId::from_index(index as u64)
    }

    #[test]
    fn a_run_goes_on_once_all_have_come() {
        let mut hub = Hub::new(3);
        let begin = |run| Frame::Begin { run };
        assert_eq!(hub.hear(node(2), begin(1)), []);
        assert_eq!(hub.missing(1), [node(0), node(1)]);
        assert_eq!(hub.hear(node(0), begin(1)), []);
        assert_eq!(hub.hear(node(1), begin(1)), [Frame::Go { run: 1 }]);
        assert_eq!(hub.missing(1), []);
    }

    #[test]
    fn the_first_reason_is_told_once() {
        let mut hub = Hub::new(2);
        let abort = |error: &[u8]| Frame::Abort { run: 1, error: error.to_vec() };
        let told = Frame::Aborted { run: 1, error: b"one".to_vec() };
        assert_eq!(hub.hear(node(0), abort(b"one")), [told]);
        assert_eq!(hub.hear(node(1), abort(b"two")), []);
    }

    #[test]
    fn mpi_is_finalised_if_all_can() {
        let leave = |finalises| Frame::Leave { runs: 4, finalises };
        let left = |at, finalises| Frame::Left { node: node(at), runs: 4, finalises };
        let mut hub = Hub::new(2);
        assert_eq!(hub.hear(node(1), leave(true)), [left(1, true)]);
        assert_eq!(hub.hear(node(0), leave(true)), [left(0, true), Frame::Finish]);
        let mut hub = Hub::new(2);
        assert_eq!(hub.hear(node(1), leave(false)), [left(1, false)]);
        assert_eq!(hub.hear(node(0), leave(true)), [left(0, true)]);
        let mut hub = Hub::new(2);
        hub.lost();
        assert_eq!(hub.hear(node(1), leave(true)), [left(1, true)]);
        assert_eq!(hub.hear(node(0), leave(true)), [left(0, true)]);
    }

    /// A process of a random cluster: how many runs it makes, and which of them it refuses.
    #[derive(Debug, Clone)]
    struct Process {
        runs: u64,
        refuses: BTreeSet<u64>,
    }

    /// Where it is.
    #[derive(Default)]
    struct State {
        record: Decisions,
        /// Decisions that it has not heard yet.
        inbox: Vec<Frame>,
        /// What it has said, and the hub has not heard yet.
        outbox: Vec<Frame>,
        run: u64,
        waits: bool,
        left: bool,
        verdicts: Vec<Result<(), Obstacle>>,
    }

    impl State {
        /// Goes on with its program, if it can.
        fn step(&mut self, process: &Process) -> bool {
            if self.waits {
                let Some(verdict) = self.record.verdict(self.run) else { return false };
                self.waits = false;
                self.verdicts.push(verdict);
            } else if self.left {
                return false;
            } else if self.run == process.runs {
                self.left = true;
                self.outbox.push(Frame::Leave { runs: self.run, finalises: true });
            } else {
                self.run += 1;
                self.waits = true;
                let run = self.run;
                self.outbox.push(match process.refuses.contains(&run) {
                    true => Frame::Abort { run, error: run.to_le_bytes().to_vec() },
                    false => Frame::Begin { run },
                });
            }
            true
        }
    }

    fn process() -> impl Strategy<Value = Process> {
        let refuses = prop::collection::btree_set(1..5_u64, 0..2);
        (2..5_u64, refuses).prop_map(|(runs, refuses)| Process { runs, refuses })
    }

    proptest! {
        /// Whatever takes how long: each run has the same verdict everywhere, it goes on if
        /// and only if all have come to it and none refuses it, nobody waits for ever, and
        /// all are told to finish.
        #[test]
        fn all_nodes_agree_on_every_run(
            processes in prop::collection::vec(process(), 1..5),
            order in prop::collection::vec(any::<prop::sample::Index>(), 0..300),
        ) {
            let nodes = processes.len();
            let mut hub = Hub::new(nodes);
            let mut states: Vec<State> = (0..nodes).map(|_| State::default()).collect();
            let fair = (0..100 * nodes * 3).map(|step| step % (nodes * 3));
            let random = order.iter().map(|index| index.index(nodes * 3));
            for choice in random.chain(fair) {
                let (at, what) = (choice / 3, choice % 3);
                match what {
                    0 => drop(states[at].step(&processes[at])),
                    1 if !states[at].outbox.is_empty() => {
                        let said = states[at].outbox.remove(0);
                        for decided in hub.hear(node(at), said) {
                            states.iter_mut().for_each(|state| state.inbox.push(decided.clone()));
                        }
                    }
                    2 if !states[at].inbox.is_empty() => {
                        let decided = states[at].inbox.remove(0);
                        states[at].record.apply(node(at), decided);
                    }
                    _ => {}
                }
            }
            let least = processes.iter().map(|process| process.runs).min().unwrap();
            for (state, process) in states.iter().zip(&processes) {
                prop_assert!(state.left && !state.waits, "somebody waits");
                prop_assert_eq!(state.record.finishes(), Some(true));
                prop_assert_eq!(state.verdicts.len() as u64, process.runs);
                for (run, verdict) in (1..).zip(&state.verdicts) {
                    let refused = processes.iter().any(|process| {
                        run <= process.runs && process.refuses.contains(&run)
                    });
                    match verdict {
                        Ok(()) => prop_assert!(run <= least && !refused),
                        Err(Obstacle::Stopped(_)) => prop_assert!(refused),
                        Err(Obstacle::Ended { node, runs }) => {
                            prop_assert!(run > least && *runs < run);
                            prop_assert_eq!(processes[node.slot()].runs, *runs);
                        }
                        Err(Obstacle::Lost(loss)) => prop_assert!(false, "{:?}", loss),
                    }
                    if run <= least {
                        let place = usize::try_from(run).unwrap() - 1;
                        prop_assert!(states.iter().all(|other| other.verdicts[place] == *verdict));
                    }
                }
            }
        }
    }
}
