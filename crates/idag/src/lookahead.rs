//! The scheduler's lookahead (instruction-graph preprint, §4.3): commands that will allocate are
//! held back for a while, so that an allocation is made once, as large as what
//! follows needs it. Decides *when* commands become instructions; how, is the
//! [`InstructionGraph`]'s business.

use std::sync::Arc;

use celerity_cdag::Command;
use celerity_tdag::{BufferId, BufferInfo, Task, Work};

use crate::diagnostic::Diagnostic;
use crate::emit::Schedule;
use crate::graph::InstructionGraph;
use crate::instruction::Placement;
use crate::plan::Launches;

/// How long commands that will allocate are held back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Lookahead {
    /// Not at all: allocations that grow are resized, those that do so again and again ahead of what is needed.
    None,
    /// Until two horizons have passed since the last command that needs more
    /// than what is allocated or anticipated: by then, access patterns repeat.
    #[default]
    Auto,
    /// Until somebody may wait.
    Infinite,
}

/// So many horizons after the last allocating command, patterns are taken to
/// repeat (instruction-graph preprint, §4.3).
const STEADY_AFTER: u32 = 2;

/// So many horizons are held back at most, whatever follows: tasks that are not
/// started keep what they own.
const MOST_HELD: [usize; 2] = [64, 1024];

/// An [`InstructionGraph`] behind a queue of tasks. Tasks are held back as a
/// whole. Whatever a user's thread can wait for, an epoch, a fence or a host
/// task, lets go of everything that is held; so do the end of a buffer, which
/// will not grow any more, a limit on what is held (64 horizons, or 1024 with
/// [`Lookahead::Infinite`]), and [`flush`](Self::flush).
///
/// A command costs what it costs in the graph, plus the look-up of each of its
/// accesses in the allocations.
///
/// ```
/// use celerity_cdag::*;
/// use celerity_idag::*;
/// use celerity_regions::Box3;
/// use celerity_tdag::*;
///
/// // Step `n` reads the first `n` rows.
/// let mut tasks = TaskGraph::new(TaskGraphConfig::default());
/// let mut stream = vec![tasks.start()];
/// let u = tasks.create_buffer(NewBuffer {
///     name: None,
///     dims: 2,
///     extent: Box3::from_range([20, 100]),
///     elem_size: 4,
///     elem_align: 4,
///     host_initialized: true,
/// });
/// for rows in 1..20 {
///     let rows = Mapper::Fixed(Arc::new(Box3::from_range([rows, 100]).into()));
///     let declared = tasks.declare(TaskSpec {
///         name: "step".into(),
///         work: Work::Device(IndexSpace::new(0, Box3::UNIT)),
///         accesses: vec![Access::buffer(u.id, AccessMode::Read, rows)],
///         location: None,
///     })?;
///     tasks.commit(declared, &mut stream);
/// }
/// tasks.epoch(EpochAction::Shutdown, &mut stream);
///
/// # use std::sync::Arc;
/// let allocations = |lookahead| {
///     let config = CommandGraphConfig { nodes: 1, local: NodeId::from_index(0) };
///     let mut node = CommandGraph::new(config);
///     let graph = InstructionGraph::new(InstructionGraphConfig { devices: 1 });
///     let mut queue = LookaheadQueue::new(graph, lookahead);
///     node.register_buffer(&u);
///     queue.register_buffer(&u);
///     let (mut schedule, mut commands) = (Schedule::default(), vec![]);
///     for task in &stream {
///         node.schedule(task, &mut commands, &mut vec![]);
///         queue.push(task, &mut commands);
///         while queue.release(&mut schedule, &mut vec![]).is_some() {}
///     }
///     let allocs = |one: &&Instruction| matches!(one.kind, InstructionKind::Alloc { .. });
///     schedule.instructions.iter().filter(allocs).count()
/// };
/// assert_eq!(allocations(Lookahead::None), 8);
/// assert_eq!(allocations(Lookahead::Auto), 1);
/// # Ok::<(), DeclareError>(())
/// ```
#[derive(Debug)]
pub struct LookaheadQueue {
    graph: InstructionGraph,
    lookahead: Lookahead,
    queue: Vec<Queued>,
    /// The commands of the tasks in the queue.
    commands: Vec<Command>,
    /// What the first pass has made of each of them.
    planned: Vec<Launches>,
    /// So many of the queue's first entries need not wait any more.
    released: usize,
    handed_out: HandedOut,
    /// Whether earlier tasks are held back.
    holding: bool,
    /// Horizons since the last command that needed more.
    steady_for: u32,
    held_horizons: usize,
}

/// What takes its turn.
#[derive(Debug)]
enum Queued {
    Task { task: Arc<Task>, commands: usize },
    BufferEnd(BufferId),
}

/// So much of the lists has been handed out. It is forgotten once that is all of what has
/// been released: the lists as a whole, unless later tasks are held back.
#[derive(Debug, Default)]
struct HandedOut {
    entries: usize,
    commands: usize,
}

