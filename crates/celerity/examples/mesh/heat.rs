//! Heat on a mesh that is cut into parts: the buffers, and a step. Knows nothing of where the mesh comes from.

use celerity::prelude::*;
use celerity::{CustomMapper, Result};
use celerity_example_kernels::mesh::mesh_step;

use super::partition::{Cells, Parts, Place};

/// Temperatures of all parts, and what a step needs.
pub(crate) struct Heat {
    /// What other parts need, and the rest.
    border: Zone,
    inner: Zone,
    /// The borders of parts and of those beside them, and the parts' own.
    neighbours: CustomMapper<2, 2>,
    own: CustomMapper<2, 2>,
    /// Where each triangle is.
    places: Vec<Place>,
}

/// Triangles of all parts, each of which is a row.
struct Zone {
    now: Buffer<f32, 2>,
    next: Buffer<f32, 2>,
    /// By side.
    beside: [Buffer<u32, 2>; 3],
    conductances: [Buffer<f32, 2>; 3],
}

impl Zone {
    fn new(
        queue: &Queue,
        name: &str,
        rows: usize,
        cells: Cells,
        initial: Vec<f32>,
    ) -> Result<Self> {
        let range = [rows, cells.slots];
        let now = queue.buffer_from(range, initial)?.named(format!("u {name}"));
        let next = queue.buffer::<f32, 2>(range).named(format!("next u {name}"));
        let [a, b, c] = cells.beside.map(|beside| queue.buffer_from(range, beside));
        let named = |what: &str| format!("{what} {name}");
        let beside =
            [a?.named(named("beside a")), b?.named(named("beside b")), c?.named(named("beside c"))];
        let [a, b, c] = cells.conductances.map(|flows| queue.buffer_from(range, flows));
        let conductances =
            [a?.named(named("to a")), b?.named(named("to b")), c?.named(named("to c"))];
        Ok(Self { now, next, beside, conductances })
    }
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
        let (neighbours, own) = (parts.borders_of_neighbours(), Parts::own_borders());
        let Parts { rows, border, inner, places, .. } = parts;
        let [mut warm_border, mut warm_inner] =
            [&border, &inner].map(|cells| vec![0.0; rows * cells.slots]);
        for (place, temperature) in places.iter().zip(temperatures) {
            match place.is_border {
                true => warm_border[place.part * border.slots + place.at] = temperature,
                false => warm_inner[place.part * inner.slots + place.at] = temperature,
            }
        }
        let border = Zone::new(queue, "border", rows, border, warm_border)?;
        let inner = Zone::new(queue, "inner", rows, inner, warm_inner)?;
        Ok(Self { border, inner, neighbours, own, places })
    }

    /// Submits a step. What others need comes first, so that it travels while the rest is computed.
    ///
    /// # Errors
    /// As tasks.
    pub(crate) fn step(&mut self, queue: &Queue) -> Result<()> {
        // A single part has nobody who needs anything of it.
        if self.border.now.range()[1] > 0 {
            self.advance(queue, "border", &self.border, &self.neighbours)?;
        }
        self.advance(queue, "inner", &self.inner, &self.own)?;
        for Zone { now, next, .. } in [&mut self.border, &mut self.inner] {
            std::mem::swap(now, next);
        }
        Ok(())
    }

    /// A step of some triangles of each part, which have those `borders` beside them.
    fn advance(
        &self,
        queue: &Queue,
        name: &str,
        zone: &Zone,
        borders: &CustomMapper<2, 2>,
    ) -> Result<()> {
        let Zone { now, next, beside: [a, b, c], conductances: [to_a, to_b, to_c] } = zone;
        let accesses = (
            next.write(one_to_one()),
            now.read(one_to_one()),
            a.read(one_to_one()),
            b.read(one_to_one()),
            c.read(one_to_one()),
            to_a.read(one_to_one()),
            to_b.read(one_to_one()),
            to_c.read(one_to_one()),
            self.inner.now.read(per_dimension([Side::along(0), Side::all()])),
            self.border.now.read(borders.clone()),
        );
        let bits = Parts::bits(self.border.now.range()[1]);
        queue.task(name).launch(next.range(), accesses, mesh_step { bits })?;
        Ok(())
    }

    /// The temperature of each triangle.
    ///
    /// # Errors
    /// As [`Queue::fence`].
    pub(crate) fn temperatures(&self, queue: &Queue) -> Result<Vec<f32>> {
        let (border, inner) = (queue.fence(&self.border.now)?, queue.fence(&self.inner.now)?);
        let (border, inner) = (border.wait()?, inner.wait()?);
        let at_place = |place: &Place| match place.is_border {
            true => border[[place.part, place.at]],
            false => inner[[place.part, place.at]],
        };
        Ok(self.places.iter().map(at_place).collect())
    }
}
