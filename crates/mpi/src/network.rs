//! What a node has in MPI: communicators, requests, and the messages behind them.
//! Turns completed requests into events. Knows nothing of aborts and deaths, and
//! is called by one thread at a time.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use celerity_cdag::NodeId;
use celerity_cpd::Members;
use celerity_executor::{CollectiveExchange, CommEvent, CommunicationError, WirePayload};
use celerity_idag::{Pilot, wire};
use celerity_tdag::TaskId;
use mpi::ffi::MPI_Status;
use smallvec::SmallVec;

use crate::error::MpiError;
use crate::exchanges::Ended;
use crate::founding::{self, Founders};
use crate::leave::Leave;
use crate::mail::{Mailbox, Outbox};
use crate::matching::{Incoming, Outgoing, PeerMistake, Ready};
use crate::meeting::{Agreement, Purpose};
use crate::membership::{MemberComms, Membership};
use crate::operation::{CAME_LEN, Mail, Operation, Traffic};
use crate::raw::{self, Comm};
use crate::requests::Requests;
use crate::session::{Comms, Session};
use crate::transfers::{Done, Transfers, Way};
use crate::window;

/// Why a step could not be taken: a mistake of some node, or MPI's refusal.
pub(crate) type Outcome = Result<(), PeerMistake>;

impl From<MpiError> for PeerMistake {
    fn from(error: MpiError) -> Self {
        CommunicationError::Network { what: error.to_string() }.into()
    }
}

/// How often in a row MPI is asked what has completed, if it tells of nothing.
const IN_VAIN: u32 = 2;

/// The membership of all nodes.
pub(super) const ALL: usize = 0;

/// A node's part of the network.
pub(crate) struct Endpoint {
    pub(crate) node: NodeId,
    pub(crate) nodes: usize,
    /// Small messages and meetings.
    pub(super) control: Comm,
    /// Payloads.
    pub(super) data: Comm,
    tags: u64,
    pub(super) requests: Requests<Operation>,
    /// What has ended, and has not been handled.
    pub(super) ended: Vec<(Operation, MPI_Status)>,
    pub(super) mailboxes: [Mailbox; 4],
    outbox: Outbox,
    pub(super) transfers: Transfers,
    outgoing: Outgoing,
    incoming: Incoming,
    /// The barrier that this node is in.
    barrier: Option<Agreement>,
    /// Those that this node has only let pass.
    passed: Vec<Agreement>,
    /// Those of all nodes, whose meetings also are barriers, and those of sets that this node is in.
    pub(super) memberships: Vec<Membership>,
    founders: Founders,
    limit: u64,
    pub(super) sent: Vec<Traffic>,
    pub(super) received: Vec<Traffic>,
    pub(super) leave: Option<Leave>,
}

impl Endpoint {
    /// Posts the receives for small messages. Messages have at most `limit`
    /// bytes; `tags` may be less than MPI has. Members that make a communicator are waited for with
    /// `patience`.
    pub(crate) fn new(
        session: &Arc<Session>,
        (limit, tags): (u64, u64),
        patience: Duration,
    ) -> Result<Self, MpiError> {
        let Comms { control, data, collective } = session.comms();
        let (rank, nodes) = control.place()?;
        let node = NodeId::from_index(rank as u64);
        let tags = tags.clamp(1, data.tags()?);
        let open = |mail: Mail| {
            let (len, slots) = mail.room();
            Mailbox::open(control, mail.tag(), len, slots)
        };
        let [pilots, notes, arrived, came] = Mail::ALL.map(open);
        let mailboxes = [pilots?, notes?, arrived?, came?];
        let mut requests = Requests::new();
        for (mail, mailbox) in Mail::ALL.into_iter().zip(&mailboxes) {
            requests.add(mailbox.oldest(), Operation::Mail(mail));
        }
        let of_all = MemberComms { control, collective, standing: None };
        let some = founding::made().into_iter();
        let memberships = std::iter::once((Members::all(), of_all)).chain(some);
        let membership = |(members, comms)| Membership::new((node, nodes), members, comms, limit);
        Ok(Self {
            node,
            nodes,
            control,
            data,
            tags,
            requests,
            ended: Vec::new(),
            mailboxes,
            outbox: Outbox::default(),
            transfers: Transfers::new(data, limit),
            outgoing: Outgoing::new(node, nodes, tags),
            incoming: Incoming::new(node, nodes, tags),
            barrier: None,
            passed: Vec::new(),
            memberships: memberships.map(membership).collect(),
            founders: Founders::new((node, nodes), session.clone(), patience),
            limit,
            sent: vec![Traffic::default(); nodes],
            received: vec![Traffic::default(); nodes],
            leave: None,
        })
    }

