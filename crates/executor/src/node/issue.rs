//! Starting instructions: what each kind of them asks of a node's parts.
#![allow(unsafe_code)]

use celerity_idag::{
    CollectivePart, Inbound, InstructionId, InstructionKind, MemoryId, Participation, Placement,
};
use celerity_regions::Box3;
use celerity_tdag::{EpochAction, TaskId};

use super::Executor;
use super::flow::Start;
use super::hardware::Wanted;
use super::peers::{Barrier, Leaving};
use crate::arbiter::PostReceive;
use crate::backend::{AllocError, Job};
use crate::communicator::{CollectiveExchange, MemoryPart};
use crate::engine::{LaneId, LaneJob};
use crate::error::RunError;
use crate::pulse::UserCall;
use crate::wires::MemoryArray;
use crate::work::{HostCall, HostFunction};

impl Executor {
    /// Starts everything that can start.
    pub(super) fn issue_all(&mut self) {
        while self.course.is_running()
            && let Some(Start { instruction, kind, lane, after }) = self.flow.next(self.now)
        {
            if self.is_dry {
                self.skip(instruction, kind);
                continue;
            }
            let (situation, monitor) = self.observed();
            monitor.issued(instruction, lane, &kind, |effects| situation.subject(effects));
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
                self.monitor.launched(instruction, &accesses);
                call = Some(UserCall::Kernel(task));
                let arguments = self.hardware.arguments(accesses);
                Job::Kernel { kernel: self.tasks.kernel(task), chunk, arguments }
            }
            InstructionKind::HostTask { task, chunk, accesses, .. } => {
                call = Some(UserCall::Kernel(task));
                let arguments = self.hardware.arguments(accesses);
                Job::Host { function: self.host_function(task, chunk), arguments }
            }
            InstructionKind::Copy { source, target, region, elem_size, .. } => {
                self.hardware.copy(&source, &target, region, elem_size)
            }
            other => unreachable!("{instruction} has no lane: {other:?}"),
        };
        // SAFETY: allocations stay in the store until a *free* is issued, which
        // the graph orders behind all users; after a failure nothing is freed
        // before the backend is quiet. Conflicting accesses are ordered by the
        // graph's dependencies, which the engine keeps by completion, by the
        // order of one lane, or by letting lanes wait.
        let enqueue = || unsafe { self.hardware.enqueue(lane, instruction, job, after) };
        match call {
            // It may be run at once.
            Some(call) => self.calls.during(call, enqueue),
            None => enqueue(),
        }
    }

    fn issue_here(&mut self, instruction: InstructionId, kind: InstructionKind) {
        match kind {
            InstructionKind::Alloc { allocation, memory, buffer, bytes, alignment } => {
                let wanted = Wanted { allocation, memory, buffer, bytes, part: None };
                let made = self.hardware.alloc(&wanted, alignment);
                if self.has_room(&wanted, made) {
                    self.monitor.allocated(memory, bytes);
                }
                self.retire(instruction);
            }
            InstructionKind::Reserve { allocation, memory, buffer, bytes, alignment } => {
                let wanted = Wanted { allocation, memory, buffer, bytes, part: None };
                let made = self.hardware.reserve(&wanted, alignment);
                self.has_room(&wanted, made);
                self.retire(instruction);
            }
            InstructionKind::Grow { allocation, memory, buffer, elements, bytes: range } => {
                let (part, bytes) = (Some(elements), range.end - range.start);
                let wanted = Wanted { allocation, memory, buffer, bytes, part };
                let grown = self.hardware.grow(&wanted, range);
                if self.has_room(&wanted, grown) {
                    self.monitor.allocated(memory, bytes);
                }
                self.retire(instruction);
            }
            InstructionKind::Free { allocation, .. } => {
                debug_assert!(!self.peers.expect_into(allocation), "{allocation} is a target");
                let (memory, bytes) = self.hardware.free(allocation);
                self.monitor.freed(memory, bytes);
                self.retire(instruction);
            }
            InstructionKind::Send { to, message, source, region, elem_size, .. } => {
                let memory = self.hardware.array(&source, &region.bounding_box(), elem_size);
                let leaving = Leaving { message, at: source.memory, memory, region, elem_size };
                // SAFETY: as for jobs: the source is freed or overwritten only
                // after this instruction, which completes when it is sent.
                unsafe { self.peers.send(instruction, to, leaving) };
            }
            InstructionKind::Receive(inbound) => self.receive(instruction, &inbound),
            InstructionKind::SplitReceive(inbound) => {
                let begun = self.peers.begin_split_receive(instruction, &inbound);
                self.retire(instruction);
                self.go_on_receiving(begun);
            }
            InstructionKind::Collective(part) => self.participate(instruction, part),
            InstructionKind::AwaitReceive { transfer, region } => {
                let begun = self.peers.begin_await(instruction, transfer, &region);
                self.go_on_receiving(begun);
            }
            InstructionKind::Horizon { task } => self.horizon(instruction, task),
            InstructionKind::Epoch { task, action } => {
                self.epoch(Barrier { instruction, task, action });
            }
            other @ (InstructionKind::Kernel { .. }
            | InstructionKind::HostTask { .. }
            | InstructionKind::Copy { .. }) => {
                unreachable!("{instruction} needs a lane: {other:?}")
            }
        }
    }

    /// Whether a memory had room; fails the run if not.
    fn has_room(&mut self, wanted: &Wanted, given: Result<(), AllocError>) -> bool {
        match given {
            Ok(()) => true,
            Err(error) => {
                self.fail(self.situation().out_of_memory(wanted, error));
                false
            }
        }
    }

    /// What a host task calls for one of its chunks, or for all there is of it.
    fn host_function(&mut self, task: TaskId, chunk: Box3) -> HostFunction {
        let Some((kernel, group)) = self.tasks.host_kernel(task) else {
            return self.tasks.host_function(task);
        };
        let (node, nodes) = (self.peers.local(), self.peers.nodes());
        let collective = group.map(|group| self.peers.converse(group, task));
        kernel.on(HostCall { chunk, node, nodes, collective })
    }

    /// Begins what can begin of collectives, in the order that all nodes have.
    fn participate(&mut self, instruction: InstructionId, part: Participation) {
        let number = part.number;
        self.turns.ready(number, (instruction, part));
        while let Some((instruction, part)) = self.turns.next() {
            let Participation { transfer, collective, memory: at, sources, targets, .. } = part;
            let elem_size = part.elem_size;
            let memory = |parts: &[CollectivePart]| {
                let part = |CollectivePart { placement, region }: &CollectivePart| MemoryPart {
                    memory: self.hardware.array(placement, &region.bounding_box(), elem_size),
                    region: region.clone(),
                };
                parts.iter().map(part).collect()
            };
            let (sources, targets) = (memory(&sources), memory(&targets));
            let exchange =
                CollectiveExchange { transfer, collective, elem_size, at, sources, targets };
            // SAFETY: as for sends of the sources, and receives of the targets: whoever uses or
            // frees them comes after this instruction, which completes when the exchange is over.
            unsafe { self.peers.begin_exchange(instruction, exchange) };
        }
    }

    fn receive(&mut self, instruction: InstructionId, inbound: &Inbound) {
        let begun = self.peers.begin_receive(instruction, inbound);
        self.go_on_receiving(begun);
    }

    /// Passes on what lets receives go on, or fails with what is wrong with it.
    pub(super) fn go_on_receiving(&mut self, outcome: Result<(), RunError>) {
        if let Err(error) = outcome {
            return self.fail(error);
        }
        while let Some(post) = self.peers.next_post() {
            self.post_receive(&post);
        }
        while let Some(instruction) = self.peers.next_received() {
            self.retire(instruction);
            #[cfg(feature = "mutants")]
            if celerity_mutants::Mutant::OneReceivePerArrival.is_active() {
                break;
            }
        }
    }

    fn post_receive(&mut self, post: &PostReceive) {
        self.monitor.posted(post, || self.hardware.user_name(post.transfer.buffer));
        let PostReceive { from, message, ref parts, elem_size, .. } = *post;
        let place = |(elements, target): &(Box3, Placement)| {
            debug_assert_ne!(target.memory, MemoryId::USER, "the user's data is read-only");
            let array = self.hardware.array(target, elements, elem_size);
            (*elements, MemoryArray { at: target.memory, array })
        };
        let places = parts.iter().map(place).collect();
        // SAFETY: the target is used or freed only after the receive has
        // completed, which waits for every payload in its region; the arbiter
        // lets no two payloads overlap.
        unsafe { self.peers.receive((from, message), places, elem_size) };
    }

    pub(super) fn horizon(&mut self, instruction: InstructionId, task: TaskId) {
        let closed = self.peers.close_before(task);
        self.go_on_receiving(closed);
        self.retire(instruction);
        tracing::trace!(node = %self.peers.local(), %task, "horizon reached");
        self.horizons += 1;
    }

    pub(super) fn epoch(&mut self, barrier: Barrier) {
        match barrier.action {
            EpochAction::Init => self.epoch_reached(barrier),
            EpochAction::Barrier | EpochAction::Shutdown => self.peers.enter_barrier(barrier),
        }
    }
}
