//! One node's part in an operation, as calls of the library and copies around them: what lies in one piece is
//! sent from there and received there, and all else goes through dense memory. Plain data; begins nothing.

use celerity_cdag::NodeId;
use celerity_cpd::{Ends, Pattern};
use celerity_executor::{CollectiveExchange, ElementArray, MemoryPart, find_in};
use celerity_regions::{Box3, Region};

use crate::driver::{AddressSpace, Gpu, Transfer};
use crate::nccl::NcclCall;
use crate::transfer::{self, Array};

/// Segments in dense memory begin at multiples of this many bytes.
const ALIGNMENT: u64 = 256;

/// What a node does.
#[derive(Debug)]
pub(super) struct Part {
    gpu: Gpu,
    elem_size: u64,
    calls: Vec<NcclCall<Address>>,
    /// What is packed first.
    given: Vec<Segment>,
    /// What is unpacked last.
    got: Vec<Segment>,
    /// Bytes of dense memory that it needs.
    dense_bytes: u64,
    /// Where it has that.
    dense: Option<u64>,
}

/// Where a call finds elements in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Address {
    /// In a buffer.
    Buffer(u64),
    /// In dense memory, from an offset.
    Dense(u64),
}

/// What goes through dense memory from an offset: the boxes of a region, one behind the other.
#[derive(Debug)]
struct Segment {
    offset: u64,
    pieces: Vec<Piece>,
}

/// A part of a box of a region, which one array has.
#[derive(Debug)]
struct Piece {
    array: ElementArray,
    part: Box3,
    /// The box, as it lies in dense memory.
    whole: Box3,
    /// Where it begins there, in elements.
    at: u64,
}

impl Part {
    /// What a GPU does for `node` of so many. Which calls these are follows from what all members know, so
    /// that they fit.
    pub(super) fn new(
        exchange: &CollectiveExchange,
        (node, nodes): (NodeId, usize),
        gpu: Gpu,
    ) -> Self {
        let (calls, given, got) = (Vec::new(), Vec::new(), Vec::new());
        let elem_size = exchange.elem_size;
        let mut new = Self { gpu, elem_size, calls, given, got, dense_bytes: 0, dense: None };
        let is_whole = exchange.collective.members.are_all();
        match exchange.collective.pattern() {
            Pattern::AllGather if is_whole && gives_alike(exchange, nodes).is_some() => {
                new.all_gather(exchange, node, nodes);
            }
            Pattern::Broadcast if is_whole => new.broadcast(exchange, node),
            _ => new.messages(exchange, node, nodes),
        }
        new
    }

    /// Bytes of dense memory that it needs, if any.
    pub(super) fn dense_bytes(&self) -> Option<u64> {
        (self.dense_bytes > 0).then_some(self.dense_bytes)
    }

    /// Gives it that much.
    pub(super) fn give(&mut self, dense: u64) {
        self.dense = Some(dense);
    }

    /// The dense memory that it has been given.
    pub(super) fn dense(&self) -> Option<u64> {
        self.dense
    }

    /// The group of calls.
    pub(super) fn calls(&self) -> Vec<NcclCall> {
        self.calls.iter().map(|call| call.map(|address| self.resolve(address))).collect()
    }

    /// The copies to dense memory that come first.
    pub(super) fn packing(&self, max_pitch: u64) -> Vec<Transfer> {
        self.transfers(&self.given, max_pitch, |buffer, dense| (buffer, dense))
    }

    /// The copies from dense memory that come last.
    pub(super) fn unpacking(&self, max_pitch: u64) -> Vec<Transfer> {
        self.transfers(&self.got, max_pitch, |buffer, dense| (dense, buffer))
    }

