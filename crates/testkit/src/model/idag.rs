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

use std::collections::BTreeSet;

use celerity_idag::{DeviceMemory, InstructionKind};

use super::machine::execute_all;
use super::objects::{self, Affecting};
use super::{check_shape, check_synchronization};
use crate::configuration::Configuration;
use crate::program::TaskOp;
use crate::queries::{BufferNames, Dag};
use crate::trace::{InstructionTrace, TaskTrace};
use crate::truth::Truth;
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
    /// Whether the network reaches devices' memories.
    wired: bool,
    /// Whether collectives may take place between devices' memories.
    assembled: bool,
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
    let wired = configuration.wires_from > 0;
    let assembled = configuration.collectives_from > 0;
    let cluster =
        Cluster { truth, tasks, nodes, dags: &dags, devices, device_memory, wired, assembled };
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
        cluster.check_objects(node)?;
        check_synchronization(
            &dags[node],
            |position| synchronizes(&nodes[node].instructions[position].kind),
            |position| is_epoch(&nodes[node].instructions[position].kind),
        )?;
    }
    let mut simulation = simulation::Simulation::new(cluster, &touches);
    execute_all(&dags, seed, &mut simulation)
}

impl Cluster<'_> {
    /// The task that an instruction runs, if it has side effects.
    fn affecting(&self, kind: &InstructionKind) -> Option<&TaskOp> {
        let InstructionKind::HostTask { task, .. } = kind else { return None };
        let task = self.truth.task(self.tasks.op(*task)?).0;
        (!task.effects.is_empty()).then_some(task)
    }

    fn check_objects(&self, node: usize) -> Result<(), Violation> {
        let (dag, mut affecting) = (&self.dags[node], Vec::new());
        for (position, instruction) in self.nodes[node].instructions.iter().enumerate() {
            let InstructionKind::HostTask { conflicts, .. } = &instruction.kind else { continue };
            let conflicts = conflicts.as_slice().iter();
            let conflicts: BTreeSet<usize> =
                conflicts.map(|with| usize::try_from(with.index()).expect("small")).collect();
            match self.affecting(&instruction.kind) {
                Some(task) => affecting.push(Affecting { position, task, conflicts }),
                None if conflicts.is_empty() => {}
                None => {
                    let what = "conflicts with others, and has no side effects".into();
                    return Err(Violation::Malformed { node: dag.describe(position), what });
                }
            }
        }
        objects::check(&affecting, dag, &dag.reachability())
    }
}

fn synchronizes(kind: &InstructionKind) -> bool {
    matches!(kind, InstructionKind::Horizon { .. } | InstructionKind::Epoch { .. })
}

fn is_epoch(kind: &InstructionKind) -> bool {
    matches!(kind, InstructionKind::Epoch { .. })
}
