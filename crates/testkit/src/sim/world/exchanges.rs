//! Collective operations in the simulated network: boxes that travel from each node to each other one,
//! read and written at moments of the simulator's choice, and nodes that are told of the end of their
//! parts one by one. Gives nothing beyond the contract of
//! [`Communicator`](celerity_executor::Communicator).
#![allow(unsafe_code)]

use std::collections::BTreeMap;

use celerity_cdag::{NodeId, TransferId};
use celerity_cpd::Members;
use celerity_executor::{CollectiveExchange, CommEvent, CommunicationError, ElementArray, find_in};
use celerity_regions::Box3;
use celerity_tdag::TaskId;

use super::delivery::Delivery;
use super::memory::Staged;
use super::{Event, World, node_id};
use crate::sim::log::What;

/// Operations that are not over.
pub(in crate::sim) struct OpenCollectives {
    /// By node: the operation that it has come to last.
    latest: Vec<Option<TransferId>>,
    open: BTreeMap<TransferId, OpenCollective>,
}

struct OpenCollective {
    /// Whether it takes place between devices, which carry theirs out one after the other.
    on_devices: bool,
    /// By node: whether it takes part.
    takes_part: Vec<bool>,
    /// By node: its part, once it has come.
    parts: Vec<Option<CollectiveExchange>>,
    /// What moves, once all have come.
    hops: Vec<Hop>,
    /// By node: reads and writes of its memory that are to come.
    left: Vec<usize>,
    moves: bool,
}

/// A box of elements from one array to another.
#[derive(Clone, Copy)]
struct Hop {
    from: usize,
    source: ElementArray,
    to: usize,
    target: ElementArray,
    elements: Box3,
    elem_size: u64,
}

impl OpenCollectives {
    pub(in crate::sim) fn new(nodes: usize) -> Self {
        Self { latest: vec![None; nodes], open: BTreeMap::new() }
    }

    /// Whether no memory of a node is in use.
    pub(in crate::sim) fn is_quiet(&self, node: usize) -> bool {
        self.open.values().all(|exchange| !exchange.moves || exchange.left[node] == 0)
    }

    /// Whether a node has come to something that is not over for it.
    pub(in crate::sim) fn has_begun(&self, node: usize) -> bool {
        let waits =
            |one: &OpenCollective| one.parts[node].is_some() && (!one.moves || one.left[node] > 0);
        self.open.values().any(waits)
    }

    /// Forgets what has not begun to move.
    pub(in crate::sim) fn clear(&mut self) {
        self.open.retain(|_, exchange| exchange.moves);
    }

    /// Forgets a node's part in what has not begun to move.
    pub(in crate::sim) fn withdraw(&mut self, node: usize) {
        let waiting = self.open.values_mut().filter(|exchange| !exchange.moves);
        waiting.for_each(|exchange| exchange.parts[node] = None);
    }

    /// The first operation that may begin.
    fn next(&self) -> Option<TransferId> {
        let may_begin = |(transfer, one): &(&TransferId, &OpenCollective)| {
            let nodes = 0..one.takes_part.len();
            let have_come = !one.moves && !nodes.clone().any(|node| one.lacks(node));
            let is_next = |earlier: &OpenCollective| {
                !earlier.on_devices
                    || !nodes.clone().any(|node| one.takes_part[node] && earlier.takes_part[node])
            };
            let mut earlier = self.open.range(..*transfer).map(|(_, earlier)| earlier);
            have_come && (!one.on_devices || earlier.all(is_next))
        };
        self.open.iter().find(may_begin).map(|(transfer, _)| *transfer)
    }

    /// Who waits for a node to come, and where, though that is in a barrier.
    pub(in crate::sim) fn wait_for(&self, node: usize) -> Option<(NodeId, TaskId)> {
        let mut lacking = self.open.values().filter(|open| open.lacks(node));
        lacking.find_map(OpenCollective::someone)
    }
}

impl OpenCollective {
    fn new(nodes: usize, members: &Members, on_devices: bool) -> Self {
        let (hops, left) = (Vec::new(), vec![0; nodes]);
        let mut takes_part = vec![false; nodes];
        members.iter(nodes).for_each(|member| takes_part[member.slot()] = true);
        Self { on_devices, takes_part, parts: vec![None; nodes], hops, left, moves: false }
    }

    /// Whether a node is a member and has not come.
    fn lacks(&self, node: usize) -> bool {
        self.takes_part[node] && self.parts[node].is_none()
    }

    fn someone(&self) -> Option<(NodeId, TaskId)> {
        let come = self.parts.iter().enumerate();
        let mut come = come.filter_map(|(node, part)| Some((node, part.as_ref()?)));
        come.next().map(|(node, part)| (node_id(node), part.transfer.consumer))
    }

    /// Plans what moves; all members have come.
    fn plan(&mut self) {
        self.moves = true;
        let parts = self.parts.iter().enumerate();
        let parts: Vec<_> = parts.filter_map(|(node, part)| Some((node, part.as_ref()?))).collect();
        for &(to, receiver) in &parts {
            for &(from, sender) in &parts {
                let moved = receiver.collective.between(node_id(from), node_id(to));
                let here = moved.boxes().iter().flat_map(|part| find_in(&receiver.targets, part));
                for (target, part) in here.collect::<Vec<_>>() {
                    for (source, elements) in find_in(&sender.sources, &part) {
                        let elem_size = receiver.elem_size;
                        let hop = Hop { from, source, to, target, elements, elem_size };
                        self.hops.push(hop);
                        self.left[from] += 1;
                        self.left[to] += 1;
                    }
                }
            }
        }
    }
}

