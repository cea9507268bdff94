//! Fast kernels, and items that have blocks of elements, on whatever devices there are, beside plain loops.
//! CPUs compute fast kernels as strict ones: the same bits; other devices come close. On a machine with GPUs
//! and a facade that has them, the same tests run there.

use celerity::prelude::*;
use celerity::{Platform, Result};
use celerity_example_kernels::blocks::{BLOCK, EDGE, SIDE, matmul_blocks};
use celerity_example_kernels::finance::{black_scholes_fast, contract, draw_contracts, prices};
use celerity_example_kernels::gravity::{CREW, kick_fast, kick_in_groups};
use celerity_example_kernels::linear::{element, matrix_fill};

/// Runs the program on CPUs and on what there is, on one node and on several, which share a GPU if need
/// be. The check is told whether bits are to be the same.
fn everywhere<R: Send>(program: impl Fn(&Queue) -> Result<R> + Sync, check: impl Fn(R, bool)) {
    let cpu = || Config::default().platform(Platform::Cpu);
    let there = || Config::from_env().unwrap();
    let cpus = [[1, 1], [1, 3], [2, 2], [5, 1]].map(|cluster| (cpu(), cluster, true));
    let others = [1, 2].map(|nodes| (there(), [nodes, 1], false));
    for (config, [nodes, devices], exact) in cpus.into_iter().chain(others) {
        let run = config.nodes(nodes).devices(devices).share_gpus(true).run(&program);
        check(run.unwrap_or_else(|error| panic!("on {nodes} × {devices}: {error}")), exact);
    }
}

/// Whether numbers are the same, or differ by no more than `tolerance` of the largest.
fn assert_close(actual: &[f64], expected: &[f64], exact: bool, tolerance: f64) {
    assert_eq!(actual.len(), expected.len());
    let largest = expected.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    let allowed = if exact { 0.0 } else { tolerance * largest };
    for (at, (a, e)) in actual.iter().zip(expected).enumerate() {
        assert!((a - e).abs() <= allowed, "at {at}: {a:e} instead of {e:e}");
    }
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&x| x.into()).collect()
}

#[test]
fn a_product_by_blocks_is_the_product() {
    let [rows, shared, columns] = [2 * EDGE, 24, EDGE];
    let program = |queue: &Queue| {
        let a = queue.buffer::<f32, 2>([rows, shared]);
        let b = queue.buffer::<f32, 2>([shared, columns]);
        let c = queue.buffer::<f32, 2>([rows, columns]);
        for (matrix, seed) in [(&a, 1), (&b, 2)] {
            let fill = matrix_fill { seed, scale: 1.0 };
            queue.task("fill").launch(matrix.range(), matrix.write(one_to_one()), fill)?;
        }
        let of_a = per_dimension([Side::along(0).stride(BLOCK), Side::all()]);
        let of_b = per_dimension([Side::all(), Side::along(1).stride(BLOCK)]);
        let accesses = (c.write(blocks([BLOCK; 2])), a.read(of_a), b.read(of_b));
        let items = [rows / BLOCK, columns / BLOCK];
        queue.task("product").launch(
            nd_range(items, [SIDE; 2]),
            accesses,
            matmul_blocks { shared },
        )?;
        Ok(queue.fence(&c)?.wait()?.into_vec())
    };
    let mut expected = vec![0.0; rows * columns];
    for (at, sum) in expected.iter_mut().enumerate() {
        for k in 0..shared {
            *sum += element([at / columns, k], 1, 1.0) * element([k, at % columns], 2, 1.0);
        }
    }
    everywhere(program, |c, exact| assert_close(&wide(&c), &wide(&expected), exact, 1e-6));
}

#[test]
fn bodies_are_pulled_as_in_the_strict_form() {
    // Whole groups, of which nodes and devices have unequal shares.
    let bodies = 3 * CREW;
    let places: Vec<[f64; 4]> = (0..bodies)
        .map(|at| [7, 11, 13, 17].map(|by| ((at * by + 3 * by) % 101) as f64 / 101.0))
        .collect();
    let program = |queue: &Queue| {
        let places = queue.buffer_from(bodies, places.clone())?;
        let kicked = |is_fast: bool| {
            let velocities = queue.buffer_from(bodies, vec![[0.0; 3]; bodies])?;
            let accesses = (velocities.read_write(one_to_one()), places.read(all()));
            let task = queue.task("kick");
            match is_fast {
                true => task.launch(nd_range(bodies, CREW), accesses, kick_fast::new(0.1, 0.5))?,
                false => {
                    task.launch(nd_range(bodies, CREW), accesses, kick_in_groups::new(0.1, 0.5))?
                }
            };
            Ok::<_, celerity::Error>(queue.fence(&velocities)?.wait()?.into_vec())
        };
        Ok((kicked(true)?, kicked(false)?))
    };
    // The order of sums is another one, on CPUs too.
    everywhere(program, |(fast, strict), _| {
        assert_close(fast.as_flattened(), strict.as_flattened(), false, 1e-12);
    });
}

