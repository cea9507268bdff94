//! The simulated network: pilots that overtake each other, payloads that travel
//! in parts or wait where they have been sent ahead, barriers and aborts that nodes
//! learn of at different times. Keeps
//! the contract of [`Communicator`](celerity_executor::Communicator) and gives
//! nothing beyond it.
#![allow(unsafe_code)]

use std::collections::{BTreeMap, VecDeque};

use celerity_cdag::NodeId;
use celerity_executor::{CommEvent, CommunicationError, ElementArray, RunError, Time, WirePayload};
use celerity_idag::{MessageId, Pilot};
use celerity_regions::{Box3, split_along};
use celerity_tdag::TaskId;

use super::delivery::Delivery;
use super::exchanges::OpenCollectives;
use super::memory::Staged;
use super::{Event, World, node_id};
use crate::sim::log::What;

/// The state of the network between all nodes.
pub(in crate::sim) struct SimNetwork {
    /// By node: what it can poll.
    mailboxes: Vec<VecDeque<CommEvent>>,
    /// By node: whether it has polled something since it last found nothing.
    has_heard: Vec<bool>,
    /// By node: whether it has been told of an abort, after which it is told
    /// nothing.
    told: Vec<bool>,
    /// Payloads that one side has posted, by sender and message.
    half_open: BTreeMap<(NodeId, MessageId), Posted>,
    /// Payloads that are moving, by number.
    journeys: BTreeMap<u64, Journey>,
    departed: u64,
    /// By node: payloads that wait there, sent ahead and not asked for; and the most that
    /// ever did at any of them.
    waiting: Vec<usize>,
    most_waiting: usize,
    in_barrier: Vec<(NodeId, TaskId)>,
    pub(in crate::sim) exchanges: OpenCollectives,
    /// When the run was aborted first.
    aborted: Option<Time>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::sim) enum PostedBy {
    Sender,
    Receiver,
}

struct Posted {
    side: PostedBy,
    to: NodeId,
    payload: WirePayload,
    /// Whether the sender has been told: the payload is in memory of the network.
    is_ahead: bool,
}

/// A payload that both sides have posted.
struct Journey {
    from: NodeId,
    to: NodeId,
    source: WirePayload,
    /// As in [`Posted`].
    is_ahead: bool,
    target: WirePayload,
    parts: Vec<Box3>,
    unread: usize,
    unwritten: usize,
}

impl SimNetwork {
    pub(in crate::sim) fn new(nodes: usize) -> Self {
        Self {
            mailboxes: std::iter::repeat_with(VecDeque::new).take(nodes).collect(),
            has_heard: vec![false; nodes],
            told: vec![false; nodes],
            half_open: BTreeMap::new(),
            journeys: BTreeMap::new(),
            departed: 0,
            waiting: vec![0; nodes],
            most_waiting: 0,
            in_barrier: Vec::new(),
            exchanges: OpenCollectives::new(nodes),
            aborted: None,
        }
    }

    /// When the run was aborted first, if it was.
    pub(in crate::sim) fn aborted(&self) -> Option<Time> {
        self.aborted
    }

    /// How many nodes there are.
    pub(in crate::sim) fn nodes(&self) -> usize {
        self.told.len()
    }

    /// A node that is in a barrier, and in which, though it is among the `absent` that others wait
    /// for elsewhere.
    pub(in crate::sim) fn stays_away(&self, absent: &[bool]) -> Option<(NodeId, TaskId)> {
        self.in_barrier.iter().find(|(node, _)| absent[node.slot()]).copied()
    }

    /// The most payloads that have ever waited at one node, sent ahead and not asked for.
    pub(in crate::sim) fn most_waiting(&self) -> usize {
        self.most_waiting
    }

    /// A payload that only one side has posted, if there is one.
    pub(in crate::sim) fn half_open(&self) -> Option<(NodeId, MessageId)> {
        self.half_open.keys().next().copied()
    }

