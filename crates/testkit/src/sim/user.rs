//! The main thread of one node's program, without a thread: it goes on when
//! somebody lets it, and says when it has to wait.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use celerity_executor::{NodeMachine, Payload, Progress, RunError, Submission};
use celerity_tdag::{EpochAction, Task, TaskGraph, TaskId, TaskSpec, Touched, Work};

use super::backend::SimData;
use super::log::What;
use super::world::{Shared, node_id};
use crate::check::Configuration;
use crate::element;
use crate::forwards::Finder;
use crate::hash::initial_contents;
use crate::hash_kernel::HashKernel;
use crate::program::{BufferSpec, MapperTable, Op, Program, TaskKind, TaskOp};
use crate::twin::{Observation, ObservedElements};
use crate::violation::Violation;

/// One node's program.
pub(super) struct User<'a> {
    node: usize,
    program: &'a Program,
    buffers: Vec<BufferSpec>,
    lowering: MapperTable,
    graph: TaskGraph,
    forwards: Finder<'a>,
    /// The task of each statement that has one, by statement.
    tasks: BTreeMap<usize, Arc<Task>>,
    batch: Vec<Arc<Task>>,
    world: Shared,
    progress: Arc<Progress>,
    next_op: usize,
    created: u64,
    /// Horizons submitted so far, and how many may be outstanding.
    horizons: u64,
    run_ahead: u64,
    stop_at: Option<usize>,
    wait: Wait,
    snapshots: Arc<Mutex<Snapshots>>,
}

/// What fences have seen.
#[derive(Debug, Default)]
struct Snapshots {
    all: Vec<ObservedElements>,
    /// The statements whose fences have been reached.
    fences: Vec<usize>,
}

/// What a program waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Nothing,
    Epoch(TaskId),
    /// The snapshot of the fence at this statement.
    Fence(usize),
    /// So many horizons to be reached.
    Horizons(u64),
    /// For nothing any more: it has ended.
    Ended,
}

impl<'a> User<'a> {
    pub(super) fn new(
        node: usize,
        program: &'a Program,
        configuration: &Configuration,
        world: Shared,
        progress: Arc<Progress>,
    ) -> Self {
        let run_ahead = world.lock().conditions.run_ahead;
        Self {
            node,
            program,
            buffers: program.buffers(),
            lowering: MapperTable::default(),
            graph: TaskGraph::new(configuration.task_graph()),
            forwards: Finder::of(program, configuration),
            tasks: BTreeMap::new(),
            batch: Vec::new(),
            world,
            progress,
            next_op: 0,
            created: 0,
            horizons: 0,
            run_ahead,
            stop_at: None,
            wait: Wait::Nothing,
            snapshots: Arc::default(),
        }
    }

    /// Lets the program give up at a statement.
    pub(super) fn stop_at(&mut self, op: usize) {
        self.stop_at = Some(op);
    }

    /// Submits what comes before the first statement.
    pub(super) fn start(&mut self, machine: &mut NodeMachine) {
        let task = self.graph.start();
        for _ in 0..self.program.objects() {
            self.graph.create_object(None);
        }
        machine.submit(Submission::Task { task, payload: None });
    }

    /// Whether [`step`](Self::step) would do something.
    pub(super) fn may_go_on(&self) -> bool {
        match self.wait {
            Wait::Nothing => true,
            Wait::Ended => false,
            Wait::Epoch(_) | Wait::Fence(_) | Wait::Horizons(_)
                if self.progress.error().is_some() =>
            {
                true
            }
            Wait::Fence(op) => self.lock_snapshots().fences.contains(&op),
            Wait::Epoch(task) => self.progress.epoch() >= Some(task),
            Wait::Horizons(count) => self.progress.passed_horizons() >= count,
        }
    }

    /// Executes the next statement, unless the program has to wait for what it
    /// has submitted, or the run has failed.
    ///
    /// # Errors
    /// If the task graph refuses a statement, which is a defect: programs here
    /// are lawful.
    pub(super) fn step(&mut self, machine: &mut NodeMachine) -> Result<(), Violation> {
        let op = self.next_op;
        if let Some(error) = self.progress.error() {
            self.give_up(error.to_string(), machine);
        } else if self.stop_at == Some(op) {
            self.world.lock().faults_met += 1;
            self.give_up(GIVES_UP.to_owned(), machine);
        } else if self.submits(op)
            && self.progress.passed_horizons() + self.run_ahead <= self.horizons
        {
            self.wait = Wait::Horizons(self.horizons - self.run_ahead / 2);
        } else {
            self.wait = Wait::Nothing;
            self.world.lock().ledger.goes_on(self.node, self.progress.held_horizons());
            self.statement(op, machine)?;
        }
        Ok(())
    }

    /// Whether a statement submits a task, for which there must be room. Epochs need none.
    fn submits(&self, op: usize) -> bool {
        matches!(self.program.ops.get(op), Some(Op::Task(_)))
    }