    fn transfers(
        &self,
        segments: &[Segment],
        max_pitch: u64,
        direct: impl Fn(Array, Array) -> (Array, Array),
    ) -> Vec<Transfer> {
        let place = AddressSpace::Gpu(self.gpu);
        let mut all = Vec::new();
        for Segment { offset, pieces } in segments {
            let start = self.resolve(Address::Dense(*offset));
            for Piece { array, part, whole, at } in pieces {
                let buffer = Array { place, address: address_of(array), extent: array.extent };
                let dense = Array { place, address: start + at * self.elem_size, extent: *whole };
                let (source, target) = direct(buffer, dense);
                all.extend(transfer::plan(&source, &target, part, self.elem_size, max_pitch));
            }
        }
        all
    }

    fn resolve(&self, address: Address) -> u64 {
        match address {
            Address::Buffer(address) => address,
            Address::Dense(offset) => {
                self.dense.expect("what goes through dense memory has been given some") + offset
            }
        }
    }

    /// All nodes give as much. In place, if parts lie one after the other in the order of nodes.
    fn all_gather(&mut self, exchange: &CollectiveExchange, node: NodeId, nodes: usize) {
        let memory: Vec<_> = exchange.sources.iter().chain(&exchange.targets).cloned().collect();
        let parts: Vec<_> = (0..nodes as u64)
            .map(|rank| exchange.collective.provided_by(NodeId::from_index(rank)))
            .collect();
        let each = parts[0].volume() * self.elem_size;
        let places = parts.iter().map(|part| self.in_one_piece(&memory, part));
        let places: Vec<Option<u64>> = places.collect();
        let first = places[0].filter(|first| {
            let mut places = (0..).zip(&places);
            places.all(|(rank, place)| *place == Some(first + rank * each))
        });
        let base = match first {
            Some(first) => Address::Buffer(first),
            None => {
                let offset = self.reserve(each * nodes as u64);
                for (rank, part) in (0..).zip(&parts) {
                    let pieces = pieces_in(&memory, part);
                    let segment = Segment { offset: offset + rank * each, pieces };
                    let is_own = rank == node.index();
                    if is_own { &mut self.given } else { &mut self.got }.push(segment);
                }
                Address::Dense(offset)
            }
        };
        let own = base.behind(node.index() * each);
        self.calls.push(NcclCall::AllGather { own, all: base, bytes: each });
    }

    /// One node gives all others the same.
    fn broadcast(&mut self, exchange: &CollectiveExchange, node: NodeId) {
        let Ends::One(root) = exchange.collective.from else {
            unreachable!("a broadcast has a root")
        };
        let region = &exchange.collective.region;
        let address = match node == root {
            true => self.given_from(&exchange.sources, region),
            false => self.got_at(&exchange.targets, region),
        };
        let (bytes, root) = (region.volume() * self.elem_size, root.slot());
        self.calls.push(NcclCall::Broadcast { address, bytes, root });
    }

    /// A message for each member that gets something of this node, and from each that it gets something of.
    fn messages(&mut self, exchange: &CollectiveExchange, node: NodeId, nodes: usize) {
        let collective = &exchange.collective;
        for other in collective.members.iter(nodes).filter(|other| *other != node) {
            let (sent, received) =
                (collective.between(node, other), collective.between(other, node));
            if !sent.is_empty() {
                let address = self.given_from(&exchange.sources, &sent);
                let (bytes, to) = (sent.volume() * self.elem_size, other.slot());
                self.calls.push(NcclCall::Send { address, bytes, to });
            }
            if !received.is_empty() {
                let address = self.got_at(&exchange.targets, &received);
                let (bytes, from) = (received.volume() * self.elem_size, other.slot());
                self.calls.push(NcclCall::Receive { address, bytes, from });
            }
        }
    }

    fn given_from(&mut self, memory: &[MemoryPart], region: &Region) -> Address {
        self.place(memory, region, |part| &mut part.given)
    }

    fn got_at(&mut self, memory: &[MemoryPart], region: &Region) -> Address {
        self.place(memory, region, |part| &mut part.got)
    }

    /// Where a call finds a region: in the buffer, or in dense memory, by way of these segments.
    fn place(
        &mut self,
        memory: &[MemoryPart],
        region: &Region,
        segments: impl FnOnce(&mut Self) -> &mut Vec<Segment>,
    ) -> Address {
        if let Some(address) = self.in_one_piece(memory, region) {
            return Address::Buffer(address);
        }
        let offset = self.reserve(region.volume() * self.elem_size);
        segments(self).push(Segment { offset, pieces: pieces_in(memory, region) });
        Address::Dense(offset)
    }

