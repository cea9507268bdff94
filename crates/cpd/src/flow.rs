//! What discovery knows of one buffer: which tasks have written what is in it, and for whom it has
//! been forwarded since. Knows neither the buffer nor what becomes of forwards.

use std::sync::Arc;

use celerity_regions::{Box3, Region};
use celerity_tdag::{
    BufferAccess, BufferId, Forward, ForwardEnd, Mapper, MapperInput, NewForward, Task, TaskId,
    TaskSpec, Work,
};
use smallvec::SmallVec;

use crate::assign::Chunks;
use crate::cost::Movement;
use crate::members::Members;
use crate::node::NodeId;
use crate::pattern::Pattern;
use crate::spread::{Cut, Spread, read, same_geometry, same_mapper, same_mappers, written};

/// The producers of what is in a buffer. What more of them have written is not forwarded: it is
/// many small pieces.
#[derive(Debug)]
pub(crate) struct Flow {
    extent: Box3,
    /// Bytes of each element.
    elem_size: u64,
    /// In order of their last writes, at most [`MOST_PRODUCERS`]. What they have left is disjoint.
    producers: Vec<Producer>,
}

const MOST_PRODUCERS: usize = 16;

/// A task, as far as what it wrote has not been overwritten.
#[derive(Debug)]
struct Producer {
    /// Nothing until it is in the graph.
    task: Option<Arc<Task>>,
    left: Region,
    reached: Vec<Reached>,
}

/// Who has some of a producer's elements already: they were read there, however they came.
#[derive(Debug)]
struct Reached {
    whom: Whom,
    region: Region,
}

/// More than programs have ways to read one thing. If there are more, the oldest are forgotten, and
/// forwarded to once more.
const MOST_REACHED: usize = 8;

#[derive(Clone, Debug)]
enum Whom {
    /// All nodes, or as good as all: nobody is looked at again.
    All,
    /// So many of the first nodes.
    First(usize),
    One(NodeId),
    /// Those that tasks of this geometry run on, through these mappers.
    Parts(Box<Readers>),
}

#[derive(Clone, Debug)]
struct Readers {
    work: Work,
    mappers: Vec<Mapper>,
    /// The first nodes, so many, run it.
    nodes: usize,
}

/// What a task that is about to enter the graph reads of one buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    pub(crate) spec: &'a TaskSpec,
    pub(crate) buffer: BufferId,
    /// All that it reads.
    pub(crate) region: &'a Region,
    pub(crate) nodes: usize,
}

impl<'a> Reader<'a> {
    fn accesses(&self) -> impl Iterator<Item = &'a BufferAccess> + Clone + use<'a> {
        let buffer = self.buffer;
        let of_buffer = self.spec.buffer_accesses();
        of_buffer.filter(move |access| access.buffer == buffer && access.mode.reads())
    }
}

#[inline]
fn only<'a>(mut accesses: impl Iterator<Item = &'a BufferAccess>) -> Option<&'a BufferAccess> {
    let first = accesses.next()?;
    accesses.next().is_none().then_some(first)
}

/// Whether each chunk reads what its neighbours have: cheap, and true of stencils.
#[inline]
pub(crate) fn is_near(work: &Work, access: &BufferAccess) -> bool {
    match (&access.mapper, work.space()) {
        (Mapper::Neighborhood { border, .. } | Mapper::Periodic { border, .. }, Some(space)) => {
            (0..3).any(|dim| border[dim] > 0 && space.is_cut_along(dim))
        }
        _ => false,
    }
}

impl Flow {
    pub(crate) fn new(extent: Box3, elem_size: u64) -> Self {
        Self { extent, elem_size, producers: Vec::new() }
    }

    /// Whether work that has this access reads on each node what was written there.
    #[inline]
    pub(crate) fn stays(&self, work: &Work, access: &BufferAccess) -> bool {
        self.producers.iter().all(|producer| producer.is_written_by(work, access))
    }

    /// A task that is in the graph next overwrites some elements; whether it may be the producer
    /// of forwards. O(producers), O(1) if it overwrites what one of them has left.
    #[inline]
    pub(crate) fn overwrite(&mut self, region: &Region, is_producer: bool) {
        let mut known = self.producers.iter_mut();
        match known.find(|known| is_producer && known.left == *region) {
            Some(known) => {
                known.task = None;
                // Hardly ever: that is looked at first.
                if !known.reached.is_empty() {
                    known.reached.clear();
                }
            }
            None => self.overwrite_parts(region, is_producer),
        }
    }

