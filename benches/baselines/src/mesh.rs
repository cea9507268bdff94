//! Heat on a sphere of triangles: parts over processes. What other parts need is packed and sent, and
//! while it travels, triangles are computed that have none of another part beside them.

#[path = "../../../crates/celerity/examples/mesh/heat.rs"]
mod heat;
#[path = "../../../crates/celerity/examples/mesh/obj.rs"]
#[expect(dead_code, reason = "nothing is read from files here")]
mod obj;
mod part;
#[path = "../../../crates/celerity/examples/mesh/partition.rs"]
mod partition;

use std::time::Duration;

use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::CommunicatorCollectives;

use crate::spread::{compare, timed};
use crate::{PROGRAM_WINDOWS, place, shortest};
use heat::Heat;
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
        let mesh = Mesh::sphere(LEVELS).expect("these are not too many triangles");
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
        let initial = (0..sphere.cells.len()).map(|triangle| sphere.initial(triangle));
        let mut heat = Heat::new(queue, parts, initial)?;
        let time = shortest(PROGRAM_WINDOWS, || {
            (0..STEPS).try_for_each(|_| heat.step(queue))?;
            queue.barrier()
        })?;
        Ok((time, heat.temperatures(queue)?))
    })
}
