//! Mappers against their definition item by item: images of chunks are the
//! unions of their items' images, and what the metadata promises is true.

use std::collections::BTreeSet;

use celerity_regions::Box3;
use celerity_tdag::{DimRelation, IndexSpace, Mapper, MapperInput, Split};
use celerity_testkit::element;
use celerity_testkit::footprint::ElementFootprint;
use celerity_testkit::program::{
    BufferSpec, MapperTable, Op, Sizes, TaskOp, any_program, buffer_slot,
};
use proptest::prelude::*;

/// One access of a task, with everything that its mapper may depend on.
struct Subject<'a> {
    mapper: Mapper,
    footprint: &'a ElementFootprint,
    nth: usize,
    space: Box3,
    buffer: Box3,
}

impl Subject<'_> {
    fn image(&self, chunk: Box3) -> BTreeSet<usize> {
        let input = MapperInput { chunk, global: self.space, buffer: self.buffer };
        element::slots(&self.buffer, &self.mapper.map(&input))
    }

    fn check_image(&self, chunk: Box3) -> Result<(), TestCaseError> {
        let (found, expected) = (self.image(chunk), self.footprint.chunk(self.nth, &chunk));
        prop_assert_eq!(found, expected, "{} of {}", self.mapper, chunk);
        Ok(())
    }

    /// Disjoint and constant mappers are what they say.
    fn check_metadata(&self) -> Result<(), TestCaseError> {
        let items: Vec<&[usize]> = (0..element::volume(&self.space))
            .map(|item| self.footprint.item(self.nth, item))
            .collect();
        if self.mapper.is_disjoint(&self.space) {
            let mut seen = BTreeSet::new();
            let apart = items.iter().copied().flatten().all(|slot| seen.insert(slot));
            prop_assert!(apart, "{} on {} is not disjoint", self.mapper, self.space);
        }
        if self.mapper.is_constant() {
            let same = items.windows(2).all(|pair| pair[0] == pair[1]);
            prop_assert!(same, "{} on {} is not constant", self.mapper, self.space);
        }
        Ok(())
    }

    /// A mapper that keeps chunks apart does so for whatever the space is cut into.
    fn check_apart(&self, granularity: [u64; 3]) -> Result<(), TestCaseError> {
        for split in [Split::OneDimensional, Split::Tiled, Split::Along(1), Split::Along(2)] {
            let space = IndexSpace { granularity, split, ..IndexSpace::new(3, self.space) };
            if !self.mapper.keeps_chunks_apart(&space) {
                continue;
            }
            for parts in [2, 3, 8] {
                let mut seen = BTreeSet::new();
                for chunk in space.split(&self.space, parts).iter() {
                    let apart = self.image(chunk).into_iter().all(|slot| seen.insert(slot));
                    prop_assert!(
                        apart,
                        "{} lets {parts} chunks of {} meet",
                        self.mapper,
                        self.space
                    );
                }
            }
        }
        Ok(())
    }

    /// Every touched coordinate lies where the relation allows it.
    fn check_relation(&self, dim: usize, chunk: Box3) -> Result<(), TestCaseError> {
        let slots = self.image(chunk);
        let coordinates = slots.iter().map(|&slot| element::point(&self.buffer, slot)[dim]);
        let (min, max) = (chunk.min()[dim], chunk.max()[dim]);
        let allowed = match self.mapper.relation(dim) {
            DimRelation::Identity => min..max,
            DimRelation::Padded(pad) => min.saturating_sub(pad)..max + pad,
            // What it is good for is to go backwards: see `check_readers`.
            _ => 0..u64::MAX,
        };
        for coordinate in coordinates {
            prop_assert!(allowed.contains(&coordinate), "{} of {}", self.mapper, chunk);
        }
        Ok(())
    }

    /// Of each element, the mapper and its relations find all items that touch it.
    fn check_readers(&self) -> Result<(), TestCaseError> {
        for (nth, item) in element::points(&self.space).enumerate() {
            for at in self.footprint.item(self.nth, nth) {
                let at = element::point(&self.buffer, *at);
                let unit = |point: [u64; 3]| Box3::new(point, point.map(|side| side + 1));
                let around = self.mapper.items_around(&unit(at), &self.buffer, &self.space);
                prop_assert!(around.contains(&unit(item)), "{} from {at:?}", self.mapper);
                for dim in 0..3 {
                    let (side, size) = (at[dim]..at[dim] + 1, self.buffer.max()[dim]);
                    let relation = self.mapper.relation(dim);
                    let Some((along, items)) = relation.items_around(dim, side, size, &self.space)
                    else {
                        continue;
                    };
                    let mapper = &self.mapper;
                    prop_assert!(items.contains(&item[along]), "{mapper} from {at:?} to {item:?}");
                }
            }
        }
        Ok(())
    }
}

fn check_task(task: &TaskOp, buffers: &[BufferSpec]) -> Result<(), TestCaseError> {
    let footprint = ElementFootprint::of(task, buffers);
    let mut lowering = MapperTable::default();
    for (nth, access) in task.accesses.iter().enumerate() {
        let subject = Subject {
            mapper: lowering.lower(&access.mapper, access.mode),
            footprint: &footprint,
            nth,
            space: task.space(),
            buffer: buffers[buffer_slot(access.buffer)].extent,
        };
        subject.check_metadata()?;
        if !matches!(subject.mapper, Mapper::User(_)) {
            let whole = task.space().range().map(|items| items.max(1));
            [[1; 3], [2, 1, 1], [1, whole[1], 1], whole]
                .into_iter()
                .try_for_each(|granularity| subject.check_apart(granularity))?;
        }
        subject.check_readers()?;
        for chunk in chunks(&task.space()) {
            subject.check_image(chunk)?;
            (0..3).try_for_each(|dim| subject.check_relation(dim, chunk))?;
        }
    }
    Ok(())
}

/// The whole, a corner, the middle and the last item of an index space.
fn chunks(space: &Box3) -> Vec<Box3> {
    let (min, max) = (space.min(), space.max());
    let half = |dim: usize| min[dim] + (max[dim] - min[dim]) / 2;
    let middle = [half(0), half(1), half(2)];
    let last = max.map(|coordinate| coordinate.saturating_sub(1));
    vec![*space, Box3::new(min, middle), Box3::new(middle, max), Box3::new(last, max)]
}

proptest! {
    #[test]
    fn mappers_are_what_their_definition_says(program in any_program(Sizes::default())) {
        let buffers = program.buffers();
        for op in &program.ops {
            match op {
                Op::Task(task) if !task.is_void() => check_task(task, &buffers)?,
                _ => {}
            }
        }
    }
}
