//! Drives the graph generators over a whole program and keeps everything that
//! they hand out. Judges nothing but refusals and diagnostics.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use celerity_cdag::{Command, CommandGraph, CommandGraphConfig, CommandId, NodeId};
use celerity_idag::{
    AllocationId, Diagnostic, Instruction, InstructionGraph, InstructionGraphConfig, Lookahead,
    LookaheadQueue, Pilot, Released, Schedule,
};
use celerity_tdag::{
    BufferId, BufferInfo, EpochAction, Task, TaskGraph, TaskGraphConfig, TaskId, Work,
};

use crate::configuration::Configuration;
use crate::forwards::Finder;
use crate::program::{MapperTable, Op, Program};
use crate::violation::Violation;

/// What reaches the generators below the task graph, in order.
#[derive(Clone, Debug)]
pub enum GeneratorInput {
    /// A buffer was created.
    Create(Arc<BufferInfo>),
    /// A task entered the graph.
    Task(Arc<Task>),
    /// A buffer was dropped.
    Drop(BufferId),
}

/// A program's task graph.
#[derive(Clone, Debug)]
pub struct TaskTrace {
    /// Everything in order.
    pub events: Vec<GeneratorInput>,
    /// The tasks alone, by id.
    pub tasks: Vec<Arc<Task>>,
    /// The statement that each task comes from; `None` for forwards, horizons and epochs.
    pub ops: Vec<Option<usize>>,
}

/// One node's command graph.
#[derive(Clone, Debug)]
pub struct CommandTrace {
    /// The node.
    pub node: NodeId,
    /// Its commands, by id.
    pub commands: Vec<Command>,
    /// Number of commands after each event.
    pub ends: Vec<usize>,
}

/// One node's instruction graph.
#[derive(Clone, Debug)]
pub struct InstructionTrace {
    /// The node.
    pub node: NodeId,
    /// Its instructions, by id.
    pub instructions: Vec<Instruction>,
    /// What each instruction was generated for.
    pub origins: Vec<InstructionOrigin>,
    /// What it announces to others.
    pub pilots: Vec<Pilot>,
    /// The allocations that stand for users' initial data.
    pub user_allocations: Vec<(AllocationId, BufferId)>,
    /// Whether an allocation may serve events after its own.
    pub looks_ahead: bool,
}

/// What an instruction was generated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionOrigin {
    /// The position of the event.
    pub event: usize,
    /// The command; none for the end of a buffer.
    pub command: Option<CommandId>,
}

impl TaskTrace {
    /// Submits the whole program, and the shutdown epoch after it.
    ///
    /// # Errors
    /// [`Violation::Refused`] if a statement is not accepted.
    pub fn of(program: &Program, config: TaskGraphConfig) -> Result<Self, Violation> {
        Self::with(program, config, Finder::off())
    }

