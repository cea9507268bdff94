//! Who has been at the host objects of a node, and when: what host tasks with side effects note
//! while they run, and what must be true of it. Knows the program's order, and no graph.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use celerity_cdag::NodeId;
use celerity_regions::Box3;
use celerity_tdag::{ObjectId, SideEffectOrder};

use crate::program::{Op, Program, TaskKind, TaskOp};
use crate::violation::Violation;

/// What has happened at the objects of one node, in order.
#[derive(Clone, Debug, Default)]
pub struct Visits(Arc<Mutex<Vec<Step>>>);

/// A chunk of a task enters or leaves the objects that the task affects, all at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Enter(usize, Box3),
    Leave(usize, Box3),
}

/// One chunk of a task, from when it came until it left: positions among the steps.
type Stay = (Box3, usize, usize);

/// The right of one task to note its visit.
#[derive(Clone, Debug)]
pub struct Visit {
    visits: Visits,
    op: usize,
}

impl Visits {
    /// Of the task at a statement; nothing if it has no side effects.
    #[must_use]
    pub fn of(&self, op: usize, task: &TaskOp) -> Option<Visit> {
        (!task.effects.is_empty()).then(|| Visit { visits: self.clone(), op })
    }

    fn note(&self, step: Step) {
        self.0.lock().expect("nobody panics while noting").push(step);
    }

    /// Holds the visits of one of so many nodes against the program: each task that runs there has come once, or once
    /// for each of its chunks if it is split; of two tasks with a sequential effect on one object,
    /// the earlier one has left before the later one has come; of two with an exclusive one, one
    /// chunk has left before the other has come. Chunks of a task with either come in their order.
    ///
    /// O(statements² · chunks²).
    ///
    /// # Errors
    /// The first visit that should have been otherwise.
    pub fn check(&self, program: &Program, node: NodeId, nodes: usize) -> Result<(), Violation> {
        let steps = self.0.lock().expect("nobody panics while noting").clone();
        let mut seen: Vec<(usize, &TaskOp, Vec<Stay>)> = Vec::new();
        for (op, task) in affecting(program, node, nodes as u64) {
            let wrong = |what: String| Violation::Visit { node, op, what };
            let stays = stays(&steps, op).map_err(wrong)?;
            if task.kind.split().is_none() && stays.len() != 1 {
                let times = stays.len();
                return Err(wrong(format!("comes to its host objects {times} times")));
            }
            if !task.side_effects().all(|one| one.order == SideEffectOrder::Relaxed) {
                check_turns(&stays).map_err(wrong)?;
            }
            for (earlier, other, theirs) in &seen {
                let Some((object, order)) = strictest(task, other) else { continue };
                if !are_apart(theirs, &stays, order) {
                    let what = format!(
                        "meets or overtakes statement {earlier} at {object}, which is {order}"
                    );
                    return Err(wrong(what));
                }
            }
            seen.push((op, task, stays));
        }
        Ok(())
    }
}

impl Visit {
    /// Runs `body` for a chunk between coming and leaving, which takes long enough for others to
    /// come.
    pub fn during<R>(self, chunk: Box3, body: impl FnOnce() -> R) -> R {
        self.visits.note(Step::Enter(self.op, chunk));
        thread::sleep(Duration::from_micros(30));
        let outcome = body();
        self.visits.note(Step::Leave(self.op, chunk));
        outcome
    }
}

/// When the chunks of a statement came and left, in order of coming.
fn stays(steps: &[Step], op: usize) -> Result<Vec<Stay>, String> {
    let mut stays: Vec<Stay> = Vec::new();
    for (came, step) in steps.iter().enumerate() {
        let Step::Enter(_, chunk) = *step else { continue };
        if *step != Step::Enter(op, chunk) {
            continue;
        }
        if stays.iter().any(|(other, ..)| *other == chunk) {
            return Err(format!("comes to its host objects twice with chunk {chunk}"));
        }
        let left = steps.iter().position(|step| *step == Step::Leave(op, chunk));
        let left = left.ok_or_else(|| format!("does not leave its host objects with {chunk}"))?;
        stays.push((chunk, came, left));
    }
    Ok(stays)
}

/// Chunks of one task come one after the other, in ascending order.
fn check_turns(stays: &[Stay]) -> Result<(), String> {
    let is_turn = |pair: &[Stay]| {
        let [(one, _, left), (other, came, _)] = pair else { unreachable!("pairs") };
        left < came && one.min() < other.min()
    };
    match stays.windows(2).all(is_turn) {
        true => Ok(()),
        false => Err("has chunks that are not at its host objects in turn".into()),
    }
}

/// Whether the stays of two tasks, the first of which was submitted first, are as `order` says.
fn are_apart(earlier: &[Stay], later: &[Stay], order: SideEffectOrder) -> bool {
    earlier.iter().all(|&(_, came, left)| {
        later.iter().all(|&(_, enter, leave)| match order {
            SideEffectOrder::Sequential => left < enter,
            SideEffectOrder::Exclusive => left < enter || leave < came,
            SideEffectOrder::Relaxed => true,
        })
    })
}

