//! What instructions do to their surroundings, said once for every kind of them.
//!
//! Owns the one exhaustive match over [`InstructionKind`] that the graph's consumers share: the
//! contract's check, dispatch to lanes, labels, traces and reports read [`Effects`]. Who *performs*
//! instructions matches on them, and who judges schedules independently. Refuses to know what a
//! kernel does with the memory that it is bound to: its task says so.

use std::fmt;
use std::ops::Range;

use celerity_cdag::{NodeId, TransferId};
use celerity_cpd::Pattern;
use celerity_regions::{Box3, Region};
use celerity_tdag::{BufferId, EpochAction, TaskId};

use crate::instruction::{
    AllocationId, BoundAccess, CollectivePart, DeviceId, Inbound, Instruction, InstructionId,
    InstructionKind, MemoryId, MessageId, Participation, Placement,
};

/// What an instruction does to allocations, elements, peers and the order of others.
///
/// ```
/// use celerity_idag::{AllocationId, InstructionKind, LaneKind, LifetimeChange, MemoryId};
/// let (allocation, memory) = (AllocationId::from_index(3), MemoryId::HOST);
/// let free = InstructionKind::Free { allocation, memory };
/// let effects = free.effects();
/// assert_eq!((effects.verb, effects.lane), ("free", LaneKind::Node));
/// let lifetime = effects.lifetime.as_ref().unwrap();
/// assert_eq!((lifetime.allocation, lifetime.change), (allocation, LifetimeChange::Ended));
/// assert_eq!(effects.touches().count(), 0);
/// ```
///
/// Plain data that borrows from the instruction: asking is O(1) and allocates nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effects<'a> {
    /// What is done, in words: `kernel`, `split receive`.
    pub verb: &'static str,
    /// Which kind of lane it needs.
    pub lane: LaneKind,
    /// Bytes per element of what it moves; kernels and host tasks do not say.
    pub elem_size: Option<u64>,
    /// The allocation that it makes, extends or ends.
    pub lifetime: Option<Lifetime<'a>>,
    /// What it reads and moves elsewhere.
    pub source: Option<Touch<'a>>,
    /// What it overwrites with what it moves.
    pub target: Option<Touch<'a>>,
    /// The collective that it takes part in.
    pub participates: Option<&'a Participation>,
    /// The function of a task that it runs.
    pub runs: Option<TaskPart<'a>>,
    /// Earlier instructions that it must not run at the same time as.
    pub conflicts: &'a [InstructionId],
    /// Its part in a transfer between nodes.
    pub exchange: Option<Exchange<'a>>,
    /// What later instructions may rely on once it has completed.
    pub synchronizes: Option<Synchronization>,
}

/// The kind of lane that an instruction needs: in which queue it may wait, and who runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneKind {
    /// None: the node does it itself, and what it touches is in `M1`.
    Node,
    /// One of a device for kernels.
    Kernel(DeviceId),
    /// One for copies between these two memories.
    Copy {
        /// Where the elements come from.
        source: MemoryId,
        /// The memory that the elements are copied to.
        target: MemoryId,
    },
    /// A thread of the host that may block; what it touches is in `M1`.
    HostTask,
}

/// What becomes of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime<'a> {
    /// The id of the allocation.
    pub allocation: AllocationId,
    /// The memory that it is in.
    pub memory: MemoryId,
    /// What becomes of it.
    pub change: LifetimeChange<'a>,
}

/// Beginning, growth or end of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifetimeChange<'a> {
    /// It begins to live.
    Made {
        /// Whose elements it will hold.
        buffer: BufferId,
        /// The allocation's size in bytes.
        bytes: u64,
        /// Its alignment in bytes.
        alignment: u64,
        /// Whether there is memory behind all of it, rather than addresses only.
        provided: bool,
    },
    /// There is memory behind a part of it from now on.
    Grown {
        /// Whose elements it holds.
        buffer: BufferId,
        /// The elements that the part holds.
        elements: Box3,
        /// Where they lie in the allocation.
        bytes: &'a Range<u64>,
    },
    /// It ends; no later instruction names it.
    Ended,
}

/// Elements of one allocation that an instruction uses, and which therefore has to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch<'a> {
    /// The id of the buffer.
    pub buffer: BufferId,
    /// Where its elements lie.
    pub placement: &'a Placement,
    /// Which of them are used.
    pub elements: Elements<'a>,
    /// What is done to them.
    pub mode: TouchMode,
}

