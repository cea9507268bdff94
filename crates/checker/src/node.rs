//! The checker of one node: takes what its generators hand out, as it comes,
//! and remembers a window of it.

use std::fmt;
use std::sync::Arc;

use celerity_cdag::{Command, NodeId};
use celerity_idag::{AllocationId, DeviceMemory, Instruction, InstructionKind, Pilot};
use celerity_tdag::{BufferId, BufferInfo, StreamHash, Task};

use crate::allocation::Allocation;
use crate::batch::TaskCheck;
use crate::buffers::Buffers;
use crate::commands::Commands;
use crate::finding::Finding;
use crate::groups::Groups;
use crate::instructions::Instructions;
use crate::objects::ObjectHistory;
use crate::outline::{Outline, TaskOutline};
use crate::picture::{Seen, draw};
use crate::tasks::Tasks;
use crate::violation::{Check, Vertex, Violation, Waste};
use crate::window::{GraphOfNode, RecentNodes};

/// How much is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// Shape, lifetimes, placements and bindings: no versions and no races.
    Cheap,
    /// Everything.
    #[default]
    Full,
}

/// Parameters of a [`NodeChecker`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeCheckerConfig {
    /// Nodes of the cluster, at least 1.
    pub nodes: usize,
    /// The node whose graphs are checked.
    pub local: NodeId,
    /// Devices of that node, at least 1.
    pub devices: usize,
    /// The memory that its kernels work in.
    pub device_memory: DeviceMemory,
    /// Whether the network reads and writes devices' memories, here and on some other nodes.
    pub device_wires: bool,
    /// Whether it carries out collective operations between the memories of nodes' first devices.
    pub device_collectives: bool,
    /// How much is checked.
    pub depth: Depth,
    /// Whether allocations may be made before they are needed. Then their size
    /// is judged when they are freed, or at the end.
    pub eager_allocation: bool,
}

impl NodeCheckerConfig {
    /// All is checked, of devices with memories of their own that no network reaches, whose allocations are made when they are
    /// needed.
    #[must_use]
    pub const fn new(nodes: usize, local: NodeId, devices: usize) -> Self {
        Self {
            nodes,
            local,
            devices,
            device_memory: DeviceMemory::Own,
            device_wires: false,
            device_collectives: false,
            depth: Depth::Full,
            eager_allocation: false,
        }
    }
}

/// Checks one node's graphs while they are generated.
///
/// Calls come in the order in which the generators got theirs. After the first
/// finding that is not waste the checker's picture of the node may be wrong:
/// drop it. Waste is told once everything else of the task has been judged, and
/// the checker may be used on.
///
/// Memory is bounded by what the generators remember themselves: the nodes
/// since the last applied horizon, the tiles of live buffers and allocations,
/// and the outline, until it is taken.
#[derive(Clone, Debug)]
pub struct NodeChecker {
    config: NodeCheckerConfig,
    buffers: Buffers,
    tasks: Tasks,
    commands: Commands,
    instructions: Instructions,
    outline: Outline,
    hash: StreamHash,
    /// Nodes checked since ledgers were compacted.
    fresh: usize,
}

/// Ledgers are compacted once a node has been checked for so many of them: so a
/// program that keeps thousands of buffers and uses few does not pay for all at every
/// horizon.
const LEDGERS_PER_NODE: usize = 4;