    fn reserve(&mut self, bytes: u64) -> u64 {
        let offset = self.dense_bytes;
        self.dense_bytes += bytes.next_multiple_of(ALIGNMENT);
        offset
    }

    /// The first byte of a region, if all of it lies in one piece.
    fn in_one_piece(&self, memory: &[MemoryPart], region: &Region) -> Option<u64> {
        match &pieces_in(memory, region)[..] {
            [Piece { array, part, .. }]
                if region.boxes() == [*part] && is_contiguous(array, part) =>
            {
                let ([z, y, x], min) = (part.min(), array.extent.min());
                let [_, rows, columns] = array.extent.range();
                let element = ((z - min[0]) * rows + (y - min[1])) * columns + (x - min[2]);
                Some(address_of(array) + element * self.elem_size)
            }
            _ => None,
        }
    }
}

impl Address {
    /// So many bytes later.
    fn behind(self, bytes: u64) -> Self {
        match self {
            Self::Buffer(address) => Self::Buffer(address + bytes),
            Self::Dense(offset) => Self::Dense(offset + bytes),
        }
    }
}

/// How many elements each node gives, if all give as many.
fn gives_alike(exchange: &CollectiveExchange, nodes: usize) -> Option<u64> {
    let Ends::Each(parts) = &exchange.collective.from else { return None };
    let volume = parts.first()?.volume();
    let alike = parts.len() == nodes && parts.iter().all(|part| part.volume() == volume);
    (alike && volume > 0).then_some(volume)
}

/// The boxes of a region, with the arrays that have them.
fn pieces_in(memory: &[MemoryPart], region: &Region) -> Vec<Piece> {
    let (mut pieces, mut at) = (Vec::new(), 0);
    for whole in region.boxes() {
        let piece = |(array, part)| Piece { array, part, whole: *whole, at };
        pieces.extend(find_in(memory, whole).map(piece));
        at += whole.volume();
    }
    pieces
}

fn address_of(array: &ElementArray) -> u64 {
    array.base.as_ptr().expose_provenance() as u64
}

