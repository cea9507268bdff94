//! The communicator of nodes that share a process: once both sides of a payload
//! have posted it, the elements are copied straight from the one allocation to
//! the other. No buffers in between, no thread, no busy waiting.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use celerity_cdag::{NodeId, TransferId};
use celerity_idag::{MessageId, Pilot};
use celerity_tdag::TaskId;

use self::meetings::{Complete, Meetings};
use super::{CollectiveExchange, CommEvent, Communicator, NOTE_LEN, WirePayload};
use crate::copy::{copy_elements, copy_elements_spread};
use crate::error::{CommunicationError, RunError};
use crate::polling::Waker;
use crate::pool::CpuPool;
use crate::sync::{lock, wait_while};
use crate::window::IdMap;

mod meetings;

/// Payloads up to this size are copied by whoever completes the rendezvous: a
/// core needs about 10 µs for so much, as long as it takes to hand over.
const INLINE_BYTES: u64 = 64 * 1024;

/// The ends of a cluster of so many nodes as there are wakers. Large payloads
/// are copied on `pool`.
#[must_use]
pub fn local_cluster(wakers: Vec<Waker>, pool: &Arc<CpuPool>) -> Vec<LocalCommunicator> {
    let nodes = wakers.len();
    let state = Mutex::new(State {
        mailboxes: std::iter::repeat_with(VecDeque::new).take(nodes).collect(),
        meetings: Meetings::new(nodes),
        ..State::default()
    });
    let network =
        Arc::new(LocalNetwork { state, wakers, became_quiet: Condvar::new(), pool: pool.clone() });
    let node = |index| NodeId::from_index(index as u64);
    (0..nodes)
        .map(|index| LocalCommunicator { node: node(index), network: network.clone() })
        .collect()
}

/// One node's end of an in-process network.
pub struct LocalCommunicator {
    node: NodeId,
    network: Arc<LocalNetwork>,
}

struct LocalNetwork {
    state: Mutex<State>,
    wakers: Vec<Waker>,
    became_quiet: Condvar,
    pool: Arc<CpuPool>,
}

#[derive(Default)]
struct State {
    mailboxes: Vec<VecDeque<CommEvent>>,
    /// Payloads posted by one side, by sender and message.
    half_open: IdMap<(NodeId, MessageId), HalfOpen>,
    /// Collective operations that not all members have come to.
    meetings: Meetings,
    /// The nodes that are in a barrier, and in which one.
    in_barrier: Vec<(NodeId, TaskId)>,
    /// Copies that are running on the pool.
    copying: usize,
    aborted: bool,
}

struct HalfOpen {
    side: PostedBy,
    to: NodeId,
    payload: WirePayload,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PostedBy {
    Sender,
    Receiver,
}

/// A payload that both sides have posted.
struct Rendezvous {
    from: NodeId,
    to: NodeId,
    source: WirePayload,
    target: WirePayload,
}

// SAFETY: all of a payload is copied by one call of `copy_elements`, or of `copy_elements_spread` on
// the pool, behind which both ends are told; until then `copying` counts it.
unsafe impl Communicator for LocalCommunicator {
    fn node(&self) -> NodeId {
        self.node
    }

    fn nodes(&self) -> usize {
        self.network.wakers.len()
    }

    fn send_pilot(&mut self, pilot: &Pilot, reached: u64) {
        if self.check_peer(pilot.to) {
            let event = CommEvent::Pilot { from: self.node, pilot: pilot.clone(), reached };
            self.network.tell(pilot.to, event);
        }
    }

    fn send_note(&mut self, to: NodeId, note: &[u8]) {
        debug_assert!(note.len() <= NOTE_LEN, "a note of {} bytes", note.len());
        if self.check_peer(to) {
            self.network.tell(to, CommEvent::Note { from: self.node, note: note.to_vec() });
        }
    }

    unsafe fn send(&mut self, to: NodeId, payload: WirePayload) {
        if self.check_peer(to) {
            self.network.post(PostedBy::Sender, self.node, to, payload);
        }
    }

    unsafe fn receive(&mut self, from: NodeId, payload: WirePayload) {
        if self.check_peer(from) {
            self.network.post(PostedBy::Receiver, from, self.node, payload);
        }
    }

