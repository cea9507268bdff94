//! A step of Jacobi's method whose greatest change the program looks at in each step: at once, or
//! some steps later, while those after it are under way; and the same steps without a look.

use std::time::{Duration, Instant};

use celerity::{
    Config, LookBehind, Max, NeighborhoodItem, Queue, Reducer, Result, neighborhood_along_axes,
    one_to_one,
};
use criterion::{BenchmarkId, Criterion};

/// How the program looks at the change.
#[derive(Clone, Copy)]
enum Look {
    Never,
    /// When so many later steps have been submitted.
    Behind(usize),
}

/// Cells along each edge of a plate.
const SIZES: [usize; 2] = [64, 512];

/// Time per step, of 1 and 2 nodes of this process.
pub(crate) fn looks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("model: a residual in each step");
    for size in SIZES {
        for nodes in [1, 2] {
            for (name, look) in [
                ("never looked at", Look::Never),
                ("waited for", Look::Behind(0)),
                ("looked at 8 steps later", Look::Behind(8)),
            ] {
                let place = BenchmarkId::new(name, format!("{size}² cells, {nodes} nodes"));
                group.bench_function(place, |bencher| {
                    bencher.iter_custom(|steps| time(nodes, size, steps, look));
                });
            }
        }
    }
    group.finish();
}

/// How long so many steps take, on node 0.
fn time(nodes: usize, size: usize, steps: u64, look: Look) -> Duration {
    let cluster = Config::default().nodes(nodes).devices(1);
    let timed = cluster.run(|queue| relax(queue, size, steps, look));
    timed.unwrap_or_else(|error| panic!("{error}"))
}

fn relax(queue: &Queue, size: usize, steps: u64, look: Look) -> Result<Duration> {
    let cells = (0..size * size).map(|cell| (cell % 7) as f32).collect::<Vec<_>>();
    let mut plate = queue.buffer_from([size; 2], cells.clone())?;
    let mut next = queue.buffer_from([size; 2], cells)?;
    let change = queue.buffer::<f32, 0>([]);
    let mut behind = LookBehind::new(if let Look::Behind(ahead) = look { ahead } else { 0 });
    queue.barrier()?;
    let start = Instant::now();
    for _ in 0..steps {
        let around = plate.read(neighborhood_along_axes([1, 1]));
        let accesses = (around, next.write(one_to_one()), change.reduce(Max));
        queue.task("relax").parallel_for([size; 2], accesses, relax_cell)?;
        std::mem::swap(&mut plate, &mut next);
        if let Look::Behind(_) = look {
            let seen = behind.look(queue.fence(&change)?)?;
            assert!(seen.is_none_or(|change| change[[]] >= 0.0));
        }
    }
    queue.barrier()?;
    Ok(start.elapsed())
}

fn relax_cell(
    _: celerity::Item<2>,
    (around, next, change): (NeighborhoodItem<'_, f32, 2>, &mut f32, Reducer<'_, f32, Max>),
) {
    let neighbours = [[-1, 0], [1, 0], [0, -1], [0, 1]].map(|offset| around.clamped(offset));
    *next = 0.25 * neighbours.iter().sum::<f32>();
    change.combine((*next - around.clamped([0, 0])).abs());
}
