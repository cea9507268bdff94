//! Pass: copies between allocations, with the stops on their way that `linearize` asks for. Owns
//! the order in which stages are filled; which of them there are is the business of `stages`.

use celerity_regions::Box3;

use crate::backing::{Backing, Identity};
use crate::backings::Backings;
use crate::emitter::Emitter;
use crate::instruction::MemoryId;
use crate::linearize::Stops;
use crate::links::Links;
#[cfg(feature = "mutants")]
use crate::mistakes;
use crate::pieces::Boxes;
use crate::stages::{Stage, Stages};

/// Copies `elements` from one allocation to another by way of `stops`. What
/// a stage has already, since another device asked for it, is not gathered
/// twice.
pub(crate) fn copy_through(
    emitter: &mut Emitter<'_>,
    stages: &mut Stages,
    identity: Identity,
    stops: &Stops,
    (source, target): (&mut Backing, &mut Backing),
    elements: Box3,
) {
    let first = stops.iter().rposition(|&memory| stages.have(memory, &elements)).unwrap_or(0);
    let mut last: Option<Stage> = None;
    for &memory in &stops[first..] {
        let mut stage = stage_for(emitter, stages, identity, memory, elements);
        let from = last.as_mut().map_or(&mut *source, |stage| &mut stage.backing);
        for part in stage.missing().boxes() {
            emitter.copy(identity, (&mut *from, &mut stage.backing), *part);
        }
        if let Some(passed) = last.replace(stage) {
            stages.put(passed);
        }
    }
    let from = last.as_mut().map_or(source, |stage| &mut stage.backing);
    emitter.copy(identity, (from, target), elements);
    if let Some(passed) = last {
        stages.put(passed);
    }
}

/// The stage on the host that holds `elements`, which the allocations
/// `sources` of one memory have.
pub(crate) fn pack<'a>(
    emitter: &mut Emitter<'_>,
    (sources, stages): (&mut Backings, &'a mut Stages),
    identity: Identity,
    links: &Links,
    elements: Box3,
) -> &'a mut Backing {
    let mut stage = stage_for(emitter, stages, identity, MemoryId::HOST, elements);
    let missing = stage.missing();
    if !missing.is_empty() {
        sources.each_holding_some_of(&missing.bounding_box(), |source| {
            let held: Boxes =
                missing.boxes().iter().flat_map(|part| source.held_in(part)).collect();
            for part in held {
                let ends = (source.side(), stage.backing.side());
                let stops = links.stops(ends, &part, identity.elem_size);
                let ends = (&mut *source, &mut stage.backing);
                copy_through(emitter, stages, identity, &stops, ends, part);
            }
        });
    }
    stages.put(stage)
}

/// Takes the stage for `elements` out of the list, or a new one.
fn stage_for(
    emitter: &mut Emitter<'_>,
    stages: &mut Stages,
    identity: Identity,
    memory: MemoryId,
    elements: Box3,
) -> Stage {
    let Some(stage) = stages.take(memory, &elements) else {
        return Stage::new(emitter.create(identity, memory, elements));
    };
    #[cfg(feature = "mutants")]
    let stage = mistakes::refill(emitter.waits(), stage);
    stage
}