    /// Whether no memory of an end is in use.
    pub(in crate::sim) fn is_quiet(&self, node: usize) -> bool {
        let id = node_id(node);
        self.journeys.values().all(|journey| journey.from != id && journey.to != id)
            && self.exchanges.is_quiet(node)
    }

    /// Whether something that an end has begun has not ended: a payload, a barrier, or an abort
    /// that it has not been told of.
    pub(in crate::sim) fn has_begun(&self, node: usize) -> bool {
        let id = node_id(node);
        let posts = |(&(from, _), posted): (&(NodeId, MessageId), &Posted)| match posted.side {
            PostedBy::Sender => from == id,
            PostedBy::Receiver => posted.to == id,
        };
        !self.is_quiet(node)
            || self.half_open.iter().any(posts)
            || self.exchanges.has_begun(node)
            || self.in_barrier.iter().any(|(waiting, _)| *waiting == id)
            || self.aborted.is_some() && !self.told[node]
    }

    /// Forgets what only one end has posted.
    pub(in crate::sim) fn withdraw(&mut self, node: usize) {
        self.exchanges.withdraw(node);
        let node = node_id(node);
        self.half_open.retain(|(from, _), posted| match posted.side {
            PostedBy::Sender => *from != node,
            PostedBy::Receiver => posted.to != node,
        });
    }
}

impl World {
    pub(in crate::sim) fn send_pilot(&mut self, from: usize, pilot: &Pilot, reached: u64) {
        let &Pilot { to, message, transfer, .. } = pilot;
        self.note(from, What::Announces { to, message, transfer });
        if self.check_peer(from, to) {
            self.check_credit(from, pilot);
            let delay = self.random.delay(self.conditions.pilot);
            let notice = CommEvent::Pilot { from: node_id(from), pilot: pilot.clone(), reached };
            self.after(delay, Event::Network(Delivery::Notice(to, notice)));
        }
    }

    pub(in crate::sim) fn send_note(&mut self, from: usize, to: NodeId, note: &[u8]) {
        self.note(from, What::Notes { to });
        if self.check_peer(from, to) {
            let delay = self.random.delay(self.conditions.pilot);
            let notice = CommEvent::Note { from: node_id(from), note: note.to_vec() };
            self.after(delay, Event::Network(Delivery::Notice(to, notice)));
        }
    }

    /// One side of a payload: `poster` offers it to, or accepts it from, `peer`.
    pub(in crate::sim) fn post(
        &mut self,
        side: PostedBy,
        poster: usize,
        peer: NodeId,
        payload: WirePayload,
    ) {
        let (node, message) = (node_id(poster), payload.message);
        let (from, to, what) = match side {
            PostedBy::Sender => (node, peer, What::Offers { to: peer, message }),
            PostedBy::Receiver => (peer, node, What::Accepts { from: peer, message }),
        };
        self.note(poster, what);
        if !self.check_peer(poster, peer) || self.network.aborted.is_some() {
            return;
        }
        match self.network.half_open.remove(&(from, message)) {
            None => {
                let sent = (side == PostedBy::Sender).then(|| self.send_ahead(from, to, &payload));
                let (is_ahead, payload) =
                    sent.flatten().map_or((false, payload), |sent| (true, sent));
                let posted = Posted { side, to, payload, is_ahead };
                let _ = self.network.half_open.insert((from, message), posted);
            }
            Some(other) => {
                let is_ahead = other.is_ahead;
                self.network.waiting[to.slot()] -= usize::from(is_ahead);
                match meet(side, from, to, payload, other) {
                    Ok((source, target)) => self.depart((from, source, is_ahead), (to, target)),
                    Err(error) => self.fail(poster, *error),
                }
            }
        }
    }

