//! What commands that are held back will need: the lookahead's view of memory
//! (instruction-graph preprint, §4.3). Owns who will have written what by the time such a command
//! is generated. Decides nothing of when that is.

use celerity_cdag::{Command, CommandKind};
use celerity_regions::Region;
use celerity_tdag::BufferId;

use crate::allocate::anticipate;
use crate::buffer::{BufferState, Buffers};
use crate::collective::{Venue, exchange_boxes};
use crate::instruction::MemoryId;
use crate::links::Links;
use crate::pieces::{compact_boxes, contiguous_boxes, departure_boxes};
use crate::plan::Launches;
use crate::staging::staged;
use crate::wires::DeviceWires;

/// What will be written where by commands that are held back, oldest first.
/// Empty if all devices are linked: then nobody asks.
#[derive(Debug, Default)]
pub(crate) struct Forecast {
    writes: Vec<(BufferId, MemoryId, Region)>,
}

impl Forecast {
    /// Forgets everything: nothing is held back any more.
    pub(crate) fn clear(&mut self) {
        self.writes.clear();
    }

    /// Notes what the next command will need in one piece. Whether that is more
    /// than what is allocated, or noted already.
    pub(crate) fn anticipate(
        &mut self,
        buffers: &mut Buffers,
        (links, wires, venue): (&Links, Option<&DeviceWires>, &Venue),
        command: &Command,
        launches: &Launches,
    ) -> bool {
        match &command.kind {
            CommandKind::Execute { .. } => self.anticipate_launches(buffers, links, launches),
            CommandKind::Push { transfer, targets } => {
                let reached = |to| wires.is_some_and(|wires| wires.reach(to));
                let from_host = targets.iter().filter(|(to, _)| !reached(*to));
                let buffer = buffers.get_mut(transfer.buffer);
                let boxes = departure_boxes(from_host.map(|(_, region)| region), buffer.elem_size);
                anticipate(buffer, MemoryId::HOST, &boxes)
            }
            CommandKind::AwaitPush { transfer, region } => {
                self.note_write(links, transfer.buffer, MemoryId::HOST, region);
                let buffer = buffers.get_mut(transfer.buffer);
                if wires.is_some_and(|wires| wires.may_arrive(buffer, links, region)) {
                    return false;
                }
                let boxes = contiguous_boxes([region], buffer.elem_size);
                anticipate(buffer, MemoryId::HOST, &boxes)
            }
            CommandKind::Collective { transfer, collective } => {
                let arriving = collective.arriving_at(venue.local);
                let buffer = buffers.get_mut(transfer.buffer);
                let memory = venue.of(collective, (&buffer.extent, buffer.elem_size), links);
                self.note_write(links, transfer.buffer, memory, &arriving);
                anticipate(buffer, memory, &exchange_boxes(collective, venue.local))
            }
            CommandKind::Horizon | CommandKind::Epoch(_) => false,
        }
    }

    fn anticipate_launches(
        &mut self,
        buffers: &mut Buffers,
        links: &Links,
        launches: &Launches,
    ) -> bool {
        let mut allocates = false;
        for (memory, accesses) in launches.by_memory() {
            for access in accesses {
                let buffer = buffers.get_mut(access.buffer);
                allocates |= anticipate(buffer, memory, &[access.bounds]);
            }
        }
        if links.are_complete() {
            return allocates;
        }
        for id in launches.buffers() {
            let buffer = buffers.get_mut(id);
            let boxes = compact_boxes(&self.staged_by(launches, buffer, links));
            allocates |= anticipate(buffer, MemoryId::HOST, &boxes);
        }
        for (memory, accesses) in launches.by_memory() {
            for access in accesses.iter().filter(|access| access.mode.writes()) {
                self.note_write(links, access.buffer, memory, &access.region);
            }
        }
        allocates
    }

    fn note_write(&mut self, links: &Links, buffer: BufferId, memory: MemoryId, region: &Region) {
        if !links.are_complete() {
            self.writes.push((buffer, memory, region.clone()));
        }
    }

    /// What launches read of a buffer and will have to get through host memory.
    fn staged_by(&self, launches: &Launches, buffer: &BufferState, links: &Links) -> Region {
        let mut all = Region::empty();
        for (memory, access) in launches.reading().filter(|(_, access)| access.buffer == buffer.id)
        {
            all.union_with(&self.staged(buffer, links, memory, &access.region));
        }
        all
    }

    /// As [`staged`], once everything that is held back has been generated.
    fn staged(
        &self,
        buffer: &BufferState,
        links: &Links,
        memory: MemoryId,
        region: &Region,
    ) -> Region {
        let (mut through_host, mut rest) = (Region::empty(), region.clone());
        for (_, origin, written) in self.writes.iter().rev().filter(|write| write.0 == buffer.id) {
            if rest.is_empty() {
                break;
            }
            if !links.reach(*origin, memory) {
                through_host.union_with(&rest.intersection(written));
            }
            rest.subtract(written);
        }
        through_host.union_with(&staged(buffer, links, memory, &rest));
        through_host
    }
}
