//! The first half of a node: turns what user threads submit into what the other
//! half runs. A poll-driven state machine; knows no memory, lane or network.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use celerity_cdag::{CommandGraphConfig, NodeId};
use celerity_idag::{InstructionGraph, Lookahead, Placement, Schedule};
use celerity_tdag::{BufferId, BufferInfo, MapperPanic, ObjectId, Task, TaskId};
use celerity_trace::Text;

use crate::contain::said;
use crate::error::{RunError, ScheduleError};
use crate::observe::Observer;
use crate::profile::StageProfile;
use crate::pulse::{UserCall, UserCalls};
use crate::submission::Submission;
use crate::threads::while_mapping;
use crate::work::{HostData, Payload};

mod generator;

use generator::Generator;

/// Generates the commands and instructions of one node.
///
/// ```text
/// Submission ──► Scheduler ──► SchedulerMessage ──► Executor
/// ```
///
/// After its first error it generates nothing more, but passes on what user
/// threads hand over: payloads must outlive the publication of the error.
pub struct Scheduler {
    node: NodeId,
    generator: Generator,
    failed: bool,
    profile: Option<StageProfile>,
    /// What of the user's this half of the node is in.
    calls: Arc<UserCalls>,
}

/// What a node's second half is told: owned, in order, once.
pub enum SchedulerMessage {
    /// A buffer has been created; its initial contents, with the allocation that they are.
    Buffer {
        /// Its description.
        info: Arc<BufferInfo>,
        /// What the type of its elements is called.
        element_type: &'static str,
        /// Its initial contents.
        initial: Option<(Placement, HostData)>,
    },
    /// A buffer has got a new name.
    Renamed(Arc<BufferInfo>),
    /// No later task names the buffer.
    Dropped(BufferId),
    /// A host object has been created.
    Object(ObjectId),
    /// The next task.
    Task {
        /// Its record.
        task: Arc<Task>,
        /// What to run, for tasks that run something.
        payload: Option<Payload>,
        /// The instructions that are let go of with it: its own are among them, or follow
        /// later. `None` after an error.
        batch: Option<Batch>,
    },
    /// The next instructions, without a task.
    Batch(Batch),
    /// The run must stop.
    Fail(Box<RunError>),
    /// Nothing else will come.
    Closed,
}

/// What one step of the generators has let go of.
#[derive(Default)]
pub struct Batch {
    /// Instructions to run, and pilots to send to other nodes.
    pub schedule: Schedule,
    /// The tasks whose last instructions are among them, or came before.
    pub ended: Vec<TaskId>,
    /// Horizons that are held back after this step.
    pub held_horizons: u64,
    /// A hash of what users' range mappers have said of all nodes' chunks so far.
    pub answers: u64,
}

impl Batch {
    fn clear(&mut self) {
        self.schedule.clear();
        self.ended.clear();
    }
}

impl Scheduler {
    /// The scheduler of a node; `instructions` is an empty graph for its devices.
    #[must_use]
    pub fn new(commands: CommandGraphConfig, instructions: InstructionGraph) -> Self {
        let node = commands.local;
        Self {
            node,
            generator: Generator::new(commands, instructions.on_node(node)),
            failed: false,
            profile: None,
            calls: Arc::default(),
        }
    }

    /// Changes how long commands are held back that will allocate.
    pub fn set_lookahead(&mut self, lookahead: Lookahead) {
        self.generator.set_lookahead(lookahead);
    }

    /// Lets at most so many different sets of some nodes exchange data in collective operations, as
    /// [`CommandGraph::limit_member_sets`](celerity_cdag::CommandGraph::limit_member_sets) says.
    pub fn limit_member_sets(&mut self, most: usize) {
        self.generator.limit_member_sets(most);
    }

