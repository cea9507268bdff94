//! The life of allocations: there while used, freed once, no larger than
//! needed.

use std::collections::{BTreeMap, BTreeSet};

use celerity_idag::{AllocationId, InstructionKind, MemoryId};
use celerity_regions::Box3;
use celerity_tdag::BufferId;

use super::Cluster;
use super::touches::{Allocation, NodeTouches};
use crate::trace::{GeneratorInput, InstructionTrace};
use crate::violation::Violation;

/// Checks all allocations of one node.
pub(super) fn check(
    cluster: &Cluster<'_>,
    node: usize,
    touches: &NodeTouches,
) -> Result<(), Violation> {
    check_lifetimes(cluster, node, touches)?;
    check_frees(cluster, node, touches)?;
    check_sizes(cluster, node, touches)
}

/// Every use is ordered between allocation and deallocation.
fn check_lifetimes(
    cluster: &Cluster<'_>,
    node: usize,
    touches: &NodeTouches,
) -> Result<(), Violation> {
    let dag = &cluster.dags[node];
    let reach = dag.reachability();
    for (position, of_instruction) in touches.touches.iter().enumerate() {
        for touch in of_instruction {
            let allocation = &touches.allocations[&touch.allocation];
            let Allocation { made_by, freed_by, .. } = allocation;
            let makers: BTreeSet<usize> =
                made_by.iter().copied().chain(allocation.providers_of(touch)).collect();
            let early = makers.iter().find(|&&made| !reach.waits_for(position, made));
            let late = freed_by.iter().find(|&&freed| !reach.waits_for(freed, position));
            if let Some(&owner) = early.or(late) {
                return Err(Violation::Lifetime {
                    user: dag.describe(position),
                    owner: dag.describe(owner),
                    allocation: touches.name(touch.allocation),
                });
            }
        }
    }
    Ok(())
}

/// At most once while the buffer lives, exactly once if it is dropped, and
/// frees are ordered after allocations even where nothing is used.
fn check_frees(cluster: &Cluster<'_>, node: usize, touches: &NodeTouches) -> Result<(), Violation> {
    let reach = cluster.dags[node].reachability();
    let dropped = |buffer: BufferId| {
        cluster
            .tasks
            .events
            .iter()
            .any(|event| matches!(event, GeneratorInput::Drop(id) if *id == buffer))
    };
    for (&id, allocation) in &touches.allocations {
        let times = allocation.freed_by.len();
        let mut makers = allocation.made_by.into_iter().chain(allocation.grown_by());
        let ordered = makers
            .all(|made| allocation.freed_by.iter().all(|&freed| reach.waits_for(freed, made)));
        if times > 1 || (times == 0 && dropped(allocation.buffer)) || !ordered {
            let (allocation, buffer) = (touches.name(id), allocation.buffer);
            return Err(Violation::Freed { allocation, buffer, times });
        }
    }
    Ok(())
}

/// An allocation is used, and lies inside the bounding box of what has been
/// accessed in its memory up to the event that made it, or ever if it may look
/// ahead. If what it holds has moved four times within the memory, it may reach as far beyond that as that is wide.
fn check_sizes(cluster: &Cluster<'_>, node: usize, touches: &NodeTouches) -> Result<(), Violation> {
    let InstructionTrace { origins, looks_ahead, .. } = &cluster.nodes[node];
    let mut accessed: BTreeMap<(MemoryId, BufferId), Vec<(usize, Box3)>> = BTreeMap::new();
    for (position, of_instruction) in touches.touches.iter().enumerate() {
        for touch in of_instruction {
            let Allocation { memory, buffer, .. } = touches.allocations[&touch.allocation];
            let bounds = bounds(touches, touch.allocation, touch.slots.iter().copied());
            accessed.entry((memory, buffer)).or_default().push((origins[position].event, bounds));
        }
    }
    let moves = moves(&cluster.nodes[node]);
    for (&id, allocation) in &touches.allocations {
        let Some(made_by) = allocation.made_by else { continue };
        let name = format!("{} {}", cluster.nodes[node].node, touches.name(id));
        let provided = allocation
            .growth
            .as_ref()
            .map(|growth| bounds(touches, id, growth.providers.keys().copied()));
        let Some(extent) = provided.or(allocation.extent) else {
            return Err(Violation::Unused { allocation: name });
        };
        let known = accessed.get(&(allocation.memory, allocation.buffer));
        let made = allocation.grown_by().last().unwrap_or(made_by);
        let made = origins[made].event;
        let served = |&&(event, _): &&(usize, Box3)| *looks_ahead || event <= made;
        let until = known.into_iter().flatten().filter(served);
        let bounds = until.fold(Box3::EMPTY, |all, (_, bounds)| all.bounding(bounds));
        let moved = moves.get(&id).is_some_and(|&moves| moves >= 4);
        let reach = if moved { bounds.range() } else { [0; 3] };
        let is_near = |dim: usize| {
            extent.min()[dim] + reach[dim] >= bounds.min()[dim]
                && extent.max()[dim] <= bounds.max()[dim] + reach[dim]
        };
        let is_within = bounds.contains(&extent) || moved && (0..3).all(is_near);
        if !is_within {
            let (extent, accessed) = (extent.to_string(), bounds.to_string());
            return Err(Violation::Oversized { allocation: name, extent, accessed });
        }
    }
    Ok(())
}

/// How often what an allocation holds had been copied from one of its memory to another, in the end.
fn moves(node: &InstructionTrace) -> BTreeMap<AllocationId, usize> {
    let mut moves = BTreeMap::new();
    for instruction in &node.instructions {
        if let InstructionKind::Copy { source, target, .. } = &instruction.kind
            && source.memory == target.memory
        {
            let before = moves.get(&source.allocation).copied().unwrap_or(0);
            let after = moves.entry(target.allocation).or_default();
            *after = (before + 1).max(*after);
        }
    }
    moves
}

fn bounds(
    touches: &NodeTouches,
    allocation: AllocationId,
    slots: impl Iterator<Item = usize>,
) -> Box3 {
    slots.fold(Box3::EMPTY, |all, slot| {
        let at = touches.point(allocation, slot);
        all.bounding(&Box3::new(at, at.map(|coordinate| coordinate + 1)))
    })
}