    /// Takes a payload that is small enough over from its sender; returns it as it then is.
    fn send_ahead(
        &mut self,
        from: NodeId,
        to: NodeId,
        payload: &WirePayload,
    ) -> Option<WirePayload> {
        let WirePayload { message, memory, elements, elem_size, .. } = *payload;
        let bytes = elements.volume() * elem_size;
        if bytes > self.conditions.eager {
            return None;
        }
        self.check_memory(from, payload);
        // SAFETY: the sender has promised live memory without writers until it is told.
        let staged = unsafe { Staged::read(memory, elements, elem_size) };
        let base = self.memory.allocate(bytes, 8);
        let memory = ElementArray { base, extent: elements };
        // SAFETY: the block has room for the elements, and is nobody else's.
        unsafe { staged.write(memory) };
        self.tell(from, CommEvent::Sent { message });
        let waiting = &mut self.network.waiting[to.slot()];
        *waiting += 1;
        self.network.most_waiting = self.network.most_waiting.max(*waiting);
        Some(WirePayload { memory, ..*payload })
    }

    /// Brings boxes of a payload, which has been received, to memory of devices.
    pub(in crate::sim) fn scatter(
        &mut self,
        node: usize,
        from: NodeId,
        parts: &[(ElementArray, WirePayload)],
    ) {
        let Some((_, WirePayload { message, .. })) = parts.first() else { return };
        if self.network.aborted.is_some() {
            return;
        }
        for (source, target) in parts {
            self.check_memory(node_id(node), target);
            // SAFETY: the receiver has promised live memory without races until it is told.
            unsafe {
                Staged::read(*source, target.elements, target.elem_size).write(target.memory)
            };
        }
        self.tell(node_id(node), CommEvent::Received { from, message: *message });
    }

    pub(in crate::sim) fn enter_barrier(&mut self, node: usize, epoch: TaskId) {
        self.note(node, What::EntersBarrier { epoch });
        let waits = self.network.exchanges.wait_for(node);
        if let Some((other, other_task)) = waits.filter(|_| self.network.aborted.is_none()) {
            let (node, task) = (node_id(node), epoch);
            let apart = CommunicationError::Apart { node, task, other, other_task };
            return self.tell_all(&CommEvent::Failed(apart));
        }
        self.network.in_barrier.push((node_id(node), epoch));
        if self.network.in_barrier.len() < self.network.told.len() || self.network.aborted.is_some()
        {
            return;
        }
        let entered = std::mem::take(&mut self.network.in_barrier);
        let notice = diverged(&entered).map_or(CommEvent::BarrierReached, CommEvent::Failed);
        self.tell_all(&notice);
    }

    pub(in crate::sim) fn abort(&mut self, node: usize, error: &RunError) {
        self.note(node, What::Aborts);
        if self.network.aborted.is_none() {
            self.network.aborted = Some(self.now);
            self.network.half_open.clear();
            self.network.exchanges.clear();
            self.tell_all(&CommEvent::Aborted(error.clone()));
        }
    }

    /// What a node's end reports next. By chance it keeps quiet about what is
    /// there; it never does so twice in a row, and wakes the node again.
    pub(in crate::sim) fn hear(&mut self, node: usize) -> Option<CommEvent> {
        let heard = std::mem::take(&mut self.network.has_heard[node]);
        if self.network.mailboxes[node].is_empty() {
            return None;
        }
        if heard && self.random.once_in(self.conditions.stutter) {
            self.wake(node);
            return None;
        }
        self.network.has_heard[node] = true;
        self.network.mailboxes[node].pop_front()
    }