    /// Whether something is under way, beyond what waits for others to begin.
    pub(crate) fn is_busy(&self) -> bool {
        self.requests.len() > Mail::ALL.len()
            || !self.ended.is_empty()
            || self.outgoing.is_waiting()
            || self.incoming.is_waiting()
            || self.founders.are_waiting()
    }

    /// Bytes of collective operations that have begun.
    pub(crate) fn bytes_exchanged(&self) -> u64 {
        self.memberships.iter().map(|membership| membership.exchanges.bytes()).sum()
    }

    pub(crate) fn send_pilot(&mut self, pilot: &Pilot, reached: u64) -> Outcome {
        self.outgoing.announce(pilot)?;
        // One box, and how far this node is, have room without the heap.
        let mut bytes: SmallVec<[u8; wire::PILOT_LEN + 8]> = SmallVec::new();
        bytes.extend_from_slice(&wire::encode(pilot, self.node));
        bytes.extend_from_slice(&reached.to_le_bytes());
        self.send_mail(Mail::Pilot, pilot.to.slot(), &bytes)
    }

    pub(crate) fn send_mail(&mut self, mail: Mail, to: usize, bytes: &[u8]) -> Outcome {
        let (slot, request) = self.outbox.send(self.control, to, mail.tag(), bytes)?;
        self.sent[to].mails += 1;
        // Most are away at once.
        match raw::test_one(request)? {
            Some(status) => self.mail_sent(slot, &status),
            None => {
                self.requests.add(request, Operation::Posted(slot));
                Ok(())
            }
        }
    }

    /// # Safety
    /// As for `Communicator::send`.
    pub(crate) unsafe fn send(&mut self, to: NodeId, payload: WirePayload) -> Outcome {
        if let Some(ready) = self.outgoing.offer(to, payload)? {
            self.start(Way::Out, ready)?;
        }
        Ok(())
    }

    /// # Safety
    /// As for `Communicator::receive`.
    pub(crate) unsafe fn receive(&mut self, from: NodeId, payload: WirePayload) -> Outcome {
        if let Some(ready) = self.incoming.expect(from, payload)? {
            self.start(Way::In, ready)?;
        }
        Ok(())
    }

    pub(crate) fn enter_barrier(&mut self, epoch: TaskId) -> Outcome {
        let meeting = self.join(ALL, Purpose::barrier(epoch), Operation::Barrier)?;
        self.barrier = Some(meeting);
        self.founders.pass(epoch)
    }

    /// Comes to the next collective operation, which begins when all members have come.
    ///
    /// # Safety
    /// As for `Communicator::exchange`.
    pub(crate) unsafe fn exchange(&mut self, exchange: CollectiveExchange) -> Outcome {
        let (task, members) = (exchange.transfer.consumer, &exchange.collective.members);
        match self.memberships.iter().position(|membership| membership.members == *members) {
            Some(membership) => self.come(membership, exchange)?,
            None => {
                self.founders.park(exchange)?;
                self.found()?;
            }
        }
        self.founders.pass(task)
    }

    /// Comes to the next operation of a membership.
    fn come(&mut self, membership: usize, exchange: CollectiveExchange) -> Result<(), MpiError> {
        let number = self.memberships[membership].exchanges.next();
        let part = self.memberships[membership].exchanges.part(exchange);
        let meeting = self.join(membership, part.purpose(), Operation::Met(membership, number))?;
        self.memberships[membership].exchanges.come(part, meeting);
        Ok(())
    }

