//! Items that update the same elements: results that do not depend on the cluster, and
//! errors where chunks would meet.

use std::collections::BTreeMap;

use celerity::prelude::*;
use celerity::{AtomicView, CheckLevel, Collectives, DeclareError, Error, Result};
use celerity_example_kernels::counting::{KINDS, count_kinds};

const CLUSTERS: [(usize, usize); 5] = [(1, 1), (1, 3), (2, 2), (3, 1), (4, 2)];

fn on_cluster<R: Send>(
    (nodes, devices): (usize, usize),
    program: impl Fn(&Queue) -> Result<R> + Sync,
) -> Result<R> {
    Config::default().nodes(nodes).devices(devices).run(program)
}

const RANGE: [usize; 2] = [12, 700];

fn values() -> Vec<i32> {
    (0..(RANGE[0] * RANGE[1]) as i32).map(|i| (i * i + 7 * i) % 1009 - 500).collect()
}

/// What each row of values has, by hand.
fn by_row<T>(of_row: impl Fn(&[i32]) -> T) -> Vec<T> {
    values().chunks(RANGE[1]).map(of_row).collect()
}

#[test]
fn items_count_together() {
    let mut expected = Vec::new();
    for row in by_row(|row| row.iter().map(|&value| value as u32).collect::<Vec<_>>()) {
        let mut counts = BTreeMap::new();
        row.iter().for_each(|value| *counts.entry(*value as usize % KINDS).or_default() += 1);
        expected.extend((0..KINDS).map(|kind| counts.get(&kind).copied().unwrap_or(0_u32)));
    }
    for cluster in CLUSTERS {
        let counts = on_cluster(cluster, |queue| {
            let values = values().into_iter().map(|value| value as u32).collect::<Vec<_>>();
            let values = queue.buffer_from(RANGE, values)?;
            let counts = queue.buffer_from([RANGE[0], KINDS], vec![0; RANGE[0] * KINDS])?;
            let accesses = (counts.update(slice(1)), values.read(one_to_one()));
            queue.task("count").launch(RANGE, accesses, count_kinds)?;
            Ok(queue.fence(&counts)?.wait()?.as_slice().to_vec())
        });
        assert_eq!(counts.unwrap(), expected, "{cluster:?}");
    }
}

/// Adds 1 to an element for each of 1000 items, in a task that `adapt` prepares.
fn crowd(
    adapt: impl for<'q> Fn(celerity::TaskBuilder<'q>) -> celerity::TaskBuilder<'q> + Sync,
) -> Result<f32> {
    on_cluster((2, 2), |queue| {
        let sum = queue.buffer_from(3, vec![0.0_f32; 3])?;
        let add = |_: Item<1>, sum: AtomicView<'_, f32, 1>| _ = sum.at([2]).fetch_add(1.0);
        adapt(queue.task("crowd")).parallel_for(1000, sum.update(all()), add)?;
        Ok(queue.fence(&sum)?.wait()?.as_slice()[2])
    })
}

#[test]
fn one_chunk_may_update_everything() {
    assert_eq!(crowd(|task| task.granularity(1000)).unwrap(), 1000.0);
}

#[test]
fn chunks_that_would_meet_are_refused_at_submission() {
    let error = crowd(|task| task.granularity(500)).expect_err("there are two chunks");
    let text = error.to_string();
    let Error::Declare(reason) = error else { panic!("not an error at submission: {text}") };
    assert!(matches!(*reason, DeclareError::UpdatesMeet { .. }), "{text}");
    assert!(text.contains("\"crowd\" at ") && text.contains("granularity"), "{text}");
}

/// Values are summed up in eight blocks, each with a sum of its own.
fn blocks(divide: usize) -> Result<Vec<u64>> {
    on_cluster((2, 2), |queue| {
        let values = queue.buffer_from(800, (0..800).collect::<Vec<u64>>())?;
        let sums = queue.buffer_from(8, vec![0_u64; 8])?;
        let block = mapper("block", move |chunk: Chunk<1>, _: [usize; 1]| {
            let first = chunk.offset[0] / divide;
            let end = (chunk.offset[0] + chunk.range[0]).div_ceil(divide);
            Subrange { offset: [first], range: [end - first] }
        });
        let accesses = (sums.update(block), values.read(one_to_one()));
        let task = queue.task("blocks").granularity(100);
        task.parallel_for(800, accesses, move |item, (sums, value)| {
            sums.at([item[0] / divide]).fetch_add(*value);
        })?;
        Ok(queue.fence(&sums)?.wait()?.as_slice().to_vec())
    })
}

#[test]
fn a_mapper_of_ones_own_gives_blocks_their_elements() {
    let expected: Vec<u64> = (0..8).map(|block| (100 * block..100 * (block + 1)).sum()).collect();
    assert_eq!(blocks(100).unwrap(), expected);
}

#[test]
fn a_mapper_that_lets_chunks_meet_is_reported() {
    let error = blocks(800).expect_err("all chunks update the first element").to_string();
    assert!(error.contains("\"blocks\"") && error.contains("does not keep the promise"), "{error}");
}

#[test]
fn an_element_that_was_not_declared_is_named() {
    let error = on_cluster((1, 1), |queue| {
        let sums = queue.buffer_from([4, 4], vec![0_u32; 16])?;
        let task = queue.task("astray");
        task.parallel_for([4, 1], sums.update(one_to_one()), |item, sums| {
            sums.at([item[0], 3]).store(1);
        })?;
        queue.barrier()
    });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("\"astray\"") && error.contains("may update: [0.."), "{error}");
}

#[test]
fn graphs_and_the_checker_know_an_update_and_its_mapper() {
    let path = std::env::temp_dir().join(format!("celerity-updates-{}.txt", std::process::id()));
    let config = Config::default().nodes(2).devices(2).check(CheckLevel::Full);
    let config = config.collectives(Collectives::Off).write_graphs(&path);
    let counts = config.run(|queue| {
        let counts = queue.buffer_from([4, 3], vec![0_u64; 12])?.named("counts");
        for _ in 0..3 {
            queue.task("count").parallel_for([4, 5], counts.update(slice(1)), |item, counts| {
                counts.at([item[0], item[1] % 3]).fetch_add(1);
            })?;
        }
        Ok(queue.fence(&counts)?.wait()?.as_slice().to_vec())
    });
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(counts.unwrap(), [6, 6, 3].repeat(4));
    assert!(text.contains("; update B0 \"counts\" slice(1)"), "{text}");
    // Each node updates rows of its own, and nobody reads others' before the fence.
    assert!(text.contains(" push T4.B0") && !text.contains(" push T3"), "{text}");
}
