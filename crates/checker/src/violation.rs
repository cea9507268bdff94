//! Everything that a checker can find. Each variant carries all operands, so
//! that one line is enough to find the place.

use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;

use celerity_cdag::{CommandId, NodeId, TransferId};
use celerity_idag::{AllocationId, InstructionId, MemoryId, MessageId};
use celerity_regions::Box3;
use celerity_tdag::{BufferId, CollectiveGroup, TaskId};
use smallvec::{SmallVec, smallvec};

/// The first waste of a task.
pub(crate) type Waste = OnceCell<Box<Violation>>;

/// The result of one rule.
pub(crate) type Check = Result<(), Box<Violation>>;

/// A node of any of the three graphs. Prints as `T3`, `N0 C7` or `N1 I12`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Vertex {
    /// A task; the same on every node.
    Task(TaskId),
    /// A command of one node.
    Command(NodeId, CommandId),
    /// An instruction of one node.
    Instruction(NodeId, InstructionId),
}

impl fmt::Display for Vertex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(id) => write!(f, "{id}"),
            Self::Command(node, id) => write!(f, "{node} {id}"),
            Self::Instruction(node, id) => write!(f, "{node} {id}"),
        }
    }
}

/// What an element holds, as far as the proof cares: which task has written it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AbstractValue {
    /// Zeroes: nothing was ever written.
    Undefined,
    /// What the user provided before the program began.
    Initial,
    /// What a task has written.
    Task(TaskId),
    /// A message may be writing it at this moment.
    Arriving,
}

impl fmt::Display for AbstractValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undefined => f.write_str("undefined contents"),
            Self::Initial => f.write_str("initial contents"),
            Self::Task(task) => write!(f, "what {task} wrote"),
            Self::Arriving => f.write_str("what is still arriving"),
        }
    }
}

/// Elements of a buffer, and in which allocation, if in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferPart {
    /// The id of the buffer.
    pub buffer: BufferId,
    /// What the user calls it.
    pub name: Arc<str>,
    /// The elements that it is about.
    pub part: Box3,
    /// The memory and the allocation.
    pub allocation: Option<(MemoryId, AllocationId)>,
}

impl fmt::Display for BufferPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} \"{}\"", self.part, self.buffer, self.name)?;
        match self.allocation {
            Some((memory, allocation)) => write!(f, " in {memory}.{allocation}"),
            None => Ok(()),
        }
    }
}

/// Why two accesses must be ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hazard {
    /// The later one reads what the earlier one writes.
    ReadAfterWrite,
    /// Both write.
    WriteAfterWrite,
    /// The later one overwrites what the earlier one reads.
    WriteAfterRead,
    /// The later one takes the memory away.
    FreeAfterUse,
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadAfterWrite => "reads what it writes",
            Self::WriteAfterWrite => "overwrites what it writes",
            Self::WriteAfterRead => "overwrites what it reads",
            Self::FreeAfterUse => "frees what it uses",
        })
    }
}

/// Which two sides of a transfer are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Pushes and await-pushes.
    Commands,
    /// Sends and receives.
    Instructions,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Commands => "pushes and await-pushes",
            Self::Instructions => "sends and receives",
        })
    }
}

