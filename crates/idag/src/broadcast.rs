//! Pass: what several devices read alike is brought to all of them together (IJPP 2024, §3.3: a
//! *device broadcast*). Devices pass on to each other what they have: in each round, two halves of
//! them exchange all that they have got by then, so that *n* devices that have written a part each
//! need *n* · log₂ *n* copies instead of *n* · (*n* − 1), no memory is the source of all, and no
//! byte arrives anywhere twice. What no device has, such as what other nodes have sent, comes from
//! where it is: little of it to each device by itself, much of it in shares, one for each device,
//! which then go around like everything else.
//!
//! Owns who gets what from whom. How a copy is made is the business of `coherence`; devices that no
//! other reads alike with, and whatever is left, too.

use celerity_regions::{Box3, Region, split_along};
use smallvec::SmallVec;

use crate::buffer::BufferState;
use crate::coherence::copy_parts;
use crate::emitter::Emitter;
use crate::instruction::{InstructionId, MemoryId};
use crate::links::Links;
use crate::pieces::{Parts, join};
use crate::version::{MemorySet, Version};

/// A memory, and what is read there through an access.
pub(crate) type DeviceReader<'a> = (MemoryId, &'a Region);

/// Brings what linked devices read alike to all of them, where it is not there yet.
pub(crate) fn broadcast(
    emitter: &mut Emitter<'_>,
    buffer: &mut BufferState,
    links: &Links,
    readers: &[DeviceReader<'_>],
) {
    let mut seen = MemorySet::NONE;
    for (nth, &(memory, region)) in readers.iter().enumerate() {
        let Some(island) = links.island(memory).filter(|_| !seen.contains(memory)) else {
            continue;
        };
        let alike = readers[nth..].iter().filter(|(other, read)| {
            island.contains(*other) && !seen.contains(*other) && *read == region
        });
        let members: Members = alike.map(|(other, _)| *other).collect();
        seen = members.iter().fold(seen, |seen, member| seen.with(*member));
        // Two devices have nobody to pass anything on to.
        let are_enough = members.len() > 2 || members.len() == 2 && links.share_some();
        if are_enough && !region.is_empty() {
            Broadcast { emitter, buffer, links, members, parts: SmallVec::new() }.run(region);
        }
    }
}

/// Devices' memories, in the order of the devices.
type Members = SmallVec<[MemoryId; 8]>;

/// Members by their positions, a bit each.
type Positions = u64;

/// Who of the members has something, which instruction has brought it to this node, and to which
/// memory.
type Origin = (Positions, InstructionId, MemoryId);

/// What may travel in one copy: parts that are there at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lot {
    /// What one instruction has written, by its place among those whose results lie in the same
    /// memories: a chunk of a device that has several is on its way while the next one is computed.
    Written(u64),
    /// What one instruction has brought to this node.
    Shared(InstructionId),
}

/// Elements, and who has them.
#[derive(Debug)]
struct Part {
    elements: Box3,
    lot: Lot,
    has: Positions,
}

struct Broadcast<'a, 'b> {
    emitter: &'a mut Emitter<'b>,
    buffer: &'a mut BufferState,
    links: &'a Links,
    members: Members,
    /// What members have, and others lack.
    parts: SmallVec<[Part; 8]>,
}

impl Broadcast<'_, '_> {
    fn run(mut self, region: &Region) {
        let lacking = self.lacking(region);
        if lacking.is_empty() {
            return;
        }
        let (from_outside, held): (Parts<_>, Parts<_>) =
            lacking.into_iter().partition(|(_, (has, ..))| *has == 0);
        if self.members.len() == 2 && self.share_of(&from_outside).is_none() {
            return;
        }
        self.hold(&held);
        self.fetch_from_outside(&from_outside);
        self.spread(0, self.members.len());
        let members = self.members.iter();
        let all = members.fold(MemorySet::NONE, |all, member| all.with(*member));
        self.buffer.note_current(region, all);
    }

    /// What of `region` some members lack: who has it, who has written it, and where to.
    fn lacking(&self, region: &Region) -> Parts<Origin> {
        let everybody = (1 << self.members.len()) - 1;
        let mut lacking = Parts::new();
        self.buffer.versions.for_each_in_region(region, |part, version: &Version| {
            let members = self.members.iter().enumerate();
            let holders = members.filter(|(_, member)| version.holders.contains(**member));
            let has = holders.fold(0, |has, (position, _)| has | 1 << position);
            if has != everybody {
                lacking.push((part, (has, version.producer, version.origin)));
            }
        });
        join(&mut lacking);
        lacking
    }

    /// Notes what members have from the beginning: sorted by who, and then by producer.
    fn hold(&mut self, held: &[(Box3, Origin)]) {
        for same in held.chunk_by(|(_, a), (_, b)| a.0 == b.0) {
            for (nth, of_one) in (0..).zip(same.chunk_by(|(_, a), (_, b)| a.1 == b.1)) {
                let lot = Lot::Written(nth);
                let parts = of_one.iter().map(|&(elements, (has, ..))| Part { elements, lot, has });
                self.parts.extend(parts);
            }
        }
    }

