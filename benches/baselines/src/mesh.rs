//! Heat on a sphere of triangles: parts over processes. What other parts need is packed and sent, and
//! while it travels, triangles are computed that have none of another part beside them.

#[path = "../../../crates/celerity/examples/mesh/obj.rs"]
#[expect(dead_code, reason = "nothing is read from files here")]
mod obj;
mod part;
#[path = "../../../crates/celerity/examples/mesh/partition.rs"]
mod partition;

use std::time::Duration;

use celerity::prelude::*;
use celerity_example_kernels::mesh::{mesh_pack, mesh_step};
use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::CommunicatorCollectives;

use crate::spread::{compare, timed};
use crate::{PROGRAM_WINDOWS, place, shortest};
use obj::Mesh;
use part::Part;
use partition::{Cell, Parts};

/// How often the triangles of an icosahedron are cut into four.
const LEVELS: u32 = 7;

/// In each measure.
const STEPS: usize = 50;

/// How much flows through a side: as much as where all triangles are alike.
const CONDUCTANCE: f32 = 0.3;

/// A row of a table: the number of processes, and how many triangles both ways update.
pub(crate) fn print(world: &SimpleCommunicator, repetitions: usize) -> celerity::Result<()> {
    let sphere = Sphere::new();
    let triangles = sphere.cells.len();
    let name = format!("mesh, {triangles} triangles [Mtriangle/s]");
    let millions = (triangles * STEPS) as f64 / 1e6;
    let (hand, ours) = (|| by_hand(world, &sphere), || ours(&sphere));
    compare(world, repetitions, (&name, millions), hand, ours)
}

struct Sphere {
    cells: Vec<Cell>,
    centres: Vec<[f32; 3]>,
}

impl Sphere {
    fn new() -> Self {
        let mesh = Mesh::sphere(LEVELS);
        let cell = |beside| Cell { beside, conductances: [CONDUCTANCE; 3] };
        let centres = (0..mesh.triangles.len()).map(|at| mesh.centre(at)).collect();
        Self { cells: mesh.neighbours().into_iter().map(cell).collect(), centres }
    }

    /// Temperatures at the start: the north is warm. Nowhere so cold that numbers get tiny.
    fn initial(&self, triangle: usize) -> f32 {
        if self.centres[triangle][2] > 0.6 { 2.0 } else { 1.0 }
    }
}

fn by_hand(world: &SimpleCommunicator, sphere: &Sphere) -> (Duration, Vec<f32>) {
    let (rank, nodes) = place(world);
    let mut part = Part::new(sphere, rank, nodes);
    let time = timed(world, || (0..STEPS).for_each(|_| part.step(world)));
    // Shares may differ by one, so all add up: elsewhere a triangle is 0.
    let mut own = vec![0.0; sphere.cells.len()];
    for (&triangle, &temperature) in part.triangles.iter().zip(&part.now) {
        own[triangle as usize] = temperature;
    }
    let mut all = vec![0.0_f32; own.len()];
    world.all_reduce_into(&own[..], &mut all[..], SystemOperation::sum());
    (time, all)
}

fn ours(sphere: &Sphere) -> celerity::Result<(Duration, Vec<f32>)> {
    celerity::run(|queue| {
        let rows = queue.nodes() * queue.devices();
        let parts = Parts::new(&sphere.cells, &sphere.centres, rows);
        let (range, border_range) = ([rows, parts.slots], rows * parts.border_slots);
        let own_part = per_dimension([Side::along(0), Side::all()]);
        let (rows_of_borders, neighbours) =
            (parts.rows_of_borders(), parts.borders_of_neighbours());
        let mut initial = vec![0.0; rows * parts.slots];
        for (triangle, &[part, at]) in parts.places.iter().enumerate() {
            initial[part * parts.slots + at] = sphere.initial(triangle);
        }
        let mut u = queue.buffer_from(range, initial)?.named("u");
        let mut after = queue.buffer::<f32, 2>(range).named("next u");
        let borders = queue.buffer::<f32, 1>(border_range).named("borders");
        let packed = queue.buffer_from(border_range, parts.packed)?.named("packed");
        let [a, b, c] = parts.beside.map(|beside| queue.buffer_from(range, beside));
        let (a, b, c) = (a?.named("beside a"), b?.named("beside b"), c?.named("beside c"));
        let [to_a, to_b, to_c] = parts.conductances.map(|flows| queue.buffer_from(range, flows));
        let (to_a, to_b, to_c) = (to_a?.named("to a"), to_b?.named("to b"), to_c?.named("to c"));
        let time = shortest(PROGRAM_WINDOWS, || {
            for _ in 0..STEPS {
                // A single part has nobody who needs anything of it.
                if border_range > 0 {
                    let whole = u.read(rows_of_borders.clone());
                    let accesses = (borders.write(one_to_one()), packed.read(one_to_one()), whole);
                    let task = queue.task("pack").granularity(parts.border_slots);
                    task.launch(border_range, accesses, mesh_pack)?;
                }
                let accesses = (
                    after.write(one_to_one()),
                    u.read(one_to_one()),
                    a.read(one_to_one()),
                    b.read(one_to_one()),
                    c.read(one_to_one()),
                    to_a.read(one_to_one()),
                    to_b.read(one_to_one()),
                    to_c.read(one_to_one()),
                    u.read(own_part),
                    borders.read(neighbours.clone()),
                );
                queue.task("step").launch(range, accesses, mesh_step)?;
                std::mem::swap(&mut u, &mut after);
            }
            queue.barrier()
        })?;
        let found = queue.fence(&u)?.wait()?;
        let at_place = |&[part, at]: &[usize; 2]| found.as_slice()[part * parts.slots + at];
        Ok((time, parts.places.iter().map(at_place).collect()))
    })
}
