//! Tasks that read one part of a buffer and write another, or write several: what they compute
//! on any cluster, and what they are told if the parts are not separate.

use std::sync::atomic::{AtomicUsize, Ordering};

use celerity::prelude::*;
use celerity::{CheckLevel, DeclareError, DeviceMemory, Error, Result, RunError};

/// Clusters of one node, of several devices, of several nodes, and of devices that share a
/// memory. Each schedule is checked.
fn clusters() -> impl Iterator<Item = Config> {
    let shapes = [(1, 1), (1, 2), (1, 3), (2, 1), (3, 2), (4, 3)];
    let own =
        shapes.into_iter().map(|(nodes, devices)| Config::default().nodes(nodes).devices(devices));
    let shared = [(1, 3), (2, 2)].into_iter().map(|(nodes, devices)| {
        Config::default().nodes(nodes).devices(devices).device_memory(DeviceMemory::Host)
    });
    own.chain(shared).map(|config| config.check(CheckLevel::Full))
}

#[track_caller]
fn assert_everywhere<R>(expected: &R, program: impl Fn(&Queue) -> Result<R> + Sync)
where
    R: Send + PartialEq + std::fmt::Debug,
{
    for cluster in clusters() {
        let found = cluster.run(&program).unwrap_or_else(|error| panic!("{error} on {cluster:?}"));
        assert_eq!(found, *expected, "on {cluster:?}");
    }
}

/// The message and the error of a program that fails the same everywhere.
fn error_of<R: Send>(program: impl Fn(&Queue) -> Result<R> + Sync) -> Vec<Error> {
    let errors = clusters().map(|cluster| match cluster.run(&program) {
        Ok(_) => panic!("the program should have failed on {cluster:?}"),
        Err(error) => error,
    });
    errors.collect()
}

fn mix(values: impl IntoIterator<Item = u64>) -> u64 {
    values.into_iter().fold(7, |mixed: u64, value| {
        (mixed ^ value).wrapping_mul(6_364_136_223_846_793_005).rotate_left(29)
    })
}

/// Each row is made of all rows before it, in buffers from narrow to wide.
#[test]
fn a_history_grows_row_by_row() {
    for width in [1, 2, 7, 64] {
        let steps = 9;
        let mut rows = vec![(0..width as u64).collect::<Vec<_>>()];
        for _ in 1..steps {
            let next = |x: usize| mix(rows.iter().map(|row| row[(x * 5 + 1) % width] ^ row[x]));
            let next = (0..width).map(next).collect();
            rows.push(next);
        }
        assert_everywhere(&rows.concat(), |queue| {
            let history = queue.buffer::<u64, 2>([steps, width]).named("history");
            let first = history.write(one_to_one());
            queue.task("begin").parallel_for([1, width], first, |item, x| *x = item[1] as u64)?;
            for step in 1..steps {
                let before = fixed(Subrange::new([0, 0], [step, width]));
                let accesses = (history.read(before), history.write(one_to_one()));
                let task = queue.task("step").offset([step, 0]).hint(Hint::SplitAlong(1));
                task.parallel_for([1, width], accesses, move |item, (history, new)| {
                    let [step, x] = item.id();
                    let row = |row: usize| history[[row, (x * 5 + 1) % width]] ^ history[[row, x]];
                    *new = mix((0..step).map(row));
                })?;
            }
            Ok(queue.fence(&history)?.wait()?.into_vec())
        });
    }
}

/// The start, the middle and the end of a line read what is before and behind them.
#[test]
fn any_part_of_a_line_can_be_written_beside_the_others() {
    const LENGTH: usize = 30;
    let mut expected: Vec<u64> = (0..LENGTH as u64).collect();
    let parts = [(0, 10), (11, 1), (12, 18), (5, 20), (29, 1), (0, 1)];
    for (start, len) in parts {
        let others = |at: &usize| !(start..start + len).contains(at);
        let read: Vec<u64> = (0..LENGTH).filter(others).map(|at| expected[at]).collect();
        for (at, value) in expected.iter_mut().enumerate().skip(start).take(len) {
            *value = mix([at as u64, mix(read.iter().copied())]);
        }
    }
    assert_everywhere(&expected, |queue| {
        let line = queue.buffer_from(LENGTH, (0..LENGTH as u64).collect::<Vec<_>>())?;
        for (start, len) in parts {
            let end = start + len;
            let before = fixed(Subrange::new([0], [start]));
            let behind = fixed(Subrange::new([end], [LENGTH - end]));
            let accesses = (line.read(before), line.read_write(one_to_one()), line.read(behind));
            let task = queue.task("middle").offset([start]);
            task.parallel_for_rows(len, accesses, |row, (before, out, behind)| {
                let read = mix(before.iter().chain(behind.iter()).copied());
                for (i, out) in out.iter_mut().enumerate() {
                    *out = mix([row.id(i)[0] as u64, read]);
                }
            })?;
        }
        Ok(queue.fence(&line)?.wait()?.into_vec())
    });
}