/// What the instructions of one [`LookaheadQueue::release`] are for.
#[derive(Clone, Copy, Debug)]
pub enum Released<'a> {
    /// A command.
    Command(&'a Command),
    /// No instructions: all of this task's have been handed out.
    TaskEnd(&'a Arc<Task>),
    /// The end of a buffer.
    BufferEnd(BufferId),
}

impl LookaheadQueue {
    /// An empty queue before `graph`.
    #[must_use]
    pub fn new(graph: InstructionGraph, lookahead: Lookahead) -> Self {
        Self {
            graph,
            lookahead,
            queue: Vec::new(),
            commands: Vec::new(),
            planned: Vec::new(),
            released: 0,
            handed_out: HandedOut::default(),
            holding: false,
            steady_for: 0,
            held_horizons: 0,
        }
    }

    /// How long commands that allocate are held back.
    #[must_use]
    pub fn lookahead(&self) -> Lookahead {
        self.lookahead
    }

    /// Changes the policy for the commands to come. What is held stays held
    /// until the new policy, or somebody, lets go of it.
    pub fn set_lookahead(&mut self, lookahead: Lookahead) {
        self.lookahead = lookahead;
    }

    /// See [`InstructionGraph::register_buffer`].
    pub fn register_buffer(&mut self, info: &BufferInfo) -> Option<Placement> {
        self.graph.register_buffer(info)
    }

    /// See [`InstructionGraph::drop_buffer`]. Lets go of what is held.
    pub fn drop_buffer(&mut self, buffer: BufferId) {
        let end = Queued::BufferEnd(buffer);
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::BufferEndOvertakes.is_active() {
            self.queue.insert(self.handed_out.entries, end);
            return self.flush();
        }
        self.queue.push(end);
        self.flush();
    }

    /// Takes the next task with its commands, which leave `commands`, and decides whether
    /// it, and what is held, may go.
    ///
    /// # Panics
    /// If a command names a buffer that is not registered.
    pub fn push(&mut self, task: &Arc<Task>, commands: &mut Vec<Command>) {
        let mut news = false;
        for command in commands.iter() {
            let launches = self.graph.plan(command, task);
            if self.lookahead != Lookahead::None {
                news |= self.graph.anticipate(command, &launches);
            }
            self.planned.push(launches);
        }
        self.queue.push(Queued::Task { task: task.clone(), commands: commands.len() });
        self.commands.append(commands);
        self.hold_or_flush(task, news);
    }

    /// Decides about the task that came last; it brings `news` if it needs more than what
    /// is allocated or anticipated.
    fn hold_or_flush(&mut self, task: &Task, news: bool) {
        let horizon = task.work == Work::Horizon;
        self.steady_for = if news { 0 } else { self.steady_for + u32::from(horizon) };
        if (self.holding || news) && self.may_hold() && !somebody_may_wait(task) {
            self.holding = true;
            self.held_horizons += usize::from(horizon);
        } else {
            self.flush();
        }
    }

    /// Lets go of everything that is held.
    pub fn flush(&mut self) {
        self.released = self.queue.len();
        self.graph.caught_up();
        (self.holding, self.steady_for, self.held_horizons) = (false, 0, 0);
    }

    /// Appends the instructions for the oldest command that need not wait, if
    /// there is one, and what is wrong with it to `diagnostics`.
    pub fn release(
        &mut self,
        out: &mut Schedule,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<Released<'_>> {
        if self.handed_out.entries == self.released {
            self.forget_handed_out();
            return None;
        }
        match &mut self.queue[self.handed_out.entries] {
            Queued::Task { task, commands: 0 } => {
                self.handed_out.entries += 1;
                Some(Released::TaskEnd(task))
            }
            Queued::Task { task, commands } => {
                *commands -= 1;
                let command = &self.commands[self.handed_out.commands];
                let launches = std::mem::take(&mut self.planned[self.handed_out.commands]);
                self.handed_out.commands += 1;
                self.graph.generate(command, task, launches, out, diagnostics);
                Some(Released::Command(command))
            }
            Queued::BufferEnd(buffer) => {
                self.handed_out.entries += 1;
                self.graph.drop_buffer(*buffer, out);
                Some(Released::BufferEnd(*buffer))
            }
        }
    }

    fn forget_handed_out(&mut self) {
        let HandedOut { entries, commands } = std::mem::take(&mut self.handed_out);
        forget_first(&mut self.queue, entries);
        forget_first(&mut self.commands, commands);
        forget_first(&mut self.planned, commands);
        self.released = 0;
    }

    /// Number of horizons that are held back: tasks that were submitted since
    /// cannot be executed before somebody lets go.
    #[must_use]
    pub fn held_horizons(&self) -> usize {
        self.held_horizons
    }

    fn may_hold(&self) -> bool {
        let [auto, infinite] = MOST_HELD;
        match self.lookahead {
            Lookahead::None => false,
            Lookahead::Auto => self.steady_for < STEADY_AFTER && self.held_horizons < auto,
            Lookahead::Infinite => self.held_horizons < infinite,
        }
    }
}

fn forget_first<T>(list: &mut Vec<T>, count: usize) {
    match list.len() == count {
        true => list.clear(),
        false => drop(list.drain(..count)),
    }
}

/// Whether a user's thread can wait for this very task.
fn somebody_may_wait(task: &Task) -> bool {
    match task.work {
        #[cfg(feature = "mutants")]
        Work::Fence if celerity_mutants::Mutant::FenceLetsNothingGo.is_active() => false,
        Work::Fence | Work::HostOnce { .. } | Work::HostSplit { .. } | Work::Epoch(_) => true,
        Work::Device(_) | Work::Combine { .. } | Work::Forward | Work::Horizon => false,
    }
}
