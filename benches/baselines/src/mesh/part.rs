//! A part of a mesh by hand: its triangles, and those of other parts that are beside them.

use celerity_example_kernels::mesh::next;
use mpi::request::multiple_scope;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Destination, Source};

use super::Sphere;
use super::partition::{Cell, Parts};
use crate::spread::at_rank;

/// A part of the sphere: first its triangles that have none of another part beside them, then the
/// others, then copies of those of other parts, part by part.
pub(super) struct Part {
    pub(super) triangles: Vec<u32>,
    inner: usize,
    /// Of each triangle those beside it, and how much flows.
    sides: Vec<([u32; 3], [f32; 3])>,
    neighbours: Vec<Neighbour>,
    /// Temperatures, of copies as well, and those after a step.
    pub(super) now: Vec<f32>,
    after: Vec<f32>,
}

/// Another part: what of ours it needs, and how many of its triangles we need.
struct Neighbour {
    rank: usize,
    needs: Vec<u32>,
    packed: Vec<f32>,
    copies: usize,
}

impl Part {
    pub(super) fn new(sphere: &Sphere, rank: usize, nodes: usize) -> Self {
        let Sphere { cells, centres } = sphere;
        let places = Parts::new(cells, centres, nodes).places;
        let part_of = |triangle: u32| places[triangle as usize].part;
        let beside = |triangle: u32| cells[triangle as usize].beside.into_iter().flatten();
        let touches = |triangle, part| beside(triangle).any(|other| part_of(other) == part);
        let all = 0..cells.len() as u32;
        let is_inner = |&triangle: &u32| beside(triangle).all(|other| part_of(other) == rank);
        let own = all.clone().filter(|&triangle| part_of(triangle) == rank);
        let (mut triangles, border): (Vec<u32>, Vec<u32>) = own.partition(is_inner);
        let inner = triangles.len();
        triangles.extend(&border);

        // Both parts list what one needs of the other in the order of the mesh.
        let mut known = triangles.clone();
        let neighbour = |other: usize| {
            let is_needed = |&at: &usize| touches(triangles[at], other);
            let needs: Vec<_> =
                (inner..triangles.len()).filter(is_needed).map(|at| at as u32).collect();
            let before = known.len();
            known.extend(all.clone().filter(|&at| part_of(at) == other && touches(at, rank)));
            let packed = vec![0.0; needs.len()];
            Neighbour { rank: other, needs, packed, copies: known.len() - before }
        };
        let others = (0..nodes).filter(|&other| other != rank);
        let neighbours = others.map(neighbour).filter(|other| other.copies > 0).collect();
        let mut locals = vec![u32::MAX; cells.len()];
        (0..).zip(&known).for_each(|(at, &triangle)| locals[triangle as usize] = at);
        let sides_of = |&triangle: &u32| {
            let Cell { beside, conductances } = cells[triangle as usize];
            (beside.map(|other| locals[other.unwrap_or(triangle) as usize]), conductances)
        };
        let sides = triangles.iter().map(sides_of).collect();
        let now: Vec<_> = known.iter().map(|&at| sphere.initial(at as usize)).collect();
        Self { triangles, inner, sides, neighbours, after: now.clone(), now }
    }

    pub(super) fn step(&mut self, world: &SimpleCommunicator) {
        let Self { inner, sides, neighbours, now, after, triangles } = self;
        let (own, mut copies) = now.split_at_mut(triangles.len());
        for Neighbour { needs, packed, .. } in &mut *neighbours {
            packed.iter_mut().zip(needs).for_each(|(packed, at)| *packed = own[*at as usize]);
        }
        let own = &*own;
        multiple_scope(2 * neighbours.len(), |scope, requests| {
            for neighbour in &*neighbours {
                let peer = at_rank(world, neighbour.rank);
                let (theirs, rest) = std::mem::take(&mut copies).split_at_mut(neighbour.copies);
                copies = rest;
                requests.add(peer.immediate_receive_into(scope, theirs));
                requests.add(peer.immediate_send(scope, &neighbour.packed[..]));
            }
            advance(&mut after[..*inner], own, &own[..*inner], &sides[..*inner]);
            requests.wait_all(&mut Vec::with_capacity(2 * neighbours.len()));
        });
        let border = *inner..triangles.len();
        advance(&mut after[border.clone()], now, &now[border.clone()], &sides[border]);
        std::mem::swap(&mut self.now, &mut self.after);
    }
}

/// A step of some triangles, which are `here` now.
fn advance(after: &mut [f32], all: &[f32], here: &[f32], sides: &[([u32; 3], [f32; 3])]) {
    for ((after, &here), &(beside, conductances)) in after.iter_mut().zip(here).zip(sides) {
        *after = next(here, beside.map(|other| all[other as usize]), conductances);
    }
}
