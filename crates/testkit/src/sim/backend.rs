//! One node's simulated devices: the trait, as calls of the world.
#![allow(unsafe_code)]

use celerity_executor::{
    AllocError, Backend, BasePtr, Begun, Completion, HostData, Job, LaneGroup, LaneId, LaneJob,
    LaneLayout,
};
use celerity_idag::{InstructionId, MemoryId};

use super::world::{Queued, Shared};

/// One node's simulated devices.
pub struct SimBackend {
    node: usize,
    layout: LaneLayout,
    world: Shared,
}

impl SimBackend {
    pub(super) fn new(node: usize, devices: usize, world: Shared) -> Self {
        Self { node, layout: LaneLayout::new(devices), world }
    }
}

// SAFETY: memory is kept until it is freed, and longer by what still runs (`Memory`); a job is
// reported when the simulation has ended it.
unsafe impl Backend for SimBackend {
    fn layout(&self) -> LaneLayout {
        self.layout
    }

    fn joins(&self) -> Option<LaneGroup> {
        self.layout.of_devices().filter(|_| self.world.lock().conditions.joins)
    }

    fn alloc(
        &mut self,
        memory: MemoryId,
        bytes: u64,
        alignment: u64,
    ) -> Result<BasePtr, AllocError> {
        self.world.lock().allocate(self.node, memory, bytes, alignment)
    }

    unsafe fn free(&mut self, memory: MemoryId, base: BasePtr) {
        self.world.lock().free(self.node, memory, base);
    }

    unsafe fn enqueue(
        &mut self,
        lane: LaneId,
        instruction: InstructionId,
        job: Job,
        after: &[LaneJob],
    ) {
        let job = Queued { instruction, job, after: after.to_vec() };
        self.world.lock().enqueue(self.node, lane, job);
    }

    fn poll(&mut self, out: &mut Vec<Completion>) {
        self.world.lock().report(self.node, out);
    }

    fn share_core(&mut self) {
        self.world.lock().devices[self.node].share_core();
    }

    fn compute(&mut self) -> bool {
        self.world.lock().compute(self.node)
    }

    fn next_to_compute(&self) -> Option<InstructionId> {
        self.world.lock().devices[self.node].next_to_compute()
    }

    fn begun(&self, lane: LaneId) -> Option<Begun> {
        let instruction = self.world.lock().devices[self.node].running(lane)?;
        Some(Begun { instruction, since: None, thread: None })
    }

    fn cancel(&mut self) {
        let dropped = self.world.lock().devices[self.node].halt();
        drop(dropped);
    }

    fn is_quiet(&self) -> bool {
        self.world.lock().devices[self.node].is_quiet()
    }
}

impl Drop for SimBackend {
    /// Nothing runs any more once a simulation drops its nodes; memory stays
    /// until its end.
    fn drop(&mut self) {
        self.cancel();
    }
}

/// A buffer's initial contents, in memory of the simulation: poisoned when the
/// node lets go of them.
pub(super) struct SimData {
    base: BasePtr,
    world: Shared,
}

impl SimData {
    pub(super) fn adopt(words: Vec<u64>, world: Shared) -> HostData {
        let bytes = words.len() as u64 * 8;
        let base = world.lock().memory.adopt(words);
        // SAFETY: the world keeps the words until its end, which its owner puts off, and writes
        // them only when that goes.
        let mut data = unsafe { HostData::of_raw(base, bytes, Self { base, world }) };
        data.look_at_contents();
        data
    }
}

impl Drop for SimData {
    fn drop(&mut self) {
        self.world.lock().memory.give_back(self.base);
    }
}
