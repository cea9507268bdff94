//! What a node computes with: its devices, and the memory behind the ids of allocations. Turns
//! what instructions name, allocations and boxes, into what devices know, addresses. Decides
//! neither when nor in which order.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use celerity_idag::{AllocationId, BoundAccess, InstructionId, MemoryId, Placement};
use celerity_regions::{Box3, Region};
use celerity_tdag::{BufferId, BufferInfo};

use crate::backend::{AllocError, Arguments, Backend, Begun, Completion, Job};
use crate::copy::ElementArray;
use crate::engine::{LaneId, LaneJob};
use crate::error::{Resident, RunError};
use crate::time::Clock;
use crate::work::HostData;

mod store;

use store::Store;

/// A node's devices and memory.
//
// Field order is drop order: the backend waits for its jobs before memory goes that users have
// handed over.
pub(super) struct Hardware {
    backend: Box<dyn Backend>,
    store: Store,
    /// Whether the backend has been asked for the times of jobs.
    times_jobs: bool,
}

/// Memory that an instruction asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) allocation: AllocationId,
    pub(super) memory: MemoryId,
    pub(super) buffer: BufferId,
    pub(super) bytes: u64,
    /// The elements that it is for; all that the allocation will hold, if not given.
    pub(super) part: Option<Box3>,
}

impl Hardware {
    pub(super) fn new(backend: Box<dyn Backend>) -> Self {
        Self { backend, store: Store::default(), times_jobs: false }
    }

    /// Leaves jobs that are over soon to whoever [computes](Self::compute).
    pub(super) fn share_core(&mut self) {
        self.backend.share_core();
    }

    /// Has the backend tell when jobs have begun, by times on `clock`.
    pub(super) fn note_begins(&mut self, clock: Clock) {
        self.backend.note_begins(clock);
    }

    /// Has the backend time jobs, which may be asked of it once.
    pub(super) fn time_jobs(&mut self, clock: Clock) {
        if !std::mem::replace(&mut self.times_jobs, true) {
            self.backend.time_jobs(clock);
        }
    }

    /// Adds a buffer, and its initial contents as the allocation that they are. Returns how much
    /// that is, in which memory.
    ///
    /// # Errors
    /// If the contents are not as long as the buffer.
    pub(super) fn add_buffer(
        &mut self,
        info: Arc<BufferInfo>,
        initial: Option<(Placement, HostData)>,
    ) -> Result<Option<(MemoryId, u64)>, RunError> {
        self.store.add_buffer(info, initial)
    }

    pub(super) fn rename_buffer(&mut self, info: Arc<BufferInfo>) {
        self.store.rename_buffer(info);
    }

    pub(super) fn forget_buffer(&mut self, buffer: BufferId) {
        self.store.forget_buffer(buffer);
    }

    /// Size and alignment of the elements of a buffer that is in use, in bytes.
    pub(super) fn layout_of(&self, buffer: BufferId) -> (u64, u64) {
        self.store.layout_of(buffer)
    }

    /// What the user calls a buffer; its id if it is not known any more.
    pub(super) fn user_name(&self, buffer: BufferId) -> Arc<str> {
        self.store.user_name(buffer)
    }

    /// What a message calls a buffer.
    pub(super) fn buffer_name(&self, buffer: BufferId) -> String {
        self.store.buffer_name(buffer)
    }

    /// The buffers that hold part of a memory, those that hold most first.
    pub(super) fn residents(&self, memory: MemoryId) -> Vec<Resident> {
        self.store.residents(memory)
    }

    /// Makes an allocation, with memory behind it.
    ///
    /// # Errors
    /// If the memory has no room.
    pub(super) fn alloc(&mut self, wanted: &Wanted, alignment: u64) -> Result<(), AllocError> {
        let Wanted { allocation, memory, buffer, bytes, .. } = *wanted;
        let base = self.backend.alloc(memory, bytes, alignment)?;
        self.store.add(allocation, memory, buffer, base, bytes);
        self.store.grow(allocation, bytes);
        Ok(())
    }