impl NodeChecker {
    /// A checker that has seen nothing.
    ///
    /// # Panics
    /// If there are no nodes or devices, or the local node is not among them.
    #[must_use]
    pub fn new(config: NodeCheckerConfig) -> Self {
        let NodeCheckerConfig { nodes, local, devices, device_memory, .. } = config;
        let NodeCheckerConfig { device_wires, device_collectives, depth, eager_allocation, .. } =
            config;
        assert!(local.index() < nodes as u64, "{local} is not in the cluster");
        assert!(devices > 0, "a node has at least one device");
        let tracks = depth == Depth::Full;
        let instructions = Instructions {
            node: local,
            nodes,
            devices,
            device_memory,
            device_wires,
            device_collectives,
            eager: eager_allocation,
            window: RecentNodes::new(GraphOfNode::Instructions(local), tracks),
            groups: Groups::default(),
            objects: ObjectHistory::default(),
            allocations: Default::default(),
            owned: Default::default(),
            next_allocation: 0,
            next_message: 0,
            next_collective: 0,
            waste: Waste::new(),
        };
        Self {
            config,
            buffers: Buffers::default(),
            tasks: Tasks::new(tracks),
            commands: Commands::new(local, nodes, tracks),
            instructions,
            outline: Outline::default(),
            hash: StreamHash::default(),
            fresh: 0,
        }
    }

    /// Makes a buffer known, or its new name. `user_data` is the allocation
    /// that stands for a new buffer's initial contents.
    pub fn create_buffer(&mut self, info: &Arc<BufferInfo>, user_data: Option<AllocationId>) {
        self.buffers.create(info);
        if let Some(allocation) = user_data {
            self.instructions.provide(allocation, info.id, info.extent);
        }
    }

    /// Forgets a buffer, whose memory `instructions` give back.
    ///
    /// # Errors
    /// The first broken rule.
    pub fn drop_buffer(
        &mut self,
        buffer: BufferId,
        instructions: &[Instruction],
    ) -> Result<(), Box<Finding>> {
        let checked = self.check_drop(buffer, instructions);
        let checked = checked.and_then(|()| self.take_waste());
        checked.map_err(|violation| self.finding(*violation, None))
    }

    /// Checks a task together with this node's commands, instructions and
    /// pilots for it. O(elements' tiles touched · edges), and a pass over the
    /// window's words per edge.
    ///
    /// # Errors
    /// The first broken rule.
    pub fn task(
        &mut self,
        task: &Arc<Task>,
        commands: &[Command],
        instructions: &[Instruction],
        pilots: &[Pilot],
    ) -> Result<(), Box<Finding>> {
        let checked = self.check_task(task, commands, instructions, pilots);
        let checked = checked.and_then(|()| self.take_waste());
        checked.map_err(|violation| self.finding(*violation, Some(task)))
    }

    /// The first waste of the task in hand, now that it has been judged.
    fn take_waste(&mut self) -> Check {
        let waste = self.commands.waste.take().or(self.instructions.waste.take());
        waste.map_or(Ok(()), Err)
    }

    /// What has been gathered for the other nodes since the last call. Nothing
    /// if there are none.
    #[must_use]
    pub fn take_outline(&mut self) -> Outline {
        std::mem::take(&mut self.outline)
    }

    /// How much is remembered: nodes of the graphs, tiles and outlines. What a
    /// test of flat memory looks at.
    #[must_use]
    pub fn retained(&self) -> usize {
        let tiles: usize = self.instructions.allocations.values().map(Allocation::len).sum();
        let windows =
            self.tasks.window.len() + self.commands.window.len() + self.instructions.window.len();
        let objects = self.tasks.objects.len()
            + self.commands.objects.len()
            + self.instructions.objects.len();
        let (buffers, roots) = (self.buffers.len(), self.commands.roots.len());
        windows + tiles + objects + buffers + roots + self.outline.tasks.len()
    }

    /// Ends the program: judges what may be judged only now, and returns the
    /// rest of the outline.
    ///
    /// # Errors
    /// The first broken rule.
    pub fn finish(mut self) -> Result<Outline, Box<Finding>> {
        match self.check_end().and_then(|()| self.take_waste()) {
            Ok(()) => Ok(self.outline),
            Err(violation) => Err(self.finding(*violation, None)),
        }
    }

