//! A dry run: a node that goes through its schedule as it always does, and takes each instruction for
//! done as soon as it may start. Only what the program may wait for is delivered: zeroes.
#![allow(unsafe_code)]

use celerity_idag::{BoundAccess, InstructionId, InstructionKind};
use celerity_tdag::TaskId;

use super::Executor;
use super::hardware::Wanted;
use super::peers::Barrier;
use crate::backend::{AllocError, JobFailure};
use crate::bound::BoundMemory;
use crate::contain::caught;
use crate::error::RunError;
use crate::memory::ZeroedMemory;

impl Executor {
    /// The same node, which performs nothing: it allocates, computes, copies, sends and receives
    /// nothing, and calls no function of the program but those that
    /// [deliver](crate::HostFunction::delivering), with zeroes. Its schedule may be that of one of
    /// many nodes then, while its network is that of one.
    #[must_use]
    pub fn dry(mut self) -> Self {
        self.is_dry = true;
        self
    }

    /// What a dry run does with an instruction that may start.
    pub(super) fn skip(&mut self, instruction: InstructionId, kind: InstructionKind) {
        match kind {
            InstructionKind::Horizon { task } => self.horizon(instruction, task),
            InstructionKind::Epoch { task, action } => {
                self.epoch(Barrier { instruction, task, action });
            }
            kind => {
                if let InstructionKind::HostTask { task, accesses, .. } = &kind
                    && self.tasks.delivers(*task)
                    && let Err(error) = self.answer(instruction, *task, accesses)
                {
                    return self.fail(error);
                }
                if let Some((task, _)) = self.flow.run_by(instruction) {
                    self.tasks.instruction_completed(task);
                }
                self.retire(instruction);
            }
        }
    }

    /// Lets a fence, or what else delivers, copy zeroes.
    fn answer(
        &mut self,
        instruction: InstructionId,
        task: TaskId,
        accesses: &[BoundAccess],
    ) -> Result<(), RunError> {
        let zeroes = accesses.iter().map(|access| self.zeroes(access));
        let zeroes = zeroes.collect::<Result<Vec<_>, _>>()?;
        let memory: Vec<_> = accesses.iter().zip(&zeroes).map(bound).collect();
        let function = self.tasks.host_function(task);
        // SAFETY: one for each access of the task that it came with, in order.
        let outcome = caught(|| unsafe { function.call(&memory) });
        let failure = match outcome {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => JobFailure::Returned(error),
            Err(message) => JobFailure::Panicked(message),
        };
        Err(self.situation().failed(Some((task, None)), instruction, failure))
    }

    /// As many zeroed elements as an access touches.
    fn zeroes(&self, access: &BoundAccess) -> Result<ZeroedMemory, RunError> {
        let part = access.region.bounding_box();
        let (size, alignment) = self.hardware.layout_of(access.buffer);
        let bytes = part.volume().saturating_mul(size);
        ZeroedMemory::new(bytes, alignment).ok_or_else(|| match &access.placement {
            Some(placement) => {
                let wanted = Wanted {
                    allocation: placement.allocation,
                    memory: placement.memory,
                    buffer: access.buffer,
                    bytes,
                    part: Some(part),
                };
                self.situation().out_of_memory(&wanted, AllocError { resident: 0, free: None })
            }
            None => unreachable!("there is room for no elements"),
        })
    }
}

/// An access bound to zeroes.
fn bound<'a>((access, memory): (&'a BoundAccess, &'a ZeroedMemory)) -> BoundMemory<'a> {
    let region = &access.region;
    // SAFETY: `Executor::zeroes` has made as many elements as the bounding box has, aligned for the
    // buffer's, and they are nobody else's; elements are plain old data, which may be zero.
    unsafe { BoundMemory::new(memory.base().as_ptr(), region.bounding_box(), region) }
}
