//! What `buffer_from` is given: where devices work in the host's memory, a `Vec` is the buffer's
//! memory from then on, on every node its own; elsewhere it is copied. Nothing else tells the two
//! apart.

use std::sync::Mutex;

use celerity::prelude::*;
use celerity::{DeviceMemory, Result};

/// Nodes, devices and the memory that these work in.
fn clusters() -> impl Iterator<Item = (Config, DeviceMemory)> {
    let sizes = [(1, 1), (1, 3), (2, 1), (3, 2)];
    sizes.into_iter().flat_map(|(nodes, devices)| {
        [DeviceMemory::Host, DeviceMemory::Own].map(|memory| {
            (Config::default().nodes(nodes).devices(devices).device_memory(memory), memory)
        })
    })
}

fn values(count: usize) -> Vec<u32> {
    (0..count as u32).map(|i| i * 7919 % 1009).collect()
}

#[test]
fn a_vec_is_the_buffers_memory_where_the_hosts_serves_the_device() {
    for (config, memory) in clusters() {
        let seen = Mutex::new(Vec::new());
        let outcome = config.run(|queue| {
            let given = values(600);
            let address = given.as_ptr() as usize;
            let a = queue.buffer_from([60, 10], given)?;
            let places = queue.buffer::<u8, 2>([60, 10]);
            let accesses = (places.write(one_to_one()), a.read_write(one_to_one()));
            queue.task("kernel").parallel_for([60, 10], accesses, move |item, (there, a)| {
                let expected = address + 4 * item.linear_id();
                *there = u8::from(std::ptr::from_mut(a) as usize == expected);
                *a += 1;
            })?;
            let there = queue.fence(&places)?.wait()?;
            seen.lock().unwrap().extend_from_slice(there.as_slice());
            queue.host_task("host").once(a.read(all()), move |a| {
                // A node's own chunk is not all of it: the rest has arrived where it lies, too.
                let in_place = a.as_slice().as_ptr() as usize == address;
                assert_eq!(in_place, memory == DeviceMemory::Host);
                assert!(a.iter().zip(values(600)).all(|(a, before)| *a == before + 1));
            })?;
            assert!(
                queue
                    .fence(&a)?
                    .wait()?
                    .as_slice()
                    .iter()
                    .zip(values(600))
                    .all(|(a, b)| *a == b + 1)
            );
            Ok(())
        });
        outcome.unwrap_or_else(|error| panic!("{config:?}: {error}"));
        let expected = u8::from(memory == DeviceMemory::Host);
        assert!(seen.lock().unwrap().iter().all(|&there| there == expected), "{config:?}");
    }
}

/// Reads, discarding writes and updates of parts, narrow and wide, from the beginning, the middle
/// and the end, by kernels and host tasks, and what other nodes have written.
#[test]
fn contents_are_what_they_are_in_memory_of_the_runtime() {
    let program = |queue: &Queue, a: &Buffer<u32, 2>, b: &Buffer<u32, 2>| -> Result<Vec<u32>> {
        let range = [12, 9];
        for (from, to, split) in [(a, b, Hint::BandSplit), (b, a, Hint::SplitAlong(1))] {
            let accesses = (to.read_write(one_to_one()), from.read(neighborhood([1, 2])));
            let task = queue.task("mix").hint(split);
            task.parallel_for(range, accesses, |_, (to, from)| {
                *to = to.wrapping_mul(3) ^ from.clamped([-1, 2]) ^ from.clamped([1, -2]);
            })?;
        }
        for (first, rows) in [(0, 1), (5, 2), (11, 1)] {
            let task = queue.task("overwrite").offset([first, 3]);
            task.parallel_for([rows, 4], a.write(one_to_one()), |item, a| *a = item[1] as u32)?;
        }
        let part = fixed(Subrange { offset: [4, 0], range: [3, 9] });
        queue.host_task("host").once((a.read_write(part), b.read(all())), |(mut a, b)| {
            for x in 0..9 {
                a[[5, x]] += b[[11, x]];
            }
        })?;
        let (mut all, part) =
            (queue.fence(a)?.wait()?.into_vec(), Subrange { offset: [2, 1], range: [9, 3] });
        all.extend_from_slice(queue.fence_part(b, part)?.wait()?.as_slice());
        Ok(all)
    };
    let expected = Config::default().run(|queue| {
        let fill = |seed: u32| {
            let buffer = queue.buffer::<u32, 2>([12, 9]);
            let values = values(200);
            queue.task("fill").parallel_for(
                [12, 9],
                buffer.write(one_to_one()),
                move |item, a| {
                    *a = values[item.linear_id() + seed as usize];
                },
            )?;
            Ok::<_, celerity::Error>(buffer)
        };
        program(queue, &fill(0)?, &fill(50)?)
    });
    let expected = expected.unwrap();
    for (config, _) in clusters() {
        let found = config.run(|queue| {
            let a = queue.buffer_from([12, 9], &values(200)[..108])?;
            let b = queue.buffer_from([12, 9], values(200)[50..158].to_vec())?;
            program(queue, &a, &b)
        });
        assert_eq!(found.unwrap(), expected, "{config:?}");
    }
}

#[test]
fn a_slice_stays_the_callers() {
    let mine = values(50);
    for (config, _) in clusters() {
        let doubled = config.run(|queue| {
            let a = queue.buffer_from(50, mine.as_slice())?;
            queue.task("double").parallel_for(50, a.read_write(one_to_one()), |_, a| *a *= 2)?;
            Ok(queue.fence(&a)?.wait()?.into_vec())
        });
        assert!(doubled.unwrap().iter().zip(&mine).all(|(doubled, mine)| *doubled == 2 * mine));
        assert_eq!(mine, values(50));
    }
}

#[test]
fn buffers_come_and_go_with_their_memory() {
    for (config, _) in clusters() {
        let sums = config.run(|queue| {
            let mut sums = Vec::new();
            for round in 0..20 {
                let a = queue.buffer_from([8, 4096], vec![round; 8 * 4096])?;
                let b = queue.buffer::<u32, 2>([8, 4096]);
                let accesses = (b.write(one_to_one()), a.read(one_to_one()));
                queue.task("copy").parallel_for([8, 4096], accesses, |_, (b, a)| *b = a + 1)?;
                drop(a);
                let part = Subrange { offset: [3, 77], range: [2, 5] };
                sums.push(queue.fence_part(&b, part)?.wait()?.as_slice().iter().sum::<u32>());
            }
            Ok(sums)
        });
        assert_eq!(sums.unwrap(), (1..21).map(|round| 10 * round).collect::<Vec<_>>());
    }
}