    unsafe fn exchange(&mut self, exchange: CollectiveExchange) {
        self.network.come(self.node, exchange);
    }

    fn absent(&self, transfer: TransferId) -> Vec<NodeId> {
        lock(&self.network.state).meetings.absent(self.node, transfer)
    }

    fn enter_barrier(&mut self, epoch: TaskId) {
        let mut state = lock(&self.network.state);
        if !state.aborted
            && let Some((other, other_task)) = state.meetings.wait_for(self.node)
        {
            let (node, task) = (self.node, epoch);
            let apart = CommunicationError::Apart { node, task, other, other_task };
            return self.network.tell_all(&mut state, &CommEvent::Failed(apart));
        }
        state.in_barrier.push((self.node, epoch));
        let everybody = self.nodes();
        #[cfg(feature = "mutants")]
        let everybody =
            celerity_mutants::Mutant::BarrierOneEarly.alter(everybody, |all| all.max(2) - 1);
        if state.in_barrier.len() < everybody || state.aborted {
            return;
        }
        let event =
            diverged(&state.in_barrier).map_or(CommEvent::BarrierReached, CommEvent::Failed);
        state.in_barrier.clear();
        self.network.tell_all(&mut state, &event);
    }

    fn abort(&mut self, error: &RunError) {
        let mut state = lock(&self.network.state);
        if !std::mem::replace(&mut state.aborted, true) {
            state.half_open.clear();
            state.meetings.clear();
            self.network.tell_all(&mut state, &CommEvent::Aborted(error.clone()));
        }
    }

    fn poll(&mut self) -> Option<CommEvent> {
        lock(&self.network.state).mailboxes[self.node.slot()].pop_front()
    }

    fn is_quiet(&self) -> bool {
        lock(&self.network.state).copying == 0
    }
}

impl LocalCommunicator {
    fn check_peer(&self, node: NodeId) -> bool {
        let nodes = self.nodes();
        let known = node.slot() < nodes;
        if !known {
            let error = CommunicationError::NoSuchNode { node, nodes };
            self.network.tell(self.node, CommEvent::Failed(error));
        }
        known
    }
}

impl Drop for LocalCommunicator {
    /// Nothing that this end has posted may be touched afterwards. Payloads
    /// that are being copied may be this end's, so all are waited for.
    fn drop(&mut self) {
        let mut state = lock(&self.network.state);
        let node = self.node;
        state.meetings.leave(node);
        state.half_open.retain(|(from, _), open| match open.side {
            PostedBy::Sender => *from != node,
            PostedBy::Receiver => open.to != node,
        });
        drop(wait_while(&self.network.became_quiet, state, |state| state.copying > 0));
    }
}

impl LocalNetwork {
    fn post(self: &Arc<Self>, side: PostedBy, from: NodeId, to: NodeId, payload: WirePayload) {
        let mut state = lock(&self.state);
        if state.aborted {
            return;
        }
        let poster = if side == PostedBy::Sender { from } else { to };
        match state.meet(side, from, to, payload) {
            #[cfg(feature = "mutants")]
            Ok(None)
                if celerity_mutants::Mutant::ReceivedBeforeSent.is_active()
                    && side == PostedBy::Receiver =>
            {
                let message = payload.message;
                state.mailboxes[to.slot()].push_back(CommEvent::Received { from, message });
            }
            Ok(None) => {}
            Ok(Some(rendezvous)) => self.transfer(state, rendezvous),
            Err(error) => {
                drop(state);
                self.tell(poster, CommEvent::Failed(*error));
            }
        }
    }

