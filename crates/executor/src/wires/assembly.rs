//! Collective operations of devices in a run: those that are under way, and [who has come](Roll) to them.
//! Begins them in the order in which they are asked for, which is that of tasks on all nodes.
#![allow(unsafe_code)]

use celerity_cdag::{NodeId, TransferId};
use celerity_tdag::TaskId;

use super::collectives::DeviceCollectives;
use super::note::Note;
use super::roll::Roll;
use super::{Copied, CopyId};
use crate::communicator::{CollectiveExchange, CommEvent, Communicator};
use crate::error::CommunicationError;
use crate::window::IdMap;

/// What a node has to do with operations of devices.
pub(super) struct Assembly {
    device: Box<dyn DeviceCollectives>,
    roll: Roll,
    /// What is under way, and how many bytes that are.
    open: IdMap<u64, (TransferId, u64)>,
    next: u64,
    is_over: bool,
}

type Outcome<T> = Result<T, Box<CommunicationError>>;

impl Assembly {
    pub(super) fn new(device: Box<dyn DeviceCollectives>) -> Self {
        let (roll, open) = (Roll::default(), IdMap::default());
        Self { device, roll, open, next: 0, is_over: false }
    }

    /// Bytes that are on their way.
    pub(super) fn bytes(&self) -> u64 {
        self.open.values().map(|(_, bytes)| bytes).sum()
    }

    /// Whether memory is in use.
    pub(super) fn is_busy(&self) -> bool {
        !self.open.is_empty()
    }

    /// The member that is known not to have come to an operation.
    pub(super) fn absent(&self, transfer: TransferId) -> Option<NodeId> {
        self.roll.absent(transfer)
    }

    /// Begins this node's part in an operation, and tells the next member.
    ///
    /// # Safety
    /// As for [`Communicator::exchange`].
    pub(super) unsafe fn begin(
        &mut self,
        inner: &mut dyn Communicator,
        exchange: &CollectiveExchange,
    ) -> Outcome<()> {
        let transfer = exchange.transfer;
        self.tell_next(inner, exchange)?;
        let id = self.next;
        self.next += 1;
        self.open.insert(id, (transfer, exchange.bytes()));
        // SAFETY: passed on; the node is told when it has ended.
        unsafe { self.device.begin(CopyId(id), exchange) };
        Ok(())
    }

    fn tell_next(
        &mut self,
        inner: &mut dyn Communicator,
        exchange: &CollectiveExchange,
    ) -> Outcome<()> {
        let (local, transfer, hash) = (inner.node(), exchange.transfer, exchange.digest());
        let members: Vec<_> = exchange.collective.members.iter(inner.nodes()).collect();
        let own = members.iter().position(|member| *member == local);
        let own = own.expect("a node takes part in what it is a member of");
        if members.len() == 1 {
            return Ok(());
        }
        let beside = |steps: usize| members[(own + steps) % members.len()];
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::ComingUntold.is_active() {
            return Ok(());
        }
        inner.send_note(beside(1), &Note::Came { transfer, hash }.encode(local));
        let come = self.roll.come(local, transfer, (hash, beside(members.len() - 1)));
        come.inspect_err(|error| tell_all(inner, error))
    }

    /// This node enters the barrier of an epoch.
    pub(super) fn enter_barrier(&self, inner: &mut dyn Communicator, epoch: TaskId) {
        let (local, nodes) = (inner.node(), inner.nodes() as u64);
        let next = NodeId::from_index((local.index() + 1) % nodes);
        if next != local {
            let latest = self.roll.latest();
            inner.send_note(next, &Note::Entered { epoch, latest }.encode(local));
        }
    }

    /// The node before this one is in the barrier of an epoch.
    pub(super) fn entered(
        &mut self,
        inner: &mut dyn Communicator,
        from: NodeId,
        barrier: (TaskId, Option<TransferId>),
    ) -> Outcome<()> {
        let entered = self.roll.enter(inner.node(), from, barrier);
        entered.inspect_err(|error| tell_all(inner, error))
    }

    /// Another member has come to an operation.
    pub(super) fn came(
        &mut self,
        inner: &mut dyn Communicator,
        from: NodeId,
        (transfer, hash): (TransferId, u64),
    ) -> Outcome<()> {
        let told = self.roll.tell(inner.node(), transfer, (hash, from));
        told.inspect_err(|error| tell_all(inner, error))
    }

    /// What has ended, if anything else has.
    pub(super) fn poll(&mut self) -> Option<Outcome<CommEvent>> {
        let Copied { id, outcome } = self.device.poll()?;
        let (transfer, _) = self.open.remove(&id.0).expect("operations end once");
        let failed = |what| {
            let what = format!("the collective operation {transfer} failed: {what}");
            CommunicationError::Network { what }.into()
        };
        Some(outcome.map(|()| CommEvent::Exchanged { transfer }).map_err(failed))
    }

    /// Lets everything end that is under way.
    pub(super) fn abort(&mut self) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.device.abort();
        }
    }
}

/// Tells all nodes who has come to something else: only neighbours find out.
fn tell_all(inner: &mut dyn Communicator, error: &CommunicationError) {
    let CommunicationError::Apart { node, task, other, other_task } = *error else { return };
    Note::Apart((node, task), (other, other_task)).tell_others(inner);
}

impl Drop for Assembly {
    fn drop(&mut self) {
        if self.is_busy() {
            self.abort();
        }
        while self.is_busy() {
            while self.poll().is_some() {}
            std::thread::yield_now();
        }
    }
}