impl World {
    /// A node comes to its next operation.
    pub(in crate::sim) fn exchange(&mut self, node: usize, exchange: CollectiveExchange) {
        let (transfer, nodes) = (exchange.transfer, self.network.nodes());
        self.note(node, What::Exchanges { transfer });
        if self.network.aborted().is_some() {
            return;
        }
        let OpenCollectives { latest, open } = &mut self.network.exchanges;
        let mut earlier = open.range(..transfer).filter(|(_, earlier)| earlier.lacks(node));
        let waits = earlier.find_map(|(_, earlier)| earlier.someone());
        let members = &exchange.collective.members;
        let on_devices = exchange.at.device().is_some();
        let new = || OpenCollective::new(nodes, members, on_devices);
        let open = open.entry(transfer).or_insert_with(new);
        let other = open.parts.iter().flatten().next();
        let agrees = other.is_none_or(|other| other.agrees_with(&exchange));
        let apart = waits.or_else(|| open.someone().filter(|_| !agrees));
        let absent: Vec<_> = (0..nodes).map(|node| open.lacks(node)).collect();
        let gone_on = |node: usize| latest[node].filter(|later| absent[node] && *later > transfer);
        let gone_on = (0..nodes).find_map(|node| Some((node_id(node), gone_on(node)?.consumer)));
        latest[node] = latest[node].max(Some(transfer));
        let apart = apart.or(gone_on).or_else(|| self.network.stays_away(&absent));
        if let Some((other, other_task)) = apart {
            let (node, task) = (node_id(node), transfer.consumer);
            let apart = CommunicationError::Apart { node, task, other, other_task };
            return self.tell_all(&CommEvent::Failed(apart));
        }
        let open = self.network.exchanges.open.get_mut(&transfer).expect("just opened");
        open.parts[node] = Some(exchange);
        self.begin_exchanges();
    }

    /// Begins all that may: everybody has come, and devices have ended what they have begun before.
    fn begin_exchanges(&mut self) {
        while self.network.aborted().is_none()
            && let Some(transfer) = self.network.exchanges.next()
        {
            self.begin_exchange(transfer);
        }
    }

    /// All members have come: what is in targets is not defined until all has arrived.
    fn begin_exchange(&mut self, transfer: TransferId) {
        let exchange = self.network.exchanges.open.get_mut(&transfer).expect("it is open");
        exchange.plan();
        let (hops, nodes) = (exchange.hops.clone(), exchange.parts.len());
        let is_idle = |node: &usize| exchange.takes_part[*node] && exchange.left[*node] == 0;
        let idle: Vec<_> = (0..nodes).filter(is_idle).collect();
        for (hop, Hop { target, elements, elem_size, .. }) in hops.into_iter().enumerate() {
            // SAFETY: the receiver has promised live memory without races until it is told; the
            // simulation's own blocks live until its end anyway.
            unsafe { Staged::poison(elements, elem_size).write(target) };
            let delay = self.random.delay(self.conditions.payload);
            self.after(delay, Event::Network(Delivery::ReadHop(transfer, hop)));
        }
        idle.into_iter().for_each(|node| self.exchanged(transfer, node));
        self.end_if_over(transfer);
    }

    pub(in crate::sim) fn read_hop(&mut self, transfer: TransferId, hop: usize) {
        let Hop { from, source, elements, elem_size, .. } = self.hop(transfer, hop);
        self.check_alive(from, source);
        // SAFETY: as for targets; the elements are inside of the source's extent.
        let staged = unsafe { Staged::read(source, elements, elem_size) };
        let delay = self.random.delay(self.conditions.payload);
        self.after(delay, Event::Network(Delivery::WriteHop(transfer, hop, staged)));
        self.used(transfer, from);
    }

    pub(in crate::sim) fn write_hop(&mut self, transfer: TransferId, hop: usize, staged: Staged) {
        let Hop { to, target, .. } = self.hop(transfer, hop);
        self.check_alive(to, target);
        // SAFETY: as above, for the target.
        unsafe { staged.write(target) };
        self.used(transfer, to);
    }

    fn hop(&self, transfer: TransferId, hop: usize) -> Hop {
        self.network.exchanges.open[&transfer].hops[hop]
    }

    /// A node's memory has been read or written once more.
    fn used(&mut self, transfer: TransferId, node: usize) {
        let exchange = self.network.exchanges.open.get_mut(&transfer).expect("it is open");
        exchange.left[node] -= 1;
        if exchange.left[node] == 0 {
            self.exchanged(transfer, node);
            self.end_if_over(transfer);
        }
    }

    /// A node's part is over; after an abort it is only woken, to look whether the network is
    /// quiet.
    fn exchanged(&mut self, transfer: TransferId, node: usize) {
        match self.network.aborted() {
            Some(_) => self.wake(node),
            None => self.tell(node_id(node), CommEvent::Exchanged { transfer }),
        }
    }

    /// All nodes have been told of an operation whose elements have all moved.
    fn end_if_over(&mut self, transfer: TransferId) {
        let exchange = &self.network.exchanges.open[&transfer];
        if exchange.left.iter().all(|left| *left == 0) {
            self.network.exchanges.open.remove(&transfer);
            self.begin_exchanges();
        }
    }

    fn check_alive(&mut self, node: usize, memory: ElementArray) {
        if self.memory.is_gone(memory.base) {
            self.object(node, "memory is freed while a collective moves it".to_owned());
        }
    }
}
