//! Who has come to which operation: the members of each stand in a ring, and each tells the next one that it
//! has come, and to what; all nodes stand in one for barriers. Nobody waits for it. So nodes that do different things find out, although the
//! devices would wait for each other for ever; and who has come knows one member that has not.

use std::collections::BTreeMap;

use celerity_cdag::{NodeId, TransferId};
use celerity_tdag::TaskId;

use crate::error::CommunicationError;

/// What one node knows.
#[derive(Debug, Default)]
pub(super) struct Roll {
    /// Operations that this node has come to, and the member before it has not: what they are, by hash, and
    /// that member.
    waiting: BTreeMap<TransferId, (u64, NodeId)>,
    /// Who has told of operations that this node has not come to.
    told: BTreeMap<TransferId, (u64, NodeId)>,
    /// What this node has come to last.
    latest: Option<TransferId>,
    /// The latest barrier of the node before this one, and the operation that it has come to last.
    entered: Option<(NodeId, TaskId, Option<TransferId>)>,
}

type Outcome = Result<(), Box<CommunicationError>>;

impl Roll {
    /// The node `local` comes to an operation, in the order of tasks; `before` tells of the same.
    pub(super) fn come(
        &mut self,
        local: NodeId,
        transfer: TransferId,
        (hash, before): (u64, NodeId),
    ) -> Outcome {
        self.latest = Some(transfer);
        // It does not come to earlier ones any more.
        if let Some((missed, &(_, other))) = self.told.range(..transfer).next() {
            return Err(apart((local, transfer), (other, *missed)));
        }
        match self.told.remove(&transfer) {
            None => {
                self.waiting.insert(transfer, (hash, before));
                self.check_barrier(local)
            }
            Some(theirs) if theirs == (hash, before) => Ok(()),
            Some((_, other)) => Err(apart((local, transfer), (other, transfer))),
        }
    }

    /// `from` has come to an operation.
    pub(super) fn tell(
        &mut self,
        local: NodeId,
        transfer: TransferId,
        (hash, from): (u64, NodeId),
    ) -> Outcome {
        match (self.waiting.remove(&transfer), self.latest) {
            (Some(own), _) if own == (hash, from) => Ok(()),
            (None, latest) if latest.is_none_or(|latest| latest < transfer) => {
                match self.told.insert(transfer, (hash, from)) {
                    None => Ok(()),
                    Some((_, other)) => Err(apart((from, transfer), (other, transfer))),
                }
            }
            (_, latest) => Err(apart((local, latest.unwrap_or(transfer)), (from, transfer))),
        }
    }

    /// `from` is in a barrier, and comes to no operation any more between its latest one and that. What it has
    /// told of operations before may come later.
    pub(super) fn enter(
        &mut self,
        local: NodeId,
        from: NodeId,
        (epoch, latest): (TaskId, Option<TransferId>),
    ) -> Outcome {
        if self.entered.is_none_or(|(_, earlier, _)| earlier < epoch) {
            self.entered = Some((from, epoch, latest));
        }
        self.check_barrier(local)
    }

    /// What this node has come to last.
    pub(super) fn latest(&self) -> Option<TransferId> {
        self.latest
    }

    /// Nobody waits for who is in a later barrier.
    fn check_barrier(&self, local: NodeId) -> Outcome {
        let Some((other, other_task, latest)) = self.entered else { return Ok(()) };
        let mut waiting = self.waiting.iter();
        let in_vain = waiting.find_map(|(transfer, (_, before))| {
            let stays_away = Some(*transfer) > latest && transfer.consumer < other_task;
            (*before == other && stays_away).then_some(transfer.consumer)
        });
        match in_vain {
            None => Ok(()),
            Some(task) => {
                Err(CommunicationError::Apart { node: local, task, other, other_task }.into())
            }
        }
    }

    /// The member that has not told of an operation which this node has come to.
    pub(super) fn absent(&self, transfer: TransferId) -> Option<NodeId> {
        self.waiting.get(&transfer).map(|(_, before)| *before)
    }
}

