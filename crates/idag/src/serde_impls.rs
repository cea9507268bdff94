//! Serialisation of instructions and pilots, and what makes their data valid.
//!
//! Owns the invariants of the data at rest: a value that breaks one is an error of deserialisation.
//! Refuses to know any format, that of pilots on the wire included.

use celerity_cpd::Ends;
use celerity_tdag::{__serde_checked, Conflicts};

use crate::effects::{Effects, Elements, Lifetime, LifetimeChange, TaskPart};
use crate::instruction::{
    BoundAccess, CollectivePart, Inbound, Instruction, InstructionId, InstructionKind,
    Participation, Pilot, Placement,
};

__serde_checked!(BoundAccess, check_access);
__serde_checked!(CollectivePart, check_collective_part);
__serde_checked!(Inbound, check_inbound);
__serde_checked!(Instruction, check_instruction);
__serde_checked!(InstructionKind, check_kind);
__serde_checked!(Participation, check_participation);
__serde_checked!(Pilot, check_pilot);
__serde_checked!(Placement, check_placement);

fn check_placement(placement: &Placement) -> Result<(), String> {
    match placement.extent.is_empty() {
        true => Err(format!("{} holds nothing", placement.allocation)),
        false => Ok(()),
    }
}

fn check_access(access: &BoundAccess) -> Result<(), String> {
    let BoundAccess { buffer, placement, region } = access;
    match placement {
        Some(placement) => inside(Elements::Region(region), placement),
        None if region.is_empty() => Ok(()),
        None => Err(format!("{region} of {buffer} is accessed, but lies nowhere")),
    }
}

fn check_inbound(inbound: &Inbound) -> Result<(), String> {
    check_elem_size(inbound.elem_size)?;
    inside(Elements::Region(&inbound.region), &inbound.target)
}

fn check_collective_part(part: &CollectivePart) -> Result<(), String> {
    inside(Elements::Region(&part.region), &part.placement)
}

fn check_participation(participation: &Participation) -> Result<(), String> {
    let Participation { transfer, collective, elem_size, memory, sources, targets, .. } =
        participation;
    check_elem_size(*elem_size)?;
    let mut parts = sources.iter().chain(targets);
    if let Some(part) = parts.find(|part| part.placement.memory != *memory) {
        return Err(format!("{} of {transfer} is not in {memory}", part.placement.allocation));
    }
    match collective.from {
        Ends::All => Err(format!("all nodes have all of {transfer}, which need not move")),
        Ends::One(_) | Ends::Each(_) => Ok(()),
    }
}

fn check_instruction(instruction: &Instruction) -> Result<(), String> {
    let Instruction { id, dependencies, .. } = instruction;
    let mut sorted = dependencies.to_vec();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("{id} waits twice for {}", pair[0]));
    }
    let conflicts = Conflicts::of(instruction.effects().conflicts.iter().copied());
    let start = InstructionId::from_index(0);
    if conflicts.as_slice() != instruction.effects().conflicts {
        return Err(format!("{id} has conflicts out of order"));
    }
    if let Some((with, why)) = conflicts.broken_by(*id, start, |on| dependencies.contains(&on)) {
        return Err(format!("{id} conflicts with {with}, {why}"));
    }
    match sorted.last() {
        Some(newest) if newest >= id => Err(format!("{id} waits for {newest}, which is not older")),
        _ => Ok(()),
    }
}

fn check_kind(kind: &InstructionKind) -> Result<(), String> {
    let effects = kind.effects();
    if let Some(lifetime) = &effects.lifetime {
        check_lifetime(lifetime)?;
    }
    check_moved(&effects)?;
    match (effects.exchange, effects.runs) {
        (Some(exchange), _) if exchange.elements.is_empty() => {
            Err(format!("nothing of {} is awaited", exchange.transfer))
        }
        (_, Some(TaskPart { task, chunk: Some(chunk), .. })) if chunk.is_empty() => {
            Err(format!("a {} of {task} has no items", effects.verb))
        }
        _ => Ok(()),
    }
}

fn check_lifetime(lifetime: &Lifetime<'_>) -> Result<(), String> {
    let allocation = lifetime.allocation;
    match lifetime.change {
        LifetimeChange::Made { bytes, alignment, .. } => {
            match bytes > 0 && alignment.is_power_of_two() {
                true => Ok(()),
                false => Err(format!("{allocation} has {bytes} bytes aligned to {alignment}")),
            }
        }
        LifetimeChange::Grown { elements, bytes, .. } => {
            match !elements.is_empty() && bytes.start < bytes.end {
                true => Ok(()),
                false => Err(format!("{allocation} grows by {elements} in bytes {bytes:?}")),
            }
        }
        LifetimeChange::Ended => Ok(()),
    }
}

/// What is moved has a size, and lies where it comes from and where it goes: two places.
fn check_moved(effects: &Effects<'_>) -> Result<(), String> {
    if let (Some(source), Some(target)) = (&effects.source, &effects.target)
        && source.placement.allocation == target.placement.allocation
    {
        return Err(format!("{} is copied to itself", source.placement.allocation));
    }
    effects.elem_size.map_or(Ok(()), check_elem_size)?;
    let mut moved = [effects.source, effects.target].into_iter().flatten();
    moved.try_for_each(|touch| inside(touch.elements, touch.placement))
}

fn check_pilot(pilot: &Pilot) -> Result<(), String> {
    match pilot.region.boxes().len() {
        0 => Err(format!("{} brings nothing", pilot.message)),
        1..=Pilot::MOST_BOXES => Ok(()),
        boxes => Err(format!("{} brings {boxes} boxes, more than a message may", pilot.message)),
    }
}

fn check_elem_size(elem_size: u64) -> Result<(), String> {
    match elem_size {
        0 => Err("elements have no bytes".to_owned()),
        _ => Ok(()),
    }
}

/// Whether some elements, but not none, lie in an allocation.
fn inside(elements: Elements<'_>, placement: &Placement) -> Result<(), String> {
    match !elements.is_empty() && placement.extent.contains(&elements.bounding_box()) {
        true => Ok(()),
        false => Err(outside(elements, placement)),
    }
}

fn outside(elements: Elements<'_>, placement: &Placement) -> String {
    let Placement { allocation, memory, extent } = placement;
    format!("{elements} does not lie in {allocation} of {memory}, which holds {extent}")
}