    /// Makes an allocation without memory behind it.
    ///
    /// # Errors
    /// If there is no room for its addresses.
    pub(super) fn reserve(&mut self, wanted: &Wanted, alignment: u64) -> Result<(), AllocError> {
        let Wanted { allocation, memory, buffer, bytes, .. } = *wanted;
        let base = self.backend.reserve(memory, bytes, alignment)?;
        self.store.add(allocation, memory, buffer, base, bytes);
        Ok(())
    }

    /// Puts memory behind a part of a reserved allocation, which has none there.
    ///
    /// # Errors
    /// If the memory has no room.
    pub(super) fn grow(&mut self, wanted: &Wanted, range: Range<u64>) -> Result<(), AllocError> {
        let base = self.store.base(wanted.allocation);
        // SAFETY: `Store::base` has found the allocation in its table, into which `reserve` has
        // put what the backend returned, and from which `free` takes it. The instruction graph
        // asks for ranges of what it has reserved.
        unsafe { self.backend.provide(wanted.memory, base, range)? };
        self.store.grow(wanted.allocation, wanted.bytes);
        Ok(())
    }

    /// Ends an allocation that nothing uses any more. Returns how much memory it had.
    pub(super) fn free(&mut self, allocation: AllocationId) -> (MemoryId, u64) {
        self.store.free(allocation, &mut *self.backend)
    }

    /// The memory that is to hold these elements, of so many bytes each.
    pub(super) fn array(
        &self,
        placement: &Placement,
        elements: &Box3,
        elem_size: u64,
    ) -> ElementArray {
        debug_assert!(placement.extent.contains(elements), "{elements} is not in {placement:?}");
        self.store.resolve(placement, elem_size)
    }

    /// A copy within the node, as a job.
    pub(super) fn copy(
        &self,
        source: &Placement,
        target: &Placement,
        region: Region,
        elem_size: u64,
    ) -> Job {
        debug_assert_ne!(source.allocation, target.allocation);
        debug_assert_ne!(target.memory, MemoryId::USER, "the user's data is read-only");
        let bounds = region.bounding_box();
        let source = self.array(source, &bounds, elem_size);
        let target = self.array(target, &bounds, elem_size);
        Job::Copy { source, target, region, elem_size }
    }

    /// What a kernel or host function is bound to.
    pub(super) fn arguments(&self, accesses: Box<[BoundAccess]>) -> Arguments {
        Arguments::new(accesses, |access| {
            let placement = access.placement.as_ref()?;
            debug_assert_ne!(placement.memory, MemoryId::USER, "the user's data is read-only");
            let elem_size = self.store.elem_size(access.buffer);
            Some(self.array(placement, &access.region.bounding_box(), elem_size).base)
        })
    }

    /// Appends a job to a lane.
    ///
    /// # Safety
    /// As for [`Backend::enqueue`].
    pub(super) unsafe fn enqueue(
        &mut self,
        lane: LaneId,
        instruction: InstructionId,
        job: Job,
        after: &[LaneJob],
    ) {
        // SAFETY: passed on.
        unsafe { self.backend.enqueue(lane, instruction, job, after) };
    }

    /// Appends what has completed since the last call.
    pub(super) fn poll(&mut self, out: &mut Vec<Completion>) {
        self.backend.poll(out);
    }

    /// Runs a job that waits for the calling thread, if there is one.
    pub(super) fn compute(&mut self) -> bool {
        self.backend.compute()
    }

    /// The job that [`compute`](Self::compute) would run.
    pub(super) fn next_to_compute(&self) -> Option<InstructionId> {
        self.backend.next_to_compute()
    }

    /// The job that a lane is at, as far as the backend can tell.
    pub(super) fn begun(&self, lane: LaneId) -> Option<Begun> {
        self.backend.begun(lane)
    }

    /// Drops jobs that have not started. What runs keeps its memory until the node is dropped.
    pub(super) fn cancel(&mut self) {
        self.backend.cancel();
    }

    /// Whether no job is running. Meaningful after [`cancel`](Self::cancel).
    pub(super) fn is_quiet(&self) -> bool {
        self.backend.is_quiet()
    }
}

#[cfg(test)]
mod tests {
    use celerity_idag::DeviceId;

    use super::*;
    use crate::backend::CpuBackend;
    use crate::pool::CpuPool;

    const DEVICE: MemoryId = MemoryId::of_device(DeviceId::from_index(0));

