//! Device wires: a network that reads and writes the memory of devices. Decides which elements leave
//! from a device's memory and which arrive there; all others go through host memory. Owns what is
//! known of the network. Knows neither handles nor what is where.

use celerity_cdag::NodeId;
use celerity_regions::{Box3, Region};

use crate::buffer::BufferState;
use crate::instruction::MemoryId;
use crate::layout::elements_per_row;
use crate::links::Links;
use crate::plan::PlannedAccess;

/// Larger elements, in bytes, go through the host: a network cuts what it moves between devices into
/// pieces of whole elements.
const LARGEST_ELEMENT: u64 = 64 << 10;

/// What a network does for the memory of devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceWires {
    /// The nodes with which elements are exchanged between devices, ascending.
    reached: Vec<NodeId>,
    /// Whether these are all others.
    are_all: bool,
    /// Less bytes than this go through the host.
    least: u64,
}

impl DeviceWires {
    /// To `reached`, of `nodes` nodes with this one; `None` if that is nobody.
    pub(crate) fn new(
        reached: impl IntoIterator<Item = NodeId>,
        nodes: usize,
        least: u64,
    ) -> Option<Self> {
        let mut reached: Vec<_> = reached.into_iter().collect();
        reached.sort_unstable();
        reached.dedup();
        let are_all = reached.len() + 1 >= nodes;
        (!reached.is_empty()).then_some(Self { reached, are_all, least })
    }

    /// Whether elements for a node may leave from a device's memory.
    pub(crate) fn reach(&self, node: NodeId) -> bool {
        self.reached.binary_search(&node).is_ok()
    }

    /// The position of the allocation in `memory` that `elements`, which were written there, leave
    /// from; `None` if they leave from the host.
    pub(crate) fn departure(
        &self,
        buffer: &BufferState,
        links: &Links,
        memory: MemoryId,
        elements: &Box3,
    ) -> Option<usize> {
        memory.device()?;
        let worth = self.are_worth_it(buffer, links, elements, elements.volume());
        worth.then(|| buffer.backing_of(memory, elements)).flatten()
    }

    /// The memory in which `piece`, which is awaited, arrives: that of the only device that reads
    /// of it, if its sender can be told to put it there.
    pub(crate) fn arrival<'a>(
        &self,
        buffer: &BufferState,
        links: &Links,
        readers: impl Iterator<Item = (MemoryId, &'a PlannedAccess)>,
        piece: &Region,
    ) -> MemoryId {
        let bounds = piece.bounding_box();
        if !self.may_arrive(buffer, links, piece) {
            return MemoryId::HOST;
        }
        let (mut only, mut fits) = (None, false);
        let of_buffer = readers.filter(|(_, access)| access.buffer == buffer.id);
        for (memory, access) in of_buffer.filter(|(_, access)| access.region.intersects(piece)) {
            if memory.device().is_none() || *only.get_or_insert(memory) != memory {
                return MemoryId::HOST;
            }
            fits |= access.bounds.contains(&bounds);
        }
        only.filter(|_| fits).unwrap_or(MemoryId::HOST)
    }

    /// Whether `piece` may arrive in a device's memory, if a device is who needs it: not if its
    /// sender may be one that the network does not bring there.
    pub(crate) fn may_arrive(&self, buffer: &BufferState, links: &Links, piece: &Region) -> bool {
        let bounds = piece.bounding_box();
        self.are_all && self.are_worth_it(buffer, links, &bounds, piece.volume())
    }

    /// Whether elements are enough, and lie in rows long enough, to be copied between devices. Rows
    /// are those of the whole buffer, so that both ends decide alike.
    fn are_worth_it(&self, buffer: &BufferState, links: &Links, bounds: &Box3, count: u64) -> bool {
        let elem_size = buffer.elem_size;
        let row = elements_per_row(bounds, &buffer.extent).saturating_mul(elem_size);
        elem_size <= LARGEST_ELEMENT
            && count.saturating_mul(elem_size) >= self.least
            && !links.are_slow(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_reaches_whom_it_names() {
        let node = NodeId::from_index;
        assert_eq!(DeviceWires::new([], 2, 0), None);
        let wires = DeviceWires::new([node(2), node(1), node(2)], 4, 0).unwrap();
        assert!(wires.reach(node(1)) && wires.reach(node(2)) && !wires.reach(node(3)));
        assert!(!wires.are_all, "N3 is out of reach");
        assert!(DeviceWires::new([node(0)], 2, 0).unwrap().are_all);
    }
}