/// The function of a task that an instruction runs, or the snapshot that it takes for a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskPart<'a> {
    /// The id of the task whose function runs.
    pub task: TaskId,
    /// The items, if there are any: those of a kernel.
    pub chunk: Option<Box3>,
    /// Memory, in the order of the task's accesses.
    pub bound: &'a [BoundAccess],
}

/// How an instruction uses elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TouchMode {
    /// The instruction reads the elements.
    Read,
    /// The instruction overwrites the elements.
    Write,
    /// It does what the access of its task does that stands in this position.
    Declared(usize),
}

/// Elements of a buffer, as the instruction gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements<'a> {
    /// One box.
    Box(Box3),
    /// Any.
    Region(&'a Region),
}

impl<'a> Elements<'a> {
    /// Those of a region: as a box, if it is one.
    #[must_use]
    pub fn of(region: &'a Region) -> Self {
        match region.boxes() {
            [one] => Self::Box(*one),
            _ => Self::Region(region),
        }
    }

    /// The smallest box that holds them.
    #[must_use]
    pub fn bounding_box(self) -> Box3 {
        match self {
            Self::Box(one) => one,
            Self::Region(region) => region.bounding_box(),
        }
    }

    /// The same as a region of its own.
    #[must_use]
    pub fn to_region(self) -> Region {
        match self {
            Self::Box(one) => Region::from(one),
            Self::Region(region) => region.clone(),
        }
    }

    /// How many there are.
    #[must_use]
    pub fn volume(self) -> u64 {
        match self {
            Self::Box(one) => one.volume(),
            Self::Region(region) => region.volume(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        match self {
            Self::Box(one) => one.is_empty(),
            Self::Region(region) => region.is_empty(),
        }
    }
}

impl fmt::Display for Elements<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Box(one) => one.fmt(f),
            Self::Region(region) => region.fmt(f),
        }
    }
}

/// An instruction's part in a transfer between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange<'a> {
    /// What the data is for.
    pub transfer: TransferId,
    /// The elements that this instruction moves, or notices.
    pub elements: Elements<'a>,
    /// Which end of the wire it is, and what it waits for.
    pub part: ExchangePart,
}

/// Which end of a transfer an instruction is, and when it completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangePart {
    /// Sends; a [`Pilot`](crate::Pilot) announces the message.
    Send {
        /// The node that receives.
        to: NodeId,
        /// Names the payload.
        message: MessageId,
    },
    /// Receives from whoever sends, and completes when all elements are there.
    Receive,
    /// Begins to receive from whoever sends, and completes at once.
    Begin,
    /// Completes when these elements of what has begun to arrive are there.
    Await,
    /// Takes part in an operation of all nodes, and completes when this node's memory is out of its
    /// use. The elements are those of all nodes.
    Collective {
        /// Counts the node's collectives, which begin in this order.
        number: u64,
    },
}

/// What later instructions may rely on once an instruction has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synchronization {
    /// All earlier ones have completed, and later ones name none from before the last horizon.
    Horizon {
        /// The id of the task that is the horizon.
        task: TaskId,
    },
    /// All earlier ones have completed, and later ones name none of them.
    Epoch {
        /// The id of the task that is the epoch.
        task: TaskId,
        /// What it is for.
        action: EpochAction,
    },
}

impl<'a> Effects<'a> {
    /// The effects of one that does nothing but what is set afterwards.
    const fn nothing(verb: &'static str, lane: LaneKind) -> Self {
        Self {
            verb,
            lane,
            elem_size: None,
            lifetime: None,
            source: None,
            target: None,
            participates: None,
            runs: None,
            conflicts: &[],
            exchange: None,
            synchronizes: None,
        }
    }

    /// The task that it serves: whose function it runs, whose elements it sends or receives, or
    /// the horizon or epoch that it stands for. Memory and copies serve whoever comes.
    #[must_use]
    pub fn task(&self) -> Option<TaskId> {
        let run = self.runs.map(|run| run.task);
        let consumer = || self.exchange.map(|exchange| exchange.transfer.consumer);
        let point = || self.synchronizes.map(Synchronization::task);
        run.or_else(consumer).or_else(point)
    }

