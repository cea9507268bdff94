//! Who has read what since it was last written: the source of
//! anti-dependencies, in every graph layer.

use std::cell::{Cell, OnceCell};

use celerity_regions::{Box3, BoxIndex, Region};

use crate::id::GraphId;
#[cfg(feature = "mutants")]
use crate::mistakes;

/// The reads of one buffer (or allocation) that no later write has covered.
///
/// ```
/// use celerity_regions::Box3;
/// use celerity_tdag::{Readers, TaskId};
/// let (left, all) = (Box3::from_range([4]), Box3::from_range([8]));
/// let [epoch, writer, reader] = [0, 1, 2].map(TaskId::from_index);
/// let mut readers = Readers::default();
/// readers.add(reader, &all.into());
/// let mut seen = vec![];
/// assert!(readers.stand_ins().include(writer, &left, epoch));
/// readers.overwrite(&left.into(), |id| seen.push(id));
/// assert_eq!(seen, [reader]);
/// assert!(!readers.stand_ins().include(writer, &left, epoch));
/// readers.overwrite(&left.into(), |_| unreachable!("nobody has read the new contents"));
/// ```
#[derive(Clone, Debug)]
pub struct Readers<I> {
    /// Boxes, not regions: most are overwritten as a whole, and what is left of
    /// the others needs no canonical form.
    reads: Vec<Read<I>>,
    /// Longer lists are compacted.
    most: usize,
}

#[derive(Clone, Copy, Debug)]
struct Read<I> {
    id: I,
    part: Box3,
}

/// Lists of up to so many reads are never compacted.
const COMPACT_ABOVE: usize = 8;

/// For so many boxes, all are compared with all before any is looked for by place: to bring boxes into an index takes as long as
/// some sixty looks at each of them. In the mutation proof, and under Miri, few, as random programs have.
const COMPARED_MAX: usize = if cfg!(any(miri, feature = "mutants")) { 2 } else { 64 };

/// Of the writers of a buffer, those that need not be waited for by who waits for all [readers](Readers).
#[derive(Debug)]
pub struct StandIns<'r, I> {
    reads: &'r [Read<I>],
    /// How many parts have been compared with all reads so far.
    compared: Cell<usize>,
    /// A read that has been found, the largest, and of those the last one. Parts come in order, and so do reads of one reader: the next part is
    /// mostly one of the same read, or of the one behind it.
    hint: Cell<usize>,
    /// The reads' positions, once there have been many questions that the hint could not answer.
    by_place: OnceCell<Box<BoxIndex<usize>>>,
}

impl<I: GraphId> StandIns<'_, I> {
    /// Whether somebody who waits for all readers of `part` need not wait for its `writer`, too,
    /// since one of the readers does. O(reads); where there are many questions, O(log reads) for each of
    /// them, and O(reads · log reads) once.
    ///
    /// `point` is the synchronisation point. It stands in for writers that are older, and is waited
    /// for in any case: readers that were there before it do not wait for it.
    #[must_use]
    #[inline]
    pub fn include(&self, writer: I, part: &Box3, point: I) -> bool {
        #[cfg(feature = "mutants")]
        if celerity_mutants::Mutant::AnyReaderStandsIn.is_active() && writer > point {
            return !self.reads.is_empty();
        }
        writer > point && self.is_read(part)
    }

    #[inline]
    fn is_read(&self, part: &Box3) -> bool {
        let compared = self.compared.get();
        if compared > COMPARED_MAX && self.reads.len() > COMPARED_MAX {
            return self.is_found(part);
        }
        self.compared.set(compared + 1);
        self.reads.iter().any(|read| read.part.intersects(part))
    }

    #[inline(never)]
    fn is_found(&self, part: &Box3) -> bool {
        let hint = self.hint.get();
        let mut next = self.reads[hint..].iter().take(2);
        let further = next.position(|read| read.part.intersects(part));
        let found = further.map(|further| hint + further).or_else(|| {
            // A few more are looked for among all, as long as the hint may have become a better one.
            let compared = self.compared.get();
            if compared < 2 * COMPARED_MAX {
                self.compared.set(compared + 1);
                return self.reads.iter().position(|read| read.part.intersects(part));
            }
            let by_place = || Box::new(self.reads.iter().map(|read| read.part).zip(0..).collect());
            let by_place = self.by_place.get_or_init(by_place);
            by_place.sharing(part).next().map(|(_, &position)| position)
        });
        let volume = |position: usize| self.reads[position].part.volume();
        if let Some(position) = found
            && volume(position) >= volume(hint)
        {
            self.hint.set(position);
        }
        found.is_some()
    }
}

