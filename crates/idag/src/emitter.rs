//! The one place where instructions are written: gives them ids and edges, and notes who has used
//! which allocation since. Passes say what is done to which allocation; they know no ids but
//! those that they are told, and no edges.

use std::sync::Arc;

use celerity_cdag::{NodeId, TransferId};
use celerity_cpd::Collective;
use celerity_regions::{Box3, Region};
use celerity_tdag::{EpochAction, TaskId};

use crate::backing::{Backing, Identity};
use crate::emit::{InstructionStream, Schedule, Waits};
use crate::instruction::{
    CollectivePart, Inbound, InstructionId, InstructionKind, MemoryId, Participation, Pilot,
    Placement,
};
use crate::layout::bytes_of;
#[cfg(feature = "mutants")]
use crate::mistakes;

/// Appends instructions to a schedule.
#[derive(Debug)]
pub(crate) struct Emitter<'a> {
    stream: &'a mut InstructionStream,
    out: &'a mut Schedule,
}

/// What one message is about.
#[derive(Clone, Debug)]
pub(crate) struct Parcel {
    pub(crate) to: NodeId,
    pub(crate) transfer: TransferId,
    pub(crate) region: Region,
    pub(crate) elem_size: u64,
}

impl<'a> Emitter<'a> {
    #[inline]
    pub(crate) fn new(stream: &'a mut InstructionStream, out: &'a mut Schedule) -> Self {
        Self { stream, out }
    }

    /// The dependencies of an instruction that waits for nothing yet.
    #[cfg(feature = "mutants")]
    pub(crate) fn waits(&self) -> Waits {
        self.stream.waits()
    }

    /// Allocates room for the elements of a buffer's box.
    pub(crate) fn create(
        &mut self,
        Identity { buffer, elem_size, elem_align }: Identity,
        memory: MemoryId,
        extent: Box3,
    ) -> Backing {
        let allocation = self.stream.new_allocation();
        let kind = InstructionKind::Alloc {
            allocation,
            memory,
            buffer,
            bytes: extent.volume().saturating_mul(elem_size),
            alignment: elem_align,
        };
        #[cfg(feature = "mutants")]
        let kind = mistakes::allocated(kind, &extent);
        let waits = self.stream.waits();
        let alloc = self.stream.emit(self.out, kind, waits);
        Backing::new(Placement { allocation, memory, extent }, alloc)
    }

    /// Reserves addresses for `extent`. Nothing is provided yet.
    pub(crate) fn reserve(
        &mut self,
        Identity { buffer, elem_size, elem_align: alignment }: Identity,
        memory: MemoryId,
        extent: Box3,
    ) -> Backing {
        let allocation = self.stream.new_allocation();
        let bytes = extent.volume() * elem_size;
        let kind = InstructionKind::Reserve { allocation, memory, buffer, bytes, alignment };
        let waits = self.stream.waits();
        let reserve = self.stream.emit(self.out, kind, waits);
        Backing::growing(Placement { allocation, memory, extent }, reserve)
    }

    /// Provides memory for contiguous `elements` of an allocation that grows, of which there was
    /// none for `missing`.
    pub(crate) fn grow(
        &mut self,
        Identity { buffer, elem_size, .. }: Identity,
        backing: &mut Backing,
        missing: &Region,
        elements: Box3,
    ) {
        let Placement { allocation, memory, extent } = backing.placement;
        let bytes = bytes_of(&elements, &extent, elem_size);
        #[cfg(feature = "mutants")]
        let bytes = celerity_mutants::Mutant::GrowsShort
            .alter(bytes, |bytes| bytes.start..(bytes.end - elem_size).max(bytes.start + 1));
        let mut waits = self.stream.waits();
        // Nobody uses these elements yet: whatever reserved the addresses.
        backing.before_read(missing, &mut waits);
        let kind = InstructionKind::Grow { allocation, memory, buffer, elements, bytes };
        let id = self.stream.emit(self.out, kind, waits);
        backing.provide(missing, id);
    }

    /// Frees an allocation after its last use.
    pub(crate) fn free(&mut self, backing: &Backing) {
        let Placement { allocation, memory, .. } = backing.placement;
        let mut waits = self.stream.waits();
        backing.before_free(&mut waits);
        self.stream.emit(self.out, InstructionKind::Free { allocation, memory }, waits);
    }

    /// Copies `elements` between two allocations of a buffer.
    pub(crate) fn copy(
        &mut self,
        Identity { buffer, elem_size, .. }: Identity,
        (source, target): (&mut Backing, &mut Backing),
        elements: impl Into<Region>,
    ) {
        let region = elements.into();
        let mut waits = self.stream.waits();
        source.before_read(&region, &mut waits);
        #[cfg(feature = "mutants")]
        let mut waits =
            celerity_mutants::Mutant::CopyNotAfterProducer.alter(waits, |_| self.stream.waits());
        target.before_write(&region, &mut waits);
        let id = self.stream.frontier.next_id();
        target.note_write(id, &region);
        let read = &region;
        #[cfg(feature = "mutants")]
        let read =
            &celerity_mutants::Mutant::CopyIsNoReader.alter(read.clone(), |_| Region::empty());
        source.note_read(id, read);
        let (from, to) = (source.placement, target.placement);
        let kind = InstructionKind::Copy { buffer, source: from, target: to, region, elem_size };
        self.stream.emit(self.out, kind, waits);
    }