    /// One device with room for 64 bytes, and a buffer of eight words.
    fn hardware() -> Hardware {
        let pool = CpuPool::new(1).unwrap();
        let backend = CpuBackend::new(1, Some(64), &pool, Arc::new(|| {}));
        let mut hardware = Hardware::new(Box::new(backend));
        hardware.add_buffer(info(8), None).unwrap();
        hardware
    }

    fn info(elements: usize) -> Arc<BufferInfo> {
        let mut graph = celerity_tdag::TaskGraph::new(celerity_tdag::TaskGraphConfig::default());
        graph.create_buffer(celerity_tdag::NewBuffer {
            name: Some("u".into()),
            dims: 1,
            extent: Box3::from_range([elements]),
            elem_size: 8,
            elem_align: 8,
            host_initialized: true,
        })
    }

    fn wanted(allocation: u64, memory: MemoryId, bytes: u64) -> Wanted {
        let (allocation, buffer) = (AllocationId::from_index(allocation), BufferId::from_index(0));
        Wanted { allocation, memory, buffer, bytes, part: None }
    }

    fn placement(allocation: u64, memory: MemoryId, elements: usize) -> Placement {
        let allocation = AllocationId::from_index(allocation);
        Placement { allocation, memory, extent: Box3::from_range([elements]) }
    }

    #[test]
    fn memory_that_is_freed_can_be_had_again_and_who_has_it_is_known() {
        let mut hardware = hardware();
        hardware.alloc(&wanted(1, DEVICE, 64), 8).unwrap();
        let full = hardware.alloc(&wanted(2, DEVICE, 8), 8).unwrap_err();
        assert_eq!(full, AllocError { resident: 64, free: Some(0) });
        let residents = hardware.residents(DEVICE);
        assert_eq!(residents, [Resident { buffer: "\"u\"".to_owned(), bytes: 64 }]);
        assert_eq!(hardware.free(AllocationId::from_index(1)), (DEVICE, 64));
        assert_eq!(hardware.residents(DEVICE), []);
        hardware.alloc(&wanted(2, DEVICE, 8), 8).unwrap();
    }

    #[test]
    fn what_is_reserved_counts_as_far_as_it_has_grown() {
        let mut hardware = hardware();
        hardware.reserve(&wanted(1, DEVICE, 64), 8).unwrap();
        assert_eq!(hardware.residents(DEVICE)[0].bytes, 0);
        hardware.grow(&wanted(1, DEVICE, 16), 0..16).unwrap();
        hardware.grow(&wanted(1, DEVICE, 8), 16..24).unwrap();
        assert_eq!(hardware.residents(DEVICE)[0].bytes, 24);
        assert_eq!(hardware.free(AllocationId::from_index(1)), (DEVICE, 24));
    }

    #[test]
    fn placements_become_addresses_with_the_extent_of_their_allocation() {
        let mut hardware = hardware();
        hardware.alloc(&wanted(1, MemoryId::HOST, 64), 8).unwrap();
        hardware.alloc(&wanted(2, DEVICE, 64), 8).unwrap();
        let (host, device) = (placement(1, MemoryId::HOST, 8), placement(2, DEVICE, 8));
        let elements = Box3::from_range([3]);
        let Job::Copy { source, target, elem_size, .. } =
            hardware.copy(&host, &device, elements.into(), 8)
        else {
            panic!("a copy is a copy");
        };
        assert_eq!(source, hardware.array(&host, &elements, 8));
        assert_eq!((target.extent, elem_size), (device.extent, 8));
        assert_ne!(source.base, target.base);
    }

    #[test]
    fn contents_that_are_too_short_are_refused_with_the_name_of_their_buffer() {
        let mut hardware = hardware();
        let initial = (placement(3, MemoryId::USER, 8), HostData::new(vec![0_u64; 7]));
        let error = hardware.add_buffer(info(8), Some(initial)).unwrap_err();
        assert!(matches!(&error, RunError::HostDataLength { buffer, .. } if buffer == "\"u\""));
        let initial = (placement(3, MemoryId::USER, 8), HostData::new(vec![0_u64; 8]));
        assert_eq!(hardware.add_buffer(info(8), Some(initial)), Ok(Some((MemoryId::USER, 64))));
        assert_eq!(hardware.free(AllocationId::from_index(3)), (MemoryId::USER, 64));
    }
}