    /// Tells others to whom this node has come, and makes communicators for those that have all come. What
    /// has been told is kept to by a node that leaves, too.
    fn found(&mut self) -> Outcome {
        loop {
            if self.leave.is_none()
                && let Some((members, message)) = self.founders.next_to_tell()
            {
                let me = self.node;
                for other in members.iter(self.nodes).filter(|other| *other != me) {
                    self.send_mail(Mail::Came, other.slot(), &message)?;
                }
            }
            let Some(founding) = self.founders.complete() else { return Ok(()) };
            let comms = self.founders.create(&founding.members)?;
            let membership = self.memberships.len();
            let place = (self.node, self.nodes);
            self.memberships.push(Membership::new(place, founding.members, comms, self.limit));
            if self.leave.is_some() {
                self.say_standing(membership)?;
                continue;
            }
            for exchange in founding.parked {
                self.come(membership, exchange)?;
            }
        }
    }

    /// Tells the other members of a membership how far this node has come, which leaves.
    pub(super) fn say_standing(&mut self, membership: usize) -> Result<(), MpiError> {
        if let Some(request) = self.memberships[membership].say_standing()? {
            self.requests.add(request, Operation::Standing(membership));
        }
        Ok(())
    }

    /// Lets others go on that have joined a meeting of a membership: this node leaves.
    pub(super) fn pass(&mut self, membership: usize) -> Result<(), MpiError> {
        let meeting = self.join(membership, Purpose::none(), Operation::Passed)?;
        self.passed.push(meeting);
        Ok(())
    }

    fn join(
        &mut self,
        membership: usize,
        purpose: Purpose,
        operation: Operation,
    ) -> Result<Agreement, MpiError> {
        let (meeting, request) = self.memberships[membership].join(purpose)?;
        self.requests.add(request, operation);
        Ok(meeting)
    }

    /// Begins the collective operations of a membership that all members have come to, in order; as many of them
    /// as `until`.
    pub(super) fn begin_exchanges(
        &mut self,
        membership: usize,
        until: u64,
    ) -> Result<(), MpiError> {
        let exchanges = &mut self.memberships[membership].exchanges;
        while exchanges.begun() < until && exchanges.may_begin() {
            let (slot, request) = exchanges.begin()?;
            self.requests.add(request, Operation::Exchanged(membership, slot));
        }
        Ok(())
    }

    /// Begins all of these, unless the node leaves: then only what others have begun.
    fn begin_met_exchanges(&mut self, membership: usize) -> Outcome {
        if self.leave.is_none() {
            self.begin_exchanges(membership, u64::MAX)?;
        }
        Ok(())
    }

    /// Lets MPI work, and appends what has happened. Mistakes of peers are events;
    /// an error means that MPI itself does not work.
    ///
    /// Open MPI looks at the network only when it has found no request that has completed,
    /// and tells of what that look brings when it is asked again. So it is asked until it has
    /// told of something that others have done, or of nothing [twice](IN_VAIN): else a node
    /// that sends something between any two questions, and hears that it is sent, would not
    /// hear of what others send; and what has come would wait for the next round.
    pub(crate) fn progress(&mut self, events: &mut VecDeque<CommEvent>) -> Result<(), MpiError> {
        let (mut told, mut in_vain) = (false, 0);
        while !told && in_vain < IN_VAIN {
            if self.ended.is_empty() {
                self.requests.poll(&mut self.ended)?;
                in_vain += u32::from(self.ended.is_empty());
            }
            told = self.hear(events);
        }
        Ok(())
    }

