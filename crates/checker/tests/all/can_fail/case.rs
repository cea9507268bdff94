//! Real traces to damage, and ways to damage them.

use std::sync::Arc;

use celerity_cdag::{Command, CommandKind, NodeId};
use celerity_checker::{Depth, Finding, NodeCheckerConfig, check_schedule};
use celerity_idag::{
    DeviceMemory, Instruction, InstructionDependencies, InstructionId, InstructionKind,
};
use celerity_tdag::{Dependencies, GraphId, Task};
use celerity_testkit::check::{Configuration, events};
use celerity_testkit::model::{cdag, idag, tdag};
use celerity_testkit::program::Program;
use celerity_testkit::trace::{CommandTrace, GeneratorInput, InstructionTrace, TaskTrace};
use celerity_testkit::truth::Truth;
use celerity_testkit::violation::Violation;

/// A program with the graphs of all nodes.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) program: Program,
    pub(crate) devices: usize,
    pub(crate) tasks: TaskTrace,
    pub(crate) commands: Vec<CommandTrace>,
    pub(crate) instructions: Vec<InstructionTrace>,
}

impl Case {
    /// The sound graphs of a program.
    pub(crate) fn new(program: Program, configuration: Configuration) -> Self {
        let Configuration { nodes, devices, .. } = configuration;
        let lawful = "the program is lawful";
        let tasks = TaskTrace::of(&program, configuration.task_graph()).expect(lawful);
        let commands = CommandTrace::of_all(&tasks, nodes).expect(lawful);
        let instructions = InstructionTrace::of_all(&tasks, &commands, devices).expect(lawful);
        let case = Self { program, devices, tasks, commands, instructions };
        if let Err(finding) = case.verdict() {
            panic!("the graphs are sound: {finding}");
        }
        case
    }

    /// What the checker says.
    pub(crate) fn verdict(&self) -> Result<(), Box<Finding>> {
        self.verdict_at(Depth::Full, false)
    }

    /// What the checker says with other options.
    pub(crate) fn verdict_at(
        &self,
        depth: Depth,
        eager_allocation: bool,
    ) -> Result<(), Box<Finding>> {
        let config = NodeCheckerConfig {
            nodes: self.commands.len(),
            local: NodeId::from_index(0),
            devices: self.devices,
            device_memory: DeviceMemory::Own,
            device_wires: false,
            device_collectives: false,
            depth,
            eager_allocation,
        };
        let nodes = self.commands.iter().zip(&self.instructions);
        check_schedule(config, nodes.map(|(cdag, idag)| events(&self.tasks, cdag, idag)))
    }

    /// What the brute-force models say.
    pub(crate) fn verdict_of_models(&self) -> Result<(), Violation> {
        let truth = Truth::of(&self.program);
        tdag::check(&truth, &self.tasks)?;
        cdag::check(&truth, &self.tasks, &self.commands, 7)?;
        let cluster = Configuration::new(self.commands.len(), self.devices);
        let configuration = Configuration { seed: 7, ..cluster };
        idag::check(&truth, &self.tasks, &self.instructions, &configuration)
    }

    /// The position of the first instruction of a node that `is_wanted`.
    pub(crate) fn find(&self, node: usize, is_wanted: impl Fn(&InstructionKind) -> bool) -> usize {
        let mut all = self.instructions[node].instructions.iter();
        all.position(|one| is_wanted(&one.kind)).expect("there is such an instruction")
    }

    /// The first instruction of a node that `is_wanted`.
    pub(crate) fn kind(
        &mut self,
        node: usize,
        is_wanted: impl Fn(&InstructionKind) -> bool,
    ) -> &mut InstructionKind {
        let position = self.find(node, is_wanted);
        &mut self.instructions[node].instructions[position].kind
    }

    /// The first command of a node that `is_wanted`.
    pub(crate) fn command(
        &mut self,
        node: usize,
        is_wanted: impl Fn(&CommandKind) -> bool,
    ) -> &mut Command {
        let mut all = self.commands[node].commands.iter_mut();
        all.find(|one| is_wanted(&one.kind)).expect("there is such a command")
    }

    /// Changes a task, on all nodes.
    pub(crate) fn change_task(&mut self, position: usize, change: impl Fn(&mut Task)) {
        let mut task = (*self.tasks.tasks[position]).clone();
        change(&mut task);
        let task = Arc::new(task);
        self.tasks.tasks[position] = task.clone();
        for event in &mut self.tasks.events {
            match event {
                GeneratorInput::Task(old) if old.id == task.id => *old = task.clone(),
                _ => {}
            }
        }
    }

    /// Takes an instruction out. Who waited for it waits for what it waited for.
    pub(crate) fn remove(&mut self, node: usize, position: usize) {
        let trace = &mut self.instructions[node];
        let removed = trace.instructions.remove(position);
        trace.origins.remove(position);
        for later in &mut trace.instructions[position..] {
            later.id = shifted(later.id, -1);
            let mut edges = InstructionDependencies::new();
            for edge in std::mem::take(&mut later.dependencies) {
                let instead = [edge];
                let same = if edge == removed.id { &removed.dependencies[..] } else { &instead };
                for &edge in same {
                    let edge = if edge > removed.id { shifted(edge, -1) } else { edge };
                    if !edges.contains(&edge) {
                        edges.push(edge);
                    }
                }
            }
            later.dependencies = edges;
        }
    }

    /// Inserts an instruction like the one at `position` right behind it, which
    /// waits for it; who waited for the first waits for both.
    pub(crate) fn insert_after(&mut self, node: usize, position: usize, kind: InstructionKind) {
        let trace = &mut self.instructions[node];
        let first = trace.instructions[position].id;
        for later in &mut trace.instructions[position + 1..] {
            later.id = shifted(later.id, 1);
            let again = later.dependencies.contains(&first);
            later.dependencies.iter_mut().filter(|edge| **edge > first).for_each(|edge| {
                *edge = shifted(*edge, 1);
            });
            if again {
                later.dependencies.push(shifted(first, 1));
            }
        }
        let dependencies = InstructionDependencies::from_slice(&[first]);
        let inserted = Instruction { id: shifted(first, 1), kind, dependencies };
        trace.instructions.insert(position + 1, inserted);
        trace.origins.insert(position + 1, trace.origins[position]);
    }
}

fn shifted(id: InstructionId, by: i64) -> InstructionId {
    InstructionId::from_index(id.index().wrapping_add_signed(by))
}

/// The edges but for one.
pub(crate) fn without<I: GraphId>(edges: &Dependencies<I>, on: I) -> Dependencies<I> {
    let mut kept = Dependencies::default();
    edges.iter().filter(|edge| edge.on != on).for_each(|edge| kept.add(edge.on, edge.kind));
    kept
}
