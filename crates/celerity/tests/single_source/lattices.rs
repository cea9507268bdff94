//! Fluids as lattice Boltzmann methods see them: as many buffers as there are directions, in lists.

use celerity::Result;
use celerity::prelude::*;
use celerity_example_kernels::lattice::{
    self, DIRECTIONS, IN_SPACE, collide_in_space, copy_of_whole, equilibrium_in_space,
    lattice_fill, lattice_step, space_fill, space_step,
};

use crate::clusters;

/// A fluid after some steps: what moves in each direction.
fn flow(
    queue: &Queue,
    range: [usize; 2],
    steps: usize,
    block: Option<[usize; 2]>,
) -> Result<Vec<Vec<f32>>> {
    let task = |name| {
        let task = queue.task(name);
        if let Some(block) = block { task.block(block) } else { task }
    };
    let fluid = || DIRECTIONS.map(|_| queue.buffer::<f32, 2>(range));
    let [mut now, mut next] = [fluid(), fluid()];
    let all = now.each_ref().map(|amount| amount.write(one_to_one()));
    task("fill").launch(range, all, lattice_fill)?;
    for _ in 0..steps {
        let around = neighborhood([1, 1]).periodic();
        let to = next.each_ref().map(|amount| amount.write(one_to_one()));
        let from = now.each_ref().map(|amount| amount.read(around));
        task("step").launch(range, (to, from), lattice_step { rate: 1.2 })?;
        std::mem::swap(&mut now, &mut next);
    }
    now.iter().map(|amount| Ok(queue.fence(amount)?.wait()?.as_slice().to_vec())).collect()
}

/// The same on one thread.
fn flow_of_one([rows, columns]: [usize; 2], steps: usize) -> Vec<Vec<f32>> {
    let cells = || (0..rows).flat_map(|y| (0..columns).map(move |x| [y, x]));
    let middle = [rows / 2, columns / 3];
    let mut now: Vec<[f32; 9]> = cells().map(|cell| lattice::initial(cell, middle)).collect();
    for _ in 0..steps {
        let arrived = |[y, x]: [usize; 2]| {
            std::array::from_fn(|at| {
                let [down, right] = DIRECTIONS[at];
                let y = (y + rows).wrapping_add_signed(-down) % rows;
                let x = (x + columns).wrapping_add_signed(-right) % columns;
                now[y * columns + x][at]
            })
        };
        now = cells().map(|cell| lattice::collide(arrived(cell), 1.2)).collect();
    }
    (0..9).map(|at| now.iter().map(|cell| cell[at]).collect()).collect()
}

/// In blocks of any shape.
#[test]
fn a_kernel_has_as_many_views_as_a_lattice_has_directions() {
    let blocks =
        [None, Some([1, 256]), Some([16, 16]), Some([3, 5]), Some([1024, 1]), Some([1, 1000])];
    for range in [[40, 50], [3, 200], [130, 4]] {
        let expected = flow_of_one(range, 7);
        for (cluster, block) in clusters().flat_map(|it| blocks.map(|block| (it.clone(), block))) {
            let found = cluster.run(|queue| flow(queue, range, 7, block)).unwrap();
            assert_eq!(found, expected, "{range:?} in {block:?} on {cluster:?}");
        }
    }
}

/// A fluid in space after some steps, by lists of 19 buffers; some of them whole on each device, if they are to be apart.
fn flow_in_space(
    queue: &Queue,
    range: [usize; 3],
    steps: usize,
    are_apart: bool,
) -> Result<Vec<Vec<f32>>> {
    let fluid = || IN_SPACE.map(|_| queue.buffer::<f32, 3>(range));
    let [mut now, mut next] = [fluid(), fluid()];
    for fluid in [&now, &next].into_iter().filter(|_| are_apart) {
        for (at, amount) in fluid.iter().enumerate().filter(|(at, _)| at % 3 != 1) {
            amount.fill(at as f32)?;
            let copies = queue.buffer::<f32, 3>(range);
            let accesses = (copies.write(one_to_one()), amount.read(all()));
            queue.task("whole").launch(range, accesses, copy_of_whole)?;
        }
    }
    let all = now.each_ref().map(|amount| amount.write(one_to_one()));
    queue.task("fill").launch(range, all, space_fill)?;
    for _ in 0..steps {
        let to = next.each_ref().map(|amount| amount.write(one_to_one()));
        let from = now.each_ref().map(|amount| amount.read(neighborhood([1; 3]).periodic()));
        queue.task("step").launch(range, (to, from), space_step { rate: 1.2 })?;
        std::mem::swap(&mut now, &mut next);
    }
    now.iter().map(|amount| Ok(queue.fence(amount)?.wait()?.as_slice().to_vec())).collect()
}

/// The same on one thread.
fn flow_in_space_of_one(range: [usize; 3], steps: usize) -> Vec<Vec<f32>> {
    let [depth, height, width] = range;
    let cells = || {
        (0..depth * height * width)
            .map(|at| [at / (height * width), at / width % height, at % width])
    };
    let initial = |cell: [usize; 3]| {
        let distance: usize = (0..3).map(|dim| cell[dim].abs_diff(range[dim] / 2).pow(2)).sum();
        equilibrium_in_space(1.0 + 0.1 / (1.0 + distance as f32), [0.0; 3])
    };
    let mut now: Vec<[f32; 19]> = cells().map(initial).collect();
    for _ in 0..steps {
        let arrived = |cell: [usize; 3]| {
            std::array::from_fn(|at| {
                let [z, y, x] = [0, 1, 2].map(|dim| {
                    (cell[dim] + range[dim]).wrapping_add_signed(-IN_SPACE[at][dim]) % range[dim]
                });
                now[(z * height + y) * width + x][at]
            })
        };
        now = cells().map(|cell| collide_in_space(arrived(cell), 1.2)).collect();
    }
    (0..19).map(|at| now.iter().map(|cell| cell[at]).collect()).collect()
}

/// More than all versions of the language that GPUs are given take parameters of.
#[test]
fn a_kernel_takes_38_views_in_lists() {
    for range in [[5, 6, 8], [3, 4, 33], [17, 2, 5]] {
        let expected = flow_in_space_of_one(range, 4);
        for (cluster, are_apart) in clusters().flat_map(|it| [(it.clone(), false), (it, true)]) {
            let flow = |queue: &Queue| flow_in_space(queue, range, 4, are_apart);
            let found = cluster.run(flow).unwrap();
            assert_eq!(found, expected, "{range:?} on {cluster:?}, apart: {are_apart}");
        }
    }
}
