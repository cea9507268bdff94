//! What reading and writing memory means: the right version is there, and
//! whoever conflicts has been waited for.

use celerity_idag::{AllocationId, MemoryId, Placement};
use celerity_regions::Box3;

use crate::batch::TaskCheck;
use crate::buffers::TrackedBuffer;
use crate::instructions::Instructions;
use crate::ledger::{AbstractValues, Cell, Clash, Ledger};
use crate::violation::{Check, Hazard, Violation};

impl Instructions {
    /// `part` holds in this allocation what sequential execution has.
    pub(crate) fn check_current(
        &self,
        buffer: &TrackedBuffer,
        me: u64,
        placement: &Placement,
        part: &Box3,
    ) -> Check {
        let Some(ledger) = self.ledger(placement.allocation) else { return Ok(()) };
        ledger.compare(&buffer.truth, part, |part, cell, expected| {
            if cell.version == expected {
                return Ok(());
            }
            let reader = self.window.vertex(me);
            let place = buffer.place_in(part, placement.memory, placement.allocation);
            let writer = cell.writer.map(|index| self.window.vertex(index));
            let found = cell.version;
            Err(Box::new(Violation::Stale { reader, place, expected, found, writer }))
        })
    }

    /// Instruction `me` reads `part`: it waits for the last writer.
    pub(crate) fn read(
        &mut self,
        buffer: &TrackedBuffer,
        me: u64,
        placement: &Placement,
        part: &Box3,
    ) -> Check {
        let Self { window, allocations, .. } = self;
        let Some(order) = window.order() else { return Ok(()) };
        let allocation = allocations.get_mut(&placement.allocation);
        let Some(ledger) = allocation.and_then(|found| found.ledger_mut()) else { return Ok(()) };
        let read = ledger.read(order, me, part);
        let id = (placement.memory, placement.allocation);
        read.map_err(|clash| self.unordered(buffer, me, id, clash))
    }

    /// Instruction `me` overwrites `part`: it waits for the last writer and its
    /// readers, and leaves `versions`.
    pub(crate) fn write(
        &mut self,
        buffer: &TrackedBuffer,
        batch: &TaskCheck<'_>,
        me: u64,
        placement: &Placement,
        part: &Box3,
        versions: &AbstractValues,
    ) -> Check {
        let Placement { allocation: id, memory, extent } = *placement;
        let vertex = self.window.vertex(me);
        if memory == MemoryId::USER {
            let (place, why) = (buffer.place_in(extent, memory, id), "M0 is read only");
            return Err(Violation::BadPlacement { vertex, place, why }.into());
        }
        let (Some(order), Some(ledger)) = (self.window.order(), self.ledger(id)) else {
            return Ok(());
        };
        let checked = ledger.check_write(order, me, part);
        checked.map_err(|clash| self.unordered(buffer, me, (memory, id), clash))?;
        ledger.visit(part, |part, cell| match self.unread_copy(batch, cell) {
            Some(copy) => {
                let (copy, place) = (self.window.vertex(copy), buffer.place_in(part, memory, id));
                Violation::Unread { copy, overwriter: vertex, place }.note(&self.waste)
            }
            None => Ok(()),
        })?;
        let allocation = self.allocations.get_mut(&id);
        if let Some(ledger) = allocation.and_then(|found| found.ledger_mut()) {
            versions.iter().for_each(|(part, version)| ledger.write(me, part, *version));
        }
        Ok(())
    }

    /// Data has arrived in `part`: `me` waits for the split receive.
    pub(crate) fn arrive(
        &mut self,
        buffer: &TrackedBuffer,
        me: u64,
        id: AllocationId,
        part: &Box3,
    ) -> Check {
        let (Some(order), Some(ledger)) = (self.window.order(), self.ledger(id)) else {
            return Ok(());
        };
        let memory = self.allocations.get(&id).map_or(MemoryId::HOST, |found| found.memory);
        ledger.visit(part, |part, cell| match cell.writer {
            Some(earlier) if !order.waits_for(me, earlier) => {
                let clash = Clash { earlier, hazard: Hazard::ReadAfterWrite, part };
                Err(self.unordered(buffer, me, (memory, id), clash))
            }
            _ => Ok(()),
        })?;
        let versions = buffer.truth.versions(part);
        let allocation = self.allocations.get_mut(&id);
        if let Some(ledger) = allocation.and_then(|found| found.ledger_mut()) {
            versions.iter().for_each(|(part, version)| ledger.write(me, part, *version));
        }
        Ok(())
    }

    /// Who has touched what in an allocation; `None` if that is not tracked.
    pub(crate) fn ledger(&self, id: AllocationId) -> Option<&Ledger> {
        self.window.order()?;
        self.allocations.get(&id)?.ledger()
    }

    /// The copy that has written a cell for the same command as the instruction
    /// in hand, if nobody has read it. Pushes end with sends and come first, so
    /// whatever comes after the last send serves the execute command.
    fn unread_copy(&self, batch: &TaskCheck<'_>, cell: &Cell) -> Option<u64> {
        let begin = batch.last_send.map_or(batch.first, |send| send + 1);
        let writer = cell.writer.filter(|&writer| writer >= begin && cell.readers.is_empty())?;
        self.window.get(writer)?.label.copies.then_some(writer)
    }
}
