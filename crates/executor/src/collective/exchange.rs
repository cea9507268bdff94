//! Where threads of collective tasks and their node meet: letters that are to leave, and those
//! that have come. The node looks at it when it is polled, and carries notes; threads wait here.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use celerity_cdag::NodeId;
use celerity_tdag::{CollectiveGroup, Task, TaskId};

use super::letter::{Address, Kind, Piece, decode, is_letter, notes};
use super::{CollectiveError, CollectiveOperation};
use crate::polling::{ASK_AFTER, Waker};
use crate::sync::lock;

/// One node's letters.
pub(crate) struct Correspondence {
    state: Mutex<State>,
    changed: Condvar,
    /// Whether there is something to send: so that a poll takes no lock.
    has_news: AtomicBool,
    /// Threads that wait for letters.
    waiting: AtomicUsize,
    waker: OnceLock<Waker>,
}

#[derive(Default)]
struct State {
    outgoing: VecDeque<(NodeId, Vec<u8>)>,
    incoming: BTreeMap<TaskId, Mail>,
    /// The newest task of each group that is over here, and what messages call it. Older ones of the group are over, too.
    over: BTreeMap<u16, (TaskId, String)>,
    has_ended: bool,
}

/// What has come for a task.
#[derive(Default)]
struct Mail {
    letters: BTreeMap<(u32, NodeId), Letter>,
    /// Who has asked whether this node is still in the task.
    questions: Vec<(NodeId, Address)>,
    /// Who has said that it is not.
    left: Vec<NodeId>,
    /// What this node has done or is at.
    done: Log,
}

/// Of the steps of a task on this node, the operation of each, for those who still wait in one of them.
#[derive(Default)]
struct Log {
    /// Where operations change: the first step of each run of equal ones, ascending.
    runs: VecDeque<(u32, u64)>,
    /// Behind the newest step.
    end: u32,
}

/// So many changes of operations are remembered of a task: nodes that are farther apart than this are not compared.
const LONGEST_LOG: usize = 1 << 14;

impl Log {
    fn push(&mut self, step: u32, operation: u64) {
        if self.runs.back().is_none_or(|&(_, last)| last != operation) {
            self.runs.push_back((step, operation));
        }
        if self.runs.len() > LONGEST_LOG {
            self.runs.pop_front();
        }
        self.end = step.saturating_add(1);
    }

    /// The operation of a step that this node has come to, if it is remembered.
    fn at(&self, step: u32) -> Option<u64> {
        let behind = self.runs.partition_point(|&(first, _)| first <= step);
        let (_, operation) = *self.runs.get(behind.checked_sub(1)?)?;
        (step < self.end).then_some(operation)
    }
}

struct Letter {
    operation: u64,
    bytes: Vec<u8>,
    /// Bytes that have not come.
    missing: usize,
}

/// What is wrong with a note.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Objection {
    /// It makes no sense.
    Malformed,
    /// It is for a task that is over here, called so, and that has not waited for it.
    Unexpected { task: String, error: CollectiveError },
}

