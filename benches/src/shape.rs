//! What graphs are made for, and how much comes of it.

/// How many layers there are, and for which cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Nodes in the cluster.
    pub nodes: usize,
    /// The node whose commands and instructions are generated.
    pub local: usize,
    /// Devices of each node.
    pub devices: usize,
    /// The last layer.
    pub depth: Depth,
    /// Whether devices copy from one to another without the host.
    pub direct: bool,
}

/// The last layer of a [`Pipeline`](crate::pipeline::Pipeline).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// The task graph alone.
    Tasks,
    /// Task graph and command graph.
    Commands,
    /// All three graphs.
    Instructions,
}

impl Shape {
    /// Node 0 of a cluster.
    #[must_use]
    pub fn new(depth: Depth, nodes: usize, devices: usize) -> Self {
        Self { nodes, local: 0, devices, depth, direct: true }
    }

    /// The same cluster seen from a node in the middle, which has neighbours on
    /// both sides if there are three nodes or more.
    #[must_use]
    pub fn in_the_middle(self) -> Self {
        Self { local: self.nodes / 2, ..self }
    }
}

/// What came out of a [`Pipeline`](crate::pipeline::Pipeline).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Tasks, with horizons and epochs.
    pub tasks: usize,
    /// Commands.
    pub commands: usize,
    /// Instructions.
    pub instructions: usize,
}

impl Output {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            tasks: self.tasks + other.tasks,
            commands: self.commands + other.commands,
            instructions: self.instructions + other.instructions,
        }
    }
}