    pub(in crate::sim) fn deliver(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Notice(to, notice) => self.arrive(to.slot(), notice),
            Delivery::Read(journey, part) => self.read_part(journey, part),
            Delivery::Write(journey, part, staged) => self.write_part(journey, part, staged),
            Delivery::ReadHop(exchange, hop) => self.read_hop(exchange, hop),
            Delivery::WriteHop(exchange, hop, staged) => self.write_hop(exchange, hop, staged),
        }
    }

    fn arrive(&mut self, node: usize, notice: CommEvent) {
        if self.network.told[node] {
            return;
        }
        self.network.told[node] = matches!(notice, CommEvent::Aborted(_));
        self.note(node, what_arrived(&notice));
        self.network.mailboxes[node].push_back(notice);
        self.wake(node);
    }

    /// Both sides have posted a payload: what is in the receiver's memory is not
    /// defined until all has arrived.
    fn depart(
        &mut self,
        (from, source, is_ahead): (NodeId, WirePayload, bool),
        (to, target): (NodeId, WirePayload),
    ) {
        self.check_memory(to, &target);
        let poison = Staged::poison(target.elements, target.elem_size);
        // SAFETY: the receiver has promised live memory without races until it
        // is told; the simulation's own blocks live until its end anyway.
        unsafe { poison.write(target.memory) };
        let parts = cut(&source.elements, self.random.between(1, self.conditions.parts));
        let (number, count) = (self.network.departed, parts.len());
        self.network.departed += 1;
        let (unread, unwritten) = (count, count);
        let journey = Journey { from, to, source, is_ahead, target, parts, unread, unwritten };
        self.network.journeys.insert(number, journey);
        for part in 0..count {
            let delay = self.random.delay(self.conditions.payload);
            self.after(delay, Event::Network(Delivery::Read(number, part)));
        }
        if count == 0 {
            self.journey_ended(number);
        }
    }

    fn read_part(&mut self, number: u64, part: usize) {
        let journey = self.network.journeys.get_mut(&number).expect("parts move during a journey");
        journey.unread -= 1;
        let (from, source, all_read) = (journey.from, journey.source, journey.unread == 0);
        let is_ahead = journey.is_ahead;
        let elements = journey.parts[part];
        self.note(from.slot(), What::PartRead { message: source.message, part });
        self.check_memory(from, &source);
        // SAFETY: as for the target; parts are inside of the payload's box,
        // which is inside of the source's extent.
        let staged = unsafe { Staged::read(source.memory, elements, source.elem_size) };
        let delay = self.random.delay(self.conditions.payload);
        self.after(delay, Event::Network(Delivery::Write(number, part, staged)));
        match all_read {
            true if is_ahead => drop(self.memory.give_back(source.memory.base)),
            true => self.tell(from, CommEvent::Sent { message: source.message }),
            false => {}
        }
    }

    fn write_part(&mut self, number: u64, part: usize, staged: Staged) {
        let journey = self.network.journeys.get_mut(&number).expect("parts move during a journey");
        journey.unwritten -= 1;
        let (from, to, target) = (journey.from, journey.to, journey.target);
        let arrived = journey.unwritten == 0;
        self.note(to.slot(), What::PartWritten { from, message: target.message, part });
        self.check_memory(to, &target);
        // SAFETY: as above, for the target.
        unsafe { staged.write(target.memory) };
        if arrived {
            self.journey_ended(number);
        }
    }

    /// Tells the receiver; after an abort only wakes both sides, to look whether
    /// the network is quiet.
    fn journey_ended(&mut self, number: u64) {
        let journey = self.network.journeys.remove(&number).expect("a journey ends once");
        let Journey { from, to, target, parts, is_ahead, .. } = journey;
        let message = target.message;
        if self.network.aborted.is_some() {
            self.wake(from.slot());
            self.wake(to.slot());
            return;
        }
        if parts.is_empty() && !is_ahead {
            self.tell(from, CommEvent::Sent { message });
        }
        self.tell(to, CommEvent::Received { from, message });
    }

    /// A receiver may be behind by what its sender's lead and run-ahead allow.
    fn check_credit(&mut self, from: usize, pilot: &Pilot) {
        let (&Pilot { to, transfer, .. }, consumer) = (pilot, pilot.transfer.consumer);
        let allowed = self.conditions.lead.saturating_add(self.conditions.run_ahead);
        let ahead = self.ledger.announce((from, to.slot()), consumer, allowed);
        if let Some(ahead) = ahead.filter(|_| self.conditions.eager > 0) {
            let what = format!("announces {transfer} to {to}, which is {ahead} horizons behind");
            self.object(from, what);
        }
    }

    fn check_memory(&mut self, node: NodeId, payload: &WirePayload) {
        if self.memory.is_gone(payload.memory.base) {
            let message = payload.message;
            self.object(node.slot(), format!("memory of {message} is freed while it moves"));
        }
    }

    fn check_peer(&mut self, node: usize, peer: NodeId) -> bool {
        let nodes = self.network.told.len();
        let known = peer.slot() < nodes;
        if !known {
            self.fail(node, CommunicationError::NoSuchNode { node: peer, nodes });
        }
        known
    }

    fn fail(&mut self, node: usize, error: CommunicationError) {
        self.tell(node_id(node), CommEvent::Failed(error));
    }

    pub(in crate::sim) fn tell(&mut self, node: NodeId, notice: CommEvent) {
        let completes = matches!(
            notice,
            CommEvent::Sent { .. } | CommEvent::Received { .. } | CommEvent::Exchanged { .. }
        );
        if completes && self.network.aborted.is_some() {
            return;
        }
        let delay = self.random.delay(self.conditions.notice);
        self.after(delay, Event::Network(Delivery::Notice(node, notice)));
    }

    pub(in crate::sim) fn tell_all(&mut self, notice: &CommEvent) {
        for node in 0..self.network.told.len() {
            self.tell(node_id(node), notice.clone());
        }
    }
}