impl Correspondence {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            has_news: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            waker: OnceLock::new(),
        }
    }

    /// Says how the node is woken.
    pub(crate) fn wake_by(&self, waker: Waker) {
        // The first one holds: a node has one driver.
        drop(self.waker.set(waker));
    }

    /// Whether a thread waits for what other nodes send.
    pub(crate) fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Notes that are to leave, in order, since the last call.
    pub(crate) fn outgoing(&self) -> VecDeque<(NodeId, Vec<u8>)> {
        match self.has_news.swap(false, Ordering::Acquire) {
            true => std::mem::take(&mut lock(&self.state).outgoing),
            false => VecDeque::new(),
        }
    }

    /// Takes a note in, if it is a piece of a letter.
    pub(crate) fn take(&self, from: NodeId, note: &[u8]) -> Option<Result<(), Objection>> {
        is_letter(note).then(|| match decode(note) {
            Some(piece) => self.arrived(from, &piece),
            None => Err(Objection::Malformed),
        })
    }

    fn arrived(&self, from: NodeId, piece: &Piece<'_>) -> Result<(), Objection> {
        let Address { kind, group, task, step, operation } = piece.address;
        let mut state = lock(&self.state);
        if let Some((newest, called)) = state.over.get(&group).filter(|over| task <= over.0) {
            return match kind {
                Kind::Part => {
                    let there = CollectiveOperation::of(operation);
                    let error = CollectiveError::Unanswered { node: from, there };
                    let task = if task == *newest { called.clone() } else { task.to_string() };
                    Err(Objection::Unexpected { task, error })
                }
                Kind::Question => {
                    self.answer(&mut state, from, piece.address);
                    Ok(())
                }
                Kind::Left => Ok(()),
            };
        }
        let mail = state.incoming.entry(task).or_default();
        match kind {
            Kind::Question => mail.questions.push((from, piece.address)),
            Kind::Left => mail.left.push(from),
            Kind::Part => {
                let length = piece.length as usize;
                let letter = mail.letters.entry((step, from)).or_insert_with(|| Letter {
                    operation,
                    bytes: vec![0; length],
                    missing: length,
                });
                let begin = piece.offset as usize;
                let part = letter.bytes.get_mut(begin..begin + piece.bytes.len());
                let Some(part) = part.filter(|_| letter.operation == operation) else {
                    return Err(Objection::Malformed);
                };
                part.copy_from_slice(piece.bytes);
                letter.missing = letter.missing.saturating_sub(piece.bytes.len());
            }
        }
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// A task is over here.
    ///
    /// # Errors
    /// If it has not done all that it has done on another node.
    pub(crate) fn ended(&self, group: CollectiveGroup, task: &Task) -> Result<(), CollectiveError> {
        let mut state = lock(&self.state);
        state.over.insert(group.number(), (task.id, task.to_string()));
        let Some(mail) = state.incoming.remove(&task.id) else { return Ok(()) };
        for (asks, address) in mail.questions {
            self.answer(&mut state, asks, address);
        }
        match mail.letters.iter().next() {
            Some((&(_, node), letter)) => {
                let there = CollectiveOperation::of(letter.operation);
                Err(CollectiveError::Unanswered { node, there })
            }
            None => Ok(()),
        }
    }

    fn answer(&self, state: &mut State, to: NodeId, asked: Address) {
        let address = Address { kind: Kind::Left, ..asked };
        self.put(state, to, address, &[]);
    }

    /// The run is over: nobody waits any more.
    pub(crate) fn end(&self) {
        lock(&self.state).has_ended = true;
        self.changed.notify_all();
    }

    /// This node begins a step of a task.
    pub(super) fn begins(&self, Address { task, step, operation, .. }: Address) {
        lock(&self.state).incoming.entry(task).or_default().done.push(step, operation);
    }

    /// Sends a letter.
    pub(super) fn send(&self, to: NodeId, address: Address, letter: &[u8]) {
        self.put(&mut lock(&self.state), to, address, letter);
    }

    fn put(&self, state: &mut State, to: NodeId, address: Address, letter: &[u8]) {
        state.outgoing.extend(notes(address, letter).map(|note| (to, note)));
        self.has_news.store(true, Ordering::Release);
        self.waker.get().into_iter().for_each(|wake| wake());
    }

    /// Waits for a letter.
    pub(super) fn receive(
        &self,
        from: NodeId,
        address: Address,
    ) -> Result<Vec<u8>, CollectiveError> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // The node may be asleep, and has to look closely from now on.
        self.waker.get().into_iter().for_each(|wake| wake());
        let outcome = self.await_letter(from, address);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        outcome
    }

    fn await_letter(&self, from: NodeId, address: Address) -> Result<Vec<u8>, CollectiveError> {
        let Address { task, step, operation, .. } = address;
        let waits = |state: &mut State| state.look(from, task, step).is_none();
        let mut state = self.wait_for(ASK_AFTER, lock(&self.state), waits);
        if waits(&mut state) {
            let question = Address { kind: Kind::Question, ..address };
            self.put(&mut state, from, question, &[]);
            state = crate::sync::wait_while(&self.changed, state, waits);
        }
        match state.look(from, task, step).expect("that has been waited for") {
            Found::End => Err(CollectiveError::RunEnded),
            Found::Gone => {
                Err(CollectiveError::Left { node: from, here: CollectiveOperation::of(operation) })
            }
            Found::Letter => {
                let mail = state.incoming.get_mut(&task).expect("it has come");
                let letter = mail.letters.remove(&(step, from)).expect("it has come");
                match letter.operation == operation {
                    true => Ok(letter.bytes),
                    false => Err(mismatch(operation, from, letter.operation)),
                }
            }
            Found::Contradiction { here, node, there } => Err(mismatch(here, node, there)),
        }
    }

    fn wait_for<'a>(
        &self,
        longest: Duration,
        state: MutexGuard<'a, State>,
        waits: impl FnMut(&mut State) -> bool,
    ) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout_while(state, longest, waits);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

