//! What a node receives where there are wires: which payloads come by wire, which pieces are missing, and
//! what stops on the host. Begins no copy.

use celerity_cdag::NodeId;
use celerity_idag::{MessageId, Pilot};
use celerity_regions::Box3;

use crate::communicator::WirePayload;
use crate::copy::{ElementArray, cut_elements};
use crate::error::CommunicationError;
use crate::memory::BasePtr;
use crate::window::IdMap;

/// A payload, by its sender and its name there.
type Name = (NodeId, MessageId);

/// How a payload comes that has been asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From the sender's window: it must be told that the payload is wanted.
    Wire,
    /// From the sender's host memory to this node's.
    Host,
    /// From the sender's host memory to a device's, with a stop at the node's host memory: what the
    /// network is to receive instead.
    Stop(WirePayload),
}

/// A payload that comes by wire.
#[derive(Debug)]
struct Receiving {
    payload: WirePayload,
    /// Pieces that have not been unpacked; those that are being unpacked are `None`.
    pieces: Vec<Option<Box3>>,
    missing: usize,
}

/// What a payload that stops on the host lies in there.
#[derive(Debug)]
struct Stopped {
    payload: WirePayload,
    words: Vec<u64>,
}

/// All that is on its way in.
#[derive(Debug)]
pub(super) struct Incoming {
    node: NodeId,
    slot_bytes: u64,
    /// Payloads that nobody has asked for yet, and whether they come by wire.
    announced: IdMap<Name, (bool, Box3)>,
    /// Payloads that have been asked for before their pilots have come.
    early: IdMap<Name, WirePayload>,
    receiving: IdMap<Name, Receiving>,
    stopped: IdMap<Name, Stopped>,
    /// Payloads of several boxes that have been received, and how many of these are not in a device's memory yet.
    scattering: IdMap<Name, usize>,
}

type Outcome<T> = Result<T, Box<CommunicationError>>;

impl Incoming {
    pub(super) fn new(node: NodeId, slot_bytes: u64) -> Self {
        Self {
            node,
            slot_bytes,
            announced: IdMap::default(),
            early: IdMap::default(),
            receiving: IdMap::default(),
            stopped: IdMap::default(),
            scattering: IdMap::default(),
        }
    }

    /// Whether something is on its way that has been asked for.
    pub(super) fn is_busy(&self) -> bool {
        let stops = !self.stopped.is_empty() || !self.scattering.is_empty();
        stops || !self.receiving.is_empty() || !self.early.is_empty()
    }

    /// Bytes that are on their way by wire.
    pub(super) fn bytes(&self) -> u64 {
        let bytes = |one: &Receiving| one.payload.elements.volume() * one.payload.elem_size;
        self.receiving.values().map(bytes).sum()
    }

    /// A pilot has come; returns the payload if it has been asked for, and how it comes.
    pub(super) fn announce(
        &mut self,
        from: NodeId,
        pilot: &Pilot,
    ) -> Outcome<Option<(WirePayload, Way)>> {
        let (name, announced) = ((from, pilot.message), (pilot.from_device, pilot.in_transit()));
        if let Some(payload) = self.early.remove(&name) {
            return self.begin(name, payload, announced).map(|way| Some((payload, way)));
        }
        match self.announced.insert(name, announced) {
            None => Ok(None),
            Some(_) => Err(self.reused(name)),
        }
    }

    /// The node asks for a payload; returns how it comes, if that is known.
    pub(super) fn expect(&mut self, from: NodeId, payload: WirePayload) -> Outcome<Option<Way>> {
        let name = (from, payload.message);
        match self.announced.remove(&name) {
            Some(announced) => self.begin(name, payload, announced).map(Some),
            None => match self.early.insert(name, payload) {
                None => Ok(None),
                Some(_) => Err(self.reused(name)),
            },
        }
    }

