//! Programs whose data moves in collective operations: the results are the same bits as between
//! pairs of nodes, on any number of nodes and devices.

use celerity::prelude::*;
use celerity::{Collectives, Sum};

/// What a program computes, as bits.
type Bits = Vec<u64>;

/// Runs a program in all modes on several clusters, and asserts that it computes the same.
fn assert_same(program: impl Fn(&Queue) -> celerity::Result<Bits> + Sync) {
    let run = |nodes, devices, collectives| {
        let config = Config::default().nodes(nodes).devices(devices).collectives(collectives);
        config.run(&program).expect("the program runs")
    };
    let expected = run(1, 1, Collectives::Off);
    for (nodes, devices) in [(1, 1), (2, 1), (3, 2), (4, 1)] {
        let modes = [Collectives::Off, Collectives::Paper, Collectives::Auto, Collectives::Always];
        for collectives in modes {
            let found = run(nodes, devices, collectives);
            assert_eq!(found, expected, "{collectives} on {nodes} nodes");
        }
    }
}

fn bits(values: impl IntoIterator<Item = f64>) -> Bits {
    values.into_iter().map(f64::to_bits).collect()
}

const N: usize = 24;

#[test]
fn all_nodes_read_everything() {
    assert_same(|queue| {
        let [mut from, mut to] = [(); 2].map(|()| queue.buffer::<f64, 1>(N));
        queue.task("fill").parallel_for(N, from.write(one_to_one()), |item, x| {
            *x = item[0] as f64 / 3.0;
        })?;
        for _ in 0..4 {
            let accesses = (from.read(all()), to.write(one_to_one()));
            queue.task("mix").parallel_for(N, accesses, |item, (from, to)| {
                *to = (0..N).map(|at| from[[at]]).sum::<f64>() / (1.0 + item[0] as f64);
            })?;
            std::mem::swap(&mut from, &mut to);
        }
        let result = queue.fence(&from)?.wait()?;
        Ok(bits((0..N).map(|at| result[[at]])))
    });
}

#[test]
fn rows_become_columns() {
    assert_same(|queue| {
        let [mut from, mut to] = [(); 2].map(|()| queue.buffer::<f64, 2>([N, N]));
        queue.task("fill").parallel_for([N, N], from.write(one_to_one()), |item, x| {
            *x = (item[0] * N + item[1]) as f64;
        })?;
        for _ in 0..3 {
            let accesses = (from.read(transposed()), to.write(one_to_one()));
            queue.task("transpose").parallel_for([N, N], accesses, |item, (from, to)| {
                *to = 1.0 + from[[item[1], item[0]]];
            })?;
            std::mem::swap(&mut from, &mut to);
        }
        let result = queue.fence(&from)?.wait()?;
        Ok(bits((0..N * N).map(|at| result[[at / N, at % N]])))
    });
}

#[test]
fn what_one_node_has_goes_to_all_and_comes_back() {
    assert_same(|queue| {
        let [table, parts] = [(); 2].map(|()| queue.buffer::<f64, 1>(N));
        let total = queue.buffer::<f64, 0>([]);
        queue.task("start").parallel_for(N, parts.write(one_to_one()), |item, x| {
            *x = item[0] as f64;
        })?;
        for _ in 0..3 {
            let accesses = (parts.read(all()), table.write(all()));
            queue.host_task("on one node").once(accesses, |(parts, mut table)| {
                for at in 0..N {
                    table[[at]] = parts[[N - 1 - at]] + 0.5;
                }
            })?;
            let accesses = (table.read(one_to_one()), parts.write(one_to_one()));
            queue
                .task("each its part")
                .parallel_for(N, accesses, |_, (table, x)| *x = 2.0 * table)?;
            let accesses = (table.read(all()), parts.read_write(one_to_one()), total.reduce(Sum));
            queue.task("each everything").parallel_for(N, accesses, |_, (table, x, total)| {
                *x += table[[N / 2]];
                total.combine(*x);
            })?;
            queue.barrier()?;
        }
        let (parts, total) = (queue.fence(&parts)?.wait()?, queue.fence(&total)?.wait()?);
        Ok(bits((0..N).map(|at| parts[[at]]).chain([total[[]]])))
    });
}