fn mismatch(here: u64, node: NodeId, there: u64) -> CollectiveError {
    let [here, there] = [here, there].map(CollectiveOperation::of);
    CollectiveError::Mismatch { here, node, there }
}

/// What there is for a thread that waits.
enum Found {
    Letter,
    Gone,
    End,
    /// Another node waits for this one in a step that was another operation here.
    Contradiction {
        here: u64,
        node: NodeId,
        there: u64,
    },
}

impl State {
    fn look(&self, from: NodeId, task: TaskId, step: u32) -> Option<Found> {
        if self.has_ended {
            return Some(Found::End);
        }
        let mail = self.incoming.get(&task)?;
        let letter = mail.letters.get(&(step, from));
        if letter.is_some_and(|letter| letter.missing == 0) {
            return Some(Found::Letter);
        }
        if letter.is_none() && mail.left.contains(&from) {
            return Some(Found::Gone);
        }
        mail.contradiction()
    }
}

impl Mail {
    /// What no letter will settle. Of nodes that wait for each other for ever, one in the earliest step waits for a node
    /// that has come to this step too, and would have sent its letter if the operation were the same: so each such circle
    /// is found by those who are asked.
    fn contradiction(&self) -> Option<Found> {
        self.questions.iter().find_map(|&(node, Address { step, operation: there, .. })| {
            let here = self.done.at(step).filter(|&here| here != there)?;
            Some(Found::Contradiction { here, node, there })
        })
    }
}

#[cfg(test)]
mod tests {
    use celerity_tdag::{Conflicts, Dependencies, Work};

    use super::*;

    const TASK: TaskId = TaskId::from_index(5);
    const FROM: NodeId = NodeId::from_index(1);

    fn task() -> Task {
        Task {
            id: TASK,
            name: "talk".into(),
            work: Work::HostOnce { node: 0 },
            accesses: Box::default(),
            dependencies: Dependencies::default(),
            conflicts: Conflicts::default(),
            location: None,
            forward: None,
        }
    }

    fn address(kind: Kind, step: u32) -> Address {
        let operation = CollectiveOperation::Barrier.code();
        Address { kind, group: 0, task: TASK, step, operation }
    }

    fn tell(
        exchange: &Correspondence,
        kind: Kind,
        step: u32,
        letter: &[u8],
    ) -> Result<(), Objection> {
        notes(address(kind, step), letter)
            .collect::<Vec<_>>()
            .iter()
            .rev()
            .try_for_each(|note| exchange.take(FROM, note).expect("it is a letter"))
    }

    #[test]
    fn letters_are_read_in_any_order_of_their_pieces() {
        let exchange = Correspondence::new();
        let letter: Vec<u8> = (0..5000).map(|at| at as u8).collect();
        tell(&exchange, Kind::Part, 1, &letter).unwrap();
        tell(&exchange, Kind::Part, 0, &[]).unwrap();
        assert_eq!(exchange.receive(FROM, address(Kind::Part, 0)), Ok(Vec::new()));
        assert_eq!(exchange.receive(FROM, address(Kind::Part, 1)), Ok(letter));
        assert_eq!(exchange.ended(CollectiveGroup::new(0, "g"), &task()), Ok(()));
    }

