//! What has happened in a run: a hash over everything, and the latest entries, or
//! all of them. Holds no address, so that equal runs have equal logs.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{Hash, Hasher};

use celerity_cdag::{NodeId, TransferId};
use celerity_executor::{LaneId, Time};
use celerity_idag::{InstructionId, MemoryId, MessageId};
use celerity_tdag::TaskId;

/// One line of the event log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LogEntry {
    /// The simulated time.
    pub at: Time,
    /// The node that it happened on.
    pub node: NodeId,
    /// What.
    pub what: What,
}

/// What can happen to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // The fields are what their types say.
pub enum What {
    /// Its program executes a statement.
    Statement { op: usize },
    /// Its program ends.
    Closes,
    /// Its machine is polled.
    Polled { busy: bool },
    /// It gets memory.
    Allocates { memory: MemoryId, bytes: u64 },
    /// It gives memory back.
    Frees { memory: MemoryId },
    /// It is refused memory.
    OutOfMemory { memory: MemoryId },
    /// A job is put on a lane.
    Enqueued { instruction: InstructionId, lane: LaneId },
    /// A job starts.
    Started { instruction: InstructionId, lane: LaneId },
    /// A job ends.
    Ended { instruction: InstructionId, failed: bool },
    /// It announces a payload.
    Announces { to: NodeId, message: MessageId, transfer: TransferId },
    /// A note is sent.
    Notes { to: NodeId },
    /// A note has arrived.
    Noted { from: NodeId },
    /// It is told of a payload.
    Announced { from: NodeId, message: MessageId },
    /// It offers a payload.
    Offers { to: NodeId, message: MessageId },
    /// It accepts a payload.
    Accepts { from: NodeId, message: MessageId },
    /// A part of a payload leaves its memory.
    PartRead { message: MessageId, part: usize },
    /// A part of a payload is written to its memory.
    PartWritten { from: NodeId, message: MessageId, part: usize },
    /// It learns that a payload has left.
    Sent { message: MessageId },
    /// It learns that a payload has arrived.
    Received { from: NodeId, message: MessageId },
    /// It comes to a collective operation.
    Exchanges { transfer: TransferId },
    /// It learns that its part in a collective operation is over.
    Exchanged { transfer: TransferId },
    /// It enters a barrier.
    EntersBarrier { epoch: TaskId },
    /// It learns that a barrier has been reached.
    BarrierReached,
    /// It stops the run.
    Aborts,
    /// It learns that the run has been stopped.
    Aborted,
    /// It learns that the network cannot go on.
    NetworkFailed,
    /// A job is left to the thread that polls it.
    LeftToNode { instruction: InstructionId, lane: LaneId },
    /// The thread that polls it computes.
    Computes { instruction: InstructionId },
}

/// So many entries are kept for the report of a failure.
const TAIL: usize = 40;

/// Collects entries.
#[derive(Debug)]
pub(super) struct Log {
    entries: VecDeque<LogEntry>,
    keep_all: bool,
    count: u64,
    hash: WordHasher,
}

impl Log {
    pub(super) fn new(keep_all: bool) -> Self {
        Self { entries: VecDeque::new(), keep_all, count: 0, hash: WordHasher::default() }
    }

    pub(super) fn add(&mut self, entry: LogEntry) {
        entry.hash(&mut self.hash);
        self.count += 1;
        if !self.keep_all && self.entries.len() == TAIL {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
    }

    /// Entries in all.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// A hash over all of them, in order.
    pub(super) fn hash(&self) -> u64 {
        self.hash.finish()
    }

    /// The latest entries, or all.
    pub(super) fn take(&mut self) -> Vec<LogEntry> {
        std::mem::take(&mut self.entries).into()
    }
}

/// A hash that is the same on every machine of this word size, unlike the
/// standard library's.
#[derive(Clone, Copy, Debug, Default)]
struct WordHasher(u64);

impl Hasher for WordHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, word: u64) {
        let mixed = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u16(&mut self, word: u16) {
        self.write_u64(u64::from(word));
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        // What derived implementations make of an enum's variant.
        self.write_u64(word.unsigned_abs() as u64);
    }
}

impl fmt::Display for LogEntry {
    /// `1.204µs N2: I12 starts on lane 3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12} {}: {}", self.at.to_string(), self.node, self.what)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Statement { op } => write!(f, "statement {op}"),
            Self::Closes => f.write_str("the program ends"),
            Self::Polled { busy: true } => f.write_str("polled, busy"),
            Self::Polled { busy: false } => f.write_str("polled, idle"),
            Self::Allocates { memory, bytes } => write!(f, "{bytes} bytes of {memory}"),
            Self::Frees { memory } => write!(f, "gives memory of {memory} back"),
            Self::OutOfMemory { memory } => write!(f, "no room in {memory}"),
            Self::Enqueued { instruction, lane } => {
                write!(f, "{instruction} queues up on lane {}", lane.slot())
            }
            Self::Started { instruction, lane } => {
                write!(f, "{instruction} starts on lane {}", lane.slot())
            }
            Self::Ended { instruction, failed: false } => write!(f, "{instruction} ends"),
            Self::Ended { instruction, failed: true } => write!(f, "{instruction} fails"),
            Self::Announces { to, message, transfer } => {
                write!(f, "announces {message} to {to} for {transfer}")
            }
            Self::Announced { from, message } => write!(f, "hears of {message} from {from}"),
            Self::Notes { to } => write!(f, "sends a note to {to}"),
            Self::Noted { from } => write!(f, "gets a note from {from}"),
            Self::Offers { to, message } => write!(f, "offers {message} to {to}"),
            Self::Accepts { from, message } => write!(f, "accepts {message} from {from}"),
            Self::PartRead { message, part } => write!(f, "part {part} of {message} leaves"),
            Self::PartWritten { from, message, part } => {
                write!(f, "part {part} of {message} from {from} is written")
            }
            Self::Sent { message } => write!(f, "{message} has been sent"),
            Self::Received { from, message } => write!(f, "{message} from {from} is complete"),
            Self::Exchanges { transfer } => write!(f, "comes to the collective {transfer}"),
            Self::Exchanged { transfer } => write!(f, "is done with the collective {transfer}"),
            Self::EntersBarrier { epoch } => write!(f, "enters the barrier of {epoch}"),
            Self::BarrierReached => f.write_str("the barrier is reached"),
            Self::Aborts => f.write_str("stops the run"),
            Self::Aborted => f.write_str("learns that the run has been stopped"),
            Self::NetworkFailed => f.write_str("learns that the network has failed"),
            Self::LeftToNode { instruction, lane } => {
                write!(f, "{instruction} on lane {} is left to the node's thread", lane.slot())
            }
            Self::Computes { instruction } => write!(f, "{instruction} runs on its thread"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(op: usize) -> LogEntry {
        let node = NodeId::from_index(1);
        LogEntry { at: Time::START, node, what: What::Statement { op } }
    }

    #[test]
    fn the_hash_knows_the_order_and_outlives_the_entries() {
        let run = |ops: &[usize]| {
            let mut log = Log::new(false);
            ops.iter().for_each(|&op| log.add(entry(op)));
            (log.hash(), log.take().len())
        };
        assert_ne!(run(&[1, 2]), run(&[2, 1]));
        let many: Vec<_> = (0..100).collect();
        assert_eq!(run(&many).1, TAIL);
        assert_ne!(run(&many).0, run(&many[1..]).0, "entries that were dropped count");
    }

    #[test]
    fn an_entry_says_when_where_and_what() {
        assert_eq!(entry(3).to_string(), "         0ns N1: statement 3");
    }
}
