//! What deliberate bugs make of the values that they spoil. Compiled only to test the tests.

use celerity_mutants::Mutant;
use celerity_regions::{Box3, Region, RegionMap};

use crate::emit::Waits;
use crate::instruction::{InstructionKind, MemoryId, MessageId, Pilot};
use crate::stages::Stage;
use crate::version::Version;

pub(crate) fn allocated(kind: InstructionKind, extent: &Box3) -> InstructionKind {
    Mutant::BytesForgetElementSize.alter(kind, |kind| match kind {
        InstructionKind::Alloc { allocation, memory, buffer, alignment, .. } => {
            let bytes = extent.volume();
            InstructionKind::Alloc { allocation, memory, buffer, bytes, alignment }
        }
        other => other,
    })
}

/// Where a copy takes `version` from.
pub(crate) fn misplaced(has_initial_data: bool, version: &Version) -> Version {
    Mutant::CopyOfInitialData.alter(*version, |version| match has_initial_data {
        true => Version { origin: MemoryId::USER, ..version },
        false => version,
    })
}

/// Forgets who reads a stage that is about to be filled.
pub(crate) fn refill(mut waits: Waits, mut stage: Stage) -> Stage {
    if Mutant::StageRefilledWhileRead.is_active() {
        let all = Region::from(stage.backing.placement.extent);
        stage.backing.before_write(&all, &mut waits);
    }
    stage
}

/// Notes a new version of `region`, as if those who have the old one had it.
pub(crate) fn produce(versions: &mut RegionMap<Version>, region: &Region, new: Version) {
    versions.modify(region, |old| match old.is_void() {
        true => new,
        false => Version { holders: old.holders.with(new.origin), ..new },
    });
}

/// What a send waits for.
pub(crate) fn departs(waits: Waits, none: impl FnOnce() -> Waits, from_device: bool) -> Waits {
    match from_device {
        true => Mutant::DeviceSendNotAfterKernel.alter(waits, |_| none()),
        false => waits,
    }
}

/// What a receive waits for.
pub(crate) fn arrives(waits: Waits, none: impl FnOnce() -> Waits, at: MemoryId) -> Waits {
    match at.device() {
        Some(_) => Mutant::ArrivesOnDeviceWhileRead.alter(waits, |_| none()),
        None => waits,
    }
}

pub(crate) fn announce(pilot: Option<&mut Pilot>) {
    let Some(pilot) = pilot else { return };
    if Mutant::WireUnannounced.is_active() {
        pilot.from_device = false;
    }
    if Mutant::PilotOfPreviousMessage.is_active() {
        pilot.message = MessageId::from_index(pilot.message.index().saturating_sub(1));
    }
    if Mutant::PilotShortByOne.is_active() {
        let (min, mut max) = pilot.region.bounding_box().corners();
        max[0] = (max[0] - 1).max(min[0] + 1);
        pilot.region = Box3::new(min, max).into();
    }
}