    /// The same as a configuration has it, with forwards.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn on(program: &Program, configuration: &Configuration) -> Result<Self, Violation> {
        Self::with(program, configuration.task_graph(), Finder::of(program, configuration))
    }

    fn with(
        program: &Program,
        config: TaskGraphConfig,
        mut finder: Finder<'_>,
    ) -> Result<Self, Violation> {
        let mut graph = TaskGraph::new(config);
        let mut trace = Self { events: Vec::new(), tasks: Vec::new(), ops: Vec::new() };
        let mut lowering = MapperTable::default();
        trace.record(vec![graph.start()], None);
        for _ in 0..program.objects() {
            graph.create_object(None);
        }
        for (index, op) in program.ops.iter().enumerate() {
            match op {
                Op::Create(spec) => {
                    let info = graph.create_buffer(spec.to_new_buffer());
                    finder.create_buffer(&info);
                    trace.events.push(GeneratorInput::Create(info));
                }
                Op::Task(task) if task.is_void() => {}
                Op::Task(task) => {
                    let spec = task.to_task_spec(&mut lowering);
                    let task_of = |op| trace.task_of(op);
                    let mut tasks = Vec::new();
                    let submitted = graph.submit_behind(
                        spec,
                        |spec, touched| finder.before((index, spec, touched), task_of),
                        &mut tasks,
                    );
                    let (id, _) = submitted.map_err(|error| Violation::Refused {
                        op: index,
                        message: error.to_string(),
                    })?;
                    tasks
                        .iter()
                        .filter(|task| task.id == id)
                        .for_each(|task| finder.committed(task));
                    trace.record(tasks, Some(index));
                }
                Op::Barrier => trace.epoch(&mut graph, EpochAction::Barrier),
                Op::Drop(buffer) => {
                    graph.drop_buffer(*buffer);
                    finder.drop_buffer(*buffer);
                    trace.events.push(GeneratorInput::Drop(*buffer));
                }
            }
        }
        trace.epoch(&mut graph, EpochAction::Shutdown);
        Ok(trace)
    }

    /// The statement that a task comes from, unless it synchronises.
    ///
    /// # Panics
    /// If there is no such task.
    #[must_use]
    pub fn op(&self, task: TaskId) -> Option<usize> {
        self.ops[usize::try_from(task.index()).expect("test graphs are small")]
    }

    /// The task of a statement.
    fn task_of(&self, op: usize) -> Arc<Task> {
        let position = self.ops.iter().position(|one| *one == Some(op));
        self.tasks[position.expect("it has been submitted")].clone()
    }

    /// The statement that a forward is before.
    #[must_use]
    pub fn consumer(&self, forward: TaskId) -> Option<usize> {
        let position = usize::try_from(forward.index()).expect("test graphs are small");
        self.ops[position..].iter().find_map(|op| *op)
    }

    fn epoch(&mut self, graph: &mut TaskGraph, action: EpochAction) {
        let mut tasks = Vec::new();
        graph.epoch(action, &mut tasks);
        self.record(tasks, None);
    }

    /// Takes over what one submission has produced: forwards, then `op`'s task; a horizon may
    /// follow.
    fn record(&mut self, tasks: Vec<Arc<Task>>, op: Option<usize>) {
        for task in tasks {
            let executes = !matches!(task.work, Work::Forward | Work::Horizon | Work::Epoch(_));
            self.ops.push(op.filter(|_| executes));
            self.tasks.push(task.clone());
            self.events.push(GeneratorInput::Task(task));
        }
    }
}

impl CommandTrace {
    /// Generates the commands of one of `nodes` nodes.
    ///
    /// # Errors
    /// [`Violation::Diagnosed`] if the generator finds fault with the program.
    pub fn of(tasks: &TaskTrace, nodes: usize, node: NodeId) -> Result<Self, Violation> {
        let mut graph = CommandGraph::new(CommandGraphConfig { nodes, local: node });
        let mut trace = Self { node, commands: Vec::new(), ends: Vec::new() };
        let mut diagnostics = Vec::new();
        for event in &tasks.events {
            match event {
                GeneratorInput::Create(info) => graph.register_buffer(info),
                GeneratorInput::Task(task) => {
                    graph.schedule(task, &mut trace.commands, &mut diagnostics)
                }
                GeneratorInput::Drop(buffer) => graph.drop_buffer(*buffer),
            }
            trace.ends.push(trace.commands.len());
        }
        match diagnostics.first() {
            Some(first) => Err(Violation::Diagnosed { node, message: first.to_string() }),
            None => Ok(trace),
        }
    }

    /// Generates the commands of all nodes.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn of_all(tasks: &TaskTrace, nodes: usize) -> Result<Vec<Self>, Violation> {
        (0..nodes).map(|node| Self::of(tasks, nodes, NodeId::from_index(node as u64))).collect()
    }
}

impl InstructionTrace {
    /// Generates one node's instructions from its commands.
    ///
    /// # Errors
    /// [`Violation::Diagnosed`] if the generator finds fault with the program.
    pub fn of(
        tasks: &TaskTrace,
        commands: &CommandTrace,
        devices: usize,
    ) -> Result<Self, Violation> {
        let graph =
            InstructionGraph::new(InstructionGraphConfig { devices }).on_node(commands.node);
        Self::with(tasks, commands, LookaheadQueue::new(graph, Lookahead::None))
    }

