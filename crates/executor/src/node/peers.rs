//! What is between a node and its peers: which payloads are under way, how far each may be ahead
//! of the others, whether all run the same program, and the barrier. Owns the end of the network.
//! Knows memory only as the addresses that it passes on, and nothing of what runs.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::time::Duration;

use celerity_cdag::{NodeId, TransferId};
use celerity_idag::{AllocationId, Inbound, InstructionId, MemoryId, MessageId, Pilot};
use celerity_regions::Region;
use celerity_tdag::{BufferInfo, EpochAction, ObjectId, Task, TaskId, Work};

mod conversation;
mod parcels;

use self::parcels::{Parcels, Places};
use super::credit::{self, Credit};
use super::stream::{Objection, Outgoing, StreamSettings, TaskStream};
use crate::arbiter::{Arbiter, ArbiterError, PostReceive};
use crate::collective::Correspondence;
use crate::communicator::{CollectiveExchange, CommEvent, Communicator, WirePayload};
use crate::copy::ElementArray;
use crate::error::{CommunicationError, RunError};
use crate::polling::{Attention, NAMING, patience};
use crate::time::Time;
use crate::window::IdMap;
use crate::wires::MemoryArray;

/// One node's view of all others.
///
/// Whatever may let receives go on, a pilot, a payload or a receive that begins, is followed by
/// asking for [what to post](Self::next_post) and [what has arrived](Self::next_received), until
/// there is nothing more.
pub(super) struct Peers {
    // Before `parcels`: dropping an end waits until their memory is out of use.
    communicator: Box<dyn Communicator>,
    parcels: Parcels,
    arbiter: Arbiter,
    credit: Credit,
    stream: TaskStream,
    /// Payloads of this node that have not left, and what sends them.
    sends: IdMap<MessageId, InstructionId>,
    /// Collective operations that this node has come to and that are not over, and their
    /// instructions.
    exchanges: IdMap<TransferId, InstructionId>,
    /// On their way to the communicator.
    notes: Vec<Outgoing>,
    /// Letters of collective tasks.
    exchange: Arc<Correspondence>,
    /// The epoch whose barrier this node has entered.
    in_barrier: Option<Barrier>,
    /// That nodes wait in different epochs, and since when that is known.
    apart: Option<(CommunicationError, Time)>,
}

/// An epoch that this node has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Barrier {
    pub(super) instruction: InstructionId,
    pub(super) task: TaskId,
    pub(super) action: EpochAction,
}

/// Elements that leave as one message.
pub(super) struct Leaving {
    pub(super) message: MessageId,
    /// The memory that they lie in.
    pub(super) at: MemoryId,
    /// Where they are there.
    pub(super) memory: ElementArray,
    pub(super) region: Region,
    /// Bytes per element.
    pub(super) elem_size: u64,
}

/// What an event means to the rest of the node.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "somebody waits for it"]
pub(super) enum Heard {
    /// Nothing.
    Nothing,
    /// The payload has left that this instruction sends.
    Sent(InstructionId),
    /// The collective operation is over that this instruction takes part in.
    Exchanged(InstructionId),
    /// Receives may go on.
    Transfers,
    /// All nodes have come to the epoch.
    Reached(Barrier),
}

impl Peers {
    /// At one end of a network. Where that [sends ahead](Communicator::sends_ahead), the node may
    /// be `lead` horizons ahead of those that it sends to.
    pub(super) fn new(communicator: Box<dyn Communicator>, lead: u64) -> Self {
        let (local, nodes) = (communicator.node(), communicator.nodes());
        let lead = communicator.sends_ahead().then_some(lead);
        Self {
            communicator,
            parcels: Parcels::default(),
            arbiter: Arbiter::new(local),
            credit: Credit::new(nodes, lead),
            stream: TaskStream::new(local, nodes),
            sends: IdMap::default(),
            exchanges: IdMap::default(),
            notes: Vec::new(),
            exchange: Arc::new(Correspondence::new()),
            in_barrier: None,
            apart: None,
        }
    }

    /// How many nodes there are, this one among them.
    pub(super) fn nodes(&self) -> usize {
        self.communicator.nodes()
    }

    /// Changes how far this node may be ahead, before there is anything to be ahead with.
    pub(super) fn set_lead(&mut self, lead: u64) {
        let lead = self.communicator.sends_ahead().then_some(lead);
        self.credit = Credit::new(self.communicator.nodes(), lead);
    }

