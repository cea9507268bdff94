//! Steps that do nothing but exchange elements: as collective operations by hand, and as tasks whose
//! collectives the runtime discovers, or leaves to messages between pairs of nodes.

use std::time::Duration;

use celerity::prelude::*;
use celerity::{Collectives, Config};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Root};

use crate::turns::turns;
use crate::{PROGRAM_WINDOWS, is_root, micros, place, shortest};

/// Steps in each measure: fewer of those that take long.
fn steps(bytes: usize) -> usize {
    if bytes > 4 << 20 { 4 } else { 20 }
}

/// Who reads what (IJPP 2024, table 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exchange {
    AllGather,
    GatherScatter,
    GatherBroadcast,
    AllToAll,
}

impl Exchange {
    const ALL: [Self; 4] =
        [Self::AllGather, Self::GatherScatter, Self::GatherBroadcast, Self::AllToAll];

    const fn name(self) -> &'static str {
        match self {
            Self::AllGather => "all-gather",
            Self::GatherScatter => "gather, scatter",
            Self::GatherBroadcast => "gather, broadcast",
            Self::AllToAll => "all-to-all",
        }
    }
}

/// A table: what a step takes that exchanges so many bytes, all nodes' together.
pub(crate) fn print(
    world: &SimpleCommunicator,
    sizes: &[usize],
    repetitions: usize,
) -> celerity::Result<()> {
    if is_root(world) {
        println!(
            "\n| pattern | processes | bytes | MPI by hand [µs] | off [µs] | auto [µs] | always [µs] | \
             auto by hand | auto by off | median of these |"
        );
        println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    }
    for exchange in Exchange::ALL {
        sizes.iter().try_for_each(|&bytes| row(world, exchange, bytes, repetitions))?;
    }
    Ok(())
}

fn row(
    world: &SimpleCommunicator,
    exchange: Exchange,
    bytes: usize,
    repetitions: usize,
) -> celerity::Result<()> {
    let (side, steps) = (side(exchange, bytes, place(world).1), steps(bytes));
    let times = repetitions.div_ceil(PROGRAM_WINDOWS);
    let ours = |collectives| ours(exchange, side, steps, collectives);
    let off = || (ours(Collectives::Off).expect("it runs"), ());
    let auto = || Ok((ours(Collectives::Auto)?, ()));
    let (turns, _) = turns(times, off, auto)?;
    let least = |times: &mut dyn Iterator<Item = Duration>| times.min().expect("there is one");
    let by_hand = least(&mut (0..times).map(|_| by_hand(world, exchange, side, steps)));
    let always = || ours(Collectives::Always).expect("it runs");
    let always = least(&mut (0..times).map(|_| always()));
    if is_root(world) {
        let per_step = |time: Duration| micros(time) / steps as f64;
        let [off, auto] = turns.least().map(per_step);
        let [hand, always] = [by_hand, always].map(per_step);
        let median = 1.0 / turns.median_ratio();
        let elements = if exchange == Exchange::AllToAll { side * side } else { side };
        println!(
            "| {} | {} | {} | {hand:.1} | {off:.1} | {auto:.1} | {always:.1} | {:.2} | {:.2} | {median:.2} |",
            exchange.name(),
            place(world).1,
            4 * elements,
            auto / hand,
            auto / off,
        );
    }
    Ok(())
}

/// Elements of a buffer, or of its sides where it has two: so many bytes in all, in equal shares.
fn side(exchange: Exchange, bytes: usize, nodes: usize) -> usize {
    let side = match exchange {
        Exchange::AllToAll => (bytes / 4).isqrt(),
        _ => bytes / 4,
    };
    side.next_multiple_of(nodes)
}

/// The bare operations, from dense memory to dense memory.
fn by_hand(world: &SimpleCommunicator, exchange: Exchange, side: usize, steps: usize) -> Duration {
    let (rank, nodes) = place(world);
    let count = if exchange == Exchange::AllToAll { side * side } else { side };
    let (mut part, mut whole) = (vec![1_u32; count / nodes], vec![0_u32; count]);
    let root = world.process_at_rank(0);
    let gather = |part: &[u32], whole: &mut [u32]| match rank {
        0 => root.gather_into_root(part, whole),
        _ => root.gather_into(part),
    };
    let time = shortest(PROGRAM_WINDOWS, || {
        for _ in 0..steps {
            match exchange {
                Exchange::AllGather => world.all_gather_into(&part[..], &mut whole[..]),
                Exchange::GatherScatter => {
                    gather(&part, &mut whole);
                    match rank {
                        0 => root.scatter_into_root(&whole[..], &mut part[..]),
                        _ => root.scatter_into(&mut part[..]),
                    }
                }
                Exchange::GatherBroadcast => {
                    gather(&part, &mut whole);
                    root.broadcast_into(&mut whole[..]);
                }
                Exchange::AllToAll => {
                    let mut parts = vec![0_u32; part.len()];
                    world.all_to_all_into(&part[..], &mut parts[..]);
                }
            }
        }
        world.barrier();
        Ok(())
    });
    time.expect("nothing is refused")
}

fn ours(
    exchange: Exchange,
    side: usize,
    steps: usize,
    collectives: Collectives,
) -> celerity::Result<Duration> {
    Config::default().collectives(collectives).run(|queue| match exchange {
        Exchange::AllToAll => turned(queue, side, steps),
        _ => in_line(queue, exchange, side, steps),
    })
}

/// Kernels that touch nothing: what is left is the exchange of what they declare.
fn in_line(
    queue: &Queue,
    exchange: Exchange,
    count: usize,
    steps: usize,
) -> celerity::Result<Duration> {
    let mut from = queue.buffer_from(count, vec![1_u32; count])?;
    let mut to = queue.buffer::<u32, 1>(count);
    let step = |from: &mut Buffer<u32, 1>, to: &mut Buffer<u32, 1>| -> celerity::Result<()> {
        if exchange != Exchange::AllGather {
            let accesses = (from.read(all()), to.write(slice(0)));
            queue.task("alone").parallel_for(1, accesses, |_, _| ())?;
            std::mem::swap(from, to);
        }
        if exchange == Exchange::GatherScatter {
            let accesses = (from.read(one_to_one()), to.write(one_to_one()));
            queue.task("own").parallel_for_rows(count, accesses, |_, _| ())?;
        } else {
            let accesses = (from.read(all()), to.write(one_to_one()));
            queue.task("all").parallel_for_rows(count, accesses, |_, _| ())?;
        }
        std::mem::swap(from, to);
        Ok(())
    };
    shortest(PROGRAM_WINDOWS, || {
        (0..steps).try_for_each(|_| step(&mut from, &mut to))?;
        queue.barrier()
    })
}

fn turned(queue: &Queue, side: usize, steps: usize) -> celerity::Result<Duration> {
    let mut from = queue.buffer_from([side; 2], vec![1_u32; side * side])?;
    let mut to = queue.buffer::<u32, 2>([side; 2]);
    shortest(PROGRAM_WINDOWS, || {
        for _ in 0..steps {
            let accesses = (from.read(transposed()), to.write(one_to_one()));
            queue.task("turn").parallel_for_rows([side; 2], accesses, |_, _| ())?;
            std::mem::swap(&mut from, &mut to);
        }
        queue.barrier()
    })
}
