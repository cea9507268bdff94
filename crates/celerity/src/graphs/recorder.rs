//! The graphs of a run, kept until it ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use celerity_cdag::{Command, NodeId};
use celerity_executor::Observer;
use celerity_idag::{AllocationId, Instruction, Pilot};
use celerity_tdag::{BufferId, BufferInfo, Task};
use celerity_views::{BufferNames, Dag, Section};

/// What all nodes of this process have generated so far.
#[derive(Clone)]
pub(crate) struct GraphRecorder {
    recorded: Arc<Mutex<Recorded>>,
    /// How many nodes of each graph are kept.
    limit: usize,
}

#[derive(Default)]
struct Recorded {
    names: BufferNames,
    nodes: BTreeMap<NodeId, Graphs>,
}

/// The graphs of one node.
#[derive(Default)]
struct Graphs {
    tasks: Kept<Arc<Task>>,
    commands: Kept<Command>,
    instructions: Kept<Instruction>,
}

/// The first nodes of a graph, and how many there were after them.
struct Kept<T> {
    first: Vec<T>,
    omitted: usize,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self { first: Vec::new(), omitted: 0 }
    }
}

impl<T: Clone> Kept<T> {
    fn extend(&mut self, more: &[T], limit: usize) {
        let room = limit - self.first.len();
        let (kept, omitted) = more.split_at(more.len().min(room));
        self.first.extend_from_slice(kept);
        self.omitted += omitted.len();
    }

    fn section(&self, title: String, dag: impl FnOnce(&[T]) -> Dag) -> Section {
        Section { title, dag: dag(&self.first), omitted: self.omitted }
    }
}

impl GraphRecorder {
    pub(crate) fn new(limit: usize) -> Self {
        Self { recorded: Arc::default(), limit }
    }

    /// Who records one node's graphs.
    pub(crate) fn observer(&self, node: NodeId) -> Box<dyn Observer> {
        Box::new(OneNode { node, recorder: self.clone() })
    }

    /// The task graph, which all nodes have, and each node's commands and instructions.
    pub(crate) fn sections(&self) -> Vec<Section> {
        self.with(|Recorded { names, nodes }| {
            let mut sections = Vec::new();
            if let Some(Graphs { tasks, .. }) = nodes.values().next() {
                let dag = |tasks: &[_]| Dag::of_tasks(tasks, names);
                sections.push(tasks.section("task graph".to_owned(), dag));
            }
            for (node, Graphs { commands, instructions, .. }) in nodes {
                let owner = node.to_string();
                let dag = |commands: &[_]| Dag::of_commands(&owner, commands, names);
                sections.push(commands.section(format!("command graph of {node}"), dag));
                let dag = |all: &[_]| Dag::of_instructions(&owner, all, names);
                sections.push(instructions.section(format!("instruction graph of {node}"), dag));
            }
            sections
        })
    }

    fn with<T>(&self, look: impl FnOnce(&mut Recorded) -> T) -> T {
        // Whoever panicked while recording has left a prefix of the graphs.
        look(&mut self.recorded.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct OneNode {
    node: NodeId,
    recorder: GraphRecorder,
}

impl Observer for OneNode {
    fn buffer(&mut self, info: &Arc<BufferInfo>, _: Option<AllocationId>) {
        self.recorder.with(|recorded| recorded.names.insert(info));
    }

    fn task(
        &mut self,
        task: &Arc<Task>,
        commands: &[Command],
        instructions: &[Instruction],
        _: &[Pilot],
    ) -> Result<(), String> {
        let limit = self.recorder.limit;
        self.recorder.with(|Recorded { nodes, .. }| {
            let graphs = nodes.entry(self.node).or_default();
            graphs.tasks.extend(std::slice::from_ref(task), limit);
            graphs.commands.extend(commands, limit);
            graphs.instructions.extend(instructions, limit);
        });
        Ok(())
    }

    fn buffer_end(&mut self, _: BufferId, frees: &[Instruction]) -> Result<(), String> {
        let limit = self.recorder.limit;
        self.recorder.with(|Recorded { nodes, .. }| {
            nodes.entry(self.node).or_default().instructions.extend(frees, limit);
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_the_first_are_kept_and_the_others_counted() {
        let mut kept = Kept::default();
        kept.extend(&[1, 2], 4);
        kept.extend(&[3, 4, 5], 4);
        kept.extend(&[6], 4);
        assert_eq!((kept.first, kept.omitted), (vec![1, 2, 3, 4], 2));
    }
}