/// A plane of a cube from the one below it, through a mapper of the user's that follows chunks.
#[test]
fn a_mapper_of_ones_own_reads_beside_the_chunk() {
    const SIDES: [usize; 3] = [5, 6, 4];
    let plane = SIDES[1] * SIDES[2];
    let mut expected: Vec<u64> = (0..plane as u64).collect();
    for at in plane..plane * SIDES[0] {
        expected.push(mix([expected[at - plane]]));
    }
    assert_everywhere(&expected, |queue| {
        let cube = queue.buffer::<u64, 3>(SIDES).named("cube");
        let [depth, height, width] = SIDES;
        queue.task("ground").parallel_for(
            [1, height, width],
            cube.write(one_to_one()),
            |item, x| *x = item.linear_id() as u64,
        )?;
        for level in 1..depth {
            let below = mapper("below", |chunk: Chunk<3>, _: [usize; 3]| Subrange {
                offset: [chunk.offset[0] - 1, chunk.offset[1], chunk.offset[2]],
                range: chunk.range,
            });
            let task = queue.task("rise").offset([level, 0, 0]).hint(Hint::SplitAlong(1));
            let accesses = (cube.write(one_to_one()), cube.read(below));
            task.parallel_for([1, height, width], accesses, |item, (x, below)| {
                let [z, y, x_] = item.id();
                *x = mix([below[[z - 1, y, x_]]]);
            })?;
        }
        Ok(queue.fence(&cube)?.wait()?.into_vec())
    });
}

/// Even rows from odd ones and back, each by two writes of one task.
#[test]
#[allow(unsafe_code)]
fn a_task_can_write_two_parts() {
    const SIZE: [usize; 2] = [12, 5];
    let value = |row: usize, x: usize| mix([row as u64, x as u64]);
    let expected: Vec<u64> = (0..60).map(|at| value(at / 5, at % 5)).collect();
    assert_everywhere(&expected, |queue| {
        let all = queue.buffer::<u64, 2>(SIZE);
        // SAFETY: rows of the lower half belong to different rows of the upper one.
        let mirrored = unsafe {
            disjoint_mapper("mirrored", |chunk: Chunk<2>, size: [usize; 2]| Subrange {
                offset: [size[0] - chunk.offset[0] - chunk.range[0], chunk.offset[1]],
                range: chunk.range,
            })
        };
        let accesses = (all.write(one_to_one()), all.write(mirrored));
        queue.task("both").parallel_for([6, 5], accesses, move |item, (upper, mut lower)| {
            let [row, x] = item.id();
            *upper = value(row, x);
            lower[[11 - row, x]] = value(11 - row, x);
        })?;
        Ok(queue.fence(&all)?.wait()?.into_vec())
    });
}

#[test]
fn a_host_task_reads_and_writes_parts() {
    let expected = vec![1, 2, 3, 3, 2, 1, 60, 70];
    assert_everywhere(&expected, |queue| {
        let line = queue.buffer_from(8, vec![1_u64, 2, 3, 0, 0, 0, 6, 7])?;
        let part = |offset: usize, range: usize| fixed(Subrange::new([offset], [range]));
        let accesses = (line.write(part(3, 3)), line.read(part(0, 3)), line.read_write(part(6, 2)));
        queue.host_task("mirror").once(accesses, |(mut mirrored, first, mut last)| {
            for at in 0..3 {
                mirrored[5 - at] = first[at];
                assert!(first.get([3]).is_none(), "not what is written");
            }
            last[6] *= 10;
            last[7] *= 10;
        })?;
        Ok(queue.fence(&line)?.wait()?.into_vec())
    });
}

