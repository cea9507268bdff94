//! A chain of ten host tasks that do nothing, one after the other because of a host object or of
//! barriers between them, and one barrier alone (IJPP 2022, fig. 6).

use std::time::{Duration, Instant};

use celerity::{Config, HostObject, Queue, Result};
use criterion::{BenchmarkId, Criterion};

/// Tasks of a chain, as in the paper.
const TASKS: usize = 10;

/// Submits a chain; a barrier follows.
type Chain = fn(&Queue, &HostObject<u64>) -> Result<()>;

/// Of 1 to 4 nodes of this process.
pub(crate) fn chains(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("model: a chain of 10 host tasks");
    let chains: [(&str, Chain); 3] = [
        ("one barrier alone", |_, _| Ok(())),
        ("by side effects", by_side_effects),
        ("by barriers", by_barriers),
    ];
    for (name, chain) in chains {
        for nodes in [1, 2, 4] {
            group.bench_function(BenchmarkId::new(name, format!("{nodes} nodes")), |bencher| {
                bencher.iter_custom(|times| time(nodes, times, chain));
            });
        }
    }
    group.finish();
}

/// How long `times` chains take, each with a barrier behind it, on node 0.
fn time(nodes: usize, times: u64, chain: Chain) -> Duration {
    let cluster = Config::default().nodes(nodes).devices(1);
    let timed = cluster.run(|queue| {
        let object = queue.host_object(0);
        queue.barrier()?;
        let start = Instant::now();
        for _ in 0..times {
            chain(queue, &object)?;
            queue.barrier()?;
        }
        Ok(start.elapsed())
    });
    timed.unwrap_or_else(|error| panic!("{error}"))
}

fn by_side_effects(queue: &Queue, object: &HostObject<u64>) -> Result<()> {
    (0..TASKS).try_for_each(|_| {
        queue.host_task("link").once(object.sequential(), |count| *count += 1)?;
        Ok(())
    })
}

/// The barrier behind the last one is the caller's.
fn by_barriers(queue: &Queue, _: &HostObject<u64>) -> Result<()> {
    (0..TASKS).try_for_each(|nth| {
        if nth > 0 {
            queue.barrier()?;
        }
        queue.host_task("link").once((), |()| ())?;
        Ok(())
    })
}