    fn transfer(self: &Arc<Self>, mut state: MutexGuard<'_, State>, meeting: Rendezvous) {
        let bytes = meeting.source.elements.volume().saturating_mul(meeting.source.elem_size);
        if bytes <= INLINE_BYTES {
            // The lock is kept, so that no end can be dropped meanwhile.
            let Rendezvous { source, target, .. } = &meeting;
            // SAFETY: both ends have promised live memory without races until
            // they are told, which happens afterwards; both describe the same
            // elements, as `meet` has checked.
            unsafe {
                copy_elements(source.memory, target.memory, &source.elements, source.elem_size);
            }
            self.finish(&mut state, &meeting);
            return;
        }
        state.copying += 1;
        drop(state);
        let network = self.clone();
        self.pool.take_turn(move || {
            let Rendezvous { source, target, .. } = &meeting;
            // SAFETY: as above; ends that are dropped or aborted keep their
            // memory until `copying` is back at 0.
            unsafe {
                copy_elements_spread(
                    source.memory,
                    target.memory,
                    &source.elements,
                    source.elem_size,
                );
            }
            let mut state = lock(&network.state);
            state.copying -= 1;
            network.finish(&mut state, &meeting);
            network.became_quiet.notify_all();
        });
    }

    /// A node comes to its next collective operation.
    fn come(self: &Arc<Self>, node: NodeId, exchange: CollectiveExchange) {
        let mut state = lock(&self.state);
        if state.aborted {
            return;
        }
        let State { meetings, in_barrier, .. } = &mut *state;
        match meetings.come(node, exchange, in_barrier) {
            Ok(None) => {}
            Ok(Some(complete)) => self.move_all(state, complete),
            Err(apart) => self.tell_all(&mut state, &CommEvent::Failed(*apart)),
        }
    }

    /// Moves the elements of a collective operation: here if they are few, or else one turn of the
    /// pool per node at which something arrives.
    fn move_all(self: &Arc<Self>, mut state: MutexGuard<'_, State>, complete: Complete) {
        let receivers = complete.receivers();
        if complete.bytes() <= INLINE_BYTES {
            // The lock is kept, so that no end can be dropped meanwhile.
            // SAFETY: all nodes have promised live memory without races until they are told,
            // which happens afterwards.
            receivers.iter().for_each(|to| unsafe { complete.copy_to(*to, false) });
            return self.exchanged(&mut state, &complete);
        }
        state.copying += receivers.len();
        drop(state);
        let open = Arc::new(AtomicUsize::new(receivers.len()));
        let complete = Arc::new(complete);
        for to in receivers {
            let (network, complete, open) = (self.clone(), complete.clone(), open.clone());
            self.pool.take_turn(move || {
                // SAFETY: as above; ends that are dropped or aborted keep their memory until
                // `copying` is back at 0.
                unsafe { complete.copy_to(to, true) };
                let mut state = lock(&network.state);
                state.copying -= 1;
                if open.fetch_sub(1, Ordering::AcqRel) == 1 {
                    network.exchanged(&mut state, &complete);
                }
                network.became_quiet.notify_all();
            });
        }
    }

    /// Tells all who take part; after an abort as for [payloads](Self::finish).
    fn exchanged(&self, state: &mut State, complete: &Complete) {
        if state.aborted {
            return self.wakers.iter().for_each(|wake| wake());
        }
        let transfer = complete.transfer();
        for node in complete.members().map(NodeId::slot) {
            state.mailboxes[node].push_back(CommEvent::Exchanged { transfer });
            self.wakers[node]();
        }
    }

    /// Tells both sides; after an abort only wakes them, to look whether the
    /// network is quiet.
    fn finish(&self, state: &mut State, meeting: &Rendezvous) {
        let Rendezvous { from, to, source, .. } = meeting;
        if state.aborted {
            return self.wakers.iter().for_each(|wake| wake());
        }
        let message = source.message;
        state.mailboxes[from.slot()].push_back(CommEvent::Sent { message });
        state.mailboxes[to.slot()].push_back(CommEvent::Received { from: *from, message });
        self.wakers[from.slot()]();
        self.wakers[to.slot()]();
    }

    fn tell(&self, node: NodeId, event: CommEvent) {
        lock(&self.state).mailboxes[node.slot()].push_back(event);
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::WakeUpLost.is_active() {
            return;
        }
        self.wakers[node.slot()]();
    }

