//! What commands that are held back will need of a buffer in one piece. Refuses to know which commands.

use celerity_regions::{Box3, BoxIndex};
use smallvec::SmallVec;

use crate::instruction::MemoryId;

/// In each memory, boxes that do not overlap.
#[derive(Debug, Default)]
pub(crate) struct Anticipation(SmallVec<[(MemoryId, BoxIndex<()>); 1]>);

impl Anticipation {
    /// Anticipates `extent`, which takes in all anticipated boxes that it overlaps.
    pub(crate) fn add(&mut self, memory: MemoryId, extent: Box3) {
        self.fulfil(memory, &extent);
        let position = self.0.iter().position(|(at, _)| *at == memory).unwrap_or_else(|| {
            self.0.push((memory, BoxIndex::default()));
            self.0.len() - 1
        });
        self.0[position].1.insert(extent, ());
    }

    /// Forgets what is anticipated inside `extent`.
    #[inline]
    pub(crate) fn fulfil(&mut self, memory: MemoryId, extent: &Box3) {
        if !self.0.is_empty() {
            self.forget(memory, extent);
        }
    }

    #[inline(never)]
    fn forget(&mut self, memory: MemoryId, extent: &Box3) {
        let Some(position) = self.0.iter().position(|(at, _)| *at == memory) else { return };
        let parts = &mut self.0[position].1;
        parts.remove_inside(extent);
        if parts.is_empty() {
            self.0.swap_remove(position);
        }
    }

    /// The anticipated box that has all of `part` in it, which is not empty.
    #[inline]
    pub(crate) fn around_all_of(&self, memory: MemoryId, part: &Box3) -> Option<Box3> {
        self.of(memory).and_then(|parts| around_all_of(parts, part))
    }

    /// `part`, and a box around what is anticipated and overlaps it, or lies beside it and passes `joins`.
    pub(crate) fn around(
        &self,
        memory: MemoryId,
        part: &Box3,
        joins: impl Fn(&Box3, &Box3) -> bool,
    ) -> Box3 {
        let Some(parts) = self.of(memory) else { return *part };
        let near = parts.touching(part).map(|(future, ())| future);
        near.fold(*part, |around, future| {
            match future.intersects(&around) || joins(future, &around) {
                true => around.bounding(future),
                false => around,
            }
        })
    }

    fn of(&self, memory: MemoryId) -> Option<&BoxIndex<()>> {
        self.0.iter().find(|(at, _)| *at == memory).map(|(_, parts)| parts)
    }
}

// By itself, so that what asks, mostly of nothing, stays small.
#[inline(never)]
fn around_all_of(parts: &BoxIndex<()>, part: &Box3) -> Option<Box3> {
    parts.sharing(part).map(|(known, ())| *known).find(|known| known.contains(part))
}
