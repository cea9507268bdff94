//! Which elements of a region each node has, before an operation or afterwards: O(nodes) data that
//! is made once for each shape and shared. Knows one end of a forward, not what comes of it.

use std::sync::Arc;

use celerity_regions::{Box3, Region};
use celerity_tdag::{BufferAccess, Mapper, MapperInput, Work};

use crate::assign::Chunks;
use crate::members::Members;
use crate::node::NodeId;
use crate::spread::same_mapper;

/// One end of a forward on so many nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End<'a> {
    pub(crate) work: &'a Work,
    pub(crate) accesses: &'a [BufferAccess],
    /// The elements in question.
    pub(crate) region: &'a Region,
    /// Extent of the buffer.
    pub(crate) buffer: Box3,
    pub(crate) nodes: usize,
}

impl End<'_> {
    pub(crate) fn chunks(&self) -> Chunks {
        Chunks::of(self.work, self.nodes)
    }

    /// What a chunk touches of the buffer through one access.
    pub(crate) fn image(&self, access: &BufferAccess, chunk: Box3) -> Region {
        let global = self.work.extent();
        access.mapper.map(&MapperInput { chunk, global, buffer: self.buffer })
    }

    /// Whether the task touches all elements in question through some of its accesses.
    pub(crate) fn covers(&self, some: impl Fn(&Mapper) -> bool) -> bool {
        let some = self.accesses.iter().filter(|access| some(&access.mapper));
        let mut left = self.region.clone();
        some.for_each(|access| left.subtract(&self.image(access, self.work.extent())));
        left.is_empty()
    }

    /// What a chunk touches of the elements in question.
    fn part(&self, chunk: Box3) -> Region {
        let mut images = self.accesses.iter().map(|access| self.image(access, chunk));
        let Some(mut all) = images.next() else { return Region::empty() };
        images.for_each(|image| all.union_with(&image));
        all.intersection(self.region)
    }
}

/// A partition of a region among the nodes.
#[derive(Clone, Debug)]
pub(crate) struct RegionPartition {
    /// One for each node, in order; may be empty.
    pub(crate) each: Arc<[Region]>,
    /// The node that has everything, if one does.
    pub(crate) only: Option<NodeId>,
    /// The nodes whose part is not empty.
    pub(crate) filled: Members,
    /// The dimension that parts differ along, if they are boxes that differ along one alone.
    pub(crate) along: Option<usize>,
}

impl RegionPartition {
    /// Nothing, if parts overlap or do not make up the region. O(nodes) evaluations of mappers.
    fn of(end: &End<'_>) -> Option<Self> {
        let chunks = end.chunks();
        let each: Arc<[Region]> = (0..end.nodes).map(|node| end.part(chunks.get(node))).collect();
        let volume = each.iter().fold(0_u64, |sum, part| sum.saturating_add(part.volume()));
        let boxes = each.iter().flat_map(|part| part.boxes().iter().copied());
        if volume != end.region.volume() || Region::from_boxes(boxes) != *end.region {
            return None;
        }
        let filled = (0..).zip(&*each).filter(|(_, part)| !part.is_empty());
        let filled: Vec<NodeId> = filled.map(|(node, _)| NodeId::from_index(node)).collect();
        let only = if let [only] = filled[..] { Some(only) } else { None };
        let (filled, along) = (Members::of(filled, end.nodes), varying(&each));
        Some(Self { each, only, filled, along })
    }
}

/// The one dimension that boxes differ along.
fn varying(parts: &[Region]) -> Option<usize> {
    let mut parts = parts.iter().filter(|part| !part.is_empty());
    let (first_min, first_max) = parts.next()?.as_box()?.corners();
    let mut differs = [false; 3];
    for part in parts {
        let (min, max) = part.as_box()?.corners();
        for dim in 0..3 {
            differs[dim] |= (min[dim], max[dim]) != (first_min[dim], first_max[dim]);
        }
    }
    match differs {
        [true, false, false] => Some(0),
        [false, true, false] => Some(1),
        [false, false, true] => Some(2),
        _ => None,
    }
}

/// The parts of the operations of late, so that those of one shape share theirs: a program that
/// repeats its steps makes them once. Of up to 16 shapes, O(nodes) memory each.
#[derive(Debug, Default)]
pub struct PartsCache {
    /// The one that was used last comes first.
    recent: Vec<(Shape, Option<RegionPartition>)>,
    /// Of parts of all nodes, those of some, by both; the same order.
    narrowed: Vec<Narrowed>,
}

#[derive(Debug)]
struct Narrowed {
    /// Of all nodes.
    each: Arc<[Region]>,
    members: Members,
    /// Of the members.
    theirs: Arc<[Region]>,
}

const MOST: usize = 16;

/// What parts follow from.
#[derive(Clone, Debug)]
struct Shape {
    work: Work,
    mappers: Box<[Mapper]>,
    region: Region,
    buffer: Box3,
    nodes: usize,
}

impl Shape {
    fn of(end: &End<'_>) -> Self {
        Self {
            work: *end.work,
            mappers: end.accesses.iter().map(|access| access.mapper.clone()).collect(),
            region: end.region.clone(),
            buffer: end.buffer,
            nodes: end.nodes,
        }
    }

    fn is_of(&self, end: &End<'_>) -> bool {
        self.nodes == end.nodes
            && self.work == *end.work
            && self.buffer == end.buffer
            && self.region == *end.region
            && self.mappers.len() == end.accesses.len()
            && end
                .accesses
                .iter()
                .zip(&self.mappers)
                .all(|(one, other)| same_mapper(&one.mapper, other))
    }
}

impl PartsCache {
    /// The parts of one end; nothing if they overlap or do not make up the region.
    pub(crate) fn parts(&mut self, end: &End<'_>) -> Option<RegionPartition> {
        match self.recent.iter().position(|(shape, _)| shape.is_of(end)) {
            Some(at) => self.recent[..=at].rotate_right(1),
            None => {
                self.recent.truncate(MOST - 1);
                self.recent.insert(0, (Shape::of(end), RegionPartition::of(end)));
            }
        }
        self.recent[0].1.clone()
    }

    /// Those of parts of all nodes that are the members', who have all that is not empty.
    pub(crate) fn narrowed(&mut self, each: &Arc<[Region]>, members: &Members) -> Arc<[Region]> {
        if members.are_all() {
            return each.clone();
        }
        let is_it = |one: &Narrowed| Arc::ptr_eq(&one.each, each) && one.members == *members;
        match self.narrowed.iter().position(is_it) {
            Some(at) => self.narrowed[..=at].rotate_right(1),
            None => {
                let theirs = members.iter(each.len()).map(|node| each[node.slot()].clone());
                let theirs = theirs.collect();
                let (each, members) = (each.clone(), members.clone());
                self.narrowed.truncate(MOST - 1);
                self.narrowed.insert(0, Narrowed { each, members, theirs });
            }
        }
        self.narrowed[0].theirs.clone()
    }
}
