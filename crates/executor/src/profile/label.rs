//! What an instruction is called in a trace, and what else is told of it. Knows its
//! words, not its times.

use std::fmt;
use std::sync::Arc;

use celerity_cdag::{NodeId, TransferId};
use celerity_idag::{Inbound, InstructionKind, MessageId, Placement};
use celerity_regions::{Box3, Region};
use celerity_tdag::{EpochAction, TaskId};
use celerity_trace::{Text, Value};

/// An instruction in words.
pub(crate) struct Label {
    pub(super) name: Text,
    pub(super) category: &'static str,
    pub(super) details: Vec<(&'static str, Value)>,
    /// What it sends.
    pub(super) sends: Option<MessageId>,
}

/// A verb and what it is done to.
struct Phrase(&'static str, Arc<str>);

impl fmt::Display for Phrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, self.1)
    }
}

/// A number of bytes that a region of elements takes.
fn bytes(elements: u64, elem_size: u64) -> (&'static str, Value) {
    ("bytes", Value::Number(elements.saturating_mul(elem_size)))
}

fn shown(key: &'static str, value: impl fmt::Display + Send + 'static) -> (&'static str, Value) {
    (key, Value::Text(Text::shown(value)))
}

impl Label {
    /// The label of an instruction that works on `subject`: for a kernel or host
    /// function, the task's name; for other work on elements, the buffer's.
    pub(crate) fn new(kind: &InstructionKind, subject: Arc<str>) -> Self {
        let phrase = |verb| Text::shown(Phrase(verb, subject.clone()));
        match kind {
            InstructionKind::Kernel { task, chunk, device, .. } => {
                let details = vec![shown("task", *task), shown("chunk", *chunk)];
                Self::of(Text::Shared(subject), "kernel", details).and(shown("device", *device))
            }
            InstructionKind::HostTask { task, .. } => {
                Self::of(Text::Shared(subject), "host", vec![shown("task", *task)])
            }
            InstructionKind::Copy { source, target, elements, elem_size, .. } => {
                let details = copied(source, target, elements, *elem_size);
                Self::of(phrase("copy"), "copy", details)
            }
            InstructionKind::Alloc { allocation, memory, bytes, .. } => {
                let details = vec![("bytes", Value::Number(*bytes)), shown("memory", *memory)];
                Self::of(phrase("alloc"), "memory", details).and(shown("allocation", *allocation))
            }
            InstructionKind::Reserve { allocation, memory, bytes, .. } => {
                let details = vec![("bytes", Value::Number(*bytes)), shown("memory", *memory)];
                let label = Self::of(phrase("reserve"), "memory", details);
                label.and(shown("allocation", *allocation))
            }
            InstructionKind::Grow { allocation, memory, bytes, .. } => {
                let bytes = Value::Number(bytes.end - bytes.start);
                let details = vec![("bytes", bytes), shown("memory", *memory)];
                Self::of(phrase("grow"), "memory", details).and(shown("allocation", *allocation))
            }
            InstructionKind::Free { allocation, memory } => {
                let details = vec![shown("memory", *memory), shown("allocation", *allocation)];
                Self::of("free".into(), "memory", details)
            }
            InstructionKind::Send { to, message, transfer, elements, elem_size, .. } => {
                let details = vec![shown("to", *to), bytes(elements.volume(), *elem_size)];
                let label = Self::of(phrase("send"), "send", details);
                let label = label.and(shown("elements", *elements)).for_transfer(*transfer);
                Self { sends: Some(*message), ..label }
            }
            InstructionKind::Receive(inbound) | InstructionKind::SplitReceive(inbound) => {
                let Inbound { transfer, region, elem_size, .. } = inbound;
                let details = vec![bytes(region.volume(), *elem_size)];
                Self::received(phrase("receive"), region, details, *transfer)
            }
            InstructionKind::AwaitReceive { transfer, region } => {
                Self::received(phrase("await"), region, Vec::new(), *transfer)
            }
            InstructionKind::Horizon { task } => {
                Self::of("horizon".into(), "synchronization", vec![shown("task", *task)])
            }
            InstructionKind::Epoch { task, action } => Self::epoch(*task, *action),
        }
    }

    /// A payload on its way from a node.
    pub(super) fn payload(from: NodeId, buffer: Arc<str>, elements: Box3, elem_size: u64) -> Self {
        let details = vec![shown("from", from), bytes(elements.volume(), elem_size)];
        let label = Self::of(Text::shown(Phrase("payload of", buffer)), "payload", details);
        label.and(shown("elements", elements))
    }

    fn of(name: Text, category: &'static str, details: Vec<(&'static str, Value)>) -> Self {
        Self { name, category, details, sends: None }
    }

    fn and(mut self, detail: (&'static str, Value)) -> Self {
        self.details.push(detail);
        self
    }

    fn for_transfer(self, TransferId { consumer, .. }: TransferId) -> Self {
        self.and(shown("for", consumer))
    }

    fn received(
        name: Text,
        region: &Region,
        details: Vec<(&'static str, Value)>,
        transfer: TransferId,
    ) -> Self {
        let label = Self::of(name, "receive", details).and(shown("elements", region.clone()));
        label.for_transfer(transfer)
    }

    fn epoch(task: TaskId, action: EpochAction) -> Self {
        let name = match action {
            EpochAction::Init => "start",
            EpochAction::Barrier => "barrier",
            EpochAction::Shutdown => "end of the program",
        };
        Self::of(name.into(), "synchronization", vec![shown("task", task)])
    }
}

fn copied(
    source: &Placement,
    target: &Placement,
    elements: &Box3,
    elem_size: u64,
) -> Vec<(&'static str, Value)> {
    vec![
        bytes(elements.volume(), elem_size),
        shown("from", source.memory),
        shown("to", target.memory),
        shown("elements", *elements),
    ]
}
