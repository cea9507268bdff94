//! What a node sends by wire: payloads that wait for their receivers, and the slots of its windows. Begins
//! no copy; says which may begin.

use std::collections::VecDeque;

use celerity_cdag::NodeId;
use celerity_idag::{MessageId, Pilot};
use celerity_regions::Box3;

use super::{Slot, WindowSize};
use crate::communicator::WirePayload;
use crate::copy::cut_elements;
use crate::error::CommunicationError;
use crate::window::IdMap;

/// A piece to pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packing {
    pub(super) to: NodeId,
    pub(super) payload: WirePayload,
    pub(super) piece: u32,
    pub(super) elements: Box3,
    pub(super) slot: Slot,
}

/// A payload that has been offered.
#[derive(Debug)]
struct Sending {
    to: NodeId,
    payload: WirePayload,
    /// Those that no slot has been found for.
    left: VecDeque<(u32, Box3)>,
    /// Those that have not been packed.
    unpacked: usize,
}

/// All that is on its way out.
#[derive(Debug)]
pub(super) struct Outgoing {
    node: NodeId,
    slot_bytes: u64,
    announced: IdMap<MessageId, NodeId>,
    offered: IdMap<MessageId, Sending>,
    /// Payloads that have not been offered: their receivers, and the size of their elements there.
    wanted: IdMap<MessageId, (NodeId, u64)>,
    /// By window: who waits for slots, and which are free.
    windows: Vec<(VecDeque<MessageId>, Vec<u16>)>,
}

type Outcome<T> = Result<T, Box<CommunicationError>>;

impl Outgoing {
    pub(super) fn new(node: NodeId, size: WindowSize) -> Self {
        let windows = (0..size.windows).map(|_| (VecDeque::new(), (0..size.slots).collect()));
        Self {
            node,
            slot_bytes: size.slot_bytes,
            announced: IdMap::default(),
            offered: IdMap::default(),
            wanted: IdMap::default(),
            windows: windows.collect(),
        }
    }

    /// Whether something is on its way.
    pub(super) fn is_busy(&self) -> bool {
        !self.offered.is_empty()
    }

    /// Bytes that are on their way.
    pub(super) fn bytes(&self) -> u64 {
        let bytes = |one: &Sending| one.payload.elements.volume() * one.payload.elem_size;
        self.offered.values().map(bytes).sum()
    }

    /// A pilot is about to be sent.
    pub(super) fn announce(&mut self, pilot: &Pilot) -> Outcome<()> {
        match self.announced.insert(pilot.message, pilot.to) {
            None => Ok(()),
            Some(_) => Err(self.reused(pilot.to, pilot.message)),
        }
    }

    /// Whether a payload has been announced as one that goes by wire.
    pub(super) fn has_announced(&self, message: MessageId) -> bool {
        self.announced.contains_key(&message)
    }

    /// The node offers a payload that [has been announced](Self::has_announced).
    pub(super) fn offer(&mut self, to: NodeId, payload: WirePayload) -> Outcome<()> {
        let (from, message) = (self.node, payload.message);
        if self.announced.remove(&message) != Some(to) {
            return Err(CommunicationError::Unannounced { from, to, message }.into());
        }
        let cuts = cut_elements(&payload.elements, payload.elem_size, self.slot_bytes);
        let left: VecDeque<_> = (0..).zip(cuts).collect();
        let sending = Sending { to, payload, unpacked: left.len(), left };
        self.offered.insert(message, sending);
        match self.wanted.remove(&message) {
            Some((by, elem_size)) => self.begin(by, message, elem_size),
            None => Ok(()),
        }
    }

    /// A receiver is ready for a payload.
    pub(super) fn want(&mut self, by: NodeId, message: MessageId, elem_size: u64) -> Outcome<()> {
        match (self.offered.get(&message), self.announced.get(&message)) {
            (Some(sending), _) if sending.to == by => self.begin(by, message, elem_size),
            (None, Some(&to)) if to == by => {
                self.wanted.insert(message, (by, elem_size));
                Ok(())
            }
            _ => {
                let what = format!("it wants {message}, which does not go there by wire");
                Err(CommunicationError::Malformed { from: by, what }.into())
            }
        }
    }

    fn begin(&mut self, to: NodeId, message: MessageId, received_size: u64) -> Outcome<()> {
        let payload = self.offered[&message].payload;
        let (elements, sent_size) = (payload.elements, payload.elem_size);
        if received_size != sent_size {
            let (sent, received) = (elements, elements);
            let from = self.node;
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
        let window = window_of(&payload);
        match self.windows.get_mut(window) {
            Some((waiting, _)) => {
                waiting.push_back(message);
                Ok(())
            }
            None => {
                let what = format!("{} has no window for {message}", payload.at);
                Err(CommunicationError::Network { what }.into())
            }
        }
    }

    /// The next piece to pack, if there is a slot for one.
    pub(super) fn next(&mut self) -> Option<Packing> {
        for (window, (waiting, free)) in (0..).zip(&mut self.windows) {
            let Some(&message) = waiting.front() else { continue };
            let Some(number) = free.pop() else { continue };
            let sending = self.offered.get_mut(&message).expect("who waits has been offered");
            let (piece, elements) = sending.left.pop_front().expect("who waits has pieces left");
            if sending.left.is_empty() {
                waiting.pop_front();
            }
            let (to, payload, slot) = (sending.to, sending.payload, Slot { window, number });
            return Some(Packing { to, payload, piece, elements, slot });
        }
        None
    }

    /// A piece has been packed. Whether it was the last one of its payload.
    pub(super) fn packed(&mut self, message: MessageId) -> bool {
        let Some(sending) = self.offered.get_mut(&message) else { return false };
        sending.unpacked -= 1;
        let is_last = sending.unpacked == 0;
        #[cfg(feature = "mutants")]
        let is_last = celerity_mutants::Mutant::SentWithFirstPiece.alter(is_last, |_| true);
        if is_last {
            self.offered.remove(&message);
        }
        is_last
    }

    /// A slot has been emptied.
    pub(super) fn free(&mut self, by: NodeId, slot: Slot) -> Outcome<()> {
        match self.windows.get_mut(usize::from(slot.window)) {
            Some((_, free)) if !free.contains(&slot.number) => {
                free.push(slot.number);
                Ok(())
            }
            _ => {
                let what = format!("it gives back {slot:?}, which it has not got");
                Err(CommunicationError::Malformed { from: by, what }.into())
            }
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.announced.clear();
        self.offered.clear();
        self.wanted.clear();
        self.windows.iter_mut().for_each(|(waiting, _)| waiting.clear());
    }

    fn reused(&self, to: NodeId, message: MessageId) -> Box<CommunicationError> {
        CommunicationError::Reused { from: self.node, to, message }.into()
    }
}

/// The window that a payload leaves by: that of the device it lies in.
fn window_of(payload: &WirePayload) -> usize {
    let device = payload.at.device().map_or(u64::MAX, |device| device.index());
    usize::try_from(device).unwrap_or(usize::MAX)
}