/// Joins both sides of a payload as (source, target).
fn meet(
    side: PostedBy,
    from: NodeId,
    to: NodeId,
    payload: WirePayload,
    other: Posted,
) -> Result<(WirePayload, WirePayload), Box<CommunicationError>> {
    let message = payload.message;
    if other.side == side || other.to != to {
        return Err(Box::new(CommunicationError::Reused { from, to, message }));
    }
    let (source, target) = match side {
        PostedBy::Sender => (payload, other.payload),
        PostedBy::Receiver => (other.payload, payload),
    };
    if (source.elements, source.elem_size) == (target.elements, target.elem_size) {
        return Ok((source, target));
    }
    Err(Box::new(CommunicationError::Mismatch {
        from,
        to,
        message,
        sent: source.elements,
        sent_size: source.elem_size,
        received: target.elements,
        received_size: target.elem_size,
    }))
}

/// Two nodes that are in different barriers, if there are any.
fn diverged(entered: &[(NodeId, TaskId)]) -> Option<CommunicationError> {
    let (&(node, epoch), others) = entered.split_first()?;
    let &(other, other_epoch) = others.iter().find(|(_, other)| *other != epoch)?;
    Some(CommunicationError::Diverged { node, epoch, other, other_epoch })
}

/// Cuts a box into about so many, along its longest side.
fn cut(elements: &Box3, parts: usize) -> Vec<Box3> {
    let range = elements.range();
    let dim = (0..3).max_by_key(|&dim| range[dim]).expect("there are three dimensions");
    split_along(elements, dim, [1; 3], parts)
}

fn what_arrived(notice: &CommEvent) -> What {
    match *notice {
        CommEvent::Pilot { from, ref pilot, .. } => {
            What::Announced { from, message: pilot.message }
        }
        CommEvent::Note { from, .. } => What::Noted { from },
        CommEvent::Sent { message } => What::Sent { message },
        CommEvent::Received { from, message } => What::Received { from, message },
        CommEvent::Exchanged { transfer } => What::Exchanged { transfer },
        CommEvent::BarrierReached => What::BarrierReached,
        CommEvent::Aborted(_) => What::Aborted,
        CommEvent::Failed(_) => What::NetworkFailed,
    }
}