impl<I> Default for Readers<I> {
    fn default() -> Self {
        Self { reads: Vec::new(), most: COMPACT_ABOVE }
    }
}

impl<I: GraphId> Readers<I> {
    /// Notes that `id`, the newest node, reads `region`.
    pub fn add(&mut self, id: I, region: &Region) {
        #[cfg(feature = "mutants")]
        if mistakes::replaces_read() {
            self.reads.retain(|read| read.id != id);
        }
        region.boxes().iter().for_each(|&part| self.reads.push(Read { id, part }));
    }

    /// The writers that need not be waited for, as readers wait for them. O(1).
    #[must_use]
    #[inline]
    pub fn stand_ins(&self) -> StandIns<'_, I> {
        let (compared, hint) = (Cell::new(0), Cell::new(0));
        StandIns { reads: &self.reads, compared, hint, by_place: OnceCell::new() }
    }

    /// Calls `each` for every reader of a part of `region`, and forgets those
    /// parts: whoever writes next waits for the writer instead. Readers come in no
    /// particular order, and may be named more than once. O(reads · boxes of the region) for a few of
    /// one of them; of many of both, what the difference of two regions takes for each reader of many parts, and
    /// O((reads + boxes + pairs that share elements) · log boxes) for the others.
    pub fn overwrite(&mut self, region: &Region, mut each: impl FnMut(I)) {
        // What boxes leave of reads, later boxes are compared with.
        if region.boxes().len() > COMPARED_MAX && !self.reads.is_empty() {
            return self.overwrite_many(region, &mut each);
        }
        for written in region.boxes() {
            self.overwrite_box(written, &mut each);
        }
    }

    /// Looks at each read once: many of one reader together, as regions, and others one by one.
    fn overwrite_many(&mut self, region: &Region, each: &mut impl FnMut(I)) {
        let reads = std::mem::take(&mut self.reads);
        let by_place = OnceCell::new();
        let by_reader = || reads.chunk_by(|a, b| a.id == b.id);
        let few = by_reader().map(<[_]>::len).filter(|&len| len <= COMPARED_MAX);
        let is_looked_up = few.sum::<usize>() > COMPARED_MAX;
        for of_one in by_reader() {
            if of_one.len() > COMPARED_MAX {
                self.overwrite_reader(of_one, region, each);
                continue;
            }
            for read in of_one {
                let over = match is_looked_up {
                    false => region.intersection_box(&read.part),
                    true => {
                        let by_place = by_place.get_or_init(|| index_of(region));
                        Region::from_boxes(by_place.sharing(&read.part).map(|(part, ())| *part))
                    }
                };
                if over.is_empty() {
                    self.reads.push(*read);
                    continue;
                }
                each(read.id);
                self.add(read.id, &Region::from(read.part).difference(&over));
            }
        }
    }

    /// Leaves of the reads of one reader what is outside of `region`.
    fn overwrite_reader(&mut self, reads: &[Read<I>], region: &Region, each: &mut impl FnMut(I)) {
        let read = Region::from_boxes(reads.iter().map(|read| read.part));
        let left = read.difference(region);
        if left == read {
            return self.reads.extend_from_slice(reads);
        }
        each(reads[0].id);
        self.add(reads[0].id, &left);
    }

    #[inline]
    fn overwrite_box(&mut self, written: &Box3, each: &mut impl FnMut(I)) {
        let mut at = 0;
        while let Some(read) = self.reads.get(at) {
            if !read.part.intersects(written) {
                at += 1;
                continue;
            }
            each(read.id);
            if written.contains(&read.part) {
                // The last one takes its place, and has its turn now.
                self.reads.swap_remove(at);
            } else {
                self.cut(at, written);
                at += 1;
            }
        }
    }

    /// Leaves of the read at `at` what is outside of `written`, in its place as far as it can
    /// be: not all of it is inside, nor all outside.
    fn cut(&mut self, at: usize, written: &Box3) {
        let (read, mut is_left) = (self.reads[at], false);
        read.part.for_each_without(written, |part| {
            match is_left {
                false => self.reads[at].part = part,
                true => self.reads.push(Read { part, ..read }),
            }
            is_left = true;
        });
    }

    /// Calls `each` for every reader of a part of `part`, keeping all. A reader
    /// may be named more than once. O(reads).
    pub fn for_each_in(&self, part: &Box3, mut each: impl FnMut(I)) {
        for read in &self.reads {
            if read.part.intersects(part) {
                each(read.id);
            }
        }
    }

    /// Merges the reads that `point` stands in for, once there are twice as many
    /// as the last time left: O(reads · log reads), and so O(log reads) for each
    /// read that has been added since.
    pub fn compact(&mut self, point: I) {
        if self.reads.len() <= self.most {
            return;
        }
        let older = self.reads.iter().filter(|read| read.id <= point);
        let merged = Region::from_boxes(older.map(|read| read.part));
        let newer = self.reads.iter().filter(|read| read.id > point);
        let merged = merged.boxes().iter().map(|&part| Read { id: point, part });
        self.reads = merged.chain(newer.copied()).collect();
        self.most = COMPACT_ABOVE.max(2 * self.reads.len());
    }
}

