//! Collective operations between nodes that share a process: once all have come, each node's elements
//! are copied straight from where others have them. Owns who has come to which operation.
#![allow(unsafe_code)]

use std::collections::VecDeque;

use celerity_cdag::{NodeId, TransferId};
use celerity_tdag::TaskId;

use crate::communicator::exchange::{CollectiveExchange, find_in};
use crate::copy::{copy_elements, copy_elements_spread};
use crate::error::CommunicationError;

/// The operations that some nodes have come to and others not, in order.
#[derive(Default)]
pub(super) struct Meetings {
    open: VecDeque<Meeting>,
    /// The number of the first of them.
    first: u64,
    /// By node: how many it has come to.
    come: Vec<u64>,
}

/// An operation: the part of each node that has come to it.
type Meeting = Vec<Option<CollectiveExchange>>;

/// An operation that all nodes have come to.
pub(super) struct Complete(Vec<CollectiveExchange>);

impl Meetings {
    /// Of so many nodes.
    pub(super) fn new(nodes: usize) -> Self {
        Self { come: vec![0; nodes], ..Self::default() }
    }

    /// A node comes to its next operation; returns that if it is the last one to come. Nodes that
    /// are `in_barrier` cannot come any more.
    pub(super) fn come(
        &mut self,
        node: NodeId,
        exchange: CollectiveExchange,
        in_barrier: &[(NodeId, TaskId)],
    ) -> Result<Option<Complete>, Box<CommunicationError>> {
        let (nodes, number) = (self.come.len(), self.come[node.slot()]);
        self.come[node.slot()] += 1;
        let at = usize::try_from(number - self.first).expect("few operations are open");
        if at == self.open.len() {
            self.open.push_back(vec![None; nodes]);
        }
        let (task, parts) = (exchange.transfer.consumer, &mut self.open[at]);
        let apart = |other, other_task| {
            Box::new(CommunicationError::Apart { node, task, other, other_task })
        };
        if let Some((other, part)) = come_to(parts)
            && !part.agrees_with(&exchange)
        {
            return Err(apart(other, part.transfer.consumer));
        }
        let stays_away = |(other, _): &&(NodeId, TaskId)| parts[other.slot()].is_none();
        if let Some(&(other, epoch)) = in_barrier.iter().find(stays_away) {
            return Err(apart(other, epoch));
        }
        parts[node.slot()] = Some(exchange);
        if !parts.iter().all(Option::is_some) {
            return Ok(None);
        }
        // Whoever comes last to this one has come to all before.
        debug_assert_eq!(at, 0, "nodes come to operations in order");
        self.first += 1;
        let parts = self.open.pop_front().into_iter().flatten().flatten();
        Ok(Some(Complete(parts.collect())))
    }

    /// A node that waits for another one to come, and where. That one enters a barrier instead.
    pub(super) fn wait_for(&self, node: NodeId) -> Option<(NodeId, TaskId)> {
        let next = self.come[node.slot()].checked_sub(self.first)?;
        let parts = self.open.get(usize::try_from(next).ok()?)?;
        come_to(parts).map(|(other, part)| (other, part.transfer.consumer))
    }

    /// Who has not come to an operation that `node` has come to.
    pub(super) fn absent(&self, node: NodeId, transfer: TransferId) -> Vec<NodeId> {
        let is_this = |parts: &&Meeting| {
            parts[node.slot()].as_ref().is_some_and(|part| part.transfer == transfer)
        };
        let parts = self.open.iter().find(is_this).map_or(&[][..], Vec::as_slice);
        let absent = (0..).zip(parts).filter(|(_, part)| part.is_none());
        absent.map(|(at, _)| NodeId::from_index(at)).collect()
    }

    /// A node gives its memory back: nothing of it is touched any more.
    pub(super) fn leave(&mut self, node: NodeId) {
        self.open.iter_mut().for_each(|parts| parts[node.slot()] = None);
    }

    /// Nothing of what is open will take place.
    pub(super) fn clear(&mut self) {
        self.open.iter_mut().for_each(|parts| parts.fill(None));
    }
}

/// One node that has come to an operation, if any has.
fn come_to(parts: &Meeting) -> Option<(NodeId, &CollectiveExchange)> {
    let mut parts = (0..).map(NodeId::from_index).zip(parts);
    parts.find_map(|(node, part)| Some((node, part.as_ref()?)))
}

impl Complete {
    /// What the operation is called.
    pub(super) fn transfer(&self) -> TransferId {
        self.0[0].transfer
    }

    /// Bytes that arrive, on all nodes together.
    pub(super) fn bytes(&self) -> u64 {
        let targets = self.0.iter().flat_map(|part| &part.targets);
        let elements: u64 = targets.map(|target| target.region.volume()).sum();
        elements.saturating_mul(self.0[0].elem_size)
    }

    /// The nodes at which something arrives.
    pub(super) fn receivers(&self) -> Vec<usize> {
        (0..self.0.len()).filter(|at| !self.0[*at].targets.is_empty()).collect()
    }

    /// Copies all that arrives at a node; over the current `rayon` pool, if it `spreads`.
    ///
    /// # Safety
    /// As for [`Communicator::exchange`](crate::Communicator::exchange): each node has promised it of
    /// its own memory.
    pub(super) unsafe fn copy_to(&self, receiver: usize, spreads: bool) {
        let to = NodeId::from_index(receiver as u64);
        let CollectiveExchange { collective, elem_size, targets, .. } = &self.0[receiver];
        let copy = if spreads { copy_elements_spread } else { copy_elements };
        for (from, CollectiveExchange { sources, .. }) in (0..).map(NodeId::from_index).zip(&self.0)
        {
            for moved in collective.between(from, to).boxes() {
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
