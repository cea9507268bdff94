//! The layers behind the task graph: takes buffers and tasks, makes commands and
//! instructions. Knows neither where tasks come from nor on which thread.

use std::sync::Arc;

use celerity_cdag::{Command, CommandGraph, CommandGraphConfig, NodeId};
use celerity_idag::{
    InstructionGraph, InstructionGraphConfig, Lookahead, LookaheadQueue, Schedule,
};
use celerity_tdag::{BufferInfo, Task};

use crate::shape::{Depth, Output, Shape};

/// The command and instruction graphs of one node, and what they have made.
#[derive(Debug)]
pub(crate) struct Layers {
    /// `None`, like the next, where the shape ends before it.
    command_graph: Option<CommandGraph>,
    instructions: Option<Instructions>,
    commands: Vec<Command>,
    /// Commands that the lookahead has taken over.
    handed_on: usize,
    schedule: Schedule,
}

#[derive(Debug)]
enum Instructions {
    /// Every command at once.
    Immediate(InstructionGraph),
    /// Commands may be held back, as in a real run.
    Ahead(LookaheadQueue),
}

/// Room for as many commands and instructions as small programs have, so that
/// their samples do not measure how the lists of results are moved as they grow.
const ROOM: usize = 256;
const ROOM_FOR_INSTRUCTIONS: usize = 8 * ROOM;

impl Layers {
    pub(crate) fn new(shape: Shape) -> Self {
        let reaches = |depth| shape.depth >= depth;
        let local = NodeId::from_index(shape.local as u64);
        let commands = CommandGraphConfig { nodes: shape.nodes, local };
        let graph = || {
            let graph = InstructionGraph::new(InstructionGraphConfig { devices: shape.devices });
            if shape.direct { graph } else { graph.with_direct_copies(|_, _| false) }
        };
        let mut schedule = Schedule::default();
        if reaches(Depth::Instructions) {
            schedule.instructions.reserve(ROOM_FOR_INSTRUCTIONS);
        }
        Self {
            command_graph: reaches(Depth::Commands).then(|| CommandGraph::new(commands)),
            instructions: reaches(Depth::Instructions).then(|| Instructions::Immediate(graph())),
            commands: Vec::with_capacity(if reaches(Depth::Commands) { ROOM } else { 0 }),
            handed_on: 0,
            schedule,
        }
    }

    /// The same layers with the lookahead of a real run in front of the last.
    pub(crate) fn looking_ahead(self) -> Self {
        let ahead = |instructions| match instructions {
            Instructions::Immediate(graph) => {
                Instructions::Ahead(LookaheadQueue::new(graph, Lookahead::Auto))
            }
            ahead @ Instructions::Ahead(_) => ahead,
        };
        Self { instructions: self.instructions.map(ahead), ..self }
    }

    pub(crate) fn register_buffer(&mut self, info: &BufferInfo) {
        if let Some(graph) = &mut self.command_graph {
            graph.register_buffer(info);
        }
        match &mut self.instructions {
            Some(Instructions::Immediate(graph)) => drop(graph.register_buffer(info)),
            Some(Instructions::Ahead(queue)) => drop(queue.register_buffer(info)),
            None => {}
        }
    }

    /// Makes what `task` needs.
    ///
    /// # Panics
    /// If something is wrong with the task: the benchmarks' programs are valid.
    pub(crate) fn schedule(&mut self, task: &Arc<Task>) {
        let (mut overlaps, mut mistakes) = (Vec::new(), Vec::new());
        let first = self.commands.len();
        if let Some(graph) = &mut self.command_graph {
            graph.schedule(task, &mut self.commands, &mut overlaps);
        }
        match &mut self.instructions {
            Some(Instructions::Immediate(graph)) => {
                for command in &self.commands[first..] {
                    graph.schedule(command, task, &mut self.schedule, &mut mistakes);
                }
            }
            Some(Instructions::Ahead(queue)) => {
                self.handed_on += self.commands.len();
                queue.push(task, &mut self.commands);
                while queue.release(&mut self.schedule, &mut mistakes).is_some() {}
            }
            None => {}
        }
        assert!(overlaps.is_empty() && mistakes.is_empty(), "{overlaps:?} {mistakes:?}");
    }

    /// How much has been made and not [forgotten](Self::forget).
    pub(crate) fn output(&self) -> Output {
        let commands = self.handed_on + self.commands.len();
        let instructions = self.schedule.instructions.len();
        Output { tasks: 0, commands, instructions }
    }

    pub(crate) fn forget(&mut self) {
        self.handed_on = 0;
        self.commands.clear();
        self.schedule.clear();
    }
}