    #[inline(never)]
    fn overwrite_parts(&mut self, region: &Region, is_producer: bool) {
        for producer in &mut self.producers {
            if producer.left.intersects(region) {
                producer.left.subtract(region);
            }
        }
        self.producers.retain(|producer| !producer.left.is_empty());
        if is_producer && !region.is_empty() {
            if self.producers.len() == MOST_PRODUCERS {
                self.producers.remove(0);
            }
            let (left, reached) = (region.clone(), Vec::new());
            self.producers.push(Producer { task: None, left, reached });
        }
    }

    /// The task that has last overwritten elements is in the graph.
    #[inline]
    pub(crate) fn committed(&mut self, task: &Arc<Task>) {
        let new = self.producers.iter_mut().filter(|producer| producer.task.is_none());
        new.for_each(|producer| producer.task = Some(task.clone()));
    }

    /// The forwards that [`Collectives::Auto`](crate::Collectives::Auto) inserts in front of a
    /// reader, of those movements from producers that are worth it.
    pub(crate) fn ahead_of(
        &mut self,
        reader: &Reader<'_>,
        mut is_worth: impl FnMut(TaskId, Movement, Members) -> bool,
        found: &mut Vec<NewForward>,
    ) {
        let accesses = reader.accesses();
        let Some((spread, cut)) = read(&reader.spec.work, accesses, reader.nodes) else { return };
        let wanted = match (spread, cut) {
            (Spread::All | Spread::First(_), Some(cut)) => self.constant_part(reader, cut),
            _ => reader.region.clone(),
        };
        let (whom, extent) = (Whom::of(spread, reader), self.extent);
        for producer in &mut self.producers {
            let Some(written) = producer.may_fit(spread, cut, reader, &extent) else { continue };
            let mut part = producer.left.intersection(&wanted);
            if !producer.may_be_among((written, spread), reader.nodes, &part) {
                continue;
            }
            let had = producer.reached.iter().filter(|reached| reached.whom.has(&whom));
            had.for_each(|reached| part.subtract(&reached.region));
            if part.is_empty() {
                continue;
            }
            producer.reach(&whom, &part);
            let bytes = part.volume().saturating_mul(self.elem_size);
            let movement = producer.movement((written, spread), reader, bytes);
            if movement.is_none_or(|(id, movement, members)| is_worth(id, movement, members)) {
                found.extend(producer.forward(reader, part, &extent));
            }
        }
    }

    /// What all chunks read. A user's mapper is not asked: all that the task reads, if it has one.
    fn constant_part(&self, reader: &Reader<'_>, cut: Cut) -> Region {
        let is_constant = |access: &&BufferAccess| cut.is_constant(&access.mapper);
        let mut others = reader.accesses().filter(|access| !is_constant(access));
        if others.next().is_none() || reader.accesses().any(BufferAccess::is_on_trust) {
            return reader.region.clone();
        }
        let constant = reader.accesses().filter(is_constant);
        constant.fold(Region::empty(), |mut all, access| {
            all.union_with(&image(access, &reader.spec.work, &self.extent));
            all
        })
    }

    /// The forwards of IJPP 2024, Algorithm 1. A region that a task reads elsewhere is forwarded
    /// then and there, and by its line "F ← F ∖ R" never again until it is overwritten.
    pub(crate) fn of_algorithm_1(&mut self, reader: &Reader<'_>, found: &mut Vec<NewForward>) {
        for producer in &mut self.producers {
            let mut part = producer.left.intersection(reader.region);
            producer.reached.iter().for_each(|reached| part.subtract(&reached.region));
            if part.is_empty() || producer.is_alike(reader, &self.extent, Some(&part)) {
                continue;
            }
            producer.reach(&Whom::All, &part);
            found.extend(producer.forward(reader, part, &self.extent));
        }
    }
}

impl Producer {
    /// Whether work reads what it has written: the same as [`is_alike`](Self::is_alike) says, where
    /// both ends have one access.
    #[inline]
    fn is_written_by(&self, work: &Work, access: &BufferAccess) -> bool {
        let Some(task) = &self.task else { return false };
        only(self.accesses(access.buffer)).is_some_and(|one| {
            same_mapper(&one.mapper, &access.mapper) && same_geometry(&task.work, work)
        })
    }