/// The tasks with side effects that run on a node, in order of the program.
fn affecting(
    program: &Program,
    node: NodeId,
    nodes: u64,
) -> impl Iterator<Item = (usize, &TaskOp)> {
    let tasks = program.ops.iter().enumerate().filter_map(|(op, content)| match content {
        Op::Task(task) if !task.effects.is_empty() => Some((op, task)),
        _ => None,
    });
    tasks.filter(move |(_, task)| match task.kind {
        TaskKind::HostOnce { node: on } => on % nodes == node.index(),
        TaskKind::HostSplit { .. } | TaskKind::Fence | TaskKind::Combine => true,
        TaskKind::Device(_) => false,
    })
}

/// Of the objects that two tasks affect, one whose side effects keep them apart most, with what
/// these are together.
#[must_use]
pub fn strictest(task: &TaskOp, other: &TaskOp) -> Option<(ObjectId, SideEffectOrder)> {
    let shared = task.side_effects().flat_map(|one| {
        let same = other.side_effects().filter(move |theirs| theirs.object == one.object);
        same.map(move |theirs| (one.object, stricter(one.order, theirs.order)))
    });
    shared.min_by_key(|(_, order)| rank(*order))
}

fn stricter(one: SideEffectOrder, other: SideEffectOrder) -> SideEffectOrder {
    if rank(one) <= rank(other) { one } else { other }
}

fn rank(order: SideEffectOrder) -> u8 {
    match order {
        SideEffectOrder::Sequential => 0,
        SideEffectOrder::Exclusive => 1,
        SideEffectOrder::Relaxed => 2,
    }
}

#[cfg(test)]
mod tests {
    use celerity_tdag::{IndexSpace, ObjectAccess};

    use super::*;
    use SideEffectOrder::{Exclusive, Relaxed, Sequential};

    const ONCE: TaskKind = TaskKind::HostOnce { node: 2 };

    fn program(kind: &TaskKind, orders: &[SideEffectOrder]) -> Program {
        let task = |&order| {
            Op::Task(TaskOp {
                name: "visit".into(),
                kind: *kind,
                accesses: Vec::new(),
                effects: vec![ObjectAccess { object: ObjectId::from_index(0), order }],
            })
        };
        Program { ops: orders.iter().map(task).collect() }
    }

    fn split(group: Option<usize>) -> TaskKind {
        TaskKind::HostSplit { space: IndexSpace::new(1, Box3::from_range([4])), group }
    }

    /// On the first of two nodes.
    fn verdict(kind: &TaskKind, orders: &[SideEffectOrder], steps: &[Step]) -> Result<(), String> {
        let visits = Visits(Arc::new(Mutex::new(steps.to_vec())));
        let verdict = visits.check(&program(kind, orders), NodeId::from_index(0), 2);
        verdict.map_err(|violation| violation.to_string())
    }

    fn stay(op: usize, chunk: Box3) -> [Step; 2] {
        [Step::Enter(op, chunk), Step::Leave(op, chunk)]
    }

    #[test]
    fn each_order_allows_what_it_says() {
        let [a, b] = [0, 1].map(|op| stay(op, Box3::UNIT));
        let in_order = [a[0], a[1], b[0], b[1]];
        let reversed = [b[0], b[1], a[0], a[1]];
        let at_once = [a[0], b[0], a[1], b[1]];
        for orders in [[Relaxed, Relaxed], [Exclusive, Relaxed], [Relaxed, Sequential]] {
            let strict = stricter(orders[0], orders[1]);
            for kind in [ONCE, split(None)] {
                let allows = |steps: &[Step]| verdict(&kind, &orders, steps).is_ok();
                assert!(allows(&in_order));
                assert_eq!(allows(&reversed), strict != Sequential, "{orders:?}");
                assert_eq!(allows(&at_once), strict == Relaxed, "{orders:?}");
            }
        }
        let twice = verdict(&ONCE, &[Relaxed], &[a[0], a[1], a[0], a[1]]).unwrap_err();
        assert!(twice.contains("comes to its host objects twice"), "{twice}");
        assert!(verdict(&ONCE, &[Relaxed], &[]).is_err(), "it never came");
        assert!(verdict(&ONCE, &[Relaxed], &[a[0]]).is_err(), "it never left");
        let elsewhere = TaskKind::HostOnce { node: 1 };
        assert_eq!(verdict(&elsewhere, &[Relaxed], &[]), Ok(()));
    }

    #[test]
    fn chunks_of_a_task_take_turns_unless_they_are_relaxed() {
        let [left, right] = [(0, 2), (2, 4)].map(|(from, to)| Box3::new([from, 0, 0], [to, 1, 1]));
        let [a, b] = [left, right].map(|chunk| stay(0, chunk));
        let in_turn = [a[0], a[1], b[0], b[1]];
        for wrong in [[b[0], b[1], a[0], a[1]], [a[0], b[0], b[1], a[1]]] {
            for order in [Sequential, Exclusive] {
                assert_eq!(verdict(&split(None), &[order], &in_turn), Ok(()));
                assert!(verdict(&split(None), &[order], &wrong).is_err(), "{order}: {wrong:?}");
            }
            assert_eq!(verdict(&split(None), &[Relaxed], &wrong), Ok(()));
        }
    }

    #[test]
    fn collective_tasks_keep_the_order_of_the_program() {
        let [a, b] = [0, 1].map(|op| stay(op, Box3::UNIT));
        let reversed = [b[0], b[1], a[0], a[1]];
        assert_eq!(verdict(&split(None), &[Exclusive; 2], &reversed), Ok(()));
        assert!(verdict(&split(Some(1)), &[Exclusive; 2], &reversed).is_err());
    }
}
