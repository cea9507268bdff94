//! Tasks that have work left on this node: what they came with, and when it goes back to the user.
//! Knows of instructions only how many there are.

use std::collections::VecDeque;
use std::sync::Arc;

use celerity_tdag::{CollectiveGroup, Task, TaskId, Work};

use crate::contain::Kept;
use crate::starvation::Lag;
use crate::window::Window;
use crate::work::{DeviceKernel, HostFunction, HostKernel, Payload};

/// All tasks that a node has been given and that are not over.
///
/// A task is over when its scheduler has said that it [ends](Self::end) and each of its
/// [added](Self::add_instruction) instructions has [completed](Self::instruction_completed), in
/// whatever order these come. What it owned is kept until somebody asks for it
/// ([`next_over`](Self::next_over)). Every operation is O(1), amortised, but those for reports.
#[derive(Default)]
pub(super) struct Tasks {
    incomplete: Window<RunningTask>,
    over: VecDeque<Over>,
    counts: Counts,
}

/// How many tasks there have been so far.
#[derive(Default)]
struct Counts {
    /// Those that the scheduler has begun with.
    begun: u64,
    /// Those that it is done with, but for instructions that it holds back.
    done: u64,
    /// Those of which no instructions are held back.
    released: u64,
}

/// Which of the host's lanes run the instructions of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostLanes {
    /// Those of their kind, if they need any.
    OfKind,
    /// Those whose jobs never block.
    Prompt,
    /// That of a collective group.
    Collective(CollectiveGroup),
}

/// A task with instructions that have not completed.
struct RunningTask {
    task: Arc<Task>,
    payload: Option<Kept<Payload>>,
    /// Its instructions that have not completed, and 1 until all of them are known.
    incomplete: u32,
    /// Whether all of its instructions are known.
    scheduled: bool,
}

/// A task all of whose instructions have completed, and what it still owns.
pub(super) struct Over {
    pub(super) task: Arc<Task>,
    pub(super) payload: Option<Kept<Payload>>,
}

impl Tasks {
    /// Adds the next task of the task stream.
    pub(super) fn begin(&mut self, task: Arc<Task>, payload: Option<Payload>) {
        self.counts.begun += 1;
        let payload = payload.map(Kept::new);
        let running = RunningTask { task, payload, incomplete: 1, scheduled: false };
        self.incomplete.insert(running.task.id.index(), running);
    }

    /// One of its instructions has become known. Returns which lanes run those for the host.
    pub(super) fn add_instruction(&mut self, task: TaskId) -> HostLanes {
        let running = self.running_mut(task);
        running.incomplete += 1;
        match &running.task.work {
            Work::Fence | Work::Combine { .. } => HostLanes::Prompt,
            Work::HostSplit { group: Some(group), .. } => HostLanes::Collective(*group),
            _ => match running.payload.as_deref() {
                Some(Payload::HostSplit(kernel)) if kernel.is_computing() => HostLanes::Prompt,
                Some(Payload::Host(function)) if function.is_computing().is_some() => {
                    HostLanes::Prompt
                }
                _ => HostLanes::OfKind,
            },
        }
    }

    /// The scheduler is done with all tasks so far.
    pub(super) fn caught_up(&mut self) {
        self.counts.done = self.counts.begun;
    }

    /// All instructions of a task are known. Said once per task.
    pub(super) fn end(&mut self, task: TaskId) {
        self.counts.released += 1;
        self.running_mut(task).scheduled = true;
        // The count that was held while instructions could still be added.
        self.instruction_completed(task);
    }

    /// One of its instructions has completed.
    pub(super) fn instruction_completed(&mut self, task: TaskId) {
        let running = self.running_mut(task);
        running.incomplete -= 1;
        if running.incomplete == 0
            && let Some(RunningTask { task, payload, .. }) = self.incomplete.remove(task.index())
        {
            self.over.push_back(Over { task, payload });
        }
    }

    /// The kernel that a task came with.
    pub(super) fn kernel(&self, task: TaskId) -> Arc<dyn DeviceKernel> {
        match self.running(task).payload.as_deref() {
            Some(Payload::Kernel(kernel)) => kernel.clone(),
            _ => unreachable!("{task} comes with a kernel"),
        }
    }

    /// Whether a task copies something out for the program.
    pub(super) fn delivers(&self, task: TaskId) -> bool {
        let payload = self.running(task).payload.as_deref();
        matches!(payload, Some(Payload::Host(function)) if function.delivers())
    }

    /// Takes the host function that a task came with.
    pub(super) fn host_function(&mut self, task: TaskId) -> HostFunction {
        match self.running_mut(task).payload.take().map(Kept::into_inner) {
            Some(Payload::Host(function)) => function,
            _ => unreachable!("{task} comes with one host function and runs it once"),
        }
    }

    /// What a split host task calls for each chunk, and its collective group, if the task is one.
    pub(super) fn host_kernel(
        &self,
        task: TaskId,
    ) -> Option<(HostKernel, Option<CollectiveGroup>)> {
        let running = self.running(task);
        match running.payload.as_deref() {
            Some(Payload::HostSplit(kernel)) => Some((kernel.clone(), running.task.work.group())),
            _ => None,
        }
    }

    /// The next task that is over, in the order in which they have become so.
    pub(super) fn next_over(&mut self) -> Option<Over> {
        self.over.pop_front()
    }

