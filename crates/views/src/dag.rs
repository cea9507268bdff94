//! Small queries over finished graphs: who waits for whom, the critical path.
//! One [`Dag`] for all layers; knows nothing of what nodes mean.

use std::sync::Arc;

use celerity_cdag::{Command, CommandKind};
use celerity_idag::{Effects, Instruction, LaneKind};
use celerity_tdag::{Dependencies, DependencyKind, GraphId, Task, Work};
use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

use crate::labels::{CommandLabel, InstructionLabel, TaskLabel};
use crate::names::BufferNames;

/// A graph as positions and labels, kept in a [`petgraph`] graph. Of a stream, or of a part of one without
/// gaps, the first node has position 0, the next one 1, and so on; what a part waits for that comes before
/// it is left out.
///
/// ```
/// use celerity_views::Dag;
/// let mut chain = Dag::default();
/// let [init, a, b] = ["T0", "T1", "T2"].map(|id| chain.push(id, "work"));
/// chain.connect(a, init, None);
/// chain.connect(b, a, None);
/// assert_eq!(chain.critical_path(), [init, a, b]);
/// assert!(chain.reachability().waits_for(b, init));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Dag {
    /// Edges point from the earlier node to the later one.
    graph: DiGraph<DagNode, Option<DependencyKind>>,
    /// Undirected edges: the later node, and the earlier one.
    conflicts: Vec<(usize, usize)>,
}

/// One node of a [`Dag`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DagNode {
    /// Its id in the house notation, after its owner if there is one: `N1 C7`.
    pub id: String,
    /// What it does, in one line of text.
    pub label: String,
    /// What kind of thing that is.
    pub role: Role,
}

/// What a node of a graph is, for colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// It computes on devices.
    #[default]
    Kernel,
    /// Runs on the host, or takes a snapshot.
    Host,
    /// Provides memory, or gives it back.
    Memory,
    /// Moves data between memories of a node.
    Copy,
    /// Moves data between nodes.
    Message,
    /// A horizon or an epoch.
    Synchronization,
}

impl Dag {
    /// The task graph of these tasks, with an edge for each dependency.
    #[must_use]
    pub fn of_tasks(tasks: &[Arc<Task>], names: &BufferNames) -> Self {
        let mut dag = Self::default();
        for task in tasks {
            let label = TaskLabel(task, names).to_string();
            dag.add(task.id.to_string(), label, role_of_work(&task.work));
        }
        let first = tasks.first().map_or(0, |task| task.id.index());
        for (later, task) in tasks.iter().enumerate() {
            dag.connect_all(later, first, &task.dependencies);
            dag.keep_apart_from(later, first, task.conflicts.as_slice());
        }
        dag
    }

    /// One node's command graph; `owner` goes before each id.
    #[must_use]
    pub fn of_commands(owner: &str, commands: &[Command], names: &BufferNames) -> Self {
        let mut dag = Self::default();
        for command in commands {
            let label = CommandLabel(&command.kind, command.task, names).to_string();
            dag.add(format!("{owner} {}", command.id), label, role_of_command(&command.kind));
        }
        let first = commands.first().map_or(0, |command| command.id.index());
        for (later, command) in commands.iter().enumerate() {
            dag.connect_all(later, first, &command.dependencies);
            dag.keep_apart_from(later, first, command.conflicts.as_slice());
        }
        dag
    }

    /// One node's instruction graph; `owner` goes before each id.
    #[must_use]
    pub fn of_instructions(owner: &str, instructions: &[Instruction], names: &BufferNames) -> Self {
        let mut dag = Self::default();
        for instruction in instructions {
            let effects = instruction.effects();
            let label = InstructionLabel(&instruction.kind, names).to_string();
            dag.add(format!("{owner} {}", instruction.id), label, role_of_instruction(&effects));
        }
        let first = instructions.first().map_or(0, |instruction| instruction.id.index());
        for (later, instruction) in instructions.iter().enumerate() {
            for earlier in instruction.dependencies.iter().filter_map(|on| position(*on, first)) {
                dag.connect(later, earlier, None);
            }
            dag.keep_apart_from(later, first, instruction.effects().conflicts);
        }
        dag
    }

    /// Appends a node; returns its position.
    pub fn push(&mut self, id: &str, label: &str) -> usize {
        self.add(id.into(), label.into(), Role::default())
    }

