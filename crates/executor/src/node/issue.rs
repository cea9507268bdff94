//! Starting instructions: what each kind of them asks of store, arbiter,
//! communicator and backend.
#![allow(unsafe_code)]

use std::ops::Range;

use celerity_idag::{BoundAccess, Inbound, InstructionId, InstructionKind, MemoryId, Placement};
use celerity_regions::Box3;
use celerity_tdag::{EpochAction, TaskId};

use super::out_of_memory::Wanted;
use super::{Executor, Phase, RunningTask};
use crate::arbiter::PostReceive;
use crate::backend::{AllocError, Arguments, Job};
use crate::communicator::Payload as WirePayload;
use crate::contain::Kept;
use crate::engine::{Assignment, LaneId, LaneJob};
use crate::pulse::Call;
use crate::work::Payload;

impl Executor {
    /// Starts everything that can start.
    pub(super) fn issue_all(&mut self) {
        while self.phase == Phase::Running
            && let Some(Assignment { instruction, lane, after }) = self.engine.next_assignment()
        {
            let kind = self.open.issue(instruction, lane, self.now);
            self.record_issue(instruction, lane, &kind);
            match lane {
                Some(lane) => self.issue_on_lane(instruction, lane, kind, &after),
                None => self.issue_here(instruction, kind),
            }
        }
    }

    fn issue_on_lane(
        &mut self,
        instruction: InstructionId,
        lane: LaneId,
        kind: InstructionKind,
        after: &[LaneJob],
    ) {
        let mut call = None;
        let job = match kind {
            InstructionKind::Kernel { task, chunk, accesses, .. } => {
                self.time_launch(instruction, &accesses);
                call = Some(Call::Kernel(task));
                self.kernel(task, chunk, accesses)
            }
            InstructionKind::HostTask { task, accesses } => self.host_task(task, accesses),
            InstructionKind::Copy { source, target, elements, elem_size, .. } => {
                self.copy(&source, &target, elements, elem_size)
            }
            other => unreachable!("{instruction} has no lane: {other:?}"),
        };
        // SAFETY: allocations stay in the store until a *free* is issued, which
        // the graph orders behind all users; after a failure nothing is freed
        // before the backend is quiet. Conflicting accesses are ordered by the
        // graph's dependencies, which the engine keeps by completion, by the
        // order of one lane, or by letting lanes wait.
        let enqueue = || unsafe { self.backend.enqueue(lane, instruction, job, after) };
        match call {
            // It may be run at once.
            Some(call) => self.calls.during(call, enqueue),
            None => enqueue(),
        }
    }

    fn issue_here(&mut self, instruction: InstructionId, kind: InstructionKind) {
        match kind {
            InstructionKind::Alloc { allocation, memory, buffer, bytes, alignment } => {
                let base = self.backend.alloc(memory, bytes, alignment);
                let wanted = Wanted { allocation, memory, buffer, bytes, part: None };
                if let Some(base) = self.with_room(&wanted, base) {
                    self.store.add(allocation, memory, buffer, base, bytes);
                    self.note_memory(&wanted);
                }
                self.retire(instruction);
            }
            InstructionKind::Reserve { allocation, memory, buffer, bytes, alignment } => {
                let base = self.backend.reserve(memory, bytes, alignment);
                let wanted = Wanted { allocation, memory, buffer, bytes, part: None };
                if let Some(base) = self.with_room(&wanted, base) {
                    self.store.add(allocation, memory, buffer, base, bytes);
                }
                self.retire(instruction);
            }
            InstructionKind::Grow { allocation, memory, buffer, elements, bytes: range } => {
                let (part, bytes) = (Some(elements), range.end - range.start);
                self.grow(&Wanted { allocation, memory, buffer, bytes, part }, range);
                self.retire(instruction);
            }
            InstructionKind::Free { allocation, .. } => {
                debug_assert!(!self.arbiter.expects_into(allocation), "{allocation} is a target");
                let freed = self.store.free(allocation, &mut *self.backend);
                self.record_free(freed);
                self.retire(instruction);
            }
            InstructionKind::Send { to, message, source, elements, elem_size, .. } => {
                let memory = self.store.resolve(&source, elem_size);
                debug_assert!(source.extent.contains(&elements), "{elements} is not in {source:?}");
                self.sends.insert(message, instruction);
                let payload = WirePayload { message, memory, elements, elem_size };
                // SAFETY: as for jobs: the source is freed or overwritten only
                // after this instruction, which completes when it is sent.
                unsafe { self.communicator.send(to, payload) };
            }
            InstructionKind::Receive(inbound) => self.receive(instruction, &inbound),
            InstructionKind::SplitReceive(inbound) => {
                let outcome = self.arbiter.begin_split_receive(instruction, &inbound);
                self.retire(instruction);
                self.arbitrated(outcome);
            }
            InstructionKind::AwaitReceive { transfer, region } => {
                let outcome = self.arbiter.begin_await(instruction, transfer, &region);
                self.arbitrated(outcome);
            }
            InstructionKind::Horizon { task } => self.horizon(instruction, task),
            InstructionKind::Epoch { task, action } => self.epoch(instruction, task, action),
            other @ (InstructionKind::Kernel { .. }
            | InstructionKind::HostTask { .. }
            | InstructionKind::Copy { .. }) => {
                unreachable!("{instruction} needs a lane: {other:?}")
            }
        }
    }