    fn begin(
        &mut self,
        name @ (from, message): Name,
        payload: WirePayload,
        (by_wire, sent): (bool, Box3),
    ) -> Outcome<Way> {
        let WirePayload { elements: received, elem_size, .. } = payload;
        if !by_wire {
            return Ok(self.stop(from, payload).map_or(Way::Host, Way::Stop));
        }
        if sent != received {
            // A pilot does not tell the size; the sender compares that.
            let (sent_size, received_size, to) = (elem_size, elem_size, self.node);
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
        let cuts = cut_elements(&received, elem_size, self.slot_bytes);
        let pieces: Vec<_> = cuts.into_iter().map(Some).collect();
        let missing = pieces.len();
        self.receiving.insert(name, Receiving { payload, pieces, missing });
        Ok(Way::Wire)
    }

    /// Makes room on the host for a payload that ends in a device's memory; returns the payload that the
    /// network is to receive there. `None` if it ends on the host.
    pub(super) fn stop(&mut self, from: NodeId, payload: WirePayload) -> Option<WirePayload> {
        payload.at.device()?;
        let bytes = payload.elements.volume().saturating_mul(payload.elem_size);
        let words = usize::try_from(bytes.div_ceil(8)).expect("what arrives fits in memory");
        let mut stopped = Stopped { payload, words: vec![0; words] };
        let stop =
            WirePayload { at: celerity_idag::MemoryId::HOST, memory: stopped.array(), ..payload };
        self.stopped.insert((from, payload.message), stopped);
        Some(stop)
    }

    /// A payload of the network is complete; returns where it has stopped, and where it ends, if that is
    /// in a device's memory.
    pub(super) fn arrived(
        &mut self,
        from: NodeId,
        message: MessageId,
    ) -> Option<(ElementArray, WirePayload)> {
        let stopped = self.stopped.get_mut(&(from, message))?;
        Some((stopped.array(), stopped.payload))
    }

    /// So many boxes of a payload are brought to devices, each by a copy of its own.
    pub(super) fn scatter(&mut self, from: NodeId, message: MessageId, boxes: usize) {
        self.scattering.insert((from, message), boxes);
    }

    /// What has stopped on the host, or a box of it, is where it belongs. Whether that was all.
    pub(super) fn passed(&mut self, from: NodeId, message: MessageId) -> bool {
        let name = (from, message);
        let Some(missing) = self.scattering.get_mut(&name) else {
            // Nobody needs the memory any more.
            return self.stopped.remove(&name).is_some();
        };
        *missing -= 1;
        let is_last = *missing == 0;
        #[cfg(feature = "mutants")]
        let is_last = celerity_mutants::Mutant::ReceivedWithFirstBox.alter(is_last, |_| true);
        if is_last {
            self.scattering.remove(&name);
        }
        is_last
    }

    /// A piece is in its sender's window; returns what to unpack.
    pub(super) fn piece(
        &mut self,
        from: NodeId,
        message: MessageId,
        piece: u32,
    ) -> Outcome<(WirePayload, Box3)> {
        let receiving = self.receiving.get_mut(&(from, message));
        let slot = usize::try_from(piece).unwrap_or(usize::MAX);
        let found = receiving.and_then(|receiving| {
            let elements = receiving.pieces.get_mut(slot)?.take()?;
            Some((receiving.payload, elements))
        });
        found.ok_or_else(|| {
            let what = format!("it sends piece {piece} of {message}, which is not expected");
            CommunicationError::Malformed { from, what }.into()
        })
    }

    /// A piece has been unpacked. Whether it was the last one of its payload.
    pub(super) fn unpacked(&mut self, from: NodeId, message: MessageId) -> bool {
        let Some(receiving) = self.receiving.get_mut(&(from, message)) else { return false };
        receiving.missing -= 1;
        let is_last = receiving.missing == 0;
        #[cfg(feature = "mutants")]
        let is_last = celerity_mutants::Mutant::ReceivedWithFirstPiece.alter(is_last, |_| true);
        if is_last {
            self.receiving.remove(&(from, message));
        }
        is_last
    }

    /// Forgets everything but memory that the network may still write.
    pub(super) fn clear(&mut self) {
        self.announced.clear();
        self.early.clear();
        self.receiving.clear();
        self.scattering.clear();
    }

    fn reused(&self, (from, message): Name) -> Box<CommunicationError> {
        CommunicationError::Reused { from, to: self.node, message }.into()
    }
}

impl Stopped {
    fn array(&mut self) -> ElementArray {
        let base = BasePtr::of_mut_slice(bytemuck::cast_slice_mut(&mut self.words));
        ElementArray { base, extent: self.payload.elements }
    }
}
