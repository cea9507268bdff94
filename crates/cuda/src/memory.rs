//! The memories of a node with GPUs: each GPU's, and the host's, page-locked.
//! Know bytes and addresses, no buffers.

mod device;
mod fence;
mod pages;
mod pinned;
mod reserved;

pub(crate) use device::GpuMemory;
pub(crate) use fence::AllocationStream;
pub(crate) use pages::PagePool;
pub(crate) use pinned::PinnedPool;

/// What an allocation is more than its bytes, so that its start can be moved to
/// an alignment that the driver does not promise.
fn padding(alignment: u64, promised: u64) -> u64 {
    if alignment > promised { alignment } else { 0 }
}