    fn check_task(
        &mut self,
        task: &Arc<Task>,
        commands: &[Command],
        instructions: &[Instruction],
        pilots: &[Pilot],
    ) -> Check {
        let points = self.points();
        let first = self.instructions.window.next();
        let mut batch = TaskCheck::new(task, commands, pilots, first);
        let writes = self.tasks.enter(&mut self.buffers, task)?;
        for command in commands {
            self.commands.check(&mut self.buffers, &mut batch, command)?;
        }
        self.commands.finish(&batch)?;
        for instruction in instructions {
            self.instructions.check(&mut self.buffers, &mut batch, instruction)?;
        }
        self.instructions.finish(&self.buffers, &batch)?;
        self.tasks.leave(&mut self.buffers, task, writes)?;
        self.gather(batch.outline, task);
        self.fresh += 1 + commands.len() + instructions.len();
        let ledgers = self.buffers.count() + self.instructions.allocations.len();
        if points != self.points() && self.fresh * LEDGERS_PER_NODE >= ledgers {
            self.fresh = 0;
            self.compact();
        }
        Ok(())
    }

    fn gather(&mut self, outline: TaskOutline, task: &Task) {
        if self.config.nodes > 1 {
            self.hash.task(task);
            self.outline.tasks.push(TaskOutline { hash: self.hash.value(), ..outline });
        }
    }

    fn check_drop(&mut self, buffer: BufferId, instructions: &[Instruction]) -> Check {
        for instruction in instructions {
            self.instructions.enter(instruction)?;
            let me = instruction.id.index();
            let InstructionKind::Free { allocation, memory } = instruction.kind else {
                let vertex = self.instructions.window.vertex(me);
                let why = "the end of a buffer takes nothing but frees";
                return Err(Violation::Uncalled { vertex, why }.into());
            };
            self.instructions.free(&self.buffers, None, me, allocation, memory)?;
        }
        self.commands.roots.forget(buffer);
        match self.buffers.remove(buffer) {
            Some(removed) => self.instructions.check_leaks(&removed),
            None => Ok(()),
        }
    }

    fn check_end(&self) -> Check {
        if !self.config.eager_allocation {
            return Ok(());
        }
        self.instructions.allocations.iter().try_for_each(|(&id, allocation)| {
            let vertex = self.instructions.window.vertex(allocation.made_by.unwrap_or(0));
            let buffer = self.buffers.get(vertex, allocation.buffer)?;
            self.instructions.check_size(buffer, allocation, id)
        })
    }

    fn points(&self) -> [u64; 3] {
        [self.tasks.window.point(), self.commands.window.point(), self.instructions.window.point()]
    }

    /// Lets synchronisation points stand in for what is older than they are.
    fn compact(&mut self) {
        let [task, command, instruction] = self.points();
        self.tasks.objects.compact(task);
        self.commands.objects.compact(command);
        self.instructions.objects.compact(instruction);
        for buffer in self.buffers.values_mut() {
            buffer.truth.compact(task);
            buffer.held.compact(command);
        }
        for allocation in self.instructions.allocations.values_mut() {
            if let Some(ledger) = allocation.ledger_mut() {
                ledger.compact(instruction);
            }
        }
    }

    fn finding(&self, violation: Violation, task: Option<&Arc<Task>>) -> Box<Finding> {
        let dot = draw(&violation, |vertex| self.look(vertex));
        let task = task.map(|task| task.to_string());
        Box::new(Finding { violation, node: Some(self.config.local), task, dot })
    }

    fn look(&self, vertex: Vertex) -> Option<Seen> {
        match vertex {
            Vertex::Task(id) => seen(&self.tasks.window, id.index()),
            Vertex::Command(_, id) => seen(&self.commands.window, id.index()),
            Vertex::Instruction(_, id) => seen(&self.instructions.window, id.index()),
        }
    }
}

fn seen<L: fmt::Display>(window: &RecentNodes<L>, index: u64) -> Option<Seen> {
    let record = window.get(index)?;
    let edges = record.edges.iter().map(|&edge| window.vertex(edge)).collect();
    Some(Seen { label: record.label.to_string(), edges })
}
