//! Tests a mapper against the laws of [`Mapper`]: chunks are drawn at random, and the smallest one
//! that breaks a law is looked for. Knows no task.

use std::panic::{AssertUnwindSafe, catch_unwind};

use celerity_regions::{Box3, Region};

use super::relation::interval;
use super::user::discard;
use super::{Mapper, MapperFlaw, MapperInput, MapperPanic};

/// How a mapper breaks a law. The chunks that it names are as small as could be found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MapperViolation {
    /// It does not fit the index space or the buffer.
    #[error("the mapper {mapper}, {flaw}")]
    Unfit {
        /// The range mapper as text: `slice(1)`, say.
        mapper: String,
        /// What is wrong with it.
        flaw: MapperFlaw,
    },
    /// The function of the mapper panics.
    #[error("the mapper {mapper} panics when it is asked for chunk {chunk} of {global}{said}")]
    Panics {
        /// The range mapper as text: `slice(1)`, say.
        mapper: String,
        /// What it is asked for.
        chunk: Box3,
        /// The whole index space.
        global: Box3,
        /// The message, after a colon.
        said: String,
    },
    /// Its answers to one question differ.
    #[error(
        "the mapper {mapper} answers the same question differently: chunk {chunk} maps to {first}, \
         and then to {second}; let it depend on nothing but its arguments"
    )]
    ChangesItsMind {
        /// The range mapper as text: `slice(1)`, say.
        mapper: String,
        /// What it is asked for.
        chunk: Box3,
        /// The elements that it answered first.
        first: Region,
        /// The elements that it answered when asked again.
        second: Region,
    },
    /// It leaves the buffer.
    #[error(
        "the mapper {mapper} leaves the buffer: chunk {chunk} maps to {image}, and the buffer is \
         {buffer}; clamp it"
    )]
    OutOfBounds {
        /// The range mapper as text: `slice(1)`, say.
        mapper: String,
        /// What it is asked for.
        chunk: Box3,
        /// The elements that the chunk maps to.
        image: Region,
        /// All elements of the buffer.
        buffer: Box3,
    },
    /// A chunk does not touch what its parts touch.
    #[error(
        "the mapper {mapper} is not additive: chunk {chunk} maps to {image}, but its parts {} and \
         {} map to {together} together; r(A ∪ B) = r(A) ∪ r(B) must hold, however a chunk is cut",
        parts[0],
        parts[1]
    )]
    NotAdditive {
        /// The range mapper as text: `slice(1)`, say.
        mapper: String,
        /// What it is asked for.
        chunk: Box3,
        /// The chunk, cut in two.
        parts: [Box3; 2],
        /// Where the chunk maps to.
        image: Region,
        /// Where its parts map to.
        together: Region,
    },
    /// It says that it keeps chunks apart, and does not.
    #[error(
        "the mapper {mapper} is said to keep chunks apart, but {} and {} both map to {shared}: \
         nobody may write through it",
        parts[0],
        parts[1]
    )]
    NotDisjoint {
        /// The range mapper as text: `slice(1)`, say.
        mapper: String,
        /// Two chunks without a common item.
        parts: [Box3; 2],
        /// The elements that both chunks map to.
        shared: Region,
    },
    /// It says that all chunks touch the same, and they do not.
    #[error(
        "the mapper {mapper} is said to be constant, but the whole index space maps to {of_all}, and \
         chunk {chunk} to {image}"
    )]
    NotConstant {
        /// The range mapper as text: `slice(1)`, say.
        mapper: String,
        /// What it is asked for.
        chunk: Box3,
        /// The elements that the chunk maps to.
        image: Region,
        /// The answer for the whole index space.
        of_all: Region,
    },
    /// What it says of a dimension is not so.
    #[error(
        "the mapper {mapper} says of dimension {dim} of the buffer that it is {relation}, but item \
         {item} maps to {image}"
    )]
    OutsideRelation {
        /// The range mapper as text: `slice(1)`, say.
        mapper: String,
        /// The dimension of the buffer.
        dim: usize,
        /// What the mapper says of that dimension, in words.
        relation: String,
        /// An item of the index space for which that is not so.
        item: Box3,
        /// Where it maps to.
        image: Region,
    },
}

