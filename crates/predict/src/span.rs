//! What happened in simulated time: spans, and which one each had to wait for. Owns the way back along
//! these causes, by which a prediction says what limits.

use crate::cluster::Nanos;

/// A span's number, in order of beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(u32);

/// Something that took simulated time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedSpan {
    /// On which node.
    pub node: usize,
    /// Who was busy with it.
    pub lane: Lane,
    /// The task or instruction: its position in the node's schedule.
    pub subject: Subject,
    /// When it began.
    pub start: Nanos,
    /// When it was over.
    pub end: Nanos,
    /// Without whose end it could not have begun.
    pub cause: Option<SpanId>,
}

/// Who is busy with something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// The program's thread.
    Program,
    /// The scheduler.
    Scheduler,
    /// Who issues instructions.
    Engine,
    /// A device, with kernels.
    Kernels(usize),
    /// A device, with copies from and to its memory; `None`: the host.
    Copies(Option<usize>),
    /// A thread for host tasks.
    HostTasks,
    /// A thread for fences, and for what reductions combine.
    Fences,
    /// The network, with a message to the node.
    Payload,
    /// The network, with an operation of all nodes.
    Collective,
    /// Nodes that wait for each other in an epoch.
    Barrier,
}

/// What a span is about, by its position in the node's schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// What the program does by itself, and submitting.
    Program,
    /// A task that is scheduled.
    Task(usize),
    /// An instruction.
    Step(u32),
    /// A message, with its sender and the position of the send there.
    Message {
        /// The sender.
        from: usize,
        /// The send.
        step: u32,
    },
}

/// What may limit a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit {
    /// Kernels on devices.
    Kernel,
    /// Host tasks and fences.
    Host,
    /// Copies within a node.
    Copy,
    /// Messages, collective operations and barriers.
    Network,
    /// Scheduling tasks.
    Scheduling,
    /// Issuing instructions, allocating memory, and handling messages.
    Runtime,
    /// The program itself: its own work and submitting tasks.
    Program,
}

impl Limit {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 7] = [
        Self::Kernel,
        Self::Copy,
        Self::Network,
        Self::Host,
        Self::Scheduling,
        Self::Runtime,
        Self::Program,
    ];

    /// In a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Host => "host",
            Self::Copy => "copy",
            Self::Network => "network",
            Self::Scheduling => "scheduling",
            Self::Runtime => "runtime",
            Self::Program => "program",
        }
    }
}

impl Lane {
    /// What is the limit while such a lane is busy.
    #[must_use]
    pub const fn limit(self) -> Limit {
        match self {
            Self::Program => Limit::Program,
            Self::Scheduler => Limit::Scheduling,
            Self::Engine => Limit::Runtime,
            Self::Kernels(_) => Limit::Kernel,
            Self::Copies(_) => Limit::Copy,
            Self::HostTasks | Self::Fences => Limit::Host,
            Self::Payload | Self::Collective | Self::Barrier => Limit::Network,
        }
    }
}

/// All that happened, in order of beginning. A span takes about 80 bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spans(Vec<SimulatedSpan>);

impl Spans {
    /// Adds a span.
    pub(crate) fn push(&mut self, span: SimulatedSpan) -> SpanId {
        let id = SpanId(u32::try_from(self.0.len()).expect("a prediction has fewer spans"));
        self.0.push(span);
        id
    }

    /// All of them, in order of beginning.
    #[must_use]
    pub fn all(&self) -> &[SimulatedSpan] {
        &self.0
    }

    /// The span of this number.
    #[must_use]
    pub fn get(&self, id: SpanId) -> &SimulatedSpan {
        &self.0[id.0 as usize]
    }

    /// How much of the time until the end of `last` each limit takes on the way back along causes, in
    /// the order of [`Limit::ALL`]: together all of that time. O(spans on the way).
    #[must_use]
    pub fn critical(&self, last: Option<SpanId>) -> [Nanos; Limit::ALL.len()] {
        let mut shares = [0; Limit::ALL.len()];
        let mut next = last;
        let mut until = last.map_or(0, |last| self.get(last).end);
        while let Some(span) = next.map(|id| self.get(id)) {
            // What a message shares with the one before it on a link counts once.
            let from = span.cause.map_or(0, |cause| self.get(cause).end).min(until);
            let limit = Limit::ALL.iter().position(|limit| *limit == span.lane.limit());
            shares[limit.expect("all limits are listed")] += until - from;
            (until, next) = (from, span.cause);
        }
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_takes_all_of_the_time() {
        let mut spans = Spans::default();
        let mut push = |lane, start, end, cause| {
            let (node, subject) = (0, Subject::Program);
            spans.push(SimulatedSpan { node, lane, subject, start, end, cause })
        };
        let program = push(Lane::Program, 0, 5, None);
        let kernel = push(Lane::Kernels(0), 5, 30, Some(program));
        push(Lane::Kernels(1), 5, 90, Some(program));
        let first = push(Lane::Payload, 30, 44, Some(kernel));
        let second = push(Lane::Payload, 40, 54, Some(first));
        let shares = spans.critical(Some(second));
        assert_eq!(shares, [25, 0, 24, 0, 0, 0, 5]);
        assert_eq!(spans.critical(None), [0; 7]);
    }
}
