//! A row of bytes back and forth between two processes.

use std::time::Duration;

use celerity::prelude::*;
use mpi::topology::{Communicator, SimpleCommunicator};
use mpi::traits::{CommunicatorCollectives, Destination, Source};

use crate::turns::turns;
use crate::{WINDOWS, is_root, micros, shortest};

/// A table of half round trips.
pub(crate) fn print(
    world: &SimpleCommunicator,
    sizes: &[usize],
    repetitions: usize,
) -> celerity::Result<()> {
    if is_root(world) {
        println!("| bytes | MPI, one array [µs] | two rows [µs] | Celerity [µs] | ratios |");
        println!("| --- | --- | --- | --- | --- |");
    }
    for &size in sizes {
        let messages = messages(size);
        let mut array = Duration::MAX;
        let hand = || {
            array = array.min(by_hand(world, size, messages, 1));
            (by_hand(world, size, messages, 2), ())
        };
        let ours = || Ok((ours(1, size, messages)?, ()));
        let [rows, ours] = turns(repetitions.div_ceil(WINDOWS), hand, ours)?.0.least();
        let [array, rows, ours] = [array, rows, ours].map(|time| micros(time) / messages as f64);
        if is_root(world) {
            let ratios = format!("{:.2}, {:.2}", ours / array, ours / rows);
            println!("| {size} | {array:.2} | {rows:.2} | {ours:.2} | {ratios} |");
        }
    }
    Ok(())
}

/// The same between two nodes in this process, without MPI.
pub(crate) fn print_in_process(sizes: &[usize], repetitions: usize) -> celerity::Result<()> {
    println!("| bytes | in process [µs] |\n| --- | --- |");
    for &size in sizes {
        let messages = messages(size);
        let mut times = (0..repetitions.div_ceil(WINDOWS)).map(|_| ours(2, size, messages));
        let first = times.next().unwrap_or(Ok(Duration::MAX));
        let least = times.try_fold(first?, |least, time| time.map(|time| least.min(time)))?;
        println!("| {size} | {:.2} |", micros(least) / messages as f64);
    }
    Ok(())
}

/// In each measure: so many that its begin and its end weigh little. Between two measures
/// all wait in a barrier, and then what sleeps is woken and the first tasks are scheduled,
/// on both sides. That is some 100 to 300 µs, and not the latency of a message.
fn messages(size: usize) -> usize {
    ((64 << 20) / size).clamp(32, 1024)
}

/// So many messages, each the answer to the one before; the least of some measures. With one
/// array, what has been received is sent back, as is usual. With two, a process receives into
/// one and sends the other, as [`ours`] does: where memory lies in which cache decides how long
/// a copy of it takes.
fn by_hand(world: &SimpleCommunicator, size: usize, messages: usize, arrays: usize) -> Duration {
    let mut data = vec![vec![0_u8; size]; arrays];
    let (own, other) = (0, arrays - 1);
    let peer = world.process_at_rank(1 - world.rank());
    let time = shortest(WINDOWS, || {
        for message in 0..messages {
            if message % 2 == usize::from(is_root(world)) {
                peer.receive_into(&mut data[other][..]);
            } else {
                data[own][0] = data[other][0].wrapping_add(1);
                peer.send(&data[own][..]);
            }
        }
        world.barrier();
        Ok(())
    });
    time.expect("nothing is refused")
}

/// The same by tasks, in each of which a node reads what the other has written in the one before.
/// What is sent has to be written first, so each task writes an element of its row.
/// `nodes` of the two are in each process.
fn ours(nodes: usize, size: usize, messages: usize) -> celerity::Result<Duration> {
    Config::from_env()?.nodes(nodes).run(|queue| {
        let rows = ["even", "odd"].map(|name| queue.buffer::<u8, 2>([2, size]).named(name));
        queue.task("begin").parallel_for([2, size], rows[1].write(one_to_one()), |_, byte| {
            *byte = 0;
        })?;
        exchange(queue, &rows, size, 4)?;
        queue.barrier()?;
        shortest(WINDOWS, || {
            exchange(queue, &rows, size, messages)?;
            queue.barrier()
        })
    })
}

fn exchange(
    queue: &Queue,
    rows: &[Buffer<u8, 2>; 2],
    size: usize,
    messages: usize,
) -> celerity::Result<()> {
    for message in 0..messages {
        let (reader, from, to) = (1 - message % 2, &rows[1 - message % 2], &rows[message % 2]);
        let other = mapper("the other's row", move |chunk: Chunk<2>, _: [usize; 2]| {
            let reads = (chunk.offset[0]..chunk.offset[0] + chunk.range[0]).contains(&reader);
            Subrange { offset: [1 - reader, 0], range: [usize::from(reads), size] }
        });
        let accesses = (to.write(slice(1)), from.read(other));
        queue.task("answer").parallel_for([2, 1], accesses, |item, (mut row, other)| {
            let number = other.get([1 - item.id()[0], 0]).copied().unwrap_or_default();
            row.set([item.id()[0], 0], number.wrapping_add(1));
        })?;
    }
    Ok(())
}
