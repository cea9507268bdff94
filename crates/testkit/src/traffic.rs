//! What one instruction costs: bytes that it allocates, copies and sends, as its effects say.
//! Knows no kind of instruction, and judges nothing.

use celerity_idag::{Effects, ExchangePart, LifetimeChange};

/// Bytes that an instruction moves, or puts behind addresses. `None` where it does no such thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BytesMoved {
    /// Bytes of memory that there is from now on. Addresses that are only reserved are none.
    pub(crate) allocated: Option<u64>,
    /// Bytes copied within a node.
    pub(crate) copied: Option<u64>,
    /// Bytes sent to another node.
    pub(crate) sent: Option<u64>,
}

impl BytesMoved {
    /// The traffic of one instruction.
    pub(crate) fn of(effects: &Effects<'_>) -> Self {
        let elem_size = effects.elem_size.unwrap_or_default();
        let bytes = |elements: u64| elements.saturating_mul(elem_size);
        let copied = effects.source.zip(effects.target).map(|(source, _)| source.elements.volume());
        let sent = effects.exchange.filter(|one| matches!(one.part, ExchangePart::Send { .. }));
        Self {
            allocated: effects.lifetime.and_then(|lifetime| provided(&lifetime.change)),
            copied: copied.map(bytes),
            sent: sent.map(|exchange| bytes(exchange.elements.volume())),
        }
    }
}

/// Bytes of memory that a change of an allocation brings, if it is one that does.
fn provided(change: &LifetimeChange<'_>) -> Option<u64> {
    match change {
        LifetimeChange::Made { bytes, provided: true, .. } => Some(*bytes),
        LifetimeChange::Grown { bytes, .. } => Some(bytes.end - bytes.start),
        LifetimeChange::Made { provided: false, .. } | LifetimeChange::Ended => None,
    }
}

#[cfg(test)]
mod tests {
    use celerity_idag::{AllocationId, InstructionKind, MemoryId, Placement};
    use celerity_regions::Box3;
    use celerity_tdag::BufferId;

    use super::*;

    fn traffic(kind: &InstructionKind) -> BytesMoved {
        BytesMoved::of(&kind.effects())
    }

    #[test]
    fn addresses_cost_nothing_until_there_is_memory_behind_them() {
        let (allocation, memory) = (AllocationId::from_index(3), MemoryId::HOST);
        let (buffer, bytes, alignment) = (BufferId::from_index(0), 64, 8);
        let reserve = InstructionKind::Reserve { allocation, memory, buffer, bytes, alignment };
        assert_eq!(traffic(&reserve), BytesMoved::default());
        let elements = Box3::from_range([2]);
        let grow = InstructionKind::Grow { allocation, memory, buffer, elements, bytes: 8..24 };
        assert_eq!(traffic(&grow), BytesMoved { allocated: Some(16), ..BytesMoved::default() });
        let alloc = InstructionKind::Alloc { allocation, memory, buffer, bytes, alignment };
        assert_eq!(traffic(&alloc), BytesMoved { allocated: Some(64), ..BytesMoved::default() });
        let free = InstructionKind::Free { allocation, memory };
        assert_eq!(traffic(&free), BytesMoved::default());
    }

    #[test]
    fn what_is_copied_is_not_sent() {
        let elements = Box3::from_range([2, 3]);
        let at = |index| Placement {
            allocation: AllocationId::from_index(index),
            memory: MemoryId::HOST,
            extent: elements,
        };
        let (buffer, source, target) = (BufferId::from_index(0), at(0), at(1));
        let region = elements.into();
        let copy = InstructionKind::Copy { buffer, source, target, region, elem_size: 8 };
        assert_eq!(traffic(&copy), BytesMoved { copied: Some(48), ..BytesMoved::default() });
    }
}
