//! Which items of a task must be executed where, and whether they are: the same
//! question for commands and for instructions.

use std::collections::BTreeSet;

use celerity_cdag::NodeId;
use celerity_regions::Box3;

use crate::element;
use crate::program::TaskKind;
use crate::violation::Violation;

/// How often each item of a task must be executed, and on which node if that
/// is prescribed.
pub(super) fn expected_executions(
    kind: &TaskKind,
    nodes: usize,
) -> BTreeSet<(Option<NodeId>, [u64; 3])> {
    match kind {
        TaskKind::Device(space) | TaskKind::HostSplit { space, .. } => {
            element::points(&space.extent).map(|item| (None, item)).collect()
        }
        TaskKind::HostOnce { node } => {
            [(Some(NodeId::from_index(node % nodes as u64)), [0; 3])].into()
        }
        TaskKind::Fence | TaskKind::Combine => {
            (0..nodes).map(|node| (Some(NodeId::from_index(node as u64)), [0; 3])).collect()
        }
    }
}

/// Checks that chunks begin at whole granules of their index space, and end there or with it.
pub(super) fn check_granules(
    op: usize,
    kind: &TaskKind,
    chunks: &[(NodeId, Box3)],
) -> Result<(), Violation> {
    let Some(space) = kind.split() else { return Ok(()) };
    let origin = space.extent.min();
    let is_border = |dim: usize, at: u64| (at - origin[dim]).is_multiple_of(space.granularity[dim]);
    let is_whole = |chunk: &Box3, dim: usize| {
        let end = chunk.max()[dim];
        is_border(dim, chunk.min()[dim]) && (end == space.extent.max()[dim] || is_border(dim, end))
    };
    match chunks.iter().find(|(_, chunk)| !(0..3).all(|dim| is_whole(chunk, dim))) {
        Some((node, chunk)) => {
            let what = format!("{chunk} on {node} cuts a granule of {:?}", space.granularity);
            Err(Violation::WrongAssignment { op, what })
        }
        None => Ok(()),
    }
}

/// Compares the chunks that were executed with what was expected.
pub(super) fn check_chunks(
    op: usize,
    expected: &BTreeSet<(Option<NodeId>, [u64; 3])>,
    chunks: &[(NodeId, Box3)],
) -> Result<(), Violation> {
    let anywhere = expected.iter().all(|(node, _)| node.is_none());
    let mut executed = BTreeSet::new();
    for (node, chunk) in chunks {
        for item in element::points(chunk) {
            if !executed.insert(((!anywhere).then_some(*node), item)) {
                let what = format!("item {item:?} is executed twice, the second time on {node}");
                return Err(Violation::WrongAssignment { op, what });
            }
        }
    }
    match executed.symmetric_difference(expected).next() {
        None => Ok(()),
        Some((node, item)) => {
            let place = node.map_or_else(String::new, |node| format!(" on {node}"));
            let problem = if expected.contains(&(*node, *item)) { "never" } else { "wrongly" };
            let what = format!("item {item:?} is {problem} executed{place}");
            Err(Violation::WrongAssignment { op, what })
        }
    }
}
