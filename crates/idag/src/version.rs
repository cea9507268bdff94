//! The newest version of a part of a buffer: who brought it to this node, and which memories
//! have it (instruction-graph preprint, §3.3).

use crate::instruction::{InstructionId, MemoryId};

/// A set of a node's memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemorySet(u64);

impl MemorySet {
    /// One bit less than there are, so that no set of real memories is [`ALL`](Self::ALL).
    pub(crate) const CAPACITY: usize = 63;
    pub(crate) const ALL: Self = Self(u64::MAX);
    pub(crate) const NONE: Self = Self(0);

    pub(crate) fn only(memory: MemoryId) -> Self {
        Self(1 << memory.slot())
    }

    pub(crate) fn contains(self, memory: MemoryId) -> bool {
        self.0 & Self::only(memory).0 != 0
    }

    pub(crate) fn with(self, memory: MemoryId) -> Self {
        Self(self.0 | Self::only(memory).0)
    }

    fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }
}

/// The newest version of a part of a buffer, as far as this node has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// The instruction that brought it to this node: a kernel, host task or
    /// receive.
    pub(crate) producer: InstructionId,
    /// The memory that the producer wrote it to; among the holders, if any.
    pub(crate) origin: MemoryId,
    /// The memories that have it; none while it is on its way from another node.
    pub(crate) holders: MemorySet,
}

impl Version {
    pub(crate) fn produced(producer: InstructionId, origin: MemoryId) -> Self {
        Self { producer, origin, holders: MemorySet::only(origin) }
    }

    /// Zeroes: what all allocations contain before the first write.
    pub(crate) fn void(epoch: InstructionId) -> Self {
        Self { producer: epoch, origin: MemoryId::USER, holders: MemorySet::ALL }
    }

    /// What only other nodes have; of before `point`, as far as anything here is.
    pub(crate) fn elsewhere(point: InstructionId) -> Self {
        Self { producer: point, origin: MemoryId::USER, holders: MemorySet::NONE }
    }

    /// Whether nothing was ever written, so that nothing needs to be copied.
    pub(crate) fn is_void(&self) -> bool {
        self.holders == MemorySet::ALL
    }

    /// Whether any memory of this node has it.
    pub(crate) fn is_here(&self) -> bool {
        self.holders != MemorySet::NONE
    }

    pub(crate) fn outdated(self) -> Self {
        Self { holders: MemorySet::NONE, ..self }
    }

    pub(crate) fn also_in(self, memories: MemorySet) -> Self {
        if self.is_void() { self } else { Self { holders: self.holders.and(memories), ..self } }
    }
}
