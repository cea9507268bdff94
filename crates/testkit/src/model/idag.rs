//! The contract of the instruction graphs of all nodes together:
//! * allocations exist while they are used, hold what their users say, are no
//!   larger than what was ever accessed in their memory, and are freed once
//!   when their buffer is dropped;
//! * kernels and host tasks run every item once, bound to exactly what their
//!   mappers give for their chunk, in the right memory;
//! * conflicting accesses to an element of an allocation are ordered, and
//!   nothing waits for anything else without a reason;
//! * every send has its pilot; what is sent is what is received;
//! * executed in any order that the edges allow, everybody sees what
//!   sequential execution would, and nothing is copied to where it already is.

mod allocations;
mod assignment;
mod messages;
mod order;
mod simulation;
mod touches;

use celerity_idag::{DeviceMemory, InstructionKind};

use super::machine::execute_all;
use super::{Truth, check_shape, check_synchronization};
use crate::check::Configuration;
use crate::queries::{BufferNames, Dag};
use crate::trace::{InstructionTrace, TaskTrace};
use crate::violation::Violation;

use touches::NodeTouches;

/// Everything that a pass may look at.
#[derive(Clone, Copy)]
struct Cluster<'a> {
    truth: &'a Truth<'a>,
    tasks: &'a TaskTrace,
    nodes: &'a [InstructionTrace],
    dags: &'a [Dag],
    devices: usize,
    device_memory: DeviceMemory,
}

/// Checks the instructions of all nodes against the program, executing them in
/// an order chosen by the configuration's seed.
///
/// # Errors
/// The first broken promise.
pub fn check(
    truth: &Truth<'_>,
    tasks: &TaskTrace,
    nodes: &[InstructionTrace],
    configuration: &Configuration,
) -> Result<(), Violation> {
    let dags: Vec<Dag> = nodes
        .iter()
        .map(|node| {
            Dag::of_instructions(
                &node.node.to_string(),
                &node.instructions,
                &BufferNames::default(),
            )
        })
        .collect();
    let Configuration { devices, device_memory, seed, .. } = *configuration;
    let cluster = Cluster { truth, tasks, nodes, dags: &dags, devices, device_memory };
    for (trace, dag) in nodes.iter().zip(&dags) {
        check_shape(dag, trace.instructions.iter().map(|instruction| instruction.id))?;
    }
    assignment::check(&cluster)?;
    messages::check(&cluster)?;
    let touches = (0..nodes.len()).map(|node| NodeTouches::of(&cluster, node));
    let touches = touches.collect::<Result<Vec<_>, _>>()?;
    for (node, touches) in touches.iter().enumerate() {
        allocations::check(&cluster, node, touches)?;
        order::check(&cluster, node, touches)?;
        check_synchronization(
            &dags[node],
            |position| synchronizes(&nodes[node].instructions[position].kind),
            |position| is_epoch(&nodes[node].instructions[position].kind),
        )?;
    }
    let mut simulation = simulation::Simulation::new(cluster, &touches);
    execute_all(&dags, seed, &mut simulation)
}

fn synchronizes(kind: &InstructionKind) -> bool {
    matches!(kind, InstructionKind::Horizon { .. } | InstructionKind::Epoch { .. })
}

fn is_epoch(kind: &InstructionKind) -> bool {
    matches!(kind, InstructionKind::Epoch { .. })
}