#[test]
fn prices_are_those_of_the_strict_form() {
    for count in [1, 2, 1000] {
        let program = |queue: &Queue| {
            let contracts = queue.buffer::<[f32; 3], 1>(count);
            let prices = queue.buffer::<[f32; 2], 1>(count);
            queue.task("draw").launch(count, contracts.write(one_to_one()), draw_contracts)?;
            let accesses = (prices.write(one_to_one()), contracts.read(one_to_one()));
            let kernel = black_scholes_fast { elapsed: 0.0, rate: 0.02, volatility: 0.3 };
            queue.task("price").launch(count, accesses, kernel)?;
            Ok(queue.fence(&prices)?.wait()?.into_vec())
        };
        let expected: Vec<_> = (0..count).map(|at| prices(contract(at), 0.02, 0.3)).collect();
        everywhere(program, |prices, exact| {
            let (actual, expected) = (prices.as_flattened(), expected.as_flattened());
            assert_close(&wide(actual), &wide(expected), exact, 3e-6);
        });
    }
}

/// Each item writes its number into its block; what no item has is as it was.
fn number_blocks<const D: usize>(items: [usize; D], size: [usize; D], buffer: [usize; D]) {
    let program = |queue: &Queue| {
        let count = buffer.iter().product();
        let out = queue.buffer_from(buffer, vec![usize::MAX; count])?;
        let accesses = out.read_write(blocks(size));
        queue.task("number").parallel_for(items, accesses, move |item, mut block| {
            let part = block.bounds();
            assert_eq!(part.range(), size);
            let number = item.linear_id();
            for at in 0..part.volume() {
                let mut rest = at;
                let mut index = part.min();
                for dim in (0..D).rev() {
                    (index[dim], rest) = (index[dim] + rest % size[dim], rest / size[dim]);
                }
                *block.get_mut(index).expect("inside of the block") = number;
            }
        })?;
        Ok(queue.fence(&out)?.wait()?.into_vec())
    };
    let owner = |at: usize| {
        let (mut rest, mut index) = (at, [0; D]);
        for dim in (0..D).rev() {
            (index[dim], rest) = (rest % buffer[dim], rest / buffer[dim]);
        }
        let of: [usize; D] = std::array::from_fn(|dim| index[dim] / size[dim]);
        match (0..D).all(|dim| of[dim] < items[dim]) {
            true => (0..D).fold(0, |number, dim| number * items[dim] + of[dim]),
            false => usize::MAX,
        }
    };
    everywhere_on_cpus(program, |out| {
        for (at, number) in out.into_iter().enumerate() {
            assert_eq!(number, owner(at), "element {at} of {buffer:?}");
        }
    });
}

/// Closures run on CPUs alone.
fn everywhere_on_cpus<R: Send>(program: impl Fn(&Queue) -> Result<R> + Sync, check: impl Fn(R)) {
    for [nodes, devices] in [[1, 1], [1, 3], [2, 2], [5, 1]] {
        let config = Config::default().platform(Platform::Cpu).nodes(nodes).devices(devices);
        check(config.run(&program).unwrap_or_else(|error| panic!("{nodes} × {devices}: {error}")));
    }
}

#[test]
fn every_item_has_its_block() {
    number_blocks([5], [3], [17]);
    number_blocks([1], [4], [4]);
    number_blocks([0], [4], [4]);
    number_blocks([3, 2], [2, 5], [6, 10]);
    number_blocks([1, 1], [1, 1], [1, 1]);
    number_blocks([2, 3, 2], [3, 1, 2], [7, 3, 4]);
}

#[test]
fn blocks_that_are_not_there_are_an_error_that_names_the_buffer() {
    let outcome = Config::default().platform(Platform::Cpu).run(|queue| {
        let out = queue.buffer::<f32, 1>(10).named("out");
        queue.task("fill").parallel_for(4, out.write(blocks([3])), |_, _| {})?;
        Ok(())
    });
    let error = outcome.unwrap_err().to_string();
    assert!(error.contains("out") && error.contains("fill"), "{error}");
}