/// The boxes of a region by place.
fn index_of(region: &Region) -> BoxIndex<()> {
    region.boxes().iter().map(|part| (*part, ())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TaskId;

    fn columns(min: usize, len: usize) -> Region {
        Box3::from_offset_range([0, min], [8, len]).into()
    }

    fn readers_of(readers: &mut Readers<TaskId>, region: &Region) -> Vec<u64> {
        let mut seen = Vec::new();
        readers.overwrite(region, |id| seen.push(id.index()));
        seen.sort_unstable();
        seen
    }

    #[test]
    fn what_a_write_leaves_of_a_read_is_still_read() {
        let mut readers = Readers::default();
        readers.add(TaskId::from_index(1), &columns(0, 8));
        readers.add(TaskId::from_index(2), &columns(4, 4));
        assert_eq!(readers_of(&mut readers, &columns(3, 2)), [1, 2]);
        assert_eq!(readers_of(&mut readers, &columns(3, 2)), []);
        assert_eq!(readers_of(&mut readers, &columns(0, 3)), [1]);
        assert_eq!(readers_of(&mut readers, &columns(0, 8)), [1, 2]);
        assert_eq!(readers_of(&mut readers, &columns(0, 8)), []);
    }

    #[test]
    fn one_read_stands_in_for_many_old_ones() {
        let mut readers = Readers::default();
        (1..=20).for_each(|id| readers.add(TaskId::from_index(id), &columns(id as usize, 1)));
        readers.compact(TaskId::from_index(18));
        assert_eq!(readers.reads.len(), 3);
        assert_eq!(readers_of(&mut readers, &columns(0, 30)), [18, 19, 20]);
    }

    /// Who has read each of a line of elements.
    type Naive = Vec<std::collections::BTreeSet<u64>>;

    fn elements(region: &Region) -> impl Iterator<Item = usize> {
        region.boxes().iter().flat_map(|part| part.min()[0] as usize..part.max()[0] as usize)
    }

    #[test]
    fn many_reads_and_writes_of_many_boxes_are_those_of_their_elements() {
        let (length, steps) = if cfg!(miri) { (60, 12) } else { (1200, 120) };
        let mut state = 5_u64;
        let mut random = move |end: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % end
        };
        let (mut readers, mut naive) = (Readers::default(), Naive::new());
        naive.resize_with(length, Default::default);
        let (mut most_boxes, mut most_reads) = (0, 0);
        for step in 1..=steps {
            // Runs of up to three, some apart: up to hundreds of boxes.
            let (first, apart) = (random(length as u64 / 2), 2 + random(4));
            let starts = (first..length as u64 - 3).step_by(2 + apart as usize);
            let part = |at| Box3::new([at, 0, 0], [at + 1 + random(3), 1, 1]);
            let region = Region::from_boxes(starts.map(part).collect::<Vec<_>>());
            if step % 3 > 0 {
                readers.add(TaskId::from_index(step), &region);
                elements(&region).for_each(|at| naive[at].extend([step]));
                continue;
            }
            most_boxes = most_boxes.max(region.boxes().len());
            most_reads = most_reads.max(readers.reads.len());
            let (stand_ins, [start, writer]) =
                (readers.stand_ins(), [0, 1].map(TaskId::from_index));
            for (at, by) in naive.iter().enumerate() {
                let element = Box3::from_offset_range([at], [1]);
                assert_eq!(stand_ins.include(writer, &element, start), !by.is_empty());
                assert!(!stand_ins.include(start, &element, start));
            }
            let mut expected = std::collections::BTreeSet::new();
            elements(&region).for_each(|at| expected.append(&mut naive[at]));
            let mut found = readers_of(&mut readers, &region);
            found.dedup();
            assert!(found.into_iter().eq(expected));
        }
        assert!(
            most_boxes > COMPARED_MAX && most_reads > COMPARED_MAX,
            "{most_boxes}, {most_reads}"
        );
    }
}