    /// Changes what other nodes' settings are compared with, where their tasks differ.
    pub(super) fn set_settings(&mut self, settings: StreamSettings) {
        self.stream.set_settings(settings);
    }

    /// This node.
    pub(super) fn local(&self) -> NodeId {
        self.communicator.node()
    }

    /// Takes the next thing that has happened in the network.
    pub(super) fn poll(&mut self) -> Option<CommEvent> {
        self.communicator.poll()
    }

    /// Takes notice of an event, which is not that the run has been aborted.
    ///
    /// # Errors
    /// What is wrong with the network, with a peer, or between the programs of two nodes; if nodes
    /// wait in different epochs, after [a while](Self::check_apart).
    pub(super) fn hear(&mut self, event: CommEvent, now: Time) -> Result<Heard, RunError> {
        match event {
            CommEvent::Pilot { from, pilot, reached } => {
                self.credit.announced(from, pilot.transfer.consumer, reached);
                let consumer = Some(pilot.transfer.consumer);
                self.arbiter.pilot(from, pilot).map_err(|error| self.misplaced(consumer, error))?;
                Ok(Heard::Transfers)
            }
            CommEvent::Received { from, message } => {
                // SAFETY: as `receive` was promised, until the arbiter says that all has arrived.
                let scattered = unsafe { self.parcels.unpack(from, message) };
                if !scattered.is_empty() {
                    // SAFETY: as above; `parcels` keeps the row until this has been received.
                    unsafe { self.communicator.scatter(from, &scattered) };
                    return Ok(Heard::Nothing);
                }
                self.arbiter.arrived(from, message).map_err(|error| self.misplaced(None, error))?;
                Ok(Heard::Transfers)
            }
            CommEvent::Note { from, note } => self.noted(from, &note).map(|()| Heard::Nothing),
            CommEvent::Sent { message } => {
                self.parcels.left(message);
                let send = self.sends.remove(&message).expect("payloads are sent once");
                #[cfg(feature = "mutants")]
                if celerity_mutants::Mutant::SendNeverEnds.is_active() {
                    return Ok(Heard::Nothing);
                }
                Ok(Heard::Sent(send))
            }
            CommEvent::Exchanged { transfer } => {
                let over = self.exchanges.remove(&transfer);
                Ok(Heard::Exchanged(over.expect("the node takes part once")))
            }
            CommEvent::BarrierReached => {
                let barrier = self.in_barrier.take();
                Ok(Heard::Reached(barrier.expect("the node is in the barrier")))
            }
            CommEvent::Failed(
                error @ (CommunicationError::Diverged { .. } | CommunicationError::Apart { .. }),
            ) => {
                self.apart = Some((error, now));
                Ok(Heard::Nothing)
            }
            CommEvent::Failed(error) => Err(self.broken(error)),
            CommEvent::Aborted(_) => unreachable!("aborts are handled in every state"),
        }
    }

    /// Called when there is nothing to do.
    ///
    /// # Errors
    /// If nodes wait in different epochs, and the streams have not found why in time.
    pub(super) fn check_apart(&mut self, now: Time) -> Result<(), RunError> {
        let due = self.apart.take_if(|(_, since)| now >= *since + NAMING);
        due.map_or(Ok(()), |(error, _)| Err(self.broken(error)))
    }

    /// When [`check_apart`](Self::check_apart) has something to say.
    pub(super) fn apart_until(&self) -> Option<Time> {
        self.apart.as_ref().map(|(_, since)| *since + NAMING)
    }

    fn noted(&mut self, from: NodeId, note: &[u8]) -> Result<(), RunError> {
        if let Some(reached) = credit::read(note) {
            self.credit.hear(from, reached);
            return Ok(());
        }
        if let Some(taken) = self.exchange.take(from, note) {
            return self.heard_letter(from, taken);
        }
        let outcome = self.stream.noted(from, note, &mut self.notes);
        self.send_notes();
        outcome.map_err(|objection| match objection {
            Objection::Diverged(error) => error,
            Objection::Malformed => {
                let what = format!("{} bytes are no note", note.len());
                self.broken(CommunicationError::Malformed { from, what })
            }
        })
    }

    fn send_notes(&mut self) {
        let notes = self.notes.drain(..);
        notes.for_each(|Outgoing { to, note }| self.communicator.send_note(to, &note));
    }

    /// The program has created a buffer; `contents` is a hash of what it starts with, if that is
    /// to be compared.
    pub(super) fn buffer(&mut self, info: &BufferInfo, element_type: &str, contents: Option<u64>) {
        self.stream.buffer((info, element_type), contents, &mut self.notes);
        self.send_notes();
    }