    fn add(&mut self, id: String, label: String, role: Role) -> usize {
        self.graph.add_node(DagNode { id, label, role }).index()
    }

    /// Makes `later` wait for `earlier`.
    ///
    /// # Panics
    /// If one of them does not exist.
    pub fn connect(&mut self, later: usize, earlier: usize, kind: Option<DependencyKind>) {
        self.graph.add_edge(NodeIndex::new(earlier), NodeIndex::new(later), kind);
    }

    fn connect_all<I: GraphId>(&mut self, later: usize, first: u64, on: &Dependencies<I>) {
        for dep in on.iter() {
            if let Some(earlier) = position(dep.on, first) {
                self.connect(later, earlier, Some(dep.kind));
            }
        }
    }

    fn keep_apart_from<I: GraphId>(&mut self, later: usize, first: u64, others: &[I]) {
        let others = others.iter().filter_map(|with| position(*with, first));
        self.conflicts.extend(others.map(|earlier| (later, earlier)));
    }

    /// The nodes that must not run at the same time, without an order: the later one, and the
    /// earlier one.
    #[must_use]
    pub fn conflicts(&self) -> &[(usize, usize)] {
        &self.conflicts
    }

    /// How many nodes the graph has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.graph.node_count()
    }

    /// Whether there are no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A node's id in the house notation.
    #[must_use]
    pub fn id(&self, node: usize) -> &str {
        &self.graph[NodeIndex::new(node)].id
    }

    /// A node's id and what it does.
    #[must_use]
    pub fn describe(&self, node: usize) -> String {
        let DagNode { id, label, .. } = &self.graph[NodeIndex::new(node)];
        format!("{id} ({label})")
    }

    /// The nodes that a node waits for directly, and why if the layer says so.
    pub fn edges(&self, node: usize) -> impl Iterator<Item = (usize, Option<DependencyKind>)> + '_ {
        let incoming = self.graph.edges_directed(NodeIndex::new(node), Direction::Incoming);
        incoming.map(|edge| (edge.source().index(), *edge.weight()))
    }

    /// The graph as petgraph knows it: edges point from the earlier node to the
    /// later one.
    #[must_use]
    pub fn as_petgraph(&self) -> &DiGraph<DagNode, Option<DependencyKind>> {
        &self.graph
    }

    /// All pairs that are ordered. O(nodes · edges / 64).
    ///
    /// # Panics
    /// If an edge does not point backwards.
    #[must_use]
    pub fn reachability(&self) -> Reachability {
        let row_words = self.len().div_ceil(64);
        let mut bits = vec![0; row_words * self.len()];
        for node in 0..self.len() {
            let (older, row) = bits.split_at_mut(node * row_words);
            for (on, _) in self.edges(node) {
                let inherited = &older[on * row_words..(on + 1) * row_words];
                row.iter_mut().zip(inherited).for_each(|(word, inherited)| *word |= inherited);
                row[on / 64] |= 1 << (on % 64);
            }
        }
        Reachability { row_words, bits }
    }

    /// The longest chain of nodes, first to last. O(edges).
    ///
    /// # Panics
    /// If an edge does not point backwards.
    #[must_use]
    pub fn critical_path(&self) -> Vec<usize> {
        let mut longest: Vec<(usize, Option<usize>)> = Vec::with_capacity(self.len());
        for node in 0..self.len() {
            let before = self.edges(node).map(|(on, _)| on).max_by_key(|&on| longest[on].0);
            longest.push((before.map_or(1, |on| longest[on].0 + 1), before));
        }
        let mut next = (0..self.len()).max_by_key(|&node| longest[node].0);
        let mut path = Vec::new();
        while let Some(node) = next {
            path.push(node);
            next = longest[node].1;
        }
        path.reverse();
        path
    }
}

/// Which nodes of a [`Dag`] wait for which, directly or not.
#[derive(Clone, Debug)]
pub struct Reachability {
    row_words: usize,
    bits: Vec<u64>,
}

impl Reachability {
    /// Whether `later` can only start when `earlier` is done.
    #[must_use]
    pub fn waits_for(&self, later: usize, earlier: usize) -> bool {
        self.bits[later * self.row_words + earlier / 64] >> (earlier % 64) & 1 == 1
    }
}