/// Whether elements of an array lie in one piece: behind the first dimension of more than one of them, all
/// are whole.
fn is_contiguous(array: &ElementArray, elements: &Box3) -> bool {
    let (part, all) = (elements.range(), array.extent.range());
    let first = (0..3).find(|&dim| part[dim] > 1).unwrap_or(2);
    (first + 1..3).all(|dim| part[dim] == all[dim])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use celerity_cdag::TransferId;
    use celerity_cpd::{Collective, Members};
    use celerity_executor::BasePtr;
    use celerity_idag::{DeviceId, MemoryId};
    use celerity_tdag::{BufferId, TaskId};

    use super::*;

    const N0: NodeId = NodeId::from_index(0);
    const N1: NodeId = NodeId::from_index(1);

    /// What `node` of three does on an array of elements of four bytes, all of which lies where it says.
    fn part(collective: Collective, node: NodeId, array: ElementArray) -> Part {
        let memory = |region: Region| {
            let part = MemoryPart { memory: array, region };
            if part.region.is_empty() { Box::default() } else { Box::from([part]) }
        };
        let (sources, targets) = (
            memory(collective.provided_by(node).into_owned()),
            memory(collective.arriving_at(node)),
        );
        let (consumer, buffer) = (TaskId::from_index(1), BufferId::from_index(0));
        let exchange = CollectiveExchange {
            transfer: TransferId { consumer, buffer },
            collective: Arc::new(collective),
            elem_size: 4,
            at: MemoryId::of_device(DeviceId::from_index(0)),
            sources,
            targets,
        };
        Part::new(&exchange, (node, 3), Gpu::from_slot(0))
    }

    /// An array at an address that nobody follows.
    fn array(extent: Box3) -> ElementArray {
        let base = BasePtr::of_raw(std::ptr::with_exposed_provenance_mut(0x1000)).unwrap();
        ElementArray { base, extent }
    }

    fn parts(extent: Box3, dim: usize, borders: [u64; 4]) -> Vec<Region> {
        let between = |ends: &[u64]| {
            let (mut min, mut max) = extent.corners();
            (min[dim], max[dim]) = (ends[0], ends[1]);
            Box3::new(min, max).into()
        };
        borders.windows(2).map(between).collect()
    }

    fn gathered(extent: Box3, dim: usize, borders: [u64; 4]) -> Collective {
        let from = Ends::Each(parts(extent, dim, borders).into());
        Collective { members: Members::all(), region: extent.into(), from, to: Ends::All }
    }

    #[test]
    fn what_all_give_alike_is_gathered_in_place_if_it_lies_so() {
        let extent = Box3::from_range([6, 4]);
        let bands = part(gathered(extent, 0, [0, 2, 4, 6]), N1, array(extent));
        let expected = NcclCall::AllGather { own: 0x1000 + 32, all: 0x1000, bytes: 32 };
        assert_eq!((bands.calls(), bands.dense_bytes()), (vec![expected], None));
        assert!(bands.packing(1 << 20).is_empty() && bands.unpacking(1 << 20).is_empty());

        // Columns do not: all of them go through dense memory, in which a node fills its own and finds others'.
        let extent = Box3::from_range([4, 6]);
        let mut columns = part(gathered(extent, 1, [0, 2, 4, 6]), N1, array(extent));
        assert_eq!(columns.dense_bytes(), Some(256));
        columns.give(0x9000);
        let expected = NcclCall::AllGather { own: 0x9000 + 32, all: 0x9000, bytes: 32 };
        assert_eq!(columns.calls(), [expected]);
        let [packed] = columns.packing(1 << 20)[..] else { panic!("one strided copy") };
        assert_eq!((packed.source.address, packed.target.address), (0x1000 + 8, 0x9000 + 32));
        assert_eq!((packed.row, packed.rows), (8, 4));
        let unpacked = columns.unpacking(1 << 20);
        let ends = unpacked.iter().map(|one| (one.source.address, one.target.address));
        assert_eq!(ends.collect::<Vec<_>>(), [(0x9000, 0x1000), (0x9000 + 64, 0x1000 + 16)]);
    }

    #[test]
    fn parts_that_differ_and_members_that_are_not_all_take_messages() {
        let extent = Box3::from_range([7, 4]);
        let uneven = part(gathered(extent, 0, [0, 2, 4, 7]), N0, array(extent));
        let send = |to| NcclCall::Send { address: 0x1000, bytes: 32, to };
        let receive =
            |from, row: u64, bytes| NcclCall::Receive { address: 0x1000 + 16 * row, bytes, from };
        assert_eq!(uneven.calls(), [send(1), receive(1, 2, 32), send(2), receive(2, 4, 48)]);

        let (members, to) = (Members::range(0, 2, 3), Ends::One(N0));
        let from = Ends::Each(parts(extent, 0, [0, 2, 7, 7])[..2].to_vec().into());
        let some = Collective { members, region: extent.into(), from, to };
        assert_eq!(part(some.clone(), N0, array(extent)).calls(), [receive(1, 2, 80)]);
        let send = NcclCall::Send { address: 0x1000 + 32, bytes: 80, to: 0 };
        assert_eq!(part(some, N1, array(extent)).calls(), [send]);
    }

    #[test]
    fn what_one_gives_all_is_a_broadcast() {
        let extent = Box3::from_range([5]);
        let region = Region::from(extent);
        let (members, from) = (Members::all(), Ends::One(N1));
        let one = Collective { members, region, from, to: Ends::All };
        for node in [N0, N1] {
            let expected = NcclCall::Broadcast { address: 0x1000, bytes: 20, root: 1 };
            assert_eq!(part(one.clone(), node, array(extent)).calls(), [expected]);
        }
    }
}