/// Looks for a chunk of `global`, an index space of `dims.0` dimensions, on which a mapper to
/// `buffer`, of `dims.1` dimensions, breaks a law: among the halves and the ends of the space, and
/// `cases` chunks at random, the same ones every time. Asks the mapper about five times a chunk.
///
/// # Errors
/// See [`MapperViolation`].
///
/// ```
/// use celerity_regions::{Box3, Region};
/// use celerity_tdag::{Mapper, MapperInput, MapperViolation, UserMapper, verify_mapper};
/// let space = Box3::from_range([16]);
/// assert_eq!(verify_mapper(&Mapper::neighborhood([2]), (1, space), (1, space), 100), Ok(()));
/// // Leaves out chunks of one item.
/// let gap = |input: &MapperInput| match input.chunk.volume() {
///     1 => Region::empty(),
///     _ => Region::from(input.chunk),
/// };
/// let found = verify_mapper(&Mapper::User(UserMapper::new(gap)), (1, space), (1, space), 100);
/// let MapperViolation::NotAdditive { chunk, .. } = *found.unwrap_err() else { panic!("another law") };
/// assert_eq!(chunk.volume(), 2);
/// ```
pub fn verify_mapper(
    mapper: &Mapper,
    (dims, global): (u8, Box3),
    (buffer_dims, buffer): (u8, Box3),
    cases: u32,
) -> Result<(), Box<MapperViolation>> {
    if let Some(flaw) = mapper.flaw((dims, &global), (buffer_dims, &buffer)) {
        let mapper = name_of(mapper);
        return Err(Box::new(MapperViolation::Unfit { mapper, flaw }));
    }
    if global.is_empty() {
        return Ok(());
    }
    let trial = Trial { mapper, global, buffer };
    let mut random = Random(0x5eed);
    let drawn = (0..cases).map(|_| Cut::drawn(&global, &mut random)).collect::<Vec<_>>();
    let mut cuts = Cut::plain(&global).into_iter().chain(drawn);
    match cuts.find_map(|cut| trial.violation(&cut).map(|violation| (cut, violation))) {
        None => Ok(()),
        Some((cut, violation)) => Err(trial.smallest(cut, violation)),
    }
}

/// A chunk, and where it is cut in two along a dimension: the second part is empty if it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    chunk: Box3,
    dim: usize,
    at: u64,
}

/// What a mapper is asked, and what about.
struct Trial<'a> {
    mapper: &'a Mapper,
    global: Box3,
    buffer: Box3,
}

/// Steps of the search for a smaller chunk.
const STEPS: usize = 2000;

impl Trial<'_> {
    /// The first law that does not hold of a chunk and its parts.
    fn violation(&self, cut: &Cut) -> Option<Box<MapperViolation>> {
        self.first_violation(cut).err()
    }

    fn first_violation(&self, cut: &Cut) -> Result<(), Box<MapperViolation>> {
        let (chunk, parts) = (cut.chunk, cut.parts());
        let image = self.image(chunk)?;
        let of_parts = [self.image(parts[0])?, self.image(parts[1])?];
        let together = of_parts[0].union(&of_parts[1]);
        let mapper = || name_of(self.mapper);
        if together != image {
            return Err(Box::new(MapperViolation::NotAdditive {
                mapper: mapper(),
                chunk,
                parts,
                image,
                together,
            }));
        }
        let shared = of_parts[0].intersection(&of_parts[1]);
        if !shared.is_empty() && self.mapper.is_disjoint(&self.global) {
            return Err(Box::new(MapperViolation::NotDisjoint { mapper: mapper(), parts, shared }));
        }
        if self.mapper.is_constant() {
            let of_all = self.image(self.global)?;
            if image != of_all {
                return Err(Box::new(MapperViolation::NotConstant {
                    mapper: mapper(),
                    chunk,
                    image,
                    of_all,
                }));
            }
        }
        self.check_relations(chunk)
    }

    /// What the mapper says of a chunk, if it is in the buffer, and the same twice.
    fn image(&self, chunk: Box3) -> Result<Region, Box<MapperViolation>> {
        let mapper = || name_of(self.mapper);
        let (image, second) = (self.ask(chunk)?, self.ask(chunk)?);
        if image != second {
            let first = image;
            return Err(Box::new(MapperViolation::ChangesItsMind {
                mapper: mapper(),
                chunk,
                first,
                second,
            }));
        }
        match image.is_within(&self.buffer) {
            true => Ok(image),
            false => {
                let buffer = self.buffer;
                Err(Box::new(MapperViolation::OutOfBounds {
                    mapper: mapper(),
                    chunk,
                    image,
                    buffer,
                }))
            }
        }
    }

    fn ask(&self, chunk: Box3) -> Result<Region, Box<MapperViolation>> {
        ask(self.mapper, &MapperInput { chunk, global: self.global, buffer: self.buffer })
    }

    /// Whether the relation of each dimension leads from what the chunk's first item touches back
    /// to that item.
    fn check_relations(&self, chunk: Box3) -> Result<(), Box<MapperViolation>> {
        let first = chunk.min();
        let item = Box3::new(first, first.map(|index| index + 1));
        let image = self.image(item)?;
        for dim in 0..3 {
            let relation = self.mapper.relation(dim);
            let leads_back = |part: &Box3| {
                let size = self.buffer.max()[dim];
                let items = relation.items_around(dim, interval(part, dim), size, &self.global);
                items.is_none_or(|(along, items)| items.contains(&first[along]))
            };
            if !image.boxes().iter().all(leads_back) {
                return Err(Box::new(MapperViolation::OutsideRelation {
                    mapper: name_of(self.mapper),
                    dim,
                    relation: format!("{relation:?}"),
                    item,
                    image,
                }));
            }
        }
        Ok(())
    }

    /// The same kind of violation on the smallest chunk that is found by making this one smaller.
    fn smallest(&self, mut cut: Cut, mut violation: Box<MapperViolation>) -> Box<MapperViolation> {
        let kind = std::mem::discriminant(&*violation);
        let mut steps = STEPS;
        'smaller: loop {
            for candidate in cut.smaller(&self.global) {
                let Some(left) = steps.checked_sub(1) else { return violation };
                steps = left;
                let found = self.violation(&candidate);
                if let Some(found) = found.filter(|found| std::mem::discriminant(&**found) == kind)
                {
                    (cut, violation) = (candidate, found);
                    continue 'smaller;
                }
            }
            return violation;
        }
    }
}