    fn tell_all(&self, state: &mut State, event: &CommEvent) {
        for (mailbox, wake) in state.mailboxes.iter_mut().zip(&self.wakers) {
            mailbox.push_back(event.clone());
            wake();
        }
    }
}

/// Two nodes that are in different barriers, if there are any.
fn diverged(in_barrier: &[(NodeId, TaskId)]) -> Option<CommunicationError> {
    let (&(node, epoch), others) = in_barrier.split_first()?;
    let &(other, other_epoch) = others.iter().find(|(_, other_epoch)| *other_epoch != epoch)?;
    Some(CommunicationError::Diverged { node, epoch, other, other_epoch })
}

impl State {
    /// Joins a posted side with the other one, if that has been posted.
    fn meet(
        &mut self,
        side: PostedBy,
        from: NodeId,
        to: NodeId,
        payload: WirePayload,
    ) -> Result<Option<Rendezvous>, Box<CommunicationError>> {
        let key = (from, payload.message);
        let Some(open) = self.half_open.remove(&key) else {
            self.half_open.insert(key, HalfOpen { side, to, payload });
            return Ok(None);
        };
        if open.side == side || open.to != to {
            return Err(Box::new(CommunicationError::Reused {
                from,
                to,
                message: payload.message,
            }));
        }
        let (source, target) = if side == PostedBy::Sender {
            (payload, open.payload)
        } else {
            (open.payload, payload)
        };
        if (source.elements, source.elem_size) != (target.elements, target.elem_size) {
            return Err(Box::new(CommunicationError::Mismatch {
                from,
                to,
                message: payload.message,
                sent: source.elements,
                sent_size: source.elem_size,
                received: target.elements,
                received_size: target.elem_size,
            }));
        }
        Ok(Some(Rendezvous { from, to, source, target }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use celerity_idag::MemoryId;
    use celerity_regions::Box3;

    use super::*;
    use crate::copy::ElementArray;
    use crate::memory::BasePtr;

    fn cluster(nodes: usize) -> Vec<LocalCommunicator> {
        let pool = CpuPool::new(2).unwrap();
        local_cluster((0..nodes).map(|_| Arc::new(|| {}) as Waker).collect(), &pool)
    }

    fn payload(memory: &mut [u8], message: u64) -> WirePayload {
        let extent = Box3::from_range([memory.len()]);
        let memory = ElementArray { base: BasePtr::of_mut_slice(memory), extent };
        let message = MessageId::from_index(message);
        WirePayload { message, at: MemoryId::HOST, memory, elements: extent, elem_size: 1 }
    }

    #[test]
    fn sides_that_disagree_are_told() {
        let mut ends = cluster(2);
        let (mut long, mut short) = (vec![0; 8], vec![0; 4]);
        // SAFETY: the memory outlives the ends.
        unsafe {
            ends[0].send(NodeId::from_index(1), payload(&mut long, 3));
            ends[1].receive(NodeId::from_index(0), payload(&mut short, 3));
        }
        let event = ends[1].poll();
        assert!(
            matches!(event, Some(CommEvent::Failed(CommunicationError::Mismatch { .. }))),
            "{event:?}"
        );
        drop(ends);
        drop((long, short));
    }

    #[test]
    fn reused_ids_and_unknown_nodes_are_told() {
        let mut ends = cluster(2);
        let (mut one, mut two) = (vec![0; 8], vec![0; 8]);
        // SAFETY: the memory outlives the ends.
        unsafe {
            ends[0].send(NodeId::from_index(1), payload(&mut one, 3));
            ends[0].send(NodeId::from_index(1), payload(&mut two, 3));
            ends[0].send(NodeId::from_index(2), payload(&mut two, 4));
        }
        let failed = |event| match event {
            Some(CommEvent::Failed(error)) => error,
            other => panic!("{other:?}"),
        };
        assert!(matches!(failed(ends[0].poll()), CommunicationError::Reused { .. }));
        assert!(matches!(failed(ends[0].poll()), CommunicationError::NoSuchNode { nodes: 2, .. }));
        drop(ends);
        drop((one, two));
    }

    #[test]
    fn receivers_are_woken() {
        let pool = CpuPool::new(1).unwrap();
        let woken = Arc::new(AtomicUsize::new(0));
        let count = woken.clone();
        let waker: Waker = Arc::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
        });
        let mut ends = local_cluster(vec![Arc::new(|| {}), waker], &pool);
        ends[0].abort(&RunError::Internal { message: "enough".to_owned() });
        assert_eq!(woken.load(Ordering::SeqCst), 1);
        assert!(ends[1].poll().is_some());
    }
}
