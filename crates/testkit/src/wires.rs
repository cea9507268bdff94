//! Windows of devices that do not exist: memory of this process, which stands for what processes of one
//! host share. Copies end late and in a random order. Sees to it that nobody reads a slot that has not
//! been filled, or fills one that has not been emptied.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use celerity_cdag::NodeId;
use celerity_executor::{
    BasePtr, Communicator, Copied, CopyId, DeviceCollectives, DeviceWindows, ElementArray,
    Handshake, MemoryArray, Slot, WindowError, WindowSize, WireCopy, Wired, copy_elements,
};
use celerity_regions::Box3;

use crate::random::Random;

/// A host on which nodes share memory of their devices.
#[derive(Clone, Debug)]
pub struct FakeHost {
    size: WindowSize,
    slots: Arc<Mutex<Slots>>,
}

/// What is in the slots of all windows, by node, window and number.
type Slots = BTreeMap<(NodeId, u16, u16), Vec<u8>>;

/// The windows of a node of a [`FakeHost`].
pub struct FakeWindows {
    node: NodeId,
    host: FakeHost,
    open: Vec<NodeId>,
    pending: Vec<(CopyId, Operation)>,
    random: Random,
    /// Whether copies fail.
    broken: bool,
}

enum Operation {
    Pack { source: ElementArray, slot: Slot, copy: WireCopy },
    Unpack { peer: NodeId, slot: Slot, target: ElementArray, copy: WireCopy },
    Scatter { source: ElementArray, target: ElementArray, copy: WireCopy },
}

impl FakeHost {
    /// A host whose nodes have windows of this size.
    #[must_use]
    pub fn new(size: WindowSize) -> Self {
        Self { size, slots: Arc::default() }
    }

