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
        TaskKind::Device(space) => {
            element::points(&space.extent).map(|item| (None, item)).collect()
        }
        TaskKind::HostOnce => [(Some(NodeId::from_index(0)), [0; 3])].into(),
        TaskKind::Fence => {
            (0..nodes).map(|node| (Some(NodeId::from_index(node as u64)), [0; 3])).collect()
        }
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
