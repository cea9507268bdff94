//! What an instruction is called in a trace, and what else is told of it. Knows its
//! words, not its times.

use std::fmt;
use std::sync::Arc;

use celerity_cdag::NodeId;
use celerity_idag::{
    Effects, Elements, Exchange, ExchangePart, LaneKind, Lifetime, LifetimeChange, MessageId,
    Synchronization, TaskPart,
};
use celerity_regions::Region;
use celerity_tdag::EpochAction;
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
    /// The label of an instruction that works on `subject`: for one that runs a task's function,
    /// the task's name; for other work on elements, the buffer's.
    pub(crate) fn new(effects: &Effects<'_>, subject: Arc<str>) -> Self {
        if let Some(run) = &effects.runs {
            return Self::run(Text::Shared(subject), run, effects.lane);
        }
        if let Some(point) = effects.synchronizes {
            return Self::point(point);
        }
        if let Some(exchange) = &effects.exchange {
            return Self::exchange(effects, exchange, subject);
        }
        let name = match effects.buffer() {
            Some(_) => Text::shown(Phrase(effects.verb, subject)),
            None => effects.verb.into(),
        };
        match &effects.lifetime {
            Some(lifetime) => Self::of(name, "memory", lived(lifetime)),
            None => Self::of(name, effects.verb, moved(effects)),
        }
    }

    fn run(name: Text, TaskPart { task, chunk, .. }: &TaskPart<'_>, lane: LaneKind) -> Self {
        let category = if lane.device().is_some() { "kernel" } else { "host" };
        let mut details = vec![shown("task", *task)];
        details.extend(chunk.map(|chunk| shown("chunk", chunk)));
        details.extend(lane.device().map(|device| shown("device", device)));
        Self::of(name, category, details)
    }

    fn exchange(effects: &Effects<'_>, exchange: &Exchange<'_>, subject: Arc<str>) -> Self {
        let Exchange { transfer, elements, part } = *exchange;
        let (verb, category) = match part {
            ExchangePart::Send { .. } => ("send", "send"),
            ExchangePart::Receive | ExchangePart::Begin => ("receive", "receive"),
            ExchangePart::Await => ("await", "receive"),
            ExchangePart::Collective { .. } => (effects.verb, "collective"),
        };
        let (mut details, mut sends) = (Vec::new(), None);
        if let ExchangePart::Send { to, message } = part {
            details.push(shown("to", to));
            sends = Some(message);
        }
        details.extend(effects.elem_size.map(|elem_size| bytes(elements.volume(), elem_size)));
        details.extend([elements_of(elements), shown("for", transfer.consumer)]);
        Self { sends, ..Self::of(Text::shown(Phrase(verb, subject)), category, details) }
    }

    /// A payload on its way from a node.
    pub(super) fn payload(from: NodeId, buffer: Arc<str>, region: &Region, elem_size: u64) -> Self {
        let details = vec![shown("from", from), bytes(region.volume(), elem_size)];
        let label = Self::of(Text::shown(Phrase("payload of", buffer)), "payload", details);
        label.and(elements_of(Elements::of(region)))
    }

    fn of(name: Text, category: &'static str, details: Vec<(&'static str, Value)>) -> Self {
        Self { name, category, details, sends: None }
    }

    fn and(mut self, detail: (&'static str, Value)) -> Self {
        self.details.push(detail);
        self
    }

    fn point(point: Synchronization) -> Self {
        let name = match point {
            Synchronization::Horizon { .. } => "horizon",
            Synchronization::Epoch { action: EpochAction::Init, .. } => "start",
            Synchronization::Epoch { action: EpochAction::Barrier, .. } => "barrier",
            Synchronization::Epoch { action: EpochAction::Shutdown, .. } => "end of the program",
        };
        Self::of(name.into(), "synchronization", vec![shown("task", point.task())])
    }
}

fn elements_of(elements: Elements<'_>) -> (&'static str, Value) {
    match elements {
        Elements::Box(one) => shown("elements", one),
        Elements::Region(region) => shown("elements", region.clone()),
    }
}

fn lived(lifetime: &Lifetime<'_>) -> Vec<(&'static str, Value)> {
    let Lifetime { allocation, memory, change } = *lifetime;
    let bytes = match change {
        LifetimeChange::Made { bytes, .. } => Some(bytes),
        LifetimeChange::Grown { bytes, .. } => Some(bytes.end - bytes.start),
        LifetimeChange::Ended => None,
    };
    let mut details = Vec::with_capacity(3);
    details.extend(bytes.map(|bytes| ("bytes", Value::Number(bytes))));
    details.extend([shown("memory", memory), shown("allocation", allocation)]);
    details
}

/// Of what goes from memory to memory.
fn moved(effects: &Effects<'_>) -> Vec<(&'static str, Value)> {
    let Effects { source, target, elem_size, .. } = effects;
    let size = source.or(*target).zip(*elem_size);
    let mut details = Vec::with_capacity(4);
    details.extend(size.map(|(touch, elem_size)| bytes(touch.elements.volume(), elem_size)));
    details.extend(source.map(|source| shown("from", source.placement.memory)));
    details.extend(target.map(|target| shown("to", target.placement.memory)));
    details.extend(source.or(*target).map(|touch| elements_of(touch.elements)));
    details
}
