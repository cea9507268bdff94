//! Devices made of CPU threads. All memory is the host's, but those of devices
//! are counted apart, so that they may stand for others' own. The lanes
//! of all nodes share one pool, but for those whose jobs may block: each of
//! these has a thread of its own.
#![allow(unsafe_code)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use celerity_idag::{DeviceId, InstructionId, MemoryId};

use super::{AllocError, Arguments, Backend, Begun, Completion, Job};
use crate::contain::Kept;
use crate::engine::{LaneId, LaneJob};
use crate::lanes::LaneLayout;
use crate::memory::{BasePtr, ZeroedMemory};
use crate::polling::Waker;
use crate::pool::CpuPool;
use crate::time::Clock;

mod lane;
mod pace;
mod reports;

use lane::{Lane, Pushed, Queued, Runner};
use pace::Paces;
use reports::{Bell, Inbox, Outbox};

/// A node's CPU devices.
///
/// Memory limits apply to devices only and are counted in bytes asked for.
pub struct CpuBackend {
    layout: LaneLayout,
    lanes: Vec<Arc<Lane>>,
    memories: Vec<CpuMemory>,
    bell: Arc<Bell>,
    /// By lane.
    inboxes: Vec<Inbox>,
    paces: Paces,
    /// What is left of the last job that has run when it was pushed. It is given back when
    /// nothing has happened, so that what the job lets go need not wait for that.
    spent: Option<Arguments>,
    /// Whether whoever polls computes, too.
    computes: bool,
    /// Jobs that whoever polls shall run, with their lanes.
    kept: VecDeque<(usize, Queued)>,
}

#[derive(Default)]
struct CpuMemory {
    limit: Option<u64>,
    resident: u64,
    live: BTreeMap<BasePtr, (u64, ZeroedMemory)>,
}

impl CpuBackend {
    /// A node with so many devices, each with room for `device_limit` bytes if
    /// that is given. Jobs run on `pool`; those that [may
    /// block](LaneLayout::may_block) run on threads that start when they are
    /// needed, one per lane, and end with the backend.
    #[must_use]
    pub fn new(
        devices: usize,
        device_limit: Option<u64>,
        pool: &Arc<CpuPool>,
        waker: Waker,
    ) -> Self {
        let layout = LaneLayout::new(devices);
        let bell = Bell::new(layout.count(), waker);
        let lanes = layout.lanes().map(|lane| {
            let own_thread = layout.may_block(lane);
            let place = if own_thread { Runner::OwnThread } else { Runner::Pool(pool.clone()) };
            let outbox = Outbox::new(lane.slot(), bell.clone());
            (Arc::new(Lane::new(place, outbox.clone())), Inbox::new(outbox))
        });
        let (lanes, inboxes) = lanes.unzip();
        let last = MemoryId::of_device(DeviceId::from_index(devices as u64));
        let memories = (0..last.index()).map(MemoryId::from_index).map(|memory| CpuMemory {
            limit: memory.device().and(device_limit),
            ..CpuMemory::default()
        });
        let (memories, paces, spent) = (memories.collect(), Paces::default(), None);
        let (computes, kept) = (false, VecDeque::new());
        Self { layout, lanes, memories, bell, inboxes, paces, spent, computes, kept }
    }
}

// SAFETY: memory is `ZeroedMemory`, which is kept until they are freed; a lane runs its
// jobs in turn and reports each when it has returned (`reports.rs`).
unsafe impl Backend for CpuBackend {
    fn layout(&self) -> LaneLayout {
        self.layout
    }

    fn alloc(
        &mut self,
        memory: MemoryId,
        bytes: u64,
        alignment: u64,
    ) -> Result<BasePtr, AllocError> {
        let memory = &mut self.memories[memory.slot()];
        let free = memory.limit.map(|limit| limit.saturating_sub(memory.resident));
        let fits = free.is_none_or(|free| bytes <= free);
        let block = fits.then(|| ZeroedMemory::new(bytes, alignment)).flatten();
        let block = block.ok_or(AllocError { resident: memory.resident, free })?;
        let base = block.base();
        memory.resident += bytes;
        memory.live.insert(base, (bytes, block));
        Ok(base)
    }

    unsafe fn free(&mut self, memory: MemoryId, base: BasePtr) {
        let memory = &mut self.memories[memory.slot()];
        let (bytes, block) = memory.live.remove(&base).expect("freed memory was allocated here");
        memory.resident -= bytes;
        drop(block);
    }

    unsafe fn enqueue(
        &mut self,
        lane: LaneId,
        instruction: InstructionId,
        job: Job,
        after: &[LaneJob],
    ) {
        debug_assert!(after.is_empty(), "lanes of CPUs do not wait for each other");
        self.inboxes[lane.slot()].expect(instruction);
        let pace = self.paces.of(&job);
        let job = Queued { job: Kept::new(job), pace };
        match self.lanes[lane.slot()].push(job, self.computes) {
            Pushed::Taken => {}
            Pushed::Ran(spent) => self.spent = spent,
            Pushed::Kept(job) => self.kept.push_back((lane.slot(), job)),
        }
    }

    fn poll(&mut self, out: &mut Vec<Completion>) {
        self.bell.answer(|lane| self.inboxes[lane].collect(out));
        if out.is_empty() {
            self.spent = None;
        }
    }

    fn share_core(&mut self) {
        self.computes = true;
        self.paces.use_one_thread();
    }

    fn compute(&mut self) -> bool {
        let Some((lane, job)) = self.kept.pop_front() else { return false };
        let next = self.lanes[lane].run_kept(job);
        self.kept.extend(next.map(|job| (lane, job)));
        true
    }

    fn next_to_compute(&self) -> Option<InstructionId> {
        let (lane, _) = self.kept.front()?;
        self.inboxes[*lane].next()
    }

    fn begun(&self, lane: LaneId) -> Option<Begun> {
        self.inboxes[lane.slot()].begun()
    }

    fn note_begins(&mut self, clock: Clock) {
        self.bell.note_begins(clock);
    }

    fn cancel(&mut self) {
        for lane in &self.lanes {
            drop(lane.halt());
        }
        self.kept.drain(..).for_each(|(lane, job)| self.lanes[lane].drop_kept(job));
    }

    fn is_quiet(&self) -> bool {
        self.lanes.iter().all(|lane| lane.is_quiet())
    }

    fn time_jobs(&mut self, clock: Clock) {
        self.bell.time_by(clock);
    }
}

impl Drop for CpuBackend {
    /// Waits for running jobs: they use the memory that goes next.
    fn drop(&mut self) {
        self.cancel();
        self.lanes.iter().for_each(|lane| lane.wait_until_quiet());
    }
}

#[cfg(test)]
mod tests;
