//! What a node owns: the memory behind allocation ids, and what buffers are
//! called. Knows nothing of when memory is used.

use std::any::Any;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use celerity_idag::{AllocationId, MemoryId, Placement};
use celerity_tdag::{BufferId, BufferInfo};

use crate::backend::Backend;
use crate::contain::Kept;
use crate::copy::ElementArray;
use crate::error::{Resident, RunError};
use crate::memory::BasePtr;
use crate::window::IdMap;
use crate::work::HostData;

#[derive(Default)]
pub(super) struct Store {
    allocations: IdMap<AllocationId, Allocation>,
    buffers: IdMap<BufferId, Arc<BufferInfo>>,
}

struct Allocation {
    memory: MemoryId,
    buffer: BufferId,
    base: BasePtr,
    bytes: u64,
    /// How many of them there is memory for.
    resident: u64,
    /// What keeps the memory, if the backend does not: the user has handed it over.
    owner: Option<Kept<Box<dyn Any + Send>>>,
}

impl Store {
    /// Keeps a buffer's description and, if it has any, its initial data as the
    /// allocation that it is. Returns how much that is, in which memory.
    pub(super) fn add_buffer(
        &mut self,
        info: Arc<BufferInfo>,
        initial: Option<(Placement, HostData)>,
    ) -> Result<Option<(MemoryId, u64)>, RunError> {
        let mut handed_over = None;
        if let Some((Placement { allocation, memory, .. }, data)) = initial {
            let (base, bytes, owner) = data.into_parts();
            check_length(&info, bytes)?;
            let (buffer, resident, owner) = (info.id, bytes, Some(Kept::new(owner)));
            let user = Allocation { memory, buffer, base, bytes, resident, owner };
            self.allocations.insert(allocation, user);
            handed_over = Some((memory, bytes));
        }
        self.buffers.insert(info.id, info);
        Ok(handed_over)
    }

    pub(super) fn rename_buffer(&mut self, info: Arc<BufferInfo>) {
        self.buffers.insert(info.id, info);
    }

    pub(super) fn forget_buffer(&mut self, buffer: BufferId) {
        self.buffers.remove(&buffer);
    }

    /// What the user calls a buffer; its id if it is not known any more.
    pub(super) fn user_name(&self, buffer: BufferId) -> Arc<str> {
        let known = self.buffers.get(&buffer);
        known.map_or_else(|| buffer.to_string().into(), |info| info.name.clone())
    }

    /// What a message calls a buffer.
    pub(super) fn buffer_name(&self, buffer: BufferId) -> String {
        let known = self.buffers.get(&buffer);
        known.map_or_else(|| buffer.to_string(), |info| format!("\"{}\"", info.name))
    }

    /// Keeps an allocation of `bytes` addresses, with no memory behind them yet.
    pub(super) fn add(
        &mut self,
        allocation: AllocationId,
        memory: MemoryId,
        buffer: BufferId,
        base: BasePtr,
        bytes: u64,
    ) {
        let new = Allocation { memory, buffer, base, bytes, resident: 0, owner: None };
        let known = self.allocations.insert(allocation, new);
        debug_assert!(known.is_none(), "{allocation} is allocated twice");
    }

    /// Notes more memory behind the addresses of an allocation.
    pub(super) fn grow(&mut self, allocation: AllocationId, bytes: u64) {
        if let Some(known) = self.allocations.get_mut(&allocation) {
            known.resident += bytes;
        }
    }

    /// Where an allocation starts.
    pub(super) fn base(&self, allocation: AllocationId) -> BasePtr {
        let Some(known) = self.allocations.get(&allocation) else {
            unreachable!("{allocation} grows, but is not allocated");
        };
        known.base
    }

    /// The buffers that hold part of a memory, those that hold most first.
    pub(super) fn residents(&self, memory: MemoryId) -> Vec<Resident> {
        let mut bytes_of = BTreeMap::<BufferId, u64>::new();
        for allocation in self.allocations.values().filter(|one| one.memory == memory) {
            *bytes_of.entry(allocation.buffer).or_default() += allocation.resident;
        }
        let mut residents: Vec<_> = bytes_of.into_iter().collect();
        residents.sort_by_key(|(_, bytes)| Reverse(*bytes));
        let named = |(buffer, bytes)| Resident { buffer: self.buffer_name(buffer), bytes };
        residents.into_iter().map(named).collect()
    }

    /// Forgets an allocation, and gives its memory back: so many bytes of it.
    #[allow(unsafe_code)]
    pub(super) fn free(
        &mut self,
        allocation: AllocationId,
        backend: &mut dyn Backend,
    ) -> (MemoryId, u64) {
        let Some(freed) = self.allocations.remove(&allocation) else {
            unreachable!("{allocation} is freed, but not allocated");
        };
        let Allocation { memory, base, resident, owner, .. } = freed;
        if owner.is_none() {
            // SAFETY: it came from this backend, and leaves the table with this
            // call. A *free* is issued when all users of the allocation have
            // completed, which the instruction graph promises.
            unsafe { backend.free(memory, base) };
        }
        (memory, resident)
    }

    /// The memory behind a placement.
    pub(super) fn resolve(&self, placement: &Placement, elem_size: u64) -> ElementArray {
        let Placement { allocation, memory, extent } = *placement;
        let Some(known) = self.allocations.get(&allocation) else {
            unreachable!("{allocation} is used, but not allocated");
        };
        debug_assert_eq!(known.memory, memory, "{allocation} is elsewhere");
        assert!(
            extent.volume().saturating_mul(elem_size) <= known.bytes,
            "{allocation} has {} bytes, too few for {extent} of {elem_size} each",
            known.bytes
        );
        ElementArray { base: known.base, extent }
    }

    /// Bytes per element of a buffer that is in use.
    pub(super) fn elem_size(&self, buffer: BufferId) -> u64 {
        self.layout_of(buffer).0
    }

    /// Size and alignment of an element of a buffer that is in use, in bytes.
    pub(super) fn layout_of(&self, buffer: BufferId) -> (u64, u64) {
        let Some(info) = self.buffers.get(&buffer) else {
            unreachable!("{buffer} is used, but not known");
        };
        (info.elem_size, info.elem_align)
    }
}

fn check_length(info: &BufferInfo, actual: u64) -> Result<(), RunError> {
    let expected = info.extent.volume().saturating_mul(info.elem_size);
    if actual == expected {
        return Ok(());
    }
    Err(RunError::HostDataLength { buffer: format!("\"{}\"", info.name), expected, actual })
}