fn role_of_work(work: &Work) -> Role {
    match work {
        Work::Device(_) => Role::Kernel,
        Work::HostOnce { .. } | Work::HostSplit { .. } | Work::Fence | Work::Combine { .. } => {
            Role::Host
        }
        Work::Forward => Role::Message,
        Work::Horizon | Work::Epoch(_) => Role::Synchronization,
    }
}

fn role_of_command(kind: &CommandKind) -> Role {
    match kind {
        CommandKind::Execute { .. } => Role::Kernel,
        CommandKind::Push { .. }
        | CommandKind::AwaitPush { .. }
        | CommandKind::Collective { .. } => Role::Message,
        CommandKind::Horizon | CommandKind::Epoch(_) => Role::Synchronization,
    }
}

fn role_of_instruction(effects: &Effects<'_>) -> Role {
    match effects.lane {
        LaneKind::Kernel(_) => Role::Kernel,
        LaneKind::HostTask => Role::Host,
        LaneKind::Copy { .. } => Role::Copy,
        LaneKind::Node if effects.exchange.is_some() => Role::Message,
        LaneKind::Node if effects.synchronizes.is_some() => Role::Synchronization,
        LaneKind::Node => Role::Memory,
    }
}

/// Where the node of this id is, in a stream whose `first` node has that index; nowhere, if it comes before that.
fn position<I: GraphId>(id: I, first: u64) -> Option<usize> {
    let position = id.index().checked_sub(first)?;
    Some(usize::try_from(position).expect("what is drawn fits into memory"))
}

#[cfg(test)]
mod tests {
    use celerity_tdag::{Access, SideEffectOrder};

    use super::*;

    /// T1 and T2 wait for T0, T3 for T2.
    fn fork() -> Dag {
        let mut dag = Dag::default();
        for id in ["T0", "T1", "T2", "T3"] {
            dag.push(id, "work");
        }
        dag.connect(1, 0, Some(DependencyKind::True));
        dag.connect(2, 0, Some(DependencyKind::Anti));
        dag.connect(3, 2, Some(DependencyKind::Output));
        dag
    }

    #[test]
    fn reachability_is_transitive_and_directed() {
        let reach = fork().reachability();
        assert!(reach.waits_for(3, 0) && reach.waits_for(3, 2) && reach.waits_for(1, 0));
        assert!(!reach.waits_for(0, 3) && !reach.waits_for(2, 1) && !reach.waits_for(3, 1));
        assert!(!reach.waits_for(2, 2));
    }

    #[test]
    fn reachability_crosses_words() {
        let mut dag = Dag::default();
        for node in 0..200 {
            dag.push("T", "");
            if node >= 2 {
                dag.connect(node, node - 2, None);
            }
        }
        let reach = dag.reachability();
        assert!(reach.waits_for(199, 1) && reach.waits_for(198, 130));
        assert!(!reach.waits_for(199, 0) && !reach.waits_for(198, 131));
    }

    #[test]
    fn a_part_of_a_stream_begins_at_position_0() {
        use celerity_tdag::{TaskGraph, TaskGraphConfig, TaskSpec};

        let mut graph = TaskGraph::new(TaskGraphConfig::default());
        let mut tasks = vec![graph.start()];
        let object = graph.create_object(None);
        for _ in 0..6 {
            let effect = Access::object(object, SideEffectOrder::Sequential);
            let (name, work, accesses) = ("t".into(), Work::HostOnce { node: 0 }, vec![effect]);
            graph.submit(TaskSpec { name, work, accesses, location: None }, &mut tasks).unwrap();
        }
        let whole = Dag::of_tasks(&tasks, &BufferNames::default());
        for first in 0..tasks.len() {
            let part = Dag::of_tasks(&tasks[first..], &BufferNames::default());
            assert_eq!(part.len(), tasks.len() - first);
            for node in 0..part.len() {
                assert_eq!(part.id(node), whole.id(first + node));
                let edges =
                    |dag: &Dag, node| -> Vec<_> { dag.edges(node).map(|(on, _)| on).collect() };
                let older =
                    edges(&whole, first + node).into_iter().filter_map(|on| on.checked_sub(first));
                assert!(edges(&part, node).into_iter().eq(older), "{first}, {node}");
            }
        }
        assert_eq!(Dag::of_tasks(&[], &BufferNames::default()).len(), 0);
    }

    #[test]
    fn the_critical_path_is_the_longest_chain() {
        assert_eq!(fork().critical_path(), [0, 2, 3]);
        assert_eq!(Dag::default().critical_path(), []);
    }
}