    #[test]
    fn what_nobody_has_waited_for_is_noticed_at_the_end_and_later() {
        let (exchange, group) = (Correspondence::new(), CollectiveGroup::new(0, "g"));
        tell(&exchange, Kind::Part, 0, &[]).unwrap();
        let error = CollectiveError::Unanswered { node: FROM, there: CollectiveOperation::Barrier };
        assert_eq!(exchange.ended(group, &task()), Err(error.clone()));
        let late = tell(&exchange, Kind::Part, 1, &[]);
        let task = "T5 \"talk\"".to_owned();
        assert_eq!(late, Err(Objection::Unexpected { task, error }));
    }

    #[test]
    fn who_asks_a_node_that_has_left_is_told() {
        let (exchange, group) = (Correspondence::new(), CollectiveGroup::new(0, "g"));
        tell(&exchange, Kind::Question, 0, &[]).unwrap();
        assert!(exchange.outgoing().is_empty(), "it is not over");
        assert_eq!(exchange.ended(group, &task()), Ok(()));
        tell(&exchange, Kind::Question, 1, &[]).unwrap();
        let answers = exchange.outgoing();
        let kinds = answers.iter().map(|(to, note)| (*to, decode(note).unwrap().address.kind));
        assert_eq!(kinds.collect::<Vec<_>>(), [(FROM, Kind::Left); 2]);

        let asking = Correspondence::new();
        tell(&asking, Kind::Left, 0, &[]).unwrap();
        let left = CollectiveError::Left { node: FROM, here: CollectiveOperation::Barrier };
        assert_eq!(asking.receive(FROM, address(Kind::Part, 0)), Err(left));
    }

    #[test]
    fn who_waits_and_is_asked_for_another_operation_says_so() {
        let exchange = Correspondence::new();
        let (barrier, gather) =
            (CollectiveOperation::Barrier, CollectiveOperation::Gather { root: 0, size: 1 });
        let at = |step, operation: CollectiveOperation| Address {
            operation: operation.code(),
            ..address(Kind::Part, step)
        };
        for (step, operation) in [(0, gather), (1, gather), (2, barrier)] {
            exchange.begins(at(step, operation));
        }
        // A question in a step to come, or in the same operation, tells nothing.
        let ask = |step, operation| {
            let question = Address { kind: Kind::Question, ..at(step, operation) };
            notes(question, &[]).try_for_each(|note| exchange.take(FROM, &note).expect("a letter"))
        };
        ask(3, gather).unwrap();
        ask(0, gather).unwrap();
        tell(&exchange, Kind::Part, 2, &[]).unwrap();
        assert_eq!(exchange.receive(FROM, at(2, barrier)), Ok(Vec::new()));
        ask(1, barrier).unwrap();
        let mismatch = CollectiveError::Mismatch { here: gather, node: FROM, there: barrier };
        assert_eq!(exchange.receive(FROM, at(2, barrier)), Err(mismatch));
    }

    #[test]
    fn the_newest_operations_of_a_task_are_remembered() {
        let mut log = Log::default();
        (0..10).for_each(|step| log.push(step, u64::from(step / 4)));
        assert_eq!(
            (log.runs.len(), log.at(0), log.at(7), log.at(9)),
            (3, Some(0), Some(1), Some(2))
        );
        assert_eq!(log.at(10), None, "it has not come there");
        (10..10 + LONGEST_LOG as u32).for_each(|step| log.push(step, u64::from(step)));
        assert_eq!((log.at(9), log.at(10), log.runs.len()), (None, Some(10), LONGEST_LOG));
    }

    #[test]
    fn the_end_of_the_run_wakes_who_waits() {
        let exchange = Correspondence::new();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| exchange.receive(FROM, address(Kind::Part, 0)));
            while !exchange.is_awaited() {
                std::thread::yield_now();
            }
            exchange.end();
            assert_eq!(waiting.join().unwrap(), Err(CollectiveError::RunEnded));
        });
        assert!(!exchange.is_awaited());
    }
}
