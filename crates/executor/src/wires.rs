//! Device wires: payloads that begin and end in the memory of devices, between processes of one host
//! and beside any [`Communicator`](crate::Communicator). A device has a *window*, memory of its own that
//! other processes read; the sender copies a payload into its window, piece by piece, and the receiver
//! copies it out. Small messages of the network say which piece is where:
//!
//! ```text
//! sender                                              receiver
//! pilot ────────────── announced ───────────────────► receive begins
//!                ◄──── wanted ──────────────────────
//! pack: payload to window ── piece is in slot ──────► unpack: window to memory
//!                ◄──── slot is free ────────────────
//! sent, when all is packed                            received, when all is unpacked
//! ```
//!
//! A piece is packed only when its receiver wants it, so every slot that is taken will be free again:
//! windows cannot lead to deadlock, however small they are. Handles of windows are exchanged once, when
//! a run begins, and allocations of buffers need none: they may grow, move and come from pools.
//!
//! What leaves from a host's memory goes as it does without wires. If it arrives in a device's, it stops
//! in memory of the host.
//!
//! Beside payloads between pairs of nodes there are [collective operations](DeviceCollectives) between the
//! devices of all nodes, on whichever hosts. Nodes [join](founding) them before a run begins, and begin those
//! that they take part in in the order of tasks.
#![allow(unsafe_code)]

use celerity_cdag::NodeId;
use celerity_idag::MemoryId;
use celerity_regions::Box3;

use crate::copy::ElementArray;

mod assembly;
mod collectives;
mod communicator;
mod founding;
mod handshake;
mod incoming;
mod note;
mod outgoing;
mod roll;

pub use collectives::{CollectiveTerms, DeviceCollectives, MOST_OF_JOINING_CARD};
pub use communicator::WiredCommunicator;
pub use handshake::{Handshake, Wired};

/// Which way payloads between devices of different processes take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wires {
    /// From device to device between the processes of a host where that works, and through host memory
    /// elsewhere; where nodes are on several hosts, collective operations take place between devices if all
    /// nodes' can.
    #[default]
    Auto,
    /// Through host memory.
    Host,
    /// From device to device by the driver's means between processes, and collective operations through host
    /// memory. Where that does not work, a run does not begin.
    Ipc,
    /// As [`Auto`](Self::Auto), but collective operations take place between devices, also on one host: if
    /// they cannot, a run does not begin.
    Nccl,
}

impl Wires {
    /// Whether payloads between pairs of nodes look for a way from device to device.
    #[must_use]
    pub const fn have_windows(self) -> bool {
        !matches!(self, Self::Host)
    }

    /// Whether collective operations look for devices to take place between.
    #[must_use]
    pub const fn have_collectives(self) -> bool {
        matches!(self, Self::Auto | Self::Nccl)
    }
}

/// A place in a node's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// The device whose window it is, by its position on its node.
    pub window: u16,
    /// Its number in that window.
    pub number: u16,
}

/// The size of a node's windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSize {
    /// Windows: one per device.
    pub windows: u16,
    /// Slots per window, at least 1.
    pub slots: u16,
    /// Bytes per slot, at least 65,536: the largest element that is sent from a device.
    pub slot_bytes: u64,
    /// Payloads of less bytes are faster through host memory.
    pub least: u64,
}

/// A copy that somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CopyId(pub u64);

/// Memory of one side of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryArray {
    /// Which memory of the node.
    pub at: MemoryId,
    /// The array of elements in that memory.
    pub array: ElementArray,
}

/// Copies a box of elements, of so many bytes each, for somebody who waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireCopy {
    /// Names the copy; new.
    pub id: CopyId,
    /// The elements to copy, as a box of the buffer.
    pub elements: Box3,
    /// Bytes of one element.
    pub elem_size: u64,
}

/// What cannot be done with a window, in words that go on "the driver": `cuIpcOpenMemHandle failed: ..`.
pub type WindowError = String;

/// A copy that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The name that the copy was given when it was asked for.
    pub id: CopyId,
    /// Whether it failed. Then none that comes later succeeds, and no memory is in use by any.
    pub outcome: Result<(), WindowError>,
}

/// The windows of a node's devices, and its peers'.
///
/// Copies are begun by calls that do not wait for them, and end in any order. Elements of a box lie in a
/// slot row-major and dense.
///
/// # Safety
/// The node gives memory back by what is [told](Self::poll): a copy that has ended touches no memory any
/// more, and one that has succeeded has copied all of its elements, and nothing else. Nobody else writes
/// to a node's windows.
pub unsafe trait DeviceWindows: Send {
    /// How large this node's windows are.
    fn size(&self) -> WindowSize;

    /// What a peer needs to [open](Self::open) them: at most [`CARD_LEN`] bytes.
    fn card(&self) -> Vec<u8>;

    /// Opens the windows of a peer on the same host.
    ///
    /// # Errors
    /// [`WindowError`] if this process cannot.
    fn open(&mut self, peer: NodeId, card: &[u8]) -> Result<(), WindowError>;

    /// Begins to copy elements of a device's memory to a slot of that device's window.
    ///
    /// # Safety
    /// Until the copy has ended, the source stays allocated and nobody writes the elements, and no other
    /// copy touches the slot. It has room for all elements.
    unsafe fn pack(&mut self, copy: WireCopy, source: MemoryArray, slot: Slot);

    /// Begins to copy elements out of a slot of a peer that has been opened.
    ///
    /// # Safety
    /// Until the copy has ended, the target stays allocated and nobody else touches the elements. They
    /// have been packed there, and the peer does not use the slot.
    unsafe fn unpack(&mut self, copy: WireCopy, peer: NodeId, slot: Slot, target: MemoryArray);

    /// Begins to copy elements from dense memory of the host, which need not be pinned, to a device's.
    ///
    /// # Safety
    /// Until the copy has ended, both sides stay allocated, nobody writes the elements of the source, and
    /// nobody else touches those of the target.
    unsafe fn scatter(&mut self, copy: WireCopy, source: ElementArray, target: MemoryArray);

    /// A copy that has ended, if there is another one.
    fn poll(&mut self) -> Option<Copied>;

    /// Gives up the windows of all peers. No copy out of them is under way.
    fn close(&mut self);
}

/// The longest card of a node's windows, in bytes.
pub const CARD_LEN: usize = 960;
