//! The graphs of a run, kept to be printed when it ends. Knows how to collect
//! them; how they look is the business of `celerity-views`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use celerity_cdag::{Command, NodeId};
use celerity_executor::Observer;
use celerity_idag::{AllocationId, Instruction, Pilot};
use celerity_tdag::{BufferId, BufferInfo, Task};
use celerity_views::Dag;

/// What all nodes of a run have generated so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder(Arc<Mutex<BTreeMap<NodeId, Graphs>>>);

/// The graphs of one node.
#[derive(Debug, Default)]
struct Graphs {
    tasks: Vec<Arc<Task>>,
    commands: Vec<Command>,
    instructions: Vec<Instruction>,
}

impl Recorder {
    /// Who records one node's graphs.
    pub(crate) fn observer(&self, node: NodeId) -> Option<Box<dyn Observer>> {
        Some(Box::new(OneNode { node, recorder: self.clone() }))
    }

    fn with<T>(&self, look: impl FnOnce(&mut BTreeMap<NodeId, Graphs>) -> T) -> T {
        // Whoever panicked while recording has left a prefix of the graphs.
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct OneNode {
    node: NodeId,
    recorder: Recorder,
}

impl Observer for OneNode {
    fn buffer(&mut self, _: &Arc<BufferInfo>, _: Option<AllocationId>) {}

    fn task(
        &mut self,
        task: &Arc<Task>,
        commands: &[Command],
        instructions: &[Instruction],
        _: &[Pilot],
    ) -> Result<(), String> {
        self.recorder.with(|nodes| {
            let graphs = nodes.entry(self.node).or_default();
            graphs.tasks.push(task.clone());
            graphs.commands.extend_from_slice(commands);
            graphs.instructions.extend_from_slice(instructions);
        });
        Ok(())
    }

    fn buffer_end(&mut self, _: BufferId, frees: &[Instruction]) -> Result<(), String> {
        self.recorder.with(|nodes| {
            nodes.entry(self.node).or_default().instructions.extend_from_slice(frees);
        });
        Ok(())
    }
}

impl fmt::Display for Recorder {
    /// The task graph, then each node's commands and instructions, one line per
    /// node of a graph.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with(|nodes| {
            if let Some(first) = nodes.values().next() {
                write!(f, "task graph:\n{}", Dag::of_tasks(&first.tasks).to_text())?;
            }
            nodes.iter().try_for_each(|(node, Graphs { commands, instructions, .. })| {
                let name = node.to_string();
                let commands = Dag::of_commands(&name, commands).to_text();
                let instructions = Dag::of_instructions(&name, instructions).to_text();
                write!(f, "command graph of {node}:\n{commands}")?;
                write!(f, "instruction graph of {node}:\n{instructions}")
            })
        })
    }
}