/// Counters at the end of a buffer, of values at its start.
#[test]
fn updates_beside_reads() {
    let values = [0_u32, 1, 1, 2, 2, 2, 2, 0];
    let expected = [&values[..], &[2, 2, 4]].concat();
    assert_everywhere(&expected, |queue| {
        let contents = [&values[..], &[0; 3]].concat();
        let both = queue.buffer_from(11, contents)?;
        let counters = both.update(fixed(Subrange::new([8], [3])));
        let task = queue.task("count").granularity([8]);
        task.parallel_for(8, (counters, both.read(one_to_one())), |_, (counts, value)| {
            counts.at([8 + *value as usize]).fetch_add(1);
        })?;
        Ok(queue.fence(&both)?.wait()?.into_vec())
    });
}

#[test]
fn parts_that_share_elements_are_refused_with_what_to_do() {
    let refused = |program: &(dyn Fn(&Queue, &Buffer<u64, 2>) -> Result<()> + Sync),
                   says: &[&str]| {
        for error in error_of(|queue| {
            let table = queue.buffer_from([4, 6], vec![1_u64; 24])?.named("table");
            program(queue, &table)
        }) {
            let Error::Declare(declared) = &error else { panic!("{error}") };
            let conflict = matches!(**declared, DeclareError::ConflictingAccesses { .. });
            let text = error.to_string();
            assert!(conflict && text.contains("separate_parts.rs:"), "{text}");
            let says = ["\"table\"", "separate parts", "split the task in two"].iter().chain(says);
            says.for_each(|part| {
                assert!(text.contains(part), "\"{text}\" does not say \"{part}\"")
            });
        }
    };
    refused(
        &|queue, table| {
            let accesses = (table.write(one_to_one()), table.read(neighborhood([1, 0])));
            queue
                .task("in place")
                .offset([1, 0])
                .parallel_for([1, 6], accesses, |_, (x, _)| *x = 0)?;
            Ok(())
        },
        &["writes through one_to_one and reads through neighborhood", "[1..2, 0..6]"],
    );
    refused(
        &|queue, table| {
            let row = fixed(Subrange::new([1, 3], [2, 2]));
            let accesses = (table.read(row), table.read_write(one_to_one()));
            queue.task("some").parallel_for([2, 6], accesses, |_, (_, x)| *x = 0)?;
            Ok(())
        },
        &["reads through fixed", "reads and writes through one_to_one", "[1..2, 3..5]"],
    );
    refused(
        &|queue, table| {
            let [upper, lower] = [(0, 3), (2, 2)]
                .map(|(offset, range)| table.write(fixed(Subrange::new([offset, 0], [range, 6]))));
            queue.host_task("twice").once((upper, lower), |_| ())?;
            Ok(())
        },
        &["writes through fixed", "[2..3, 0..6]"],
    );
}

/// Says one thing of the whole index space and another of its chunks: the run ends before
/// anything is read while it is written.
#[test]
fn a_mapper_that_lies_ends_the_run() {
    let started = AtomicUsize::new(0);
    let started = std::sync::Arc::new(started);
    let errors = error_of(|queue| {
        let line = queue.buffer_from(24, vec![1_u64; 24])?.named("line");
        let asked = AtomicUsize::new(0);
        // Truthful at first, on each node.
        let fickle = mapper("fickle", move |chunk: Chunk<1>, _: [usize; 1]| {
            match asked.fetch_add(1, Ordering::Relaxed) {
                0 => Subrange::new([0], [12]),
                _ => Subrange { offset: chunk.offset, range: chunk.range },
            }
        });
        let accesses = (line.write(one_to_one()), line.read(fickle));
        let started = started.clone();
        queue.task("late").offset([12]).parallel_for(12, accesses, move |_, (x, _)| {
            started.fetch_add(1, Ordering::Relaxed);
            *x = 0;
        })?;
        queue.barrier()
    });
    for error in errors {
        let Error::Run(run) = &error else { panic!("{error}") };
        assert!(matches!(**run, RunError::Schedule { .. }), "{error}");
        let text = error.to_string();
        for part in ["\"late\" at ", "\"line\"", "through fickle", "share nothing"] {
            assert!(text.contains(part), "\"{text}\" does not say \"{part}\"");
        }
    }
    assert_eq!(started.load(Ordering::Relaxed), 0, "no kernel has run");
}
