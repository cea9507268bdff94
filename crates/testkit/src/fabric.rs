//! Collective operations of devices that do not exist, between nodes of this process. Gives nothing beyond
//! the contract of [`DeviceCollectives`]: a device carries out one operation after the other, each when all
//! members have come to it with theirs, and whoever waits for one that does not come waits until it aborts.
#![allow(unsafe_code)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use celerity_cdag::NodeId;
use celerity_executor::{
    CollectiveExchange, CollectiveTerms, Copied, CopyId, DeviceCollectives, WindowError,
    copy_elements, find_in,
};

use crate::random::Random;

/// What connects the devices of all nodes.
#[derive(Clone, Default)]
pub struct FakeFabric {
    joined: Arc<Mutex<BTreeMap<Vec<u8>, Joined>>>,
    terms: CollectiveTerms,
}

/// The nodes that have joined with one card.
#[derive(Default)]
struct Joined {
    /// By node: what it has begun, in order.
    nodes: BTreeMap<NodeId, VecDeque<Begun>>,
    expected: usize,
}

struct Begun {
    id: CopyId,
    exchange: CollectiveExchange,
    is_over: bool,
}

/// A node's device, as [`FakeFabric::device`] makes them.
pub struct FakeDevice {
    fabric: FakeFabric,
    node: NodeId,
    card: Vec<u8>,
    random: Random,
    aborted: Vec<CopyId>,
    /// Whether the device cannot join.
    refuses: bool,
}

impl FakeFabric {
    /// With other terms than that all operations are welcome.
    #[must_use]
    pub fn with_terms(self, terms: CollectiveTerms) -> Self {
        Self { terms, ..self }
    }

    /// A node's device; `seed` chooses how long what takes.
    #[must_use]
    pub fn device(&self, node: NodeId, seed: u64) -> FakeDevice {
        let (fabric, random) = (self.clone(), Random::new(seed));
        FakeDevice { fabric, node, card: Vec::new(), random, aborted: Vec::new(), refuses: false }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, Joined>> {
        self.joined.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FakeDevice {
    /// One that cannot join others.
    #[must_use]
    pub fn refusing(self) -> Self {
        Self { refuses: true, ..self }
    }
}

impl Joined {
    /// Carries out what all members have come to.
    fn progress(&mut self) {
        while let Some(members) = self.next() {
            let begun = |node: &NodeId| first(&self.nodes[node]).expect("as just seen");
            for to in &members {
                let receiver = begun(to);
                for from in &members {
                    move_between((*from, &begun(from).exchange), (*to, &receiver.exchange));
                }
            }
            for member in members {
                let mut begun = self.nodes.get_mut(&member).into_iter().flatten();
                let over = begun.find(|one| !one.is_over);
                over.expect("as just seen").is_over = true;
            }
        }
    }

    /// The members of an operation that all of them come to next.
    fn next(&self) -> Option<Vec<NodeId>> {
        self.nodes.values().filter_map(first).find_map(|one| {
            let members = one.exchange.collective.members.iter(self.expected);
            let members: Vec<_> = members.collect();
            let has_come = |node| {
                let other = self.nodes.get(node).and_then(first);
                other.is_some_and(|other| other.exchange.agrees_with(&one.exchange))
            };
            members.iter().all(has_come).then_some(members)
        })
    }
}

/// What a device is to carry out next.
fn first(begun: &VecDeque<Begun>) -> Option<&Begun> {
    begun.iter().find(|one| !one.is_over)
}

fn move_between(
    (from, sender): (NodeId, &CollectiveExchange),
    (to, receiver): (NodeId, &CollectiveExchange),
) {
    for moved in receiver.collective.between(from, to).boxes() {
        for (target, here) in find_in(&receiver.targets, moved) {
            for (source, part) in find_in(&sender.sources, &here) {
                // SAFETY: each node has promised its memory until it is told, which it has not been, and
                // takes back what it has begun when it aborts.
                unsafe { copy_elements(source, target, &part, receiver.elem_size) };
            }
        }
    }
}

// SAFETY: elements are moved while no member has been told, and all of them at once.
unsafe impl DeviceCollectives for FakeDevice {
    fn terms(&self) -> CollectiveTerms {
        self.fabric.terms
    }

    fn invite(&mut self) -> Result<Vec<u8>, WindowError> {
        let mut all = self.fabric.lock();
        let card = (all.len() as u64).to_le_bytes().to_vec();
        all.insert(card.clone(), Joined::default());
        Ok(card)
    }

    fn join(&mut self, card: &[u8], node: NodeId, nodes: usize) -> Result<(), WindowError> {
        assert_eq!(node, self.node, "a device joins as its node");
        if self.refuses {
            return Err("it does not join others".to_owned());
        }
        self.card = card.to_vec();
        let mut all = self.fabric.lock();
        let joined = all.get_mut(card).expect("cards arrive as they were");
        joined.expected = nodes;
        joined.nodes.insert(node, VecDeque::new());
        Ok(())
    }

    fn joined(&mut self) -> Option<Result<(), WindowError>> {
        let all = self.fabric.lock();
        let joined = &all[&self.card];
        (joined.nodes.len() == joined.expected).then_some(Ok(()))
    }

    unsafe fn begin(&mut self, id: CopyId, exchange: &CollectiveExchange) {
        assert!(
            exchange.at.device().is_some_and(|device| device.index() == 0),
            "on the first device"
        );
        let begun = Begun { id, exchange: exchange.clone(), is_over: false };
        let mut all = self.fabric.lock();
        let joined = all.get_mut(&self.card).expect("it has joined");
        match joined.nodes.get_mut(&self.node) {
            Some(queue) => queue.push_back(begun),
            None => self.aborted.push(id),
        }
        joined.progress();
    }

    fn poll(&mut self) -> Option<Copied> {
        if let Some(id) = self.aborted.pop() {
            return Some(Copied { id, outcome: Err("it was aborted".to_owned()) });
        }
        if self.random.once_in(3) {
            return None;
        }
        let mut all = self.fabric.lock();
        let queue = all.get_mut(&self.card)?.nodes.get_mut(&self.node)?;
        let over = if queue.front()?.is_over { queue.pop_front()? } else { return None };
        Some(Copied { id: over.id, outcome: Ok(()) })
    }

    fn abort(&mut self) {
        let mut all = self.fabric.lock();
        let queue = all.get_mut(&self.card).and_then(|joined| joined.nodes.remove(&self.node));
        self.aborted.extend(queue.into_iter().flatten().map(|one| one.id));
    }
}