    /// Sends elements that lie in an allocation, and announces them.
    pub(crate) fn send(&mut self, backing: &mut Backing, parcel: Parcel) {
        let Parcel { to, transfer, region, elem_size } = parcel;
        let mut waits = self.stream.waits();
        backing.before_read(&region, &mut waits);
        #[cfg(feature = "mutants")]
        let waits =
            celerity_mutants::Mutant::SendNotAfterProducer.alter(waits, |_| self.stream.waits());
        let message = self.stream.new_message();
        let from_device = backing.placement.memory.device().is_some();
        #[cfg(feature = "mutants")]
        let waits = mistakes::departs(waits, || self.stream.waits(), from_device);
        self.out.pilots.push(Pilot { to, message, transfer, region: region.clone(), from_device });
        #[cfg(feature = "mutants")]
        mistakes::announce(self.out.pilots.last_mut());
        let source = backing.placement;
        #[cfg(feature = "mutants")]
        let source = celerity_mutants::Mutant::SendFromShiftedSource
            .alter(source, |source| Placement { extent: region.bounding_box(), ..source });
        backing.note_read(self.stream.frontier.next_id(), &region);
        let kind = InstructionKind::Send { to, message, transfer, source, region, elem_size };
        self.stream.emit(self.out, kind, waits);
    }

    /// Receives all that is inbound at once. The caller notes who has written what.
    pub(crate) fn receive(&mut self, backing: &mut Backing, inbound: Inbound) -> InstructionId {
        let waits = self.before_arrival(backing, &inbound);
        self.stream.emit(self.out, InstructionKind::Receive(inbound), waits)
    }

    /// Begins to receive what is [awaited](Self::await_receive) part by part.
    pub(crate) fn split_receive(
        &mut self,
        backing: &mut Backing,
        inbound: Inbound,
    ) -> InstructionId {
        let waits = self.before_arrival(backing, &inbound);
        self.stream.emit(self.out, InstructionKind::SplitReceive(inbound), waits)
    }

    fn before_arrival(&self, backing: &mut Backing, inbound: &Inbound) -> Waits {
        let mut waits = self.stream.waits();
        backing.before_write(&inbound.region, &mut waits);
        #[cfg(feature = "mutants")]
        let waits = mistakes::arrives(waits, || self.stream.waits(), inbound.target.memory);
        waits
    }

    /// Awaits a part of what `begin` has begun to receive.
    pub(crate) fn await_receive(
        &mut self,
        begin: InstructionId,
        transfer: TransferId,
        region: Region,
    ) -> InstructionId {
        let mut waits = self.stream.waits();
        waits.add(begin);
        self.stream.emit(self.out, InstructionKind::AwaitReceive { transfer, region }, waits)
    }

    /// Takes part in a collective that reads `provided` and writes `arriving` in allocations of one
    /// memory. The caller notes who has produced what.
    pub(crate) fn collective(
        &mut self,
        (memory, backings): (MemoryId, &mut [Backing]),
        (transfer, collective): (TransferId, &Arc<Collective>),
        (provided, arriving): (&Region, &Region),
        elem_size: u64,
    ) -> InstructionId {
        let mut waits = self.stream.waits();
        let (sources, targets) = (parts_of(backings, provided), parts_of(backings, arriving));
        for CollectivePart { placement, region } in &sources {
            backing_at(backings, placement).before_read(region, &mut waits);
        }
        for CollectivePart { placement, region } in &targets {
            backing_at(backings, placement).before_write(region, &mut waits);
        }
        #[cfg(feature = "mutants")]
        let waits =
            celerity_mutants::Mutant::ArrivesWhileRead.alter(waits, |_| self.stream.waits());
        let id = self.stream.frontier.next_id();
        for CollectivePart { placement, region } in &targets {
            backing_at(backings, placement).note_write(id, region);
        }
        for CollectivePart { placement, region } in &sources {
            backing_at(backings, placement).note_read(id, region);
        }
        let (number, collective) = (self.stream.new_collective(), collective.clone());
        let participation =
            Participation { transfer, number, collective, memory, sources, targets, elem_size };
        self.stream.emit(self.out, InstructionKind::Collective(participation), waits)
    }

    /// Appends what `bind` makes for the id that it is given, with the dependencies that it adds.
    #[inline]
    pub(crate) fn launch(
        &mut self,
        bind: impl FnOnce(InstructionId, &mut Waits) -> InstructionKind,
    ) {
        let id = self.stream.frontier.next_id();
        let mut waits = self.stream.waits();
        let kind = bind(id, &mut waits);
        self.stream.emit(self.out, kind, waits);
    }

    /// Appends a horizon.
    pub(crate) fn horizon(&mut self, task: TaskId) -> InstructionId {
        self.stream.emit_after_all(self.out, InstructionKind::Horizon { task })
    }

    /// Appends an epoch.
    pub(crate) fn epoch(&mut self, task: TaskId, action: EpochAction) -> InstructionId {
        self.stream.emit_after_all(self.out, InstructionKind::Epoch { task, action })
    }
}

/// The allocation that a placement names.
fn backing_at<'a>(backings: &'a mut [Backing], placement: &Placement) -> &'a mut Backing {
    let found = backings.iter_mut().find(|backing| backing.placement == *placement);
    found.unwrap_or_else(|| unreachable!("{} is one of them", placement.allocation))
}

/// Where the elements of a region lie: of an allocation that grows, those that it holds.
fn parts_of(backings: &[Backing], region: &Region) -> Box<[CollectivePart]> {
    let part = |backing: &Backing| {
        let placement = backing.placement;
        let held = region.boxes().iter().flat_map(|part| backing.held_in(part));
        let region = Region::from_boxes(held);
        (!region.is_empty()).then_some(CollectivePart { placement, region })
    };
    backings.iter().filter_map(part).collect()
}