    /// Whether the program has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.wait == Wait::Ended
    }

    /// What the program is doing, in words; `None` if it has ended.
    pub(super) fn describe(&self) -> Option<String> {
        match self.wait {
            Wait::Nothing => Some(format!("is at statement {}", self.next_op)),
            Wait::Epoch(task) => Some(format!("waits for epoch {task}")),
            Wait::Fence(op) => Some(format!("waits for the fence at statement {op}")),
            Wait::Horizons(count) => Some(format!("waits for {count} horizons")),
            Wait::Ended => None,
        }
    }

    /// What the fences have seen so far, in order of the program.
    pub(super) fn observation(&self) -> Observation {
        let mut snapshots = self.lock_snapshots().all.clone();
        // Fences may complete in any order; those of one statement are stored
        // together, in order of its accesses.
        snapshots.sort_by_key(|snapshot| snapshot.op);
        Observation { snapshots }
    }

    fn lock_snapshots(&self) -> MutexGuard<'_, Snapshots> {
        self.snapshots.lock().expect("nobody panics while recording")
    }

    fn statement(&mut self, index: usize, machine: &mut NodeMachine) -> Result<(), Violation> {
        self.next_op += 1;
        self.world.lock().note(self.node, What::Statement { op: index });
        // The statement is borrowed from the program, not from `self`.
        let program = self.program;
        match program.ops.get(index) {
            Some(Op::Create(spec)) => self.create(spec, machine),
            Some(Op::Task(task)) if task.is_void() => {}
            Some(Op::Task(task)) => self.submit(index, task, machine)?,
            Some(Op::Barrier) => self.epoch(EpochAction::Barrier, machine),
            Some(Op::Drop(buffer)) => {
                self.graph.drop_buffer(*buffer);
                self.forwards.drop_buffer(*buffer);
                machine.submit(Submission::Dropped(*buffer));
            }
            None if index == program.ops.len() => self.epoch(EpochAction::Shutdown, machine),
            None => self.close(machine),
        }
        Ok(())
    }

    fn create(&mut self, spec: &BufferSpec, machine: &mut NodeMachine) {
        let data = spec.host_initialized.then(|| {
            let elements = element::volume(&spec.extent);
            let words = initial_contents(self.created, elements, spec.words);
            SimData::adopt(words, self.world.clone())
        });
        self.created += 1;
        let info = self.graph.create_buffer(spec.to_new_buffer());
        self.forwards.create_buffer(&info);
        machine.submit(Submission::Buffer { info, element_type: "", data });
    }

    fn submit(
        &mut self,
        op: usize,
        task: &TaskOp,
        machine: &mut NodeMachine,
    ) -> Result<(), Violation> {
        let refused = |error: celerity_tdag::DeclareError| Violation::Refused {
            op,
            message: error.to_string(),
        };
        let spec = task.to_task_spec(&mut self.lowering);
        let Self { graph, forwards, tasks, batch, .. } = self;
        let task_of = |op| tasks.get(&op).cloned().expect("earlier statements have a task");
        let before =
            |spec: &TaskSpec, touched: &[Touched]| forwards.before((op, spec, touched), task_of);
        let (id, _) = graph.submit_behind(spec, before, batch).map_err(refused)?;
        let submitted = batch.iter().find(|task| task.id == id).expect("just submitted").clone();
        self.forwards.committed(&submitted);
        self.tasks.insert(op, submitted);
        let payload = self.payload(op, task);
        self.send_tasks(Some((id, payload)), machine);
        // Every other fence is waited for at once, as by a program that looks at
        // its result.
        if task.kind == TaskKind::Fence && op.is_multiple_of(2) {
            self.wait = Wait::Fence(op);
        }
        Ok(())
    }

    fn payload(&mut self, op: usize, task: &TaskOp) -> Payload {
        let kernel = HashKernel::new(op, task, &self.buffers, &mut self.lowering);
        match task.kind {
            TaskKind::Device(_) => Payload::Kernel(Arc::new(kernel)),
            TaskKind::HostOnce { .. } | TaskKind::Combine => {
                Payload::Host(kernel.into_host_function())
            }
            TaskKind::HostSplit { .. } => Payload::HostSplit(kernel.into_host_kernel()),
            TaskKind::Fence => {
                let record = self.snapshots.clone();
                Payload::Host(kernel.into_snapshot_function(move |snapshots| {
                    let mut record = record.lock().expect("nobody panics while recording");
                    record.all.extend(snapshots);
                    record.fences.push(op);
                }))
            }
        }
    }

    fn epoch(&mut self, action: EpochAction, machine: &mut NodeMachine) {
        let task = self.graph.epoch(action, &mut self.batch);
        self.send_tasks(None, machine);
        self.wait = Wait::Epoch(task);
    }

    /// Submits the batch; the payload belongs to one of its tasks.
    fn send_tasks(&mut self, mut payload: Option<(TaskId, Payload)>, machine: &mut NodeMachine) {
        for task in self.batch.drain(..) {
            if task.work == Work::Horizon {
                self.horizons += 1;
                self.world.lock().ledger.submitted(task.id);
            }
            let payload =
                payload.take_if(|(owner, _)| *owner == task.id).map(|(_, payload)| payload);
            machine.submit(Submission::Task { task, payload });
        }
    }

    fn give_up(&mut self, message: String, machine: &mut NodeMachine) {
        let node = node_id(self.node);
        machine.submit(Submission::Abort(Box::new(RunError::Stopped { node, message })));
        self.close(machine);
    }

    fn close(&mut self, machine: &mut NodeMachine) {
        self.world.lock().note(self.node, What::Closes);
        machine.submit(Submission::Closed);
        self.wait = Wait::Ended;
    }
}

/// What a program says that gives up by a fault.
pub(super) const GIVES_UP: &str = "the simulated program gives up";