/// A broken rule. The crate's documentation lists the rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// Ids are not dense, or not in the order of the stream.
    #[error("{vertex} comes where {expected} should")]
    WrongId {
        /// What came.
        vertex: Vertex,
        /// What should have come.
        expected: Vertex,
    },
    /// An edge to a node that is not earlier.
    #[error("{vertex} waits for {on}, which is not earlier")]
    ForwardEdge {
        /// The task, command or instruction that waits.
        vertex: Vertex,
        /// What it waits for.
        on: Vertex,
    },
    /// The same edge twice.
    #[error("{vertex} waits for {on} twice")]
    DoubledEdge {
        /// The task, command or instruction that waits.
        vertex: Vertex,
        /// What it waits for.
        on: Vertex,
    },
    /// An edge to something that the synchronisation point stands in for.
    #[error("{vertex} waits for {on}, which is older than {point}, the synchronisation point")]
    EdgeBeyondPoint {
        /// The task, command or instruction that waits.
        vertex: Vertex,
        /// What it waits for.
        on: Vertex,
        /// The last applied horizon or epoch.
        point: Vertex,
    },
    /// A horizon or epoch does not separate what comes before and after it.
    #[error("{later} does not wait for {earlier}, though one of them synchronises")]
    NotSynchronized {
        /// The later one.
        later: Vertex,
        /// The earlier one.
        earlier: Vertex,
    },
    /// Two conflicting accesses may happen in any order.
    #[error("{later} does not wait for {earlier}, but {hazard}: {place}")]
    Unordered {
        /// The task, command or instruction that should wait.
        later: Vertex,
        /// What it should wait for.
        earlier: Vertex,
        /// What goes wrong if it does not wait.
        hazard: Hazard,
        /// The elements that both touch.
        place: BufferPart,
    },
    /// Two tasks of a collective group may run in any order.
    #[error("{later} does not wait for {earlier}, which is before it in collective group {group}")]
    GroupUnordered {
        /// The task, command or instruction that should wait.
        later: Vertex,
        /// What it should wait for.
        earlier: Vertex,
        /// The group that both are in.
        group: CollectiveGroup,
    },
    /// Side effects on a host object that are not kept apart as their orders say, or are for no
    /// reason.
    #[error("{later} and {earlier} have side effects on a host object, and {what}")]
    Objects {
        /// The later of two nodes.
        later: Vertex,
        /// The earlier one.
        earlier: Vertex,
        /// What is wrong with it: the rest of the message's sentence.
        what: &'static str,
    },
    /// A reduction would count a tile twice, or not at all.
    #[error("{reader} combines partial results, and {why}: {place}")]
    Roots {
        /// Who combines them.
        reader: Vertex,
        /// Partial results.
        place: BufferPart,
        /// What is wrong about them.
        why: &'static str,
    },
    /// An access names a buffer that is not there.
    #[error("{vertex} names {buffer}, which does not exist")]
    UnknownBuffer {
        /// The command or instruction that names the buffer.
        vertex: Vertex,
        /// The id of the buffer.
        buffer: BufferId,
    },
    /// An access leaves its buffer.
    #[error("{vertex} touches {place}, but the buffer is {extent}")]
    OutOfBounds {
        /// The command or instruction that touches the elements.
        vertex: Vertex,
        /// The elements that are touched.
        place: BufferPart,
        /// The buffer's extent.
        extent: Box3,
    },
    /// A task has two accesses to elements of which one writes.
    #[error("{task} has two accesses to {place}, of which one writes")]
    ConflictingAccesses {
        /// The task.
        task: Vertex,
        /// The elements that both touch.
        place: BufferPart,
    },
    /// Something is done for another task than the one in hand.
    #[error("{vertex} serves {found} among what {task} needs")]
    WrongTask {
        /// Who serves.
        vertex: Vertex,
        /// Whom it serves.
        found: TaskId,
        /// Whom it should serve.
        task: TaskId,
    },
    /// Something that this kind of task does not call for, or too often.
    #[error("{vertex} is not called for: {why}")]
    Uncalled {
        /// The command or instruction.
        vertex: Vertex,
        /// Why the task does not call for it: the rest of the message's sentence.
        why: &'static str,
    },
    /// Something that a task calls for is missing.
    #[error("{node} has no {what} for {task}")]
    Missing {
        /// The node.
        node: NodeId,
        /// The id of the task.
        task: TaskId,
        /// What is missing, in words.
        what: &'static str,
    },
    /// A border of a chunk is no multiple of the granularity.
    #[error("{vertex} runs {chunk} of {space}, against the granularity {granularity:?}")]
    AgainstGranularity {
        /// The command or instruction that runs the chunk.
        vertex: Vertex,
        /// The items of the chunk.
        chunk: Box3,
        /// The whole index space.
        space: Box3,
        /// Elements per granule.
        granularity: [u64; 3],
    },
    /// Items that are run twice, or that are none of the index space's.
    #[error("{vertex} runs {part} of {task}, which is not there or already taken")]
    ItemsTwice {
        /// The command or instruction that runs the items.
        vertex: Vertex,
        /// The id of the task.
        task: TaskId,
        /// The items of the index space that it is about.
        part: Box3,
    },
    /// Items that nobody runs.
    #[error("nobody {among} runs {part} of {task}")]
    ItemsNever {
        /// Where they should be run: `N1`, or all nodes.
        among: String,
        /// The id of the task.
        task: TaskId,
        /// The items of the index space that it is about.
        part: Box3,
    },
    /// Somebody reads or passes on what sequential execution would not see.
    #[error("{reader} finds {found} instead of {expected} in {place}")]
    Stale {
        /// The command or instruction that reads.
        reader: Vertex,
        /// The elements that it reads.
        place: BufferPart,
        /// What sequential execution sees.
        expected: AbstractValue,
        /// What is there.
        found: AbstractValue,
        /// Who wrote that.
        writer: Option<Vertex>,
    },
    /// A push that has no targets, an empty, doubled or impossible one.
    #[error("{push} pushes {transfer} to {to:?}: {why}")]
    BadTarget {
        /// The command that pushes.
        push: Vertex,
        /// What it pushes.
        transfer: TransferId,
        /// To whom; `None` if to nobody.
        to: Option<NodeId>,
        /// What is wrong with it: the rest of the message's sentence.
        why: &'static str,
    },
    /// One push carries data of several local writers.
    #[error("{push} mixes what {first} and {second} wrote: {place}")]
    MixedWriters {
        /// The command that pushes.
        push: Vertex,
        /// One writer.
        first: Vertex,
        /// The other writer.
        second: Vertex,
        /// What the second wrote.
        place: BufferPart,
    },
    /// A transfer of a buffer that the task does not read.
    #[error("{vertex} moves {transfer}, but {task} does not read that buffer")]
    UnreadTransfer {
        /// The command that it is about.
        vertex: Vertex,
        /// The transfer.
        transfer: TransferId,
        /// The consumer.
        task: TaskId,
    },
    /// An await-push or receive of elements that the node already has, does not
    /// need, or has been promised already.
    #[error("{vertex} expects {place}, which {why}")]
    Unneeded {
        /// The await-push or receive.
        vertex: Vertex,
        /// What it expects.
        place: BufferPart,
        /// Why it should not.
        why: &'static str,
    },
    /// What was awaited is never received, or never waited for.
    #[error("{vertex} expects {place}, but {why}")]
    NeverArrives {
        /// The await-push or split receive.
        vertex: Vertex,
        /// The rest.
        place: BufferPart,
        /// What is missing, in words.
        why: &'static str,
    },
    /// An await receive of what no split receive has begun.
    #[error("{vertex} awaits {place}, which no split receive brings, or another one awaits")]
    NotArriving {
        /// The await receive.
        vertex: Vertex,
        /// What it awaits.
        place: BufferPart,
    },
    /// A send behind a receive of the same task: two nodes could wait for each
    /// other.
    #[error("{send} comes after {receive}, so that nodes may wait for each other")]
    MayDeadlock {
        /// The instruction that sends.
        send: Vertex,
        /// The instruction that receives.
        receive: Vertex,
    },
    /// A send without a pilot that says the same.
    #[error("{send} sends {message}, {elements} of {transfer} to {to}, which no pilot announces")]
    Unannounced {
        /// The instruction that sends.
        send: Vertex,
        /// The sender's number of the message.
        message: MessageId,
        /// What it is for.
        transfer: TransferId,
        /// The node that receives.
        to: NodeId,
        /// A box around the elements that it is about.
        elements: Box3,
    },
    /// A pilot without a send.
    #[error("{node} announces {message}, {elements} of {transfer} to {to}, and does not send it")]
    NeverSent {
        /// The node that sends.
        node: NodeId,
        /// The sender's number of the message.
        message: MessageId,
        /// What it is for.
        transfer: TransferId,
        /// The node that receives.
        to: NodeId,
        /// A box around the elements that it is about.
        elements: Box3,
    },
    /// A message whose name has been used before.
    #[error("{send} sends {message}, which is not newer than earlier ones")]
    OldMessage {
        /// The instruction that sends.
        send: Vertex,
        /// The sender's number of the message.
        message: MessageId,
    },
    /// An allocation id that has been used before.
    #[error("{vertex} makes {allocation}, which is not newer than earlier ones")]
    AllocatedTwice {
        /// The instruction that allocates.
        vertex: Vertex,
        /// The id of the allocation.
        allocation: AllocationId,
    },
    /// Use of an allocation that nobody has made.
    #[error("{vertex} uses {allocation}, which nobody has made")]
    UnknownAllocation {
        /// The instruction that uses the allocation.
        vertex: Vertex,
        /// The id of the allocation.
        allocation: AllocationId,
    },
    /// Use of an allocation after its end.
    #[error("{vertex} uses {allocation}, which has been freed")]
    UseAfterFree {
        /// The instruction that uses the allocation.
        vertex: Vertex,
        /// The id of the allocation.
        allocation: AllocationId,
    },
    /// A second free.
    #[error("{vertex} frees {allocation} again")]
    DoubleFree {
        /// The second free.
        vertex: Vertex,
        /// The id of the allocation.
        allocation: AllocationId,
    },
    /// An allocation of a dropped buffer that nobody frees.
    #[error("{memory}.{allocation} outlives {buffer} \"{name}\"")]
    Leak {
        /// The alloc; none for users' data.
        made_by: Option<Vertex>,
        /// The id of the memory.
        memory: MemoryId,
        /// The id of the allocation.
        allocation: AllocationId,
        /// The id of the buffer that was dropped.
        buffer: BufferId,
        /// What the user called it.
        name: Arc<str>,
    },
    /// An instruction names memory that is not there, or the wrong memory.
    #[error("{vertex} places {place} badly: {why}")]
    BadPlacement {
        /// The instruction.
        vertex: Vertex,
        /// What it places.
        place: BufferPart,
        /// What is wrong with it: the rest of the message's sentence.
        why: &'static str,
    },
    /// A copy within one allocation.
    #[error("{vertex} copies {allocation} onto itself")]
    CopyOntoItself {
        /// The copy.
        vertex: Vertex,
        /// The id of the allocation.
        allocation: AllocationId,
    },
    /// A kernel or host task is not bound to what its mappers say.
    #[error("{vertex}, access {access}: {place} {why}")]
    WrongBinding {
        /// The kernel or host task.
        vertex: Vertex,
        /// Position in the task's list of accesses.
        access: usize,
        /// The elements in question.
        place: BufferPart,
        /// What is wrong with it: the rest of the message's sentence.
        why: &'static str,
    },
    /// Two sides of a transfer differ.
    #[error("{level} of {transfer} to {to} differ in {part}: {why}")]
    Mismatch {
        /// Which sides.
        level: Level,
        /// The transfer.
        transfer: TransferId,
        /// The node that receives.
        to: NodeId,
        /// The difference.
        part: Box3,
        /// Which way.
        why: &'static str,
        /// Who moves or expects it, where there is one.
        vertex: Option<Vertex>,
    },
    /// A message with a box that no single receive takes.
    #[error("{send} sends {elements} of {transfer} to {to}, where no single receive takes all")]
    MessageSplit {
        /// The instruction that sends.
        send: Vertex,
        /// What it is for.
        transfer: TransferId,
        /// The node that receives.
        to: NodeId,
        /// The elements that it is about.
        elements: Box3,
    },
    /// A collective that is none.
    #[error("{vertex} exchanges {transfer}, and {why}")]
    BadCollective {
        /// The command that it is about.
        vertex: Vertex,
        /// What it exchanges.
        transfer: TransferId,
        /// The rule that is broken, in words.
        why: &'static str,
    },
    /// Elements of a collective that are not provided by one node alone.
    #[error("nodes exchange {transfer}, and {part} of it is provided by {by}")]
    CollectiveParts {
        /// What they exchange.
        transfer: TransferId,
        /// The elements that it is about.
        part: Box3,
        /// Who provides them: nobody, or a second node, which is named.
        by: String,
        /// The command that provides too much, where there is one.
        vertex: Option<Vertex>,
    },
    /// Nodes do not take part in the same collectives: they wait for each other without end, or get
    /// each other's data wrong.
    #[error("{first} and {second} do not exchange the same for {task}: {why}")]
    CollectiveDiffers {
        /// One of the two nodes.
        first: NodeId,
        /// The other one of the two nodes.
        second: NodeId,
        /// The forward that the collective is made of.
        task: TaskId,
        /// In what the two nodes differ, in words.
        why: &'static str,
    },
    /// Nodes run different programs, or the same in different order.
    #[error(
        "{first} and {second} disagree on {task}, or on what came before it; all nodes must \
         submit the same tasks in the same order"
    )]
    Disagreement {
        /// One of the two nodes.
        first: NodeId,
        /// The node that disagrees with it.
        second: NodeId,
        /// The first task on which they do.
        task: TaskId,
    },
    /// Waste: data is brought to where it already is.
    #[error("{mover} brings {version} to {place}, where it already is")]
    Redundant {
        /// The instruction that copies.
        mover: Vertex,
        /// Where to.
        place: BufferPart,
        /// What is there before and after.
        version: AbstractValue,
    },
    /// Waste: a copy of elements that nothing has written.
    #[error("{copy} copies undefined contents: {place}")]
    CopyOfUndefined {
        /// The instruction that copies.
        copy: Vertex,
        /// The elements, in the allocation that they are copied from.
        place: BufferPart,
    },
    /// Waste: a copy that the command it was made for overwrites.
    #[error("{overwriter} overwrites unread what {copy} has brought to {place}")]
    Unread {
        /// The instruction that copies.
        copy: Vertex,
        /// Who overwrites it.
        overwriter: Vertex,
        /// What is overwritten.
        place: BufferPart,
    },
    /// Waste: an allocation is larger than what is accessed in its memory.
    #[error("{vertex} allocates {place}, but only {accessed} was accessed there")]
    Oversized {
        /// The instruction that allocates.
        vertex: Vertex,
        /// All that it holds.
        place: BufferPart,
        /// Bounding box of what was accessed.
        accessed: Box3,
    },
    /// Waste: an allocation in which nothing is ever placed.
    #[error("{vertex} makes {allocation}, and nobody uses it")]
    Unused {
        /// The instruction that allocates.
        vertex: Vertex,
        /// The id of the allocation.
        allocation: AllocationId,
    },
}