    fn kernel(&mut self, task: TaskId, chunk: Box3, accesses: Box<[BoundAccess]>) -> Job {
        let arguments = self.arguments(accesses);
        match self.running_task(task).payload.as_deref() {
            Some(Payload::Kernel(kernel)) => {
                Job::Kernel { kernel: kernel.clone(), chunk, arguments }
            }
            _ => unreachable!("{task} comes with a kernel"),
        }
    }

    fn host_task(&mut self, task: TaskId, accesses: Box<[BoundAccess]>) -> Job {
        let arguments = self.arguments(accesses);
        match self.running_task(task).payload.take().map(Kept::into_inner) {
            Some(Payload::Host(function)) => Job::Host { function, arguments },
            _ => unreachable!("{task} comes with one host function and runs it once"),
        }
    }

    fn copy(&self, source: &Placement, target: &Placement, elements: Box3, elem_size: u64) -> Job {
        debug_assert!(source.extent.contains(&elements), "{elements} is not in {source:?}");
        debug_assert!(target.extent.contains(&elements), "{elements} is not in {target:?}");
        debug_assert_ne!(source.allocation, target.allocation);
        debug_assert_ne!(target.memory, MemoryId::USER, "the user's data is read-only");
        let source = self.store.resolve(source, elem_size);
        let target = self.store.resolve(target, elem_size);
        Job::Copy { source, target, elements, elem_size }
    }

    fn arguments(&self, accesses: Box<[BoundAccess]>) -> Arguments {
        Arguments::new(accesses, |access| {
            let placement = access.placement.as_ref()?;
            debug_assert_ne!(placement.memory, MemoryId::USER, "the user's data is read-only");
            debug_assert!(
                placement.extent.contains(&access.region.bounding_box()),
                "{} is not in {placement:?}",
                access.region
            );
            let elem_size = self.store.elem_size(access.buffer);
            Some(self.store.resolve(placement, elem_size).base)
        })
    }

    fn running_task(&mut self, task: TaskId) -> &mut RunningTask {
        self.tasks.get_mut(task.index()).expect("tasks outlive their instructions")
    }

    fn grow(&mut self, wanted: &Wanted, range: Range<u64>) {
        let base = self.store.base(wanted.allocation);
        // SAFETY: the allocation is in the store, and the range within what was
        // reserved for it.
        let provided = unsafe { self.backend.provide(wanted.memory, base, range) };
        if self.with_room(wanted, provided).is_some() {
            self.note_memory(wanted);
        }
    }

    /// Notes memory behind the addresses of an allocation.
    fn note_memory(&mut self, given: &Wanted) {
        self.store.grow(given.allocation, given.bytes);
        self.record_alloc(given.memory, given.bytes);
    }

    /// What a memory has given; fails the run if that is nothing.
    fn with_room<T>(&mut self, wanted: &Wanted, given: Result<T, AllocError>) -> Option<T> {
        given.map_err(|error| self.fail(self.out_of_memory(wanted, error))).ok()
    }

    fn receive(&mut self, instruction: InstructionId, inbound: &Inbound) {
        let outcome = self.arbiter.begin_receive(instruction, inbound);
        self.arbitrated(outcome);
    }

    pub(super) fn post_receive(&mut self, post: PostReceive) {
        self.record_post(&post);
        let PostReceive { from, message, elements, target, elem_size, .. } = post;
        debug_assert!(target.extent.contains(&elements), "{elements} is not in {target:?}");
        debug_assert_eq!(target.memory, MemoryId::HOST, "the network writes host memory");
        let memory = self.store.resolve(&target, elem_size);
        let payload = WirePayload { message, memory, elements, elem_size };
        // SAFETY: the target is used or freed only after the receive has
        // completed, which waits for every payload in its region; the arbiter
        // lets no two payloads overlap.
        unsafe { self.communicator.receive(from, payload) };
    }

    fn horizon(&mut self, instruction: InstructionId, task: TaskId) {
        let closed = self.arbiter.close_before(task);
        self.arbitrated(closed);
        self.retire(instruction);
        tracing::trace!(node = %self.id(), %task, "horizon reached");
        self.horizons += 1;
    }

    fn epoch(&mut self, instruction: InstructionId, task: TaskId, action: EpochAction) {
        match action {
            EpochAction::Init => self.epoch_reached(instruction, task, action),
            EpochAction::Barrier | EpochAction::Shutdown => {
                self.in_barrier = Some((instruction, task, action));
                self.communicator.enter_barrier(task);
            }
        }
    }
}