impl Cut {
    fn parts(&self) -> [Box3; 2] {
        let (min, max) = (self.chunk.min(), self.chunk.max());
        let (mut end, mut begin) = (max, min);
        (end[self.dim], begin[self.dim]) = (self.at, self.at);
        [Box3::new(min, end), Box3::new(begin, max)]
    }

    /// The whole space, cut after its first item, in the middle, and before its last one.
    fn plain(global: &Box3) -> Vec<Self> {
        let cuts = (0..3).flat_map(|dim| {
            let (min, max) = (global.min()[dim], global.max()[dim]);
            [min + 1, min.midpoint(max), max - 1].map(|at| Self { chunk: *global, dim, at })
        });
        cuts.collect()
    }

    fn drawn(global: &Box3, random: &mut Random) -> Self {
        let (mut min, mut max) = (global.min(), global.max());
        for dim in 0..3 {
            let ends = [0, 1].map(|_| random.below(max[dim] - min[dim]));
            let (from, to) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
            (min[dim], max[dim]) = (min[dim] + from, min[dim] + to + 1);
        }
        let cuttable = (0..3).filter(|&dim| max[dim] - min[dim] > 1).collect::<Vec<_>>();
        let dim = match cuttable.len() as u64 {
            0 => 0,
            count => cuttable[random.below(count) as usize],
        };
        let at = min[dim] + 1 + random.below((max[dim] - min[dim]).saturating_sub(1).max(1));
        Self { chunk: Box3::new(min, max), dim, at }
    }

    /// Chunks that are smaller, and as large ones that begin earlier; the boldest steps first.
    fn smaller(self, global: &Box3) -> Vec<Self> {
        let mut found = Vec::new();
        for dim in 0..3 {
            let (min, max) = (self.chunk.min()[dim], self.chunk.max()[dim]);
            let mut step = (max - min) / 2;
            while step > 0 {
                found.push(self.with(dim, min, max - step));
                found.push(self.with(dim, min + step, max));
                step /= 2;
            }
            let mut back = min - global.min()[dim];
            while back > 0 {
                found.push(self.with(dim, min - back, max - back));
                back /= 2;
            }
        }
        found.retain(|cut| !cut.chunk.is_empty());
        found
    }

    /// The same with another interval along a dimension, cut where it was, as far as that is inside.
    fn with(self, dim: usize, from: u64, to: u64) -> Self {
        let (mut min, mut max) = (self.chunk.min(), self.chunk.max());
        (min[dim], max[dim]) = (from, to);
        let (least, most) = (min[self.dim], max[self.dim]);
        let at = match most - least {
            0 | 1 => most,
            _ => self.at.clamp(least + 1, most - 1),
        };
        Self { chunk: Box3::new(min, max), dim: self.dim, at }
    }
}

/// What a mapper says of a chunk, unclamped, if it does not panic.
pub(crate) fn ask(mapper: &Mapper, input: &MapperInput) -> Result<Region, Box<MapperViolation>> {
    let asked = catch_unwind(AssertUnwindSafe(|| mapper.map_unclamped(input)));
    asked.map_err(|caught| {
        let payload = MapperPanic::unwrapped(caught);
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        discard(payload);
        Box::new(MapperViolation::Panics {
            mapper: name_of(mapper),
            chunk: input.chunk,
            global: input.global,
            said: text.map_or_else(String::new, |text| format!(": {text}")),
        })
    })
}

fn name_of(mapper: &Mapper) -> String {
    let asked = catch_unwind(AssertUnwindSafe(|| mapper.to_string()));
    asked.unwrap_or_else(|_| "whose name panics".to_owned())
}

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    /// A number below `end`, which is not 0.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ bits >> 31) % end.max(1)
    }
}

#[cfg(test)]
mod tests;
