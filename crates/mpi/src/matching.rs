//! Which payload may be posted now, and as which number: brings together pilots,
//! what the node offers and what it asks for. Pure; knows no MPI.

use celerity_cdag::NodeId;
use celerity_executor::{CommunicationError, IdMap, WirePayload};
use celerity_idag::{MessageId, Pilot};
use celerity_regions::Box3;

use crate::window::{PayloadNumber, ReceiveWindow, SendWindow};

/// A mistake of some node.
pub(crate) type PeerMistake = Box<CommunicationError>;

/// A payload to post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ready {
    pub(crate) peer: NodeId,
    pub(crate) number: PayloadNumber,
    pub(crate) payload: WirePayload,
}

/// What this node sends.
#[derive(Debug)]
pub(crate) struct Outgoing {
    node: NodeId,
    windows: Vec<SendWindow>,
    announced: IdMap<MessageId, (NodeId, PayloadNumber)>,
    /// Offered too early.
    waiting: Vec<Ready>,
}

impl Outgoing {
    /// For `node` of so many nodes, with so many tags.
    pub(crate) fn new(node: NodeId, nodes: usize, tags: u64) -> Self {
        let windows = (0..nodes).map(|_| SendWindow::new(tags)).collect();
        Self { node, windows, announced: IdMap::default(), waiting: Vec::new() }
    }

    /// Whether something waits for a receiver.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// A pilot is about to be sent.
    pub(crate) fn announce(&mut self, pilot: &Pilot) -> Result<(), PeerMistake> {
        let number = self.windows[pilot.to.slot()].announce();
        match self.announced.insert(pilot.message, (pilot.to, number)) {
            None => Ok(()),
            Some(_) => {
                let (from, to, message) = (self.node, pilot.to, pilot.message);
                Err(CommunicationError::Reused { from, to, message }.into())
            }
        }
    }

    /// The node offers a payload; `None` if it has to wait.
    pub(crate) fn offer(
        &mut self,
        to: NodeId,
        payload: WirePayload,
    ) -> Result<Option<Ready>, PeerMistake> {
        let message = payload.message;
        match self.announced.remove(&message) {
            Some((peer, number)) if peer == to => {
                let ready = Ready { peer, number, payload };
                let admitted = self.windows[peer.slot()].admits(number);
                self.waiting.extend((!admitted).then_some(ready));
                Ok(admitted.then_some(ready))
            }
            _ => Err(CommunicationError::Unannounced { from: self.node, to, message }.into()),
        }
    }

    /// A receiver tells how far it is; returns what need not wait any more.
    pub(crate) fn acknowledge(
        &mut self,
        from: NodeId,
        arrived: PayloadNumber,
    ) -> Result<Vec<Ready>, PeerMistake> {
        if !self.windows[from.slot()].acknowledge(arrived) {
            let what = format!("it claims that {arrived} payloads have arrived");
            return Err(CommunicationError::Malformed { from, what }.into());
        }
        let admitted = |ready: &mut Ready| self.windows[ready.peer.slot()].admits(ready.number);
        Ok(self.waiting.extract_if(.., admitted).collect())
    }
}

/// What this node receives.
#[derive(Debug)]
pub(crate) struct Incoming {
    node: NodeId,
    windows: Vec<ReceiveWindow>,
    announced: IdMap<(NodeId, MessageId), (PayloadNumber, Box3)>,
    /// Asked for before the pilot has come.
    unannounced: IdMap<(NodeId, MessageId), WirePayload>,
    /// Asked for too early.
    waiting: Vec<Ready>,
}

impl Incoming {
    /// For `node` of so many nodes, with so many tags.
    pub(crate) fn new(node: NodeId, nodes: usize, tags: u64) -> Self {
        let windows = (0..nodes).map(|_| ReceiveWindow::new(tags)).collect();
        let (announced, unannounced) = (IdMap::default(), IdMap::default());
        Self { node, windows, announced, unannounced, waiting: Vec::new() }
    }

    /// Whether something that was asked for is not posted yet.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty() || !self.unannounced.is_empty()
    }

    /// A pilot has arrived; returns the payload if it has been asked for.
    pub(crate) fn announce(
        &mut self,
        from: NodeId,
        pilot: &Pilot,
    ) -> Result<Option<Ready>, PeerMistake> {
        let number = self.windows[from.slot()].announce();
        let name = (from, pilot.message);
        if let Some(payload) = self.unannounced.remove(&name) {
            return self.admit(from, (number, pilot.in_transit()), payload);
        }
        match self.announced.insert(name, (number, pilot.in_transit())) {
            None => Ok(None),
            Some(_) => Err(self.reused(name)),
        }
    }

    /// The node asks for a payload; `None` if it has to wait.
    pub(crate) fn expect(
        &mut self,
        from: NodeId,
        payload: WirePayload,
    ) -> Result<Option<Ready>, PeerMistake> {
        let name = (from, payload.message);
        match self.announced.remove(&name) {
            Some(announced) => self.admit(from, announced, payload),
            None => match self.unannounced.insert(name, payload) {
                None => Ok(None),
                Some(_) => Err(self.reused(name)),
            },
        }
    }

    /// A payload has arrived: returns what its sender must be told, if anything.
    pub(crate) fn arrive(&mut self, from: NodeId, number: PayloadNumber) -> Option<PayloadNumber> {
        self.windows[from.slot()].arrive(number)
    }

    /// What need not wait any more after an arrival.
    pub(crate) fn released(&mut self) -> Option<Ready> {
        let windows = &self.windows;
        let admitted = |ready: &Ready| windows[ready.peer.slot()].admits(ready.number);
        let at = self.waiting.iter().position(admitted)?;
        Some(self.waiting.swap_remove(at))
    }

    fn admit(
        &mut self,
        peer: NodeId,
        (number, sent): (PayloadNumber, Box3),
        payload: WirePayload,
    ) -> Result<Option<Ready>, PeerMistake> {
        let WirePayload { message, elements: received, elem_size, .. } = payload;
        if sent != received {
            // A pilot does not tell the size; the length will, if it comes to that.
            let (sent_size, received_size) = (elem_size, elem_size);
            let (from, to) = (peer, self.node);
            return Err(CommunicationError::Mismatch {
                from,
                to,
                message,
                sent,
                sent_size,
                received,
                received_size,
            }
            .into());
        }
        let ready = Ready { peer, number, payload };
        let admitted = self.windows[peer.slot()].admits(number);
        self.waiting.extend((!admitted).then_some(ready));
        Ok(admitted.then_some(ready))
    }

    fn reused(&self, (from, message): (NodeId, MessageId)) -> PeerMistake {
        CommunicationError::Reused { from, to: self.node, message }.into()
    }
}

