//! Host objects in any graph, pair by pair: who must wait for whom, who must not meet whom, and
//! that nobody is kept apart for nothing.

use std::collections::BTreeSet;

use celerity_tdag::SideEffectOrder;

use crate::program::TaskOp;
use crate::queries::{Dag, Reachability};
use crate::violation::Violation;
use crate::visits::strictest;

/// A node of a graph that runs a task with side effects.
pub(super) struct Affecting<'a> {
    /// Its position in the graph.
    pub(super) position: usize,
    /// The task.
    pub(super) task: &'a TaskOp,
    /// The positions that it conflicts with.
    pub(super) conflicts: BTreeSet<usize>,
}

/// Holds a graph's nodes with side effects, in order, against what they do.
pub(super) fn check(
    nodes: &[Affecting<'_>],
    dag: &Dag,
    reach: &Reachability,
) -> Result<(), Violation> {
    for (nth, later) in nodes.iter().enumerate() {
        let mut explained = BTreeSet::new();
        for earlier in &nodes[..nth] {
            let (me, other) = (later.position, earlier.position);
            let objects = |what| {
                let (later, earlier) = (dag.describe(me), dag.describe(other));
                Err(Violation::Objects { later, earlier, what })
            };
            let waits = reach.waits_for(me, other);
            if may_not_meet(later.task, earlier.task) {
                explained.insert(other);
            }
            match strictest(later.task, earlier.task).map(|(_, order)| order) {
                Some(SideEffectOrder::Sequential) if !waits => {
                    return objects("are not ordered, and one has a sequential side effect");
                }
                Some(SideEffectOrder::Exclusive) if !waits && !later.conflicts.contains(&other) => {
                    return objects("may meet, and one has an exclusive side effect");
                }
                _ => {}
            }
        }
        if let Some(&with) = later.conflicts.difference(&explained).next() {
            let (later, earlier) = (dag.describe(later.position), dag.describe(with));
            let what = "conflict, though no exclusive side effect keeps them apart";
            return Err(Violation::Objects { later, earlier, what });
        }
    }
    Ok(())
}

/// Whether two tasks are at one object, one of them exclusively and none sequentially.
fn may_not_meet(task: &TaskOp, other: &TaskOp) -> bool {
    use SideEffectOrder::{Exclusive, Sequential};
    task.side_effects().any(|mine| {
        other.side_effects().any(|theirs| {
            let orders = [mine.order, theirs.order];
            let is_shared = mine.object == theirs.object;
            is_shared && orders.contains(&Exclusive) && !orders.contains(&Sequential)
        })
    })
}

/// The earlier nodes that the last one may wait for directly because of objects.
pub(super) fn reasons<'a>(
    earlier: impl Iterator<Item = (usize, &'a TaskOp)>,
    task: &TaskOp,
) -> impl Iterator<Item = usize> {
    let sequential = move |other: &TaskOp| {
        strictest(task, other).is_some_and(|(_, order)| order == SideEffectOrder::Sequential)
    };
    earlier.filter(move |(_, other)| sequential(other)).map(|(on, _)| on)
}
