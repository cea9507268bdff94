//! What has been decided, as one node knows it: which run goes on, which are stopped, who
//! has left and who is lost. Pure. All nodes hear the same decisions in the same order, so
//! that they have the same record, if some later than others.

use std::collections::BTreeMap;

use celerity_cdag::NodeId;

use super::frame::Frame;

/// Why a node cannot go on with the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Another node is gone.
    Died {
        /// Which.
        node: NodeId,
        /// How that was noticed.
        sign: String,
    },
    /// This node is gone, as another one believes.
    GivenUp {
        /// Which.
        by: NodeId,
        /// Why.
        sign: String,
    },
}

/// Why a run does not begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// A node has stopped it, for this reason.
    Stopped(Vec<u8>),
    /// A process has ended, after so many runs.
    Ended {
        /// Its node.
        node: NodeId,
        /// So many.
        runs: u64,
    },
    /// A node is lost.
    Lost(Loss),
}

/// The decisions so far.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    /// The latest run that all nodes have come to.
    going: u64,
    /// Runs from there on that do not begin or have been stopped.
    stopped: BTreeMap<u64, Obstacle>,
    /// The processes that have ended, in that order, after how many runs.
    left: Vec<(NodeId, u64)>,
    lost: Option<Loss>,
    /// Whether all processes end, and can finalise MPI; and whether one never will.
    finishes: bool,
    is_broken: bool,
}

/// What a decision is to the run that this node is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// It is stopped.
    Aborted { run: u64, error: Vec<u8> },
    /// It cannot go on, whichever it is.
    Lost(Loss),
}

impl Decisions {
    /// Takes a decision down, as `node`. Returns what is new to the run under way.
    pub(super) fn apply(&mut self, node: NodeId, decision: Frame) -> Option<News> {
        match decision {
            Frame::Go { run } => {
                self.going = run;
                self.stopped = self.stopped.split_off(&run);
                None
            }
            Frame::Aborted { run, error } => {
                let is_new = !self.stopped.contains_key(&run);
                self.stopped.entry(run).or_insert_with(|| Obstacle::Stopped(error.clone()));
                is_new.then_some(News::Aborted { run, error })
            }
            Frame::Left { node, runs, finalises } => {
                self.is_broken |= !finalises;
                self.stopped.entry(runs + 1).or_insert(Obstacle::Ended { node, runs });
                self.left.push((node, runs));
                None
            }
            Frame::Died { node: dead, sign } if dead == node => {
                self.lose(Loss::GivenUp { by: super::HUB, sign })
            }
            Frame::Died { node, sign } => self.lose(Loss::Died { node, sign }),
            Frame::Finish => {
                self.finishes = true;
                None
            }
            Frame::Hello { .. }
            | Frame::Beat
            | Frame::Begin { .. }
            | Frame::Abort { .. }
            | Frame::Leave { .. }
            | Frame::Goodbye => None,
        }
    }

    /// Takes down that a node is lost, unless another one was before.
    pub(super) fn lose(&mut self, loss: Loss) -> Option<News> {
        let is_new = self.lost.is_none();
        let lost = self.lost.get_or_insert(loss).clone();
        is_new.then_some(News::Lost(lost))
    }

    /// Whether a run goes on, or why it does not; `None` as long as that is open.
    pub(super) fn verdict(&self, run: u64) -> Option<Result<(), Obstacle>> {
        if self.going >= run {
            return Some(Ok(()));
        }
        let ended = self.left.iter().find(|(_, runs)| *runs < run);
        let ended = ended.map(|&(node, runs)| Obstacle::Ended { node, runs });
        let stopped = self.stopped.get(&run).cloned().or(ended);
        stopped.or_else(|| self.lost.clone().map(Obstacle::Lost)).map(Err)
    }

    /// Those of so many processes that have not ended.
    pub(super) fn remaining(&self, nodes: usize) -> Vec<NodeId> {
        let has_left = |node: &NodeId| self.left.iter().any(|(left, _)| left == node);
        (0..nodes as u64).map(NodeId::from_index).filter(|node| !has_left(node)).collect()
    }

    /// Who is lost, if anybody is.
    pub(super) fn lost(&self) -> Option<&Loss> {
        self.lost.as_ref()
    }

    /// Whether MPI can be finalised, as all processes want that; `None` as long as it is
    /// open.
    pub(super) fn finishes(&self) -> Option<bool> {
        match self.finishes {
            true => Some(true),
            false => (self.is_broken || self.lost.is_some()).then_some(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: NodeId = NodeId::from_index(1);

    fn died(node: u64) -> Frame {
        Frame::Died { node: NodeId::from_index(node), sign: "silence".to_owned() }
    }

    #[test]
    fn a_run_is_open_until_something_is_decided() {
        let mut record = Decisions::default();
        assert_eq!(record.verdict(1), None);
        assert_eq!(record.apply(ME, Frame::Go { run: 1 }), None);
        assert_eq!((record.verdict(1), record.verdict(2)), (Some(Ok(())), None));
        let error = b"why".to_vec();
        let news = record.apply(ME, Frame::Aborted { run: 2, error: error.clone() });
        assert_eq!(news, Some(News::Aborted { run: 2, error: error.clone() }));
        let later = Frame::Aborted { run: 2, error: b"later".to_vec() };
        assert_eq!(record.apply(ME, later), None);
        assert_eq!(record.verdict(2), Some(Err(Obstacle::Stopped(error))));
        assert_eq!(record.apply(ME, Frame::Go { run: 3 }), None);
        assert!(record.stopped.is_empty());
    }

    #[test]
    fn who_has_left_takes_part_in_no_later_run() {
        let mut record = Decisions::default();
        record.apply(ME, Frame::Go { run: 2 });
        let node = NodeId::from_index(2);
        record.apply(ME, Frame::Left { node, runs: 2, finalises: true });
        let ended = Some(Err(Obstacle::Ended { node, runs: 2 }));
        assert_eq!(record.verdict(2), Some(Ok(())));
        assert_eq!((record.verdict(3), record.verdict(9)), (ended.clone(), ended.clone()));
        assert_eq!(record.remaining(3), [NodeId::from_index(0), ME]);
        // What was decided first stays.
        record.apply(ME, Frame::Aborted { run: 3, error: Vec::new() });
        record.apply(ME, died(0));
        assert_eq!(record.verdict(3), ended);
    }

    #[test]
    fn mpi_is_finalised_unless_somebody_never_does() {
        let left = |finalises| Frame::Left { node: ME, runs: 1, finalises };
        let mut record = Decisions::default();
        record.apply(ME, left(true));
        assert_eq!(record.finishes(), None);
        record.apply(ME, Frame::Finish);
        assert_eq!(record.finishes(), Some(true));
        for never in [left(false), died(2)] {
            let mut record = Decisions::default();
            record.apply(ME, never);
            assert_eq!(record.finishes(), Some(false));
        }
    }

    #[test]
    fn the_first_loss_counts_for_all_runs_to_come() {
        let mut record = Decisions::default();
        let sign = "silence".to_owned();
        let loss = Loss::Died { node: NodeId::from_index(2), sign: sign.clone() };
        assert_eq!(record.apply(ME, died(2)), Some(News::Lost(loss.clone())));
        assert_eq!(record.apply(ME, died(0)), None);
        assert_eq!(record.lost(), Some(&loss));
        assert_eq!(record.verdict(5), Some(Err(Obstacle::Lost(loss))));
        let mut record = Decisions::default();
        let given_up = Loss::GivenUp { by: NodeId::from_index(0), sign };
        assert_eq!(record.apply(ME, died(1)), Some(News::Lost(given_up)));
    }
}