fn apart(
    (node, own): (NodeId, TransferId),
    (other, theirs): (NodeId, TransferId),
) -> Box<CommunicationError> {
    let (task, other_task) = (own.consumer, theirs.consumer);
    CommunicationError::Apart { node, task, other, other_task }.into()
}

#[cfg(test)]
mod tests {
    use celerity_tdag::{BufferId, TaskId};

    use super::*;

    const N0: NodeId = NodeId::from_index(0);
    const N1: NodeId = NodeId::from_index(1);
    const N2: NodeId = NodeId::from_index(2);

    fn transfer(task: u64) -> TransferId {
        TransferId { consumer: TaskId::from_index(task), buffer: BufferId::from_index(0) }
    }

    #[test]
    fn neighbours_that_come_to_the_same_are_one_whoever_is_first() {
        let mut roll = Roll::default();
        assert_eq!(roll.come(N1, transfer(2), (7, N0)), Ok(()));
        assert_eq!(roll.absent(transfer(2)), Some(N0));
        assert_eq!(roll.tell(N1, transfer(2), (7, N0)), Ok(()));
        assert_eq!(roll.absent(transfer(2)), None);
        // One that is far ahead, among other members.
        assert_eq!(roll.tell(N1, transfer(9), (8, N2)), Ok(()));
        assert_eq!(roll.come(N1, transfer(4), (5, N0)), Ok(()));
        assert_eq!(roll.come(N1, transfer(9), (8, N2)), Ok(()));
        assert_eq!(roll.tell(N1, transfer(4), (5, N0)), Ok(()));
    }

    #[test]
    fn who_does_something_else_is_named() {
        let expected = |node, task, other, other_task| {
            let [task, other_task] = [task, other_task].map(TaskId::from_index);
            Err(CommunicationError::Apart { node, task, other, other_task }.into())
        };
        // Another operation of the same task.
        let mut roll = Roll::default();
        assert_eq!(roll.come(N1, transfer(2), (7, N0)), Ok(()));
        assert_eq!(roll.tell(N1, transfer(2), (6, N0)), expected(N1, 2, N0, 2));
        // The same among other members.
        let mut roll = Roll::default();
        assert_eq!(roll.tell(N1, transfer(2), (7, N2)), Ok(()));
        assert_eq!(roll.come(N1, transfer(2), (7, N0)), expected(N1, 2, N2, 2));
        // One that this node has passed, or passes now.
        let mut roll = Roll::default();
        assert_eq!(roll.come(N1, transfer(3), (7, N0)), Ok(()));
        assert_eq!(roll.tell(N1, transfer(2), (7, N2)), expected(N1, 3, N2, 2));
        let mut roll = Roll::default();
        assert_eq!(roll.tell(N1, transfer(2), (7, N0)), Ok(()));
        assert_eq!(roll.come(N1, transfer(3), (7, N2)), expected(N1, 3, N0, 2));
        // A barrier, behind which there is one that both come to.
        let barrier = |task, latest: Option<u64>| (TaskId::from_index(task), latest.map(transfer));
        let mut roll = Roll::default();
        assert_eq!(roll.enter(N1, N0, barrier(3, None)), Ok(()));
        assert_eq!(roll.come(N1, transfer(5), (7, N0)), Ok(()));
        let mut roll = Roll::default();
        assert_eq!(roll.come(N1, transfer(2), (7, N0)), Ok(()));
        assert_eq!(roll.enter(N1, N0, barrier(3, Some(1))), expected(N1, 2, N0, 3));
        assert_eq!(roll.come(N1, transfer(4), (7, N0)), expected(N1, 2, N0, 3));
    }

    /// A barrier behind an operation may be known before the operation is.
    #[test]
    fn what_is_told_of_a_barrier_may_overtake_what_is_told_of_operations() {
        let mut roll = Roll::default();
        assert_eq!(roll.come(N1, transfer(2), (7, N0)), Ok(()));
        let entered = (TaskId::from_index(3), Some(transfer(2)));
        assert_eq!(roll.enter(N1, N0, entered), Ok(()));
        assert_eq!(roll.tell(N1, transfer(2), (7, N0)), Ok(()));
        assert_eq!(roll.absent(transfer(2)), None);
    }
}
