//! A node of a cluster of MPI processes: the [`Communicator`] over MPI, and over
//! the side channel where MPI may not answer.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

use celerity_cdag::NodeId;
use celerity_executor::{
    CollectiveExchange, CommEvent, CommunicationError, Communicator, RunError, WirePayload,
};
use celerity_idag::Pilot;
use celerity_tdag::TaskId;

use crate::attendance::Attendance;
use crate::error::MpiError;
use crate::failure;
use crate::group::run_has_failed;
use crate::liveness::SideNews;
use crate::lost;
use crate::matching::PeerMistake;
use crate::network::{Endpoint, Outcome};
use crate::operation::Mail;
use crate::process::Permit;
use crate::session::error_of_loss;

/// One node's end of a cluster of MPI processes; made by [`start`](crate::start()).
///
/// It may be used from any thread, by one at a time; every call to MPI is made by
/// whoever calls it. [`poll`](Communicator::poll) is the one place where MPI
/// makes progress. Dropping it waits for the other nodes to drop theirs.
///
/// After [`CommunicationError::Died`] it does not call MPI any more, and neither
/// may anybody else in the process, which is to exit without finalising MPI.
/// Memory of payloads that were under way is then in nobody's use: the dead do
/// not write, and the living stop for the same reason.
pub struct MpiCommunicator {
    /// Leaked unless left in good order: MPI may still know its memory.
    network: ManuallyDrop<Endpoint>,
    attendance: Attendance,
    events: VecDeque<CommEvent>,
    /// Whether the last poll told something. MPI is not asked again before that has been
    /// acted upon: the next message would wait for one more look at nothing.
    told: bool,
    phase: Phase,
    /// Somebody here has asked for an abort.
    asked: bool,
    patience: Duration,
    /// Given back last: then the process may come to another run.
    _permit: Permit,
}

/// How far the end is from being out of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// Since when.
    Leaving(Instant),
    Left,
    /// MPI is not called any more.
    Lost,
}

// SAFETY: MPI's handles and addresses may be used by any thread, one at a time:
// that level of thread support has been checked, and `&mut` sees to the rest.
unsafe impl Send for MpiCommunicator {}

impl MpiCommunicator {
    pub(crate) fn new(
        network: Endpoint,
        attendance: Attendance,
        patience: Duration,
        permit: Permit,
    ) -> Self {
        let (network, events) = (ManuallyDrop::new(network), VecDeque::new());
        let (told, phase, asked) = (false, Phase::Open, false);
        let _permit = permit;
        Self { network, attendance, events, told, phase, asked, patience, _permit }
    }

    /// Sends bytes in place of a pilot: for tests of what receivers make of it.
    pub fn send_instead_of_pilot(&mut self, to: NodeId, bytes: &[u8]) {
        self.act(|network| network.send_mail(Mail::Pilot, to.slot(), bytes));
    }

    /// Does something while that makes sense, and reports what goes wrong.
    fn act(&mut self, action: impl FnOnce(&mut Endpoint) -> Outcome) {
        if self.phase == Phase::Open {
            let outcome = action(&mut self.network);
            self.events.extend(outcome.err().map(|fault| CommEvent::Failed(*fault)));
        }
    }

    fn act_towards(&mut self, peer: NodeId, action: impl FnOnce(&mut Endpoint) -> Outcome) {
        let nodes = self.network.nodes;
        if peer.slot() < nodes {
            return self.act(action);
        }
        let error = CommunicationError::NoSuchNode { node: peer, nodes };
        self.events.push_back(CommEvent::Failed(error));
    }

    fn report(&mut self, report: SideNews) {
        match report {
            SideNews::Aborted(error) => {
                let error = failure::read(&error);
                if matches!(self.phase, Phase::Open) {
                    run_has_failed(&error.to_string(), self.patience);
                    self.leave();
                    self.events.clear();
                }
                self.events.push_back(CommEvent::Aborted(error));
            }
            SideNews::Lost(loss) => {
                let over = matches!(self.phase, Phase::Left | Phase::Lost);
                self.lose();
                if !over {
                    let error = error_of_loss(self.network.node, loss);
                    self.events.push_back(CommEvent::Failed(error));
                }
            }
        }
    }