    fn accesses<'a>(
        &'a self,
        buffer: BufferId,
    ) -> impl Iterator<Item = &'a BufferAccess> + Clone + use<'a> {
        let all = self.task.iter().flat_map(|task| task.buffer_accesses());
        all.filter(move |access| access.buffer == buffer && access.mode.writes())
    }

    /// Whether every node reads what it has written (IJPP 2024, Algorithm 1, "communication-free"),
    /// of `part` or of everything.
    fn is_alike(&self, reader: &Reader<'_>, extent: &Box3, part: Option<&Region>) -> bool {
        let Some(task) = &self.task else { return false };
        if !same_geometry(&task.work, &reader.spec.work) {
            return false;
        }
        let (written, read) = (self.accesses(reader.buffer), reader.accesses());
        match part {
            None => same_mappers(written, read),
            Some(part) => {
                let written = touching(written, &task.work, part, extent);
                let read = touching(read, &reader.spec.work, part, extent);
                let is_in = |set: &[&BufferAccess], one: &BufferAccess| {
                    set.iter().any(|other| same_mapper(&one.mapper, &other.mapper))
                };
                written.iter().all(|one| is_in(&read, one))
                    && read.iter().all(|one| is_in(&written, one))
            }
        }
    }

    /// Where elements are that a collective may move from here to a reader, on so many nodes;
    /// nothing if none may.
    fn may_fit(
        &self,
        after: Spread,
        cut: Option<Cut>,
        reader: &Reader<'_>,
        extent: &Box3,
    ) -> Option<Spread> {
        let before = written(&self.task.as_ref()?.work, reader.nodes)?;
        let fits = match (before, after) {
            (Spread::All | Spread::First(_), _) | (Spread::One(_), Spread::One(_)) => false,
            (Spread::Parts, Spread::Parts) => self.may_be_transposed(cut, reader, extent),
            _ => true,
        };
        fits.then_some(before)
    }

    /// Whether all who provide some of `part` may be among the nodes that read all of it: for certain
    /// not, if it is all of what more nodes have written.
    fn may_be_among(&self, (before, after): (Spread, Spread), nodes: usize, part: &Region) -> bool {
        match (&self.task, before, after) {
            (Some(task), Spread::Parts, Spread::First(readers)) => {
                Chunks::of(&task.work, nodes).len() <= readers || *part != self.left
            }
            _ => true,
        }
    }

    /// What moving so many bytes from here to a reader amounts to, and among whom, as far as that is
    /// known before chunks are looked at.
    fn movement(
        &self,
        (before, after): (Spread, Spread),
        reader: &Reader<'_>,
        bytes: u64,
    ) -> Option<(TaskId, Movement, Members)> {
        let (task, cluster) = (self.task.as_ref()?, reader.nodes);
        let pattern = match (before, after) {
            (Spread::Parts, Spread::All | Spread::First(_)) => Pattern::AllGather,
            (Spread::Parts, Spread::One(_)) => Pattern::Gather,
            (Spread::Parts, Spread::Parts) => Pattern::AllToAll,
            (Spread::One(_), Spread::All | Spread::First(_)) => Pattern::Broadcast,
            (Spread::One(_), Spread::Parts) => Pattern::Scatter,
            (Spread::All | Spread::First(_), _) | (Spread::One(_), Spread::One(_)) => return None,
        };
        let on = |spread, work: &Work| match spread {
            Spread::All => Members::all(),
            Spread::First(count) => Members::range(0, count, cluster),
            Spread::One(node) => Members::range(node.slot(), node.slot() + 1, cluster),
            Spread::Parts => Members::range(0, Chunks::of(work, cluster).len(), cluster),
        };
        let (from, to) = (on(before, &task.work), on(after, &reader.spec.work));
        let members = match pattern {
            // Who provides is among them, or it is no operation.
            Pattern::AllGather => to.clone(),
            _ => from.union(&to, cluster),
        };
        let [nodes, from, to] = [&members, &from, &to].map(|some| some.count(cluster));
        let from = from.min(nodes);
        Some((task.id, Movement { pattern, nodes, from, to, bytes }, members))
    }

    fn may_be_transposed(&self, cut: Option<Cut>, reader: &Reader<'_>, extent: &Box3) -> bool {
        let (mut written, mut read) = (self.accesses(reader.buffer), reader.accesses());
        let (Some(writes), None, Some(reads), None) =
            (written.next(), written.next(), read.next(), read.next())
        else {
            return false;
        };
        let space = self.task.as_ref().and_then(|task| task.work.space());
        let (Some(space), Some(cut)) = (space, cut) else { return false };
        let before = Cut::of(&space.split(&space.extent, reader.nodes), space);
        match (writes.is_on_trust(), reads.is_on_trust()) {
            (false, false) => match (before.across(&writes.mapper), cut.across(&reads.mapper)) {
                (Some(one), Some(other)) => one != other,
                _ => false,
            },
            // Chunks will tell.
            _ => !self.is_alike(reader, extent, None),
        }
    }

    fn reach(&mut self, whom: &Whom, region: &Region) {
        let same = |known: &Whom| known.has(whom) && whom.has(known);
        match self.reached.iter_mut().find(|reached| same(&reached.whom)) {
            Some(known) => known.region.union_with(region),
            None => {
                if self.reached.len() == MOST_REACHED {
                    self.reached.remove(0);
                }
                self.reached.push(Reached { whom: whom.clone(), region: region.clone() });
            }
        }
    }

    fn forward(&self, reader: &Reader<'_>, region: Region, extent: &Box3) -> Option<NewForward> {
        let (task, spec) = (self.task.as_ref()?, reader.spec);
        let end = |id, work: &Work, accesses: SmallVec<[&BufferAccess; 2]>| ForwardEnd {
            task: id,
            work: *work,
            accesses: accesses.into_iter().cloned().collect(),
        };
        let written = touching(self.accesses(reader.buffer), &task.work, &region, extent);
        let read = touching(reader.accesses(), &spec.work, &region, extent);
        let producer = end(task.id, &task.work, written);
        // The graph knows which task it will be.
        let consumer = end(task.id.next(), &spec.work, read);
        let (name, location) = (spec.name.clone(), spec.location.clone());
        let (buffer, forward) = (reader.buffer, Forward { producer, consumer });
        Some(NewForward { buffer, region, forward, name, location })
    }
}

