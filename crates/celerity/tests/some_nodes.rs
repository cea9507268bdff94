//! Programs whose tasks run on some of the nodes, which exchange data among themselves: the results are
//! the same bits on any number of nodes, also on fewer than there is work for and on more.

use celerity::prelude::*;
use celerity::{CheckLevel, Collectives};

/// Runs a program on several clusters, of which it learns the number of nodes, and asserts that it
/// computes the same.
fn assert_same(program: impl Fn(&Queue, usize) -> celerity::Result<Vec<u64>> + Sync) {
    let run = |nodes, devices, collectives| {
        let config = Config::default().nodes(nodes).devices(devices).collectives(collectives);
        let config = config.check(CheckLevel::Full);
        config.run(|queue| program(queue, nodes)).expect("the program runs")
    };
    let expected = run(1, 1, Collectives::Off);
    for (nodes, devices) in [(2, 1), (3, 2), (5, 1), (7, 1)] {
        for collectives in [Collectives::Off, Collectives::Auto, Collectives::Always] {
            let found = run(nodes, devices, collectives);
            assert_eq!(found, expected, "{collectives} on {nodes} nodes");
        }
    }
}

#[test]
fn few_rows_are_read_as_a_whole_by_those_who_have_them_and_then_by_others() {
    assert_same(|queue, nodes| {
        let [mut from, mut to] = [(); 2].map(|()| queue.buffer::<u64, 1>(3));
        let wide = queue.buffer::<u64, 1>(16);
        queue.task("fill").parallel_for(3, from.write(one_to_one()), |item, x| {
            *x = item[0] as u64 + 1;
        })?;
        for step in 0..4 {
            let accesses = (from.read(all()), to.write(one_to_one()));
            queue.task("mix").parallel_for(3, accesses, move |item, (from, to)| {
                *to = 31 * from[[0]] + 7 * from[[1]] + from[[2]] + item[0] as u64 + step;
            })?;
            let accesses = (to.read(all()), wide.write(one_to_one()));
            queue.task("all").parallel_for(16, accesses, |item, (to, wide)| {
                *wide = to[[item[0] % 3]] ^ item[0] as u64;
            })?;
            // Those who have it already, and then another one.
            let accesses = (to.read(all()), from.write(one_to_one()));
            queue.task("again").parallel_for(3, accesses, |item, (to, from)| {
                *from = to[[2 - item[0]]];
            })?;
            queue.host_task("alone").on_node(nodes - 1).once(to.read_write(all()), |mut to| {
                (0..3).for_each(|at| to[[at]] += 5);
            })?;
            std::mem::swap(&mut from, &mut to);
        }
        let (from, wide) = (queue.fence(&from)?.wait()?, queue.fence(&wide)?.wait()?);
        Ok((0..3).map(|at| from[[at]]).chain((0..16).map(|at| wide[[at]])).collect())
    });
}

#[test]
fn a_small_square_is_turned_and_a_small_cube_is_shared() {
    assert_same(|queue, nodes| {
        let [mut from, mut to] = [(); 2].map(|()| queue.buffer::<u64, 2>([3, 3]));
        let cube = queue.buffer::<u64, 3>([2, 2, 2]);
        let sums = queue.buffer::<u64, 1>(2);
        queue.host_task("start").on_node(nodes / 2).once(from.write(all()), |mut from| {
            (0..9).for_each(|at| from[[at / 3, at % 3]] = at as u64);
        })?;
        for _ in 0..3 {
            let accesses = (from.read(transposed()), to.write(one_to_one()));
            queue.task("turn").parallel_for([3, 3], accesses, |item, (from, to)| {
                *to = 10 + from[[item[1], item[0]]];
            })?;
            std::mem::swap(&mut from, &mut to);
            let accesses = (from.read(all()), cube.write(one_to_one()));
            queue.task("cube").parallel_for([2, 2, 2], accesses, |item, (from, cube)| {
                *cube = from[[item[0], item[1]]] * 2 + item[2] as u64;
            })?;
            let accesses = (cube.read(all()), sums.write(one_to_one()));
            queue.task("sum").parallel_for(2, accesses, |item, (cube, sum)| {
                let of = |at: usize| cube[[item[0], at / 2, at % 2]];
                *sum = (0..4).map(of).sum();
            })?;
            let accesses = (sums.read(all()), from.read_write(all()));
            queue.host_task("add").on_node(nodes - 1).once(accesses, |(sums, mut from)| {
                from[[1, 1]] += sums[[0]] + sums[[1]];
            })?;
        }
        let (from, sums) = (queue.fence(&from)?.wait()?, queue.fence(&sums)?.wait()?);
        Ok((0..9).map(|at| from[[at / 3, at % 3]]).chain([sums[[0]], sums[[1]]]).collect())
    });
}

#[test]
fn one_item_and_none_exchange_nothing() {
    assert_same(|queue, nodes| {
        let (one, none) = (queue.buffer::<u64, 1>(1), queue.buffer::<u64, 1>(0));
        queue.task("one").parallel_for(1, one.write(one_to_one()), |_, x| *x = 4)?;
        for _ in 0..3 {
            let accesses = (one.read_write(all()), none.read(all()));
            queue
                .host_task("read")
                .on_node(nodes - 1)
                .once(accesses, |(mut one, _)| one[[0]] += 1)?;
            queue.task("nothing").parallel_for(0, none.write(one_to_one()), |_, x| *x = 1)?;
            let accesses = (none.read(all()), one.read_write(one_to_one()));
            queue.task("double").parallel_for(1, accesses, |_, (_, one)| *one *= 2)?;
        }
        Ok(vec![queue.fence(&one)?.wait()?[[0]]])
    });
}