    /// Why tasks have no instructions yet, of which the program has submitted so many; `None` if
    /// there are no such tasks.
    pub(super) fn lag(&self, submitted: u64) -> Option<Lag> {
        let Counts { begun, done, released } = self.counts;
        if submitted.max(begun) > done {
            return Some(Lag::Unscheduled);
        }
        (done > released).then_some(Lag::HeldBack)
    }

    /// How many of the tasks that the scheduler is done with it holds instructions back of.
    pub(super) fn held_back(&self) -> u64 {
        self.counts.done - self.counts.released
    }

    /// Whether all tasks so far are over.
    pub(super) fn is_empty(&self) -> bool {
        self.incomplete.is_empty()
    }

    /// What cannot be told apart from tasks that are not known any more prints its id; others
    /// print `T3 "step" at src/main.rs:40`.
    pub(super) fn describe(&self, task: TaskId) -> String {
        let running = self.incomplete.get(task.index());
        running.map_or_else(|| task.to_string(), |running| running.task.to_string())
    }

    /// What the user calls a task; its id if it is over.
    pub(super) fn name(&self, task: TaskId) -> Arc<str> {
        let running = self.incomplete.get(task.index());
        running.map_or_else(|| task.to_string().into(), |running| running.task.name.clone())
    }

    /// Tasks some of whose instructions may not be known, in order of submission.
    pub(super) fn unscheduled(&self) -> Vec<String> {
        let unscheduled = self.incomplete.iter().filter(|(_, running)| !running.scheduled);
        unscheduled.map(|(_, running)| running.task.to_string()).collect()
    }

    /// Drops those that are not over: nothing of them will run any more.
    pub(super) fn forget(&mut self) {
        self.incomplete = Window::default();
    }

    fn running(&self, task: TaskId) -> &RunningTask {
        self.incomplete.get(task.index()).expect("tasks outlive their instructions")
    }

    fn running_mut(&mut self, task: TaskId) -> &mut RunningTask {
        self.incomplete.get_mut(task.index()).expect("tasks outlive their instructions")
    }
}

#[cfg(test)]
mod tests {
    use celerity_tdag::{TaskGraph, TaskGraphConfig};

    use super::*;

    /// Epochs, which own what they are given all the same.
    fn tasks(count: usize) -> (Tasks, Vec<TaskId>) {
        let mut graph = TaskGraph::new(TaskGraphConfig::default());
        let mut list = vec![graph.start()];
        while list.len() < count {
            graph.epoch(celerity_tdag::EpochAction::Barrier, &mut list);
        }
        let (mut tasks, mut ids) = (Tasks::default(), Vec::new());
        for task in list.into_iter().take(count) {
            ids.push(task.id);
            let function = HostFunction::new(|_| Ok(()));
            tasks.begin(task, Some(Payload::Host(function)));
        }
        (tasks, ids)
    }

    fn over(tasks: &mut Tasks) -> Vec<TaskId> {
        std::iter::from_fn(|| tasks.next_over()).map(|over| over.task.id).collect()
    }

    #[test]
    fn a_task_is_over_when_all_is_known_and_has_completed_in_either_order() {
        let (mut tasks, ids) = tasks(2);
        for &id in &ids {
            tasks.add_instruction(id);
            tasks.add_instruction(id);
        }
        tasks.end(ids[0]);
        tasks.instruction_completed(ids[0]);
        tasks.instruction_completed(ids[1]);
        tasks.instruction_completed(ids[1]);
        assert_eq!(over(&mut tasks), [], "one lacks an instruction, the other its end");
        tasks.end(ids[1]);
        tasks.instruction_completed(ids[0]);
        assert_eq!(over(&mut tasks), [ids[1], ids[0]], "in the order of their ends");
        assert!(tasks.is_empty());
    }

    #[test]
    fn a_task_without_work_here_is_over_at_once_with_what_it_owned() {
        let (mut tasks, ids) = tasks(1);
        tasks.end(ids[0]);
        let over = tasks.next_over().expect("it is over");
        assert!(over.payload.is_some());
        assert_eq!(tasks.describe(ids[0]), ids[0].to_string());
    }

    #[test]
    fn what_a_host_task_has_run_is_not_given_back_again() {
        let (mut tasks, ids) = tasks(1);
        drop(tasks.host_function(ids[0]));
        tasks.end(ids[0]);
        assert!(tasks.next_over().is_some_and(|over| over.payload.is_none()));
    }

    #[test]
    fn lag_is_first_the_schedulers_and_then_the_lookaheads() {
        let (mut tasks, ids) = tasks(2);
        assert_eq!(tasks.lag(2), Some(Lag::Unscheduled));
        tasks.caught_up();
        assert_eq!(tasks.lag(3), Some(Lag::Unscheduled), "one has not come here yet");
        assert_eq!((tasks.lag(2), tasks.held_back()), (Some(Lag::HeldBack), 2));
        assert_eq!(tasks.unscheduled().len(), 2);
        ids.iter().for_each(|&id| tasks.end(id));
        assert_eq!((tasks.lag(2), tasks.held_back()), (None, 0));
        assert_eq!(tasks.lag(0), None, "who does not say what it submits does not lag");
    }

    #[test]
    fn what_is_forgotten_is_gone_but_for_what_is_over() {
        let (mut tasks, ids) = tasks(2);
        tasks.end(ids[0]);
        tasks.forget();
        assert!(tasks.is_empty());
        assert_eq!(over(&mut tasks), [ids[0]]);
    }
}
