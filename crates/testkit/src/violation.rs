//! What a check can find. Every variant carries all operands, as text in the
//! house notation, so that one line is enough to find the node.

use std::fmt;

use celerity_cdag::{NodeId, TransferId};
use celerity_tdag::{BufferId, DependencyKind};

/// Which statement of the program produced an element's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provenance {
    /// Nobody.
    Undefined,
    /// The user, before the program started.
    Initial,
    /// A task, by its position in the program.
    Op(usize),
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undefined => f.write_str("undefined contents"),
            Self::Initial => f.write_str("initial contents"),
            Self::Op(op) => write!(f, "what statement {op} wrote"),
        }
    }
}

/// A broken promise of a graph, or of its execution.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// A generator refuses a lawful program.
    #[error("statement {op} is refused: {message}")]
    Refused {
        /// The statement.
        op: usize,
        /// What the generator says.
        message: String,
    },
    /// A host task that comes to its host objects at the wrong time.
    #[error("{node}: statement {op} {what}")]
    Visit {
        /// Whose objects.
        node: NodeId,
        /// The statement.
        op: usize,
        /// What is wrong with it: the rest of the message's sentence.
        what: String,
    },
    /// Two tasks, commands or instructions that host objects must keep apart, or need not.
    #[error("{later} and {earlier} {what}")]
    Objects {
        /// The later node of the graph.
        later: String,
        /// The earlier one.
        earlier: String,
        /// What is wrong with it: the rest of the message's sentence.
        what: &'static str,
    },
    /// A generator reports a mistake in a lawful program.
    #[error("{node} diagnoses a lawful program: {message}")]
    Diagnosed {
        /// Whose graph.
        node: NodeId,
        /// What the generator says.
        message: String,
    },
    /// Ids are not dense, or an edge does not point backwards, or comes twice.
    #[error("{node}: {what}")]
    Malformed {
        /// The node of the graph.
        node: String,
        /// What is wrong with it: the rest of the message's sentence.
        what: String,
    },
    /// Two conflicting accesses may run at the same time.
    #[error("{later} does not wait for {earlier} ({kind:?}, because of {place})")]
    Unordered {
        /// The node that should wait.
        later: String,
        /// For this one.
        earlier: String,
        /// What kind of dependency is missing.
        kind: DependencyKind,
        /// The element that both touch.
        place: String,
    },
    /// A node waits for another without a reason.
    #[error("{later} waits for {earlier} ({kind}) without a reason")]
    Spurious {
        /// The node that waits.
        later: String,
        /// For this one.
        earlier: String,
        /// The stated kind, or what else there is to say.
        kind: String,
    },
    /// A horizon or epoch does not separate what comes before and after it.
    #[error("{later} does not wait for {earlier}, though one of them synchronises")]
    NotSynchronized {
        /// The later node.
        later: String,
        /// The earlier node.
        earlier: String,
    },
    /// The items of a task are not executed exactly once, where they should.
    #[error("statement {op}: {what}")]
    WrongAssignment {
        /// The statement.
        op: usize,
        /// What is wrong with it: the rest of the message's sentence.
        what: String,
    },
    /// Somebody reads or passes on what sequential execution would not see.
    #[error("{reader} sees {found} instead of {expected} at {place}")]
    Stale {
        /// The reader.
        reader: String,
        /// Buffer and element.
        place: String,
        /// What sequential execution sees.
        expected: Provenance,
        /// What is there.
        found: Provenance,
    },
    /// Data is moved to where it already is.
    #[error("{mover} brings {version} to {place}, where it already is")]
    Redundant {
        /// The await-push, copy or receive.
        mover: String,
        /// Where to, and which element.
        place: String,
        /// What is there before and after.
        version: Provenance,
    },
    /// A copy is overwritten for the same command that it was made for, unread.
    #[error("{copy} is wasted: {overwriter} overwrites {place} unread")]
    Wasted {
        /// The copy.
        copy: String,
        /// Who overwrites it.
        overwriter: String,
        /// Allocation and element.
        place: String,
    },
    /// One push carries data of several local writers.
    #[error("{push} mixes what {first} and {second} wrote")]
    MixedWriters {
        /// The push.
        push: String,
        /// One writer.
        first: String,
        /// The other writer.
        second: String,
    },
    /// What is sent and what is expected differ.
    #[error("transfer {transfer} to {to}: {what}")]
    Mismatched {
        /// The transfer.
        transfer: TransferId,
        /// The receiver.
        to: NodeId,
        /// The difference.
        what: String,
    },
    /// Nothing can run, but not everything has.
    #[error("no progress: {} wait", waiting.join(", "))]
    Deadlock {
        /// What waits, at most one per node.
        waiting: Vec<String>,
    },
    /// An instruction names memory that is not there, or the wrong memory.
    #[error("{instruction}: {what}")]
    BadPlacement {
        /// The instruction.
        instruction: String,
        /// What is wrong with it: the rest of the message's sentence.
        what: String,
    },
    /// An allocation is used before it is made or after it is freed.
    #[error("{user} and {owner}: {allocation} is not sure to exist while it is used")]
    Lifetime {
        /// Who uses it.
        user: String,
        /// The alloc or free.
        owner: String,
        /// The allocation.
        allocation: String,
    },
    /// An allocation of a dropped buffer is never freed, or freed twice.
    #[error("{allocation} of {buffer} is freed {times} times")]
    Freed {
        /// The allocation.
        allocation: String,
        /// Its buffer.
        buffer: BufferId,
        /// How often it is freed.
        times: usize,
    },
    /// An allocation is made and nothing is ever placed in it.
    #[error("{allocation} is allocated, but never used")]
    Unused {
        /// The allocation.
        allocation: String,
    },
    /// An allocation is larger than what has been accessed in its memory.
    #[error("{allocation} holds {extent}, but only {accessed} was accessed there")]
    Oversized {
        /// The allocation.
        allocation: String,
        /// What it holds.
        extent: String,
        /// Bounding box of what was ever accessed.
        accessed: String,
    },
    /// The schedule checker found a broken rule.
    #[error(transparent)]
    Schedule(Box<celerity_checker::Finding>),
    /// The code under test panicked.
    #[error("panic: {message}")]
    Panicked {
        /// What it said.
        message: String,
    },
    /// The run failed.
    #[error("the run fails: {message}")]
    RunFailed {
        /// The runtime's error.
        message: String,
    },
    /// A fence saw something else than the sequential twin.
    #[error(
        "{node}, statement {op}: word {word} of the snapshot of {buffer} is {found:?}, not \
         {expected:?}"
    )]
    Diverged {
        /// Where the fence ran.
        node: NodeId,
        /// The fence.
        op: usize,
        /// The buffer.
        buffer: BufferId,
        /// The first word that differs.
        word: usize,
        /// The twin's word, if it has that many.
        expected: Option<u64>,
        /// The run's word, if it has that many.
        found: Option<u64>,
    },
}