    /// Generates one node's instructions by a generator of the caller's choice.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn with(
        tasks: &TaskTrace,
        commands: &CommandTrace,
        queue: LookaheadQueue,
    ) -> Result<Self, Violation> {
        let mut driver = Driver::new(queue);
        let mut begin = 0;
        for (event, (content, &end)) in tasks.events.iter().zip(&commands.ends).enumerate() {
            driver.submit(event, content, &commands.commands[begin..end]);
            driver.release();
            begin = end;
        }
        if let Some(first) = driver.diagnostics.first() {
            return Err(Violation::Diagnosed { node: commands.node, message: first.to_string() });
        }
        Ok(driver.finish(commands.node))
    }

    /// Generates the instructions of all nodes, in a configuration.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn on(
        tasks: &TaskTrace,
        commands: &[CommandTrace],
        configuration: &Configuration,
    ) -> Result<Vec<Self>, Violation> {
        let queue = |commands: &CommandTrace| configuration.instruction_graph(commands.node);
        commands.iter().map(|node| Self::with(tasks, node, queue(node))).collect()
    }

    /// Generates the instructions of all nodes for a whole program.
    ///
    /// # Errors
    /// If any of the three generators finds fault with the program.
    pub fn of_program(
        program: &Program,
        configuration: &Configuration,
    ) -> Result<Vec<Self>, Violation> {
        let tasks = TaskTrace::on(program, configuration)?;
        let commands = CommandTrace::of_all(&tasks, configuration.nodes)?;
        Self::on(&tasks, &commands, configuration)
    }

    /// Generates the instructions of all nodes, without lookahead.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn of_all(
        tasks: &TaskTrace,
        commands: &[CommandTrace],
        devices: usize,
    ) -> Result<Vec<Self>, Violation> {
        commands.iter().map(|commands| Self::of(tasks, commands, devices)).collect()
    }
}

/// Feeds a node's events to its generator and notes what comes of each.
struct Driver {
    queue: LookaheadQueue,
    schedule: Schedule,
    diagnostics: Vec<Diagnostic>,
    origins: Vec<InstructionOrigin>,
    user_allocations: Vec<(AllocationId, BufferId)>,
    /// The position of each task among the events.
    submitted: HashMap<TaskId, usize>,
    /// The positions of the ends of buffers that have not been released.
    ends: VecDeque<usize>,
}

impl Driver {
    fn new(queue: LookaheadQueue) -> Self {
        Self {
            queue,
            schedule: Schedule::default(),
            diagnostics: Vec::new(),
            origins: Vec::new(),
            user_allocations: Vec::new(),
            submitted: HashMap::new(),
            ends: VecDeque::new(),
        }
    }

    fn submit(&mut self, event: usize, content: &GeneratorInput, commands: &[Command]) {
        match content {
            GeneratorInput::Create(info) => {
                let placed = self.queue.register_buffer(info);
                self.user_allocations.extend(placed.map(|placed| (placed.allocation, info.id)));
            }
            GeneratorInput::Task(task) => {
                self.submitted.insert(task.id, event);
                self.queue.push(task, &mut commands.to_vec());
            }
            GeneratorInput::Drop(buffer) => {
                self.ends.push_back(event);
                self.queue.drop_buffer(*buffer);
            }
        }
    }

    fn release(&mut self) {
        while let Some(one) = self.queue.release(&mut self.schedule, &mut self.diagnostics) {
            let origin = match one {
                Released::Command(command) => InstructionOrigin {
                    event: self.submitted[&command.task],
                    command: Some(command.id),
                },
                Released::BufferEnd(_) => {
                    let event = self.ends.pop_front().expect("buffers end as they were dropped");
                    InstructionOrigin { event, command: None }
                }
                Released::TaskEnd(_) => continue,
            };
            self.origins.resize(self.schedule.instructions.len(), origin);
        }
    }

    fn finish(self, node: NodeId) -> InstructionTrace {
        let looks_ahead = self.queue.lookahead() != Lookahead::None;
        let Self { schedule, origins, user_allocations, .. } = self;
        let Schedule { instructions, pilots, .. } = schedule;
        InstructionTrace { node, instructions, origins, pilots, user_allocations, looks_ahead }
    }
}