impl Violation {
    /// Whether results are right all the same: something is moved or allocated
    /// without need.
    #[must_use]
    pub fn is_waste(&self) -> bool {
        matches!(
            self,
            Self::Redundant { .. }
                | Self::CopyOfUndefined { .. }
                | Self::Unread { .. }
                | Self::Oversized { .. }
                | Self::Unused { .. }
        )
    }

    /// Notes waste and goes on: what follows can be judged all the same. Any
    /// other violation ends the check in hand.
    pub(crate) fn note(self, waste: &Waste) -> Check {
        if !self.is_waste() {
            return Err(self.into());
        }
        // Only the first is reported.
        let _ = waste.set(self.into());
        Ok(())
    }

    /// The edge that should be there: from the later node to the earlier one.
    #[must_use]
    pub fn missing_edge(&self) -> Option<(Vertex, Vertex)> {
        match self {
            Self::NotSynchronized { later, earlier }
            | Self::GroupUnordered { later, earlier, .. }
            | Self::Unordered { later, earlier, .. } => Some((*later, *earlier)),
            _ => None,
        }
    }

    /// The nodes involved, the offender first.
    #[must_use]
    pub fn vertices(&self) -> SmallVec<[Vertex; 2]> {
        match self {
            Self::WrongId { vertex, .. }
            | Self::UnknownBuffer { vertex, .. }
            | Self::OutOfBounds { vertex, .. }
            | Self::ConflictingAccesses { task: vertex, .. }
            | Self::WrongTask { vertex, .. }
            | Self::Uncalled { vertex, .. }
            | Self::AgainstGranularity { vertex, .. }
            | Self::ItemsTwice { vertex, .. }
            | Self::BadTarget { push: vertex, .. }
            | Self::UnreadTransfer { vertex, .. }
            | Self::Unneeded { vertex, .. }
            | Self::NeverArrives { vertex, .. }
            | Self::NotArriving { vertex, .. }
            | Self::Unannounced { send: vertex, .. }
            | Self::OldMessage { send: vertex, .. }
            | Self::AllocatedTwice { vertex, .. }
            | Self::UnknownAllocation { vertex, .. }
            | Self::UseAfterFree { vertex, .. }
            | Self::DoubleFree { vertex, .. }
            | Self::BadPlacement { vertex, .. }
            | Self::CopyOntoItself { vertex, .. }
            | Self::WrongBinding { vertex, .. }
            | Self::MessageSplit { send: vertex, .. }
            | Self::Redundant { mover: vertex, .. }
            | Self::CopyOfUndefined { copy: vertex, .. }
            | Self::Oversized { vertex, .. }
            | Self::Unused { vertex, .. }
            | Self::BadCollective { vertex, .. }
            | Self::Roots { reader: vertex, .. } => smallvec![*vertex],
            Self::ForwardEdge { vertex, on }
            | Self::DoubledEdge { vertex, on }
            | Self::EdgeBeyondPoint { vertex, on, .. } => smallvec![*vertex, *on],
            Self::NotSynchronized { later, earlier }
            | Self::GroupUnordered { later, earlier, .. }
            | Self::Unordered { later, earlier, .. }
            | Self::Objects { later, earlier, .. } => smallvec![*later, *earlier],
            Self::Stale { reader, writer, .. } => std::iter::once(*reader).chain(*writer).collect(),
            Self::MixedWriters { push, first, second, .. } => smallvec![*push, *first, *second],
            Self::MayDeadlock { send, receive } => smallvec![*send, *receive],
            Self::Unread { copy, overwriter, .. } => smallvec![*overwriter, *copy],
            Self::Leak { made_by: vertex, .. }
            | Self::Mismatch { vertex, .. }
            | Self::CollectiveParts { vertex, .. } => vertex.iter().copied().collect(),
            Self::Missing { task, .. }
            | Self::ItemsNever { task, .. }
            | Self::CollectiveDiffers { task, .. }
            | Self::Disagreement { task, .. } => smallvec![Vertex::Task(*task)],
            Self::NeverSent { .. } => SmallVec::new(),
        }
    }
}
