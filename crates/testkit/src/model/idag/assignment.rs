//! Which items run where, and what they are bound to.

use std::collections::BTreeMap;

use celerity_cdag::NodeId;
use celerity_idag::{BoundAccess, InstructionKind};
use celerity_regions::Box3;

use super::Cluster;
use crate::element;
use crate::model::chunks::{check_chunks, check_granules, expected_executions};
use crate::program::TaskKind;
use crate::violation::Violation;

/// Checks that items run once, where they should, on existing devices, bound
/// to what their mappers say.
pub(super) fn check(cluster: &Cluster<'_>) -> Result<(), Violation> {
    let mut executed: BTreeMap<usize, Vec<(NodeId, Box3)>> = BTreeMap::new();
    for (node, trace) in cluster.nodes.iter().enumerate() {
        for (position, instruction) in trace.instructions.iter().enumerate() {
            if let Some((op, chunk)) = run(cluster, node, position, &instruction.kind)? {
                executed.entry(op).or_default().push((trace.node, chunk));
            }
        }
    }
    for (op, task, _) in cluster.truth.tasks() {
        let chunks = executed.get(&op).map_or(&[][..], Vec::as_slice);
        check_chunks(op, &expected_executions(&task.kind, cluster.nodes.len()), chunks)?;
        check_granules(op, &task.kind, chunks)?;
    }
    Ok(())
}

/// The statement and chunk that an instruction runs, if it runs any.
fn run(
    cluster: &Cluster<'_>,
    node: usize,
    position: usize,
    kind: &InstructionKind,
) -> Result<Option<(usize, Box3)>, Violation> {
    let (task, chunk, accesses, on_device) = match kind {
        InstructionKind::Kernel { device, task, chunk, accesses } => {
            (*task, *chunk, accesses, Some(*device))
        }
        InstructionKind::HostTask { task, chunk, accesses, .. } => (*task, *chunk, accesses, None),
        _ => return Ok(None),
    };
    let bad = |what: String| Violation::BadPlacement {
        instruction: cluster.dags[node].describe(position),
        what,
    };
    let op = cluster.tasks.op(task).ok_or_else(|| bad(format!("{task} is no work")))?;
    if on_device.is_some_and(|device| device.index() >= cluster.devices as u64) {
        return Err(bad("there is no such device".into()));
    }
    let is_kernel = matches!(cluster.truth.task(op).0.kind, TaskKind::Device(_));
    if is_kernel != on_device.is_some() {
        return Err(bad("kernels run on devices, all else on the host".into()));
    }
    check_bindings(cluster, op, &chunk, accesses).map_err(bad)?;
    Ok(Some((op, chunk)))
}

fn check_bindings(
    cluster: &Cluster<'_>,
    op: usize,
    chunk: &Box3,
    bindings: &[BoundAccess],
) -> Result<(), String> {
    let (task, footprint) = cluster.truth.task(op);
    if bindings.len() != task.accesses.len() {
        return Err(format!("{} of {} accesses are bound", bindings.len(), task.accesses.len()));
    }
    for (nth, (access, bound)) in task.accesses.iter().zip(bindings).enumerate() {
        if access.buffer != bound.buffer {
            return Err(format!("{} is bound instead of {}", bound.buffer, access.buffer));
        }
        let extent = cluster.truth.buffer(access.buffer).extent;
        let found = element::slots(&extent, &bound.region);
        let expected = footprint.chunk(nth, chunk);
        if found != expected {
            let buffer = access.buffer;
            return Err(format!("{buffer}: elements {found:?} are bound instead of {expected:?}"));
        }
    }
    Ok(())
}
