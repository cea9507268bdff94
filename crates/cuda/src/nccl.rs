//! What is asked of NVIDIA's library of collective operations (NCCL), and nothing more: communicators of one
//! process and one GPU each, and groups of calls that are put on a stream. Knows no buffers or instructions.
//!
//! The library is looked for when a run wants it. `cudarc` has bindings, but those panic where a function is
//! missing, and are of one version for all who use `cudarc` in a program.
#![allow(unsafe_code)]

use std::sync::Arc;

use celerity_executor::DeviceStream;

#[cfg(feature = "cuda")]
mod library;

#[cfg(feature = "cuda")]
pub use library::load_nccl;

/// What those that join each other have alike.
pub type JoiningId = [u8; 128];

/// The name of a communicator, good until it is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Joined(pub usize);

/// A call of a group: what one GPU does in it, with memory of its own. Lengths are in bytes, others are named
/// by their ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NcclCall<Address = u64> {
    /// Sends to another one, which receives as much.
    Send {
        /// The first byte.
        address: Address,
        /// How many.
        bytes: u64,
        /// To whom.
        to: usize,
    },
    /// Receives from another one.
    Receive {
        /// Where the first byte goes.
        address: Address,
        /// How many.
        bytes: u64,
        /// From whom.
        from: usize,
    },
    /// All give as much, and get what all have given, in order of ranks.
    AllGather {
        /// What this one gives; it may lie at its place in `all`.
        own: Address,
        /// Where all goes.
        all: Address,
        /// How much each gives.
        bytes: u64,
    },
    /// All get what one has.
    Broadcast {
        /// Where that lies, or goes.
        address: Address,
        /// How much.
        bytes: u64,
        /// Who has it.
        root: usize,
    },
}

impl<Address: Copy> NcclCall<Address> {
    /// The same with other addresses.
    pub fn map<Other>(self, to: impl Fn(Address) -> Other) -> NcclCall<Other> {
        match self {
            Self::Send { address, bytes, to: other } => {
                NcclCall::Send { address: to(address), bytes, to: other }
            }
            Self::Receive { address, bytes, from } => {
                NcclCall::Receive { address: to(address), bytes, from }
            }
            Self::AllGather { own, all, bytes } => {
                NcclCall::AllGather { own: to(own), all: to(all), bytes }
            }
            Self::Broadcast { address, bytes, root } => {
                NcclCall::Broadcast { address: to(address), bytes, root }
            }
        }
    }
}

/// A library with NCCL's operations.
///
/// Contract, for the implementation:
/// * no call waits for another process; what takes longer goes on behind it, until a communicator
///   [is ready](Self::is_ready);
/// * groups of one communicator that are put on one stream take place in this order, each when all whom it
///   names have come to theirs;
/// * a communicator that has been given up keeps no stream waiting.
pub trait Nccl: Send + Sync + 'static {
    /// A new id.
    ///
    /// # Errors
    /// What the library says, here and below.
    fn id(&self) -> Result<JoiningId, String>;

    /// Begins to join all those with the same id, as `rank` of `ranks`. The calling thread's current context
    /// is that of the GPU.
    ///
    /// # Errors
    /// If the library refuses.
    fn join(&self, id: &JoiningId, rank: usize, ranks: usize) -> Result<Joined, String>;

    /// Whether what was begun last is done: all have joined, or a group is on its stream.
    ///
    /// # Errors
    /// If it has failed.
    fn is_ready(&self, joined: Joined) -> Result<bool, String>;

    /// Begins to put a group on a stream of the GPU, whose context is the calling thread's current one.
    /// Nothing else is put there until the communicator is ready.
    ///
    /// # Safety
    /// Until the stream has got there, or has run empty after the communicator was given up: the memory is
    /// allocated on that GPU, nobody writes what is read, and nobody else touches what is written.
    ///
    /// # Errors
    /// If the library refuses.
    unsafe fn start(
        &self,
        joined: Joined,
        stream: &DeviceStream,
        calls: &[NcclCall],
    ) -> Result<(), String>;

    /// Gives a communicator up, whatever it is doing. It is named in no later call.
    fn abandon(&self, joined: Joined);
}

/// Looks for the library. If there is none, says what to do about it.
pub type FindNccl = Arc<dyn Fn() -> Result<Arc<dyn Nccl>, String> + Send + Sync>;
