//! What every item of every task touches, element by element: the ground on
//! which the twin and all models stand. Evaluates [mappers as data](crate::program::MapperSpec) only, never
//! the mappers that the graphs are given.

use std::collections::BTreeSet;

use celerity_regions::Box3;

use crate::element;
use crate::program::{BufferSpec, Op, Program, TaskOp, buffer_slot};

/// The elements that the items of one task touch, as slots of the buffers'
/// extents.
#[derive(Clone, Debug)]
pub struct ElementFootprint {
    space: Box3,
    /// By access, then item, ascending.
    images: Vec<Vec<Vec<usize>>>,
}

impl ElementFootprint {
    /// Evaluates all accesses of a task on all of its items.
    #[must_use]
    pub fn of(task: &TaskOp, buffers: &[BufferSpec]) -> Self {
        let space = task.space();
        let accesses = task.accesses.iter();
        let images = accesses.map(|access| {
            access.mapper.images(&space, &buffers[buffer_slot(access.buffer)].extent)
        });
        Self { space, images: images.collect() }
    }

    /// What one item touches through an access, ascending; `item` counts the
    /// index space row-major.
    #[must_use]
    pub fn item(&self, access: usize, item: usize) -> &[usize] {
        &self.images[access][item]
    }

    /// What a chunk touches through an access. Items of the chunk that are not
    /// in the index space touch nothing.
    #[must_use]
    pub fn chunk(&self, access: usize, chunk: &Box3) -> BTreeSet<usize> {
        let items = element::box_slots(&self.space, &chunk.intersection(&self.space));
        items.flat_map(|item| self.images[access][item].iter().copied()).collect()
    }

    /// What the whole task touches through an access.
    #[must_use]
    pub fn whole(&self, access: usize) -> BTreeSet<usize> {
        self.images[access].iter().flatten().copied().collect()
    }
}

/// The [`ElementFootprint`] of every statement that is a task, by statement.
#[must_use]
pub fn footprints(program: &Program) -> Vec<Option<ElementFootprint>> {
    let buffers = program.buffers();
    let ops = program.ops.iter().map(|op| match op {
        Op::Task(task) => Some(ElementFootprint::of(task, &buffers)),
        _ => None,
    });
    ops.collect()
}