    /// Handles payloads that have come, or else all that has ended; returns whether that
    /// tells of others. So what a payload lets go, a kernel and perhaps an answer, goes
    /// before all that has come with it, which is mostly about later payloads.
    fn hear(&mut self, events: &mut VecDeque<CommEvent>) -> bool {
        let mut ended = std::mem::take(&mut self.ended);
        let payloads = ended.iter().any(|(operation, _)| operation.is_payload());
        let mut told = false;
        ended.retain(|(operation, status)| {
            let later = payloads && !operation.is_payload();
            if !later {
                told |= !operation.is_outgoing();
                let outcome = self.ended(*operation, status, events);
                events.extend(outcome.err().map(|fault| CommEvent::Failed(*fault)));
            }
            later
        });
        self.ended = ended;
        told
    }

    fn ended(
        &mut self,
        operation: Operation,
        status: &MPI_Status,
        events: &mut VecDeque<CommEvent>,
    ) -> Outcome {
        match operation {
            Operation::Mail(mail) => self.mail_came(mail, status, events),
            Operation::Posted(slot) => self.mail_sent(slot, status),
            Operation::Sent(slot) => self.piece_ended(slot, status, events),
            Operation::Received(slot) => {
                let peer = self.transfers.peer(slot).slot();
                self.received[peer].pieces += 1;
                self.piece_ended(slot, status, events)
            }
            Operation::Barrier => {
                sound(status, "a barrier failed")?;
                let barrier = self.barrier.take().expect("the node is in the barrier");
                let outcome = barrier.outcome();
                events.push_back(outcome.map_or_else(
                    |fault| CommEvent::Failed(*fault),
                    |()| CommEvent::BarrierReached,
                ));
                Ok(())
            }
            Operation::Met(membership, number) => {
                sound(status, "coming together for a collective operation failed")?;
                self.memberships[membership].exchanges.met(number)?;
                self.begin_met_exchanges(membership)
            }
            Operation::Exchanged(membership, slot) => {
                match self.memberships[membership].exchanges.ended(slot, status)? {
                    Ended::Round(request) => {
                        self.requests.add(request, Operation::Exchanged(membership, slot));
                    }
                    Ended::Operation(event) => events.push_back(event),
                }
                self.begin_met_exchanges(membership)
            }
            Operation::Passed => Ok(()),
            Operation::Standing(membership) => {
                self.memberships[membership].standing_is_known();
                sound(status, "leaving operations among some nodes failed")
            }
            Operation::Counts | Operation::Stray => {
                let leave = self.leave.as_mut().expect("begun when leaving");
                leave.ended(operation, &mut self.received);
                sound(status, "an exchange failed")
            }
        }
    }

    fn mail_sent(&mut self, slot: usize, status: &MPI_Status) -> Outcome {
        self.outbox.release(slot);
        sound(status, "a small message was not sent")
    }

    /// Reads the small messages of a kind that have come, of which this is the first. As
    /// many as there are receives, so that nobody who goes on sending keeps it here.
    fn mail_came(
        &mut self,
        mail: Mail,
        status: &MPI_Status,
        events: &mut VecDeque<CommEvent>,
    ) -> Outcome {
        let mut outcome = self.take_mail(mail, status, events);
        for _ in 1..mail.room().1 {
            let Some(status) = raw::test_one(self.mailboxes[mail as usize].oldest())? else {
                break;
            };
            outcome = outcome.and(self.take_mail(mail, &status, events));
        }
        self.requests.add(self.mailboxes[mail as usize].oldest(), Operation::Mail(mail));
        outcome
    }

    /// Reads a small message, and posts its receive again, whatever it says.
    fn take_mail(
        &mut self,
        mail: Mail,
        status: &MPI_Status,
        events: &mut VecDeque<CommEvent>,
    ) -> Outcome {
        let peer = raw::source(status).min(self.nodes - 1);
        let from = NodeId::from_index(peer as u64);
        self.received[peer].mails += 1;
        let outcome = if status.MPI_ERROR == 0 {
            self.read_mail(mail, from, status, events)
        } else {
            let what = raw::describe(status.MPI_ERROR);
            Err(CommunicationError::Malformed { from, what }.into())
        };
        self.mailboxes[mail as usize].advance()?;
        outcome
    }