    /// Bytes of a member's share of what no member has; `None` if each gets all of it.
    fn share_of(&self, parts: &[(Box3, Origin)]) -> Option<u64> {
        let elements =
            parts.iter().fold(0, |sum: u64, (part, _)| sum.saturating_add(part.volume()));
        let bytes = elements.saturating_mul(self.buffer.elem_size);
        self.links.share(bytes, self.members.len())
    }

    /// Brings what no member has to all of them, or a share of it to each.
    fn fetch_from_outside(&mut self, parts: &[(Box3, Origin)]) {
        match self.share_of(parts) {
            Some(share) => self.fetch_shares(parts, share),
            None => self.fetch_everywhere(parts),
        }
    }

    /// Brings all parts to each member, in as few copies as possible.
    fn fetch_everywhere(&mut self, parts: &[(Box3, Origin)]) {
        for &member in &self.members {
            let source = |origin| self.links.source(origin, member);
            let parts = parts.iter().map(|&(part, (.., origin))| (part, source(origin)));
            let mut parts: Parts<MemoryId> = parts.collect();
            join(&mut parts);
            let parts = (&parts, |source| source);
            copy_parts(self.emitter, self.buffer, self.links, member, parts);
        }
    }

    /// Brings each member about `share` bytes of the parts: to whom has least, piece by piece.
    fn fetch_shares(&mut self, parts: &[(Box3, Origin)], share: u64) {
        let elem_size = self.buffer.elem_size;
        let mut loads: SmallVec<[u64; 8]> = self.members.iter().map(|_| 0).collect();
        let mut shares: SmallVec<[Parts<(MemoryId, InstructionId)>; 8]> =
            self.members.iter().map(|_| Parts::new()).collect();
        for &(part, (_, producer, origin)) in parts {
            let bytes = part.volume().saturating_mul(elem_size);
            for elements in evenly(&part, bytes.div_ceil(share)) {
                let least = loads.iter().enumerate().min_by_key(|(_, load)| **load);
                let (position, _) = least.expect("there are members");
                loads[position] += elements.volume();
                let source = self.links.source(origin, self.members[position]);
                shares[position].push((elements, (source, producer)));
                let lot = Lot::Shared(producer);
                self.parts.push(Part { elements, lot, has: 1 << position });
            }
        }
        for (member, share) in self.members.iter().zip(&shares) {
            let share = (share, |(source, _)| source);
            copy_parts(self.emitter, self.buffer, self.links, *member, share);
        }
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::LastShareForgotten.is_active() {
            self.parts.pop();
        }
    }

    /// Lets all members from `first` to `end` have what any of them has: each half by itself, and
    /// then each member from one of the other half.
    fn spread(&mut self, first: usize, end: usize) {
        if end - first < 2 {
            return;
        }
        let middle = first + (end - first) / 2;
        self.spread(first, middle);
        self.spread(middle, end);
        for to in first..middle {
            self.pass(middle + (to - first) % (end - middle), to);
        }
        for to in middle..end {
            self.pass(first + (to - middle) % (middle - first), to);
        }
    }

    /// Copies what one member has and another lacks.
    fn pass(&mut self, from: usize, to: usize) {
        let passes = |part: &Part| {
            #[cfg(feature = "mutants")]
            if celerity_mutants::Mutant::PassedOnTooEarly.is_active() {
                return part.has >> to & 1 == 0;
            }
            part.has >> from & 1 == 1 && part.has >> to & 1 == 0
        };
        let passed = self.parts.iter_mut().filter(|part| passes(part));
        let mut passed: Parts<Lot> = passed
            .map(|part| {
                part.has |= 1 << to;
                (part.elements, part.lot)
            })
            .collect();
        join(&mut passed);
        let (from, to) = (self.members[from], self.members[to]);
        copy_parts(self.emitter, self.buffer, self.links, to, (&passed, |_| from));
    }
}

/// Cuts a box along its slowest dimension into at most so many parts of nearly equal size.
fn evenly(part: &Box3, count: u64) -> Vec<Box3> {
    let slowest = part.range().iter().position(|&elements| elements > 1).unwrap_or(0);
    split_along(part, slowest, [1; 3], usize::try_from(count).unwrap_or(usize::MAX).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_cut_where_they_are_longest_apart() {
        let face = Box3::from_range([1, 8, 4]);
        let halves = [Box3::from_range([1, 4, 4]), Box3::from_offset_range([0, 4, 0], [1, 4, 4])];
        assert_eq!(evenly(&face, 2), halves);
        assert_eq!(evenly(&Box3::from_range([1]), 3), [Box3::from_range([1])]);
        assert_eq!(evenly(&Box3::from_range([3]), 9).len(), 3);
    }
}
