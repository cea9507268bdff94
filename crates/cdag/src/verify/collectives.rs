//! Collectives: what one has to be by itself, and that all nodes that take part have the same, and no
//! others have it.

use std::collections::BTreeMap;
use std::sync::Arc;

use celerity_cpd::{Collective, Ends, NodeId};
use celerity_regions::Region;
use celerity_tdag::TaskId;

use super::Broken;
use crate::command::{Command, CommandKind};

/// What is wrong with a collective, whoever takes part in it. O(members).
pub(crate) fn flaw(collective: &Collective) -> Option<&'static str> {
    let Collective { region, from, to, .. } = collective;
    if region.is_empty() {
        return Some("moves nothing");
    }
    if !is_among_several(collective) {
        return Some("is among other nodes than those that have and get its parts");
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

/// What can be told without knowing how many nodes the cluster has.
fn is_among_several(collective: &Collective) -> bool {
    let Collective { members, from, to, .. } = collective;
    let of_members = |ends: &Ends| match ends {
        Ends::All => true,
        Ends::One(node) => members.contains(*node),
        Ends::Each(parts) => members.are_all() || parts.len() == members.count(usize::MAX),
    };
    let several = members.are_canonical(usize::MAX) && members.count(usize::MAX) > 1;
    several && of_members(from) && of_members(to)
}

fn is_partition(parts: &[Region], region: &Region) -> bool {
    let volume = parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.volume()));
    let boxes = parts.iter().flat_map(|part| part.boxes().iter().copied());
    volume == region.volume() && Region::from_boxes(boxes) == *region
}

/// The collectives of all nodes, by task.
type Collectives<'a> = BTreeMap<TaskId, BTreeMap<NodeId, &'a Arc<Collective>>>;

/// Looks at whether every member has each collective, and the same one; and nobody else.
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
            let takes_part = collective.members.contains(node);
            let why = match of_task.get(&node) {
                None if !takes_part => continue,
                Some(same) if *same != *collective => "has another collective than other nodes",
                Some(_) if takes_part => continue,
                Some(_) => "has a collective that it takes no part in",
                None => "has no collective, and others have",
            };
            broken.push(Broken::Collective { task: *task, node, why });
        }
    }
}

fn is_among(collective: &Collective, nodes: usize) -> bool {
    let Collective { members, from, to, .. } = collective;
    let of_members = |ends: &Ends| match ends {
        Ends::All => true,
        Ends::One(node) => node.slot() < nodes && members.contains(*node),
        Ends::Each(parts) => parts.len() == members.count(nodes),
    };
    let several = members.are_canonical(nodes) && members.count(nodes) > 1;
    several && [from, to].into_iter().all(of_members)
}