    /// The program has created a host object.
    pub(super) fn object(&mut self, object: ObjectId) {
        self.stream.object(object);
    }

    /// A buffer has got a new name.
    pub(super) fn renamed(&mut self, info: &Arc<BufferInfo>) {
        self.stream.renamed(info);
    }

    /// The program has submitted a task; `answers` is a hash of what range mappers have said up
    /// to here, unless it could not be scheduled.
    ///
    /// # Errors
    /// If a buffer before it starts with something else on another node.
    pub(super) fn task(&mut self, task: &Task, answers: Option<u64>) -> Result<(), RunError> {
        let mut compared = Ok(());
        if let Some(answers) = answers {
            self.stream.task(task, answers, &mut self.notes);
            self.send_notes();
            compared = self.stream.compare_contents();
        }
        if task.work == Work::Horizon {
            self.credit.know(task.id);
        }
        compared
    }

    /// Announces a payload.
    pub(super) fn announce(&mut self, pilot: &Pilot) {
        let reached = self.credit.announce(pilot);
        self.communicator.send_pilot(pilot, reached);
    }

    /// Offers a payload that has been announced; [`Heard::Sent`] tells when it has left.
    ///
    /// # Safety
    /// As for [`Communicator::send`].
    pub(super) unsafe fn send(&mut self, instruction: InstructionId, to: NodeId, leaving: Leaving) {
        let Leaving { message, at, memory, region, elem_size } = leaving;
        self.sends.insert(message, instruction);
        let (memory, elements) = match region.boxes() {
            [elements] => (memory, *elements),
            _ => {
                debug_assert_eq!(at, MemoryId::HOST, "{message} has several boxes");
                // SAFETY: passed on.
                let row = unsafe { self.parcels.pack(message, memory, &region, elem_size) };
                (row, row.extent)
            }
        };
        let payload = WirePayload { message, at, memory, elements, elem_size };
        // SAFETY: passed on; `parcels` keeps the row until it has left.
        unsafe { self.communicator.send(to, payload) };
    }

    /// Accepts a payload that was [to be posted](Self::next_post).
    ///
    /// # Safety
    /// As for [`Communicator::receive`].
    pub(super) unsafe fn receive(
        &mut self,
        (from, message): (NodeId, MessageId),
        places: Places,
        elem_size: u64,
    ) {
        let (place, elements) = match places.as_slice() {
            [(elements, place)] => (*place, *elements),
            _ => {
                let row = self.parcels.expect(from, message, places, elem_size);
                (MemoryArray { at: MemoryId::HOST, array: row }, row.extent)
            }
        };
        let MemoryArray { at, array: memory } = place;
        let payload = WirePayload { message, at, memory, elements, elem_size };
        // SAFETY: passed on; `parcels` keeps the row until it has arrived.
        unsafe { self.communicator.receive(from, payload) };
    }

    /// Comes to the next collective operation; [`Heard::Exchanged`] tells when it is over.
    ///
    /// # Safety
    /// As for [`Communicator::exchange`].
    pub(super) unsafe fn begin_exchange(
        &mut self,
        instruction: InstructionId,
        exchange: CollectiveExchange,
    ) {
        self.exchanges.insert(exchange.transfer, instruction);
        // SAFETY: passed on.
        unsafe { self.communicator.exchange(exchange) };
    }

    /// Which other nodes have not come to a collective operation that this one has come to, as far
    /// as is known.
    pub(super) fn absent(&self, transfer: TransferId) -> Vec<NodeId> {
        self.communicator.absent(transfer)
    }

    /// Begins a *receive*.
    ///
    /// # Errors
    /// As for [`Arbiter::begin_receive`].
    pub(super) fn begin_receive(
        &mut self,
        instruction: InstructionId,
        inbound: &Inbound,
    ) -> Result<(), RunError> {
        let begun = self.arbiter.begin_receive(instruction, inbound);
        begun.map_err(|error| self.misplaced(Some(inbound.transfer.consumer), error))
    }

    /// Begins a *split receive*.
    ///
    /// # Errors
    /// As for [`Arbiter::begin_split_receive`].
    pub(super) fn begin_split_receive(
        &mut self,
        instruction: InstructionId,
        inbound: &Inbound,
    ) -> Result<(), RunError> {
        let begun = self.arbiter.begin_split_receive(instruction, inbound);
        begun.map_err(|error| self.misplaced(Some(inbound.transfer.consumer), error))
    }

