//! The contract of the task graph: every read waits (transitively) for the last
//! writer of each element, every write for the last writer and all readers
//! since; every edge has a reason; horizons and epochs wait for all that came
//! before, and everything waits for the last epoch.

use celerity_regions::Box3;
use celerity_tdag::{Access, AccessMode, BufferAccess, BufferId, MapperInput, Task, Work};

use super::ledger::{Groups, Ledger, Needs};
use super::objects::{self, Affecting};
use super::{check_shape, check_synchronization};
use crate::element;
use crate::footprint::ElementFootprint;
use crate::program::{TaskOp, buffer_slot};
use crate::queries::{BufferNames, Dag};
use crate::trace::TaskTrace;
use crate::truth::Truth;
use crate::violation::Violation;

/// Checks a program's task graph against the program.
///
/// # Errors
/// The first broken promise.
pub fn check(truth: &Truth<'_>, trace: &TaskTrace) -> Result<(), Violation> {
    let dag = Dag::of_tasks(&trace.tasks, &BufferNames::default());
    check_shape(&dag, trace.tasks.iter().map(|task| task.id))?;
    let synchronizes = |task: usize| synchronizes(&trace.tasks[task]);
    let separates = |task: usize| matches!(trace.tasks[task].work, Work::Epoch(_));
    check_content(truth, trace)?;
    check_dataflow(truth, trace, &dag)?;
    check_objects(truth, trace, &dag)?;
    check_synchronization(&dag, synchronizes, separates)
}

/// Every task is there once, in order, with the accesses that were asked for.
fn check_content(truth: &Truth<'_>, trace: &TaskTrace) -> Result<(), Violation> {
    let submitted: Vec<usize> = trace.ops.iter().flatten().copied().collect();
    let expected: Vec<usize> = truth.tasks().map(|(op, ..)| op).collect();
    if submitted != expected {
        let what = format!("tasks {submitted:?} are in the graph instead of {expected:?}");
        return Err(Violation::WrongAssignment { op: 0, what });
    }
    for (task, op) in trace.tasks.iter().zip(&trace.ops) {
        let Some(op) = *op else { continue };
        let wanted: Vec<(BufferId, _)> =
            truth.task(op).0.accesses.iter().map(|access| (access.buffer, access.mode)).collect();
        let found: Vec<_> =
            task.buffer_accesses().map(|access| (access.buffer, access.mode)).collect();
        if !task.side_effects().copied().eq(truth.task(op).0.side_effects()) {
            let what = format!("{task} has other side effects than were asked for");
            return Err(Violation::WrongAssignment { op, what });
        }
        if wanted != found {
            let what = format!("{task} has accesses {found:?} instead of {wanted:?}");
            return Err(Violation::WrongAssignment { op, what });
        }
    }
    Ok(())
}

fn check_dataflow(truth: &Truth<'_>, trace: &TaskTrace, dag: &Dag) -> Result<(), Violation> {
    let reach = dag.reachability();
    let elements = truth.buffers().iter().map(|spec| element::volume(&spec.extent));
    let mut ledgers: Vec<Ledger> = elements.map(Ledger::new).collect();
    let mut groups = Groups::default();
    for (position, op) in trace.ops.iter().enumerate() {
        let Some(op) = *op else {
            if trace.tasks[position].work == Work::Forward {
                let needs = forwarded(truth, &trace.tasks[position], position, dag, &mut ledgers)?;
                needs.check_met(position, dag, &reach, |slot| format!("element {slot}"))?;
                needs.check_reasons(position, dag, |on| synchronizes(&trace.tasks[on]))?;
            }
            continue;
        };
        let (task, footprint) = truth.task(op);
        let mut needs = Needs::default();
        for buffer in touched_buffers(task) {
            let of_buffer =
                touch(&mut ledgers[buffer_slot(buffer)], position, buffer, task, footprint);
            of_buffer.check_met(position, dag, &reach, |slot| truth.place(buffer, slot))?;
            needs.merge(of_buffer);
        }
        let mut in_group = Needs::default();
        in_group.follow(&mut groups, task.kind.group(), position);
        in_group.check_met(position, dag, &reach, |_| "their collective group".into())?;
        needs.merge(in_group);
        if !task.effects.is_empty() {
            let before = trace.ops[..position].iter().enumerate();
            let before = before.filter_map(|(at, op)| Some((at, truth.task((*op)?).0)));
            needs.add_effects(objects::reasons(before, task));
        }
        needs.check_reasons(position, dag, |on| synchronizes(&trace.tasks[on]))?;
    }
    Ok(())
}

/// A forward is ordered as what reads and overwrites the elements that it names.
fn forwarded(
    truth: &Truth<'_>,
    task: &Task,
    position: usize,
    dag: &Dag,
    ledgers: &mut [Ledger],
) -> Result<Needs, Violation> {
    let [Access::Buffer(BufferAccess { buffer, mode: AccessMode::ReadWrite, mapper })] =
        &*task.accesses
    else {
        let what = "is a forward of anything but one region".into();
        return Err(Violation::Malformed { node: dag.describe(position), what });
    };
    let extent = truth.buffer(*buffer).extent;
    let input = MapperInput { chunk: Box3::UNIT, global: Box3::UNIT, buffer: extent };
    let mut needs = Needs::default();
    for slot in element::slots(&extent, &mapper.map(&input)) {
        ledgers[buffer_slot(*buffer)].read(position, slot, &mut needs);
        ledgers[buffer_slot(*buffer)].write(position, slot, &mut needs);
    }
    Ok(needs)
}

fn synchronizes(task: &Task) -> bool {
    matches!(task.work, Work::Horizon | Work::Epoch(_))
}

fn check_objects(truth: &Truth<'_>, trace: &TaskTrace, dag: &Dag) -> Result<(), Violation> {
    let tasks = trace.tasks.iter().enumerate().filter_map(|(position, task)| {
        let spec = truth.task(trace.ops[position]?).0;
        let conflicts = task.conflicts.as_slice().iter();
        let conflicts = conflicts.map(|with| position_of(with.index())).collect();
        let affects = !spec.effects.is_empty() || !task.conflicts.is_empty();
        affects.then_some(Affecting { position, task: spec, conflicts })
    });
    objects::check(&tasks.collect::<Vec<_>>(), dag, &dag.reachability())
}

fn position_of(index: u64) -> usize {
    usize::try_from(index).expect("test graphs are small")
}

fn touched_buffers(task: &TaskOp) -> Vec<BufferId> {
    let mut buffers: Vec<BufferId> = task.accesses.iter().map(|access| access.buffer).collect();
    buffers.sort_unstable();
    buffers.dedup();
    buffers
}

fn touch(
    ledger: &mut Ledger,
    position: usize,
    buffer: BufferId,
    task: &TaskOp,
    footprint: &ElementFootprint,
) -> Needs {
    let mut needs = Needs::default();
    let accesses = task.accesses.iter().enumerate().filter(|(_, access)| access.buffer == buffer);
    for (nth, access) in accesses {
        for slot in footprint.whole(nth) {
            if access.mode.reads() {
                ledger.read(position, slot, &mut needs);
            }
            if access.mode.writes() {
                ledger.write(position, slot, &mut needs);
            }
        }
    }
    needs
}