    /// Shows `observer` everything that is generated.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.generator.observe(observer);
    }

    /// Tells `calls` what of the user's it is in.
    pub(crate) fn tell_calls(&mut self, calls: &Arc<UserCalls>) {
        self.calls = calls.clone();
    }

    /// Records each step of the generators.
    pub(crate) fn record(&mut self, profile: StageProfile) {
        self.profile = Some(profile);
    }

    /// Takes a submission, and passes on what follows from it.
    pub fn submit(&mut self, submission: Submission, out: &mut impl Extend<SchedulerMessage>) {
        let mut tell = |order| out.extend([order]);
        match submission {
            Submission::Buffer { info, element_type, data } => {
                let initial = self.generator.register_buffer(&info).zip(data);
                tell(SchedulerMessage::Buffer { info, element_type, initial });
            }
            Submission::Renamed(info) => {
                let _ = self.generator.register_buffer(&info);
                tell(SchedulerMessage::Renamed(info));
            }
            Submission::Dropped(buffer) => {
                let batch = self.step(None, |generator| generator.drop_buffer(buffer));
                self.release(batch, &mut tell);
                tell(SchedulerMessage::Dropped(buffer));
            }
            Submission::Object(object) => tell(SchedulerMessage::Object(object)),
            Submission::Task { task, payload } => {
                let outcome = self.step(Some(&task), |generator| generator.generate(&task));
                let (batch, error) =
                    outcome.map_or_else(|error| (None, Some(error)), |batch| (batch, None));
                tell(SchedulerMessage::Task { task, payload, batch });
                if let Some(error) = error {
                    self.fail(error, &mut tell);
                }
            }
            Submission::Weighed(weighed) => self.generator.weighed(&weighed),
            Submission::Lookahead(lookahead) => self.generator.set_lookahead(lookahead),
            Submission::Flush => {
                let batch = self.step(None, Generator::flush);
                self.release(batch, &mut tell);
            }
            Submission::Abort(error) => self.fail(*error, &mut tell),
            Submission::Closed => tell(SchedulerMessage::Closed),
        }
    }

    /// Generates nothing more: the run has failed elsewhere.
    pub fn stop(&mut self) {
        self.failed = true;
    }

    /// Takes a batch's memory back, so that a later one allocates nothing.
    pub fn recycle(&mut self, mut batch: Batch) {
        batch.clear();
        self.generator.recycle(batch);
    }

    /// Takes a step of the generators, for `task` if for any; returns what it lets go of,
    /// and nothing after an error.
    fn step(
        &mut self,
        task: Option<&Task>,
        step: impl FnOnce(&mut Generator) -> Result<Batch, Box<ScheduleError>>,
    ) -> Result<Option<Batch>, RunError> {
        if self.failed {
            return Ok(None);
        }
        let (generator, profile) = (&mut self.generator, self.profile.as_ref());
        let name = || task.map_or("release".into(), |task| Text::Shared(task.name.clone()));
        let label = |_: &_| (name(), task.map(|task| task.id));
        let step = || catch_unwind(AssertUnwindSafe(|| while_mapping(|| step(generator))));
        let timed = || StageProfile::timed(profile, label, step);
        let outcome = match task {
            Some(task) => self.calls.during(UserCall::Mapper(task.id), timed),
            None => timed(),
        };
        let error = match outcome {
            Ok(Ok(batch)) => return Ok(Some(batch)),
            Ok(Err(error)) => error,
            Err(panic) => return Err(self.blame(task, panic)),
        };
        Err(RunError::Schedule { node: self.node, error })
    }

    /// The error for a panic of the generators: a user's, if it is one of a range mapper that
    /// they have asked, and otherwise our own.
    fn blame(&self, task: Option<&Task>, panic: Box<dyn Any + Send>) -> RunError {
        let node = self.node;
        if panic.is::<MapperPanic>() {
            let task = task.map(ToString::to_string);
            let error = ScheduleError::MapperPanicked { task, said: said(panic) };
            return RunError::Schedule { node, error: Box::new(error) };
        }
        let what =
            task.map_or_else(|| "what was held back".to_owned(), |task| format!("task {task}"));
        let message = format!("{node} panicked while it scheduled {what}: {}", said(panic));
        RunError::Internal { message }
    }

    /// Passes on what a step without a task has led to.
    fn release(
        &mut self,
        outcome: Result<Option<Batch>, RunError>,
        tell: &mut impl FnMut(SchedulerMessage),
    ) {
        match outcome {
            Ok(batch) => batch.into_iter().for_each(|batch| tell(SchedulerMessage::Batch(batch))),
            Err(error) => self.fail(error, tell),
        }
    }

    fn fail(&mut self, error: RunError, tell: &mut impl FnMut(SchedulerMessage)) {
        if !std::mem::replace(&mut self.failed, true) {
            tell(SchedulerMessage::Fail(Box::new(error)));
        }
    }
}

#[cfg(test)]
mod tests {
    use celerity_idag::InstructionGraphConfig;
    use celerity_regions::{Box3, Region};
    use celerity_tdag::{
        Access, AccessMode, Conflicts, Dependencies, IndexSpace, Mapper, MapperInput, UserMapper,
        Work,
    };

    use super::*;

    fn scheduler() -> Scheduler {
        let commands = CommandGraphConfig { nodes: 1, local: NodeId::from_index(0) };
        Scheduler::new(commands, InstructionGraph::new(InstructionGraphConfig { devices: 1 }))
    }

    fn buffer() -> Arc<BufferInfo> {
        Arc::new(BufferInfo {
            id: BufferId::from_index(0),
            name: "u".into(),
            dims: 1,
            extent: Box3::from_range([8]),
            elem_size: 8,
            elem_align: 8,
            host_initialized: false,
        })
    }

    /// What comes of a kernel that reads the first buffer.
    fn error_of(scheduler: &mut Scheduler, mapper: Mapper) -> RunError {
        let buffer = BufferId::from_index(0);
        let task = Task {
            id: TaskId::from_index(0),
            name: "step".into(),
            work: Work::Device(IndexSpace::new(1, Box3::from_range([8]))),
            accesses: Box::new([Access::buffer(buffer, AccessMode::Read, mapper)]),
            dependencies: Dependencies::default(),
            conflicts: Conflicts::default(),
            location: None,
            forward: None,
        };
        let mut orders = Vec::new();
        scheduler.submit(Submission::Task { task: Arc::new(task), payload: None }, &mut orders);
        match orders.pop() {
            Some(SchedulerMessage::Fail(error)) => *error,
            _ => panic!("it was scheduled"),
        }
    }

    #[test]
    fn who_panics_is_to_blame() {
        let mut with_buffer = scheduler();
        with_buffer.submit(
            Submission::Buffer { info: buffer(), element_type: "", data: None },
            &mut Vec::new(),
        );
        let broken = UserMapper::new(|_: &MapperInput| -> Region { panic!("no such part") });
        let text = error_of(&mut with_buffer, Mapper::User(broken)).to_string();
        assert!(
            text.contains("a range mapper of task T0 \"step\" panicked: no such part"),
            "{text}"
        );

        // Nobody has told it of the buffer, which is what a defect of the runtime looks like.
        let error = error_of(&mut scheduler(), Mapper::OneToOne);
        let text = error.to_string();
        assert!(matches!(error, RunError::Internal { .. }), "{text}");
        assert!(text.contains("a defect of the runtime: N0 panicked while it scheduled"), "{text}");
        assert!(text.contains("T0 \"step\": ") && !text.contains("range mapper"), "{text}");
    }
}