    /// Begins to wait for a part of a split receive.
    ///
    /// # Errors
    /// As for [`Arbiter::begin_await`].
    pub(super) fn begin_await(
        &mut self,
        instruction: InstructionId,
        transfer: TransferId,
        region: &Region,
    ) -> Result<(), RunError> {
        let begun = self.arbiter.begin_await(instruction, transfer, region);
        begun.map_err(|error| self.misplaced(Some(transfer.consumer), error))
    }

    /// The next receive to [post](Self::receive).
    pub(super) fn next_post(&mut self) -> Option<PostReceive> {
        self.arbiter.next_post()
    }

    /// The next instruction for which all has arrived.
    pub(super) fn next_received(&mut self) -> Option<InstructionId> {
        self.arbiter.next_completed()
    }

    /// The node has come to a horizon or an epoch: nothing is received for tasks before it any
    /// more.
    ///
    /// # Errors
    /// If a peer has announced something for such a task that nobody has asked for.
    pub(super) fn close_before(&mut self, task: TaskId) -> Result<(), RunError> {
        let closed = self.arbiter.close_before(task);
        closed.map_err(|error| self.misplaced(None, error))
    }

    /// Waits for the other nodes at an epoch.
    pub(super) fn enter_barrier(&mut self, barrier: Barrier) {
        self.communicator.enter_barrier(barrier.task);
        self.in_barrier = Some(barrier);
    }

    /// This node has reached so many more horizons: tells peers that have to know. Returns how
    /// many may count as reached in all, as far as it goes by peers.
    pub(super) fn reach(&mut self, more: u64) -> u64 {
        if more > 0 {
            for peer in self.credit.reach(more) {
                self.communicator.send_note(peer, &credit::note(self.credit.reached()));
            }
        }
        self.credit.limit()
    }

    /// Ends the run on all nodes.
    pub(super) fn abort(&mut self, error: &RunError) {
        self.communicator.abort(error);
    }

    /// The run has ended: whoever still waits for what members of a group send, as by a communicator that was kept, is told.
    pub(super) fn end(&mut self) {
        self.exchange.end();
    }

    /// Forgets what will not be heard of any more, after an abort.
    pub(super) fn forget(&mut self) {
        self.end();
        self.sends.clear();
        self.exchanges.clear();
        self.in_barrier = None;
    }

    /// Whether no memory of this node is in use by the network. Meaningful after an abort.
    pub(super) fn are_quiet(&self) -> bool {
        self.communicator.is_quiet()
    }

    /// Whether payloads that have been offered have left and collective operations are over, or will
    /// without anybody looking at the network.
    pub(super) fn can_do_without(&self) -> bool {
        self.sends.is_empty() && self.exchanges.is_empty() || self.communicator.wakes()
    }

    /// How closely the network must be looked at; `is_awaited` says whether a peer's progress is
    /// awaited, and `lag` how much later than usual peers may be.
    pub(super) fn attention(&self, is_awaited: impl FnOnce() -> bool, lag: Duration) -> Attention {
        if self.communicator.wakes() {
            Attention::WhenWoken
        } else if self.communicator.needs_polling()
            || self.arbiter.expects_pilots()
            || self.exchange.is_awaited()
            || is_awaited()
        {
            Attention::Close(patience(self.communicator.bytes_under_way()) + lag)
        } else {
            Attention::NowAndThen
        }
    }

    /// Whether something is received into an allocation.
    pub(super) fn expect_into(&self, allocation: AllocationId) -> bool {
        self.arbiter.expects_into(allocation)
    }

    /// What a begun receive lacks, and the nodes, in ascending order, that have announced some of
    /// it.
    pub(super) fn missing(&self, receive: InstructionId) -> (Region, Vec<NodeId>) {
        let missing = self.arbiter.missing(receive).unwrap_or_default();
        (missing, self.arbiter.announced_by(receive))
    }

    /// Something for a task, if it is for one, does not fit what is expected.
    fn misplaced(&self, task: Option<TaskId>, error: ArbiterError) -> RunError {
        let task = task.and_then(|task| self.stream.known_name(task));
        RunError::Arbitration { node: self.local(), task, error: Box::new(error) }
    }

    fn broken(&self, error: CommunicationError) -> RunError {
        RunError::Communication { node: self.local(), error: Box::new(error) }
    }
}

#[cfg(test)]
mod tests;
