//! Collectives: what one has to be by itself, and that all nodes have the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use celerity_cpd::{Collective, Ends, NodeId};
use celerity_regions::Region;
use celerity_tdag::TaskId;

use super::Broken;
use crate::command::{Command, CommandKind};

/// What is wrong with a collective, whoever takes part in it. O(nodes).
pub(crate) fn flaw(collective: &Collective) -> Option<&'static str> {
    let Collective { region, from, to } = collective;
    if region.is_empty() {
        return Some("moves nothing");
    }
    match from {
        Ends::All => return Some("moves what every node has"),
        Ends::Each(parts) if !is_partition(parts, region) => {
            return Some("is provided by several nodes, or by none, in part");
        }
        Ends::One(_) | Ends::Each(_) => {}
    }
    let is_outside = |part: &Region| !region.contains(part);
    let leaves = matches!(to, Ends::Each(parts) if parts.iter().any(is_outside));
    leaves.then_some("brings what it does not move")
}

fn is_partition(parts: &[Region], region: &Region) -> bool {
    let volume = parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.volume()));
    let boxes = parts.iter().flat_map(|part| part.boxes().iter().copied());
    volume == region.volume() && Region::from_boxes(boxes) == *region
}

/// The collectives of all nodes, by task.
type Collectives<'a> = BTreeMap<TaskId, BTreeMap<NodeId, &'a Arc<Collective>>>;

/// Looks at whether every node has each collective, and for the same nodes.
pub(super) fn check(nodes: &[Vec<Command>], broken: &mut Vec<Broken>) {
    let mut collectives = Collectives::new();
    for (slot, commands) in nodes.iter().enumerate() {
        let node = NodeId::from_index(slot as u64);
        for command in commands {
            if let CommandKind::Collective { collective, .. } = &command.kind {
                collectives.entry(command.task).or_default().insert(node, collective);
            }
        }
    }
    for (task, of_task) in &collectives {
        let Some((&first, collective)) = of_task.first_key_value() else { continue };
        if !is_among(collective, nodes.len()) {
            let why = "takes it to be among other nodes than there are";
            broken.push(Broken::Collective { task: *task, node: first, why });
        }
        for node in (0..nodes.len()).map(|slot| NodeId::from_index(slot as u64)) {
            let why = match of_task.get(&node) {
                Some(same) if *same == *collective => continue,
                Some(_) => "has another collective than other nodes",
                None => "has no collective, and others have",
            };
            broken.push(Broken::Collective { task: *task, node, why });
        }
    }
}

fn is_among(collective: &Collective, nodes: usize) -> bool {
    [&collective.from, &collective.to].into_iter().all(|ends| match ends {
        Ends::All => true,
        Ends::One(node) => node.slot() < nodes,
        Ends::Each(parts) => parts.len() == nodes,
    })
}