impl Whom {
    fn of(spread: Spread, reader: &Reader<'_>) -> Self {
        match spread {
            Spread::All => Self::All,
            Spread::First(count) => Self::First(count),
            Spread::One(node) => Self::One(node),
            Spread::Parts => {
                let mappers = reader.accesses().map(|access| access.mapper.clone()).collect();
                let work = reader.spec.work;
                let nodes = Chunks::of(&work, reader.nodes).len();
                Self::Parts(Box::new(Readers { work, mappers, nodes }))
            }
        }
    }

    /// Whether they have what others need.
    fn has(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::One(node), Self::One(other)) => node == other,
            (Self::First(count), Self::First(other)) => other <= count,
            (Self::First(count), Self::One(node)) => node.slot() < *count,
            (Self::First(count), Self::Parts(readers)) => readers.nodes <= *count,
            (Self::Parts(one), Self::Parts(other)) => {
                same_geometry(&one.work, &other.work)
                    && one.mappers.len() == other.mappers.len()
                    && one
                        .mappers
                        .iter()
                        .zip(&other.mappers)
                        .all(|(one, other)| same_mapper(one, other))
            }
            _ => false,
        }
    }
}

/// What a task touches through one access.
fn image(access: &BufferAccess, work: &Work, extent: &Box3) -> Region {
    let all = work.extent();
    access.mapper.map(&MapperInput { chunk: all, global: all, buffer: *extent })
}

/// Those of a task's accesses that touch any of `part`. A user's mapper is not asked: it may.
fn touching<'a>(
    accesses: impl Iterator<Item = &'a BufferAccess>,
    work: &Work,
    part: &Region,
    extent: &Box3,
) -> SmallVec<[&'a BufferAccess; 2]> {
    let mut found: SmallVec<[&BufferAccess; 2]> = accesses.collect();
    if found.len() > 1 {
        found.retain(|one| one.is_on_trust() || image(one, work, extent).intersects(part));
    }
    found
}
