//! How devices come to have collective operations, before a run begins: node 0 invites all others, each says
//! whether it has joined, and node 0 tells all whether everybody has. Knows no clock: who drives it gives up
//! when it likes.

use std::collections::BTreeSet;

use celerity_cdag::NodeId;

use super::collectives::{CollectiveTerms, DeviceCollectives};
use super::note::Note;
use crate::communicator::Communicator;

/// Node 0, who decides for all.
const FIRST: NodeId = NodeId::from_index(0);

/// A node that finds out whether all nodes have collective operations of devices.
pub(super) struct Founding {
    device: Result<Box<dyn DeviceCollectives>, String>,
    terms: CollectiveTerms,
    /// Whether the device is joining: the node owes an answer.
    is_joining: bool,
    /// The nodes that owe node 0 an answer, which they all give: nothing of this is on its way any more when
    /// the run begins. Empty at other nodes.
    missing: BTreeSet<NodeId>,
    /// Whether all nodes have joined, once node 0 has decided. If not, why.
    outcome: Option<Result<(), String>>,
}

impl Founding {
    /// Begins, at one end of a network. Without `device`, nobody has such operations, for the reason given.
    pub(super) fn begin(
        end: &mut dyn Communicator,
        device: Result<Box<dyn DeviceCollectives>, String>,
    ) -> Self {
        let terms = device.as_ref().map_or_else(|_| CollectiveTerms::default(), |one| one.terms());
        let missing = BTreeSet::new();
        let mut new = Self { device, terms, is_joining: false, missing, outcome: None };
        if end.node() == FIRST {
            match new.invited() {
                Ok(card) => {
                    new.missing = (0..end.nodes() as u64).map(NodeId::from_index).collect();
                    Note::Invited(terms, card.clone()).tell_others(end);
                    new.join(end, &card);
                }
                Err(why) => new.settle(end, Err(why)),
            }
        }
        new
    }

    /// What is needed in the run, and on which terms, if all have joined. If not, why.
    pub(super) fn finish(self) -> Result<(Box<dyn DeviceCollectives>, CollectiveTerms), String> {
        let ended = || Err("the run has ended before all nodes had joined".to_owned());
        self.outcome.unwrap_or_else(ended)?;
        self.device.map(|device| (device, self.terms))
    }

    /// Whether nothing more is to be done.
    pub(super) fn is_over(&self) -> bool {
        self.outcome.is_some() && self.missing.is_empty()
    }

    /// The other nodes that this one waits for.
    pub(super) fn missing(&self, local: NodeId) -> Vec<NodeId> {
        match local == FIRST {
            true => self.missing.iter().copied().filter(|node| *node != local).collect(),
            false => self.outcome.is_none().then_some(FIRST).into_iter().collect(),
        }
    }

    /// Goes on as far as is possible without hearing from others.
    pub(super) fn step(&mut self, end: &mut dyn Communicator) {
        let device = self.device.as_mut().ok().filter(|_| self.is_joining);
        if let Some(joined) = device.and_then(|device| device.joined()) {
            self.answer(end, joined);
        }
    }

    /// Another node says something of it.
    pub(super) fn hear(&mut self, end: &mut dyn Communicator, from: NodeId, note: Note) {
        match note {
            Note::Invited(terms, card) => {
                self.terms = terms;
                self.join(end, &card);
            }
            Note::Joined(joined) => self.answered(end, from, joined),
            Note::Settled(outcome) => self.end(end, outcome),
            _ => {}
        }
    }

    fn invited(&mut self) -> Result<Vec<u8>, String> {
        self.device.as_mut().map_err(|why| why.clone())?.invite()
    }

    fn join(&mut self, end: &mut dyn Communicator, card: &[u8]) {
        self.is_joining = true;
        let begun = match &mut self.device {
            Ok(device) => device.join(card, end.node(), end.nodes()),
            Err(why) => Err(why.clone()),
        };
        if begun.is_err() {
            self.answer(end, begun);
        }
    }

    /// This node has joined, or cannot, or has given up: says so, if it has not.
    fn answer(&mut self, end: &mut dyn Communicator, joined: Result<(), String>) {
        if !std::mem::replace(&mut self.is_joining, false) {
            return;
        }
        let local = end.node();
        match local == FIRST {
            true => self.answered(end, local, joined),
            false => end.send_note(FIRST, &Note::Joined(joined).encode(local)),
        }
    }

    /// Node 0 has the answer of a node.
    fn answered(&mut self, end: &mut dyn Communicator, node: NodeId, joined: Result<(), String>) {
        self.missing.remove(&node);
        match joined {
            Err(why) => self.settle(end, Err(format!("{node}: {why}"))),
            Ok(()) if self.missing.is_empty() => self.settle(end, Ok(())),
            Ok(()) => {}
        }
    }

    /// Node 0 tells all how it ends, once.
    fn settle(&mut self, end: &mut dyn Communicator, outcome: Result<(), String>) {
        if self.outcome.is_none() {
            Note::Settled(outcome.clone()).tell_others(end);
            self.end(end, outcome);
        }
    }

    fn end(&mut self, end: &mut dyn Communicator, outcome: Result<(), String>) {
        if let (Err(_), Ok(device)) = (&outcome, &mut self.device) {
            device.abort();
        }
        self.outcome = Some(outcome);
        self.answer(end, Err("it has given up".to_owned()));
    }
}