    /// The windows of a node; `seed` chooses in which order copies end.
    #[must_use]
    pub fn windows(&self, node: NodeId, seed: u64) -> FakeWindows {
        let (host, random) = (self.clone(), Random::new(seed));
        FakeWindows { node, host, open: Vec::new(), pending: Vec::new(), random, broken: false }
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FakeWindows {
    /// Windows that fail with the first copy.
    #[must_use]
    pub fn broken(self) -> Self {
        Self { broken: true, ..self }
    }

    fn run(&mut self, operation: Operation) -> Result<(), WindowError> {
        if self.broken {
            return Err("a copy has failed".to_owned());
        }
        let mut slots = self.host.lock();
        match operation {
            Operation::Pack { source, slot, copy } => {
                let bytes = copy.elements.volume() * copy.elem_size;
                assert!(bytes <= self.host.size.slot_bytes, "a piece fits its slot");
                let mut contents = vec![0; usize::try_from(bytes).expect("small")];
                // SAFETY: the source is kept by the contract of `pack`; the slot is new.
                unsafe { copy_between(source, dense(&mut contents, &copy.elements), &copy) };
                let full = slots.insert((self.node, slot.window, slot.number), contents);
                assert!(full.is_none(), "{slot:?} is packed before it was emptied");
            }
            Operation::Unpack { peer, slot, target, copy } => {
                let contents = slots.remove(&(peer, slot.window, slot.number));
                let mut contents = contents.expect("a slot is packed before it is unpacked");
                // SAFETY: the target is kept by the contract of `unpack`.
                unsafe { copy_between(dense(&mut contents, &copy.elements), target, &copy) };
            }
            // SAFETY: both are kept by the contract of `scatter`.
            Operation::Scatter { source, target, copy } => unsafe {
                copy_between(source, target, &copy);
            },
        }
        Ok(())
    }
}

fn dense(bytes: &mut [u8], elements: &Box3) -> ElementArray {
    ElementArray { base: BasePtr::of_mut_slice(bytes), extent: *elements }
}

/// # Safety
/// As for [`copy_elements`].
unsafe fn copy_between(source: ElementArray, target: ElementArray, copy: &WireCopy) {
    // SAFETY: passed on.
    unsafe { copy_elements(source, target, &copy.elements, copy.elem_size) };
}

// SAFETY: copies touch memory while `poll` runs them, and are told then. Slots are the host's.
unsafe impl DeviceWindows for FakeWindows {
    fn size(&self) -> WindowSize {
        self.host.size
    }

    fn card(&self) -> Vec<u8> {
        self.node.index().to_le_bytes().into()
    }

    fn open(&mut self, peer: NodeId, card: &[u8]) -> Result<(), WindowError> {
        assert_eq!(card, peer.index().to_le_bytes(), "cards arrive as they were");
        self.open.push(peer);
        Ok(())
    }

    unsafe fn pack(&mut self, copy: WireCopy, source: MemoryArray, slot: Slot) {
        let device = source.at.device().expect("what is packed lies in a device's memory");
        assert_eq!(device.index(), u64::from(slot.window), "each device has a window");
        self.pending.push((copy.id, Operation::Pack { source: source.array, slot, copy }));
    }

    unsafe fn unpack(&mut self, copy: WireCopy, peer: NodeId, slot: Slot, target: MemoryArray) {
        assert!(self.open.contains(&peer), "{peer} has been opened");
        let target = target.array;
        self.pending.push((copy.id, Operation::Unpack { peer, slot, target, copy }));
    }

    unsafe fn scatter(&mut self, copy: WireCopy, source: ElementArray, target: MemoryArray) {
        let target = target.array;
        self.pending.push((copy.id, Operation::Scatter { source, target, copy }));
    }

    fn poll(&mut self) -> Option<Copied> {
        if self.pending.is_empty() || self.random.once_in(3) {
            return None;
        }
        let next = self.random.below(self.pending.len());
        let (id, operation) = self.pending.swap_remove(next);
        let outcome = self.run(operation);
        Some(Copied { id, outcome })
    }

    fn close(&mut self) {
        assert!(self.pending.is_empty(), "windows are closed when nothing is copied");
        self.open.clear();
    }
}

/// Wires between all ends of a network in this process.
///
/// # Panics
/// If they do not come about.
#[must_use]
pub fn wire(
    ends: Vec<Box<dyn Communicator>>,
    host: &FakeHost,
    seed: u64,
) -> Vec<Box<dyn Communicator>> {
    wire_with(ends, |node| Ok(Box::new(host.windows(node, seed ^ node.index()))))
}

/// As [`wire`], with windows of any kind, or none.
///
/// # Panics
/// If a node does not hear from the others.
pub fn wire_with(
    ends: Vec<Box<dyn Communicator>>,
    windows: impl Fn(NodeId) -> Result<Box<dyn DeviceWindows>, WindowError>,
) -> Vec<Box<dyn Communicator>> {
    let nodes: Vec<_> = ends.iter().map(Communicator::node).collect();
    let begin = |end: Box<dyn Communicator>| {
        let node = end.node();
        let others = nodes.iter().copied().filter(|other| *other != node);
        Handshake::begin(end, windows(node), others.collect::<Vec<_>>())
    };
    shake(ends.into_iter().map(begin).collect()).into_iter().map(|wired| wired.end).collect()
}

/// Collective operations of devices between all ends of a network in this process, and no other wires; or
/// why there are none.
///
/// # Panics
/// If a node does not hear from the others.
pub fn assemble(
    ends: Vec<Box<dyn Communicator>>,
    device: impl Fn(NodeId) -> Result<Box<dyn DeviceCollectives>, WindowError>,
) -> Vec<Wired> {
    let begin = |end: Box<dyn Communicator>| {
        let device = device(end.node());
        Handshake::begin(end, Err("windows are not wanted".to_owned()), []).with_collectives(device)
    };
    shake(ends.into_iter().map(begin).collect())
}

/// What nodes find out together.
fn shake(mut shakes: Vec<Handshake>) -> Vec<Wired> {
    let done = (0..100_000).any(|_| {
        let steps: Vec<_> = shakes.iter_mut().map(Handshake::step).collect();
        steps.into_iter().all(|done| done)
    });
    assert!(done, "all nodes hear from each other");
    shakes.into_iter().map(Handshake::finish).collect()
}