    /// The buffer whose elements it is about, if it is about those of one only.
    #[must_use]
    pub fn buffer(&self) -> Option<BufferId> {
        let allocated = self.lifetime.and_then(|lifetime| lifetime.change.buffer());
        let sent = || self.exchange.map(|exchange| exchange.transfer.buffer);
        let moved = || self.source.or(self.target).map(|touch| touch.buffer);
        allocated.or_else(sent).or_else(moved)
    }

    /// All elements that it uses: what it moves from and to, then what it is bound to.
    pub fn touches(&self) -> impl Iterator<Item = Touch<'a>> + use<'a> {
        let bound = self.runs.map_or(&[][..], |run| run.bound);
        let bound = bound.iter().enumerate().filter_map(|(slot, access)| {
            Some(Touch {
                buffer: access.buffer,
                placement: access.placement.as_ref()?,
                elements: Elements::Region(&access.region),
                mode: TouchMode::Declared(slot),
            })
        });
        let exchanged = self.participates.into_iter().flat_map(Participation::touches);
        [self.source, self.target].into_iter().flatten().chain(exchanged).chain(bound)
    }
}

impl LifetimeChange<'_> {
    /// Whose elements the allocation holds; its end does not say.
    #[must_use]
    pub fn buffer(&self) -> Option<BufferId> {
        match self {
            Self::Made { buffer, .. } | Self::Grown { buffer, .. } => Some(*buffer),
            Self::Ended => None,
        }
    }
}

impl LaneKind {
    /// The device that it is a kernel lane of.
    #[must_use]
    pub const fn device(self) -> Option<DeviceId> {
        match self {
            Self::Kernel(device) => Some(device),
            Self::Copy { .. } | Self::HostTask | Self::Node => None,
        }
    }
}

impl Synchronization {
    /// The horizon or epoch.
    #[must_use]
    pub const fn task(self) -> TaskId {
        match self {
            Self::Horizon { task } | Self::Epoch { task, .. } => task,
        }
    }
}

impl Instruction {
    /// What it does to allocations, elements, peers and the order of others.
    #[inline]
    #[must_use]
    pub fn effects(&self) -> Effects<'_> {
        self.kind.effects()
    }
}

impl InstructionKind {
    /// What such an instruction does. The one place that says so of every kind: a new one is
    /// described here, and whoever reads effects needs no change.
    #[inline]
    #[must_use]
    pub fn effects(&self) -> Effects<'_> {
        match self {
            Self::Alloc { allocation, memory, buffer, bytes, alignment } => {
                let (buffer, bytes, alignment) = (*buffer, *bytes, *alignment);
                let change = LifetimeChange::Made { buffer, bytes, alignment, provided: true };
                lives("alloc", *allocation, *memory, change)
            }
            Self::Reserve { allocation, memory, buffer, bytes, alignment } => {
                let (buffer, bytes, alignment) = (*buffer, *bytes, *alignment);
                let change = LifetimeChange::Made { buffer, bytes, alignment, provided: false };
                lives("reserve", *allocation, *memory, change)
            }
            Self::Grow { allocation, memory, buffer, elements, bytes } => {
                let (buffer, elements) = (*buffer, *elements);
                let change = LifetimeChange::Grown { buffer, elements, bytes };
                lives("grow", *allocation, *memory, change)
            }
            Self::Free { allocation, memory } => {
                lives("free", *allocation, *memory, LifetimeChange::Ended)
            }
            Self::Copy { buffer, source, target, region, elem_size } => {
                let lane = LaneKind::Copy { source: source.memory, target: target.memory };
                let elements = Elements::of(region);
                Effects {
                    elem_size: Some(*elem_size),
                    source: Some(Touch::read(*buffer, source, elements)),
                    target: Some(Touch::written(*buffer, target, elements)),
                    ..Effects::nothing("copy", lane)
                }
            }
            Self::Send { to, message, transfer, source, region, elem_size } => {
                let part = ExchangePart::Send { to: *to, message: *message };
                let elements = Elements::of(region);
                Effects {
                    elem_size: Some(*elem_size),
                    source: Some(Touch::read(transfer.buffer, source, elements)),
                    ..exchanges("send", *transfer, elements, part)
                }
            }
            Self::Receive(inbound) => arrives("receive", inbound, ExchangePart::Receive),
            Self::SplitReceive(inbound) => arrives("split receive", inbound, ExchangePart::Begin),
            Self::AwaitReceive { transfer, region } => {
                let elements = Elements::Region(region);
                exchanges("await receive", *transfer, elements, ExchangePart::Await)
            }
            Self::Collective(participation) => {
                let Participation { transfer, number, collective, elem_size, .. } = participation;
                let part = ExchangePart::Collective { number: *number };
                let elements = Elements::Region(&collective.region);
                Effects {
                    elem_size: Some(*elem_size),
                    participates: Some(participation),
                    ..exchanges(verb(collective.pattern()), *transfer, elements, part)
                }
            }
            Self::Kernel { device, task, chunk, accesses } => {
                let run = TaskPart { task: *task, chunk: Some(*chunk), bound: accesses };
                let lane = LaneKind::Kernel(*device);
                Effects { runs: Some(run), ..Effects::nothing("kernel", lane) }
            }
            Self::HostTask { task, chunk, accesses, conflicts } => {
                let chunk = (*chunk != Box3::UNIT).then_some(*chunk);
                let run = TaskPart { task: *task, chunk, bound: accesses };
                let conflicts = conflicts.as_slice();
                let host_task = Effects::nothing("host task", LaneKind::HostTask);
                Effects { runs: Some(run), conflicts, ..host_task }
            }
            Self::Horizon { task } => reached("horizon", Synchronization::Horizon { task: *task }),
            Self::Epoch { task, action } => {
                reached("epoch", Synchronization::Epoch { task: *task, action: *action })
            }
        }
    }
}