    fn read_mail(
        &mut self,
        mail: Mail,
        from: NodeId,
        status: &MPI_Status,
        events: &mut VecDeque<CommEvent>,
    ) -> Outcome {
        let bytes = self.mailboxes[mail as usize].read(status)?;
        let malformed = |what| PeerMistake::from(CommunicationError::Malformed { from, what });
        match mail {
            Mail::Pilot => {
                let (bytes, reached) = bytes.split_last_chunk().ok_or_else(|| {
                    malformed(format!("{} bytes came, which are no pilot", bytes.len()))
                })?;
                let reached = u64::from_le_bytes(*reached);
                let (claimed, pilot) = wire::decode(bytes, self.nodes, self.node)
                    .map_err(|error| malformed(error.to_string()))?;
                if claimed != from {
                    return Err(malformed(format!("it claims to be {claimed}")));
                }
                let ready = self.incoming.announce(from, &pilot)?;
                events.push_back(CommEvent::Pilot { from, pilot, reached });
                if let Some(ready) = ready {
                    self.start(Way::In, ready)?;
                }
            }
            Mail::Note => events.push_back(CommEvent::Note { from, note: bytes.to_vec() }),
            Mail::Came => {
                let message: [u8; CAME_LEN] = bytes.try_into().map_err(|_| {
                    malformed(format!("a message has {CAME_LEN} bytes, but {} came", bytes.len()))
                })?;
                self.founders.hear(from, message)?;
                self.found()?;
            }
            Mail::Arrived => {
                let number: [u8; 8] = bytes.try_into().map_err(|_| {
                    malformed(format!("a number has 8 bytes, but {} came", bytes.len()))
                })?;
                let released = self.outgoing.acknowledge(from, u64::from_le_bytes(number))?;
                for ready in released {
                    self.start(Way::Out, ready)?;
                }
            }
        }
        Ok(())
    }

    fn piece_ended(
        &mut self,
        slot: usize,
        status: &MPI_Status,
        events: &mut VecDeque<CommEvent>,
    ) -> Outcome {
        let Some(Done { ready, way, outcome }) =
            self.transfers.completed(slot, status, self.node)?
        else {
            return Ok(());
        };
        let (from, message) = (ready.peer, ready.payload.message);
        if way == Way::In {
            self.arrived(&ready)?;
        }
        outcome?;
        events.push_back(match way {
            Way::Out => CommEvent::Sent { message },
            Way::In => CommEvent::Received { from, message },
        });
        Ok(())
    }

    /// Makes room in the window of a payload's tags.
    fn arrived(&mut self, ready: &Ready) -> Outcome {
        if let Some(number) = self.incoming.arrive(ready.peer, ready.number)
            && self.leave.is_none()
        {
            self.send_mail(Mail::Arrived, ready.peer.slot(), &number.to_le_bytes())?;
        }
        while let Some(ready) = self.incoming.released() {
            self.start(Way::In, ready)?;
        }
        Ok(())
    }

    fn start(&mut self, way: Way, ready: Ready) -> Outcome {
        if self.leave.is_some() {
            return Ok(());
        }
        let tag = window::tag(ready.number, self.tags);
        let requests = &mut self.requests;
        let started = |slot, request| {
            let operation = match way {
                Way::Out => Operation::Sent(slot),
                Way::In => Operation::Received(slot),
            };
            requests.add(request, operation);
        };
        // SAFETY: what this node has offered or asked for is as its caller has
        // promised until it is told, or leaving is over.
        let pieces = unsafe { self.transfers.start(way, ready, tag, started)? };
        if way == Way::Out {
            self.sent[ready.peer.slot()].pieces += pieces as u64;
        }
        Ok(())
    }
}

fn sound(status: &MPI_Status, what: &str) -> Outcome {
    match status.MPI_ERROR {
        0 => Ok(()),
        code => {
            let what = format!("{what}: {}", raw::describe(code));
            Err(CommunicationError::Network { what }.into())
        }
    }
}
