//! Heat on a mesh that is cut into parts: the buffers, and a step. Knows nothing of where the mesh comes from.

use celerity::prelude::*;
use celerity::{CustomMapper, Result};
use celerity_example_kernels::mesh::{mesh_pack, mesh_step};

use super::partition::Parts;

/// Temperatures of all parts, each of which is a row, and what a step needs.
pub(crate) struct Heat {
    now: Buffer<f32, 2>,
    next: Buffer<f32, 2>,
    /// What is packed, part by part.
    borders: Buffer<f32, 1>,
    packed: Buffer<[u32; 2], 1>,
    /// By side.
    beside: [Buffer<u32, 2>; 3],
    conductances: [Buffer<f32, 2>; 3],
    rows_of_borders: CustomMapper<1, 2>,
    neighbours: CustomMapper<2, 1>,
    slots: usize,
    border_slots: usize,
    /// Where each triangle is.
    places: Vec<[usize; 2]>,
}

impl Heat {
    /// Parts with the temperatures that triangles have at the start.
    ///
    /// # Errors
    /// As [`Queue::buffer_from`].
    pub(crate) fn new(
        queue: &Queue,
        parts: Parts,
        temperatures: impl Iterator<Item = f32>,
    ) -> Result<Self> {
        let (rows_of_borders, neighbours) =
            (parts.rows_of_borders(), parts.borders_of_neighbours());
        let Parts { rows, slots, border_slots, places, beside, conductances, packed, .. } = parts;
        let (range, border_range) = ([rows, slots], rows * border_slots);
        let mut initial = vec![0.0; rows * slots];
        for (&[part, at], temperature) in places.iter().zip(temperatures) {
            initial[part * slots + at] = temperature;
        }
        let now = queue.buffer_from(range, initial)?.named("u");
        let next = queue.buffer::<f32, 2>(range).named("next u");
        let borders = queue.buffer::<f32, 1>(border_range).named("borders");
        let packed = queue.buffer_from(border_range, packed)?.named("packed");
        let [a, b, c] = beside.map(|beside| queue.buffer_from(range, beside));
        let beside = [a?.named("beside a"), b?.named("beside b"), c?.named("beside c")];
        let [a, b, c] = conductances.map(|flows| queue.buffer_from(range, flows));
        let conductances = [a?.named("to a"), b?.named("to b"), c?.named("to c")];
        Ok(Self {
            now,
            next,
            borders,
            packed,
            beside,
            conductances,
            rows_of_borders,
            neighbours,
            slots,
            border_slots,
            places,
        })
    }

    /// Submits a step.
    ///
    /// # Errors
    /// As tasks.
    pub(crate) fn step(&mut self, queue: &Queue) -> Result<()> {
        let Self { now, next, borders, packed, .. } = &*self;
        let ([a, b, c], [to_a, to_b, to_c]) = (&self.beside, &self.conductances);
        // A single part has nobody who needs anything of it.
        if self.border_slots > 0 {
            let rows = now.read(self.rows_of_borders.clone());
            let accesses = (borders.write(one_to_one()), packed.read(one_to_one()), rows);
            let task = queue.task("pack").granularity(self.border_slots);
            task.launch(borders.range(), accesses, mesh_pack)?;
        }
        let accesses = (
            next.write(one_to_one()),
            now.read(one_to_one()),
            a.read(one_to_one()),
            b.read(one_to_one()),
            c.read(one_to_one()),
            to_a.read(one_to_one()),
            to_b.read(one_to_one()),
            to_c.read(one_to_one()),
            now.read(per_dimension([Side::along(0), Side::all()])),
            borders.read(self.neighbours.clone()),
        );
        queue.task("step").launch(next.range(), accesses, mesh_step)?;
        std::mem::swap(&mut self.now, &mut self.next);
        Ok(())
    }

    /// The temperature of each triangle.
    ///
    /// # Errors
    /// As [`Queue::fence`].
    pub(crate) fn temperatures(&self, queue: &Queue) -> Result<Vec<f32>> {
        let found = queue.fence(&self.now)?.wait()?;
        let at_place = |&[part, at]: &[usize; 2]| found.as_slice()[part * self.slots + at];
        Ok(self.places.iter().map(at_place).collect())
    }
}