impl<'a> Touch<'a> {
    #[inline]
    const fn read(buffer: BufferId, placement: &'a Placement, elements: Elements<'a>) -> Self {
        Self { buffer, placement, elements, mode: TouchMode::Read }
    }

    #[inline]
    const fn written(buffer: BufferId, placement: &'a Placement, elements: Elements<'a>) -> Self {
        Self { buffer, placement, elements, mode: TouchMode::Write }
    }
}

impl Participation {
    /// What it reads, and then what it overwrites.
    fn touches(&self) -> impl Iterator<Item = Touch<'_>> {
        let buffer = self.transfer.buffer;
        let sources = self.sources.iter().map(|part| (part, TouchMode::Read));
        let targets = self.targets.iter().map(|part| (part, TouchMode::Write));
        sources.chain(targets).map(move |(CollectivePart { placement, region }, mode)| Touch {
            buffer,
            placement,
            elements: Elements::Region(region),
            mode,
        })
    }
}

/// Makes, extends or ends an allocation.
#[inline]
fn lives<'a>(
    verb: &'static str,
    allocation: AllocationId,
    memory: MemoryId,
    change: LifetimeChange<'a>,
) -> Effects<'a> {
    let lifetime = Some(Lifetime { allocation, memory, change });
    Effects { lifetime, ..Effects::nothing(verb, LaneKind::Node) }
}

/// What a collective is called.
const fn verb(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::Gather => "gather",
        Pattern::AllGather => "all-gather",
        Pattern::Broadcast => "broadcast",
        Pattern::Scatter => "scatter",
        Pattern::AllToAll => "all-to-all",
    }
}

/// Takes part in a transfer.
#[inline]
fn exchanges<'a>(
    verb: &'static str,
    transfer: TransferId,
    elements: Elements<'a>,
    part: ExchangePart,
) -> Effects<'a> {
    let exchange = Some(Exchange { transfer, elements, part });
    Effects { exchange, ..Effects::nothing(verb, LaneKind::Node) }
}

/// Takes in what a transfer brings.
#[inline]
fn arrives<'a>(verb: &'static str, inbound: &'a Inbound, part: ExchangePart) -> Effects<'a> {
    let Inbound { transfer, target, region, elem_size } = inbound;
    let elements = Elements::Region(region);
    Effects {
        elem_size: Some(*elem_size),
        target: Some(Touch::written(transfer.buffer, target, elements)),
        ..exchanges(verb, *transfer, elements, part)
    }
}

/// Stands in for all that is older.
#[inline]
fn reached<'a>(verb: &'static str, point: Synchronization) -> Effects<'a> {
    Effects { synchronizes: Some(point), ..Effects::nothing(verb, LaneKind::Node) }
}
