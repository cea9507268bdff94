//! Collective operations between nodes that share a process: once all members have come, each one's
//! elements are copied straight from where others have them. Owns who has come to which operation.
//!
//! An operation is known by its task. Nodes come to theirs in the order of tasks, so one that has come to
//! a later task does not come to an earlier one any more, whoever the members of either are.
#![allow(unsafe_code)]

use std::collections::BTreeMap;

use celerity_cdag::{NodeId, TransferId};
use celerity_cpd::Members;
use celerity_tdag::TaskId;

use crate::communicator::exchange::{CollectiveExchange, find_in};
use crate::copy::{copy_elements, copy_elements_spread};
use crate::error::CommunicationError;

/// The operations that some of their members have come to and others not.
#[derive(Default)]
pub(super) struct Meetings {
    open: BTreeMap<TransferId, Meeting>,
    /// By node: the operation that it has come to last.
    latest: Vec<Option<TransferId>>,
}

/// An operation that not all members have come to.
struct Meeting {
    members: Members,
    /// By member: its part, once it has come.
    parts: Vec<Option<CollectiveExchange>>,
}

/// An operation that all members have come to, with the part of each.
pub(super) struct Complete(Vec<(NodeId, CollectiveExchange)>);

impl Meetings {
    /// Of so many nodes.
    pub(super) fn new(nodes: usize) -> Self {
        Self { latest: vec![None; nodes], open: BTreeMap::new() }
    }

    /// A node comes to its next operation; returns that if it is the last one to come. Nodes that
    /// are `in_barrier` cannot come any more.
    pub(super) fn come(
        &mut self,
        node: NodeId,
        exchange: CollectiveExchange,
        in_barrier: &[(NodeId, TaskId)],
    ) -> Result<Option<Complete>, Box<CommunicationError>> {
        let (transfer, cluster) = (exchange.transfer, self.latest.len());
        let task = transfer.consumer;
        let apart = |(other, other_task)| {
            Box::new(CommunicationError::Apart { node, task, other, other_task })
        };
        let earlier = self.open.range(..transfer).map(|(_, meeting)| meeting);
        if let Some(waits) = waiting_for(node, earlier) {
            return Err(apart(waits));
        }
        let members = exchange.collective.members.clone();
        let meeting = self.open.entry(transfer).or_insert_with(|| {
            let parts = vec![None; members.count(cluster)];
            Meeting { members, parts }
        });
        if let Some((other, part)) = meeting.someone(cluster)
            && !part.agrees_with(&exchange)
        {
            return Err(apart((other, part.transfer.consumer)));
        }
        let latest = &self.latest;
        let gone = |member: &NodeId| {
            let of_barrier = in_barrier.iter().find(|(other, _)| other == member);
            let later = latest[member.slot()].filter(|later| *later > transfer);
            let later = later.map(|later| (*member, later.consumer));
            of_barrier.copied().or(later)
        };
        if let Some(gone) = meeting.absent(cluster).find_map(|member| gone(&member)) {
            return Err(apart(gone));
        }
        self.latest[node.slot()] = Some(transfer);
        let rank = meeting.members.rank(node).expect("nodes come to what they are members of");
        meeting.parts[rank] = Some(exchange);
        if !meeting.parts.iter().all(Option::is_some) {
            return Ok(None);
        }
        let complete = self.open.remove(&transfer).map(|meeting| {
            let members = meeting.members.iter(cluster).collect::<Vec<_>>();
            Complete(members.into_iter().zip(meeting.parts.into_iter().flatten()).collect())
        });
        Ok(complete)
    }

    /// A node that waits for another one to come, and where. That one enters a barrier instead.
    pub(super) fn wait_for(&self, node: NodeId) -> Option<(NodeId, TaskId)> {
        waiting_for(node, self.open.values())
    }

    /// Who has not come to an operation that `node` has come to.
    pub(super) fn absent(&self, node: NodeId, transfer: TransferId) -> Vec<NodeId> {
        let meeting = self.open.get(&transfer).filter(|meeting| !meeting.lacks(node));
        let cluster = self.latest.len();
        meeting.map_or_else(Vec::new, |meeting| meeting.absent(cluster).collect())
    }

    /// A node gives its memory back: nothing of it is touched any more.
    pub(super) fn leave(&mut self, node: NodeId) {
        for Meeting { members, parts } in self.open.values_mut() {
            if let Some(part) = members.rank(node).and_then(|rank| parts.get_mut(rank)) {
                *part = None;
            }
        }
    }

    /// Nothing of what is open will take place.
    pub(super) fn clear(&mut self) {
        self.open.clear();
    }
}

impl Meeting {
    /// One node that has come, if any has.
    fn someone(&self, cluster: usize) -> Option<(NodeId, &CollectiveExchange)> {
        let mut parts = self.members.iter(cluster).zip(&self.parts);
        parts.find_map(|(node, part)| Some((node, part.as_ref()?)))
    }

    /// The members that have not come.
    fn absent(&self, cluster: usize) -> impl Iterator<Item = NodeId> {
        let parts = self.members.iter(cluster).zip(&self.parts);
        parts.filter(|(_, part)| part.is_none()).map(|(node, _)| node)
    }

    /// Whether a node is a member and has not come.
    fn lacks(&self, node: NodeId) -> bool {
        let rank = self.members.rank(node);
        rank.is_some_and(|rank| self.parts.get(rank).is_none_or(Option::is_none))
    }
}

/// Who has come to one of these operations, of which a node is a member that has not; and the task.
fn waiting_for<'a>(
    node: NodeId,
    mut meetings: impl Iterator<Item = &'a Meeting>,
) -> Option<(NodeId, TaskId)> {
    let waiting = meetings.find(|meeting| meeting.lacks(node))?;
    let (other, part) = waiting.someone(waiting.parts.len())?;
    Some((other, part.transfer.consumer))
}

impl Complete {
    /// What the operation is called.
    pub(super) fn transfer(&self) -> TransferId {
        self.0[0].1.transfer
    }

    /// Bytes that arrive, on all nodes together.
    pub(super) fn bytes(&self) -> u64 {
        let targets = self.0.iter().flat_map(|(_, part)| &part.targets);
        let elements: u64 = targets.map(|target| target.region.volume()).sum();
        elements.saturating_mul(self.0[0].1.elem_size)
    }

    /// Who takes part.
    pub(super) fn members(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.0.iter().map(|(node, _)| *node)
    }

    /// The members at which something arrives, by their positions.
    pub(super) fn receivers(&self) -> Vec<usize> {
        (0..self.0.len()).filter(|at| !self.0[*at].1.targets.is_empty()).collect()
    }

    /// Copies all that arrives at a member; over the current `rayon` pool, if it `spreads`.
    ///
    /// # Safety
    /// As for [`Communicator::exchange`](crate::Communicator::exchange): each node has promised it of
    /// its own memory.
    pub(super) unsafe fn copy_to(&self, receiver: usize, spreads: bool) {
        let (to, CollectiveExchange { collective, elem_size, targets, .. }) = &self.0[receiver];
        let copy = if spreads { copy_elements_spread } else { copy_elements };
        for (from, CollectiveExchange { sources, .. }) in &self.0 {
            for moved in collective.between(*from, *to).boxes() {
                for (target, here) in find_in(targets, moved) {
                    for (source, part) in find_in(sources, &here) {
                        // SAFETY: passed on; parts of targets are disjoint, and no sources.
                        unsafe { copy(source, target, &part, *elem_size) };
                    }
                }
            }
        }
    }
}
