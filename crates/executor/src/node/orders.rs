//! What a scheduler puts out, on its way into the parts of a node.

use celerity_idag::Instruction;

use super::tasks::HostLanes;
use super::{Executor, Phase};
use crate::contain::end;
use crate::scheduler::{Batch, SchedulerMessage};

impl Executor {
    /// Looks at all orders that there are; after a failure they wait until it is known
    /// everywhere. Returns whether there were any.
    pub(super) fn take_orders(&mut self) -> bool {
        let any = !self.inbox.is_empty();
        while let Some(order) = self.inbox.pop_front() {
            match (self.phase(), order) {
                (_, SchedulerMessage::Closed) => self.course.close(),
                (Phase::Running, order) => self.obey(order),
                // Payloads must outlive the publication of the error: whoever
                // waits for one looks for it.
                (Phase::Failing, order) => {
                    self.inbox.push_front(order);
                    return false;
                }
                (Phase::Stopped | Phase::Finished, order) => drop(end(order)),
            }
        }
        any
    }

    fn obey(&mut self, order: SchedulerMessage) {
        match order {
            SchedulerMessage::Buffer { info, element_type, mut initial } => {
                let contents = initial.as_ref().and_then(|(_, data)| data.contents());
                self.peers.buffer(&info, element_type, contents);
                self.monitor.buffer(&info);
                if self.is_dry {
                    drop(end(initial.take()));
                }
                match self.hardware.add_buffer(info, initial) {
                    Ok(Some((memory, bytes))) => self.monitor.allocated(memory, bytes),
                    Ok(None) => {}
                    Err(error) => self.fail(error),
                }
            }
            SchedulerMessage::Renamed(info) => {
                self.peers.renamed(&info);
                self.hardware.rename_buffer(info);
            }
            SchedulerMessage::Dropped(buffer) => {
                self.leaving.push_back((self.flow.next_admitted(), buffer));
            }
            SchedulerMessage::Object(object) => self.peers.object(object),
            SchedulerMessage::Task { task, payload, batch } => {
                // One that could not be scheduled is an error, which comes next.
                let answers = batch.as_ref().map(|batch| batch.answers);
                self.peers.task(&task, answers).unwrap_or_else(|error| self.fail(error));
                self.tasks.begin(task, payload);
                if let Some(batch) = batch {
                    self.admit(batch);
                }
            }
            SchedulerMessage::Batch(batch) => self.admit(batch),
            SchedulerMessage::Fail(error) => self.fail(*error),
            SchedulerMessage::Closed => unreachable!("handled in every state"),
        }
    }

    /// Forgets dropped buffers that nothing touches any more.
    pub(super) fn forget_buffers(&mut self) {
        while let Some(&(end, buffer)) = self.leaving.front() {
            if self.flow.oldest() < end {
                return;
            }
            self.leaving.pop_front();
            self.hardware.forget_buffer(buffer);
            self.monitor.forget_buffer(buffer);
        }
    }

    /// Sends pilots and hands instructions to the engine.
    fn admit(&mut self, mut batch: Batch) {
        if !self.is_dry {
            batch.schedule.pilots.iter().for_each(|pilot| self.peers.announce(pilot));
        }
        for instruction in batch.schedule.instructions.drain(..) {
            self.admit_one(instruction);
        }
        self.tasks.caught_up();
        batch.ended.drain(..).for_each(|task| self.tasks.end(task));
        self.progress.hold_horizons(batch.held_horizons);
        self.spent.push(batch);
    }

    fn admit_one(&mut self, instruction: Instruction) {
        let runs = instruction.kind.effects().runs;
        let lanes = runs.map_or(HostLanes::OfKind, |run| self.tasks.add_instruction(run.task));
        self.monitor.admitted(&instruction);
        if let Some(device) = self.flow.admit(instruction, lanes, self.now) {
            self.monitor.known(device);
        }
    }
}