#[cfg(test)]
mod tests {
    use celerity_cdag::TransferId;
    use celerity_executor::{BasePtr, ElementArray};
    use celerity_idag::MemoryId;
    use celerity_tdag::{BufferId, TaskId};

    use super::*;

    const ME: NodeId = NodeId::from_index(0);
    const PEER: NodeId = NodeId::from_index(1);

    fn pilot(to: NodeId, message: u64) -> Pilot {
        let transfer =
            TransferId { consumer: TaskId::from_index(5), buffer: BufferId::from_index(1) };
        let region = Box3::from_range([4]).into();
        Pilot { to, message: MessageId::from_index(message), transfer, region, from_device: false }
    }

    fn payload(message: u64, elements: usize) -> WirePayload {
        let extent = Box3::from_range([elements]);
        let memory = ElementArray { base: BasePtr::dangling(), extent };
        let message = MessageId::from_index(message);
        WirePayload { message, at: MemoryId::HOST, memory, elements: extent, elem_size: 1 }
    }

    fn number(ready: Result<Option<Ready>, PeerMistake>) -> Option<PayloadNumber> {
        ready.unwrap().map(|ready| ready.number)
    }

    #[test]
    fn offers_wait_for_their_window() {
        let mut outgoing = Outgoing::new(ME, 2, 2);
        (0..4).for_each(|message| outgoing.announce(&pilot(PEER, message)).unwrap());
        assert_eq!(number(outgoing.offer(PEER, payload(1, 4))), Some(1));
        assert_eq!(number(outgoing.offer(PEER, payload(3, 4))), None);
        assert_eq!(number(outgoing.offer(PEER, payload(2, 4))), None);
        assert!(outgoing.is_waiting());
        let released = outgoing.acknowledge(PEER, 1).unwrap();
        assert_eq!(released.iter().map(|ready| ready.number).collect::<Vec<_>>(), [2]);
        assert_eq!(outgoing.acknowledge(PEER, 2).unwrap().len(), 1);
        assert!(!outgoing.is_waiting());
        let error = outgoing.acknowledge(PEER, 9).unwrap_err();
        assert!(matches!(*error, CommunicationError::Malformed { from: PEER, .. }));
    }

    #[test]
    fn requests_meet_pilots_in_any_order() {
        let mut incoming = Incoming::new(ME, 2, 2);
        assert_eq!(number(incoming.expect(PEER, payload(8, 4))), None);
        assert_eq!(number(incoming.announce(PEER, &pilot(ME, 7))), None);
        assert_eq!(number(incoming.announce(PEER, &pilot(ME, 8))), Some(1));
        assert_eq!(number(incoming.announce(PEER, &pilot(ME, 9))), None);
        assert_eq!(number(incoming.expect(PEER, payload(9, 4))), None);
        assert_eq!((incoming.arrive(PEER, 1), incoming.released()), (None, None));
        assert_eq!(number(incoming.expect(PEER, payload(7, 4))), Some(0));
        assert_eq!(incoming.arrive(PEER, 0), Some(2));
        assert_eq!(incoming.released().map(|ready| ready.number), Some(2));
        assert!(!incoming.is_waiting());
    }

    #[test]
    fn mistakes_are_told() {
        let mut outgoing = Outgoing::new(ME, 3, 8);
        outgoing.announce(&pilot(PEER, 0)).unwrap();
        let error = outgoing.announce(&pilot(PEER, 0)).unwrap_err();
        assert!(matches!(*error, CommunicationError::Reused { from: ME, to: PEER, .. }));
        let other = NodeId::from_index(2);
        for (to, message) in [(other, 0), (PEER, 5)] {
            let error = outgoing.offer(to, payload(message, 4)).unwrap_err();
            assert!(matches!(*error, CommunicationError::Unannounced { .. }), "{error}");
        }
        let mut incoming = Incoming::new(ME, 2, 8);
        incoming.announce(PEER, &pilot(ME, 0)).unwrap();
        let error = incoming.announce(PEER, &pilot(ME, 0)).unwrap_err();
        assert!(matches!(*error, CommunicationError::Reused { from: PEER, to: ME, .. }));
        let error = incoming.expect(PEER, payload(0, 5)).unwrap_err();
        assert!(matches!(*error, CommunicationError::Mismatch { .. }));
        incoming.expect(PEER, payload(1, 4)).unwrap();
        let error = incoming.expect(PEER, payload(1, 4)).unwrap_err();
        assert!(matches!(*error, CommunicationError::Reused { from: PEER, to: ME, .. }));
    }
}