    fn leave(&mut self) {
        self.phase = Phase::Leaving(Instant::now());
        let outcome = self.network.begin_leaving();
        self.need(outcome);
    }

    fn lose(&mut self) {
        self.phase = Phase::Lost;
        lost::lose();
    }

    /// Gives MPI up if it does not work.
    fn need<T>(&mut self, outcome: Result<T, MpiError>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                if self.phase == Phase::Open {
                    self.events.push_back(CommEvent::Failed(*PeerMistake::from(error)));
                }
                self.lose();
                None
            }
        }
    }

    /// One step of MPI.
    fn step(&mut self) {
        match self.phase {
            Phase::Open => {
                let outcome = self.network.progress(&mut self.events);
                self.need(outcome);
            }
            Phase::Leaving(since) => {
                // What still happens is nobody's business any more.
                let mut unheard = VecDeque::new();
                let outcome = self.network.step_out(&mut unheard);
                match self.need(outcome) {
                    Some(true) => self.phase = Phase::Left,
                    Some(false) if since.elapsed() > self.patience => self.lose(),
                    _ => {}
                }
            }
            Phase::Left | Phase::Lost => {}
        }
    }
}

// SAFETY: a payload is reported when MPI has ended its request, and a received one when it has been
// scattered to its elements; an end is quiet when no request of its own is open.
unsafe impl Communicator for MpiCommunicator {
    fn node(&self) -> NodeId {
        self.network.node
    }

    fn nodes(&self) -> usize {
        self.network.nodes
    }

    fn send_pilot(&mut self, pilot: &Pilot, reached: u64) {
        self.act_towards(pilot.to, |network| network.send_pilot(pilot, reached));
    }

    fn send_note(&mut self, to: NodeId, note: &[u8]) {
        self.act_towards(to, |network| network.send_mail(Mail::Note, to.slot(), note));
    }

    unsafe fn send(&mut self, to: NodeId, payload: WirePayload) {
        // SAFETY: passed on.
        self.act_towards(to, |network| unsafe { network.send(to, payload) });
    }

    unsafe fn receive(&mut self, from: NodeId, payload: WirePayload) {
        // SAFETY: passed on.
        self.act_towards(from, |network| unsafe { network.receive(from, payload) });
    }

    unsafe fn exchange(&mut self, exchange: CollectiveExchange) {
        // SAFETY: passed on.
        self.act(|network| unsafe { network.exchange(exchange) });
    }

    fn enter_barrier(&mut self, epoch: TaskId) {
        self.act(|network| network.enter_barrier(epoch));
    }

    fn abort(&mut self, error: &RunError) {
        if !std::mem::replace(&mut self.asked, true) {
            self.attendance.abort(error);
        }
    }

    fn poll(&mut self) -> Option<CommEvent> {
        if self.events.is_empty() && !self.told {
            while let Some(report) = self.attendance.poll() {
                self.report(report);
            }
            self.step();
        }
        let event = self.events.pop_front();
        self.told = event.is_some();
        event
    }

    fn needs_polling(&self) -> bool {
        match self.phase {
            Phase::Open => self.network.is_busy() || !self.events.is_empty(),
            Phase::Leaving(_) => true,
            Phase::Left | Phase::Lost => false,
        }
    }

    fn bytes_under_way(&self) -> u64 {
        self.network.transfers.bytes() + self.network.bytes_exchanged()
    }

    fn wakes(&self) -> bool {
        false
    }

    /// MPI keeps what is small for receivers that have not asked for it.
    fn sends_ahead(&self) -> bool {
        true
    }

    fn is_quiet(&self) -> bool {
        matches!(self.phase, Phase::Left | Phase::Lost)
    }
}

impl Drop for MpiCommunicator {
    fn drop(&mut self) {
        if self.phase == Phase::Open {
            if self.network.is_busy() {
                let message = format!("{} was dropped in the middle of its work", self.node());
                self.abort(&RunError::Internal { message });
            }
            self.leave();
        }
        while !self.is_quiet() {
            drop(self.poll());
            std::thread::yield_now();
        }
        if self.phase == Phase::Left {
            // SAFETY: it is not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.network) };
        }
    }
}
