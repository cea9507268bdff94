//! What the code of a program can do on one node, and what the others must be told.

use std::fs::{self, File};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use celerity::{CheckLevel, Error, NdItem, RunError, kernel, prelude::*};

use crate::faults::{ENDED, config, fail_with, is_last};
use crate::program::{STEPS, steps, twin};
use crate::scarcity::limit_memory;

/// How long code stays where it should not: longer than anybody has patience.
const LATE: Duration = Duration::from_secs(3);

const PATIENCE: Duration = Duration::from_secs(1);

/// Prints what this process's node was told.
fn told(node: usize, error: &RunError) -> ExitCode {
    println!("N{node}: {error}");
    ExitCode::from(ENDED)
}

/// Panics are expected: who starts this takes those that are told of for others.
fn panic_quietly() {
    std::panic::set_hook(Box::new(|_| ()));
}

/// A task panics on node 0 while another part of it goes on for long on the last node, which says so.
/// The last node has begun by then: it leaves a file where the processes run, which node 0 takes away.
pub(crate) fn lingering() -> ExitCode {
    panic_quietly();
    let begun = Path::new("lingering.begun");
    let (node, error, _) = fail_with(&config().watchdog(PATIENCE), |queue| {
        let nodes = queue.nodes();
        queue.task("fragile").parallel_for(nodes, (), move |item, ()| {
            if item.id() == [nodes - 1] {
                File::create(begun).expect("the folder of the processes can be written");
                thread::sleep(LATE);
            }
            while item.id() == [0] && fs::remove_file(begun).is_err() {
                thread::sleep(Duration::from_millis(1));
            }
            assert!(item.id() != [0], "broken");
        })?;
        queue.barrier()
    });
    told(node, &error)
}

/// A range mapper stays away for long where the last node schedules. Nothing is wrong with the
/// result.
pub(crate) fn blocked() {
    let outcome = config().watchdog(PATIENCE).run(|queue| {
        let (last, asked) = (is_last(queue), AtomicUsize::new(0));
        let late = mapper("late", move |chunk: Chunk<1>, _: [usize; 1]| {
            if last && asked.fetch_add(1, Ordering::Relaxed) == 1 {
                thread::sleep(LATE);
            }
            Subrange { offset: chunk.offset, range: chunk.range }
        });
        let seen = queue.buffer_from(64, vec![1_u64; 64])?;
        queue.task("late").parallel_for(64, seen.read(late), |_, _| ())?;
        Ok((queue.node(), steps(queue, STEPS, crate::program::calm)?))
    });
    let (node, values) = outcome.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(values, twin(values.len(), STEPS));
    if node == 0 {
        crate::passed();
    }
}

/// A range mapper tells each process something else.
pub(crate) fn fickle() -> ExitCode {
    let (node, error, _) = fail_with(&config().check(CheckLevel::Off), |queue| {
        let (node, nodes) = (queue.node(), queue.nodes());
        let (a, b) = (queue.buffer::<u64, 1>(8 * nodes), queue.buffer::<u64, 1>(8 * nodes));
        queue.task("fill").parallel_for(8 * nodes, a.write(one_to_one()), |_, a| *a = 1)?;
        let fickle = mapper("fickle", move |chunk: Chunk<1>, range: [usize; 1]| {
            let more = if chunk.range == range { 0 } else { node };
            let from = chunk.offset[0].saturating_sub(more);
            Subrange { offset: [from], range: [chunk.range[0] + chunk.offset[0] - from] }
        });
        let accesses = (b.write(one_to_one()), a.read(fickle));
        queue.task("step").parallel_for(8 * nodes, accesses, |item, (b, a)| *b = a[item[0]])?;
        queue.fence(&b)?.wait()
    });
    assert!(matches!(error, RunError::MapperDiffers { .. }), "N{node}: {error}");
    told(node, &error)
}

#[inline(never)]
fn recurse(depth: u32) -> u32 {
    let frame = std::hint::black_box([depth; 64]);
    if depth == 0 { frame[0] } else { recurse(depth - 1) + frame[3] }
}

/// Items that wait in a function have stacks.
fn wait(item: &NdItem<'_, 1>) {
    item.group().barrier();
}

/// The last item of three nodes goes too deep.
#[kernel]
fn deep(item: NdItem<'_, 1>, out: &mut u32) {
    wait(&item);
    *out = recurse(if item.id()[0] == 23 { 1_000_000 } else { 3 });
}

/// An item's stack overflows on the last node, which takes its process with it.
pub(crate) fn overflowing() -> ExitCode {
    let (node, error, _) = fail_with(&config(), |queue| {
        let items = 8 * queue.nodes();
        let out = queue.buffer::<u32, 1>(items);
        // All have begun: a node that comes late would only be told that another has died.
        queue.barrier()?;
        queue.task("step").launch(nd_range(items, 8), out.write(one_to_one()), deep)?;
        queue.barrier()
    });
    told(node, &error)
}

/// Panics when it is dropped.
struct Fragile;

impl Drop for Fragile {
    fn drop(&mut self) {
        panic!("broken");
    }
}

/// What a kernel has captured on the last node panics when it is dropped.
pub(crate) fn dropping() -> ExitCode {
    panic_quietly();
    let (node, error, _) = fail_with(&config(), |queue| {
        let fragile = is_last(queue).then(|| Fragile);
        queue.task("keeper").parallel_for(64, (), move |_, ()| _ = &fragile)?;
        queue.barrier()
    });
    assert!(matches!(error, RunError::TaskPanicked { .. }), "N{node}: {error}");
    told(node, &error)
}

/// The last node has no memory for the copy of a fence, and gives up; the others have.
pub(crate) fn fence() -> ExitCode {
    const MANY: usize = 16 << 20;
    let outcome = config().run(|queue| {
        let field = queue.buffer::<u64, 1>(MANY).named("field");
        queue.task("fill").parallel_for(MANY, field.write(one_to_one()), |_, one| *one = 1)?;
        // From now on all of it is in the memory of each host.
        let before = queue.fence(&field)?.wait()?.as_slice().len();
        assert_eq!(before, MANY);
        queue.barrier()?;
        if is_last(queue) {
            limit_memory();
        }
        let seen = queue.fence(&field)?.wait()?.as_slice().len();
        println!("N{}: {seen} elements", queue.node());
        queue.barrier()
    });
    match outcome {
        Err(error @ (Error::FenceMemory { .. } | Error::Run(_))) => println!("{error}"),
        other => panic!("{other:?}"),
    }
    ExitCode::from(ENDED)
}
