//! A program's graphs, ready to be looked at. Judges nothing.

use celerity_cdag::NodeId;
use celerity_views::{BufferNames, Dag};

use crate::check::Configuration;
use crate::program::Program;
use crate::trace::{CommandTrace, InstructionTrace, TaskTrace};
use crate::violation::Violation;

/// Which graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphLayer {
    /// The task graph, the same on all nodes.
    Tasks,
    /// One node's commands.
    Commands,
    /// One node's instructions.
    Instructions,
}

/// The graph of one layer; of node `node` where nodes have one each.
///
/// # Errors
/// If a generator refuses the program.
///
/// # Panics
/// If the configuration has no such node.
pub fn picture(
    program: &Program,
    configuration: &Configuration,
    layer: GraphLayer,
    node: usize,
) -> Result<Dag, Violation> {
    let tasks = TaskTrace::on(program, configuration)?;
    if layer == GraphLayer::Tasks {
        return Ok(Dag::of_tasks(&tasks.tasks, &BufferNames::default()));
    }
    let node = NodeId::from_index(node as u64);
    let commands = CommandTrace::of(&tasks, configuration.nodes, node)?;
    if layer == GraphLayer::Commands {
        return Ok(Dag::of_commands(
            &node.to_string(),
            &commands.commands,
            &BufferNames::default(),
        ));
    }
    let queue = configuration.instruction_graph(node);
    let instructions = InstructionTrace::with(&tasks, &commands, queue)?;
    Ok(Dag::of_instructions(&node.to_string(), &instructions.instructions, &BufferNames::default()))
}
